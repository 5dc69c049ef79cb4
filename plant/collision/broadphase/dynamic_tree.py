"""A dynamic BVH: leaves are inserted, removed and moved while it runs, in preallocated arrays.

Leaf k is node k, so a leaf needs no handle; inner nodes are leaves .. 2 leaves - 1, those not in use in a list. A new
leaf goes down to where it makes the sum of all surfaces grow least, and on the way back up each node may swap a child
with a grandchild if that makes the surfaces smaller. When most leaves move at once, building the tree anew from the
top, halving space, is cheaper than moving them one by one.

The stack of a search has room for as many nodes as there are leaves, so it cannot overflow, however odd the tree. Equal
costs are decided by height, so that many boxes in one place do not make a list.

Ref: Goldsmith, Salmon, Automatic creation of object hierarchies for ray tracing (1987): insertion by surface;
Kensler, Tree rotations for improving bounding volume hierarchies (2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F2, I1, I2, viewer
from plant.collision.broadphase.aabb import FURTHEST, area, join, joint_area, overlaps, ray_meets, reciprocal

NONE, ABSENT = -1, -2
ROOT, FREE_LIST = 0, 1  # places in Tree.state


class Tree(NamedTuple):
    """Nodes: first the leaves, then inner nodes."""

    box: F2  # [n, 6] low x, y, z, high x, y, z
    up: I1  # [n] parent; NONE of the root, ABSENT of a leaf that is not in the tree; the next one of a free node
    left: I1  # [n] NONE of a leaf
    right: I1
    height: I1  # [n] 0 of a leaf
    state: I1  # [2] the root, the first free inner node
    order: I1  # [leaves] of a rebuild
    stack: I1  # [leaves + 1] of a search
    work: I2  # [leaves + 1, 4] of a rebuild: first, last, parent, side


view_tree = viewer(Tree)


def new_tree(leaves: int) -> Tree:
    """An empty tree with room for so many leaves."""
    nodes = max(2 * leaves, 1)
    tree = Tree(
        box=np.zeros((nodes, 6)),
        up=np.full(nodes, ABSENT),
        left=np.full(nodes, NONE),
        right=np.full(nodes, NONE),
        height=np.zeros(nodes, np.int64),
        state=np.array([NONE, NONE]),
        order=np.zeros(leaves, np.int64),
        stack=np.zeros(leaves + 1, np.int64),
        work=np.zeros((leaves + 1, 4), np.int64),
    )
    for n in range(leaves, nodes):
        tree.up[n] = n + 1 if n + 1 < nodes else NONE
    if leaves:
        tree.state[FREE_LIST] = leaves
    return tree


@inline
def _refit(tree, n):
    """Box and height of an inner node from its children."""
    join(tree.box, n, tree.left[n], tree.right[n])
    tree.height[n] = 1 + max(tree.height[tree.left[n]], tree.height[tree.right[n]])


@inline
def _swap(tree, n, uncle, child, grandchild):
    """Exchange `uncle`, a child of `n`, and `grandchild`, a child of the other child `child`."""
    if tree.left[n] == uncle:
        tree.left[n] = grandchild
    else:
        tree.right[n] = grandchild
    if tree.left[child] == grandchild:
        tree.left[child] = uncle
    else:
        tree.right[child] = uncle
    tree.up[grandchild], tree.up[uncle] = n, child
    _refit(tree, child)


@inline
def _rotate(tree, n):
    """Swap the child and grandchild of `n` that make its inner surfaces least, if any do."""
    left, right, box = tree.left, tree.right, tree.box
    a, b = left[n], right[n]
    gain, uncle, child, grandchild = 0.0, NONE, NONE, NONE
    if left[a] != NONE:
        now = area(box, a)
        g = now - joint_area(box, b, right[a])
        if g > gain:
            gain, uncle, child, grandchild = g, b, a, left[a]
        g = now - joint_area(box, b, left[a])
        if g > gain:
            gain, uncle, child, grandchild = g, b, a, right[a]
    if left[b] != NONE:
        now = area(box, b)
        g = now - joint_area(box, a, right[b])
        if g > gain:
            gain, uncle, child, grandchild = g, a, b, left[b]
        g = now - joint_area(box, a, left[b])
        if g > gain:
            gain, uncle, child, grandchild = g, a, b, right[b]
    if uncle != NONE:
        _swap(tree, n, uncle, child, grandchild)


@inline
def _best_sibling(tree, k):
    """Where leaf `k` makes the sum of surfaces grow least, going down greedily."""
    box, left, right, height = tree.box, tree.left, tree.right, tree.height
    n = tree.state[ROOT]
    while left[n] != NONE:
        a, b = left[n], right[n]
        joined = joint_area(box, n, k)
        passed_on = joined - area(box, n)
        cost_a, cost_b = passed_on + joint_area(box, a, k), passed_on + joint_area(box, b, k)
        if left[a] != NONE:
            cost_a -= area(box, a)
        if left[b] != NONE:
            cost_b -= area(box, b)
        if joined < cost_a and joined < cost_b:
            break
        n = a if cost_a < cost_b or (cost_a == cost_b and height[a] <= height[b]) else b
    return n


@kernel
def insert_leaf(tree, k):
    """Put leaf `k` into the tree, with the box that stands in its row."""
    up, left, right, state = tree.up, tree.left, tree.right, tree.state
    if state[ROOT] == NONE:
        state[ROOT], up[k] = k, NONE
        return
    sibling = _best_sibling(tree, k)
    n = state[FREE_LIST]
    state[FREE_LIST] = up[n]
    above = up[sibling]
    up[n], left[n], right[n] = above, sibling, k
    up[sibling] = up[k] = n
    if above == NONE:
        state[ROOT] = n
    elif left[above] == sibling:
        left[above] = n
    else:
        right[above] = n
    while n != NONE:
        _refit(tree, n)
        _rotate(tree, n)
        tree.height[n] = 1 + max(tree.height[left[n]], tree.height[right[n]])
        n = up[n]


@kernel
def remove_leaf(tree, k):
    """Take leaf `k` out; its sibling takes the place of their parent."""
    up, left, right, state = tree.up, tree.left, tree.right, tree.state
    n = up[k]
    up[k] = ABSENT
    if n == NONE:
        state[ROOT] = NONE
        return
    sibling, above = left[n] + right[n] - k, up[n]
    up[sibling] = above
    if above == NONE:
        state[ROOT] = sibling
    elif left[above] == n:
        left[above] = sibling
    else:
        right[above] = sibling
    up[n], state[FREE_LIST] = state[FREE_LIST], n
    while above != NONE:
        _refit(tree, above)
        above = up[above]


@kernel
def _split(tree, first, last):
    """Part order[first:last] at the middle of the longest side of the centres' box; where the second half begins."""
    box, order = tree.box, tree.order
    x0 = y0 = z0 = np.inf
    x1 = y1 = z1 = -np.inf
    for m in range(first, last):
        k = order[m]
        x, y, z = box[k, 0] + box[k, 3], box[k, 1] + box[k, 4], box[k, 2] + box[k, 5]
        x0, y0, z0 = min(x0, x), min(y0, y), min(z0, z)
        x1, y1, z1 = max(x1, x), max(y1, y), max(z1, z)
    x1, y1, z1 = x1 - x0, y1 - y0, z1 - z0
    axis, middle = 0, x0 + 0.5 * x1
    if y1 > x1 and y1 >= z1:
        axis, middle = 1, y0 + 0.5 * y1
    elif z1 > x1:
        axis, middle = 2, z0 + 0.5 * z1
    a, b = first, last - 1
    while a <= b:
        k = order[a]
        if box[k, axis] + box[k, axis + 3] < middle:
            a += 1
        else:
            order[a], order[b] = order[b], k
            b -= 1
    return a if first < a < last else (first + last) >> 1


