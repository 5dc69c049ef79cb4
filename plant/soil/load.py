"""The load in the bucket, and the outputs of the soil at each step."""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.soil.books import bank_of, heap_of
from plant.soil.edge import turned
from plant.soil.flight import air_of
from plant.soil.model import (
    BUCKET,
    GONE,
    O_AIR,
    O_BANK,
    O_CAPACITY,
    O_CUT,
    O_DEPTH,
    O_FILL,
    O_FORCE_X,
    O_GONE,
    O_HEAP,
    O_LOAD_X,
    O_MASS,
    O_VOLUME,
    O_WORK,
    POOL,
    POUR,
    PUSH,
    REST,
    WORK,
    held,
)


@kernel
def weigh(soil, pos, rot, wrench):
    """Mass and centre of the load; its weight (Luaces eq. 3.24) onto `wrench` if the bucket is built so.

    The centre goes in a straight line from the floor of the bucket, when it is empty, to the middle of the hull when
    it is heaped: smooth in the fill.
    """
    s, tool, kind = soil.state, soil.tool, soil.kind
    out = s.out
    volume = max(held(soil, BUCKET), 0.0)
    mass = kind.density * volume
    share = min(volume * kind.bulking / tool.heaped, 1.0)
    for k in range(3):
        out[O_LOAD_X + k] = tool.empty_centre[k] + share * (tool.full_centre[k] - tool.empty_centre[k])
    out[O_VOLUME], out[O_MASS], out[O_FILL] = volume, mass, volume * kind.bulking / tool.struck
    if tool.weigh == 1 and mass > 0.0:
        centre = out[O_LOAD_X : O_LOAD_X + 3]
        weight = mass * kind.gravity
        wrench[2] -= weight
        wrench[3] -= turned(rot, centre, 1) * weight
        wrench[4] += turned(rot, centre, 0) * weight


@kernel
def tell(soil):
    """Fill in the rest of `out`."""
    s, tool = soil.state, soil.tool
    out = s.out
    for k in range(3):
        out[O_FORCE_X + k] = s.force[k]
    depth = 0.0
    for i in range(tool.slices):
        depth += s.depth[i]
    out[O_DEPTH] = depth / tool.slices
    out[O_CAPACITY] = s.capacity[0]
    out[O_WORK] = held(soil, WORK)
    out[O_BANK] = bank_of(soil)
    out[O_HEAP] = heap_of(soil)
    out[O_CUT] = held(soil, POOL) + held(soil, PUSH)
    out[O_AIR] = air_of(soil) + held(soil, POUR) + held(soil, REST)
    out[O_GONE] = held(soil, GONE)
