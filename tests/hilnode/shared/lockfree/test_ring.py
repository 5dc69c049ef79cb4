"""Ring: every row in order or counted as lost, in one process, against a plain list of all rows ever pushed."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from hilnode.shared.lockfree.ring import Ring, RingReader
from hilnode.shared.lockfree.segment import SegmentMismatch, SegmentMissing

_numbers = itertools.count()


def row(n: int, width: int) -> np.ndarray:
    """Row number `n` as this file writes it."""
    return 1000 * n + np.arange(width, dtype=np.int64)


def push(ring: Ring, first: int, count: int) -> None:
    for n in range(first, first + count):
        ring.push(row(n, ring.view.width))


def numbers(rows: np.ndarray) -> list[int]:
    """Numbers of the rows read; each must be whole."""
    for r in rows:
        assert r.tolist() == row(int(r[0]) // 1000, len(r)).tolist()
    return [int(r[0]) // 1000 for r in rows]


@pytest.fixture
def ring(name):
    made = Ring.create(name, capacity=16, width=3)
    yield made
    made.close()


def test_rows_come_in_order_and_once(ring):
    reader = ring.reader()
    push(ring, 0, 5)
    assert numbers(reader.read()) == [0, 1, 2, 3, 4]
    assert numbers(reader.read()) == []
    push(ring, 5, 2)
    assert numbers(reader.read()) == [5, 6]
    assert (reader.next, reader.lost, len(ring)) == (7, 0, 7)


def test_every_bit_pattern_survives(ring):
    words = np.array([-1, -(1 << 63), (1 << 63) - 1], np.int64)
    reader = ring.reader()
    ring.push(words)
    assert reader.read().tolist() == [words.tolist()]


def test_a_reader_begins_now_or_where_it_is_told(ring):
    push(ring, 0, 10)
    assert numbers(ring.reader().read()) == []
    assert numbers(ring.reader(first=0).read()) == list(range(10))
    assert numbers(ring.reader(first=7).read()) == [7, 8, 9]
    ahead = ring.reader(first=12)
    assert numbers(ahead.read()) == []
    push(ring, 10, 4)
    assert numbers(ahead.read()) == [12, 13]
    assert ahead.lost == 0


def test_a_reader_cannot_begin_before_the_first_row(ring):
    push(ring, 0, 3)
    with pytest.raises(ValueError, match="-1"):
        ring.reader(first=-1)


def test_rows_gone_before_the_reader_began_count_as_lost(ring):
    push(ring, 0, 100)
    reader = ring.reader(first=0)
    got = numbers(reader.read())
    assert got == list(range(got[0], 100))
    assert got[0] + len(got) == 100
    assert reader.lost == got[0]


@pytest.mark.parametrize("batch", [1, 2, 7, 15, 16, 256])
def test_a_batch_is_a_limit_not_a_loss(ring, batch):
    reader = ring.reader(batch=batch)
    push(ring, 0, 15)
    got: list[int] = []
    while len(rows := reader.read()):
        assert len(rows) <= batch
        got += numbers(rows)
    assert got == list(range(15))
    assert reader.lost == 0


def test_all_rows_but_the_oldest_are_readable(ring):
    """One slot is always the next one to be written: capacity - 1 rows can be read with certainty."""
    reader = ring.reader()
    push(ring, 0, 15)
    assert numbers(reader.read()) == list(range(15))
    late = ring.reader(first=0)
    push(ring, 15, 1)
    assert 0 not in numbers(late.read())
    assert late.lost >= 1


def test_a_lapped_reader_goes_on_near_the_oldest_row(ring):
    reader = ring.reader()
    push(ring, 0, 1000)
    got = numbers(reader.read())
    assert got == list(range(got[0], 1000))
    assert 1000 - 16 < got[0] <= 1000 - 15 + 16 // 8
    assert reader.lost == got[0]


def test_readers_do_not_disturb_each_other(ring):
    quick, slow = ring.reader(), ring.reader(batch=1)
    for n in range(40):
        push(ring, n, 1)
        assert numbers(quick.read()) == [n]
    assert numbers(slow.read())[0] == slow.lost
    assert quick.lost == 0


def test_a_batch_is_a_view_that_the_next_read_overwrites(ring):
    reader = ring.reader(batch=4)
    push(ring, 0, 1)
    kept = reader.read()
    push(ring, 1, 1)
    reader.read()
    assert numbers(kept) == [1]


@pytest.mark.parametrize(("capacity", "width"), [(15, 1), (0, 1), (-16, 1), (16, 0), (16, -3)])
def test_an_impossible_size_is_refused(name, capacity, width):
    with pytest.raises(ValueError, match=rf"{name}.*capacity {capacity} .*width {width} "):
        Ring.create(name, capacity=capacity, width=width)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(2, np.int64), np.zeros(4, np.int64), np.zeros(3), np.zeros((1, 3), np.int64), np.zeros(6, np.int64)[::2]],
    ids=["short", "long", "float", "table", "gaps"],
)
def test_a_row_of_another_shape_is_refused(ring, wrong):
    with pytest.raises(ValueError, match="3 contiguous int64 words"):
        ring.push(wrong)
    assert len(ring) == 0


def test_attach_takes_shape_and_content_from_the_owner(name):
    made = Ring.create(name, capacity=17, width=2, schema=99)
    push(made, 0, 3)
    there = Ring.attach(name, schema=99)
    assert (there.view.capacity, there.view.width) == (17, 2)
    assert numbers(there.reader(first=0).read()) == [0, 1, 2]
    push(there, 3, 1)  # a writer may change, as long as there is one at a time
    assert numbers(made.reader(first=3).read()) == [3]
    with pytest.raises(SegmentMismatch, match="another config"):
        Ring.attach(name, schema=98)
    made.close()
    with pytest.raises(SegmentMissing):
        Ring.attach(name)


class RingMachine(RuleBasedStateMachine):
    """Random pushes and reads; the model is the list of all rows ever pushed."""

    readers = Bundle("readers")

    @initialize(capacity=st.integers(16, 40), width=st.integers(1, 4))
    def begin(self, capacity: int, width: int) -> None:
        self.capacity, self.width = capacity, width
        self.ring = Ring.create(f"t{os.getpid()}-machine-{next(_numbers)}", capacity=capacity, width=width)
        self.pushed = 0

    @rule(count=st.one_of(st.integers(1, 5), st.integers(10, 90)))
    def push(self, count: int) -> None:
        push(self.ring, self.pushed, count)
        self.pushed += count

    @rule(target=readers, back=st.one_of(st.none(), st.integers(0, 100)), batch=st.integers(1, 30))
    def begin_reading(self, back: int | None, batch: int) -> tuple[RingReader, int, list[int]]:
        first = None if back is None else max(0, self.pushed - back)
        return self.ring.reader(first=first, batch=batch), self.pushed if first is None else first, [0, batch]

    @rule(who=readers)
    def read(self, who: tuple[RingReader, int, list[int]]) -> None:
        reader, first, state = who
        wanted, lost_before = reader.next, reader.lost
        got = numbers(reader.read())
        skipped = reader.lost - lost_before
        oldest = self.pushed - self.capacity + 1
        assert len(got) <= state[1]
        assert got == list(range(wanted + skipped, wanted + skipped + len(got)))
        if wanted >= oldest:
            assert skipped == 0
        else:
            assert oldest <= wanted + skipped <= oldest + self.capacity // 8
        assert len(got) == min(state[1], self.pushed - wanted - skipped)
        state[0] += len(got)
        assert state[0] + reader.lost == reader.next - first

    @invariant()
    def counts_rows(self) -> None:
        if hasattr(self, "ring"):
            assert len(self.ring) == self.pushed

    def teardown(self) -> None:
        if hasattr(self, "ring"):
            self.ring.close()


RingMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestRingMachine = RingMachine.TestCase
