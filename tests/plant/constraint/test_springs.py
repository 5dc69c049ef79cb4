"""Springs and dampers: between two points, by table, as ropes, and on the free axis of a joint."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from worlds import G, advance, angle, angular_momentum, centre, compiled, orders, push, rows_of, spin, velocity, watched

from plant.engine.compile import Engine
from plant.model import Bound
from plant.world.world import World

MASS = 2.0


def along_x(*, gravity: float = 0.0, start: float = 0.0, speed: float = 0.0, **spring: object) -> World:
    """A mass on a spring of rest length 1 m from the ground, along x; `start` is the stretch at first."""
    world = World(gravity=(gravity, 0, 0))
    world.body("mass", mass=MASS, inertia=(0.1, 0.1, 0.1), pos=(1 + start, 0, 0), vel=(speed, 0, 0))
    world.spring("s", None, "mass", at_a=(0, 0, 0), at_b=(1 + start, 0, 0), rest=1.0, **spring)  # type: ignore[arg-type]
    return world


def stretch(engine: Engine) -> float:
    return float(centre(engine, "mass")[0] - 1)


def pull(engine: Engine) -> float:
    """Of the only spring in the last step, positive when it draws its ends together [N]."""
    (k,) = rows_of(engine, int(Bound.SPRING))
    return float(-engine.content.data.bounded.value[k] / engine.content.model.setup.h)


def crossings(seen: np.ndarray, h: float) -> np.ndarray:
    """Times at which the values rise through zero."""
    k = np.flatnonzero((seen[:-1] < 0) & (seen[1:] >= 0))
    return (k - seen[k] / (seen[k + 1] - seen[k])) * h


def damped(t: np.ndarray, rate: float, damping: float, start: float) -> np.ndarray:
    """Free motion from rest at `start`: w^2 = k / m, damping = c / 2 m."""
    w = np.sqrt(rate**2 - damping**2)
    return start * np.exp(-damping * t) * (np.cos(w * t) + damping / w * np.sin(w * t))


STIFFNESS = 800.0
RATE = np.sqrt(STIFFNESS / MASS)  # 20 rad/s


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_spring_swings_at_its_frequency_and_decays_by_its_damping(share: float) -> None:
    """At 1 ms: the period to 1e-4 with w = sqrt(k / m) sqrt(1 - share^2), the path to 2.5 % of the start, and the
    logarithmic decrement to 2 %.
    """
    c = 2 * share * MASS * RATE
    engine = compiled(along_x(start=0.1, stiffness=STIFFNESS, damping=c))
    seen = watched(engine, 2.0, stretch)
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(damped(t, RATE, share * RATE, 0.1), abs=2.5e-3)
    period = 2 * np.pi / (RATE * np.sqrt(1 - share**2))
    assert np.diff(crossings(seen, 1e-3)).mean() == pytest.approx(period, rel=1e-4 + 0.02 * share)
    tops = seen[1:-1][(seen[1:-1] > seen[:-2]) & (seen[1:-1] >= seen[2:]) & (seen[1:-1] > 1e-4)]
    decay = -np.diff(np.log(tops)).mean()
    assert decay == pytest.approx(share * RATE * period, rel=0.02, abs=1e-3)


def test_a_damped_spring_converges_to_its_closed_form() -> None:
    """At first order or better in the step."""
    errors = []
    for dt in (4e-3, 2e-3, 1e-3, 5e-4):
        engine = compiled(along_x(start=0.1, stiffness=STIFFNESS, damping=8.0), dt)
        seen = watched(engine, 1.0, stretch, every=round(4e-3 / dt))
        t = np.arange(len(seen)) * 4e-3
        errors.append(float(np.abs(seen - damped(t, RATE, 2.0, 0.1)).max()))
    assert errors[-1] < 1e-3
    assert (orders(errors) > 0.95).all()


def test_a_spring_gives_way_by_force_over_stiffness() -> None:
    engine = compiled(along_x(stiffness=STIFFNESS, damping=80.0))
    push(engine, "mass", (30.0, 0, 0))
    advance(engine, 3.0)
    assert stretch(engine) == pytest.approx(30.0 / STIFFNESS, rel=1e-8)
    assert pull(engine) == pytest.approx(30.0, rel=1e-8)


def test_a_spring_of_any_stiffness_is_stable() -> None:
    """1e9 N/m at 1 ms, a period of a third of a step. Undamped it must not gain: the step is a linear map of
    determinant one, bounded by sqrt(1 + k h^2 / 4 m) of the start; the last of 1e5 steps is as bounded as the first.
    """
    engine = compiled(along_x(start=1e-3, stiffness=1e9))
    first = np.abs(watched(engine, 1.0, stretch)).max()
    advance(engine, 98.0)
    last = np.abs(watched(engine, 1.0, stretch)).max()
    bound = 1e-3 * np.sqrt(1 + 1e9 * 1e-6 / (4 * MASS))
    assert first <= bound * 1.001
    assert last <= bound * 1.001


def test_a_stiff_damped_spring_comes_to_rest_at_its_sag() -> None:
    """1e9 N/m with 1e5 N s/m under gravity: m g / k = 20 nm."""
    engine = advance(compiled(along_x(gravity=G, start=1e-3, stiffness=1e9, damping=1e5)), 1.0)
    assert stretch(engine) == pytest.approx(MASS * G / 1e9, rel=1e-4)
    assert abs(velocity(engine, "mass")[0]) < 1e-9


def test_a_spring_between_two_bodies_conserves_momentum() -> None:
    """Two bodies that tumble on a damped spring fixed off their centres: an inner force along one line changes neither
    the linear momentum nor the moment of momentum, to rounding.
    """
    world = World(gravity=(0, 0, 0))
    world.body("a", mass=2, inertia=(0.05, 0.06, 0.08), spin=(1, 2, -1), vel=(0, 0.5, 0))
    world.body("b", mass=3, inertia=(0.1, 0.1, 0.12), pos=(1, 0, 0), vel=(0.3, -1.0, 0.4))
    world.spring("s", "a", "b", at_a=(0.1, 0.1, 0), at_b=(0.9, 0, 0.1), stiffness=300, damping=2.0)
    engine = compiled(world)

    def momenta() -> tuple[np.ndarray, np.ndarray]:
        linear, turning = np.zeros(3), np.zeros(3)
        for name, mass in (("a", 2), ("b", 3)):
            linear += mass * velocity(engine, name)
            turning += angular_momentum(engine, name) + mass * np.cross(centre(engine, name), velocity(engine, name))
        return linear, turning

    linear, turning = momenta()
    for _ in range(50):
        advance(engine, 0.02)
        assert momenta()[0] == pytest.approx(linear, abs=1e-11)
        assert momenta()[1] == pytest.approx(turning, abs=1e-11)
    assert np.linalg.norm(angular_momentum(engine, "b")) > 0.01


def test_two_masses_on_a_spring_swing_with_their_reduced_mass() -> None:
    """w^2 = k (1 / m_1 + 1 / m_2), about a centre that stays."""
    world = World(gravity=(0, 0, 0))
    world.body("a", mass=1, inertia=(0.1,) * 3)
    world.body("b", mass=4, inertia=(0.1,) * 3, pos=(1.1, 0, 0))
    world.spring("s", "a", "b", at_a=(0, 0, 0), at_b=(1.1, 0, 0), rest=1.0, stiffness=STIFFNESS)
    engine = compiled(world)
    seen = watched(engine, 2.0, lambda e: float(centre(e, "b")[0] - centre(e, "a")[0] - 1))
    assert np.diff(crossings(seen, 1e-3)).mean() == pytest.approx(2 * np.pi / np.sqrt(STIFFNESS * 1.25), rel=2e-4)
    assert (centre(engine, "a")[0] + 4 * centre(engine, "b")[0]) / 5 == pytest.approx(0.88, abs=1e-12)


# On the free axis of a joint


def wheel(moment: float = 0.5, **state: object) -> World:
    world = World(gravity=(0, 0, 0))
    world.body("wheel", mass=1, inertia=(moment,) * 3, **state)  # type: ignore[arg-type]
    world.hinge("axle", None, "wheel", at=(0, 0, 0), axis=(0, 0, 1))
    return world


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_torsion_spring_swings_at_its_frequency(share: float) -> None:
    """I a'' + c a' + k (a - rest) = 0, from rest."""
    moment, stiffness, rest = 0.5, 60.0, 0.4
    rate = np.sqrt(stiffness / moment)
    world = wheel(moment)
    world.spring_on("s", "axle", stiffness=stiffness, damping=2 * share * moment * rate, rest=rest)
    seen = watched(compiled(world), 3.0, lambda e: angle(e, "axle") - rest)
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(damped(t, rate, share * rate, -rest), abs=0.02 * rest)
    period = 2 * np.pi / (rate * np.sqrt(1 - share**2))
    assert np.diff(crossings(seen, 1e-3)).mean() == pytest.approx(period, rel=1e-4 + 0.02 * share)


