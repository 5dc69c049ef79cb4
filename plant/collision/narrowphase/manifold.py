"""The manifold of a pair that has triangles: points added to the list, and the list brought into world axes."""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.collision.model import POINTS
from plant.collision.vec3 import point_to_world, vector_to_world

FEATURES = 0xFFFFF


@kernel
def add_point(out, count, point, normal, depth, feature, near):
    """List a point unless one within `near` with the same normal is there; returns the new count.

    When there is no room left, the shallowest point makes way.
    """
    for k in range(count):
        q, m = out.point[k], out.normal[k]
        x, y, z = q[0] - point[0], q[1] - point[1], q[2] - point[2]
        alike = m[0] * normal[0] + m[1] * normal[1] + m[2] * normal[2]
        if x * x + y * y + z * z <= near * near and alike > 0.99999:
            if depth > out.depth[k]:
                return _write_point(out, k, count, point, normal, depth, feature)
            return count
    if count < POINTS:
        return _write_point(out, count, count + 1, point, normal, depth, feature)
    least = 0
    for k in range(1, POINTS):
        if out.depth[k] < out.depth[least]:
            least = k
    if depth > out.depth[least]:
        _write_point(out, least, count, point, normal, depth, feature)
    return count


@inline
def _write_point(out, k, count, point, normal, depth, feature):
    out.point[k, 0], out.point[k, 1], out.point[k, 2] = point
    out.normal[k, 0], out.normal[k, 1], out.normal[k, 2] = normal
    out.depth[k], out.feature[k] = depth, feature & FEATURES
    return count


@kernel
def manifold_to_world(placed, s, out, count):
    """Points and normals in the frame of shape `s` become those of the world."""
    for k in range(count):
        q, m = out.point[k], out.normal[k]
        q[0], q[1], q[2] = point_to_world(placed, s, (q[0], q[1], q[2]))
        m[0], m[1], m[2] = vector_to_world(placed.rot[s], (m[0], m[1], m[2]))
    return count
