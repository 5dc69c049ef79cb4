"""Runs a driver: one thread reads, one writes, both reconnect with growing patience, neither can disturb the tick.

    device -> read -> in-mailbox -> tick -> out-mailbox -> write -> device

A driver that raises, blocks or loses its device changes its health and nothing else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError
from drivers.health import H, Health
from hilnode.lockfree.mailbox import Mailbox

log = logging.getLogger("hilnode.drivers")

FIRST_WAIT = 0.05  # [s] before the first new try; doubled each time
LONGEST_WAIT = 0.5  # [s] so that a device is back within a second of being plugged in
NOTICE = 0.01  # [s] a slow device's writer looks this often whether live values are still allowed


class Runner:
    """The two threads of one driver."""

    def __init__(
        self,
        driver: Driver,
        *,
        inbox: Mailbox | None,
        outbox: Mailbox | None,
        used: NDArray[np.int64],
        safe: NDArray[np.float64],
        health: NDArray[np.int64],
        live: Callable[[], bool],
        period: float,
    ) -> None:
        self.driver = driver
        self.health = health
        self.trouble = ""  # the last error, for people
        self._inbox, self._outbox = inbox, outbox
        self._used = used  # output channels that the config maps; the others stay at their safe values
        self._safe = safe
        self._live = live
        self._period = period
        self._ending = threading.Event()
        self._open = threading.Event()
        self._connect = threading.Lock()
        self._was_open = False
        work = [("read", self._read_loop)] if driver.inputs and inbox else []
        if driver.outputs:
            work.append(("write", self._write_loop))
        self._threads = [
            threading.Thread(target=loop, name=f"{driver.name}.{verb}", daemon=True) for verb, loop in work
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
        stopped = not any(t.is_alive() for t in self._threads)
        if stopped:
            self.driver.close()
        return stopped

    def _read_loop(self) -> None:
        values = np.array([s.default for s in self.driver.inputs])
        stamps = np.zeros(len(values), np.int64)
        while self._ensure_open():
            self._guarded(lambda: self._read(values, stamps))

    def _read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> None:
        if self.driver.read(values, stamps) and self._inbox is not None:
            self._inbox.put(values, stamps)
            self.health[H.FRAMES] += 1
            self.health[H.LAST_READ] = time.monotonic_ns()
            self._set_state(Health.UP)

    def _write_loop(self) -> None:
        values = self._safe.copy()
        due = time.monotonic()
        while self._ensure_open():
            values[:] = self._safe
            self.health[H.SENDING] = 1  # before the question: whoever forbids live values waits for what is on its way
            live = self._outbox is not None and self._live()
            if live and self._outbox is not None:
                values[self._used] = self._outbox.take()[1]
            self._guarded(lambda: self._write(values))
            self.health[H.SENDING] = 0
            due = max(due + self._period, time.monotonic())
            self._rest(due, live)
        if self._open.is_set():
            self._guarded(lambda: self._write(self._safe))

    def _rest(self, due: float, live: bool) -> None:
        """Wait for the next turn; it comes at once when a live value is no longer allowed at the device."""
        while not self._ending.is_set() and (left := due - time.monotonic()) > 0:
            if live and not self._live():
                return
            self._ending.wait(min(left, NOTICE) if live else left)

    def _write(self, values: NDArray[np.float64]) -> None:
        self.driver.write(values)
        self.health[H.WRITES] += 1
        self.health[H.LAST_WRITE] = time.monotonic_ns()
        if not self.driver.inputs:
            self._set_state(Health.UP)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do it; turn every failure into health."""
        try:
            act()
        except DriverError as error:
            self._lose(str(error))
        except Exception as error:  # a driver's bug or a bad frame must not take anything else down
            self.health[H.ERRORS] += 1
            self._set_state(Health.DEGRADED)
            self._complain(f"{type(error).__name__}: {error}")
            self._ending.wait(0.001)

    def _lose(self, why: str) -> None:
        with self._connect:
            if self._open.is_set():
                self._open.clear()
                self.health[H.ERRORS] += 1
                self._set_state(Health.DOWN)
                self._complain(why)
                self.driver.close()

    def _ensure_open(self) -> bool:
        """Open the device if need be, waiting longer after each failure; False when the runner is to end."""
        wait = FIRST_WAIT
        while not self._ending.is_set():
            with self._connect:
                if self._open.is_set():
                    return True
                try:
                    self.driver.open()
                except Exception as error:  # whatever a library throws at a missing device
                    self.health[H.ERRORS] += 1
                    self._set_state(Health.DOWN)
                    self._complain(str(error))
                else:
                    self.health[H.RECONNECTS] += self._was_open
                    self._was_open = True
                    self._set_state(Health.CONNECTING if self.driver.inputs else Health.UP)
                    self._open.set()
                    return True
            self._ending.wait(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        return False

    def _set_state(self, state: Health) -> None:
        self.health[H.STATE] = state

    def _complain(self, why: str) -> None:
        """Say it once, not at every try."""
        if why != self.trouble:
            self.trouble = why
            log.warning("driver %s: %s", self.driver.name, why)
