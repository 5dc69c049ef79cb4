"""Shapes of every kind in many sizes, random places for pairs of them, and their points through the table of pairs.

A `Family` is a kind in up to 48 variants whose sizes span two orders of magnitude. `draw` places pairs so that about a
third are further apart than the margin, a third nearer, and a third overlap, by a ten thousandth of the smaller of
the two up to all of it: each pair is put down anywhere and moved along the normal that `truth` finds there by
what is missing. A sixth of all pairs are parallel or nearly so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import trimesh
from coal_peer import twin
from mesh_scenes import block, grid
from pair_truth import balls, extents, faces, is_graph, signed_many
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import POINTS, Kind
from plant.collision.pairs.table import call_pair, pair_table
from plant.collision.scene import Placement, build_scene, view_scene
from plant.collision.shape.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Field,
    Hull,
    Link,
    Mesh,
    Plane,
    Shape,
    Sphere,
    Torus,
)

VARIANTS = {Kind.HULL: 24, Kind.PLANE: 1, Kind.MESH: 8, Kind.FIELD: 4}
SMALL, LARGE = 0.02, 2.0  # [m] sizes
GROUND = 8.0  # [m] half the width of ground, wider than any shape


def random_shape(kind: Kind, number: int, rng: np.random.Generator) -> Shape:
    """Variant `number` of a kind."""
    size = np.exp(rng.uniform(np.log(SMALL), np.log(LARGE)))
    a, b, c = size * np.exp(rng.uniform(-0.7, 0.7, 3))
    match kind:
        case Kind.SPHERE:
            return Sphere(a / 2)
        case Kind.CAPSULE:
            return Capsule(a / 2, b)
        case Kind.BOX:
            return Box(a, b, c)
        case Kind.CYLINDER:
            return Cylinder(a / 2, b)
        case Kind.CONE:
            return Cone(a / 2, b)
        case Kind.HULL:
            return Hull(0.5 * rng.normal(size=(int(rng.integers(4, 30)), 3)) * [a, b, c])
        case Kind.PLANE:
            return Plane()
        case Kind.TORUS:
            return Torus(a / 2, a / 2 * rng.uniform(0.05, 0.6))
        case Kind.LINK:
            return Link(b, a / 2, a / 2 * rng.uniform(0.05, 0.6))
        case Kind.MESH:
            return random_mesh(number, size, rng)
    n = (6, 12, 17, 9)[number % 4]
    return Field(_hills(n, rng), (2 * GROUND / (n - 1), 2 * GROUND / (n - 1)))


def _hills(n: int, rng: np.random.Generator) -> np.ndarray:
    """Heights of ground with slopes of up to half a right angle."""
    return np.round(rng.uniform(-0.25, 0.25, (n, n)) * 2 * GROUND / (n - 1), 6)


def random_mesh(number: int, size: float, rng: np.random.Generator) -> Mesh:
    """A block, balls, rocks, a thick ring, a star, or open ground."""
    match number:
        case 0 | 1:
            return Mesh(*block(*(0.5 * size * rng.uniform(0.5, 1.5, 3))))
        case 2 | 3 | 4:
            ball = trimesh.creation.icosphere(subdivisions=1, radius=0.5 * size)
            rough = 0.1 * number - 0.2
            return Mesh(ball.vertices * (1 + rough * rng.uniform(-1, 1, (len(ball.vertices), 1))), ball.faces)
        case 5:
            ring = trimesh.creation.torus(0.5 * size, 0.2 * size, major_sections=12, minor_sections=6)
            return Mesh(np.array(ring.vertices), np.array(ring.faces))
        case 6:
            star = trimesh.creation.icosphere(subdivisions=1, radius=0.5 * size)
            star.vertices[:12] *= 1.6  # the corners of the icosahedron; those between stay
            return Mesh(np.array(star.vertices), np.array(star.faces))
    return Mesh(*grid(9, GROUND, lambda x, y: _hills(9, rng)))


class Family:
    """A kind in many sizes."""

    def __init__(self, kind: Kind, seed: int) -> None:
        rng = np.random.default_rng([seed, kind])
        self.kind = kind
        self.shapes = [random_shape(kind, k, rng) for k in range(VARIANTS.get(kind, 48))]
        self.size = np.array([s.sizes() for s in self.shapes])
        self.bound = np.array([s.bound() for s in self.shapes])
        self.corners = [faces(s) for s in self.shapes]
        self.some_point = np.array([c[0, 0] if len(c) else np.zeros(3) for c in self.corners])  # in each, in its frame
        self.triangles = np.concatenate(self.corners)
        self.balls = balls(self.triangles)
        self.first = np.cumsum([0, *(len(c) for c in self.corners)])
        self.graph = np.array([is_graph(s) for s in self.shapes])
        self.twins = [twin(s) for s in self.shapes]

    def closed(self) -> np.ndarray:
        """Variants that are no ground."""
        return np.flatnonzero(~self.graph)

    def signed(self, which: np.ndarray, pos: np.ndarray, rot: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Signed distances of points [n, 3] from variants at places."""
        out = np.zeros(len(point))
        mine = self.size, self.triangles, self.balls, self.first, self.graph
        signed_many(int(self.kind), *mine, which, pos, rot, point, out)
        return out

    def extents(self, which: np.ndarray, rot: np.ndarray, way: np.ndarray) -> np.ndarray:
        """How far they reach from their origins along unit vectors [n, 3] of the world."""
        return extents(self.kind, self.size[which], which, self.corners, np.einsum("kji,kj->ki", rot, way))


