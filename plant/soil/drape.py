"""New patches: where soil lands on scenery, a reserved patch is placed and draped over the surface below.

    p_z = -(D + p_x n_x + p_y n_y) / n_z,  n and D of the triangle below                      Luaces eq. 4.103 to 4.105

A patch has thousands of samples, so it is draped over some steps, and switched on when it is whole. What it covers
stays what it is: over ground that may be dug the patch is sunk out of sight, so that soil there is still the ground's.
Over scenery it is a quantum or two higher: of two patches at one height the surface is the first one's, which would be
the scenery, and soil would never find the patch.

Whoever owns the collision scene moves the shape of the patch to `ground.at` and enables it when PATCHES counts up.
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from plant.soil.ground import change_height, surface
from plant.soil.model import BED, PATCHES, QUANTA, QUANTUM, SCENERY

AT_ONCE = 64  # samples draped in a step


@kernel
def begin_patch(soil, ground, field, x, y):
    """Begin to lay a reserved patch about (x, y). False if there is none; true if one is being laid already."""
    s, land = soil.state, soil.land
    if s.laying[0] >= 0:
        return True
    p0, z, _, _ = surface(ground, field, x, y)
    if p0 < 0 or land.diggable[p0] != SCENERY:
        return False
    for p in range(land.reserve.size):
        if land.reserve[p] == 1 and ground.on[p] == 0:
            ground.at[p, 0], ground.at[p, 1] = x, y
            # A quarter of its range below the surface, the rest above for what is to come.
            ground.at[p, 2] = z - land.low[p] - 0.25 * (land.high[p] - land.low[p])
            s.laying[0], s.laying[1] = p, 0
            return True
    return False


@kernel
def drape(soil, ground, field):
    """Go on with the patch that is being laid, and switch it on once it is whole."""
    s, land = soil.state, soil.land
    p = s.laying[0]
    if p < 0:
        return
    f = ground.field[p]
    nx, ny = field.nx[f], field.ny[f]
    end = min(s.laying[1] + AT_ONCE, nx * ny)
    for k in range(s.laying[1], end):
        i, j = k // ny, k % ny
        x = ground.at[p, 0] + (i - 0.5 * (nx - 1)) * field.step[f, 0]
        y = ground.at[p, 1] + (j - 0.5 * (ny - 1)) * field.step[f, 1]
        below, z, _, _ = surface(ground, field, x, y)
        z = min(max(z - ground.at[p, 2], land.low[p]), land.high[p] - 2 * QUANTUM)
        if below >= 0 and land.diggable[below] != SCENERY:
            z = land.low[p]
        change_height(ground, field, p, i, j, (math.floor(z * QUANTA) + 2) * QUANTUM)
        land.loose[field.first[f] + k] = 0.0
    s.laying[1] = end
    if end == nx * ny:
        land.diggable[p] = BED
        ground.on[p] = 1
        s.laying[0] = -1
        s.counter[PATCHES] += 1
