"""Contacts by elastic foundation in both cores, against closed forms and sums over columns."""

from typing import Any

import numpy as np
import pytest
from foundation_cases import (
    BALL,
    CUBE,
    DISC,
    LAYER,
    MASS,
    RADIUS,
    SIDE,
    SLAB,
    cap_moment,
    cap_volume,
    floor,
    placed,
    solid,
    static_depth,
)
from scipy.integrate import solve_ivp
from worlds import G, advance, angular_momentum, centre, direction, push, spin, velocity, watched

from plant.collision.shape.shapes import Sphere, Torus
from plant.engine.compile import Engine, Spare, compile_world
from plant.engine.live import take_in
from plant.natural.builder import Options
from plant.world.checks import WorldError
from plant.world.world import World

STEPPERS = ["spook", "ali3p"]
both = pytest.mark.parametrize("stepper", STEPPERS)


@pytest.mark.parametrize("stepper", ["spook", "linearised", "projected", "ali3p"])
@pytest.mark.parametrize("modulus", [1e5, 1e7, 1e9])
def test_a_ball_rests_where_the_volume_of_its_cap_carries_it(stepper: str, modulus: float) -> None:
    """K V = m g, from 9 mm to 0.08 mm deep. It is put a thousandth of that too high and swings down."""
    depth = static_depth(modulus)
    engine = placed(BALL, (0, 0, RADIUS - 0.999 * depth), stepper, modulus=modulus, dissipation=10.0)
    seen = watched(advance(engine, 1.0), 0.2, lambda e: centre(e, "body")[2])
    assert RADIUS - seen.mean() == pytest.approx(depth, rel=1e-4)


@both
@pytest.mark.parametrize("modulus", [1e6, 1e8, 1e10])
def test_a_cube_rests_on_its_whole_face(stepper: str, modulus: float) -> None:
    """d = m g / (K A). At the stiffest the face would swing 25 times as fast as the step can follow."""
    depth = MASS * G * LAYER / (modulus * SIDE**2)
    engine = placed(CUBE, (0, 0, SIDE / 2 - 0.999 * depth), stepper, modulus=modulus, dissipation=10.0)
    seen = watched(advance(engine, 1.0), 0.2, lambda e: centre(e, "body")[2])
    assert SIDE / 2 - seen.mean() == pytest.approx(depth, rel=1e-4)
    assert abs(spin(engine, "body")).max() < 1e-9


@both
def test_the_list_of_contacts_tells_of_an_overlap(stepper: str) -> None:
    """One contact: point and depth of the cap's centroid and mean, the load, the same feature in every step."""
    modulus = 1e6
    depth = static_depth(modulus)
    engine = placed(BALL, (0.3, 0.2, RADIUS - depth), stepper, modulus=modulus)
    advance(engine, 0.05)
    contact = engine.content.data.contact
    feature = int(contact.feature[0])
    advance(engine, 0.05)
    volume, middle = cap_volume(depth), 3 * (2 * RADIUS - depth) ** 2 / (4 * (3 * RADIUS - depth))
    assert contact.count[0] == 1
    assert contact.feature[0] == feature
    assert contact.point[0] == pytest.approx([0.3, 0.2, RADIUS - depth - middle], abs=1e-7)
    assert contact.normal[0] == pytest.approx([0, 0, 1])
    assert contact.depth[0] == pytest.approx(volume / (np.pi * (2 * RADIUS * depth - depth**2)), rel=1e-4)
    assert contact.impulse[0, 0] / 1e-3 == pytest.approx(MASS * G, rel=1e-3)


@both
def test_a_collision_is_logged_once(stepper: str) -> None:
    engine = placed(CUBE, (0, 0, SIDE / 2 + 0.01), stepper, modulus=1e6, dissipation=2.0)
    advance(engine, 0.03)
    log, contact = engine.content.data.log, engine.content.data.contact
    assert log.count[0] == 0
    advance(engine, 0.04)
    assert log.count[0] == 1
    assert log.body[0].tolist() == [0, -1]
    assert log.point[0, 2] == pytest.approx(0.0, abs=1e-3)
    assert log.feature[0] == contact.feature[0]


