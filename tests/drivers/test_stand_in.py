"""A twin that is a driver itself: it has the device's channels and does the work of another kind."""

from __future__ import annotations

import time

import numpy as np
import pytest

from drivers import registry
from drivers.base import OptionError
from drivers.stand_in import StandIn

INPUTS = [
    {"name": "parking", "low": 0.0, "high": 1.0, "default": 1.0},
    {"name": "stick", "low": -1.0, "high": 1.0},
    {"name": "gear", "low": 1.0, "high": 3.0, "default": 1.0},
]
WORK = {
    "kind": "operator",
    "sees": {"angle": "rad"},
    "channels": [{"name": "stick", "low": -1.0, "high": 1.0}],
    "ramp_s": 0.0,
    "phases": [{"name": "lift", "go": {"stick": {"see": "angle", "to": 1.0, "gain": 0.5}}}],
}


def pair(twin: dict, outputs=({"name": "speed", "unit": "m/s"}, {"name": "angle", "unit": "rad"})):
    return registry.create_pair("ecu", "cab", {"inputs": INPUTS, "outputs": list(outputs), "twin": twin})


def test_it_moves_what_it_knows_by_name_and_leaves_the_rest_at_its_default() -> None:
    real, twin = pair(WORK)
    assert isinstance(twin, StandIn)
    assert (twin.inputs, twin.outputs, twin.name) == (real.inputs, real.outputs, "cab")
    twin.driven = frozenset({"angle", "speed"})
    twin.open()
    values, stamps = np.full(3, np.nan), np.zeros(3, np.int64)
    twin.live = True
    twin.write(np.array([9.0, 0.2]))  # speed, angle
    before = time.monotonic_ns()
    assert twin.read(values, stamps)
    np.testing.assert_allclose(values, [1.0, 0.5 * (1.0 - 0.2), 1.0])
    assert (stamps >= before).all()
    twin.close()


def test_what_troubles_it_is_told() -> None:
    _, twin = pair(WORK)
    twin.driven = frozenset({"speed"})
    twin.open()
    twin.live = True
    twin.write(np.array([0.0, 0.0]))
    twin.read(np.zeros(3), np.zeros(3, np.int64))
    assert 'it does not see angle: nothing is written there; [signals.outputs."cab.angle"]' in twin.trouble


@pytest.mark.parametrize(
    ("twin", "outputs", "what"),
    [
        (WORK, [], r"drivers.cab.twin: it sees 'angle', which is not among the outputs of cab"),
        (WORK, [{"name": "angle", "unit": "deg"}], r"it sees 'angle' in 'rad', but cab.angle is in 'deg'"),
        (
            {"kind": "operator", "points": [{"t": 0, "stock": 0.0}]},
            [],
            r"drivers.cab.twin: it moves 'stock', which is not among the inputs of cab: did you mean 'stick'",
        ),
        ({"kind": "operator"}, [], r"drivers.cab.twin: has no script"),
        ({"kind": "operator", "loops": True}, [], r"drivers.cab.twin.loops"),
    ],
)
def test_what_does_not_fit_is_refused(twin: dict, outputs: list, what: str) -> None:
    with pytest.raises(OptionError, match=what):
        pair(twin, outputs)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Exception, match="driver kind 'operater' is not known: did you mean 'operator'"):
        pair({"kind": "operater"})
