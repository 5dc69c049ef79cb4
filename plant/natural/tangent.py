"""Residual and tangent matrix, its layout, and the projections that reuse its factor.

    T = (1 - dm) M + (1 - df) [gamma h C + beta h^2 (slopes' penalty slopes + K)]        Luaces eq. 2.61

T is symmetric and positive definite: the same block-sparse factor as in the other core takes it. Nodes are entities,
two to a node where the same bodies use both. Bodies that touch share blocks as well; the layout is renewed when a pair
that it does not know begins to touch.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind
from plant.natural.model import Form, Role
from plant.sparse.block_ldl import factorise, solve
from plant.sparse.ordering import begin, connect, lay_out

DYNAMIC = int(BodyKind.DYNAMIC)
PART, SUM = int(Form.PART), int(Form.SUM)
OFF, HOLD, STOP, DRIVE = int(Role.OFF), int(Role.HOLD), int(Role.STOP), int(Role.DRIVE)


@inline
def _block(s, m, n):
    """The block of two nodes, the first not after the second."""
    if m == n:
        return s.factor.diagonal[m]
    return s.factor.above[s.where[m, n]]


@inline
def add_unit(ent, s, e, f, w):
    """w times the unit matrix."""
    p, q, m, n = ent.place[e], ent.place[f], ent.node[e], ent.node[f]
    if m > n or (m == n and p > q):
        p, q, m, n = q, p, n, m
    out = _block(s, m, n)
    out[p, q] += w
    out[p + 1, q + 1] += w
    out[p + 2, q + 2] += w


@inline
def add_block(ent, s, e, f, w, k):
    """w times a symmetric 3 x 3 matrix."""
    p, q, m, n = ent.place[e], ent.place[f], ent.node[e], ent.node[f]
    if m > n or (m == n and p > q):
        p, q, m, n = q, p, n, m
    out = _block(s, m, n)
    for i in range(3):
        for j in range(3):
            out[p + i, q + j] += w * k[i, j]


@kernel
def clear(n):
    """A matrix of zeros."""
    s = n.solution
    for c in range(s.nodes[0]):
        s.factor.diagonal[c, :, :] = 0.0
    for t in range(s.pattern.count[1]):
        s.factor.above[t, :, :] = 0.0


@kernel
def add_masses(e, n, w):
    """w M."""
    ent, s, f = n.entity, n.solution, n.frame
    for b in range(e.model.body.mass.size):
        if e.model.body.kind[b] != DYNAMIC:
            continue
        for k in range(4):
            x = f.of[b, k]
            if ent.known[x] == 1:
                continue
            for o in range(k, 4):
                y = f.of[b, o]
                if ent.known[y] == 0:
                    add_unit(ent, s, x, y, w * f.mass[b, k, o])


@kernel
def add_rows(n, of_position, of_rate):
    """The rows' share: slopes times stiffness and drag, with their weights."""
    r, s = n.row, n.solution
    weight, stiff, drag, role, form, first, free = r.weight, r.stiff, r.drag, r.role, r.form, r.first, r.free
    for i in range(r.count[0]):
        if role[i] == OFF:
            continue
        w = of_position * stiff[i] + of_rate * drag[i]
        weight[i] = w
        if w == 0.0:
            continue
        if form[i] == PART:
            _add_part(r, n.entity, s, first[i], first[i] + free[i], r.use[i, 1], w)
        else:
            add_outer(r, n.entity, s, first[i], first[i] + free[i], w)


@kernel
def _add_part(r, ent, s, begin, end, k, w):
    """A row along one axis of the world touches one number of each block."""
    entity, slope, node, place = r.entity, r.slope, ent.node, ent.place
    for t in range(begin, end):
        u = w * slope[t, k]
        for o in range(t, end):
            p, q, m, c = place[entity[t]], place[entity[o]], node[entity[t]], node[entity[o]]
            if m > c or (m == c and p > q):
                p, q, m, c = q, p, c, m
            _block(s, m, c)[p + k, q + k] += u * slope[o, k]


@kernel
def add_outer(r, ent, s, begin, end, w):
    """w slope slope', for all pairs of entities of a row."""
    entity, slope, node, place = r.entity, r.slope, ent.node, ent.place
    for t in range(begin, end):
        x = entity[t]
        a, b, c = w * slope[t, 0], w * slope[t, 1], w * slope[t, 2]
        p, m = place[x], node[x]
        for o in range(t, end):
            y = entity[o]
            d, e, f = slope[o, 0], slope[o, 1], slope[o, 2]
            q, v = place[y], node[y]
            if m < v or (m == v and p <= q):
                _spread_product(_block(s, m, v), p, q, a, b, c, d, e, f)
            else:
                _spread_product(_block(s, v, m), q, p, d, e, f, a, b, c)
            if x == y and o > t:  # a sum of rows may name an entity twice
                _spread_product(_block(s, m, v), p, q, d, e, f, a, b, c)


