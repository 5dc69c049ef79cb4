"""Meshes against meshes. Truth: coal's and fcl's own BVHs, closed forms."""

from __future__ import annotations

from typing import Any

import fcl
import numpy as np
import pytest
import trimesh
from coal_peer import mesh_twin, surface_distance
from mesh_scenes import Scene, block, grid, hills, random_turn

from plant.collision.model import Kind
from plant.collision.narrowphase.surface_intersection import new_crossing
from plant.collision.shape.mesh import build_meshes


class Pair(Scene):
    def __init__(self, first, second):
        made = build_meshes([first, second])
        super().__init__([Kind.MESH, Kind.MESH], [[1], [1]], made, crossing=new_crossing(len(made.triangle)))
        self.shape.asset[1] = 1


def ball(radius, fine=3):
    made = trimesh.creation.icosphere(subdivisions=fine, radius=radius)
    return np.array(made.vertices), np.array(made.faces)


def fcl_mesh(vertex, triangle):
    model = fcl.BVHModel()
    model.beginModel(len(vertex), len(triangle))
    model.addSubModel(vertex, triangle)
    model.endModel()
    return model


@pytest.mark.parametrize("count", [500, pytest.param(20000, marks=pytest.mark.slow)])
def test_meshes_cross_when_fcl_says_so(count):
    ring = trimesh.creation.torus(0.8, 0.3, major_sections=24, minor_sections=12)
    ring = np.array(ring.vertices), np.array(ring.faces)
    rng = np.random.default_rng(1)
    for first, second in ((ball(0.5, 2), ring), (block(0.4, 0.3, 0.2), ring)):
        scene, seen = Pair(first, second), 0
        models = fcl_mesh(*first), fcl_mesh(*second)
        for _ in range(count // 2):
            turns = [random_turn(rng) for _ in range(2)]
            places = [rng.normal(size=3) * 0.7, np.zeros(3)]
            for k in range(2):
                scene.put(k, places[k], turns[k])
            objects = [fcl.CollisionObject(models[k], fcl.Transform(turns[k], places[k])) for k in range(2)]
            touch = fcl.collide(*objects, fcl.CollisionRequest(), fcl.CollisionResult()) > 0
            n = scene.touch()
            assert (n > 0) == touch
            seen += touch
            np.testing.assert_allclose(np.linalg.norm(scene.out.normal[:n], axis=1), 1.0, atol=1e-9)
            assert np.isfinite(scene.out.point[:n]).all()
        assert 0.1 * count < seen < 0.45 * count


def test_ball_on_a_floor_has_the_depth_normal_and_place_of_the_closed_form():
    scene = Pair(ball(0.5), grid(9, 2.0, lambda x, y: 0 * x))
    for x, depth in ((0.0, 0.02), (0.1234, 0.05), (0.3, 0.1)):
        scene.put(0, (x, 0.05, 0.5 - depth))
        n = scene.touch()
        point, normal, deep = scene.local(n)
        lowest = -(scene.assets.vertex[: scene.assets.first_vertex[1], 2].min() + 0.5 - depth)
        assert n >= 1
        np.testing.assert_allclose(normal, [(0, 0, 1)] * n, atol=1e-6)
        assert abs(deep.max() - lowest) < 1e-9
        k = deep.argmax()
        np.testing.assert_allclose(point[k, :2], (x, 0.05), atol=0.1)


def test_two_balls_overlap_along_their_line():
    scene = Pair(ball(0.5), ball(0.6))
    rng = np.random.default_rng(2)
    for _ in range(50):
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        depth = rng.uniform(0.03, 0.1)
        scene.put(0, (1.1 - depth) * way, random_turn(rng))
        scene.put(1, (0, 0, 0), random_turn(rng))
        n = scene.touch()
        assert n >= 1
        assert (scene.out.normal[:n] @ way).min() > 0.99
        assert abs(scene.out.depth[:n].max() - depth) < 0.012  # the facets lie up to 6 mm below the sphere


def test_box_on_a_floor_stands_on_its_four_corners():
    scene = Pair(block(0.5, 0.3, 0.2), grid(21, 2.0, lambda x, y: 0 * x))
    scene.put(0, (0.013, 0.027, 0.19), trimesh.transformations.rotation_matrix(0.3, (0, 0, 1))[:3, :3])
    n = scene.touch()
    point, normal, depth = scene.local(n)
    assert n == 4
    np.testing.assert_allclose(normal, [(0, 0, 1)] * 4, atol=1e-9)
    np.testing.assert_allclose(depth, 0.01, atol=1e-9)
    spread = (point - scene.placed.pos[0]) @ scene.placed.rot[0]
    np.testing.assert_allclose(np.sort(np.abs(spread[:, :2]), axis=0), [(0.5, 0.3)] * 4, atol=1e-9)


def test_two_feet_are_two_regions():
    table: Any = trimesh.util.concatenate(
        [
            trimesh.creation.box((0.2, 0.2, 1.0), np.block([[np.eye(3), np.array([[x], [0], [0]])], [0, 0, 0, 1]]))
            for x in (-1, 1)
        ]
    )
    scene = Pair((np.array(table.vertices), np.array(table.faces)), grid(3, 3.0, lambda x, y: 0 * x))
    scene.put(0, (0.05, 0.1, 0.49))
    n = scene.touch()
    point, normal, depth = scene.local(n)
    assert n == 8
    np.testing.assert_allclose(normal, [(0, 0, 1)] * 8, atol=1e-9)
    np.testing.assert_allclose(depth, 0.01, atol=1e-9)
    assert (point[:, 0] > 0.5).sum() == (point[:, 0] < -0.5).sum() == 4


def test_crossed_edges_have_the_depth_between_them():
    """Two roofs, edge across edge: no vertex is inside, the depth is the distance of the edges."""
    roof = grid(3, 1.0, lambda x, y: -np.abs(x))
    scene = Pair(roof, roof)
    flip = np.diag((1.0, -1.0, -1.0)) @ np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    scene.put(0, (0.1, 0.2, -0.05), flip)
    n = scene.touch()
    assert n == 1
    np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-6)
    np.testing.assert_allclose(scene.out.depth[0], 0.05, atol=1e-9)
    np.testing.assert_allclose(scene.out.point[0, :2], (0.1, 0.2), atol=0.11)


