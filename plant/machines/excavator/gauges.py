"""The gauges: the outputs of the machine after a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hilnode.core.jit import kernel
from hilnode.core.signals import Signal
from hilnode.core.struct import F1, F2, I1
from plant.machines.excavator.hauling import on_bed
from plant.numeric.algebra import rotate
from plant.soil.model import (
    O_AIR,
    O_BANK,
    O_CUT,
    O_DEPTH,
    O_FILL,
    O_FORCE_X,
    O_FORCE_Y,
    O_FORCE_Z,
    O_GONE,
    O_HEAP,
    O_MASS,
    O_VOLUME,
    O_WORK,
    STRIKES,
)
from plant.vehicle.stability import energy_margin

WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
ARM = ("boom", "stick", "bucket")

OUTPUTS = (
    *(Signal(f"{name}.angle", "rad") for name in (*ARM, "swing", "blade", "outriggers", "steer")),
    *(Signal(f"{name}.stroke", "m", doc="piston out") for name in ARM),
    *(Signal(f"{name}.pressure_{side}", "Pa") for name in ARM for side in "ab"),
    Signal("pump.pressure", "Pa"),
    Signal("pump.flow", "m^3/s"),
    Signal("engine.speed", "rad/s"),
    Signal("speed", "m/s", doc="forwards"),
    Signal("x", "m"),
    Signal("y", "m"),
    Signal("heading", "rad"),
    Signal("tilt.pitch", "rad", doc="nose up"),
    Signal("tilt.roll", "rad", doc="left side up"),
    *(Signal(f"wheel_{name}.load", "N") for name in WHEELS),
    *(Signal(f"wheel_{name}.slip", "1") for name in WHEELS),
    Signal("bucket.load", "kg"),
    Signal("bucket.fill", "1", doc="loose volume over struck capacity"),
    Signal("bucket.volume", "m^3", doc="bank volume"),
    Signal("teeth.x", "m"),
    Signal("teeth.y", "m"),
    Signal("teeth.z", "m"),
    Signal("dig.force", "N"),
    Signal("dig.depth", "m"),
    Signal("dig.work", "J"),
    *(Signal(f"soil.{name}", "m^3") for name in ("bank", "heap", "cut", "air", "gone", "hauled", "balance")),
    Signal("truck.load", "kg", doc="soil on the bed"),
    Signal("truck.trips", "1", doc="full trucks that have driven off"),
    Signal("stability", "m", doc="height that the centre of mass must rise to tip over; below 0 it is falling"),
    Signal("objects", "1", doc="fences and cones that take part"),
    Signal("collisions", "1", doc="since the start: with objects, or of parts that should not touch the ground"),
    *(Signal(f"imu.a{axis}", "m/s^2", doc="specific force on the uppercarriage") for axis in "xyz"),
    *(Signal(f"imu.g{axis}", "rad/s", doc="angular rate of the uppercarriage") for axis in "xyz"),
    *(Signal(f"flag.{name}", "1") for name in ("clamped", "collision", "tipping", "full", "pipe", "overload")),
    Signal("flag.crowded", "1", doc="a fence or cone was near and could not take part: more than there are bodies for"),
    Signal("flag.airborne", "1", doc="nothing of the machine touches the ground: the stability says nothing"),
)
"""Names without the machine's own, in the order that `show` writes them."""

PINS = (
    *(f"axle_{name}" for name in WHEELS),
    *("blade_pin", "outrigger_left_pin", "outrigger_right_pin", "swing"),
    *("boom_pin", "stick_pin", "bucket_pin", "rocker_pin", "link_pin", "link_end"),
)
"""Joints whose force is told, behind what the sensors show: see `show_pulls`."""


def pulls(joints: Sequence[str]) -> tuple[Signal, ...]:
    """The signals of these joints."""
    return tuple(Signal(f"{name}.pull", "N", doc="force through the joint, its drive's included") for name in joints)


TIPPING = 0.05  # [m] a margin below this is a warning
TILTED = math.radians(30)
OVERLOAD = 0.98  # of the relief pressure


class Gauges(NamedTuple):
    """What the gauges need to know, and scratch."""

    joint: I1  # [7] boom, stick, bucket, swing, blade, outrigger, a front wheel
    zero: F1  # [7] their angles where the engine's are zero [rad]
    part: I1  # [n] bodies of the machine
    own: I1  # [bodies] 1 = one of them
    delicate: I1  # [bodies] 1 = should touch nothing
    pair: I1  # [material pairs] 1 = touching is a collision
    hull: int  # body: undercarriage
    bucket: int
    teeth: F1  # [3] in the bucket's axes, from its centre of mass [m]
    support: F2  # [room, 3] places where the machine stands
    order: I1  # [room]
    margin: F1  # [3] stability, whether something touched in the step before, and whether nothing bears the machine
    collisions: I1  # [1]
    pin: I1  # [n] joints whose force is told
    first_pull: int  # output of the first of them


