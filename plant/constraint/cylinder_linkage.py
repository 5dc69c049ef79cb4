"""A cylinder that drives a hinge: its length as a function of the angle, and the derivative.

        pin b on body b
         \\
       b  \\  length L         L^2 = a^2 + b^2 - 2 a b cos(phase + angle)
           \\                  dL/dangle = a b sin(phase + angle) / L
    hinge ---- pin a on body a
            a

`phase` is the angle from the arm of pin a to the arm of pin b, about the hinge's axis, at the hinge's angle 0. The
cylinder has no mass, so a push F along it is the torque F dL/dangle about the hinge, whatever else the bodies do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hilnode.core.jit import inline

LEAST_SLOPE = 1e-3  # [m/rad] of a linkage at its dead centre: what is left there, so that nothing is divided by zero


class CylinderLinkage(NamedTuple):
    """Geometry of a cylinder on a hinge: the triangle of the two arms and the cylinder."""

    a: float  # [m] 0 = no linkage: the cylinder lies along the slide of its joint
    b: float  # [m]
    phase: float  # [rad]

    def length(self, angle: float) -> float:
        """From pin to pin [m]."""
        return math.sqrt(self.a**2 + self.b**2 - 2 * self.a * self.b * math.cos(self.phase + angle))

    def slope(self, angle: float) -> float:
        """Change of the length with the angle [m/rad]."""
        return self.a * self.b * math.sin(self.phase + angle) / self.length(angle)

    def angle(self, length: float) -> float:
        """The angle at which the cylinder has this length [m], on the side of the dead centre where angle 0 is."""
        cosine = (self.a**2 + self.b**2 - length**2) / (2 * self.a * self.b)
        if not -1 <= cosine <= 1:
            low, high = abs(self.a - self.b), self.a + self.b
            raise ValueError(f"a cylinder {length:g} m long cannot close its triangle: between {low:g} and {high:g} m")
        turn = math.acos(cosine)
        return (turn if math.sin(self.phase) >= 0 else -turn) - self.phase


NO_LINKAGE = CylinderLinkage(0.0, 0.0, 0.0)


def linkage_of(hinge: ArrayLike, axis: ArrayLike, pin_a: ArrayLike, pin_b: ArrayLike) -> CylinderLinkage:
    """The linkage of two pins about a hinge at angle 0, in world coordinates; offsets along the axis are dropped."""
    z = np.asarray(axis, float) / np.linalg.norm(axis)
    arms = [np.asarray(p, float) - np.asarray(hinge, float) for p in (pin_a, pin_b)]
    first, second = (arm - z * (z @ arm) for arm in arms)
    a, b = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    if not min(a, b) > 1e-6:
        raise ValueError("a pin lies on the hinge's axis: a cylinder there turns nothing")
    return CylinderLinkage(a, b, math.atan2(float(z @ np.cross(first, second)), float(first @ second)))


@inline
def reach(a, b, phase, angle):
    """Length of a cylinder and its slope, for kernels; without a linkage the coordinate is the length itself."""
    if a == 0.0:
        return angle, 1.0
    length = math.sqrt(a * a + b * b - 2.0 * a * b * math.cos(phase + angle))
    slope = a * b * math.sin(phase + angle) / max(length, 1e-9)
    if abs(slope) < LEAST_SLOPE:
        slope = LEAST_SLOPE if slope >= 0.0 else -LEAST_SLOPE
    return length, slope
