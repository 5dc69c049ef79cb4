"""Questions to a running engine, between two steps: what touches, what has collided, what a ray hits.

    for c in collisions(engine, since=0).entries: print(c.first, c.second, c.point, c.impulse)
    hit = ray(engine, origin=(0, 0, 5), direction=(0, 0, -1))

These are for Python, outside the tick: they allocate, and names are looked up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilnode.jit import kernel
from plant import model
from plant.collide.contacts import FEATURES
from plant.collide.ray import cast_many
from plant.collide.scene import EVERYTHING
from plant.compile import Engine

Vector = NDArray[np.float64]


class Contact(NamedTuple):
    """A point where two bodies touch, or nearly do."""

    first: str | None  # None = the ground
    second: str | None
    point: Vector  # [m]
    normal: Vector  # from the second towards the first
    depth: float  # [m] > 0 overlapping
    force: float  # [N] along the normal, in the last step


class Collision(NamedTuple):
    """Two bodies that began to touch."""

    step: int
    first: str | None
    second: str | None
    shapes: tuple[int, int]
    point: Vector  # [m]
    impulse: float  # [N s] of the first step


class Collisions(NamedTuple):
    """What was asked for, the number to ask with next time, and how many were overwritten before they were read."""

    entries: list[Collision]
    following: int
    lost: int


class Hit(NamedTuple):
    """Where a ray ends."""

    body: str | None  # None = the ground
    shape: int
    distance: float  # [m]
    normal: Vector


def contacts(engine: Engine) -> list[Contact]:
    """The contact list of the last step."""
    c, h = engine.content.data.contact, engine.content.model.setup.h
    return [
        Contact(
            *_names(engine, c.body[k]),
            c.point[k].copy(),
            c.normal[k].copy(),
            float(c.depth[k]),
            float(c.impulse[k, 0] / h),
        )
        for k in range(c.count[0])
    ]


def collisions(engine: Engine, since: int = 0) -> Collisions:
    """Collisions from number `since` on, oldest first."""
    log, shapes = engine.content.data.log, len(engine.content.scene.shape.kind)
    end = int(log.count[0])
    first = max(since, end - len(log.step))
    entries = []
    for k in range(first, end):
        at = k % len(log.step)
        pair = int(log.feature[at]) >> FEATURES
        entries.append(
            Collision(
                int(log.step[at]),
                *_names(engine, log.body[at]),
                divmod(pair, shapes),
                log.point[at].copy(),
                float(log.impulse[at]),
            )
        )
    return Collisions(entries, end, first - since)


@kernel
def _cast(address, origin, direction, far, mask, which, distance, normal):
    s = model.view_engine(address).scene
    cast_many(s.shape, s.placed, s.hull, s.mesh, s.field, origin, direction, far, mask, which, distance, normal)


def rays(
    engine: Engine, origins: ArrayLike, directions: ArrayLike, *, far: float = math.inf, mask: int = EVERYTHING
) -> list[Hit | None]:
    """What each of many rays meets first, within `far` metres; None where it meets nothing."""
    origin = np.ascontiguousarray(np.atleast_2d(origins), np.float64)
    direction = np.ascontiguousarray(np.atleast_2d(directions), np.float64)
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    if origin.shape != direction.shape or origin.shape[1:] != (3,) or not (np.isfinite(length) & (length > 0)).all():
        raise ValueError("rays: as many directions as origins, three numbers each, none of length 0")
    direction /= length
    n = len(origin)
    which, distance, normal = np.full(n, -1, np.int64), np.zeros(n), np.zeros((n, 3))
    _cast(engine.record.address, origin, direction, far, mask, which, distance, normal)
    body = engine.content.scene.shape.body
    return [
        Hit(_name(engine, int(body[w])), int(w), float(distance[k]), normal[k].copy()) if w >= 0 else None
        for k, w in enumerate(which)
    ]


def ray(
    engine: Engine, origin: ArrayLike, direction: ArrayLike, *, far: float = math.inf, mask: int = EVERYTHING
) -> Hit | None:
    """What a ray meets first, within `far` metres."""
    return rays(engine, np.array(origin, float), np.array(direction, float), far=far, mask=mask)[0]


def _name(engine: Engine, body: int) -> str | None:
    return engine.names[body] if body >= 0 else None


def _names(engine: Engine, pair: NDArray[np.int64]) -> tuple[str | None, str | None]:
    return _name(engine, int(pair[0])), _name(engine, int(pair[1]))
