"""Spheres and capsules against coal, against closed forms, and at rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from primitive_pairs import Body, Found, Kind, coal_distance, random_turn, runner
from scipy.spatial.transform import Rotation

SIZES = {Kind.SPHERE: 1, Kind.CAPSULE: 2, Kind.BOX: 3, Kind.CYLINDER: 2, Kind.CONE: 2, Kind.PLANE: 0}
PAIRS = [
    *((Kind.SPHERE, kind) for kind in SIZES),
    *((Kind.CAPSULE, kind) for kind in (Kind.CAPSULE, Kind.BOX, Kind.CYLINDER, Kind.PLANE)),
]
RUN = {kinds: runner(*kinds) for kinds in PAIRS}
EACH = pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: "_".join(k.name.lower() for k in kinds))
MARGIN = 0.2


def about(x: float, y: float, z: float) -> np.ndarray:
    return Rotation.from_rotvec([x, y, z]).as_matrix()


def random_pair(kinds: tuple[Kind, Kind], rng: np.random.Generator) -> tuple[Body, Body]:
    size = [np.exp(rng.uniform(-2, 1, SIZES[kind])) for kind in kinds]
    i = Body(kinds[0], size[0], rng.normal(size=3), random_turn(rng))
    way = rng.normal(size=3)
    far = rng.uniform(0, sum(np.linalg.norm(s) for s in size) + MARGIN)
    return i, Body(kinds[1], size[1], i.at + far * way / np.linalg.norm(way), random_turn(rng))


def reach(body: Body, way: np.ndarray) -> float:
    """How far a convex shape extends along a direction."""
    turn = np.asarray(body.turn)
    x, y, z = turn.T @ way
    s = body.size
    extent = {
        Kind.SPHERE: lambda: s[0],
        Kind.CAPSULE: lambda: s[0] + s[1] * abs(z),
        Kind.BOX: lambda: np.abs([x, y, z]) @ s,
        Kind.CYLINDER: lambda: s[0] * np.hypot(x, y) + s[1] * abs(z),
        Kind.CONE: lambda: max(s[1] * z, s[0] * np.hypot(x, y) - s[1] * z),
        Kind.PLANE: lambda: 0.0 if z > 1 - 1e-12 else np.inf,
    }[body.kind]()
    return float(np.asarray(body.at) @ way + extent)


def check(i: Body, j: Body, found: Found) -> None:
    truth, normal = coal_distance(i, j)
    if abs(truth - MARGIN) < 1e-6:
        return
    assert (found.count > 0) == (truth < MARGIN), truth
    if found.count == 0:
        return
    k = int(np.argmax(found.depth))
    # The overlap of the extents along any direction is an upper bound of the depth, so it may refute the oracle.
    overlap = reach(j, found.normal[k]) + reach(i, -found.normal[k])
    assert found.deepest == pytest.approx(min(-truth, overlap), rel=2e-6, abs=2e-6)
    at_end = i.kind == Kind.CAPSULE and found.feature[k] in (1, 2)  # listed for the nearest point if as good as that
    assert overlap == pytest.approx(found.deepest, abs=1e-2 * max(i.size) if at_end or found.count > 1 else 1e-7)
    assert (found.depth > -MARGIN).all()
    assert len(set(found.feature)) == found.count
    assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)
    if truth > 1e-4:
        assert found.normal[k] @ normal > 1 - 1e-4


def sweep(kinds: tuple[Kind, Kind], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    two = [random_pair(kinds, rng) for _ in range(count)]
    for (i, j), found in zip(two, RUN[kinds](two, MARGIN), strict=True):
        check(i, j, found)


@EACH
def test_random_pairs_agree_with_coal(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 400, 1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@EACH
def test_many_random_pairs_agree_with_coal(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 100_000, 2)


@EACH
def test_a_small_move_changes_little(kinds: tuple[Kind, Kind]) -> None:
    rng = np.random.default_rng(3)
    two = [random_pair(kinds, rng) for _ in range(1000)]
    step = rng.normal(size=(len(two), 3))
    step *= 1e-6 / np.linalg.norm(step, axis=1)[:, None]
    moved = [(i.moved(s), j) for (i, j), s in zip(two, step, strict=True)]
    for before, after in zip(RUN[kinds](two, MARGIN), RUN[kinds](moved, MARGIN), strict=True):
        if before.count and after.count:
            assert after.deepest == pytest.approx(before.deepest, abs=2e-6)
        else:
            assert max(before.deepest, after.deepest) < -MARGIN + 2e-6


@EACH
def test_degenerate_pairs_give_finite_points(kinds: tuple[Kind, Kind]) -> None:
    turns = (np.eye(3), about(0.3, 0.2, 0.1), about(1e-13, 0, 0), about(np.pi / 2, 0, 0), about(np.pi, 0, 1e-9))
    two = []
    for scale in (0.0, 1e-3, 1.0, 1e3):
        for turn in turns:
            for at in ((0, 0, 0), (0, 0, 1e-13), (0, 0, 1), (1, 0, 0), (1, 1, 0), (1e-300, 0, 0)):
                i = Body(kinds[0], np.ones(SIZES[kinds[0]]))
                two.append((i, Body(kinds[1], scale * np.ones(SIZES[kinds[1]]), at, turn)))
                two.append((i._replace(size=0.0 * i.size), two[-1][1]))
    hits = 0
    for found in RUN[kinds](two, 0.1):
        hits += found.count > 0
        for part in (found.point, found.normal, found.depth):
            assert np.isfinite(part).all()
        assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0)
    assert hits > 20


def only(kinds: tuple[Kind, Kind], i: Body, j: Body, margin: float = 1e-3) -> Found:
    [found] = RUN[kinds]([(i, j)], margin)
    return found


def test_the_point_lies_half_way_between_the_surfaces() -> None:
    ball, block = Body(Kind.SPHERE, [0.5], (0, 0, 1.48)), Body(Kind.BOX, [1, 1, 1])
    found = only((Kind.SPHERE, Kind.BOX), ball, block)
    assert found.depth == pytest.approx([0.02])
    assert found.point[0] == pytest.approx([0, 0, 0.99])
    assert found.normal[0] == pytest.approx([0, 0, 1])


def test_a_crumb_on_a_kilometre() -> None:
    crumb = Body(Kind.SPHERE, [5e-4], (300.0, 200.0, 500 + 4e-4))
    found = only((Kind.SPHERE, Kind.BOX), crumb, Body(Kind.BOX, [500, 500, 500]))
    assert found.depth == pytest.approx([1e-4], abs=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-5, -1e-5])
def test_parallel_capsules_touch_at_both_ends_of_their_common_length(tilt: float) -> None:
    low, high = Body(Kind.CAPSULE, [0.1, 1.0]), Body(Kind.CAPSULE, [0.1, 1.0], (0.1999, 0, 0.5), about(0, tilt, 0))
    found = only((Kind.CAPSULE, Kind.CAPSULE), high, low)
    assert found.count == 2
    assert sorted(found.feature) == [1, 4]  # the lower end of the first and the upper end of the second
    assert np.sort(found.point[:, 2]) == pytest.approx([-0.5, 1.0], abs=1e-4)
    assert found.normal[:, 0] == pytest.approx(1.0)
    assert found.depth == pytest.approx(1e-4, abs=2e-5)


def test_opposite_capsules_touch_at_both_ends_too() -> None:
    one, other = Body(Kind.CAPSULE, [0.1, 1.0]), Body(Kind.CAPSULE, [0.1, 0.3], (0, 0.2, 0.1), about(np.pi, 0, 0))
    found = only((Kind.CAPSULE, Kind.CAPSULE), one, other)
    assert np.sort(found.point[:, 2]) == pytest.approx([-0.2, 0.4])


def test_slightly_crossed_capsules_have_their_crossing_too() -> None:
    one, other = Body(Kind.CAPSULE, [0.1, 1.0]), Body(Kind.CAPSULE, [0.1, 1.0], (0.1999, 0, 0), about(0.02, 0, 0))
    found = only((Kind.CAPSULE, Kind.CAPSULE), one, other, 0.1)
    assert found.count == 3
    assert found.deepest == pytest.approx(1e-4)
    assert found.point[np.argmax(found.depth)] == pytest.approx([0.1, 0, 0], abs=1e-3)


LYING = about(0, np.pi / 2, 0)  # the core along x


@pytest.mark.parametrize("tilt", [0.0, 1e-6, -1e-6, 1e-4])
def test_a_capsule_on_a_face_touches_at_both_ends(tilt: float) -> None:
    rod = Body(Kind.CAPSULE, [0.1, 1.0], (0.2, 0, 1.0999), about(0, tilt, 0) @ LYING)
    found = only((Kind.CAPSULE, Kind.BOX), rod, Body(Kind.BOX, [1, 1, 1]))
    assert list(found.feature) == [1, 2]
    assert found.normal[:, 2] == pytest.approx(1.0)
    assert found.point[:, 0] == pytest.approx([-0.8, 1.0], abs=2e-5)


def test_a_capsule_along_an_edge_touches_at_both_ends() -> None:
    leaning = (0.3, 1 + 0.0999 * np.sqrt(0.5), 1 + 0.0999 * np.sqrt(0.5))
    found = only((Kind.CAPSULE, Kind.BOX), Body(Kind.CAPSULE, [0.1, 0.5], leaning, LYING), Body(Kind.BOX, [1, 1, 1]))
    assert found.depth == pytest.approx([1e-4, 1e-4])
    assert np.sort(found.point[:, 0]) == pytest.approx([-0.2, 0.8])
    assert found.normal == pytest.approx(np.tile([0, np.sqrt(0.5), np.sqrt(0.5)], (2, 1)))


def test_a_capsule_on_a_plane_touches_at_both_ends() -> None:
    rod = Body(Kind.CAPSULE, [0.1, 1.0], (0, 0, 0.0999), LYING)
    found = only((Kind.CAPSULE, Kind.PLANE), rod, Body(Kind.PLANE, []))
    assert found.depth == pytest.approx([1e-4, 1e-4])
    assert np.sort(found.point[:, 0]) == pytest.approx([-1, 1])


def test_a_capsule_along_a_cylinder_touches_at_both_ends_of_the_common_length() -> None:
    rod, drum = Body(Kind.CAPSULE, [0.1, 1.0], (0, 0.5999, 0.8), about(1e-7, 0, 0)), Body(Kind.CYLINDER, [0.5, 1.0])
    found = only((Kind.CAPSULE, Kind.CYLINDER), rod, drum)
    assert list(found.feature) == [1, 2]
    assert found.point[:, 2] == pytest.approx([-0.2, 1.0])
    assert found.normal[:, 1] == pytest.approx([1, 1])
    assert found.depth == pytest.approx(1e-4, abs=1e-6)


def test_a_capsule_on_the_end_of_a_cylinder_touches_at_both_rims() -> None:
    found = only(
        (Kind.CAPSULE, Kind.CYLINDER),
        Body(Kind.CAPSULE, [0.1, 1.0], (0.2, 0.3, 1.0999), LYING),
        Body(Kind.CYLINDER, [0.5, 1.0]),
    )
    assert found.point[:, 0] == pytest.approx([-0.4, 0.4])
    assert found.depth == pytest.approx([1e-4, 1e-4])


def test_a_rod_across_a_drum_touches_once() -> None:
    found = only(
        (Kind.CAPSULE, Kind.CYLINDER),
        Body(Kind.CAPSULE, [0.1, 1.0], (0.2, 0.5999, 0.3), LYING),
        Body(Kind.CYLINDER, [0.5, 1.0]),
    )
    assert found.point == pytest.approx(np.array([[0.0, 0.49995, 0.3]]), abs=1e-6)


def centred(kinds: tuple[Kind, Kind], size: Any) -> Found:
    return only(kinds, Body(kinds[0], [0.1, 0.2][: SIZES[kinds[0]]]), Body(kinds[1], size))


def test_coincident_centres_leave_the_shortest_way() -> None:
    assert centred((Kind.SPHERE, Kind.SPHERE), [0.3]).deepest == pytest.approx(0.4)
    assert centred((Kind.SPHERE, Kind.CAPSULE), [0.3, 1.0]).deepest == pytest.approx(0.4)
    assert centred((Kind.SPHERE, Kind.BOX), [1.0, 0.5, 2.0]).deepest == pytest.approx(0.6)
    assert centred((Kind.SPHERE, Kind.CYLINDER), [0.5, 2.0]).deepest == pytest.approx(0.6)
    assert centred((Kind.SPHERE, Kind.CYLINDER), [2.0, 0.5]).deepest == pytest.approx(0.6)
    assert centred((Kind.CAPSULE, Kind.CAPSULE), [0.3, 1.0]).deepest == pytest.approx(0.4)
    assert centred((Kind.CAPSULE, Kind.BOX), [1.0, 0.5, 2.0]).deepest == pytest.approx(0.6)
