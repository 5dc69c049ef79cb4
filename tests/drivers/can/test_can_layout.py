"""The bits of CAN messages, against cantools on random frames and against published layouts worked out by hand."""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path

import cantools
import numpy as np
import pytest
from cantools.database.can import Message

from drivers.can.layout import FD_LENGTHS, Layout, field_of

DATABASE = cantools.database.load_file(Path(__file__).with_name("machine.dbc"))
NAMES = [m.name for m in DATABASE.messages]
NOW = 12345

EXTENDED_MUX = """VERSION ""
BU_: A
BO_ 100 Nested: 8 A
 SG_ Outer M : 0|8@1+ (1,0) [0|0] "" A
 SG_ Inner m1M : 8|8@1+ (1,0) [0|0] "" A
 SG_ Deep0 m0 : 16|16@1- (0.5,3) [0|0] "" A
 SG_ Deep1 m1 : 23|16@0- (0.25,0) [0|0] "" A
 SG_ Flat m2 : 8|32@1+ (1,0) [0|0] "" A
 SG_ Both m2 : 40|8@1+ (1,0) [0|0] "" A
SG_MUL_VAL_ 100 Inner Outer 1-1;
SG_MUL_VAL_ 100 Deep0 Inner 0-3;
SG_MUL_VAL_ 100 Deep1 Inner 4-4, 9-9;
SG_MUL_VAL_ 100 Flat Outer 2-2;
SG_MUL_VAL_ 100 Both Outer 2-3;
"""


def made(message: Message) -> tuple[Layout, list[str], np.ndarray, np.ndarray]:
    names = [s.name for s in message.signals]
    layout = Layout(message, {name: k for k, name in enumerate(names)})
    return layout, names, np.zeros(len(names)), np.zeros(len(names), np.int64)


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def agree(message: Message, count: int, seed: int, pages: dict[int, list[int]]) -> int:
    """Random frames decoded by both; `pages` are bytes put in, so that multiplexers hit a page. How many had one."""
    layout, names, values, stamps = made(message)
    dice = random.Random(seed)
    taken = 0
    for _ in range(count):
        data = bytearray(dice.randbytes(message.length))
        for at, choices in pages.items():
            data[at] = dice.choice(choices)
        stamps[:] = 0
        try:
            want = message.decode(bytes(data), decode_choices=False)
        except cantools.database.DecodeError:
            with pytest.raises(ValueError, match="page"):
                layout.decode(data, NOW, values, stamps)
            assert not stamps.any()
            continue
        layout.decode(data, NOW, values, stamps)
        taken += 1
        assert [n for n, stamp in zip(names, stamps, strict=True) if stamp == NOW] == [n for n in names if n in want]
        wrong = [n for k, n in enumerate(names) if n in want and not same(values[k], float(want[n]))]
        assert not wrong, f"{message.name} {data.hex()}: {wrong}"
    return taken


@pytest.mark.parametrize("name", NAMES)
def test_random_frames_decode_as_cantools_decodes_them(name: str) -> None:
    message = DATABASE.get_message_by_name(name)
    pages = {"Diagnosis": {0: [0x30, 0x01, 0x57, 0x05]}, "MachinePages": {0: [1, 2, 3]}}.get(name, {})
    assert agree(message, 3000, 1, pages) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_thousand_random_frames(name: str) -> None:
    message = DATABASE.get_message_by_name(name)
    pages = {"Diagnosis": {0: [0x30, 0x01, 0x57]}, "MachinePages": {0: [1, 2]}}.get(name, {})
    assert agree(message, 100_000, 2, pages) == 100_000


def test_multiplexers_within_multiplexers() -> None:
    message = cantools.database.load_string(EXTENDED_MUX, "dbc").get_message_by_name("Nested")
    assert agree(message, 3000, 3, {0: [0, 1, 1, 2, 3], 1: [0, 3, 4, 9, 5]}) > 1000
    layout = Layout(message, {s.name: k for k, s in enumerate(message.signals)})
    heads = {frame.encode([1.0] * len(message.signals))[:2] for frame in layout.frames()}
    assert heads >= {bytes([1, n]) for n in (0, 1, 2, 3, 4, 9)}
    assert len(layout.frames()) == 8


