"""One step of the whole machine: its parts, in their order.

cab         levers within their ranges                                   cab.py
drives      goals of cylinders, swing, steering, wheels, tools           drives.py
tires       forces on the wheels, from where they are now                plant/vehicle/tires
hauling     a full truck drives off, before the soil is counted          hauling.py
soil        digging, filling, dumping; force on the bucket, its load     plant/soil
objects     fences and cones that come near                              plant/engine/proximity_pool.py
engine      one step of the multibody system, spook or ali3p
gauges      outputs, stability, flags, arrows                            gauges.py
"""

from __future__ import annotations

from typing import NamedTuple

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, viewer
from plant.abi import OK, step_function
from plant.engine.proximity_pool import ProximityPool, reset_pool, tend_pool
from plant.machines.excavator.cab import Cab, read_cab
from plant.machines.excavator.drives import ARM, Drives, drive, reset_drives
from plant.machines.excavator.gauges import Gauges, notice, show, show_pulls, stand
from plant.machines.excavator.hauling import Hauling, haul, reset_hauling
from plant.machines.excavator.mechanism import EMPTY, LOAD_RADIUS
from plant.model import Status, view_engine
from plant.natural.model import view_natural
from plant.numeric.algebra import rotate
from plant.sensor.channel import Sensors, reset_sensors, sense
from plant.sensor.imu import Imus, read_imus, reset_imus
from plant.soil.ground import Ground
from plant.soil.model import O_LOAD_X, O_LOAD_Y, O_LOAD_Z, O_MASS, Soil
from plant.soil.step import reset_soil, soil_step
from plant.stages import call_stage
from plant.vehicle.tires.model import Tires, reset_tires
from plant.vehicle.tires.step import tire_wrenches
from plant.velocity.reset import Start, restart

POSES_VALID = int(Status.POSES_VALID)


class Load(NamedTuple):
    """The body that stands for what the bucket carries.

    Its centre of mass is that of a full bucket. With less in it the centre lies deeper: the moment of that is a torque.
    """

    body: int
    core: int  # address of the arrays in natural coordinates; 0 = not used
    mass: F2  # [4, 4] its mass matrix there, for the mass EMPTY
    centre: F1  # [3] of mass, from the bucket's, in the bucket's axes [m]


class Excavator(NamedTuple):
    """All that the step works on."""

    engine: int  # address of its record
    cab: Cab
    drives: Drives
    ground: Ground
    tires: Tires
    soil: Soil
    hauling: Hauling
    proximity_pool: ProximityPool
    gauges: Gauges
    imus: Imus
    sensors: Sensors
    gravity: F1  # [3]
    load: Load
    shown: I1  # [n] bodies whose poses are told: the machine's; others are props or ground
    heap: I1  # [k] bodies of the patches in reserve
    heap_patch: I1  # [k]
    prop_pose: F2  # [o + k, 7] of the pool's fences and cones, and then of these patches: for displays
    prop_stamp: I1  # [o + k]
    arrow_stamp: I1  # [1]
    arrow_count: I1  # [1]
    arrow_at: F2
    arrow_force: F2
    start: Start


_view = viewer(Excavator)


@kernel
def _carry(e, load, mass):
    """Give the load's body a mass [kg]."""
    b, m = load.body, max(mass, EMPTY)
    if e.model.body.mass[b] == m:
        return
    e.model.body.mass[b] = m
    for i in range(3):
        e.model.body.inertia[b, i, i] = m * LOAD_RADIUS * LOAD_RADIUS
    if load.core != 0:
        n = view_natural(load.core)
        for i in range(4):
            for j in range(4):
                n.frame.mass[b, i, j] = load.mass[i, j] * (m / EMPTY)


@kernel
def _lean(load, out, quat, gravity, wrench):
    """The moment about the bucket of a load whose centre is not where its body's is."""
    m = out[O_MASS]
    x, y, z = out[O_LOAD_X] - load.centre[0], out[O_LOAD_Y] - load.centre[1], out[O_LOAD_Z] - load.centre[2]
    x, y, z = rotate(quat, x, y, z)
    wrench[3] += m * (y * gravity[2] - z * gravity[1])
    wrench[4] += m * (z * gravity[0] - x * gravity[2])
    wrench[5] += m * (x * gravity[1] - y * gravity[0])


@kernel
def _press(e, d):
    """Pressures in the arm's cylinders after the step: of the oil, or those that a guided cylinder's force needs."""
    if d.hydraulic == 1:
        d.pump[1] = 0.0
    for k in range(ARM):
        i = d.cylinder[k]
        if d.hydraulic == 1:
            c, side = e.model.actuator.cylinder[i], 0 if d.moving[k] > 0.0 else 1
            d.pressure[k, 0], d.pressure[k, 1] = e.data.chamber.pressure[c, 0], e.data.chamber.pressure[c, 1]
            if e.data.chamber.valve[c] != 0.0:
                d.pump[1] += max(e.data.chamber.flow[c, side], 0.0)
            continue
        force = e.data.target.pushed[i] / d.stroke[k, 1]
        d.pressure[k, 0] = max(force, 0.0) / d.area[k, 0]
        d.pressure[k, 1] = max(-force, 0.0) / d.area[k, 1]
    if d.hydraulic == 0:
        most, flow = 0.0, 0.0
        for k in range(ARM):
            most = max(most, d.pressure[k, 0], d.pressure[k, 1])
            flow += abs(d.moving[k]) * d.area[k, 0 if d.moving[k] > 0.0 else 1]
        d.pump[0], d.pump[1] = min(most + d.margin, d.relief), flow


