"""Convex hulls: vertices, edges and faces of all hulls in one set of arrays, for hill climbing and clipping.

A hull is built once from a cloud of points. Its corners and its edges serve to find the farthest vertex in a direction
(walking uphill from neighbour to neighbour, which on a convex body always ends at the top); its faces, with coplanar
triangles merged into polygons, serve to clip one face against another where two bodies rest on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from hilnode.core.struct import F2, I1, viewer

FLAT = 1e-9
"""A cloud thinner than this part of its length has no inside that rounding would leave."""

CORNERS = 1024
"""Corners of a hull that meets meshes or fields, at most: there each is told apart by its number."""

COPLANAR = 1e-8
"""Triangles whose corners lie this near to one plane, as a part of the hull's length, make one face."""


class Hulls(NamedTuple):
    """All hulls; vertices, faces and neighbours are numbered through, and `*_first` has one entry more than it counts.

    Vertices are measured from the middle of their hull's box, which is the origin of the shape's frame.
    """

    middle: F2  # [h, 3] middle of the box in the coordinates of the points given
    first: I1  # [h + 1] first vertex of each hull
    vertex: F2  # [v, 3]
    near_first: I1  # [v + 1] first entry in `near` of each vertex
    near: I1  # vertices at the other end of the edges that leave a vertex
    round_first: I1  # [v + 1] first entry in `round` of each vertex
    round: I1  # faces that meet in a vertex
    face_first: I1  # [h + 1] first face of each hull
    plane: F2  # [f, 4] outward unit normal and distance from the origin of the frame
    loop_first: I1  # [f + 1] first entry in `loop` of each face
    loop: I1  # vertices round each face, counter-clockwise seen from outside


view_hulls = viewer(Hulls)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Hull(NamedTuple):
    """One hull, numbered from 0."""

    middle: Floats
    vertex: Floats
    near: list[list[int]]
    round: list[list[int]]
    plane: Floats
    loop: list[list[int]]


def build_hulls(clouds: Sequence[NDArray[np.float64]]) -> Hulls:
    """The hulls of these clouds of points [n, 3], in this order; none is allowed.

    Raises ValueError if a cloud has no inside or is not finite.
    """
    hulls = [_build(np.asarray(points, np.float64), f"hull {i}") for i, points in enumerate(clouds)]
    vertices = _starts([len(h.vertex) for h in hulls])
    faces = _starts([len(h.plane) for h in hulls])
    near = [[v + vertices[i] for v in row] for i, h in enumerate(hulls) for row in h.near]
    around = [[f + faces[i] for f in row] for i, h in enumerate(hulls) for row in h.round]
    loops = [[v + vertices[i] for v in row] for i, h in enumerate(hulls) for row in h.loop]
    return Hulls(
        middle=np.array([h.middle for h in hulls]).reshape(-1, 3),
        first=vertices,
        vertex=np.concatenate([np.zeros((0, 3)), *(h.vertex for h in hulls)]),
        near_first=_starts([len(row) for row in near]),
        near=_flat(near),
        round_first=_starts([len(row) for row in around]),
        round=_flat(around),
        face_first=faces,
        plane=np.concatenate([np.zeros((0, 4)), *(h.plane for h in hulls)]),
        loop_first=_starts([len(row) for row in loops]),
        loop=_flat(loops),
    )


def hull_triangles(points: Floats, name: str = "hull") -> tuple[Floats, Ints]:
    """Corners [v, 3] of the hull of `points`, in their coordinates, and its triangles [t, 3], outward.

    Raises ValueError, beginning with `name`, if the points are not finite or have no inside.
    """
    _check(points, name)
    middle = 0.5 * (points.min(0) + points.max(0))
    _, size, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    if size[2] <= FLAT * size[0]:
        raise ValueError(f"{name}: {_flat_message(points)}")
    try:
        # Stretched to the same width in all directions, so that a needle is as good as a ball.
        made = ConvexHull((points - middle) @ axes.T / size)
    except QhullError as error:
        raise ValueError(f"{name}: {_flat_message(points)}") from error
    corners = np.sort(made.vertices)
    number = np.full(len(points), -1)
    number[corners] = np.arange(len(corners))
    vertex, triangle = points[corners], number[made.simplices]
    inward = np.einsum("ij,ij->i", _normals(vertex, triangle), vertex[triangle[:, 0]] - vertex.mean(0)) < 0
    triangle[inward] = triangle[inward][:, ::-1]
    return vertex, triangle.astype(np.int64)


