"""Spheres, corner points and planes against Coulomb and Newton. Restitution is zero throughout."""

import numpy as np
import pytest
from worlds import G, about, advance, box, centre, compiled, direction, push, rows_of, spin, velocity, watched

from plant.engine.compile import Engine
from plant.model import Bound
from plant.world.world import World

SLOPE = 0.4  # [rad]


def tilted(slope: float, friction: float, heading: float = 0.0, **options: float) -> World:
    """A level plane z = 0 and gravity that leans, so that downhill points along `heading` from x."""
    world = World(
        gravity=(G * np.sin(slope) * np.cos(heading), G * np.sin(slope) * np.sin(heading), -G * np.cos(slope))
    )
    world.plane()
    world.material("default", "default", friction=friction, **options)
    return world


def block(world: World, **state: object) -> Engine:
    """A cube of 0.2 m and 3 kg lying on the plane."""
    box(world, "block", 0.2, 3.0, (0, 0, 0.1), **state)
    return compiled(world)


def ball(world: World, name: str = "ball", radius: float = 0.1, mass: float = 2.0, **state: object) -> str:
    """A solid sphere, by default lying on the plane."""
    moment = 0.4 * mass * radius**2
    world.body(name, mass=mass, inertia=(moment,) * 3, **{"pos": (0, 0, radius), **state})  # type: ignore[arg-type]
    world.sphere(name, radius=radius)
    return name


def normal_force(engine: Engine) -> float:
    """Sum over all contacts in the last step [N]."""
    rows = engine.content.data.bounded
    return float(sum(rows.value[k] for k in rows_of(engine, Bound.CONTACT)) / engine.content.model.setup.h)


def test_a_block_sticks_below_the_angle_of_friction() -> None:
    """Ten seconds at 98 % of the angle: less than a tenth of a millimetre."""
    engine = advance(block(tilted(SLOPE, np.tan(SLOPE) / 0.98)), 10.0)
    assert centre(engine, "block") == pytest.approx([0, 0, 0.1], abs=1e-4)
    assert normal_force(engine) == pytest.approx(3.0 * G * np.cos(SLOPE), rel=1e-6)


@pytest.mark.parametrize("heading", [0.0, 0.7, 2.0])
def test_a_block_slides_above_the_angle_of_friction(heading: float) -> None:
    """a = g (sin - mu cos), whatever the direction, once it slides."""
    friction = 0.6 * np.tan(SLOPE)
    downhill = np.array([np.cos(heading), np.sin(heading), 0])
    engine = advance(block(tilted(SLOPE, friction, heading), vel=0.1 * downhill), 1.0)
    speed = 0.1 + G * (np.sin(SLOPE) - friction * np.cos(SLOPE)) * 1.0
    assert velocity(engine, "block") == pytest.approx(speed * downhill, abs=2e-3 * speed)
    way = 0.1 + G * (np.sin(SLOPE) - friction * np.cos(SLOPE)) / 2
    assert centre(engine, "block")[:2] == pytest.approx(way * downhill[:2], abs=5e-3 * way)


@pytest.mark.parametrize(
    "heading",
    [
        0.0,
        np.pi / 2,
        pytest.param(np.pi / 4),
    ],
)
def test_a_block_at_rest_starts_to_slide_above_the_angle_of_friction(heading: float) -> None:
    """Coulomb's cone is round: at 125 % of the angle it starts in every direction."""
    engine = advance(block(tilted(SLOPE, np.tan(SLOPE) / 1.25, heading)), 1.0)
    assert np.linalg.norm(velocity(engine, "block")) == pytest.approx(G * np.sin(SLOPE) * (1 - 1 / 1.25), rel=0.02)


