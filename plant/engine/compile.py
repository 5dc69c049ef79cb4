"""Compile: a World to Model and Data. Everything is checked and allocated here; nothing later allocates or raises.

Arrays have room for what the world holds and for as many more bodies, joints and actuators as `spare` says, so that a
running engine can take new ones (see `live`). Both ways in write their entries with the functions of `entries`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.jit import kernel
from hilnode.record import Record, zeros
from hilnode.signals import nearest
from plant import entries, ldl, model, order
from plant.collide.far.scenery import METHODS
from plant.collide.hull import CORNERS
from plant.collide.model import Kind
from plant.collide.moments import new_regions
from plant.collide.near import known_pairs, pair_table
from plant.collide.scene import Placement, Scene, build_scene
from plant.collide.shapes import Hull, Mesh, Progress
from plant.collide.volume import KNOWN, build_volumes
from plant.hashing import new_table
from plant.kinds import Bound
from plant.natural.bed import bed_push_stage, bed_slopes_stage
from plant.natural.builder import Options
from plant.natural.core import Core
from plant.natural.reactions import find_reactions
from plant.natural.step import natural_stage
from plant.smooth.bed_rows import bed_row_stage
from plant.smooth.material import ForceLaw, force_law, smooth_table
from plant.smooth.model import Law, new_bed, new_response
from plant.spook import stages, step_stage
from plant.stages import Stages, call_stage
from plant.world import Body, Material, Placed, World, WorldError, conjugate, matrix, rotated

STEPPERS = {s.name.lower(): s for s in model.Stepper}
COLLISIONS = 256  # entries that the log of collisions keeps
SOLVERS = {s.name.lower(): s for s in model.Solver}


@dataclass(frozen=True)
class Spare:
    """Room for what is added while running."""

    bodies: int = 0
    joints: int = 0
    actuators: int = 0
    shapes: int = 0


@kernel
def _run(function, address, count):
    return call_stage(function, address, count)


@dataclass
class Engine:
    """A compiled world."""

    world: World
    content: model.Engine
    record: Record
    names: list[str]
    joint_names: list[str]
    actuator_names: list[str]
    material_names: list[str]
    shapes_taken: int
    let_go: set[str] = field(default_factory=set)  # joints that hold again when their body is switched on
    core: Core | None = None  # in natural coordinates, if that is what steps
    volumes: Record | None = None  # what tells volumes of overlap, if a material asks for them

    def step(self, count: int = 1) -> int:
        """Advance; 0 or the status that ended it."""
        return int(_run(self.content.model.stage.step, self.record.address, count))

    def index(self, body: str) -> int:
        return self.names.index(body)

    def position(self, body: str) -> NDArray[np.float64]:
        """Origin of a body's frame [m]."""
        b, d = self.index(body), self.content.data.state
        return d.pos[b] - rotated(d.quat[b], self.content.model.body.com[b])

    def reaction(self, joint: str) -> NDArray[np.float64]:
        """What the locked rows of a joint push with [N, N m]: on b along the row, on a against it."""
        j = self.joint_names.index(joint)
        if self.core is not None and joint in self.core.shared:
            return find_reactions(self.content, self.core.content)[j]
        return self.content.data.row.force[j].copy()

    def guide(self, name: str, position: float, speed: float = 0.0, acceleration: float = 0.0) -> None:
        """Where a guided axis is at the end of the coming step [m, rad], how fast and with which acceleration.

        Told nothing new, it goes on from there with this acceleration. The first step after bodies were placed goes on
        from where they stand.
        """
        k, target = self.actuator_names.index(name), self.content.data.target
        target.position[k], target.speed[k], target.acceleration[k] = position, speed, acceleration

    def gap(self) -> float:
        """The largest violation of a locked linear axis of a rigid joint [m]."""
        joint, row = self.content.model.joint, self.content.data.row
        linear = (joint.axis >= 0) & ((joint.axis < 3) | (joint.axis == model.DISTANCE))
        linear &= ((joint.on == 1) & (joint.rigid == 1))[:, None]
        return float(np.abs(row.error[linear]).max(initial=0.0))

    def energy(self) -> float:
        """Kinetic and potential [J]."""
        m, s = self.content.model, self.content.data.state
        total = 0.0
        for b in range(len(self.names)):
            if m.body.kind[b] != 0:
                continue
            v = s.vel[b]
            spin = rotated(conjugate(s.quat[b]), v[3:])
            total += 0.5 * m.body.mass[b] * v[:3] @ v[:3] + 0.5 * spin @ m.body.inertia[b] @ spin
            total -= m.body.mass[b] * np.array([m.setup.gx, m.setup.gy, m.setup.gz]) @ s.pos[b]
        return float(total)


