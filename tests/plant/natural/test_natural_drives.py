"""Drives, limits, springs, couplings and live changes in the core in natural coordinates."""

import numpy as np
import pytest
from mechanisms import G, Y, back_to_the_start, bar, natural
from scipy.integrate import solve_ivp

from plant.collision.shape.shapes import Sphere
from plant.engine.as_plant import as_plant
from plant.engine.compile import Engine, Spare, compile_world
from plant.engine.live import remove_body, switch_body, switch_joint, take_in
from plant.model import Status
from plant.natural.builder import Options
from plant.world.checks import WorldError
from plant.world.world import World


def arm(gravity: float = G) -> World:
    """A rod of 3 kg and 1 m on a hinge, level at first."""
    world = World(gravity=(0, 0, -gravity))
    bar(world, "rod", (0, 0, 0), (1, 0, 0), 3.0)
    world.hinge("pin", None, "rod", at=(0, 0, 0), axis=Y)
    return world


MOMENT = 3.0 / 3 + 3e-4  # of the rod about its pin [kg m^2]


def angle(engine: Engine, joint: int = 0) -> float:
    return float(engine.content.data.state.angle[joint, 0])


def test_a_motor_holds_its_speed_against_the_weight() -> None:
    world = arm()
    world.motor("drive", "pin", speed=0.5, force=100.0)
    engine = natural(world)
    assert engine.step(1000) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(0.5, abs=1e-6)
    before = angle(engine)
    assert engine.step(1000) == 0
    assert angle(engine) - before == pytest.approx(0.5, abs=1e-6)


def test_a_motor_gives_no_more_than_its_force() -> None:
    """Without weight, 2 N m on the moment of the rod: a constant acceleration until the speed is reached."""
    world = arm(0.0)
    world.motor("drive", "pin", speed=5.0, force=2.0)
    engine = natural(world)
    assert engine.step(1000) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(2.0 / MOMENT, rel=1e-3)
    assert engine.step(3000) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(5.0, abs=1e-6)


def test_friction_in_a_joint_holds_what_it_can_and_slows_what_it_can_not() -> None:
    weight = 3.0 * G * 0.5
    held = arm()
    held.friction("brake", "pin", force=1.05 * weight)
    engine = natural(held)
    before = angle(engine)
    assert engine.step(2000) == 0
    assert abs(angle(engine) - before) < 1e-7
    slipping = arm()
    slipping.friction("brake", "pin", force=0.5 * weight)
    engine = natural(slipping)
    assert engine.step(10) == 0
    before = engine.content.data.state.vel[0, 4]
    assert engine.step(20) == 0
    gained = engine.content.data.state.vel[0, 4] - before
    assert gained == pytest.approx(0.5 * weight / MOMENT * 0.02, rel=5e-3)


def test_a_limit_stops_the_arm_and_lets_it_go_again() -> None:
    world = arm()
    world.limit("stop", "pin", low=-1.0, high=0.4)
    engine = natural(world, iterations=4)
    for _ in range(20):
        assert engine.step(50) == 0
        assert angle(engine) < 0.4 + 1e-6
    assert angle(engine) == pytest.approx(0.4, abs=1e-6)
    engine.content.data.state.wrench[0, 2] = 2 * 3.0 * G  # lift it
    assert engine.step(300) == 0
    assert angle(engine) < 0.3


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9])
def test_a_limit_sends_the_arm_back_by_its_restitution(stepper: str, restitution: float) -> None:
    """Without weight at 2 rad/s: the speed after the stop is that before, times the restitution, the other way."""
    world = arm(0.0)
    world.limit("stop", "pin", low=-1.0, high=0.1234, restitution=restitution)
    engine = compile_world(world, 1e-3, stepper=stepper)
    engine.content.data.state.vel[0] = (0, 0, -0.5 * 2, 0, 2, 0)
    engine.content.data.status[Status.POSES_VALID] = 0
    assert engine.step(50) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(2.0, rel=1e-6)
    assert engine.step(50) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(-2.0 * restitution, abs=2e-3)
    assert angle(engine) < 0.1234 + 1e-6


