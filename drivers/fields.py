"""Fields of a frame: packed numbers, columns of text, or free-form text; scaling of raw numbers to units and back.

A layout lists its items in the order of the wire. An item with a `name` is a channel; the others are `skip` (bytes or
columns that say nothing), `bytes` and `text` (always the same; a frame with others there is not ours) and `length` (how
long the frame is).

    value [unit] = scale * raw + offset
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import OptionError, channels_from
from drivers.options import Options
from hilnode.core.signals import Signal

Values = NDArray[np.float64]

BINARY = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float32": "f", "float64": "d",
}  # fmt: skip
ORDERS = {"little": "<", "big": ">"}

NUMBER = rb"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[nN][aA][nN]|[iI][nN][fF])"
TEXTUAL = {"number": NUMBER, "whole": rb"[-+]?[0-9]+", "hex": rb"(?:0[xX])?[0-9a-fA-F]{1,16}"}
"""What a number may look like. Python's own float() would also take 1_000."""

SIGNAL_KEYS = ("name", "unit", "default", "low", "high", "safe", "doc")
MOST_ITEMS = 1024


class Scaling:
    """Raw numbers to units, in place, and back."""

    def __init__(self, scale: Sequence[float], offset: Sequence[float]) -> None:
        self._scale, self._offset = np.array(scale, float), np.array(offset, float)
        self._plain = bool((self._scale == 1).all() and (self._offset == 0).all())

    def to_units(self, values: Values) -> None:
        if not self._plain:
            values *= self._scale
            values += self._offset

    def to_raw(self, values: Values) -> list[float]:
        numbers: list[float] = ((values - self._offset) / self._scale).tolist()
        return numbers


@dataclass(frozen=True, slots=True)
class Length:
    """A number `at` bytes from the frame's first byte that tells the size of the frame, less `adds`."""

    at: int
    code: struct.Struct
    adds: int


class Binary:
    """Packed numbers."""

    def __init__(self, options: Options, start: bytes) -> None:
        order = options.choice("order", "little", ORDERS)
        items = _items(options)
        self.channels, tables = _channels(options, items, ("type", "scale", "offset"))
        self.scaling = _scaling(tables)
        self.length: Length | None = None
        self.gaps: list[tuple[int, int]] = []  # skipped bytes, [from, to) in the frame
        self._at = len(start)
        self._constants: list[tuple[int, bytes]] = []
        self._numbers: list[int] = []  # which of the unpacked things are channels
        self._limits: list[tuple[float, float, bool]] = []
        codes, count, named = order, 0, iter(tables)
        for k, item in enumerate(items):
            place = self._at + struct.calcsize(codes)
            if "name" in item:
                code = next(named).choice("type", "float32", BINARY)
                self._numbers.append(count)
                self._limits.append(_limits(code))
            elif "skip" in item:
                size = _table(options, k, item, ("skip",)).whole("skip", 1, 1, 4096)
                self.gaps.append((place, place + size))
                codes += f"{size}x"
                continue
            elif "bytes" in item:
                constant = _table(options, k, item, ("bytes",)).octets("bytes")
                self._constants.append((count, constant))
                code = f"{len(constant)}s"
            else:
                code = self._take_length(options, k, item, order, place)
                self._length_index = count
            codes += code
            count += 1
        self._struct = struct.Struct(codes)
        self._all = self._numbers == list(range(count))
        self._count = count
        self.size = self._struct.size
        self.needs = self._at + self.size  # bytes from the frame's first one

    def _take_length(self, options: Options, k: int, item: Mapping[str, Any], order: str, place: int) -> str:
        table = _table(options, k, item, ("length", "adds"))
        code = table.choice("length", "", {t: c for t, c in BINARY.items() if t[0] == "u" and t != "uint64"})
        if self.length is not None:
            raise OptionError(f"drivers.{options.name}.fields: a frame has one length, here are two")
        self.length = Length(place, struct.Struct(order + code), table.whole("adds", 0, -4096, 4096))
        return code

    def unpack(self, frame: bytes, values: Values) -> bool:
        """Channels from a whole frame, start included; False when its constant bytes are others or it is too short."""
        if len(frame) < self.needs:
            return False
        found = self._struct.unpack_from(frame, self._at)
        if not self._all:
            if any(found[k] != constant for k, constant in self._constants):
                return False
            found = tuple(found[k] for k in self._numbers)
        values[:] = found
        self.scaling.to_units(values)
        return True

    def pack(self, values: Values, total: int) -> bytes:
        """The bytes of all items, in a frame of `total` bytes; what does not fit a type becomes its limit."""
        things: list[Any] = [0] * self._count
        for k, number, (low, high, whole) in zip(self._numbers, self.scaling.to_raw(values), self._limits, strict=True):
            things[k] = to_whole(number, low, high) if whole else min(max(number, low), high)
        for k, constant in self._constants:
            things[k] = constant
        if self.length is not None:
            things[self._length_index] = total - self.length.adds
        return self._struct.pack(*things)


