"""Statics within 1 %: wheel loads, slopes, standing on blade and outriggers, pressures, tip-over load.

All expectations are balances of forces and moments from the parameters alone, see `excavator_cases`.
"""

import math

import numpy as np
import pytest
from excavator_cases import (
    G,
    P,
    cylinder_push,
    expected_push,
    inside,
    load_centre,
    masses,
    measured_loads,
    pins,
    rig,
    settle,
    tilted,
    wheel_loads,
)
from excavator_rig import Rig
from scipy.optimize import brentq

from plant.machines.excavator.parameters import Parameters
from plant.soil.model import BUCKET

BOUND = 0.01
POSTURES = {
    "home": {},
    "reached out": {"boom": 25.0, "stick": -50.0, "bucket": -60.0},
    "folded": {"boom": 55.0, "stick": -140.0, "bucket": -120.0},
    "to the left": {"boom": 20.0, "stick": -70.0, "swing": 90.0},
    "to the rear": {"boom": 20.0, "stick": -70.0, "swing": 180.0},
    "across": {"boom": 15.0, "stick": -60.0, "swing": -40.0},
}
LOAD = 1200.0  # [kg]
STIFF = {"tire.stiffness": "20 MN/m", "tire.damping": "100 kN s/m", "pump.relief": "600 bar"}


def carry(r: Rig, kilograms: float) -> None:
    """Soil in the bucket, as its account says."""
    soil = inside(r).soil
    soil.state.account[BUCKET] = kilograms / soil.kind.density


def weigh_down(r: Rig, kilograms: float) -> None:
    """More mass at the bucket's centre of mass."""
    r.engine.content.model.body.mass[r.engine.index("bucket")] = P["bucket.mass"] + kilograms


@pytest.mark.parametrize("name", POSTURES)
def test_wheel_loads_on_level_ground(name: str) -> None:
    """Each wheel within 1 % of its own load, or of a quarter of the weight where it carries less."""
    posture = POSTURES[name]
    r = settle(rig(posture=posture), 12.0 if "swing" in posture else 6.0)  # it rocks slowly with the arm to the side
    expected = wheel_loads(masses(**posture))
    found = measured_loads(r)
    total = masses().total * G
    assert found.sum() == pytest.approx(total, rel=1e-3)
    assert (np.abs(found - expected) < BOUND * expected.clip(min=0.25 * total)).all()
    for axle in (slice(0, 2), slice(2, 4)):
        assert found[axle].sum() == pytest.approx(expected[axle].sum(), rel=BOUND)
    for side in (slice(0, 4, 2), slice(1, 4, 2)):
        assert found[side].sum() == pytest.approx(expected[side].sum(), rel=BOUND)


def test_a_load_in_the_bucket_is_on_the_wheels() -> None:
    posture = {"boom": 30.0, "stick": -90.0, "bucket": -118.0}
    r = rig(posture=posture)
    carry(r, LOAD)
    settle(r, 6.0)
    assert r["bucket.load"] == pytest.approx(LOAD, rel=1e-9)  # nothing has trickled out
    expected, empty = (wheel_loads(masses(load, **posture)) for load in (LOAD, 0.0))
    found = measured_loads(r)
    assert found.sum() == pytest.approx((masses().total + LOAD - 1) * G, rel=1e-3)
    assert found == pytest.approx(expected, rel=BOUND)
    assert found[:2].sum() - empty[:2].sum() == pytest.approx(expected[:2].sum() - empty[:2].sum(), rel=3 * BOUND)


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_axle_loads_on_a_slope_of_10_degrees(stepper: str) -> None:
    r = settle(rig(terrain="slope", slope=10.0, stepper=stepper), 5.0)
    slope = math.radians(10)
    expected = wheel_loads(masses(), slope)
    found = measured_loads(r)
    assert found.sum() == pytest.approx(masses().total * G * math.cos(slope), rel=BOUND)
    assert found[:2].sum() == pytest.approx(expected[:2].sum(), rel=BOUND)
    assert found[2:].sum() == pytest.approx(expected[2:].sum(), rel=BOUND)
    along = sum(inside(r).tires.force[w] for w in range(4)) @ np.array([math.cos(slope), 0.0, math.sin(slope)])
    assert along == pytest.approx(masses().total * G * math.sin(slope), rel=BOUND)


