"""Fault injection: disturbances of a signal on purpose.

Parameters of a slot: p0 begins at, p1 ends at [ns of simulated time, whole numbers; inf = never], p2 ... as the kind
says below. Memory (of delay, drop and stuck) moves on only when the plant does, and never takes in NaN or infinity.
"""

from __future__ import annotations

import math
from enum import IntEnum

from hilnode.core.jit import kernel
from hilnode.core.limits import HISTORY
from hilnode.tick.layout import FAULT, L_FLAGS, L_STEP
from hilnode.tick.rng import normal, uniform


class Kind(IntEnum):
    """Kinds and their parameters from p2 on."""

    STUCK = 1  # value (NaN = wherever it was when the fault began)
    OFF = 2  # reads 0
    BIAS = 3  # value
    NOISE = 4  # sigma
    DELAY = 5  # ticks, fewer than HISTORY
    DROP = 6  # probability that a sample is lost; the last one stays
    QUANTISE = 7  # step


STUCK, OFF, BIAS, NOISE, DELAY, DROP, QUANTISE = (int(k) for k in Kind)


@kernel
def apply_faults(faults, s, x, live, dt_ns, moved):
    """The value of signal `s` after its faults, applied one after another to the true value `x`.

    `moved`: `x` is a new sample; otherwise the plant stands and the old one is read again.
    """
    slot = faults.head[s]
    while slot >= 0 and math.isfinite(x):
        x = _apply_fault(faults, slot, x, live, dt_ns, moved)
        slot = faults.following[slot]
    return x


@kernel
def forget(faults, s, x):
    """Fill the memory of a signal's faults with `x`: after a trip nothing old may come out of it."""
    slot = faults.head[s]
    while slot >= 0:
        faults.held[slot] = x
        faults.age[slot] = 0
        slot = faults.following[slot]


@kernel
def _apply_fault(faults, slot, x, live, dt_ns, moved):
    p = faults.p[slot]
    step = live.i[L_STEP]
    t = float(step * dt_ns)
    kind = faults.kind[slot]
    n = faults.age[slot]
    if moved:
        if kind == DELAY:  # remembers also before it begins, so that it has something to delay
            faults.history[slot, n % HISTORY] = x
        faults.age[slot] = n + 1
    elif n > 0:
        n -= 1  # the sample looked at is the last one taken in
    if not p[0] <= t < p[1]:
        faults.held[slot] = x
        return x
    live.i[L_FLAGS] |= FAULT
    if kind == STUCK:
        if not math.isnan(p[2]):
            return p[2]
        if n == 0 and moved:
            faults.held[slot] = x
        return faults.held[slot]
    if kind == OFF:
        return 0.0
    if kind == BIAS:
        return x + p[2]
    if kind == NOISE:
        return x + p[2] * normal(faults.seed[slot], slot, step)
    if kind == DELAY:
        if faults.age[slot] == 0:
            return x
        return faults.history[slot, (n - min(n, int(p[2]))) % HISTORY]
    if kind == DROP:
        if n == 0 or uniform(faults.seed[slot], slot, step, 0) >= p[2]:
            faults.held[slot] = x
        return faults.held[slot]
    return p[2] * math.floor(x / p[2] + 0.5)
