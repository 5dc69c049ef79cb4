"""Transforms: frames and tight AABBs of shapes in the world, from the positions of their bodies.

The box of a shape along a world axis e reaches as far as its support function, so with (a, b, c) = e in the axes of
the shape (a row of its rotation matrix) and q = sqrt(a^2 + b^2):

    SPHERE      radius
    CAPSULE     half |c| + radius
    BOX         x |a| + y |b| + z |c|                               HULL, MESH, FIELD: the same, of their own box
    CYLINDER    half |c| + radius q
    CONE        max(half c, radius q - half c) up, max(-half c, radius q + half c) down
    TORUS       ring q + wire
    LINK        half |a| + bend q + wire                            a segment, a circle and a ball, added up
    PLANE       FAR_AWAY on all sides: planes are tested by their normal, never by their box

All are exact but that of a hull, mesh or field, which holds the turned box of the asset. Ref: Luaces 4.5.1.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind

FAR_AWAY = 1e15  # [m] half length of the box of a plane

SPHERE, CAPSULE, BOX, CYLINDER, CONE = (
    int(Kind.SPHERE),
    int(Kind.CAPSULE),
    int(Kind.BOX),
    int(Kind.CYLINDER),
    int(Kind.CONE),
)
PLANE, TORUS, LINK = int(Kind.PLANE), int(Kind.TORUS), int(Kind.LINK)


@inline
def _reach(kind, x, y, z, a, b, c):
    """How far a shape of sizes x, y, z reaches along and against the world axis that is (a, b, c) in its own frame."""
    if kind == SPHERE:
        up = x
    elif kind == CAPSULE:
        up = y * abs(c) + x
    elif kind == CYLINDER:
        up = y * abs(c) + x * math.sqrt(a * a + b * b)
    elif kind == CONE:
        rim = x * math.sqrt(a * a + b * b)
        return max(y * c, rim - y * c), max(-y * c, rim + y * c)
    elif kind == PLANE:
        up = FAR_AWAY
    elif kind == TORUS:
        up = x * math.sqrt(a * a + b * b) + y
    elif kind == LINK:
        up = x * abs(a) + y * math.sqrt(a * a + b * b) + z
    else:
        up = x * abs(a) + y * abs(b) + z * abs(c)
    return up, up


@inline
def _place_axis(shape, placed, s, k, x, r0, r1, r2):
    """World axis `k` of shape `s`, on a body at `x` on that axis and with (r0, r1, r2) as that row of its rotation."""
    at, turn, size = shape.at, shape.turn, shape.size
    x += r0 * at[s, 0] + r1 * at[s, 1] + r2 * at[s, 2]
    a = r0 * turn[s, 0, 0] + r1 * turn[s, 1, 0] + r2 * turn[s, 2, 0]
    b = r0 * turn[s, 0, 1] + r1 * turn[s, 1, 1] + r2 * turn[s, 2, 1]
    c = r0 * turn[s, 0, 2] + r1 * turn[s, 1, 2] + r2 * turn[s, 2, 2]
    up, down = _reach(shape.kind[s], size[s, 0], size[s, 1], size[s, 2], a, b, c)
    placed.pos[s, k] = x
    placed.rot[s, k, 0], placed.rot[s, k, 1], placed.rot[s, k, 2] = a, b, c
    placed.low[s, k], placed.high[s, k] = x - down, x + up


@kernel
def place_shapes(shape, placed, pos, rot):
    """Frames and boxes of all enabled shapes on bodies at `pos` [b, 3] (centres of mass), turned by `rot` [b, 3, 3]."""
    for s in range(shape.kind.size):
        b = shape.body[s]
        if b >= 0 and shape.enabled[s] != 0:
            for k in range(3):
                _place_axis(shape, placed, s, k, pos[b, k], rot[b, k, 0], rot[b, k, 1], rot[b, k, 2])


@kernel
def place_shape(shape, placed, s, pos, rot):
    """Frame and box of one shape, on a body at `pos` [3], turned by `rot` [3, 3]."""
    for k in range(3):
        _place_axis(shape, placed, s, k, pos[k], rot[k, 0], rot[k, 1], rot[k, 2])


@kernel
def place_ground(shape, placed):
    """Frames and boxes of the shapes of the ground, enabled or not: once, for they never move."""
    for s in range(shape.kind.size):
        if shape.body[s] < 0:
            _place_axis(shape, placed, s, 0, 0.0, 1.0, 0.0, 0.0)
            _place_axis(shape, placed, s, 1, 0.0, 0.0, 1.0, 0.0)
            _place_axis(shape, placed, s, 2, 0.0, 0.0, 0.0, 1.0)
