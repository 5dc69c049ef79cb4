"""Block-sparse LDL' of the saddle-point matrix: the numeric phase, on the pattern that `ordering` has laid out.

The matrix of a step (SPOOK eq. 9, Vortex eq. 16, with the multiplier's sign turned so that it is symmetric):

    K = | M   G' |        bodies: 6 x 6 blocks on the diagonal
        | G  -S  |        constraints: up to 6 rows each, S > 0 diagonal

K is quasi-definite, so L D L' exists for every order of elimination. Every function works on the nodes of one island,
`first` to `last`, which are neighbours in the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F3, I1
from plant.numeric.algebra import spread, sub_outer

BLOCK = 6


class Factor(NamedTuple):
    """The numeric phase.

    Blocks off the diagonal are kept transposed: pivot rows first, so that all loops run along rows.
    """

    fresh: I1  # [nodes] 1 = the diagonal block is a mass and an inertia, nothing more
    diagonal: F3  # [nodes, 6, 6] K on the diagonal, then overwritten by its factors
    above: F3  # [blocks, 6, 6] K [p, q] for column p and row q, updated on the way
    right: F3  # [blocks, 6, 6] what forward and backward substitution need of it


def new_factor(nodes: int, blocks: int) -> Factor:
    """Memory for the numbers."""
    shape = (BLOCK, BLOCK)
    return Factor(
        np.zeros(nodes, np.int64), np.zeros((nodes, *shape)), np.zeros((blocks, *shape)), np.zeros((blocks, *shape))
    )


@inline
def _decompose(a, n):
    """A symmetric block A [n, n] = U' D U, by rows of its upper half: U (unit diagonal left out) and 1 / D."""
    for k in range(n):
        d = 1.0 / a[k, k]
        for i in range(k + 1, n):
            f = a[k, i] * d
            for j in range(i, n):
                a[i, j] -= f * a[k, j]
        for j in range(k + 1, n):
            a[k, j] *= d
        a[k, k] = d


@inline
def _down(u, b, n, m):
    """B [n, m] = U'^-1 B, in place."""
    for k in range(n - 1):
        for i in range(k + 1, n):
            f = u[k, i]
            for j in range(m):
                b[i, j] -= f * b[k, j]


@inline
def _scaled(u, b, n, m, out):
    """out [n, m] = D^-1 B."""
    for i in range(n):
        d = u[i, i]
        for j in range(m):
            out[i, j] = d * b[i, j]


@kernel
def _eliminate(d, above, right, n, m, fresh):
    """`above` and `right` of one block whose pivot has been decomposed."""
    if fresh:  # the pivot is a mass and an inertia: only its lower half is not diagonal
        if m == 6:
            _down(d[3:, 3:], above[3:], 3, 6)
            _scaled(d, above, 6, 6, right)
        else:
            _down(d[3:, 3:], above[3:], 3, 3)
            _scaled(d, above, 6, 3, right)
    elif n == 6:
        if m == 6:
            _down(d, above, 6, 6)
            _scaled(d, above, 6, 6, right)
        else:
            _down(d, above, 6, 3)
            _scaled(d, above, 6, 3, right)
    elif m == 6:
        _down(d, above, 3, 6)
        _scaled(d, above, 3, 6, right)
    else:
        _down(d, above, 3, 3)
        _scaled(d, above, 3, 3, right)


@kernel
def factorise(p, f, begin, end):
    """`f.diagonal` and `f.above` hold K; afterwards the factors U and D of the pivots, U'^-1 K and D^-1 U'^-1 K.

    Nothing is ever inverted: stiff contacts make blocks of a bad condition, and the Schur complements keep their
    digits only if the pivots are solved with.
    """
    for c in range(begin, end):
        n = p.size[c]
        d = f.diagonal[c]
        first, last = p.first[c], p.first[c + 1]
        if f.fresh[c] == 1:
            d[0, 0] = d[1, 1] = d[2, 2] = 1.0 / d[0, 0]
            _decompose(d[3:, 3:], 3)
        elif n == 6:
            _decompose(d, 6)
        else:
            _decompose(d, 3)
        for s in range(first, last):
            _eliminate(d, f.above[s], f.right[s], n, p.size[p.row[s]], f.fresh[c] == 1)
        if n == 6:
            _update(p, f, c, 6)
        else:
            _update(p, f, c, 3)


@inline
def _update(p, f, c, n):
    """Take the pivot `c` of `n` rows off the blocks behind it."""
    u, last = p.update_at[c], p.first[c + 1]
    for s in range(p.first[c], last):
        m = p.size[p.row[s]]
        sub_outer(f.diagonal[p.row[s]], f.above[s], f.right[s], n, m, m)
        for t in range(s + 1, last):
            sub_outer(f.above[p.update[u]], f.above[s], f.right[t], n, m, p.size[p.row[t]])
            u += 1


@kernel
def forward(p, f, x, begin, end):
    """`x` [nodes, 6] = inverse of L times `x`, in place."""
    for c in range(begin, end):
        if p.size[c] == 6:
            _forward(p, f, x, c, 6)
        else:
            _forward(p, f, x, c, 3)


@inline
def _forward(p, f, x, c, n):
    """Column `c` of `n` rows."""
    u, y = f.diagonal[c], x[c]
    for k in range(n - 1):
        v = y[k]
        for i in range(k + 1, n):
            y[i] -= u[k, i] * v
    for s in range(p.first[c], p.first[c + 1]):
        spread(f.right[s], y, x[p.row[s]], n, p.size[p.row[s]])


@kernel
def backward(p, f, x, begin, end):
    """`x` = inverse of D L' times `x`, in place."""
    for c in range(end - 1, begin - 1, -1):
        if p.size[c] == 6:
            _backward(p, f, x, c, 6)
        else:
            _backward(p, f, x, c, 3)


@inline
def _backward(p, f, x, c, n):
    """Row `c` of `n` rows."""
    u, y = f.diagonal[c], x[c]
    for i in range(n):
        y[i] *= u[i, i]
    for s in range(p.first[c], p.first[c + 1]):
        z, r = x[p.row[s]], f.right[s]
        if p.size[p.row[s]] == 6:
            a, b, d, g, h, k = z[0], z[1], z[2], z[3], z[4], z[5]
            for i in range(n):
                y[i] -= r[i, 0] * a + r[i, 1] * b + r[i, 2] * d + r[i, 3] * g + r[i, 4] * h + r[i, 5] * k
        else:
            a, b, d = z[0], z[1], z[2]
            for i in range(n):
                y[i] -= r[i, 0] * a + r[i, 1] * b + r[i, 2] * d
    for i in range(n - 2, -1, -1):
        v = y[i]
        for j in range(i + 1, n):
            v -= u[i, j] * y[j]
        y[i] = v


@kernel
def solve(p, f, x, begin, end):
    """`x` [nodes, 6] = inverse of K times `x`, in place."""
    forward(p, f, x, begin, end)
    backward(p, f, x, begin, end)
