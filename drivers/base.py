"""The driver interface: turns a device's bytes into named signals, and back.

A driver file declares its channels first, then its code. It knows nothing of threads, mailboxes or the tick: the runner
(`drivers/runner.py`) calls `read` from one thread and `write` from another, so that a slow write never delays a read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilnode.core.signals import Signal, SignalError, check_unique, nearest

HELD = -1
"""What `read` returns when no frame came, and what came before is known to hold still."""


class DriverError(Exception):
    """A device that cannot be had or has gone; the message says what to do about it. The runner tries again."""


class OptionError(ValueError):
    """An option in the config that makes no sense; the message names the key, the value and what is allowed."""


class Driver:
    """One device. Subclasses set `inputs` and `outputs` in `__init__` after checking their options."""

    kind: ClassVar[str]
    external: ClassVar[bool] = True
    """Whether the device outlives the node's process, so that the watchdog has something to make safe."""

    files: ClassVar[tuple[str, ...]] = ()
    """Options that name files; the driver gets their paths, which a config gives relative to its own folder."""

    inputs: tuple[Signal, ...] = ()
    """Channels the device delivers; names are local (`x`), the node knows them as `driver.x`."""
    outputs: tuple[Signal, ...] = ()
    """Channels the device takes."""
    live: bool = False
    """Set before each write: whether its values are live or the safe ones, for a driver that does not send at once."""
    driven: frozenset[str] | None = None
    """Outputs that the config drives, set before the first write; others only get safe values. None: nobody said."""
    trouble: str = ""
    """What is amiss although frames come, such as one of several messages missing; while it is set: degraded."""
    refused: int = 0
    """Frames that were bad and dropped so far without `read` raising; the runner adds them to the errors."""
    silent_ns: int = 0
    """Without a frame for this long it is degraded; 0: it may be silent."""
    stale_ns: int | None = None
    """The age at which the first of its inputs goes stale, set before `open`; for a driver that renews stamps."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.options = dict(options)

    def open(self) -> None:
        """Get hold of the device or raise DriverError."""

    def close(self) -> None:
        """Let go of it; also after a failure, and twice."""

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        """Wait a short while (a tenth of a second at most) for the device; how many frames updated channels in place.

        `stamps` gets the CLOCK_MONOTONIC time [ns] of each updated channel, taken as close to the device as possible.
        HELD: no frame came, but values or stamps changed all the same.
        """
        raise NotImplementedError(f"driver kind {self.kind!r} declares inputs but cannot read")

    def write(self, values: NDArray[np.float64]) -> None:
        """Hand one value per output channel to the device."""
        raise NotImplementedError(f"driver kind {self.kind!r} declares outputs but cannot write")

    def raw(self) -> Mapping[str, str]:
        """What came in last as the device said it, for `hilnode probe`: by channel, or as `frame`. May stay away.

        Asked between two reads, by the thread that reads.
        """
        return {}

    def prepare_safe(self) -> None:
        """In the watchdog's process, before anything has gone wrong: open ahead what may be shared with the node."""

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """In the watchdog's process, the node being dead or frozen: bring the device to `values`, and quickly."""
        self.open()
        self.write(values)


def channels_from(name: str, key: str, given: Any) -> tuple[Signal, ...]:
    """Channels from an option: a list of names, or of tables with name, unit, low, high, default, safe."""
    if not isinstance(given, (list, tuple)):
        raise OptionError(f"drivers.{name}.{key} = {given!r}: must be a list of channel names or tables")
    channels = []
    for item in given:
        table = {"name": item} if isinstance(item, str) else item
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise OptionError(f"drivers.{name}.{key}: {item!r} is neither a name nor a table with a name")
        if not isinstance(table.get("unit", ""), str):
            raise OptionError(f"drivers.{name}.{key}: {item!r}: its unit must be text")
        try:
            for value in table.values():
                math.isfinite(
                    value if isinstance(value, int) else 0
                )  # TOML has whole numbers that are beyond any float
            channels.append(Signal(**table))
        except (TypeError, ValueError, OverflowError) as error:
            raise OptionError(f"drivers.{name}.{key}: {item!r}: {error}") from error
    try:
        check_unique(channels, f"drivers.{name}.{key}")
    except SignalError as error:
        raise OptionError(str(error)) from error
    return tuple(channels)


def refuse_unknown(name: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse options that the kind does not have."""
    for key in options:
        if key not in known:
            raise OptionError(f"drivers.{name}.{key} is no option of this kind: {nearest(key, known)}")
