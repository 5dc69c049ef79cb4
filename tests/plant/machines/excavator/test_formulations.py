"""The same 20 s of work by both formulations, ALI3-P in natural coordinates and SPOOK: drive, anchor, reach, dig, curl.

Levers are recorded from the operator once, so that nobody answers to small differences.

Limits: angles are compared as long as the cylinders are guided, as in Luaces 6.1. One at its relief pressure gives way
to the soil, and from then on half a step of the same formulation moves the bucket as far as the other one does.
"""

import math

import numpy as np
import pytest
from excavator_rig import CYCLE, LOOK
from work_cases import G, Work

from drivers.phases import Phases

SECONDS = 20.0
JOINTS = ("boom", "stick", "bucket", "swing", "blade", "outriggers")
WHEELS = ("front_left", "front_right", "rear_left", "rear_right")


class Run:
    """A replay: angles [steps, joints], wheel loads [steps, wheels], the step at which a cylinder first gave way."""

    def __init__(self, levers: list[np.ndarray], stepper: str) -> None:
        self.rig = site(stepper)
        angles, loads, self.guided = [], [], len(levers) * LOOK
        for given in levers:
            self.rig.inputs[:] = given
            for _ in range(LOOK):
                self.rig.step()
                angles.append([self.rig[f"{name}.angle"] for name in JOINTS])
                loads.append([self.rig[f"wheel_{name}.load"] for name in WHEELS])
                if self.rig["flag.overload"] == 1.0:
                    self.guided = min(self.guided, len(angles) - 1)
        self.angles, self.loads = np.array(angles), np.array(loads)


def site(stepper: str) -> Work:
    return Work(stepper=stepper, terrain="waves", truck=True, pipe=True)


@pytest.fixture(scope="module")
def both() -> tuple[Run, Run]:
    rig, levers = site("spook"), []
    rig.work(Phases.from_file(str(CYCLE)), SECONDS, lambda: levers.append(rig.inputs.copy()))
    assert rig["bucket.fill"] > 0.8  # it has dug
    return Run(levers, "spook"), Run(levers, "ali3p")


def test_joint_angles_agree(both: tuple[Run, Run]) -> None:
    spook, ali3p = both
    until = min(spook.guided, ali3p.guided)
    assert until > 14_000  # into the soil
    off = np.abs(spook.angles[:until] - ali3p.angles[:until]).max(axis=0)
    assert (off <= 0.01).all(), dict(zip(JOINTS, off.round(4), strict=True))


def test_wheel_loads_agree(both: tuple[Run, Run]) -> None:
    """All the time, to 2 % of the static load of a wheel, averaged over one bounce of the machine on its tires: what
    they take when an outrigger lands rings at that period, and a delay of a millisecond is a kilonewton within it."""
    spook, ali3p = both
    rig = spook.rig
    bounce = round(2 * math.pi * math.sqrt(rig.mass / float(rig.content.tires.stiffness.sum())) / rig.dt)
    off = spook.loads - ali3p.loads
    mean = np.array([np.convolve(wheel, np.ones(bounce) / bounce, "valid") for wheel in off.T])
    most = np.abs(mean).max(axis=1)
    assert (most <= 0.02 * rig.mass * G / 4).all(), dict(zip(WHEELS, most.round(), strict=True))
