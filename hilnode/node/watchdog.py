"""The watchdog: a separate process that makes the devices safe when the node no longer can.

It looks at the node's heartbeat in shared memory and at the node's process. When the process is gone (kill -9,
crash) or the heartbeat is too old (SIGSTOP, a debugger, a plant that never returns), it brings every device to
its safe values through the driver's own safe-write path, and goes on doing so until the node is alive again or
it has been dead for a while. It loads no compiler and shares no code with the tick, so that what broke the node
does not break it too.

Each device has a thread of its own: one that does not answer keeps no other from being made safe, nor the watchdog from
looking.

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
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers import registry
from drivers.base import Driver
from hilnode.shared.control import Control, Word
from hilnode.shared.health import HEALTH_KIND, HEALTH_WORDS, H
from hilnode.shared.lockfree.segment import Segment, remove_leftovers
from hilnode.shared.realtime import keep_off
from hilnode.shared.row import State

ON_ITS_WAY = 0.005  # [s] a writer that has asked already gets this long to be done; a frozen one never is
AFTER_DEATH = 1.0  # [s] safe values are repeated for this long after the node's death
ANSWERS = 0.25  # [s] for the devices to be safe, before the report says which were not; the safe writes go on
LAST_TRY = 5.0  # [s] a device that has not answered by then will not, and the dead node's watchdog ends
READY = 30.0  # [s] for the libraries behind the drivers to be loaded


class Device:
    """One device, its safe values and its thread. Never written to while its twin is in its place."""

    def __init__(self, spec: dict[str, Any], record: NDArray[np.int64]) -> None:
        self.driver: Driver = registry.create(spec["kind"], spec["name"], spec["options"])
        self.failed = ""  # why the last safe write did not go through
        self._safe = np.array(spec["safe"])
        self._prepared = False
        self._record = record
        self._wanted = threading.Condition()
        self._asked = self._done = 0  # numbers of safe writes
        self._preparing = False
        threading.Thread(target=self._work, name=f"safe {self.driver.name}", daemon=True).start()

    @property
    def touched(self) -> bool:
        """Whether the node has it open, or has left it with a live value."""
        return bool(self._record[H.REAL])

    def prepare(self) -> None:
        """Open ahead what can be, once, if the device is in; returns at once."""
        if self.touched and not self._prepared:
            self._prepared = True
            with self._wanted:
                self._preparing = True
                self._wanted.notify_all()

    def make_safe(self) -> None:
        """Ask for a safe write that begins from now on; returns at once."""
        if self.touched:
            with self._wanted:
                self._asked = self._done + 1 + (self._asked > self._done)  # one under way does not count
                self._wanted.notify_all()

    def is_idle(self, until: float) -> bool:
        """Whether it has done all that it was asked for, waiting for it until then (time.monotonic)."""
        with self._wanted:
            return self._wanted.wait_for(self._rests, max(0.0, until - time.monotonic()))

    def _rests(self) -> bool:
        return self._done == self._asked and not self._preparing

    def _work(self) -> None:
        while True:
            with self._wanted:
                self._wanted.wait_for(lambda: not self._rests())
                preparing = self._preparing
            if preparing:
                with contextlib.suppress(Exception):  # tried again, for real, when it matters
                    self.driver.prepare_safe()
            else:
                self.failed = self._write()
            with self._wanted:
                if preparing:
                    self._preparing = False
                else:
                    self._done += 1
                self._wanted.notify_all()

    def _write(self) -> str:
        try:
            self.driver.write_safe(self._safe)
        except Exception as error:  # told, and tried again
            return f"{self.driver.name}: {error}"
        return ""


class Watchdog:
    """Watches one node. `spec` comes from the node: see child_specs.py."""

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
        until = time.monotonic() + READY
        for device in self.devices:
            device.is_idle(until)

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
                self._clean_up_after_death()
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
        for device in self.devices:
            device.prepare()

    def _begin(self, already: bool, why: str, *, alive: bool) -> None:
        """Fire once per incident: first the latch, then the devices, then the paper work."""
        if already:
            return
        self.control[Word.FIRED] += 1
        began = time.monotonic_ns()
        if alive:
            self._let_writers_finish()
        self._make_safe()
        until = time.monotonic() + ANSWERS
        late = [d.driver.name for d in self.devices if not d.is_idle(until)]
        failed = [d.failed for d in self.devices if d.failed and d.driver.name not in late]
        failed += [f"{name}: no answer within {ANSWERS * 1e3:g} ms, still trying" for name in late]
        took = (time.monotonic_ns() - began) / 1e6
        self._write_down(why, safe_after_ms=round(took, 3), failed=failed)

    def _let_writers_finish(self) -> None:
        """Writers that asked before the latch may still send a live value: what comes after them is to be safe."""
        until = time.monotonic() + ON_ITS_WAY
        while self.health[self.records, H.SENDING].any() and time.monotonic() < until:
            time.sleep(0.0001)

    def _make_safe(self) -> None:
        for device in self.devices:
            device.make_safe()

    def _clean_up_after_death(self) -> None:
        """Repeat the safe values (a datagram may get lost), then remove the dead node's shared memory."""
        until = time.monotonic() + AFTER_DEATH
        while time.monotonic() < until:
            self._make_safe()
            time.sleep(0.05)
        until = time.monotonic() + LAST_TRY
        for device in self.devices:
            device.is_idle(until)
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
