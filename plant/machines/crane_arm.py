"""A three-joint arm on a turntable with a hanging load: a small machine for trying out motors and joints.

Turntable about z, boom and stick about y, each with a speed motor of limited torque and the last two with stops; the
load swings on a stiff rod without mass. All masses, sizes and torques are made up for a bench demonstration; none is
taken from a real crane.
"""

from __future__ import annotations

import numpy as np

from plant.abi import Plant
from plant.engine.as_plant import as_plant
from plant.engine.compile import compile_world
from plant.visual.entries import COLOURS, Entry, entry
from plant.world.world import World


def rod(mass: float, length: float, axis: int) -> tuple[float, float, float]:
    """Principal moments of a slender rod along `axis`, a tenth as thick as long [kg m^2]."""
    along, across = mass * (0.1 * length) ** 2 / 6, mass * length**2 / 12
    moments = [across, across, across]
    moments[axis] = along
    return (moments[0], moments[1], moments[2])


def cube(mass: float) -> float:
    """Edge of a cube of steel [m]."""
    return float((mass / 7850) ** (1 / 3))


def look(load: float) -> tuple[Entry, ...]:
    """What is seen of the arm: nothing of it collides."""
    edge = cube(load)
    sizes = {
        "table": ("cylinder", (0.6, 0.6)),
        "boom": ("box", (3.0, 0.3, 0.3)),
        "stick": ("box", (2.0, 0.2, 0.2)),
        "load": ("box", (edge, edge, edge)),
    }
    return tuple(
        entry(f"crane.{body}", kind, size, colour=colour)
        for (body, (kind, size)), colour in zip(sizes.items(), COLOURS, strict=False)
    )


def build(*, load: float = 50.0, rope: float = 1.0) -> World:
    """The arm, its boom and stick level, the load hanging `rope` metres below the tip."""
    world = World()
    world.body("table", mass=400, inertia=(40, 40, 60), pos=(0, 0, 0.3))
    world.body("boom", mass=120, inertia=rod(120, 3.0, 0), pos=(1.5, 0, 1.0))
    world.body("stick", mass=60, inertia=rod(60, 2.0, 0), pos=(4.0, 0, 1.0))
    world.hinge("slew", None, "table", at=(0, 0, 0), axis=(0, 0, 1))
    world.hinge("lift", "table", "boom", at=(0, 0, 1.0), axis=(0, -1, 0))
    world.hinge("reach", "boom", "stick", at=(3.0, 0, 1.0), axis=(0, -1, 0))
    world.motor("slew_drive", "slew", force=3e3)
    world.motor("lift_drive", "lift", force=2e4)
    world.motor("reach_drive", "reach", force=8e3)
    world.limit("lift_stop", "lift", low=-0.8, high=1.2)
    world.limit("reach_stop", "reach", low=-2.0, high=2.0)
    edge = cube(load)
    world.body("load", mass=load, inertia=np.full(3, load * edge**2 / 6), pos=(5.0, 0, 1.0 - rope))
    world.ball("hook", "stick", "load", at=(5.0, 0, 1.0))
    return world


def create(dt: float, *, load: float = 50.0, rope: float = 1.0) -> Plant:
    """The arm as a plant for steps of `dt` seconds: load [kg] and its distance below the tip [m]."""
    return as_plant(compile_world(build(load=load, rope=rope), dt), "crane", scene=look(load))