@cache
def family(kind: Kind, seed: int) -> Family:
    return Family(kind, seed)


class Places(NamedTuple):
    """Which variants, and where: [n, 2], [n, 2, 3], [n, 2, 3, 3]."""

    which: np.ndarray
    pos: np.ndarray
    rot: np.ndarray
    margin: np.ndarray  # [n]

    def taken(self, rows: Any) -> Places:
        return Places(*(a[rows] for a in self))

    def turned(self, turn: np.ndarray, by: np.ndarray) -> Places:
        """With both shapes turned by turn[k] about the origin of the world and moved."""
        pos = np.einsum("kij,ksj->ksi", turn, self.pos) + by[:, None]
        return self._replace(pos=pos, rot=np.einsum("kij,ksjl->ksil", turn, self.rot))


@dataclass
class Points:
    """Manifolds of many pairs, one after the other: those of pair k are rows first[k] to first[k + 1]."""

    first: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    feature: np.ndarray
    pair: np.ndarray = field(init=False)  # of each row
    count: np.ndarray = field(init=False)  # of each pair
    deepest: np.ndarray = field(init=False)  # row of the deepest point of each pair; -1 = none

    def __post_init__(self) -> None:
        self.count = np.diff(self.first)
        self.pair = np.repeat(np.arange(len(self.count)), self.count)
        order = np.lexsort((np.arange(len(self.depth)), -self.depth, self.pair))
        self.deepest = np.full(len(self.count), -1)
        some = self.count > 0
        self.deepest[some] = order[self.first[:-1][some]]

    @property
    def depths(self) -> np.ndarray:
        """Of the deepest point of each pair; -inf where there is none."""
        return np.where(self.deepest >= 0, np.append(self.depth, -np.inf)[self.deepest], -np.inf)

    @property
    def normals(self) -> np.ndarray:
        return np.concatenate([self.normal, np.zeros((1, 3))])[self.deepest]


@kernel
def through_table(scene, variants, which, pos, rot, margin, first, point, normal, depth, feature):
    """Put variants in their places, pair after pair, and write down all points."""
    s = view_scene(scene)
    function = s.table[s.shape.kind[0], s.shape.kind[variants]]
    row = 0
    for k in range(margin.size):
        i, j = which[k, 0], variants + which[k, 1]
        for c in range(3):
            s.placed.pos[i, c], s.placed.pos[j, c] = pos[k, 0, c], pos[k, 1, c]
            for d in range(3):
                s.placed.rot[i, c, d], s.placed.rot[j, c, d] = rot[k, 0, c, d], rot[k, 1, c, d]
        n = call_pair(function, scene, i, j, margin[k])
        for q in range(n):
            depth[row], feature[row] = s.out.depth[q], s.out.feature[q]
            for c in range(3):
                point[row, c], normal[row, c] = s.out.point[q, c], s.out.normal[q, c]
            row += 1
        first[k + 1] = row


