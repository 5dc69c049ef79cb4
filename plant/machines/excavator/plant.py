"""The excavator as a plant of the node: `create` makes it from the options of a config."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hilnode.core.signals import Signal, nearest
from hilnode.core.struct import Struct
from plant.abi import Arrows, Plant, Props, Task
from plant.collision.model import Kind
from plant.collision.shape.shapes import Field
from plant.engine.compile import Engine
from plant.machines.excavator.cab import INPUTS
from plant.machines.excavator.gauges import OUTPUTS, pulls
from plant.machines.excavator.look import GRASS, cone, fence, look, truck
from plant.machines.excavator.mechanism import Machine, Place, Posture, build
from plant.machines.excavator.parameters import ParameterError, Parameters
from plant.machines.excavator.records import TIRES, build_records, contacts_of, parts, pins, tire_of
from plant.machines.excavator.sensing import sensed
from plant.machines.excavator.site import (
    BED_FLOOR,
    BED_LENGTH,
    BED_WALL,
    BED_WIDTH,
    SPACING,
    Site,
    add_site,
    grids,
    heap_names,
    heights,
    most_objects,
    object_boxes,
    objects,
    truck_boxes,
)
from plant.machines.excavator.step import Excavator, reset, step
from plant.natural.builder import Options
from plant.natural.step import TANGENT_STATUS
from plant.soil.kind import PARAMETERS, SoilKind
from plant.velocity.step import FULL
from plant.visual.entries import Entry
from plant.visual.from_world import frames_of, scene_of
from plant.world.world import World

NAME = "excavator"
SITE_SOIL = {"mu_dig": 1.6e5, "mu_cp": 1.2e5}  # moist loam: a bucket breaks out of it without lifting the machine
INSIDE = 0.10  # [m] deeper than this nothing may stand in the ground at the start


def create(
    dt: float,
    *,
    stepper: str = "spook",
    hydraulics: bool = False,
    tires: str = "magic_formula",
    terrain: str = "waves",
    slope: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
    heading: float = 0.0,
    truck: bool = True,
    pipe: bool = True,
    objects: int | None = None,
    posture: Mapping[str, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
    soil: Mapping[str, float] | None = None,
    sensors: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> Plant:
    """The excavator on its site.

    stepper: spook or ali3p. hydraulics: oil with pressures instead of guided cylinders. tires: magic_formula, fiala or
    composite_slip. terrain: waves, level or slope (`slope` [deg] uphill along x). x, y [m], heading [deg]: where it
    stands. objects: how many fences and cones, 24 if nothing is said. posture: angles of boom, stick, bucket, swing,
    blade, outriggers [deg]. parameters: of the machine, as text with units. soil: of `plant.soil.kind.SoilKind`.
    sensors: their errors, see `sensing`.
    """
    for name, value in (("slope", slope), ("x", x), ("y", y), ("heading", heading)):
        _number(name, value)
    if slope and terrain != "slope":
        raise ParameterError(f"slope {slope:g} deg: terrain {terrain!r} has none; choose terrain 'slope', or slope 0")
    if objects is not None and (not isinstance(objects, int) or isinstance(objects, bool) or objects < 0):
        raise ParameterError(f"objects {objects!r}: must be a whole number of fences and cones, at least 0")
    if objects is not None and objects > most_objects():
        raise ParameterError(f"objects {objects}: the site has room for {most_objects()} fences and cones")
    if stepper == "ali3p" and objects:
        raise ParameterError(
            f"objects {objects}: fences and cones come and go with the stepper spook alone; with ali3p it must be 0"
        )
    count = (0 if stepper == "ali3p" else 24) if objects is None else objects
    made = assemble(
        dt,
        Parameters(parameters),
        Site(
            terrain=terrain,
            slope=math.radians(slope),
            truck=Site.truck if truck else None,
            pipe=pipe,
            objects=count,
            spares=stepper != "ali3p",
            seed=seed,
        ),
        _posture(posture or {}),
        Place(x=x, y=y, heading=math.radians(heading)),
        stepper=stepper,
        hydraulic=hydraulics,
        tires=tires,
        soil=_soil(soil or {}),
        sensors=sensors,
        seed=seed,
    )
    return made.plant


class Made(NamedTuple):
    """The plant and what is behind it, for tests and tools."""

    plant: Plant
    engine: Engine
    machine: Machine
    content: Excavator


def assemble(
    dt: float,
    p: Parameters,
    site: Site,
    posture: Posture,
    place: Place,
    *,
    stepper: str = "spook",
    hydraulic: bool = False,
    tires: str = "magic_formula",
    soil: SoilKind | None = None,
    sensors: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> Made:
    """World, engine and records of one machine on one site."""
    if tires not in TIRES:
        raise ParameterError(f"tires {tires!r} are not known: one of {', '.join(TIRES)}")
    _refuse_long_steps(dt, p, tires)
    world = World()
    add_site(world, site)
    place = _on_ground(p, site, place)
    machine = build(p, world=world, posture=posture, place=place, hydraulic=hydraulic)
    _materials(world)
    engine = world.compile(dt, stepper=stepper, contacts=contacts_of(site), natural=Options(iterations=2, driving=1.0))
    content = build_records(engine, machine, p, site, tires, soil or _soil({}), hydraulic, sensors, seed)
    record = Struct(content)
    _refuse_inside(engine, site)
    plant = Plant(
        NAME,
        dt,
        _named(INPUTS),
        _named((*OUTPUTS, *sensed(OUTPUTS), *pulls(pins(engine)))),
        (Task(NAME, step.address, record.address),),
        bodies=tuple(f"{NAME}.{b}" for b in parts(engine)),
        reset=(reset.address, record.address),
        status={**FULL, **TANGENT_STATUS},
        scene=(*look(p, NAME), *frames_of(world, NAME), *_surroundings(engine, site)),
        grids=grids(engine, content.ground, site, NAME),
        arrows=Arrows(content.arrow_stamp, content.arrow_count, content.arrow_at, content.arrow_force),
        props=Props((*_prop_names(site), *heap_names(NAME)), content.prop_pose, content.prop_stamp),
        owner=(engine, record),
    )
    return Made(plant, engine, machine, content)


def _named(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    return tuple(Signal(f"{NAME}.{s.name}", s.unit, s.default, s.low, s.high, s.safe, s.doc) for s in signals)


def _soil(given: Mapping[str, float]) -> SoilKind:
    for name in given:
        if name not in PARAMETERS:
            raise ParameterError(f"soil {name!r} is not known: {nearest(name, list(PARAMETERS))}")
    return SoilKind(**{**SITE_SOIL, **given})  # type: ignore[arg-type]


def _number(name: str, value: Any) -> float:
    """An option that must be a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ParameterError(f"{name} {value!r}: must be a finite number")
    return float(value)


