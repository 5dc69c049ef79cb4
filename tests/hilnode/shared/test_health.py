"""The health record: buckets that hold what they say, percentiles as numpy's, texts that fit."""

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilnode.report.driver_table import render, seconds, to_json
from hilnode.shared.health import (
    BUCKETS,
    HEALTH_KIND,
    HEALTH_WORDS,
    READS,
    WRITES,
    H,
    Health,
    Records,
    bucket,
    get_text,
    lower_edge,
    percentile,
    put_text,
    report,
    state_of,
)
from hilnode.shared.lockfree.segment import Segment


def empty() -> np.ndarray:
    return np.zeros(HEALTH_WORDS, np.int64)


@given(st.integers(-1000, 2**40))
def test_a_time_lies_within_its_bucket(ns):
    number = bucket(ns)
    assert 0 <= number < BUCKETS
    us = max(ns // 1000, 0)
    assert lower_edge(number) <= us
    assert number == BUCKETS - 1 or us < lower_edge(number + 1)


def test_buckets_lie_side_by_side_and_are_narrow():
    edges = [lower_edge(k) for k in range(BUCKETS + 1)]
    widths = np.diff(edges)
    assert (widths > 0).all()
    assert (widths[16:] / edges[16:-1] <= 1 / 16).all()
    assert edges[0] == 0.0
    assert edges[-1] == 2**24


@pytest.mark.parametrize("percent", [50, 90, 99])
def test_percentiles_as_numpy_finds_them(percent):
    times = np.random.default_rng(1).lognormal(np.log(1000e3), 0.3, 5000)  # [ns]
    counts = np.bincount([bucket(int(t)) for t in times], minlength=BUCKETS)
    assert percentile(counts, percent) == pytest.approx(np.percentile(times, percent) / 1e3, rel=0.07)


def test_nothing_counted_has_no_percentile():
    assert math.isnan(percentile(np.zeros(BUCKETS, np.int64), 50))


@pytest.mark.parametrize("text", ["", "no such port", "ü" * 200, "x" * 1000])
def test_texts_are_cut_to_their_room_and_touch_nothing_else(text):
    record = empty()
    put_text(record, "trouble", text)
    kept = get_text(record, "trouble")
    assert text.startswith(kept)
    assert len(kept.encode()) >= min(len(text.encode()), 255)
    put_text(record, "trouble", "")
    assert not record.any()


def test_a_report_says_what_the_words_say():
    record = empty()
    put_text(record, "name", "rig")
    put_text(record, "kind", "serial")
    record[[H.STATE, H.FRAMES, H.ERRORS, H.RECONNECTS, H.TWIN]] = Health.DEGRADED, 10, 3, 1, 1
    record[H.LAST_READ] = time.monotonic_ns() - 2_000_000_000
    record[READS.start + bucket(1_000_000)] = 9
    before = record.copy()
    record[READS.start + bucket(4_000_000)] = 9
    told = report(record)
    assert (told.name, told.kind, told.state, told.twin) == ("rig", "serial", "degraded", True)
    assert (told.frames, told.errors, told.reconnects) == (10, 3, 1)
    assert told.age_s == pytest.approx(2.0, abs=0.5)
    assert told.period_p50_us == pytest.approx(1000, rel=0.07)
    assert report(record, before).period_p50_us == pytest.approx(4000, rel=0.07)


def test_a_driver_that_only_writes_is_judged_by_its_writes():
    record = empty()
    record[WRITES.start + bucket(500_000)] = 5
    record[H.LAST_WRITE] = time.monotonic_ns()
    assert report(record).period_p50_us == pytest.approx(500, rel=0.07)
    assert report(record).age_s < 5
    assert math.isinf(report(empty()).age_s)


def test_a_node_without_drivers_has_no_reports(name):
    segment = Segment.create(f"{name}.health", kind=HEALTH_KIND, words=HEALTH_WORDS)
    records = Records(name)
    assert records.reports() == []
    put_text(records.table[0], "name", "rig")
    (told,) = records.reports()
    assert told.name == "rig"
    assert to_json([told])[0]["age_s"] is None  # JSON has no infinity
    assert render([told])
    records.close()
    segment.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00012345, "123 us"), (0.0123, "12.3 ms"), (2.0, "2 s"), (4000.0, "4000 s"), (math.inf, "-"), (0.0, "0 us")],
)
def test_times_are_short(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize("word", [H.IN_READ, H.IN_WRITE])
def test_a_call_that_does_not_return_is_worse_and_worse(word):
    record, now = empty(), time.monotonic_ns()
    record[H.STATE] = Health.UP
    verb = "read" if word == H.IN_READ else "write"
    for waited, health in ((0.9, Health.UP), (1.1, Health.DEGRADED), (4.9, Health.DEGRADED), (5.1, Health.DOWN)):
        record[word] = now - int(waited * 1e9)
        state, sentence = state_of(record, now)
        assert state == health
        assert sentence.startswith(f"its {verb} has not returned for {waited:.0f} s") == (health != Health.UP)
    record[H.STATE] = Health.DOWN
    assert state_of(record, now) == (Health.DOWN, "")  # its own trouble says more
    record[word] = 0
    record[H.STATE] = Health.CONNECTING
    assert state_of(record, now) == (Health.CONNECTING, "")


def test_a_report_has_the_histogram_of_its_periods():
    record = empty()
    record[H.FRAMES] = 6
    before = record.copy()
    record[READS.start + bucket(7_000)] = 2
    record[READS.start + bucket(1_000_000)] = 3
    assert report(record).periods_us == [[7.0, 2], [992.0, 3]]
    before[READS.start + bucket(7_000)] = 2
    assert report(record, before).periods_us == [[992.0, 3]]
    assert json.loads(json.dumps(to_json([report(record)])))[0]["periods_us"] == [[7.0, 2], [992.0, 3]]
