"""Deposition of soil: random points about a target, each raising the corners of the triangle that it hits.

    g = x sqrt(-2 ln(w) / w),  w = x1^2 + x2^2 < 1                                           Luaces eq. 4.106, 4.107
    dz = k V / (n_r l^2)  for each of n_r points, l the spacing of the samples                         Luaces eq. 4.108

Here k is the bulking factor and dz is shared by the three corners in proportion to how near they are (barycentric
coordinates), so that the volume is exact and the heap's middle is that of the points. Uniform numbers are those of
splitmix64, a function of a counter alone: the same counter, the same heap.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.splitmix64 import MANTISSA, STEP, UNIT, mix
from plant.soil.books import put
from plant.soil.ground import surface
from plant.soil.model import SCENERY

TRIES = 64  # a pair of numbers is in the circle with 0.785: never so many


@inline
def uniform(random):
    """The next number in [0, 1) of the counter random[0]."""
    random[0] += STEP
    return (mix(random[0]) >> MANTISSA) * UNIT


@kernel
def normal_pair(random):
    """Two independent normal numbers (eq. 4.106, 4.107)."""
    for _ in range(TRIES):
        a, b = 2.0 * uniform(random) - 1.0, 2.0 * uniform(random) - 1.0
        w = a * a + b * b
        if 0.0 < w < 1.0:
            w = math.sqrt(-2.0 * math.log(w) / w)
            return a * w, b * w
    return 0.0, 0.0


@inline
def is_soil(soil, p):
    """Whether soil may lie on patch `p`."""
    return p >= 0 and soil.land.diggable[p] != SCENERY


@kernel
def lay(soil, ground, field, x, y, volume):
    """Lay a bank volume on the triangle at (x, y) of the highest patch: what found room; 0 on scenery [m^3]."""
    p, _, _, _ = surface(ground, field, x, y)
    if not is_soil(soil, p):
        return 0.0
    f = ground.field[p]
    nx, ny = field.nx[f], field.ny[f]
    u = (x - ground.at[p, 0]) / field.step[f, 0] + 0.5 * (nx - 1)
    v = (y - ground.at[p, 1]) / field.step[f, 1] + 0.5 * (ny - 1)
    i, j = min(int(u), nx - 2), min(int(v), ny - 2)
    u, v = u - i, v - j
    laid = put(soil, ground, field, p, i, j, (1.0 - max(u, v)) * volume)
    laid += put(soil, ground, field, p, i + 1, j + 1, min(u, v) * volume)
    if u >= v:
        laid += put(soil, ground, field, p, i + 1, j, (u - v) * volume)
    else:
        laid += put(soil, ground, field, p, i, j + 1, (v - u) * volume)
    return laid


@kernel
def scatter(soil, ground, field, x, y, volume, sigma, rays):
    """Lay a bank volume about (x, y) over `rays` random points: what was left over [m^3].

    A point that misses the soil falls to (x, y) itself.
    """
    left = volume
    for r in range(rays):
        g, k = normal_pair(soil.state.random)
        share = left / (rays - r)
        laid = lay(soil, ground, field, x + sigma * g, y + sigma * k, share)
        if laid < 0.5 * share:
            laid += lay(soil, ground, field, x, y, share - laid)
        left -= laid
    return left
