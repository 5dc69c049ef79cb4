"""General convex pairs against coal, closed forms, and what a body at rest needs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from convex_cases import CONVEX, Scene, best_push, coal_distances, random_pairs, random_shape
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from plant.collision.model import POINTS, Kind, view_manifold, view_placed, view_shapes
from plant.collision.narrowphase.convex import MOST, convex_convex_from, convex_plane
from plant.collision.narrowphase.gjk import view_convex_scratch
from plant.collision.shape.hull import view_hulls
from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Hull, Plane, Sphere

UPRIGHT = np.eye(3)
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def pair(a, b, pos, rot_a=UPRIGHT, rot_b=UPRIGHT):
    """Shape a at `pos` over shape b at the origin."""
    return Scene([a, b], [pos, np.zeros(3)], [rot_a, rot_b])


def rounded(kind):
    return (kind == Kind.CYLINDER) | (kind == Kind.CONE)


def check_against_coal(seed, count):
    shapes, pos, rot = random_pairs(np.random.default_rng(seed), count)
    scene = Scene(shapes, pos, rot)
    margin = 1e3
    points, depth, normal, _ = scene.run(margin)
    distance, other = coal_distances(shapes, pos, rot)
    scale = scene.content.bound.reshape(-1, 2).sum(1)
    kinds = scene.content.kind.reshape(-1, 2)
    curved = rounded(kinds).any(1)
    failed = np.abs(distance) > 1e3  # coal gives up on some overlapping cylinders and cones
    assert failed.sum() <= 0.01 * count
    assert not (failed & ~curved).any()
    assert (points > 0).all()
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
    # The depth is what the support functions say along our normal: a push that parts the two.
    limit = np.where(curved, 1e-6, 1e-12) * scale
    assert (np.abs(best_push(shapes, pos, rot, normal) - depth) <= limit).all()
    # No push known to coal is shorter; coal's own is now and then too long.
    limit = np.where(curved, 1e-6, 1e-8) * scale
    ok = ~failed
    assert (depth[ok] <= -distance[ok] + limit[ok]).all()
    apart = ok & (distance > 1e-6 * scale)
    assert apart.sum() > 0.15 * count
    assert (np.abs(depth + distance)[apart] <= limit[apart]).all()
    same = (normal * other).sum(1) > 1.0 - 1e-6
    assert same[apart].mean() > 0.995
    exact = ok & ~curved
    assert (np.abs(depth + distance)[exact] <= limit[exact]).mean() > 0.999
    assert same[ok].mean() > 0.95
    # Hit or miss with no margin.
    assert ((scene.run(0.0)[0] > 0) == (depth > 0.0)).all()


def test_random_pairs_match_coal():
    check_against_coal(1, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_pairs_match_coal(seed):
    check_against_coal(seed, 10_000)


@pytest.mark.parametrize(("i", "j"), list(itertools.combinations_with_replacement(range(6), 2)))
def test_all_kinds_match_coal_at_small_depths(i, j):
    """Pairs moved along coal's normal until they overlap, or miss, by a ten thousandth of their size."""
    rng = np.random.default_rng(7 * i + j)
    shapes, pos, rot = random_pairs(rng, 40, (i, j))
    distance, normal = coal_distances(shapes, pos, rot)
    apart = np.flatnonzero(distance > 1e-3)
    assert apart.size > 0 or (i, j) == (0, 0)
    scale = Scene(shapes, pos, rot).content.bound.reshape(-1, 2).sum(1)
    wanted = 1e-4 * scale * rng.choice([-1.0, 1.0], len(scale))
    for k in apart:
        pos[2 * k] -= (distance[k] + wanted[k]) * normal[k]
    _, depth, found, _ = Scene(shapes, pos, rot).run(1.0)
    tolerance = (1e-6 if rounded(np.array([CONVEX[i], CONVEX[j]])).any() else 1e-9) * scale
    gap = apart[wanted[apart] < 0.0]
    assert (np.abs(depth - wanted)[gap] <= tolerance[gap]).all()
    assert ((found * normal).sum(1)[gap] > 1.0 - 1e-5).all()
    # An overlap has at most that depth: two corners are parted sooner sideways.
    hit = apart[wanted[apart] > 0.0]
    assert (depth[hit] <= wanted[hit] + tolerance[hit]).all()
    assert (np.abs(best_push(shapes, pos, rot, found) - depth)[hit] <= tolerance[hit]).all()
    distance, _ = coal_distances(shapes, pos, rot)
    hit = hit[np.abs(distance[hit]) < 1e3]
    assert (depth[hit] <= -distance[hit] + tolerance[hit]).all()
    assert (np.abs(depth + distance)[hit] <= tolerance[hit]).mean() > 0.9 if hit.size else True


