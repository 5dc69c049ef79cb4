"""The scope without a node: when it fires, which rows it keeps, how it draws and saves them."""

import csv
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.protocol.rows import Recording
from bridge.scope.braille import Canvas
from bridge.scope.capture import Capture, Shot, Stage
from bridge.scope.drawing import View, draw, scale
from bridge.scope.save import check_picture, lanes, save_csv, save_png
from bridge.scope.trigger import Trigger, TriggerError
from hilnode.core.signals import Signal, UnknownName
from hilnode.shared.row import Col, Schema, State

SCHEMA = Schema(1_000_000, (Signal("a.x", "m"),), (Signal("a.y", "N"),), (), ())


def row(tick: int, x: float, y: float = 0.0, state: State = State.RUNNING):
    words = np.zeros(SCHEMA.words, np.int64)
    words[Col.TICK], words[Col.STEP], words[Col.STATE] = tick, tick + 5, state
    values = words.view(float)
    values[SCHEMA.at_inputs], values[SCHEMA.at_outputs] = x, y
    return words


def capture(trigger: str | None, *, rows: int = 3, pre: int = 0) -> Capture:
    return Capture(SCHEMA, ["a.y", "a.x"], rows=rows, pre=pre, trigger=Trigger.parse(trigger) if trigger else None)


def fed(c: Capture, xs, first: int = 100) -> Capture:
    for k, x in enumerate(xs):
        c.feed(row(first + k, x))
    return c


# -- triggers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "signal", "how", "level"),
    [
        ("a.x>0.5", "a.x", ">", 0.5),
        ("  a.x   >=  -1e-3 ", "a.x", ">=", -1e-3),
        ("a.x rising 2", "a.x", "rising", 2.0),
        ("a.x falling -2.5", "a.x", "falling", -2.5),
        ("state==tripped", "state", "==", float(State.TRIPPED)),
        ("state != running", "state", "!=", float(State.RUNNING)),
    ],
)
def test_triggers_are_read(text, signal, how, level):
    trigger = Trigger.parse(text)
    assert (trigger.signal, trigger.how, trigger.level) == (signal, how, level)
    assert Trigger.parse(str(trigger)) == trigger


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.x", "write 'SIGNAL > 0.5'"),
        ("a.x >> 3", "write 'SIGNAL > 0.5'"),
        ("a.x > high", "'high' is not a number"),
        ("a.x arising 3", "write 'SIGNAL > 0.5'"),
        ("state > running", "compared with == or !="),
        ("state == happy", "configured, armed, running"),
    ],
)
def test_a_trigger_that_cannot_be_read_shows_one_that_can(text, said):
    with pytest.raises(TriggerError, match="trigger") as error:
        Trigger.parse(text)
    assert said in str(error.value)


def test_an_unknown_signal_is_named():
    with pytest.raises(UnknownName, match=r"a\.x"):
        Capture(SCHEMA, ["a.xx"], rows=1)
    with pytest.raises(UnknownName, match=r"a\.y"):
        capture("a.yy > 1")


# -- which rows --------------------------------------------------------------------------------------------------------


def test_the_first_row_that_fulfils_it_is_the_triggers_and_the_history_is_whole():
    c = fed(capture("a.x > 0.5", rows=4, pre=3), [0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.1, 0.9, 1.0])
    assert c.stage is Stage.DONE
    shot = c.shot()
    assert shot.recording["a.x"].tolist() == [0.2, 0.3, 0.5, 0.6, 0.7, 0.1, 0.9]
    assert shot.at == 3
    assert shot.recording.tick[shot.at] == 105
    assert shot.seconds == pytest.approx([-0.003, -0.002, -0.001, 0.0, 0.001, 0.002, 0.003])
    assert shot.recording.t == pytest.approx((shot.recording.tick + 5) * 1e-3)
    assert shot.recording.lost == 0


def test_a_level_that_is_met_already_waits_for_the_history():
    shot = fed(capture("a.x > 0", rows=1, pre=3), [1, 2, 3, 4, 5]).shot()
    assert shot.recording["a.x"].tolist() == [1, 2, 3, 4]
    assert shot.at == 3


def test_an_edge_needs_a_row_on_the_other_side():
    rises = fed(capture("a.x rising 1", rows=1, pre=2), [5, 5, 5, 1, 1.5, 2]).shot()
    assert rises.recording["a.x"].tolist() == [5, 1, 1.5]
    falls = fed(capture("a.x falling 1", rows=1), [0, 0, 1, 0.5]).shot()
    assert falls.recording["a.x"].tolist() == [0.5]
    assert fed(capture("a.x rising 1", rows=1), [5, 6, 7]).stage is Stage.WAITING


def test_an_edge_within_the_history_does_not_fire():
    c = fed(capture("a.x rising 1", rows=1, pre=4), [0, 2, 2, 2, 2, 0, 2])
    assert c.shot().recording.tick[c.shot().at] == 106


def test_nothing_that_is_no_number_fires():
    assert fed(capture("a.x > 0", rows=1), [math.nan, -1]).stage is Stage.WAITING
    rises = fed(capture("a.x rising 0", rows=1), [-1, math.nan, 1])
    assert rises.shot().recording.tick.tolist() == [102]


def test_a_trip_can_be_waited_for():
    c = capture("state == tripped", rows=2, pre=1)
    for k, state in enumerate([State.RUNNING, State.RUNNING, State.TRIPPED, State.TRIPPED]):
        c.feed(row(k, 0.0, state=state))
    assert c.stage is Stage.DONE
    assert c.shot().recording.tick.tolist() == [1, 2, 3]


