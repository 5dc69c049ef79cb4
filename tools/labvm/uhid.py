"""A HID device made by a program, through /dev/uhid: the kernel gives it a /dev/hidraw as if it had been plugged in.

    with UhidDevice("Dual Action", 0x046D, 0xC216, DESCRIPTOR) as stick:
        stick.send(bytes(8))        # an input report, as the device would send it
        stick.outputs               # what programs have written to it
    # unplugged

Ref: linux/uhid.h, Documentation/hid/uhid.rst.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from types import TracebackType

from labvm.nodes import BUS_USB, await_node

PATH = "/dev/uhid"
_CREATE2 = struct.Struct("<I128s64s64sHHIIII4096s")
_INPUT2 = struct.Struct("<IH4096s")
_OUTPUT = struct.Struct("<4096sHB")
_GET_REPORT = struct.Struct("<IBB")
_GET_REPORT_REPLY = struct.Struct("<IIHH4096s")
_SET_REPORT = struct.Struct("<IBBH4096s")
_SET_REPORT_REPLY = struct.Struct("<IIH")


class Event(IntEnum):
    """Types of `struct uhid_event`."""

    DESTROY = 1
    START = 2
    STOP = 3
    OPEN = 4
    CLOSE = 5
    OUTPUT = 6
    GET_REPORT = 9
    GET_REPORT_REPLY = 10
    CREATE2 = 11
    INPUT2 = 12
    SET_REPORT = 13
    SET_REPORT_REPLY = 14


class UhidDevice:
    """One device; plugged in when it is made, unplugged by `close`. A thread answers the kernel."""

    def __init__(self, name: str, vendor: int, product: int, descriptor: bytes, serial: str = "") -> None:
        self.outputs: list[bytes] = []  # output reports, each with its report id first (0 if there are none)
        self.features: dict[int, bytes] = {}  # what feature reports answer, by report id
        self.opened = 0  # how many programs have it open
        self._started = threading.Event()
        self._ending = threading.Event()
        self._file = os.open(PATH, os.O_RDWR | os.O_CLOEXEC)
        self._write(
            _CREATE2.pack(
                *(Event.CREATE2, name.encode(), b"", serial.encode(), len(descriptor), BUS_USB),
                *(vendor, product, 0x0100, 0, descriptor),
            )
        )
        self._thread = threading.Thread(target=self._answer, name="uhid")
        self._thread.start()
        if not self._started.wait(10.0):
            self.close()
            raise TimeoutError(f"the kernel did not take the HID device {name!r}")
        self.node = await_node(vendor, product, serial, there=True)

    def send(self, report: bytes) -> None:
        """An input report, with its id first if the descriptor has ids."""
        self._write(_INPUT2.pack(Event.INPUT2, len(report), report)[: 6 + len(report)])

    def await_output(self, wanted: Callable[[bytes], bool], seconds: float = 30.0) -> bytes:
        """The newest output report, once it is as `wanted`."""
        until = time.monotonic() + seconds
        while not (self.outputs and wanted(self.outputs[-1])):
            if time.monotonic() > until:
                raise TimeoutError(f"no such output report in {seconds:g} s; the last ones are {self.outputs[-3:]}")
            time.sleep(0.005)
        return self.outputs[-1]

    def close(self) -> None:
        """Unplug it; also twice."""
        if self._ending.is_set():
            return
        self._ending.set()
        self._thread.join()
        self._write(struct.pack("<I", Event.DESTROY))
        os.close(self._file)

    def _write(self, event: bytes) -> None:
        os.write(self._file, event)

    def _answer(self) -> None:
        """Until the end: note what the kernel says and answer what it asks."""
        waiting = select.poll()
        waiting.register(self._file, select.POLLIN)
        while not self._ending.is_set():
            if waiting.poll(50):
                event = os.read(self._file, 8192)
                self._take(struct.unpack_from("<I", event)[0], event[4:])

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == Event.START:
            self._started.set()
        elif kind in (Event.OPEN, Event.CLOSE):
            self.opened += 1 if kind == Event.OPEN else -1
        elif kind == Event.OUTPUT:
            data, size, _ = _OUTPUT.unpack_from(payload)
            self.outputs.append(data[:size])
        elif kind == Event.GET_REPORT:
            number, report, _ = _GET_REPORT.unpack_from(payload)
            data = self.features.get(report)
            error = 0 if data is not None else errno.EIO
            self._write(_GET_REPORT_REPLY.pack(Event.GET_REPORT_REPLY, number, error, len(data or b""), data or b""))
        elif kind == Event.SET_REPORT:
            number, report, _, size, data = _SET_REPORT.unpack_from(payload)
            self.features[report] = data[:size]
            self._write(_SET_REPORT_REPLY.pack(Event.SET_REPORT_REPLY, number, 0))

    def __enter__(self) -> UhidDevice:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
