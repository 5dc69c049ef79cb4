"""Every array the loop works on, grouped by the stage that owns it.

All are NamedTuples, laid down as one struct (`hilnode/core/struct.py`) that every stage sees through one pointer.
Everything is allocated before the loop starts; `n_in`, `n_out`, `n_cmd` are the lengths of the plant's inputs and
outputs and of the device commands, and *signal* indices run over all three in that order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from hilnode.core.struct import F1, F2, I1, I2, U1, viewer
from hilnode.shared.lockfree.ring import RingView
from hilnode.shared.row import Col, Flag, State

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

    i: I1  # indices below
    blend: F1  # [1] 0 = safe values, 1 = live values


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
    QUIET = 13  # no overrun event before this time [ns]


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

    scale: F1
    offset: F1
    low: F1
    high: F1
    slew: F1  # greatest change per tick; inf = none
    alpha: F1  # share of the difference a low pass follows per tick; 1 = none
    last: F1  # what came out last
    primed: I1  # 0 = the next value passes unfiltered


class Inputs(NamedTuple):
    """Mailboxes in, plant inputs out. Written by inputs.py."""

    box_base: I1  # [boxes] addresses
    box_channels: I1
    box_at: I1  # where each one's channels begin in raw
    box_seen: I1  # number of the letter held
    raw: F1  # [all device channels] as delivered
    stamp: I1  # when measured [ns]
    spare_raw: F1
    spare_stamp: I1
    source: I1  # [n_in] index into raw, -1 = none
    default: F1
    limit_ns: I1  # older than this is stale
    policy: I1  # Stale
    ramp_ns: I1
    good: F1  # last finite value, in the signal's unit
    good_at: I1  # its time [ns], 0 = never
    heard: I1  # source time of the last letter looked at [ns]
    is_stale: I1
    is_invalid: I1
    channels: Channels
    value: F1  # [n_in] a view of the row
    age: F1  # [n_in] a view of the row


class Stimuli(NamedTuple):
    """Made-up inputs by slot. Set by commands, read by stimulus.py."""

    head: I1  # [n_in] first slot of the input, -1 = none: see slots.py
    following: I1  # [SLOTS] next slot of the same input
    kind: I1  # [SLOTS] 0 = empty
    p: F2  # [SLOTS, SLOT_PARAMS]
    seed: U1  # [SLOTS]
    table_time: F1  # all tables one after another
    table_value: F1


class Faults(NamedTuple):
    """Injected faults by slot. Set by commands, read by faults.py."""

    head: I1  # [n_in + n_out + n_cmd] first slot of the signal, -1 = none: see slots.py
    following: I1  # [SLOTS] next slot of the same signal
    kind: I1  # [SLOTS] 0 = empty
    p: F2  # [SLOTS, SLOT_PARAMS]
    seed: U1  # [SLOTS]
    held: F1  # [SLOTS] last value let through
    age: I1  # [SLOTS] ticks since it became active
    history: F2  # [SLOTS, HISTORY]


class Forces(NamedTuple):
    """Values imposed by hand. Set by commands."""

    on: I1  # [n_in + n_out + n_cmd]
    value: F1


class Plant(NamedTuple):
    """The plant's pointers and vectors."""

    task: I1  # [tasks] addresses of step functions; the first is the plant itself
    self: I1  # [tasks] their first argument
    every: I1  # [tasks] run on each k-th step
    phase: I1
    reset: I1  # [2] address and first argument; 0 = none
    param: F1
    output: F1  # [n_out] a view of the row
    pose: F1  # a view of the row
    hits: I1  # [1] collisions so far: the plant's ring of them, empty if it tells none
    hit_body: I2
    hit_point: F2
    hit_impulse: F1
    hit_least: float  # [N s] what is softer makes no event
    hits_told: I1  # [1] collisions looked at so far


class Outputs(NamedTuple):
    """Plant outputs in, device commands out. Written by outputs.py."""

    source: I1  # [n_cmd] index over inputs and outputs
    safe: F1
    held_by: I1  # [n_cmd] alarm that holds this command, -1 = none
    held_at: F1
    channels: Channels
    base: F1  # [n_cmd] before alarms, faults and forces: what a pause holds
    value: F1  # [n_cmd] a view of the row
    stamp: I1  # [n_cmd]
    box_base: I1  # [boxes]
    box_channels: I1
    box_at: I1


class Alarms(NamedTuple):
    """Watched signals. Written by alarms.py."""

    signal: I1
    low: F1
    high: F1
    need: I1  # ticks in a row outside [low, high]
    count: I1
    active: I1
    credit: I1  # events it may still write in a row
    told_at: I1  # when credit was last given [ns]
    action: I1  # 0 log, 1 trip, 2 set
    target: I1  # command index for `set`
    value: F1


class Tick(NamedTuple):
    """Everything, in one argument."""

    setup: Setup
    live: Live
    row: I1  # the row being made; inputs, outputs, commands and poses are views of it
    seen: F1  # [n_in + n_out + n_cmd] signals as others see them: after faults and forces
    inputs: Inputs
    stimuli: Stimuli
    faults: Faults
    forces: Forces
    plant: Plant
    outputs: Outputs
    alarms: Alarms
    rows: RingView
    events: RingView
    command_rings: I2  # [rings, 4] base, capacity, next row to read, rows lost
    command: I1  # [COMMAND_WIDTH] the command being applied
    event: I1  # [EVENT_WIDTH] the event being written


view_tick = viewer(Tick)
