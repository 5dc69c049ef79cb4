"""Fault injection: what goes wrong with a signal on purpose.

Parameters of a slot: p0 begins at [s of simulated time], p1 ends at [s] (inf = never), p2... as the kind says below.
"""

from __future__ import annotations

import math
from enum import IntEnum

from hilnode.jit import kernel
from hilnode.limits import HISTORY
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
def spoil(faults, s, x, live, dt):
    """Signal `s` with true value `x`, as it reads with its faults, one after another, if it has any now."""
    slot = faults.head[s]
    while slot >= 0:
        x = _spoil_by(faults, slot, x, live, dt)
        slot = faults.following[slot]
    return x


@kernel
def _spoil_by(faults, slot, x, live, dt):
    p = faults.p[slot]
    t = live.i[L_STEP] * dt
    n = faults.age[slot]
    kind = faults.kind[slot]
    if kind == DELAY:  # remembers also before it begins, so that it has something to delay
        faults.history[slot, n % HISTORY] = x
    faults.age[slot] = n + 1
    if t < p[0] or t >= p[1]:
        faults.held[slot] = x
        return x
    live.i[L_FLAGS] |= FAULT
    if kind == STUCK:
        if not math.isnan(p[2]):
            return p[2]
        if n == 0:
            faults.held[slot] = x
        return faults.held[slot]
    if kind == OFF:
        return 0.0
    if kind == BIAS:
        return x + p[2]
    if kind == NOISE:
        return x + p[2] * normal(faults.rng, slot)
    if kind == DELAY:
        back = min(n, int(p[2]))
        return faults.history[slot, (n - back) % HISTORY]
    if kind == DROP:
        if n == 0 or uniform(faults.rng, slot) >= p[2]:
            faults.held[slot] = x
        return faults.held[slot]
    return p[2] * math.floor(x / p[2] + 0.5)
