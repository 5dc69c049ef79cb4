"""Islands, sleep, and changes to a running engine: which bodies form an island, which sleep, which come and go.

Expected motions are closed forms: a body that nothing holds falls by h^2 g n (n + 1) / 2 in n steps of h, one that is
pushed over a plane is accelerated by F / m - mu g.
"""

import gc

import numpy as np
import pytest
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys
from worlds import G, advance, box, centre, push, rod, spin, velocity

from plant.collision.shape.shapes import Box
from plant.engine.compile import Engine, Spare, compile_world
from plant.engine.live import remove_body, remove_joint, switch_body, switch_joint, take_in
from plant.model import Status
from plant.world.checks import WorldError
from plant.world.world import World

H = 1e-3


def ground(**options: float) -> World:
    world = World(**options)  # type: ignore[arg-type]
    world.plane()
    world.material("default", "default", friction=0.4)
    return world


def ball(world: World, name: str, at: tuple[float, float, float], mass: float = 2.0, **state: object) -> str:
    """A solid ball of 10 cm."""
    world.body(name, mass=mass, inertia=[0.4 * mass * 0.1**2] * 3, pos=at, **state)  # type: ignore[arg-type]
    world.sphere(name, radius=0.1)
    return name


def plain(world: World, name: str, at: tuple[float, float, float], mass: float = 2.0) -> str:
    """A body without a shape."""
    return world.body(name, mass=mass, inertia=(0.02, 0.03, 0.04), pos=at)


def fallen(seconds: float) -> float:
    """How far a body falls from rest in whole steps."""
    n = round(seconds / H)
    return H * H * G * n * (n + 1) / 2


def islands(engine: Engine) -> list[list[str]]:
    """Names of the bodies of each island."""
    graph = engine.content.data.graph
    return [[n for b, n in enumerate(engine.names) if graph.island[b] == i] for i in range(graph.islands[0])]


def builds(engine: Engine) -> int:
    return int(engine.content.data.graph.islands[1])


def asleep(engine: Engine) -> list[str]:
    return [n for b, n in enumerate(engine.names) if engine.content.data.state.asleep[b]]


def test_two_stacks_are_two_islands() -> None:
    """The ground joins nobody."""
    world = ground()
    for x, name in ((0, "left"), (3, "right")):
        for k in range(2):
            box(world, f"{name} {k}", 0.5, 5, (x, 0, 0.25 + 0.5 * k))
    engine = advance(compile_world(world, H), 0.01)
    assert islands(engine) == [["left 0", "left 1"], ["right 0", "right 1"]]
    assert engine.content.data.graph.members[:2].tolist() == [2, 2]


def test_joints_make_one_island_and_the_ground_parts_it() -> None:
    world = World()
    for k in range(4):
        plain(world, f"b{k}", (k, 0, 5))
    world.ball("0-1", "b0", "b1", at=(0.5, 0, 5))
    world.ball("2-3", "b2", "b3", at=(2.5, 0, 5))
    world.ball("0-ground", None, "b0", at=(0, 0, 6))
    world.ball("2-ground", None, "b2", at=(2, 0, 6))
    engine = advance(compile_world(world, H), 0.01)
    assert islands(engine) == [["b0", "b1"], ["b2", "b3"]]


def test_springs_and_gears_join_islands_too() -> None:
    world = World(gravity=(0, 0, 0))
    for k in range(4):
        plain(world, f"b{k}", (k, 0, 0))
        world.hinge(f"h{k}", None, f"b{k}", at=(k, 0, 0), axis=(0, 0, 1))
    world.gear("gear", "h0", "h2", ratio=2)
    world.spring("spring", "b1", "b3", at_a=(1, 0.1, 0), at_b=(3, 0.1, 0), stiffness=100)
    engine = advance(compile_world(world, H), 0.01)
    assert islands(engine) == [["b0", "b2"], ["b1", "b3"]]


def test_a_contact_makes_one_island_of_two() -> None:
    """A box slides against another at 1 m/s across 10 cm: two islands before, one from then on."""
    world = ground()
    world.material("default", "default", friction=0.0)
    box(world, "fast", 0.5, 5, (0, 0, 0.25), vel=(1, 0, 0))
    box(world, "still", 0.5, 5, (0.6, 0, 0.25))
    engine = advance(compile_world(world, H), 0.09)
    assert islands(engine) == [["fast"], ["still"]]
    assert builds(engine) == 1
    advance(engine, 0.02)
    assert islands(engine) == [["fast", "still"]]
    assert builds(engine) == 2
    assert velocity(engine, "fast")[0] == pytest.approx(0.5, abs=1e-3)  # equal masses, no bounce
    assert velocity(engine, "still")[0] == pytest.approx(0.5, abs=1e-3)


