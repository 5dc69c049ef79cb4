"""Jacobians of contacts: rows along a direction at the point, the slip there, the tangents.

Rigid and smooth contacts are both written in these.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.constraint.joint_coordinate import put
from plant.numeric.algebra import cross


@inline
def contact_row(point, state, rows, k, a, b, nx, ny, nz):
    """Row `k`: speed of a's point against b's along (nx, ny, nz)."""
    rows.a[k], rows.b[k], rows.slot[k] = a, b, -1
    for i in range(6):
        rows.ga[k, i] = rows.gb[k, i] = 0.0
    if a >= 0:
        px, py, pz = cross(
            point[0] - state.pos[a, 0], point[1] - state.pos[a, 1], point[2] - state.pos[a, 2], nx, ny, nz
        )
        put(rows.ga[k], 1.0, nx, ny, nz, px, py, pz)
    if b >= 0:
        px, py, pz = cross(
            point[0] - state.pos[b, 0], point[1] - state.pos[b, 1], point[2] - state.pos[b, 2], nx, ny, nz
        )
        put(rows.gb[k], -1.0, nx, ny, nz, px, py, pz)


@inline
def spin_row(rows, k, a, b, x, y, z):
    """Row `k`: angular speed of a against b about (x, y, z)."""
    rows.a[k], rows.b[k], rows.slot[k] = a, b, -1
    for i in range(6):
        rows.ga[k, i] = rows.gb[k, i] = 0.0
    if a >= 0:
        put(rows.ga[k], 1.0, 0.0, 0.0, 0.0, x, y, z)
    if b >= 0:
        put(rows.gb[k], -1.0, 0.0, 0.0, 0.0, x, y, z)


@kernel
def choose_tangent(contact, c, state, slow):
    """Along the slip if it slides, else as in the last step, else any; returns the speed of the slip."""
    n, t = contact.normal[c], contact.tangent[c]
    vx, vy, vz = slip_at(contact.point[c], state, contact.body[c, 0], contact.body[c, 1])
    s = vx * n[0] + vy * n[1] + vz * n[2]
    vx, vy, vz = vx - s * n[0], vy - s * n[1], vz - s * n[2]
    slip = size = math.sqrt(vx * vx + vy * vy + vz * vz)
    if slip < slow:
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
    return slip


@inline
def spin_between(state, a, b):
    """Angular velocity of the first body against the second."""
    x, y, z = 0.0, 0.0, 0.0
    if a >= 0:
        x, y, z = state.vel[a, 3], state.vel[a, 4], state.vel[a, 5]
    if b >= 0:
        x, y, z = x - state.vel[b, 3], y - state.vel[b, 4], z - state.vel[b, 5]
    return x, y, z


@inline
def slip_at(point, state, a, b):
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
