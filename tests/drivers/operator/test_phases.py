"""Phases: hands that look reach their goals, in the time they have, and let go of everything when they do not see."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.base import OptionError
from drivers.operator.phases import GO_KEYS, KEYS, NEXT_KEYS, PHASE_KEYS, UNTIL_KEYS, Phases

DT = 0.001  # [s]
SEES = {"boom": "rad", "stick": "rad", "fill": "1"}


def make(*phases: Mapping[str, Any], **more: Any) -> Phases:
    return Phases({"sees": SEES, "phases": list(phases), "ramp_s": 0.0, **more}, "hand")


def go(to: float, see: str = "boom", gain: float = 4.0, **more: float) -> dict[str, Any]:
    return {"see": see, "to": to, "gain": gain, **more}


class Machine:
    """Two joints that turn as fast as their sticks say, and a bucket that fills while a third is pulled."""

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self.seen: dict[str, float] = dict.fromkeys(SEES, 0.0)
        self.t = 0.0

    def step(self) -> dict[str, float]:
        sticks = self.phases.advance(DT, self.seen)
        for eye, channel, speed in (("boom", "right.y", 0.5), ("stick", "left.y", -0.7), ("fill", "pull", 0.25)):
            self.seen[eye] += DT * speed * sticks.get(channel, 0.0)
        self.t += DT
        return sticks

    def until(self, look: Callable[[], bool], at_most: float = 100.0) -> float:
        """Step until it is so; the time it took [s]."""
        began = self.t
        while not look():
            assert self.t - began < at_most, "in vain"
            self.step()
        return self.t - began


# -- one phase ----------------------------------------------------------------------------------------------------


def test_a_joint_is_led_to_its_goal_as_first_order_systems_are():
    """x' = v k (to - x): what is left of the error falls as exp(-v k t), once the stick is off its stop."""
    machine = Machine(make({"name": "lift", "go": {"right.y": go(0.4, gain=2.0, within=0.001)}}))
    took = machine.until(lambda: machine.phases.done)
    assert machine.seen["boom"] == pytest.approx(0.4, abs=0.0011)
    assert took == pytest.approx(math.log(0.4 / 0.001) / (0.5 * 2.0), rel=0.01)  # 0.8 at first: never at its stop


def test_a_gain_may_be_negative_and_a_stick_has_its_limits():
    phases = make({"name": "fold", "go": {"left.y": go(-1.9, "stick", gain=-4.0, most=0.8, within=0.03)}})
    machine = Machine(phases)
    assert machine.step() == {"left.y": 0.8}
    machine.until(lambda: phases.done)
    assert machine.seen["stick"] == pytest.approx(-1.9, abs=0.031)
    assert make({"name": "up", "go": {"a": go(9.0, most=7.0)}}).advance(DT, machine.seen) == {"a": 1.0}  # its range


def test_the_default_tolerance_is_where_the_stick_is_nearly_let_go():
    phases = make({"name": "lift", "go": {"right.y": go(1.0, most=0.8)}})
    assert phases.now.go["right.y"].within == pytest.approx(0.02)
    machine = Machine(phases)
    machine.until(lambda: phases.done)
    assert machine.seen["boom"] == pytest.approx(0.98, abs=0.001)


def test_several_go_and_the_last_one_decides():
    phases = make(
        {"name": "both", "go": {"right.y": go(0.2), "left.y": go(-1.0, "stick", gain=-4.0)}, "hold": {"brake": 1.0}},
        {"name": "rest", "for_s": 1.0},
    )
    machine = Machine(phases)
    near = machine.until(lambda: abs(machine.seen["boom"] - 0.2) < 0.02)
    done = machine.until(lambda: phases.number == 2)
    assert done > 0.5 > 0 < near
    assert machine.seen["boom"] == pytest.approx(0.2, abs=0.025)
    assert machine.seen["stick"] == pytest.approx(-1.0, abs=0.0251)


def test_what_is_not_named_is_let_go():
    channels = [{"name": "gear", "low": 1, "high": 3, "default": 1}, "x", "y"]
    phases = make(
        {"name": "a", "hold": {"gear": 3, "x": 0.5}, "for_s": DT},
        {"name": "b", "hold": {"y": -1}, "for_s": DT},
        channels=channels,
    )
    seen = dict.fromkeys(SEES, 0.0)
    assert phases.advance(0.0, seen) == {"gear": 3.0, "x": 0.5, "y": 0.0}
    assert phases.advance(DT, seen) == {"gear": 1.0, "x": 0.0, "y": -1.0}
    assert [s.name for s in phases.channels] == ["gear", "x", "y"]
    assert [(s.name, s.unit) for s in phases.eyes] == list(SEES.items())


