"""Impacts with restitution: of loose bodies, at limits, through joints and couplings, and with friction."""

import numpy as np
import pytest
from worlds import G, about, advance, angle, centre, compiled, joint_number, reaction, spin, velocity, watched

from plant.collision.shape.shapes import Box
from plant.engine.compile import Engine
from plant.model import Status
from plant.world.world import World

RADIUS, HEIGHT = 0.1, 1.0
X, Y, Z = np.eye(3)


def ball(world: World, name: str, at: tuple[float, ...], mass: float = 1.0, **state: object) -> None:
    """A solid sphere."""
    moment = 0.4 * mass * RADIUS**2
    world.body(name, mass=mass, inertia=(moment,) * 3, pos=at, **state)  # type: ignore[arg-type]
    world.sphere(name, radius=RADIUS)


def dropped(restitution: float, dt: float, **material: float) -> Engine:
    """A ball at rest, its lowest point one metre above the plane."""
    world = World()
    world.plane()
    world.material("default", "default", restitution=restitution, **material)
    ball(world, "ball", (0, 0, RADIUS + HEIGHT))
    return compiled(world, dt)


def gap(engine: Engine) -> float:
    return float(centre(engine, "ball")[2] - RADIUS)


def impacts(engine: Engine) -> int:
    return int(engine.content.data.status[Status.IMPACTS])


# A ball on a plane

FALL = np.sqrt(2 * HEIGHT / G)  # [s]
SPEED = np.sqrt(2 * HEIGHT * G)  # [m/s] at the plane


@pytest.mark.parametrize("dt", [2e-3, 1e-3, 5e-4])
@pytest.mark.parametrize("restitution", [0.5, 0.8, 1.0])
def test_a_ball_bounces_to_the_heights_and_at_the_times_of_its_restitution(restitution: float, dt: float) -> None:
    """Top n is e^2n of the height, at FALL (1 + 2 e + ... + 2 e^(n-1) + e^n); each bounce may be short of a step's way
    at the first impact, and with it each flight of two more steps than the one before.
    """
    seen = watched(dropped(restitution, dt), 3.0, gap)
    tops = np.flatnonzero((seen[1:-1] >= seen[:-2]) & (seen[1:-1] > seen[2:]) & (seen[1:-1] > 0.01)) + 1
    assert len(tops) >= 3
    for n, k in enumerate(tops, start=1):
        e = restitution ** np.arange(n + 1)
        assert seen[k] == pytest.approx(HEIGHT * e[n] ** 2, abs=1.05 * n * SPEED * dt)
        assert k * dt == pytest.approx(FALL * (2 * e.sum() - 1 - e[n]), abs=2 * n * (n + 1) * dt)


@pytest.mark.parametrize("dt", [2e-3, 1e-3, 2.5e-4])
@pytest.mark.parametrize("restitution", [0.1, 0.5, 1.0])
def test_a_ball_that_bounces_never_goes_below_the_plane(restitution: float, dt: float) -> None:
    """By more than a micrometre: it turns where the step would have closed the gap. What is left in the end is the
    sag of a contact of 1e8 N/m.
    """
    assert watched(dropped(restitution, dt), 3.0, gap).min() > -1e-6


@pytest.mark.parametrize("dt", [2e-3, 1e-3, 2.5e-4])
def test_a_ball_that_does_not_bounce_stays_above_a_hard_plane(dt: float) -> None:
    """Without restitution the contact itself takes the blow. At 1e11 N/m it gives way by less than a micrometre, and
    comes to rest; at 1e8 N/m by less than the closed form for a spring without damping, v sqrt(m / k).
    """
    seen = watched(dropped(0.0, dt, stiffness=1e11), 1.0, gap)
    assert seen.min() > -1e-6
    assert abs(seen[round((FALL + 0.05) / dt) :]).max() < 1e-6
    assert watched(dropped(0.0, dt), 1.0, gap).min() > -SPEED * np.sqrt(1 / 1e8)


