"""The magic formula: force over slip as a sine of an arc tangent, with combined slip by similarity.

    F(s) = D sin(C atan(B s - E (B s - atan B s)))              D peak, B C D slope at 0
    Dx = (pdx1 + pdx2 df) Fz,  Dy alike,  df = (Fz - F0) / F0    peaks; mu falls with the load
    Kx = Bx Cx Dx = Fz (pkx1 + pkx2 df)                          slopes
    Ky = By Cy Dy = pky1 F0 sin(2 atan(Fz / (pky2 F0)))
    Mz = -t Fy,  t = Dt cos(Ct atan(Bt a - Et (Bt a - atan Bt a))),  Dt = qdz1 R Fz / F0     trail
    a  = sqrt(sy^2 + (Kx / Ky)^2 sx^2)                           slip of the trail in combined slip
                                                                 all: Pacejka 2012 section 4.3

Combined slip: each slip is divided by the slip of its own peak, r = |(sx / px, sy / py)| is the size of both together,
and each direction takes its pure curve at r, times its share of the direction (Bakker, Pacejka and Lidner 1989;
Pacejka 2012 section 4.3.1). So (Fx / Dx)^2 + (Fy / Dy)^2 <= 1 whatever the slips.

Ref: H. B. Pacejka and I. J. M. Besselink, Magic formula tyre model with transient properties, Vehicle System Dynamics
27 (S1), 1997; H. B. Pacejka, Tire and Vehicle Dynamics, 3rd edition, 2012; E. Bakker, H. B. Pacejka and L. Lidner,
A new tire model with an application in vehicle dynamics studies, SAE 890087, 1989.
Limits: no shifts by conicity and ply steer, no residual moment; camber pushes through `Tire.camber_gain`. Grip scales
the peaks and leaves the slopes at small slip, as wet ground does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hilnode.core.jit import inline, kernel
from plant.parameter import Checked, quantity
from plant.vehicle.tires.slip import direction

REFERENCE = "Pacejka and Besselink 1997; Pacejka 2012 section 4.3"
LIGHT = 0.05  # least peak friction, however heavy the load
TURN = 0.02  # least slope in y, as a share of Fz, however heavy the load
CX, EX, PDX1, PDX2, PKX1, PKX2, CY, EY, PDY1, PDY2, PKY1, PKY2, F0, XPEAK, YPEAK, DT, BT, CT, ET = range(19)


@dataclass(frozen=True)
class MagicFormula(Checked):
    """Factors of the magic formula. The defaults are round numbers for a large tire on a dry road, not a product's."""

    cx: float = quantity(1.6, "1", low=1.05, high=2.0, doc="shape factor along")
    ex: float = quantity(0.0, "1", low=-10.0, high=0.95, doc="curvature factor along")
    pdx1: float = quantity(0.8, "1", low=0.0, high=3.0, above=True, doc="peak friction along, at the nominal load")
    pdx2: float = quantity(-0.05, "1", low=-1.0, high=1.0, doc="its change for each nominal load more")
    pkx1: float = quantity(12.0, "1", low=0.0, high=100.0, above=True, doc="slope along over load, nominal")
    pkx2: float = quantity(0.0, "1", low=-10.0, high=10.0, doc="its change for each nominal load more")
    cy: float = quantity(1.4, "1", low=1.05, high=2.0, doc="shape factor across")
    ey: float = quantity(-0.5, "1", low=-10.0, high=0.95, doc="curvature factor across")
    pdy1: float = quantity(0.75, "1", low=0.0, high=3.0, above=True, doc="peak friction across, at the nominal load")
    pdy2: float = quantity(-0.05, "1", low=-1.0, high=1.0, doc="its change for each nominal load more")
    pky1: float = quantity(10.0, "1", low=0.0, high=100.0, above=True, doc="largest slope across over nominal load")
    pky2: float = quantity(1.8, "1", low=0.1, high=20.0, doc="load of the largest slope across over nominal load")
    qdz1: float = quantity(0.12, "1", low=0.0, high=1.0, doc="trail at the nominal load over radius")
    bt: float = quantity(10.0, "1", low=0.0, high=50.0, doc="stiffness factor of the trail")
    ct: float = quantity(1.2, "1", low=0.5, high=2.0, doc="shape factor of the trail")
    et: float = quantity(-1.0, "1", low=-20.0, high=0.95, doc="curvature factor of the trail")

    @property
    def peak_friction(self) -> float:
        """Largest force over load at the nominal load, in the weaker direction."""
        return min(self.pdx1, self.pdy1)

    def columns(self, nominal_load: float, radius: float) -> list[float]:
        """Constants of the kernels, in the order of CX .. ET."""
        return [
            *(self.cx, self.ex, self.pdx1, self.pdx2, self.pkx1, self.pkx2),
            *(self.cy, self.ey, self.pdy1, self.pdy2, self.pky1, self.pky2),
            *(nominal_load, peak_at(self.cx, self.ex), peak_at(self.cy, self.ey)),
            *(self.qdz1 * radius / nominal_load, self.bt, self.ct, self.et),
        ]

    def slopes(self, nominal_load: float) -> tuple[float, float]:
        """Force over slip at small slip and nominal load, along and across [N]."""
        across = self.pky1 * nominal_load * math.sin(2.0 * math.atan(1.0 / self.pky2))
        return self.pkx1 * nominal_load, across


