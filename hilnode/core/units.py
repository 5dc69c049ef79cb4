"""Unit conversion at the boundary: a number in one unit to a number in another.

The tick knows numbers only, so every conversion is folded into one scale and one offset before the run. pint does
the work and is imported on the first real conversion: a configuration whose units agree never pays for it.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

_FACTOR = r"(?:1|%|°|[^\W\d][\w%]*(?:(?:\^|\*\*)-?[0-9])?)"
_GROUP = rf"(?:{_FACTOR}|\({_FACTOR}(?:[ ]?[*/·][ ]?{_FACTOR})*\))"
_UNIT = re.compile(rf"{_GROUP}(?:[ ]?[*/·][ ]?{_GROUP})*")
"""What a unit looks like. Narrower than pint's own language, which would also evaluate `9**9**9`, for ever."""

LONGEST = 40
"""Letters in a unit; the longest in use are like `kg*m^2/(s*rad)`."""

EXAMPLES = "'rad', 'N*m', 'm/s^2', 'degC' or 'J/(kg*K)'"


class UnitError(ValueError):
    """A unit that cannot be used: the message says which, why and what to write instead."""


def check(unit: str) -> str:
    """The unit itself if it is written like one, whether or not anybody knows it."""
    if len(unit) > LONGEST or not _UNIT.fullmatch(unit):
        raise UnitError(f"{unit[:LONGEST]!r} is not written like a unit; write one such as {EXAMPLES}")
    return unit


def conversion(from_unit: str, to_unit: str) -> tuple[float, float]:
    """`(scale, offset)` such that a value in `to_unit` is `scale * value in from_unit + offset`.

    An angle is a quantity of its own here. pint by itself takes a radian for a plain number, and so would turn 60 rpm
    into 6.28 Hz without a word.
    """
    if from_unit == to_unit:
        return 1.0, 0.0
    return _convert(check(from_unit), check(to_unit))


@functools.cache
def _registry() -> Any:
    try:
        import pint
    except ImportError as error:
        raise UnitError("converting units needs pint, which is not installed: pip install hilnode[units]") from error
    registry = pint.UnitRegistry()
    registry.define("newton_meter = newton * meter = Nm")  # else read as number * metre
    return registry


@functools.cache
def _convert(from_unit: str, to_unit: str) -> tuple[float, float]:
    registry = _registry()
    source, target = _parse(registry, from_unit), _parse(registry, to_unit)

    def convert(value: float) -> float:
        return float(registry.Quantity(value, source).to(target).magnitude)

    def step(unit: Any) -> Any:  # 1 degC is 274.15 K, but a step of 1 degC is a step of 1 K
        return registry.Quantity(1.0, unit) - registry.Quantity(0.0, unit)

    what = f"cannot convert {from_unit!r} into {to_unit!r}"
    try:
        same_angle = _angle(registry, source) == _angle(registry, target)
        offset = convert(0.0)
        scale = float(step(source).to(step(target).units).magnitude)
        straight = math.isclose(convert(1000.0), 1000.0 * scale + offset, rel_tol=1e-9)
    except Exception as error:  # pint meets nonsense with errors of many kinds, AssertionError among them
        raise UnitError(f"{what}: they measure different things") from error
    if not same_angle:
        raise UnitError(
            f"{what}: one of them holds an angle, the other does not (a rotation is in 'rpm', 'turn/s' or 'rad/s')"
        )
    if not straight or not math.isfinite(scale) or not math.isfinite(offset):
        raise UnitError(f"{what}: only a scale and an offset can be applied, and these need a curve")
    return scale, offset


def _angle(registry: Any, unit: Any) -> float:
    """The power of the radian in a unit: 1 for rpm, 0 for Hz."""
    return float(dict(registry.Quantity(1.0, unit).to_root_units().unit_items()).get("radian", 0))


def _parse(registry: Any, unit: str) -> Any:
    try:
        return registry.parse_units(unit.replace("·", "*"))
    except Exception as error:  # as above
        raise UnitError(f"unknown unit {unit!r}; write one such as {EXAMPLES}") from error
