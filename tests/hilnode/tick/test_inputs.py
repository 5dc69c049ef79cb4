"""What stands in for an input that is late, was never there, or is no number."""

from __future__ import annotations

import math
import time

import numpy as np

from hilnode.shared.codes import Answer, Cause, Command, Event
from hilnode.shared.row import Flag, State
from hilnode.tick.layout import Exit

from .bench import MS, config, stimulus, wire_in, wire_out
from .plants import pass_through

REAL_TIME = "rate_hz = 1000\npriority = 0"
FOREVER = 3_600_000  # [ms]


def test_ages_are_those_of_the_letter(bench):
    b = bench(config(wire_in(stale_ms=FOREVER), channels=2), pass_through(channels=2), last_tick=50)
    first = b.letter("dev", [1.0, 2.0], age_s=0.25)
    later: list[int] = []
    b.on_step(lambda n: later.append(b.letter("dev", [3.0, 4.0])) if n == 19 else None)
    b.start()
    b.run()
    stamp = np.where(np.arange(50) < 20, first, later[0])
    assert (b.rows["age:u.0"] == (b.rows["wake"] - stamp) * 1e-9).all()
    assert (b.rows["age:u.1"] == 0.0).all()  # made here
    assert (b.rows["u.0"] == np.where(np.arange(50) < 20, 1.0, 3.0)).all()


def test_channels_of_one_device_have_ages_of_their_own(bench):
    b = bench(
        config(wire_in("u.0", "dev.in.0", stale_ms=FOREVER), wire_in("u.1", "dev.in.1", stale_ms=FOREVER), channels=2),
        pass_through(channels=2),
        last_tick=5,
    )
    now = time.monotonic_ns()
    b.inboxes["dev"].put(np.array([1.0, 2.0]), np.array([now - 7 * MS, now - 900 * MS]))
    b.start()
    b.run()
    assert (b.rows["age:u.0"] == (b.rows["wake"] - (now - 7 * MS)) * 1e-9).all()
    assert (b.rows["age:u.1"] == (b.rows["wake"] - (now - 900 * MS)) * 1e-9).all()


def test_hold_default_and_ramp(bench):
    """One device for three inputs; it falls silent and comes back. Ages are read from the rows themselves."""
    limit, ramp = 15, 30
    kinds = {"u.0": "hold", "u.1": "default", "u.2": "ramp"}
    tables = [wire_in(u, stale=how, stale_ms=limit, ramp_ms=ramp, default=-2.0) for u, how in kinds.items()]
    b = bench(config(*tables, node=REAL_TIME), pass_through(channels=3), last_tick=100)
    stamps: list[int] = []

    def deliver(n: int) -> None:
        if n == 2 or n == 70:
            stamps.append(b.letter("dev", [4.0 if n == 2 else 6.0]))

    b.on_step(deliver)
    b.start()
    b.run()
    silent = b.rows[3:71]
    age = silent["wake"] - stamps[0]
    assert age[-1] > (limit + ramp + 5) * MS  # all of the ramp was seen
    late = age - limit * MS
    assert (silent["u.0"] == 4.0).all()
    assert (silent["u.1"] == np.where(late > 0, -2.0, 4.0)).all()
    share = np.clip(late / (ramp * MS), 0.0, 1.0)
    assert np.abs(silent["u.2"] - (4.0 + share * (-2.0 - 4.0))).max() < 1e-12
    assert (b.flagged(Flag.STALE)[3:71] == (late > 0)).all()
    first = silent["tick"][late > 0][0]
    assert [(h.tick, h.index) for h in b.heard(Event.STALE) if h.tick <= 70] == [(first, i) for i in range(3)]
    back = [h for h in b.heard(Event.FRESH) if h.tick > 3]
    assert [(h.tick, h.index) for h in back[:3]] == [(71, i) for i in range(3)]
    assert all(b.rows[u][71] == 6.0 for u in kinds)


def test_trip_in_the_very_tick(bench):
    """A stimulus stands in for ten ticks, so that the device's only letter is fresh when it is first needed."""
    b = bench(
        config(
            wire_in(stale="trip", stale_ms=25, default=-2.0),
            stimulus("constant", value=4.0, to_s=0.01),
            wire_out(safe=-7.0),
            node=REAL_TIME,
        ),
        pass_through(),
        last_tick=80,
    )
    sent: list[int] = []
    b.on_step(lambda n: sent.append(b.letter("dev", [4.0])) if n == 8 else None)
    b.start()
    b.run()
    k = np.flatnonzero(b.rows["state"] == State.TRIPPED)[0]
    assert b.rows["wake"][k] - sent[0] > 25 * MS >= b.rows["wake"][k - 1] - sent[0] or k == 10
    assert b.rows["dev.out.0"][k] == -7.0
    assert b.rows["dev.out.0"][k - 1] == 4.0
    assert (b.rows["step"][k:] == b.rows["step"][k - 1]).all()
    assert [(h.index, h.value, h.tick) for h in b.heard(Event.TRIP)] == [(Cause.STALE, 0.0, k)]


