"""Conversions against their closed forms, and the ways in which units are refused."""

import math
import subprocess
import sys
import time

import pytest

from hilnode.core import units
from hilnode.core.units import UnitError, conversion


@pytest.mark.parametrize(
    ("source", "target", "scale", "offset"),
    [
        ("deg", "rad", math.pi / 180, 0.0),
        ("rad", "deg", 180 / math.pi, 0.0),
        ("rpm", "rad/s", 2 * math.pi / 60, 0.0),
        ("turn/s", "rpm", 60.0, 0.0),
        ("bar", "Pa", 1e5, 0.0),
        ("degC", "K", 1.0, 273.15),
        ("K", "degC", 1.0, -273.15),
        ("degF", "degC", 5 / 9, -160 / 9),
        ("degC", "degF", 9 / 5, 32.0),
        ("degC/s", "K/min", 60.0, 0.0),
        ("kN*m", "N*m", 1e3, 0.0),
        ("Nm", "N*m", 1.0, 0.0),
        ("N·m", "J", 1.0, 0.0),
        ("l/min", "m^3/s", 1e-3 / 60, 0.0),
        ("J/(kg*K)", "kJ/kg/K", 1e-3, 0.0),
        ("m/s**2", "mm/s^2", 1e3, 0.0),
        ("%", "1", 0.01, 0.0),
    ],
)
def test_closed_forms(source, target, scale, offset):
    got = conversion(source, target)
    assert got == pytest.approx((scale, offset), rel=1e-12, abs=1e-12)


def test_a_step_of_a_degree_keeps_its_exact_scale():
    assert conversion("degC", "K")[0] == 1.0


@pytest.mark.parametrize(("source", "target"), [("V", "m"), ("m^2", "m"), ("kg", "N")])
def test_different_quantities_are_refused(source, target):
    with pytest.raises(UnitError) as caught:
        conversion(source, target)
    assert str(caught.value) == f"cannot convert {source!r} into {target!r}: they measure different things"


@pytest.mark.parametrize(("source", "target"), [("rpm", "Hz"), ("Hz", "rad/s"), ("rad", "1"), ("N*m/rad", "N*m")])
def test_an_angle_is_never_lost(source, target):
    with pytest.raises(UnitError, match="holds an angle"):
        conversion(source, target)


def test_a_curve_is_refused():
    with pytest.raises(UnitError, match="need a curve"):
        conversion("dB", "1")


def test_an_unknown_unit_says_what_to_write():
    with pytest.raises(UnitError, match=r"unknown unit 'furlongs_per_moon'.*'N\*m'"):
        conversion("furlongs_per_moon", "m/s")


@pytest.mark.parametrize(
    "nonsense", ["", " ", "9**9**9**9", "m^9^9^9", "(m^9)^9", "m" * 41, "m\0", "import os", "m)", "((m))", "-m", "m^99"]
)
def test_what_is_not_written_like_a_unit_is_refused_at_once(nonsense):
    began = time.monotonic()
    with pytest.raises(UnitError, match="not written like a unit"):
        conversion(nonsense, "m")
    assert time.monotonic() - began < 1.0


def test_equal_units_never_import_pint():
    code = (
        "import sys; from hilnode.core.units import conversion; print(conversion('rad', 'rad'), 'pint' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "(1.0, 0.0) False"


def test_without_pint_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    units._registry.cache_clear()
    units._convert.cache_clear()
    assert conversion("deg", "deg") == (1.0, 0.0)
    with pytest.raises(UnitError, match=r"pip install hilnode\[units\]"):
        conversion("deg", "rad")