def compile_world(
    world: World,
    dt: float,
    *,
    contacts: int = 64,
    stepper: str = "spook",
    solver: str = "auto",
    spare: Spare | None = None,
    friction_rounds: int = 2,
    sweeps: int = 50,
    relaxation: float = 1.0,
    natural: Options | None = None,
    pairs: int | None = None,
    scenery: str = "tree",
    progress: Progress | None = None,
) -> Engine:
    """Arrays for `world` at steps of `dt` seconds, with room for so many contacts.

    `solver`: direct, iterative, gradient, split, or auto: direct, unless an island has too many loops for that.
    `pairs` is the room for pairs of shapes that come near each other, if what is found by itself does not do; `scenery`
    the tree for shapes that never move: tree, octree or kdtree. `progress(part, what)` is told how far the trees of
    the meshes are, which takes seconds for millions of triangles.
    """
    spare = spare or Spare()
    _check(world, dt, stepper, solver)
    for what, given in (("contacts", contacts), ("pairs", pairs)):
        if given is not None and given < 1:
            raise WorldError(f"{what}={given}: there must be room for one at least")
    if scenery not in METHODS:
        raise WorldError(f"scenery {scenery!r} is not known: {nearest(scenery, list(METHODS))}")
    _check_meshes(world)
    _check_hulls(world)
    bodies, joints, acts = list(world.bodies.values()), list(world.joints.values()), list(world.actuators.values())
    room = _Room(
        len(bodies) + spare.bodies,
        len(joints) + spare.joints,
        len(acts) + spare.actuators,
        len(world.couplings),
        len(world.springs),
        contacts,
        contacts if any(m.law.law == Law.FOUNDATION for m in world.materials.values()) else 0,
    )
    by_volume = overlapping(world, spare.shapes) if room.regions else set()
    setup = _setup(world, dt, stepper, solver, friction_rounds, sweeps, relaxation)
    materials, material_names = _materials(world, dt, by_force=stepper == "ali3p")
    made = model.Model(
        setup=setup,
        stage=_stages(natural=stepper == "ali3p", by_volume=room.regions > 0),
        body=zeros(model.Bodies, {"inertia": (room.bodies, 3, 3), "com": (room.bodies, 3)}, room.bodies),
        joint=zeros(model.Joints, entries.joint_shapes(room.joints), room.joints),
        coupling=zeros(model.Couplings, entries.coupling_shapes(room.couplings), room.couplings),
        actuator=zeros(model.Actuators, {}, room.actuators),
        spring=_springs(world, room),
        cylinder=entries.cylinders(world),
        field=model.Fields(np.array([f.address for f in world.fields], np.int64)),
        material=materials,
    )
    made.body.kind[:] = model.BodyKind.ABSENT
    data = _data(world, room, made)
    names = [b.name for b in bodies] + [""] * spare.bodies
    for k, body in enumerate(bodies):
        entries.write_body(made, data, k, body)
    with _refusing():
        scene = _scene(world, material_names, made, data, spare, pairs=pairs, scenery=scenery, say=progress)
    volumes = None
    if room.regions:
        volumes = Record(build_volumes(scene.hull, by_volume))
        scene = scene._replace(volumes=volumes.address)
    content = model.Engine(made, data, scene)
    engine = Engine(
        world,
        content,
        Record(content),
        names,
        [j.name for j in joints] + [""] * spare.joints,
        [a.name for a in acts] + [""] * spare.actuators,
        material_names,
        len(world.shapes),
        volumes=volumes,
    )
    number = {b.name: k for k, b in enumerate(bodies)}
    for k, joint in enumerate(joints):
        entries.write_joint(content, k, joint, world, number)
    joint_number = {j.name: k for k, j in enumerate(joints)}
    for k, actuator in enumerate(acts):
        which = list(world.cylinders).index(actuator.name) if actuator.name in world.cylinders else -1
        entries.write_actuator(content, k, actuator, joint_number, which)
    for k, coupling in enumerate(world.couplings.values()):
        entries.write_coupling(content, k, coupling, joint_number)
    entries.find_offsets(engine.record.address)
    if stepper != "ali3p" and (guides := [a.name for a in acts if a.kind == Bound.GUIDE]):
        raise WorldError(
            f"guide {guides[0]!r} with stepper {stepper!r}: only stepper='ali3p' has constraints that move; "
            "elsewhere a motor or a servo without a bound of its force comes near to it"
        )
    if stepper == "ali3p":
        engine.core = Core(content, engine.names, engine.joint_names, natural or Options())
        engine.content = engine.core.engine
        engine.record = Record(engine.content)
    else:
        _refuse_open_loops(engine)
    return engine


