"""Live timing, against numpy over the same rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hilnode.node.stats import Stats, Timing
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import HEADER, Col, Flag

Rows = NDArray[np.int64]
MakeRing = Callable[[int], Ring]


@pytest.fixture
def make_ring() -> Iterator[MakeRing]:
    made: list[Ring] = []

    def make(capacity: int) -> Ring:
        made.append(Ring.create(f"test-stats-{os.getpid()}-{len(made)}.rows", capacity=capacity, width=HEADER + 2))
        return made[-1]

    yield make
    for ring in made:
        ring.close()


def rows_of(late_ns: Rows, step_ns: Rows, flags: Rows | int = 0, missed: Rows | int = 0) -> Rows:
    """Rows of a 1 kHz loop, with the two words behind the header filled with noise."""
    count = len(late_ns)
    rows = np.full((count, HEADER + 2), 0x7FF0_0000_0000_0001, np.int64)
    rows[:, Col.TICK] = np.arange(count)
    rows[:, Col.DEADLINE] = 10**15 + 1_000_000 * np.arange(count)
    rows[:, Col.WAKE] = rows[:, Col.DEADLINE] + late_ns
    rows[:, Col.START] = rows[:, Col.WAKE] + 700
    rows[:, Col.END] = rows[:, Col.START] + step_ns
    rows[:, Col.FLAGS] = flags
    rows[:, Col.MISSED] = missed
    return rows


def random_rows(count: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    late = rng.lognormal(np.log(30_000), 1.0, count).astype(np.int64) - 5_000
    step = rng.lognormal(np.log(200_000), 0.7, count).astype(np.int64)
    flags = np.zeros(count, np.int64)
    for flag in Flag:
        flags |= np.where(rng.random(count) < 0.1, int(flag), 0)
    return rows_of(late, step, flags, rng.integers(0, 3, count))


def push(ring: Ring, rows: Rows) -> None:
    for row in rows:
        ring.push(row)


def fed(ring: Ring, rows: Rows, chunk: int = 100) -> Timing:
    stats = Stats(ring)
    for start in range(0, len(rows), chunk):
        push(ring, rows[start : start + chunk])
        stats.feed()
    return stats.timing()


def has(rows: Rows, flag: Flag) -> NDArray[np.bool_]:
    return (rows[:, Col.FLAGS] & int(flag)) != 0


def percentile(ns: Rows, share: float) -> int:
    """In microseconds, to the next whole one; the histogram ends at 4000."""
    whole = np.minimum(ns // 1000 + 1, 4000)
    return int(np.percentile(whole, 100 * share, method="inverted_cdf"))


@pytest.mark.parametrize(("count", "seed"), [(1, 1), (2, 2), (99, 3), (100, 4), (1000, 5)])
def test_against_numpy(count: int, seed: int, make_ring: MakeRing) -> None:
    rows = random_rows(count, seed)
    late = np.maximum(rows[:, Col.WAKE] - rows[:, Col.DEADLINE], 0)[~has(rows, Flag.CATCH_UP)]
    step = (rows[:, Col.END] - rows[:, Col.START])[~has(rows, Flag.PAUSED)]
    overrun, grace = has(rows, Flag.OVERRUN), has(rows, Flag.GRACE)
    found = fed(make_ring(256), rows)
    assert found.rows == count
    assert found.overruns == np.count_nonzero(overrun & ~grace)
    assert found.grace_overruns == np.count_nonzero(overrun & grace)
    assert found.missed == rows[:, Col.MISSED].sum()
    assert found.wake_p50 == percentile(late, 0.5)
    assert found.wake_p99 == percentile(late, 0.99)
    assert found.step_p50 == percentile(step, 0.5)
    assert found.step_p99 == percentile(step, 0.99)
    assert found.step_max == pytest.approx(step.max() / 1000, rel=1e-12)


def test_nothing_seen_is_nothing(make_ring: MakeRing) -> None:
    stats = Stats(make_ring(16))
    stats.feed()
    assert stats.timing() == Timing(0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def test_a_row_is_counted_once(make_ring: MakeRing) -> None:
    ring = make_ring(64)
    stats = Stats(ring)
    push(ring, random_rows(20, 6))
    stats.feed()
    before = stats.timing()
    stats.feed()
    assert stats.timing() == before
    assert before.rows == 20


def test_borders_of_the_bins(make_ring: MakeRing) -> None:
    late = np.array([-2500, 0, 999, 1000, 3_999_999, 4_000_000, 10**12], np.int64)
    expected = [1, 1, 1, 2, 4000, 4000, 4000]
    for ns, us in zip(late, expected, strict=True):
        found = fed(make_ring(16), rows_of(np.array([ns]), np.array([max(0, ns)])))
        assert (found.wake_p50, found.wake_p99) == (us, us)
        assert (found.step_p50, found.step_p99) == (us, us)
        assert found.step_max == max(0, ns) / 1000


def test_a_pause_has_no_step_and_a_catch_up_no_wake(make_ring: MakeRing) -> None:
    paused = fed(make_ring(16), rows_of(np.array([5500]), np.array([900_000]), int(Flag.PAUSED)))
    assert (paused.rows, paused.wake_p50, paused.step_p50, paused.step_max) == (1, 6, 0, 0.0)
    hurried = fed(make_ring(16), rows_of(np.array([5500]), np.array([900_500]), int(Flag.CATCH_UP)))
    assert (hurried.rows, hurried.wake_p50, hurried.step_p50, hurried.step_max) == (1, 0, 901, 900.5)


def test_rows_that_were_overwritten_are_not_made_up(make_ring: MakeRing) -> None:
    ring = make_ring(16)
    stats = Stats(ring)
    steps = np.full(40, 1_000, np.int64)
    steps[0], steps[39] = 900_000, 70_000  # the first is gone, the last is there
    push(ring, rows_of(np.zeros(40, np.int64), steps, int(Flag.OVERRUN), 1))
    stats.feed()
    found = stats.timing()
    assert 8 <= found.rows <= 16
    assert found.overruns == found.missed == found.rows
    assert found.step_max == 70.0
    push(ring, rows_of(np.zeros(3, np.int64), np.array([1_000] * 3)))
    stats.feed()
    assert stats.timing().rows == found.rows + 3
