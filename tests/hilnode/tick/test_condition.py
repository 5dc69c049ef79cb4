"""Scale, offset, clamp, low pass and rate limit, against scipy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import scipy.signal

from hilnode.shared.codes import Command
from hilnode.shared.row import Flag

from .bench import config, stimulus, wire_in, wire_out
from .plants import pass_through

DT = 1e-3


def lag(x: np.ndarray, cut_off: float, start: float) -> np.ndarray:
    """A first-order lag with a held input, as scipy discretises it; value k is that at the end of interval k."""
    tau = 1 / (2 * math.pi * cut_off)
    num, den, _ = scipy.signal.cont2discrete(([1.0], [tau, 1.0]), DT, "zoh")
    gain, pole = num.ravel()[1], -den[1]
    y, _ = scipy.signal.lfilter([gain], [1.0, -pole], x, zi=[pole * start])
    return y


def limited(x: np.ndarray, slew: float, start: float) -> np.ndarray:
    """`x` followed by at most `slew` per sample."""
    y = np.empty_like(x)
    for k, wanted in enumerate(x):
        start = min(max(wanted, start - slew), start + slew)
        y[k] = start
    return y


def sine(n: int) -> np.ndarray:
    return 5 * np.sin(2 * np.pi * 3.0 * DT * np.arange(n))


SINE = stimulus("sine", amplitude=5.0, frequency_hz=3.0)


def test_scale_and_offset_on_the_way_in_and_out(bench):
    b = bench(
        config(
            wire_in(scale=3.0, offset=-1.0, stale_ms=60_000),
            wire_out(scale=-2.0, offset=0.5),
        ),
        pass_through(),
        last_tick=10,
    )
    b.letter("dev", [2.0])
    b.start()
    b.run()
    assert (b.rows["u.0"] == 5.0).all()
    assert (b.rows["dev.out.0"] == -9.5).all()


def test_scale_does_not_touch_a_stimulus(bench):
    b = bench(config(wire_in(scale=3.0, offset=1.0), stimulus("constant", value=2.0)), pass_through(), last_tick=5)
    b.start()
    b.run()
    assert (b.rows["u.0"] == 2.0).all()


def test_clamp_and_its_flag(bench):
    b = bench(config(wire_in(source="", clamp=[-2.0, 3.0]), SINE), pass_through(), last_tick=1000)
    b.start()
    b.run()
    true = sine(1000)
    assert np.allclose(b.rows["u.0"], np.clip(true, -2, 3), rtol=0, atol=1e-12)
    outside = (true < -2) | (true > 3)
    assert 100 < outside.sum() < 900
    assert (b.flagged(Flag.CLAMPED) == outside).all()


def test_step_response_of_the_low_pass_is_the_exact_lag(bench):
    b = bench(
        config(wire_in(source="", filter_hz=20.0), stimulus("step", after=1.0, at_s=0.01)),
        pass_through(),
        last_tick=500,
    )
    b.start()
    b.run()
    held = np.maximum(np.arange(500) - 9, 0) * DT  # how long the step has been there at the end of each interval
    assert np.abs(b.rows["u.0"] - -np.expm1(-2 * math.pi * 20.0 * held)).max() < 1e-12
    assert not b.flagged(Flag.CLAMPED).any()


def test_low_pass_of_a_sine_is_scipys(bench):
    b = bench(config(wire_in(source="", filter_hz=7.0), SINE), pass_through(), last_tick=2000)
    b.start()
    b.run()
    assert np.abs(b.rows["u.0"] - lag(sine(2000), 7.0, 0.0)).max() < 1e-12


def test_rate_limit_and_its_flag(bench):
    b = bench(config(wire_in(source="", rate_limit=50.0), SINE), pass_through(), last_tick=1000)
    b.start()
    b.run()
    expected = limited(sine(1000), 0.05, 0.0)
    assert np.abs(b.rows["u.0"] - expected).max() < 1e-12
    bites = np.abs(sine(1000) - expected) > 1e-9
    assert 100 < bites.sum() < 1000
    assert (b.flagged(Flag.CLAMPED) == bites).all()


def test_clamp_comes_before_the_low_pass_and_the_rate_limit_last(bench):
    table = wire_in(source="", clamp=[-4.0, 4.0], filter_hz=15.0, rate_limit=60.0)
    b = bench(config(table, stimulus("square", amplitude=9.0, frequency_hz=5.0)), pass_through(), last_tick=1000)
    b.start()
    b.run()
    share = -math.expm1(-2 * math.pi * 15.0 * DT)
    y, expected = 4.0, []  # the first value passes: filters start from what is measured
    for k in range(1000):
        x = np.clip(9.0 if (k // 100) % 2 == 0 else -9.0, -4, 4)
        y += np.clip(share * (x - y), -0.06, 0.06)
        expected.append(y)
    assert np.abs(b.rows["u.0"] - expected).max() < 1e-12


def test_commands_are_conditioned_from_their_safe_value(bench):
    b = bench(
        config(wire_out(safe=-1.0, filter_hz=20.0, clamp=[-2.0, 3.0]), stimulus("constant", value=9.0)),
        pass_through(),
        last_tick=200,
    )
    b.start()
    b.run()
    assert np.abs(b.rows["dev.out.0"] - lag(np.full(200, 3.0), 20.0, -1.0)).max() < 1e-12
    assert b.flagged(Flag.CLAMPED).all()


def test_arming_starts_the_filter_from_the_measured_value(bench):
    b = bench(
        config(wire_in(source="", filter_hz=1.0), stimulus("step", before=5.0, after=-5.0, at_s=0.02)),
        pass_through(),
        last_tick=60,
    )
    b.start()
    b.at(40, Command.DISARM)
    b.start(50)
    b.run()
    u = b.rows["u.0"]
    assert u[0] == 5.0
    assert u[49] > 3.0  # still on its slow way down
    assert u[50] == -5.0


def test_a_signal_without_conditioning_passes_bit_for_bit(bench):
    values = [0.1, 1e10, 0.1, 1e20, 1.0, -3e-7]
    b = bench(config(wire_in(stale_ms=60_000), wire_out()), pass_through(), last_tick=len(values))
    b.letter("dev", values[:1])
    b.on_step(lambda n: b.letter("dev", values[n + 1 : n + 2]) and 0 if n + 1 < len(values) else 0)
    b.start()
    b.run()
    assert b.rows["u.0"].tolist() == values
    assert b.rows["dev.out.0"].tolist() == values
