"""The cab: from levers, pedals and switches to the demand on each drive.

    ISO    left: stick out/in, swing right/left      right: boom down/up, bucket out/in     (pushed away, to the right)
    SAE    the two forward movements change places

Values beyond their range are brought back into it, what is not a number is taken for the lever's safe value, and the
cab says so. Nobody at the levers means the parking brake on.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from hilnode.core.jit import inline, kernel
from hilnode.core.signals import Signal
from hilnode.core.struct import F1, F2


class In(IntEnum):
    """Inputs of the machine, in their order."""

    LEFT_X = 0
    LEFT_Y = 1
    RIGHT_X = 2
    RIGHT_Y = 3
    DRIVE = 4
    BRAKE = 5
    STEER = 6
    STEER_MODE = 7
    GEAR = 8
    THROTTLE = 9
    BLADE = 10
    OUTRIGGERS = 11
    PATTERN = 12
    PARKING = 13


INPUTS = (
    Signal("left.x", "1", 0.0, -1, 1, doc="left stick to the right"),
    Signal("left.y", "1", 0.0, -1, 1, doc="left stick pushed away"),
    Signal("right.x", "1", 0.0, -1, 1, doc="right stick to the right"),
    Signal("right.y", "1", 0.0, -1, 1, doc="right stick pushed away"),
    Signal("drive", "1", 0.0, -1, 1, doc="accelerator; negative is backwards"),
    Signal("brake", "1", 0.0, 0, 1, doc="brake pedal"),
    Signal("steer", "1", 0.0, -1, 1, doc="steering wheel; positive is to the left"),
    Signal("steer_mode", "1", 0.0, 0, 2, doc="0 Ackermann, 1 pivot, 2 crab"),
    Signal("gear", "1", 1.0, 1, 3, doc="1, 2 or 3"),
    Signal("throttle", "1", 1.0, 0, 1, safe=0.0, doc="engine from idle to rated speed"),
    Signal("blade", "1", 0.0, -1, 1, doc="positive is up"),
    Signal("outriggers", "1", 0.0, -1, 1, doc="positive is up"),
    Signal("pattern", "1", 0.0, 0, 1, doc="0 ISO, 1 SAE"),
    Signal("parking", "1", 1.0, 0, 1, doc="parking brake; on if nobody says anything"),
)
"""Names without the machine's own."""

(
    LEFT_X,
    LEFT_Y,
    RIGHT_X,
    RIGHT_Y,
    DRIVE,
    BRAKE,
    STEER,
    STEER_MODE,
    GEAR,
    THROTTLE,
    BLADE,
    OUTRIGGERS,
    PATTERN,
    PARKING,
) = (int(k) for k in In)


class Cab(NamedTuple):
    """What the operator asks for, sorted by drive."""

    range: F2  # [inputs, 2]
    safe: F1  # [inputs] what is taken for a value that is not a number
    lever: F1  # [inputs] within their ranges
    ask: F1  # [4] boom up, stick out, bucket out, swing left, each -1 .. 1
    clamped: F1  # [1] how many inputs were beyond their range in this step


@inline
def _held(value, low, high, safe):
    """Within its range, or its safe value if it is not a number."""
    if math.isnan(value):
        return safe
    return min(max(value, low), high)


@kernel
def read_cab(cab, inputs):
    """Levers within their ranges, and what they mean by the pattern chosen."""
    outside = 0.0
    lever = cab.lever
    for k in range(lever.size):
        given = inputs[k]
        lever[k] = _held(given, cab.range[k, 0], cab.range[k, 1], cab.safe[k])
        if lever[k] != given:
            outside += 1.0
    cab.clamped[0] = outside
    forward_left, forward_right = lever[LEFT_Y], lever[RIGHT_Y]
    if lever[PATTERN] >= 0.5:
        forward_left, forward_right = forward_right, forward_left
    cab.ask[0] = -forward_right
    cab.ask[1] = forward_left
    cab.ask[2] = lever[RIGHT_X]
    cab.ask[3] = -lever[LEFT_X]
