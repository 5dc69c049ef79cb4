"""Laying soil down about a point (Luaces eq. 4.106 to 4.108)."""

import math

import numpy as np
import pytest
from soil_cases import Plot, flat, view_site

from hilnode.core.jit import kernel
from plant.soil.heap import normal_pair
from plant.soil.kind import SoilKind

STEEP = SoilKind(repose=1.4, wall=math.pi / 2)


@kernel
def _draw(site, out):
    random = view_site(site).soil.state.random
    for k in range(len(out)):
        out[k, 0], out[k, 1] = normal_pair(random)


def test_luaces_4_106_4_107_normal_numbers() -> None:
    plot = Plot([(flat(5), (0, 0, 0))])
    g = np.zeros((200_000, 2))
    _draw(plot.address, g)
    error = 1 / math.sqrt(len(g))
    assert np.abs(g.mean(0)).max() < 5 * error
    assert g.std(0) == pytest.approx([1, 1], abs=5 * error)
    assert abs((g[:, 0] * g[:, 1]).mean()) < 5 * error
    assert (g**4).mean(0) == pytest.approx([3, 3], abs=5 * math.sqrt(96) * error)


@pytest.mark.parametrize(("spacing", "sigma"), [(0.15, 0.15), (0.15, 0.4), (0.05, 0.2)])
def test_luaces_4_108_volume_is_exact_and_the_spread_is_sigma(spacing: float, sigma: float) -> None:
    plot = Plot([(flat(round(6 / spacing) + 1, spacing), (0, 0, 0))], STEEP)
    n, volume = 4000, 0.5
    left = plot.scatter(0.3, -0.2, volume, sigma, n)
    assert 0 <= left < 1e-9
    loose, (x, y) = plot.loose(), plot.places()
    area, bulking = spacing**2, plot.kind.bulking
    assert loose.sum() * area / bulking + left == pytest.approx(volume, rel=1e-13)
    assert (plot.heights() == loose).all()
    w = loose / loose.sum()
    mean = np.array([(w * x).sum(), (w * y).sum()])
    assert mean == pytest.approx([0.3, -0.2], abs=5 * sigma / math.sqrt(n))
    # Linear weights of a cell add u (1 - u), on average a sixth of the spacing's square.
    variance = sigma**2 + spacing**2 / 6
    found = [(w * (x - mean[0]) ** 2).sum(), (w * (y - mean[1]) ** 2).sum()]
    assert found == pytest.approx([variance] * 2, rel=5 * math.sqrt(2 / n))


def test_points_beyond_the_rim_fall_back_to_the_target() -> None:
    plot = Plot([(flat(11), (0, 0, 0))], STEEP)
    left = plot.scatter(0.74, 0.0, 0.1, 0.5, 200)
    assert left < 1e-9
    assert plot.loose().sum() * 0.15**2 / plot.kind.bulking == pytest.approx(0.1, abs=1e-9)


def test_what_the_range_of_the_patch_has_no_room_for_is_left_over() -> None:
    plot = Plot([(flat(11, low=-0.1, high=0.1), (0, 0, 0))], STEEP)
    left = plot.scatter(0.0, 0.0, 5.0, 0.1, 50)
    assert plot.heights().max() <= 0.1
    assert plot.loose().sum() * 0.15**2 / plot.kind.bulking + left == pytest.approx(5.0, rel=1e-12)
