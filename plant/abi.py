"""The border between a plant and whoever steps it: one C function over flat buffers.

    int64_t step(void *self, int64_t step, const double *params,
                 const double *inputs, double *outputs, double *poses);

`self` is whatever the plant wants back, `step` counts plant steps from 0, `poses` holds 7 numbers per body
(position [m], quaternion w x y z). The answer is 0, or a status that trips the node. `reset` has the same
shape: it restores the initial state and fills outputs and poses. A plant from C or Rust gives its addresses as
they are (`plant/hilnode_plant.h`); one written in numba uses `step_function` and `Record`:

    class Pendulum(NamedTuple):
        state: NDArray[np.float64]

    load = loader(Pendulum(np.zeros(2)))          # how the step gets its arrays back from the pointer

    @step_function
    def step(self, n, params, inputs, outputs, poses):
        p = load(self)
        p.state[0] += ...
        return OK
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilnode.jit import kernel
from hilnode.signals import Signal, check_unique

_DOUBLES = types.CPointer(types.float64)
STEP = types.int64(types.int64, types.int64, _DOUBLES, _DOUBLES, _DOUBLES, _DOUBLES)
"""The step's signature; `self` travels as an integer address."""


class Status(IntEnum):
    """What a step returns. Plants may add their own codes from 100 on."""

    OK = 0
    NOT_FINITE = 1  # a state became NaN or infinite
    DIVERGED = 2  # a state left every plausible range
    SOLVER_FAILED = 3  # no solution within the iteration limit


OK, NOT_FINITE, DIVERGED, SOLVER_FAILED = (int(s) for s in Status)


class Task(NamedTuple):
    """A step function that runs on every k-th plant step, in the order of the list."""

    name: str
    address: int
    self_address: int
    every: int = 1
    phase: int = 0


@dataclass(frozen=True)
class Plant:
    """A compiled plant as the node sees it: names for people, addresses for the tick."""

    name: str
    dt: float  # [s] the step it was compiled for
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    tasks: tuple[Task, ...]
    parameters: tuple[Signal, ...] = ()
    bodies: tuple[str, ...] = ()
    reset: tuple[int, int] = (0, 0)  # address of the reset function and its self; 0 = none
    status: dict[int, str] = field(default_factory=dict)  # sentences for status codes of its own
    owner: object = None  # keeps the memory behind the addresses alive

    def __post_init__(self) -> None:
        check_unique((*self.inputs, *self.outputs), f"plant {self.name}")
        check_unique(self.parameters, f"plant {self.name}, parameters")
        if not self.tasks:
            raise ValueError(f"plant {self.name} has no task to run")
        for task in self.tasks:
            if not 0 <= task.phase < task.every:
                raise ValueError(
                    f"plant {self.name}, task {task.name}: phase {task.phase} must lie in 0 .. {task.every - 1} (every - 1)"
                )

    def explain(self, status: int) -> str:
        """A sentence for a status code."""
        known = {
            NOT_FINITE: "a state became NaN or infinite",
            DIVERGED: "the state left every plausible range",
            SOLVER_FAILED: "the solver found no solution",
        }
        return self.status.get(status) or known.get(status) or f"plant status {status}"


def step_function(function: Callable[..., int]) -> Any:
    """Compile `function(self, step, params, inputs, outputs, poses) -> int` to the plant ABI.

    Its `.address` is the pointer.
    """
    return numba.cfunc(STEP, nopython=True, cache=True, error_model="numpy")(function)


class Record:
    """A NamedTuple of arrays laid down in memory, so that a step function can pick it up again from one pointer.

    A NamedTuple of sixty arrays costs tens of microseconds to pass from Python; this pays it once. The arrays
    stay owned by Python: keep the Record alive as long as its address is in use.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        self._memory = np.zeros(_size_of(record), np.uint8)
        self.address: int = self._memory.ctypes.data
        _store(record, self.address)


@intrinsic  # type: ignore[untyped-decorator]
def _sizeof(typing: Any, record: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.int64, context.get_abi_sizeof(args[0].type))

    return types.int64(record), emit


@kernel
def _size_of(record: Any) -> int:
    return _sizeof(record)


@intrinsic  # type: ignore[untyped-decorator]
def _put(typing: Any, record: Any, address: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = _disown(context, builder, record, args[0])
        builder.store(value, builder.inttoptr(args[1], value.type.as_pointer()))
        return context.get_dummy_value()

    return types.void(record, types.int64), emit


@kernel
def _store(record: Any, address: int) -> None:
    _put(record, address)


def _disown(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """`value` with every array's owner taken out, so that loading it again needs no reference counting."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, member in enumerate(kind.types):
            part = _disown(context, builder, member, builder.extract_value(value, i))
            value = builder.insert_value(value, part, i)
    return value


def loader(example: Any) -> Any:
    """A function for step functions: `load(address)` gives a tuple of `example`'s type, stored there by `Record`."""
    kind = numba.typeof(example)

    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing: Any, address: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            shape: ir.Type = context.get_value_type(kind)
            return builder.load(builder.inttoptr(args[0], shape.as_pointer()))

        return kind(types.int64), emit

    return load
