"""Live black boxes: the rows around an overrun and its likeliest cause, published as an event.

The recorder cuts black boxes out of the log when a run has ended (`hilnode.shared.blackbox`); this one does the same
while it runs, from the rows that the publisher reads anyway and from counters of the machine that it reads beside them.
An overrun within APART of the one before belongs to it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.blackbox import Incident, guess_cause
from hilnode.shared.machine_sample import MachineSample
from hilnode.shared.row import Col, Flag

AROUND = 10  # rows before an overrun and after it
APART_NS = 500_000_000
SAMPLE_NS = 50_000_000  # between two looks at the machine's counters
SAMPLES_KEPT = 40
ROWS_KEPT = 2000
COLUMNS = ("tick", "wake_us", "step_us", "own_us", "period_us", "flags")


class BlackBoxes:
    """Takes rows and samples of one node in their order; `ready` gives an event once enough has come after."""

    def __init__(self, period_ns: int) -> None:
        self._period = period_ns
        self._parts: deque[NDArray[np.int64]] = deque()  # headers as they came: joined only when somebody asks
        self._kept = 0  # rows in them
        self._samples: deque[MachineSample] = deque(maxlen=SAMPLES_KEPT)
        self._open: NDArray[np.int64] | None = None  # the first row of the incident that is not told yet
        self._overruns = 0  # in it
        self._last = -APART_NS  # [ns] when the last incident began

    def take_rows(self, headers: NDArray[np.int64]) -> None:
        """The headers of the newest rows."""
        self._parts.append(headers)
        self._kept += len(headers)
        while self._kept - len(self._parts[0]) >= ROWS_KEPT:
            self._kept -= len(self._parts.popleft())
        overran = (headers[:, Col.FLAGS] & Flag.OVERRUN) != 0
        if not overran.any():
            return
        for row in headers[overran]:
            if self._open is None and row[Col.DEADLINE] - self._last >= APART_NS:
                self._open, self._overruns, self._last = row.copy(), 0, int(row[Col.DEADLINE])
            self._overruns += 1

    def take_sample(self, sample: MachineSample) -> None:
        """Counters of the machine, about every SAMPLE_NS."""
        self._samples.append(sample)

    def ready(self, now_ns: int) -> dict[str, Any] | None:
        """The incident that is under way, as an event, once rows and a sample after it have come, or are overdue."""
        if self._open is None:
            return None
        done = int(self._open[Col.DONE])
        later = self._samples[-1].time_ns > done if self._samples else False
        newest = int(self._parts[-1][-1, Col.TICK])
        if (not later or newest < self._open[Col.TICK] + AROUND) and now_ns - done < APART_NS:
            return None
        incident = self._incident(self._open)
        self._open = None
        return as_event(incident)

    def _incident(self, row: NDArray[np.int64]) -> Incident:
        rows = np.concatenate(self._parts)
        near = np.abs(rows[:, Col.TICK] - row[Col.TICK]) <= AROUND
        before = [s for s in self._samples if s.time_ns <= row[Col.DEADLINE]]
        after = [s for s in self._samples if s.time_ns >= row[Col.DONE]]
        return Incident(
            row=row,
            rows=rows[near],
            samples=tuple(self._samples),
            before=before[-1] if before else None,
            after=after[0] if after else None,
            overruns=self._overruns,
            period_ns=self._period,
        )


def as_event(incident: Incident) -> dict[str, Any]:
    """What goes over the wire."""
    table = [_numbers(row) for row in incident.rows]
    return {
        "tick": incident.tick,
        "time_ns": int(incident.row[Col.WAKE]),
        "event": "blackbox",
        "index": incident.overruns,
        "value": None,
        "what": guess_cause(incident),
        "black_box": {"columns": list(COLUMNS), "rows": table},
    }


def _numbers(row: NDArray[np.int64]) -> list[Any]:
    """The columns of one row."""
    step = int(row[Col.END] - row[Col.START])
    spans = (row[Col.WAKE] - row[Col.DEADLINE], step, row[Col.DONE] - row[Col.WAKE] - step, row[Col.PERIOD])
    flags = [flag.name.lower() for flag in Flag if flag & int(row[Col.FLAGS]) and flag.name]
    return [int(row[Col.TICK]), *(float(x) * 1e-3 for x in spans), flags]
