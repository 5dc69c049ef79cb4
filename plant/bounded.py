"""Bounded rows: motors, limits, joint friction and contacts. Each has an impulse between two bounds.

    motor     G v = target speed                  |impulse| <= h force
    limit     G v >= -(4/h) Y (gap) + Y G v       0 <= impulse
    friction  G v = 0                             |impulse| <= h force
    contact   normal as a limit (Vortex eq. 24), then two tangents,
              |impulse| <= mu times the normal's (scaled box, eq. 29)

The first tangent of a sliding contact points along the slip, so that the box is exact in the direction that matters.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.algebra import cross

MOTOR, LIMIT, FRICTION, CONTACT, TANGENT = 0, 1, 2, 3, 4
TOUCHING = 1e-5  # [m] across a smaller gap adhesion still holds
SLIDING = 1e-4  # [m/s] slower contacts keep the tangent of the last step


@inline
def _speed(state, a, b, ga, gb):
    """G v with the velocities before the step."""
    s = 0.0
    if a >= 0:
        for i in range(6):
            s += ga[i] * state.vel[a, i]
    if b >= 0:
        for i in range(6):
            s += gb[i] * state.vel[b, i]
    return s


@inline
def _arm_row(g, sign, nx, ny, nz, px, py, pz):
    g[0], g[1], g[2], g[3], g[4], g[5] = sign * nx, sign * ny, sign * nz, sign * px, sign * py, sign * pz


@kernel
def actuator_rows(e):
    """Rows of all motors, limits and friction on free axes of joints."""
    act, joint, d, h = e.model.actuator, e.model.joint, e.data, e.model.setup.h
    rows, target = d.bounded, d.target
    for i in range(act.joint.size):
        j, axis, kind = act.joint[i], act.axis[i], act.kind[i]
        k = rows.count[0]
        a, b = joint.a[j], joint.b[j]
        axes = d.row.axes[j]
        if axis < 3:
            nx, ny, nz = axes[axis, 0], axes[axis, 1], axes[axis, 2]
            rb, ra = d.row.arm[j, 1], d.row.arm[j, 0]
            # B's anchor seen from A's centre of mass: A's own arm and the slide
            sx = (
                ra[0] + axes[0, 0] * d.row.slide[j, 0] + axes[1, 0] * d.row.slide[j, 1] + axes[2, 0] * d.row.slide[j, 2]
            )
            sy = (
                ra[1] + axes[0, 1] * d.row.slide[j, 0] + axes[1, 1] * d.row.slide[j, 1] + axes[2, 1] * d.row.slide[j, 2]
            )
            sz = (
                ra[2] + axes[0, 2] * d.row.slide[j, 0] + axes[1, 2] * d.row.slide[j, 1] + axes[2, 2] * d.row.slide[j, 2]
            )
            px, py, pz = cross(sx, sy, sz, nx, ny, nz)
            _arm_row(rows.ga[k], -1.0, nx, ny, nz, px, py, pz)
            px, py, pz = cross(rb[0], rb[1], rb[2], nx, ny, nz)
            _arm_row(rows.gb[k], 1.0, nx, ny, nz, px, py, pz)
            where = d.row.slide[j, axis]
        else:
            _arm_row(rows.ga[k], -1.0, 0.0, 0.0, 0.0, axes[2, 0], axes[2, 1], axes[2, 2])
            _arm_row(rows.gb[k], 1.0, 0.0, 0.0, 0.0, axes[2, 0], axes[2, 1], axes[2, 2])
            where = d.state.angle[j]
        rows.a[k], rows.b[k], rows.kind[k], rows.of[k] = a, b, kind, i
        rows.low[k], rows.high[k] = h * target.low[i], h * target.high[i]
        rows.sigma[k] = act.sigma[i] if kind == LIMIT else 0.0
        rows.state[k] = rows.kept[i]
        if math.isinf(rows.low[k] if rows.state[k] < 0 else rows.high[k]):
            rows.state[k] = 0
        if kind == LIMIT:
            side = act.side[i]
            gap = side * (where - target.position[i])
            for c in range(6):
                rows.ga[k, c] *= side
                rows.gb[k, c] *= side
            speed = _speed(d.state, a, b, rows.ga[k], rows.gb[k])
            if gap + 2.0 * h * min(speed, 0.0) > 1e-3 and gap > 0.0:
                rows.kept[i] = -1
                continue  # far from the stop: no row in this step
            if gap < 0.0:
                rows.rhs[k] = max(0.0, act.upsilon[i] * (-4.0 / h * gap + speed))
            else:
                rows.rhs[k] = -gap / h
        elif kind == MOTOR and target.gain[i] > 0.0:
            rows.rhs[k] = target.speed[i] + target.gain[i] * (target.position[i] - where)
        else:
            rows.rhs[k] = target.speed[i]
        rows.count[0] = k + 1


@kernel
def warm_contacts(contact):
    """Impulses and tangents of contacts that stayed, by their feature. Both lists are short or sorted alike."""
    n, old = contact.count[0], contact.old_count[0]
    contact.new[0] = n
    for c in range(n):
        contact.impulse[c, 0] = contact.impulse[c, 1] = contact.impulse[c, 2] = 0.0
        contact.tangent[c, 0] = contact.tangent[c, 1] = contact.tangent[c, 2] = 0.0
        for s in range(old):
            o = (c + s) % old
            if contact.old_feature[o] == contact.feature[c]:
                for i in range(3):
                    contact.impulse[c, i] = contact.old_impulse[o, i]
                    contact.tangent[c, i] = contact.old_tangent[o, i]
                contact.new[0] -= 1
                break


@kernel
def contact_rows(e):
    """A normal and two tangent rows for every contact in the list."""
    m, d, h = e.model, e.data, e.model.setup.h
    contact, rows, state = d.contact, d.bounded, d.state
    for c in range(contact.count[0]):
        a, b, pair = contact.body[c, 0], contact.body[c, 1], contact.pair[c]
        n = contact.normal[c]
        k = rows.count[0]
        _contact_row(contact.point[c], state, rows, k, a, b, n[0], n[1], n[2])
        rows.kind[k], rows.of[k] = CONTACT, c
        speed = _speed(state, a, b, rows.ga[k], rows.gb[k])
        depth = contact.depth[c]
        if depth > 0.0:
            rows.rhs[k] = max(0.0, m.material.upsilon[pair] * (4.0 / h * depth + speed))
            rows.sigma[k] = m.material.sigma[pair]
            rows.low[k] = -h * m.material.adhesion[pair]
        else:  # not yet touching: it may come as close as the gap
            rows.rhs[k] = depth / h
            rows.sigma[k] = 0.0
            rows.low[k] = -h * m.material.adhesion[pair] if depth > -TOUCHING else 0.0
        rows.high[k] = math.inf
        rows.state[k] = 0 if contact.impulse[c, 0] > 0.0 or depth > 0.0 else -1
        rows.state[k + 1] = rows.state[k + 2] = 0
        _choose_tangent(contact, c, state, rows, k)
        t = contact.tangent[c]
        ux, uy, uz = cross(n[0], n[1], n[2], t[0], t[1], t[2])
        reach = m.material.friction[pair] * contact.impulse[c, 0]
        for i in range(2):
            q = k + 1 + i
            if i == 0:
                _contact_row(contact.point[c], state, rows, q, a, b, t[0], t[1], t[2])
            else:
                _contact_row(contact.point[c], state, rows, q, a, b, ux, uy, uz)
            rows.kind[q], rows.of[q] = TANGENT, c
            rows.rhs[q] = 0.0
            rows.sigma[q] = m.material.slip[pair] / h
            rows.low[q], rows.high[q] = -reach, reach
        rows.count[0] = k + 3


@inline
def _contact_row(point, state, rows, k, a, b, nx, ny, nz):
    rows.a[k], rows.b[k] = a, b
    for i in range(6):
        rows.ga[k, i] = rows.gb[k, i] = 0.0
    if a >= 0:
        px, py, pz = cross(
            point[0] - state.pos[a, 0], point[1] - state.pos[a, 1], point[2] - state.pos[a, 2], nx, ny, nz
        )
        _arm_row(rows.ga[k], 1.0, nx, ny, nz, px, py, pz)
    if b >= 0:
        px, py, pz = cross(
            point[0] - state.pos[b, 0], point[1] - state.pos[b, 1], point[2] - state.pos[b, 2], nx, ny, nz
        )
        _arm_row(rows.gb[k], -1.0, nx, ny, nz, px, py, pz)


@kernel
def _choose_tangent(contact, c, state, rows, k):
    """Along the slip if it slides, else as in the last step, else any."""
    n, t = contact.normal[c], contact.tangent[c]
    vx, vy, vz = _slip(contact.point[c], state, contact.body[c, 0], contact.body[c, 1])
    s = vx * n[0] + vy * n[1] + vz * n[2]
    vx, vy, vz = vx - s * n[0], vy - s * n[1], vz - s * n[2]
    size = math.sqrt(vx * vx + vy * vy + vz * vz)
    if size < SLIDING:
        s = t[0] * n[0] + t[1] * n[1] + t[2] * n[2]
        vx, vy, vz = t[0] - s * n[0], t[1] - s * n[1], t[2] - s * n[2]
        size = math.sqrt(vx * vx + vy * vy + vz * vz)
    if size < 1e-6:
        if abs(n[0]) < 0.7:
            vx, vy, vz = 1.0 - n[0] * n[0], -n[0] * n[1], -n[0] * n[2]
        else:
            vx, vy, vz = -n[1] * n[0], 1.0 - n[1] * n[1], -n[1] * n[2]
        size = math.sqrt(vx * vx + vy * vy + vz * vz)
    t[0], t[1], t[2] = vx / size, vy / size, vz / size


@inline
def _slip(point, state, a, b):
    """Velocity of the first body against the second at the point."""
    x, y, z = 0.0, 0.0, 0.0
    for side in range(2):
        q = a if side == 0 else b
        if q >= 0:
            s = 1.0 if side == 0 else -1.0
            v = state.vel[q]
            rx, ry, rz = point[0] - state.pos[q, 0], point[1] - state.pos[q, 1], point[2] - state.pos[q, 2]
            cx, cy, cz = cross(v[3], v[4], v[5], rx, ry, rz)
            x, y, z = x + s * (v[0] + cx), y + s * (v[1] + cy), z + s * (v[2] + cz)
    return x, y, z


@kernel
def keep_rows(e):
    """What this step found, kept for the next: states by actuator, impulses by feature.

    The first tangent of a contact at rest turns to where its friction points, so that the box bounds it as the
    cone would.
    """
    contact, rows = e.data.contact, e.data.bounded
    for k in range(rows.count[0]):
        c = rows.of[k]
        if rows.kind[k] < CONTACT:
            rows.kept[c] = rows.state[k]
        elif rows.kind[k] == CONTACT:
            n, t = contact.normal[c], contact.tangent[c]
            p, q = rows.value[k + 1], rows.value[k + 2]
            size = math.sqrt(p * p + q * q)
            contact.impulse[c, 0], contact.impulse[c, 1], contact.impulse[c, 2] = rows.value[k], size, 0.0
            if size > 1e-9 * abs(rows.value[k]) and size > 0.0:
                ux, uy, uz = cross(n[0], n[1], n[2], t[0], t[1], t[2])
                p, q = p / size, q / size
                t[0], t[1], t[2] = p * t[0] + q * ux, p * t[1] + q * uy, p * t[2] + q * uz
    n_contacts = contact.count[0]
    contact.old_count[0] = n_contacts
    for c in range(n_contacts):
        contact.old_feature[c] = contact.feature[c]
        for i in range(3):
            contact.old_impulse[c, i] = contact.impulse[c, i]
            contact.old_tangent[c, i] = contact.tangent[c, i]
