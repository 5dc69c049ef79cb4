"""Steering geometry: the axes of all wheels meet in one point (Vortex 4.2.7)."""

import math

import numpy as np
import pytest

from plant.vehicle.steering import ackermann, crab, pivot


def angles(steer, most, l, w):  # noqa: E741
    out = np.zeros(len(l))
    ackermann(steer, most, np.array(l, float), np.array(w, float), out)
    return out


def meet(l, w, delta):  # noqa: E741
    """Where the wheels' axes meet, (forwards, left), by least squares, and how far the worst misses."""
    # the axis of a wheel at (l, -w) runs along (-sin, cos); its normal is the heading (cos, sin)
    heading = np.column_stack([np.cos(delta), np.sin(delta)])
    at = np.column_stack([l, -np.array(w)])
    offset = (heading * at).sum(axis=1)
    centre, *_ = np.linalg.lstsq(heading, offset, rcond=None)
    return centre, np.abs(heading @ centre - offset).max()


FLEETS = {
    "one steered axle": ([2.8, 2.8, 0, 0], [-1, 1, -1, 1]),
    "both axles": ([1.4, 1.4, -1.4, -1.4], [-1, 1, -1, 1]),
    "rear axle": ([0, 0, -2.5, -2.5], [-1, 1, -1, 1]),
    "five axles": ([6, 6, 4.5, 4.5, 1.5, 1.5, 0, 0, -1.6, -1.6], [-1.2, 1.2] * 5),
}


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("steer", [-1.0, -0.3, 0.05, 0.6, 1.0])
def test_all_axes_meet_in_one_point(fleet: str, steer: float) -> None:
    l, w = FLEETS[fleet]  # noqa: E741
    delta = angles(steer, 0.6, l, w)
    (ahead, left), miss = meet(l, w, delta)
    assert miss < 1e-9
    assert ahead == pytest.approx(0, abs=1e-6)
    assert left == pytest.approx(max(map(abs, l)) / math.tan(0.6 * steer))  # W of eq. 49; left of it for s > 0


def test_as_printed_for_one_steered_axle() -> None:
    """delta = atan(l / (W + w)), W = l / tan(s a_max)."""
    width = 2.8 / math.tan(0.5 * 0.7)
    wanted = [math.atan(2.8 / (width - 1)), math.atan(2.8 / (width + 1)), 0, 0]
    assert angles(0.5, 0.7, *FLEETS["one steered axle"]) == pytest.approx(wanted)


def test_left_is_positive_and_the_inner_wheel_turns_more() -> None:
    left, right, *_ = angles(1.0, 0.6, *FLEETS["one steered axle"])
    assert left > right > 0
    mirrored = angles(-1.0, 0.6, *FLEETS["one steered axle"])
    assert mirrored[:2] == pytest.approx((-right, -left))


def test_straight_ahead_and_beyond_full_lock() -> None:
    assert angles(0.0, 0.6, *FLEETS["five axles"]) == pytest.approx(np.zeros(10), abs=0)
    assert (angles(3.0, 0.6, *FLEETS["both axles"]) == angles(1.0, 0.6, *FLEETS["both axles"])).all()


def test_a_point_of_turning_between_the_wheels() -> None:
    """So sharp that the inner wheels stand on the other side of it: still one point."""
    l, w = [1.0, 1.0, 0, 0], [-1.5, 1.5, -1.5, 1.5]  # noqa: E741
    delta = angles(1.0, 1.2, l, w)
    assert meet(l, w, delta)[1] < 1e-9
    assert np.isfinite(angles(1.0, math.pi / 4, [1.0, 0.0], [-1.0, -1.0])).all()


def test_pivot_turns_about_the_origin() -> None:
    l, w = np.array([1.4, 1.4, -1.0, -1.0, 0.3]), np.array([-1.0, 1.0, -1.0, 1.0, 0.0])  # noqa: E741
    out = np.zeros(5)
    pivot(l, w, out)
    (ahead, left), miss = meet(l, w, out)
    assert (ahead, left) == pytest.approx((0, 0), abs=1e-12)
    assert miss < 1e-12
    assert out[1] == pytest.approx(math.atan(1.4 / 1.0))
    assert out[0] == pytest.approx(math.atan(1.4 / -1.0))
    assert abs(out[4]) == pytest.approx(math.pi / 2)
    # turning left, what a wheel rolls is perpendicular to its way from the origin
    for k in range(5):
        heading = np.array([math.cos(out[k]), math.sin(out[k])])
        assert heading @ [l[k], -w[k]] == pytest.approx(0, abs=1e-12)


def test_crab_is_the_same_for_all() -> None:
    out = np.zeros(6)
    crab(-0.5, 0.4, out)
    assert (out == -0.2).all()
    crab(-7.0, 0.4, out)
    assert (out == -0.4).all()
