"""Headroom: how much more work a tick could do. Measured, not computed: the node runs with a task that burns time.

The plant, the inputs and the machine's own noise all take part, so the answer holds for this config on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hilnode.config.config import Config, overlay
from hilnode.node.node import Node
from hilnode.shared.clock import now_ns
from hilnode.shared.lockfree.atomics import load_relaxed
from plant.abi import OK, Task, step_function

ALLOWED = 0.001
"""Share of ticks that may overrun in a trial and still count as holding the rate."""

TRIALS = 8
"""Halvings: the answer is exact to a 256th of the period."""


@step_function
def burn(self, step, params, inputs, outputs, poses):
    """A task that keeps the CPU busy for as many nanoseconds as the word at address `self` says."""
    until = now_ns() + load_relaxed(self)
    while now_ns() < until:
        pass
    return OK


@dataclass(frozen=True)
class Headroom:
    """The answer."""

    period_us: float
    extra_us: float  # still holds the rate
    fails_us: float  # does not; the truth lies between the two
    overruns_without: int  # in the trial without extra work
    ticks: int  # per trial

    @property
    def percent(self) -> float:
        return 100 * self.extra_us / self.period_us

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "percent": round(self.percent, 1), "allowed_share": ALLOWED}

    def sentence(self) -> str:
        """What a person wants to know."""
        if self.extra_us <= 0:
            return (
                f"no headroom: {self.overruns_without} of {self.ticks} ticks overran without any extra work. "
                "Lower node.rate_hz, or see hilnode doctor"
            )
        return (
            f"{self.extra_us:.0f} us of extra work per tick still hold the rate ({self.percent:.0f} % of the "
            f"{self.period_us:g} us period); {self.fails_us:.0f} us do not. "
            f"Holding means: at most {100 * ALLOWED:g} % of {self.ticks} ticks overrun"
        )


def measure(config: Config, seconds: float, say: Callable[[str], None]) -> Headroom:
    """Bisect the extra work that a node of this config can do, `seconds` for each trial."""
    quiet = overlay(
        config,
        **{
            "node.overrun": "skip",
            "node.max_overruns": 0,
            "node.pace": "real-time",
            "bridge.enabled": False,
            "log.timing": False,
        },
    )
    period = quiet.node.period_ns / quiet.node.speed
    load = np.zeros(1, np.int64)
    task = Task("headroom", burn.address, load.ctypes.data)
    with Node(quiet, say=say, extra_tasks=(task,)) as node:
        node.start()
        trial = _Trial(node, load, round(seconds * 1e9 / period), say)
        without = trial.overruns(0.0)
        low, high = 0.0, period
        if without <= ALLOWED * trial.ticks:
            for _ in range(TRIALS):
                middle = 0.5 * (low + high)
                if trial.overruns(middle) <= ALLOWED * trial.ticks:
                    low = middle
                else:
                    high = middle
    return Headroom(period / 1e3, low / 1e3, high / 1e3, without, trial.ticks)


class _Trial:
    """Runs one load after another on a running node."""

    def __init__(self, node: Node, load: np.ndarray[Any, np.dtype[np.int64]], ticks: int, say: Callable[[str], None]):
        self._node, self._load, self._say = node, load, say
        self.ticks = ticks

    def overruns(self, nanoseconds: float) -> int:
        """Overruns in as many ticks as a trial has, with this much extra work in each."""
        self._load[0] = int(nanoseconds)
        seconds = self.ticks * self._node.config.node.period_ns / self._node.config.node.speed * 1e-9
        self._node.wait(0.2)  # let the change of load pass
        before = self._count()
        self._node.wait(seconds)
        overruns = self._count() - before
        self._say(f"{nanoseconds / 1e3:6.0f} us extra: {overruns} of {self.ticks} ticks overran")
        return overruns

    def _count(self) -> int:
        t = self._node.timing()
        return t.overruns + t.grace_overruns
