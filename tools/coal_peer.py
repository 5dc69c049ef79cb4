"""Our shapes in coal (formerly hpp-fcl), which tests and benchmarks compare ours with. In the dev extra."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np

from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Field, Hull, Mesh, Plane, Shape, Sphere


def twin(shape: Shape) -> Any:
    """The shape in its frame; a field as a mesh of its triangles. None of what coal has not: tori and links."""
    match shape:
        case Sphere(radius):
            return coal.Sphere(radius)
        case Capsule(radius, length):
            return coal.Capsule(radius, length)
        case Box(x, y, z):
            return coal.Box(x, y, z)
        case Cylinder(radius, height):
            return coal.Cylinder(radius, height)
        case Cone(radius, height):
            return coal.Cone(radius, height)
        case Plane():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case Hull():
            return coal.Convex.convexHull(vectors(shape.vertices - shape.middle()), True, "Qt")
        case Mesh():
            return mesh_twin(shape.vertices - shape.middle(), shape.triangles)
        case Field():
            return mesh_twin(*field_mesh(shape))
    return None


def height_field_twin(field: Field, floor: float = -10.0) -> Any:
    """A field as coal's own height field, whose rows run along y from the top; coal knows none against meshes."""
    heights = np.asarray(field.heights)
    x, y = (step * (n - 1) for step, n in zip(field.steps(), heights.shape, strict=True))
    return coal.HeightFieldOBBRSS(x, y, np.asfortranarray(heights.T[::-1] - field.middle()[2]), floor)


def mesh_twin(vertices: np.ndarray, triangles: np.ndarray) -> Any:
    """Triangles in a BVH."""
    faces, model = coal.StdVec_Triangle(), coal.BVHModelOBBRSS()
    faces.extend([coal.Triangle(*t) for t in np.asarray(triangles).tolist()])
    model.beginModel(len(triangles), len(vertices))
    model.addSubModel(vectors(vertices), faces)
    model.endModel()
    return model


def vectors(points: np.ndarray) -> Any:
    """Points [n, 3] as coal's list of vectors."""
    made = coal.StdVec_Vec3s()
    made.extend(list(np.ascontiguousarray(points)))
    return made


def field_mesh(field: Field) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a height field, in its frame."""
    heights, (dx, dy) = np.asarray(field.heights, float), field.steps()
    nx, ny = heights.shape
    x, y = np.meshgrid((np.arange(nx) - 0.5 * (nx - 1)) * dx, (np.arange(ny) - 0.5 * (ny - 1)) * dy, indexing="ij")
    return np.stack([x, y, heights - field.middle()[2]], -1).reshape(-1, 3), grid_triangles(nx, ny)


def grid_triangles(nx: int, ny: int) -> np.ndarray:
    """Two triangles for each cell of a grid, parted from its low corner to its high one; they look up."""
    i = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = i[:-1, :-1].ravel(), i[1:, :-1].ravel(), i[1:, 1:].ravel(), i[:-1, 1:].ravel()
    return np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def surface_distance(one: Any, other: Any, pos: np.ndarray, rot: np.ndarray) -> float:
    """Distance of two surfaces at pos [2, 3] and rot [2, 3, 3]; 0 if they cross."""
    a, b = (coal.Transform3s(rot[k].copy(), pos[k].copy()) for k in range(2))
    if coal.collide(one, a, other, b, coal.CollisionRequest(), coal.CollisionResult()):
        return 0.0
    return coal.distance(one, a, other, b, coal.DistanceRequest(), coal.DistanceResult())
