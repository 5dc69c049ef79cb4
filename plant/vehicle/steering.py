"""Steering geometry: wheel angles for Ackermann, pivot and crab steering (Vortex 4.2.7).

    Ackermann   angle_i = atan(l_i / (W + w_i)),  W = L / tan(a),  a = s a_max        eq. 48, 49
    pivot       angle_i = atan(l_i / w_i)                                             4.2.7.2
    crab        angle_i = s a_max, the same for all

Where a wheel is: l forwards [m], from the line across the machine on which it turns; w to the RIGHT [m], from the
machine's middle. Angles [rad] are about the upward normal: positive steers to the left, and s > 0 is a turn to the
left, about the point O at l = 0, w = -W. So in a left turn the right wheels, w > 0, are the outer ones and turn less.

                    l
                    ^    /
        O  . . . . .|. ./. . . . .  wheel axes meet in O
        |<--- W --->|  w -->

Which axles steer is in the coordinates: l = 0 is a fixed axle (its angles are 0), an axle behind it has l < 0 and
steers the other way, and l measured from the middle between two axles steers both.

Against the source: eq. 49 takes W = l_i / tan(a) of each wheel, which gives each axle a point of its own as soon as
they differ in |l|. Here L is the largest |l| of all wheels, so all meet in one. For a machine with one steered axle it
is the same.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel


@inline
def _towards(ahead, aside):
    """atan(ahead / aside), of a wheel at the very point of turning 0."""
    if aside == 0.0 and ahead == 0.0:
        return 0.0
    if aside < 0.0:
        ahead, aside = -ahead, -aside
    return math.atan2(ahead, aside)


@kernel
def ackermann(steer, max_angle, l, w, out):  # noqa: E741
    """`out` [n] = angles [rad] of wheels at `l`, `w` [n] [m] for `steer` in -1 .. 1 of `max_angle` [rad] below pi / 2.

    `max_angle` is that of a wheel in the machine's middle at the largest |l|. Ref: Vortex eq. 48, 49.
    """
    far = 0.0
    for i in range(l.size):
        far = max(far, abs(l[i]))
    t = math.tan(min(max(steer, -1.0), 1.0) * max_angle)
    for i in range(l.size):
        out[i] = _towards(l[i] * t, far + w[i] * t)


@kernel
def pivot(l, w, out):  # noqa: E741
    """`out` [n] = angles [rad] with which wheels at `l`, `w` [n] [m] roll about the origin. Ref: Vortex 4.2.7.2.

    A wheel on the left (w < 0) then rolls backwards in a turn to the left.
    """
    for i in range(l.size):
        out[i] = _towards(l[i], w[i])


@kernel
def crab(steer, max_angle, out):
    """`out` [n] = the same angle [rad] for all wheels, `steer` in -1 .. 1 of `max_angle`. Ref: Vortex 4.2.7.2."""
    angle = min(max(steer, -1.0), 1.0) * max_angle
    for i in range(out.size):
        out[i] = angle
