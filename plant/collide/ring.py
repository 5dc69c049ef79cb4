"""Torus and chain link against sphere, capsule, box, cylinder, cone, plane and each other.

A torus is a circle grown by the radius of its wire; a link is a stadium (two straight parts and two half circles) grown
likewise, and a torus is a link without straight parts. The nearest point of such a curve to a given point has a closed
form, as has the distance of a point from every other shape here. So each pair is a search along one curve: where does
the distance of the core of ring j from shape i have its minima?

The curve is walked in 32 steps, and in half steps where it is near. Between two places where the slope of the distance
turns from falling to rising lies a minimum, found to rounding. Two links through each other, or a bar across a ring,
have several. Where the distance stays the same for some way, as for a ring flat on the ground, minima wander with every
tremble: such a stretch has points fixed to the ring instead, at its ends and middle, or at four places if it goes all
around.

Limits: of two minima within half a step (6 degrees of a torus, 11 of a link's bend) only one is found. Where the core
itself runs through a shape, each minimum leaves by the nearest way for that point of the core, not for the whole ring.
"""

from __future__ import annotations

import math

import numpy as np

from hilnode.jit import inline, kernel
from plant.collide.model import Kind
from plant.collide.round import (
    NEAR,
    along,
    ball_in_frame,
    box_distance,
    clamp,
    cone_distance,
    cylinder_distance,
    put,
    to_frame,
    turned,
)

STEPS = 32  # along the curve; those of a link: 8 for each bend and each straight part
SCRATCH = 32  # the walk is kept in the manifold's upper half
LEVEL = 0.02  # of the wire's radius: a stretch whose distance varies as little is level
BETTER = 1e-5  # of the ring's half length: as much deeper than level points must a minimum be to be listed as well
LEAST_SLOPE = 1e-8  # where a minimum counts as found: its distance is then right to rounding
REFINE = 42  # at most so many steps to a minimum; half a dozen as a rule
MINIMA, FAR_SIDE = 64, 128  # feature numbers of minima and far sides start here; those of level points are their step
ROOM = 24  # minima listed at most

_TURN = 2.0 * math.pi / STEPS
_COS = np.cos(_TURN * np.arange(STEPS))
_SIN = np.sin(_TURN * np.arange(STEPS))
SPHERE, CAPSULE, BOX, CYLINDER, CONE = (
    int(Kind.SPHERE),
    int(Kind.CAPSULE),
    int(Kind.BOX),
    int(Kind.CYLINDER),
    int(Kind.CONE),
)
PLANE, TORUS, LINK = int(Kind.PLANE), int(Kind.TORUS), int(Kind.LINK)


@inline
def ring_size(shape, j):
    """Half length of the straight parts, radius of the bends, radius of the wire."""
    if shape.kind[j] == LINK:
        return shape.size[j, 0], shape.size[j, 1], shape.size[j, 2]
    return 0.0, shape.size[j, 0], shape.size[j, 1]


@inline
def _segment_distance(x, y, z, half):
    """Distance of a point from a segment along z, and the normal there."""
    dz = z - clamp(z, half)
    distance = math.sqrt(x * x + y * y + dz * dz)
    if distance <= NEAR:
        return distance, 1.0, 0.0, 0.0
    return distance, x / distance, y / distance, dz / distance


@inline
def _core_distance(x, y, z, half, bend):
    """Distance of a point from a stadium in the plane z = 0, and the normal there.

    A stadium is what lies at the bends' radius from a segment: the nearest point lies straight out from the segment.
    With the radius negative it is the point across the hole.
    """
    middle = clamp(x, half)
    u, v = x - middle, y
    size = math.sqrt(u * u + v * v)
    if size > NEAR:
        u, v = u / size, v / size
    else:
        u, v = 0.0, 1.0
    dx, dy = x - middle - bend * u, y - bend * v
    distance = math.sqrt(dx * dx + dy * dy + z * z)
    if distance <= NEAR:
        return distance, 0.0, 0.0, 1.0
    return distance, dx / distance, dy / distance, z / distance


