"""Forward dynamics of a tree, in two independent ways: articulated bodies (ABA) and composite rigid bodies (CRBA).

    articulate   in O(n): the articulated-body algorithm
    compose      from the mass matrix in O(n^3): composite rigid bodies, Newton-Euler bias, L'DL

Both leave the mass matrix H as a product L' D L, the first in U and D without ever writing it down. `halve` and
`respond` are the two halves of a solution with it: x' H^-1 y is the product of two halved vectors over D, which is what
constraints need.

Ref: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008: table 5.1 (Newton-Euler), 6.2 (composite rigid
bodies), 6.3 (LTDL of a branch-sparse matrix), 7.1 (articulated bodies). G. Rodriguez, A. Jain, K. Kreutz-Delgado, A
spatial operator algebra for manipulator modeling and control, 1991: articulated bodies as a factor of the mass matrix.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.numeric.algebra import cross
from plant.reduced.kinematic_tree import CRBA, SLIDE, along, load, place


@kernel
def articulate(t, damped, implicit):
    """qdd by articulated bodies: table 7.1, second and third pass.

    Damping acts on the velocity `damped` + `implicit` qdd, so D gains implicit times damping.
    """
    _gather(t, damped, implicit)
    _spread(t)


@inline
def _gather(t, damped, implicit):
    """Second pass, from the tips in: U, D, u, and what is left of each node's inertia for its parent."""
    parent, kind, f, ia = t.node.parent, t.node.kind, t.work.frame, t.work.inertia
    bias, drive, move = t.work.bias, t.work.drive, t.motion
    n = parent.size
    for k in range(n):
        i = n - 1 - k
        a0, a1, a2, a3, a4, a5 = ia[i, 0], ia[i, 1], ia[i, 2], ia[i, 3], ia[i, 4], ia[i, 5]
        b0, b1, b2, b3, b4 = ia[i, 6], ia[i, 7], ia[i, 8], ia[i, 9], ia[i, 10]
        b5, b6, b7, b8 = ia[i, 11], ia[i, 12], ia[i, 13], ia[i, 14]
        c0, c1, c2, c3, c4, c5 = ia[i, 15], ia[i, 16], ia[i, 17], ia[i, 18], ia[i, 19], ia[i, 20]
        nx, ny, nz, fx, fy, fz = ia[i, 21], ia[i, 22], ia[i, 23], ia[i, 24], ia[i, 25], ia[i, 26]
        x, y, z = f[i, 18], f[i, 19], f[i, 20]
        if kind[i] == SLIDE:
            ux, uy, uz = b0 * x + b1 * y + b2 * z, b3 * x + b4 * y + b5 * z, b6 * x + b7 * y + b8 * z
            vx, vy, vz = c0 * x + c1 * y + c2 * z, c1 * x + c3 * y + c4 * z, c2 * x + c4 * y + c5 * z
            d, u = x * vx + y * vy + z * vz, x * fx + y * fy + z * fz
        else:
            ux, uy, uz = a0 * x + a1 * y + a2 * z, a1 * x + a3 * y + a4 * z, a2 * x + a4 * y + a5 * z
            vx, vy, vz = b0 * x + b3 * y + b6 * z, b1 * x + b4 * y + b7 * z, b2 * x + b5 * y + b8 * z
            d, u = x * ux + y * uy + z * uz, x * nx + y * ny + z * nz
        d = 1.0 / (d + implicit * move.damping[i])
        u = move.tau[i] - move.damping[i] * damped[i] - u
        drive[i, 0], drive[i, 1], drive[i, 2], drive[i, 3], drive[i, 4], drive[i, 5] = ux, uy, uz, vx, vy, vz
        drive[i, 6], drive[i, 7] = d, u
        dx, dy, dz, ex, ey, ez = ux * d, uy * d, uz * d, vx * d, vy * d, vz * d
        a0, a1, a2, a3, a4, a5 = a0 - ux * dx, a1 - ux * dy, a2 - ux * dz, a3 - uy * dy, a4 - uy * dz, a5 - uz * dz
        b0, b1, b2, b3, b4 = b0 - ux * ex, b1 - ux * ey, b2 - ux * ez, b3 - uy * ex, b4 - uy * ey
        b5, b6, b7, b8 = b5 - uy * ez, b6 - uz * ex, b7 - uz * ey, b8 - uz * ez
        c0, c1, c2, c3, c4, c5 = c0 - vx * ex, c1 - vx * ey, c2 - vx * ez, c3 - vy * ey, c4 - vy * ez, c5 - vz * ez
        x, y, z, lx, ly, lz = bias[i, 0], bias[i, 1], bias[i, 2], bias[i, 3], bias[i, 4], bias[i, 5]
        nx += a0 * x + a1 * y + a2 * z + b0 * lx + b1 * ly + b2 * lz + dx * u
        ny += a1 * x + a3 * y + a4 * z + b3 * lx + b4 * ly + b5 * lz + dy * u
        nz += a2 * x + a4 * y + a5 * z + b6 * lx + b7 * ly + b8 * lz + dz * u
        fx += b0 * x + b3 * y + b6 * z + c0 * lx + c1 * ly + c2 * lz + ex * u
        fy += b1 * x + b4 * y + b7 * z + c1 * lx + c3 * ly + c4 * lz + ey * u
        fz += b2 * x + b5 * y + b8 * z + c2 * lx + c4 * ly + c5 * lz + ez * u
        p, rx, ry, rz = parent[i], f[i, 12], f[i, 13], f[i, 14]
        # to the parent's origin: B + r~ C, then A - B r~ + r~ (B + r~ C)'
        g0, g1, g2 = b0 + ry * c2 - rz * c1, b1 + ry * c4 - rz * c3, b2 + ry * c5 - rz * c4
        g3, g4, g5 = b3 + rz * c0 - rx * c2, b4 + rz * c1 - rx * c4, b5 + rz * c2 - rx * c5
        g6, g7, g8 = b6 + rx * c1 - ry * c0, b7 + rx * c3 - ry * c1, b8 + rx * c4 - ry * c2
        ia[p, 0] += a0 + (b2 * ry - b1 * rz) + (ry * g2 - rz * g1)
        ia[p, 1] += a1 + (b0 * rz - b2 * rx) + (ry * g5 - rz * g4)
        ia[p, 2] += a2 + (b1 * rx - b0 * ry) + (ry * g8 - rz * g7)
        ia[p, 3] += a3 + (b3 * rz - b5 * rx) + (rz * g3 - rx * g5)
        ia[p, 4] += a4 + (b4 * rx - b3 * ry) + (rz * g6 - rx * g8)
        ia[p, 5] += a5 + (b7 * rx - b6 * ry) + (rx * g7 - ry * g6)
        ia[p, 6] += g0
        ia[p, 7] += g1
        ia[p, 8] += g2
        ia[p, 9] += g3
        ia[p, 10] += g4
        ia[p, 11] += g5
        ia[p, 12] += g6
        ia[p, 13] += g7
        ia[p, 14] += g8
        ia[p, 15] += c0
        ia[p, 16] += c1
        ia[p, 17] += c2
        ia[p, 18] += c3
        ia[p, 19] += c4
        ia[p, 20] += c5
        ia[p, 21] += nx + ry * fz - rz * fy
        ia[p, 22] += ny + rz * fx - rx * fz
        ia[p, 23] += nz + rx * fy - ry * fx
        ia[p, 24] += fx
        ia[p, 25] += fy
        ia[p, 26] += fz


