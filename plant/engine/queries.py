"""Queries to a running engine, between two steps: contacts, collisions, ray hits, overlaps.

    for c in collisions(engine, since=0).entries: print(c.first, c.second, c.point, c.impulse)
    hit = ray(engine, origin=(0, 0, 5), direction=(0, 0, -1))
    for v in overlap(engine, "wheel", None): print(v.volume, v.centroid, v.normal)

These are for Python, outside the tick: they allocate, and names are looked up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, address_of
from plant import model
from plant.collision.cast import cast_many, update_broad_phase
from plant.collision.contact_list import FEATURES
from plant.collision.model import Kind
from plant.collision.scene import EVERYTHING
from plant.collision.volume import volume
from plant.engine.compile import Engine
from plant.numeric.algebra import rotation

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


class Shared(NamedTuple):
    """What a shape of one body and one of another have in common; see `plant.collision.volume.moments.Overlap`."""

    shapes: tuple[int, int]
    volume: float  # [m^3]
    centroid: Vector  # [m]
    inertia: Vector  # [3, 3] of the volume about its centroid, for a density of 1 [m^5]
    normal: Vector  # of the contact plane, from the second body towards the first
    area: float  # [m^2] of the contact patch; 0 if one is inside the other
    point: Vector  # [m] centroid of the patch
    patch: Vector  # [3, 3] inertia of the patch about `point`, for 1 kg/m^2 [m^4]


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
def _place(address):
    """Shapes where their bodies are now: the step leaves them where it began."""
    e = model.view_engine(address)
    state, rot = e.data.state, e.data.frame.rot
    for b in range(rot.shape[0]):
        rotation(state.quat[b], rot[b])
    update_broad_phase(e.scene, state.pos, rot, state.vel, state.asleep)


@kernel
def _cast(address, origin, direction, far, mask, which, distance, normal):
    _place(address)
    cast_many(model.view_engine(address).scene, origin, direction, far, mask, which, distance, normal)


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


@kernel
def _overlap(address, volumes, i, j):
    return volume.overlap(address_of(model.view_engine(address).scene), volumes, i, j)


def overlap(engine: Engine, first: str | None, second: str | None) -> list[Shared]:
    """Volumes that two bodies (None = the ground) have in common, one for each pair of shapes that overlap.

    Raises ValueError if they have shapes whose overlap is not known: see `plant.collision.volume.volume`.
    """
    shape = engine.content.scene.shape
    one, other = (np.flatnonzero((shape.body == _index(engine, b)) & (shape.enabled == 1)) for b in (first, second))
    # Of a pair, the shape of the lower kind comes first.
    pairs = [(a, b) if shape.kind[a] <= shape.kind[b] else (b, a) for a in one.tolist() for b in other.tolist()]
    kinds = {(Kind(shape.kind[i]), Kind(shape.kind[j])) for i, j in pairs}
    if strange := kinds - set(volume.KNOWN):
        names = ", ".join(sorted(f"{i.name.lower()} and {j.name.lower()}" for i, j in strange))
        raise ValueError(f"overlap of {first or 'the ground'} and {second or 'the ground'}: not known for {names}")
    volumes = volume.build_volumes(engine.content.scene.hull, kinds)
    record, out, found = Struct(volumes), volumes.out, []
    _place(engine.record.address)
    for i, j in pairs:
        if _overlap(engine.record.address, record.address, i, j):
            swapped = i not in one
            found.append(
                Shared(
                    (j, i) if swapped else (i, j),
                    float(out.volume[0]),
                    out.centroid.copy(),
                    out.inertia.copy(),
                    -out.normal if swapped else out.normal.copy(),
                    float(out.area[0]),
                    out.point.copy(),
                    out.patch.copy(),
                )
            )
    return found


def _index(engine: Engine, body: str | None) -> int:
    return -1 if body is None else engine.index(body)


def _name(engine: Engine, body: int) -> str | None:
    return engine.names[body] if body >= 0 else None


def _names(engine: Engine, pair: NDArray[np.int64]) -> tuple[str | None, str | None]:
    return _name(engine, int(pair[0])), _name(engine, int(pair[1]))
