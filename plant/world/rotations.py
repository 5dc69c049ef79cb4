"""Quaternions (w x y z) and rotation matrices, for the description of a world; kernels have their own."""

from __future__ import annotations

import numpy as np

from plant.world.checks import Vector, WorldError


def frame_along(name: str, z: Vector, x: Vector | None) -> Vector:
    """Quaternion of the frame whose z points along `z` and whose x is as near to `x` as can be."""
    size = float(np.linalg.norm(z))
    if not size > 0:
        raise WorldError(f"joint {name!r}: its axis has no direction")
    z = z / size
    if x is None:
        x = np.array([1.0, 0, 0]) if abs(z[0]) < 0.9 else np.array([0, 1.0, 0])
    x = x - z * (x @ z)
    if not np.linalg.norm(x) > 1e-9:
        raise WorldError(f"joint {name!r}: its reference direction lies along its axis")
    x = x / np.linalg.norm(x)
    r = np.column_stack([x, np.cross(z, x), z])
    return quaternion(r)


def quaternion(r: Vector) -> Vector:
    """Unit quaternion w x y z of a rotation matrix."""
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0, 0, 0],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], 0, 0],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], 0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    values, vectors = np.linalg.eigh(k / 3.0)
    q = vectors[[3, 0, 1, 2], np.argmax(values)]
    return q if q[0] >= 0 else -q


def matrix(q: Vector) -> Vector:
    """Rotation matrix of a unit quaternion."""
    return np.column_stack([rotated(q, axis) for axis in np.eye(3)])


def rotated(q: Vector, v: Vector) -> Vector:
    """`v` turned by `q`."""
    u = q[1:]
    t = 2.0 * np.cross(u, v)
    return v + q[0] * t + np.cross(u, t)


def conjugate(q: Vector) -> Vector:
    """The rotation back."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def product(a: Vector, b: Vector) -> Vector:
    """Quaternion product."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])
