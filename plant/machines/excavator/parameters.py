"""The numbers of the machine, each with its unit, its range and where it comes from.

The machine is of the class of the Liebherr A924, the one that Luaces chapter 6 models. The thesis prints none of its
masses or dimensions, so:

    trade       figures of the A 922 and A 924 Litronic in the trade press: 21.8 to 25 t, 120 kW, two pumps of 220 l/min
    luaces      topology and degrees of freedom: figure 6.2, table 6.1
    class       round figures that all wheeled excavators of 20 t share within some percent
    estimate    ours: chosen so that reach, digging force, axle loads and lift capacity come out as for the class

Overrides are text with a unit: `{"boom.mass" = "1.7 t", "pump.flow" = "400 l/min"}`; any unit of the same kind will do.
Points are in the frame of their body (see `mechanism`), x forward or along the link, z up or across it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilnode.signals import nearest

Number = float | tuple[float, ...]

UNITS: dict[str, dict[str, float]] = {  # kind -> unit -> factor to SI
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "kg": {"kg": 1.0, "t": 1e3},
    "rad": {"rad": 1.0, "deg": math.pi / 180},
    "m/s": {"m/s": 1.0, "km/h": 1 / 3.6, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "rpm": math.pi / 30, "deg/s": math.pi / 180},
    "Pa": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "bar": 1e5},
    "m^3/s": {"m^3/s": 1.0, "l/min": 1e-3 / 60},
    "N": {"N": 1.0, "kN": 1e3},
    "N m": {"N m": 1.0, "kN m": 1e3},
    "N/m": {"N/m": 1.0, "kN/m": 1e3, "MN/m": 1e6},
    "N s/m": {"N s/m": 1.0, "kN s/m": 1e3},
    "W": {"W": 1.0, "kW": 1e3},
    "s": {"s": 1.0, "ms": 1e-3},
    "m^3": {"m^3": 1.0, "l": 1e-3},
    "1": {"1": 1.0, "": 1.0, "%": 1e-2},
}


class ParameterError(ValueError):
    """A parameter that cannot be: name, value, what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One number or point."""

    value: Number  # SI
    unit: str
    low: float
    high: float
    source: str


def _table() -> dict[str, Parameter]:
    made: dict[str, Parameter] = {}

    def add(name: str, value: Number, unit: str, low: float, high: float, source: str) -> None:
        factor = next(table[unit] for table in UNITS.values() if unit in table)
        base = next(kind for kind, table in UNITS.items() if unit in table)
        si = tuple(v * factor for v in value) if isinstance(value, tuple) else value * factor
        made[name] = Parameter(si, base, low * factor, high * factor, source)

    def body(name: str, mass: float, com: tuple[float, float, float], size: tuple[float, float, float]) -> None:
        """Mass, centre of mass in the body's frame, and the box of even density with its moments of inertia."""
        add(f"{name}.mass", mass, "kg", 1, 50_000, "estimate: shares of a 20 t machine")
        add(f"{name}.com", com, "m", -10, 10, "estimate")
        add(f"{name}.size", size, "m", 0.01, 20, "estimate: box with the moments of inertia of the body")

    # undercarriage: frame on the ground under the swing axis
    body("undercarriage", 5800, (-0.10, 0.0, 0.85), (3.2, 1.6, 0.7))
    add("axle.front", 1.25, "m", 0.5, 4, "class: wheelbase 2.6 m")
    add("axle.rear", -1.35, "m", -4, -0.5, "class: wheelbase 2.6 m")
    add("track", 1.95, "m", 1, 4, "class: twin tires on a machine 2.55 m wide, between the middles of the twins")
    body("wheel", 290, (0.0, 0.0, 0.0), (0.95, 0.55, 0.95))
    add("wheel.radius", 0.52, "m", 0.2, 1.5, "class: 10.00-20")
    add("wheel.width", 0.56, "m", 0.1, 1.5, "class: twins of 10.00-20")
    add("tire.stiffness", 1.6, "MN/m", 0.1, 20, "class: a twin of 10.00-20 at 8 bar sinks 3 cm under 5 t")
    add("tire.damping", 36, "kN s/m", 0, 140, "estimate: a fifth of critical for the whole machine")
    add(
        "tire.grip",
        0.7,
        "1",
        0.05,
        1.5,
        "estimate: of moist soil, against the dry road that the tire's law is given for",
    )
    add("steer.most", 28, "deg", 1, 60, "class")
    add("steer.speed", 25, "deg/s", 1, 200, "class")
    body("blade", 480, (0.55, 0.0, -0.20), (0.25, 2.45, 0.55))
    add("blade.pin", (1.62, 0.0, 0.78), "m", -5, 5, "estimate")
    add("blade.edge", (0.62, 0.0, -0.52), "m", -5, 5, "estimate: lower edge of the plate, from the pin")
    add("blade.speed", 12, "deg/s", 1, 90, "estimate")
    add("blade.range", (-45.0, 30.0), "deg", -90, 90, "estimate: down and up from where the edge is 0.26 m high")
    body("outrigger", 260, (0.40, 0.0, -0.05), (0.9, 0.25, 0.18))
    add("outrigger.pin", (-1.98, 0.62, 0.75), "m", -5, 5, "estimate: the left one; the right one mirrored")
    add("outrigger.pad", (0.88, 0.0, -0.12), "m", -5, 5, "estimate: middle of the pad, from the pin, x along the leg")
    add("outrigger.speed", 14, "deg/s", 1, 90, "estimate")
    add("outrigger.range", (-55.0, 60.0), "deg", -90, 90, "estimate: down and up from level")
    # uppercarriage: frame on the swing axis at the height of the ring
    body("uppercarriage", 8800, (-0.95, 0.0, 0.75), (3.6, 2.5, 1.5))
    add("swing.height", 1.20, "m", 0.3, 4, "class: upper edge of the ring")
    add("swing.speed", 8.5, "rpm", 0.5, 30, "class")
    add("swing.torque", 58, "kN m", 1, 500, "class")
    add("swing.time", 1.0, "s", 0.05, 5, "estimate: from rest to full speed")
    # arm, in the plane y = 0 of the uppercarriage; boom, stick and bucket have their frames at their pins
    add("boom.pin", (0.30, 0.0, 0.72), "m", -5, 5, "estimate")
    body("boom", 1750, (2.30, 0.0, 0.42), (5.2, 0.45, 0.75))
    add("boom.length", 5.05, "m", 2, 10, "class: monobloc boom")
    add("boom.cylinder.foot", (0.82, 0.0, 0.18), "m", -5, 5, "estimate: on the uppercarriage")
    add("boom.cylinder.rod_pin", (2.20, 0.0, 0.45), "m", -10, 10, "estimate: on the boom")
    add("boom.cylinder.bore", 162, "mm", 20, 500, "class: two of 115 mm as one of the same area")
    add("boom.cylinder.rod", 113, "mm", 5, 490, "class: two of 80 mm")
    add("boom.cylinder.lengths", (1.50, 2.66), "m", 0.2, 6, "estimate: closed and open, from pin to pin")
    add("boom.speed", 0.34, "m/s", 0.01, 2, "class: up in 3.5 s")
    body("stick", 800, (0.95, 0.0, 0.08), (3.2, 0.35, 0.5))
    add("stick.length", 2.45, "m", 0.5, 8, "class")
    add("stick.cylinder.foot", (3.05, 0.0, 0.75), "m", -10, 10, "estimate: on the boom")
    add("stick.cylinder.rod_pin", (-0.55, 0.0, 0.15), "m", -5, 5, "estimate: on the stick's tail")
    add("stick.cylinder.bore", 130, "mm", 20, 500, "class")
    add("stick.cylinder.rod", 90, "mm", 5, 490, "class")
    add("stick.cylinder.lengths", (1.66, 2.63), "m", 0.2, 6, "estimate")
    add("stick.speed", 0.36, "m/s", 0.01, 2, "class: in within 2.7 s")
    body("bucket", 760, (0.62, 0.0, 0.38), (1.3, 1.2, 0.8))
    add("bucket.radius", 1.45, "m", 0.4, 4, "class: pin to teeth")
    add("bucket.width", 1.20, "m", 0.2, 4, "class")
    add("bucket.ear", (0.40, 95.0), "1", -360, 360, "estimate: distance from the pin [m], angle from the teeth [deg]")
    add("bucket.struck", 0.85, "m^3", 0.05, 10, "class")
    add("bucket.heaped", 1.05, "m^3", 0.05, 12, "class")
    add("rocker.pin", (2.03, 0.0, 0.05), "m", -5, 8, "estimate: on the stick")
    body("rocker", 75, (0.275, 0.0, 0.0), (0.55, 0.3, 0.1))
    add("rocker.length", 0.55, "m", 0.1, 3, "estimate")
    body("link", 95, (0.25, 0.0, 0.0), (0.5, 0.25, 0.12))
    add("link.length", 0.50, "m", 0.1, 3, "estimate")
    add("bucket.cylinder.foot", (0.45, 0.0, 0.50), "m", -5, 5, "estimate: on the stick")
    add("bucket.cylinder.bore", 110, "mm", 20, 500, "class")
    add("bucket.cylinder.rod", 75, "mm", 5, 490, "class")
    add("bucket.cylinder.lengths", (1.32, 2.11), "m", 0.2, 6, "estimate")
    add("bucket.speed", 0.38, "m/s", 0.01, 2, "class")
    # hydraulics and drive
    add("pump.flow", 440, "l/min", 10, 2000, "trade: two pumps of 220 l/min")
    add("pump.relief", 350, "bar", 50, 600, "class")
    add("pump.margin", 20, "bar", 1, 100, "class: load-sensing")
    add("engine.power", 120, "kW", 5, 2000, "trade")
    add("engine.idle", 900, "rpm", 100, 3000, "class")
    add("engine.rated", 1900, "rpm", 200, 4000, "trade")
    add("lever.time", 0.15, "s", 0, 2, "estimate: how fast a guided cylinder follows its lever")
    add("drive.speed", 20, "km/h", 1, 80, "class: in the highest gear")
    add("drive.pull", 110, "kN", 1, 1000, "class: at the wheels, in the lowest gear")
    add("drive.gears", (0.25, 0.6, 1.0), "1", 0.01, 1, "estimate: speed of each gear as a share of the highest")
    add(
        "brake.torque",
        40,
        "kN m",
        1,
        500,
        "estimate: of all wheels together; a third of g, and the rear wheels lock first",
    )
    return made


