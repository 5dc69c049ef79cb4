"""The manoeuvres of Luaces 6.3 and figures 6.1 to 6.3: they end for this machine as they would for a real one."""

import math

import numpy as np
import pytest
from work_cases import G, Work

from plant.machines.excavator.parameters import Parameters
from plant.vehicle.tires.contact import ROUND
from plant.vehicle.tires.magic_formula import MagicFormula
from plant.vehicle.tires.model import Tire

P = Parameters()
REACHED_OUT = {"boom": 31.5, "stick": -54.4, "bucket": -31.5}  # [deg] the teeth a metre above the ground


# -- digging ----------------------------------------------------------------------------------------------------------


def dig(anchored: bool) -> tuple[Work, float, float]:
    """The same movements of the levers with and without stabilisers; how far it was dragged, and the largest force."""
    rig = Work(posture=REACHED_OUT)
    rig.lead(1.0, {})
    rig.lead(9.0, {"blade": -1.0, "outriggers": -1.0} if anchored else {})
    rig.lead(1.0, {})
    began, force, moved = rig.place("undercarriage"), 0.0, 0.0
    for seconds, levers in ((1.2, {"right.y": 0.5}), (3.0, {"left.y": -1.0, "right.x": -0.3, "right.y": 0.15})):
        for _ in range(round(seconds / 0.01)):
            rig.lead(0.01, levers)
            force = max(force, rig["dig.force"])
            moved = max(moved, float(np.linalg.norm((rig.place("undercarriage") - began)[:2])))
    assert rig.is_finite
    return rig, moved, force


def test_digging_without_stabilisers_drags_the_machine() -> None:
    rig, moved, force = dig(anchored=False)
    assert force > 5e4
    assert moved > 0.3
    assert rig["x"] > 0.2  # towards the bucket


def test_digging_with_stabilisers_does_not() -> None:
    rig, moved, force = dig(anchored=True)
    assert rig.wheels.max() < 1e3  # it stands on blade and outriggers alone
    assert force > 5e4
    assert moved < 0.1
    assert rig["bucket.fill"] > 0.8


# -- standing ---------------------------------------------------------------------------------------------------------

PRESSED = 0.2  # of its weight, on the bucket


@pytest.mark.parametrize("down", ["blade", "outriggers", "bucket", "bucket blade", "bucket outriggers", "all"])
def test_it_can_stand_on_any_combination(down: str) -> None:
    """It comes to rest, its weight is carried in full, and what it stands on carries part of it."""
    parts = ["bucket", "blade", "outriggers"] if down == "all" else down.split()
    rig = Work(posture={"boom": 25.0, "stick": -95.0, "bucket": -60.0})
    rig.lead(1.0, {})
    before, weight = rig.wheels, rig.mass * G
    rig.lead(9.0, {part: -1.0 for part in parts if part != "bucket"})
    if "bucket" in parts:
        rig.hold(**{"right.y": 0.2, "blade": 0.0, "outriggers": 0.0})
        assert rig.run_until(lambda: rig.contacts().get("bucket", 0.0) > PRESSED * weight, 10.0)
    rig.lead(4.0, {})
    began, carried = rig.centre, []
    for _ in range(500):
        rig.step()
        carried.append(rig.wheels.sum() + sum(rig.contacts().values()))
    pressed, front, rear = rig.contacts(), rig.wheels[:2].sum(), rig.wheels[2:].sum()
    assert rig.is_finite
    assert rig.speed < 2e-3
    assert float(np.linalg.norm(rig.centre - began)) < 1e-3
    assert np.mean(carried) == pytest.approx(weight, rel=0.01)
    if "blade" in parts:
        assert pressed["blade"] > 0.05 * weight
        assert front < 0.1 * before[:2].sum()
    if "outriggers" in parts:
        assert pressed["outrigger_left"] > 0.05 * weight
        assert pressed["outrigger_right"] > 0.05 * weight
        assert rear < 0.1 * before[2:].sum()
    if "bucket" in parts:
        assert pressed["bucket"] > 0.5 * PRESSED * weight


