"""The direct solver: the mixed linear complementarity problem (MLCP) of an island, all rows at once, exactly.

The bounded rows of a step (contacts, motors, limits, springs) have compliance, so their impulses follow from the
velocities, clamped to the bounds:

    impulse(v) = clamp((rhs - G v) / sigma, low, high)

so rows that are between their bounds go into the matrix (M + G' G / sigma), rows at a bound into the right-hand side,
and after a solve it is seen who must change sides. Changing all of them at once is block principal pivoting (Vortex
2.6; Murty; Judice and Pires), with rows eliminated before bodies: the factor keeps the sparsity of the mechanism
however many contacts there are, and redundant contacts do no harm. Warm started from the last step's states, one
round is the rule.

Block pivoting may cycle. The solution is also the minimum of a convex potential, kinetic energy against the free
motion plus a piecewise quadratic for every row, and a block pivot is a Newton step of it: when the number of rows in
a wrong state has not fallen for a while, each step is followed by an exact line search along the potential, which
leads down at every round. An island of loose bodies that is far from its solution is first brought near by a few
sweeps of iteration. Where the rounds allowed are not enough, iteration has the last word, and that is counted.

Joint rows stay in the matrix as rows of their own (the saddle-point form), which keeps all digits however stiff. So do
actuated coordinates of joints: all actuators of one coordinate that are free together make one row of its joint's node.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.codes import Bound, Stepper
from plant.model import DISTANCE, Status
from plant.solver.iterative import BOXES, FIXED, prepare, sweep
from plant.sparse.block_ldl import backward, factorise, forward

LIGHT = 0.3  # share of its inertia (trace) that a pull must reach before a body counts as a light link
SPOOK, LINEARISED, PROJECTED = int(Stepper.SPOOK), int(Stepper.LINEARISED), int(Stepper.PROJECTED)
FACTORS, FALLBACKS, IMPACT_NOW = int(Status.FACTORS), int(Status.FALLBACKS), int(Status.IMPACT_NOW)
CONTACT, TANGENT = int(Bound.CONTACT), int(Bound.TANGENT)
SHARE = 1e3  # rigid joints are softer by this where redundant ones must share a load: enough digits are left for that
SEARCH = 30  # halvings of the line search
PATIENCE = 4  # block pivots in a row that do not lower the number of rows in a wrong state
MANY = 6  # wrong rows after the first solve, more of which call for a prediction
SWEEPS, LONG = 6, 100  # of iteration, to predict states: at first, and at most
TOLERANCE = 1e-9  # relative to the largest impulse and the largest speed


@kernel
def assemble(e, i):
    """K of island `i` into the factor's blocks, the right-hand side into x."""
    m, d = e.model, e.data
    g, p, f = d.graph, d.pattern, d.factor
    bodies, joints = m.body.mass.size, m.joint.a.size
    begin, end = g.first[i], g.first[i + 1]
    f.above[p.first[begin] : p.first[end]] = 0.0
    for n in range(begin, end):
        b = g.owner[n]
        f.fresh[n] = p.fresh[n]
        if b < bodies:
            _assemble_body(f.diagonal[n], d.x[n], m.body.mass[b], d.frame.inertia[b], d.frame.momentum[b])
        elif b < bodies + joints:
            d.row.drive[b - bodies, :] = 0.0
            d.row.goal[b - bodies, :] = 0.0
            d.row.rest_set[b - bodies, :] = 0.0
    for r in range(g.row_first[i], g.row_first[i + 1]):
        _add_row(d, d.bounded.by_island[r])
    for n in range(begin, end):
        c = g.owner[n] - bodies
        if c >= joints:
            _assemble_coupling(e, c - joints, n)
        elif c >= 0:
            _assemble_joint(e, c, n, SHARE if g.strained[i] == 1 else 1.0)


@inline
def _assemble_body(block, x, mass, inertia, momentum):
    block[:] = 0.0
    for i in range(3):
        block[i, i] = mass
        for k in range(3):
            block[3 + i, 3 + k] = inertia[i, k]
    for i in range(6):
        x[i] = momentum[i]


