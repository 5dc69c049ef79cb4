"""The building site: ground that can be dug, surrounding land, a truck, a buried pipe, fences and cones.

terrain    256 x 256 samples every 0.15 m: 38 m square, level, gently waved, or a slope
land       four coarse fields around it, which bear wheels but cannot be dug
truck      a parked tipper with an open bed, whose floor is a field that heaps can grow on
heaps      two small fields in reserve, laid down where soil falls on the land
objects    fences and cones that enter the simulation when the machine comes near (Luaces 6.3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plant.abi import TILE, Grid
from plant.collision.shape.shapes import Box, Capsule, Field, Sphere
from plant.engine.compile import Engine
from plant.engine.proximity_pool import upright
from plant.machines.excavator.look import GRASS, STEEL
from plant.machines.excavator.mechanism import BUCKET, GROUND, HARD, MACHINE, OBJECT, WHEEL
from plant.machines.excavator.parameters import ParameterError
from plant.soil.ground import Ground
from plant.world.rotations import frame_along
from plant.world.world import World

Floats = NDArray[np.float64]

SAMPLES, SPACING = 256, 0.15
DEEPEST, HIGHEST = -6.0, 8.0  # [m] how far the terrain may be dug and heaped
LAND = 60.0  # [m] how far the land reaches beyond the terrain
HEAPS, HEAP_SAMPLES = 2, 33
BED_LENGTH, BED_WIDTH, BED_FLOOR, BED_WALL = 4.5, 2.4, 1.25, 0.7  # [m]
PIPE = ((7.0, -6.0, -2.6), (7.0, 6.0, -2.6), 0.15)  # [m] ends and radius: deeper than the operator's cycle digs
FENCE, CONE = 0, 1
FENCE_SPARES, CONE_SPARES = 24, 10  # bodies: as many as can be near the machine at a time
RINGS = (11.0, 13.4, 15.8, 18.2)  # [m] radii of the rings on which fences stand
FENCE_LENGTH, APART = 2.08, 0.1  # [m] with its round ends, and the gap to the next one
CONE_GAP = 0.45  # [m] from the middle of a cone to whatever stands there already
EVERYBODY = GROUND | OBJECT | MACHINE | BUCKET | WHEEL


@dataclass(frozen=True)
class Site:
    """What surrounds the machine."""

    terrain: str = "waves"  # level, waves or slope
    slope: float = 0.0  # [rad] uphill along x, of a slope
    truck: tuple[float, float, float] | None = (1.5, 6.8, 0.0)  # x, y [m] of the middle of its bed, heading
    pipe: bool = True
    objects: int = 24
    spares: bool = True  # bodies for objects that are near
    seed: int = 1


def heights(site: Site) -> Floats:
    """Of the terrain [m]. Waves fade out towards the rim, where the land begins."""
    at = (np.arange(SAMPLES) - 0.5 * (SAMPLES - 1)) * SPACING
    x, y = np.meshgrid(at, at, indexing="ij")
    if site.terrain == "level":
        return np.zeros_like(x)
    if site.terrain == "slope":
        return math.tan(site.slope) * x
    if site.terrain == "waves":
        far = np.clip((np.hypot(x, y) - 7.0) / 5.0, 0.0, 1.0)  # level where the machine stands
        rim = np.clip((0.5 * SAMPLES * SPACING - np.maximum(abs(x), abs(y))) / 3.0, 0.0, 1.0)
        wave = 0.35 * np.sin(0.42 * x + 0.6) * np.cos(0.37 * y) + 0.12 * np.sin(1.1 * x - 0.8 * y)
        return np.asarray(far * far * (3 - 2 * far) * rim * rim * (3 - 2 * rim) * wave)
    raise ParameterError(f"terrain {site.terrain!r} is not known: it is one of level, waves, slope")


def add_site(world: World, site: Site) -> None:
    """Ground first: its patches are the first shapes of the world, in the order of `patches`."""
    reach = 0.5 * (SAMPLES - 1) * SPACING
    slope = math.tan(site.slope) if site.terrain == "slope" else 0.0
    if site.terrain == "slope" and not abs(site.slope) < math.radians(50):
        raise ParameterError(f"slope {math.degrees(site.slope):g} deg must be less than 50")
    low, high = DEEPEST - abs(slope) * reach, HIGHEST + abs(slope) * reach
    world.shape(None, Field(heights(site), SPACING, low=low, high=high), material="soil", group=GROUND)
    for at, size in _strips(reach):
        world.shape(None, _land(at, size, slope, site.seed), at=(*at, 0), material="soil", group=GROUND | HARD)
    for k in range(HEAPS):
        name = f"heap{k}"
        world.body(name, kind="kinematic", pos=(0, 0, -50))
        shape = Field(np.zeros((HEAP_SAMPLES, HEAP_SAMPLES)), SPACING, low=-4, high=4)
        world.shape(name, shape, material="soil", group=GROUND, mask=MACHINE | BUCKET | OBJECT)
    if site.truck is not None:
        _truck(world, *site.truck)
    if site.spares and site.objects:
        for k in range(FENCE_SPARES):
            _fence(world, f"fence{k}")
        for k in range(CONE_SPARES):
            _cone(world, f"cone{k}")


def _strips(reach: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Middles and sizes of the four fields around the terrain."""
    far, wide = reach + LAND / 2, 2 * reach
    return [
        ((far, 0.0), (LAND, wide + 2 * LAND)),
        ((-far, 0.0), (LAND, wide + 2 * LAND)),
        ((0.0, far), (wide, LAND)),
        ((0.0, -far), (wide, LAND)),
    ]