def _stages(natural: bool, by_volume: bool) -> Stages:
    """The pieces of the step; those for contacts by volume only if there are any."""
    if not by_volume:
        return stages(natural_stage if natural else step_stage)
    if natural:
        return stages(natural_stage, bed_push_stage, bed_slopes_stage)
    return stages(step_stage, bed_row_stage)


def _check(world: World, dt: float, stepper: str, solver: str) -> None:
    if not (np.isfinite(dt) and dt > 0):
        raise WorldError(f"dt = {dt}: a step must take a positive number of seconds")
    if np.shape(world.gravity) != (3,) or not np.isfinite(np.array(world.gravity, float)).all():
        raise WorldError(f"gravity {tuple(world.gravity)} must be three finite numbers")
    for what, given, known in (("stepper", stepper, STEPPERS), ("solver", solver, SOLVERS)):
        if given not in known:
            raise WorldError(f"{what} {given!r} is not known: {nearest(given, list(known))}")
    for body in world.bodies.values():
        check_body(body)
    for j in world.joints.values():
        if not any(n is not None and world.bodies[n].kind == "dynamic" for n in (j.a, j.b)):
            raise WorldError(f"joint {j.name!r} connects nothing that can move")


def _check_meshes(world: World) -> None:
    """Refuse meshes that are not sound, and open ones on bodies that move by themselves: these must have an inside."""
    seen: dict[int, bool] = {}
    for k, s in enumerate(world.shapes):
        if not isinstance(s.shape, Mesh):
            continue
        where = f"{s.shape.source or 'mesh'} (shape {k}, on {s.body or 'the ground'})"
        if id(s.shape) not in seen:
            if fault := s.shape.fault():
                raise WorldError(f"{where}: {fault}")
            seen[id(s.shape)] = s.shape.is_closed()
        if not seen[id(s.shape)] and s.body is not None and world.bodies[s.body].kind == "dynamic":
            raise WorldError(f"{where}: {s.shape.fault(closed=True)}; a body that moves must have an inside")


def _check_hulls(world: World) -> None:
    """Refuse hulls with more corners than meshes and fields can tell apart, if they meet any."""
    surfaces = [s for s in world.shapes if s.shape.kind in (Kind.MESH, Kind.FIELD)]
    for k, s in enumerate(world.shapes):
        if not isinstance(s.shape, Hull) or len(s.shape.vertices) <= CORNERS:
            continue
        if any(s.group & o.mask and o.group & s.mask and s.body != o.body for o in surfaces):
            raise WorldError(
                f"hull (shape {k}, on {s.body or 'the ground'}): has {len(s.shape.vertices)} corners, but meshes and "
                f"fields touch hulls of {CORNERS} at most; leave out points that hardly change its form, or part them "
                "by masks"
            )


@contextmanager
def _refusing() -> Iterator[None]:
    """What a shape cannot be is the world's fault."""
    try:
        yield
    except WorldError:
        raise
    except ValueError as error:
        raise WorldError(str(error)) from error


def check_body(body: Body) -> None:
    """Refuse a mass and an inertia that no rigid body has."""
    if body.kind != "dynamic":
        return
    if not (np.isfinite(body.mass) and body.mass > 0):
        raise WorldError(f"body {body.name!r}: mass {body.mass} kg must be positive; for a fixed one use kind='static'")
    tensor = body.inertia
    if np.isfinite(tensor).all() and not np.allclose(tensor, tensor.T, rtol=1e-9, atol=1e-12 * abs(np.trace(tensor))):
        raise WorldError(f"body {body.name!r}: its inertia tensor is not symmetric")
    moments = np.linalg.eigvalsh(tensor) if np.isfinite(tensor).all() else np.diag(tensor)
    if not (np.isfinite(moments).all() and moments[0] > 0):
        raise WorldError(f"body {body.name!r}: principal moments {moments.tolist()} kg m^2 must be positive")
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-9):
        raise WorldError(
            f"body {body.name!r}: principal moments {moments.tolist()} break the triangle rule: no rigid body has them"
        )


