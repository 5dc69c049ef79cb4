"""Scaling of volts (or pulses) to the unit of a channel and back: linear or by a table, for each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Line:
    """value = raw * slope + offset."""

    slope: float = 1.0
    offset: float = 0.0

    def value(self, raw: float) -> float:
        return raw * self.slope + self.offset

    def raw(self, value: float) -> float:
        return (value - self.offset) / self.slope


@dataclass(frozen=True, slots=True)
class Table:
    """Straight lines between pairs of raw and value; beyond the ends the value stays that of the end."""

    raws: tuple[float, ...]
    values: tuple[float, ...]

    def value(self, raw: float) -> float:
        return float(np.interp(raw, self.raws, self.values))

    def raw(self, value: float) -> float:
        step = 1 if self.values[0] < self.values[-1] else -1  # np.interp wants rising numbers
        return float(np.interp(value, self.values[::step], self.raws[::step]))


class Scaling:
    """The scales of several channels, applied at once. `places` are their indices among the driver's channels."""

    def __init__(self, places: Sequence[int], scales: Sequence[Line | Table]) -> None:
        self._places = np.array(places, np.intp)
        lines = [s if isinstance(s, Line) else Line() for s in scales]
        self._slopes = np.array([line.slope for line in lines])
        self._offsets = np.array([line.offset for line in lines])
        self.last: NDArray[Any] | None = None  # numbers that were scaled
        self._tables = [(k, s) for k, s in enumerate(scales) if isinstance(s, Table)]

    def to_values(self, raws: NDArray[Any], now: int, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> None:
        """Put scaled numbers, all taken at `now` [ns], where they belong."""
        self.last = raws
        values[self._places] = raws * self._slopes + self._offsets
        for k, table in self._tables:
            values[self._places[k]] = table.value(float(raws[k]))
        stamps[self._places] = now

    def to_raws(self, values: NDArray[np.float64], raws: NDArray[np.float64]) -> None:
        """Take the channels' values from among all of them and fill `raws`."""
        mine = values[self._places]
        np.divide(mine - self._offsets, self._slopes, out=raws)
        for k, table in self._tables:
            raws[k] = table.raw(float(mine[k]))