@inline
def _spread_product(out, p, q, a, b, c, d, e, f):
    out[p, q] += a * d
    out[p, q + 1] += a * e
    out[p, q + 2] += a * f
    out[p + 1, q] += b * d
    out[p + 1, q + 1] += b * e
    out[p + 1, q + 2] += b * f
    out[p + 2, q] += c * d
    out[p + 2, q + 1] += c * e
    out[p + 2, q + 2] += c * f


@kernel
def start_residual(n):
    """residual = rows' forces - loads."""
    r, ent = n.row, n.entity
    residual, load = ent.residual, ent.load
    for x in range(ent.count[0]):
        residual[x, 0], residual[x, 1], residual[x, 2] = -load[x, 0], -load[x, 1], -load[x, 2]
    role, force = r.role, r.force
    for i in range(r.count[0]):
        if role[i] != OFF:
            add_slopes(r, residual, i, force[i])


@inline
def add_slopes(r, residual, i, w):
    """residual += w slopes of row `i`."""
    entity, slope, begin = r.entity, r.slope, r.first[i]
    for t in range(begin, begin + r.free[i]):
        x = entity[t]
        residual[x, 0] += w * slope[t, 0]
        residual[x, 1] += w * slope[t, 1]
        residual[x, 2] += w * slope[t, 2]


@kernel
def finish_residual(e, n):
    """The whole of eq. 2.60, without its factor beta h^2: the forces between both ends of the step, and M a."""
    ent, p = n.entity, n.method
    residual, before = ent.residual, ent.before
    for x in range(ent.count[0]):
        for k in range(3):
            residual[x, k] = (1.0 - p.df) * residual[x, k] + p.df * before[x, k]
    add_inertia(e, n, 1.0 - p.dm, p.dm)


@kernel
def add_inertia(e, n, of_now, of_before):
    """residual += M (accelerations of now and of before, with their weights)."""
    a, before, residual, of, mass, kind = (
        n.entity.a,
        n.entity.a_before,
        n.entity.residual,
        n.frame.of,
        n.frame.mass,
        e.model.body.kind,
    )
    for b in range(kind.size):
        if kind[b] != DYNAMIC:
            continue
        for o in range(4):
            y = of[b, o]
            ax = of_now * a[y, 0] + of_before * before[y, 0]
            ay = of_now * a[y, 1] + of_before * before[y, 1]
            az = of_now * a[y, 2] + of_before * before[y, 2]
            for k in range(4):
                x, m = of[b, k], mass[b, k, o]
                residual[x, 0] += m * ax
                residual[x, 1] += m * ay
                residual[x, 2] += m * az


@kernel
def factor(n):
    """Factorise what has been added."""
    factorise(n.solution.pattern, n.solution.factor, 0, n.solution.nodes[0])


@kernel
def solve_residual(n, w):
    """solution.x = T^-1 (w residual)."""
    ent, x = n.entity, n.solution.x
    for e in range(ent.count[0]):
        c = ent.node[e]
        if c >= 0:
            p = ent.place[e]
            for k in range(3):
                x[c, p + k] = w * ent.residual[e, k]
    solve(n.solution.pattern, n.solution.factor, x, 0, n.solution.nodes[0])


@kernel
def correct(n, out, w):
    """out += w x, by entities; the largest entry of x."""
    ent, x = n.entity, n.solution.x
    most = 0.0
    for e in range(ent.count[0]):
        c = ent.node[e]
        if c >= 0:
            p = ent.place[e]
            for k in range(3):
                most = max(most, abs(x[c, p + k]))
                out[e, k] += w * x[c, p + k]
    return most


@inline
def holds(r, i):
    """Whether row `i` is an equation now."""
    return r.role[i] == HOLD or ((r.role[i] == STOP or r.role[i] == DRIVE) and r.active[i] == 1)


@inline
def _along(r, i, moving):
    """slopes . (velocities or accelerations) of row `i`, without those of known entities."""
    s, entity, slope, begin = 0.0, r.entity, r.slope, r.first[i]
    for t in range(begin, begin + r.free[i]):
        x = entity[t]
        s += slope[t, 0] * moving[x, 0] + slope[t, 1] * moving[x, 1] + slope[t, 2] * moving[x, 2]
    return s


