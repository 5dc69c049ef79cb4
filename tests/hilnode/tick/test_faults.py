"""Every kind of fault on an input, an output and a command.

The plant hands its input on and nothing is conditioned, so the command shows what the fault did. Times of an input
count from the beginning of a step, those of an output or command from its end.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from hilnode.core.limits import HISTORY, SLOTS
from hilnode.shared.codes import Answer, Command
from hilnode.shared.row import Flag
from hilnode.tick.faults import Kind

from .bench import config, fault, stimulus, wire_out
from .plants import losing, pass_through

DT = 1e-3
N = 400
FROM, TO = 125, 250  # ticks
SINE = stimulus("sine", amplitude=5.0, frequency_hz=3.0, offset=1.0)
TRUE = 1 + 5 * np.sin(2 * np.pi * 3.0 * DT * np.arange(N))
PLACES = ("u.0", "y.0", "dev.out.0")


def run(bench, *tables: str, plant=None, ticks: int = N, **options):
    b = bench(config(*tables, wire_out(), **options), plant or pass_through(), last_tick=ticks)
    b.start()
    b.run()
    return b


def span(place: str) -> slice:
    """Rows in which a fault from FROM to TO shows."""
    late = 1 if place != "u.0" else 0  # an output of row k belongs to the time (k + 1) dt
    return slice(FROM - late, TO - late)


def expect(kind: str, place: str, x: np.ndarray) -> np.ndarray:
    """What the fault makes of `x`, written with numpy."""
    rows = span(place)
    y = x.copy()
    y[rows] = {
        "stuck": np.full(TO - FROM, x[rows.start - 1]),
        "stuck at": np.full(TO - FROM, 2.5),
        "off": np.zeros(TO - FROM),
        "bias": x[rows] + 0.75,
        "delay": x[rows.start - 20 : rows.stop - 20],
        "quantise": 0.5 * np.floor(x[rows] / 0.5 + 0.5),
    }[kind]
    return y


KEYS = {
    "stuck": {},
    "stuck at": {"value": 2.5},
    "off": {},
    "bias": {"value": 0.75},
    "delay": {"ms": 20},
    "quantise": {"step": 0.5},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KEYS)
def test_kind_at_place(bench, kind, place):
    b = run(bench, SINE, fault(kind.split()[0], place, from_s=FROM * DT, to_s=TO * DT, **KEYS[kind]))
    shown = expect(kind, place, TRUE)
    assert np.abs(b.rows["dev.out.0"] - shown).max() < 1e-12
    # the plant takes a spoilt input; what it gives stays in the row as it is
    true = shown if place == "u.0" else TRUE
    assert np.abs(b.rows["u.0"] - true).max() < 1e-12
    assert np.abs(b.rows["y.0"] - true).max() < 1e-12
    active = np.zeros(N, bool)
    active[span(place)] = True
    assert (b.flagged(Flag.FAULT) == active).all()


@pytest.mark.parametrize("place", PLACES)
def test_noise_at_place(bench, place):
    n = 20_000
    b = run(bench, stimulus("constant", value=3.0), fault("noise", place, sigma=0.2, seed=3), ticks=n)
    x = b.rows["dev.out.0"] - 3.0
    assert abs(x.mean()) < 4 * 0.2 / math.sqrt(n)
    assert scipy.stats.kstest(x, "norm", args=(0.0, 0.2)).pvalue > 1e-3
    again = run(bench, stimulus("constant", value=3.0), fault("noise", place, sigma=0.2, seed=3), ticks=n)
    assert (again.rows["dev.out.0"] == b.rows["dev.out.0"]).all()
    other = run(bench, stimulus("constant", value=3.0), fault("noise", place, sigma=0.2, seed=4), ticks=n)
    assert abs(np.corrcoef(other.rows["dev.out.0"], b.rows["dev.out.0"])[0, 1]) < 4 / math.sqrt(n)


@pytest.mark.parametrize("place", PLACES)
def test_drop_holds_the_last_value_at_its_rate(bench, place):
    n = 20_000
    b = run(bench, stimulus("ramp", slope=1.0), fault("drop", place, probability=0.3, seed=1), ticks=n)
    true, shown = np.arange(n) * DT, b.rows["dev.out.0"]
    dropped = np.abs(shown - true) > 1e-9
    assert not dropped[0]
    assert scipy.stats.binomtest(int(dropped.sum()), n, 0.3).pvalue > 1e-4
    last = np.maximum.accumulate(np.where(dropped, 0, np.arange(n)))
    assert np.abs(shown - true[last]).max() < 1e-9
    pairs = int((dropped[1:] & dropped[:-1]).sum())  # one after another no more often than by chance
    assert scipy.stats.binomtest(pairs, n - 1, 0.09).pvalue > 1e-4


@pytest.mark.parametrize(("probability", "lost"), [(0.0, 0), (1.0, 99)])
def test_drop_of_nothing_and_of_everything(bench, probability, lost):
    b = run(bench, stimulus("ramp", slope=1.0), fault("drop", "y.0", probability=probability), ticks=100)
    assert (np.diff(b.rows["dev.out.0"]) == 0).sum() == lost


@pytest.mark.parametrize("ticks", [1, 2, 100, HISTORY - 1])
def test_delay_is_exact_to_the_tick(bench, ticks):
    n = ticks + 300
    b = run(bench, stimulus("ramp", start=1.0, slope=1.0), fault("delay", "y.0", ms=ticks), ticks=n)
    true, shown = b.rows["y.0"], b.rows["dev.out.0"]
    assert (shown[ticks:] == true[:-ticks]).all()
    assert (shown[:ticks] == true[0]).all()  # nothing older is known


def test_faults_on_one_signal_act_in_the_order_of_the_file(bench):
    bias, quantise = fault("bias", "y.0", value=0.3), fault("quantise", "y.0", step=1.0)
    first = run(bench, SINE, bias, quantise)
    assert np.abs(first.rows["dev.out.0"] - np.floor(TRUE + 0.3 + 0.5)).max() < 1e-9
    second = run(bench, SINE, quantise, bias)
    assert np.abs(second.rows["dev.out.0"] - (np.floor(TRUE + 0.5) + 0.3)).max() < 1e-9


def test_faults_on_output_and_command_add_up(bench):
    b = run(bench, SINE, fault("bias", "y.0", value=0.25), fault("delay", "dev.out.0", ms=3))
    assert np.abs(b.rows["dev.out.0"][3:] - (TRUE[:-3] + 0.25)).max() < 1e-12


def test_stuck_keeps_what_it_found_when_set_by_command(bench):
    b = bench(config(SINE, wire_out()), pass_through(), last_tick=N)
    b.start()
    y = b.index("y.0")
    b.at(100, Command.FAULT, SLOTS - 1, [y, Kind.STUCK, 0, 0.0, math.inf, math.nan])
    b.at(200, Command.FAULT, SLOTS - 1, [y, 0])
    b.at(300, Command.FAULT, SLOTS - 1, [y, Kind.STUCK, 0, 0.0, math.inf, math.nan])
    b.run()
    expected = TRUE.copy()
    expected[100:200] = TRUE[100]
    expected[300:] = TRUE[300]
    assert np.abs(b.rows["dev.out.0"] - expected).max() < 1e-12


def test_command_with_an_impossible_slot_or_signal_is_refused(bench):
    b = bench(config(), pass_through(), last_tick=5)
    bad = [
        b.at(1, Command.FAULT, SLOTS, [0, Kind.OFF]),
        b.at(1, Command.FAULT, -1, [0, Kind.OFF]),
        b.at(1, Command.FAULT, -(2**62), [0, Kind.OFF]),
        b.at(1, Command.FAULT, 0, [2, Kind.OFF]),  # there are two signals, no command
        b.at(1, Command.FAULT, 0, [-1, Kind.OFF]),
    ]
    b.run()
    assert [b.answers[i].index for i in bad] == [Answer.UNKNOWN] * len(bad)


def test_fault_does_not_reach_a_device_that_is_safe(bench):
    b = bench(config(wire_out(safe=-3.0), fault("bias", "dev.out.0", value=1.0)), pass_through(), last_tick=20)
    b.start()
    b.at(10, Command.TRIP)
    b.run()
    assert (b.rows["dev.out.0"][:10] == 1.0).all()
    assert (b.rows["dev.out.0"][10:] == -3.0).all()


def test_delayed_command_leaves_its_safe_value_without_a_jump(bench):
    b = bench(
        config(stimulus("constant", value=10.0), wire_out(), fault("delay", "dev.out.0", ms=20), bumpless_ms=100),
        pass_through(),
        last_tick=500,
    )
    b.start()
    b.at(200, Command.TRIP)
    b.at(210, Command.CLEAR)
    b.start(211)
    b.run()
    up = np.diff(b.rows["dev.out.0"])
    assert up.max() <= 10.0 / 100 + 1e-9


@pytest.mark.parametrize("keys", [{"kind": "delay", "ms": 20}, {"kind": "drop", "probability": 0.9, "seed": 2}])
def test_no_device_ever_gets_a_nan(bench, keys):
    b = bench(
        config(stimulus("constant", value=10.0), wire_out(), fault(signal="y.0", **keys)),
        losing(at=[50]),
        last_tick=140,
    )
    b.start()
    b.at(70, Command.CLEAR)
    b.start(71)
    b.run()
    assert np.isfinite(b.rows["dev.out.0"]).all()


def test_noise_is_the_same_however_long_the_node_stood_before(bench):
    def noise(idle: int) -> np.ndarray:
        b = bench(config(fault("noise", "y.0", sigma=1.0), wire_out()), pass_through(), last_tick=50 + idle)
        b.start(idle)
        b.run()
        return b.rows["dev.out.0"][idle:]

    assert (noise(7) == noise(0)).all()