TABLE = _table()
"""Every parameter with its default."""


class Parameters:
    """The table with overrides; `p["boom.mass"]` is a float, `p.point("boom.pin")` a tuple, both SI."""

    def __init__(self, overrides: Mapping[str, Any] | None = None) -> None:
        self._values = {name: parameter.value for name, parameter in TABLE.items()}
        for name, given in (overrides or {}).items():
            if name not in TABLE:
                raise ParameterError(f"no parameter {name!r} of the excavator: {nearest(name, list(TABLE))}")
            self._values[name] = _read(name, given)
        _check(self)

    def __getitem__(self, name: str) -> float:
        value = self._values[name]
        if isinstance(value, tuple):
            raise TypeError(f"{name} has {len(value)} numbers: ask for point({name!r})")
        return value

    def point(self, name: str) -> tuple[float, ...]:
        value = self._values[name]
        return value if isinstance(value, tuple) else (value,)


_TEXT = re.compile(r"\s*((?:[-+0-9.,\s()]|[eE](?=[-+0-9]))+?)\s*((?![eE][-+0-9])[a-zA-Z%][a-zA-Z0-9/^ %]*)?\s*")


def _read(name: str, given: Any) -> Number:
    """An override in SI: text with a unit, or for plain numbers a plain number."""
    known = TABLE[name]
    units = UNITS[known.unit]
    count = len(known.value) if isinstance(known.value, tuple) else 1
    what = "a number" if count == 1 else f"{count} numbers with commas"
    want = f"{what} and a unit ({', '.join(u for u in units if u)})"
    text = str(given) if known.unit == "1" and isinstance(given, (int, float)) else given
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    unit = (match.group(2) or "").strip() if match else ""
    if match is None or unit not in units:
        raise ParameterError(f"{name} = {given!r}: must be {want}, such as {_shown(known)!r}")
    try:
        values = tuple(float(v) * units[unit] for v in match.group(1).strip("() ").split(","))
    except ValueError as error:
        raise ParameterError(f"{name} = {given!r}: must be {want}") from error
    if len(values) != count or not all(math.isfinite(v) and known.low <= v <= known.high for v in values):
        raise ParameterError(f"{name} = {given!r}: must be {want} from {known.low:g} to {known.high:g} {known.unit}")
    return values if isinstance(known.value, tuple) else values[0]


def _shown(known: Parameter) -> str:
    values = known.value if isinstance(known.value, tuple) else (known.value,)
    return f"{', '.join(f'{v:g}' for v in values)} {known.unit}".strip()


def _check(p: Parameters) -> None:
    """What one number alone cannot tell."""
    for name in ("boom", "stick", "bucket"):
        closed, opened = p.point(f"{name}.cylinder.lengths")
        if not 0 < opened - closed < closed:
            raise ParameterError(
                f"{name}.cylinder.lengths {closed:g}, {opened:g} m: a cylinder of this stroke needs a closed length "
                f"above {opened - closed:g} m and below the open one"
            )
        if not p[f"{name}.cylinder.rod"] < p[f"{name}.cylinder.bore"]:
            raise ParameterError(f"{name}.cylinder.rod must be thinner than its bore")
    if not p["axle.rear"] < p["axle.front"]:
        raise ParameterError("axle.rear must lie behind axle.front")
    if not p["engine.idle"] < p["engine.rated"]:
        raise ParameterError("engine.idle must be slower than engine.rated")
    if not p["bucket.struck"] <= p["bucket.heaped"]:
        raise ParameterError("bucket.struck must not be more than bucket.heaped")
