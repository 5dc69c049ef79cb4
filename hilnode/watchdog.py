"""The watchdog: a process of its own that makes the devices safe when the node no longer can.

It looks at the node's heartbeat in shared memory and at the node's process. When the process is gone (kill -9,
crash) or the heartbeat is too old (SIGSTOP, a debugger, a plant that never returns), it brings every device to
its safe values through the driver's own safe-write path, and goes on doing so until the node is alive again or
it has been dead for a while. It loads no compiler and shares no code with the tick, so that what broke the node
does not break it too.

A firing is counted in the control block. From then on no driver thread of the node writes live values until the
operator has cleared the trip.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers import registry
from drivers.base import Driver
from hilnode.control import Control, Word
from hilnode.health import HEALTH_KIND, HEALTH_WORDS, H
from hilnode.lockfree.segment import Segment, remove_leftovers
from hilnode.realtime import keep_off
from hilnode.row import State

ON_ITS_WAY = 0.005  # [s] a writer that has asked already gets this long to be done; a frozen one never is
AFTER_DEATH = 1.0  # [s] safe values are repeated for this long after the node's death


class Device:
    """One device and its safe values. It is left alone while its twin plays it, and ready for when it is put in."""

    def __init__(self, spec: dict[str, Any], record: NDArray[np.int64]) -> None:
        self.driver: Driver = registry.create(spec["kind"], spec["name"], spec["options"])
        self.safe = np.array(spec["safe"])
        self.prepared = False
        self._record = record

    @property
    def touched(self) -> bool:
        """Whether the node has it open, or has left it with a live value."""
        return bool(self._record[H.REAL])


class Watchdog:
    """Watches one node. `spec` comes from the node: see `Node._watchdog_spec`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.node: str = spec["node"]
        self.limit_ns = int(spec["limit_ms"] * 1e6)
        self.poll_ms = max(1, int(spec["limit_ms"] / 10))
        self.control = Control.attach(self.node)
        self.pid = self.control[Word.PID]
        self.pidfd = os.pidfd_open(self.pid)
        self.log = Path(spec["log"]) if spec["log"] else None
        self.segment = Segment.attach(f"{self.node}.health", kind=HEALTH_KIND)
        self.health = self.segment.words.reshape(-1, HEALTH_WORDS)
        self.records = [d["record"] for d in spec["drivers"]]
        self.devices = [Device(d, self.health[d["record"]]) for d in spec["drivers"]]
        self._prepare()

    def watch(self) -> int:
        """Until the node ends in good order (0) or dies (1)."""
        waiter = select.poll()
        waiter.register(self.pidfd, select.POLLIN)
        firing = False
        looked = time.monotonic_ns()
        while True:
            self.control[Word.WATCHDOG] = looked
            dead = bool(waiter.poll(self.poll_ms))
            asleep, looked = time.monotonic_ns() - looked, time.monotonic_ns()
            if self.control[Word.CLOSING]:
                return 0
            if dead:
                self._begin(firing, "the node's process is gone", alive=False)
                self._mourn()
                return 1
            beat = self.control[Word.HEARTBEAT]  # 0 until the loop has started
            ended = (
                self.control[Word.STATE] == State.STOPPED
            )  # in good order: the drivers are bringing the devices to rest
            age = looked - beat if beat and not ended else 0
            self._prepare()
            if asleep > self.limit_ns and not firing:
                continue  # the whole machine stood still (suspend, a busy hypervisor): give the node one more look
            if age > self.limit_ns:
                self._begin(firing, f"no heartbeat for {age / 1e6:.0f} ms", alive=True)
                firing = True
                self._make_safe()
            elif firing:
                firing = False
                self._make_safe()  # a live value may have been on its way when the node froze
                self._write_down("the node is alive again")

    def _prepare(self) -> None:
        """Open ahead what can be, of devices that are in."""
        for device in self.devices:
            if device.touched and not device.prepared:
                device.prepared = True
                with contextlib.suppress(Exception):  # tried again, for real, when it matters
                    device.driver.prepare_safe()

    def _begin(self, already: bool, why: str, *, alive: bool) -> None:
        """Fire once per incident: first the latch, then the devices, then the paper work."""
        if already:
            return
        self.control[Word.FIRED] += 1
        began = time.monotonic_ns()
        if alive:
            self._let_writers_finish()
        failed = self._make_safe()
        took = (time.monotonic_ns() - began) / 1e6
        self._write_down(why, safe_after_ms=round(took, 3), failed=failed)

    def _let_writers_finish(self) -> None:
        """Writers that asked before the latch may still send a live value: what comes after them is to be safe."""
        until = time.monotonic() + ON_ITS_WAY
        while self.health[self.records, H.SENDING].any() and time.monotonic() < until:
            time.sleep(0.0001)

    def _make_safe(self) -> list[str]:
        failed = []
        for device in self.devices:
            if not device.touched:
                continue
            try:
                device.driver.write_safe(device.safe)
            except Exception as error:  # one device that does not answer must not keep the next from being made safe
                failed.append(f"{device.driver.name}: {error}")
        return failed

    def _mourn(self) -> None:
        """Repeat the safe values (a datagram may get lost), then take the dead node's shared memory away."""
        until = time.monotonic() + AFTER_DEATH
        while time.monotonic() < until:
            self._make_safe()
            time.sleep(0.05)
        remove_leftovers(self.node)

    def _write_down(self, what: str, **more: Any) -> None:
        if self.log is None:
            return
        line = {"time_ns": time.monotonic_ns(), "event": "watchdog", "what": what, **more}
        with contextlib.suppress(OSError), self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> int:
    """Entry point: one line of JSON on standard input, then watch."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # it ends when the node does, not with the terminal
    keep_off(spec["cpu"])
    with contextlib.suppress(OSError):  # above the tick, so that a plant in an endless loop can not starve it
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(min(99, spec["priority"] + 1)))
    dog = Watchdog(spec)
    ctypes.CDLL(None).mlockall(3)
    dog.control[Word.WATCHDOG] = time.monotonic_ns()
    print("ready", flush=True)
    return dog.watch()


if __name__ == "__main__":
    sys.exit(main())
