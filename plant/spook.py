"""The step `spook`: velocities and impulses in one solve, then positions (Nordberg and Servin eq. 8-10; Vortex
eq. 16, 22, 29).

    collide, load    contacts, momentum
    rows             bounded rows; the joint rows are there from the step before
    assemble         the saddle-point matrix of bodies and joints, factorised
    condense         bounded rows onto a small dense system: A = G K^-1 G' + S
    solve            the MLCP, with scaled friction boxes
    impact           the same once more for bouncing contacts, positions held (Nordberg 2.3)
    move, settle     new poses, their matrices and joint rows, gaps closed

Forward substitution of a bounded row runs along its path in the elimination tree only, and the velocities of
the free motion are never formed: what a row needs of them is a dot product along that path. So the whole step
has one backward substitution.
"""

from __future__ import annotations

from hilnode.jit import inline, kernel
from plant.algebra import scale, spread
from plant.bounded import CONTACT, actuator_rows, contact_rows, keep_rows, warm_contacts
from plant.kinematics import load_bodies, move_bodies
from plant.ldl import backward, factorise, forward
from plant.mlcp import iterate, solve_mlcp
from plant.project import ROUNDS, settle
from plant.spheres import collide

OK, NOT_FINITE, CONTACTS_FULL = 0, 1, 100
RELATIVE = 1e-10  # regularisation of redundant bounded rows, as a share of their own diagonal
DYNAMIC = 0
LIGHT = 0.3  # share of its inertia (trace) that a pull must reach before a body counts as a light link
SWEEPS = 60  # of iteration where pivoting found no end


@kernel
def assemble(e):
    """K into the factor's blocks, the right-hand side into x."""
    m, d, h = e.model, e.data, e.model.setup.h
    f, x, joint = d.factor, d.x, m.joint
    f.above[:] = 0.0
    for b in range(m.body.mass.size):
        n = m.body.node[b]
        if n < 0:
            continue
        block, inertia, mass = f.diagonal[n], d.frame.inertia[b], m.body.mass[b]
        for i in range(6):
            for k in range(6):
                block[i, k] = 0.0
            x[n, i] = d.frame.momentum[b, i]
        for i in range(3):
            block[i, i] = mass
            for k in range(3):
                block[3 + i, 3 + k] = inertia[i, k]
    stiffen(e)
    for j in range(joint.a.size):
        n = joint.node[j]
        a, b = joint.a[j], joint.b[j]
        ga, gb = d.row.ga[j], d.row.gb[j]
        block = f.diagonal[n]
        size = m.pattern.size[n]
        for i in range(size):
            for k in range(size):
                block[i, k] = 0.0
            if joint.axis[j, i] < 0:
                block[i, i] = -1.0
                x[n, i] = 0.0
                continue
            block[i, i] = -joint.sigma[j, i]
            speed, given = 0.0, 0.0  # of all bodies; of those that the solve can not change
            if a >= 0:
                s = 0.0
                for k in range(6):
                    s += ga[i, k] * d.state.vel[a, k]
                speed += s
                given += s if m.body.node[a] < 0 else 0.0
            if b >= 0:
                s = 0.0
                for k in range(6):
                    s += gb[i, k] * d.state.vel[b, k]
                speed += s
                given += s if m.body.node[b] < 0 else 0.0
            y = joint.upsilon[j, i]
            bend = 0.5 * h * d.row.curve[j, i]
            x[n, i] = -4.0 / h * y * d.row.error[j, i] + y * (speed - bend) - bend - given
        _couple(f, joint.block_a[j], joint.over_a[j], ga, size)
        _couple(f, joint.block_b[j], joint.over_b[j], gb, size)


