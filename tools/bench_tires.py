"""Time of a step of tires, of a set of sensors and of an IMU, all inside compiled code.

    python tools/bench_tires.py [--rounds 30] [--steps 20000] [--wheels 4] [--patches 1]

The wheels roll with some slip at 3 m/s over a rough field, each law by itself; the patches lie apart from each other.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from hilnode.shared.clock import now_ns
from plant.collision.narrowphase.field import build_fields, view_fields
from plant.sensor.channel import Channel, build_sensors, sense, view_sensors
from plant.sensor.imu import Imu, build_imus, read_imus, view_imus
from plant.soil.ground import Ground
from plant.vehicle.tires.laws import LAWS
from plant.vehicle.tires.model import Tire, Wheel, build_tires, view_tires
from plant.vehicle.tires.step import tire_wrenches

_ground = viewer(Ground)
H = 1e-3


@kernel
def _tires(tires, ground, fields, pos, quat, vel, wrench, count):
    t, g, f = view_tires(tires), _ground(ground), view_fields(fields)
    began = now_ns()
    for n in range(count):
        wrench[:] = 0.0
        for b in range(pos.shape[0]):
            pos[b, 0] = 0.003 * (n % 5000)
        tire_wrenches(t, g, f, pos, quat, vel, H, wrench)
    return (now_ns() - began) / count


@kernel
def _sense(sensors, true, sensed, count):
    s = view_sensors(sensors)
    began = now_ns()
    for n in range(count):
        sense(s, n, H, true, sensed)
    return (now_ns() - began) / count


@kernel
def _imus(imus, gravity, quat, vel, count):
    i = view_imus(imus)
    began = now_ns()
    for _ in range(count):
        read_imus(i, gravity, H, quat, vel)
    return (now_ns() - began) / count


def tires_us(law: str, wheels: int, patches: int, steps: int, rounds: int) -> list[float]:
    rng = np.random.default_rng(1)
    made = build_tires([Wheel(k, Tire(law=LAWS[law].parameters())) for k in range(wheels)])
    fields = build_fields([(rng.uniform(-0.01, 0.01, (200, 200)), 0.25, 0.25)] * patches)
    ground = Ground(
        shape=np.arange(patches),
        field=np.arange(patches),
        on=np.ones(patches, np.int64),
        at=np.array([(0.0, 60.0 * k, 0.0) for k in range(patches)]),
        stamp=np.zeros((patches, 169), np.int64),
    )
    pos, vel = np.zeros((wheels, 3)), np.zeros((wheels, 6))
    quat = np.tile([1.0, 0, 0, 0], (wheels, 1))
    pos[:, 1], pos[:, 2] = np.linspace(-2, 2, wheels), 0.45
    vel[:, 0], vel[:, 1], vel[:, 4] = 3.0, 0.1, 6.2
    kept = [Struct(made), Struct(ground), Struct(fields)]
    addresses = [r.address for r in kept]
    wrench = np.zeros((wheels, 6))
    _tires(*addresses, pos, quat, vel, wrench, 10)
    times = [_tires(*addresses, pos, quat, vel, wrench, steps) / 1e3 for _ in range(rounds)]
    if not made.touch.all():
        raise SystemExit("a wheel has left the ground: the times mean nothing")
    return times


def sensors_us(channels: int, steps: int, rounds: int) -> list[float]:
    every = {"noise": 0.1, "walk": 0.01, "lag": 0.01, "quantum": 0.01, "delay": 5, "low": -100.0, "high": 100.0}
    record = Struct(build_sensors([Channel(k, k, **every) for k in range(channels)]))
    true, sensed = np.linspace(0, 1, channels), np.zeros(channels)
    _sense(record.address, true, sensed, 10)
    return [_sense(record.address, true, sensed, steps) / 1e3 for _ in range(rounds)]


def imus_us(steps: int, rounds: int) -> list[float]:
    record = Struct(build_imus([Imu(0, (0.1, 0.2, 0.3))]))
    quat, vel = np.array([[0.8, 0.6, 0, 0]]), np.ones((1, 6))
    down = np.array([0, 0, -9.81])
    _imus(record.address, down, quat, vel, 10)
    return [_imus(record.address, down, quat, vel, steps) / 1e3 for _ in range(rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--wheels", type=int, default=4)
    parser.add_argument("--patches", type=int, default=1)
    a = parser.parse_args()
    rows = {
        f"{a.wheels} wheels, {a.patches} patches, {law}": tires_us(law, a.wheels, a.patches, a.steps, a.rounds)
        for law in LAWS
    }
    rows["32 channels with everything"] = sensors_us(32, a.steps, a.rounds)
    rows["1 IMU"] = imus_us(a.steps, a.rounds)
    for name, times in rows.items():
        print(f"{name:42} {statistics.median(times):7.3f} us  (best {min(times):.3f}, worst {max(times):.3f})")


if __name__ == "__main__":
    main()
