"""Overlap volumes against closed forms, intersections of half-spaces by scipy, tetrahedra, and their slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import trimesh
from mesh_scenes import block, grid
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from hilnode.core.struct import Struct
from plant.collision.model import Kind
from plant.collision.scene import Placement, build_scene
from plant.collision.shape.hull import build_hulls
from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Field, Hull, Mesh, Plane, Shape, Sphere, Torus
from plant.collision.volume.moments import APART, ENCLOSED, FOUND, TOO_MANY, UNKNOWN, Overlap
from plant.collision.volume.volume import KNOWN, Volumes, build_volumes, overlap

EYE = np.eye(3)
TABLE = np.zeros((len(Kind), len(Kind)), np.int64)


class Two:
    """Two shapes to be put anywhere and asked for what they have in common."""

    def __init__(self, first: Shape, second: Shape) -> None:
        assert first.kind <= second.kind
        placements = [Placement(s, b, np.zeros(3), EYE, 0) for b, s in enumerate((first, second))]
        eye, kinds = np.tile(EYE, (2, 1, 1)), np.zeros(2, np.int64)
        self.shapes = first, second
        self.scene = build_scene(
            placements, kinds, np.zeros((2, 3)), eye, spare=0, joints=0, excluded=(), margin=0.01, table=TABLE
        )
        self.scene.placed.pos[:] = 0.0  # frames at the origin, wherever the points of an asset lie
        self.volumes = build_volumes(self.scene.hull, [(first.kind, second.kind)])
        self.records = Struct(self.scene), Struct(self.volumes)

    def put(self, s: int, at: Any, turn: Any = EYE) -> Two:
        self.scene.placed.pos[s], self.scene.placed.rot[s] = at, turn
        return self

    def ask(self) -> Overlap:
        """A copy of the answer."""
        found = overlap(*(r.address for r in self.records), 0, 1)
        out = self.volumes.out
        assert found == (out.status[0] in (FOUND, ENCLOSED))
        assert all(np.isfinite(part).all() for part in out)
        return Overlap(*(part.copy() for part in out))

    def volume(self) -> float:
        return float(self.ask().volume[0])


def turn(rng: np.random.Generator) -> np.ndarray:
    return Rotation.random(random_state=rng).as_matrix()


def solid_of(points: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centroid and inertia of a convex hull, by trimesh, measured from its own middle."""
    middle = points.mean(0)
    hull = ConvexHull(points - middle)
    faces = hull.simplices.copy()
    a, b, c = (hull.points[faces[:, k]] for k in range(3))
    inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(1) < 0
    faces[inward] = faces[inward][:, ::-1]
    made = trimesh.Trimesh(hull.points, faces, process=False)
    return hull.volume, middle + made.center_mass, made.moment_inertia


def planes_of(points: np.ndarray, at: np.ndarray, rot: np.ndarray) -> np.ndarray:
    """Half-spaces [n, d] with n . x + d <= 0 of the hull of points, placed."""
    return ConvexHull(points @ rot.T + at).equations


def corners(shape: Shape) -> np.ndarray:
    """Corners of a box or hull in its frame."""
    if isinstance(shape, Box):
        signs = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).reshape(3, -1).T
        return signs * [shape.x, shape.y, shape.z]
    assert isinstance(shape, Hull)
    return shape.corners() - shape.middle()


def random_solid(rng: np.random.Generator) -> Box | Hull:
    if rng.integers(2):
        return Box(*rng.uniform(0.1, 2, 3))
    return Hull(rng.normal(size=(rng.integers(4, 30), 3)) * rng.uniform(0.2, 1.0))


# Closed forms


