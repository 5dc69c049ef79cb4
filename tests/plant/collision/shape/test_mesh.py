"""Meshes: the tree, its refusals, and round shapes against them.

Truth: trimesh's nearest points over all triangles, coal's distances to its own BVHs, closed forms.
"""

from __future__ import annotations

import coal
import numpy as np
import pytest
import trimesh
from coal_peer import mesh_twin
from mesh_scenes import Scene, block, grid, hills, random_turn

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import Kind
from plant.collision.narrowphase import mesh_round
from plant.collision.shape import mesh as meshes
from plant.collision.shape.mesh import MeshError, build_meshes, view_meshes


@kernel
def nearest(m, x, y, z):
    return mesh_round.nearest(view_meshes(m), 0, (x, y, z), np.inf)


@kernel
def refit(m):
    meshes.refit(view_meshes(m), 0)


def brute(triangles, p):
    """Nearest point of all triangles, by trimesh."""
    q = trimesh.triangles.closest_point(triangles, np.tile(p, (len(triangles), 1)))
    d = np.linalg.norm(q - p, axis=1)
    k = int(d.argmin())
    return d[k], q[k], k


# ---- the tree


def test_tree_holds_every_triangle_once_and_every_box_holds_its_triangles():
    vertex, triangle = grid(40, 5.0, hills)
    made = build_meshes([block(1, 2, 3), (vertex, triangle)])
    begin = made.first_triangle[1]
    assert np.array_equal(np.sort(made.number[begin:]), np.arange(len(triangle)))
    same = made.triangle[begin:] - made.first_vertex[1]
    assert np.array_equal(same, triangle[made.number[begin:]])
    seen = 0
    for node in range(made.first_node[1], made.first_node[2]):
        skip, first, count, right = made.link[node]
        last = made.link[skip - 1, meshes.FIRST] + made.link[skip - 1, meshes.COUNT]
        corners = made.vertex[made.triangle[first:last]].reshape(-1, 3)
        assert np.array_equal(corners.min(axis=0), made.box[node, :3])
        assert np.array_equal(corners.max(axis=0), made.box[node, 3:])
        seen += count
        if count == 0:
            assert made.parent[right] == made.parent[node + 1] == node
    assert seen == len(triangle)


def test_neighbours_are_those_of_trimesh():
    ball = trimesh.creation.icosphere(subdivisions=2)
    made = build_meshes([(ball.vertices, ball.faces)])
    theirs = {tuple(sorted(map(int, p))) for p in ball.face_adjacency}
    mine = {
        tuple(sorted((int(made.number[t]), int(made.number[u]))))
        for t in range(len(made.triangle))
        for u in made.neighbour[t]
    }
    assert mine == theirs
    assert made.closed[0] == 1
    assert (made.edge == meshes.RIDGE).all()


def test_kinds_of_edges_of_a_box_and_of_an_open_sheet():
    made = build_meshes([block(1, 1, 1), grid(3, 1.0, lambda x, y: 0 * x)])
    kinds = made.edge[: made.first_triangle[1]]
    assert (kinds == meshes.RIDGE).sum() == 24
    assert (kinds == meshes.PLAIN).sum() == 12
    sheet = made.edge[made.first_triangle[1] :]
    assert (sheet == meshes.BORDER).sum() == 8
    assert (sheet == meshes.PLAIN).sum() == 16
    assert list(made.closed) == [1, 0]


def test_refit_equals_a_new_build():
    vertex, triangle = grid(20, 3.0, hills)
    made, record_of = build_meshes([(vertex, triangle)]), None
    record_of = Struct(made)
    moved = vertex + np.random.default_rng(3).normal(0.0, 0.05, vertex.shape)
    made.vertex[:] = moved
    refit(record_of.address)
    fresh = Scene([0, 9], [[0.2], [1]], build_meshes([(moved, triangle)]))
    old = Scene([0, 9], [[0.2], [1]], made)
    for p in np.random.default_rng(4).uniform(-2.5, 2.5, (200, 3)) * (1, 1, 0.2):
        fresh.put(0, p)
        old.put(0, p)
        n = fresh.touch(0.01)
        assert n == old.touch(0.01)
        order = [s.out.depth[:n].argsort() for s in (fresh, old)]
        np.testing.assert_allclose(fresh.out.point[:n][order[0]], old.out.point[:n][order[1]], atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda v, t: (np.where(np.arange(len(v))[:, None] == 4, np.nan, v), t), "vertex 4"),
        (lambda v, t: (v, np.where(np.arange(len(t))[:, None] == 3, 99, t)), "triangle 3"),
        (lambda v, t: (v, np.vstack([t, [0, 1, 1]])), "no area.*triangle 12"),
        (lambda v, t: (v, t[:0]), "n > 0"),
        (lambda v, t: (v[:, :2], t), "n x 3"),
        (lambda v, t: (v, t.astype(float)), "whole numbers"),
    ],
)
def test_refusals(spoil, says):
    with pytest.raises(MeshError, match=says):
        build_meshes([spoil(*block(1, 1, 1))])


