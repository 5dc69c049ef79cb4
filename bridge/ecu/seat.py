"""The seat of one ECU in the lane: its identity, messages, clock estimate and words in shared memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.ecu.clock import EcuClock
from bridge.protocol.ecu_wire import Frame
from bridge.protocol.operations import Refused
from hilnode.shared.ecu_link import SILENT, E, EcuLinks
from hilnode.shared.health import READS, H, Health, Records, bucket
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.row import Col, Schema

MOST_LOST = 2**63 - 1  # what the word holds: sequence numbers are the ECU's own, and may leap


class Seat:
    """The place of one ECU: its driver `ecu["name"]`, the link number `number`."""

    def __init__(self, ecu: dict[str, Any], number: int, spec: dict[str, Any], schema: Schema) -> None:
        self.name: str = ecu["name"]
        self.channels = {name: k for k, name in enumerate(ecu["inputs"])}
        self.silent_ns: int = ecu["silent_ns"]
        self.identity, self.user, self.connection = b"", "", -1
        self.goal = self.granted = self.after = 0  # lockstep: step to reach, steps granted, rows that came before
        self._inbox = Mailbox.attach(f"{spec['node']}.in.{self.name}")
        self.link = memoryview(EcuLinks.attach(spec["node"]).table[number])
        self._health = memoryview(Records(spec["node"]).table[ecu["record"]])
        self._values, self._stamps = np.zeros(len(self.channels)), np.zeros(len(self.channels), np.int64)
        self._columns = np.array([schema.at_commands + k for k in ecu["commands"]], np.int64)  # of the mapped channels
        self._mapped = np.array(ecu["mapped"], np.int64)
        self._safe: list[float] = ecu["safe"]
        self._every: int = ecu["every"]
        self.link[E.SEATED] = self.link[E.BUSY] = 0  # a lane before this one may have been killed
        self._begin()

    def _begin(self) -> None:
        self.clock = EcuClock()
        self._seq = 0  # of the messages to it
        self._ack, self._ack_t, self._heard = -1, 0.0, 0.0
        self._read_at = 0
        self._told_tick = -self._every
        self.goal = self.granted = 0

    def take(self, identity: bytes, user: str, connection: int = -1) -> None:
        """Somebody sits down; `connection` is ZeroMQ's number for it."""
        self._begin()
        self.identity, self.user, self.connection = identity, user, connection
        self.link[E.CLOCKED] = self.link[E.ROUND_P50] = self.link[E.ROUND_P99] = 0
        self.link[E.SEATS] += 1

    def leave(self, *, silent: bool = False) -> None:
        """Whoever it was has gone, or says nothing."""
        self.identity, self.user = b"", ""
        self.link[E.SEATED] = SILENT if silent else 0
        self.goal = 0

    # -- from the ECU -------------------------------------------------------------------------------------------------

    def hear(self, frame: Frame, arrived: int) -> None:
        """Count it and learn from its times; one that is not newer than the last is refused."""
        if self._ack >= 0:
            if frame.seq <= self._ack:
                raise Refused("replayed", f"seq = {frame.seq}: must be above {self._ack}")
            lost = self.link[E.LOST] + frame.seq - self._ack - 1
            self.link[E.LOST] = min(lost, MOST_LOST)
        self._ack, self._ack_t, self._heard = frame.seq, frame.t, arrived * 1e-9
        self.link[E.HEARD], self.link[E.SEQ] = arrived, frame.seq
        self.link[E.SEATED] = 1
        self.link[E.FRAMES] += 1
        if frame.ack >= 0:
            self.clock.answered(frame.ack, frame.ack_t, frame.t, self._heard)

    def deliver(self, frame: Frame, arrived: int) -> None:
        """Values to the mailbox, unless the twin plays this ECU. Channels that were not named keep value and age."""
        for channel, value in zip(frame.channels, frame.values, strict=True):
            self._values[channel] = value
            self._stamps[channel] = arrived
        link, health = self.link, self._health
        link[E.BUSY] = 1
        if link[E.IN]:
            self._inbox.put(self._values, self._stamps)
            if self._read_at:
                health[READS.start + bucket(arrived - self._read_at)] += 1
            self._read_at = health[H.LAST_READ] = arrived
            health[H.FRAMES] += 1
            if health[H.STATE] in (Health.CONNECTING, Health.DEGRADED):
                health[H.STATE] = Health.UP
        link[E.BUSY] = 0

    def refused(self) -> None:
        """A message for this ECU, or for nobody, was not taken."""
        self.link[E.REFUSED] += 1
        if self.identity:
            self._health[H.ERRORS] += 1
            if self._health[H.STATE] == Health.UP:
                self._health[H.STATE] = Health.DEGRADED

    # -- to the ECU ---------------------------------------------------------------------------------------------------

    def is_due(self, rows: NDArray[np.int64]) -> bool:
        """Whether one of these rows is to be sent: the newest goes in its place."""
        if self._every > 1 and rows[-1, Col.TICK] // self._every == self._told_tick // self._every:
            return False
        self._told_tick = int(rows[-1, Col.TICK])
        return True

    def words(self, row: NDArray[np.int64] | None, live: bool, moment: float) -> dict[str, Any]:
        """What this ECU is told: numbers of its own messages, and its values, safe ones if it is not live."""
        seq, self._seq = self._seq, self._seq + 1
        self.clock.sent(seq, moment)
        values = list(self._safe)
        if live and row is not None:
            told = row.view(np.float64)[self._columns].tolist()
            for channel, value in zip(self._mapped.tolist(), told, strict=True):
                values[channel] = value
        granted, self.granted = self.granted, 0
        offset = self.clock.offset
        return {
            "seq": seq,
            "sent": moment,
            "live": bool(live),
            "granted": granted,
            "ack": self._ack,
            "ack_t": self._ack_t,
            "heard": self._heard,
            "lost": int(self.link[E.LOST]),
            "offset": None if math.isnan(offset) else offset,
            "values": values,
        }

    def report(self) -> None:
        """The clock and the round trips to shared memory."""
        c = self.clock
        if not math.isnan(c.offset):
            self.link[E.OFFSET], self.link[E.DELAY] = round(c.offset * 1e9), round(c.delay * 1e9)
            self.link[E.CLOCKED] = 1
        if c.round_trips:
            self.link[E.ROUND_P50] = round(c.round_trip(0.5) * 1e9)
            self.link[E.ROUND_P99] = round(c.round_trip(0.99) * 1e9)