@inline
def _carried(t, i):
    """Acceleration of node i's origin, were it fixed to its parent: the parent's, carried over, and c."""
    acc, f, bias, p = t.work.acc, t.work.frame, t.work.bias, t.node.parent[i]
    x, y, z = acc[p, 0], acc[p, 1], acc[p, 2]
    lx, ly, lz = cross(x, y, z, f[i, 12], f[i, 13], f[i, 14])
    return (
        x + bias[i, 0],
        y + bias[i, 1],
        z + bias[i, 2],
        acc[p, 3] + lx + bias[i, 3],
        acc[p, 4] + ly + bias[i, 4],
        acc[p, 5] + lz + bias[i, 5],
    )


@inline
def _spread(t):
    """Third pass, from the root out: accelerations. Gravity is a ground that accelerates upwards."""
    kind, f, drive, acc, qdd = t.node.kind, t.work.frame, t.work.drive, t.work.acc, t.motion.qdd
    n = kind.size
    acc[n, 3], acc[n, 4], acc[n, 5] = -t.setup.gx, -t.setup.gy, -t.setup.gz
    for i in range(n):
        x, y, z, lx, ly, lz = _carried(t, i)
        a = drive[i, 0] * x + drive[i, 1] * y + drive[i, 2] * z
        b = drive[i, 3] * lx + drive[i, 4] * ly + drive[i, 5] * lz
        a = (drive[i, 7] - (a + b)) * drive[i, 6]
        qdd[i] = a
        if kind[i] == SLIDE:
            lx, ly, lz = lx + f[i, 18] * a, ly + f[i, 19] * a, lz + f[i, 20] * a
        else:
            x, y, z = x + f[i, 18] * a, y + f[i, 19] * a, z + f[i, 20] * a
        acc[i, 0], acc[i, 1], acc[i, 2], acc[i, 3], acc[i, 4], acc[i, 5] = x, y, z, lx, ly, lz


