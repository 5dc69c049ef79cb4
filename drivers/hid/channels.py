"""Input channels of a HID device: their config and calibration, and how a raw number becomes a value.

A channel is a usage and what to make of it. The same keys stand in a config and in a calibration file; where both say
something of the same usage, the config wins.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivers.base import OptionError
from drivers.hid.report import Field
from drivers.hid.usages import FORM, HAT, PEDALS, Pick, pick_from
from drivers.options import Options
from hilnode.core.signals import Signal, SignalError

SHAPE = ("low", "centre", "high", "dead", "expo", "invert", "one_sided")
KEYS = ("usage", "report", "as", "unit", *SHAPE)
MODES = ("axis", "button", "count", "sum", "raw", "physical")
ENDLESS = ("count", "sum", "raw", "physical")
FARTHEST = 2**32


@dataclass(frozen=True, slots=True)
class Channel:
    """One input."""

    name: str
    pick: Pick
    report: int | None = None
    mode: str = "axis"
    unit: str = ""
    low: float | None = None  # [counts of the device]; None: what its descriptor says
    centre: float | None = None
    high: float | None = None
    dead: float = 0.0  # as a share of the way
    expo: float = 0.0
    invert: bool = False
    one_sided: bool = False

    @property
    def signal(self) -> Signal:
        if self.mode in ENDLESS:
            return Signal(self.name, unit=self.unit)
        whole = self.mode == "button" or (self.one_sided and self.mode == "axis")
        return Signal(self.name, unit=self.unit, low=0.0 if whole else -1.0, high=1.0)


def channels_of(name: str, given: Any, measured: Mapping[str, Any] | None) -> tuple[Channel, ...]:
    """The channels of a driver, from its option `channels` and a calibration file's; either may be missing."""
    known = {pick_from(entry["usage"]): entry for entry in (measured or {}).values()}
    if given is None:
        return tuple(_channel(f"{name}.channels", key, entry, known) for key, entry in (measured or {}).items())
    if isinstance(given, (list, tuple)):
        given = {_name_of(name, item): item for item in given}
    if not isinstance(given, Mapping) or not given:
        raise OptionError(
            f'drivers.{name}.channels = {given!r}: must be a list of usages, ["x", "button 1"], '
            'or a table, { boom = "x", horn = "button 1" }'
        )
    return tuple(_channel(f"{name}.channels", key, entry, known) for key, entry in given.items())


def _name_of(name: str, item: Any) -> str:
    try:
        if not isinstance(item, str):
            raise ValueError(f"must be {FORM}")
        return pick_from(item).channel
    except ValueError as error:
        raise OptionError(f"drivers.{name}.channels: {item!r}: {error}") from error


def _channel(where: str, name: str, given: Any, known: Mapping[Pick, Mapping[str, Any]]) -> Channel:
    table = {"usage": given} if isinstance(given, str) else given
    o = Options(f"{where}.{name}", table, KEYS)
    if not isinstance(table.get("usage"), str):
        raise o.wrong("usage", f"must be {FORM}")
    try:
        pick = pick_from(table["usage"])
        Signal(name)
    except SignalError as error:
        raise OptionError(f"drivers.{where}: {error}") from error
    except ValueError as error:
        raise o.wrong("usage", str(error)) from error
    o = Options(o.name, {k: v for k, v in known.get(pick, {}).items() if k != "usage"} | dict(table))
    return _checked(o, name, pick)


