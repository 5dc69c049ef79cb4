"""The controller's sensors: angle and pressure sensors, an inclinometer and an IMU, with their errors.

Each sensor reads one output of the machine and shows it as `sensor.<output>`. Its errors can be changed:

    options.sensors = { "boom.angle" = { noise = 0.002, delay = 5 }, "imu.ax" = { bias = 0.1 } }

with the keys of `plant.sensor.channel.Channel`: noise, bias, walk, gain_error, delay [steps], lag [s], quantum, low,
high, failure, dropout_rate, dropout_time. The defaults are those of ordinary mobile-machine sensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hilnode.core.signals import Signal, nearest
from plant.machines.excavator.parameters import ParameterError
from plant.sensor.channel import Channel, Sensors, build_sensors

ANGLE = {"noise": math.radians(0.03), "quantum": math.radians(0.01), "delay": 5}  # a CAN encoder every 5 ms
TILT = {"noise": math.radians(0.05), "quantum": math.radians(0.01), "lag": 0.1, "delay": 10}
PRESSURE = {"noise": 4e4, "quantum": 600e5 / 4096, "lag": 2e-3, "low": 0.0, "high": 600e5}  # 600 bar, 12 bit
FORCE = {"noise": 0.03, "bias": 0.02, "low": -80.0, "high": 80.0, "quantum": 160.0 / 65536}  # 8 g, 16 bit
RATE = {"noise": 2e-3, "walk": 2e-4, "low": -4.4, "high": 4.4, "quantum": 8.8 / 65536}  # 250 deg/s

DEFAULTS: dict[str, Mapping[str, float]] = {
    **{f"{joint}.angle": ANGLE for joint in ("boom", "stick", "bucket", "swing")},
    **{f"tilt.{way}": TILT for way in ("pitch", "roll")},
    **{f"{name}.pressure_{side}": PRESSURE for name in ("boom", "stick", "bucket") for side in "ab"},
    **{f"imu.a{axis}": FORCE for axis in "xyz"},
    **{f"imu.g{axis}": RATE for axis in "xyz"},
}
"""Output that is sensed -> errors of its sensor."""


def sensed(outputs: Sequence[Signal]) -> tuple[Signal, ...]:
    """The signals that the sensors show."""
    unit = {s.name: s.unit for s in outputs}
    return tuple(Signal(f"sensor.{name}", unit[name], doc=f"{name} as its sensor shows it") for name in DEFAULTS)


def sensors_of(outputs: Sequence[Signal], given: Mapping[str, Any] | None, seed: int) -> Sensors:
    """A channel for each of DEFAULTS, from its output to the one behind all others."""
    given = dict(given or {})
    for name in given:
        if name not in DEFAULTS:
            raise ParameterError(f"sensors: {name!r} is not sensed: {nearest(name, list(DEFAULTS))}")
        if not isinstance(given[name], Mapping):
            raise ParameterError(f"sensors: {name} = {given[name]!r} must be a table such as {{ noise = 0.01 }}")
    names = [s.name for s in outputs]
    channels = []
    for k, (name, errors) in enumerate(DEFAULTS.items()):
        try:
            channels.append(
                Channel(source=names.index(name), target=len(names) + k, **{**errors, **given.get(name, {})})
            )
        except (TypeError, ValueError) as error:
            raise ParameterError(f"sensors: {name}: {error}") from error
    return build_sensors(channels, seed)