def test_a_machine_on_the_ground_builds_its_graph_once() -> None:
    """Contacts with the ground come and go, joints move, limits and motors push: none of it is a new edge."""
    world = ground()
    world.material("default", "default", friction=0.3, restitution=0.5)
    world.body("upper", pos=(0.5, 0, 1), **rod(1.0, 5))  # type: ignore[arg-type]
    world.body("lower", pos=(1.5, 0, 1), **rod(1.0, 3))  # type: ignore[arg-type]
    world.hinge("shoulder", None, "upper", at=(0, 0, 1), axis=(0, 1, 0))
    world.hinge("elbow", "upper", "lower", at=(1, 0, 1), axis=(0, 1, 0))
    world.limit("stop", "elbow", low=-0.3, high=0.3)
    world.motor("drive", "shoulder", speed=0.5, force=20)
    world.sphere("lower", centre=(0.5, 0, 0), radius=0.05)
    ball(world, "ball", (-1, 0, 0.5))
    engine = compile_world(world, H)
    touched = set()
    for _ in range(100):
        assert engine.step(10) == 0
        touched.add(int(engine.content.data.contact.count[0]))
    assert len(touched) > 1
    assert builds(engine) == 1


def test_a_ball_that_bounces_on_a_box_makes_one_new_edge() -> None:
    """The block of a pair that parted stays, and is found again at the next bounce."""
    world = ground()
    world.material("default", "default", restitution=0.8)
    box(world, "box", 0.5, 50, (0, 0, 0.25))
    ball(world, "ball", (0, 0, 0.9))
    engine = compile_world(world, H)
    bounces, was = 0, -1.0
    for _ in range(1200):
        assert engine.step() == 0
        now = velocity(engine, "ball")[2]
        bounces, was = bounces + (was < 0 < now), now
    assert bounces >= 3
    assert builds(engine) == 2


def sleepy_stack() -> World:
    world = ground(sleep_after=0.5)
    for k in range(3):
        box(world, f"box {k}", 0.5, 5, (0, 0, 0.25 + 0.5 * k))
    return world


def test_a_stack_falls_asleep_and_costs_nothing() -> None:
    """At rest for half a second; then no rows, no island, no factorisation, and not a bit of it moves."""
    engine = advance(compile_world(sleepy_stack(), H), 0.4)
    assert asleep(engine) == []
    d = engine.content.data
    assert d.bounded.count[0] == 36
    advance(engine, 0.2)
    assert asleep(engine) == ["box 0", "box 1", "box 2"]
    before = d.state.pos.tobytes() + d.state.quat.tobytes()
    advance(engine, 1.0)
    assert (d.bounded.count[0], d.graph.islands[0], d.status[Status.FACTORS]) == (0, 0, 0)
    assert d.state.pos.tobytes() + d.state.quat.tobytes() == before
    assert (d.state.vel == 0).all()


def test_a_ball_that_falls_on_it_wakes_a_stack() -> None:
    """From 3 m above the top: it lands after sqrt(2 s / g), all of the stack is awake then, and sleeps again later."""
    world = sleepy_stack()
    ball(world, "ball", (0, 0, 4.6))
    engine = compile_world(world, H)
    lands = np.sqrt(2 * 3.0 / G)
    advance(engine, lands - 0.01)
    assert asleep(engine) == ["box 0", "box 1", "box 2"]
    advance(engine, 0.02)
    assert asleep(engine) == []
    advance(engine, 0.1)
    rows = engine.content.data.bounded
    borne = sum(rows.value[k] for k in range(rows.count[0]) if rows.kind[k] == 5 and rows.b[k] < 0 and rows.a[k] == 0)
    assert borne / H == pytest.approx(17 * G, rel=0.02)
    advance(engine, 2.0)
    assert asleep(engine) == ["box 0", "box 1", "box 2", "ball"]


