"""Algebra of 3-vectors: sums, dot and cross products, changes of frame between a shape and the world.

A vector is a tuple of three numbers, which stays in registers. "Local" means the frame of a shape, whose axes are the
columns of its rotation matrix.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline

TINY = 1e-300  # squared lengths below this count as zero


@inline
def sub(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def along(a, s, b):
    """a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@inline
def dot(a, b):
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def times(s, a):
    """s a."""
    return s * a[0], s * a[1], s * a[2]


@inline
def unit(a):
    """a / |a|; the z axis for a null vector."""
    square = dot(a, a)
    if square < TINY:
        return 0.0, 0.0, 1.0
    return times(1.0 / math.sqrt(square), a)


@inline
def vector_to_local(rot, a):
    """The vector `a` of the world in the axes that are the columns of `rot`."""
    return (
        rot[0, 0] * a[0] + rot[1, 0] * a[1] + rot[2, 0] * a[2],
        rot[0, 1] * a[0] + rot[1, 1] * a[1] + rot[2, 1] * a[2],
        rot[0, 2] * a[0] + rot[1, 2] * a[1] + rot[2, 2] * a[2],
    )


@inline
def vector_to_world(rot, a):
    """The vector `a` in the axes that are the columns of `rot`, in the world."""
    return (
        rot[0, 0] * a[0] + rot[0, 1] * a[1] + rot[0, 2] * a[2],
        rot[1, 0] * a[0] + rot[1, 1] * a[1] + rot[1, 2] * a[2],
        rot[2, 0] * a[0] + rot[2, 1] * a[1] + rot[2, 2] * a[2],
    )


@inline
def from_basis(x, y, z, v):
    """The vector `v` in a frame in which its own axes are x, y, z."""
    return (
        x[0] * v[0] + y[0] * v[1] + z[0] * v[2],
        x[1] * v[0] + y[1] * v[1] + z[1] * v[2],
        x[2] * v[0] + y[2] * v[1] + z[2] * v[2],
    )


@inline
def point_to_local(placed, s, a):
    """The point `a` of the world in the frame of shape `s`."""
    p = placed.pos[s]
    return vector_to_local(placed.rot[s], (a[0] - p[0], a[1] - p[1], a[2] - p[2]))


@inline
def point_to_world(placed, s, a):
    """The point `a` of the frame of shape `s` in the world."""
    x, y, z = vector_to_world(placed.rot[s], a)
    p = placed.pos[s]
    return x + p[0], y + p[1], z + p[2]
