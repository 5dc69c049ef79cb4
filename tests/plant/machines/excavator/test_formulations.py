"""The same 20 s of work by both formulations, ALI3-P in natural coordinates and SPOOK: drive, anchor, dig, swing, dump.

Levers are recorded from the operator once, so that nobody answers to small differences. The soil is loose and the
operator calm, so that no cylinder reaches its relief pressure: one that does gives way to the soil, and from then on
its angle follows from forces and not from the lever.
"""

from typing import Any

import numpy as np
import pytest
from excavator_rig import EYES, LOOK
from work_cases import G, Work

from drivers.operator.phases import Phases

SECONDS = 20.0
JOINTS = ("boom", "stick", "bucket", "swing", "blade", "outriggers", "steer")
WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
LOOSE = {"mu_dig": 5e4, "mu_cp": 4e4}
POSTURE = {"blade": -20.0, "outriggers": -25.0}


def go(see: str, to: float, gain: float, within: float = 9.0, **more: float) -> dict[str, Any]:
    return {"see": see, "to": to, "gain": gain, "within": within, **more}


def phase(name: str, go: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "hold": {"parking": 1.0}, "go": go, **more}


CYCLE: dict[str, Any] = {
    "sees": dict.fromkeys(EYES, "1"),
    "phases": [
        {"name": "settle", "hold": {"parking": 1.0}, "for_s": 0.8},
        {"name": "drive", "hold": {"drive": 0.5, "steer": 0.5}, "until": {"x": {"above": 0.7}}, "at_most_s": 4.0},
        {"name": "stop", "hold": {"brake": 0.3, "steer": 0.5}, "for_s": 1.8},
        phase(
            "anchor",
            {"outriggers": go("outriggers", -0.82, 5.0, 0.02), "blade": go("blade", -0.76, 5.0, 0.02)},
            at_most_s=4.0,
        ),
        phase(
            "reach",
            {
                "left.y": go("stick", -0.95, 6.0, 0.05),
                "right.x": go("bucket", -0.35, 5.0, 0.05),
                "right.y": go("boom", 0.30, -6.0, 0.05),
            },
            at_most_s=4.0,
        ),
        phase(
            "into the soil",
            {"right.y": go("boom", -0.3, -6.0, most=0.25)},
            until={"depth": {"above": 0.15}},
            at_most_s=3.0,
        ),
        phase(
            "dig",
            {
                "left.y": go("stick", -2.0, 6.0, most=0.4),
                "right.x": go("bucket", -1.45, 1.2, most=0.25),
                "right.y": go("depth", 0.15, 2.5, most=0.1),
            },
            until={"fill": {"above": 0.5}},
            at_most_s=4.0,
        ),
        phase(
            "curl",
            {"right.x": go("bucket", -1.9, 5.0, 0.1, most=0.5), "right.y": go("boom", 0.3, -6.0, most=0.2)},
            at_most_s=3.0,
        ),
        phase("lift", {"right.y": go("boom", 0.5, -6.0, 0.05), "right.x": go("bucket", -1.9, 5.0)}, at_most_s=3.0),
        phase("swing", {"left.x": go("swing", -0.8, -1.1, 0.1, most=0.6)}, at_most_s=4.0),
        phase("dump", {"right.x": go("bucket", -0.4, 5.0, 0.1, most=0.5)}),
    ],
}


class Run:
    """A replay: angles [steps, joints] and wheel loads [steps, wheels], and whether a cylinder gave way."""

    def __init__(self, levers: list[np.ndarray], stepper: str) -> None:
        self.rig = site(stepper)
        angles, loads, self.overload = [], [], 0
        for given in levers:
            self.rig.inputs[:] = given
            for _ in range(LOOK):
                self.rig.step()
                angles.append([self.rig[f"{name}.angle"] for name in JOINTS])
                loads.append([self.rig[f"wheel_{name}.load"] for name in WHEELS])
                self.overload += int(self.rig["flag.overload"])
        self.angles, self.loads = np.array(angles), np.array(loads)


def site(stepper: str) -> Work:
    return Work(stepper=stepper, terrain="waves", truck=True, pipe=True, soil=LOOSE, posture=POSTURE)


@pytest.fixture(scope="module")
def both() -> tuple[Run, Run]:
    rig, levers, visited, full = site("spook"), [], [], 0.0
    hands = Phases(CYCLE)

    def look() -> None:
        nonlocal full
        levers.append(rig.inputs.copy())
        visited.append(hands.now.name)
        full = max(full, rig["bucket.fill"])

    rig.work(hands, SECONDS, look)
    assert visited[-1] == "dump"
    assert full > 0.5  # it has dug
    assert rig["bucket.fill"] < 0.1  # and dumped
    return Run(levers, "spook"), Run(levers, "ali3p")


def test_no_cylinder_gives_way(both: tuple[Run, Run]) -> None:
    assert [run.overload for run in both] == [0, 0]


def test_joint_angles_agree(both: tuple[Run, Run]) -> None:
    spook, ali3p = both
    off = np.abs(spook.angles - ali3p.angles).max(axis=0)
    assert (off <= 0.01).all(), dict(zip(JOINTS, off.round(4), strict=True))


def test_wheel_loads_agree(both: tuple[Run, Run]) -> None:
    """At every step, to 2 % of the load of a wheel of the standing machine."""
    spook, ali3p = both
    off = np.abs(spook.loads - ali3p.loads).max(axis=0)
    assert (off <= 0.02 * spook.rig.mass * G / 4).all(), dict(zip(WHEELS, off.round(), strict=True))
