"""Sensors: statistics of what is random, exactness of what is not."""

import math

import numpy as np
import pytest
from scipy import stats

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.sensor.channel import (
    NOISE,
    WALK,
    Channel,
    build_sensors,
    normal,
    reset_sensors,
    sense,
    uniform,
    view_sensors,
)

H = 1e-3


@kernel
def _run(sensors, h, first, true, sensed):
    s = view_sensors(sensors)
    for n in range(true.shape[0]):
        sense(s, first + n, h, true[n], sensed[n])


@kernel
def _reset(sensors):
    reset_sensors(view_sensors(sensors))


@kernel
def _normals(seed, channel, use, out):
    for n in range(out.size):
        out[n] = normal(seed, channel, n, use)


@kernel
def _uniforms(seed, out):
    for n in range(out.shape[0]):
        out[n, 0], out[n, 1] = uniform(seed, 0, n, 0)


class Bench:
    def __init__(self, *channels: Channel, seed: int = 0) -> None:
        self.sensors = build_sensors(list(channels), seed)
        self.record = Struct(self.sensors)
        self.width = 1 + max(max(c.source, c.target) for c in channels)

    def run(self, true, first: int = 0, h: float = H):
        """Readings of channel target 0 .. for a row of true values at each step; one column means all the same."""
        true = np.asarray(true, float)
        if true.ndim == 1:
            true = np.tile(true[:, None], (1, self.width))
        sensed = np.zeros_like(true)
        _run(self.record.address, h, first, true, sensed)
        return sensed


def test_noise_has_its_mean_deviation_and_shape() -> None:
    n = 200_000
    read = Bench(Channel(noise=0.5), seed=3).run(np.full(n, 7.0))[:, 0]
    assert read.mean() == pytest.approx(7.0, abs=4 * 0.5 / math.sqrt(n))
    assert read.std() == pytest.approx(0.5, rel=4 / math.sqrt(2 * n))
    assert stats.kstest((read - 7) / 0.5, "norm").pvalue > 1e-3


def test_noise_is_white() -> None:
    n = 100_000
    x = Bench(Channel(noise=1.0), seed=9).run(np.zeros(n))[:, 0]
    for lag in (1, 2, 3, 7, 50, 1000):
        assert abs(np.mean(x[:-lag] * x[lag:])) < 4.5 / math.sqrt(n)
    power = np.abs(np.fft.rfft(x)[1:-1]) ** 2 / n
    quarters = [q.mean() for q in np.array_split(power, 4)]
    assert quarters == pytest.approx([1.0] * 4, abs=0.06)


def test_channels_uses_and_seeds_are_independent() -> None:
    n = 50_000
    draws = []
    for seed, channel, use in (
        *((0, 0, NOISE), (0, 1, NOISE), (0, 0, WALK), (0, 4, NOISE), (0, 1, WALK)),
        *((1, 0, NOISE), (2, 1, NOISE), (1, 1, WALK), (2**62, 0, NOISE)),
    ):
        out = np.zeros(n)
        _normals(seed, channel, use, out)
        draws.append(out)
    # also against the neighbour a step later, as a seed and a counter that are merely added would give
    for i in range(len(draws)):
        for j in range(i):
            for shift in (0, 1):
                a, b = draws[i][shift:], draws[j][: n - shift]
                assert abs(np.mean(a * b)) < 4.5 / math.sqrt(n)


def test_uniform_numbers_fill_the_square() -> None:
    out = np.zeros((100_000, 2))
    _uniforms(5, out)
    assert out.min() >= 0
    assert out.max() < 1
    counts, *_ = np.histogram2d(out[:, 0], out[:, 1], bins=10, range=[[0, 1], [0, 1]])
    assert stats.chisquare(counts.ravel()).pvalue > 1e-3


def test_same_seed_same_bits_and_after_a_reset_too() -> None:
    every = {
        "noise": 0.1,
        "walk": 0.05,
        "lag": 0.02,
        "delay": 3,
        "quantum": 1e-3,
        "dropout_rate": 5,
        "dropout_time": 0.01,
    }
    true = np.sin(0.01 * np.arange(3000))
    bench = Bench(Channel(**every), Channel(0, 1, **every), seed=4)
    one = bench.run(true)
    _reset(bench.record.address)
    assert (bench.run(true) == one).all()
    assert (Bench(Channel(**every), Channel(0, 1, **every), seed=4).run(true) == one).all()
    assert (Bench(Channel(**every), Channel(0, 1, **every), seed=5).run(true) != one).any()
    assert (one[:, 0] != one[:, 1]).any()


def test_noise_depends_on_the_step_not_on_how_often_it_was_read() -> None:
    whole = Bench(Channel(noise=1.0)).run(np.zeros(100))[:, 0]
    late = Bench(Channel(noise=1.0)).run(np.zeros(40), first=60)[:, 0]
    assert (late == whole[60:]).all()


