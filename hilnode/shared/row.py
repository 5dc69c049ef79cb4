"""The row: what the tick says about itself, once per tick, in one fixed layout per run.

    word   0 .. HEADER-1     int64    tick, times [ns on the monotonic clock], flags: `Col`
           then              float64  inputs     as the plant took them
                             float64  ages       of those inputs [s]; 0 = made here, inf = never arrived
                             float64  outputs    as the plant gave them
                             float64  commands   as the devices were told
                             float64  poses      7 per body: position [m], quaternion w x y z

The `Schema` names every word. It is written once into every file and answered to every client, and its hash stands
in the shared-memory header, so that a reader with another idea of the layout is refused instead of fooled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

from hilnode.core.signals import Signal, check_unique


class Col(IntEnum):
    """Header words of a row. A time is in integer nanoseconds of CLOCK_MONOTONIC."""

    TICK = 0  # rows since the loop began; rises by one with every row, always
    STEP = 1  # plant steps done so far; simulated time is step x dt
    DEADLINE = 2  # when this tick was due
    WAKE = 3  # when it woke up
    START = 4  # plant called
    END = 5  # plant returned
    DONE = 6  # commands handed to the drivers
    PERIOD = 7  # measured: this wake minus the last one
    FLAGS = 8  # Flag
    STATE = 9  # State
    STATUS = 10  # what the plant returned; 0 is OK
    MISSED = 11  # deadlines given up just before this tick


HEADER = 12
POSE = 7


class State(IntEnum):
    """Where the node is in its life. Devices get live values in RUNNING only."""

    CONFIGURED = 0
    ARMED = 1
    RUNNING = 2
    TRIPPED = 3
    CLEARED = 4
    STOPPED = 5


class Flag(IntFlag):
    """What was special about one tick."""

    OVERRUN = 1  # its work ended after the next deadline
    GRACE = 2  # within the warm-up: an overrun here is written down but not held against the run
    CATCH_UP = 4  # ran at once, to make up for a missed deadline
    SLIPPED = 8  # the grid of deadlines was moved just before this tick
    PAUSED = 16  # the plant was not stepped
    STALE = 32  # at least one input was older than allowed and was replaced
    INVALID = 64  # at least one device delivered a value that is no number
    FORCED = 128  # at least one signal was forced
    FAULT = 256  # at least one fault was injected
    CLAMPED = 512  # at least one signal met its range or rate limit


def signal_table(signals: Sequence[Signal]) -> list[dict[str, Any]]:
    """Signals in plain words, for files and for the wire."""

    def bound(x: float) -> float | None:  # JSON has no infinity
        return float(x) if math.isfinite(x) else None

    return [{"name": s.name, "unit": s.unit, "low": bound(s.low), "high": bound(s.high), "doc": s.doc} for s in signals]


@dataclass(frozen=True)
class Schema:
    """Names and units of every word in a row."""

    dt_ns: int
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    commands: tuple[Signal, ...]
    bodies: tuple[str, ...]

    def __post_init__(self) -> None:
        check_unique((*self.inputs, *self.outputs, *self.commands), "row")

    @property
    def at_inputs(self) -> int:
        return HEADER

    @property
    def at_ages(self) -> int:
        return self.at_inputs + len(self.inputs)

    @property
    def at_outputs(self) -> int:
        return self.at_ages + len(self.inputs)

    @property
    def at_commands(self) -> int:
        return self.at_outputs + len(self.outputs)

    @property
    def at_poses(self) -> int:
        return self.at_commands + len(self.commands)

    @property
    def words(self) -> int:
        """Length of a row in 8-byte words."""
        return self.at_poses + POSE * len(self.bodies)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Inputs, outputs and commands in one list: the index space of forces, faults and alarms."""
        return (*self.inputs, *self.outputs, *self.commands)

    def as_dict(self) -> dict[str, Any]:
        """A plain description: what goes into files and over the wire."""

        return {
            "version": 1,
            "dt_ns": self.dt_ns,
            "words": self.words,
            "header": [c.name.lower() for c in Col],
            "inputs": signal_table(self.inputs),
            "outputs": signal_table(self.outputs),
            "commands": signal_table(self.commands),
            "bodies": list(self.bodies),
            "offsets": {
                "inputs": self.at_inputs,
                "ages": self.at_ages,
                "outputs": self.at_outputs,
                "commands": self.at_commands,
                "poses": self.at_poses,
            },
        }

    @property
    def hash(self) -> int:
        """63 bits that two ends must agree on before one reads the other's rows."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    @staticmethod
    def from_dict(d: dict[str, Any]) -> Schema:
        """The schema again, from what `as_dict` gave."""

        def table(rows: list[dict[str, Any]]) -> tuple[Signal, ...]:
            made = []
            for r in rows:
                low = -math.inf if r["low"] is None else r["low"]
                high = math.inf if r["high"] is None else r["high"]
                made.append(Signal(r["name"], r["unit"], min(max(0.0, low), high), low, high, doc=r["doc"]))
            return tuple(made)

        return Schema(d["dt_ns"], table(d["inputs"]), table(d["outputs"]), table(d["commands"]), tuple(d["bodies"]))
