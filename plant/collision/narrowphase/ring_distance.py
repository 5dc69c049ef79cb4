"""Signed distance of a point from any shape, in the shape's frame, and the normal there."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind
from plant.collision.narrowphase.ring_curve import core_distance, ring_size
from plant.collision.narrowphase.sphere_capsule import NEAR, box_distance, clamp, cone_distance, cylinder_distance
from plant.collision.narrowphase.surface_distance import field_distance, mesh_distance
from plant.collision.shape.hull_distance import hull_distance

CAPSULE, BOX, CYLINDER, CONE = int(Kind.CAPSULE), int(Kind.BOX), int(Kind.CYLINDER), int(Kind.CONE)
HULL, PLANE, TORUS = int(Kind.HULL), int(Kind.PLANE), int(Kind.TORUS)
MESH, FIELD = int(Kind.MESH), int(Kind.FIELD)


class Other(NamedTuple):
    """The shape that distances are taken from, with what it may need of the scene (views)."""

    shape: Any
    hull: Any
    mesh: Any
    field: Any
    i: int
    reach: float  # beyond this distance nothing is listed
    seed: Any  # [1] the triangle of a mesh found last, where the next search begins; -1 = none


@inline
def distance_from(other, p, limit):
    """Signed distance of the point `p` from the shape, and the unit normal there.

    From a mesh or field no farther than `limit`, with a null normal where there is nothing to touch.
    """
    kind, s, i = other.shape.kind[other.i], other.shape.size, other.i
    x, y, z = p
    if kind == BOX:
        distance, nx, ny, nz = box_distance(x, y, z, s[i, 0], s[i, 1], s[i, 2])
    elif kind == PLANE:
        distance, nx, ny, nz = z, 0.0, 0.0, 1.0
    elif kind == CYLINDER:
        distance, nx, ny, nz = cylinder_distance(x, y, z, s[i, 0], s[i, 1])
    elif kind == CONE:
        distance, nx, ny, nz = cone_distance(x, y, z, s[i, 0], s[i, 1])
    elif kind <= CAPSULE:
        distance, nx, ny, nz = _segment_distance(x, y, z, s[i, 1] if kind == CAPSULE else 0.0)
        distance -= s[i, 0]
    else:
        distance, (nx, ny, nz) = _from_asset(other, p, limit)
    return distance, (nx, ny, nz)


@inline
def _segment_distance(x, y, z, half):
    """Distance of a point from a segment along z, and the normal there."""
    dz = z - clamp(z, half)
    distance = math.sqrt(x * x + y * y + dz * dz)
    if distance <= NEAR:
        return distance, 1.0, 0.0, 0.0
    return distance, x / distance, y / distance, dz / distance


@kernel
def _from_asset(other, p, limit):
    """From a ring, and from what is not given by its sizes."""
    shape, i = other.shape, other.i
    kind, asset = shape.kind[i], shape.asset[i]
    if kind == HULL:
        return hull_distance(other.hull, asset, p)
    if kind == MESH:
        return mesh_distance(other.mesh, asset, p, limit, other.reach, other.seed)
    if kind == FIELD:
        return field_distance(other.field, asset, p, limit, other.reach)
    half, bend, wire = ring_size(shape, i)
    distance, n = core_distance(p, half, bend)
    return distance - wire, n