@kernel
def stiffen(e):
    """Geometric stiffness: a joint that pulls at an arm r with force f turns the body back when it turns away.

    The torque r x f changes by -(r . f)(1 - u u') for a pull along u = r / |r|. Taken implicitly it adds h^2
    times that to the inertia, on both sides, so that nothing is damped. Without it a light link between heavy
    loads swings up at steps longer than its own period (Vortex 3.1.4.1). Bodies that are heavy enough for the
    step are left as they are, and so are pushes, which would take inertia away. Ref: Tournier, Nesme, Gilles,
    Faure 2015, with the pull alone instead of their full tensor.
    """
    m, d, h = e.model, e.data, e.model.setup.h
    joint, row = m.joint, d.row
    for j in range(joint.a.size):
        fx, fy, fz = 0.0, 0.0, 0.0
        for i in range(6):
            k = joint.axis[j, i]
            if 0 <= k < 3:
                v = row.force[j, i]
                fx, fy, fz = fx + v * row.axes[j, k, 0], fy + v * row.axes[j, k, 1], fz + v * row.axes[j, k, 2]
        for side in range(2):
            body = joint.a[j] if side == 0 else joint.b[j]
            n = m.body.node[body] if body >= 0 else -1
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
def _couple(f, block, over, g, size):
    if block < 0:
        return
    target = f.above[block]
    for i in range(size):
        for k in range(6):
            if over == 1:  # the body is the pivot
                target[k, i] = g[i, k]
            else:
                target[i, k] = g[i, k]


@kernel
def _merge_paths(m, rows, k):
    """Nodes that row `k` touches: the paths of its bodies to the root, merged, rising."""
    a, b = rows.a[k], rows.b[k]
    na = m.body.path_length[a] if a >= 0 else 0
    nb = m.body.path_length[b] if b >= 0 else 0
    i, j, n = 0, 0, 0
    while i < na or j < nb:
        if j == nb or (i < na and m.body.path[a, i] < m.body.path[b, j]):
            node = m.body.path[a, i]
            i += 1
        elif i == na or m.body.path[b, j] < m.body.path[a, i]:
            node = m.body.path[b, j]
            j += 1
        else:
            node = m.body.path[a, i]
            i += 1
            j += 1
        rows.path[k, n] = node
        n += 1
    rows.path_length[k] = n


@kernel
def condense(e):
    """Every bounded row forward along its path, and the dense matrix A = G K^-1 G' + S.

    Two rows meet in A where their paths meet: each node keeps a list of the rows that have passed it.
    """
    m, rows, p, f = e.model, e.data.bounded, e.model.pattern, e.data.factor
    count = rows.count[0]
    rows.here_count[:] = 0
    for k in range(count):
        for q in range(k + 1):
            rows.matrix[k, q] = 0.0
    for k in range(count):
        if k > 0 and rows.a[k] == rows.a[k - 1] and rows.b[k] == rows.b[k - 1]:
            rows.path_length[k] = rows.path_length[k - 1]
            for i in range(rows.path_length[k]):
                rows.path[k, i] = rows.path[k - 1, i]
        else:
            _merge_paths(m, rows, k)
        _send_forward(m, rows, p, f, k)
        for i in range(rows.path_length[k]):
            node = rows.path[k, i]
            here = rows.here[node]
            n = rows.here_count[node]
            here[n] = (k << 16) + i
            rows.here_count[node] = n + 1
            _meet(rows, rows.z[k, i], here, n + 1, k, p.size[node])
        rows.matrix[k, k] += rows.sigma[k] + RELATIVE * rows.matrix[k, k]
    for k in range(count):
        for q in range(k):
            rows.matrix[q, k] = rows.matrix[k, q]


@inline
def _meet(rows, z, here, n, k, size):
    """Add to row `k` of A what it shares at one node with the rows that passed there."""
    z0, z1, z2 = z[0], z[1], z[2]
    if size == 6:
        z3, z4, z5 = z[3], z[4], z[5]
        for j in range(n):
            q, slot = here[j] >> 16, here[j] & 0xFFFF
            y = rows.y[q, slot]
            rows.matrix[k, q] += z0 * y[0] + z1 * y[1] + z2 * y[2] + z3 * y[3] + z4 * y[4] + z5 * y[5]
    else:
        for j in range(n):
            q, slot = here[j] >> 16, here[j] & 0xFFFF
            y = rows.y[q, slot]
            rows.matrix[k, q] += z0 * y[0] + z1 * y[1] + z2 * y[2]


