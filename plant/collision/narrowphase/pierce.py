"""Faces of a surface that a solid pierces like a peg, with none of its points inside and no convex edge inside it.

The plane of such a face cuts the solid, so the line from the solid's centre to its lowest point over the face, or its
highest, goes through that plane inside the solid. Where no ridge and no border of the surface is inside the solid, all
of the cut is surface: the place lies in this face, in another one of the same plane, or beyond a hollow edge, below the
face there. In the first case the face holds it (the second is the other face's); in the third the caller asks what is
above it.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.ridge import way_out
from plant.collision.shape.solid import BOX, HULL, point, points, rim_way
from plant.collision.vec3 import dot, times

EVEN = 1e-9  # of the size of a solid: of two points as low as each other the first counts


@inline
def _lowest(kind, size, hull, h, n, even):
    """The point of a solid that is lowest along `n`; of several the first, so that rounding does not decide."""
    x, y = rim_way(n)
    step = 1 if kind == BOX or kind == HULL else 4  # of a rim its lowest point
    best = point(kind, size, hull, h, 0, x, y)
    low = dot(n, best)
    for k in range(step, points(kind, hull, h), step):
        p = point(kind, size, hull, h, k, x, y)
        s = dot(n, p)
        if s < low - even:
            best, low = p, s
    return best, low


@kernel
def place_in_plane(kind, size, hull, h, n, height):
    """Where the line from the centre of a solid to its lowest or highest point goes through the plane n . x = height,
    and how far the solid reaches below that; 0 if it does not cut it."""
    even = EVEN * (size[0] + size[1])
    p, low = _lowest(kind, size, hull, h, n, even)
    if low >= height:
        return p, 0.0
    below = height - low
    if height > 0.0:
        p, low = _lowest(kind, size, hull, h, times(-1.0, n), even)
        if height >= -low:
            return p, 0.0
        low = -low
    return times(height / low, p), below


@inline
def depth_below(kind, size, hull, h, p, n):
    """How far the solid reaches from `p`, a place in it, against `n`."""
    return way_out(kind, size, hull, h, p, times(-1.0, n), 2.0 * (size[0] + size[1] + size[2]))[0]
