"""Two published cases of dry friction on the core in natural coordinates, beside their exact solutions, as figures.

    python tools/friction_cases.py [FOLDER]

A block on a spring that slides until it sticks, and is torn loose again when the spring stiffens (Luaces 3.3.1); a
block on a spring that a belt carries along until it slips back, over and over (Bowden and Leben; Luaces 3.3.2).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from plant.collision.shape.shapes import Box, Sphere
from plant.engine.compile import Engine, compile_world
from plant.model import Status
from plant.natural.builder import Options
from plant.world.world import World

Vector = NDArray[np.float64]
REST = 1.5  # [m] natural length of the spring
HERTZ = 1e6  # [N/m^1.5] of a foot
FEET = 2
START = 0.9  # [m] of the sliding block beyond the spring's natural length
SWITCH, STIFFER = 10.0, 10.0  # [s] from when on the sliding block's spring is so many times as stiff


@dataclass(frozen=True)
class Block:
    """A block of 1 kg that rests on the ground on two feet, one at each end, on a spring along x.

    Bristles and viscous friction are given for the block as a whole: each foot has its share.
    """

    friction: float
    stiction: float
    spring: float  # [N/m]
    gravity: float
    viscous: float = 0.0  # [N s/m]
    start: float = REST
    belt: float | None = None  # [m/s]
    stick_speed: float | None = None
    bristle_stiffness: float | None = None
    bristle_damping: float | None = None
    strain: float | None = None

    def engine(self, dt: float) -> Engine:
        w = World(gravity=(0, 0, -self.gravity))
        depth = (self.gravity / FEET / HERTZ) ** (2 / 3)  # with its weight on its feet
        w.body("block", mass=1.0, inertia=(0.02, 0.02, 0.02), pos=(self.start, 0, 0.1 - depth))
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
            stiffness=HERTZ,
            exponent=1.5,
            restitution=0.5,
            friction=self.friction,
            stiction=self.stiction,
            viscous=self.viscous / FEET,
            stick_speed=self.stick_speed,
            bristle_stiffness=None if self.bristle_stiffness is None else self.bristle_stiffness / FEET,
            bristle_damping=None if self.bristle_damping is None else self.bristle_damping / FEET,
            strain=self.strain,
        )
        return compile_world(w, dt, stepper="ali3p", natural=Options(iterations=6))


@dataclass(frozen=True)
class Run:
    """What was seen at the end of every step."""

    time: Vector
    x: Vector  # [m]
    speed: Vector  # [m/s]
    friction: Vector  # [N] on the block, along x


def _friction(engine: Engine, block: int) -> float:
    """Force along x of all contacts on the block [N]."""
    assert engine.core is not None
    contact, push = engine.content.data.contact, engine.core.content.contact.push
    return float(sum(push[c, 0] * (1 if contact.body[c, 0] == block else -1) for c in range(int(contact.count[0]))))


def _ride(engine: Engine, steps: int, dt: float, switch: int = -1) -> Run:
    """So many steps; from step `switch` on the spring is STIFFER times as stiff."""
    block, rows = engine.index("block"), np.zeros((steps, 4))
    for k in range(steps):
        if k == switch:
            engine.content.model.spring.stiffness[0] *= STIFFER
            engine.content.data.status[Status.POSES_VALID] = 0  # a jump: accelerations are found anew
        if engine.step() != 0:
            raise RuntimeError("the block was lost")
        speed = engine.content.data.state.vel[block, 0]
        rows[k] = (k + 1) * dt, engine.position("block")[0], speed, _friction(engine, block)
    return Run(*rows.T.copy())


def sliding_block(strain: float | None = None, start: float = START) -> Block:
    """Luaces 3.3.1: its bristles, m / (N h)^2 and the rest of it, are those that contacts have if nothing is said.

    The text has a `strain` (eta) of 1 and leaves the start open.
    """
    return Block(friction=0.02, stiction=0.02, spring=1.0, gravity=9.81, start=REST + start, strain=strain)


def run_sliding_block(strain: float | None = None, start: float = START) -> Run:
    """Every step of 10 ms, for 13 s; the spring is ten times stiffer from 10 s on."""
    return _ride(sliding_block(strain, start).engine(0.01), 1300, 0.01, round(SWITCH / 0.01))


@dataclass(frozen=True)
class Swing:
    """A part of the exact motion: about a centre, or at rest there."""

    begin: float
    end: float
    x: float
    speed: float
    centre: float
    omega: float
    rests: bool


def swings(start: float, until: float) -> list[Swing]:
    """Coulomb's friction: half swings about friction over stiffness, rest where the spring is weaker than friction."""
    block, out = sliding_block(start=start), []
    slip, now, x, v = block.friction * block.gravity, 0.0, start, 0.0
    while now < until:
        before = now < SWITCH - 1e-12
        k, last = (block.spring, SWITCH) if before else (block.spring * STIFFER, math.inf)
        w = math.sqrt(k)
        if v == 0.0 and k * abs(x) <= slip:
            out.append(Swing(now, last, x, 0.0, x, w, True))
            now = last
            continue
        centre = math.copysign(slip / k, -v if v != 0.0 else x)
        turns = math.atan2(v / w, x - centre) / w
        turns += math.pi / w if turns <= 1e-12 else 0.0
        out.append(Swing(now, min(now + turns, last), x, v, centre, w, False))
        phase = w * (out[-1].end - now)
        x, v = (
            centre + (x - centre) * math.cos(phase) + v / w * math.sin(phase),
            v * math.cos(phase) - (x - centre) * w * math.sin(phase) if now + turns > last else 0.0,
        )
        now = out[-1].end
    return out