def test_a_sliding_block_stops_at_the_right_time_and_place() -> None:
    """t = v / mu g, x = v^2 / 2 mu g; semi-implicit: the way is short by at most v h."""
    world = tilted(0.0, 0.3)
    engine = block(world, vel=(2.0, 0, 0))
    seen = watched(engine, 1.2, lambda e: float(velocity(e, "block")[0]))
    stop = 2.0 / (0.3 * G)
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.maximum(0, 2.0 * (1 - t / stop)), abs=0.01)
    assert abs(seen[round(stop * 1e3) + 20 :]).max() < 1e-6
    assert centre(engine, "block")[0] == pytest.approx(2.0**2 / (2 * 0.3 * G), rel=5e-3)
    assert centre(engine, "block")[1:] == pytest.approx([0, 0.1], abs=1e-4)


def test_friction_never_exceeds_its_bound_while_sliding() -> None:
    """Deceleration of mu g in each step, from the first on, to the 1 % by which the load on the corners still
    settles.
    """
    engine = block(tilted(0.0, 0.3), vel=(1.5, 1.5, 0))
    before = np.linalg.norm(velocity(engine, "block"))
    for _ in range(300):
        assert engine.step() == 0
        now = np.linalg.norm(velocity(engine, "block"))
        assert before - now <= 0.3 * G * 1e-3 * 1.01
        before = now


def test_a_force_below_the_friction_bound_moves_nothing_and_one_above_the_difference() -> None:
    engine = block(tilted(0.0, 0.5))
    limit = 0.5 * 3.0 * G
    push(engine, "block", (0.95 * limit, 0, 0))
    advance(engine, 2.0)
    assert centre(engine, "block") == pytest.approx([0, 0, 0.1], abs=1e-5)
    push(engine, "block", (1.3 * limit, 0, 0))
    advance(engine, 1.0)
    assert velocity(engine, "block")[0] == pytest.approx(0.3 * limit / 3.0, rel=0.01)


def test_a_box_at_rest_for_a_minute_does_not_drift() -> None:
    engine = compiled(at_rest())
    advance(engine, 60.0)
    assert centre(engine, "box") == pytest.approx([0, 0, 0.25], abs=1e-4)
    assert direction(engine, "box", (0, 0, 1)) == pytest.approx([0, 0, 1], abs=1e-5)
    assert direction(engine, "box", (1, 0, 0)) == pytest.approx([1, 0, 0], abs=1e-5)


def at_rest() -> World:
    world = World()
    world.plane()
    box(world, "box", 0.5, 10.0, (0, 0, 0.25))
    return world


@pytest.mark.parametrize("mass", [1e-4, 1e-2, 1.0, 1e3, 1e6])
def test_boxes_of_every_mass_come_to_rest(mass: float) -> None:
    """Dropped flat from 5 mm; four corners are one more than needed. All carry a quarter."""
    world = World()
    world.plane()
    stiffness = max(1e8, 1e6 * mass)
    world.material("default", "default", stiffness=stiffness)
    box(world, "box", 0.5, mass, (0, 0, 0.255))
    engine = advance(compiled(world), 1.0)
    assert centre(engine, "box") == pytest.approx([0, 0, 0.25 - mass * G / (4 * stiffness)], abs=1e-5)
    assert np.abs(velocity(engine, "box")).max() < 1e-6
    assert normal_force(engine) == pytest.approx(mass * G, rel=1e-4)


def test_a_stack_of_five_boxes_rests() -> None:
    """Corner spheres of 5 mm on each other: sixty rows. Every layer carries what is above it."""
    world = World()
    world.plane()
    size, r = 0.4, 0.005
    for k in range(5):
        name = f"box {k}"
        world.body(name, mass=2, inertia=(2 * size**2 / 6,) * 3, pos=(0, 0, size / 2 + r + k * (size + 2 * r)))
        for x in (-1, 1):
            for y in (-1, 1):
                for z in (-1, 1):
                    world.sphere(name, centre=np.array([x, y, z]) * size / 2, radius=r)
    engine = compiled(world)
    start = [centre(engine, f"box {k}") for k in range(5)]
    advance(engine, 10.0)
    for k in range(5):
        assert centre(engine, f"box {k}") == pytest.approx(start[k], abs=1e-4)
    assert normal_force(engine) == pytest.approx((5 + 4 + 3 + 2 + 1) * 2 * G, rel=1e-4)