def test_a_torsion_spring_holds_torque_over_stiffness_beyond_a_turn() -> None:
    """10 rad of twist: the spring counts turns."""
    world = wheel()
    world.spring_on("s", "axle", stiffness=2.0, damping=2.0)
    engine = compiled(world)
    push(engine, "wheel", torque=(0, 0, 20.0))
    advance(engine, 20.0)
    assert angle(engine, "axle") == pytest.approx(10.0, rel=1e-6)


def test_a_spring_of_any_stiffness_on_a_joint_is_stable() -> None:
    """1e9 N m/rad with damping: it comes to rest at its sag of T / k."""
    world = wheel()
    world.spring_on("s", "axle", stiffness=1e9, damping=1e5)
    engine = compiled(world)
    push(engine, "wheel", torque=(0, 0, 1e3))
    advance(engine, 1.0)
    assert angle(engine, "axle") == pytest.approx(1e-6, rel=1e-4)
    assert abs(spin(engine, "wheel")[2]) < 1e-9


def cart() -> World:
    world = World(gravity=(0, 0, 0))
    world.body("cart", mass=MASS, inertia=(1, 1, 1))
    world.prismatic("rail", None, "cart", at=(0, 0, 0), axis=(1, 0, 0))
    return world


def test_a_spring_presses_a_cart_off_its_stop() -> None:
    """The spring pushes off with 2000 N. A load of 3000 N holds the cart on the stop, one of 1500 N does not."""
    world = cart()
    world.limit("stop", "rail", axis="z", low=0.0, high=1.0)
    world.spring_on("s", "rail", axis="z", stiffness=2e4, rest=0.1)
    engine = compiled(world)
    push(engine, "cart", (-3000.0, 0, 0))
    advance(engine, 0.2)
    assert centre(engine, "cart")[0] == pytest.approx(0, abs=1e-6)
    push(engine, "cart", (-1500.0, 0, 0))
    advance(engine, 0.02)
    assert centre(engine, "cart")[0] == pytest.approx(0.025 * (1 - np.cos(100 * 0.02)), rel=0.1)


