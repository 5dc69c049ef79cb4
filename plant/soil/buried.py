"""Buried pipes and cables: capsules that the bucket must not strike.

A pipe is struck when its axis comes within its radius of the hull. The first touch is kept: that it happened, at what
speed, where. While it is touched the pipe resists with F = -strength v / (|v| + 0.02 m/s) at that place.

The distance is taken against the hull's planes moved outwards by the radius, with the sharp corner before the lip cut
off at the same distance; at other edges it is too far by at most 0.41 of the radius where they are right-angled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilnode.core.jit import kernel
from plant.soil.edge import speed_at
from plant.soil.kind import SoilError, check
from plant.soil.model import O_PIPE, STRIKES, Pipes
from plant.soil.push import push_at

SLOW = 0.02  # [m/s] at which half of the strength is there


@dataclass(frozen=True)
class Pipe:
    """A straight piece of pipe between two points of the world [m], with the force that it takes to move it [N]."""

    begin: Sequence[float]
    end: Sequence[float]
    radius: float
    strength: float = 5e4

    def __post_init__(self) -> None:
        check("Pipe: radius", self.radius, 1e-3, 10.0, "m")
        check("Pipe: strength", self.strength, 0.0, 1e9, "N")
        for name in ("begin", "end"):
            point = np.asarray(getattr(self, name), np.float64)
            if point.shape != (3,) or not np.isfinite(point).all():
                raise SoilError(f"Pipe: {name} {getattr(self, name)!r} must be three finite numbers [m]")


def new_pipes(pipes: Sequence[Pipe]) -> Pipes:
    """As hot code takes them."""
    n = len(pipes)
    return Pipes(
        a=np.array([p.begin for p in pipes], np.float64).reshape(n, 3),
        b=np.array([p.end for p in pipes], np.float64).reshape(n, 3),
        radius=np.array([p.radius for p in pipes], np.float64),
        strength=np.array([p.strength for p in pipes], np.float64),
        struck=np.zeros(n, np.int64),
        speed=np.zeros(n),
        place=np.zeros((n, 3)),
    )


@kernel
def _reach(soil, pos, rot, k):
    """Whether pipe `k` is touched, and the middle of its touched part, as a share of its length."""
    pipe, tool = soil.pipe, soil.tool
    low, high = 0.0, 1.0
    a, b, r = pipe.a[k], pipe.b[k], pipe.radius[k]
    ax, ay, az = a[0] - pos[0], a[1] - pos[1], a[2] - pos[2]
    bx, by, bz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    for q in range(tool.plane.shape[0] + 1):
        if q < tool.plane.shape[0]:
            n0, n1, n2, far = tool.plane[q, 0], tool.plane[q, 1], tool.plane[q, 2], tool.plane[q, 3]
        else:  # the corner before the lip, half way between the cutting plate and the mouth
            n0, n1, n2 = tool.edge[0] - tool.axis[1, 0], tool.edge[1] - tool.axis[1, 1], tool.edge[2] - tool.axis[1, 2]
            size = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
            n0, n1, n2 = n0 / size, n1 / size, n2 / size
            far = n0 * tool.lip[0, 0] + n1 * tool.lip[0, 1] + n2 * tool.lip[0, 2]
        x = rot[0, 0] * n0 + rot[0, 1] * n1 + rot[0, 2] * n2
        y = rot[1, 0] * n0 + rot[1, 1] * n1 + rot[1, 2] * n2
        z = rot[2, 0] * n0 + rot[2, 1] * n1 + rot[2, 2] * n2
        over, slope = x * ax + y * ay + z * az - far - r, x * bx + y * by + z * bz
        if slope == 0.0:
            if over > 0.0:
                return False, 0.0
        elif slope > 0.0:
            high = min(high, -over / slope)
        else:
            low = max(low, -over / slope)
        if low > high:
            return False, 0.0
    return True, 0.5 * (low + high)


@kernel
def strike(soil, pos, rot, vel, wrench):
    """Notice the pipes that the bucket touches, and let them resist."""
    pipe, s = soil.pipe, soil.state
    for k in range(pipe.radius.size):
        touched, u = _reach(soil, pos, rot, k)
        if not touched:
            continue
        a, b = pipe.a[k], pipe.b[k]
        x, y, z = a[0] + u * (b[0] - a[0]), a[1] + u * (b[1] - a[1]), a[2] + u * (b[2] - a[2])
        vx, vy, vz = speed_at(vel, x - pos[0], y - pos[1], z - pos[2])
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        if pipe.struck[k] == 0:
            pipe.struck[k] = 1
            pipe.speed[k] = speed
            pipe.place[k, 0], pipe.place[k, 1], pipe.place[k, 2] = x, y, z
            s.counter[STRIKES] += 1
            s.out[O_PIPE] = speed
        c = -pipe.strength[k] / (speed + SLOW)
        push_at(wrench, pos, (x, y, z), c * vx, c * vy, c * vz)
