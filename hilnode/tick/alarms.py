"""Alarms: a signal outside its bounds for long enough is logged, trips the node, or holds a command."""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.shared.codes import Cause, Event
from hilnode.tick.layout import L_NOW, L_STATE, RUNNING
from hilnode.tick.lifecycle import tell, trip

LOG, TRIP, SET = 0, 1, 2
C_ALARM = int(Cause.ALARM)
E_ALARM, E_OVER = int(Event.ALARM), int(Event.ALARM_OVER)


BURST = 16  # events an alarm may write in a row
SAY_EVERY = 100_000_000  # [ns] after that, one in this time: chatter must not wash other events away


@kernel
def _say(t, code, k, x):
    a, now = t.alarms, t.live.i[L_NOW]
    earned = (now - a.told_at[k]) // SAY_EVERY
    if earned > 0:
        a.credit[k] = min(BURST, a.credit[k] + earned)
        a.told_at[k] = now
    if a.credit[k] > 0:
        a.credit[k] -= 1
        tell(t, code, k, x, 0)


@kernel
def watch(t):
    """The stage: every alarm once, on the signals as the world sees them."""
    a = t.alarms
    for k in range(a.signal.size):
        x = t.seen[a.signal[k]]
        if a.low[k] <= x <= a.high[k]:
            a.count[k] = 0
            if a.active[k] == 1:
                a.active[k] = 0
                _say(t, E_OVER, k, x)
                if a.action[k] == SET and t.outputs.held_by[a.target[k]] == k:
                    t.outputs.held_by[a.target[k]] = -1
            continue
        a.count[k] += 1
        if a.count[k] <= a.need[k]:
            continue
        if a.active[k] == 0:
            a.active[k] = 1
            _say(t, E_ALARM, k, x)
        if a.action[k] == TRIP and t.live.i[L_STATE] == RUNNING:
            trip(t, C_ALARM, float(k))
        elif a.action[k] == SET:
            t.outputs.held_by[a.target[k]] = k
            t.outputs.held_at[a.target[k]] = a.value[k]