@kernel
def compose(t, damped, implicit):
    """qdd from (H + implicit damping) qdd = tau - damping damped - bias."""
    _bias_forces(t, damped)
    _mass_matrix(t, implicit)
    _factorise(t)
    _solve(t)


@inline
def _bias_forces(t, damped):
    """qdd = tau - damping damped - C: Newton-Euler with qdd = 0, table 5.1. Leaves the rigid inertias alone."""
    node, f, ia, acc, move, drive = t.node, t.work.frame, t.work.inertia, t.work.acc, t.motion, t.work.drive
    n = node.kind.size
    acc[n, 3], acc[n, 4], acc[n, 5] = -t.setup.gx, -t.setup.gy, -t.setup.gz
    for i in range(n):
        x, y, z, lx, ly, lz = _carried(t, i)
        acc[i, 0], acc[i, 1], acc[i, 2], acc[i, 3], acc[i, 4], acc[i, 5] = x, y, z, lx, ly, lz
        hx, hy, hz, m = ia[i, 13], ia[i, 8], ia[i, 9], ia[i, 15]
        drive[i, 0] = ia[i, 21] + ia[i, 0] * x + ia[i, 1] * y + ia[i, 2] * z + hy * lz - hz * ly
        drive[i, 1] = ia[i, 22] + ia[i, 1] * x + ia[i, 3] * y + ia[i, 4] * z + hz * lx - hx * lz
        drive[i, 2] = ia[i, 23] + ia[i, 2] * x + ia[i, 4] * y + ia[i, 5] * z + hx * ly - hy * lx
        drive[i, 3] = ia[i, 24] + m * lx + y * hz - z * hy
        drive[i, 4] = ia[i, 25] + m * ly + z * hx - x * hz
        drive[i, 5] = ia[i, 26] + m * lz + x * hy - y * hx
    for k in range(n):
        i = n - 1 - k
        nx, ny, nz, fx, fy, fz = drive[i, 0], drive[i, 1], drive[i, 2], drive[i, 3], drive[i, 4], drive[i, 5]
        move.qdd[i] = move.tau[i] - move.damping[i] * damped[i] - along(f, node.kind[i], i, nx, ny, nz, fx, fy, fz)
        p = node.parent[i]
        if p < n:
            x, y, z = cross(f[i, 12], f[i, 13], f[i, 14], fx, fy, fz)
            drive[p, 0] += nx + x
            drive[p, 1] += ny + y
            drive[p, 2] += nz + z
            drive[p, 3] += fx
            drive[p, 4] += fy
            drive[p, 5] += fz


