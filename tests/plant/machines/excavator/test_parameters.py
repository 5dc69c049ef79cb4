"""The parameter table: units, ranges, what is refused and in which words."""

import json
import math
from pathlib import Path

import pytest

from hilnode.config.config import load
from hilnode.core.problems import ConfigError
from hilnode.core.tables import FileTable
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


def entry(**more: object) -> dict[str, object]:
    """A good entry of a file, with changes; None takes a key away."""
    made = {"value": 1.9, "unit": "t", "source": "weighed"} | more
    return {key: value for key, value in made.items() if value is not None}


def test_a_file_changes_what_it_names_and_leaves_the_rest() -> None:
    pin = {"value": [300, 0, 700], "unit": "mm", "source": "drawing"}
    p = Parameters(FileTable("mine.toml", {"boom": {"mass": entry(), "pin": pin}}))
    assert p["boom.mass"] == pytest.approx(1900.0)
    assert p.point("boom.pin") == pytest.approx((0.3, 0.0, 0.7))
    assert p["stick.mass"] == TABLE["stick.mass"].value


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"boom": {"mas": entry()}}, ["mine.toml", "'boom.mas'", "boom.mass"]),
        ({"boom": {"mass": entry(unit="m")}}, ["mine.toml", "boom.mass", "'1.9 m'", "kg, t", "such as '1750 kg'"]),
        ({"boom": {"mass": entry(value=900)}}, ["mine.toml", "boom.mass", "'900 t'", "from 1 to 50000 kg"]),
        ({"boom": {"mass": entry(value="1.9")}}, ["mine.toml", "boom.mass.value", "'1.9'", "must be a number"]),
        ({"boom": {"mass": entry(value=True)}}, ["mine.toml", "boom.mass.value", "must be a number"]),
        ({"boom": {"mass": entry(source=None)}}, ["mine.toml", "boom.mass has no source", "source = ..."]),
        ({"boom": {"mass": entry(source=" ")}}, ["mine.toml", "boom.mass.source", "where the number comes from"]),
        ({"boom": {"mass": entry(unit=None)}}, ["mine.toml", "boom.mass has no unit"]),
        ({"boom": {"mass": entry(unit=3)}}, ["mine.toml", "boom.mass.unit = 3", "'kg'"]),
        ({"boom": {"mass": entry(low=1)}}, ["mine.toml", "boom.mass.low", "value, unit and source"]),
        ({"boom": {"pin": entry(unit="m")}}, ["mine.toml", "boom.pin", "3 numbers"]),
        ({"axle": {"front": entry(value=0.5, unit="km")}}, ["mine.toml", "axle.front", "m, mm, cm"]),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(table: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ParameterError) as told:
        Parameters(FileTable("mine.toml", table))
    assert all(word in str(told.value) for word in words), str(told.value)


def test_a_config_names_a_file(tmp_path: Path) -> None:
    """Relative to its own folder; the configuration then holds the table itself, so a recording needs no file."""
    (tmp_path / "heavy.toml").write_text('boom.mass = { value = 1.9, unit = "t", source = "weighed" }\n')
    config = tmp_path / "node.toml"
    config.write_text('plant.kind = "excavator"\nplant.options.parameters = "heavy.toml"\n')
    given = load(config).plant.options["parameters"]
    assert Parameters(given)["boom.mass"] == pytest.approx(1900.0)
    assert Parameters(json.loads(json.dumps(given)))["boom.mass"] == pytest.approx(1900.0)
    config.write_text('plant.options.parameters = "light.toml"\n')
    with pytest.raises(ConfigError, match=r"light\.toml"):
        load(config)
    (tmp_path / "heavy.toml").write_text("boom.mass = {\n")
    config.write_text('plant.options.parameters = "heavy.toml"\n')
    with pytest.raises(ConfigError, match=r"heavy\.toml"):
        load(config)