def test_rough_ground_never_gives_a_normal_that_pulls_in():
    scene, rng = Pair(ball(0.4, 2), grid(41, 3.0, hills)), np.random.default_rng(3)
    for _ in range(200):
        scene.put(0, rng.uniform((-2, -2, 0.2), (2, 2, 0.7)), random_turn(rng))
        n = scene.touch()
        assert (scene.out.depth[:n] >= 0).all()
        assert (scene.out.normal[:n, 2] > -0.2).all()


def rough_ball(radius, fine, seed):
    vertex, triangle = ball(radius, fine)
    return vertex * (1 + 0.05 * np.random.default_rng(seed).standard_normal((len(vertex), 1))), triangle


def turns_about(corners, point):
    """How often a closed mesh goes round a point: 1 inside, 0 outside (by solid angles, van Oosterom and Strackee)."""
    a, b, c = np.moveaxis(corners - point, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    dots = [(p * q).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))]
    angle = np.arctan2((a * np.cross(b, c)).sum(axis=1), la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
    return angle.sum() / (2 * np.pi)


def test_listed_vertices_are_inside():
    """Two rocks that are pressed a little into each other: the search for vertices stays within each contour, and a
    contour within another, which leaves a hole in that region, is none of its own."""
    rock, rng, listed = rough_ball(0.6, 3, 5), np.random.default_rng(8), 0
    scene = Pair(rock, rock)
    vertex, corners = scene.assets.vertex, scene.assets.vertex[scene.assets.triangle]
    sides = scene.assets.first_triangle
    for _ in range(100):
        way = rng.normal(size=3)
        way *= rng.uniform(1.15, 1.25) / np.linalg.norm(way)
        places, turns = [way, np.zeros(3)], [random_turn(rng) for _ in range(2)]
        for k in range(2):
            scene.put(k, places[k], turns[k])
        n = scene.touch()
        assert scene.out.depth[:n].max(initial=0.0) < 0.3
        names = [(int(f) // 8, int(f) % 8) for f in scene.out.feature[:n] if f % 8 < 2]
        for number, side in names:
            p = turns[1 - side].T @ (turns[side] @ vertex[number] + places[side] - places[1 - side])
            assert turns_about(corners[sides[1 - side] : sides[2 - side]], p) == pytest.approx(1.0)
        listed += len(names)
    assert listed > 100


@pytest.mark.parametrize("count", [600, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_least_gap_is_coals_distance(count):
    """Of meshes that do not cross; a point half way, the normal across, and no point nearer than the nearest."""
    rng, gaps, seen = np.random.default_rng(4), (2e-3, 0.05, 0.4), [0, 0, 0]
    ring = trimesh.creation.torus(0.8, 0.25, major_sections=20, minor_sections=10)
    ring = np.array(ring.vertices), np.array(ring.faces)
    for first, second in ((rough_ball(0.5, 2, 1), ring), (block(0.4, 0.3, 0.2), rough_ball(0.6, 2, 2))):
        scene = Pair(first, second)
        models = mesh_twin(*first), mesh_twin(*second)
        for k in range(count // 2):
            way = rng.normal(size=3)
            way *= rng.uniform(0.6, 1.5) / np.linalg.norm(way)
            scene.put(0, rng.normal(size=3) * 3, random_turn(rng))
            scene.put(1, scene.placed.pos[0] + way, random_turn(rng))
            distance, margin = surface_distance(*models, scene.placed.pos, scene.placed.rot), gaps[k % 3]
            n = scene.touch(margin)
            point, normal, depth = scene.local(n)
            assert np.isfinite(point).all()
            np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
            if distance == 0.0:
                assert depth.max() > 0.0
                continue
            assert (n > 0) == (distance < margin)
            if n:
                seen[k % 3] += 1
                assert abs(-depth.max() - distance) < 1e-9
                assert depth.min() >= -margin
                for side, mesh in ((-0.5, first), (0.5, second)):  # each point lies half way between the surfaces
                    turn, pos = scene.placed.rot[int(side > 0)], scene.placed.pos[int(side > 0)]
                    there = (point + side * depth[:, None] * normal - pos) @ turn
                    corners = np.repeat(mesh[0][mesh[1]][None], n, 0).reshape(-1, 3, 3)
                    ends = np.repeat(there, len(mesh[1]), 0)
                    foot = trimesh.triangles.closest_point(corners, ends)
                    off = np.linalg.norm(foot - ends, axis=1).reshape(n, -1).min(1)
                    assert off.max() < 1e-9
    assert seen[0] > 0
    assert seen[1] > 0.01 * count
    assert seen[2] > 0.1 * count


def test_a_gap_below_a_box_has_its_four_corners():
    scene = Pair(block(0.5, 0.3, 0.2), grid(21, 2.0, lambda x, y: 0 * x))
    turn = trimesh.transformations.rotation_matrix(0.3, (0, 0, 1))[:3, :3]
    scene.put(0, (0.013, 0.027, 0.201), turn)
    assert scene.touch(0.5e-3) == 0
    n = scene.touch(2e-3)
    point, normal, depth = scene.local(n)
    np.testing.assert_allclose(normal, [(0, 0, 1)] * n, atol=1e-9)
    np.testing.assert_allclose(depth, -0.001, atol=1e-9)
    spread = np.abs((point - scene.placed.pos[0]) @ turn)[:, :2]
    assert (np.abs(spread - (0.5, 0.3)).max(1) < 1e-9).sum() == 4


def test_the_foot_that_does_not_touch_yet_is_listed_beside_the_one_that_does():
    scene = Pair(block(0.5, 0.3, 0.2), grid(5, 2.0, lambda x, y: 0 * x))
    scene.put(0, (0.013, 0.027, 0.2), trimesh.transformations.rotation_matrix(1e-3, (0, 1, 0))[:3, :3])
    n = scene.touch(2e-3)
    point, normal, depth = scene.local(n)
    assert n == 4
    np.testing.assert_allclose(np.sort(depth), np.array([-1, -1, 1, 1]) * 0.5e-3, atol=2e-6)
    np.testing.assert_allclose(normal, [(0, 0, 1)] * 4, atol=2e-3)
    assert (np.sign(point[:, 0]) == np.sign(depth)).all()


def test_behind_a_surface_there_is_no_gap():
    """An open sheet has one side: a ball below it is not held."""
    scene = Pair(ball(0.3, 2), grid(9, 2.0, lambda x, y: 0 * x))
    for height, listed in ((0.35, True), (-0.35, False)):
        scene.put(0, (0.1, 0.2, height))
        assert (scene.touch(0.1) > 0) == listed


@pytest.mark.parametrize("swapped", [False, True])
def test_a_block_inside_a_closed_mesh_is_pushed_out_of_its_nearest_face(swapped):
    small, large = block(0.1, 0.2, 0.3), block(1.0, 1.5, 2.0)
    scene = Pair(large, small) if swapped else Pair(small, large)
    scene.put(1 if swapped else 0, (0.7, 0.1, -0.2))
    n = scene.touch(0.01)
    _, normal, depth = scene.local(n)
    assert n >= 4
    np.testing.assert_allclose(normal, [(-1 if swapped else 1, 0, 0)] * n, atol=1e-12)
    np.testing.assert_allclose(np.unique(depth.round(12)), [0.2, 0.4], atol=1e-9)


def test_a_mesh_in_the_hole_of_a_ring_is_not_inside_it():
    ring = trimesh.creation.torus(0.8, 0.3, major_sections=24, minor_sections=12)
    scene = Pair(block(0.1, 0.1, 0.1), (np.array(ring.vertices), np.array(ring.faces)))
    assert scene.touch(0.01) == 0
