"""ecu: a controller that speaks to the node over the bridge's ECU lane (bridge/ecu/server.py), on this PC or another.

The lane, a process of its own, writes what the ECU sends straight into the driver's mailbox and sends it each row's
commands; nothing of that passes through here, so that no thread adds its delay. What is left for the driver is to
declare the channels and to notice that the ECU has gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError, channels_from, refuse_unknown
from hilnode.shared.ecu_link import SILENT, E

LOOK_EVERY = 0.02  # [s]
LETS_GO_WITHIN = 0.05  # [s] a lane that was killed in the middle of a letter never does


class Ecu(Driver):
    """Options: `inputs` (at least one), `outputs`, `silent_ms` (10 to 60000, default 1000)."""

    kind = "ecu"
    external = False  # the lane outlives the node and tells the ECU its safe values

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        refuse_unknown(name, options, ("inputs", "outputs", "silent_ms"))
        self.inputs = channels_from(name, "inputs", options.get("inputs", []))
        self.outputs = channels_from(name, "outputs", options.get("outputs", []))
        if not self.inputs:
            raise OptionError(
                f"drivers.{name}.inputs: an ECU needs at least one; a program that only listens subscribes to a topic"
            )
        silent = options.get("silent_ms", 1000.0)
        if not isinstance(silent, (int, float)) or isinstance(silent, bool) or not 10 <= silent <= 60_000:
            raise OptionError(f"drivers.{name}.silent_ms = {silent!r}: must be a number from 10 to 60000")
        self.silent_ns = int(silent * 1e6)

    def watch(self, link: NDArray[np.int64], *, by_clock: bool) -> EcuWatch:
        """What runs in its place. `by_clock`: silence counts; in lockstep an ECU may think as long as it likes."""
        return EcuWatch(self, link, by_clock)


class EcuWatch(Driver):
    """Looks at the link of one ECU; it delivers nothing itself."""

    kind = "ecu"
    external = False

    def __init__(self, ecu: Ecu, link: NDArray[np.int64], by_clock: bool) -> None:
        super().__init__(ecu.name, ecu.options)
        self.inputs = ecu.inputs
        self._link = link
        self._silent_ns, self._by_clock = ecu.silent_ns, by_clock
        self._met = False

    def open(self) -> None:
        self._link[E.IN] = 1  # first: an ECU that comes back is heard at once
        self._check()

    def close(self) -> None:
        self._link[E.IN] = 0
        until = time.monotonic() + LETS_GO_WITHIN
        while self._link[E.BUSY] and time.monotonic() < until:
            time.sleep(0.0005)

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        time.sleep(LOOK_EVERY)
        self._check()
        return False

    def _check(self) -> None:
        """Raise DriverError if there was an ECU and there is none any more."""
        seated, heard = self._link[E.SEATED], self._link[E.HEARD]
        if seated == 1:
            self._met = True
        elif self._met and seated != SILENT:
            raise DriverError("the ECU has closed its connection, or the bridge was started anew: waiting for it")
        silent = time.monotonic_ns() - heard
        if self._by_clock and heard and self._met and (silent > self._silent_ns or seated == SILENT):
            raise DriverError(f"the ECU has been silent for {silent / 1e9:.1f} s (silent_ms): waiting for it")