@kernel
def _send_forward(m, rows, p, f, k):
    """y = L^-1 g and z = D^-1 y of row `k`, along its path."""
    n, y, path = rows.path_length[k], rows.y[k], rows.path[k]
    a, b = rows.a[k], rows.b[k]
    na = m.body.node[a] if a >= 0 else -1
    nb = m.body.node[b] if b >= 0 else -1
    for i in range(n):
        for c in range(6):
            y[i, c] = 0.0
        if path[i] == na:
            for c in range(6):
                y[i, c] += rows.ga[k, c]
        if path[i] == nb:
            for c in range(6):
                y[i, c] += rows.gb[k, c]
    for i in range(n):
        node = path[i]
        size = p.size[node]
        t = i + 1
        for s in range(p.first[node], p.first[node + 1]):
            q = p.row[s]
            while path[t] != q:
                t += 1
            spread(f.right[s], y[i], y[t], size, p.size[q])
        scale(f.diagonal[node], y[i], rows.z[k, i], size)


@kernel
def bounded_rhs(e):
    """`work` = what each bounded row still asks for after the free motion: rhs - G v_free."""
    m, rows, p, d = e.model, e.data.bounded, e.model.pattern, e.data
    for k in range(rows.count[0]):
        s = rows.rhs[k]
        for i in range(rows.path_length[k]):
            node = rows.path[k, i]
            for c in range(p.size[node]):
                s -= rows.z[k, i, c] * d.x[node, c]
        for side in range(2):
            b = rows.a[k] if side == 0 else rows.b[k]
            if b >= 0 and m.body.node[b] < 0:  # moves as it is told
                for c in range(6):
                    s -= (rows.ga[k, c] if side == 0 else rows.gb[k, c]) * d.state.vel[b, c]
        rows.work[rows.matrix.shape[0] + k] = s


@kernel
def solve_bounded(e):
    """The MLCP with the scaled-box sequence; adds the impulses to the right-hand side. Returns the pivots."""
    m, rows = e.model, e.data.bounded
    n = rows.count[0]
    if n == 0:
        return 0
    b = rows.work[rows.matrix.shape[0] :]
    pivots = 0
    # Contacts that all stayed have bounds from their last normal impulses: one round will do (Vortex 2.5.2, end).
    rounds = 1 if e.data.contact.new[0] == 0 else m.setup.friction_rounds
    for _ in range(rounds):
        used = solve_mlcp(
            rows.matrix,
            b,
            rows.low,
            rows.high,
            n,
            rows.value,
            rows.state,
            rows.chol,
            rows.work,
            rows.free,
            m.setup.pivots,
        )
        if used < 0:  # no end of pivoting: iterate from where it stood, and say so
            e.data.status[2] += 1
            iterate(rows.matrix, b, rows.low, rows.high, n, rows.value, rows.state, SWEEPS)
            used = m.setup.pivots
        pivots += used
        for k in range(n):
            if rows.kind[k] == CONTACT:
                reach = m.material.friction[e.data.contact.pair[rows.of[k]]] * max(rows.value[k], 0.0)
                for i in range(1, 3):
                    rows.low[k + i], rows.high[k + i] = -reach, reach
    for k in range(n):
        for i in range(rows.path_length[k]):
            node = rows.path[k, i]
            for c in range(m.pattern.size[node]):
                e.data.x[node, c] += rows.value[k] * rows.y[k, i, c]
    return pivots


@kernel
def finish(e):
    """Backward substitution; velocities to the bodies, reactions to the joints."""
    m, d, h = e.model, e.data, e.model.setup.h
    p, x = m.pattern, d.x
    backward(p, d.factor, x)
    for b in range(m.body.mass.size):
        n = m.body.node[b]
        if n >= 0:
            for i in range(6):
                d.state.vel[b, i] = x[n, i]
    for j in range(m.joint.a.size):
        n = m.joint.node[j]
        for i in range(p.size[n]):
            d.row.force[j, i] = -x[n, i] / h


@kernel
def step(e, scratch):
    """One step. Returns a status."""
    d = e.data
    if d.status[3] == 0:  # poses were set from outside
        settle(e, scratch, 0)
        d.status[3] = 1
    d.status[0] = collide(e)
    if d.status[0] > 0:
        return CONTACTS_FULL
    load_bodies(e)
    d.bounded.count[0] = 0
    actuator_rows(e)
    warm_contacts(d.contact)
    contact_rows(e)
    assemble(e)
    factorise(e.model.pattern, d.factor)
    forward(e.model.pattern, d.factor, d.x)
    condense(e)
    bounded_rhs(e)
    d.status[1] = solve_bounded(e)
    finish(e)
    keep_rows(e)
    if move_bodies(e) != 0:
        return NOT_FINITE
    settle(e, scratch, ROUNDS)
    return OK
