"""Sensor channels: from a true value to the measured one, through lag, bias, noise, range, quantum, delay and failure.

    lag         first order, exact for an input that is held over the step
    gain, bias  (1 + gain_error) x + bias + drift; the drift is a random walk, walk sqrt(seconds) [standard deviation]
    noise       white, normally distributed, each step
    range       what is beyond low .. high is shown as low or high
    quantum     the nearest multiple of it
    delay       so many steps later; before, the first value
    failure     a failed channel shows its failure value: as long as `failed` is set from outside, or in dropouts that
                come by chance at a rate and last for a time

in this order. What is random is a function of the seed, the channel's number and the step alone (a counter, hashed): a
run that is repeated gives the same bits, in whatever order channels are read, and a recording can be rerun. A value
that is not finite is shown as a failure.

A pressure, an angle, a speed: each is a channel over an output of the plant. Sensors that compute something first
(accelerations, inclinations) are in `imu`; their outputs go through channels as well.

Ref: S. Vigna's splitmix64 (G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom number generators, OOPSLA
2014) as the hash, G. E. P. Box and M. E. Muller 1958 for normal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.splitmix64 import MANTISSA, STEP, UNIT, mix
from hilnode.core.struct import F1, F2, I1, viewer
from plant.parameter import Checked, quantity

NOISE, WALK, DROP = 0, 1, 2  # what a random number is for
LONGEST = 100_000  # steps of delay, at most


@dataclass(frozen=True)
class Channel(Checked):
    """A sensor on output `source` whose reading is output `target`. `u` below is the unit of the signal."""

    source: int = 0
    target: int = 0
    gain_error: float = quantity(0.0, "1", low=-1.0, high=10.0, doc="reads so much more than there is, as a share")
    bias: float = quantity(0.0, "u", doc="reads so much more than there is")
    walk: float = quantity(0.0, "u/sqrt(s)", low=0.0, doc="standard deviation of the bias's random walk after 1 s")
    noise: float = quantity(0.0, "u", low=0.0, doc="standard deviation of white noise in each step")
    delay: int = quantity(0, "steps", low=0, high=LONGEST, doc="how many steps late a reading is, a whole number")
    lag: float = quantity(0.0, "s", low=0.0, doc="time constant")
    quantum: float = quantity(0.0, "u", low=0.0, doc="step of the readings; 0 = none")
    low: float = quantity(-math.inf, "u", infinite=True, doc="least reading")
    high: float = quantity(math.inf, "u", infinite=True, doc="largest reading")
    failure: float = quantity(0.0, "u", doc="reading of a failed sensor")
    dropout_rate: float = quantity(0.0, "1/s", low=0.0, doc="how often it fails by chance")
    dropout_time: float = quantity(0.0, "s", low=0.0, doc="and for how long; 0 = one step")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source", "target", "delay"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise ValueError(f"Channel.{name} = {value!r} must be a whole number, at least 0")
        if not self.low < self.high:
            raise ValueError(f"Channel.low = {self.low!r} must be below high = {self.high!r}")


class Sensors(NamedTuple):
    """All channels; constants as in `Channel`."""

    seed: int
    source: I1  # [c]
    target: I1
    gain: F1  # 1 + gain_error
    bias: F1
    walk: F1
    noise: F1
    delay: I1
    lag: F1
    quantum: F1
    low: F1
    high: F1
    failure: F1
    drop_rate: F1
    drop_time: F1
    # set from outside
    failed: I1  # [c] 1 = shows its failure value
    # state
    fresh: I1  # [c] 1 = has seen nothing yet
    drift: F1  # [c] the bias's random walk
    smooth: F1  # [c] behind the lag
    out: F1  # [c] time left of a dropout [s]
    at: I1  # [c] where the ring stands
    ring: F2  # [c, longest delay + 1] readings on their way


view_sensors = viewer(Sensors)


def build_sensors(channels: Sequence[Channel], seed: int = 0) -> Sensors:
    """The arrays of these channels, ready for the first step. Lay them down as a `Struct` for hot code."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ValueError(f"seed = {seed!r} must be a whole number, 0 .. 2^63 - 1")
    targets = [c.target for c in channels]
    for t in targets:
        if targets.count(t) > 1:
            raise ValueError(f"Channel.target = {t} is the target of {targets.count(t)} channels: each needs its own")
    n = len(channels)
    given = ("bias", "walk", "noise", "lag", "quantum", "low", "high", "failure")
    return Sensors(
        seed=seed,
        source=np.array([c.source for c in channels], np.int64),
        target=np.array(targets, np.int64),
        gain=np.array([1.0 + c.gain_error for c in channels], float),
        **{name: np.array([getattr(c, name) for c in channels], float) for name in given},
        delay=np.array([c.delay for c in channels], np.int64),
        drop_rate=np.array([c.dropout_rate for c in channels], float),
        drop_time=np.array([c.dropout_time for c in channels], float),
        failed=np.zeros(n, np.int64),
        fresh=np.ones(n, np.int64),
        at=np.zeros(n, np.int64),
        **{name: np.zeros(n) for name in ("drift", "smooth", "out")},
        ring=np.zeros((n, 1 + max((c.delay for c in channels), default=0))),
    )