@pytest.mark.parametrize("depth", [1e-4, 0.01, 0.3, 0.5, 0.9])
def test_a_ball_in_a_plane_is_a_cap(depth: float) -> None:
    """Volume, centroid, inertia and disc of a spherical cap."""
    r, t = 0.5, depth
    v = Two(Sphere(r), Plane()).put(0, (3, -2, r - t)).ask()
    volume = math.pi * t * t * (3 * r - t) / 3
    disc = t * (2 * r - t)
    assert v.volume[0] == pytest.approx(volume, rel=1e-12)
    assert v.centroid == pytest.approx([3, -2, r - t - 3 * (2 * r - t) ** 2 / (4 * (3 * r - t))], rel=1e-12)
    assert v.area[0] == pytest.approx(math.pi * disc, rel=1e-12)
    assert v.normal == pytest.approx([0, 0, 1])
    assert v.patch == pytest.approx(math.pi * disc**2 / 4 * np.diag([1, 1, 2]))
    assert v.point == pytest.approx(v.centroid)
    s = np.linspace(0, t, 200001)  # slices
    area = math.pi * s * (2 * r - s)
    axial = np.trapezoid(area * s * (2 * r - s) / 2, s)
    across = axial / 2 + np.trapezoid(area * (s - t - v.centroid[2]) ** 2, s)
    assert v.inertia[2, 2] == pytest.approx(axial, rel=1e-6)
    assert v.inertia[0, 0] == pytest.approx(across, rel=1e-6)


def test_two_balls_make_a_lens() -> None:
    a, b, way = 0.6, 0.4, np.array([3.0, 2.0, 5.0])
    for d in (0.25, 0.5, 0.9, 0.999):
        at = way / np.linalg.norm(way) * d
        v = Two(Sphere(a), Sphere(b)).put(0, at + 1).put(1, np.ones(3)).ask()
        volume = math.pi * (a + b - d) ** 2 * (d * d + 2 * d * (a + b) - 3 * (a - b) ** 2) / (12 * d)
        assert v.volume[0] == pytest.approx(volume, rel=1e-10)
        assert v.normal == pytest.approx(at / d)
        chord = (4 * d * d * b * b - (d * d - a * a + b * b) ** 2) / (4 * d * d)
        assert v.area[0] == pytest.approx(math.pi * chord, rel=1e-10)


def test_a_ball_in_a_ball_has_no_contour() -> None:
    v = Two(Sphere(0.6), Sphere(0.1)).put(1, (0.2, 0, 0)).ask()
    assert v.status[0] == ENCLOSED
    assert v.volume[0] == pytest.approx(4 / 3 * math.pi * 1e-3)
    assert v.area[0] == 0.0
    assert v.normal == pytest.approx([-1, 0, 0])


def test_boxes_side_by_side_share_a_box() -> None:
    """Flush on four sides, where the faces of both lie in the same planes."""
    two = Two(Box(1, 2, 3), Box(1, 2, 3))
    for way, part in (((0.7, 0, 0), (0.3, 2, 3)), ((0, -1.5, 0), (1, 0.5, 3)), ((0, 0, 2.999), (1, 2, 0.001))):
        for rot in (EYE, Rotation.from_rotvec([0.4, -1, 2]).as_matrix()):
            v = two.put(0, rot @ way, rot).put(1, np.zeros(3), rot).ask()
            x, y, z = part
            assert v.volume[0] == pytest.approx(x * y * z, rel=1e-10)
            assert v.centroid == pytest.approx(rot @ way / 2)
            inertia = x * y * z / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
            assert v.inertia == pytest.approx(rot @ inertia @ rot.T, abs=1e-12)
            assert v.normal == pytest.approx(rot @ way / np.linalg.norm(way))
            assert v.area[0] == pytest.approx(x * y * z / min(part))


def test_a_box_twice_in_the_same_place() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        half = rng.uniform(0.1, 2, 3)
        rot, at = turn(rng), rng.uniform(-5, 5, 3)
        v = Two(Box(*half), Box(*half)).put(0, at, rot).put(1, at, rot).ask()
        assert v.status[0] == ENCLOSED
        assert v.volume[0] == pytest.approx(half.prod(), rel=1e-9)


def test_faces_that_just_meet_share_nothing() -> None:
    two = Two(Box(1, 1, 1), Box(1, 1, 1))
    for gap in (0.0, 1e-15, -1e-15, 1e-9):
        v = two.put(0, (0.2, 0.3, 1 + gap)).ask()
        assert v.status[0] == APART
        assert v.volume[0] == 0.0


@pytest.mark.parametrize("depth", [1e-9, 1e-6, 1e-3, 0.1])
def test_a_thin_overlap_keeps_its_digits(depth: float) -> None:
    """A box that has sunk into another by a micrometre: its inertia is that of a sheet."""
    rot = Rotation.from_rotvec([0.3, 0.7, -0.2]).as_matrix()
    v = Two(Box(1, 1, 1), Box(4, 4, 4)).put(0, rot @ [0.3, 0.2, 2.5 - depth], rot).put(1, np.zeros(3), rot).ask()
    assert v.volume[0] == pytest.approx(depth, rel=1e-15 / depth + 1e-12)
    assert v.area[0] == pytest.approx(1.0)
    assert rot.T @ v.inertia @ rot == pytest.approx(
        depth / 12 * np.diag([1 + depth**2, 1 + depth**2, 2]), rel=1e-5, abs=1e-6 * depth
    )


