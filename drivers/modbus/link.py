"""Connection to one Modbus device: one request, one checked response. All use of pymodbus's client is here.

The socket or port is opened here and handed to pymodbus, because its own `connect` keeps the reason of a failure to
itself and would connect again behind the runner's back.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import serial
from pymodbus.client import ModbusSerialClient, ModbusTcpClient
from pymodbus.exceptions import ConnectionException, ModbusException

from drivers.base import DriverError
from drivers.modbus.answers import be_strict
from drivers.modbus.options import PARITIES, Refused, Rtu, Tcp
from drivers.modbus.registers import BIT_TABLES, span

logging.getLogger("pymodbus").setLevel(logging.CRITICAL)  # what goes wrong is told once, in a driver's own words

READS = {
    "coil": ("read_coils", 1),
    "discrete": ("read_discrete_inputs", 2),
    "holding": ("read_holding_registers", 3),
    "input": ("read_input_registers", 4),
}
"""pymodbus's method and the function of the protocol."""
WRITES = {
    ("coil", True): ("write_coil", 5),
    ("holding", True): ("write_register", 6),
    ("coil", False): ("write_coils", 15),
    ("holding", False): ("write_registers", 16),
}
MEANING = {
    1: "illegal function: the device does not know this kind of request",
    2: "illegal address: the device has no such place, or not all of them",
    3: "illegal value: the device does not take this number",
    4: "device failure: the device could not do it",
    5: "accepted, but not done yet",
    6: "busy: the device is at work on something long",
    8: "memory error in the device",
    10: "the gateway has no way to the device: is unit_id right?",
    11: "the device behind the gateway does not answer: is unit_id right?",
}
PATIENCE = 3
"""Unanswered requests in a row after which a device on a serial line counts as lost: noise may hit a frame."""
LATE = 3  # timeouts that a line which does not fall silent is listened to


class Missing(Exception):
    """No answer to one request on a serial line."""


