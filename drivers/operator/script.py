"""A script of the virtual operator: the value of each channel over time, from TOML or CSV.

A *track* is one channel's points in time and the way from each to the next: `linear`, `hold` (stays, then jumps) or
`smooth` (starts and ends gently, 3u^2 - 2u^3). Before its first point a channel has the value of the first, behind its
last that of the last. Complaints name the file with line and column, or the key where the script is in the config.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivers.base import OptionError, channels_from
from hilnode.core.problems import ConfigError, Loc, dotted, shown
from hilnode.core.signals import NAME, Signal, nearest
from hilnode.core.toml_source import locate, parse_toml, read_text

LARGEST = 64_000_000  # [bytes] of a file
SHAPES = ("linear", "hold", "smooth")
KEYS = ("channels", "points", "moves")
NO_SCRIPT = "has no script: give file, points = [{ t = 0.0, x = 0.0 }, ...], moves = [...] or phases = [...]"
A_MOVE = 'a movement is { channel = "x", at = 1.0, to = 0.5, over = 0.2 }'
HEADING = re.compile(r"(?P<name>[^\[]*?)\s*(?:\[(?P<unit>[^\]]*)\])?")

Complain = Callable[[Loc, str], OptionError]


@dataclass
class Track:
    """One channel. `shapes[k]` is the way from point k - 1 to point k."""

    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)

    def add(self, time: float, value: float, shape: str) -> None:
        self.times.append(time)
        self.values.append(value)
        self.shapes.append(shape)

    def at(self, t: float) -> float:
        """Its value at a time [s]."""
        k = bisect_right(self.times, t)
        if k == 0:
            return self.values[0]
        if k == len(self.times) or self.shapes[k] == "hold":
            return self.values[k - 1]
        u = (t - self.times[k - 1]) / (self.times[k] - self.times[k - 1])
        if self.shapes[k] == "smooth":
            u = u * u * (3.0 - 2.0 * u)
        return self.values[k - 1] + u * (self.values[k] - self.values[k - 1])


@dataclass(frozen=True)
class Script:
    """All channels and their tracks, in the same order."""

    channels: tuple[Signal, ...]
    tracks: tuple[Track, ...]

    @property
    def length(self) -> float:
        """When the last point of all is reached [s]."""
        return max(track.times[-1] for track in self.tracks)


def from_table(name: str, table: Mapping[str, Any], shape: str, complain: Complain) -> Script:
    """The script in the keys `KEYS` of a table; it may have others, which somebody else has looked at."""
    declared = {s.name: s for s in channels_from(name, "channels", table.get("channels", []))}
    tracks: dict[str, Track] = {channel: Track() for channel in declared}
    _take_points(table.get("points", []), tracks, shape, bool(declared), complain)
    pointed = {channel for channel, track in tracks.items() if track.times}
    _take_moves(table.get("moves", []), tracks, declared, pointed, shape, complain)
    if not tracks:
        raise complain((), NO_SCRIPT)
    for channel, signal in declared.items():
        if not tracks[channel].times:
            tracks[channel].add(0.0, signal.default, shape)
    return _made(name, tracks, declared, complain)


def read_table(name: str, file: str) -> tuple[dict[str, Any], Complain]:
    """What a TOML file says, and who complains about it: with its line."""
    text = _text(name, file)
    try:
        document = parse_toml(text, file)
    except ConfigError as error:
        raise OptionError(f"drivers.{name}.file: {error}") from error
    lines = locate(text)

    def complain(loc: Loc, what: str) -> OptionError:
        if not loc:
            return OptionError(f"{file}: {what}")
        line = next((lines[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in lines), 1)
        return OptionError(f"{file}:{line}: {dotted(loc)}{_written(document, loc)}: {what}")

    return document, complain


def in_config(name: str, options: Mapping[str, Any]) -> Complain:
    """Who complains about what stands in a driver's table: with its key."""

    def complain(loc: Loc, what: str) -> OptionError:
        where = f".{dotted(loc)}{_written(options, loc)}" if loc else ""
        return OptionError(f"drivers.{name}{where}: {what}")

    return complain


def _text(name: str, file: str) -> str:
    try:
        return read_text(Path(file), LARGEST)
    except ConfigError as error:
        raise OptionError(f"drivers.{name}.file: {error}") from error


def _written(table: Any, loc: Loc) -> str:
    """` = value`, where a value stands and is short."""
    for part in loc:
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return ""
    return "" if isinstance(table, (Mapping, list)) else f" = {shown(table)}"


# -- TOML ---------------------------------------------------------------------------------------------------------


def _made(name: str, tracks: Mapping[str, Track], declared: Mapping[str, Signal], complain: Complain) -> Script:
    channels = []
    for channel, track in tracks.items():
        signal = declared.get(channel) or Signal(channel, default=track.values[0])
        if outside := [v for v in track.values if not signal.low <= v <= signal.high]:
            raise complain(
                (), f"channel {channel}: {outside[0]:g} lies outside its range [{signal.low:g}, {signal.high:g}]"
            )
        channels.append(signal)
    return Script(tuple(channels), tuple(tracks.values()))


def _take_points(given: Any, tracks: dict[str, Track], shape: str, fixed: bool, complain: Complain) -> None:
    """Waypoints: tables with a time `t` and any of the channels."""
    for k, point in enumerate(_tables(given, "points", complain)):
        if "t" not in point:
            raise complain(("points", k), "has no time: write t = seconds")
        time = _number(point, ("points", k, "t"), complain)
        way = _shape(point, ("points", k, "shape"), shape, complain)
        for channel in (key for key in point if key not in ("t", "shape")):
            loc: Loc = ("points", k, channel)
            track = _track(tracks, channel, fixed, loc, complain)
            if track.times and time <= track.times[-1]:
                raise complain(("points", k, "t"), f"must be later than {track.times[-1]:g} s, the point before it")
            track.add(time, _number(point, loc, complain), way)


