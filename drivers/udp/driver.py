"""udp: numbers in datagrams, both ways, for embedded controllers, PLCs and other simulators.

What a datagram looks like is told in `drivers/udp/datagrams.py`. One that does not fit is counted as an error and
dropped.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError, channels_from
from drivers.options import Options
from drivers.udp.datagrams import layout_of, plain


class Udp(Driver):
    """Options: `listen` and `inputs`, `send` and `outputs`, `format` (default numbers).

    Of numbers: `type` (default float64; a channel's table may have its own), `order` (default little).
    """

    kind = "udp"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        known = ("listen", "send", "inputs", "outputs", "format", "type", "order", "silent_ms")
        self.silent_ns = round(Options(name, options, known).number("silent_ms", 1000.0, 0.0, 3_600_000.0) * 1e6)
        self._in, self._out = layout_of(name, "inputs", options), layout_of(name, "outputs", options)
        self.inputs = channels_from(name, "inputs", plain(options, "inputs"))
        self.outputs = channels_from(name, "outputs", plain(options, "outputs"))
        self._listen = _address(name, "listen", options.get("listen"), needed=bool(self.inputs))
        self._send = _address(name, "send", options.get("send"), needed=bool(self.outputs))
        self._last = b""
        self._receiver: socket.socket | None = None
        self._sender: socket.socket | None = None
        self._to: tuple[str, int] | None = None  # `send` in numbers: a name is looked up once, not at every datagram

    def open(self) -> None:
        if self._listen and self._receiver is None:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.settimeout(0.05)
            try:
                receiver.bind(self._listen)
            except (OSError, UnicodeError) as error:
                receiver.close()
                raise DriverError(f"cannot listen on {_text(self._listen)}: {_why(error, self._listen[0])}") from error
            self._receiver = receiver
        self.prepare_safe()

    def prepare_safe(self) -> None:
        if self._send and self._sender is None:
            self._to = _resolved(self._send)
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
            raise DriverError(f"receiving on {_text(self._listen)}: {_why(error, '')}") from error
        self._last = data
        self._in.unpack(data, values, stamps, time.monotonic_ns())
        return True

    def raw(self) -> Mapping[str, str]:
        return {"frame": self._last.hex(" ")}

    def write(self, values: NDArray[np.float64]) -> None:
        if self._sender is None or self._to is None:
            raise DriverError("not open")
        # Refused: nobody took an earlier datagram; the peer may come later. Blocking: the queue is full, drop this one.
        with contextlib.suppress(ConnectionRefusedError, BlockingIOError):
            self._sender.sendto(self._out.pack(values), self._to)

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


def _text(address: tuple[str, int] | None) -> str:
    return f"{address[0]}:{address[1]}" if address else "nothing"


def _resolved(address: tuple[str, int]) -> tuple[str, int]:
    """The same in numbers."""
    try:
        found = socket.getaddrinfo(*address, socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise DriverError(f"cannot send to {_text(address)}: {_why(error, address[0])}") from error
    host, port = found[0][4][:2]
    return str(host), int(port)


def _why(error: OSError | UnicodeError, host: str) -> str:
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return f"no such host (getent ahostsv4 {host} must know it): is the name right, or give its number"
    if error.errno == errno.EADDRINUSE:
        return "the port is taken by another program (ss -ulpn shows which)"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address (ip addr shows those it has)"
    return error.strerror or str(error)