@inline
def _mass_matrix(t, implicit):
    """H by composite rigid bodies, table 6.2; entries of nodes on different branches are never touched."""
    parent, kind, f, ia, mass = t.node.parent, t.node.kind, t.work.frame, t.work.inertia, t.work.mass
    n = parent.size
    for k in range(n):
        i = n - 1 - k
        x, y, z, m = f[i, 18], f[i, 19], f[i, 20], ia[i, 15]
        hx, hy, hz = ia[i, 13], ia[i, 8], ia[i, 9]
        if kind[i] == SLIDE:
            nx, ny, nz = cross(hx, hy, hz, x, y, z)
            fx, fy, fz = m * x, m * y, m * z
        else:
            nx = ia[i, 0] * x + ia[i, 1] * y + ia[i, 2] * z
            ny = ia[i, 1] * x + ia[i, 3] * y + ia[i, 4] * z
            nz = ia[i, 2] * x + ia[i, 4] * y + ia[i, 5] * z
            fx, fy, fz = cross(x, y, z, hx, hy, hz)
        mass[i, i] = along(f, kind[i], i, nx, ny, nz, fx, fy, fz) + implicit * t.motion.damping[i]
        rx, ry, rz, p = f[i, 12], f[i, 13], f[i, 14], parent[i]
        s = 2.0 * (rx * hx + ry * hy + rz * hz) + m * (rx * rx + ry * ry + rz * rz)
        gx, gy, gz = hx + m * rx, hy + m * ry, hz + m * rz
        ia[p, 0] += ia[i, 0] + s - (rx * gx + hx * rx)
        ia[p, 1] += ia[i, 1] - (rx * gy + hx * ry)
        ia[p, 2] += ia[i, 2] - (rx * gz + hx * rz)
        ia[p, 3] += ia[i, 3] + s - (ry * gy + hy * ry)
        ia[p, 4] += ia[i, 4] - (ry * gz + hy * rz)
        ia[p, 5] += ia[i, 5] + s - (rz * gz + hz * rz)
        ia[p, 13] += gx
        ia[p, 8] += gy
        ia[p, 9] += gz
        ia[p, 15] += m
        j = i
        while parent[j] < n:
            x, y, z = cross(f[j, 12], f[j, 13], f[j, 14], fx, fy, fz)
            nx, ny, nz, j = nx + x, ny + y, nz + z, parent[j]
            mass[i, j] = along(f, kind[j], j, nx, ny, nz, fx, fy, fz)


@inline
def _subtract(target, row, factor, node, parent, run, n):
    """`target` -= factor `row`, at `node` and everything between it and the root."""
    while node < n:
        first = run[node]
        to, by = target[first : node + 1], row[first : node + 1]
        for c in range(to.size):
            to[c] -= factor * by[c]
        node = parent[first]


@inline
def _factorise(t):
    """H = L' D L in place, D's inverse on the diagonal: table 6.3, walking up the branch run by run."""
    parent, run, mass = t.node.parent, t.node.run, t.work.mass
    n = parent.size
    for b in range(n):
        k = n - 1 - b
        row = mass[k]
        d = 1.0 / row[k]
        row[k] = d
        i = parent[k]
        while i < n:
            a = row[i] * d
            _subtract(mass[i], row, a, i, parent, run, n)
            row[i] = a
            i = parent[i]


@inline
def _solve(t):
    """qdd = (L' D L)^-1 qdd."""
    parent, run, mass, x = t.node.parent, t.node.run, t.work.mass, t.motion.qdd
    n = parent.size
    for b in range(n):
        i = n - 1 - b
        _subtract(x, mass[i], x[i], parent[i], parent, run, n)
    _back(t, x)


