"""Two shapes of any kinds, put in many places and asked for their manifolds as the engine would ask."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
from primitive_pairs import Found

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import POINTS
from plant.collision.pairs.table import call_pair, pair_table
from plant.collision.scene import Placement, build_scene, view_scene
from plant.collision.shape.shapes import Capsule, Field, Hull, Mesh, Shape, Sphere


@kernel
def _touch(scene, pos, rot, margin, count, point, normal, depth, feature):
    s = view_scene(scene)
    for k in range(count.size):
        s.placed.pos[:] = pos[k]
        s.placed.rot[:] = rot[k]
        n = call_pair(s.table[s.shape.kind[0], s.shape.kind[1]], scene, 0, 1, margin)
        count[k] = n
        point[k, :n], normal[k, :n] = s.out.point[:n], s.out.normal[:n]
        depth[k, :n], feature[k, :n] = s.out.depth[:n], s.out.feature[:n]


class Pair:
    """Two shapes, the one of the lower kind first."""

    def __init__(self, one: Shape, other: Shape) -> None:
        placements = [Placement(s, b, np.zeros(3), np.eye(3), 0) for b, s in enumerate((one, other))]
        at, eye, table = np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)), pair_table([(one.kind, other.kind)])
        kinds = np.zeros(2, np.int64)
        self.scene = build_scene(placements, kinds, at, eye, spare=0, joints=0, excluded=(), margin=0.01, table=table)
        self.record = Struct(self.scene)

    def run(self, pos: np.ndarray, rot: np.ndarray, margin: float = 0.0) -> list[Found]:
        """Manifolds for places [n, 2, 3] and turns [n, 2, 3, 3] of the two."""
        n = len(pos)
        count, feature = np.zeros(n, np.int64), np.zeros((n, POINTS), np.int64)
        point, normal, depth = np.zeros((n, POINTS, 3)), np.zeros((n, POINTS, 3)), np.zeros((n, POINTS))
        _touch(self.record.address, pos, rot, margin, count, point, normal, depth, feature)
        return [Found(point[k, :c], normal[k, :c], depth[k, :c], feature[k, :c]) for k, c in enumerate(count)]


def field_mesh(field: Field) -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles of a height field, in the frame of its shape."""
    height = np.asarray(field.heights, float)
    (nx, ny), (dx, dy) = height.shape, field.steps()
    x, y = np.meshgrid((np.arange(nx) - 0.5 * (nx - 1)) * dx, (np.arange(ny) - 0.5 * (ny - 1)) * dy, indexing="ij")
    vertex = np.stack([x, y, height - field.middle()[2]], -1).reshape(-1, 3)
    i = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = i[:-1, :-1].ravel(), i[1:, :-1].ravel(), i[1:, 1:].ravel(), i[:-1, 1:].ravel()
    return vertex, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def in_coal(shape: Shape) -> Any:
    """The same shape for coal, in the frame of the shape."""
    match shape:
        case Sphere(radius):
            return coal.Sphere(radius)
        case Capsule(radius, length):
            return coal.Capsule(radius, length)
        case Hull():
            points = coal.StdVec_Vec3s()
            points.extend(list(shape.corners() - shape.middle()))
            return coal.Convex.convexHull(points, True, "Qt")
        case Mesh():
            return _tree(np.asarray(shape.vertices) - shape.middle(), np.asarray(shape.triangles))
        case Field():
            return _tree(*field_mesh(shape))
    raise ValueError(shape)


def _tree(vertex: np.ndarray, triangle: np.ndarray) -> Any:
    points, faces, model = coal.StdVec_Vec3s(), coal.StdVec_Triangle(), coal.BVHModelOBBRSS()
    points.extend(list(vertex))
    faces.extend([coal.Triangle(*t) for t in triangle.tolist()])
    model.beginModel(len(faces), len(points))
    model.addSubModel(points, faces)
    model.endModel()
    return model