def test_a_weight_bounces_on_its_limit_to_the_height_that_is_left() -> None:
    """A slide that falls by 0.5 m on a stop of restitution 0.7 comes back to 0.49 of that."""
    world = World()
    world.body("hammer", mass=2.0, inertia=(0.1, 0.1, 0.1), pos=(0, 0, 0.5))
    world.prismatic("guide", None, "hammer", at=(0, 0, 0.5), axis=(0, 0, 1))
    world.limit("anvil", "guide", axis="z", low=-0.5, high=1.0, restitution=0.7)
    engine = natural(world)
    heights = []
    for _ in range(900):
        assert engine.step(1) == 0
        heights.append(engine.position("hammer")[2])
    hit = int(np.argmin(heights))
    assert hit * 1e-3 == pytest.approx(np.sqrt(2 * 0.5 / G), abs=3e-3)
    assert max(heights[hit:]) == pytest.approx(0.49 * 0.5, rel=0.02)
    assert min(heights) > -1e-6


def test_a_drive_takes_part_in_the_first_acceleration() -> None:
    """Within the first step: a motor at its speed carries the weight, one that starts pushes with all its force."""
    weight = 3.0 * G * 0.5
    holds = arm()
    holds.motor("drive", "pin", speed=0.0, force=2 * weight)
    engine = natural(holds)
    assert engine.step(1) == 0
    assert abs(engine.content.data.state.vel[0, 4]) < 1e-9
    starts = arm(0.0)
    starts.motor("drive", "pin", speed=5.0, force=2.0)
    engine = natural(starts)
    assert engine.step(1) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(2.0 / MOMENT * 1e-3, rel=1e-6)
    slips = arm()
    slips.friction("brake", "pin", force=0.5 * weight)
    engine = natural(slips)
    assert engine.step(1) == 0
    assert engine.content.data.state.vel[0, 4] == pytest.approx(0.5 * weight / MOMENT * 1e-3, rel=1e-5)


def test_a_spring_on_a_hinge_swings_with_its_period() -> None:
    world = arm(0.0)
    world.spring_on("spring", "pin", stiffness=40.0, damping=0.0)
    engine = natural(world)
    engine.content.data.state.vel[0] = (0, 0, -0.5 * 0.2, 0, 0.2, 0)
    engine.content.data.status[Status.POSES_VALID] = 0
    period = 2 * np.pi * np.sqrt(MOMENT / 40.0)
    assert engine.step(round(period / 1e-3)) == 0
    assert angle(engine) == pytest.approx(0.0, abs=2e-3 * 0.2 * np.sqrt(MOMENT / 40.0) + 0.2 * 1e-3)
    assert engine.content.data.state.vel[0, 4] == pytest.approx(0.2, rel=1e-3)


COUPLINGS = {
    "gear": lambda w: w.gear("c", "p", "q", ratio=-2.0),
    "couple": lambda w: w.couple("c", ("p", "turn", 1.0), ("q", "turn", 3.0)),
}


@pytest.mark.parametrize("kind", list(COUPLINGS))
def test_coupled_wheels_move_as_in_the_other_core(kind: str) -> None:
    """One wheel is driven, the other goes with it: the same turns in both cores, to rounding of the coupling."""

    def world() -> World:
        w = World(gravity=(0, 0, 0))
        for name, x in (("one", 0.0), ("two", 1.0)):
            w.body(name, mass=1.0, inertia=(0.1, 0.2, 0.1), pos=(x, 0, 0))
        w.hinge("p", None, "one", at=(0, 0, 0), axis=Y)
        w.hinge("q", None, "two", at=(1, 0, 0), axis=Y)
        COUPLINGS[kind](w)
        w.motor("drive", "p", speed=2.0, force=5.0)
        return w

    one, other = natural(world()), compile_world(world(), 1e-3)
    for engine in (one, other):
        assert engine.step(1500) == 0
    assert np.abs(one.content.data.state.angle[:2, 0] - other.content.data.state.angle[:2, 0]).max() < 5e-3
    ratio = one.content.data.state.vel[1, 4] / one.content.data.state.vel[0, 4]
    assert ratio == pytest.approx(other.content.data.state.vel[1, 4] / other.content.data.state.vel[0, 4], abs=1e-6)


@pytest.mark.parametrize("share", [False, True])
def test_a_reaction_is_what_statics_says(share: bool) -> None:
    """The pin of a hanging rod at rest carries its weight."""
    world = World()
    bar(world, "rod", (0, 0, 0), (0, 0, -1), 3.0)
    world.hinge("pin", None, "rod", at=(0, 0, 0), axis=Y)
    engine = natural(world, share=share)
    assert engine.step(10) == 0
    assert np.linalg.norm(engine.reaction("pin")[:3]) == pytest.approx(3.0 * G, rel=1e-6)


