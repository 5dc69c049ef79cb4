"""Capsule against box: the closest points of a segment and a box, offset by the radius; exact.

Outside, the squared distance along the core is convex and its slope linear in pieces. Where the core runs through the
box, the way out is the least overlap along the box's face normals and their cross products with the core (as Luaces
table 4.1, for a box of no thickness). A capsule over a face or along an edge gets a point at each end of the common
length: it does not rock when it lies there, and when it comes down fast on one end, the other is held as well.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.sphere_capsule import BETTER, NEAR, along, ball_in_frame, box_distance, clamp, to_frame

SAME_WAY = 0.99  # cosine up to which the normal at an end may differ from the normal at the closest point
FLAT = 0.05  # a face is level with the capsule if its normal has less than this along the contact's normal


@kernel
def capsule_box(shape, placed, i, j, margin, out):
    """One to three points; features: 0 the closest, 1 and 2 the ends of the length along a face or edge, 3-5 inside."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    radius, half = size[i, 0], size[i, 1]
    a, b, c = size[j, 0], size[j, 1], size[j, 2]
    x, y, z = to_frame(placed, j, pos[i, 0], pos[i, 1], pos[i, 2])
    ux, uy, uz = rot[i, 0, 2], rot[i, 1, 2], rot[i, 2, 2]
    dx, dy, dz = along(rot, j, 0, ux, uy, uz), along(rot, j, 1, ux, uy, uz), along(rot, j, 2, ux, uy, uz)
    reach = radius + margin
    if (
        abs(x) - half * abs(dx) - a >= reach
        or abs(y) - half * abs(dy) - b >= reach
        or abs(z) - half * abs(dz) - c >= reach
    ):
        return 0
    t = nearest_to_box(x, y, z, dx, dy, dz, half, a, b, c)
    distance, nx, ny, nz = box_distance(x + t * dx, y + t * dy, z + t * dz, a, b, c)
    if distance <= NEAR:
        return _through(shape, placed, i, j, x, y, z, dx, dy, dz, margin, out)
    if distance >= reach:
        return 0
    n, low, high = 0, -half, half
    if abs(nx) < FLAT:
        low, high = clip(low, high, x, dx, a)
    if abs(ny) < FLAT:
        low, high = clip(low, high, y, dy, b)
    if abs(nz) < FLAT:
        low, high = clip(low, high, z, dz, c)
    if high > low:
        n = _end(shape, placed, i, j, low, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, 1)
        n = _end(shape, placed, i, j, high, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, 2)
    if n > 0 and radius - distance <= max(out.depth[0], out.depth[n - 1]) + BETTER * radius:
        return n
    x, y, z = pos[i, 0] + t * ux, pos[i, 1] + t * uy, pos[i, 2] + t * uz
    return ball_in_frame(placed, j, out, n, x, y, z, radius, nx, ny, nz, distance, margin, 0)


@inline
def clip(low, high, x, dx, a):
    """The part of an interval of t where |x + t dx| <= a."""
    if abs(dx) < NEAR:
        return low, high
    s, t = (-a - x) / dx, (a - x) / dx
    return max(low, min(s, t)), min(high, max(s, t))