def _posture(given: Mapping[str, float]) -> Posture:
    known = Posture.__dataclass_fields__
    for name in given:
        if name not in known:
            raise ParameterError(f"posture {name!r} is not known: it is one of {', '.join(known)}")
    return Posture(**{name: math.radians(_number(f"posture {name}", value)) for name, value in given.items()})


def _on_ground(p: Parameters, site: Site, place: Place) -> Place:
    """On the plane through the ground under its wheels, as deep as its tires give way."""
    spots = []
    z = heights(site)
    for px in (p["axle.front"], p["axle.rear"]):
        for py in (p["track"] / 2, -p["track"] / 2):
            c, s = math.cos(place.heading), math.sin(place.heading)
            at = np.array([place.x + c * px - s * py, place.y + s * px + c * py])
            spots.append((px, py, z[_sample(z, *at)]))
    a = np.array([(1.0, px, py) for px, py, _ in spots])
    level, along, across = np.linalg.lstsq(a, np.array([h for _, _, h in spots]), rcond=None)[0]
    weight = 9.81 * 20_000 / 4
    sink = weight / p["tire.stiffness"]
    return Place(place.x, place.y, place.z + float(level) - sink, place.heading, -math.atan(along), math.atan(across))


def _materials(world: World) -> None:
    """Steel on soil and steel by Hunt and Crossley's law, as in Luaces 6.3.2; light plastic things are rigid.

    The pads of the outriggers and the edge of the blade bite into the soil: a cleat holds better than a plate.
    """
    law: dict[str, Any] = {"law": "hunt_crossley", "exponent": 1.5, "restitution": 0.2}
    world.material("steel", "soil", stiffness=8e6, friction=0.5, stiction=0.6, **law)
    world.material("cleat", "soil", stiffness=8e6, friction=0.95, stiction=1.05, **law)
    for other in ("steel", "cleat"):
        world.material("steel", other, stiffness=2e7, friction=0.3, stiction=0.35, **law)
        world.material("plastic", other, friction=0.3, stiffness=1e5)
    world.material("cleat", "cleat", stiffness=2e7, friction=0.3, stiction=0.35, **law)
    world.material("plastic", "soil", friction=0.5, stiffness=1e5)
    world.material("plastic", "plastic", friction=0.3, stiffness=1e5)


