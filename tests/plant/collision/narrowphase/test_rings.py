"""Tori and chain links against dense samples of their core curves, and how they lie and hang."""

from __future__ import annotations

import numpy as np
import pytest
from primitive_pairs import Body, Found, Kind
from ring_cases import KINDS, MARGIN, balls, random_body, random_pair, rings, walked_last
from scipy.ndimage import minimum_filter1d
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from plant.collision.narrowphase.ring import BETTER, MINIMA

EACH = pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "_".join(k.name.lower() for k in kinds))
PLANE = Body(Kind.PLANE, [])


def about(x: float, y: float, z: float) -> np.ndarray:
    return Rotation.from_rotvec([x, y, z]).as_matrix()


def torus(ring: float, wire: float, at: object = (0, 0, 0), turn: object = np.eye(3)) -> Body:
    return Body(Kind.TORUS, [ring, wire], at, turn)


def link(half: float, bend: float, wire: float, at: object = (0, 0, 0), turn: object = np.eye(3)) -> Body:
    return Body(Kind.LINK, [half, bend, wire], at, turn)


def core(body: Body, count: int) -> np.ndarray:
    """Points along the core curve, in the world."""
    half, bend = (0.0, body.size[0]) if body.kind == Kind.TORUS else (body.size[0], body.size[1])
    angle = np.linspace(-np.pi / 2, np.pi / 2, count // 4)
    arc = np.array([half + bend * np.cos(angle), bend * np.sin(angle)]).T
    line = np.array([np.linspace(half, -half, count // 4), np.full(count // 4, bend)]).T
    flat = np.concatenate([arc, line, -arc, -line]) if half > 0 else np.concatenate([arc, -arc])
    return np.c_[flat, np.zeros(len(flat))] @ np.asarray(body.turn).T + body.at


def distance(body: Body, points: np.ndarray) -> np.ndarray:
    """Signed distance of points from a shape; from a ring's surface by dense samples of its core."""
    if body.kind >= Kind.TORUS:
        return cKDTree(core(body, 8000)).query(points)[0] - body.size[-1]
    q = (points - body.at) @ np.asarray(body.turn)
    rho, z, s = np.hypot(q[:, 0], q[:, 1]), q[:, 2], body.size
    if body.kind == Kind.PLANE:
        return z
    if body.kind == Kind.SPHERE:
        return np.linalg.norm(q, axis=1) - s[0]
    if body.kind == Kind.CAPSULE:
        return np.hypot(rho, np.maximum(np.abs(z) - s[1], 0)) - s[0]
    if body.kind == Kind.CONE:
        return _polygon(np.c_[rho, z], np.array([(-s[0], -s[1]), (s[0], -s[1]), (0, s[1])]))
    d = np.abs(q) - s if body.kind == Kind.BOX else np.c_[rho - s[0], np.abs(z) - s[1]]
    return np.linalg.norm(np.maximum(d, 0), axis=1) + np.minimum(d.max(axis=1), 0)


def _polygon(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Signed distance of points in a plane from a convex polygon, corners counter-clockwise."""
    nearest, outside = np.full(len(points), np.inf), np.full(len(points), -np.inf)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        side = b - a
        t = np.clip((points - a) @ side / (side @ side), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(points - a - t[:, None] * side, axis=1))
        outside = np.maximum(outside, (points - a) @ [side[1], -side[0]])
    return np.where(outside > 0, nearest, -nearest)


def check(i: Body, j: Body, found: Found) -> None:
    i, j, found = walked_last(i, j, found)
    wire = j.size[-1]
    curve = core(j, 4000)
    along = distance(i, curve) - wire
    if abs(along.min() - MARGIN) < 1e-4:
        return
    assert (found.count > 0) == (along.min() < MARGIN), along.min()
    if found.count == 0:
        return
    # Samples of curves that cross, or pass an edge inside a box, miss the minimum by up to their spacing.
    coarse = 2e-5 if along.min() > -0.5 * wire else 3e-3
    assert abs(found.deepest + along.min()) < coarse
    assert (found.depth > -MARGIN).all()
    assert len(set(found.feature)) == found.count
    assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)
    half = 0.5 * found.depth[:, None] * found.normal
    if along.min() > -0.5 * wire and (found.feature >= MINIMA).all():
        for k in minima(along):
            assert np.linalg.norm(found.point + half - curve[k], axis=1).min() < wire + 0.25 * max(j.size)
    if along.min() > -0.5 * wire:
        assert distance(i, found.point - half) == pytest.approx(0.0, abs=2e-5)
        from_core, fixed = cKDTree(curve).query(found.point + half)[0], found.feature < MINIMA
        assert from_core[~fixed] == pytest.approx(wire, rel=0.05)
        assert (from_core < 1.05 * wire).all()  # a ball about a fixed place does not show where the wire is steep


def minima(along: np.ndarray, apart: int = 160) -> list[int]:
    """Where a closed curve's samples have a clear minimum that overlaps."""
    lowest = along <= minimum_filter1d(along, 2 * apart + 1, mode="wrap")
    clear = np.minimum(np.roll(along, apart), np.roll(along, -apart)) > along + 5e-3
    return list(np.flatnonzero(lowest & clear & (along < -1e-3)))


def sweep(kinds: tuple[Kind, Kind], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    two = [random_pair(kinds, rng) for _ in range(count)]
    for (i, j), found in zip(two, rings(two, MARGIN), strict=True):
        check(i, j, found)


@EACH
def test_random_pairs_agree_with_dense_samples(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 40 if kinds[0] >= Kind.TORUS else 150, 1)


@EACH
def test_a_small_move_changes_little(kinds: tuple[Kind, Kind]) -> None:
    rng = np.random.default_rng(3)
    two = [random_pair(kinds, rng) for _ in range(500)]
    step = rng.normal(size=(len(two), 3))
    step *= 1e-6 / np.linalg.norm(step, axis=1)[:, None]
    moved = [(i, j.moved(s)) for (i, j), s in zip(two, step, strict=True)]
    for (_, j), before, after in zip(two, rings(two, MARGIN), rings(moved, MARGIN), strict=True):
        if min(before.count, after.count):
            assert after.deepest == pytest.approx(before.deepest, abs=1.1e-6 + BETTER * sum(j.size))


@pytest.mark.parametrize("ring", [torus(1.0, 0.1), link(0.6, 0.4, 0.1)])
def test_a_ring_flat_on_the_ground_keeps_four_points_while_it_trembles(ring: Body) -> None:
    rng = np.random.default_rng(4)
    bodies = [ring._replace(at=(0, 0, 0.0999), turn=about(*rng.uniform(-5e-6, 5e-6, 3))) for _ in range(100)]
    found = rings([(PLANE, body) for body in bodies], 1e-3)
    assert {tuple(f.feature) for f in found} == {(0, 8, 16, 24)}
    for f in found:
        assert f.normal[:, 2] == pytest.approx(-1.0)
        assert f.deepest == pytest.approx(1e-4, abs=1e-4)
        assert np.ptp(f.point[:, 0]) == pytest.approx(2.0 if ring.kind == Kind.TORUS else 1.2, abs=1e-3)


def test_a_ring_half_over_the_edge_of_a_table_has_the_ends_of_its_arc() -> None:
    table = Body(Kind.BOX, [2.0, 2.0, 0.5], (-2.0, 0, -0.5))
    [found] = rings([(table, torus(1.0, 0.1, (0.05, 0, 0.0999)))], 1e-3)
    assert found.count >= 3
    assert found.depth[:3] == pytest.approx(1e-4)
    assert found.point[:, 0].min() < -0.9
    assert np.ptp(found.point[:, 1]) > 1.9


def test_two_links_of_a_chain_touch_at_their_bends() -> None:
    """Pulled taut, the bends' insides meet crosswise: one point, with the normal along the chain."""
    one = link(0.5, 0.3, 0.1)
    pull = 2 * 0.8 - 2 * 0.1 + 1e-4  # the cores' apexes cross two wire radii apart, less the depth
    [found] = rings([(one, link(0.5, 0.3, 0.1, (pull, 0, 0), about(np.pi / 2, 0, 0)))], 1e-3)
    assert found.count == 1
    assert found.deepest == pytest.approx(1e-4)
    assert found.normal[0] == pytest.approx([1.0, 0, 0], abs=1e-6) or found.normal[0] == pytest.approx([-1.0, 0, 0])
    assert found.point[0] == pytest.approx([pull / 2, 0, 0], abs=1e-6)


def test_a_pulled_link_is_pushed_back() -> None:
    """The normal points towards the first link: pulled apart, each bend holds the other back."""
    pull = 2 * 0.8 - 2 * 0.1 + 1e-4
    [found] = rings([(link(0.5, 0.3, 0.1), link(0.5, 0.3, 0.1, (pull, 0, 0), about(np.pi / 2, 0, 0)))], 1e-3)
    assert found.normal[0, 0] == pytest.approx(1.0)


def test_a_ring_through_a_ring_touches_on_two_sides() -> None:
    """A thick wire across a narrow hole: wedged between two sides, two minima."""
    hole = link(0.5, 0.2, 0.1)
    [found] = rings([(hole, torus(1.0, 0.101, (1.0, 0, 0), about(np.pi / 2, 0, 0)))], 1e-3)
    sides = np.sign(found.point[found.depth > 0][:, 1])
    assert {-1.0, 1.0} <= set(sides)


def test_a_bar_across_a_ring_touches_twice() -> None:
    bar = Body(Kind.CAPSULE, [0.05, 2.0], (0, 0, 0.1499), about(0, np.pi / 2, 0))
    [found] = rings([(bar, torus(1.0, 0.1))], 1e-3)
    assert found.count == 2
    assert np.sort(found.point[:, 0]) == pytest.approx([-1, 1], abs=1e-6)
    assert found.normal[:, 2] == pytest.approx(1.0)
    assert found.depth == pytest.approx(1e-4)


def test_a_ball_in_a_ring_rests_on_at_least_three_points() -> None:
    lift = np.sqrt(0.8999**2 - 0.6**2)
    [found] = rings([(Body(Kind.SPHERE, [0.8], (1e-6, 0, lift)), torus(0.6, 0.1))], 1e-3)
    assert found.count >= 3
    assert found.depth == pytest.approx(1e-4, abs=1e-5)
    assert (found.normal[:, 2] > 0.5).all()


@pytest.mark.parametrize("ring", [Kind.TORUS, Kind.LINK])
def test_the_short_way_for_a_ball_agrees_with_dense_samples(ring: Kind) -> None:
    rng = np.random.default_rng(6)
    two = [random_pair((Kind.SPHERE, ring), rng) for _ in range(300)]
    for (i, j), found in zip(two, balls(two, MARGIN), strict=True):
        check(i, j, found)


def test_stacked_rings_rest_on_four_points() -> None:
    [found] = rings([(torus(1.0, 0.1), torus(1.0, 0.1, (0, 0, 0.1999)))], 1e-3)
    assert list(found.feature) == [0, 8, 16, 24]
    assert found.depth == pytest.approx(1e-4)
    assert found.normal[:, 2] == pytest.approx(-1.0)


@EACH
def test_degenerate_pairs_give_finite_points(kinds: tuple[Kind, Kind]) -> None:
    rng = np.random.default_rng(5)
    two = []
    for scale in (0.0, 1e-3, 1.0, 1e3):
        for turn in (np.eye(3), about(1e-13, 0, 0), about(np.pi / 2, 0, 0), about(1, 2, 3)):
            for at in ((0, 0, 0), (0, 0, 1e-13), (1, 0, 0), (0, 0, 1)):
                i, j = random_body(kinds[0], rng), random_body(kinds[1], rng)
                i = i._replace(at=(0, 0, 0), turn=np.eye(3), size=np.ones(len(i.size)))
                two.append((i, j._replace(at=at, turn=turn, size=scale * np.ones(len(j.size)))))
                two.append((i._replace(size=0 * i.size), two[-1][1]))
    for found in rings(two, 0.1):
        for part in (found.point, found.normal, found.depth):
            assert np.isfinite(part).all()
        assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)
