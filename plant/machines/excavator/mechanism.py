"""The machine as a World: 14 bodies, 13 hinges in a tree, the pin that closes the bucket's linkage, and its drives.

    undercarriage ── swing ── uppercarriage ── boom ── stick ─┬─ bucket ── (load)
      ├─ wheels: front and rear, left and right               │     ╎ link_end closes the loop
      ├─ blade                                                └─ rocker ── link
      └─ outriggers left, right

17 degrees of freedom as in Luaces table 6.1: 7 are driven (three cylinders, swing, steering, blade, outriggers), 10 are
free (the undercarriage and the four wheels). Wheels hang on universal joints whose steering axis is driven. What the
bucket carries is a body of its own, fixed to the bucket, whose mass changes; empty it weighs a kilogram.

Frames: the undercarriage's is on the ground under the swing axis, the uppercarriage's on that axis at the ring; links
have theirs at their first pin with x along the link and z across it, up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plant.collision.shape.shapes import Capsule, Sphere
from plant.constraint.cylinder_linkage import linkage_of
from plant.machines.excavator.linkage import Arm, arm_at, holding, lengths, ranges
from plant.machines.excavator.parameters import ParameterError, Parameters
from plant.world.rotations import frame_along, product, rotated
from plant.world.world import World

Vector = NDArray[np.float64]

MACHINE, GROUND, OBJECT, BUCKET, WHEEL, HARD = 1, 2, 4, 8, 16, 32
"""Collision groups. No part of the machine meets another; tires and soil bear wheels and bucket on the ground. Hard
ground cannot be dug, so that it stops the teeth, which go through soil with the force of digging alone."""

WHEELS = ("wheel_front_left", "wheel_front_right", "wheel_rear_left", "wheel_rear_right")
EMPTY = 1.0  # [kg] of the load's body when there is none
PRELOAD = 60e5  # [Pa] of trapped oil on the side of a piston that carries less
LOAD_RADIUS = 0.35  # [m] of gyration of what the bucket carries


@dataclass(frozen=True)
class Posture:
    """Angles of the driven joints at the start [rad]."""

    boom: float = math.radians(38)
    stick: float = math.radians(-105)
    bucket: float = math.radians(-80)
    swing: float = 0.0
    blade: float = math.radians(25)
    outriggers: float = math.radians(50)


@dataclass(frozen=True)
class Place:
    """Where the machine stands: the ground under its swing axis, and its heading."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    heading: float = 0.0  # [rad]
    pitch: float = 0.0  # [rad] nose down
    roll: float = 0.0  # [rad] left side up


@dataclass(frozen=True)
class Machine:
    """The World with what else the plant needs to know of it."""

    world: World
    arm: Arm
    ranges: dict[str, tuple[float, float]]
    posture: Posture
    pins: dict[str, tuple[Vector, Vector]]  # of the arm's cylinders, on the first and the second body


def spin(axis: ArrayLike, angle: float) -> Vector:
    """Quaternion of a turn."""
    n = np.asarray(axis, float)
    return np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * n / np.linalg.norm(n)])


class _Builder:
    """Adds bodies given in the machine's own frame to a world."""

    def __init__(self, world: World, p: Parameters, place: Place) -> None:
        self.world, self.p = world, p
        self.pins: dict[str, tuple[Vector, Vector]] = {}  # of the arm's cylinders
        self.at = np.array([place.x, place.y, place.z])
        self.turn = product(
            product(spin((0, 0, 1), place.heading), spin((0, 1, 0), place.pitch)), spin((1, 0, 0), place.roll)
        )

    def point(self, v: ArrayLike) -> Vector:
        return self.at + rotated(self.turn, np.asarray(v, float))

    def way(self, v: ArrayLike) -> Vector:
        return rotated(self.turn, np.asarray(v, float))

    def body(self, name: str, at: ArrayLike, turn: Vector, like: str | None = None, mirror: bool = False) -> None:
        """A body whose frame is at `at`, turned by `turn`, both in the machine's frame."""
        like, p = like or name, self.p
        com = np.array(p.point(f"{like}.com"))
        if mirror:
            com[1] = -com[1]
        mass, size = p[f"{like}.mass"], np.array(p.point(f"{like}.size"))
        inertia = mass / 12 * (np.sum(size**2) - size**2)
        self.world.body(name, mass=mass, inertia=inertia, com=com, pos=self.point(at), quat=product(self.turn, turn))


