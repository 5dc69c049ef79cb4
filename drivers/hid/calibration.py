"""Calibration of a HID device's axes: rest position, range and noise, and the file that keeps them.

The device is left alone, moved to all its ends, and left alone again. What both rests differ by is the play of its
springs, and becomes dead zone together with the noise.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivers.hid.channels import Channel, channels_of
from drivers.hid.report import Descriptor, Kind
from drivers.hid.usages import HAT, find, pick_from, picks_of

MOVED = 0.1  # an axis that covers less of its range than this was not moved
AT_AN_END = 0.1  # an axis that rests this close to an end is a pedal
MARGIN = 0.01  # of the way: so much before the measured end a value is full, so that it can be reached again
SAFETY = 1.5  # the dead zone is the noise seen, times this
WIDEST_DEAD = 0.3
CHOSEN = ("expo", "invert")  # what no measurement tells: the curve, and which way is forward


@dataclass
class Axis:
    """What has been seen of one axis [counts]."""

    channel: Channel
    low: float  # by the descriptor
    high: float
    rests: list[list[float]] = field(default_factory=lambda: [[]])
    least: float = math.inf
    most: float = -math.inf

    def see(self, raw: float, resting: bool) -> None:
        if resting:
            self.rests[-1].append(raw)
        self.least, self.most = min(self.least, raw), max(self.most, raw)

    @property
    def moved(self) -> bool:
        return self.most - self.least >= MOVED * (self.high - self.low)

    def shape(self, one_sided: bool | None) -> dict[str, Any]:
        """The keys of its channel; none if it was not moved. `one_sided` is what the config says, if it does."""
        samples = [raw for rest in self.rests for raw in rest]
        if not self.moved or not samples:
            return {}
        centre = statistics.fmean([statistics.median(rest) for rest in self.rests if rest])
        noise = max(abs(raw - centre) for raw in samples)
        way = self.most - self.least
        low, high = self.least + MARGIN * way, self.most - MARGIN * way
        from_low, from_high = centre - self.least, self.most - centre
        at_end = min(from_low, from_high) < AT_AN_END * way
        if at_end if one_sided is None else one_sided:
            low, high = (low, centre) if from_high < from_low else (centre, high)
            return _tidy(low=low, high=high, dead=noise / (high - low), one_sided=True, invert=from_high < from_low)
        if at_end:  # the config wants both sides of something that rests at one: then its middle is the middle
            return _tidy(low=low, high=high, dead=0.0, one_sided=False)
        return _tidy(low=low, centre=centre, high=high, dead=noise / min(high - centre, centre - low), one_sided=False)


def _tidy(**keys: Any) -> dict[str, Any]:
    """Short numbers; the dead zone rounded up, so that rounding does not let the noise through."""
    dead = min(WIDEST_DEAD, math.ceil(SAFETY * keys["dead"] * 1000) / 1000)
    numbers = {k: round(keys[k], 1) for k in ("low", "centre", "high") if k in keys}
    return numbers | {"dead": dead} | {k: keys[k] for k in ("one_sided", "invert") if k in keys}


class Measurement:
    """All axes of a device, in the order of `channels`."""

    def __init__(
        self, descriptor: Descriptor, name: str, given: Any, earlier: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """`given` is the driver's option `channels`; without it, everything the device has.

        `earlier` are the channels of the calibration file that will be replaced: what cannot be measured is kept.
        """
        inputs = descriptor.of(Kind.INPUT)
        self._given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        self._earlier = {pick_from(entry["usage"]): entry for entry in (earlier or {}).values()}
        everything = {pick.channel: {"usage": pick.name} for pick in picks_of(inputs)}
        self.channels = channels_of(name, given or everything, None) if given or everything else ()
        self.axes: dict[str, Axis] = {}
        for c in self.channels:
            f = find(inputs, c.pick, c.report)
            if f is not None and c.mode == "axis" and c.pick.usage != HAT and not f.is_array and not f.is_relative:
                self.axes[c.name] = Axis(c, f.low, f.high)

    @property
    def raw_channels(self) -> dict[str, dict[str, Any]]:
        """The option `channels` of a driver that reads the axes as they come."""
        where = {k: a.channel.report for k, a in self.axes.items()}
        return {
            k: {"usage": a.channel.pick.name, "as": "raw"} | ({} if where[k] is None else {"report": where[k]})
            for k, a in self.axes.items()
        }

    def see(self, raws: Sequence[float], *, resting: bool) -> None:
        """One reading of all axes."""
        for axis, raw in zip(self.axes.values(), raws, strict=True):
            axis.see(float(raw), resting)

    def rest_again(self) -> None:
        """What rests from now on is another time of rest."""
        for axis in self.axes.values():
            axis.rests.append([])

    def unmoved(self) -> list[str]:
        return [name for name, axis in self.axes.items() if not axis.shape(None)]

    def result(self) -> dict[str, dict[str, Any]]:
        """The table `channels` of a calibration file."""
        return {c.name: self._entry(c) for c in self.channels}

    def _entry(self, c: Channel) -> dict[str, Any]:
        entry: dict[str, Any] = {"usage": c.pick.name}
        if c.report is not None:
            entry["report"] = c.report
        said = self._given.get(c.name)
        chosen = dict(self._earlier.get(c.pick, {})) | (dict(said) if isinstance(said, Mapping) else {})
        taste = {key: chosen[key] for key in CHOSEN if chosen.get(key)}
        if c.name in self.axes:
            one_sided = said.get("one_sided") if isinstance(said, Mapping) else None
            entry |= taste | self.axes[c.name].shape(one_sided)  # which way a pedal goes is measured
        elif "invert" in taste:
            entry["invert"] = True
        return entry


def write_calibration(
    path: Path, label: str, vendor: int, product: int, channels: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write the file, whole or not at all."""
    told = "".join(c if c.isprintable() else "?" for c in label)
    lines = [f"# Measured by `hilnode calibrate`: {told}. Counts are the device's own; dead is a share of the way."]
    lines += ["", "[device]", f"vendor = 0x{vendor:04x}", f"product = 0x{product:04x}"]
    for name, entry in channels.items():
        lines += ["", f"[channels.{json.dumps(name)}]" if "." in name else f"[channels.{name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text("\n".join(lines) + "\n", "utf-8")
    beside.replace(path)
