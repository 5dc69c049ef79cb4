"""What a signal is: a name, a unit, a default, a range and a safe value.

The vocabulary that plants, drivers, the node and the bridge share. It knows no time, no device and no network.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)*")
"""Dotted and lower case: `excavator.boom.angle`."""


class SignalError(ValueError):
    """A signal that cannot be: the message says which, what is wrong and what is allowed."""


class UnknownName(KeyError):
    """A name that does not exist; the message suggests the nearest ones."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes


@dataclass(frozen=True, slots=True)
class Signal:
    """One float64 that has a meaning.

    `safe` is what a device gets whenever nobody may drive it: before arming, after a trip, at stop and at crash.
    """

    name: str
    unit: str = ""
    default: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    safe: float = math.nan  # becomes the default when not given
    doc: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise SignalError(
                f"signal name {self.name!r}: use lower-case words joined by dots, such as 'excavator.boom.angle'"
            )
        if math.isnan(self.safe):
            object.__setattr__(self, "safe", self.default)
        if not self.low <= self.high:
            raise SignalError(f"signal {self.name}: its range [{self.low}, {self.high}] is empty")
        for what, value in (("default", self.default), ("safe value", self.safe)):
            if not math.isfinite(value) or not self.low <= value <= self.high:
                raise SignalError(
                    f"signal {self.name}: {what} {value} must be a finite number in [{self.low}, {self.high}]"
                )


def check_unique(signals: Iterable[Signal], where: str) -> None:
    """Refuse two signals of one name."""
    seen: set[str] = set()
    for s in signals:
        if s.name in seen:
            raise SignalError(f"{where}: two signals are called {s.name!r}")
        seen.add(s.name)


def nearest(name: str, known: Sequence[str], *, most: int = 3) -> str:
    """A hint for an unknown name: `did you mean 'a' or 'b'?`, else what there is."""
    close = difflib.get_close_matches(name, known, n=most, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    if not known:
        return "there are none"
    shown = ", ".join(sorted(known)[:12])
    return f"known: {shown}" + (f" and {len(known) - 12} more" if len(known) > 12 else "")
