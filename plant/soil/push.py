"""The digging force: viscous in the velocity of the lip, growing with depth and with the soil in the bucket.

    F = -mu_dig (sigma_1 + sigma_2 V^m) d^n v_t - mu_cp d^n v_n                                   Luaces eq. 3.23

v_t is the velocity of the lip along the direction of excavation (where the cutting plate points), v_n the rest of it, d
the depth, V the bank volume in the bucket. Each slice of the lip has its own depth, its own speed and 1 / slices of the
force, and pushes at its own place, so that a cut on one side turns the bucket. The depth counts up to the length
of the mouth.

Limits: brittle failure is left out, as in the source. The force acts in both directions, as printed.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.soil.edge import turned
from plant.soil.model import BUCKET, WORK, book, held


@inline
def push_at(wrench, pos, at, fx, fy, fz):
    """Add a force at a point of the world to a force and torque about `pos`."""
    x, y, z = at[0] - pos[0], at[1] - pos[1], at[2] - pos[2]
    wrench[0] += fx
    wrench[1] += fy
    wrench[2] += fz
    wrench[3] += y * fz - z * fy
    wrench[4] += z * fx - x * fz
    wrench[5] += x * fy - y * fx


@kernel
def push(soil, pos, rot, h, wrench):
    """Add the digging force of all slices to `wrench`, and its work to the account."""
    s, tool, kind = soil.state, soil.tool, soil.kind
    ex, ey, ez = turned(rot, tool.edge, 0), turned(rot, tool.edge, 1), turned(rot, tool.edge, 2)
    loaded = kind.mu_dig * (kind.sigma_1 + kind.sigma_2 * max(held(soil, BUCKET), 0.0) ** kind.power_m)
    most = tool.lip_mass / (h * tool.slices)
    work = 0.0
    for i in range(tool.slices):
        if not s.depth[i] > 0.0:
            continue
        depth = s.depth[i] ** kind.power_n / tool.slices
        along, across = min(loaded * depth, most), min(kind.mu_cp * depth, most)
        v = s.vel[i]
        t = v[0] * ex + v[1] * ey + v[2] * ez
        fx = -along * t * ex - across * (v[0] - t * ex)
        fy = -along * t * ey - across * (v[1] - t * ey)
        fz = -along * t * ez - across * (v[2] - t * ez)
        push_at(wrench, pos, s.at[i], fx, fy, fz)
        s.force[0] += fx
        s.force[1] += fy
        s.force[2] += fz
        work -= (fx * v[0] + fy * v[1] + fz * v[2]) * h
    book(soil, WORK, work)
