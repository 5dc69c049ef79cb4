"""Calls the plant through its function pointer.

    int64 step(void *self, int64 step, const double *params, const double *inputs, double *outputs, double *poses)

The address is a run-time value, so the loop is compiled once and cached, and serves a plant from numba, C, Rust
or an FMU alike.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
_STEP = ir.FunctionType(_I64, [_I64] * 6)


@intrinsic
def call_step(typing, function, owner, step, params, inputs, outputs, poses):
    """Call the step at address `function`; every argument is an int64 (pointers are addresses)."""

    def emit(context, builder, signature, args):
        return builder.call(builder.inttoptr(args[0], _STEP.as_pointer()), args[1:])

    return types.int64(*[types.int64] * 7), emit
