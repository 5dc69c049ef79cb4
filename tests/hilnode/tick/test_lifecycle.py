"""The node's life: what is allowed where, safe commands, trips within the tick, and no jump on the way back."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from hilnode.shared.codes import Answer, Cause, Command, Event
from hilnode.shared.control import Word
from hilnode.shared.row import Flag, State
from hilnode.tick.layout import Exit, L

from .bench import alarm, config, stimulus, wire_out
from .plants import BROKEN, counter, failing, losing, pass_through

CONFIGURED, ARMED, RUNNING, TRIPPED, CLEARED = list(State)[:5]
DONE, WRONG = Answer.DONE, Answer.WRONG_STATE

WAY = {
    CONFIGURED: [],
    ARMED: [Command.ARM],
    RUNNING: [Command.ARM, Command.RUN],
    TRIPPED: [Command.ARM, Command.RUN, Command.TRIP],
    CLEARED: [Command.ARM, Command.RUN, Command.TRIP, Command.CLEAR],
}
"""From CONFIGURED to each state."""

BACK = [Command.TRIP, Command.CLEAR, Command.DISARM]
"""From anywhere to CONFIGURED."""

ALLOWED = {
    (CONFIGURED, Command.ARM): ARMED,
    (CLEARED, Command.ARM): ARMED,
    (ARMED, Command.RUN): RUNNING,
    (TRIPPED, Command.CLEAR): CLEARED,
    (ARMED, Command.DISARM): CONFIGURED,
    (RUNNING, Command.DISARM): CONFIGURED,
    (CLEARED, Command.DISARM): CONFIGURED,
    **{(state, Command.TRIP): TRIPPED for state in WAY},
    **{(state, Command.RESET): state for state in WAY if state != RUNNING},
    **{(RUNNING, op): RUNNING for op in (Command.PAUSE, Command.RESUME)},  # a step is granted in a pause or in lockstep
    **{
        (state, op): state for state in WAY for op in (Command.FORCE, Command.RELEASE, Command.PARAMETER, Command.SPEED)
    },
    **{(state, op): state for state in WAY for op in (Command.STIMULUS, Command.FAULT, Command.SWAPPED)},
}
"""All that is allowed, and where it leads; everything else is refused and changes nothing."""


def test_every_command_in_every_state(bench):
    b = bench("[node]\nrate_hz = 5000", last_tick=3 * len(WAY) * len(Command))
    asked = {}
    for k, (state, op) in enumerate((s, o) for s in WAY for o in Command):
        for step in WAY[state]:
            b.at(3 * k, step)
        asked[state, op] = b.at(3 * k + 1, op, 0, [1.0]), 3 * k + 1
        for step in BACK:
            b.at(3 * k + 2, step)
    b.run()
    for (state, op), (ident, tick) in asked.items():
        assert b.rows["state"][tick - 1] == state, f"the way to {state.name} for {op.name}"
        wanted = (DONE, ALLOWED[state, op]) if (state, op) in ALLOWED else (WRONG, state)
        found = (Answer(b.answers[ident].index), State(b.rows["state"][tick]))
        assert found == wanted, f"{op.name} in {state.name}"
        assert b.answers[ident].tick == tick
        if wanted[0] == WRONG:
            assert b.answers[ident].value == state


@pytest.mark.parametrize("op", [max(Command) + 1, 99, 2**40])
def test_unknown_op_is_refused(bench, op):
    b = bench(config(), pass_through(), last_tick=3)
    asked = b.at(1, op)
    b.run()
    assert b.answers[asked].index == Answer.UNKNOWN


@pytest.mark.parametrize("op", [0, -1, -(2**40)])
def test_op_below_the_first_is_refused_as_unknown(bench, op):
    b = bench(config(), pass_through(), last_tick=3)
    asked = b.at(1, op)
    b.run()
    assert b.answers[asked].index == Answer.UNKNOWN


def test_states_are_told_in_order_and_to_the_control_block(bench):
    b = bench(config(), pass_through(), last_tick=12)
    seen = []
    b.on_step(lambda n: seen.append((b.control[Word.STATE], b.control.live)))
    for tick, op in (
        (1, Command.ARM),
        (2, Command.RUN),
        (4, Command.TRIP),
        (5, Command.CLEAR),
        (6, Command.ARM),
        (7, Command.RUN),
        (9, Command.DISARM),
    ):
        b.at(tick, op)
    assert b.run() == Exit.ENDED
    way = [CONFIGURED, ARMED, RUNNING, TRIPPED, CLEARED, ARMED, RUNNING, CONFIGURED, State.STOPPED]
    told = [(State(int(h.value)), State(h.index)) for h in b.heard(Event.STATE)]
    assert told == list(pairwise(way))
    assert [h.tick for h in b.heard(Event.STATE)] == [1, 2, 4, 5, 6, 7, 9, 12]
    assert seen == [(RUNNING, True)] * 4
    assert (b.control[Word.STATE], b.control[Word.LIVE]) == (State.STOPPED, 0)
    assert (b.control[Word.TICK], b.control[Word.STEP]) == (12, 4)
    assert (b.rows["tick"] == np.arange(12)).all()
    assert (b.flagged(Flag.PAUSED) == (b.rows["state"] != RUNNING)).all()


def test_commands_are_safe_outside_running(bench):
    b = bench(config(stimulus("constant", value=2.0), wire_out(safe=-3.0)), pass_through(), last_tick=40)
    letters = []
    b.on_step(lambda n: letters.append(b.outboxes["dev"].take()[1][0]))
    b.at(5, Command.ARM)
    b.at(10, Command.RUN)
    b.at(20, Command.TRIP)
    b.at(25, Command.CLEAR)
    b.at(30, Command.ARM)
    b.at(32, Command.RUN)
    b.at(36, Command.DISARM)
    b.run()
    assert (b.rows["dev.out.0"] == np.where(b.rows["state"] == RUNNING, 2.0, -3.0)).all()
    # during step n the mailbox holds what the tick before it sent
    before = b.rows["dev.out.0"][np.flatnonzero(b.rows["state"] == RUNNING) - 1]
    assert letters == before.tolist()
    number, values, stamps = b.outboxes["dev"].take()
    assert values[0] == -3.0  # the end makes safe once more
    assert number == 40 + 2  # every tick, the end, and the dry run
    assert stamps[0] == b.rows["wake"][-1]


TRIPS = {
    "status": (lambda: failing(at=[50]), (), Cause.PLANT, BROKEN),
    "not finite": (lambda: losing(at=[50]), (), Cause.NOT_FINITE, 0),
    "alarm": (pass_through, (alarm("y.0", above=49.5, action="trip"),), Cause.ALARM, 0),
}


@pytest.mark.parametrize("why", TRIPS)
def test_trip_shows_in_the_very_row(bench, why):
    plant, tables, cause, value = TRIPS[why]
    ramp = stimulus("ramp", slope=1000.0)
    b = bench(config(ramp, wire_out(safe=-3.0), *tables), plant(), last_tick=100)
    b.start()
    b.run()
    r = b.rows
    assert (r["state"] == np.where(np.arange(100) < 50, RUNNING, TRIPPED)).all()
    assert np.abs(r["dev.out.0"][:50] - np.arange(50)).max() < 1e-9
    assert (r["dev.out.0"][50:] == -3.0).all()
    assert r["status"].tolist() == [0] * 50 + [BROKEN if why == "status" else 0] + [0] * 49
    done = 50 if why == "status" else 51
    assert (r["step"] == np.minimum(np.arange(1, 101), done)).all()
    assert [(h.tick, h.index, h.value) for h in b.heard(Event.TRIP)] == [(50, cause, value)]
    # frozen from then on
    assert len(np.unique(r["y.0"][50:].view(np.int64))) == 1


def test_plants_own_sentence_is_told(bench):
    b = bench(config(), failing(at=[3]), last_tick=5)
    b.start()
    b.run()
    assert "broken on purpose" in b.heard(Event.TRIP)[0].sentence


def test_operators_trip_names_who_asked(bench):
    b = bench(config(), pass_through(), last_tick=20)
    b.start()
    b.at(5, Command.TRIP, Cause.DRIVER, [0.0])
    b.at(6, Command.TRIP, Cause.OPERATOR)  # tripped already: the first cause stays
    b.run()
    assert [(h.tick, h.index) for h in b.heard(Event.TRIP)] == [(5, Cause.DRIVER)]


def test_watchdog_that_fired_trips_and_is_excused_by_clear(bench):
    b = bench(config(), pass_through(), last_tick=60)
    b.on_step(lambda n: b.control.__setitem__(Word.FIRED, 1) if n == 9 else None)
    b.start()
    b.at(20, Command.CLEAR)
    b.start(30)
    b.run()
    assert [(h.tick, h.index, h.value) for h in b.heard(Event.TRIP)] == [(10, Cause.WATCHDOG, 1.0)]
    assert (b.rows["state"][30:] == RUNNING).all()
    assert b.control[Word.EXCUSED] == 1


def test_sound_plant_goes_on_where_it_stood(bench):
    b = bench(config(), counter(), last_tick=60)
    b.start()
    b.at(20, Command.TRIP)
    b.at(25, Command.CLEAR)
    b.start(30)
    b.run()
    expected = np.clip(np.arange(1, 61), None, 20) + np.clip(np.arange(60) - 29, 0, None)
    assert (b.rows["y.0"] == expected).all()
    assert (b.rows["step"] == expected).all()


def test_bad_plant_is_reset_at_arm_and_not_before(bench):
    b = bench(config(), failing(at=[7]), last_tick=60)
    b.start()
    b.at(20, Command.CLEAR)
    b.at(25, Command.ARM)
    b.at(30, Command.RUN)
    b.run()
    step = b.rows["step"]
    assert step[:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 7]
    assert (step[7:25] == 7).all()
    assert (step[25:30] == 0).all()
    assert step[30:38].tolist() == [1, 2, 3, 4, 5, 6, 7, 7]


def test_not_finite_output_is_gone_after_the_reset(bench):
    b = bench(config(stimulus("constant", value=2.0), wire_out()), losing(at=[7]), last_tick=14)
    b.start()
    b.at(10, Command.CLEAR)
    b.start(10)
    b.run()
    assert np.isnan(b.rows["y.0"][7:10]).all()
    assert (b.rows["y.0"][10:] == 2.0).all()
    assert np.isfinite(b.rows["dev.out.0"]).all()


def test_arm_is_refused_when_the_reset_fails(bench):
    b = bench(config(), failing(at=[5], reset_status=7), last_tick=20)
    b.start()
    b.at(8, Command.CLEAR)
    asked = b.at(9, Command.ARM)
    b.run()
    assert (b.answers[asked].index, b.answers[asked].value) == (Answer.PLANT_FAILED, 7.0)
    assert (b.rows["state"][9:] == CLEARED).all()


def test_reset_on_request(bench):
    b = bench(config(), counter(), last_tick=40)
    b.start()
    refused = b.at(5, Command.RESET)
    b.at(10, Command.DISARM)
    b.at(15, Command.RESET)
    b.start(20)
    b.run()
    assert b.answers[refused].index == Answer.WRONG_STATE
    k = np.arange(40)
    expected = np.select([k < 10, k < 15, k < 20], [k + 1, 10, 0], k - 19)
    assert (b.rows["y.0"] == expected).all()
    assert (b.rows["step"] == expected).all()


def test_outputs_leave_their_safe_values_evenly(bench):
    b = bench(
        config(stimulus("constant", value=10.0), wire_out(safe=-2.0), bumpless_ms=50), pass_through(), last_tick=200
    )
    b.start()
    b.at(90, Command.TRIP)
    b.at(95, Command.CLEAR)
    b.start(100)
    b.run()
    out = b.rows["dev.out.0"]
    rise = -2.0 + 12.0 * np.minimum(np.arange(1, 91) / 50, 1.0)
    assert np.abs(out[:90] - rise).max() < 1e-9
    assert (out[90:100] == -2.0).all()
    assert np.abs(out[100:190] - rise).max() < 1e-9


def test_interrupted_blend_begins_anew(bench):
    b = bench(config(stimulus("constant", value=10.0), wire_out(), bumpless_ms=50), pass_through(), last_tick=60)
    b.start()
    b.at(20, Command.DISARM)
    b.start(21)
    b.run()
    out = b.rows["dev.out.0"]
    assert out[20] == 0.0
    assert np.abs(out[21:50] - 0.2 * np.arange(1, 30)).max() < 1e-9


def test_rate_limit_starts_from_the_safe_value_again(bench):
    b = bench(
        config(stimulus("constant", value=10.0), wire_out(safe=-2.0, rate_limit=500.0)), pass_through(), last_tick=120
    )
    b.start()
    b.at(40, Command.TRIP)
    b.at(41, Command.CLEAR)
    b.start(42)
    b.run()
    out = b.rows["dev.out.0"]
    rise = np.minimum(-2.0 + 0.5 * np.arange(1, 41), 10.0)
    assert np.abs(out[:40] - rise).max() < 1e-9
    assert np.abs(out[42:82] - rise).max() < 1e-9


def test_blend_and_rate_limit_together_keep_the_rate(bench):
    b = bench(
        config(stimulus("constant", value=10.0), wire_out(rate_limit=100.0), bumpless_ms=50),
        pass_through(),
        last_tick=200,
    )
    b.start()
    b.run()
    assert np.abs(np.diff(b.rows["dev.out.0"])).max() <= 0.1 + 1e-9


def test_parameters_are_set_at_the_tick(bench):
    """The pendulum's energy is proportional to gravity when it is let go at rest."""
    b = bench(config(), last_tick=20)
    names = [p.name for p in b.plant.parameters]
    b.start()
    b.at(10, Command.PARAMETER, names.index("pendulum.gravity"), [0.0])
    bad = [b.at(12, Command.PARAMETER, index, [1.0]) for index in (-1, len(names), 2**40)]
    b.run()
    energy = b.rows["pendulum.energy"]
    assert np.ptp(energy[:10]) < 1e-6 * energy[0]
    assert energy[10] < 0.1 * energy[0]
    assert [b.answers[i].index for i in bad] == [Answer.UNKNOWN] * 3


