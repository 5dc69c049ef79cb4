"""Discharge by the angle of the bucket (Luaces 4.8.1, eq. 4.102)."""

import math

import numpy as np
import pytest
from soil_cases import STILL, H, Plot, a_bucket, about_y, flat, view_site

from hilnode.core.jit import kernel
from plant.soil.flight import LEFT
from plant.soil.kind import SoilKind
from plant.soil.model import LANDINGS
from plant.soil.pour import held_at


@kernel
def _held(site, side, up, over_lip):
    return held_at(view_site(site).soil.tool, side, up, over_lip)


def _share(x: float) -> float:
    x = min(max(x, 0.0), 1.0)
    return 1 - 3 * x**2 + 2 * x**3


def test_luaces_4_102_what_leaves_is_the_difference_of_what_it_holds() -> None:
    plot = Plot([(flat(), (0, 0, 0))], SoilKind(flow_time=1e-3))
    full = 0.6 / plot.kind.bulking
    plot.load(full)
    n = 4000
    tilt = np.linspace(0, math.radians(150), n)
    rot = np.array([about_y(math.pi / 2 - a) for a in tilt])
    _, out = plot.run(np.tile([0, 0, 4.0], (n, 1)), rot)
    held = np.array([_share((a - math.radians(20)) / math.radians(120)) for a in tilt]) * full
    assert np.diff(out["bucket.volume"]) == pytest.approx(np.diff(held), abs=2e-7)
    assert out["bucket.volume"][-1] == 0.0
    assert (np.diff(out["bucket.volume"]) <= 0).all()


def test_the_surplus_leaves_in_its_time() -> None:
    plot = Plot([(flat(), (0, 0, 0))], SoilKind(flow_time=0.4))
    plot.load(0.4)
    _, out = plot.run(np.tile([0, 0, 4.0], (400, 1)), about_y(math.pi / 2 - math.radians(150)))
    assert out["bucket.volume"][-1] == pytest.approx(0.4 * math.exp(-1), rel=2e-3)


def test_capacity_is_smooth_and_monotone_over_lip_hinge_and_side() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    tilt = np.linspace(0, math.pi, 2000)
    for lean in np.linspace(0, 2 * math.pi, 25):
        held = [
            _held(plot.address, math.sin(a) * math.sin(lean), math.cos(a), math.sin(a) * math.cos(lean)) for a in tilt
        ]
        steps = np.diff(held)
        assert held[0] == 1
        assert held[-1] == 0
        assert steps.max() <= 1e-12
        assert steps.min() > -0.003
    over_lip = _held(plot.address, 0.0, math.cos(1.4), math.sin(1.4))
    over_hinge = _held(plot.address, 0.0, math.cos(1.4), -math.sin(1.4))
    assert over_lip == pytest.approx(_share((1.4 - math.radians(20)) / math.radians(120)))
    assert over_hinge == pytest.approx(_share((1.4 - math.radians(20)) / math.radians(70)))


def test_soil_leaves_at_the_lip_with_its_velocity() -> None:
    plot = Plot([(flat(), (0, 0, 0))], STILL)
    plot.load(0.4)
    vel = np.array([0.5, 0.2, 0.1, 0, 1.0, 0])
    rot = about_y(math.pi / 2 - math.radians(150))
    t = np.arange(40) * H
    plot.run(np.array([0, 0, 4.0]) + np.outer(t, vel[:3]), rot, vel)
    fly = plot.soil.parcel
    count = fly.ends[1]
    assert count >= 3
    for k in range(count):
        # Released when the bucket was at one of these places, and on the lip, which passes through the body's origin.
        assert np.abs(np.cross(vel[:3], fly.start[k] - [0, fly.start[k, 1], 4.0]))[1] < 1e-3
        assert abs(fly.start[k, 1]) <= 0.61
        arm = np.array([0, fly.start[k, 1], 0.0])
        assert fly.speed[k] == pytest.approx(vel[:3] + np.cross(vel[3:], arm), abs=1e-9)


def test_a_bucket_is_emptied_onto_the_ground() -> None:
    plot = Plot([(flat(), (0, 0, 0))], SoilKind())
    plot.load(0.4)
    rot = about_y(math.pi / 2 - math.radians(150))
    _, out = plot.run(np.tile([0, 0, 2.0], (8000, 1)), rot)
    assert out["bucket.volume"][-1] == 0.0
    assert out["soil.air"][-1] <= LEFT  # the rest that rounding has left
    assert out["soil.heap"][-1] == pytest.approx(0.4, abs=LEFT)
    assert plot.soil.state.counter[LANDINGS] > 50
    assert abs(plot.total() - plot.before) < 1e-12


def test_in_the_ground_nothing_falls() -> None:
    plot = Plot([(flat(), (0, 0, 0))], STILL, a_bucket())
    plot.load(0.45)
    _, out = plot.run(np.tile([0, 0, -0.2], (3000, 1)), np.eye(3))
    assert plot.soil.parcel.ends[1] == 0
    assert out["bucket.volume"][-1] == pytest.approx(out["bucket.capacity"][-1], rel=1e-3)
    assert out["soil.heap"][-1] == pytest.approx(0.45 - out["bucket.volume"][-1], abs=3e-4)
