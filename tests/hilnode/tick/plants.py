"""Small plants for tests, each with one habit. They can be named in a config as `tick.plants:burner`.

All but the counter hand their inputs on: output `y.k` is input `u.k`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hilnode.core.signals import Signal
from hilnode.core.struct import I1, Struct, viewer
from hilnode.shared.clock import now_ns
from plant.abi import Plant, Task, step_function

BROKEN = 101
"""A status code of the test plants' own."""


class Script(NamedTuple):
    """What a test plant does, and when."""

    channels: int
    at: I1  # steps at which it does what it is known for
    amount: int  # status to return, or nanoseconds to burn
    count: I1  # [1] steps done since the last reset


_view = viewer(Script)


@step_function
def _pass(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    for k in range(_view(self).channels):
        outputs[k] = inputs[k]
    return 0


@step_function
def _count(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    s.count[0] += 1
    outputs[0] = s.count[0]
    return 0


@step_function
def _recount(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    s.count[0] = 0
    outputs[0] = 0.0
    return 0


@step_function
def _fail(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    for k in range(s.channels):
        outputs[k] = inputs[k]
    for k in range(s.at.size):
        if s.at[k] == n:
            return s.amount
    return 0


@step_function
def _lose(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    for k in range(s.channels):
        outputs[k] = inputs[k]
    for k in range(s.at.size):
        if s.at[k] == n:
            outputs[0] = math.nan
    return 0


@step_function
def _burn(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    for k in range(s.channels):
        outputs[k] = inputs[k]
    for k in range(s.at.size):
        if s.at[k] == n:
            until = now_ns() + s.amount
            while now_ns() < until:
                pass
    return 0


@step_function
def _spin(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    s = _view(self)
    until = now_ns() + s.amount
    while n >= s.at[0] and now_ns() < until:
        pass
    return 0


def _plant(
    name: str, dt: float, step: Any, channels: int, at: Sequence[int] = (), amount: int = 0, *, reset: Any = None
) -> Plant:
    script = Struct(Script(channels, np.array(at, np.int64), amount, np.zeros(1, np.int64)))
    return Plant(
        name,
        dt,
        tuple(Signal(f"u.{k}") for k in range(channels)),
        tuple(Signal(f"y.{k}") for k in range(channels)),
        (Task(name, step.address, script.address),),
        reset=(reset.address, script.address) if reset else (0, 0),
        status={BROKEN: "broken on purpose"},
        owner=script,
    )


def pass_through(dt: float = 1e-3, *, channels: int = 1) -> Plant:
    """Outputs are inputs."""
    return _plant("pass_through", dt, _pass, channels)


def counter(dt: float = 1e-3) -> Plant:
    """`y.0` counts the steps since the last reset, whatever the tick thinks they are."""
    return _plant("counter", dt, _count, 1, reset=_recount)


def failing(dt: float = 1e-3, *, at: Sequence[int], status: int = BROKEN, reset_status: int = 0) -> Plant:
    """Returns `status` at the steps `at`, counted from 0; its reset returns `reset_status`."""
    made = _plant("failing", dt, _fail, 1, at, status)
    reset = _plant("failing", dt, _fail, 1, [0], reset_status)
    return replace(made, reset=reset.tasks[0][1:3], owner=(made.owner, reset.owner))


def losing(dt: float = 1e-3, *, at: Sequence[int]) -> Plant:
    """Writes NaN into `y.0` at the steps `at`; its reset hands the inputs on."""
    return _plant("losing", dt, _lose, 1, at, reset=_pass)


def burning(dt: float = 1e-3, *, at: Sequence[int], us: float) -> Plant:
    """Takes `us` microseconds at the steps `at`."""
    return _plant("burning", dt, _burn, 1, at, int(us * 1e3))


def spin_forever(dt: float = 1e-3, *, at: int = 0, seconds: float = 30.0) -> Plant:
    """Does not return from step `at`, and gives up after `seconds` so that a failing test does not heat the room."""
    return _plant("spin_forever", dt, _spin, 1, [at], int(seconds * 1e9))


def with_tasks(plant: Plant, *tasks: tuple[Plant, int, int]) -> Plant:
    """`plant`, and after it the step of each other plant on every so many steps with a phase, as slower tasks."""
    more = [Task(p.name, *p.tasks[0][1:3], every, phase) for p, every, phase in tasks]
    return replace(plant, tasks=(*plant.tasks, *more), owner=(plant.owner, *(p.owner for p, _, _ in tasks)))
