"""From poses of bodies to natural coordinates (points and vectors), and back.

Entity k of a body is made[k, 0] x (origin) + (axes) made[k, 1:], with the origin at the centre of mass. Four of them
that span the frame give it back by the inverse: no trigonometry either way, so nothing is lost but rounding.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind
from plant.numeric.algebra import cross, rotation, turn

DYNAMIC, KINEMATIC = int(BodyKind.DYNAMIC), int(BodyKind.KINEMATIC)


@inline
def _spread(local, pos, rot, x, out):
    """A point or vector of a frame, from its place there."""
    for i in range(3):
        out[x, i] = local[0] * pos[i] + rot[i, 0] * local[1] + rot[i, 1] * local[2] + rot[i, 2] * local[3]


@kernel
def _spread_motion(ent, x, local, vel, rot):
    """Velocity of a point or vector of a frame that moves with `vel`, and its acceleration while that stays."""
    rx = rot[0, 0] * local[1] + rot[0, 1] * local[2] + rot[0, 2] * local[3]
    ry = rot[1, 0] * local[1] + rot[1, 1] * local[2] + rot[1, 2] * local[3]
    rz = rot[2, 0] * local[1] + rot[2, 1] * local[2] + rot[2, 2] * local[3]
    ux, uy, uz = cross(vel[3], vel[4], vel[5], rx, ry, rz)
    ent.v[x, 0] = local[0] * vel[0] + ux
    ent.v[x, 1] = local[0] * vel[1] + uy
    ent.v[x, 2] = local[0] * vel[2] + uz
    ent.a[x, 0], ent.a[x, 1], ent.a[x, 2] = cross(vel[3], vel[4], vel[5], ux, uy, uz)


@kernel
def take_poses(e, n):
    """Entities from poses. One that is shared takes what the last of its bodies says."""
    state, frame, ent = e.data.state, e.data.frame, n.entity
    for b in range(e.model.body.mass.size):
        if e.model.body.kind[b] != DYNAMIC:
            continue
        for k in range(4):
            x = n.frame.of[b, k]
            if ent.known[x] == 0:
                _spread(n.frame.made[b, k], state.pos[b], frame.rot[b], x, ent.q)
                ent.v[x, 0] = ent.v[x, 1] = ent.v[x, 2] = 0.0
    _take_known(e, n)


@kernel
def take_momenta(e, n):
    """residual = M v - M_b v_b of every body, with v of the entities of now and v_b of the bodies' own motion.

    Bodies that share an entity may say different things about it: joined in motion, they keep their momentum.
    """
    state, frame, ent, f = e.data.state, e.data.frame, n.entity, n.frame
    for x in range(ent.count[0]):
        ent.residual[x, 0] = ent.residual[x, 1] = ent.residual[x, 2] = 0.0
    for b in range(e.model.body.mass.size):
        if e.model.body.kind[b] != DYNAMIC:
            continue
        rot, vel = frame.rot[b], state.vel[b]
        for o in range(4):
            made, y = f.made[b, o], f.of[b, o]
            rx = rot[0, 0] * made[1] + rot[0, 1] * made[2] + rot[0, 2] * made[3]
            ry = rot[1, 0] * made[1] + rot[1, 1] * made[2] + rot[1, 2] * made[3]
            rz = rot[2, 0] * made[1] + rot[2, 1] * made[2] + rot[2, 2] * made[3]
            ux, uy, uz = cross(vel[3], vel[4], vel[5], rx, ry, rz)
            ux = ent.v[y, 0] - ux - made[0] * vel[0]
            uy = ent.v[y, 1] - uy - made[0] * vel[1]
            uz = ent.v[y, 2] - uz - made[0] * vel[2]
            for k in range(4):
                x, m = f.of[b, k], f.mass[b, k, o]
                ent.residual[x, 0] += m * ux
                ent.residual[x, 1] += m * uy
                ent.residual[x, 2] += m * uz


@kernel
def _take_known(e, n):
    state, frame, ent = e.data.state, e.data.frame, n.entity
    for x in range(ent.count[0]):
        b = ent.owner[x]
        if ent.known[x] == 1 and 0 <= b < e.model.body.mass.size:
            _spread(ent.local[x], state.pos[b], frame.rot[b], x, ent.q)
            _spread_motion(ent, x, ent.local[x], state.vel[b], frame.rot[b])


@kernel
def move_known(e, n):
    """Bodies that move as they are told to the end of the step, and their entities with them."""
    m, state, frame, h = e.model, e.data.state, e.data.frame, e.model.setup.h
    moved = False
    for b in range(m.body.mass.size):
        if m.body.kind[b] == KINEMATIC:
            v, x = state.vel[b], state.pos[b]
            x[0] += h * v[0]
            x[1] += h * v[1]
            x[2] += h * v[2]
            turn(state.quat[b], h * v[3], h * v[4], h * v[5])
            rotation(state.quat[b], frame.rot[b])
            moved = True
    if moved:
        _take_known(e, n)


@kernel
def give_poses(e, n):
    """Poses and velocities from entities; 0, or 1 + body whose state is not finite."""
    state, frame, ent = e.data.state, e.data.frame, n.entity
    for b in range(e.model.body.mass.size):
        if e.model.body.kind[b] != DYNAMIC:
            continue
        pos, v = state.pos[b], state.vel[b]
        frame_of(ent, n.frame.of[b], n.frame.part[b], pos, frame.rot[b], v)
        quaternion_of(frame.rot[b], state.quat[b])
        if not math.isfinite(pos[0] + pos[1] + pos[2] + v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + state.quat[b, 0]):
            return 1 + b
    return 0


@kernel
def frame_of(ent, of, part, pos, rot, vel):
    """Place, axes and velocities of a body that is made of the entities `of` [4]."""
    wx, wy, wz = 0.0, 0.0, 0.0
    for i in range(3):
        pos[i] = vel[i] = 0.0
        for k in range(4):
            pos[i] += part[k, 0] * ent.q[of[k], i]
            vel[i] += part[k, 0] * ent.v[of[k], i]
    for axis in range(3):
        ux, uy, uz = 0.0, 0.0, 0.0
        for i in range(3):
            rot[i, axis] = 0.0
        for k in range(4):
            s, x = part[k, 1 + axis], of[k]
            for i in range(3):
                rot[i, axis] += s * ent.q[x, i]
            ux, uy, uz = ux + s * ent.v[x, 0], uy + s * ent.v[x, 1], uz + s * ent.v[x, 2]
        cx, cy, cz = cross(rot[0, axis], rot[1, axis], rot[2, axis], ux, uy, uz)
        wx, wy, wz = wx + 0.5 * cx, wy + 0.5 * cy, wz + 0.5 * cz
    vel[3], vel[4], vel[5] = wx, wy, wz


@kernel
def quaternion_of(r, q):
    """Unit quaternion of a rotation matrix, on the side of the one that was there before."""
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    if trace > 0.0:
        w, x, y, z = 1.0 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    elif r[0, 0] >= r[1, 1] and r[0, 0] >= r[2, 2]:
        w, x = r[2, 1] - r[1, 2], 1.0 + r[0, 0] - r[1, 1] - r[2, 2]
        y, z = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]
    elif r[1, 1] >= r[2, 2]:
        w, x = r[0, 2] - r[2, 0], r[0, 1] + r[1, 0]
        y, z = 1.0 - r[0, 0] + r[1, 1] - r[2, 2], r[1, 2] + r[2, 1]
    else:
        w, x = r[1, 0] - r[0, 1], r[0, 2] + r[2, 0]
        y, z = r[1, 2] + r[2, 1], 1.0 - r[0, 0] - r[1, 1] + r[2, 2]
    s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    if w * q[0] + x * q[1] + y * q[2] + z * q[3] < 0.0:
        s = -s
    q[0], q[1], q[2], q[3] = s * w, s * x, s * y, s * z


@kernel
def load_entities(e, n):
    """Forces that do not change within the step: gravity, wrenches from outside, force fields."""
    m, state, rot, ent = e.model, e.data.state, e.data.frame.rot, n.entity
    for x in range(ent.count[0]):
        ent.load[x, 0] = ent.load[x, 1] = ent.load[x, 2] = 0.0
    for b in range(m.body.mass.size):
        if m.body.kind[b] != DYNAMIC:
            continue
        mass, w, f, part = m.body.mass[b], state.wrench[b], state.field_wrench[b], n.frame.part[b]
        fx, fy, fz = mass * m.setup.gx + w[0] + f[0], mass * m.setup.gy + w[1] + f[1], mass * m.setup.gz + w[2] + f[2]
        for k in range(4):
            x, s = n.frame.of[b, k], part[k, 0]
            ent.load[x, 0] += s * fx
            ent.load[x, 1] += s * fy
            ent.load[x, 2] += s * fz
        _load_torque(ent, n.frame.of[b], part, rot[b], w[3] + f[3], w[4] + f[4], w[5] + f[5])


@inline
def _load_torque(ent, of, part, rot, tx, ty, tz):
    """A torque, as half of torque x axis on each axis: the work of any rigid turn is then torque . turn."""
    if tx == 0.0 and ty == 0.0 and tz == 0.0:
        return
    for axis in range(3):
        cx, cy, cz = cross(tx, ty, tz, rot[0, axis], rot[1, axis], rot[2, axis])
        for k in range(4):
            s = 0.5 * part[k, 1 + axis]
            ent.load[of[k], 0] += s * cx
            ent.load[of[k], 1] += s * cy
            ent.load[of[k], 2] += s * cz