def to_whole(number: float, low: float = -math.inf, high: float = math.inf) -> int:
    """The nearest whole number in a range; ValueError for what is near to none."""
    near = min(max(number, low), high)
    if not math.isfinite(near):
        raise ValueError(f"{number} cannot be sent as a whole number: nothing is sent")
    return round(near)


def _limits(code: str) -> tuple[float, float, bool]:
    """The range of a type, in exact numbers, and whether it holds whole ones."""
    if code in "fd":
        top = float(np.finfo(code).max)
        return -top, top, False
    return int(np.iinfo(code).min), int(np.iinfo(code).max), True


class Text:
    """Numbers in text: `csv` columns, a `regex` to find them by, or a `template` to write them into."""

    def __init__(self, options: Options, form: str) -> None:
        items = _items(options)
        self.channels, self._tables = _channels(options, items, ("type", "scale", "offset", "decimals"))
        self.scaling = _scaling(self._tables)
        self._types = [t.text("type", "number") for t in self._tables]
        for t in self._tables:
            t.choice("type", "number", TEXTUAL)
        self._decimals = [t.whole("decimals", -1, 0, 17) if t.has("decimals") else None for t in self._tables]
        self._names = [c.name.replace(".", "_") for c in self.channels]
        self._pattern: re.Pattern[bytes] | None = None
        self._template = ""
        if form == "csv":
            self._csv(options, items)
        elif any("name" not in item for item in items):
            raise OptionError(f"drivers.{options.name}.fields: with format = {form!r} every field needs a name")
        elif form == "regex":
            self._regex(options)
        else:
            self._written(options)
        self._groups = [(name, 16 if t == "hex" else 0) for name, t in zip(self._names, self._types, strict=True)]
        self._looks = [re.compile(TEXTUAL[t]) for t in self._types]

    def _csv(self, options: Options, items: Sequence[Mapping[str, Any]]) -> None:
        separator = options.text("separator", ",")
        if len(separator) != 1 or not separator.isascii() or separator.isalnum() or separator in '.+-"{}':
            raise options.wrong("separator", 'must be one character, such as ",", ";", " " or "\\t"')
        between = rb"[ \t]+" if separator == " " else re.escape(separator.encode())
        cells, written, k = [], [], 0
        for place, item in enumerate(items):
            if "name" in item:
                cells.append(rb"[ \t]*(?P<%s>%s)[ \t]*" % (self._names[k].encode(), TEXTUAL[self._types[k]]))
                written.append(f"{{{self._names[k]}}}")
                k += 1
            elif "skip" in item:
                count = _table(options, place, item, ("skip",)).whole("skip", 1, 1, 256)
                cells += [rb"[^%s]*" % re.escape(separator.encode())] * count
                written += [""] * count
            elif "text" in item:
                word = _table(options, place, item, ("text",)).text("text", "")
                cells.append(rb"[ \t]*%s[ \t]*" % re.escape(word.encode("latin-1", "replace")))
                written.append(word.replace("{", "{{").replace("}", "}}"))
            else:
                raise OptionError(f"drivers.{options.name}.fields: {dict(item)!r}: a column has a name, skip or text")
        if separator == " ":
            cells = [c.replace(rb"[ \t]*", b"") for c in cells]
            self._pattern = re.compile(rb"[ \t]*" + between.join(cells) + rb"[ \t]*")
        else:
            self._pattern = re.compile(between.join(cells))
        self._template = separator.join(written)

    def _regex(self, options: Options) -> None:
        try:
            self._pattern = re.compile(options.octets("pattern"))
        except re.error as error:
            raise options.wrong("pattern", f"is no regular expression: {error}") from error
        for name in self._names:
            if name not in self._pattern.groupindex:
                raise options.wrong("pattern", f"must have a group for each field: (?P<{name}>...) is missing")

    def _written(self, options: Options) -> None:
        self._template = options.text("template", "")
        try:
            self.pack(np.array([c.default for c in self.channels]), 0)
        except (LookupError, ValueError, AttributeError) as error:
            names = ", ".join(f"{{{n}}}" for n in self._names)
            raise options.wrong("template", f"must be text with {names} in it ({error!r})") from error

    def unpack(self, body: bytes, values: Values) -> bool:
        """Channels from a line; False when it does not look like ours."""
        found = self._pattern.fullmatch(body) if self._pattern is not None else None
        if found is None:
            return False
        numbers = []
        for (name, base), looks in zip(self._groups, self._looks, strict=True):
            cell = found[name]
            if cell is None or looks.fullmatch(cell) is None:
                return False
            numbers.append(int(cell, base) if base else float(cell))
        values[:] = numbers
        self.scaling.to_units(values)
        return True

    def pack(self, values: Values, total: int) -> bytes:
        """The line, without what stands before and behind it."""
        words: dict[str, Any] = {}
        for name, number, kind, decimals in zip(
            self._names, self.scaling.to_raw(values), self._types, self._decimals, strict=True
        ):
            if kind == "number":
                words[name] = _Number(number, decimals)
            else:
                words[name] = _Hex(to_whole(number)) if kind == "hex" else to_whole(number)
        return self._template.format(**words).encode("latin-1")


