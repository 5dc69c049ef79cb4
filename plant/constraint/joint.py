"""Joint rows of the six-axis joint: constraints g(q) = 0, their Jacobians over the two bodies, their regularisation.

With joint frames A and B (origin and axes, fixed in the two bodies, or in the ground), x = origin of B seen
from A's body:

    linear axis k    g = a_k . (o_B - o_A)
                     g' = a_k . (v_B + w_B x r_B) - a_k . v_A - ((o_B - x_A) x a_k) . w_A      a_k turns with A

    turning rows     NONE_FREE   g = 2 vec(q_A* q_B), in axes of A; g' = a_k . (w_B - w_A) near zero
                     ONE_FREE    g_1 = b_z . a_x, g_2 = b_z . a_y;  g' = (b_z x a_i) . (w_B - w_A)
                     TWO_FREE    g = b_y . a_x;                       g' = (b_y x a_x) . (w_B - w_A)

    distance         g = |o_B - o_A| - length, along u = (o_B - o_A) / |o_B - o_A|: a linear row whose axis is u

Beside each g stands its second derivative at constant velocities: what the linearised g misses in a step. SPOOK
leaves it out; with it the joints of a fast chain stay together ten to a hundred times better at the same cost.

The dot products are exact for any turn about the free axis. Ref: Vortex 2.2; SPOOK eq. 7, 9 for the regularisation.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import Turning
from plant.model import DISTANCE
from plant.numeric.algebra import cross, quat_mul, rotation

ALL_FREE, NONE_FREE = int(Turning.ALL_FREE), int(Turning.NONE_FREE)
ONE_FREE, TWO_FREE = int(Turning.ONE_FREE), int(Turning.TWO_FREE)


@inline
def _anchor(state, frame, b, p, out):
    """Arm from body `b`'s centre of mass to the anchor, world axes; the ground's centre is the origin."""
    if b < 0:
        out[0], out[1], out[2] = p[0], p[1], p[2]
    else:
        r = frame.rot[b]
        for i in range(3):
            out[i] = r[i, 0] * p[0] + r[i, 1] * p[1] + r[i, 2] * p[2]


@inline
def _put(g, k, lx, ly, lz, ax, ay, az):
    g[k, 0], g[k, 1], g[k, 2], g[k, 3], g[k, 4], g[k, 5] = lx, ly, lz, ax, ay, az


@inline
def _velocity(state, b, arm, v, w):
    """Velocity of body `b` at the end of `arm`, and its angular velocity."""
    if b < 0:
        v[0] = v[1] = v[2] = w[0] = w[1] = w[2] = 0.0
        return
    u = state.vel[b]
    w[0], w[1], w[2] = u[3], u[4], u[5]
    x, y, z = cross(u[3], u[4], u[5], arm[0], arm[1], arm[2])
    v[0], v[1], v[2] = u[0] + x, u[1] + y, u[2] + z


@inline
def _g_ddot(wa, ax, ay, az, dx, dy, dz, ux, uy, uz, cx, cy, cz):
    """(a . d)'' = a'' . d + 2 a' . d' + a . d'' for an axis a that turns with body A, at constant velocities."""
    px, py, pz = cross(wa[0], wa[1], wa[2], ax, ay, az)
    qx, qy, qz = cross(wa[0], wa[1], wa[2], px, py, pz)
    return qx * dx + qy * dy + qz * dz + 2.0 * (px * ux + py * uy + pz * uz) + ax * cx + ay * cy + az * cz


@inline
def _unwound(angle, before):
    """The turn that differs from `angle` by whole revolutions and is nearest to `before`."""
    return angle + 2.0 * math.pi * round((before - angle) / (2.0 * math.pi))


@kernel
def joint_rows(e, scratch):
    """All joints: axes, arms, Jacobians and errors."""
    for j in range(e.model.joint.a.size):
        if e.model.joint.on[j] == 1:
            _one_joint(e, j, scratch)


@kernel
def _one_joint(e, j, scratch):
    joint, state, frame, row = e.model.joint, e.data.state, e.data.frame, e.data.row
    a, b = joint.a[j], joint.b[j]
    axes, arms = row.axes[j], row.arm[j]
    qa, qb, rb = scratch[0], scratch[1], scratch[4:7]
    if a < 0:
        qa[:4] = joint.qa[j]
    else:
        quat_mul(state.quat[a], joint.qa[j], qa)
    if b < 0:
        qb[:4] = joint.qb[j]
    else:
        quat_mul(state.quat[b], joint.qb[j], qb)
    rotation(qa, scratch[7:10])
    for i in range(3):
        for k in range(3):
            axes[k, i] = scratch[7 + i, k]  # by rows: axis k of frame A
    rotation(qb, rb)
    _anchor(state, frame, a, joint.pa[j], arms[0])
    _anchor(state, frame, b, joint.pb[j], arms[1])
    # from A's centre of mass (or the origin) to B's anchor
    sx, sy, sz = arms[1, 0], arms[1, 1], arms[1, 2]
    if b >= 0:
        sx, sy, sz = sx + state.pos[b, 0], sy + state.pos[b, 1], sz + state.pos[b, 2]
    if a >= 0:
        sx, sy, sz = sx - state.pos[a, 0], sy - state.pos[a, 1], sz - state.pos[a, 2]
    dx, dy, dz = sx - arms[0, 0], sy - arms[0, 1], sz - arms[0, 2]
    for k in range(3):
        row.slide[j, k] = axes[k, 0] * dx + axes[k, 1] * dy + axes[k, 2] * dz
    wa, wb = scratch[2, 3:6], scratch[3, 3:6]
    va, vb = scratch[2, :3], scratch[3, :3]
    _velocity(state, a, arms[0], va, wa)
    _velocity(state, b, arms[1], vb, wb)
    ux, uy, uz = vb[0] - va[0], vb[1] - va[1], vb[2] - va[2]  # of the anchors, and their centripetal acceleration
    px, py, pz = cross(wb[0], wb[1], wb[2], arms[1, 0], arms[1, 1], arms[1, 2])
    cx, cy, cz = cross(wb[0], wb[1], wb[2], px, py, pz)
    px, py, pz = cross(wa[0], wa[1], wa[2], arms[0, 0], arms[0, 1], arms[0, 2])
    px, py, pz = cross(wa[0], wa[1], wa[2], px, py, pz)
    cx, cy, cz = cx - px, cy - py, cz - pz
    turning = joint.turning[j]
    if turning == ONE_FREE:  # the free angle about z, unwound
        c = axes[0, 0] * rb[0, 0] + axes[0, 1] * rb[1, 0] + axes[0, 2] * rb[2, 0]
        s = axes[1, 0] * rb[0, 0] + axes[1, 1] * rb[1, 0] + axes[1, 2] * rb[2, 0]
        state.angle[j, 0] = _unwound(math.atan2(s, c), state.angle[j, 0])
    if turning == TWO_FREE:  # about x of A, then about y of B
        y = row.spin_axis[j]
        y[0], y[1], y[2] = rb[0, 1], rb[1, 1], rb[2, 1]
        c = axes[1, 0] * y[0] + axes[1, 1] * y[1] + axes[1, 2] * y[2]
        s = axes[2, 0] * y[0] + axes[2, 1] * y[1] + axes[2, 2] * y[2]
        state.angle[j, 0] = _unwound(math.atan2(s, c), state.angle[j, 0])
        c = axes[0, 0] * rb[0, 0] + axes[0, 1] * rb[1, 0] + axes[0, 2] * rb[2, 0]
        s = axes[0, 0] * rb[0, 2] + axes[0, 1] * rb[1, 2] + axes[0, 2] * rb[2, 2]
        state.angle[j, 1] = _unwound(math.atan2(s, c), state.angle[j, 1])
    if turning == NONE_FREE:
        w = qa[0] * qb[0] + qa[1] * qb[1] + qa[2] * qb[2] + qa[3] * qb[3]
        sign = 2.0 if w >= 0.0 else -2.0
        vx = sign * (qa[0] * qb[1] - qa[1] * qb[0] - qa[2] * qb[3] + qa[3] * qb[2])
        vy = sign * (qa[0] * qb[2] + qa[1] * qb[3] - qa[2] * qb[0] - qa[3] * qb[1])
        vz = sign * (qa[0] * qb[3] - qa[1] * qb[2] + qa[2] * qb[1] - qa[3] * qb[0])
        qa[0], qa[1], qa[2] = vx, vy, vz
    for k in range(6):
        axis = joint.axis[j, k]
        if axis < 0:
            continue
        ga, gb = row.ga[j], row.gb[j]
        if axis < 3 or axis == DISTANCE:
            if axis == DISTANCE:
                length = math.sqrt(dx * dx + dy * dy + dz * dz)
                nx, ny, nz = axes[0, 0], axes[0, 1], axes[0, 2]
                if length > 0.0:
                    nx, ny, nz = dx / length, dy / length, dz / length
                row.error[j, k] = length - joint.length[j]
            else:
                nx, ny, nz = axes[axis, 0], axes[axis, 1], axes[axis, 2]
                row.error[j, k] = row.slide[j, axis]
            px, py, pz = cross(sx, sy, sz, nx, ny, nz)
            _put(ga, k, -nx, -ny, -nz, -px, -py, -pz)
            px, py, pz = cross(arms[1, 0], arms[1, 1], arms[1, 2], nx, ny, nz)
            _put(gb, k, nx, ny, nz, px, py, pz)
            if axis == DISTANCE:
                speed = ux * nx + uy * ny + uz * nz
                across = ux * ux + uy * uy + uz * uz - speed * speed
                row.g_ddot[j, k] = nx * cx + ny * cy + nz * cz + (across / length if length > 0.0 else 0.0)
            else:
                row.g_ddot[j, k] = _g_ddot(wa, nx, ny, nz, dx, dy, dz, ux, uy, uz, cx, cy, cz)
            continue
        if turning == NONE_FREE:
            nx, ny, nz = axes[axis - 3, 0], axes[axis - 3, 1], axes[axis - 3, 2]
            row.error[j, k] = qa[axis - 3]
            row.g_ddot[j, k] = 0.0  # no relative turn: g'' = 0
        else:
            column = 2 if turning == ONE_FREE else 1
            i = axis - 3 if turning == ONE_FREE else 0
            tx, ty, tz = rb[0, column], rb[1, column], rb[2, column]
            row.error[j, k] = tx * axes[i, 0] + ty * axes[i, 1] + tz * axes[i, 2]
            nx, ny, nz = cross(tx, ty, tz, axes[i, 0], axes[i, 1], axes[i, 2])
            px, py, pz = cross(wb[0], wb[1], wb[2], tx, ty, tz)
            qx, qy, qz = cross(wb[0], wb[1], wb[2], px, py, pz)
            row.g_ddot[j, k] = _g_ddot(wa, axes[i, 0], axes[i, 1], axes[i, 2], tx, ty, tz, px, py, pz, qx, qy, qz)
        _put(ga, k, 0.0, 0.0, 0.0, -nx, -ny, -nz)
        _put(gb, k, 0.0, 0.0, 0.0, nx, ny, nz)
