"""The OPC UA server itself, made from a table of channels. All use of asyncua's server is here."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import math
import socket
from datetime import UTC, datetime
from typing import Any, Protocol

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole

from drivers.base import DriverError
from drivers.opcua.certificates import DER, read_certificates
from drivers.opcua.link import why
from drivers.opcua.loop import Loop
from drivers.opcua.options import Address, Credentials, number_for
from hilnode.core.signals import Signal

NAMESPACE = "urn:hilnode"
STARTING = 60.0  # [s] for the server to build its address space, on a busy machine
STOPPING = 2.0
UNITS_NAMESPACE = "http://www.opcfoundation.org/UA/units/un/cefact"


class Table(Protocol):
    """What a server shows and takes."""

    name: str
    commands: list[tuple[Signal, str]]
    shown: list[tuple[Signal, str]]
    values: list[float]

    def command(self, number: int, value: float) -> None: ...


class Service:
    """A server that runs from here until `close`."""

    def __init__(self, address: Address, who: Credentials, table: Table, publish: float) -> None:
        _probe(address)
        self._table, self._publish = table, publish
        self._server: Server | None = None
        self._showing: asyncio.Task[None] | None = None
        self._loop = Loop(f"opcua server {address}")
        try:
            self._loop.call(self._start(address, who), STARTING)
        except Exception as error:
            self.close()
            raise DriverError(f"cannot serve at {address}: {_why_not(error)}") from error

    @property
    def alive(self) -> bool:
        return self._loop.alive and self._showing is not None and not self._showing.done()

    def close(self) -> None:
        """End every session, and the thread."""
        server, self._server = self._server, None
        if server is not None:
            with contextlib.suppress(Exception):
                self._loop.call(server.stop(), STOPPING)
        self._loop.close()

    async def _start(self, address: Address, who: Credentials) -> None:
        server = Server(user_manager=_Users(who))
        await server.init()
        server.set_endpoint(str(address))
        server.set_server_name("hilnode")
        await _secure(server, who)
        space = await server.register_namespace(NAMESPACE)
        shown = await self._populate(server, space)
        self._server = server
        await server.start()
        self._showing = asyncio.create_task(self._show(server, shown))

    async def _populate(self, server: Server, space: int) -> list[ua.NodeId]:
        """One object with a variable for each channel; the identifiers of those that are shown."""
        table = self._table
        place = ua.NodeId(table.name, space)
        holder = await server.nodes.objects.add_object(place, ua.QualifiedName(table.name, space))
        for number, (signal, kind) in enumerate(table.commands):
            variable = await _variable(holder, space, table.name, signal, kind, signal.default)
            await variable.set_writable()
            server.set_attribute_value_setter(variable.nodeid, self._taker(number))
        return [
            (await _variable(holder, space, table.name, signal, kind, signal.safe)).nodeid
            for signal, kind in table.shown
        ]

    def _taker(self, number: int) -> Any:
        """What happens when somebody writes; asyncua has checked the type."""

        def take(node: Any, attribute: ua.AttributeIds, data: ua.DataValue) -> None:
            node.attributes[attribute].value = data
            value = data.Value.Value if data.Value is not None else None
            if isinstance(value, (bool, int, float)):  # a bad status comes without a value
                self._table.command(number, float(value))

        return take

    async def _show(self, server: Server, nodes: list[ua.NodeId]) -> None:
        """Change the variables that moved, over and over. What is no number is shown as such: bad, without a value."""
        known: list[Any] = [None] * len(nodes)
        while True:
            now = datetime.now(UTC)
            for k, value in enumerate(self._table.values):
                if value == known[k] or (known[k] is not None and math.isnan(value) and math.isnan(known[k])):
                    continue
                known[k] = value
                await server.write_attribute_value(nodes[k], _shown(value, self._table.shown[k][1], now))
            await asyncio.sleep(self._publish)


def _shown(value: float, kind: str, now: datetime) -> ua.DataValue:
    try:
        variant = ua.Variant(number_for(value, kind), getattr(ua.VariantType, kind))
    except ValueError:
        return ua.DataValue(
            ua.Variant(None), StatusCode=ua.StatusCode(ua.StatusCodes.BadOutOfRange), SourceTimestamp=now
        )
    return ua.DataValue(variant, SourceTimestamp=now)


async def _variable(holder: Any, space: int, driver: str, signal: Signal, kind: str, value: float) -> Any:
    """A variable with its unit and range, where it has them."""
    variant = ua.Variant(number_for(value, kind), getattr(ua.VariantType, kind))
    node = ua.NodeId(f"{driver}.{signal.name}", space)
    variable = await holder.add_variable(node, ua.QualifiedName(signal.name, space), variant)
    if signal.doc:
        await variable.write_attribute(
            ua.AttributeIds.Description, ua.DataValue(ua.Variant(ua.LocalizedText(signal.doc)))
        )
    if signal.unit:
        unit = ua.EUInformation(UNITS_NAMESPACE, -1, ua.LocalizedText(signal.unit), ua.LocalizedText(signal.unit))
        await variable.add_property(0, "EngineeringUnits", unit)
    if math.isfinite(signal.low) and math.isfinite(signal.high):
        await variable.add_property(0, "EURange", ua.Range(signal.low, signal.high))
    return variable


class _Users:
    """Nobody is an administrator: variables that are shown can not be written, nothing can be added."""

    def __init__(self, who: Credentials) -> None:
        self._name, self._password = who.user, who.password() if who.user else ""

    def get_user(
        self, iserver: Any, username: str | None = None, password: Any = None, certificate: Any = None
    ) -> User | None:
        given = password.decode("utf-8", "replace") if isinstance(password, bytes) else password or ""
        if self._name and not (
            hmac.compare_digest((username or "").encode(), self._name.encode())
            and hmac.compare_digest(given.encode(), self._password.encode())
        ):
            return None
        return User(role=UserRole.User)


async def _secure(server: Server, who: Credentials) -> None:
    """With certificates: signed and encrypted only, and only for the client whose certificate is known."""
    server.set_identity_tokens([ua.UserNameIdentityToken] if who.user else [ua.AnonymousIdentityToken])
    if not who.certificate:
        server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        return
    certificates = read_certificates(who)
    await server.set_application_uri(certificates.uri)
    await server.load_certificate(certificates.certificate)
    await server.load_private_key(certificates.private_key)
    server.set_security_policy([ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])

    async def check(certificate: Any, _application: Any) -> None:
        if certificate.public_bytes(DER) != certificates.peer:
            raise ua.uaerrors.BadCertificateUntrusted()

    server.set_certificate_validator(check)


def _probe(address: Address) -> None:
    """See whether the port can be had, before seconds of work go into a server that cannot be reached.

    To bind is enough: it fails while somebody listens. Who listened here would take in clients and throw them out.
    """
    try:
        family, _, _, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise DriverError(f"cannot serve at {address}: {_why_not(error)}") from error


def _why_not(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if isinstance(error, socket.gaierror):
        return "this machine has no such address (ip addr shows those it has)"
    if number == errno.EACCES:
        return "ports below 1024 are for root: take a larger one"
    if number == errno.EADDRINUSE:
        return "the port is taken by another program (ss -tlpn shows which)"
    if number == errno.EADDRNOTAVAIL:
        return "this machine has no such address (ip addr shows those it has)"
    return why(error)
