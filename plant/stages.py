"""Stages: a few separately compiled pieces of the step, which call each other through function pointers.

They are collide, solve, step, and what only some worlds need.

numba compiles a kernel together with all that it calls, and again for each of its callers. The pieces are what a step
spends its time in, so a call through a pointer costs nothing that can be seen, and each is compiled once, whoever
steps the engine: the node, a test, a tool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hilnode.core.jit import exported

_I64 = ir.IntType(64)
_STAGE = ir.FunctionType(_I64, [_I64, _I64])
_SIGNATURE = types.int64(types.int64, types.int64)


Stage = Callable[[int, int], int]


class Stages(NamedTuple):
    """Addresses of the pieces; 0 = not needed."""

    collide: int
    solve: int
    step: int
    foundation: int  # push of a contact by volume: its rows, or its share of the residual
    foundation_slopes: int  # and its share of the tangent matrix, in natural coordinates


@intrinsic  # type: ignore[untyped-decorator]
def call_stage(typing: Any, function: Any, engine: Any, argument: Any) -> Any:
    """Call the piece at address `function` with the address of the engine's record and a number."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.inttoptr(args[0], _STAGE.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64), emit


@cache
def compiled_stage(function: Stage) -> Any:
    """`function(engine, argument)` behind a C pointer, compiled when it is first asked for."""
    return exported(_SIGNATURE)(function)


def address_of_stage(function: Stage | None) -> int:
    """Where the compiled piece is; 0 for none."""
    return 0 if function is None else int(compiled_stage(function).address)
