"""Support functions: the farthest point of a convex shape in a direction, all that GJK and EPA know of a shape.

A shape is a core and a radius: a sphere is a point with a radius, a capsule a line with one, the others are all core.
The algorithms work on the cores, where round shapes are exact and cheap, and add the radii at the end.

A hull of few vertices is searched through; on a larger one the search walks uphill along the edges from the vertex
that was found last.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind

SPHERE, CAPSULE, BOX, CYLINDER, CONE, HULL = (
    int(Kind.SPHERE),
    int(Kind.CAPSULE),
    int(Kind.BOX),
    int(Kind.CYLINDER),
    int(Kind.CONE),
    int(Kind.HULL),
)
FEW = 24  # vertices up to which looking at all is faster than climbing


@inline
def radius(shape, i):
    """The radius about the core of shape i."""
    return shape.size[i, 0] if shape.kind[i] <= CAPSULE else 0.0


@kernel
def climb(hull, h, start, dx, dy, dz):
    """The vertex of hull h that is farthest along (dx, dy, dz); the search begins at vertex `start`."""
    first, end = hull.first[h], hull.first[h + 1]
    v = hull.vertex
    if end - first <= FEW:
        best, top = first, dx * v[first, 0] + dy * v[first, 1] + dz * v[first, 2]
        for k in range(first + 1, end):
            high = dx * v[k, 0] + dy * v[k, 1] + dz * v[k, 2]
            if high > top:
                best, top = k, high
        return best
    best = start
    top = dx * v[best, 0] + dy * v[best, 1] + dz * v[best, 2]
    while True:
        at = best
        for e in range(hull.near_first[at], hull.near_first[at + 1]):
            k = hull.near[e]
            high = dx * v[k, 0] + dy * v[k, 1] + dz * v[k, 2]
            if high > top:
                best, top = k, high
        if best == at:
            return best


@inline
def core_support(shape, hull, i, start, dx, dy, dz):
    """Farthest point of the core of shape i along (dx, dy, dz), both in its own frame, and the hull's vertex there."""
    kind, size = shape.kind[i], shape.size
    if kind == HULL:
        k = climb(hull, shape.asset[i], start, dx, dy, dz)
        return hull.vertex[k, 0], hull.vertex[k, 1], hull.vertex[k, 2], k
    if kind == BOX:
        return math.copysign(size[i, 0], dx), math.copysign(size[i, 1], dy), math.copysign(size[i, 2], dz), start
    if kind == SPHERE:
        return 0.0, 0.0, 0.0, start
    if kind == CAPSULE:
        return 0.0, 0.0, math.copysign(size[i, 1], dz), start
    aside = math.sqrt(dx * dx + dy * dy)
    half = size[i, 1]
    if kind == CONE and 2.0 * half * dz >= size[i, 0] * aside:
        return 0.0, 0.0, half, start
    z = -half if kind == CONE else math.copysign(half, dz)
    if aside > 0.0:
        return size[i, 0] * (dx / aside), size[i, 0] * (dy / aside), z, start
    return 0.0, 0.0, z, start


@kernel
def support(shape, hull, placed, i, dx, dy, dz):
    """The point of convex shape i that is farthest along (dx, dy, dz), all in the world."""
    r, p = placed.rot, placed.pos
    lx = r[i, 0, 0] * dx + r[i, 1, 0] * dy + r[i, 2, 0] * dz
    ly = r[i, 0, 1] * dx + r[i, 1, 1] * dy + r[i, 2, 1] * dz
    lz = r[i, 0, 2] * dx + r[i, 1, 2] * dy + r[i, 2, 2] * dz
    start = hull.first[shape.asset[i]] if shape.kind[i] == HULL else 0
    x, y, z, _ = core_support(shape, hull, i, start, lx, ly, lz)
    size = math.sqrt(dx * dx + dy * dy + dz * dz)
    grow = radius(shape, i) / size if size > 0.0 else 0.0
    return (
        p[i, 0] + r[i, 0, 0] * x + r[i, 0, 1] * y + r[i, 0, 2] * z + grow * dx,
        p[i, 1] + r[i, 1, 0] * x + r[i, 1, 1] * y + r[i, 1, 2] * z + grow * dy,
        p[i, 2] + r[i, 2, 0] * x + r[i, 2, 1] * y + r[i, 2, 2] * z + grow * dz,
    )
