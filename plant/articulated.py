"""The stepper `articulated`: tree mechanisms in joint coordinates, so that no joint can drift apart.

    place        frames, angular velocities, velocity products and rigid inertias of all nodes, from the root out
    load         forces and torques from outside onto the nodes
    articulate   accelerations in O(n): the articulated-body algorithm
    compose      the same from the mass matrix in O(n^3): composite rigid bodies, Newton-Euler bias, L'DL
    step         one of three integrators around them

A *node* is one degree of freedom: it turns about (HINGE) or slides along (SLIDE) the z axis of its frame. Joints with
several are several nodes in a row, of which only the last has mass: eliminating a block of the mass matrix at once or
column by column is the same. A BALL is three nodes that share one frame and turn about its x, y and z; it has a
quaternion. The ground is the row after the last node, so that no loop asks whether there is a parent.

All vectors are in world axes, and those of a node refer to the origin of its own frame (a hinge's anchor). So S is
(z, 0) or (0, z), only rigid inertias are ever rotated, and numbers stay as small as the links are, however far from the
world's origin these work. Accelerations are those of the material point (Featherstone's "classical" ones), so linear
velocities are not needed; c and p are those of this choice.

Ref: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008: table 5.1 (Newton-Euler), 6.2 (composite rigid
bodies), 6.3 (LTDL of a branch-sparse matrix), 7.1 (articulated bodies). The symbols S, c, p, U, D, u are his.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hilnode.jit import inline, kernel
from hilnode.record import F1, F2, I1, viewer
from plant.algebra import cross

OK, NOT_FINITE = 0, 1
HINGE, SLIDE, BALL, BALL_NEXT = 0, 1, 2, 3
EULER, MIDPOINT, RK4 = 0, 1, 2
ABA, CRBA = 0, 1


class Setup(NamedTuple):
    """Constants of the stepper."""

    h: float  # [s]
    gx: float  # gravity [m/s^2]
    gy: float
    gz: float
    integrator: int  # EULER, MIDPOINT or RK4
    method: int  # ABA or CRBA


class Nodes(NamedTuple):
    """Constants of the n nodes, parents before children."""

    parent: I1  # [n] n = the ground
    kind: I1  # [n]
    at: I1  # [n] its place in q; a ball's quaternion for the first of its nodes
    run: I1  # [n] the lowest node from which an unbroken line of parents k, k + 1, ... leads here
    heavy: I1  # [n] 1 = a link with mass
    frame: F2  # [n, 12] frame at q = 0 in the parent's: rotation by rows, origin [m]
    inertia: F2  # [n, 10] about the origin, own axes: xx xy xz yy yz zz [kg m^2], mass times centre of mass, mass


class Parts(NamedTuple):
    """Constants of the bodies, each part of the link that a node carries."""

    node: I1  # [b] n = part of the ground
    com: F2  # [b, 3] centre of mass in the node's frame [m]
    quat: F2  # [b, 4] body axes in the node's frame


class Motion(NamedTuple):
    """Integrated quantities and what is applied from outside."""

    q: F1  # [m, rad], quaternions of balls
    qd: F1  # [n] [m/s, rad/s]; of a ball in the axes of its child
    qdd: F1  # [n] of the last evaluation; MIDPOINT predicts with it
    tau: F1  # [n] applied force [N, N m], kept until changed
    damping: F1  # [n] viscous [N s/m, N m s/rad]
    wrench: F2  # [b, 6] force at the centre of mass [N] and torque [N m] on each body, kept until changed


class Work(NamedTuple):
    """Computed by place, and then by articulate or compose."""

    frame: F2  # [n + 1, 24] X, Y, Z axes; origin; origin from the parent's; angular velocity; S axis
    bias: F2  # [n, 6] c: angular, linear
    inertia: F2  # [n + 1, 27] xx xy xz yy yz zz of A; B by rows; C as A; bias force p: torque, force
    drive: F2  # [n, 8] U: torque, force; 1 / D; u
    acc: F2  # [n + 1, 6] angular, linear
    mass: F2  # [n, n] lower triangle of the mass matrix, then of its factor; [0, 0] with ABA
    stage_q: F1  # where an integrator evaluates
    stage_qd: F1
    sum_q: F1  # weighted rates of RK4
    sum_qd: F1
    rate: F1  # q's time derivative


class Bodies(NamedTuple):
    """Outputs in the layout of plant.model.State."""

    pos: F2  # [b, 3] centre of mass [m]
    quat: F2  # [b, 4]
    vel: F2  # [b, 6] linear [m/s], angular [rad/s]


class Tree(NamedTuple):
    """One argument for every kernel."""

    setup: Setup
    node: Nodes
    part: Parts
    motion: Motion
    work: Work
    body: Bodies


view_tree = viewer(Tree)


@inline
def _ball(q, k, ax, ay, az, bx, by, bz, cx, cy, cz):
    """The frame with axes a, b, c turned by the quaternion q[k : k + 4] in these axes, whatever its length."""
    w, x, y, z = q[k], q[k + 1], q[k + 2], q[k + 3]
    n = 2.0 / (w * w + x * x + y * y + z * z)
    xx, yy, zz = 1.0 - n * (y * y + z * z), 1.0 - n * (x * x + z * z), 1.0 - n * (x * x + y * y)
    xy, xz, yz, wx, wy, wz = n * x * y, n * x * z, n * y * z, n * w * x, n * w * y, n * w * z
    yx, zx, zy = xy + wz, xz - wy, yz + wx
    xy, xz, yz = xy - wz, xz + wy, yz - wx
    return (
        ax * xx + bx * yx + cx * zx,
        ay * xx + by * yx + cy * zx,
        az * xx + bz * yx + cz * zx,
        ax * xy + bx * yy + cx * zy,
        ay * xy + by * yy + cy * zy,
        az * xy + bz * yy + cz * zy,
        ax * xz + bx * yz + cx * zz,
        ay * xz + by * yz + cy * zz,
        az * xz + bz * yz + cz * zz,
    )


@kernel
def place(t, q, qd):
    """Frames, angular velocities, bias accelerations c, rigid inertias and bias forces p: table 7.1, first pass."""
    node, f, bias = t.node, t.work.frame, t.work.bias
    parent, kind, at, fixed = node.parent, node.kind, node.at, node.frame
    n = parent.size
    for c in range(27):
        t.work.inertia[n, c] = 0.0
    for i in range(n):
        k, p = kind[i], parent[i]
        if k == BALL_NEXT:
            continue
        ux, uy, uz, vx, vy, vz = f[p, 0], f[p, 1], f[p, 2], f[p, 3], f[p, 4], f[p, 5]
        wx, wy, wz = f[p, 6], f[p, 7], f[p, 8]
        e0, e1, e2, e3, e4 = fixed[i, 0], fixed[i, 1], fixed[i, 2], fixed[i, 3], fixed[i, 4]
        e5, e6, e7, e8 = fixed[i, 5], fixed[i, 6], fixed[i, 7], fixed[i, 8]
        ax, ay, az = ux * e0 + vx * e3 + wx * e6, uy * e0 + vy * e3 + wy * e6, uz * e0 + vz * e3 + wz * e6
        bx, by, bz = ux * e1 + vx * e4 + wx * e7, uy * e1 + vy * e4 + wy * e7, uz * e1 + vz * e4 + wz * e7
        cx, cy, cz = ux * e2 + vx * e5 + wx * e8, uy * e2 + vy * e5 + wy * e8, uz * e2 + vz * e5 + wz * e8
        e0, e1, e2 = fixed[i, 9], fixed[i, 10], fixed[i, 11]
        rx, ry, rz = ux * e0 + vx * e1 + wx * e2, uy * e0 + vy * e1 + wy * e2, uz * e0 + vz * e1 + wz * e2
        sx, sy, sz = f[p, 15], f[p, 16], f[p, 17]  # angular velocity
        rate = qd[i]
        gx, gy, gz = cross(sx, sy, sz, cx, cy, cz)
        if k == HINGE:
            angle = q[at[i]]
            co, si = math.cos(angle), math.sin(angle)
            ax, bx = co * ax + si * bx, co * bx - si * ax
            ay, by = co * ay + si * by, co * by - si * ay
            az, bz = co * az + si * bz, co * bz - si * az
            lx, ly, lz = cross(sx, sy, sz, rx, ry, rz)
            lx, ly, lz = cross(sx, sy, sz, lx, ly, lz)
            bias[i, 0], bias[i, 1], bias[i, 2] = gx * rate, gy * rate, gz * rate
            sx, sy, sz = sx + cx * rate, sy + cy * rate, sz + cz * rate
        elif k == SLIDE:
            slide = q[at[i]]
            rx, ry, rz = rx + cx * slide, ry + cy * slide, rz + cz * slide
            lx, ly, lz = cross(sx, sy, sz, rx, ry, rz)
            lx, ly, lz = cross(sx, sy, sz, lx, ly, lz)
            lx, ly, lz = lx + 2.0 * rate * gx, ly + 2.0 * rate * gy, lz + 2.0 * rate * gz
            bias[i, 0], bias[i, 1], bias[i, 2] = 0.0, 0.0, 0.0
        else:
            ax, ay, az, bx, by, bz, cx, cy, cz = _ball(q, at[i], ax, ay, az, bx, by, bz, cx, cy, cz)
            r1, r2 = qd[i + 1], qd[i + 2]
            gx, gy, gz = ax * rate + bx * r1 + cx * r2, ay * rate + by * r1 + cy * r2, az * rate + bz * r1 + cz * r2
            lx, ly, lz = cross(sx, sy, sz, rx, ry, rz)
            lx, ly, lz = cross(sx, sy, sz, lx, ly, lz)
            bias[i, 0], bias[i, 1], bias[i, 2] = cross(sx, sy, sz, gx, gy, gz)
            sx, sy, sz = sx + gx, sy + gy, sz + gz
        bias[i, 3], bias[i, 4], bias[i, 5] = lx, ly, lz
        ox, oy, oz = f[p, 9] + rx, f[p, 10] + ry, f[p, 11] + rz
        f[i, 0], f[i, 1], f[i, 2], f[i, 3], f[i, 4], f[i, 5] = ax, ay, az, bx, by, bz
        f[i, 6], f[i, 7], f[i, 8] = cx, cy, cz
        f[i, 9], f[i, 10], f[i, 11], f[i, 12], f[i, 13], f[i, 14] = ox, oy, oz, rx, ry, rz
        f[i, 15], f[i, 16], f[i, 17] = sx, sy, sz
        if k != BALL:
            f[i, 18], f[i, 19], f[i, 20] = cx, cy, cz
            _rigid(t, i)
            continue
        for j in range(i, i + 3):
            for c in range(18):
                f[j, c] = f[i, c]
            for c in range(3):
                f[j, 18 + c] = f[i, 3 * (j - i) + c]
            if j > i:
                for c in range(6):
                    bias[j, c] = 0.0
                f[j, 12], f[j, 13], f[j, 14] = 0.0, 0.0, 0.0
            _rigid(t, j)


@inline
def _rigid(t, i):
    """Inertia of the link in world axes, and p = (w x A w, w x (w x h)) of its turning."""
    ia, f, own = t.work.inertia, t.work.frame, t.node.inertia
    if t.node.heavy[i] == 0:
        for c in range(27):
            ia[i, c] = 0.0
        return
    ax, ay, az, bx, by, bz, cx, cy, cz = f[i, 0], f[i, 1], f[i, 2], f[i, 3], f[i, 4], f[i, 5], f[i, 6], f[i, 7], f[i, 8]
    xx, xy, xz, yy, yz, zz = own[i, 0], own[i, 1], own[i, 2], own[i, 3], own[i, 4], own[i, 5]
    t0, t1, t2 = ax * xx + bx * xy + cx * xz, ax * xy + bx * yy + cx * yz, ax * xz + bx * yz + cx * zz
    t3, t4, t5 = ay * xx + by * xy + cy * xz, ay * xy + by * yy + cy * yz, ay * xz + by * yz + cy * zz
    t6, t7, t8 = az * xx + bz * xy + cz * xz, az * xy + bz * yy + cz * yz, az * xz + bz * yz + cz * zz
    xx, xy, xz = t0 * ax + t1 * bx + t2 * cx, t0 * ay + t1 * by + t2 * cy, t0 * az + t1 * bz + t2 * cz
    yy, yz, zz = t3 * ay + t4 * by + t5 * cy, t3 * az + t4 * bz + t5 * cz, t6 * az + t7 * bz + t8 * cz
    hx, hy, hz, m = own[i, 6], own[i, 7], own[i, 8], own[i, 9]
    hx, hy, hz = ax * hx + bx * hy + cx * hz, ay * hx + by * hy + cy * hz, az * hx + bz * hy + cz * hz
    sx, sy, sz = f[i, 15], f[i, 16], f[i, 17]
    lx, ly, lz = xx * sx + xy * sy + xz * sz, xy * sx + yy * sy + yz * sz, xz * sx + yz * sy + zz * sz
    ia[i, 0], ia[i, 1], ia[i, 2], ia[i, 3], ia[i, 4], ia[i, 5] = xx, xy, xz, yy, yz, zz
    ia[i, 6], ia[i, 7], ia[i, 8], ia[i, 9], ia[i, 10], ia[i, 11] = 0.0, -hz, hy, hz, 0.0, -hx
    ia[i, 12], ia[i, 13], ia[i, 14] = -hy, hx, 0.0
    ia[i, 15], ia[i, 16], ia[i, 17], ia[i, 18], ia[i, 19], ia[i, 20] = m, 0.0, 0.0, m, 0.0, m
    ia[i, 21], ia[i, 22], ia[i, 23] = cross(sx, sy, sz, lx, ly, lz)
    hx, hy, hz = cross(sx, sy, sz, hx, hy, hz)
    ia[i, 24], ia[i, 25], ia[i, 26] = cross(sx, sy, sz, hx, hy, hz)


@kernel
def load(t):
    """Take the wrenches from outside off the bias forces p; the ground's row takes those on fixed bodies."""
    part, wrench, f, ia = t.part, t.motion.wrench, t.work.frame, t.work.inertia
    for b in range(part.node.size):
        x, y, z, a, d, e = wrench[b, 0], wrench[b, 1], wrench[b, 2], wrench[b, 3], wrench[b, 4], wrench[b, 5]
        if x == 0.0 and y == 0.0 and z == 0.0 and a == 0.0 and d == 0.0 and e == 0.0:
            continue
        i = part.node[b]
        rx, ry, rz = _turned(f, i, part.com[b, 0], part.com[b, 1], part.com[b, 2])
        nx, ny, nz = cross(rx, ry, rz, x, y, z)
        ia[i, 21] -= a + nx
        ia[i, 22] -= d + ny
        ia[i, 23] -= e + nz
        ia[i, 24] -= x
        ia[i, 25] -= y
        ia[i, 26] -= z