@kernel
def split_rates(n):
    """What known entities contribute to every row's rate and acceleration."""
    r, slope, v, a = n.row, n.row.slope, n.entity.v, n.entity.a
    for i in range(r.count[0]):
        p, s = 0.0, 0.0
        for t in range(r.first[i] + r.free[i], r.first[i + 1]):
            x = r.entity[t]
            p += slope[t, 0] * v[x, 0] + slope[t, 1] * v[x, 1] + slope[t, 2] * v[x, 2]
            s += slope[t, 0] * a[x, 0] + slope[t, 1] * a[x, 1] + slope[t, 2] * a[x, 2]
        if r.form[i] == SUM:
            for k in range(3):
                if r.use[i, k] >= 0:
                    p += r.ratio[i, k] * r.known_rate[r.use[i, k]]
                    s += r.ratio[i, k] * r.known_g_ddot[r.use[i, k]]
        r.known_rate[i], r.known_g_ddot[i] = p, s


@inline
def off_rate(r, i, v):
    """How far the rate of a row is from where it should be."""
    return r.known_rate[i] - r.goal_rate[i] + _along(r, i, v)


@inline
def off_g_ddot(r, i, a):
    """The same of its acceleration."""
    return r.known_g_ddot[i] + r.g_ddot[i] - r.goal_acceleration[i] + _along(r, i, a)


@kernel
def push_back(n, order):
    """residual += slopes' weights (violation of the rates, or of the accelerations); the largest violation.

    With the residual empty, a round of a projection is v <- v - T^-1 residual: the fixed-point form of eq. 2.71-2.72
    (and 2.79-2.80) written for the change from round to round, in which the projection matrix drops out.
    """
    r, ent = n.row, n.entity
    most = 0.0
    for i in range(r.count[0]):
        if not holds(r, i):
            continue
        off = off_rate(r, i, ent.v) if order == 1 else off_g_ddot(r, i, ent.a)
        most = max(most, abs(off))
        add_slopes(r, ent.residual, i, r.weight[i] * off)
    return most


@kernel
def empty_residual(n):
    """residual = 0."""
    ent = n.entity
    for x in range(ent.count[0]):
        ent.residual[x, 0] = ent.residual[x, 1] = ent.residual[x, 2] = 0.0


@kernel
def lay_out_tangent(e, n):
    """Nodes, their order and blocks, for the rows and contacts of now; 0, or 1 if there is no room."""
    ent, s, r, f = n.entity, n.solution, n.row, n.frame
    count = 0
    for x in range(ent.count[0]):
        ent.node[x] = -1
    for x in range(ent.count[0]):
        if ent.users[x] == 0 or ent.known[x] == 1 or ent.node[x] >= 0:
            continue
        ent.node[x], ent.place[x] = count, 0
        s.sketch.size[count], s.sketch.rows[count] = 3, 0
        mate = ent.mate[x]
        if mate >= 0 and ent.users[mate] > 0 and ent.known[mate] == 0:
            ent.node[mate], ent.place[mate] = count, 3
            s.sketch.size[count] = 6
        for k in range(s.sketch.ends.shape[1]):
            s.sketch.ends[count, k] = -1
        count += 1
    begin(s.sketch, count)
    for b in range(e.model.body.mass.size):
        if e.model.body.kind[b] == DYNAMIC:
            _connect_bodies(ent, s, f, b, b)
    for i in range(r.count[0]):
        if r.role[i] == OFF:
            continue
        for t in range(r.first[i], r.first[i] + r.free[i]):
            for o in range(t + 1, r.first[i] + r.free[i]):
                _connect(ent, s, r.entity[t], r.entity[o])
    for p in range(s.pair_count[0]):
        _connect_bodies(ent, s, f, s.pairs[p, 0], s.pairs[p, 1])
    s.pattern.count[0] = s.pattern.count[1] = s.pattern.count[2] = 0
    if lay_out(s.sketch, count, s.pattern) != 0:
        return 1
    for x in range(ent.count[0]):
        if ent.node[x] >= 0:
            ent.node[x] = s.sketch.place[ent.node[x]]
    for c in range(count):
        s.factor.fresh[c] = 0
        for o in range(count):
            s.where[c, o] = -1
        for t in range(s.pattern.first[c], s.pattern.first[c + 1]):
            s.where[c, s.pattern.row[t]] = t
    s.nodes[0] = count
    s.dirty[0] = 0
    return 0


@inline
def _connect(ent, s, x, y):
    if ent.node[x] >= 0 and ent.node[y] >= 0 and ent.node[x] != ent.node[y]:
        connect(s.sketch, ent.node[x], ent.node[y])


@kernel
def _connect_bodies(ent, s, f, a, b):
    for k in range(4):
        for o in range(4):
            _connect(ent, s, f.of[a, k], f.of[b, o])
