"""Inputs: newest values from the mailboxes, stale and impossible ones replaced, faults and forces applied.

device channel -> scale, offset -> [stimulus] -> [fault] -> clamp, low pass, rate limit -> [force] -> plant

A value ages by the clock, from when it was measured. In lockstep it ages by simulated time, from the step that took it:
there nothing that the plant gets may depend on how long somebody took.
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from hilnode.shared.codes import Cause, Event, Pace, Stale
from hilnode.shared.lockfree.mailbox import take
from hilnode.tick.condition import condition, prime
from hilnode.tick.faults import apply_faults
from hilnode.tick.layout import FORCED, INVALID, L_FLAGS, L_NOW, L_STATE, L_STEP, RUNNING, STALE
from hilnode.tick.lifecycle import tell, trip
from hilnode.tick.stimulus import wanted, wave

DEFAULT, RAMP, TRIP = int(Stale.DEFAULT), int(Stale.RAMP), int(Stale.TRIP)
C_STALE = int(Cause.STALE)
LOCKSTEP = int(Pace.LOCKSTEP)
E_STALE, E_FRESH, E_INVALID = int(Event.STALE), int(Event.FRESH), int(Event.INVALID)


@kernel
def collect(n):
    """Fetch every mailbox that has a new letter."""
    for b in range(n.box_base.size):
        at = n.box_at[b]
        count = n.box_channels[b]
        got = take(n.box_base[b], count, n.box_seen[b], n.spare_raw.ctypes.data, n.spare_stamp.ctypes.data)
        if got != n.box_seen[b]:
            n.box_seen[b] = got
            n.raw[at : at + count] = n.spare_raw[:count]
            n.stamp[at : at + count] = n.spare_stamp[:count]


@kernel
def moment(t):
    """Now, on the clock that values age by [ns]; never 0, which stands for never."""
    if t.setup.pace == LOCKSTEP:
        return (t.live.i[L_STEP] + 1) * t.setup.dt_ns
    return t.live.i[L_NOW]


@kernel
def _is_new(t, i, j):
    """Whether device channel `j` has brought a value that input `i` has not taken yet."""
    n = t.inputs
    if t.setup.pace == LOCKSTEP:
        return n.stamp[j] > n.heard[i]
    return n.stamp[j] != n.heard[i] and n.stamp[j] > n.good_at[i]


@kernel
def measure(t, i):
    """Input `i` as its device last delivered it, or what stands in for it; sets its age."""
    n = t.inputs
    j = n.source[i]
    if j < 0:
        n.age[i] = 0.0
        return n.default[i]
    now = moment(t)
    if _is_new(t, i, j):
        x = n.channels.scale[i] * n.raw[j] + n.channels.offset[i]
        if math.isfinite(x):
            n.heard[i] = n.stamp[j]
            n.good[i] = x
            # A clock that runs ahead must not keep a dead input young.
            n.good_at[i] = now if t.setup.pace == LOCKSTEP else min(n.stamp[j], now)
            n.is_invalid[i] = 0
        else:
            t.live.i[L_FLAGS] |= INVALID
            if n.is_invalid[i] == 0:
                n.is_invalid[i] = 1
                tell(t, E_INVALID, i, x, 0)
    if n.good_at[i] == 0:
        n.age[i] = math.inf
    else:
        n.good_at[i] = min(n.good_at[i], now)  # simulated time goes back when the plant is reset
        age = now - n.good_at[i]
        n.age[i] = age * 1e-9
        if age <= n.limit_ns[i]:
            if n.is_stale[i] == 1:
                n.is_stale[i] = 0
                tell(t, E_FRESH, i, n.age[i], 0)
            return n.good[i]
    return _replace_stale(t, i)


@kernel
def _replace_stale(t, i):
    n = t.inputs
    t.live.i[L_FLAGS] |= STALE
    if n.is_stale[i] == 0:
        n.is_stale[i] = 1
        tell(t, E_STALE, i, n.age[i], 0)
    policy = n.policy[i]
    if policy == TRIP and t.live.i[L_STATE] == RUNNING and t.forces.on[i] == 0:
        trip(t, C_STALE, float(i))
    if policy == DEFAULT or n.good_at[i] == 0:
        return n.default[i]
    if policy == RAMP:
        late = moment(t) - n.good_at[i] - n.limit_ns[i]
        w = 1.0 if late >= n.ramp_ns[i] else late / n.ramp_ns[i]
        return n.good[i] + w * (n.default[i] - n.good[i])
    return n.good[i]


@kernel
def take_inputs(t, moves):
    """The stage: all plant inputs of this tick; `moves` tells whether the plant will use them."""
    n = t.inputs
    collect(n)
    for i in range(n.value.size):
        slot = wanted(t.stimuli, i, t.live, t.setup.dt_ns)
        x = measure(t, i) if slot < 0 else wave(t.stimuli, slot, t.live, t.setup.dt_ns)
        if slot >= 0:
            n.age[i] = 0.0
        x = condition(n.channels, i, apply_faults(t.faults, i, x, t.live, t.setup.dt_ns, moves), t.live)
        if t.forces.on[i] == 1:
            x = t.forces.value[i]
            prime(n.channels, i, x)  # a release starts from here
            t.live.i[L_FLAGS] |= FORCED
        n.value[i] = x
        t.seen[i] = x


@kernel
def first_stale_trip(t):
    """The first input that would trip the node right away, or -1: asked before running."""
    n = t.inputs
    for i in range(n.value.size):
        if n.policy[i] == TRIP and n.is_stale[i] == 1 and wanted(t.stimuli, i, t.live, t.setup.dt_ns) < 0:
            return i
    return -1


@kernel
def prime_inputs(t):
    """Bumpless: filters and rate limits start from the next measured value, not from an old one."""
    t.inputs.channels.primed[:] = 0