def _refuse_open_loops(engine: Engine) -> None:
    """Joints are made where both bodies are, so a loop can only fail to close where a joint names two places."""
    m, d = engine.content.model, engine.content.data
    for j, name in enumerate(engine.joint_names):
        far = np.abs(d.row.error[j][(m.joint.axis[j] >= 0) & (m.joint.axis[j] < 3)]).max(initial=0.0)
        if name and m.joint.rigid[j] and far > 1e-3:
            raise WorldError(f"joint {name!r} cannot close: its anchors are {far:.3g} m apart along a locked axis")


@dataclass(frozen=True)
class _Room:
    bodies: int
    joints: int
    actuators: int
    couplings: int
    springs: int
    contacts: int
    regions: int  # contacts by volume

    @property
    def rows(self) -> int:
        return self.actuators + self.springs + 3 * (self.contacts + self.regions) + 6 * self.joints

    @property
    def nodes(self) -> int:
        return self.bodies + self.joints + self.couplings

    @property
    def blocks(self) -> int:
        return 4 * self.nodes + 512 + 4 * min(self.contacts, 1024)

    @property
    def sketch(self) -> int:
        """Nodes of the largest island that is laid out for a direct solve."""
        return min(self.nodes, 2048)


def _setup(world, dt, stepper, solver, rounds, sweeps, relaxation) -> model.Setup:
    gx, gy, gz = (float(g) for g in world.gravity)
    return model.Setup(
        h=dt,
        gx=gx,
        gy=gy,
        gz=gz,
        stepper=STEPPERS[stepper],
        solver=SOLVERS[solver],
        friction_rounds=rounds,
        newtons=40,
        sweeps=sweeps,
        relaxation=relaxation,
        visible=world.visible,
        slow=world.slow,
        quiet=4 * dt * math.hypot(gx, gy, gz) if world.quiet is None else world.quiet,
        margin=world.margin,
        sleep_after=world.sleep_after,
        core=0,
    )


def _springs(world: World, room: _Room) -> model.Springs:
    springs = list(world.springs.values())
    names = list(world.bodies)
    xs = [s.table[0] for s in springs if s.table is not None]
    ys = [s.table[1] for s in springs if s.table is not None]
    starts, at = [], 0
    for s in springs:
        starts.append(-1 if s.table is None else at)
        at += 0 if s.table is None else len(s.table[0])

    def local(body: str | None, point: NDArray[np.float64]) -> NDArray[np.float64]:
        if body is None:
            return point
        b = world.bodies[body]
        return rotated(conjugate(b.quat), point - b.pos) - b.com

    def floats(values: list[float]) -> NDArray[np.float64]:
        return np.array(values, float)

    return model.Springs(
        on=np.ones(len(springs), np.int64),
        a=np.array([-1 if s.a is None else names.index(s.a) for s in springs], np.int64),
        b=np.array([-1 if s.b is None else names.index(s.b) for s in springs], np.int64),
        pa=np.array([local(s.a, s.at_a) for s in springs], float).reshape(-1, 3),
        pb=np.array([local(s.b, s.at_b) for s in springs], float).reshape(-1, 3),
        rest=floats([s.rest for s in springs]),
        stiffness=floats([s.stiffness for s in springs]),
        damping=floats([s.damping for s in springs]),
        low=floats([s.low for s in springs]),
        high=floats([s.high for s in springs]),
        table=np.array(starts, np.int64),
        table_size=np.array([0 if s.table is None else len(s.table[0]) for s in springs], np.int64),
        table_x=np.concatenate(xs) if xs else np.zeros(1),
        table_y=np.concatenate(ys) if ys else np.zeros(1),
    )


def _materials(world: World, h: float, by_force: bool) -> tuple[model.Materials, list[str]]:
    """One entry for each pair of materials in use, and their names.

    A core that knows contacts by their force only gets a law for every pair: rigid ones are as stiff as they say.
    """
    names = sorted({s.material for s in world.shapes} | {m for pair in world.materials for m in pair} | {"default"})
    pairs = [(a, b) for i, a in enumerate(names) for b in names[: i + 1]]
    made = [world.materials.get(pair, Material()) for pair in pairs]
    pair = np.zeros((len(names), len(names)), np.int64)
    for k, (one, other) in enumerate(pairs):
        i, j = names.index(one), names.index(other)
        pair[i, j] = pair[j, i] = k
    soft = [entries.spook_parameters(m.stiffness, m.damping_time, h) for m in made]

    def column(name: str) -> NDArray[np.float64]:
        return np.array([getattr(m, name) for m in made], float)

    table = model.Materials(
        friction=column("friction"),
        stiction=np.array([m.friction if m.stiction is None else m.stiction for m in made], float),
        bounce=column("restitution"),
        stiffness=column("stiffness"),
        sigma=np.array([s for s, _ in soft]),
        upsilon=np.array([u for _, u in soft]),
        adhesion=column("adhesion"),
        slip=column("slip"),
        pair=pair,
        smooth=smooth_table([_stiff_law(m) if by_force and m.law.law == Law.RIGID else m.law for m in made]),
    )
    return table, names