@pytest.mark.parametrize("dt", [2e-3, 1e-3, 5e-4, 2.5e-4])
def test_a_perfectly_elastic_ball_loses_no_more_than_the_step_explains_in_twenty_bounces(dt: float) -> None:
    """Velocities of the step belong to its middle. Turned round at its start, a bounce costs g h v of energy per mass,
    h sqrt(2 g / H) of it all: that much for each bounce, never a gain, and it falls with the step.
    """
    engine = dropped(1.0, dt)
    whole = engine.energy() - G * RADIUS
    while impacts(engine) < 20:
        assert engine.step() == 0
    while velocity(engine, "ball")[2] > 0:
        assert engine.step() == 0
    kept = (engine.energy() - G * RADIUS) / whole
    assert 1 - 20 * dt * np.sqrt(2 * G / HEIGHT) * 1.05 < kept < 1 + 1e-9


def test_a_perfectly_elastic_ball_keeps_its_energy() -> None:
    """Twenty bounces at a millisecond to a thousandth: what a scheme that turns the velocity of the middle would do."""
    engine = dropped(1.0, 1e-3)
    whole = engine.energy() - G * RADIUS
    while impacts(engine) < 20:
        assert engine.step() == 0
    while velocity(engine, "ball")[2] > 0:
        assert engine.step() == 0
    assert (engine.energy() - G * RADIUS) / whole == pytest.approx(1, abs=1e-3)


def test_a_bouncing_ball_comes_to_rest_at_the_time_of_its_geometric_series() -> None:
    """FALL (1 + e) / (1 - e): infinitely many bounces in a finite time; slow ones are not counted as such."""
    engine = dropped(0.5, 5e-4)
    last = FALL * 1.5 / 0.5
    seen = watched(engine, 2.0, gap)
    still = np.flatnonzero(np.abs(seen) > 1e-5)[-1] * 5e-4
    assert still == pytest.approx(last, abs=0.02)
    assert impacts(engine) < 20
    assert abs(velocity(engine, "ball")[2]) < 1e-9


# Balls on balls


def in_a_row(places: list[float], speeds: list[float], masses: list[float], restitution: float) -> Engine:
    """Balls along x without gravity or friction."""
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", restitution=restitution, friction=0.0)
    for k, (x, v, m) in enumerate(zip(places, speeds, masses, strict=True)):
        ball(world, f"{k}", (x, 0, 0), m, vel=(v, 0, 0))
    return compiled(world)


def speeds(engine: Engine) -> list[float]:
    return [float(velocity(engine, name)[0]) for name in engine.names]


