"""Binary frames to a page, little endian; the first byte is the kind. See docs/watch-in-a-browser.md"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.protocol.terrain import GridReader

STATE_HEAD = struct.Struct("<BBHIqdddffHHI")
TERRAIN_HEAD = struct.Struct("<BBHI")
PATCH_HEAD = struct.Struct("<HHBBBB")
COUNT_HEAD = struct.Struct("<BBH")
ABSOLUTE, SHORT, BYTE = 0, 1, 2  # modes of a patch: i32 heights, or i16 or i8 to be added
MOST_PATCHES = 4096  # in one frame


class FrameKind(IntEnum):
    """The first byte of a frame."""

    STATE = 1
    TERRAIN = 2
    ARROWS = 3
    PROPS = 4


class PageGround:
    """One grid as one page has it; gives what the page lacks."""

    def __init__(self, number: int, reader: GridReader) -> None:
        self._number, self._reader = number, reader
        self._tiles = np.zeros(reader.tiles.shape, np.int32)
        self._changes = np.zeros_like(reader.changes)
        self._stamp = 0

    def frame(self) -> bytes | None:
        """A TERRAIN frame of what has changed since the last one; None if nothing has."""
        reader = self._reader
        rows, columns = np.nonzero(reader.changes != self._changes)
        if not len(rows):
            return None
        which = rows[:MOST_PATCHES], columns[:MOST_PATCHES]
        new = reader.tiles[which]
        patches = self._patches(*which, new, new - self._tiles[which])
        self._tiles[which], self._changes[which] = new, reader.changes[which]
        if not patches:
            return None
        self._stamp = (self._stamp + 1) % 2**32
        return TERRAIN_HEAD.pack(FrameKind.TERRAIN, self._number, len(patches) // 3, self._stamp) + b"".join(patches)

    def _patches(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], new: NDArray[np.int32], difference: NDArray[np.int32]
    ) -> list[bytes]:
        """Of each tile the rectangle that is different, in as few bytes as will do."""
        n = self._reader.about["tile"]
        differs = difference != 0
        along_x: NDArray[np.bool_] = np.any(differs, axis=2)
        along_y: NDArray[np.bool_] = np.any(differs, axis=1)
        firsts = (along_x.argmax(1), along_y.argmax(1))
        ends = (n - along_x[:, ::-1].argmax(1), n - along_y[:, ::-1].argmax(1))
        largest = np.abs(difference).max((1, 2))
        mode = np.where(largest < 2**7, BYTE, np.where(largest < 2**15, SHORT, ABSOLUTE))
        table = np.stack([rows * n, columns * n, *firsts, *ends, mode, largest], 1).tolist()
        short, byte = difference.astype("<i2"), difference.astype("<i1")
        patches: list[bytes] = []
        for k, (i, j, a, c, b, d, how, most) in enumerate(table):
            if not most:
                continue
            source = byte if how == BYTE else short if how == SHORT else new
            body = source[k, a:b, c:d].tobytes()
            patches += (PATCH_HEAD.pack(i + a, j + c, how, b - a, d - c, 0), body, bytes(-len(body) % 4))
        return patches


def arrows_frame(count: int, at: bytes, force: bytes) -> bytes:
    """An ARROWS frame from the fields of the topic `arrows`."""
    both = np.frombuffer(at, "<f4").reshape(-1, 3), np.frombuffer(force, "<f4").reshape(-1, 3)
    count = min(count, len(both[0]), 2**16 - 1)
    return COUNT_HEAD.pack(FrameKind.ARROWS, 0, count) + np.hstack([part[:count] for part in both]).tobytes()


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
        return COUNT_HEAD.pack(FrameKind.PROPS, 0, len(moved)) + self._table[moved].tobytes()
