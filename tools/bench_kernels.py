"""Timing loops that must run inside compiled code, for tools/bench_node.py."""

import atexit
import os
from functools import cache

import numpy as np

from hilnode.core.jit import kernel
from hilnode.shared.clock import now_ns
from hilnode.shared.lockfree.mailbox import Mailbox, take
from hilnode.shared.lockfree.ring import Ring, push

WORDS = 256  # 2 KB
NOBODY = -1  # a letter number that is never held, so that each read copies


@kernel
def _push_many(ring, source, count):
    began = now_ns()
    for _ in range(count):
        push(ring, source)
    return (now_ns() - began) / count


@kernel
def _take_many(base, channels, values, stamps, count):
    began = now_ns()
    held = 0
    for _ in range(count):
        held += take(base, channels, NOBODY, values, stamps)
    return (now_ns() - began) / count + 0 * held


@cache
def _ring() -> Ring:
    """A ring with every page touched, as a node's is once its memory is locked."""
    ring = Ring.create(f"bench-{os.getpid()}.ring", capacity=8192, width=WORDS)
    atexit.register(ring.close)
    _push_many(ring.view, np.arange(WORDS).ctypes.data, 8192)
    return ring


def ring_push_ns(count: int) -> float:
    """One push after another, each into the next of 8192 slots."""
    row = np.arange(WORDS)
    return _push_many(_ring().view, row.ctypes.data, count)


def mailbox_read_ns(count: int) -> float:
    """128 values and their 128 source times: 2 KB."""
    box = Mailbox.create(f"bench-{os.getpid()}.box", channels=WORDS // 2)
    box.put(np.arange(WORDS // 2, dtype=float))
    values, stamps = np.zeros(WORDS // 2), np.zeros(WORDS // 2, np.int64)
    took = _take_many(box.view.base, box.channels, values.ctypes.data, stamps.ctypes.data, count)
    box.close()
    return took
