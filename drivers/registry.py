"""The table of driver kinds: a name in a config to a `Driver` class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivers.base import Driver
from drivers.stand_in import StandIn
from drivers.twin import Twin
from hilnode.core.registry import KindError, Kinds

KINDS = Kinds(
    "driver",
    "hilnode.drivers",
    {
        "can": "drivers.can.bus:Can",
        "daq": "drivers.daq.driver:Daq",
        "ecu": "drivers.ecu:Ecu",
        "hid": "drivers.hid.device:HidDevice",
        "loopback": "drivers.loopback:Loopback",
        "modbus": "drivers.modbus.client:Modbus",
        "modbus-server": "drivers.modbus.server:ModbusServer",
        "opcua": "drivers.opcua.client:Opcua",
        "opcua-server": "drivers.opcua.server:OpcuaServer",
        "operator": "drivers.operator.driver:Operator",
        "serial": "drivers.serial.port:SerialPort",
        "udp": "drivers.udp.driver:Udp",
    },
)


def create(kind: str, name: str, options: Mapping[str, Any], folder: str | Path = "") -> Driver:
    """The driver `name`, or its twin; its options are checked, its device is not touched yet."""
    real, twin = create_pair(kind, name, options, folder)
    return real if options.get("twin", False) is False else twin


def create_pair(kind: str, name: str, options: Mapping[str, Any], folder: str | Path = "") -> tuple[Driver, Twin]:
    """The driver `name` and its twin: there is one for each driver, whether the config asked for it or not.

    `folder` is the config's: files that options name are looked for there. A twin that is a table with a kind is a
    driver of that kind (`drivers/stand_in.py`).
    """
    twin = options.get("twin", False)
    real = _make(kind, name, {key: value for key, value in options.items() if key != "twin"}, folder)
    if isinstance(twin, Mapping) and "kind" in twin and "kind" not in [s.name for s in real.inputs]:
        given = {key: value for key, value in twin.items() if key != "kind"}
        return real, StandIn(real, _make(str(twin["kind"]), f"{name}.twin", given, folder))
    return real, Twin(real, True if twin is False else twin)


def _make(kind: str, name: str, options: Mapping[str, Any], folder: str | Path) -> Driver:
    maker = KINDS.load(kind)
    if not isinstance(maker, type) or not issubclass(maker, Driver):
        raise KindError(f"driver kind {kind!r} is not a subclass of drivers.base.Driver")
    files = {key: str(Path(folder) / options[key]) for key in maker.files if isinstance(options.get(key), str)}
    return maker(name, {**options, **files})