def build(
    p: Parameters,
    *,
    world: World | None = None,
    posture: Posture | None = None,
    place: Place | None = None,
    hydraulic: bool = False,
) -> Machine:
    """The machine, added to `world`."""
    world, posture, place = world or World(), posture or Posture(), place or Place()
    allowed = ranges(p)
    for name, (low, high) in allowed.items():
        angle = getattr(posture, name)
        if not low <= angle <= high:
            raise ParameterError(
                f"posture {name} {math.degrees(angle):.1f} deg: its cylinder reaches {math.degrees(low):.1f} to "
                f"{math.degrees(high):.1f} deg"
            )
    for name in ("blade", "outrigger"):
        low, high = p.point(f"{name}.range")
        angle = posture.blade if name == "blade" else posture.outriggers
        if not low <= angle <= high:
            raise ParameterError(
                f"posture {name} {math.degrees(angle):.1f} deg: {name}.range is {math.degrees(low):.1f} to "
                f"{math.degrees(high):.1f} deg"
            )
    b = _Builder(world, p, place)
    b.body("undercarriage", (0, 0, 0), np.array([1.0, 0, 0, 0]))
    _wheels(b)
    _blade(b, posture.blade)
    _outriggers(b, posture.outriggers)
    arm = _upper(b, posture)
    _drives(b, posture, arm, allowed, hydraulic)
    _shapes(b)
    return Machine(world, arm, allowed, posture, b.pins)


def _wheels(b: _Builder) -> None:
    p, side = b.p, b.p["track"] / 2
    for name in WHEELS:
        x = p["axle.front"] if "front" in name else p["axle.rear"]
        at = (x, side if "left" in name else -side, p["wheel.radius"])
        b.body(name, at, np.array([1.0, 0, 0, 0]), like="wheel")
        axle = f"axle_{name.removeprefix('wheel_')}"
        b.world.universal(axle, "undercarriage", name, at=b.point(at), axis_a=b.way((0, 0, 1)), axis_b=b.way((0, 1, 0)))


def _blade(b: _Builder, angle: float) -> None:
    at = b.p.point("blade.pin")
    b.body("blade", at, spin((0, -1, 0), angle))
    b.world.hinge("blade_pin", "undercarriage", "blade", at=b.point(at), axis=b.way((0, -1, 0)))


def _outriggers(b: _Builder, angle: float) -> None:
    """Legs that swing about the long axis; the frame's x points outwards along the leg."""
    x, y, z = b.p.point("outrigger.pin")
    for side, sign in (("left", 1.0), ("right", -1.0)):
        outwards = spin((0, 0, 1), sign * math.pi / 2)
        at = (x, sign * y, z)
        b.body(f"outrigger_{side}", at, product(outwards, spin((0, -1, 0), angle)), like="outrigger")
        axis = b.way((sign, 0, 0))
        b.world.hinge(f"outrigger_{side}_pin", "undercarriage", f"outrigger_{side}", at=b.point(at), axis=axis)


