"""Joints with two axes or two anchors: universal joint, car wheel, double hinge and distance."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import ellipk
from worlds import (
    G,
    about,
    advance,
    attitude,
    centre,
    compiled,
    direction,
    joint_number,
    orders,
    point,
    push,
    reaction,
    rows_of,
    spin,
    velocity,
    watched,
)

from plant.engine.compile import Engine
from plant.model import Bound
from plant.world.world import World

X, Y, Z = np.eye(3)


def angles(engine: Engine, joint: str) -> np.ndarray:
    """About the axis in a, about the axis in b [rad]."""
    return engine.content.data.state.angle[joint_number(engine, joint)].copy()


def rotation(engine: Engine, body: str) -> Rotation:
    return Rotation.from_quat(attitude(engine, body)[[1, 2, 3, 0]])


def travel(engine: Engine, joint: str) -> float:
    """Slide of b's anchor along the first axis [m]."""
    return float(engine.content.data.row.slide[joint_number(engine, joint), 0])


def motor_force(engine: Engine) -> float:
    (k,) = rows_of(engine, int(Bound.MOTOR))
    return float(engine.content.data.bounded.value[k] / engine.content.model.setup.h)


# Universal joint


@pytest.mark.parametrize(("first", "second"), [(0.5, -0.8), (-1.2, 0.3), (2.5, 1.0)])
def test_the_two_angles_of_a_universal_joint_are_turns_about_its_axes_in_order(first: float, second: float) -> None:
    """Servos bring them to given values: the attitude is a turn about the axis of a, then one about the axis of b."""
    world = World(gravity=(0, 0, 0))
    world.body("b", inertia=(0.1, 0.15, 0.2), pos=(0.3, 0, 0))
    world.universal("j", None, "b", at=(0, 0, 0), axis_a=Z, axis_b=X)
    world.servo("a", "j", axis="turn_a", position=first, gain=20)
    world.servo("b", "j", axis="turn_b", position=second, gain=20)
    engine = advance(compiled(world), 2.0)
    assert angles(engine, "j") == pytest.approx([first, second], abs=1e-6)
    expected = Rotation.from_rotvec(first * Z) * Rotation.from_rotvec(second * X)
    assert (rotation(engine, "b").inv() * expected).magnitude() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_angles_of_a_universal_joint_are_unwound(axis: int) -> None:
    """Motors turn one of them by 25 rad at 5 rad/s, and hold the other at 0.4 rad; it starts at zero."""
    world = World(gravity=(0, 0, 0))
    world.body("b", inertia=(0.1, 0.1, 0.1))
    world.universal("j", None, "b", at=(0, 0, 0), axis_a=X, axis_b=Y)
    names = ("turn_a", "turn_b")
    world.motor("turn", "j", axis=names[axis], speed=5.0)  # type: ignore[arg-type]
    world.servo("hold", "j", axis=names[1 - axis], position=0.4, gain=20)  # type: ignore[arg-type]
    engine = advance(compiled(world), 5.0)
    expected = [0.4, 0.4]
    expected[axis] = 25.0
    assert angles(engine, "j") == pytest.approx(expected, abs=1e-3)


BEND = np.radians(35)
OUT = np.array([np.cos(BEND), np.sin(BEND), 0.0])


def cardan() -> World:
    """Two shafts at an angle; the pin of the driving one is perpendicular to the plane of the shafts at the start."""
    world = World(gravity=(0, 0, 0))
    world.body("in", inertia=(0.02, 0.05, 0.05), pos=(-0.3, 0, 0))
    world.body("out", inertia=(0.02, 0.05, 0.05), pos=0.3 * OUT, quat=about((0, 0, 1), BEND))
    world.hinge("bearing in", None, "in", at=(-0.5, 0, 0), axis=X)
    world.hinge("bearing out", None, "out", at=0.5 * OUT, axis=OUT)
    world.universal("cross", "in", "out", at=(0, 0, 0), axis_a=Z, axis_b=np.cross(Z, OUT))
    return world


