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

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilnode.core.signals import nearest
from plant.codes import BodyKind
from plant.collision.broadphase.model import STALE
from plant.collision.broadphase.pairs import exclude
from plant.collision.model import Kind
from plant.collision.scene import Placement, write_shape
from plant.collision.shape.shapes import Field
from plant.engine import write
from plant.engine.checks import check_body, overlapping
from plant.engine.compile import Engine, place_shape
from plant.world.actuators import Actuator
from plant.world.bodies import Body, Placed
from plant.world.checks import WorldError
from plant.world.joints import Joint
from plant.world.rotations import rotated
from plant.world.world import World


def _leaves(thing: object) -> Iterator[NDArray[Any]]:
    """All arrays of a tree of records."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple):
        for part in thing:
            yield from _leaves(part)


@contextmanager
def _all_or_nothing(engine: Engine) -> Iterator[None]:
    """A change that the core in natural coordinates refuses, because bodies can not be fitted together, is undone."""
    if engine.core is None:
        yield
        return
    names = engine.names, engine.joint_names, engine.actuator_names
    before = [list(n) for n in names]
    taken, let_go, shared = engine.shapes_taken, set(engine.let_go), engine.core.shared
    arrays = [(a, a.copy()) for part in (engine.content, engine.core.content) for a in _leaves(part)]
    try:
        yield
    except WorldError:
        for now, then in zip(names, before, strict=True):
            now[:] = then
        engine.shapes_taken, engine.let_go, engine.core.shared = taken, let_go, shared
        for array, kept in arrays:
            array[...] = kept
        raise


def take_in(engine: Engine) -> None:
    """Add to the engine what its world has gained since compile: bodies, joints, actuators and shapes.

    What does not fit into the reserved room, or is invalid, is refused before anything is changed.
    """
    world = engine.world
    bodies = [b for name, b in world.bodies.items() if name not in engine.names]
    joints = [j for name, j in world.joints.items() if name not in engine.joint_names]
    actuators = [a for name, a in world.actuators.items() if name not in engine.actuator_names]
    shapes = world.shapes[engine.shapes_taken :]
    _check_room(engine.names, "bodies", [b.name for b in bodies])
    _check_room(engine.joint_names, "joints", [j.name for j in joints])
    _check_room(engine.actuator_names, "actuators", [a.name for a in actuators])
    for body in bodies:
        check_body(body)
    for actuator in actuators:
        if actuator.name in world.cylinders:
            raise WorldError(f"hydraulic cylinder {actuator.name!r}: declare it before compile")
    _check_shapes(engine, shapes)
    with _all_or_nothing(engine):
        _write(engine, bodies, joints, actuators)
        number = {n: k for k, n in enumerate(engine.names) if n}
        for shape in shapes:
            _add_shape(engine, place_shape(world, shape, number, engine.material_names))
        engine.shapes_taken = len(world.shapes)
        _renew(engine)


def _write(engine: Engine, bodies: list[Body], joints: list[Joint], actuators: list[Actuator]) -> None:
    """What is new, into free places."""
    content = engine.content
    for body in bodies:
        k = engine.names.index("")
        engine.names[k] = body.name
        write.write_body(content.model, content.data, k, body)
    here = _where_bodies_are(engine)
    number = {n: k for k, n in enumerate(engine.names) if n}
    for joint in joints:
        k = engine.joint_names.index("")
        engine.joint_names[k] = joint.name
        write.write_joint(content, k, joint, here, number)
    places = {n: k for k, n in enumerate(engine.joint_names) if n}
    for actuator in actuators:
        k = engine.actuator_names.index("")
        engine.actuator_names[k] = actuator.name
        write.write_actuator(content, k, actuator, places)


def remove_body(engine: Engine, name: str) -> None:
    """Take a body away with its shapes, joints, actuators and springs; its place is free again."""
    k = _find(engine.names, "body", name)
    m = engine.content.model
    for j, joint in enumerate(engine.joint_names):
        if joint and k in (m.joint.a[j], m.joint.b[j]):
            _remove_joint(engine, j)
    m.body.kind[k] = BodyKind.ABSENT
    ends = (m.spring.a == k) | (m.spring.b == k)
    m.spring.on[ends] = 0
    m.spring.a[ends] = m.spring.b[ends] = -1
    shape = engine.content.scene.shape
    gone = shape.body == k
    shape.enabled[gone], shape.body[gone] = 0, -1
    engine.world.shapes = [s for s in engine.world.shapes if s.body != name]
    engine.world.springs = {n: s for n, s in engine.world.springs.items() if name not in (s.a, s.b)}
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
    with _all_or_nothing(engine):
        engine.content.model.joint.on[k] = int(on)
        engine.content.data.row.force[k] = 0.0
        _renew(engine)


def switch_body(engine: Engine, name: str, on: bool) -> None:
    """Leave a body out, with its shapes and joints, or let it take part again, at rest where it was."""
    k = _find(engine.names, "body", name)
    m, d = engine.content.model, engine.content.data
    m.body.kind[k] = write.KINDS[engine.world.bodies[name].kind] if on else BodyKind.ABSENT
    d.state.vel[k] = 0.0
    shape = engine.content.scene.shape
    shape.enabled[shape.body == k] = int(on)
    for i in np.flatnonzero((m.spring.a == k) | (m.spring.b == k)).tolist():
        ends = (m.spring.a[i], m.spring.b[i])
        m.spring.on[i] = int(all(b < 0 or m.body.kind[b] != BodyKind.ABSENT for b in ends))
    for j, joint in enumerate(engine.joint_names):
        ends = (m.joint.a[j], m.joint.b[j])
        if not joint or k not in ends:
            continue
        if not on:
            if m.joint.on[j]:
                engine.let_go.add(joint)  # only what held is to hold again
            m.joint.on[j] = 0
        elif joint in engine.let_go and all(b < 0 or m.body.kind[b] != BodyKind.ABSENT for b in ends):
            m.joint.on[j] = 1
            engine.let_go.discard(joint)
    _renew(engine)


def set_heights(engine: Engine, shape: int, heights: ArrayLike, *, first: tuple[int, int] = (0, 0)) -> None:
    """Change a patch of the heights [m] of shape number `shape`, a Field, from its sample `first` on; all wake up."""
    content, kind = engine.content, engine.content.scene.shape.kind
    if not 0 <= shape < len(kind) or kind[shape] != Kind.FIELD:
        raise WorldError(f"shape {shape} is no Field; those are {np.flatnonzero(kind == Kind.FIELD).tolist()}")
    field, f = content.scene.field, int(content.scene.shape.asset[shape])
    placed = [s.shape for s in engine.world.shapes if isinstance(s.shape, Field)][f]
    given = np.atleast_2d(np.array(heights, float))
    size, corner = np.shape(placed.heights), np.array(first)
    if corner.min() < 0 or (corner + given.shape > size).any():
        raise WorldError(f"heights {given.shape} from sample {first} on do not fit into a field of {size}")
    if not (np.isfinite(given).all() and placed.low <= given.min() and given.max() <= placed.high):
        raise WorldError(
            f"heights from {given.min():g} to {given.max():g} m must be finite and within the field's low "
            f"{placed.low:g} and high {placed.high:g}"
        )
    grid = field.height[field.first[f] : field.first[f + 1]].reshape(size)
    grid[first[0] : first[0] + given.shape[0], first[1] : first[1] + given.shape[1]] = given - placed.middle()[2]
    content.data.state.asleep[:] = 0
    content.data.state.rested[:] = 0.0


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


def _check_room(places: list[str], what: str, new: list[str]) -> None:
    if places.count("") < len(new):
        names = ", ".join(repr(n) for n in new)
        raise WorldError(f"no room for {names}: compile with Spare({what}=...) to reserve some")


def _check_shapes(engine: Engine, new: list[Placed]) -> None:
    for s in new:
        if s.body is None or s.shape.kind >= Kind.HULL:
            raise WorldError(
                f"shape on {s.body or 'the ground'}: a running engine takes spheres, capsules, boxes, cylinders and "
                "cones of bodies; declare others before compile"
            )
        if s.material not in engine.material_names:
            hint = nearest(s.material, engine.material_names)
            raise WorldError(f"shape on {s.body!r}: material {s.material!r} is not one of those at compile: {hint}")
    if engine.volumes is not None:
        overlapping(engine.world, 0)
    if len(_free_shapes(engine)) < len(new):
        raise WorldError(f"no room for {len(new)} shapes: compile with Spare(shapes=...) to reserve some")


def _free_shapes(engine: Engine) -> list[int]:
    """Places of shapes that are on no body: reserved ones, and those of bodies that were removed."""
    scene = engine.content.scene
    moving = set(scene.broad.shape.tolist())
    return [s for s in np.flatnonzero(scene.shape.body < 0).tolist() if s in moving]


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
    scene, k = engine.content.scene, _free_shapes(engine)[0]
    write_shape(scene.shape, k, placement)
    scene.broad.role[k] = engine.content.model.body.kind[placement.body]


def _exclude_neighbours(engine: Engine) -> None:
    """Shapes of bodies that share a joint do not meet. The keys are sorted, with room behind them."""
    broad, joint = engine.content.scene.broad, engine.content.model.joint
    pairs = [(int(joint.a[j]), int(joint.b[j])) for j, name in enumerate(engine.joint_names) if name]
    keys = exclude(broad.bodies, [p for p in pairs if min(p) >= 0])
    broad.excluded[: len(keys)], broad.excluded[len(keys) :] = keys, np.iinfo(np.int64).max


def _renew(engine: Engine) -> None:
    """What the next step must find anew."""
    d = engine.content.data
    _exclude_neighbours(engine)
    d.graph.dirty[0] = 1
    d.status[write.POSES_VALID] = 0
    d.state.asleep[:] = 0
    d.state.rested[:] = 0.0
    engine.content.scene.broad.state[STALE] = 1
    if engine.core is not None:
        engine.core.renew(engine.names, engine.joint_names)