def test_a_joint_breaks_at_its_strength_and_the_rod_falls() -> None:
    """A hanging rod of 3 kg pulls its pin with its weight; a growing load on top breaks it where the sum says."""
    world = World()
    bar(world, "rod", (0, 0, 0), (0, 0, -1), 3.0)
    world.ball("pin", None, "rod", at=(0, 0, 0), strength=60.0)
    engine = natural(world)
    state = engine.content.data.state
    for load in np.arange(0.0, 60.0, 0.5):
        state.wrench[0, 2] = -load
        assert engine.step(20) == 0
        if engine.content.model.joint.on[0] == 0:
            break
    assert load + 3.0 * G == pytest.approx(60.0, abs=1.5)
    state.wrench[0] = 0.0
    engine.content.data.status[Status.POSES_VALID] = 0  # a jump of the force: accelerations are found anew
    before, speed = state.pos[0, 2], state.vel[0, 2]
    assert engine.step(100) == 0
    assert state.pos[0, 2] - before == pytest.approx(0.1 * speed - 0.5 * G * 0.01, abs=1e-6)


def chain_of_three(spare: Spare | None = None) -> Engine:
    world = World()
    before = None
    for k in range(3):
        bar(world, f"rod{k}", (k, 0, 0), (k + 1, 0, 0), 1.0)
        world.hinge(f"pin{k}", before, f"rod{k}", at=(k, 0, 0), axis=Y)
        before = f"rod{k}"
    return compile_world(world, 1e-3, stepper="ali3p", natural=Options(), spare=spare)


def users(engine: Engine) -> list[int]:
    assert engine.core is not None
    entity = engine.core.content.entity
    n = int(entity.count[0])
    return sorted(entity.users[:n][(entity.known[:n] == 0)].tolist())


def test_a_shared_point_is_there_as_long_as_somebody_uses_it() -> None:
    """Two inner pins are shared by two rods each; when the last rod goes, one of them belongs to one rod alone."""
    engine = chain_of_three()
    assert users(engine).count(2) == 2
    assert engine.step(100) == 0
    remove_body(engine, "rod2")
    assert users(engine).count(2) == 1
    assert engine.step(100) == 0


def test_a_rod_that_is_let_go_falls_freely() -> None:
    engine = chain_of_three()
    assert engine.step(200) == 0
    rod = engine.index("rod2")
    state = engine.content.data.state
    pos, vel = state.pos[rod].copy(), state.vel[rod].copy()
    switch_joint(engine, "pin2", on=False)
    assert engine.step(300) == 0
    expected = pos + 0.3 * vel[:3] + np.array([0, 0, -0.5 * G * 0.3**2])
    assert np.abs(state.pos[rod] - expected).max() < 1e-6
    assert state.vel[rod, 4] == pytest.approx(vel[4], abs=1e-9)


def test_a_body_that_comes_later_falls_and_a_joint_that_comes_later_holds_it() -> None:
    engine = chain_of_three(Spare(bodies=2, joints=1, shapes=1))
    assert engine.step(50) == 0
    engine.world.solid("ball", Sphere(0.1), density=500, pos=(0, 5, 0))
    take_in(engine)
    ball = engine.index("ball")
    assert engine.step(200) == 0
    assert engine.content.data.state.pos[ball, 2] == pytest.approx(-0.5 * G * 0.2**2, abs=1e-6)
    engine.world.ball("rope", None, "ball", at=(0, 5, 0.5))
    take_in(engine)
    for _ in range(20):
        assert engine.step(100) == 0
        assert np.linalg.norm(engine.content.data.state.pos[ball] - (0, 5, 0.5)) < 0.75


def wheels() -> World:
    """Two wheels without weight, geared one to minus one; the first is a servo's."""
    world = World(gravity=(0, 0, 0))
    for name, x in (("one", 0.0), ("two", 1.0)):
        world.body(name, mass=1.0, inertia=(0.1, 0.2, 0.1), pos=(x, 0, 0))
    world.hinge("p", None, "one", at=(0, 0, 0), axis=Y)
    world.hinge("q", None, "two", at=(1, 0, 0), axis=Y)
    world.gear("gear", "p", "q", ratio=-1.0)
    world.servo("drive", "p", position=9.0, gain=5.0, force=100.0)
    world.limit("stop", "q", low=-20.0, high=20.0)
    return world