def turn_in(engine: Engine) -> float:
    return float(engine.content.data.state.angle[joint_number(engine, "bearing in"), 0])


def test_speeds_of_a_cardan_shaft() -> None:
    """out / in = cos(bend) / (1 - sin^2(bend) sin^2(turn)): between cos(bend) and 1 / cos(bend), twice in each turn."""
    world = cardan()
    world.motor("drive", "bearing in", speed=3.0)
    engine = compiled(world, 5e-4)
    seen = []
    for _ in range(250):
        advance(engine, 0.01)
        ratio = np.cos(BEND) / (1 - np.sin(BEND) ** 2 * np.sin(turn_in(engine)) ** 2)
        assert spin(engine, "in") == pytest.approx(3.0 * X, abs=1e-4)
        assert spin(engine, "out") == pytest.approx(3.0 * ratio * OUT, abs=5e-3)
        seen.append(spin(engine, "out") @ OUT / 3.0)
    assert min(seen) == pytest.approx(np.cos(BEND), abs=2e-3)
    assert max(seen) == pytest.approx(1 / np.cos(BEND), abs=2e-3)


def test_joint_angles_of_a_cardan_shaft() -> None:
    """From the direction of the out shaft seen in the in shaft, which turns about its own axis: with c, s of the bend,
    sin(b) = s sin(turn) and tan(a) = -s c (1 - cos(turn)) / (c^2 + s^2 cos(turn)).
    """
    world = cardan()
    world.motor("drive", "bearing in", speed=3.0)
    engine = compiled(world, 5e-4)
    c, s = np.cos(BEND), np.sin(BEND)
    for _ in range(250):
        advance(engine, 0.01)
        t = turn_in(engine)
        a = np.arctan2(-s * c * (1 - np.cos(t)), c**2 + s**2 * np.cos(t))
        assert angles(engine, "cross") == pytest.approx([a, np.arcsin(s * np.sin(t))], abs=1e-4)


@pytest.mark.parametrize("turn", [0.0, 0.6, np.pi / 2])
def test_torque_through_a_cardan_shaft(turn: float) -> None:
    """No power is lost: held at the in shaft, a torque T on the out shaft is felt as T out' / in'."""
    world = cardan()
    world.servo("hold", "bearing in", position=turn, gain=20)
    engine = advance(compiled(world), 1.5)
    push(engine, "out", torque=tuple(7.0 * OUT))
    advance(engine, 0.5)
    ratio = np.cos(BEND) / (1 - np.sin(BEND) ** 2 * np.sin(turn) ** 2)
    assert motor_force(engine) == pytest.approx(-7.0 * ratio, rel=1e-4)


# Car wheel

WHEEL, STIFFNESS, DAMPING = 15.0, 2e4, 300.0


def wheel_on_ground(*, damping: float = 0.0, **state: object) -> World:
    """A wheel hung under the ground by its suspension: steering axis up, axle along y."""
    world = World()
    world.body("wheel", mass=WHEEL, inertia=(0.4, 0.7, 0.4), **state)  # type: ignore[arg-type]
    world.car_wheel("j", None, "wheel", at=(0, 0, 0), steering=Z, axle=Y)
    world.spring_on("spring", "j", axis="x", stiffness=STIFFNESS, damping=damping)
    return world


def test_a_suspension_sags_by_weight_over_stiffness() -> None:
    world = wheel_on_ground(damping=2 * DAMPING)
    world.servo("steer", "j", axis="turn_a", position=0.0, gain=10)
    engine = advance(compiled(world), 3.0)
    assert travel(engine, "j") == pytest.approx(-WHEEL * G / STIFFNESS, rel=1e-6)
    assert centre(engine, "wheel") == pytest.approx([0, 0, -WHEEL * G / STIFFNESS], abs=1e-8)


