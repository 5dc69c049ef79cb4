"""What is asked for is checked whole before anything is done."""

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.operations import OPERATIONS, REQUIRED, Refused, Role, check

GOOD: dict[str, Any] = {
    "text": "pendulum.elbow.angle",
    "number": 0.5,
    "count": 3,
    "slot": 0,
    "table": {"a.b": 1.0},
    "tables": [{"signal": "a.b", "kind": "bias", "value": 1.0}],
}
BAD: dict[str, list[Any]] = {
    "text": [1, b"x", "x" * 201, ["x"], True],
    "number": ["0.5", math.nan, math.inf, True, [0.5], 2**63],
    "count": [0, -1, 1.0, True, "3", 10**10],
    "slot": [-1, 0.0, False, "0", 2**53],
    "table": [[], {"a": "b"}, {"a": math.nan}, {"a" * 300: 1.0}, {f"n{k}": 1.0 for k in range(1001)}],
    "tables": [{}, [1], [{"a": []}], [{"a": {"b": 1}}], [{}] * 1001],
}


def message(name: str) -> dict[str, Any]:
    """A request with all its fields."""
    return {"op": name, **{key: GOOD[field.type] for key, field in OPERATIONS[name].fields.items()}}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_taken_with_all_its_fields(name):
    operation, fields = check(message(name))
    assert operation.name == name
    assert fields == {key: GOOD[field.type] for key, field in OPERATIONS[name].fields.items()}


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [(o.name, key, bad) for o in OPERATIONS.values() for key, field in o.fields.items() for bad in BAD[field.type]],
)
def test_a_field_of_the_wrong_kind_is_refused(name, key, value):
    with pytest.raises(Refused, match=key) as refusal:
        check(message(name) | {key: value})
    assert refusal.value.reason == "malformed"


@pytest.mark.parametrize(
    ("name", "key"), [(o.name, k) for o in OPERATIONS.values() for k, f in o.fields.items() if f.default is REQUIRED]
)
def test_a_field_that_is_missing_is_named(name, key):
    asked = message(name)
    del asked[key]
    with pytest.raises(Refused, match=f"{key} is missing"):
        check(asked)


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS.values() if not o.open])
def test_a_field_too_many_is_refused(name):
    with pytest.raises(Refused, match="'force' is no field"):
        check(message(name) | {"force": 1.0})


def test_an_open_operation_takes_more_numbers_and_nothing_else():
    assert check(message("inject") | {"value": 0.1})[1]["value"] == 0.1
    with pytest.raises(Refused, match="finite number"):
        check(message("inject") | {"value": "0.1"})


def test_an_unknown_operation_gets_the_nearest_name():
    with pytest.raises(Refused, match="'force'") as refusal:
        check({"op": "forse"})
    assert refusal.value.reason == "unknown"


def test_whoever_may_only_watch_can_change_nothing():
    """The list of what a watcher may do is short and spelt out here, so that no operation slips into it."""
    watch = {o.name for o in OPERATIONS.values() if o.role == Role.WATCH}
    assert watch == {"hello", "schema", "scene", "terrain", "props", "clock", "status", "losses"}
    assert {o.name for o in OPERATIONS.values() if o.role == Role.ADMIN} == {"swap", "session", "stop"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(["name", "value", "signal", "kind", "to_s", "slot", "count", "x", "parameters"]), ANYTHING
    ),
    st.sampled_from(sorted(OPERATIONS)) | ANYTHING,
)
def test_nothing_else_than_a_refusal_comes_of_nonsense(fields, op):
    with contextlib.suppress(Refused):
        operation, checked = check({"op": op, **fields})
        assert set(checked) >= {k for k, f in operation.fields.items() if f.default is REQUIRED}
