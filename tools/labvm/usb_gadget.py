"""A USB HID device behind a USB port that exists in software only (dummy_hcd), made through configfs.

Unlike a uhid device it has a whole USB stack in between: descriptors, a serial number, endpoints, and a port to pull it
from. One at a time.

    with UsbHid("Dual Action", 0x046D, 0xC216, DESCRIPTOR, longest=8) as stick:
        stick.send(bytes(8))
        stick.unplug()
        stick.plug()

Ref: Documentation/usb/gadget_configfs.rst, gadget_hid.rst.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from types import TracebackType

from labvm.nodes import await_node

GADGETS = Path("/sys/kernel/config/usb_gadget")
ENGLISH = "0x409"


class UsbHid:
    """One device, plugged in when it is made."""

    def __init__(
        self, name: str, vendor: int, product: int, descriptor: bytes, *, longest: int, serial: str = ""
    ) -> None:
        self._top = GADGETS / f"lab{os.getpid()}"
        self._address = vendor, product, serial
        self._longest = longest
        self._file = -1
        self._make(name, vendor, product, descriptor, serial)
        self.plug()

    def _make(self, name: str, vendor: int, product: int, descriptor: bytes, serial: str) -> None:
        function, config = self._top / "functions/hid.usb0", self._top / "configs/c.1"
        words = self._top / "strings" / ENGLISH
        for folder in (self._top, words, config, function):
            folder.mkdir()
        numbers = {"idVendor": vendor, "idProduct": product, "bcdUSB": 0x0200, "bcdDevice": 0x0100}
        for key, value in numbers.items():
            (self._top / key).write_text(hex(value))
        for key, text in {"product": name, "manufacturer": "lab", "serialnumber": serial}.items():
            (words / key).write_text(text)
        (function / "report_length").write_text(str(self._longest))
        (function / "report_desc").write_bytes(descriptor)
        (config / function.name).symlink_to(function)

    def plug(self) -> None:
        """Put it into the port; back when the kernel has a device node for it."""
        (port,) = Path("/sys/class/udc").iterdir()
        (self._top / "UDC").write_text(port.name)
        self.node = await_node(*self._address, there=True)
        self._file = os.open("/dev/hidg0", os.O_RDWR | os.O_CLOEXEC)

    def unplug(self) -> None:
        """Pull it out; also when it is out."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            (self._top / "UDC").write_text("\n")
            await_node(*self._address, there=False)

    def send(self, report: bytes) -> None:
        """An input report; waits until the other side has fetched the one before."""
        os.write(self._file, report)

    def receive(self, seconds: float = 30.0) -> bytes:
        """The next output report."""
        if not select.select([self._file], [], [], seconds)[0]:
            raise TimeoutError(f"no output report in {seconds:g} s")
        return os.read(self._file, self._longest + 1)

    def close(self) -> None:
        """Unplug it and take the gadget apart, in the order that configfs asks for."""
        with contextlib.suppress(OSError):
            self.unplug()
        (self._top / "configs/c.1/hid.usb0").unlink()
        for folder in ("functions/hid.usb0", "configs/c.1", f"strings/{ENGLISH}", "."):
            (self._top / folder).resolve().rmdir()

    def __enter__(self) -> UsbHid:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
