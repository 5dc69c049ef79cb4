"""One stay of a device in its runner: one thread reads, one writes, both reconnect with growing patience.

A session ends when its runner ends or when another device takes its place. Whatever the device does (raise, block,
vanish), its session's health record tells, and nothing else is touched: a thread that hangs in the device when the
session has to end is left behind, and what it brings when it comes back goes nowhere but to the safe values.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError
from hilnode.health import HEALTH_WORDS, READS, WRITES, H, Health, bucket, put_text
from hilnode.lockfree.mailbox import Mailbox
from hilnode.realtime import make_thread_hard

log = logging.getLogger("hilnode.drivers")

FIRST_WAIT = 0.05  # [s] before the first new try; doubled each time
LONGEST_WAIT = 0.5  # [s] so that a device is back within a second of being plugged in
SOON_NS = 20_000  # a read that brings nothing sooner than this did not wait for its device
MANY = 50  # such reads in a row: from then on the session waits in its place, for a thread of high priority must rest
REST = 0.001  # [s]
NOTICE = 0.01  # [s] a writer looks this often whether it is to end, and whether live values are still allowed

# Plain integers: a member of an enum costs a microsecond where it is used as an index.
STATE, FRAMES, WRITTEN, ERRORS, RECONNECTS = (int(h) for h in (H.STATE, H.FRAMES, H.WRITES, H.ERRORS, H.RECONNECTS))
LAST_READ, LAST_WRITE, SENDING = int(H.LAST_READ), int(H.LAST_WRITE), int(H.SENDING)
CONNECTING, UP, DEGRADED, DOWN = (int(h) for h in Health)
READ_AT, WRITE_AT = READS.start, WRITES.start


@dataclass(frozen=True)
class Wires:
    """What a device is connected to; it stays when another device takes its place."""

    inbox: Mailbox | None
    outbox: Mailbox | None
    used: NDArray[np.int64]  # output channels that the config maps; the others stay at their safe values
    safe: NDArray[np.float64]
    health: NDArray[np.int64]
    live: Callable[[], bool]
    period: float  # [s] between two writes
    priority: int = 0  # SCHED_FIFO for the threads, where it is permitted; 0 = ordinary


class Session:
    """The two threads of one device."""

    def __init__(self, driver: Driver, wires: Wires) -> None:
        self.driver = driver
        self.trouble = ""  # the last error, for people
        self._wires = wires
        self._record = wires.health
        self._words = wires.health.data  # a third of the time that numpy takes for a single word
        self._ending = threading.Event()
        self._open = threading.Event()
        self._connect = threading.Lock()
        self._posting = threading.Lock()  # held while the session's values and counters are given to others
        self._left_behind = False
        self._was_open = False
        self._at_safe = True  # whether the device has its safe values, or was never touched
        self._last_read = self._last_write = 0  # [ns] since it was opened
        work = [("read", self._read_loop)] if driver.inputs and wires.inbox else []
        if driver.outputs:
            work.append(("write", self._write_loop))
            driver.driven = frozenset(driver.outputs[k].name for k in wires.used.tolist())
        self._running = len(work)
        self._threads = [
            threading.Thread(target=self._thread, args=(loop,), name=f"{driver.name}.{verb}", daemon=True)
            for verb, loop in work
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def ask_stop(self) -> None:
        """Tell the threads to end, without waiting: so that several drivers end at the same time."""
        self._ending.set()

    def stop(self, deadline: float) -> bool:
        """Bring the device to its safe values and let go of it.

        False if it did not answer by `deadline` (time.monotonic).
        """
        self._ending.set()
        for thread in self._threads:
            if thread.ident:
                thread.join(max(0.0, deadline - time.monotonic()))
        if not self.alive:
            self.driver.close()
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether a thread is still at work, or hangs in the device."""
        return any(t.is_alive() for t in self._threads)

    @property
    def left_safe(self) -> bool:
        """Whether nothing but safe values is at the device: they were the last that it took, or it was never open."""
        return not self.alive and (self._at_safe or not self.driver.outputs)

    def leave_behind(self) -> None:
        """A thread hangs in the device: from now on nothing that it brings reaches the mailbox or the record."""
        with self._posting:
            self._left_behind = True
            self._words = np.zeros(HEALTH_WORDS, np.int64).data

    def _thread(self, loop: Callable[[], None]) -> None:
        make_thread_hard(-1, self._wires.priority)  # before the device is opened: threads of its library inherit it
        loop()
        with self._posting:
            self._running -= 1
            if not self._left_behind or self._running:
                return
        self.driver.close()  # the last one, late: nobody else waits for it any more
        if self._at_safe:
            self._record[H.REAL] = 0

    # -- reading --------------------------------------------------------------------------------------------------

    def _read_loop(self) -> None:
        values = np.array([s.default for s in self.driver.inputs])
        stamps = np.zeros(len(values), np.int64)
        hasty = 0
        while self._ensure_open():
            frames, began = self._words[FRAMES], time.monotonic_ns()
            self._guarded(lambda: self._read(values, stamps))
            hasty = hasty + 1 if self._words[FRAMES] == frames and time.monotonic_ns() - began < SOON_NS else 0
            if hasty > MANY:
                time.sleep(REST)

    def _read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> None:
        fresh = self.driver.read(values, stamps)
        with self._posting:
            if self._left_behind or self._wires.inbox is None:
                return
            trouble, words = self.driver.trouble, self._words
            if trouble:
                self._complain(trouble)
            if fresh:
                self._wires.inbox.put(values, stamps)
                now = time.monotonic_ns()
                if self._last_read:
                    words[READ_AT + bucket(now - self._last_read)] += 1
                self._last_read = words[LAST_READ] = now
                words[FRAMES] += 1
            if fresh or words[STATE] == UP:  # before the first frame it is still connecting
                words[STATE] = DEGRADED if trouble else UP

    # -- writing --------------------------------------------------------------------------------------------------

    def _write_loop(self) -> None:
        wires, values = self._wires, self._wires.safe.copy()
        due = time.monotonic()
        while self._ensure_open():
            values[:] = wires.safe
            self._words[SENDING] = 1  # before the question: whoever forbids live values waits for what is on its way
            live = wires.outbox is not None and wires.live()
            if live and wires.outbox is not None:
                values[wires.used] = wires.outbox.take()[1]
            self._guarded(lambda live=live: self._write(values, live))  # type: ignore[misc]
            self._words[SENDING] = 0
            due = max(due + wires.period, time.monotonic())
            self._rest(due, live)
        if self._open.is_set():
            self._guarded(lambda: self._write(wires.safe, live=False))

    def _rest(self, due: float, live: bool) -> None:
        """Wait for the next turn; it comes at once when a live value is no longer allowed at the device."""
        while not self._ending.is_set() and (left := due - time.monotonic()) > 0:
            if live and not self._wires.live():
                return
            if live or left <= NOTICE:
                time.sleep(min(left, NOTICE))  # a fraction of what it costs to wait for an event with a timeout
            else:
                self._ending.wait(left)

    def _write(self, values: NDArray[np.float64], live: bool) -> None:
        if live:
            self._at_safe = False
        self.driver.live = live
        self.driver.write(values)
        if not live:
            self._at_safe = True
        now, words = time.monotonic_ns(), self._words
        if self._last_write:
            words[WRITE_AT + bucket(now - self._last_write)] += 1
        self._last_write = words[LAST_WRITE] = now
        words[WRITTEN] += 1
        if not self.driver.inputs:
            words[STATE] = UP

    # -- failing and opening again --------------------------------------------------------------------------------

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do it; turn every failure into health."""
        try:
            act()
        except DriverError as error:
            self._lose(str(error))
        except Exception as error:  # a driver's bug or a bad frame must not take anything else down
            self._words[ERRORS] += 1
            self._words[STATE] = DEGRADED
            self._complain(f"{type(error).__name__}: {error}")
            self._ending.wait(0.001)

    def _lose(self, why: str) -> None:
        with self._connect:
            if self._open.is_set():
                self._open.clear()
                self._words[ERRORS] += 1
                self._words[STATE] = DOWN
                self._complain(why)
                self.driver.close()

    def _ensure_open(self) -> bool:
        """Open the device if need be, waiting longer after each failure; False when the session is to end."""
        wait = FIRST_WAIT
        while not self._ending.is_set():
            with self._connect:
                if self._open.is_set():
                    return True
                try:
                    self.driver.open()
                except Exception as error:  # whatever a library throws at a missing device
                    self._words[ERRORS] += 1
                    self._words[STATE] = DOWN
                    self._complain(str(error))
                else:
                    self._words[RECONNECTS] += self._was_open
                    self._was_open = True
                    self._at_safe = False  # nobody knows what a device has that was just found
                    self._last_read = self._last_write = 0
                    self._words[STATE] = CONNECTING if self.driver.inputs else UP
                    self._open.set()
                    return True
            self._ending.wait(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        return False

    def _complain(self, why: str) -> None:
        """Say it once, not at every try."""
        if why != self.trouble and not self._left_behind:
            self.trouble = why
            put_text(self._record, "trouble", why)
            log.warning("driver %s: %s", self.driver.name, why)