def test_for_s_is_kept_to_the_step():
    phases = make({"name": "a", "hold": {"x": 1}, "for_s": 5.0}, {"name": "b", "for_s": 1.0})
    machine = Machine(phases)
    assert machine.until(lambda: phases.number == 2) == pytest.approx(5.0, abs=DT / 2)
    assert phases.elapsed == 0.0


def test_until_something_is_seen():
    phases = make(
        {"name": "fill", "hold": {"pull": 0.8}, "until": {"fill": {"above": 0.9}}},
        {"name": "empty", "hold": {"pull": -1.0}, "until": {"fill": {"below": 0.1, "above": -0.1}}, "for_s": 0.5},
    )
    machine = Machine(phases)
    assert machine.until(lambda: phases.number == 2) == pytest.approx(0.9 / 0.2, abs=3 * DT)
    assert machine.until(lambda: phases.done) == pytest.approx(0.8 / 0.25, abs=5 * DT)
    assert phases.timeouts == 0


def test_for_s_and_a_goal_must_both_be_had():
    phases = make({"name": "lift", "go": {"right.y": go(0.01)}, "for_s": 2.0})
    assert Machine(phases).until(lambda: phases.done) == pytest.approx(2.0, abs=DT / 2)


def test_a_phase_that_takes_too_long_is_counted_and_named():
    phases = make(
        {"name": "stuck", "hold": {"x": 1}, "until": {"fill": {"above": 0.9}}, "at_most_s": 1.5},
        {"name": "lift", "go": {"right.y": go(0.2)}, "at_most_s": 9.0},
        {"name": "stuck too", "until": {"fill": {"above": 0.9}}, "at_most_s": 0.5},
        loop_from="lift",
    )
    machine = Machine(phases)
    assert machine.until(lambda: phases.number == 2) == pytest.approx(1.5, abs=DT / 2)
    assert (phases.timeouts, phases.timed_out) == (1, "stuck")
    machine.until(lambda: phases.number == 3)
    assert (phases.timeouts, phases.timed_out) == (1, "stuck")
    machine.until(lambda: phases.cycle == 1)
    assert (phases.timeouts, phases.timed_out) == (2, "stuck too")


# -- ramps --------------------------------------------------------------------------------------------------------


def test_no_stick_crosses_its_range_faster_than_it_may():
    phases = make(
        {"name": "slow", "hold": {"x": 1.0}, "for_s": 3.0, "over_s": 4.0},
        {"name": "quick", "hold": {"x": -1.0, "wide": 4.0}, "for_s": 1.0},
        ramp_s=0.2,
        channels=["x", {"name": "wide", "low": -4.0, "high": 4.0}],
    )
    machine = Machine(phases)
    last, seen = {"x": 0.0, "wide": 0.0}, []
    while phases.cycle == 0:
        slow = phases.number == 1
        sticks = machine.step()
        slow = slow and phases.number == 1
        for name, span in (("x", 2.0), ("wide", 8.0)):
            assert abs(sticks[name] - last[name]) <= span * DT / (4.0 if slow else 0.2) * (1 + 1e-9)
        last = sticks
        seen.append((machine.t, sticks["x"]))
    assert min(t for t, x in seen if x >= 1.0) == pytest.approx(2.0, abs=2 * DT)  # half of the range in half of 4 s
    assert min(t for t, x in seen if x <= -1.0) == pytest.approx(3.2, abs=2 * DT)
    assert last == {"x": -1.0, "wide": 4.0}


def test_time_that_does_not_pass_moves_nothing():
    phases = make({"name": "a", "hold": {"x": 1.0}, "for_s": 1.0}, ramp_s=0.2)
    seen = dict.fromkeys(SEES, 0.0)
    for dt in (0.0, -1.0):
        assert phases.advance(dt, seen) == {"x": 0.0}
    assert phases.elapsed == 0.0


# -- one after another --------------------------------------------------------------------------------------------


CYCLE = (
    {"name": "anchor", "hold": {"brake": 1.0}, "for_s": 0.5},
    {"name": "lift", "go": {"right.y": go(0.5)}, "at_most_s": 9.0},
    {"name": "lower", "go": {"right.y": go(-0.5)}, "at_most_s": 9.0},
)


