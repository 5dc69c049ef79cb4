"""Spoiled frames into every decoder, judged by tools/fuzz_decoders.py: a quick round, and a million with -m slow."""

import struct

import pytest
from fuzz_buses import CanFrames, HidDescriptors, HidReports, ModbusTcp, UdpDatagram
from fuzz_decoders import TARGETS, run
from fuzz_serial import (
    SerialBinary,
    SerialCrc8,
    SerialCrc16,
    SerialCsv,
    SerialLength,
    SerialRegex,
    SerialSum,
    SerialXor,
    crc16,
)

from drivers.can import layout
from drivers.hid import decoder, report
from drivers.serial import frames


@pytest.mark.parametrize("target", TARGETS)
def test_twenty_thousand_frames(target):
    taken, refused = run(TARGETS[target](), 20_000)
    assert taken > 10_000
    assert refused > 1_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", TARGETS)
def test_a_million_frames(target):
    run(TARGETS[target](), 1_000_000, seed=2)


@pytest.mark.parametrize(
    "target", [SerialBinary, SerialSum, SerialXor, SerialCrc8, SerialCrc16, SerialLength, SerialCsv, SerialRegex]
)
def test_a_decoder_that_does_not_look_at_the_checksum_is_found_out(target, monkeypatch):
    monkeypatch.setattr(frames.Check, "holds", lambda self, body: True)
    with pytest.raises((AssertionError, ValueError)):
        run(target(), 1000)


def test_a_decoder_that_gets_the_order_wrong_is_found_out(monkeypatch):
    target = UdpDatagram()
    monkeypatch.setattr(target.driver._in, "_struct", struct.Struct("<3f"))
    with pytest.raises(AssertionError):
        run(target, 100)


@pytest.mark.parametrize(
    "answer",
    [
        "0007 0000 000a 05 03 07 788f 73f8 2d63",  # an odd count, and a byte too few
        "0007 0000 000d 05 03 07 788f 73f8 2d63 00 0000 00",  # an odd count
        "0007 0000 000b 05 03 06 788f 73f8 2d63 0102",  # more than its count says
        "0007 0000 0007 05 03 04 788f 73f8",  # fewer words than were asked for
    ],
)
def test_an_answer_with_a_wrong_count_is_refused(answer):
    assert ModbusTcp().check(bytes.fromhex(answer)) == 0


def test_a_decoder_that_takes_reports_that_are_cut_is_found_out():
    target = HidReports()
    target.decoder._reports[1].length -= 1
    with pytest.raises(AssertionError):
        run(target, 1000)


def test_a_decoder_that_does_not_know_the_sign_is_found_out(monkeypatch):
    monkeypatch.setattr(decoder.Field, "is_signed", False)
    with pytest.raises(AssertionError):
        run(HidReports(), 100)


def test_a_parser_that_gets_ranges_wrong_is_found_out(monkeypatch):
    monkeypatch.setattr(report, "_range", lambda low, high: (low[0], high[0] // 2))
    with pytest.raises(AssertionError):
        run(HidDescriptors(), 100)


def test_a_decoder_that_takes_pages_that_the_database_has_not_is_found_out(monkeypatch):
    monkeypatch.setattr(layout.Layout, "_chosen", lambda self, words: [self._top])
    with pytest.raises(AssertionError):
        run(CanFrames(), 100)


def test_the_checksum_of_the_judge_is_that_of_the_catalogue():
    assert crc16(b"123456789") == 0x4B37
