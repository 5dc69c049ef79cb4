"""Planar kinematics of the arm: where all pins are at given angles, and which angles the cylinders allow.

Plane of the uppercarriage: x forward, z up, from the foot of the boom. Angles [rad]: the boom against level, the
stick against the boom's line and the bucket against the stick's line, all turning up or out; so a stick that is folded
in and a bucket that is curled in have negative angles.

    stick pin  S = foot + boom length along the boom
    bucket pin P = S + stick length along the stick
    ear        E on the bucket; the rocker turns about Q on the stick; the link joins the rocker's tip J with E

J is where circles about Q and E meet, on the side of the cylinder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plant.machines.excavator.parameters import ParameterError, Parameters

Point = NDArray[np.float64]  # [2] x, z
NUDGE = 1e-5  # [rad] by which joints are turned to see what a cylinder carries


def turned(point: Point, angle: float) -> Point:
    """A point of a link whose line stands at `angle` against level."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])


def flat(point: tuple[float, ...]) -> Point:
    """The two coordinates in the plane of a point x, y, z."""
    return np.array([point[0], point[2]])


@dataclass(frozen=True)
class Arm:
    """All pins of the arm in one posture, from the boom's foot."""

    boom: float  # [rad] angles of the links' lines against level
    stick: float
    bucket: float
    rocker: float
    link: float
    stick_pin: Point
    bucket_pin: Point
    rocker_pin: Point
    joint: Point  # of rocker and link
    ear: Point
    teeth: Point
    boom_foot: Point  # of the boom's cylinder, on the uppercarriage
    boom_rod: Point
    stick_foot: Point
    stick_rod: Point
    bucket_foot: Point


def arm_at(p: Parameters, boom: float, stick: float, bucket: float) -> Arm:
    """The arm at the angles of boom, stick and bucket."""
    a1, a2, a3 = boom, boom + stick, boom + stick + bucket
    stick_pin = turned(np.array([p["boom.length"], 0.0]), a1)
    bucket_pin = stick_pin + turned(np.array([p["stick.length"], 0.0]), a2)
    rocker_pin = stick_pin + turned(flat(p.point("rocker.pin")), a2)
    far, at = p.point("bucket.ear")
    ear = bucket_pin + turned(np.array([far, 0.0]), a3 + math.radians(at))
    joint = _meeting(rocker_pin, p["rocker.length"], ear, p["link.length"], bucket)
    rocker = math.atan2(*(joint - rocker_pin)[::-1])
    link = math.atan2(*(ear - joint)[::-1])
    return Arm(
        boom=a1,
        stick=a2,
        bucket=a3,
        rocker=rocker,
        link=link,
        stick_pin=stick_pin,
        bucket_pin=bucket_pin,
        rocker_pin=rocker_pin,
        joint=joint,
        ear=ear,
        teeth=bucket_pin + turned(np.array([p["bucket.radius"], 0.0]), a3),
        boom_foot=flat(p.point("boom.cylinder.foot")) - flat(p.point("boom.pin")),
        boom_rod=turned(flat(p.point("boom.cylinder.rod_pin")), a1),
        stick_foot=turned(flat(p.point("stick.cylinder.foot")), a1),
        stick_rod=stick_pin + turned(flat(p.point("stick.cylinder.rod_pin")), a2),
        bucket_foot=stick_pin + turned(flat(p.point("bucket.cylinder.foot")), a2),
    )


def _meeting(one: Point, r1: float, other: Point, r2: float, bucket: float) -> Point:
    """Where two circles meet, to the left of the way from one to the other."""
    way = other - one
    d = float(np.hypot(*way))
    if not abs(r1 - r2) < d < r1 + r2:
        raise ParameterError(
            f"the bucket's linkage cannot close at a bucket angle of {math.degrees(bucket):.1f} deg: its pins are "
            f"{d:.3f} m apart, which must lie between {abs(r1 - r2):.3f} and {r1 + r2:.3f} m"
        )
    along = (d * d + r1 * r1 - r2 * r2) / (2 * d)
    across = math.sqrt(r1 * r1 - along * along)
    return one + (along * way + across * np.array([-way[1], way[0]])) / d


def lengths(arm: Arm) -> tuple[float, float, float]:
    """Of the three cylinders, from pin to pin [m]."""
    pairs = ((arm.boom_foot, arm.boom_rod), (arm.stick_foot, arm.stick_rod), (arm.bucket_foot, arm.joint))
    return tuple(float(np.hypot(*(b - a))) for a, b in pairs)  # type: ignore[return-value]


LINKS = ("boom", "stick", "bucket", "rocker", "link")


def centres(p: Parameters, arm: Arm) -> dict[str, Point]:
    """Centres of mass of the links, from the boom's foot [m]."""
    pin = {"boom": np.zeros(2), "stick": arm.stick_pin, "bucket": arm.bucket_pin, "rocker": arm.rocker_pin}
    pin["link"] = arm.joint
    return {name: pin[name] + turned(flat(p.point(f"{name}.com")), getattr(arm, name)) for name in LINKS}


def holding(p: Parameters, angles: tuple[float, float, float], down: Point) -> tuple[float, float, float]:
    """Forces of the three cylinders that hold the empty arm at rest [N], positive outwards.

    By virtual work, each length depending on one angle only: force dL = -weight of all links times their way along
    `down` [m/s^2], gravity in the arm's plane.
    """
    found = []
    for k in range(3):
        ends = []
        for turn in (-NUDGE, NUDGE):
            arm = arm_at(p, *(a + (turn if i == k else 0.0) for i, a in enumerate(angles)))
            work = sum(p[f"{name}.mass"] * float(at @ down) for name, at in centres(p, arm).items())
            ends.append((work, lengths(arm)[k]))
        found.append(-(ends[1][0] - ends[0][0]) / (ends[1][1] - ends[0][1]))
    return found[0], found[1], found[2]


def ranges(p: Parameters) -> dict[str, tuple[float, float]]:
    """Lowest and highest angle of boom, stick and bucket that the cylinders reach [rad].

    Outwards from an angle in the middle: beyond a dead centre a cylinder has the same lengths once more.
    """

    def search(which: int, low: float, high: float, fixed: tuple[float, float, float]) -> tuple[float, float]:
        closed, opened = p.point(f"{('boom', 'stick', 'bucket')[which]}.cylinder.lengths")
        good, why = [], ""
        for angle in np.linspace(low, high, 2001):
            angles = list(fixed)
            angles[which] = float(angle)
            try:
                if closed <= lengths(arm_at(p, *angles))[which] <= opened:
                    good.append(float(angle))
                elif good and angle < fixed[which]:
                    good.clear()
                elif angle > fixed[which]:
                    break
            except ParameterError as error:
                why = f": {error}"
        if not good:
            raise ParameterError(f"the {('boom', 'stick', 'bucket')[which]}'s cylinder reaches no angle at all{why}")
        return good[0], good[-1]

    start = (0.5, -1.7, -1.2)
    return {
        "boom": search(0, -1.2, 1.3, start),
        "stick": search(1, -2.8, -0.3, start),
        "bucket": search(2, -2.6, 0.8, start),
    }