def test_never_arrived(bench):
    kinds = {"u.0": "hold", "u.1": "default", "u.2": "ramp"}
    tables = [wire_in(u, stale=how, default=-2.0) for u, how in kinds.items()]
    b = bench(config(*tables), pass_through(channels=3), last_tick=10)
    b.start()
    b.run()
    for u in kinds:
        assert (b.rows[u] == -2.0).all()
        assert (b.rows[f"age:{u}"] == math.inf).all()
    assert b.flagged(Flag.STALE).all()
    assert (b.rows["state"] == State.RUNNING).all()


def test_running_is_refused_while_an_input_would_trip(bench):
    b = bench(
        config(wire_in("u.1", stale="trip", stale_ms=FOREVER), channels=1), pass_through(channels=2), last_tick=20
    )
    b.at(0, Command.ARM)
    early = b.at(5, Command.RUN)
    b.run()
    assert (b.answers[early].index, b.answers[early].value) == (Answer.STALE_INPUT, 1.0)
    assert (b.rows["state"] == State.ARMED).all()


def test_running_is_allowed_once_the_device_has_delivered(bench):
    b = bench(config(wire_in(stale="trip", stale_ms=FOREVER)), pass_through(), last_tick=20)
    b.letter("dev", [1.0])
    b.at(0, Command.ARM)
    asked = b.at(5, Command.RUN)
    b.run()
    assert b.answers[asked].index == Answer.DONE
    assert (b.rows["state"][5:] == State.RUNNING).all()


def test_running_is_allowed_while_a_stimulus_stands_in(bench):
    b = bench(config(wire_in(stale="trip"), stimulus("constant", value=1.0, to_s=0.01)), pass_through(), last_tick=20)
    b.start()
    b.run()
    assert (b.rows["state"] == np.where(np.arange(20) < 10, State.RUNNING, State.TRIPPED)).all()
    assert b.heard(Event.TRIP)[0].index == Cause.STALE


def test_what_is_no_number_is_refused(bench):
    letters = {4: math.nan, 6: math.inf, 8: 2.0, 10: -math.inf, 12: 3.0}
    b = bench(config(wire_in(stale_ms=FOREVER, scale=10.0)), pass_through(), last_tick=20)
    stamps = [b.letter("dev", [1.0])]
    b.on_step(lambda n: stamps.append(b.letter("dev", [letters[n + 1]])) if n + 1 in letters else None)
    b.start()
    assert b.run() == Exit.ENDED
    k = np.arange(20)
    assert (b.rows["u.0"] == np.select([k < 8, k < 12], [10.0, 20.0], 30.0)).all()
    assert (b.flagged(Flag.INVALID) == (((k >= 4) & (k < 8)) | ((k >= 10) & (k < 12)))).all()
    assert [h.tick for h in b.heard(Event.INVALID)] == [4, 10]
    assert math.isnan(b.heard(Event.INVALID)[0].value)
    good = np.select([k < 8, k < 12], [stamps[0], stamps[3]], stamps[5])
    assert (b.rows["age:u.0"] == (b.rows["wake"] - good) * 1e-9).all()


def test_number_that_is_none_does_not_keep_an_input_fresh(bench):
    b = bench(config(wire_in(stale_ms=10, default=-2.0), node=REAL_TIME), pass_through(), last_tick=60)
    stamps: list[int] = []
    b.on_step(lambda n: stamps.append(b.letter("dev", [1.0 if n == 2 else math.nan])) if n >= 2 else None)
    b.start()
    b.run()
    age = b.rows["wake"][3:] - stamps[0]
    assert age[-1] > 20 * MS
    assert (b.rows["u.0"][3:] == np.where(age > 10 * MS, -2.0, 1.0)).all()
    assert b.flagged(Flag.INVALID)[4:].all()


def test_older_letter_does_not_replace_a_newer_one(bench):
    b = bench(config(wire_in(stale_ms=FOREVER)), pass_through(), last_tick=10)
    b.letter("dev", [1.0], age_s=0.1)
    b.on_step(lambda n: b.letter("dev", [9.0], age_s=5.0) and 0)
    b.start()
    b.run()
    assert (b.rows["u.0"] == 1.0).all()


def test_time_stamp_of_tomorrow_does_not_freeze_an_input(bench):
    b = bench(config(wire_in(stale_ms=FOREVER)), pass_through(), last_tick=20)
    b.letter("dev", [1.0], age_s=-86_400.0)
    b.on_step(lambda n: b.letter("dev", [2.0]) and 0 if n == 5 else 0)
    b.start()
    b.run()
    assert (b.rows["u.0"][10:] == 2.0).all()


def test_value_that_overflows_in_its_unit_is_refused(bench):
    b = bench(config(wire_in(stale_ms=FOREVER, scale=10.0)), pass_through(), last_tick=20)
    b.letter("dev", [1.0])
    b.on_step(lambda n: b.letter("dev", [1e308]) and 0 if n == 5 else 0)
    b.start()
    b.run()
    assert np.isfinite(b.rows["u.0"]).all()
    assert b.flagged(Flag.INVALID)[6]
