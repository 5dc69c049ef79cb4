"""The mechanism: how many bodies, joints and degrees of freedom, loops that stay closed, strokes, ends of strokes."""

import math

import numpy as np
import pytest
from excavator_cases import HOME, P, inside, masses, pins, rig, settle
from excavator_rig import Rig

from plant.constraint.cylinder_linkage import CylinderLinkage
from plant.machines.excavator.linkage import arm_at, lengths, ranges

PARTS = (
    "undercarriage", "wheel_front_left", "wheel_front_right", "wheel_rear_left", "wheel_rear_right", "blade",
    "outrigger_left", "outrigger_right", "uppercarriage", "boom", "stick", "bucket", "rocker", "link",
)  # fmt: skip
TREE = (
    "axle_front_left", "axle_front_right", "axle_rear_left", "axle_rear_right", "blade_pin", "outrigger_left_pin",
    "outrigger_right_pin", "swing", "boom_pin", "stick_pin", "bucket_pin", "rocker_pin", "link_pin",
)  # fmt: skip
ARM = ("boom", "stick", "bucket")


def test_fourteen_bodies_and_thirteen_joints_in_a_tree() -> None:
    r = rig()
    names = [n for n in r.engine.names if not n.startswith("heap")]
    assert sorted(names) == sorted((*PARTS, "load"))
    assert sorted(r.engine.joint_names) == sorted((*TREE, "link_end", "load_in_bucket"))
    joint, seen = r.engine.content.model.joint, {r.engine.index("undercarriage")}
    for name in TREE:  # every joint of the tree takes in one body more
        j = r.engine.joint_names.index(name)
        assert joint.a[j] in seen
        assert joint.b[j] not in seen
        seen.add(int(joint.b[j]))
    assert len(seen) == 14


def locked_rows(r: Rig, joints: tuple[str, ...], bodies: tuple[str, ...]) -> np.ndarray:
    """Constraint Jacobian of these joints over these bodies, from the engine's rows."""
    model, row = r.engine.content.model, r.engine.content.data.row
    column = {r.engine.index(b): 6 * k for k, b in enumerate(bodies)}
    rows = []
    for name in joints:
        j = r.engine.joint_names.index(name)
        for k in np.flatnonzero(model.joint.axis[j] >= 0):
            line = np.zeros(6 * len(bodies))
            for b, g in ((int(model.joint.a[j]), row.ga[j, k]), (int(model.joint.b[j]), row.gb[j, k])):
                line[column[b] : column[b] + 6] = g
            rows.append(line)
    return np.array(rows)


def test_degrees_of_freedom_of_luaces_table_6_1() -> None:
    """17: ten free (undercarriage, wheels) and seven driven (three cylinders, swing, steering, blade, outriggers).

    Steering turns four wheels and the outriggers' lever two legs: eleven coordinates with seven drives.
    """
    r = rig()
    r.step()
    rank = np.linalg.matrix_rank(locked_rows(r, (*TREE, "link_end"), PARTS), tol=1e-9)
    free_of_joints = 6 * len(PARTS) - rank
    driven = {"cylinder": 3, "swing": 1, "steer": 4, "blade": 1, "outrigger": 2}
    names = r.engine.actuator_names
    assert len([n for n in names if n.endswith("_cylinder")]) == driven["cylinder"]
    assert len([n for n in names if n.startswith("steer_")]) == driven["steer"]
    assert len([n for n in names if n.startswith("outrigger_") and n.endswith("_drive")]) == driven["outrigger"]
    assert free_of_joints - sum(driven.values()) == 10
    assert 10 + len(driven) + 2 == 17  # three cylinders are three drives
    with_load = locked_rows(r, (*TREE, "link_end", "load_in_bucket"), (*PARTS, "load"))
    assert 6 * 15 - np.linalg.matrix_rank(with_load, tol=1e-9) == free_of_joints


def test_the_whole_machine_weighs_20_tons() -> None:
    r = rig()
    mass = r.engine.content.model.body.mass
    total = sum(mass[r.engine.index(name)] for name in (*PARTS, "load"))
    assert total == pytest.approx(masses().total, rel=1e-12)
    assert 18e3 < total < 24e3


@pytest.mark.parametrize("posture", [{}, {"boom": 40.0, "stick": -60.0, "bucket": -20.0, "swing": 70.0}], ids=str)
def test_centres_of_mass_are_where_the_parameters_say(posture: dict[str, float]) -> None:
    """The centre of all masses, against sums over complex numbers; the machine stands `sink` deep in its tires."""
    r = rig(posture=posture)
    body, pos = r.engine.content.model.body, r.engine.content.data.state.pos
    index = [r.engine.index(name) for name in (*PARTS, "load")]
    found = body.mass[index] @ pos[index] / body.mass[index].sum()
    assert found - r.place("undercarriage") == pytest.approx(masses(**posture).centre, abs=1e-9)


