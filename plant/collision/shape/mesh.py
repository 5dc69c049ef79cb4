"""Triangle meshes: their arrays, the adjacency of triangles, and a BVH over them.

A mesh is a surface with an outside: its triangles run anticlockwise seen from there. The boxes of the tree are
parallel to the axes of the mesh, so they turn with it and never change while it is rigid (Luaces 4.6.1 calls
this an OBB tree). A split goes across the axis of the largest scatter of the barycentres (Luaces 4.25), near the
median, which keeps the tree balanced: its depth is the logarithm of the number of triangles, whatever the mesh is like.
Near, because a split cuts off whole branches of the wide tree (bvh8.py), which has no form of its own: it is made of
runs of 8, 64, 512 ... triangles.

Nodes lie in the order of a walk down the left side first, each with the number of the node that follows its branch:
a search needs no stack. Triangles lie in the order of the leaves; `number` says which one of the given list
each is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F2, I1, I2, Struct, viewer
from plant.collision.shape.bvh8 import MOST, WIDE, NarrowF2, NarrowI2, lay_out, on_lines, refit_wide
from plant.collision.shape.polyhedron import SLIVER
from plant.collision.shape.triangle import bend
from plant.collision.vec3 import cross, dot, sub, unit

LEAF = 4  # triangles in a leaf, at most
FLAT = 1e-6  # sine of the angle up to which two triangles are one face
RIDGE, PLAIN, HOLLOW, BORDER = 1, 0, -1, 2

SKIP_TO = 0  # the node that follows this one's branch
FIRST = 1  # first triangle of a leaf
COUNT = 2  # triangles of a leaf; 0 = not a leaf
RIGHT = 3  # the right branch; the left one is the next node


class Meshes(NamedTuple):
    """All meshes of a world, one after the other."""

    vertex: F2  # [v, 3] in the mesh's frame
    outward: F2  # [v, 3] unit normal at a vertex: mean of its faces', weighted by their angle there
    rim: I1  # [v] 1 = on the border of an open mesh
    triangle: I2  # [t, 3] numbers of vertices
    normal: F2  # [t, 3] unit, outward
    neighbour: I2  # [t, 3] triangle across the edge from corner k to k + 1; -1 = none
    across: I2  # [t, 3] that triangle's third vertex; -1 = none
    edge: I2  # [t, 3] RIDGE, PLAIN, HOLLOW or BORDER
    number: I1  # [t] its place in the list that was given
    box: F2  # [n, 6] low and high of a node
    link: I2  # [n, 4] SKIP_TO, FIRST, COUNT, RIGHT of a node, side by side in one line of the cache
    parent: I1  # [n] -1 = root
    wide: NarrowF2  # [w, 48] nodes of the wide tree: low x of eight branches, low y, low z, high x, high y, high z
    wide_level: I2  # [m, LEVELS + 1] the first node of each level of a mesh, leaves first; the number of levels
    row: NarrowI2  # [t, 6] numbers of the corners, and of the vertices across; -1 = none
    first_vertex: I1  # [m + 1]
    first_triangle: I1  # [m + 1]
    first_node: I1  # [m + 1]
    closed: I1  # [m] 1 = without a border, so that it has an inside


view_meshes = viewer(Meshes)


class MeshError(ValueError):
    """A mesh that cannot be used."""


@inline
def corner(mesh, t, k):
    """Corner `k` of triangle `t`."""
    v = mesh.triangle[t, k]
    return mesh.vertex[v, 0], mesh.vertex[v, 1], mesh.vertex[v, 2]


@inline
def at(mesh, v):
    """The vertex `v`."""
    return mesh.vertex[v, 0], mesh.vertex[v, 1], mesh.vertex[v, 2]


@inline
def face(mesh, t):
    """The normal of triangle `t`."""
    return mesh.normal[t, 0], mesh.normal[t, 1], mesh.normal[t, 2]


@inline
def gap(mesh, node, p):
    """Square of the distance from `p` to a node's box."""
    b = mesh.box[node]
    x = max(b[0] - p[0], 0.0, p[0] - b[3])
    y = max(b[1] - p[1], 0.0, p[1] - b[4])
    z = max(b[2] - p[2], 0.0, p[2] - b[5])
    return x * x + y * y + z * z


