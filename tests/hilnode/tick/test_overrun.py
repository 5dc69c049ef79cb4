"""Missed deadlines, in real time at 200 Hz with a plant that takes too long at chosen steps.

The machine may add overruns of its own. So every expectation is exact integer arithmetic on the rows themselves:
whatever made a tick late, the next deadline follows from it. The chosen steps only make sure that there is something to
see.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hilnode.shared.codes import Cause, Command, Event
from hilnode.shared.control import Word
from hilnode.shared.row import Flag, State
from hilnode.tick.layout import Exit, L

from .bench import MS, config, wire_out
from .plants import burning

PERIOD = 5 * MS
N = 24


def run(bench, policy: str, *, at=(8, 9, 16), us=7000, ticks=N, node="", tables=(), commands=()):
    b = bench(
        config(*tables, node=f'rate_hz = 200\noverrun = "{policy}"\n{node or "warmup_ms = 0"}'),
        burning(PERIOD * 1e-9, at=at, us=us),
        last_tick=ticks,
    )
    b.start()
    for command in commands:
        b.at(*command)
    b.reason = b.run()
    for step in at:
        stepped = b.rows[b.rows["step"] == step + 1]
        assert len(stepped) == 0 or stepped[0]["end"] - stepped[0]["start"] >= us * 1000
    return b


def late(rows: np.ndarray) -> np.ndarray:
    """By row: whether its work ended after the next deadline."""
    return rows["done"] > rows["deadline"] + PERIOD


def test_skip_goes_on_with_the_next_deadline_of_the_grid(bench):
    b = run(bench, "skip")
    r = b.rows
    assert b.reason == Exit.ENDED
    assert late(r)[[8, 9, 16]].all()
    assert (b.flagged(Flag.OVERRUN) == late(r)).all()
    for now, then in pairwise(r):
        grid = now["deadline"] + PERIOD * np.arange(1, 1000)
        assert then["deadline"] == grid[grid >= now["done"]][0]
        assert then["missed"] == (grid < now["done"]).sum()
    assert r["missed"][0] == 0
    assert r["missed"][[9, 10, 17]].min() >= 1
    assert (r["step"] == np.arange(1, N + 1)).all()
    assert not (b.flagged(Flag.CATCH_UP) | b.flagged(Flag.SLIPPED)).any()


def test_catch_up_runs_every_missed_tick_at_once(bench):
    b = run(bench, "catch-up", at=[8], us=23_000, node="warmup_ms = 0\ncatch_up_limit = 1000")
    r = b.rows
    assert (r["deadline"] == r["deadline"][0] + PERIOD * np.arange(N)).all()
    assert (r["missed"] == 0).all()
    behind = np.concatenate([[False], r["done"][:-1] > r["deadline"][1:]])
    assert (b.flagged(Flag.CATCH_UP) == behind).all()
    assert behind[9:13].all()  # 23 ms: the deadlines at 5, 10, 15 and 20 ms were over
    own = np.where(behind, r["done"] - r["wake"], r["done"] - r["deadline"]) > PERIOD
    assert (b.flagged(Flag.OVERRUN) == own).all()  # one that catches up is judged by its own length
    assert own[8]


@pytest.mark.parametrize("limit", [1, 2])
def test_catch_up_gives_up_what_exceeds_its_limit(bench, limit):
    b = run(bench, "catch-up", at=[8], us=23_000, node=f"warmup_ms = 0\ncatch_up_limit = {limit}")
    r = b.rows
    for now, then in pairwise(r):
        over = max(0, -((now["deadline"] + PERIOD - now["done"]) // PERIOD))  # deadlines before the work was done
        dropped = max(over - limit, 0)
        assert then["missed"] == dropped
        assert then["deadline"] == now["deadline"] + (1 + dropped) * PERIOD
        assert ((then["flags"] & Flag.CATCH_UP) != 0) == (over > 0)
    assert r["missed"][9] >= 4 - limit
    assert b.flagged(Flag.CATCH_UP)[9 : 9 + limit].all()


def test_slip_moves_the_grid(bench):
    b = run(bench, "slip")
    r = b.rows
    on_time = r["done"][:-1] <= r["deadline"][:-1] + PERIOD
    assert (r["deadline"][1:] == np.where(on_time, r["deadline"][:-1] + PERIOD, r["done"][:-1])).all()
    assert (b.flagged(Flag.SLIPPED) == np.concatenate([[False], ~on_time])).all()
    assert b.flagged(Flag.SLIPPED)[[9, 10, 17]].all()
    assert (r["missed"] == 0).all()


def test_halt_ends_with_the_first_overrun(bench):
    b = run(bench, "halt", tables=[wire_out(safe=-3.0)])
    assert b.reason == Exit.HALTED
    assert len(b.rows) <= 9
    assert (late(b.rows) == (b.rows["tick"] == len(b.rows) - 1)).all()
    assert b.flagged(Flag.OVERRUN)[-1]
    halt = b.heard(Event.HALT)[0]
    last = b.rows[-1]
    assert halt.tick == last["tick"]
    assert halt.value == pytest.approx((last["done"] - last["deadline"] - PERIOD) * 1e-9, abs=1e-12)
    assert b.heard(Event.STATE)[-1].index == State.STOPPED
    assert b.outboxes["dev"].take()[1][0] == -3.0


def test_halt_in_the_last_tick_is_still_a_halt(bench):
    b = run(bench, "halt", at=range(5), ticks=1)
    assert b.reason == Exit.HALTED


def test_warm_up_forgives_but_does_not_forget(bench):
    b = run(bench, "halt", node="warmup_ms = 60000")
    assert b.reason == Exit.ENDED
    assert late(b.rows)[[8, 9, 16]].all()
    for flag in (Flag.OVERRUN, Flag.GRACE):
        assert (b.flagged(flag) == late(b.rows)).all()
    assert (b.live(L.OVERRUNS), b.control[Word.OVERRUNS]) == (0, 0)
    assert b.heard(Event.OVERRUN) == []


def test_warm_up_is_counted_from_running(bench):
    b = run(bench, "skip", at=[1, 12], node="warmup_ms = 30", ticks=16)
    since = b.rows["done"] - b.rows["wake"][0]
    counted = late(b.rows) & (since >= 30 * MS)
    assert (b.flagged(Flag.GRACE) == (late(b.rows) & (since < 30 * MS))).all()
    assert counted[12]
    assert b.live(L.OVERRUNS) == b.control[Word.OVERRUNS] == counted.sum()


def test_too_many_trip_the_node(bench):
    b = run(bench, "skip", at=range(6, 20), node="warmup_ms = 0\nmax_overruns = 3", tables=[wire_out(safe=-3.0)])
    third = np.flatnonzero(late(b.rows))[2]
    assert third <= 8
    assert [(h.tick, h.index, h.value) for h in b.heard(Event.TRIP)] == [(third, Cause.OVERRUNS, 3.0)]
    assert (b.rows["state"] == np.where(b.rows["tick"] < third, State.RUNNING, State.TRIPPED)).all()
    assert (b.rows["dev.out.0"][third + 1 :] == -3.0).all()
    assert not b.flagged(Flag.OVERRUN)[third + 1 :].any()  # nobody drives a device: not an overrun


def test_arming_counts_anew(bench):
    b = run(
        bench,
        "skip",
        at=[2, 3, 12],
        ticks=20,
        commands=[(6, Command.DISARM), (7, Command.ARM), (8, Command.RUN)],
    )
    r = b.rows
    counted = late(r) & (r["state"] == State.RUNNING)
    assert counted[:6].sum() >= 2
    assert b.live(L.OVERRUNS) == counted[7:].sum() >= 1


def test_arming_counts_anew_in_the_control_block(bench):
    b = run(bench, "skip", at=[2, 3], ticks=8, commands=[(6, Command.DISARM), (7, Command.ARM)])
    assert b.live(L.OVERRUNS) == 0
    assert b.control[Word.OVERRUNS] == 0


def test_one_event_per_second_says_how_late(bench):
    b = run(bench, "skip", at=[3, 5, 7], us=12_000, ticks=10)
    told = b.heard(Event.OVERRUN)
    first = b.rows[late(b.rows)][0]
    assert len(told) == 1  # the whole run is shorter than a second
    assert told[0].tick == first["tick"]
    beyond = first["done"] - first["deadline"] - PERIOD
    assert told[0].value == pytest.approx(beyond * 1e-9, abs=1e-12)
    assert told[0].index == b.rows["missed"][first["tick"] + 1]


@pytest.mark.parametrize("policy", ["skip", "catch-up", "slip"])
def test_free_pace_has_no_deadlines_to_miss(bench, policy):
    b = bench(config(node=f'pace = "free"\noverrun = "{policy}"'), burning(at=[3, 5], us=2500), last_tick=10)
    b.start()
    b.run()
    assert (b.rows["missed"] == 0).all()
    assert (b.rows["flags"] == 0).all()