@inline
def _end(shape, placed, i, j, t, x, y, z, dx, dy, dz, nx, ny, nz, margin, out, n, feature):
    """List the ball at t along the core, if it touches from the same side."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    distance, ex, ey, ez = box_distance(x + t * dx, y + t * dy, z + t * dz, size[j, 0], size[j, 1], size[j, 2])
    if ex * nx + ey * ny + ez * nz < SAME_WAY:
        return n
    x, y, z = pos[i, 0] + t * rot[i, 0, 2], pos[i, 1] + t * rot[i, 1, 2], pos[i, 2] + t * rot[i, 2, 2]
    return ball_in_frame(placed, j, out, n, x, y, z, size[i, 0], ex, ey, ez, distance, margin, feature)


@inline
def _keep_lesser_overlap(best, which, x, y, dx, dy, a, b, this):
    """The lesser of `best` and the overlap along the cross product of core and box axis, and which one it is."""
    length = math.sqrt(dx * dx + dy * dy)
    if length < 1e-9:
        return best, which
    overlap = (a * abs(dy) + b * abs(dx) - abs(x * dy - y * dx)) / length
    if overlap < best:
        return overlap, this
    return best, which


@kernel
def _through(shape, placed, i, j, x, y, z, dx, dy, dz, margin, out):
    """The points when the core runs through the box."""
    size = shape.size
    half = size[i, 1]
    a, b, c = size[j, 0], size[j, 1], size[j, 2]
    best, which = a + half * abs(dx) - abs(x), 0
    if b + half * abs(dy) - abs(y) < best:
        best, which = b + half * abs(dy) - abs(y), 1
    if c + half * abs(dz) - abs(z) < best:
        best, which = c + half * abs(dz) - abs(z), 2
    best, which = _keep_lesser_overlap(best, which, y, z, dy, dz, b, c, 3)
    best, which = _keep_lesser_overlap(best, which, z, x, dz, dx, c, a, 4)
    best, which = _keep_lesser_overlap(best, which, x, y, dx, dy, a, b, 5)
    if which == 0:
        return _through_face(shape, placed, i, j, 0, x, dx, a, y, dy, b, z, dz, c, margin, out)
    if which == 1:
        return _through_face(shape, placed, i, j, 1, y, dy, b, z, dz, c, x, dx, a, margin, out)
    if which == 2:
        return _through_face(shape, placed, i, j, 2, z, dz, c, x, dx, a, y, dy, b, margin, out)
    if which == 3:
        return _through_edge(shape, placed, i, j, 0, best, y, dy, b, z, dz, c, margin, out)
    if which == 4:
        return _through_edge(shape, placed, i, j, 1, best, z, dz, c, x, dx, a, margin, out)
    return _through_edge(shape, placed, i, j, 2, best, x, dx, a, y, dy, b, margin, out)


@inline
def _axis(k, x, y, z):
    """(x, y, z) given along the axes k, k + 1, k + 2, put in order."""
    if k == 0:
        return x, y, z
    if k == 1:
        return z, x, y
    return y, z, x


@kernel
def _through_face(shape, placed, i, j, k, w, dw, c, u, du, a, v, dv, b, margin, out):
    """Out through the face across axis k: both ends of the length over or under the face, as far as the margin goes."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    half = size[i, 1]
    up = math.copysign(1.0, w)
    nx, ny, nz = _axis(k, up, 0.0, 0.0)
    low, high = clip(-half, half, u, du, a)
    low, high = clip(low, high, v, dv, b)
    low, high = min(low, high), max(low, high)
    n = 0
    for end in range(2):
        t = high if end else low
        x, y, z = pos[i, 0] + t * rot[i, 0, 2], pos[i, 1] + t * rot[i, 1, 2], pos[i, 2] + t * rot[i, 2, 2]
        distance = up * (w + t * dw) - c
        n = ball_in_frame(placed, j, out, n, x, y, z, size[i, 0], nx, ny, nz, distance, margin, 3 + end)
    return n


@kernel
def _through_edge(shape, placed, i, j, k, overlap, u, du, a, v, dv, b, margin, out):
    """Out over an edge along axis k, where the core crosses it."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    half = size[i, 1]
    length = math.sqrt(du * du + dv * dv)
    nu, nv = dv / length, -du / length
    if nu * u + nv * v < 0.0:
        nu, nv = -nu, -nv
    # the edge's foot on the core, seen along the edge
    eu, ev = math.copysign(a, nu), math.copysign(b, nv)
    t = clamp(((eu - u) * du + (ev - v) * dv) / (length * length), half)
    nx, ny, nz = _axis(k, 0.0, nu, nv)
    x, y, z = pos[i, 0] + t * rot[i, 0, 2], pos[i, 1] + t * rot[i, 1, 2], pos[i, 2] + t * rot[i, 2, 2]
    return ball_in_frame(placed, j, out, 0, x, y, z, size[i, 0], nx, ny, nz, -overlap, margin, 5)


@inline
def _slope(t, x, y, z, dx, dy, dz, a, b, c):
    """Half the rate of change along a line of the squared distance from a box; piecewise linear and never falling."""
    u, v, w = x + t * dx, y + t * dy, z + t * dz
    return dx * (u - clamp(u, a)) + dy * (v - clamp(v, b)) + dz * (w - clamp(w, c))


@inline
def _narrow(low, high, u, du, a, x, y, z, dx, dy, dz, p, q, r):
    """Narrow an interval about the zero of the slope by the two places where the line crosses |u| = a."""
    if du == 0.0:
        return low, high
    for way in (-1.0, 1.0):
        t = (way * a - u) / du
        if t > low and t < high:
            if _slope(t, x, y, z, dx, dy, dz, p, q, r) < 0.0:
                low = t
            else:
                high = t
    return low, high


@inline
def nearest_to_box(x, y, z, dx, dy, dz, half, a, b, c):
    """Where a segment about (x, y, z) along the unit vector d is closest to a box about the origin.

    The squared distance is convex along the segment, and its slope is linear between the places where the segment
    crosses the box's face planes: so the zero of the slope is found exactly.
    """
    low, high = -half, half
    at_low, at_high = _slope(low, x, y, z, dx, dy, dz, a, b, c), _slope(high, x, y, z, dx, dy, dz, a, b, c)
    if at_low >= 0.0:
        return low if at_low > 0.0 or at_high > 0.0 else 0.0
    if at_high <= 0.0:
        return high
    low, high = _narrow(low, high, x, dx, a, x, y, z, dx, dy, dz, a, b, c)
    low, high = _narrow(low, high, y, dy, b, x, y, z, dx, dy, dz, a, b, c)
    low, high = _narrow(low, high, z, dz, c, x, y, z, dx, dy, dz, a, b, c)
    at_low, at_high = _slope(low, x, y, z, dx, dy, dz, a, b, c), _slope(high, x, y, z, dx, dy, dz, a, b, c)
    if at_high > at_low:
        return low + (high - low) * at_low / (at_low - at_high)
    return 0.5 * (low + high)
