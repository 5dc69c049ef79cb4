"""What the tests of the excavator share: rigs that are made once, and its statics from the parameters alone.

The statics are written here a second time, in complex numbers for the arm's plane and plain sums for the rest, so that
a mistake in the machine's own geometry cannot hide.
"""

from __future__ import annotations

import cmath
import json
import math
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from excavator_rig import Rig
from numpy.typing import NDArray
from scipy.optimize import fsolve

from plant.machines.excavator.mechanism import bucket_profile
from plant.machines.excavator.parameters import Parameters
from plant.machines.excavator.step import Excavator
from plant.soil.kind import SoilKind

G = 9.80665
Floats = NDArray[np.float64]
P = Parameters()
HOME = {"boom": 38.0, "stick": -105.0, "bucket": -80.0, "swing": 0.0, "blade": 25.0, "outriggers": 50.0}
"""Angles of the machine's own posture [deg]."""


@cache
def _made(options: str) -> Rig:
    return Rig(**json.loads(options))


def rig(**options: Any) -> Rig:
    """A rig with these options as it is at the start; made once in a run of the tests. Level and bare by itself."""
    given = {"terrain": "level", "objects": 0, "truck": False, "pipe": False, **options}
    if given["terrain"] == "slope":
        given.setdefault("slope", 10.0)
    made = _made(json.dumps(given, sort_keys=True))
    made.let_go()
    made.reset()
    return made


def inside(r: Rig) -> Excavator:
    """What the step works on."""
    return r.plant.owner[1].content  # type: ignore[index]


class Masses(NamedTuple):
    """All parts in the machine's frame: on the ground under the swing axis, x ahead, z up."""

    kg: Floats  # [n]
    at: Floats  # [n, 3] [m]
    names: list[str]

    @property
    def total(self) -> float:
        return float(self.kg.sum())

    @property
    def centre(self) -> Floats:
        return np.asarray(self.kg @ self.at / self.kg.sum())

    def only(self, *names: str) -> Masses:
        keep = [k for k, name in enumerate(self.names) if name in names]
        return Masses(self.kg[keep], self.at[keep], [self.names[k] for k in keep])


class Pins(NamedTuple):
    """Of the arm in its plane from the boom's foot, x + i z [m]; `turn` are unit vectors along the links."""

    stick: complex
    bucket: complex
    rocker: complex
    joint: complex
    ear: complex
    turn: dict[str, complex]
    cylinder: dict[str, tuple[complex, complex]]  # foot and rod end


def flat(point: tuple[float, ...]) -> complex:
    return complex(point[0], point[2])


def pins(posture: dict[str, float], p: Parameters = P) -> Pins:
    """The arm at angles in degrees. The linkage is closed by the law of cosines."""
    boom = cmath.rect(1, math.radians(posture["boom"]))
    stick = boom * cmath.rect(1, math.radians(posture["stick"]))
    bucket = stick * cmath.rect(1, math.radians(posture["bucket"]))
    s = p["boom.length"] * boom
    b = s + p["stick.length"] * stick
    q = s + flat(p.point("rocker.pin")) * stick
    far, angle = p.point("bucket.ear")
    ear = b + far * cmath.rect(1, math.radians(angle)) * bucket
    rocker, link, d = p["rocker.length"], p["link.length"], abs(ear - q)
    opening = math.acos((rocker**2 + d**2 - link**2) / (2 * rocker * d))
    joint = q + rocker * (ear - q) / d * cmath.rect(1, opening)
    cylinder = {
        "boom": (
            flat(p.point("boom.cylinder.foot")) - flat(p.point("boom.pin")),
            flat(p.point("boom.cylinder.rod_pin")) * boom,
        ),
        "stick": (flat(p.point("stick.cylinder.foot")) * boom, s + flat(p.point("stick.cylinder.rod_pin")) * stick),
        "bucket": (s + flat(p.point("bucket.cylinder.foot")) * stick, joint),
    }
    turn = {
        "boom": boom,
        "stick": stick,
        "bucket": bucket,
        "rocker": (joint - q) / rocker,
        "link": (ear - joint) / link,
    }
    return Pins(s, b, q, joint, ear, turn, cylinder)


def load_centre(load: float = math.inf, p: Parameters = P) -> complex:
    """Centre of a load [kg] seen from the side: the middle of the bucket, by triangles about a point of its outline,
    if it is full; at nine tenths of its depth if there is next to nothing in it; in between in proportion."""
    ring = [complex(x, z) for x, z in bucket_profile(p)]
    total, moment = 0.0, 0j
    for a, b in pairwise(ring[1:]):
        area = ((a - ring[0]).conjugate() * (b - ring[0])).imag / 2
        total, moment = total + area, moment + area * (ring[0] + a + b) / 3
    middle, kind = moment / total, SoilKind()
    share = min(1.0, load / kind.density * kind.bulking / p["bucket.heaped"])
    return complex(middle.real, share * middle.imag + (1 - share) * 0.9 * max(c.imag for c in ring))