# Random convex solids


def convex_truth(shapes: tuple[Shape, Shape], two: Two, inside: np.ndarray) -> Any:
    placed = two.scene.placed
    planes = [planes_of(corners(s), placed.pos[k], placed.rot[k]) for k, s in enumerate(shapes)]
    both = np.concatenate(planes)
    if (both[:, :3] @ inside + both[:, 3]).max() > -1e-5:
        return None
    return solid_of(HalfspaceIntersection(both, inside).intersections)


def check_convex_pairs(seed: int, count: int) -> None:
    """Boxes and hulls with a point in common, anywhere from deep inside to near the surface of each."""
    rng, seen = np.random.default_rng(seed), 0
    while seen < count:
        first, second = sorted((random_solid(rng), random_solid(rng)), key=lambda s: s.kind)
        two = Two(first, second)
        for _ in range(20):
            common = rng.normal(size=3)
            for k, shape in enumerate((first, second)):
                points, rot = corners(shape), turn(rng)
                weight = rng.dirichlet(np.full(len(points), 10 ** rng.uniform(-1.5, 0.5)))
                two.put(k, common - rot @ (weight @ points), rot)
            truth = convex_truth((first, second), two, common)
            if truth is None:
                continue
            seen += 1
            v, (volume, centroid, inertia) = two.ask(), truth
            length = volume ** (1 / 3)
            assert v.volume[0] == pytest.approx(volume, rel=1e-9)
            assert np.abs(v.centroid - centroid).max() < 1e-8 * length
            assert np.abs(v.inertia - inertia).max() < 1e-8 * np.abs(inertia).max()


def test_convex_pairs_agree_with_scipy() -> None:
    check_convex_pairs(2, 1000)


@pytest.mark.slow
def test_many_convex_pairs_agree_with_scipy() -> None:
    check_convex_pairs(3, 100_000)


def test_convex_pairs_apart_share_nothing() -> None:
    """Whether there is a common point at all, by linear programming."""
    rng, apart = np.random.default_rng(4), 0
    for _ in range(60):
        first, second = sorted((random_solid(rng), random_solid(rng)), key=lambda s: s.kind)
        two = Two(first, second)
        for _ in range(5):
            for k in range(2):
                two.put(k, rng.normal(size=3) * 0.9, turn(rng))
            placed = two.scene.placed
            planes = [planes_of(corners(s), placed.pos[k], placed.rot[k]) for k, s in enumerate((first, second))]
            both = np.concatenate(planes)
            answer = linprog(
                [0, 0, 0, -1], np.c_[both[:, :3], np.ones(len(both))], -both[:, 3], bounds=[(None, None)] * 4
            )
            depth = answer.x[3]  # radius of the largest ball in both
            if abs(depth) > 1e-6:
                apart += depth < 0
                assert (two.ask().status[0] == APART) == (depth < 0)
    assert 50 < apart < 250


# Slopes: a move u of the first body changes the volume by -area (normal . u)

ROCK = trimesh.creation.icosphere(subdivisions=2, radius=0.4)
ROUGH = np.array(ROCK.vertices) * (1 + 0.12 * np.random.default_rng(5).standard_normal((len(ROCK.vertices), 1)))
SHAPES: dict[Kind, Shape] = {
    Kind.SPHERE: Sphere(0.3),
    Kind.CAPSULE: Capsule(0.2, 0.4),
    Kind.BOX: Box(0.5, 0.4, 0.6),
    Kind.CYLINDER: Cylinder(0.25, 0.5),
    Kind.CONE: Cone(0.3, 0.6),
    Kind.HULL: Hull(np.random.default_rng(6).normal(size=(14, 3)) * 0.25),
    Kind.PLANE: Plane(),
    Kind.MESH: Mesh(ROUGH, np.array(ROCK.faces)),
    Kind.FIELD: Field(0.1 * np.random.default_rng(7).standard_normal((12, 12)), 0.15),
}


