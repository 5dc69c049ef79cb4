"""Boxes against coal, against closed forms, and at rest on each other."""

from __future__ import annotations

import numpy as np
import pytest
from primitive_pairs import Body, Found, Kind, coal_distance, random_turn, runner
from scipy.spatial.transform import Rotation

from plant.collision.narrowphase.box_box import RELATIVE, RIM

EYE = np.eye(3)
PLANE = Body(Kind.PLANE, ())
boxes = runner(Kind.BOX, Kind.BOX)
on_plane = runner(Kind.BOX, Kind.PLANE)


def box(half: object, at: object = (0.0, 0.0, 0.0), turn: object = EYE) -> Body:
    return Body(Kind.BOX, np.broadcast_to(half, 3), at, turn)


def about(x: float, y: float, z: float) -> np.ndarray:
    return Rotation.from_rotvec([x, y, z]).as_matrix()


def random_pair(rng: np.random.Generator, margin: float) -> tuple[Body, Body]:
    """Two boxes that overlap, nearly touch or just miss, in about equal parts."""
    a, b = np.exp(rng.uniform(-2, 1, 3)), np.exp(rng.uniform(-2, 1, 3))
    i = box(a, rng.normal(size=3), random_turn(rng))
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    j = box(b, i.at + way * rng.uniform(0, np.linalg.norm(a) + np.linalg.norm(b) + margin), random_turn(rng))
    return i, j


def off_surface(body: Body, point: np.ndarray) -> float:
    """How far a point is from the surface of a box, on either side."""
    q = np.abs(np.asarray(body.turn).T @ (point - body.at)) - body.size
    return abs(np.linalg.norm(np.maximum(q, 0.0)) + min(q.max(), 0.0))


def reach(body: Body, way: np.ndarray) -> float:
    """How far a box extends along a direction from the world's origin."""
    return float(body.at @ way + np.abs(np.asarray(body.turn).T @ way) @ body.size)


def check(i: Body, j: Body, found: Found, margin: float) -> None:
    """What must hold for any two boxes, with coal's distance as the truth."""
    truth, _ = coal_distance(i, j)
    scale = float(min(np.max(i.size), np.max(j.size)))
    if abs(truth - margin) < RELATIVE * abs(margin) + 1e-6:
        return
    assert (found.count > 0) == (truth < margin), truth
    if found.count == 0:
        return
    assert found.deepest == pytest.approx(-truth, rel=1.1 * RELATIVE, abs=3e-6 * scale)
    assert (found.depth > -margin).all()
    assert len(set(found.feature)) == found.count
    assert ((found.feature >= 0) & (found.feature < 2**20)).all()
    assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)
    for point, normal, depth in zip(found.point, found.normal, found.depth, strict=True):
        overlap = reach(j, normal) + reach(i, -normal)  # along this normal, from the boxes' own extents
        assert depth <= overlap + 1e-9
        rim = 1e-8 + 3.0 * RIM * scale
        assert off_surface(i, point - 0.5 * depth * normal) < rim + RELATIVE * abs(depth)
        assert off_surface(j, point + 0.5 * depth * normal) < rim + RELATIVE * abs(depth)


