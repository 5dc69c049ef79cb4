"""Recent samples of all signals in one ring buffer, and a sparkline of one signal in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLOCKS = "▁▂▃▄▅▆▇█"
MIDDLE = "▄"  # of a signal that does not move


class History:
    """The last `length` samples of `width` signals. A sample that never came is NaN."""

    def __init__(self, width: int, length: int) -> None:
        self._ring = np.full((length, width), np.nan)
        self._next = 0

    def put(self, sample: Sequence[float]) -> None:
        """One sample of every signal."""
        self._ring[self._next] = sample
        self._next = (self._next + 1) % len(self._ring)

    def of(self, signal: int) -> NDArray[np.float64]:
        """A signal's samples, the oldest first."""
        column = self._ring[:, signal]
        return np.concatenate([column[self._next :], column[: self._next]])


def sparkline(samples: NDArray[np.float64], width: int) -> str:
    """A curve of `width` characters, each as high as the mean of its share; between the least and the greatest."""
    if width < 1:
        return ""
    count = min(width, len(samples))
    edges = np.arange(count) * len(samples) // max(count, 1)
    known = np.isfinite(samples)
    sums = np.add.reduceat(np.where(known, samples, 0.0), edges) if count else np.empty(0)
    counts = np.add.reduceat(known.astype(np.int64), edges) if count else np.empty(0)
    means = [s / n if n else math.nan for s, n in zip(sums.tolist(), counts.tolist(), strict=True)]
    finite = [m for m in means if math.isfinite(m)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return "".join(_block(m, low, high) for m in means).rjust(width)


def _block(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return " "
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return MIDDLE
    return BLOCKS[min(len(BLOCKS) - 1, int((value - low) / (high - low) * len(BLOCKS)))]


def number(value: float) -> str:
    """A value in at most 11 characters, with as many digits as a reader can follow."""
    if math.isnan(value):
        return "-"
    size = abs(value)
    if math.isinf(value) or (size != 0.0 and not 1e-3 <= size < 1e6):
        return f"{value:.4g}"
    return f"{value:.4f}" if size < 1e3 else f"{value:.2f}"


def limits(low: float, high: float) -> str:
    """A range in words; nothing where there is none."""
    if math.isinf(low) and math.isinf(high):
        return ""
    return f"{'' if math.isinf(low) else f'{low:g}'}..{'' if math.isinf(high) else f'{high:g}'}"