def near_each_other(two: Two, rng: np.random.Generator) -> None:
    """Somewhere where they may overlap; before a plane or a field, about its surface."""
    rot, base = turn(rng), rng.uniform(-2, 2, 3)
    flat = two.shapes[1].kind in (Kind.PLANE, Kind.FIELD)
    way = np.array([*rng.uniform(-0.4, 0.4, 2), rng.uniform(-0.3, 0.3)]) if flat else rng.uniform(-0.35, 0.35, 3)
    two.put(1, base, rot).put(0, base + rot @ way, turn(rng))


@pytest.mark.parametrize("pair", sorted(KNOWN), ids=lambda p: " in ".join(k.name.lower() for k in p))
def test_the_volume_falls_along_the_normal_by_the_area(pair: tuple[Kind, Kind]) -> None:
    """The finite difference of the volume in any direction is the area of the patch seen in that direction."""
    two, rng, seen = Two(SHAPES[pair[0]], SHAPES[pair[1]]), np.random.default_rng(8), 0
    for _ in range(60):
        near_each_other(two, rng)
        v = two.ask()
        if v.status[0] != FOUND:
            continue
        seen += 1
        at, step = two.scene.placed.pos[0].copy(), rng.normal(size=3) * 2e-6
        ahead = two.put(0, at + step, two.scene.placed.rot[0]).volume()
        behind = two.put(0, at - step, two.scene.placed.rot[0]).volume()
        slope = -v.area[0] * float(v.normal @ step)
        assert (ahead - behind) / 2 == pytest.approx(slope, abs=1e-4 * v.area[0] * float(np.linalg.norm(step)) + 1e-15)
        assert np.linalg.eigvalsh(v.inertia)[0] > 0.0
        assert np.linalg.norm(v.normal) == pytest.approx(1.0)
    assert seen > 15


@pytest.mark.parametrize("pair", sorted(KNOWN), ids=lambda p: " in ".join(k.name.lower() for k in p))
def test_a_pair_moved_as_one_keeps_its_volume(pair: tuple[Kind, Kind]) -> None:
    two, rng = Two(SHAPES[pair[0]], SHAPES[pair[1]]), np.random.default_rng(9)
    for _ in range(30):
        near_each_other(two, rng)
        before, rot, by = two.ask(), turn(rng), rng.uniform(-3, 3, 3)
        for k in range(2):
            two.put(k, rot @ two.scene.placed.pos[k] + by, rot @ two.scene.placed.rot[k])
        after = two.ask()
        assert after.volume[0] == pytest.approx(before.volume[0], rel=1e-9, abs=1e-13)
        if before.volume[0] > 1e-6:
            assert after.centroid == pytest.approx(rot @ before.centroid + by, abs=1e-8)
            assert after.inertia == pytest.approx(rot @ before.inertia @ rot.T, abs=1e-11)
            assert after.status[0] == before.status[0]
        if before.status[0] == FOUND and before.area[0] > 1e-3:
            assert after.normal == pytest.approx(rot @ before.normal, abs=1e-7)
            assert after.point == pytest.approx(rot @ before.point + by, abs=1e-6)
            assert after.patch == pytest.approx(rot @ before.patch @ rot.T, abs=1e-9)


# Surfaces


def tetrahedra(vertices: np.ndarray, triangles: np.ndarray) -> list[np.ndarray]:
    """A star-shaped solid about the origin as tetrahedra."""
    return [np.vstack([np.zeros(3), vertices[t]]) for t in triangles]


@pytest.mark.parametrize("kind", [Kind.SPHERE, Kind.BOX, Kind.HULL], ids=lambda k: k.name.lower())
def test_a_rough_rock_is_the_sum_of_its_tetrahedra(kind: Kind) -> None:
    """The mesh against a convex solid, and each tetrahedron as a hull against it: other code, same sums."""
    solid, rng = SHAPES[kind], np.random.default_rng(10)
    small = trimesh.creation.icosphere(subdivisions=0, radius=0.4)
    points = np.array(small.vertices) * (1 + 0.3 * rng.standard_normal((12, 1)))
    rock = Mesh(points, np.array(small.faces))
    two = Two(solid, rock)
    parts = [
        (Hull(t), Two(*sorted((solid, Hull(t)), key=lambda s: s.kind))) for t in tetrahedra(points, rock.triangles)
    ]
    for _ in range(20):
        at, rot = rng.uniform(-0.4, 0.4, 3), turn(rng)
        two.put(0, at, rot).put(1, rock.middle())
        volume, first = 0.0, np.zeros(3)
        for hull, part in parts:
            v = part.put(0, at, rot).put(1, hull.middle()).ask()
            volume += v.volume[0]
            first += v.volume[0] * v.centroid
        v = two.ask()
        assert v.volume[0] == pytest.approx(volume, rel=1e-9, abs=1e-12)
        if volume > 1e-6:
            assert v.centroid == pytest.approx(first / volume, abs=1e-8)


