"""Torus and chain link against everything: a search along the core curve of the ring.

Where does the distance of the ring's core from the other shape have its minima? The distance of a point from every
shape is known (ring_distance.py), so the curve is walked in 32 steps, and in half steps where it is near but not level.
A distance changes no faster than the point moves, so that steps far from the other shape are left out. Between two
places where the slope of the distance turns from falling to rising lies a minimum, found to rounding. Two links through
each other, or a bar across a ring, have several. A second search makes sure that no place of the core is nearer than
those found, however small the other shape is (ring_search.py). Where the distance stays the same for some way, as for
a ring flat on the ground, minima wander with every tremble: such a stretch has points fixed to the ring instead, at its
ends and middle, or at four places if it goes all around.

A ring that comes down fast on one side is thrown round its first point within one step. So the rest of the ring has
points too, at fixed places, if they are within the margin.

At each place of the core the wire is a ball. On a mesh or field it is listed as one, with a point for each face that it
touches; otherwise it has one. Of two rings the smaller one is walked, and its wire may touch both sides of the other.

Ref: Luaces 4.6.4 and 4.6.5 minimise the same distance for tori and links with an augmented Lagrangian per triangle.

Limits: of two minima within half a step (6 degrees of a torus, 11 of a link's bend) only the deeper one is sure to be
found. Where the core itself runs through a shape, each minimum leaves by the shortest way for that point of the core,
not for the whole ring.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, viewer
from plant.collision.model import POINTS
from plant.collision.narrowphase.field import touch_ball as touch_ball_on_field
from plant.collision.narrowphase.mesh_round import touch_ball
from plant.collision.narrowphase.ring_curve import (
    STEPS,
    Curve,
    across_distance,
    core_distance,
    longest_step,
    on_curve,
    on_step,
    ring_size,
)
from plant.collision.narrowphase.ring_distance import MESH, TORUS, Other, distance_from
from plant.collision.narrowphase.ring_search import (
    EVEN,
    LEAST_SLOPE,
    ROWS,
    UNSEEN,
    bow_at,
    is_steep,
    nearer_place,
    turning_point,
)
from plant.collision.narrowphase.sphere_capsule import ball_in_frame, put, to_frame
from plant.collision.vec3 import dot, point_to_local, point_to_world, vector_to_local, vector_to_world

LEVEL = 0.02  # of the wire's radius: a stretch whose distance varies as little is level
BETTER = 1e-5  # of the ring's half length: as much deeper than level points must a minimum be to be listed as well
MINIMA, FAR_SIDE = 64, 128  # feature numbers of minima and far sides start here; those of fixed places are their step
PLACES = 256  # feature numbers of a ball's second and third point are so much higher each
FACES = 3  # points of one ball on a mesh or field at most
ROOM = 24  # points listed at most
QUARTER = STEPS // 4  # steps from one of the four fixed places to the next
SPARSE = QUARTER // 2  # a part of the ring has a point if there is one within so many steps
AHEAD = 4.5  # steps beyond the reach that a search on a surface looks


class RingScratch(NamedTuple):
    """The walk along one ring; holds nothing between two calls."""

    gap: F1  # [STEPS] distance of the core from the other shape, or a lesser number where that is out of reach
    slope: F1  # [STEPS] its change along the core
    near: F1  # [STEPS] the surface is no farther than this
    bow: F1  # [STEPS] what bounds the bend of the distance there (ring_search.py); UNSEEN where it was left out
    end: F2  # [ROWS, 4] ends of parts of a step that wait to be searched
    corner: F2  # [3, 3] the one triangle that is searched
    taken: I1  # [POINTS] the step at which each point is listed
    seed: I1  # [1] the triangle of a mesh found last; -1 = none


view_ring_scratch = viewer(RingScratch)


def new_ring_scratch() -> RingScratch:
    """Room for one pair at a time; one per thread."""
    gap, slope, near, bow = np.zeros((4, STEPS))
    taken, seed = np.zeros(POINTS, np.int64), np.zeros(1, np.int64)
    return RingScratch(gap, slope, near, bow, np.zeros((ROWS, 4)), np.zeros((3, 3)), taken, seed)


@kernel
def sphere_ring(shape, placed, hull, mesh, field, s, i, j, margin, out):
    """One point in closed form; a ball that also reaches the far side of the ring, as when it sits in it, is walked."""
    pos, radius = placed.pos, shape.size[i, 0]
    half, bend, wire = ring_size(shape, j)
    x, y, z = pos[i, 0], pos[i, 1], pos[i, 2]
    p = to_frame(placed, j, x, y, z)
    distance, n = core_distance(p, half, bend)
    reach = wire + radius + margin
    if distance >= reach:
        return 0
    if across_distance(p, half, bend)[0] < reach:
        return shape_ring(shape, placed, hull, mesh, field, s, i, j, margin, out)
    return ball_in_frame(placed, j, out, 0, x, y, z, radius, n[0], n[1], n[2], distance - wire, margin, MINIMA)


@kernel
def shape_ring(shape, placed, hull, mesh, field, s, i, j, margin, out):
    """Points of a torus or link, i or j, with any other shape; of two rings the smaller one is walked."""
    ring, it, way = (i, j, 1.0) if _is_walked(shape, i, j) else (j, i, -1.0)
    half, bend, wire = ring_size(shape, ring)
    p, r = placed.pos[ring], placed.rot[ring]
    x = vector_to_local(placed.rot[it], (r[0, 0], r[1, 0], r[2, 0]))
    y = vector_to_local(placed.rot[it], (r[0, 1], r[1, 1], r[2, 1]))
    curve = Curve(half, bend, wire, point_to_local(placed, it, (p[0], p[1], p[2])), x, y)
    s.seed[0] = -1
    other = Other(shape, hull, mesh, field, it, wire + margin, s.seed)
    limit = half + bend + wire + margin
    centre, _ = distance_from(other, curve.centre, limit)
    if centre >= limit:
        return 0
    nearest = _walk(other, curve, s)
    if nearest - 0.5 * longest_step(curve) >= other.reach:
        return 0
    count, level = _level_points(other, curve, s, nearest, margin, out)
    count = _minima(other, curve, s, nearest, level, margin, out, count)
    trifle = BETTER * (half + bend)
    best = other.reach + trifle
    for q in range(count):
        best = min(best, wire - out.depth[q])
    k, part = nearer_place(other, curve, s, best, trifle)
    if k >= 0:
        q, _ = on_curve(curve, k, part)
        d, n = distance_from(other, q, limit)
        count = _list(other, wire, s, k, q, d, n, margin, out, count, _minimum_number(out, count, k))
    count = _spread(other, curve, s, nearest, margin, out, count)
    return _to_world(placed, it, way, out, count)


@inline
def _is_walked(shape, i, j):
    """Whether of a pair with a ring i is walked, not j."""
    if shape.kind[j] >= MESH:
        return True
    if shape.kind[i] < TORUS:
        return False
    one, other = ring_size(shape, i), ring_size(shape, j)
    return one[0] + one[1] < other[0] + other[1]


@kernel
def _walk(other, curve, s):
    """Fill the scratch step by step; returns the distance of the closest step."""
    longest = longest_step(curve)
    far = other.reach + AHEAD * longest
    nearest, limit, k = math.inf, far, 0
    while k < STEPS:
        p, t = on_step(curve, k)
        d, n = distance_from(other, p, limit)
        s.gap[k], s.slope[k] = d, dot(n, t)
        s.near[k] = abs(d) if dot(n, n) > 0.5 else far
        s.bow[k] = bow_at(other, curve, p, t, n)
        nearest = min(nearest, d)
        skip = min(int(max((d - other.reach) / max(longest, 1e-300) - 0.5, 0.0)), STEPS - 1 - k)
        for q in range(k + 1, k + 1 + skip):
            s.gap[q], s.slope[q], s.near[q], s.bow[q] = d - (q - k) * longest, 0.0, far, UNSEEN
        limit = min(far, (s.near[k] + (skip + 1) * longest) * (1.0 + 1e-9))
        k += 1 + skip
    return nearest


@kernel
def _minima(other, curve, s, nearest, level, margin, out, count):
    """List the places where the distance turns from falling to rising, found to rounding."""
    longest = longest_step(curve)
    for k in range(STEPS):
        after = (k + 1) % STEPS
        if 0.5 * (s.gap[k] + s.gap[after] - longest) >= other.reach or is_steep(other, curve, s, k):
            continue  # a distance falls no faster
        begins, ends = _in_stretch(s, k, nearest, curve.wire), _in_stretch(s, after, nearest, curve.wire)
        even = max(abs(s.slope[k]), abs(s.slope[after])) < EVEN
        flat, parts = begins or ends, 1 if begins and ends and even else 2
        limit = (min(s.near[k], s.near[after]) + longest) * (1.0 + 1e-9)
        between = 0.0
        if parts == 2:
            p, t = on_curve(curve, k, 0.5)
            _, n = distance_from(other, p, limit)
            between = dot(n, t)
        for part in range(parts):
            first = between if part == 1 else s.slope[k]
            last = between if part == 0 and parts == 2 else s.slope[after]
            if first >= -LEAST_SLOPE or last < -LEAST_SLOPE or count >= ROOM:
                continue
            low = 0.5 * part
            at = turning_point(other, curve, k, low, low + 1.0 / parts, first, max(last, 0.0), limit)
            p, _ = on_curve(curve, k, at)
            d, n = distance_from(other, p, limit)
            if flat and d >= level - BETTER * (curve.half + curve.bend):
                continue
            number = _minimum_number(out, count, k)
            count = _list(other, curve.wire, s, k, p, d, n, margin, out, count, number)
            if other.shape.kind[other.i] == TORUS or other.shape.kind[other.i] == TORUS + 1:
                # a wire in a narrow hole touches the far side of the other ring as well
                half, bend, wire = ring_size(other.shape, other.i)
                d, n = across_distance(p, half, bend)
                number = FAR_SIDE + 2 * k + part
                count = _list(other, curve.wire, s, k, p, d - wire, n, margin, out, count, number)
    return count


@inline
def _minimum_number(out, count, k):
    """The feature of a minimum: its quarter of the ring, and whether it is the first or a later one there."""
    number = MINIMA + 8 * (k // QUARTER)
    for q in range(count):
        feature = out.feature[q]
        if MINIMA <= feature < FAR_SIDE and feature // 8 == number // 8:
            number += 1
    return number


@kernel
def _list(other, wire, s, k, p, d, n, margin, out, count, feature):
    """List the wire about the point `p` of the core near step `k`, in the frame of the other shape."""
    begin, shape, i = count, other.shape, other.i
    if shape.kind[i] >= MESH:
        if shape.kind[i] == MESH:
            count = touch_ball(other.mesh, shape.asset[i], p, wire, margin, out, begin, 0)
        else:
            count = touch_ball_on_field(other.field, shape.asset[i], p, wire, margin, out, begin, 0)
        count = _deepest_of(out, begin, count)
    elif d - wire < margin:
        back = 0.5 * (wire + d)
        count = put(
            out, begin, p[0] - back * n[0], p[1] - back * n[1], p[2] - back * n[2], n[0], n[1], n[2], wire - d, feature
        )
    for q in range(begin, count):
        out.feature[q], s.taken[q] = feature + PLACES * (q - begin), k
    return count


@inline
def _deepest_of(out, begin, count):
    """Keep the deepest few of the points from `begin` on, in their order."""
    while count > begin + FACES:
        least = begin
        for q in range(begin + 1, count):
            if out.depth[q] < out.depth[least]:
                least = q
        count -= 1
        for q in range(least, count):
            for c in range(3):
                out.point[q, c], out.normal[q, c] = out.point[q + 1, c], out.normal[q + 1, c]
            out.depth[q] = out.depth[q + 1]
    return count


@inline
def _is_level(s, k, nearest, wire):
    return s.gap[k % STEPS] < nearest + LEVEL * wire


@inline
def _in_stretch(s, k, nearest, wire):
    """Whether step k lies on a level stretch of three steps or more."""
    if not _is_level(s, k, nearest, wire):
        return False
    before, after = _is_level(s, k + STEPS - 1, nearest, wire), _is_level(s, k + 1, nearest, wire)
    return (
        (before and after)
        or (before and _is_level(s, k + STEPS - 2, nearest, wire))
        or (after and _is_level(s, k + 2, nearest, wire))
    )


@inline
def _is_end(s, k, nearest, wire, ahead):
    """Whether a level stretch of three steps or more ends at step k."""
    return _in_stretch(s, k, nearest, wire) and not _is_level(s, k + STEPS + ahead, nearest, wire)


@kernel
def _level_points(other, curve, s, nearest, margin, out):
    """List ends and middles of level stretches; how many, and the least distance among them."""
    wire, around = curve.wire, 0
    for k in range(STEPS):
        around += 1 if _is_level(s, k, nearest, wire) else 0
    count, least = 0, math.inf
    if around < 3:
        return count, least
    if around == STEPS:
        for k in range(0, STEPS, QUARTER):
            count, least = _fixed_point(other, curve, s, k, margin, out, count, least)
        return count, least
    first = 0
    while first < STEPS and not _is_end(s, first, nearest, wire, -1):
        first += 1
    begin = -1
    for step in range(STEPS):
        k = (first + step) % STEPS
        if _is_end(s, k, nearest, wire, -1):
            begin = step
            count, least = _fixed_point(other, curve, s, k, margin, out, count, least)
        elif begin >= 0 and _is_end(s, k, nearest, wire, 1):
            middle = (first + (begin + step) // 2) % STEPS
            count, least = _fixed_point(other, curve, s, middle, margin, out, count, least)
            count, least = _fixed_point(other, curve, s, k, margin, out, count, least)
            begin = -1
    return count, least


@kernel
def _fixed_point(other, curve, s, k, margin, out, count, least):
    """List the wire at step k; returns the new count, and the least distance of steps that replace a minimum nearby.

    Beside a sharp edge the distance may be level over several steps and yet turn within one: then the deepest point of
    the ball at this step lies outside its cross-section, within the wire, and the minimum must be listed itself.
    """
    p, _ = on_step(curve, k)
    d, n = distance_from(other, p, (s.near[k] + 1e-300) * (1.0 + 1e-9))
    if 0.5 * curve.wire * s.slope[k] * s.slope[k] < BETTER * (curve.half + curve.bend):
        least = min(least, d)
    return _list(other, curve.wire, s, k, p, d, n, margin, out, count, k), least


@kernel
def _spread(other, curve, s, nearest, margin, out, count):
    """List fixed places on parts of the ring that have no point yet, the farthest along it from all others first."""
    tried = 0
    while 0 < count < ROOM:
        best, top = -1, SPARSE
        for k in range(0, STEPS, QUARTER):
            if tried >> k & 1 or s.gap[k] >= other.reach or _in_stretch(s, k, nearest, curve.wire):
                continue
            apart = STEPS
            for q in range(count):
                off = abs(s.taken[q] - k)
                apart = min(apart, off, STEPS - off)
            if apart > top:
                best, top = k, apart
        if best < 0:
            break
        tried |= 1 << best
        count, _ = _fixed_point(other, curve, s, best, margin, out, count, 0.0)
    return count


@inline
def _to_world(placed, it, way, out, count):
    """Points and normals in the frame of the other shape become those of the world, with the normals towards i."""
    for k in range(count):
        q, m = out.point[k], out.normal[k]
        q[0], q[1], q[2] = point_to_world(placed, it, (q[0], q[1], q[2]))
        m[0], m[1], m[2] = vector_to_world(placed.rot[it], (way * m[0], way * m[1], way * m[2]))
    return count
