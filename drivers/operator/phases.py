"""Work phases of the virtual operator: in each, controls are held, or moved until a signal reaches its goal.

    stick = clamp(gain (to - seen), -most, most)      a channel in `go`
            value                                     one in `hold`
            its default                               any other: it is let go

A phase ends when all `go` are within their tolerance and all `until` hold and `for_s` has passed, or when `at_most_s`
has passed, which is counted. A goal with `next` moves on by that much each time round. No stick crosses its range
faster than in `over_s`. Whoever does not see (an eye is
missing, or what it sees is no number) lets go of everything, and the clock of the phase stands.

Nothing here knows threads or the time of day: `advance` is told how much time has passed and what is seen. A driver
calls it in real time, a test or a tool beside a plant in simulated time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from drivers.base import OptionError, channels_from
from drivers.operator.script import Complain, in_config, read_table
from hilnode.core.problems import Loc
from hilnode.core.signals import NAME, Signal, SignalError, nearest

KEYS = ("channels", "sees", "phases", "loop_from", "ramp_s")
PHASE_KEYS = ("name", "hold", "go", "until", "for_s", "at_most_s", "over_s")
GO_KEYS = ("see", "to", "gain", "most", "within", "next")
NEXT_KEYS = ("by", "rounds")
UNTIL_KEYS = ("above", "below")
OWN = ("phase", "cycle", "timeouts")
"""Channels that the operator has anyway: where it is, how often it was through, how many phases ended by time."""

RAMP = 0.2  # [s] from one end of a stick's range to the other: a quick hand
NEAR = 0.1  # of `most`: where the stick is nearly let go, its goal is reached
LONGEST = 1e6  # [s]
MOST_ROUNDS = 1_000_000
LARGEST = sys.float_info.max
TICK = 1e-9  # [s] sums of time steps miss a round number by less

A_PHASE = '{ name = "dig", hold = { brake = 1.0 }, for_s = 2.0 }'
A_GO = '{ see = "boom", to = 0.5, gain = 4.0 }'
A_NEXT = "{ by = -0.2, rounds = 5 }"
AN_UNTIL = "{ above = 0.9 }"


@dataclass(frozen=True)
class Go:
    """A channel on its way to a goal."""

    see: str
    to: float  # [unit of the eye]
    gain: float  # [1 / unit of the eye]
    most: float
    within: float  # [unit of the eye]
    by: float = 0.0  # [unit of the eye] how far the goal moves on each time round
    rounds: int = 1  # after so many it is back where it began

    def goal(self, cycle: int) -> float:
        return self.to + self.by * (cycle % self.rounds)

    def stick(self, seen: float, cycle: int) -> float:
        return min(max(self.gain * (self.goal(cycle) - seen), -self.most), self.most)

    def reached(self, seen: float, cycle: int) -> bool:
        return abs(self.goal(cycle) - seen) <= self.within


@dataclass(frozen=True)
class Until:
    """What has to be seen: above the one, below the other."""

    above: float = -math.inf
    below: float = math.inf

    def holds(self, seen: float) -> bool:
        return self.above < seen < self.below


@dataclass(frozen=True)
class Phase:
    """One phase. `at_most_s` is infinite where it may take as long as it likes."""

    name: str
    hold: Mapping[str, float]
    go: Mapping[str, Go]
    until: Mapping[str, Until]
    for_s: float
    at_most_s: float
    over_s: float

    def done(self, elapsed: float, seen: Mapping[str, float], cycle: int) -> bool:
        return (
            elapsed >= self.for_s - TICK
            and all(go.reached(seen[go.see], cycle) for go in self.go.values())
            and all(until.holds(seen[eye]) for eye, until in self.until.items())
        )


class Phases:
    """Phases one after another, from a table with the keys `KEYS`.

    `channels` and `eyes` are what it moves and what it sees. OptionError if the table makes no sense; `name` and
    `complain` are for the sentence.
    """

    def __init__(self, table: Mapping[str, Any], name: str = "operator", complain: Complain | None = None) -> None:
        read = _Reader(name, complain or in_config(name, table))
        read.known(table, (), KEYS, "is no key of phases")
        self.eyes = read.eyes(table.get("sees", {}))
        self.ramp_s = read.number(table, ("ramp_s",), RAMP, 0.0, LONGEST)
        found = read.channels(table)
        self.phases = read.phases(table, found, [s.name for s in self.eyes], self.ramp_s)
        self.channels = tuple(found.values())
        self.loop_from = read.loop_from(table, [p.name for p in self.phases])
        if self.loop_from is not None:
            read.looped(self.phases)
        elif any(go.rounds > 1 for phase in self.phases for go in phase.go.values()):
            raise read.wrong(("loop_from",), "is missing: a goal has next, but nothing ever comes round again")
        self._sight = [s.name for s in self.eyes]
        self.reset()

    @classmethod
    def from_file(cls, file: str, name: str = "operator") -> Phases:
        """The phases in a TOML file."""
        table, complain = read_table(name, file)
        return cls(table, name, complain)

    def reset(self) -> None:
        """Begin again with the first phase and all sticks let go."""
        self.values = {s.name: s.default for s in self.channels}
        self.cycle = 0  # times that the last phase has ended
        self.timeouts = 0  # phases that ended by `at_most_s`
        self.timed_out = ""  # the last one of them
        self.done = False  # the last phase has ended, and it does not begin again: what it does goes on
        self.blind: tuple[str, ...] = ()  # eyes that saw nothing
        self._at = 0
        self._elapsed = 0.0

    @property
    def now(self) -> Phase:
        """The phase it is in."""
        return self.phases[self._at]

    @property
    def number(self) -> int:
        """Its number, from 1 on."""
        return self._at + 1

    @property
    def elapsed(self) -> float:
        """How long it has been in it, and seen [s]."""
        return self._elapsed

    def advance(self, dt: float, seen: Mapping[str, float]) -> dict[str, float]:
        """What the channels are `dt` seconds later, when `seen` is what the eyes see."""
        self.blind = tuple(eye for eye in self._sight if not math.isfinite(seen.get(eye, math.nan)))
        if self.blind:
            return self._move(dt, {}, self.ramp_s)
        self._elapsed += max(dt, 0.0)
        if not self.done:
            self._turn(seen)
        phase = self.now
        goals = dict(phase.hold) | {channel: go.stick(seen[go.see], self.cycle) for channel, go in phase.go.items()}
        return self._move(dt, goals, phase.over_s)

    def _turn(self, seen: Mapping[str, float]) -> None:
        """Go on to the next phase if this one is over."""
        phase = self.now
        if not phase.done(self._elapsed, seen, self.cycle):
            if self._elapsed < phase.at_most_s - TICK:
                return
            self.timeouts += 1
            self.timed_out = phase.name
        if self._at + 1 < len(self.phases):
            self._at += 1
        else:
            self.cycle += 1
            if self.loop_from is None:
                self.done = True
                return
            self._at = self.loop_from
        self._elapsed = 0.0

    def _move(self, dt: float, goals: Mapping[str, float], over: float) -> dict[str, float]:
        """All channels towards their goals, those without one to their defaults."""
        for s in self.channels:
            goal = min(max(goals.get(s.name, s.default), s.low), s.high)
            was = self.values[s.name]
            step = (s.high - s.low) * max(dt, 0.0) / over if over > 0 else math.inf
            self.values[s.name] = goal if abs(goal - was) <= step else was + math.copysign(step, goal - was)
        return dict(self.values)


class _Reader:
    """Reads the table; every complaint says where, what was given and what is allowed."""

    def __init__(self, name: str, complain: Complain) -> None:
        self.name = name
        self._complain = complain
        self._phase = ""  # the one being read

    def wrong(self, loc: Loc, what: str) -> OptionError:
        return self._complain(loc, f"{what} (phase {self._phase!r})" if self._phase else what)

    # -- pieces -------------------------------------------------------------------------------------------------------

    def table(self, given: Any, loc: Loc, example: str) -> Mapping[str, Any]:
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise self.wrong(loc, f"must be a table such as {example}")
        return given

    def known(self, table: Mapping[str, Any], loc: Loc, keys: tuple[str, ...], what: str) -> None:
        for key in self.table(table, loc, f"{keys[0]} = ..."):
            if key not in keys:
                raise self.wrong((*loc, key), f"{what}: {nearest(key, keys)} (it has {', '.join(keys)})")

    def number(self, table: Mapping[str, Any], loc: Loc, default: float, low: float, high: float) -> float:
        """A number of a table; the last part of `loc` is its key."""
        key = str(loc[-1])
        if key not in table:
            return default
        value = table[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            allowed = "a finite number" if high == LARGEST else f"a number from {low:g} to {high:g}"
            raise self.wrong(loc, f"must be {allowed}")
        return float(value)

    def any_number(self, table: Mapping[str, Any], loc: Loc) -> float:
        return self.number(table, loc, math.nan, -LARGEST, LARGEST)

    # -- what is moved and seen -----------------------------------------------------------------------------------

    def eyes(self, given: Any) -> tuple[Signal, ...]:
        example = '{ boom = "rad" }: channel = "unit"'
        eyes = []
        for eye, unit in self.table(given, ("sees",), example).items():
            if not isinstance(unit, str):
                raise self.wrong(("sees", eye), f"must be a unit in quotes, such as {example}")
            if not NAME.fullmatch(eye):
                raise self.wrong(("sees", eye), f"{eye!r} is no name of a channel: {LIKE_A_NAME}")
            eyes.append(Signal(eye, unit, doc="what the operator sees"))
        return tuple(eyes)

    def channels(self, table: Mapping[str, Any]) -> dict[str, Signal]:
        """Those that are declared; without any, phases make theirs as they name them."""
        found = {}
        for s in channels_from(self.name, "channels", table.get("channels", [])):
            if s.name in OWN:
                raise self.wrong(("channels",), f"{s.name!r} is one that every operator with phases has by itself")
            if math.isinf(s.low) and math.isinf(s.high):
                try:
                    s = replace(s, low=-1.0, high=1.0)
                except SignalError as error:
                    raise self.wrong(("channels",), f"{error}; low and high change that") from error
            elif not math.isfinite(s.high - s.low):
                raise self.wrong(("channels",), f"{s.name!r} needs both ends of its range: low and high")
            found[s.name] = s
        self._fixed = bool(found)
        return found

    def channel(self, name: str, loc: Loc, found: dict[str, Signal]) -> Signal:
        if name in OWN:
            raise self.wrong(loc, f"{name!r} tells how the operator is doing and cannot be moved")
        if name not in found:
            if self._fixed:
                raise self.wrong(loc, f"{name!r} is not among the channels: {nearest(name, list(found))}")
            if not NAME.fullmatch(name):
                raise self.wrong(loc, f"{name!r} is no name of a channel: {LIKE_A_NAME}")
            found[name] = Signal(name, low=-1.0, high=1.0)
        return found[name]

    # -- phases ---------------------------------------------------------------------------------------------------

    def phases(
        self, table: Mapping[str, Any], found: dict[str, Signal], eyes: list[str], ramp: float
    ) -> tuple[Phase, ...]:
        given = table.get("phases")
        if not isinstance(given, list) or not given:
            raise self.wrong(("phases",), f"must be a list of one phase or more, such as {A_PHASE}")
        phases: list[Phase] = []
        for k, item in enumerate(given):
            phase = self.phase(item, ("phases", k), found, eyes, ramp)
            if phase.name in (p.name for p in phases):
                raise self.wrong(("phases", k, "name"), "two phases have this name")
            if k + 1 < len(given):
                self.ends(phase, k)
            phases.append(phase)
            self._phase = ""
        if not found:
            raise self.wrong(("phases",), f"move nothing: name channels in hold or go, such as {A_PHASE}")
        return tuple(phases)

    def phase(self, item: Any, loc: Loc, found: dict[str, Signal], eyes: list[str], ramp: float) -> Phase:
        table = self.table(item, loc, A_PHASE)
        name = table.get("name")
        if not isinstance(name, str) or not name.strip():
            raise self.wrong((*loc, "name"), f"must be the phase's name, as in {A_PHASE}")
        self._phase = name
        self.known(table, loc, PHASE_KEYS, "is no key of a phase")
        hold = self.holds(table.get("hold", {}), (*loc, "hold"), found)
        go = self.goes(table.get("go", {}), (*loc, "go"), found, eyes)
        if twice := [channel for channel in go if channel in hold]:
            raise self.wrong((*loc, "go", twice[0]), "is in hold too: a channel is held or goes somewhere")
        until = self.untils(table.get("until", {}), (*loc, "until"), eyes)
        for_s = self.number(table, (*loc, "for_s"), 0.0, 0.0, LONGEST)
        at_most_s = self.number(table, (*loc, "at_most_s"), math.inf, 0.001, LONGEST)
        if "at_most_s" in table and not (go or until):
            raise self.wrong((*loc, "at_most_s"), "there is no go and no until that it could cut short: write for_s")
        if for_s > at_most_s:
            raise self.wrong((*loc, "for_s"), f"must not be longer than at_most_s = {at_most_s:g}")
        over_s = self.number(table, (*loc, "over_s"), ramp, 0.0, LONGEST)
        return Phase(name, hold, go, until, for_s, at_most_s, over_s)

    def holds(self, given: Any, loc: Loc, found: dict[str, Signal]) -> dict[str, float]:
        hold = {}
        for name in (table := self.table(given, loc, "{ brake = 1.0 }")):
            channel = self.channel(name, (*loc, name), found)
            hold[name] = value = self.any_number(table, (*loc, name))
            if not channel.low <= value <= channel.high:
                raise self.wrong(
                    (*loc, name),
                    f"must be from {channel.low:g} to {channel.high:g}, the range of {name}; channels = [...] says "
                    "another one",
                )
        return hold

    def goes(self, given: Any, loc: Loc, found: dict[str, Signal], eyes: list[str]) -> dict[str, Go]:
        go = {}
        for name, item in self.table(given, loc, f'{{ "left.y" = {A_GO} }}').items():
            here = (*loc, name)
            channel = self.channel(name, here, found)
            table = self.table(item, here, A_GO)
            self.known(table, here, GO_KEYS, "is no key of go")
            for key in ("see", "to", "gain"):
                if key not in table:
                    raise self.wrong(here, f"has no {key}: {A_GO}")
            see = table["see"]
            if not isinstance(see, str) or see not in eyes:
                raise self.wrong((*here, "see"), f"must be one of sees: {nearest(str(see), eyes)}")
            to, gain = self.any_number(table, (*here, "to")), self.number(table, (*here, "gain"), 0.0, -1e9, 1e9)
            if abs(gain) < 1e-9:
                raise self.wrong((*here, "gain"), "must not be zero: how far the stick moves for one unit of error")
            reach = max(abs(channel.low), abs(channel.high))
            most = self.number(table, (*here, "most"), reach, 1e-9, 1e9)
            within = self.number(table, (*here, "within"), NEAR * most / abs(gain), 0.0, 1e9)
            by, rounds = self.next(table, (*here, "next"))
            go[name] = Go(see, to, gain, most, within, by, rounds)
        return go

    def next(self, table: Mapping[str, Any], loc: Loc) -> tuple[float, int]:
        """How far a goal moves on each time round, and after how many rounds it begins anew."""
        if "next" not in table:
            return 0.0, 1
        given = self.table(table["next"], loc, A_NEXT)
        self.known(given, loc, NEXT_KEYS, "is no key of next")
        for key in NEXT_KEYS:
            if key not in given:
                raise self.wrong(loc, f"has no {key}: {A_NEXT}")
        rounds = given["rounds"]
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 < rounds <= MOST_ROUNDS:
            raise self.wrong((*loc, "rounds"), f"must be a whole number from 2 to {MOST_ROUNDS}")
        return self.number(given, (*loc, "by"), 0.0, -1e9, 1e9), rounds

    def untils(self, given: Any, loc: Loc, eyes: list[str]) -> dict[str, Until]:
        until = {}
        for eye, item in self.table(given, loc, f"{{ fill = {AN_UNTIL} }}").items():
            here = (*loc, eye)
            if eye not in eyes:
                raise self.wrong(here, f"{eye!r} is not one of sees: {nearest(eye, eyes)}")
            table = self.table(item, here, AN_UNTIL)
            self.known(table, here, UNTIL_KEYS, "is no key of until")
            if not table:
                raise self.wrong(here, f"must have above or below, as in {AN_UNTIL}")
            limits = {key: self.any_number(table, (*here, key)) for key in table}
            until[eye] = Until(**limits)
            if until[eye].above >= until[eye].below:
                raise self.wrong((*here, "above"), f"must be less than below = {until[eye].below:g}")
        return until

    def ends(self, phase: Phase, k: int) -> None:
        """A phase after which another one comes must have something that takes time."""
        if not (phase.go or phase.until or phase.for_s > 0):
            raise self.wrong(("phases", k), "is over before it began: give it for_s, go or until")

    def loop_from(self, table: Mapping[str, Any], names: list[str]) -> int | None:
        if "loop_from" not in table:
            return None
        name = table["loop_from"]
        if not isinstance(name, str) or name not in names:
            raise self.wrong(("loop_from",), f"must be the name of a phase: {nearest(str(name), names)}")
        return names.index(name)

    def looped(self, phases: tuple[Phase, ...]) -> None:
        self._phase = phases[-1].name
        self.ends(phases[-1], len(phases) - 1)


LIKE_A_NAME = "lower-case words joined by dots, such as 'stick.x'"
