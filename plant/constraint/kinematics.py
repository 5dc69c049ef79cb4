"""Kinematics and loads: rotation matrices, inertia in world axes, and the momentum that the step starts from.

The gyroscopic term (Vortex 2.4) is treated by momentum: a body's angular momentum, not its angular velocity, is
carried from step to step, and the inertia that turns one into the other is taken at the middle of the step. A
free body keeps its angular momentum to rounding, and its energy to second order, without any damping.
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from plant.codes import BodyKind
from plant.numeric.algebra import rotation, turn

DYNAMIC, KINEMATIC, ABSENT = int(BodyKind.DYNAMIC), int(BodyKind.KINEMATIC), int(BodyKind.ABSENT)


@kernel
def world_inertia(r, local, out):
    """`out` = R I R'."""
    for i in range(3):
        a0 = r[i, 0] * local[0, 0] + r[i, 1] * local[1, 0] + r[i, 2] * local[2, 0]
        a1 = r[i, 0] * local[0, 1] + r[i, 1] * local[1, 1] + r[i, 2] * local[2, 1]
        a2 = r[i, 0] * local[0, 2] + r[i, 1] * local[1, 2] + r[i, 2] * local[2, 2]
        for j in range(3):
            out[i, j] = a0 * r[j, 0] + a1 * r[j, 1] + a2 * r[j, 2]


@kernel
def solve3(m, x, y, z):
    """M^-1 (x, y, z) for a symmetric 3 x 3 matrix, by cofactors."""
    a, b, c, d, e, f = m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]
    c00, c01, c02 = d * f - e * e, c * e - b * f, b * e - c * d
    c11, c12, c22 = a * f - c * c, b * c - a * e, a * d - b * b
    det = 1.0 / (a * c00 + b * c01 + c * c02)
    return (
        det * (c00 * x + c01 * y + c02 * z),
        det * (c01 * x + c11 * y + c12 * z),
        det * (c02 * x + c12 * y + c22 * z),
    )


@kernel
def invert3(m, out):
    """`out` = M^-1 for a symmetric 3 x 3 matrix, by cofactors."""
    a, b, c, d, e, f = m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]
    c00, c01, c02 = d * f - e * e, c * e - b * f, b * e - c * d
    c11, c12, c22 = a * f - c * c, b * c - a * e, a * d - b * b
    det = 1.0 / (a * c00 + b * c01 + c * c02)
    out[0, 0], out[1, 1], out[2, 2] = det * c00, det * c11, det * c22
    out[0, 1] = out[1, 0] = det * c01
    out[0, 2] = out[2, 0] = det * c02
    out[1, 2] = out[2, 1] = det * c12


@kernel
def place_bodies(e):
    """Rotation matrices and inertia of every body, at the poses of now."""
    m, d = e.model, e.data
    for b in range(m.body.mass.size):
        if m.body.kind[b] == ABSENT or d.state.asleep[b] == 1:
            continue
        rotation(d.state.quat[b], d.frame.rot[b])
        if m.body.kind[b] == DYNAMIC:
            world_inertia(d.frame.rot[b], m.body.inertia[b], d.frame.inertia[b])


@kernel
def load_bodies(e, h):
    """Momentum M v + h f of every dynamic body, gravity, force fields and the wrench from outside included."""
    m, d = e.model, e.data
    for b in range(m.body.mass.size):
        if m.body.kind[b] != DYNAMIC or d.state.asleep[b] == 1:
            continue
        v, w, f = d.state.vel[b], d.state.wrench[b], d.state.field_wrench[b]
        p, i, mass = d.frame.momentum[b], d.frame.inertia[b], m.body.mass[b]
        p[0] = mass * v[0] + h * (mass * m.setup.gx + w[0] + f[0])
        p[1] = mass * v[1] + h * (mass * m.setup.gy + w[1] + f[1])
        p[2] = mass * v[2] + h * (mass * m.setup.gz + w[2] + f[2])
        for k in range(3):
            p[3 + k] = i[k, 0] * v[3] + i[k, 1] * v[4] + i[k, 2] * v[5] + h * (w[3 + k] + f[3 + k])


@kernel
def move_bodies(e):
    """Poses to the end of the step with the new velocities; angular velocity again from the momentum there.

    Returns 0, or 1 + body whose state is no longer finite.
    """
    m, d, h = e.model, e.data, e.model.setup.h
    for b in range(m.body.mass.size):
        if m.body.kind[b] > KINEMATIC or d.state.asleep[b] == 1:
            continue
        v, x, q = d.state.vel[b], d.state.pos[b], d.state.quat[b]
        x[0] += h * v[0]
        x[1] += h * v[1]
        x[2] += h * v[2]
        if m.body.kind[b] == DYNAMIC:
            _turn_freely(d.state, d.frame, m.body.inertia[b], b, h)
        else:
            turn(q, h * v[3], h * v[4], h * v[5])
        if not math.isfinite(x[0] + x[1] + x[2] + v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + q[0]):
            return 1 + b
    return 0


@kernel
def _turn_freely(state, frame, local, b, h):
    """Turn by the angular velocity that the momentum L = I w gives at the middle of the step, then w = I^-1 L
    at its end."""
    v, q, i, r = state.vel[b], state.quat[b], frame.inertia[b], frame.rot[b]
    lx = i[0, 0] * v[3] + i[0, 1] * v[4] + i[0, 2] * v[5]
    ly = i[1, 0] * v[3] + i[1, 1] * v[4] + i[1, 2] * v[5]
    lz = i[2, 0] * v[3] + i[2, 1] * v[4] + i[2, 2] * v[5]
    q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
    turn(q, 0.5 * h * v[3], 0.5 * h * v[4], 0.5 * h * v[5])
    rotation(q, r)
    world_inertia(r, local, i)
    wx, wy, wz = solve3(i, lx, ly, lz)
    q[0], q[1], q[2], q[3] = q0, q1, q2, q3
    turn(q, h * wx, h * wy, h * wz)
    rotation(q, r)
    world_inertia(r, local, i)
    v[3], v[4], v[5] = solve3(i, lx, ly, lz)