@pytest.mark.parametrize("delay", [0, 1, 7, 250])
def test_delay_is_exact(delay: int) -> None:
    true = np.arange(1.0, 1001.0)
    read = Bench(Channel(delay=delay), Channel(0, 1, delay=3)).run(true)
    assert (read[delay:, 0] == true[: 1000 - delay]).all()
    assert (read[:delay, 0] == true[0]).all()  # before that, the first value
    assert (read[3:, 1] == true[:-3]).all()  # each channel its own


def test_lag_is_exact_for_a_held_input() -> None:
    true = np.concatenate([[0.0], np.ones(500)])
    read = Bench(Channel(lag=0.05)).run(true)[:, 0]
    assert read == pytest.approx(1 - np.exp(-np.arange(501) * H / 0.05), abs=1e-12)


def test_gain_and_bias() -> None:
    read = Bench(Channel(gain_error=0.02, bias=-0.3)).run([0.0, 10.0, -10.0])[:, 0]
    assert read == pytest.approx([-0.3, 9.9, -10.5])


def test_quantum_is_exact() -> None:
    true = np.linspace(-1, 1, 4001)
    read = Bench(Channel(quantum=0.125)).run(true)[:, 0]
    assert (read / 0.125 == np.round(read / 0.125)).all()
    assert np.abs(read - true).max() <= 0.0625
    assert set(np.unique(read)) == set(np.arange(-8, 9) * 0.125)


def test_range_saturates() -> None:
    read = Bench(Channel(low=-1.0, high=2.0, noise=0.1)).run(np.linspace(-5, 5, 1000))[:, 0]
    assert read.min() == -1.0
    assert read.max() == 2.0


def test_bias_walks_like_the_root_of_time() -> None:
    ends, halves = [], []
    for seed in range(300):
        read = Bench(Channel(walk=0.2), seed=seed).run(np.zeros(2001))[:, 0]
        ends.append(read[-1])
        halves.append(read[500])
    assert np.std(ends) == pytest.approx(0.2 * math.sqrt(2.0), rel=0.15)
    assert np.std(halves) == pytest.approx(0.2 * math.sqrt(0.5), rel=0.15)
    assert abs(np.mean(ends)) < 4 * 0.2 * math.sqrt(2.0 / 300)


def test_dropouts_come_at_their_rate_and_last() -> None:
    n = 400_000
    read = Bench(Channel(failure=-99.0, dropout_rate=2.0, dropout_time=0.02), seed=2).run(np.ones(n))[:, 0]
    out = read == -99.0
    starts = np.flatnonzero(np.diff(out.astype(int)) == 1)
    ends = np.flatnonzero(np.diff(out.astype(int)) == -1)
    assert len(starts) == pytest.approx(2.0 * n * H * (1 - out.mean()), rel=0.15)
    assert not out[0]
    lengths = ends - starts[: len(ends)]
    assert np.median(lengths) == 20
    assert (lengths % 20 == 0).mean() > 0.95  # now and then one follows on the last
    assert set(np.unique(read)) == {-99.0, 1.0}


def test_a_failed_channel_shows_its_failure_value_until_mended() -> None:
    bench = Bench(Channel(failure=4.0, delay=2))
    true = np.arange(10.0, 20.0)
    bench.sensors.failed[0] = 1
    assert (bench.run(true[:5])[:, 0] == 4.0).all()
    bench.sensors.failed[0] = 0
    assert (bench.run(true[5:], first=5)[:, 0] == true[3:8]).all()  # what was on its way is not lost


def test_what_is_not_finite_is_a_failure_and_leaves_nothing_behind() -> None:
    bench = Bench(Channel(failure=-1.0, lag=0.01))
    read = bench.run([1.0, math.nan, math.inf, 1.0])[:, 0]
    assert read == pytest.approx([1.0, -1.0, -1.0, 1.0])


def test_only_targets_are_written() -> None:
    bench = Bench(Channel(source=2, target=0), Channel(source=0, target=3))
    read = bench.run(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert read.tolist() == [[3.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"noise": -0.1}, r"Channel\.noise = -0\.1 u must be at least 0"),
        ({"lag": math.nan}, r"Channel\.lag = nan s must be at least 0"),
        ({"bias": math.inf}, r"Channel\.bias = inf u must be a finite number"),
        ({"delay": -1}, r"Channel\.delay = -1 steps must be at least 0 and at most 100000"),
        ({"delay": 1.5}, r"Channel\.delay = 1\.5 must be a whole number"),
        ({"source": -2}, r"Channel\.source = -2 must be a whole number, at least 0"),
        ({"low": 3.0, "high": 2.0}, r"Channel\.low = 3\.0 must be below high = 2\.0"),
        ({"failure": math.nan}, r"Channel\.failure = nan u must be a finite number"),
        ({"gain_error": -2}, r"Channel\.gain_error = -2 must be at least -1 and at most 10"),
    ],
)
def test_bad_options_are_refused(options, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Channel(**options)


def test_bad_sets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Channel\.target = 3 is the target of 2 channels"):
        build_sensors([Channel(0, 3), Channel(1, 3)])
    with pytest.raises(ValueError, match="seed = -1"):
        build_sensors([Channel()], seed=-1)
