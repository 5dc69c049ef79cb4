"""Block-sparse LDL' of the saddle-point matrix: numbers at every step, along the pattern that `order` has laid out.

The matrix of a step (SPOOK eq. 9, Vortex eq. 16, with the multiplier's sign turned so that it is symmetric):

    K = | M   G' |        bodies: 6 x 6 blocks on the diagonal
        | G  -S  |        constraints: up to 6 rows each, S > 0 diagonal

K is quasi-definite, so L D L' exists for every order of elimination. Every function works on the nodes of one island,
`first` to `last`, which are neighbours in the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.jit import inline, kernel
from hilnode.record import F3, I1
from plant.algebra import mul, scale, spread, sub_outer

BLOCK = 6


class Factor(NamedTuple):
    """The numeric phase.

    Blocks off the diagonal are kept transposed: pivot rows first, so that all loops run along rows.
    """

    fresh: I1  # [nodes] 1 = the diagonal block is a mass and an inertia, nothing more
    diagonal: F3  # [nodes, 6, 6] K on the diagonal, then overwritten by inverses of D
    above: F3  # [blocks, 6, 6] K [p, q] for column p and row q, updated on the way
    right: F3  # [blocks, 6, 6] L' = inverse of D times above


def new_factor(nodes: int, blocks: int) -> Factor:
    """Memory for the numbers."""
    shape = (BLOCK, BLOCK)
    return Factor(
        np.zeros(nodes, np.int64), np.zeros((nodes, *shape)), np.zeros((blocks, *shape)), np.zeros((blocks, *shape))
    )


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
def factorise(p, f, begin, end):
    """`f.diagonal` and `f.above` hold K; afterwards inverses of D and L'."""
    for c in range(begin, end):
        n = p.size[c]
        d = f.diagonal[c]
        first, last = p.first[c], p.first[c + 1]
        if f.fresh[c] == 1:
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
def forward(p, f, x, begin, end):
    """`x` [nodes, 6] = inverse of L times `x`, in place."""
    for c in range(begin, end):
        for s in range(p.first[c], p.first[c + 1]):
            spread(f.right[s], x[c], x[p.row[s]], p.size[c], p.size[p.row[s]])


@kernel
def backward(p, f, x, begin, end):
    """`x` = inverse of D L' times `x`, in place."""
    for c in range(end - 1, begin - 1, -1):
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
def solve(p, f, x, begin, end):
    """`x` [nodes, 6] = inverse of K times `x`, in place."""
    forward(p, f, x, begin, end)
    backward(p, f, x, begin, end)