def exact_sliding_block(times: Vector, start: float = START) -> Vector:
    """Where the block is under Coulomb's friction."""
    out = np.zeros_like(times)
    for s in swings(start, float(times[-1])):
        here = (times > s.begin) & (times <= s.end)
        phase = s.omega * (times[here] - s.begin)
        out[here] = s.centre + (s.x - s.centre) * np.cos(phase) + s.speed / s.omega * np.sin(phase)
    return REST + out


def seen_stop(run: Run) -> float:
    """When the block came to rest before the spring was changed: where its speed was zero after it last slid."""
    slow = 5 * 0.02 * 9.81 * 0.01  # the bristles' stick speed
    before = run.time < SWITCH
    last = int(np.flatnonzero(before & (np.abs(run.speed) > slow))[-1])
    turned = int(np.flatnonzero(np.sign(run.speed[last:]) != np.sign(run.speed[last]))[0])
    return float(run.time[last + turned])


def seen_break(run: Run) -> float:
    """When the stiffer spring has torn it loose: it moves faster than 2 mm/s."""
    return float(run.time[np.flatnonzero((run.time > SWITCH) & (np.abs(run.speed) > 2e-3))[0]])


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


def run_belt_block(seconds: float = 120.0) -> Run:
    """Every step of 1 ms; x is the stretch of the spring."""
    run = _ride(belt_block().engine(0.001), round(seconds * 1000), 0.001)
    return Run(run.time, run.x - REST, run.speed, run.friction)


@dataclass(frozen=True)
class Cycle:
    """The limit cycle: its period, and the largest and least stretch of the spring."""

    period: float
    high: float
    low: float

    @property
    def amplitude(self) -> float:
        return self.high - self.low


def exact_slip(gradual: bool = True) -> tuple[Vector, Vector]:
    """Time and stretch while the block slips, from when the spring pulls with stiction until it is as fast as the belt.

    `gradual`: friction falls from stiction as exp(-(v / v_s)^2) of the slip (Luaces eq. 3.6 - 3.10); else at once.
    """
    b = belt_block()
    assert b.belt is not None
    assert b.stick_speed is not None
    belt, slow, slips_at = b.belt, b.stick_speed, b.stiction * b.gravity / b.spring

    def slope(_: float, y: Vector) -> list[float]:
        share = math.exp(-min(((belt - y[1]) / slow) ** 2, 700.0)) if gradual else 0.0
        friction = (b.friction + (b.stiction - b.friction) * share) * b.gravity
        return [y[1], -b.spring * y[0] + friction + b.viscous * (belt - y[1])]

    def caught(_: float, y: Vector) -> float:
        return float(y[1] - belt)

    caught.terminal = True  # type: ignore[attr-defined]
    caught.direction = 1.0  # type: ignore[attr-defined]
    start = [slips_at, belt - 1e-9]
    run = solve_ivp(slope, (0, 60), start, events=caught, rtol=1e-10, atol=1e-12, dense_output=True, max_step=0.01)
    times = np.linspace(0, float(run.t_events[0][0]), 20_000)
    return times, run.sol(times)[0]


