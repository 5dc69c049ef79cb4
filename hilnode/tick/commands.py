"""Commands: what people and programs ask for, applied at the tick's edge, never in the middle.

A command is one row of a ring; each source has a ring of its own, so each ring keeps its one writer.
Every command gets an answer: an event with the command's id and the tick at which it took effect. A command with id 0
gets one only if it is refused: an ECU in lockstep grants each step and sees its effect in the row. Limits and names are
checked where the command is made; here only what could harm the loop is checked again.
"""

from __future__ import annotations

import math

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.limits import HISTORY, SLOTS
from hilnode.shared.codes import COMMAND_WIDTH, SLOT_PARAMS, Answer, Cause, Command, Event, Pace
from hilnode.shared.control import STRIDE, Word
from hilnode.shared.lockfree.atomics import double_of, load_acquire, store_release
from hilnode.shared.lockfree.ring import RingView, pull
from hilnode.tick.call import call_step
from hilnode.tick.faults import DELAY, Kind
from hilnode.tick.inputs import first_stale_trip, prime_inputs
from hilnode.tick.layout import (
    ARMED,
    CLEARED,
    CONFIGURED,
    L_ARMED_AT,
    L_BUDGET,
    L_FORCES,
    L_NOW,
    L_OVERRUNS,
    L_PAUSED,
    L_PERIOD,
    L_PLANT_BAD,
    L_STATE,
    L_STEP,
    RUNNING,
    TRIPPED,
)
from hilnode.tick.lifecycle import enter, tell, trip
from hilnode.tick.slots import attach, detach
from hilnode.tick.stimulus import TABLE

MOST_STEPS = 1e9  # granted at once
UNASKED = 0  # id of a command whose success needs no answer
MOST = 16  # commands taken per ring and tick, so that a flood can not stretch a tick
ARM, RUN, PAUSE, RESUME, ONE_STEP, DO_TRIP, CLEAR, DISARM = (int(o) for o in list(Command)[:8])
RESET, FORCE, RELEASE, PARAMETER, SPEED, STIMULUS, FAULT, SWAPPED = (int(o) for o in list(Command)[8:])
DONE, WRONG_STATE, STALE_INPUT, UNKNOWN, PLANT_FAILED = (int(a) for a in Answer)
E_COMMAND, E_SWAP = int(Event.COMMAND), int(Event.SWAP)
LAST_CAUSE, LAST_FAULT = int(max(Cause)), int(max(Kind))
LOCKSTEP = int(Pace.LOCKSTEP)
_OVERRUNS = 8 * STRIDE * int(Word.OVERRUNS)
_FIRED = 8 * STRIDE * int(Word.FIRED)
_EXCUSED = 8 * STRIDE * int(Word.EXCUSED)
_PERIOD = 8 * STRIDE * int(Word.PERIOD)


@kernel
def obey(t):
    """The stage: every command that has come, from every ring."""
    for k in range(t.command_rings.shape[0]):
        ring = RingView(t.command_rings[k, 0], t.command_rings[k, 1], COMMAND_WIDTH)
        for _ in range(MOST):
            got = pull(ring, t.command_rings[k, 2], t.command.ctypes.data)
            if got == 0:
                break
            if got < 0:
                t.command_rings[k, 2] -= got
                t.command_rings[k, 3] -= got
                continue
            t.command_rings[k, 2] += 1
            answer, detail = _apply(t, t.command[0], t.command[1])
            if t.command[2] != UNASKED or answer != DONE:
                tell(t, E_COMMAND, answer, detail, t.command[2])


@kernel
def _p(t, k):
    return double_of(t.command[3 + k])


@kernel
def _apply(t, op, index):
    """Do it, or say why not: (Answer, detail)."""
    if 1 <= op <= DISARM:
        return _change_state(t, op, index)
    if op == RESET:
        return reset_plant(t)
    if op == FORCE:
        return _force(t, index)
    if op == RELEASE:
        return _release(t, index)
    if op == PARAMETER:
        if not 0 <= index < t.plant.param.size:
            return UNKNOWN, 0.0
        t.plant.param[index] = _p(t, 0)
        return DONE, _p(t, 0)
    if op == SPEED:
        if not (0.001 <= _p(t, 0) <= 1000.0):
            return UNKNOWN, 0.0
        set_speed(t, _p(t, 0))
        return DONE, _p(t, 0)
    if op == STIMULUS:
        s = t.stimuli
        if not _stimulus_is_sound(t):
            return UNKNOWN, 0.0
        return _fill_slot(t, index, s.head, s.following, s.kind, s.p, s.seed)
    if op == FAULT:
        f = t.faults
        if not 0.0 <= _p(t, 1) <= LAST_FAULT or not (_p(t, 1) != DELAY or 0.0 <= _p(t, 5) < HISTORY):
            return UNKNOWN, 0.0
        if 0 <= index < SLOTS:
            f.age[index] = 0
        return _fill_slot(t, index, f.head, f.following, f.kind, f.p, f.seed)
    if op == SWAPPED and index >= 0:
        tell(t, E_SWAP, index, _p(t, 0), t.command[2])
        return DONE, _p(t, 0)
    return UNKNOWN, 0.0


