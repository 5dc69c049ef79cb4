"""opcua-server: asked and commanded by asyncua's client; slow: by one of node-opcua, which shares no code with it."""

from __future__ import annotations

import asyncio
import errno
import math
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from support import free_port, wait_for
from test_opcua_client import certificate, said, stranger

from drivers.base import DriverError, OptionError
from drivers.opcua import service
from drivers.opcua.options import Address
from drivers.opcua.server import OpcuaServer
from drivers.registry import create

INPUTS = [
    {"name": "torque", "unit": "N*m", "low": -20.0, "high": 20.0, "default": 1.5},
    {"name": "run", "type": "Boolean"},
    {"name": "count", "type": "Int16"},
]
OUTPUTS = [
    {"name": "angle", "unit": "rad", "safe": -1.0, "doc": "of the shoulder"},
    {"name": "load", "type": "UInt16"},
    {"name": "moving", "type": "Boolean"},
]


@pytest.fixture(scope="module")
def server() -> Iterator[OpcuaServer]:
    made = OpcuaServer(
        "plant", {"listen": f"127.0.0.1:{free_port()}", "inputs": INPUTS, "outputs": OUTPUTS, "publish_ms": 10}
    )
    made.open()
    yield made
    made.close()


Work = Callable[[Client, int], Coroutine[Any, Any, Any]]


def ask(server: OpcuaServer, work: Work) -> Any:
    """Do something with a client of asyncua's own."""

    async def session() -> Any:
        async with Client(str(server._address)) as client:
            return await work(client, await client.get_namespace_index("urn:hilnode"))

    return asyncio.run(session())


def node(client: Client, space: int, name: str) -> Any:
    return client.get_node(f"ns={space};s=plant.{name}")


def test_others_see_values_types_units_and_ranges(server: OpcuaServer) -> None:
    server.write(np.array([0.5, 300.4, 1.0]))

    async def look(client: Client, space: int) -> Any:
        until = time.monotonic() + 20
        while await node(client, space, "angle").read_value() != 0.5:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        angle, torque = node(client, space, "angle"), node(client, space, "torque")
        unit = await (await angle.get_child("0:EngineeringUnits")).read_value()
        span = await (await torque.get_child("0:EURange")).read_value()
        path = await client.nodes.objects.get_child([f"{space}:plant", f"{space}:load"])
        text = await angle.read_attribute(ua.AttributeIds.Description)
        return {
            "load": (await path.read_data_value()).Value,
            "moving": (await node(client, space, "moving").read_data_value()).Value,
            "torque": await torque.read_value(),
            "unit": unit.DisplayName.Text,
            "span": (span.Low, span.High),
            "text": text.Value.Value.Text,
        }

    seen = ask(server, look)
    assert (seen["load"].Value, seen["load"].VariantType) == (300, ua.VariantType.UInt16)
    assert (seen["moving"].Value, seen["moving"].VariantType) == (True, ua.VariantType.Boolean)
    assert (seen["unit"], seen["span"], seen["text"], seen["torque"]) == ("rad", (-20.0, 20.0), "of the shoulder", 1.5)


def test_a_subscriber_is_told_of_changes(server: OpcuaServer) -> None:
    got: list[float] = []

    class Handler:
        def datachange_notification(self, _node: Any, value: Any, _data: Any) -> None:
            got.append(value)

    async def listen(client: Client, space: int) -> None:
        watch = await client.create_subscription(10, Handler())
        await watch.subscribe_data_change(node(client, space, "angle"))
        for k in range(5):
            server.write(np.array([10.0 + k, 0.0, 0.0]))
            until = time.monotonic() + 20
            while 10.0 + k not in got:
                assert time.monotonic() < until
                await asyncio.sleep(0.005)

    ask(server, listen)


def test_commands(server: OpcuaServer) -> None:
    values, stamps = np.full(3, -9.0), np.zeros(3, np.int64)

    async def command(client: Client, space: int) -> None:
        await node(client, space, "torque").write_value(-2.5)
        await node(client, space, "run").write_value(True)

    before = time.monotonic_ns()
    ask(server, command)
    assert server.read(values, stamps)
    assert values.tolist() == [-2.5, 1.0, -9.0]  # nobody wrote the third
    assert before < stamps[0] <= stamps[1] <= time.monotonic_ns()
    assert stamps[2] == 0
    assert not server.read(values, stamps)
    first = stamps[0]
    ask(server, command)  # the same again is news
    assert server.read(values, stamps)
    assert stamps[0] > first


def test_what_others_may_not_do(server: OpcuaServer) -> None:
    values, stamps = np.zeros(3), np.zeros(3, np.int64)

    async def misbehave(client: Client, space: int) -> list[str]:
        answers = []
        attempts = [
            node(client, space, "angle").write_value(3.0),
            node(client, space, "count").write_value(ua.Variant(70000, ua.VariantType.Int32)),
            node(client, space, "count").write_value(ua.Variant("seven", ua.VariantType.String)),
            node(client, space, "torque").set_writable(False),
            client.nodes.objects.add_variable(space, "mine", 1.0),
            client.delete_nodes([node(client, space, "angle")]),
        ]
        for attempt in attempts:
            try:
                answer = await attempt
                answers.append(str(answer))
            except ua.UaStatusCodeError as error:
                answers.append(type(error).__name__)
        return answers

    while server.read(values, stamps):
        pass
    answers = ask(server, misbehave)
    assert answers[:3] == ["BadUserAccessDenied", "BadTypeMismatch", "BadTypeMismatch"]
    assert answers[3] == "BadUserAccessDenied"
    assert answers[4].startswith("Bad")
    assert not server.read(values, stamps)

    async def still_there(client: Client, space: int) -> float:
        return float(await node(client, space, "angle").read_value())

    assert math.isfinite(ask(server, still_there))


