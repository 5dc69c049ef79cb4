"""Codes shared between processes: pace, policies, commands, answers, causes of trips, events, exit codes."""

from __future__ import annotations

from enum import IntEnum


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


class Command(IntEnum):
    """Commands; words of a command row: code, index, id, then up to PARAMS float64 parameters."""

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
    STIMULUS = 14  # index = slot; see hilnode/tick/stimulus.py
    FAULT = 15  # index = slot; see hilnode/tick/faults.py
    SWAPPED = 16  # told by the node: index = driver, p0 = 1 if its twin is in now, 0 if the device


class Answer(IntEnum):
    """What became of a command."""

    DONE = 0
    WRONG_STATE = 1  # not possible in the present state
    STALE_INPUT = 2  # an input with policy `trip` has no fresh value; the event's value is its index
    UNKNOWN = 3  # no such command or index
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
    COMMAND_NOT_FINITE = 9  # value = command index


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
    SWAP = 11  # index = driver, value = 1 if its twin is in now, 0 if the device
    COLLISION = 12  # index = which two bodies, value = impulse [N s], id = where: see hilnode/tick/collisions.py


class ExitCode(IntEnum):
    """How a command ended, for scripts; the README lists them too."""

    OK = 0
    REFUSED = 1  # by the system: a file, memory, an address; or `rerun` found a difference
    BAD_CONFIG = 2  # or a bad command line
    TRIPPED = 3
    HALTED = 4  # an overrun with overrun = "halt"
    BUSY = 5  # another node has the name or the port


SLOT_PARAMS = 8  # of a stimulus or fault
PARAMS = 3 + SLOT_PARAMS  # of a command
COMMAND_WIDTH = 3 + PARAMS
EVENT_WIDTH = 6
PLACE_BITS, PLACE_FURTHEST = 21, (1 << 20) - 1  # of a coordinate [mm] in the id of a collision
