"""Serial ports by the USB identity of their adapters: names such as /dev/ttyUSB0 depend on the order of plug-in."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from drivers.base import DriverError
from drivers.options import Options


def wanted_from(options: Options) -> dict[str, Any]:
    """What to look for, from `vid:pid`, `vid:pid:serial number` or a serial number."""
    text = options.text("usb", "").strip()
    vid, _, rest = text.partition(":")
    pid, _, serial = rest.partition(":")
    if ":" not in text and text:
        return {"serial_number": text}
    try:
        wanted = {"vid": int(vid, 16), "pid": int(pid, 16)}
    except ValueError as error:
        allowed = 'must be "vid:pid" or "vid:pid:serial number" in hex digits, such as "0403:6001", or a serial number'
        raise options.wrong("usb", allowed) from error
    return wanted | ({"serial_number": serial} if serial else {})


def find_port(wanted: Mapping[str, Any]) -> str:
    """The port of the one adapter that fits."""
    ports = [p for p in library("serial.tools.list_ports").comports() if p.vid is not None]
    fitting = [p for p in ports if all(getattr(p, key) == value for key, value in wanted.items())]
    if len(fitting) == 1:
        return str(fitting[0].device)
    shown = ", ".join(f"{p.vid:04x}:{p.pid:04x}:{p.serial_number or ''} ({p.device})" for p in fitting or ports)
    look = ":".join(f"{v:04x}" if isinstance(v, int) else v for v in wanted.values())
    if fitting:
        raise DriverError(f"usb = {look} fits several ports: {shown}. Give the serial number too, or the port")
    raise DriverError(f"no USB serial port fits usb = {look}: is it plugged in? There are: {shown or 'none'}")


def library(name: str) -> Any:
    """A module of pyserial, or a DriverError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DriverError(f'the library pyserial is missing ({error}): pip install "hilnode[serial]"') from error
