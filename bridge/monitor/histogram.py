"""Histogram of wake latency over the last minute: a logarithmic axis, drawn with characters.

The node counts every tick (topic `timing`, field `wake_counts`); nothing is estimated from samples here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
PER_DECADE = 6
DECADES = ("1us", "10", "100", "1ms", "10ms")
BUCKETS = PER_DECADE * len(DECADES) + 2  # with one below the first decade and one above the last


class Histogram:
    """Counts of the last `seconds` messages."""

    def __init__(self, seconds: int = 60) -> None:
        self._seconds: deque[list[int]] = deque(maxlen=seconds)

    def put(self, counts: Sequence[int]) -> None:
        """One second's counts; those of a node that counts otherwise are left out."""
        if len(counts) == BUCKETS:
            self._seconds.append(list(counts))

    @property
    def counts(self) -> list[int]:
        """Ticks per bucket."""
        return [sum(column) for column in zip(*self._seconds, strict=True)] or [0] * BUCKETS

    @property
    def total(self) -> int:
        return sum(self.counts)


def bars(counts: Sequence[int], rows: int) -> list[str]:
    """Columns of blocks, the highest row first. Heights are logarithmic, and a single tick can be seen."""
    top = math.log1p(max(counts, default=0)) or 1.0
    most = rows * (len(BLOCKS) - 1)
    heights = [max(1, round(math.log1p(c) / top * most)) if c else 0 for c in counts]
    drawn = []
    for row in reversed(range(rows)):
        below = row * (len(BLOCKS) - 1)
        drawn.append("".join(BLOCKS[max(0, min(len(BLOCKS) - 1, h - below))] for h in heights))
    return drawn


def axis() -> str:
    """Where the decades begin: below the bars."""
    return " " + "".join(name.ljust(PER_DECADE) for name in DECADES) + ">"
