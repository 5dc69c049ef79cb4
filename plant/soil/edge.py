"""The cutting edge, slice by slice: its position, velocity, and depth below ground that has not been cut yet.

The grid is cut as soon as the lip has passed a sample, so the triangle above the lip is half cut already. The surface
that counts is taken a cell ahead of the lip, where all corners of a triangle are still untouched, and carried back to
the lip along that triangle's slope: exact on planes. A mouth that hangs over has cut as far as it meets the surface, so
the place is a cell ahead of that.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.soil.ground import surface
from plant.soil.model import SCENERY

LEVEL = 0.1  # a lip whose level part is a smaller share of it than this lies on its side: no digging
STEEPEST = 1.0  # slope along which a surface is carried back; walls of old cuts are steeper


@inline
def turned(rot, v, k):
    """Component `k` of R v."""
    return rot[k, 0] * v[0] + rot[k, 1] * v[1] + rot[k, 2] * v[2]


@inline
def speed_at(vel, x, y, z):
    """Velocity of the point (x, y, z) from the centre of mass."""
    return (
        vel[0] + vel[4] * z - vel[5] * y,
        vel[1] + vel[5] * x - vel[3] * z,
        vel[2] + vel[3] * y - vel[4] * x,
    )


@kernel
def place_frame(soil, pos, rot):
    """The axes of the mouth in the world, and the level direction before the lip."""
    s, tool = soil.state, soil.tool
    for a in range(3):
        for k in range(3):
            s.frame[a, k] = turned(rot, tool.axis[a], k)
    w = s.frame[0]
    size = math.sqrt(w[0] * w[0] + w[1] * w[1])
    s.ahead[:] = 0.0
    if size < LEVEL:
        return
    x, y = -w[1] / size, w[0] / size
    m, n = s.frame[1], s.frame[2]
    # Out of the mouth, and away from the hinge where the mouth is level.
    sign = 1.0 if (-n[0] - 0.2 * m[0]) * x + (-n[1] - 0.2 * m[1]) * y >= 0.0 else -1.0
    s.ahead[0], s.ahead[1] = sign * x, sign * y


@kernel
def _look(soil, ground, field, i, far):
    """How far slice `i` is below the surface that lies `far` before it, d_fill, and 1 + slope^2. 0 if it is not."""
    s, m = soil.state, soil.state.frame[1]
    ax, ay = s.ahead[0], s.ahead[1]
    p, top, sx, sy = surface(ground, field, s.at[i, 0] + far * ax, s.at[i, 1] + far * ay)
    if p < 0 or soil.land.diggable[p] == SCENERY:
        return 0.0, 0.0, 1.0
    sx, sy = min(max(sx, -STEEPEST), STEEPEST), min(max(sy, -STEEPEST), STEEPEST)
    below = top - far * (sx * ax + sy * ay) - s.at[i, 2]
    if not below > 0.0:
        return 0.0, 0.0, 1.0
    rise = m[2] - sx * m[0] - sy * m[1]
    reach = soil.tool.reach
    return below, below / rise if rise * reach > below else reach, 1.0 + sx * sx + sy * sy


@kernel
def feel(soil, ground, field, pos, rot, vel):
    """Place, velocity, depth, d_fill and inflow of each slice of the lip. Returns whether any is in the ground.

    Ref: Luaces eq. 3.25 (d_fill) and 3.27 (speed of the flow, at d_fill / 2). As printed, eq. 3.26 has v_d - v_h; the
    speed must be v_h at the hinge, x = 2r, so the difference is the other way round.
    """
    s, tool = soil.state, soil.tool
    place_frame(soil, pos, rot)
    w, m, n = s.frame[0], s.frame[1], s.frame[2]
    lx, ly, lz = turned(rot, tool.lip[0], 0), turned(rot, tool.lip[0], 1), turned(rot, tool.lip[0], 2)
    ax, ay = s.ahead[0], s.ahead[1]
    far = 1.01 * soil.land.cell * (abs(ax) + abs(ay))
    over = max(m[0] * ax + m[1] * ay, 0.0)  # how far the mouth hangs over, for each metre of it
    deep = False
    for i in range(tool.slices):
        u = tool.width * (i + 0.5) / tool.slices
        x, y, z = lx + u * w[0], ly + u * w[1], lz + u * w[2]
        vx, vy, vz = speed_at(vel, x, y, z)
        s.vel[i, 0], s.vel[i, 1], s.vel[i, 2] = vx, vy, vz
        s.at[i, 0], s.at[i, 1], s.at[i, 2] = pos[0] + x, pos[1] + y, pos[2] + z
        s.depth[i], s.fill[i], s.inflow[i] = 0.0, 0.0, 0.0
        if far == 0.0:
            continue
        below, fill, square = _look(soil, ground, field, i, far + tool.reach * over)
        if over > 0.0 and below > 0.0:  # now that it is known where the mouth meets the surface
            below, fill, square = _look(soil, ground, field, i, far + fill * over)
        if not below > 0.0:
            continue
        deep = True
        s.depth[i] = min(below / math.sqrt(square), tool.reach)
        s.fill[i] = fill
        hx, hy, hz = speed_at(vel, x + tool.reach * m[0], y + tool.reach * m[1], z + tool.reach * m[2])
        share = 0.5 * fill / tool.reach
        s.inflow[i] = -(
            (vx + share * (hx - vx)) * n[0] + (vy + share * (hy - vy)) * n[1] + (vz + share * (hz - vz)) * n[2]
        )
    return deep
