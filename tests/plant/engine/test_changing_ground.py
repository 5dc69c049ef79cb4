"""Ground whose heights change while the engine runs."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import advance, compiled

from plant.collision.shape.shapes import Field, Sphere
from plant.engine.compile import Engine
from plant.engine.live import set_heights
from plant.world.checks import WorldError
from plant.world.world import World


def scene() -> Engine:
    """A ball on the second of two fields, high up, whose heights lie about 5 m."""
    world = World()
    world.plane(offset=-9)
    world.shape(None, Field(np.zeros((4, 4)), 1.0), at=(20, 0, 0))
    world.shape(None, Field(np.full((21, 11), 5.0), (0.5, 1.0), low=3.0, high=6.0))
    world.solid("ball", Sphere(0.2), density=1000, pos=(0, 0, 5.2))
    return compiled(world)


def test_a_ball_follows_the_ground_down_and_up() -> None:
    engine = advance(scene(), 0.1)
    set_heights(engine, 2, np.full((7, 5), 4.0), first=(7, 3))
    advance(engine, 1.0)
    assert engine.position("ball")[2] == pytest.approx(4.2, abs=1e-3)
    other = engine.content.scene.field.height[:16]
    assert (other == other[0]).all()


@pytest.mark.parametrize(
    ("shape", "heights", "first", "says"),
    [
        (0, [[4.0]], (0, 0), r"shape 0 is no Field; those are \[1, 2\]"),
        (2, np.full((3, 3), 4.0), (19, 0), r"\(3, 3\) from sample \(19, 0\) on do not fit into a field of \(21, 11\)"),
        (2, [[7.0]], (0, 0), "within the field's low 3 and high 6"),
        (2, [[np.nan]], (0, 0), "must be finite"),
    ],
)
def test_heights_that_cannot_be(shape: int, heights: object, first: tuple[int, int], says: str) -> None:
    with pytest.raises(WorldError, match=says):
        set_heights(scene(), shape, heights, first=first)  # type: ignore[arg-type]