def test_a_spring_stronger_than_the_brake_moves_a_cart() -> None:
    """150 N against a brake of 100 N: it starts with 50 N and swings about the point where 100 N are left."""
    world = cart()
    world.friction("brake", "rail", axis="z", force=100.0)
    world.spring_on("s", "rail", axis="z", stiffness=1500.0, rest=0.1)
    engine = advance(compiled(world), 0.05)
    rate = np.sqrt(1500.0 / MASS)
    assert centre(engine, "cart")[0] == pytest.approx(50.0 / 1500.0 * (1 - np.cos(rate * 0.05)), rel=0.05)


def test_a_motor_is_held_up_by_a_spring() -> None:
    """At most 100 N against 1000 N/m: wherever it is, it comes to rest within 0.1 m of travel beyond its balance."""
    world = cart()
    world.motor("drive", "rail", axis="z", speed=0.2, force=100.0)
    world.spring_on("s", "rail", axis="z", stiffness=1000.0, damping=20.0)
    engine = advance(compiled(world), 3.0)
    assert centre(engine, "cart")[0] == pytest.approx(0.1, rel=0.02)


# By table

TABLE = (np.array([-0.2, -0.05, 0.0, 0.1, 0.3]), np.array([-300.0, -60.0, 0.0, 40.0, 400.0]))