def test_stop_makes_safe_and_says_so(bench):
    b = bench(config(stimulus("constant", value=2.0), wire_out(safe=-3.0)), pass_through(), last_tick=0)
    b.on_step(lambda n: b.control.__setitem__(Word.STOP, 1) if n == 24 else None)
    b.start()
    assert b.run() == Exit.STOPPED
    assert len(b.rows) == 25
    assert b.outboxes["dev"].take()[1][0] == -3.0
    assert b.heard(Event.STATE)[-1].index == State.STOPPED
    assert b.live(L.EXIT) == Exit.STOPPED


def test_flood_of_commands_is_taken_in_portions(bench):
    """Sixteen a tick and ring, in order, and none is lost."""
    b = bench(config(), pass_through(), last_tick=20)
    heard = []
    b.on_step(lambda n: [b.commands.send(Command.FORCE, 0, [float(k)]) for k in range(40)] and 0 if n == 4 else 0)
    b.start()
    b.run()
    heard = [h for h in b.answers.values() if h.ident > 2**32]
    assert [h.tick for h in heard] == [5] * 16 + [6] * 16 + [7] * 8
    assert [h.value for h in heard] == list(range(40))
    assert b.rows["u.0"][4:9].tolist() == [0.0, 15.0, 31.0, 39.0, 39.0]


@pytest.mark.parametrize("asked", [0.0, 0.5, -3.0, math.nan])
def test_step_of_less_than_one_is_refused(bench, asked):
    b = bench(config(), pass_through(), last_tick=20)
    b.start()
    b.at(5, Command.PAUSE)
    ident = b.at(10, Command.STEP, 0, [asked])
    b.run()
    assert b.answers[ident].index != Answer.DONE
    assert (b.rows["step"][5:] == 5).all()


@pytest.mark.parametrize("asked", [math.inf, 1e300])
def test_step_of_more_than_there_are_is_refused(bench, asked):
    b = bench(config(), pass_through(), last_tick=20)
    b.start()
    b.at(5, Command.PAUSE)
    ident = b.at(10, Command.STEP, 0, [asked])
    b.run()
    assert b.answers[ident].index != Answer.DONE
