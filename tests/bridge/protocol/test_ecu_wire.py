"""What an ECU may send: taken as it was meant, or refused with the reason."""

import contextlib
import math
import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.ecu_wire import LARGEST, MOST_STEPS, Frame, frame_of, refusal, unpack
from bridge.protocol.operations import Refused

NAMES = {"torque": 0, "valve": 1}
GOOD = {"v": 1, "seq": 3, "t": 1.5, "values": [1.0, 2]}


def taken(**changes: object) -> Frame:
    message = {key: value for key, value in (GOOD | changes).items() if value is not ...}
    return frame_of(unpack(msgpack.packb(message)), NAMES)


def test_values_in_their_order_or_by_name():
    assert (taken().channels, taken().values) == ([0, 1], [1.0, 2])
    some = taken(values={"valve": -1})
    assert (some.channels, some.values) == ([1], [-1])
    assert taken(values=...).channels == ()
    assert math.isnan(taken(values=[math.nan, 0.0]).values[0])


def test_what_may_be_left_out():
    frame = taken()
    assert (frame.ack, frame.step) == (-1, 0)
    assert math.isnan(frame.ack_t)
    assert taken(ack=7, ack_t=2, step=5) == Frame(3, 1.5, [0, 1], [1.0, 2], 7, 2.0, 5)


@pytest.mark.parametrize(
    ("changes", "reason", "why"),
    [
        ({"v": 2}, "version", "version 1"),
        ({"v": ...}, "version", "None"),
        ({"seq": -1}, "malformed", "seq"),
        ({"seq": 1.0}, "malformed", "seq"),
        ({"seq": True}, "malformed", "seq"),
        ({"seq": 2**63}, "malformed", "seq"),
        ({"t": ...}, "malformed", "clock"),
        ({"t": "now"}, "malformed", "clock"),
        ({"t": math.nan}, "malformed", "clock in seconds"),
        ({"t": 9.1e9}, "malformed", "clock in seconds"),  # milliseconds since 1970, say
        ({"t": -(10**18)}, "malformed", "clock in seconds"),
        ({"ack": 1, "ack_t": 1e300}, "malformed", "ack_t"),
        ({"values": [1.0]}, "malformed", "2 numbers"),
        ({"values": [1.0, 2.0, 3.0]}, "malformed", "2 numbers"),
        ({"values": 1.0}, "malformed", "2 numbers"),
        ({"values": [1.0, "x"]}, "malformed", "must be numbers"),
        ({"values": [1.0, True]}, "malformed", "must be numbers"),
        ({"values": {"knee": 1.0}}, "malformed", "knee.*torque, valve"),
        ({"step": -1}, "malformed", "step"),
        ({"step": MOST_STEPS + 1}, "malformed", "step"),
        ({"ack": 1.5}, "malformed", "ack"),
        ({"ack": 1, "ack_t": []}, "malformed", "ack_t"),
    ],
)
def test_what_is_refused(changes, reason, why):
    with pytest.raises(Refused, match=why) as caught:
        taken(**changes)
    assert caught.value.reason == reason


def test_bytes_that_are_no_message():
    for body, reason in ((b"\xc1", "malformed"), (b"\x01", "malformed"), (bytes(LARGEST + 1), "oversized")):
        with pytest.raises(Refused) as caught:
            unpack(body)
        assert caught.value.reason == reason


@given(st.binary(max_size=200))
def test_whatever_comes_is_taken_or_refused(body):
    with contextlib.suppress(Refused):
        frame_of(unpack(body), NAMES)


def test_a_message_cut_or_changed_anywhere_is_taken_or_refused():
    whole, chance = msgpack.packb(GOOD | {"ack": 1, "ack_t": 0.5}), random.Random(3)
    for cut in range(len(whole)):
        spoilt = bytearray(whole)
        spoilt[cut] = chance.randrange(256)
        for body in (whole[:cut], bytes(spoilt)):
            with contextlib.suppress(Refused):
                frame_of(unpack(body), NAMES)


def test_a_refusal_says_which_message_and_why():
    assert msgpack.unpackb(refusal("replayed", "seq = 3", 3)) == {
        "v": 1,
        "error": "seq = 3",
        "reason": "replayed",
        "ack": 3,
    }
    assert "ack" not in msgpack.unpackb(refusal("malformed", "x", None))