def test_a_suspension_swings_at_its_natural_frequency() -> None:
    """Released at rest length it swings about its sag: z = -(m g / k) (1 - cos(w t)), w^2 = k / m."""
    engine = compiled(wheel_on_ground())
    rate = np.sqrt(STIFFNESS / WHEEL)
    seen = watched(engine, 1.0, lambda e: travel(e, "j"))
    t = np.arange(len(seen)) * 1e-3
    sag = WHEEL * G / STIFFNESS
    assert seen == pytest.approx(-sag * (1 - np.cos(rate * t)), abs=0.025 * sag)
    up = np.flatnonzero((seen[:-1] < -sag) & (seen[1:] >= -sag))
    when = (up + (-sag - seen[up]) / (seen[up + 1] - seen[up])) * 1e-3
    assert np.diff(when).mean() == pytest.approx(2 * np.pi / rate, rel=1e-3)


def test_a_suspension_stops_at_its_limit() -> None:
    """Soft for its load, it comes down on the bump stop; pushed up, it comes to rest on the other one."""
    world = wheel_on_ground(damping=2 * DAMPING)
    world.limit("stops", "j", axis="x", low=-0.1, high=0.05)
    engine = compiled(world)
    push(engine, "wheel", (0, 0, -3000.0))
    seen = watched(engine, 1.0, lambda e: travel(e, "j"))
    assert seen.min() > -0.1 - 1e-5
    assert seen[-1] == pytest.approx(-0.1, abs=1e-6)
    push(engine, "wheel", (0, 0, 3000.0))
    seen = watched(engine, 1.0, lambda e: travel(e, "j"))
    assert seen.max() < 0.05 + 1e-5
    assert seen[-1] == pytest.approx(0.05, abs=1e-6)


def test_a_bump_stop_bears_what_the_spring_does_not() -> None:
    world = wheel_on_ground(damping=2 * DAMPING)
    world.limit("stops", "j", axis="x", low=-0.1, high=0.05)
    engine = compiled(world)
    push(engine, "wheel", (0, 0, -3000.0))
    advance(engine, 1.0)
    (k,) = rows_of(engine, int(Bound.LIMIT))
    held = engine.content.data.bounded.value[k] * 1e3
    assert held == pytest.approx(3000 + WHEEL * G - 0.1 * STIFFNESS, rel=1e-4)


def test_a_wheel_steers_and_rolls_on_its_own_axes() -> None:
    """Steered to 0.35 rad by a servo and driven at 20 rad/s by a motor while it swings on its spring: its spin is 20
    rad/s about an axle that has turned with the steering, and its turns are counted.
    """
    world = wheel_on_ground(damping=DAMPING)
    world.servo("steer", "j", axis="turn_a", position=0.35, gain=15)
    world.motor("drive", "j", axis="turn_b", speed=20.0, force=50.0)
    engine = advance(compiled(world), 2.0)
    axle = np.array([-np.sin(0.35), np.cos(0.35), 0])
    assert spin(engine, "wheel") == pytest.approx(20.0 * axle, abs=1e-3)
    assert direction(engine, "wheel", (0, 1, 0)) == pytest.approx(axle, abs=1e-5)
    steer, roll = angles(engine, "j")
    assert steer == pytest.approx(0.35, abs=1e-6)
    # torque 50 N m on 0.7 kg m^2 brings it to speed in 0.28 s
    assert roll == pytest.approx(20.0 * 2.0 - 20.0 * 0.28 / 2, abs=0.02)
    expected = Rotation.from_rotvec(steer * Z) * Rotation.from_rotvec(roll * Y)
    assert (rotation(engine, "wheel").inv() * expected).magnitude() == pytest.approx(0, abs=1e-5)
    assert centre(engine, "wheel")[:2] == pytest.approx([0, 0], abs=1e-6)