def test_a_push_wakes_the_whole_stack() -> None:
    """30 N on the top box of 5 kg at mu 0.4 is more than friction bears; the others stay where they are."""
    engine = advance(compile_world(sleepy_stack(), H), 1.0)
    assert len(asleep(engine)) == 3
    push(engine, "box 2", (30, 0, 0))
    assert engine.step() == 0
    assert asleep(engine) == []
    advance(engine, 0.1)
    assert velocity(engine, "box 2")[0] > 0.15
    assert np.abs(velocity(engine, "box 0")).max() < 1e-4


@pytest.mark.parametrize("steps", [1, 100])
def test_who_was_woken_by_a_push_moves_as_if_it_had_never_slept(steps: int) -> None:
    """a = F / m - mu g from the first step on. Seen: F / m in the first, twice the friction in the next two."""
    engine = advance(compile_world(sleepy_stack(), H), 1.0)
    push(engine, "box 2", (30, 0, 0))
    assert engine.step(steps) == 0
    assert velocity(engine, "box 2")[0] == pytest.approx((30 / 5 - 0.4 * G) * steps * H, rel=2e-3)


def test_a_floor_that_starts_to_move_wakes_what_lies_on_it() -> None:
    """A kinematic slab rises at 0.2 m/s, and the box with it."""
    world = ground(sleep_after=0.3)
    world.body("slab", pos=(0, 0, 0.5), kind="kinematic")
    world.shape("slab", Box(2, 2, 0.1))
    box(world, "box", 0.5, 5, (0, 0, 0.8))
    engine = advance(compile_world(world, H), 1.0)
    assert asleep(engine) == ["box"]
    engine.content.data.state.vel[engine.index("slab"), 2] = 0.2
    advance(engine, 1.0)
    assert asleep(engine) == []
    assert velocity(engine, "box")[2] == pytest.approx(0.2, abs=1e-6)
    assert centre(engine, "box")[2] == pytest.approx(1.0, abs=1e-3)


def test_a_motor_keeps_its_machine_awake() -> None:
    """Though it stands still; an arm without a motor, hanging beside it, sleeps."""
    world = World(sleep_after=0.2)
    for name, y in (("driven", 0.0), ("idle", 3.0)):
        plain(world, name, (0, y, 0.5))
        world.hinge(f"{name} hinge", None, name, at=(0, y, 1), axis=(0, 1, 0))
    world.motor("motor", "driven hinge", speed=0)
    engine = advance(compile_world(world, H), 1.0)
    assert asleep(engine) == ["idle"]
    engine.content.data.target.speed[0] = 0.5
    advance(engine, 0.1)
    assert spin(engine, "driven")[1] == pytest.approx(0.5, abs=1e-6)


def test_what_swings_does_not_sleep_at_its_turning_points() -> None:
    """A pendulum is slow for some steps twice a period, not for the time that it takes to fall asleep."""
    world = World(sleep_after=0.2)
    plain(world, "bob", (1, 0, 0))
    world.hinge("pivot", None, "bob", at=(0, 0, 0), axis=(0, 1, 0))
    engine = compile_world(world, H)
    for _ in range(40):
        advance(engine, 0.1)
        assert asleep(engine) == []


def hanging(**spare: int) -> Engine:
    """Two bodies on a string of ball joints."""
    world = World()
    plain(world, "top", (0, 0, 4))
    plain(world, "load", (0, 0, 3))
    world.ball("hook", None, "top", at=(0, 0, 4.5))
    world.ball("link", "top", "load", at=(0, 0, 3.5))
    return compile_world(world, H, spare=Spare(**spare))


def test_a_removed_joint_lets_the_load_fall_freely() -> None:
    """And the other hangs on, by half the force."""
    engine = advance(hanging(), 0.5)
    assert np.linalg.norm(engine.reaction("hook")) == pytest.approx(4 * G, rel=1e-6)
    high = centre(engine, "load")[2]
    remove_joint(engine, "link")
    advance(engine, 0.3)
    assert velocity(engine, "load")[2] == pytest.approx(-G * 0.3, abs=1e-9)
    assert high - centre(engine, "load")[2] == pytest.approx(fallen(0.3), abs=1e-9)
    assert centre(engine, "top")[2] == pytest.approx(4, abs=1e-6)
    assert np.linalg.norm(engine.reaction("hook")) == pytest.approx(2 * G, rel=1e-6)
    assert islands(engine) == [["top"], ["load"]]


