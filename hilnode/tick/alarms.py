"""Alarms: a signal outside its bounds for long enough is logged, trips the node, or holds a command."""

from __future__ import annotations

from hilnode.jit import kernel
from hilnode.tick.layout import L_STATE, RUNNING, Cause, Event
from hilnode.tick.lifecycle import tell, trip

LOG, TRIP, SET = 0, 1, 2
C_ALARM = int(Cause.ALARM)
E_ALARM, E_OVER = int(Event.ALARM), int(Event.ALARM_OVER)


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
                tell(t, E_OVER, k, x, 0)
                if a.action[k] == SET and t.outputs.held_by[a.target[k]] == k:
                    t.outputs.held_by[a.target[k]] = -1
            continue
        a.count[k] += 1
        if a.count[k] <= a.need[k]:
            continue
        if a.active[k] == 0:
            a.active[k] = 1
            tell(t, E_ALARM, k, x, 0)
        if a.action[k] == TRIP and t.live.i[L_STATE] == RUNNING:
            trip(t, C_ALARM, float(k))
        elif a.action[k] == SET:
            t.outputs.held_by[a.target[k]] = k
            t.outputs.held_at[a.target[k]] = a.value[k]
