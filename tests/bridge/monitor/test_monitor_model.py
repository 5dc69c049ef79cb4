"""What the monitor makes of messages, without a screen: values, curves, histogram, losses."""

import math

import msgpack
import numpy as np
import pytest

from bridge.monitor.dialogs import checked
from bridge.monitor.histogram import BUCKETS, Histogram, axis, bars
from bridge.monitor.history import BLOCKS, MIDDLE, History, limits, number, sparkline
from bridge.monitor.model import SILENCE, Model
from bridge.protocol.messages import WAKE_EDGES_US, Packer, timing_of
from hilnode.core.signals import Signal
from hilnode.shared.row import Col, Flag, Schema, State

SCHEMA = Schema(1_000_000, (Signal("cart.force", "N", low=-9.0, high=9.0),), (Signal("cart.position", "m"),), (), ())


def row(tick: int, force: float = 0.0, position: float = 0.0, *, flags: int = 0, late_us: float = 20.0):
    words = np.zeros(SCHEMA.words, np.int64)
    words[Col.TICK], words[Col.STATE], words[Col.FLAGS] = tick, State.RUNNING, flags
    words[Col.DEADLINE] = tick * 1_000_000
    words[Col.WAKE] = words[Col.DEADLINE] + round(late_us * 1e3)
    values = words.view(float)
    values[SCHEMA.at_inputs], values[SCHEMA.at_outputs] = force, position
    return words


def sent(frames: list[bytes]) -> tuple[str, bytes]:
    return frames[0].decode(), frames[1]


class Wire:
    """A publisher's packer, and what it has sent since the last look."""

    def __init__(self) -> None:
        self.packer = Packer(SCHEMA, "bench")

    def states(self, *rows):
        return [sent(self.packer.state(r)) for r in rows]


@pytest.fixture
def model() -> Model:
    made = Model()
    made.describe(f"{SCHEMA.hash:016x}", SCHEMA)
    return made


# -- rings and curves --------------------------------------------------------------------------------------------------


def test_a_history_keeps_the_newest_in_order():
    history = History(2, 5)
    for k in range(8):
        history.put([k, -k])
    assert history.of(0).tolist() == [3, 4, 5, 6, 7]
    assert history.of(1).tolist() == [-3, -4, -5, -6, -7]


def test_a_history_that_is_not_full_is_empty_on_the_left():
    history = History(1, 4)
    history.put([1.0])
    assert np.isnan(history.of(0)[:3]).all()
    assert history.of(0)[3] == 1.0


def test_a_ramp_is_drawn_as_stairs():
    assert sparkline(np.arange(80.0), 8) == BLOCKS
    assert sparkline(-np.arange(80.0), 8) == BLOCKS[::-1]


def test_each_character_is_the_mean_of_its_share():
    samples = np.random.default_rng(1).normal(size=600)
    means = samples.reshape(20, 30).mean(axis=1)
    levels = np.minimum(7, ((means - means.min()) / np.ptp(means) * 8).astype(int))
    assert sparkline(samples, 20) == "".join(BLOCKS[k] for k in levels)


@pytest.mark.parametrize(
    ("samples", "width", "drawn"),
    [
        ([3.0] * 10, 5, MIDDLE * 5),
        ([math.nan] * 10, 5, "     "),
        ([math.nan] * 5 + [0.0] * 5 + [1.0] * 5, 3, " ▁█"),
        ([0.0, 1.0], 5, "   ▁█"),
        ([math.inf, 0.0, 1.0], 3, " ▁█"),
        ([], 3, "   "),
        ([1.0], 0, ""),
    ],
)
def test_curves_of_nothing_and_of_one_value(samples, width, drawn):
    assert sparkline(np.array(samples), width) == drawn


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.0000"), (-12.34567, "-12.3457"), (1234.567, "1234.57"), (1e-5, "1e-05"), (-2.5e7, "-2.5e+07")],
)
def test_numbers_fit_their_column(value, shown):
    assert number(value) == shown
    assert len(number(-math.pi * 10.0 ** np.floor(math.log10(abs(value) or 1)))) <= 11


def test_limits_in_words():
    assert limits(-50.0, 50.0) == "-50..50"
    assert limits(-math.inf, math.inf) == ""
    assert limits(0.0, math.inf) == "0.."


# -- the histogram -----------------------------------------------------------------------------------------------------


def test_the_node_counts_every_tick_as_numpy_does():
    late = 10 ** np.random.default_rng(2).uniform(-1, 6, 5000)
    rows = np.stack([row(k, late_us=x) for k, x in enumerate(late)])
    exact = (rows[:, Col.WAKE] - rows[:, Col.DEADLINE]) * 1e-3
    counted = timing_of(rows, 0)["wake_counts"]
    edges = np.concatenate([[-np.inf], 10 ** (np.arange(31) / 6), [np.inf]])
    assert counted == np.histogram(exact, edges)[0].tolist()
    assert len(counted) == BUCKETS == len(WAKE_EDGES_US) + 1


def test_the_histogram_forgets_what_is_older_than_its_window():
    histogram = Histogram(seconds=3)
    assert histogram.counts == [0] * BUCKETS
    for k in range(5):
        histogram.put([k] + [0] * (BUCKETS - 1))
    assert histogram.total == 2 + 3 + 4
    histogram.put([1, 2, 3])  # a node that counts otherwise
    assert histogram.total == 9