@pytest.mark.parametrize("kind", [k for k in Kind if k <= Kind.HULL], ids=lambda k: k.name.lower())
def test_a_mesh_of_a_box_is_that_box(kind: Kind) -> None:
    """From every side, axes aligned or not: boxes are clipped, meshes are cut to columns."""
    rng, solid = np.random.default_rng(11), SHAPES[kind]
    first, second = (solid, Box(0.6, 0.8, 1.0)) if kind <= Kind.BOX else (Box(0.6, 0.8, 1.0), solid)
    mesh, boxes = Two(solid, Mesh(*block(0.3, 0.4, 0.5))), Two(first, second)
    a, b = (0, 1) if kind <= Kind.BOX else (1, 0)
    for k in range(150):
        at = rng.uniform(-0.7, 0.7, 3)
        rot = Rotation.from_euler("xyz", rng.integers(0, 4, 3) * 90, degrees=True).as_matrix() if k % 2 else turn(rng)
        if k % 4 == 1:
            at = np.round(at, 1)  # edges and faces that coincide
        one, other = mesh.put(0, at, rot).ask(), boxes.put(a, at, rot).put(b, np.zeros(3)).ask()
        assert one.volume[0] == pytest.approx(other.volume[0], rel=1e-8, abs=1e-10)
        if other.volume[0] > 1e-6:
            assert one.centroid == pytest.approx(other.centroid, abs=1e-8)
            assert one.inertia == pytest.approx(other.inertia, abs=1e-10)
        if other.status[0] == FOUND and one.status[0] == FOUND and other.area[0] > 1e-3:
            assert one.area[0] == pytest.approx(other.area[0], rel=1e-6)
            assert one.normal * (1 if a == 0 else -1) == pytest.approx(other.normal, abs=1e-6)


@pytest.mark.parametrize("kind", [k for k in Kind if k <= Kind.HULL], ids=lambda k: k.name.lower())
def test_level_ground_by_four_shapes(kind: Kind) -> None:
    """A plane, an open mesh, a block and a field with the same surface hold the same volume."""
    rng, solid = np.random.default_rng(12), SHAPES[kind]
    plane = Two(solid, Plane())
    grounds = [
        Two(solid, Mesh(*grid(9, 2.0, lambda x, y: 0.0 * x))),
        Two(solid, Mesh(*block(2.0, 2.0, 1.5))).put(1, (0, 0, -1.5)),
        Two(solid, Field(np.zeros((33, 33)), 0.125)),
    ]
    for k in range(60):
        at = np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-0.6, 0.6)])
        rot = Rotation.from_euler("xyz", rng.integers(0, 4, 3) * 90, degrees=True).as_matrix() if k % 2 else turn(rng)
        truth = plane.put(0, at, rot).ask()
        for ground in grounds:
            v = ground.put(0, at, rot).ask()
            assert v.volume[0] == pytest.approx(truth.volume[0], rel=1e-9, abs=1e-12)
            assert v.area[0] == pytest.approx(truth.area[0], abs=1e-8)
            if truth.volume[0] > 1e-6:
                assert v.centroid == pytest.approx(truth.centroid, abs=1e-8)
                assert v.inertia == pytest.approx(truth.inertia, abs=1e-10)
                assert v.point == pytest.approx(truth.point, abs=1e-6)


