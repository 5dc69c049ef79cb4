"""Records: what hot code sees through one pointer, and what is refused before it can look."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import pytest

from hilnode.core.jit import kernel
from hilnode.core.struct import F1, F2, F3, I1, I2, U1, Struct, viewer


class Inner(NamedTuple):
    gain: float
    table: F2
    count: int


class Middle(NamedTuple):
    first: I1
    inner: Inner
    last: U1


class Outer(NamedTuple):
    start: float
    middle: Middle
    cube: F3
    grid: I2
    other: Inner
    end: int


_outer = viewer(Outer)


@kernel
def _look(address, out):
    """Every scalar, shape and one element of each array into `out`; then a change to each array."""
    o = _outer(address)
    out[0], out[1] = o.start, o.end
    out[2], out[3] = o.middle.inner.gain, o.middle.inner.count
    out[4], out[5] = o.other.gain, o.other.count
    out[6], out[7] = o.middle.inner.table.shape[0], o.middle.inner.table.shape[1]
    out[8] = o.middle.inner.table[1, 2]
    out[9] = o.cube[1, 0, 3]
    out[10] = o.grid[2, 1]
    out[11] = o.middle.first.size
    out[12] = float(o.middle.last[0])
    o.middle.first[:] += 1
    o.middle.inner.table[0, 1] = -7.0
    o.cube[1, 1, 1] = -8.0
    o.grid[0, 0] = -9
    o.middle.last[1] = np.uint64(2**64 - 1)
    o.other.table[0, 0] = -10.0


@pytest.fixture
def content() -> Outer:
    inner = Inner(2.5, np.arange(12.0).reshape(3, 4), -3)
    middle = Middle(np.arange(5), inner, np.array([7, 8], np.uint64))
    cube = np.arange(16.0).reshape(2, 2, 4)
    return Outer(-0.0, middle, cube, np.arange(6).reshape(3, 2), Inner(math.inf, np.zeros((1, 1)), 2**62), -(2**63))


def test_nested_fields_are_found_and_changed_in_place(content):
    record = Struct(content)
    out = np.zeros(13)
    _look(record.address, out)
    expected = [-0.0, -(2.0**63), 2.5, -3, math.inf, 2.0**62, 3, 4, 6.0, 11.0, 5, 5, 7]
    assert out.tolist() == expected
    assert math.copysign(1.0, out[0]) == -1.0
    # what hot code wrote is in the arrays it was made of
    assert content.middle.first.tolist() == [1, 2, 3, 4, 5]
    assert content.middle.inner.table[0, 1] == -7.0
    assert content.cube[1, 1, 1] == -8.0
    assert content.grid[0, 0] == -9
    assert content.middle.last[1] == 2**64 - 1
    assert content.other.table[0, 0] == -10.0
    # and what is written there hot code sees
    content.middle.inner.table[1, 2] = 60.0
    content.grid[2, 1] = 50
    _look(record.address, out)
    assert (out[8], out[10]) == (60.0, 50)


def test_views_of_a_larger_array_are_taken_as_they_are(content):
    row = np.zeros(10)
    record = Struct(content._replace(cube=row[2:].reshape(2, 2, 2)))
    _look(record.address, np.zeros(13))
    assert row.tolist() == [0.0] * 9 + [-8.0]


def test_empty_arrays_are_fine(content):
    inner = content.middle.inner
    record = Struct(content._replace(middle=Middle(np.zeros(0, np.int64), inner, np.zeros(2, np.uint64))))
    out = np.zeros(13)
    _look(record.address, out)
    assert out[11] == 0


def test_two_records_of_one_kind_are_apart(content):
    other = Struct(content._replace(start=1.5))
    one = Struct(content)
    out = np.zeros(13)
    _look(other.address, out)
    assert out[0] == 1.5
    _look(one.address, out)
    assert out[0] == 0.0


WRONG = {
    "dtype": (np.arange(5.0), "float64"),
    "narrow": (np.arange(5, dtype=np.int32), "int32"),
    "byte order": (np.arange(5).astype(">i8"), ">i8"),
    "dimensions": (np.zeros((2, 2), np.int64), "2"),
    "stride": (np.arange(10)[::2], "contiguous"),
    "reversed": (np.arange(5)[::-1], "contiguous"),
    "list": ([1, 2, 3], "list"),
    "nothing": (None, "NoneType"),
}


@pytest.mark.parametrize("what", WRONG)
def test_array_that_does_not_fit_is_refused_by_name(content, what):
    value, named = WRONG[what]
    with pytest.raises(TypeError, match=r"Middle\.first must be a contiguous int64 array of 1 dimension") as error:
        Struct(content._replace(middle=content.middle._replace(first=value)))
    assert named in str(error.value)


def test_fortran_order_is_refused(content):
    with pytest.raises(TypeError, match=r"Inner\.table must be a contiguous float64 array of 2"):
        Struct(content._replace(other=Inner(0.0, np.zeros((3, 4), order="F"), 0)))


class Strange(NamedTuple):
    name: str


def test_field_that_no_record_can_hold_is_refused_by_name():
    for make in (lambda: viewer(Strange), lambda: Struct(Strange("x"))):
        with pytest.raises(TypeError, match=r"Strange\.name: a struct holds arrays"):
            make()


def test_unknown_field_is_a_typing_error():
    view = viewer(Inner)

    @numba.njit
    def look(address):
        return view(address).gian

    with pytest.raises(numba.TypingError, match="gian"):
        look(Struct(Inner(1.0, np.zeros((1, 1)), 0)).address)


def _state(*names: str):
    return NamedTuple("State", [(name, F1) for name in names])


def test_two_classes_of_one_name_keep_their_own_fields():
    one, other = _state("position", "speed"), _state("speed", "position")
    view_one, view_other = viewer(one), viewer(other)

    @numba.njit
    def look_one(address):
        return view_one(address).position[0]

    @numba.njit
    def look_other(address):
        return view_other(address).position[0]

    first = Struct(one(position=np.array([1.0]), speed=np.array([2.0])))
    second = Struct(other(position=np.array([10.0]), speed=np.array([20.0])))
    assert look_one(first.address) == 1.0
    assert look_other(second.address) == 10.0


def test_fraction_for_a_whole_number_is_refused():
    with pytest.raises(TypeError, match=r"Inner\.count"):
        Struct(Inner(1.0, np.zeros((1, 1)), 1.5))  # type: ignore[arg-type]
