"""Events: the loop stores (tick, code, index, value); here they become sentences, and lines in `events.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.codes import PLACE_BITS, PLACE_FURTHEST, Answer, Cause, Event
from hilnode.shared.row import Schema, State

ANSWERS = {
    Answer.DONE: "done",
    Answer.WRONG_STATE: "not possible now",
    Answer.STALE_INPUT: "an input has no fresh value",
    Answer.UNKNOWN: "no such thing",
    Answer.PLANT_FAILED: "the plant could not be reset",
}


@dataclass(frozen=True)
class Happening:
    """One event, decoded: a line of `events.jsonl`, a message on the wire."""

    tick: int
    time_ns: int
    code: Event
    index: int
    value: float
    ident: int
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """What goes into the log and over the wire."""
        value = self.value if np.isfinite(self.value) else None
        where = {"point": place_of(self.ident)} if self.code == Event.COLLISION else {}
        return {
            "tick": self.tick,
            "time_ns": self.time_ns,
            "event": self.code.name.lower(),
            "index": self.index,
            "value": value,
            "what": self.sentence,
            **where,
        }

    def as_json(self) -> str:
        return json.dumps(self.as_dict())


class EventDecoder:
    """Decodes the events of one node from rows of its event ring, with a sentence for people."""

    def __init__(
        self,
        schema: Schema,
        alarms: Sequence[str],
        explain_status: Callable[[int], str],
        drivers: Sequence[str] = (),
    ) -> None:
        self._schema = schema
        self._alarms = alarms
        self._explain = explain_status
        self._drivers = drivers

    def decode(self, words: NDArray[np.int64]) -> Happening:
        """The event in one row of the event ring."""
        tick, time_ns, code, index, _, ident = (int(w) for w in words)
        value = float(words[4:5].view(np.float64)[0])
        event = Event(code)
        return Happening(tick, time_ns, event, index, value, ident, self._sentence(event, index, value, ident))

    def _sentence(self, code: Event, index: int, value: float, ident: int) -> str:
        match code:
            case Event.STATE:
                return f"{State(int(value)).name.lower()} -> {State(index).name.lower()}"
            case Event.TRIP:
                return "tripped: " + self._cause(Cause(index), value)
            case Event.OVERRUN:
                return f"overrun: work ended {value * 1e6:.0f} us after the next deadline, {index} missed"
            case Event.STALE:
                age = f"{value * 1e3:.0f} ms old" if np.isfinite(value) else "has never arrived"
                return f"input {self._input(index)} is stale: {age}"
            case Event.FRESH:
                return f"input {self._input(index)} is fresh again"
            case Event.INVALID:
                return f"input {self._input(index)}: the device delivered {value}; the last good value is kept"
            case Event.ALARM:
                return f"alarm {self._alarms[index]}: value {value:g}"
            case Event.ALARM_OVER:
                return f"alarm {self._alarms[index]} is over: value {value:g}"
            case Event.COMMAND:
                return f"command: {ANSWERS[Answer(index)]}"
            case Event.HALT:
                return f"halt: work ended {value * 1e6:.0f} us after the next deadline and node.overrun is 'halt'"
            case Event.SWAP:
                which = "its twin" if value else "the device itself"
                name = self._drivers[index] if index < len(self._drivers) else f"number {index}"
                return f"driver {name}: {which} is in"
            case Event.COLLISION:
                one, other = (self._body(b) for b in divmod(index, len(self._schema.bodies) + 1))
                x, y, z = place_of(ident)
                return f"collision of {one} with {other} at ({x:.3f}, {y:.3f}, {z:.3f}) m: {value:.3g} N s"

    def _cause(self, cause: Cause, value: float) -> str:
        number = int(value) if np.isfinite(value) else 0
        match cause:
            case Cause.OPERATOR:
                return "asked for by the operator"
            case Cause.PLANT:
                return f"the plant gave up: {self._explain(number)}"
            case Cause.NOT_FINITE:
                return f"plant output {self._schema.outputs[number].name} is not a finite number"
            case Cause.STALE:
                return f"input {self._input(number)} went stale"
            case Cause.OVERRUNS:
                return f"{number} overruns since arming (node.max_overruns)"
            case Cause.ALARM:
                return f"alarm {self._alarms[number]}"
            case Cause.WATCHDOG:
                return "the watchdog had to make the devices safe"
            case Cause.DRIVER:
                return "a required driver went down"
            case Cause.WATCHDOG_LOST:
                return "the watchdog process died"
            case Cause.COMMAND_NOT_FINITE:
                return f"command {self._schema.commands[number].name} is not a finite number"

    def _input(self, index: int) -> str:
        return self._schema.inputs[index].name

    def _body(self, number: int) -> str:
        return self._schema.bodies[number - 1] if number else "the ground"


def place_of(ident: int) -> list[float]:
    """Where a collision was [m], from the id of its event."""
    mask = (1 << PLACE_BITS) - 1
    return [round(1e-3 * ((ident >> k * PLACE_BITS & mask) - PLACE_FURTHEST), 3) for k in (2, 1, 0)]
