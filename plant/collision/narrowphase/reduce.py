"""Contact reduction: a few well-spread points out of many, enough for a solver to hold a body steady.

The deepest point stays, then the one farthest from it, then the one that makes the largest triangle with these, then
the one that adds most to that triangle, then those farthest from all that are kept. A point whose normal differs from
those that are kept counts for more: in a corner between floor and wall both must hold. Points keep their order and
their features, and of equals the first is taken, so that the same points come back in the next step: a body at rest
trembles by less than what counts as equal here.

Where a point stands in for one that is a little deeper, the choice stays as it is but for one point: the deepest itself
takes the place of the closest that is kept. So the depth of a pair is that of all its points, to rounding, while its
other points stay.

Points across a gap count the less the wider it is: of all that lies ahead of a fast body, what it meets first, and what
it meets next when it turns about that, must hold it.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.numeric.algebra import cross

TINY = 1e-300
FIRM = 1.0 + 1e-3
"""A point must be better than an earlier one by this factor, so that trembling does not choose among equals."""
EVEN = 1e-5
"""Depths that differ by less than this part of the spread of the points are equal; 3 um for a body of 0.3 m."""
SAME = 1e-7
"""Depths that differ by less than this part of the spread are the same: a body at rest trembles by less."""
WIDE = 0.25
"""A gap that is wider than the least one by this part of the spread makes a point count a quarter."""
TURN = 0.5
"""Points with normals at an angle are that part of the spread, times the sine or so, farther apart than they are."""


@kernel
def reduce(out, count, most):
    """Keep at most `most` (>= 1) of the first `count` (<= 64) points of the manifold; returns how many are left."""
    if count <= most or most < 1:
        return count
    spread = _spread(out, count)
    first = _deepest(out, count, EVEN * spread)
    turn = (TURN * spread) ** 2
    least, wide = min(out.depth[first], 0.0), WIDE * spread + TINY
    kept = 1 << first
    second = third = first
    for k in range(1, most):
        best, top = -1, 0.0
        for p in range(count):
            if kept >> p & 1:
                continue
            value = _nearest(out, p, kept, count, 0.0 if k < 4 else 1.0, turn)
            if k == 1:
                value += _square(out, p, first)
            elif k == 2:
                value += _area(out, first, second, p)
            elif k == 3:
                value += _added(out, first, second, third, p)
            value *= _weight((least - min(out.depth[p], 0.0)) / wide)
            if best < 0 or value > top * FIRM:
                best, top = p, value
        kept |= 1 << best
        if k == 1:
            second = best
        elif k == 2:
            third = best
    return _compact(out, _with_deepest(out, kept, count, SAME * spread, turn), count)


@inline
def _weight(x):
    """1 where a gap is the least one; x: by how much it is wider."""
    part = 1.0 / (1.0 + x * x)
    return part * part


@inline
def _spread(out, count):
    """The longest side of the box about the points."""
    most = 0.0
    for m in range(3):
        low = high = out.point[0, m]
        for p in range(1, count):
            low, high = min(low, out.point[p, m]), max(high, out.point[p, m])
        most = max(most, high - low)
    return most


@inline
def _deepest(out, count, even):
    """The first of the points that are as deep as the deepest."""
    most = -math.inf
    for p in range(count):
        most = max(most, out.depth[p])
    best = 0
    while best < count - 1 and out.depth[best] < most - even:
        best += 1
    return best


@inline
def _with_deepest(out, kept, count, same, turn):
    """Put the deepest point in the place of the closest that is kept, unless one is kept that is as deep."""
    top, most = 0, -math.inf
    for p in range(count):
        if out.depth[p] > out.depth[top]:
            top = p
        if kept >> p & 1:
            most = max(most, out.depth[p])
    if most >= out.depth[top] - same:
        return kept
    nearest, best = top, math.inf
    for p in range(count):
        if kept >> p & 1:
            way = _square(out, p, top) + turn * _bent(out, p, top)
            if way < best:
                nearest, best = p, way
    return kept & ~(1 << nearest) | 1 << top


@inline
def _square(out, p, q):
    x = out.point[p, 0] - out.point[q, 0]
    y = out.point[p, 1] - out.point[q, 1]
    z = out.point[p, 2] - out.point[q, 2]
    return x * x + y * y + z * z


@inline
def _bent(out, p, q):
    """Square of the difference of two normals."""
    x = out.normal[p, 0] - out.normal[q, 0]
    y = out.normal[p, 1] - out.normal[q, 1]
    z = out.normal[p, 2] - out.normal[q, 2]
    return x * x + y * y + z * z


@inline
def _area_vector(out, p, q, r):
    """Area vector of the triangle, doubled: along its normal."""
    a = out.point
    return cross(
        a[q, 0] - a[p, 0],
        a[q, 1] - a[p, 1],
        a[q, 2] - a[p, 2],
        a[r, 0] - a[p, 0],
        a[r, 1] - a[p, 1],
        a[r, 2] - a[p, 2],
    )


@inline
def _area(out, p, q, r):
    """Twice the area of the triangle."""
    x, y, z = _area_vector(out, p, q, r)
    return math.sqrt(x * x + y * y + z * z)


@inline
def _added(out, p, q, r, new):
    """Twice what the new point adds to the area of the triangle: its largest triangle over a side, from outside."""
    nx, ny, nz = _area_vector(out, p, q, r)
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    most = 0.0
    for side in range(3):
        a, b = (p, q) if side == 0 else ((q, r) if side == 1 else (r, p))
        x, y, z = _area_vector(out, b, a, new)
        most = max(most, x * nx + y * ny + z * nz)
    return most / size if size > 0.0 else 0.0


@inline
def _nearest(out, p, kept, count, far, turn):
    """The least of `far` times the square of the distance, and `turn` times that of the normals, to a point kept."""
    best = math.inf
    for q in range(count):
        if kept >> q & 1:
            best = min(best, far * _square(out, p, q) + turn * _bent(out, p, q))
    return best


@inline
def _compact(out, kept, count):
    n = 0
    for p in range(count):
        if kept >> p & 1:
            for m in range(3):
                out.point[n, m] = out.point[p, m]
                out.normal[n, m] = out.normal[p, m]
            out.depth[n], out.feature[n] = out.depth[p], out.feature[p]
            n += 1
    return n