def contact_forces(r: Rig) -> np.ndarray:
    """Sum of all contacts with the ground on the machine [N]."""
    data, h = r.engine.content.data, r.dt
    total = np.zeros(3)
    for c in range(data.contact.count[0]):
        k = data.contact
        force = (k.impulse[c, 0] * k.normal[c] + k.impulse[c, 1] * k.tangent[c]) / h
        total += force if k.body[c, 1] >= 0 else -force
    return total


def test_on_blade_and_outriggers_contacts_carry_the_weight() -> None:
    """Lifted off its wheels, or nearly: contacts and tires together carry the weight, along and about every axis."""
    r = rig()
    r.hold(parking=1.0, blade=-1.0, outriggers=-1.0)
    r.run(9.0)
    weight = masses().total * G
    at, force = inside(r).arrow_at, inside(r).arrow_force
    n = int(inside(r).arrow_count[0])
    tires, all_of_it = measured_loads(r).sum(), force[:n].sum(axis=0)
    assert tires < 0.2 * weight  # it stands on its feet
    assert all_of_it[2] == pytest.approx(weight, rel=BOUND)
    assert np.abs(all_of_it[:2]).max() < BOUND * weight
    m = masses(blade=math.degrees(r["blade.angle"]), outriggers=math.degrees(r["outriggers.angle"]))
    rot = tilted(r["tilt.pitch"], r["tilt.roll"])
    centre = rot @ m.centre + r.place("undercarriage")
    moment = np.cross(at[:n] - centre, force[:n]).sum(axis=0)
    assert np.abs(moment[:2]).max() < BOUND * weight * 1.0  # [m]


ABOVE = {
    "boom_pin": ("boom", "stick", "bucket", "rocker", "link", "load"),
    "stick_pin": ("stick", "bucket", "rocker", "link", "load"),
    "swing": ("uppercarriage", "boom", "stick", "bucket", "rocker", "link", "load"),
    "blade_pin": ("blade",),
}
"""What hangs on each joint alone. The cylinders are drives of the joints, so a joint bears all of it."""


@pytest.mark.parametrize("joint", ["boom_pin", "stick_pin", "swing", "blade_pin"])
def test_a_joint_bears_the_weight_of_what_hangs_on_it(joint: str) -> None:
    r = settle(rig(), 6.0)
    assert r[f"{joint}.pull"] == pytest.approx(masses().only(*ABOVE[joint]).kg.sum() * G, rel=BOUND)


def test_the_bucket_hangs_on_its_pin_and_its_link() -> None:
    """The link is a bar between two pins: it pulls along itself, as much as the moment about the bucket's pin asks."""
    r = settle(rig(), 6.0)
    at, m = pins({"boom": 38.0, "stick": -105.0, "bucket": -80.0}), masses().only("bucket", "load")
    foot = complex(P.point("boom.pin")[0], P["swing.height"] + P.point("boom.pin")[2])
    moment = sum(kg * G * (x - (foot + at.bucket).real) for kg, (x, _, _) in zip(m.kg, m.at, strict=True))
    lever = ((at.ear - at.bucket).conjugate() * at.turn["link"]).imag
    assert r["link_end.pull"] == pytest.approx(abs(moment / lever), rel=0.03)  # of a link that weighs a little itself


def test_joints_that_bodies_share_have_no_force_to_tell() -> None:
    assert not [s.name for s in rig(stepper="ali3p").plant.outputs if s.name.endswith(".pull")]


@pytest.mark.parametrize("hydraulics", [False, True], ids=["guided", "hydraulic"])
@pytest.mark.parametrize("load", [0.0, LOAD])
def test_cylinder_pressures_carry_the_static_moment(hydraulics: bool, load: float) -> None:
    """Boom and stick: push times lever is the moment of all that hangs on them, guided and with oil.

    The mean of 4 s, since trapped oil rings for long.
    """
    posture = {"boom": 30.0, "stick": -90.0, "bucket": -118.0}
    r = rig(posture=posture, hydraulics=hydraulics)
    carry(r, load)
    settle(r, 8.0)
    found, expected = np.zeros((2, 2, 400))
    for k in range(400):
        r.step(10)
        now = {name: math.degrees(r[f"{name}.angle"]) for name in ("boom", "stick", "bucket")}
        for i, name in enumerate(("boom", "stick")):
            found[i, k], expected[i, k] = cylinder_push(name, r), expected_push(name, now, load, r["tilt.pitch"])
    assert r["bucket.load"] == pytest.approx(load, rel=1e-9)
    assert found.mean(axis=1) == pytest.approx(expected.mean(axis=1), rel=BOUND)


