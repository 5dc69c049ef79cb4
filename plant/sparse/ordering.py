"""The symbolic phase: the order in which bodies and constraints are eliminated, and the blocks that this fills.

Bodies and constraints are the nodes of one graph. They are eliminated by least degree, which for a tree of bodies
goes from the leaves to the root and makes no fill at all: the cost is linear, as in the articulated-body method.
A constraint must not go before the bodies that have gone can carry it, or a pivot would be the tiny regularisation
alone. Bodies and constraints that have gone form groups; a group

    has free directions     six for a body, less the rows of its constraints: never less than none
    bears loose rows        of constraints whose other body has not gone: five at most, what one body bears for sure

and a constraint that breaks these rules goes only when nothing else is left: the mechanism is then over-constrained.

All of this runs in a kernel over arrays that were reserved at compile, so the graph may change while a machine
runs. Neighbours are kept as bits. The cost grows with the square of the nodes of an island: some 5 us for a
machine of 14 bodies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import I1, I2

BITS = 32  # neighbours kept in one word
ENDS = 6  # bodies that a constraint may hold together
LOOSE = 5  # rows that a group of bodies bears whatever their places are


class Pattern(NamedTuple):
    """What the numeric phase follows. Nodes are numbered in the order of elimination, island by island."""

    count: I1  # type: ignore[assignment]  # [3] nodes, blocks, updates
    size: I1  # [nodes] 3 or 6
    fresh: I1  # [nodes] 1 = a body that no elimination has touched: its block is still a mass and an inertia
    first: I1  # [nodes + 1] where column p begins in `row`
    row: I1  # [blocks] node of each block below the diagonal
    update: I1  # for each column, for each pair a < b of its rows: the block of column a and row b
    update_at: I1  # [nodes + 1] where column p begins in `update`


class Sketch(NamedTuple):
    """One island on its way to a pattern: nodes in local numbers, bodies and constraints in any order."""

    size: I1  # [nodes] 3 or 6
    rows: I1  # [nodes] rows that a constraint locks, 0 = a body
    ends: I2  # [nodes, ENDS] bodies of a constraint, -1 = none
    near: I2  # [nodes, words] bits of the neighbours that are not yet eliminated
    degree: I1  # [nodes]
    order: I1  # [nodes] old number of each new node
    place: I1  # [nodes] new number, -1 = not yet
    root: I1  # [nodes] union-find over what has been eliminated
    carries: I1  # [nodes] free directions left, at roots
    loose: I1  # [nodes] rows of constraints that reach out of the group, at roots


def new_pattern(nodes: int, blocks: int, updates: int) -> Pattern:
    """Room for so many nodes, blocks and updates."""

    def ints(n: int) -> np.ndarray:
        return np.zeros(n, np.int64)

    return Pattern(
        ints(3), ints(nodes), ints(nodes), ints(nodes + 1), ints(max(1, blocks)), ints(max(1, updates)), ints(nodes + 1)
    )


def new_sketch(nodes: int) -> Sketch:
    """Room for an island of so many nodes."""

    def ints(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    words = (nodes + BITS - 1) // BITS
    n = max(1, nodes)
    return Sketch(
        ints(n),
        ints(n),
        ints(n, ENDS),
        ints(n, max(1, words)),
        ints(n),
        ints(n),
        ints(n),
        ints(n),
        ints(n),
        ints(n),
    )


@inline
def _ones(v):
    """Bits set in the lower half of a word."""
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return ((v * 0x01010101) & 0xFFFFFFFF) >> 24


@kernel
def begin(s, n):
    """An island of `n` nodes without edges; sizes, rows and ends are there."""
    words = (n + BITS - 1) // BITS
    for v in range(n):
        s.place[v] = -1
        s.root[v] = v
        s.carries[v] = 0
        s.loose[v] = 0
        for w in range(words):
            s.near[v, w] = 0


@inline
def connect(s, a, b):
    """An edge between two nodes."""
    s.near[a, b >> 5] |= 1 << (b & 31)
    s.near[b, a >> 5] |= 1 << (a & 31)


@kernel
def _find(s, v):
    while s.root[v] != v:
        s.root[v] = s.root[s.root[v]]
        v = s.root[v]
    return v


@kernel
def _is_ready(s, v):
    """Whether the groups that constraint `v` would join can carry all of its rows."""
    carries, loose, reaches_out, last = 0, 0, False, -1
    for k in range(ENDS):
        body = s.ends[v, k]
        if body < 0:
            continue
        if s.place[body] < 0:
            reaches_out = True
            continue
        r = _find(s, body)
        if r == last:  # exact for two bodies; for couplings of more it may count a group twice
            continue
        last = r
        carries += s.carries[r]
        loose += s.loose[r]
    if reaches_out and loose > 0 and loose + s.rows[v] > LOOSE:
        return False
    return carries >= s.rows[v]


@kernel
def _merge(s, a, b):
    p, q = _find(s, a), _find(s, b)
    if p != q:
        s.root[q] = p
        s.carries[p] += s.carries[q]
        s.loose[p] += s.loose[q]


@kernel
def _reaches_out(s, v):
    for k in range(ENDS):
        if s.ends[v, k] >= 0 and s.place[s.ends[v, k]] < 0:
            return True
    return False


@kernel
def _account(s, v, n):
    """Node `v` has gone: groups grow together, free directions and loose rows are counted."""
    if s.rows[v] > 0:
        for k in range(ENDS):
            if s.ends[v, k] >= 0 and s.place[s.ends[v, k]] >= 0:
                _merge(s, v, s.ends[v, k])
        r = _find(s, v)
        s.carries[r] -= s.rows[v]
        if _reaches_out(s, v):
            s.loose[r] += s.rows[v]
        return
    s.carries[v] = 6
    for c in range(n):
        if s.rows[c] == 0 or s.place[c] < 0:
            continue
        for k in range(ENDS):
            if s.ends[c, k] == v:
                _merge(s, v, c)
                if not _reaches_out(s, c):
                    s.loose[_find(s, v)] -= s.rows[c]


@kernel
def _next(s, n):
    """The node of least degree among those that may go; a constraint that is not ready only if nothing else is left."""
    best, least = -1, 1 << 30
    for v in range(n):
        if s.place[v] < 0 and s.degree[v] < least and (s.rows[v] == 0 or _is_ready(s, v)):
            best, least = v, s.degree[v]
    if best >= 0:
        return best
    for v in range(n):
        if s.place[v] < 0 and s.degree[v] < least:
            best, least = v, s.degree[v]
    return best


@kernel
def _take_out(s, v, words):
    """Eliminate node `v`: its neighbours become neighbours of each other. `near[v]` stays as the column of L."""
    for w in range(words):
        bits, b = s.near[v, w], 0
        while bits >> b:
            if (bits >> b) & 1:
                a = w * BITS + b
                ones = 0
                for q in range(words):
                    s.near[a, q] |= s.near[v, q]
                s.near[a, a >> 5] &= ~(1 << (a & 31))
                s.near[a, v >> 5] &= ~(1 << (v & 31))
                for q in range(words):
                    ones += _ones(s.near[a, q])
                s.degree[a] = ones
            b += 1


@kernel
def lay_out(s, n, p):
    """Append the island in `s` to the pattern; 0, or 1 if there was no room (the pattern is then as before)."""
    words = (n + BITS - 1) // BITS
    base, blocks, updates = p.count[0], p.count[1], p.count[2]
    for v in range(n):
        ones = 0
        for w in range(words):
            ones += _ones(s.near[v, w])
        s.degree[v] = ones
    for k in range(n):
        v = _next(s, n)
        s.order[k] = v
        s.place[v] = k
        _take_out(s, v, words)
        _account(s, v, n)
    if base + n > p.size.size:
        return 1
    for k in range(n):
        v = s.order[k]
        p.size[base + k] = s.size[v]
        p.fresh[base + k] = 1 if s.rows[v] == 0 else 0
        p.first[base + k] = blocks
        if blocks + s.degree[v] > p.row.size:
            return 1
        blocks = _write_column(s, v, words, base, blocks, p)
    p.first[base + n] = blocks
    for t in range(p.first[base], blocks):
        p.fresh[p.row[t]] = 0
    for k in range(base, base + n):
        p.update_at[k] = updates
        m = p.first[k + 1] - p.first[k]
        if updates + m * (m - 1) // 2 > p.update.size:
            return 1
        updates = _write_updates(p, k, updates)
    p.update_at[base + n] = updates
    p.count[0], p.count[1], p.count[2] = base + n, blocks, updates
    return 0


@kernel
def _write_column(s, v, words, base, blocks, p):
    """Rows of node `v`'s column, rising."""
    start = blocks
    for w in range(words):
        bits, b = s.near[v, w], 0
        while bits >> b:
            if (bits >> b) & 1:
                row, t = base + s.place[w * BITS + b], blocks
                while t > start and p.row[t - 1] > row:
                    p.row[t] = p.row[t - 1]
                    t -= 1
                p.row[t] = row
                blocks += 1
            b += 1
    return blocks


@kernel
def _write_updates(p, k, updates):
    for i in range(p.first[k], p.first[k + 1]):
        t = p.first[p.row[i]]
        for j in range(i + 1, p.first[k + 1]):
            while p.row[t] != p.row[j]:
                t += 1
            p.update[updates] = t
            updates += 1
    return updates


def analyse(sizes: list[int], edges: list[tuple[int, int]], rows: list[int]) -> tuple[Pattern, list[int]]:
    """Order and pattern of one graph, for those who have no engine: the pattern and the old number of each new node.

    `rows[n]` is 0 for a body, else the rows of a constraint.
    """
    n = len(sizes)
    s = new_sketch(n)
    s.size[:n], s.rows[:n], s.ends[:] = sizes, rows, -1
    begin(s, n)
    for a, b in edges:
        connect(s, a, b)
        for constraint, body in ((a, b), (b, a)):
            if rows[constraint] and not rows[body]:
                s.ends[constraint, int((s.ends[constraint] >= 0).sum())] = body
    p = new_pattern(n, n * n, min(n**3, 1 << 24))
    if lay_out(s, n, p):
        raise AssertionError("a full graph has no more blocks than that")
    return p, s.order[:n].tolist()
