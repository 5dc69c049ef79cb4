"""Boxes, cylinders, cones and hulls against meshes. Truth: coal's depth and distance, closed forms."""

from __future__ import annotations

from collections.abc import Iterator

import coal
import numpy as np
import pytest
import trimesh
from mesh_scenes import Scene, block, grid, random_turn
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import Kind, view_manifold, view_placed, view_shapes
from plant.collision.narrowphase.mesh_convex import convex_mesh
from plant.collision.shape.hull import build_hulls, view_hulls
from plant.collision.shape.mesh import build_meshes, view_meshes
from plant.collision.shape.solid import signed


@kernel
def convex(s, p, m, o, f, margin):
    return convex_mesh(view_shapes(s), view_placed(p), view_hulls(f), view_meshes(m), 0, 1, margin, view_manifold(o))


@kernel
def signed_at(f, kind, size, x, y, z):
    return signed(kind, size, view_hulls(f), 0, (x, y, z), 10.0)


def hull_of(points):
    """The arrays of the hull of some points, measured from the middle of its box."""
    return build_hulls([points])


CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
NONE = Struct(hull_of(CUBE))
SOLIDS = [
    (Kind.BOX, [0.3, 0.4, 0.5], lambda: coal.Box(0.6, 0.8, 1.0)),
    (Kind.CYLINDER, [0.3, 0.4], lambda: coal.Cylinder(0.3, 0.8)),
    (Kind.CONE, [0.4, 0.5], lambda: coal.Cone(0.4, 1.0)),
]


class Solid(Scene):
    def run(self, margin=0.0, faces=NONE):
        a = [r.address for r in self.records]
        return convex(*a, faces.address, margin)


def flat(n=21):
    return build_meshes([grid(n, 3.0, lambda x, y: 0 * x)])


def coal_hull(points):
    corners = coal.StdVec_Vec3s()
    corners.extend(list(points))
    return coal.Convex.convexHull(corners, True, "Qt")


@pytest.mark.parametrize(("kind", "size", "theirs"), [*SOLIDS, (Kind.HULL, [1, 1, 1], lambda: coal_hull(0.3 * CUBE))])
def test_signed_distance_is_that_of_coal(kind, size, theirs):
    """Outside: the distance of a tiny sphere. Inside: the depth of that sphere. The normal is the gradient."""
    rng, body, dot = np.random.default_rng(1), theirs(), coal.Sphere(1e-6)
    faces = Struct(hull_of(0.3 * CUBE))
    given = np.array([*size, 0, 0][:4], float)
    for p in rng.uniform(-0.8, 0.8, (300, 3)):
        d, *g = signed_at(faces.address, int(kind), given, *p)
        result = coal.DistanceResult()
        gap = coal.distance(
            body, coal.Transform3s(), dot, coal.Transform3s(np.eye(3), p), coal.DistanceRequest(), result
        )
        assert abs(d - (gap + 1e-6)) < 2e-5
        assert abs(np.linalg.norm(g) - 1) < 1e-12
        step = 1e-6
        ahead = signed_at(faces.address, int(kind), given, *(p + step * np.array(g)))[0]
        assert abs(ahead - d - step) < 1e-9


def test_box_sliding_over_a_flat_floor_has_four_points_straight_up():
    scene = Solid([Kind.BOX, Kind.MESH], [[0.5, 0.3, 0.2], [1]], flat())
    for x in np.linspace(-1.5, 1.5, 121):
        scene.put(0, (x, 0.07 * x, 0.19), Rotation.from_euler("z", 30 + 7 * x, degrees=True).as_matrix())
        n = scene.run(0.02)
        assert n == 4
        np.testing.assert_allclose(scene.out.normal[:n], [(0, 0, 1)] * n, atol=1e-12)
        np.testing.assert_allclose(scene.out.depth[:n], 0.01, atol=1e-12)
        assert sorted(scene.out.feature[:n]) == [0, 1, 2, 3]
        corners = scene.placed.rot[0][:2, :2] @ np.array([[a, b] for b in (-0.3, 0.3) for a in (-0.5, 0.5)]).T
        order = np.argsort(scene.out.feature[:n])
        np.testing.assert_allclose(scene.out.point[:n][order, :2], corners.T + scene.placed.pos[0, :2], atol=1e-9)