def _stiff_law(m: Material) -> ForceLaw:
    """A linear law with the stiffness, restitution and friction of a rigid pair."""
    given = {
        "stiffness": m.stiffness,
        "exponent": 1.0,
        "restitution": m.restitution,
        "friction": m.friction,
        "stiction": m.friction if m.stiction is None else m.stiction,
        "adhesion": m.adhesion,
    }
    return force_law("hunt_crossley", given)


def _scene(
    world: World, materials: list[str], made: model.Model, data: model.Data, spare: Spare, **options: Any
) -> Scene:
    """The shapes of the world; pairs of bodies that share a joint, and pairs of kinds that meet, are found here."""
    number = {n: i for i, n in enumerate(world.bodies)}
    placements = [place_shape(world, s, number, materials) for s in world.shapes]
    joined = [(j.a, j.b) for j in world.joints.values()]
    excluded = [(number[a] if a else -1, number[b] if b else -1) for a, b in joined]
    kinds = made.body.kind
    rot = np.zeros((len(kinds), 3, 3))
    rot[:] = np.eye(3)
    for name, i in number.items():
        rot[i] = matrix(world.bodies[name].quat)
    return build_scene(
        placements,
        kinds,
        data.state.pos,
        rot,
        spare=spare.shapes,
        joints=spare.joints,
        excluded=[p for p in excluded if -1 not in p],
        margin=world.margin,
        table=pair_table(_meeting(world, spare.shapes)),
        **options,
    )


def place_shape(world: World, s: Placed, number: dict[str, int], materials: list[str]) -> Placement:
    """A shape of the world with numbers instead of names, measured from its body's centre of mass."""
    com = world.bodies[s.body].com if s.body is not None else np.zeros(3)
    body = number[s.body] if s.body is not None else -1
    return Placement(s.shape, body, s.at - com, matrix(s.quat), materials.index(s.material), s.group, s.mask)