def test_progress_is_told():
    told = []
    build_meshes([grid(30, 1.0, hills)], say=lambda m, x: told.append((m, x)))
    assert told[-1] == (0, 1.0)


# ---- spheres


def check_sphere(rng, scene, vertex, triangle, margin):
    """One random sphere near the surface: its deepest point is the nearest point of all triangles."""
    turn, at = random_turn(rng), rng.uniform(-3, 3, 3)
    radius = rng.uniform(0.05, 0.5)
    scene.shape.size[0, 0] = radius
    t = rng.integers(len(triangle))
    normal = np.cross(*(vertex[triangle[t, 1:]] - vertex[triangle[t, 0]]))
    normal /= np.linalg.norm(normal)
    c = rng.dirichlet((1, 1, 1)) @ vertex[triangle[t]] + rng.uniform(0.3, 1.2) * radius * normal
    scene.put(1, at, turn)
    scene.put(0, turn @ c + at)
    n = scene.touch(margin)
    distance, foot, _ = brute(vertex[triangle], c)
    if distance > radius + margin:
        assert n == 0
        return 0
    if distance < 0.02 * radius:
        return 0
    k = scene.out.depth[:n].argmax()
    assert abs(scene.out.depth[k] - (radius - distance)) < 1e-9
    np.testing.assert_allclose(scene.out.normal[k], turn @ (c - foot) / distance, atol=1e-7)
    half_way = c + (foot - c) / distance * 0.5 * (radius + distance)
    np.testing.assert_allclose(scene.out.point[k], turn @ half_way + at, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(scene.out.normal[:n], axis=1), 1.0, atol=1e-9)
    return 1


@pytest.mark.parametrize("count", [700, pytest.param(34000, marks=pytest.mark.slow)])
def test_sphere_touches_where_trimesh_says_it_is_nearest(count):
    rng = np.random.default_rng(11)
    ball = trimesh.creation.icosphere(subdivisions=2)
    ring = trimesh.creation.torus(1.0, 0.5, major_sections=16, minor_sections=10)
    for vertex, triangle in ((ball.vertices, ball.faces), (ring.vertices, ring.faces), block(1, 0.6, 0.8)):
        vertex, triangle = np.asarray(vertex), np.asarray(triangle)
        scene = Scene([Kind.SPHERE, Kind.MESH], [[1.0], [1]], build_meshes([(vertex, triangle)]))
        hits = sum(check_sphere(rng, scene, vertex, triangle, 0.05) for _ in range(count))
        assert hits > 0.3 * count


def test_sphere_has_the_distance_that_coal_finds():
    vertex, triangle = grid(24, 3.0, hills)
    theirs, scene = mesh_twin(vertex, triangle), Scene([0, 9], [[0.3], [1]], build_meshes([(vertex, triangle)]))
    rng, ball, found = np.random.default_rng(5), coal.Sphere(0.3), 0
    for _ in range(300):
        p = rng.uniform((-2.5, -2.5, 0.3), (2.5, 2.5, 0.9))
        scene.put(0, p)
        n = scene.touch(0.2)
        result = coal.DistanceResult()
        at = coal.Transform3s(np.eye(3), p)
        gap = coal.distance(ball, at, theirs, coal.Transform3s(), coal.DistanceRequest(), result)
        if 0.001 < gap < 0.199:
            found += 1
            assert abs(scene.out.depth[:n].max() + gap) < 1e-6
        elif gap > 0.201:
            assert n == 0
    assert found > 30


def test_nearest_is_that_of_trimesh():
    vertex, triangle = grid(24, 3.0, hills)
    made = build_meshes([(vertex, triangle)])
    record_of = Struct(made)
    for p in np.random.default_rng(6).uniform(-4, 4, (200, 3)):
        t, _, x, y, z = nearest(record_of.address, *p)
        distance, _, _ = brute(vertex[triangle], p)
        assert abs(np.linalg.norm(p - (x, y, z)) - distance) < 1e-12
        assert t >= 0


def test_ball_sliding_over_a_flat_floor_sees_no_edges():
    """A floor of cells that the ball spans: one point, straight up, moving with the ball, at every place."""
    scene = Scene([0, 9], [[0.35], [1]], build_meshes([grid(31, 3.0, lambda x, y: 0 * x)]))
    on_grid = np.arange(-10, 11) * 0.2
    path = [(x, y) for x in np.concatenate([np.linspace(-2, 2, 401), on_grid]) for y in (0.0, 0.0123, 0.2)]
    for x, y in path:
        for height in (0.34, 0.2, 0.0, -0.05):
            scene.put(0, (x, y, height))
            n = scene.touch(0.01)
            assert n == 1
            np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-12)
            np.testing.assert_allclose(scene.out.depth[0], 0.35 - height, atol=1e-12)
            np.testing.assert_allclose(scene.out.point[0], (x, y, 0.5 * (height - 0.35)), atol=1e-9)


