"""The display copier: a thread that copies what the plant shows into shared memory, about thirty times a second.

Hot code writes, stamps and goes on; it knows of no reader. The copier reads the stamp of a tile before its heights: a
change that it saw half of is stamped later, so that the next look copies the tile again.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.display_state import TRIES, DisplayState
from plant.abi import TILE, Plant

log = logging.getLogger("hilnode")

LOOK_EVERY = 1.0 / 30.0  # [s]


def layout_of(plant: Plant) -> dict[str, Any] | None:
    """What a plant shows beside its row, in plain words; None if there is nothing."""
    if not plant.grids and plant.arrows is None and plant.props is None:
        return None
    grids = [
        {
            "name": g.name,
            "nx": int(g.heights.shape[0]),
            "ny": int(g.heights.shape[1]),
            "tile": TILE,
            "corner": [float(x) for x in g.corner],
            "spacing": [float(x) for x in g.spacing],
            "colour": [float(x) for x in g.colour],
            **{key: [float(x) for x in given] for key, given in (("rim", g.rim), ("floor", g.floor)) if given},
            **({"body": g.body} if g.body else {}),
        }
        for g in plant.grids
    ]
    return {
        "grids": grids,
        "arrows": len(plant.arrows.at) if plant.arrows else 0,
        "props": list(plant.props.names) if plant.props else [],
    }


class DisplayCopier:
    """Keeps `display` like what `plant` shows, from `start` to `close`."""

    def __init__(self, plant: Plant, display: DisplayState) -> None:
        self._plant, self._display = plant, display
        self._seen = [np.full(g.stamps.shape, -1, np.int64) for g in plant.grids]
        self._arrows_seen = -1
        n = len(plant.props.names) if plant.props else 0
        self._props_seen: NDArray[np.int64] = np.full(n, -1, np.int64)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="display copier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        if self._thread.ident:
            self._thread.join(2.0)

    def _work(self) -> None:
        try:
            while not self._ending.wait(LOOK_EVERY):
                self.look()
        except Exception:  # a display less is nothing to end a run for
            log.exception("what the plant shows beside its row is no longer copied")

    def look(self) -> None:
        """Copy what has changed since the last look."""
        for k, seen in enumerate(self._seen):
            self._copy_tiles(k, seen)
        self._copy_arrows()
        self._copy_props()

    def _copy_tiles(self, k: int, seen: NDArray[np.int64]) -> None:
        source, to = self._plant.grids[k], self._display.grids[k]
        stamps = source.stamps.copy()
        for i, j in np.argwhere(stamps != seen):
            block = to.block(i, j)
            to.heights[block] = source.heights[block]
            to.stamps[i, j] += 1
        seen[:] = stamps

    def _copy_arrows(self) -> None:
        source, to = self._plant.arrows, self._display.arrows
        if source is None or to is None or source.stamp[0] == self._arrows_seen:
            return
        for _ in range(TRIES):
            stamp, count = int(source.stamp[0]), min(int(source.count[0]), len(to.at))
            at, force = source.at[:count].copy(), source.force[:count].copy()
            if stamp % 2 == 0 and source.stamp[0] == stamp:
                to.head[0] += 1
                to.at[:count], to.force[:count], to.head[1] = at, force, count
                to.head[0] += 1
                self._arrows_seen = stamp
                return

    def _copy_props(self) -> None:
        source, to = self._plant.props, self._display.props
        if source is None or to is None:
            return
        stamps = source.stamps.copy()
        moved = np.flatnonzero(stamps != self._props_seen)
        if len(moved):
            to.poses[moved] = source.poses[moved]
            to.stamps[moved] += 1
            self._props_seen[moved] = stamps[moved]
