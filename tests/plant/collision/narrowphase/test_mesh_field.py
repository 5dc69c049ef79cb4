"""Meshes against height fields. Truth: coal on the same field turned into a mesh, our meshes against that, closed
forms."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from coal_peer import mesh_twin, surface_distance
from mesh_scenes import Scene, block, grid, hills, random_turn

from plant.collision.model import Kind
from plant.collision.narrowphase.field import build_fields
from plant.collision.narrowphase.surface_intersection import new_crossing
from plant.collision.shape.mesh import build_meshes

HALF, N = 2.0, 21
STEP = 2 * HALF / (N - 1)


class Ground:
    """A mesh above a field, and above the same surface as a mesh."""

    def __init__(self, body, height):
        self.body, self.ground = body, grid(N, HALF, height)
        made = build_meshes([body, self.ground])
        rest = (np.zeros((3, 4)), 1.0, 1.0), (self.ground[0][:, 2].reshape(N, N), STEP, STEP)
        more = {"field": build_fields(rest), "crossing": new_crossing(len(made.triangle))}
        self.scene, self.twin = (Scene([Kind.MESH, k], [[1], [1]], made, **more) for k in (Kind.FIELD, Kind.MESH))
        self.scene.shape.asset[1] = self.twin.shape.asset[1] = 1

    def put(self, pos, turn=None, ground_pos=(0, 0, 0), ground_turn=None):
        """Where the body is in the frame of the ground, and where the ground is."""
        frame = np.eye(3) if ground_turn is None else ground_turn
        turn = np.eye(3) if turn is None else turn
        for scene in (self.scene, self.twin):
            scene.put(0, frame @ np.asarray(pos) + ground_pos, np.ascontiguousarray(frame @ turn))
            scene.put(1, ground_pos, frame)

    def field_points(self, margin=0.0):
        n = self.scene.touch(margin)
        return n, *self.scene.local(n)

    def mesh_points(self, margin=0.0):
        n = self.twin.touch(margin)
        return n, *self.twin.local(n)


def rock(radius, fine=2, seed=3):
    ball = trimesh.creation.icosphere(subdivisions=fine, radius=radius)
    rough = 1 + 0.05 * np.random.default_rng(seed).standard_normal((len(ball.vertices), 1))
    return np.array(ball.vertices) * rough, np.array(ball.faces)


def under(ground):
    """Whether the centre of the body is under the surface, by the plane of the triangle there."""
    place = ground.scene.placed.rot[1].T @ (ground.scene.placed.pos[0] - ground.scene.placed.pos[1])
    corners = ground.ground[0][ground.ground[1]]
    flat = np.concatenate([corners[:, :, :2], np.ones((len(corners), 3, 1))], 2)
    weight = np.linalg.solve(flat.transpose(0, 2, 1), np.broadcast_to([*place[:2], 1.0], (len(flat), 3))[..., None])
    inside = (weight[:, :, 0] >= -1e-9).all(1)
    return inside.any() and place[2] < (corners[:, :, 2] * weight[:, :, 0]).sum(1)[inside].max()


@pytest.mark.parametrize("count", [400, pytest.param(100_000, marks=pytest.mark.slow)])
def test_contacts_are_those_of_the_same_ground_as_a_mesh_and_gaps_those_of_coal(count):
    """A field knows of every corner of the mesh whether it is inside, so it has as deep a point as the same ground as a
    mesh; but for a few places where other corners are listed, as points are chosen by their height over the region.
    """
    rng, margin = np.random.default_rng(1), 0.15
    crossed = same = shallower = near = 0
    for body in (rock(0.3), block(0.3, 0.2, 0.15)):
        ground = Ground(body, hills)
        models, placed = [mesh_twin(*m) for m in (body, ground.ground)], ground.scene.placed
        for _ in range(count // 2):
            pos = rng.uniform((-1.3, -1.3, -0.3), (1.3, 1.3, 1.0))
            ground.put(pos, random_turn(rng), rng.normal(size=3), random_turn(rng))
            distance = surface_distance(*models, placed.pos, placed.rot)
            n, point, normal, depth = ground.field_points(margin)
            np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
            assert np.isfinite(point).all()
            if distance == 0.0:
                crossed += 1
                assert n > 0
                n, point, normal, depth = ground.field_points()
                m, _, way, deep = ground.mesh_points()
                assert n > 0
                assert m > 0
                k, q = depth.argmax(), deep.argmax()
                shallower += depth[k] < deep[q] - 1e-9
                if abs(depth[k] - deep[q]) < 1e-9:
                    same += 1
                    assert normal[k] @ way[q] > 1 - 1e-9
            elif under(ground):
                assert depth.min() > 0.0
            elif distance < margin:
                near += 1
                assert abs(-depth.max() - distance) < 1e-9
            else:
                assert n == 0
    assert crossed > 0.2 * count
    assert same > 0.7 * crossed
    assert shallower < 0.02 * crossed
    assert near > 0.1 * count


def test_box_on_a_flat_field_stands_on_its_four_corners_touching_or_not():
    ground = Ground(block(0.5, 0.3, 0.2), lambda x, y: 0 * x)
    turn = trimesh.transformations.rotation_matrix(0.3, (0, 0, 1))[:3, :3]
    for deep in (0.01, -0.001):
        ground.put((0.013, 0.027, 0.2 - deep), turn)
        n, point, normal, depth = ground.field_points(2e-3)
        spread = np.abs((point - ground.scene.placed.pos[0]) @ turn)
        feet = np.abs(spread[:, :2] - (0.5, 0.3)).max(1) < 1e-9
        assert feet.sum() == 4
        np.testing.assert_allclose(normal, [(0, 0, 1)] * n, atol=1e-9)
        np.testing.assert_allclose(depth, deep, atol=1e-9)


def test_a_leaning_box_that_touches_with_one_edge_is_held_by_the_other_too():
    """Two corners are under the surface by a hair and two above by less than the margin."""
    ground = Ground(block(0.5, 0.3, 0.2), lambda x, y: 0 * x)
    turn = trimesh.transformations.rotation_matrix(1e-3, (0, 1, 0))[:3, :3]
    ground.put((0.013, 0.027, 0.2), turn)
    n, point, normal, depth = ground.field_points(2e-3)
    assert n == 4
    np.testing.assert_allclose(np.sort(depth), np.array([-1, -1, 1, 1]) * 0.5e-3, atol=2e-6)
    np.testing.assert_allclose(normal, [(0, 0, 1)] * 4, atol=2e-3)
    assert (np.sign(point[:, 0]) == np.sign(depth)).all()


def test_a_peak_in_a_face_has_the_depth_of_its_tip():
    """No corner of the box is under the surface; the tip is a sample of the field."""
    peak = lambda x, y: 0.2 * ((np.abs(x) < 1e-9) & (np.abs(y) < 1e-9))  # noqa: E731
    ground = Ground(block(0.5, 0.5, 0.1), peak)
    ground.put((0.05, 0.02, 0.28))
    n, point, normal, depth = ground.field_points()
    assert n == 1
    np.testing.assert_allclose(normal[0], (0, 0, 1), atol=1e-9)
    np.testing.assert_allclose(depth[0], 0.02, atol=1e-9)
    np.testing.assert_allclose(point[0], (0, 0, 0.19), atol=1e-9)
    ground.put((0.05, 0.02, 0.31))
    n, point, normal, depth = ground.field_points(0.02)
    np.testing.assert_allclose(depth[:n].max(), -0.01, atol=1e-9)
    np.testing.assert_allclose(point[depth.argmax()], (0, 0, 0.205), atol=1e-9)


def test_a_mesh_wholly_under_the_surface_is_lifted_out():
    ground = Ground(rock(0.2), lambda x, y: 0.3 * x)
    up = np.array((-0.3, 0, 1)) / np.hypot(0.3, 1)
    ground.put((0.3, 0.2, -0.6))
    n, _, normal, depth = ground.field_points()
    assert n >= 3
    np.testing.assert_allclose(normal, [up] * n, atol=1e-9)
    lowest = (ground.body[0] @ up).min() + np.array((0.3, 0.2, -0.6)) @ up
    np.testing.assert_allclose(depth.max(), -lowest, atol=1e-9)


def test_beside_and_far_above_the_field_there_is_nothing():
    ground = Ground(rock(0.3), hills)
    for place in ((HALF + 0.5, 0, 0), (0, 0, 3.0), (0, -HALF - 0.5, -0.2)):
        ground.put(place)
        assert ground.field_points(0.1)[0] == 0