def sweep(pairs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    margin = 0.3
    two = [random_pair(rng, margin) for _ in range(pairs)]
    for (i, j), found in zip(two, boxes(two, margin), strict=True):
        check(i, j, found, margin)


def test_random_boxes_agree_with_coal() -> None:
    sweep(2000, 1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_random_boxes_agree_with_coal() -> None:
    sweep(100_000, 2)


def test_either_order_gives_the_same_contact() -> None:
    rng = np.random.default_rng(3)
    two = [random_pair(rng, 0.1) for _ in range(1000)]
    for one, other in zip(boxes(two, 0.1), boxes([(j, i) for i, j in two], 0.1), strict=True):
        if min(one.count, other.count) == 0:
            assert max(one.deepest, other.deepest) < -0.098
            continue
        assert one.deepest == pytest.approx(other.deepest, rel=2 * RELATIVE, abs=1e-5)


@pytest.mark.parametrize("gap", [-1e-3, 0.0, 5e-4])
def test_a_box_at_rest_on_an_equal_one_has_its_four_corners(gap: float) -> None:
    [found] = boxes([(box(0.5), box(0.5, (0, 0, 1 + gap)))], 1e-3)
    assert found.count == 4
    assert found.normal == pytest.approx(np.tile([0, 0, -1.0], (4, 1)))
    assert found.depth == pytest.approx(-gap, abs=1e-12)
    corners = {(float(x), float(y)) for x, y in np.round(found.point[:, :2], 9)}
    assert corners == {(0.5, 0.5), (0.5, -0.5), (-0.5, 0.5), (-0.5, -0.5)}
    assert found.point[:, 2] == pytest.approx(0.5 + 0.5 * gap)


@pytest.mark.parametrize("half", [(0.5, 0.5, 0.5), (2.0, 1.0, 0.01), (0.02, 0.01, 0.3)])
def test_points_and_features_stay_while_boxes_rest_and_tremble(half: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(4)
    turn = about(0.3, -0.4, 1.1)
    slip = 0.3 * RIM * min(half)
    two = []
    for _ in range(500):
        foot = turn @ [*rng.uniform(-slip, slip, 2), half[2] - 1e-4]
        lean = about(*(turn @ [*rng.uniform(-2e-4, 2e-4, 2), 0.1 * slip / max(half)])) @ turn
        two.append((box(half, (0, 0, 0), turn), box(half, foot + lean @ [0, 0, half[2]], lean)))
    found = boxes(two, 0.02)
    assert {f.count for f in found} == {4}
    assert len({tuple(f.feature) for f in found}) == 1
    assert max(np.abs(f.point - found[0].point).max() for f in found) < 2e-3 * max(half)
    for (i, j), f in zip(two, found, strict=True):
        truth, _ = coal_distance(i, j)
        assert f.deepest == pytest.approx(-truth, rel=1e-2, abs=1e-5 * max(half))


def test_a_small_box_on_a_large_one_and_under_it() -> None:
    small, large = box(0.1, (0.3, 0.2, 0.1)), box((1, 1, 0.5), (0, 0, -0.5 + 1e-4))
    for first, second, way in ((small, large, 1.0), (large, small, -1.0)):
        [found] = boxes([(first, second)])
        assert found.count == 4
        assert found.normal[:, 2] == pytest.approx(way)
        assert found.depth == pytest.approx(1e-4)
        assert np.sort(found.point[:, 0]) == pytest.approx([0.2, 0.2, 0.4, 0.4])


def test_an_equal_box_turned_by_an_eighth_has_the_octagon() -> None:
    [found] = boxes([(box(0.5), box(0.5, (0, 0, 0.999), about(0, 0, np.pi / 4)))])
    assert found.count == 8
    assert np.hypot(*found.point[:, :2].T) == pytest.approx(np.hypot(0.5, 0.5 * np.tan(np.pi / 8)), rel=2 * RIM)


def test_crossed_edges_have_one_point_at_the_crossing() -> None:
    height = 0.5 * np.sqrt(2) - 5e-4
    roof = box(0.5, (0.1, 0.2, -height), about(np.pi / 4, 0, 0))
    keel = box(0.5, (0.1, 0.2, height), about(0, np.pi / 4, 0))
    [found] = boxes([(roof, keel)])
    assert found.count == 1
    assert found.normal[0] == pytest.approx([0, 0, -1])
    assert found.depth[0] == pytest.approx(1e-3)
    assert found.point[0] == pytest.approx([0.1, 0.2, 0.0], abs=1e-12)


@pytest.mark.parametrize("way", [(3.0, 4.0, 0.0), (1.0, 2.0, 2.0)])
def test_boxes_apart_at_an_edge_or_a_corner_tell_the_true_gap(way: tuple[float, float, float]) -> None:
    step = 0.01 * np.array(way)
    at = np.where(step > 0, 1.0, 0.3) + step
    gap = float(np.linalg.norm(step))
    [found], [none] = boxes([(box(0.5), box(0.5, at))], 1.01 * gap), boxes([(box(0.5), box(0.5, at))], 0.99 * gap)
    assert found.deepest == pytest.approx(-gap)
    assert found.normal[0] == pytest.approx(-step / gap)
    assert none.count == 0


def test_one_box_inside_the_other_leaves_by_the_nearest_face() -> None:
    [found] = boxes([(box(0.1, (0.3, 0, 0)), box(0.5))])
    assert found.count == 4
    assert found.normal == pytest.approx(np.tile([1.0, 0, 0], (4, 1)))
    assert found.depth == pytest.approx(0.3)


def test_degenerate_boxes_give_finite_points() -> None:
    tilted = about(0.2, 0.3, 0.4)
    point, line, sheet = (0, 0, 0), (1, 0, 0), (1, 1, 0)
    two = [(box(0.5), box(0.5)), (box(0.5), box(0.5, turn=tilted))]
    for first in (point, line, sheet, (1, 1, 1)):
        for second in (point, line, sheet, (1e-3,) * 3, (1e3,) * 3):
            for turn in (EYE, tilted, about(1e-9, 0, 0), about(0, 1e-13, np.pi / 2)):
                two += [
                    (box(first), box(second, at, turn)) for at in ((0, 0, 0), (0, 0, 1e-12), (1, 0, 0), (0.5, 1, 1))
                ]
    for (i, j), found in zip(two, boxes(two, 1e-2), strict=True):
        for part in (found.point, found.normal, found.depth):
            assert np.isfinite(part).all(), (i, j)
        assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)


def test_a_millimetre_on_a_kilometre() -> None:
    land = box(500.0, (0, 0, -500.0))
    crumb = box(5e-4, (123.4, -321.0, 4.9e-4), about(0, 0, 0.7))
    [found] = boxes([(crumb, land)])
    assert found.count == 4
    assert found.depth == pytest.approx(1e-5, abs=1e-12)
    assert found.normal == pytest.approx(np.tile([0, 0, 1.0], (4, 1)))


def test_a_small_move_changes_little() -> None:
    rng = np.random.default_rng(5)
    two = [random_pair(rng, 0.05) for _ in range(2000)]
    steps = rng.normal(size=(len(two), 3))
    steps *= 1e-6 / np.linalg.norm(steps, axis=1)[:, None]
    moved = [(i.moved(s), j) for (i, j), s in zip(two, steps, strict=True)]
    same = 0
    for before, after in zip(boxes(two, 0.05), boxes(moved, 0.05), strict=True):
        if min(before.count, after.count) == 0 or tuple(before.feature) != tuple(after.feature):
            continue
        same += before.count > 0
        assert after.deepest == pytest.approx(before.deepest, abs=1.01e-6)
        assert np.abs(after.point - before.point).max() < 1e-4
    assert same > 500


def test_a_box_slides_over_an_edge_without_a_jump() -> None:
    """From fully on to half off: the deepest depth stays, and the middle of the points moves evenly."""
    places = np.arange(1e-5, 0.9, 2e-4)
    found = boxes([(box(0.5, (x, 0.1, 0.9995)), box(0.5)) for x in places], 1e-3)
    assert [f.deepest for f in found] == pytest.approx([5e-4] * len(places))
    middle = np.array([f.point.min(axis=0) + f.point.max(axis=0) for f in found]) / 2
    assert np.abs(np.diff(middle[:, 0])).max() < 2e-4 + RIM
    assert {f.count for f in found} == {4}


def test_corners_on_a_plane() -> None:
    rng = np.random.default_rng(6)
    two = []
    for _ in range(500):
        half = np.exp(rng.uniform(-2, 1, 3))
        place = rng.normal(size=3)
        turn = random_turn(rng)
        normal = turn[:, 2]
        at = place + normal * rng.uniform(0, 1.2) * np.linalg.norm(half)
        two.append((box(half, at, random_turn(rng)), PLANE._replace(at=place, turn=turn)))
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    hits = 0
    for (i, j), found in zip(two, on_plane(two, 0.1), strict=True):
        normal = j.turn[:, 2]
        height = (i.at + (signs * i.size) @ i.turn.T - j.at) @ normal
        assert np.sort(-found.depth) == pytest.approx(np.sort(height[height < 0.1]))
        truth, _ = coal_distance(i, j)
        if found.count:
            hits += 1
            assert found.deepest == pytest.approx(-truth, abs=1e-9)
            assert found.normal == pytest.approx(np.tile(normal, (found.count, 1)))
            assert (found.point - j.at) @ normal == pytest.approx(-found.depth / 2)
    assert hits > 100


def test_a_box_at_rest_on_a_plane_keeps_its_corners() -> None:
    two = [(box((0.3, 0.2, 0.1), (0, 0, 0.1 - 1e-4), about(a, -a, 0.5)), PLANE) for a in (0.0, 1e-5, -1e-5)]
    found = on_plane(two, 1e-3)
    assert {tuple(f.feature) for f in found} == {tuple(found[0].feature)}
    assert found[0].count == 4
