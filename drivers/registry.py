"""The table of driver kinds: a name in a config to a `Driver` class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivers.base import Driver
from hilnode.kinds import KindError, Kinds

KINDS = Kinds(
    "driver",
    "hilnode.drivers",
    {
        "loopback": "drivers.loopback:Loopback",
        "modbus": "drivers.modbus_client:Modbus",
        "modbus-server": "drivers.modbus_server:ModbusServer",
        "udp": "drivers.udp:Udp",
    },
)


def create(kind: str, name: str, options: Mapping[str, Any]) -> Driver:
    """The driver `name`; its options are checked, its device is not touched yet."""
    maker = KINDS.load(kind)
    if not isinstance(maker, type) or not issubclass(maker, Driver):
        raise KindError(f"driver kind {kind!r} is not a subclass of drivers.base.Driver")
    return maker(name, options)
