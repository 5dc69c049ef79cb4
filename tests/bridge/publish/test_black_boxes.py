"""Overruns told while the node runs: the rows around them, their likeliest cause, and no flood."""

import numpy as np

from bridge.publish.black_boxes import APART_NS, AROUND, BlackBoxes
from hilnode.shared.machine_sample import MachineSample
from hilnode.shared.row import HEADER, Col, Flag

PERIOD = 1_000_000  # [ns]


def rows_of(first: int, count: int, overran: tuple[int, ...] = (), late: int = 5_000_000) -> np.ndarray:
    """Ticks that wake 20 us late, take 300 us in the plant and 6 us around it; those named wake `late` [ns]."""
    rows = np.zeros((count, HEADER), np.int64)
    for k, row in enumerate(rows):
        tick = first + k
        wake = tick * PERIOD + (late if tick in overran else 20_000)
        row[Col.TICK], row[Col.DEADLINE], row[Col.WAKE] = tick, tick * PERIOD, wake
        row[Col.START], row[Col.END], row[Col.DONE] = wake + 4_000, wake + 304_000, wake + 306_000
        row[Col.PERIOD] = PERIOD
        row[Col.FLAGS] = Flag.OVERRUN if tick in overran else 0
    return rows


def sample_at(ms: int, run_delay_ns: int) -> MachineSample:
    return MachineSample(ms * 1_000_000, 10, 0, ms, 0, run_delay_ns, 0, 0, 0, 0, 0, 1 << 20, ms * 300_000)


def feed(boxes: BlackBoxes, rows: np.ndarray, each: int = 7) -> None:
    for at in range(0, len(rows), each):
        boxes.take_rows(rows[at : at + each])


def test_an_overrun_comes_with_the_rows_around_it_and_its_cause() -> None:
    boxes = BlackBoxes(PERIOD)
    for ms in (0, 50, 100):
        boxes.take_sample(sample_at(ms, 0))
    feed(boxes, rows_of(0, 121, (120,)))
    assert boxes.ready(126_000_000) is None  # nothing has come after it yet
    feed(boxes, rows_of(121, 40))
    boxes.take_sample(sample_at(150, 4_800_000))
    event = boxes.ready(161_000_000)
    assert event is not None
    assert (event["event"], event["tick"], event["time_ns"], event["index"]) == ("blackbox", 120, 125_000_000, 1)
    assert event["what"] == "woke 5 ms late while the run queue delay rose by 4.8 ms: another task held the CPU"
    table = [dict(zip(event["black_box"]["columns"], row, strict=True)) for row in event["black_box"]["rows"]]
    assert [row["tick"] for row in table] == list(range(120 - AROUND, 120 + AROUND + 1))
    assert table[AROUND] == {
        **{"tick": 120, "wake_us": 5000.0, "step_us": 300.0, "own_us": 6.0, "period_us": 1000.0, "flags": ["overrun"]}
    }
    assert table[0]["wake_us"] == 20.0
    assert table[0]["flags"] == []
    assert boxes.ready(200_000_000) is None  # told once


def test_one_after_which_nothing_comes_is_told_all_the_same() -> None:
    boxes = BlackBoxes(PERIOD)
    feed(boxes, rows_of(0, 51, (50,)))
    assert boxes.ready(60_000_000) is None
    event = boxes.ready(55_306_000 + APART_NS)
    assert event is not None
    assert "there are no machine counters" in event["what"]


def test_a_storm_of_overruns_is_one_incident_in_half_a_second() -> None:
    boxes = BlackBoxes(PERIOD)
    told = []
    for tick in range(2000):
        boxes.take_rows(rows_of(tick, 1, (tick,)))
        if tick % 50 == 0:
            boxes.take_sample(sample_at(tick, 0))
        if (event := boxes.ready(tick * PERIOD)) is not None:
            told.append(event)
    assert [event["tick"] for event in told] == [0, 500, 1000, 1500]
