"""Inertial sensors on bodies: specific force and angular rate of an IMU, and pitch and roll of an inclinometer.

    specific force = acceleration of the sensor's point - gravity, in the sensor's axes     at rest: g upwards

The acceleration is the difference of the point's velocities over the last step: the mean over it, exact for a constant
one. It belongs to the middle of the step, so it is shown in the axes that the sensor had then (turned back by half a
step), which leaves an error of second order on a turning body. The first reading after a reset takes the acceleration
as zero. The angular rate is that of now.

    sensor's axes   x forwards, y to the left, z up when it is mounted straight
    roll, pitch     angles of R = Rz(yaw) Ry(pitch) Rx(roll), right-handed: a positive roll lifts the left side, a
                    positive pitch lowers the nose. At rest the force is g (-sin p, cos p sin r, cos p cos r), so
                    p = atan2(-fx, |fy, fz|), r = atan2(fy, fz): what a fluid or a capacitive inclinometer shows, wrong
                    by the accelerations as a real one is.

Errors, noise, lag and delay are those of the channels in `channel`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F2, I1, viewer
from plant.numeric.algebra import cross, quat_mul, rotate, turn


@dataclass(frozen=True)
class Imu:
    """An IMU on a body, at a point from its centre of mass [m] in the body's axes, turned by `quat` (w x y z)."""

    body: int
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


class Imus(NamedTuple):
    """All IMUs."""

    body: I1  # [n]
    at: F2  # [n, 3]
    mount: F2  # [n, 4]
    fresh: I1  # [n] 1 = has no velocity yet
    was: F2  # [n, 3] velocity of the point a step ago, world [m/s]
    pose: F2  # [n, 4] scratch
    # computed by `read_imus`
    force: F2  # [n, 3] specific force, sensor's axes [m/s^2]
    rate: F2  # [n, 3] angular rate, sensor's axes [rad/s]
    incline: F2  # [n, 2] pitch and roll by the specific force [rad]
    attitude: F2  # [n, 2] the true ones [rad]


view_imus = viewer(Imus)


def build_imus(imus: Sequence[Imu]) -> Imus:
    """The arrays of these IMUs. Lay them down as a `Struct` for hot code."""
    n = len(imus)
    for k, imu in enumerate(imus):
        if not isinstance(imu.body, int | np.integer) or imu.body < 0:
            raise ValueError(f"imu {k}: body = {imu.body!r} must be the number of a body, at least 0")
        for name, size in (("at", 3), ("quat", 4)):
            given = np.array(getattr(imu, name), float)
            if given.shape != (size,) or not np.isfinite(given).all():
                raise ValueError(f"imu {k}: {name} = {getattr(imu, name)!r} must be {size} finite numbers")
        if not np.linalg.norm(imu.quat) > 1e-6:
            raise ValueError(f"imu {k}: quat = {imu.quat!r} must not be zero")
    mount = np.array([imu.quat for imu in imus], float).reshape(-1, 4)
    return Imus(
        body=np.array([imu.body for imu in imus], np.int64),
        at=np.array([imu.at for imu in imus], float).reshape(-1, 3),
        mount=mount / np.linalg.norm(mount, axis=1, keepdims=True),
        fresh=np.ones(n, np.int64),
        pose=np.zeros((n, 4)),
        **{name: np.zeros((n, 3)) for name in ("was", "force", "rate")},
        **{name: np.zeros((n, 2)) for name in ("incline", "attitude")},
    )


@inline
def _back(q, x, y, z):
    """(x, y, z) in the axes of `q`."""
    return rotate((q[0], -q[1], -q[2], -q[3]), x, y, z)


@inline
def tilt(x, y, z):
    """Pitch and roll [rad] by a vector that points up, in the sensor's axes."""
    return math.atan2(-x, math.sqrt(y * y + z * z)), math.atan2(y, z)


@kernel
def read_imus(imus, gravity, h, quat, vel):
    """Read all IMUs after a step of `h` seconds under `gravity` [3] [m/s^2].

    `quat` [b, 4], `vel` [b, 6] linear of the centre of mass and angular, world axes, at the end of the step.
    """
    for k in range(imus.body.size):
        b = imus.body[k]
        q, at, pose, was = quat[b], imus.at[k], imus.pose[k], imus.was[k]
        wx, wy, wz = vel[b, 3], vel[b, 4], vel[b, 5]
        rx, ry, rz = rotate(q, at[0], at[1], at[2])
        vx, vy, vz = cross(wx, wy, wz, rx, ry, rz)
        vx, vy, vz = vel[b, 0] + vx, vel[b, 1] + vy, vel[b, 2] + vz
        if imus.fresh[k] == 1:
            was[0], was[1], was[2] = vx, vy, vz
            imus.fresh[k] = 0
        ax, ay, az = (vx - was[0]) / h - gravity[0], (vy - was[1]) / h - gravity[1], (vz - was[2]) / h - gravity[2]
        was[0], was[1], was[2] = vx, vy, vz

        quat_mul(q, imus.mount[k], pose)
        imus.rate[k, 0], imus.rate[k, 1], imus.rate[k, 2] = _back(pose, wx, wy, wz)
        ux, uy, uz = _back(pose, 0.0, 0.0, 1.0)
        imus.attitude[k, 0], imus.attitude[k, 1] = tilt(ux, uy, uz)
        turn(pose, -0.5 * h * wx, -0.5 * h * wy, -0.5 * h * wz)
        fx, fy, fz = _back(pose, ax, ay, az)
        imus.force[k, 0], imus.force[k, 1], imus.force[k, 2] = fx, fy, fz
        imus.incline[k, 0], imus.incline[k, 1] = tilt(fx, fy, fz)


@kernel
def reset_imus(imus):
    """No velocity known: after poses were set from outside."""
    imus.fresh[:] = 1