def _build(points: Floats, name: str) -> _Hull:
    vertex, triangle = hull_triangles(points, name)
    middle = 0.5 * (vertex.min(0) + vertex.max(0))
    vertex = vertex - middle
    loops, normals = _merge(vertex, triangle)
    offset = (vertex @ normals.T).max(0)
    near: list[set[int]] = [set() for _ in vertex]
    for a, b, c in triangle.tolist():
        near[a] |= {b, c}
        near[b] |= {a, c}
        near[c] |= {a, b}
    around: list[list[int]] = [[] for _ in vertex]
    for face, loop in enumerate(loops):
        for v in loop:
            around[v].append(face)
    return _Hull(middle, vertex, [sorted(n) for n in near], around, np.column_stack([normals, offset]), loops)


def _check(points: Floats, name: str) -> None:
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"{name}: points must be an array [n, 3], not of shape {list(points.shape)}")
    bad = np.flatnonzero(~np.isfinite(points).all(1))
    if bad.size:
        raise ValueError(
            f"{name}: point {bad[0]} is {points[bad[0]].tolist()}; every coordinate must be finite: remove the point"
        )
    if len(points) < 4:
        raise ValueError(f"{name}: has {len(points)} point(s), but a solid needs 4 that are not in one plane: add some")


def _flat_message(points: Floats) -> str:
    return (
        f"its {len(points)} points lie in one plane, so it has no inside; give it thickness, or use a Mesh for a "
        "thin sheet"
    )


def _normals(vertex: Floats, triangle: Ints) -> Floats:
    a, b, c = (vertex[triangle[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _merge(vertex: Floats, triangle: Ints) -> tuple[list[list[int]], Floats]:
    """Faces: loops of vertices and their outward unit normals. Triangles grow into a face from the largest on."""
    normal = _normals(vertex, triangle)
    area = np.linalg.norm(normal, axis=1)
    normal = normal / np.maximum(area, np.finfo(float).tiny)[:, None]
    owner = {(t[k], t[k - 2]): i for i, t in enumerate(triangle.tolist()) for k in range(3)}
    slack = COPLANAR * float(np.ptp(vertex, axis=0).max())
    face_of = np.full(len(triangle), -1)
    loops: list[list[int]] = []
    normals: list[Floats] = []
    for seed in np.argsort(-area, kind="stable"):
        if face_of[seed] >= 0:
            continue
        group, todo = [int(seed)], [int(seed)]
        face_of[seed] = len(loops)
        base = vertex[triangle[seed, 0]]
        while todo:
            t = triangle[todo.pop()].tolist()
            for k in range(3):
                beside = owner[t[k - 2], t[k]]
                if face_of[beside] >= 0 or normal[beside] @ normal[seed] < 0.5:
                    continue
                if np.abs((vertex[triangle[beside]] - base) @ normal[seed]).max() <= slack:
                    face_of[beside] = len(loops)
                    group.append(beside)
                    todo.append(beside)
        for loop in _loops(triangle[group].tolist()):
            loops.append(loop)
            normals.append(normal[seed])
    return loops, np.array(normals)


def _loops(group: list[list[int]]) -> list[list[int]]:
    """The border of a group of triangles as one loop; if it is not one, the triangles themselves."""
    edges = {(t[k], t[k - 2]) for t in group for k in range(3)}
    after = {a: b for a, b in edges if (b, a) not in edges}
    begin = min(after)
    loop, at = [begin], after[begin]
    while at != begin and len(loop) <= len(after):
        loop.append(at)
        at = after.get(at, begin)
    inner = {v for t in group for v in t} - set(loop)
    return group if len(loop) != len(after) or inner else [loop]


def _starts(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _flat(rows: list[list[int]]) -> Ints:
    return np.array([x for row in rows for x in row], np.int64)