def test_what_is_no_number_is_shown_as_bad(server: OpcuaServer) -> None:
    server.write(np.array([math.nan, 5.0, 0.0]))

    async def look(client: Client, space: int) -> Any:
        until = time.monotonic() + 20
        while True:
            data = await node(client, space, "angle").read_data_value(raise_on_bad_status=False)
            if data.StatusCode.is_bad():
                return await node(client, space, "load").read_value()
            assert time.monotonic() < until
            await asyncio.sleep(0.01)

    assert ask(server, look) == 5
    server.write(np.array([2.0, 5.0, 0.0]))

    async def good(client: Client, space: int) -> bool:
        return (await node(client, space, "angle").read_data_value(raise_on_bad_status=False)).StatusCode.is_good()

    wait_for(lambda: ask(server, good), "a good value", 20)


def test_garbage_on_the_port_does_not_hurt(server: OpcuaServer) -> None:
    dice = np.random.default_rng(1)
    for _ in range(20):
        with socket.create_connection((server._address.host, server._address.port)) as end:
            head = [b"HELF", b"OPNF", b"MSGF", b"", b"GET "][dice.integers(5)]
            end.sendall(head + dice.bytes(int(dice.integers(200))))
    server.write(np.array([4.0, 5.0, 0.0]))

    async def look(client: Client, space: int) -> float:
        return float(await node(client, space, "angle").read_value())

    wait_for(lambda: ask(server, look) == 4.0, "the server to go on", 20)


def test_a_look_at_the_port_takes_no_client_in() -> None:
    """A client that comes before the server is there is refused; it is not let in and thrown out."""
    address, answers, end = Address("127.0.0.1", free_port(), ""), set(), threading.Event()

    def come() -> None:
        while not end.is_set():
            with socket.socket() as client:
                answers.add(client.connect_ex((address.host, address.port)))

    client = threading.Thread(target=come)
    client.start()
    for _ in range(3000):
        service._probe(address)
    end.set()
    client.join()
    assert answers == {errno.ECONNREFUSED}


def test_a_taken_port_and_a_second_open(server: OpcuaServer) -> None:
    threads = threading.active_count()
    other = OpcuaServer("other", {"listen": str(server._address), "outputs": OUTPUTS})
    with pytest.raises(DriverError, match=r"cannot serve at .*the port is taken by another program"):
        other.open()
    assert threading.active_count() == threads
    with pytest.raises(DriverError, match="not open"):
        other.write(np.zeros(3))
    other.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs inputs, outputs or both"),
        ({"outputs": [{"name": "a", "type": "Real"}]}, "outputs: a: type = 'Real': must be one of Boolean, SByte"),
        ({"outputs": [{"name": "a"}], "inputs": [{"name": "a"}]}, "a stands in inputs and outputs"),
        ({"outputs": [{"name": "a"}], "listen": "0.0.0.0:0"}, "listen = '0.0.0.0:0': must be an address"),
        ({"outputs": [{"name": "a"}], "certificate": "x"}, "client_certificate go together"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        OpcuaServer("plant", options)


def test_it_listens_on_this_pc_only_unless_told(tmp_path: Path) -> None:
    assert str(OpcuaServer("plant", {"outputs": OUTPUTS})._address) == "opc.tcp://127.0.0.1:4840"
    options = {"outputs": OUTPUTS, "user": "anna", "password_file": "secret"}
    made = create("opcua-server", "plant", options, tmp_path)
    assert made.options["password_file"] == str(tmp_path / "secret")


@pytest.mark.slow
def test_certificates_and_a_password(tmp_path: Path) -> None:
    for name in ("server", "client", "thief"):
        certificate(tmp_path, name)
    (tmp_path / "password").write_text("geheim\n")
    options = {
        "listen": f"127.0.0.1:{free_port()}",
        "outputs": OUTPUTS,
        "user": "anna",
        "password_file": "password",
        "certificate": "server.der",
        "private_key": "server.pem",
        "client_certificate": "client.der",
    }
    server = create("opcua-server", "plant", options, tmp_path)
    assert isinstance(server, OpcuaServer)
    server.open()

    async def enter(who: str, user: str, password: str, *, secure: bool = True) -> str:
        client = Client(str(server._address), timeout=5)
        client.application_uri = f"urn:test:{who}"
        client.set_user(user)
        client.set_password(password)
        try:
            if secure:
                certificates = (tmp_path / f"{who}.der", tmp_path / f"{who}.pem")
                await client.set_security(
                    SecurityPolicyBasic256Sha256, *certificates, server_certificate=str(tmp_path / "server.der")
                )
            async with client:
                space = await client.get_namespace_index("urn:hilnode")
                return str(await node(client, space, "angle").read_value())
        except Exception as error:
            return type(error).__name__

    try:
        assert asyncio.run(enter("client", "anna", "geheim")) == "-1.0"
        for attempt in (
            enter("client", "anna", "secret"),
            enter("client", "berta", "geheim"),
            enter("thief", "anna", "geheim"),
            enter("client", "anna", "geheim", secure=False),
        ):
            assert asyncio.run(attempt) not in ("-1.0", "")
    finally:
        server.close()


@pytest.mark.slow
def test_a_client_of_node_opcua(server: OpcuaServer) -> None:
    values, stamps = np.zeros(3), np.zeros(3, np.int64)
    while server.read(values, stamps):
        pass
    server.write(np.array([0.125, 0.0, 0.0]))
    time.sleep(0.2)
    with stranger("client", server._address.port) as process:
        assert [said(process) for _ in range(3)] == ["angle 0.125", "torque Good", "angle BadUserAccessDenied"]
    assert server.read(values, stamps)
    assert values[0] == -2.5
