"""Questions to a running engine: contacts, collisions and rays against what must be so."""

import numpy as np
import pytest
from worlds import G, advance, compiled

from plant.collision.shape.shapes import Box, Mesh, Sphere
from plant.engine.compile import Engine, compile_world
from plant.engine.queries import collisions, contacts, overlap, ray, rays
from plant.world.world import World

DROP = 0.2


def scene() -> Engine:
    """A ball above a box on the ground."""
    world = World()
    world.plane()
    world.solid("box", Box(1, 1, 0.5), density=400, pos=(0, 0, 0.25))
    world.solid("ball", Sphere(0.1), density=1000, pos=(0.2, 0, 0.6 + DROP))
    return compiled(world)


def test_contacts_carry_the_weight() -> None:
    engine = advance(scene(), 2.0)
    mass = engine.content.model.body.mass
    below = [c for c in contacts(engine) if c.second is None]
    assert sum(c.force for c in below) == pytest.approx(mass.sum() * G, rel=1e-6)
    between = [c for c in contacts(engine) if {c.first, c.second} == {"box", "ball"}]
    assert sum(c.force for c in between) == pytest.approx(mass[1] * G, rel=1e-6)
    assert between[0].point == pytest.approx([0.2, 0, 0.5], abs=1e-3)


def test_each_collision_is_logged_once_with_its_impulse() -> None:
    """The ball lands after sqrt(2 h / g) with the momentum m sqrt(2 g h), and never leaves again."""
    engine = advance(scene(), 2.0)
    entries, following, lost = collisions(engine)
    assert lost == 0
    landed = [c for c in entries if {c.first, c.second} == {"box", "ball"}]
    assert len(landed) == 1
    assert landed[0].step * 1e-3 == pytest.approx(np.sqrt(2 * DROP / G), abs=3e-3)
    momentum = engine.content.model.body.mass[1] * np.sqrt(2 * G * DROP)
    assert 0.2 * momentum < landed[0].impulse < 1.1 * momentum  # of the first step; the gap closes within two
    assert landed[0].shapes == (2, 1) or landed[0].shapes == (1, 2)
    assert collisions(engine, since=following).entries == []


def test_the_log_says_what_it_has_lost() -> None:
    engine = advance(scene(), 1.0)
    log = engine.content.data.log
    before = int(log.count[0])
    log.count[0] += 300
    found = collisions(engine)
    assert found.lost == before + 300 - 256
    assert len(found.entries) == 256


def test_a_ray_meets_the_nearest() -> None:
    engine = advance(scene(), 2.0)
    down = ray(engine, (0.2, 0, 5), (0, 0, -2))
    assert down is not None
    assert down.body == "ball"
    assert down.distance == pytest.approx(5 - 0.7, abs=1e-3)
    assert down.normal == pytest.approx([0, 0, 1], abs=1e-3)  # the ball may have rolled by some micrometres
    box, ground, nothing, short = rays(
        engine,
        [(-0.4, 0, 5), (3, 0, 5), (0, 0, 5), (0.2, 0, 5)],
        [(0, 0, -1), (0, 0, -1), (0, 0, 1), (0, 0, -1)],
        far=4.6,
    )
    assert box is not None
    assert (box.body, round(box.distance, 3)) == ("box", 4.5)
    assert ground is None  # 5 m below
    assert nothing is None
    assert short is not None
    with pytest.raises(ValueError, match="length 0"):
        ray(engine, (0, 0, 0), (0, 0, 0))


def test_a_mesh_lies_on_a_plane() -> None:
    """A tetrahedron as a mesh: it comes to rest on its base, which carries it in three corners."""
    corner = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 0.8]], float)
    world = World()
    world.plane()
    world.solid(
        "rock", Mesh(corner, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])), density=1000, pos=(0, 0, 0.1)
    )
    engine = advance(compiled(world), 2.0)
    assert engine.position("rock")[2] == pytest.approx(0, abs=1e-5)
    here = contacts(engine)
    assert len(here) == 3
    assert sum(c.force for c in here) == pytest.approx(engine.content.model.body.mass[0] * G, rel=1e-6)


def test_what_two_bodies_have_in_common() -> None:
    """A box sunk into the ground by a centimetre, and a ball into the box by two: a slab and a spherical cap."""
    world = World()
    world.plane()
    world.solid("box", Box(1, 1, 0.5), density=400, pos=(0, 0, 0.24))
    world.solid("ball", Sphere(0.1), density=1000, pos=(0.2, 0, 0.57))
    engine = compiled(world)
    [cap], [turned], [slab] = (
        overlap(engine, "ball", "box"),
        overlap(engine, "box", "ball"),
        overlap(engine, "box", None),
    )
    assert cap.volume == pytest.approx(np.pi * 0.02**2 * (0.1 - 0.02 / 3))
    assert cap.area == pytest.approx(np.pi * 0.02 * 0.18)
    assert cap.normal == pytest.approx([0, 0, 1])
    assert turned.normal == pytest.approx([0, 0, -1])
    assert turned.shapes == cap.shapes[::-1]
    assert slab.volume == pytest.approx(0.01)
    assert slab.centroid == pytest.approx([0, 0, -0.005])
    assert slab.inertia == pytest.approx(0.01 / 12 * np.diag([1.0001, 1.0001, 2]))
    assert overlap(engine, "ball", None) == []


