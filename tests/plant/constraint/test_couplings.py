"""Gears, racks, screws and differentials: fixed ratios of speeds and positions, and the torques that go with them."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from worlds import G, about, advance, angle, attitude, centre, compiled, push, rows_of, spin, velocity

from plant.engine.compile import Engine, compile_world
from plant.model import Bound
from plant.world.world import World

X, Y, Z = np.eye(3)


def wheels(*inertias: float) -> World:
    """Wheels "0", "1", ... side by side on hinges about z, all bearings in the ground."""
    world = World(gravity=(0, 0, 0))
    for k, moment in enumerate(inertias):
        world.body(f"{k}", mass=1 + k, inertia=(moment,) * 3, pos=(0.3 * k, 0, 0))
        world.hinge(f"axle {k}", None, f"{k}", at=(0.3 * k, 0, 0), axis=Z)
    return world


def turned(engine: Engine, wheel: int) -> float:
    return angle(engine, f"axle {wheel}")


def speed(engine: Engine, wheel: int) -> float:
    return float(spin(engine, f"{wheel}")[2])


def motor_torque(engine: Engine) -> float:
    """Of the only motor, in the last step [N m]."""
    (k,) = rows_of(engine, int(Bound.MOTOR))
    return float(engine.content.data.bounded.value[k] / engine.content.model.setup.h)


def shaken(engine: Engine, seconds: float, load: Callable[[np.random.Generator], None]) -> Iterator[Engine]:
    """Loads that change every 10 ms; the engine after each."""
    rng = np.random.default_rng(11)
    for _ in range(round(seconds / 0.01)):
        load(rng)
        advance(engine, 0.01)
        yield engine


def random_torques(engine: Engine, *names: str, size: float = 5.0) -> Callable[[np.random.Generator], None]:
    def load(rng: np.random.Generator) -> None:
        for name in names:
            push(engine, name, torque=(0, 0, size * rng.normal()))

    return load


@pytest.mark.parametrize("ratio", [3.0, -2.5, 0.2, -1.0])
def test_geared_wheels_keep_their_ratio_under_torques_that_change(ratio: float) -> None:
    """Two seconds of torques of about 5 N m on both: the first turns by `ratio` times the second, to 1e-9 rad and
    rad/s.
    """
    world = wheels(0.2, 0.5)
    world.gear("mesh", "axle 0", "axle 1", ratio=ratio)
    engine = compiled(world)
    fastest = 0.0
    for e in shaken(engine, 2.0, random_torques(engine, "0", "1")):
        assert speed(e, 0) - ratio * speed(e, 1) == pytest.approx(0, abs=1e-9)
        assert turned(e, 0) - ratio * turned(e, 1) == pytest.approx(0, abs=1e-9)
        fastest = max(fastest, abs(speed(e, 0)), abs(speed(e, 1)))
    assert fastest > 0.5


@pytest.mark.parametrize("ratio", [4.0, -4.0, 0.1])
@pytest.mark.parametrize("driven", [0, 1])
def test_a_gear_reflects_inertia_by_the_square_of_its_ratio(ratio: float, driven: int) -> None:
    """Acceleration of the driven wheel = T / (I_driven + I_other (turns of the other per turn of the driven)^2)."""
    inertia = (0.2, 0.5)
    world = wheels(*inertia)
    world.gear("mesh", "axle 0", "axle 1", ratio=ratio)
    engine = compiled(world)
    push(engine, f"{driven}", torque=(0, 0, 3.0))
    advance(engine, 1.0)
    per_turn = 1 / ratio if driven == 0 else ratio
    felt = inertia[driven] + inertia[1 - driven] * per_turn**2
    assert speed(engine, driven) == pytest.approx(3.0 / felt, rel=1e-8)
    assert engine.energy() == pytest.approx(0.5 * felt * (3.0 / felt) ** 2, rel=1e-8)


@pytest.mark.parametrize("ratio", [4.0, -4.0])
def test_a_gear_passes_torque_on_through_its_ratio(ratio: float) -> None:
    """The first wheel is held by a motor, the second loaded with T: by virtual work the motor bears -T / ratio, and so
    does the mesh, whose row is that of the first wheel.
    """
    world = wheels(0.2, 0.5)
    world.gear("mesh", "axle 0", "axle 1", ratio=ratio)
    world.motor("hold", "axle 0", speed=0.0)
    engine = compiled(world)
    push(engine, "1", torque=(0, 0, 12.0))
    advance(engine, 0.5)
    assert motor_torque(engine) == pytest.approx(-12.0 / ratio, rel=1e-6)
    assert engine.content.data.coupled.force[0] == pytest.approx(12.0 / ratio, rel=1e-6)
    assert abs(turned(engine, 1)) < 1e-6


def test_a_gear_in_a_floating_box_turns_the_box_against_its_wheels() -> None:
    """A motor of torque T between the box and its first wheel, nothing else: the momentum stays zero, and with wheel
    speeds p, q = p / ratio against the box and box speed w, Lagrange's equations give constant accelerations.
    """
    ratio, apart, torque, seconds = -3.0, 0.2, 2.0, 0.5
    box_i, first_i, second_i, mass = 0.8, 0.1, 0.3, 1.5
    world = World(gravity=(0, 0, 0))
    world.body("box", mass=5, inertia=(box_i,) * 3)
    for name, moment, x in (("first", first_i, apart), ("second", second_i, -apart)):
        world.body(name, mass=mass, inertia=(moment,) * 3, pos=(x, 0, 0))
        world.hinge(f"{name} axle", "box", name, at=(x, 0, 0), axis=Z)
    world.gear("mesh", "first axle", "second axle", ratio=ratio)
    world.motor("drive", "first axle", speed=1e6, force=torque)
    engine = advance(compiled(world), seconds)
    around = box_i + first_i + second_i + 2 * mass * apart**2
    cross = first_i + second_i / ratio
    matrix = np.array([[around, cross], [cross, first_i + second_i / ratio**2]])
    box_a, first_a = np.linalg.solve(matrix, [0, torque])
    assert spin(engine, "box")[2] == pytest.approx(box_a * seconds, rel=1e-6)
    assert spin(engine, "first")[2] == pytest.approx((box_a + first_a) * seconds, rel=1e-6)
    assert spin(engine, "second")[2] == pytest.approx((box_a + first_a / ratio) * seconds, rel=1e-6)


SUN, PLANET, RING = 20, 30, 80  # teeth
SUN_I, PLANET_I, ARM_I, PLANET_MASS, REACH = 0.02, 0.05, 0.3, 1.2, 0.25


def planetary(*, ring_turns: bool) -> World:
    """Sun, arm and ring on one axis and three planets on the arm; the ring is the ground or a wheel of its own.

    Meshes are ratios of turns seen from the arm: sun against planet -PLANET / SUN, planet against ring RING / PLANET.
    """
    world = World(gravity=(0, 0, 0))
    world.body("arm", mass=2, inertia=(ARM_I,) * 3)
    world.hinge("main", None, "arm", at=(0, 0, 0), axis=Z)
    world.body("sun", mass=1, inertia=(SUN_I,) * 3)
    world.hinge("sun on arm", "arm", "sun", at=(0, 0, 0), axis=Z)
    if ring_turns:
        world.body("ring", mass=3, inertia=(0.5,) * 3)
        world.hinge("ring on arm", "arm", "ring", at=(0, 0, 0), axis=Z)
    for k in range(3):
        at = REACH * np.array([np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3), 0])
        world.body(f"planet {k}", mass=PLANET_MASS, inertia=(PLANET_I,) * 3, pos=at)
        world.hinge(f"pin {k}", "arm", f"planet {k}", at=at, axis=Z)
        world.gear(f"inner {k}", "sun on arm", f"pin {k}", ratio=-PLANET / SUN)
        # a ring that stands turns back against the arm as the arm turns forward
        outer, sign = ("ring on arm", 1) if ring_turns else ("main", -1)
        world.gear(f"outer {k}", f"pin {k}", outer, ratio=sign * RING / PLANET)
    return world


def test_a_planetary_gear_with_a_fixed_ring_turns_its_arm_at_the_ratio_of_willis() -> None:
    """sun / arm = 1 + ring / sun, planet / arm = 1 - ring / planet, while the arm goes round under changing torques."""
    engine = compiled(planetary(ring_turns=False))
    fastest = 0.0
    for e in shaken(engine, 2.0, random_torques(engine, "sun", "arm", "planet 1")):
        arm, sun = spin(e, "arm")[2], spin(e, "sun")[2]
        assert sun == pytest.approx(arm * (1 + RING / SUN), abs=1e-9)
        for k in range(3):
            assert spin(e, f"planet {k}")[2] == pytest.approx(arm * (1 - RING / PLANET), abs=1e-9)
        fastest = max(fastest, abs(sun))
    assert fastest > 1


def test_a_planetary_gear_accelerates_with_its_reflected_inertia() -> None:
    """Torque T on the sun: the arm gains T s / (I_arm + 3 m r^2 + I_sun s^2 + 3 I_planet p^2), s and p the turns of
    sun and planet for one of the arm.
    """
    engine = compiled(planetary(ring_turns=False))
    push(engine, "sun", torque=(0, 0, 2.0))
    advance(engine, 1.0)
    of_sun, of_planet = 1 + RING / SUN, 1 - RING / PLANET
    felt = ARM_I + 3 * PLANET_MASS * REACH**2 + SUN_I * of_sun**2 + 3 * PLANET_I * of_planet**2
    assert spin(engine, "arm")[2] == pytest.approx(2.0 * of_sun / felt, rel=1e-5)


def test_a_planetary_gear_with_three_turning_members_obeys_willis() -> None:
    """(sun - arm) / (ring - arm) = -R / S, in speeds and in turns."""
    engine = compiled(planetary(ring_turns=True))
    for e in shaken(engine, 2.0, random_torques(engine, "sun", "arm", "ring")):
        arm, sun, ring = (spin(e, name)[2] for name in ("arm", "sun", "ring"))
        assert sun - arm == pytest.approx(-RING / SUN * (ring - arm), abs=1e-9)
        assert angle(e, "sun on arm") == pytest.approx(-RING / SUN * angle(e, "ring on arm"), abs=1e-9)
    assert abs(arm) > 0.05
    assert abs(ring - arm) > 0.05


def test_a_train_of_four_wheels_multiplies_its_ratios() -> None:
    """Ratios -2, 3, -1.5 from wheel to wheel: speeds to 1e-9 under load, and T / sum of I_k (speed_k / speed_0)^2."""
    inertia, ratios = (0.1, 0.2, 0.3, 0.4), (-2.0, 3.0, -1.5)
    world = wheels(*inertia)
    for k, ratio in enumerate(ratios):
        world.gear(f"mesh {k}", f"axle {k}", f"axle {k + 1}", ratio=ratio)
    share = 1 / np.cumprod([1.0, *ratios])  # speed of each wheel over that of the first
    engine = compiled(world)
    push(engine, "0", torque=(0, 0, 1.5))
    advance(engine, 1.0)
    assert speed(engine, 0) == pytest.approx(1.5 / (np.array(inertia) @ share**2), rel=1e-7)
    for e in shaken(engine, 2.0, random_torques(engine, "0", "1", "2", "3")):
        for k in range(4):
            assert speed(e, k) == pytest.approx(speed(e, 0) * share[k], abs=1e-9)
            assert turned(e, k) == pytest.approx(turned(e, 0) * share[k], abs=1e-9)


RACK_MASS, PINION_I, RADIUS = 4.0, 0.1, 0.08


def rack_and_pinion() -> World:
    """A rack that slides upwards against gravity, driven by a pinion."""
    world = World()
    world.body("pinion", mass=2, inertia=(PINION_I,) * 3)
    world.body("rack", mass=RACK_MASS, inertia=(0.1,) * 3, pos=(RADIUS, 0, 0))
    world.hinge("axle", None, "pinion", at=(0, 0, 0), axis=-Y)
    world.prismatic("guide", None, "rack", at=(RADIUS, 0, 0), axis=Z)
    world.rack("mesh", "guide", "axle", radius=RADIUS)
    return world


@pytest.mark.parametrize("torque", [0.0, RACK_MASS * G * RADIUS, 10.0])
def test_a_rack_rises_with_the_torque_of_its_pinion_less_its_weight(torque: float) -> None:
    """x'' = (T / R - m g) / (m + I / R^2); at T = m g R it stands."""
    engine = compiled(rack_and_pinion())
    push(engine, "pinion", torque=(0, -torque, 0))
    advance(engine, 1.0)
    gain = (torque / RADIUS - RACK_MASS * G) / (RACK_MASS + PINION_I / RADIUS**2)
    assert velocity(engine, "rack")[2] == pytest.approx(gain, rel=1e-7, abs=1e-8)
    assert angle(engine, "axle") == pytest.approx(gain / 2 / RADIUS, rel=2e-3, abs=1e-6)


def test_a_rack_moves_by_its_radius_for_each_radian() -> None:
    """Under forces and torques that change, to 1e-9 m and m/s."""
    engine = compiled(rack_and_pinion())

    def load(rng: np.random.Generator) -> None:
        push(engine, "pinion", torque=(0, 5 * rng.normal(), 0))
        push(engine, "rack", force=(0, 0, RACK_MASS * G + 40 * rng.normal()))

    for e in shaken(engine, 2.0, load):
        assert velocity(e, "rack")[2] == pytest.approx(-RADIUS * spin(e, "pinion")[1], abs=1e-9)
        assert centre(e, "rack")[2] == pytest.approx(RADIUS * angle(e, "axle"), abs=1e-9)
    assert abs(angle(engine, "axle")) > 0.1


@pytest.mark.parametrize("lead", [0.02, -0.05])
@pytest.mark.parametrize("torque", [0.0, 0.6])
def test_a_screw_sinks_by_its_weight_and_rises_by_torque(lead: float, torque: float) -> None:
    """With p = lead / 2 pi: (I + m p^2) turn'' = T - m g p. No friction: it is not self-locking."""
    mass, moment, p = 6.0, 0.02, lead / (2 * np.pi)
    world = World()
    world.body("nut", mass=mass, inertia=(moment,) * 3)
    world.cylindrical("thread", None, "nut", at=(0, 0, 0), axis=Z)
    world.screw("screw", "thread", lead=lead)
    engine = compiled(world)
    push(engine, "nut", torque=(0, 0, torque))
    for _ in range(100):
        advance(engine, 0.01)
        assert velocity(engine, "nut")[2] == pytest.approx(p * spin(engine, "nut")[2], abs=1e-9)
        assert centre(engine, "nut")[2] == pytest.approx(p * angle(engine, "thread"), abs=1e-9)
    assert spin(engine, "nut")[2] == pytest.approx((torque - mass * G * p) / (moment + mass * p**2), rel=1e-7)


def differential() -> World:
    """Shaft "0", half shafts "1" and "2"."""
    world = wheels(0.3, 0.2, 0.5)
    world.differential("cage", "axle 0", "axle 1", "axle 2")
    return world


def test_a_differential_turns_its_shaft_by_the_mean_of_the_wheels() -> None:
    engine = compiled(differential())
    for e in shaken(engine, 2.0, random_torques(engine, "0", "1", "2")):
        assert speed(e, 0) == pytest.approx((speed(e, 1) + speed(e, 2)) / 2, abs=1e-9)
        assert turned(e, 0) == pytest.approx((turned(e, 1) + turned(e, 2)) / 2, abs=1e-9)
    assert abs(speed(engine, 1) - speed(engine, 2)) > 0.5


def test_a_differential_splits_its_torque_evenly() -> None:
    """I_0 a_0 = T - c, I_1 a_1 = T_1 + c / 2, I_2 a_2 = T_2 + c / 2 with a_0 = (a_1 + a_2) / 2."""
    torque, brakes = 8.0, (-1.0, 2.5)
    engine = compiled(differential())
    for k, t in enumerate((torque, *brakes)):
        push(engine, f"{k}", torque=(0, 0, t))
    advance(engine, 1.0)
    cage = (torque / 0.3 - (brakes[0] / 0.2 + brakes[1] / 0.5) / 2) / (1 / 0.3 + (1 / 0.2 + 1 / 0.5) / 4)
    expected = [(torque - cage) / 0.3, (brakes[0] + cage / 2) / 0.2, (brakes[1] + cage / 2) / 0.5]
    assert [speed(engine, k) for k in range(3)] == pytest.approx(expected, rel=1e-7)
    assert abs(engine.content.data.coupled.force[0]) == pytest.approx(cage, rel=1e-7)


def test_a_wheel_that_is_held_lets_the_other_turn_at_twice_the_shaft() -> None:
    """And the one that holds it bears half of what the cage passes on: c = T / (1 + 4 I_0 / I_2)."""
    world = differential()
    world.motor("hold", "axle 1", speed=0.0)
    engine = compiled(world)
    push(engine, "0", torque=(0, 0, 4.0))
    advance(engine, 1.0)
    shaft = 4.0 / (0.3 + 0.5 * 2**2)
    assert speed(engine, 0) == pytest.approx(shaft, rel=1e-6)
    assert speed(engine, 2) == pytest.approx(2 * shaft, rel=1e-6)
    assert motor_torque(engine) == pytest.approx(-(4.0 - 0.3 * shaft) / 2, rel=1e-6)


@pytest.mark.parametrize("stepper", ["spook", "linearised", "projected"])
def test_a_loaded_gear_has_not_slipped_after_a_hundred_thousand_steps(stepper: str) -> None:
    """A hundred seconds at 12 rad/s against 5 N m; the attitudes alone say how far the wheels have turned."""
    ratio = -2.0
    world = wheels(0.2, 0.5)
    world.gear("mesh", "axle 0", "axle 1", ratio=ratio)
    world.motor("drive", "axle 0", speed=12.0)
    engine = compile_world(world, 1e-3, stepper=stepper)
    push(engine, "1", torque=(0, 0, 5.0))
    advance(engine, 100.0)
    assert turned(engine, 0) == pytest.approx(1200, rel=1e-6)
    assert turned(engine, 0) - ratio * turned(engine, 1) == pytest.approx(0, abs=1e-8)
    first, second = (2 * np.arctan2(q[3], q[0]) for q in (attitude(engine, "0"), attitude(engine, "1")))
    assert np.exp(1j * first) == pytest.approx(np.exp(1j * ratio * second), abs=1e-8)


@pytest.mark.parametrize(
    "stepper",
    [
        "spook",
        "linearised",
        "projected",
    ],
)
def test_bevel_gears_on_a_tumbling_carrier_do_not_slip(stepper: str) -> None:
    """Perpendicular axles on a body that tumbles at 8 rad/s: turns against the carrier, from the attitudes
    alone, keep their ratio over twenty seconds; speeds against it do so to the order of the step.
    """
    ratio, tumble = -1.5, np.array([5.0, -4.0, 4.5])
    world = World(gravity=(0, 0, 0))
    world.body("carrier", kind="kinematic", spin=tumble)
    world.body("first", mass=1, inertia=(0.02,) * 3)
    world.body("second", mass=1, inertia=(0.03,) * 3)
    world.hinge("along x", "carrier", "first", at=(0, 0, 0), axis=X)
    world.hinge("along z", "carrier", "second", at=(0, 0, 0), axis=Z)
    world.gear("mesh", "along x", "along z", ratio=ratio)
    world.motor("drive", "along x", speed=6.0)
    engine = compile_world(world, 1e-3, stepper=stepper)
    for _ in range(20):
        advance(engine, 1.0)
        carrier, first, second = (
            Rotation.from_quat(attitude(engine, name)[[1, 2, 3, 0]]) for name in ("carrier", "first", "second")
        )
        about_x = (carrier.inv() * first).as_rotvec()[0]
        about_z = (carrier.inv() * second).as_rotvec()[2]
        slip = np.angle(np.exp(1j * (2 * about_x - 2 * ratio * about_z))) / 2  # 2 x ratio is whole: turns do not count
        assert slip == pytest.approx(0, abs=1e-5)
        axes = carrier.as_matrix().T
        fast, slow = axes[0] @ (spin(engine, "first") - tumble), axes[2] @ (spin(engine, "second") - tumble)
        assert fast == pytest.approx(6.0, abs=1e-2)
        assert fast == pytest.approx(ratio * slow, abs=1e-2)


@pytest.mark.parametrize("solver", ["direct", "split", "iterative", "gradient"])
def test_a_gear_holds_with_every_solver(solver: str) -> None:
    """Islands with couplings are solved directly, whatever is asked for the rest."""
    world = wheels(0.2, 0.5)
    world.gear("mesh", "axle 0", "axle 1", ratio=-2.0)
    engine = compile_world(world, 1e-3, solver=solver, sweeps=200)
    push(engine, "0", torque=(0, 0, 3.0))
    advance(engine, 0.2)
    assert speed(engine, 0) == pytest.approx(3.0 * 0.2 / (0.2 + 0.5 / 4), rel=1e-3)
    assert speed(engine, 1) == pytest.approx(-speed(engine, 0) / 2, rel=1e-3)


def test_a_gear_lets_go_when_the_bearing_of_a_wheel_breaks() -> None:
    """The hinge of the second wheel breaks under a pull of 60 N; from then on the first turns with its own inertia."""
    world = wheels(0.2, 0.5)
    world.body("third", mass=1, inertia=(0.1,) * 3, pos=(2, 0, 0))
    world.hinge("weak", None, "third", at=(2, 0, 0), axis=Z, strength=50.0)
    world.gear("mesh", "axle 0", "weak", ratio=1.0)
    engine = compiled(world)
    push(engine, "0", torque=(0, 0, 3.0))
    advance(engine, 0.1)
    assert speed(engine, 0) == pytest.approx(3.0 * 0.1 / (0.2 + 0.1), rel=1e-7)
    push(engine, "third", force=(60.0, 0, 0))
    assert engine.step() == 0
    before = speed(engine, 0)
    advance(engine, 0.1)
    assert speed(engine, 0) - before == pytest.approx(3.0 * 0.1 / 0.2, rel=1e-7)
    assert spin(engine, "third")[2] == pytest.approx(before, rel=1e-7)


def test_a_coupling_starts_from_where_its_joints_are() -> None:
    """Wheels that are turned at compile mesh as they are: nothing jumps."""
    world = World(gravity=(0, 0, 0))
    for k, turn in enumerate((0.4, -1.1)):
        world.body(f"{k}", inertia=(0.2,) * 3, pos=(k, 0, 0), quat=about((0, 0, 1), turn))
        world.hinge(f"axle {k}", None, f"{k}", at=(k, 0, 0), axis=Z)
    world.gear("mesh", "axle 0", "axle 1", ratio=3.0)
    engine = advance(compiled(world), 0.1)
    assert attitude(engine, "0") == pytest.approx(about((0, 0, 1), 0.4), abs=1e-12)
    assert attitude(engine, "1") == pytest.approx(about((0, 0, 1), -1.1), abs=1e-12)
