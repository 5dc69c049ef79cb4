"""operator: a virtual operator that plays a script, or works in phases by feedback from the plant.

It is what moves the sticks when nobody is there: in a demonstration, a regression test, a run without hardware. A
script (waypoints, stick movements, or a recorded session) begins when the driver is opened. It ends with the last
point, whose values stay, or begins again.

Phases (`drivers/operator/phases.py`) close the loop: what the node writes to the operator's outputs is what it sees.

    plant -> tick -> out-mailbox -> write: the eyes -> Phases.advance -> read: the sticks -> in-mailbox -> tick -> plant
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, OptionError
from drivers.operator import phases, script
from drivers.operator.phases import Phases
from drivers.operator.script import SHAPES, Script, from_csv, from_table, in_config, read_table
from drivers.options import Options
from hilnode.core.signals import Signal, nearest

PLAYS = ("points", "moves", "shape", "loop", "speed", "start_s", "time", "columns")  # what phases have no use for
LOOKS = ("sees", "loop_from", "ramp_s")  # and what points and moves have none for
KEYS = ("file", "channels", *PLAYS, "phases", *LOOKS, "every_ms")
IN_A_FILE = ("channels", "points", "moves", "phases", *LOOKS)

BLIND = 200_000_000  # [ns] without a write, after which an operator does not see any more
AWAKE = 1_000_000_000  # [ns] that the first write may take: a node that starts is busy
OWN = (
    Signal("phase", doc="number of the phase, from 1 on"),
    Signal("cycle", doc="times that the last phase has ended"),
    Signal("timeouts", doc="phases that ended by at_most_s"),
)


class PhaseTimeout(Exception):
    """A phase was not over after its `at_most_s`: the stick does not move the machine, or the goal is out of reach."""


class Operator(Driver):
    """Options: see docs/virtual-operator.md."""

    kind = "operator"
    files = ("file",)
    external = False

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        o = Options(name, options, KEYS)
        self.script = Script((), ())
        self.phases: Phases | None = None
        self._every = round(o.number("every_ms", 1.0, 0.1, 100.0) * 1e6)
        self._began = self._due = self._last = 0  # [ns]
        self._sight: tuple[int, bool, dict[str, float]] = (0, False, {})  # when [ns], whether live, what; whole or not
        self._works = False
        self._take(o)
        if self.phases:
            self.inputs, self.outputs = (*self.phases.channels, *OWN), self.phases.eyes
        else:
            self.inputs = self.script.channels
        self._loop = o.flag("loop", False)
        self._speed = o.number("speed", 1.0, 0.001, 1000.0)
        self._start = o.number("start_s", 0.0, 0.0, 1e9)
        if self._loop and self.script.length <= self._start:
            raise o.wrong("loop", f"the script ends at {self.script.length:g} s: there is nothing to play again")

    def _take(self, o: Options) -> None:
        """The script or the phases, from the config or from a file of their own."""
        table, complain = o.given, in_config(self.name, o.given)
        shape = o.choice("shape", "linear", {s: s for s in SHAPES})
        columns = _columns(o)
        if o.has("file"):
            if twice := [key for key in IN_A_FILE if o.has(key)]:
                raise OptionError(f"drivers.{self.name}.{twice[0]}: the script is in the file; give one or the other")
            file = o.text("file", "")
            if not file.endswith(".toml"):
                self.script = from_csv(self.name, file, shape, o.text("time", "time"), columns)
                return
            table, complain = read_table(self.name, file)
            known = phases.KEYS if "phases" in table else script.KEYS
            for key in table:
                if key not in known:
                    raise complain((key,), f"is not known here: {nearest(key, (*known, 'phases'))}")
            if columns:
                raise OptionError(f"drivers.{self.name}.columns: is for a CSV file, {file} is TOML")
        if "phases" in table:
            if useless := [key for key in PLAYS if o.has(key)]:
                raise o.wrong(useless[0], "has no meaning for phases; loop_from names the phase to begin again with")
            self.phases = Phases({key: table[key] for key in phases.KEYS if key in table}, self.name, complain)
        else:
            if useless := [key for key in LOOKS if o.has(key)]:
                raise o.wrong(useless[0], "is for an operator with phases = [...]")
            self.script = from_table(self.name, table, shape, complain)

    def open(self) -> None:
        self._began = self._due = self._last = time.monotonic_ns()
        self._sight = (self._began + AWAKE, False, {})
        self._works = False
        if self.phases:
            self.phases.reset()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        now = time.monotonic_ns()
        self._due = max(self._due + self._every, now)
        time.sleep((self._due - now) * 1e-9)
        now = time.monotonic_ns()
        stamps[:] = now
        if self.phases:
            self._work(self.phases, now, values)
        else:
            t = self.moment((now - self._began) * 1e-9)
            for k, track in enumerate(self.script.tracks):
                values[k] = track.at(t)
        return True

    def write(self, values: NDArray[np.float64]) -> None:
        names = (s.name for s in self.outputs)
        self._sight = (time.monotonic_ns(), self.live, dict(zip(names, values.tolist(), strict=True)))

    def moment(self, elapsed: float) -> float:
        """Where in the script one is, some seconds after it began."""
        t = self._start + elapsed * self._speed
        if self._loop and t >= self.script.length:
            return self._start + (t - self._start) % (self.script.length - self._start)
        return t

    # -- phases ---------------------------------------------------------------------------------------------------

    def _work(self, phases: Phases, now: int, values: NDArray[np.float64]) -> None:
        """On in the phases; PhaseTimeout, which the health counts and tells, when one took too long."""
        dt, self._last = (now - self._last) * 1e-9, now
        timeouts, phase = phases.timeouts, phases.now
        seen = self._look(now) if self.outputs else {}
        sticks = phases.advance(dt, seen)
        values[:] = (*sticks.values(), phases.number, phases.cycle, phases.timeouts)
        if seen and phases.blind:
            self.trouble = f"what it sees is no number: {', '.join(phases.blind)}"
        if phases.timeouts > timeouts:
            raise PhaseTimeout(f"phase {phase.name!r} was not over after {phase.at_most_s:g} s")

    def _look(self, now: int) -> dict[str, float]:
        """What it sees: nothing while the node does not run, or writes nothing; the latter is trouble."""
        when, live, seen = self._sight
        self.trouble = ""
        if self.driven is not None and (shut := [s.name for s in self.outputs if s.name not in self.driven]):
            self.trouble = (
                f"it does not see {', '.join(shut)}: nothing is written there; "
                f'[signals.outputs."{self.name}.{shut[0]}"] says what it is to see'
            )
            return {}
        if now - when > BLIND:
            self.trouble = f"it sees nothing: not written for {BLIND * 1e-6:.0f} ms (period_ms must be well below that)"
            return {}
        if not live:
            self._works = False
            return {}
        if not self._works and self.phases:  # the node runs, for the first time or again: with the first phase
            self.phases.reset()
            self._works = True
        return seen


def _columns(options: Options) -> dict[str, str]:
    given = options.given.get("columns", {})
    if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
        raise options.wrong("columns", 'must be a table of channel = "column", such as { x = "stick x" }')
    return dict(given)
