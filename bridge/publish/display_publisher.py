"""Publishes a plant's display state: topics `terrain`, `arrows` and `props`, and the full state on request.

A thread of its own looks at the node's display state twenty times a second and hands finished messages to the
publisher, whose own rhythm is the tick's. Once in a while every tile and every prop is sent again, for those who never
ask.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

from bridge.protocol.messages import Packer
from bridge.protocol.terrain import UNIT, GridSender
from bridge.publish.display_watch import DisplayWatch
from hilnode.shared.control import Control, Word

LOOK_EVERY = 0.05  # [s]
AROUND_S = 30.0  # [s] after which every tile and every prop has been sent again
MOST_TILES = 64  # in one message or answer


class Turns:
    """Whose turn it is to be sent again: each of `count` things once in AROUND_S."""

    def __init__(self, count: int) -> None:
        self._count, self._at = count, 0.0

    def next(self) -> list[int]:
        """Numbers for this look."""
        first = int(self._at)
        self._at += self._count * LOOK_EVERY / AROUND_S
        return [number % self._count for number in range(first, int(self._at))]


class GroundAnswers:
    """Answers about grids as they were told last."""

    def __init__(self, senders: Sequence[GridSender]) -> None:
        self.senders = senders
        self.lock = threading.Lock()  # who answers must not meet half a tile
        self._coder = time.monotonic_ns()

    def message(self, k: int, tiles: list[dict[str, Any]]) -> dict[str, Any]:
        """The body of a message about grid `k`."""
        return {"grid": self.senders[k].about["name"], "coder": self._coder, "tiles": tiles}

    def answer(self, grid: str | None = None, first: int = 0) -> dict[str, Any]:
        """The grids there are; or whole tiles of one, from number `first` on, and the number to go on with."""
        if grid is None:
            return {"grids": [s.about for s in self.senders], "unit": UNIT}
        names = [s.about["name"] for s in self.senders]
        if grid not in names:
            raise ValueError(f"terrain.grid = {grid!r}: there is {', '.join(names) or 'none'}")
        k = names.index(grid)
        sender = self.senders[k]
        with self.lock:
            numbers = range(first, min(first + MOST_TILES, sender.numbers.size))
            places = [divmod(number, sender.shape[1]) for number in numbers]
            tiles = [sender.whole(i, j) for i, j in places if sender.numbers[i, j]]
        more = first + MOST_TILES < sender.numbers.size
        return {**self.message(k, tiles), "next": first + MOST_TILES if more else None}


class DisplayPublisher:
    """Looks at the display state of one node. `messages` are frames that are ready to be sent."""

    def __init__(self, node: str, layout: dict[str, Any], packer: Packer, control: Control) -> None:
        self.messages: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self._watch, self._packer, self._control = DisplayWatch(node, layout), packer, control
        self._ground = GroundAnswers(self._watch.senders)
        self.terrain = self._ground.answer
        self._turns = [Turns(sender.numbers.size) for sender in self._watch.senders]
        self._prop_turns = Turns(len(layout["props"]))
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        if self._thread.ident:
            self._thread.join(1.0)

    def _work(self) -> None:
        while not self._ending.wait(LOOK_EVERY):
            self.look()

    def look(self) -> None:
        """Make messages of what has changed since the last look."""
        for k in range(len(self._turns)):
            for tiles in self._tiles_to_tell(k):
                self._put("terrain", self._ground.message(k, tiles))
        if arrows := self._watch.new_arrows():
            self._put("arrows", arrows)
        if props := {*self._watch.moved_props(), *self._prop_turns.next()}:
            self._put("props", {"props": self._watch.poses(sorted(props))})

    def _tiles_to_tell(self, k: int) -> list[list[dict[str, Any]]]:
        """The changed tiles of grid `k`, and those whose turn it is, in lists for one message each."""
        sender = self._watch.senders[k]
        with self._ground.lock:
            told = self._watch.changed_tiles(k)
            for number in self._turns[k].next():
                i, j = divmod(number, sender.shape[1])
                if sender.numbers[i, j]:
                    told.append(sender.whole(i, j))
        return [told[at : at + MOST_TILES] for at in range(0, len(told), MOST_TILES)]

    def _put(self, topic: str, body: dict[str, Any]) -> None:
        self.messages.put(self._packer.pack(topic, time.monotonic(), self._control[Word.TICK], body))

    def props(self) -> dict[str, Any]:
        """Where all props are."""
        props = self._watch.display.props
        return {"props": self._watch.poses(range(len(props.names))) if props else {}}


class NoDisplay:
    """The same for a plant that shows nothing beside its row."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self.terrain = GroundAnswers([]).answer

    def start(self) -> None:
        """There is nothing to look at."""

    def close(self) -> None:
        """Nothing was started."""

    def props(self) -> dict[str, Any]:
        """There are no props."""
        return {"props": {}}