@inline
def _distance(shape, i, x, y, z):
    """Signed distance of a point in the frame of shape i from it, and the normal there."""
    kind, s = shape.kind[i], shape.size
    if kind == BOX:
        return box_distance(x, y, z, s[i, 0], s[i, 1], s[i, 2])
    if kind == PLANE:
        return z, 0.0, 0.0, 1.0
    if kind == CYLINDER:
        return cylinder_distance(x, y, z, s[i, 0], s[i, 1])
    if kind == CONE:
        return cone_distance(x, y, z, s[i, 0], s[i, 1])
    if kind >= TORUS:
        half, bend, wire = ring_size(shape, i)
        distance, nx, ny, nz = _core_distance(x, y, z, half, bend)
        return distance - wire, nx, ny, nz
    distance, nx, ny, nz = _segment_distance(x, y, z, s[i, 1] if kind == CAPSULE else 0.0)
    return distance - s[i, 0], nx, ny, nz


@inline
def _on_step(half, bend, k):
    """The core curve at a whole step: place and unit tangent in the plane of the ring."""
    if half == 0.0:
        return bend * _COS[k], bend * _SIN[k], -_SIN[k], _COS[k]
    if k < 8:
        c, s = _COS[(2 * k + 24) % STEPS], _SIN[(2 * k + 24) % STEPS]
        return half + bend * c, bend * s, -s, c
    if k < 16:
        return half * (1.0 - 0.25 * (k - 8)), bend, -1.0, 0.0
    if k < 24:
        c, s = _COS[(2 * k + 8) % STEPS], _SIN[(2 * k + 8) % STEPS]
        return bend * c - half, bend * s, -s, c
    return half * (0.25 * (k - 24) - 1.0), -bend, 1.0, 0.0


@inline
def _on_curve(half, bend, k, part):
    """As `_on_step`, at a part of the way from step k to the next."""
    if half == 0.0:
        angle = _TURN * (k + part)
    elif k < 8:
        angle = 2.0 * _TURN * (k + part - 4.0)
    elif k < 16:
        return half * (1.0 - 0.25 * (k + part - 8.0)), bend, -1.0, 0.0
    elif k < 24:
        angle = 2.0 * _TURN * (k + part - 12.0)
    else:
        return half * (0.25 * (k + part - 24.0) - 1.0), -bend, 1.0, 0.0
    c, s = math.cos(angle), math.sin(angle)
    centre = half if k < 8 else -half
    return centre + bend * c, bend * s, -s, c