def test_ball_in_a_corner_and_on_a_ridge():
    hollow = grid(3, 1.0, lambda x, y: np.abs(x))
    scene = Scene([0, 9], [[0.5], [1]], build_meshes([hollow]))
    scene.put(0, (0, 0.1, 0.7))
    n = scene.touch(0.01)
    _, normal, depth = scene.local(n)
    assert n == 2
    np.testing.assert_allclose(np.sort(normal[:, 0]), (-np.sqrt(0.5), np.sqrt(0.5)), atol=1e-12)
    np.testing.assert_allclose(depth, 0.5 - 0.7 * np.sqrt(0.5), atol=1e-12)
    ridge = Scene([0, 9], [[0.5], [1]], build_meshes([grid(3, 1.0, lambda x, y: -np.abs(x))]))
    ridge.put(0, (0.05, 0.1, 0.4))
    assert ridge.touch(0.01) == 1
    np.testing.assert_allclose(ridge.out.normal[0], np.array((0.05, 0, 0.4)) / np.hypot(0.05, 0.4), atol=1e-12)


def test_sphere_deep_inside_a_closed_mesh_is_pushed_out_by_the_nearest_face():
    scene = Scene([0, 9], [[0.1], [1]], build_meshes([block(1, 1, 1)]))
    scene.put(0, (0.1, 0.2, 0.55))
    assert scene.touch(0.01) == 1
    np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(scene.out.depth[0], 0.1 + 0.45, atol=1e-12)
    scene.put(0, (0.1, 0.2, 1.55))
    assert scene.touch(0.01) == 0


def test_ball_beside_the_border_of_an_open_sheet_or_below_it():
    scene = Scene([0, 9], [[0.3], [1]], build_meshes([grid(5, 1.0, lambda x, y: 0 * x)]))
    scene.put(0, (1.1, 0.0, 0.2))
    assert scene.touch() == 1
    np.testing.assert_allclose(scene.out.normal[0], np.array((0.1, 0, 0.2)) / np.hypot(0.1, 0.2), atol=1e-12)
    scene.put(0, (1.1, 0.0, -0.2))
    assert scene.touch() == 0


# ---- capsules


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_capsule_has_the_distance_that_coal_finds(count):
    vertex, triangle = grid(16, 2.0, hills)
    scene = Scene([1, 9], [[0.2, 0.5], [1]], build_meshes([(vertex, triangle)]))
    rng, found = np.random.default_rng(8), 0
    theirs, body = mesh_twin(vertex, triangle), coal.Capsule(0.2, 1.0)
    for _ in range(count):
        p, turn = rng.uniform((-1.2, -1.2, 0.2), (1.2, 1.2, 1.2)), random_turn(rng)
        scene.put(0, p, turn)
        n = scene.touch(0.15)
        result = coal.DistanceResult()
        at = coal.Transform3s(turn, p)
        gap = coal.distance(body, at, theirs, coal.Transform3s(), coal.DistanceRequest(), result)
        if 0.001 < gap < 0.149:
            found += 1
            assert abs(scene.out.depth[:n].max() + gap) < 2e-6
        elif gap > 0.151:
            assert n == 0
    assert found > 0.05 * count


def test_capsule_lying_on_a_floor_has_two_points_straight_up():
    scene = Scene([1, 9], [[0.2, 0.55], [1]], build_meshes([grid(31, 3.0, lambda x, y: 0 * x)]))
    lying = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    for x in np.linspace(-1, 1, 101):
        scene.put(0, (x, 0.013, 0.18), lying)
        assert scene.touch(0.01) == 2
        np.testing.assert_allclose(scene.out.normal[:2], [(0, 0, 1)] * 2, atol=1e-12)
        np.testing.assert_allclose(np.sort(scene.out.point[:2, 0]), (x - 0.55, x + 0.55), atol=1e-9)
        assert scene.out.feature[0] != scene.out.feature[1]


def test_capsule_through_a_floor_is_lifted_out_by_its_lower_end():
    scene = Scene([1, 9], [[0.1, 1.0], [1]], build_meshes([grid(31, 3.0, lambda x, y: 0 * x)]))
    scene.put(0, (0.03, 0.05, 0.2))
    n = scene.touch(0.01)
    assert n >= 1
    assert abs(scene.out.depth[:n].max() - 0.9) < 1e-9
    np.testing.assert_allclose(scene.out.normal[:n], [(0, 0, 1)] * n, atol=1e-12)
