"""Loop closure in joint coordinates: the joints that a spanning tree leaves out, as constraint rows.

    look       joint frames, errors g and directions of the rows
    span       J over the tree's velocities
    hold       row forces that keep g'' = 0, and what they do to the accelerations
    project    coordinates back to g = 0, velocities back to g' = 0
    assemble   the same from far away

With H the mass matrix of the tree (and what damping adds to it) and f what the tree alone would accelerate by,

    qdd = f + H^-1 J' force         J qdd + J' qd = 0        so    (J H^-1 J') force = -(J f + J' qd)

H = L' D L is there already (plant.reduced.forward_dynamics), and a row of J is zero but on the path from its joint to
the ground. So half = L'^-1 J' takes O(path) for each row, J H^-1 J' = half' D^-1 half, and this small dense matrix is
factorised. The second derivative of g comes from the accelerations of the two links, which the tree's solution leaves
behind.

Rows that follow from others are the rule, not an exception: of the five of the hinge that closes a plane loop, three
say what the plane says already. In exact arithmetic such a row has a pivot of zero. The row with the largest pivot, as
a part of what it would be were everything on its path free to move along the row, is eliminated first, and rows whose
pivot falls below DROPPED are left out, with force zero. Leaving out is better than regularising: a spatial linkage that
moves against Gruebler's count has dependent rows only where its loops are closed, and a little off, in the stages of a
step, a regularised system would follow the difference. And without choosing the largest pivot, the two rows that happen
to come first would do for Bennett's linkage, but not where it folds.

Projection is Newton's method with the factor of the last evaluation, which is a step or less away: each turn divides
the error by about 1 / (h spin). Corrections are the smallest in terms of the mass matrix.

Ref: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 8 (loop closure); plant.constraint.joint
for the rows, which are the same but for a joint without free turns: g is the sine of the turn, not twice that of its
half.
Limits: forces in rows that depend on each other are one choice out of many. Loops are all in one dense system.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.constraint.joint import NONE_FREE, ONE_FREE
from plant.model import DISTANCE
from plant.numeric.algebra import cross
from plant.reduced import forward_dynamics
from plant.reduced.kinematic_tree import CRBA, SLIDE, drift, find_speeds, move

DROPPED = 1e-8  # pivot over a row's size; between links of 1 g and 10 t, and 1e-4 rad from a dead centre
NEAR = 1e-8  # square of an arm over the loop's reach that counts as an arm
DEAD = 1e-22  # square of a row's J over its size: rounding, nothing on its path moves along it
CLOSED = 1e-12  # [m, rad, m/s, rad/s] nothing left to correct
OPEN = 1e-6  # [m, rad] an error that must not stay
TURNS = 8  # of Newton's method in a step; two or three are usual
LEAP = 0.3  # [rad] by which no joint turns in one go as loops are assembled


@inline
def _dot(a, i, b, j):
    """Product of two vectors in rows of numbers."""
    return a[i] * b[j] + a[i + 1] * b[j + 1] + a[i + 2] * b[j + 2]


@inline
def _see(f, i, own, out):
    """Joint frame `own` on node i in world axes: X, Y, Z and the arm from the node's origin."""
    for c in range(3):
        for k in range(3):
            out[3 * k + c] = f[i, c] * own[k] + f[i, 3 + c] * own[3 + k] + f[i, 6 + c] * own[6 + k]
        out[9 + c] = f[i, c] * own[9] + f[i, 3 + c] * own[10] + f[i, 6 + c] * own[11]


@inline
def _apart(t, k):
    """From a's anchor to b's."""
    f, i, j, a, b = t.work.frame, t.loop.node[k, 0], t.loop.node[k, 1], t.loop.seen[k, 0], t.loop.seen[k, 1]
    return f[j, 9] - f[i, 9] + b[9] - a[9], f[j, 10] - f[i, 10] + b[10] - a[10], f[j, 11] - f[i, 11] + b[11] - a[11]


