"""Cutting: samples that the lip or the mouth of the bucket sweeps over are lowered, and their soil goes to the pool.

Two ways, both only while the mouth moves outwards; whatever presses with its back or its underside cuts nothing.

    the lip     passes under a sample, from before it to behind it: the sample goes down to the lip's path
    the mouth   hangs over (it looks downwards): samples within it go down to its plane, which is the lower boundary of
                the hull on their vertical

Ref: Luaces 4.8.1, which lowers samples that were inside the hull to its boundary on their vertical once they have left
it. Here it is done at once, so that contacts never meet soil that has been cut. Neither way goes below the hull.

Limits: a lip deeper in the ground than its mouth is long cuts nothing, the soil closes behind it.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.soil.books import take
from plant.soil.edge import speed_at, turned
from plant.soil.model import PLACE, POOL, SCENERY, book

JUMP = 0.5  # [m] a lip that has moved farther in a step was put there, it has swept nothing
HANGING = 0.05  # the mouth looks downwards if its inward normal points up by more than this
SKIN = 1e-6  # [m] by which a sample may be outside the hull and still count as in it


@inline
def _range(low, high, at, step, n):
    """First and one past the last sample of a row within [low, high]."""
    a = math.ceil(min(max((low - at) / step + 0.5 * (n - 1), 0.0), 1.0 * n))
    b = math.floor(min(max((high - at) / step + 0.5 * (n - 1), -1.0), n - 1.0))
    return int(a), int(b) + 1


@kernel
def _sweep_lip(soil, ground, field, p, new):
    """Samples of patch `p` that have come behind the lip since the last step; `new` [2, 3] are its ends now."""
    s, tool = soil.state, soil.tool
    old, n = s.lip, s.frame[2]
    f = ground.field[p]
    nx, ny, dx, dy = field.nx[f], field.ny[f], field.step[f, 0], field.step[f, 1]
    at = ground.at[p]
    i0, i1 = _range(
        min(old[0, 0], old[1, 0], new[0, 0], new[1, 0]), max(old[0, 0], old[1, 0], new[0, 0], new[1, 0]), at[0], dx, nx
    )
    j0, j1 = _range(
        min(old[0, 1], old[1, 1], new[0, 1], new[1, 1]), max(old[0, 1], old[1, 1], new[0, 1], new[1, 1]), at[1], dy, ny
    )
    ax, ay = new[1, 0] - new[0, 0], new[1, 1] - new[0, 1]
    bx, by = old[1, 0] - old[0, 0], old[1, 1] - old[0, 1]
    square = ax * ax + ay * ay
    sign = 1.0 if -ay * s.ahead[0] + ax * s.ahead[1] > 0.0 else -1.0
    for i in range(i0, i1):
        x = at[0] + (i - 0.5 * (nx - 1)) * dx
        for j in range(j0, j1):
            y = at[1] + (j - 0.5 * (ny - 1)) * dy
            was = sign * (bx * (y - old[0, 1]) - by * (x - old[0, 0]))
            now = sign * (ax * (y - new[0, 1]) - ay * (x - new[0, 0]))
            if was <= 0.0 or now > 0.0:
                continue
            u = (ax * (x - new[0, 0]) + ay * (y - new[0, 1])) / square
            if u < 0.0 or u > 1.0:
                continue
            out = 0.0
            for k in range(3):
                out -= n[k] * (new[0, k] - old[0, k] + u * (new[1, k] - new[0, k] - old[1, k] + old[0, k]))
            z = new[0, 2] + u * (new[1, 2] - new[0, 2]) - at[2]
            deep = field.height[field.first[f] + i * ny + j] - z
            if out > 0.0 and 0.0 < deep <= tool.reach:
                bank, room = take(soil, ground, field, p, i, j, z)
                book(soil, POOL, bank)
                book(soil, PLACE, room)


@kernel
def _inside(tool, rot, x, y, z):
    """Whether a point from the centre of mass, in world axes, is in the hull."""
    bx = rot[0, 0] * x + rot[1, 0] * y + rot[2, 0] * z
    by = rot[0, 1] * x + rot[1, 1] * y + rot[2, 1] * z
    bz = rot[0, 2] * x + rot[1, 2] * y + rot[2, 2] * z
    for k in range(tool.plane.shape[0]):
        q = tool.plane[k]
        if q[0] * bx + q[1] * by + q[2] * bz > q[3] + SKIN:
            return False
    return True


@kernel
def _sweep_mouth(soil, ground, field, p, pos, rot, vel, lip):
    """Samples of patch `p` that stand in through a mouth that looks downwards."""
    s, tool = soil.state, soil.tool
    w, m, n = s.frame[0], s.frame[1], s.frame[2]
    f = ground.field[p]
    nx, ny, dx, dy = field.nx[f], field.ny[f], field.step[f, 0], field.step[f, 1]
    at = ground.at[p]
    mx, my = tool.reach * m[0], tool.reach * m[1]
    i0, i1 = _range(min(lip[0, 0], lip[1, 0]) + min(mx, 0.0), max(lip[0, 0], lip[1, 0]) + max(mx, 0.0), at[0], dx, nx)
    j0, j1 = _range(min(lip[0, 1], lip[1, 1]) + min(my, 0.0), max(lip[0, 1], lip[1, 1]) + max(my, 0.0), at[1], dy, ny)
    for i in range(i0, i1):
        x = at[0] + (i - 0.5 * (nx - 1)) * dx - lip[0, 0]
        for j in range(j0, j1):
            y = at[1] + (j - 0.5 * (ny - 1)) * dy - lip[0, 1]
            z = -(n[0] * x + n[1] * y) / n[2]
            top = at[2] + field.height[field.first[f] + i * ny + j] - lip[0, 2]
            if top <= z:
                continue
            along, u = x * m[0] + y * m[1] + z * m[2], x * w[0] + y * w[1] + z * w[2]
            if along < 0.0 or along > tool.reach or u < 0.0 or u > tool.width:
                continue
            rx, ry, rz = x + lip[0, 0] - pos[0], y + lip[0, 1] - pos[1], lip[0, 2] - pos[2]
            vx, vy, vz = speed_at(vel, rx, ry, rz + z)
            if -(vx * n[0] + vy * n[1] + vz * n[2]) > 0.0 and _inside(tool, rot, rx, ry, rz + top):
                bank, room = take(soil, ground, field, p, i, j, z + lip[0, 2] - at[2])
                book(soil, POOL, bank)
                book(soil, PLACE, room)


@kernel
def _lip_now(soil, pos, rot, new):
    for a in range(2):
        for k in range(3):
            new[a, k] = pos[k] + turned(rot, soil.tool.lip[a], k)


@kernel
def cut(soil, ground, field, pos, rot, vel):
    """Cut all patches that may be dug, from the place of the last step to this one."""
    s, land = soil.state, soil.land
    new = s.lip_now
    _lip_now(soil, pos, rot, new)
    moved = 0.0
    for a in range(2):
        for k in range(3):
            moved = max(moved, abs(new[a, k] - s.lip[a, k]))
    if s.known[0] == 1 and 0.0 < moved < JUMP and (s.ahead[0] != 0.0 or s.ahead[1] != 0.0):
        for p in range(land.diggable.size):
            if ground.on[p] == 1 and land.diggable[p] != SCENERY:
                _sweep_lip(soil, ground, field, p, new)
                if s.frame[2, 2] > HANGING:
                    _sweep_mouth(soil, ground, field, p, pos, rot, vel, new)
    s.lip[:] = new
    s.known[0] = 1