@pytest.mark.parametrize(("kind", "size"), [(k, s) for k, s, _ in SOLIDS])
def test_solid_over_a_floor_reaches_as_low_as_its_support(kind, size):
    scene, rng = Solid([kind, Kind.MESH], [size, [1]], flat()), np.random.default_rng(2)
    for _ in range(300):
        turn = random_turn(rng)
        up = turn[2]
        if kind == Kind.BOX:
            low = np.abs(up) @ size
        elif kind == Kind.CYLINDER:
            low = size[0] * np.hypot(up[0], up[1]) + size[1] * abs(up[2])
        else:
            low = max(-size[1] * up[2], size[0] * np.hypot(up[0], up[1]) + size[1] * up[2])
        depth = rng.uniform(-0.04, 0.1)
        scene.put(0, (0.31, 0.17, low - depth), turn)
        n = scene.run(0.05)
        assert n >= 1
        assert abs(scene.out.depth[:n].max() - depth) < 1e-9
        np.testing.assert_allclose(scene.out.normal[:n], [(0, 0, 1)] * n, atol=1e-9)
        scene.put(0, (0.31, 0.17, low + 0.051), turn)
        assert scene.run(0.05) == 0


@pytest.mark.parametrize(("kind", "size", "theirs"), SOLIDS)
def test_solid_and_block_as_coal_sees_them(kind, size, theirs):
    """Against a block of 12 triangles: nothing where coal sees a gap; where it sees an overlap, a push along the
    listed normals by the listed depths does not leave the least push that parts them (coal's) far behind."""
    scene = Solid([kind, Kind.MESH], [size, [1]], build_meshes([block(0.8, 0.7, 0.6)]))
    rng, body, other, seen, close = np.random.default_rng(3), theirs(), coal.Box(1.6, 1.4, 1.2), 0, 0
    for _ in range(600):
        turn, p = random_turn(rng), rng.normal(size=3)
        p *= rng.uniform(0.8, 1.4) / np.linalg.norm(p)
        scene.put(0, p, turn)
        n = scene.run(0.0)
        at, result = coal.Transform3s(turn, p), coal.DistanceResult()
        gap = coal.distance(body, at, other, coal.Transform3s(), coal.DistanceRequest(), result)
        if gap > 1e-6:
            assert n == 0, (gap, scene.local(n))
        elif -0.1 < gap < -1e-3:
            seen += 1
            assert n > 0, gap
            close += abs(scene.out.depth[:n].max() + gap) < 0.5 * -gap + 1e-3
            np.testing.assert_allclose(np.linalg.norm(scene.out.normal[:n], axis=1), 1, atol=1e-9)
    assert seen > 40
    assert close > 0.6 * seen


def test_box_on_a_smaller_block_stands_on_its_edges():
    """No corner of the box is over the block: the ridges of the block carry it, all straight up, on all sides."""
    scene = Solid([Kind.BOX, Kind.MESH], [[1.0, 1.0, 0.2], [1]], build_meshes([block(0.4, 0.3, 0.5)]))
    scene.put(0, (0.1, 0.0, 0.69))
    n = scene.run(0.01)
    point, normal, depth = scene.local(n)
    assert n >= 4
    np.testing.assert_allclose(normal, [(0, 0, 1)] * n, atol=1e-9)
    np.testing.assert_allclose(depth, 0.01, atol=1e-9)
    np.testing.assert_allclose(point[:, :2].max(axis=0), (0.4, 0.3), atol=1e-6)
    np.testing.assert_allclose(point[:, :2].min(axis=0), (-0.4, -0.3), atol=1e-6)


