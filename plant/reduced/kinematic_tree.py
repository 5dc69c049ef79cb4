"""The kinematic tree in joint coordinates: its arrays, and the forward kinematics of its nodes.

    move         frames of nodes, from the root out
    place        the same, with angular velocities, velocity products and rigid inertias
    load         forces and torques from outside onto the nodes
    drift        coordinates forward at constant velocity

A *node* is one degree of freedom: it turns about (HINGE) or slides along (SLIDE) the z axis of its frame. Joints with
several are several nodes in a row, of which only the last has mass: eliminating a block of the mass matrix at once or
column by column is the same. A BALL is three nodes that share one frame and turn about its x, y and z; it has a
quaternion. The ground is the row after the last node, so that no loop asks whether there is a parent.

All vectors are in world axes, and those of a node refer to the origin of its own frame (a hinge's anchor). So S is
(z, 0) or (0, z), only rigid inertias are ever rotated, and numbers stay as small as the links are, however far from the
world's origin these work. Accelerations are those of the material point (Featherstone's "classical" ones); c and p are
those of this choice.

Ref: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008. The symbols S, c, p, U, D, u are his.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, F3, I1, I2, viewer
from plant.numeric.algebra import cross


class NodeKind(IntEnum):
    """How a node moves."""

    HINGE = 0  # turns about z of its frame
    SLIDE = 1  # moves along z of its frame
    BALL = 2  # first of three nodes that share a frame: turns about its x
    BALL_NEXT = 3  # the other two: about its y and z


HINGE, SLIDE, BALL, BALL_NEXT = (int(k) for k in NodeKind)
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
    kind: I1  # [n] NodeKind
    at: I1  # [n] its place in q; a ball's quaternion for the first of its nodes
    run: I1  # [n] the lowest node from which an unbroken line of parents k, k + 1, ... leads here
    heavy: I1  # [n] 1 = a link with mass
    all: I1  # [n] 0, 1, 2, ...
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
    """Computed by place, and then by articulate or compose of plant.reduced.forward_dynamics."""

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
    speed: F2  # [n + 1, 3] of the origins [m/s]


class Bodies(NamedTuple):
    """Outputs in the layout of plant.model.State."""

    pos: F2  # [b, 3] centre of mass [m]
    quat: F2  # [b, 4]
    vel: F2  # [b, 6] linear [m/s], angular [rad/s]


class Loops(NamedTuple):
    """Joints that the tree leaves out, each closing a loop with its rows; r rows in all. See loop_closure.py."""

    node: I2  # [k, 2] which nodes carry a and b; n = the ground
    turning: I1  # [k] as in plant.constraint.joint
    frame: F3  # [k, 2, 12] joint frame in that of each node: rotation by rows, origin [m]
    length: F1  # [k] of a distance row [m]
    reach: F1  # [k] how large what it holds is [m]
    first: I1  # [k + 1] where its rows begin
    axis: I1  # [r] 0..2 linear, 3..5 angular, DISTANCE
    path_at: I1  # [k + 1] where its path begins
    path: I1  # nodes from both ends to the ground, the highest number first
    side: F1  # of these: 1 = carries only b, -1 = only a, 0 = both
    moved: I1  # nodes of all paths, the lowest number first
    seen: F3  # [k, 2, 12] joint frames: X, Y, Z axes; arm from the node's origin
    line: F2  # [r, 3] direction of a linear row, or about which an angular one turns
    error: F1  # [r] g [m, rad]
    rate: F1  # [r] g'' or g' with no forces in the rows
    jacobian: F2  # [r, n] over the nodes' velocities
    half: F2  # [r, n] inverse of L' times it, where the mass matrix is L' D L
    size: F1  # [r] what J M^-1 J' would be, were all that moves free to move along the row
    matrix: F2  # [r, r] J M^-1 J', lower triangle
    lower: F2  # [r, r] L of its factor L D L': rows as they are, columns in order of elimination
    pivot: F1  # [r] D's inverse, in that order
    order: I1  # [r] the rows in that order, then -1
    left: F1  # [r]
    force: F1  # [r] of the last evaluation: on b along the row, on a against it [N, N m]
    solved: F1  # [r]
    push: F2  # [n + 1, 6]
    shift: F1  # [n] change of velocities or coordinates


class Tree(NamedTuple):
    """One argument for every kernel."""

    setup: Setup
    node: Nodes
    part: Parts
    motion: Motion
    work: Work
    loop: Loops
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


@inline
def _frame(t, q, i):
    """Frame of node i from that of its parent, and its S axis; of a ball all three."""
    f, fixed, kind, p = t.work.frame, t.node.frame, t.node.kind[i], t.node.parent[i]
    ux, uy, uz, vx, vy, vz = f[p, 0], f[p, 1], f[p, 2], f[p, 3], f[p, 4], f[p, 5]
    wx, wy, wz = f[p, 6], f[p, 7], f[p, 8]
    e0, e1, e2, e3, e4 = fixed[i, 0], fixed[i, 1], fixed[i, 2], fixed[i, 3], fixed[i, 4]
    e5, e6, e7, e8 = fixed[i, 5], fixed[i, 6], fixed[i, 7], fixed[i, 8]
    ax, ay, az = ux * e0 + vx * e3 + wx * e6, uy * e0 + vy * e3 + wy * e6, uz * e0 + vz * e3 + wz * e6
    bx, by, bz = ux * e1 + vx * e4 + wx * e7, uy * e1 + vy * e4 + wy * e7, uz * e1 + vz * e4 + wz * e7
    cx, cy, cz = ux * e2 + vx * e5 + wx * e8, uy * e2 + vy * e5 + wy * e8, uz * e2 + vz * e5 + wz * e8
    e0, e1, e2 = fixed[i, 9], fixed[i, 10], fixed[i, 11]
    rx, ry, rz = ux * e0 + vx * e1 + wx * e2, uy * e0 + vy * e1 + wy * e2, uz * e0 + vz * e1 + wz * e2
    k = t.node.at[i]
    if kind == HINGE:
        co, si = math.cos(q[k]), math.sin(q[k])
        ax, bx = co * ax + si * bx, co * bx - si * ax
        ay, by = co * ay + si * by, co * by - si * ay
        az, bz = co * az + si * bz, co * bz - si * az
    elif kind == SLIDE:
        rx, ry, rz = rx + cx * q[k], ry + cy * q[k], rz + cz * q[k]
    else:
        ax, ay, az, bx, by, bz, cx, cy, cz = _ball(q, k, ax, ay, az, bx, by, bz, cx, cy, cz)
    f[i, 0], f[i, 1], f[i, 2], f[i, 3], f[i, 4], f[i, 5] = ax, ay, az, bx, by, bz
    f[i, 6], f[i, 7], f[i, 8] = cx, cy, cz
    f[i, 9], f[i, 10], f[i, 11] = f[p, 9] + rx, f[p, 10] + ry, f[p, 11] + rz
    f[i, 12], f[i, 13], f[i, 14] = rx, ry, rz
    if kind < BALL:
        f[i, 18], f[i, 19], f[i, 20] = cx, cy, cz
        return
    f[i, 18], f[i, 19], f[i, 20] = ax, ay, az
    for j in range(i + 1, i + 3):
        for c in range(12):
            f[j, c] = f[i, c]
        for c in range(3):
            f[j, 12 + c], f[j, 18 + c] = 0.0, f[i, 3 * (j - i) + c]


@kernel
def move(t, q, which):
    """Frames of the nodes `which`, parents first; their parents are among them or in place already."""
    for k in range(which.size):
        if t.node.kind[which[k]] != BALL_NEXT:
            _frame(t, q, which[k])


@kernel
def place(t, q, qd):
    """Frames, angular velocities, bias accelerations c, rigid inertias and bias forces p: table 7.1, first pass."""
    node, f, bias = t.node, t.work.frame, t.work.bias
    parent, kind = node.parent, node.kind
    n = parent.size
    for c in range(27):
        t.work.inertia[n, c] = 0.0
    for i in range(n):
        k, p = kind[i], parent[i]
        if k == BALL_NEXT:
            continue
        _frame(t, q, i)
        rx, ry, rz, x, y, z = f[i, 12], f[i, 13], f[i, 14], f[i, 18], f[i, 19], f[i, 20]
        sx, sy, sz = f[p, 15], f[p, 16], f[p, 17]  # angular velocity
        rate = qd[i]
        lx, ly, lz = cross(sx, sy, sz, rx, ry, rz)
        lx, ly, lz = cross(sx, sy, sz, lx, ly, lz)
        if k == HINGE:
            gx, gy, gz = cross(sx, sy, sz, x, y, z)
            bias[i, 0], bias[i, 1], bias[i, 2] = gx * rate, gy * rate, gz * rate
            sx, sy, sz = sx + x * rate, sy + y * rate, sz + z * rate
        elif k == SLIDE:
            gx, gy, gz = cross(sx, sy, sz, x, y, z)
            lx, ly, lz = lx + 2.0 * rate * gx, ly + 2.0 * rate * gy, lz + 2.0 * rate * gz
            bias[i, 0], bias[i, 1], bias[i, 2] = 0.0, 0.0, 0.0
        else:
            gx, gy, gz = turned(f, i, rate, qd[i + 1], qd[i + 2])
            bias[i, 0], bias[i, 1], bias[i, 2] = cross(sx, sy, sz, gx, gy, gz)
            sx, sy, sz = sx + gx, sy + gy, sz + gz
        bias[i, 3], bias[i, 4], bias[i, 5] = lx, ly, lz
        f[i, 15], f[i, 16], f[i, 17] = sx, sy, sz
        _rigid(t, i)
        if k != BALL:
            continue
        for j in range(i + 1, i + 3):
            for c in range(6):
                bias[j, c] = 0.0
            f[j, 15], f[j, 16], f[j, 17] = sx, sy, sz
            _rigid(t, j)


@kernel
def find_speeds(t, qd, which):
    """Linear velocities of the origins of the nodes `which`, parents first, where `place` has been."""
    f, kind, v = t.work.frame, t.node.kind, t.work.speed
    for k in range(which.size):
        i = which[k]
        p = t.node.parent[i]
        x, y, z = cross(f[p, 15], f[p, 16], f[p, 17], f[i, 12], f[i, 13], f[i, 14])
        rate = qd[i] if kind[i] == SLIDE else 0.0
        v[i, 0] = v[p, 0] + x + rate * f[i, 18]
        v[i, 1] = v[p, 1] + y + rate * f[i, 19]
        v[i, 2] = v[p, 2] + z + rate * f[i, 20]


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
        rx, ry, rz = turned(f, i, part.com[b, 0], part.com[b, 1], part.com[b, 2])
        nx, ny, nz = cross(rx, ry, rz, x, y, z)
        ia[i, 21] -= a + nx
        ia[i, 22] -= d + ny
        ia[i, 23] -= e + nz
        ia[i, 24] -= x
        ia[i, 25] -= y
        ia[i, 26] -= z


@inline
def turned(f, i, x, y, z):
    """A vector of node i's frame in world axes."""
    return (
        f[i, 0] * x + f[i, 3] * y + f[i, 6] * z,
        f[i, 1] * x + f[i, 4] * y + f[i, 7] * z,
        f[i, 2] * x + f[i, 5] * y + f[i, 8] * z,
    )


@inline
def along(f, kind, i, nx, ny, nz, fx, fy, fz):
    """S' of node i times a force at its origin."""
    if kind == SLIDE:
        return f[i, 18] * fx + f[i, 19] * fy + f[i, 20] * fz
    return f[i, 18] * nx + f[i, 19] * ny + f[i, 20] * nz


@inline
def turn_ball(q, k, x, y, z):
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
def drift(t, q, qd, h):
    """q forward by h at constant qd."""
    kind, at = t.node.kind, t.node.at
    for i in range(kind.size):
        if kind[i] < BALL:
            q[at[i]] += h * qd[i]
        elif kind[i] == BALL:
            turn_ball(q, at[i], h * qd[i], h * qd[i + 1], h * qd[i + 2])
