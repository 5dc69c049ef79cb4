"""Names, ranges and safe values of signals."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilnode.core.signals import Signal, SignalError, check_unique, nearest


@pytest.mark.parametrize("name", ["x", "arm", "arm.angle", "excavator.boom.angle", "a_1.2nd.b_", "a0"])
def test_a_good_name(name: str) -> None:
    assert Signal(name).name == name


@pytest.mark.parametrize(
    "name", ["", ".", "Arm", "arm.Angle", "1st", "_a", "a..b", "a.", ".a", "a b", "a-b", "a._b", "ärm", "a\n", "a.b\n"]
)
def test_a_bad_name(name: str) -> None:
    with pytest.raises(SignalError) as caught:
        Signal(name)
    assert repr(name) in str(caught.value)
    assert "such as 'excavator.boom.angle'" in str(caught.value)


def test_what_is_not_given() -> None:
    s = Signal("x")
    assert (s.unit, s.default, s.low, s.high, s.safe, s.doc) == ("", 0.0, -math.inf, math.inf, 0.0, "")


def test_the_safe_value_is_the_default_unless_given() -> None:
    assert Signal("x", default=3.0).safe == 3.0
    assert Signal("x", default=3.0, safe=-1.0).safe == -1.0
    assert Signal("x", default=3.0, safe=0.0).safe == 0.0


def test_a_signal_is_not_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Signal("x").low = 1.0  # type: ignore[misc]


def test_the_borders_belong_to_the_range() -> None:
    s = Signal("x", default=-1.0, low=-1.0, high=2.0, safe=2.0)
    assert (s.default, s.safe) == (-1.0, 2.0)
    assert Signal("x", default=5.0, low=5.0, high=5.0).safe == 5.0


@pytest.mark.parametrize(("low", "high"), [(1.0, -1.0), (math.inf, -math.inf), (math.nan, 1.0), (0.0, math.nan)])
def test_an_empty_range(low: float, high: float) -> None:
    with pytest.raises(SignalError) as caught:
        Signal("arm.angle", low=low, high=high)
    assert str(caught.value) == f"signal arm.angle: its range [{low}, {high}] is empty"


@pytest.mark.parametrize("value", [-1.001, 2.001, math.inf, -math.inf, math.nan])
def test_a_default_outside_the_range(value: float) -> None:
    with pytest.raises(SignalError) as caught:
        Signal("arm.angle", default=value, low=-1.0, high=2.0)
    assert str(caught.value) == f"signal arm.angle: default {value} must be a finite number in [-1.0, 2.0]"


@pytest.mark.parametrize("value", [-1.001, 2.001, math.inf, -math.inf])
def test_a_safe_value_outside_the_range(value: float) -> None:
    with pytest.raises(SignalError) as caught:
        Signal("arm.angle", low=-1.0, high=2.0, safe=value)
    assert str(caught.value) == f"signal arm.angle: safe value {value} must be a finite number in [-1.0, 2.0]"


FLOATS = st.floats(allow_nan=True)


@given(FLOATS, FLOATS, FLOATS, FLOATS)
def test_what_was_made_is_within_its_range(default: float, low: float, high: float, safe: float) -> None:
    expected = default if math.isnan(safe) else safe
    finite = math.isfinite(default) and math.isfinite(expected)
    good = finite and low <= default <= high and low <= expected <= high
    try:
        made = Signal("x", "", default, low, high, safe)
    except SignalError:
        assert not good
    else:
        assert good
        assert made.safe == expected


def test_two_signals_of_one_name() -> None:
    check_unique([Signal("a"), Signal("b"), Signal("a.b")], "plant outputs")
    check_unique([], "plant outputs")
    with pytest.raises(SignalError) as caught:
        check_unique(iter([Signal("a"), Signal("b"), Signal("a", "m")]), "plant outputs")
    assert str(caught.value) == "plant outputs: two signals are called 'a'"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("angel", ["angle", "speed"], "did you mean 'angle'?"),
        ("arm.angl", ["arm.angle", "arm.angles", "zzz"], "did you mean 'arm.angle' or 'arm.angles'?"),
        ("q", ["b", "c", "a"], "known: a, b, c"),
        ("q", [], "there are none"),
        ("q", [f"n{i:02}" for i in range(12)], "known: " + ", ".join(f"n{i:02}" for i in range(12))),
        ("q", [f"n{i:02}" for i in range(15)], "known: " + ", ".join(f"n{i:02}" for i in range(12)) + " and 3 more"),
    ],
)
def test_nearest(name: str, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint


def test_nearest_gives_no_more_than_asked_for() -> None:
    known = ["angle1", "angle2", "angle3", "angle4"]
    assert nearest("angle", known).count("angle") == 3
    assert nearest("angle", known, most=1).count("angle") == 1
