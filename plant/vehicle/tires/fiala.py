"""The Fiala tire: brush bristles on a patch with parabolic pressure, which stick at the front and slide at the rear.

With z = C s / (3 mu Fz), the slip over the slip at which the whole patch slides:

    F  = mu Fz (3 z - 3 z^2 + z^3)   for z < 1,  mu Fz beyond     Fiala 1954; = mu Fz (1 - (1 - z)^3)
    Mz = -mu Fz a z (1 - z)^3        for z < 1,  0 beyond         a half the length of the patch
    mu = mu0 - (mu0 - mu1) min(s, 1)                              friction falls with the whole slip s

Both slips together: z is the length of (Cx sx, Cy sy) / (3 mu Fz), the force points along it (Pacejka 2012 section
3.2.3), so |F| <= mu Fz. Pure slip across is Fiala's cubic, which slides altogether from tan(angle) = 3 mu Fz / Cy on.
The slopes grow with the load as C = C0 (Fz / F0)^n.

Ref: E. Fiala, Seitenkraefte am rollenden Luftreifen, VDI-Zeitschrift 96, 1954; H. B. Pacejka, Tire and Vehicle
Dynamics, 3rd edition, 2012, section 3.2.
Limits: no carcass bending, no camber of its own; slip along uses the same cubic, with its own slope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hilnode.core.jit import inline, kernel
from plant.parameter import Checked, quantity
from plant.vehicle.tires.slip import direction

REFERENCE = "Fiala 1954; Pacejka 2012 section 3.2"
KX, KY, POWER, MU0, MU1, F0 = range(6)


@dataclass(frozen=True)
class Fiala(Checked):
    """Slopes and friction of Fiala's tire. Defaults: round numbers for a large tire on a dry road."""

    along: float = quantity(10.0, "1", low=0.0, high=100.0, above=True, doc="slope along over load, nominal")
    across: float = quantity(8.0, "1", low=0.0, high=100.0, above=True, doc="slope across over load, nominal")
    load_power: float = quantity(0.8, "1", low=0.0, high=1.5, doc="how slopes grow with the load: its exponent")
    friction: float = quantity(0.8, "1", low=0.0, high=3.0, above=True, doc="without slip")
    sliding_friction: float = quantity(0.7, "1", low=0.0, high=3.0, above=True, doc="at a slip of 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sliding_friction > self.friction:
            raise ValueError(
                f"Fiala.sliding_friction = {self.sliding_friction} must not exceed friction {self.friction}"
            )

    @property
    def peak_friction(self) -> float:
        """Largest force over load."""
        return self.friction

    def columns(self, nominal_load: float, radius: float) -> list[float]:
        """Constants of the kernels, in the order of KX .. F0."""
        slopes = self.slopes(nominal_load)
        return [*slopes, self.load_power, self.friction, self.sliding_friction, nominal_load]

    def slopes(self, nominal_load: float) -> tuple[float, float]:
        """Force over slip at small slip and nominal load, along and across [N]."""
        return self.along * nominal_load, self.across * nominal_load


@inline
def _slopes(p, fz):
    grow = (fz / p[F0]) ** p[POWER]
    return p[KX] * grow, p[KY] * grow


@kernel
def fiala_peaks(p, fz, grip):
    """Slip along and across from which the whole patch slides, at the load `fz` > 0 [N] and full friction."""
    kx, ky = _slopes(p, fz)
    most = 3.0 * grip * p[MU0] * fz
    return most / kx, most / ky


@kernel
def fiala(p, fz, grip, half, sx, sy):
    """Forces along and across [N] and moment about the normal [N m] of slips `sx`, `sy` at the load `fz` > 0 [N].

    `half` [m] is half the length of the contact.
    """
    kx, ky = _slopes(p, fz)
    slip = min(math.sqrt(sx * sx + sy * sy), 1.0)
    most = grip * (p[MU0] - (p[MU0] - p[MU1]) * slip) * fz
    ux, uy, z = direction(kx * sx / (3.0 * most), ky * sy / (3.0 * most), sx, sy)
    if z >= 1.0:
        return most * ux, most * uy, 0.0
    stick = 1.0 - z
    force = most * (1.0 - stick * stick * stick)
    return force * ux, force * uy, -most * half * z * stick * stick * stick * uy
