"""Reactions of joints that are shared points and vectors: by textbook, statics, and the other core."""

import numpy as np
import pytest
from mechanisms import FourBar, G, Y, bar, natural

from plant.collision.shape.shapes import Box, Sphere
from plant.engine.compile import Engine, compile_world
from plant.world.world import World


def chain(world: World) -> World:
    """Two rods on a hinge and a ball joint, the first driven, the second on a spring, both swinging out of plane."""
    bar(world, "upper", (0, 0, 0), (1, 0, 0), 3.0)
    bar(world, "lower", (1, 0, 0), (1, 0.5, -0.8), 2.0)
    world.hinge("shoulder", None, "upper", at=(0, 0, 0), axis=Y)
    world.ball("elbow", "upper", "lower", at=(1, 0, 0))
    world.motor("drive", "shoulder", speed=1.0, force=30.0)
    world.spring("rope", None, "lower", at_a=(2, 1, 0), at_b=(1, 0.5, -0.8), stiffness=50.0, damping=1.0)
    return world


def other_core(world: World, seconds: float) -> Engine:
    """The same world in the other core, at small steps."""
    engine = compile_world(world, 2e-5)
    assert engine.step(round(seconds / 2e-5)) == 0
    return engine


def test_a_swinging_rod_pulls_at_its_pin_as_the_textbook_says() -> None:
    """Let go level: 5/2 m g sin q along the rod and 1/4 m g cos q across it, at the angle q below the level."""
    world = World()
    bar(world, "rod", (0, 0, 0), (1, 0, 0), 3.0)
    world.hinge("pin", None, "rod", at=(0, 0, 0), axis=Y)
    engine = natural(world)
    assert engine.core is not None
    assert "pin" in engine.core.shared
    for _ in range(6):
        assert engine.step(80) == 0
        x, _, z = engine.position("rod") / 0.5
        force = np.sort(np.abs(engine.reaction("pin")[:3]))[1:]
        assert np.linalg.norm(force) == pytest.approx(3 * G * np.hypot(2.5 * z, 0.25 * x), rel=2e-3)


def test_a_moving_chain_with_drive_and_spring() -> None:
    engine = natural(chain(World()))
    assert engine.core is not None
    assert {"shoulder", "elbow"} <= engine.core.shared
    assert engine.step(300) == 0
    assert np.abs(engine.content.data.state.vel).max() > 0.5
    peer = other_core(chain(World()), 0.3)
    for joint in ("shoulder", "elbow"):
        truth = peer.reaction(joint)
        assert engine.reaction(joint) == pytest.approx(truth, abs=5e-3 * np.linalg.norm(truth))


def test_a_loop_in_motion() -> None:
    """Forces in the plane; across it the hinges hold each other's torques, more than need be."""
    engine = natural(FourBar().world())
    assert engine.step(200) == 0
    peer = other_core(FourBar().world(), 0.2)
    for joint in ("a", "b", "c", "d"):
        seen, truth = engine.reaction(joint)[:3], peer.reaction(joint)[:3]
        assert seen == pytest.approx(truth, abs=5e-3 * np.linalg.norm(truth))


@pytest.mark.parametrize("law", ["hunt_crossley", "foundation"])
def test_what_rests_on_the_ground_is_not_carried_by_the_joint(law: str) -> None:
    """A beam lies level between a pin and a foot that is pressed into the floor: each carries half of its weight."""
    world = World()
    world.plane(material="floor")
    given = {"stiffness": 1e6, "exponent": 1.0} if law == "hunt_crossley" else {"modulus": 1e7, "layer": 0.01}
    world.material("rubber", "floor", law=law, friction=0.0, **given)
    bar(world, "beam", (0, 0, 0.1), (2, 0, 0.1), 4.0)
    world.shape("beam", Sphere(0.1) if law == "hunt_crossley" else Box(0.1, 0.1, 0.2), at=(1, 0, 0), material="rubber")
    world.hinge("pin", None, "beam", at=(0, 0, 0.1), axis=Y)
    world.friction("damper", "pin", force=1e-3)
    engine = natural(world)
    assert engine.core is not None
    assert "pin" in engine.core.shared
    seen = []
    for _ in range(600):
        assert engine.step(1) == 0
        load = engine.content.data.contact.impulse[0, 0] / 1e-3
        across = engine.reaction("pin")[:3]
        seen.append((load, across[np.abs(across).argmax()]))
    load, pull = np.array(seen).mean(axis=0)
    assert load == pytest.approx(2 * G, rel=0.05)
    assert abs(pull) == pytest.approx(4 * G - load, rel=0.05)