@pytest.mark.parametrize("slope", [0.1, 0.5])
def test_a_sphere_rolls_down_an_incline(slope: float) -> None:
    """a = 5/7 g sin as long as tan(slope) < 7/2 mu; it does not slip: v = w r."""
    world = tilted(slope, 0.5)
    ball(world)
    engine = advance(compiled(world), 1.0)
    assert velocity(engine, "ball")[0] == pytest.approx(5 / 7 * G * np.sin(slope), rel=1e-4)
    assert spin(engine, "ball") == pytest.approx([0, velocity(engine, "ball")[0] / 0.1, 0], rel=1e-4, abs=1e-6)
    assert centre(engine, "ball")[0] == pytest.approx(5 / 14 * G * np.sin(slope), rel=2e-3)


def test_a_sphere_slips_on_a_steep_incline() -> None:
    """tan(slope) > 7/2 mu: a = g (sin - mu cos), and the spin gains 5/2 mu g cos / r."""
    slope, friction = 0.5, 0.1
    assert np.tan(slope) > 3.5 * friction
    world = tilted(slope, friction)
    ball(world)
    engine = advance(compiled(world), 1.0)
    assert velocity(engine, "ball")[0] == pytest.approx(G * (np.sin(slope) - friction * np.cos(slope)), rel=2e-3)
    assert spin(engine, "ball")[1] == pytest.approx(2.5 * friction * G * np.cos(slope) / 0.1, rel=2e-3)


def test_a_sliding_bowl_begins_to_roll_at_five_sevenths_of_its_speed() -> None:
    """t = 2 v / 7 mu g; from then on it rolls at 5/7 v for good."""
    world = tilted(0.0, 0.2)
    ball(world, vel=(3.0, 0, 0))
    engine = compiled(world)
    advance(engine, 0.9 * 2 * 3.0 / (7 * 0.2 * G))
    assert velocity(engine, "ball")[0] > spin(engine, "ball")[1] * 0.1 + 0.1
    advance(engine, 0.6)
    assert velocity(engine, "ball")[0] == pytest.approx(3.0 * 5 / 7, rel=2e-3)
    assert spin(engine, "ball")[1] * 0.1 == pytest.approx(3.0 * 5 / 7, rel=2e-3)


def test_without_friction_a_sphere_slides_and_does_not_turn() -> None:
    world = tilted(SLOPE, 0.0)
    ball(world)
    engine = advance(compiled(world), 1.0)
    assert velocity(engine, "ball")[0] == pytest.approx(G * np.sin(SLOPE), rel=1e-9)
    assert np.abs(spin(engine, "ball")).max() < 1e-12


def test_two_spheres_that_meet_head_on_share_their_momentum() -> None:
    """No restitution: they go on together at the common speed; what is not along the line of centres is untouched."""
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", friction=0.0)
    ball(world, "a", mass=2.0, pos=(-0.3, 0, 0), vel=(1.0, 0, 0))
    ball(world, "b", mass=6.0, pos=(0.3, 0, 0), vel=(-1.0, 0, 0))
    engine = advance(compiled(world), 0.21)
    common = (2.0 - 6.0) / 8.0
    assert velocity(engine, "a")[0] == pytest.approx(common, abs=0.03)
    assert velocity(engine, "b")[0] == pytest.approx(common, abs=0.03)
    assert 2.0 * velocity(engine, "a")[0] + 6.0 * velocity(engine, "b")[0] == pytest.approx(-4.0, rel=1e-12)


