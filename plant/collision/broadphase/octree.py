"""An octree over static boxes: a cell that holds many boxes is divided into eight equal ones.

Ref: Luaces 4.4.1, with 4.4.3 for the search. There a box that lies on both sides of a cut stays with the parent, and
every search that comes by must test it: along the first cut of a large scene these are many. Here only a box larger
than a child's cell stays; any other belongs to the child that holds its centre, and a cell is as large as what it
holds (Ulrich, Loose octrees, 2000). Empty cells are not stored. Regular cells suit scenes that are equally dense
everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import F2, I1, viewer
from plant.collision.broadphase.aabb import FURTHEST, overlaps, ray_meets, reciprocal

FEW = 6  # boxes that are not worth another cut
DEEPEST = 24  # cuts; after so many the boxes of a cell are in one place


class Octree(NamedTuple):
    """Cells, and boxes in the order of their cells."""

    box: F2  # [n, 6] around all that a cell and its children hold
    child: I1  # [n] first of its children, which follow each other
    children: I1  # [n] how many, 0 to 8
    first: I1  # [n] first of the boxes that stay in the cell itself
    own: I1  # [n] how many
    item: I1  # [m] number of the box, by cells
    item_box: F2  # [m, 6]
    stack: I1  # [n] of a search


view_octree = viewer(Octree)


def build_octree(boxes: np.ndarray) -> Octree:
    """The octree of boxes [m, 6] (low x, y, z, high x, y, z)."""
    boxes = np.ascontiguousarray(boxes, np.float64).reshape(-1, 6)
    centre, size = boxes[:, :3] + 0.5 * (boxes[:, 3:] - boxes[:, :3]), (boxes[:, 3:] - boxes[:, :3]).max(axis=1)
    held = [np.arange(len(boxes))] if len(boxes) else []  # what each cell and its children hold
    own, child, children = [], [], []
    low, high = (centre.min(axis=0), centre.max(axis=0)) if held else (np.zeros(3), np.zeros(3))
    cells = [(low + 0.5 * (high - low), 0.5 * float((high - low).max()), 0)] * len(held)  # middle, half length, depth
    n = 0
    while n < len(held):
        (middle, half, depth), inside = cells[n], held[n]
        child.append(len(held))
        stays = size[inside] > half
        if len(inside) <= FEW or depth == DEEPEST:
            stays[:] = True
        own.append(inside[stays])
        down = inside[~stays]
        octant = (centre[down] >= middle) @ np.array([1, 2, 4])
        for o in np.unique(octant):
            side = np.where(o & np.array([1, 2, 4]), 0.5 * half, -0.5 * half)
            held.append(down[octant == o])
            cells.append((middle + side, 0.5 * half, depth + 1))
        children.append(len(held) - child[-1])
        n += 1
    item = np.concatenate(own) if own else np.zeros(0, np.int64)
    counts = np.array([len(o) for o in own], np.int64)
    around = [np.concatenate((boxes[h, :3].min(axis=0), boxes[h, 3:].max(axis=0))) for h in held]
    return Octree(
        box=np.array(around).reshape(-1, 6),
        child=np.array(child, np.int64),
        children=np.array(children, np.int64),
        first=np.cumsum(counts) - counts,
        own=counts,
        item=item,
        item_box=boxes[item],
        stack=np.zeros(len(held) + 1, np.int64),
    )


@kernel
def query_octree(tree, x0, y0, z0, x1, y1, z1, found):
    """List the boxes that overlap the given one; returns how many, also if some found no room in `found`."""
    count, depth = 0, 0
    if tree.own.size > 0 and overlaps(tree.box, 0, x0, y0, z0, x1, y1, z1):
        tree.stack[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        n = tree.stack[depth]
        for m in range(tree.first[n], tree.first[n] + tree.own[n]):
            if overlaps(tree.item_box, m, x0, y0, z0, x1, y1, z1):
                if count < found.size:
                    found[count] = tree.item[m]
                count += 1
        for c in range(tree.child[n], tree.child[n] + tree.children[n]):
            if overlaps(tree.box, c, x0, y0, z0, x1, y1, z1):
                tree.stack[depth] = c
                depth += 1
    return count


@kernel
def ray_octree(tree, x, y, z, dx, dy, dz, far, found):
    """List the boxes that the ray from (x, y, z) along (dx, dy, dz) meets within `far` times that vector."""
    ix, iy, iz, far = reciprocal(dx), reciprocal(dy), reciprocal(dz), min(far, FURTHEST)
    count, depth = 0, 0
    if tree.own.size > 0 and ray_meets(tree.box, 0, x, y, z, ix, iy, iz, far):
        tree.stack[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        n = tree.stack[depth]
        for m in range(tree.first[n], tree.first[n] + tree.own[n]):
            if ray_meets(tree.item_box, m, x, y, z, ix, iy, iz, far):
                if count < found.size:
                    found[count] = tree.item[m]
                count += 1
        for c in range(tree.child[n], tree.child[n] + tree.children[n]):
            if ray_meets(tree.box, c, x, y, z, ix, iy, iz, far):
                tree.stack[depth] = c
                depth += 1
    return count
