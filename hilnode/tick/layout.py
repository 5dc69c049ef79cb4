"""Every array and code the loop works on, grouped by the stage that owns it.

All are NamedTuples of arrays: the form numba takes best. Everything is allocated before the loop starts;
`n_in`, `n_out`, `n_cmd` are the lengths of the plant's inputs and outputs and of the device commands, and
*signal* indices run over all three in that order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilnode.lockfree.ring import RingView
from hilnode.row import Col, Flag, State

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

# Plain integers for hot code, which does not take enums as indices.
TICK, STEP, DEADLINE, WAKE, START, END = (
    int(c) for c in (Col.TICK, Col.STEP, Col.DEADLINE, Col.WAKE, Col.START, Col.END)
)
DONE, PERIOD, FLAGS, STATE, STATUS, MISSED = (
    int(c) for c in (Col.DONE, Col.PERIOD, Col.FLAGS, Col.STATE, Col.STATUS, Col.MISSED)
)
OVERRUN, GRACE, CATCH_UP, SLIPPED, PAUSED = (
    int(f) for f in (Flag.OVERRUN, Flag.GRACE, Flag.CATCH_UP, Flag.SLIPPED, Flag.PAUSED)
)
STALE, INVALID, FORCED, FAULT, CLAMPED = (
    int(f) for f in (Flag.STALE, Flag.INVALID, Flag.FORCED, Flag.FAULT, Flag.CLAMPED)
)
CONFIGURED, ARMED, RUNNING, TRIPPED, CLEARED, STOPPED = (int(s) for s in State)


class Pace(IntEnum):
    """What the loop waits for."""

    REAL_TIME = 0
    FREE = 1
    LOCKSTEP = 2


class Policy(IntEnum):
    """What follows a missed deadline."""

    SKIP = 0
    CATCH_UP = 1
    SLIP = 2
    HALT = 3


class Stale(IntEnum):
    """What stands in for an input that is too old."""

    HOLD = 0
    DEFAULT = 1
    RAMP = 2
    TRIP = 3


class Op(IntEnum):
    """Commands; words of a command row: op, index, id, then up to PARAMS float64 parameters."""

    ARM = 1
    RUN = 2
    PAUSE = 3
    RESUME = 4
    STEP = 5  # p0 = how many plant steps; also grants them in lockstep
    TRIP = 6  # index = who asks: Cause
    CLEAR = 7
    DISARM = 8
    RESET = 9  # plant back to its initial state; not while running
    FORCE = 10  # index = signal, p0 = value
    RELEASE = 11  # index = signal, or -1 for all
    PARAMETER = 12  # index = plant parameter, p0 = value
    SPEED = 13  # p0 = wall-clock speed
    STIMULUS = 14  # index = slot; see stimulus.py
    FAULT = 15  # index = slot; see faults.py


class Answer(IntEnum):
    """What became of a command."""

    DONE = 0
    WRONG_STATE = 1  # not possible in the present state
    STALE_INPUT = 2  # an input with policy `trip` has no fresh value; the event's value is its index
    UNKNOWN = 3  # no such op or index
    PLANT_FAILED = 4  # the plant's reset returned a status


class Cause(IntEnum):
    """Why the node tripped; the event's value says which or how much."""

    OPERATOR = 0
    PLANT = 1  # value = plant status
    NOT_FINITE = 2  # value = output index
    STALE = 3  # value = input index
    OVERRUNS = 4  # value = count
    ALARM = 5  # value = alarm index
    WATCHDOG = 6  # value = firings
    DRIVER = 7  # asked for by the node: a required driver went down
    WATCHDOG_LOST = 8  # asked for by the node: the watchdog itself died


class Event(IntEnum):
    """Codes in the event ring; words of an event: tick, time [ns], code, index, value (float64 bits), id."""

    STATE = 1  # index = new state, value = old state
    TRIP = 2  # index = Cause
    OVERRUN = 3  # index = deadlines missed, value = how late its work ended [s]
    STALE = 4  # index = input, value = age [s]
    FRESH = 5  # index = input, value = age [s]
    INVALID = 6  # index = input
    ALARM = 7  # index = alarm, value = the signal
    ALARM_OVER = 8  # index = alarm
    COMMAND = 9  # index = Answer, value = detail, id = the command's
    HALT = 10  # value = how late [s]


SLOT_PARAMS = 8  # of a stimulus or fault
PARAMS = 3 + SLOT_PARAMS  # of a command
COMMAND_WIDTH = 3 + PARAMS
EVENT_WIDTH = 6
SLOTS = 32  # stimuli and faults that can be active at once
HISTORY = 4096  # ticks a delay fault can reach back


class Setup(NamedTuple):
    """Constants of a run."""

    dt_ns: int  # nominal plant step
    pace: int
    policy: int
    catch_up_limit: int
    max_overruns: int  # 0 = no limit
    warmup_ns: int
    spin_ns: int
    last_tick: int  # stop after this many rows; 0 = never
    bumpless: float  # share of the way from safe to live that is gained per tick
    control: int  # address of the control block
    dt: float  # [s]


class Live(NamedTuple):
    """What the loop changes about itself: one array of integers, one of floats."""

    i: I8  # indices below
    blend: F8  # [1] 0 = safe values, 1 = live values


