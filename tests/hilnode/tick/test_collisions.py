"""Collisions of the plant in the stream of events."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hilnode.shared.codes import Event
from hilnode.shared.events import Happening
from plant.collision.shape.shapes import Sphere
from plant.engine.as_plant import as_plant
from plant.engine.compile import compile_world
from plant.world.world import World

from .bench import Bench, config

DROP, G = 0.05, 9.80665


def falling(bench: Callable[..., Bench], least: float | None) -> list[Happening]:
    """A ball of about 4.2 kg and one of 33 g that fall on the ground and bounce."""
    world = World()
    world.plane()
    world.material("default", "default", restitution=0.5)
    world.solid("heavy", Sphere(0.1), density=1000, pos=(1.5, -2, 0.1 + DROP))
    world.solid("light", Sphere(0.02), density=1000, pos=(-3, 0, 0.02 + DROP))
    plant = as_plant(compile_world(world, 1e-3), "drop", collisions=least)
    made = bench(config(node='pace = "free"'), plant, last_tick=200)
    made.start()
    made.run()
    return [e for e in made.events if e.code == Event.COLLISION]


def test_who_where_and_how_hard(bench: Callable[..., Bench]) -> None:
    hits = falling(bench, 1.0)
    fall = math.sqrt(2 * DROP / G)
    impulse = 4 / 3 * math.pi * 0.1**3 * 1000 * math.sqrt(2 * G * DROP) * 1.5
    assert hits[0].tick == pytest.approx(fall / 1e-3, abs=3)
    assert hits[0].value == pytest.approx(impulse, rel=0.03)
    assert hits[0].sentence.startswith("collision of ")
    assert "drop.heavy" in hits[0].sentence
    assert "the ground" in hits[0].sentence
    told = hits[0].as_dict()
    assert told["event"] == "collision"
    assert np.array(told["point"]) == pytest.approx([1.5, -2, 0], abs=5e-3)
    assert all("heavy" in e.sentence for e in hits)  # the light one is below the limit


def test_softer_ones_are_told_if_asked_for(bench: Callable[..., Bench]) -> None:
    hits = falling(bench, 0.0)
    assert {"drop.heavy", "drop.light"} == {w for e in hits for w in e.sentence.split() if w.startswith("drop.")}


def test_nobody_asks(bench: Callable[..., Bench]) -> None:
    assert not falling(bench, None)


def test_a_limit_that_is_none_is_refused() -> None:
    world = World()
    world.plane()
    world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 1))
    with pytest.raises(ValueError, match="collisions=-1: the least impulse"):
        as_plant(compile_world(world, 1e-3), "drop", collisions=-1)
