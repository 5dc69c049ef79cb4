"""Sensors of the machine: what they show against the truth, with the errors that were asked for."""

import math

import numpy as np
import pytest
from excavator_cases import rig

from plant.machines.excavator.parameters import ParameterError
from plant.machines.excavator.plant import create
from plant.machines.excavator.sensing import DEFAULTS

PLAIN = {"noise": 0.0, "quantum": 0.0, "delay": 0, "lag": 0.0, "bias": 0.0, "walk": 0.0}
OWN = {
    "boom.angle": PLAIN,
    "stick.angle": PLAIN | {"delay": 25},
    "bucket.angle": PLAIN | {"quantum": 0.05},
    "swing.angle": PLAIN | {"bias": 0.1, "gain_error": 0.02},
    "tilt.pitch": PLAIN | {"noise": 0.01},
    "tilt.roll": PLAIN | {"lag": 0.2},
    "boom.pressure_a": PLAIN | {"high": 5e6},
    "imu.az": PLAIN | {"failure": -99.0, "dropout_rate": 50.0, "dropout_time": 0.005},
}


def watch(options: dict[str, object], seconds: float = 2.0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Truth and readings of every step."""
    r = rig(**options)
    r.hold(**{"left.y": 0.7, "left.x": 0.5, "right.x": 0.6, "right.y": -0.5})
    rows = []
    for _ in range(round(seconds / r.dt)):
        r.step()
        rows.append(r.outputs.copy())
    table = np.array(rows)
    true = {name: table[:, r._output[name]] for name in DEFAULTS}
    return true, {name: table[:, r._output[f"sensor.{name}"]] for name in DEFAULTS}


@pytest.fixture(scope="module")
def own() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return watch({"sensors": OWN})


def test_a_perfect_sensor_shows_the_truth(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    assert np.ptp(true["boom.angle"]) > 0.1
    assert (seen["boom.angle"] == true["boom.angle"]).all()


def test_delay(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    assert (seen["stick.angle"][25:] == true["stick.angle"][:-25]).all()
    assert np.ptp(true["stick.angle"]) > 0.1


def test_quantisation(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    steps = seen["bucket.angle"] / 0.05
    assert np.abs(steps - np.round(steps)).max() < 1e-9
    assert np.abs(seen["bucket.angle"] - true["bucket.angle"]).max() <= 0.025 + 1e-12
    assert len(np.unique(np.round(steps))) > 3


def test_bias_and_gain(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    assert seen["swing.angle"] == pytest.approx(1.02 * true["swing.angle"] + 0.1, abs=1e-12)
    assert np.ptp(true["swing.angle"]) > 0.1


def test_noise(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    """2000 readings: standard deviation within 6 %, mean within 3 sigma of zero, and white."""
    true, seen = own
    error = seen["tilt.pitch"] - true["tilt.pitch"]
    assert error.std() == pytest.approx(0.01, rel=0.06)
    assert abs(error.mean()) < 3 * 0.01 / math.sqrt(error.size)
    assert abs(np.corrcoef(error[1:], error[:-1])[0, 1]) < 0.07


def test_lag(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    y = seen["tilt.roll"][0]
    expected = [y]
    for x in true["tilt.roll"][1:]:
        y += (1 - math.exp(-1e-3 / 0.2)) * (x - y)
        expected.append(y)
    assert seen["tilt.roll"] == pytest.approx(np.array(expected), abs=1e-12)
    assert np.abs(seen["tilt.roll"] - true["tilt.roll"]).max() > 1e-4


def test_range_and_dropouts(own: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]) -> None:
    true, seen = own
    assert true["boom.pressure_a"].max() > 5e6
    assert (seen["boom.pressure_a"] == np.clip(true["boom.pressure_a"], 0.0, 5e6)).all()
    failed = seen["imu.az"] == -99.0
    assert 0.05 < failed.mean() < 0.4  # 50 a second of 5 ms each: a fifth of the time
    assert (seen["imu.az"][~failed] == true["imu.az"][~failed]).all()


def test_default_errors_are_those_of_the_table() -> None:
    """Noise of every channel that stands still enough to see it, from its readings at rest."""
    r = rig()
    r.hold(parking=1.0)
    r.run(3.0)
    rows = []
    for _ in range(1500):
        r.step()
        rows.append(r.outputs.copy())
    table = np.array(rows)
    for name, errors in DEFAULTS.items():
        error = table[:, r._output[f"sensor.{name}"]] - table[:, r._output[name]]
        expected = math.hypot(errors["noise"], errors.get("quantum", 0.0) / math.sqrt(12))
        if name.endswith("_b") or (name.endswith("_a") and table[:, r._output[name]].mean() < 1e6):
            continue  # no pressure below zero is shown: half of the noise is cut off
        assert error.std() == pytest.approx(expected, rel=0.1), name
        drift = 5 * errors.get("walk", 0.0)
        assert error.mean() == pytest.approx(errors.get("bias", 0.0), abs=expected / 8 + drift), name


def test_imu_at_rest_feels_gravity() -> None:
    r = rig()
    r.hold(parking=1.0)
    r.run(8.0)
    force = np.array([r[f"imu.a{k}"] for k in "xyz"])
    assert np.linalg.norm(force) == pytest.approx(9.80665, rel=1e-3)
    assert force[2] > 9.7
    assert force[0] == pytest.approx(9.80665 * math.sin(r["tilt.pitch"]), abs=5e-3)
    assert [r[f"imu.g{k}"] for k in "xyz"] == pytest.approx([0, 0, 0], abs=1e-3)


def test_seeds_differ_and_repeat() -> None:
    runs = [watch({"seed": seed}, 0.05)[1]["boom.angle"].tobytes() for seed in (1, 2, 1)]
    assert runs[0] == runs[2]
    assert runs[0] != runs[1]


@pytest.mark.parametrize(
    ("sensors", "words"),
    [
        ({"boom.angel": {}}, ["boom.angel", "boom.angle"]),
        ({"boom.angle": 3}, ["boom.angle", "3", "noise"]),
        ({"boom.angle": {"nois": 0.1}}, ["boom.angle", "nois"]),
        ({"boom.angle": {"noise": -0.1}}, ["boom.angle", "noise", "-0.1"]),
        ({"boom.angle": {"noise": "a lot"}}, ["boom.angle", "noise", "a lot"]),
        ({"boom.angle": {"delay": 1.5}}, ["boom.angle", "delay", "1.5"]),
        ({"boom.angle": {"source": 3}}, ["boom.angle", "source"]),
        ({"imu.ax": {"low": 5.0, "high": -5.0}}, ["imu.ax", "low", "high"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(sensors: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        create(1e-3, terrain="level", objects=0, sensors=sensors)
    for word in words:
        assert word in str(refused.value)
