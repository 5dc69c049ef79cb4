"""A compiled World as a plant: its motors become inputs, its joints outputs, its bodies poses.

    engine = compile_world(world, dt)
    plant = as_plant(engine, "crane", wrenches=["load"], reactions=["hook"])

Inputs: `crane.<motor>.speed` for speed motors, `crane.<servo>.position` for servos, `crane.<guide>.position`, `.speed`
and `.acceleration` for guides that stand still at first, `crane.<cylinder>.valve` for hydraulic cylinders; for each
body in `wrenches` a force from outside `crane.<body>.force_x` to `torque_z`. Outputs: `crane.<joint>.angle` for joints
that turn about one axis, `crane.<joint>.slide` for those that slide along theirs; `crane.<cylinder>.pressure_a` and
`pressure_b`; for each joint in `reactions` its `pull` [N]. `reset` restores the state at compile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.signals import Signal
from hilnode.core.struct import I1, Struct, viewer
from plant.abi import OK, Collisions, Plant, Task, step_function
from plant.engine.compile import Engine
from plant.model import Bound, Turning, view_engine
from plant.natural.step import TANGENT_STATUS
from plant.numeric.algebra import rotate
from plant.stages import call_stage
from plant.velocity.reset import Start, restart, start_of
from plant.velocity.step import FULL
from plant.visual.entries import Entry as Look
from plant.visual.from_world import frames_of, scene_of
from plant.world.checks import WorldError
from plant.world.joints import Joint
from plant.world.world import World


class In(IntEnum):
    """What an input sets."""

    SPEED = 0
    POSITION = 1
    VALVE = 2
    WRENCH = 3
    ACCELERATION = 4


class Out(IntEnum):
    """What an output shows."""

    ANGLE = 0
    SLIDE = 1
    PRESSURE = 2
    PULL = 3


SPEED, POSITION, VALVE, WRENCH, ACCELERATION = (int(k) for k in In)
ANGLE, SLIDE, PRESSURE, PULL = (int(k) for k in Out)


class Machine(NamedTuple):
    """What the step needs beside the engine."""

    engine: int  # address of its record
    input_kind: I1  # [inputs] In
    input_of: I1  # [inputs] actuator, cylinder, or 6 x body + component
    output_kind: I1  # [outputs] Out
    output_of: I1  # [outputs] joint, or 2 x cylinder + chamber
    start: Start


_view = viewer(Machine)


@kernel
def _show(m, e, outputs, poses):
    """Joint coordinates, pressures and reactions, and the poses of the bodies' frames."""
    for k in range(m.output_of.size):
        kind, i = m.output_kind[k], m.output_of[k]
        if kind == ANGLE:
            outputs[k] = e.data.state.angle[i, 0]
        elif kind == SLIDE:
            outputs[k] = e.data.row.slide[i, 2]
        elif kind == PRESSURE:
            outputs[k] = e.data.chamber.pressure[i >> 1, i & 1]
        else:
            f = e.data.row.reaction[i]
            outputs[k] = math.sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2])
    for b in range(e.model.body.mass.size):
        q, com = e.data.state.quat[b], e.model.body.com[b]
        x, y, z = rotate(q, com[0], com[1], com[2])
        at = 7 * b
        poses[at] = e.data.state.pos[b, 0] - x
        poses[at + 1] = e.data.state.pos[b, 1] - y
        poses[at + 2] = e.data.state.pos[b, 2] - z
        for i in range(4):
            poses[at + 3 + i] = q[i]


