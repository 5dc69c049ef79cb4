"""Ring buffer: one writer, many readers, lock-free; one row per push, and the oldest row is overwritten.

    word 0        head: rows pushed so far (on a cache line of its own)
    word 8 ...    capacity x width words; row n stands in slot n mod capacity

Memory ordering
---------------
The head alone is the lock; there is no per-slot stamp and no reader state in
shared memory, so a reader or a writer may die at any instruction and leave nothing locked.

Writer, row n (head reads n):
    W1  fence release
    W2  relaxed stores of the payload into slot n mod capacity
    W3  store-release head = n + 1

Reader, row n:
    R1  load-acquire head; n < head or the row is not there yet
    R2  relaxed loads of the payload
    R3  fence acquire
    R4  relaxed load of head again; the copy is whole if head < n + capacity

*A row that is there is whole.* R1 reads a head >= n + 1 stored by W3 of row n or a later row, so it
synchronises with that release: all of W2 of row n happens before R2.

*A row that was overwritten meanwhile is noticed.* Slot n is next written by W2 of row n + capacity, which comes
after W3 of row n + capacity - 1 (head becomes n + capacity) and after the fence W1 between them. If R2 saw one
word of that later row, the fences W1 and R3 synchronise (a relaxed store after a release fence was read by a
relaxed load before an acquire fence), so R4 must see head >= n + capacity, and the copy is thrown away. Payload
words are themselves atomic, so the discarded copy is not even a data race.

*Loss is exact.* Rows are numbered by the head; a reader that finds its row gone moves on to the oldest row that
can still be read and adds the difference, so received + lost = last row seen + 1 - where it began, always.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.shared.lockfree.atomics import (
    copy_words,
    fence_acquire,
    fence_release,
    load_acquire,
    load_relaxed,
    store_release,
)
from hilnode.shared.lockfree.segment import Segment

KIND = 2
LINE = 8  # words on a cache line


class RingView(NamedTuple):
    """A ring as hot code sees it: three integers."""

    base: int  # address of the head
    capacity: int  # rows
    width: int  # words in a row


@kernel
def pushed(ring: RingView) -> int:
    """Rows pushed so far."""
    return load_acquire(ring.base)


@kernel
def push(ring: RingView, source: int) -> None:
    """Publish the row at address `source`. For the one writer only."""
    head = load_relaxed(ring.base)
    slot = ring.base + 8 * (LINE + (head % ring.capacity) * ring.width)
    fence_release()  # W1
    copy_words(slot, source, ring.width)  # W2
    store_release(ring.base, head + 1)  # W3


@kernel
def pull(ring: RingView, row: int, target: int) -> int:
    """Copy row number `row` to address `target`.

    Returns 1 if the copy is whole, 0 if the row is not there yet, or -k if it is gone and k rows are lost: go
    on with row + k.
    """
    head = load_acquire(ring.base)  # R1
    if row >= head:
        return 0
    if head < row + ring.capacity:
        copy_words(target, ring.base + 8 * (LINE + (row % ring.capacity) * ring.width), ring.width)  # R2
        fence_acquire()  # R3
        head = load_relaxed(ring.base)  # R4
        if head < row + ring.capacity:
            return 1
    # Lapped. The oldest row that is safe now is head - capacity + 1; leave an eighth of the ring as a head start.
    return -(head - ring.capacity + 1 + ring.capacity // 8 - row)


@kernel
def drain(ring: RingView, cursor: NDArray[np.int64], out: NDArray[np.int64]) -> int:
    """Copy as many rows as are there into `out` [rows, width]; return how many.

    `cursor` holds the next row to read and the rows lost so far; both are moved on.
    """
    count = 0
    while count < out.shape[0]:
        got = pull(ring, cursor[0], out.ctypes.data + 8 * ring.width * count)
        if got == 0:
            break
        if got > 0:
            cursor[0] += 1
            count += 1
        else:
            cursor[0] -= got
            cursor[1] -= got
    return count


class Ring:
    """The cold handle: create or attach, then `view` for hot code, or `push` here and `reader` elsewhere."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        capacity, width = segment.shape
        self.view = RingView(segment.address, capacity, width)

    @classmethod
    def create(cls, name: str, *, capacity: int, width: int, schema: int = 0) -> Ring:
        """A new ring of `capacity` rows (at least 16) of `width` words."""
        if capacity < 16 or width < 1:
            raise ValueError(f"ring {name!r}: capacity {capacity} must be 16 or more and width {width} 1 or more")
        words = LINE + capacity * width
        return cls(Segment.create(name, kind=KIND, words=words, schema=schema, shape=(capacity, width)))

    @classmethod
    def attach(cls, name: str, *, schema: int | None = None) -> Ring:
        """Another process's ring."""
        return cls(Segment.attach(name, kind=KIND, schema=schema))

    def __len__(self) -> int:
        """Rows pushed so far, the overwritten ones included."""
        return int(pushed(self.view))

    def push(self, row: NDArray[np.int64]) -> None:
        """Publish one row (int64 words, contiguous)."""
        if row.shape != (self.view.width,) or row.dtype != np.int64 or not row.flags.c_contiguous:
            raise ValueError(f"a row is {self.view.width} contiguous int64 words, not {row.dtype} {row.shape}")
        push(self.view, row.ctypes.data)

    def reader(self, *, first: int | None = None, batch: int = 256) -> RingReader:
        """A cursor of one's own, from row number `first` (0: all there has been) or from now on.

        Rows from `first` on that are gone already count as lost.
        """
        if first is not None and first < 0:
            raise ValueError(f"rows are numbered from 0; there is no row {first}")
        return RingReader(self, len(self) if first is None else first, batch)

    def close(self) -> None:
        self.segment.close()


class RingReader:
    """Reads every row it can, counts exactly the rows it could not."""

    def __init__(self, ring: Ring, first: int, batch: int) -> None:
        self._ring = ring
        self._cursor = np.array([first, 0], np.int64)
        self._out = np.empty((batch, ring.view.width), np.int64)

    @property
    def next(self) -> int:
        """Number of the next row."""
        return int(self._cursor[0])

    @property
    def lost(self) -> int:
        """Rows that were overwritten before this reader came to them."""
        return int(self._cursor[1])

    def read(self) -> NDArray[np.int64]:
        """The rows that have come, at most `batch`; a view that the next call overwrites."""
        return self._out[: drain(self._ring.view, self._cursor, self._out)]