@kernel
def _assemble_joint(e, j, n, soften):
    """Rows of joint `j` at node `n`: how they are stabilised is the stepper's choice."""
    m, d, h = e.model, e.data, e.model.setup.h
    joint, row, block, x = m.joint, d.row, d.factor.diagonal[n], d.x[n]
    a, b = joint.a[j], joint.b[j]
    ga, gb = row.ga[j], row.gb[j]
    size = d.pattern.size[n]
    impact = d.status[IMPACT_NOW] == 1
    block[:] = 0.0
    for i in range(size):
        if joint.axis[j, i] < 0:
            if row.drive[j, i] > 0.0:
                block[i, i] = -1.0 / row.drive[j, i]
                x[i] = row.goal[j, i] / row.drive[j, i]
            else:
                block[i, i] = -1.0
                x[i] = 0.0
                for k in range(6):
                    ga[i, k] = gb[i, k] = 0.0
            continue
        block[i, i] = -joint.sigma[j, i] * (soften if joint.rigid[j] == 1 else 1.0)
        speed, prescribed = 0.0, 0.0  # of all bodies; of those that the solve can not change
        if a >= 0:
            s = _dot6(ga[i], d.state.vel[a])
            speed += s
            prescribed += s if d.graph.body_node[a] < 0 else 0.0
        if b >= 0:
            s = _dot6(gb[i], d.state.vel[b])
            speed += s
            prescribed += s if d.graph.body_node[b] < 0 else 0.0
        y = joint.upsilon[j, i]
        half_step_rate = 0.5 * h * row.g_ddot[j, i]
        if impact:
            x[i] = -prescribed
        elif m.setup.stepper == SPOOK or joint.rigid[j] == 0:
            x[i] = -4.0 / h * y * row.error[j, i] + y * (speed - half_step_rate) - half_step_rate - prescribed
        elif m.setup.stepper == LINEARISED:
            x[i] = -row.error[j, i] / h - prescribed
        else:
            x[i] = -prescribed
    f, graph = d.factor, d.graph
    _couple(f, graph.block[j, 0], graph.over[j, 0], ga, size)
    _couple(f, graph.block[j, 1], graph.over[j, 1], gb, size)
    if not impact:
        _stiffen(e, j)


