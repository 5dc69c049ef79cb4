"""Bounded rows of joints: motors, limits, dry friction and springs on a free coordinate.

    motor     G v = target speed                     |impulse| <= h force
    limit     G v >= (gap that the step may close)   0 <= impulse
    friction  G v = 0                                |impulse| <= h force
    spring    SPOOK eq. 9 with a soft epsilon        unbounded
    cylinder  see `hydraulics`                       unbounded

A coordinate that starts beyond its limit is brought back by projection (see `position_projection`), not by a push: only
as much of the violation as can not be seen enters the velocities.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind, Bound
from plant.constraint.hydraulics import HYDRAULIC, cylinder_row
from plant.constraint.joint_coordinate import coordinate

NEAR_TURN = 2e-3  # [rad] a limit nearer than this has a row
VISIBLE_TURN = 4e-6  # [rad] what can be seen of a turn beyond a limit
DYNAMIC = int(BodyKind.DYNAMIC)
MOTOR, LIMIT, FRICTION, SPRING = int(Bound.MOTOR), int(Bound.LIMIT), int(Bound.FRICTION), int(Bound.SPRING)
RESTING = 1e-3  # share of the quiet speed below which a pair does not approach: an impulse goes through a row of balls
UNSEEN = 0.1  # share of the visible gap that is pushed back at velocity level; the rest is projected


@inline
def row_speed(state, a, b, ga, gb):
    """G v with the velocities before the step."""
    s = 0.0
    if a >= 0:
        v = state.vel[a]
        s += ga[0] * v[0] + ga[1] * v[1] + ga[2] * v[2] + ga[3] * v[3] + ga[4] * v[4] + ga[5] * v[5]
    if b >= 0:
        v = state.vel[b]
        s += gb[0] * v[0] + gb[1] * v[1] + gb[2] * v[2] + gb[3] * v[3] + gb[4] * v[4] + gb[5] * v[5]
    return s


@kernel
def actuator_rows(e):
    """Append the rows of all actuators whose joint takes part."""
    act, joint, d, h = e.model.actuator, e.model.joint, e.data, e.model.setup.h
    rows, target = d.bounded, d.target
    for i in range(act.joint.size):
        j, kind = act.joint[i], act.kind[i]
        if act.on[i] == 0 or joint.on[j] == 0:
            continue
        k = rows.count[0]
        a, b = joint.a[j], joint.b[j]
        ga, gb = rows.ga[k], rows.gb[k]
        where = coordinate(e, j, act.axis[i], ga, gb)
        rows.a[k], rows.b[k], rows.kind[k], rows.source[k] = a, b, kind, i
        rows.low[k], rows.high[k] = h * target.low[i], h * target.high[i]
        rows.sigma[k] = act.sigma[i]
        rows.excess[k] = rows.bounce[k] = rows.value[k] = 0.0
        rows.hits[k] = 0
        rows.slot[k], rows.joint[k], rows.side[k] = act.slot[i], j, 1.0
        rows.state[k] = rows.kept[i]
        if kind == LIMIT:
            if not _limit_row(e, rows, k, i, act.side[i] * (where - target.position[i])):
                continue
        elif kind == SPRING:
            y = act.upsilon[i]
            rows.rhs[k] = y * (4.0 / h * (target.position[i] - where) + row_speed(d.state, a, b, ga, gb))
        elif kind == HYDRAULIC:
            rows.sigma[k], rows.rhs[k] = cylinder_row(e, act.cylinder[i], where)
        elif kind == MOTOR:
            rows.rhs[k] = target.speed[i] + target.gain[i] * (target.position[i] - where)
        else:
            rows.rhs[k] = 0.0
        if math.isinf(rows.low[k] if rows.state[k] < 0 else rows.high[k]):
            rows.state[k] = 0
        rows.count[0] = k + 1


@kernel
def _limit_row(e, rows, k, i, gap):
    """The row of a limit that is `gap` away; False if it is too far to matter."""
    setup, act = e.model.setup, e.model.actuator
    h, side, ga, gb = setup.h, act.side[i], rows.ga[k], rows.gb[k]
    rows.side[k] = side
    for c in range(6):
        ga[c] *= side
        gb[c] *= side
    turns = act.axis[i] >= 3
    speed = row_speed(e.data.state, rows.a[k], rows.b[k], ga, gb)
    if gap + 2.0 * h * min(speed, 0.0) > (NEAR_TURN if turns else setup.margin) and gap > 0.0:
        rows.kept[i] = -1
        return False
    rows.hits[k] = 1 if gap + h * speed < 0.0 and speed < -RESTING * setup.quiet else 0
    if act.bounce[i] > 0.0 and speed < -setup.quiet and rows.hits[k] == 1:
        rows.bounce[k] = -act.bounce[i] * speed + restitution_correction(e, rows, k, act.bounce[i])
    if gap >= 0.0:
        rows.rhs[k] = -gap / h
    else:
        own = UNSEEN * (VISIBLE_TURN if turns else setup.visible)
        rows.excess[k] = max(0.0, -gap - own)
        push = 4.0 / h * -gap if rows.excess[k] == 0.0 else 0.0
        rows.rhs[k] = max(0.0, act.upsilon[i] * (push + speed))
    return True


@inline
def restitution_correction(e, rows, k, bounce):
    """Speed added to a rebound: gravity acts on it for the whole step that follows, longer than the bodies were apart.

    It is gravity's acceleration along the row, into the contact, times h (1 + bounce) / 2."""
    setup, a, b = e.model.setup, rows.a[k], rows.b[k]
    closing = 0.0
    if a >= 0 and e.model.body.kind[a] == DYNAMIC:
        g = rows.ga[k]
        closing -= g[0] * setup.gx + g[1] * setup.gy + g[2] * setup.gz
    if b >= 0 and e.model.body.kind[b] == DYNAMIC:
        g = rows.gb[k]
        closing -= g[0] * setup.gx + g[1] * setup.gy + g[2] * setup.gz
    return 0.5 * (1.0 + bounce) * setup.h * max(closing, 0.0)
