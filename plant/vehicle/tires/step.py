"""One step of all tires: forces and torques on the wheels from their poses and velocities.

tire_wrenches       the ordered list of stages, for each wheel
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.numeric.algebra import cross, rotate
from plant.vehicle.tires.contact import DEEP, find_plane, forwards, reach
from plant.vehicle.tires.laws import law_force, law_peaks
from plant.vehicle.tires.model import clear_wheel, lift_wheel
from plant.vehicle.tires.normal import ROLLS, normal_load
from plant.vehicle.tires.transient import DAMPED, TWISTED, WOUND, stretch_tread, wound

LIGHT = 1e-3  # [N] a lighter load has no friction
SMOOTHEST = 1e-3  # least grip: laws divide by friction
CREEP = 0.1  # [m/s] rolling speed from which a moment follows the direction of travel
LEANING = 0.3  # largest lean that pushes to the side


@inline
def _tangential(tires, w, load, depth, lean, travel, vx, vy, spin, yaw, h):
    """Forces along and across [N], moment about the normal and about the axis [N m]. `spin`, `yaw` [rad/s]."""
    radius = tires.radius[w]
    rolling = radius * spin
    grip = max(tires.grip[w], SMOOTHEST)
    p, code = tires.column[w], tires.law[w]
    half = math.sqrt(radius * depth)  # of the contact: a bulging tire's is shorter than the chord
    peak_x, peak_y = law_peaks(code, p, load, grip)
    push = tires.camber_gain[w] * abs(rolling) * min(max(lean, -LEANING), LEANING)
    sx, sy, speed = stretch_tread(tires, w, peak_x, peak_y, travel, vx, vy + push, h)
    fx, fy, moment = law_force(code, p, load, grip, half, sx, sy)
    moment *= min(max(travel / CREEP, -1.0), 1.0)  # the force acts behind the middle, wherever the wheel goes

    # Friction against turning on the spot: of a disc as large as the contact, or the wheel if it lies on its side.
    flat = lean * lean
    damp = DAMPED * CREEP / (CREEP + speed)
    disc = 0.5 * (half + 0.5 * tires.width[w]) * (1.0 - flat) + radius * flat
    tires.twist[w], held = wound(tires.twist[w], yaw, TWISTED, speed / half, damp, h)
    limit = grip * tires.friction[w] * load
    left = max(0.0, 1.0 - (fx * fx + fy * fy) / (limit * limit))
    about = moment - 2.0 / 3.0 * limit * left * disc * held

    # Rolling resistance; and the force along works at the rolling radius, not at the loaded one, while it rolls.
    tires.wind[w], held = wound(tires.wind[w], spin, WOUND, 0.0, damp, h)
    drag = -tires.rolling[w] * load * (radius - depth) * held
    rolls = abs(rolling) / (abs(rolling) + CREEP)
    drag -= fx * (1.0 - ROLLS) * depth * rolls

    tires.along[w], tires.across[w], tires.moment[w] = fx, fy, moment
    tires.slip[w], tires.angle[w] = sx, math.atan(sy)
    return fx, fy, about, drag


@kernel
def _wheel(tires, w, ground, field, pos, quat, vel, h, wrench):
    """One wheel. Returns False if something was not finite: nothing has been added then."""
    b = tires.body[w]
    q, radius = quat[b], tires.radius[w]
    ax, ay, az = rotate(q, tires.axis[w, 0], tires.axis[w, 1], tires.axis[w, 2])
    ox, oy, oz = rotate(q, tires.centre[w, 0], tires.centre[w, 1], tires.centre[w, 2])
    x, y, z = pos[b, 0] + ox, pos[b, 1] + oy, pos[b, 2] + oz
    wx, wy, wz = vel[b, 3], vel[b, 4], vel[b, 5]
    cx, cy, cz = cross(wx, wy, wz, ox, oy, oz)
    cx, cy, cz = vel[b, 0] + cx, vel[b, 1] + cy, vel[b, 2] + cz  # speed of the wheel's middle

    there, px, py, pz, nx, ny, nz = find_plane(tires, w, ground, field, x, y, z, ax, ay, wz, h)
    if not there:
        lift_wheel(tires, w)
        return math.isfinite(x + y + z)
    far, rx, ry, rz = reach(radius, tires.width[w], ax, ay, az, nx, ny, nz)
    above = (x - px) * nx + (y - py) * ny + (z - pz) * nz
    depth = min(far - above, DEEP * radius)
    if not depth > 0.0:
        lift_wheel(tires, w)
        return math.isfinite(depth)
    # the point of contact, in the plane
    up = -above - (rx * nx + ry * ny + rz * nz)
    rx, ry, rz = rx + up * nx, ry + up * ny, rz + up * nz
    ex, ey, ez = cross(wx, wy, wz, rx, ry, rz)
    load = normal_load(tires, w, depth, -((cx + ex) * nx + (cy + ey) * ny + (cz + ez) * nz))

    # speeds along and across: of the tread at the rolling radius
    fx, fy, fz = forwards(ax, ay, az, nx, ny, nz)
    lx, ly, lz = cross(nx, ny, nz, fx, fy, fz)
    longer = (1.0 - ROLLS) * depth
    ex, ey, ez = cross(wx, wy, wz, rx - longer * nx, ry - longer * ny, rz - longer * nz)
    travel = cx * fx + cy * fy + cz * fz
    vx = travel + ex * fx + ey * fy + ez * fz
    vy = (cx + ex) * lx + (cy + ey) * ly + (cz + ez) * lz
    lean = ax * nx + ay * ny + az * nz
    spin, yaw = wx * ax + wy * ay + wz * az, wx * nx + wy * ny + wz * nz
    along, across, about, drag = 0.0, 0.0, 0.0, 0.0
    if load > LIGHT:
        along, across, about, drag = _tangential(tires, w, load, depth, lean, travel, vx, vy, spin, yaw, h)
    else:
        lift_wheel(tires, w)

    gx, gy, gz = load * nx + along * fx + across * lx, load * ny + along * fy + across * ly, 0.0
    gz = load * nz + along * fz + across * lz
    tx, ty, tz = cross(ox + rx, oy + ry, oz + rz, gx, gy, gz)
    tx, ty, tz = tx + about * nx + drag * ax, ty + about * ny + drag * ay, tz + about * nz + drag * az
    if not math.isfinite(gx + gy + gz + tx + ty + tz):
        return False
    tires.touch[w], tires.depth[w], tires.load[w] = 1, depth, load
    tires.camber[w] = math.asin(min(max(lean, -1.0), 1.0))
    tires.point[w, 0], tires.point[w, 1], tires.point[w, 2] = x + rx, y + ry, z + rz
    tires.force[w, 0], tires.force[w, 1], tires.force[w, 2] = gx, gy, gz
    to = wrench[b]
    to[0] += gx
    to[1] += gy
    to[2] += gz
    to[3] += tx
    to[4] += ty
    to[5] += tz
    return True


@kernel
def tire_wrenches(tires, ground, field, pos, quat, vel, h, wrench):
    """Add the forces of all tires to the bodies, and remember what a tread remembers, over a step of `h` seconds.

    `pos` [b, 3] centres of mass [m], `quat` [b, 4], `vel` [b, 6] linear [m/s] and angular [rad/s] in world axes;
    `ground` of `plant.soil.ground` with the samples in `field`. `wrench` [b, 6] is added to: force [N] and torque about
    the centre of mass [N m]; whoever owns it sets it to zero before. A wheel whose state is not finite adds nothing.
    """
    for w in range(tires.body.size):
        if not _wheel(tires, w, ground, field, pos, quat, vel, h, wrench):
            clear_wheel(tires, w)
