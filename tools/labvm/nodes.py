"""Where the kernel puts HID devices: their `/dev/hidraw...`."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

BUS_USB = 0x03


def hidraw_nodes(vendor: int, product: int, serial: str = "") -> list[str]:
    """Device nodes of all devices of a kind, the oldest first."""
    said = f"HID_ID={BUS_USB:04X}:{vendor:08X}:{product:08X}\n", f"HID_UNIQ={serial}\n"
    found = []
    for place in Path("/sys/class/hidraw").glob("hidraw*"):
        with contextlib.suppress(OSError):  # it has just been unplugged: no such file, or no such device
            about = (place / "device" / "uevent").read_text()
            if all(words in about for words in said) and (node := Path("/dev", place.name)).exists():
                found.append((node.stat().st_ctime_ns, str(node)))
    return [node for _, node in sorted(found)]


def await_node(vendor: int, product: int, serial: str, there: bool, seconds: float = 30.0) -> str:
    """Wait until a device has a node, or has none any more; the newest one."""
    until = time.monotonic() + seconds
    while bool(nodes := hidraw_nodes(vendor, product, serial)) != there:
        if time.monotonic() > until:
            missing = "come" if there else "go"
            raise TimeoutError(f"the HID device {vendor:04x}:{product:04x} did not {missing} within {seconds:g} s")
        time.sleep(0.01)
    return nodes[-1] if nodes else ""