@kernel
def look(t):
    """Joint frames, and error and direction of every row, where the nodes' frames are; the largest error."""
    loop, f = t.loop, t.work.frame
    worst = 0.0
    for k in range(loop.turning.size):
        a, b, turning = loop.seen[k, 0], loop.seen[k, 1], loop.turning[k]
        _see(f, loop.node[k, 0], loop.frame[k, 0], a)
        _see(f, loop.node[k, 1], loop.frame[k, 1], b)
        x, y, z = _apart(t, k)
        for r in range(loop.first[k], loop.first[k + 1]):
            axis, line = loop.axis[r], loop.line[r]
            if axis == DISTANCE:
                length = math.sqrt(x * x + y * y + z * z)
                line[0], line[1], line[2] = a[0], a[1], a[2]
                if length > 0.0:
                    line[0], line[1], line[2] = x / length, y / length, z / length
                loop.error[r] = length - loop.length[k]
            elif axis < 3:
                line[0], line[1], line[2] = a[3 * axis], a[3 * axis + 1], a[3 * axis + 2]
                loop.error[r] = x * line[0] + y * line[1] + z * line[2]
            elif turning == NONE_FREE:
                e = 3 * (axis - 3)
                u, v = (e + 3) % 9, (e + 6) % 9
                line[0], line[1], line[2] = a[e], a[e + 1], a[e + 2]
                loop.error[r] = 0.5 * (_dot(a, v, b, u) - _dot(a, u, b, v))
            else:
                e, u = _turning_pair(turning, axis)
                line[0], line[1], line[2] = cross(b[u], b[u + 1], b[u + 2], a[e], a[e + 1], a[e + 2])
                loop.error[r] = _dot(a, e, b, u)
            worst = max(worst, abs(loop.error[r]))
    return worst


@inline
def _turning_pair(turning, axis):
    """Where the axes of a and b begin that stay perpendicular: x or y to z for a hinge, x to y for a universal."""
    if turning == ONE_FREE:
        return 3 * (axis - 3), 6
    return 0, 3


@kernel
def span(t):
    """J, and the size of each row: J H^-1 J' were every joint on its path perpendicular to the row."""
    loop, f, kind = t.loop, t.work.frame, t.node.kind
    for k in range(loop.turning.size):
        end, arm = loop.node[k, 1], loop.seen[k, 1]
        for r in range(loop.first[k], loop.first[k + 1]):
            loop.size[r] = 0.0
        for s in range(loop.path_at[k], loop.path_at[k + 1]):
            i, side = loop.path[s], loop.side[s]
            if side == 0.0:
                continue
            x, y, z, d = f[i, 18], f[i, 19], f[i, 20], forward_dynamics.pivot(t, i)
            mx, my, mz = side * x, side * y, side * z  # how the anchor moves
            turn, far = 0.0, 1.0  # and how far it could, at most
            if kind[i] != SLIDE:
                ax, ay, az = (
                    f[end, 9] - f[i, 9] + arm[9],
                    f[end, 10] - f[i, 10] + arm[10],
                    f[end, 11] - f[i, 11] + arm[11],
                )
                mx, my, mz = cross(mx, my, mz, ax, ay, az)
                turn, far = side, ax * ax + ay * ay + az * az + NEAR * loop.reach[k] * loop.reach[k]
            for r in range(loop.first[k], loop.first[k + 1]):
                line = loop.line[r]
                if loop.axis[r] < 3 or loop.axis[r] == DISTANCE:
                    loop.jacobian[r, i] = mx * line[0] + my * line[1] + mz * line[2]
                    loop.size[r] += d * far
                else:
                    loop.jacobian[r, i] = turn * (x * line[0] + y * line[1] + z * line[2])
                    loop.size[r] += d * abs(turn)


