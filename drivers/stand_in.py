"""A stand-in: a twin that is a driver itself. It replaces a device until the device is swapped in.

    [drivers.cab]                  the device: a page in the browser, by the ECU lane
    kind = "ecu"
    [drivers.cab.twin]             whoever holds the levers until somebody takes them
    kind = "operator"
    file = "cycle.toml"

It has the device's channels: by their names it moves the inputs that it knows, and the others stand at their defaults;
what it wants to see is what the node writes to the device's outputs. Who is in is a swap, as with any twin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, OptionError
from drivers.operator.phases import OWN
from drivers.twin import Twin
from hilnode.core.signals import Signal, nearest


class StandIn(Twin):
    """`actor` in the place of `real`."""

    def __init__(self, real: Driver, actor: Driver) -> None:
        super().__init__(real, True)
        self.actor = actor
        self.silent_ns = actor.silent_ns
        actor.name = self.name
        moved = [s for s in actor.inputs if s.name not in OWN]  # how an operator is doing is no lever
        self._check("moves", moved, real.inputs, "inputs")
        self._check("sees", actor.outputs, real.outputs, "outputs")
        places = [s.name for s in actor.inputs]
        self._from = np.array([places.index(s.name) for s in self.inputs if s.name in places], np.int64)
        self._to = np.array([k for k, s in enumerate(self.inputs) if s.name in places], np.int64)
        seen = [s.name for s in self.outputs]
        self._eyes = np.array([seen.index(s.name) for s in actor.outputs], np.int64)
        self._defaults = np.array([s.default for s in self.inputs])
        self._values = np.array([s.default for s in actor.inputs])
        self._stamps = np.zeros(len(actor.inputs), np.int64)

    def _check(self, verb: str, wanted: tuple[Signal, ...] | list[Signal], had: tuple[Signal, ...], key: str) -> None:
        units = {s.name: s.unit for s in had}
        for s in wanted:
            where = f"drivers.{self.name}.twin: it {verb} {s.name!r}"
            if s.name not in units:
                raise OptionError(f"{where}, which is not among the {key} of {self.name}: {nearest(s.name, [*units])}")
            if s.unit not in ("", units[s.name]):  # a script need not say
                raise OptionError(f"{where} in {s.unit!r}, but {self.name}.{s.name} is in {units[s.name]!r}")

    def open(self) -> None:
        if self.driven is not None:
            self.actor.driven = self.driven & {s.name for s in self.actor.outputs}
        self.actor.open()

    def close(self) -> None:
        self.actor.close()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        frames = self.actor.read(self._values, self._stamps)
        self.trouble, self.refused = self.actor.trouble, self.actor.refused
        if frames:
            values[:] = self._defaults
            values[self._to] = self._values[self._from]
            stamps[:] = self._stamps.max()
            stamps[self._to] = self._stamps[self._from]
        return frames

    def write(self, values: NDArray[np.float64]) -> None:
        self.actor.live = self.live
        self.actor.write(values[self._eyes])