def _take_moves(
    given: Any,
    tracks: dict[str, Track],
    declared: Mapping[str, Signal],
    pointed: set[str],
    shape: str,
    complain: Complain,
) -> None:
    """Stick movements: from `at` on, within `over` seconds, to a value, from wherever the stick was."""
    known = ("channel", "at", "to", "over", "shape")
    for k, move in enumerate(_tables(given, "moves", complain)):
        for key in move:
            if key not in known:
                raise complain(("moves", k, key), f"is no key of a movement: {nearest(key, known)}")
        for key in ("channel", "at", "to"):
            if key not in move:
                raise complain(("moves", k), f"has no {key}: {A_MOVE}")
        channel = move["channel"]
        if not isinstance(channel, str):
            raise complain(("moves", k, "channel"), "must be the name of a channel")
        track = _track(tracks, channel, bool(declared), ("moves", k, "channel"), complain)
        if channel in pointed:
            raise complain(("moves", k, "channel"), "has points already; a channel has points or moves")
        begin, value = (_number(move, ("moves", k, key), complain) for key in ("at", "to"))
        over = _number(move, ("moves", k, "over"), complain) if "over" in move else 0.0
        if over < 0:
            raise complain(("moves", k, "over"), "must not be negative")
        if not track.times:
            track.add(min(0.0, begin), declared[channel].default if channel in declared else 0.0, "hold")
        if begin < track.times[-1]:
            raise complain(
                ("moves", k, "at"), f"begins before the last movement of {channel} ends, at {track.times[-1]:g} s"
            )
        way = _shape(move, ("moves", k, "shape"), shape, complain)
        if over > 0:
            track.add(begin, track.values[-1], "hold")
            track.add(begin + over, value, way)
        else:
            track.add(begin, value, "hold")


def _tables(given: Any, key: str, complain: Complain) -> list[Mapping[str, Any]]:
    if not isinstance(given, list):
        raise complain((key,), "must be a list of tables")
    for k, item in enumerate(given):
        if not isinstance(item, Mapping):
            raise complain((key, k), "must be a table")
    return given


def _track(tracks: dict[str, Track], channel: str, fixed: bool, loc: Loc, complain: Complain) -> Track:
    if channel not in tracks:
        if fixed:
            raise complain(loc, f"{channel!r} is not among the channels: {nearest(channel, list(tracks))}")
        if not NAME.fullmatch(channel):
            raise complain(
                loc, f"{channel!r} is no name of a channel: lower-case words joined by dots, such as 'stick.x'"
            )
        tracks[channel] = Track()
    return tracks[channel]


def _number(table: Mapping[str, Any], loc: Loc, complain: Complain) -> float:
    value = table[str(loc[-1])]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise complain(loc, "must be a finite number")
    return float(value)


def _shape(table: Mapping[str, Any], loc: Loc, default: str, complain: Complain) -> str:
    value = table.get("shape", default)
    if value not in SHAPES:
        raise complain(loc, f"must be one of {', '.join(SHAPES)}")
    return str(value)


# -- CSV ----------------------------------------------------------------------------------------------------------


def from_csv(name: str, file: str, shape: str, time: str, columns: Mapping[str, str]) -> Script:
    """Columns by name. An empty cell is no point of its channel; `columns` picks and renames."""
    text = _text(name, file)
    reader = csv.reader(text.split("\n"), skipinitialspace=True)
    heading = [HEADING.fullmatch(cell.strip()) for cell in next(reader, [])]
    names = [m["name"] if m else "" for m in heading]
    units = {m["name"]: m["unit"] or "" for m in heading if m}
    if time not in names:
        raise OptionError(
            f"{file}:1: there is no column {time!r}: {nearest(time, names)} (drivers.{name}.time names it)"
        )
    wanted = dict(columns) or {n: n for n in names if n and n != time}
    for channel, column in wanted.items():
        if column not in names:
            raise OptionError(f"{file}:1: there is no column {column!r} for {channel}: {nearest(column, names)}")
        if not NAME.fullmatch(channel):
            raise OptionError(
                f"{file}:1: column {names.index(column) + 1}: {channel!r} is no name of a channel: lower-case words "
                f'joined by dots, or give it one: columns = {{ x = "{column}" }}'
            )
    tracks = {channel: Track() for channel in wanted}
    places = {channel: names.index(column) for channel, column in wanted.items()}
    clock = names.index(time)
    last = -math.inf
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        now = _cell(file, reader.line_num, clock, row, time)
        if now <= last:
            raise OptionError(
                f"{file}:{reader.line_num}: column {clock + 1} ({time}) = {row[clock]}: must be later than {last:g}, "
                "the row before"
            )
        last = now
        for channel, place in places.items():
            if place < len(row) and row[place].strip():
                tracks[channel].add(now, _cell(file, reader.line_num, place, row, names[place]), shape)
    if empty := [channel for channel, track in tracks.items() if not track.times]:
        raise OptionError(f"{file}: column {empty[0]!r} has no values")
    declared = {c: Signal(c, units[wanted[c]], default=track.values[0]) for c, track in tracks.items()}
    return _made(name, tracks, declared, lambda _, what: OptionError(f"{file}: {what}"))


def _cell(file: str, line: int, place: int, row: Sequence[str], column: str) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise OptionError(f"{file}:{line}: column {place + 1} ({column}) = {shown(text)}: must be a finite number")
    return value
