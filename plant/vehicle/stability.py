"""Tip-over stability: the energy stability margin of a machine on its supports.

The places where it stands span a polygon. To tip over one of its edges, the centre of mass must be lifted over that
edge: with R the way from the edge to the centre of mass, theta its angle against the upright plane through the edge and
psi the edge's slope, by

    h = |R| (1 - cos theta) cos psi

The least h of all edges, in metres, is the margin: what an impulse would have to spend, per weight. It is negative
when the centre of mass is already beyond an edge: it is falling, and -h is what it would have to rise to come back.

A machine that stands on a line, or on a point, has no inside: unless its centre of mass is exactly above, where the
margin is 0, it falls to the side on which it is, and the margin is -h of the line, or of the end of it that the centre
is beyond; of a point h = |R| (1 - cos theta). Both are what the polygon's margin comes to as the polygon gets thin. In
the air nothing has to be overcome, so the margin is 0 there; who must tell it from balance looks at the count.

Ref: D. A. Messuri, C. A. Klein, Automatic body regulation for maintaining stability of a legged vehicle during
rough-terrain locomotion, IEEE Journal of Robotics and Automation 1985.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel

SAME = 1e-6  # [m] points nearer to each other, seen from above, are one


@inline
def _is_same(a, b):
    dx, dy = a[0] - b[0], a[1] - b[1]
    return dx * dx + dy * dy < SAME * SAME


@kernel
def outline(point, count, order):
    """Corners of the convex outline of points seen from above, counter-clockwise, into `order`; how many there are.

    Jarvis's march: a handful of points needs no sorting.
    """
    if count == 0:
        return 0
    first = 0
    for i in range(1, count):
        if point[i, 0] < point[first, 0] or (point[i, 0] == point[first, 0] and point[i, 1] < point[first, 1]):
            first = i
    now, corners = first, 0
    while corners < count:
        order[corners] = now
        corners += 1
        best = -1
        for i in range(count):
            if _is_same(point[i], point[now]):
                continue
            dx, dy = point[i, 0] - point[now, 0], point[i, 1] - point[now, 1]
            if best < 0:
                best = i
                continue
            bx, by = point[best, 0] - point[now, 0], point[best, 1] - point[now, 1]
            turn = bx * dy - by * dx
            if turn < 0.0 or (turn == 0.0 and dx * dx + dy * dy > bx * bx + by * by):
                best = i
        if best < 0 or _is_same(point[best], point[first]):
            break
        now = best
    return corners


@inline
def _over_point(p, x, y, z):
    """Height that (x, y, z) must rise to come to stand above `p` [m]."""
    dx, dy, dz = x - p[0], y - p[1], z - p[2]
    return math.sqrt(dx * dx + dy * dy + dz * dz) - dz


@inline
def _over_line(a, b, x, y, z):
    """Height that (x, y, z) must rise to come over the line from `a` to `b` [m], how far to its left it is [m], and
    where along it, 0 at `a` and 1 at `b`. The two are apart seen from above."""
    ex, ey, ez = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    size = math.sqrt(ex * ex + ey * ey + ez * ez)
    ex, ey, ez = ex / size, ey / size, ez / size
    level = math.sqrt(ex * ex + ey * ey)  # cos psi
    rx, ry, rz = x - a[0], y - a[1], z - a[2]
    along = rx * ex + ry * ey + rz * ez
    rx, ry, rz = rx - along * ex, ry - along * ey, rz - along * ez
    far = math.sqrt(rx * rx + ry * ry + rz * rz)
    left = (-ey * rx + ex * ry) / level  # across the edge, level
    up = math.sqrt(max(far * far - left * left, 0.0))  # |R| cos theta
    if rz < 0.0:
        up = -up
    return (far - up) * level, left, along / size


@kernel
def energy_margin(point, count, order, x, y, z):
    """Least height that the centre of mass (x, y, z) must rise to tip over an edge between `count` points [m]."""
    corners = outline(point, count, order)
    if corners == 0:
        return 0.0
    a = point[order[0]]
    if corners == 1:
        return -_over_point(a, x, y, z)
    if corners == 2:
        b = point[order[1]]
        rise, _, along = _over_line(a, b, x, y, z)
        if along < 0.0:
            rise = _over_point(a, x, y, z)
        elif along > 1.0:
            rise = _over_point(b, x, y, z)
        return -rise
    least = 1e30
    for k in range(corners):
        rise, inward, _ = _over_line(point[order[k]], point[order[(k + 1) % corners]], x, y, z)
        least = min(least, rise if inward >= 0.0 else -rise)
    return least