# -- slopes -----------------------------------------------------------------------------------------------------------

WET = 0.4  # grip


def parked(slope: float, heading: float) -> tuple[Work, float]:
    """On a slope, with brakes that lock: at rest on dry ground first, then it rains. How far it moves in three seconds
    of that."""
    rig = Work(
        terrain="slope",
        slope=math.degrees(slope),
        heading=heading,
        parameters={"tire.grip": 1.2, "brake.torque": "100 kN m", "tire.damping": "140 kN s/m"},
        posture={"boom": 40.0, "stick": -120.0, "bucket": -90.0},
    )
    rig.lead(4.0, {})
    assert rig.speed < 0.01
    began = rig.place("undercarriage")
    rig.content.tires.grip[:] = WET
    rig.lead(3.0, {})
    assert rig.is_finite
    return rig, float(np.linalg.norm(rig.place("undercarriage") - began))


@pytest.mark.parametrize(("heading", "way"), [(0.0, "x"), (90.0, "y")])
def test_it_slides_where_the_slope_is_steeper_than_its_grip(heading: float, way: str) -> None:
    """Grip from the loads of the wheels: friction falls with the load, so uneven loads hold less. Up the slope all
    wheels hold together, across it each axle must hold its own share."""
    law, nominal = MagicFormula(), Tire().nominal_load
    peak, less = (law.pdx1, law.pdx2) if way == "x" else (law.pdy1, law.pdy2)
    rig, moved = parked(math.atan(0.8 * peak * WET), heading)
    assert moved < 0.01
    loads = rig.wheels
    held = WET * (peak + less * (loads / nominal - 1)) * loads
    friction = held.sum() / loads.sum()
    if way == "y":
        friction = min(held[:2].sum() / loads[:2].sum(), held[2:].sum() / loads[2:].sum())
    for share, slides in ((0.95, False), (1.06, True)):
        _, moved = parked(math.atan(share * float(friction)), heading)
        assert moved > 0.2 if slides else moved < 0.02, f"{moved:.3f} m at {share} of its grip"


def critical_slope(rig: Work) -> float:
    """Sideways slope at which it tips to its left as it stands, from its masses, its track and its tires [rad].

    On the point of tipping the lower tires carry all, so the machine leans by what they sink, and the contact moves
    towards the edge of their tread; it tips when the centre of mass is plumb above that.
    """
    ring = rig.place("undercarriage")
    off = rig.centre - ring
    left, up = rig.axis("undercarriage", (0, 1, 0)), rig.axis("undercarriage", (0, 0, 1))
    y, z = float(off @ left) - P["track"] / 2, float(off @ up) - P["wheel.radius"]  # from the middle of a wheel
    r, w, slope = P["wheel.radius"], P["wheel.width"], 0.3
    for _ in range(50):
        sink = rig.mass * G * math.cos(slope) / (2 * P["tire.stiffness"])
        lean = math.asin(sink / P["track"])
        c, s = math.cos(lean), math.sin(lean)
        root = math.sqrt(s * s + ROUND * ROUND)
        across = y * c + z * s - (-r * s + 0.5 * w * s / root * c)
        above = -y * s + z * c + r * c + 0.5 * w * (root - ROUND) - sink
        slope = math.atan(-across / above)
    return slope


ARM = {"boom": 58.0, "stick": -75.0, "bucket": -60.0}  # [deg] raised, so that it does not prop the machine as it falls


