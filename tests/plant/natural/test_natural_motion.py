"""The core in natural coordinates moves mechanisms as mechanics says: pendulum and four-bar against scipy, energy,
constraints, singular places, redundant constraints, large mass ratios, and agreement with the other core."""

import numpy as np
import pytest
from mechanisms import FourBar, G, Y, back_to_the_start, bar, crank_turn, natural
from scipy.integrate import solve_ivp

from plant.collision.shape.shapes import Sphere
from plant.engine.compile import compile_world
from plant.natural.builder import Options
from plant.natural.integrators import Integrator, generalized_alpha, newmark
from plant.natural.model import Report
from plant.world.checks import WorldError
from plant.world.world import World

METHODS = [pytest.param(newmark(), id="trapezoidal"), pytest.param(generalized_alpha(0.8), id="generalized-alpha")]


def pendulum() -> World:
    world = World()
    bar(world, "rod", (0, 0, 0), (1.2, 0, 0), 3.0)
    world.hinge("pin", None, "rod", at=(0, 0, 0), axis=Y)
    return world


def pendulum_turn(seconds: float) -> float:
    """How far below level the rod is."""
    moment = 3.0 * 1.2**2 / 3 + 3e-4
    run = solve_ivp(
        lambda _, y: [y[1], 3.0 * G * 0.6 * np.cos(y[0]) / moment], (0, seconds), [0.0, 0.0], rtol=1e-12, atol=1e-12
    )
    return float(run.y[0, -1])


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_converges_with_the_square_of_the_step(method: Integrator) -> None:
    goal, errors = pendulum_turn(0.8), []
    for dt in (4e-3, 2e-3, 1e-3):
        engine = natural(pendulum(), dt, integrator=method, iterations=4)
        assert engine.step(round(0.8 / dt)) == 0
        x, _, z = engine.content.data.state.pos[0]
        errors.append(abs(np.arctan2(-z, x) % (2 * np.pi) - goal % (2 * np.pi)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_a_four_bar_converges_with_the_square_of_the_step(method: Integrator) -> None:
    goal, errors = FourBar().turn_after(1.0), []
    for dt in (4e-3, 2e-3, 1e-3):
        engine = natural(FourBar().world(), dt, integrator=method, iterations=4)
        assert engine.step(round(1.0 / dt)) == 0
        errors.append(abs((crank_turn(engine) - goal + np.pi) % (2 * np.pi) - np.pi))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.25)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.25)


def test_a_four_bar_keeps_its_energy_for_a_minute() -> None:
    """Trapezoidal rule at 1 ms: within 0.1 % of what it moves with."""
    engine = natural(FourBar().world())
    start = engine.energy()
    moving = start - FourBar(speed=0.0).terms(0.0)[1]
    for _ in range(60):
        assert engine.step(1000) == 0
        assert abs(engine.energy() - start) < 1e-3 * moving


@pytest.mark.parametrize("own_mass", [False, True])
@pytest.mark.parametrize("share", [False, True])
def test_constraints_hold_after_projection(share: bool, own_mass: bool) -> None:
    """Positions, rates and accelerations, each relative to the size of the terms in it: 2 m, 10 m/s, 100 m/s^2."""
    engine = natural(FourBar().world(), share=share, own_mass=own_mass)
    assert engine.core is not None
    report = engine.core.content.report
    for _ in range(200):
        assert engine.step(5) == 0
        assert report[Report.GAP] < 1e-8 * 2
        assert report[Report.GAP_RATE] < 1e-8 * 10
        assert report[Report.GAP_ACCELERATION] < 1e-8 * 100


def test_a_shared_and_a_written_mechanism_are_the_same() -> None:
    """Shared points against equations: two ways of saying one thing."""
    one, other = natural(FourBar().world(), share=True), natural(FourBar().world(), share=False)
    assert one.core is not None
    assert other.core is not None
    assert one.core.content.row.count[0] < other.core.content.row.count[0]
    for engine in (one, other):
        assert engine.step(1000) == 0
    assert np.abs(one.content.data.state.pos - other.content.data.state.pos).max() < 1e-6


