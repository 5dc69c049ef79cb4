"""A plant of one joint that turns as fast as its stick says, and of two inputs that do nothing but be recorded."""

from typing import NamedTuple

import numpy as np

from hilnode.core.signals import Signal
from hilnode.core.struct import F1, Struct, viewer
from plant.abi import OK, Plant, Task, step_function

SPEED = 1.0  # [rad/s] at the stick's end


class Joint(NamedTuple):
    angle: F1  # [1] [rad]
    dt: float  # [s]


_view = viewer(Joint)


@step_function
def step(self, n, params, inputs, outputs, poses):
    joint = _view(self)
    joint.angle[0] += joint.dt * params[0] * inputs[0]
    outputs[0] = joint.angle[0]
    return OK


@step_function
def reset(self, n, params, inputs, outputs, poses):
    _view(self).angle[0] = 0.0
    outputs[0] = 0.0
    return OK


def create(dt: float) -> Plant:
    record = Struct(Joint(np.zeros(1), dt))
    return Plant(
        "joint",
        dt,
        inputs=(Signal("joint.stick", "1", low=-1, high=1), Signal("joint.phase"), Signal("joint.cycle")),
        outputs=(Signal("joint.angle", "rad"),),
        tasks=(Task("joint", step.address, record.address),),
        parameters=(Signal("joint.speed", "rad/s", SPEED, 0, 100),),
        reset=(reset.address, record.address),
        owner=record,
    )
