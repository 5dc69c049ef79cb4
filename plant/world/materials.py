"""Materials of a world: the contact law and its constants for each pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from plant.contact_law.material import LAWS, NO_LAW, ForceLaw, LawError, force_law
from plant.world.checks import WorldError


@dataclass(frozen=True)
class Material:
    """What happens where two materials touch."""

    friction: float = 0.5  # dynamic
    stiction: float | None = None  # static; None = as dynamic
    restitution: float = 0.0
    stiffness: float = 1e8  # [N/m]
    damping_time: float | None = None  # [s] damping over stiffness; None = two steps
    adhesion: float = 0.0  # [N]
    slip: float = 0.0  # [m/s per N] viscous creep of the friction
    law: ForceLaw = NO_LAW  # force law of smooth contacts


@dataclass(kw_only=True)
class WithMaterials:
    """The part of a World that holds materials."""

    materials: dict[tuple[str, str], Material] = field(default_factory=dict)

    def material(self, one: str, other: str, *, law: str = "rigid", **properties: Any) -> None:
        """Properties of the contact between two materials: `friction` and `stiction` (dynamic and static coefficient),
        `restitution`, `adhesion` [N], and what belongs to the law.

        rigid                 no force law, but bounded rows: stiffness [N/m], damping_time [s], slip [m/s per N]
        hunt_crossley         F = k d^n (1 + b r / r0): stiffness k [N/m^n], exponent n (1.5), hysteresis b (from the
        lankarani_nikravesh   restitution: both laws have it near 1;
                              `contact_law.normal_force.exact_hysteresis` gives it for all)
        kelvin_voigt          F = k d + c r: stiffness [N/m], damping [N s/m] (from the restitution)
        smc                   Hertz and Mindlin with history: stiffness [N/m^1.5], shear_stiffness [N/m^1.5] (Mindlin's)
        wang                  F = k d^n (1 + 3/2 a r) + c r: stiffness, exponent n (1), dissipation a [s/m] (1 -
                              restitution: as at 1 m/s), damping c [N s/m], shear_stiffness [N/m], shear_damping [N s/m]
        foundation            an elastic layer that the whole overlap of the shapes presses on, a column of length z
                              with the pressure E / h z (1 + a r): modulus E [Pa] and layer h [m] (of both bodies
                              together, or one for each), dissipation a [s/m] (0.5), friction, slow [m/s] (0.001:
                              below it friction fades with the slip, so that bodies on a slope creep). It resists
                              rolling and spinning too. For spheres, capsules, boxes, cylinders, cones and hulls, on
                              each other and on planes, meshes and fields

        with depth d, rate r of approach, first rate r0. Instead of a stiffness, for Hertz's exponent 1.5: `young` [Pa]
        and `poisson` (one for both, or one for each), `radius` [m] of a sphere on a plane or of two spheres. The force
        laws take `viscous` friction [N s/m]; the first three stick by bristles: bristle_stiffness [N/m],
        bristle_damping [N s/m], stick_speed [m/s], by default from load, mass and step, and strain (share of the
        greatest stretch that is left when they give way; by default what the damper leaves of it). A contact should
        last ten steps or more, pi sqrt(m / k) if it is linear. The dissipation of wang and of the foundation goes with
        the load and hardly damps a body at rest: give wang a damping too.
        """
        if law != "rigid":
            try:
                smooth = force_law(law, properties)
            except LawError as error:
                raise WorldError(f"material {one!r} on {other!r}: {error}") from error
            properties = {"friction": smooth.friction, "stiction": smooth.stiction, "law": smooth}
        if strange := sorted(set(properties) - {f.name for f in fields(Material)}):
            known = ", ".join(f.name for f in fields(Material) if f.name != "law")
            raise WorldError(
                f"material {one!r} on {other!r}: no {', '.join(strange)} without a force law; known are {known}, "
                f"and law: {', '.join(LAWS)}"
            )
        made = Material(**properties)
        if not (
            made.friction >= 0
            and (made.stiction is None or made.stiction >= made.friction)
            and 0 <= made.restitution <= 1
            and 0 < made.stiffness < math.inf
            and made.adhesion >= 0
            and made.slip >= 0
        ):
            raise WorldError(
                f"material {one!r} on {other!r}: friction, adhesion, slip must be >= 0, stiction >= friction, "
                f"restitution within 0 and 1, stiffness > 0: {made}"
            )
        self.materials[one, other] = self.materials[other, one] = made
