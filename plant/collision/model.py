"""The arrays of collision detection.

A shape has a frame of its own, fixed in a body (or in the ground, body -1), and up to four sizes:

    kind        sizes                                           frame
    SPHERE      radius                                          origin at the centre
    CAPSULE     radius, half length of the core                 core along z
    BOX         half lengths along x, y, z                      origin at the centre
    CYLINDER    radius, half height                             axis z, origin at the centre
    CONE        radius of the base, half height                 axis z, tip at +z half height, base at -z half height
    HULL        half lengths of its box                         origin at the middle of its box; vertices in the asset
    PLANE       (none)                                          z is the outward normal, solid below z = 0
    TORUS       radius of the ring, radius of the wire          ring in the plane z = 0
    LINK        half length of the straight parts, radius of
                the bends, radius of the wire                   straight parts along x, in the plane z = 0
    MESH        half lengths of its box                         as HULL; triangles in the asset
    FIELD       half lengths of its box                         height field; z up, samples in the asset

Every kind before PLANE is convex. Pairs are handled with the lower kind first.

A pair kernel has one signature and fills one manifold, in world axes:

    pair(shape, placed, [asset,] i, j, margin, out) -> number of points

It lists points nearer than `margin`; `depth` is positive where the shapes overlap and negative for a gap; the
normal is unit length and points from shape j towards shape i, so a push along it on i's body parts the two;
`point` lies half way between the two surfaces. `feature` (0 <= feature < 2^20) names what touches (vertex, edge,
face) so that the same number comes back in the next step while the same features touch. No kernel allocates or
raises; degenerate input gives finite numbers.

SI units, quaternions w x y z; `rot` are rotation matrices whose columns are the frame's axes in the world.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hilnode.core.struct import F1, F2, F3, I1, viewer

POINTS = 64  # room for points in the manifold of one pair, before it is reduced


class Kind(IntEnum):
    """What a shape is; the order is that of the table of pairs."""

    SPHERE = 0
    CAPSULE = 1
    BOX = 2
    CYLINDER = 3
    CONE = 4
    HULL = 5
    PLANE = 6
    TORUS = 7
    LINK = 8
    MESH = 9
    FIELD = 10


class Shapes(NamedTuple):
    """Constant properties of shapes, and whether each takes part."""

    kind: I1
    body: I1  # [s] -1 = ground
    at: F2  # [s, 3] origin of its frame from the body's centre of mass (ground: from the world's origin), body axes
    turn: F3  # [s, 3, 3] its frame in the body's axes
    size: F2  # [s, 4] see the table above
    bound: F1  # [s] radius of the sphere about the frame's origin that holds it; inf for a plane
    material: I1
    group: I1  # [s] bits of the groups it is in
    mask: I1  # [s] bits of the groups it touches; two shapes meet if each is in the other's mask
    asset: I1  # [s] its hull, mesh or field; -1 = none
    enabled: I1  # [s] 1 = takes part


class Placed(NamedTuple):
    """Where shapes are now."""

    pos: F2  # [s, 3] origin of the frame, world
    rot: F3  # [s, 3, 3] axes of the frame, world, by columns
    low: F2  # [s, 3] axis-parallel box, margin not included
    high: F2


class Manifold(NamedTuple):
    """Contact points of one pair."""

    point: F2  # [POINTS, 3]
    normal: F2  # [POINTS, 3]
    depth: F1  # [POINTS]
    feature: I1  # [POINTS]


view_shapes = viewer(Shapes)
view_placed = viewer(Placed)
view_manifold = viewer(Manifold)


def new_manifold() -> Manifold:
    """Room for the points of one pair."""
    return Manifold(np.zeros((POINTS, 3)), np.zeros((POINTS, 3)), np.zeros(POINTS), np.zeros(POINTS, np.int64))


def new_placed(shapes: int) -> Placed:
    """Room for the places of so many shapes."""
    return Placed(np.zeros((shapes, 3)), np.zeros((shapes, 3, 3)), np.zeros((shapes, 3)), np.zeros((shapes, 3)))
