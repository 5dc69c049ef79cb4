"""Boxes, cylinders, cones and hulls against meshes. Truth: coal's depth and distance, closed forms."""

from __future__ import annotations

import coal
import numpy as np
import pytest
from mesh_scenes import Scene, block, grid, random_turn
from scipy.spatial.transform import Rotation

from hilnode.jit import kernel
from hilnode.record import Record
from plant.collide.hull import build_hulls, view_hulls
from plant.collide.mesh import build_meshes, view_meshes
from plant.collide.mesh_convex import convex_mesh
from plant.collide.model import Kind, view_manifold, view_placed, view_shapes
from plant.collide.solid import signed


@kernel
def convex(s, p, m, o, f, margin):
    return convex_mesh(view_shapes(s), view_placed(p), view_hulls(f), view_meshes(m), 0, 1, margin, view_manifold(o))


@kernel
def signed_at(f, kind, size, x, y, z):
    return signed(kind, size, view_hulls(f), 0, (x, y, z))


def hull_of(points):
    """The arrays of the hull of some points, measured from the middle of its box."""
    return build_hulls([points])


CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
NONE = Record(hull_of(CUBE))
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


@pytest.mark.parametrize(("kind", "size", "theirs"), SOLIDS)
def test_signed_distance_is_that_of_coal(kind, size, theirs):
    """Outside: the distance of a tiny sphere. Inside: the depth of that sphere. The normal is the gradient."""
    rng, body, dot = np.random.default_rng(1), theirs(), coal.Sphere(1e-6)
    given = np.array([*size, 0, 0][:4], float)
    for p in rng.uniform(-0.8, 0.8, (300, 3)):
        d, *g = signed_at(NONE.address, int(kind), given, *p)
        result = coal.DistanceResult()
        gap = coal.distance(
            body, coal.Transform3s(), dot, coal.Transform3s(np.eye(3), p), coal.DistanceRequest(), result
        )
        assert abs(d - (gap + 1e-6)) < 2e-5
        assert abs(np.linalg.norm(g) - 1) < 1e-12
        step = 1e-6
        ahead = signed_at(NONE.address, int(kind), given, *(p + step * np.array(g)))[0]
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
    faces = Record(hull_of(CUBE * size))
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
