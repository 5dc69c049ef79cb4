"""A stand-in for hidapi's module `hidraw`, for what no test can have here: devices that come and go.

It behaves as the real one is documented to, and is stricter: to close a device under a reader, or to list and open in
two threads at once, fails the test, since the real one may crash.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from types import ModuleType
from typing import Any

import pytest


class Plugged:
    """A device on the bus."""

    def __init__(self, descriptor: bytes, path: str = "/dev/hidraw0", **more: Any) -> None:
        self.descriptor = descriptor
        self.gone = False
        self.reports: deque[bytes] = deque()
        self.written: list[bytes] = []
        self.state: dict[int, bytes] = {}  # what it answers when asked
        self.refuses = False
        self.news = threading.Condition()
        self.entry: dict[str, Any] = {
            "path": path.encode(), "vendor_id": 0x046D, "product_id": 0xC215, "serial_number": "",
            "product_string": "Extreme 3D", "manufacturer_string": "Logitech", "usage_page": 1, "usage": 4,
            "interface_number": 0, "release_number": 0, "bus_type": 1, **more,
        }  # fmt: skip

    def say(self, *reports: bytes) -> None:
        with self.news:
            self.reports.extend(reports)
            self.news.notify_all()


class Bus(ModuleType):
    """The module."""

    def __init__(self) -> None:
        super().__init__("hidraw")
        self.plugged: list[Plugged] = []
        self.opened = 0
        self.closed_under_use = 0
        self.overlaps = 0
        self._alone = threading.Lock()
        bus = self

        class Device:
            def __init__(self) -> None:
                self._to: Plugged | None = None
                self._using = 0
                self._blocking = True

            def open_path(self, path: bytes) -> None:
                bus.alone()
                for p in bus.plugged:
                    if p.entry["path"] == path:
                        self._to = p
                        bus.opened += 1
                        return
                raise OSError("open failed")

            def set_nonblocking(self, value: bool) -> int:
                self._blocking = not value
                return 0

            def get_report_descriptor(self) -> list[int]:
                return list(self._there().descriptor)

            def _there(self) -> Plugged:
                if self._to is None:
                    raise ValueError("not open")
                return self._to

            def read(self, most: int, timeout_ms: int = 0) -> list[int]:
                device = self._there()
                self._using += 1
                try:
                    with device.news:
                        if not device.reports and not device.gone:
                            assert timeout_ms or not self._blocking, "would wait for ever"
                            device.news.wait_for(lambda: device.reports or device.gone, timeout_ms * 1e-3)
                        if device.gone:
                            raise OSError("read error")
                        return list(device.reports.popleft()[:most]) if device.reports else []
                finally:
                    self._using -= 1

            def get_input_report(self, number: int, most: int) -> list[int]:
                if number not in self._there().state:
                    raise OSError("read error")
                return list(self._there().state[number][:most])

            def write(self, report: bytes) -> int:
                device = self._there()
                if device.gone or device.refuses:
                    return -1
                device.written.append(bytes(report))
                return len(report)

            def close(self) -> None:
                bus.alone()
                bus.closed_under_use += self._using
                bus.opened -= self._to is not None
                self._to = None

        self.device = Device

    def alone(self) -> None:
        """Take a moment, and note whether somebody else is here in it."""
        if not self._alone.acquire(blocking=False):
            self.overlaps += 1
            return
        time.sleep(0.0005)
        self._alone.release()

    def enumerate(self, vendor_id: int = 0, product_id: int = 0) -> list[dict[str, Any]]:
        self.alone()
        return [dict(p.entry) for p in self.plugged]

    def plug(self, descriptor: bytes, path: str = "/dev/hidraw0", **more: Any) -> Plugged:
        self.plugged.append(Plugged(descriptor, path, **more))
        return self.plugged[-1]

    def unplug(self, device: Plugged) -> None:
        self.plugged.remove(device)
        with device.news:
            device.gone = True
            device.news.notify_all()


def install(monkeypatch: pytest.MonkeyPatch) -> Bus:
    """Put it in the place of the real module."""
    bus = Bus()
    monkeypatch.setitem(sys.modules, "hidraw", bus)
    return bus
