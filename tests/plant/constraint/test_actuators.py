"""Motors, servos, limits and dry friction of joints against closed forms of one degree of freedom."""

import numpy as np
import pytest
from worlds import G, advance, angle, centre, compiled, push, rows_of, spin, velocity, watched

from plant.engine.compile import Engine
from plant.model import Bound
from plant.world.world import World

MASS, MOMENT = 2.0, 0.5


def slider(**start: object) -> World:
    """A body that slides along x, no gravity."""
    world = World(gravity=(0, 0, 0))
    world.body("cart", mass=MASS, inertia=(1, 1, 1), **start)  # type: ignore[arg-type]
    world.prismatic("rail", None, "cart", at=(0, 0, 0), axis=(1, 0, 0))
    return world


def wheel(**start: object) -> World:
    """A body that turns about z, no gravity."""
    world = World(gravity=(0, 0, 0))
    world.body("wheel", mass=1, inertia=(1, 1, MOMENT), **start)  # type: ignore[arg-type]
    world.hinge("axle", None, "wheel", at=(0, 0, 0), axis=(0, 0, 1))
    return world


def place(engine: Engine) -> float:
    return float(centre(engine, "cart")[0])


def force_of(engine: Engine, kind: Bound) -> float:
    """Force of the only row of a kind in the last step [N, N m]."""
    (k,) = rows_of(engine, int(kind))
    return float(engine.content.data.bounded.value[k] / engine.content.model.setup.h)


def test_a_motor_accelerates_with_its_force_until_its_speed_is_reached() -> None:
    """a = F / m exactly while it is at its bound, then the target speed, and no force."""
    world = slider()
    world.motor("drive", "rail", axis="z", speed=1.5, force=10.0)
    engine = compiled(world)
    seen = watched(engine, 0.5, lambda e: float(velocity(e, "cart")[0]))
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.minimum(1.5, 10.0 / MASS * t), abs=1e-7)
    assert force_of(engine, Bound.MOTOR) == pytest.approx(0, abs=1e-6)


def test_a_motor_turns_and_never_exceeds_its_torque() -> None:
    world = wheel()
    world.motor("drive", "axle", speed=-8.0, force=3.0)
    engine = compiled(world)
    for n in range(1, 1500):
        assert engine.step() == 0
        assert abs(force_of(engine, Bound.MOTOR)) <= 3.0 * (1 + 1e-12)
        assert spin(engine, "wheel")[2] == pytest.approx(-min(8.0, 3.0 / MOMENT * n * 1e-3), abs=1e-7)


def test_a_motor_too_weak_for_its_load_is_driven_back_by_the_difference() -> None:
    world = slider()
    world.motor("drive", "rail", axis="z", speed=1.0, force=10.0)
    engine = compiled(world)
    push(engine, "cart", (-14.0, 0, 0))
    advance(engine, 0.5)
    assert velocity(engine, "cart")[0] == pytest.approx((10 - 14) / MASS * 0.5, rel=1e-9)


def test_a_motor_pushes_both_its_bodies_oppositely() -> None:
    """Free in space: momentum stays zero, and speeds go by inertia."""
    world = World(gravity=(0, 0, 0))
    world.body("stator", mass=1, inertia=(1, 1, 2.0))
    world.body("rotor", mass=1, inertia=(1, 1, 0.5))
    world.hinge("axle", "stator", "rotor", at=(0, 0, 0), axis=(0, 0, 1))
    world.motor("drive", "axle", speed=10.0, force=1.0)
    engine = advance(compiled(world), 5.0)
    assert spin(engine, "rotor")[2] == pytest.approx(8.0, rel=1e-9)
    assert spin(engine, "stator")[2] == pytest.approx(-2.0, rel=1e-9)


def test_targets_may_be_changed_while_running() -> None:
    world = slider()
    world.motor("drive", "rail", axis="z", speed=1.0)
    engine = advance(compiled(world), 0.1)
    engine.content.data.target.speed[0] = -2.0
    advance(engine, 0.1)
    assert velocity(engine, "cart")[0] == pytest.approx(-2.0, abs=1e-6)


def test_a_servo_closes_in_on_its_position_at_its_gain() -> None:
    """x' = gain (goal - x): the distance falls by (1 - gain h) in each step."""
    world = slider()
    world.servo("drive", "rail", axis="z", position=0.4, gain=20.0)
    engine = compiled(world)
    seen = watched(engine, 0.3, place)
    n = np.arange(len(seen))
    assert seen == pytest.approx(0.4 * (1 - (1 - 20.0 * 1e-3) ** n), abs=1e-7)