@kernel
def uniform(seed, channel, step, use):
    """Two independent numbers, uniform in 0 .. 1 without 1, by seed, channel, step and use."""
    x = mix(np.uint64(seed) + STEP)
    x = mix(x + (np.uint64(channel) * np.uint64(4) + np.uint64(use)) * np.uint64(0xD1342543DE82EF95))
    x = x + np.uint64(step) * STEP
    one, two = mix(x), mix(x ^ np.uint64(0xD1B54A32D192ED03))
    return np.float64(one >> MANTISSA) * UNIT, np.float64(two >> MANTISSA) * UNIT


@kernel
def normal(seed, channel, step, use):
    """A normally distributed number, mean 0, variance 1."""
    a, b = uniform(seed, channel, step, use)
    return math.sqrt(-2.0 * math.log(1.0 - a)) * math.cos(2.0 * math.pi * b)


@inline
def _reading(s, c, step, h, x):
    """What the sensor's element and its converter make of the finite value `x`."""
    if s.fresh[c] == 1 or s.lag[c] == 0.0:
        s.smooth[c] = x
    else:
        s.smooth[c] -= math.expm1(-h / s.lag[c]) * (x - s.smooth[c])
    y = s.gain[c] * s.smooth[c] + s.bias[c] + s.drift[c]
    if s.walk[c] > 0.0:
        s.drift[c] += s.walk[c] * math.sqrt(h) * normal(s.seed, c, step, WALK)
    if s.noise[c] > 0.0:
        y += s.noise[c] * normal(s.seed, c, step, NOISE)
    y = min(max(y, s.low[c]), s.high[c])
    if s.quantum[c] > 0.0:
        y = math.floor(y / s.quantum[c] + 0.5) * s.quantum[c]
    return y


@inline
def _late(s, c, y):
    """Put `y` into the ring; what was put in `delay` steps ago."""
    size = s.delay[c] + 1
    if s.fresh[c] == 1:
        for k in range(size):
            s.ring[c, k] = y
        s.at[c] = 0
    s.ring[c, s.at[c]] = y
    s.at[c] = (s.at[c] + 1) % size
    return s.ring[c, s.at[c]]


@inline
def _dropped(s, c, step, h):
    """Whether the channel is in a dropout."""
    if s.out[c] > 0.0:
        s.out[c] -= h
        if s.out[c] > 0.5 * h:
            return True
        s.out[c] = 0.0
    if s.drop_rate[c] > 0.0:
        chance, _ = uniform(s.seed, c, step, DROP)
        if chance < s.drop_rate[c] * h:
            s.out[c] = max(s.drop_time[c], h)
            return True
    return False


@kernel
def sense(sensors, step, h, true, sensed):
    """Every channel: `sensed[target]` from `true[source]`, at step number `step` of `h` seconds.

    `true` and `sensed` may be the same array if no target is a source.
    """
    s = sensors
    for c in range(s.source.size):
        x = true[s.source[c]]
        dropped = _dropped(s, c, step, h)
        if not math.isfinite(x):
            sensed[s.target[c]] = s.failure[c]
            continue
        y = _late(s, c, _reading(s, c, step, h, x))
        s.fresh[c] = 0
        sensed[s.target[c]] = s.failure[c] if dropped or s.failed[c] != 0 else y


@kernel
def reset_sensors(sensors):
    """As if switched on now. `failed` stays as it was set."""
    sensors.fresh[:] = 1
    sensors.drift[:] = 0.0
    sensors.out[:] = 0.0
    sensors.at[:] = 0