@inline
def _turned(f, i, x, y, z):
    """A vector of node i's frame in world axes."""
    return (
        f[i, 0] * x + f[i, 3] * y + f[i, 6] * z,
        f[i, 1] * x + f[i, 4] * y + f[i, 7] * z,
        f[i, 2] * x + f[i, 5] * y + f[i, 8] * z,
    )


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
        move.qdd[i] = move.tau[i] - move.damping[i] * damped[i] - _along(f, node.kind[i], i, nx, ny, nz, fx, fy, fz)
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
def _along(f, kind, i, nx, ny, nz, fx, fy, fz):
    """S' of node i times a force at its origin."""
    if kind == SLIDE:
        return f[i, 18] * fx + f[i, 19] * fy + f[i, 20] * fz
    return f[i, 18] * nx + f[i, 19] * ny + f[i, 20] * nz


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
        mass[i, i] = _along(f, kind[i], i, nx, ny, nz, fx, fy, fz) + implicit * t.motion.damping[i]
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
            mass[i, j] = _along(f, kind[j], j, nx, ny, nz, fx, fy, fz)


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
    for i in range(n):
        s = x[i] * mass[i, i]
        j = parent[i]
        while j < n:
            s -= mass[i, j] * x[j]
            j = parent[j]
        x[i] = s


