"""Datagram formats of the udp driver: packed numbers, or MessagePack.

numbers   one number per channel in the order of the config, each of its own type, nothing between them: a C struct
          without padding. Any other length is refused: a truncated datagram never becomes a wrong value.
msgpack   a list with one number per channel, or a map from some of the channels to numbers; sent as a map of floats.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgpack
import numpy as np
from numpy.typing import NDArray

from drivers.base import OptionError
from drivers.fields import to_whole

TYPES = {
    "float64": "d",
    "float32": "f",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
}
ORDERS = {"little": "<", "big": ">"}
FORMATS = ("numbers", "msgpack")


class Layout(Protocol):
    """Bytes to numbers and back, for the channels of one direction."""

    def unpack(self, data: bytes, values: NDArray[np.float64], stamps: NDArray[np.int64], now: int) -> None:
        """Update channels and their stamps in place; ValueError says what is wrong, and nothing was changed."""

    def pack(self, values: NDArray[np.float64]) -> bytes:
        """One value per channel as bytes."""


class Numbers:
    """`types` of the channels in their order, keys of TYPES; `order` one of ORDERS."""

    def __init__(self, types: Sequence[str], order: str) -> None:
        self._struct = struct.Struct(ORDERS[order] + "".join(TYPES[t] for t in types))
        self._whole = [np.dtype(t).kind != "f" for t in types]
        limits = [np.iinfo(t) if whole else np.finfo(t) for t, whole in zip(types, self._whole, strict=True)]
        self._low = np.array([float(limit.min) for limit in limits])
        self._high = np.array([float(limit.max) for limit in limits])

    def unpack(self, data: bytes, values: NDArray[np.float64], stamps: NDArray[np.int64], now: int) -> None:
        if len(data) != self._struct.size:
            raise ValueError(f"datagram of {len(data)} bytes, expected {self._struct.size}")
        values[:] = self._struct.unpack(data)
        stamps[:] = now

    def pack(self, values: NDArray[np.float64]) -> bytes:
        near = np.clip(values, self._low, self._high).tolist()  # saturate: a device gets its limit, not nothing
        return self._struct.pack(*(to_whole(x) if w else x for x, w in zip(near, self._whole, strict=True)))


class Packed:
    """MessagePack; `names` of the channels in their order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._at = {name: k for k, name in enumerate(names)}

    def unpack(self, data: bytes, values: NDArray[np.float64], stamps: NDArray[np.int64], now: int) -> None:
        try:
            given = msgpack.unpackb(data, strict_map_key=True)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"datagram of {len(data)} bytes is not MessagePack: {type(error).__name__}") from error
        if isinstance(given, list):
            if len(given) != len(self._names):
                raise ValueError(f"a list of {len(given)}, expected {len(self._names)} numbers")
            given = dict(zip(self._names, given, strict=True))
        if not isinstance(given, dict) or not given:
            raise ValueError(f"a datagram is a map or a list with numbers, not {str(given)[:40]}")
        for name, value in given.items():
            if name not in self._at:
                raise ValueError(f"no channel {str(name)[:40]!r}, there is {', '.join(self._names)}")
            if type(value) not in (float, int, bool):
                raise ValueError(f"{name} is {type(value).__name__}, not a number")
        for name, value in given.items():
            values[self._at[name]], stamps[self._at[name]] = float(value), now

    def pack(self, values: NDArray[np.float64]) -> bytes:
        return msgpack.packb(dict(zip(self._names, values.tolist(), strict=True)))


def layout_of(name: str, key: str, options: Mapping[str, Any]) -> Layout:
    """The layout of the channels under `key`: `inputs` or `outputs`."""
    items = options.get(key, [])
    tables = [t if isinstance(t, Mapping) else {"name": t} for t in items] if isinstance(items, (list, tuple)) else []
    own = [t.get("type") for t in tables]
    if _choice(f"drivers.{name}.format", options.get("format", "numbers"), FORMATS) == "msgpack":
        if "type" in options or "order" in options or any(t is not None for t in own):
            raise OptionError(f"drivers.{name}: numbers in MessagePack bring type and order along; leave them out")
        return Packed([str(t.get("name")) for t in tables])
    default = _choice(f"drivers.{name}.type", options.get("type", "float64"), TYPES)
    order = _choice(f"drivers.{name}.order", options.get("order", "little"), ORDERS)
    return Numbers([default if t is None else _choice(f"drivers.{name}.{key}: type", t, TYPES) for t in own], order)


def plain(options: Mapping[str, Any], key: str) -> Any:
    """The channels under `key` without their types, as any other driver has them."""
    items = options.get(key, [])
    if not isinstance(items, (list, tuple)):
        return items
    return [{k: v for k, v in t.items() if k != "type"} if isinstance(t, Mapping) else t for t in items]


def _choice(where: str, given: Any, known: Mapping[str, str] | Sequence[str]) -> str:
    if not isinstance(given, str) or given not in known:
        raise OptionError(f"{where} = {given!r}: must be one of {', '.join(known)}")
    return given