def test_the_loop_begins_where_it_is_told_to_and_does_not_drift():
    phases = make(*CYCLE, loop_from="lift")
    machine = Machine(phases)
    visited = []
    for wanted in range(1, 200):
        while phases.cycle < wanted:
            machine.step()
            if not visited or visited[-1] != phases.now.name:
                visited.append(phases.now.name)
        assert machine.seen["boom"] == pytest.approx(-0.475, abs=0.002)
    assert visited == ["anchor", *["lift", "lower"] * 199, "lift"]
    assert phases.timeouts == 0
    assert not phases.done


def test_a_goal_moves_on_each_time_round_and_begins_anew():
    """Three rounds with goals 0.5, 0.4 and 0.3, then 0.5 again; a goal without `next` stays."""
    lift = {"name": "lift", "go": {"right.y": go(0.5, within=0.001, next={"by": -0.1, "rounds": 3})}}
    phases = make(lift, {"name": "lower", "go": {"right.y": go(-0.2, within=0.001)}}, loop_from="lift")
    machine, tops, lows = Machine(phases), [], []
    for _ in range(7):
        machine.until(lambda: phases.now.name == "lower")
        tops.append(machine.seen["boom"])
        machine.until(lambda: phases.now.name == "lift")
        lows.append(machine.seen["boom"])
    assert tops == pytest.approx([0.5, 0.4, 0.3, 0.5, 0.4, 0.3, 0.5], abs=0.002)
    assert lows == pytest.approx([-0.2] * 7, abs=0.002)
    phases.reset()
    machine.until(lambda: phases.now.name == "lower")
    assert machine.seen["boom"] == pytest.approx(0.5, abs=0.002)


def test_without_a_loop_the_last_phase_goes_on():
    machine = Machine(make(*CYCLE))
    machine.until(lambda: machine.phases.done)
    for _ in range(5000):
        machine.step()
    assert (machine.phases.number, machine.phases.cycle) == (3, 1)
    assert machine.seen["boom"] == pytest.approx(-0.5, abs=0.001)  # still led
    park = Machine(make(*CYCLE, {"name": "park", "hold": {"brake": 1.0}}))
    park.until(lambda: park.phases.done)
    assert [park.step() for _ in range(9)] == [{"brake": 1.0, "right.y": 0.0}] * 9


def test_it_begins_again_when_reset():
    phases = make(*CYCLE, loop_from="lift")
    first = Machine(phases)
    rows = [first.step() for _ in range(5000)]
    phases.reset()
    again = Machine(phases)
    assert [again.step() for _ in range(5000)] == rows


# -- not seeing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [{}, {"boom": 0.0, "stick": 0.0}, {"boom": math.nan, "stick": 0.0, "fill": 0.0}])
def test_who_does_not_see_lets_go_and_goes_on_later(lost):
    phases = make(
        {"name": "a", "hold": {"x": 1.0}, "for_s": 1.0},
        {"name": "b", "go": {"y": go(5.0)}, "at_most_s": 1.0},
        ramp_s=0.2,
    )
    machine = Machine(phases)
    machine.until(lambda: machine.t >= 0.5)
    elapsed, seen = phases.elapsed, dict(lost)
    assert phases.advance(DT, seen)["x"] == pytest.approx(1.0 - 2.0 * DT / 0.2)  # not faster than a hand
    assert set(phases.blind) == set(SEES) - {eye for eye, value in lost.items() if math.isfinite(value)}
    for _ in range(3000):
        values = phases.advance(DT, seen)
    assert values == {"x": 0.0, "y": 0.0}
    assert (phases.number, phases.elapsed, phases.timeouts) == (1, elapsed, 0)
    machine.step()
    assert phases.blind == ()
    assert machine.until(lambda: phases.number == 2) == pytest.approx(0.5, abs=2 * DT)


def test_without_eyes_it_is_never_blind():
    phases = Phases({"phases": [{"name": "a", "hold": {"x": 1.0}, "for_s": 1.0}], "ramp_s": 0})
    assert phases.advance(DT, {}) == {"x": 1.0}
    assert phases.eyes == phases.blind == ()


# -- what is wrong ------------------------------------------------------------------------------------------------