def test_a_glancing_blow_keeps_the_tangential_speed_without_friction() -> None:
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", friction=0.0)
    ball(world, "a", mass=2.0, pos=(-0.2, 0.1, 0), vel=(1.0, 0, 0))
    ball(world, "b", mass=2.0, pos=(0.2, 0, 0))
    engine = advance(compiled(world), 0.4)
    line = np.array([np.sqrt(0.04 - 0.01), -0.1, 0]) / 0.2  # from a to b when they touch
    share = 0.5 * line[0] * line
    assert velocity(engine, "b") == pytest.approx(share, abs=0.02)
    assert velocity(engine, "a") == pytest.approx(np.array([1.0, 0, 0]) - share, abs=0.02)


def test_a_sphere_rests_in_the_groove_of_two_planes() -> None:
    """Two planes at 45 degrees without friction: each pushes with W / (2 cos 45)."""
    world = World()
    world.plane(normal=(1, 0, 1))
    world.plane(normal=(-1, 0, 1))
    world.material("default", "default", friction=0.0)
    ball(world, pos=(0, 0, 0.1 * np.sqrt(2)))
    engine = advance(compiled(world), 2.0)
    assert centre(engine, "ball") == pytest.approx([0, 0, 0.1 * np.sqrt(2)], abs=1e-5)
    assert normal_force(engine) == pytest.approx(2 * 2.0 * G / (2 * np.cos(np.pi / 4)), rel=1e-6)


def test_contact_yields_by_force_over_stiffness() -> None:
    """z = r - W / k."""
    world = World()
    world.plane()
    world.material("default", "default", stiffness=1e5, damping_time=0.01)
    ball(world)
    engine = advance(compiled(world), 3.0)
    assert centre(engine, "ball")[2] == pytest.approx(0.1 - 2.0 * G / 1e5, rel=1e-6)


def test_a_contact_does_not_pull() -> None:
    """A ball lifted from the plane by twice its weight leaves it as free."""
    world = World()
    world.plane()
    ball(world)
    engine = advance(compiled(world), 0.5)
    start = centre(engine, "ball")[2]
    push(engine, "ball", (0, 0, 4.0 * G))
    advance(engine, 0.1)
    assert velocity(engine, "ball")[2] == pytest.approx(G * 0.1, rel=1e-3)
    assert centre(engine, "ball")[2] - start == pytest.approx(G * 0.01 / 2, rel=0.03)


def test_a_box_tips_over_its_edge_past_the_balance_point() -> None:
    """On its edge, leaning 5 degrees to either side of the balance: it falls to that side."""
    for lean, side in ((-5, -1), (5, 1)):
        world = World()
        world.plane()
        world.material("default", "default", friction=2.0)
        turn = np.radians(45 + lean)
        height = 0.1 * np.sqrt(2) * np.cos(np.radians(lean))
        box(
            world,
            "box",
            0.2,
            3.0,
            (0.1 * np.sqrt(2) * np.sin(np.radians(lean)), 0, height),
            quat=about((0, 1, 0), turn),
        )
        engine = advance(compiled(world), 2.0)
        assert centre(engine, "box")[2] == pytest.approx(0.1, abs=1e-4)
        assert np.sign(centre(engine, "box")[0]) == side


@pytest.mark.parametrize(
    "height",
    [
        0.001,
        0.05,
        pytest.param(3.0),
    ],
)
def test_a_body_that_falls_on_a_plane_does_not_bounce(height: float) -> None:
    """No restitution: after the impact it never rises above 1 % of the height it fell from, nor a tenth of a
    millimetre.
    """
    world = World()
    world.plane()
    ball(world, pos=(0, 0, 0.1 + height))
    engine = compiled(world)
    advance(engine, np.sqrt(2 * height / G) + 0.01)
    seen = watched(engine, 0.6, lambda e: float(centre(e, "ball")[2]) - 0.1)
    assert seen.max() < max(1e-4, 0.01 * height)
    assert abs(seen[-1]) < 1e-5


def test_a_box_of_ten_milligrams_comes_to_rest() -> None:
    world = World()
    world.plane()
    box(world, "box", 0.5, 1e-5, (0, 0, 0.255))
    engine = advance(compiled(world), 1.0)
    assert centre(engine, "box")[2] == pytest.approx(0.25, abs=1e-5)


