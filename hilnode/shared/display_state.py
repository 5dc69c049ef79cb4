"""Display state of a plant in shared memory: changing ground, forces at points, bodies that rarely move.

The node keeps a copy of these in the segment `NODE.sights` (see `hilnode.node.display_copier`), and whoever displays
them attaches. It holds the latest values and no more: a reader that looks seldom misses what was in between, and nobody
waits.

    each grid    stamps  int64 [tiles]    counts up after a tile has changed
                 heights float32 [nx, ny] above the corner's z [m]
    arrows       stamp   int64            odd while they are written
                 count   int64
                 at, force  float64 [most, 3]
    props        stamps  int64 [n]        counts up after a pose has changed
                 poses   float64 [n, 7]

A reader takes the stamp before the values: whatever was written after that makes another stamp, so that it looks again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.lockfree.segment import Segment

DISPLAY_KIND = 7
TRIES = 5  # at arrows that are just being written


@dataclass(frozen=True)
class GridState:
    """One grid: what it is, and its memory."""

    about: dict[str, Any]  # name, nx, ny, tile, corner, spacing, colour
    stamps: NDArray[np.int64]  # [tiles along x, tiles along y]
    heights: NDArray[np.float32]  # [nx, ny] [m]

    def block(self, i: int, j: int) -> tuple[slice, slice]:
        """The samples of tile (i, j)."""
        n = self.about["tile"]
        return slice(i * n, (i + 1) * n), slice(j * n, (j + 1) * n)


@dataclass(frozen=True)
class ArrowState:
    """Forces at points."""

    head: NDArray[np.int64]  # stamp, count
    at: NDArray[np.float64]
    force: NDArray[np.float64]

    def take(self) -> tuple[int, NDArray[np.float64], NDArray[np.float64]] | None:
        """Stamp, points [m] and forces [N]; None if they are being written all the time."""
        for _ in range(TRIES):
            stamp, count = int(self.head[0]), int(self.head[1])
            at, force = self.at[:count].copy(), self.force[:count].copy()
            if stamp % 2 == 0 and self.head[0] == stamp:
                return stamp, at, force
        return None


@dataclass(frozen=True)
class PropState:
    """Bodies that rarely move."""

    names: list[str]
    stamps: NDArray[np.int64]  # [n]
    poses: NDArray[np.float64]  # [n, 7]


def tiles_of(about: dict[str, Any]) -> tuple[int, int]:
    """How many tiles a grid has along x and y."""
    return math.ceil(about["nx"] / about["tile"]), math.ceil(about["ny"] / about["tile"])


class DisplayState:
    """The segment of one node, laid out as `layout` says: `grids`, `arrows` (how many at most), `props` (names)."""

    def __init__(self, segment: Segment, layout: dict[str, Any]) -> None:
        self._segment = segment
        self._at = 0
        self.layout = layout
        self.grids = [self._grid(about) for about in layout["grids"]]
        most = layout["arrows"]
        self.arrows = ArrowState(self._words(2), self._floats(most, 3), self._floats(most, 3)) if most else None
        n = len(layout["props"])
        self.props = PropState(layout["props"], self._words(n), self._floats(n, 7)) if n else None

    @classmethod
    def create(cls, node: str, layout: dict[str, Any]) -> DisplayState:
        return cls(Segment.create(f"{node}.sights", kind=DISPLAY_KIND, words=_size(layout)), layout)

    @classmethod
    def attach(cls, node: str, layout: dict[str, Any]) -> DisplayState:
        segment = Segment.attach(f"{node}.sights", kind=DISPLAY_KIND)
        if len(segment.words) != _size(layout):
            raise ValueError(f"the segment {node}.sights has {len(segment.words)} words instead of {_size(layout)}")
        return cls(segment, layout)

    def _grid(self, about: dict[str, Any]) -> GridState:
        nx, ny = about["nx"], about["ny"]
        stamps = self._words(math.prod(tiles_of(about))).reshape(tiles_of(about))
        heights = self._words((nx * ny + 1) // 2).view(np.float32)[: nx * ny].reshape(nx, ny)
        return GridState(about, stamps, heights)

    def _words(self, count: int) -> NDArray[np.int64]:
        self._at += count
        return self._segment.words[self._at - count : self._at]

    def _floats(self, *shape: int) -> NDArray[np.float64]:
        return self._words(math.prod(shape)).view(np.float64).reshape(shape)

    def close(self) -> None:
        self._segment.close()


def _size(layout: dict[str, Any]) -> int:
    """Words that a layout takes."""
    grids = sum(math.prod(tiles_of(g)) + (g["nx"] * g["ny"] + 1) // 2 for g in layout["grids"])
    return grids + (2 + 6 * layout["arrows"] if layout["arrows"] else 0) + 8 * len(layout["props"])