def _surroundings(engine: Engine, site: Site) -> tuple[Entry, ...]:
    """Land, truck, fences and cones. The terrain and the truck's floor are grids."""
    land = [s for s in engine.world.shapes[1:5] if isinstance(s.shape, Field)]
    grown = {"colour": list(GRASS), "finish": "grass"}
    made = [e | (grown if "colour" in e else {}) for e in scene_of(land, engine.names, NAME)]
    if site.truck is not None:
        x, y, heading = site.truck
        bed = (BED_LENGTH, BED_WIDTH, BED_FLOOR, BED_WALL)
        made += truck(x, y, 1.0 if abs(heading) < 1e-9 else -1.0, bed)
    for name in _prop_names(site):
        made += cone(name) if ".cone_" in name else fence(name)
    return tuple(made)


def _prop_names(site: Site) -> tuple[str, ...]:
    _, kinds, _ = objects(site)
    return tuple(f"{NAME}.{'cone' if kind else 'fence'}_{k}" for k, kind in enumerate(kinds))


def _refuse_long_steps(dt: float, p: Parameters, tires: str) -> None:
    """A wheel is light and its tire is stiff and well damped."""
    box = p.point("wheel.size")
    longest = tire_of(p, tires).longest_step(p["wheel.mass"], p["wheel.mass"] / 12 * (box[0] ** 2 + box[2] ** 2))
    if dt > longest:
        raise ParameterError(
            f"dt {dt:g} s: its tires need steps of {longest:.2g} s or less; a lower tire.stiffness or tire.damping, or "
            "a higher wheel.mass, allows longer ones"
        )


def _refuse_inside(engine: Engine, site: Site) -> None:
    """A machine that begins inside the ground, the truck or a fence would be thrown out of it."""
    z, balls = heights(site), _balls(engine)
    worst, where = INSIDE, ""
    for name, at, radius in balls:
        inside = float(z[_sample(z, at[0], at[1])] - (at[2] - radius))
        if inside > worst:
            worst, where = (
                inside,
                f"x {at[0]:.2f}, y {at[1]:.2f} m: {name} would begin {inside:.2f} m inside the ground",
            )
    obstacles = [(f"the truck at {_spot(low, high)}", low, high) for low, high in truck_boxes(engine.world)]
    obstacles += [(f"a fence or cone at {_spot(low, high)}", low, high) for low, high in object_boxes(site)]
    for what, low, high in obstacles:
        for name, at, radius in balls:
            inside = radius - float(np.linalg.norm(np.maximum(np.maximum(low - at, at - high), 0.0)))
            if inside > worst:
                worst, where = (
                    inside,
                    f"x {at[0]:.2f}, y {at[1]:.2f} m: {name} would begin {inside:.2f} m inside {what}",
                )
    if where:
        raise ParameterError(f"{where}, where {INSIDE:g} m is allowed: choose another place or posture")


def _spot(low: np.ndarray, high: np.ndarray) -> str:
    return f"x {0.5 * (low[0] + high[0]):.1f}, y {0.5 * (low[1] + high[1]):.1f} m"


def _balls(engine: Engine) -> list[tuple[str, np.ndarray, float]]:
    """The machine's shapes, which are balls and bars, as balls: body, middle [m], radius [m]."""
    shape, placed, made = engine.content.scene.shape, engine.content.scene.placed, []
    for s in np.flatnonzero(shape.body >= 0):
        name = engine.names[shape.body[s]]
        if name.startswith(("heap", "fence", "cone")):
            continue
        radius, half = float(shape.size[s, 0]), 0.0
        if shape.kind[s] == Kind.CAPSULE:
            half = float(shape.size[s, 1])
        shares = np.linspace(-1.0, 1.0, max(1, 2 * math.ceil(half / radius) + 1))
        made += [(name, placed.pos[s] + share * half * placed.rot[s, :, 2], radius) for share in shares]
    return made


def _sample(z: np.ndarray, x: float, y: float) -> tuple[int, int]:
    """The sample of the terrain nearest to (x, y)."""
    i, j = np.rint(np.array([x, y]) / SPACING + 0.5 * (np.array(z.shape) - 1)).astype(int)
    if not (0 <= i < z.shape[0] and 0 <= j < z.shape[1]):
        reach = 0.5 * (z.shape[0] - 1) * SPACING
        raise ParameterError(
            f"x {x:.2f}, y {y:.2f} m: part of the machine would stand beyond the terrain, which reaches {reach:.2f} m: "
            "choose another x or y"
        )
    return int(i), int(j)
