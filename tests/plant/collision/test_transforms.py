"""Frames and boxes of shapes against scipy's rotations, trimesh's solids and points sampled on the surfaces."""

import numpy as np
import pytest
import trimesh
from broadphase_scenes import make_shapes, place_all
from scipy.spatial.transform import Rotation

from hilnode.core.struct import Struct
from plant.collision.model import Kind, Placed, Shapes, new_placed
from plant.collision.transforms import FAR_AWAY

FINE = 160  # sections of a round solid: it is then short of the true one by 2e-4 of its radius


def placed_at(shapes: Shapes, pos: np.ndarray, rot: np.ndarray) -> Placed:
    placed = new_placed(len(shapes.kind))
    records = Struct(shapes), Struct(placed)
    place_all(records[0].address, records[1].address, pos, rot)
    return placed


def around(angle: np.ndarray) -> np.ndarray:
    return np.stack((np.cos(angle), np.sin(angle), 0 * angle), axis=-1)


def solid(kind: Kind, size: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Points on the surface, among them all corners; round parts by trimesh, finely; `axes` are the world's."""
    x, y, z = size[:3]
    if kind == Kind.SPHERE:
        return trimesh.creation.uv_sphere(radius=x, count=[FINE, FINE]).vertices
    if kind == Kind.CAPSULE:
        mesh = trimesh.creation.capsule(height=2 * y, radius=x, count=[FINE, FINE])
        return mesh.vertices - mesh.bounds.mean(axis=0)
    if kind == Kind.CYLINDER:
        return trimesh.creation.cylinder(radius=x, height=2 * y, sections=FINE).vertices
    if kind == Kind.CONE:
        return trimesh.creation.cone(radius=x, height=2 * y, sections=FINE).vertices - [0, 0, y]
    if kind == Kind.TORUS:
        return trimesh.creation.torus(x, y, major_sections=FINE, minor_sections=FINE).vertices
    if kind == Kind.LINK:  # a ball swept along two straights and two bends
        angle = np.linspace(0, 2 * np.pi, 4 * FINE)
        core = around(angle) * y + np.where(np.cos(angle) > 0, x, -x)[:, None] * [1, 0, 0]
        ball = np.concatenate((axes, -axes)) * z
        return (core[:, None] + ball[None]).reshape(-1, 3)
    return trimesh.creation.box(extents=2 * size[:3]).vertices


@pytest.mark.parametrize("kind", [k for k in Kind if k != Kind.PLANE])
def test_box_is_tight(kind):
    """The box holds every point of the surface, and some point reaches each of its six sides."""
    rng, n = np.random.default_rng(int(kind)), 8
    size = rng.uniform(0.1, 1.0, (n, 4))
    if kind == Kind.TORUS:
        size[:, 1] *= 0.3
    shapes = make_shapes(np.full(n, kind), np.arange(n), size, rng)
    pos, turn = rng.normal(size=(n, 3)) * 5, Rotation.random(n, random_state=rng)
    turn = Rotation.concatenate([Rotation.identity(2), turn[2:]])
    shapes.turn[:2] = np.eye(3)
    placed = placed_at(shapes, pos, turn.as_matrix())
    for s in range(n):
        points = solid(kind, size[s], turn[s].as_matrix() @ shapes.turn[s])
        points = turn[s].apply(points @ shapes.turn[s].T + shapes.at[s]) + pos[s]
        assert (points >= placed.low[s] - 1e-12).all()
        assert (points <= placed.high[s] + 1e-12).all()
        np.testing.assert_allclose(points.min(axis=0), placed.low[s], atol=3e-4)
        np.testing.assert_allclose(points.max(axis=0), placed.high[s], atol=3e-4)


def test_frames_are_those_of_scipy():
    rng, n = np.random.default_rng(20), 50
    shapes = make_shapes(np.full(n, Kind.BOX), rng.integers(0, 10, n), np.ones((n, 4)), rng)
    pos, turn = rng.normal(size=(10, 3)), Rotation.random(10, random_state=rng)
    placed = placed_at(shapes, pos, turn.as_matrix())
    on = turn[shapes.body]
    np.testing.assert_allclose(placed.pos, on.apply(shapes.at) + pos[shapes.body], atol=1e-14)
    np.testing.assert_allclose(placed.rot, (on * Rotation.from_matrix(shapes.turn)).as_matrix(), atol=1e-14)


def test_the_ground_stays_where_it_is():
    rng, n = np.random.default_rng(21), 20
    shapes = make_shapes(np.arange(n) % len(Kind), np.full(n, -1), rng.uniform(0.1, 1, (n, 4)), rng)
    placed = placed_at(shapes, np.zeros((0, 3)), np.zeros((0, 3, 3)))
    on_body = shapes._replace(body=np.zeros(n, np.int64))
    same = placed_at(on_body, np.zeros((1, 3)), np.eye(3)[None])
    np.testing.assert_array_equal(placed.pos, shapes.at)
    np.testing.assert_array_equal(placed.rot, shapes.turn)
    np.testing.assert_array_equal(placed.low, same.low)
    np.testing.assert_array_equal(placed.high, same.high)


def test_a_plane_is_everywhere_and_finite():
    shapes = make_shapes(np.array([Kind.PLANE]), np.array([-1]), np.zeros((1, 4)))
    placed = placed_at(shapes, np.zeros((0, 3)), np.zeros((0, 3, 3)))
    assert (placed.low == -FAR_AWAY).all()
    assert (placed.high == FAR_AWAY).all()


def test_a_disabled_shape_is_left_alone():
    shapes = make_shapes(np.array([Kind.SPHERE, Kind.SPHERE]), np.array([0, 0]), np.ones((2, 4)))
    shapes.enabled[1] = 0
    placed = placed_at(shapes, np.full((1, 3), 7.0), np.eye(3)[None])
    assert (placed.pos[0] == 7.0).all()
    assert (placed.pos[1] == 0.0).all()
