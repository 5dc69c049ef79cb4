"""User-defined force fields (wind, buoyancy, magnets): a C function that adds to the wrenches of all bodies.

It is called at each step.

    @force_field
    def wind(bodies, pos, quat, vel, wrench):
        for b in range(bodies):
            wrench[6 * b] += 3.0 * (12.0 - vel[6 * b])

    world.force_field(wind)

    void field(int64_t bodies, const double *pos, const double *quat, const double *vel, double *wrench);

Centres of mass [b, 3], quaternions w x y z [b, 4], velocities [b, 6] and wrenches [b, 6] at the centre of mass, all in
world axes, row by row. A field is explicit: a stiff one belongs into a spring. Write only to the wrenches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hilnode.core.jit import exported, kernel

_DOUBLES = types.CPointer(types.float64)
_SIGNATURE = types.void(types.int64, _DOUBLES, _DOUBLES, _DOUBLES, _DOUBLES)
_I64 = ir.IntType(64)
_FIELD = ir.FunctionType(ir.VoidType(), [_I64] * 5)


def force_field(function: Callable[..., None]) -> Any:
    """Compile `function(bodies, pos, quat, vel, wrench)` as a force field; its `.address` is the pointer."""
    return exported(_SIGNATURE)(function)


@intrinsic  # type: ignore[untyped-decorator]
def _call_field(typing: Any, function: Any, bodies: Any, pos: Any, quat: Any, vel: Any, wrench: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(builder.inttoptr(args[0], _FIELD.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


@kernel
def apply_fields(e):
    """Wrenches of all fields at the state of now, into `field_wrench`."""
    m, s = e.model, e.data.state
    if m.field.address.size == 0:
        return
    s.field_wrench[:] = 0.0
    for k in range(m.field.address.size):
        _call_field(
            m.field.address[k],
            m.body.mass.size,
            s.pos.ctypes.data,
            s.quat.ctypes.data,
            s.vel.ctypes.data,
            s.field_wrench.ctypes.data,
        )
