"""What the loop waits for: the clock at some speed, nothing, or somebody who grants steps."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from hilnode.shared.codes import Answer, Command, Event
from hilnode.shared.control import Word
from hilnode.shared.row import Flag, State
from hilnode.tick.layout import Exit

from .bench import MS, config, stimulus, wire_out
from .plants import counter, pass_through


def real_time(speed: float, rate_hz: float = 200.0) -> str:
    """Catches up without limit, so that the deadlines stay an unbroken grid on any machine."""
    return f'rate_hz = {rate_hz}\nspeed = {speed}\noverrun = "catch-up"\ncatch_up_limit = 100000'


@pytest.mark.parametrize(("speed", "ticks"), [(1.0, 30), (10.0, 300), (0.5, 15)])
def test_scaled_time(bench, speed, ticks):
    period = 5 * MS / speed
    b = bench(config(node=real_time(speed)), counter(5e-3), last_tick=ticks)
    b.start()
    assert b.run() == Exit.ENDED
    assert (np.diff(b.rows["deadline"]) == period).all()
    assert (b.rows["wake"] >= b.rows["deadline"]).all()
    assert b.seconds >= ticks * period * 1e-9
    assert b.seconds < ticks * period * 1e-9 + 0.5
    assert (b.rows["y.0"] == np.arange(1, ticks + 1)).all()


def test_times_of_a_row_are_in_order(bench):
    b = bench(config(node=real_time(1.0)), pass_through(5e-3), last_tick=10)
    b.start()
    b.run()
    times = [b.rows[c] for c in ("deadline", "wake", "start", "end", "done")]
    assert all((a <= z).all() for a, z in pairwise(times))
    assert (b.rows["period"][1:] == np.diff(b.rows["wake"])).all()
    assert b.control[Word.HEARTBEAT] >= b.rows["wake"][-1]


def test_spin_does_not_wake_early(bench):
    b = bench(config(node=real_time(1.0) + "\nspin_us = 2000"), pass_through(5e-3), last_tick=10)
    b.start()
    b.run()
    assert (b.rows["wake"] >= b.rows["deadline"]).all()


def test_speed_by_command(bench):
    b = bench(config(node=real_time(1.0)), pass_through(5e-3), last_tick=60)
    b.start()
    b.at(10, Command.SPEED, 0, [10.0])
    b.at(40, Command.SPEED, 0, [0.5])
    b.at(50, Command.SPEED, 0, [1.0])
    b.run()
    # a command acts at the tick's edge: the deadline after this tick's is the first at the new distance
    assert (np.diff(b.rows["deadline"]) == np.repeat([5 * MS, MS // 2, 10 * MS, 5 * MS], [10, 30, 10, 9])).all()
    assert b.control[Word.PERIOD] == 5 * MS


@pytest.mark.parametrize("speed", [0.0, -1.0, 1e-4, 1001.0, math.nan, math.inf])
def test_impossible_speed_is_refused(bench, speed):
    b = bench(config(node=real_time(10.0)), pass_through(5e-3), last_tick=10)
    asked = b.at(2, Command.SPEED, 0, [speed])
    b.run()
    assert b.answers[asked].index == Answer.UNKNOWN
    assert (np.diff(b.rows["deadline"]) == MS // 2).all()


def test_free_does_not_wait(bench):
    b = bench(config(), counter(), last_tick=20_000)
    b.start()
    b.run()
    assert b.seconds < 2.0  # 20 s of simulated time
    assert (b.rows["step"] == np.arange(1, 20_001)).all()
    assert b.rows["y.0"][-1] == 20_000
    assert (b.rows["flags"] == 0).all()
    assert (b.rows["deadline"] == b.rows["wake"]).all()


@pytest.mark.parametrize("node", ['pace = "free"', real_time(1.0, 1000.0)])
def test_pause_resume_and_single_steps(bench, node):
    b = bench(config(stimulus("ramp", slope=1000.0), wire_out(), node=node), pass_through(), last_tick=60)
    b.start()
    b.at(10, Command.PAUSE)
    one = b.at(20, Command.STEP, 0, [1.0])
    three = b.at(30, Command.STEP, 0, [3.0])
    b.at(50, Command.RESUME)
    b.run()
    moves = np.ones(60, int)
    moves[10:50] = 0
    moves[20] = 1
    moves[30:33] = 1
    assert (b.rows["step"] == np.cumsum(moves)).all()
    assert (b.flagged(Flag.PAUSED) == (moves == 0)).all()
    assert np.abs(b.rows["dev.out.0"] - (np.cumsum(moves) - 1)).max() < 1e-9
    assert (b.rows["state"] == State.RUNNING).all()
    assert (b.answers[one].value, b.answers[three].value) == (11.0, 14.0)


def test_pause_forgets_the_steps_not_taken(bench):
    b = bench(config(), pass_through(), last_tick=40)
    b.start()
    b.at(10, Command.PAUSE)
    b.at(20, Command.STEP, 0, [100.0])
    b.at(25, Command.PAUSE)
    b.run()
    assert (b.rows["step"][25:] == 15).all()


def test_arming_ends_a_pause(bench):
    b = bench(config(), pass_through(), last_tick=40)
    b.start()
    b.at(10, Command.PAUSE)
    b.at(20, Command.DISARM)
    b.start(30)
    b.run()
    assert b.rows["step"][29] == 10
    assert b.rows["step"][-1] == 20


def lockstep(bench, **options):
    return bench(config(node='pace = "lockstep"', **options), counter(), last_tick=0)


def test_lockstep_takes_exactly_what_is_granted(bench):
    b = lockstep(bench)
    b.start()
    answers = [b.at(0, Command.STEP, 0, [5.0]), b.at(0, Command.STEP, 0, [2.0])]
    assert b.run(stop_after_s=0.1) == Exit.STOPPED
    assert (b.rows["step"] == np.arange(1, 8)).all()
    assert b.rows["y.0"][-1] == 7.0
    assert [b.answers[i].value for i in answers] == [5.0, 7.0]
    assert (b.rows["flags"] == 0).all()


def test_lockstep_is_alive_while_it_waits(bench):
    b = lockstep(bench)
    b.start()
    assert b.run(stop_after_s=0.1) == Exit.STOPPED
    assert len(b.rows) == 0
    ended = b.heard(Event.STATE)[-1].time_ns
    assert abs(b.control[Word.HEARTBEAT] - ended) < 50 * MS
    assert ended - b.heard(Event.STATE)[1].time_ns > 50 * MS


def test_lockstep_goes_step_by_step_with_its_controller(bench):
    """The controller answers each step with the next grant, until it has had enough."""
    b = lockstep(bench)
    b.on_step(lambda n: b.commands.send(Command.STEP, 0, [1.0]) if n < 49 else None)
    b.start()
    b.at(0, Command.STEP, 0, [1.0])
    assert b.run(stop_after_s=0.3) == Exit.STOPPED
    assert (b.rows["step"] == np.arange(1, 51)).all()


def test_lockstep_can_be_paused_and_tripped_while_it_waits(bench):
    b = lockstep(bench)
    b.on_step(lambda n: b.commands.send(Command.PAUSE) if n == 2 else None)
    b.start()
    b.at(0, Command.STEP, 0, [3.0])
    assert b.run(stop_after_s=0.1) == Exit.STOPPED
    assert (b.rows["step"][:3] == [1, 2, 3]).all()
    assert len(b.rows) > 20  # paused: it ticks at its rate and does not step
    assert (b.rows["step"][3:] == 3).all()
    assert b.flagged(Flag.PAUSED)[3:].all()

    b = lockstep(bench)
    b.on_step(lambda n: b.commands.send(Command.TRIP) if n == 2 else None)
    b.start()
    b.at(0, Command.STEP, 0, [3.0])
    assert b.run(stop_after_s=0.1) == Exit.STOPPED
    assert (b.rows["state"][3:] == State.TRIPPED).all()
    assert len(b.rows) > 20


def test_lockstep_takes_what_was_granted_in_a_pause_after_it(bench):
    b = lockstep(bench)
    b.start()
    b.at(0, Command.PAUSE)
    b.at(10, Command.STEP, 0, [2.0])
    b.at(20, Command.RESUME)
    assert b.run(stop_after_s=0.15) == Exit.STOPPED
    moves = np.zeros(len(b.rows), int)
    moves[20:22] = 1
    assert (b.rows["step"] == np.cumsum(moves)).all()
    assert len(b.rows) == 22  # now it waits for the next grant
