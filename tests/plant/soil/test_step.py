"""The whole step: nothing is lost, the same inputs give the same bits, and no input breaks it."""

import hashlib
import math

import numpy as np
import pytest
from soil_cases import H, Plot, a_bucket, about_y, flat

from plant.abi import NOT_FINITE, OK
from plant.soil.kind import SoilKind


def _yaw(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _world(kind: SoilKind | None = None) -> Plot:
    """Terrain with a truck's bed and scenery beside it."""
    spare = flat(24, 0.15, low=-2, high=3)
    fields = [
        (flat(96), (0, 0, 0)),
        (flat(12, 0.2, low=-0.2, high=1.5), (3, 0, 1.2)),
        (flat(30, 1.0), (0, 0, -2.5)),
        (spare, (500, 0, 0)),
        (spare, (500, 0, 0)),
    ]
    return Plot(fields, kind or SoilKind(), a_bucket(), beds=[1], reserve=[3, 4])


def _walk(plot: Plot, rng: np.random.Generator, cycles: int, ticks: int) -> np.ndarray:
    """Dig, swing and dump at random, over and beside the ground; answers the last wrenches."""
    wrench = np.zeros((1, 6))
    t = np.arange(ticks) / ticks
    for _ in range(cycles):
        heading, reach = rng.uniform(0, 2 * math.pi), rng.uniform(-6, 6, 2)
        length, depth, dump = rng.uniform(0.5, 2.5), rng.uniform(0.05, 0.6), rng.uniform(0, 2.6)
        x = -length * np.minimum(3 * t, 1) + rng.uniform(-3, 3) * np.maximum(t - 0.5, 0)
        z = np.where(t < 0.4, -depth * np.sin(math.pi * t / 0.4), 6 * (t - 0.4))
        turn = np.where(t < 0.4, t / 0.4 * math.pi / 2, math.pi / 2 - dump * np.maximum(t - 0.6, 0) / 0.4)
        yaw = _yaw(heading)
        pos = np.column_stack([x, 0 * t, z]) @ yaw.T + [*reach, 0]
        rot = np.array([yaw @ about_y(a) for a in turn])
        vel = np.zeros((ticks, 6))
        vel[:, :3] = np.gradient(pos, H, axis=0)
        vel[:, 3:] = np.outer(np.gradient(turn, H), yaw @ [0, 1, 0])
        wrench, _ = plot.run(pos, rot, vel)
        assert plot.status == OK
        assert np.isfinite(wrench).all()
    return wrench


def test_nothing_is_lost_over_a_random_walk() -> None:
    plot = _world()
    rng = np.random.default_rng(11)
    for _ in range(6):
        _walk(plot, rng, 2, 3000)
        assert abs(plot.total() - plot.before) < 1e-12
    out = plot.wait(0.01)
    books = sum(out[k][-1] for k in ("bucket.volume", "soil.bank", "soil.heap", "soil.cut", "soil.air", "soil.gone"))
    assert books == pytest.approx(0, abs=1e-12)
    assert out["soil.bank"][-1] < -1


@pytest.mark.slow
def test_nothing_is_lost_over_a_million_ticks() -> None:
    plot = _world()
    rng = np.random.default_rng(12)
    moved = 0.0
    for _ in range(100):
        _walk(plot, rng, 1, 10_000)
        moved = max(moved, -plot.soil.state.out[12])
    assert moved > 10
    assert abs(plot.total() - plot.before) < 1e-12 * moved


def test_the_same_inputs_give_the_same_bits() -> None:
    digests = []
    for _ in range(2):
        plot = _world()
        wrench = _walk(plot, np.random.default_rng(13), 3, 2000)
        digests.append(hashlib.sha256(plot.digest() + wrench.tobytes()).hexdigest())
    plot.reset()
    wrench = _walk(plot, np.random.default_rng(13), 3, 2000)
    digests.append(hashlib.sha256(plot.digest() + wrench.tobytes()).hexdigest())
    assert len(set(digests)) == 1


def test_another_seed_another_heap() -> None:
    heaps = []
    for seed in (1, 2):
        plot = Plot([(flat(), (0, 0, 0))], seed=seed)
        plot.scatter(0, 0, 0.1, 0.3, 20)
        heaps.append(plot.heights().copy())
    assert (heaps[0] != heaps[1]).any()


@pytest.mark.parametrize(
    ("pos", "rot", "vel"),
    [
        ((0, 0, -0.2), np.eye(3), (0,) * 6),
        ((1e6, -1e6, 0), np.eye(3), (-1, 0, 0, 0, 0, 0)),
        ((0, 0, -0.2), about_y(math.pi), (-1, 0.5, 0, 1, 1, 1)),
        ((0, 0, -0.2), np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]), (-1, 0.5, 0, 1, 1, 1)),
        ((0, 0, -3.0), np.eye(3), (-1, 0, 0, 0, 0, 0)),
        ((0, 0, -50.0), about_y(-math.pi / 2), (-1, 0, -1, 0, 0, 0)),
        ((7.2, 0, -0.2), np.eye(3), (-1, 0, 0, 0, 0, 0)),
        ((-7.05, 0, -0.2), np.eye(3), (-1, 0, 0, 0, 0, 0)),
        ((0, 0, -0.2), np.zeros((3, 3)), (-1, 0, 0, 0, 0, 0)),
        ((0, 0, -0.2), np.eye(3), (1e6, 1e6, 1e6, 1e3, 1e3, 1e3)),
    ],
    ids=["at rest", "far", "upside down", "on its side", "buried", "deep", "rim", "far rim", "no rotation", "fast"],
)
def test_degenerate_input_gives_finite_output(pos: tuple, rot: np.ndarray, vel: tuple) -> None:
    plot = _world()
    plot.load(0.3)
    path = np.asarray(pos, float) + np.outer(np.arange(300) * H, np.clip(vel[:3], -1, 1))
    wrench, out = plot.run(path, rot, vel)
    assert plot.status == OK
    assert np.isfinite(wrench).all()
    assert all(np.isfinite(v).all() for v in out.values())
    assert np.isfinite(plot.field.height).all()
    assert abs(plot.total() - plot.before) < 1e-12


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_input_that_is_no_number_is_refused_and_changes_nothing(bad: float) -> None:
    plot = _world()
    plot.run((0, 0, -0.2), np.eye(3))
    before = plot.digest()
    for pos, rot, vel in (
        ((bad, 0, 0), np.eye(3), (0,) * 6),
        ((0, 0, 0), np.full((3, 3), bad), (0,) * 6),
        ((0, 0, 0), np.eye(3), (0, 0, 0, 0, bad, 0)),
    ):
        wrench, _ = plot.run(pos, rot, vel)
        assert plot.status == NOT_FINITE
        assert not wrench.any()
        assert plot.digest() == before


