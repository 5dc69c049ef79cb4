"""operator: a virtual operator that plays a script: waypoints, stick movements, or a recorded session.

It is what moves the sticks when nobody is there: in a demonstration, a regression test, a run without hardware. The
script begins when the driver is opened. It ends with the last point, whose values stay, or begins again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, OptionError
from drivers.options import Options
from drivers.script import SHAPES, from_config, from_file

KEYS = ("file", "channels", "points", "moves", "shape", "loop", "speed", "start_s", "every_ms", "time", "columns")


class Operator(Driver):
    """Options: see docs/virtual-operator.md."""

    kind = "operator"
    files = ("file",)
    external = False

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        o = Options(name, options, KEYS)
        shape = o.choice("shape", "linear", {s: s for s in SHAPES})
        if o.has("file"):
            if twice := [key for key in ("channels", "points", "moves") if o.has(key)]:
                raise OptionError(f"drivers.{name}.{twice[0]}: the script is in the file; give one or the other")
            self.script = from_file(name, o.text("file", ""), shape, o.text("time", "time"), _columns(o))
        else:
            self.script = from_config(name, options, shape)
        self.inputs = self.script.channels
        self._loop = o.flag("loop", False)
        self._speed = o.number("speed", 1.0, 0.001, 1000.0)
        self._start = o.number("start_s", 0.0, 0.0, 1e9)
        self._every = round(o.number("every_ms", 1.0, 0.1, 100.0) * 1e6)
        if self._loop and self.script.length <= self._start:
            raise o.wrong("loop", f"the script ends at {self.script.length:g} s: there is nothing to play again")
        self._began = self._due = 0  # [ns]

    def open(self) -> None:
        self._began = self._due = time.monotonic_ns()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        now = time.monotonic_ns()
        self._due = max(self._due + self._every, now)
        time.sleep((self._due - now) * 1e-9)
        now = time.monotonic_ns()
        t = self.moment((now - self._began) * 1e-9)
        for k, track in enumerate(self.script.tracks):
            values[k] = track.at(t)
        stamps[:] = now
        return True

    def moment(self, elapsed: float) -> float:
        """Where in the script one is, some seconds after it began."""
        t = self._start + elapsed * self._speed
        if self._loop and t >= self.script.length:
            return self._start + (t - self._start) % (self.script.length - self._start)
        return t


def _columns(options: Options) -> dict[str, str]:
    given = options.given.get("columns", {})
    if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
        raise options.wrong("columns", 'must be a table of channel = "column", such as { x = "stick x" }')
    return dict(given)
