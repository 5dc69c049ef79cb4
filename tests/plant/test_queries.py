"""Questions to a running engine: contacts, collisions and rays against what must be so."""

import numpy as np
import pytest
from worlds import G, advance, compiled

from plant.collide.shapes import Box, Mesh, Sphere
from plant.compile import Engine
from plant.queries import collisions, contacts, overlap, ray, rays
from plant.world import World

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