def test_bars_are_logarithmic_and_one_tick_can_be_seen():
    drawn = bars([0, 1, 31, 1023], 2)
    heights = [sum(" ▁▂▃▄▅▆▇█".index(line[k]) for line in drawn) for k in range(4)]
    assert heights == [0, round(16 * 1 / 10), round(16 * 5 / 10), 16]  # log2 of 2, 32 and 1024
    assert bars([1_000_000, 1], 2)[1][1] != " "


def test_the_axis_names_the_decades_where_they_begin():
    for decade, name in enumerate(("1us", "10", "100", "1ms", "10ms")):
        bucket = int(np.searchsorted(WAKE_EDGES_US, 1.0001 * 10.0**decade, side="right"))
        assert axis()[bucket:].startswith(name)


# -- messages ----------------------------------------------------------------------------------------------------------


def test_only_the_newest_state_between_two_pictures_is_read(model, monkeypatch):
    wire, unpacked = Wire(), []
    original = msgpack.unpackb
    monkeypatch.setattr(msgpack, "unpackb", lambda body: unpacked.append(body) or original(body))
    model.hear(wire.states(*(row(10 * k, force=k) for k in range(10))), 1.0)
    assert len(unpacked) == 1
    assert model.state["tick"] == 90
    assert [line.value for line in model.lines()] == [9.0, 0.0]
    assert model.lost == 0


def test_messages_that_never_came_are_counted(model):
    wire = Wire()
    states = wire.states(*(row(k) for k in range(20)))
    model.hear(states[:5], 1.0)
    model.hear([*states[7:9], *states[12:15]], 1.1)  # 5, 6 and 9, 10, 11 are lost
    assert model.lost == 5
    model.hear(Wire().states(row(0), row(1)), 1.2)  # another bridge, which counts from 0
    assert model.lost == 5


def test_a_node_with_other_signals_takes_the_place_of_the_first(model):
    model.hear(Wire().states(row(0, force=1.0)), 1.0)
    other = Schema(1_000_000, (Signal("arm.torque"),), (), (), ())
    model.hear([sent(Packer(other, "bench").schema(0.0, 0))], 1.1)
    assert [line.signal.name for line in model.lines()] == ["arm.torque"]
    assert math.isnan(model.lines()[0].value)
    assert model.history(0).size


def test_silence_is_said_and_leaves_a_hole_in_the_curve(model):
    assert model.silence(5.0) == 0.0  # nothing has been heard yet: it connects
    wire = Wire()
    model.hear(wire.states(row(0, force=3.0)), 10.0)
    assert model.silence(10.0 + SILENCE) == 0.0
    assert model.silence(13.0) == pytest.approx(3.0)
    model.hear([], 10.15)
    assert np.array_equal(model.history(0)[-3:], [math.nan, 3.0, 3.0], equal_nan=True)
    model.hear([], 13.0)
    assert np.isnan(model.history(0)[-29:]).all()
    assert model.history(0)[-30] == 3.0


def test_the_curve_keeps_its_time_when_the_screen_is_slow(model):
    wire = Wire()
    for k in range(30):
        model.hear(wire.states(row(k, force=k)), 100.05 + k)  # one picture per second instead of ten
    filled = model.history(0)[np.isfinite(model.history(0))]
    assert len(filled) == 291
    assert (filled[-10:] == 29.0).all()


def test_the_filter_is_part_of_a_name(model):
    model.filter = "forc"
    assert [line.signal.name for line in model.lines()] == ["cart.force"]
    model.filter = "xyz"
    assert model.lines() == []


def test_what_is_forced_and_what_is_stale_is_marked(model):
    model.told({"overruns": 4, "forced": {"cart.position": 1.0}, "stale": ["cart.force"]})
    assert [(line.forced, line.stale) for line in model.lines()] == [(False, True), (True, False)]
    model.told({"overruns": 5})  # a node of an earlier version
    assert not any(line.forced or line.stale for line in model.lines())
    assert model.overruns == 5


def test_it_stands_only_if_somebody_made_it(model):
    wire = Wire()
    model.hear(wire.states(row(0, flags=Flag.PAUSED)), 1.0)
    assert model.paused
    tripped = row(1, flags=Flag.PAUSED)
    tripped[Col.STATE] = State.TRIPPED
    model.hear(wire.states(tripped), 1.1)
    assert not model.paused


def test_answers_to_commands_are_no_news_but_refusals_are(model):
    packer = Packer(SCHEMA, "bench")
    event = {"tick": 7, "time_ns": 0, "event": "command", "index": 0, "value": None, "what": "command: done"}
    model.hear([sent(packer.event(event))], 1.0)
    model.hear([sent(packer.event({**event, "index": 1, "what": "command: not possible now"}))], 1.0)
    assert list(model.events) == [(7, "command", "command: not possible now")]


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        (" 2.5 ", 2.5, ""),
        ("-9", -9.0, ""),
        ("2,5", 2.5, ""),
        ("9.1", 9.1, "9.1 is outside -9..9 N"),
        ("nan", math.nan, "nan is outside"),
        ("", math.nan, "'' is not a number"),
    ],
)
def test_a_typed_value_is_checked(text, value, why):
    got, said = checked(text, SCHEMA.inputs[0])
    assert got == pytest.approx(value, nan_ok=True)
    assert said.startswith(why)
    assert bool(said) == bool(why)