def test_edge_across_a_ridge():
    """A box standing on its edge across the edge of a roof: one point where they cross, straight up."""
    roof = build_meshes([grid(3, 2.0, lambda x, y: -0.2 * np.abs(x))])
    scene = Solid([Kind.BOX, Kind.MESH], [[0.9, 0.2, 0.2], [1]], roof)
    scene.put(0, (0.1, 0.3, 0.2 * np.sqrt(2) - 0.01), Rotation.from_euler("x", 45, degrees=True).as_matrix())
    n = scene.run(0.0)
    assert n == 1
    np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-6)
    np.testing.assert_allclose(scene.out.depth[0], 0.01, atol=1e-6)
    np.testing.assert_allclose(scene.out.point[0], (0, 0.3, -0.005), atol=1e-5)


def test_wheel_against_a_kerb():
    """A cylinder rolling against a step touches the floor below it and the edge of the step beside it."""
    height = 0.1
    vertex = [(x, y, z) for x, z in ((-2, 0), (0, 0), (0, height), (2, height)) for y in (-1, 1)]
    triangle = [t for k in (0, 2, 4) for t in ((k, k + 2, k + 3), (k, k + 3, k + 1))]
    floor = (np.array(vertex, float), np.array(triangle))
    scene = Solid([Kind.CYLINDER, Kind.MESH], [[0.5, 0.2], [1]], build_meshes([floor]))
    lying = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    x = -np.sqrt(0.5**2 - 0.4**2) + 0.005  # the kerb's edge 5 mm or so inside
    scene.put(0, (x, 0.0, 0.499), lying)
    n = scene.run(0.0)
    _, normal, depth = scene.local(n)
    up = np.isclose(normal[:, 2], 1)
    assert up.sum() == 2
    np.testing.assert_allclose(depth[up], 0.001, atol=1e-9)
    away = np.array((x, 0, 0.399))
    k = np.flatnonzero(~up)
    assert len(k) >= 1
    for q in k:
        np.testing.assert_allclose(normal[q], away / np.linalg.norm(away), atol=1e-6)
        np.testing.assert_allclose(depth[q], 0.5 - np.linalg.norm(away), atol=2e-5)


def test_box_corner_in_a_hollow_is_held_by_both_faces():
    scene = Solid([Kind.BOX, Kind.MESH], [[0.5, 0.5, 0.5], [1]], build_meshes([grid(3, 3.0, lambda x, y: np.abs(x))]))
    scene.put(0, (0, 0.1, 0.5 * np.sqrt(2) - 0.02), Rotation.from_euler("y", 45, degrees=True).as_matrix())
    n = scene.run(0.0)
    normal = scene.out.normal[:n]
    assert (normal[:, 0] > 0.7).any()
    assert (normal[:, 0] < -0.7).any()


def test_hull_of_a_box_touches_as_the_box():
    size = [0.3, 0.4, 0.5]
    faces = Struct(hull_of(CUBE * size))
    meshes = build_meshes([block(0.8, 0.7, 0.6)])
    box, hull = (Solid([k, Kind.MESH], [size, [1]], meshes) for k in (Kind.BOX, Kind.HULL))
    rng, seen = np.random.default_rng(4), 0
    for _ in range(200):
        turn, p = random_turn(rng), rng.uniform(-1.2, 1.2, 3)
        box.put(0, p, turn)
        hull.put(0, p, turn)
        n = box.run(0.0)
        assert n == hull.run(0.0, faces)
        seen += n > 0
        np.testing.assert_allclose(np.sort(box.out.depth[:n]), np.sort(hull.out.depth[:n]), atol=1e-6)
    assert seen > 50


# Rough, sharp, thin and hollow meshes, with truth from coal

LUMP = np.array([(0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0.02), (0, 0, 0.15), (0, 0.02, -0.1), (0.05, 0.1, 0.05)])
LUMP -= 0.5 * (LUMP.min(0) + LUMP.max(0))
LUMPS = Struct(hull_of(LUMP))


