"""The World: bodies, joints and materials by name, in SI units, which `compile()` turns into arrays.

    world = World()
    arm = world.body("arm", mass=10, inertia=(1, 1, 0.1), pos=(0, 0, 1))
    world.hinge("shoulder", None, arm, at=(0, 0, 1.5), axis=(0, 1, 0))
    engine = world.compile(dt=0.001)

Its methods stand in the files of what they add: bodies, joints, actuators, couplings, materials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plant.world.actuators import WithActuators
from plant.world.couplings import WithCouplings
from plant.world.materials import WithMaterials

if TYPE_CHECKING:
    from plant.engine.compile import Engine


@dataclass
class World(WithActuators, WithCouplings, WithMaterials):
    """A machine and its surroundings, described."""

    gravity: Sequence[float] = (0.0, 0.0, -9.80665)
    visible: float = 4e-6  # [m] gap in a joint that is closed at once
    margin: float = 2e-3  # [m] contacts are listed across a gap smaller than this
    slow: float = 1e-4  # [m/s] a contact that slips more slowly sticks
    quiet: float | None = None  # [m/s] slower approaches do not bounce; None = four steps of free fall
    sleep_after: float = 0.0  # [s] islands at rest for so long are left alone until something comes; 0 = never
    fields: list[Any] = field(default_factory=list, kw_only=True)

    def force_field(self, function: Any) -> None:
        """A force field: a C function that adds to the wrenches of all bodies at each step.

        See plant/velocity/force_field.py.
        """
        self.fields.append(function)

    def compile(self, dt: float, **options: Any) -> Engine:
        """Arrays for steps of `dt` seconds; refuses what cannot be, with names. Options: see `compile_world`."""
        from plant.engine.compile import compile_world  # it builds on this room

        return compile_world(self, dt, **options)