@pytest.mark.parametrize("kind", [Kind.SPHERE, Kind.BOX, Kind.CONE], ids=lambda k: k.name.lower())
def test_a_field_is_the_solid_below_it(kind: Kind) -> None:
    """Rough ground as a field and as a closed mesh with walls and a floor, also over its border."""
    rng, solid, n, step = np.random.default_rng(13), SHAPES[kind], 10, 0.12
    heights = 0.1 * rng.standard_normal((n, n))
    field = Field(heights, step)
    top, triangles = grid(n, 0.5 * step * (n - 1), lambda x, y: heights)
    edge = [*range(0, n * n, n), *range(n * n - n + 1, n * n), *range(n * n - n - 1, n - 1, -n), *range(n - 1, 0, -1)]
    ring = np.array(edge)
    low = top[ring] * [1, 1, 0] + [0, 0, -3.0]
    base = n * n
    walls = []
    for k in range(len(ring)):
        m = (k + 1) % len(ring)
        walls += [[ring[m], ring[k], base + k], [ring[m], base + k, base + m]]
        walls += [[base + m, base + k, base + len(ring)]]
    closed = Mesh(np.vstack([top, low, [[0, 0, -3.0]]]), np.vstack([triangles, walls]))
    assert trimesh.Trimesh(closed.vertices, closed.triangles, process=False).is_volume
    fields, meshes = Two(solid, field).put(1, field.middle()), Two(solid, closed).put(1, closed.middle())
    for _ in range(60):
        at, rot = np.array([*rng.uniform(-0.75, 0.75, 2), rng.uniform(-0.6, 0.3)]), turn(rng)
        one, other = fields.put(0, at, rot).ask(), meshes.put(0, at, rot).ask()
        assert one.volume[0] == pytest.approx(other.volume[0], rel=1e-8, abs=1e-10)
        if other.volume[0] > 1e-6:
            assert one.centroid == pytest.approx(other.centroid, abs=1e-7)
        if other.area[0] > 1e-3:
            assert one.normal == pytest.approx(other.normal, abs=1e-6)


def test_a_ball_and_a_hull_agree_with_random_points() -> None:
    rng = np.random.default_rng(14)
    hull = SHAPES[Kind.HULL]
    two = Two(Sphere(0.3), hull)
    for at in ((0.1, 0.1, 0), (0.3, -0.1, 0.1), (0, 0, 0.35)):
        v = two.put(0, at).ask()
        sample = rng.uniform(-0.3, 0.3, (1_000_000, 3))
        sample = sample[(sample**2).sum(1) < 0.09] + at
        planes = planes_of(corners(hull), np.zeros(3), EYE)
        sample = sample[(sample @ planes[:, :3].T + planes[:, 3] < 0).all(1)]
        volume = len(sample) / 1_000_000 * 0.6**3
        spread = np.cov(sample.T, bias=True) * volume
        assert v.volume[0] == pytest.approx(volume, rel=0.02)
        assert v.centroid == pytest.approx(sample.mean(0), abs=2e-3)
        assert v.inertia == pytest.approx(np.trace(spread) * EYE - spread, abs=0.02 * v.inertia.max())


# Round solids have flat faces


def segment(radius: float, depth: float) -> float:
    """Area of a circle's segment."""
    return radius**2 * math.acos(1 - depth / radius) - (radius - depth) * math.sqrt(depth * (2 * radius - depth))


@pytest.mark.parametrize(("depth", "error"), [(0.01, 0.21), (0.03, 0.05), (0.1, 0.015), (0.5, 0.002), (1.0, 1e-9)])
def test_a_lying_cylinder_is_as_exact_as_its_faces(depth: float, error: float) -> None:
    """Depth as a part of the radius, and the largest relative error of the volume whatever edge is down."""
    r, two = 0.2, Two(Cylinder(0.2, 1.0), Plane())
    for spin in np.linspace(0, 0.2, 15):
        rot = Rotation.from_euler("y", math.pi / 2).as_matrix() @ Rotation.from_euler("z", spin).as_matrix()
        volume = two.put(0, (0, 0, r * (1 - depth)), rot).volume()
        assert volume == pytest.approx(segment(r, depth * r), rel=error)


@pytest.mark.parametrize(("depth", "lying", "upright"), [(0.01, 0.08, 0.31), (0.1, 0.005, 0.05), (0.5, 0.001, 0.006)])
def test_a_capsule_is_as_exact_as_its_faces(depth: float, lying: float, upright: float) -> None:
    r, two = 0.2, Two(Capsule(0.2, 1.0), Plane())
    cap = math.pi * (depth * r) ** 2 * (r - depth * r / 3)
    for spin in np.linspace(0, 0.25, 15):
        rot = Rotation.from_euler("z", spin).as_matrix()
        assert two.put(0, (0, 0, 0.5 + r * (1 - depth)), rot).volume() == pytest.approx(cap, rel=upright)
        rot = Rotation.from_euler("y", math.pi / 2).as_matrix() @ rot
        assert two.put(0, (0, 0, r * (1 - depth)), rot).volume() == pytest.approx(
            segment(r, depth * r) + cap, rel=lying
        )


