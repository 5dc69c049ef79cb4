"""Height fields. Truth: trimesh's nearest points over all triangles, coal's distances, closed forms."""

from __future__ import annotations

import coal
import numpy as np
import pytest
import trimesh
from coal_peer import mesh_twin
from mesh_scenes import Scene, grid, hills, random_turn
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from plant.collision.model import Kind
from plant.collision.narrowphase import field as fields
from plant.collision.narrowphase.field import FieldError, build_fields, view_fields

HALF, N = 2.0, 17
STEP = 2 * HALF / (N - 1)


@kernel
def set_height(f, x, y, z):
    fields.set_height(view_fields(f), 0, x, y, z)


def field_scene(kind, size, height):
    vertex, triangle = grid(N, HALF, height)
    made = build_fields([(np.zeros((3, 5)), 1.0, 1.0), (vertex[:, 2].reshape(N, N), STEP, STEP)])
    scene = Scene([kind, Kind.FIELD], [size, [1]], made)
    scene.shape.asset[1] = 1
    return scene, vertex, triangle


def flat(x, y):
    return 0 * x


@pytest.mark.parametrize("count", [2000, pytest.param(100000, marks=pytest.mark.slow)])
def test_sphere_touches_where_trimesh_says_it_is_nearest(count):
    scene, vertex, triangle = field_scene(Kind.SPHERE, [0.3], hills)
    rng, hits, inside = np.random.default_rng(1), 0, 0
    corners = vertex[triangle]
    reachable = corners.mean(axis=1)
    for _ in range(count):
        turn, at = random_turn(rng), rng.uniform(-3, 3, 3)
        radius = rng.uniform(0.05, 0.4)
        scene.shape.size[0, 0] = radius
        t = rng.integers(len(triangle))
        c = rng.dirichlet((1, 1, 1)) @ corners[t] + (0, 0, rng.uniform(-0.5, 1.4) * radius)
        scene.put(1, at, turn)
        scene.put(0, turn @ c + at)
        n = scene.touch(0.02)
        near = np.linalg.norm(reachable - c, axis=1) < radius + 0.5
        q = trimesh.triangles.closest_point(corners[near], np.tile(c, (near.sum(), 1)))
        d = np.linalg.norm(q - c, axis=1)
        foot, distance = q[d.argmin()], d.min()
        if distance < 0.02 * radius:
            continue
        is_below = np.linalg.det(np.stack([*(corners[t][1:] - corners[t][0]), c - corners[t][0]])) < 0
        if is_below:
            inside += 1
            assert n == 1
            assert abs(scene.out.depth[0] - radius - distance) < 1e-9
            np.testing.assert_allclose(scene.out.normal[0], turn @ (foot - c) / distance, atol=1e-6)
        elif distance > radius + 0.02:
            assert n == 0
        else:
            hits += 1
            k = scene.out.depth[:n].argmax()
            assert abs(scene.out.depth[k] - (radius - distance)) < 1e-9
            np.testing.assert_allclose(scene.out.normal[k], turn @ (c - foot) / distance, atol=1e-6)
    assert hits > 0.3 * count
    assert inside > 0.1 * count


def test_ball_sliding_over_a_flat_field_sees_no_edges():
    scene, _, _ = field_scene(Kind.SPHERE, [0.35], flat)
    for x in [*np.linspace(-1.5, 1.5, 301), *(np.arange(-6, 7) * STEP)]:
        for y in (0.0, 0.0123, STEP):
            for height in (0.34, 0.1, -0.05, -0.8):
                scene.put(0, (x, y, height))
                assert scene.touch(0.01) == 1
                np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-12)
                np.testing.assert_allclose(scene.out.depth[0], 0.35 - height, atol=1e-12)
                np.testing.assert_allclose(scene.out.point[0], (x, y, 0.5 * (height - 0.35)), atol=1e-9)


@pytest.mark.parametrize("p", [(9.0, 0, 0), (-9, 9, -3), (0, 1e9, 0), (2.5, 0, -0.1), (-2.4, -2.4, -5)])
def test_outside_the_border_there_is_nothing(p):
    for kind, size in ((0, [0.3]), (1, [0.2, 0.1]), (2, [0.2, 0.2, 0.2]), (3, [0.2, 0.2]), (4, [0.2, 0.2])):
        scene, _, _ = field_scene(kind, size, flat)
        scene.put(0, p)
        assert scene.touch(0.01) == 0