def test_spheres_and_capsules_in_closed_form():
    _, normal, depth, _ = pair(Sphere(0.5), Sphere(0.25), [0.0, 0.6, 0.0]).points()
    np.testing.assert_allclose(depth, [0.15], atol=1e-15)
    np.testing.assert_allclose(normal, [[0.0, 1.0, 0.0]], atol=1e-15)
    across = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    point, normal, depth, _ = pair(Capsule(0.1, 2.0), Capsule(0.2, 2.0), [0.29, 0.0, 0.3], across).points()
    np.testing.assert_allclose(depth, [0.01], atol=1e-15)
    np.testing.assert_allclose(normal, [[1.0, 0.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(point, [[0.195, 0.0, 0.3]], atol=1e-15)


@pytest.mark.parametrize("gap", [0.0, 1e-13, -1e-13, 1e-9, -1e-9, 1e-3, -1e-3])
def test_a_box_on_a_box_stands_on_four_corners(gap):
    for low in (Box(4, 4, 1), Hull(CORNERS * [2, 2, 0.5])):
        for top in (Box(1, 1, 1), Hull(CORNERS * 0.5)):
            point, normal, depth, feature = pair(top, low, [0.3, 0.2, 1.0 + gap]).points()
            assert len(depth) == 4
            np.testing.assert_allclose(depth, -gap, atol=1e-14)
            np.testing.assert_allclose(normal, [[0, 0, 1]] * 4, atol=1e-12)
            corners = {tuple(p) for p in np.round(point[:, :2], 9).tolist()}
            assert corners == {(-0.2, -0.3), (0.8, -0.3), (-0.2, 0.7), (0.8, 0.7)}
            assert len(set(feature.tolist())) == 4
            assert ((feature >= 0) & (feature < 2**20)).all()


@pytest.mark.parametrize(
    ("shape", "turn", "height", "count"),
    [
        (Cylinder(0.5, 1.0), [0, 0, 0], 0.5, 8),
        (Cylinder(0.5, 1.0), [90, 0, 0], 0.5, 2),
        (Cone(0.5, 1.0), [0, 0, 0], 0.5, 8),
        (Cone(0.5, 1.0), [90 + np.degrees(np.arctan(0.5)), 0, 0], 0.5 / np.sqrt(5.0), 2),
        (Capsule(0.5, 1.0), [90, 0, 0], 0.5, 2),
        (Capsule(0.5, 1.0), [0, 0, 0], 1.0, 1),
        (Hull(CORNERS * 0.5), [45, 0, 0], np.sqrt(0.5), 2),
        (Box(1, 1, 1), [45, np.degrees(np.arctan(np.sqrt(0.5))), 0], np.sqrt(0.75), 1),
    ],
)
@pytest.mark.parametrize("low", [Box(4, 4, 1), Hull(CORNERS * [2, 2, 0.5])])
def test_bodies_at_rest_have_stable_patches(shape, turn, height, count, low):
    rot = Rotation.from_euler("xyz", turn, degrees=True).as_matrix()
    names = None
    for overlap in (1e-4, 1.1e-4, -1e-4):
        scene = pair(shape, low, [0.1, 0.2, 0.5 + height - overlap], rot)
        _, normal, depth, feature = scene.points(1e-3)
        assert len(depth) >= count
        assert sum(abs(depth - overlap) < 1e-11) >= count
        assert (depth <= overlap + 1e-11).all()
        np.testing.assert_allclose(normal, [[0, 0, 1]] * len(depth), atol=1e-9)
        assert len(set(feature.tolist())) == len(feature)
        names = feature.tolist() if names is None else names
        if len(depth) == count:
            assert feature.tolist() == names


def test_boxes_that_cross_share_an_octagon_of_eight_points():
    turned = Rotation.from_euler("z", 45, degrees=True).as_matrix()
    point, _, depth, feature = pair(Box(2, 2, 1), Box(2, 2, 1), [0, 0, 0.99], turned).points()
    assert len(set(feature.tolist())) == 8
    np.testing.assert_allclose(depth, 0.01, atol=1e-14)
    corner = np.sqrt(2.0) - 1.0
    assert {tuple(p) for p in np.round(np.abs(point[:, :2]), 9).tolist()} == {
        (1.0, round(corner, 9)),
        (round(corner, 9), 1.0),
    }


@pytest.mark.parametrize(
    ("a", "b", "depth"),
    [
        (Sphere(1.0), Sphere(0.5), 1.5),
        (Sphere(1.0), Capsule(0.5, 1.0), 1.5),
        (Capsule(1.0, 3.0), Capsule(0.5, 1.0), 1.5),
        (Sphere(1.0), Box(2, 4, 6), 2.0),
        (Capsule(1.0, 3.0), Box(2, 4, 6), 2.0),
        (Box(2, 4, 6), Box(2, 4, 6), 2.0),
        (Sphere(1.0), Cylinder(1.0, 3.0), 2.0),
        (Box(2, 4, 6), Cylinder(1.0, 8.0), 2.0),
        (Cylinder(1.0, 3.0), Cylinder(1.0, 3.0), 2.0),
        (Cone(1.0, 0.5), Cone(1.0, 0.5), 0.5),
        (Box(2, 4, 6), Hull(CORNERS), 2.0),
        (Hull(CORNERS), Hull(CORNERS * 3), 4.0),
    ],
)
def test_concentric_shapes_are_parted_the_shortest_way(a, b, depth):
    _, normal, found, _ = pair(a, b, [0.0, 0.0, 0.0]).points()
    assert found.max() == pytest.approx(depth, rel=1e-7)
    assert np.linalg.norm(normal[0]) == pytest.approx(1.0, abs=1e-12)


def test_collinear_capsules_and_a_sphere_on_a_core():
    _, normal, depth, _ = pair(Capsule(0.1, 1.0), Capsule(0.2, 1.0), [0.0, 0.0, 0.5]).points()
    np.testing.assert_allclose(depth, 0.3, atol=1e-14)
    np.testing.assert_allclose(normal[:, 2], 0.0, atol=1e-14)
    _, normal, depth, _ = pair(Sphere(0.1), Capsule(0.2, 1.0), [0.0, 0.0, 0.25]).points()
    np.testing.assert_allclose(depth, [0.3], atol=1e-14)
    np.testing.assert_allclose(normal[:, 2], 0.0, atol=1e-14)


def test_needles_a_kilometre_long_and_a_millimetre_thick():
    across = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    needle = [500.0, 0.0005, 0.0005]
    for gap in (-1e-4, 1e-4):
        for shape in (Box(*(2 * np.array(needle))), Hull(CORNERS * needle)):
            _, normal, depth, _ = pair(shape, shape, [3.0, 100.0, 0.001 + gap], across).points(1e-3)
            np.testing.assert_allclose(depth, -gap, atol=1e-12)
            np.testing.assert_allclose(normal, [[0, 0, 1]] * len(depth), atol=1e-9)
            assert len(depth) == 4


@pytest.mark.parametrize("big", [Box(1000, 1000, 1000), Hull(CORNERS * 500)])
@pytest.mark.parametrize("small", [Box(1e-3, 1e-3, 1e-3), Hull(CORNERS * 5e-4), Sphere(5e-4), Cylinder(5e-4, 1e-3)])
def test_a_kilometre_beside_a_millimetre(big, small):
    for gap in (-1e-5, 1e-5):
        _, normal, depth, _ = pair(small, big, [123.0, -77.0, 500.0005 + gap]).points(1e-4)
        assert depth.max() == pytest.approx(-gap, abs=2e-11)
        np.testing.assert_allclose(normal, [[0, 0, 1]] * len(depth), atol=1e-6)


def test_hulls_of_many_vertices_are_as_good_as_balls():
    rng = np.random.default_rng(3)
    ball = rng.normal(size=(2000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    shapes = [Hull(ball[:1000]), Hull(ball[1000:] * 0.5)] * 20
    pos = np.zeros((40, 3))
    way = rng.normal(size=(20, 3))
    pos[::2] = way / np.linalg.norm(way, axis=1)[:, None] * rng.uniform(1.3, 1.6, 20)[:, None]
    rot = Rotation.random(40, random_state=rng).as_matrix()
    _, depth, normal, _ = Scene(shapes, pos, rot).run(1.0)
    distance, other = coal_distances(shapes, pos, rot)
    np.testing.assert_allclose(depth, -distance, atol=1e-9)
    assert ((normal * other).sum(1) > 1.0 - 1e-6).all()


@pytest.mark.parametrize(("i", "j"), [(2, 3), (2, 4), (3, 3), (3, 4), (4, 4)])
def test_curved_shapes_that_all_but_touch_have_the_normal_of_their_gap(i, j):
    """Apart by 1e-8 to 1e-4 of their size: the gap along the normal is the whole gap, or the normal is a wrong one."""
    rng = np.random.default_rng(11)
    shapes, pos, rot = random_pairs(rng, 1000, (i, j))
    scale = np.array([a.bound() + b.bound() for a, b in zip(shapes[::2], shapes[1::2], strict=True)])
    wanted = scale * 10.0 ** rng.uniform(-8, -4, 1000)
    for _ in range(2):  # what was moved a long way has another nearest point
        distance, normal = coal_distances(shapes, pos, rot)
        by = np.where(np.abs(distance) < 1e3, wanted - distance, 0.0)
        pos[::2] += by[:, None] * normal
    count, depth, normal, _ = Scene(shapes, pos, rot).run(1.0)
    apart = (count > 0) & (depth < -1e-9 * scale) & (depth > -1e-3 * scale)
    apart &= count < MOST  # of more points than these another may stand for the deepest
    assert apart.mean() > 0.8
    off = depth - best_push(shapes, pos, rot, normal)
    assert (np.abs(off)[apart] <= 1e-8 * scale[apart]).all()


def test_wild_sizes_and_places_give_finite_points_and_the_same_bits_twice():
    rng = np.random.default_rng(4)
    shapes, pos, rot = random_pairs(rng, 600)
    scene = Scene(shapes, pos, rot)
    factor = np.repeat(10.0 ** rng.integers(-6, 7, 600), 2)
    part = np.where(rng.random(1200) < 0.2, 1e-5, 1.0)
    scene.content.size[:] *= (factor * part)[:, None]
    scene.content.bound[:] *= factor
    scene.placed.pos[:] *= factor[:, None]
    scene.placed.pos[::2][rng.random(600) < 0.2] = scene.placed.pos[1::2][0]
    first = scene.run(1e9)
    assert all(np.isfinite(a).all() for a in (first[1], first[2], first[3]))
    second = scene.run(1e9)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


@kernel
def run_from(shape, placed, hull, scratch, out, last, margin):
    sh, pl, hu = view_shapes(shape), view_placed(placed), view_hulls(hull)
    sc, o = view_convex_scratch(scratch), view_manifold(out)
    for k in range(last.shape[0]):
        n = convex_convex_from(sh, pl, hu, sc, last[k], 2 * k, 2 * k + 1, margin, o)
        last[k, 3] = -np.inf
        for p in range(n):
            last[k, 3] = max(last[k, 3], o.depth[p])


def test_beginning_with_the_last_direction_gives_the_same_depths():
    rng = np.random.default_rng(5)
    shapes, pos, rot = random_pairs(rng, 500)
    scene = Scene(shapes, pos, rot)
    last = np.zeros((500, 4))
    run_from(*scene.address, last, 0.1)
    count, depth, _, _ = scene.run(0.1)
    near = count > 0
    assert ((last[:, 3] > -np.inf) == near).all()
    np.testing.assert_array_equal(last[near, 3], depth[near])
    scene.placed.pos[:] += rng.uniform(-1e-3, 1e-3, scene.placed.pos.shape)
    run_from(*scene.address, last, 0.1)
    count, depth, _, _ = scene.run(0.1)
    near = (count > 0) & (last[:, 3] > -np.inf)
    np.testing.assert_allclose(last[near, 3], depth[near], rtol=1e-6, atol=1e-7)


@kernel
def run_plane(shape, placed, hull, out, margin):
    return convex_plane(view_shapes(shape), view_placed(placed), view_hulls(hull), 0, 1, margin, view_manifold(out))


@pytest.mark.parametrize("many", [6, 30, 900])
def test_a_hull_on_a_plane_lists_its_vertices(many):
    rng = np.random.default_rng(many)
    for _ in range(20):
        hull = random_shape(rng, Kind.HULL) if many == 6 else Hull(rng.normal(size=(many, 3)))
        rot = Rotation.random(2, random_state=rng).as_matrix()
        scene = Scene([hull, Plane()], rng.uniform(-1, 1, (2, 3)), rot)
        shape, placed, hulls, _, out = scene.address
        margin = rng.uniform(0.01, 0.3)
        count = run_plane(shape, placed, hulls, out, margin)
        world = (hull.vertices - hull.middle()) @ rot[0].T + scene.placed.pos[0]
        deep = -(world - scene.placed.pos[1]) @ rot[1][:, 2]
        order = np.argsort(-deep)[:POINTS]
        order = np.sort(order[deep[order] > -margin])
        assert count == len(order)
        put = np.argsort(scene.out.feature[:count])
        np.testing.assert_array_equal(scene.out.feature[:count][put], order)
        np.testing.assert_allclose(scene.out.depth[:count][put], deep[order], atol=1e-12)
        half = world[order] + 0.5 * deep[order, None] * rot[1][:, 2]
        np.testing.assert_allclose(scene.out.point[:count][put], half, atol=1e-12)