def by_table(x: float) -> float:
    """Piecewise linear, with the last slopes beyond the ends."""
    xs, ys = TABLE
    if x < xs[0]:
        return float(ys[0] + (ys[1] - ys[0]) / (xs[1] - xs[0]) * (x - xs[0]))
    if x > xs[-1]:
        return float(ys[-1] + (ys[-1] - ys[-2]) / (xs[-1] - xs[-2]) * (x - xs[-1]))
    return float(np.interp(x, xs, ys))


@pytest.mark.parametrize("where", [-0.25, -0.1, -0.03, 0.05, 0.2, 0.34])
def test_a_table_gives_the_pull_at_each_stretch(where: float) -> None:
    """Held against the pull that the table has there, it stays there; beyond its ends the last slope goes on."""
    engine = compiled(along_x(start=where, damping=30.0, table=TABLE))
    push(engine, "mass", (by_table(where), 0, 0))
    advance(engine, 1.0)
    assert stretch(engine) == pytest.approx(where, abs=1e-9)
    assert pull(engine) == pytest.approx(by_table(where), rel=1e-9)


def test_a_mass_on_a_table_follows_dop853() -> None:
    """Through all five pieces of the table, at first order in the step; its energy is that of the area below the
    table.
    """
    speed, seconds = 4.0, 0.6
    exact = solve_ivp(
        lambda _, y: [y[1], -by_table(y[0]) / MASS], (0, seconds), [0, speed], rtol=1e-10, atol=1e-12, max_step=1e-3
    ).y[0]
    assert exact.max() > 0.2
    assert exact.min() < -0.1
    errors, drifts = [], []
    for dt in (1e-3, 5e-4, 2.5e-4):
        engine = compiled(along_x(speed=speed, table=TABLE), dt)
        drift = 0.0
        for _ in range(60):
            advance(engine, seconds / 60)
            stored = quad(by_table, 0, stretch(engine), points=[-0.05, 0.1], limit=200)[0]
            drift = max(drift, abs(engine.energy() + stored - 0.5 * MASS * speed**2))
        errors.append(abs(stretch(engine) - exact[-1]))
        drifts.append(drift / (0.5 * MASS * speed**2))
    assert errors[-1] < 5e-3
    assert drifts[-1] < 0.02
    assert (orders(errors) > 0.8).all()
    assert (orders(drifts) > 0.8).all()


def test_a_spring_of_two_slopes_has_the_mean_of_two_periods() -> None:
    """Half a swing on each side: T = pi sqrt(m / k_1) + pi sqrt(m / k_2), whatever the amplitude."""
    soft, hard = 200.0, 1800.0
    engine = compiled(along_x(speed=0.5, table=((-1.0, 0.0, 1.0), (-hard, 0.0, soft))), 5e-4)
    seen = watched(engine, 3.0, stretch)
    exact = np.pi * (np.sqrt(MASS / soft) + np.sqrt(MASS / hard))
    assert np.diff(crossings(seen, 5e-4)).mean() == pytest.approx(exact, rel=1e-3)


def test_a_level_table_pulls_with_constant_force() -> None:
    """A counterweight: x = v t - F t^2 / 2 m, to the step."""
    engine = compiled(along_x(speed=2.0, table=((0.0, 1.0), (12.0, 12.0))))
    n = 500
    advance(engine, n * 1e-3)
    assert velocity(engine, "mass")[0] == pytest.approx(2.0 - 12.0 / MASS * 0.5, rel=1e-12)
    assert stretch(engine) == pytest.approx(2.0 * 0.5 - 12.0 / MASS * 1e-6 * n * (n + 1) / 2, rel=1e-9)


