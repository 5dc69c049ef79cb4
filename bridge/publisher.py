"""The publisher: sends the rows, and what else there is to tell, to whoever subscribes.

A slow subscriber loses messages (its high-water mark), never the node; a slow publisher loses rows and says how many.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import zmq
from numpy.typing import NDArray

from bridge.wire import Packer, timing_of
from hilnode.clock import now_ns, sleep_until
from hilnode.control import Control, Word
from hilnode.health import Records
from hilnode.jit import kernel
from hilnode.lockfree.ring import Ring, RingView, pushed
from hilnode.row import Col, Schema, State

POLL_NS = 200_000  # between two looks at the ring: what it adds to the latency of a message
DRIVERS_NS = 200_000_000  # between two messages about the drivers
WINDOW = 5  # such messages back: what periods of drivers are taken over
HIGH_WATER = 10_000  # messages kept for a slow subscriber


@kernel
def await_rows(ring: RingView, row: int, until: int) -> None:
    """Sleep, GIL-free, until row number `row` is there or the time is up."""
    now = now_ns()
    while now < until and pushed(ring) <= row:
        sleep_until(now + POLL_NS)
        now = now_ns()


@kernel
def now() -> int:
    """CLOCK_MONOTONIC [ns], for Python."""
    return now_ns()


class Publisher:
    """Publishes one node on a bound PUB socket. `spec` comes from the node: see `Node._bridge_spec`."""

    def __init__(self, spec: dict[str, Any], socket: zmq.Socket[bytes]) -> None:
        schema = Schema.from_dict(spec["schema"])
        self.control = Control.attach(spec["node"])
        self.rows = Ring.attach(f"{spec['node']}.rows", schema=schema.hash)
        self.packer = Packer(schema, spec["node"])
        self.happenings: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.per_second = max(1, round(1e9 / schema.dt_ns))
        self.set_rate(spec["state_hz"])
        self.send_raw: bool = spec["raw"]
        self.drivers = Records(spec["node"])
        self.past: deque[NDArray[np.int64]] = deque([self.drivers.table.copy()], maxlen=WINDOW)
        self.drivers_due = now() + DRIVERS_NS
        self.socket = socket
        self._parameters = spec["parameters"]
        self._timing: dict[str, Any] = {}
        self._lost = 0

    def set_rate(self, hz: float) -> dict[str, Any]:
        """How often `state` is sent, as near as whole ticks allow; may be called from any thread."""
        if not 0.01 <= hz <= 20_000:
            raise ValueError(f"rate.hz = {hz:g}: must lie between 0.01 and 20000")
        self.every = max(1, round(self.per_second / hz))
        return {"hz": self.per_second / self.every}

    def describe(self) -> dict[str, Any]:
        """The layout of the rows and the plant's parameters, for a client that asks."""
        return {**self.packer.layout(), "parameters": self._parameters}

    def facts(self) -> dict[str, Any]:
        """How the node stands, for the metrics; may be called from any thread."""
        return {
            "tick": self.control[Word.TICK],
            "overruns": self.control[Word.OVERRUNS],
            "state": State(self.control[Word.STATE]).name.lower(),
            "lost": self._lost,
            "timing": self._timing,
            "drivers": {r.name: r.as_dict() for r in self.drivers.reports()},
        }

    def work(self, report: Callable[[], dict[str, Any]]) -> None:
        """Until the node ends or dies. `report` tells once a second what the rest of the bridge has counted."""
        reader = self.rows.reader(batch=256)
        recent: list[NDArray[np.int64]] = []
        count = 0
        node = self.control[Word.PID]
        while not self.control[Word.CLOSING] and os.getppid() == node:
            await_rows(self.rows.view, reader.next, now() + 100_000_000)
            rows = reader.read()
            for row in rows:
                if self.send_raw:
                    self.socket.send_multipart(self.packer.raw(row))
                if row[Col.TICK] % self.every == 0:
                    self.socket.send_multipart(self.packer.state(row))
            if len(rows):
                recent.append(rows.copy())
                count += len(rows)
            if count >= self.per_second:
                self._sum_up(np.concatenate(recent), reader.lost, report)
                recent.clear()
                count = 0
            self._tell_happenings()
            self._tell_drivers()
        self._tell_happenings()

    def _sum_up(self, rows: NDArray[np.int64], lost: int, report: Callable[[], dict[str, Any]]) -> None:
        """What is told once a second."""
        time, tick = rows[-1, Col.WAKE] * 1e-9, int(rows[-1, Col.TICK])
        self._timing, self._lost = timing_of(rows, lost), lost
        self.socket.send_multipart(self.packer.pack("timing", time, tick, self._timing))
        self.socket.send_multipart(self.packer.schema(time, tick))
        self.socket.send_multipart(self.packer.pack("bridge", time, tick, {"lost": lost, **report()}))

    def _tell_happenings(self) -> None:
        while not self.happenings.empty():
            event = self.happenings.get()
            self.socket.send_multipart(self.packer.event(event))

    def _tell_drivers(self) -> None:
        """How the drivers are doing, a few times a second; periods are those of the last second."""
        moment = now()
        if moment < self.drivers_due:
            return
        self.drivers_due = moment + DRIVERS_NS
        if reports := self.drivers.reports(since=self.past[0]):
            self.socket.send_multipart(self.packer.drivers(moment * 1e-9, self.control[Word.TICK], reports))
        self.past.append(self.drivers.table.copy())

    def close(self) -> None:
        self.socket.close()