@kernel
def shape_ring(shape, placed, i, j, margin, out):
    """Points of any shape i that is not a hull, mesh or field with the torus or link j."""
    pos, rot = placed.pos, placed.rot
    half, bend, wire = ring_size(shape, j)
    x, y, z = to_frame(placed, i, pos[j, 0], pos[j, 1], pos[j, 2])
    distance, _, _, _ = _distance(shape, i, x, y, z)
    if distance >= half + bend + wire + margin:
        return 0
    ax, ay, az = rot[j, 0, 0], rot[j, 1, 0], rot[j, 2, 0]
    bx, by, bz = rot[j, 0, 1], rot[j, 1, 1], rot[j, 2, 1]
    ax, ay, az = along(rot, i, 0, ax, ay, az), along(rot, i, 1, ax, ay, az), along(rot, i, 2, ax, ay, az)
    bx, by, bz = along(rot, i, 0, bx, by, bz), along(rot, i, 1, bx, by, bz), along(rot, i, 2, bx, by, bz)

    walk, slope = out.depth, out.point
    nearest, nearest_step = math.inf, 0
    for k in range(STEPS):
        c, s, tc, ts = _on_step(half, bend, k)
        d, nx, ny, nz = _distance(shape, i, x + c * ax + s * bx, y + c * ay + s * by, z + c * az + s * bz)
        walk[SCRATCH + k] = d
        slope[SCRATCH + k, 0] = nx * (tc * ax + ts * bx) + ny * (tc * ay + ts * by) + nz * (tc * az + ts * bz)
        if d < nearest:
            nearest, nearest_step = d, k
    longest = max(bend * (_TURN if half == 0.0 else 2.0 * _TURN), 0.25 * half)
    if nearest - 0.5 * longest >= wire + margin:
        return 0

    n, level = _level_points(shape, placed, i, j, x, y, z, ax, ay, az, bx, by, bz, nearest, margin, out)
    for k in range(STEPS):
        least = 0.5 * (walk[SCRATCH + k] + walk[SCRATCH + (k + 1) % STEPS] - longest)  # a distance falls no faster
        if least >= wire + margin:
            continue
        flat = _is_level(walk, k, nearest, wire) or _is_level(walk, k + 1, nearest, wire)
        here, there = slope[SCRATCH + k, 0], slope[SCRATCH + (k + 1) % STEPS, 0]
        between = _slope_at(shape, i, half, bend, k, 0.5, x, y, z, ax, ay, az, bx, by, bz)
        for part in range(2):
            first, last = (between, there) if part else (here, between)
            if first >= -LEAST_SLOPE or last < -LEAST_SLOPE or n >= ROOM:
                continue
            low, last = 0.5 * part, max(last, 0.0)
            at = _minimum(shape, i, half, bend, k, low, low + 0.5, first, last, x, y, z, ax, ay, az, bx, by, bz)
            c, s, _, _ = _on_curve(half, bend, k, at)
            px, py, pz = x + c * ax + s * bx, y + c * ay + s * by, z + c * az + s * bz
            d, nx, ny, nz = _distance(shape, i, px, py, pz)
            if flat and d >= level - BETTER * (half + bend):
                continue
            n = _list(placed, i, out, n, px, py, pz, wire, nx, ny, nz, d, margin, _minimum_number(out, n, k))
            if shape.kind[i] >= TORUS:
                # a wire in a narrow hole touches the far side of ring i as well
                half_i, bend_i, wire_i = ring_size(shape, i)
                d, nx, ny, nz = _core_distance(px, py, pz, half_i, -bend_i)
                n = _list(placed, i, out, n, px, py, pz, wire, nx, ny, nz, d - wire_i, margin, FAR_SIDE + 2 * k + part)
    deepest = -math.inf
    for q in range(n):
        deepest = max(deepest, out.depth[q])
    if deepest >= wire - nearest - BETTER * (half + bend):
        return n
    # the nearest step lies on a stretch too short to be level and too even to have a minimum
    n, _ = _level_point(
        shape, placed, i, half, bend, wire, nearest_step, x, y, z, ax, ay, az, bx, by, bz, margin, out, n, level
    )
    return n


@inline
def _slope_at(shape, i, half, bend, k, part, x, y, z, ax, ay, az, bx, by, bz):
    """How the distance from shape i changes along the curve, between steps."""
    c, s, tc, ts = _on_curve(half, bend, k, part)
    _, nx, ny, nz = _distance(shape, i, x + c * ax + s * bx, y + c * ay + s * by, z + c * az + s * bz)
    return nx * (tc * ax + ts * bx) + ny * (tc * ay + ts * by) + nz * (tc * az + ts * bz)


@kernel
def sphere_ring(shape, placed, i, j, margin, out):
    """One point in closed form; a ball that also reaches the far side of the ring, as when it sits in it, is walked."""
    pos, radius = placed.pos, shape.size[i, 0]
    half, bend, wire = ring_size(shape, j)
    x, y, z = pos[i, 0], pos[i, 1], pos[i, 2]
    u, v, w = to_frame(placed, j, x, y, z)
    distance, nx, ny, nz = _core_distance(u, v, w, half, bend)
    reach = wire + radius + margin
    if distance >= reach:
        return 0
    across, _, _, _ = _core_distance(u, v, w, half, -bend)
    if across < reach:
        return shape_ring(shape, placed, i, j, margin, out)
    return ball_in_frame(placed, j, out, 0, x, y, z, radius, nx, ny, nz, distance - wire, margin, MINIMA)


