"""Terrain on the wire: tiles of a grid as integers of 0.1 mm, whole or as differences from what was sent before.

A tile has a number `n` that counts how often it was sent anew. A difference leads from n - 1 to n: who has not got
n - 1 leaves it and asks for the whole tile, or waits until it comes by itself. Whole numbers add up without an error,
so that a reader has to the last bit what the sender has. `coder` says who sends: another one begins to count anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.display_state import tiles_of

UNIT = 1e-4
"""[m] what heights are counted in."""

MOST_WAITING = 8  # differences of one tile that are kept for the tile they build on
_HIGHEST = 2**30


def units_of(heights: NDArray[np.floating[Any]]) -> NDArray[np.int32]:
    """Heights [m] as whole numbers of UNIT; what is no number counts as 0."""
    scaled = np.rint(np.asarray(heights, np.float64) / UNIT)
    return np.clip(np.nan_to_num(scaled, nan=0.0), -_HIGHEST, _HIGHEST).astype(np.int32)


class GridSender:
    """The sender's side of one grid: what has been sent, and the messages' tiles."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.shape = tiles_of(about)
        self.units = np.zeros((about["nx"], about["ny"]), np.int32)
        self.numbers = np.zeros(self.shape, np.int64)

    def block(self, i: int, j: int) -> tuple[slice, slice]:
        """The samples of tile (i, j)."""
        n = self.about["tile"]
        return slice(i * n, (i + 1) * n), slice(j * n, (j + 1) * n)

    def change(self, i: int, j: int, heights: NDArray[np.floating[Any]]) -> dict[str, Any] | None:
        """Take over the heights [m] of a tile; how to tell it, or None if nothing is different on the wire."""
        return self.change_units(i, j, units_of(heights))

    def change_units(self, i: int, j: int, new: NDArray[np.int32]) -> dict[str, Any] | None:
        """The same for heights in UNIT."""
        block = self.block(i, j)
        difference = new - self.units[block]
        if self.numbers[i, j] and not difference.any():
            return None
        self.units[block] = new
        self.numbers[i, j] += 1
        small = self.numbers[i, j] > 1 and np.abs(difference).max() < 2**15
        return self._tile(i, j, difference.astype("<i2")) if small else self.whole(i, j)

    def whole(self, i: int, j: int) -> dict[str, Any]:
        """A tile with all its heights."""
        return self._tile(i, j, self.units[self.block(i, j)].astype("<i4"))

    def _tile(self, i: int, j: int, units: NDArray[Any]) -> dict[str, Any]:
        return {
            "i": int(i),
            "j": int(j),
            "n": int(self.numbers[i, j]),
            "delta": units.itemsize == 2,
            "units": units.tobytes(),
        }


class GridReader:
    """The reader's side of one grid: heights in UNIT, put together from messages in whatever order they come."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.shape = tiles_of(about)
        (rows, columns), n = self.shape, about["tile"]
        whole = np.zeros((rows * n, columns * n), np.int32)
        self.units = whole[: about["nx"], : about["ny"]]
        self.tiles = whole.reshape(rows, n, columns, n).swapaxes(1, 2)  # the same memory, tile by tile
        self.numbers = np.zeros(self.shape, np.int64)  # 0 = never heard of
        self.changes = np.zeros(self.shape, np.int64)  # how often a tile has become another one here
        self.coder: int | None = None
        self._waiting: dict[tuple[int, int], list[dict[str, Any]]] = {}

    @property
    def heights(self) -> NDArray[np.float64]:
        """[m] above the corner's z."""
        return self.units * UNIT

    @property
    def is_whole(self) -> bool:
        """Whether every tile is there, as new as it can be."""
        return not self._waiting and bool(self.numbers.all())

    def take(self, message: dict[str, Any]) -> None:
        """A message of the topic `terrain`, or an answer to the command."""
        if message["coder"] != self.coder:
            self.coder = message["coder"]
            self.numbers[:] = 0
            self._waiting.clear()
        for tile in message["tiles"]:
            self._take_tile(tile)

    def _take_tile(self, tile: dict[str, Any]) -> None:
        i, j, n = tile["i"], tile["j"], tile["n"]
        have = self.numbers[i, j]
        if tile["delta"]:
            if have == 0 or n > have + 1:
                kept = self._waiting.setdefault((i, j), [])
                kept.append(tile)
                del kept[:-MOST_WAITING]
            elif n == have + 1:
                self._apply(tile, added=True)
        elif n >= have:
            self._apply(tile, added=False)
            later = self._waiting.pop((i, j), [])
            for waiting in sorted(later, key=lambda t: t["n"]):
                if waiting["n"] > n:
                    self._take_tile(waiting)

    def _apply(self, tile: dict[str, Any], *, added: bool) -> None:
        size, i, j = self.about["tile"], tile["i"], tile["j"]
        view = self.units[i * size : (i + 1) * size, j * size : (j + 1) * size]
        values = np.frombuffer(tile["units"], "<i2" if added else "<i4").reshape(view.shape)
        if added:
            view += values
            self.changes[i, j] += 1
        elif (view != values).any() or not self.numbers[i, j]:
            view[:] = values
            self.changes[i, j] += 1
        self.numbers[i, j] = tile["n"]
