"""Made-up inputs against closed forms over whole runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from hilnode.config.assemble import TABLE_ROOM
from hilnode.core.limits import SLOTS
from hilnode.shared.codes import Answer, Command
from hilnode.tick.stimulus import Wave

from .bench import config, stimulus, wire_in
from .plants import pass_through

DT = 1e-3
N = 3000
T = np.arange(N) * DT


def run(bench, *tables: str, channels: int = 1, ticks: int = N):
    b = bench(config(*tables), pass_through(channels=channels), last_tick=ticks)
    b.start()
    b.run()
    assert (b.rows["step"] == np.arange(1, ticks + 1)).all()
    return b


def test_constant_ramp_and_step(bench):
    b = run(
        bench,
        stimulus("constant", "u.0", value=-1.25),
        stimulus("ramp", "u.1", start=1.0, slope=2.0),
        stimulus("ramp", "u.2", start=1.0, slope=2.0, stop=4.0),
        stimulus("ramp", "u.3", start=1.0, slope=-2.0, stop=-3.0),
        stimulus("step", "u.4", before=1.0, after=-7.0, at_s=0.5),
        channels=5,
    )
    assert (b.rows["u.0"] == -1.25).all()
    assert np.abs(b.rows["u.1"] - (1 + 2 * T)).max() < 1e-12
    assert np.abs(b.rows["u.2"] - np.minimum(1 + 2 * T, 4)).max() < 1e-12
    assert np.abs(b.rows["u.3"] - np.maximum(1 - 2 * T, -3)).max() < 1e-12
    assert (b.rows["u.4"] == np.where(np.arange(N) >= 500, -7.0, 1.0)).all()


def test_falling_ramp_without_a_stop_goes_on(bench):
    b = run(bench, stimulus("ramp", slope=-2.0))
    assert np.abs(b.rows["u.0"] + 2 * T).max() < 1e-12


def test_ramp_without_a_slope_stays_where_it_starts(bench):
    b = run(bench, stimulus("ramp", start=0.5, slope=0.0, stop=1.0), ticks=10)
    assert (b.rows["u.0"] == 0.5).all()


def test_sine_and_square(bench):
    b = run(
        bench,
        stimulus("sine", "u.0", amplitude=2.0, frequency_hz=3.7, offset=0.5, phase_rad=1.1),
        stimulus("square", "u.1", amplitude=2.0, frequency_hz=10.0, offset=0.5, duty=0.25),
        channels=2,
    )
    assert np.abs(b.rows["u.0"] - (0.5 + 2 * np.sin(2 * np.pi * 3.7 * T + 1.1))).max() < 1e-12
    assert (b.rows["u.1"] == np.where(np.arange(N) % 100 < 25, 2.5, -1.5)).all()


def test_square_has_its_edges_at_the_exact_tick(bench):
    b = run(bench, stimulus("square", amplitude=1.0, frequency_hz=50.0))
    assert (b.rows["u.0"] == np.where(np.arange(N) % 20 < 10, 1.0, -1.0)).all()


def test_chirp_is_the_integral_of_its_frequency(bench):
    b = run(bench, stimulus("chirp", amplitude=3.0, f0_hz=1.0, f1_hz=25.0, seconds=2.0, offset=-1.0))
    frequency = np.interp(T, [0.0, 2.0], [1.0, 25.0])  # then stays at f1
    turns = scipy.integrate.cumulative_trapezoid(frequency, T, initial=0.0)
    assert np.abs(b.rows["u.0"] - (-1 + 3 * np.sin(2 * np.pi * turns))).max() < 1e-9


def csv(tmp_path, times, values) -> str:
    file = tmp_path / "wave.csv"
    file.write_text("time,value\n" + "".join(f"{t!r},{v!r}\n" for t, v in zip(times, values, strict=True)))
    return str(file)


def test_csv_is_interpolated_and_held_outside(bench, tmp_path):
    times = [0.1, 0.25, 0.3, 1.0, 2.0]
    values = [1.0, -2.0, 5.0, 5.5, 0.25]
    b = run(bench, stimulus("csv", file=csv(tmp_path, times, values)))
    assert np.abs(b.rows["u.0"] - np.interp(T, times, values)).max() < 1e-12


def test_csv_repeats(bench, tmp_path):
    times = [0.0, 0.1, 0.3, 0.7]
    values = [1.0, -2.0, 5.0, 3.0]
    b = run(bench, stimulus("csv", file=csv(tmp_path, times, values), repeat=True))
    within = (np.arange(N) % 700) * DT
    wrong = np.abs(b.rows["u.0"] - np.interp(within, times, values)) > 1e-9
    assert set(np.flatnonzero(wrong) % 700) <= {0}  # the jump from 3 to 1 may round to either side


def test_csv_of_one_point_is_a_constant(bench, tmp_path):
    b = run(bench, stimulus("csv", file=csv(tmp_path, [1.0], [4.0])), ticks=20)
    assert (b.rows["u.0"] == 4.0).all()


def noise(bench, seed: int, ticks: int = 20_000, idle: int = 0) -> np.ndarray:
    b = bench(config(stimulus("noise", sigma=2.0, mean=1.0, seed=seed)), pass_through(), last_tick=ticks + idle)
    b.start(idle)
    b.run()
    return b.rows["u.0"][idle:]


def test_noise_is_normal_and_white(bench):
    x = noise(bench, 5)
    n = len(x)
    assert abs(x.mean() - 1.0) < 4 * 2.0 / math.sqrt(n)
    assert abs(x.std() - 2.0) < 4 * 2.0 / math.sqrt(2 * n)
    assert scipy.stats.kstest(x, "norm", args=(1.0, 2.0)).pvalue > 1e-3
    z = (x - 1.0) / 2.0
    for apart in (1, 2, 3, 10):
        assert abs(np.mean(z[apart:] * z[:-apart])) < 4 / math.sqrt(n)


def test_noise_follows_its_seed(bench):
    first = noise(bench, 5, 500)
    assert (noise(bench, 5, 500) == first).all()
    other = noise(bench, 6, 500)
    assert abs(np.corrcoef(first, other)[0, 1]) < 4 / math.sqrt(500)


def test_noise_is_the_same_however_long_the_node_stood_before(bench):
    assert (noise(bench, 5, 50, idle=7) == noise(bench, 5, 50)).all()


def test_pause_holds_the_wave(bench):
    b = bench(config(stimulus("sine", amplitude=1.0, frequency_hz=5.0)), pass_through(), last_tick=60)
    b.start()
    b.at(20, Command.PAUSE)
    b.at(40, Command.RESUME)
    b.run()
    held = np.minimum(np.arange(60), 20)
    step = np.where(np.arange(60) < 40, held, np.arange(60) - 20)
    assert np.abs(b.rows["u.0"] - np.sin(2 * np.pi * 5 * DT * step)).max() < 1e-12


def test_from_and_to_and_one_after_another(bench):
    b = run(
        bench,
        wire_in(source="", default=-9.0),
        stimulus("constant", value=1.0, from_s=0.125, to_s=0.25),
        stimulus("ramp", start=5.0, slope=1.0, from_s=0.25, to_s=0.375),
        stimulus("constant", value=3.0, from_s=0.35, to_s=0.5),
        ticks=600,
    )
    expected = np.full(600, -9.0)
    expected[125:250] = 1.0
    expected[250:375] = 5.0 + np.arange(125) * DT  # its time begins with it; where two overlap the first one wins
    expected[375:500] = 3.0
    assert np.abs(b.rows["u.0"] - expected).max() < 1e-12


@pytest.mark.parametrize("tick", [11, 15, 22, 23, 27])
def test_from_s_begins_at_its_very_tick(bench, tick):
    b = run(bench, stimulus("constant", value=1.0, from_s=tick * 0.001), ticks=40)
    assert (b.rows["u.0"] == np.where(np.arange(40) >= tick, 1.0, 0.0)).all()


def test_command_sets_replaces_and_takes_away(bench):
    b = bench(config(stimulus("constant", value=1.0)), pass_through(), last_tick=50)
    b.start()
    slot = SLOTS - 1
    b.at(10, Command.STIMULUS, 0, [0, 0])  # slot 0 came from the config
    b.at(20, Command.STIMULUS, slot, [0, Wave.CONSTANT, 0, 0.0, math.inf, 7.0])
    b.at(30, Command.STIMULUS, slot, [0, Wave.CONSTANT, 0, 0.0, math.inf, 8.0])
    b.at(40, Command.STIMULUS, slot, [0, 0])
    b.run()
    assert (b.rows["u.0"] == np.repeat([1.0, 0.0, 7.0, 8.0, 0.0], 10)).all()
    assert all(a.index == Answer.DONE for a in b.answers.values())


def test_command_with_an_impossible_slot_or_signal_is_refused(bench):
    b = bench(config(), pass_through(), last_tick=20)
    bad = [
        b.at(1, Command.STIMULUS, SLOTS, [0, Wave.CONSTANT]),
        b.at(1, Command.STIMULUS, -1, [0, Wave.CONSTANT]),
        b.at(1, Command.STIMULUS, 2**62, [0, Wave.CONSTANT]),
        b.at(1, Command.STIMULUS, 0, [1, Wave.CONSTANT]),
        b.at(1, Command.STIMULUS, 0, [-1, Wave.CONSTANT]),
        b.at(1, Command.STIMULUS, 0, [math.nan, Wave.CONSTANT]),
    ]
    b.start()
    b.run()
    assert [b.answers[i].index for i in bad] == [Answer.UNKNOWN] * len(bad)
    assert (b.rows["u.0"] == 0.0).all()


@pytest.mark.parametrize(
    "params", [(99, 0.0, 1.0), (-1, 0.0, 1.0), (Wave.TABLE, 0.0, TABLE_ROOM + 1.0), (Wave.TABLE, -1.0, 1.0)]
)
def test_command_that_would_read_beyond_the_tables_is_refused(bench, params):
    kind, first, count = params
    b = bench(config(), pass_through(), last_tick=5)
    asked = b.at(1, Command.STIMULUS, 0, [0, kind, 0, 0.0, math.inf, first, count])
    b.run()
    assert b.answers[asked].index == Answer.UNKNOWN
