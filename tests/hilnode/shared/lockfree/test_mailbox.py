"""Mailbox: always the latest letter, whole, with its number; in one process, against a plain latest value."""

import itertools
import os
import time

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hilnode.shared.lockfree.mailbox import SLOTS, Mailbox
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.lockfree.segment import SegmentMismatch

_numbers = itertools.count()


@pytest.fixture
def box(name):
    made = Mailbox.create(name, channels=3)
    yield made
    made.close()


def test_an_empty_mailbox_has_letter_number_0(box):
    number, values, stamps = box.take()
    assert number == 0
    assert values.tolist() == [0.0, 0.0, 0.0]
    assert stamps.tolist() == [0, 0, 0]


def test_the_latest_letter_is_read_as_often_as_wanted(box):
    box.put(np.array([1.0, 2.0, 3.0]), 10)
    box.put(np.array([4.0, -5.5, 1e300]), np.array([20, 21, 22]))
    for _ in range(3):
        number, values, stamps = box.take()
        assert number == 2
        assert values.tolist() == [4.0, -5.5, 1e300]
        assert stamps.tolist() == [20, 21, 22]


def test_a_letter_without_stamps_is_stamped_now(box):
    before = time.monotonic_ns()
    box.put(np.ones(3))
    stamps = box.take()[2]
    assert before <= stamps[0] <= time.monotonic_ns()
    assert len(set(stamps.tolist())) == 1


def test_values_that_are_no_numbers_pass_unchanged(box):
    box.put(np.array([np.nan, -np.inf, -0.0]), 1)
    values = box.take()[1]
    assert np.isnan(values[0])
    assert values[1] == -np.inf
    assert np.signbit(values[2])


@pytest.mark.parametrize("letters", [1, SLOTS - 1, SLOTS, SLOTS + 1, 1000])
def test_a_reader_that_comes_late_gets_the_last_letter(box, letters):
    for n in range(letters):
        box.put(np.full(3, float(n)), n)
    assert box.take()[0] == letters
    late = Mailbox.attach(box.segment.name)
    number, values, stamps = late.take()
    assert (number, values.tolist(), stamps.tolist()) == (letters, [letters - 1.0] * 3, [letters - 1] * 3)


def test_readers_do_not_take_letters_from_each_other(box):
    other = Mailbox.attach(box.segment.name)
    box.put(np.full(3, 7.0), 1)
    assert box.take()[0] == other.take()[0] == 1
    assert other.take()[1].tolist() == [7.0] * 3


def test_what_was_taken_stays_while_new_letters_are_put(box):
    """The writer's own handle may read, too: putting does not touch the letter it holds."""
    box.put(np.full(3, 1.0), 1)
    _, values, stamps = box.take()
    box.put(np.full(3, 2.0), 2)
    assert values.tolist() == [1.0] * 3
    assert stamps.tolist() == [1] * 3
    assert box.take()[1].tolist() == [2.0] * 3


def test_a_new_writer_goes_on_with_the_numbers(box):
    box.put(np.full(3, 1.0), 1)
    second = Mailbox.attach(box.segment.name)
    second.put(np.full(3, 2.0), 2)
    number, values, _ = box.take()
    assert (number, values.tolist()) == (2, [2.0] * 3)


def test_a_letter_of_another_size_is_refused(box):
    box.put(np.full(3, 1.0), 1)
    with pytest.raises(ValueError, match="broadcast"):
        box.put(np.zeros(4), 2)
    assert box.take()[0] == 1


@pytest.mark.parametrize("channels", [0, -1])
def test_a_mailbox_needs_a_channel(name, channels):
    with pytest.raises(ValueError, match=f"{name}.*at least one channel"):
        Mailbox.create(name, channels=channels)


def test_a_ring_is_no_mailbox(name):
    ring = Ring.create(name, capacity=16, width=1)
    with pytest.raises(SegmentMismatch, match="kind 2, not 1"):
        Mailbox.attach(name)
    ring.close()


class MailboxMachine(RuleBasedStateMachine):
    """Random letters from one writer, taken through several handles; the model is the latest letter."""

    @initialize(channels=st.integers(1, 5))
    def begin(self, channels: int) -> None:
        self.channels = channels
        self.box = Mailbox.create(f"t{os.getpid()}-letters-{next(_numbers)}", channels=channels)
        self.handles = [self.box]
        self.model = (0, [0.0] * channels, [0] * channels)

    @rule()
    def attach(self) -> None:
        self.handles.append(Mailbox.attach(self.box.segment.name))

    @rule(data=st.data(), times=st.integers(1, 9), each=st.booleans())
    def put(self, data: st.DataObject, times: int, each: bool) -> None:
        values = data.draw(st.lists(st.floats(allow_nan=False), min_size=self.channels, max_size=self.channels))
        stamp = data.draw(st.integers(-(1 << 63), (1 << 63) - 1))
        stamps = [stamp ^ i if each else stamp for i in range(self.channels)]
        for _ in range(times):
            self.box.put(np.array(values), np.array(stamps) if each else stamp)
        self.model = (self.model[0] + times, values, stamps)

    @rule(which=st.integers(0, 1 << 30))
    def take(self, which: int) -> None:
        number, values, stamps = self.handles[which % len(self.handles)].take()
        assert (number, values.tolist(), stamps.tolist()) == self.model

    def teardown(self) -> None:
        if hasattr(self, "box"):
            for handle in self.handles:
                handle.close()


MailboxMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestMailboxMachine = MailboxMachine.TestCase
