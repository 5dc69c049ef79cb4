"""The parameter table: units, ranges, what is refused and in which words."""

import math

import pytest

from plant.machines.excavator.linkage import ranges
from plant.machines.excavator.parameters import TABLE, UNITS, ParameterError, Parameters


def test_every_parameter_has_a_unit_a_source_and_lies_in_its_range() -> None:
    for name, parameter in TABLE.items():
        values = parameter.value if isinstance(parameter.value, tuple) else (parameter.value,)
        assert parameter.unit in UNITS, name
        assert parameter.source, name
        assert all(parameter.low <= v <= parameter.high for v in values), name


@pytest.mark.parametrize(
    ("name", "text", "si"),
    [
        ("boom.mass", "1.7 t", 1700.0),
        ("boom.mass", "1700kg", 1700.0),
        ("boom.mass", "1.7e3 kg", 1700.0),
        ("boom.mass", " 17E+2 kg ", 1700.0),
        ("pump.flow", "400 l/min", 0.4 / 60),
        ("pump.relief", "35 MPa", 35e6),
        ("swing.torque", "60 kN m", 60e3),
        ("steer.most", "0.5 rad", 0.5),
        ("engine.rated", "2000 rpm", 2000 * math.pi / 30),
        ("tire.grip", 0.5, 0.5),
        ("tire.grip", "55 %", 0.55),
        ("tire.grip", "6e-1", 0.6),
    ],
)
def test_overrides_with_units(name: str, text: object, si: float) -> None:
    assert Parameters({name: text})[name] == pytest.approx(si, rel=1e-12)


def test_points_keep_their_order() -> None:
    p = Parameters({"boom.pin": "(300, 0, 7.0e2) mm"})
    assert p.point("boom.pin") == pytest.approx((0.3, 0.0, 0.7))
    with pytest.raises(TypeError, match=r"ask for point\('boom.pin'\)"):
        p["boom.pin"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"boom.mas": "1 t"}, ["boom.mas", "boom.mass"]),
        ({"boom.mass": "1700"}, ["boom.mass", "'1700'", "kg, t", "'1750 kg'"]),
        ({"boom.mass": 1700}, ["boom.mass", "1700", "kg, t"]),
        ({"boom.mass": "1.7 m"}, ["boom.mass", "'1.7 m'", "kg, t"]),
        ({"boom.mass": "heavy"}, ["boom.mass", "'heavy'", "kg, t"]),
        ({"boom.mass": "-5 kg"}, ["boom.mass", "'-5 kg'", "from 1 to 50000 kg"]),
        ({"boom.mass": "nan kg"}, ["boom.mass", "'nan kg'"]),
        ({"boom.mass": "1, 2 kg"}, ["boom.mass", "a number"]),
        ({"boom.mass": "1-2 kg"}, ["boom.mass", "'1-2 kg'", "a number"]),
        ({"boom.mass": True}, ["boom.mass", "True"]),
        ({"tire.grip": True}, ["tire.grip", "True"]),
        ({"boom.pin": "1, 2 m"}, ["boom.pin", "3 numbers"]),
        ({"boom.pin": [0.3, 0.0, 0.7]}, ["boom.pin", "3 numbers with commas", "m, mm, cm"]),
        ({"boom.cylinder.lengths": "1.5, 1.4 m"}, ["boom.cylinder.lengths", "1.5, 1.4 m", "closed length"]),
        ({"boom.cylinder.lengths": "1.0, 2.5 m"}, ["boom.cylinder.lengths", "above 1.5 m"]),
        ({"stick.cylinder.rod": "130 mm"}, ["stick.cylinder.rod", "thinner"]),
        ({"engine.idle": "2500 rpm"}, ["engine.idle", "engine.rated"]),
        ({"bucket.struck": "2 m^3"}, ["bucket.struck", "bucket.heaped"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        Parameters(given)
    for word in words:
        assert word in str(refused.value)


def test_geometry_that_cannot_close_is_refused() -> None:
    with pytest.raises(ParameterError, match="reaches no angle at all: the bucket's linkage cannot close"):
        ranges(Parameters({"link.length": "3 m"}))