def coal_points(points):
    made = coal.StdVec_Vec3s()
    made.extend(list(points))
    return made


SMALL = {
    "box": (Kind.BOX, [0.15, 0.1, 0.05], lambda: coal.Box(0.3, 0.2, 0.1)),
    "cylinder": (Kind.CYLINDER, [0.1, 0.1], lambda: coal.Cylinder(0.1, 0.2)),
    "cone": (Kind.CONE, [0.12, 0.1], lambda: coal.Cone(0.12, 0.2)),
    "hull": (Kind.HULL, [*LUMP.max(0)], lambda: coal.Convex.convexHull(coal_points(LUMP), True, "Qt")),
}


def rock(rough, finer):
    ball, rng = trimesh.creation.icosphere(subdivisions=finer, radius=0.18), np.random.default_rng(8)
    return np.array(ball.vertices) * (1 + rough * rng.standard_normal((len(ball.vertices), 1))), np.array(ball.faces)


def ring():
    made = trimesh.creation.torus(0.2, 0.05, major_sections=24, minor_sections=12)
    return np.array(made.vertices), np.array(made.faces)


def ground(rough):
    rng = np.random.default_rng(3)
    return grid(25, 0.6, lambda x, y: 0.03 * np.sin(6 * x) * np.cos(5 * y) + rough * rng.standard_normal(x.shape))


SURFACES = {
    "ball": lambda: rock(0.0, 3),
    "rough rock": lambda: rock(0.05, 3),
    "sharp rock": lambda: rock(0.15, 2),
    "block": lambda: block(0.12, 0.1, 0.08),
    "thin plate": lambda: block(0.3, 0.3, 0.004),
    "ring": ring,
    "smooth ground": lambda: ground(0.0),
    "rough ground": lambda: ground(0.01),
    "jagged ground": lambda: ground(0.04),
    "roofs": lambda: grid(25, 0.6, lambda x, y: 0.05 * np.abs((8 * x) % 2 - 1)),
}
GROUND = {"smooth ground", "rough ground", "jagged ground", "roofs"}


class Rough:
    """A small solid before a surface, for us and for coal."""

    def __init__(self, solid: str, surface: str) -> None:
        kind, size, theirs = SMALL[solid]
        self.vertex, self.triangle = SURFACES[surface]()
        self.is_ground, self.is_plate = surface in GROUND, surface == "thin plate"
        self.scene = Solid([kind, Kind.MESH], [size, [1]], build_meshes([(self.vertex, self.triangle)]))
        faces, self.solid, self.mesh = coal.StdVec_Triangle(), theirs(), coal.BVHModelOBBRSS()
        faces.extend([coal.Triangle(*t) for t in self.triangle.tolist()])
        self.mesh.beginModel(len(faces), len(self.vertex))
        self.mesh.addSubModel(coal_points(self.vertex), faces)
        self.mesh.endModel()

    def gap(self, at, turn):
        """As coal has it."""
        place, ask, result = coal.Transform3s(turn, at), coal.DistanceRequest(), coal.DistanceResult()
        return coal.distance(self.solid, place, self.mesh, coal.Transform3s(), ask, result)

    def touch(self, at, turn):
        """Normals and depths where the two overlap."""
        self.scene.put(0, at, turn)
        n = self.scene.run(0.0, LUMPS)
        _, normal, depth = self.scene.local(n)
        return normal[depth > 0], depth[depth > 0]

    def is_inside(self, p):
        """Whether a point is inside the closed surface, by the solid angle of its triangles."""
        if self.is_ground:
            return False
        a, b, c = (self.vertex[self.triangle[:, k]] - p for k in range(3))
        x, y, z = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        over = np.einsum("ij,ij->i", a, np.cross(b, c))
        under = x * y * z + (a * b).sum(1) * z + (b * c).sum(1) * x + (c * a).sum(1) * y
        return abs(np.arctan2(over, under).sum()) > np.pi

    def places(self, rng, count) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Where the solid may or may not touch; its centre is above the ground."""
        reach = np.linalg.norm(self.vertex, axis=1).max()
        for _ in range(count):
            way = rng.normal(size=3)
            at = way / np.linalg.norm(way) * rng.uniform(0.4, 1.9) * reach
            if self.is_plate:
                at = rng.uniform(-1, 1, 3) * (0.42, 0.42, 0.2)
            if self.is_ground:
                at = np.array([*rng.uniform(-0.35, 0.35, 2), self.vertex[:, 2].max() + rng.uniform(0, 0.16)])
            yield at, random_turn(rng)

    def touching(self, rng, count) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Where the solid, on its way in, touches first, and that way."""
        for _ in range(count):
            turn, way, base = random_turn(rng), rng.normal(size=3), np.zeros(3)
            if self.is_ground or self.is_plate:
                base[:2], way = rng.uniform(-0.3, 0.3, 2), way * 0.3 + (0, 0, 1.0)
            way /= np.linalg.norm(way)
            far = 1.0
            gap = self.gap(base + far * way, turn)
            while gap > 1e-7 and far > 0.0:
                far -= gap
                gap = self.gap(base + far * way, turn)
            if far > 0.0:
                yield base + far * way, turn, -way


