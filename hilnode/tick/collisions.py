"""Collisions of the plant become events: which two bodies, where and how hard.

An event has one whole number for the bodies and one for the place. With n bodies, of which the ground is number 0 and
the others 1 to n, the two are first * (n + 1) + second. The place is in millimetres, 21 bits with a sign for each of
x, y and z: to a millimetre up to a kilometre from the origin; what is further away is told at that border.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.shared.codes import PLACE_BITS, PLACE_FURTHEST, Event
from hilnode.tick.lifecycle import tell

COLLISION = int(Event.COLLISION)
MOST = 8  # events in a tick; what is left waits for the next, or is overwritten
POSE = 7


@kernel
def tell_collisions(t):
    """Events of what has collided since the last tick."""
    p = t.plant
    first, end = p.hits_told[0], p.hits[0]
    if first == end:
        return
    size, bodies, told = p.hit_impulse.size, p.pose.size // POSE, 0
    first = max(first, end - size)
    while first < end and told < MOST:
        k = first % size
        first += 1
        if p.hit_impulse[k] >= p.hit_least:
            two = (p.hit_body[k, 0] + 1) * (bodies + 1) + p.hit_body[k, 1] + 1
            tell(t, COLLISION, two, p.hit_impulse[k], _place(p.hit_point[k]))
            told += 1
    p.hits_told[0] = first


@inline
def _place(point):
    """Three coordinates as one number."""
    return (
        (_millimetres(point[0]) << (2 * PLACE_BITS)) | (_millimetres(point[1]) << PLACE_BITS) | _millimetres(point[2])
    )


@inline
def _millimetres(x):
    if not abs(x) < 1e-3 * PLACE_FURTHEST:
        x = math.copysign(1e-3 * PLACE_FURTHEST, x)
    return math.floor(1e3 * x + 0.5) + PLACE_FURTHEST
