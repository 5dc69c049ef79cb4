"""The control block: single words in shared memory through which the tick, the node and the watchdog see each other.

Each word has one writer and stands on a cache line of its own. A word is read and written whole and stands for
itself, so no ordering between two of them is needed, and readers without a compiler (the watchdog) can use
plain aligned loads.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.lockfree.segment import Segment

KIND = 3
STRIDE = 8  # words on a cache line


class Word(IntEnum):
    """Who writes it: T the tick, N the node's Python side, W the watchdog."""

    HEARTBEAT = 0  # T  CLOCK_MONOTONIC at the last sign of life [ns]
    TICK = 1  # T  rows pushed
    STEP = 2  # T  plant steps done
    STATE = 3  # T  State
    LIVE = 4  # T  1 while devices may get live values
    OVERRUNS = 5  # T  overruns since arming, grace not counted
    STOP = 6  # N  1 asks the loop to end after this tick
    PID = 7  # N  the node
    TID = 8  # N  the tick's thread
    CPU = 9  # N  the CPU it is pinned to, or -1
    FIRED = 10  # W  times the watchdog has driven the devices to their safe values
    EXCUSED = 11  # T  firings the operator has cleared; live values need FIRED == EXCUSED
    WATCHDOG = 12  # W  CLOCK_MONOTONIC of the watchdog's last look [ns]
    CLOSING = 13  # N  1 = an orderly end has begun: devices are safe, the watchdog may go
    GC_COUNT = 14  # N  garbage collections in the node's process
    GC_NS = 15  # N  time spent in them [ns]
    PERIOD = 16  # T  time between deadlines now [ns]


class Control:
    """The control block of one node."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.words: NDArray[np.int64] = segment.words[::STRIDE]

    @classmethod
    def create(cls, node: str) -> Control:
        """The owner's side; refuses if a living node has this name."""
        return cls(Segment.create(f"{node}.control", kind=KIND, words=STRIDE * len(Word)))

    @classmethod
    def attach(cls, node: str) -> Control:
        return cls(Segment.attach(f"{node}.control", kind=KIND))

    def __getitem__(self, word: Word) -> int:
        return int(self.words[word])

    def __setitem__(self, word: Word, value: int) -> None:
        self.words[word] = value

    @property
    def live(self) -> bool:
        """Whether a device may get what the plant says, rather than its safe value."""
        return self[Word.LIVE] == 1 and self[Word.FIRED] == self[Word.EXCUSED]

    def close(self) -> None:
        self.segment.close()