@kernel
def _change_state(t, op, index):
    live = t.live
    state = live.i[L_STATE]
    if op == DO_TRIP:
        if not 0 <= index <= LAST_CAUSE:
            return UNKNOWN, 0.0
        trip(t, index, _p(t, 0))
        return DONE, 0.0
    if op == CLEAR and state == TRIPPED:
        store_release(t.setup.control + _EXCUSED, load_acquire(t.setup.control + _FIRED))
        enter(t, CLEARED)
        return DONE, 0.0
    if op == ARM and (state == CONFIGURED or state == CLEARED):
        if live.i[L_PLANT_BAD] == 1:
            answer, status = reset_plant(t)
            if answer != DONE:
                return answer, status
        prime_inputs(t)
        live.i[L_OVERRUNS] = 0
        store_release(t.setup.control + _OVERRUNS, 0)
        live.i[L_PAUSED] = 0
        live.i[L_BUDGET] = 0
        enter(t, ARMED)
        return DONE, 0.0
    if op == RUN and state == ARMED:
        late = first_stale_trip(t)
        if late >= 0:
            return STALE_INPUT, float(late)
        live.i[L_ARMED_AT] = live.i[L_NOW]
        enter(t, RUNNING)
        return DONE, 0.0
    if op == DISARM and (state == ARMED or state == RUNNING or state == CLEARED):
        enter(t, CONFIGURED)
        return DONE, 0.0
    if state == RUNNING:
        lockstep = t.setup.pace == LOCKSTEP
        if op == PAUSE:
            live.i[L_PAUSED] = 1
            if not lockstep:  # there, steps that were granted are still owed after the pause
                live.i[L_BUDGET] = 0
            return DONE, 0.0
        if op == RESUME:
            live.i[L_PAUSED] = 0
            return DONE, 0.0
        if op == ONE_STEP and 1.0 <= _p(t, 0) <= MOST_STEPS and (lockstep or live.i[L_PAUSED] == 1):
            live.i[L_BUDGET] += int(_p(t, 0))
            return DONE, float(live.i[L_STEP] + live.i[L_BUDGET])
    return WRONG_STATE, float(state)


@kernel
def reset_plant(t):
    """Plant back to its initial state; not while it is running."""
    if t.live.i[L_STATE] == RUNNING:
        return WRONG_STATE, float(RUNNING)
    p = t.plant
    if p.reset[0] == 0:
        return PLANT_FAILED, 0.0
    status = call_step(
        p.reset[0],
        p.reset[1],
        0,
        p.param.ctypes.data,
        t.inputs.value.ctypes.data,
        p.output.ctypes.data,
        p.pose.ctypes.data,
    )
    if status != 0:
        return PLANT_FAILED, float(status)
    t.live.i[L_STEP] = 0
    t.live.i[L_PLANT_BAD] = 0
    return DONE, 0.0


@kernel
def set_speed(t, speed):
    """Wall-clock time between deadlines for `speed` simulated seconds per second."""
    t.live.i[L_PERIOD] = int(t.setup.dt_ns / speed + 0.5)
    store_release(t.setup.control + _PERIOD, t.live.i[L_PERIOD])


@kernel
def _force(t, s):
    if not 0 <= s < t.seen.size or not math.isfinite(_p(t, 0)):
        return UNKNOWN, 0.0
    t.live.i[L_FORCES] += 1 - t.forces.on[s]
    t.forces.on[s] = 1
    t.forces.value[s] = _p(t, 0)
    return DONE, _p(t, 0)


@kernel
def _release(t, s):
    if s == -1:
        t.forces.on[:] = 0
        t.live.i[L_FORCES] = 0
        return DONE, 0.0
    if not 0 <= s < t.seen.size:
        return UNKNOWN, 0.0
    t.live.i[L_FORCES] -= t.forces.on[s]
    t.forces.on[s] = 0
    return DONE, 0.0


@kernel
def _stimulus_is_sound(t):
    """A kind that exists, and a table that lies within the memory for tables."""
    kind, size = _p(t, 1), t.stimuli.table_time.size
    if kind == TABLE:
        first, count = _p(t, 5), _p(t, 6)
        return 0.0 <= first < size and 1.0 <= count <= size - first
    return 0.0 <= kind <= TABLE


@kernel
def _fill_slot(t, slot, head, following, kinds, params, seeds):
    """Stimulus or fault: p0 = signal, p1 = kind (0 = take it away), p2 = seed, then the slot's own parameters."""
    if not 0 <= slot < SLOTS:
        return UNKNOWN, 0.0
    signal = int(_p(t, 0))
    kind = int(_p(t, 1))
    if kind != 0 and not 0 <= signal < head.size:
        return UNKNOWN, 0.0
    detach(head, following, slot)
    kinds[slot] = kind
    if kind != 0:
        attach(head, following, slot, signal)
        seeds[slot] = np.uint64(int(_p(t, 2)))
        for k in range(SLOT_PARAMS):
            params[slot, k] = _p(t, 3 + k)
    return DONE, 0.0
