"""Alarms: when they begin, when they end, and what they do to the node and its commands."""

from __future__ import annotations

import numpy as np
import pytest

from hilnode.shared.codes import Cause, Command, Event
from hilnode.shared.row import State

from .bench import alarm, config, fault, stimulus, wire_out
from .plants import pass_through

DT = 1e-3
SINE = stimulus("sine", amplitude=2.0, frequency_hz=5.0)
X = 2.0 * np.sin(2 * np.pi * 5.0 * DT * np.arange(600))


def edges(outside: np.ndarray, need: int = 0) -> tuple[list[int], list[int]]:
    """Ticks at which an alarm begins and ends, given the ticks outside its limits and how long it waits."""
    begin, end, run, on = [], [], 0, False
    for k, bad in enumerate(outside):
        run = run + 1 if bad else 0
        if run == need + 1:
            begin.append(k)
            on = True
        if not bad and on:
            end.append(k)
            on = False
    return begin, end


@pytest.mark.parametrize(
    ("limit", "outside"),
    [
        ({"above": 1.5}, X > 1.5),
        ({"below": -1.5}, X < -1.5),
        ({"outside": [-1.0, 1.9]}, (X < -1.0) | (X > 1.9)),
    ],
)
@pytest.mark.parametrize("need", [0, 3, 30])
def test_log_tells_when_it_begins_and_ends(bench, limit, outside, need):
    b = bench(config(SINE, alarm("u.0", name="far", for_ms=need, **limit)), pass_through(), last_tick=600)
    b.start()
    b.run()
    begin, end = edges(outside, need)
    assert begin  # there is something to see
    assert [h.tick for h in b.heard(Event.ALARM)] == begin
    assert [h.tick for h in b.heard(Event.ALARM_OVER)] == end
    assert np.allclose([h.value for h in b.heard(Event.ALARM)], X[begin], atol=1e-9)
    assert "far" in b.heard(Event.ALARM)[0].sentence
    assert (b.rows["state"] == State.RUNNING).all()


def test_span_that_is_not_a_whole_number_of_ticks_is_rounded_up(bench):
    b = bench(
        config(stimulus("step", after=1.0, at_s=0.01), alarm("u.0", above=0.5, for_ms=2.5)),
        pass_through(),
        last_tick=30,
    )
    b.start()
    b.run()
    assert [h.tick for h in b.heard(Event.ALARM)] == [13]  # 10 ms + 2.5 ms


def test_break_starts_the_wait_again(bench):
    wave = stimulus("square", amplitude=1.0, frequency_hz=100.0)  # five ticks high, five low
    quiet = bench(config(wave, alarm("u.0", above=0.5, for_ms=5)), pass_through(), last_tick=100)
    quiet.start()
    quiet.run()
    assert quiet.heard(Event.ALARM) == []
    heard = bench(config(wave, alarm("u.0", above=0.5, for_ms=4)), pass_through(), last_tick=100)
    heard.start()
    heard.run()
    assert [h.tick for h in heard.heard(Event.ALARM)][:3] == [4, 14, 24]


def test_it_watches_what_the_world_sees(bench):
    b = bench(
        config(
            stimulus("constant", value=1.0),
            fault("bias", "y.0", value=5.0, from_s=0.05),
            alarm("y.0", above=3.0, name="spoilt"),
            alarm("u.0", above=3.0, name="true"),
        ),
        pass_through(),
        last_tick=100,
    )
    b.start()
    b.run()
    assert [(h.tick, h.index) for h in b.heard(Event.ALARM)] == [(49, 0)]  # row 49 is the time 50 ms


def test_set_holds_the_command_and_lets_it_go(bench):
    b = bench(
        config(SINE, wire_out(), alarm("y.0", above=1.5, action="set", set="dev.out.0", value=-8.0)),
        pass_through(),
        last_tick=600,
    )
    b.start()
    b.run()
    assert np.abs(b.rows["dev.out.0"] - np.where(X > 1.5, -8.0, X)).max() < 1e-9


