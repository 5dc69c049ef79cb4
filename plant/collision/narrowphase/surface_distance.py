"""Signed distance of a point from a mesh or a height field, within a limited reach, and the normal there.

Below a surface the distance is negative. Where there is nothing to touch (beyond the border of an open mesh, or further
below it than a body can be seen) the point is said to be just out of reach, with a null normal.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import apex, below, cells, corner_of, is_sample, sample, triangle
from plant.collision.narrowphase.mesh_normals import normal_there, on_border
from plant.collision.narrowphase.mesh_round import nearest
from plant.collision.shape.mesh import corner, gap
from plant.collision.shape.triangle import CORNER, FACE, closest_point
from plant.collision.vec3 import cross, dot, sub, times, unit

NONE = (0.0, 0.0, 0.0)


@kernel
def mesh_distance(mesh, m, p, limit, reach, seed):
    """From mesh `m`; farther than `limit` the distance is said to be `limit`, with a null normal.

    `seed` [1] has a triangle that may be near, or -1; the closest one is left there for a point close by.
    """
    square, t = limit * limit, seed[0]
    if t >= 0:
        _, x, y, z = closest_point(p, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
        d = sub(p, (x, y, z))
        square = min(square, dot(d, d) * (1.0 + 1e-12) + 1e-300)
    t, region, x, y, z = nearest(mesh, m, p, square)
    seed[0] = t
    if t < 0:
        if mesh.closed[m] == 0 or gap(mesh, mesh.first_node[m], p) > 0.0:
            return limit, NONE
        t, region, x, y, z = nearest(mesh, m, p, math.inf)
    n, _ = normal_there(mesh, t, region)
    d = sub(p, (x, y, z))
    size = math.sqrt(dot(d, d))
    way = 1.0 if dot(d, n) >= 0.0 else -1.0
    if way < 0.0 and (on_border(mesh, t, region) or (mesh.closed[m] == 0 and size > reach)):
        return reach, NONE
    if region != FACE and size > 1e-9 * reach:
        n = times(way / size, d)
    return way * size, n


@kernel
def field_distance(field, f, p, limit, reach):
    """From field `f`; farther than `limit` the distance is said to be `limit`, with a null normal.

    The triangle straight below (or above) says how far to look.
    """
    inside, x, y, k = below(field, f, p)
    best, owner, where, foot = limit * limit, -1, FACE, p
    if x >= 0:
        best, owner, where, foot = _look(field, f, x, y, k, p, best, owner, where, foot)
    far = math.sqrt(best)
    x0, y0, x1, y1 = cells(field, f, p[0] - far, p[1] - far, p[0] + far, p[1] + far)
    for cx in range(x0, x1):
        for cy in range(y0, y1):
            if _is_near(field, f, cx, cy, p, best):
                best, owner, where, foot = _look(field, f, cx, cy, 0, p, best, owner, where, foot)
                best, owner, where, foot = _look(field, f, cx, cy, 1, p, best, owner, where, foot)
    if owner < 0:
        if not inside:
            return limit, NONE
        a, n = _plane(field, f, x, y, k)
        return dot(sub(p, a), n), n
    size = math.sqrt(best)
    x, y, k = owner // 2 // field.ny[f], owner // 2 % field.ny[f], owner % 2
    a, n = _plane(field, f, x, y, k)
    d = sub(p, foot)
    if inside:
        if where != FACE and size > 1e-9 * reach:
            n = times(-1.0 / size, d)
        return -size, n
    if dot(d, n) < 0.0 and _on_rim(field, f, x, y, k, where):
        return reach, NONE
    if where != FACE and size > 1e-9 * reach:
        n = times(1.0 / size, d)
    return size, n


@inline
def _plane(field, f, x, y, k):
    """A corner of a triangle, and its normal."""
    a, b, c = triangle(field, f, x, y, k)
    return a, unit(cross(sub(b, a), sub(c, a)))


@inline
def _is_near(field, f, x, y, p, best):
    """Whether the box of a cell is nearer than the square root of `best`."""
    a, c = sample(field, f, x, y), sample(field, f, x + 1, y + 1)
    b, d = sample(field, f, x + 1, y)[2], sample(field, f, x, y + 1)[2]
    u = max(a[0] - p[0], 0.0, p[0] - c[0])
    v = max(a[1] - p[1], 0.0, p[1] - c[1])
    w = max(min(a[2], b, c[2], d) - p[2], 0.0, p[2] - max(a[2], b, c[2], d))
    return u * u + v * v + w * w < best


@inline
def _look(field, f, x, y, k, p, best, owner, where, foot):
    """Take triangle `k` of cell (x, y) if it is nearer than the best."""
    a, b, c = triangle(field, f, x, y, k)
    region, u, v, w = closest_point(p, a, b, c)
    d = sub(p, (u, v, w))
    square = dot(d, d)
    if square < best:
        return square, (x * field.ny[f] + y) * 2 + k, region, (u, v, w)
    return best, owner, where, foot


@inline
def _on_rim(field, f, x, y, k, region):
    """Whether a region of a triangle lies on the border of the field."""
    if region == FACE:
        return False
    if region < CORNER:
        u, v = apex(x, y, k, region - 1)
        return not is_sample(field, f, u, v)
    u, v = corner_of(x, y, k, region - CORNER)
    return u == 0 or v == 0 or u == field.nx[f] - 1 or v == field.ny[f] - 1
