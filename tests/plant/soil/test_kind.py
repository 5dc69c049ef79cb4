"""Soil, buckets and grounds that cannot be are refused with name, value and range."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from soil_cases import Plot, a_bucket, flat

from plant.soil.bucket import Bucket
from plant.soil.kind import PARAMETERS, SoilError, SoilKind


def test_every_parameter_has_a_range_a_unit_and_a_meaning() -> None:
    assert {f.name for f in dataclasses.fields(SoilKind)} == set(PARAMETERS)
    for p in PARAMETERS.values():
        assert p.low < p.high
        assert p.unit
        assert p.doc


@pytest.mark.parametrize("name", sorted(PARAMETERS))
@pytest.mark.parametrize("value", [-1e12, 1e12, math.nan, "much", True])
def test_soil_out_of_range(name: str, value: Any) -> None:
    p = PARAMETERS[name]
    with pytest.raises(SoilError, match=rf"{name} {value!r} must be a number from") as caught:
        SoilKind(**{name: value})
    assert f"{p.low:g} to {p.high:g}" in str(caught.value)


def test_a_wall_is_steeper_than_a_heap() -> None:
    with pytest.raises(SoilError, match=r"wall 0.5 rad must be at least repose 0.6 rad"):
        SoilKind(wall=0.5, repose=0.6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"struck": 0.0}, "struck 0.0 must be a number from 1e-06 to 10000 m\\^3"),
        ({"struck": 2.0, "heaped": 1.0}, "heaped 1.0 must be a number from 2"),
        ({"slices": 0}, "slices 0 must be a number from 1 to 64"),
        ({"slices": 2.5}, "slices 2.5 must be a whole number"),
        ({"lip_mass": -1.0}, "lip_mass -1.0 must be above 0"),
        ({"over_lip": (1.0, 0.5)}, "over_lip must begin before it ends, not 1 to 0.5"),
        ({"left": (0, 1)}, "left .* three finite numbers"),
        ({"hinge": (0, 0, 0)}, "hinge must lie off the line of the lip"),
        ({"right": (0, 0.6, 0)}, "left and right must be apart"),
        ({"hull": np.zeros((5, 3))}, "hull: .*one plane"),
        ({"inside": (0, 0, 0.3)}, "no inner side"),
        ({"inside": (-1, 0, 0.3)}, "inner side of the mouth"),
    ],
)
def test_buckets_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SoilError, match=words):
        a_bucket(**changes).constants()


def test_the_centre_of_mass_moves_all_of_the_bucket() -> None:
    a, b = a_bucket().constants(), a_bucket().constants((0.1, 0.2, 0.3))
    assert a.lip - b.lip == pytest.approx(np.tile([0.1, 0.2, 0.3], (2, 1)))
    assert a.full_centre - b.full_centre == pytest.approx([0.1, 0.2, 0.3])
    assert b.plane[:, 3] == pytest.approx(a.plane[:, 3] - a.plane[:, :3] @ [0.1, 0.2, 0.3])
    assert a.edge == pytest.approx([-1, 0, 0])
    assert isinstance(a_bucket(), Bucket)


@pytest.mark.parametrize(
    ("soil", "words"),
    [
        ({"soil": [3]}, "soil: patch 3 is not there; the ground has patches 0 to 0"),
        ({"soil": [0], "beds": [0]}, "beds: patch 0 is named twice"),
        ({"soil": []}, "no patch is named"),
        ({"parcels": 1}, "parcels 1 must be a whole number from 2"),
        ({"budget": 0}, "budget 0 must be a whole number from 1"),
        ({"seed": -1}, "seed -1 must be a whole number from 0"),
        ({"loose": {1: 0.1}}, "loose: patch 1 is not one of soil and beds"),
        ({"loose": {0: np.zeros(3)}}, "patch 0 has \\(11, 11\\) samples, its layer \\(3,\\)"),
        ({"loose": {0: -1.0}}, "must be finite and not below 0 m"),
    ],
)
def test_grounds_that_cannot_be(soil: dict[str, Any], words: str) -> None:
    with pytest.raises(SoilError, match=words):
        Plot([(flat(11), (0, 0, 0))], **soil)