@kernel
def _g_ddot(t):
    """g'' of every row at the accelerations that the nodes have in `work.acc`, where frames and speeds are.

    Linear, along n which turns with a, with d from a's anchor to b's:
        n . d'' + 2 (w x n) . d' + (w' x n + w x (w x n)) . d
    Distance, along n = d / |d|:  n . d'' + (|d'|^2 - (n . d')^2) / |d|
    Axes e of a and u of b that stay perpendicular:  e'' . u + 2 e' . u' + e . u''
    No free turn, about n of a:  n . (w_b' - w_a') + (w_a x n) . (w_b - w_a)
    """
    loop, f, acc, v = t.loop, t.work.frame, t.work.acc, t.work.speed
    for k in range(loop.turning.size):
        i, j, a, b, turning = loop.node[k, 0], loop.node[k, 1], loop.seen[k, 0], loop.seen[k, 1], loop.turning[k]
        wx, wy, wz, tx, ty, tz = f[i, 15], f[i, 16], f[i, 17], f[j, 15], f[j, 16], f[j, 17]
        ax, ay, az, bx, by, bz = acc[i, 0], acc[i, 1], acc[i, 2], acc[j, 0], acc[j, 1], acc[j, 2]
        dx, dy, dz = _apart(t, k)
        px, py, pz, gx, gy, gz = _carry(wx, wy, wz, ax, ay, az, a[9], a[10], a[11])
        qx, qy, qz, hx, hy, hz = _carry(tx, ty, tz, bx, by, bz, b[9], b[10], b[11])
        ux, uy, uz = v[j, 0] - v[i, 0] + qx - px, v[j, 1] - v[i, 1] + qy - py, v[j, 2] - v[i, 2] + qz - pz
        cx = acc[j, 3] - acc[i, 3] + hx - gx
        cy = acc[j, 4] - acc[i, 4] + hy - gy
        cz = acc[j, 5] - acc[i, 5] + hz - gz
        for r in range(loop.first[k], loop.first[k + 1]):
            axis, line = loop.axis[r], loop.line[r]
            nx, ny, nz = line[0], line[1], line[2]
            if axis == DISTANCE:
                length = math.sqrt(dx * dx + dy * dy + dz * dz)
                along = ux * nx + uy * ny + uz * nz
                across = ux * ux + uy * uy + uz * uz - along * along
                loop.rate[r] = nx * cx + ny * cy + nz * cz + (across / length if length > 0.0 else 0.0)
            elif axis < 3:
                px, py, pz, gx, gy, gz = _carry(wx, wy, wz, ax, ay, az, nx, ny, nz)
                loop.rate[r] = (
                    nx * cx + ny * cy + nz * cz + 2.0 * (px * ux + py * uy + pz * uz) + gx * dx + gy * dy + gz * dz
                )
            elif turning == NONE_FREE:
                px, py, pz = cross(wx, wy, wz, nx, ny, nz)
                loop.rate[r] = nx * (bx - ax) + ny * (by - ay) + nz * (bz - az)
                loop.rate[r] += px * (tx - wx) + py * (ty - wy) + pz * (tz - wz)
            else:
                e, u = _turning_pair(turning, axis)
                px, py, pz, gx, gy, gz = _carry(wx, wy, wz, ax, ay, az, a[e], a[e + 1], a[e + 2])
                qx, qy, qz, hx, hy, hz = _carry(tx, ty, tz, bx, by, bz, b[u], b[u + 1], b[u + 2])
                loop.rate[r] = gx * b[u] + gy * b[u + 1] + gz * b[u + 2] + 2.0 * (px * qx + py * qy + pz * qz)
                loop.rate[r] += hx * a[e] + hy * a[e + 1] + hz * a[e + 2]


@inline
def _carry(wx, wy, wz, ax, ay, az, x, y, z):
    """First and second derivative of a vector that turns with spin w and angular acceleration a."""
    px, py, pz = cross(wx, wy, wz, x, y, z)
    qx, qy, qz = cross(wx, wy, wz, px, py, pz)
    gx, gy, gz = cross(ax, ay, az, x, y, z)
    return px, py, pz, gx + qx, gy + qy, gz + qz


@kernel
def _factorise(t):
    """J H^-1 J' and its factor."""
    loop = t.loop
    matrix, half, path, scaled = loop.matrix, loop.half, loop.path, loop.shift
    for k in range(loop.turning.size):
        way = path[loop.path_at[k] : loop.path_at[k + 1]]
        for r in range(loop.first[k], loop.first[k + 1]):
            row, given, total = half[r], loop.jacobian[r], 0.0
            for s in range(way.size):
                i = way[s]
                row[i] = given[i]
                total += given[i] * given[i] * forward_dynamics.pivot(t, i)
            if total <= DEAD * loop.size[r]:
                loop.size[r] = 0.0
            else:
                forward_dynamics.halve(t, row, way, loop.push)
            for s in range(way.size):
                scaled[way[s]] = row[way[s]] * forward_dynamics.pivot(t, way[s])
            for c in range(r + 1):
                total = 0.0
                if loop.size[r] > 0.0 and loop.size[c] > 0.0:
                    other = half[c]
                    for s in range(way.size):
                        total += scaled[way[s]] * other[way[s]]
                matrix[r, c] = total
    _eliminate(loop)


@kernel
def _eliminate(loop):
    """LDL' of `matrix`, at each turn by the row with most left of its size; those with too little left have no turn."""
    matrix, lower, left, order = loop.matrix, loop.lower, loop.left, loop.order
    n = order.size
    for r in range(n):
        left[r], order[r] = matrix[r, r], -1
    for k in range(n):
        p, most = -1, DROPPED
        for r in range(n):
            if loop.size[r] > 0.0 and left[r] > most * loop.size[r]:
                p, most = r, left[r] / loop.size[r]
        if p < 0:
            break
        pivot = 1.0 / left[p]
        order[k], loop.pivot[k], left[p] = p, pivot, 0.0
        for m in range(k):
            lower[p, m] /= loop.pivot[m]  # L D for this turn
        for r in range(n):
            if left[r] > 0.0:
                x = matrix[r, p] if r > p else matrix[p, r]
                for m in range(k):
                    x -= lower[r, m] * lower[p, m]
                lower[r, k] = x * pivot
                left[r] -= x * x * pivot
        for m in range(k):
            lower[p, m] *= loop.pivot[m]