@pytest.mark.parametrize("load", [300.0, 700.0])
def test_the_bucket_cylinder_carries_a_load_where_it_lies(load: float) -> None:
    """Little soil lies at the bottom of the bucket. By virtual work: push dL = load g dz, L the cylinder's length.

    On stiff tires, so that the machine does not pitch with the load.
    """
    push = []
    for kilograms in (0.0, load):
        r = rig(posture={"boom": 30.0, "stick": -90.0, "bucket": -95.0}, parameters=STIFF)
        carry(r, kilograms)
        settle(r, 6.0)
        push.append(cylinder_push("bucket", r))
    assert r["bucket.load"] == pytest.approx(load, rel=1e-9)
    now = {name: math.degrees(r[f"{name}.angle"]) for name in ("boom", "stick", "bucket")}

    def length(bucket: float) -> float:
        first, second = pins(now | {"bucket": bucket}).cylinder["bucket"]
        return abs(second - first)

    slope = (length(now["bucket"] + 0.01) - length(now["bucket"] - 0.01)) / math.radians(0.02)
    along = load_centre(load) * pins(now).turn["bucket"] * complex(math.cos(r["tilt.pitch"]), math.sin(r["tilt.pitch"]))
    assert push[1] - push[0] == pytest.approx((load - 1.0) * G * along.real / slope, rel=BOUND)  # empty it weighs 1 kg


OUT = {"boom": 20.0, "stick": -60.0, "bucket": -110.0}


def lifted_at(r: Rig, wheels: slice, about: float) -> float:
    """The load at the bucket [kg] at which these wheels bear nothing: quickly near to `about`, then slowly."""
    r.hold(parking=1.0)
    load = 0.0
    while load < 0.9 * about:
        load += about / 400
        weigh_down(r, load)
        r.step(5)
    r.run(6.0)
    while load < 1.5 * about and measured_loads(r)[wheels].max() > 0.0:
        load += about / 10_000
        weigh_down(r, load)
        r.step(5)
    weigh_down(r, 0.0)
    return load


@pytest.mark.parametrize("swing", [0.0, 180.0], ids=["ahead", "behind"])
def test_tip_over_load_against_the_lift_capacity_balance(swing: float) -> None:
    """The load that lifts the far wheels: the machine's own moment about the near axle, over the bucket's reach.

    Tires are stiff here, so that the machine is level when it tips, as lift-capacity tables have it.
    """
    posture = OUT | {"swing": swing}
    p = Parameters(STIFF)
    m = masses(p=p, **posture)
    edge = P["axle.front"] if swing == 0.0 else P["axle.rear"]
    bucket = m.only("bucket")
    expected = m.total * (edge - m.centre[0]) / (bucket.at[0, 0] - edge)
    found = lifted_at(rig(posture=posture, parameters=STIFF), slice(2, 4) if swing == 0.0 else slice(0, 2), expected)
    assert found == pytest.approx(expected, rel=BOUND)


def test_tip_over_load_to_the_side() -> None:
    """Over the side the edge is where the near wheels stand; they lean as it tips, and so stand further out."""
    posture = OUT | {"swing": 90.0}
    m = masses(p=Parameters(STIFF), **posture)
    r = rig(posture=posture, parameters=STIFF)
    found = lifted_at(r, slice(1, 4, 2), 2300.0)
    edge = inside(r).tires.point[0, 1]
    assert P["track"] / 2 <= edge <= P["track"] / 2 + P["wheel.width"] / 2
    rot = tilted(r["tilt.pitch"], r["tilt.roll"])
    at = m.at @ rot.T
    centre, reach = m.kg @ at[:, 1] / m.total, at[m.names.index("bucket"), 1]
    assert found == pytest.approx(m.total * (edge - centre) / (reach - edge), rel=BOUND)


def test_tip_over_load_on_its_own_tires() -> None:
    """On soft tires it leans towards the load, which tips it sooner: the same balance, leaning."""
    m = masses(**OUT)

    def rear(load: float) -> float:
        kg = m.kg.copy()
        kg[m.names.index("bucket")] += load
        return float(wheel_loads(m._replace(kg=kg))[2:].sum())

    expected = brentq(rear, 0.0, 12_000.0)
    r = rig(posture=OUT, parameters={"pump.relief": "600 bar"})
    assert lifted_at(r, slice(2, 4), expected) == pytest.approx(expected, rel=BOUND)