def test_a_joint_that_is_switched_off_lets_go_and_on_again_draws_together() -> None:
    engine = advance(hanging(), 0.1)
    switch_joint(engine, "link", False)
    advance(engine, 0.05)
    assert velocity(engine, "load")[2] == pytest.approx(-G * 0.05, abs=1e-9)
    switch_joint(engine, "link", True)
    advance(engine, 0.5)
    assert engine.gap() < 4e-6
    assert np.linalg.norm(centre(engine, "load") - centre(engine, "top")) == pytest.approx(1.0, abs=1e-5)


def test_an_added_ball_joint_holds_with_no_gap() -> None:
    """A body in free fall is caught at a point 0.4 m beside its centre: it keeps its angular momentum about that point,
    m v l, to which gravity adds m g l t, and swings on as a pendulum that keeps its energy.
    """
    world = World()
    plain(world, "body", (0, 0, 2))
    engine = advance(compile_world(world, H, spare=Spare(joints=1)), 0.2)
    where = centre(engine, "body") + np.array([0.4, 0, 0])
    world.ball("catch", None, "body", at=where)
    take_in(engine)
    advance(engine, 0.005)  # of a speed that a joint forbids, a ninth is left after each step
    assert abs(spin(engine, "body")[1]) == pytest.approx(2 * 0.4 * G * 0.205 / (0.03 + 2 * 0.4**2), rel=2e-3)
    energy = engine.energy()
    for _ in range(100):
        advance(engine, 0.01)
        assert engine.gap() < 4e-6
        assert np.linalg.norm(centre(engine, "body") - where) == pytest.approx(0.4, abs=1e-5)
    assert engine.energy() == pytest.approx(energy, abs=0.02 * 2 * G * 0.4)


def test_an_added_joint_with_a_motor_turns_at_its_speed() -> None:
    world = World(gravity=(0, 0, 0))
    plain(world, "wheel", (0, 0, 0))
    engine = advance(compile_world(world, H, spare=Spare(joints=1, actuators=1)), 0.05)
    world.hinge("axle", None, "wheel", at=(0, 0, 0), axis=(0, 0, 1))
    world.motor("drive", "axle", speed=3.0)
    take_in(engine)
    advance(engine, 0.1)
    assert spin(engine, "wheel") == pytest.approx([0, 0, 3], abs=1e-6)
    remove_joint(engine, "axle")
    push(engine, "wheel", torque=(0, 0, 0.04))
    advance(engine, 0.1)
    assert spin(engine, "wheel")[2] == pytest.approx(3 + 0.1, abs=1e-9)  # 0.04 N m on 0.04 kg m^2


def test_a_removed_body_no_longer_bears() -> None:
    """The upper of two boxes falls to the ground; the lower one is nowhere."""
    world = ground()
    box(world, "lower", 0.5, 5, (0, 0, 0.25))
    box(world, "upper", 0.3, 5, (0, 0, 0.65))
    engine = advance(compile_world(world, H), 0.2)
    high = centre(engine, "upper")[2]
    remove_body(engine, "lower")
    advance(engine, 0.2)
    assert high - centre(engine, "upper")[2] == pytest.approx(fallen(0.2), abs=1e-6)
    advance(engine, 0.5)
    assert centre(engine, "upper")[2] == pytest.approx(0.15, abs=1e-5)
    assert islands(engine) == [["upper"]]
    with pytest.raises(WorldError, match="no body 'lower'"):
        remove_body(engine, "lower")


def test_a_body_that_is_switched_off_is_not_there_and_on_again_is_where_it_was() -> None:
    """A box on another, which is switched off: the upper one falls through. Switched on, it rests as before."""
    world = ground()
    box(world, "lower", 0.5, 5, (0, 0, 0.25))
    box(world, "upper", 0.3, 5, (0, 0, 0.65))
    engine = advance(compile_world(world, H), 0.2)
    switch_body(engine, "lower", False)
    advance(engine, 0.1)
    assert velocity(engine, "upper")[2] == pytest.approx(-G * 0.1, abs=1e-6)
    assert centre(engine, "lower")[2] == pytest.approx(0.25, abs=1e-6)
    push(engine, "upper", (60, 0, 0))  # 0.6 m aside in 0.32 s
    advance(engine, 0.4)
    push(engine, "upper")
    assert centre(engine, "upper")[0] > 0.41
    switch_body(engine, "lower", True)
    advance(engine, 0.2)
    assert centre(engine, "lower") == pytest.approx([0, 0, 0.25], abs=1e-5)
    rows = engine.content.data.bounded
    borne = sum(rows.value[k] for k in range(rows.count[0]) if rows.kind[k] == 5 and rows.a[k] == 0)
    assert borne / H == pytest.approx(5 * G, rel=1e-3)


