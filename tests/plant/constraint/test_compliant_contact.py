"""Contacts with a force law in the engine, at velocity level, against closed forms and scipy."""

import numpy as np
import pytest
from smooth_cases import law_rebound
from worlds import G, advance, box, centre, compiled, push, spin, velocity, watched

from plant.contact_law import normal_force
from plant.contact_law.material import force_law, smooth_table
from plant.engine.compile import Engine, compile_world
from plant.world.checks import WorldError
from plant.world.world import World

Settings = dict[str, float]
SOFT: dict[str, Settings] = {
    "hunt_crossley": {"stiffness": 1e7, "restitution": 0.5},
    "lankarani_nikravesh": {"stiffness": 1e7, "restitution": 0.5},
    "kelvin_voigt": {"stiffness": 2e5, "restitution": 0.5},
    "smc": {"stiffness": 1e7, "restitution": 0.5},
    "wang": {"stiffness": 2e5, "damping": 200.0, "shear_damping": 100.0},
}
MASS, RADIUS, SLOPE = 2.0, 0.1, 0.4


def ball(
    law: str,
    *,
    gap: float = 0.0,
    vel: tuple[float, ...] = (0, 0, 0),
    weight: float = G,
    stepper: str = "spook",
    **given: float,
) -> Engine:
    """A solid ball above the plane z = 0."""
    world = World(gravity=(0, 0, -weight))
    world.plane()
    world.material("default", "default", law=law, **given)
    world.body("ball", mass=MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3, pos=(0, 0, RADIUS + gap), vel=vel)
    world.sphere("ball", radius=RADIUS)
    return compile_world(world, 1e-3, stepper=stepper)


def block(law: str, slope: float, heading: float, friction: float, **state: object) -> Engine:
    """A cube of 0.2 m and 3 kg on a plane under gravity that leans towards `heading`."""
    lean = G * np.sin(slope)
    world = World(gravity=(lean * np.cos(heading), lean * np.sin(heading), -G * np.cos(slope)))
    world.plane()
    world.material("default", "default", law=law, friction=friction, **SOFT[law])
    box(world, "block", 0.2, 3.0, (0, 0, 0.1), **state)
    return compiled(world)


def static_depth(load: float, given: Settings) -> float:
    k = given["stiffness"]
    return float((load / k) ** (1 / 1.5)) if k > 1e6 else load / k


@pytest.mark.parametrize("law", SOFT)
def test_a_dropped_ball_comes_to_rest_at_the_static_depth(law: str) -> None:
    engine = advance(ball(law, gap=0.02, **SOFT[law]), 4.0)
    assert centre(engine, "ball") == pytest.approx([0, 0, RADIUS - static_depth(MASS * G, SOFT[law])], abs=1e-8)
    assert abs(velocity(engine, "ball")).max() < 1e-6


@pytest.mark.parametrize("stepper", ["linearised", "projected"])
def test_the_other_steppers_take_smooth_contacts_too(stepper: str) -> None:
    engine = advance(ball("hunt_crossley", stepper=stepper, gap=0.02, **SOFT["hunt_crossley"]), 4.0)
    assert RADIUS - centre(engine, "ball")[2] == pytest.approx(static_depth(MASS * G, SOFT["hunt_crossley"]), abs=1e-8)


def test_hertz_depth_from_materials() -> None:
    """delta^3 = 9 F^2 / (16 R E^2): a rubber ball on a hard floor."""
    young, poisson = (5e6, 1e9), (0.48, 0.2)
    engine = advance(ball("hunt_crossley", young=young, poisson=poisson, radius=RADIUS, restitution=0.3), 3.0)  # type: ignore[arg-type]
    e = 1 / ((1 - 0.48**2) / 5e6 + (1 - 0.04) / 1e9)
    depth = (9 * (MASS * G) ** 2 / (16 * RADIUS * e**2)) ** (1 / 3)
    assert RADIUS - centre(engine, "ball")[2] == pytest.approx(depth, rel=1e-6)


