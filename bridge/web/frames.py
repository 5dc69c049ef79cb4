"""Binary frames to a page, little endian; the first byte is the kind. See docs/watch-in-a-browser.md"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.terrain import GridReader

STATE, TERRAIN, ARROWS, PROPS = 1, 2, 3, 4
STATE_HEAD = struct.Struct("<BBHIqddffHHI")
TERRAIN_HEAD = struct.Struct("<BBHI")
PATCH_HEAD = struct.Struct("<HHBBBB")
COUNT_HEAD = struct.Struct("<BBH")
ABSOLUTE, SHORT, BYTE = 0, 1, 2  # modes of a patch: i32 heights, or i16 or i8 to be added
MOST_PATCHES = 4096  # in one frame


class PageGround:
    """One grid as one page has it; gives what the page lacks."""

    def __init__(self, number: int, reader: GridReader) -> None:
        self._number, self._reader = number, reader
        self._units = np.zeros_like(reader.units)
        self._changes = np.zeros_like(reader.changes)
        self._stamp = 0

    def frame(self) -> bytes | None:
        """A TERRAIN frame of what has changed since the last one; None if nothing has."""
        reader = self._reader
        places = np.argwhere(reader.changes != self._changes)[:MOST_PATCHES]
        patches = []
        for i, j in places.tolist():
            self._changes[i, j] = reader.changes[i, j]
            if patch := self._patch(i * reader.about["tile"], j * reader.about["tile"]):
                patches.append(patch)
        if not patches:
            return None
        self._stamp = (self._stamp + 1) % 2**32
        return TERRAIN_HEAD.pack(TERRAIN, self._number, len(patches), self._stamp) + b"".join(patches)

    def _patch(self, i: int, j: int) -> bytes | None:
        """The rectangle of a tile that is different, as few bytes as will do."""
        n = self._reader.about["tile"]
        new, old = self._reader.units[i : i + n, j : j + n], self._units[i : i + n, j : j + n]
        difference = new.astype(np.int64) - old
        rows, columns = np.flatnonzero(difference.any(1)), np.flatnonzero(difference.any(0))
        if not len(rows):
            return None
        a, b, c, d = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
        part = difference[a:b, c:d]
        largest = int(np.abs(part).max())
        if largest < 2**7:
            mode, body = BYTE, part.astype("<i1").tobytes()
        elif largest < 2**15:
            mode, body = SHORT, part.astype("<i2").tobytes()
        else:
            mode, body = ABSOLUTE, new[a:b, c:d].astype("<i4").tobytes()
        old[:] = new
        return PATCH_HEAD.pack(i + a, j + c, mode, b - a, d - c, 0) + body + bytes(-len(body) % 4)


def arrows_frame(count: int, at: bytes, force: bytes) -> bytes:
    """An ARROWS frame from the fields of the topic `arrows`."""
    both = np.frombuffer(at, "<f4").reshape(-1, 3), np.frombuffer(force, "<f4").reshape(-1, 3)
    count = min(count, len(both[0]), 2**16 - 1)
    return COUNT_HEAD.pack(ARROWS, 0, count) + np.hstack([part[:count] for part in both]).tobytes()


class PropTable:
    """Where the props are, and how often each has moved."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._numbers = {name: k for k, name in enumerate(names)}
        form = np.dtype([("index", "<u2"), ("pad", "<u2"), ("pose", "<f4", 7)])
        self._table = np.zeros(len(names), form)
        self._table["index"] = np.arange(len(names))
        self.moves = np.zeros(len(names), np.int64)

    def take(self, props: dict[str, Any]) -> None:
        """Poses by name, as on the wire."""
        for name, pose in props.items():
            k = self._numbers.get(name)
            if k is None:
                continue
            new = np.array([*pose["p"], *pose["q"]], "<f4")
            if not self.moves[k] or (new != self._table["pose"][k]).any():
                self._table["pose"][k] = new
                self.moves[k] += 1

    def frame(self, seen: NDArray[np.int64]) -> bytes | None:
        """A PROPS frame of those that have moved since `seen`, which is brought up to date."""
        moved = np.flatnonzero(self.moves != seen)
        if not len(moved):
            return None
        seen[moved] = self.moves[moved]
        return COUNT_HEAD.pack(PROPS, 0, len(moved)) + self._table[moved].tobytes()
