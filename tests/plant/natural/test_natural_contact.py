"""Contacts by force laws in the core in natural coordinates: published cases of friction, restitution, and rest."""

import math

import numpy as np
import pytest
from friction_cases import (
    REST,
    exact_cycle,
    exact_sliding_block,
    run_belt_block,
    run_sliding_block,
    seen_cycle,
    sliding_block,
)
from mechanisms import natural

from plant.collide.shapes import Box, Sphere
from plant.world import World


def law_of_the_block(strain: float, start: float, dt: float = 2e-5) -> tuple[np.ndarray, np.ndarray]:
    """The block under Luaces eq. 3.6 - 3.15 alone, on a line, in steps so small that only the law is left."""
    block = sliding_block(strain, start)
    k, c, slow = block.bristle_stiffness, block.bristle_damping, block.stick_speed
    most = block.friction * block.gravity / 2  # of each of the two feet
    x, v, stretch, out = block.start - REST, 0.0, 0.0, []
    for step in range(round(13.0 / dt)):
        sticks = math.exp(-min((v / slow) ** 2, 700.0))
        bristle = max(-most, min(most, k * stretch + c * v))
        friction = 2 * (sticks * bristle + (1 - sticks) * math.copysign(most, v))
        v -= dt * ((block.spring if step * dt < 10.0 else 10.0) * x + friction)
        x, stretch = x + dt * v, stretch + dt * v
        wish = k * stretch + c * v
        if abs(wish) > most:
            stretch = math.copysign(strain * most / k, wish)
        out.append(x)
    return np.arange(1, len(out) + 1) * dt, REST + np.array(out)


@pytest.mark.parametrize(
    ("start", "strain", "bound", "rests"),
    [
        (0.5, 1.0, 2e-3, math.pi),
        (0.9, 1.0, 2e-3, 2 * math.pi),
        (1.3, 1.0, 2.5e-3, 3 * math.pi),
        (1.3, 0.0, 2e-3, 3 * math.pi),
    ],
)
def test_luaces_mass_spring_slides_sticks_and_breaks_away(
    start: float, strain: float, bound: float, rests: float
) -> None:
    """Luaces 3.3.1 at 10 ms for 13 s beside Coulomb's friction, whose exact solution is known; the start is left open.

    At each turning point the bristles of the text (strain 1) stay stretched the old way until the block has gone back
    by twice their stretch, half a millimetre: from 1.3 m, after three turning points, the law solved exactly is 2.1 mm
    away from Coulomb's. Bristles that are laid down when they give way (strain 0) are 0.5 mm away from it.
    """
    t, x, v = run_sliding_block(strain, start)
    assert np.abs(x - exact_sliding_block(t, start)).max() < bound
    assert np.abs(v[(t > rests - 0.5) & (t < rests - 0.3)]).min() > 0.01  # still sliding
    assert np.abs(v[(t > rests + 0.18) & (t < 10.0)]).max() < 1e-3  # it has stopped
    assert np.abs(v[(t > 10.1) & (t < 10.5)]).max() > 0.1  # and the stiffer spring tore it loose


def test_the_block_follows_the_law_of_its_bristles() -> None:
    """So what is left of the way to Coulomb's friction is the law's, for the text's strain of 1 nearly all of it."""
    for strain, away, ours in ((1.0, 2.08e-3, 0.5e-3), (0.0, 0.48e-3, 1.2e-3)):
        times, law = law_of_the_block(strain, 1.3)
        assert np.abs(law - exact_sliding_block(times, 1.3)).max() == pytest.approx(away, rel=0.05)
        t, x, _ = run_sliding_block(strain, 1.3)
        assert np.abs(x - np.interp(t, times, law)).max() < ours


@pytest.mark.slow
def test_a_belt_carries_a_block_along_until_it_slips() -> None:
    """Bowden and Leben at 1 ms for 120 s (Luaces 3.3.2): period and amplitude of the limit cycle within 1 %."""
    t, x, v = run_belt_block()
    seen, exact = seen_cycle(t, x), exact_cycle()
    assert seen.period == pytest.approx(exact.period, rel=0.01)
    assert seen.high - seen.low == pytest.approx(exact.high - exact.low, rel=0.01)
    assert np.median(v) == pytest.approx(0.05, rel=0.01)  # most of the time it sticks to the belt


