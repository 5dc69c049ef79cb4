"""Overruns: ticks whose work ended after the next deadline, and the policy that follows.

skip       give up the missed deadlines, go on with the next one on the grid
catch-up   run the missed ticks at once, but no more than a limit; give up the rest
slip       move the whole grid: the next tick starts now
halt       stop, devices safe
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.shared.codes import Cause, Event, Pace, Policy
from hilnode.shared.control import STRIDE, Word
from hilnode.shared.lockfree.atomics import store_relaxed
from hilnode.tick.layout import (
    CATCH_UP,
    DEADLINE,
    GRACE,
    L_ARMED_AT,
    L_EXIT,
    L_FLAGS,
    L_NOW,
    L_OVERRUNS,
    L_PERIOD,
    L_QUIET,
    L_STATE,
    OVERRUN,
    RUNNING,
    SLIPPED,
    Exit,
)
from hilnode.tick.lifecycle import tell, trip

REAL_TIME = int(Pace.REAL_TIME)
P_CATCH_UP, P_SLIP, P_HALT = int(Policy.CATCH_UP), int(Policy.SLIP), int(Policy.HALT)
C_OVERRUNS = int(Cause.OVERRUNS)
E_OVERRUN, E_HALT = int(Event.OVERRUN), int(Event.HALT)
HALTED = int(Exit.HALTED)
_OVERRUNS = 8 * STRIDE * int(Word.OVERRUNS)
EVENT_EVERY = 1_000_000_000  # [ns] one overrun event per second at most: the flag in each row keeps the whole truth


@kernel
def is_late(t, done):
    """Whether this tick's work ended too late.

    One that catches up is judged by its own length, not by its old deadline.
    """
    since = t.live.i[L_NOW] if t.live.i[L_FLAGS] & CATCH_UP else t.row[DEADLINE]
    return done - since > t.live.i[L_PERIOD]


@kernel
def judge(t, done):
    """Count an overrun and act on it; sets the flags of this row. Call it before the row is pushed."""
    live = t.live
    if live.i[L_STATE] != RUNNING or not is_late(t, done):
        return
    live.i[L_FLAGS] |= OVERRUN
    if done - live.i[L_ARMED_AT] < t.setup.warmup_ns:
        live.i[L_FLAGS] |= GRACE
        return
    live.i[L_OVERRUNS] += 1
    store_relaxed(t.setup.control + _OVERRUNS, live.i[L_OVERRUNS])
    late = done - t.row[DEADLINE] - live.i[L_PERIOD]
    if done >= live.i[L_QUIET]:
        live.i[L_QUIET] = done + EVENT_EVERY
        tell(t, E_OVERRUN, late // live.i[L_PERIOD] + 1, late * 1e-9, 0)
    if t.setup.policy == P_HALT:
        tell(t, E_HALT, 0, late * 1e-9, 0)
        live.i[L_EXIT] = HALTED
    elif 0 < t.setup.max_overruns <= live.i[L_OVERRUNS]:
        trip(t, C_OVERRUNS, float(live.i[L_OVERRUNS]))


@kernel
def next_deadline(t, now):
    """The deadline after this tick's, how many were given up on the way, and the flag of the tick to come."""
    period = t.live.i[L_PERIOD]
    due = t.row[DEADLINE] + period
    if now <= due or t.setup.pace != REAL_TIME:
        return due, 0, 0
    if t.setup.policy == P_SLIP:
        return now, 0, SLIPPED
    passed = (now - due) // period + 1  # deadlines, `due` included, that are already over
    if t.setup.policy == P_CATCH_UP:
        dropped = max(passed - t.setup.catch_up_limit, 0)
        return due + dropped * period, dropped, CATCH_UP
    return due + passed * period, passed, 0
