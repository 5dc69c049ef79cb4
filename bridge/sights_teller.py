"""Tells what a plant shows beside its row: topics `terrain`, `arrows` and `props`, and the answers to who comes late.

A thread of its own looks at the node's sights twenty times a second and hands finished messages to the publisher, whose
own rhythm is the tick's. Once in a while every tile and every prop is sent again, for those who never ask.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import numpy as np

from bridge.terrain import UNIT, GridSender
from bridge.wire import Packer
from hilnode.control import Control, Word
from hilnode.sights import Sights

LOOK_EVERY = 0.05  # [s]
AROUND_S = 30.0  # [s] after which every tile and every prop has been sent again
MOST_TILES = 64  # in one message or answer


class SightsTeller:
    """Looks at the sights of one node. `messages` are frames that are ready to be sent."""

    def __init__(self, node: str, layout: dict[str, Any], packer: Packer, control: Control) -> None:
        self.messages: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self._sights, self._packer, self._control = Sights.attach(node, layout), packer, control
        self._coder = time.monotonic_ns()
        self._senders = [GridSender(g.about) for g in self._sights.grids]
        self._seen = [np.full(g.stamps.shape, -1, np.int64) for g in self._sights.grids]
        self._again = [0.0] * len(self._senders)  # tiles that were due to be sent again so far
        self._arrows_seen, self._had_arrows = 0, False
        self._props_seen = self._sights.props.stamps * 0 - 1 if self._sights.props else np.zeros(0, np.int64)
        self._props_again = 0.0
        self._lock = threading.Lock()  # the grids as sent: the thread that answers must not meet half a tile
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sights", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        if self._thread.ident:
            self._thread.join(1.0)

    def _work(self) -> None:
        while not self._ending.wait(LOOK_EVERY):
            self.look()

    # -- what is told -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Make messages of what has changed since the last look."""
        for k in range(len(self._senders)):
            for tiles in self._tiles_to_tell(k):
                self._put("terrain", self._terrain(k, tiles))
        self._tell_arrows()
        self._tell_props()

    def _tiles_to_tell(self, k: int) -> list[list[dict[str, Any]]]:
        """The changed tiles of grid `k`, and those whose turn it is, in lists for one message each."""
        sight, sender, seen = self._sights.grids[k], self._senders[k], self._seen[k]
        stamps = sight.stamps.copy()
        changed = np.argwhere(stamps != seen)
        told = []
        with self._lock:
            for i, j in changed:
                if tile := sender.change(i, j, sight.heights[sight.block(i, j)]):
                    told.append(tile)
            seen[:] = stamps
            count = sender.numbers.size
            first = int(self._again[k])
            self._again[k] += count * LOOK_EVERY / AROUND_S
            for number in range(first, int(self._again[k])):
                i, j = divmod(number % count, sender.shape[1])
                if sender.numbers[i, j]:
                    told.append(sender.whole(i, j))
        return [told[at : at + MOST_TILES] for at in range(0, len(told), MOST_TILES)]

    def _terrain(self, k: int, tiles: list[dict[str, Any]]) -> dict[str, Any]:
        return {"grid": self._senders[k].about["name"], "coder": self._coder, "tiles": tiles}

    def _tell_arrows(self) -> None:
        if self._sights.arrows is None or self._sights.arrows.head[0] == self._arrows_seen:
            return
        taken = self._sights.arrows.take()
        if taken is None:
            return
        self._arrows_seen, at, force = taken
        if len(at) or self._had_arrows:
            self._had_arrows = bool(len(at))
            body = {"count": len(at), "at": at.astype("<f4").tobytes(), "force": force.astype("<f4").tobytes()}
            self._put("arrows", body)

    def _tell_props(self) -> None:
        sight = self._sights.props
        if sight is None:
            return
        stamps = sight.stamps.copy()
        count, first = len(stamps), int(self._props_again)
        self._props_again += count * LOOK_EVERY / AROUND_S
        due = np.zeros(count, bool)
        due[np.arange(first, int(self._props_again)) % count] = True
        told = np.flatnonzero((stamps != self._props_seen) | due)
        self._props_seen = stamps
        if len(told):
            self._put("props", {"props": self._poses(told)})

    def _poses(self, which: Any) -> dict[str, Any]:
        sight = self._sights.props
        assert sight is not None
        poses = sight.poses[which].tolist()
        return {sight.names[k]: {"p": x[:3], "q": x[3:]} for k, x in zip(which, poses, strict=True)}

    def _put(self, topic: str, body: dict[str, Any]) -> None:
        self.messages.put(self._packer.pack(topic, time.monotonic(), self._control[Word.TICK], body))

    # -- what is answered ---------------------------------------------------------------------------------------------

    def terrain(self, grid: str | None = None, first: int = 0) -> dict[str, Any]:
        """The grids there are; or whole tiles of one, from number `first` on, and the number to go on with."""
        if grid is None:
            return {"grids": [s.about for s in self._senders], "unit": UNIT}
        names = [s.about["name"] for s in self._senders]
        if grid not in names:
            raise ValueError(f"terrain.grid = {grid!r}: there is {', '.join(names) or 'none'}")
        k = names.index(grid)
        sender = self._senders[k]
        with self._lock:
            numbers = range(first, min(first + MOST_TILES, sender.numbers.size))
            places = [divmod(number, sender.shape[1]) for number in numbers]
            tiles = [sender.whole(i, j) for i, j in places if sender.numbers[i, j]]
        more = first + MOST_TILES < sender.numbers.size
        return {**self._terrain(k, tiles), "next": first + MOST_TILES if more else None}

    def props(self) -> dict[str, Any]:
        """Where all props are."""
        sight = self._sights.props
        return {"props": self._poses(range(len(sight.names))) if sight else {}}


class NoSights:
    """The same for a plant that shows nothing beside its row."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()

    def start(self) -> None:
        """There is nothing to look at."""

    def close(self) -> None:
        """Nothing was started."""

    def terrain(self, grid: str | None = None, first: int = 0) -> dict[str, Any]:
        """There is no grid."""
        if grid is not None:
            raise ValueError(f"terrain.grid = {grid!r}: there is none")
        return {"grids": [], "unit": UNIT}

    def props(self) -> dict[str, Any]:
        """There are no props."""
        return {"props": {}}
