"""A BVH over the triangles of a mesh: eight branches a node, all eight boxes tested at once.

A query somewhere in a large mesh waits for memory most of the time. So this tree has few levels, and nodes that lie in
whole lines of the cache: eight boxes in single precision, rounded outwards, first the lower x of all eight, then the
lower y and so on, so that one instruction compares eight numbers. It needs no links. A leaf is eight triangles
that follow each other, a node eight nodes that follow each other on the level below: branch k of node g is node
8 g + k. The binary tree (mesh.py) puts the triangles in an order in which such runs lie close together. A walk is three
whole numbers, for which branches still to be looked at take one byte a level.

Each triangle has the numbers of its corners and of the vertices across its edges once more in 32 bits, in one row,
so that whoever finds it can decide about faces and edges with no load but the vertices. What will be looked at soon is
asked for from memory before: the leaves when their parent has been tested.

It pays where little of a large mesh is looked at. Walks that choose the nearer branch first use the binary tree; those
down two trees at once end in leaves of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import ArrayKind

WIDE = 8  # branches of a node, triangles of a leaf
LEVELS = 8  # at most; their branches to look at fit into one word
MOST = WIDE**LEVELS  # triangles of a mesh, at most
BOXES = 6 * WIDE  # numbers of a node
HAIR = 2e-7  # a number in single precision is right to half of this part of it
SPECK = 1e-44  # and to less than this if it is very small
VAST = 1e38  # bounds that go further end here, so that they do not meet empty boxes, which run from inf to -inf

NarrowF2 = Annotated[NDArray[np.float32], ArrayKind(np.float32, 2)]
NarrowI2 = Annotated[NDArray[np.int32], ArrayKind(np.int32, 2)]

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_EIGHT = ir.VectorType(ir.FloatType(), WIDE)
_LINE = 64  # bytes of a line of the cache
_NODE_LINES = 4 * BOXES // _LINE
_ROW = 4 * 6  # bytes of the numbers of one triangle


@intrinsic  # type: ignore[untyped-decorator]
def _met(typing: Any, place: Any, bounds: Any) -> Any:
    """Bits of those of the eight boxes at an address that have a point in common with `bounds`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.inttoptr(args[0], _EIGHT.as_pointer())
        nothing, to_all = (
            ir.Constant(_EIGHT, ir.Undefined),
            ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE),
        )
        met = ir.Constant(ir.VectorType(ir.IntType(1), WIDE), [1] * WIDE)
        for i in range(6):
            edges = builder.load(builder.gep(first, [_WORD(i)]), align=4)
            limit = builder.insert_element(nothing, builder.extract_value(args[1], (i + 3) % 6), ir.IntType(32)(0))
            limits = builder.shuffle_vector(limit, nothing, to_all)
            met = builder.and_(met, builder.fcmp_ordered("<=" if i < 3 else ">=", edges, limits))
        return builder.zext(builder.bitcast(met, ir.IntType(WIDE)), _WORD)

    return types.int64(types.int64, types.UniTuple(types.float32, 6)), emit


@intrinsic  # type: ignore[untyped-decorator]
def lowest(typing: Any, bits: Any) -> Any:
    """The number of the lowest bit of a word that is not 0."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), emit


@intrinsic  # type: ignore[untyped-decorator]
def _ask(typing: Any, place: Any) -> Any:
    """Ask for the line of the cache at an address, and do not wait for it."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        builder.call(function, [builder.inttoptr(args[0], _BYTES), flag(0), flag(3), flag(1)])  # to read, keep it, data
        return context.get_dummy_value()

    return types.void(types.int64), emit


@inline
def around(low, high):
    """What a walk looks for: the box from `low` to `high`, a hair larger, and never without end."""
    x = HAIR * max(abs(low[0]), abs(high[0])) + SPECK
    y = HAIR * max(abs(low[1]), abs(high[1])) + SPECK
    z = HAIR * max(abs(low[2]), abs(high[2])) + SPECK
    return (
        _narrow(low[0] - x),
        _narrow(low[1] - y),
        _narrow(low[2] - z),
        _narrow(high[0] + x),
        _narrow(high[1] + y),
        _narrow(high[2] + z),
    )


@inline
def _narrow(x):
    return np.float32(-VAST if x < -VAST else VAST if x > VAST else x)


