"""The loop. It runs in a thread of its own without the GIL; nothing in it allocates, locks, logs or raises.

_wait           until the deadline
obey            commands at the tick's edge
take_inputs     newest values, or what stands in for them
_step           the plant, through its pointer
show_outputs    the plant's outputs, with their faults and forces
watch           alarms
give_outputs    to the devices, or their safe values
judge           was it too late?
push            one row for everybody who listens
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.shared.clock import now_ns, sleep_until, wait_until
from hilnode.shared.codes import Cause, Pace
from hilnode.shared.control import STRIDE, Word
from hilnode.shared.lockfree.atomics import load_acquire, load_relaxed, store_relaxed
from hilnode.shared.lockfree.ring import push
from hilnode.tick.alarms import watch
from hilnode.tick.call import call_step
from hilnode.tick.collisions import tell_collisions
from hilnode.tick.commands import obey, reset_plant
from hilnode.tick.inputs import take_inputs
from hilnode.tick.layout import (
    DEADLINE,
    DONE,
    END,
    FLAGS,
    L_BUDGET,
    L_EXIT,
    L_FLAGS,
    L_NOW,
    L_PAUSED,
    L_PERIOD,
    L_PLANT_BAD,
    L_STATE,
    L_STEP,
    L_TICK,
    MISSED,
    PAUSED,
    PERIOD,
    RUNNING,
    START,
    STATE,
    STATUS,
    STEP,
    STOPPED,
    TICK,
    TRIPPED,
    WAKE,
    Exit,
    view_tick,
)
from hilnode.tick.lifecycle import enter, trip
from hilnode.tick.outputs import check_outputs, give_outputs, make_safe, show_outputs
from hilnode.tick.overrun import judge, next_deadline

REAL_TIME, FREE, LOCKSTEP = (int(p) for p in Pace)
EXIT_STOPPED, EXIT_ENDED = int(Exit.STOPPED), int(Exit.ENDED)
C_PLANT, C_WATCHDOG = int(Cause.PLANT), int(Cause.WATCHDOG)
_BYTES = 8 * STRIDE
_HEARTBEAT, _TICK, _STEP, _STOP, _FIRED, _EXCUSED, _PERIOD = (
    _BYTES * int(w) for w in (Word.HEARTBEAT, Word.TICK, Word.STEP, Word.STOP, Word.FIRED, Word.EXCUSED, Word.PERIOD)
)
NAP = 2_000_000  # [ns] a longer wait is broken up, with a sign of life after each piece
POLL = 20_000  # [ns] between two looks for a lockstep command


@kernel
def run(address):
    """Run the `Tick` struct at this address until told to stop; return the `Exit` reason. Devices are safe then."""
    t = view_tick(address)
    live, row = t.live, t.row
    deadline = now_ns() + live.i[L_PERIOD]
    last_wake = deadline - live.i[L_PERIOD]
    missed, flag = 0, 0
    store_relaxed(t.setup.control + _PERIOD, live.i[L_PERIOD])
    if t.plant.reset[0] != 0:
        reset_plant(t)  # outputs and poses are those of the initial state from the first row on
    while live.i[L_EXIT] == 0:
        live.i[L_FLAGS] = flag
        wake = _wait(t, deadline)
        live.i[L_NOW] = wake
        obey(t)
        if live.i[L_PAUSED] == 0 and live.i[L_STATE] == RUNNING and t.setup.pace == LOCKSTEP:
            wake = _await_grant(t, wake)
            live.i[L_NOW] = wake
        if load_acquire(t.setup.control + _STOP) != 0:
            live.i[L_EXIT] = EXIT_STOPPED
            break
        if t.setup.pace != REAL_TIME:
            deadline = wake
        _check_watchdog(t)

        stepped = _may_step(t)
        take_inputs(t, stepped)
        stepped = stepped and live.i[L_STATE] == RUNNING
        row[START] = now_ns()
        row[STATUS] = _step(t) if stepped else 0
        row[END] = now_ns()
        show_outputs(t, stepped)
        watch(t)
        give_outputs(t, stepped)
        done = now_ns()

        row[TICK] = live.i[L_TICK]
        row[STEP] = live.i[L_STEP]
        row[DEADLINE] = deadline
        row[WAKE] = wake
        row[DONE] = done
        row[PERIOD] = wake - last_wake
        row[MISSED] = missed
        if t.setup.pace == REAL_TIME:
            judge(t, done)
            if live.i[L_STATE] == TRIPPED:
                make_safe(t)
        row[FLAGS] = live.i[L_FLAGS] if stepped else live.i[L_FLAGS] | PAUSED
        row[STATE] = live.i[L_STATE]
        push(t.rows, row.ctypes.data)

        last_wake = wake
        live.i[L_TICK] += 1
        store_relaxed(t.setup.control + _TICK, live.i[L_TICK])
        store_relaxed(t.setup.control + _STEP, live.i[L_STEP])
        if t.setup.last_tick == live.i[L_TICK] and live.i[L_EXIT] == 0:
            live.i[L_EXIT] = EXIT_ENDED
        deadline, missed, flag = next_deadline(t, done)
    enter(t, STOPPED)
    make_safe(t)
    return live.i[L_EXIT]


@kernel
def _wait(t, deadline):
    """Sleep until the deadline, with signs of life on the way; as fast as possible does not sleep."""
    now = now_ns()
    store_relaxed(t.setup.control + _HEARTBEAT, now)
    idle = t.live.i[L_STATE] != RUNNING or t.live.i[L_PAUSED] == 1
    if t.setup.pace != REAL_TIME and not idle:
        return now
    while deadline - now > 2 * NAP and load_relaxed(t.setup.control + _STOP) == 0:
        sleep_until(now + NAP)
        now = now_ns()
        store_relaxed(t.setup.control + _HEARTBEAT, now)
    if load_relaxed(t.setup.control + _STOP) == 0:
        now = wait_until(deadline, t.setup.spin_ns)
    store_relaxed(t.setup.control + _HEARTBEAT, now)
    return now


@kernel
def _await_grant(t, now):
    """Lockstep: stay here, alive and open for commands, until a step is granted."""
    live = t.live
    while live.i[L_BUDGET] == 0 and live.i[L_STATE] == RUNNING and live.i[L_PAUSED] == 0:
        if load_acquire(t.setup.control + _STOP) != 0:
            break
        sleep_until(now + POLL)
        now = now_ns()
        live.i[L_NOW] = now
        store_relaxed(t.setup.control + _HEARTBEAT, now)
        _check_watchdog(t)
        obey(t)
    return now


@kernel
def _check_watchdog(t):
    """A watchdog that has fired holds the devices: trip, so that nobody here believes otherwise."""
    fired = load_acquire(t.setup.control + _FIRED)
    if fired != load_relaxed(t.setup.control + _EXCUSED) and t.live.i[L_STATE] == RUNNING:
        trip(t, C_WATCHDOG, float(fired))


@kernel
def _may_step(t):
    """Whether the plant moves in this tick; uses up one granted step where steps are granted."""
    live = t.live
    if live.i[L_STATE] != RUNNING:
        return False
    lockstep = t.setup.pace == LOCKSTEP
    if live.i[L_PAUSED] == 0 and not lockstep:
        return True
    if live.i[L_BUDGET] == 0 or (live.i[L_PAUSED] == 1 and lockstep):
        return False
    live.i[L_BUDGET] -= 1
    return True


@kernel
def _step(t):
    """The plant and its slower tasks; a status other than 0 trips the node in this very tick."""
    p = t.plant
    n = t.live.i[L_STEP]
    for k in range(p.task.size):
        if n % p.every[k] != p.phase[k]:
            continue
        status = call_step(
            p.task[k],
            p.self[k],
            n,
            p.param.ctypes.data,
            t.inputs.value.ctypes.data,
            p.output.ctypes.data,
            p.pose.ctypes.data,
        )
        if status != 0:
            t.live.i[L_PLANT_BAD] = 1
            trip(t, C_PLANT, float(status))
            return status
    t.live.i[L_STEP] = n + 1
    tell_collisions(t)
    check_outputs(t)
    if t.live.i[L_STATE] != RUNNING:
        t.live.i[L_PLANT_BAD] = 1
    return 0
