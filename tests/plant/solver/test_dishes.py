"""The dishes problem: a stack of dishes on a floor that moves. Every dish sticks to what is below it, slides on it or
leaves it, so a stack of n has three to the n states, of which one is right at every instant.

The reference is the naive method that the text warns of: all states are tried, and the one that fulfils its own
conditions is kept. For plates that do not tip it is exact, and there is one and only one. The text names no numbers;
assumed here: flat round dishes (cylinders, broad enough not to tip), a floor that moves level and plumb, no rolling.

Ref: Luaces, thesis, 4.1 and figure 4.1, after Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 1996.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import G, advance, centre, compiled, spin, velocity

from plant.collision.shape.shapes import Box, Cylinder
from plant.engine.compile import Engine
from plant.world.world import World

Vector = NDArray[np.float64]
MASSES = (0.5, 0.2, 0.4, 0.3)  # [kg] from the floor up
RADIUS, THICK = 0.3, 0.02
FLAT = np.pi * RADIUS**2 * THICK
DT = 1e-3


def right_state(
    masses: tuple[float, ...], friction: tuple[float, ...], floor: Vector, slip: Vector, apart: Vector
) -> tuple[tuple[str, ...], Vector]:
    """All states of a stack tried: the accelerations [n, 2] (level, plumb) of the one that fulfils its conditions.

    `floor` is the acceleration of the floor, `slip` the speed of every dish against what is below it, and `apart`
    says which have left it already.

        stick   both accelerations as below, push >= 0, |rub| <= mu push
        slide   plumb as below, push >= 0, rub = -mu push against the slip, or against the slip that begins
        leave   no force, plumb acceleration at least that of what is below
    """
    n = len(masses)
    found = {}
    for state in product(("stick", "slide +", "slide -", "leave"), repeat=n):
        if any(
            (s == "leave") != a
            if a
            else (s == "stick" and abs(v) > 0) or (s == "slide +" and v < 0) or (s == "slide -" and v > 0)
            for s, a, v in zip(state, apart, slip, strict=True)
        ):
            continue
        # unknowns: ax, az, rub, push of every dish; rub and push act on the dish from below
        matrix, right = np.zeros((4 * n, 4 * n)), np.zeros(4 * n)
        for k, s in enumerate(state):
            ax, az, rub, push = range(4 * k, 4 * k + 4)
            for axis, force, weight in ((ax, rub, 0.0), (az, push, -masses[k] * G)):
                row = axis
                matrix[row, axis], matrix[row, force], right[row] = masses[k], -1.0, weight
                if k + 1 < n:
                    matrix[row, force + 4] = 1.0
            for row, axis in ((rub, ax), (push, az)):  # as below
                matrix[row, axis] = 1.0
                if k > 0:
                    matrix[row, axis - 4] = -1.0
                else:
                    right[row] = floor[axis]
            if s == "leave":
                matrix[[rub, push]], right[[rub, push]] = 0.0, 0.0
                matrix[rub, rub] = matrix[push, push] = 1.0
            elif s != "stick":
                matrix[rub], right[rub] = 0.0, 0.0
                matrix[rub, rub], matrix[rub, push] = 1.0, friction[k] * (1 if s == "slide +" else -1)
        x = np.linalg.solve(matrix, right).reshape(n, 4)
        below = np.vstack([floor, x[:-1, :2]])
        small = 1e-9
        good = True
        for k, s in enumerate(state):
            grows = x[k, :2] - below[k]
            if s == "leave":
                good &= bool(apart[k]) or grows[1] > small
            else:
                good &= x[k, 3] >= -small
                if s == "stick":
                    good &= abs(x[k, 2]) <= friction[k] * x[k, 3] + small
                elif slip[k] == 0:
                    good &= grows[0] * (1 if s == "slide +" else -1) > small
        if good:
            found[state] = x[:, :2]
    assert len(found) == 1, found
    return next(iter(found.items()))


def dishes(
    friction: tuple[float, ...], masses: tuple[float, ...] = MASSES, floor_speed: Vector | None = None
) -> Engine:
    """Dishes on a board that moves as it is told; `friction` between each dish and what is below it."""
    world = World()
    vx, vz = (0.0, 0.0) if floor_speed is None else floor_speed
    world.body("floor", kind="kinematic", pos=(0, 0, -0.05), vel=(vx, 0, vz))
    world.shape("floor", Box(4.0, 2.0, 0.1), material="m0")
    for k, (mass, mu) in enumerate(zip(masses, friction, strict=True)):
        world.material(f"m{k}", f"m{k + 1}", friction=mu)
        world.solid(
            f"dish {k}",
            Cylinder(RADIUS, THICK),
            density=mass / FLAT,
            material=f"m{k + 1}",
            pos=(0, 0, THICK * (k + 0.5)),
            vel=(vx, 0, vz),
        )
    return compiled(world, DT)


def accelerate(engine: Engine, floor: Vector, seconds: float) -> None:
    """The floor gathers speed step by step."""
    v = engine.content.data.state.vel[engine.index("floor")]
    for _ in range(round(seconds / DT)):
        v[0] += floor[0] * DT
        v[2] += floor[1] * DT
        assert engine.step() == 0


def plane_velocities(engine: Engine, count: int = len(MASSES)) -> Vector:
    return np.array([velocity(engine, f"dish {k}")[[0, 2]] for k in range(count)])


FRICTIONS = {
    "rough below": (0.5, 0.4, 0.3, 0.2),
    "rough above": (0.2, 0.3, 0.4, 0.5),
    "one smooth layer": (0.5, 0.5, 0.05, 0.5),
    "mixed": (0.3, 0.1, 0.5, 0.15),
}


@pytest.mark.parametrize("kind", FRICTIONS)
@pytest.mark.parametrize("pull", [0.3, 1.2, 1.8, 2.6, 3.6, 6.0, -2.6])
def test_dishes_stick_and_slide_as_the_one_right_state_says(kind: str, pull: float) -> None:
    """The floor starts from rest with a constant level acceleration: so do the dishes, each with its own."""
    friction = FRICTIONS[kind]
    state, expected = right_state(MASSES, friction, np.array([pull, 0.0]), np.zeros(4), np.zeros(4, bool))
    engine = dishes(friction)
    advance(engine, 0.1)
    seconds = 0.2
    accelerate(engine, np.array([pull, 0.0]), seconds)
    got = plane_velocities(engine) / seconds
    assert got == pytest.approx(expected, abs=0.01 * abs(pull)), state


def test_the_cases_pass_through_many_states() -> None:
    """The cases above are not all alike: at least ten different states are the right one."""
    seen = {
        right_state(MASSES, friction, np.array([pull, 0.0]), np.zeros(4), np.zeros(4, bool))[0]
        for friction in FRICTIONS.values()
        for pull in (0.3, 1.2, 1.8, 2.6, 3.6, 6.0, -2.6)
    }
    assert len(seen) >= 10


@pytest.mark.parametrize("lift", [4.0, -5.0])
def test_a_floor_that_rises_presses_the_dishes_and_friction_grows(lift: float) -> None:
    """Pushes are m (g + a), so the level acceleration at which a dish slides is mu (g + a)."""
    friction, pull = (0.4, 0.3, 0.2, 0.1), 2.2
    floor = np.array([pull, lift])
    state, expected = right_state(MASSES, friction, floor, np.zeros(4), np.zeros(4, bool))
    engine = dishes(friction)
    advance(engine, 0.1)
    accelerate(engine, floor, 0.2)
    got = plane_velocities(engine) / 0.2
    assert got == pytest.approx(expected, abs=0.03), state


def test_dishes_leave_a_floor_that_drops_faster_than_they_fall() -> None:
    """All four fly together: 0.1 s at 20 m/s^2 leaves a gap of (20 - g) t^2 / 2 to the floor and none between them.

    Friction is bounded by the push of the step before, so the floor still drags them along for one step.
    """
    floor, seconds = np.array([3.0, -20.0]), 0.1
    _, expected = right_state(MASSES, (0.4,) * 4, floor, np.zeros(4), np.zeros(4, bool))
    assert expected == pytest.approx(np.array([[0.0, -G]] * 4))
    engine = dishes((0.4,) * 4)
    advance(engine, 0.1)
    low = centre(engine, "dish 0")[2] - engine.position("floor")[2]
    accelerate(engine, floor, seconds)
    assert plane_velocities(engine) == pytest.approx(expected * seconds, abs=floor[0] * DT)
    gap = centre(engine, "dish 0")[2] - engine.position("floor")[2] - low
    assert gap == pytest.approx((20 - G) * seconds**2 / 2, rel=0.02)
    for k in range(1, 4):
        apart = centre(engine, f"dish {k}")[2] - centre(engine, f"dish {k - 1}")[2]
        assert apart == pytest.approx(THICK, abs=1e-4)


def follow(friction: tuple[float, ...], phases: list[tuple[float, float]]) -> tuple[Vector, Vector, int]:
    """Speeds and ways of the dishes when the floor has one level acceleration after the other, each for so long, and
    the number of events: exact, from one end of a slip to the next.
    """
    n, none = len(friction), np.zeros(len(friction), bool)
    v, x, slip, events = np.zeros(n), np.zeros(n), np.zeros(n), 0  # `slip` against what is below
    for pull, seconds in phases:
        left = seconds
        while left > 0:
            a = right_state(MASSES, friction, np.array([pull, 0.0]), slip, none)[1][:, 0]
            rate = a - np.concatenate([[pull], a[:-1]])
            ends = np.where(slip * rate < 0, -slip / np.where(rate == 0, 1.0, rate), np.inf)
            dt = min(left, float(ends.min()))
            x, v, slip = x + v * dt + a * dt**2 / 2, v + a * dt, slip + rate * dt
            slip[np.abs(slip) < 1e-9] = 0.0
            left -= dt
            events += 1
    return v, x, events


@pytest.mark.parametrize("kind", FRICTIONS)
def test_dishes_on_a_floor_that_is_shaken_stick_and_slide_by_turns(kind: str) -> None:
    """The floor jerks to and fro, and each dish starts and stops when it must: speeds and places after five jerks."""
    friction = FRICTIONS[kind]
    phases = [(5.0, 0.1), (-5.0, 0.2), (2.5, 0.1), (-1.5, 0.15), (4.0, 0.1)]
    v, x, events = follow(friction, phases)
    assert events > len(phases)
    engine = dishes(friction)
    advance(engine, 0.1)
    before = np.array([centre(engine, f"dish {k}")[0] for k in range(4)])
    for pull, seconds in phases:
        accelerate(engine, np.array([pull, 0.0]), seconds)
    after = np.array([centre(engine, f"dish {k}")[0] for k in range(4)])
    assert plane_velocities(engine)[:, 0] == pytest.approx(v, abs=0.01)
    assert after - before == pytest.approx(x, abs=1e-3)


def test_dishes_do_not_tip_or_turn() -> None:
    """What the reference leaves out stays out: no dish turns, and all stay in the plane of the motion."""
    engine = dishes(FRICTIONS["mixed"])
    advance(engine, 0.1)
    accelerate(engine, np.array([2.6, 0.0]), 0.2)
    for k in range(4):
        assert spin(engine, f"dish {k}") == pytest.approx([0, 0, 0], abs=1e-3)
        assert centre(engine, f"dish {k}")[1:] == pytest.approx([0, THICK * (k + 0.5)], abs=1e-4)
