"""Finds what has changed in a node's display state since the last look, as parts of wire messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bridge.protocol.terrain import GridSender
from hilnode.shared.display_state import DisplayState


class DisplayWatch:
    """One reader of the display state of one node."""

    def __init__(self, node: str, layout: dict[str, Any]) -> None:
        self.display = DisplayState.attach(node, layout)
        self.senders = [GridSender(g.about) for g in self.display.grids]
        self._seen = [np.full(g.stamps.shape, -1, np.int64) for g in self.display.grids]
        self._arrows_seen, self._had_arrows = 0, False
        self._props_seen = np.full(len(layout["props"]), -1, np.int64)

    def changed_tiles(self, k: int) -> list[dict[str, Any]]:
        """Tiles of grid `k`."""
        grid, sender, seen = self.display.grids[k], self.senders[k], self._seen[k]
        stamps = grid.stamps.copy()
        changed = np.argwhere(stamps != seen)
        seen[:] = stamps
        told = (sender.change(i, j, grid.heights[grid.block(i, j)]) for i, j in changed)
        return [tile for tile in told if tile]

    def new_arrows(self) -> dict[str, Any] | None:
        """All arrows, if they are others than before; none at all is told once."""
        arrows = self.display.arrows
        if arrows is None or arrows.head[0] == self._arrows_seen or (taken := arrows.take()) is None:
            return None
        self._arrows_seen, at, force = taken
        had, self._had_arrows = self._had_arrows, bool(len(at))
        if not had and not len(at):
            return None
        return {"count": len(at), "at": at.astype("<f4").tobytes(), "force": force.astype("<f4").tobytes()}

    def moved_props(self) -> list[int]:
        """Numbers of the props that have moved."""
        if self.display.props is None:
            return []
        stamps = self.display.props.stamps.copy()
        moved = np.flatnonzero(stamps != self._props_seen).tolist()
        self._props_seen = stamps
        return moved

    def poses(self, which: Iterable[int]) -> dict[str, Any]:
        """Where some of the props are, by name."""
        props = self.display.props
        if props is None:
            return {}
        numbers = list(which)
        poses = props.poses[numbers].tolist()
        return {props.names[k]: {"p": x[:3], "q": x[3:]} for k, x in zip(numbers, poses, strict=True)}
