"""User-facing soil parameters, each with its unit, range, default and source.

The source gives the form of the digging force (Luaces eq. 3.23) and no numbers. The defaults are those of firm loam
under a bucket of a 20 t excavator: some 60 kN at a depth of 0.3 m and 0.5 m/s; densities, swell and slopes are those of
tables for earthwork.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from plant.soil.model import Kind


class SoilError(ValueError):
    """Soil, a bucket or a pipe that cannot be: what, the value given and what is allowed."""


class Parameter(NamedTuple):
    """Range and meaning of a number; its default stands with the field."""

    unit: str
    low: float
    high: float
    doc: str


PARAMETERS = {
    "density": Parameter("kg/m^3", 200, 8000, "bank density (eq. 3.24)"),
    "bulking": Parameter("1", 1, 3, "loose volume over bank volume (swell + 1)"),
    "repose": Parameter("rad", 0.05, 1.4, "angle of repose of loose soil"),
    "wall": Parameter("rad", 0.1, math.pi / 2, "steepest slope of a cut in bank soil; pi / 2 = it never breaks"),
    "mu_dig": Parameter("N s/m^(1+n)", 0, 1e9, "resistance along the cutting plate (eq. 3.23)"),
    "sigma_1": Parameter("1", 0, 1e6, "its share that is always there (eq. 3.23)"),
    "sigma_2": Parameter("m^(-3m)", 0, 1e6, "its share by the volume in the bucket (eq. 3.23)"),
    "power_m": Parameter("1", 0.1, 4, "power of the volume in the bucket (eq. 3.23)"),
    "power_n": Parameter("1", 0.1, 4, "power of the depth (eq. 3.23)"),
    "mu_cp": Parameter("N s/m^(1+n)", 0, 1e9, "resistance across the cutting plate, by compaction (eq. 3.23)"),
    "flow_time": Parameter("s", 1e-3, 60, "time in which the surplus of a tilted bucket falls to 1/e"),
    "spread": Parameter("m", 0, 10, "standard deviation of where a falling parcel lands (eq. 4.106, 4.107)"),
    "rays": Parameter("1", 1, 64, "points over which a parcel is laid down, n_r of eq. 4.108"),
    "gravity": Parameter("m/s^2", 0.1, 100, "acceleration of falling soil and of its weight (eq. 3.24)"),
}
"""What `SoilKind` takes."""

HYSTERESIS = math.radians(0.5)
"""Sliding begins this much above the angle of repose and ends at it, so that it does end."""


@dataclass(frozen=True)
class SoilKind:
    """One kind of soil. Ranges and meanings are in `PARAMETERS`; angles in rad."""

    density: float = 1700.0
    bulking: float = 1.25
    repose: float = math.radians(35)
    wall: float = math.radians(82)
    mu_dig: float = 3e5
    sigma_1: float = 1.0
    sigma_2: float = 0.5
    power_m: float = 1.0
    power_n: float = 1.0
    mu_cp: float = 5e5
    flow_time: float = 0.25
    spread: float = 0.15
    rays: int = 6
    gravity: float = 9.81

    def __post_init__(self) -> None:
        for name, p in PARAMETERS.items():
            check(f"SoilKind: {name}", getattr(self, name), p.low, p.high, p.unit)
        if not self.wall >= self.repose:
            raise SoilError(
                f"SoilKind: wall {self.wall:g} rad must be at least repose {self.repose:g} rad: cut soil stands steeper"
            )
        if self.rays != int(self.rays):
            raise SoilError(f"SoilKind: rays {self.rays!r} must be a whole number from 1 to 64")

    def constants(self) -> Kind:
        """As hot code takes it."""
        never = self.wall >= math.pi / 2 - 1e-9
        return Kind(
            density=self.density,
            bulking=self.bulking,
            repose=math.tan(self.repose),
            slide=math.tan(self.repose + HYSTERESIS),
            wall=1e9 if never else math.tan(self.wall),
            mu_dig=self.mu_dig,
            sigma_1=self.sigma_1,
            sigma_2=self.sigma_2,
            power_m=self.power_m,
            power_n=self.power_n,
            mu_cp=self.mu_cp,
            flow_time=self.flow_time,
            spread=self.spread,
            rays=int(self.rays),
            gravity=self.gravity,
        )


def check(name: str, value: object, low: float, high: float, unit: str) -> float:
    """A number within its range, or a SoilError that says name, value and range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SoilError(f"{name} {value!r} must be a number from {low:g} to {high:g} {unit}")
    return float(value)
