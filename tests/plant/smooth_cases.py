"""What the tests of force laws share: tables of one law, and a mass on a line under the tangential law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from plant.contact_law.bristle import contact_law
from plant.contact_law.material import force_law, smooth_table
from plant.contact_law.model import Law, Smooth, new_response
from plant.contact_law.normal_force import normal

STIFFNESS = {
    Law.HUNT_CROSSLEY: 1e6,
    Law.LANKARANI_NIKRAVESH: 1e6,
    Law.KELVIN_VOIGT: 1e5,
    Law.SMC: 1e6,
    Law.WANG: 1e5,
}
FORCE_LAWS = list(STIFFNESS)  # of points


def table(law: Law, **given: float) -> Smooth:
    """The arrays of one pair of materials."""
    return smooth_table([force_law(law.name.lower(), {"stiffness": STIFFNESS[law], **given})])


def rebound(force: Callable[[float, float], float], mass: float, speed: float) -> float:
    """Restitution of a mass that meets a force(depth, rate), by integration with small steps."""

    def motion(_: float, y: NDArray[np.float64]) -> list[float]:
        return [y[1], -force(y[0], y[1]) / mass]

    def parted(_: float, y: NDArray[np.float64]) -> float:
        return float(y[0])

    parted.terminal, parted.direction = True, -1  # type: ignore[attr-defined]
    start = [1e-12, speed]
    run = solve_ivp(motion, (0.0, 10.0), start, events=parted, rtol=1e-9, atol=1e-14, max_step=1e-3)
    assert len(run.t_events[0]) == 1
    return float(-run.y[1, -1] / speed)


def law_rebound(p: Smooth, mass: float, speed: float) -> float:
    """The same under a law of ours."""
    return rebound(lambda depth, rate: normal(p, 0, depth, rate, speed, mass)[0], mass, speed)


def ride(
    p: Smooth,
    depth: float,
    h: float,
    steps: int,
    start: tuple[float, float],
    spring: Callable[[float], float],
    belt: float = 0.0,
) -> NDArray[np.float64]:
    """Positions and speeds of a mass of 1 kg on a spring to the origin, that rubs on a belt: trapezoidal rule, with
    Newton's method on the law's own derivatives."""
    out, zero = new_response(), 0.0
    x, v = start
    stretch = 0.0
    seen = [(x, v)]

    def rub(s: float, u: float) -> tuple[float, float, float]:
        contact_law(p, 0, 0.0, 0.0, 1.0, depth, zero, 1.0, s, zero, zero, s, zero, zero, u, zero, zero, 1.0, h, out)
        return out.force[0], out.stiffness[0, 0], out.damping[0, 0]

    pull = -spring(0.0) * x + rub(stretch, v - belt)[0]
    for i in range(steps):
        k = spring((i + 1) * h)
        w = v
        for _ in range(30):
            s = stretch + 0.5 * h * ((v - belt) + (w - belt))
            y = x + 0.5 * h * (v + w)
            f, stiffness, damping = rub(s, w - belt)
            off = w - v - 0.5 * h * (pull - k * y + f)
            if abs(off) < 1e-14:
                break
            w -= off / (1.0 + 0.5 * h * (0.5 * h * (k + stiffness) + damping))
        x, v, pull = y, w, -k * y + f
        stretch = out.stretch[0]
        seen.append((x, v))
    return np.array(seen)