class Link:
    """Requests to one unit. Two threads may use it; one request is under way at a time."""

    def __init__(self, line: Tcp | Rtu, unit_id: int, timeout: float, *, share: bool = False) -> None:
        """Open the line; `share` lets a second process have a serial port that the first one holds."""
        self._line, self._unit, self._timeout = line, unit_id, timeout
        self._one_at_a_time = threading.Lock()
        self._closed = False
        self._silent = 0
        self._quiet_until = 0.0
        self._client: Any
        if isinstance(line, Tcp):
            self._client = _TcpClient(line.host, port=line.port, timeout=timeout, retries=0)
            self._client.socket = _connect(line, timeout)
        else:
            self._client = _RtuClient(line.path, baudrate=line.baud, timeout=timeout, retries=0)
            self._client.socket = open_port(line, timeout, share=share)
        be_strict(self._client.framer.decoder)

    def close(self) -> None:
        """Let go; a request under way in another thread fails at once (TCP) or after its timeout (serial)."""
        self._closed = True
        end = self._client.socket
        if isinstance(end, socket.socket):
            with contextlib.suppress(OSError):  # the far end may have been faster
                end.shutdown(socket.SHUT_RDWR)
        with self._one_at_a_time:
            self._client.close()

    def read(self, table: str, first: int, count: int) -> Sequence[int]:
        """So many bits or words, and up to seven bits more: they come in whole bytes."""
        name, function = READS[table]
        ask = getattr(self._client, name)
        size = (count + 7) // 8 * 8 if table in BIT_TABLES else count
        answer = self._exchange(
            f"reading {span(table, first, count)}",
            lambda: ask(first, count=count, device_id=self._unit),
            lambda a: a.function_code == function and len(_cells(table, a)) == size,
        )
        return _cells(table, answer)

    def write(self, table: str, first: int, cells: list[int], *, single: bool) -> None:
        """With function 5 or 6 if `single`, else with 15 or 16."""
        name, function = WRITES[table, single]
        sent = [bool(c) for c in cells] if table in BIT_TABLES else cells
        ask = getattr(self._client, name)
        self._exchange(
            f"writing {span(table, first, len(cells))}",
            lambda: ask(first, sent[0] if single else sent, device_id=self._unit),
            lambda a: a.function_code == function and a.address == first,
        )

    def _exchange(self, what: str, ask: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
        with self._one_at_a_time:
            if self._closed:
                raise DriverError(f"{what}: the line to {self._line} is closed")
            self._keep_quiet()
            try:
                answer = ask()
            except ConnectionException as error:
                raise DriverError(f"{what}: {self._line} closed the connection") from error
            except (ModbusException, OSError, ValueError, AttributeError) as error:
                raise self._no_answer(what) from error
            finally:
                self._quiet_until = time.monotonic() + (self._line.quiet if isinstance(self._line, Rtu) else 0.0)
            if not answer.isError() and not fits(answer):
                raise self._no_answer(what)
            self._silent = 0
        if answer.isError():
            code = answer.exception_code
            said = MEANING.get(code, "a code that the standard does not have")
            raise Refused(f"{what} of unit {self._unit} at {self._line}: {said} (exception {code})")
        return answer

    def _keep_quiet(self) -> None:
        """On a serial line the silence between two frames is what separates them."""
        if (left := self._quiet_until - time.monotonic()) > 0:
            time.sleep(left)

    def _no_answer(self, what: str) -> Exception:
        """After a timeout or garbage: what to raise, with the line left in a state in which no old answer can come."""
        self._silent += 1
        told = f"{what}: no usable answer from unit {self._unit} at {self._line} within {self._timeout * 1e3:g} ms"
        if self._closed or isinstance(self._line, Tcp):
            return DriverError(told)  # a new connection cannot carry a late answer
        try:
            # RTU frames carry no number: a late answer could be taken for the next one, so listen until it is quiet.
            until = time.monotonic() + LATE * self._timeout
            while self._client.recv(None) and time.monotonic() < until:
                pass
        except ConnectionException:
            return DriverError(f"{what}: {self._line} is gone")
        if self._silent < PATIENCE:
            return Missing(told)
        self._silent = 0
        return DriverError(f"{told}, {PATIENCE} times in a row: check unit_id, baud, parity and the two wires")


def _cells(table: str, answer: Any) -> Sequence[int]:
    cells: Sequence[int] = answer.bits if table in BIT_TABLES else answer.registers
    return cells


class _TcpClient(ModbusTcpClient):
    """Never connects by itself."""

    def connect(self) -> bool:
        return self.socket is not None


class _RtuClient(ModbusSerialClient):
    """Never connects by itself, and waits in the kernel where pymodbus looks every millisecond."""

    def connect(self) -> bool:
        return self.socket is not None

    def recv(self, size: int | None) -> bytes:
        port = self.socket
        if port is None:
            raise ConnectionException("closed")
        try:
            if not select.select([port.fileno()], [], [], self.comm_params.timeout_connect)[0]:
                return b""
            return bytes(port.read(port.in_waiting or 1))
        except (OSError, TypeError, ValueError) as error:  # unplugged, or closed by the other thread
            raise ConnectionException(str(error)) from error


def _connect(line: Tcp, timeout: float) -> socket.socket:
    try:
        made = socket.create_connection((line.host, line.port), timeout)
    except OSError as error:
        raise DriverError(f"cannot connect to {line}: {_why_not(error, line)}") from error
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _why_not(error: OSError, line: Tcp) -> str:
    if isinstance(error, socket.gaierror):
        return f"no such host (getent hosts {line.host} must know it)"
    if isinstance(error, TimeoutError):
        return f"nobody answers there (ping {line.host}): is the device on, on this network, with this address?"
    if error.errno == errno.ECONNREFUSED:
        return f"the host is there, but no Modbus server listens on port {line.port}: is it switched on?"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"no way to that host (ip route get {line.host}): is the cable in and the address right?"
    return error.strerror or str(error)


def open_port(line: Rtu, timeout: float, *, share: bool = False) -> serial.Serial:
    """The serial port, or a DriverError that says what to do."""
    try:
        return serial.Serial(
            line.path,
            baudrate=line.baud,
            parity=PARITIES[line.parity],
            stopbits=line.stop_bits,
            timeout=timeout,
            write_timeout=timeout,
            exclusive=None if share else True,
        )
    except (OSError, ValueError) as error:
        raise DriverError(f"cannot open {line}: {_why_no_port(error, line.path)}") from error


def _why_no_port(error: Exception, path: str) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT or not os.path.exists(path):
        return "there is no such port: is the adapter plugged in? (hilnode devices lists the ports)"
    if number == errno.EACCES:
        return "no permission: sudo usermod -aG dialout $USER, then log in again"
    if number in (errno.EAGAIN, errno.EBUSY) or "exclusively lock" in str(error):
        return f"another program has it (fuser {path} shows which)"
    if number in (errno.ENOTTY, errno.EINVAL, errno.EIO) or "not configure" in str(error):
        return "it is no serial port, or one that cannot do this baud rate"
    return str(error)