def _upper(b: _Builder, posture: Posture) -> Arm:
    p, turn = b.p, spin((0, 0, 1), posture.swing)
    ring = np.array([0, 0, p["swing.height"]])
    b.body("uppercarriage", ring, turn)
    b.world.hinge("swing", "undercarriage", "uppercarriage", at=b.point(ring), axis=b.way((0, 0, 1)))
    arm = arm_at(p, posture.boom, posture.stick, posture.bucket)
    foot = np.array(p.point("boom.pin"))

    def at(pin: Vector) -> Vector:
        """A point of the arm's plane in the machine's frame."""
        return ring + rotated(turn, foot + np.array([pin[0], 0.0, pin[1]]))

    across = b.way(rotated(turn, np.array([0.0, -1.0, 0.0])))
    zero = np.zeros(2)
    for name, before, pin, angle in (
        ("boom", "uppercarriage", zero, arm.boom),
        ("stick", "boom", arm.stick_pin, arm.stick),
        ("bucket", "stick", arm.bucket_pin, arm.bucket),
        ("rocker", "stick", arm.rocker_pin, arm.rocker),
        ("link", "rocker", arm.joint, arm.link),
    ):
        b.body(name, at(pin), product(turn, spin((0, -1, 0), angle)))
        b.world.hinge(f"{name}_pin", before, name, at=b.point(at(pin)), axis=across)
    b.world.ball("link_end", "link", "bucket", at=b.point(at(arm.ear)))
    _load(b, at(arm.bucket_pin), product(turn, spin((0, -1, 0), arm.bucket)))
    for name, foot_pin, rod_pin in (
        ("boom", arm.boom_foot, arm.boom_rod),
        ("stick", arm.stick_foot, arm.stick_rod),
        ("bucket", arm.bucket_foot, arm.joint),
    ):
        b.pins[name] = (b.point(at(foot_pin)), b.point(at(rod_pin)))
    return arm


def _load(b: _Builder, at: Vector, turn: Vector) -> None:
    world, com = b.world, load_centre(b.p)
    world.body(
        "load",
        mass=EMPTY,
        inertia=np.full(3, EMPTY * LOAD_RADIUS**2),
        com=com,
        pos=b.point(at),
        quat=product(b.turn, turn),
    )
    world.fixed("load_in_bucket", "bucket", "load", at=b.point(at))


def bucket_profile(p: Parameters) -> list[tuple[float, float]]:
    """The bucket from the side: lip, mouth, back, as x along the line from pin to teeth and z away from the mouth."""
    r = p["bucket.radius"]
    return [
        (0.06 * r, 0.0),
        (0.0, 0.24 * r),
        (0.22 * r, 0.50 * r),
        (0.58 * r, 0.50 * r),
        (0.88 * r, 0.24 * r),
        (r, 0.0),
    ]


def load_centre(p: Parameters) -> Vector:
    """Middle of a struck load in the bucket's frame: the centroid of its profile [m]."""
    points = np.array(bucket_profile(p))
    x, z = points[:, 0], points[:, 1]
    x1, z1 = np.roll(x, -1), np.roll(z, -1)
    cross = x * z1 - x1 * z
    area = cross.sum() / 2
    return np.array([((x + x1) * cross).sum() / (6 * area), 0.0, ((z + z1) * cross).sum() / (6 * area)])


DRIVES = ("boom", "stick", "bucket")
CYLINDER_JOINT = {"boom": "boom_pin", "stick": "stick_pin", "bucket": "rocker_pin"}


def _at_rest(bore: float, rod: float, force: float) -> tuple[float, float]:
    """Pressures on both sides of a piston that holds `force` [N] outwards; the lesser of them is PRELOAD [Pa].

    With any other, the arm would fall by what the oil gives way before it holds, and ring for long.
    """
    a, b = bore**2 * math.pi / 4, (bore**2 - rod**2) * math.pi / 4
    push = (force + b * PRELOAD) / a
    return (push, PRELOAD) if push >= PRELOAD else (PRELOAD, (a * PRELOAD - force) / b)