def test_a_steered_wheel_that_rolls_needs_its_gyroscopic_moment() -> None:
    """Steered at a constant rate w while it rolls at s: the suspension bears I s w perpendicular to both."""
    rate, roll = 2.0, 30.0
    world = World(gravity=(0, 0, 0))
    world.body("wheel", mass=WHEEL, inertia=(0.4, 0.7, 0.4), spin=(0, roll, rate))
    world.universal("j", None, "wheel", at=(0, 0, 0), axis_a=Z, axis_b=Y)
    world.motor("steer", "j", axis="turn_a", speed=rate)
    world.motor("drive", "j", axis="turn_b", speed=roll)
    engine = advance(compiled(world), 0.5)
    moment = reaction(engine, "j")[3]
    assert abs(moment) == pytest.approx(0.7 * roll * rate, rel=2e-3)


def test_a_quarter_car_moves_as_two_masses_on_springs() -> None:
    """Sprung mass on a guide, wheel on its suspension, tyre as a spring to the ground: against DOP853 with a step of
    road load.
    """
    body, tyre = 300.0, 1.6e5
    world = World(gravity=(0, 0, 0))
    world.body("car", mass=body, inertia=(50, 50, 50), pos=(0, 0, 1))
    world.body("wheel", mass=WHEEL, inertia=(0.4, 0.7, 0.4), pos=(0, 0, 0.3))
    world.prismatic("guide", None, "car", at=(0, 0, 1), axis=Z)
    world.car_wheel("j", "car", "wheel", at=(0, 0, 0.3), steering=Z, axle=Y)
    world.spring_on("spring", "j", axis="x", stiffness=STIFFNESS, damping=1500.0)
    world.spring("tyre", None, "wheel", at_a=(0, 0, 0), at_b=(0, 0, 0.3), stiffness=tyre)
    world.servo("steer", "j", axis="turn_a", position=0.0, gain=10)
    world.servo("brake", "j", axis="turn_b", position=0.0, gain=10)
    engine = compiled(world)
    push(engine, "wheel", (0, 0, 2000.0))

    def rates(_: float, y: np.ndarray) -> list[float]:
        car, wheel, car_v, wheel_v = y
        between = STIFFNESS * (wheel - car) + 1500.0 * (wheel_v - car_v)
        return [car_v, wheel_v, between / body, (2000.0 - tyre * wheel - between) / WHEEL]

    seconds = np.linspace(0, 1.5, 31)
    exact = solve_ivp(rates, (0, 1.5), np.zeros(4), t_eval=seconds, method="DOP853", rtol=1e-10, atol=1e-12).y
    for k in range(1, 31):
        advance(engine, 0.05)
        assert centre(engine, "car")[2] - 1 == pytest.approx(exact[0, k], abs=1e-4)
        assert centre(engine, "wheel")[2] - 0.3 == pytest.approx(exact[1, k], abs=2e-4)
    assert exact[0].max() > 0.01


# Double hinge

LINK, ARM, MASS, MOMENT = 0.5, 0.3, 2.0, 0.08


def compass(dt: float, link: float, body: float) -> Engine:
    """A body hung from the ground by a link without mass; angles from straight down, about -y."""

    def down(turn: float) -> np.ndarray:
        return np.array([np.sin(turn), 0, -np.cos(turn)])

    world = World()
    knee = LINK * down(link)
    world.body("b", mass=MASS, inertia=(MOMENT,) * 3, pos=knee + ARM * down(body), quat=about((0, 1, 0), -body))
    world.double_hinge("j", None, "b", at_a=(0, 0, 0), at_b=knee, axis=Y)
    return compiled(world, dt)


def compass_rates(_: float, s: np.ndarray) -> np.ndarray:
    """Lagrange's equations of a link of length L without mass and a body at the arm d behind it."""
    a, b, da, db = s
    c, sn = np.cos(a - b), np.sin(a - b)
    matrix = MASS * np.array([[LINK**2, LINK * ARM * c], [LINK * ARM * c, ARM**2 + MOMENT / MASS]])
    force = MASS * np.array(
        [-LINK * ARM * sn * db**2 - G * LINK * np.sin(a), LINK * ARM * sn * da**2 - G * ARM * np.sin(b)]
    )
    return np.concatenate([[da, db], np.linalg.solve(matrix, force)])


