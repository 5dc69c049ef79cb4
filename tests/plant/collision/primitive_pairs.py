"""Pairs of placed shapes for tests of pair kernels, and coal's answer for the same pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import coal
import numpy as np
from mesh_scenes import empty_scene
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import POINTS, Kind, Placed, Shapes, new_placed
from plant.collision.pairs.table import call_pair, pair_table
from plant.collision.scene import view_scene


class Body(NamedTuple):
    """One shape and where it is."""

    kind: Kind
    size: Sequence[float]
    at: Any = (0.0, 0.0, 0.0)
    turn: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def moved(self, by: Any) -> Body:
        return self._replace(at=np.asarray(self.at, float) + by)


@dataclass
class Found:
    """The manifold of one pair."""

    point: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    feature: np.ndarray

    @property
    def count(self) -> int:
        return len(self.depth)

    @property
    def deepest(self) -> float:
        return float(self.depth.max(initial=-np.inf))


@kernel
def _one_by_one(scene, function, margin, count, point, normal, depth, feature):
    """Shape 2 k against shape 2 k + 1 for every k."""
    s = view_scene(scene)
    for k in range(count.size):
        count[k] = call_pair(function, scene, 2 * k, 2 * k + 1, margin)
        for q in range(count[k]):
            depth[k, q], feature[k, q] = s.out.depth[q], s.out.feature[q]
            for d in range(3):
                point[k, q, d], normal[k, q, d] = s.out.point[q, d], s.out.normal[q, d]


def runner(first: Kind, second: Kind) -> Any:
    """A function `run(pairs of bodies, margin) -> list of Found` by the kernel that the table has for two kinds."""

    def run(pairs: Sequence[tuple[Body, Body]], margin: float = 0.0) -> list[Found]:
        shapes, placed = lay_down([body for two in pairs for body in two])
        scene, function = Struct(empty_scene()._replace(shape=shapes, placed=placed)), pair_table([(first, second)])
        n = len(pairs)
        count, feature = np.zeros(n, np.int64), np.zeros((n, POINTS), np.int64)
        point, normal, depth = np.zeros((n, POINTS, 3)), np.zeros((n, POINTS, 3)), np.zeros((n, POINTS))
        _one_by_one(scene.address, int(function[first, second]), margin, count, point, normal, depth, feature)
        return [Found(point[k, :c], normal[k, :c], depth[k, :c], feature[k, :c]) for k, c in enumerate(count)]

    return run


def lay_down(bodies: Sequence[Body]) -> tuple[Shapes, Placed]:
    """Shapes and their places."""
    n = len(bodies)
    size, placed = np.zeros((n, 4)), new_placed(n)
    for k, body in enumerate(bodies):
        size[k, : len(body.size)] = body.size
        placed.pos[k], placed.rot[k] = body.at, body.turn
    kind = np.array([body.kind for body in bodies], np.int64)
    zero, one = np.zeros(n, np.int64), np.ones(n, np.int64)
    eye = np.tile(np.eye(3), (n, 1, 1))
    return Shapes(kind, zero, np.zeros((n, 3)), eye, size, np.ones(n), zero, one, one, zero - 1, one), placed


def random_turn(rng: np.random.Generator) -> np.ndarray:
    """Mostly any rotation; sometimes a quarter turn or nearly one, where edges and faces are parallel."""
    what = rng.random()
    if what < 0.7:
        return Rotation.random(random_state=rng).as_matrix()
    quarter = Rotation.from_euler("xyz", rng.integers(0, 4, 3) * 90.0, degrees=True)
    if what < 0.8:
        return np.round(quarter.as_matrix())
    small = 10.0 ** rng.uniform(-12, -1)
    return (Rotation.from_rotvec(small * rng.normal(size=3)) * quarter).as_matrix()


def coal_shape(body: Body) -> Any:
    s = [float(x) for x in body.size]
    match body.kind:
        case Kind.SPHERE:
            return coal.Sphere(s[0])
        case Kind.CAPSULE:
            return coal.Capsule(s[0], 2 * s[1])
        case Kind.BOX:
            return coal.Box(2 * s[0], 2 * s[1], 2 * s[2])
        case Kind.CYLINDER:
            return coal.Cylinder(s[0], 2 * s[1])
        case Kind.CONE:
            return coal.Cone(s[0], 2 * s[1])
        case Kind.PLANE:
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    raise ValueError(body.kind)


def coal_distance(i: Body, j: Body) -> tuple[float, np.ndarray]:
    """Signed distance and the normal from j to i."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations, request.epa_max_iterations = 1000, 1000
    place = [coal.Transform3s(np.asarray(b.turn, float), np.asarray(b.at, float)) for b in (i, j)]
    distance = coal.distance(coal_shape(i), place[0], coal_shape(j), place[1], request, result)
    return distance, -np.array(result.normal)