@kernel
def _solve(t, rate, force):
    """Row forces for which the rows accelerate by minus `rate`; zero in rows left out."""
    lower, order, pivot, y = t.loop.lower, t.loop.order, t.loop.pivot, t.loop.left
    n = order.size
    rank = 0
    while rank < n and order[rank] >= 0:
        p = order[rank]
        x = -rate[p]
        for m in range(rank):
            x -= lower[p, m] * y[m]
        y[rank] = x
        rank += 1
    for r in range(n):
        force[r] = 0.0
    for b in range(rank):
        k = rank - 1 - b
        x = y[k] * pivot[k]
        for m in range(k + 1, rank):
            x -= lower[order[m], k] * y[m]
        y[k] = x
        force[order[k]] = x


@kernel
def _answer(t, force):
    """`shift` = H^-1 J' force."""
    loop = t.loop
    x = loop.shift
    for i in range(x.size):
        x[i] = 0.0
    for k in range(loop.turning.size):
        for r in range(loop.first[k], loop.first[k + 1]):
            if force[r] != 0.0:
                for s in range(loop.path_at[k], loop.path_at[k + 1]):
                    x[loop.path[s]] += force[r] * loop.half[r, loop.path[s]]
    forward_dynamics.respond(t, x, loop.push)


@inline
def _speeds(t, qd):
    """`rate` = J qd; the largest."""
    loop = t.loop
    worst = 0.0
    for k in range(loop.turning.size):
        for r in range(loop.first[k], loop.first[k + 1]):
            x = 0.0
            for s in range(loop.path_at[k], loop.path_at[k + 1]):
                x += loop.jacobian[r, loop.path[s]] * qd[loop.path[s]]
            loop.rate[r] = x
            worst = max(worst, abs(x))
    return worst


@kernel
def hold(t, qd):
    """Row forces, and qdd with them, after the tree's own accelerations at qd."""
    loop, qdd = t.loop, t.motion.qdd
    look(t)
    span(t)
    find_speeds(t, qd, loop.moved)
    _factorise(t)
    if t.setup.method == CRBA:  # which leaves the accelerations of links at qdd = 0
        _speeds(t, qdd)
        for r in range(loop.rate.size):
            loop.solved[r] = loop.rate[r]
        _g_ddot(t)
        for r in range(loop.rate.size):
            loop.rate[r] += loop.solved[r]
    else:
        _g_ddot(t)
    _solve(t, loop.rate, loop.force)
    _answer(t, loop.force)
    for i in range(qdd.size):
        qdd[i] += loop.shift[i]


@kernel
def project(t):
    """q to g = 0, then qd to g' = 0, by the factor of the last evaluation; the largest error of g."""
    loop, q = t.loop, t.motion.q
    before, gap = math.inf, 0.0
    for _ in range(TURNS):
        move(t, q, loop.moved)
        gap = look(t)
        if gap <= CLOSED or gap > 0.5 * before:
            break
        before = gap
        _solve(t, loop.error, loop.solved)
        _answer(t, loop.solved)
        drift(t, q, loop.shift, 1.0)
    span(t)
    settle(t)
    return gap


@kernel
def settle(t):
    """qd to g' = 0, where J is."""
    loop, qd = t.loop, t.motion.qd
    before = math.inf
    for _ in range(TURNS):
        worst = _speeds(t, qd)
        if worst <= CLOSED or worst > 0.5 * before:
            break
        before = worst
        _solve(t, loop.rate, loop.solved)
        _answer(t, loop.solved)
        for i in range(qd.size):
            qd[i] += loop.shift[i]


@kernel
def assemble(t, turns):
    """q to g = 0 by at most `turns` of Newton's method from wherever it is; the largest error left. `rate` is J qd."""
    loop, q, qd = t.loop, t.motion.q, t.motion.qd
    gap = 0.0
    for turn in range(turns + 1):
        forward_dynamics.accelerate(t, q, qd, qd, 0.0)
        gap = look(t)
        span(t)
        _factorise(t)
        if gap <= CLOSED or turn == turns:
            break
        _solve(t, loop.error, loop.solved)
        _answer(t, loop.solved)
        most = 0.0
        for i in range(loop.shift.size):
            if t.node.kind[i] != SLIDE:
                most = max(most, abs(loop.shift[i]))
        drift(t, q, loop.shift, 1.0 if most <= LEAP else LEAP / most)
    _speeds(t, qd)
    return gap
