"""Compile: a World to Model and Data. Checks and allocation are in this room (`checks`, `allocate`).

No step allocates or raises afterwards. Arrays have room for what the world holds and for as many more bodies, joints
and actuators as `spare` says, so that a running engine can take new ones (see `live`). Both ways in write their entries
with the functions of `write`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.core.signals import nearest
from hilnode.core.struct import Struct, zeros
from plant import model
from plant.codes import BodyKind, Bound
from plant.collision.broadphase.static_tree import METHODS
from plant.collision.pairs.table import pair_table
from plant.collision.scene import Placement, Scene, build_scene
from plant.collision.shape.shapes import Progress
from plant.collision.volume.volume import build_volumes
from plant.contact_law.material import ForceLaw, force_law, smooth_table
from plant.contact_law.model import Law
from plant.engine import write
from plant.engine.allocate import Room, new_data
from plant.engine.checks import (
    SOLVERS,
    STEPPERS,
    check_hulls,
    check_meshes,
    check_world,
    overlapping,
    pairs_of_kinds,
    refusing,
)
from plant.natural.builder import Options
from plant.natural.core import Core
from plant.natural.foundation import foundation_force_stage, foundation_slopes_stage
from plant.natural.reactions import find_reactions
from plant.natural.step import natural_stage
from plant.stages import Stages, call_stage
from plant.velocity.foundation_rows import foundation_row_stage
from plant.velocity.step import stages, step_stage
from plant.world.bodies import Placed
from plant.world.checks import WorldError
from plant.world.materials import Material
from plant.world.rotations import conjugate, matrix, rotated
from plant.world.world import World


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
    record: Struct
    names: list[str]
    joint_names: list[str]
    actuator_names: list[str]
    material_names: list[str]
    shapes_taken: int
    let_go: set[str] = field(default_factory=set)  # joints that hold again when their body is switched on
    core: Core | None = None  # in natural coordinates, if that is what steps
    volumes: Struct | None = None  # what tells volumes of overlap, if a material asks for them

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
            if m.body.kind[b] != BodyKind.DYNAMIC:
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
    check_world(world, dt, stepper, solver)
    for what, given in (("contacts", contacts), ("pairs", pairs)):
        if given is not None and given < 1:
            raise WorldError(f"{what}={given}: there must be room for one at least")
    if scenery not in METHODS:
        raise WorldError(f"scenery {scenery!r} is not known: {nearest(scenery, list(METHODS))}")
    check_meshes(world)
    check_hulls(world)
    bodies, joints, acts = list(world.bodies.values()), list(world.joints.values()), list(world.actuators.values())
    room = Room(
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
        joint=zeros(model.Joints, write.joint_shapes(room.joints), room.joints),
        coupling=zeros(model.Couplings, write.coupling_shapes(room.couplings), room.couplings),
        actuator=zeros(model.Actuators, {}, room.actuators),
        spring=_springs(world, room),
        cylinder=write.cylinders(world),
        field=model.Fields(np.array([f.address for f in world.fields], np.int64)),
        material=materials,
    )
    made.body.kind[:] = BodyKind.ABSENT
    data = new_data(world, room)
    names = [b.name for b in bodies] + [""] * spare.bodies
    for k, body in enumerate(bodies):
        write.write_body(made, data, k, body)
    with refusing():
        scene = _scene(world, material_names, made, data, spare, pairs=pairs, scenery=scenery, say=progress)
    volumes = None
    if room.regions:
        volumes = Struct(build_volumes(scene.hull, by_volume))
        scene = scene._replace(volumes=volumes.address)
    content = model.Engine(made, data, scene)
    engine = Engine(
        world,
        content,
        Struct(content),
        names,
        [j.name for j in joints] + [""] * spare.joints,
        [a.name for a in acts] + [""] * spare.actuators,
        material_names,
        len(world.shapes),
        volumes=volumes,
    )
    number = {b.name: k for k, b in enumerate(bodies)}
    for k, joint in enumerate(joints):
        write.write_joint(content, k, joint, world, number)
    joint_number = {j.name: k for k, j in enumerate(joints)}
    for k, actuator in enumerate(acts):
        which = list(world.cylinders).index(actuator.name) if actuator.name in world.cylinders else -1
        write.write_actuator(content, k, actuator, joint_number, which)
    for k, coupling in enumerate(world.couplings.values()):
        write.write_coupling(content, k, coupling, joint_number)
    write.find_offsets(engine.record.address)
    if stepper != "ali3p" and (guides := [a.name for a in acts if a.kind == Bound.GUIDE]):
        raise WorldError(
            f"guide {guides[0]!r} with stepper {stepper!r}: only stepper='ali3p' has constraints that move; "
            "elsewhere a motor or a servo without a bound of its force comes near to it"
        )
    if stepper == "ali3p":
        engine.core = Core(content, engine.names, engine.joint_names, natural or Options())
        engine.content = engine.core.engine
        engine.record = Struct(engine.content)
    else:
        _refuse_open_loops(engine)
    return engine


def _stages(natural: bool, by_volume: bool) -> Stages:
    """The pieces of the step; those for contacts by volume only if there are any."""
    if not by_volume:
        return stages(natural_stage if natural else step_stage)
    if natural:
        return stages(natural_stage, foundation_force_stage, foundation_slopes_stage)
    return stages(step_stage, foundation_row_stage)


def _refuse_open_loops(engine: Engine) -> None:
    """Joints are made where both bodies are, so a loop can only fail to close where a joint names two places."""
    m, d = engine.content.model, engine.content.data
    for j, name in enumerate(engine.joint_names):
        far = np.abs(d.row.error[j][(m.joint.axis[j] >= 0) & (m.joint.axis[j] < 3)]).max(initial=0.0)
        if name and m.joint.rigid[j] and far > 1e-3:
            raise WorldError(f"joint {name!r} cannot close: its anchors are {far:.3g} m apart along a locked axis")


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


def _springs(world: World, room: Room) -> model.Springs:
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
    soft = [write.spook_parameters(m.stiffness, m.damping_time, h) for m in made]

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
        table=pair_table(pairs_of_kinds(world, spare.shapes)),
        **options,
    )


def place_shape(world: World, s: Placed, number: dict[str, int], materials: list[str]) -> Placement:
    """A shape of the world with numbers instead of names, measured from its body's centre of mass."""
    com = world.bodies[s.body].com if s.body is not None else np.zeros(3)
    body = number[s.body] if s.body is not None else -1
    return Placement(s.shape, body, s.at - com, matrix(s.quat), materials.index(s.material), s.group, s.mask)
