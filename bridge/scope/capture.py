"""One shot of a scope: an exact number of rows before and after the trigger.

    filling  ->  waiting  ->  taking  ->  done
    `pre` rows   for the      `rows` rows,
    of history   trigger      the first of which is the trigger's

As on any scope, the trigger is watched for once the history is full: a shot always has `pre` rows before it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bridge.protocol.rows import Recording, RowReader
from bridge.scope.trigger import STATE, Trigger
from hilnode.shared.row import Col, Schema

HEAD = 3  # words kept before the signals: tick, step, and what the trigger looks at


class Stage(Enum):
    """How far a shot is."""

    FILLING = "filling the history"
    WAITING = "waiting for the trigger"
    TAKING = "triggered"
    DONE = "done"


@dataclass(frozen=True)
class Shot:
    """What was caught. `at` is the index of the trigger's row; without a trigger it is 0."""

    recording: Recording
    units: dict[str, str]
    dt: float  # [s] from row to row
    at: int
    trigger: str

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Time since the trigger [s], counted in ticks: it goes on while the plant stands."""
        tick = self.recording.tick
        return (tick - tick[self.at]) * self.dt if len(tick) else np.empty(0)


class Capture:
    """Takes rows until the shot is done; `again` begins another."""

    def __init__(
        self, schema: Schema, signals: Sequence[str], *, rows: int, pre: int = 0, trigger: Trigger | None = None
    ) -> None:
        """UnknownName tells of a signal that there is not."""
        reader = RowReader(schema)
        watched = Col.STATE if trigger is None or trigger.signal == STATE else reader.column(trigger.signal)
        self._columns = np.array([Col.TICK, Col.STEP, watched, *(reader.column(name) for name in signals)])
        self._as_state = watched == Col.STATE
        self.signals = list(signals)
        self.trigger = trigger
        self.pre, self.rows = (pre if trigger else 0), max(1, rows)
        self._units = {s.name: s.unit for s in schema.signals if s.name in signals}
        self.dt = schema.dt_ns * 1e-9
        self.again()

    def again(self) -> None:
        """Forget everything and begin to fill the history."""
        self._history: deque[NDArray[np.int64]] = deque(maxlen=self.pre)
        self._taken: list[NDArray[np.int64]] = []
        self._before: float | None = None
        self._last = -1
        self.stage = Stage.WAITING if self.pre == 0 else Stage.FILLING

    @property
    def value(self) -> float:
        """What the trigger saw last."""
        return math.nan if self._before is None else self._before

    def feed(self, row: NDArray[np.int64]) -> None:
        """The next row. A tick that is not later than the last is of another run: everything begins anew."""
        if self.stage is Stage.DONE:
            return
        tick = int(row[Col.TICK])
        if tick <= self._last:
            self.again()
        self._last = tick
        kept = row[self._columns]
        if self.stage is Stage.TAKING:
            self._take(kept)
            return
        value = float(kept[2]) if self._as_state else float(kept[2:3].view(np.float64)[0])
        fired = self.trigger is None or self.trigger.fires(value, self._before)
        self._before = value
        if self.stage is Stage.WAITING and fired:
            self.stage = Stage.TAKING
            self._take(kept)
            return
        self._history.append(kept)
        if len(self._history) == self.pre:
            self.stage = Stage.WAITING

    def _take(self, kept: NDArray[np.int64]) -> None:
        self._taken.append(kept)
        if len(self._taken) == self.rows:
            self.stage = Stage.DONE

    def shot(self) -> Shot:
        """What there is so far; the whole of it when the stage is DONE."""
        rows = [*self._history, *self._taken]
        table = np.array(rows, np.int64).reshape(len(rows), len(self._columns))
        values = table.view(np.float64)
        tick = table[:, 0].copy()
        recording = Recording(
            table[:, 1].astype(np.float64) * self.dt,
            tick,
            {name: values[:, HEAD + k].copy() for k, name in enumerate(self.signals)},
            int((np.diff(tick) - 1).sum()) if len(tick) else 0,
        )
        at = len(self._history) if self._taken else max(0, len(rows) - 1)
        return Shot(recording, self._units, self.dt, at, str(self.trigger) if self.trigger else "")