def slider_crank(speed: float) -> World:
    """Crank and rod of equal length: upright, the slider stands at the crank's pin and could take either branch."""
    world = World(gravity=(0, 0, 0))
    bar(world, "crank", (0, 0, 0), (0.6, 0, 0.8), 1.0, vel=(0.4 * speed, 0, -0.3 * speed), spin=(0, speed, 0))
    bar(world, "rod", (0.6, 0, 0.8), (1.2, 0, 0), 1.0, vel=(1.2 * speed, 0, -0.3 * speed), spin=(0, -speed, 0))
    world.body("slider", mass=1.0, inertia=(0.01, 0.01, 0.01), pos=(1.2, 0, 0), vel=(1.6 * speed, 0, 0))
    world.hinge("a", None, "crank", at=(0, 0, 0), axis=Y)
    world.hinge("b", "crank", "rod", at=(0.6, 0, 0.8), axis=Y)
    world.hinge("c", "rod", "slider", at=(1.2, 0, 0), axis=Y)
    world.prismatic("rail", None, "slider", at=(1.2, 0, 0), axis=(1, 0, 0))
    return world


@pytest.mark.parametrize("share", [False, True])
def test_a_slider_crank_goes_through_its_singular_place(share: bool) -> None:
    """It turns through places where the Jacobian loses rank, and keeps its energy and its constraints."""
    engine = natural(slider_crank(-4.0), share=share, iterations=4)
    start = engine.energy()
    turned, last = 0.0, engine.content.data.state.pos[0].copy()
    for _ in range(1500):
        assert engine.step(10) == 0
        here = engine.content.data.state.pos[0]
        turned += np.arctan2(last[2] * here[0] - last[0] * here[2], last @ here)
        last = here.copy()
        assert engine.gap() < 1e-6
    assert abs(turned) > 2 * np.pi * 5
    assert engine.energy() == pytest.approx(start, rel=0.02)


def bricard(gravity: float = 9.81) -> World:
    """Five bars of 1 m and the ground, each hinge perpendicular to the next: by count it is fixed, and it moves.

    The corners run along edges of a cube; each hinge lies along the third direction of its corner.
    """
    world = World(gravity=(0, -gravity, 0))
    corners = [(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1), (0, 0, 0)]
    axes = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    names: list[str | None] = []
    for k in range(5):
        bar(world, f"bar{k}", corners[k], corners[k + 1], 1.0)
        names.append(f"bar{k}")
    chain = [None, *names, None]
    for k in range(6):
        world.hinge(f"pin{k}", chain[k], chain[k + 1], at=corners[k], axis=axes[k])
    return world


def test_bricards_overconstrained_loop_moves_and_keeps_its_energy() -> None:
    """Redundant constraints: Gruebler counts no freedom, yet it swings (a standard test of multibody codes)."""
    engine = natural(bricard(), iterations=4)
    start, reach = engine.energy(), 0.0
    at = engine.content.data.state.pos.copy()
    for _ in range(100):
        assert engine.step(100) == 0
        reach = max(reach, float(np.abs(engine.content.data.state.pos - at).max()))
        assert engine.gap() < 1e-6
        assert abs(engine.energy() - start) < 0.01 * 5 * 9.81
    assert reach > 0.5


def light_on_heavy(speed: float) -> World:
    """A block of 100 t on a hinge, and on its end a block of 1 kg that spins fast."""
    world = World()
    for name, x, mass, spin in (("heavy", 0.5, 1e5, 0.0), ("light", 1.5, 1.0, speed)):
        vel = (0, 0.5 * spin, 0)
        world.body(name, mass=mass, inertia=np.full(3, 0.2 * mass), pos=(x, 0, 0), vel=vel, spin=(0, 0, spin))
    world.hinge("a", None, "heavy", at=(0, 0, 0), axis=Y)
    world.ball("b", "heavy", "light", at=(1, 0, 0))
    return world


def worst_gap(world: World, **options: object) -> float:
    """The largest gap of a joint in 0.3 s [m]; inf if the mechanism was lost."""
    engine = natural(world, iterations=3, **options)
    worst = 0.0
    for _ in range(300):
        if engine.step() != 0:
            return float("inf")
        worst = max(worst, engine.gap())
    return worst


