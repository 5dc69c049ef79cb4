"""A k-d tree over static boxes: each node splits its boxes into two halves along one of the world's axes.

Ref: Luaces 4.4.2, with 4.4.3 for the search. The cut goes through the median of the centres, across the longest side,
so that the tree is balanced however the boxes are strewn. A box that lies on both sides of the cut is not
divided: a node keeps two planes, where its lower half ends and where its upper half begins, and these may cross
(Waechter, Keller, Instant ray tracing: the bounding interval hierarchy, 2006).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, viewer
from plant.collision.broadphase.aabb import FURTHEST, overlaps, ray_meets, reciprocal

FEW = 4  # boxes of a leaf
LEAF = 3  # in place of an axis


class KdTree(NamedTuple):
    """Nodes, each followed by its lower half; and boxes in the order of the leaves."""

    axis: I1  # [n] 0, 1, 2 or LEAF
    ends: F1  # [n] where the lower half ends
    begins: F1  # [n] where the upper half begins
    upper: I1  # [n] node of the upper half; of a leaf, its first box
    held: I1  # [n] boxes of a leaf
    item: I1  # [m] number of the box, by leaves
    item_box: F2  # [m, 6]
    stack: I1  # [depth + 2] of a search
    reach: F2  # [depth + 2, 2] of a search along a ray


view_kdtree = viewer(KdTree)


def build_kdtree(boxes: np.ndarray) -> KdTree:
    """The k-d tree of boxes [m, 6] (low x, y, z, high x, y, z)."""
    boxes = np.ascontiguousarray(boxes, np.float64).reshape(-1, 6)
    centre = boxes[:, :3] + 0.5 * (boxes[:, 3:] - boxes[:, :3])
    axis: list[int] = []
    ends: list[float] = []
    begins: list[float] = []
    upper: list[int] = []
    held: list[int] = []
    items: list[np.ndarray] = []
    placed, deepest = 0, 0
    todo = [(np.arange(len(boxes)), -1, 0)] if len(boxes) else []
    while todo:
        inside, above, depth = todo.pop()
        deepest = max(deepest, depth)
        if above >= 0:
            upper[above] = len(axis)
        k = int(np.ptp(centre[inside], axis=0).argmax())
        half = len(inside) // 2
        if len(inside) <= FEW:
            axis.append(LEAF)
            ends.append(0.0)
            begins.append(0.0)
            upper.append(placed)
            held.append(len(inside))
            items.append(inside)
            placed += len(inside)
            continue
        inside = inside[np.argsort(centre[inside, k], kind="stable")]
        axis.append(k)
        ends.append(float(boxes[inside[:half], 3 + k].max()))
        begins.append(float(boxes[inside[half:], k].min()))
        upper.append(-1)
        held.append(0)
        todo.append((inside[half:], len(axis) - 1, depth + 1))
        todo.append((inside[:half], -1, depth + 1))
    item = np.concatenate(items) if items else np.zeros(0, np.int64)
    return KdTree(
        axis=np.array(axis, np.int64),
        ends=np.array(ends, np.float64),
        begins=np.array(begins, np.float64),
        upper=np.array(upper, np.int64),
        held=np.array(held, np.int64),
        item=item,
        item_box=boxes[item],
        stack=np.zeros(deepest + 2, np.int64),
        reach=np.zeros((deepest + 2, 2)),
    )


@kernel
def query_kdtree(tree, x0, y0, z0, x1, y1, z1, found):
    """List the boxes that overlap the given one; returns how many, also if some found no room in `found`."""
    count, depth, n = 0, 0, 0
    if tree.axis.size == 0:
        return 0
    while True:
        axis = tree.axis[n]
        if axis == LEAF:
            for m in range(tree.upper[n], tree.upper[n] + tree.held[n]):
                if overlaps(tree.item_box, m, x0, y0, z0, x1, y1, z1):
                    if count < found.size:
                        found[count] = tree.item[m]
                    count += 1
        else:
            low, high = (x0, x1) if axis == 0 else ((y0, y1) if axis == 1 else (z0, z1))
            in_lower, in_upper = low <= tree.ends[n], high >= tree.begins[n]
            if in_lower and in_upper:
                tree.stack[depth] = tree.upper[n]
                depth += 1
            if in_lower or in_upper:
                n = n + 1 if in_lower else tree.upper[n]
                continue
        if depth == 0:
            return count
        depth -= 1
        n = tree.stack[depth]


@inline
def _push(tree, depth, n, near, far):
    """Keep node `n` for later if the ray is in it at all."""
    if near > far:
        return depth
    tree.stack[depth], tree.reach[depth, 0], tree.reach[depth, 1] = n, near, far
    return depth + 1


@kernel
def ray_kdtree(tree, x, y, z, dx, dy, dz, far, found):
    """List the boxes that the ray from (x, y, z) along (dx, dy, dz) meets within `far` times that vector."""
    ix, iy, iz, far = reciprocal(dx), reciprocal(dy), reciprocal(dz), min(far, FURTHEST)
    count, depth = 0, 0
    if tree.axis.size > 0:
        depth = _push(tree, 0, 0, 0.0, far)
    while depth > 0:
        depth -= 1
        n, t0, t1 = tree.stack[depth], tree.reach[depth, 0], tree.reach[depth, 1]
        axis = tree.axis[n]
        if axis == LEAF:
            for m in range(tree.upper[n], tree.upper[n] + tree.held[n]):
                if ray_meets(tree.item_box, m, x, y, z, ix, iy, iz, far):
                    if count < found.size:
                        found[count] = tree.item[m]
                    count += 1
            continue
        o, i = (x, ix) if axis == 0 else ((y, iy) if axis == 1 else (z, iz))
        leaves_lower, enters_upper = (tree.ends[n] - o) * i, (tree.begins[n] - o) * i
        if i > 0.0:
            depth = _push(tree, depth, tree.upper[n], max(t0, enters_upper), t1)
            depth = _push(tree, depth, n + 1, t0, min(t1, leaves_lower))
        else:
            depth = _push(tree, depth, tree.upper[n], t0, min(t1, enters_upper))
            depth = _push(tree, depth, n + 1, max(t0, leaves_lower), t1)
    return count