def _land(at: tuple[float, float], size: tuple[float, float], slope: float, seed: int) -> Field:
    """Hills that begin some way off, or the slope going on."""
    counts = [max(2, round(s / 3.0) + 1) for s in size]
    steps = [s / (n - 1) for s, n in zip(size, counts, strict=True)]
    x, y = np.meshgrid(
        *[(np.arange(n) - 0.5 * (n - 1)) * d + a for n, d, a in zip(counts, steps, at, strict=True)], indexing="ij"
    )
    if slope:
        z = slope * x
    else:
        far = np.clip((np.hypot(x, y) - 32.0) / 40.0, 0.0, None)
        phase = 0.7 * seed
        z = far**1.5 * (3.0 + 2.0 * np.sin(0.08 * x + phase) * np.cos(0.07 * y - phase))
    return Field(z, (steps[0], steps[1]))


def _truck(world: World, x: float, y: float, heading: float) -> None:
    """A tipper without wheels that turn: it stands. Its bed lies along x, as fields must."""
    if heading % math.pi > 1e-9:
        raise ParameterError(f"truck heading {heading:g} rad: the bed lies along x, so it is 0 or pi")
    ahead = 1.0 if abs(heading) < 1e-9 else -1.0
    nx, ny = round(BED_LENGTH / SPACING) + 1, round(BED_WIDTH / SPACING) + 1
    bed = Field(np.zeros((nx, ny)), SPACING, low=-0.05, high=3.0)
    world.shape(None, bed, at=(x, y, BED_FLOOR), material="steel", group=GROUND)

    def box(size: tuple[float, float, float], at: tuple[float, float, float]) -> None:
        world.shape(None, Box(*size), at=(x + ahead * at[0], y + at[1], at[2]), material="steel", group=OBJECT)

    side, wall = BED_WIDTH / 2 + 0.05, BED_FLOOR + BED_WALL / 2
    for sign in (1.0, -1.0):
        box((BED_LENGTH + 0.2, 0.08, BED_WALL), (0, sign * side, wall))
        box((0.08, BED_WIDTH + 0.18, BED_WALL + (0.3 if sign > 0 else 0.0)), (sign * (BED_LENGTH / 2 + 0.05), 0, wall))
    box((BED_LENGTH + 0.2, 2.2, 0.3), (0, 0, BED_FLOOR - 0.2))
    box((1.8, 2.4, 1.9), (BED_LENGTH / 2 + 1.35, 0, 1.6))


