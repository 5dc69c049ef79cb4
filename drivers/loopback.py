"""loopback: a patch cable. What is written to `out.k` is read back at `in.k`, optionally delayed.

The first thing to connect on a new bench: it shows the path from a plant output to a plant input with no device at all.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, OptionError, refuse_unknown
from hilnode.core.signals import Signal

WAIT = 0.05  # [s] a read waits this long for what is written


class Loopback(Driver):
    """Options: `channels` (1 to 256, default 1), `delay_ms` (0 to 10000, default 0)."""

    kind = "loopback"
    external = False

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        refuse_unknown(name, options, ("channels", "delay_ms"))
        count = options.get("channels", 1)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 256:
            raise OptionError(f"drivers.{name}.channels = {count!r}: must be a whole number from 1 to 256")
        delay = options.get("delay_ms", 0.0)
        if not isinstance(delay, (int, float)) or isinstance(delay, bool) or not 0 <= delay <= 10_000:
            raise OptionError(f"drivers.{name}.delay_ms = {delay!r}: must be a number from 0 to 10000")
        self.inputs = tuple(
            Signal(f"in.{k}", doc="what was written to the output of this number") for k in range(count)
        )
        self.outputs = tuple(Signal(f"out.{k}") for k in range(count))
        self._delay_ns = int(delay * 1e6)
        self._cable: deque[tuple[int, NDArray[np.float64]]] = deque(maxlen=20_000)
        self._bell = threading.Lock()  # a lock as a bell: the reader takes it and waits, the writer lets it go

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        if not self._cable:
            self._bell.acquire(timeout=WAIT)
        elif (wait := self._cable[0][0] - time.monotonic_ns()) > 0:
            time.sleep(min(wait * 1e-9, WAIT))
        now = time.monotonic_ns()
        arrived = 0
        while self._cable and self._cable[0][0] <= now:
            values[:] = self._cable.popleft()[1]
            arrived += 1
        if arrived:
            stamps[:] = now
        return arrived

    def write(self, values: NDArray[np.float64]) -> None:
        self._cable.append((time.monotonic_ns() + self._delay_ns, values.copy()))
        if self._bell.locked():
            self._bell.release()
