"""The energy stability margin against closed forms, and against turning the machine over an edge bit by bit."""

import itertools
import math

import numpy as np
import pytest

from plant.vehicle.stability import energy_margin, outline

RNG = np.random.default_rng(9)


def margin(points: object, centre: object) -> float:
    p = np.array(points, float).reshape(-1, 3)
    return float(energy_margin(p, len(p), np.zeros(len(p) + 1, np.int64), *(float(v) for v in centre)))  # type: ignore[attr-defined]


def corners(points: object) -> list[int]:
    p = np.array(points, float).reshape(-1, 3)
    order = np.zeros(len(p) + 1, np.int64)
    return [int(k) for k in order[: outline(p, len(p), order)]]


def flat(*xy: tuple[float, float]) -> list[tuple[float, float, float]]:
    return [(x, y, 0.0) for x, y in xy]


SQUARE = flat((1, 1), (-1, 1), (-1, -1), (1, -1))


def test_middle_of_a_square() -> None:
    """A centre h above the middle of a square of half width a rises by sqrt(a^2 + h^2) - h."""
    for h in (0.1, 1.0, 3.0):
        assert margin(SQUARE, (0, 0, h)) == pytest.approx(math.hypot(1, h) - h, rel=1e-12)


def test_the_nearest_edge_counts() -> None:
    assert margin(SQUARE, (0.7, 0.2, 1.0)) == pytest.approx(math.hypot(0.3, 1.0) - 1.0, rel=1e-12)


def test_beyond_an_edge_it_is_negative_and_grows_with_the_way() -> None:
    near, far = margin(SQUARE, (1.1, 0, 1.0)), margin(SQUARE, (1.5, 0, 1.0))
    assert near == pytest.approx(-(math.hypot(0.1, 1.0) - 1.0), rel=1e-12)
    assert far < near < 0


def test_above_an_edge_it_is_zero() -> None:
    assert margin(SQUARE, (1.0, 0.3, 2.0)) == pytest.approx(0.0, abs=1e-12)


def test_below_the_edges_it_hangs() -> None:
    """A centre below its supports must rise over its own depth as well."""
    assert margin(SQUARE, (0, 0, -0.5)) == pytest.approx(math.hypot(1, 0.5) + 0.5, rel=1e-12)


def brute(points: np.ndarray, centre: np.ndarray) -> float:
    """Turn the centre about every edge of the convex outline in small steps and take the highest place on its way.

    The outline is found by trying: two points are an edge if all others lie to the left, seen from above.
    """
    least = math.inf
    for a, b in itertools.permutations(points, 2):
        e = b - a
        if not all(e[0] * (p[1] - a[1]) - e[1] * (p[0] - a[0]) >= -1e-12 for p in points):
            continue
        e = e / np.linalg.norm(e)
        r = centre - a
        r = r - e * (e @ r)
        turns = np.linspace(0, math.pi, 100_001)
        inside = np.cross(e, r)[2] >= 0  # then it goes up and over with a turn about the edge's own direction
        heights = r[2] * np.cos(turns) + abs(np.cross(e, r)[2]) * np.sin(turns)
        rise = heights.max() - r[2]
        least = min(least, rise if inside else -rise)  # beyond the edge: what it would have to rise to come back
    return least


@pytest.mark.parametrize("case", range(12))
def test_uneven_ground_against_brute_force(case: int) -> None:
    rng = np.random.default_rng(case)
    points = np.column_stack([rng.uniform(-2, 2, (5, 2)), rng.uniform(-0.4, 0.4, 5)])
    centre = np.array([*rng.uniform(-0.6, 0.6, 2), rng.uniform(0.8, 2.5)])
    assert margin(points, centre) == pytest.approx(brute(points, centre), rel=1e-6, abs=1e-7)


def test_it_does_not_depend_on_the_order_or_the_heading() -> None:
    points = np.column_stack([RNG.uniform(-2, 2, (6, 2)), RNG.uniform(-0.2, 0.2, 6)])
    centre, first = np.array([0.1, -0.2, 1.4]), None
    for turn in (0.0, 0.3, 2.0):
        c, s = math.cos(turn), math.sin(turn)
        rot = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        for _ in range(3):
            found = margin(RNG.permutation(points) @ rot.T, rot @ centre)
            first = found if first is None else first
            assert found == pytest.approx(first, rel=1e-12)


def test_in_the_air_nothing_has_to_be_overcome() -> None:
    assert margin([], (0, 0, 1)) == 0.0


