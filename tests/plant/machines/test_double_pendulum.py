"""The double pendulum against scipy's DOP853 and an independent derivation, for order, energy, poses and failure."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, solve_ivp

from plant.abi import NOT_FINITE, OK
from plant.machines import double_pendulum
from plant.machines.double_pendulum import PARAMETERS, create

DEFAULTS = {p.name.rpartition(".")[2]: p.default for p in PARAMETERS}
UNEVEN = {"mass1": 1.3, "mass2": 0.7, "length1": 0.6, "length2": 0.4}


class Rig:
    """A pendulum without a node: its step and reset called through their pointers."""

    def __init__(self, dt: float, *, start: dict[str, float] | None = None, **parameters: float) -> None:
        self.plant = create(dt, **(start or {}))
        self.values = {**DEFAULTS, **parameters}
        self.params = np.array(list(self.values.values()))
        self.inputs = np.zeros(2)
        self.outputs = np.zeros(len(self.plant.outputs))
        self.poses = np.zeros((2, 7))
        self.n = 0

    def _call(self, function: Any, owner: int) -> int:
        def pointer(a: np.ndarray) -> Any:
            return a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))

        return int(function.ctypes(owner, self.n, *map(pointer, (self.params, self.inputs, self.outputs, self.poses))))

    def step(self, count: int = 1, torques: tuple[float, float] = (0.0, 0.0)) -> int:
        self.inputs[:] = torques
        status = OK
        for _ in range(count):
            status = self._call(double_pendulum.step, self.plant.tasks[0].self_address)
            self.n += 1
        return status

    def reset(self) -> int:
        self.n = 0
        return self._call(double_pendulum.reset, self.plant.reset[1])

    @property
    def state(self) -> np.ndarray:
        """Absolute angles and their rates, from the outputs."""
        a, elbow, u, elbow_rate = self.outputs[:4]
        return np.array([a, a + elbow, u, u + elbow_rate])

    def output(self, name: str) -> float:
        return float(self.outputs[[s.name for s in self.plant.outputs].index(f"pendulum.{name}")])


def slope(_t: float, q: np.ndarray, p: dict[str, float], torques: tuple[float, float]) -> np.ndarray:
    """Newton's law for the two middles and both turns, projected on the joint angles: M = sum J' m J, no Lagrangian."""
    angles, rates = q[:2], q[2:]
    m = [p["mass1"], p["mass2"]]
    length = [p["length1"], p["length2"]]
    across = np.array([[math.cos(x), math.sin(x)] for x in angles])  # d/d angle of (sin x, -cos x)
    along = np.array([[-math.sin(x), math.cos(x)] for x in angles])  # its derivative
    matrix, force = np.zeros((2, 2)), np.zeros(2)
    for rod in range(2):
        reach = [length[k] if k < rod else 0.5 * length[k] if k == rod else 0.0 for k in range(2)]
        jacobian = np.array([reach[k] * across[k] for k in range(2)]).T
        bias = sum(reach[k] * along[k] * rates[k] ** 2 for k in range(2))
        matrix += m[rod] * jacobian.T @ jacobian
        matrix[rod, rod] += m[rod] * length[rod] ** 2 / 12
        force += jacobian.T @ (m[rod] * (np.array([0.0, -p["gravity"]]) - bias))
    shoulder = torques[0] - p["damping"] * rates[0]
    elbow = torques[1] - p["damping"] * (rates[1] - rates[0])
    force += [shoulder - elbow, elbow]
    return np.concatenate([rates, np.linalg.solve(matrix, force)])


def reference(q: np.ndarray, seconds: float, p: dict[str, float], torques: tuple[float, float]) -> np.ndarray:
    solved = solve_ivp(slope, (0.0, seconds), q, "DOP853", rtol=1e-12, atol=1e-13, args=(p, torques))
    assert solved.success
    return solved.y[:, -1]


@pytest.mark.parametrize(("damping", "tolerance"), [(0.0, 1e-6), (0.15, 1e-9)])  # without friction it is chaotic
def test_against_dop853_with_torques_and_friction(damping, tolerance):
    rig = Rig(1e-3, damping=damping, **UNEVEN)
    q = np.array([0.8, 1.2, 0.0, 0.0])
    for torques in ((0.0, 0.0), (1.5, -0.4), (-2.0, 0.6), (0.0, 0.3), (0.7, 0.0)):
        assert rig.step(1000, torques) == OK
        q = reference(q, 1.0, rig.values, torques)
        assert np.abs(rig.state - q).max() < tolerance
    assert np.abs(q[2:]).max() > 0.1  # it still moves


def test_observed_order_is_four():
    errors = []
    exact = reference(np.array([0.8, 1.2, 0.0, 0.0]), 1.0, DEFAULTS, (1.0, -0.5))
    for steps in (200, 400, 800):
        rig = Rig(1.0 / steps)
        rig.step(steps, (1.0, -0.5))
        errors.append(np.abs(rig.state - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(orders - 4.0).max() < 0.1


def test_energy_is_conserved_as_far_as_the_rule_allows():
    drift = []
    for steps in (500, 1000):
        rig = Rig(1.0 / steps, **UNEVEN)
        rig.reset()
        start = rig.output("energy")
        worst = 0.0
        for _ in range(5 * steps):
            rig.step()
            worst = max(worst, abs(rig.output("energy") - start))
        drift.append(worst / start)
    assert drift[1] < 1e-8
    assert drift[0] / drift[1] > 12  # at least fourth order


def test_energy_is_that_of_two_rods():
    """From the poses: middles and turns between two steps, by differences."""
    rig = Rig(1e-5, start={"angle1": 0.4, "angle2": -0.7, "speed1": 1.5, "speed2": -2.0}, **UNEVEN)
    rig.step()
    before = rig.poses.copy()
    rig.step()
    middle = rig.output("energy")
    rig.step()
    velocity = (rig.poses[:, :3] - before[:, :3]) / 2e-5
    turns = [2 * np.arctan2(-p[:, 5], p[:, 3]) for p in (before, rig.poses)]
    rate = (turns[1] - turns[0]) / 2e-5
    m, length = np.array([1.3, 0.7]), np.array([0.6, 0.4])
    kinetic = 0.5 * m * (velocity**2).sum(1) + 0.5 * m * length**2 / 12 * rate**2
    height = 0.5 * (before[:, 2] + rig.poses[:, 2]) - [-0.3, -0.6 - 0.2]  # above hanging at rest
    assert middle == pytest.approx((kinetic + m * 9.80665 * height).sum(), rel=1e-7)


def test_work_of_torques_and_friction_is_the_change_of_energy():
    rig = Rig(1e-4, damping=0.3)
    rig.reset()
    power, energy = [], []
    torques = (1.5, -0.5)
    for _ in range(10_000):
        u, elbow = rig.output("shoulder.speed"), rig.output("elbow.speed")
        power.append(torques[0] * u + torques[1] * elbow - 0.3 * (u**2 + elbow**2))
        energy.append(rig.output("energy"))
        rig.step(1, torques)
    work = cumulative_trapezoid(power, dx=1e-4, initial=0.0)
    assert np.ptp(work) > 1.0
    assert np.abs(np.array(energy) - energy[0] - work).max() < 1e-6


def test_hanging_at_rest_stays():
    rig = Rig(1e-3, start={"angle1": 0.0, "angle2": 0.0})
    assert rig.step(1000) == OK
    assert (rig.state == 0.0).all()
    assert rig.output("energy") == 0.0


def test_reset_restores_every_bit():
    rig = Rig(1e-3, start={"angle1": 0.3, "angle2": -2.0, "speed1": 1.0, "speed2": -0.1})
    assert rig.reset() == OK
    assert rig.state.tolist() == pytest.approx([0.3, -2.0, 1.0, -0.1], abs=1e-15)
    start = rig.outputs.tobytes() + rig.poses.tobytes()
    rig.step(500, (1.0, 2.0))
    first = rig.outputs.tobytes() + rig.poses.tobytes()
    assert first != start
    assert rig.reset() == OK
    assert rig.outputs.tobytes() + rig.poses.tobytes() == start
    rig.step(500, (1.0, 2.0))
    assert rig.outputs.tobytes() + rig.poses.tobytes() == first


def turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """`v` turned by the quaternion w x y z."""
    w, u = q[0], q[1:]
    return v + 2 * np.cross(u, np.cross(u, v) + w * v)


def test_poses_follow_the_angles():
    rig = Rig(1e-3, start={"speed1": 4.0, "speed2": -3.0}, **UNEVEN)
    for _ in range(20):
        rig.step(50)
        end = np.zeros(3)
        for pose, angle, length in zip(rig.poses, rig.state[:2], (0.6, 0.4), strict=True):
            along = np.array([math.sin(angle), 0.0, -math.cos(angle)])
            assert np.allclose(pose[:3], end + 0.5 * length * along, atol=1e-12)
            assert np.allclose(turned(pose[3:], np.array([0.0, 0.0, -1.0])), along, atol=1e-12)
            assert np.linalg.norm(pose[3:]) == pytest.approx(1.0, abs=1e-14)
            end = end + length * along
        assert np.allclose([rig.output("tip.x"), 0.0, rig.output("tip.z")], end, atol=1e-12)


@pytest.mark.parametrize("torques", [(math.nan, 0.0), (0.0, math.inf)])
def test_state_that_is_no_number_is_reported_and_not_shown(torques):
    rig = Rig(1e-3)
    rig.step(10)
    shown = rig.outputs.tobytes() + rig.poses.tobytes()
    assert rig.step(1, torques) == NOT_FINITE
    assert rig.outputs.tobytes() + rig.poses.tobytes() == shown
    assert rig.step() == NOT_FINITE  # it does not mend itself
    assert rig.reset() == OK
    assert rig.step() == OK
    assert np.isfinite(rig.outputs).all()


def test_two_pendulums_do_not_share_their_state():
    one, other = Rig(1e-3), Rig(1e-3)
    other.reset()
    before = other.outputs.copy()
    one.step(100, (5.0, 0.0))
    other.reset()
    assert (other.outputs == before).all()