def _checked(o: Options, name: str, pick: Pick) -> Channel:
    usual = "button" if pick.is_switch else "axis"
    mode = o.choice("as", usual, {m: m for m in MODES})
    if pick.usage == HAT and mode != "axis":
        raise o.wrong("as", "a hat has two directions, hat_x and hat_y, each -1, 0 or 1: leave `as` out")
    ends = [o.number(key, 0, -FARTHEST, FARTHEST) if o.has(key) else None for key in ("low", "centre", "high")]
    there = [end for end in ends if end is not None]
    if any(a >= b for a, b in itertools.pairwise(there)):
        raise OptionError(f"drivers.{o.name}: low, centre and high must rise in this order, they are {there}")
    return Channel(
        name,
        pick,
        report=o.whole("report", 0, 0, 255) if o.has("report") else None,
        mode=mode,
        unit=o.text("unit", ""),
        low=ends[0],
        centre=ends[1],
        high=ends[2],
        dead=o.number("dead", 0.0, 0.0, 0.9),
        expo=o.number("expo", 0.0, 0.0, 1.0),
        invert=o.flag("invert", False),
        one_sided=o.flag("one_sided", pick.usage in PEDALS) and mode == "axis",
    )


def shape_of(channel: Channel, field: Field) -> Callable[[int], float]:
    """From the device's number to the channel's value; ValueError if the range of the numbers is none."""
    if channel.mode == "raw":
        return float
    if channel.mode == "physical":
        factor, offset = field.scale
        return lambda raw: raw * factor + offset
    low = float(field.low) if channel.low is None else channel.low
    high = float(field.high) if channel.high is None else channel.high
    centre = (low + high) / 2 if channel.centre is None else channel.centre
    if not low < high or (not channel.one_sided and not low < centre < high):
        raise ValueError(f"its range is low = {low:g}, centre = {centre:g}, high = {high:g}, which must rise")
    if channel.one_sided:
        rest, end = (high, low) if channel.invert else (low, high)
        return _pedal(rest + channel.dead * (end - rest), end, channel.expo)
    return _stick(low, centre, high, channel.dead, channel.expo, -1.0 if channel.invert else 1.0)


def _pedal(rest: float, end: float, expo: float) -> Callable[[int], float]:
    """0 at rest, 1 at the end, whichever of them is the larger number."""
    slope, linear = 1.0 / (end - rest), 1.0 - expo

    def value(raw: int) -> float:
        v = (raw - rest) * slope
        if v <= 0.0:
            return 0.0
        return v * (linear + expo * v * v) if v < 1.0 else 1.0

    return value


def _stick(low: float, centre: float, high: float, dead: float, expo: float, sign: float) -> Callable[[int], float]:
    """-1 at one end, 0 around the centre, 1 at the other end; bent towards v³ by `expo` for a calm middle."""
    above, below = centre + dead * (high - centre), centre - dead * (centre - low)
    rise, fall, linear = 1.0 / (high - above), 1.0 / (below - low), 1.0 - expo

    def value(raw: int) -> float:
        if raw > above:
            v = min((raw - above) * rise, 1.0)
        elif raw < below:
            v = max((raw - below) * fall, -1.0)
        else:
            return 0.0
        return sign * v * (linear + expo * v * v)

    return value


@dataclass(frozen=True)
class Calibration:
    """What a calibration file says: of which device it is, and its channels."""

    vendor: int
    product: int
    channels: Mapping[str, Mapping[str, Any]]


def load_calibration(name: str, path: str) -> Calibration:
    """The file that `hilnode calibrate` has written; OptionError says what is wrong with it."""
    said = f"drivers.{name}.calibration = {path!r}"
    try:
        document = tomllib.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError as error:
        raise OptionError(f"{said}: there is no such file; `hilnode calibrate {name}` writes it") from error
    except (OSError, ValueError) as error:
        raise OptionError(f"{said}: cannot be read: {error}") from error
    device, channels = document.get("device", {}), document.get("channels")
    if not isinstance(device, Mapping) or not isinstance(channels, Mapping) or not channels:
        raise OptionError(f"{said}: has no channels; `hilnode calibrate {name}` writes it anew")
    try:
        for key, entry in channels.items():
            _channel(f"{name}.calibration", key, entry, {})
        return Calibration(int(device.get("vendor", 0)), int(device.get("product", 0)), channels)
    except (OptionError, TypeError, ValueError) as error:
        raise OptionError(f"{said}: {error}") from error
