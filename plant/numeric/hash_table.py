"""A hash table of positive integers in two arrays, for kernels: open addressing, a power of two of slots.

Empty places hold -1. The table must never be full; whoever sizes it leaves it half empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import inline, kernel


def places(entries: int) -> int:
    """Size of a table for so many entries."""
    return 1 << max(4, (2 * entries).bit_length())


def new_table(entries: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys and values."""
    return np.full(places(entries), -1, np.int64), np.zeros(places(entries), np.int64)


@inline
def _start(key, size):
    return ((key * 0x9E3779B97F4A7C1) >> 20) & (size - 1)


@kernel
def clear(keys):
    """Forget everything."""
    keys[:] = -1


@kernel
def put(keys, values, key, value):
    """Set `key` to `value`, new or not."""
    size = keys.size
    i = _start(key, size)
    while keys[i] != -1 and keys[i] != key:
        i = (i + 1) & (size - 1)
    keys[i] = key
    values[i] = value


@kernel
def get(keys, values, key):
    """The value of `key`, -1 if it has none."""
    size = keys.size
    i = _start(key, size)
    while keys[i] != -1:
        if keys[i] == key:
            return values[i]
        i = (i + 1) & (size - 1)
    return -1
