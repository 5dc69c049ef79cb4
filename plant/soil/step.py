"""One step of the soil: the stages in their order.

feel        where the lip is, how deep, how fast                      edge.py     Luaces eq. 3.25 to 3.27
push        the digging force                                         push.py     eq. 3.23
capacity    what the bucket holds as it is turned                     pour.py     4.8.1
cut         samples under the lip and in the mouth go down            cut.py      4.8.1
fill, berm  into the bucket, or aside                                 fill.py     eq. 3.28
discharge   out of the bucket, into parcels                           pour.py     eq. 4.102
drape       a new patch where there is none                           drape.py    eq. 4.103 to 4.105
fly         parcels fall and are laid down                            flight.py   eq. 4.106 to 4.108
relax       slopes slide to the angle of repose                       repose.py
strike      pipes                                                     buried.py
weigh, tell the load, and what is told of it all                      load.py     eq. 3.24
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.abi import NOT_FINITE, OK
from plant.soil.buried import strike
from plant.soil.cut import cut
from plant.soil.drape import drape
from plant.soil.edge import feel
from plant.soil.fill import berm, fill
from plant.soil.flight import fly
from plant.soil.load import tell, weigh
from plant.soil.model import ACCOUNTS, SCENERY
from plant.soil.pour import discharge, find_capacity
from plant.soil.push import push
from plant.soil.repose import relax

HUGE = 1e9  # [m], [m/s], [rad/s] no bucket is farther or faster: something has gone wrong


@kernel
def _is_sound(pos, rot, vel):
    for k in range(3):
        if not abs(pos[k]) < HUGE:
            return False
        for a in range(3):
            if not abs(rot[k, a]) < 2.0:
                return False
    for k in range(6):
        if not abs(vel[k]) < HUGE:
            return False
    return True


@kernel
def dig(soil, ground, field, pos, rot, vel, h, wrench):
    """Feel, push, cut and fill: whatever happens at the lip. Returns whether the lip is in the ground."""
    soil.state.force[:] = 0.0
    deep = feel(soil, ground, field, pos, rot, vel)
    if deep:
        push(soil, pos, rot, h, wrench)
    find_capacity(soil)
    cut(soil, ground, field, pos, rot, vel)
    fill(soil, deep, h)
    berm(soil, ground, field, pos, rot, deep)
    return deep


@kernel
def soil_step(soil, ground, field, pos, rot, vel, h, wrench):
    """One step of `h` [s] with the bucket's body at `pos` [3] (centre of mass), turned by `rot` [3, 3], moving with
    `vel` [6] (linear, angular, world axes). Adds force and torque about `pos` to `wrench` [6]. Returns a status."""
    if not _is_sound(pos, rot, vel):
        return NOT_FINITE
    deep = dig(soil, ground, field, pos, rot, vel, h, wrench)
    discharge(soil, pos, rot, vel, deep, h)
    drape(soil, ground, field)
    fly(soil, ground, field, h)
    relax(soil, ground, field)
    strike(soil, pos, rot, vel, wrench)
    weigh(soil, pos, rot, wrench)
    tell(soil)
    return OK


@kernel
def reset_soil(soil, ground, field):
    """All as it was built: heights, loose layers, patches, accounts, and the random numbers."""
    s, land, start, q, parcel = soil.state, soil.land, soil.start, soil.queue, soil.parcel
    land.loose[:] = start.loose
    land.heap[:] = start.heap
    land.bank[:] = 0
    for p in range(ground.on.size):
        f = ground.field[p]
        for k in range(field.first[f], field.first[f + 1]):
            field.height[k] = start.height[k]
        ground.on[p] = start.on[p]
        if land.reserve[p] == 1:
            land.diggable[p] = SCENERY
        for k in range(3):
            ground.at[p, k] = start.at[p, k]
        ground.stamp[p, :] += 1
    for k in range(ACCOUNTS):
        s.account[k] = 0.0
        s.error[k] = 0.0
    q.queued[:] = 0
    q.ends[:] = 0
    parcel.volume[:] = 0.0
    parcel.ends[:] = 0
    parcel.since[0] = 0.0
    soil.pipe.struck[:] = 0
    soil.pipe.speed[:] = 0.0
    soil.pipe.place[:] = 0.0
    s.known[0] = 0
    s.force[:] = 0.0
    s.full[0] = 0
    s.laying[0] = -1
    s.laying[1] = 0
    s.counter[:] = 0
    s.random[0] = start.seed[0]
    s.out[:] = 0.0
