"""Block-sparse LDL' of the saddle-point matrix: order and pattern once, numbers at every step.

The matrix of a step (SPOOK eq. 9, Vortex eq. 16, with the multiplier's sign turned so that it is symmetric):

    K = | M   G' |        bodies: 6 x 6 blocks on the diagonal
        | G  -S  |        constraints: up to 6 rows each, S > 0 diagonal

K is quasi-definite, so L D L' exists for every order of elimination. Bodies and constraints are the nodes of
one graph; they are eliminated by least fill, which for a tree of bodies goes from the leaves to the root and
makes no fill at all: the cost is linear, as in the articulated-body method. A constraint is eliminated after at
least one of its bodies, so that no pivot is ever the tiny S alone.

    struct(p)   later neighbours of node p, those made by fill included: the blocks of column p of L
    parent      the first of them: the elimination tree. A right-hand side that starts at one node touches only
                the path to the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.jit import inline, kernel
from hilnode.record import F3, I1
from plant.algebra import mul, scale, spread, sub_outer

BLOCK = 6


class Pattern(NamedTuple):
    """The symbolic phase. Nodes are numbered in the order of elimination."""

    size: I1  # [nodes] 3 or 6
    fresh: I1  # [nodes] 1 = a body that no elimination has touched: its block is still a mass and an inertia
    first: I1  # [nodes + 1] where column p begins in `row`
    row: I1  # [blocks] node of each block below the diagonal
    parent: I1  # [nodes] first row of the column, -1 = root
    update: I1  # for each column, for each pair a < b of its rows: the block of column a and row b
    update_at: I1  # [nodes + 1] where column p begins in `update`


class Factor(NamedTuple):
    """The numeric phase.

    Blocks off the diagonal are kept transposed: pivot rows first, so that all loops run along rows.
    """

    diagonal: F3  # [nodes, 6, 6] K on the diagonal, then overwritten by inverses of D
    above: F3  # [blocks, 6, 6] K [p, q] for column p and row q, updated on the way
    right: F3  # [blocks, 6, 6] L' = inverse of D times above


def analyse(
    sizes: list[int], edges: list[tuple[int, int]], waits: list[bool], weights: list[float] | None = None
) -> tuple[Pattern, list[int]]:
    """Order and pattern of a graph: the pattern, and the old number of each new node.

    `waits[n]` marks a constraint, which must not go before one of its bodies has gone. `weights[n]` says how
    many right-hand sides start at a node: among equals, those far from the weighted centre go first, which
    keeps the paths from busy nodes to the root short, and the centre itself goes as late as it may.
    """
    neighbours: list[set[int]] = [set() for _ in sizes]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    far = _distance_from_centre(neighbours, weights or [1.0] * len(sizes))
    left, order, columns = set(range(len(sizes))), [], []
    touched: set[int] = set()

    def cost(n: int) -> tuple[int, int, int, int]:
        around = neighbours[n]
        fill = sum(sizes[a] * sizes[b] for a in around for b in around if a < b and b not in neighbours[a])
        return fill, -far[n], sum(sizes[m] for m in around), n

    costs = {n: cost(n) for n in left}
    while left:
        ready = [n for n in left if not waits[n] or n in touched] or list(left)
        outer = [n for n in ready if far[n] > 0] or ready
        node = min(outer, key=costs.__getitem__)
        around = neighbours[node]
        order.append(node)
        columns.append(around)
        left.discard(node)
        touched |= around
        for a in around:
            neighbours[a] |= around - {a}
            neighbours[a].discard(node)
        for a in around | {m for n in around for m in neighbours[n]}:
            costs[a] = cost(a)
    return _number(sizes, waits, order, columns), order


def _distance_from_centre(neighbours: list[set[int]], weights: list[float]) -> list[int]:
    """Steps from each node to the one from which the busy nodes are nearest; islands each have their own."""
    far = [0] * len(weights)
    seen: set[int] = set()
    for start in range(len(weights)):
        if start in seen:
            continue
        island = _distances(neighbours, start)
        seen |= island.keys()
        most = max(weights[n] for n in island)
        busy = [n for n in island if weights[n] > 0.25 * most] if len(island) > 200 else list(island)
        paths = {n: _distances(neighbours, n) for n in busy}
        centre = min(busy, key=lambda c: sum(weights[n] * d for n, d in paths[c].items()))
        for n, d in paths[centre].items():
            far[n] = d
    return far


def _distances(neighbours: list[set[int]], start: int) -> dict[int, int]:
    found, edge = {start: 0}, [start]
    while edge:
        edge = [m for n in edge for m in neighbours[n] if m not in found and not found.setdefault(m, found[n] + 1) < 0]
    return found


def _number(sizes: list[int], waits: list[bool], order: list[int], columns: list[set[int]]) -> Pattern:
    new = {old: k for k, old in enumerate(order)}
    rows = [sorted(new[m] for m in column) for column in columns]
    first = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    place = {(q, p): int(first[p] + k) for p, column in enumerate(rows) for k, q in enumerate(column)}
    update: list[int] = []
    update_at = [0]
    touched: set[int] = set()
    fresh = []
    for p, column in enumerate(rows):
        fresh.append(int(not waits[order[p]] and p not in touched))
        touched |= set(column)
        for i, a in enumerate(column):
            update += [place[b, a] for b in column[i + 1 :]]
        update_at.append(len(update))
    return Pattern(
        size=np.array([sizes[n] for n in order], np.int64),
        fresh=np.array(fresh, np.int64),
        first=first,
        row=np.array([q for column in rows for q in column], np.int64),
        parent=np.array([column[0] if column else -1 for column in rows], np.int64),
        update=np.array(update, np.int64),
        update_at=np.array(update_at, np.int64),
    )


def allocate(pattern: Pattern) -> Factor:
    """Memory for the numbers."""
    nodes, blocks = len(pattern.size), len(pattern.row)
    shape = (BLOCK, BLOCK)
    return Factor(np.zeros((nodes, *shape)), np.zeros((blocks, *shape)), np.zeros((blocks, *shape)))


@inline
def _invert3(a):
    """A symmetric definite 3 x 3 block by its inverse, in place."""
    m00, m01, m02, m11, m12, m22 = a[0, 0], a[0, 1], a[0, 2], a[1, 1], a[1, 2], a[2, 2]
    c00, c01, c02 = m11 * m22 - m12 * m12, m02 * m12 - m01 * m22, m01 * m12 - m02 * m11
    c11, c12, c22 = m00 * m22 - m02 * m02, m01 * m02 - m00 * m12, m00 * m11 - m01 * m01
    d = 1.0 / (m00 * c00 + m01 * c01 + m02 * c02)
    a[0, 0], a[0, 1], a[0, 2] = d * c00, d * c01, d * c02
    a[1, 0], a[1, 1], a[1, 2] = d * c01, d * c11, d * c12
    a[2, 0], a[2, 1], a[2, 2] = d * c02, d * c12, d * c22


@kernel
def _invert6(a):
    """A symmetric definite 6 x 6 block by its inverse, in place: sweep operator, a row at a time."""
    for k in range(6):
        d = 1.0 / a[k, k]
        for i in range(6):
            if i != k:
                f = a[i, k] * d
                for j in range(6):
                    a[i, j] -= f * a[k, j]
                a[i, k] = -f
        for j in range(6):
            a[k, j] *= d
        a[k, k] = d


@kernel
def _invert_body(a):
    """A block that is still a mass and an inertia."""
    d = 1.0 / a[0, 0]
    a[0, 0] = a[1, 1] = a[2, 2] = d
    _invert3(a[3:, 3:])


@inline
def _apply_body(d, b, m, out):
    """out [6, m] = D^-1 B for a block that is a mass and an inertia."""
    x = d[0, 0]
    for i in range(3):
        for j in range(m):
            out[i, j] = x * b[i, j]
        p, q, r = d[3 + i, 3], d[3 + i, 4], d[3 + i, 5]
        for j in range(m):
            out[3 + i, j] = p * b[3, j] + q * b[4, j] + r * b[5, j]


@kernel
def factorise(p, f):
    """`f.diagonal` and `f.above` hold K; afterwards inverses of D and L'."""
    for c in range(p.size.size):
        n = p.size[c]
        d = f.diagonal[c]
        first, last = p.first[c], p.first[c + 1]
        if p.fresh[c] == 1:
            _invert_body(d)
            for s in range(first, last):
                if p.size[p.row[s]] == 6:
                    _apply_body(d, f.above[s], 6, f.right[s])
                else:
                    _apply_body(d, f.above[s], 3, f.right[s])
        else:
            if n == 6:
                _invert6(d)
            else:
                _invert3(d)
            for s in range(first, last):
                mul(f.right[s], d, f.above[s], n, n, p.size[p.row[s]])
        u = p.update_at[c]
        for s in range(first, last):
            m = p.size[p.row[s]]
            sub_outer(f.diagonal[p.row[s]], f.above[s], f.right[s], n, m, m)
            for t in range(s + 1, last):
                sub_outer(f.above[p.update[u]], f.above[s], f.right[t], n, m, p.size[p.row[t]])
                u += 1


