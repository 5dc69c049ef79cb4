"""The monotonic clock for nopython code, in integer nanoseconds.

libc is called by name rather than through ctypes pointers: a ctypes address would be baked into the machine
code, and numba would then refuse to cache it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilnode.core.jit import kernel

CLOCK_MONOTONIC = 1
TIMER_ABSTIME = 1
NS = 1_000_000_000

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_TIMESPEC = ir.ArrayType(_I64, 2)


def _libc(builder: Any, name: str, *arguments: Any) -> Any:
    declared = ir.FunctionType(_I32, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, declared, name), arguments)


@intrinsic  # type: ignore[untyped-decorator]
def now_ns(typing: Any) -> Any:
    """CLOCK_MONOTONIC now [ns]; about 30 ns through the vDSO."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        spec = cgutils.alloca_once(builder, _TIMESPEC)
        _libc(builder, "clock_gettime", _I32(CLOCK_MONOTONIC), spec)
        seconds = builder.load(cgutils.gep_inbounds(builder, spec, 0, 0))
        nanos = builder.load(cgutils.gep_inbounds(builder, spec, 0, 1))
        return builder.add(builder.mul(seconds, _I64(NS)), nanos)

    return types.int64(), emit


@intrinsic  # type: ignore[untyped-decorator]
def _sleep(typing: Any, deadline: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        spec = cgutils.alloca_once(builder, _TIMESPEC)
        builder.store(builder.sdiv(args[0], _I64(NS)), cgutils.gep_inbounds(builder, spec, 0, 0))
        builder.store(builder.srem(args[0], _I64(NS)), cgutils.gep_inbounds(builder, spec, 0, 1))
        nobody = cgutils.voidptr_t(None)
        code = _libc(builder, "clock_nanosleep", _I32(CLOCK_MONOTONIC), _I32(TIMER_ABSTIME), spec, nobody)
        return builder.sext(code, _I64)

    return types.int64(types.int64), emit


EINTR = 4


@kernel
def sleep_until(deadline: int) -> int:
    """Sleep until CLOCK_MONOTONIC reads `deadline` [ns]; 0, or the error number of clock_nanosleep.

    The deadline is absolute, so a sleep that a signal cuts short is simply taken up again and does not drift.
    """
    code = _sleep(deadline)
    while code == EINTR:
        code = _sleep(deadline)
    return code


@kernel
def wait_until(deadline: int, spin: int) -> int:
    """Sleep to `spin` ns before the deadline, watch the clock for the rest; return when it woke [ns]."""
    sleep_until(deadline - spin)
    now = now_ns()
    while now < deadline:
        now = now_ns()
    return now
