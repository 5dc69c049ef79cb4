"""Filling the bucket: soil of the pool flows through the mouth, and the surplus is pushed along as a berm.

    dV = sum over slices of  v(d_fill / 2) d_fill w dt                                    Luaces eq. 3.25 to 3.28

v is the speed of the mouth outwards. The flow is limited by the pool, which holds what has really been cut: samples are
cut one by one, so that the pool is a store of some rows of cells from which the bucket fills evenly. Flow and pool are
counted in room as it lay; the bank volume follows in proportion, so that a heap that is dug again weighs less.

What is more than the bucket holds as it is turned is laid down before the lip as loose soil, and so is what the flow
does not carry when soil stands above the hinge. There it is cut again, and grows into a berm that is pushed along.
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.soil.edge import turned
from plant.soil.heap import scatter, uniform
from plant.soil.model import BUCKET, FULL_EVENTS, PLACE, POOL, POUR, PUSH, REST, book, clear, held

STORE = 2.5  # cells of travel that the pool may hold
PUSHED = 2e-4  # [m^3] least volume that is laid down before the lip at once
BERM_RAYS = 3
OVER = 0.999  # of the mouth in the ground: the soil stands above the hinge
BACKING = 0.005  # [m/s] a mouth that leaves the ground faster than this leaves behind what is not in it yet
FULL, NO_LONGER = 0.995, 0.95  # of the heaped capacity: counted as full, and ready to be counted again


@kernel
def fill(soil, deep, h):
    """Move soil of the pool into the bucket, or to what is pushed; `deep` tells whether the lip is in the ground."""
    s, tool = soil.state, soil.tool
    pool, place = held(soil, POOL), held(soil, PLACE)
    if pool > 0.0 and place > 0.0:
        w = tool.width / tool.slices
        flow, back, store, face = 0.0, 0.0, 0.0, 0.0
        for i in range(tool.slices):
            flow += max(s.inflow[i], 0.0) * s.fill[i] * w * h
            back += s.inflow[i] * s.fill[i]
            face += s.fill[i]
            store += STORE * soil.land.cell * s.depth[i] * w
        into, aside = min(max(flow, place - store), place), 0.0
        if face >= OVER * tool.reach * tool.slices:
            into, aside = min(flow, place), max(place - flow - store, 0.0)
        if not deep:
            into, aside = place, 0.0
        elif back < -BACKING * face:
            into, aside = 0.0, place
        _share(soil, pool, place, into, aside)
    room = s.capacity[0] - held(soil, BUCKET)
    if room < 0.0 and deep:  # the ground before the mouth takes it, not the air
        over = min(-room, held(soil, BUCKET)) * min(h / soil.kind.flow_time, 1.0)
        book(soil, BUCKET, -over)
        book(soil, PUSH, over)
    _count(soil)


@kernel
def _share(soil, pool, place, into, aside):
    """Part of the pool into the bucket as far as there is room, part aside; all of it if next to nothing is left."""
    if into + aside > place * (1.0 - 1e-9):
        aside = place - into
        bank_in = pool * (into / place)
        bank_by = clear(soil, POOL) - bank_in
        clear(soil, PLACE)
    else:
        bank_in, bank_by = pool * (into / place), pool * (aside / place)
        book(soil, POOL, -bank_in)
        book(soil, POOL, -bank_by)
        book(soil, PLACE, -into - aside)
    room = max(soil.state.capacity[0] - held(soil, BUCKET), 0.0)
    fits = min(bank_in, room)
    book(soil, BUCKET, fits)
    book(soil, PUSH, bank_in - fits)
    book(soil, PUSH, bank_by)


@kernel
def _count(soil):
    """Count the bucket as full, once each time."""
    s = soil.state
    ratio = held(soil, BUCKET) * soil.kind.bulking / soil.tool.heaped
    if s.full[0] == 0 and ratio >= FULL:
        s.full[0] = 1
        s.counter[FULL_EVENTS] += 1
    elif s.full[0] == 1 and ratio < NO_LONGER:
        s.full[0] = 0


@kernel
def berm(soil, ground, field, pos, rot, deep):
    """Lay down before the lip what has been pushed aside, at a random place along its width.

    With the lip out of the ground it falls instead.
    """
    s, tool = soil.state, soil.tool
    amount = held(soil, PUSH)
    if not amount > 0.0 or (deep and amount < PUSHED):
        return
    if not deep:
        book(soil, POUR, clear(soil, PUSH))
        return
    amount = clear(soil, PUSH) + clear(soil, REST)
    u = tool.width * uniform(s.random)
    far = 1.5 * soil.land.cell
    x = pos[0] + turned(rot, tool.lip[0], 0) + u * s.frame[0, 0] + far * s.ahead[0]
    y = pos[1] + turned(rot, tool.lip[0], 1) + u * s.frame[0, 1] + far * s.ahead[1]
    left = scatter(soil, ground, field, x, y, amount, 0.5 * soil.land.cell, BERM_RAYS)
    book(soil, PUSH if left > 1e-3 * amount else REST, left)
