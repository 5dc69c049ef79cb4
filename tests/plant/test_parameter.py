"""Parameters are refused with their name, value, unit, range and meaning."""

import math
from dataclasses import dataclass

import pytest

from plant.parameter import Checked, quantity


@dataclass(frozen=True)
class Thing(Checked):
    size: float = quantity(1.0, "m", low=0.0, above=True, high=5.0, doc="how large it is")
    shift: float = quantity(0.0, "m", doc="where it is")
    top: float = quantity(math.inf, "m", infinite=True, doc="where it ends")
    name: str = "thing"


def test_what_is_allowed_passes() -> None:
    assert Thing(size=5, shift=-1e9, top=math.inf).size == 5
    assert Thing(size=1e-9).shift == 0


@pytest.mark.parametrize("bad", [0.0, -1.0, 5.1, math.nan, math.inf, "1", None, True])
def test_what_is_not_is_refused(bad) -> None:
    with pytest.raises(ValueError, match=r"Thing\.size = .* m must be above 0 and at most 5: how large it is"):
        Thing(size=bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_endless_only_where_it_may_be(bad: float) -> None:
    with pytest.raises(ValueError, match=r"Thing\.shift = .* m must be a finite number: where it is"):
        Thing(shift=bad)
