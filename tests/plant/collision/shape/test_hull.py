"""Hulls against scipy's and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from convex_cases import CONVEX, Scene, extent, random_shape
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from plant.collision.model import Kind, view_placed, view_shapes
from plant.collision.shape.hull import build_hulls, view_hulls
from plant.collision.shape.support import climb, support

CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def loops(hulls, h):
    for f in range(hulls.face_first[h], hulls.face_first[h + 1]):
        yield hulls.plane[f], hulls.loop[hulls.loop_first[f] : hulls.loop_first[f + 1]]


def test_a_cube_has_six_square_faces():
    inner = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    on_face = np.array([[0.3, 0.2, 1.0], [1.0, 0.0, 0.0]])
    hulls = build_hulls([np.vstack([inner, CUBE, on_face]) * [1, 2, 3] + 10.0])
    assert len(hulls.vertex) == 8
    np.testing.assert_allclose(hulls.middle, [[10.0] * 3])
    assert [len(loop) for _, loop in loops(hulls, 0)] == [4] * 6
    normals = {tuple(n) for n in np.round(hulls.plane[:, :3], 12).tolist()}
    assert normals == {tuple(n) for n in np.vstack([np.eye(3), -np.eye(3)]).tolist()}
    np.testing.assert_allclose(np.sort(hulls.plane[:, 3]), [1, 1, 2, 2, 3, 3])


def test_random_hulls_have_scipys_corners_volume_and_area():
    rng = np.random.default_rng(1)
    clouds = [rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-3, 3) for n in (4, 5, 8, 20, 100, 400)]
    hulls = build_hulls(clouds)
    for h, cloud in enumerate(clouds):
        truth = ConvexHull(cloud)
        own = hulls.vertex[hulls.first[h] : hulls.first[h + 1]] + hulls.middle[h]
        assert len(own) == len(truth.vertices)
        np.testing.assert_allclose(own, cloud[np.sort(truth.vertices)], rtol=1e-12, atol=1e-12)
        volume = area = edges = 0.0
        for plane, loop in loops(hulls, h):
            p = hulls.vertex[loop]
            np.testing.assert_allclose(p @ plane[:3], plane[3], atol=1e-9 * np.ptp(cloud))
            across = sum(np.cross(p[k] - p[0], p[k + 1] - p[0]) for k in range(1, len(p) - 1)) @ plane[:3]
            assert across > 0.0  # counter-clockwise seen from outside
            area += 0.5 * across
            volume += across * plane[3] / 6.0
            edges += 0.5 * len(loop)
        assert volume == pytest.approx(truth.volume, rel=1e-9)
        assert area == pytest.approx(truth.area, rel=1e-9)
        faces = hulls.face_first[h + 1] - hulls.face_first[h]
        assert len(own) - edges + faces == 2  # Euler


def test_faces_round_a_vertex_hold_it():
    hulls = build_hulls([CUBE, np.random.default_rng(2).normal(size=(30, 3))])
    for v in range(len(hulls.vertex)):
        around = hulls.round[hulls.round_first[v] : hulls.round_first[v + 1]]
        holds = [f for f in range(len(hulls.plane)) if v in hulls.loop[hulls.loop_first[f] : hulls.loop_first[f + 1]]]
        assert around.tolist() == holds


def test_noise_of_single_precision_on_a_flat_side_makes_one_face():
    grid = np.array([[x, y, z] for x in range(5) for y in range(5) for z in (0.0, 1.0)])
    noisy = (grid * 0.1).astype(np.float32).astype(float)
    turned = noisy @ Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix().T
    hulls = build_hulls([turned])
    big = [loop for _, loop in loops(hulls, 0) if len(loop) >= 4]
    assert len(big) >= 6


@pytest.mark.parametrize(
    ("cloud", "says"),
    [
        (CUBE[:3], r"hull 1: has 3 point\(s\), but a solid needs 4"),
        (CUBE * [1, 0, 1], "hull 1: .*one plane.*thickness"),
        (np.zeros((9, 3)), "hull 1: .*one plane"),
        (np.where(np.arange(24).reshape(8, 3) == 7, np.nan, CUBE), "hull 1: point 2 is .*finite"),
        (CUBE[:, :2], r"hull 1: points must be an array \[n, 3\]"),
    ],
)
def test_what_has_no_inside_is_refused(cloud, says):
    with pytest.raises(ValueError, match=says):
        build_hulls([CUBE, cloud])


def test_needles_are_built():
    hulls = build_hulls([CUBE @ Rotation.from_euler("xyz", [1, 2, 3]).as_matrix() * 500, CUBE * [500, 5e-4, 5e-4]])
    assert np.diff(hulls.first).tolist() == [8, 8]
    assert np.diff(hulls.face_first).tolist() == [6, 6]


@kernel
def top_vertices(hull, directions, found):
    hu = view_hulls(hull)
    for k in range(found.size):
        d = directions[k]
        found[k] = climb(hu, 0, hu.first[0] + k % (hu.first[1] - hu.first[0]), d[0], d[1], d[2])


@kernel
def supports(shape, placed, hull, directions, found):
    sh, pl, hu = view_shapes(shape), view_placed(placed), view_hulls(hull)
    for k in range(directions.shape[0]):
        d = directions[k]
        found[k, 0], found[k, 1], found[k, 2] = support(sh, hu, pl, k, d[0], d[1], d[2])


@pytest.mark.parametrize("many", [10, 200, 3000])
def test_climbing_finds_the_top_from_anywhere(many):
    rng = np.random.default_rng(many)
    points = rng.normal(size=(many, 3))
    scene = Scene([_hull(points / np.linalg.norm(points, axis=1)[:, None])], np.zeros((1, 3)), [np.eye(3)])
    directions = rng.normal(size=(1000, 3))
    found = np.zeros(1000, np.int64)
    top_vertices(scene.address[2], directions, found)
    heights = directions @ scene.hulls.vertex.T
    np.testing.assert_array_equal(heights[np.arange(1000), found], heights.max(1))


def _hull(points):
    from plant.collision.shape.shapes import Hull

    return Hull(points)


def test_support_points_of_all_kinds():
    rng = np.random.default_rng(5)
    shapes = [random_shape(rng, CONVEX[k % 6]) for k in range(600)]
    assert {s.kind for s in shapes} == set(CONVEX) == set(list(Kind)[:6])
    pos, rot = rng.normal(size=(600, 3)), Rotation.random(600, random_state=rng).as_matrix()
    scene = Scene(shapes, pos, rot)
    directions = rng.normal(size=(600, 3))
    directions[:6] = rot[:6, :, 2]  # straight along the axis, where a rim has no direction
    found = np.zeros((600, 3))
    supports(*scene.address[:3], directions, found)
    for k, s in enumerate(shapes):
        d = directions[k] / np.linalg.norm(directions[k])
        assert (found[k] - pos[k]) @ d == pytest.approx(extent(s, rot[k].T @ d), rel=1e-12, abs=1e-12)
        assert np.linalg.norm(found[k] - pos[k]) <= s.bound() * (1 + 1e-12)