@pytest.mark.parametrize("centre", [(0, 0, 1.0), (0.3, 0, 1.0), (0.3, -0.4, 1.2), (0, 0.5, -0.7)], ids=str)
def test_on_a_point_it_falls_like_a_pole(centre: tuple[float, float, float]) -> None:
    """A pole of length l at an angle theta from upright would have to rise by l (1 - cos theta); 0 only upright."""
    length = math.hypot(*centre)
    theta = math.acos(centre[2] / length)
    foot = np.array([2.0, -1.0, 0.3])
    for count in (1, 3):
        found = margin([foot] * count, foot + centre)
        assert found == pytest.approx(-length * (1 - math.cos(theta)), abs=1e-12)


@pytest.mark.parametrize("across", [0.0, 0.2, -0.7])
@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_on_two_feet_it_falls_about_their_line(across: float, slope: float) -> None:
    """Feet at both ends of a line that rises by psi, a centre h above its middle and `across` beside it: it turns
    about the line, in a plane that leans by psi, so it rises by (|R| - h cos psi) cos psi to be above it."""
    c, s = math.cos(slope), math.sin(slope)
    feet = [(-c, 0, -s), (c, 0, s)]
    h = 1.3
    rise = (math.hypot(across, h * c) - h * c) * c
    for more in ([], [(0, 0, 0)], [(0.5 * c, 0, 0.5 * s)] * 2):  # all in a line: still a line
        assert margin(feet + more, (0, across, h)) == pytest.approx(-rise, abs=1e-12)


def test_beyond_the_end_of_its_line_it_falls_about_the_end() -> None:
    feet = flat((-1, 0), (1, 0))
    for x, y in ((1.4, 0.0), (1.4, 0.3), (-2.0, -0.5)):
        way = math.hypot(abs(x) - 1, y)
        assert margin(feet, (x, y, 1.0)) == pytest.approx(-(math.hypot(way, 1.0) - 1.0), rel=1e-12)


@pytest.mark.parametrize("y", [-0.3, 0.4])
def test_a_thin_polygon_comes_to_a_line_and_a_small_one_to_a_point(y: float) -> None:
    """No jump where a foot leaves the ground."""
    centre, line = (0.2, y, 1.1), flat((-1, 0), (1, 0))
    for thin in (1e-4, 1e-8, 1e-12):
        box = flat((-1, -thin), (1, -thin), (1, thin), (-1, thin))
        assert margin(box, centre) == pytest.approx(margin(line, centre), abs=2 * thin)
        short = flat((-thin, 0), (thin, 0))
        assert margin(short, (0, y, 1.1)) == pytest.approx(margin(flat((0, 0)), (0, y, 1.1)), abs=2 * thin)


def test_points_inside_and_on_edges_change_nothing() -> None:
    more = SQUARE + flat((0, 0), (0.3, -0.2), (1, 0), (0, -1))
    assert margin(more, (0.2, 0.1, 1.0)) == margin(SQUARE, (0.2, 0.1, 1.0))
    assert sorted(corners(more)) == [0, 1, 2, 3]


@pytest.mark.parametrize("apart", [0.0, 1e-13, 1e-9, 5e-7])
def test_places_that_coincide_count_once(apart: float) -> None:
    """Two contacts nearly at the same place, at every corner and on every side, also the one where the outline begins:
    the edge between them would point anywhere."""
    for dx, dy in itertools.product((-apart, 0.0, apart), repeat=2):
        for first in (SQUARE, SQUARE[::-1]):
            points = first + [(x + dx, y + dy, z) for x, y, z in first]
            assert margin(points, (0.2, -0.3, 1.0)) == pytest.approx(math.hypot(0.7, 1.0) - 1.0, abs=2e-6)
            assert len(corners(points)) == 4


@pytest.mark.parametrize("extra", [1, 2, 3, 4])
def test_the_outline_closes_at_a_place_that_coincides_with_its_first(extra: int) -> None:
    """A twin of the first corner that lies further out, though further to the right: the march must end there, not go
    round again and close with a diagonal."""
    rng = np.random.default_rng(extra)
    for _ in range(300):
        turn = np.exp(1j * rng.uniform(0, 2 * math.pi))
        ring = [turn * 1j**k for k in range(4)]
        ring += [ring[rng.integers(4)] + 4e-7 * np.exp(1j * rng.uniform(0, 2 * math.pi)) for _ in range(extra)]
        points = flat(*[(c.real, c.imag) for c in rng.permutation(ring)])
        assert margin(points, (0, 0, 1.0)) == pytest.approx(math.sqrt(1.5) - 1.0, abs=2e-6)
        assert len(corners(points)) == 4


def test_the_outline_goes_round_counter_clockwise() -> None:
    points = np.column_stack([RNG.uniform(-1, 1, (20, 2)), np.zeros(20)])
    order = corners(points)
    ring = points[order]
    area = 0.5 * sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True))
    assert area > 0
    for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        for p in points:
            assert (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) >= -1e-12