def masses(load: float = 0.0, p: Parameters = P, **posture: float) -> Masses:
    """Where everything is at these angles [deg], with a load in the bucket [kg]."""
    at = HOME | posture
    arm = pins(at, p)
    swing = cmath.rect(1, math.radians(at["swing"]))
    found: list[tuple[str, float, tuple[float, float, float]]] = []

    def upper(name: str, mass: float, x: float, z: float) -> None:
        turned = x * swing
        found.append((name, mass, (turned.real, turned.imag, p["swing.height"] + z)))

    def link(name: str, mass: float, where: complex) -> None:
        foot = flat(p.point("boom.pin"))
        upper(name, mass, (foot + where).real, (foot + where).imag)

    x, _, z = p.point("undercarriage.com")
    found.append(("undercarriage", p["undercarriage.mass"], (x, 0.0, z)))
    ends, sides = (p["axle.front"], p["axle.rear"]), (p["track"] / 2, -p["track"] / 2)
    found += [("wheel", p["wheel.mass"], (x, y, p["wheel.radius"])) for x in ends for y in sides]
    blade = flat(p.point("blade.pin")) + flat(p.point("blade.com")) * cmath.rect(1, math.radians(at["blade"]))
    found.append(("blade", p["blade.mass"], (blade.real, 0.0, blade.imag)))
    px, py, pz = p.point("outrigger.pin")
    leg = flat(p.point("outrigger.com")) * cmath.rect(1, math.radians(at["outriggers"]))
    found += [("outrigger", p["outrigger.mass"], (px, side * (py + leg.real), pz + leg.imag)) for side in (1, -1)]
    cx, _, cz = p.point("uppercarriage.com")
    upper("uppercarriage", p["uppercarriage.mass"], cx, cz)
    for name, pin in (
        ("boom", 0j),
        ("stick", arm.stick),
        ("bucket", arm.bucket),
        ("rocker", arm.rocker),
        ("link", arm.joint),
    ):
        link(name, p[f"{name}.mass"], pin + flat(p.point(f"{name}.com")) * arm.turn[name])
    middle = load_centre(load if load > 0.0 else math.inf, p)  # an empty one is the body that waits for a load
    link("load", max(load, 1.0), arm.bucket + middle * arm.turn["bucket"])
    return Masses(np.array([m for _, m, _ in found]), np.array([a for _, _, a in found]), [n for n, _, _ in found])


def tilted(pitch: float, roll: float) -> Floats:
    """From the machine's frame to the ground's: nose up, left side up [rad]."""
    c, s = math.cos(pitch), math.sin(pitch)
    nose = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    c, s = math.cos(roll), math.sin(roll)
    return np.asarray(nose @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]))


WHEELS = ("front_left", "front_right", "rear_left", "rear_right")


def wheel_loads(m: Masses, slope: float = 0.0, p: Parameters = P) -> Floats:
    """Loads of the wheels [N] of a rigid machine on four springs, in the order of WHEELS, on ground that rises ahead.

    Unknown are height, pitch and roll; known are three balances, of forces along the ground's normal and of moments
    along and across. Forces along the ground act where the wheels stand, so they have no moment there.
    """
    hubs = np.array(
        [(p[f"axle.{a}"], s * p["track"] / 2, p["wheel.radius"]) for a in ("front", "rear") for s in (1, -1)]
    )
    down = np.array([-math.sin(slope), 0.0, -math.cos(slope)]) * G

    def loads(x: Floats) -> tuple[Floats, Floats, Floats]:
        rot = tilted(x[1], x[2])
        middle = hubs @ rot.T + np.array([0, 0, x[0]])
        force = p["tire.stiffness"] * (p["wheel.radius"] - middle[:, 2])
        lean = rot[
            2, 1
        ]  # a leaning wheel stands on its lower side: a tread with round edges, see plant/vehicle/tires/contact
        middle[:, 1] += lean * (p["wheel.radius"] - p["wheel.width"] / 2 / math.hypot(lean, 0.25))
        return force, middle, m.at @ rot.T + np.array([0, 0, x[0]])

    def unbalanced(x: Floats) -> Floats:
        force, middle, at = loads(x)
        weight = m.kg[:, None] * down
        torque = np.cross(at, weight).sum(axis=0)
        return np.array(
            [
                force.sum() + weight[:, 2].sum(),
                (force * middle[:, 1]).sum() + torque[0],
                -(force * middle[:, 0]).sum() + torque[1],
            ]
        ) / (m.total * G)

    found = fsolve(unbalanced, np.array([-0.03, 0.0, 0.0]), xtol=1e-12)
    return loads(found)[0]


def measured_loads(r: Rig) -> Floats:
    return np.array([r[f"wheel_{name}.load"] for name in WHEELS])


def settle(r: Rig, seconds: float = 3.5) -> Rig:
    """Stand still with the parking brake on."""
    r.hold(parking=1.0)
    r.run(seconds)
    return r


def cylinder_push(name: str, r: Rig) -> float:
    """Force along a cylinder by its two pressures, positive outwards [N]."""
    bore, rod = P[f"{name}.cylinder.bore"], P[f"{name}.cylinder.rod"]
    a, b = math.pi / 4 * bore**2, math.pi / 4 * (bore**2 - rod**2)
    return a * r[f"{name}.pressure_a"] - b * r[f"{name}.pressure_b"]


def expected_push(name: str, posture: dict[str, float], load: float, pitch: float) -> float:
    """Static moment of all that hangs on a joint, over the lever of its cylinder. `pitch` [rad] of the machine."""
    arm, up = pins({"swing": 0.0} | posture), complex(math.sin(pitch), math.cos(pitch))
    parts = {
        "boom": ("boom", "stick", "bucket", "rocker", "link", "load"),
        "stick": ("stick", "bucket", "rocker", "link", "load"),
    }
    pivot = {"boom": 0j, "stick": arm.stick}[name]
    foot = complex(P.point("boom.pin")[0], P.point("boom.pin")[2] + P["swing.height"])
    m = masses(load, **posture).only(*parts[name])
    moment = sum(
        kg * G * ((complex(at[0], at[2]) - foot - pivot) * up.conjugate()).imag * -1.0
        for kg, at in zip(m.kg, m.at, strict=True)
    )
    first, second = arm.cylinder[name]
    along = (second - first) / abs(second - first)
    lever = ((second - pivot).conjugate() * along).imag
    return moment / lever