@both
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_a_ball_bounces_as_its_columns_make_it(stepper: str, loss: float) -> None:
    """At 1 m/s, 20 steps of contact: what scipy finds for m x'' = -K V (1 + a x')."""
    k, speed = 1e6 / LAYER, 1.0

    def motion(_: float, y: np.ndarray) -> list[float]:
        return [y[1], -max(0.0, k * cap_volume(y[0]) * (1 + loss * y[1])) / MASS]

    def parted(_: float, y: np.ndarray) -> float:
        return float(y[0])

    parted.terminal, parted.direction = True, -1  # type: ignore[attr-defined]
    truth = -solve_ivp(motion, (0, 1), [1e-9, speed], events=parted, rtol=1e-9, atol=1e-12, max_step=1e-4).y[1, -1]
    for late in (0.0, 0.3, 0.7):
        engine = placed(
            BALL, (0, 0, RADIUS + 1e-3 * (1 + late)), stepper, weight=0.0, dissipation=loss, vel=(0, 0, -speed)
        )
        advance(engine, 0.1)
        assert velocity(engine, "body")[2] == pytest.approx(truth, rel=0.015)


@pytest.mark.parametrize(
    ("stepper", "modulus"), [("spook", 1e6), ("spook", 1e8), ("spook", 1e10), ("ali3p", 1e6), ("ali3p", 1e7)]
)
@pytest.mark.parametrize("late", [0.0, 0.5])
def test_no_layer_is_too_stiff_for_the_step(stepper: str, modulus: float, late: float) -> None:
    """A cube that falls on a corner, an edge and a face in turn has no more energy after a blow than before.

    The trapezoidal rule of the other core holds this as long as it resolves the blow, not beyond.
    """
    turned = np.array([0.9, 0.3, 0.2, 0.1]) / np.linalg.norm([0.9, 0.3, 0.2, 0.1])
    engine = placed(
        CUBE,
        (0, 0, 0.2 + 1e-3 * late),
        stepper,
        modulus=modulus,
        dissipation=0.2,
        vel=(0.5, 0, -1),
        spin=(1, 2, 3),
        quat=turned,
    )
    contact, flights = engine.content.data.contact, [engine.energy()]
    for _ in range(1500):
        assert engine.step(1) == 0
        if not (contact.depth[: contact.count[0]] > 0).any():
            flights.append(engine.energy())
    assert np.diff(flights).max() < 2e-3 * flights[0]
    assert flights[-1] < 0.8 * flights[0]
    assert 0 < centre(engine, "body")[2] < 0.25


def roll(stepper: str, loss: float) -> tuple[float, float]:
    """Angular deceleration of a ball that rolls, and how far it is from rolling [m/s]."""
    modulus = 1e5
    depth = static_depth(modulus)
    arm = 3 * (2 * RADIUS - depth) ** 2 / (4 * (3 * RADIUS - depth))
    engine = placed(
        BALL,
        (0, 0, RADIUS - depth),
        stepper,
        modulus=modulus,
        dissipation=loss,
        friction=0.8,
        vel=(10 * arm, 0, 0),
        spin=(0, 10, 0),
    )
    advance(engine, 0.1)
    before = spin(engine, "body")[1]
    advance(engine, 0.3)
    after = spin(engine, "body")[1]
    return (before - after) / 0.3 / ((before + after) / 2), velocity(engine, "body")[0] - after * arm


@both
def test_a_rolling_ball_is_slowed_by_the_columns_in_front_of_it(stepper: str) -> None:
    """(I + m r^2) dw/dt = -K a w times the sum of x^2 over the columns; r reaches to the centroid of the overlap."""
    loss, depth = 0.5, static_depth(1e5)
    arm = 3 * (2 * RADIUS - depth) ** 2 / (4 * (3 * RADIUS - depth))
    rate = 1e5 / LAYER * loss * cap_moment(depth)[0] / (0.4 * MASS * RADIUS**2 + MASS * arm**2)
    seen, slip = roll(stepper, loss)
    assert seen == pytest.approx(rate, rel=0.01)
    assert abs(slip) < 1e-3


@both
def test_without_dissipation_nothing_slows_it(stepper: str) -> None:
    assert roll(stepper, 0.0)[0] == pytest.approx(0.0, abs=1e-4)