@inline
def meets(mesh, node, low, high):
    """Whether a node's box and the box from `low` to `high` have a point in common."""
    b = mesh.box[node]
    return (
        b[0] <= high[0] and b[3] >= low[0] and b[1] <= high[1] and b[4] >= low[1] and b[2] <= high[2] and b[5] >= low[2]
    )


@kernel
def refit(mesh, m):
    """Boxes, normals and kinds of edges of mesh `m` after its vertices have moved; the tree keeps its form."""
    refit_faces(mesh, mesh.first_triangle[m], mesh.first_triangle[m + 1])
    refit_vertices(mesh, m)
    refit_boxes(mesh, mesh.first_node[m], mesh.first_node[m + 1])
    refit_wide(mesh, m)


@kernel
def refit_faces(mesh, begin, end):
    """Normals of triangles and the kinds of their edges."""
    for t in range(begin, end):
        a, b, c = corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2)
        mesh.normal[t, 0], mesh.normal[t, 1], mesh.normal[t, 2] = unit(cross(sub(b, a), sub(c, a)))
        for k in range(3):
            v = mesh.across[t, k]
            if v < 0:
                mesh.edge[t, k] = BORDER
                continue
            sine = bend(corner(mesh, t, k), corner(mesh, t, (k + 1) % 3), corner(mesh, t, (k + 2) % 3), at(mesh, v))
            mesh.edge[t, k] = RIDGE if sine < -FLAT else HOLLOW if sine > FLAT else PLAIN


@kernel
def refit_vertices(mesh, m):
    """Normals at the vertices, and which of them lie on the border."""
    outward, rim = mesh.outward, mesh.rim
    for v in range(mesh.first_vertex[m], mesh.first_vertex[m + 1]):
        outward[v, 0] = outward[v, 1] = outward[v, 2] = 0.0
        rim[v] = 0
    for t in range(mesh.first_triangle[m], mesh.first_triangle[m + 1]):
        for k in range(3):
            v, a = mesh.triangle[t, k], corner(mesh, t, k)
            e, f = sub(corner(mesh, t, (k + 1) % 3), a), sub(corner(mesh, t, (k + 2) % 3), a)
            cosine = dot(e, f) / np.sqrt(dot(e, e) * dot(f, f) + 1e-300)
            angle = np.arccos(min(max(cosine, -1.0), 1.0))
            for i in range(3):
                outward[v, i] += angle * mesh.normal[t, i]
            if mesh.neighbour[t, k] < 0:
                rim[v] = 1
                rim[mesh.triangle[t, (k + 1) % 3]] = 1
    for v in range(mesh.first_vertex[m], mesh.first_vertex[m + 1]):
        outward[v, 0], outward[v, 1], outward[v, 2] = unit((outward[v, 0], outward[v, 1], outward[v, 2]))


@kernel
def refit_boxes(mesh, begin, end):
    """The boxes of the nodes, from the leaves up."""
    box = mesh.box
    for node in range(end - 1, begin - 1, -1):
        if mesh.link[node, COUNT] == 0:
            left, right = node + 1, mesh.link[node, RIGHT]
            for i in range(3):
                box[node, i] = min(box[left, i], box[right, i])
                box[node, 3 + i] = max(box[left, 3 + i], box[right, 3 + i])
            continue
        for i in range(3):
            box[node, i], box[node, 3 + i] = np.inf, -np.inf
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            for k in range(3):
                for i in range(3):
                    x = mesh.vertex[mesh.triangle[t, k], i]
                    box[node, i], box[node, 3 + i] = min(box[node, i], x), max(box[node, 3 + i], x)


@kernel
def _scatter_axis(centre, order, begin, end):
    """The axis along which the barycentres of order[begin:end] scatter most."""
    best, axis = -1.0, 0
    for i in range(3):
        mean = 0.0
        for k in range(begin, end):
            mean += centre[order[k], i]
        mean /= end - begin
        total = 0.0
        for k in range(begin, end):
            total += (centre[order[k], i] - mean) ** 2
        if total > best:
            best, axis = total, i
    return axis


