"""Rows: scalar functions of the coordinates, with their rates, gradients and forces.

    DOT      c1 . c2                                slope  s1 c2 + s2 c1                 g_ddot  2 c1' . c2'
    PART     one component of c1                    slope  s1 along that axis            g_ddot  0
    LENGTH   |c1|                                   slope  s1 u,  u = c1 / |c1|          g_ddot  (c1' across u)^2 / |c1|
    ANGLE    turn t of c1 in the plane of c2, c3    from  c1 . n = 0,  n = -sin t c2 + cos t c3
    SUM      of other rows

An entity's slope is written with its share s in each combination. The angle is found by its two cosines and then
treated as the root of one smooth equation that is well conditioned at any turn: nothing is switched.

    HOLD     force = multiplier + penalty (value - goal)                  Luaces eq. 2.10; with a goal of its own time
                                                                          for a guide, F(q, t) = value - goal = 0
    STOP     the same, as long as it pushes                               limits
    DRIVE    force = multiplier + penalty (rate - goal rate), in bounds   motors, friction in joints
    PULL     force = k (value - goal) + c (rate - goal rate)              springs, soft joints
    TABLE    force by the table of a spring
    OIL      force = c rate - goal                                        a cylinder, linearised over the step
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.constraint.springs import look_up
from plant.natural.model import Form, Role

DOT, PART, ANGLE, LENGTH, SUM = int(Form.DOT), int(Form.PART), int(Form.ANGLE), int(Form.LENGTH), int(Form.SUM)
OFF, HOLD, STOP, PULL = int(Role.OFF), int(Role.HOLD), int(Role.STOP), int(Role.PULL)
TABLE, OIL, DRIVE = int(Role.TABLE), int(Role.OIL), int(Role.DRIVE)


@kernel
def combine(n):
    """Values and rates of all combinations."""
    c, q, v = n.combination, n.entity.q, n.entity.v
    first, entity, share, value, rate = c.first, c.entity, c.share, c.value, c.rate
    for i in range(c.count[0]):
        x, y, z, u, w, o = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(first[i], first[i + 1]):
            s, k = share[t], entity[t]
            x, y, z = x + s * q[k, 0], y + s * q[k, 1], z + s * q[k, 2]
            u, w, o = u + s * v[k, 0], w + s * v[k, 1], o + s * v[k, 2]
        value[i, 0], value[i, 1], value[i, 2] = x, y, z
        rate[i, 0], rate[i, 1], rate[i, 2] = u, w, o


@inline
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def evaluate(n):
    """Value, rate and gradient of every row, at the coordinates of now."""
    combine(n)
    r, at, speed = n.row, n.combination.value, n.combination.rate
    form, use, value, rate, first, share, slope = r.form, r.use, r.value, r.rate, r.first, r.share, r.slope
    for i in range(r.count[0]):
        kind, p = form[i], use[i, 0]
        if kind == DOT:
            a, b = at[p], at[use[i, 1]]
            value[i] = _dot(a, b)
            rate[i] = _dot(speed[p], b) + _dot(a, speed[use[i, 1]])
            for t in range(first[i], first[i + 1]):
                s, o = share[t, 0], share[t, 1]
                for k in range(3):
                    slope[t, k] = s * b[k] + o * a[k]
        elif kind == PART:
            value[i], rate[i] = at[p, use[i, 1]], speed[p, use[i, 1]]
        elif kind == ANGLE:
            _angle(r, at, speed, i)
        elif kind == LENGTH:
            a = at[p]
            size = math.sqrt(_dot(a, a))
            one = 1.0 / size if size > 0.0 else 0.0
            value[i], rate[i] = size, one * _dot(a, speed[p])
            for t in range(first[i], first[i + 1]):
                s = one * share[t, 0]
                slope[t, 0], slope[t, 1], slope[t, 2] = s * a[0], s * a[1], s * a[2]
        else:
            _sum(r, i)


@kernel
def _angle(r, value, rate, i):
    """Turn of `v` against `u` (0) and `w` (90 degrees), unwound, its rate and gradient."""
    v, u, w = value[r.use[i, 0]], value[r.use[i, 1]], value[r.use[i, 2]]
    dv, du, dw = rate[r.use[i, 0]], rate[r.use[i, 1]], rate[r.use[i, 2]]
    x, y = _dot(v, u), _dot(v, w)
    turned = math.atan2(y, x)
    turned += 2.0 * math.pi * round((r.value[i] - turned) / (2.0 * math.pi))
    r.value[i] = turned
    c, s = math.cos(turned), math.sin(turned)
    reach = c * x + s * y
    one = 1.0 / reach if reach > 0.0 else 0.0
    total = 0.0
    for k in range(3):
        total += dv[k] * (c * w[k] - s * u[k]) + v[k] * (c * dw[k] - s * du[k])
    r.rate[i] = one * total
    for t in range(r.first[i], r.first[i + 1]):
        p, q = one * r.share[t, 0], one * (c * r.share[t, 2] - s * r.share[t, 1])
        for k in range(3):
            r.slope[t, k] = p * (c * w[k] - s * u[k]) + q * v[k]


@kernel
def _sum(r, i):
    total, speed, t = 0.0, 0.0, r.first[i]
    for k in range(3):
        other, ratio = r.use[i, k], r.ratio[i, k]
        if other < 0:
            continue
        total += ratio * r.value[other]
        speed += ratio * r.rate[other]
        for o in range(r.first[other], r.first[other] + r.free[other]):
            for x in range(3):
                r.slope[t, x] = ratio * r.slope[o, x]
            t += 1
    r.value[i], r.rate[i] = total, speed


@kernel
def evaluate_g_ddots(n):
    """Second derivatives of all rows at constant velocities."""
    r, value, rate = n.row, n.combination.value, n.combination.rate
    for i in range(r.count[0]):
        form = r.form[i]
        if form == DOT:
            r.g_ddot[i] = 2.0 * _dot(rate[r.use[i, 0]], rate[r.use[i, 1]])
        elif form == PART:
            r.g_ddot[i] = 0.0
        elif form == ANGLE:
            _g_ddot_of_angle(r, value, rate, i)
        elif form == LENGTH:
            a = rate[r.use[i, 0]]
            size = r.value[i]
            r.g_ddot[i] = (_dot(a, a) - r.rate[i] * r.rate[i]) / size if size > 0.0 else 0.0
        else:
            r.g_ddot[i] = 0.0
            for k in range(3):
                if r.use[i, k] >= 0:
                    r.g_ddot[i] += r.ratio[i, k] * r.g_ddot[r.use[i, k]]


@kernel
def _g_ddot_of_angle(r, value, rate, i):
    v, u, w = value[r.use[i, 0]], value[r.use[i, 1]], value[r.use[i, 2]]
    dv, du, dw = rate[r.use[i, 0]], rate[r.use[i, 1]], rate[r.use[i, 2]]
    c, s, speed = math.cos(r.value[i]), math.sin(r.value[i]), r.rate[i]
    total, reach = 0.0, 0.0
    for k in range(3):
        along = c * u[k] + s * w[k]
        reach += v[k] * along
        total += 2.0 * dv[k] * (c * dw[k] - s * du[k] - speed * along)
        total += v[k] * (-2.0 * speed * (c * du[k] + s * dw[k]) + speed * speed * (s * u[k] - c * w[k]))
    r.g_ddot[i] = total / reach if reach > 0.0 else 0.0


@inline
def _off(r, i):
    """How far a row with bounds is from its goal."""
    return r.rate[i] - r.goal_rate[i] if r.role[i] == DRIVE else r.value[i] - r.goal[i]


@kernel
def respond(e, n):
    """What every row pushes with, and how that changes with its value and its rate."""
    r = n.row
    for i in range(r.count[0]):
        role = r.role[i]
        if role == HOLD:
            r.force[i] = r.multiplier[i] + r.penalty[i] * (r.value[i] - r.goal[i])
            r.stiff[i] = r.penalty[i]
        elif role == STOP or role == DRIVE:
            force = r.multiplier[i] + r.penalty[i] * _off(r, i)
            r.active[i] = 1 if r.low[i] < force < r.high[i] else 0
            r.force[i] = min(max(force, r.low[i]), r.high[i])
            slope = r.penalty[i] if r.active[i] == 1 else 0.0
            if role == STOP:
                r.stiff[i] = slope
            else:
                r.drag[i] = slope
        elif role == PULL:
            r.force[i] = r.k[i] * (r.value[i] - r.goal[i]) + r.c[i] * (r.rate[i] - r.goal_rate[i])
            r.stiff[i], r.drag[i] = r.k[i], r.c[i]
        elif role == TABLE:
            _pull_by_table(e.model.spring, r, i)
        elif role == OIL:
            r.force[i] = r.c[i] * r.rate[i] - r.goal[i]
            r.drag[i] = r.c[i]


@kernel
def _pull_by_table(spring, r, i):
    """Springs between two points that are bounded or have a table."""
    k = r.spring[i]
    stretch = r.value[i] - spring.rest[k]
    push, stiff, drag = -spring.stiffness[k] * stretch, spring.stiffness[k], spring.damping[k]
    if spring.table[k] >= 0:
        push, stiff = look_up(spring, k, stretch)
    push -= drag * r.rate[i]
    if not spring.low[k] <= push <= spring.high[k]:
        push, stiff, drag = min(max(push, spring.low[k]), spring.high[k]), 0.0, 0.0
    r.force[i], r.stiff[i], r.drag[i] = -push, max(stiff, 0.0), drag


@kernel
def keep_multipliers(n, of_value, of_rate):
    """Multipliers of the next iteration. The correction in `solution.x` changes values `of_value` times as much, rates
    `of_rate` times.

    Eq. 2.59 takes the violation after the correction. Most of that comes from the curvature of the constraint along
    the correction, not from a force that is missing, and a firm penalty makes an impact of it. Better is what the
    linear solve itself says the violation will be: then the multiplier is the force that this solve has used.
    """
    r, x, node, place = n.row, n.solution.x, n.entity.node, n.entity.place
    role, first, free, entity, slope = r.role, r.first, r.free, r.entity, r.slope
    for i in range(r.count[0]):
        if role[i] != HOLD and role[i] != STOP and role[i] != DRIVE:
            continue
        change = 0.0
        for t in range(first[i], first[i] + free[i]):
            c, p = node[entity[t]], place[entity[t]]
            change += slope[t, 0] * x[c, p] + slope[t, 1] * x[c, p + 1] + slope[t, 2] * x[c, p + 2]
        if role[i] == HOLD:
            r.multiplier[i] += r.penalty[i] * (r.value[i] - r.goal[i] + of_value * change)
        elif r.active[i] == 1:
            off = _off(r, i) + (of_rate if role[i] == DRIVE else of_value) * change
            r.multiplier[i] = min(max(r.multiplier[i] + r.penalty[i] * off, r.low[i]), r.high[i])
        else:  # the solve knew it as a constant force
            r.multiplier[i] = r.force[i]
