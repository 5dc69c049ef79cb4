"""The drives: from the cab's demands to the targets of the engine's actuators.

Cylinders are guided, as in the thesis (6.1): the lever moves a goal, which the joint is held to with no more force than
the cylinder's pressure gives; a joint that is stopped takes its goal with it. Swing, blade and outriggers are guided
always. Or cylinders are hydraulic: pressures of compressible oil, and one pump that they share.

    pump       load-sensing: delivers the highest load pressure plus a margin, up to the relief pressure
    flow       what all valves ask for, at most what the engine's speed gives and its power allows at that pressure;
               if that is less, all get the same share (so the arm slows under load)
    valve      pressure-compensated: its flow is what it asks for, whatever the others' pressures

Wheels are driven by torque up to the pull of the gear and the power of the engine, braked by dry friction; with the
pedal up, the hydrostat holds back with a third of its pull.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1
from plant.constraint.cylinder_linkage import reach
from plant.machines.excavator.cab import BLADE, BRAKE, DRIVE, GEAR, OUTRIGGERS, PARKING, STEER, STEER_MODE, THROTTLE
from plant.vehicle.steering import ackermann, crab, pivot

ARM = 3  # cylinders of the arm: boom, stick, bucket
SOFT_END = 0.06  # [m] before the end of its stroke a cylinder slows down
SOFT_TURN = 0.06  # [rad] the same for blade and outriggers
LEASH = 0.02  # [rad] that the goal of a guided joint may be ahead of it
FIRM = 20.0  # [1/s] at which a guided joint goes to its goal
LOSSES = 0.85  # of the engine's power that reaches the oil
HOLD_BACK = 0.33  # share of the pull that slows the machine when the pedal is up
CRAWL = 0.5  # [m/s] below it the pull is not limited by power
PIVOT, CRAB = 1, 2  # modes of steering
PIVOT_SPEED = 0.6  # [rad/s] at which wheels turn into another mode
STILL = 1e-3  # an opening of a valve below this is shut


class Drives(NamedTuple):
    """Constants, and what follows the levers."""

    # the arm
    cylinder: I1  # [3] actuators of boom, stick and bucket
    joint: I1  # [3] joints that they turn
    linkage: F2  # [3, 3]
    length: F2  # [3, 2] closed and open [m]
    area: F2  # [3, 2] of the piston, and around the rod [m^2]
    speed: F1  # [3] at full lever [m/s]
    out: F1  # [3] +1: the cylinder grows when the cab asks for more; bucket and stick fold in as theirs grow
    lag: float  # [s]
    hydraulic: int  # 1 = with pressures
    # the rest
    swing: int  # actuator
    swing_joint: int
    swing_speed: float  # [rad/s]
    swing_time: float  # [s] from rest to full speed
    blade: I1  # [2] actuator, joint
    outrigger: I1  # [4] actuators, joints
    tool_speed: F1  # [2] of blade and outriggers [rad/s]
    tool_range: F2  # [2, 2] [rad], of their joints
    steer: I1  # [4] actuators
    ahead: F2  # [2, 4] of the wheels before the rear axle, before the middle between the axles [m]
    right: F1  # [4] of the wheels to the right of the middle [m]
    turned: F1  # [4] angles that the wheels are asked for [rad]
    steer_most: float  # [rad]
    steer_speed: float  # [rad/s]
    hull: int  # body: the undercarriage
    wheel: I1  # [4] actuators that drive
    brake: I1  # [4] actuators that brake
    radius: float  # [m]
    gear: F1  # [3] speed as a share of the highest
    drive_speed: float  # [m/s]
    drive_pull: float  # [N]
    brake_torque: float  # [N m] of all
    # pump and engine
    relief: float  # [Pa]
    margin: float  # [Pa]
    flow: float  # [m^3/s] at rated speed
    power: float  # [W]
    idle: float  # [rad/s]
    rated: float  # [rad/s]
    # state
    goal: F1  # [actuators] angles that guided joints are held to [rad]
    moving: F1  # [4] speeds that follow the levers: three cylinders [m/s], swing [rad/s]
    steering: F1  # [1] share of the greatest angle
    engine: F1  # [1] [rad/s]
    stroke: F2  # [3, 2] piston out [m], slope [m/rad]
    pressure: F2  # [3, 2] [Pa]
    pump: F1  # [2] pressure [Pa] and flow [m^3/s]


@inline
def _hold(e, d, i, joint, speed):
    """Let the goal of a guided joint go on at `speed` [rad/s], no further ahead of the joint than LEASH."""
    target, at = e.data.target, e.data.state.angle[joint, 0]
    d.goal[i] = min(max(d.goal[i] + speed * e.model.setup.h, at - LEASH), at + LEASH)
    target.speed[i], target.position[i], target.gain[i] = speed, d.goal[i], FIRM


@inline
def _nearer(now, goal, most):
    return now + min(max(goal - now, -most), most)


@kernel
def drive(e, d, cab):
    """Goals of all actuators for this step."""
    h = e.model.setup.h
    d.engine[0] = _nearer(d.engine[0], d.idle + cab.lever[THROTTLE] * (d.rated - d.idle), 100.0 * h)
    measure(e, d)
    if d.hydraulic == 1:
        _share_the_pump(e, d, cab)
    else:
        _guide(e, d, cab)
    _swing(e, d, cab, h)
    _tools(e, d, cab)
    _steer(e, d, cab, h)
    _wheels(e, d, cab)


@kernel
def reset_drives(e, d):
    """Engine at idle, everything held where it is now, wheels straight."""
    d.moving[:] = 0.0
    d.goal[:] = 0.0
    d.steering[:] = 0.0
    for k in range(4):
        e.data.target.position[d.steer[k]] = 0.0
    d.engine[0] = d.idle
    d.pressure[:] = 0.0
    d.pump[:] = 0.0
    measure(e, d)


@kernel
def measure(e, d):
    """Strokes of the arm's cylinders, from the angles of their joints."""
    for k in range(ARM):
        c = d.linkage[k]
        length, slope = reach(c[0], c[1], c[2], e.data.state.angle[d.joint[k], 0])
        d.stroke[k, 0], d.stroke[k, 1] = length - d.length[k, 0], slope


