"""Probes one device without a node: whether it responds, its values, how often and how regularly they come.

The driver is opened as a node would open it and read in a loop; nothing is ever written to it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from drivers import registry
from drivers.base import Driver, DriverError, OptionError
from hilnode.config.config import Config
from hilnode.core.settings import NoSetting, parse_settings
from hilnode.core.signals import UnknownName, nearest
from hilnode.report.driver_table import seconds
from hilnode.shared.health import BUCKETS, bucket, filled, lower_edge, percentile

AGAIN = 0.2  # [s] before a lost device is tried again
LINES = 12  # of a histogram
BAR = 40  # characters of its longest bar


def driver_of(what: str, settings: Sequence[str], config: Callable[[], Config]) -> Driver:
    """The driver that is meant: a name in the config, or `kind:key=value` with more `key=value` behind it."""
    if ":" in what:
        kind, given = _split(what)
        return registry.create(kind, "probe", options_from([*([given] if given else []), *settings]))
    loaded = config()
    drivers = loaded.drivers
    if what not in drivers:
        raise UnknownName(
            f"no driver {what!r} in the config: {nearest(what, list(drivers))}; or name a kind and its options, such "
            "as udp:listen=127.0.0.1:5000"
        )
    options = drivers[what].options | options_from(settings)
    return registry.create(drivers[what].kind, what, options, loaded.source.folder)


def _split(what: str) -> tuple[str, str]:
    """`udp:listen=...` to its kind and the rest; a kind may be `module:Class` itself."""
    head, mark, tail = what.partition("=")
    kind, _, key = head.rpartition(":") if mark else (head.rstrip(":"), "", "")
    return kind, f"{key}={tail}" if mark else ""


def options_from(settings: Sequence[str]) -> dict[str, Any]:
    """Options of a driver that were given as key=value."""
    try:
        return parse_settings(settings, "baud=115200")
    except NoSetting as error:
        raise OptionError(str(error)) from error


class Probe:
    """Reads one driver and counts. `read_for` may run in a thread while `render` is asked in another."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.frames = self.errors = self.reconnects = 0
        self.trouble = ""
        self.values = np.array([s.default for s in driver.inputs])
        self.stamps = np.zeros(len(driver.inputs), np.int64)
        self.low, self.high = np.full(len(driver.inputs), math.inf), np.full(len(driver.inputs), -math.inf)
        self.periods = np.zeros(BUCKETS, np.int64)
        self.longest = 0  # [ns] of a period
        self.raw: Mapping[str, str] = {}
        self.ending = threading.Event()
        self._began = self._first = self._last = 0  # [ns]

    def open(self) -> None:
        """Get hold of the device; DriverError says what to do if that is not possible."""
        try:
            self.driver.open()
        except DriverError:
            self.driver.close()
            raise
        self._began = time.monotonic_ns()

    def read_for(self, duration: float) -> None:
        """Read until the time is over or the end is asked for; a device that is lost is opened again."""
        until = time.monotonic() + duration
        is_open = True
        while time.monotonic() < until and not self.ending.is_set():
            try:
                if not is_open:
                    self.driver.open()
                    is_open, self.reconnects, self._last = True, self.reconnects + 1, 0
                self._read()
            except Exception as error:  # as in a node: one bad frame, or a device that is gone
                self.errors += 1
                self.trouble = str(error) if isinstance(error, DriverError) else f"{type(error).__name__}: {error}"
                if isinstance(error, DriverError):
                    is_open = False
                    self.driver.close()
                    self.ending.wait(AGAIN)
        self.driver.close()

    def _read(self) -> None:
        refused = self.driver.refused
        try:
            frames = self.driver.read(self.values, self.stamps)
        finally:
            self.errors += self.driver.refused - refused
        if self.driver.trouble:
            self.trouble = self.driver.trouble
        if frames > 0:
            self._count(frames)

    def _count(self, frames: int) -> None:
        now = time.monotonic_ns()
        if self._last:
            self.periods[bucket(now - self._last)] += 1
            self.longest = max(self.longest, now - self._last)
        self._first, self._last = self._first or now, now
        self.frames += frames
        self.raw = self.driver.raw()
        np.fmin(self.low, self.values, out=self.low)
        np.fmax(self.high, self.values, out=self.high)

    @property
    def rate(self) -> float:
        """Frames per second."""
        return (self.frames - 1) / ((self._last - self._first) * 1e-9) if self._last > self._first else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All of it, for programs; what has no value is null."""
        now = time.monotonic_ns()
        return {
            "driver": self.driver.name,
            "kind": self.driver.kind,
            "seconds": (now - self._began) * 1e-9,
            "frames": self.frames,
            "errors": self.errors,
            "reconnects": self.reconnects,
            "rate_hz": self.rate,
            "period_us": {
                "p50": _finite(percentile(self.periods, 50)),
                "p99": _finite(percentile(self.periods, 99)),
                "max": self.longest / 1e3,
                "histogram": filled(self.periods),
            },
            "channels": [
                {
                    "name": s.name,
                    "unit": s.unit,
                    "value": _finite(float(self.values[k])),
                    "raw": self.raw.get(s.name),
                    "min": _finite(float(self.low[k])),
                    "max": _finite(float(self.high[k])),
                    "age_s": (now - int(self.stamps[k])) * 1e-9 if self.stamps[k] else None,
                }
                for k, s in enumerate(self.driver.inputs)
            ],
            "frame": self.raw.get("frame"),
            "outputs": [s.name for s in self.driver.outputs],
            "trouble": self.trouble,
        }

    def render(self) -> RenderableType:
        """All of it, for people."""
        told = self.as_dict()
        table = Table(box=None, pad_edge=False)
        table.add_column("channel")
        table.add_column("raw", style="dim")
        for heading in ("value", "unit", "min", "max", "age"):
            table.add_column(heading, justify="left" if heading == "unit" else "right")
        for c in told["channels"]:
            numbers = ["-" if c[key] is None else f"{c[key]:.6g}" for key in ("value", "min", "max")]
            age = seconds(math.inf if c["age_s"] is None else c["age_s"])
            table.add_row(Text(c["name"]), Text(c["raw"] or ""), numbers[0], Text(c["unit"]), *numbers[1:], age)
        frame = [Text(f"frame  {told['frame']}", style="dim")] if told["frame"] else []
        trouble = [Text(self.trouble, style="yellow")] if self.trouble else []
        counts = f"{self.frames} frames, {self.rate:.1f} Hz, {self.errors} errors, {self.reconnects} reconnects"
        return Group(table, *frame, Text(counts, style="bold"), *histogram(self.periods), *trouble)


def histogram(counts: NDArray[np.int64]) -> list[Text]:
    """Bars, neighbouring buckets joined until they fit."""
    there = np.flatnonzero(counts)
    if not len(there):
        return []
    first, last = int(there[0]), int(there[-1])
    width = -(-(last - first + 1) // LINES)
    parts = [(k, int(counts[k : k + width].sum())) for k in range(first, last + 1, width)]
    most = max(n for _, n in parts)
    p50, p99 = (seconds(percentile(counts, p) * 1e-6) for p in (50, 99))
    bars = [Text(f"{seconds(lower_edge(k) * 1e-6):>8} {'█' * -(-BAR * n // most)} {n}") for k, n in parts]
    return [Text(f"period p50 {p50}, p99 {p99}"), *bars]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