def exact_cycle(gradual: bool = True) -> Cycle:
    """Sticks until the spring pulls with stiction, then slips; see `exact_slip`."""
    times, x = exact_slip(gradual)
    belt = belt_block().belt
    assert belt is not None
    return Cycle(float(times[-1] + (x[0] - x[-1]) / belt), float(x.max()), float(x.min()))


def exact_belt_block(times: Vector) -> Vector:
    """The stretch of the spring from the start on: carried along, then cycle after cycle."""
    slip, x = exact_slip()
    belt = belt_block().belt
    assert belt is not None
    first, cycle = x[0] / belt, exact_cycle().period
    within = np.where(times < first, -1.0, np.mod(times - first, cycle))
    slides = np.interp(within, slip, x)
    sticks = x[-1] + belt * (within - slip[-1])
    return np.where(within < 0, belt * times, np.where(within < slip[-1], slides, sticks))


def seen_cycle(run: Run) -> Cycle:
    """The same from a run, without its first two cycles."""
    t, x = run.time, run.x
    tops = [k for k in range(1, len(x) - 1) if x[k - 1] < x[k] >= x[k + 1] and x[k] > 0.6]
    tops = [a for a, b in zip(tops, [*tops[1:], len(x) + 2000], strict=True) if b - a > 1000]
    lows = [tops[i] + int(np.argmin(x[tops[i] : tops[i + 1]])) for i in range(len(tops) - 1)]
    periods = np.diff(t[tops])[1:]
    return Cycle(float(periods.mean()), float(x[tops][2:].mean()), float(x[lows][1:].mean()))


def draw(folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def figure(run: Run, exact: Vector, title: str, file: str, shift: float = 0.0) -> None:
        made, (place, speed, force) = plt.subplots(3, 1, sharex=True, figsize=(8, 7))
        place.plot(run.time, run.x + shift, lw=1, label="hilnode")
        place.plot(run.time, exact + shift, "k--", lw=1, label="exact")
        place.set_ylabel("position [m]")
        place.legend()
        speed.plot(run.time, run.speed, lw=1)
        speed.set_ylabel("speed [m/s]")
        force.plot(run.time, run.friction, lw=1)
        force.set_ylabel("friction [N]")
        force.set_xlabel("time [s]")
        made.suptitle(title)
        made.savefig(folder / file, dpi=110)

    run = run_sliding_block()
    exact = exact_sliding_block(run.time)
    figure(run, exact, "A block on a spring with Coulomb friction, h = 10 ms", "sliding_block.png")
    rests = next(s.begin for s in swings(START, 13.0) if s.rests)
    print(f"sliding block from {START} m: {1e3 * np.abs(run.x - exact).max():.2f} mm from Coulomb's at most (bound 2)")
    print(
        f"it stops at {seen_stop(run):.2f} s, exactly {rests:.2f}; torn loose at {seen_break(run):.2f} s, exactly 10.00"
    )
    run = run_belt_block()
    figure(run, exact_belt_block(run.time), "Stick and slip on a belt, h = 1 ms", "stick_slip.png", REST)
    seen = seen_cycle(run)
    for gradual, how in ((True, "friction falls by eq. 3.10"), (False, "friction falls at once")):
        exactly = exact_cycle(gradual)
        for name in ("period", "high", "low", "amplitude"):
            a, b = getattr(seen, name), getattr(exactly, name)
            print(f"{name:10} {a:.5f}, exactly {b:.5f}: {100 * (a / b - 1):+.3f} % ({how})")


if __name__ == "__main__":
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    draw(out)
