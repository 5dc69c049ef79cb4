"""One session of a device in its runner: one thread reads, one writes, and a lost device is reopened with back-off.

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
from hilnode.shared.health import HEALTH_WORDS, READS, WRITES, H, Health, bucket, put_text
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.realtime import make_thread_hard

log = logging.getLogger("hilnode.drivers")

FIRST_WAIT = 0.05  # [s] before the first new try; doubled each time
LONGEST_WAIT = 0.5  # [s] so that a device is back within a second of being plugged in
MANY = 50  # reads in vain, one after the other: from then on
REST = 0.001  # [s] lie between two beginnings: a read that does not wait for its device must not take the CPU
NOTICE = 0.01  # [s] a writer looks this often whether it is to end, and whether live values are still allowed

# Plain integers: a member of an enum costs a microsecond where it is used as an index.
STATE, FRAMES, WRITTEN, ERRORS, RECONNECTS = (int(h) for h in (H.STATE, H.FRAMES, H.WRITES, H.ERRORS, H.RECONNECTS))
LAST_READ, LAST_WRITE, SENDING = int(H.LAST_READ), int(H.LAST_WRITE), int(H.SENDING)
IN_READ, IN_WRITE = int(H.IN_READ), int(H.IN_WRITE)
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
        self._opened = 0  # the number of this connection; 0: there is none
        self._openings = 0
        self._connect = threading.Lock()
        self._posting = threading.Lock()  # held while the session's values and counters are given to others
        self._counting = threading.Lock()
        self._left_behind = False
        self._at_safe = True  # whether the device has its safe values, or was never touched
        self._last_frame = self._last_write = 0  # [ns] since it was opened
        self._silent_since = 0  # [ns]
        self._write_fails = False
        work = [("read", self._read_loop)] if driver.inputs and wires.inbox else []
        if driver.outputs:
            work.append(("write", self._write_loop))
            driver.driven = frozenset(driver.outputs[k].name for k in wires.used.tolist())
        self._running = len(work)
        self._threads = [
            threading.Thread(target=self._thread, args=(loop,), name=f"{driver.name}.{way}", daemon=True)
            for way, loop in work
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
            self._let_go()
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
            self._record[[H.IN_READ, H.IN_WRITE]] = 0  # it is no longer this record's driver that hangs

    def _thread(self, loop: Callable[[], None]) -> None:
        make_thread_hard(-1, self._wires.priority)  # before the device is opened: threads of its library inherit it
        loop()
        with self._posting:
            self._running -= 1
            if not self._left_behind or self._running:
                return
        self._let_go()  # the last one, late: nobody else waits for it any more
        if self._at_safe:
            self._record[H.REAL] = 0

    # -- reading --------------------------------------------------------------------------------------------------

    def _read_loop(self) -> None:
        values = np.array([s.default for s in self.driver.inputs])
        stamps = np.zeros(len(values), np.int64)
        vain = 0
        while number := self._ensure_open():
            began = self._words[IN_READ] = time.monotonic_ns()
            came = self._guarded(number, lambda: self._read(values, stamps))
            self._words[IN_READ] = 0
            vain = 0 if came else min(vain + 1, MANY)
            if vain == MANY and (left := REST - 1e-9 * (time.monotonic_ns() - began)) > 0.0:
                time.sleep(left)

    def _read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        """Whether values are to be had that were not there before, or not for certain."""
        driver, refused = self.driver, self.driver.refused
        try:
            frames = driver.read(values, stamps)
        finally:
            self._count_errors(driver.refused - refused)
        with self._posting:
            if self._left_behind or self._wires.inbox is None:
                return False
            words, now = self._words, time.monotonic_ns()
            if frames:
                self._wires.inbox.put(values, stamps)
                words[LAST_READ] = now
            if frames > 0:
                if self._last_frame:
                    words[READ_AT + bucket(now - self._last_frame)] += 1
                self._last_frame = self._silent_since = now
                words[FRAMES] += frames
            trouble = driver.trouble or self._silence(now)
            if trouble:
                self._complain(trouble)
            if frames or words[STATE] == UP:  # before the first frame it is still connecting
                words[STATE] = DEGRADED if trouble or self._write_fails else UP
        return bool(frames)

    def _silence(self, now: int) -> str:
        """A sentence if the device, once heard, has been silent for too long."""
        limit = self.driver.silent_ns
        if not limit or not self._silent_since or now - self._silent_since <= limit:
            return ""
        return f"nothing came for {limit * 1e-6:g} ms: is the device on, and does it still send?"

    # -- writing --------------------------------------------------------------------------------------------------

    def _write_loop(self) -> None:
        wires, values = self._wires, self._wires.safe.copy()
        due = time.monotonic()
        while number := self._ensure_open():
            values[:] = wires.safe
            self._words[SENDING] = 1  # before the question: whoever forbids live values waits for what is on its way
            live = wires.outbox is not None and wires.live()
            if live and wires.outbox is not None:
                values[wires.used] = wires.outbox.take()[1]
            self._words[IN_WRITE] = time.monotonic_ns()
            self._guarded(number, lambda live=live: self._write(values, live))  # type: ignore[misc]
            self._words[IN_WRITE] = self._words[SENDING] = 0
            due = max(due + wires.period, time.monotonic())
            self._rest(due, live)
        if number := self._opened:
            self._guarded(number, lambda: self._write(wires.safe, live=False))

    def _rest(self, due: float, live: bool) -> None:
        """Wait for the next turn; it comes at once when a live value is no longer allowed at the device."""
        while not self._ending.is_set() and (left := due - time.monotonic()) > 0:
            if live and not self._wires.live():
                return
            if live or left <= NOTICE:
                time.sleep(min(left, NOTICE))  # a fraction of what it costs to wait for an event with a timeout
            else:
                self._ending.wait(left)

    def _write(self, values: NDArray[np.float64], live: bool) -> bool:
        """True: a failure raises."""
        if live:
            self._at_safe = False
        self.driver.live = live
        try:
            self.driver.write(values)
        except Exception:
            self._write_fails = True  # before anything is said of it: a read must not make it good again
            raise
        self._write_fails = False
        if not live:
            self._at_safe = True
        now, words = time.monotonic_ns(), self._words
        if self._last_write:
            words[WRITE_AT + bucket(now - self._last_write)] += 1
        self._last_write = words[LAST_WRITE] = now
        words[WRITTEN] += 1
        if not self.driver.inputs:
            words[STATE] = DEGRADED if self.driver.trouble else UP
        return True

    # -- failing and opening again --------------------------------------------------------------------------------

    def _guarded(self, number: int, act: Callable[[], bool]) -> bool:
        """Do it on the connection of this number; turn every failure into health, and False."""
        try:
            return act()
        except DriverError as error:
            self._lose(number, str(error))
        except Exception as error:  # a driver's bug or a bad frame must not take anything else down
            self._count_errors(1)
            self._words[STATE] = DEGRADED
            self._complain(f"{type(error).__name__}: {error}")
            self._ending.wait(0.001)
        return False

    def _lose(self, number: int, why: str) -> None:
        """Give a connection up; one thread may hear late of a loss after which the other has opened the next one."""
        with self._connect:
            if self._opened == number:
                self._opened = 0
                self._count_errors(1)
                self._words[STATE] = DOWN
                self._complain(why)
                self._let_go()

    def _let_go(self) -> None:
        """Close the driver; one that cannot even do that must not take its thread, or the node's end, with it."""
        try:
            self.driver.close()
        except Exception as error:
            self._count_errors(1)
            self._complain(f"closing it: {type(error).__name__}: {error}")

    def _ensure_open(self) -> int:
        """Open the device if need be, waiting longer after each failure; its number, 0 when the session is to end."""
        wait = FIRST_WAIT
        while not self._ending.is_set():
            with self._connect:
                if self._opened:
                    return self._opened
                try:
                    self.driver.open()
                except Exception as error:  # whatever a library throws at a missing device
                    self._count_errors(1)
                    self._words[STATE] = DOWN
                    self._complain(str(error))
                else:
                    self._words[RECONNECTS] += self._openings > 0
                    self._openings += 1
                    self._at_safe = False  # nobody knows what a device has that was just found
                    self._last_frame = self._last_write = self._silent_since = 0
                    self._write_fails = False
                    self._words[STATE] = CONNECTING if self.driver.inputs else UP
                    self._opened = self._openings
                    return self._opened
            self._ending.wait(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        return 0

    def _count_errors(self, more: int) -> None:
        """The one counter that both threads write."""
        if more:
            with self._counting:
                self._words[ERRORS] += more

    def _complain(self, why: str) -> None:
        """Say it once, not at every try."""
        if why != self.trouble and not self._left_behind:
            self.trouble = why
            put_text(self._record, "trouble", why)
            log.warning("driver %s: %s", self.driver.name, why)
