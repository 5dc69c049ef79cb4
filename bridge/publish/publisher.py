"""The publisher: sends rows, events, statistics and display state to the subscribers.

A slow subscriber loses messages and sees it by their numbers; the node does not notice. A slow publisher loses rows and
says how many.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.protocol.messages import Packer, timing_of
from bridge.protocol.waiting import await_rows, now
from bridge.publish.black_boxes import SAMPLE_NS, BlackBoxes
from bridge.publish.display_publisher import DisplayPublisher, NoDisplay
from bridge.publish.rates import Rates
from bridge.publish.subscribers import Subscribers
from hilnode.shared.control import Control, Word
from hilnode.shared.ecu_link import EcuLinks
from hilnode.shared.health import Records
from hilnode.shared.lockfree.ring import Ring, RingReader
from hilnode.shared.machine_sample import Sampler
from hilnode.shared.realtime import make_thread_hard
from hilnode.shared.row import HEADER, Col, Schema, State

POLL_NS = 50_000  # between two looks at the ring once a row is due: what it adds to the latency of a message
PATIENCE_NS = 20_000_000  # without a row for so long: the plant waits for somebody, and so does the publisher
SLOW_POLL_NS = 1_000_000  # between two looks then
BEAT_NS = 200_000_000  # between two looks at the subscribers, and at what the drivers have counted
SECOND_NS = 1_000_000_000
MOST_SUMMED = 20_000  # rows in one message of statistics: a free run makes more of them in a second
WINDOW = 5  # beats back: what the periods of the drivers are taken over


class Publisher:
    """Publishes one node to its subscribers. `spec` comes from the node: see hilnode/node/child_specs.py."""

    def __init__(self, spec: dict[str, Any], subscribers: Subscribers) -> None:
        schema = Schema.from_dict(spec["schema"])
        self.control = Control.attach(spec["node"])
        self.rows = Ring.attach(f"{spec['node']}.rows", schema=schema.hash)
        self.packer = Packer(schema, spec["node"], spec["scene"])
        self.happenings: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.rates = Rates(max(1, round(1e9 / schema.dt_ns)), spec["state_hz"])
        self.send_raw: bool = spec["raw"]
        self.drivers = Records(spec["node"])
        self.past: deque[NDArray[np.int64]] = deque([self.drivers.table.copy()], maxlen=WINDOW)
        self._beat_due = now() + BEAT_NS
        self.subscribers, self._send = subscribers, subscribers.send
        self._parameters = spec["parameters"]
        self._ecu_lane = spec["ecu_lane"]
        self._timing: dict[str, Any] = {}
        self._lost = 0
        self._ecus: list[str] = spec["ecus"]
        self._ecu_links = EcuLinks.attach(spec["node"]) if self._ecus else None
        layout = spec["display"]
        self.display = DisplayPublisher(spec["node"], layout, self.packer, self.control) if layout else NoDisplay()
        self._headers: list[NDArray[np.int64]] = []  # of the rows that no statistics have counted yet
        self._waiting = 0  # such rows
        self._second_due = now() + SECOND_NS
        self._seconds = 0
        self._black_boxes = BlackBoxes(schema.dt_ns)
        self._sampler: Sampler | None = None
        self._sample_due = 0

    def describe(self) -> dict[str, Any]:
        """The layout of the rows and the plant's parameters, for a client that asks."""
        return {**self.packer.layout(), "parameters": self._parameters, "ecu": self._ecu_lane}

    def facts(self) -> dict[str, Any]:
        """How the node stands, for the metrics; may be called from any thread."""
        return {
            "tick": self.control[Word.TICK],
            "overruns": self.control[Word.OVERRUNS],
            "state": State(self.control[Word.STATE]).name.lower(),
            "lost": self._lost,
            "overflows": self.subscribers.overflows,
            "timing": self._timing,
            "drivers": {r.name: r.as_dict() for r in self.drivers.reports()},
            "ecus": self._ecu_reports(),
        }

    def _ecu_reports(self) -> dict[str, Any]:
        return (
            {name: self._ecu_links.report(k).as_dict() for k, name in enumerate(self._ecus)} if self._ecu_links else {}
        )

    def work(self, report: Callable[[], dict[str, Any]]) -> None:
        """Until the node ends or dies. `report` tells once a second what the rest of the bridge has counted."""
        make_thread_hard(-1, 0)  # only for the fine timer
        reader = self.rows.reader(batch=256)
        node = self.control[Word.PID]
        self.display.start()
        woke = now()
        while not self.control[Word.CLOSING] and os.getppid() == node:
            self._await(reader, woke)
            rows = reader.read()
            if len(rows):
                woke = int(rows[-1, Col.WAKE])
                self._send_rows(rows)
            self._tell_happenings()
            moment = now()
            self._watch_overruns(moment)
            if self._waiting >= MOST_SUMMED or (self._waiting and self.rates.is_due("timing", moment)):
                self._sum_up(reader.lost)
            if moment >= self._second_due:
                self._second_due = moment + SECOND_NS
                self._tell_second(moment, reader.lost, report())
            self._tell_devices(moment)
            if moment >= self._beat_due:
                self._beat_due = moment + BEAT_NS
                self.past.append(self.drivers.table.copy())
                self.subscribers.look()
        self._send_rows(reader.read())
        self._tell_happenings()

    def _await(self, reader: RingReader, woke: int) -> None:
        """Until there is a row, or something else may be due; `woke` is when the last row's tick did."""
        moment = now()
        if moment - woke > PATIENCE_NS:
            await_rows(self.rows.view, reader.next, 0, moment + SLOW_POLL_NS, SLOW_POLL_NS)
            return
        due = woke + self.control[Word.PERIOD]
        await_rows(self.rows.view, reader.next, due, max(moment, due) + SLOW_POLL_NS, POLL_NS)

    def _send_rows(self, rows: NDArray[np.int64]) -> None:
        send, packer, every = self._send, self.packer, self.rates.every
        for row in rows:
            if self.send_raw:
                send(packer.raw(row))
            if row[Col.TICK] % every == 0:
                send(packer.state(row))
        if len(rows):
            headers = rows[:, :HEADER].copy()
            self._headers.append(headers)
            self._black_boxes.take_rows(headers)
            self._waiting += len(rows)

    def _watch_overruns(self, moment: int) -> None:
        """Read the machine's counters when it is time, and tell of an overrun once it can be explained."""
        if moment >= self._sample_due and self.control[Word.TID]:
            self._sample_due = moment + SAMPLE_NS
            if self._sampler is None:
                self._sampler = Sampler(self.control[Word.PID], self.control[Word.TID], self.control[Word.CPU])
            sample = self._sampler.take(self.control[Word.GC_COUNT], self.control[Word.GC_NS])
            self._black_boxes.take_sample(sample)
        if (event := self._black_boxes.ready(moment)) is not None:
            self._send(self.packer.event(event))

    def _sum_up(self, lost: int) -> None:
        """Statistics of the rows since the last time."""
        rows = np.concatenate(self._headers)
        self._timing, self._lost = timing_of(rows, lost), lost
        time, tick = rows[-1, Col.WAKE] * 1e-9, int(rows[-1, Col.TICK])
        self._send(self.packer.pack("timing", time, tick, self._timing))
        self._headers.clear()
        self._waiting = 0

    def _tell_second(self, moment: int, lost: int, counted: dict[str, Any]) -> None:
        """What is told once a second, also while the plant stands: somebody may just have come."""
        time, tick = moment * 1e-9, self.control[Word.TICK]
        self._send(self.packer.schema(time, tick))
        body = {"lost": lost, "overflows": self.subscribers.overflows, "rates": self.rates.as_dict(), **counted}
        self._send(self.packer.pack("bridge", time, tick, body))
        if self._seconds % self.packer.scene_every == 0:
            self._send(self.packer.scene(time, tick))
        self._seconds += 1

    def _tell_happenings(self) -> None:
        while not self.happenings.empty():
            event = self.happenings.get()
            self._send(self.packer.event(event))
        while not self.display.messages.empty():
            self._send(self.display.messages.get())

    def _tell_devices(self, moment: int) -> None:
        """How the drivers and the ECUs are doing, if it is time; periods are those of the last second."""
        tick = self.control[Word.TICK]
        if self.rates.is_due("driver", moment) and (reports := self.drivers.reports(since=self.past[0])):
            self._send(self.packer.drivers(moment * 1e-9, tick, reports))
        if self.rates.is_due("ecu", moment) and self._ecu_links:
            self._send(self.packer.pack("ecu", moment * 1e-9, tick, {"ecus": self._ecu_reports()}))

    def close(self) -> None:
        self.display.close()
        self.subscribers.close()