def _meeting(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds, lower first, that may touch in this world. Refuses pairs of shapes that cannot."""
    kinds, known = set(), known_pairs()
    for one, other in _pairs_that_meet(world):
        key = (one.shape.kind, other.shape.kind)
        if key not in known and one.body != other.body:
            raise WorldError(
                f"{_both(one, other)}: such shapes cannot touch; give them masks that part them, or use hulls"
            )
        kinds.add(key)
    return kinds | _kinds_to_come(world, spare)


def overlapping(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds, lower first, that may touch by volume. Refuses pairs of shapes whose overlap is not known."""
    kinds = set()
    for one, other in _pairs_that_meet(world):
        if world.materials.get((one.material, other.material), Material()).law.law != Law.FOUNDATION:
            continue
        key = (one.shape.kind, other.shape.kind)
        if key not in KNOWN and one.body != other.body:
            raise WorldError(
                f"{_both(one, other)}: law 'foundation' of {one.material!r} on {other.material!r} needs the volume "
                "that they have in common, which is not known for such shapes; make one of them of hulls, give them "
                "masks that part them, or a material with another law"
            )
        kinds.add(key)
    return kinds | {key for key in _kinds_to_come(world, spare) if key in KNOWN}


def _both(one: Placed, other: Placed) -> str:
    return " and ".join(f"{s.shape.kind.name.lower()} on {s.body or 'the ground'}" for s in (one, other))


def _kinds_to_come(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds that shapes added to a running engine may make."""
    simple = [k for k in Kind if k < Kind.HULL] if spare else []
    return {(min(a, b), max(a, b)) for a in simple for b in [*simple, *(s.shape.kind for s in world.shapes)]}


def _pairs_that_meet(world: World) -> Iterator[tuple[Placed, Placed]]:
    """Pairs of shapes that may touch, the lower kind first; of many that are alike in all but their place, some."""
    moves = {n: b.kind == "dynamic" for n, b in world.bodies.items()}
    seen: dict[tuple[object, ...], Placed] = {}
    for s in world.shapes:  # two of a sort are enough
        sort: tuple[object, ...] = (s.shape.kind, s.body is not None and moves[s.body], s.group, s.mask, s.material)
        if sort in seen and seen[sort].body != s.body:
            sort = (*sort, "another")
        seen.setdefault(sort, s)
    for one in seen.values():
        for other in seen.values():
            if one.shape.kind > other.shape.kind or not (one.group & other.mask and other.group & one.mask):
                continue
            if any(s.body is not None and moves[s.body] for s in (one, other)):
                yield one, other


def _data(world: World, room: _Room, made: model.Model) -> model.Data:
    nb, nj, np_, nc, rows = room.bodies, room.joints, room.couplings, room.contacts, room.rows
    key, block_of = new_table(room.blocks + nc)
    islands = nb + 1
    return model.Data(
        state=zeros(
            model.State,
            {
                "pos": (nb, 3),
                "quat": (nb, 4),
                "angle": (nj, 2),
                **dict.fromkeys(("vel", "wrench", "pull"), (nb, 6)),
            },
            nb,
        ),
        frame=zeros(
            model.Frames, {"rot": (nb, 3, 3), "inertia": (nb, 3, 3), "inverse": (nb, 3, 3), "momentum": (nb, 6)}, nb
        ),
        row=zeros(
            model.JointRows,
            {
                **dict.fromkeys(("ga", "gb"), (nj, 6, 6)),
                **dict.fromkeys(("error", "curve", "force", "drive", "goal", "rest", "told"), (nj, 6)),
                **dict.fromkeys(("pull", "slide", "spin_axis"), (nj, 3)),
                "axes": (nj, 3, 3),
                "arm": (nj, 2, 3),
            },
            nj,
        ),
        coupled=zeros(model.CouplingRows, {"g": (np_, order.ENDS, 6)}, np_),
        contact=zeros(
            model.Contacts,
            {
                **dict.fromkeys(("body", "old_body"), (nc, 2)),
                **dict.fromkeys(("count", "new", "old_count"), (1,)),
                **dict.fromkeys(("point", "normal", "impulse", "tangent", "stretch"), (nc, 3)),
                **dict.fromkeys(("old_impulse", "old_tangent", "old_stretch"), (nc, 3)),
            },
            nc,
        ),
        log=zeros(model.Log, {"count": (1,), "body": (COLLISIONS, 2), "point": (COLLISIONS, 3)}, COLLISIONS),
        warm=model.Warm(*new_table(nc)),
        region=new_regions(room.regions),
        response=new_response(),
        bed=new_bed(),
        bounded=zeros(
            model.Rows,
            {"count": (1,), "ga": (rows, 6), "gb": (rows, 6), "back": (rows, 12), "kept": (room.actuators,)},
            rows,
        ),
        target=zeros(model.Targets, {}, room.actuators),
        chamber=entries.chambers(world),
        graph=model.Graph(
            dirty=np.ones(1, np.int64),
            body_node=np.full(nb, -1, np.int64),
            joint_node=np.full(nj, -1, np.int64),
            coupling_node=np.full(np_, -1, np.int64),
            owner=_ints(room.nodes),
            block=np.full((max(1, nj + np_), order.ENDS), -1, np.int64),
            over=np.zeros((max(1, nj + np_), order.ENDS), np.int64),
            root=_ints(nb),
            island=np.full(nb, -1, np.int64),
            islands=_ints(3),
            first=_ints(islands + 1),
            row_first=_ints(islands + 1),
            solver=_ints(islands),
            strained=_ints(islands),
            coupled=_ints(islands),
            members=_ints(islands),
            loops=_ints(islands),
            local=_ints(room.nodes),
            list=_ints(room.nodes),
            head=_ints(islands),
            next=np.full(room.nodes, -1, np.int64),
            pair_head=_ints(islands),
            pair_next=_ints(room.springs + nc),
            key=key,
            block_of=block_of,
        ),
        sketch=order.new_sketch(room.sketch),
        pattern=order.new_pattern(room.nodes, room.blocks, 8 * room.blocks),
        factor=ldl.new_factor(room.nodes, room.blocks),
        x=np.zeros((room.nodes, 6)),
        scratch=np.zeros((10, 6)),
        status=_ints(model.Status.COUNT),
    )


def _ints(n: int) -> NDArray[np.int64]:
    return np.zeros(n, np.int64)
