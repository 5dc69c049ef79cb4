"""What the machine says when something happens: one test for each flag, and one for an alarm of the node."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from excavator_cases import P, rig, settle
from support import cli, own_ports
from work_cases import Work

from plant.machines.excavator.gauges import stand
from plant.machines.excavator.site import PIPE
from plant.model import Status
from plant.soil.ground import surface
from plant.soil.heap import scatter
from plant.soil.model import BUCKET

TOP = Path(__file__).resolve().parents[4]
OUT = {"boom": 20.0, "stick": -70.0, "bucket": -110.0}


def test_full_when_the_bucket_holds_no_more() -> None:
    """Curled, with its heaped capacity in it, and not with a little less."""
    r = rig(posture={"boom": 30.0, "stick": -90.0, "bucket": -118.0})
    soil = r.plant.owner[1].content.soil  # type: ignore[index]
    most = P["bucket.heaped"] / soil.kind.bulking
    for share, flag in ((0.0, 0.0), (0.97, 0.0), (1.0, 1.0), (0.9, 0.0)):
        soil.state.account[BUCKET] = share * most
        r.step(3)
        assert r["bucket.volume"] == pytest.approx(share * most, rel=1e-6)
        assert r["flag.full"] == flag, share


SHALLOW, RADIUS = -0.5, PIPE[2]  # [m]


def over_a_pipe(pipe: bool) -> Work:
    """The bucket over ground in which the pipe lies half a metre deep."""
    posture = {"boom": 18.0, "stick": -68.0, "bucket": -15.0, "blade": -40.0, "outriggers": -40.0}
    r = Work(pipe=pipe, x=PIPE[0][0] - 7.05, posture=posture)
    for end in (r.content.soil.pipe.a, r.content.soil.pipe.b):
        end[:, 2] = SHALLOW
    return r


def test_pipe_when_the_bucket_strikes_it() -> None:
    """Teeth that are pressed down onto it strike it when they come to its upper side, and not before."""
    r = over_a_pipe(True)
    before = 0.0
    for _ in range(500):
        r.lead(0.01, {"right.y": 0.3})
        if r["flag.pipe"] == 1.0:
            break
        before = r["teeth.z"]
    assert r["flag.pipe"] == 1.0
    assert before > SHALLOW - RADIUS
    assert r["teeth.z"] < SHALLOW + RADIUS + 0.1
    assert abs(r["teeth.x"] - PIPE[0][0]) < 1.0
    r.lead(0.5, {"right.y": -1.0})
    assert r["flag.pipe"] == 1.0  # it stays struck
    r.reset()
    assert r["flag.pipe"] == 0.0


def test_no_pipe_no_flag() -> None:
    r = over_a_pipe(False)
    for _ in range(30):
        r.lead(0.1, {"right.y": 0.3})
    assert r["teeth.z"] < SHALLOW
    assert r["flag.pipe"] == 0.0


def test_overload_when_a_guided_cylinder_gives_way() -> None:
    """With the counterweight of a crane, 16 t at the bucket need more than the relief pressure; 1 t does not."""
    for load, flag in ((1_000.0, 0.0), (16_000.0, 1.0)):
        r = rig(posture=OUT, parameters={"uppercarriage.mass": "40 t"})
        mass, bucket = r.engine.content.model.body.mass, r.engine.index("bucket")
        before = mass[bucket]
        mass[bucket] += load
        try:
            r.hold(parking=1.0)
            r.run(1.0)
            r.hold(**{"right.y": -1.0})
            r.run(0.7)
        finally:
            mass[bucket] = before
        assert r["flag.overload"] == flag
        assert (r["boom.pressure_a"] > 0.97 * P["pump.relief"]) == bool(flag)


def test_a_fence_that_stands_nearby_holds_nobody_up() -> None:
    """The margin of stability is that of the machine on its own feet, whether or not a fence takes part."""
    alone, beside = rig(), rig(objects=24)
    for r in (alone, beside):
        r.hold(parking=1.0)
        r.run(1.0)
    pool = beside.plant.owner[1].content.proximity_pool  # type: ignore[index]
    pool.pose[0, :2] = 4.5, 0.0  # before its blade
    for r in (alone, beside):
        r.run(2.0)
    assert beside["objects"] >= 1.0
    assert beside["stability"] == pytest.approx(alone["stability"], rel=0.01)


def test_on_two_wheels_the_margin_is_that_of_their_line() -> None:
    """As if the rear wheels had just left the ground: the centre of mass lies behind the front axle's line and would
    have to rise over it. A margin of a line is not far from that of the polygon that was there before."""
    r = Work()
    r.lead(3.0, {})
    gauges, tires = r.content.gauges, r.content.tires
    assert (tires.touch == 1).all()
    tires.touch[2:] = 0
    stand(r.engine.content, gauges, tires)
    a, b, centre = tires.point[0], tires.point[1], r.centre
    along = (b - a) / np.linalg.norm(b - a)
    arm = (centre - a) - along * (along @ (centre - a))
    level = math.hypot(along[0], along[1])
    height = math.sqrt((arm @ arm) - (np.cross(along, arm)[2] / level) ** 2)
    assert gauges.margin[0] == pytest.approx(-(np.linalg.norm(arm) - height) * level, rel=1e-9)
    assert -1.0 < gauges.margin[0] < -0.05
    tires.touch[1:] = 0
    stand(r.engine.content, gauges, tires)
    way = centre - a
    assert gauges.margin[0] == pytest.approx(-(np.linalg.norm(way) - way[2]), rel=1e-9)
    assert gauges.margin[2] == 0.0


def test_in_the_air_it_says_so() -> None:
    """Half a metre above the ground it falls for 0.3 s; then it stands again."""
    r = Work()
    r.lead(2.0, {})
    standing = r["stability"]
    assert (r["flag.airborne"], r["flag.tipping"]) == (0.0, 0.0)
    r.state.pos[r.content.gauges.part, 2] += 0.5
    r.engine.content.data.status[int(Status.POSES_VALID)] = 0
    r.lead(0.15, {})
    assert (r["flag.airborne"], r["stability"]) == (1.0, 0.0)
    r.lead(6.0, {})
    assert r["flag.airborne"] == 0.0
    assert r["stability"] == pytest.approx(standing, rel=0.02)


def test_a_full_truck_drives_off_and_an_empty_one_comes() -> None:
    """Not while the bucket is over the bed; then all of its soil is in the account of what was hauled."""
    r = Work(truck=True, posture={"boom": 46.0, "stick": -80.0, "bucket": -110.0, "swing": 81.0})
    soil, ground, field = r.content.soil, r.content.ground, r.engine.content.scene.field
    bed = next(g for g in r.plant.grids if g.name == "truck")
    floor = bed.heights.copy()
    given = 6.0  # [m^3] of bank volume, from nowhere
    left = 0.0
    for x in np.linspace(0.0, 3.0, 12):
        left += scatter(soil, ground, field, x, 6.8, given / 12, 0.4, 40)
    r.lead(2.0, {})
    load, balance = r["truck.load"], r["soil.balance"]
    assert balance == pytest.approx(given - left, rel=1e-9)
    assert r["truck.trips"] == 0.0
    assert r.goto(swing=0.2)
    r.lead(1.0, {})
    assert r["truck.trips"] == 1.0
    assert r["truck.load"] == 0.0
    assert r["soil.hauled"] * soil.kind.density == pytest.approx(load, rel=1e-9)
    assert r["soil.balance"] == pytest.approx(balance, abs=1e-12)
    assert (bed.heights == floor).all()
    r.reset()
    assert (r["truck.trips"], r["soil.hauled"]) == (0.0, 0.0)


def test_soil_that_falls_on_the_land_is_where_displays_are_told() -> None:
    """A patch in reserve is laid there: its prop says where, its grid is the ground. A reset takes it away."""
    r = Work()
    parcel, (volume, x, y) = r.content.soil.parcel, (0.4, 25.0, -3.0)
    grid = next(g for g in r.plant.grids if g.name == "heap0")
    assert r.plant.props is not None
    prop = r.plant.props.names.index(grid.body)
    assert r.plant.props.poses[prop].tolist() == [0.0, 0.0, -50.0, 1.0, 0.0, 0.0, 0.0]
    stamp = r.plant.props.stamps[prop]
    parcel.start[0], parcel.speed[0], parcel.volume[0], parcel.time[0] = (x, y, 4.0), 0.0, volume, 0.0
    parcel.ends[:] = 0, 1
    r.lead(3.0, {})
    assert r["soil.air"] < 1e-9  # but for what quanta do not divide
    assert r["soil.gone"] == 0.0
    assert r.plant.props.stamps[prop] == stamp + 1
    pose = r.plant.props.poses[prop].copy()
    assert pose[:2] == pytest.approx([x, y], abs=1e-9)
    assert pose[3:].tolist() == [1.0, 0.0, 0.0, 0.0]
    low = grid.corner[0] + pose[0], grid.corner[1] + pose[1]
    samples = [(16, 16), (12, 20), (25, 3)]
    for i, j in samples:
        at = low[0] + i * grid.spacing[0], low[1] + j * grid.spacing[1]
        height = surface(r.content.ground, r.engine.content.scene.field, *at)[1]
        assert grid.corner[2] + pose[2] + grid.heights[i, j] == pytest.approx(height, abs=1e-9)
    heap = grid.heights - np.median(grid.heights)
    bulked = volume * r.content.soil.kind.bulking
    assert heap.sum() * grid.spacing[0] * grid.spacing[1] == pytest.approx(bulked, rel=0.05)
    r.reset()
    assert r.plant.props.poses[prop, 2] == -50.0
    assert r.plant.props.stamps[prop] == stamp + 2


def test_crowded_when_more_are_near_than_there_are_bodies_for() -> None:
    r = rig(objects=200)
    settle(r, 1.0)
    assert r["flag.crowded"] == 0.0
    pool = r.plant.owner[1].content.proximity_pool  # type: ignore[index]
    rows = 0.65 * np.arange(-4, 5)
    spots = [(x, y) for x in (-4.2, 4.0, 6.2) for y in rows] + [(0.0, y) for y in (-3.5, -2.8, 2.8, 3.5)]
    fences = np.flatnonzero(pool.kind == 0)[: len(spots)]
    pool.pose[fences] = [(x, y, 0.0, 1.0, 0.0, 0.0, 0.0) for x, y in spots]
    r.run(0.05)
    assert r["flag.crowded"] == 1.0
    r.reset()
    assert r["flag.crowded"] == 0.0


def test_an_alarm_is_raised_by_the_node(name: str, tmp_path: Path) -> None:
    """Placed across a slope on which it must tip over, the node says so, with the alarm's name."""
    text = (TOP / "configs" / "excavator-browser.toml").read_text()
    assert 'name = "about to tip over"' in text
    text = text.replace('name = "excavator"', f'name = "{name}"\nmax_overruns = 0', 1)
    options = 'options = { terrain = "slope", slope = 40.0, heading = 90.0, objects = 0, truck = false }'
    text = text.replace('kind = "excavator"\n', f'kind = "excavator"\n{options}\n', 1)
    file = tmp_path / "tips.toml"
    file.write_text(f"{own_ports()}web.enabled = false\n{text}")
    done = cli("run", file, "--free", "--for", "4", "--out", tmp_path / "run", seconds=240)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert any("about to tip over" in json.dumps(event) for event in events)
