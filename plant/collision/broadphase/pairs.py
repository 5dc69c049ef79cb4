"""Pairs of shapes: which may collide at all, and sorted lists of pairs.

A pair (i, j) has the lower kind first, and of two shapes of one kind the lower number. As a whole number, its key,
it is i * 2^bits + j, so that sorted keys are pairs sorted by i and then j.

Excluded pairs of bodies (neighbours in a joint) are a sorted array, searched by halves: a shape asks only when its
neighbourhood changes, and ten thousand bodies take no more room than they have joints. The ground is body -1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import I1, I2, viewer
from plant.codes import BodyKind

DYNAMIC = int(BodyKind.DYNAMIC)
DIGIT = 11  # bits of one pass of the sort: its table stays in the nearest cache
DIGITS = 1 << DIGIT


class Pairs(NamedTuple):
    """Pairs of shapes whose boxes are nearer than the margin, sorted by (i, j)."""

    count: I1  # type: ignore[assignment]  # [1]
    pair: I2  # [n, 2]
    lost: I1  # [1] candidates or pairs that found no room in this step


view_pairs = viewer(Pairs)


def new_pairs(room: int) -> Pairs:
    """Room for so many pairs."""
    return Pairs(np.zeros(1, np.int64), np.zeros((room, 2), np.int64), np.zeros(1, np.int64))


def exclude(bodies: int, pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """The sorted keys of pairs of bodies, out of so many, whose shapes never meet; -1 is the ground."""
    listed = np.array(sorted({(min(p), max(p)) for p in pairs}), np.int64).reshape(-1, 2)
    if listed.size and (listed.min() < -1 or listed.max() >= bodies):
        raise ValueError(f"excluded pairs name bodies {listed.min()} to {listed.max()}; there are -1 to {bodies - 1}")
    return np.ascontiguousarray((listed[:, 0] + 1) * (bodies + 1) + listed[:, 1] + 1)


@inline
def is_excluded(excluded, bodies, a, b):
    """Whether the pair of bodies (a, b) is in the list."""
    if excluded.size == 0:
        return False
    key = (min(a, b) + 1) * (bodies + 1) + max(a, b) + 1
    first, last = 0, excluded.size
    while first < last:
        middle = (first + last) >> 1
        if excluded[middle] < key:
            first = middle + 1
        else:
            last = middle
    return first < excluded.size and excluded[first] == key


@inline
def may_meet(shape, role, excluded, bodies, i, j):
    """Whether two shapes can ever touch: one of them can give way, they are on two bodies, in each other's masks."""
    a, b = shape.body[i], shape.body[j]
    if a == b or (role[i] != DYNAMIC and role[j] != DYNAMIC):
        return False
    if (shape.group[i] & shape.mask[j]) == 0 or (shape.group[j] & shape.mask[i]) == 0:
        return False
    return not is_excluded(excluded, bodies, a, b)


@inline
def pair_key(shape, bits, i, j):
    """The pair as one number, the lower kind first."""
    a, b = shape.kind[i], shape.kind[j]
    if a > b or (a == b and i > j):
        return (j << bits) | i
    return (i << bits) | j


@kernel
def sort_keys(key, spare, table, count, bits):
    """Sort key[:count], numbers below 2^(2 bits), digit by digit; `spare` as long, `table` of DIGITS."""
    for shift in range(0, 2 * bits, DIGIT):
        table[:] = 0
        for n in range(count):
            table[(key[n] >> shift) & (DIGITS - 1)] += 1
        place = 0
        for d in range(DIGITS):
            place, table[d] = place + table[d], place
        for n in range(count):
            d = (key[n] >> shift) & (DIGITS - 1)
            spare[table[d]] = key[n]
            table[d] += 1
        for n in range(count):
            key[n] = spare[n]


@kernel
def merge_keys(old, old_count, new, new_count, changed, bits, out):
    """Put sorted `new` keys among the sorted `old` ones, leaving out old pairs with a changed shape.

    Returns how many there are, also if some found no room in `out`.
    """
    mask = (1 << bits) - 1
    n, k, room = 0, 0, out.size
    for m in range(old_count):
        key = old[m]
        if changed[key >> bits] + changed[key & mask] != 0:
            continue
        while k < new_count and new[k] < key:
            if n < room:
                out[n] = new[k]
            n, k = n + 1, k + 1
        if n < room:
            out[n] = key
        n += 1
    while k < new_count:
        if n < room:
            out[n] = new[k]
        n, k = n + 1, k + 1
    return n