class _Number(float):
    """A number that writes itself with so many decimals, unless the template says how."""

    decimals: int | None

    def __new__(cls, value: float, decimals: int | None) -> _Number:
        made = super().__new__(cls, value)
        made.decimals = decimals
        return made

    def __format__(self, form: str) -> str:
        return super().__format__(form or (".9g" if self.decimals is None else f".{self.decimals}f"))


class _Hex(int):
    """A whole number that writes itself in hexadecimal digits, unless the template says how."""

    def __format__(self, form: str) -> str:
        return super().__format__(form or "X")


def _items(options: Options) -> list[Mapping[str, Any]]:
    """The items of `fields`; a plain name is a table with a name."""
    given = options.given.get("fields")
    if not isinstance(given, (list, tuple)) or not 1 <= len(given) <= MOST_ITEMS:
        raise options.wrong("fields", "must be a list of names or tables, one for each field")
    items: list[Mapping[str, Any]] = [{"name": i} if isinstance(i, str) else i for i in given]
    for item in items:
        keys = [k for k in ("name", "skip", "bytes", "text", "length") if isinstance(item, Mapping) and k in item]
        if len(keys) != 1:
            raise OptionError(
                f"drivers.{options.name}.fields: {item!r} must be a name or a table with one of name, skip, bytes, "
                "text, length"
            )
    return items


def _table(options: Options, place: int, item: Mapping[str, Any], known: tuple[str, ...]) -> Options:
    return Options(f"{options.name}.fields[{place}]", item, known)


def _channels(
    options: Options, items: Sequence[Mapping[str, Any]], more: tuple[str, ...]
) -> tuple[tuple[Signal, ...], list[Options]]:
    """The signals of the named items, and what else is said of each."""
    named = [(k, item) for k, item in enumerate(items) if "name" in item]
    tables = [_table(options, k, item, (*SIGNAL_KEYS, *more)) for k, item in named]
    plain = [{k: v for k, v in item.items() if k in SIGNAL_KEYS} for _, item in named]
    return channels_from(options.name, "fields", plain), tables


def _scaling(tables: Sequence[Options]) -> Scaling:
    scale = [t.number("scale", 1.0, -1e100, 1e100) for t in tables]
    for t, s in zip(tables, scale, strict=True):
        if s == 0:
            raise t.wrong("scale", "must not be 0")
    return Scaling(scale, [t.number("offset", 0.0, -1e100, 1e100) for t in tables])