@inline
def _dot6(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inline
def _couple(f, block, over, g, size):
    if block >= 0:
        target = f.above[block]
        if over == 1:  # the body is the pivot
            for k in range(6):
                for i in range(size):
                    target[k, i] = g[i, k]
        else:
            for i in range(size):
                for k in range(6):
                    target[i, k] = g[i, k]


@kernel
def _stiffen(e, j):
    """Geometric stiffness: a joint that pulls at an arm r with force f turns the body back when it turns away.

    The torque r x f changes by -(r . f)(1 - u u') for a pull along u = r / |r|. Taken implicitly it adds h^2
    times that to the inertia, on both sides, so that nothing is damped. Without it a light link between heavy
    loads swings up at steps longer than its own period (Vortex 3.1.4.1). Bodies that are heavy enough for the
    step are left as they are, and so are pushes, which would take inertia away. Ref: Tournier, Nesme, Gilles,
    Faure 2015, with the pull alone instead of their full tensor.
    """
    m, d, h = e.model, e.data, e.model.setup.h
    joint, row = m.joint, d.row
    fx, fy, fz = row.reaction[j, 0], row.reaction[j, 1], row.reaction[j, 2]
    for side in range(2):
        body = joint.a[j] if side == 0 else joint.b[j]
        n = d.graph.body_node[body] if body >= 0 else -1
        if n < 0:
            continue
        r = row.arm[j, side]
        pull = (fx * r[0] + fy * r[1] + fz * r[2]) * (-1.0 if side == 0 else 1.0)
        square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        block, x, w = d.factor.diagonal[n], d.x[n], d.state.vel[body]
        if h * h * pull < LIGHT * (block[3, 3] + block[4, 4] + block[5, 5]) or square == 0.0:
            continue
        for i in range(3):
            for k in range(3):
                s = h * h * pull * ((1.0 if i == k else 0.0) - r[i] * r[k] / square)
                block[3 + i, 3 + k] += s
                x[3 + i] += s * w[3 + k]


@kernel
def _assemble_coupling(e, p, n):
    """The one row of a coupling, padded to three."""
    m, d, h = e.model, e.data, e.model.setup.h
    block, x, g = d.factor.diagonal[n], d.x[n], d.coupled.g[p]
    c = m.joint.a.size + p
    block[:] = 0.0
    block[1, 1] = block[2, 2] = -1.0
    block[0, 0] = -m.coupling.sigma[p]
    x[1] = x[2] = 0.0
    speed, prescribed = 0.0, 0.0
    for q in range(m.coupling.body.shape[1]):
        b = m.coupling.body[p, q]
        if b < 0:
            continue
        s = _dot6(g[q], d.state.vel[b])
        speed += s
        prescribed += s if d.graph.body_node[b] < 0 else 0.0
        if d.graph.block[c, q] >= 0:
            target = d.factor.above[d.graph.block[c, q]]
            for k in range(6):
                if d.graph.over[c, q] == 1:
                    target[k, 0] = g[q, k]
                else:
                    target[0, k] = g[q, k]
    y, error = m.coupling.upsilon[p], d.coupled.error[p]
    x[0] = -prescribed
    if d.status[IMPACT_NOW] == 0:
        if m.setup.stepper == SPOOK:
            x[0] += y * (speed - 4.0 / h * error)
        else:  # couplings are not projected
            x[0] -= error / h


@inline
def _add_outer(block, x, g, w, rhs):
    """block += w g g', x += w rhs g."""
    for i in range(6):
        s = w * g[i]
        x[i] += s * rhs
        for j in range(6):
            block[i, j] += s * g[j]


@kernel
def _add_row(d, k):
    """A bounded row: into the matrix if it is free, into the right-hand side if not."""
    rows, graph, f = d.bounded, d.graph, d.factor
    a, b = rows.a[k], rows.b[k]
    na = graph.body_node[a] if a >= 0 else -1
    nb = graph.body_node[b] if b >= 0 else -1
    ga, gb = rows.ga[k], rows.gb[k]
    if rows.state[k] != 0:
        v = rows.value[k]
        if rows.state[k] != FIXED:
            v = rows.low[k] if rows.state[k] < 0 else rows.high[k]
        if na >= 0:
            for c in range(6):
                d.x[na, c] += v * ga[c]
        if nb >= 0:
            for c in range(6):
                d.x[nb, c] += v * gb[c]
        return
    w, rhs = 1.0 / rows.sigma[k], rows.rhs[k]
    if rows.slot[k] >= 0:
        _drive(d.row, rows, k, w)
        return
    if na >= 0:
        _add_outer(f.diagonal[na], d.x[na], ga, w, rhs)
        f.fresh[na] = 0
    if nb >= 0:
        _add_outer(f.diagonal[nb], d.x[nb], gb, w, rhs)
        f.fresh[nb] = 0
    if na >= 0 and nb >= 0:
        block = f.above[rows.block[k]]
        for i in range(6):
            s = w * (ga[i] if na < nb else gb[i])
            for j in range(6):
                block[i, j] += s * (gb[j] if na < nb else ga[j])


@inline
def _drive(row, rows, k, w):
    """A free actuator: into the row of its coordinate at the joint's node."""
    j, i, side = rows.joint[k], rows.slot[k], rows.side[k]
    if row.drive[j, i] == 0.0:
        for c in range(6):
            row.ga[j, i, c], row.gb[j, i, c] = side * rows.ga[k, c], side * rows.gb[k, c]
    row.drive[j, i] += w
    row.goal[j, i] += side * w * rows.rhs[k]


@kernel
def solve_direct(e, i):
    """Rows of island `i` by block pivoting; velocities and reactions in x, impulses in `value`.

    Returns True, or False if no solution was found in the rounds allowed.
    """
    m, d = e.model, e.data
    g, rows = d.graph, d.bounded
    begin, end = g.first[i], g.first[i + 1]
    fewest, patience, searches = 1 << 30, PATIENCE, 0
    sweeps = SWEEPS if end - begin == g.members[i] else LONG + 1  # iteration helps islands without joints
    for turn in range(m.setup.newtons):
        assemble(e, i)
        factorise(d.pattern, d.factor, begin, end)
        forward(d.pattern, d.factor, d.x, begin, end)
        backward(d.pattern, d.factor, d.x, begin, end)
        d.status[FACTORS] += 1
        wrong = _judge(e, i)
        if wrong == 0:
            return True
        if wrong < fewest:
            fewest, patience = wrong, PATIENCE
        else:
            patience -= 1
        if ((turn == 0 and wrong > MANY) or patience == 0) and sweeps <= LONG and searches == 0:
            _predict(e, i, sweeps)
            fewest, patience, sweeps = 1 << 30, PATIENCE, 4 * sweeps
            continue
        if patience > 0 and searches == 0:
            for r in range(g.row_first[i], g.row_first[i + 1]):
                k = rows.by_island[r]
                rows.state[k] = rows.next_state[k]
            continue
        if searches > 0:
            _search(e, i)
        searches += 1
        _follow(d, i)
    return False


@kernel
def _predict(e, i, sweeps):
    """States of the rows of an island without joints from a few sweeps of iteration."""
    d = e.data
    rows = d.bounded
    prepare(e, i, False)
    sweep(e, i, BOXES, sweeps)
    for r in range(d.graph.row_first[i], d.graph.row_first[i + 1]):
        k = rows.by_island[r]
        if rows.state[k] != FIXED:
            rows.state[k] = -1 if rows.value[k] <= rows.low[k] else 1 if rows.value[k] >= rows.high[k] else 0


@kernel
def _follow(d, i):
    """States of the rows at the speeds of now, which become those that the next search starts from."""
    rows = d.bounded
    for r in range(d.graph.row_first[i], d.graph.row_first[i + 1]):
        k = rows.by_island[r]
        rows.speed_before[k], rows.value_before[k] = rows.speed[k], rows.value[k]
        if rows.state[k] != FIXED:
            free = (rows.rhs[k] - rows.speed[k]) / rows.sigma[k]
            rows.state[k] = -1 if free < rows.low[k] or rows.low[k] == rows.high[k] else 1 if free > rows.high[k] else 0


@kernel
def _judge(e, i):
    """Speed and impulse of every row of the island at the present x, and the state it should have; the number of
    rows that are in another."""
    d = e.data
    g, rows = d.graph, d.bounded
    begin, end = g.row_first[i], g.row_first[i + 1]
    fast, large = 1e-30, 1e-30
    for r in range(begin, end):
        k = rows.by_island[r]
        a, b = rows.a[k], rows.b[k]
        u = 0.0
        if a >= 0:
            u += _dot6(rows.ga[k], d.x[g.body_node[a]])
        if b >= 0:
            u += _dot6(rows.gb[k], d.x[g.body_node[b]])
        rows.speed[k] = u
        if rows.state[k] == 0:
            rows.value[k] = (rows.rhs[k] - u) / rows.sigma[k]
            if rows.slot[k] >= 0:
                _share(d, rows, k)
        elif rows.state[k] != FIXED:
            rows.value[k] = rows.low[k] if rows.state[k] < 0 else rows.high[k]
        fast, large = max(fast, abs(u)), max(large, abs(rows.value[k]))
    wrong = 0
    for r in range(begin, end):
        k = rows.by_island[r]
        if rows.state[k] == 0 and rows.slot[k] >= 0 and _is_stiffest(d.row, rows, k):
            rows.value[k] = rows.side[k] * d.row.rest[rows.joint[k], rows.slot[k]]
            large = max(large, abs(rows.value[k]))
        state = next_state = rows.state[k]
        if state == 0:
            slack = TOLERANCE * large
            if rows.value[k] < rows.low[k] - slack:
                next_state = -1
            elif rows.value[k] > rows.high[k] + slack:
                next_state = 1
        elif state != FIXED and rows.low[k] < rows.high[k]:
            w = rows.rhs[k] - rows.speed[k] - rows.sigma[k] * rows.value[k]
            slack = TOLERANCE * fast + rows.sigma[k] * TOLERANCE * large
            if (w > slack) if state < 0 else (w < -slack):
                next_state = 0
        rows.next_state[k] = next_state
        wrong += 1 if next_state != state else 0
    return wrong


@inline
def _is_stiffest(row, rows, k):
    """Whether a free actuator is stiffer than all others on its coordinate together."""
    return rows.sigma[k] * row.drive[rows.joint[k], rows.slot[k]] < 1.9


@inline
def _share(d, rows, k):
    """Impulse of a free actuator from the multiplier of its coordinate, which has all digits. Soft ones take theirs by
    the speed; the stiffest gets what is left, in `rest`."""
    j, i, side = rows.joint[k], rows.slot[k], rows.side[k]
    total, drive, row = -d.x[d.graph.joint_node[j], i], d.row.drive[j, i], d.row
    if row.rest_set[j, i] == 0.0:
        row.rest[j, i], row.rest_set[j, i] = total, 1.0
    if not _is_stiffest(row, rows, k):
        rows.value[k] = (rows.rhs[k] - side * (row.goal[j, i] - total) / drive) / rows.sigma[k]
        row.rest[j, i] -= side * rows.value[k]


@kernel
def _slope(rows, begin, end, s):
    """Derivative of the potential at the share `s` of the way from the last round to this one."""
    total = 0.0
    for r in range(begin, end):
        k = rows.by_island[r]
        if rows.state[k] == FIXED:
            continue
        way = rows.speed[k] - rows.speed_before[k]
        u = rows.speed_before[k] + s * way
        impulse = min(max((rows.rhs[k] - u) / rows.sigma[k], rows.low[k]), rows.high[k])
        total += way * (rows.value_before[k] + s * (rows.value[k] - rows.value_before[k]) - impulse)
    return total


@kernel
def _search(e, i):
    """Speeds and impulses of the rows at the lowest point of the potential between the last round and this one."""
    rows = e.data.bounded
    begin, end = e.data.graph.row_first[i], e.data.graph.row_first[i + 1]
    if not _slope(rows, begin, end, 1.0) > 0.0:
        return
    low, high = 0.0, 1.0
    for _ in range(SEARCH):
        s = 0.5 * (low + high)
        if _slope(rows, begin, end, s) > 0.0:
            high = s
        else:
            low = s
    for r in range(begin, end):
        k = rows.by_island[r]
        rows.speed[k] = rows.speed_before[k] + low * (rows.speed[k] - rows.speed_before[k])
        rows.value[k] = rows.value_before[k] + low * (rows.value[k] - rows.value_before[k])


@kernel
def scale_boxes(e, i):
    """Friction boxes of island `i` from the normal impulses just found (Vortex eq. 29)."""
    d = e.data
    rows = d.bounded
    for r in range(d.graph.row_first[i], d.graph.row_first[i + 1]):
        k = rows.by_island[r]
        if rows.kind[k] == CONTACT:
            reach = d.contact.friction[rows.source[k]] * max(rows.value[k], 0.0)
            for q in range(k + 1, k + 3):
                rows.low[q], rows.high[q] = -reach, reach


@kernel
def finish_direct(e, i):
    """Velocities to the bodies, reactions to the joints and couplings."""
    m, d, h = e.model, e.data, e.model.setup.h
    g = d.graph
    bodies, joints = m.body.mass.size, m.joint.a.size
    for n in range(g.first[i], g.first[i + 1]):
        c = g.owner[n]
        if c < bodies:
            for k in range(6):
                d.state.vel[c, k] = d.x[n, k]
        elif d.status[IMPACT_NOW] == 1:
            continue
        elif c < bodies + joints:
            j = c - bodies
            for k in range(d.pattern.size[n]):
                d.row.force[j, k] = -d.x[n, k] / h
            joint_reaction(m, d, j)
        else:
            d.coupled.force[c - bodies - joints] = -d.x[n, 0] / h


@kernel
def joint_reaction(m, d, j):
    """The linear reaction of joint `j` on its second body, as a vector."""
    row, reaction = d.row, d.row.reaction[j]
    reaction[:] = 0.0
    for i in range(6):
        axis = m.joint.axis[j, i]
        if axis >= 0 and (axis < 3 or axis == DISTANCE):
            for c in range(3):
                reaction[c] += row.force[j, i] * row.gb[j, i, c]
