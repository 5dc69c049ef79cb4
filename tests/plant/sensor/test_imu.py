"""IMU and inclinometer against motions whose accelerations are known."""

import math

import numpy as np
import pytest

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.sensor.imu import Imu, build_imus, read_imus, reset_imus, view_imus

G = 9.80665
H = 1e-3
DOWN = np.array([0.0, 0.0, -G])


@kernel
def _read(imus, gravity, h, quat, vel):
    read_imus(view_imus(imus), gravity, h, quat, vel)


@kernel
def _reset(imus):
    reset_imus(view_imus(imus))


class Bench:
    def __init__(self, *imus: Imu) -> None:
        self.imus = build_imus(list(imus))
        self.record = Struct(self.imus)

    def read(self, quat, vel):
        _read(self.record.address, DOWN, H, np.array([quat], float), np.array([vel], float))
        return self.imus.force[0].copy(), self.imus.rate[0].copy()


def turned(axis, angle):
    a = np.array(axis, float) / np.linalg.norm(axis)
    return np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * a])


STRAIGHT = (1, 0, 0, 0)


def test_at_rest_it_feels_g_upwards() -> None:
    bench = Bench(Imu(0, at=(0.3, -0.2, 0.1)))
    for _ in range(3):
        force, rate = bench.read(STRAIGHT, np.zeros(6))
        assert force == pytest.approx([0, 0, G], abs=1e-12)
        assert rate == pytest.approx([0, 0, 0], abs=0)


def test_in_free_fall_it_feels_nothing() -> None:
    bench = Bench(Imu(0))
    for n in range(100):
        force, _ = bench.read(turned((1, 2, 3), 0.7), (1, 2, -G * H * n, 0, 0, 0))
        if n:
            assert force == pytest.approx([0, 0, 0], abs=1e-9)


def test_constant_acceleration_is_exact() -> None:
    bench, a = Bench(Imu(0, at=(1, 1, 1))), np.array([1.5, -0.7, 2.0])
    for n in range(10):
        force, _ = bench.read(STRAIGHT, (*(a * H * n), 0, 0, 0))
    assert force == pytest.approx(a - DOWN, abs=1e-10)


@pytest.mark.parametrize("w", [0.5, 3.0, -8.0])
def test_on_a_turning_table_it_feels_the_centripetal_acceleration(w: float) -> None:
    """r w^2 inwards, at any distance, with nothing sideways but for the step's second order."""
    bench = Bench(Imu(0, at=(0.8, 0, 0)))
    for n in range(50):
        force, rate = bench.read(turned((0, 0, 1), w * H * n), (0, 0, 0, 0, 0, w))
    assert force == pytest.approx([-0.8 * w * w, 0, G], abs=0.8 * w * w * (w * H) ** 2 + 1e-9)
    assert rate == pytest.approx([0, 0, w])


def test_a_spin_that_grows_is_felt_tangentially() -> None:
    bench, angle = Bench(Imu(0, at=(0.5, 0, 0))), 0.0
    for n in range(20):
        w = 2.0 * H * n  # 2 rad/s^2
        force, _ = bench.read(turned((0, 0, 1), angle), (0, 0, 0, 0, 0, w))
        angle += H * (w + H)
    assert force[1] == pytest.approx(1.0, rel=1e-4)


def test_axes_are_the_sensors_own() -> None:
    """Mounted with its x axis up, on a body that is turned about z."""
    bench = Bench(Imu(0, quat=tuple(turned((0, 1, 0), -math.pi / 2))))
    force, rate = bench.read(turned((0, 0, 1), 1.0), (0, 0, 0, 0, 0, 0.3))
    assert force == pytest.approx([G, 0, 0], abs=1e-9)
    assert rate == pytest.approx([0.3, 0, 0], abs=1e-12)


@pytest.mark.parametrize(("pitch", "roll", "yaw"), [(0.2, 0, 0), (0, -0.3, 1), (0.5, 0.4, -2), (-1.2, 1.0, 3)])
def test_inclinometer_shows_pitch_and_roll(pitch: float, roll: float, yaw: float) -> None:
    def times(a, b):
        w, v, s, u = a[0], a[1:], b[0], b[1:]
        return np.concatenate([[w * s - v @ u], w * u + s * v + np.cross(v, u)])

    q = times(times(turned((0, 0, 1), yaw), turned((0, 1, 0), pitch)), turned((1, 0, 0), roll))
    bench = Bench(Imu(0))
    bench.read(q, np.zeros(6))
    assert bench.imus.incline[0] == pytest.approx([pitch, roll])
    assert bench.imus.attitude[0] == pytest.approx([pitch, roll])


def test_braking_fools_the_inclinometer_but_not_the_attitude() -> None:
    bench = Bench(Imu(0))
    bench.read(STRAIGHT, (5, 0, 0, 0, 0, 0))
    bench.read(STRAIGHT, (5 - 3 * H, 0, 0, 0, 0, 0))  # 3 m/s^2
    assert bench.imus.incline[0, 0] == pytest.approx(math.atan2(3, G))
    assert bench.imus.attitude[0] == pytest.approx([0, 0], abs=1e-12)


def test_after_a_reset_there_is_no_jolt() -> None:
    bench = Bench(Imu(0))
    bench.read(STRAIGHT, np.zeros(6))
    _reset(bench.record.address)
    force, _ = bench.read(STRAIGHT, (20, 0, 0, 0, 0, 0))
    assert force == pytest.approx([0, 0, G])


def test_bad_imus_are_refused() -> None:
    with pytest.raises(ValueError, match="imu 0: body = -3"):
        build_imus([Imu(-3)])
    with pytest.raises(ValueError, match=r"imu 1: quat = .* must not be zero"):
        build_imus([Imu(0), Imu(0, quat=(0, 0, 0, 0))])
    with pytest.raises(ValueError, match=r"imu 0: at = .* 3 finite numbers"):
        build_imus([Imu(0, at=(1, 2))])  # type: ignore[arg-type]
