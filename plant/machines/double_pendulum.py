"""A double pendulum with a torque at each joint: the small reference plant.

Two uniform rods hang in the x-z plane from a fixed shoulder. Angles are measured from straight down,
counter-clockwise seen from -y, the second one absolute too. Lagrange's equations for the absolute angles a, b
with point c = cos(a - b), s = sin(a - b):

    M = | (m1/3 + m2) l1^2      m2 l1 l2 c / 2 |
        | m2 l1 l2 c / 2        m2 l2^2 / 3    |

    f1 = -m2 l1 l2 s b'^2 / 2 - (m1/2 + m2) g l1 sin a + T1 - T2 - d a' + d (b' - a')
    f2 = +m2 l1 l2 s a'^2 / 2 -  m2/2       g l2 sin b + T2            - d (b' - a')

T1 acts from the ground on rod 1, T2 from rod 1 on rod 2, d is viscous friction in both joints. Integrated by
the classical fourth-order Runge-Kutta rule with the torques held over the step.

Limits: planar, rigid, no joint stops. Checked against scipy's DOP853 and for energy in
tests/plant/machines/test_double_pendulum.py
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.signals import Signal
from hilnode.core.struct import F1, F2, Struct, viewer
from plant.abi import NOT_FINITE, OK, Plant, Task, step_function
from plant.visual.entries import COLOURS, entry

INPUTS = (
    Signal("pendulum.shoulder.torque", "N*m", low=-50, high=50, doc="from the ground on the first rod"),
    Signal("pendulum.elbow.torque", "N*m", low=-50, high=50, doc="from the first rod on the second"),
)
OUTPUTS = (
    Signal("pendulum.shoulder.angle", "rad", doc="first rod, from straight down"),
    Signal("pendulum.elbow.angle", "rad", doc="second rod relative to the first"),
    Signal("pendulum.shoulder.speed", "rad/s"),
    Signal("pendulum.elbow.speed", "rad/s"),
    Signal("pendulum.tip.x", "m"),
    Signal("pendulum.tip.z", "m"),
    Signal("pendulum.energy", "J", doc="kinetic and potential, zero hanging at rest"),
)
PARAMETERS = (
    Signal("pendulum.mass1", "kg", 1.0, 1e-3, 1e3),
    Signal("pendulum.mass2", "kg", 1.0, 1e-3, 1e3),
    Signal("pendulum.length1", "m", 0.5, 1e-2, 10),
    Signal("pendulum.length2", "m", 0.5, 1e-2, 10),
    Signal("pendulum.damping", "N*m*s", 0.0, 0, 100, doc="viscous friction in each joint"),
    Signal("pendulum.gravity", "m/s^2", 9.80665, 0, 100),
)
BODIES = ("pendulum.rod1", "pendulum.rod2")
SCENE = tuple(  # of the default lengths
    entry(body, "box", (0.03, 0.03, length.default), colour=colour)
    for body, length, colour in zip(BODIES, PARAMETERS[2:4], COLOURS, strict=False)
)


class Pendulum(NamedTuple):
    """State and scratch of one double pendulum."""

    start: F1  # [4] initial angles a, b [rad] and speeds [rad/s]
    state: F1  # [4] now
    slope: F2  # [4, 4] of the Runge-Kutta stages
    trial: F1  # [4]
    dt: float  # [s]


_view = viewer(Pendulum)


@kernel
def derivative(q, params, torque1, torque2, out):
    """`out` = d/dt (a, b, a', b')."""
    m1, m2, l1, l2, d, g = params[0], params[1], params[2], params[3], params[4], params[5]
    a, b, u, v = q[0], q[1], q[2], q[3]
    c, s = math.cos(a - b), math.sin(a - b)
    h = 0.5 * m2 * l1 * l2
    m11, m12, m22 = (m1 / 3.0 + m2) * l1 * l1, h * c, m2 * l2 * l2 / 3.0
    f1 = -h * s * v * v - (0.5 * m1 + m2) * g * l1 * math.sin(a) + torque1 - torque2 - d * u + d * (v - u)
    f2 = h * s * u * u - 0.5 * m2 * g * l2 * math.sin(b) + torque2 - d * (v - u)
    det = m11 * m22 - m12 * m12
    out[0], out[1] = u, v
    out[2] = (m22 * f1 - m12 * f2) / det
    out[3] = (m11 * f2 - m12 * f1) / det


@kernel
def energy(q, params):
    """Kinetic and potential energy [J], zero hanging at rest."""
    m1, m2, l1, l2, g = params[0], params[1], params[2], params[3], params[5]
    a, b, u, v = q[0], q[1], q[2], q[3]
    kinetic = (
        (m1 / 6.0 + 0.5 * m2) * l1 * l1 * u * u
        + m2 * l2 * l2 * v * v / 6.0
        + 0.5 * m2 * l1 * l2 * math.cos(a - b) * u * v
    )
    return kinetic + (0.5 * m1 + m2) * g * l1 * (1 - math.cos(a)) + 0.5 * m2 * g * l2 * (1 - math.cos(b))


@kernel
def _runge_kutta(p, params, torque1, torque2):
    q, h = p.state, p.dt
    derivative(q, params, torque1, torque2, p.slope[0])
    for stage in range(1, 4):
        w = h if stage == 3 else 0.5 * h
        for i in range(4):
            p.trial[i] = q[i] + w * p.slope[stage - 1, i]
        derivative(p.trial, params, torque1, torque2, p.slope[stage])
    for i in range(4):
        q[i] += h / 6.0 * (p.slope[0, i] + 2.0 * p.slope[1, i] + 2.0 * p.slope[2, i] + p.slope[3, i])


@kernel
def _pose(poses, at, x, z, angle):
    """A rod's middle and its turn about -y."""
    poses[at], poses[at + 1], poses[at + 2] = x, 0.0, z
    poses[at + 3], poses[at + 4], poses[at + 5], poses[at + 6] = math.cos(angle / 2), 0.0, -math.sin(angle / 2), 0.0


