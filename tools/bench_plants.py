"""Plants for benchmarks: as little as possible, so that what is left is the node's own cost."""

from hilnode.core.signals import Signal
from plant.abi import OK, Plant, Task, step_function

SIGNALS = 32
BODIES = 17  # with 32 inputs and outputs and commands: a row of 2 KB


@step_function
def _pass(self, step, params, inputs, outputs, poses):
    for k in range(SIGNALS):
        outputs[k] = inputs[k]
    return OK


def wide(dt: float) -> Plant:
    """32 inputs straight to 32 outputs."""
    return Plant(
        "wide",
        dt,
        tuple(Signal(f"wide.in.{k}") for k in range(SIGNALS)),
        tuple(Signal(f"wide.out.{k}") for k in range(SIGNALS)),
        (Task("wide", _pass.address, 0),),
        bodies=tuple(f"wide.body{k}" for k in range(BODIES)),
    )
