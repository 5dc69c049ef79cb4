"""can: messages of a CAN bus by their database (DBC), through python-can: SocketCAN, UDP or a vendor's adapter.

Every signal of the messages in `receive` is an input, every signal of those in `send` an output. The database is read
when the driver is made, so its channels are known without a bus.

**Who keeps the cycles.** Each message goes out in `write`, when its period has passed: on a fixed beat, late by one
`period_ms` of the driver at most and by what the thread is late. The kernel's broadcast manager would keep better time,
but it would also go on sending the last live values of a node that stands still, beside the watchdog's safe ones, and
nobody else can stop it. As it is, a frozen or dead node is silent at once; the watchdog sends safe values in the same
cycles, and what the bus carries always comes from a living process. When live values are no longer allowed, all
messages go out at once, for a slow cycle must not delay a safe value.

**Errors.** A frame that is too short, or a page that the database has not, is dropped and counted. A message silent for
longer than its timeout degrades the driver's health, and its channels keep their old stamps. Error frames degrade it
too; bus-off, and an interface that is down or gone, make the driver open the bus again.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import logging
import socket
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.can.options import INSTALL, Messages, Sent
from drivers.options import Options
from hilnode.core.signals import SignalError, check_unique

if TYPE_CHECKING:
    import can

KEYS = ("dbc", "interface", "channel", "fd", "bitrate", "bitrate_switch", "settings", "receive", "send", "channels")
SHARED = ("socketcan", "udp_multicast", "virtual")  # interfaces that two processes can have open
UNFILTERED = ("udp_multicast", "virtual")  # python-can would filter in Python, and error frames as well
WITHOUT_BITRATE = {
    "socketcan": "is set at the interface: sudo ip link set {channel} up type can bitrate {bitrate}",
    "udp_multicast": "has no meaning for interface = 'udp_multicast'",
    "virtual": "has no meaning for interface = 'virtual'",
}
MOST_FILTERS = 512  # that a SocketCAN socket takes
NOTHING = {"can_id": 0, "can_mask": 0x1FFFFFFF, "extended": True}  # an identifier that nobody uses

WAIT = 0.05  # [s] a read waits this long for a frame
BATCH = 64  # frames taken in one read
LOOK_NS = 5_000_000  # between two looks for silent messages
SAFE_PAUSE = 2.0  # [s] without a safe write: the next one is another incident, and all messages go out at once

ERROR_CLASSES = {
    0x001: "sending timed out",
    0x002: "arbitration lost",
    0x004: "the controller is near its error limits or overflows",
    0x008: "protocol errors",
    0x010: "transceiver trouble",
    0x020: "nobody acknowledges: is another device on the bus, at the same bitrate, and the bus terminated?",
    0x080: "bus errors: is the bitrate that of the others, and the bus terminated?",
}
BUS_OFF = 0x040
NO_INTERFACE = "there is no CAN interface {}: plugged in? `hilnode devices` lists what is there"
FULL = (errno.ENOBUFS, errno.EAGAIN, None)  # the queue of frames to be sent; python-can gives no number for its own


class Can(Driver):
    """Options: see docs/connect-an-ecu.md."""

    kind = "can"
    files = ("dbc",)

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        given = Options(name, options, KEYS)
        fd = given.flag("fd", False)
        self._interface = given.text("interface", "socketcan")
        self._channel = given.given.get("channel", "")
        if isinstance(self._channel, bool) or not isinstance(self._channel, (str, int)) or self._channel == "":
            raise given.wrong("channel", "must name the bus, such as 'can0' (hilnode devices lists what is there)")
        self._arguments = _arguments(given, fd, self._channel)
        messages = Messages(given, fd)
        self.inputs, self.outputs = tuple(messages.inputs), tuple(messages.outputs)
        try:
            check_unique(self.inputs, f"drivers.{name}.receive")
            check_unique(self.outputs, f"drivers.{name}.send")
        except SignalError as error:
            raise OptionError(f"{error}: give one another name in drivers.{name}.channels") from error
        self._received, self._sent = messages.received, messages.sent
        self._switch = given.flag("bitrate_switch", True)
        self._frames: list[can.Message] = []  # to be filled and sent again and again, one for each message in `send`
        self._bus: can.BusABC | None = None
        self._reading, self._writing = threading.Lock(), threading.Lock()  # each held while its thread uses the bus
        self._last: can.Message | None = None  # that was taken
        self._bad: ValueError | None = None  # a bad frame behind good ones, to be told in the next read
        self._look_at = 0
        self._was_live = False
        self._at_once = True
        self._made_safe = 0.0

    # -- the bus --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        if self._bus is not None:
            return
        library = _library()
        if self._interface not in library.VALID_INTERFACES:
            known = ", ".join(sorted(library.VALID_INTERFACES))
            raise DriverError(f"python-can has no interface {self._interface!r}: known are {known}")
        if self._interface == "socketcan":
            _look_for(str(self._channel))
        filters = None if self._interface in UNFILTERED else self._filters()
        try:
            bus = library.Bus(**self._arguments, can_filters=filters, ignore_config=True)
        except Exception as error:  # of the kernel, of python-can, of a vendor's library
            raise DriverError(_why(self._interface, self._channel, error)) from error
        self._frames = [_frame(library, sent, self._switch) for sent in self._sent]
        now = time.monotonic_ns()
        for message in self._received.values():
            message.heard = now
        self._bad, self.trouble, self._at_once = None, "", True
        self._bus = bus

    def close(self) -> None:
        with self._reading, self._writing:
            bus, self._bus = self._bus, None
            if bus is not None:
                with contextlib.suppress(Exception):  # it is being given up; a vendor's library may complain
                    bus.shutdown()

    def _filters(self) -> list[dict[str, Any]] | None:
        """Let through what is wanted; error frames come in any case."""
        wanted = [
            {"can_id": can_id, "can_mask": 0x1FFFFFFF if extended else 0x7FF, "extended": extended}
            for can_id, extended in self._received
        ]
        return None if len(wanted) > MOST_FILTERS else wanted or [NOTHING]

    def _opened(self) -> can.BusABC:
        if self._bus is None:
            raise DriverError("not open")
        return self._bus

    # -- receiving ------------------------------------------------------------------------------------------------

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        """Wait for a frame, then take those behind it as well."""
        if self._bad is not None:
            bad, self._bad = self._bad, None
            raise bad
        fresh = 0
        try:
            with self._reading:
                bus, wait = self._opened(), WAIT
                for _ in range(BATCH):
                    frame = self._receive(bus, wait)
                    if frame is None:
                        break
                    fresh += self._take(frame, values, stamps)
                    wait = 0.0
        except ValueError as error:
            if not fresh:
                raise
            self._bad = error
        self._look_for_silence(time.monotonic_ns())
        return fresh

    def _receive(self, bus: can.BusABC, wait: float) -> can.Message | None:
        try:
            return bus.recv(wait)
        except Exception as error:  # python-can's errors, and those of a vendor's library
            if type(error).__name__ == "CanOperationError" and getattr(error, "error_code", None) is None:
                raise ValueError(f"a frame that python-can cannot read: {error}") from error
            raise DriverError(_why(self._interface, self._channel, error)) from error

    def _take(self, frame: can.Message, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        now = time.monotonic_ns()
        if frame.is_error_frame:
            raise self._error(frame.arbitration_id)
        message = self._received.get((frame.arbitration_id, frame.is_extended_id))
        if message is None or frame.is_remote_frame:
            return False
        message.layout.decode(frame.data, now, values, stamps)
        message.heard = now
        self._last = frame
        return True

    def raw(self) -> Mapping[str, str]:
        """The newest frame as `candump` writes it, its message in front."""
        frame = self._last
        if frame is None:
            return {}
        message = self._received[frame.arbitration_id, frame.is_extended_id]
        number = f"{frame.arbitration_id:0{8 if frame.is_extended_id else 3}X}"
        return {"frame": f"{message.name} {number}#{frame.data.hex('.').upper()}"}

    def _error(self, classes: int) -> Exception:
        """What an error frame says; its identifier is a set of bits (linux/can/error.h)."""
        if classes & BUS_OFF:
            return DriverError(
                f"{self._channel} is bus-off, the controller has given up: check wiring and bitrate; "
                f"restart-ms 100 in `ip link set {self._channel} type can` lets it try again by itself"
            )
        words = "; ".join(text for bit, text in ERROR_CLASSES.items() if classes & bit)
        return ValueError(f"error frame on {self._channel}: {words or f'class 0x{classes:x}'}")

    def _look_for_silence(self, now: int) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK_NS
        silent = [m for m in self._received.values() if m.timeout_ns and now - m.heard > m.timeout_ns]
        more = f" and {len(silent) - 1} other messages" if len(silent) > 1 else ""
        self.trouble = f"no {silent[0].name} for {silent[0].timeout_ns * 1e-6:g} ms{more}" if silent else ""

    # -- sending --------------------------------------------------------------------------------------------------

    def write(self, values: NDArray[np.float64]) -> None:
        """Send what is due. One message that cannot be sent does not keep the others from it."""
        numbers = values.tolist()
        failed: ValueError | None = None
        with self._writing:
            bus, now = self._opened(), time.monotonic()
            at_once = self._at_once or (self._was_live and not self.live)
            self._at_once, self._was_live = False, self.live
            for frame, sent in zip(self._frames, self._sent, strict=True):
                if at_once or now >= sent.due:
                    try:
                        for _ in range(len(sent.frames) if at_once else 1):
                            self._send(bus, frame, sent, numbers)
                    except ValueError as error:
                        failed = failed or error
                    sent.plan_next(now)
            if not self._received:
                self._watch_errors(bus)
        if failed is not None:
            raise failed

    def _send(self, bus: can.BusABC, frame: can.Message, sent: Sent, numbers: list[float]) -> None:
        try:
            frame.data[:] = sent.frames[sent.turn].encode(numbers)
        except ValueError as error:
            raise ValueError(f"{sent.name}: {error}") from error
        sent.turn = (sent.turn + 1) % len(sent.frames)
        try:
            bus.send(frame)
        except Exception as error:  # as in _receive
            number = getattr(error, "error_code", None)
            if number in FULL:
                why = "does anybody on the bus acknowledge frames, at the same bitrate?"
                raise ValueError(f"{self._channel} takes no more frames: {why}") from error
            raise DriverError(_why(self._interface, self._channel, error)) from error

    def _watch_errors(self, bus: can.BusABC) -> None:
        """Nobody reads where nothing is received; but error frames come."""
        for _ in range(BATCH):
            frame = self._receive(bus, 0.0)
            if frame is None:
                return
            if frame.is_error_frame:
                raise self._error(frame.arbitration_id)

    # -- the watchdog ---------------------------------------------------------------------------------------------

    def prepare_safe(self) -> None:
        """Open the bus beside the node where that is possible; an adapter for one program must wait for its death."""
        _library()
        if self._interface in SHARED:
            self.open()

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """All messages at once, then each in its cycle, so as not to flood the bus; on a new one if the old is gone."""
        now = time.monotonic()
        self._at_once = self._at_once or now - self._made_safe > SAFE_PAUSE
        self._made_safe = now
        fresh = self._bus is None
        self.open()
        try:
            self.write(values)
        except DriverError:
            self.close()
            if fresh:
                raise
            self.open()
            self.write(values)


def _library() -> Any:
    try:
        library = importlib.import_module("can")
    except ImportError as error:
        raise DriverError(f"the library python-can is missing ({error}): {INSTALL}") from error
    logging.getLogger("can").setLevel(logging.CRITICAL)  # it would repeat at every try what the driver says once
    return library


def _look_for(interface: str) -> None:
    """Raise if the interface does not exist, before python-can tries it: it leaks a socket on each failed attempt."""
    try:
        socket.if_nametoindex(interface)
    except OSError as error:
        raise DriverError(NO_INTERFACE.format(interface)) from error


def _arguments(given: Options, fd: bool, channel: str | int) -> dict[str, Any]:
    """What python-can's Bus is called with."""
    interface = given.text("interface", "socketcan")
    settings = given.given.get("settings", {})
    if not isinstance(settings, Mapping):
        raise given.wrong("settings", "must be a table of further arguments of python-can's interface")
    if given.has("bitrate") and interface in WITHOUT_BITRATE:
        raise given.wrong("bitrate", WITHOUT_BITRATE[interface].format(channel=channel, bitrate=given.given["bitrate"]))
    arguments: dict[str, Any] = {"interface": interface, "channel": channel}
    if interface == "udp_multicast":
        arguments |= {"fd": fd, "hop_limit": 0}  # stays on this PC unless settings say otherwise
    elif fd:
        arguments["fd"] = True
    if given.has("bitrate"):
        arguments["bitrate"] = given.whole("bitrate", 500_000, 1000, 8_000_000)
    return arguments | dict(settings)


def _frame(library: Any, sent: Sent, switch: bool) -> can.Message:
    return library.Message(
        arbitration_id=sent.can_id,
        is_extended_id=sent.extended,
        is_fd=sent.fd,
        bitrate_switch=sent.fd and switch,
        data=bytes(sent.frames[0].size),
    )


def _why(interface: str, channel: str | int, error: Exception) -> str:
    """What is wrong and what helps, in one line."""
    number = getattr(error, "errno", None) or getattr(error, "error_code", None)
    if interface == "socketcan":
        if number == errno.EAFNOSUPPORT:
            return "this kernel has no CAN: sudo modprobe can_raw"
        if number in (errno.ENODEV, errno.ENXIO):
            return NO_INTERFACE.format(channel)
        if number == errno.ENETDOWN:
            return f"{channel} is down: sudo ip link set {channel} up type can bitrate 500000   # the rate of your bus"
    if isinstance(error, TypeError):
        return f"interface = {interface!r} does not take these settings: {error}"
    return f"CAN {interface} {channel}: {' '.join(str(error).split()) or type(error).__name__}"