class Table:
    """The kernel of a pair of kinds, with all variants of both."""

    def __init__(self, one: Family, other: Family) -> None:
        self.variants = len(one.shapes)
        shapes = [Placement(s, b, np.zeros(3), np.eye(3), 0) for b, s in enumerate(one.shapes + other.shapes)]
        n = len(shapes)
        self.record = Struct(
            build_scene(
                shapes,
                np.zeros(n, np.int64),
                np.zeros((n, 3)),
                np.tile(np.eye(3), (n, 1, 1)),
                spare=0,
                joints=0,
                excluded=(),
                margin=0.0,
                table=pair_table([(one.kind, other.kind)]),
            )
        )

    def points(self, places: Places) -> Points:
        n = len(places.margin)
        first, feature = np.zeros(n + 1, np.int64), np.zeros(n * POINTS, np.int64)
        point, normal, depth = np.zeros((n * POINTS, 3)), np.zeros((n * POINTS, 3)), np.zeros(n * POINTS)
        given = [np.ascontiguousarray(a) for a in places]
        through_table(self.record.address, self.variants, *given, first, point, normal, depth, feature)
        rows = slice(0, first[-1])
        return Points(first, point[rows].copy(), normal[rows].copy(), depth[rows].copy(), feature[rows].copy())


def random_turns(rng: np.random.Generator, count: int) -> np.ndarray:
    return Rotation.random(count, random_state=rng).as_matrix()


def draw(
    one: Family, other: Family, rng: np.random.Generator, count: int, truth: Callable[[Places], tuple[Any, ...]]
) -> Places:
    """Random places of pairs; `truth(places)` gives signed distances and normals."""
    variants = one.closed(), other.closed() if one.kind == Kind.PLANE else np.arange(len(other.shapes))
    which = np.stack([rng.choice(v, size=count) for v in variants], 1)
    rot = random_turns(rng, 2 * count).reshape(count, 2, 3, 3)
    _line_up(rot, rng)
    bound = np.stack([one.bound[which[:, 0]], other.bound[which[:, 1]]], 1)
    ground = np.stack(
        [one.graph[which[:, 0]] | np.isinf(bound[:, 0]), other.graph[which[:, 1]] | np.isinf(bound[:, 1])], 1
    )
    small = np.where(ground, np.inf, bound).min(1)
    way = rng.normal(size=(count, 3))
    way *= (np.where(ground, 0.0, bound).sum(1) * rng.uniform(0.05, 1.1, count) / np.linalg.norm(way, axis=1))[:, None]
    for side, sign in ((1, 1.0), (0, -1.0)):
        over = np.c_[rng.uniform(-0.5, 0.5, (count, 2)) * GROUND, bound[:, 1 - side] * rng.uniform(0.2, 1.5, count)]
        way = np.where(ground[:, side, None], sign * np.einsum("kij,kj->ki", rot[:, side], over), way)
    base = rng.uniform(-2.0, 2.0, (count, 3))
    margin = small * 10.0 ** rng.uniform(-2.0, -0.5, count)
    places = Places(which, np.stack([base + way, base], 1), rot, margin)
    kind = rng.integers(6, size=count)
    wanted = np.select(
        [kind < 2, kind < 4, kind == 4],
        [
            margin * rng.uniform(1.0, 4.0, count),
            margin * rng.uniform(0.0, 1.0, count),
            -small * rng.uniform(0.05, 1.0, count),
        ],
        -small * 10.0 ** rng.uniform(-4.0, -1.0, count),
    )
    rows = np.arange(count)
    for _ in range(12 if other.kind == Kind.MESH else 4):  # what got into another part of a hollow shape is moved on
        distance, normal = truth(places.taken(rows))[:2]
        if one.kind > Kind.LINK:  # how deep two meshes are in each other nobody knows
            distance = np.where(distance > 0.0, distance, -0.3 * small[rows])
        by = np.where(np.abs(distance) < 1e3, wanted[rows] - distance, 0.0)
        places.pos[rows, 0] += by[:, None] * normal
        rows = rows[(distance <= 0.0) & (wanted[rows] > 0.0)]
    if Kind.HULL in (one.kind, other.kind):  # coal's normals of hulls differ in their last digits from run to run
        places.pos[:] = np.round(places.pos, 6)
    return places


def _line_up(rot: np.ndarray, rng: np.random.Generator) -> None:
    """Turn a sixth of the second shapes to within a quarter turn of the first, or as good as that."""
    n = len(rot)
    rows = np.flatnonzero(rng.random(n) < 1 / 6)
    quarter = Rotation.from_euler("xyz", rng.integers(0, 4, (len(rows), 3)) * 90.0, degrees=True)
    off = (
        rng.normal(size=(len(rows), 3))
        * (10.0 ** rng.uniform(-12, -1, len(rows)) * (rng.random(len(rows)) < 0.6))[:, None]
    )
    rot[rows, 0] = rot[rows, 1] @ np.round(quarter.as_matrix()) @ Rotation.from_rotvec(off).as_matrix()