def peak_at(c: float, e: float) -> float:
    """B s at the peak: where C atan(x - E (x - atan x)) is a right angle."""
    wanted = math.tan(0.5 * math.pi / c)
    low, high = 0.0, wanted / min(1.0, 1.0 - e)
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle - e * (middle - math.atan(middle)) < wanted else (low, middle)
    return 0.5 * (low + high)


@inline
def _factors(p, fz, grip):
    """Peak and slope in each direction: Dx, Kx, Dy, Ky [N]."""
    df = (fz - p[F0]) / p[F0]
    dx = grip * max(p[PDX1] + p[PDX2] * df, LIGHT) * fz
    dy = grip * max(p[PDY1] + p[PDY2] * df, LIGHT) * fz
    kx = fz * max(p[PKX1] + p[PKX2] * df, LIGHT)
    r = fz / (p[PKY2] * p[F0])
    ky = p[PKY1] * p[F0] * max(2.0 * r / (1.0 + r * r), TURN * r)  # sin(2 atan r)
    return dx, kx, dy, ky


@inline
def _curve(d, c, e, x):
    """D sin(C atan(x - E (x - atan x))) with x = B s."""
    return d * math.sin(c * math.atan(x - e * (x - math.atan(x))))


@kernel
def magic_formula_peaks(p, fz, grip):
    """Slip of the peak along and across at the load `fz` > 0 [N]."""
    dx, kx, dy, ky = _factors(p, fz, grip)
    return p[XPEAK] * p[CX] * dx / kx, p[YPEAK] * p[CY] * dy / ky


@kernel
def magic_formula(p, fz, grip, half, sx, sy):
    """Forces along and across [N] and moment about the normal [N m] of slips `sx`, `sy` at the load `fz` > 0 [N].

    `p` are the constants of `columns`; `half`, half the length of the contact, is not needed: the trail is a curve.
    """
    dx, kx, dy, ky = _factors(p, fz, grip)
    px, py = p[XPEAK] * p[CX] * dx / kx, p[YPEAK] * p[CY] * dy / ky
    ux, uy, size = direction(sx / px, sy / py, sx, sy)
    fx = ux * _curve(dx, p[CX], p[EX], size * p[XPEAK])
    fy = uy * _curve(dy, p[CY], p[EY], size * p[YPEAK])
    a = p[BT] * math.sqrt(sy * sy + (kx / ky) * (kx / ky) * sx * sx)
    trail = p[DT] * fz * math.cos(p[CT] * math.atan(a - p[ET] * (a - math.atan(a))))
    return fx, fy, -trail * fy