def swing_downhill(slope: float) -> tuple[Work, list[tuple[float, float]]]:
    """Along the slope with the arm uphill, which then swings slowly to the left, downhill; tilt and flag over time."""
    rig = Work(
        terrain="slope",
        slope=math.degrees(slope),
        heading=90.0,
        parameters={"tire.grip": 1.2, "tire.damping": "140 kN s/m"},  # it comes to rest where it is put
        posture={**ARM, "swing": -90.0},
    )
    rig.lead(3.0, {})
    seen = []

    def look() -> bool:
        seen.append((rig.tilt, rig["flag.tipping"]))
        return rig.tilt > math.radians(60)

    rig.hold(**{"left.x": -0.2})
    rig.run_until(lambda: look() or rig["swing.angle"] > math.pi / 2, 30.0)
    rig.lead(0.0, {})
    rig.run_until(look, 8.0)
    return rig, seen


def test_roll_over_on_a_side_slope() -> None:
    """Luaces figure 6.1. Where the slope is steeper than the static balance allows, it tips, and the warning comes
    first; where it is less steep it does not."""
    rig = Work(posture={**ARM, "swing": 90.0})
    rig.lead(2.0, {})
    critical = critical_slope(rig)
    assert math.radians(10) < critical < math.radians(35)

    stays, seen = swing_downhill(critical - math.radians(1.5))
    assert stays.is_finite
    assert stays["swing.angle"] == pytest.approx(math.pi / 2, abs=0.05)
    assert max(tilt for tilt, _ in seen) < critical + math.radians(5)

    tips, seen = swing_downhill(critical + math.radians(1.5))
    assert tips.is_finite
    assert tips.tilt > math.radians(60)
    warned = next(tilt for tilt, flag in seen if flag == 1.0)
    assert warned < critical + math.radians(8)
    tips.lead(5.0, {})
    assert tips.is_finite
    assert tips.tilt > math.radians(60)
    assert tips["flag.tipping"] == 1.0
    assert tips["collisions"] >= 1


# -- descending on the arm --------------------------------------------------------------------------------------------

STEEP = math.radians(15)  # too steep for the hydrostat, which holds a third of the machine's pull: 36 kN of 51 kN


def nose_down() -> Work:
    """At rest with its nose downhill, the bucket curled and a little above the ground before it."""
    rig = Work(
        terrain="slope",
        slope=math.degrees(STEEP),
        heading=180.0,
        parameters={"tire.damping": "140 kN s/m"},
        posture={"boom": 20.0, "stick": -75.0, "bucket": -100.0},
    )
    rig.lead(3.0, {})
    assert rig.speed < 0.01
    return rig


def test_it_runs_away_down_a_steep_slope_without_brakes() -> None:
    rig = nose_down()
    rig.lead(3.0, {"parking": 0.0})
    assert rig.speed > 1.0


def test_it_descends_a_steep_slope_on_its_arm() -> None:
    """Luaces figure 6.3: the bucket pressed on the ground takes weight off the front wheels and holds the machine
    without its brakes; then the stick lets it down, as fast as the lever says and no faster."""
    rig = nose_down()
    before, pressing = rig.wheels, rig.mass * G * math.cos(STEEP)
    rig.hold(**{"right.y": 0.1})
    assert rig.run_until(lambda: rig.contacts().get("bucket", 0.0) > 0.2 * pressing, 15.0)
    rig.lead(2.0, {})
    assert rig.wheels[:2].sum() < 0.6 * before[:2].sum()
    assert rig.wheels.sum() + sum(rig.contacts().values()) == pytest.approx(pressing, rel=0.01)

    began = rig.place("undercarriage")
    rig.lead(3.0, {"parking": 0.0})
    assert rig.speed < 0.05
    assert float(np.linalg.norm(rig.place("undercarriage") - began)) < 0.1

    fastest = 0.0
    for _ in range(300):
        rig.lead(0.01, {"parking": 0.0, "left.y": -0.25})
        fastest = max(fastest, rig.speed)
        assert abs(rig["tilt.pitch"] + STEEP) < math.radians(10)
    way = rig.place("undercarriage") - began
    assert rig.is_finite
    assert way[0] < -0.3  # downhill
    assert fastest < 1.3 * 0.61  # [m/s] what the stick's lever asks of the bucket pin: 0.25 x 0.36 m/s x 3.9 m / 0.57 m
