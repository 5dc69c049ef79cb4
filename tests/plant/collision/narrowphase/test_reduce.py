"""Reduction of a manifold to a few well-spread points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import POINTS, new_manifold, view_manifold
from plant.collision.narrowphase.reduce import reduce


@kernel
def run(out, count, most):
    return reduce(view_manifold(out), count, most)


def manifold(points, depth, normal=None):
    out = new_manifold()
    n = len(points)
    out.point[:n], out.depth[:n] = points, depth
    out.normal[:n] = (0, 0, 1) if normal is None else normal
    out.feature[:n] = 100 + np.arange(n)
    return out


def reduced(points, depth, most, normal=None):
    out = manifold(points, depth, normal)
    record = Struct(out)
    count = run(record.address, len(points), most)
    return out, count


def test_few_points_stay_as_they_are():
    points = np.random.default_rng(0).normal(size=(4, 3))
    out, count = reduced(points, np.zeros(4), 4)
    assert count == 4
    np.testing.assert_array_equal(out.point[:4], points)


def test_a_filled_square_keeps_its_corners():
    grid = np.array([[x, y, 0.0] for x in range(8) for y in range(8)])
    out, count = reduced(grid, np.full(64, 0.1), 4)
    assert count == 4
    assert {tuple(p) for p in out.point[:4, :2].tolist()} == {(0, 0), (0, 7), (7, 0), (7, 7)}
    assert out.feature[:4].tolist() == [100, 107, 156, 163]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 8])
def test_the_deepest_point_stays_and_order_is_kept(most):
    rng = np.random.default_rng(most)
    for _ in range(50):
        n = int(rng.integers(most + 1, POINTS + 1))
        points, depth, normal = rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=(n, 3))
        out, count = reduced(points, depth, most, normal)
        assert count == most
        kept = out.feature[:count] - 100
        assert (np.diff(kept) > 0).all()
        assert depth.argmax() in kept
        np.testing.assert_array_equal(out.point[:count], points[kept])
        np.testing.assert_array_equal(out.normal[:count], normal[kept])
        np.testing.assert_array_equal(out.depth[:count], depth[kept])


def test_four_points_span_most_of_the_area():
    rng = np.random.default_rng(9)
    share = []
    for _ in range(100):
        points = np.column_stack([rng.uniform(-1, 1, (40, 2)), np.zeros(40)])
        out, count = reduced(points, np.zeros(40), 4)
        share.append(ConvexHull(out.point[:count, :2]).volume / ConvexHull(points[:, :2]).volume)
    assert np.mean(share) > 0.7


def test_rounding_does_not_choose_among_equals():
    grid = np.array([[x, y, 0.0] for x in range(8) for y in range(8)])
    rng = np.random.default_rng(3)
    plain, _ = reduced(grid, np.full(64, 0.1), 8)
    for _ in range(20):
        noisy, _ = reduced(grid * (1 + 1e-14 * rng.normal(size=grid.shape)), 0.1 + 1e-15 * rng.normal(size=64), 8)
        assert noisy.feature[:8].tolist() == plain.feature[:8].tolist()


def test_equal_places_are_no_trouble():
    _, count = reduced(np.zeros((64, 3)), np.zeros(64), 4)
    assert count == 4


def test_a_nanometre_does_not_choose_the_deepest():
    """A link that lies still is 1 nm deeper now at one end, now at the other: the same points come back."""
    rng = np.random.default_rng(5)
    points = np.array([[x, y, 0.0] for x in (-0.15, -0.05, 0.05, 0.15) for y in (-0.08, 0.08)])
    seen = set()
    for _ in range(50):
        out, count = reduced(points, 1e-9 * rng.normal(size=8), 4)
        seen.add(tuple(out.feature[:count]))
    assert seen == {(100, 101, 106, 107)}


@pytest.mark.parametrize("most", [1, 4, 8])
def test_the_deepest_of_nearly_equal_depths_is_kept_and_moves_no_other(most):
    """A disc that leans by four millionths: its lowest point takes the place of the one beside it, wherever that is."""
    angle = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    points = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(16)])
    level, _ = reduced(points, np.zeros(16), most)
    others = set(level.feature[:most].tolist())
    for lowest in range(16):
        depth = 4e-6 * np.cos(angle - angle[lowest])
        out, count = reduced(points, depth, most)
        kept = set(out.feature[:count].tolist())
        assert count == most
        assert 100 + lowest in kept
        assert len(kept - others) <= 1
        for gone in others - kept:
            way = [np.linalg.norm(points[o - 100] - points[lowest]) for o in others]
            assert np.linalg.norm(points[gone - 100] - points[lowest]) == pytest.approx(min(way))


@pytest.mark.parametrize("most", [1, 4, 8])
def test_the_depth_is_that_of_all_points_whatever_their_differences(most):
    rng = np.random.default_rng(most)
    for _ in range(300):
        n = int(rng.integers(most + 1, POINTS + 1))
        points, depth = rng.normal(size=(n, 3)), 10.0 ** rng.uniform(-9, 0) * rng.normal(size=n)
        out, count = reduced(points, depth, most)
        assert out.depth[:count].max() >= depth.max() - 1e-7 * np.ptp(points, axis=0).max()


def test_a_plate_in_a_corner_is_held_by_floor_and_wall():
    """Four points under it and four on its narrow side: whichever is the deepest, both have a say."""
    floor = [(x, y, 0.0) for x in (0, 1) for y in (0, 1)]
    wall = [(0.0, y, z) for y in (0, 1) for z in (0, 0.1)]
    normal = np.array([(0, 0, 1.0)] * 4 + [(1.0, 0, 0)] * 4)
    for deeper in range(8):
        depth = np.full(8, 1e-3)
        depth[deeper] = 2e-3
        out, count = reduced(np.array(floor + wall), depth, 4, normal)
        assert (out.normal[:count, 2] == 1).any()
        assert (out.normal[:count, 0] == 1).any()


def test_what_lies_far_across_a_gap_gives_way():
    """Ahead of a fast body: the four corners of its lower face, one nearer than the rest, and far walls about it."""
    near = [(x, y, 0.0) for x in (0, 0.1) for y in (0, 0.1)]
    far = [(-0.1, 0.05, 0.1), (0.2, 0.05, 0.1), (0.05, -0.1, 0.1), (0.05, 0.2, 0.1)]
    normal = np.array([(0, 0, 1.0)] * 4 + [(1.0, 0, 0), (-1.0, 0, 0), (0, 1.0, 0), (0, -1.0, 0)])
    out, count = reduced(np.array(far + near), [-0.3] * 4 + [-0.01, -0.02, -0.02, -0.03], 4, normal[::-1])
    assert out.feature[:count].tolist() == [104, 105, 106, 107]