def test_a_loader_cycle_into_the_bed_of_a_truck() -> None:
    """Dig a bucketful, lift it, dump it on the truck: what was dug lies on the bed."""
    plot = _world(SoilKind(mu_dig=0.0, mu_cp=0.0))
    t = np.arange(2000) * H
    turn = np.clip((t - 1.0) / 1.0, 0, 1) * math.pi / 2
    pos = np.column_stack([-1 - 0.8 * t, 0 * t, np.where(t < 1, -0.35, -0.35 + 0.7 * (t - 1))])
    plot.run(pos, np.array([about_y(a) for a in turn]), np.gradient(np.hstack([pos, 0 * pos]), H, axis=0))
    out = plot.run(np.tile([0, 0, 8.0], (50, 1)), about_y(math.pi / 2))[1]
    load = out["bucket.volume"][-1]
    assert load > 0.25
    spilt = out["soil.heap"][-1]
    _, out = plot.run(np.tile([3, 0, 3.5], (9000, 1)), about_y(math.pi / 2 - 2.6))
    assert out["bucket.volume"][-1] == 0
    bed = plot.loose(1).sum() * plot.soil.land.area[1] / plot.kind.bulking
    assert bed == pytest.approx(load, rel=0.1)
    assert out["soil.heap"][-1] == pytest.approx(load + spilt, abs=0.02)
    assert abs(plot.total() - plot.before) < 1e-12
