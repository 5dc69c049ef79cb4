"""Ridges of a surface inside a convex solid.

The signed distance to a solid is convex along a ridge, so it has one minimum; where it is as good as level, the two
ends of that stretch count instead. The normal is the solid's, turned into the cone of normals that the ridge may have.
Where a corner of the surface is the deepest, a normal along which none of its edges rises is right as it is.

Ref: Luaces 4.6.3 (the distance to a cylinder minimised over each triangle by an active set; here the minimum lies in
a corner or on an edge, which leaves one variable).
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.collide.solid import signed
from plant.collide.triangle import FEATURES, TINY, add, along, dot, product, sub, times, unit

STEPS = 40  # towards the lowest place on a ridge, at most; three to ten as a rule
HALVINGS = 30
FINE = 1e-12  # of the length of the ridge: how exactly the lowest place is known
LEVEL = 1e-4  # of the size of the solid: by so much the depth may differ along a ridge that counts as level
STRETCH = 0.02  # of the size of the solid: a shorter level stretch is one point
STEEP = 0.3  # cosine: a normal is not turned further than this to fit a ridge
OWN = 0.999  # cosine: a normal that need not be turned further is one of the ridge's own
BETWEEN, START, END = 0, 1, 2  # where the deepest place of a ridge is that has been left to the caller
SAME = 256  # points of a solid that are told apart by their number
MANY = 16 * SAME  # features below this are points of the solid


@kernel
def ridge_inside(kind, size, hull, h, a, b, n, o, margin, out, count, name, at_any_cost):
    """The ridge ab, between faces with the normals `n` (which has it anticlockwise) and `o`, inside the solid.

    Returns the new count, and what has been left to the caller: BETWEEN, or which end of the ridge is the deepest if
    the solid's normal is not one of the ridge's own there, with the signed distance and that normal, inward: it may be
    one of the corner's (`peak_inside`). With nothing else to go by (`at_any_cost`) the ridge has its way.
    """
    e = sub(b, a)
    length = math.sqrt(dot(e, e))
    d, _, _, _ = signed(kind, size, hull, h, along(a, 0.5, e))
    if d > 0.5 * length + margin:
        return count, BETWEEN, d, n
    s, d, way = _lowest(kind, size, hull, h, a, e, margin, FINE * length)
    if d > margin:
        return count, BETWEEN, d, n
    near = 0.5 * min(size[0], size[1])
    feature = _name(name)
    fit = _into_cone(way, e, n, o)
    part, whole = dot(fit, way), math.sqrt(dot(way, way))
    if part < OWN * whole and (s == 0.0 or s == 1.0) and not at_any_cost:
        return count, START if s == 0.0 else END, d, way
    if whole < STEEP or part < (STEEP if d < 0.0 else OWN) * whole:
        if d >= 0.0:
            return count, BETWEEN, d, n
        fit = unit((n[0] + o[0], n[1] + o[1], n[2] + o[2]))
        depth = _way_out(kind, size, hull, h, along(a, s, e), times(-1.0, fit))
        count = add(out, count, along(along(a, s, e), -0.5 * depth, fit), fit, depth, feature, 1e-6 * near)
        return count, BETWEEN, d, n
    first, last = _level(kind, size, hull, h, a, e, s, d + LEVEL * near, STRETCH * near / max(length, TINY))
    for k in range(2 if last > first else 1):
        p = along(a, last if k == 1 else first, e)
        d, _, _, _ = signed(kind, size, hull, h, p)
        depth = -d / part if d < 0.0 else -d
        count = add(out, count, along(p, -0.5 * depth, fit), fit, depth, feature + k, 1e-6 * near)
    return count, BETWEEN, d, n


@inline
def peak_inside(size, p, d, way, out, count, name):
    """List the corner `p` of the surface, at the signed distance `d`, where no edge goes along the normal `way`."""
    return add(out, count, along(p, 0.5 * d, way), way, -d, _name(name), 5e-7 * min(size[0], size[1]))


@inline
def _name(name):
    return MANY + name % ((FEATURES - MANY) // 2) * 2


@inline
def _way_out(kind, size, hull, h, p, way):
    """How far it is from `p`, inside the solid, along `way` to its surface."""
    low, high = 0.0, 2.0 * (size[0] + size[1] + size[2])
    for _ in range(HALVINGS):
        s = 0.5 * (low + high)
        d, _, _, _ = signed(kind, size, hull, h, along(p, s, way))
        if d < 0.0:
            low = s
        else:
            high = s
    return 0.5 * (low + high)


@inline
def _lowest(kind, size, hull, h, a, e, margin, fine):
    """Where along a + s e, 0 <= s <= 1, the signed distance is least, how much, and the solid's inward normal there.

    The slope is the normal's part along e. Between two faces of the solid the normal jumps; then it is the mean of the
    two whose slope is 0, which is square to the ridge and to the edge of the solid, and shorter than 1: the depth over
    its length is how far edge and ridge have passed each other.

    The tangents at both sides of the lowest place are never above the distance. Where they meet is the place itself
    if it is a kink; a zero of the slope between the two sides is near it if there is none; taken in turn, and the
    middle now and then. If they meet above `margin`, that height is returned at once.
    """
    f, px, py, pz = signed(kind, size, hull, h, a)
    p = px * e[0] + py * e[1] + pz * e[2]
    if p >= 0.0:
        return 0.0, f, (-px, -py, -pz)
    g, qx, qy, qz = signed(kind, size, hull, h, along(a, 1.0, e))
    q = qx * e[0] + qy * e[1] + qz * e[2]
    if q <= 0.0:
        return 1.0, g, (-qx, -qy, -qz)
    low, high, s, d = 0.0, 1.0, 0.5, 0.0
    for k in range(STEPS):
        s = min(max((g - f + p * low - q * high) / (p - q), low), high)
        floor = f + p * (s - low)
        if floor > margin:
            return s, floor, (-px, -py, -pz)
        if k % 4 == 1:
            s = low - p * (high - low) / (q - p)
        elif k % 4 == 3:
            s = 0.5 * (low + high)
        d, gx, gy, gz = signed(kind, size, hull, h, along(a, s, e))
        slope = gx * e[0] + gy * e[1] + gz * e[2]
        if slope > 0.0:
            high, g, q, qx, qy, qz = s, d, slope, gx, gy, gz
        else:
            low, f, p, px, py, pz = s, d, slope, gx, gy, gz
        if d - floor <= fine:
            break
    w = q / (q - p)
    way = (-w * px - (1.0 - w) * qx, -w * py - (1.0 - w) * qy, -w * pz - (1.0 - w) * qz)
    return s, d, way


@inline
def _level(kind, size, hull, h, a, e, s, bound, shortest):
    """The stretch about `s` along which the signed distance stays below `bound`; just `s` if it is too short."""
    before = min(0.5 * shortest, s)
    after = min(shortest - before, 1.0 - s)
    ends_before = before == s or signed(kind, size, hull, h, along(a, s - before, e))[0] > bound
    if ends_before and (after == 1.0 - s or signed(kind, size, hull, h, along(a, s + after, e))[0] > bound):
        return s, s
    first, last = s, s
    for side in range(2):
        inside, outside = s, 1.0 if side == 1 else 0.0
        if signed(kind, size, hull, h, along(a, outside, e))[0] <= bound:
            inside = outside
        else:
            for _ in range(20):
                middle = 0.5 * (inside + outside)
                if signed(kind, size, hull, h, along(a, middle, e))[0] <= bound:
                    inside = middle
                else:
                    outside = middle
        if side == 1:
            last = inside
        else:
            first = inside
    return (first, last) if last - first >= shortest else (s, s)


@inline
def _into_cone(way, e, n, o):
    """The direction nearest to `way` that leans over neither of the faces with the normals `n` and `o`."""
    if dot(way, product(n, e)) > 0.0:
        return n
    if dot(way, product(e, o)) > 0.0:
        return o
    return unit(way)