@kernel
def accelerate(t, q, qd, damped, implicit):
    """qdd at (q, qd); damping acts on the velocity `damped` + `implicit` qdd."""
    place(t, q, qd)
    load(t)
    if t.setup.method == CRBA:
        compose(t, damped, implicit)
    else:
        articulate(t, damped, implicit)


@inline
def _turn_ball(q, k, x, y, z):
    """Turn q[k : k + 4] by the rotation vector (x, y, z) [rad] in its own axes: q = q exp(x, y, z), normalised."""
    angle = math.sqrt(x * x + y * y + z * z)
    if angle > 1e-6:
        s, c = math.sin(0.5 * angle) / angle, math.cos(0.5 * angle)
    else:
        s, c = 0.5 - angle * angle / 48.0, 1.0 - angle * angle / 8.0
    x, y, z = s * x, s * y, s * z
    a, b, d, e = q[k], q[k + 1], q[k + 2], q[k + 3]
    w0, w1 = c * a - x * b - y * d - z * e, c * b + x * a + z * d - y * e
    w2, w3 = c * d + y * a + x * e - z * b, c * e + z * a + y * b - x * d
    n = 1.0 / math.sqrt(w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3)
    q[k], q[k + 1], q[k + 2], q[k + 3] = w0 * n, w1 * n, w2 * n, w3 * n