def test_a_height_that_changes_is_seen_at_once():
    scene, _, _ = field_scene(Kind.SPHERE, [0.1], flat)
    scene.put(0, (STEP, STEP, 0.5))
    assert scene.touch() == 0
    set_height(scene.records[2].address, 0, 0, 9.0)  # of the other field
    assert scene.touch() == 0
    scene.assets.height[scene.assets.first[1] + (N // 2 + 1) * N + N // 2 + 1] = 0.45
    assert scene.touch() == 1
    np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(scene.out.depth[0], 0.05, atol=1e-12)


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_capsule_has_the_distance_that_coal_finds(count):
    scene, vertex, triangle = field_scene(Kind.CAPSULE, [0.2, 0.5], hills)
    rng, found, theirs, body = np.random.default_rng(8), 0, mesh_twin(vertex, triangle), coal.Capsule(0.2, 1.0)
    for _ in range(count):
        p, turn = rng.uniform((-1.2, -1.2, 0.2), (1.2, 1.2, 1.2)), random_turn(rng)
        scene.put(0, p, turn)
        n = scene.touch(0.15)
        at, result = coal.Transform3s(turn, p), coal.DistanceResult()
        gap = coal.distance(body, at, theirs, coal.Transform3s(), coal.DistanceRequest(), result)
        if 0.001 < gap < 0.149:
            found += 1
            assert abs(scene.out.depth[:n].max() + gap) < 2e-6
        elif gap > 0.151:
            assert n == 0
    assert found > 0.05 * count


def test_box_sliding_over_a_flat_field_has_four_points_straight_up():
    scene, _, _ = field_scene(Kind.BOX, [0.5, 0.3, 0.2], flat)
    for x in np.linspace(-1.0, 1.0, 121):
        scene.put(0, (x, 0.07 * x, 0.19), Rotation.from_euler("z", 30 + 7 * x, degrees=True).as_matrix())
        n = scene.touch(0.02)
        assert n == 4
        np.testing.assert_allclose(scene.out.normal[:n], [(0, 0, 1)] * n, atol=1e-12)
        np.testing.assert_allclose(scene.out.depth[:n], 0.01, atol=1e-12)
        assert sorted(scene.out.feature[:n]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "size"), [(Kind.BOX, [0.3, 0.4, 0.5]), (Kind.CYLINDER, [0.3, 0.4]), (Kind.CONE, [0.4, 0.5])]
)
def test_solid_on_a_slope_reaches_as_low_as_its_support(kind, size):
    """A plane field, tilted as a whole: depth along its normal is the solid's support less the height."""
    slope = np.array((0.3, -0.2))
    scene, _, _ = field_scene(kind, size, lambda x, y: slope[0] * x + slope[1] * y)
    normal = np.array((-slope[0], -slope[1], 1.0)) / np.sqrt(1 + slope @ slope)
    rng = np.random.default_rng(2)
    for _ in range(300):
        turn, whole, at = random_turn(rng), random_turn(rng), rng.uniform(-2, 2, 3)
        up = turn.T @ normal
        if kind == Kind.BOX:
            low = np.abs(up) @ size
        elif kind == Kind.CYLINDER:
            low = size[0] * np.hypot(up[0], up[1]) + size[1] * abs(up[2])
        else:
            low = max(-size[1] * up[2], size[0] * np.hypot(up[0], up[1]) + size[1] * up[2])
        depth = rng.uniform(-0.04, 0.1)
        scene.put(1, at, whole)
        scene.put(0, whole @ ((low - depth) * normal) + at, whole @ turn)
        n = scene.touch(0.05)
        assert n >= 1
        assert abs(scene.out.depth[:n].max() - depth) < 1e-9
        np.testing.assert_allclose(scene.out.normal[:n], [whole @ normal] * n, atol=1e-9)
        scene.put(0, whole @ ((low + 0.051) * normal) + at, whole @ turn)
        assert scene.touch(0.05) == 0


def test_box_on_a_peak_and_in_a_ditch():
    scene, _, _ = field_scene(Kind.BOX, [0.5, 0.5, 0.1], lambda x, y: -0.3 * np.hypot(x, y))
    scene.put(0, (0.1, 0.05, 0.09))
    n = scene.touch(0.0)
    assert n == 1
    np.testing.assert_allclose(scene.out.normal[0], (0, 0, 1), atol=1e-9)
    np.testing.assert_allclose(scene.out.depth[0], 0.01, atol=1e-9)
    np.testing.assert_allclose(scene.out.point[0], (0, 0, -0.005), atol=1e-6)
    ditch, _, _ = field_scene(Kind.BOX, [0.3, 0.3, 0.3], lambda x, y: np.abs(x))
    ditch.put(0, (0, 0.1, 0.3 * np.sqrt(2) - 0.02), Rotation.from_euler("y", 45, degrees=True).as_matrix())
    n = ditch.touch(0.0)
    normal = ditch.out.normal[:n]
    assert (normal[:, 0] > 0.7).any()
    assert (normal[:, 0] < -0.7).any()


def test_solids_over_hills_as_coal_sees_them():
    """Where coal sees a gap there is no overlap here; where it sees none there is one."""
    for kind, size, body in (
        (Kind.BOX, [0.2, 0.3, 0.25], coal.Box(0.4, 0.6, 0.5)),
        (Kind.CYLINDER, [0.2, 0.3], coal.Cylinder(0.2, 0.6)),
        (Kind.CONE, [0.3, 0.3], coal.Cone(0.3, 0.6)),
    ):
        scene, vertex, triangle = field_scene(kind, size, hills)
        theirs, rng, missed, touching, apart = mesh_twin(vertex, triangle), np.random.default_rng(3), 0, 0, 0
        for _ in range(400):
            p, turn = rng.uniform((-1.3, -1.3, 0.1), (1.3, 1.3, 0.9)), random_turn(rng)
            scene.put(0, p, turn)
            n = scene.touch(0.0)
            at, result = coal.Transform3s(turn, p), coal.DistanceResult()
            gap = coal.distance(body, at, theirs, coal.Transform3s(), coal.DistanceRequest(), result)
            if gap > 1e-5:
                apart += 1
                assert n == 0 or scene.out.depth[:n].max() < 1e-5
            elif gap < -2e-3:
                touching += 1
                missed += n == 0
        assert touching > 100
        assert apart > 50
        assert missed <= 0.01 * touching


@pytest.mark.parametrize(
    ("height", "step", "says"),
    [
        (np.array([[0, 1], [np.nan, 0]]), 1.0, r"\(1, 0\)"),
        (np.zeros((1, 5)), 1.0, "2 x 2"),
        (np.zeros((3, 3)), 0.0, "positive"),
    ],
)
def test_refusals(height, step, says):
    with pytest.raises(FieldError, match=says):
        build_fields([(height, step, 1.0)])
