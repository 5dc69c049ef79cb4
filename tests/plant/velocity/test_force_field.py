"""Force fields: a drag whose terminal velocity is known, and a spring field whose frequency is."""

import math

import numpy as np
import pytest
from worlds import advance, centre, compiled, velocity

from plant.velocity.force_field import force_field
from plant.world.world import World


@force_field
def drag(bodies, pos, quat, vel, wrench):
    for b in range(bodies):
        for c in range(3):
            wrench[6 * b + c] -= 5.0 * vel[6 * b + c]


@force_field
def well(bodies, pos, quat, vel, wrench):
    for b in range(bodies):
        wrench[6 * b] -= 40.0 * pos[3 * b]


def test_drag_leads_to_terminal_velocity() -> None:
    """v = m g / c (1 - exp(-c t / m))."""
    world = World()
    world.body("ball", mass=2.0, inertia=(1, 1, 1))
    world.force_field(drag)
    engine = advance(compiled(world), 0.5)
    limit = 2.0 * 9.80665 / 5.0
    assert velocity(engine, "ball")[2] == pytest.approx(-limit * (1 - math.exp(-5.0 * 0.5 / 2.0)), rel=2e-3)
    advance(engine, 5.0)
    assert velocity(engine, "ball")[2] == pytest.approx(-limit, rel=1e-5)


def test_fields_add_up_and_act_on_every_body() -> None:
    """A well and a drag: the damped oscillation of each body, whatever its mass."""
    world = World(gravity=(0, 0, 0))
    for name, mass in (("light", 1.0), ("heavy", 4.0)):
        world.body(name, mass=mass, inertia=(1, 1, 1), pos=(0.1, 0, 0))
    world.force_field(well)
    world.force_field(drag)
    engine = advance(compiled(world, 1e-4), 1.0)
    for name, mass in (("light", 1.0), ("heavy", 4.0)):
        decay = 5.0 / (2 * mass)
        w = math.sqrt(40.0 / mass - decay**2)
        x = 0.1 * math.exp(-decay) * (math.cos(w) + decay / w * math.sin(w))
        assert centre(engine, name)[0] == pytest.approx(x, abs=2e-4)
    assert np.abs(centre(engine, "light")[1:]).max() == 0.0
