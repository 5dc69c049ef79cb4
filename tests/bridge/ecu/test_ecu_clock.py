"""The clock of an ECU from its messages, against a made-up network whose truth is known."""

import math
import random

import pytest

from bridge.ecu.clock import ROUNDS, SENT_KEPT, WINDOW, EcuClock


def exchange(clock: EcuClock, seq: int, at: float, offset: float, out: float, think: float, back: float) -> float:
    """A state leaves the node at `at`; the answer is there `out + think + back` later: when."""
    clock.sent(seq, at)
    clock.answered(seq, at + out + offset, at + out + think + offset, at + out + think + back)
    return at + out + think + back


def test_ways_of_equal_length_give_the_offset_exactly():
    clock = EcuClock()
    exchange(clock, 0, 100.0, 1234.5, 80e-6, 300e-6, 80e-6)
    assert clock.offset == pytest.approx(1234.5, abs=1e-9)
    assert clock.delay == pytest.approx(160e-6, abs=1e-9)
    assert clock.round_trip(0.5) == pytest.approx(460e-6, abs=1e-9)


@pytest.mark.parametrize("queues", ["out", "back"])
def test_a_message_that_queued_one_way_does_not_move_it(queues):
    """The average would be wrong by a quarter of a millisecond and more."""
    chance, clock, now = random.Random(1), EcuClock(), 50.0
    for seq in range(WINDOW):
        late = chance.expovariate(1 / 500e-6) if seq % 8 else 0.0
        out, back = (60e-6 + late, 60e-6) if queues == "out" else (60e-6, 60e-6 + late)
        now = exchange(clock, seq, now + 1e-3, -7.0, out, 1e-4, back)
    assert clock.offset == pytest.approx(-7.0, abs=1e-9)


def test_the_error_is_never_more_than_half_of_the_delay():
    chance, clock, now = random.Random(2), EcuClock(), 0.0
    for seq in range(2000):
        now = exchange(clock, seq, now + 1e-3, 3.0, chance.random() * 1e-3, 1e-4, chance.random() * 1e-3)
        assert abs(clock.offset - 3.0) <= clock.delay / 2 + 1e-12


def test_a_crystal_that_drifts_is_followed():
    """100 ppm at 1 kHz: what is believed is at most the window old."""
    clock, now = EcuClock(), 0.0
    for seq in range(5000):
        truth = 5.0 + 100e-6 * now
        now = exchange(clock, seq, now + 1e-3, truth, 50e-6, 0.0, 50e-6)
    assert clock.offset == pytest.approx(truth, abs=100e-6 * WINDOW * 1.2e-3)


def test_a_clock_that_was_set_in_between_gives_no_sample():
    clock = EcuClock()
    clock.sent(0, 1.0)
    clock.answered(0, 500.0, 499.0, 1.001)  # sent before it arrived
    clock.sent(1, 2.0)
    clock.answered(1, 100.0, 200.0, 2.001)  # thought for 100 s in a millisecond
    clock.sent(2, 3.0)
    clock.answered(2, math.nan, 500.0, 3.001)  # never told
    assert math.isnan(clock.offset)
    assert len(clock.round_trips) == 3


def test_only_the_first_answer_counts_and_memory_is_bounded():
    clock = EcuClock()
    for seq in range(3 * SENT_KEPT):
        clock.sent(seq, float(seq))
    clock.answered(0, 0.0, 0.0, 9e9)  # forgotten
    assert not clock.round_trips
    for _ in range(3):
        clock.answered(3 * SENT_KEPT - 1, 0.0, 0.0, 3.0 * SENT_KEPT)
    assert list(clock.round_trips) == [1.0]
    assert len(clock._sent) <= SENT_KEPT
    assert clock.round_trips.maxlen == ROUNDS
