"""Mailbox: the latest values of one device, in a lock-free quadruple buffer; one writer, many readers.

    word 0        head: letters written so far (on a cache line of its own)
    word 8 ...    SLOTS slots of 2 x channels words: values (float64), then the time each was measured [ns]

A letter is a value and a source time for every channel, because the channels of one device need not be measured
together.

Memory ordering
---------------
A seqlock with four copies. A plain seqlock has one copy and an odd/even counter: a writer that dies half
way leaves it odd for ever, and a reader that meets a writer must spin. Here the writer fills the *next* of four
slots and then raises the head, by the protocol of `ring.py` (same fences, same proof, with n = head - 1 and
capacity = SLOTS). So the last complete letter is always readable, even after the writer was killed in the
middle of the next one. A reader fails only if SLOTS - 1 letters were written during its copy of some tens of
nanoseconds; it then tries again, TRIES times at most, and otherwise keeps the letter it had: the tick never
spins.
"""

from __future__ import annotations

import time
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

KIND = 1
SLOTS = 4
TRIES = 4
LINE = 8  # words on a cache line


class BoxView(NamedTuple):
    """A mailbox as hot code sees it."""

    base: int  # address of the head
    channels: int


@kernel
def put(base: int, channels: int, values: int, stamps: int) -> None:
    """Publish `channels` values and source times from two addresses. For the one writer only."""
    head = load_relaxed(base)
    slot = base + 8 * (LINE + (head % SLOTS) * 2 * channels)
    fence_release()
    copy_words(slot, values, channels)
    copy_words(slot + 8 * channels, stamps, channels)
    store_release(base, head + 1)


@kernel
def take(base: int, channels: int, seen: int, values: int, stamps: int) -> int:
    """Copy the newest letter to two addresses unless it is number `seen`; return the number of the letter held then.

    A mailbox that was never written to has number 0. When the answer is `seen`, what stands at the addresses is
    worthless: copy to spare memory, and use it only if the number changed.
    """
    for _ in range(TRIES):
        head = load_acquire(base)
        if head == seen:
            return seen
        slot = base + 8 * (LINE + ((head - 1) % SLOTS) * 2 * channels)
        copy_words(values, slot, channels)
        copy_words(stamps, slot + 8 * channels, channels)
        fence_acquire()
        if load_relaxed(base) < head - 1 + SLOTS:
            return head
    return seen


class Mailbox:
    """The cold handle of a mailbox."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.channels = segment.shape[0]
        self.view = BoxView(segment.address, self.channels)
        self._letter = _Letter(self.channels)
        self._spare = _Letter(self.channels)
        self._seen = 0

    @classmethod
    def create(cls, name: str, *, channels: int, schema: int = 0) -> Mailbox:
        """A new mailbox for `channels` values."""
        if channels < 1:
            raise ValueError(f"mailbox {name!r} needs at least one channel")
        words = LINE + SLOTS * 2 * channels
        return cls(Segment.create(name, kind=KIND, words=words, schema=schema, shape=(channels, SLOTS)))

    @classmethod
    def attach(cls, name: str, *, schema: int | None = None) -> Mailbox:
        """Another process's mailbox."""
        return cls(Segment.attach(name, kind=KIND, schema=schema))

    def put(self, values: NDArray[np.float64], stamps: NDArray[np.int64] | int | None = None) -> None:
        """Publish values measured at `stamps` [ns, CLOCK_MONOTONIC]: one for each, one for all, or now."""
        letter = self._spare
        letter.values[:] = values
        letter.stamps[:] = time.monotonic_ns() if stamps is None else stamps
        put(self.view.base, self.channels, letter.values_at, letter.stamps_at)

    def take(self) -> tuple[int, NDArray[np.float64], NDArray[np.int64]]:
        """Number of the newest letter, its values and source times; the arrays are overwritten by later calls."""
        spare = self._spare
        got = take(self.view.base, self.channels, self._seen, spare.values_at, spare.stamps_at)
        if got != self._seen:  # only a whole letter replaces the one held
            self._seen, self._letter, self._spare = got, spare, self._letter
        return self._seen, self._letter.values, self._letter.stamps

    def close(self) -> None:
        self.segment.close()


class _Letter:
    """Values and source times of one letter, with their addresses at hand (asking numpy each time costs
    microseconds)."""

    def __init__(self, channels: int) -> None:
        self.values = np.zeros(channels)
        self.stamps = np.zeros(channels, np.int64)
        self.values_at: int = self.values.ctypes.data
        self.stamps_at: int = self.stamps.ctypes.data