def test_a_body_that_is_switched_off_takes_its_joints_along() -> None:
    engine = advance(hanging(), 0.1)
    switch_body(engine, "top", False)
    advance(engine, 0.1)
    assert velocity(engine, "load")[2] == pytest.approx(-G * 0.1, abs=1e-9)
    assert islands(engine) == [["load"]]


def test_places_of_bodies_and_joints_are_used_again() -> None:
    """Five bodies after one another on a hook, with room for one: each hangs by its weight."""
    world = World()
    plain(world, "first", (5, 0, 5))
    engine = compile_world(world, H, spare=Spare(bodies=1, joints=1))
    places = set()
    for k in range(5):
        plain(world, f"load {k}", (0, 0, 3), mass=1.0 + k)
        world.ball("hook", None, f"load {k}", at=(0, 0, 3.2))
        take_in(engine)
        places.add(engine.index(f"load {k}"))
        advance(engine, 0.1)
        assert np.linalg.norm(engine.reaction("hook")) == pytest.approx((1 + k) * G, rel=1e-6)
        remove_body(engine, f"load {k}")
    assert places == {1}
    assert centre(engine, "first")[2] == pytest.approx(5 - fallen(0.5), abs=1e-9)


@pytest.mark.parametrize("what", ["bodies", "joints", "actuators", "shapes"])
def test_no_room_is_said_in_a_sentence(what: str) -> None:
    world = World()
    plain(world, "body", (0, 0, 0))
    world.hinge("hinge", None, "body", at=(0, 0, 0), axis=(0, 1, 0))
    engine = compile_world(world, H, spare=Spare(bodies=int(what == "shapes")))
    if what in ("bodies", "shapes"):
        plain(world, "other", (1, 0, 0))
    if what == "joints":
        world.ball("pin", None, "body", at=(0, 0, 0))
    elif what == "actuators":
        world.motor("drive", "hinge")
    elif what == "shapes":
        world.sphere("other", radius=0.1)
    with pytest.raises(WorldError, match=rf"no room for .*Spare\({what}=\.\.\.\)"):
        take_in(engine)


def test_what_is_not_there_can_not_be_removed() -> None:
    engine = hanging()
    with pytest.raises(WorldError, match=r"no joint 'lnk'.*link"):
        remove_joint(engine, "lnk")
    with pytest.raises(WorldError, match="no body ''"):
        remove_body(engine, "")


def test_a_change_wakes_the_sleepers() -> None:
    """A box sleeps on another that is taken away."""
    engine = advance(compile_world(sleepy_stack(), H), 1.0)
    high = centre(engine, "box 2")[2]
    remove_body(engine, "box 1")
    advance(engine, 0.2)
    assert high - centre(engine, "box 2")[2] == pytest.approx(fallen(0.2), abs=1e-6)


def test_steps_after_changes_take_no_memory() -> None:
    """Joints and bodies come and go between the steps; the steps themselves allocate nothing."""
    engine = hanging(bodies=1, joints=1)
    world = engine.world
    counted = nrt.memsys_stats_enabled()
    nrt.memsys_enable_stats()
    try:
        used = []
        for steps in (1, 500):
            plain(world, "third", (0, 0, 2))
            world.ball("third link", "load", "third", at=(0, 0, 2.5))
            take_in(engine)
            gc.collect()
            used.append(allocations(engine, steps))
            remove_body(engine, "third")
            used.append(allocations(engine, steps))
            switch_joint(engine, "link", False)
            used.append(allocations(engine, steps))
            switch_joint(engine, "link", True)
    finally:
        if not counted:
            nrt.memsys_disable_stats()
    assert len(set(used)) == 1


def test_falling_asleep_and_waking_takes_no_memory() -> None:
    world = sleepy_stack()
    ball(world, "ball", (0, 0, 4.6))
    engine = advance(compile_world(world, H), 0.01)
    counted = nrt.memsys_stats_enabled()
    nrt.memsys_enable_stats()
    try:
        gc.collect()
        used = [allocations(engine, steps) for steps in (1, 1000)]
    finally:
        if not counted:
            nrt.memsys_disable_stats()
    assert builds(engine) > 2
    assert used[0] == used[1]


