"""User-facing set-up of the soil: which patches may be dug, what they are made of, and the bucket that digs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from plant.collision.scene import Scene
from plant.soil.bucket import Bucket
from plant.soil.buried import Pipe, new_pipes
from plant.soil.ground import Ground
from plant.soil.kind import SoilError, SoilKind
from plant.soil.model import BED, QUANTA, QUANTUM, SOIL, Land, Parcels, Queue, Soil, Start, new_state

TALLEST = 2.0**15  # [m] above it a height is no longer a whole number of quanta


def build_soil(
    scene: Scene,
    ground: Ground,
    kind: SoilKind,
    bucket: Bucket,
    *,
    soil: Sequence[int],
    beds: Sequence[int] = (),
    reserve: Sequence[int] = (),
    loose: Mapping[int, ArrayLike] | None = None,
    pipes: Sequence[Pipe] = (),
    com: ArrayLike = (0.0, 0.0, 0.0),
    seed: int = 1,
    parcels: int = 256,
    budget: int = 40,
) -> Soil:
    """The soil of a ground.

    `soil` are the patches that are soil all through, `beds` those on which soil may lie and from which it may be taken
    again (the bed of a truck), `reserve` those that are laid down where soil falls on scenery, switched off until then;
    the rest is scenery. `loose` gives patches a layer of loose soil [nx, ny] as part of their heights [m]. `com` is the
    centre of mass of the bucket's body in the frame in which the bucket is described. `parcels` fly at most at a time,
    `budget` samples are looked at in a step for slopes that slide.

    Heights of all these patches are rounded to whole quanta of 2^-36 m.
    """
    count = len(ground.field)
    diggable = np.zeros(count, np.int64)
    reserved = np.zeros(count, np.int64)
    taken: set[int] = set()
    for name, patches in (("soil", soil), ("beds", beds), ("reserve", reserve)):
        for p in patches:
            if not 0 <= p < count:
                raise SoilError(f"{name}: patch {p} is not there; the ground has patches 0 to {count - 1}")
            if p in taken:
                raise SoilError(f"{name}: patch {p} is named twice; it is one of soil, beds and reserve")
            taken.add(p)
    diggable[list(soil)] = SOIL
    diggable[list(beds)] = BED
    reserved[list(reserve)] = 1
    _check_count("parcels", parcels, 2, 100_000)
    _check_count("budget", budget, 1, 100_000)
    _check_count("seed", seed, 0, 2**63 - 1)
    field = scene.field
    half = scene.shape.size[ground.shape, 2]
    if not taken:
        raise SoilError("soil: no patch is named; without one there is nothing to dig")
    loose_layer = np.zeros(len(field.height))
    for p in sorted(taken):
        a, b = field.first[ground.field[p]], field.first[ground.field[p] + 1]
        if np.abs(field.height[a:b]).max() > TALLEST:
            raise SoilError(f"patch {p}: heights must be within {TALLEST:g} m of its middle")
        field.height[a:b] = np.round(field.height[a:b] * QUANTA) * QUANTUM
    for p, layer in (loose or {}).items():
        where = _slice(ground, scene, p, diggable)
        loose_layer[where] = _layer(p, layer, ground, scene)
    ground.on[list(reserve)] = 0
    step = field.step[ground.field]
    heap = [int(np.sum(loose_layer[field.first[f] : field.first[f + 1]] * QUANTA)) for f in ground.field]
    samples = field.nx * field.ny
    lowest = (ground.at[:, 2] - half).min() if count else 0.0
    return Soil(
        kind=kind.constants(),
        tool=bucket.constants(com),
        land=Land(
            diggable=diggable,
            reserve=reserved,
            low=np.ceil(-half * QUANTA) * QUANTUM,
            high=np.floor(half * QUANTA) * QUANTUM,
            area=step[:, 0] * step[:, 1],
            loose=loose_layer,
            bank=np.zeros(count, np.int64),
            heap=np.array(heap, np.int64),
            cell=float(step[sorted(taken)].max()),
            bottom=float(lowest) - 10.0,
        ),
        queue=Queue(
            item=np.zeros(int(samples.sum()) + 1, np.int64),
            queued=np.zeros(len(field.height), np.int64),
            ends=np.zeros(2, np.int64),
            stride=int(samples.max()),
            budget=int(budget),
        ),
        parcel=Parcels(
            volume=np.zeros(parcels),
            start=np.zeros((parcels, 3)),
            speed=np.zeros((parcels, 3)),
            time=np.zeros(parcels),
            ends=np.zeros(2, np.int64),
            since=np.zeros(1),
        ),
        pipe=new_pipes(pipes),
        state=new_state(int(bucket.slices), seed),
        start=Start(
            height=field.height.copy(),
            loose=loose_layer.copy(),
            heap=np.array(heap, np.int64),
            on=ground.on.copy(),
            at=ground.at.copy(),
            seed=np.array([seed], np.uint64),
        ),
    )


def _check_count(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SoilError(f"{name} {value!r} must be a whole number from {low} to {high}")


def _slice(ground: Ground, scene: Scene, p: int, diggable: np.ndarray) -> slice:
    """Where the samples of a patch stand that may have a loose layer."""
    if not 0 <= p < len(diggable) or diggable[p] == 0:
        raise SoilError(f"loose: patch {p} is not one of soil and beds, so no soil can lie on it")
    f = ground.field[p]
    return slice(scene.field.first[f], scene.field.first[f + 1])


def _layer(p: int, layer: ArrayLike, ground: Ground, scene: Scene) -> np.ndarray:
    f = ground.field[p]
    shape = int(scene.field.nx[f]), int(scene.field.ny[f])
    given = np.asarray(layer, np.float64)
    if given.shape not in ((), shape):
        raise SoilError(f"loose: patch {p} has {shape} samples, its layer {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0.0).all()):
        raise SoilError(f"loose: the layer of patch {p} must be finite and not below 0 m")
    return np.round(np.broadcast_to(given, shape).ravel() * QUANTA) * QUANTUM
