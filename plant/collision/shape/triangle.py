"""Geometry of a triangle: its closest point to a point, the normals that a contact there may have, the fold at an edge.

A point of a triangle lies in one of seven regions, and from the region follows which normals a contact there may have:
inside the face only the face's own; on an edge those between the two faces that share it; at a corner those that lie
behind no edge that ends there. A direction outside this cone belongs to a neighbour, which lists the contact itself: so
edges between flat triangles never show.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline
from plant.collision.vec3 import TINY, along, cross, dot, sub, times

FACE, EDGE, CORNER = 0, 1, 4  # regions: 0 the face, 1..3 edge k - 1 (from corner k - 1 to the next), 4..6 corner k - 4


@inline
def closest_point(p, a, b, c):
    """The point of the triangle abc closest to `p`, after its region.

    Ref: Luaces 4.30-4.40 (inside by barycentric coordinates, else on an edge), ordered so that each of the seven
    regions is met once.
    """
    ab, ac, ap = sub(b, a), sub(c, a), sub(p, a)
    d1, d2 = dot(ab, ap), dot(ac, ap)
    if d1 <= 0.0 and d2 <= 0.0:
        return 4, a[0], a[1], a[2]
    bp = sub(p, b)
    d3, d4 = dot(ab, bp), dot(ac, bp)
    if d3 >= 0.0 and d4 <= d3:
        return 5, b[0], b[1], b[2]
    cp = sub(p, c)
    d5, d6 = dot(ab, cp), dot(ac, cp)
    if d6 >= 0.0 and d5 <= d6:
        return 6, c[0], c[1], c[2]
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        x, y, z = along(a, d1 / (d1 - d3), ab)
        return 1, x, y, z
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        x, y, z = along(a, d2 / (d2 - d6), ac)
        return 3, x, y, z
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        x, y, z = along(b, (d4 - d3) / ((d4 - d3) + (d5 - d6)), sub(c, b))
        return 2, x, y, z
    scale = 1.0 / (va + vb + vc)
    x, y, z = along(along(a, vb * scale, ab), vc * scale, ac)
    return 0, x, y, z


@inline
def behind(d, a, b, apex):
    """Whether the direction `d` from the edge ab does not lean over the triangle that ends in `apex`.

    Of two neighbours both must be behind, or the face of one of them is nearer. A hair's breadth is allowed: a
    point exactly above an edge must belong to somebody.
    """
    e, f = sub(b, a), sub(apex, a)
    ee = dot(e, e)
    m = along(times(ee, f), -dot(f, e), e)  # into the triangle, perpendicular to the edge
    return dot(d, m) <= 1e-9 * math.sqrt(dot(d, d) * dot(m, m)) + TINY


@inline
def bend(a, b, c, apex):
    """How much the neighbour's `apex` lies above the plane of abc, as a sine: > 0 hollow, 0 flat, < 0 ridge."""
    n = cross(sub(b, a), sub(c, a))
    f = sub(apex, a)
    return dot(n, f) / math.sqrt(dot(n, n) * dot(f, f) + TINY)
