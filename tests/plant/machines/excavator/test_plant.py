"""The whole plant: what it refuses and in which words, repeatability, fences and cones around it."""

import hashlib
import math

import numpy as np
import pytest
from excavator_cases import P, inside, rig
from excavator_rig import Rig

from plant.collision.model import Kind
from plant.machines.excavator.parameters import ParameterError
from plant.machines.excavator.plant import create
from plant.machines.excavator.site import SPACING, Site, heights, objects
from plant.registry import KindError
from plant.registry import create as create_plant


def refused(dt: float = 1e-3, **options: object) -> str:
    with pytest.raises(ParameterError) as told:
        create(dt, **{"terrain": "level", "objects": 0, **options})  # type: ignore[arg-type]
    return str(told.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameters": {"boom.mas": "1 t"}}, ["boom.mas", "boom.mass"]),
        ({"parameters": {"boom.mass": "1 m"}}, ["boom.mass", "'1 m'", "kg, t"]),
        ({"parameters": {"boom.mass": "90 t"}}, ["boom.mass", "'90 t'", "50000"]),
        ({"soil": {"mu_dug": 1.0}}, ["soil", "mu_dug", "mu_dig"]),
        ({"posture": {"bom": 10}}, ["posture", "bom", "boom, stick, bucket, swing, blade, outriggers"]),
        ({"posture": {"boom": "up"}}, ["posture boom", "'up'", "number"]),
        ({"posture": {"swing": math.nan}}, ["posture swing", "nan", "finite"]),
        ({"posture": {"boom": 80.0}}, ["posture boom", "80.0 deg", "its cylinder reaches"]),
        ({"posture": {"stick": -20.0}}, ["posture stick", "-20.0 deg", "its cylinder reaches"]),
        ({"posture": {"bucket": 90.0}}, ["posture bucket", "90.0 deg", "its cylinder reaches"]),
        ({"posture": {"blade": 70.0}}, ["posture blade", "70.0 deg", "blade.range", "-45.0 to 30.0"]),
        ({"posture": {"outriggers": -80.0}}, ["posture outrigger", "-80.0 deg", "outrigger.range", "-55.0 to 60.0"]),
        ({"tires": "square"}, ["tires", "square", "magic_formula, fiala, composite_slip"]),
        ({"terrain": "moon"}, ["terrain", "moon", "level, waves, slope"]),
        ({"terrain": "slope", "slope": 60.0}, ["slope 60 deg", "50"]),
        ({"slope": 10.0}, ["slope 10 deg", "terrain 'level'", "terrain 'slope'"]),
        ({"x": math.nan}, ["x nan", "finite"]),
        ({"heading": "north"}, ["heading 'north'", "number"]),
        ({"objects": -1}, ["objects -1", "at least 0"]),
        ({"objects": 2.5}, ["objects 2.5", "whole number"]),
        ({"stepper": "ali3p", "objects": 5}, ["objects 5", "spook", "must be 0"]),
        ({"x": 18.5}, ["x 19.75", "beyond the terrain", "19.12 m"]),
        ({"y": -400.0}, ["y -399.0", "beyond the terrain", "19.12 m"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options: dict[str, object], words: list[str]) -> None:
    message = refused(**options)
    for word in words:
        assert word in message


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(KindError, match=r"plant.options.hydraulic is no option of 'excavator'.*hydraulics"):
        create_plant("excavator", 1e-3, {"hydraulic": True})
    with pytest.raises(ValueError, match=r"stepper 'spok' is not known.*spook"):
        create(1e-3, terrain="level", objects=0, stepper="spok")


def test_too_long_a_step_is_refused() -> None:
    assert "its tires need steps of 0.0026 s or less" in refused(dt=5e-3)


def test_a_machine_inside_the_ground_is_refused_with_the_overlap() -> None:
    """The bucket's lowest point, from the teeth down: told to the centimetre."""
    message = refused(posture={"boom": 0.0, "stick": -90.0, "bucket": -20.0})
    told = float(message.split("would begin ")[1].split(" m")[0])
    sink = 9.81 * 20_000 / 4 / P["tire.stiffness"]
    pin = P["swing.height"] + P.point("boom.pin")[2] - P["stick.length"] - sink  # of the bucket, straight below
    teeth = pin - P["bucket.radius"] * math.sin(math.radians(110))
    assert "bucket" in message
    assert told == pytest.approx(-teeth, abs=0.06)  # the bars have round ends of 5 cm
    assert "choose another place or posture" in message


def test_across_a_slope_the_low_end_of_the_blade_is_above_ground() -> None:
    """Each end of a bar counts against the ground below that end."""
    create(1e-3, terrain="slope", slope=15.0, heading=90.0, objects=0, truck=False, posture={"blade": 12.0})


def run_hash(r: Rig, seconds: float) -> str:
    """Of all outputs and poses, with levers that go their own ways."""
    digest = hashlib.sha256()
    r.let_go()
    for k in range(round(seconds / 0.1)):
        t = 0.1 * k
        r.hold(
            **{"left.x": math.sin(t), "left.y": math.sin(0.7 * t), "right.x": math.cos(t), "right.y": -math.sin(2 * t)}
        )
        r.hold(drive=math.cos(0.5 * t), steer=math.sin(0.9 * t), blade=-math.cos(t), steer_mode=float(k // 30 % 3))
        r.step(100)
        digest.update(r.outputs.tobytes() + r.poses.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({"stepper": "spook"}, 10.0), ({"hydraulics": True}, 3.0)],
    ids=["spook", "hydraulics"],
)
def test_a_run_repeats_to_the_bit_also_after_a_reset(options: dict[str, object], seconds: float) -> None:
    first, again = rig(**options), Rig(terrain="level", objects=0, truck=False, pipe=False, **options)
    expected = run_hash(again, seconds)
    first.hold(drive=1.0, steer=1.0, **{"left.y": 1.0})
    first.run(1.0)
    first.let_go()
    first.reset()
    assert run_hash(first, seconds) == expected
    again.let_go()
    again.reset()
    assert run_hash(again, seconds) == expected


def test_natural_coordinates_repeat_to_the_bit_and_after_a_reset_to_rounding() -> None:
    """The core in natural coordinates: two machines agree to the bit; one that was reset after another run differs in
    the last digits, some 1e-10 of its speeds."""
    made = [rig(stepper="ali3p"), Rig(terrain="level", objects=0, truck=False, pipe=False, stepper="ali3p")]
    made[0].hold(drive=1.0, steer=1.0, **{"left.y": 1.0})
    made[0].run(1.0)
    first, second = [], []
    for r, seen in ((made[1], first), (made[0], second)):
        r.let_go()
        r.reset()
        r.hold(drive=0.7, **{"left.x": 0.5})
        for _ in range(10):
            r.step(50)
            seen.append(np.concatenate([r.poses, r.engine.content.data.state.vel.ravel()]))
    assert np.abs(np.array(first) - np.array(second)).max() < 1e-8
    again = Rig(terrain="level", objects=0, truck=False, pipe=False, stepper="ali3p")
    fresh = Rig(terrain="level", objects=0, truck=False, pipe=False, stepper="ali3p")
    assert run_hash(again, 2.0) == run_hash(fresh, 2.0)


def test_reset_shows_the_start() -> None:
    """Outputs right after a reset are those of the beginning: angles, strokes, place, nothing pressed."""
    r = rig()
    before = r.outputs.copy()
    arm = {name: r[f"{name}.stroke"] for name in ("boom", "stick", "bucket")}
    for name, stroke in arm.items():
        closed, opened = P.point(f"{name}.cylinder.lengths")
        assert 0.0 < stroke < opened - closed
    r.hold(drive=1.0, **{"left.y": 1.0, "right.y": -1.0})
    r.run(1.5)
    assert r["stick.stroke"] != pytest.approx(arm["stick"], abs=0.01)
    r.let_go()
    r.reset()
    assert [name for name, k in r._output.items() if r.outputs[k] != before[k]] == []


# --- fences and cones --------------------------------------------------------------------------------------------


def test_objects_stand_on_the_ground() -> None:
    """On waves and slopes too: none begins inside the ground, none more than a hand above its highest spot under it."""
    for site in (Site(terrain="waves", objects=200), Site(terrain="slope", slope=math.radians(10), objects=60)):
        z = heights(site)
        poses, kinds, _ = objects(site)
        assert len(poses) == site.objects
        for pose, kind in zip(poses, kinds, strict=True):
            reach = 0.15 if kind else 0.75
            i, j = (np.array(pose[:2]) / SPACING + 0.5 * (z.shape[0] - 1)).round().astype(int)
            n = round(reach / SPACING)
            under = z[i - n : i + n + 1, j - n : j + n + 1]
            assert under.max() - 1e-9 <= pose[2] < under.max() + 0.12


def test_spheres_hold_what_they_stand_for() -> None:
    """Nearness is told by spheres: objects lie within theirs, the machine within those of its seekers and `near`."""
    r = rig(objects=8)
    pool, shape = inside(r).proximity_pool, r.engine.content.scene.shape
    placed = r.engine.content.scene.placed
    body = r.engine.content.model.body

    def ends(s: int) -> list[np.ndarray]:
        half = shape.size[s, 1] if shape.kind[s] == Kind.CAPSULE else 0.0
        return [shape.at[s] + side * half * shape.turn[s][:, 2] for side in (-1.0, 1.0)]

    for spare, radius in (("fence0", 1.45), ("cone0", 0.8)):
        b = r.engine.index(spare)
        far = max(
            np.linalg.norm(end + body.com[b]) + shape.size[s, 0]
            for s in np.flatnonzero(shape.body == b)
            for end in ends(s)
        )
        assert far <= radius
        assert radius in pool.radius
    pos = r.engine.content.data.state.pos
    for s in np.flatnonzero(shape.body >= 0):
        name = r.engine.names[shape.body[s]]
        if name.startswith(("fence", "cone", "heap")):
            continue
        half = shape.size[s, 1] * placed.rot[s][:, 2] if shape.kind[s] == Kind.CAPSULE else np.zeros(3)
        for side in (-1.0, 1.0):
            end = placed.pos[s] + side * half
            gaps = np.linalg.norm(pos[pool.seeker] - end, axis=1) + shape.size[s, 0] - pool.reach
            assert gaps.min() < pool.near, name


@pytest.mark.parametrize(
    ("blade", "gear", "falls"), [(0.0, 1.0, False), (25.0, 2.0, True)], ids=["low and slow", "high and fast"]
)
def test_a_fence_hit_by_the_blade(blade: float, gear: float, falls: bool) -> None:
    """It enters, is pushed away or over, its pose and stamp as a prop change, and the collision counts.

    Pushed slowly at its lowest bar it slides upright: friction 0.5 times 0.3 m is less than its feet's 0.3 m.
    """
    r = rig(objects=24, posture={"blade": blade})
    props, fence = r.plant.props, 0
    assert props is not None
    start = props.poses[fence].copy()
    pool = inside(r).proximity_pool
    pool.pose[fence] = (4.5, 0.0, 0.0, math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4))  # across the way
    stamp = int(props.stamps[fence])
    assert r["objects"] == 0.0
    r.hold(drive=1.0, gear=gear)
    most = 0.0
    for _ in range(40 if falls else 45):
        r.run(0.1)
        most = max(most, r["objects"])
    assert most >= 1.0
    assert r["collisions"] >= 1.0
    assert props.stamps[fence] > stamp
    w, x, y, z = props.poses[fence, 3:]
    assert w * w + x * x + y * y + z * z == pytest.approx(1.0, abs=1e-9)
    up = 1 - 2 * (x * x + y * y)
    assert up < 0.5 if falls else up > 0.99
    assert props.poses[fence, 0] > 5.0
    r.let_go()
    r.reset()
    assert props.poses[fence] == pytest.approx(start)
    assert r["objects"] == 0.0


def test_fences_and_resets_repeat_to_the_bit() -> None:
    """Objects that come, are knocked over and go: after a reset everything is the same again."""
    r = rig(objects=24, posture={"blade": 0.0})
    runs = []
    for _ in range(2):
        r.let_go()
        r.reset()
        r.hold(drive=1.0, gear=2.0)
        digest = hashlib.sha256()
        most = 0.0
        for _ in range(50):
            r.step(100)
            most = max(most, r["objects"])
            digest.update(r.outputs.tobytes() + r.poses.tobytes() + inside(r).proximity_pool.pose.tobytes())
        runs.append(digest.hexdigest())
        assert most >= 1.0
    assert runs[0] == runs[1]


def test_no_two_fences_or_cones_stand_in_each_other() -> None:
    """Bars of 4 cm radius with round ends; cones of 9 cm at the foot of their bar."""
    poses, kinds, _ = objects(Site(objects=200))
    assert (len(poses), kinds.count(0)) == (200, 140)
    lines = []
    for pose, kind in zip(poses, kinds, strict=True):
        heading, half = 2 * math.atan2(pose[6], pose[3]), 1.0 if kind == 0 else 0.0
        along = half * np.array([math.cos(heading), math.sin(heading)])
        lines.append(np.array(pose[:2]) + np.linspace(-1, 1, 41)[:, None] * along)
    for k, one in enumerate(lines):
        for i, other in enumerate(lines[:k]):
            gap = np.sqrt(((one[:, None] - other[None]) ** 2).sum(axis=2)).min()
            assert gap > (0.08 if kinds[k] == kinds[i] == 0 else 0.18) + 0.05


def test_through_all_the_fences() -> None:
    """200 on the site, driven through four rings: none is a ghost, there is room for all contacts."""
    r = rig(objects=200, posture={"blade": 0.0})
    r.hold(drive=1.0, gear=2.0)
    most = 0.0
    for _ in range(90):
        r.run(0.1)
        most = max(most, r["objects"])
    assert r["x"] > 14.0
    assert most > 8
    assert r["flag.crowded"] == 0.0
    assert r["collisions"] >= 3.0
    assert np.isfinite(r.outputs).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"truck": True, "x": 1.5, "y": 5.0}, ["inside the truck at x", "choose another place"]),
        ({"objects": 24, "x": 10.5, "y": 2.0}, ["inside a fence or cone at x", "choose another place"]),
        ({"objects": 2000}, ["objects 2000", "room for 237"]),
    ],
)
def test_a_place_that_is_taken_is_refused(options: dict[str, object], words: list[str]) -> None:
    said = refused(**options)
    assert all(word in said for word in words), said


def test_hard_land_stops_the_teeth() -> None:
    """Beyond the terrain nothing can be dug: pressed down there, teeth stay on the surface; on soil they sink in."""
    depths = []
    for x in (0.0, 10.5):
        r = rig(x=x, posture={"boom": 14.0, "stick": -52.0, "bucket": -20.0})
        r.hold(drive=0.5)
        assert r.run_until(lambda r=r, x=x: r["x"] > x + 4.0, 10.0)  # type: ignore[misc]
        r.hold(drive=0.0, brake=1.0, parking=1.0)
        r.run(1.0)
        r.hold(**{"right.y": 0.5})
        r.run(2.5)
        depths.append(-r["teeth.z"])
    assert depths[0] > 0.5
    assert abs(depths[1]) < 0.08