def _drives(b: _Builder, posture: Posture, arm: Arm, allowed: dict[str, tuple[float, float]], hydraulic: bool) -> None:
    p, world = b.p, b.world
    now = dict(zip(DRIVES, lengths(arm), strict=True))
    upper = product(b.turn, spin((0, 0, 1), posture.swing))
    down = np.array([rotated(upper, np.array(axis)) @ world.gravity for axis in ((1.0, 0, 0), (0, 0, 1.0))])
    carried = dict(zip(DRIVES, holding(p, (posture.boom, posture.stick, posture.bucket), down), strict=True))
    for name in DRIVES:
        joint, (closed, opened) = CYLINDER_JOINT[name], p.point(f"{name}.cylinder.lengths")
        if hydraulic:
            # The open valve passes the cylinder's full flow at a quarter of the pump's margin, so that what is left of
            # the margin is enough for a load-sensing pump; `flow` is told for the drop of the whole supply.
            supply = 0.97 * p["pump.relief"]
            full = math.pi / 4 * p[f"{name}.cylinder.bore"] ** 2 * p[f"{name}.speed"]
            world.hydraulic_cylinder(
                f"{name}_cylinder",
                joint,
                bore=p[f"{name}.cylinder.bore"],
                rod=p[f"{name}.cylinder.rod"],
                stroke=opened - closed,
                closed=closed,
                flow=full * math.sqrt(supply / (0.25 * p["pump.margin"])),
                supply=supply,
                relief=1.05 * p["pump.relief"],
                pins=b.pins[name],
                line_volume=4e-3,
                pressure=_at_rest(p[f"{name}.cylinder.bore"], p[f"{name}.cylinder.rod"], carried[name]),
            )
        else:
            world.motor(f"{name}_cylinder", joint)
        at = world.joints[joint]
        linkage = linkage_of(at.at, rotated(at.quat, np.array([0.0, 0.0, 1.0])), *b.pins[name])
        ends = sorted(linkage.angle(length) for length in (closed, opened))
        world.limit(f"{name}_stop", joint, low=ends[0], high=ends[1])
        if not closed < now[name] < opened:
            raise ParameterError(f"{name}: its cylinder cannot be {now[name]:.3f} m long")
    world.motor("swing_drive", "swing", force=p["swing.torque"])
    for name in WHEELS:
        axle = f"axle_{name.removeprefix('wheel_')}"
        world.servo(f"steer_{name.removeprefix('wheel_')}", axle, axis="turn_a", position=0.0, gain=20.0)
        world.motor(f"drive_{name.removeprefix('wheel_')}", axle, axis="turn_b", force=0.0)
        world.friction(f"brake_{name.removeprefix('wheel_')}", axle, axis="turn_b", force=p["brake.torque"] / 4)
    for drive, joint in (
        ("blade_drive", "blade_pin"),
        ("outrigger_left_drive", "outrigger_left_pin"),
        ("outrigger_right_drive", "outrigger_right_pin"),
    ):
        world.motor(drive, joint)


