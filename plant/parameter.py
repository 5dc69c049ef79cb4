"""User-facing parameters: dataclass fields that know their unit, range and meaning, checked in one place.

@dataclass(frozen=True)
class Spring(Checked):
    stiffness: float = quantity(1e5, "N/m", low=0.0, above=True, doc="force over deflection")

Spring(stiffness=-1.0)      ValueError: Spring.stiffness = -1.0 N/m must be above 0: force over deflection
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any


def quantity(
    default: float,
    unit: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    infinite: bool = False,
    doc: str,
) -> Any:
    """A number with a unit ("1" for a plain one) that lies in low .. high.

    With `above` it may not be `low` itself; it must be finite unless `infinite`.
    """
    about = {"unit": unit, "low": low, "high": high, "above": above, "infinite": infinite, "doc": doc}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Checked:
    """A dataclass whose quantities are checked as it is made."""

    def __post_init__(self) -> None:
        for f in fields(self):
            if "unit" in f.metadata:
                _check(type(self).__name__, f.name, getattr(self, f.name), f.metadata)


def _check(owner: str, name: str, value: Any, about: Any) -> None:
    unit = "" if about["unit"] == "1" else f" {about['unit']}"
    low, high = about["low"], about["high"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    inside = number and low <= value <= high and not (about["above"] and value == low)
    if inside and (math.isfinite(value) or about["infinite"]):
        return
    allowed = [f"{'above' if about['above'] else 'at least'} {low:g}"] if math.isfinite(low) else []
    allowed += [f"at most {high:g}"] if math.isfinite(high) else []
    wanted = " and ".join(allowed) or "a finite number"
    raise ValueError(f"{owner}.{name} = {value!r}{unit} must be {wanted}: {about['doc']}")
