"""The options of both kinds of Modbus driver: the address of each channel, and the connection (TCP or RTU)."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from drivers.base import DriverError, OptionError, channels_from
from drivers.modbus.registers import BIT, BIT_TABLES, LAST_ADDRESS, TABLES, TYPES, Point, overlap
from drivers.options import Options
from drivers.usb_ports import find_port, wanted_from
from hilnode.core.signals import Signal

POINT_KEYS = (*TABLES, "type", "bit", "words", "bytes", "scale", "offset")
LINE_KEYS = ("port", "usb", "baud", "parity", "stop_bits")
PARITIES = {"even": "E", "odd": "O", "none": "N"}
BAUDS = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600)
TCP_PORT = 502
ORDERS = ("big", "little")


class Refused(Exception):
    """The device answered that it will not."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """An address on the network."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def found(self) -> Tcp:
        return self


@dataclass(frozen=True, slots=True)
class Rtu:
    """A serial line. The defaults are the standard's: 19200 baud, even parity, one stop bit."""

    path: str
    baud: int = 19200
    parity: str = "even"
    stop_bits: int = 1
    usb: tuple[tuple[str, Any], ...] = ()  # what its adapter is known by; `path` is then nothing until it is found

    def __str__(self) -> str:
        return self.path or "usb = " + ":".join(f"{v:04x}" if isinstance(v, int) else v for _, v in self.usb)

    def found(self) -> Rtu:
        """The line at the port where its adapter is now; DriverError if it is nowhere."""
        return replace(self, path=find_port(dict(self.usb))) if self.usb else self

    @property
    def quiet(self) -> float:
        """Silence between two frames [s]: 3.5 characters of 11 bits, never less than 1.75 ms."""
        return max(0.00175, 3.5 * 11 / self.baud)


class ModbusOptions(Options):
    """Options of a driver that speaks Modbus."""

    def line(self, key: str) -> Tcp | Rtu:
        """Either the network address under `key` or the serial line under `port` or `usb`."""
        if sum(k in self.given for k in (key, "port", "usb")) != 1:
            raise OptionError(
                f"drivers.{self.name}: give either {key} (Modbus TCP, such as '192.168.0.10:502') "
                "or port (Modbus RTU, such as '/dev/ttyUSB0') or usb (its adapter, such as '0403:6001')"
            )
        if key not in self.given:
            return self._rtu()
        for other in LINE_KEYS:
            if other in self.given:
                raise self.wrong(other, f"belongs to a serial line (port), not to {key}")
        return self._tcp(key)

    def _tcp(self, key: str) -> Tcp:
        text = self.given[key]
        host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if not colon or text.endswith("]"):
            host, port = (text, str(TCP_PORT)) if isinstance(text, str) else ("", "")
        if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
            raise self.wrong(key, "must be host or host:port, such as '192.168.0.10:502'")
        return Tcp(host.strip("[]"), int(port))

    def _rtu(self) -> Rtu:
        path = self.given.get("port", "")
        if "usb" not in self.given and (not isinstance(path, str) or not path):
            raise self.wrong("port", "must be the path of a serial port, such as '/dev/ttyUSB0' (hilnode devices)")
        if self.given.get("baud", 19200) not in BAUDS:
            raise self.wrong("baud", f"must be one of {', '.join(map(str, BAUDS))}")
        return Rtu(
            path,
            self.whole("baud", 19200, BAUDS[0], BAUDS[-1]),
            self.choice("parity", "even", {name: name for name in PARITIES}),
            self.whole("stop_bits", 1, 1, 2),
            tuple(wanted_from(self).items()) if "usb" in self.given else (),
        )

    def channels(self, key: str, tables: tuple[str, ...], *own: str) -> tuple[tuple[Signal, ...], tuple[Point, ...]]:
        """Signals and places of the channels under `key`, which may live in `tables`; `own` keys are the caller's."""
        items = self.given.get(key, [])
        if not isinstance(items, (list, tuple)) or not all(isinstance(item, Mapping) for item in items):
            raise self.wrong(
                key, "must be a list of tables such as { name = 'level', unit = 'm', holding = 0, type = 'float32' }"
            )
        signals = channels_from(
            self.name, key, [{k: v for k, v in item.items() if k not in (*POINT_KEYS, *own)} for item in items]
        )
        orders = {k: self.choice(k, "big", {order: order for order in ORDERS}) for k in ("words", "bytes")}
        points = tuple(
            _point(f"drivers.{self.name}.{key}: {signal.name}", signal.name, tables, {**orders, **item})
            for signal, item in zip(signals, items, strict=True)
        )
        self.refuse_overlap(key, points)
        return signals, points

    def refuse_overlap(self, key: str, points: tuple[Point, ...]) -> None:
        if (two := overlap(points)) is not None:
            one, other = two
            raise OptionError(
                f"drivers.{self.name}.{key}: {other.name} ({other.place}, {other.type}) overlaps "
                f"{one.name} ({one.place}, {one.type}): give each a place of its own; 32-bit types take two registers"
            )


def load(module: str) -> Any:
    """A module that needs pymodbus, or a DriverError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise DriverError(f'the library {missing} is not installed: pip install "hilnode[modbus]"') from error


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _point(where: str, name: str, tables: tuple[str, ...], item: Mapping[str, Any]) -> Point:
    """The place of one channel."""
    named = [t for t in TABLES if t in item]
    if len(named) != 1 or named[0] not in tables:
        got = ", ".join(f"{t} = {item[t]!r}" for t in named) or "none"
        raise OptionError(f"{where}: needs the address in exactly one of {', '.join(tables)}; got {got}")
    table, address = named[0], item[named[0]]
    if not _is_whole(address) or not 0 <= address <= LAST_ADDRESS:
        raise OptionError(
            f"{where}: {table} = {address!r}: must be an address from 0 to {LAST_ADDRESS}; "
            "what a manual calls 40001 or 400001 is holding 0"
        )
    point = _typed(where, Point(name, table, address, BIT, words=item["words"], bytes=item["bytes"]), item)
    if point.end - 1 > LAST_ADDRESS:
        raise OptionError(f"{where}: a {point.type} takes two registers, and {address} is the last one")
    for key in ("words", "bytes"):
        if item[key] not in ORDERS:
            raise OptionError(f"{where}: {key} = {item[key]!r}: must be one of {', '.join(ORDERS)}")
    scale, offset = item.get("scale", 1.0), item.get("offset", 0.0)
    if not _is_number(scale) or scale == 0:
        raise OptionError(f"{where}: scale = {scale!r}: must be a number other than 0")
    if not _is_number(offset):
        raise OptionError(f"{where}: offset = {offset!r}: must be a number")
    return replace(point, scale=float(scale), offset=float(offset))


def _typed(where: str, point: Point, item: Mapping[str, Any]) -> Point:
    """With its type, or as a bit."""
    kind, bit = item.get("type"), item.get("bit")
    if point.table in BIT_TABLES:
        if kind is not None or bit is not None:
            raise OptionError(f"{where}: a {point.table} is one bit: leave out type and bit")
        return point
    if bit is not None:
        if kind is not None:
            raise OptionError(f"{where}: type = {kind!r} and bit = {bit!r}: a bit of a register has no type")
        if not _is_whole(bit) or not 0 <= bit <= 15:
            raise OptionError(f"{where}: bit = {bit!r}: must be a whole number from 0 (least significant) to 15")
        return replace(point, bit=bit)
    if kind not in TYPES:
        raise OptionError(f"{where}: type = {kind!r}: must be one of {', '.join(TYPES)}, or give bit = 0 to 15")
    return replace(point, type=kind)