@pytest.mark.parametrize("law", SOFT)
@pytest.mark.parametrize("speed", [0.1, 0.3, 1.0])
def test_a_blow_leaves_what_the_law_leaves(law: str, speed: float) -> None:
    """Contacts of ten to forty steps, begun anywhere within a step: the restitution of the law integrated with small
    steps, to 3 % where the force grows from zero, 0.05 where it begins with a jump that the step may miss."""
    given = {**SOFT[law], "stiffness": SOFT[law]["stiffness"] / 10}
    truth = law_rebound(smooth_table([force_law(law, given)]), MASS, speed)
    jump = law in ("kelvin_voigt", "smc", "wang")
    for late in (0.0, 0.3, 0.7):
        engine = ball(law, gap=1e-3 * (1 + late * speed), vel=(0, 0, -speed), weight=0.0, **given)
        advance(engine, 0.3)
        assert velocity(engine, "ball")[2] / speed == pytest.approx(truth, abs=0.05 if jump else 0.03 * truth)


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_hunt_crossley_has_its_restitution_where_it_is_valid(speed: float) -> None:
    """0.8 and more: the law is within 5 % of what was asked for, and so is the engine."""
    engine = ball("hunt_crossley", gap=1e-3, vel=(0, 0, -speed), weight=0.0, stiffness=1e6, restitution=0.85)
    advance(engine, 0.3)
    assert velocity(engine, "ball")[2] / speed == pytest.approx(0.85, rel=0.05)


@pytest.mark.parametrize("stiffness", [1e5, 1e6, 1e7, 1e9])
def test_no_contact_is_too_stiff_for_the_step(stiffness: float) -> None:
    """An elastic contact that lasts a fraction of a step loses speed, but throws nothing out."""
    for late in np.linspace(0, 0.95, 12):
        engine = ball(
            "kelvin_voigt",
            gap=1e-3 * (1 + late),
            vel=(0, 0, -1.0),
            weight=0.0,
            stiffness=stiffness,
            restitution=1.0,
        )
        advance(engine, 0.1)
        assert -1e-9 < velocity(engine, "ball")[2] < 1.01


@pytest.mark.parametrize("law", ["hunt_crossley", "smc"])
def test_the_first_speed_is_kept_while_it_touches_and_forgotten_after(law: str) -> None:
    engine = ball(law, gap=1e-3, vel=(0, 0, -0.5), weight=0.0, **SOFT[law])
    contact = engine.content.data.contact
    seen = watched(engine, 0.05, lambda e: float(contact.old_first_rate[0]) if contact.old_count[0] else 0.0)
    assert seen[0] == seen[-1] == 0.0
    assert (seen > 0).sum() >= 5
    assert seen[seen > 0] == pytest.approx(0.5)


@pytest.mark.parametrize("law", SOFT)
def test_a_block_sticks_below_the_angle_of_friction(law: str) -> None:
    """Three seconds at 90 % of the angle: after the bristles have taken up the load it does not creep at all."""
    engine = advance(block(law, SLOPE, 0.7, np.tan(SLOPE) / 0.9), 1.0)
    before = centre(engine, "block")
    assert np.linalg.norm(before[:2]) < 2e-3
    advance(engine, 2.0)
    assert centre(engine, "block") == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize("heading", [0.0, 0.7])
@pytest.mark.parametrize("law", SOFT)
def test_a_block_slides_above_the_angle_of_friction(law: str, heading: float) -> None:
    friction = 0.6 * np.tan(SLOPE)
    downhill = np.array([np.cos(heading), np.sin(heading), 0])
    engine = advance(block(law, SLOPE, heading, friction, vel=0.1 * downhill), 1.0)
    speed = 0.1 + G * (np.sin(SLOPE) - friction * np.cos(SLOPE))
    assert velocity(engine, "block") == pytest.approx(speed * downhill, abs=3e-3 * speed)


@pytest.mark.parametrize("law", SOFT)
def test_a_sliding_block_stops_at_the_right_time_and_place(law: str) -> None:
    """t = v / mu g, x = v^2 / 2 mu g."""
    engine = block(law, 0.0, 0.0, 0.3, vel=(2.0, 0, 0))
    seen = watched(engine, 1.2, lambda e: float(velocity(e, "block")[0]))
    stop = 2.0 / (0.3 * G)
    assert seen == pytest.approx(np.maximum(0, 2.0 * (1 - np.arange(len(seen)) * 1e-3 / stop)), abs=0.02)
    assert abs(seen[round(stop * 1e3) + 200 :]).max() < 1e-4
    assert centre(engine, "block")[0] == pytest.approx(2.0**2 / (2 * 0.3 * G), rel=6e-3)


