"""Every event the loop can store becomes a sentence and a line of JSON."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest

from hilnode.core.signals import Signal
from hilnode.shared.codes import EVENT_WIDTH, Answer, Cause, Event
from hilnode.shared.events import EventDecoder, Happening
from hilnode.shared.row import Schema, State

SCHEMA = Schema(
    1_000_000,
    inputs=(Signal("arm.torque", "N*m"), Signal("arm.brake")),
    outputs=(Signal("arm.angle", "rad"), Signal("arm.speed", "rad/s")),
    commands=(Signal("valve.opening"),),
    bodies=("arm",),
)
ALARMS = ("too_fast", "too_hot")
DECODER = EventDecoder(SCHEMA, ALARMS, lambda status: f"status {status} explained", ("valve", "stick"))

SENTENCES: dict[Event, tuple[int, float, str]] = {
    Event.STATE: (State.RUNNING, float(State.ARMED), "armed -> running"),
    Event.TRIP: (Cause.STALE, 1.0, "tripped: input arm.brake went stale"),
    Event.OVERRUN: (2, 0.00125, "overrun: work ended 1250 us after the next deadline, 2 missed"),
    Event.STALE: (0, 0.25, "input arm.torque is stale: 250 ms old"),
    Event.FRESH: (1, 0.001, "input arm.brake is fresh again"),
    Event.INVALID: (0, math.nan, "input arm.torque: the device delivered nan; the last good value is kept"),
    Event.ALARM: (1, 81.5, "alarm too_hot: value 81.5"),
    Event.ALARM_OVER: (0, -2.0, "alarm too_fast is over: value -2"),
    Event.COMMAND: (Answer.WRONG_STATE, 0.0, "command: not possible now"),
    Event.HALT: (0, 0.0005, "halt: work ended 500 us after the next deadline and node.overrun is 'halt'"),
    Event.SWAP: (1, 1.0, "driver stick: its twin is in"),
    Event.COLLISION: (2, 12.5, "collision of arm with the ground at (-1048.575, -1048.575, -1048.575) m: 12.5 N s"),
}
CAUSES: dict[Cause, tuple[float, str]] = {
    Cause.OPERATOR: (0.0, "asked for by the operator"),
    Cause.PLANT: (-7.0, "the plant gave up: status -7 explained"),
    Cause.NOT_FINITE: (1.0, "plant output arm.speed is not a finite number"),
    Cause.STALE: (0.0, "input arm.torque went stale"),
    Cause.OVERRUNS: (12.0, "12 overruns since arming (node.max_overruns)"),
    Cause.ALARM: (1.0, "alarm too_hot"),
    Cause.WATCHDOG: (1.0, "the watchdog had to make the devices safe"),
    Cause.DRIVER: (0.0, "a required driver went down"),
    Cause.WATCHDOG_LOST: (0.0, "the watchdog process died"),
    Cause.COMMAND_NOT_FINITE: (0.0, "command valve.opening is not a finite number"),
}
ANSWERS = {
    Answer.DONE: "done",
    Answer.WRONG_STATE: "not possible now",
    Answer.STALE_INPUT: "an input has no fresh value",
    Answer.UNKNOWN: "no such thing",
    Answer.PLANT_FAILED: "the plant could not be reset",
}


def happening(
    code: int, index: int = 0, value: float = 0.0, tick: int = 5, time_ns: int = 7, ident: int = 0
) -> Happening:
    """Decoded from the six words as the loop stores them, packed here by hand."""
    words = np.frombuffer(struct.pack("<4qdq", tick, time_ns, code, index, value, ident), np.int64)
    assert words.size == EVENT_WIDTH
    return DECODER.decode(words)


def strictly(text: str) -> Any:
    """JSON as the standard has it: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_no_code_is_left_out_of_these_tables() -> None:
    assert set(SENTENCES) == set(Event)
    assert set(CAUSES) == set(Cause)
    assert set(ANSWERS) == set(Answer)


@pytest.mark.parametrize("code", Event)
def test_event(code: Event) -> None:
    index, value, sentence = SENTENCES[code]
    found = happening(code, index, value)
    assert found.sentence == sentence
    assert (found.code, found.index) == (code, index)
    assert found.value == value or math.isnan(value)


@pytest.mark.parametrize(
    ("index", "value", "sentence"),
    [(0, 0.0, "driver valve: the device itself is in"), (2, 1.0, "driver number 2: its twin is in")],
)
def test_swap(index: int, value: float, sentence: str) -> None:
    assert happening(Event.SWAP, index, value).sentence == sentence


@pytest.mark.parametrize("cause", Cause)
def test_cause(cause: Cause) -> None:
    value, sentence = CAUSES[cause]
    assert happening(Event.TRIP, cause, value).sentence == f"tripped: {sentence}"


@pytest.mark.parametrize("answer", Answer)
def test_answer(answer: Answer) -> None:
    found = happening(Event.COMMAND, answer, ident=41)
    assert found.sentence == f"command: {ANSWERS[answer]}"
    assert found.ident == 41


@pytest.mark.parametrize("new", State)
@pytest.mark.parametrize("old", State)
def test_change_of_state(old: State, new: State) -> None:
    assert happening(Event.STATE, new, float(old)).sentence == f"{old.name.lower()} -> {new.name.lower()}"


def test_an_input_that_never_came_has_no_age() -> None:
    assert happening(Event.STALE, 1, math.inf).sentence == "input arm.brake is stale: has never arrived"


def test_words_keep_all_their_bits() -> None:
    value = -1.2345678901234567e-300
    found = happening(Event.ALARM, 0, value, tick=2**62 + 1, time_ns=2**63 - 1, ident=-(2**63))
    assert (found.tick, found.time_ns, found.ident, found.value) == (2**62 + 1, 2**63 - 1, -(2**63), value)


def test_json_line() -> None:
    assert strictly(happening(Event.OVERRUN, 2, 0.00125, tick=99, time_ns=123456789).as_json()) == {
        "tick": 99,
        "time_ns": 123456789,
        "event": "overrun",
        "index": 2,
        "value": 0.00125,
        "what": "overrun: work ended 1250 us after the next deadline, 2 missed",
    }


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("code", [e for e in Event if e != Event.STATE])  # its value is a state
def test_json_has_no_infinity_and_no_nan(code: Event, value: float) -> None:
    found = happening(code, 0, value)
    line = found.as_json()
    assert "\n" not in line
    plain = strictly(line)
    assert plain["value"] is None
    assert plain["event"] == code.name.lower()
    assert plain["what"] == found.sentence
    assert found.sentence


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_cause_without_a_number_is_still_a_sentence(cause: Cause, value: float) -> None:
    assert strictly(happening(Event.TRIP, cause, value).as_json())["what"].startswith("tripped: ")


def test_a_code_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="99"):
        happening(99)
