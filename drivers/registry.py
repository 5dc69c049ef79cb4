"""The table of driver kinds: a name in a config to a `Driver` class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivers.base import Driver
from drivers.twin import Twin
from hilnode.kinds import KindError, Kinds

KINDS = Kinds(
    "driver",
    "hilnode.drivers",
    {
        "daq": "drivers.daq:Daq",
        "hid": "drivers.hid_device:HidDevice",
        "loopback": "drivers.loopback:Loopback",
        "modbus": "drivers.modbus_client:Modbus",
        "modbus-server": "drivers.modbus_server:ModbusServer",
        "operator": "drivers.virtual_operator:Operator",
        "serial": "drivers.serial_port:SerialPort",
        "udp": "drivers.udp:Udp",
    },
)


def create(kind: str, name: str, options: Mapping[str, Any]) -> Driver:
    """The driver `name`, or its twin; its options are checked, its device is not touched yet."""
    real, twin = create_pair(kind, name, options)
    return real if options.get("twin", False) is False else twin


def create_pair(kind: str, name: str, options: Mapping[str, Any]) -> tuple[Driver, Twin]:
    """The driver `name` and its twin: there is one for each driver, whether the config asked for it or not."""
    maker = KINDS.load(kind)
    if not isinstance(maker, type) or not issubclass(maker, Driver):
        raise KindError(f"driver kind {kind!r} is not a subclass of drivers.base.Driver")
    twin = options.get("twin", False)
    real = maker(name, {key: value for key, value in options.items() if key != "twin"})
    return real, Twin(real, True if twin is False else twin)
