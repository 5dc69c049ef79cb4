"""Decodes the reports of a HID device: a table of bits, made once from the descriptor and the channels.

A report becomes one whole number. What differs from the last one is looked at, axis by axis, and button by button only
if any of them differs: a report in which a stick moved costs as much with thirty buttons as with none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drivers.hid.channels import Channel, shape_of
from drivers.hid.report import Descriptor, Field, Kind, Main
from drivers.hid.usages import HAT, find, picks_of

Values = NDArray[np.float64]


class MissingUsage(ValueError):
    """A channel that this device does not have."""


@dataclass
class Counts:
    """What became of the reports."""

    reports: int = 0  # that carried channels
    other: int = 0  # that carry none
    short: int = 0  # that ended before their channels
    superseded: int = 0  # that were followed by a newer one before anybody looked
    presses: int = 0  # of buttons


Take = Callable[[int, Values, int], None]
"""What to do with a number: (number, values, now)."""


class _Row(NamedTuple):
    """One field: where it is, and what to do when it changes. An axis has a shape, all others an action."""

    bits: int
    shift: int
    mask: int
    sign: int  # the sign bit; 0 if there is none
    channel: int
    shape: Callable[[int], float] | None
    take: Take


@dataclass
class _Report:
    """One report: its table, and what it said last."""

    rows: list[_Row] = field(default_factory=list)
    switches: list[_Row] = field(default_factory=list)
    switch_bits: int = 0
    steps: list[_Row] = field(default_factory=list)  # these count each time, also when they are as before
    channels: list[int] = field(default_factory=list)
    length: int = 0  # bytes up to the last bit that is looked at
    stamped: slice | NDArray[np.int64] = field(default_factory=lambda: slice(0))
    seen: bool = False
    last: int = 0

    def finish(self) -> None:
        """Prefer a slice of channels to a list of them: it is much quicker to stamp."""
        first, end = min(self.channels), max(self.channels) + 1
        dense = sorted(self.channels) == list(range(first, end))
        self.stamped = slice(first, end) if dense else np.array(self.channels, np.int64)
        for row in self.switches:
            self.switch_bits |= row.bits


class Decoder:
    """For one device. The state of counts and sums lives in the values, and so outlives the device's replugging."""

    def __init__(self, descriptor: Descriptor, channels: Sequence[Channel], press_ns: int = 0) -> None:
        """`press_ns`: a press lasts at least so long, so that the tick sees it."""
        self.counts = Counts()
        self.press_ns = press_ns
        self._numbered = descriptor.numbered
        self._reports: dict[int, _Report] = {}
        self._held: dict[_Button, int] = {}  # released, but not yet long enough pressed: when it is due
        inputs = descriptor.of(Kind.INPUT)
        arrays: dict[Field, _Array] = {}
        for k, channel in enumerate(channels):
            f = find(inputs, channel.pick, channel.report)
            if f is None:
                raise MissingUsage(_missing(channel, inputs))
            self._add(k, channel, f, arrays)
        for report in self._reports.values():
            report.finish()

    def _add(self, k: int, channel: Channel, f: Field, arrays: dict[Field, _Array]) -> None:
        report = self._reports.setdefault(f.report, _Report())
        report.channels.append(k)
        report.length = max(report.length, (f.bit + f.size * f.count + 7) // 8 + self._numbered)
        if f.is_array:
            self._add_key(k, channel, f, arrays, report)
            return
        if f.is_relative and channel.mode != "sum":
            raise MissingUsage(
                f'{channel.name}: {channel.pick.name} of this device counts steps, as a mouse does: as = "sum" adds '
                "them up"
            )
        if channel.pick.usage == HAT:
            report.rows.append(self._row(k, f, _hat(k, channel, f)))
        elif channel.mode == "sum":
            report.steps.append(self._row(k, f, _sum(k, -1.0 if channel.invert else 1.0)))
        elif channel.mode in ("button", "count"):
            report.switches.append(self._row(k, f, _switch(self._button(k, channel), f)))
        else:
            report.rows.append(self._axis(k, channel, f))

    def _add_key(self, k: int, channel: Channel, f: Field, arrays: dict[Field, _Array], report: _Report) -> None:
        if channel.mode not in ("button", "count"):
            raise MissingUsage(
                f'{channel.name}: {channel.pick.name} is in a list of pressed keys: as = "button" or "count"'
            )
        if f not in arrays:
            arrays[f] = _Array(f)
            report.switches.append(self._row(k, f, arrays[f].take))
        arrays[f].add(channel.pick.usage, self._button(k, channel))

    def _axis(self, k: int, channel: Channel, f: Field) -> _Row:
        try:
            shape = shape_of(channel, f)
        except ValueError as error:
            raise MissingUsage(f"{channel.name}: {channel.pick.name}: {error}") from error
        if f.flags & Main.NULL_STATE:
            return self._row(k, f, _unless_null(k, shape, f))
        return self._row(k, f, _nothing)._replace(shape=shape)

    def _row(self, k: int, f: Field, take: Take) -> _Row:
        shift, mask = f.bit + 8 * self._numbered, (1 << f.size * f.count) - 1
        sign = 1 << (f.size - 1) if f.is_signed and not f.is_array else 0
        return _Row(mask << shift, shift, mask, sign, k, None, take)

    def _button(self, k: int, channel: Channel) -> _Button:
        kind = _Counter if channel.mode == "count" else _Button
        return kind(k, channel.invert, self)

    def feed(self, data: Sequence[int], values: Values, stamps: NDArray[np.int64], now: int) -> bool:
        """Take one report; True if it carried channels."""
        report = self._reports.get(data[0] if self._numbered else 0) if data else None
        if report is None:
            self.counts.other += 1
            return False
        if len(data) < report.length:
            self.counts.short += 1
            return False
        number = int.from_bytes(bytes(data[: report.length]), "little")
        changed = number ^ report.last if report.seen else -1
        if changed:
            report.last = number
            for bits, shift, mask, sign, channel, shape, take in report.rows:
                if changed & bits:
                    raw = number >> shift & mask
                    if raw & sign:
                        raw -= mask + 1
                    if shape is not None:
                        values[channel] = shape(raw)
                    else:
                        take(raw, values, now)
            if changed & report.switch_bits:
                _follow(report.switches, number, changed, values, now)
        if report.steps:
            _follow(report.steps, number, -1, values, now)
        stamps[report.stamped] = now
        report.seen = True
        self.counts.reports += 1
        return True

    def renew(self, stamps: NDArray[np.int64], now: int) -> bool:
        """Say that everything heard so far still holds; False if nothing was heard yet."""
        any_seen = False
        for report in self._reports.values():
            if report.seen:
                stamps[report.stamped] = now
                any_seen = True
        return any_seen

    def release(self, values: Values, now: int) -> bool:
        """Let go of buttons that have been pressed for long enough by now; True if there were any."""
        due = [button for button, when in self._held.items() if when <= now] if self._held else []
        for button in due:
            del self._held[button]
            values[button.channel] = button.off
        return bool(due)

    def next_release(self) -> int | None:
        """When `release` has something to do."""
        return min(self._held.values()) if self._held else None

    def hold(self, button: _Button, due: int) -> None:
        self._held[button] = due

    def let_go(self, button: _Button) -> None:
        self._held.pop(button, None)


class _Button:
    """A switch. A press that is over too soon is held, so that the tick does not miss it."""

    def __init__(self, channel: int, invert: bool, decoder: Decoder) -> None:
        self.channel = channel
        self.on, self.off = (0.0, 1.0) if invert else (1.0, 0.0)
        self.decoder = decoder
        self.pressed: bool | None = None
        self.since = 0

    def set(self, pressed: bool, values: Values, now: int) -> None:
        if pressed == self.pressed:
            return
        first, self.pressed = self.pressed is None, pressed
        if pressed:
            self.since = now
            self.decoder.counts.presses += not first
            self.decoder.let_go(self)
            self.press(values, first)
        elif not first and now < self.since + self.decoder.press_ns:
            self.decoder.hold(self, self.since + self.decoder.press_ns)
        else:
            values[self.channel] = self.off

    def press(self, values: Values, first: bool) -> None:
        values[self.channel] = self.on


class _Counter(_Button):
    """Counts presses: however short, none is lost. One that was already pressed at the first report does not count."""

    def set(self, pressed: bool, values: Values, now: int) -> None:
        if pressed and self.pressed is False:
            values[self.channel] += 1.0
            self.decoder.counts.presses += 1
        self.pressed = pressed


class _Array:
    """A list of what is pressed: each number points at a usage, numbers out of range at none."""

    def __init__(self, f: Field) -> None:
        self.field = f
        self.buttons: list[tuple[int, _Button]] = []

    def add(self, usage: int, button: _Button) -> None:
        self.buttons.append((self.field.low + self.field.usages.index(usage), button))

    def take(self, whole: int, values: Values, now: int) -> None:
        f = self.field
        mask, sign = (1 << f.size) - 1, 1 << (f.size - 1) if f.is_signed else 0
        there = {whole >> k * f.size & mask for k in range(f.count)}
        there = {n - mask - 1 if n & sign else n for n in there}
        for index, button in self.buttons:
            button.set(index in there and index <= f.high, values, now)


def _follow(rows: list[_Row], number: int, changed: int, values: Values, now: int) -> None:
    """Do what the rows say whose bits have changed."""
    for row in rows:
        if changed & row.bits:
            raw = number >> row.shift & row.mask
            row.take(raw - (row.mask + 1) if raw & row.sign else raw, values, now)


def _nothing(raw: int, values: Values, now: int) -> None:
    """The action of an axis, which has a shape instead."""


def _unless_null(k: int, shape: Callable[[int], float], f: Field) -> Take:
    def take(raw: int, values: Values, now: int) -> None:
        """Out of its range, such a field says that it has nothing to say."""
        if f.low <= raw <= f.high:
            values[k] = shape(raw)

    return take


def _switch(button: _Button, f: Field) -> Take:
    threshold = (f.low + f.high) / 2

    def take(raw: int, values: Values, now: int) -> None:
        button.set(raw > threshold, values, now)

    return take


def _sum(k: int, sign: float) -> Take:
    def take(raw: int, values: Values, now: int) -> None:
        values[k] += sign * raw

    return take


def _hat(k: int, channel: Channel, f: Field) -> Take:
    """One direction of a hat: its numbers go round clockwise from the top; out of range means let go.

    To the right is +1, and so is down: as with a stick, whose y grows towards the user.
    """
    positions = max(1, f.high - f.low + 1)
    sign = -1.0 if channel.invert else 1.0

    def take(raw: int, values: Values, now: int) -> None:
        if not f.low <= raw <= f.high:
            values[k] = 0.0
            return
        angle = 2 * math.pi * (raw - f.low) / positions
        part = math.sin(angle) if channel.pick.part == "x" else -math.cos(angle)
        values[k] = 0.0 if abs(part) < 0.38 else math.copysign(1.0, sign * part)

    return take


def _missing(channel: Channel, inputs: Sequence[Field]) -> str:
    there = [p.name for p in picks_of(inputs)]
    buttons = [n for n in there if n.startswith("button_")]
    shown = [n for n in there if not n.startswith("button_")]
    if buttons:
        shown.append(buttons[0] if len(buttons) == 1 else f"{buttons[0]} to {buttons[-1]}")
    place = "" if channel.report is None else f" in report {channel.report}"
    return f"{channel.name}: the device has no {channel.pick.name}{place}; it has {', '.join(shown) or 'nothing known'}"
