"""The node's lifecycle: configured -> armed -> running -> tripped -> cleared -> armed, and the events of it.

Devices leave their safe values in RUNNING only. Every change of state goes through `enter`, so that the state
word, the LIVE word and the event can not disagree.
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.shared.codes import Event
from hilnode.shared.control import STRIDE, Word
from hilnode.shared.lockfree.atomics import store_release, word_of
from hilnode.shared.lockfree.ring import push
from hilnode.tick.layout import L_NOW, L_STATE, L_TICK, RUNNING, TRIPPED

_BYTES = 8 * STRIDE
_STATE = int(Word.STATE) * _BYTES
_LIVE = int(Word.LIVE) * _BYTES
E_STATE = int(Event.STATE)
E_TRIP = int(Event.TRIP)


@kernel
def tell(t, code, index, value, ident):
    """Write one event."""
    e = t.event
    e[0] = t.live.i[L_TICK]
    e[1] = t.live.i[L_NOW]
    e[2] = code
    e[3] = index
    e[4] = word_of(value)
    e[5] = ident
    push(t.events, e.ctypes.data)


@kernel
def enter(t, state):
    """Go to `state` and say so."""
    old = t.live.i[L_STATE]
    if state == old:
        return
    t.live.i[L_STATE] = state
    if state != RUNNING:
        t.live.blend[0] = 0.0
    store_release(t.setup.control + _LIVE, 1 if state == RUNNING else 0)
    store_release(t.setup.control + _STATE, state)
    tell(t, E_STATE, state, float(old), 0)


@kernel
def trip(t, cause, value):
    """Devices to their safe values, from this tick on, until somebody clears it."""
    if t.live.i[L_STATE] == TRIPPED:
        return
    tell(t, E_TRIP, cause, value, 0)
    enter(t, TRIPPED)