@pytest.mark.parametrize(("stepper", "most"), [("spook", 5e-4), ("ali3p", 5e-4)])
def test_loops_stay_closed_while_everything_moves(stepper: str, most: float) -> None:
    """All levers at once, to and fro: no pin opens by more than half a millimetre on a machine of ten metres."""
    r = rig(stepper=stepper)
    settle(r, 0.5)
    widest = 0.0
    for k in range(120):
        way = 1.0 if (k // 30) % 2 == 0 else -1.0
        r.hold(**{"left.x": way, "left.y": way, "right.x": -way, "right.y": -way, "drive": way, "steer": way})
        r.hold(blade=-way, outriggers=-way, parking=0.0)
        r.step(20)
        widest = max(widest, r.engine.gap())
    assert 0.0 < widest < most


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_strokes_follow_the_law_of_cosines(stepper: str) -> None:
    """Strokes shown against pin-to-pin distances at the angles shown, for boom, stick and the bucket's linkage."""
    r = rig(stepper=stepper)
    for way in (1.0, -1.0):
        r.hold(**{"left.y": way, "right.x": way, "right.y": -way})
        for _ in range(4):
            r.run(0.25)
            arm = pins({name: math.degrees(r[f"{name}.angle"]) for name in ARM})
            for name in ARM:
                foot, rod = arm.cylinder[name]
                closed = P.point(f"{name}.cylinder.lengths")[0]
                # strokes are those at the beginning of the step
                assert r[f"{name}.stroke"] == pytest.approx(abs(rod - foot) - closed, abs=2e-3), name


def test_the_arm_in_its_plane_against_complex_numbers() -> None:
    for boom, stick, bucket in ((38, -105, -80), (0, -60, -20), (55, -140, -130)):
        angles = [math.radians(v) for v in (boom, stick, bucket)]
        found, expected = arm_at(P, *angles), pins({"boom": boom, "stick": stick, "bucket": bucket})
        for name in ("rocker_pin", "bucket_pin", "stick_pin", "joint", "ear"):
            there = getattr(expected, name.removesuffix("_pin"))
            assert complex(*getattr(found, name)) == pytest.approx(there, abs=1e-12), name
        assert lengths(found) == pytest.approx([abs(b - a) for a, b in expected.cylinder.values()], abs=1e-12)


def test_ranges_end_where_the_cylinders_end() -> None:
    for name, ends in ranges(P).items():
        closed, opened = P.point(f"{name}.cylinder.lengths")
        for angle in ends:
            foot, rod = pins(HOME | {name: math.degrees(angle)}).cylinder[name]
            assert min(abs(abs(rod - foot) - closed), abs(abs(rod - foot) - opened)) < 5e-3, name


LEVER = {"boom": ("right.y", -1.0), "stick": ("left.y", 1.0), "bucket": ("right.x", 1.0)}


@pytest.mark.parametrize("hydraulics", [False, True], ids=["guided", "hydraulic"])
@pytest.mark.parametrize("name", ARM)
def test_cylinders_stop_at_the_ends_of_their_strokes(name: str, hydraulics: bool) -> None:
    r = rig(hydraulics=hydraulics, posture={"boom": 50.0})
    lever, sign = LEVER[name]
    closed, opened = P.point(f"{name}.cylinder.lengths")
    reached = []
    for way in (1.0, -1.0) if name != "boom" else (1.0,):  # a boom let down would meet the ground first
        r.hold(**{lever: way * sign})
        for _ in range(70):
            r.run(0.1)
            assert -2e-3 < r[f"{name}.stroke"] < opened - closed + 2e-3
        reached.append(r[f"{name}.stroke"])
    ends = sorted(reached)
    assert ends[-1] == pytest.approx(opened - closed, abs=0.02)
    if name != "boom":
        assert ends[0] == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_a_stop_holds_when_something_pushes_against_it(stepper: str) -> None:
    """The boom at its upper end and 40 t pulling the bucket up, more than its cylinder could hold: the stop holds it to
    a millimetre of stroke."""
    r = rig(posture={"boom": 50.0}, stepper=stepper)
    r.hold(**{"right.y": -1.0, "parking": 1.0})
    r.run(5.0)
    opened = P.point("boom.cylinder.lengths")[1]
    data, joint = r.engine.content.data, r.engine.joint_names.index("boom_pin")
    linkage = CylinderLinkage(*inside(r).drives.linkage[0])
    moment = 4e5 * (r["teeth.x"] - 1.0)
    assert moment > P["pump.relief"] * math.pi / 4 * P["boom.cylinder.bore"] ** 2 * linkage.slope(
        data.state.angle[joint, 0]
    )
    data.state.wrench[r.engine.index("bucket"), 2] += 4e5  # the tires' forces stay as they were
    for _ in range(20):
        assert r.engine.step(10) == 0
        assert linkage.length(data.state.angle[joint, 0]) < opened + 1e-3
    assert linkage.length(data.state.angle[joint, 0]) > opened - 0.02