def test_a_mass_ratio_of_1e5_converges_with_the_penalty_matrix_where_one_factor_does_not() -> None:
    """A factor that is right for 100 t makes a blow of every curvature of the light body's constraints."""
    given = {"share": False, "firmness": 1e5}
    assert worst_gap(light_on_heavy(100.0), penalty="scalar", **given) > 1e-3
    assert worst_gap(light_on_heavy(100.0), penalty="matrix", **given) < 1e-6
    assert worst_gap(light_on_heavy(100.0), penalty="effective", **given) < 1e-6


def test_multipliers_from_the_linear_solve_bear_firmer_penalties_than_those_of_the_text() -> None:
    """Eq. 2.59 takes for a missing force what is only the curvature of a constraint along a correction."""
    given = {"share": False, "firmness": 1e7, "penalty": "scalar"}
    assert worst_gap(light_on_heavy(30.0), ahead=False, **given) > 1e-3
    assert worst_gap(light_on_heavy(30.0), ahead=True, **given) < 1e-6


@pytest.mark.parametrize("share", [False, True])
def test_a_light_link_carries_a_load_of_1e5_times_its_mass(share: bool) -> None:
    world = World()
    for name, x, mass in (("light", 0.5, 1.0), ("heavy", 1.5, 1e5)):
        world.body(name, mass=mass, inertia=np.full(3, 0.2 * mass), pos=(x, 0, 0))
    world.ball("a", None, "light", at=(0, 0, 0))
    world.ball("b", "light", "heavy", at=(1, 0, 0))
    assert worst_gap(world, share=share) < 1e-6


JOINTS = {
    "ball": lambda w: w.ball("j", "a", "b", at=(1, 0, 0)),
    "hinge": lambda w: w.hinge("j", "a", "b", at=(1, 0, 0), axis=(0.1, 1, 0.2)),
    "prismatic": lambda w: w.prismatic("j", "a", "b", at=(1, 0, 0), axis=(1, 0.2, 0)),
    "cylindrical": lambda w: w.cylindrical("j", "a", "b", at=(1, 0, 0), axis=(1, 0.2, 0)),
    "universal": lambda w: w.universal("j", "a", "b", at=(1, 0, 0), axis_a=(1, 0, 0), axis_b=(0, 1, 0)),
    "fixed": lambda w: w.fixed("j", "a", "b", at=(1, 0, 0)),
    "planar": lambda w: w.planar("j", "a", "b", at=(1, 0, 0), axis=(0, 0, 1)),
    "point_line": lambda w: w.point_line("j", "a", "b", at=(1, 0, 0), axis=(1, 0, 0)),
    "distance": lambda w: w.distance("j", "a", "b", at_a=(1, 0, 0), at_b=(1, 0, 0.4)),
}


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("kind", list(JOINTS))
def test_every_joint_moves_as_in_the_other_core(kind: str, share: bool) -> None:
    """Two bodies on the ground by a ball and this joint: both cores converge to the same motion, one in the first order
    of the step and one in the second, so the difference halves with the step of the first."""

    def world() -> World:
        w = World()
        bar(w, "a", (0, 0, 0), (1, 0, 0), 2.0)
        bar(w, "b", (1, 0, 0), (1, 0.8, 0.4), 1.5, spin=(0.3, -0.5, 0.4))
        w.ball("root", None, "a", at=(0, 0, 0))
        JOINTS[kind](w)
        return w

    engine = natural(world(), 1e-3, share=share, iterations=4)
    assert engine.step(300) == 0
    mine, far = engine.content.data.state.pos.copy(), []
    for dt in (1e-3, 5e-4):
        other = compile_world(world(), dt)
        assert other.step(round(0.3 / dt)) == 0
        far.append(float(np.abs(other.content.data.state.pos - mine).max()))
    assert far[1] < 2e-3
    assert far[0] / far[1] == pytest.approx(2.0, abs=0.5)


def test_bodies_that_do_not_fit_are_moved_until_they_do() -> None:
    """The ground's end of a hinge is a centimetre away from where the bar has its own."""
    world = pendulum()
    world.joints["pin"].at_b = np.array([0.01, 0, 0])
    engine = natural(world)
    assert engine.gap() < 1e-9
    assert engine.step(100) == 0


