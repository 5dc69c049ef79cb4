"""Heavy loads on light links, bodies that move as they are told, pushes from outside, and a top that spins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from worlds import (
    G,
    about,
    advance,
    angle,
    box,
    centre,
    compiled,
    direction,
    orders,
    push,
    reaction,
    rod,
    spin,
    velocity,
    watched,
)

from plant.collision.shape.shapes import Box
from plant.engine.compile import Engine
from plant.world.world import World

Vector = NDArray[np.float64]
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# A load on slender links ----------------------------------------------------------------------------------------------

LINK, LOAD = 0.12, 50.0  # [m] [kg]; the links have 1 kg and next to no inertia about their length


def hanging(count: int, dt: float = 1e-3) -> Engine:
    """A chain held out level, with a load at its end."""
    world, before = World(), None
    for k in range(count):
        across = LINK**2 / 12
        world.body(f"link {k}", mass=1, inertia=(1e-4, across, across), pos=(LINK * (k + 0.5), 0, 0))
        world.hinge(f"pin {k}", before, f"link {k}", at=(LINK * k, 0, 0), axis=Y)
        before = f"link {k}"
    world.body("load", mass=LOAD, inertia=(0.5,) * 3, pos=(LINK * count + 0.1, 0, 0))
    world.hinge("hook", before, "load", at=(LINK * count, 0, 0), axis=Y)
    return compiled(world, dt)


def drop(count: int) -> float:
    """Potential energy between level and plumb [J]."""
    return LOAD * G * (LINK * count + 0.1) + count * G * LINK * count / 2


@pytest.mark.parametrize("count", [10, 16, 20, 30])
def test_a_heavy_load_swings_from_level_on_slender_links(count: int) -> None:
    """Three seconds, down and up the other side: joints stay shut, and energy grows by less than 1 % of the drop."""
    engine = hanging(count)
    start, gap, gains, far = engine.energy(), 0.0, [], 0.0
    for _ in range(300):
        for _ in range(10):
            assert engine.step() == 0
            gap = max(gap, engine.gap())
        gains.append((engine.energy() - start) / drop(count))
        far = min(far, float(centre(engine, "load")[0]))
    assert gap < 1e-5
    assert max(gains) < 0.01
    assert min(gains) > -0.02
    assert far < -0.5 * LINK * count  # it has been on the other side


@pytest.mark.parametrize("count", [10, 30])
def test_a_heavy_load_on_slender_links_never_gains_energy_when_the_chain_whips(count: int) -> None:
    """When the load comes back the chain goes slack and its links whip at 100 to 200 rad/s. All numbers stay finite;
    what is lost is lost, nothing is gained.
    """
    engine = hanging(count)
    energy = watched(engine, 8.0, Engine.energy, every=20)
    assert (energy.max() - energy[0]) / drop(count) < 0.01
    assert np.linalg.norm(centre(engine, "load")) < (count + 1) * LINK


def test_joints_stay_shut_while_the_chain_whips() -> None:
    worst = [watched(hanging(count), 8.0, Engine.gap).max() for count in (10, 20, 30)]
    assert max(worst) < 1e-5


# Bodies that move as they are told ------------------------------------------------------------------------------------


def conveyor(friction: float, speed: float) -> Engine:
    world = World()
    world.material("default", "default", friction=friction)
    world.body("belt", kind="kinematic", pos=(0, 0, -0.1), vel=(speed, 0, 0))
    world.shape("belt", Box(12.0, 1.0, 0.2))
    box(world, "box", 0.2, 3.0, (0, 0, 0.1))
    return compiled(world)


def test_a_conveyor_carries_a_box_to_its_speed() -> None:
    """The box slides until v = mu g t, over v^2 / 2 mu g, and is carried on from there."""
    friction, speed = 0.3, 1.5
    engine = conveyor(friction, speed)
    seen = watched(engine, 1.0, lambda e: float(velocity(e, "box")[0]))
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.minimum(friction * G * t, speed), abs=0.01)
    assert centre(engine, "box")[0] == pytest.approx(speed - speed**2 / (2 * friction * G), rel=2e-3)
    assert engine.position("belt") == pytest.approx([speed, 0, -0.1], abs=1e-9)


@pytest.mark.parametrize(("share", "carried"), [(0.95, True), (1.3, False)])
def test_a_platform_that_is_shaken_carries_a_box_up_to_the_bound_of_friction(share: float, carried: bool) -> None:
    """x = a sin(w t): the box goes along while a w^2 < mu g, and is left behind by more than 1 mm if not."""
    friction, rate = 0.4, 2 * np.pi * 2
    reach = share * friction * G / rate**2
    engine = conveyor(friction, 0.0)
    v, dt, apart = engine.content.data.state.vel[engine.index("belt")], 1e-3, 0.0
    box_start = centre(engine, "box")[0]
    for k in range(1, 2001):
        phase = rate * k * dt  # half a turn to get going, then a steady swing
        v[0] = reach * rate * ((1 - np.cos(phase)) / 2 if phase < np.pi else -np.cos(phase))
        assert engine.step() == 0
        apart = max(apart, abs(centre(engine, "box")[0] - box_start - engine.position("belt")[0]))
    if carried:
        assert apart < 1e-4
    else:
        assert apart > 1e-3


def test_a_lift_presses_its_load_with_its_own_acceleration() -> None:
    """N = m (g + a) while it gathers speed upwards, m g when it rises steadily."""
    engine = conveyor(0.5, 0.0)
    advance(engine, 0.1)
    v = engine.content.data.state.vel[engine.index("belt")]

    def pressed() -> float:
        contact = engine.content.data.contact
        return float(contact.impulse[: contact.count[0], 0].sum() / 1e-3)

    for _ in range(300):
        v[2] += 2.0 * 1e-3
        assert engine.step() == 0
    assert pressed() == pytest.approx(3.0 * (G + 2.0), rel=1e-3)
    advance(engine, 0.5)
    assert pressed() == pytest.approx(3.0 * G, rel=1e-3)
    assert velocity(engine, "box") == pytest.approx([0, 0, 0.6], abs=1e-5)


def test_a_pendulum_on_a_turning_arm_swings_about_the_line_outwards() -> None:
    """The arm turns at a constant rate in the level plane; the rod hinged to its end obeys
    (I + m c^2) f'' = -m c R w^2 sin(f), first order in the step.
    """
    radius, rate, start, length, mass, seconds = 0.5, 4.0, 0.7, 0.6, 2.0, 1.3
    shape = rod(length, mass)
    moment = shape["inertia"][2] + mass * length**2 / 4  # type: ignore[index]
    pull = mass * length / 2 * radius * rate**2 / moment

    def rates(_: float, y: Vector) -> list[float]:
        return [y[1], -pull * np.sin(y[0])]

    exact = solve_ivp(rates, (0, seconds), [start, 0.0], rtol=1e-10, atol=1e-11).y[0, -1]
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        world = World(gravity=(0, 0, 0))
        world.body("arm", kind="kinematic", spin=(0, 0, rate))
        along = np.array([np.cos(start), np.sin(start), 0])
        middle = np.array([radius, 0, 0]) + length / 2 * along
        world.body(
            "rod", **shape, pos=middle, quat=about(Z, start), spin=(0, 0, rate), vel=np.cross((0, 0, rate), middle)
        )  # type: ignore[arg-type]
        world.hinge("elbow", "arm", "rod", at=(radius, 0, 0), axis=Z)
        engine = advance(compiled(world, dt), seconds)
        errors.append(abs(start + angle(engine, "elbow") - exact))
        assert engine.gap() < 1e-5
        assert direction(engine, "arm", (1, 0, 0)) == pytest.approx(
            [np.cos(rate * seconds), np.sin(rate * seconds), 0], abs=1e-9
        )
    assert errors[-1] < 5e-3
    assert (orders(errors) > 0.85).all()


def test_a_kinematic_arm_feels_nothing_and_its_joint_carries_the_centrifugal_force() -> None:
    """A weight welded to a turning arm at radius r: m w^2 r inwards and m g upwards."""
    radius, rate, mass = 0.8, 5.0, 4.0
    world = World()
    world.body("arm", kind="kinematic", spin=(0, 0, rate))
    world.body(
        "weight", mass=mass, inertia=(0.1,) * 3, pos=(radius, 0, 0), vel=(0, rate * radius, 0), spin=(0, 0, rate)
    )
    world.fixed("weld", "arm", "weight", at=(radius, 0, 0))
    engine = advance(compiled(world), 2.0)
    force = engine.content.data.row.axes[0].T @ reaction(engine, "weld")[:3]
    out = centre(engine, "weight") / np.linalg.norm(centre(engine, "weight"))
    assert np.linalg.norm(centre(engine, "weight")) == pytest.approx(radius, abs=1e-5)
    assert force @ out == pytest.approx(-mass * rate**2 * radius, rel=1e-3)
    assert force[2] == pytest.approx(mass * G, rel=1e-3)
    assert spin(engine, "arm") == pytest.approx([0, 0, rate], abs=0)


# Pushes from outside --------------------------------------------------------------------------------------------------


def test_a_push_from_outside_acts_at_the_centre_of_mass_until_it_is_changed() -> None:
    """The body's frame lies off its centre of mass: v = F t / m, w = T t / I about a principal axis; then neither
    changes any more.
    """
    world = World(gravity=(0, 0, 0))
    world.body("b", mass=4, inertia=(0.2, 0.3, 0.4), com=(0.3, -0.1, 0.2))
    engine = compiled(world)
    push(engine, "b", (2.0, -1.0, 0.5), (0, 0, 0.08))
    advance(engine, 2.0)
    assert velocity(engine, "b") == pytest.approx([1.0, -0.5, 0.25], rel=1e-9)
    assert spin(engine, "b") == pytest.approx([0, 0, 0.4], rel=1e-9, abs=1e-12)
    push(engine, "b")
    advance(engine, 2.0)
    assert velocity(engine, "b") == pytest.approx([1.0, -0.5, 0.25], rel=1e-9)
    assert spin(engine, "b") == pytest.approx([0, 0, 0.4], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_a_pendulum_under_wind_rests_where_its_pull_points(share: float) -> None:
    """A level force F holds it at tan = F / m g, and the pivot carries the sum of both."""
    mass, length = 3.0, 0.8
    lean = np.arctan(share)
    world = World()
    where = length * np.array([np.sin(lean), 0, -np.cos(lean)])
    world.body("bob", mass=mass, inertia=(0.02,) * 3, pos=where)
    world.ball("pivot", None, "bob", at=(0, 0, 0))
    engine = compiled(world)
    push(engine, "bob", (share * mass * G, 0, 0))
    advance(engine, 3.0)
    assert centre(engine, "bob") == pytest.approx(where, abs=1e-6)
    assert reaction(engine, "pivot")[:3] == pytest.approx([-share * mass * G, 0, mass * G], rel=1e-4, abs=1e-3)


def test_a_push_on_one_link_of_a_free_chain_moves_the_common_centre_of_mass() -> None:
    """F t^2 / 2 M, however the links turn."""
    world = World(gravity=(0, 0, 0))
    for k in range(5):
        world.body(f"link {k}", **rod(0.3, 1.0 + k), pos=(0.3 * k, 0, 0))  # type: ignore[arg-type]
        if k:
            world.ball(f"pin {k}", f"link {k - 1}", f"link {k}", at=(0.3 * k - 0.15, 0, 0))
    engine = compiled(world)
    mass = engine.content.model.body.mass
    before = mass @ engine.content.data.state.pos / mass.sum()
    push(engine, "link 4", (0, 6.0, 2.0))
    advance(engine, 1.0)
    moved = mass @ engine.content.data.state.pos / mass.sum() - before
    assert moved == pytest.approx(np.array([0, 6.0, 2.0]) / mass.sum() / 2, rel=2e-3, abs=1e-6)
    assert velocity(engine, "link 4")[1] > 1.5 * 6.0 / mass.sum()  # it goes ahead of the rest


# A top ----------------------------------------------------------------------------------------------------------------

TOP, ARM, ROUND, CROSS = 1.5, 0.3, 0.02, 0.01  # [kg] [m] moments about the axis and across it at the centre [kg m^2]
TIPPED = CROSS + TOP * ARM**2  # across, about the tip


def top(dt: float, lean: float, turn: float, precession: float) -> Engine:
    """A heavy top on its tip: `turn` is the total angular velocity along its axis."""
    axis = np.array([np.sin(lean), 0, np.cos(lean)])
    w = np.array([0, 0, precession])
    w = w - axis * (w @ axis) + axis * turn
    world = World()
    world.body(
        "top",
        mass=TOP,
        inertia=(CROSS, CROSS, ROUND),
        pos=ARM * axis,
        quat=about(Y, lean),
        spin=w,
        vel=np.cross(w, ARM * axis),
    )
    world.ball("tip", None, "top", at=(0, 0, 0))
    return compiled(world, dt)


def lean_and_heading(engine: Engine) -> tuple[float, float]:
    x, y, z = direction(engine, "top", Z)
    return float(np.arccos(z)), float(np.arctan2(y, x))


@pytest.mark.parametrize("root", [-1, 1])
def test_a_top_precesses_steadily_at_either_rate(root: int) -> None:
    """I1 cos(a) p^2 - I3 w p + m g l = 0 has a slow and a fast root; started with either, the lean stays."""
    lean, turn, seconds = 0.6, 80.0, 0.5
    half = ROUND * turn / (2 * TIPPED * np.cos(lean))
    rate = half + root * np.sqrt(half**2 - TOP * G * ARM / (TIPPED * np.cos(lean)))
    errors = []
    for dt in (5e-4, 2.5e-4, 1.25e-4):
        engine = top(dt, lean, turn, rate)
        headings = np.unwrap(watched(engine, seconds, lambda e: lean_and_heading(e)[1], every=10))
        errors.append(abs(headings[-1] - rate * seconds))
        assert lean_and_heading(engine)[0] == pytest.approx(lean, abs=0.02)
    assert errors[-1] < 5e-3 * rate * seconds
    assert (orders(errors) > 0.85).all()


def top_rates(_: float, y: Vector, along: float, up: float) -> list[float]:
    """Lean, its rate and heading of a top with momenta `along` its axis and `up` (Goldstein 5.7)."""
    a, da, _ = y
    rate = (up - along * np.cos(a)) / (TIPPED * np.sin(a) ** 2)
    pull = TIPPED * rate**2 * np.sin(a) * np.cos(a) - along * rate * np.sin(a) + TOP * G * ARM * np.sin(a)
    return [da, pull / TIPPED, rate]


def test_a_top_let_go_nutates_as_lagrange_says() -> None:
    """Released without precession it dips, loops and comes up again: lean and heading at a fixed time."""
    lean, turn, seconds = 0.6, 60.0, 0.9
    along = ROUND * turn
    up = along * np.cos(lean)
    path = solve_ivp(top_rates, (0, seconds), [lean, 0.0, 0.0], args=(along, up), rtol=1e-10, atol=1e-11, max_step=0.01)
    exact = path.y[[0, 2], -1]
    assert np.ptp(path.y[0]) > 0.1
    errors = []
    for dt in (5e-4, 2.5e-4, 1.25e-4):
        engine = top(dt, lean, turn, 0.0)
        headings = np.unwrap(watched(engine, seconds, lambda e: lean_and_heading(e)[1], every=10))
        errors.append(float(np.hypot(lean_and_heading(engine)[0] - exact[0], headings[-1] - exact[1])))
    assert errors[-1] < 5e-3
    assert (orders(errors) > 0.85).all()


def test_a_top_keeps_its_momentum_about_the_axis_and_the_plumb_line() -> None:
    """Gravity has no moment about either: to the order of the step over a second."""
    engine = top(2.5e-4, 0.6, 60.0, 1.0)
    r = centre(engine, "top")

    def momenta() -> Vector:
        axis, w = direction(engine, "top", Z), spin(engine, "top")
        turning = CROSS * w + (ROUND - CROSS) * axis * (w @ axis)
        about_tip = turning + TOP * np.cross(centre(engine, "top"), velocity(engine, "top"))
        return np.array([about_tip @ axis, about_tip[2]])

    before = momenta()
    advance(engine, 1.0)
    assert momenta() == pytest.approx(before, rel=2e-3)
    assert np.linalg.norm(centre(engine, "top")) == pytest.approx(np.linalg.norm(r), abs=1e-5)


@pytest.mark.parametrize(("share", "sleeps"), [(1.15, True), (0.85, False)])
def test_a_top_sleeps_above_its_critical_spin_and_falls_below(share: float, sleeps: bool) -> None:
    """Upright and hardly disturbed, it stays so if (I3 w)^2 > 4 I1 m g l."""
    turn = share * 2 * np.sqrt(TIPPED * TOP * G * ARM) / ROUND
    engine = top(2.5e-4, 1e-3, turn, 0.0)
    lean = watched(engine, 2.0, lambda e: lean_and_heading(e)[0], every=20)
    if sleeps:
        assert lean.max() < 0.02
    else:
        assert lean.max() > 0.3
