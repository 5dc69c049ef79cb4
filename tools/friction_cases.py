"""Two published cases of dry friction on the core in natural coordinates, beside their exact solutions, as figures.

    python tools/friction_cases.py [FOLDER]

A block on a spring that slides until it sticks, and is torn loose again when the spring stiffens (Luaces 3.3.1); a
block on a spring that a belt carries along until it slips back, over and over (Bowden and Leben; Luaces 3.3.2).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from plant.collide.shapes import Box, Sphere
from plant.compile import Engine, compile_world
from plant.model import Status
from plant.natural.builder import Options
from plant.world import World

Vector = NDArray[np.float64]
REST = 1.5  # [m] natural length of the spring


@dataclass(frozen=True)
class Block:
    """A block of 1 kg that touches the ground in two points, one at each end, on a spring along x."""

    friction: float
    stiction: float
    spring: float  # [N/m]
    gravity: float
    viscous: float = 0.0  # [N s/m] in all
    start: float = REST
    belt: float | None = None  # [m/s]
    stick_speed: float | None = None
    bristle_stiffness: float | None = None
    bristle_damping: float | None = None
    strain: float = 1.0

    def engine(self, dt: float) -> Engine:
        w = World(gravity=(0, 0, -self.gravity))
        w.body("block", mass=1.0, inertia=(0.02, 0.02, 0.02), pos=(self.start, 0, 0.1))
        for x in (-0.2, 0.2):
            w.shape("block", Sphere(0.1), at=(x, 0, 0), material="block")
        w.planar("plane", None, "block", at=(self.start, 0, 0.1), axis=(0, 1, 0))
        w.spring("spring", None, "block", at_a=(0, 0, 0.1), at_b=(self.start, 0, 0.1), rest=REST, stiffness=self.spring)
        if self.belt is None:
            w.plane(material="ground")
        else:
            w.body("belt", mass=1.0, inertia=(1, 1, 1), pos=(0, 0, -0.5), vel=(self.belt, 0, 0), kind="kinematic")
            w.shape("belt", Box(60.0, 1.0, 1.0), material="ground")
        w.material(
            "block",
            "ground",
            law="hunt_crossley",
            stiffness=1e6,
            exponent=1.5,
            restitution=0.5,
            friction=self.friction,
            stiction=self.stiction,
            viscous=self.viscous / 2,
            stick_speed=self.stick_speed,
            bristle_stiffness=self.bristle_stiffness,
            bristle_damping=self.bristle_damping,
            strain=self.strain,
        )
        return compile_world(w, dt, stepper="ali3p", natural=Options(iterations=6))


START = 0.9  # [m] of the sliding block beyond the spring's natural length


def sliding_block(strain: float = 1.0, start: float = START) -> Block:
    """Luaces 3.3.1. The text has a `strain` (eta) of 1 and leaves the start open.

    How far its bristles are from Coulomb's friction depends on the start, because each turning point costs them a
    millimetre: 1.1 mm at most from 0.5 m (one half swing, then it sticks), 1.8 mm from 0.9 m (two half swings, until
    6.3 s), 2.4 mm from 1.3 m and 3.9 mm from 1.0 m (three, until 9.4 s; from 1.0 m it comes to rest where the spring
    pulls nearly as hard as friction holds). From all of them it is torn loose at 10 s.
    """
    n, mass, h, mu, g = 5, 1.0, 0.01, 0.02, 9.81
    stiffness = mass / (n * h) ** 2
    return Block(
        friction=mu,
        stiction=mu,
        spring=1.0,
        gravity=g,
        start=REST + start,
        stick_speed=n * mu * g * h,
        bristle_stiffness=stiffness,
        bristle_damping=2 * np.sqrt(stiffness * mass),
        strain=strain,
    )


def run_sliding_block(strain: float = 1.0, start: float = START) -> tuple[Vector, Vector, Vector]:
    """Time, position and speed at every step of 10 ms, for 13 s; the spring is ten times stiffer from 10 s on."""
    engine = sliding_block(strain, start).engine(0.01)
    rows = []
    for k in range(1300):
        if k == 1000:
            engine.content.model.spring.stiffness[0] = 10.0
            engine.content.data.status[Status.PLACED] = 0  # a jump: accelerations are found anew
        if engine.step() != 0:
            raise RuntimeError("the block was lost")
        rows.append(((k + 1) * 0.01, engine.position("block")[0], engine.content.data.state.vel[0, 0]))
    t, x, v = np.array(rows).T
    return t, x, v


def exact_sliding_block(times: Vector, start: float = START) -> Vector:
    """Half swings about REST +- friction / stiffness; it sticks where the spring is weaker than friction."""
    block = sliding_block(start=start)
    slip, out = block.friction * block.gravity, np.zeros_like(times)
    x, began, k = block.start - REST, 0.0, 1.0
    halves: list[tuple[float, float, float, float]] = []  # begin, end, start, centre
    switch = 10.0
    while began < times[-1]:
        k = 1.0 if began < switch else 10.0
        if k * abs(x) <= slip:
            end = switch if began < switch else float(times[-1]) + 1.0
            halves.append((began, end, x, x))
        else:
            centre = np.sign(x) * slip / k
            end = began + np.pi / np.sqrt(k)
            halves.append((began, end, x, centre))
            x = 2 * centre - x
        began = end
    for begin, end, top, centre in halves:
        here = (times > begin) & (times <= end)
        w = np.sqrt(1.0 if begin < switch else 10.0)
        out[here] = centre + (top - centre) * np.cos(w * (times[here] - begin))
    return REST + out


def belt_block() -> Block:
    """Bowden and Leben's apparatus with the numbers of Luaces 3.3.2."""
    return Block(
        friction=0.1,
        stiction=0.15,
        spring=2.0,
        gravity=10.0,
        viscous=0.1,
        belt=0.05,
        stick_speed=0.001,
        bristle_stiffness=1e5,
        bristle_damping=np.sqrt(1e5),
    )