def test_a_servo_holds_against_a_force_below_its_bound() -> None:
    world = slider()
    world.servo("drive", "rail", axis="z", position=0.0, gain=50.0, force=100.0)
    engine = compiled(world)
    push(engine, "cart", (99.0, 0, 0))
    advance(engine, 2.0)
    assert place(engine) == pytest.approx(0, abs=1e-6)
    push(engine, "cart", (101.0, 0, 0))
    advance(engine, 1.0)
    assert velocity(engine, "cart")[0] == pytest.approx(1.0 / MASS * 1.0, rel=0.01)


def test_a_servo_turns_more_than_once() -> None:
    world = wheel()
    world.servo("drive", "axle", position=15.0, gain=10.0)
    engine = advance(compiled(world), 2.0)
    assert angle(engine, "axle") == pytest.approx(15.0, abs=1e-6)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_limit_stops_at_its_place(side: float) -> None:
    """Driven at 3 m/s into the stop at 0.2 m: it arrives on time and goes no further than a fraction of one step's
    way.
    """
    world = slider(vel=(3.0 * side, 0, 0))
    world.limit("stop", "rail", axis="z", low=-0.2, high=0.2)
    engine = compiled(world)
    seen = watched(engine, 0.5, place) * side
    assert seen[:67] == pytest.approx(3.0 * np.arange(67) * 1e-3, abs=1e-9)
    assert seen.max() < 0.2 + 3.0 * 1e-3 / 4
    assert abs(velocity(engine, "cart")[0]) < 0.1


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_limit_without_restitution_does_not_bounce(side: float) -> None:
    world = slider(vel=(3.0 * side, 0, 0))
    world.limit("stop", "rail", axis="z", low=-0.2, high=0.2)
    engine = advance(compiled(world), 0.5)
    assert abs(velocity(engine, "cart")[0]) < 1e-4
    assert place(engine) * side == pytest.approx(0.2, abs=1e-4)


def test_a_limit_only_pushes() -> None:
    """Held against the stop by 50 N, then pulled off: it lets go at once."""
    world = slider(pos=(0, 0, 0))
    world.limit("stop", "rail", axis="z", low=-1.0, high=0.001)
    engine = compiled(world)
    push(engine, "cart", (50.0, 0, 0))
    advance(engine, 1.0)
    assert place(engine) == pytest.approx(0.001, abs=1e-6)
    assert sum(engine.content.data.bounded.value[k] for k in rows_of(engine, Bound.LIMIT)) == pytest.approx(
        50e-3, rel=1e-6
    )
    where = place(engine)
    push(engine, "cart", (-50.0, 0, 0))
    advance(engine, 0.2)
    n = 200
    assert place(engine) - where == pytest.approx(-50.0 / MASS * 1e-6 * n * (n + 1) / 2, rel=1e-6)


def test_a_turning_limit_carries_a_pendulum() -> None:
    """A bar released level falls on a stop 0.5 rad below and rests there; the stop carries m g l cos."""
    world = World()
    world.body("bar", mass=3, inertia=(0.01, 0.3, 0.3), pos=(0.6, 0, 0))
    world.hinge("pin", None, "bar", at=(0, 0, 0), axis=(0, 1, 0))
    world.limit("stop", "pin", low=-2.0, high=0.5)
    engine = advance(compiled(world), 3.0)
    assert angle(engine, "pin") == pytest.approx(0.5, abs=1e-6)
    assert force_of(engine, Bound.LIMIT) == pytest.approx(3 * G * 0.6 * np.cos(0.5), rel=1e-5)


def test_a_limit_beyond_half_a_turn() -> None:
    world = wheel(spin=(0, 0, 9.0))
    world.limit("stop", "axle", low=-1.0, high=7.5)
    engine = compiled(world)
    push(engine, "wheel", torque=(0, 0, 2.0))
    advance(engine, 4.0)
    assert angle(engine, "axle") == pytest.approx(7.5, abs=1e-6)


def test_a_body_that_starts_beyond_a_limit_is_brought_back_gently() -> None:
    """One centimetre past the stop: it returns and does not overshoot by more than it was off."""
    world = slider()
    world.limit("stop", "rail", axis="z", low=0.01, high=1.0)
    engine = compiled(world)
    seen = watched(engine, 0.2, place)
    assert seen[-1] >= 0.01 - 1e-6
    assert (np.diff(seen) >= -1e-12).all()