@inline
def _back(t, x):
    """x = (D L)^-1 x."""
    parent, mass = t.node.parent, t.work.mass
    for i in range(parent.size):
        s = x[i] * mass[i, i]
        j = parent[i]
        while j < parent.size:
            s -= mass[i, j] * x[j]
            j = parent[j]
        x[i] = s


@inline
def pivot(t, i):
    """The inverse of D at node i."""
    return t.work.mass[i, i] if t.setup.method == CRBA else t.work.drive[i, 6]


@kernel
def halve(t, x, path, push):
    """x = L'^-1 x, for forces x along nodes of `path`: highest number first, and with each node its parent.

    In articulated bodies this is the second pass with no other forces: u. `push` [n + 1, 6] is what it hands on.
    """
    parent, kind, f, drive = t.node.parent, t.node.kind, t.work.frame, t.work.drive
    n = parent.size
    if t.setup.method == CRBA:
        for k in range(path.size):
            i = path[k]
            _subtract(x, t.work.mass[i], x[i], parent[i], parent, t.node.run, n)
        return
    for k in range(path.size):
        for c in range(6):
            push[path[k], c] = 0.0
    for k in range(path.size):
        i = path[k]
        nx, ny, nz, fx, fy, fz = push[i, 0], push[i, 1], push[i, 2], push[i, 3], push[i, 4], push[i, 5]
        u = x[i] - along(f, kind[i], i, nx, ny, nz, fx, fy, fz)
        x[i] = u
        u *= drive[i, 6]
        nx, ny, nz = nx + drive[i, 0] * u, ny + drive[i, 1] * u, nz + drive[i, 2] * u
        fx, fy, fz = fx + drive[i, 3] * u, fy + drive[i, 4] * u, fz + drive[i, 5] * u
        lx, ly, lz = cross(f[i, 12], f[i, 13], f[i, 14], fx, fy, fz)
        p = parent[i]
        push[p, 0] += nx + lx
        push[p, 1] += ny + ly
        push[p, 2] += nz + lz
        push[p, 3] += fx
        push[p, 4] += fy
        push[p, 5] += fz


@kernel
def respond(t, x, push):
    """x = (D L)^-1 x: the accelerations of all nodes for halved forces x. `push` takes those of the links."""
    parent, kind, f, drive = t.node.parent, t.node.kind, t.work.frame, t.work.drive
    n = parent.size
    if t.setup.method == CRBA:
        _back(t, x)
        return
    for c in range(6):
        push[n, c] = 0.0
    for i in range(n):
        p = parent[i]
        nx, ny, nz = push[p, 0], push[p, 1], push[p, 2]
        lx, ly, lz = cross(nx, ny, nz, f[i, 12], f[i, 13], f[i, 14])
        lx, ly, lz = lx + push[p, 3], ly + push[p, 4], lz + push[p, 5]
        a = drive[i, 0] * nx + drive[i, 1] * ny + drive[i, 2] * nz
        a += drive[i, 3] * lx + drive[i, 4] * ly + drive[i, 5] * lz
        a = (x[i] - a) * drive[i, 6]
        x[i] = a
        if kind[i] == SLIDE:
            lx, ly, lz = lx + f[i, 18] * a, ly + f[i, 19] * a, lz + f[i, 20] * a
        else:
            nx, ny, nz = nx + f[i, 18] * a, ny + f[i, 19] * a, nz + f[i, 20] * a
        push[i, 0], push[i, 1], push[i, 2], push[i, 3], push[i, 4], push[i, 5] = nx, ny, nz, lx, ly, lz


@kernel
def accelerate(t, q, qd, damped, implicit):
    """qdd at (q, qd) with all loops open; damping acts on the velocity `damped` + `implicit` qdd."""
    place(t, q, qd)
    load(t)
    if t.setup.method == CRBA:
        compose(t, damped, implicit)
    else:
        articulate(t, damped, implicit)