def check_touch(solid, surface, count):
    """Nothing where coal sees a gap of 10 um or more, something where it sees as much of an overlap.

    To coal a mesh is a surface, so this is said of solids whose centre is outside; one that is all but swallowed may
    have no point near the surface. Two in a thousand of overlaps of any depth may be missed: an edge of the solid
    that goes in through one face and out through the next has no end inside, and the ridge is not inside the solid.
    """
    both, rng, apart, over, missed = Rough(solid, surface), np.random.default_rng(11), 0, 0, 0
    for at, turn in both.places(rng, count):
        gap, (_, depth) = both.gap(at, turn), both.touch(at, turn)
        if abs(gap) < 1e-5 or both.is_inside(at):
            continue
        if gap > 0.0:
            apart += 1
            assert len(depth) == 0, (at, turn, gap)
        else:
            over += 1
            missed += len(depth) == 0
    assert min(apart, over) > 0.03 * count
    assert missed <= 0.002 * over


def least_way(normal, depth):
    """The shortest way that goes along each normal by its depth, by Hildreth's method."""
    force, way = np.zeros(len(depth)), np.zeros(3)
    for _ in range(300):
        before = way.copy()
        for k, n in enumerate(normal):
            more = max(force[k] + depth[k] - n @ way, 0.0)
            way += (more - force[k]) * n
            force[k] = more
        if np.abs(way - before).max() < 1e-12:
            break
    return way


def check_parting(solid, surface, count):
    """A millimetre in, the shortest way that the normals and depths ask for parts the two; most of it does not.

    Edges and rims are round or cross at an angle, so that a linear way out is not exact: some overlap may be left.
    """
    both, rng, left, early, deep = Rough(solid, surface), np.random.default_rng(12), [], 0, 1e-3
    for first, turn, way in both.touching(rng, count):
        at = first + deep * way
        if both.gap(at, turn) > -1e-5:
            continue
        normal, depth = both.touch(at, turn)
        assert len(depth) > 0, (at, turn)
        out = least_way(normal, depth)
        left.append(-both.gap(at + out, turn))
        early += both.gap(at + 0.7 * out, turn) > 1e-6
    assert len(left) > 0.5 * count
    assert np.mean(np.array(left) > 0.4 * deep) <= 0.004
    assert np.quantile(left, 0.95) < 0.05 * deep
    assert early <= 0.04 * len(left) + 1


PAIRS = [pytest.param(a, b, id=f"{a} on {b}") for a in SMALL for b in SURFACES]


