"""Avalanches come to rest at the angle of repose, and move no more."""

import math

import numpy as np
import pytest
from soil_cases import Plot, flat, view_site

from hilnode.core.jit import kernel
from plant.collision.shape.shapes import Field
from plant.soil.kind import SoilKind
from plant.soil.repose import steepest


@kernel
def _slopes(site, out):
    s = view_site(site)
    ny = s.field.ny[0]
    for k in range(len(out)):
        out[k] = steepest(s.field, 0, k // ny, k % ny)[0]


def slopes(plot: Plot) -> np.ndarray:
    """The steepest way down from each sample of patch 0 [rad]."""
    out = np.zeros(plot.field.first[1])
    _slopes(plot.address, out)
    return np.arctan(out)


@pytest.mark.parametrize("repose", [25, 35, 42])
def test_a_cone_has_the_angle_of_repose_and_the_volume(repose: float) -> None:
    kind = SoilKind(repose=math.radians(repose), spread=0.1)
    plot = Plot([(flat(101, 0.1), (0, 0, 0))], kind)
    volume, drops = 4.0, 200
    for _ in range(drops):
        plot.launch((0, 0, 3), (0, 0, 0), volume / drops / kind.bulking)
        plot.wait(0.1)
    plot.wait(3.0)
    assert plot.soil.queue.ends[0] == plot.soil.queue.ends[1]
    assert plot.loose().sum() * 0.01 == pytest.approx(volume, abs=1e-6)
    assert math.degrees(slopes(plot).max()) < repose + 1
    # A cone of volume pi R^3 tan / 3.
    radius = (3 * volume / (math.pi * math.tan(math.radians(repose)))) ** (1 / 3)
    x, y = plot.places()
    r, z = np.hypot(x, y), plot.heights()
    flank = (r > 0.25 * radius) & (r < 0.8 * radius)
    angle = math.degrees(math.atan(-np.polyfit(r[flank], z[flank], 1)[0]))
    assert angle == pytest.approx(repose, abs=1)
    assert z.max() == pytest.approx(radius * math.tan(math.radians(repose)), rel=0.08)
    assert np.hypot(x, y)[z > 0.02].max() == pytest.approx(radius, rel=0.12)


def test_once_at_rest_it_stays_so() -> None:
    plot = Plot([(flat(61, 0.1), (0, 0, 0))], SoilKind())
    plot.scatter(0, 0, 1.0, 0.2, 100)
    plot.wait(5.0)
    before = plot.heights().copy()
    assert plot.soil.queue.ends[0] == plot.soil.queue.ends[1]
    plot.wait(1.0)
    assert (plot.heights() == before).all()


def test_random_loose_hills_settle_and_keep_their_volume() -> None:
    rng = np.random.default_rng(5)
    heights = rng.uniform(0, 2, (41, 41))
    plot = Plot([(Field(heights, (0.15, 0.25), low=-1, high=3), (0, 0, 0))], SoilKind(), loose={0: heights})
    plot.scatter(0, 0, 0.01, 3.0, 5000)  # wake it all
    plot.before += 0.01
    plot.wait(30.0)
    assert plot.soil.queue.ends[0] == plot.soil.queue.ends[1]
    assert math.degrees(slopes(plot).max()) < 36
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)


def test_bank_stands_in_a_wall_where_loose_soil_slides() -> None:
    x = np.arange(41) < 20
    heights = np.where(x[:, None], 0.3, 0.0) * np.ones((41, 41))
    bank = Plot([(Field(heights, 0.15, low=-1, high=3), (0, 0, 0))], SoilKind())
    loose = Plot([(Field(heights, 0.15, low=-1, high=3), (0, 0, 0))], SoilKind(), loose={0: heights})
    for plot in (bank, loose):
        plot.scatter(0, 0, 1e-4, 2.0, 3000)
        plot.wait(10)
    assert math.degrees(slopes(bank).max()) > 60
    assert math.degrees(slopes(loose).max()) < 36


def test_a_wall_beyond_its_angle_breaks_and_swells() -> None:
    x = np.arange(41) < 20
    heights = np.where(x[:, None], 0.6, 0.0) * np.ones((41, 41))
    kind = SoilKind(wall=math.radians(50))
    plot = Plot([(Field(heights, 0.15, low=-1, high=3), (0, 0, 0))], kind)
    plot.scatter(0, 0, 1e-4, 2.0, 3000)
    plot.before += 1e-4
    out = plot.wait(20)
    assert out["soil.bank"][-1] < -0.1
    assert math.degrees(slopes(plot).max()) < 51
    assert plot.total() == pytest.approx(plot.before, rel=1e-12)