def test_bodies_that_can_not_fit_are_refused_by_the_name_of_the_joint() -> None:
    world = World()
    bar(world, "rod", (0, 0, 0), (1, 0, 0), 1.0)
    world.ball("left", None, "rod", at=(0, 0, 0))
    world.ball("right", None, "rod", at=(1, 0, 0))
    world.joints["right"].at = np.array([1.5, 0, 0])
    world.joints["right"].at_b = np.array([1.0, 0, 0])
    with pytest.raises(WorldError, match=r"right|left"):
        compile_world(world, 1e-3, stepper="ali3p", natural=Options(share=False))


@pytest.mark.parametrize("share", [False, True])
def test_a_rod_that_is_too_short_is_refused_by_its_name_and_those_of_its_joints(share: bool) -> None:
    """Both of its ends are pins in the ground, 1.5 m apart: by default they are known points, with no equation left."""
    world = World()
    bar(world, "rod", (0, 0, 0), (1, 0, 0), 1.0)
    world.ball("left", None, "rod", at=(0, 0, 0))
    world.ball("right", None, "rod", at=(1, 0, 0))
    world.joints["right"].at, world.joints["right"].at_b = np.array([1.5, 0, 0]), np.array([1.0, 0, 0])
    with pytest.raises(WorldError, match=r"'rod' between joints 'left', 'right'|joint '(left|right)'") as refused:
        natural(world, share=share)
    assert not share or "'rod' between joints 'left', 'right'" in str(refused.value)


def test_two_rods_that_do_not_reach_are_refused_by_name() -> None:
    """Rods of 1 m in a row on two pins 2.5 m apart, everything shared."""
    world = World()
    bar(world, "one", (0, 0, 0), (1, 0, 0), 1.0)
    bar(world, "two", (1, 0, 0), (2, 0, 0), 1.0)
    world.hinge("a", None, "one", at=(0, 0, 0), axis=Y)
    world.hinge("b", "one", "two", at=(1, 0, 0), axis=Y)
    world.hinge("c", None, "two", at=(2, 0, 0), axis=Y)
    world.joints["c"].at, world.joints["c"].at_b = np.array([2.5, 0, 0]), np.array([2.0, 0, 0])
    with pytest.raises(WorldError, match=r"'(one|two)' between joints|joint '[abc]'"):
        natural(world)


def test_poses_become_points_and_vectors_and_come_back_to_rounding() -> None:
    """Bodies anywhere, turned anyhow, alone and in a chain: at rest without weight, a step gives back what it took."""
    rng = np.random.default_rng(5)
    world = World(gravity=(0, 0, 0))
    for k in range(12):
        quat = rng.normal(size=4)
        pos = 5 * rng.normal(size=3)
        world.body(f"b{k}", mass=2.0, inertia=(0.1, 0.2, 0.25), pos=pos, quat=quat / np.linalg.norm(quat))
    for k in range(5):
        world.ball(f"j{k}", f"b{k}", f"b{k + 1}", at=5 * rng.normal(size=3))
    engine = natural(world)
    state = engine.content.data.state
    pos, quat = state.pos.copy(), state.quat.copy()
    assert engine.step(1) == 0
    assert np.abs(state.pos - pos).max() < 1e-13
    assert np.abs(state.quat - quat).max() < 1e-14


def test_a_restart_repeats_to_the_bit() -> None:
    world = FourBar().world()
    world.plane(offset=-3.0, material="floor")
    world.solid("ball", Sphere(0.1), density=500, pos=(5, 0, -2.85), vel=(0.3, 0, 0), material="ball")
    world.material("ball", "floor", law="hunt_crossley", stiffness=1e6, restitution=0.3, friction=0.5)
    world.motor("drive", "a", speed=3.0, force=20.0)
    engine = natural(world)
    reset, runs = back_to_the_start(engine), []
    for again in range(3):
        if again:
            reset()
        assert engine.step(400) == 0
        runs.append(np.concatenate([engine.content.data.state.pos.ravel(), engine.content.data.state.vel.ravel()]))
    assert (runs[0] == runs[1]).all()
    assert (runs[1] == runs[2]).all()