@kernel
def _show(q, params, outputs, poses):
    l1, l2 = params[2], params[3]
    a, b = q[0], q[1]
    x1, z1 = l1 * math.sin(a), -l1 * math.cos(a)
    x2, z2 = x1 + l2 * math.sin(b), z1 - l2 * math.cos(b)
    outputs[0], outputs[1], outputs[2], outputs[3] = a, b - a, q[2], q[3] - q[2]
    outputs[4], outputs[5], outputs[6] = x2, z2, energy(q, params)
    _pose(poses, 0, 0.5 * x1, 0.5 * z1, a)
    _pose(poses, 7, 0.5 * (x1 + x2), 0.5 * (z1 + z2), b)


@step_function
def step(self, n, params, inputs, outputs, poses):
    """One Runge-Kutta step of `dt`."""
    p = _view(self)
    _runge_kutta(p, params, inputs[0], inputs[1])
    for i in range(4):
        if not math.isfinite(p.state[i]):
            return NOT_FINITE
    _show(p.state, params, outputs, poses)
    return OK


@step_function
def reset(self, n, params, inputs, outputs, poses):
    """Back to the initial angles and speeds."""
    p = _view(self)
    p.state[:] = p.start
    _show(p.state, params, outputs, poses)
    return OK


def create(dt: float, *, angle1: float = 0.8, angle2: float = 1.2, speed1: float = 0.0, speed2: float = 0.0) -> Plant:
    """A double pendulum for steps of `dt` seconds, let go at the absolute angles `angle1`, `angle2` [rad]."""
    start = np.array([angle1, angle2, speed1, speed2], float)
    record = Struct(Pendulum(start, start.copy(), np.zeros((4, 4)), np.zeros(4), dt))
    return Plant(
        "double_pendulum",
        dt,
        INPUTS,
        OUTPUTS,
        (Task("pendulum", step.address, record.address),),
        PARAMETERS,
        BODIES,
        (reset.address, record.address),
        scene=SCENE,
        owner=record,
    )
