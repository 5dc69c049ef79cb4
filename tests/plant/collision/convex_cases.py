"""Pairs of convex shapes for tests: the arrays of ours, the same shapes for coal, and a kernel over many pairs."""

from __future__ import annotations

from functools import cached_property

import coal
import numpy as np
from coal_peer import twin
from mesh_scenes import empty_scene
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import Kind, Manifold, Placed, Shapes, new_manifold
from plant.collision.narrowphase.gjk import new_convex_scratch
from plant.collision.pairs.table import call_pair, pair_table
from plant.collision.scene import view_scene
from plant.collision.shape.hull import build_hulls
from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Hull, Sphere

HULL = int(Kind.HULL)
CONVEX = [Kind.SPHERE, Kind.CAPSULE, Kind.BOX, Kind.CYLINDER, Kind.CONE, Kind.HULL]


@kernel
def run_pairs(scene, margin, count, depth, normal, point):
    """Shape 2 k against shape 2 k + 1 for every k, by the kernel for any two convex shapes: number of points, and the
    deepest of them."""
    s = view_scene(scene)
    o, function = s.out, s.table[HULL, HULL]
    for k in range(count.size):
        n = call_pair(function, scene, 2 * k, 2 * k + 1, margin)
        count[k], depth[k] = n, -np.inf
        for p in range(n):
            if o.depth[p] > depth[k]:
                depth[k] = o.depth[p]
                for m in range(3):
                    normal[k, m], point[k, m] = o.normal[p, m], o.point[p, m]


class Scene:
    """Shapes at places, as records."""

    def __init__(self, shapes, pos, rot):
        n = len(shapes)
        clouds = {id(s): s.vertices for s in shapes if s.kind == Kind.HULL}
        number = {key: i for i, key in enumerate(clouds)}
        asset = np.array([number.get(id(s), -1) for s in shapes])
        self.hulls = build_hulls(list(clouds.values()))
        ints = [np.zeros(n, np.int64) for _ in range(4)]
        self.content = Shapes(
            kind=np.array([int(s.kind) for s in shapes]),
            body=ints[0],
            at=np.zeros((n, 3)),
            turn=np.zeros((n, 3, 3)),
            size=np.array([s.sizes() for s in shapes]),
            bound=np.array([s.bound() for s in shapes]),
            material=ints[1],
            group=ints[2],
            mask=ints[3],
            asset=asset,
            enabled=np.ones(n, np.int64),
        )
        self.placed = Placed(np.array(pos, float), np.array(rot, float), np.zeros((n, 3)), np.zeros((n, 3)))
        self.out: Manifold = new_manifold()
        self.records = [Struct(x) for x in (self.content, self.placed, self.hulls, new_convex_scratch(), self.out)]
        self.address = [r.address for r in self.records]

    @cached_property
    def whole(self):
        """The scene as the engine has it; made when it is first asked for, as that compiles."""
        parts = {"shape": self.content, "placed": self.placed, "hull": self.hulls, "out": self.out}
        return Struct(empty_scene()._replace(table=pair_table([(Kind.HULL, Kind.HULL)]), **parts))

    def run(self, margin=0.01):
        pairs = len(self.content.kind) // 2
        count, depth = np.zeros(pairs, np.int64), np.zeros(pairs)
        normal, point = np.zeros((pairs, 3)), np.zeros((pairs, 3))
        run_pairs(self.whole.address, margin, count, depth, normal, point)
        return count, depth, normal, point

    def points(self, margin=0.01):
        """Points of the first pair."""
        count = self.run(margin)[0]
        return [a[: count[0]].copy() for a in self.out] if len(count) == 1 else None


def random_shape(rng, kind):
    a, b, c = np.exp(rng.uniform(-1.0, 1.0, 3))
    if kind == Kind.SPHERE:
        return Sphere(a)
    if kind == Kind.CAPSULE:
        return Capsule(a, 2 * b)
    if kind == Kind.BOX:
        return Box(2 * a, 2 * b, 2 * c)
    if kind == Kind.CYLINDER:
        return Cylinder(a, 2 * b)
    if kind == Kind.CONE:
        return Cone(a, 2 * b)
    points = rng.normal(size=(int(rng.integers(4, 60)), 3)) * [a, b, c]
    return Hull(points - 0.5 * (points.min(0) + points.max(0)))


def random_pairs(rng, count, kinds=None):
    """Pairs of all kinds, turned at random, about as often apart as overlapping."""
    shapes, pos = [], []
    for _ in range(count):
        i, j = kinds or sorted(rng.integers(0, 6, 2))
        pair = [random_shape(rng, CONVEX[i]), random_shape(rng, CONVEX[j])]
        shapes += pair
        way = rng.normal(size=3)
        way *= rng.uniform(0.0, 0.9) * (pair[0].bound() + pair[1].bound()) / np.linalg.norm(way)
        base = rng.uniform(-5, 5, 3)
        pos += [base, base + way]
    rot = Rotation.random(len(shapes), random_state=rng).as_matrix()
    return shapes, np.array(pos), rot


def coal_distances(shapes, pos, rot):
    """Signed distance and normal (from the second to the first) of each pair by coal."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    distance, normal = [], []
    made = {id(s): twin(s) for s in shapes}
    for k in range(0, len(shapes), 2):
        a, b = made[id(shapes[k])], made[id(shapes[k + 1])]
        ta, tb = (coal.Transform3s(rot[m], pos[m]) for m in (k, k + 1))
        result = coal.DistanceResult()
        distance.append(coal.distance(a, ta, b, tb, request, result))
        normal.append(-np.array(result.normal))
    return np.array(distance), np.array(normal)


def best_push(shapes, pos, rot, normal):
    """Overlap along each normal by brute force over the support points: no direction can give less than the depth."""
    total = np.zeros(len(normal))
    for side, sign in ((0, -1.0), (1, 1.0)):
        for k, n in enumerate(normal):
            s, m = shapes[2 * k + side], 2 * k + side
            total[k] += extent(s, rot[m].T @ (sign * n)) + sign * (pos[m] @ n)
    return total


def extent(s, d):
    """How far shape s reaches along the unit vector d from its origin: closed forms."""
    aside = np.hypot(d[0], d[1])
    if s.kind == Kind.SPHERE:
        return s.radius
    if s.kind == Kind.CAPSULE:
        return s.radius + 0.5 * s.length * abs(d[2])
    if s.kind == Kind.BOX:
        return 0.5 * (s.x * abs(d[0]) + s.y * abs(d[1]) + s.z * abs(d[2]))
    if s.kind == Kind.CYLINDER:
        return s.radius * aside + 0.5 * s.height * abs(d[2])
    if s.kind == Kind.CONE:
        return max(0.5 * s.height * d[2], s.radius * aside - 0.5 * s.height * d[2])
    return ((s.vertices - s.middle()) @ d).max()
