"""Convex solids against surfaces: their signed distance, and the points that can touch a face.

The signed distance is negative inside and convex; its gradient is the solid's outward normal there. It is exact for
box, cylinder and cone. For a hull it is the largest height over its faces, which is exact inside, and the distance
from the hull where that height is more than 0 but within the reach that is asked for. Further out, where it is never
more than the distance, it says all that a search along a line needs: that this side of the line is out of reach.

The points that can touch a face are the corners; a rim has its lowest point and three more at right angles, which keep
a standing cylinder from rocking.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind
from plant.collision.shape.hull_distance import distance_beyond, farthest_face
from plant.collision.vec3 import TINY, dot, sub

BOX, CYLINDER, CONE, HULL = int(Kind.BOX), int(Kind.CYLINDER), int(Kind.CONE), int(Kind.HULL)


@kernel
def signed(kind, size, hull, h, p, reach):
    """Distance from `p` to the surface of a solid in its own frame, negative inside, and the outward normal there.

    Beyond `reach` the distance of a hull may be too small.
    """
    if kind == BOX:
        return _signed_box(size, p)
    if kind == HULL:
        return _signed_hull(hull, h, p, reach)
    rho = math.sqrt(p[0] * p[0] + p[1] * p[1])
    if kind == CYLINDER:
        distance, along, up = _signed_profile_cylinder(size[0], size[1], rho, p[2])
    else:
        distance, along, up = _signed_profile_cone(size[0], size[1], rho, p[2])
    if rho > TINY:
        return distance, along * p[0] / rho, along * p[1] / rho, up
    return distance, along, 0.0, up


@inline
def _signed_box(size, p):
    x, y, z = abs(p[0]) - size[0], abs(p[1]) - size[1], abs(p[2]) - size[2]
    sx, sy, sz = math.copysign(1.0, p[0]), math.copysign(1.0, p[1]), math.copysign(1.0, p[2])
    if x <= 0.0 and y <= 0.0 and z <= 0.0:
        if x >= y and x >= z:
            return x, sx, 0.0, 0.0
        if y >= z:
            return y, 0.0, sy, 0.0
        return z, 0.0, 0.0, sz
    x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    d = math.sqrt(x * x + y * y + z * z)
    return d, sx * x / d, sy * y / d, sz * z / d


@inline
def _signed_profile_cylinder(radius, half, rho, z):
    a, b, s = rho - radius, abs(z) - half, math.copysign(1.0, z)
    if a <= 0.0 and b <= 0.0:
        if a >= b:
            return a, 1.0, 0.0
        return b, 0.0, s
    a, b = max(a, 0.0), max(b, 0.0)
    d = math.sqrt(a * a + b * b)
    return d, a / d, s * b / d


@inline
def _signed_profile_cone(radius, half, rho, z):
    """In the half plane of the axis and the point: a base from the axis to the rim, a flank from the rim to the tip."""
    size = max(math.sqrt(4.0 * half * half + radius * radius), TINY)
    nx, nz = 2.0 * half / size, radius / size
    base, flank = -half - z, nx * rho + nz * (z - half)
    if base <= 0.0 and flank <= 0.0:
        if base >= flank:
            return base, 0.0, -1.0
        return flank, nx, nz
    if base > 0.0 and rho <= radius:
        return base, 0.0, -1.0
    s = (rho * radius - (z - half) * 2.0 * half) / (size * size)  # from the tip down the flank
    if 0.0 < s < 1.0:
        return flank, nx, nz
    x, y = (rho, z - half) if s <= 0.0 else (rho - radius, z + half)  # from the tip or the rim
    d = max(math.sqrt(x * x + y * y), TINY)
    return d, x / d, y / d


@inline
def _signed_hull(hull, h, p, reach):
    face, height = farthest_face(hull, h, p)
    if 0.0 < height <= reach:
        height, n = distance_beyond(hull, face, p)
        return height, n[0], n[1], n[2]
    f = hull.plane[face]
    return height, f[0], f[1], f[2]


@inline
def points(kind, hull, h):
    """How many points of a solid can touch a face."""
    if kind == CONE:
        return 5
    if kind == HULL:
        return hull.first[h + 1] - hull.first[h]
    return 8


@inline
def rim_way(n):
    """The direction across the axis z in which a solid is lowest over a face with the normal `n`."""
    size = math.sqrt(n[0] * n[0] + n[1] * n[1])
    if size < 1e-9:
        return 1.0, 0.0
    return -n[0] / size, -n[1] / size


@inline
def point(kind, size, hull, h, k, x, y):
    """Point `k` of a solid, in its own frame; (x, y) from `rim_way`."""
    if kind == BOX:
        return (
            size[0] if k & 1 else -size[0],
            size[1] if k & 2 else -size[1],
            size[2] if k & 4 else -size[2],
        )
    if kind == HULL:
        v = hull.vertex[hull.first[h] + k]
        return v[0], v[1], v[2]
    if kind == CONE and k == 4:
        return 0.0, 0.0, size[1]
    if k & 1:
        x, y = -y, x
    if k & 2:
        x, y = -x, -y
    return size[0] * x, size[0] * y, size[1] if k >= 4 else -size[1]


@inline
def extent(kind, size, hull, h, n):
    """The least and the largest n . x over a solid, in its own frame."""
    if kind == BOX:
        e = abs(n[0]) * size[0] + abs(n[1]) * size[1] + abs(n[2]) * size[2]
        return -e, e
    if kind == HULL:
        low, high = math.inf, -math.inf
        for k in range(hull.first[h], hull.first[h + 1]):
            v = hull.vertex[k]
            s = v[0] * n[0] + v[1] * n[1] + v[2] * n[2]
            low, high = min(low, s), max(high, s)
        return low, high
    across, up = size[0] * math.sqrt(n[0] * n[0] + n[1] * n[1]), size[1] * n[2]
    if kind == CYLINDER:
        return -across - abs(up), across + abs(up)
    return min(up, -across - up), max(up, across - up)


@inline
def reach_of(kind, size):
    """Half lengths of the box about a solid, in its own frame."""
    if kind == BOX or kind == HULL:
        return size[0], size[1], size[2]
    return size[0], size[0], size[1]


@inline
def overshoot(p, a, b, n):
    """How far `p` lies outside the edge ab of a triangle with the unit normal `n`, seen along `n`."""
    e, d = sub(b, a), sub(p, a)
    outward = (e[1] * n[2] - e[2] * n[1], e[2] * n[0] - e[0] * n[2], e[0] * n[1] - e[1] * n[0])
    return dot(d, outward) / math.sqrt(dot(e, e) + TINY)
