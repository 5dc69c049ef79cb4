"""serial: frames over a serial port or USB adapter, streamed by the device or polled, and sent to it.

What a frame looks like is the business of `drivers/serial/frames.py`; this file owns the port. pyserial opens it and
sets it up; bytes then go by plain system calls on its descriptor, which never block: a thread waits in poll() and
nowhere else.

The node locks the port against other programs. The watchdog opens it beside the node, without the lock, at the moment
it needs it: a port held open for nothing would keep its number from a device that is plugged in again. The port is left
with HUPCL off, so that DTR does not fall between the node's death and the watchdog's writing, which resets many boards.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import select
import stat
import struct
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.options import Options
from drivers.serial.frames import Counts, Decoder, Frame
from drivers.usb_ports import find_port, library, wanted_from

KEYS = ("port", "usb", "baud", "bits", "flow", "dtr", "rts", "receive", "send", "poll", "silent_ms")
FLOWS = {"none": {}, "rts/cts": {"rtscts": True}, "xon/xoff": {"xonxoff": True}}
FRAMINGS = {f"{n}{p}{s}": (n, p, s) for n in (5, 6, 7, 8) for p in "NEO" for s in (1, 2)}

WAIT_MS = 50  # a read waits this long for bytes
PATIENCE = 0.1  # [s] a write waits this long for the port to take its bytes
STRANGE = 1024  # [bytes] without one good frame: something is set wrong
BAD_CHECKSUM = "a frame with a wrong checksum: noise on the line, or another checksum or baud than the device's"


class SerialPort(Driver):
    """Options: `port` or `usb`, `baud`, `bits`, `flow`, `dtr`, `rts`, and the tables `receive`, `send`, `poll`."""

    kind = "serial"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        o = Options(name, options, KEYS)
        if o.has("port") == o.has("usb"):
            raise OptionError(f'drivers.{name}: give either port = "/dev/ttyUSB0" or usb = "0403:6001"')
        self._path, self._usb = o.text("port", ""), wanted_from(o) if o.has("usb") else None
        self.baud = o.whole("baud", 115_200, 50, 20_000_000)
        bits, parity, stops = o.choice("bits", "8N1", FRAMINGS)
        self._settings = {"baudrate": self.baud, "bytesize": bits, "parity": parity, "stopbits": stops, "timeout": 0}
        self._settings |= o.choice("flow", "none", FLOWS)
        self._lines = {"dtr": o.flag("dtr", True), "rts": o.flag("rts", True)}
        if not (o.has("receive") or o.has("send")):
            raise OptionError(f"drivers.{name}: give [drivers.{name}.receive], [drivers.{name}.send] or both")
        self._poll = _Polling(name, options["poll"]) if o.has("poll") else None
        if self._poll and not o.has("receive"):
            raise OptionError(f"drivers.{name}.poll: there is no [drivers.{name}.receive] to tell what the answer is")
        self.silent_ns = round(o.number("silent_ms", 0.0 if self._poll else 1000.0, 0.0, 3_600_000.0) * 1e6)
        self._decoder: Decoder | None = None
        if o.has("receive"):
            aligned = self._poll is not None
            self._decoder = Decoder(Frame(f"{name}.receive", options["receive"], aligned=aligned), aligned=aligned)
            self.inputs = self._decoder.frame.channels
        self._sending = _Sending(f"{name}.send", options["send"]) if o.has("send") else None
        if self._sending:
            self.outputs = self._sending.frame.channels
        self._port: _Port | None = None
        self._lock = threading.Lock()  # held while the descriptor is used or closed, never while waiting
        self._turn = threading.Lock()  # held from a request to its answer
        self._heard: _Port | None = None  # the port of the last read
        self._strange = 0  # bytes since the last good frame

    @property
    def counts(self) -> Counts:
        """What became of the bytes received."""
        return self._decoder.counts if self._decoder else Counts()

    # -- the port -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self._open(exclusive=True)

    def _open(self, *, exclusive: bool) -> None:
        if self._port is None:
            path = self._path or find_port(self._usb or {})
            port = _Port(path, self._settings, self._lines, exclusive)
            with self._lock:
                self._port = port

    def close(self) -> None:
        with self._lock:
            port, self._port = self._port, None
            if port is not None:
                port.close()

    def _opened(self) -> _Port:
        port = self._port
        if port is None:
            raise DriverError("not open")
        return port

    def _take(self, port: _Port, wait_ms: float) -> bytes:
        """Whatever has come, after waiting for it; nothing if nothing has."""
        if not port.readable.poll(wait_ms):
            return b""
        with self._lock:
            return port.read() if port is self._port else b""

    def _put(self, port: _Port, data: bytes) -> None:
        """Hand all bytes to the port, behind those of earlier times, which must have left: old values help nobody."""
        until = time.monotonic() + PATIENCE
        while port.queued() and time.monotonic() < until:
            time.sleep(0.0005)
        while True:
            with self._lock:
                if port is not self._port:
                    raise DriverError("not open")
                data = data[port.write(data) :]
            if not data:
                return
            left = until - time.monotonic()
            if left <= 0 or not port.writable.poll(left * 1e3):
                raise ValueError(
                    f"{port.path} does not take its bytes: too much for baud = {self.baud}, or flow control holds it"
                )

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        port, decoder = self._opened(), self._decoder
        if decoder is None:
            raise DriverError("nothing to read: there is no table receive")
        if port is not self._heard:
            decoder.reset()
            self._heard, self._strange = port, 0
            self._end_exchange()
        if self._poll is None:
            return self._listen(port, WAIT_MS, decoder, values, stamps)
        return self._exchange(port, self._poll, decoder, values, stamps)

    def _listen(
        self, port: _Port, wait_ms: float, decoder: Decoder, values: NDArray[np.float64], stamps: NDArray[np.int64]
    ) -> int:
        data = self._take(port, wait_ms)
        now = time.monotonic_ns()
        if not data:
            return 0
        before, others = decoder.counts.bad_checksum, decoder.counts.other
        frames = decoder.feed(data, values)
        refused = decoder.counts.bad_checksum - before
        if frames:
            stamps[:] = now
            self._strange = 0
            self.refused += refused
            self.trouble = BAD_CHECKSUM if refused else ""
            return frames
        vouched = decoder.frame.check is not None and decoder.counts.other > others
        self._strange = 0 if vouched else self._strange + len(data)
        if refused:
            self.refused += refused - 1  # the last one is told by raising
            raise ValueError(BAD_CHECKSUM)
        if self._strange >= STRANGE:
            self._strange = 0
            raise ValueError(
                f"{STRANGE} bytes and no frame in them: is baud = {self.baud} that of the device, and "
                f"[drivers.{self.name}.receive] what it sends?"
            )
        return 0

    def _exchange(
        self, port: _Port, poll: _Polling, decoder: Decoder, values: NDArray[np.float64], stamps: NDArray[np.int64]
    ) -> int:
        """Ask when it is time, then wait for the answer; a slow device is waited for in several calls."""
        now = time.monotonic()
        if not poll.asked:
            if now < poll.due:
                time.sleep(min(poll.due - now, WAIT_MS * 1e-3))
                return 0
            self._turn.acquire()
            poll.asked = True
            poll.due = poll.due + poll.period if now < poll.due + poll.period else now + poll.period
            poll.answer_by = now + poll.timeout
            while data := self._take(port, 0):
                decoder.counts.garbage += len(data)
            decoder.reset()
            try:
                self._put(port, poll.request)
            except BaseException:
                self._end_exchange()
                raise
        left = max(0.0, min(poll.answer_by - time.monotonic(), WAIT_MS * 1e-3))
        try:
            if frames := self._listen(port, left * 1e3, decoder, values, stamps):
                self._end_exchange()
                return frames
        except BaseException:
            self._end_exchange()
            raise
        if time.monotonic() < poll.answer_by:
            return 0
        self._end_exchange()
        raise ValueError(f"no answer within {poll.timeout * 1e3:g} ms to the request {poll.request!r}")

    def _end_exchange(self) -> None:
        if self._poll and self._poll.asked:
            self._poll.asked = False
            self._turn.release()

    def raw(self) -> Mapping[str, str]:
        decoder = self._decoder
        if decoder is None:
            return {}
        text = decoder.frame.text
        return {"frame": decoder.last.decode("ascii", "backslashreplace") if text else decoder.last.hex(" ")}

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, values: NDArray[np.float64]) -> None:
        port, sending = self._opened(), self._sending
        if sending is None:
            raise DriverError("nothing to write: there is no table send")
        frame = sending.frame.pack(values)
        if not sending.is_news(port, frame):
            return
        mine = self._turn.acquire(timeout=PATIENCE)  # not into an answer; but a device without one must not stop us
        try:
            self._put(port, frame)
        finally:
            if mine:
                self._turn.release()
        sending.told(port, frame)

    def prepare_safe(self) -> None:
        library("serial")
        library("serial.tools.list_ports")

    def write_safe(self, values: NDArray[np.float64]) -> None:
        if self._sending is None:
            return
        self._open(exclusive=False)
        try:
            self._put(self._opened(), self._sending.frame.pack(values))
        except DriverError:
            self.close()  # plugged in again, it is another port
            raise


class _Polling:
    """How the device is asked, and how far the asking is."""

    def __init__(self, name: str, given: Any) -> None:
        o = Options(f"{name}.poll", given, ("request", "period_ms", "timeout_ms"))
        self.request = o.octets("request")
        if not self.request:
            raise o.wrong("request", 'must be what the device answers to, such as "?\\r" or [0x01, 0x03]')
        self.period = o.number("period_ms", 10.0, 0.1, 60_000) * 1e-3
        self.timeout = o.number("timeout_ms", 100.0, 0.1, 60_000) * 1e-3
        self.asked = False
        self.due = self.answer_by = 0.0


class _Sending:
    """What is sent, and when it is worth sending."""

    def __init__(self, name: str, given: Any) -> None:
        self.frame = Frame(name, given, sent=True, more=("on", "repeat_ms"))
        o = Options(name, given, tuple(given))
        self._on_change = o.choice("on", "period", {"period": False, "change": True})
        if o.has("repeat_ms") and not self._on_change:
            raise o.wrong("repeat_ms", 'goes with on = "change"; otherwise period_ms of the driver says how often')
        self._repeat = o.number("repeat_ms", 0.0, 1.0, 60_000) * 1e-3 if o.has("repeat_ms") else float("inf")
        self._last: tuple[_Port | None, bytes] = (None, b"")
        self._when = 0.0

    def is_news(self, port: _Port, frame: bytes) -> bool:
        return not self._on_change or self._last != (port, frame) or time.monotonic() - self._when >= self._repeat

    def told(self, port: _Port, frame: bytes) -> None:
        self._last, self._when = (port, frame), time.monotonic()


class _Port:
    """An open port: a descriptor that never blocks, and what waits for it."""

    def __init__(self, path: str, settings: Mapping[str, Any], lines: Mapping[str, bool], exclusive: bool) -> None:
        pyserial = library("serial")
        self.path = path
        self._serial = pyserial.Serial(**settings, exclusive=exclusive or None)
        self._serial.dtr, self._serial.rts = lines["dtr"], lines["rts"]
        self._serial.port = path
        try:
            self._serial.open()
            self.fd: int = self._serial.fileno()
            _keep_dtr(self.fd)
        except (pyserial.SerialException, OSError, termios.error, ValueError, OverflowError) as error:
            self._serial.close()
            raise DriverError(_why(path, settings["baudrate"], error)) from error
        with contextlib.suppress(OSError, ValueError):  # USB adapters collect bytes for 16 ms otherwise
            self._serial.set_low_latency_mode(True)
        self.readable, self.writable = select.poll(), select.poll()
        self.readable.register(self.fd, select.POLLIN)
        self.writable.register(self.fd, select.POLLOUT)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._serial.close()

    def read(self) -> bytes:
        try:
            data = os.read(self.fd, 4096)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._lost(error.strerror) from error
        if not data:
            raise self._lost("it hung up")
        return data

    def write(self, data: bytes) -> int:
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(error.strerror) from error

    def queued(self) -> int:
        """Bytes that were written and have not left; none where that cannot be asked."""
        try:
            return int(struct.unpack("i", fcntl.ioctl(self.fd, termios.TIOCOUTQ, bytes(4)))[0])
        except OSError:
            return 0

    def _lost(self, why: str | None) -> DriverError:
        return DriverError(f"lost {self.path} ({why}): unplugged, or switched off?")


def _keep_dtr(fd: int) -> None:
    settings = termios.tcgetattr(fd)
    settings[2] &= ~termios.HUPCL
    termios.tcsetattr(fd, termios.TCSANOW, settings)


def _why(path: str, baud: int, error: Exception) -> str:
    """What is wrong and what helps, in one line."""
    number = getattr(error, "errno", None) or (error.args[0] if error.args else None)
    if isinstance(error, (ValueError, OverflowError)) and "baud" in str(error).lower():
        return f"{path} cannot do baud = {baud}: take a rate that device and adapter both have, such as 115200"
    if number in (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EIO):
        return f"there is no port {path}: is it plugged in? `hilnode devices` lists what is there"
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission to open {path}: sudo usermod -aG {_group(path)} $USER, then log in again"
    if number in (errno.EAGAIN, errno.EBUSY):
        return f"{path} is in use by another program: `fuser -v {path}` shows which (ModemManager, a terminal?)"
    if not _is_tty(path):
        return f"{path} is no serial port: `hilnode devices` lists those there are"
    return f"cannot open {path}: {error}"


def _is_tty(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.isatty(fd)
    finally:
        os.close(fd)


def _group(path: str) -> str:
    """Serial ports belong to a group, dialout or uucp as the distribution likes."""
    with contextlib.suppress(OSError, KeyError):
        status = Path(path).stat()
        if status.st_gid != 0 and status.st_mode & stat.S_IWGRP:
            return grp.getgrgid(status.st_gid).gr_name
    return "dialout"