@inline
def _near_ends(speed, left, room, soft, rate):
    """A speed that ends softly: `left` to go downwards, `room` upwards, braked within `soft`."""
    if speed > 0.0:
        return min(speed, rate * max(room, 0.0) / soft)
    return max(speed, -rate * max(left, 0.0) / soft)


@kernel
def _guide(e, d, cab):
    """Cylinders at the speed of their levers, with no more force than the relief pressure gives."""
    target, h = e.data.target, e.model.setup.h
    share = d.engine[0] / d.rated
    for k in range(ARM):
        goal = cab.ask[k] * d.out[k] * d.speed[k] * share
        d.moving[k] += (goal - d.moving[k]) * min(1.0, h / max(d.lag, h))
        out, slope = d.stroke[k, 0], d.stroke[k, 1]
        room = d.length[k, 1] - d.length[k, 0] - out
        i = d.cylinder[k]
        _hold(e, d, i, d.joint[k], _near_ends(d.moving[k], out, room, SOFT_END, d.speed[k]) / slope)
        push, pull = d.relief * d.area[k, 0] * slope, -d.relief * d.area[k, 1] * slope
        target.low[i], target.high[i] = min(push, pull), max(push, pull)


@inline
def _asked(d, k, side):
    """Flow that the valve of cylinder `k` asks for [m^3/s]; less towards the end of its stroke."""
    room = d.length[k, 1] - d.length[k, 0] - d.stroke[k, 0] if side == 0 else d.stroke[k, 0]
    return abs(d.moving[k]) * d.speed[k] * d.area[k, side] * min(1.0, max(room, 0.0) / SOFT_END)


