"""New patches where soil falls on scenery (Luaces eq. 4.103 to 4.105)."""

import numpy as np
import pytest
from soil_cases import STILL, Plot, flat

from plant.collision.shape.shapes import Field
from plant.soil.ground import NOWHERE
from plant.soil.model import GONE, PATCHES


def _plot(**more: object) -> Plot:
    """A small piece of soil far away, sloped scenery about the origin, and two patches in reserve."""
    x = (np.arange(61) - 30) * 0.5
    scenery = 0.3 * x[:, None] - 0.2 * x[None, :]
    spare = flat(25, 0.1, low=-2, high=3)
    fields = [
        (flat(11), (200, 0, 0)),
        (Field(scenery, 0.5, low=-20, high=20), (0, 0, 0)),
        (spare, (500, 0, 0)),
        (spare, (500, 0, 0)),
    ]
    return Plot(fields, STILL, reserve=[2, 3], **more)


def test_a_new_patch_is_draped_over_sloped_scenery() -> None:
    plot = _plot()
    plot.before += 0.02
    plot.launch((1.0, 2.0, 4.0), (0, 0, 0), 0.02)
    plot.wait(2.0)
    assert plot.ground.on.tolist() == [1, 1, 1, 0]
    assert plot.ground.at[2, :2] == pytest.approx([1, 2])
    x, y = plot.places(2)
    assert plot.heights(2) - plot.loose(2) == pytest.approx(0.3 * x - 0.2 * y, abs=1e-9)
    assert plot.loose(2).sum() * 0.01 / plot.kind.bulking == pytest.approx(0.02, abs=1e-9)
    assert plot.soil.state.counter[PATCHES] == 1
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)
    plot.launch((1.2, 2.0, 4.0), (0, 0, 0), 0.02)
    plot.wait(2.0)
    assert plot.soil.state.counter[PATCHES] == 1  # the same patch again
    assert plot.loose(2).sum() * 0.01 / plot.kind.bulking == pytest.approx(0.04, abs=1e-9)


def test_soil_finds_its_patch_on_level_scenery_too() -> None:
    """There patch and scenery have the very same heights, and of two that are equal the first one is the surface."""
    spare = flat(25, 0.1, low=-4, high=4)
    plot = Plot([(flat(11), (200, 0, 0)), (flat(61, 0.5), (0, 0, 0)), (spare, (500, 0, 0))], STILL, reserve=[2])
    plot.before += 0.02
    plot.launch((1.0, 2.0, 4.0), (0, 0, 0), 0.02)
    plot.wait(2.0)
    assert plot.held(GONE) == 0.0
    assert plot.loose(2).sum() * 0.01 / plot.kind.bulking == pytest.approx(0.02, abs=1e-9)
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)


def test_the_soil_of_a_new_patch_can_be_dug_again_and_the_scenery_not() -> None:
    plot = _plot()
    plot.before += 0.2
    for _ in range(10):
        plot.launch((1.0, 2.0, 4.0), (0, 0, 0), 0.02)
        plot.wait(0.3)
    plot.wait(4.0)
    floor = plot.heights(2) - plot.loose(2)
    scenery = plot.heights(1).copy()
    plot.drag((2.4, 2.0, -0.02), (-0.5, 0, 0), 5.0)
    assert plot.wait(0.1)["bucket.volume"][-1] > 0.02
    assert (plot.heights(1) == scenery).all()
    assert (plot.heights(2) >= floor).all()
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)


def test_with_no_patch_left_it_is_gone() -> None:
    plot = _plot()
    plot.before += 0.06
    for x in (-8.0, 0.0, 8.0):
        plot.launch((x, 0.0, 6.0), (0, 0, 0), 0.02)
        plot.wait(3.0)
    assert plot.ground.on.tolist() == [1, 1, 1, 1]
    assert plot.held(GONE) == pytest.approx(0.02)
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)


def test_over_ground_that_may_be_dug_a_new_patch_hides() -> None:
    """Soil that lands just beyond the rim of the terrain: the patch reaches over the terrain, and is not seen there."""
    spare = flat(25, 0.1, low=-2, high=3)
    plot = Plot([(flat(21), (0, 0, 0)), (flat(21, 1.0), (0, 0, -0.5)), (spare, (500, 0, 0))], STILL, reserve=[2])
    plot.launch((2.2, 0.0, 3.0), (0, 0, 0), 0.02)
    plot.wait(2.0)
    assert plot.ground.on[2] == 1
    x, y = plot.places(2)
    over = (np.abs(x) <= 1.5) & (np.abs(y) <= 1.5)
    assert over.sum() > 20
    assert (plot.heights(2)[over] < -0.5).all()
    assert plot.heights(2)[~over] - plot.loose(2)[~over] == pytest.approx(-0.5, abs=1e-9)


def test_reset_takes_it_away_again() -> None:
    plot = _plot()
    fresh = plot.digest()
    plot.launch((1.0, 2.0, 4.0), (0, 0, 0), 0.02)
    plot.wait(2.0)
    assert plot.ground.on[2] == 1
    plot.reset()
    assert plot.ground.on.tolist() == [1, 1, 0, 0]
    assert plot.field.height.tobytes() in fresh
    assert NOWHERE == -1