def _fence(world: World, name: str) -> None:
    """A plastic fence of 2 m on two feet, 14 kg, made of bars; its frame stands on the ground in its middle."""
    world.body(name, mass=14.0, inertia=(2.0, 5.5, 4.8), com=(0, 0, 0.42), pos=(0, 0, -60))
    for z in (0.30, 0.62, 0.93):
        _bar(world, name, 0.04, (-1.0, 0, z), (1.0, 0, z))
    for x in (-0.75, 0.75):
        _bar(world, name, 0.05, (x, -0.3, 0.05), (x, 0.3, 0.05))


def _cone(world: World, name: str) -> None:
    """A traffic cone of 0.7 m, 4 kg, most of it in its foot: a bar on four balls."""
    world.body(name, mass=4.0, inertia=(0.12, 0.12, 0.09), com=(0, 0, 0.12), pos=(0, 0, -60))
    _bar(world, name, 0.09, (0, 0, 0.12), (0, 0, 0.6))
    for x in (-0.18, 0.18):
        for y in (-0.18, 0.18):
            world.shape(name, Sphere(0.03), at=(x, y, 0.03), material="plastic", group=OBJECT, mask=EVERYBODY)


def _bar(world: World, body: str, radius: float, a: ArrayLike, z: ArrayLike) -> None:
    """A bar with round ends, from point to point."""
    ends = np.asarray(a, float), np.asarray(z, float)
    way = ends[1] - ends[0]
    shape = Capsule(radius, float(np.linalg.norm(way)))
    turn = frame_along(body, way, None)
    middle = (ends[0] + ends[1]) / 2
    world.shape(body, shape, at=middle, quat=turn, material="plastic", group=OBJECT, mask=EVERYBODY)


def patches(site: Site) -> dict[str, int]:
    """Name of each patch of the ground, and which shape of the world it is."""
    made = {"terrain": 0, "land0": 1, "land1": 2, "land2": 3, "land3": 4}
    made |= {f"heap{k}": 5 + k for k in range(HEAPS)}
    if site.truck is not None:
        made["truck"] = 5 + HEAPS
    return made


def _fence_places(count: int) -> list[tuple[float, float]]:
    """Radius and angle of each fence: rings from the inside outwards, the last one that is needed evenly filled."""
    places: list[tuple[float, float]] = []
    for radius in RINGS:
        room = math.floor(math.pi / math.asin(0.5 * (FENCE_LENGTH + APART) / radius))
        here = min(room, count - len(places))
        places += [(radius, 2 * math.pi * (k + 0.5) / here) for k in range(here)]
    return places


def most_objects() -> int:
    """Fences and cones that the site has room for."""
    fences = sum(math.floor(math.pi / math.asin(0.5 * (FENCE_LENGTH + APART) / radius)) for radius in RINGS)
    return round(fences / FENCES)


FENCES = 0.7  # of all objects are fences, the rest cones


def objects(site: Site) -> tuple[list[tuple[float, ...]], list[int], list[float]]:
    """Poses, kinds and radii of fences and cones: rings of fences around the site, cones between them."""
    rng = np.random.default_rng(site.seed)
    z = heights(site)
    poses: list[tuple[float, ...]] = []
    taken: list[tuple[float, float, float, float]] = []  # middle and half the length of what stands there, as x and y

    def stand(x: float, y: float, heading: float, size: float) -> None:
        """On the highest ground under it."""
        at = np.array([x, y]) / SPACING + 0.5 * (SAMPLES - 1)
        low, high = np.floor(at - size / SPACING).astype(int), np.ceil(at + size / SPACING).astype(int)
        under = z[max(low[0], 0) : high[0] + 1, max(low[1], 0) : high[1] + 1]
        poses.append(upright(x, y, float(under.max()), heading))

    def is_free(x: float, y: float) -> bool:
        if math.hypot(x, y) < 8.0 or (site.truck is not None and _is_at_truck(x, y, site.truck)):
            return False
        for mx, my, hx, hy in taken:
            along = (x - mx) * hx + (y - my) * hy
            share = min(max(along / (hx * hx + hy * hy), -1.0), 1.0) if hx or hy else 0.0
            if math.hypot(x - mx - share * hx, y - my - share * hy) < CONE_GAP:
                return False
        return True

    fences = round(FENCES * site.objects)
    for radius, angle in _fence_places(fences):
        x, y = radius * math.cos(angle), radius * math.sin(angle)
        stand(x, y, angle + math.pi / 2, 0.8)
        half = FENCE_LENGTH / 2
        taken.append((x, y, -half * math.sin(angle), half * math.cos(angle)))
    for _ in range(site.objects - fences):
        x, y = rng.uniform(-17, 17, 2)
        while not is_free(x, y):
            x, y = rng.uniform(-17, 17, 2)
        stand(x, y, rng.uniform(0, math.pi), 0.2)
        taken.append((x, y, 0.0, 0.0))
    cones = site.objects - fences
    return poses, [FENCE] * fences + [CONE] * cones, [1.45] * fences + [0.8] * cones