@both
@pytest.mark.parametrize("shape", [CUBE, DISC], ids=["cube", "disc"])
def test_a_spinning_body_is_stopped_by_the_torque_of_its_face(stepper: str, shape: Any) -> None:
    """mu m g g with the radius of gyration g of the face, the same as that of the body: dw/dt = -mu g / g."""
    gyration = SIDE / np.sqrt(6) if shape is CUBE else shape.radius / np.sqrt(2)
    high, face = (SIDE / 2, SIDE**2) if shape is CUBE else (0.025, np.pi * shape.radius**2)
    modulus, friction = 1e7, 0.4
    depth = MASS * G * LAYER / (modulus * face)
    engine = placed(shape, (0, 0, high - depth), stepper, modulus=modulus, friction=friction, spin=(0, 0, 10))
    stops = 10 * gyration / (friction * G)
    seen = watched(engine, 0.9 * stops, lambda e: spin(e, "body")[2])
    assert seen == pytest.approx(10 - friction * G / gyration * 1e-3 * np.arange(len(seen)), abs=0.05)
    advance(engine, 0.3)
    assert np.abs(spin(engine, "body")).max() < 1e-3
    assert np.abs(velocity(engine, "body")).max() < 1e-3


@both
@pytest.mark.parametrize("friction", [0.3, 0.6])
def test_a_slab_creeps_below_the_angle_of_friction_and_slides_above(stepper: str, friction: float) -> None:
    """Below: tan = mu u / sqrt(u^2 + v_s^2). Above: g (sin - mu cos)."""
    modulus, slow = 1e7, 1e-3
    gentle, steep = np.arctan(0.8 * friction), np.arctan(1.3 * friction)
    engines = []
    for slope in (gentle, steep):
        depth = MASS * G * np.cos(slope) * LAYER / (modulus * SIDE**2)
        law = {"modulus": modulus, "friction": friction, "slow": slow, "dissipation": 5.0}
        engines.append(placed(SLAB, (0, 0, SLAB.z / 2 - depth), stepper, slope=slope, **law))
    creeps, slides = engines
    advance(creeps, 0.5)
    assert velocity(creeps, "body")[0] == pytest.approx(slow * 0.8 / np.sqrt(1 - 0.8**2), rel=1e-3)
    advance(slides, 0.1)
    before = velocity(slides, "body")[0]
    advance(slides, 0.4)
    pull = G * (np.sin(steep) - friction * np.cos(steep))
    assert (velocity(slides, "body")[0] - before) / 0.4 == pytest.approx(pull, rel=2e-3)
    assert abs(spin(slides, "body")).max() < 1e-2


@both
def test_a_cube_leans_into_its_layer_by_what_a_torque_makes_it(stepper: str) -> None:
    """(K I - m g b) q = T with I = s^4 / 12 and the centre of mass at the height b; the far edge stays pressed."""
    modulus, torque = 1e6, 0.3
    depth = MASS * G * LAYER / (modulus * SIDE**2)
    engine = placed(CUBE, (0, 0, SIDE / 2 - depth), stepper, modulus=modulus, dissipation=20.0, friction=1.0)
    push(engine, "body", torque=(0, torque, 0))
    advance(engine, 2.0)
    lean = watched(engine, 0.5, lambda e: direction(e, "body", (0, 0, 1))[0]).mean()
    assert lean == pytest.approx(
        torque / (modulus / LAYER * SIDE**4 / 12 - MASS * G * (SIDE / 2 - depth / 2)), rel=2e-3
    )


@both
def test_two_free_balls_keep_their_momentum(stepper: str) -> None:
    world = World(gravity=(0, 0, 0))
    world.material("rubber", "rubber", law="foundation", modulus=1e6, layer=LAYER, friction=0.5, dissipation=0.3)
    solid(world, "one", BALL, pos=(-0.11, 0, 0), vel=(1, 0.2, 0), spin=(0, 3, 5))
    solid(world, "other", Sphere(0.08), pos=(0.085, 0.06, 0.02), vel=(-1, 0, 0.1), spin=(2, 0, -4))
    engine = compile_world(world, 1e-3, stepper=stepper, natural=Options(iterations=12))

    def momenta(e: Engine) -> np.ndarray:
        linear = sum(MASS * velocity(e, n) for n in ("one", "other"))
        angular = sum(angular_momentum(e, n) + np.cross(centre(e, n), MASS * velocity(e, n)) for n in ("one", "other"))
        return np.concatenate([linear, angular])

    before, energy = momenta(engine), engine.energy()
    advance(engine, 0.2)
    assert np.linalg.norm(velocity(engine, "one") - [1, 0.2, 0]) > 0.5
    assert np.abs(spin(engine, "one") - [0, 3, 5]).max() > 0.5
    exact = 1e-10 if stepper == "spook" else 1e-5  # the trapezoidal rule keeps spin to second order
    assert momenta(engine) == pytest.approx(before, abs=exact)
    assert engine.energy() < energy


