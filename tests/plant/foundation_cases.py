"""Bodies on an elastic foundation, and what closed forms say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from worlds import G

from plant.collision.shape.shapes import Box, Cylinder, Shape, Sphere
from plant.engine.compile import Engine, compile_world
from plant.natural.builder import Options
from plant.world.world import World

RADIUS, SIDE, MASS = 0.1, 0.2, 2.0
BALL, CUBE = Sphere(RADIUS), Box(SIDE, SIDE, SIDE)
DISC = Cylinder(0.15, 0.05)
SLAB = Box(SIDE, SIDE, 0.04)  # low enough for its whole face to stay pressed on a slope
LAYER = 0.01


def solid(world: World, name: str, shape: Shape, material: str = "rubber", **state: Any) -> None:
    """A body of MASS."""
    density = MASS / shape.mass_properties(1.0)[0]
    world.solid(name, shape, density=density, material=material, **state)


def floor(slope: float = 0.0, weight: float = G, modulus: float = 1e6, **law: float) -> World:
    """A plane of an elastic layer, under gravity that leans towards x."""
    world = World(gravity=(weight * np.sin(slope), 0, -weight * np.cos(slope)))
    world.plane(material="floor")
    world.material("rubber", "floor", law="foundation", modulus=modulus, layer=LAYER, **law)
    return world


def placed(
    shape: Shape,
    pos: tuple[float, float, float],
    stepper: str = "spook",
    dt: float = 1e-3,
    natural: Options | None = None,
    **more: Any,
) -> Engine:
    """One body on the floor; what belongs to the law goes to the floor, the rest to the body."""
    of_floor = ("slope", "weight", "modulus", "dissipation", "friction", "slow")
    world = floor(**{k: v for k, v in more.items() if k in of_floor})
    solid(world, "body", shape, pos=pos, **{k: v for k, v in more.items() if k not in of_floor})
    return compile_world(world, dt, stepper=stepper, natural=natural)


def cap_volume(depth: float, radius: float = RADIUS) -> float:
    """What a ball has below a plane."""
    return np.pi * depth**2 * (3 * radius - depth) / 3 if depth > 0 else 0.0


def cap_moment(depth: float, radius: float = RADIUS) -> tuple[float, float]:
    """Integrals of x^2 over the columns of a cap, and of half their squared length: for rolling, for energy."""
    edge = np.sqrt(2 * radius * depth - depth**2)

    def length(r: float) -> float:
        return np.sqrt(radius**2 - r * r) - (radius - depth)

    roll = quad(lambda r: np.pi * r**3 * length(r), 0, edge)[0]
    store = quad(lambda r: np.pi * r * length(r) ** 2, 0, edge)[0]
    return float(roll), float(store)


def static_depth(modulus: float, load: float = MASS * G) -> float:
    """Of the ball: K V = m g."""
    return float(brentq(lambda d: modulus / LAYER * cap_volume(d) - load, 0, RADIUS))