@pytest.mark.parametrize("law", SOFT)
def test_a_sliding_ball_ends_up_rolling_with_five_sevenths_of_its_speed(law: str) -> None:
    """Bristles do not hinder the rolling: points that touch do not slip."""
    depth = static_depth(MASS * G, SOFT[law])
    engine = advance(ball(law, gap=-depth, vel=(1.0, 0, 0), friction=0.3, **SOFT[law]), 2.0)
    arm = RADIUS - depth
    rolling = 1.0 / (1.0 + 0.4 * RADIUS**2 / arm**2)  # angular momentum about the floor is kept
    assert velocity(engine, "ball")[0] == pytest.approx(rolling, rel=2e-3)
    assert spin(engine, "ball")[1] * arm == pytest.approx(rolling, rel=2e-3)


def test_adhesion_holds_what_hangs_and_lets_go_of_more() -> None:
    engine = ball("hunt_crossley", gap=-1e-4, stiffness=1e7, restitution=0.2, adhesion=30.0)
    push(engine, "ball", (0, 0, MASS * G + 25.0))
    advance(engine, 1.0)
    assert RADIUS - centre(engine, "ball")[2] == pytest.approx((5.0 / 1e7) ** (2 / 3), rel=1e-3)
    push(engine, "ball", (0, 0, MASS * G + 35.0))
    advance(engine, 0.5)
    assert centre(engine, "ball")[2] > RADIUS + 0.1


@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_a_stack_of_smooth_boxes_stands(solver: str) -> None:
    """Two boxes on each other: each face as deep as its load, by four corners."""
    world = World()
    world.plane()
    world.material("default", "default", law="hunt_crossley", **SOFT["hunt_crossley"])
    for i in range(2):
        box(world, f"box{i}", 0.2, 3.0, (0, 0, 0.1 + 0.2 * i))
    engine = advance(compile_world(world, 1e-3, solver=solver, sweeps=200), 3.0)
    lower, upper = ((load * 3.0 * G / 4 / 1e7) ** (1 / 1.5) for load in (2, 1))
    assert centre(engine, "box0")[2] == pytest.approx(0.1 - lower, abs=1e-7)
    assert centre(engine, "box1")[2] == pytest.approx(0.3 - lower - upper, abs=1e-7)
    assert abs(velocity(engine, "box1")).max() < 1e-6


def test_a_belt_carries_a_block() -> None:
    """A kinematic body under the block: after the slip the block goes with the belt."""
    world = World()
    world.material("default", "default", law="hunt_crossley", friction=0.3, **SOFT["hunt_crossley"])
    box(world, "belt", 1.0, 1.0, (0, 0, -0.5), vel=(0.2, 0, 0), kind="kinematic")
    box(world, "block", 0.2, 3.0, (0, 0, 0.1))
    engine = compiled(world)
    seen = watched(engine, 0.5, lambda e: float(velocity(e, "block")[0]))
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.minimum(0.2, 0.3 * G * t), abs=0.02)
    assert seen[-1] == pytest.approx(0.2, abs=1e-5)


def test_a_world_refuses_what_a_law_refuses_and_names_the_materials() -> None:
    world = World()
    with pytest.raises(WorldError, match=r"'steel' on 'floor'.*stiffness"):
        world.material("steel", "floor", law="hunt_crossley")
    with pytest.raises(WorldError, match=r"'steel' on 'floor'.*hunt_crossley"):
        world.material("steel", "floor", law="spongy", stiffness=1e5)
    with pytest.raises(WorldError, match=r"no exponent.*friction"):
        world.material("steel", "floor", exponent=1.5)
    world.material("steel", "floor", law="hunt_crossley", stiffness=1e6, hysteresis=normal_force.exact_hysteresis(0.4))
    assert world.materials["floor", "steel"].law.hysteresis > 1.5 * (1 - 0.4)