def heap(seed: int) -> Engine:
    """Ten balls dropped a few centimetres into a box of four walls, with friction and without bounce; some 25
    contacts.
    """
    world = World()
    world.plane()
    for k in range(4):
        world.plane(normal=(np.cos(k * np.pi / 2), np.sin(k * np.pi / 2), 0), offset=-0.25)
    rng = np.random.default_rng(seed)
    for k in range(10):
        x, y = rng.uniform(-0.02, 0.02, 2)
        ball(world, f"ball {k}", pos=(x + 0.12 * (-1) ** k, y + 0.12 * (-1) ** (k // 2), 0.12 + 0.21 * (k // 4)))
    return compiled(world)


def test_a_heap_loses_energy_and_never_gains_any() -> None:
    engine = heap(3)
    seen = watched(engine, 1.2, Engine.energy, every=4)
    assert np.diff(seen).max() < 0.005 * seen[0]
    assert seen.max() < seen[0] + 1e-6
    assert seen[-1] < 0.9 * seen[0]


def test_heaps_never_stop_the_solver() -> None:
    """One in about eight does within a second and a half."""
    assert [heap(seed).step(1500) for seed in range(8)] == [0] * 8


def test_adhesion_holds_what_hangs_below_its_bound() -> None:
    """A ball under a ceiling: adhesion of twice its weight holds it, half its weight does not."""
    for share, holds in ((2.0, True), (0.5, False)):
        world = World()
        world.plane(normal=(0, 0, -1))
        world.material("default", "default", adhesion=share * 2.0 * G)
        ball(world, pos=(0, 0, -0.1))
        engine = advance(compiled(world), 0.5)
        assert (centre(engine, "ball")[2] > -0.1 - 1e-5) == holds


def test_adhesion_does_not_reach_through_air() -> None:
    """A millimetre apart, without gravity: nothing pulls."""
    world = World(gravity=(0, 0, 0))
    world.plane()
    world.material("default", "default", adhesion=10.0)
    ball(world, pos=(0, 0, 0.101))
    engine = advance(compiled(world), 0.5)
    assert centre(engine, "ball")[2] == pytest.approx(0.101, abs=1e-9)


def test_slip_makes_friction_viscous() -> None:
    """Pushed along by F below the bound, a contact with slip s creeps at s F."""
    world = tilted(0.0, 0.5, slip=1e-3)
    engine = block(world)
    push(engine, "block", (5.0, 0, 0))
    advance(engine, 2.0)
    assert velocity(engine, "block")[0] == pytest.approx(1e-3 * 5.0 / 4, rel=0.01)  # four contacts share it


def test_a_conveyor_carries_a_ball_to_its_speed() -> None:
    """A kinematic sphere that turns beneath drags a ball on rails by friction: a = mu g until the speeds are equal."""
    world = World()
    world.body("drum", kind="kinematic", pos=(0, 0, -1.0), spin=(0, 2.0, 0))
    world.sphere("drum", radius=1.0)
    world.material("default", "default", friction=0.3)
    world.body("shoe", mass=2, inertia=(0.01,) * 3, pos=(0, 0, 0.1))
    world.sphere("shoe", radius=0.1)
    world.planar("keep", None, "shoe", at=(0, 0, 0.1), axis=(0, 1, 0))
    world.prismatic("rail", None, "shoe", at=(0, 0, 0.1), axis=(0, 0, 1))
    engine = advance(compiled(world), 0.5)
    rows = engine.content.data.bounded
    (k,) = rows_of(engine, Bound.CONTACT)
    tangent = np.hypot(rows.value[k + 1], rows.value[k + 2]) / 1e-3
    assert rows.value[k] / 1e-3 == pytest.approx(2.0 * G, rel=1e-4)
    assert tangent == pytest.approx(0.3 * 2.0 * G, rel=1e-3)