def test_a_standing_cylinder_and_cone_are_exact() -> None:
    v = Two(Cylinder(0.2, 1.0), Plane()).put(0, (0, 0, 0.4)).ask()
    assert v.volume[0] == pytest.approx(math.pi * 0.04 * 0.1)
    assert v.area[0] == pytest.approx(math.pi * 0.04)
    assert v.patch[2, 2] == pytest.approx(math.pi / 2 * 0.2**4, rel=1e-4)
    v = Two(Cone(0.2, 1.0), Plane()).put(0, (0, 0, -0.5)).ask()
    assert v.volume[0] == pytest.approx(math.pi * 0.04 / 3)


# The force of an elastic foundation, Luaces 4.6


def test_a_ball_on_an_elastic_foundation_swings_back() -> None:
    """F = K V n: pressed in by t a ball meets K pi t^2 (R - t/3), and its work is the integral of that."""
    stiffness, r = 1e7, 0.25
    two = Two(Sphere(r), Plane())
    depths = np.linspace(0, 0.1, 2001)
    force = np.array([stiffness * two.put(0, (0, 0, r - t)).volume() for t in depths])
    assert force == pytest.approx(stiffness * math.pi * depths**2 * (r - depths / 3), rel=1e-9)
    work = np.trapezoid(force, depths)
    assert work == pytest.approx(stiffness * math.pi * (r * 0.1**3 / 3 - 0.1**4 / 12), rel=1e-6)


def test_a_tilted_box_on_an_elastic_foundation_is_turned_back() -> None:
    """K V at the volume's centroid has the moment of the pressure K depth under the base: K w l^3/12 tan."""
    stiffness, x, y, tilt = 1e7, 0.6, 0.4, 1e-3
    rot = Rotation.from_euler("y", tilt).as_matrix()
    v = Two(Box(x, y, 0.2), Plane()).put(0, (0, 0, 0.1 - 1e-3), rot).ask()
    moment = np.cross(v.centroid, stiffness * v.volume[0] * v.normal)
    assert moment[1] == pytest.approx(-stiffness * y * x**3 / 12 * math.tan(tilt), rel=0.02)


# What is refused


def test_what_is_not_known_says_so() -> None:
    assert Two(Torus(0.3, 0.1), Torus(0.3, 0.1)).ask().status[0] == UNKNOWN
    mesh = SHAPES[Kind.MESH]
    assert Two(mesh, mesh).ask().status[0] == UNKNOWN


def test_a_solid_too_large_for_the_room_says_so() -> None:
    ball = np.random.default_rng(15).normal(size=(600, 3))
    two = Two(Hull(ball / np.linalg.norm(ball, axis=1)[:, None]), Plane())
    none = build_hulls([])
    volumes: Volumes = build_volumes(none, [(Kind.HULL, Kind.PLANE)])
    two.volumes, two.records = volumes, (two.records[0], Struct(volumes))
    v = two.ask()
    assert v.status[0] == TOO_MANY
    assert v.volume[0] == 0.0


def test_degenerate_input_gives_finite_numbers() -> None:
    thin = [Box(1e-9, 1, 1), Box(1e-6, 1e-6, 1e-6), Box(1e4, 1e4, 1e4), Cylinder(1e-6, 1.0), Capsule(1.0, 1e-9)]
    for one in (*thin, Sphere(1e-9), Sphere(1e4)):
        for other in (Box(1, 1, 1), Plane(), Mesh(*block(0.5, 0.5, 0.5)), Field(np.zeros((9, 9)), 0.5)):
            first, second = sorted((one, other), key=lambda s: s.kind)
            two = Two(first, second)
            for at in ((0, 0, 0), (0.5, 0.5, 0.5), (0.5, 0, 0), (0.5 + 1e-9, 0, 0), (0.1, 0.2, 0.3)):
                for rot in (EYE, Rotation.from_rotvec([1e-9, 0, 0]).as_matrix(), turn(np.random.default_rng(16))):
                    two.put(0, at, rot).ask()