@pytest.mark.parametrize("restitution", [0.3, 0.8, 1.0])
def test_a_bounce_is_logged_with_all_of_its_impulse(restitution: float) -> None:
    """m v (1 + e), and one entry for each time that the ball comes down."""
    world = World()
    world.plane()
    world.material("default", "default", restitution=restitution, friction=0.0)
    world.solid("ball", Sphere(0.1), density=1000, pos=(0.2, 0.3, 0.1 + DROP))
    engine = advance(compiled(world), 1.1 * np.sqrt(2 * DROP / G))
    [first] = collisions(engine).entries
    speed = np.sqrt(2 * G * DROP)
    assert first.impulse == pytest.approx(engine.content.model.body.mass[0] * speed * (1 + restitution), rel=0.02)
    assert (first.first, first.second) in (("ball", None), (None, "ball"))
    assert first.point == pytest.approx([0.2, 0.3, 0.0], abs=5e-3)


def test_a_box_that_lands_flat_is_logged_with_the_impulse_of_all_its_corners() -> None:
    world = World()
    world.plane()
    world.material("default", "default", restitution=0.5, friction=0.5)
    world.solid("box", Box(1, 0.6, 0.2), density=400, pos=(3, 0, 0.1 + DROP))
    engine = advance(compiled(world), 1.1 * np.sqrt(2 * DROP / G))
    [landed] = collisions(engine).entries
    momentum = engine.content.model.body.mass[0] * np.sqrt(2 * G * DROP)
    assert landed.impulse == pytest.approx(1.5 * momentum, rel=0.02)
    assert landed.point == pytest.approx([3, 0, 0], abs=5e-3)


def test_many_that_land_at_once_are_all_logged() -> None:
    """100 balls in one step: each pair once, by its own impulse."""
    world = World()
    world.plane()
    for k in range(100):
        world.solid(f"ball {k}", Sphere(0.05 + 0.001 * k), density=1000, pos=(k, 0, 0.05 + 0.001 * k + 0.01))
    engine = advance(compiled(world, contacts=128), 0.1)
    entries = collisions(engine).entries
    names = sorted(c.first or c.second or "" for c in entries)
    assert names == sorted(f"ball {k}" for k in range(100))
    assert len({c.impulse for c in entries}) == 100


def test_questions_are_about_now_not_about_the_step_before() -> None:
    """A ball at 20 m/s goes 20 mm in a step: ray and overlap see it where it is."""
    world = World(gravity=(0, 0, 0))
    world.shape(None, Box(1, 1, 1), at=(0, 0, -0.5), group=2)
    world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 2), vel=(0, 0, -20))
    engine = compiled(world)
    for _ in range(40):
        assert engine.step() == 0
        hit = ray(engine, (0, 0, 5), (0, 0, -1))
        assert hit is not None
        assert hit.distance == pytest.approx(5 - engine.position("ball")[2] - 0.1, abs=1e-9)
    engine.content.data.state.pos[0] = 0.3, 0, 0.05  # put there by hand
    [cap] = overlap(engine, "ball", None)
    assert cap.volume == pytest.approx(np.pi * 0.05**2 * (0.1 - 0.05 / 3))


@pytest.mark.parametrize("scenery", ["tree", "octree", "kdtree"])
def test_rays_through_the_trees_meet_what_a_look_at_every_shape_finds(scenery: str) -> None:
    """Shapes strewn about, moving and standing: against one world for each shape, of which the nearest counts."""
    rng = np.random.default_rng(6)
    places, sizes = rng.uniform(-3, 3, (40, 3)), rng.uniform(0.1, 0.5, 40)
    world = World(gravity=(0, 0, 0))
    world.plane(offset=-4.0)
    for k, (at, size) in enumerate(zip(places, sizes, strict=True)):
        if k % 2:
            world.shape(None, Sphere(size), at=at)
        else:
            world.solid(f"ball {k}", Sphere(size), density=100, pos=at, vel=rng.normal(size=3))
    engine = compile_world(world, 1e-3, contacts=256, scenery=scenery)
    assert engine.step(30) == 0
    state, body = engine.content.data.state, engine.content.scene.shape.body
    middle = np.array([state.pos[body[1 + k]] if body[1 + k] >= 0 else places[k] for k in range(40)])
    origin, way = rng.uniform(-5, 5, (400, 3)), rng.normal(size=(400, 3))
    origin[:, 2] = rng.uniform(-3.9, 5, 400)
    way /= np.linalg.norm(way, axis=1)[:, None]
    hits = 0
    for o, d, found in zip(origin, way, rays(engine, origin, way), strict=True):
        ahead = (middle - o) @ d
        under = sizes**2 - ((middle - o) ** 2).sum(1) + ahead**2
        root = np.sqrt(np.maximum(under, 0))
        enter = np.where((under < 0) | (ahead + root < 0), np.inf, np.maximum(ahead - root, 0))
        down = (-4.0 - o[2]) / d[2] if d[2] < 0 else np.inf
        truth = min(enter.min(), down)
        assert (found is None) == np.isinf(truth)
        if found is not None:
            hits += 1
            assert found.distance == pytest.approx(truth, abs=1e-9)
            assert found.shape == (0 if down <= enter.min() else 1 + enter.argmin())
    assert hits > 150