@inline
def _tell_heap(x, k, pos):
    """Where a patch is, for displays."""
    prop = x.prop_stamp.size - x.heap.size + k
    x.prop_pose[prop, 0], x.prop_pose[prop, 1], x.prop_pose[prop, 2] = pos[0], pos[1], pos[2]
    x.prop_stamp[prop] += 1


@kernel
def _lay_heaps(x, e):
    """Patches that soil has just laid down, carried by their bodies."""
    for k in range(x.heap.size):
        at, pos = x.ground.at[x.heap_patch[k]], e.data.state.pos[x.heap[k]]
        if x.ground.on[x.heap_patch[k]] == 1 and (pos[0] != at[0] or pos[1] != at[1] or pos[2] != at[2]):
            pos[0], pos[1], pos[2] = at[0], at[1], at[2]
            e.data.status[POSES_VALID] = 0
            _tell_heap(x, k, pos)


@kernel
def _draw_arrows(x, e):
    """Forces of wheels and contacts, for displays."""
    x.arrow_stamp[0] += 1
    n, room, h = 0, x.arrow_at.shape[0], e.model.setup.h
    for w in range(x.tires.touch.size):
        if x.tires.touch[w] == 1:
            for i in range(3):
                x.arrow_at[n, i], x.arrow_force[n, i] = x.tires.point[w, i], x.tires.force[w, i]
            n += 1
    contact = e.data.contact
    for c in range(contact.count[0]):
        if contact.impulse[c, 0] > 0.0 and n < room:
            normal, along = contact.impulse[c, 0] / h, contact.impulse[c, 1] / h
            for i in range(3):
                x.arrow_at[n, i] = contact.point[c, i]
                x.arrow_force[n, i] = normal * contact.normal[c, i] + along * contact.tangent[c, i]
            n += 1
    force = x.soil.state.force
    if n < room and (force[0] != 0.0 or force[1] != 0.0 or force[2] != 0.0):
        g = x.gauges
        a, b, c3 = rotate(e.data.state.quat[g.bucket], g.teeth[0], g.teeth[1], g.teeth[2])
        p = e.data.state.pos[g.bucket]
        x.arrow_at[n, 0], x.arrow_at[n, 1], x.arrow_at[n, 2] = p[0] + a, p[1] + b, p[2] + c3
        for i in range(3):
            x.arrow_force[n, i] = force[i]
        n += 1
    x.arrow_count[0] = n
    x.arrow_stamp[0] += 1


@kernel
def _show(x, e, n, outputs, poses):
    """Outputs, what sensors make of them, forces in joints, and poses."""
    show(e, x.gauges, x.cab, x.drives, x.tires, x.soil, x.hauling, x.proximity_pool, x.imus, outputs)
    sense(x.sensors, n, e.model.setup.h, outputs, outputs)
    show_pulls(e, x.gauges, outputs)
    for k in range(x.shown.size):
        b, at = x.shown[k], 7 * k
        q, com = e.data.state.quat[b], e.model.body.com[b]
        ox, oy, oz = rotate(q, com[0], com[1], com[2])
        poses[at] = e.data.state.pos[b, 0] - ox
        poses[at + 1] = e.data.state.pos[b, 1] - oy
        poses[at + 2] = e.data.state.pos[b, 2] - oz
        for i in range(4):
            poses[at + 3 + i] = q[i]


@step_function
def step(self, n, params, inputs, outputs, poses):
    """One step of the whole machine."""
    x = _view(self)
    e = view_engine(x.engine)
    state, h = e.data.state, e.model.setup.h
    read_cab(x.cab, inputs)
    drive(e, x.drives, x.cab)
    state.wrench[:] = 0.0
    tire_wrenches(x.tires, x.ground, e.scene.field, state.pos, state.quat, state.vel, h, state.wrench)
    b = x.gauges.bucket
    frame, wrench = e.data.frame.rot[b], state.wrench[b]
    haul(x.hauling, x.soil, x.ground, e.scene.field, state.pos[b, 0], state.pos[b, 1])
    status = soil_step(x.soil, x.ground, e.scene.field, state.pos[b], frame, state.vel[b], h, wrench)
    if status != OK:
        return status
    _lay_heaps(x, e)
    _carry(e, x.load, x.soil.state.out[O_MASS])
    _lean(x.load, x.soil.state.out, state.quat[b], x.gravity, wrench)
    tend_pool(e, x.proximity_pool)
    status = call_stage(e.model.stage.step, x.engine, 1)
    if status != OK:
        return status
    _press(e, x.drives)
    stand(e, x.gauges, x.tires)
    notice(e, x.gauges)
    read_imus(x.imus, x.gravity, h, state.quat, state.vel)
    _draw_arrows(x, e)
    _show(x, e, n, outputs, poses)
    return OK


@step_function
def reset(self, n, params, inputs, outputs, poses):
    """The state at compile."""
    x = _view(self)
    e = view_engine(x.engine)
    restart(e, x.start)
    for k in range(x.heap.size):
        _tell_heap(x, k, e.data.state.pos[x.heap[k]])
    reset_soil(x.soil, x.ground, e.scene.field)
    reset_hauling(x.hauling)
    reset_pool(e, x.proximity_pool)
    reset_tires(x.tires)
    reset_imus(x.imus)
    read_imus(x.imus, x.gravity, e.model.setup.h, e.data.state.quat, e.data.state.vel)
    reset_sensors(x.sensors)
    _carry(e, x.load, 0.0)
    reset_drives(e, x.drives)
    g = x.gauges
    g.margin[:] = 0.0
    g.collisions[:] = 0
    x.arrow_count[0] = 0
    e.data.target.pushed[:] = 0.0
    read_cab(x.cab, inputs)
    _show(x, e, n, outputs, poses)
    return OK
