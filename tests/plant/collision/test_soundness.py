"""Nothing falls through: many bodies dropped on a mesh terrain, and fast ones shot at thin walls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from mesh_scenes import block, grid

from plant.collision.pairs.table import known_pairs
from plant.collision.shape.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Field,
    Hull,
    Link,
    Mesh,
    Plane,
    Shape,
    Sphere,
    Torus,
)
from plant.engine.compile import Engine
from plant.world.world import World

DT = 1.0 / 240.0  # [s] the step that games and training use: a fall of 2 m ends at 2.6 cm a step
SPEED = 30.0  # [m/s] 12.5 cm a step, more than any body here is thick
FAST = {
    "sphere": Sphere(0.05),
    "capsule": Capsule(0.03, 0.08),
    "box": Box(0.1, 0.06, 0.04),
    "cylinder": Cylinder(0.04, 0.08),
    "cone": Cone(0.05, 0.08),
    "hull": Hull([(0.05, 0, 0), (-0.04, 0.04, 0), (-0.04, -0.04, 0.01), (0, 0, 0.05), (0, 0.01, -0.04)]),
    "torus": Torus(0.04, 0.012),
    "link": Link(0.05, 0.025, 0.01),
    "mesh": Mesh(*block(0.05, 0.04, 0.03)),
}


class Terrain:
    """Ground over a square as a mesh, and the height of its triangles anywhere."""

    def __init__(self, points: int, half: float, hill: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.points, self.half = points, half
        self.vertex, self.triangle = grid(points, half, hill)

    def height(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of the triangle below or above each place; cells are parted from their low corner to their high one."""
        z = self.vertex[:, 2].reshape(self.points, self.points)
        step = 2 * self.half / (self.points - 1)
        u, v = (np.clip((c + self.half) / step, 0, self.points - 1 - 1e-9) for c in (x, y))
        i, k = u.astype(int), v.astype(int)
        u, v = u - i, v - k
        a, b, c, d = z[i, k], z[i + 1, k], z[i + 1, k + 1], z[i, k + 1]
        return np.where(u >= v, a + u * (b - a) + v * (c - b), a + v * (d - a) + u * (c - d))


