"""The arrays of smooth contacts.

`Law` names the laws, `Smooth` has their constants per pair of materials. `Response` is what a law says of one contact,
`FoundationForce` what the elastic foundation says of one overlap.

Index i is the pair of materials. A value of -1 in `bristle_stiffness`, `bristle_damping` and `stick_speed` stands for
"from the load, the mass and the step", in `strain` for "what the damper leaves of it", see `bristle`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hilnode.core.struct import F1, F2, I1


class Law(IntEnum):
    """How two materials push each other."""

    RIGID = 0  # no force law: bounded rows and impacts
    HUNT_CROSSLEY = 1
    LANKARANI_NIKRAVESH = 2
    KELVIN_VOIGT = 3
    SMC = 4  # Hertz and Mindlin with history, as Chrono has it
    WANG = 5
    FOUNDATION = 6  # of a volume of overlap instead of points


class Smooth(NamedTuple):
    """Constants of the force law of each pair of materials."""

    law: I1
    stiffness: F1  # [N/m^exponent]; FOUNDATION [N/m^3], modulus over depth of the layer
    exponent: F1  # of the depth
    hysteresis: F1  # share of the elastic force that an approach at the first speed adds to it
    dissipation: F1  # [s/m] the same for an approach at 1 m/s, whatever the first speed was
    damping: F1  # [N s/m]
    damping_ratio: F1  # of critical damping at the mass and the stiffness of now
    adhesion: F1  # [N] pull of surfaces that touch
    friction: F1  # dynamic
    stiction: F1  # static
    viscous: F1  # [N s/m] of the slip
    bristle_stiffness: F1  # [N/m]
    bristle_damping: F1  # [N s/m]
    stick_speed: F1  # [m/s] slip at which sticking gives way to sliding
    strain: F1  # share of the greatest stretch that is left to bristles that gave way
    shear_stiffness: F1  # SMC [N/m^1.5], times the root of the depth; WANG [N/m]
    shear_damping: F1  # WANG [N s/m]


class Response(NamedTuple):
    """The force of a contact on its first body, and how it changes; x and v are displacement and velocity of the
    first body's point against the second's."""

    force: F1  # [3] [N]
    stiffness: F2  # [3, 3] -d force / d x [N/m]
    damping: F2  # [3, 3] -d force / d v [N s/m]
    stretch: F1  # [3] of the bristles, to be kept once the step is accepted [m]


def new_response() -> Response:
    """Room for one answer."""
    return Response(np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3))


class FoundationForce(NamedTuple):
    """The push of an elastic foundation on the first body in six ways, and how it changes along each: along the normal
    through the middle of the patch, along two tangents through the centroid of the overlap, about the normal, about
    two axes of rolling. Forces [N] and displacements [m], or torques [N m] and turns [rad]."""

    way: F2  # [6, 3] unit
    force: F1  # [6]
    stiffness: F1  # [6] -d force / d displacement
    damping: F1  # [6] -d force / d velocity; of friction: force over velocity
    reach: F1  # [6] the most that the law gives at this load


def new_foundation_force() -> FoundationForce:
    """Room for one answer."""
    return FoundationForce(np.zeros((6, 3)), np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6))
