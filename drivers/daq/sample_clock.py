"""Timestamps of samples on this PC's clock, for a card that samples by its own clock.

A read returns at the earliest when its last sample is there, and later by as much as the transfer and the scheduler
please. So for sample number n of period T, `now - n * T` is the start of the acquisition plus a delay that is never
negative: its least value over many reads is the start, and start + n * T is the time of a sample. The two clocks drift
apart, so the least value may rise again by `DRIFT`; what is left of the delay in the quickest reads cannot be seen.
"""

from __future__ import annotations

DRIFT = 1e-3  # of two clocks against each other: a crystal is good to 1e-4, NTP may slew this PC's by 5e-4


class SampleClock:
    """Counts samples and tells the time of the newest. `period` in ns."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._count = 0
        self._start = float("inf")
        self._seen = 0

    def newest(self, samples: int, now: int) -> int:
        """The time [ns, CLOCK_MONOTONIC] of the last of `samples` new ones that a read returned at `now`."""
        self._count += samples
        taken = self._count * self._period
        if self._seen:
            self._start += (now - self._seen) * DRIFT
        self._seen = now
        self._start = min(self._start, now - taken)
        return int(self._start + taken)
