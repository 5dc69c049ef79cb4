"""Clock offset between an ECU and the node, and round-trip times, estimated from the messages exchanged.

    node    T1 -------------------- T4          T1  state sent          T4  the ECU's message arrives
              \\                    /
    ECU        t2 ------------ t3               t2  state arrives       t3  message sent, on the ECU's clock

    offset = ((t2 - T1) + (t3 - T4)) / 2        the ECU's clock minus the node's
    delay  = (T4 - T1) - (t3 - t2)              both ways on the wire

The offset is wrong by half of the difference between the two ways, so by half of `delay` at most. Messages that had to
queue have a long delay: of the last few, the one with the shortest is believed (Ref: Mills, RFC 5905 section 10, clock
filter). The window is short enough for a crystal that drifts by 100 ppm: 0.1 ms in a second.
"""

from __future__ import annotations

import math
from collections import deque

WINDOW = 64  # samples of the clock filter: the one with the least delay counts
SENT_KEPT = 4096  # states whose time of sending is remembered
ROUNDS = 1000  # round trips in the statistics


class EcuClock:
    """The filter of one ECU. Times are seconds, the node's on CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self.offset = math.nan
        self.delay = math.nan
        self.round_trips: deque[float] = deque(maxlen=ROUNDS)
        self._samples: deque[tuple[float, float]] = deque(maxlen=WINDOW)  # delay, offset
        self._sent: dict[int, float] = {}

    def sent(self, seq: int, at: float) -> None:
        """State number `seq` goes out now."""
        self._sent[seq] = at
        self._sent.pop(seq - SENT_KEPT, None)

    def answered(self, ack: int, ack_t: float, t: float, now: float) -> None:
        """The first message that names state `ack`: it arrived at the ECU at `ack_t`, the message left it at `t`."""
        began = self._sent.pop(ack, None)
        if began is None:
            return
        self.round_trips.append(now - began)
        delay = (now - began) - (t - ack_t)
        if not (t >= ack_t and 0.0 <= delay < math.inf):  # its clock was set meanwhile, or it never told
            return
        self._samples.append((delay, ((ack_t - began) + (t - now)) / 2))
        self.delay, self.offset = min(self._samples)

    def round_trip(self, share: float) -> float:
        """The time [s] that this share of the late round trips took at most; NaN if there was none."""
        if not self.round_trips:
            return math.nan
        ordered = sorted(self.round_trips)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
