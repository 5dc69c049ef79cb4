"""loopback: what goes in comes out, in order, not before its time."""

import time

import numpy as np
import pytest
from support import wait_for

from drivers.base import OptionError
from drivers.loopback import Loopback


def read(cable: Loopback) -> list[float] | None:
    values = np.full(len(cable.inputs), -99.0)
    return values.tolist() if cable.read(values, np.zeros(len(values), np.int64)) else None


def test_it_has_as_many_ends_as_asked_for():
    cable = Loopback("cable", {"channels": 3})
    assert [s.name for s in cable.inputs] == ["in.0", "in.1", "in.2"]
    assert [s.name for s in cable.outputs] == ["out.0", "out.1", "out.2"]
    assert not cable.external  # nothing is left to make safe when the node is gone
    assert len(Loopback("cable", {}).inputs) == 1


def test_what_is_written_is_read_once():
    cable = Loopback("cable", {"channels": 2})
    assert read(cable) is None
    cable.write(np.array([1.0, -2.0]))
    assert read(cable) == [1.0, -2.0]
    assert read(cable) is None


def test_of_several_letters_the_newest_is_read():
    cable = Loopback("cable", {})
    for k in range(5):
        cable.write(np.array([float(k)]))
    assert read(cable) == [4.0]


def test_the_writer_may_change_its_array_afterwards():
    cable = Loopback("cable", {})
    values = np.array([1.0])
    cable.write(values)
    values[0] = 2.0
    assert read(cable) == [1.0]


def test_a_delay_is_kept():
    cable = Loopback("cable", {"delay_ms": 50})
    written = time.monotonic_ns()
    cable.write(np.array([1.0]))
    wait_for(lambda: read(cable) == [1.0], "the delayed value", 5.0)
    assert time.monotonic_ns() - written >= 50e6


def test_stamps_are_those_of_arrival():
    cable = Loopback("cable", {})
    cable.write(np.array([1.0]))
    before, stamps = time.monotonic_ns(), np.zeros(1, np.int64)
    cable.read(np.zeros(1), stamps)
    assert before <= stamps[0] <= time.monotonic_ns()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"channels": 0}, "channels = 0: must be a whole number from 1 to 256"),
        ({"channels": 257}, "channels = 257"),
        ({"channels": 1.5}, "channels = 1.5"),
        ({"channels": True}, "channels = True"),
        ({"channels": "2"}, "channels = '2'"),
        ({"delay_ms": -1}, "delay_ms = -1: must be a number from 0 to 10000"),
        ({"delay_ms": 10_001}, "delay_ms = 10001"),
        ({"delay_ms": "1"}, "delay_ms = '1'"),
        ({"delay": 1}, "drivers.cable.delay is no option of this kind: did you mean 'delay_ms'"),
    ],
)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        Loopback("cable", options)
