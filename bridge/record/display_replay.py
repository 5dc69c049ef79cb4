"""Display state of a recording on the wire: that of the row that was sent last.

Playing on, the recorded changes are followed. After a jump, and going backwards, what was shown is put together from
the last message with everything; subscribers are told the difference, as if the ground had moved so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bridge.protocol.terrain import GridSender
from bridge.publish.display_publisher import MOST_TILES, GroundAnswers, Turns
from bridge.record.display_record import RecordedDisplay
from bridge.record.run_file import Run

LOOK_EVERY_NS = 100_000_000
REST = 4  # times as long as a rebuild took is waited before the next: going backwards must not stop the rows

Told = tuple[str, dict[str, Any]]


class DisplayReplay:
    """Follows one run. A run without display state gives nothing, in the same form."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._layout: dict[str, Any] = run.about.get("sights") or {"grids": [], "arrows": 0, "props": []}
        self._then = RecordedDisplay(self._layout)
        self._senders = [GridSender(about) for about in self._layout["grids"]]
        self._seen = [np.zeros(s.shape, np.int64) for s in self._senders]
        self._turns = [Turns(s.numbers.size) for s in self._senders]
        self._ground = GroundAnswers(self._senders)
        self.terrain = self._ground.answer
        self._tick = -1  # of the row that `_then` is right for
        self._props: dict[str, Any] = {}  # as told
        self._arrows: dict[str, Any] = dict(self._then.arrows)
        self._due = 0

    @property
    def is_empty(self) -> bool:
        return not (self._layout["grids"] or self._layout["arrows"] or self._layout["props"])

    def props(self) -> dict[str, Any]:
        """Where all props are; those that never were told stand at the origin."""
        nowhere = {"p": [0.0] * 3, "q": [1.0, 0.0, 0.0, 0.0]}
        return {"props": {name: self._props.get(name, nowhere) for name in self._layout["props"]}}

    def look(self, tick: int, now: int) -> list[Told]:
        """What to tell, now that the row of `tick` was sent; nothing if it is too early to look again."""
        if self.is_empty or now < self._due or tick == self._tick:
            return []
        began = time.monotonic_ns()
        if tick < self._tick or not self._follow(tick):
            self._rebuild(tick)
        self._tick = tick
        told = list(self._changes())
        took = time.monotonic_ns() - began
        self._due = now + max(LOOK_EVERY_NS, REST * took)
        return told

    def _follow(self, tick: int) -> bool:
        """Take what was recorded since the last look; False if that is too far away."""
        first, last = self._chunk_of(self._tick), self._chunk_of(tick)
        if self._tick < 0 or last - first > 1:
            return False
        for number in range(first, last + 1):
            self._then.take(m for m in self._run.chunk(number).sights if self._tick < m["tick"] <= tick)
        return True

    def _rebuild(self, tick: int) -> None:
        """Begin at the last message with everything."""
        self._then = RecordedDisplay(self._layout)
        for seen in self._seen:
            seen[:] = -1
        messages: list[dict[str, Any]] = []
        for number in range(self._chunk_of(tick), -1, -1):
            before = [m for m in self._run.chunk(number).sights if m["tick"] <= tick]
            messages = before + messages
            if any(m["key"] for m in before):
                break
        keys = [k for k, m in enumerate(messages) if m["key"]]
        self._then.take(messages[keys[-1] if keys else 0 :])

    def _chunk_of(self, tick: int) -> int:
        return self._run.chunk_of_tick(max(0, tick))

    def _changes(self) -> Iterator[Told]:
        for k, (grid, sender) in enumerate(zip(self._then.grids, self._senders, strict=True)):
            with self._ground.lock:
                tiles = []
                for i, j in np.argwhere(grid.changes != self._seen[k]):
                    units = grid.units[sender.block(i, j)]
                    if grid.numbers[i, j] and (tile := sender.change_units(i, j, units)):
                        tiles.append(tile)
                self._seen[k][:] = grid.changes
                for number in self._turns[k].next():
                    i, j = divmod(number, sender.shape[1])
                    if sender.numbers[i, j]:
                        tiles.append(sender.whole(i, j))
            for at in range(0, len(tiles), MOST_TILES):
                yield "terrain", self._ground.message(k, tiles[at : at + MOST_TILES])
        if self._then.arrows != self._arrows:
            self._arrows = self._then.arrows
            yield "arrows", self._arrows
        if moved := {name: pose for name, pose in self._then.props.items() if self._props.get(name) != pose}:
            self._props |= moved
            yield "props", {"props": moved}