@inline
def _drift(t, q, qd, h):
    """q forward by h at constant qd."""
    kind, at = t.node.kind, t.node.at
    for i in range(kind.size):
        if kind[i] < BALL:
            q[at[i]] += h * qd[i]
        elif kind[i] == BALL:
            _turn_ball(q, at[i], h * qd[i], h * qd[i + 1], h * qd[i + 2])


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
        _drift(t, s.q, s.qd, 0.5 * h)
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
            _turn_ball(s.q, t.node.at[i], 0.0, 0.0, 0.0)


@kernel
def step(t):
    """Advance by one step; OK or NOT_FINITE.

    EULER     semi-implicit: new velocities, with damping acting on these, then positions with them. First order.
    MIDPOINT  half a drift, a kick by the forces there, half a drift. Second order with one evaluation. Forces of
              velocity see it at mid-step as the last acceleration predicts it, which is good to h^2; damping acts on
              the mean of old and new velocity. Where forces depend on positions only this is the leapfrog.
    RK4       the classical Runge-Kutta method, fourth order, four evaluations; quaternions as four numbers,
              normalised after. Damping is explicit.
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
        _drift(t, s.q, s.qd, h if way == EULER else 0.5 * h)
    total = 0.0
    for i in range(s.qd.size):
        total += s.qd[i]
    return OK if math.isfinite(total) else NOT_FINITE


@kernel
def outputs(t):
    """Poses and velocities of all bodies at the present q and qd."""
    place(t, t.motion.q, t.motion.qd)
    f, kind, parent, v, part, out = t.work.frame, t.node.kind, t.node.parent, t.work.acc, t.part, t.body
    n = kind.size
    for c in range(6):
        v[n, c] = 0.0
    for i in range(n):
        p = parent[i]
        x, y, z = cross(f[p, 15], f[p, 16], f[p, 17], f[i, 12], f[i, 13], f[i, 14])
        rate = t.motion.qd[i] if kind[i] == SLIDE else 0.0
        v[i, 0] = v[p, 0] + x + rate * f[i, 18]
        v[i, 1] = v[p, 1] + y + rate * f[i, 19]
        v[i, 2] = v[p, 2] + z + rate * f[i, 20]
    for b in range(part.node.size):
        i = part.node[b]
        rx, ry, rz = _turned(f, i, part.com[b, 0], part.com[b, 1], part.com[b, 2])
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
