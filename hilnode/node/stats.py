"""Live timing for the status line.

A histogram that the supervisor feeds from the ring, compiled, a few times a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.shared.lockfree.ring import Ring, RingView, pull
from hilnode.shared.row import Col, Flag

BINS = 4000  # of 1 us; the last one takes all above
T_WAKE, T_DEADLINE, T_START, T_END = int(Col.WAKE), int(Col.DEADLINE), int(Col.START), int(Col.END)
T_FLAGS, T_MISSED = int(Col.FLAGS), int(Col.MISSED)
F_OVERRUN, F_GRACE, F_CATCH_UP = int(Flag.OVERRUN), int(Flag.GRACE), int(Flag.CATCH_UP)
F_PAUSED = int(Flag.PAUSED)


@kernel
def _feed(
    ring: RingView,
    cursor: NDArray[np.int64],
    row: NDArray[np.int64],
    wake_bins: NDArray[np.int64],
    step_bins: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """Add every new row.

    Sums = rows, overruns, overruns in the grace time, deadlines given up, greatest step time [ns].
    """
    while True:
        got = pull(ring, cursor[0], row.ctypes.data)
        if got == 0:
            return
        if got < 0:
            cursor[0] -= got
            cursor[1] -= got
            continue
        cursor[0] += 1
        flags = row[T_FLAGS]
        if not flags & F_CATCH_UP:
            wake_bins[min(BINS - 1, max(0, row[T_WAKE] - row[T_DEADLINE]) // 1000)] += 1
        if not flags & F_PAUSED:
            step = row[T_END] - row[T_START]
            step_bins[min(BINS - 1, step // 1000)] += 1
            sums[4] = max(sums[4], step)
        sums[0] += 1
        sums[3] += row[T_MISSED]
        if flags & F_OVERRUN:
            sums[2 if flags & F_GRACE else 1] += 1


@dataclass(frozen=True)
class Timing:
    """What has been seen since the start; times in microseconds, to the next whole one."""

    rows: int
    overruns: int
    grace_overruns: int
    missed: int
    wake_p50: int
    wake_p99: int
    step_p50: int
    step_p99: int
    step_max: float


class Stats:
    """Watches the rows of a ring."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._cursor = np.zeros(2, np.int64)
        self._row = np.zeros(ring.view.width, np.int64)
        self._wake = np.zeros(BINS, np.int64)
        self._step = np.zeros(BINS, np.int64)
        self._sums = np.zeros(5, np.int64)

    def feed(self) -> None:
        """Take in the rows that have come."""
        _feed(self._ring.view, self._cursor, self._row, self._wake, self._step, self._sums)

    def timing(self) -> Timing:
        rows, overruns, grace, missed, longest = (int(x) for x in self._sums)
        return Timing(
            rows,
            overruns,
            grace,
            missed,
            _percentile(self._wake, 0.5),
            _percentile(self._wake, 0.99),
            _percentile(self._step, 0.5),
            _percentile(self._step, 0.99),
            longest / 1e3,
        )


def _percentile(bins: NDArray[np.int64], share: float) -> int:
    total = int(bins.sum())
    if total == 0:
        return 0
    return int(np.searchsorted(np.cumsum(bins), share * total)) + 1