@pytest.mark.parametrize(("solid", "surface"), PAIRS)
def test_solid_touches_a_mesh_where_coal_sees_it_touch(solid, surface):
    check_touch(solid, surface, 60)


@pytest.mark.slow
@pytest.mark.parametrize(("solid", "surface"), PAIRS)
def test_solid_touches_a_mesh_where_coal_sees_it_touch_often(solid, surface):
    check_touch(solid, surface, 2500)


@pytest.mark.parametrize(("solid", "surface"), PAIRS)
def test_depths_and_normals_part_solid_and_mesh(solid, surface):
    check_parting(solid, surface, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("solid", "surface"), PAIRS)
def test_depths_and_normals_part_solid_and_mesh_often(solid, surface):
    check_parting(solid, surface, 500)


def test_a_flat_face_on_a_peak_is_pushed_straight():
    """A box on a steep pyramid: one point, at the tip, with the box's normal, though no edge of the tip has that."""
    corners = [(x, y, -0.5) for x, y in ((-0.2, -0.2), (0.2, -0.2), (0.2, 0.2), (-0.2, 0.2))]
    pyramid = np.array([*corners, (0, 0, 0)], float), np.array([(k, (k + 1) % 4, 4) for k in range(4)])
    scene = Solid([Kind.BOX, Kind.MESH], [[0.5, 0.4, 0.1], [1]], build_meshes([pyramid]))
    turn = Rotation.from_euler("xy", (10, 5), degrees=True).as_matrix()
    up = turn[:, 2]
    for depth in (0.01, -0.001):
        scene.put(0, up * (0.1 - depth), turn)
        assert scene.run(0.005) == 1
        np.testing.assert_allclose(scene.out.normal[0], up, atol=1e-9)
        np.testing.assert_allclose(scene.out.depth[0], depth, atol=1e-12)
        np.testing.assert_allclose(scene.out.point[0], -0.5 * depth * up, atol=1e-9)


def test_a_corner_through_a_thin_plate_is_pushed_back():
    """The lowest corner of a box is 3 cm below a plate of 8 mm: it is held by the side that it came from."""
    scene = Solid([Kind.BOX, Kind.MESH], [[0.1, 0.1, 0.1], [1]], build_meshes([block(0.5, 0.5, 0.004)]))
    turn = Rotation.align_vectors([(0, 0, -1)], [(1, 1, 1)])[0].as_matrix()
    scene.put(0, (0.03, 0.02, 0.1 * np.sqrt(3) - 0.034), turn)
    n = scene.run(0.002)
    _, normal, depth = scene.local(n)
    np.testing.assert_allclose(normal[depth.argmax()], (0, 0, 1), atol=1e-9)
    np.testing.assert_allclose(depth.max(), 0.038, atol=1e-9)


@pytest.mark.parametrize("slope", [0.1, 0.5, 1.0, 3.0])
def test_a_corner_moves_through_a_ditch_without_a_jump(slope):
    """Across the bottom of a ditch the shortest way out changes by no more than the corner moves, times a factor."""
    ditch = build_meshes([grid(3, 3.0, lambda x, y: slope * np.abs(x))])
    scene = Solid([Kind.BOX, Kind.MESH], [[0.1, 0.1, 0.1], [1]], ditch)
    turn = Rotation.align_vectors([(0, 0, -1)], [(1, 1, 1)])[0].as_matrix()
    step, before = 4e-5, None
    for x in np.arange(-0.004, 0.004, step):
        scene.put(0, (x, 0.1, 0.1 * np.sqrt(3) - 0.002), turn)
        n = scene.run(0.0)
        _, normal, depth = scene.local(n)
        out = least_way(normal, depth)
        assert before is None or np.linalg.norm(out - before) < 1.5 * step
        before = out