def allocations(engine: Engine, steps: int) -> int:
    """Taken by one call that makes so many steps; the call itself wraps its argument."""
    before = rtsys.get_allocation_stats().alloc
    assert engine.step(steps) == 0
    return int(rtsys.get_allocation_stats().alloc - before)


def test_an_added_body_lands_on_the_plane() -> None:
    world = ground()
    engine = advance(compile_world(world, H, spare=Spare(bodies=1, shapes=1)), 0.01)
    ball(world, "ball", (0, 0, 0.5))
    take_in(engine)
    advance(engine, 1.0)
    assert centre(engine, "ball") == pytest.approx([0, 0, 0.1], abs=1e-4)


def test_places_of_shapes_are_used_again() -> None:
    world = ground()
    ball(world, "first", (5, 0, 0.1))
    engine = compile_world(world, H, spare=Spare(bodies=1, shapes=1))
    for k in range(3):
        ball(world, f"ball {k}", (0, 0, 0.5))
        take_in(engine)
        assert engine.content.scene.shape.enabled.sum() == 3  # the plane's among them
        remove_body(engine, f"ball {k}")


def test_a_new_body_does_not_inherit_the_shapes_of_its_place() -> None:
    """A body without a shape falls through the ground, as it does when it was never switched off."""
    world = ground()
    box(world, "old", 0.5, 5, (0, 0, 0.25))
    engine = compile_world(world, H)
    remove_body(engine, "old")
    plain(world, "new", (0, 0, 1))
    take_in(engine)
    switch_body(engine, "new", False)
    switch_body(engine, "new", True)
    advance(engine, 0.6)
    assert centre(engine, "new")[2] == pytest.approx(1 - fallen(0.6), abs=1e-6)


def test_bodies_meet_again_when_their_joint_is_removed() -> None:
    """A ball fixed above a box, let go: it comes to rest on the box, not in it."""
    world = ground()
    box(world, "box", 0.5, 5, (0, 0, 0.25))
    ball(world, "ball", (0, 0, 0.8))
    world.fixed("rod", "box", "ball", at=(0, 0, 0.6))
    engine = advance(compile_world(world, H), 0.01)
    remove_joint(engine, "rod")
    advance(engine, 1.0)
    assert centre(engine, "ball")[2] == pytest.approx(0.6, abs=1e-4)


def test_joints_that_come_and_go_do_not_make_jointed_bodies_collide() -> None:
    """Two balls on a hinge overlap on purpose; two other joints are made and removed one after the other."""
    world = World(gravity=(0, 0, 0))
    for k in range(3):
        ball(world, f"b{k}", (k, 0, 0))
    ball(world, "knee", (5, 0, 0))
    ball(world, "shin", (5.1, 0, 0))
    world.hinge("joint", "knee", "shin", at=(5.05, 0, 0), axis=(0, 0, 1))
    engine = compile_world(world, H, spare=Spare(joints=1))
    for a, b in (("b0", "b1"), ("b1", "b2")):
        world.ball("pin", a, b, at=(1, 0, 0))
        take_in(engine)
        advance(engine, 0.01)
        assert engine.content.data.contact.count[0] == 0
        remove_joint(engine, "pin")


def test_a_joint_that_was_let_go_stays_so_when_its_body_comes_back() -> None:
    engine = advance(hanging(), 0.1)
    switch_joint(engine, "link", False)
    switch_body(engine, "load", False)
    switch_body(engine, "load", True)
    advance(engine, 0.1)
    assert velocity(engine, "load")[2] == pytest.approx(-G * 0.1, abs=1e-6)


def test_a_refused_change_does_not_break_the_engine() -> None:
    """There is room for the body, not for its shape: the sentence comes, and what was there goes on falling."""
    world = World()
    plain(world, "old", (0, 0, 5))
    engine = compile_world(world, H, spare=Spare(bodies=1))
    ball(world, "ball", (2, 0, 5))
    with pytest.raises(WorldError, match="no room"):
        take_in(engine)
    assert engine.step(100) == 0
    assert velocity(engine, "old")[2] == pytest.approx(-G * 0.1, abs=1e-9)


def test_a_refused_change_takes_in_nothing() -> None:
    world = World()
    plain(world, "old", (0, 0, 5))
    engine = advance(compile_world(world, H, spare=Spare(bodies=1)), 0.01)
    ball(world, "ball", (2, 0, 5))
    with pytest.raises(WorldError, match="no room"):
        take_in(engine)
    assert "ball" not in engine.names
