"""Capsule against cylinder: the closest points of a segment and a solid cylinder, offset by the radius.

Outside, the distance along the core is convex, so its slope is brought to zero by regula falsi and halving: exact to
rounding. Where the core runs through the cylinder there are three ways out: through an end, through the side, or over
a rim, along a normal that is perpendicular to the core. The last is searched for in one angle.

A capsule over the side of the cylinder, or over its end, gets a point at each end of the common length.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.capsule_box import FLAT, SAME_WAY, clip
from plant.collision.narrowphase.sphere_capsule import (
    BETTER,
    NEAR,
    along,
    ball_in_frame,
    clamp,
    cylinder_distance,
    to_frame,
)

REFINE = 48  # at most so many steps to the closest point; half a dozen as a rule
LEAST_SLOPE = 1e-8  # where a minimum counts as found: its distance is then right to rounding
ANGLES = 24  # tried for a way over the rim
GOLDEN = 0.6180339887498949


@kernel
def capsule_cylinder(shape, placed, i, j, margin, out):
    """One to three points; features: 0 the closest, 1 and 2 the ends of the common length, 3-6 inside."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    radius, half, r, h = size[i, 0], size[i, 1], size[j, 0], size[j, 1]
    x, y, z = to_frame(placed, j, pos[i, 0], pos[i, 1], pos[i, 2])
    ux, uy, uz = rot[i, 0, 2], rot[i, 1, 2], rot[i, 2, 2]
    dx, dy, dz = along(rot, j, 0, ux, uy, uz), along(rot, j, 1, ux, uy, uz), along(rot, j, 2, ux, uy, uz)
    reach = radius + margin
    distance, _, _, _ = cylinder_distance(x, y, z, r, h)
    if distance >= reach + half:
        return 0
    t = _nearest(x, y, z, dx, dy, dz, half, r, h)
    distance, nx, ny, nz = cylinder_distance(x + t * dx, y + t * dy, z + t * dz, r, h)
    if distance <= NEAR:
        return _through(shape, placed, i, j, x, y, z, dx, dy, dz, margin, out)
    if distance >= reach:
        return 0
    n, low, high = 0, -half, half
    if abs(nz) < FLAT:
        low, high = clip(low, high, z, dz, h)
    elif abs(nz) > 1.0 - FLAT:
        low, high = _clip_disc(low, high, x, y, dx, dy, r)
    if high > low:
        n = _end(shape, placed, i, j, low, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, 1)
        n = _end(shape, placed, i, j, high, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, 2)
    if n > 0 and radius - distance <= max(out.depth[0], out.depth[n - 1]) + BETTER * radius:
        return n
    x, y, z = pos[i, 0] + t * ux, pos[i, 1] + t * uy, pos[i, 2] + t * uz
    return ball_in_frame(placed, j, out, n, x, y, z, radius, nx, ny, nz, distance, margin, 0)


@inline
def _slope(t, x, y, z, dx, dy, dz, r, h):
    """How the distance from the cylinder changes along the core; zero inside."""
    distance, nx, ny, nz = cylinder_distance(x + t * dx, y + t * dy, z + t * dz, r, h)
    if distance <= 0.0:
        return 0.0
    return nx * dx + ny * dy + nz * dz


@kernel
def _nearest(x, y, z, dx, dy, dz, half, r, h):
    """Where along the core it is closest to the cylinder."""
    low, high = -half, half
    at_low, at_high = _slope(low, x, y, z, dx, dy, dz, r, h), _slope(high, x, y, z, dx, dy, dz, r, h)
    if at_low >= 0.0:
        return low
    if at_high <= 0.0:
        return high
    side = 0
    for step in range(REFINE):
        t = (low * at_high - high * at_low) / (at_high - at_low)
        if step > 8 or not (t > low and t < high):
            t = 0.5 * (low + high)
        slope = _slope(t, x, y, z, dx, dy, dz, r, h)
        if abs(slope) < LEAST_SLOPE or not (t > low and t < high):
            return t
        if slope < 0.0:
            low, at_low = t, slope
            if side == -1:
                at_high *= 0.5
            side = -1
        else:
            high, at_high = t, slope
            if side == 1:
                at_low *= 0.5
            side = 1
    return 0.5 * (low + high)


@inline
def _clip_disc(low, high, x, y, dx, dy, r):
    """The part of an interval of t where (x, y) + t (dx, dy) lies in a disc about the origin."""
    square = dx * dx + dy * dy
    if square < NEAR * NEAR:
        return low, high
    middle = -(x * dx + y * dy) / square
    across = x * dy - y * dx
    reach = math.sqrt(max(r * r * square - across * across, 0.0)) / square
    return max(low, middle - reach), min(high, middle + reach)


