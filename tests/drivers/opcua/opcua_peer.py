"""An OPC UA server of asyncua in a process of its own: `opcua_peer.py port [folder with certificates]`.

Lines on standard input change it: `set Name number`, `bad Name`, `get Name` (the value comes back), `freeze`, `end`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole

TYPES = ("Double", "Float", "Int16", "UInt16", "Int32", "UInt32", "Int64", "Byte", "SByte", "Boolean")


class Guard:
    """Lets in who knows the password, if there is one."""

    def get_user(
        self, iserver: Any, username: Any = None, password: Any = None, certificate: Any = None
    ) -> User | None:
        secret = password.decode() if isinstance(password, bytes) else password
        return User(role=UserRole.User) if (username, secret) == ("anna", "geheim") else None


async def main(port: int, folder: Path | None) -> None:
    server = Server(user_manager=Guard() if folder else None)
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/plc")
    if folder:
        server.set_identity_tokens([ua.UserNameIdentityToken])
        await server.set_application_uri("urn:test:server")
        await server.load_certificate(folder / "server.der")
        await server.load_private_key(folder / "server.pem")
        server.set_security_policy([ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])
    else:
        server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    space = await server.register_namespace("urn:test:plc")
    box = await server.nodes.objects.add_object(space, "Plc")
    nodes = {}
    for name in TYPES:
        zero = False if name == "Boolean" else 0.0 if name in ("Double", "Float") else 0
        variable = await box.add_variable(ua.NodeId(name, space), name, ua.Variant(zero, getattr(ua.VariantType, name)))
        await variable.set_writable()
        nodes[name] = variable
    for name, unit in (("Length", "mm"), ("Mass", "kg")):
        nodes[name] = await box.add_variable(ua.NodeId(name, space), name, 1500.0)
        await nodes[name].set_writable()
        text = ua.LocalizedText(unit)
        await nodes[name].add_property(0, "EngineeringUnits", ua.EUInformation("", -1, text, text))
    await box.add_variable(ua.NodeId("Text", space), "Text", "hello")
    await box.add_variable(ua.NodeId("List", space), "List", [1.0, 2.0])
    await box.add_variable(ua.NodeId("Fixed", space), "Fixed", 7.0)  # cannot be written
    async with server:
        print("ready", flush=True)
        while True:
            line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            word, _, rest = line.strip().partition(" ")
            name, _, text = rest.partition(" ")
            if word == "set":
                kind = getattr(ua.VariantType, name, ua.VariantType.Double)
                value = text == "1" if name == "Boolean" else float(text) if "." in text else int(text)
                await nodes[name].write_value(ua.Variant(value, kind))
            elif word == "bad":
                await nodes[name].write_value(ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadSensorFailure)))
            elif word == "get":
                print(float(await nodes[name].read_value()), flush=True)
                continue
            elif word == "freeze":
                print("ok", flush=True)
                os.kill(os.getpid(), signal.SIGSTOP)
                continue
            else:
                return
            print("ok", flush=True)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
