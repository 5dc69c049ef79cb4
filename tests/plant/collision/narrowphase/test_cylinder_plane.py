"""Cylinders and cones on a plane against coal, and how they stand, lie and roll."""

from __future__ import annotations

import numpy as np
import pytest
from primitive_pairs import Body, Found, Kind, coal_distance, random_turn, runner
from scipy.spatial.transform import Rotation

from plant.collision.narrowphase.cylinder_plane import BETTER

RUN = {kind: runner(kind, Kind.PLANE) for kind in (Kind.CYLINDER, Kind.CONE)}
BOTH = pytest.mark.parametrize("kind", list(RUN), ids=lambda kind: kind.name.lower())
PLANE = Body(Kind.PLANE, [])
MARGIN = 0.1


def about(x: float, y: float, z: float) -> np.ndarray:
    return Rotation.from_rotvec([x, y, z]).as_matrix()


def random_pairs(kind: Kind, count: int, seed: int) -> list[tuple[Body, Body]]:
    rng = np.random.default_rng(seed)
    two = []
    for _ in range(count):
        size = np.exp(rng.uniform(-2, 1, 2))
        plane = PLANE._replace(at=rng.normal(size=3), turn=random_turn(rng))
        up = plane.turn[:, 2] * rng.uniform(-0.2, 1.2) * np.linalg.norm(size)
        two.append((Body(kind, size, plane.at + up + plane.turn[:, 0], random_turn(rng) @ plane.turn), plane))
    return two


def on_surface(body: Body, point: np.ndarray) -> float:
    """How far a point is from the rims and the tip of a cylinder or cone."""
    x, y, z = np.asarray(body.turn).T @ (point - body.at)
    r, h = body.size
    rim = np.hypot(np.hypot(x, y) - r, z + h)
    other = np.hypot(np.hypot(x, y) - r, z - h) if body.kind == Kind.CYLINDER else np.linalg.norm([x, y, z - h])
    return float(min(rim, other))


def check(i: Body, j: Body, found: Found) -> None:
    truth, normal = coal_distance(i, j)
    trifle = BETTER * i.size[0] + 1e-9
    if abs(truth - MARGIN) < 2 * trifle:
        return
    assert (found.count > 0) == (truth < MARGIN)
    if found.count == 0:
        return
    assert -truth - trifle <= found.deepest <= -truth + 1e-9
    assert found.normal == pytest.approx(np.tile(normal, (found.count, 1)), abs=1e-9)
    assert (found.depth > -MARGIN).all()
    assert len(set(found.feature)) == found.count
    for point, way, depth in zip(found.point, found.normal, found.depth, strict=True):
        assert on_surface(i, point - 0.5 * depth * way) < 1e-9
        assert (point + 0.5 * depth * way - j.at) @ way == pytest.approx(0.0, abs=1e-9)


@BOTH
def test_random_pairs_agree_with_coal(kind: Kind) -> None:
    two = random_pairs(kind, 1000, 1)
    for (i, j), found in zip(two, RUN[kind](two, MARGIN), strict=True):
        check(i, j, found)


@pytest.mark.slow
@pytest.mark.timeout(600)
@BOTH
def test_many_random_pairs_agree_with_coal(kind: Kind) -> None:
    two = random_pairs(kind, 100_000, 2)
    for (i, j), found in zip(two, RUN[kind](two, MARGIN), strict=True):
        check(i, j, found)


@BOTH
def test_what_stands_keeps_four_points_while_it_trembles(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    bodies = [Body(kind, [0.2, 0.3], (0, 0, 0.2999), about(*rng.normal(size=3) * [1e-5, 1e-5, 0])) for _ in range(200)]
    found = RUN[kind]([(body, PLANE) for body in bodies], 1e-3)
    assert {tuple(f.feature) for f in found} == {(0, 1, 2, 3)}
    assert found[0].point[:, :2] == pytest.approx(np.array([(0.2, 0), (0, 0.2), (-0.2, 0), (0, -0.2)]), abs=1e-4)


def test_a_cylinder_on_its_side_has_a_point_at_each_end() -> None:
    found = RUN[Kind.CYLINDER]([(Body(Kind.CYLINDER, [0.2, 0.5], (1, 2, 0.199), about(0, np.pi / 2, 0)), PLANE)])[0]
    assert found.depth == pytest.approx([1e-3, 1e-3])
    assert np.sort(found.point[:, 0]) == pytest.approx([0.5, 1.5])
    assert found.point[:, 1] == pytest.approx([2, 2])


def test_a_rolling_cylinder_keeps_two_points_below_its_axis() -> None:
    rolled = [about(0, np.pi / 2, 0) @ about(0, 0, angle) for angle in np.linspace(0, 7, 200)]
    found = RUN[Kind.CYLINDER]([(Body(Kind.CYLINDER, [0.2, 0.5], (0, 0, 0.2), turn), PLANE) for turn in rolled], 1e-3)
    assert {tuple(f.feature) for f in found} == {(4, 12)}
    assert max(np.abs(f.point[:, 1:]).max() for f in found) < 1e-12


def test_a_cone_on_its_slant_side_touches_along_it() -> None:
    lean = np.arctan2(0.3, 0.8)  # half the angle at the tip
    turn = about(0, np.pi / 2 + lean, 0)
    lift = 0.8 * np.sin(lean) / 2
    found = RUN[Kind.CONE]([(Body(Kind.CONE, [0.3, 0.4], (0, 0, lift - 1e-4), turn), PLANE)])[0]
    assert found.count == 2
    assert found.depth == pytest.approx([1e-4, 1e-4])


@BOTH
def test_upside_down(kind: Kind) -> None:
    found = RUN[kind]([(Body(kind, [0.3, 0.4], (0, 0, 0.39), about(np.pi, 0, 0)), PLANE)])[0]
    assert found.count == (4 if kind == Kind.CYLINDER else 1)
    assert found.deepest == pytest.approx(0.01)


@BOTH
def test_degenerate_sizes_give_finite_points(kind: Kind) -> None:
    sizes = ((0, 0), (0, 1), (1, 0), (1e-3, 1e3), (1e3, 1e-3))
    turns = (np.eye(3), about(1e-13, 0, 0), about(np.pi / 2, 0, 0), about(1, 2, 3))
    for found in RUN[kind]([(Body(kind, size, (0, 0, 0), turn), PLANE) for size in sizes for turn in turns]):
        for part in (found.point, found.normal, found.depth):
            assert np.isfinite(part).all()


@BOTH
def test_a_small_move_changes_little(kind: Kind) -> None:
    two = random_pairs(kind, 500, 4)
    small = about(3e-7, -4e-7, 5e-7)
    moved = [(i._replace(turn=small @ i.turn), j) for i, j in two]
    for (i, _), before, after in zip(two, RUN[kind](two, MARGIN), RUN[kind](moved, MARGIN), strict=True):
        if min(before.count, after.count):
            assert after.deepest == pytest.approx(before.deepest, abs=(1e-6 + BETTER) * max(i.size))
