"""The driver of an ECU: its options, and how it notices that the ECU has gone."""

import math
import time

import numpy as np
import pytest

from drivers.base import DriverError, OptionError
from drivers.ecu import Ecu, EcuWatch
from drivers.registry import create
from hilnode.shared.ecu_link import ECU_LINK_WORDS, SILENT, E, EcuLinks

VALUES, STAMPS = np.zeros(1), np.zeros(1, np.int64)


def watch(*, by_clock: bool = True) -> tuple[EcuWatch, np.ndarray]:
    line = np.zeros(ECU_LINK_WORDS, np.int64)
    return Ecu("ecu", {"inputs": ["x"], "outputs": ["y"], "silent_ms": 100}).watch(line, by_clock=by_clock), line


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "at least one"),
        ({"inputs": ["x"], "listen": "x"}, "listen"),
        ({"inputs": ["x"], "silent_ms": 1}, "silent_ms = 1"),
        ({"inputs": ["x"], "silent_ms": True}, "silent_ms = True"),
        ({"inputs": "x"}, "must be a list"),
    ],
)
def test_options_that_make_no_sense(options, why):
    with pytest.raises(OptionError, match=rf"drivers\.e.*{why}"):
        create("ecu", "e", options)


def test_before_the_first_ecu_it_just_waits():
    driver, line = watch()
    driver.open()
    assert line[E.IN] == 1
    assert driver.read(VALUES, STAMPS) is False
    driver.close()
    assert line[E.IN] == 0


def test_silence_is_a_loss_until_it_speaks_again():
    driver, line = watch()
    driver.open()
    line[E.SEATED], line[E.HEARD] = 1, time.monotonic_ns()
    assert driver.read(VALUES, STAMPS) is False
    line[E.HEARD] = time.monotonic_ns() - 100_000_000_000
    with pytest.raises(DriverError, match=r"silent for 10\d\.\d s"):
        driver.read(VALUES, STAMPS)
    driver.close()
    with pytest.raises(DriverError, match="silent"):
        driver.open()
    assert line[E.IN] == 1  # what it says when it comes back is taken at once
    line[E.HEARD] = time.monotonic_ns()
    driver.open()


def test_who_lost_its_seat_by_silence_is_called_silent_and_not_closed():
    """The lane may have seen it before the driver did; and it stays so at every further look."""
    driver, line = watch()
    driver.open()
    line[E.SEATED], line[E.HEARD] = 1, time.monotonic_ns()
    driver.read(VALUES, STAMPS)
    line[E.SEATED] = SILENT
    for look in (lambda: driver.read(VALUES, STAMPS), driver.open):
        with pytest.raises(DriverError, match="silent"):
            look()
    line[E.SEATED], line[E.HEARD] = 1, time.monotonic_ns()
    driver.open()


def test_in_lockstep_it_may_think_as_long_as_it_likes():
    driver, line = watch(by_clock=False)
    driver.open()
    line[E.SEATED], line[E.HEARD] = 1, 1
    assert driver.read(VALUES, STAMPS) is False


def test_a_closed_connection_is_a_loss():
    driver, line = watch(by_clock=False)
    driver.open()
    line[E.SEATED], line[E.HEARD] = 1, time.monotonic_ns()
    driver.read(VALUES, STAMPS)
    line[E.SEATED] = 0
    with pytest.raises(DriverError, match="closed"):
        driver.read(VALUES, STAMPS)


def test_letting_go_waits_for_a_letter_on_its_way_but_not_for_ever():
    driver, line = watch()
    driver.open()
    line[E.BUSY] = 1
    began = time.monotonic()
    driver.close()
    assert 0.04 < time.monotonic() - began < 5.0


def test_a_report_says_what_is_not_known(name):
    lines = EcuLinks.create(name, 2)
    assert EcuLinks.attach(name).report(1).age_s == math.inf
    assert math.isnan(lines.report(1).offset_s)
    line = lines.table[1]
    line[E.CLOCKED], line[E.OFFSET], line[E.DELAY] = 1, -1_500_000_000, 150_000
    line[E.HEARD], line[E.ROUND_P50], line[E.ROUND_P99] = time.monotonic_ns() - 10**9, 300_000, 900_000
    report = EcuLinks.attach(name).report(1)
    assert (report.offset_s, report.delay_us, report.round_trip_p50_us) == (-1.5, 150.0, 300.0)
    assert 1.0 <= report.age_s < 60.0
    lines.close()
