"""Outputs: commands to the devices, live while running and safe otherwise, with no jump between the two.

plant output -> [fault] -> [force] -> scale, offset -> blend from safe -> clamp, low pass, rate limit -> [alarm]
-> [fault] -> [force]
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from hilnode.shared.codes import Cause
from hilnode.shared.lockfree.mailbox import put
from hilnode.tick.condition import condition, prime
from hilnode.tick.faults import apply_faults, forget
from hilnode.tick.layout import FORCED, L_FLAGS, L_NOW, L_STATE, RUNNING
from hilnode.tick.lifecycle import trip

C_NOT_FINITE, C_COMMAND = int(Cause.NOT_FINITE), int(Cause.COMMAND_NOT_FINITE)


@kernel
def check_outputs(t):
    """Trip the node on a plant output that is NaN or infinite, before any device sees it."""
    y = t.plant.output
    for k in range(y.size):
        if not math.isfinite(y[k]):
            trip(t, C_NOT_FINITE, float(k))
            return


@kernel
def show_outputs(t, moved):
    """Plant outputs as the rest of the world sees them: after faults and forces. The row keeps the true ones."""
    first = t.inputs.value.size
    for k in range(t.plant.output.size):
        s = first + k
        x = apply_faults(t.faults, s, t.plant.output[k], t.live, t.setup.dt_ns, moved)
        if t.forces.on[s] == 1:
            x = t.forces.value[s]
            t.live.i[L_FLAGS] |= FORCED
        t.seen[s] = x


@kernel
def give_outputs(t, moved):
    """The stage: all device commands of this tick, into the mailboxes.

    While the plant stands, the commands stand too; alarms and forces still act on them.
    """
    if t.live.i[L_STATE] == RUNNING and moved:
        _follow_plant(t)
    if t.live.i[L_STATE] == RUNNING:
        _impose(t, moved)
    if t.live.i[L_STATE] == RUNNING:
        _send(t)
    else:
        make_safe(t)


@kernel
def _follow_plant(t):
    """What the plant asks of the devices, led away from the safe values and within the limits of each channel."""
    o = t.outputs
    t.live.blend[0] = min(1.0, t.live.blend[0] + t.setup.bumpless)
    w = t.live.blend[0]
    for c in range(o.value.size):
        x = o.channels.scale[c] * t.seen[o.source[c]] + o.channels.offset[c]
        if not math.isfinite(x):
            trip(t, C_COMMAND, float(c))
            return
        x = o.safe[c] + w * (x - o.safe[c]) if w < 1.0 else x
        o.base[c] = condition(o.channels, c, x, t.live)


@kernel
def _impose(t, moved):
    """Alarms, faults and forces on the commands."""
    o = t.outputs
    first = t.inputs.value.size + t.plant.output.size
    for c in range(o.value.size):
        s = first + c
        x = o.base[c]
        if o.held_by[c] >= 0:
            x = o.held_at[c]
            prime(o.channels, c, x)
        x = apply_faults(t.faults, s, x, t.live, t.setup.dt_ns, moved)
        if t.forces.on[s] == 1:
            x = t.forces.value[s]
            prime(o.channels, c, x)
            t.live.i[L_FLAGS] |= FORCED
        if not math.isfinite(x):
            trip(t, C_COMMAND, float(c))
            return
        o.value[c] = x
        t.seen[s] = x


@kernel
def make_safe(t):
    """Every command at its safe value; rate limits, filters and faults will start from there."""
    o = t.outputs
    first = t.inputs.value.size + t.plant.output.size
    for c in range(o.value.size):
        x = o.safe[c]
        o.base[c] = o.value[c] = t.seen[first + c] = x
        prime(o.channels, c, x)
        forget(t.faults, first + c, x)
    _send(t)


@kernel
def _send(t):
    o = t.outputs
    o.stamp[:] = t.live.i[L_NOW]
    for b in range(o.box_base.size):
        at = 8 * o.box_at[b]
        put(o.box_base[b], o.box_channels[b], o.value.ctypes.data + at, o.stamp.ctypes.data + at)
