"""Changes to a running engine, between two steps and without allocating in its arrays (Luaces 5.4, Wang 3).

Room is reserved at compile (`spare`). What is new is described in the engine's World as ever, at the places of now, and
taken in:

    engine = world.compile(dt, spare=Spare(bodies=50, joints=10, shapes=50))
    world.body("cone 7", mass=4, inertia=(0.2, 0.2, 0.1), pos=(3, 0, 0.4))
    world.shape("cone 7", Cone(0.2, 0.7))
    take_in(engine)
    ...
    remove_body(engine, "cone 7")

The next step lays out the graph anew, once: some microseconds for a machine, see `tools/bench_engine.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hilnode.signals import nearest
from plant import entries
from plant.collide.far.model import STALE
from plant.collide.model import Kind
from plant.collide.scene import Placement, write_shape
from plant.compile import Engine, check_body, place_shape
from plant.kinds import BodyKind
from plant.world import World, WorldError, rotated


def take_in(engine: Engine) -> None:
    """Everything that the engine's world holds and the engine does not: bodies, joints, actuators and shapes."""
    world, content = engine.world, engine.content
    for name, body in world.bodies.items():
        if name not in engine.names:
            check_body(body)
            k = _free_place(engine.names, "bodies", name)
            engine.names[k] = name
            entries.write_body(content.model, content.data, k, body)
    here = _where_bodies_are(engine)
    number = {n: k for k, n in enumerate(engine.names) if n}
    for name, joint in world.joints.items():
        if name not in engine.joint_names:
            k = _free_place(engine.joint_names, "joints", name)
            engine.joint_names[k] = name
            entries.write_joint(content, k, joint, here, number)
            _exclude(engine, int(content.model.joint.a[k]), int(content.model.joint.b[k]))
    joints = {n: k for k, n in enumerate(engine.joint_names) if n}
    for name, actuator in world.actuators.items():
        if name not in engine.actuator_names:
            k = _free_place(engine.actuator_names, "actuators", name)
            engine.actuator_names[k] = name
            entries.write_actuator(content, k, actuator, joints)
    for shape in world.shapes[engine.shapes_taken :]:
        _add_shape(engine, place_shape(world, shape, number, engine.material_names))
    engine.shapes_taken = len(world.shapes)
    _renew(engine)


def remove_body(engine: Engine, name: str) -> None:
    """Take a body away with its shapes, joints and actuators; its place is free again."""
    k = _find(engine.names, "body", name)
    m = engine.content.model
    for j, joint in enumerate(engine.joint_names):
        if joint and k in (m.joint.a[j], m.joint.b[j]):
            _remove_joint(engine, j)
    m.body.kind[k] = BodyKind.ABSENT
    shape = engine.content.scene.shape
    shape.enabled[shape.body == k] = 0
    engine.world.shapes = [s for s in engine.world.shapes if s.body != name]
    engine.shapes_taken = len(engine.world.shapes)
    del engine.world.bodies[name]
    engine.names[k] = ""
    _renew(engine)


def remove_joint(engine: Engine, name: str) -> None:
    """Take a joint away with its actuators; its place is free again."""
    _remove_joint(engine, _find(engine.joint_names, "joint", name))
    _renew(engine)


def switch_joint(engine: Engine, name: str, on: bool) -> None:
    """Let a joint go, or let it hold again: where its bodies are drawn together, if they have parted."""
    k = _find(engine.joint_names, "joint", name)
    engine.content.model.joint.on[k] = int(on)
    engine.content.data.row.force[k] = 0.0
    _renew(engine)


def switch_body(engine: Engine, name: str, on: bool) -> None:
    """Leave a body out, with its shapes and joints, or let it take part again, at rest where it was."""
    k = _find(engine.names, "body", name)
    m, d = engine.content.model, engine.content.data
    body = engine.world.bodies[name]
    m.body.kind[k] = entries.KINDS[body.kind] if on else BodyKind.ABSENT
    d.state.vel[k] = 0.0
    shape = engine.content.scene.shape
    shape.enabled[shape.body == k] = int(on)
    for j, joint in enumerate(engine.joint_names):
        if joint and k in (m.joint.a[j], m.joint.b[j]):
            ends = (m.joint.a[j], m.joint.b[j])
            m.joint.on[j] = int(all(b < 0 or m.body.kind[b] != BodyKind.ABSENT for b in ends))
    _renew(engine)


def _remove_joint(engine: Engine, k: int) -> None:
    m, name = engine.content.model, engine.joint_names[k]
    for i, actuator in enumerate(engine.actuator_names):
        if actuator and m.actuator.joint[i] == k:
            m.actuator.on[i] = 0
            engine.actuator_names[i] = ""
            engine.world.actuators.pop(actuator, None)
    m.joint.on[k] = 0
    engine.joint_names[k] = ""
    engine.world.joints.pop(name, None)


def _free_place(names: list[str], what: str, name: str) -> int:
    if "" not in names:
        raise WorldError(f"no room for {name!r}: compile with Spare({what}=...) to reserve some")
    return names.index("")


def _find(names: list[str], what: str, name: str) -> int:
    if name not in names or not name:
        raise WorldError(f"no {what} {name!r}: {nearest(name, [n for n in names if n])}")
    return names.index(name)


def _where_bodies_are(engine: Engine) -> World:
    """The world with its bodies at their places of now, for joints that are made between them."""
    state, com = engine.content.data.state, engine.content.model.body.com
    bodies = {}
    for k, name in enumerate(engine.names):
        if name:
            quat = state.quat[k].copy()
            bodies[name] = replace(engine.world.bodies[name], pos=state.pos[k] - rotated(quat, com[k]), quat=quat)
    return replace(engine.world, bodies=bodies)


def _add_shape(engine: Engine, placement: Placement) -> None:
    shapes, far = engine.content.scene.shape, engine.content.scene.far
    if placement.body < 0 or placement.shape.kind >= Kind.HULL:
        raise WorldError(
            "a running engine takes spheres, capsules, boxes, cylinders and cones of bodies; declare others"
        )
    spare = np.flatnonzero(shapes.enabled == 0)
    free = [int(s) for s in spare if shapes.body[s] < 0 or engine.names[shapes.body[s]] == ""]
    if not free:
        raise WorldError("no room for another shape: compile with Spare(shapes=...) to reserve some")
    write_shape(shapes, free[0], placement)
    far.role[free[0]] = engine.content.model.body.kind[placement.body]


def _exclude(engine: Engine, a: int, b: int) -> None:
    """Shapes of bodies that share a joint do not meet. Room was reserved behind the sorted keys."""
    far = engine.content.scene.far
    key = (min(a, b) + 1) * (far.bodies + 1) + max(a, b) + 1
    if a >= 0 and b >= 0 and key not in far.excluded:
        far.excluded[-1] = key
        far.excluded.sort()


def _renew(engine: Engine) -> None:
    """What the next step must find anew."""
    d = engine.content.data
    d.graph.dirty[0] = 1
    d.status[entries.PLACED] = 0
    d.state.asleep[:] = 0
    d.state.rested[:] = 0.0
    engine.content.scene.far.state[STALE] = 1