def test_held_command_returns_at_its_rate(bench):
    wave = stimulus("square", amplitude=1.0, frequency_hz=5.0)  # 100 ticks high, 100 low
    b = bench(
        config(wave, wire_out(rate_limit=100.0), alarm("y.0", above=0.5, action="set", set="dev.out.0", value=-6.0)),
        pass_through(),
        last_tick=200,
    )
    b.start()
    b.run()
    assert (b.rows["dev.out.0"][:100] == -6.0).all()
    back = np.minimum(-6.0 + 0.1 * np.arange(1, 101), -1.0)
    assert np.abs(b.rows["dev.out.0"][100:] - back).max() < 1e-9


def test_two_alarms_on_one_command(bench):
    """The later one in the file has the say; when one ends the other still holds."""
    for first, second in ((1.0, 1.5), (1.5, 1.0)):
        b = bench(
            config(
                SINE,
                wire_out(),
                alarm("y.0", above=first, action="set", set="dev.out.0", value=-8.0),
                alarm("y.0", above=second, action="set", set="dev.out.0", value=-9.0),
            ),
            pass_through(),
            last_tick=600,
        )
        b.start()
        b.run()
        expected = np.where(second < X, -9.0, np.where(first < X, -8.0, X))
        assert np.abs(b.rows["dev.out.0"] - expected).max() < 1e-9


def test_trip_waits_its_time(bench):
    b = bench(
        config(stimulus("step", after=1.0, at_s=0.05), alarm("u.0", above=0.5, for_ms=20, action="trip", name="far")),
        pass_through(),
        last_tick=200,
    )
    b.start()
    b.run()
    assert [(h.tick, h.index, h.value) for h in b.heard(Event.TRIP)] == [(70, Cause.ALARM, 0.0)]
    assert "far" in b.heard(Event.TRIP)[0].sentence


def test_alarm_that_stands_trips_as_soon_as_the_node_runs(bench):
    b = bench(
        config(stimulus("constant", value=1.0), wire_out(safe=-3.0), alarm("u.0", above=0.5, action="trip")),
        pass_through(),
        last_tick=30,
    )
    b.at(5, Command.ARM)
    b.at(10, Command.RUN)
    b.run()
    assert [h.tick for h in b.heard(Event.ALARM)] == [0]  # written down from the beginning, acted on while running
    assert [h.tick for h in b.heard(Event.TRIP)] == [10]
    assert (b.rows["dev.out.0"] == -3.0).all()


def test_alarm_that_ends_while_tripped_lets_the_command_go(bench):
    b = bench(
        config(
            stimulus("constant", value=1.0),
            wire_out(safe=-3.0),
            alarm("u.0", above=3.0, action="set", set="dev.out.0", value=-8.0),
        ),
        pass_through(),
        last_tick=60,
    )
    b.start()
    b.at(10, Command.FORCE, "u.0", [5.0])
    b.at(20, Command.TRIP)
    b.at(30, Command.RELEASE, "u.0")
    b.at(40, Command.CLEAR)
    b.start(50)
    b.run()
    assert (b.rows["dev.out.0"] == np.repeat([1.0, -8.0, -3.0, -3.0, -3.0, 1.0], 10)).all()
    assert [h.tick for h in b.heard(Event.ALARM_OVER)] == [30]


def test_alarm_that_stands_through_a_trip_holds_again(bench):
    b = bench(
        config(
            stimulus("constant", value=5.0),
            wire_out(safe=-3.0),
            alarm("u.0", above=3.0, action="set", set="dev.out.0", value=-8.0),
            bumpless_ms=5,
        ),
        pass_through(),
        last_tick=30,
    )
    b.start()
    b.at(10, Command.TRIP)
    b.at(11, Command.CLEAR)
    b.start(20)
    b.run()
    assert (b.rows["dev.out.0"] == np.repeat([-8.0, -3.0, -8.0], 10)).all()
    assert len(b.heard(Event.ALARM)) == 1
