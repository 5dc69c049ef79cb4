"""Couplings of a world: gears, racks, screws and differentials between free axes of joints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from plant.world.checks import WorldError
from plant.world.joints import Axis, WithJoints, axis_code


@dataclass
class Coupling:
    """Free coordinates of joints in a fixed ratio: the sum of ratio x coordinate stays what it was."""

    name: str
    terms: tuple[tuple[str, int, float], ...]  # joint, axis, ratio


@dataclass(kw_only=True)
class WithCouplings(WithJoints):
    """The part of a World that holds couplings."""

    couplings: dict[str, Coupling] = field(default_factory=dict)

    def gear(self, name: str, first: str, second: str, *, ratio: float) -> str:
        """Two hinges turn together: the first by `ratio` times the second (Vortex eq. 43); negative = other way."""
        return self.couple(name, (first, "turn", 1.0), (second, "turn", -ratio))

    def rack(self, name: str, slider: str, pinion: str, *, radius: float) -> str:
        """A slider moves by `radius` [m] for each radian of a hinge."""
        return self.couple(name, (slider, "z", 1.0), (pinion, "turn", -radius))

    def screw(self, name: str, joint: str, *, lead: float) -> str:
        """A cylindrical joint slides by `lead` [m] for each revolution."""
        return self.couple(name, (joint, "z", 1.0), (joint, "turn", -lead / (2 * math.pi)))

    def differential(self, name: str, shaft: str, left: str, right: str) -> str:
        """The shaft's hinge turns by the mean of the other two (Vortex eq. 47, open differential)."""
        return self.couple(name, (shaft, "turn", 1.0), (left, "turn", -0.5), (right, "turn", -0.5))

    def couple(self, name: str, *terms: tuple[str, Axis, float]) -> str:
        """The sum of ratio x coordinate over two or three (joint, axis, ratio) stays what it is at compile."""
        self._new(name, self.couplings, "coupling")
        if not 2 <= len(terms) <= 3:
            raise WorldError(f"coupling {name!r}: two or three coordinates, not {len(terms)}")
        made = []
        for joint, axis, ratio in terms:
            self._free_axis(f"coupling {name!r}", joint, axis_code(axis))
            if not (math.isfinite(ratio) and ratio != 0):
                raise WorldError(f"coupling {name!r}: ratio {ratio} of joint {joint!r} must be finite and not zero")
            made.append((joint, axis_code(axis), float(ratio)))
        self.couplings[name] = Coupling(name, tuple(made))
        return name