@inline
def met_of(mesh, m, t, bounds):
    """Bits of those triangles of a leaf whose boxes meet `bounds`; its first one is `t` of mesh `m`."""
    leaf = mesh.wide_level[m, 0] + (t - mesh.first_triangle[m]) // WIDE
    return _met(mesh.wide.ctypes.data + 4 * BOXES * leaf, bounds)


@inline
def next_leaf(mesh, m, level, node, waiting, bounds):
    """Walk on to the next leaf that has triangles whose boxes meet `bounds`, in the order of the triangles.

    Returns the new level, node and waiting, the first triangle of the leaf, and bits for those of its triangles that
    meet; no bits = there is no other. A walk begins with (mesh.wide_level[m, LEVELS], 0, 1).
    """
    first, boxes = mesh.first_triangle[m], mesh.wide.ctypes.data
    while waiting != 0:
        while waiting & 0xFF == 0:
            level, node, waiting = level + 1, node >> 3, waiting >> 8
        branch = WIDE * node + lowest(waiting)
        waiting &= waiting - 1
        met = _met(boxes + 4 * BOXES * (mesh.wide_level[m, level - 1] + branch), bounds)
        if level == 1:
            if met != 0:
                return level, node, waiting, first + WIDE * branch, met
            continue
        level, node, waiting = level - 1, branch, waiting << 8 | met
        if level == 1:
            _ask_leaves(mesh, m, node, met)
    return level, node, waiting, first, 0


@inline
def _ask_leaves(mesh, m, node, met):
    """Ask for the boxes of these leaves of a node, and for the rows of their triangles."""
    boxes = mesh.wide.ctypes.data + 4 * BOXES * mesh.wide_level[m, 0]
    rows = mesh.row.ctypes.data + _ROW * mesh.first_triangle[m]
    while met != 0:
        leaf = WIDE * node + lowest(met)
        met &= met - 1
        for line in range(_NODE_LINES):
            _ask(boxes + 4 * BOXES * leaf + _LINE * line)
            _ask(rows + WIDE * _ROW * leaf + _LINE * line)


@inline
def _nodes(branches):
    """Nodes of a level with so many branches."""
    return (branches + WIDE - 1) // WIDE


@kernel
def refit_wide(mesh, m):
    """The boxes of the wide tree of mesh `m`, from the triangles up; branches that there are not stay empty."""
    wide, start, first = mesh.wide, mesh.wide_level[m], mesh.first_triangle[m]
    branches = mesh.first_triangle[m + 1] - first
    for t in range(branches):
        node, k = start[0] + t // WIDE, t % WIDE
        for i in range(3):
            a = mesh.vertex[mesh.triangle[first + t, 0], i]
            b = mesh.vertex[mesh.triangle[first + t, 1], i]
            c = mesh.vertex[mesh.triangle[first + t, 2], i]
            low, high = min(a, b, c), max(a, b, c)
            wide[node, WIDE * i + k] = low - HAIR * abs(low) - SPECK
            wide[node, WIDE * (i + 3) + k] = high + HAIR * abs(high) + SPECK
    for level in range(1, start[LEVELS]):
        branches = _nodes(branches)
        for b in range(branches):
            below, node, k = start[level - 1] + b, start[level] + b // WIDE, b % WIDE
            for i in range(3):
                low, high = wide[below, WIDE * i], wide[below, WIDE * (i + 3)]
                for j in range(1, WIDE):
                    low, high = min(low, wide[below, WIDE * i + j]), max(high, wide[below, WIDE * (i + 3) + j])
                wide[node, WIDE * i + k], wide[node, WIDE * (i + 3) + k] = low, high


def lay_out(triangles: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Room for the trees of meshes of so many triangles, all boxes empty; and where their levels begin.

    The second array has a row for each mesh: the first node of each level, leaves first, and the number of levels.
    """
    table, nodes = np.zeros((len(triangles), LEVELS + 1), np.int64), 0
    for m, branches in enumerate(triangles):
        while branches > 1 or table[m, LEVELS] == 0:
            branches = -(-branches // WIDE)
            table[m, table[m, LEVELS]] = nodes
            table[m, LEVELS] += 1
            nodes += branches
    wide = on_lines((nodes, BOXES), np.float32)
    wide[:, : BOXES // 2], wide[:, BOXES // 2 :] = np.inf, -np.inf
    return wide, table


def on_lines(shape: tuple[int, int], kind: type) -> NDArray[Any]:
    """An array that begins with a line of the cache."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    room = np.zeros(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size].view(kind).reshape(shape)
