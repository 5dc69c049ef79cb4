"""Cylinder and cone against a plane: exact, with contact points that persist while the body stands or lies.

What touches a plane first is the lowest point of a rim, or the tip. A disc that stands level has no lowest point, or
one that wanders with every tremble; so a standing disc has four points fixed to it, and its lowest one only if that is
deeper by more than a trifle. Tilted further, it has the lowest point of each rim: one when it rolls on its edge, two
when it lies on its side.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.sphere_capsule import along, put

STANDING = 0.05  # sine of the angle [3 degrees] between axis and normal up to which a disc counts as standing
THIRD = math.sqrt(3.0)  # tangent of 60 degrees
BETTER = 1e-5  # of the radius: as much deeper than the fixed points must the lowest one be to be listed as well


@inline
def _low(placed, i, j, out, n, u, v, w, height, margin, feature):
    """List the point (u, v, w) of shape i, which lies at this height over plane j."""
    if height >= margin:
        return n
    pos, rot = placed.pos, placed.rot
    nx, ny, nz = rot[j, 0, 2], rot[j, 1, 2], rot[j, 2, 2]
    x = pos[i, 0] + u * rot[i, 0, 0] + v * rot[i, 0, 1] + w * rot[i, 0, 2] - 0.5 * height * nx
    y = pos[i, 1] + u * rot[i, 1, 0] + v * rot[i, 1, 1] + w * rot[i, 1, 2] - 0.5 * height * ny
    z = pos[i, 2] + u * rot[i, 2, 0] + v * rot[i, 2, 1] + w * rot[i, 2, 2] - 0.5 * height * nz
    return put(out, n, x, y, z, nx, ny, nz, -height, feature)


@inline
def _normal_in(placed, i, j):
    """The normal of plane j in the frame of shape i, and the height of i's origin over it."""
    pos, rot = placed.pos, placed.rot
    x, y, z = rot[j, 0, 2], rot[j, 1, 2], rot[j, 2, 2]
    height = x * (pos[i, 0] - pos[j, 0]) + y * (pos[i, 1] - pos[j, 1]) + z * (pos[i, 2] - pos[j, 2])
    return along(rot, i, 0, x, y, z), along(rot, i, 1, x, y, z), along(rot, i, 2, x, y, z), height


@inline
def _rim(placed, i, j, out, n, radius, w, nx, ny, nz, height, margin, feature):
    """List points of the rim of a disc across the axis of shape i at w; eight features from `feature` on."""
    height += w * nz
    sine = math.sqrt(nx * nx + ny * ny)
    lowest = height - radius * sine
    if lowest >= margin:
        return n
    if sine < STANDING:
        fall_x, fall_y = radius * nx, radius * ny
        n = _low(placed, i, j, out, n, radius, 0.0, w, height + fall_x, margin, feature)
        n = _low(placed, i, j, out, n, 0.0, radius, w, height + fall_y, margin, feature + 1)
        n = _low(placed, i, j, out, n, -radius, 0.0, w, height - fall_x, margin, feature + 2)
        n = _low(placed, i, j, out, n, 0.0, -radius, w, height - fall_y, margin, feature + 3)
        if lowest >= height - max(abs(fall_x), abs(fall_y)) - BETTER * radius:
            return n
    u, v = -radius * nx / sine, -radius * ny / sine
    return _low(placed, i, j, out, n, u, v, w, lowest, margin, feature + 4)


@kernel
def cylinder_plane(shape, placed, i, j, margin, out):
    """Standing: 4 or 5 points; lying: 2; on its edge: 1."""
    radius, half = shape.size[i, 0], shape.size[i, 1]
    nx, ny, nz, height = _normal_in(placed, i, j)
    n = _rim(placed, i, j, out, 0, radius, -half, nx, ny, nz, height, margin, 0)
    return _rim(placed, i, j, out, n, radius, half, nx, ny, nz, height, margin, 8)


@kernel
def cone_plane(shape, placed, i, j, margin, out):
    """Standing on its base: 4 or 5 points; lying on its slant side: the tip and one of the rim; on either: 1.

    Tilted, it has two more points of the rim if they are within the margin: they hold a base that comes down fast.
    """
    radius, half = shape.size[i, 0], shape.size[i, 1]
    nx, ny, nz, height = _normal_in(placed, i, j)
    n = _rim(placed, i, j, out, 0, radius, -half, nx, ny, nz, height, margin, 0)
    n = _low(placed, i, j, out, n, 0.0, 0.0, half, height + half * nz, margin, 8)
    sine = math.sqrt(nx * nx + ny * ny)
    if sine < STANDING:
        return n
    for side in range(2):  # a third of the way round from the lowest point
        u, v = 0.5 * radius * nx / sine, 0.5 * radius * ny / sine
        across = THIRD if side == 0 else -THIRD
        u, v = u - across * v, v + across * u
        n = _low(placed, i, j, out, n, u, v, -half, height - half * nz + nx * u + ny * v, margin, 5 + side)
    return n
