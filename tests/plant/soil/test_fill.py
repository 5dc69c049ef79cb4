"""Filling (Luaces eq. 3.25 to 3.28): the flow through the mouth, its limits, and the berm of what finds no room."""

import math

import numpy as np
import pytest
from soil_cases import STILL, H, Plot, a_bucket, about_y, flat

from plant.soil.model import BUCKET, FULL_EVENTS


@pytest.mark.parametrize("turn", [0.0, 0.5, -0.4])
def test_luaces_3_28_fill_of_a_straight_drag(turn: float) -> None:
    """The integral of v d_fill w is speed x depth x width x time whatever the angle: d_fill = d / sin(alpha), and the
    part of the speed through the mouth is v sin(alpha)."""
    plot = Plot([(flat(161, 0.075), (0, 0, 0))], STILL, a_bucket(struck=2.0, heaped=2.0))
    depth, speed, time = 0.15, 0.5, 3.0
    rot = about_y(turn)
    _, out = plot.drag((3, 0, -depth), (-speed, 0, 0), time, rot)
    flow = depth * speed * 1.2
    half = len(out["bucket.volume"]) // 2
    rate = (out["bucket.volume"][-1] - out["bucket.volume"][half]) / ((half - 0) * H)
    assert rate == pytest.approx(flow, rel=0.02)
    rows = 3 * 0.075 * depth * 1.2
    assert out["bucket.volume"][-1] == pytest.approx(flow * time, abs=rows)


def test_luaces_3_25_to_3_27_of_each_slice() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    alpha = 1.1  # of the mouth against the ground
    rot = about_y(math.pi / 2 - alpha)
    vel = np.array([-0.4, 0.1, 0.05, 0.1, 0.3, -0.2])
    plot.run((0, 0, -0.2), rot, vel)
    s, hinge = plot.soil.state, rot @ np.array([0, 0, 0.8])
    outwards = rot @ np.array([-1.0, 0, 0])
    for i in range(8):
        arm = rot @ np.array([0, 0.6 - 0.15 * (i + 0.5), 0])
        tooth = vel[:3] + np.cross(vel[3:], arm)
        top = vel[:3] + np.cross(vel[3:], arm + hinge)
        d_fill = 0.2 / math.sin(alpha)
        assert s.fill[i] == pytest.approx(d_fill)
        assert s.inflow[i] == pytest.approx((tooth + d_fill / 1.6 * (top - tooth)) @ outwards)


def test_a_full_bucket_pushes_a_berm() -> None:
    plot = Plot([(flat(121), (0, 0, 0))], STILL, a_bucket(struck=0.1, heaped=0.1))
    _, out = plot.drag((6, 0, -0.2), (-0.5, 0, 0), 6.0)
    bulking = plot.kind.bulking
    # With the mouth upright, and a part of it closed by the ground, the bucket holds less than its heaped capacity.
    assert out["bucket.volume"][-1] <= out["bucket.capacity"][-1] + 1e-9
    assert out["bucket.capacity"][-1] < 0.1 / bulking
    assert out["soil.heap"][-1] > 0.2
    at, y = plot.places()
    before = (np.abs(y) < 0.6) & (at < 2.9) & (at > 2.2)
    assert plot.heights()[before].max() > 0.1
    assert abs(plot.total() - plot.before) < 1e-12


def test_full_is_counted_once() -> None:
    plot = Plot([(flat(121), (0, 0, 0))], STILL, a_bucket(struck=0.2, heaped=0.2))
    t = np.arange(6001) * H
    turn = np.minimum(t / 4, 1) * math.pi / 2
    rot = np.array([about_y(a) for a in turn])
    plot.run(np.column_stack([6 - 0.5 * t, 0 * t, -0.3 + 0 * t]), rot, (-0.5, 0, 0, 0, math.pi / 8, 0))
    assert plot.soil.state.counter[FULL_EVENTS] == 1
    assert plot.held(BUCKET) == pytest.approx(0.2 / plot.kind.bulking, rel=0.01)


def test_a_bucket_that_backs_out_leaves_behind_what_is_not_in_it_yet() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    plot.drag((2, 0, -0.2), (-0.5, 0, 0), 1.0)
    inside = plot.held(BUCKET)
    plot.drag((1.5, 0, -0.2), (0.5, 0, 0), 0.5)
    assert plot.held(BUCKET) == inside
    assert plot.soil.state.out[13] > 0.01  # soil.heap
    assert abs(plot.total() - plot.before) < 1e-12


def test_the_centre_of_the_load_moves_smoothly_into_the_middle() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    centres = []
    for _ in range(50):
        plot.load(0.01)
        out = plot.run((0, 0, 9), about_y(math.pi / 2))[1]
        centres.append([out[f"bucket.load_{a}"][0] for a in "xyz"])
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert steps.max() < 0.02
    assert centres[-1] == pytest.approx(plot.soil.tool.full_centre.tolist(), abs=1e-12)