def hills(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 0.7 * (np.sin(0.55 * x) * np.cos(0.45 * y) + 0.3 * np.sin(1.3 * x + 0.9 * y))


def strewn(count: int, terrain: Terrain, *, apart: float, layers: int, seed: int) -> tuple[World, np.ndarray]:
    """Boxes, spheres and capsules above the terrain, in layers, none quite in its place; and their inner radii."""
    rng = np.random.default_rng(seed)
    world = World(sleep_after=0.5)
    world.material("default", "default", friction=0.7)
    world.shape(None, Mesh(terrain.vertex, terrain.triangle))
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        world.plane(normal=(x, y, 0), offset=-(terrain.half - 0.5))
    side = int(np.ceil(np.sqrt(count / layers)))
    assert side * apart < 2 * terrain.half - 1.5
    shapes, thin = cycle((Box(0.3, 0.24, 0.2), Sphere(0.14), Capsule(0.1, 0.2))), []
    for k in range(count):
        layer, place = divmod(k, side * side)
        at = (np.array(divmod(place, side)) - 0.5 * (side - 1)) * apart + rng.uniform(-0.15, 0.15, 2) * apart
        above = float(terrain.height(at[:1], at[1:])[0]) + 0.6 + 0.6 * layer
        shape, turn = next(shapes), rng.normal(size=4)
        world.solid(f"body {k}", shape, density=500, pos=(*at, above), quat=turn / np.linalg.norm(turn))
        thin.append(min(s for s in shape.sizes() if s > 0))
    return world, np.array(thin)


def drop(engine: Engine, terrain: Terrain, thin: np.ndarray, seconds: float) -> tuple[float, float]:
    """Run; returns how far any centre was ever below the terrain, and how deep contacts are at the end, per radius."""
    pos, contact, lowest = engine.content.data.state.pos, engine.content.data.contact, np.inf
    for _ in range(round(seconds / (12 * DT))):
        assert engine.step(12) == 0
        above = (pos[:, 2] - terrain.height(pos[:, 0], pos[:, 1])) / thin
        lowest = min(lowest, float(above.min()))
        assert np.abs(pos[:, :2]).max() < terrain.half, "one got through a wall"
    deep = contact.depth[: contact.count[0]].max(initial=0.0) / thin.min()
    return -lowest, float(deep)


def test_a_hundred_bodies_dropped_on_hills_stay_above_them() -> None:
    """At rest a centre is above the ground by at least its inner radius; on the way its centre never sinks into it."""
    terrain = Terrain(30, 8.0, hills)
    world, thin = strewn(100, terrain, apart=1.2, layers=2, seed=1)
    engine = world.compile(DT, contacts=2000, solver="iterative")
    below, deep = drop(engine, terrain, thin, 3.0)
    assert below < 0.0
    assert deep < 0.1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_bodies_dropped_on_hills_stay_above_them() -> None:
    terrain = Terrain(72, 34.0, hills)
    assert len(terrain.triangle) == 10082
    world, thin = strewn(10_000, terrain, apart=1.1, layers=3, seed=2)
    engine = world.compile(DT, contacts=120_000, solver="iterative")
    below, deep = drop(engine, terrain, thin, 4.0)
    assert below < 0.0
    assert deep < 0.3


def thin_box(half: float) -> Shape:
    return Box(2 * half, 2 * half, 0.01)


def sheet(half: float) -> Shape:
    """Open, one-sided, of triangles as large as the bodies."""
    return Mesh(*grid(60, half, lambda x, y: 0.0 * x))


def two_triangles(half: float) -> Shape:
    return Mesh(*grid(2, half, lambda x, y: 0.0 * x))


def bumps(half: float) -> Terrain:
    """Slopes of up to 15 degrees, and a hill every 0.35 m."""
    return Terrain(60, half, lambda x, y: 0.03 * np.sin(9 * x) * np.cos(7 * y))


def bumpy_sheet(half: float) -> Shape:
    ground = bumps(half)
    return Mesh(ground.vertex, ground.triangle)


def field(half: float) -> Shape:
    return Field(np.zeros((40, 40)), 2 * half / 39)


def plane(half: float) -> Shape:
    return Plane()


WALLS = (thin_box, sheet, two_triangles, bumpy_sheet, field, plane)
KNOWN = known_pairs()


def shots() -> list[Any]:
    """Every body at every wall that it can touch."""
    made = []
    for kind, shape in FAST.items():
        for wall in WALLS:
            pair = shape.kind, wall(1.0).kind
            if (min(pair), max(pair)) in KNOWN:
                made.append(pytest.param(kind, wall, id=f"{kind} at {wall.__name__}"))
    return made


@pytest.mark.parametrize(("kind", "wall"), shots())
def test_a_fast_body_does_not_tunnel(kind: str, wall: Callable[[float], Shape]) -> None:
    """100 bodies at 30 m/s, perpendicular to the wall and up to 60 degrees off, tumbling.

    A centre may dip below the surface by a quarter of the body's radius while the body is flung round its first
    corner to touch (by more than a radian in that one step), but no further.
    """
    shape, half, rng, side = FAST[kind], 3.0, np.random.default_rng(5), 10
    ground = bumps(half)
    mass, com, inertia = shape.mass_properties(1000)
    world = World(gravity=(0, 0, 0))
    world.shape(None, wall(half))
    for k in range(side * side):
        x, y = (np.array(divmod(k, side)) - 4.5) * 0.3
        lean, way, turn = rng.uniform(0, np.pi / 3) * (k % 4 > 0), rng.uniform(0, 2 * np.pi), rng.normal(size=4)
        v = SPEED * np.array([np.sin(lean) * np.cos(way), np.sin(lean) * np.sin(way), -np.cos(lean)])
        world.body(
            f"b{k}",
            mass=mass,
            com=com,
            inertia=0.5 * (inertia + inertia.T),
            pos=np.array([x, y, 0.1]) - v * rng.uniform(0.009, 0.013),
            quat=turn,
            vel=v,
            spin=rng.normal(size=3) * 10,
        )
        world.shape(f"b{k}", shape, group=2, mask=1)  # they meet the wall, not each other
    engine = world.compile(DT, contacts=2000)
    pos, speed, lowest = engine.content.data.state.pos, engine.content.data.state.vel, np.full(side * side, np.inf)
    for _ in range(24):
        assert engine.step() == 0
        before = (np.abs(pos[:, :2]) < half - 0.1).all(1)
        level = ground.height(pos[:, 0], pos[:, 1]) if wall is bumpy_sheet else 0.0
        lowest = np.where(before, np.minimum(lowest, pos[:, 2] - level), lowest)
    through = lowest < -0.25 * shape.bound()
    assert not through.any(), f"{through.sum()} went through, the furthest by {-lowest.min():.3f} m"
    assert (speed[:, 2] > -0.1 * SPEED).all(), "none missed the wall"
