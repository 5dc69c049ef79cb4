"""The truck: when full it drives off with its load, and an empty one takes its place.

It goes when the soil on its bed has reached `most`, nothing is falling any more, and the bucket is away from the bed.
The bed is emptied row by row, so that no step has much to do, and again until nothing has slid into rows that were
empty already. What has gone is an account of its own in the balance of the soil.

Limits: the truck is not seen to drive; the empty one stands exactly where the full one stood.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, I1
from plant.soil.books import take
from plant.soil.model import QUANTUM


class Hauling(NamedTuple):
    """The bed, when it is full, and what has been driven off."""

    patch: int  # of the ground: the truck's bed; -1 = there is no truck
    most: float  # [m^3] bank volume on the bed at which it goes
    clear: float  # [m] from the bed, level: so far the bucket must be away
    row: I1  # [1] row of samples to be emptied next, -1 = it stands
    hauled: F1  # [1] bank volume driven off [m^3]
    trips: I1  # [1] trucks that have gone


def new_hauling(patch: int, most: float, clear: float) -> Hauling:
    """An empty truck; `patch` -1 = none."""
    return Hauling(patch, most, clear, np.full(1, -1, np.int64), np.zeros(1), np.zeros(1, np.int64))


@inline
def on_bed(h, soil):
    """Bank volume on the bed [m^3]."""
    if h.patch < 0:
        return 0.0
    return soil.land.area[h.patch] * (soil.land.heap[h.patch] * QUANTUM / soil.kind.bulking)


@kernel
def _may_go(h, soil, ground, field, x, y):
    """Whether the truck is full, nothing flies, and the bucket at (x, y) is away from it."""
    p, parcel = h.patch, soil.parcel
    if on_bed(h, soil) < h.most or parcel.ends[0] != parcel.ends[1]:
        return False
    f = ground.field[p]
    long, wide = 0.5 * (field.nx[f] - 1) * field.step[f, 0], 0.5 * (field.ny[f] - 1) * field.step[f, 1]
    return abs(x - ground.at[p, 0]) > long + h.clear or abs(y - ground.at[p, 1]) > wide + h.clear


@kernel
def haul(h, soil, ground, field, x, y):
    """One step of the truck, with the bucket at (x, y)."""
    p = h.patch
    if p < 0:
        return
    if h.row[0] < 0:
        if not _may_go(h, soil, ground, field, x, y):
            return
        h.row[0] = 0
    f = ground.field[p]
    for j in range(field.ny[f]):
        h.hauled[0] += take(soil, ground, field, p, h.row[0], j, soil.land.low[p])[0]
    h.row[0] += 1
    if h.row[0] == field.nx[f]:
        h.row[0] = 0
        if soil.land.heap[p] == 0:
            h.row[0] = -1
            h.trips[0] += 1


@kernel
def reset_hauling(h):
    """The first truck, empty."""
    h.row[0], h.hauled[0], h.trips[0] = -1, 0.0, 0