def test_a_body_on_a_double_hinge_swings_like_a_compound_double_pendulum() -> None:
    """The link has no mass: against DOP853 in the two angles, at first order in the step."""
    start, seconds = (0.9, -0.3), 1.5
    exact = solve_ivp(compass_rates, (0, seconds), [*start, 0, 0], method="DOP853", rtol=1e-11, atol=1e-12).y[:2, -1]
    goal = LINK * np.array([np.sin(exact[0]), -np.cos(exact[0])]) + ARM * np.array(
        [np.sin(exact[1]), -np.cos(exact[1])]
    )
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        engine = advance(compass(dt, *start), seconds)
        errors.append(float(np.linalg.norm(centre(engine, "b")[[0, 2]] - goal)))
    assert errors[-1] < 1e-3
    assert (orders(errors) > 0.85).all()


def test_a_double_hinge_keeps_its_axes_apart_and_parallel() -> None:
    """Ten seconds of swinging, and then of pushes out of the plane: length, plane and axis hold."""
    engine = compass(1e-3, 2.2, 0.5)
    rng = np.random.default_rng(5)
    for k in range(200):
        if k >= 100:
            push(engine, "b", tuple(rng.normal(size=3) * 20), tuple(rng.normal(size=3) * 3))
        advance(engine, 0.05)
        knee = point(engine, "b", (0, 0, ARM))
        assert np.linalg.norm(knee) == pytest.approx(LINK, abs=1e-5)
        assert knee[1] == pytest.approx(0, abs=1e-5)
        assert direction(engine, "b", (0, 1, 0)) == pytest.approx(Y, abs=2e-4)


def test_two_bodies_on_a_double_hinge_keep_their_momentum() -> None:
    """Free in space and thrown with different spins: linear momentum to rounding, the moment of momentum about the
    axis to the order of the step, the axes as far apart as they were.
    """
    world = World(gravity=(0, 0, 0))
    world.body("a", mass=2, inertia=(0.1, 0.1, 0.1), pos=(0, 0, 0), spin=(0, 0, 4.0))
    world.body("b", mass=3, inertia=(0.2, 0.2, 0.2), pos=(1.0, 0, 0), spin=(0, 0, -3.0), vel=(0, 1.5, 0))
    world.double_hinge("j", "a", "b", at_a=(0.3, 0, 0), at_b=(0.8, 0, 0), axis=Z)
    engine = compiled(world)

    def momenta() -> tuple[np.ndarray, float]:
        linear = 2 * velocity(engine, "a") + 3 * velocity(engine, "b")
        turning = 0.1 * spin(engine, "a") + 0.2 * spin(engine, "b")
        turning += 2 * np.cross(centre(engine, "a"), velocity(engine, "a"))
        turning += 3 * np.cross(centre(engine, "b"), velocity(engine, "b"))
        return linear, float(turning[2])

    linear, turning = momenta()
    for _ in range(100):
        advance(engine, 0.05)
        assert momenta()[0] == pytest.approx(linear, abs=1e-9)
        assert momenta()[1] == pytest.approx(turning, rel=2e-4)
        apart = point(engine, "b", (-0.2, 0, 0)) - point(engine, "a", (0.3, 0, 0))
        assert np.linalg.norm(apart) == pytest.approx(0.5, abs=1e-5)
        assert apart[2] == pytest.approx(0, abs=1e-6)


# Distance


def bob(world: World, at: np.ndarray, **state: object) -> None:
    world.body("bob", mass=2, inertia=(1e-3,) * 3, pos=at, **state)  # type: ignore[arg-type]
    world.distance("rope", None, "bob", at_a=(0, 0, 0), at_b=at)


