"""The tire of Allen, Rosenthal and Szostak: one composite slip, one saturation function for both directions.

    c  = pi / (4 mu Fz) sqrt((Cx sx)^2 + (Cy sy)^2)                            composite slip
    f  = (c1 c^3 + c2 c^2 + 4/pi c) / (c1 c^3 + c3 c^2 + c4 c + 1)             saturation, 0 .. 1
    Fx = mu Fz f Cx' sx / |(Cx' sx, Cy sy)|,   Fy = mu Fz f Cy sy / |(Cx' sx, Cy sy)|
    Cx' = Cx + (Cy - Cx) s,  s = min(|(sx, sy)|, 1)     a sliding tire is pushed against the way it slides
    mu = mu0 (1 - decline s)                            friction falls with the whole slip
    Mz = -a / 3 Fy (1 - f)                              trail from a third of half the patch to nothing as it slides
    Cy = C1 r (1 - r / r1), r = Fz / F0                 slope across: a parabola of the load, here up to its top

f starts with 4/pi c, so the slopes at small slip are Cx and Cy. The sources write Ks = 2 Cy / ap^2 and Kc = 2 Cx / ap^2
with the length ap of the patch, which cancels here.

Ref: R. W. Allen, T. J. Rosenthal and H. T. Szostak, Analytical Modeling of Driver Response in Crash Avoidance
Maneuvering, Volume II: An Interactive Tire Model for Driver/Vehicle Simulation, US DOT HS 807 271, 1988.
Limits: the published moment has constants of its own for each tire; the one here is the trail of a patch of bristles at
small slip, and goes to nothing with saturation. Camber pushes through `Tire.camber_gain`. The slip along is measured
against the travel, as for the other laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hilnode.core.jit import inline, kernel
from plant.parameter import Checked, quantity

REFERENCE = "Allen, Rosenthal and Szostak 1988"
FULL = 2.0  # composite slip from which a tire counts as sliding: f is 0.999 there with the default constants
KX, KY, TOP, MU0, DECLINE, C1, C2, C3, C4, F0 = range(10)


@dataclass(frozen=True)
class CompositeSlip(Checked):
    """Slopes, friction and constants of the saturation function. Defaults: a common shape, round slopes."""

    along: float = quantity(10.0, "1", low=0.0, high=100.0, above=True, doc="slope along over load")
    across: float = quantity(8.0, "1", low=0.0, high=100.0, above=True, doc="slope across over load, nominal")
    top_load: float = quantity(2.5, "1", low=1.0, high=20.0, doc="load of the largest slope across over nominal load")
    friction: float = quantity(0.8, "1", low=0.0, high=3.0, above=True, doc="without slip")
    decline: float = quantity(0.15, "1", low=0.0, high=0.9, doc="share of the friction lost at a slip of 1")
    c1: float = quantity(1.0, "1", low=0.0, high=10.0, above=True, doc="saturation, cubic")
    c2: float = quantity(0.34, "1", low=0.0, high=10.0, doc="saturation, square above")
    c3: float = quantity(0.57, "1", low=0.0, high=10.0, doc="saturation, square below")
    c4: float = quantity(0.32, "1", low=0.0, high=10.0, doc="saturation, linear below")

    def __post_init__(self) -> None:
        super().__post_init__()
        # The force is at most mu Fz where (c3 - c2) c^2 - (4/pi - c4) c + 1 >= 0 for all c >= 0.
        a, b = self.c3 - self.c2, 4.0 / math.pi - self.c4
        if (b > 0.0 and b * b > 4.0 * a) or a < 0.0:
            raise ValueError(
                f"CompositeSlip.c2 = {self.c2}, c3 = {self.c3}, c4 = {self.c4} let the force exceed friction: "
                "(4/pi - c4)^2 must not exceed 4 (c3 - c2)"
            )

    @property
    def peak_friction(self) -> float:
        """Largest force over load."""
        return self.friction

    def columns(self, nominal_load: float, radius: float) -> list[float]:
        """Constants of the kernels, in the order of KX .. F0."""
        across = self.across * nominal_load / (1.0 - 0.5 / self.top_load)
        return [
            *(self.along, across, self.top_load, self.friction, self.decline),
            *(self.c1, self.c2, self.c3, self.c4, nominal_load),
        ]

    def slopes(self, nominal_load: float) -> tuple[float, float]:
        """Force over slip at small slip and nominal load, along and across [N]."""
        return self.along * nominal_load, self.across * nominal_load


@inline
def _slopes(p, fz):
    r = min(fz / p[F0], p[TOP])
    return p[KX] * fz, p[KY] * r * (1.0 - 0.5 * r / p[TOP])


@kernel
def composite_slip_peaks(p, fz, grip):
    """Slip along and across at which the tire counts as sliding, at the load `fz` > 0 [N]."""
    kx, ky = _slopes(p, fz)
    most = FULL * 4.0 / math.pi * grip * p[MU0] * fz
    return most / kx, most / ky


@kernel
def composite_slip(p, fz, grip, half, sx, sy):
    """Forces along and across [N] and moment about the normal [N m] of slips `sx`, `sy` at the load `fz` > 0 [N].

    `half` [m] is half the length of the contact.
    """
    kx, ky = _slopes(p, fz)
    slip = min(math.sqrt(sx * sx + sy * sy), 1.0)
    most = grip * p[MU0] * (1.0 - p[DECLINE] * slip) * fz
    c = math.pi / (4.0 * most) * math.sqrt(kx * sx * kx * sx + ky * sy * ky * sy)
    over = ((p[C1] * c + p[C2]) * c + 4.0 / math.pi) * c
    f = over / (((p[C1] * c + p[C3]) * c + p[C4]) * c + 1.0)
    vx, vy = (kx + (ky - kx) * slip) * sx, ky * sy
    length = math.sqrt(vx * vx + vy * vy)
    if not length > 0.0:
        return 0.0, 0.0, 0.0
    force = most * f / length
    return force * vx, force * vy, -half / 3.0 * force * vy * (1.0 - f)
