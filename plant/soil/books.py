"""The soil balance of a sample: taking soil off and putting it on, the only two ways in which a height changes.

A sample stands for a column of dx x dy. What is taken off is loose soil first, then bank. Heights are rounded to quanta
towards less change, and both answer with what has really moved, so that no rounding is lost.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.soil.ground import change_height
from plant.soil.model import BED, QUANTA, QUANTUM


@inline
def _queue(soil, k, item):
    q = soil.queue
    if q.queued[k] == 1:
        return
    q.queued[k] = 1
    last = q.ends[1]
    q.item[last] = item
    last += 1
    q.ends[1] = last if last < q.item.size else 0


@kernel
def wake(soil, ground, field, p, i, j):
    """Look at the slopes of a sample and of its neighbours again."""
    f = ground.field[p]
    nx, ny = field.nx[f], field.ny[f]
    for a in range(max(i - 1, 0), min(i + 2, nx)):
        for b in range(max(j - 1, 0), min(j + 2, ny)):
            s = a * ny + b
            _queue(soil, field.first[f] + s, p * soil.queue.stride + s)


@kernel
def take(soil, ground, field, p, i, j, z):
    """Lower sample (i, j) of patch `p` to `z` above its `at`: bank volume taken, and the room that it took [m^3]."""
    land = soil.land
    f = ground.field[p]
    k = field.first[f] + i * field.ny[f] + j
    top, loose = field.height[k], land.loose[k]
    z = max(z, land.low[p])
    if land.diggable[p] == BED:
        z = max(z, top - loose)
    z = math.ceil(z * QUANTA) * QUANTUM
    if not z < top:
        return 0.0, 0.0
    off = min(top - z, loose)
    bank = top - z - off
    land.loose[k] = loose - off
    land.heap[p] -= int(off * QUANTA)
    land.bank[p] -= int(bank * QUANTA)
    change_height(ground, field, p, i, j, z)
    wake(soil, ground, field, p, i, j)
    return land.area[p] * (bank + off / soil.kind.bulking), land.area[p] * (top - z)


@kernel
def put(soil, ground, field, p, i, j, volume):
    """Lay a bank volume on sample (i, j) of patch `p` as loose soil: what really found room [m^3], a little less."""
    land = soil.land
    f = ground.field[p]
    k = field.first[f] + i * field.ny[f] + j
    rise = min(volume * soil.kind.bulking / land.area[p], land.high[p] - field.height[k])
    rise = math.floor(rise * QUANTA) * QUANTUM
    if not rise > 0.0:
        return 0.0
    land.loose[k] += rise
    land.heap[p] += int(rise * QUANTA)
    change_height(ground, field, p, i, j, field.height[k] + rise)
    wake(soil, ground, field, p, i, j)
    return land.area[p] * (rise / soil.kind.bulking)


@kernel
def bank_of(soil):
    """Soil that grew there, against the start [m^3]."""
    total = 0.0
    for p in range(soil.land.area.size):
        total += soil.land.area[p] * (soil.land.bank[p] * QUANTUM)
    return total


@kernel
def heap_of(soil):
    """Loose soil on all patches, in bank volume [m^3]."""
    total = 0.0
    for p in range(soil.land.area.size):
        total += soil.land.area[p] * (soil.land.heap[p] * QUANTUM / soil.kind.bulking)
    return total
