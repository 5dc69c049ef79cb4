"""Discharge: how much the bucket holds at its present tilt, and the surplus that leaves it.

    dV = V_t - V_(t-1),  V_t the most that it holds at the angle of now                                Luaces eq. 4.102

The angle is the tilt of the mouth from opening upwards. Between the tilt at which soil begins to leave and the one at
which all has left, the capacity falls smoothly (3 x^2 - 2 x^3); tilts over the lip and over the hinge have their own
ends, and a bucket that leans to its side lies in between. The surplus leaves by e in `flow_time`. The part of the mouth
that is in the ground is closed by it.
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from plant.soil.edge import speed_at, turned
from plant.soil.flight import launch
from plant.soil.heap import uniform
from plant.soil.model import BUCKET, POUR, book, clear, held

EVERY = 0.01  # [s] between two parcels
DROP = 1e-7  # [m^3] a surplus below it leaves at once


@kernel
def held_at(tool, side, up, over_lip):
    """Share of the heaped capacity at a tilt: `up` is the outward normal's z, `over_lip` and `side` the heights of the
    hinge over the lip and of the right end over the left one, as parts of their lengths."""
    tilt = math.acos(min(max(up, -1.0), 1.0))
    lean = 0.5 + 0.5 * over_lip / math.sqrt(over_lip * over_lip + side * side + 1e-12)
    begin = tool.hinge_begin + lean * (tool.lip_begin - tool.hinge_begin)
    end = tool.hinge_end + lean * (tool.lip_end - tool.hinge_end)
    x = min(max((tilt - begin) / (end - begin), 0.0), 1.0)
    return 1.0 - x * x * (3.0 - 2.0 * x)


@kernel
def find_capacity(soil):
    """Bank volume that the bucket holds as it is turned and stands in the ground."""
    s, tool = soil.state, soil.tool
    share = held_at(tool, s.frame[0, 2], -s.frame[2, 2], s.frame[1, 2])
    closed = 0.0
    for i in range(tool.slices):
        closed += s.fill[i]
    closed /= tool.slices * tool.reach
    s.capacity[0] = (share + (1.0 - share) * closed) * tool.heaped / soil.kind.bulking


@kernel
def discharge(soil, pos, rot, vel, deep, h):
    """Let the surplus out, and launch it in parcels from a random place of the lip, or of the hinge if that is lower.

    With the lip in the ground nothing falls: there it is pushed aside (`plant.soil.fill`).
    """
    s, tool, parcel = soil.state, soil.tool, soil.parcel
    surplus = held(soil, BUCKET) - s.capacity[0]
    if surplus > 0.0 and not deep:
        if surplus > DROP:
            surplus *= min(h / soil.kind.flow_time, 1.0)
        if s.capacity[0] == 0.0 and held(soil, BUCKET) <= DROP:
            book(soil, POUR, clear(soil, BUCKET))
        else:
            book(soil, BUCKET, -surplus)
            book(soil, POUR, surplus)
    parcel.since[0] = min(parcel.since[0] + h, 1.0)
    if parcel.since[0] < EVERY or not held(soil, POUR) > 0.0:
        return
    u = tool.width * uniform(s.random)
    far = tool.reach if s.frame[1, 2] < 0.0 else 0.0
    x = turned(rot, tool.lip[0], 0) + u * s.frame[0, 0] + far * s.frame[1, 0]
    y = turned(rot, tool.lip[0], 1) + u * s.frame[0, 1] + far * s.frame[1, 1]
    z = turned(rot, tool.lip[0], 2) + u * s.frame[0, 2] + far * s.frame[1, 2]
    vx, vy, vz = speed_at(vel, x, y, z)
    if launch(soil, pos[0] + x, pos[1] + y, pos[2] + z, vx, vy, vz, held(soil, POUR)):
        clear(soil, POUR)
        parcel.since[0] = 0.0
