"""The layout of a row and the schema that names it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilnode.core.signals import Signal, SignalError
from hilnode.shared.row import HEADER, POSE, Col, Flag, Schema, State

TORQUE, BRAKE = Signal("arm.torque", "N*m", low=-5.0, high=5.0, doc="At the shoulder."), Signal("arm.brake", low=0.0)
ANGLE, SPEED, HEAT = Signal("arm.angle", "rad"), Signal("arm.speed", "rad/s"), Signal("arm.heat", "K", 290.0, low=200.0)
VALVE = Signal("valve.opening", "", high=1.0)
SCHEMA = Schema(1_000_000, (TORQUE, BRAKE), (ANGLE, SPEED, HEAT), (VALVE,), ("base", "arm"))


def test_header_words_are_numbered_without_a_gap() -> None:
    assert [int(c) for c in Col] == list(range(12))
    assert HEADER == 12


def test_each_flag_is_a_bit_of_its_own() -> None:
    assert [int(f) for f in Flag] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert [int(s) for s in State] == [0, 1, 2, 3, 4, 5]


def test_offsets_counted_by_hand() -> None:
    s = SCHEMA
    assert (s.at_inputs, s.at_ages, s.at_outputs, s.at_commands, s.at_poses) == (12, 14, 16, 19, 20)
    assert s.words == 20 + 2 * 7
    assert POSE == 7


def test_a_node_without_anything_has_a_header_only() -> None:
    s = Schema(1000, (), (), (), ())
    assert (s.at_inputs, s.at_ages, s.at_outputs, s.at_commands, s.at_poses, s.words) == (12,) * 6


def test_signals_are_inputs_outputs_commands() -> None:
    assert SCHEMA.signals == (TORQUE, BRAKE, ANGLE, SPEED, HEAT, VALVE)


def test_the_description_names_every_word() -> None:
    d = SCHEMA.as_dict()
    assert d["dt_ns"] == 1_000_000
    assert d["words"] == 34
    assert d["offsets"] == {"inputs": 12, "ages": 14, "outputs": 16, "commands": 19, "poses": 20}
    assert d["header"] == [
        *("tick", "step", "deadline", "wake", "start", "end"),
        *("done", "period", "flags", "state", "status", "missed"),
    ]
    assert d["inputs"] == [
        {"name": "arm.torque", "unit": "N*m", "low": -5.0, "high": 5.0, "doc": "At the shoulder."},
        {"name": "arm.brake", "unit": "", "low": 0.0, "high": None, "doc": ""},
    ]
    assert [s["name"] for s in d["outputs"]] == ["arm.angle", "arm.speed", "arm.heat"]
    assert d["commands"][0]["low"] is None
    assert d["bodies"] == ["base", "arm"]


@pytest.mark.parametrize(
    "twice", [{"outputs": (TORQUE,)}, {"commands": (BRAKE,)}, {"inputs": (ANGLE,)}, {"commands": (VALVE, VALVE)}]
)
def test_one_name_stands_for_one_word(twice: dict[str, tuple[Signal, ...]]) -> None:
    with pytest.raises(SignalError, match="row: two signals are called"):
        replace(SCHEMA, **twice)  # type: ignore[arg-type]


def through_json(schema: Schema) -> Schema:
    return Schema.from_dict(json.loads(json.dumps(schema.as_dict(), allow_nan=False)))


def test_there_and_back_through_json() -> None:
    back = through_json(SCHEMA)
    assert back.as_dict() == SCHEMA.as_dict()
    assert back.hash == SCHEMA.hash
    assert (back.at_poses, back.words, back.bodies) == (20, 34, ("base", "arm"))
    assert [(s.name, s.unit, s.low, s.high, s.doc) for s in back.inputs] == [
        ("arm.torque", "N*m", -5.0, 5.0, "At the shoulder."),
        ("arm.brake", "", 0.0, math.inf, ""),
    ]
    assert [s.low for s in back.commands] == [-math.inf]
    assert back.outputs[2].default == 200.0  # nearest to zero: the wire does not carry it


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,4}(\.[a-z0-9][a-z0-9_]{0,4}){0,2}", fullmatch=True)
EDGES = st.none() | st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: x + 0.0)  # not -0.0, which equals 0.0


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    made = []
    for name in draw(st.lists(NAMES, unique=True, max_size=6)):
        low, high = draw(EDGES), draw(EDGES)
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        low, high = min(low, high), max(low, high)
        default = min(max(0.0, low), high)
        made.append(Signal(name, draw(st.text(max_size=4)), default, low, high, doc=draw(st.text(max_size=8))))
    a, b = sorted(draw(st.tuples(st.integers(0, len(made)), st.integers(0, len(made)))))
    bodies = tuple(draw(st.lists(st.text(max_size=5), max_size=3)))
    return Schema(draw(st.integers(1, 10**12)), tuple(made[:a]), tuple(made[a:b]), tuple(made[b:]), bodies)


@settings(max_examples=50, deadline=None)
@given(schemas())
def test_any_schema_there_and_back(schema: Schema) -> None:
    assert through_json(schema) == schema
    assert through_json(schema).hash == schema.hash
    assert 0 <= schema.hash < 2**63  # fits in the word of a shared-memory header


@settings(max_examples=50, deadline=None)
@given(schemas(), schemas())
def test_two_schemas_two_hashes(one: Schema, other: Schema) -> None:
    assert (one.hash == other.hash) == (one == other)


def test_the_hash_is_that_of_the_sorted_json() -> None:
    text = (
        '{"bodies": ["b"], "commands": [], "dt_ns": 500, "header": ["tick", "step", "deadline", "wake", "start", '
        '"end", "done", "period", "flags", "state", "status", "missed"], "inputs": [{"doc": "", "high": null, '
        '"low": -1.5, "name": "x", "unit": "m"}], "offsets": {"ages": 13, "commands": 14, "inputs": 12, '
        '"outputs": 14, "poses": 14}, "outputs": [], "version": 1, "words": 21}'
    )
    first_8_bytes = int(hashlib.sha256(text.encode()).hexdigest()[:16], 16)
    assert Schema(500, (Signal("x", "m", low=-1.5),), (), (), ("b",)).hash == first_8_bytes // 2


CHANGES: dict[str, Callable[[Schema], Schema]] = {
    "an input's name": lambda s: replace(s, inputs=(replace(TORQUE, name="arm.torq"), BRAKE)),
    "an output's name": lambda s: replace(s, outputs=(ANGLE, replace(SPEED, name="arm.rate"), HEAT)),
    "a command's name": lambda s: replace(s, commands=(replace(VALVE, name="valve.open"),)),
    "a body's name": lambda s: replace(s, bodies=("base", "boom")),
    "an input's unit": lambda s: replace(s, inputs=(replace(TORQUE, unit="kN*m"), BRAKE)),
    "an output's unit": lambda s: replace(s, outputs=(replace(ANGLE, unit="deg"), SPEED, HEAT)),
    "a command's unit": lambda s: replace(s, commands=(replace(VALVE, unit="V"),)),
    "the order of inputs": lambda s: replace(s, inputs=(BRAKE, TORQUE)),
    "the order of outputs": lambda s: replace(s, outputs=(ANGLE, HEAT, SPEED)),
    "the order of bodies": lambda s: replace(s, bodies=("arm", "base")),
    "a signal's side": lambda s: replace(s, outputs=(ANGLE, SPEED), commands=(HEAT, VALVE)),
    "one signal less": lambda s: replace(s, inputs=(TORQUE,)),
    "one body less": lambda s: replace(s, bodies=("base",)),
    "a lower limit": lambda s: replace(s, inputs=(replace(TORQUE, low=-6.0), BRAKE)),
    "an upper limit": lambda s: replace(s, inputs=(replace(TORQUE, high=math.inf), BRAKE)),
    "the step": lambda s: replace(s, dt_ns=999_999),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_hash_changes_with(what: str) -> None:
    changed = CHANGES[what](SCHEMA)
    assert changed.hash != SCHEMA.hash
    assert through_json(changed).hash == changed.hash