def test_a_belt_tears_loose_at_the_force_of_stiction() -> None:
    """The first 20 s: the block goes with the belt, and slips when the spring pulls with mu_s m g."""
    t, x, v = run_belt_block(20.0)
    first = int(np.argmax(x))
    assert x[first] == pytest.approx(exact_cycle().high, rel=0.01)
    assert np.abs(v[500 : first - 500] - 0.05).max() < 1e-3
    assert t[first] == pytest.approx(exact_cycle().high / 0.05, rel=0.01)


def drop(speed: float, restitution: float) -> float:
    """Restitution of a ball that comes down with `speed` on a plane, at a step that resolves the contact."""
    world = World(gravity=(0, 0, 0))
    world.solid("ball", Sphere(0.05), density=1000, pos=(0, 0, 0.0501), vel=(0, 0, -speed), material="ball")
    world.plane(material="floor")
    world.material("ball", "floor", law="hunt_crossley", stiffness=1e6, restitution=restitution, friction=0.0)
    engine = natural(world, 2e-5, iterations=4)
    for _ in range(2000):
        assert engine.step(10) == 0
        if engine.content.data.state.vel[0, 2] > 0 and engine.position("ball")[2] > 0.05:
            break
    return float(engine.content.data.state.vel[0, 2]) / speed


@pytest.mark.parametrize("speed", [0.1, 0.3, 1.0])
def test_hunt_and_crossleys_law_gives_the_restitution_it_was_asked_for(speed: float) -> None:
    """Valid near one: at 0.9 the law itself gives 0.909 (its damping is the first term of a series in 1 - e)."""
    assert drop(speed, 0.9) == pytest.approx(0.9, rel=0.05)
    assert drop(speed, 0.95) == pytest.approx(0.95, rel=0.05)


def test_a_box_at_rest_stays_and_is_carried_by_its_corners() -> None:
    world = World()
    world.plane(material="floor")
    world.solid("box", Box(0.4, 0.3, 0.2), density=500, pos=(0, 0, 0.1), material="box")
    world.material("box", "floor", law="hunt_crossley", stiffness=1e6, exponent=1.0, restitution=0.2, friction=0.6)
    engine = natural(world, 1e-3)
    assert engine.step(1500) == 0
    assert np.abs(engine.content.data.state.vel[0]).max() < 1e-5
    weight = 0.4 * 0.3 * 0.2 * 500 * 9.80665
    assert engine.position("box")[2] == pytest.approx(0.1 - weight / 4 / 1e6, abs=1e-7)
    count = int(engine.content.data.contact.count[0])
    assert engine.content.data.contact.impulse[:count, 0].sum() / 1e-3 == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize(("slope", "sticks"), [(0.4, True), (0.6, False)])
def test_a_box_on_a_slope_sticks_below_the_friction_angle_and_slides_above(slope: float, sticks: bool) -> None:
    """tan of the slope against 0.5; above, it accelerates with g (sin - mu cos)."""
    turned = np.arctan(slope)
    c, s = np.cos(turned), np.sin(turned)
    world = World(gravity=(9.80665 * s, 0, -9.80665 * c))
    world.plane(material="floor")
    world.solid("box", Box(0.4, 0.3, 0.1), density=500, pos=(0, 0, 0.05), material="box")
    world.material("box", "floor", law="hunt_crossley", stiffness=1e6, exponent=1.0, restitution=0.2, friction=0.5)
    engine = natural(world, 1e-3, iterations=6)
    assert engine.step(1000) == 0
    speed = engine.content.data.state.vel[0, 0]
    expected = 0.0 if sticks else 9.80665 * (s - 0.5 * c)
    assert speed == pytest.approx(expected, abs=0.01 * 9.80665 * s if not sticks else 1e-4)


def test_two_boxes_on_each_other_press_the_ground_with_both_weights() -> None:
    world = World()
    world.plane(material="floor")
    for k in range(2):
        world.solid(f"box{k}", Box(0.2, 0.2, 0.2), density=125, pos=(0, 0, 0.1 + 0.2 * k), material="box")
    for other in ("floor", "box"):
        world.material("box", other, law="hunt_crossley", stiffness=1e5, exponent=1.0, restitution=0.1, friction=0.5)
    engine = natural(world, 1e-3)
    assert engine.step(1500) == 0
    assert np.abs(engine.content.data.state.vel).max() < 1e-4
    contact = engine.content.data.contact
    count = int(contact.count[0])
    on_ground = (contact.body[:count] < 0).any(axis=1)
    assert contact.impulse[:count, 0][on_ground].sum() / 1e-3 == pytest.approx(2 * 9.80665, rel=1e-4)
