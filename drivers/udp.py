"""udp: packed numbers in datagrams, both ways, for embedded controllers, PLCs and other simulators.

A datagram holds one number per channel, in the order of the config, with no header. One of another length is
counted as an error and dropped: a truncated frame never becomes a wrong value.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError, channels_from, refuse_unknown

TYPES = {"float64": "d", "float32": "f", "int16": "h", "int32": "i", "uint16": "H", "uint32": "I"}
ORDERS = {"little": "<", "big": ">"}


class Udp(Driver):
    """Options: `listen` and `inputs`, `send` and `outputs`, `type` (default float64), `order` (default little)."""

    kind = "udp"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        refuse_unknown(name, options, ("listen", "send", "inputs", "outputs", "type", "order"))
        self.inputs = channels_from(name, "inputs", options.get("inputs", []))
        self.outputs = channels_from(name, "outputs", options.get("outputs", []))
        self._listen = _address(name, "listen", options.get("listen"), needed=bool(self.inputs))
        self._send = _address(name, "send", options.get("send"), needed=bool(self.outputs))
        code = _choice(name, "type", options.get("type", "float64"), TYPES)
        order = _choice(name, "order", options.get("order", "little"), ORDERS)
        self._in = struct.Struct(f"{order}{len(self.inputs)}{code}")
        self._out = struct.Struct(f"{order}{len(self.outputs)}{code}")
        self._whole = code not in "df"
        kind = np.dtype(code)
        limits = np.iinfo(kind) if self._whole else np.finfo(kind)
        self._low, self._high = float(limits.min), float(limits.max)
        self._last = b""
        self._receiver: socket.socket | None = None
        self._sender: socket.socket | None = None

    def open(self) -> None:
        if self._listen and self._receiver is None:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.settimeout(0.05)
            try:
                receiver.bind(self._listen)
            except OSError as error:
                receiver.close()
                raise DriverError(f"cannot listen on {_text(self._listen)}: {_why(error)}") from error
            self._receiver = receiver
        self.prepare_safe()

    def prepare_safe(self) -> None:
        if self._send and self._sender is None:
            self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._sender.setblocking(False)

    def close(self) -> None:
        for end in (self._receiver, self._sender):
            if end is not None:
                end.close()
        self._receiver = self._sender = None

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        if self._receiver is None:
            raise DriverError("not open")
        try:
            data = self._receiver.recv(65536)
        except TimeoutError:
            return False
        except OSError as error:
            raise DriverError(f"receiving on {_text(self._listen)}: {_why(error)}") from error
        stamps[:] = time.monotonic_ns()
        self._last = data
        if len(data) != self._in.size:
            raise ValueError(f"datagram of {len(data)} bytes, expected {self._in.size}")
        values[:] = self._in.unpack(data)
        return True

    def raw(self) -> Mapping[str, str]:
        return {"frame": self._last.hex(" ")}

    def write(self, values: NDArray[np.float64]) -> None:
        if self._sender is None or self._send is None:
            raise DriverError("not open")
        numbers = np.clip(values, self._low, self._high).tolist()  # saturate: a device gets its limit, not nothing
        if self._whole:
            numbers = [round(x) for x in numbers]
        # Refused: nobody took an earlier datagram; the peer may come later. Blocking: the queue is full, drop this one.
        with contextlib.suppress(ConnectionRefusedError, BlockingIOError):
            self._sender.sendto(self._out.pack(*numbers), self._send)

    def write_safe(self, values: NDArray[np.float64]) -> None:
        self.prepare_safe()
        self.write(values)


def _address(name: str, key: str, given: Any, *, needed: bool) -> tuple[str, int] | None:
    if given is None and not needed:
        return None
    host, _, port = str(given).rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise OptionError(f"drivers.{name}.{key} = {given!r}: must be host:port, such as 127.0.0.1:5000")
    return host, int(port)


def _choice(name: str, key: str, given: Any, table: Mapping[str, str]) -> str:
    if not isinstance(given, str) or given not in table:
        raise OptionError(f"drivers.{name}.{key} = {given!r}: must be one of {', '.join(table)}")
    return table[given]


def _text(address: tuple[str, int] | None) -> str:
    return f"{address[0]}:{address[1]}" if address else "nothing"


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is taken by another program (ss -ulpn shows which)"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address (ip addr shows those it has)"
    return error.strerror or str(error)