GOOD: dict[str, Any] = {
    "sees": SEES,
    "loop_from": "dig",
    "ramp_s": 0.1,
    "phases": [
        {"name": "anchor", "hold": {"outriggers": -1.0}, "for_s": 5.0},
        {
            "name": "dig",
            "hold": {"parking": 1.0},
            "go": {
                "left.y": {
                    "see": "stick",
                    "to": -1.9,
                    "gain": 4.0,
                    "most": 0.8,
                    "within": 0.03,
                    "next": {"by": -0.1, "rounds": 3},
                }
            },
            "until": {"fill": {"above": 0.9}},
            "at_most_s": 8.0,
            "over_s": 0.3,
        },
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with something else in one place; None takes it away."""
    table = copy.deepcopy(GOOD)
    place: Any = table
    *way, last = path.split("/")
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if value is None:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return table


DIG = "phases/1"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("sees", [], r"drivers\.hand\.sees: must be a table such as \{ boom = \"rad\" \}"),
        ("sees/boom", 3, r"drivers\.hand\.sees\.boom = 3: must be a unit in quotes"),
        ("sees/Boom", "rad", r"drivers\.hand\.sees\.Boom = \"rad\": 'Boom' is no name of a channel"),
        ("ramp_s", -1, r"drivers\.hand\.ramp_s = -1: must be a number from 0 to 1e\+06"),
        ("lop_from", "dig", r"drivers\.hand\.lop_from = .*: is no key of phases: did you mean 'loop_from'\?"),
        ("loop_from", "dug", r"drivers\.hand\.loop_from = \"dug\": must be the name of a phase: did you mean 'dig'"),
        ("phases", [], r"drivers\.hand\.phases: must be a list of one phase or more"),
        ("phases", [{"name": "a", "for_s": 1}], r"drivers\.hand\.phases: move nothing"),
        ("phases/0", 3, r"drivers\.hand\.phases\[0\] = 3: must be a table such as"),
        ("phases/0/for_s", None, r"drivers\.hand\.phases\[0\]: is over before it began: .* \(phase 'anchor'\)"),
        ("phases/0/name", "dig", r"drivers\.hand\.phases\[1\]\.name = \"dig\": two phases have this name"),
        (f"{DIG}/name", " ", r"drivers\.hand\.phases\[1\]\.name = \" \": must be the phase's name"),
        (
            f"{DIG}/fro_s",
            1,
            r"phases\[1\]\.fro_s = 1: is no key of a phase: did you mean 'for_s'\? \(it has name,",
        ),
        (f"{DIG}/hold/parking", "on", r"phases\[1\]\.hold\.parking = \"on\": must be a finite number \(phase 'dig'\)"),
        (f"{DIG}/hold/parking", 10**400, r"phases\[1\]\.hold\.parking = \(a number of .*: must be a finite number"),
        (f"{DIG}/hold/parking", 2, r"hold\.parking = 2: must be from -1 to 1, the range of parking; channels"),
        (f"{DIG}/hold/left.y", 1.0, r"phases\[1\]\.go\.\"left\.y\": is in hold too"),
        (f"{DIG}/hold/cycle", 1.0, r"hold\.cycle = 1: 'cycle' tells how the operator is doing"),
        (f"{DIG}/hold/Left", 1.0, r"hold\.Left = 1: 'Left' is no name of a channel"),
        (f"{DIG}/go/left.y", 1.0, r"go\.\"left\.y\" = 1: must be a table such as \{ see = "),
        (f"{DIG}/go/left.y/gain", 0, r"go\.\"left\.y\"\.gain = 0: must not be zero"),
        (f"{DIG}/go/left.y/gain", None, r"go\.\"left\.y\": has no gain: \{ see = .* \(phase 'dig'\)"),
        (
            f"{DIG}/go/left.y/see",
            "bucket",
            r"go\.\"left\.y\"\.see = \"bucket\": must be one of sees: known: boom,",
        ),
        (f"{DIG}/go/left.y/sea", 1, r"sea = 1: is no key of go: did you mean 'see'\? \(it has see, to, gain, most"),
        (f"{DIG}/go/left.y/most", 0, r"most = 0: must be a number from 1e-09 to 1e\+09"),
        (f"{DIG}/go/left.y/next", 0.1, r"next = 0\.1: must be a table such as \{ by = -0\.2, rounds = 5 \}"),
        (
            f"{DIG}/go/left.y/next/rounds",
            1,
            r"next\.rounds = 1: must be a whole number from 2 to 1000000 \(phase 'dig'",
        ),
        (f"{DIG}/go/left.y/next/rounds", 2.5, r"next\.rounds = 2\.5: must be a whole number from 2"),
        (f"{DIG}/go/left.y/next/by", "far", r"next\.by = \"far\": must be a number from -1e\+09 to 1e\+09"),
        (f"{DIG}/go/left.y/next/by", None, r"go\.\"left\.y\"\.next: has no by: \{ by = -0\.2"),
        (f"{DIG}/go/left.y/next/of", 3, r"next\.of = 3: is no key of next: .*\(it has by, rounds\)"),
        ("loop_from", None, r"drivers\.hand\.loop_from: is missing: a goal has next"),
        (f"{DIG}/until/fil", {}, r"until\.fil: 'fil' is not one of sees: did you mean 'fill'"),
        (f"{DIG}/until/fill", {}, r"until\.fill: must have above or below"),
        (f"{DIG}/until/fill/abov", 1, r"abov = 1: is no key of until: did you mean 'above'\? \(it has above, below\)"),
        (f"{DIG}/until/fill/below", 0.5, r"until\.fill\.above = 0\.9: must be less than below = 0\.5"),
        (f"{DIG}/for_s", 9.0, r"phases\[1\]\.for_s = 9: must not be longer than at_most_s = 8"),
        (f"{DIG}/at_most_s", 0, r"at_most_s = 0: must be a number from 0\.001 to 1e\+06"),
        ("phases/0/at_most_s", 9, r"phases\[0\]\.at_most_s = 9: there is no go and no until that it could cut short"),
        ("channels", ["x"], r"hold\.outriggers = -1: 'outriggers' is not among the channels: known: x"),
        ("channels", ["phase"], r"drivers\.hand\.channels: 'phase' is one that every operator with phases has"),
        ("channels", [{"name": "x", "low": 0}], r"channels: 'x' needs both ends of its range"),
        ("channels", [{"name": "x", "default": 2}], r"channels: signal x: default 2 .* low and high change that"),
        ("channels", [{"name": "x", "high": 10**400}], r"drivers\.hand\.channels: "),
    ],
)
def test_what_is_wrong_is_told_with_phase_key_value_and_what_is_allowed(path, value, says):
    with pytest.raises(OptionError, match=says):
        Phases(changed(path, value), "hand")
    Phases(GOOD, "hand")


def test_a_loop_that_takes_no_time_is_refused():
    with pytest.raises(OptionError, match=r"phases\[1\]: is over before it began.*'b'"):
        make({"name": "a", "hold": {"x": 1}, "for_s": 1.0}, {"name": "b"}, loop_from="b")


def test_a_file_is_complained_about_by_line(tmp_path):
    file = tmp_path / "cycle.toml"
    text = 'sees = { boom = "rad" }\nphases = [\n  { name = "a", hold = { x = 1.0 }, for_s = 1.0 },\n]\n'
    file.write_text(text)
    assert [p.name for p in Phases.from_file(str(file)).phases] == ["a"]
    file.write_text(text.replace("for_s = 1.0", 'for_s = "1"'))
    with pytest.raises(OptionError, match=r"cycle\.toml:3: phases\[0\]\.for_s = \"1\": must be a number .*'a'"):
        Phases.from_file(str(file))


leaves = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), "boom", "x", "dig", "rad", "Ä", "", "\0", 0.5, 1, 2.0])
    | st.text(max_size=5)
)
keys = st.sampled_from(
    [*KEYS, *PHASE_KEYS, *GO_KEYS, *NEXT_KEYS, *UNTIL_KEYS, "boom", "x", "left.y", "unit", "low"]
) | st.text(max_size=5)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)


def places(table: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to every value in a table."""
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    return [found for key, value in items for found in [(*way, key), *places(value, (*way, key))]]


def check_taken_or_refused(table: Any) -> None:
    try:
        phases = Phases(table, "hand")
    except OptionError:
        return
    seen = {s.name: 0.0 for s in phases.eyes}
    for dt in (0.0, 0.1, 1e9):
        values = phases.advance(dt, seen)
        assert all(s.low <= values[s.name] <= s.high for s in phases.channels)


@settings(max_examples=300, deadline=None)
@given(anything)
def test_anything_is_refused_with_the_options_error(table):
    check_taken_or_refused(table)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(places(GOOD)), anything)
def test_a_good_table_with_anything_in_one_place_is_taken_or_refused(way, value):
    table = copy.deepcopy(GOOD)
    place: Any = table
    for part in way[:-1]:
        place = place[part]
    place[way[-1]] = value
    check_taken_or_refused(table)
