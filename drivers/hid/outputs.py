"""Output channels of a HID device: lamps and motors by usage, and whole reports by a template.

By usage, a channel's range covers the range that the descriptor gives the field. In a template, every byte is a number
or a channel, and the first is the report's id (0 if the device numbers none), as hidapi wants it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import OptionError
from drivers.hid.report import Descriptor, Field, Kind
from drivers.hid.usages import FORM, Pick, find, pick_from
from drivers.options import Options
from hilnode.core.signals import Signal, SignalError, check_unique

LIMITS = ("low", "high", "safe", "unit")


@dataclass(frozen=True)
class Output:
    """A channel that is a field of the descriptor."""

    signal: Signal
    pick: Pick
    report: int | None


@dataclass(frozen=True)
class Byte:
    """A channel that is one byte of a template: value × scale + offset."""

    signal: Signal
    template: int
    at: int
    scale: float
    offset: float


def outputs_of(name: str, given: Any) -> tuple[Output, ...]:
    """From the option `outputs`: `{ lamp = "led 1", motor = { usage = "0x0f:0x70", report = 3 } }`."""
    if not isinstance(given, Mapping):
        raise OptionError(f'drivers.{name}.outputs = {given!r}: must be a table such as {{ lamp = "led 1" }}')
    found = []
    for key, entry in given.items():
        table = {"usage": entry} if isinstance(entry, str) else entry
        o = Options(f"{name}.outputs.{key}", table, ("usage", "report", *LIMITS))
        if not isinstance(table.get("usage"), str):
            raise o.wrong("usage", f"must be {FORM}")
        try:
            pick = pick_from(table["usage"])
        except ValueError as error:
            raise o.wrong("usage", str(error)) from error
        report = o.whole("report", 0, 0, 255) if o.has("report") else None
        found.append(Output(_signal(o, key), pick, report))
    return tuple(found)


def templates_of(name: str, given: Any) -> tuple[list[bytearray], tuple[Byte, ...]]:
    """From the option `templates`: a list of reports, each a list of bytes and channels."""
    if not isinstance(given, (list, tuple)):
        raise OptionError(f'drivers.{name}.templates = {given!r}: must be a list of reports, [[0, 1, "motor"]]')
    frames, channels = [], []
    for t, items in enumerate(given):
        frame = report_from(f"drivers.{name}.templates[{t}]", items, blanks=True)
        for at, item in enumerate(items):
            if isinstance(item, int):
                continue
            table = {"name": item} if isinstance(item, str) else item
            o = Options(f"{name}.templates[{t}]", table, ("name", "scale", "offset", *LIMITS))
            if at == 0:
                raise OptionError(f"drivers.{name}.templates[{t}]: the first byte is the report's id, a number")
            scale, offset = o.number("scale", 255.0, -1e6, 1e6), o.number("offset", 0.0, -1e6, 1e6)
            channels.append(Byte(_signal(o, table.get("name")), t, at, scale, offset))
        frames.append(frame)
    return frames, tuple(channels)


def report_from(where: str, items: Any, *, blanks: bool = False) -> bytearray:
    """A report from a list of bytes; with `blanks`, what is no number is left 0 for a channel."""
    allowed = "must be a list of bytes such as [0, 0xF5, 0], the first being the report's id or 0"
    if not isinstance(items, (list, tuple)) or not items or len(items) > 4096:
        raise OptionError(f"{where} = {items!r}: {allowed}")
    frame = bytearray()
    for item in items:
        number = 0 if blanks and isinstance(item, (str, Mapping)) else item
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 255:
            raise OptionError(f"{where}: {item!r}: {allowed}")
        frame.append(number)
    return frame


def _signal(o: Options, name: Any) -> Signal:
    if not isinstance(name, str):
        raise o.wrong("name", "must be the name of the channel")
    low, high = o.number("low", 0.0, -1e9, 1e9), o.number("high", 1.0, -1e9, 1e9)
    usual = min(max(0.0, low), high)
    try:
        return Signal(name, o.text("unit", ""), usual, low, high, o.number("safe", usual, -1e9, 1e9))
    except SignalError as error:
        raise OptionError(f"drivers.{o.name}: {error}") from error


class Outputs:
    """All that is sent to a device: from one value per channel to reports."""

    def __init__(self, name: str, by_usage: Any, templates: Any) -> None:
        self.fields = outputs_of(name, by_usage)
        self._templates, self._bytes = templates_of(name, templates)
        self.signals = (*(f.signal for f in self.fields), *(b.signal for b in self._bytes))
        try:
            check_unique(self.signals, f"drivers.{name}: outputs and templates")
        except SignalError as error:
            raise OptionError(str(error)) from error

    def fit(self, descriptor: Descriptor) -> Packer:
        """Find the fields in a device; ValueError if it lacks one."""
        there = descriptor.of(Kind.OUTPUT)
        places = []
        for output in self.fields:
            f = find(there, output.pick, output.report)
            if f is None or f.is_array or f.low >= f.high:
                raise ValueError(
                    f"{output.signal.name}: the device has no output {output.pick.name}; it has {_shown(there)}"
                )
            places.append(f)
        return Packer(self, descriptor, places, self._templates, self._bytes)


class Packer:
    """Outputs fitted to a device."""

    def __init__(
        self,
        outputs: Outputs,
        descriptor: Descriptor,
        places: Sequence[Field],
        templates: Sequence[bytearray],
        channels: Sequence[Byte],
    ) -> None:
        self._limits = [(f.signal.low, f.signal.high) for f in outputs.fields]
        self._places = places
        self._sizes = {f.report: descriptor.size(Kind.OUTPUT, f.report) for f in places}
        self._templates, self._bytes = templates, channels

    def pack(self, values: NDArray[np.float64]) -> list[bytes]:
        """The reports, each with its id in front. What is not a number is sent as the lowest."""
        numbers = values.tolist()
        bodies = dict.fromkeys(self._sizes, 0)
        for f, value, (low, high) in zip(self._places, numbers, self._limits, strict=False):
            share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low and value == value else 0.0
            raw = f.low + round(share * (f.high - f.low))
            bodies[f.report] |= (raw & (1 << f.size) - 1) << f.bit
        reports = [bytes([n]) + body.to_bytes(self._sizes[n], "little") for n, body in bodies.items()]
        frames = [bytearray(t) for t in self._templates]
        for b, value in zip(self._bytes, numbers[len(self._places) :], strict=True):
            number = value * b.scale + b.offset
            frames[b.template][b.at] = min(max(round(number), 0), 255) if math.isfinite(number) else 0
        return reports + [bytes(f) for f in frames]


def _shown(fields: Sequence[Field]) -> str:
    names = dict.fromkeys(Pick(u).name for f in fields for u in f.usages[:64])
    return ", ".join(list(names)[:24]) or "none"