def test_a_falling_table_drives_away() -> None:
    """A toggle past its dead point: pull -k x grows as cosh(sqrt(k / m) t)."""
    engine = compiled(along_x(start=0.01, table=((-1.0, 1.0), (200.0, -200.0))), 2.5e-4)
    advance(engine, 0.3)
    assert stretch(engine) == pytest.approx(0.01 * np.cosh(10.0 * 0.3), rel=5e-3)


# Ropes


def test_a_rope_goes_slack_and_does_not_push() -> None:
    """Shorter than its rest length the mass flies freely, to rounding."""
    engine = compiled(along_x(start=-0.1, speed=-1.0, stiffness=1e4, damping=50.0, pull_only=True))
    for n in range(1, 200):
        assert engine.step() == 0
        assert velocity(engine, "mass")[0] == -1.0
        assert pull(engine) == 0
        assert stretch(engine) == pytest.approx(-0.1 - n * 1e-3, abs=1e-12)


def test_a_rope_never_pushes_even_by_its_damper() -> None:
    """Stretched and let go with a damper so strong that it would hold the mass back: its force is never a push."""
    engine = compiled(along_x(start=0.05, speed=-3.0, stiffness=1e3, damping=500.0, pull_only=True))
    pulls = []
    for _ in range(300):
        assert engine.step() == 0
        pulls.append(pull(engine))
        assert pulls[-1] >= 0
    assert velocity(engine, "mass")[0] == -3.0
    assert max(pulls) == 0


def test_a_jump_on_a_rope_reaches_the_depth_that_energy_allows() -> None:
    """Bungee: falls freely for the rope's length, then k s^2 / 2 = m g (length + s); the greatest pull is k s."""
    length, stiffness = 5.0, 100.0
    world = World()
    world.body("jumper", mass=MASS, inertia=(0.1,) * 3, pos=(0, 0, -0.5))
    world.spring(
        "rope", None, "jumper", at_a=(0, 0, 0), at_b=(0, 0, -0.5), rest=length, stiffness=stiffness, pull_only=True
    )
    engine = compiled(world)
    depths, pulls = [], []
    for _ in range(2500):
        assert engine.step() == 0
        depths.append(-centre(engine, "jumper")[2])
        pulls.append(pull(engine))
    fall = length - 0.5
    s = (MASS * G + np.sqrt((MASS * G) ** 2 + 2 * stiffness * MASS * G * fall)) / stiffness
    assert max(depths) == pytest.approx(length + s, rel=1e-3)
    assert max(pulls) == pytest.approx(stiffness * s, rel=5e-3)
    assert min(pulls) == 0
    # it comes back to where it jumped from, and the rope was slack for as long as the fall takes, down and up
    last = np.array(depths)[np.array(pulls) > 0]
    assert last.min() > length - 0.02
    assert np.array(depths)[1500:].min() == pytest.approx(0.5, abs=0.05)


# Dampers


def test_a_damper_alone_slows_down_exponentially() -> None:
    """v = v_0 exp(-c t / m), implicitly: v_0 / (1 + c h / m)^n to rounding, which is more by c^2 h t / 2 m^2 of it."""
    engine = compiled(along_x(speed=3.0, damping=5.0))
    advance(engine, 0.8)
    assert velocity(engine, "mass")[0] == pytest.approx(3.0 * (1 + 5.0e-3 / MASS) ** -800, rel=1e-10)
    assert velocity(engine, "mass")[0] == pytest.approx(3.0 * np.exp(-5.0 * 0.8 / MASS), rel=1.05 * 25e-3 * 0.8 / 8)


def test_a_damper_sinks_at_its_terminal_speed() -> None:
    """v = m g / c, and a damper of 1e9 N s/m is no harm to the step."""
    engine = advance(compiled(along_x(gravity=G, damping=50.0)), 2.0)
    assert velocity(engine, "mass")[0] == pytest.approx(MASS * G / 50.0, rel=1e-9)
    engine = advance(compiled(along_x(gravity=G, speed=3.0, damping=1e9)), 0.1)
    assert velocity(engine, "mass")[0] == pytest.approx(MASS * G / 1e9, rel=1e-3)