@kernel
def _share_the_pump(e, d, cab):
    """Openings of the valves and the pump's pressure, from loads and levers."""
    chamber, cylinder = e.data.chamber, e.model.cylinder
    asked, load = 0.0, 0.0
    for k in range(ARM):
        c = e.model.actuator.cylinder[d.cylinder[k]]
        goal = cab.ask[k] * d.out[k]
        d.moving[k] += (goal - d.moving[k]) * min(1.0, e.model.setup.h / max(d.lag, e.model.setup.h))
        if abs(d.moving[k]) > STILL:
            side = 0 if d.moving[k] > 0.0 else 1
            asked += _asked(d, k, side)
            load = max(load, chamber.pressure[c, side])
    pressure = min(load + d.margin, d.relief)
    most = d.flow * d.engine[0] / d.rated
    power = LOSSES * d.power * d.engine[0] / d.rated
    most = min(most, power / max(pressure, 1e5))
    share = min(1.0, most / asked) if asked > 0.0 else 1.0
    d.pump[0] = pressure
    for k in range(ARM):
        c = e.model.actuator.cylinder[d.cylinder[k]]
        chamber.supply[c] = pressure
        u = d.moving[k]
        if abs(u) <= STILL:
            chamber.valve[c] = 0.0
            continue
        side = 0 if u > 0.0 else 1
        flow = share * _asked(d, k, side)
        drop = max(pressure - chamber.pressure[c, side], 0.25 * d.margin)
        opening = flow * math.sqrt(drop + cylinder.laminar[c]) / (cylinder.valve_gain[c] * drop)
        chamber.valve[c] = math.copysign(min(opening, 1.0), u)


@kernel
def _swing(e, d, cab, h):
    goal = cab.ask[3] * d.swing_speed * d.engine[0] / d.rated
    d.moving[3] = _nearer(d.moving[3], goal, d.swing_speed / d.swing_time * h)
    _hold(e, d, d.swing, d.swing_joint, d.moving[3])


@kernel
def _tools(e, d, cab):
    """Blade and outriggers: by speed, to the ends of their ranges."""
    angle = e.data.state.angle
    for k in range(2):
        lever = cab.lever[BLADE] if k == 0 else cab.lever[OUTRIGGERS]
        for i in range(1 if k == 0 else 2):
            actuator = d.blade[0] if k == 0 else d.outrigger[i]
            joint = d.blade[1] if k == 0 else d.outrigger[2 + i]
            at, rate = angle[joint, 0], d.tool_speed[k]
            left, room = at - d.tool_range[k, 0], d.tool_range[k, 1] - at
            _hold(e, d, actuator, joint, _near_ends(lever * rate, left, room, SOFT_TURN, rate))


@kernel
def _steer(e, d, cab, h):
    d.steering[0] = _nearer(d.steering[0], cab.lever[STEER], d.steer_speed / d.steer_most * h)
    mode = int(cab.lever[STEER_MODE] + 0.5)
    if mode == PIVOT:
        pivot(d.ahead[1], d.right, d.turned)
    elif mode == CRAB:
        crab(d.steering[0], d.steer_most, d.turned)
    else:
        ackermann(d.steering[0], d.steer_most, d.ahead[0], d.right, d.turned)
    most = PIVOT_SPEED * h
    for k in range(4):
        i = d.steer[k]
        e.data.target.position[i] = _nearer(e.data.target.position[i], d.turned[k], most)


@kernel
def _wheels(e, d, cab):
    """Torque and goal of each wheel; the brakes."""
    target = e.data.target
    gear = d.gear[min(max(int(cab.lever[GEAR] + 0.5), 1), 3) - 1]
    pedal, share = cab.lever[DRIVE], d.engine[0] / d.rated
    goal = pedal * gear * d.drive_speed * share / d.radius
    pull = d.drive_pull * d.gear[0] / gear
    most = pull * (abs(pedal) if pedal != 0.0 else HOLD_BACK)
    v = e.data.state.vel[d.hull]
    fast = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    most = min(most, LOSSES * d.power * share / max(fast, CRAWL))
    torque = 0.25 * most * d.radius
    brake = max(cab.lever[BRAKE], cab.lever[PARKING]) * d.brake_torque * 0.25
    pivots = int(cab.lever[STEER_MODE] + 0.5) == PIVOT
    for k in range(4):
        i = d.wheel[k]
        target.speed[i] = goal
        if pivots:  # as fast as the wheel is turned; to the left the right wheels go forwards, the left ones back
            target.speed[i] = goal * cab.lever[STEER] * math.copysign(1.0, d.right[k])
        target.low[i], target.high[i] = -torque, torque
        target.low[d.brake[k]], target.high[d.brake[k]] = -brake, brake
