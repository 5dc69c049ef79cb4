"""A plant that counts its steps and makes trouble on demand: the value of its input `trouble.kind` says which.

0 none, 1 never returns, 2 returns status 100, 3 gives a number that is none, 4 takes 3 ms, 5 takes 200 ms
"""

from typing import NamedTuple

import numpy as np

from hilnode.core.signals import Signal
from hilnode.core.struct import F1, Struct, viewer
from hilnode.shared.clock import now_ns
from plant.abi import Plant, Task, step_function

ENDLESS, STATUS, NAN, LATE, LONG = 1.0, 2.0, 3.0, 4.0, 5.0


class Memory(NamedTuple):
    state: F1


_view = viewer(Memory)


@step_function
def step(self, n, params, inputs, outputs, poses):
    memory = _view(self).state
    memory[0] += 1.0
    outputs[0] = memory[0] - 1.0
    outputs[1] = params[0] * inputs[1]
    kind = inputs[0]
    if kind == ENDLESS:
        while now_ns() > 0:
            pass
    if kind == STATUS:
        return 100
    if kind == NAN:
        outputs[1] = np.nan
    if kind == LATE or kind == LONG:
        until = now_ns() + (3_000_000 if kind == LATE else 200_000_000)
        while now_ns() < until:
            pass
    return 0


@step_function
def reset(self, n, params, inputs, outputs, poses):
    _view(self).state[0] = 0.0
    outputs[0] = 0.0
    outputs[1] = 0.0
    return 0


def create(dt: float) -> Plant:
    record = Struct(Memory(np.zeros(1)))
    return Plant(
        "trouble",
        dt,
        inputs=(Signal("trouble.kind", low=0, high=5), Signal("trouble.x", "m", low=-10, high=10)),
        outputs=(Signal("trouble.count"), Signal("trouble.y", "m")),
        tasks=(Task("trouble", step.address, record.address),),
        parameters=(Signal("trouble.gain", default=2.0, low=0, high=9),),
        reset=(reset.address, record.address),
        status={100: "as it was told to"},
        owner=record,
    )
