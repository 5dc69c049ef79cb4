"""A compiled World as a plant: its motors become inputs, its joints outputs, its bodies poses.

    engine = compile_world(world, dt)
    plant = as_plant(engine, "crane")

Inputs: `crane.<motor>.speed` for speed motors, `crane.<servo>.position` for servos. Outputs:
`crane.<joint>.angle` for joints that turn about one axis, `crane.<joint>.slide` for those that slide along
theirs. `reset` restores the state at compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.jit import kernel
from hilnode.record import F2, I1, Record, viewer
from hilnode.signals import Signal
from plant.abi import OK, Plant, Task, step_function
from plant.algebra import rotate
from plant.compile import Engine
from plant.model import Bound, Turning, view_engine
from plant.spook import CONTACTS_FULL, PLACED
from plant.spook import step as spook_step
from plant.world import Joint


class Machine(NamedTuple):
    """What the step needs beside the engine."""

    engine: int  # address of its record
    target: I1  # [inputs] actuator
    is_position: I1  # [inputs] 1 = a servo's position, 0 = a motor's speed
    joint: I1  # [outputs]
    is_slide: I1  # [outputs] 1 = slide, 0 = angle
    start_pos: F2  # [b, 3] at compile
    start_quat: F2
    start_vel: F2
    start_angle: F2


_view = viewer(Machine)


@kernel
def _show(m, e, outputs, poses):
    """Joint coordinates and the poses of the bodies' frames."""
    for k in range(m.joint.size):
        j = m.joint[k]
        outputs[k] = e.data.row.slide[j, 2] if m.is_slide[k] == 1 else e.data.state.angle[j, 0]
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
    for k in range(m.target.size):
        if m.is_position[k] == 1:
            e.data.target.position[m.target[k]] = inputs[k]
        else:
            e.data.target.speed[m.target[k]] = inputs[k]
    status = spook_step(e)
    if status == OK:
        _show(m, e, outputs, poses)
    return status


@step_function
def reset(self, n, params, inputs, outputs, poses):
    """The state at compile."""
    m = _view(self)
    e = view_engine(m.engine)
    s = e.data.state
    s.pos[:] = m.start_pos
    s.quat[:] = m.start_quat
    s.vel[:] = m.start_vel
    s.angle[:] = m.start_angle
    e.data.contact.old_count[0] = 0
    e.data.bounded.kept[:] = 0
    e.data.row.force[:] = 0.0
    e.data.status[PLACED] = 0
    s.asleep[:] = 0
    s.rested[:] = 0.0
    e.data.graph.dirty[0] = 1
    _show(m, e, outputs, poses)
    return OK


def as_plant(engine: Engine, name: str) -> Plant:
    """The engine for the node; `name` is the first word of all its signals."""
    world, content = engine.world, engine.content
    acts = [(i, a) for i, a in enumerate(world.actuators.values()) if a.kind == Bound.MOTOR]
    shown = [(i, j) for i, j in enumerate(world.joints.values()) if _unit(j)]
    state = content.data.state
    record = Record(
        Machine(
            engine=engine.record.address,
            target=np.array([i for i, _ in acts], np.int64),
            is_position=np.array([a.gain > 0 for _, a in acts], np.int64),
            joint=np.array([i for i, _ in shown], np.int64),
            is_slide=np.array([_unit(j) == "m" for _, j in shown], np.int64),
            start_pos=state.pos.copy(),
            start_quat=state.quat.copy(),
            start_vel=state.vel.copy(),
            start_angle=state.angle.copy(),
        )
    )
    inputs = []
    for _, a in acts:
        slides = a.axis < 3
        if a.gain > 0:
            inputs.append(Signal(f"{name}.{a.name}.position", "m" if slides else "rad", a.position))
        else:
            inputs.append(Signal(f"{name}.{a.name}.speed", "m/s" if slides else "rad/s", a.speed))
    outputs = [Signal(f"{name}.{j.name}." + ("slide" if _unit(j) == "m" else "angle"), _unit(j)) for _, j in shown]
    return Plant(
        name,
        content.model.setup.h,
        tuple(inputs),
        tuple(outputs),
        (Task(name, step.address, record.address),),
        bodies=tuple(f"{name}.{b}" for b in engine.names),
        reset=(reset.address, record.address),
        status={CONTACTS_FULL: "more contacts than there is room for: compile the world with more"},
        owner=(engine, record),
    )


def _unit(joint: Joint) -> str:
    """Unit of the coordinate that a joint leaves free along or about its z axis; nothing if it has none or many."""
    if joint.turning == Turning.ONE_FREE and 2 in joint.locked:
        return "rad"
    if joint.turning == Turning.NONE_FREE and 2 not in joint.locked:
        return "m"
    return ""
