"""Boxes on boxes: stacks at rest, what each layer carries, when a stack topples, and friction in between."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import DOWN, G, about, advance, centre, compiled, direction, push, rows_of, velocity, watched

from plant.collision.shape.shapes import Box
from plant.engine.compile import Engine, compile_world
from plant.model import Bound
from plant.world.world import World

SIZE, MASS = 0.2, 1.0  # [m] [kg] of every box: 125 kg/m^3
Place = tuple[float, float, float]


def ground(friction: float = 0.5, gravity: Place = DOWN, **options: float) -> World:
    world = World(gravity=gravity)
    world.plane()
    world.material("default", "default", friction=friction, **options)
    return world


def cube(world: World, name: str, at: Place, **state: object) -> str:
    return world.solid(name, Box(SIZE, SIZE, SIZE), density=125, pos=at, **state)


def tower(world: World, count: int, shift: float = 0.0) -> list[str]:
    """Boxes on each other, each one `shift` further along x than the one below."""
    return [cube(world, f"box {k}", (k * shift, 0, SIZE * (k + 0.5))) for k in range(count)]


def normal_force_under(engine: Engine, body: str) -> float:
    """Sum of the contacts between a body and what is below its centre [N]."""
    d = engine.content.data
    b, total = engine.index(body), 0.0
    for k in rows_of(engine, Bound.CONTACT):
        c = d.bounded.source[k]
        if b in d.contact.body[c] and d.contact.point[c, 2] < d.state.pos[b, 2]:
            total += d.bounded.value[k]
    return float(total / engine.content.model.setup.h)


def speed(engine: Engine) -> float:
    """The fastest of all bodies [m/s]."""
    return float(np.abs(engine.content.data.state.vel).max())


def test_a_stack_of_ten_rests_for_a_minute() -> None:
    """Sixty thousand steps: no box drifts by a tenth of a millimetre, turns or goes on sinking."""
    world = ground()
    names = tower(world, 10)
    engine = compiled(world, contacts=128)
    start = np.array([centre(engine, n) for n in names])
    advance(engine, 1.0)
    settled = np.array([centre(engine, n) for n in names])
    advance(engine, 59.0)
    end = np.array([centre(engine, n) for n in names])
    assert np.abs(end - start).max() < 1e-4
    assert np.abs(end - settled).max() < 1e-6
    assert speed(engine) < 1e-6
    for name in names:
        assert direction(engine, name, (1, 0, 0)) == pytest.approx([1, 0, 0], abs=1e-5)


def test_every_layer_carries_what_lies_above() -> None:
    """Ten weights on the ground, one below the topmost, to a millionth."""
    world = ground()
    names = tower(world, 10)
    engine = advance(compiled(world, contacts=128), 2.0)
    carried = [normal_force_under(engine, n) for n in names]
    assert carried == pytest.approx([(10 - k) * MASS * G for k in range(10)], rel=1e-6)


def test_a_stack_sinks_by_the_compliance_of_its_layers() -> None:
    """Four contacts of stiffness k in each layer: the top sinks by the sum of (n - i) m g / 4 k."""
    stiffness = 1e6
    world = ground(stiffness=stiffness)
    names = tower(world, 10)
    engine = advance(compiled(world, contacts=128), 5.0)
    sunk = np.cumsum([(10 - k) * MASS * G / (4 * stiffness) for k in range(10)])
    got = [SIZE * (k + 0.5) - centre(engine, n)[2] for k, n in enumerate(names)]
    assert got == pytest.approx(sunk, rel=1e-3)


def harmonic(count: int, share: float) -> World:
    """Blocks over the edge of a table, each by `share` of what the blocks above it allow, the topmost the most.

    The k-th from the top overhangs the one below it by at most SIZE / 2k: the centre of mass of all above then lies
    on its edge.
    """
    world = World()
    world.material("default", "default", friction=0.8)
    world.body("table", kind="static", pos=(-0.5, 0, -0.05))
    world.shape("table", Box(1.0, 1.0, 0.1))
    x = -SIZE / 2
    for k in range(count):  # from the table up
        x += share * SIZE / (2 * (count - k))
        cube(world, f"box {k}", (x, 0, SIZE * (k + 0.5)))
    return world


def test_overhanging_blocks_stand_when_they_may() -> None:
    """Four blocks at 98 % of the harmonic overhang for ten seconds: the topmost lies almost wholly beyond the table."""
    engine = compiled(harmonic(4, 0.98))
    start = centre(engine, "box 3")
    assert start[0] > 0.98 * SIZE / 2 * (1 + 1 / 2 + 1 / 3 + 1 / 4) - SIZE / 2 - 1e-12
    advance(engine, 10.0)
    assert centre(engine, "box 3") == pytest.approx(start, abs=1e-4)
    assert speed(engine) < 1e-5


def test_overhanging_blocks_fall_when_they_must() -> None:
    """At 102 % they fall over the edge."""
    engine = advance(compiled(harmonic(4, 1.02)), 3.0)
    assert centre(engine, "box 3")[2] < SIZE


@pytest.mark.parametrize(("count", "stands"), [(4, True), (5, True), (6, False), (7, False)])
def test_a_leaning_tower_falls_as_soon_as_its_centre_of_mass_leaves_the_lowest_box(count: int, stands: bool) -> None:
    """Each box is shifted by 0.19 of a size, and the boxes above the lowest have their centre n / 2 shifts along:
    it is inside the edge for n x 0.19 < 1, so five boxes stand and six fall.
    """
    assert (count * 0.19 < 1.0) == stands
    world = ground(friction=0.8)
    names = tower(world, count, 0.19 * SIZE)
    engine = compiled(world)
    start = [centre(engine, n) for n in names]
    advance(engine, 3.0)
    if stands:
        for name, place in zip(names, start, strict=True):
            assert centre(engine, name) == pytest.approx(place, abs=1e-4)
    else:
        assert centre(engine, names[-1])[2] < start[-1][2] - SIZE


@pytest.mark.parametrize(("share", "falls"), [(0.97, False), (1.03, True)])
def test_a_tower_on_a_leaning_floor_topples_past_its_angle(share: float, falls: bool) -> None:
    """Five boxes glued by friction are one column: it falls when tan(lean) > base / height = 1/5."""
    lean = np.arctan(share / 5)
    world = ground(friction=1.0, gravity=(G * np.sin(lean), 0, -G * np.cos(lean)))
    names = tower(world, 5)
    engine = advance(compiled(world), 6.0)
    top = centre(engine, names[-1])
    if falls:
        assert top[0] > 0.1
    else:
        assert top == pytest.approx([0, 0, 4.5 * SIZE], abs=2e-4)


def test_a_box_thrown_along_the_top_stops_at_coulombs_distance() -> None:
    """The long box below is held by its weight: the upper one slides v^2 / 2 mu g and stops at v / mu g."""
    fast, friction = 1.5, 0.3
    world = ground(friction)
    world.solid("plank", Box(2.0, 0.4, 0.1), density=500, pos=(0.6, 0, 0.05))
    cube(world, "box", (0, 0, 0.1 + SIZE / 2), vel=(fast, 0, 0))
    engine = compiled(world)
    seen = watched(engine, 0.8, lambda e: float(velocity(e, "box")[0]))
    stop = fast / (friction * G)
    t = np.arange(len(seen)) * 1e-3
    assert seen == pytest.approx(np.maximum(0, fast * (1 - t / stop)), abs=0.01)
    assert centre(engine, "box")[0] == pytest.approx(fast**2 / (2 * friction * G), rel=5e-3)
    assert centre(engine, "box")[1:] == pytest.approx([0, 0.1 + SIZE / 2], abs=1e-4)
    assert centre(engine, "plank")[0] == pytest.approx(0.6, abs=1e-5)


def test_a_box_thrown_onto_a_loose_plank_ends_with_it() -> None:
    """The floor is smooth, so momentum decides: u = m v / (m + M), and the way on the plank is the one over which
    friction takes what is lost: mu m g s = m M v^2 / 2 (m + M).
    """
    fast, friction = 1.5, 0.3
    world = World()
    world.plane(material="ice")
    world.material("default", "default", friction=friction)
    world.material("default", "ice", friction=0.0)
    world.solid("plank", Box(2.0, 0.4, 0.1), density=50, pos=(0.6, 0, 0.05))
    cube(world, "box", (0, 0, 0.1 + SIZE / 2), vel=(fast, 0, 0))
    heavy = 2.0 * 0.4 * 0.1 * 50
    engine = advance(compiled(world), 1.0)
    end = MASS * fast / (MASS + heavy)
    assert velocity(engine, "box")[0] == pytest.approx(end, rel=1e-4)
    assert velocity(engine, "plank")[0] == pytest.approx(end, rel=1e-4)
    way = centre(engine, "box")[0] - (centre(engine, "plank")[0] - 0.6)
    assert way == pytest.approx(heavy * fast**2 / (2 * (MASS + heavy) * friction * G), rel=5e-3)


@pytest.mark.parametrize("share", [0.98, 1.02])
def test_a_box_on_an_incline_sticks_below_the_angle_of_friction_and_slides_above(share: float) -> None:
    """tan(slope) = mu decides. The incline is a turned box of the ground, not a plane."""
    slope, seconds = 0.3, 2.0
    friction = np.tan(slope) / share
    world = World()
    world.material("default", "default", friction=friction)
    down = np.array([np.cos(slope), 0, -np.sin(slope)])
    up = np.array([np.sin(slope), 0, np.cos(slope)])
    world.shape(None, Box(6.0, 1.0, 0.2), at=-0.1 * up, quat=about((0, 1, 0), slope))
    start = SIZE / 2 * up
    cube(world, "box", tuple(start), quat=about((0, 1, 0), slope))
    engine = advance(compiled(world), seconds)
    way = (centre(engine, "box") - start) @ down
    if share < 1:
        assert way == pytest.approx(0, abs=1e-4)
    else:
        pull = G * (np.sin(slope) - friction * np.cos(slope))
        assert way == pytest.approx(pull * seconds**2 / 2, rel=0.02)
        assert velocity(engine, "box") @ down == pytest.approx(pull * seconds, rel=0.02)


def test_a_drawer_is_pulled_from_under_its_load_only_by_a_hard_pull() -> None:
    """A box on a box: with mu1 below and mu2 between, both move together up to
    F = (mu1 + mu2) (m1 + m2) g, and above that the upper one is left behind with mu2 g.
    """
    below, between = 0.2, 0.4
    limit = (below + between) * 2 * MASS * G
    for share in (0.9, 1.2):
        world = World()
        world.plane(material="floor")
        world.material("default", "floor", friction=below)
        world.material("default", "default", friction=between)
        names = tower(world, 2)
        engine = compiled(world)
        push(engine, names[0], (share * limit, 0, 0))
        advance(engine, 0.15)
        low, high = (velocity(engine, n)[0] / 0.15 for n in names)
        if share < 1:
            together = (share * limit - below * 2 * MASS * G) / (2 * MASS)
            assert [low, high] == pytest.approx([together] * 2, rel=0.01)
        else:
            assert high == pytest.approx(between * G, rel=0.01)
            assert low == pytest.approx((share * limit - below * 2 * MASS * G - between * MASS * G) / MASS, rel=0.01)


@pytest.mark.parametrize(("share", "stands"), [(1.03, True), (0.97, False)])
def test_two_cards_that_lean_on_each_other_stand_on_friction_alone(share: float, stands: bool) -> None:
    """Each pushes the other at the ridge with m g sin(a) / 2 (cos(a) + r / l), a from the vertical; the feet must hold
    that or slide apart. The cards have round ends of radius r, so that the push at the ridge is level.
    """
    lean, length, r = 0.5, 1.0, 0.01
    world = ground(share * np.sin(lean) / (2 * (np.cos(lean) + r / length)))
    for side, name in ((-1, "left"), (1, "right")):
        along = np.array([-side * np.sin(lean), 0, np.cos(lean)])
        foot = np.array([side * (length * np.sin(lean) + r), 0, r])
        turn = about((0, 1, 0), -side * lean)
        world.body(name, mass=2, inertia=(1 / 6, 1 / 6 + 0.03, 0.03), pos=foot + along * length / 2, quat=turn)
        for end in (-length / 2, length / 2):
            for y in (-0.2, 0.2):
                world.sphere(name, centre=(0, y, end), radius=r)
    engine = compiled(world)
    start = centre(engine, "left")
    advance(engine, 3.0)
    if stands:
        assert centre(engine, "left") == pytest.approx(start, abs=1e-4)
    else:
        assert centre(engine, "left")[2] < 0.5 * start[2]


def pile(count: int = 40, seed: int = 3) -> Engine:
    """Boxes dropped one after the other, turned at random, between four walls 1 m apart."""
    world, rng = ground(), np.random.default_rng(seed)
    for normal in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)):
        world.plane(normal=normal, offset=-0.5)
    for k in range(count):
        x, y = rng.uniform(-0.3, 0.3, 2)
        cube(world, f"box {k}", (float(x), float(y), 0.25 + 0.3 * k), quat=tuple(rng.normal(size=4)))
    return compile_world(world, 1e-3, contacts=1000, solver="auto")


def corners(engine: Engine) -> np.ndarray:
    """Of all boxes [8 n, 3]."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    frame, state = engine.content.data.frame, engine.content.data.state
    return np.concatenate([p + signs * SIZE / 2 @ r.T for p, r in zip(state.pos, frame.rot, strict=True)])


