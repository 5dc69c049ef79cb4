"""Iterative solvers of the mixed linear complementarity problem (MLCP) of an island, for islands with many loops.

Over-relaxed projected Gauss-Seidel, and accelerated projected gradient. Both warm start from the last step's impulses,
work on the velocities of the bodies, and need memory and time in proportion to the rows.

    every row    impulse <- clamp(impulse + w (rhs - G v - sigma impulse) / (G M^-1 G' + sigma))
    friction     the two tangents of a contact together, on the disc of radius mu times the normal impulse of now

Ref: Vortex 2.6 (iterative solvers); Nordberg and Servin 4.2; for the gradient Mazhar, Heyn, Negrut, Tasora 2015, who
accelerate as Nesterov did and restart when the step turns uphill.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind, Bound, Stepper
from plant.constraint.actuators import row_speed
from plant.constraint.kinematics import invert3
from plant.model import Status

DYNAMIC = int(BodyKind.DYNAMIC)
LOCK, CONTACT, TANGENT = int(Bound.LOCK), int(Bound.CONTACT), int(Bound.TANGENT)
SPOOK, LINEARISED = int(Stepper.SPOOK), int(Stepper.LINEARISED)
FIXED = 2  # state of a row whose impulse is given
IMPACT_NOW = int(Status.IMPACT_NOW)
ALL, CONTACTS, BOXES = 0, 1, 2  # rows and bounds of a sweep
PART, PUSH = 0.1, 5.0  # share of an overlap pushed apart in a step; at most so many times the quiet speed
ENOUGH = 1e-7  # the largest change of a sweep, relative to the largest impulse, below which it ends


@kernel
def lock_rows(e):
    """Locked axes of joints as rows, for islands that are solved by iteration."""
    m, d, h = e.model, e.data, e.model.setup.h
    joint, rows = m.joint, d.bounded
    for j in range(joint.a.size):
        a, b = joint.a[j], joint.b[j]
        island = _island(m, d, a, b)
        if joint.on[j] == 0 or island < 0 or d.graph.body_node[a if _moves(m, d, a) else b] >= 0:
            continue
        for i in range(6):
            if joint.axis[j, i] < 0:
                continue
            k = rows.count[0]
            rows.kind[k], rows.source[k], rows.a[k], rows.b[k] = LOCK, 6 * j + i, a, b
            for c in range(6):
                rows.ga[k, c], rows.gb[k, c] = d.row.ga[j, i, c], d.row.gb[j, i, c]
            speed = row_speed(d.state, a, b, rows.ga[k], rows.gb[k])
            y = joint.upsilon[j, i]
            half_step_rate = 0.5 * h * d.row.g_ddot[j, i]
            rows.hits[k], rows.slot[k] = 1, -1
            if m.setup.stepper == SPOOK or joint.rigid[j] == 0:
                rows.rhs[k] = -4.0 / h * y * d.row.error[j, i] + y * (speed - half_step_rate) - half_step_rate
            else:
                rows.rhs[k] = -d.row.error[j, i] / h
            rows.sigma[k] = joint.sigma[j, i]
            rows.low[k], rows.high[k] = -math.inf, math.inf
            rows.state[k] = 0
            rows.excess[k] = rows.bounce[k] = 0.0
            rows.value[k] = d.row.force[j, i] * h
            rows.count[0] = k + 1


@inline
def _moves(m, d, b):
    return b >= 0 and m.body.kind[b] == DYNAMIC and d.state.asleep[b] == 0


@inline
def _island(m, d, a, b):
    if _moves(m, d, a):
        return d.graph.island[a]
    return d.graph.island[b] if _moves(m, d, b) else -1


@kernel
def prepare(e, i, only_contacts):
    """M^-1 G' and the diagonal of the island's rows, and the free velocities of its bodies with the impulses that are
    there already."""
    m, d = e.model, e.data
    g, rows = d.graph, d.bounded
    b = g.head[i]
    while b >= 0 and b < m.body.mass.size:
        inverse, p, v = d.frame.inverse[b], d.frame.momentum[b], d.state.vel[b]
        invert3(d.frame.inertia[b], inverse)
        if not only_contacts:
            w = 1.0 / m.body.mass[b]
            v[0], v[1], v[2] = w * p[0], w * p[1], w * p[2]
            for c in range(3):
                v[3 + c] = inverse[c, 0] * p[3] + inverse[c, 1] * p[4] + inverse[c, 2] * p[5]
        b = g.next[b]
    for r in range(g.row_first[i], g.row_first[i + 1]):
        k = rows.by_island[r]
        back = rows.back[k]
        back[:] = 0.0
        s = 0.0
        if rows.a[k] >= 0:
            s += _push_back(m, d, rows.a[k], rows.ga[k], back[:6])
        if rows.b[k] >= 0:
            s += _push_back(m, d, rows.b[k], rows.gb[k], back[6:])
        rows.diagonal[k] = s + rows.sigma[k]
        if rows.excess[k] > 0.0:  # there is no factor to project with: push gently
            rows.rhs[k] = max(rows.rhs[k], min(PART * rows.excess[k] / m.setup.h, PUSH * m.setup.quiet))
            rows.excess[k] = 0.0
        if not only_contacts:
            rows.value[k] = min(max(rows.value[k], rows.low[k]), rows.high[k])
            _apply(m, d, k, rows.value[k])


@inline
def _push_back(m, d, b, g, out):
    """`out` = M^-1 g for body `b`; returns g M^-1 g."""
    w, j = 1.0 / m.body.mass[b], d.frame.inverse[b]
    s = 0.0
    for c in range(3):
        out[c] = w * g[c]
        out[3 + c] = j[c, 0] * g[3] + j[c, 1] * g[4] + j[c, 2] * g[5]
    for c in range(6):
        s += g[c] * out[c]
    return s


@inline
def _apply(m, d, k, impulse):
    """Velocities after an impulse in row `k`."""
    rows = d.bounded
    a, b, back = rows.a[k], rows.b[k], rows.back[k]
    if a >= 0:
        v = d.state.vel[a]
        for c in range(6):
            v[c] += impulse * back[c]
    if b >= 0:
        v = d.state.vel[b]
        for c in range(6):
            v[c] += impulse * back[6 + c]


@inline
def _missing(d, k):
    """rhs - G v - sigma impulse."""
    rows = d.bounded
    a, b, ga, gb = rows.a[k], rows.b[k], rows.ga[k], rows.gb[k]
    s = rows.rhs[k] - rows.sigma[k] * rows.value[k]
    if a >= 0:
        v = d.state.vel[a]
        s -= ga[0] * v[0] + ga[1] * v[1] + ga[2] * v[2] + ga[3] * v[3] + ga[4] * v[4] + ga[5] * v[5]
    if b >= 0:
        v = d.state.vel[b]
        s -= gb[0] * v[0] + gb[1] * v[1] + gb[2] * v[2] + gb[3] * v[3] + gb[4] * v[4] + gb[5] * v[5]
    return s


@kernel
def sweep(e, i, mode, most):
    """At most so many sweeps of projected Gauss-Seidel over the rows of island `i`; returns how many it took.

    `mode`: ALL rows; CONTACTS alone; or ALL with the friction BOXES that are given, instead of discs.
    """
    m, d = e.model, e.data
    g, rows = d.graph, d.bounded
    relax = m.setup.relaxation
    for turn in range(most):
        change, large = 0.0, 0.0
        for r in range(g.row_first[i], g.row_first[i + 1]):
            k = rows.by_island[r]
            kind = rows.kind[k]
            if (kind == TANGENT and mode != BOXES) or (mode == CONTACTS and kind != CONTACT):
                continue
            was = rows.value[k]
            now = min(max(was + relax * _missing(d, k) / rows.diagonal[k], rows.low[k]), rows.high[k])
            rows.value[k] = now
            _apply(m, d, k, now - was)
            change, large = max(change, abs(now - was)), max(large, abs(now))
            if kind == CONTACT and mode != BOXES:
                change = max(change, _project_friction(m, d, k, d.contact.friction[rows.source[k]] * max(now, 0.0)))
        if change <= ENOUGH * large:
            return turn + 1
    return most


@inline
def _project_friction(m, d, k, reach):
    """Sweep both tangents of the contact with normal row `k`, projected onto the friction disc of radius `reach`."""
    rows = d.bounded
    p0, q0 = rows.value[k + 1], rows.value[k + 2]
    p = p0 + _missing(d, k + 1) / rows.diagonal[k + 1]
    q = q0 + _missing(d, k + 2) / rows.diagonal[k + 2]
    size = math.sqrt(p * p + q * q)
    if size > reach:
        p, q = p * reach / size, q * reach / size
    rows.value[k + 1], rows.value[k + 2] = p, q
    _apply(m, d, k + 1, p - p0)
    _apply(m, d, k + 2, q - q0)
    return abs(p - p0) + abs(q - q0)


@kernel
def descend(e, i):
    """Accelerated projected gradient over the rows of island `i`; returns the steps it took.

    Rows are scaled by their diagonal, so one step length fits all; it is halved when the potential says it was too
    long, and the momentum is dropped when it points uphill.
    """
    m, d = e.model, e.data
    g, rows = d.graph, d.bounded
    begin, end = g.row_first[i], g.row_first[i + 1]
    length, theta = 1.0, 1.0
    for r in range(begin, end):
        k = rows.by_island[r]
        rows.value_before[k] = rows.value[k]  # x of the last step; `value` is where the gradient is taken
    turn = 0
    while turn < m.setup.sweeps:
        turn += 1
        large, slope = 0.0, 0.0
        for r in range(begin, end):
            k = rows.by_island[r]
            rows.step[k] = _missing(d, k) / rows.diagonal[k]
        while True:
            _project(d, begin, end, length)
            if length < 1e-3 or _is_descent(m, d, begin, end, length):
                break
            length *= 0.5
        for r in range(begin, end):
            k = rows.by_island[r]
            slope += rows.diagonal[k] * rows.step[k] * (rows.speed[k] - rows.value_before[k])
        following = 0.5 * (math.sqrt(theta**4 + 4.0 * theta * theta) - theta * theta)
        momentum = theta * (1.0 - theta) / (theta * theta + following)
        theta = following
        if slope < 0.0:
            momentum, theta = 0.0, 1.0
        change = 0.0
        for r in range(begin, end):
            k = rows.by_island[r]
            was, new, old = rows.value[k], rows.speed[k], rows.value_before[k]
            change, large = max(change, abs(new - old)), max(large, abs(new))
            ahead = new + momentum * (new - old)
            rows.value_before[k], rows.value[k] = new, ahead
            _apply(m, d, k, ahead - was)
        length = min(1.0, 1.1 * length)
        if change <= ENOUGH * large:
            break
    for r in range(begin, end):
        k = rows.by_island[r]
        _apply(m, d, k, rows.value_before[k] - rows.value[k])
        rows.value[k] = rows.value_before[k]
    return turn


@kernel
def _project(d, begin, end, length):
    """`speed` = the projection of value + length x step onto bounds and discs."""
    rows = d.bounded
    for r in range(begin, end):
        k = rows.by_island[r]
        if rows.kind[k] == TANGENT:
            continue
        rows.speed[k] = min(max(rows.value[k] + length * rows.step[k], rows.low[k]), rows.high[k])
        if rows.kind[k] == CONTACT:
            reach = d.contact.friction[rows.source[k]] * max(rows.speed[k], 0.0)
            p = rows.value[k + 1] + length * rows.step[k + 1]
            q = rows.value[k + 2] + length * rows.step[k + 2]
            size = math.sqrt(p * p + q * q)
            if size > reach:
                p, q = p * reach / size, q * reach / size
            rows.speed[k + 1], rows.speed[k + 2] = p, q


@kernel
def _is_descent(m, d, begin, end, length):
    """Whether the quadratic term of the way is below what the step length assumes: way' A way <= way' D way / length.

    Leaves the velocities as they were.
    """
    rows = d.bounded
    for r in range(begin, end):
        k = rows.by_island[r]
        _apply(m, d, k, rows.speed[k] - rows.value[k])
    a, b = 0.0, 0.0
    for r in range(begin, end):
        k = rows.by_island[r]
        way = rows.speed[k] - rows.value[k]
        now = _missing(d, k) - rows.sigma[k] * way
        a += way * (rows.diagonal[k] * rows.step[k] - now)
        b += way * way * rows.diagonal[k]
    for r in range(begin, end):
        k = rows.by_island[r]
        _apply(m, d, k, rows.value[k] - rows.speed[k])
    return a <= b / length * (1.0 + 1e-12)


@kernel
def finish_sweep(e, i):
    """Reactions of joints from the impulses of their rows."""
    d, h = e.data, e.model.setup.h
    g, rows = d.graph, d.bounded
    for r in range(g.row_first[i], g.row_first[i + 1]):
        k = rows.by_island[r]
        if rows.kind[k] == LOCK:
            d.row.force[rows.source[k] // 6, rows.source[k] % 6] = rows.value[k] / h