@pytest.mark.parametrize("name", NAMES)
def test_what_is_encoded_is_what_cantools_encodes(name: str) -> None:
    message = DATABASE.get_message_by_name(name)
    multiplexers = {s.name for s in message.signals if s.is_multiplexer}
    names = [s.name for s in message.signals if s.name not in multiplexers]
    frames = Layout(message, {n: k for k, n in enumerate(names)}).frames()
    dice = random.Random(4)
    for _ in range(300):
        values = {}
        for s in message.signals:
            low, high = field_of(s, message.length, 0).span
            low, high = (-1e6, 1e6) if s.is_float else (low if s.minimum is None else s.minimum, high)
            values[s.name] = dice.uniform(low, high if s.maximum is None else s.maximum)
        for frame, page in zip(frames, pages_of(message), strict=True):
            wanted = values | page
            fitting = {n: wanted[n] for n in message.gather_signals(wanted)}
            want = message.encode(fitting, strict=False)
            got = frame.encode([values[n] for n in names])
            assert got[: message.length] == want
            assert len(got) in FD_LENGTHS


def pages_of(message: Message) -> list[dict[str, int]]:
    tree = [node for node in message.signal_tree if isinstance(node, dict)]
    return [{name: page} for node in tree for name, pages in node.items() for page in pages] or [{}]


def test_j1939_engine_speed() -> None:
    """SAE J1939-71, SPN 190 in PGN 61444 (EEC1): bytes 4 and 5, Intel, 0.125 rpm per bit; 0x3E80 is 2000 rpm."""
    text = 'VERSION ""\nBU_: A\nBO_ 2364540158 EEC1: 8 A\n SG_ Speed : 24|16@1+ (0.125,0) [0|8031.875] "rpm" A\n'
    message = cantools.database.load_string(text, "dbc").messages[0]
    assert (message.frame_id, message.is_extended_frame) == (0x0CF004FE, True)
    layout, _, values, stamps = made(message)
    layout.decode(bytes.fromhex("f17d7d803e00f3ff"), NOW, values, stamps)
    assert values[0] == 2000.0


def test_obd_engine_speed() -> None:
    """ISO 15031-5, PID 0x0C: (256 A + B) / 4 rpm, Motorola; 1A F8 is 1726 rpm."""
    text = 'VERSION ""\nBU_: A\nBO_ 2024 Answer: 8 A\n SG_ Speed : 31|16@0+ (0.25,0) [0|16383.75] "rpm" A\n'
    layout, _, values, stamps = made(cantools.database.load_string(text, "dbc").messages[0])
    layout.decode(bytes.fromhex("04410c1af8000000"), NOW, values, stamps)
    assert values[0] == 1726.0


def test_short_frames_are_refused_and_long_ones_taken() -> None:
    layout, _, values, stamps = made(DATABASE.get_message_by_name("EngineData"))
    for length in range(8):
        with pytest.raises(ValueError, match=f"EngineData: a frame of {length} bytes, the database has 8"):
            layout.decode(bytes([255] * length), NOW, values, stamps)
    assert not values.any()
    assert not stamps.any()
    layout.decode(struct.pack("<H", 8000) + bytes(6) + b"\xff" * 4, NOW, values, stamps)
    assert values[0] == 1000.0


def test_numbers_that_do_not_fit_become_the_nearest_that_does() -> None:
    message = DATABASE.get_message_by_name("WideOut")
    (frame,) = Layout(message, {"Position": 0, "Force": 1, "Steps": 2}).frames()
    for given, back in ((1e300, 2.0**47 - 1), (-1e300, -(2.0**47)), (2.5, 2.0), (-3.6, -4.0)):
        decoded = message.decode(frame.encode([given, given, given])[:18])
        assert decoded["Position"] == given
        assert decoded["Steps"] == back
        assert decoded["Force"] == pytest.approx(max(min(given, 3.4028234663852886e38), -3.4028234663852886e38))
    for nonsense in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"Steps = .* is no number"):
            frame.encode([0.0, 0.0, nonsense])
