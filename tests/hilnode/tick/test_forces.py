"""Values imposed by hand on inputs, outputs and commands."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hilnode.shared.codes import Answer, Command
from hilnode.shared.row import Flag
from hilnode.tick.layout import L

from .bench import alarm, config, stimulus, wire_in, wire_out
from .plants import pass_through

CONSTANT = stimulus("constant", value=1.0)
K = np.arange(60)
FORCED = (K >= 20) & (K < 40)


def forced_run(bench, signal: str, *tables: str):
    b = bench(config(CONSTANT, *tables), pass_through(), last_tick=60)
    b.start()
    b.at(20, Command.FORCE, signal, [5.0])
    b.at(40, Command.RELEASE, signal)
    b.run()
    assert all(a.index == Answer.DONE for a in b.answers.values())
    assert (b.flagged(Flag.FORCED) == FORCED).all()
    assert b.live(L.FORCES) == 0
    return b.rows


def test_force_on_an_input_reaches_the_plant(bench):
    rows = forced_run(bench, "u.0", wire_out())
    for name in ("u.0", "y.0", "dev.out.0"):
        assert (rows[name] == np.where(FORCED, 5.0, 1.0)).all()


def test_force_on_an_output_reaches_the_device_and_leaves_the_truth_in_the_row(bench):
    rows = forced_run(bench, "y.0", wire_out())
    assert (rows["y.0"] == 1.0).all()
    assert (rows["dev.out.0"] == np.where(FORCED, 5.0, 1.0)).all()


def test_force_on_a_command(bench):
    rows = forced_run(bench, "dev.out.0", wire_out(clamp=[-9.0, 9.0], scale=2.0))
    assert (rows["y.0"] == 1.0).all()
    assert (rows["dev.out.0"] == np.where(FORCED, 5.0, 2.0)).all()


@pytest.mark.parametrize(
    ("signal", "tables"),
    [
        ("u.0", [wire_in(source="", rate_limit=200.0), wire_out()]),
        ("dev.out.0", [wire_out(rate_limit=200.0)]),
    ],
)
def test_release_starts_from_the_forced_value(bench, signal, tables):
    b = bench(config(CONSTANT, *tables), pass_through(), last_tick=80)
    b.start()
    b.at(20, Command.FORCE, signal, [5.0])
    b.at(40, Command.RELEASE, signal)
    b.run()
    back = np.maximum(5.0 - 0.2 * np.arange(1, 41), 1.0)  # 200 per second at 1 kHz
    assert np.abs(b.rows["dev.out.0"][40:] - back).max() < 1e-12


def test_release_of_a_filtered_input_starts_from_the_forced_value(bench):
    b = bench(config(CONSTANT, wire_in(source="", filter_hz=10.0)), pass_through(), last_tick=200)
    b.start()
    b.at(20, Command.FORCE, "u.0", [5.0])
    b.at(40, Command.RELEASE, "u.0")
    b.run()
    fade = np.exp(-2 * math.pi * 10.0 * 1e-3 * np.arange(1, 161))
    assert np.abs(b.rows["u.0"][40:] - (1.0 + 4.0 * fade)).max() < 1e-12


def test_another_force_replaces_the_first(bench):
    b = bench(config(CONSTANT), pass_through(), last_tick=30)
    b.start()
    b.at(10, Command.FORCE, "u.0", [5.0])
    b.at(20, Command.FORCE, "u.0", [6.0])
    b.run()
    assert (b.rows["u.0"] == np.repeat([1.0, 5.0, 6.0], 10)).all()
    assert b.live(L.FORCES) == 1


def test_release_of_all(bench):
    b = bench(config(CONSTANT, wire_out()), pass_through(), last_tick=30)
    b.start()
    for name, value in (("u.0", 5.0), ("y.0", 6.0), ("dev.out.0", 7.0)):
        b.at(10, Command.FORCE, name, [value])
    b.at(15, Command.RELEASE, "dev.out.0")
    b.at(20, Command.RELEASE, -1)
    b.at(20, Command.RELEASE, "u.0")  # no longer forced: harmless
    b.run()
    assert (b.rows["u.0"] == np.repeat([1.0, 5.0, 1.0], 10)).all()
    assert (b.rows["dev.out.0"] == np.repeat([1.0, 7.0, 6.0, 1.0], [10, 5, 5, 10])).all()
    assert b.live(L.FORCES) == 0


def test_impossible_forces_are_refused(bench):
    b = bench(config(CONSTANT, wire_out()), pass_through(), last_tick=20)
    b.start()
    bad = [b.at(5, Command.FORCE, index, [9.0]) for index in (3, -1, 2**40, -(2**40))]
    bad += [b.at(6, Command.FORCE, 0, [value]) for value in (math.nan, math.inf, -math.inf)]
    bad += [b.at(7, Command.RELEASE, index) for index in (3, -2, 2**40)]
    b.run()
    assert [b.answers[i].index for i in bad] == [Answer.UNKNOWN] * len(bad)
    assert (b.rows["u.0"] == 1.0).all()
    assert not b.flagged(Flag.FORCED).any()


def test_force_on_a_command_waits_until_devices_are_live(bench):
    b = bench(config(CONSTANT, wire_out(safe=-3.0)), pass_through(), last_tick=30)
    b.at(5, Command.FORCE, "dev.out.0", [5.0])
    b.start(10)
    b.at(20, Command.TRIP)
    b.run()
    assert (b.rows["dev.out.0"] == np.repeat([-3.0, 5.0, -3.0], 10)).all()


def test_force_on_a_command_acts_while_paused(bench):
    b = bench(config(CONSTANT, wire_out()), pass_through(), last_tick=30)
    b.start()
    b.at(10, Command.PAUSE)
    asked = b.at(20, Command.FORCE, "dev.out.0", [5.0])
    b.run()
    assert b.answers[asked].index == Answer.DONE
    assert (b.rows["dev.out.0"][20:] == 5.0).all()


def test_alarm_holds_a_command_while_paused(bench):
    guard = alarm("u.0", above=3.0, action="set", set="dev.out.0", value=-1.0)
    b = bench(config(CONSTANT, wire_out(), guard), pass_through(), last_tick=30)
    b.start()
    b.at(10, Command.PAUSE)
    b.at(20, Command.FORCE, "u.0", [5.0])
    b.run()
    assert (b.rows["dev.out.0"][20:] == -1.0).all()
