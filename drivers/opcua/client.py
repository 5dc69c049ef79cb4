"""opcua: reads and writes the variables of a PLC or another machine that serves OPC UA. The node is the client.

Inputs come by subscription, outputs are written when they change, all of them after connecting and every `refresh_ms`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.opcua.options import FILES, OpcuaOptions, load
from hilnode.core.units import UnitError, conversion

if TYPE_CHECKING:
    from drivers.opcua.link import Link

WAIT = 0.05  # [s] for news, in one read
SILENT = 10  # publishing intervals without a sign of life, and at least the timeout: the server is gone
SAFE_TIMEOUT = 0.5  # [s] of the watchdog for an answer: other devices wait for their turn behind one that is gone
KEYS = (
    *("connect", "inputs", "outputs", "publish_ms", "timeout_ms", "refresh_ms", "stamps", "check_units"),
    *("user", "password_file", "certificate", "private_key", "server_certificate"),
)


class Opcua(Driver):
    """Options: see docs/connect-over-opcua.md."""

    kind = "opcua"
    files = FILES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        given = OpcuaOptions(name, options, KEYS)
        self._address = given.address("connect")
        self._who = given.credentials("server_certificate")
        self._publish = given.number("publish_ms", 20.0, 1.0, 60_000.0) * 1e-3
        self._timeout = given.number("timeout_ms", 2000.0, 10.0, 60_000.0) * 1e-3
        self._refresh = given.number("refresh_ms", 1000.0, 0.0, 3_600_000.0) * 1e-3
        self._by_source = given.choice("stamps", "arrival", {"arrival": False, "source": True})
        self._check_units = given.flag("check_units", True)
        self.inputs, items = given.channels("inputs", ("node",))
        self._sources = [given.node("inputs", s, item) for s, item in zip(self.inputs, items, strict=True)]
        self.outputs, items = given.channels("outputs", ("node",))
        self._targets = [given.node("outputs", s, item) for s, item in zip(self.outputs, items, strict=True)]
        if not self.inputs and not self.outputs:
            raise OptionError(f"drivers.{name}: needs inputs, outputs or both")
        self._link: Link | None = None
        self._known: dict[int, float] = {}  # output -> what the server is known to have
        self._all_due = 0.0

    def open(self) -> None:
        self._open(self._timeout, reading=True)

    def _open(self, timeout: float, *, reading: bool) -> None:
        self.close()
        module = load("drivers.opcua.link")
        inputs = [
            module.Point(s.name, s.unit, node) for s, node in zip(self.inputs, self._sources, strict=True) if reading
        ]
        outputs = [module.Point(s.name, s.unit, node) for s, node in zip(self.outputs, self._targets, strict=True)]
        habits = module.Habits(timeout, self._publish, self._by_source, self._check_units)
        self._known, self._all_due, self.trouble = {}, 0.0, ""
        self._link = module.Link(self._address, self._who, habits, inputs, outputs)

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        link = self._connected()
        fresh = link.take(values, stamps, WAIT)
        self.trouble = link.trouble
        silence = time.monotonic() - link.heard
        if not fresh and silence > max(SILENT * self._publish, self._timeout):
            raise DriverError(f"lost {self._address}: no sign of life for {silence * 1e3:.0f} ms")
        return fresh

    def raw(self) -> Mapping[str, str]:
        """What the server said, in its own unit and type."""
        link = self._link
        return link.said() if link is not None else {}

    def write(self, values: NDArray[np.float64]) -> None:
        """Write what has changed, in one request."""
        link, now = self._connected(), time.monotonic()
        if self._refresh and now >= self._all_due:
            self._all_due = now + self._refresh
            self._known = {}
        wanted = {k: v for k, v in enumerate(values.tolist()) if self._known.get(k) != v}
        if not wanted:
            return
        refused = link.write(wanted)
        self._known |= {k: v for k, v in wanted.items() if k not in refused}
        if refused:
            raise ValueError("; ".join(list(refused.values())[:3]))

    def prepare_safe(self) -> None:
        """Load the library, and connect only when it matters: many a PLC has few sessions to give."""
        load("drivers.opcua.link")
        if self._check_units and any(s.unit for s in self.outputs):
            with contextlib.suppress(UnitError):
                conversion("m", "mm")  # loads the library behind it, which would take its time later

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """Everything, changed or not; in a new session if the old one no longer works."""
        fresh = self._link is None
        if fresh:
            self._open(min(self._timeout, SAFE_TIMEOUT), reading=False)
        try:
            self._write_all(values)
        except DriverError:
            if fresh:
                raise
            self._open(min(self._timeout, SAFE_TIMEOUT), reading=False)
            self._write_all(values)

    def _write_all(self, values: NDArray[np.float64]) -> None:
        self._known = {}
        try:
            self.write(values)
        except DriverError:
            self.close()
            raise

    def _connected(self) -> Link:
        link = self._link
        if link is None:
            raise DriverError("not open")
        if link.lost:
            raise DriverError(link.lost)
        return link
