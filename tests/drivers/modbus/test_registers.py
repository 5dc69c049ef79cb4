"""Numbers in registers: against numpy's own byte orders, the four layouts that manuals print, and random words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.modbus.registers import LIMITS, TYPES, Block, Point, blocks_of, overlap

DTYPES = {"int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4"}
WORD = st.integers(0, 0xFFFF)


def point(type_: str = "uint16", address: int = 0, *, table: str = "holding", name: str = "x", **more: object) -> Point:
    return Point(name, table, address, type_, **more)  # type: ignore[arg-type]


def encoded(p: Point, value: float) -> list[int]:
    cells = [0] * p.size
    p.encode(value, cells, 0)
    return cells


@pytest.mark.parametrize(
    ("words", "bytes_", "layout"),
    [("big", "big", "ABCD"), ("little", "big", "CDAB"), ("big", "little", "BADC"), ("little", "little", "DCBA")],
)
def test_the_four_layouts_of_manuals(words, bytes_, layout):
    """123456.0 is 47F12000 in IEEE 754; A is 47, D is 00."""
    by_letter = dict(zip("ABCD", bytes.fromhex("47f12000"), strict=True))
    on_the_wire = bytes(by_letter[letter] for letter in layout)
    cells = [int.from_bytes(on_the_wire[:2], "big"), int.from_bytes(on_the_wire[2:], "big")]
    p = point("float32", words=words, bytes=bytes_)
    assert p.decode(cells, 0) == 123456.0
    assert encoded(p, 123456.0) == cells


@pytest.mark.parametrize("type_", TYPES)
@given(cells=st.lists(WORD, min_size=2, max_size=2))
def test_any_words_become_what_numpy_makes_of_them(type_, cells):
    size = np.dtype(DTYPES[type_]).itemsize
    expected = np.frombuffer(np.array(cells, ">u2").tobytes()[:size], ">" + DTYPES[type_])[0]
    got = point(type_).decode(cells, 0)
    assert got == float(expected) or (math.isnan(got) and math.isnan(expected))


@pytest.mark.parametrize("type_", [t for t in TYPES if t != "float32"])
@pytest.mark.parametrize("words", ["big", "little"])
@pytest.mark.parametrize("bytes_", ["big", "little"])
@given(cells=st.lists(WORD, min_size=2, max_size=2))
def test_whole_numbers_come_back_bit_for_bit(type_, words, bytes_, cells):
    p = point(type_, words=words, bytes=bytes_)
    assert encoded(p, p.decode(cells[: p.size], 0)) == cells[: p.size]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_come_back(value):
    p = point("float32", words="little")
    assert p.decode(encoded(p, value), 0) == value


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("value", [1e300, -1e300, math.inf, -math.inf])
def test_what_does_not_fit_becomes_the_limit(type_, value):
    p = point(type_)
    info = np.iinfo(DTYPES[type_]) if "int" in type_ else np.finfo(DTYPES[type_])
    assert p.decode(encoded(p, value), 0) == float(info.max if value > 0 else info.min)
    assert LIMITS[type_] == (float(info.min), float(info.max))


@pytest.mark.parametrize("type_", [*TYPES, "bit"])
def test_not_a_number_is_never_sent(type_):
    with pytest.raises(ValueError, match="x is not a number: holding 0"):
        encoded(point(type_), math.nan)


def test_scale_and_offset():
    """A temperature in tenths of a degree from -100 on: 1234 is 23.4."""
    p = point("uint16", scale=0.1, offset=-100.0)
    assert p.decode([1234], 0) == pytest.approx(23.4)
    assert encoded(p, 23.4) == [1234]
    assert encoded(p, 23.44) == [1234]
    assert encoded(p, 23.46) == [1235]


def test_a_bit_leaves_its_neighbours_alone():
    p = point("bit", bit=3)
    cells = [0b1010_0000_0000_0001]
    p.encode(1.0, cells, 0)
    assert cells == [0b1010_0000_0000_1001]
    assert p.decode(cells, 0) == 1.0
    p.encode(0.0, cells, 0)
    assert cells == [0b1010_0000_0000_0001]
    swapped = point("bit", bit=3, bytes="little")
    assert swapped.decode([0x0800], 0) == 1.0
    swapped.encode(0.0, cells := [0xFFFF], 0)
    assert cells == [0xF7FF]


def test_a_contact_can_be_turned_round():
    p = point("bit", table="discrete", scale=-1.0, offset=1.0)
    assert [p.decode([c], 0) for c in (0, 1)] == [1.0, 0.0]
    assert [encoded(p, v) for v in (0.0, 1.0)] == [[1], [0]]


def spans(blocks: list[Block]) -> list[tuple[str, int, int]]:
    return [(b.table, b.first, b.count) for b in blocks]


def test_neighbours_share_a_request():
    points = [
        point("float32", 10),
        point("uint16", 0),
        point("uint16", 12),
        point("uint16", 1),
        point("bit", 13, bit=2),
    ]
    points += [point("bit", 0, table="coil"), point("uint16", 14, table="input")]
    made = blocks_of(enumerate(points), gap=0, registers=125, bits=2000)
    assert spans(made) == [("coil", 0, 1), ("input", 14, 1), ("holding", 0, 2), ("holding", 10, 4)]
    assert [number for number, _ in made[3].members] == [0, 2, 4]


@pytest.mark.parametrize(("gap", "requests"), [(7, 2), (8, 1)])
def test_a_gap_may_be_read_over(gap, requests):
    points = [point("float32", 0), point("uint16", 10)]
    assert len(blocks_of(enumerate(points), gap=gap, registers=125, bits=2000)) == requests


@given(st.lists(st.integers(0, 600), unique=True, max_size=80), st.integers(0, 20), st.integers(2, 125))
def test_every_channel_is_in_one_request_and_no_request_is_too_long(starts, gap, most):
    points = [point("int32", 2 * s) for s in starts]
    made = blocks_of(enumerate(points), gap=gap, registers=most, bits=2000)
    members = [number for block in made for number, _ in block.members]
    assert sorted(members) == list(range(len(points)))
    for block in made:
        assert block.count <= most
        assert block.first == min(p.address for _, p in block.members)
        assert block.first + block.count == max(p.end for _, p in block.members)


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (point("float32", 0), point("uint16", 1), True),
        (point("float32", 0), point("uint16", 2), False),
        (point("float32", 0), point("float32", 1), True),
        (point("uint16", 0), point("uint16", 0, table="input"), False),
        (point("bit", 5, bit=1), point("bit", 5, bit=2), False),
        (point("bit", 5, bit=1), point("bit", 5, bit=1), True),
        (point("bit", 5, bit=1), point("uint16", 5), True),
        (point("bit", 5, bit=1), point("int32", 4), True),
        (point("bit", 5, table="coil"), point("bit", 5, table="coil"), True),
    ],
)
def test_overlaps(one, other, collide):
    assert (overlap([one, other]) is not None) == collide
    assert (overlap([other, one]) is not None) == collide