def run_belt_block(seconds: float = 120.0) -> tuple[Vector, Vector, Vector]:
    """Time, stretch of the spring and speed, at every step of 1 ms."""
    engine = belt_block().engine(0.001)
    steps = round(seconds * 1000)
    rows = np.zeros((steps, 3))
    block = engine.index("block")
    for k in range(steps):
        if engine.step() != 0:
            raise RuntimeError("the block was lost")
        rows[k] = (k + 1) * 0.001, engine.position("block")[0] - REST, engine.content.data.state.vel[block, 0]
    return rows[:, 0], rows[:, 1], rows[:, 2]


@dataclass(frozen=True)
class Cycle:
    """The limit cycle: its period, and the largest and least stretch of the spring."""

    period: float
    high: float
    low: float


def exact_cycle() -> Cycle:
    """Sticks until the spring pulls with stiction, then slides until it is as fast as the belt."""
    b = belt_block()
    assert b.belt is not None
    belt, slips_at = b.belt, b.stiction * b.gravity / b.spring

    def slope(_: float, y: Vector) -> list[float]:
        return [y[1], -b.spring * y[0] + b.friction * b.gravity + b.viscous * (belt - y[1])]

    def caught(_: float, y: Vector) -> float:
        return float(y[1] - belt)

    caught.terminal = True  # type: ignore[attr-defined]
    caught.direction = 1.0  # type: ignore[attr-defined]
    run = solve_ivp(slope, (0, 60), [slips_at, belt - 1e-9], events=caught, rtol=1e-11, atol=1e-12, dense_output=True)
    slid = float(run.t_events[0][0])
    x = run.sol(np.linspace(0, slid, 100_000))[0]
    sticks_at = float(run.y_events[0][0][0])
    return Cycle(slid + (slips_at - sticks_at) / belt, float(x.max()), float(x.min()))


def seen_cycle(t: Vector, x: Vector) -> Cycle:
    """The same from a run, without its first two cycles."""
    tops = [k for k in range(1, len(x) - 1) if x[k - 1] < x[k] >= x[k + 1] and x[k] > 0.6]
    tops = [a for a, b in zip(tops, [*tops[1:], len(x) + 2000], strict=True) if b - a > 1000]
    lows = [tops[i] + int(np.argmin(x[tops[i] : tops[i + 1]])) for i in range(len(tops) - 1)]
    periods = np.diff(t[tops])[1:]
    return Cycle(float(periods.mean()), float(x[tops][2:].mean()), float(x[lows][1:].mean()))


def draw(folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t, x, v = run_sliding_block()
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5))
    above.plot(t, exact_sliding_block(t), "k--", lw=1, label="exact")
    above.plot(t, x, lw=1, label="hilnode, h = 10 ms")
    above.set_ylabel("position [m]")
    above.legend()
    below.plot(t, v, lw=1)
    below.set_ylabel("speed [m/s]")
    below.set_xlabel("time [s]")
    print(f"sliding block: {1e3 * np.abs(x - exact_sliding_block(t)).max():.2f} mm from Coulomb's at most")
    figure.suptitle("A block on a spring with Coulomb friction")
    figure.savefig(folder / "sliding_block.png", dpi=110)
    t, x, v = run_belt_block()
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5))
    above.plot(t, x + REST, lw=1)
    above.set_ylabel("position [m]")
    below.plot(t, v, lw=1)
    below.set_ylabel("speed [m/s]")
    below.set_xlabel("time [s]")
    figure.suptitle("Stick and slip on a belt, h = 1 ms")
    figure.savefig(folder / "stick_slip.png", dpi=110)
    seen, exact = seen_cycle(t, x), exact_cycle()
    for name in ("period", "high", "low"):
        a, b = getattr(seen, name), getattr(exact, name)
        print(f"{name:10} {a:.5f}, exactly {b:.5f}: {100 * (a / b - 1):+.3f} %")


if __name__ == "__main__":
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    draw(out)