@kernel
def _part(centre, order, begin, end, middle, axis):
    """Reorder order[begin:end] so that no barycentre before `middle` lies beyond one after it (quickselect)."""
    low, high = begin, end - 1
    while low < high:
        pivot = centre[order[(low + high) // 2], axis]
        i, j = low, high
        while i <= j:
            while centre[order[i], axis] < pivot:
                i += 1
            while centre[order[j], axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@inline
def _left(n):
    """How many of `n` triangles go to the left: about half, and as many full branches of the wide tree."""
    if n <= WIDE:
        return (n + 1) // 2
    branch = WIDE
    while WIDE * branch < n:
        branch *= WIDE
    return (((n + branch - 1) // branch + 1) // 2) * branch


@kernel
def _grow(centre, order, right, parent, first, count, stack, state, work):
    """Split nodes off the stack until `work` triangles have been looked at; state: depth of the stack, nodes made."""
    depth, made = state[0], state[1]
    while depth > 0 and work > 0:
        depth -= 1
        begin, end, above, is_right = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        node = made
        made += 1
        parent[node], right[node] = above, -1
        if is_right == 1:
            right[above] = node
        if end - begin <= LEAF:
            first[node], count[node] = begin, end - begin
            continue
        first[node], count[node] = begin, 0
        middle = begin + _left(end - begin)
        _part(centre, order, begin, end, middle, _scatter_axis(centre, order, begin, end))
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = middle, end, node, 1
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2], stack[depth + 1, 3] = begin, middle, node, 0
        depth += 2
        work -= end - begin
    state[0], state[1] = depth, made


@kernel
def _skips(skip, right, count):
    for node in range(skip.size - 1, -1, -1):
        skip[node] = node + 1 if count[node] > 0 else skip[right[node]]


@kernel
def _join(order, key, triangle, neighbour, across):
    """Make neighbours of the two owners of each edge that has exactly two, which run along it in opposite ways."""
    n = order.size
    k = 0
    while k < n:
        end = k + 1
        while end < n and key[order[end]] == key[order[k]]:
            end += 1
        if end == k + 2:
            t, i = order[k] // 3, order[k] % 3
            u, j = order[k + 1] // 3, order[k + 1] % 3
            if triangle[t, i] == triangle[u, (j + 1) % 3] and triangle[t, (i + 1) % 3] == triangle[u, j]:
                neighbour[t, i], neighbour[u, j] = u, t
                across[t, i], across[u, j] = triangle[u, (j + 2) % 3], triangle[t, (i + 2) % 3]
        k = end


def _some(bad: Any) -> str:
    """The first few of the numbers of what is bad."""
    numbers = np.flatnonzero(bad)
    return ", ".join(str(n) for n in numbers[:10]) + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")


def _checked(name: str, vertices: Any, triangles: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mesh as arrays, or a MeshError that says which vertex or triangle is wrong."""
    vertex, triangle = np.asarray(vertices, np.float64), np.asarray(triangles)
    if vertex.ndim != 2 or vertex.shape[1] != 3:
        raise MeshError(f"{name}: vertices must be an array of n x 3, not {vertex.shape}")
    if triangle.ndim != 2 or triangle.shape[1] != 3 or triangle.dtype.kind not in "iu" or not len(triangle):
        raise MeshError(f"{name}: triangles must be an array of whole numbers, n x 3 with n > 0, not {triangle.shape}")
    if len(triangle) > MOST:
        raise MeshError(f"{name}: {len(triangle)} triangles; cut it into meshes of {MOST} at most")
    triangle = triangle.astype(np.int64)
    if (bad := ~np.isfinite(vertex).all(axis=1)).any():
        raise MeshError(f"{name}: not a finite number in vertex {_some(bad)}")
    if (bad := ((triangle < 0) | (triangle >= len(vertex))).any(axis=1)).any():
        raise MeshError(f"{name}: there are vertices 0 to {len(vertex) - 1}; another is named by triangle {_some(bad)}")
    sides = vertex[np.roll(triangle, -1, axis=1)] - vertex[triangle]
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    if (bad := area <= SLIVER * (sides**2).sum(axis=2).max(axis=1)).any():
        raise MeshError(f"{name}: no area, so no normal: triangle {_some(bad)}; take them out or merge their vertices")
    return vertex, triangle


def _no_progress(_mesh: int, _done: float) -> None:
    """The default of `say`: progress is not reported."""


def _tree(vertex: np.ndarray, triangle: np.ndarray, say: Callable[[float], None]) -> tuple[np.ndarray, ...]:
    """The order of the triangles in the leaves, and skip, right, parent, first, count of the nodes."""
    n = len(triangle)
    centre, order = vertex[triangle].mean(axis=1), np.arange(n)
    right, parent, first, count = (np.zeros(2 * n, np.int64) for _ in range(4))
    stack = np.zeros((128, 4), np.int64)
    stack[0] = 0, n, -1, 0
    state = np.array([1, 0], np.int64)
    while state[0]:
        _grow(centre, order, right, parent, first, count, stack, state, 4_000_000)
        say(1.0 - stack[: state[0], 1].max(initial=0) / n if state[0] else 1.0)
    nodes = int(state[1])
    right, parent, first, count = (a[:nodes].copy() for a in (right, parent, first, count))
    skip = np.zeros(nodes, np.int64)
    _skips(skip, right, count)
    return order, skip, right, parent, first, count


@kernel
def _refit_at(address, m):
    refit(view_meshes(address), m)


def build_meshes(
    meshes: Sequence[tuple[Any, Any]],
    say: Callable[[int, float], None] | None = None,
    names: Sequence[str] | None = None,
) -> Meshes:
    """Check meshes, each (vertices [v, 3] in its own frame [m], triangles [t, 3]), and build their trees.

    `say(mesh, done)` is told how much of which tree is done (0 to 1); `names` are for messages. Raises MeshError for a
    mesh without triangles, with numbers that are not finite, with vertices that are not there or triangles without
    area. An edge that not exactly two triangles share, running along it in opposite ways, counts as a border.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    begin = np.zeros((len(meshes) + 1, 3), np.int64)
    closed = []
    for m, (vertices, triangles) in enumerate(meshes):
        vertex, triangle = _checked(names[m] if names else f"mesh {m}", vertices, triangles)
        order, skip, right, parent, first, count = _tree(vertex, triangle, partial(say or _no_progress, m))
        triangle = np.ascontiguousarray(triangle[order])
        neighbour, across = np.full_like(triangle, -1), np.full_like(triangle, -1)
        low = np.minimum(triangle, np.roll(triangle, -1, axis=1)).ravel()
        high = np.maximum(triangle, np.roll(triangle, -1, axis=1)).ravel()
        key = low * len(vertex) + high
        _join(np.argsort(key, kind="stable"), key, triangle, neighbour, across)
        closed.append(int((neighbour >= 0).all()))
        v, t, n = begin[m]
        parts.append(
            (
                vertex,
                triangle + v,
                np.where(neighbour < 0, -1, neighbour + t),
                np.where(across < 0, -1, across + v),
                order,
                np.stack([skip + n, first + t, count, np.where(right < 0, -1, right + n)], axis=1),
                np.where(parent < 0, -1, parent + n),
            )
        )
        begin[m + 1] = v + len(vertex), t + len(triangle), n + len(skip)
    if not parts:
        parts = [(np.zeros((0, 3)), *(np.zeros((0, 3), np.int64),) * 3)]
        parts[0] += np.zeros(0, np.int64), np.zeros((0, 4), np.int64), np.zeros(0, np.int64)
    vertex, triangle, neighbour, across, number, link, parent = (np.concatenate(p) for p in zip(*parts, strict=True))
    wide, wide_level = lay_out(np.diff(begin[:, 1]).tolist())
    row = on_lines((len(triangle), 6), np.int32)
    row[:, :3], row[:, 3:] = triangle, across
    made = Meshes(
        vertex=vertex,
        outward=np.zeros_like(vertex),
        rim=np.zeros(len(vertex), np.int64),
        triangle=triangle,
        normal=np.zeros((len(triangle), 3)),
        neighbour=neighbour,
        across=across,
        edge=np.zeros_like(triangle),
        number=number,
        box=np.zeros((len(link), 6)),
        link=link,
        parent=parent,
        wide=wide,
        wide_level=wide_level,
        row=row,
        first_vertex=begin[:, 0].copy(),
        first_triangle=begin[:, 1].copy(),
        first_node=begin[:, 2].copy(),
        closed=np.array(closed, np.int64),
    )
    struct = Struct(made)
    for m in range(len(meshes)):
        _refit_at(struct.address, m)
    return made