@step_function
def step(self, n, params, inputs, outputs, poses):
    """Inputs to targets, one step of the engine, joints to outputs."""
    m = _view(self)
    e = view_engine(m.engine)
    for k in range(m.input_of.size):
        kind, i = m.input_kind[k], m.input_of[k]
        if kind == SPEED:
            e.data.target.speed[i] = inputs[k]
        elif kind == POSITION:
            e.data.target.position[i] = inputs[k]
        elif kind == VALVE:
            e.data.chamber.valve[i] = inputs[k]
        elif kind == ACCELERATION:
            e.data.target.acceleration[i] = inputs[k]
        else:
            e.data.state.wrench[i // 6, i % 6] = inputs[k]
    status = call_stage(e.model.stage.step, m.engine, 1)
    if status == OK:
        _show(m, e, outputs, poses)
    return status


@step_function
def reset(self, n, params, inputs, outputs, poses):
    """The state at compile."""
    m = _view(self)
    e = view_engine(m.engine)
    restart(e, m.start)
    _show(m, e, outputs, poses)
    return OK


AXES = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")


def as_plant(
    engine: Engine,
    name: str,
    *,
    wrenches: Sequence[str] = (),
    reactions: Sequence[str] = (),
    scene: Sequence[Look] = (),
    collisions: float | None = None,
) -> Plant:
    """The engine for the node; `name` is the first word of all its signals.

    Displays are told of the shapes that collide and of the joints; `scene` adds what is only to be seen. Bodies that
    begin to push each other with an impulse of `collisions` [N s] or more make an event; nobody is told if it is None.
    """
    if collisions is not None and not 0.0 <= collisions < math.inf:
        raise ValueError(f"collisions={collisions}: the least impulse that is told must be a number of N s, 0 or more")
    world, content, log = engine.world, engine.content, engine.content.data.log
    inputs = [*_drives(engine, name), *_wrenches(engine, name, wrenches)]
    outputs = [*_coordinates(engine, name), *_pressures(world, name), *_reactions(engine, name, reactions)]
    record = Struct(
        Machine(
            engine=engine.record.address,
            input_kind=np.array([kind for kind, _, _ in inputs], np.int64),
            input_of=np.array([of for _, of, _ in inputs], np.int64),
            output_kind=np.array([kind for kind, _, _ in outputs], np.int64),
            output_of=np.array([of for _, of, _ in outputs], np.int64),
            start=start_of(content.data),
        )
    )
    return Plant(
        name,
        content.model.setup.h,
        tuple(signal for _, _, signal in inputs),
        tuple(signal for _, _, signal in outputs),
        (Task(name, step.address, record.address),),
        bodies=tuple(f"{name}.{b}" for b in engine.names),
        reset=(reset.address, record.address),
        status={**FULL, **TANGENT_STATUS},
        scene=(*scene_of(world.shapes, engine.names, name), *frames_of(world, name), *scene),
        collisions=None if collisions is None else Collisions(log.count, log.body, log.point, log.impulse, collisions),
        owner=(engine, record),
    )


Entry = tuple[int, int, Signal]


def _drives(engine: Engine, name: str) -> Iterator[Entry]:
    """Motors, servos, guides that do not move by themselves, and valves."""
    cylinders = list(engine.world.cylinders)
    for i, a in enumerate(engine.world.actuators.values()):
        slides = a.axis < 3
        if a.kind == Bound.MOTOR and a.gain > 0:
            yield In.POSITION, i, Signal(f"{name}.{a.name}.position", "m" if slides else "rad", a.position)
        elif a.kind == Bound.MOTOR:
            yield In.SPEED, i, Signal(f"{name}.{a.name}.speed", "m/s" if slides else "rad/s", a.speed)
        elif a.kind == Bound.GUIDE and a.speed == a.acceleration == 0.0:
            unit = "m" if slides else "rad"
            yield In.POSITION, i, Signal(f"{name}.{a.name}.position", unit, a.position)
            yield In.SPEED, i, Signal(f"{name}.{a.name}.speed", f"{unit}/s")
            yield In.ACCELERATION, i, Signal(f"{name}.{a.name}.acceleration", f"{unit}/s^2")
        elif a.kind == Bound.HYDRAULIC:
            yield In.VALVE, cylinders.index(a.name), Signal(f"{name}.{a.name}.valve", "1", 0.0, low=-1.0, high=1.0)


def _wrenches(engine: Engine, name: str, bodies: Sequence[str]) -> Iterator[Entry]:
    for body in bodies:
        for c, axis in enumerate(AXES):
            unit = "N" if c < 3 else "N m"
            yield In.WRENCH, 6 * engine.index(body) + c, Signal(f"{name}.{body}.{axis}", unit)


def _coordinates(engine: Engine, name: str) -> Iterator[Entry]:
    for j, joint in enumerate(engine.world.joints.values()):
        unit = _unit(joint)
        if unit:
            kind, word = (Out.SLIDE, "slide") if unit == "m" else (Out.ANGLE, "angle")
            yield kind, j, Signal(f"{name}.{joint.name}.{word}", unit)


def _pressures(world: World, name: str) -> Iterator[Entry]:
    for c, cylinder in enumerate(world.cylinders):
        for side, word in enumerate(("pressure_a", "pressure_b")):
            yield Out.PRESSURE, 2 * c + side, Signal(f"{name}.{cylinder}.{word}", "Pa")


def _reactions(engine: Engine, name: str, joints: Sequence[str]) -> Iterator[Entry]:
    for joint in joints:
        if engine.core is not None and joint in engine.core.shared:
            raise WorldError(
                f"reaction of joint {joint!r}: it is a point that bodies share, and what goes through it is not known "
                f"within a step; compile with natural=Options(apart=({joint!r},)) to have it written as equations"
            )
        yield Out.PULL, engine.joint_names.index(joint), Signal(f"{name}.{joint}.pull", "N")


def _unit(joint: Joint) -> str:
    """Unit of the coordinate that a joint leaves free along or about its z axis; nothing if it has none or many."""
    if joint.turning == Turning.ONE_FREE and 2 in joint.locked:
        return "rad"
    if joint.turning == Turning.NONE_FREE and 2 not in joint.locked:
        return "m"
    return ""
