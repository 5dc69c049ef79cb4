"""User-facing `Tire` and `Wheel`, and the arrays that the kernels work on, `Tires`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import F1, F2, I1, viewer
from plant.parameter import Checked, quantity
from plant.vehicle.tires.laws import TireLaw, code_of
from plant.vehicle.tires.magic_formula import MagicFormula

COLUMNS = 20  # constants of a law, at most
SAMPLES = 6  # points of the ground under a wheel


@dataclass(frozen=True)
class Tire(Checked):
    """A tire; the defaults are round numbers for a wheeled excavator of 20 t, no product's."""

    law: TireLaw = field(default_factory=MagicFormula)
    radius: float = quantity(0.5, "m", low=0.0, high=5.0, above=True, doc="without load")
    width: float = quantity(0.3, "m", low=0.0, high=5.0, above=True, doc="of the tread")
    stiffness: float = quantity(1.0e6, "N/m", low=0.0, high=1e9, above=True, doc="load over deflection")
    stiffening: float = quantity(0.0, "N/m^2", low=0.0, high=1e12, doc="load over deflection squared, added to it")
    damping: float = quantity(1.0e4, "N*s/m", low=0.0, high=1e8, doc="load over speed of deflection")
    nominal_load: float = quantity(5.0e4, "N", low=0.0, high=1e8, above=True, doc="load that the law is given for")
    relaxation_x: float = quantity(0.3, "m", low=0.0, high=10.0, above=True, doc="way until slip along has settled")
    relaxation_y: float = quantity(0.5, "m", low=0.0, high=10.0, above=True, doc="way until slip across has settled")
    low_speed: float = quantity(2.5, "m/s", low=0.0, high=50.0, above=True, doc="below it slip is damped")
    low_speed_damping: float = quantity(0.01, "s", low=0.0, high=0.1, doc="damping over tangential stiffness, at rest")
    rolling_resistance: float = quantity(0.015, "1", low=0.0, high=1.0, doc="drag over load of a free wheel")
    camber_gain: float = quantity(0.05, "1", low=0.0, high=1.0, doc="slip across that a leaning wheel makes, over lean")

    def standing_stiffness(self) -> tuple[float, float]:
        """Tangential stiffness at rest and nominal load, along and across [N/m]."""
        along, across = self.law.slopes(self.nominal_load)
        return along / self.relaxation_x, across / self.relaxation_y

    def longest_step(self, mass: float, inertia: float) -> float:
        """Longest step [s] that a wheel of this mass [kg] and moment about its axis [kg m^2] is good for.

        The stiffest of its own motions (up, along with spinning, across) then turns by half a radian in a step, and
        none of the dampers takes more than half of a speed away.
        """
        cx, cy = self.standing_stiffness()
        spun = inertia / self.radius**2
        spun = spun * mass / (spun + mass)
        pairs = [
            (self.stiffness, self.damping, mass),
            (cx, cx * self.low_speed_damping, spun),
            (cy, cy * self.low_speed_damping, mass),
        ]
        return min(min(0.5 / math.sqrt(k / m), 0.5 * m / max(c, 1e-30)) for k, c, m in pairs)


@dataclass(frozen=True)
class Wheel:
    """A tire on a body: which one, its axis and its middle in the body's frame, from the centre of mass."""

    body: int
    tire: Tire = field(default_factory=Tire)
    axis: tuple[float, float, float] = (0.0, 1.0, 0.0)
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Tires(NamedTuple):
    """All wheels of a machine."""

    # constant
    body: I1  # [w]
    axis: F2  # [w, 3] in the body's frame, unit
    centre: F2  # [w, 3] from the centre of mass, in the body's frame [m]
    law: I1  # [w] code of `laws`
    column: F2  # [w, COLUMNS] its constants
    radius: F1  # [w] and so on: see `Tire`
    width: F1
    stiffness: F1
    stiffening: F1
    damping: F1
    relax: F2  # [w, 2] relaxation lengths along and across [m]
    low_speed: F1
    low_damping: F1
    rolling: F1
    camber_gain: F1
    friction: F1  # [w] largest force over load
    # set from outside
    grip: F1  # [w] friction of the ground under it over that of the law, 1 = as given
    # state
    fresh: I1  # [w] 1 = the ground under it is not known yet
    height: F2  # [w, SAMPLES] the ground's, as the wheel feels it [m]
    middle: F2  # [w, 2] where the wheel was [m]
    shift: F1  # [w] how far the samples are to be moved by the new normal [m]
    lean: F2  # [w, 2] of the normal, x and y: where to look for the contact
    stretch: F2  # [w, 2] deflection of the tread along and across [m]
    wind: F1  # [w] turn about the axis that rolling resistance has stored [rad]
    twist: F1  # [w] turn about the normal that the patch has stored [rad]
    # computed by `tire_wrenches`
    touch: I1  # [w] 1 = on the ground
    depth: F1  # [w] deflection [m]
    load: F1  # [w] normal force [N]
    along: F1  # [w] force to where it rolls [N]
    across: F1  # [w] force to its left [N]
    moment: F1  # [w] aligning moment about the normal [N m]
    slip: F1  # [w] slip ratio of the tread
    angle: F1  # [w] slip angle of the tread [rad], positive with `across`
    camber: F1  # [w] angle between axis and ground [rad], positive where its left side is up
    point: F2  # [w, 3] of contact, world [m]
    force: F2  # [w, 3] there, world [N]