def test_a_box_inside_a_closed_mesh_is_pushed_out_of_its_nearest_face():
    scene = Solid([Kind.BOX, Kind.MESH], [[0.1, 0.2, 0.3], [1]], build_meshes([block(1.0, 1.5, 2.0)]))
    scene.put(0, (0.7, 0.1, -0.2))
    n = scene.run(0.01)
    point, normal, depth = scene.local(n)
    assert n == 8
    np.testing.assert_allclose(normal, [(1, 0, 0)] * 8, atol=1e-12)
    np.testing.assert_allclose(np.sort(depth), [0.2] * 4 + [0.4] * 4, atol=1e-12)
    np.testing.assert_allclose(point[:, 0] + 0.5 * depth, 1.0, atol=1e-12)


def test_a_box_in_a_cavity_of_rock_no_larger_than_it_is_pushed_one_way():
    """A closed mesh a little larger than the box all round: no triangle meets it, and its corners agree."""
    scene = Solid([Kind.BOX, Kind.MESH], [[0.3, 0.3, 0.3], [1]], build_meshes([block(0.32, 0.33, 0.34)]))
    n = scene.run(0.001)
    _, normal, depth = scene.local(n)
    assert n == 8
    np.testing.assert_allclose(np.abs(normal), [(1, 0, 0)] * 8, atol=1e-12)
    np.testing.assert_allclose(normal, [normal[0]] * 8, atol=1e-12)
    np.testing.assert_allclose(np.sort(depth), [0.02] * 4 + [0.62] * 4, atol=1e-12)


@pytest.mark.parametrize("low", [-0.05, 0.05, 0.15])
def test_a_box_sunk_into_a_floor_beyond_its_centre_is_lifted_by_all_corners_below(low):
    """The same whether its centre is above or below; a slope, so that nothing lies along the axes of the tree."""
    tilt = Rotation.from_euler("xyz", (20, 30, 10), degrees=True).as_matrix()
    scene = Solid([Kind.BOX, Kind.MESH], [[0.3, 0.2, 0.2], [1]], flat())
    turn = tilt @ Rotation.from_euler("xyz", (4, -3, 25), degrees=True).as_matrix()
    at = tilt @ np.array((0.11, 0.07, -low))
    scene.put(0, at, turn)
    scene.put(1, (0, 0, 0), tilt)
    n = scene.run(0.0)
    _, normal, depth = scene.local(n)
    height = (CUBE * (0.3, 0.2, 0.2) @ turn.T + at) @ tilt[:, 2]
    np.testing.assert_allclose(normal, [tilt[:, 2]] * n, atol=1e-9)
    np.testing.assert_allclose(np.sort(depth), np.sort(-height[height < 0]), atol=1e-9)


def test_corners_that_a_plate_may_meet_next_are_listed_across_the_gap():
    """A block stands on one corner over a plate: the three next to it are listed too, straight above the plate."""
    scene = Solid([Kind.BOX, Kind.MESH], [[1, 1, 0.005], [1]], build_meshes([block(0.05, 0.05, 0.05)]))
    turn = Rotation.align_vectors([[0, 0, -1]], [[1, 1, 1]])[0]
    scene.put(1, (0, 0, 0.2), turn.as_matrix())
    n = scene.run(0.25)
    _, normal, depth = scene.local(n)
    height = turn.apply(0.05 * CUBE)[:, 2] + 0.2 - 0.005
    np.testing.assert_allclose(normal, [(0, 0, -1)] * n, atol=1e-12)
    np.testing.assert_allclose(-np.sort(-depth)[:4], -np.sort(height)[:4], atol=1e-12)


def test_a_ridge_through_a_plate_is_lifted_out_over_its_shorter_end():
    scene = Solid([Kind.BOX, Kind.MESH], [[1, 1, 0.005], [1]], build_meshes([block(0.04, 0.04, 0.05)]))
    scene.put(1, (0.01, 0.02, 0.03))
    n = scene.run()
    _, normal, depth = scene.local(n)
    np.testing.assert_allclose(normal, [(0, 0, -1)] * n, atol=1e-12)
    np.testing.assert_allclose(depth, 0.05 - 0.03 + 0.005, atol=1e-12)
