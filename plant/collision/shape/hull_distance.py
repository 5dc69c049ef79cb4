"""Signed distance of a point from a convex hull.

Inside, the closest face is the one whose plane is closest. Outside, the search begins on the face whose plane is
farthest below the point, and goes on to a face beside it that is nearer, until there is none: of the points of a convex
surface that no neighbour betters, only the closest of all lies on an edge, a corner, or a face that the point is above.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.shape.triangle import closest_point
from plant.collision.vec3 import dot, sub, times

MOST = 64  # faces that the search may cross; two or three as a rule


@inline
def _vertex(hull, v):
    return hull.vertex[v, 0], hull.vertex[v, 1], hull.vertex[v, 2]


@inline
def _normal(hull, f):
    return hull.plane[f, 0], hull.plane[f, 1], hull.plane[f, 2]


@kernel
def hull_distance(hull, h, p):
    """Signed distance of the point `p` (in the hull's frame) from hull `h`, and the normal there."""
    best, high = farthest_face(hull, h, p)
    if high <= 0.0:
        return high, _normal(hull, best)
    return distance_beyond(hull, best, p)


@inline
def farthest_face(hull, h, p):
    """The face of hull `h` whose plane is farthest below `p`, and how far that is: never more than the distance."""
    best, high = hull.face_first[h], -math.inf
    for f in range(hull.face_first[h], hull.face_first[h + 1]):
        height = dot(_normal(hull, f), p) - hull.plane[f, 3]
        if height > high:
            best, high = f, height
    return best, high


@kernel
def distance_beyond(hull, best, p):
    """Distance of a point outside, whose farthest face is `best`, and the normal there."""
    square, inside, foot = _on_face(hull, best, p)
    for _ in range(MOST):
        if inside:
            break
        begin = best
        for c in range(hull.loop_first[begin], hull.loop_first[begin + 1]):
            v = hull.loop[c]
            for q in range(hull.round_first[v], hull.round_first[v + 1]):
                f = hull.round[q]
                if f == best or f == begin or dot(_normal(hull, f), p) <= hull.plane[f, 3]:
                    continue
                nearer, within, there = _on_face(hull, f, p)
                if nearer < square:
                    best, square, inside, foot = f, nearer, within, there
        if best == begin:
            break
    size = math.sqrt(square)
    n = _normal(hull, best)
    if not inside and size > 1e-12:
        n = times(1.0 / size, sub(p, foot))
    return size, n


@kernel
def _on_face(hull, f, p):
    """Square of the distance from `p` to face `f`, whether the closest point lies within the face, and that point."""
    n = _normal(hull, f)
    first, end = hull.loop_first[f], hull.loop_first[f + 1]
    a = _vertex(hull, hull.loop[first])
    best, within, foot = math.inf, False, a
    for c in range(first + 1, end - 1):
        _, x, y, z = closest_point(p, a, _vertex(hull, hull.loop[c]), _vertex(hull, hull.loop[c + 1]))
        d = sub(p, (x, y, z))
        square = dot(d, d)
        if square < best:
            best, foot = square, (x, y, z)
            height = dot(d, n)
            within = square - height * height <= 1e-14 * square
    return best, within, foot