@kernel
def rebuild(tree):
    """Build the tree anew over the leaves that are in it, from the top down."""
    up, left, right, work, order = tree.up, tree.left, tree.right, tree.work, tree.order
    leaves, count = order.size, 0
    for k in range(leaves):
        if up[k] != ABSENT:
            order[count] = k
            count += 1
    tree.state[ROOT] = NONE
    node, depth = leaves, 0
    if count > 0:
        work[0, 0], work[0, 1], work[0, 2], work[0, 3] = 0, count, NONE, 0
        depth = 1
    while depth > 0:
        depth -= 1
        first, last, above, side = work[depth, 0], work[depth, 1], work[depth, 2], work[depth, 3]
        if last - first == 1:
            n = order[first]
        else:
            n, node = node, node + 1
            middle = _split(tree, first, last)
            work[depth, 0], work[depth, 1], work[depth, 2], work[depth, 3] = middle, last, n, 1
            depth += 1
            work[depth, 0], work[depth, 1], work[depth, 2], work[depth, 3] = first, middle, n, 0
            depth += 1
        up[n] = above
        if above == NONE:
            tree.state[ROOT] = n
        elif side == 0:
            left[above] = n
        else:
            right[above] = n
    for n in range(node - 1, leaves - 1, -1):  # parents were numbered before their children
        _refit(tree, n)
    tree.state[FREE_LIST] = NONE
    for n in range(up.size - 1, node - 1, -1):
        up[n], tree.state[FREE_LIST] = tree.state[FREE_LIST], n


@kernel
def query_box(tree, x0, y0, z0, x1, y1, z1, found):
    """List the leaves that overlap the box; returns how many, also if some found no room in `found`."""
    box, left, right, stack = tree.box, tree.left, tree.right, tree.stack
    count, depth, n = 0, 0, tree.state[ROOT]
    if n == NONE or not overlaps(box, n, x0, y0, z0, x1, y1, z1):
        return 0
    while True:
        a, b = left[n], right[n]
        if a == NONE:
            if count < found.size:
                found[count] = n
            count += 1
        else:
            in_a, in_b = overlaps(box, a, x0, y0, z0, x1, y1, z1), overlaps(box, b, x0, y0, z0, x1, y1, z1)
            if in_a and in_b:
                stack[depth] = b
                depth += 1
            if in_a or in_b:
                n = a if in_a else b
                continue
        if depth == 0:
            return count
        depth -= 1
        n = stack[depth]


@kernel
def query_ray(tree, x, y, z, dx, dy, dz, far, found):
    """List the leaves whose box the ray from (x, y, z) along (dx, dy, dz) meets within `far` times that vector."""
    box, left, right, stack = tree.box, tree.left, tree.right, tree.stack
    ix, iy, iz, far = reciprocal(dx), reciprocal(dy), reciprocal(dz), min(far, FURTHEST)
    count, depth, n = 0, 0, tree.state[ROOT]
    if n == NONE or not ray_meets(box, n, x, y, z, ix, iy, iz, far):
        return 0
    while True:
        a, b = left[n], right[n]
        if a == NONE:
            if count < found.size:
                found[count] = n
            count += 1
        else:
            in_a, in_b = ray_meets(box, a, x, y, z, ix, iy, iz, far), ray_meets(box, b, x, y, z, ix, iy, iz, far)
            if in_a and in_b:
                stack[depth] = b
                depth += 1
            if in_a or in_b:
                n = a if in_a else b
                continue
        if depth == 0:
            return count
        depth -= 1
        n = stack[depth]
