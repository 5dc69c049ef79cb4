"""The publisher: a process that sends the rows to whoever subscribes. It may die and come back; the tick does
not know it exists.

A slow subscriber loses messages (its high-water mark), never the node; a slow publisher loses rows and says how many.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import deque
from typing import Any

import numpy as np
import zmq
from numpy.typing import NDArray

from bridge.wire import Packer
from hilnode.clock import now_ns, sleep_until
from hilnode.control import Control, Word
from hilnode.health import Records
from hilnode.jit import kernel
from hilnode.lockfree.ring import Ring, RingView, pushed
from hilnode.realtime import keep_off
from hilnode.row import Col, Schema

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
    """Publishes one node. `spec` comes from the node: see `Node._bridge_spec`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        schema = Schema.from_dict(spec["schema"])
        self.control = Control.attach(spec["node"])
        self.rows = Ring.attach(f"{spec['node']}.rows", schema=schema.hash)
        self.packer = Packer(schema, spec["node"])
        self.every = max(1, round(1e9 / schema.dt_ns / spec["state_hz"]))
        self.per_second = max(1, round(1e9 / schema.dt_ns))
        self.send_raw: bool = spec["raw"]
        self.drivers = Records(spec["node"])
        self.past: deque[NDArray[np.int64]] = deque([self.drivers.table.copy()], maxlen=WINDOW)
        self.drivers_due = now() + DRIVERS_NS
        self.socket = zmq.Context().socket(zmq.PUB)
        self.socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
        self.socket.setsockopt(zmq.LINGER, 200)
        self.socket.setsockopt(zmq.IPV6, "[" in spec["publish"])
        self.socket.bind(spec["publish"])

    def work(self) -> None:
        """Until the node ends or dies."""
        reader = self.rows.reader(batch=256)
        recent: list[np.ndarray[Any, np.dtype[np.int64]]] = []
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
                together = np.concatenate(recent)
                self.socket.send_multipart(self.packer.timing(together, reader.lost))
                last = together[-1]
                self.socket.send_multipart(self.packer.schema(last[Col.WAKE] * 1e-9, int(last[Col.TICK])))
                recent.clear()
                count = 0
            self._tell_drivers()
        self.socket.close()

    def _tell_drivers(self) -> None:
        """How the drivers are doing, a few times a second; periods are those of the last second."""
        moment = now()
        if moment < self.drivers_due:
            return
        self.drivers_due = moment + DRIVERS_NS
        if reports := self.drivers.reports(since=self.past[0]):
            self.socket.send_multipart(self.packer.drivers(moment * 1e-9, self.control[Word.TICK], reports))
        self.past.append(self.drivers.table.copy())


def main() -> int:
    """Entry point: one line of JSON on standard input, then publish."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    keep_off(spec["cpu"])
    try:
        publisher = Publisher(spec)
    except zmq.ZMQError as error:
        print(f"bridge.publish = {spec['publish']!r}: {error}", file=sys.stderr)
        return 2
    publisher.work()
    return 0


if __name__ == "__main__":
    sys.exit(main())