@pytest.mark.parametrize("restitution", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("masses", [(1.0, 1.0), (0.5, 4.0), (6.0, 0.2)])
def test_two_balls_part_with_the_speeds_of_newton(masses: tuple[float, float], restitution: float) -> None:
    """v_1' = (m_1 v_1 + m_2 v_2 - e m_2 (v_1 - v_2)) / (m_1 + m_2), and likewise; momentum to the digits that a
    contact so stiff leaves of a sum.
    """
    one, other = masses
    engine = advance(in_a_row([0, 0.5], [3.0, -1.0], [one, other], restitution), 0.3)
    common = (one * 3.0 - other) / (one + other)
    expected = [common - restitution * other * 4.0 / (one + other), common + restitution * one * 4.0 / (one + other)]
    assert speeds(engine) == pytest.approx(expected, abs=2e-4)
    assert one * speeds(engine)[0] + other * speeds(engine)[1] == pytest.approx(3 * one - other, abs=1e-10)


def test_a_glancing_impact_turns_the_part_along_the_line_of_centres_only() -> None:
    """A ball hits one at rest with its centre half a diameter off the line: equal masses part at a right angle."""
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", restitution=1.0, friction=0.0)
    ball(world, "0", (-0.5, RADIUS, 0), vel=(2.0, 0, 0))
    ball(world, "1", (0, 0, 0))
    engine = advance(compiled(world, 2.5e-4), 0.5)
    first, second = velocity(engine, "0"), velocity(engine, "1")
    assert first @ second == pytest.approx(0, abs=2e-3)
    assert first + second == pytest.approx([2.0, 0, 0], abs=1e-6)
    assert first @ first + second @ second == pytest.approx(4.0, rel=1e-4)
    assert second / np.linalg.norm(second) == pytest.approx([np.sqrt(0.75), -0.5, 0], abs=5e-3)


def test_a_cradle_with_gaps_passes_the_blow_on_to_the_last_ball() -> None:
    """Five equal balls 8 mm apart, which is more than a step's way: one after the other."""
    places = [-0.5, *(0.208 * np.arange(1, 5))]
    engine = advance(in_a_row(places, [2.0, 0, 0, 0, 0], [1.0] * 5, 1.0), 1.0)
    assert speeds(engine) == pytest.approx([0, 0, 0, 0, 2.0], abs=2e-3)


@pytest.mark.parametrize("apart", [1e-9, 1e-4])
def test_a_cradle_whose_balls_all_but_touch_passes_the_blow_on_to_the_last_ball(apart: float) -> None:
    """Less than a step's way apart, so that all of it happens in one step. In contact Newton's law does not decide."""
    places = [-0.5, *((2 * RADIUS + apart) * np.arange(1, 5))]
    engine = advance(in_a_row(places, [2.0, 0, 0, 0, 0], [1.0] * 5, 1.0), 1.0)
    assert speeds(engine) == pytest.approx([0, 0, 0, 0, 2.0], abs=2e-3)


def test_an_impact_adds_no_energy_whatever_touches_whatever() -> None:
    """Twelve balls of many masses thrown together, e = 1, no friction: the energy never grows, momentum stays."""
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", restitution=1.0, friction=0.0)
    rng = np.random.default_rng(2)
    masses = 10 ** rng.uniform(-1, 1, 12)
    for k in range(12):
        at = 0.35 * np.array([k % 3, k // 3 % 2, k // 6]) + 0.02 * rng.normal(size=3)
        ball(world, f"{k}", tuple(at), masses[k], vel=-4.0 * (at - (0.35, 0.17, 0.17)) + 0.3 * rng.normal(size=3))
    engine = compiled(world)
    before = sum(m * velocity(engine, f"{k}") for k, m in enumerate(masses))
    energies = watched(engine, 0.5, Engine.energy)
    assert (np.diff(energies) < 1e-9 * energies[0]).all()
    assert impacts(engine) > 5
    assert sum(m * velocity(engine, f"{k}") for k, m in enumerate(masses)) == pytest.approx(before, abs=1e-6)


# Limits


@pytest.mark.parametrize("restitution", [0.4, 0.8, 1.0])
def test_a_slider_bounces_between_its_stops(restitution: float) -> None:
    """Each stop takes e of the speed; it turns at the stop, to a step's way, and never goes past."""
    world = World(gravity=(0, 0, 0))
    world.body("cart", mass=3, inertia=(1, 1, 1), vel=(3.0, 0, 0))
    world.prismatic("rail", None, "cart", at=(0, 0, 0), axis=X)
    world.limit("stop", "rail", axis="z", low=-0.2, high=0.2, restitution=restitution)
    engine = compiled(world)
    places, seen = [], []
    for _ in range(1500):
        assert engine.step() == 0
        places.append(centre(engine, "cart")[0])
        seen.append(velocity(engine, "cart")[0])
    turns = np.flatnonzero(np.diff(np.sign(seen)) != 0) + 1
    assert len(turns) >= 2
    expected = 3.0 * (-restitution) ** np.arange(len(turns) + 1)
    assert np.array(seen)[[0, *turns]] == pytest.approx(expected, rel=1e-6)
    assert np.abs(places).max() < 0.2 + 1e-6
    for k, n in enumerate(turns):
        assert abs(places[n]) == pytest.approx(0.2, abs=2 * abs(expected[k]) * 1e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_pendulum_rises_from_a_stop_to_the_height_of_its_restitution(restitution: float) -> None:
    """A stop at the lowest point: 1 - cos(angle) after the bounce is e^2 of that before, to 1 %."""
    start, arm = 1.0, 0.7
    world = World()
    at = (-arm * np.sin(start), 0, -arm * np.cos(start))
    world.body("bob", mass=2, inertia=(0.05,) * 3, pos=at, quat=about((0, 1, 0), start))
    world.hinge("pivot", None, "bob", at=(0, 0, 0), axis=Y)
    world.limit("stop", "pivot", low=-start, high=10.0, restitution=restitution)
    engine = compiled(world, 5e-4)
    seen = watched(engine, 1.2, lambda e: angle(e, "pivot") + start)
    hit = int(np.argmin(seen > 2e-3))
    assert seen.min() > -1e-5
    assert 1 - np.cos(seen[hit:].max()) == pytest.approx(restitution**2 * (1 - np.cos(start)), rel=0.01, abs=1e-5)


def test_a_wheel_on_a_stop_throws_back_the_wheel_it_is_geared_to() -> None:
    """The gear holds in the impact: both turn round, each with e of its speed."""
    world = World(gravity=(0, 0, 0))
    for k, moment in enumerate((0.2, 0.9)):
        world.body(f"{k}", inertia=(moment,) * 3, pos=(k, 0, 0), spin=(0, 0, 6.0 if k == 0 else -2.0))
        world.hinge(f"axle {k}", None, f"{k}", at=(k, 0, 0), axis=Z)
    world.gear("mesh", "axle 0", "axle 1", ratio=-3.0)
    world.limit("stop", "axle 0", low=-100.0, high=1.0, restitution=0.6)
    engine = advance(compiled(world), 0.5)
    assert spin(engine, "0")[2] == pytest.approx(-3.6, rel=1e-6)
    assert spin(engine, "1")[2] == pytest.approx(1.2, rel=1e-6)
    assert angle(engine, "axle 0") == pytest.approx(-3 * angle(engine, "axle 1"), abs=1e-9)


# Jointed bodies

LENGTH, ROD, BALL, HIT = 0.9, 2.0, 0.5, 4.0
ABOUT_END = ROD * (LENGTH**2 + 0.02**2) / 12 + ROD * LENGTH**2 / 4


def struck_rod(arm: float, restitution: float, *, hinged: bool = True, away: float = 0.005) -> Engine:
    """A rod from the origin along x, on a hinge about z at its end or loose, hit at x = `arm` by a ball that starts
    `away` from it: so near, as a rule, that the first step lists the contact.
    """
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", restitution=restitution, friction=0.0)
    across = ROD * (LENGTH**2 + 0.02**2) / 12
    world.body("rod", mass=ROD, inertia=(ROD * 0.02**2 / 6, across, across), pos=(LENGTH / 2, 0, 0))
    world.shape("rod", Box(LENGTH, 0.02, 0.02))
    if hinged:
        world.hinge("pivot", None, "rod", at=(0, 0, 0), axis=Z)
    ball(world, "ball", (arm, -0.01 - RADIUS - away, 0), BALL, vel=(0, HIT, 0))
    return compiled(world)


@pytest.mark.parametrize("restitution", [0.5, 1.0])
@pytest.mark.parametrize("arm", [0.2, 0.6, 0.8])
def test_a_hinged_rod_is_struck_with_the_inertia_that_its_hinge_leaves(arm: float, restitution: float) -> None:
    """Impulse (1 + e) v / (1 / m + d^2 / I) with I about the hinge; the hinge holds in the impact."""
    engine = struck_rod(arm, restitution)
    while impacts(engine) == 0:
        assert engine.step() == 0
    impulse = (1 + restitution) * HIT / (1 / BALL + arm**2 / ABOUT_END)
    assert velocity(engine, "ball") == pytest.approx([0, HIT - impulse / BALL, 0], abs=2e-4)
    assert spin(engine, "rod") == pytest.approx([0, 0, impulse * arm / ABOUT_END], abs=2e-4)
    assert velocity(engine, "rod")[1] == pytest.approx(spin(engine, "rod")[2] * LENGTH / 2, rel=1e-3)
    assert engine.gap() < 2e-5


def test_a_hinge_holds_when_its_body_is_struck_by_one_from_afar() -> None:
    """The contact joins two islands while the machine runs: they are laid out anew, and nothing else changes."""
    engine = struck_rod(0.6, 0.5, away=0.2)
    while impacts(engine) == 0:
        assert engine.step() == 0
    impulse = 1.5 * HIT / (1 / BALL + 0.6**2 / ABOUT_END)
    assert velocity(engine, "ball")[1] == pytest.approx(HIT - impulse / BALL, abs=2e-4)
    assert velocity(engine, "rod")[1] == pytest.approx(spin(engine, "rod")[2] * LENGTH / 2, rel=1e-3)
    assert engine.gap() < 2e-5


@pytest.mark.parametrize("arm", [0.2, 0.45, 2 * 0.9 / 3, 0.85])
def test_the_hinge_of_a_struck_rod_feels_nothing_at_the_centre_of_percussion(arm: float) -> None:
    """Without restitution the blow is part of the step, and the hinge bears P (m d L / 2 I - 1): against the blow below
    2 L / 3, nothing there, along it beyond.
    """
    engine = struck_rod(arm, 0.0)
    blow = pivot = 0.0
    n = 0
    while n < 3:
        before = velocity(engine, "ball")[1]
        assert engine.step() == 0
        blow += BALL * (before - velocity(engine, "ball")[1])
        axes = engine.content.data.row.axes[joint_number(engine, "pivot")]
        pivot += (axes.T @ reaction(engine, "pivot")[:3])[1] * 1e-3
        n += blow > 0
    assert blow > 0.5
    assert pivot == pytest.approx(blow * (ROD * arm * LENGTH / 2 / ABOUT_END - 1), abs=1e-3 * blow)


def test_a_loose_rod_struck_at_the_centre_of_percussion_turns_about_its_end() -> None:
    engine = struck_rod(LENGTH * 2 / 3, 0.7, hinged=False)
    while impacts(engine) == 0:
        assert engine.step() == 0
    w = spin(engine, "rod")[2]
    assert w > 1
    assert velocity(engine, "rod")[1] - w * LENGTH / 2 == pytest.approx(0, abs=2e-3 * w)


# Friction in impacts


def thrown(restitution: float, friction: float, sideways: float, heading: float = 0.0) -> Engine:
    """A solid ball just after its impact on a plane with 2 m/s, thrown along it without spin."""
    world = World(gravity=(0, 0, 0))
    world.plane()
    world.material("default", "default", restitution=restitution, friction=friction)
    along = sideways * np.array([np.cos(heading), np.sin(heading), 0])
    ball(world, "ball", (0, 0, 0.2), vel=along - 2.0 * Z)
    return advance(compiled(world), 0.3)


@pytest.mark.parametrize("heading", [0.0, 0.7])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_friction_in_an_impact_is_that_of_coulomb(restitution: float, heading: float) -> None:
    """It slides throughout: the impulse along the plane is mu times the normal one, against the slip, and it spins the
    ball up by the moment of that impulse, whose arm is longer than the radius by the gap that is left, v h at most.
    """
    engine = thrown(restitution, 0.2, 5.0, heading)
    along = np.array([np.cos(heading), np.sin(heading), 0])
    normal = velocity(engine, "ball")[2] + 2.0
    assert normal == pytest.approx(2.0 * (1 + restitution), abs=0.01)
    rubbed = 5.0 * along - velocity(engine, "ball") * [1, 1, 0]
    assert rubbed == pytest.approx(0.2 * normal * along, abs=2e-4 * normal)
    assert spin(engine, "ball") == pytest.approx(np.cross(-RADIUS * Z, -rubbed) / (0.4 * RADIUS**2), rel=0.02, abs=1e-6)


@pytest.mark.parametrize("sideways", [0.01, 0.3, 2.0, 20.0])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("friction", [0.0, 0.1, 0.6])
def test_friction_in_an_impact_is_never_above_its_bound(friction: float, restitution: float, sideways: float) -> None:
    """|impulse along the plane| <= mu x normal impulse, and it never turns the slip round."""
    engine = thrown(restitution, friction, sideways)
    v = velocity(engine, "ball")
    assert abs(sideways - v[0]) <= friction * (v[2] + 2.0) * (1 + 1e-6) + 1e-12
    slip = v[0] - RADIUS * spin(engine, "ball")[1]
    assert slip >= -1e-4


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_ball_that_grips_in_the_impact_leaves_rolling(restitution: float) -> None:
    """mu above what sticking needs: 2 / 7 of the speed goes into spin, as for a bowl that begins to roll; to the
    gap of at most v h that is left when it turns round, which makes its arm longer by 2 %.
    """
    engine = thrown(restitution, 0.9, 1.0)
    assert velocity(engine, "ball")[0] == pytest.approx(5 / 7, rel=0.01)
    assert spin(engine, "ball")[1] == pytest.approx(5 / 7 / RADIUS, rel=0.02)
