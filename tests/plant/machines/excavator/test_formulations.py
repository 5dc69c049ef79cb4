"""The same 20 s of work by both formulations, ALI3-P in natural coordinates and SPOOK: drive, anchor, dig, curl, lift.

The bite is a flat one: a cylinder at its relief pressure gives way to the soil, and the longer it does, the more half a
step of the same formulation decides about where the bucket goes. Levers are recorded from the operator once, so that
nobody answers to small differences.
"""

import math
import tomllib

import numpy as np
import pytest
from excavator_rig import CYCLE, LOOK
from work_cases import G, Work

from drivers.phases import Phases

SECONDS = 20.0
JOINTS = ("boom", "stick", "bucket", "swing", "blade", "outriggers")
WHEELS = ("front_left", "front_right", "rear_left", "rear_right")


def operator() -> Phases:
    """The one of the cycle, who puts the bucket to the ground less steeply."""
    table = tomllib.loads(CYCLE.read_text())
    reach = next(phase for phase in table["phases"] if phase["name"] == table["loop_from"])
    reach["go"]["right.x"]["to"] = -0.55
    return Phases(table)


def site(stepper: str) -> Work:
    return Work(stepper=stepper, terrain="waves", truck=True, pipe=True)


def replay(levers: list[np.ndarray], stepper: str) -> tuple[np.ndarray, np.ndarray, Work]:
    """Angles [steps, joints] and wheel loads [steps, wheels]."""
    rig, angles, loads = site(stepper), [], []
    for given in levers:
        rig.inputs[:] = given
        for _ in range(LOOK):
            rig.step()
            angles.append([rig[f"{name}.angle"] for name in JOINTS])
            loads.append([rig[f"wheel_{name}.load"] for name in WHEELS])
    return np.array(angles), np.array(loads), rig


@pytest.fixture(scope="module")
def both() -> dict[str, tuple[np.ndarray, np.ndarray, Work]]:
    rig, levers = site("spook"), []
    rig.work(operator(), SECONDS, lambda: levers.append(rig.inputs.copy()))
    assert rig["bucket.fill"] > 0.8  # it has dug
    return {stepper: replay(levers, stepper) for stepper in ("spook", "ali3p")}


def test_joint_angles_agree(both: dict[str, tuple[np.ndarray, np.ndarray, Work]]) -> None:
    off = np.abs(both["spook"][0] - both["ali3p"][0]).max(axis=0)
    assert (off <= 0.01).all(), dict(zip(JOINTS, off.round(4), strict=True))


def test_wheel_loads_agree(both: dict[str, tuple[np.ndarray, np.ndarray, Work]]) -> None:
    """To 2 % of the static load of a wheel, averaged over one bounce of the machine on its tires: what they take when
    an outrigger lands rings at that period, and a millisecond of delay is a difference of kilonewtons within it."""
    rig = both["spook"][2]
    stiffness = float(rig.content.tires.stiffness.sum())
    bounce = round(2 * math.pi * math.sqrt(rig.mass / stiffness) / rig.dt)
    off = both["spook"][1] - both["ali3p"][1]
    mean = np.array([np.convolve(wheel, np.ones(bounce) / bounce, "valid") for wheel in off.T])
    most = np.abs(mean).max(axis=1)
    assert (most <= 0.02 * rig.mass * G / 4).all(), dict(zip(WHEELS, most.round(), strict=True))