def _shapes(b: _Builder) -> None:
    """What bodies and obstacles meet of the machine: spheres and bars with round ends, which are quick to test and
    quick to compile. Tires and soil have their own way with the ground."""
    p, world = b.p, b.world

    def ball(
        body: str,
        radius: float,
        at: ArrayLike,
        group: int = MACHINE,
        mask: int = GROUND | OBJECT,
        material: str = "steel",
    ) -> None:
        world.shape(body, Sphere(radius), at=at, material=material, group=group, mask=mask)

    def bar(
        body: str,
        radius: float,
        a: ArrayLike,
        z: ArrayLike,
        group: int = MACHINE,
        mask: int = GROUND | OBJECT,
        material: str = "steel",
    ) -> None:
        """From point to point."""
        ends = np.asarray(a, float), np.asarray(z, float)
        way = ends[1] - ends[0]
        shape = Capsule(radius, float(np.linalg.norm(way)))
        turn = frame_along(body, way, None)
        world.shape(body, shape, at=(ends[0] + ends[1]) / 2, quat=turn, material=material, group=group, mask=mask)

    front, rear = p["axle.front"] + 0.35, p["axle.rear"] - 0.35
    for y in (-0.45, 0.45):
        bar("undercarriage", 0.15, (rear, y, 0.85), (front, y, 0.85))
    for y in (-1.08, 1.08):  # engine and counterweight: their edges
        for z in (0.28, 1.15):
            bar("uppercarriage", 0.14, (-2.35, y, z), (0.3, y, z))
    for y in (-0.6, 0.6):
        bar("uppercarriage", 0.2, (-2.4, y, 0.3), (-2.4, y, 1.1))
    for y in (0.36, 1.12):  # cabin: roof and front posts
        bar("uppercarriage", 0.1, (-0.2, y, 1.88), (1.15, y, 1.88))
        bar("uppercarriage", 0.1, (1.2, y, 0.5), (1.15, y, 1.88))
    length, stick = p["boom.length"], p["stick.length"]
    knee = 0.44 * length
    bar("boom", 0.24, (0.4, 0, 0.1), (knee, 0, 0.62))
    bar("boom", 0.2, (knee, 0, 0.62), (length - 0.2, 0, 0.05))
    bar("stick", 0.17, (-0.4, 0, 0.12), (stick - 0.1, 0, 0.02))
    for name in WHEELS:
        for y in (-0.25, 0.25):
            ball(name, p["wheel.radius"] - 0.04, (0, y * p["wheel.width"], 0), group=WHEEL, mask=OBJECT)
    edge = np.array(p.point("blade.edge"))
    for z in (BLADE_RADIUS, 0.5):
        ends = edge + np.array([0, -1.15, z]), edge + np.array([0, 1.15, z])
        bar("blade", BLADE_RADIUS, *ends, material="cleat" if z < 0.1 else "steel")
    pad = np.array(p.point("outrigger.pad"))
    for side in ("left", "right"):
        ball(f"outrigger_{side}", 0.16, pad + np.array([0, 0, 0.04]), material="cleat")
        bar(f"outrigger_{side}", 0.1, (0.1, 0, 0), pad + np.array([0, 0, 0.1]), mask=OBJECT)
    half, profile = p["bucket.width"] / 2, bucket_profile(p)
    for x, z in profile[1:]:
        mask = OBJECT | HARD if (x, z) == profile[-1] else OBJECT
        bar("bucket", 0.05, (x, -half + 0.05, z), (x, half - 0.05, z), group=BUCKET, mask=mask)
    for y in (-half + 0.05, half - 0.05):
        bar("bucket", 0.05, (profile[-1][0], y, 0.0), (profile[0][0], y, 0.0), group=BUCKET, mask=OBJECT)
    for x, z in heel(p):
        for y in (-0.8 * half, 0.0, 0.8 * half):
            ball("bucket", HEEL_RADIUS, (x, y, z), group=BUCKET, mask=GROUND)


BLADE_RADIUS = 0.06  # [m] of the blade's edges
HEEL_RADIUS = 0.10  # [m] of the balls by which the back of the bucket rests on the ground


def heel(p: Parameters) -> list[tuple[float, float]]:
    """Middles of the balls along the back of the bucket: just within its hull, so that a cut leaves them free."""
    profile = bucket_profile(p)
    inward = HEEL_RADIUS + 0.02
    points = []
    for (x0, z0), (x1, z1) in ((profile[2], profile[3]), (profile[3], profile[4])):
        n = np.array([z1 - z0, -(x1 - x0)]) / math.hypot(x1 - x0, z1 - z0)  # into the bucket
        x0, z0, x1, z1 = x0 + inward * n[0], z0 + inward * n[1], x1 + inward * n[0], z1 + inward * n[1]
        points += [(x0 + share * (x1 - x0), z0 + share * (z1 - z0)) for share in (0.15, 0.85)]
    return points
