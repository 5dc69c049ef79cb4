"""Cutting the grid with the bucket (Luaces 4.8.1): volumes, the path of the lip, and what cuts nothing."""

import math

import numpy as np
import pytest
from soil_cases import STILL, Plot, a_bucket, about_y, flat

from plant.abi import TILE
from plant.soil.kind import SoilKind
from plant.soil.model import POOL


@pytest.mark.parametrize("spacing", [0.15, 0.05])
def test_a_straight_cut_is_depth_times_width_times_length(spacing: float) -> None:
    plot = Plot([(flat(round(9 / spacing) + 1, spacing), (0, 0, 0))])
    depth, length = 0.1, 1.5
    _, out = plot.drag((2.01, 0.02, -depth), (-0.5, 0, 0), length / 0.5)
    dug = -out["soil.bank"][-1]
    cells = 2 * spacing * (1.2 + length)  # a cell on each side, at both ends
    assert dug == pytest.approx(depth * 1.2 * length, abs=depth * cells / 2)
    assert plot.heights().min() == pytest.approx(-depth, abs=1e-9)
    assert abs(plot.total() - plot.before) < 1e-12


def test_what_is_cut_follows_the_path_of_the_lip() -> None:
    plot = Plot([(flat(), (0, 0, 0))], STILL, a_bucket(struck=3.0, heaped=3.0))
    t = np.arange(3001) * 1e-3
    x, z = 2 - 0.5 * t, -0.2 * np.sin(t)
    plot.run(np.column_stack([x, 0 * t, z]), np.eye(3), (-0.5, 0, 0, 0, 0, 0))
    at, y = plot.places()
    under = (np.abs(y) < 0.6) & (at < 1.95) & (at > 0.55)
    expected = np.interp(at[under], x[::-1], z[::-1])
    assert under.sum() > 60
    assert plot.heights()[under] == pytest.approx(expected, abs=1e-3)


def test_the_back_of_the_bucket_cuts_nothing() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    before = plot.heights().copy()
    plot.drag((0, 0, 0.2), (0, 0, -0.5), 1.0)  # the floor presses down
    plot.drag((0, 0, -0.3), (0.5, 0, 0), 1.0)  # and the back goes first
    assert (plot.heights() == before).all()


def test_a_mouth_that_hangs_over_cuts_down_to_its_plane() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    rot = about_y(-math.pi / 2)  # the mouth looks straight down
    lip = rot @ [0, 0, 0.8]  # the hinge, from the lip
    assert lip == pytest.approx([-0.8, 0, 0])
    plot.drag((0.4, 0, 0.2), (0, 0, -0.5), 0.5, rot)
    at, y = plot.places()
    within = (np.abs(y) < 0.601) & (np.abs(at) < 0.4)
    assert plot.heights()[within] == pytest.approx(-0.05, abs=1e-3)
    assert (plot.heights()[~within] >= 0).all()


def test_never_below_the_range_of_the_patch() -> None:
    plot = Plot([(flat(low=-0.1, high=2), (0, 0, 0))])
    plot.drag((2, 0, -0.3), (-0.5, 0, 0), 2.0)
    assert plot.heights().min() == pytest.approx(-0.1, abs=1e-9)
    assert abs(plot.total() - plot.before) < 1e-12


def test_a_bed_is_dug_down_to_its_floor() -> None:
    fields = [(flat(41, low=-1, high=2, height=0.3), (0, 0, 0))]
    steep = SoilKind(mu_dig=0, mu_cp=0, repose=1.4, wall=1.5)
    plot = Plot(fields, steep, a_bucket(struck=3.0, heaped=3.0), soil=[], beds=[0], loose={0: 0.3})
    plot.drag((2, 0, -0.2), (-0.5, 0, 0), 2.0)
    assert plot.heights().min() == pytest.approx(0.0, abs=1e-9)
    assert abs(plot.total() - plot.before) < 1e-12


def test_a_heap_that_is_dug_again_weighs_less_than_bank() -> None:
    kind = SoilKind(mu_dig=0, mu_cp=0, bulking=1.5)
    dug = []
    for loose in (0.0, 0.5):
        plot = Plot([(flat(), (0, 0, 0))], kind, loose={0: loose})
        plot.drag((2, 0, -0.1), (-0.5, 0, 0), 2.0)
        dug.append(plot.wait(0.1)["bucket.volume"][-1])
    assert dug[1] == pytest.approx(dug[0] / 1.5, rel=1e-9)


def test_a_jump_sweeps_nothing() -> None:
    plot = Plot([(flat(), (0, 0, 0))])
    plot.run([(3, 0, -0.2), (-3, 0, -0.2)], np.eye(3), (-0.5, 0, 0, 0, 0, 0))
    assert not plot.heights().any()


def test_the_tiles_that_changed_are_stamped() -> None:
    plot = Plot([(flat(64), (0, 0, 0))])
    plot.drag((2, 0, -0.2), (-0.5, 0, 0), 1.0)
    changed = np.argwhere(plot.heights() != 0)
    tiles = {(i // TILE, j // TILE) for i, j in changed.tolist()}
    stamps = plot.ground.stamp[0].reshape(4, 4)
    assert {tuple(t) for t in np.argwhere(stamps > 0).tolist()} == tiles


def test_soil_waits_in_the_pool_until_the_mouth_has_gone_over_it() -> None:
    plot = Plot([(flat(), (0, 0, 0))], STILL, a_bucket())
    plot.drag((2, 0, -0.2), (-0.5, 0, 0), 0.6)
    assert 0 < plot.held(POOL) < 2.6 * 0.15 * 0.2 * 1.2