def test_turns_go_on_through_a_live_change() -> None:
    """Nearly one and a half turns, then a body comes: gear, servo and limit stay where they are."""
    world = wheels()
    engine = compile_world(world, 1e-3, stepper="ali3p", spare=Spare(bodies=1))
    assert engine.step(3000) == 0
    turned = engine.content.data.state.angle[:2, 0].copy()
    assert np.abs(turned) == pytest.approx([9.0, 9.0], abs=1e-4)
    world.body("late", mass=1.0, inertia=(0.1, 0.1, 0.1), pos=(0, 5, 0))
    take_in(engine)
    assert engine.step(200) == 0
    assert engine.content.data.state.angle[:2, 0] == pytest.approx(turned, abs=1e-3)
    assert np.abs(engine.content.data.state.vel[:2]).max() < 1e-2


def test_turns_begin_anew_with_the_state_at_the_start() -> None:
    """Put back to the start after a turn and a half, it turns there again: all 9 radians, not what is left of them."""
    engine = natural(wheels())
    reset = back_to_the_start(engine)
    for _ in range(2):
        reset()
        assert engine.step(100) == 0
        assert 1.0 < angle(engine) < 6.0
        assert engine.step(2900) == 0
        assert angle(engine) == pytest.approx(9.0, abs=1e-4)


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_a_spring_goes_with_its_body(stepper: str) -> None:
    """Two balls hang on springs from a third one: when that is removed they fall together, and alone if one goes."""
    world = World()
    for name, z in (("upper", 0.0), ("lower", -1.0), ("third", -2.0)):
        world.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01), pos=(0, 0, z))
    world.ball("hook", None, "upper", at=(0, 0, 0.5))
    for a, b, z in (("upper", "lower", 0.0), ("lower", "third", -1.0)):
        world.spring(f"{a}-{b}", a, b, at_a=(0, 0, z), at_b=(0, 0, z - 1), stiffness=100.0)
    engine = compile_world(world, 1e-3, stepper=stepper)
    assert engine.step(200) == 0
    state, both = engine.content.data.state, [engine.index("lower"), engine.index("third")]
    remove_body(engine, "upper")
    assert list(engine.world.springs) == ["lower-third"]
    before, speed = state.pos[both, 2].mean(), state.vel[both, 2].mean()
    assert engine.step(200) == 0
    assert state.pos[both, 2].mean() - before == pytest.approx(0.2 * speed - 0.5 * G * 0.04, abs=2e-3)
    switch_body(engine, "third", on=False)
    before, speed = state.pos[both[0], 2], state.vel[both[0], 2]
    assert engine.step(200) == 0
    assert state.pos[both[0], 2] - before == pytest.approx(0.2 * speed - 0.5 * G * 0.04, abs=2e-3)


def test_what_can_not_be_fitted_in_changes_nothing() -> None:
    """A rod that is too short for its pins is refused by its name, and the engine goes on as if nobody had asked."""
    one, other = (chain_of_three(Spare(bodies=1, joints=2)) for _ in range(2))
    for engine in (one, other):
        assert engine.step(50) == 0
    bar(one.world, "short", (0, 3, 0), (1, 3, 0), 1.0)
    for name, x in (("far", 0.0), ("farther", 1.0)):
        one.world.ball(name, None, "short", at=(x, 3, 0))
    one.world.joints["farther"].at, one.world.joints["farther"].at_b = np.array([1.5, 3, 0]), np.array([1.0, 3, 0])
    with pytest.raises(WorldError, match="'short' between joints 'far', 'farther'"):
        take_in(one)
    assert "short" not in one.names
    assert "far" not in one.joint_names
    for engine in (one, other):
        assert engine.step(100) == 0
    assert (one.content.data.state.pos[:3] == other.content.data.state.pos[:3]).all()


def test_a_reaction_of_a_joint_that_is_kept_apart_is_an_output() -> None:
    """The pin of a hanging rod at rest carries its weight; one that is shared is refused with what to do."""
    world = World()
    bar(world, "rod", (0, 0, 0), (0, 0, -1), 3.0)
    world.hinge("pin", None, "rod", at=(0, 0, 0), axis=Y)
    engine = natural(world, apart=("pin",))
    as_plant(engine, "machine", reactions=["pin"])
    assert engine.step(10) == 0
    assert engine.content.data.row.reaction[0] == pytest.approx([0, 0, 3.0 * G], abs=1e-5)
    with pytest.raises(WorldError, match="apart"):
        as_plant(natural(world), "machine", reactions=["pin"])
    with pytest.raises(WorldError, match="pin"):
        natural(world, apart=("pim",))


