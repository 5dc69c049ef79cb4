"""Display state in a recording: changes about twenty times a second, and the full state every ten seconds.

Each message of the channel `/sights` is a MessagePack map with `tick` and what changed: `grids` (messages of the topic
`terrain` without head), `arrows`, `props`. One with `key` holds all tiles and all props: a player that jumps begins at
the last one before the moment and goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgpack
import numpy as np

from bridge.protocol.terrain import GridReader
from bridge.publish.display_watch import DisplayWatch

KEY_EVERY = 10.0  # [s] between two messages with everything


class DisplayRecorder:
    """Looks at a node's display state for its recorder. `pending` are number, time and bytes of messages to write."""

    def __init__(self, node: str, layout: dict[str, Any], offset_ns: int) -> None:
        self.pending: list[tuple[int, int, bytes]] = []
        self._watch = DisplayWatch(node, layout)
        self._coder = time.monotonic_ns()
        self._offset = offset_ns
        self._number = 0
        self._key_due = 0.0

    def look(self, tick: int) -> None:
        """Note what has changed; `tick` is that of the newest row."""
        watch, now = self._watch, time.monotonic_ns()
        is_key = now * 1e-9 >= self._key_due
        tiles = [watch.changed_tiles(k) for k in range(len(watch.senders))]
        arrows, props = watch.new_arrows(), watch.moved_props()
        if is_key:
            self._key_due = now * 1e-9 + KEY_EVERY
            tiles = [[s.whole(i, j) for i, j in np.ndindex(*s.shape)] for s in watch.senders]
            props = list(range(len(watch.display.layout["props"])))
        message: dict[str, Any] = {"tick": tick, "key": is_key}
        grids = [
            {"grid": s.about["name"], "coder": self._coder, "tiles": told}
            for s, told in zip(watch.senders, tiles, strict=True)
            if told
        ]
        parts = {"grids": grids, "arrows": arrows, "props": watch.poses(props)}
        message |= {key: part for key, part in parts.items() if part}
        if is_key or len(message) > 2:
            self.pending.append((self._number, now + self._offset, msgpack.packb(message)))
            self._number += 1

    def take(self) -> list[tuple[int, int, bytes]]:
        """What there is to write now."""
        taken, self.pending = self.pending, []
        return taken


class RecordedDisplay:
    """What was shown at one moment of a recording, put together from its messages."""

    def __init__(self, layout: dict[str, Any]) -> None:
        self.layout = layout
        self.grids = [GridReader(about) for about in layout["grids"]]
        self.props: dict[str, Any] = {}
        self.arrows: dict[str, Any] = {"count": 0, "at": b"", "force": b""}

    def take(self, messages: Iterable[dict[str, Any]]) -> None:
        """Messages in their order."""
        for message in messages:
            for part in message.get("grids", ()):
                for grid in self.grids:
                    if grid.about["name"] == part["grid"]:
                        grid.take(part)
            self.props |= message.get("props", {})
            self.arrows = message.get("arrows", self.arrows)
