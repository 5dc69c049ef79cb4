"""A compiled world as a plant, through the C pointers the tick would call."""

import ctypes

import numpy as np
import pytest

from hilnode.core.registry import KindError
from plant import registry

STEP = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)


class Caller:
    """Calls a plant as the tick does."""

    def __init__(self, plant):
        self.plant = plant
        self.inputs = np.array([s.default for s in plant.inputs])
        self.outputs = np.zeros(len(plant.outputs))
        self.poses = np.zeros(7 * len(plant.bodies))
        self._params = np.zeros(1)
        self._places = [a.ctypes.data for a in (self._params, self.inputs, self.outputs, self.poses)]
        self.reset()

    def reset(self):
        address, owner = self.plant.reset
        assert STEP(address)(owner, 0, *self._places) == 0

    def run(self, steps):
        task = self.plant.tasks[0]
        call = STEP(task.address)
        for n in range(steps):
            assert call(task.self_address, n, *self._places) == 0

    def named(self):
        return dict(zip((s.name for s in self.plant.outputs), self.outputs.tolist(), strict=True))


@pytest.fixture(scope="module")
def crane():
    return Caller(registry.create("crane_arm", 1e-3))


def test_motors_turn_the_joints_they_drive(crane):
    crane.reset()
    crane.inputs[:] = [0.2, 0.1, -0.1]  # slew, lift, reach [rad/s]
    crane.run(2000)
    assert crane.named() == pytest.approx(
        {"crane.slew.angle": 0.4, "crane.lift.angle": 0.2, "crane.reach.angle": -0.2}, abs=0.015
    )


def test_limits_hold_against_the_motor(crane):
    crane.reset()
    crane.inputs[:] = [0.0, 1.0, 0.0]
    crane.run(3000)
    assert crane.named()["crane.lift.angle"] == pytest.approx(1.2, abs=2e-3)


def test_reset_gives_the_same_run_again_to_the_bit(crane):
    runs = []
    for _ in range(2):
        crane.reset()
        crane.inputs[:] = [0.3, -0.1, 0.2]
        crane.run(500)
        runs.append((crane.outputs.copy(), crane.poses.copy()))
    assert (runs[0][0] == runs[1][0]).all()
    assert (runs[0][1] == runs[1][1]).all()


def test_poses_are_unit_quaternions_and_the_load_hangs_below_the_tip(crane):
    crane.reset()
    crane.inputs[:] = 0.0
    crane.run(3000)
    poses = crane.poses.reshape(-1, 7)
    assert np.linalg.norm(poses[:, 3:], axis=1) == pytest.approx(np.ones(len(poses)), abs=1e-9)
    load = poses[crane.plant.bodies.index("crane.load")]
    assert load[:3] == pytest.approx([5.0, 0.0, 0.0], abs=1e-3)


def test_unknown_option_names_the_known_ones():
    with pytest.raises(KindError, match="load"):
        registry.create("crane_arm", 1e-3, {"lode": 3})