def test_without_a_trigger_it_takes_what_comes():
    c = fed(capture(None, rows=2, pre=7), [4, 5, 6])
    assert c.shot().recording["a.x"].tolist() == [4, 5]
    assert c.shot().at == 0


def test_lost_rows_are_counted_and_a_new_run_begins_anew():
    c = capture("a.x > 1", rows=2, pre=2)
    for tick, x in [(10, 0), (12, 0), (13, 2), (17, 2)]:
        c.feed(row(tick, x))
    assert c.shot().recording.lost == 1 + 3
    again = fed(capture("a.x > 1", rows=2, pre=2), [0, 0, 2], first=100)
    assert again.stage is Stage.TAKING
    fed(again, [0, 0, 0, 3, 4], first=0)  # the node was started again
    assert again.shot().recording.tick.tolist() == [1, 2, 3, 4]


@settings(max_examples=60, deadline=None)
@given(
    xs=st.lists(st.sampled_from([-1.0, 0.0, 1.0, math.nan]), min_size=1, max_size=60),
    pre=st.integers(0, 8),
    rows=st.integers(1, 8),
    how=st.sampled_from([">", "<=", "rising", "falling"]),
)
def test_against_a_search_through_the_whole_list(xs, pre, rows, how):
    """The definition, written down once more without stages, rings and deques."""

    def is_it(k: int) -> bool:
        if how == ">":
            return xs[k] > 0
        if how == "<=":
            return xs[k] <= 0
        sign = 1 if how == "rising" else -1
        return k > 0 and sign * xs[k] > 0 and not sign * xs[k - 1] > 0

    at = next((k for k in range(pre, len(xs)) if is_it(k)), None)
    c = fed(capture(f"a.x {how} 0", rows=rows, pre=pre), xs, first=0)
    if at is None:
        assert c.stage in (Stage.FILLING, Stage.WAITING)
        return
    assert c.shot().recording.tick.tolist() == list(range(at - pre, min(at + rows, len(xs))))
    assert (c.stage is Stage.DONE) == (at + rows <= len(xs))


# -- drawing and saving ------------------------------------------------------------------------------------------------


def shot_of(x, *, at: int = 0, trigger: str = "") -> Shot:
    n = len(x)
    ticks = np.arange(n, dtype=np.int64)
    record = Recording(ticks * 1e-3, ticks, {"a.x": np.asarray(x, float), "a.y": np.zeros(n)}, 0)
    return Shot(record, {"a.x": "m", "a.y": "N"}, 1e-3, at, trigger)


def test_dots_are_those_of_the_braille_block_in_unicode():
    """Dots 1 2 3 7 go down on the left, 4 5 6 8 on the right."""
    canvas = Canvas(1, 1)
    canvas.curve(np.array([0.0]), np.array([1.0]), 0)  # upper left: dot 1
    canvas.curve(np.array([1.0]), np.array([0.0]), 0)  # lower right: dot 8
    assert canvas.lines() == ["\N{BRAILLE PATTERN DOTS-18}"]


def test_a_diagonal_has_no_gaps_and_a_spike_is_seen():
    canvas = Canvas(10, 5)
    canvas.curve(np.linspace(0, 1, 1000), np.linspace(0, 1, 1000), 3)
    cells = np.array([[c != "\N{BRAILLE PATTERN BLANK}" for c in line] for line in canvas.lines()])
    assert cells.any(axis=0).all()
    assert cells.any(axis=1).all()
    assert set(canvas.color[cells].tolist()) == {3}
    spike = np.zeros(10_000)
    spike[5000] = 1.0  # one row of ten thousand
    canvas = Canvas(10, 5)
    canvas.curve(np.linspace(0, 1, 10_000), spike, 0)
    assert canvas.lines()[0].strip("\N{BRAILLE PATTERN BLANK}")


def test_a_lane_for_each_unit_and_what_the_cursors_read():
    shot = shot_of(np.sin(np.arange(500) * 0.02), at=100, trigger="a.x rising 0.9")
    assert lanes(shot) == {"m": ["a.x"], "N": ["a.y"]}
    lines = [line.plain for line in draw(shot, 80, 24, View(0, 499, (100, 350)))]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0] == "a.x rising 0.9 at tick 100, 500 rows from t = 0.000 s"
    a, b = math.sin(2.0), math.sin(7.0)
    assert lines[-3] == f"━━ a.x [m]  A {a:.6g}  B {b:.6g}  B-A {b - a:.6g}"
    assert lines[-1] == "A 0 s  B 0.25 s  dt 0.25 s  1/dt 4 Hz"
    assert sum("│" in line for line in lines) >= 8  # cursors through both lanes; one of them hides the trigger


def test_odd_shots_are_drawn():
    assert draw(shot_of([]), 80, 24)[0].plain == "no rows yet"
    assert draw(shot_of([math.nan] * 5), 80, 24)
    assert draw(shot_of([1e300, -1e300]), 20, 5)
    assert scale(2.0, 2.0) == (1.0, 3.0)
    assert scale(0.0, 0.0) == (-0.5, 0.5)


def test_a_csv_has_every_bit(tmp_path):
    values = np.random.default_rng(3).normal(size=50)
    save_csv(shot_of(values, at=10, trigger="a.x > 0"), tmp_path / "shot.csv")
    with (tmp_path / "shot.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(r["a.x"]) for r in rows] == values.tolist()
    assert [int(r["tick"]) for r in rows] == list(range(50))
    assert float(rows[10]["since_trigger"]) == 0.0


def test_a_picture_is_a_picture(tmp_path):
    save_png(shot_of(np.arange(100.0), at=10, trigger="a.x > 9"), tmp_path / "shot.png")
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ValueError, match=r"write shot\.png"):
        check_picture(tmp_path / "shot.xyz")
