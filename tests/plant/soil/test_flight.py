"""Parcels fly on parabolas and land where these meet the surface."""

import math

import numpy as np
import pytest
from soil_cases import STILL, Plot, flat

from plant.collision.shape.shapes import Field
from plant.soil.flight import LEFT
from plant.soil.kind import SoilKind

POINT = SoilKind(spread=0.0, rays=1, repose=1.3, wall=math.pi / 2)


def _centre(plot: Plot, p: int = 0) -> np.ndarray:
    """Centre of the loose soil on a patch."""
    x, y = plot.places(p)
    loose = plot.loose(p)
    return np.array([(x * loose).sum(), (y * loose).sum()]) / loose.sum()


@pytest.mark.parametrize("h", [0.001, 0.02])
def test_closed_form_parabola_on_a_plane(h: float) -> None:
    plot = Plot([(flat(), (0, 0, 0.5))], POINT)
    start, v = np.array([-1.0, 0.5, 3.0]), np.array([1.2, -0.7, 1.5])
    assert plot.launch(start, v, 0.01)
    g, drop = 9.81, start[2] - 0.5
    t = (v[2] + math.sqrt(v[2] ** 2 + 2 * g * drop)) / g
    plot.run(np.tile([0, 0, 800.0], (round(2 / h), 1)), np.eye(3), h=h)
    assert plot.loose().sum() > 0
    assert _centre(plot) == pytest.approx(start[:2] + v[:2] * t, abs=1e-6)


def test_closed_form_parabola_on_a_slope() -> None:
    slope = 0.4
    x = (np.arange(81) - 40) * 0.15
    plot = Plot([(Field(slope * x[:, None] * np.ones(81), 0.15, low=-4, high=6), (0, 0, 0))], POINT)
    start, v, g = np.array([-2.0, 0.0, 2.0]), np.array([1.5, 0.3, 1.0]), 9.81
    assert plot.launch(start, v, 0.01)
    b, c = v[2] - slope * v[0], start[2] - slope * start[0]
    t = (b + math.sqrt(b * b + 2 * g * c)) / g
    plot.wait(2.0)
    assert _centre(plot) == pytest.approx(start[:2] + v[:2] * t, abs=1e-6)


def test_the_higher_patch_catches_it() -> None:
    """The bed of a truck above the terrain."""
    fields = [(flat(), (0, 0, 0)), (flat(15, 0.2, low=-0.5, high=2), (1, 0, 1.5))]
    plot = Plot(fields, STILL, beds=[1])
    assert plot.launch((1, 0, 4), (0, 0, 0), 0.02)
    assert plot.launch((-3, 0, 4), (0, 0, 0), 0.03)
    out = plot.wait(2.0)
    area, bulking = plot.soil.land.area, plot.kind.bulking
    assert plot.loose(1).sum() * area[1] / bulking == pytest.approx(0.02, abs=1e-9)
    assert plot.loose(0).sum() * area[0] / bulking == pytest.approx(0.03, abs=1e-9)
    assert out["soil.heap"][-1] == pytest.approx(0.05, abs=1e-9)


def test_a_bed_that_moves_takes_its_soil_along() -> None:
    fields = [(flat(), (0, 0, 0)), (flat(15, 0.2, low=-0.5, high=2), (1, 0, 1.5))]
    plot = Plot(fields, STILL, beds=[1])
    plot.launch((1, 0, 4), (0, 0, 0), 0.02)
    plot.wait(1.5)
    plot.ground.at[1, 0] += 2.0
    plot.launch((3, 0, 4), (0, 0, 0), 0.02)
    plot.wait(1.5)
    assert plot.loose(1).sum() * plot.soil.land.area[1] / plot.kind.bulking == pytest.approx(0.04, abs=1e-9)


def test_beyond_all_ground_it_is_gone_but_not_forgotten() -> None:
    plot = Plot([(flat(21), (0, 0, 0))], STILL)
    plot.before += 0.02
    plot.launch((30, 0, 1), (0, 0, 0), 0.02)
    out = plot.wait(3.0)
    assert out["soil.gone"][-1] == pytest.approx(0.02)
    assert out["soil.air"][-1] == 0
    assert abs(plot.total() - plot.before) < 1e-14


def test_a_full_ring_refuses_and_drains_again() -> None:
    plot = Plot([(flat(), (0, 0, 0))], STILL, parcels=4)
    accepted = [plot.launch((0, 0, 2), (0, 0, 0), 0.001) for _ in range(5)]
    assert accepted == [True, True, True, False, False]
    plot.wait(1.5)
    assert plot.launch((0, 0, 2), (0, 0, 0), 0.001)


def test_what_a_full_truck_has_no_room_for_rolls_off_and_lands_below() -> None:
    fields = [(flat(), (0, 0, 0)), (flat(9, 0.2, low=-0.3, high=0.3), (1, 0, 1.5))]
    plot = Plot(fields, SoilKind(), beds=[1])
    for _ in range(40):
        plot.before += 0.05
        plot.launch((1, 0, 4), (0, 0, 0), 0.05)
        plot.wait(0.05)
    out = plot.wait(4.0)
    assert plot.heights(1).max() <= 1.8
    on, under = (plot.loose(p).sum() * plot.soil.land.area[p] / plot.kind.bulking for p in (1, 0))
    assert on > 0.3
    assert under > 0.5
    assert out["soil.air"][-1] <= LEFT
    assert out["soil.gone"][-1] == 0.0
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)
