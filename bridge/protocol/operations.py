"""The operations of the wire protocol: names, fields, and the role that each needs. Server, client and documentation
are made from this one list.

A request is a map `{"v": 1, "session": s, "seq": n, "id": i, "op": "force", "name": "...", "value": 0.4}`. The fields
of an operation are checked here, one by one, before anything is done: no field is converted, none that is not known
is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hilnode.core.signals import nearest

VERSION = 1
"""Of the protocol: a client with another one is told so and refused."""

LARGEST = 64 * 1024
"""[bytes] of a request."""

ENVELOPE = ("v", "session", "seq", "id", "op")
LONGEST_TEXT = 200
MOST_ENTRIES = 1000  # of a table in a request
REQUIRED = object()


class Role(IntEnum):
    """Each may do what those before it may."""

    WATCH = 1
    OPERATE = 2
    ADMIN = 3


class Refused(Exception):
    """A request that is not carried out; `reason` is one of REASONS, the message is for people."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


REASONS = ("malformed", "oversized", "replayed", "version", "unknown", "unauthorised", "unauthenticated", "refused")
"""Why requests are not carried out; the last one is the node's own answer."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `text`, `number`, `count` (1 or more), `slot`, `table` or `tables`."""

    type: str
    default: Any = REQUIRED
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `open` ones take whatever further fields there are: their kinds are checked by the node."""

    name: str
    role: Role
    doc: str
    fields: Mapping[str, Field]
    open: bool = False


def _operation(name: str, role: Role, doc: str, /, *, open: bool = False, **fields: Field) -> Operation:
    return Operation(name, role, doc, fields, open)


_NAME = Field("text", doc="a signal")
_UNTIL = Field("number", None, "simulated time at which it ends [s]")
_FAULT = Field("text", doc="bias, noise, drop, stuck, delay or quantise")
_WAVE = Field("text", doc="constant, ramp, step, sine, square, chirp or noise")

OPERATIONS = {
    o.name: o
    for o in (
        _operation("hello", Role.WATCH, "Begin: the answer has `session`, `role`, `node` and where to subscribe."),
        _operation("schema", Role.WATCH, "The layout of the raw rows, parameters included."),
        _operation("scene", Role.WATCH, "The shapes of the bodies."),
        _operation(
            "terrain", Role.WATCH, "The grids of the ground; with `grid`, whole tiles of one and where to go on.",
            grid=Field("text", None, "its name"), first=Field("slot", 0, "number of a tile"),
        ),
        _operation("props", Role.WATCH, "Where the bodies that rarely move are."),
        _operation("clock", Role.WATCH, "The node's clock now, to know how old a message is."),
        _operation("status", Role.WATCH, "State, tick, step, drivers, what is forced, stale or alarming; lost events."),
        _operation(
            "losses", Role.WATCH, "Tell how many messages never arrived here.", lost=Field("slot", doc="messages lost")
        ),
        _operation("arm", Role.OPERATE, "configured or cleared -> armed."),
        _operation("run", Role.OPERATE, "armed -> running: devices get live values."),
        _operation("pause", Role.OPERATE, "The plant stands still, the loop goes on."),
        _operation("resume", Role.OPERATE, "The plant moves again."),
        _operation(
            "step", Role.OPERATE, "Grant plant steps while paused or in lockstep.", count=Field("count", 1, "how many")
        ),
        _operation("trip", Role.OPERATE, "Devices to their safe values, now."),
        _operation("clear", Role.OPERATE, "tripped -> cleared."),
        _operation("disarm", Role.OPERATE, "Back to configured."),
        _operation("reset", Role.OPERATE, "The plant to its initial state; not while running."),
        _operation(
            "speed", Role.OPERATE, "Simulated seconds per second.", value=Field("number", doc="0.1 is slow motion")
        ),
        _operation(
            "set",
            Role.OPERATE,
            "A plant parameter within its limits; an input is forced.",
            name=Field("text", doc="a parameter or an input"),
            value=Field("number"),
        ),
        _operation("force", Role.OPERATE, "Impose a value on a signal.", name=_NAME, value=Field("number")),
        _operation(
            "release", Role.OPERATE, "Give a forced signal back, or all.", name=Field("text", None, "a signal")
        ),
        _operation(
            "inject", Role.OPERATE, "Make a signal go wrong; answers the slot.", open=True, signal=_NAME, kind=_FAULT,
            to_s=_UNTIL,
        ),
        _operation("heal", Role.OPERATE, "Take a fault away.", slot=Field("slot")),
        _operation(
            "stimulate", Role.OPERATE, "Drive an input by a wave; answers the slot.", open=True, signal=_NAME,
            kind=_WAVE, to_s=_UNTIL,
        ),
        _operation("calm", Role.OPERATE, "Take a stimulus away.", slot=Field("slot")),
        _operation(
            "rate", Role.OPERATE, "Rate of a topic, for all.", hz=Field("number", doc="messages per second"),
            topic=Field("text", "state", "state, timing, driver or ecu"),
        ),
        _operation(
            "seat", Role.OPERATE, "Put an ECU itself or its twin in: who may be an ECU may say so.",
            ecu=Field("text", doc="a driver of kind ecu"), to=Field("text", doc="real or twin"),
        ),
        _operation(
            "swap", Role.ADMIN, "Put a driver's twin or its device in.",
            driver=Field("text", doc="a driver"), to=Field("text", doc="real or twin"),
        ),
        _operation(
            "session", Role.ADMIN, "Everything at once: parameters, forces, faults, stimuli.",
            parameters=Field("table", None, "name to value"), forces=Field("table", None, "name to value"),
            faults=Field("tables", None, "as in [[signals.faults]]"),
            stimuli=Field("tables", None, "as in [[signals.stimulus]]"),
        ),
        _operation("stop", Role.ADMIN, "End the run, devices safe."),
    )
}  # fmt: skip


_TAKEN_OVER = ("hello", "schema", "scene", "terrain", "props", "clock", "status", "losses", "rate", "pause", "stop")

REPLAY_OPERATIONS = {
    **{name: OPERATIONS[name] for name in _TAKEN_OVER},
    **{
        o.name: o
        for o in (
            _operation("play", Role.OPERATE, "Go on from where it stands."),
            _operation("resume", Role.OPERATE, "The same, for clients that know nodes only."),
            _operation(
                "speed", Role.OPERATE, "Recorded seconds per second.",
                value=Field("number", doc="0.1 is slow motion, -1 is backwards"),
            ),
            _operation("seek", Role.OPERATE, "Go to a moment.", to=Field("number", doc="seconds since the first row")),
        )
    },
}  # fmt: skip
"""What a replay can be asked for; it has no plant and no devices, so nothing else makes sense."""


def check(
    message: Mapping[str, Any], operations: Mapping[str, Operation] = OPERATIONS
) -> tuple[Operation, dict[str, Any]]:
    """The operation and its fields, complete with defaults; Refused says what is wrong."""
    name = message.get("op")
    if not isinstance(name, str) or len(name) > LONGEST_TEXT:
        raise Refused("malformed", "op must be the name of an operation")
    operation = operations.get(name)
    if operation is None:
        raise Refused("unknown", f"no operation {name!r}: {nearest(name, list(operations))}")
    given = {k: v for k, v in message.items() if k not in ENVELOPE}
    fields = {}
    for key, field in operation.fields.items():
        value = given.pop(key, field.default)
        if value is REQUIRED:
            raise Refused("malformed", f"{name}: {key} is missing")
        fields[key] = None if value is None and field.default is None else _checked(f"{name}.{key}", field.type, value)
    if given and not operation.open:
        key = next(iter(given))
        raise Refused("malformed", f"{name}: {key!r} is no field of it: {nearest(str(key), list(operation.fields))}")
    fields |= {key: _checked(f"{name}.{key}", "number", value) for key, value in given.items()}
    return operation, fields


def _checked(where: str, kind: str, value: Any) -> Any:
    if kind == "text":
        good, wanted = isinstance(value, str) and len(value) <= LONGEST_TEXT, f"text of up to {LONGEST_TEXT} characters"
    elif kind == "number":
        good, wanted = _is_number(value), "a finite number"
    elif kind == "count":
        good, wanted = _is_whole(value) and 1 <= value <= 10**9, "a whole number from 1 to 1e9"
    elif kind == "slot":
        good, wanted = _is_whole(value) and 0 <= value < 2**53, "a whole number, 0 or more"
    elif kind == "table":
        good, wanted = _is_table(value), f"a table of up to {MOST_ENTRIES} names and numbers"
    else:
        good = isinstance(value, list) and len(value) <= MOST_ENTRIES and all(_is_mixed(v) for v in value)
        wanted = f"a list of up to {MOST_ENTRIES} tables of numbers and text"
    if not good:
        raise Refused("malformed", f"{where} must be {wanted}")
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or (_is_whole(value) and abs(value) < 2**63)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_ENTRIES
        and all(isinstance(k, str) and len(k) <= LONGEST_TEXT and _is_number(v) for k, v in value.items())
    )


def _is_mixed(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_ENTRIES
        and all(isinstance(k, str) and len(k) <= LONGEST_TEXT for k in value)
        and all(_is_number(v) or isinstance(v, bool) or (isinstance(v, str) and len(v) <= LONGEST_TEXT)
                for v in value.values())
    )  # fmt: skip


class NodeError(RuntimeError):
    """The node refused, or did not answer. `reason` is one of `bridge.protocol.operations.REASONS`, or "silent"."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason
