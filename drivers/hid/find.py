"""Finding and opening HID devices through hidapi.

hidapi comes with two modules: `hidraw`, which works through the kernel's own driver and leaves it in place, and `hid`,
which goes round it through libusb. The first is taken where it is.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivers.base import DriverError, OptionError
from drivers.hid.report import Descriptor, DescriptorError, parse
from drivers.options import Options

KEYS = ("vendor", "product", "serial", "path", "name", "interface")
PLAYED = {(1, 4), (1, 5), (1, 8)}
"""Usages of whole devices to prefer where several interfaces fit: joystick, gamepad, multi-axis; and page 2."""

_alone = threading.Lock()
"""hidapi may list, open and close in one thread at a time only; reading and writing are free of that."""


@dataclass(frozen=True)
class Address:
    """Which device, in words that outlive replugging where possible."""

    vendor: int = 0
    product: int = 0
    serial: str = ""
    path: str = ""
    name: str = ""
    interface: int = -1

    @classmethod
    def of(cls, o: Options) -> Address:
        """From a driver's options."""
        address = cls(
            o.whole("vendor", 0, 0, 0xFFFF),
            o.whole("product", 0, 0, 0xFFFF),
            o.text("serial", ""),
            o.text("path", ""),
            o.text("name", ""),
            o.whole("interface", -1, 0, 255) if o.has("interface") else -1,
        )
        if not (address.vendor or address.serial or address.path or address.name):
            raise OptionError(
                f'drivers.{o.name}: say which device: vendor = 0x046d and product = 0xc215, serial = "...", '
                'name = "Extreme 3D" or path = "/dev/hidraw0"; `hilnode devices` lists what is there'
            )
        return address

    def __str__(self) -> str:
        said = [f"{key} = 0x{n:04x}" for key, n in (("vendor", self.vendor), ("product", self.product)) if n]
        said += [f'{key} = "{getattr(self, key)}"' for key in ("serial", "path", "name") if getattr(self, key)]
        return ", ".join([*said, f"interface = {self.interface}"] if self.interface >= 0 else said)

    def fits(self, found: Mapping[str, Any]) -> bool:
        """Whether one of hidapi's entries is meant."""
        return (
            self.vendor in (0, found["vendor_id"])
            and self.product in (0, found["product_id"])
            and (not self.serial or self.serial == (found["serial_number"] or ""))
            and self.name.lower() in (found["product_string"] or "").lower()
            and self.interface in (-1, found.get("interface_number", -1))
        )


def library() -> Any:
    """hidapi's module; DriverError says how to get it."""
    trouble = "it is not installed"
    for name in ("hidraw", "hid"):
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            trouble = str(error)
            continue
        if hasattr(module, "device") and hasattr(module, "enumerate"):
            return module
        trouble = f"the module {name} here is of another package"
    raise DriverError(f'the library hidapi is missing ({trouble}): pip install "hilnode[hid]"')


def find(address: Address) -> tuple[str, Mapping[str, Any]]:
    """Path and hidapi's entry of the one device that fits."""
    with _alone:
        entries = library().enumerate()
    if address.path:
        real = os.path.realpath(address.path)
        return real, next((e for e in entries if _path(e) == real), {})
    fitting = {_path(e): e for e in entries if address.fits(e)}
    if len(fitting) > 1:
        played = {_path(e): e for e in entries if address.fits(e) and _is_played(e)}
        fitting = played or fitting
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    if fitting:
        raise DriverError(
            f"{address} fits several devices: {_shown(fitting.values())}. Give its serial number, interface or path"
        )
    raise DriverError(f"no HID device fits {address}: is it plugged in? There are: {_shown(entries)}")


def _path(entry: Mapping[str, Any]) -> str:
    return os.fsdecode(entry["path"])


def _is_played(entry: Mapping[str, Any]) -> bool:
    return (entry.get("usage_page"), entry.get("usage")) in PLAYED or entry.get("usage_page") == 2


def _shown(entries: Any) -> str:
    lines = dict.fromkeys(
        f"{e['vendor_id']:04x}:{e['product_id']:04x} {e['product_string'] or ''} ({_path(e)}"
        + (f", interface {e['interface_number']}" if e.get("interface_number", -1) > 0 else "")
        + (f', serial "{e["serial_number"]}")' if e["serial_number"] else ")")
        for e in entries
    )
    return ", ".join(list(lines)[:8]) or "none"


class Handle:
    """An open device. hidapi must not be closed under a thread that reads or writes: each holds its lock meanwhile."""

    def __init__(self, address: Address) -> None:
        self.path, self.entry = find(address)
        self.label = (self.entry.get("product_string") or "").strip() or self.path
        self._device = library().device()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._open = True
        try:
            with _alone:
                self._device.open_path(os.fsencode(self.path))
        except OSError as error:
            raise DriverError(self._why(error)) from error
        try:
            self._device.set_nonblocking(True)
            self.descriptor: Descriptor = parse(bytes(self._device.get_report_descriptor()))
        except (OSError, ValueError) as error:
            self.close()
            what = "its report descriptor is broken" if isinstance(error, DescriptorError) else "cannot be asked"
            raise DriverError(f"{self.path} ({self.label}): {what}: {error}") from error

    def read(self, length: int, wait_ms: int = 0) -> Sequence[int]:
        """The oldest report that waits, or the next one within a time; nothing if there is none."""
        with self._reading:
            if not self._open:
                raise DriverError("not open")
            try:
                got: Sequence[int] = self._device.read(length, wait_ms)
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
            return got

    def ask(self, report: int, length: int) -> Sequence[int]:
        """Request an input report as it is now; empty if the device does not answer such requests."""
        with self._reading, contextlib.suppress(OSError, ValueError):
            if self._open:
                got: Sequence[int] = self._device.get_input_report(report, length)
                return got
        return ()

    def write(self, report: bytes) -> None:
        with self._writing:
            if not self._open:
                raise DriverError("not open")
            try:
                sent = self._device.write(report)
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
        if sent < 0:
            if os.path.exists(self.path):
                raise ValueError(f"{self.label} refuses the report {report[:16].hex(' ')} of {len(report)} bytes")
            raise self._lost(OSError("it is gone"))

    def close(self) -> None:
        with self._reading, self._writing:
            if self._open:
                self._open = False
                with _alone, contextlib.suppress(OSError, ValueError):
                    self._device.close()

    def _lost(self, why: Exception) -> DriverError:
        return DriverError(f"lost {self.label} at {self.path} ({why}): unplugged, or switched off?")

    def _why(self, error: Exception) -> str:
        """What is wrong and what helps, in one line."""
        if not os.path.exists(self.path) and self.path.startswith("/"):
            return f"there is no {self.path}: is it plugged in? `hilnode devices` lists what is there"
        if self.path.startswith("/") and not os.access(self.path, os.R_OK | os.W_OK):
            ids = f'KERNELS=="*:{self.entry["vendor_id"]:04X}:{self.entry["product_id"]:04X}.*", ' if self.entry else ""
            return (
                f'no permission to open {self.path}: put KERNEL=="hidraw*", {ids}GROUP="input", MODE="660" into '
                "/etc/udev/rules.d/70-hilnode.rules and join the group input; `hilnode devices` prints the commands"
            )
        return f"cannot open {self.path} ({self.label}): {error}; is it a HID device, and free?"