def guided_arm(dt: float) -> tuple[float, float]:
    """A rod on a hinge, swung as A sin(w t): how far it is off at most, and its torque off the closed form."""
    world, size, w = arm(), 0.7, 5.0
    world.guide("swing", "pin", speed=size * w)
    engine, off, torque_off = natural(world, dt), 0.0, 0.0
    for k in range(1, round(1.0 / dt) + 1):
        turn = size * np.sin(w * k * dt)
        engine.guide("swing", turn, size * w * np.cos(w * k * dt), -w * w * turn)
        assert engine.step() == 0
        off = max(off, abs(angle(engine) - turn)) if k > 1 else 0.0  # the first step goes on from where it stands
        torque = -MOMENT * w * w * turn - 3.0 * G * 0.5 * np.cos(turn)
        if k * dt > 0.1:
            torque_off = max(torque_off, abs(engine.content.data.target.pushed[0] - torque))
    return off, torque_off


def test_a_guided_arm_is_where_it_is_told_and_takes_the_torque_of_its_motion() -> None:
    """Exactly there. The torque, I a - m g l cos, is that of the last iteration, before accelerations are projected: it
    comes nearer with the step, and has the sign and size of the closed form."""
    (off, coarse), (_, fine) = guided_arm(4e-3), guided_arm(2e-3)
    assert off < 1e-9
    assert fine < 0.01 * 0.7 * 25 * MOMENT
    assert np.log2(coarse / fine) > 0.9


def pendulum_on_a_slide(dt: float) -> tuple[float, float]:
    """A pendulum whose pivot is moved as A sin(w t) along x: its turn after a second, and that by scipy."""
    size, w = 0.3, 4.0
    world = World()
    world.body("carriage", mass=2.0, inertia=(0.1, 0.1, 0.1), pos=(0, 0, 0))
    bar(world, "rod", (0, 0, 0), (0, 0, -1), 3.0, vel=(size * w, 0, 0))  # at rest against its pivot
    world.prismatic("rail", None, "carriage", at=(0, 0, 0), axis=(1, 0, 0))
    world.hinge("pin", "carriage", "rod", at=(0, 0, 0), axis=Y)
    world.guide("shake", "rail", axis="z", speed=size * w)
    engine = natural(world, dt)
    for k in range(1, round(1.0 / dt) + 1):
        t = k * dt
        engine.guide("shake", size * np.sin(w * t), size * w * np.cos(w * t), -size * w * w * np.sin(w * t))
        assert engine.step() == 0
    pos = engine.content.data.state.pos
    assert pos[0, 0] == pytest.approx(size * np.sin(w), abs=1e-9)
    run = solve_ivp(
        lambda t, y: [y[1], 1.5 * (size * w * w * np.sin(w * t) * np.cos(y[0]) - G * np.sin(y[0])) / MOMENT],
        (0, 1.0),
        [0.0, 0.0],
        rtol=1e-11,
        atol=1e-12,
    )
    return float(np.arctan2(pos[1, 0] - pos[0, 0], pos[0, 2] - pos[1, 2])), float(run.y[0, -1])


def test_a_guided_pivot_moves_its_pendulum_to_second_order() -> None:
    errors = [abs(a - b) for a, b in (pendulum_on_a_slide(dt) for dt in (4e-3, 2e-3))]
    assert errors[1] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


def test_a_guide_that_is_told_nothing_goes_on_with_its_acceleration() -> None:
    """2 rad/s and 3 rad/s^2 against the weight: 0.25 + 2 t + 3/2 t^2."""
    world = arm()
    world.guide("swing", "pin", position=0.25, speed=2.0, acceleration=3.0)
    engine = natural(world)
    assert angle(engine) == pytest.approx(0.25, abs=1e-9)
    assert engine.step(1000) == 0
    assert angle(engine) == pytest.approx(0.25 + 2.0 + 1.5, abs=1e-8)
    assert engine.content.data.state.vel[0, 4] == pytest.approx(5.0, abs=1e-8)


def test_a_guide_is_for_this_core_alone() -> None:
    world = arm()
    world.guide("swing", "pin")
    with pytest.raises(WorldError, match=r"swing.*ali3p"):
        compile_world(world, 1e-3)
