"""The digging force is Luaces eq. 3.23, slice by slice."""

import math

import numpy as np
import pytest
from soil_cases import H, Plot, a_bucket, about_y, flat

from plant.collision.shape.shapes import Field
from plant.soil.kind import SoilKind

KIND = SoilKind(mu_dig=2e5, sigma_1=0.8, sigma_2=1.7, power_m=0.6, power_n=1.3, mu_cp=4e5, density=1e3)


def _expected(plot: Plot, pos: np.ndarray, rot: np.ndarray, vel: np.ndarray, top: np.ndarray, load: float):
    """Eq. 3.23 by numpy: force and torque about `pos` over ground whose plane is z = top . (1, x, y)."""
    n, kind = plot.soil.tool.slices, plot.kind
    total = np.zeros(6)
    edge = rot @ np.array([-1.0, 0.0, 0.0])  # the floor of the bucket is level and points to -x
    normal = np.array([-top[1], -top[2], 1.0]) / math.hypot(top[1], top[2], 1.0)
    for i in range(n):
        arm = rot @ np.array([0.0, 0.6 - 1.2 * (i + 0.5) / n, 0.0])
        at = pos + arm
        depth = (np.array([0, 0, top[0]]) - at) @ normal
        if depth <= 0:
            continue
        v = vel[:3] + np.cross(vel[3:], arm)
        along = (v @ edge) * edge
        force = -kind.mu_dig * (kind.sigma_1 + kind.sigma_2 * load**kind.power_m) * depth**kind.power_n * along
        force -= kind.mu_cp * depth**kind.power_n * (v - along)
        total[:3] += force / n
        total[3:] += np.cross(arm, force / n)
    return total


def test_luaces_3_23_at_random_states() -> None:
    rng = np.random.default_rng(7)
    slope = (0.3, 0.2, -0.1)
    i = (np.arange(81) - 40) * 0.15
    heights = slope[0] + slope[1] * i[:, None] + slope[2] * i[None, :]
    hits = 0
    plot = Plot([(Field(heights, 0.15, low=-4, high=6), (0, 0, 0))], KIND, a_bucket(weigh=False))
    for _ in range(60):
        plot.reset()
        load = rng.uniform(0, 0.3)
        plot.load(load)
        pos = np.array([*rng.uniform(-3, 3, 2), 0.0])
        pos[2] = np.dot(slope, (1, pos[0], pos[1])) - rng.uniform(-0.1, 0.5)
        roll = rng.uniform(-0.3, 0.3)
        c, s = math.cos(roll), math.sin(roll)
        rot = about_y(rng.uniform(-0.4, 0.6)) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        vel = rng.normal(0, 0.5, 6)
        wrench, _ = plot.run(pos, rot, vel)
        expected = _expected(plot, pos, rot, vel, np.array(slope), load)
        hits += bool(np.abs(expected).max() > 0)
        assert wrench[0] == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert hits > 30


def test_a_lopsided_cut_turns_the_bucket() -> None:
    i = (np.arange(81) - 40) * 0.15
    heights = np.where(i[None, :] > 0.0, 0.2, -0.5) * np.ones((81, 1))
    plot = Plot([(Field(heights, 0.15, low=-4, high=6), (0, 0, 0))], KIND, a_bucket(weigh=False))
    wrench, _ = plot.run((0, 0, 0), np.eye(3), (-0.5, 0, 0, 0, 0, 0))
    assert wrench[0, 0] > 0  # against the motion, on the left side (y > 0) alone
    assert wrench[0, 5] < -0.2 * wrench[0, 0]


def test_no_force_above_ground_nor_at_rest() -> None:
    plot = Plot([(flat(), (0, 0, 0))], KIND, a_bucket(weigh=False))
    assert not plot.run((0, 0, 0.01), np.eye(3), (-1, 0, 0, 0, 0, 0))[0].any()
    assert not plot.run((0, 0, -0.2), np.eye(3))[0].any()


def test_work_of_digging_is_the_integral_of_force_and_velocity() -> None:
    plot = Plot([(flat(), (0, 0, 0))], KIND, a_bucket(weigh=False))
    t = np.arange(1500) * H
    pos = np.column_stack([3 - 0.6 * t, 0 * t, -0.15 - 0.15 * np.sin(2 * t)])
    vel = np.column_stack([-0.6 + 0 * t, 0 * t, -0.3 * np.cos(2 * t), *(0 * t for _ in range(3))])
    wrench, out = plot.run(pos, np.eye(3), vel)
    work = -np.sum(wrench[:, :3] * vel[:, :3]) * H
    assert work > 1000
    assert out["dig.work"][-1] == pytest.approx(work, rel=1e-2)
    force = np.column_stack([out[f"dig.force_{a}"] for a in "xyz"])
    assert force == pytest.approx(wrench[:, :3])


def test_the_force_stops_no_more_than_the_mass_of_the_lip() -> None:
    stiff = SoilKind(mu_dig=1e9, mu_cp=1e9)
    plot = Plot([(flat(), (0, 0, 0))], stiff, a_bucket(weigh=False, lip_mass=300.0))
    wrench, _ = plot.run((0, 0, -0.4), np.eye(3), (-0.5, 0, 0.2, 0, 0, 0))
    assert wrench[0, :3] * H / 300.0 == pytest.approx([0.5, 0, -0.2])


def test_luaces_3_24_weight_of_the_load_at_its_centre() -> None:
    plot = Plot([(flat(), (0, 0, 0))], SoilKind(density=1500, gravity=9.8), a_bucket())
    plot.load(0.2)
    rot = about_y(math.pi / 2)
    wrench, out = plot.run((0, 0, 5), rot)
    assert out["bucket.mass"][0] == pytest.approx(300)
    centre = rot @ [out[f"bucket.load_{a}"][0] for a in "xyz"]
    expected = np.array([0, 0, -300 * 9.8])
    assert wrench[0] == pytest.approx([*expected, *np.cross(centre, expected)])
