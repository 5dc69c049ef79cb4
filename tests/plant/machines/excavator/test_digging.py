"""Digging with the whole machine: force, fill, discharge and work against the formulas, recomputed here from the
bucket's poses alone (Luaces eq. 3.23 to 3.28 and 4.102)."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from work_cases import Work

from plant.machines.excavator.parameters import Parameters
from plant.machines.excavator.plant import SITE_SOIL
from plant.soil.fill import STORE
from plant.soil.kind import SoilKind
from plant.soil.model import O_CAPACITY, O_FORCE_X

KIND = SoilKind(**SITE_SOIL)
P = Parameters()
R, WIDTH, SLICES = P["bucket.radius"], P["bucket.width"], 8
HINGE = np.array([0.06 * R, 0.0, 0.0])
FLOOR = np.array([0.88 * R, 0.0, 0.24 * R])  # where the cutting plate ends, from the lip
REACH = 0.94 * R
POSTURE = {"boom": 31.5, "stick": -54.4, "bucket": -31.5, "blade": -35.0, "outriggers": -35.0}


class Seen(NamedTuple):
    """A step: the bucket when it began, and what the soil said afterwards."""

    lip: np.ndarray  # [8, 3] middles of the slices [m]
    lip_speed: np.ndarray  # [8, 3] [m/s]
    hinge_speed: np.ndarray  # [8, 3]
    mouth: np.ndarray  # [3] from lip to hinge
    inwards: np.ndarray  # [3]
    edge: np.ndarray  # [3] where the cutting plate points
    held: float  # bank volume in the bucket before [m^3]
    force: np.ndarray  # [3] [N]
    depth: float  # [m]
    volume: float  # bank volume in the bucket afterwards
    capacity: float
    cut: float  # waiting to go in
    heap: float  # loose soil on the ground
    work: float  # [J]


def turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    u = q[1:]
    return np.asarray(v + 2 * np.cross(u, np.cross(u, v) + q[0] * v))


def look(rig: Work) -> Seen:
    """One step."""
    b = rig.engine.index("bucket")
    q, v = rig.state.quat[b].copy(), rig.state.vel[b].copy()
    com = turned(q, np.array(P.point("bucket.com")))
    pin = rig.state.pos[b] - com
    across = np.array([(0.0, WIDTH / 2 - WIDTH * (k + 0.5) / SLICES, 0.0) for k in range(SLICES)])
    lip = np.array([turned(q, a + np.array([R, 0.0, 0.0])) for a in across])
    hinge = np.array([turned(q, a + HINGE) for a in across])
    held = rig["bucket.volume"]
    rig.step()
    out = rig.content.soil.state.out
    return Seen(
        lip=pin + lip,
        lip_speed=v[:3] + np.cross(v[3:], lip - com),
        hinge_speed=v[:3] + np.cross(v[3:], hinge - com),
        mouth=turned(q, np.array([-1.0, 0.0, 0.0])),
        inwards=turned(q, np.array([0.0, 0.0, 1.0])),
        edge=turned(q, (np.array([R, 0, 0]) - FLOOR) / np.linalg.norm(np.array([R, 0, 0]) - FLOOR)),
        held=held,
        force=out[O_FORCE_X : O_FORCE_X + 3].copy(),
        depth=rig["dig.depth"],
        volume=rig["bucket.volume"],
        capacity=float(out[O_CAPACITY]),
        cut=rig["soil.cut"],
        heap=rig["soil.heap"],
        work=rig["dig.work"],
    )


def dig_force(s: Seen, depth: np.ndarray) -> np.ndarray:
    """Eq. 3.23, slice by slice."""
    along = (s.lip_speed @ s.edge)[:, None] * s.edge
    across = s.lip_speed - along
    loaded = KIND.mu_dig * (KIND.sigma_1 + KIND.sigma_2 * s.held**KIND.power_m)
    each = -(loaded * along + KIND.mu_cp * across) * depth[:, None] ** KIND.power_n / SLICES
    return np.asarray(each.sum(axis=0))


@pytest.fixture(scope="module")
def dug() -> tuple[Work, list[Seen]]:
    """An anchored machine that digs through level ground that nobody has dug before."""
    rig = Work(posture=POSTURE)
    rig.lead(1.0, {})
    seen = []
    for seconds, levers in (
        (1.25, {"right.y": 0.5}),
        (2.5, {"left.y": -1.0, "right.x": -0.3, "right.y": 0.1}),
        (1.5, {"right.x": -1.0, "right.y": -0.4}),
        (1.0, {"right.y": -1.0}),
    ):
        rig.let_go()
        rig.hold(parking=1.0, **levers)
        seen += [look(rig) for _ in range(round(seconds / rig.dt))]
    return rig, seen


def test_depth_is_that_of_the_lip_below_level_ground(dug: tuple[Work, list[Seen]]) -> None:
    fresh = [s for s in dug[1] if s.heap == 0.0 and s.depth > 0.02]
    assert len(fresh) > 300
    for s in fresh:
        assert s.depth == pytest.approx(float(-s.lip[:, 2].mean()), rel=0.01)


def test_digging_force_eq_3_23(dug: tuple[Work, list[Seen]]) -> None:
    """On fresh ground from the pose alone; later, when a berm lies before the lip, from the depth that was told."""
    largest = max(float(np.linalg.norm(s.force)) for s in dug[1])
    assert largest > 3e4
    fresh = 0
    for s in dug[1]:
        if s.depth <= 0.02:
            continue
        if s.heap == 0.0:
            expected = dig_force(s, -s.lip[:, 2])
            fresh += 1
        else:
            expected = dig_force(s, np.full(SLICES, s.depth))
        assert float(np.linalg.norm(s.force - expected)) <= 0.01 * max(float(np.linalg.norm(expected)), 0.02 * largest)
    assert fresh > 300


def test_fill_eq_3_28(dug: tuple[Work, list[Seen]]) -> None:
    """The bucket takes in what flows through its mouth, as long as enough has been cut and no more than is stored."""
    rig, seen = dug
    flown, taken, compared = 0.0, 0.0, 0
    for s in seen:
        store = STORE * rig.content.soil.land.cell * s.depth * WIDTH
        if s.heap > 0.0 or s.depth <= 0.02 or s.cut < 1e-3 or s.cut > 0.999 * store:
            continue
        compared += 1
        rise = float(s.mouth[2])
        d_fill = np.minimum(-s.lip[:, 2] / rise if rise > 0 else REACH, REACH)  # eq. 3.25
        middle = s.lip_speed + (0.5 * d_fill / REACH)[:, None] * (s.hinge_speed - s.lip_speed)  # eq. 3.27
        flown += float(np.sum(np.maximum(-(middle @ s.inwards), 0.0) * d_fill) * WIDTH / SLICES * 1e-3)
        taken += s.volume - s.held
    assert compared > 2000
    assert taken > 0.5
    assert taken == pytest.approx(flown, rel=1e-6)


def test_work_of_digging_is_the_integral_of_force_and_speed(dug: tuple[Work, list[Seen]]) -> None:
    """The path is that of the lip as it was seen, not the speed that the soil was told."""
    path = np.array([s.lip.mean(axis=0) for s in dug[1]])
    force = np.array([s.force for s in dug[1]])
    done = -float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(path, axis=0)))
    assert done > 2e4
    assert dug[1][-1].work - dug[1][0].work == pytest.approx(done, rel=0.01)


def test_the_bucket_is_full_afterwards(dug: tuple[Work, list[Seen]]) -> None:
    rig, _ = dug
    assert rig["bucket.fill"] > 0.8
    assert rig["bucket.load"] == pytest.approx(KIND.density * rig["bucket.volume"])
    assert abs(rig["soil.balance"]) <= 1e-6 * rig["bucket.volume"]


def capacity(s: Seen) -> float:
    """Bank volume that the bucket holds at its angle: eq. 4.102 with a smooth fall from 20 degrees on; over the lip to
    140 degrees, over the hinge to 90."""
    tilt = math.acos(max(-1.0, min(1.0, float(-s.inwards[2]))))
    end = math.radians(140) if s.mouth[2] >= 0.0 else math.radians(90)
    x = min(max((tilt - math.radians(20)) / (end - math.radians(20)), 0.0), 1.0)
    return (1 - x * x * (3 - 2 * x)) * P["bucket.heaped"] / KIND.bulking


def test_discharge_eq_4_102() -> None:
    """Half tipped it keeps what fits at that angle; on the way the surplus leaves by e in the time of flow."""
    rig = Work(posture=POSTURE)
    rig.lead(1.0, {})
    rig.lead(1.25, {"right.y": 0.5})
    rig.lead(2.5, {"left.y": -1.0, "right.x": -0.3, "right.y": 0.1})
    assert rig.goto(bucket=-2.05, boom=0.5)
    full = rig["bucket.volume"]
    expected, least = full, full
    for tip in (-1.35, -0.9, -0.6):
        for lever in (0.4, 0.0):
            rig.let_go()
            rig.hold(parking=1.0, **{"right.x": lever})
            for _ in range(6000):
                s = look(rig)
                least = min(least, capacity(s))
                surplus = max(expected - capacity(s), 0.0)
                expected -= surplus * min(rig.dt / KIND.flow_time, 1.0)
                assert s.volume == pytest.approx(expected, abs=0.01 * full)
                if rig["bucket.angle"] > tip if lever > 0.0 else surplus < 1e-4 * full:
                    break
        assert rig["bucket.volume"] == pytest.approx(min(full, least), rel=0.01)
        assert abs(rig["soil.balance"]) <= 1e-6 * full
    assert least < 0.5 * full