@inline
def _end(shape, placed, i, j, t, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, feature):
    """List the ball at t along the core, if it touches from the same side."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    distance, ex, ey, ez = cylinder_distance(x + t * dx, y + t * dy, z + t * dz, size[j, 0], size[j, 1])
    if ex * nx + ey * ny + ez * nz < SAME_WAY:
        return n
    x, y, z = pos[i, 0] + t * rot[i, 0, 2], pos[i, 1] + t * rot[i, 1, 2], pos[i, 2] + t * rot[i, 2, 2]
    return ball_in_frame(placed, j, out, n, x, y, z, size[i, 0], ex, ey, ez, distance, margin, feature)


@kernel
def _through(shape, placed, i, j, x, y, z, dx, dy, dz, margin, out):
    """The points when the core runs through the cylinder."""
    size = shape.size
    half, r, h = size[i, 1], size[j, 0], size[j, 1]
    end = h + half * abs(dz) - abs(z)
    square = dx * dx + dy * dy
    t = clamp(-(x * dx + y * dy) / square, half) if square > NEAR * NEAR else 0.0
    px, py = x + t * dx, y + t * dy
    rho = math.sqrt(px * px + py * py)
    side = r - rho
    rim, nx, ny, nz = _over_rim(x, y, z, dx, dy, dz, r, h)
    if rim < min(end, side) * (1.0 - 1e-9):
        across = math.sqrt(nx * nx + ny * ny)
        qx, qy, qz = r * nx / across, r * ny / across, math.copysign(h, nz)
        t = clamp((qx - x) * dx + (qy - y) * dy + (qz - z) * dz, half)
        return _ball(shape, placed, i, j, t, nx, ny, nz, -rim, margin, out, 0, 3)
    if side < end:
        low, high = clip(-half, half, z, dz, h)  # a core along the axis is pushed where it is beside the cylinder
        t = max(low, min(t, high))
        if rho > NEAR:
            return _ball(shape, placed, i, j, t, px / rho, py / rho, 0.0, -side, margin, out, 0, 4)
        across = math.sqrt(square)
        nx, ny = (-dy / across, dx / across) if across > NEAR else (1.0, 0.0)
        return _ball(shape, placed, i, j, t, nx, ny, 0.0, -side, margin, out, 0, 4)
    up = math.copysign(1.0, z)
    low, high = _clip_disc(-half, half, x, y, dx, dy, r)
    low, high = min(low, high), max(low, high)
    n = _ball(shape, placed, i, j, low, 0.0, 0.0, up, up * (z + low * dz) - h, margin, out, 0, 5)
    return _ball(shape, placed, i, j, high, 0.0, 0.0, up, up * (z + high * dz) - h, margin, out, n, 6)


@inline
def _ball(shape, placed, i, j, t, nx, ny, nz, distance, margin, out, n, feature):
    """List the ball at t along the core."""
    pos, rot = placed.pos, placed.rot
    x, y, z = pos[i, 0] + t * rot[i, 0, 2], pos[i, 1] + t * rot[i, 1, 2], pos[i, 2] + t * rot[i, 2, 2]
    return ball_in_frame(placed, j, out, n, x, y, z, shape.size[i, 0], nx, ny, nz, distance, margin, feature)


@inline
def _overlap(angle, x, y, z, ax, ay, az, bx, by, bz, r, h):
    """Overlap of core line and cylinder along a normal perpendicular to the core, and that normal, pointing away from
    the axis."""
    c, s = math.cos(angle), math.sin(angle)
    nx, ny, nz = c * ax + s * bx, c * ay + s * by, c * az + s * bz
    out = nx * x + ny * y + nz * z
    if out < 0.0:
        out, nx, ny, nz = -out, -nx, -ny, -nz
    return r * math.sqrt(nx * nx + ny * ny) + h * abs(nz) - out, nx, ny, nz


@kernel
def _over_rim(x, y, z, dx, dy, dz, r, h):
    """The least overlap along normals perpendicular to the core that point over a rim; inf if there is none."""
    size = math.sqrt(dx * dx + dy * dy)
    if size < 1e-9 or abs(dz) < 1e-9:
        return math.inf, 1.0, 0.0, 0.0
    ax, ay, az = -dy / size, dx / size, 0.0
    bx, by, bz = ay * dz, -ax * dz, ax * dy - ay * dx
    step = math.pi / ANGLES
    best, at = math.inf, 0.0
    before, _, _, _ = _overlap(-step, x, y, z, ax, ay, az, bx, by, bz, r, h)
    here, _, _, _ = _overlap(0.0, x, y, z, ax, ay, az, bx, by, bz, r, h)
    for k in range(ANGLES):  # a small angle from the axis the overlap may have a minimum of its own
        after, _, _, _ = _overlap((k + 1) * step, x, y, z, ax, ay, az, bx, by, bz, r, h)
        if here <= before and here <= after:
            angle, overlap = _least(k * step, step, x, y, z, ax, ay, az, bx, by, bz, r, h)
            if overlap < best:
                best, at = overlap, angle
        before, here = here, after
    overlap, nx, ny, nz = _overlap(at, x, y, z, ax, ay, az, bx, by, bz, r, h)
    if abs(nz) < 1e-9 or nx * nx + ny * ny < 1e-18:
        return math.inf, 1.0, 0.0, 0.0
    return overlap, nx, ny, nz


@kernel
def _least(at, step, x, y, z, ax, ay, az, bx, by, bz, r, h):
    """The angle within a step of `at` where the overlap is least, by golden sections, and how much it is."""
    low, high = at - step, at + step
    p, q = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_p, _, _, _ = _overlap(p, x, y, z, ax, ay, az, bx, by, bz, r, h)
    at_q, _, _, _ = _overlap(q, x, y, z, ax, ay, az, bx, by, bz, r, h)
    for _ in range(REFINE):
        if at_p < at_q:
            high, q, at_q = q, p, at_p
            p = high - GOLDEN * (high - low)
            at_p, _, _, _ = _overlap(p, x, y, z, ax, ay, az, bx, by, bz, r, h)
        else:
            low, p, at_p = p, q, at_q
            q = low + GOLDEN * (high - low)
            at_q, _, _, _ = _overlap(q, x, y, z, ax, ay, az, bx, by, bz, r, h)
    at = 0.5 * (low + high)
    return at, _overlap(at, x, y, z, ax, ay, az, bx, by, bz, r, h)[0]