class L(IntEnum):
    """Indices into `Live.i`."""

    STATE = 0
    PAUSED = 1
    BUDGET = 2  # steps granted by single step or lockstep
    PERIOD = 3  # wall time between deadlines [ns]
    OVERRUNS = 4  # since arming
    ARMED_AT = 5  # [ns]
    NOW = 6  # wake of this tick [ns]
    FLAGS = 7  # of this tick
    EXIT = 8  # Exit
    STEP = 9
    TICK = 10
    FORCES = 11  # signals forced now
    PLANT_BAD = 12  # 1 = the plant failed and needs a reset
    QUIET = 13  # ticks until the next overrun event may be written


L_STATE, L_PAUSED, L_BUDGET, L_PERIOD, L_OVERRUNS, L_ARMED_AT, L_NOW, L_FLAGS = (int(x) for x in list(L)[:8])
L_EXIT, L_STEP, L_TICK, L_FORCES, L_PLANT_BAD, L_QUIET = (int(x) for x in list(L)[8:])


class Exit(IntEnum):
    """Why the loop ended."""

    GOING = 0
    STOPPED = 1
    ENDED = 2  # last_tick reached
    HALTED = 3  # overrun with policy halt


class Channels(NamedTuple):
    """Conditioning of a list of signals. Computed by the config; `last`, `primed` by condition.py."""

    scale: F8
    offset: F8
    low: F8
    high: F8
    slew: F8  # greatest change per tick; inf = none
    alpha: F8  # share of the difference a low pass follows per tick; 1 = none
    last: F8  # what came out last
    primed: I8  # 0 = the next value passes unfiltered


class Inputs(NamedTuple):
    """Mailboxes in, plant inputs out. Written by inputs.py."""

    box_base: I8  # [boxes] addresses
    box_channels: I8
    box_at: I8  # where each one's channels begin in raw
    box_seen: I8  # number of the letter held
    raw: F8  # [all device channels] as delivered
    stamp: I8  # when measured [ns]
    spare_raw: F8
    spare_stamp: I8
    source: I8  # [n_in] index into raw, -1 = none
    default: F8
    limit_ns: I8  # older than this is stale
    policy: I8  # Stale
    ramp_ns: I8
    good: F8  # last finite value, in the signal's unit
    good_at: I8  # its time [ns], 0 = never
    is_stale: I8
    is_invalid: I8
    channels: Channels
    value: F8  # [n_in] a view of the row
    age: F8  # [n_in] a view of the row


class Stimuli(NamedTuple):
    """Made-up inputs by slot. Set by commands, read by stimulus.py."""

    head: I8  # [n_in] first slot of the input, -1 = none: see slots.py
    following: I8  # [SLOTS] next slot of the same input
    kind: I8  # [SLOTS] 0 = empty
    p: F8  # [SLOTS, SLOT_PARAMS]
    rng: NDArray[np.uint64]  # [SLOTS]
    table_time: F8  # all tables one after another
    table_value: F8


class Faults(NamedTuple):
    """Injected faults by slot. Set by commands, read by faults.py."""

    head: I8  # [n_in + n_out + n_cmd] first slot of the signal, -1 = none: see slots.py
    following: I8  # [SLOTS] next slot of the same signal
    kind: I8  # [SLOTS] 0 = empty
    p: F8  # [SLOTS, SLOT_PARAMS]
    rng: NDArray[np.uint64]  # [SLOTS]
    held: F8  # [SLOTS] last value let through
    age: I8  # [SLOTS] ticks since it became active
    history: F8  # [SLOTS, HISTORY]


class Forces(NamedTuple):
    """Values imposed by hand. Set by commands."""

    on: I8  # [n_in + n_out + n_cmd]
    value: F8


class Plant(NamedTuple):
    """The plant's pointers and vectors."""

    task: I8  # [tasks] addresses of step functions; the first is the plant itself
    self: I8  # [tasks] their first argument
    every: I8  # [tasks] run on each k-th step
    phase: I8
    reset: I8  # [2] address and first argument; 0 = none
    param: F8
    output: F8  # [n_out] a view of the row
    pose: F8  # a view of the row


class Outputs(NamedTuple):
    """Plant outputs in, device commands out. Written by outputs.py."""

    source: I8  # [n_cmd] index over inputs and outputs
    safe: F8
    held_by: I8  # [n_cmd] alarm that holds this command, -1 = none
    held_at: F8
    channels: Channels
    value: F8  # [n_cmd] a view of the row
    stamp: I8  # [n_cmd]
    box_base: I8  # [boxes]
    box_channels: I8
    box_at: I8


class Alarms(NamedTuple):
    """Watched signals. Written by alarms.py."""

    signal: I8
    low: F8
    high: F8
    need: I8  # ticks in a row outside [low, high]
    count: I8
    active: I8
    action: I8  # 0 log, 1 trip, 2 set
    target: I8  # command index for `set`
    value: F8


class Tick(NamedTuple):
    """Everything, in one argument."""

    setup: Setup
    live: Live
    row: I8  # the row being made; inputs, outputs, commands and poses are views of it
    seen: F8  # [n_in + n_out + n_cmd] signals as others see them: after faults and forces
    inputs: Inputs
    stimuli: Stimuli
    faults: Faults
    forces: Forces
    plant: Plant
    outputs: Outputs
    alarms: Alarms
    rows: RingView
    events: RingView
    lanes: I8  # [lanes, 4] command rings: base, capacity, next row to read, rows lost
    command: I8  # [COMMAND_WIDTH] the command being applied
    event: I8  # [EVENT_WIDTH] the event being written
