"""A ray against a torus: the first root of a quartic.

With the origin moved along the ray to where it is closest to the centre (o . d = 0), m = o . o and
k = m + R^2 - r^2, a point o + t d of the ray is on the torus where

    f(t) = t^4 + (2 k - 4 R^2 (dx^2 + dy^2)) t^2 - 8 R^2 (ox dx + oy dy) t + k^2 - 4 R^2 (ox^2 + oy^2) = 0

and inside where f < 0. f'' is a parabola with known roots, f' is monotonic between them, so its roots are found one
by one, and f is monotonic between those: no root is missed and none is found twice.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.vec3 import along, dot, times, unit

STEPS = 80


@inline
def _quartic(t, c2, c1, c0):
    return ((t * t + c2) * t + c1) * t + c0


@inline
def _cubic(t, c2, c1):
    return (4.0 * t * t + 2.0 * c2) * t + c1


@kernel
def _zero(order, low, high, c2, c1, c0):
    """The root of f (order 4) or f' (order 3) between `low` and `high`, where it changes sign once; Newton, kept in."""
    at_low = _quartic(low, c2, c1, c0) if order == 4 else _cubic(low, c2, c1)
    t = 0.5 * (low + high)
    for _ in range(STEPS):
        value = _quartic(t, c2, c1, c0) if order == 4 else _cubic(t, c2, c1)
        slope = _cubic(t, c2, c1) if order == 4 else 12.0 * t * t + 2.0 * c2
        if (value > 0.0) == (at_low > 0.0):
            low = t
        else:
            high = t
        step = t - value / slope if slope != 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - t) <= 1e-15 * max(abs(low), abs(high)):
            return step
        t = step
    return t


@kernel
def ray_torus(o, d, ring, wire):
    """Distance along the unit vector `d` from `o` to a torus in its frame (0 inside, inf if missed), and the normal."""
    n = times(-1.0, d)
    ahead = -dot(o, d)
    p = along(o, ahead, d)
    m = dot(p, p)
    reach = (ring + wire) * (ring + wire) - m
    if reach < 0.0:
        return math.inf, n
    low, high = max(-math.sqrt(reach), -ahead), math.sqrt(reach)
    if low > high:
        return math.inf, n
    k, four = m + ring * ring - wire * wire, 4.0 * ring * ring
    c2 = 2.0 * k - four * (d[0] * d[0] + d[1] * d[1])
    c1 = -2.0 * four * (p[0] * d[0] + p[1] * d[1])
    c0 = k * k - four * (p[0] * p[0] + p[1] * p[1])
    if low == -ahead and _quartic(low, c2, c1, c0) <= 0.0:
        return 0.0, n
    t = _first_entry(low, high, c2, c1, c0)
    if t == math.inf:
        return t, n
    q = along(p, t, d)
    rho = max(math.sqrt(q[0] * q[0] + q[1] * q[1]), 1e-300)
    s = (rho - ring) / rho
    return ahead + t, unit((s * q[0], s * q[1], q[2]))


@inline
def _first_entry(low, high, c2, c1, c0):
    """Where f first falls below 0 between `low`, where it is positive, and `high`; inf if nowhere."""
    turn = math.sqrt(-c2 / 6.0) if c2 < 0.0 else 0.0
    begin = low
    for piece in range(3):  # between the roots of f''
        end = high if piece == 2 else min(max(-turn if piece == 0 else turn, low), high)
        if end > begin:
            a, b = _cubic(begin, c2, c1), _cubic(end, c2, c1)
            middle = end
            if (a > 0.0) != (b > 0.0):
                middle = _zero(3, begin, end, c2, c1, c0)
            if _quartic(middle, c2, c1, c0) < 0.0:
                return _zero(4, low, middle, c2, c1, c0)
            low = middle
            if middle < end:
                if _quartic(end, c2, c1, c0) < 0.0:
                    return _zero(4, low, end, c2, c1, c0)
                low = end
            begin = end
    return math.inf
