"""Messages between an ECU and the node: one frame each, a MessagePack map. See docs/wire-protocol.md

    ECU to node     v, seq, t, values?, ack?, ack_t?, step?, ecu?
    node to ECU     v, seq, tick, step, t, timestamp, sent, state, live, granted, values, and
                    ack, ack_t, heard, lost, offset: what it knows of the ECU's messages and clock

`t` of an ECU is its own clock in seconds, whatever that counts from. `ack` and `ack_t` say which message of the other
side was the last to arrive and, on the ECU's side, when: with these the node knows the round trip and how far the two
clocks are apart, without either being set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from bridge.protocol.operations import Refused
from bridge.protocol.untrusted import shown, unpack_map

VERSION = 1
LARGEST = 64 * 1024  # [bytes] of a message from an ECU
MOST_STEPS = 1_000_000  # granted in one message
LONGEST_CLOCK = 9e9  # [s] 285 years: in nanoseconds it fits into 64 bits


@dataclass(frozen=True, slots=True)
class Frame:
    """What an ECU said. `channels` are those that `values` are for, in that order; empty: no values."""

    seq: int
    t: float
    channels: Sequence[int]
    values: Sequence[float]
    ack: int  # -1: none
    ack_t: float
    step: int  # 0: none


def unpack(body: bytes | memoryview) -> dict[str, Any]:
    """The map in a message, with what every message needs; `Refused` says what is wrong with it."""
    message = unpack_map(body, LARGEST)
    version = message.get("v")
    if type(version) is not int or version != VERSION:
        raise Refused(
            "version", f"this node speaks version {VERSION} of the ECU lane, the message has {shown(version)}"
        )
    return message


def frame_of(message: dict[str, Any], names: Mapping[str, int]) -> Frame:
    """The message checked against the ECU's channels, `names` to their numbers."""
    seq, t = message.get("seq"), message.get("t")
    if type(seq) is not int or not 0 <= seq < 2**63:
        raise Refused("malformed", "seq must be a whole number from 0 on")
    if t is None or not _is_clock(t):
        raise Refused("malformed", f"t must be the ECU's own clock in seconds, a number within {LONGEST_CLOCK:g}")
    step = message.get("step", 0)
    if type(step) is not int or not 0 <= step <= MOST_STEPS:
        raise Refused("malformed", f"step must be a whole number from 0 to {MOST_STEPS}")
    ack, ack_t = message.get("ack", -1), message.get("ack_t", math.nan)
    if type(ack) is not int or not (_is_clock(ack_t) or (type(ack_t) is float and math.isnan(ack_t))):
        raise Refused(
            "malformed", f"ack must be a whole number and ack_t in seconds, a number within {LONGEST_CLOCK:g}"
        )
    channels, values = _values(message.get("values"), names)
    return Frame(seq, float(t), channels, values, ack, float(ack_t), step)


def _values(given: Any, names: Mapping[str, int]) -> tuple[Sequence[int], Sequence[float]]:
    if given is None:
        return (), ()
    if isinstance(given, dict):
        for name in given:
            if name not in names:
                raise Refused("malformed", f"values: no channel {shown(name)}, there is {', '.join(names)}")
        channels, values = [names[name] for name in given], list(given.values())
    elif isinstance(given, list) and len(given) == len(names):
        channels, values = list(range(len(given))), given
    else:
        raise Refused("malformed", f"values must be a list of {len(names)} numbers, or a map from channel to number")
    if not all(type(x) is float or _is_number(x) for x in values):
        raise Refused("malformed", "values must be numbers")
    return channels, values


def _is_number(x: Any) -> bool:
    """A number that a float64 can hold; NaN is one on the wire: the tick flags it like that of any device."""
    return type(x) is float or (type(x) is int and abs(x) < 2**1023)


def _is_clock(t: Any) -> bool:
    """A moment in seconds that fits, counted in nanoseconds, into 64 bits."""
    return _is_number(t) and abs(t) <= LONGEST_CLOCK


def refusal(reason: str, why: str, seq: int | None) -> bytes:
    """The answer to a message that was not taken."""
    body = {"v": VERSION, "error": why, "reason": reason}
    return msgpack.packb(body if seq is None else body | {"ack": seq})