def object_boxes(site: Site) -> list[tuple[Floats, Floats]]:
    """Boxes along the axes, low and high corner [m], that lie within the fences and cones, several for each fence."""
    made = []
    poses, kinds, _ = objects(site)
    for pose, kind in zip(poses, kinds, strict=True):
        at, heading = np.array(pose[:3]), 2 * math.atan2(pose[6], pose[3])
        along = np.array([math.cos(heading), math.sin(heading), 0.0])
        thick, tall = np.array([0.04, 0.04, 0.0]), np.array([0.0, 0.0, 0.97 if kind == FENCE else 0.6])
        feet = [at + share * along for share in (np.linspace(-0.9, 0.9, 9) if kind == FENCE else (0.0,))]
        made += [(foot - thick, foot + thick + tall) for foot in feet]
    return made


def truck_boxes(world: World) -> list[tuple[Floats, Floats]]:
    """The boxes of the truck: low and high corner [m]."""
    made = []
    for s in world.shapes:
        if s.body is None and isinstance(s.shape, Box):
            half = 0.5 * np.array([s.shape.x, s.shape.y, s.shape.z])
            made.append((s.at - half, s.at + half))
    return made


def _is_at_truck(x: float, y: float, truck: tuple[float, float, float]) -> bool:
    """Whether a place is under the truck or nearly so."""
    return abs(x - truck[0]) < BED_LENGTH / 2 + 3.0 and abs(y - truck[1]) < BED_WIDTH / 2 + 0.6


def heap_names(machine: str) -> tuple[str, ...]:
    """What displays call the fields in reserve, of which they are told where they lie."""
    return tuple(f"{machine}.heap_{k}" for k in range(HEAPS))


def grids(engine: Engine, ground: Ground, site: Site, machine: str) -> tuple[Grid, ...]:
    """The patches that change, for displays; they share memory with the ground itself."""
    fields, made = engine.content.scene.field, []
    for name, shape in patches(site).items():
        if name.startswith("land"):
            continue
        p = int(np.flatnonzero(ground.shape == shape)[0])
        f = int(ground.field[p])
        nx, ny = int(fields.nx[f]), int(fields.ny[f])
        dx, dy = (float(s) for s in fields.step[f])
        across = math.ceil(nx / TILE), math.ceil(ny / TILE)
        body = heap_names(machine)[int(name.removeprefix("heap"))] if name.startswith("heap") else ""
        x, y, z = (0.0, 0.0, 0.0) if body else (float(v) for v in ground.at[p])
        made.append(
            Grid(
                name=name,
                corner=(x - 0.5 * (nx - 1) * dx, y - 0.5 * (ny - 1) * dy, z),
                spacing=(dx, dy),
                heights=fields.height[fields.first[f] : fields.first[f] + nx * ny].reshape(nx, ny),
                stamps=ground.stamp[p, : across[0] * across[1]].reshape(across),
                rim=GRASS if name == "terrain" else None,
                floor=STEEL if name == "truck" else None,
                body=body,
            )
        )
    return tuple(made)
