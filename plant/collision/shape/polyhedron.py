"""Closed triangle surfaces: faults that make one unsound, and volume integrals of the solid inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLIVER = 1e-10
"""A triangle with a smaller double area than this part of the square of its longest edge has no direction to face."""


def solid_integrals(vertices: Floats, triangles: Ints) -> tuple[float, Floats, Floats]:
    """Volume, its centre [3], and the integrals of x x' [3, 3] about that centre, of the solid inside the triangles.

    Exact: each triangle makes a tetrahedron with a point in the middle, whose integrals are polynomials in its corners.
    """
    middle = 0.5 * (vertices.min(0) + vertices.max(0))
    a, b, c = (vertices[triangles[:, k]] - middle for k in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    volume = float(six.sum()) / 6.0
    total = a + b + c
    centre = (six @ total) / (24.0 * volume) if volume != 0.0 else np.zeros(3)
    second = sum((p * six[:, None]).T @ p for p in (a, b, c, total)) / 120.0
    return volume, middle + centre, second - volume * np.outer(centre, centre)


def find_fault(vertices: Floats, triangles: Ints, closed: bool) -> str:
    """What is wrong with a surface, with the number of the first bad triangle and the fix; empty if it is sound.

    Triangles that share an edge must run along it in opposite ways, and what is closed must face outwards. A `closed`
    surface must have no open edges at all.
    """
    if len(triangles) == 0 or len(vertices) == 0:
        return "it has no triangles; export the surface, not only points or curves"
    bad = np.flatnonzero(~np.isfinite(vertices).all(1))
    if bad.size:
        user = np.flatnonzero((triangles == bad[0]).any(1))
        where = f"triangle {user[0]}: " if user.size else ""
        return (
            f"{where}vertex {bad[0]} is {vertices[bad[0]].tolist()}; every coordinate must be finite: export it again"
        )
    bad = np.flatnonzero(((triangles < 0) | (triangles >= len(vertices))).any(1))
    if bad.size:
        return f"triangle {bad[0]} names vertices {triangles[bad[0]].tolist()}, but there are 0 to {len(vertices) - 1}"
    bad = _slivers(vertices, triangles)
    if bad.size:
        return (
            f"triangle {bad[0]} has no area (vertices {triangles[bad[0]].tolist()}; {bad.size} such in all); remove "
            "degenerate triangles in the program that made it"
        )
    return _open_or_inside_out(vertices, triangles, closed)


def _slivers(vertices: Floats, triangles: Ints) -> Ints:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    e, f, g = b - a, c - a, c - b
    area = np.linalg.norm(np.cross(e, f), axis=1)
    longest = np.maximum(np.maximum((e * e).sum(1), (f * f).sum(1)), (g * g).sum(1))
    return np.flatnonzero(area <= SLIVER * longest)


def _open_or_inside_out(vertices: Floats, triangles: Ints, closed: bool) -> str:
    many = len(vertices)
    there = (triangles * many + np.roll(triangles, -1, 1)).ravel()
    back = (np.roll(triangles, -1, 1) * many + triangles).ravel()
    ways = np.sort(there)
    twice = np.flatnonzero(ways[1:] == ways[:-1])
    if twice.size:
        where = int(np.flatnonzero(there == ways[twice[0]])[1])
        a, b = divmod(int(ways[twice[0]]), many)
        return (
            f"triangle {where // 3}: its edge from vertex {a} to {b} is run the same way by another triangle; make all "
            "triangles face the same side, and let no more than two share an edge"
        )
    at = np.minimum(np.searchsorted(ways, back), len(ways) - 1)
    alone = np.flatnonzero(ways[at] != back)
    if alone.size and closed:
        a, b = divmod(int(there[alone[0]]), many)
        return (
            f"triangle {alone[0] // 3}: its edge from vertex {a} to {b} is open ({alone.size} such in all); close the "
            "holes and weld the vertices, or use it as an open surface (closed=False)"
        )
    return _inside_out(vertices, triangles, alone // 3)


def _inside_out(vertices: Floats, triangles: Ints, on_border: Ints) -> str:
    """Whether a part without open edges has its inside out and is not the cavity of a larger one."""
    rows, columns = triangles[:, [0, 1]].ravel(), triangles[:, [1, 2]].ravel()
    links = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(vertices), len(vertices)))
    part = connected_components(links, directed=False)[1][triangles[:, 0]]
    count = int(part.max()) + 1
    is_closed = np.ones(count, bool)
    is_closed[part[on_border]] = False
    a, b, c = (vertices[triangles[:, k]] - vertices[triangles[:, 0]].mean(0) for k in range(3))
    volume = np.bincount(part, np.einsum("ij,ij->i", a, np.cross(b, c)), count)
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    for corner in triangles.T:
        np.minimum.at(low, part, vertices[corner])
        np.maximum.at(high, part, vertices[corner])
    solid = np.flatnonzero(is_closed & (volume > 0.0))
    for p in np.flatnonzero(is_closed & (volume <= 0.0)):
        if not ((low[solid] <= low[p]) & (high[solid] >= high[p])).all(1).any():
            mine = np.flatnonzero(part == p)
            return (
                f"triangle {mine[0]} and {len(mine) - 1} more that are joined to it face inwards (their volume is "
                "negative); reverse the order of their corners"
            )
    return ""


def is_closed(triangles: Ints) -> bool:
    """Whether a surface, sound in the sense of `find_fault`, has no open edge."""
    many = int(triangles.max()) + 1
    there = (triangles * many + np.roll(triangles, -1, 1)).ravel()
    back = (np.roll(triangles, -1, 1) * many + triangles).ravel()
    return bool(np.array_equal(np.sort(there), np.sort(back)))


def weld(vertices: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """The same surface with equal vertices made one, as an STL file names every corner anew."""
    bits = (vertices + 0.0).view(np.uint64)
    odd = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
    mixed = (bits ^ bits >> np.uint64(32)) * odd  # folded first: single precision leaves the low bits empty
    mixed ^= mixed >> np.uint64(29)
    key = mixed[:, 0] + np.uint64(3) * mixed[:, 1] + np.uint64(7) * mixed[:, 2]
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(vertices[index][inverse], vertices, equal_nan=True):
        _, index, inverse = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(index, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.ascontiguousarray(vertices[index[order]]), rank[inverse.ravel()][triangles].astype(np.int64)