@inline
def _minimum_number(out, n, k):
    """The feature of a minimum: its quarter of the ring, and whether it is the first or a later one there."""
    number = MINIMA + 8 * (k // 8)
    for q in range(n):
        if out.feature[q] >= MINIMA and out.feature[q] // 8 == number // 8:
            number += 1
    return number


@inline
def _list(placed, i, out, n, x, y, z, wire, nx, ny, nz, distance, margin, feature):
    """List the wire about a point in the frame of shape i."""
    gap = distance - wire
    if gap >= margin:
        return n
    back = wire + 0.5 * gap
    x, y, z = turned(placed.rot, i, x - back * nx, y - back * ny, z - back * nz)
    nx, ny, nz = turned(placed.rot, i, -nx, -ny, -nz)
    pos = placed.pos
    return put(out, n, pos[i, 0] + x, pos[i, 1] + y, pos[i, 2] + z, nx, ny, nz, -gap, feature)


@inline
def _is_level(walk, k, nearest, wire):
    return walk[SCRATCH + k % STEPS] < nearest + LEVEL * wire


@inline
def _is_end(walk, k, nearest, wire, ahead):
    """Whether a level stretch of three steps or more ends at step k."""
    return (
        _is_level(walk, k, nearest, wire)
        and _is_level(walk, k + STEPS - ahead, nearest, wire)
        and _is_level(walk, k + STEPS - 2 * ahead, nearest, wire)
        and not _is_level(walk, k + STEPS + ahead, nearest, wire)
    )


@kernel
def _level_points(shape, placed, i, j, x, y, z, ax, ay, az, bx, by, bz, nearest, margin, out):
    """List ends and middles of level stretches; how many, and the least distance among them."""
    walk = out.depth
    half, bend, wire = ring_size(shape, j)
    around = 0
    for k in range(STEPS):
        around += 1 if _is_level(walk, k, nearest, wire) else 0
    n, least = 0, math.inf
    if around < 3:
        return n, least
    first = 0
    while around < STEPS and first < STEPS and not _is_end(walk, first, nearest, wire, -1):
        first += 1
    begin = -1
    for step in range(STEPS):
        k = (first + step) % STEPS
        if around == STEPS:
            wanted = k % 8 == 0
            begin = -1
        else:
            if _is_end(walk, k, nearest, wire, -1):
                begin = step
            wanted = begin == step
            if begin >= 0 and _is_end(walk, k, nearest, wire, 1):
                wanted = True
                middle = (first + (begin + step) // 2) % STEPS
                n, least = _level_point(
                    shape, placed, i, half, bend, wire, middle, x, y, z, ax, ay, az, bx, by, bz, margin, out, n, least
                )
                begin = -1
        if wanted:
            n, least = _level_point(
                shape, placed, i, half, bend, wire, k, x, y, z, ax, ay, az, bx, by, bz, margin, out, n, least
            )
    return n, least


@kernel
def _level_point(shape, placed, i, half, bend, wire, k, x, y, z, ax, ay, az, bx, by, bz, margin, out, n, least):
    """List the wire at step k."""
    c, s, _, _ = _on_step(half, bend, k)
    px, py, pz = x + c * ax + s * bx, y + c * ay + s * by, z + c * az + s * bz
    d, nx, ny, nz = _distance(shape, i, px, py, pz)
    return _list(placed, i, out, n, px, py, pz, wire, nx, ny, nz, d, margin, k), min(least, d)


@kernel
def _minimum(shape, i, half, bend, k, low, high, here, there, x, y, z, ax, ay, az, bx, by, bz):
    """Which part of the way from step k to the next the slope turns from falling to rising, between low and high.

    Regula falsi (Illinois) first; a slope that jumps, at an edge of a shape's inside, is left to halving.
    """
    side = 0
    for step in range(REFINE):
        part = (low * there - high * here) / (there - here)
        if step > 8 or not (part > low and part < high):
            part = 0.5 * (low + high)
        rise = _slope_at(shape, i, half, bend, k, part, x, y, z, ax, ay, az, bx, by, bz)
        if abs(rise) < LEAST_SLOPE or high - low < 1e-10:
            return part
        if rise < 0.0:
            low, here = part, rise
            if side == -1:
                there *= 0.5
            side = -1
        else:
            high, there = part, rise
            if side == 1:
                here *= 0.5
            side = 1
    return 0.5 * (low + high)
