"""The thread in which pymodbus's server answers requests from a register map. All use of that server is here."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from pymodbus.constants import ExcCodes
from pymodbus.exceptions import NoSuchIdException
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.server.requesthandler import ServerRequestHandler
from pymodbus.simulator import DataType, SimData, SimDevice

from drivers.base import DriverError
from drivers.modbus.link import open_port
from drivers.modbus.options import PARITIES, Rtu, Tcp

PATIENCE = 5.0  # [s] for the thread to start or to end
TABLE = {1: "coil", 5: "coil", 15: "coil", 2: "discrete", 4: "input"} | dict.fromkeys((3, 6, 16, 22, 23), "holding")
"""The table that each function of the protocol works on."""


class Registers(Protocol):
    """What a server shows."""

    def read(self, table: str, address: int, count: int) -> list[int] | None: ...

    def write(self, table: str, address: int, given: Sequence[int]) -> bool: ...


class Service:
    """A server that runs from here until `close`."""

    def __init__(self, line: Tcp | Rtu, unit_id: int, registers: Registers) -> None:
        self._line = line
        self._store = _Store(unit_id, registers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"modbus server {line}", daemon=True)
        self._thread.start()
        try:
            self._started.result(PATIENCE)
        except Exception as error:
            self.close()
            raise DriverError(f"cannot serve on {line}: {_why_not(line, error)}") from error

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """End every connection, and wait for the thread."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop may have ended by itself just now
                loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = self._server()
        try:
            await server.serve_forever(background=True)
            self._started.set_result(None)
            await self._ending.wait()
        finally:
            await server.shutdown()
            await asyncio.sleep(0)  # lets the transports say good-bye

    def _on_port(self, there: bool) -> None:
        """End when the port is gone: pymodbus would sit there and wait for ever."""
        if not there:
            self._ending.set()

    def _server(self) -> Any:
        """pymodbus wants a device of its own; ours takes its place before the first request."""
        stand_in = SimDevice(id=0, simdata=SimData(0, datatype=DataType.REGISTERS))
        server: _TcpServer | ModbusSerialServer
        if isinstance(self._line, Tcp):
            server = _TcpServer(stand_in, address=(self._line.host, self._line.port))
        else:
            server = ModbusSerialServer(
                stand_in,
                port=self._line.path,
                baudrate=self._line.baud,
                parity=PARITIES[self._line.parity],
                stopbits=self._line.stop_bits,
                ignore_missing_devices=True,  # the line belongs to others as well
                trace_connect=self._on_port,
            )
        server.context = self._store  # type: ignore[assignment]
        return server


class _Handler(ServerRequestHandler):
    """Answers requests one after another, also when a client sends several at once.

    pymodbus keeps one request, and throws away what came behind it when it sends the answer.
    """

    def callback_data(self, data: bytes, addr: Any = None) -> int:
        used = super().callback_data(data, addr)
        if self.last_pdu and isinstance(self.transport, asyncio.ReadTransport):
            self.transport.pause_reading()
        return int(used)

    async def handle_request(self) -> None:
        behind = self.recv_buffer
        await super().handle_request()  # type: ignore[no-untyped-call]
        if isinstance(self.transport, asyncio.ReadTransport):
            self.transport.resume_reading()
            self.recv_buffer = b""
            if behind:
                self.datagram_received(behind, None)


class _TcpServer(ModbusTcpServer):
    def callback_new_connection(self) -> ServerRequestHandler:
        return _Handler(self, None, None, None)  # type: ignore[no-untyped-call]


class _Store:
    """pymodbus's requests, answered from our registers."""

    def __init__(self, unit_id: int, registers: Registers) -> None:
        self._unit, self._registers = unit_id, registers

    def device_ids(self) -> list[int]:
        return [self._unit]

    async def async_getValues(
        self, device_id: int, func_code: int, address: int, count: int = 1
    ) -> list[int] | list[bool] | ExcCodes:
        self._check(device_id)
        table = TABLE[func_code]
        cells = self._registers.read(table, address, count)
        if cells is None:
            return ExcCodes.ILLEGAL_ADDRESS
        return [bool(c) for c in cells] if table in ("coil", "discrete") else cells

    async def async_setValues(
        self, device_id: int, func_code: int, address: int, values: Sequence[int]
    ) -> ExcCodes | None:
        self._check(device_id)
        return None if self._registers.write(TABLE[func_code], address, values) else ExcCodes.ILLEGAL_ADDRESS

    def _check(self, device_id: int) -> None:
        if self._unit and device_id != self._unit:
            raise NoSuchIdException(f"unit {device_id}")


def _why_not(line: Tcp | Rtu, error: Exception) -> str:
    """pymodbus keeps the reason to itself: try what it tried, and listen to the kernel."""
    try:
        if isinstance(line, Rtu):
            open_port(line, 0.1).close()
        else:
            family, _, _, _, address = socket.getaddrinfo(line.host, line.port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except DriverError as reason:
        return str(reason).partition(": ")[2]
    except socket.gaierror:
        return "this machine has no such address (ip addr shows those it has)"
    except OSError as reason:
        return _words(line, reason)
    return str(error)


def _words(line: Tcp | Rtu, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is taken by another program (ss -tlpn shows which)"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address (ip addr shows those it has)"
    if error.errno == errno.EACCES and isinstance(line, Tcp):
        return f"ports below 1024 are for root: sudo sysctl net.ipv4.ip_unprivileged_port_start={line.port}"
    return error.strerror or str(error)
