"""Runs a driver, that of the device or of its twin, and swaps one for the other while the node runs.

    device -> read -> in-mailbox -> tick -> out-mailbox -> write -> device

The mailboxes, the health record and the channels stay: the tick does not know that there was a swap. What happens
between a device and its two threads is the business of `drivers/session.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver
from drivers.session import Session, Wires
from drivers.twin import Twin
from hilnode.shared.health import H, Health, put_text
from hilnode.shared.lockfree.mailbox import Mailbox


class SwapRefused(RuntimeError):
    """The other device cannot be put in; the message says why."""


class Runner:
    """One driver of a node. `driver` is the one that is in, `spare` the one that could take its place."""

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
        spare: Driver | None = None,
        priority: int = 0,
    ) -> None:
        self.driver = driver
        self.health = health
        self._spare = spare
        self._wires = Wires(inbox, outbox, used, safe, health, live, period, priority)
        self._session = Session(driver, self._wires)
        self._hanging: list[Session] = []  # sessions that were left behind
        self._swapping = threading.Lock()
        self._ended = False
        put_text(health, "name", driver.name)
        put_text(health, "kind", (spare or driver).kind if isinstance(driver, Twin) else driver.kind)
        health[H.PERIOD] = round(period * 1e9)
        self._announce()

    @property
    def trouble(self) -> str:
        """The last error of the device that is in, for people."""
        return self._session.trouble

    @property
    def twin_is_in(self) -> bool:
        return isinstance(self.driver, Twin)

    def start(self) -> None:
        self._session.start()

    def ask_stop(self) -> None:
        """Tell the threads to end, without waiting: so that several drivers end at the same time."""
        self._session.ask_stop()

    def stop(self, deadline: float) -> bool:
        """Bring the device to its safe values and let go of it; nothing can be put in any more.

        False if it did not answer by `deadline` (time.monotonic).
        """
        self._ended = True
        if not self._swapping.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False
        try:
            return self._session.stop(deadline)
        finally:
            self._swapping.release()

    def swap(self, twin: bool, deadline: float) -> str:
        """Put the twin or the real device in: the one that is in gets its safe values and is let go first.

        One that hangs is left behind at `deadline` (time.monotonic) so that the other can work; the answer then is a
        sentence about it, otherwise empty. SwapRefused if there is nothing to put in.
        """
        with self._swapping:
            if twin == self.twin_is_in:
                return ""
            if self._ended or self._spare is None:
                why = "the node is ending" if self._ended else "there is nothing to put in its place"
                raise SwapRefused(f"driver {self.driver.name}: {why}")
            if any(s.driver is self._spare and s.alive for s in self._hanging):
                raise SwapRefused(
                    f"driver {self.driver.name}: the device still hangs in its last read or write; unplug it or "
                    "switch it off, then try again"
                )
            old = self._session
            remark = "" if old.stop(deadline) else "it did not let go in time and was left behind"
            if remark:
                old.leave_behind()
                self._hanging.append(old)
            elif not old.left_safe:
                remark = "it could not be given its safe values"
            self.driver, self._spare = self._spare, self.driver
            self.health[H.SWAPS] += 1
            self.health[H.STATE] = Health.CONNECTING
            put_text(self.health, "trouble", "")
            self._announce(held=bool(remark))
            self._session = Session(self.driver, self._wires)
            self._session.start()
            return remark

    def _announce(self, held: bool = False) -> None:
        """Say who is in, before it does anything: the watchdog makes a real device safe while REAL is 1.

        `held`: the device that went out may still have a live value.
        """
        self.health[H.REAL] = int(not self.twin_is_in or held)
        self.health[H.TWIN] = int(self.twin_is_in)