@pytest.mark.parametrize("start", [0.1, 1.2])
def test_period_of_a_pendulum_on_a_distance(start: float) -> None:
    """T = 4 sqrt(l / g) K(sin^2(start / 2)) of a point mass; the bob does not turn with the rope."""
    length = 0.8
    world = World()
    bob(world, length * np.array([np.sin(start), 0, -np.cos(start)]), spin=(0, 0, 1.0))
    engine = compiled(world)
    exact = 4 * np.sqrt(length / G) * ellipk(np.sin(start / 2) ** 2)
    seen = watched(engine, 3.5 * exact, lambda e: float(centre(e, "bob")[0]))
    k = np.flatnonzero((seen[:-1] > 0) & (seen[1:] <= 0))
    when = (k + seen[k] / (seen[k] - seen[k + 1])) * 1e-3
    assert (when[-1] - when[0]) / (len(when) - 1) == pytest.approx(exact, rel=1e-4)
    assert spin(engine, "bob") == pytest.approx([0, 0, 1.0], abs=1e-12)


def test_a_spherical_pendulum_on_a_distance_goes_round_its_cone() -> None:
    """rate^2 = g / (l cos(tilt)), height and radius stay, and the pull is m g / cos(tilt)."""
    length, tilt = 0.8, 0.7
    rate = np.sqrt(G / (length * np.cos(tilt)))
    radius = length * np.sin(tilt)
    world = World()
    bob(world, np.array([radius, 0, -length * np.cos(tilt)]), vel=(0, rate * radius, 0))
    engine = advance(compiled(world, 2.5e-4), 2.0)
    x, y, z = centre(engine, "bob")
    assert np.hypot(x, y) == pytest.approx(radius, rel=1e-3)
    assert z == pytest.approx(-length * np.cos(tilt), rel=1e-3)
    assert np.angle(np.exp(1j * (np.arctan2(y, x) - rate * 2.0))) == pytest.approx(0, abs=5e-3)
    assert abs(reaction(engine, "rope")[0]) == pytest.approx(2 * G / np.cos(tilt), rel=2e-3)
    assert np.linalg.norm([x, y, z]) == pytest.approx(length, abs=4e-6)


def test_two_bodies_on_a_distance_orbit_their_common_centre() -> None:
    """m_1 r_1 = m_2 r_2, the pull is m_1 r_1 w^2, and after the time t they stand at the angle w t."""
    heavy, light, length, rate = 3.0, 1.0, 0.8, 5.0
    inner, outer = length * light / (heavy + light), length * heavy / (heavy + light)
    world = World(gravity=(0, 0, 0))
    world.body("heavy", mass=heavy, inertia=(0.01,) * 3, pos=(-inner, 0, 0), vel=(0, -inner * rate, 0))
    world.body("light", mass=light, inertia=(0.01,) * 3, pos=(outer, 0, 0), vel=(0, outer * rate, 0))
    world.distance("rod", "heavy", "light", at_a=(-inner, 0, 0), at_b=(outer, 0, 0))
    engine = compiled(world, 5e-4)
    for k in range(1, 41):
        advance(engine, 0.1)
        way = np.array([np.cos(rate * 0.1 * k), np.sin(rate * 0.1 * k), 0])
        assert centre(engine, "light") == pytest.approx(outer * way, abs=2e-3)
        assert centre(engine, "heavy") == pytest.approx(-inner * way, abs=2e-3)
        assert np.linalg.norm(centre(engine, "light") - centre(engine, "heavy")) == pytest.approx(length, abs=5e-6)
    assert abs(reaction(engine, "rod")[0]) == pytest.approx(light * outer * rate**2, rel=1e-3)


def test_a_distance_pulls_and_pushes_at_its_anchors() -> None:
    """A bar hung level on two vertical rods, its weight off the middle: they share it by the lever."""
    world = World()
    world.body("bar", mass=4, inertia=(0.1, 1, 1), com=(0.2, 0, 0))
    world.distance("left", None, "bar", at_a=(-0.5, 0, 1), at_b=(-0.5, 0, 0))
    world.distance("right", None, "bar", at_a=(0.5, 0, 1), at_b=(0.5, 0, 0))
    engine = advance(compiled(world), 0.2)
    assert reaction(engine, "left")[0] == pytest.approx(-4 * G * 0.3, rel=1e-4)
    assert reaction(engine, "right")[0] == pytest.approx(-4 * G * 0.7, rel=1e-4)
