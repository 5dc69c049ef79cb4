"""The ground: patches of height fields, side by side or on each other, as soil, tires and displays see them.

    patch     one height field of the collision scene, level, its middle at `at`; the collision scene holds the very
              same samples, so that whatever changes a height has changed it for everybody
    surface   the highest patch at a place (x, y): a heap on a truck's bed lies above the terrain
    tile      16 x 16 samples of a patch; its stamp counts up when one of them changes, so that a display sends
              only what is new

Each cell is two triangles (see `plant.collision.narrowphase.field`), so heights and slopes between samples are those of
eq. 4.103 to 4.105 in Luaces. World axes, SI units, z up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F2, I1, I2
from plant.abi import TILE
from plant.collision.scene import Scene

NOWHERE = -1
BOTTOM = -1e30  # [m] height where there is no ground


class Ground(NamedTuple):
    """Patches of one scene. Kernels take it together with `scene.field`, which holds the samples."""

    shape: I1  # [p] shape of the scene that it is
    field: I1  # [p] which height field
    on: I1  # [p] 1 = there, 0 = reserved
    at: F2  # [p, 3] the middle of the grid; heights of samples are above at[2] [m]
    stamp: I2  # [p, tiles] how often a tile has changed; tile (i, j) is at i x ceil(ny / TILE) + j


def build_ground(scene: Scene, shapes: list[int]) -> Ground:
    """The ground made of these shapes of a scene, which must be level height fields."""
    tiles = [
        math.ceil(scene.field.nx[f] / TILE) * math.ceil(scene.field.ny[f] / TILE) for f in scene.shape.asset[shapes]
    ]
    turned = scene.placed.rot[shapes]
    if not np.allclose(turned, np.eye(3), atol=1e-9):
        raise ValueError("patches of the ground must be level and along x and y: place the field without a turn")
    return Ground(
        shape=np.array(shapes, np.int64),
        field=scene.shape.asset[shapes].copy(),
        on=np.ones(len(shapes), np.int64),
        at=scene.placed.pos[shapes].copy(),
        stamp=np.zeros((len(shapes), max(tiles, default=1)), np.int64),
    )


@inline
def height_on(ground, field, p, x, y):
    """Height of patch `p` above (x, y), its slopes dz/dx and dz/dy, and whether it reaches there."""
    f = ground.field[p]
    nx, ny = field.nx[f], field.ny[f]
    dx, dy = field.step[f, 0], field.step[f, 1]
    u = (x - ground.at[p, 0]) / dx + 0.5 * (nx - 1)
    v = (y - ground.at[p, 1]) / dy + 0.5 * (ny - 1)
    if not (0.0 <= u <= nx - 1.0 and 0.0 <= v <= ny - 1.0):
        return BOTTOM, 0.0, 0.0, False
    i, j = min(int(u), nx - 2), min(int(v), ny - 2)
    u, v = u - i, v - j
    k = field.first[f] + i * ny + j
    a, c = field.height[k], field.height[k + ny + 1]
    if u >= v:
        b = field.height[k + ny]
        sx, sy = b - a, c - b
    else:
        b = field.height[k + 1]
        sx, sy = c - b, b - a
    return ground.at[p, 2] + a + u * sx + v * sy, sx / dx, sy / dy, True


@kernel
def surface(ground, field, x, y):
    """The highest ground at (x, y): patch, height and slopes dz/dx, dz/dy. NOWHERE and BOTTOM if there is none."""
    best, z, sx, sy = NOWHERE, BOTTOM, 0.0, 0.0
    for p in range(ground.field.size):
        if ground.on[p] == 0:
            continue
        h, a, b, there = height_on(ground, field, p, x, y)
        if there and h > z:
            best, z, sx, sy = p, h, a, b
    return best, z, sx, sy


@inline
def change_height(ground, field, p, i, j, z):
    """Set sample (i, j) of patch `p` to the height `z` above the patch's `at`, and say so on its tile."""
    f = ground.field[p]
    ny = field.ny[f]
    field.height[field.first[f] + i * ny + j] = z
    ground.stamp[p, (i // TILE) * ((ny + TILE - 1) // TILE) + j // TILE] += 1
