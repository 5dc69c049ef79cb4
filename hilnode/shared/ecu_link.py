"""The link to an ECU: words in shared memory between the node's driver, the ECU lane and whoever reports on it.

One record for each driver of kind `ecu`, in the segment `NODE.ecus`. The values themselves go through the driver's
mailbox, whose one writer is the lane while the ECU is in, and the twin's thread while the twin is in. `IN` and `BUSY`
keep them apart: the lane says BUSY before it looks at IN, the driver takes IN back before it waits for BUSY.

Needs no compiler. Counters go on where the last lane left them, if one was killed.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from hilnode.shared.lockfree.segment import Segment

ECU_LINK_KIND = 6
ECU_LINK_WORDS = 32
SILENT = 2


class E(IntEnum):
    """Words of a record. Who writes it: D the driver in the node, L the lane in the bridge."""

    IN = 0  # D  1 while the ECU is in, 0 while its twin plays it
    BUSY = 1  # L  1 from before it looks at IN until its letter is written
    SEATED = 2  # L  1 while an ECU is connected, SILENT if the last one lost its seat by saying nothing
    HEARD = 3  # L  when the last message came [ns, CLOCK_MONOTONIC], 0 = never
    SEQ = 4  # L  its sequence number
    FRAMES = 5  # L  messages taken
    LOST = 6  # L  messages that never came, by their sequence numbers
    REFUSED = 7  # L  messages refused
    SENT = 8  # L  messages to the ECU
    UNSENT = 9  # L  messages that it was too slow for
    SEATS = 10  # L  times that an ECU has connected
    STEPS = 11  # L  plant steps granted
    CLOCKED = 12  # L  1 = offset and delay are known
    OFFSET = 13  # L  the ECU's clock minus the node's [ns]
    DELAY = 14  # L  both ways on the wire, the least of late [ns]: the offset is right to within half of it
    ROUND_P50 = 15  # L  from a state sent to the message that answers it [ns]; 0 = not known
    ROUND_P99 = 16


@dataclass(frozen=True, slots=True)
class EcuLinkReport:
    """A record in words and numbers, at one moment."""

    connected: bool
    age_s: float  # since the last message; infinite: none yet
    seq: int
    frames: int
    lost: int
    refused: int
    sent: int
    unsent: int
    connects: int
    steps: int
    offset_s: float  # NaN where it is not known, as those below
    delay_us: float
    round_trip_p50_us: float
    round_trip_p99_us: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class EcuLinks:
    """The links of one node: made by the node, attached to by the bridge."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.table = segment.words.reshape(-1, ECU_LINK_WORDS)

    @classmethod
    def create(cls, node: str, count: int) -> EcuLinks:
        return cls(Segment.create(f"{node}.ecus", kind=ECU_LINK_KIND, words=ECU_LINK_WORDS * count))

    @classmethod
    def attach(cls, node: str) -> EcuLinks:
        return cls(Segment.attach(f"{node}.ecus", kind=ECU_LINK_KIND))

    def report(self, number: int) -> EcuLinkReport:
        """What the record says now."""
        w = self.table[number].tolist()
        clocked, rounds = w[E.CLOCKED] == 1, w[E.ROUND_P50] > 0
        return EcuLinkReport(
            connected=w[E.SEATED] == 1,
            age_s=(time.monotonic_ns() - w[E.HEARD]) * 1e-9 if w[E.HEARD] else math.inf,
            seq=w[E.SEQ],
            frames=w[E.FRAMES],
            lost=w[E.LOST],
            refused=w[E.REFUSED],
            sent=w[E.SENT],
            unsent=w[E.UNSENT],
            connects=w[E.SEATS],
            steps=w[E.STEPS],
            offset_s=w[E.OFFSET] * 1e-9 if clocked else math.nan,
            delay_us=w[E.DELAY] * 1e-3 if clocked else math.nan,
            round_trip_p50_us=w[E.ROUND_P50] * 1e-3 if rounds else math.nan,
            round_trip_p99_us=w[E.ROUND_P99] * 1e-3 if rounds else math.nan,
        )

    def close(self) -> None:
        self._segment.close()