def test_both_cores_tell_the_same_story() -> None:
    """A cube that lands askew, slides, spins and rocks: one core is of first order, so a quarter of the step leaves a
    quarter of the difference."""
    apart = []
    for dt in (2e-4, 5e-5):
        ends = []
        for stepper in STEPPERS:
            engine = placed(
                CUBE,
                (0, 0, SIDE / 2 + 2e-3),
                stepper,
                dt=dt,
                friction=0.5,
                dissipation=1.0,
                vel=(1.0, 0.3, -0.2),
                spin=(0.1, 0.2, 6.0),
            )
            advance(engine, 0.15)
            ends.append(np.concatenate([centre(engine, "body"), 0.1 * velocity(engine, "body")]))
        apart.append(np.abs(ends[0] - ends[1]).max())
    assert apart[1] < 4e-4
    assert apart[1] < 0.35 * apart[0]


@both
def test_a_moving_table_carries_a_cube_along(stepper: str) -> None:
    """It slides for v / (mu g), then goes with the table."""
    speed, friction = 0.5, 0.4
    world = World()
    world.body("table", kind="kinematic", pos=(0, 0, -0.1), vel=(speed, 0, 0))
    world.shape("table", type(CUBE)(4, 4, 0.2), material="floor")
    world.material("rubber", "floor", law="foundation", modulus=1e7, layer=LAYER, friction=friction, dissipation=5.0)
    solid(world, "body", CUBE, pos=(0, 0, SIDE / 2 - MASS * G * LAYER / (1e7 * SIDE**2)))
    engine = compile_world(world, 1e-3, stepper=stepper)
    advance(engine, 0.06)
    assert velocity(engine, "body")[0] == pytest.approx(friction * G * 0.06, rel=0.03)
    advance(engine, 0.4)
    assert velocity(engine, "body") == pytest.approx([speed, 0, 0], abs=2e-3)


def test_layers_of_both_bodies_give_way_one_behind_the_other() -> None:
    world = World()
    world.material("rubber", "floor", law="foundation", modulus=(1e6, 3e6), layer=(0.01, 0.06))
    assert world.materials["floor", "rubber"].law.stiffness == pytest.approx(1 / (0.01 / 1e6 + 0.06 / 3e6))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layer": 0.01}, "needs modulus"),
        ({"modulus": 1e6}, "needs layer"),
        ({"modulus": 1e6, "layer": 0.0}, "layer.*above 0"),
        ({"modulus": 1e6, "layer": 0.01, "restitution": 0.5}, "takes no restitution"),
        ({"modulus": 1e6, "layer": 0.01, "slow": 0.0}, "slow.*above 0"),
        ({"modulus": (1e6, 1e6, 1e6), "layer": 0.01}, "one for each body"),
    ],
)
def test_a_foundation_that_can_not_be_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(WorldError, match=rf"'rubber' on 'floor'.*{said}"):
        World().material("rubber", "floor", law="foundation", **given)


def test_shapes_whose_overlap_is_not_known_are_refused_by_name() -> None:
    world = floor()
    solid(world, "tyre", Torus(0.3, 0.1), pos=(0, 0, 1))
    with pytest.raises(WorldError, match=r"plane on the ground and torus on tyre.*'foundation'.*hulls"):
        compile_world(world, 1e-3)


@pytest.mark.slow  # every pair of simple shapes is compiled
def test_shapes_may_come_later() -> None:
    world = floor(modulus=1e6, dissipation=10.0)
    engine = compile_world(world, 1e-3, spare=Spare(bodies=2, shapes=2))
    depth = static_depth(1e6)
    solid(world, "body", BALL, pos=(0, 0, RADIUS - depth))
    take_in(engine)
    advance(engine, 0.2)
    assert RADIUS - centre(engine, "body")[2] == pytest.approx(depth, rel=1e-3)