@kernel
def stand(e, g, tires):
    """Where the machine stands, and how far it is from tipping over."""
    room, n = g.support.shape[0], 0
    for w in range(tires.body.size):
        if tires.touch[w] == 1 and n < room:
            for i in range(3):
                g.support[n, i] = tires.point[w, i]
            n += 1
    contact = e.data.contact
    for c in range(contact.count[0]):
        a, b = contact.body[c, 0], contact.body[c, 1]
        on_ground = (a < 0 and g.own[b] == 1) or (b < 0 and g.own[a] == 1)  # not a fence that stands nearby
        if n < room and on_ground and contact.impulse[c, 0] > 0.0:
            for i in range(3):
                g.support[n, i] = contact.point[c, i]
            n += 1
    mass, x, y, z = 0.0, 0.0, 0.0, 0.0
    for k in range(g.part.size):
        b = g.part[k]
        m, p = e.model.body.mass[b], e.data.state.pos[b]
        mass, x, y, z = mass + m, x + m * p[0], y + m * p[1], z + m * p[2]
    g.margin[0] = energy_margin(g.support, n, g.order, x / mass, y / mass, z / mass)
    g.margin[2] = 1.0 if n == 0 else 0.0


@kernel
def notice(e, g):
    """Count collisions: the steps in which one begins. Returns 1 while there is one."""
    contact, touching = e.data.contact, 0
    for c in range(contact.count[0]):
        if not contact.impulse[c, 0] > 0.0:
            continue
        a, b = contact.body[c, 0], contact.body[c, 1]
        if g.pair[contact.pair[c]] == 1 or (a >= 0 and g.delicate[a] == 1) or (b >= 0 and g.delicate[b] == 1):
            touching = 1
    if touching == 1 and g.margin[1] == 0.0:
        g.collisions[0] += 1
    g.margin[1] = 1.0 * touching
    return touching


@kernel
def show(e, g, cab, d, tires, soil, hauling, pool, imus, out):
    """All outputs, in the order of OUTPUTS."""
    state, n = e.data.state, 0
    for k in range(g.joint.size):
        out[n] = state.angle[g.joint[k], 0] + g.zero[k]
        n += 1
    for k in range(3):
        out[n] = d.stroke[k, 0]
        n += 1
    overload = 0.0
    for k in range(3):
        for side in range(2):
            out[n] = d.pressure[k, side]
            if d.pressure[k, side] > OVERLOAD * d.relief:
                overload = 1.0
            n += 1
    out[n], out[n + 1], out[n + 2] = d.pump[0], d.pump[1], d.engine[0]
    q, v, p = state.quat[g.hull], state.vel[g.hull], state.pos[g.hull]
    fx, fy, fz = rotate(q, 1.0, 0.0, 0.0)
    lz = rotate(q, 0.0, 1.0, 0.0)[2]
    out[n + 3] = v[0] * fx + v[1] * fy + v[2] * fz
    out[n + 4], out[n + 5], out[n + 6] = p[0], p[1], math.atan2(fy, fx)
    pitch, roll = math.asin(min(max(fz, -1.0), 1.0)), math.asin(min(max(lz, -1.0), 1.0))
    out[n + 7], out[n + 8] = pitch, roll
    n += 9
    for w in range(tires.load.size):
        out[n + w], out[n + tires.load.size + w] = tires.load[w], tires.slip[w]
    n += 2 * tires.load.size
    s = soil.state.out
    out[n], out[n + 1], out[n + 2] = s[O_MASS], s[O_FILL], s[O_VOLUME]
    x, y, z = rotate(state.quat[g.bucket], g.teeth[0], g.teeth[1], g.teeth[2])
    p = state.pos[g.bucket]
    out[n + 3], out[n + 4], out[n + 5] = p[0] + x, p[1] + y, p[2] + z
    out[n + 6] = math.sqrt(s[O_FORCE_X] * s[O_FORCE_X] + s[O_FORCE_Y] * s[O_FORCE_Y] + s[O_FORCE_Z] * s[O_FORCE_Z])
    out[n + 7], out[n + 8] = s[O_DEPTH], s[O_WORK]
    n += 9
    out[n], out[n + 1], out[n + 2], out[n + 3], out[n + 4] = s[O_BANK], s[O_HEAP], s[O_CUT], s[O_AIR], s[O_GONE]
    out[n + 5] = hauling.hauled[0]
    out[n + 6] = s[O_BANK] + s[O_HEAP] + s[O_CUT] + s[O_AIR] + s[O_GONE] + s[O_VOLUME] + hauling.hauled[0]
    out[n + 7], out[n + 8] = on_bed(hauling, soil) * soil.kind.density, 1.0 * hauling.trips[0]
    n += 9
    out[n], out[n + 1], out[n + 2] = g.margin[0], 1.0 * pool.counts[0], 1.0 * g.collisions[0]
    n += 3
    for i in range(3):
        out[n + i], out[n + 3 + i] = imus.force[0, i], imus.rate[0, i]
    n += 6
    tipping = g.margin[0] < TIPPING or abs(pitch) > TILTED or abs(roll) > TILTED
    out[n] = 1.0 if cab.clamped[0] > 0.0 else 0.0
    out[n + 1] = g.margin[1]
    out[n + 2] = 1.0 if tipping else 0.0
    out[n + 3] = 1.0 if soil.state.full[0] == 1 else 0.0
    out[n + 4] = 1.0 if soil.state.counter[STRIKES] > 0 else 0.0
    out[n + 5] = overload
    out[n + 6] = 1.0 if pool.counts[1] > 0 else 0.0
    out[n + 7] = g.margin[2]
    return n + 8


@kernel
def show_pulls(e, g, out):
    """Forces through the joints [N], as many as there are."""
    for k in range(g.pin.size):
        f = e.data.row.reaction[g.pin[k]]
        out[g.first_pull + k] = math.sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2])
