"""Ridges (convex edges) of a surface inside a convex solid.

The signed distance to a solid is convex along a ridge, so it has one minimum; where it is as good as level, the two
ends of that stretch count too. The normal is the solid's, turned into the cone of normals that the ridge may have, and
the depth is how far the ridge must go along it to clear the solid's face. Where a corner of the surface is the
deepest, a normal along which none of its edges rises is right as it is. Across a gap other corners of sharp ridges
count too, if a face there looks at the solid: they may touch next when the body turns about the closest one.

Ref: Luaces 4.6.3 (the distance to a cylinder minimised over each triangle by an active set; here the minimum lies in
a corner or on an edge, which leaves one variable).
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import FEATURES, add_point
from plant.collision.shape.hull import CORNERS
from plant.collision.shape.solid import signed
from plant.collision.vec3 import TINY, along, cross, dot, sub, times, unit

STEPS = 40  # towards the lowest place on a ridge, at most; three to ten as a rule
EXITS = 30  # towards the place where a line leaves the solid, at most; two or three as a rule
FINE = 1e-12  # of the length of the ridge: how exactly the lowest place is known
LEVEL = 1e-4  # of the size of the solid: by so much the depth may differ along a ridge that counts as level
EVEN = 1e-6  # of the size of the solid: a place on a level stretch that is deeper by as little is left to its ends
STRETCH = 0.02  # of the size of the solid: a shorter level stretch is one point
HAIR = 1e-9  # of the depth: what a point may lie beyond the solid by rounding
SLIDES = 24  # towards the place of a ridge that comes out last, at most; two or three on a flat solid as a rule
CLOSE = 1e-6  # of the depth: how exactly the end of what is in line with the solid need be known
GRAZING = 1e-9  # cosine: a way that comes out of a face at a flatter angle counts as having this one
STEEP = 0.3  # cosine: a normal is not turned further than this to fit a ridge
SHARP = 0.7  # cosine between the faces of a ridge whose ends stick out, as those of a block
OWN = 0.999  # cosine: a normal that need not be turned further is one of the ridge's own
BETWEEN, START, END = 0, 1, 2  # where the deepest place of a ridge is that has been left to the caller
LEVEL_SLOPE = 1e-12  # a ridge that falls less is deepest at its end
SAME = CORNERS  # points of a solid are told apart by their number
MANY = 16 * SAME  # features below this are points of the solid


@kernel
def ridge_inside(kind, size, hull, h, a, b, n, o, margin, out, count, name, is_fallback):
    """The ridge ab, between faces with the normals `n` (which has it anticlockwise) and `o`, inside the solid.

    Returns the new count, and what has been left to the caller: BETWEEN, or which end of the ridge is the deepest if
    the solid's normal is not one of the ridge's own there, with the signed distance and that normal, inward: it may be
    one of the corner's (`peak_inside`). With `is_fallback` (nothing else was found) the ridge is
    listed even then.
    """
    e = sub(b, a)
    length = math.sqrt(dot(e, e))
    d, _, _, _ = signed(kind, size, hull, h, along(a, 0.5, e), 0.0)
    if d > 0.5 * length + margin:
        return count, BETWEEN, d, n
    s, d, way, before, after = _lowest(kind, size, hull, h, a, e, margin, FINE * length)
    if d > margin:
        return count, BETWEEN, d, n
    near = 0.5 * min(size[0], size[1])
    feature = _name(name)
    fit = _into_cone(way, e, n, o)
    part, whole, rise = dot(fit, way), math.sqrt(dot(way, way)), dot(way, e) / dot(fit, way)
    if part < OWN * whole and (s == 0.0 or s == 1.0) and not is_fallback:
        return count, START if s == 0.0 else END, d, way
    if whole < STEEP or part < (STEEP if d < 0.0 else OWN) * whole:
        if d >= 0.0:
            return count, BETWEEN, d, n
        fit = unit((n[0] + o[0], n[1] + o[1], n[2] + o[2]))
        p, fit, depth = _pierced(kind, size, hull, h, a, e, s, d, fit, before, after)
        count = add_point(out, count, along(p, -0.5 * depth, fit), fit, depth, feature, 1e-6 * near)
        return count, BETWEEN, d, n
    first, last = _level(kind, size, hull, h, a, e, s, d + LEVEL * near, STRETCH * near / max(length, TINY))
    deepest = -math.inf
    if last > first:
        for k in range(2):
            p = along(a, last if k == 1 else first, e)
            depth, way, _ = _reach(kind, size, hull, h, p, fit, part, margin)
            if depth >= -margin:
                deepest = max(deepest, depth)
                count = add_point(out, count, along(p, -0.5 * depth, way), way, depth, feature + k, 1e-6 * near)
        feature = _name(name + 4)
    p = along(a, s, e)
    depth, way, is_short = _reach(kind, size, hull, h, p, fit, part, margin)
    if is_short:
        s, depth = _last_out(kind, size, hull, h, a, e, s, fit, -d / part, rise)
        p = along(a, s, e)
    if depth > deepest + EVEN * near:
        count = add_point(out, count, along(p, -0.5 * depth, way), way, depth, feature, 1e-6 * near)
    return count, BETWEEN, d, n


@kernel
def _reach(kind, size, hull, h, p, fit, part, margin):
    """Depth of the place `p` of a ridge whose normal is `fit`, the normal there, and whether the solid's closest face
    ends too soon.

    A push along a normal that leans must clear that face; `part` is the cosine. Where the face ends before, `p` comes
    out through another one. Across a gap the solid's own normal is the one of the closest points.
    """
    d, x, y, z = signed(kind, size, hull, h, p, margin)
    if d > 0.0:
        return -d, (-x, -y, -z), False
    depth = -d / part
    beyond, _, _, _ = signed(kind, size, hull, h, along(p, -depth, fit), 0.0)
    if beyond > HAIR * depth:
        depth, _ = way_out(kind, size, hull, h, p, times(-1.0, fit), 2.0 * (size[0] + size[1] + size[2]))
        return max(depth, 0.0), fit, True
    return depth, fit, False


@kernel
def _last_out(kind, size, hull, h, a, e, s, fit, most, rise):
    """Where on the ridge a + s e, inside the solid at `s`, it comes out last when the solid is pushed along `fit`; and
    how far that is. It may lie beside the solid now: the push takes the solid there.

    The way out is a concave function along the ridge: no tangent is below it, nor is the plane of the closest face,
    which is `most` at `s` and has the slope `rise`. Between two places the next one is where their tangents meet.
    """
    whole = 2.0 * (size[0] + size[1] + size[2])
    f, p = _way_and_slope(kind, size, hull, h, a, e, s, fit, whole)
    low, best, deepest = s, s, f
    high, g, q = s, most, rise
    limit, is_missed = 1.0 if p > 0.0 else 0.0, False
    for _ in range(SLIDES):
        if abs(p - q) <= TINY:
            break
        s = (g - f + p * low - q * high) / (p - q)
        is_met = (limit - s) * p > 0.0
        if not is_met:
            s = 0.5 * (low + limit) if is_missed else limit
            if is_missed and abs(p * (limit - low)) <= CLOSE * deepest:
                break
        d, slope = _way_and_slope(kind, size, hull, h, a, e, s, fit, whole)
        if d <= -whole:  # from there on the ridge is not in line with the solid
            limit, is_missed = s, True
            continue
        if d > deepest:
            best, deepest = s, d
        is_met = is_met and f + p * (s - low) - d <= HAIR * whole
        if slope * p > 0.0:
            low, f, p = s, d, slope
        else:
            high, g, q = s, d, slope
        if is_met or low == limit:
            break
    return best, deepest


@inline
def _way_and_slope(kind, size, hull, h, a, e, s, fit, whole):
    """How far a + s e is inside the solid along -`fit`, and how that changes with s; -`whole` if it is not in line."""
    depth, n = way_out(kind, size, hull, h, along(a, s, e), times(-1.0, fit), whole)
    return depth, dot(n, e) / min(dot(n, fit), -GRAZING)


@kernel
def _pierced(kind, size, hull, h, a, e, s, d, fit, before, after):
    """A ridge that goes in through one face of the solid and out of another, as through a plate.

    The solid is lifted off it along `fit`, or over the end that is beyond either face (outward normals `before` and
    `after`) and straight below that face, whichever is the shortest way. Returns the place on the ridge, the normal and
    the depth.
    """
    p, whole = along(a, s, e), 2.0 * (size[0] + size[1] + size[2])
    depth = max(way_out(kind, size, hull, h, p, times(-1.0, fit), whole)[0], 0.0)
    is_level = abs(dot(before, e)) <= LEVEL_SLOPE * math.sqrt(dot(e, e))  # then both ends are as far below the face
    for k in range(3 if is_level else 2):
        end, out = (along(a, 1.0, e), before) if k == 0 else (a, after if k == 1 else before)
        over = -d - dot(out, sub(end, along(a, s, e)))
        if over < depth:
            off, _, _, _ = signed(kind, size, hull, h, along(end, over, out), 0.0)
            if abs(off) <= 1e-9 * whole:
                p, fit, depth = end, times(-1.0, out), over
    return p, fit, depth


@inline
def may_be_next(n, o, d, way):
    """Whether the end of a ridge, between faces with the normals `n` and `o`, sticks out towards the solid, which lies
    across the gap `d` in the direction `way`."""
    return d >= 0.0 and dot(n, o) < SHARP and max(dot(n, way), dot(o, way)) > STEEP


@inline
def peak_inside(size, p, d, way, out, count, name):
    """List the corner `p` of the surface, at the signed distance `d`, where no edge goes along the normal `way`."""
    return add_point(out, count, along(p, 0.5 * d, way), way, -d, _name(name), 5e-7 * min(size[0], size[1]))


@inline
def _name(name):
    return MANY + name % ((FEATURES - MANY) // 2) * 2


@kernel
def way_out(kind, size, hull, h, p, way, beyond):
    """How far it is from `p` along `way` to where that leaves the solid, and the outward normal there.

    `beyond` is further than that; -`beyond` is returned if the way misses the solid. The signed distance is convex
    along the way, so tangents from beyond the surface come back to it and never too far.
    """
    s, x, y, z = beyond, 0.0, 0.0, 0.0
    for _ in range(EXITS):
        d, x, y, z = signed(kind, size, hull, h, along(p, s, way), 0.0)
        if abs(d) <= 1e-13 * beyond:
            break
        slope = x * way[0] + y * way[1] + z * way[2]
        if slope <= TINY or s - d / slope < -beyond:
            return -beyond, (x, y, z)
        s -= d / slope
    return s, (x, y, z)


@inline
def _lowest(kind, size, hull, h, a, e, margin, fine):
    """Where along a + s e, 0 <= s <= 1, the signed distance is least, how much, and the solid's inward normal there;
    and its outward normals right before and after that place.

    The slope is the normal's part along e. Between two faces of the solid the normal jumps; then it is the mean of the
    two whose slope is 0, which is perpendicular to the ridge and to the edge of the solid, and shorter than 1: the
    depth over its length is how far edge and ridge have passed each other.

    The tangents at both sides of the lowest place are never above the distance. Where they meet is the place itself
    if it is a kink; a zero of the slope between the two sides is near it if there is none; taken in turn, and the
    middle now and then. If they meet above `margin`, that height is returned at once.
    """
    f, px, py, pz = signed(kind, size, hull, h, a, margin)
    p = px * e[0] + py * e[1] + pz * e[2]
    level = LEVEL_SLOPE * math.sqrt(dot(e, e))  # rounding must not tell a ridge that runs level from a falling one
    if p >= -level:
        return 0.0, f, (-px, -py, -pz), (px, py, pz), (px, py, pz)
    g, qx, qy, qz = signed(kind, size, hull, h, along(a, 1.0, e), margin)
    q = qx * e[0] + qy * e[1] + qz * e[2]
    if q <= level:
        return 1.0, g, (-qx, -qy, -qz), (qx, qy, qz), (qx, qy, qz)
    low, high, s, d = 0.0, 1.0, 0.5, 0.0
    for k in range(STEPS):
        s = min(max((g - f + p * low - q * high) / (p - q), low), high)
        floor = f + p * (s - low)
        if floor > margin:
            return s, floor, (-px, -py, -pz), (px, py, pz), (qx, qy, qz)
        if k % 4 == 1:
            s = low - p * (high - low) / (q - p)
        elif k % 4 == 3:
            s = 0.5 * (low + high)
        d, gx, gy, gz = signed(kind, size, hull, h, along(a, s, e), margin)
        slope = gx * e[0] + gy * e[1] + gz * e[2]
        if slope > level:  # of a level stretch the far end, whatever rounding says
            high, g, q, qx, qy, qz = s, d, slope, gx, gy, gz
        else:
            low, f, p, px, py, pz = s, d, slope, gx, gy, gz
        if d - floor <= fine:
            break
    w = q / (q - p)
    way = (-w * px - (1.0 - w) * qx, -w * py - (1.0 - w) * qy, -w * pz - (1.0 - w) * qz)
    return s, d, way, (px, py, pz), (qx, qy, qz)


@inline
def _level(kind, size, hull, h, a, e, s, bound, shortest):
    """The stretch about `s` along which the signed distance stays below `bound`; just `s` if it is too short."""
    before = min(0.5 * shortest, s)
    after = min(shortest - before, 1.0 - s)
    ends_before = before == s or signed(kind, size, hull, h, along(a, s - before, e), bound)[0] > bound
    if ends_before and (after == 1.0 - s or signed(kind, size, hull, h, along(a, s + after, e), bound)[0] > bound):
        return s, s
    first, last = s, s
    for side in range(2):
        inside, outside = s, 1.0 if side == 1 else 0.0
        if signed(kind, size, hull, h, along(a, outside, e), bound)[0] <= bound:
            inside = outside
        else:
            for _ in range(20):
                middle = 0.5 * (inside + outside)
                if signed(kind, size, hull, h, along(a, middle, e), bound)[0] <= bound:
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
    """The direction closest to `way` that leans over neither of the faces with the normals `n` and `o`."""
    if dot(way, cross(n, e)) > 0.0:
        return n
    if dot(way, cross(e, o)) > 0.0:
        return o
    return unit(way)
