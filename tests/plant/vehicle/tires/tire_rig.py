"""A bench for tires: free bodies on ground given by heights, stepped by the plainest integrator there is."""

from __future__ import annotations

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.collision.narrowphase.field import build_fields, view_fields
from plant.numeric.algebra import cross, rotate, turn
from plant.soil.ground import Ground
from plant.vehicle.tires.model import Wheel, build_tires, view_tires
from plant.vehicle.tires.step import tire_wrenches

G = 9.80665
_ground = viewer(Ground)


@kernel
def _apply(tires, ground, fields, pos, quat, vel, h, wrench):
    tire_wrenches(view_tires(tires), _ground(ground), view_fields(fields), pos, quat, vel, h, wrench)


@kernel
def _run(tires, ground, fields, pos, quat, vel, wrench, extra, mass, inertia, gravity, h, steps, free, log):
    """Symplectic Euler. `extra` [b, 6] acts all the time; `free` [b, 6] 0 holds a component of the velocity."""
    t, g, f = view_tires(tires), _ground(ground), view_fields(fields)
    for n in range(steps):
        wrench[:] = extra
        tire_wrenches(t, g, f, pos, quat, vel, h, wrench)
        for b in range(pos.shape[0]):
            for i in range(3):
                vel[b, i] += free[b, i] * h * (wrench[b, i] / mass[b] + gravity[i])
            q = quat[b]
            w, x, y, z = q[0], q[1], q[2], q[3]
            tx, ty, tz = rotate((w, -x, -y, -z), wrench[b, 3], wrench[b, 4], wrench[b, 5])
            ox, oy, oz = rotate((w, -x, -y, -z), vel[b, 3], vel[b, 4], vel[b, 5])
            m = inertia[b]
            gx, gy, gz = cross(ox, oy, oz, m[0] * ox, m[1] * oy, m[2] * oz)
            ox, oy, oz = rotate(q, (tx - gx) / m[0], (ty - gy) / m[1], (tz - gz) / m[2])
            vel[b, 3] += free[b, 3] * h * ox
            vel[b, 4] += free[b, 4] * h * oy
            vel[b, 5] += free[b, 5] * h * oz
            for i in range(3):
                pos[b, i] += h * vel[b, i]
            turn(q, h * vel[b, 3], h * vel[b, 4], h * vel[b, 5])
        if n < log.shape[0]:
            log[n, :3] = pos[0]
            log[n, 3:9] = vel[0]
            log[n, 9:15] = wrench[0]


def flat(size: float = 200.0, height: float = 0.0) -> tuple[np.ndarray, float, tuple[float, float, float]]:
    return np.zeros((5, 5)), size / 4, (0.0, 0.0, height)


def slope(degrees: float, size: float = 80.0, about: str = "y") -> tuple[np.ndarray, float, tuple[float, float, float]]:
    """Rises along x, or along y."""
    line = np.linspace(-size / 2, size / 2, 81) * np.tan(np.radians(degrees))
    heights = np.tile(line[:, None], (1, 81)) if about == "y" else np.tile(line[None, :], (81, 1))
    return heights, size / 80, (0.0, 0.0, 0.0)


class Rig:
    """Bodies with wheels on patches (heights, spacing, middle)."""

    def __init__(self, wheels, bodies=1, patches=None, mass=5000.0, inertia=(200.0, 200.0, 200.0), h=1e-3) -> None:
        patches = [flat()] if patches is None else patches
        self.h, self.gravity = h, np.array([0.0, 0.0, -G])
        self.pos, self.vel = np.zeros((bodies, 3)), np.zeros((bodies, 6))
        self.quat = np.tile([1.0, 0.0, 0.0, 0.0], (bodies, 1))
        self.wrench, self.extra, self.free = np.zeros((bodies, 6)), np.zeros((bodies, 6)), np.ones((bodies, 6))
        self.mass = np.broadcast_to(np.array(mass, float), (bodies,)).copy()
        self.inertia = np.broadcast_to(np.array(inertia, float), (bodies, 3)).copy()
        self.tires = build_tires(wheels)
        self.fields = build_fields([(heights, step, step) for heights, step, _ in patches])
        n = len(patches)
        self.ground = Ground(
            shape=np.arange(n),
            field=np.arange(n),
            on=np.ones(n, np.int64),
            at=np.array([at for _, _, at in patches], float),
            stamp=np.zeros((n, 64), np.int64),
        )
        self._records = Struct(self.tires), Struct(self.ground), Struct(self.fields)
        self.addresses = [r.address for r in self._records]

    def look(self) -> np.ndarray:
        """Forces of now on all bodies; the treads have moved on by a step."""
        self.wrench[:] = 0.0
        _apply(*self.addresses, self.pos, self.quat, self.vel, self.h, self.wrench)
        return self.wrench

    def run(self, seconds: float, log: bool = False) -> np.ndarray:
        """Step on. The log has a row each step: position, velocity and tire wrench of body 0."""
        steps = round(seconds / self.h)
        rows = np.zeros((steps if log else 0, 15))
        _run(
            *self.addresses, self.pos, self.quat, self.vel, self.wrench, self.extra, self.mass, self.inertia,
            self.gravity, self.h, steps, self.free, rows,
        )  # fmt: skip
        return rows


def turned(axis, degrees):
    """Quaternion of a turn."""
    a = np.array(axis, float) / np.linalg.norm(axis)
    half = np.radians(degrees) / 2
    return np.concatenate([[np.cos(half)], np.sin(half) * a])


def machine(tire, mass=20000.0, patches=None, **options) -> Rig:
    """A body with four wheels that cannot turn: a machine with its brakes on, 1.2 m high in the middle."""
    corners = [(x, y, -0.7) for x in (-1.3, 1.3) for y in (-1.0, 1.0)]
    wheels = [Wheel(0, tire, centre=c) for c in corners]
    return Rig(wheels, patches=patches, mass=mass, inertia=(2e4, 4e4, 4e4), **options)
