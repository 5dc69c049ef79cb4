"""Looks at a node's sights and says what has changed since the last look, in the words of the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bridge.terrain import GridSender
from hilnode.sights import Sights


class SightsWatch:
    """One reader of the sights of one node."""

    def __init__(self, node: str, layout: dict[str, Any]) -> None:
        self.sights = Sights.attach(node, layout)
        self.senders = [GridSender(g.about) for g in self.sights.grids]
        self._seen = [np.full(g.stamps.shape, -1, np.int64) for g in self.sights.grids]
        self._arrows_seen, self._had_arrows = 0, False
        self._props_seen = np.full(len(layout["props"]), -1, np.int64)

    def changed_tiles(self, k: int) -> list[dict[str, Any]]:
        """Tiles of grid `k`."""
        sight, sender, seen = self.sights.grids[k], self.senders[k], self._seen[k]
        stamps = sight.stamps.copy()
        changed = np.argwhere(stamps != seen)
        seen[:] = stamps
        told = (sender.change(i, j, sight.heights[sight.block(i, j)]) for i, j in changed)
        return [tile for tile in told if tile]

    def new_arrows(self) -> dict[str, Any] | None:
        """All arrows, if they are others than before; none at all is told once."""
        arrows = self.sights.arrows
        if arrows is None or arrows.head[0] == self._arrows_seen or (taken := arrows.take()) is None:
            return None
        self._arrows_seen, at, force = taken
        had, self._had_arrows = self._had_arrows, bool(len(at))
        if not had and not len(at):
            return None
        return {"count": len(at), "at": at.astype("<f4").tobytes(), "force": force.astype("<f4").tobytes()}

    def moved_props(self) -> list[int]:
        """Numbers of the props that have moved."""
        if self.sights.props is None:
            return []
        stamps = self.sights.props.stamps.copy()
        moved = np.flatnonzero(stamps != self._props_seen).tolist()
        self._props_seen = stamps
        return moved

    def poses(self, which: Iterable[int]) -> dict[str, Any]:
        """Where some of the props are, by name."""
        sight = self.sights.props
        if sight is None:
            return {}
        numbers = list(which)
        poses = sight.poses[numbers].tolist()
        return {sight.names[k]: {"p": x[:3], "q": x[3:]} for k, x in zip(numbers, poses, strict=True)}
