"""User-facing force laws: parameters with units, checked, and turned into the arrays of `Smooth`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plant.contact_law.model import Law, Smooth
from plant.contact_law.normal_force import (
    effective_shear,
    effective_young,
    hertz_damping_ratio,
    hertz_stiffness,
    linear_damping_ratio,
    mindlin_stiffness,
)

HERTZ = ("young", "poisson", "radius")
_BRISTLES = ("bristle_stiffness", "bristle_damping", "stick_speed", "strain")
_ALL = ("friction", "stiction", "restitution", "adhesion", "viscous", "stiffness")
TAKES = {
    Law.HUNT_CROSSLEY: (*_ALL, *HERTZ, "exponent", "hysteresis", *_BRISTLES),
    Law.LANKARANI_NIKRAVESH: (*_ALL, *HERTZ, "exponent", "hysteresis", *_BRISTLES),
    Law.KELVIN_VOIGT: (*_ALL, "damping", *_BRISTLES),
    Law.SMC: (*_ALL, *HERTZ, "shear_stiffness"),
    Law.WANG: (*_ALL, *HERTZ, "exponent", "dissipation", "damping", "shear_stiffness", "shear_damping"),
    Law.FOUNDATION: ("modulus", "layer", "dissipation", "friction", "slow"),
}
"""What each law may be given."""

LAWS = {law.name.lower(): law for law in Law}
POISSON = 0.3  # where none is given
SIDES = (*HERTZ, "modulus", "layer")  # one number for both, or one for each of the two bodies
DISSIPATION = 0.5  # [s/m] of a foundation, where none is given
SLOW = 1e-3  # [m/s] the same, slip at which friction is near its full size


class LawError(ValueError):
    """A force law that can not be: a parameter unknown, missing or out of range."""


@dataclass(frozen=True)
class ForceLaw:
    """A force law of a pair of materials, all parameters settled; the fields are those of `Smooth`."""

    law: Law = Law.RIGID
    stiffness: float = 0.0
    exponent: float = 1.5
    hysteresis: float = 0.0
    dissipation: float = 0.0
    damping: float = 0.0
    damping_ratio: float = 0.0
    adhesion: float = 0.0
    friction: float = 0.5
    stiction: float = 0.5
    viscous: float = 0.0
    bristle_stiffness: float = -1.0
    bristle_damping: float = -1.0
    stick_speed: float = -1.0
    strain: float = -1.0
    shear_stiffness: float = 0.0
    shear_damping: float = 0.0


NO_LAW = ForceLaw()
"""No force law."""


def force_law(name: str, given: Mapping[str, Any]) -> ForceLaw:
    """The law `name` with what was given; `None` counts as not given."""
    law = LAWS.get(name, Law.RIGID)
    if law == Law.RIGID:
        raise LawError(f"law {name!r} is not known: {', '.join(LAWS)}")
    given = {key: value for key, value in given.items() if value is not None}
    if strange := sorted(set(given) - set(TAKES[law])):
        raise LawError(f"law {name!r} takes no {', '.join(strange)}; it takes {', '.join(TAKES[law])}")
    _check(given)
    if law == Law.FOUNDATION:
        return _foundation(given)
    friction = float(given.get("friction", 0.5))
    made: dict[str, Any] = {
        "friction": friction,
        "stiction": float(given.get("stiction", friction)),
        **{k: float(v) for k, v in given.items() if k in Smooth._fields},
        **_stiffness(name, law, given),
        **_damping(law, given),
    }
    if made["stiction"] < friction:
        raise LawError(f"stiction {made['stiction']} must not be below friction {friction}")
    return ForceLaw(law=law, **made)


def _check(given: Mapping[str, Any]) -> None:
    """Numbers within their ranges; young, poisson and radius, modulus and layer may be one for each side."""
    positive = (
        *("stiffness", "young", "radius", "bristle_stiffness", "stick_speed", "shear_stiffness"),
        *("modulus", "layer", "slow"),
    )
    for key, value in given.items():
        values = [value] if isinstance(value, int | float) else list(value)
        low, high = (
            (1.0, 3.0) if key == "exponent" else (0.0, 1.0) if key in ("restitution", "strain") else (0.0, math.inf)
        )
        if key == "poisson":
            high = 0.5
        if len(values) > 1 and key not in SIDES:
            raise LawError(f"{key} is one number, not {value!r}")
        for v in values:
            if not (low <= v <= high and math.isfinite(v)) or (v == 0.0 and key in positive):
                least = "above 0" if key in positive else f"at least {low:g}"
                raise LawError(f"{key} {v!r} must be {least}" + ("" if math.isinf(high) else f" and at most {high:g}"))


def _foundation(given: Mapping[str, Any]) -> ForceLaw:
    """An elastic layer, or one on each body: they give way one behind the other."""
    if missing := [key for key in ("modulus", "layer") if key not in given]:
        raise LawError(
            f"law 'foundation' needs {' and '.join(missing)}: modulus [Pa] and thickness [m] of the elastic layer"
        )
    modulus, layer = np.atleast_1d(given["modulus"]), np.atleast_1d(given["layer"])
    if max(modulus.size, layer.size) > 2:
        raise LawError(f"modulus {given['modulus']!r} and layer {given['layer']!r}: one number, or one for each body")
    friction = float(given.get("friction", 0.5))
    return ForceLaw(
        law=Law.FOUNDATION,
        stiffness=1.0 / float((layer / modulus).sum()),
        dissipation=float(given.get("dissipation", DISSIPATION)),
        friction=friction,
        stiction=friction,
        stick_speed=float(given.get("slow", SLOW)),
    )


def _stiffness(name: str, law: Law, given: Mapping[str, Any]) -> dict[str, float]:
    """Normal and shear stiffness, as given or by Hertz and Mindlin."""
    hertz = [key for key in ("young", "radius") if key in given]
    if ("stiffness" in given) == bool(hertz) or (hertz and len(hertz) < 2):
        ways = "stiffness, or young and radius" if "young" in TAKES[law] else "stiffness"
        raise LawError(f"law {name!r} needs {ways} (flat surfaces have no radius: give a stiffness)")
    linear = law == Law.KELVIN_VOIGT or (law == Law.WANG and not hertz)
    exponent = float(given.get("exponent", 1.0 if linear else 1.5))
    if hertz and exponent != 1.5:
        raise LawError(f"young and radius mean Hertz's exponent 1.5, not {exponent}")
    poisson = given.get("poisson", POISSON)
    if hertz:
        k = hertz_stiffness(given["young"], poisson, given["radius"])
    else:
        k = float(given["stiffness"])
    made = {"stiffness": k, "exponent": exponent}
    if "shear_stiffness" in given:
        made["shear_stiffness"] = float(given["shear_stiffness"])
    elif law == Law.SMC and hertz:
        made["shear_stiffness"] = mindlin_stiffness(given["young"], poisson, given["radius"])
    elif law == Law.SMC:  # 8 G sqrt(R) with k = 4/3 E sqrt(R); the modulus itself drops out
        made["shear_stiffness"] = 6.0 * k * effective_shear(1.0, poisson) / effective_young(1.0, poisson)
    elif law == Law.WANG:
        if exponent != 1.0:
            raise LawError(f"law {name!r} with exponent {exponent:g} needs a shear_stiffness [N/m]")
        made["shear_stiffness"] = k
    return made


def _damping(law: Law, given: Mapping[str, Any]) -> dict[str, float]:
    """What the restitution means to each law."""
    e = float(given.get("restitution", 0.0))
    if law == Law.HUNT_CROSSLEY:
        return {"hysteresis": float(given.get("hysteresis", 1.5 * (1.0 - e)))}
    if law == Law.LANKARANI_NIKRAVESH:
        return {"hysteresis": float(given.get("hysteresis", 0.75 * (1.0 - e * e)))}
    if law == Law.KELVIN_VOIGT:
        return {} if "damping" in given else {"damping_ratio": linear_damping_ratio(e)}
    if law == Law.SMC:
        return {"damping_ratio": hertz_damping_ratio(e)}
    if "dissipation" in given or "damping" in given:
        return {"dissipation": float(given.get("dissipation", 0.0))}
    return {"dissipation": 1.0 - e}


def smooth_table(laws: Sequence[ForceLaw]) -> Smooth:
    """One entry for each pair of materials."""
    columns = {name: np.array([getattr(f, name) for f in laws], float) for name in Smooth._fields if name != "law"}
    return Smooth(law=np.array([f.law for f in laws], np.int64), **columns)
