"""A step of mechanisms in joint coordinates, so that no joint of the tree can drift apart.

accelerate   kinematic_tree: where everything is; forward_dynamics: the tree's accelerations; loop_closure: its loops
step         one of three integrators around it
outputs      poses and velocities of the bodies
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.abi import NOT_FINITE, OK
from plant.numeric.algebra import cross
from plant.reduced import forward_dynamics
from plant.reduced.kinematic_tree import BALL, EULER, MIDPOINT, RK4, drift, find_speeds, place, turn_ball, turned
from plant.reduced.loop_closure import OPEN, hold, project

NOT_CLOSED = 2


@kernel
def accelerate(t, q, qd, damped, implicit):
    """qdd at (q, qd); damping acts on the velocity `damped` + `implicit` qdd."""
    forward_dynamics.accelerate(t, q, qd, damped, implicit)
    if t.loop.axis.size > 0:
        hold(t, qd)


@inline
def _rates(t, q, qd, rate):
    """`rate` = dq/dt; of a ball q (0, w) / 2 on the unit quaternion along q."""
    kind, at = t.node.kind, t.node.at
    for i in range(kind.size):
        k = at[i]
        if kind[i] < BALL:
            rate[k] = qd[i]
        elif kind[i] == BALL:
            a, b, d, e, x, y, z = q[k], q[k + 1], q[k + 2], q[k + 3], qd[i], qd[i + 1], qd[i + 2]
            n = 0.5 / math.sqrt(a * a + b * b + d * d + e * e)
            rate[k], rate[k + 1] = -n * (b * x + d * y + e * z), n * (a * x + d * z - e * y)
            rate[k + 2], rate[k + 3] = n * (a * y + e * x - b * z), n * (a * z + b * y - d * x)


@inline
def _kick(t, h):
    """qd forward by h at constant qdd."""
    qd, qdd = t.motion.qd, t.motion.qdd
    for i in range(qd.size):
        qd[i] += h * qdd[i]


@inline
def _begin(t):
    """To where the forces are first evaluated."""
    s, w, h = t.motion, t.work, t.setup.h
    if t.setup.integrator == MIDPOINT:
        drift(t, s.q, s.qd, 0.5 * h)
        for i in range(s.qd.size):
            w.stage_qd[i] = s.qd[i] + 0.5 * h * s.qdd[i]
    elif t.setup.integrator == RK4:
        for i in range(s.q.size):
            w.stage_q[i], w.sum_q[i] = s.q[i], 0.0
        for i in range(s.qd.size):
            w.stage_qd[i], w.sum_qd[i] = s.qd[i], 0.0


@inline
def _stage(t, stage):
    """Add up a Runge-Kutta stage's rates, and on to the next stage or to the end of the step."""
    s, w, h = t.motion, t.work, t.setup.h
    _rates(t, w.stage_q, w.stage_qd, w.rate)
    weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
    ahead = h if stage == 2 else 0.5 * h
    for i in range(s.q.size):
        w.sum_q[i] += weight * w.rate[i]
        w.stage_q[i] = s.q[i] + ahead * w.rate[i]
    for i in range(s.qd.size):
        w.sum_qd[i] += weight * s.qdd[i]
        w.stage_qd[i] = s.qd[i] + ahead * s.qdd[i]
    if stage < 3:
        return
    for i in range(s.q.size):
        s.q[i] += w.sum_q[i]
    for i in range(s.qd.size):
        s.qd[i] += w.sum_qd[i]
        if t.node.kind[i] == BALL:
            turn_ball(s.q, t.node.at[i], 0.0, 0.0, 0.0)


@kernel
def step(t):
    """Advance by one step; OK, NOT_FINITE or NOT_CLOSED.

    EULER     semi-implicit: new velocities, with damping acting on these, then positions with them. First order.
    MIDPOINT  half a drift, a kick by the forces there, half a drift. Second order with one evaluation. Forces of
              velocity see it at mid-step as the last acceleration predicts it, which is good to h^2; damping acts on
              the mean of old and new velocity. Where forces depend on positions only this is the leapfrog.
    RK4       the classical Runge-Kutta method, fourth order, four evaluations; quaternions as four numbers,
              normalised after. Damping is explicit.

    Rows of loops hold in every evaluation, and at the end coordinates and velocities are brought back to where all
    loops are closed: that moves them by no more than the error of the step, so each method keeps its order.
    Ref: Hairer, Lubich, Wanner, Geometric Numerical Integration, IV.4 (projection), VII.1.3 (constraints).
    """
    s, w, h, way = t.motion, t.work, t.setup.h, t.setup.integrator
    _begin(t)
    q = w.stage_q if way == RK4 else s.q
    qd = s.qd if way == EULER else w.stage_qd
    damped = w.stage_qd if way == RK4 else s.qd
    implicit = h if way == EULER else (0.5 * h if way == MIDPOINT else 0.0)
    for stage in range(4 if way == RK4 else 1):
        accelerate(t, q, qd, damped, implicit)
        if way == RK4:
            _stage(t, stage)
    if way != RK4:
        _kick(t, h)
        drift(t, s.q, s.qd, h if way == EULER else 0.5 * h)
    gap = project(t) if t.loop.axis.size > 0 else 0.0
    total = 0.0
    for i in range(s.qd.size):
        total += s.qd[i]
    if not math.isfinite(total):
        return NOT_FINITE
    return OK if gap <= OPEN else NOT_CLOSED


@kernel
def outputs(t):
    """Poses and velocities of all bodies at the present q and qd."""
    place(t, t.motion.q, t.motion.qd)
    find_speeds(t, t.motion.qd, t.node.all)
    f, v, part, out = t.work.frame, t.work.speed, t.part, t.body
    for b in range(part.node.size):
        i = part.node[b]
        rx, ry, rz = turned(f, i, part.com[b, 0], part.com[b, 1], part.com[b, 2])
        x, y, z = cross(f[i, 15], f[i, 16], f[i, 17], rx, ry, rz)
        out.pos[b, 0], out.pos[b, 1], out.pos[b, 2] = f[i, 9] + rx, f[i, 10] + ry, f[i, 11] + rz
        out.vel[b, 0], out.vel[b, 1], out.vel[b, 2] = v[i, 0] + x, v[i, 1] + y, v[i, 2] + z
        out.vel[b, 3], out.vel[b, 4], out.vel[b, 5] = f[i, 15], f[i, 16], f[i, 17]
        _write_quat(f, i, part.quat[b], out.quat[b])


@inline
def _write_quat(f, i, own, out):
    """`out` = quaternion of node i's frame times `own`, of the sign that is nearer to what `out` was."""
    xx, yx, zx, xy, yy, zy = f[i, 0], f[i, 1], f[i, 2], f[i, 3], f[i, 4], f[i, 5]
    xz, yz, zz = f[i, 6], f[i, 7], f[i, 8]
    if xx + yy + zz > 0.0:
        w, x, y, z = 1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy
    elif xx > yy and xx > zz:
        w, x, y, z = zy - yz, 1.0 + xx - yy - zz, yx + xy, xz + zx
    elif yy > zz:
        w, x, y, z = xz - zx, yx + xy, 1.0 + yy - xx - zz, zy + yz
    else:
        w, x, y, z = yx - xy, xz + zx, zy + yz, 1.0 + zz - xx - yy
    a, b, c, d = own[0], own[1], own[2], own[3]
    e, g = w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c
    w, x, y, z = e, g, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a
    s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    if w * out[0] + x * out[1] + y * out[2] + z * out[3] < 0.0:
        s = -s
    out[0], out[1], out[2], out[3] = w * s, x * s, y * s, z * s
