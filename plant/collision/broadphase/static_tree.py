"""Static shapes (the scenery) in a tree that is chosen by name.

    tree        the default: the tree of the moving shapes, built once. The fastest by box, and to build by far
    octree      up to a quarter faster along a ray, while there are not more than some 10,000 boxes
    kdtree      never deeper than the logarithm of the number of boxes, however they lie

Measured by tools/bench_broadphase.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import I1, Struct, viewer
from plant.collision.broadphase.dynamic_tree import NONE, Tree, new_tree, query_box, query_ray, rebuild, view_tree
from plant.collision.broadphase.kdtree import KdTree, build_kdtree, query_kdtree, ray_kdtree
from plant.collision.broadphase.octree import Octree, build_octree, query_octree, ray_octree

METHODS = ("tree", "octree", "kdtree")
OCTREE, KDTREE = METHODS.index("octree"), METHODS.index("kdtree")


class Scenery(NamedTuple):
    """One of three trees; the other two are empty."""

    method: int  # place in METHODS
    kdtree: KdTree
    octree: Octree
    tree: Tree
    shape: I1  # [m] shape of each box


view_scenery = viewer(Scenery)


@kernel
def _rebuild_at(address):
    rebuild(view_tree(address))


def build_tree(boxes: np.ndarray) -> Tree:
    """The dynamic tree over boxes [m, 6], all in it."""
    boxes = np.ascontiguousarray(boxes, np.float64).reshape(-1, 6)
    tree = new_tree(len(boxes))
    tree.box[: len(boxes)], tree.up[: len(boxes)] = boxes, NONE
    struct = Struct(tree)
    _rebuild_at(struct.address)
    return tree


def build_scenery(boxes: np.ndarray, shape: np.ndarray, method: str = "tree") -> Scenery:
    """Scenery of boxes [m, 6], one for each number in `shape`."""
    if method not in METHODS:
        raise ValueError(f"scenery by {method!r}: there are {', '.join(METHODS)}")
    none = np.zeros((0, 6))
    return Scenery(
        METHODS.index(method),
        build_kdtree(boxes if method == "kdtree" else none),
        build_octree(boxes if method == "octree" else none),
        build_tree(boxes if method == "tree" else none),
        np.ascontiguousarray(shape, np.int64),
    )


@kernel
def query_scenery(scenery, x0, y0, z0, x1, y1, z1, found):
    """List the boxes, not shapes, that overlap the given one; returns how many, also if `found` is too short."""
    if scenery.method == KDTREE:
        return query_kdtree(scenery.kdtree, x0, y0, z0, x1, y1, z1, found)
    if scenery.method == OCTREE:
        return query_octree(scenery.octree, x0, y0, z0, x1, y1, z1, found)
    return query_box(scenery.tree, x0, y0, z0, x1, y1, z1, found)


@kernel
def ray_scenery(scenery, x, y, z, dx, dy, dz, far, found):
    """List the boxes, not shapes, that the ray meets within `far` times (dx, dy, dz); returns how many."""
    if scenery.method == KDTREE:
        return ray_kdtree(scenery.kdtree, x, y, z, dx, dy, dz, far, found)
    if scenery.method == OCTREE:
        return ray_octree(scenery.octree, x, y, z, dx, dy, dz, far, found)
    return query_ray(scenery.tree, x, y, z, dx, dy, dz, far, found)