def test_a_pile_of_forty_boxes_stays_inside_its_walls_and_loses_its_energy() -> None:
    """After four seconds no corner is outside by more than 0.1 mm, nor do boxes overlap by more; energy has only
    fallen, and what moves does so at a few millimetres a second.
    """
    engine = pile()
    energy = watched(engine, 4.0, Engine.energy, every=50)
    assert np.diff(energy).max() < 1e-3 * energy[0]
    out = corners(engine)
    assert np.abs(out[:, :2]).max() < 0.5 + 1e-4
    assert out[:, 2].min() > -1e-4
    contact = engine.content.data.contact
    assert contact.depth[: contact.count[0]].max() < 1e-4
    assert np.linalg.norm(engine.content.data.state.vel[:, :3], axis=1).mean() < 5e-3


@pytest.mark.xfail(
    strict=True,
    reason="box against box changes between a face with two points and crossing edges with one, and which four points "
    "of a face it keeps, from step to step: warm starts are lost, and fifty sweeps do not make up for it",
)
def test_a_pile_of_forty_boxes_comes_to_rest() -> None:
    """From the sixth second on nothing moves faster than a millimetre a second: for a whole second, not by chance."""
    engine = advance(pile(), 5.0)

    def fastest(e: Engine) -> float:
        return float(np.linalg.norm(e.content.data.state.vel[:, :3], axis=1).max())

    assert watched(engine, 1.0, fastest, every=10).max() < 1e-3


@pytest.mark.xfail(
    strict=True,
    reason="no hysteresis in box against box: the last axis has no advantage beyond 0.3 um and 1 % of depth",
)
def test_contacts_of_a_pile_that_hardly_moves_are_the_same_from_step_to_step() -> None:
    """After three seconds boxes creep by about a micrometre a step: at most one contact in a step may be new."""
    engine = advance(pile(), 3.0)
    fresh = watched(engine, 0.2, lambda e: float(e.content.data.contact.new[0]))
    assert fresh.mean() < 1.0