view_tires = viewer(Tires)


def build_tires(wheels: Sequence[Wheel]) -> Tires:
    """The arrays of these wheels, ready for the first step. Lay them down as a `Struct` for hot code."""
    n = len(wheels)
    tires = [w.tire for w in wheels]
    for k, w in enumerate(wheels):
        _check_wheel(k, w)
    column = np.zeros((n, COLUMNS))
    for k, t in enumerate(tires):
        given = t.law.columns(t.nominal_load, t.radius)
        column[k, : len(given)] = given
    axis = np.array([w.axis for w in wheels], float).reshape(-1, 3)
    names = ("radius", "width", "stiffness", "stiffening", "damping", "low_speed", "camber_gain")
    return Tires(
        body=np.array([w.body for w in wheels], np.int64),
        axis=axis / np.linalg.norm(axis, axis=1, keepdims=True),
        centre=np.array([w.centre for w in wheels], float).reshape(-1, 3),
        law=np.array([code_of(t.law) for t in tires], np.int64),
        column=column,
        **{name: np.array([getattr(t, name) for t in tires], float) for name in names},
        relax=np.array([(t.relaxation_x, t.relaxation_y) for t in tires], float).reshape(-1, 2),
        low_damping=np.array([t.low_speed_damping for t in tires], float),
        rolling=np.array([t.rolling_resistance for t in tires], float),
        friction=np.array([t.law.peak_friction for t in tires], float),
        grip=np.ones(n),
        fresh=np.ones(n, np.int64),
        height=np.zeros((n, SAMPLES)),
        touch=np.zeros(n, np.int64),
        **{name: np.zeros((n, 2)) for name in ("middle", "lean", "stretch")},
        **{name: np.zeros((n, 3)) for name in ("point", "force")},
        **{name: np.zeros(n) for name in ("shift", "wind", "twist", "depth", "load", "along", "across")},
        **{name: np.zeros(n) for name in ("moment", "slip", "angle", "camber")},
    )


def _check_wheel(k: int, wheel: Wheel) -> None:
    if not isinstance(wheel.body, int | np.integer) or wheel.body < 0:
        raise ValueError(f"wheel {k}: body = {wheel.body!r} must be the number of a body, at least 0")
    code_of(wheel.tire.law)
    for name in ("axis", "centre"):
        given = np.array(getattr(wheel, name), float)
        if given.shape != (3,) or not np.isfinite(given).all():
            raise ValueError(f"wheel {k}: {name} = {getattr(wheel, name)!r} must be three finite numbers")
    if not np.linalg.norm(np.array(wheel.axis, float)) > 1e-9:
        raise ValueError(f"wheel {k}: axis = {wheel.axis!r} must not be zero: it says where the wheel's left side is")


@kernel
def clear_wheel(tires, w):
    """No contact, nothing stretched, no force."""
    tires.fresh[w] = 1
    lift_wheel(tires, w)


@kernel
def lift_wheel(tires, w):
    """No contact; the ground below is still known."""
    tires.stretch[w, 0], tires.stretch[w, 1] = 0.0, 0.0
    tires.wind[w], tires.twist[w] = 0.0, 0.0
    tires.touch[w] = 0
    tires.depth[w], tires.load[w], tires.along[w], tires.across[w], tires.moment[w] = 0.0, 0.0, 0.0, 0.0, 0.0
    tires.slip[w], tires.angle[w], tires.camber[w] = 0.0, 0.0, 0.0
    for i in range(3):
        tires.force[w, i] = 0.0


@kernel
def reset_tires(tires):
    """Every wheel as if it had just been put where it is. `grip` stays as it was set."""
    for w in range(tires.body.size):
        clear_wheel(tires, w)
