"""Stimulus: generated values for an input that no device delivers, over simulated time: a pause holds the wave.

Parameters of a slot: p0 begins at, p1 ends at [ns of simulated time, whole numbers; inf = never], p2 ... as the kind
says below.
"""

from __future__ import annotations

import math
from enum import IntEnum

from hilnode.core.jit import kernel
from hilnode.tick.layout import L_STEP
from hilnode.tick.rng import normal


class Wave(IntEnum):
    """Kinds and their parameters from p2 on."""

    CONSTANT = 1  # value
    RAMP = 2  # start, slope [1/s], stop (inf = none)
    STEP = 3  # before, after, at [s]
    SINE = 4  # amplitude, frequency [Hz], offset, phase [rad]
    SQUARE = 5  # amplitude, frequency [Hz], offset, duty 0..1
    CHIRP = 6  # amplitude, f0 [Hz], f1 [Hz], seconds, offset; linear in frequency, then holds f1
    NOISE = 7  # sigma, mean; normal
    TABLE = 8  # first index, count, 1 = repeat; linear between points, held outside


CONSTANT, RAMP, STEP, SINE, SQUARE, CHIRP, NOISE, TABLE = (int(w) for w in Wave)


@kernel
def wanted(stimuli, i, live, dt_ns):
    """The first slot that drives input `i` at this moment, or -1."""
    slot = stimuli.head[i]
    t = float(live.i[L_STEP] * dt_ns)
    while slot >= 0 and not stimuli.p[slot, 0] <= t < stimuli.p[slot, 1]:
        slot = stimuli.following[slot]
    return slot


@kernel
def wave(stimuli, slot, live, dt_ns):
    """Value of the slot now."""
    p = stimuli.p[slot]
    kind = stimuli.kind[slot]
    step = live.i[L_STEP]
    ns = step * dt_ns - p[0]
    t = ns / 1e9
    if kind == CONSTANT:
        return p[2]
    if kind == RAMP:
        return _ramp(p, t)
    if kind == STEP:
        return p[3] if t >= p[4] else p[2]
    if kind == SINE:
        return p[4] + p[2] * math.sin(2.0 * math.pi * p[3] * t + p[5])
    if kind == SQUARE:
        return p[4] + (p[2] if (p[3] * ns / 1e9) % 1.0 < p[5] else -p[2])
    if kind == CHIRP:
        s = min(t, p[5])
        turns = p[3] * s + 0.5 * (p[4] - p[3]) / p[5] * s * s + p[4] * (t - s)
        return p[6] + p[2] * math.sin(2.0 * math.pi * turns)
    if kind == NOISE:
        return p[3] + p[2] * normal(stimuli.seed[slot], slot, step)
    return _lookup(stimuli, int(p[2]), int(p[3]), p[4] != 0.0, t)


@kernel
def _ramp(p, t):
    """Start, slope, and a value where it stays if it gets there."""
    x = p[2] + p[3] * t
    if p[3] > 0.0:
        return min(x, max(p[4], p[2]))
    if p[3] < 0.0 and math.isfinite(p[4]):
        return max(x, min(p[4], p[2]))
    return x


@kernel
def _lookup(stimuli, first, count, repeat, t):
    """Linear interpolation in a table of increasing times."""
    times = stimuli.table_time
    values = stimuli.table_value
    last = first + count - 1
    span = times[last] - times[first]
    if repeat and span > 0.0:
        t = times[first] + (t - times[first]) % span
    if t <= times[first]:
        return values[first]
    if t >= times[last]:
        return values[last]
    low, high = first, last
    while high - low > 1:
        mid = (low + high) // 2
        if times[mid] <= t:
            low = mid
        else:
            high = mid
    w = (t - times[low]) / (times[high] - times[low])
    return values[low] + w * (values[high] - values[low])
