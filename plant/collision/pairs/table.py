"""The table of the narrow phase: one kernel for each pair of kinds of shapes.

Each pair of kinds has a kernel of its own, called through its address, so that a world compiles only the pairs that it
has. A new pair is one function in one file of `pairs/`:

    @pair(Kind.SPHERE, Kind.BOX)
    def _sphere_box(scene, i, j, margin):
        s = view_scene(scene)
        return sphere_box(s.shape, s.placed, i, j, margin, s.out)

One function may serve several pairs. Pairs that are not in the table never touch: ground against ground, and the few
that `known_pairs` does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hilnode.core.jit import exported
from plant.collision.model import Kind

FILES = ("round", "boxes", "convexes", "rings", "surfaces")
"""Modules of plant.collision.pairs, each of which enters its pairs when it is imported."""

_SIGNATURE = types.int64(types.int64, types.int64, types.int64, types.float64)
_entered: dict[tuple[Kind, Kind], Callable[..., int]] = {}
_compiled: dict[Callable[..., int], Any] = {}


def pair(first: Kind, second: Kind) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Enter a function as the kernel of a pair of kinds, the lower one first."""

    def enter(function: Callable[..., int]) -> Callable[..., int]:
        _entered[first, second] = function
        return function

    return enter


def known_pairs() -> set[tuple[Kind, Kind]]:
    """Pairs of kinds that can touch."""
    for name in FILES:
        import_module(f"plant.collision.pairs.{name}")
    return set(_entered)


def pair_table(wanted: Iterable[tuple[Kind, Kind]]) -> NDArray[np.int64]:
    """Addresses of the kernels of these pairs, compiled if need be; 0 for all others."""
    table = np.zeros((len(Kind), len(Kind)), np.int64)
    known = known_pairs()
    for key in wanted:
        if key in known:
            function = _entered[key]
            if function not in _compiled:
                _compiled[function] = exported(_SIGNATURE)(function)
            table[key] = _compiled[function].address
    return table


_I64, _F64 = ir.IntType(64), ir.DoubleType()
_PAIR = ir.FunctionType(_I64, [_I64, _I64, _I64, _F64])


@intrinsic  # type: ignore[untyped-decorator]
def call_pair(typing: Any, function: Any, scene: Any, i: Any, j: Any, margin: Any) -> Any:
    """Call the pair kernel at address `function`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.inttoptr(args[0], _PAIR.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64, types.float64), emit
