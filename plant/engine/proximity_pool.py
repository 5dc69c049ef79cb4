"""A pool of spare bodies for objects that are simulated only while the machine is near (Luaces 5.4 and 6.3).

A scene may hold hundreds of them: fences, cones, crates. Each has a place and a kind; the engine has a few spare bodies
of each kind, which are absent until an object of their kind is needed. When one of the machine's bounding spheres
(Luaces 4.4.4) comes near an object, a spare body of its kind is put where the object is and takes part; when nothing is
near any more and it has come to rest, its pose is written back and the body is absent again. A few objects are looked
at in each step, so those that are far cost next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1
from plant.codes import BodyKind
from plant.collision.broadphase.model import STALE
from plant.engine.compile import Engine
from plant.model import Status
from plant.numeric.algebra import rotate

DYNAMIC, ABSENT, POSES_VALID = int(BodyKind.DYNAMIC), int(BodyKind.ABSENT), int(Status.POSES_VALID)
LOOKS = 25  # objects looked at in a step
AWAY = 1.5  # times `near`: so far an object must be to leave
REST = 0.02  # [m/s, rad/s] below it an object is at rest


class ProximityPool(NamedTuple):
    """Objects, and the spare bodies that stand for those that are near."""

    pose: F2  # [o, 7] position of the frame [m] and quaternion
    start: F2  # [o, 7] as it was at the beginning
    kind: I1  # [o]
    radius: F1  # [o] of a sphere about the frame that holds it [m]
    body: I1  # [o] body that stands for it, -1 = none
    stamp: I1  # [o] counts up when its pose changes
    spare: I1  # [s] bodies
    spare_kind: I1  # [s]
    of: I1  # [s] object that it stands for, -1 = none
    seeker: I1  # [k] bodies whose nearness counts
    reach: F1  # [k] radius of a sphere about their centre of mass [m]
    near: float  # [m] gap at which an object enters
    next: I1  # [1] object to look at next
    counts: I1  # [2] objects that take part; times that there was no spare body


def build_pool(
    engine: Engine,
    *,
    poses: np.ndarray,
    kinds: Sequence[int],
    radii: Sequence[float],
    spares: Sequence[tuple[str, int]],
    seekers: Sequence[tuple[str, float]],
    near: float = 1.0,
) -> ProximityPool:
    """Objects at `poses` [o, 7]; `spares` are bodies with the kind that they can stand for, switched off now."""
    content = engine.content
    made = ProximityPool(
        pose=np.array(poses, float).reshape(-1, 7),
        start=np.array(poses, float).reshape(-1, 7),
        kind=np.array(kinds, np.int64),
        radius=np.array(radii, float),
        body=np.full(len(kinds), -1, np.int64),
        stamp=np.zeros(len(kinds), np.int64),
        spare=np.array([engine.index(name) for name, _ in spares], np.int64),
        spare_kind=np.array([kind for _, kind in spares], np.int64),
        of=np.full(len(spares), -1, np.int64),
        seeker=np.array([engine.index(name) for name, _ in seekers], np.int64),
        reach=np.array([r for _, r in seekers], float),
        near=near,
        next=np.zeros(1, np.int64),
        counts=np.zeros(2, np.int64),
    )
    shape = content.scene.shape
    for b in made.spare:
        content.model.body.kind[b] = ABSENT
        shape.enabled[shape.body == b] = 0
    content.data.graph.dirty[0], content.data.status[POSES_VALID] = 1, 0
    content.scene.broad.state[STALE] = 1
    return made


@inline
def _renew(e):
    """What the next step must find anew."""
    e.data.graph.dirty[0] = 1
    e.data.status[POSES_VALID] = 0
    e.scene.broad.state[STALE] = 1


@inline
def _is_near(e, pool, o, x, y, z, gap):
    """Whether a seeker is within `gap` of object `o` at (x, y, z)."""
    pos = e.data.state.pos
    for k in range(pool.seeker.size):
        b = pool.seeker[k]
        dx, dy, dz = pos[b, 0] - x, pos[b, 1] - y, pos[b, 2] - z
        far = pool.reach[k] + pool.radius[o] + gap
        if dx * dx + dy * dy + dz * dz < far * far:
            return True
    return False


@kernel
def _switch(e, b, on):
    """A body with its shapes, into the engine or out of it; no joint holds it."""
    e.model.body.kind[b] = DYNAMIC if on else ABSENT
    shape = e.scene.shape
    for s in range(shape.body.size):
        if shape.body[s] == b:
            shape.enabled[s] = 1 if on else 0
    state = e.data.state
    state.asleep[b], state.rested[b] = 0, 0.0
    for i in range(6):
        state.vel[b, i] = 0.0
    _renew(e)


@kernel
def _enter(e, pool, o):
    """Give object `o` a spare body, if there is one."""
    for s in range(pool.spare.size):
        if pool.of[s] < 0 and pool.spare_kind[s] == pool.kind[o]:
            b = pool.spare[s]
            pool.of[s], pool.body[o] = o, b
            state, com, p = e.data.state, e.model.body.com[b], pool.pose[o]
            for i in range(4):
                state.quat[b, i] = p[3 + i]
            x, y, z = rotate(state.quat[b], com[0], com[1], com[2])
            state.pos[b, 0], state.pos[b, 1], state.pos[b, 2] = p[0] + x, p[1] + y, p[2] + z
            _switch(e, b, True)
            pool.counts[0] += 1
            return
    pool.counts[1] += 1


@inline
def _keep_pose(e, pool, o, b):
    """The pose of the body that stands for an object, written to the object."""
    state, com, p = e.data.state, e.model.body.com[b], pool.pose[o]
    x, y, z = rotate(state.quat[b], com[0], com[1], com[2])
    p[0], p[1], p[2] = state.pos[b, 0] - x, state.pos[b, 1] - y, state.pos[b, 2] - z
    for i in range(4):
        p[3 + i] = state.quat[b, i]
    pool.stamp[o] += 1


@inline
def _is_at_rest(state, b):
    v = state.vel[b]
    for i in range(6):
        if not abs(v[i]) < REST:
            return False
    return True


@kernel
def tend_pool(e, pool):
    """Before a step: give objects that are near a spare body, and take it from those that are far and at rest."""
    n = pool.kind.size
    for _ in range(min(LOOKS, n)):
        o = pool.next[0]
        pool.next[0] = o + 1 if o + 1 < n else 0
        p, b = pool.pose[o], pool.body[o]
        if b < 0:
            if _is_near(e, pool, o, p[0], p[1], p[2], pool.near):
                _enter(e, pool, o)
            continue
        state = e.data.state
        if not _is_at_rest(state, b):
            _keep_pose(e, pool, o, b)
        elif not _is_near(e, pool, o, state.pos[b, 0], state.pos[b, 1], state.pos[b, 2], AWAY * pool.near):
            _keep_pose(e, pool, o, b)
            _leave(e, pool, o, b)


@kernel
def _leave(e, pool, o, b):
    for s in range(pool.spare.size):
        if pool.spare[s] == b:
            pool.of[s] = -1
    pool.body[o] = -1
    pool.counts[0] -= 1
    _switch(e, b, False)


@kernel
def reset_pool(e, pool):
    """Everything where it was at the beginning, and none of it taking part."""
    for o in range(pool.kind.size):
        if pool.body[o] >= 0:
            _leave(e, pool, o, pool.body[o])
        for i in range(7):
            pool.pose[o, i] = pool.start[o, i]
        pool.stamp[o] += 1
    pool.next[0], pool.counts[0], pool.counts[1] = 0, 0, 0


def upright(x: float, y: float, z: float, heading: float) -> tuple[float, ...]:
    """A pose that stands on (x, y, z) and looks along `heading`."""
    return (x, y, z, math.cos(heading / 2), 0.0, 0.0, math.sin(heading / 2))
