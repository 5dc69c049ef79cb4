"""The options of a DAQ card's channels: terminal, measured quantity, and scaling of volts or pulses."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drivers.base import OptionError, channels_from
from drivers.daq.scaling import Line, Table
from drivers.options import Options
from hilnode.core.signals import Signal

SIGNAL_KEYS = ("name", "unit", "default", "low", "high", "safe", "doc")
SCALE_KEYS = ("slope", "offset", "table")
TERMINALS = {"default": "DEFAULT", "rse": "RSE", "nrse": "NRSE", "diff": "DIFF", "pseudodiff": "PSEUDO_DIFF"}
DECODINGS = {"x1": "X_1", "x2": "X_2", "x4": "X_4"}
EDGES = {"rising": "RISING", "falling": "FALLING"}
MEASURES = {
    "angle": ("rad", ("pulses", "decoding", "index")),
    "position": ("m", ("distance", "decoding", "index")),
    "frequency": ("Hz", ("hertz",)),
    "count": ("", ("edge",)),
}
"""What a counter can measure: its unit, and the options that go with it."""

NAMES = {"ai": r"ai\d+", "ao": r"ao\d+", "line": r"port\d+/line\d+", "counter": r"ctr\d+"}
EXAMPLES = {"ai": "ai0", "ao": "ao0", "line": "port0/line3", "counter": "ctr0"}
HIGHEST_VOLT = 1000.0
UNSCALED = Line()


@dataclass(frozen=True, slots=True)
class Point:
    """One channel: where it is on the card and how it is set up. Words are those of nidaqmx.constants."""

    place: int
    name: str
    sort: str
    channel: str
    scale: Line | Table = UNSCALED
    volts: tuple[float, float] = (-10.0, 10.0)
    terminal: str = "DEFAULT"
    invert: bool = False
    measure: str = ""
    pulses: int = 0
    distance: float = 0.0
    decoding: str = "X_4"
    index: bool = False
    hertz: tuple[float, float] = (1.0, 100_000.0)
    edge: str = "RISING"


class DaqOptions(Options):
    """Options of a driver for DAQ cards."""

    def channels(self, key: str, sorts: tuple[str, ...]) -> tuple[tuple[Signal, ...], tuple[Point, ...]]:
        """Signals and places of the channels under `key`: a list of tables, or a table of tables by name."""
        given = self.given.get(key, [])
        if isinstance(given, Mapping) and all(isinstance(item, Mapping) for item in given.values()):
            given = [{"name": name, **item} for name, item in given.items()]
        if not isinstance(given, (list, tuple)) or not all(isinstance(item, Mapping) for item in given):
            example = f"{{ name = 'x', channel = '{EXAMPLES[sorts[0]]}' }}"
            raise self.wrong(key, f"must be a list of tables such as {example}")
        tables, points = [], []
        for place, item in enumerate(given):
            where = ChannelOptions(f"{self.name}.{key}.{item.get('name', place)}", item)
            sort = where.sort(sorts)
            point = where.point(place, sort)
            points.append(point)
            tables.append(where.signal(point))
        signals = channels_from(self.name, key, tables)
        return signals, tuple(points)

    def refuse_shared(self, points: tuple[Point, ...]) -> None:
        """One terminal serves one channel."""
        seen: dict[str, str] = {}
        for point in points:
            other = seen.setdefault(point.channel, point.name)
            if other != point.name:
                raise OptionError(
                    f"drivers.{self.name}: {other} and {point.name} both use {point.channel}: give each its own"
                )


class ChannelOptions(Options):
    """The table of one channel."""

    def sort(self, sorts: tuple[str, ...]) -> str:
        """What kind of terminal its name says it is."""
        channel = self.text("channel", "")
        for sort in sorts:
            if re.fullmatch(NAMES[sort], channel):
                return sort
        examples = ", ".join(repr(EXAMPLES[sort]) for sort in sorts)
        raise self.wrong("channel", f"must be a terminal of the card such as {examples}, without the card's name")

    def point(self, place: int, sort: str) -> Point:
        own = self._own_keys(sort)
        Options(self.name, self.given, (*SIGNAL_KEYS, "channel", *own))
        return Point(
            place,
            str(self.given.get("name", "")),
            sort,
            self.text("channel", ""),
            self._scale(inverse=sort == "ao") if "slope" in own else UNSCALED,
            self._pair("volts", (-10.0, 10.0), -HIGHEST_VOLT, HIGHEST_VOLT),
            self.choice("terminal", "default", TERMINALS),
            self.flag("invert", False),
            self.text("measure", ""),
            self.whole("pulses", 0, 1, 2**24) if "pulses" in own else 0,
            self.number("distance", 0.0, 1e-12, 1e3) if "distance" in own else 0.0,
            self.choice("decoding", "x4", DECODINGS),
            self.flag("index", False),
            self._pair("hertz", (1.0, 100_000.0), 1e-3, 1e8),
            self.choice("edge", "rising", EDGES),
        )

    def signal(self, point: Point) -> dict[str, Any]:
        """The table of the signal, with what follows from the terminal filled in."""
        table = {key: value for key, value in self.given.items() if key in SIGNAL_KEYS}
        if point.sort == "counter":
            unit = MEASURES[point.measure][0]
        else:
            unit = "" if point.sort == "line" else "V"
        table.setdefault("unit", unit if point.scale == UNSCALED else "")
        if point.sort == "ao":
            ends = sorted(point.scale.value(v) for v in point.volts)
            table = {"low": ends[0], "high": ends[1], **table}
        if point.sort == "line":
            table = {"low": 0.0, "high": 1.0, **table}
        if "safe" in table:
            table.setdefault("default", table["safe"])
        return table

    def _own_keys(self, sort: str) -> tuple[str, ...]:
        if sort == "line":
            return ("invert",)
        if sort == "ai":
            return ("volts", "terminal", *SCALE_KEYS)
        if sort == "ao":
            return ("volts", *SCALE_KEYS)
        keys = self.choice("measure", "", {name: more for name, (_, more) in MEASURES.items()})
        return ("measure", *keys, *SCALE_KEYS)

    def _scale(self, *, inverse: bool) -> Line | Table:
        if not self.has("table"):
            slope, offset = self.number("slope", 1.0, -1e12, 1e12), self.number("offset", 0.0, -1e12, 1e12)
            if slope == 0.0:
                raise self.wrong("slope", "must be a number other than 0")
            return Line(slope, offset)
        if self.has("slope") or self.has("offset"):
            raise self.wrong("table", "takes the place of slope and offset: give one or the other")
        pairs = self.given["table"]
        if not isinstance(pairs, (list, tuple)) or len(pairs) < 2 or not all(map(_is_pair, pairs)):
            raise self.wrong("table", "must be pairs of volts and value such as [[0.0, 0.0], [5.0, 250.0]]")
        raws, values = (tuple(float(pair[k]) for pair in pairs) for k in (0, 1))
        if not _rises(raws):
            raise self.wrong("table", "the first numbers of the pairs must rise")
        if inverse and not (_rises(values) or _rises(values[::-1])):
            raise self.wrong(
                "table", "the second numbers must rise or fall all the way: an output is looked up by them"
            )
        return Table(raws, values)

    def _pair(self, key: str, default: tuple[float, float], low: float, high: float) -> tuple[float, float]:
        pair = self.given.get(key, default)
        if not _is_pair(pair) or not low <= pair[0] < pair[1] <= high:
            raise self.wrong(key, f"must be the lowest and the highest, from {low:g} to {high:g}")
        return float(pair[0]), float(pair[1])


def _is_pair(given: Any) -> bool:
    numbers = given if isinstance(given, (list, tuple)) else ()
    return len(numbers) == 2 and all(
        isinstance(n, (int, float)) and not isinstance(n, bool) and math.isfinite(n) for n in numbers
    )


def _rises(numbers: tuple[float, ...]) -> bool:
    return all(a < b for a, b in itertools.pairwise(numbers))