def test_a_body_brought_back_to_a_limit_stays_there() -> None:
    """Restitution zero: the correction of a violation must leave no speed behind."""
    world = slider()
    world.limit("stop", "rail", axis="z", low=0.01, high=1.0)
    engine = advance(compiled(world), 0.2)
    assert abs(velocity(engine, "cart")[0]) < 1e-3


def test_dry_friction_stops_at_the_right_time_and_place() -> None:
    """t = m v / F and x = m v^2 / 2 F."""
    world = slider(vel=(2.0, 0, 0))
    world.friction("brake", "rail", axis="z", force=8.0)
    engine = compiled(world)
    seen = watched(engine, 1.0, lambda e: float(velocity(e, "cart")[0]))
    stop = MASS * 2.0 / 8.0
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.maximum(0, 2.0 * (1 - t / stop)), abs=1e-6)
    assert place(engine) == pytest.approx(MASS * 2.0**2 / (2 * 8.0), abs=2.0 * 1e-3)


def test_dry_friction_in_a_hinge_stops_after_its_angle() -> None:
    world = wheel(spin=(0, 0, -6.0))
    world.friction("brake", "axle", force=1.5)
    engine = advance(compiled(world), 2.5)
    assert angle(engine, "axle") == pytest.approx(-MOMENT * 6.0**2 / (2 * 1.5), abs=6e-3)
    assert abs(spin(engine, "wheel")[2]) < 1e-9


def test_dry_friction_holds_below_its_bound_and_slips_above() -> None:
    world = slider()
    world.friction("brake", "rail", axis="z", force=8.0)
    engine = compiled(world)
    push(engine, "cart", (7.9, 0, 0))
    advance(engine, 10.0)
    assert abs(place(engine)) < 1e-6
    push(engine, "cart", (9.0, 0, 0))
    before = velocity(engine, "cart")[0]
    advance(engine, 1.0)
    assert velocity(engine, "cart")[0] - before == pytest.approx((9.0 - 8.0) / MASS * 1.0, rel=1e-6)


@pytest.mark.parametrize("kind", ["brake", "motor"])
def test_a_brake_holds_a_heavy_load_without_creeping(kind: str) -> None:
    """100 kN held for ten seconds: less than a tenth of a millimetre."""
    world = World(gravity=(0, 0, 0))
    world.body("cart", mass=1e4, inertia=(1e3,) * 3)
    world.prismatic("rail", None, "cart", at=(0, 0, 0), axis=(1, 0, 0))
    if kind == "brake":
        world.friction("hold", "rail", axis="z", force=2e5)
    else:
        world.motor("hold", "rail", axis="z", speed=0.0, force=2e5)
    engine = compiled(world)
    push(engine, "cart", (1e5, 0, 0))
    advance(engine, 10.0)
    assert abs(place(engine)) < 1e-4


def test_a_motor_and_a_brake_share_a_joint() -> None:
    """Net force: motor bound less friction."""
    world = slider()
    world.motor("drive", "rail", axis="z", speed=100.0, force=10.0)
    world.friction("brake", "rail", axis="z", force=4.0)
    engine = advance(compiled(world), 0.5)
    assert velocity(engine, "cart")[0] == pytest.approx((10 - 4) / MASS * 0.5, rel=1e-6)


@pytest.mark.parametrize("order", ["limit first", "motor first"])
def test_rows_that_come_and_go_do_not_disturb_those_that_stay(order: str) -> None:
    """A motor without a bound beside a limit that is only now and then near: its row changes places in the list of
    rows.
    """
    world = slider(pos=(0, 0, 0))
    world.body("other", mass=1, inertia=(1, 1, 1), pos=(0, 1, 0))
    world.prismatic("far rail", None, "other", at=(0, 1, 0), axis=(1, 0, 0))
    steps = {
        "limit": lambda: world.limit("stop", "rail", axis="z", low=-0.0005, high=1.0),
        "motor": lambda: world.motor("drive", "rail", axis="z", speed=0.1),
    }
    for name in ("limit", "motor") if order == "limit first" else ("motor", "limit"):
        steps[name]()
    world.motor("second", "far rail", axis="z", speed=0.2)
    engine = advance(compiled(world), 1.0)
    assert velocity(engine, "cart")[0] == pytest.approx(0.1, abs=1e-6)
    assert velocity(engine, "other")[0] == pytest.approx(0.2, abs=1e-6)
    assert np.isfinite(engine.content.data.state.vel).all()