@kernel
def forward(p, f, x):
    """`x` [nodes, 6] = inverse of L times `x`, in place."""
    for c in range(p.size.size):
        for s in range(p.first[c], p.first[c + 1]):
            spread(f.right[s], x[c], x[p.row[s]], p.size[c], p.size[p.row[s]])


@kernel
def backward(p, f, x):
    """`x` = inverse of D L' times `x`, in place."""
    for c in range(p.size.size - 1, -1, -1):
        n, y = p.size[c], x[c]
        scale(f.diagonal[c], y, y, n)
        for s in range(p.first[c], p.first[c + 1]):
            z, r, m = x[p.row[s]], f.right[s], p.size[p.row[s]]
            for i in range(n):
                if m == 6:
                    y[i] -= (
                        r[i, 0] * z[0]
                        + r[i, 1] * z[1]
                        + r[i, 2] * z[2]
                        + r[i, 3] * z[3]
                        + r[i, 4] * z[4]
                        + r[i, 5] * z[5]
                    )
                else:
                    y[i] -= r[i, 0] * z[0] + r[i, 1] * z[1] + r[i, 2] * z[2]


@kernel
def solve(p, f, x):
    """`x` [nodes, 6] = inverse of K times `x`, in place."""
    forward(p, f, x)
    backward(p, f, x)
