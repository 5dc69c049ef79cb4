"""The neighbourhood of a place on a mesh: outward normals, borders, and which other triangles are near.

A place is a triangle and a region of it: its face, one of its edges, one of its corners (see shape/triangle.py).
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.shape.mesh import at, corner, face
from plant.collision.shape.triangle import CORNER, FACE, behind
from plant.collision.vec3 import dot, sub, unit


@inline
def outward(mesh, t, region):
    """The outward normal at a region of triangle `t`: the mean of the faces there, not unit on an edge."""
    n = face(mesh, t)
    if region == FACE:
        return n
    if region >= CORNER:
        v = mesh.triangle[t, region - CORNER]
        return mesh.outward[v, 0], mesh.outward[v, 1], mesh.outward[v, 2]
    u = mesh.neighbour[t, region - 1]
    if u < 0:
        return n
    m = face(mesh, u)
    return n[0] + m[0], n[1] + m[1], n[2] + m[2]


@inline
def normal_there(mesh, t, region):
    """An outward normal (on an edge not unit) and the feature at a region of `t`."""
    n = face(mesh, t)
    if region == FACE:
        return n, 8 * t
    if region < CORNER:
        k = region - 1
        u = mesh.neighbour[t, k]
        if u < 0:
            return n, 8 * t + region
        m = face(mesh, u)
        return unit((n[0] + m[0], n[1] + m[1], n[2] + m[2])), 8 * min(t, u) + 1
    v = mesh.triangle[t, region - CORNER]
    if mesh.rim[v] == 1:
        return n, 8 * v + 7
    return (mesh.outward[v, 0], mesh.outward[v, 1], mesh.outward[v, 2]), 8 * v + 7


@inline
def on_border(mesh, t, region):
    """Whether a region of `t` lies on the border of an open mesh."""
    if region == FACE:
        return False
    if region < CORNER:
        return mesh.neighbour[t, region - 1] < 0
    return mesh.rim[mesh.triangle[t, region - CORNER]] == 1


@inline
def is_nearest(mesh, t, region, d):
    """Whether no neighbour at this edge or corner leans towards `d`."""
    if region < CORNER:
        k = region - 1
        v = mesh.across[t, k]
        return v < 0 or behind(d, corner(mesh, t, k), corner(mesh, t, (k + 1) % 3), at(mesh, v))
    return is_nearest_corner(mesh, t, region - CORNER, d)


@inline
def goes_along(d, a, b):
    """Whether the edge from `a` to `b` goes along `d`, by more than a hair's breadth."""
    e = sub(b, a)
    return dot(d, e) > 1e-9 * math.sqrt(dot(d, d)) * math.sqrt(dot(e, e))


@kernel
def is_nearest_corner(mesh, t, k, d):
    """Walk about the corner: no edge that ends in it may go along `d`."""
    v = mesh.triangle[t, k]
    a = at(mesh, v)
    for back in range(2):  # one way round, and the other if there is a border
        u, k_u = t, k
        for _ in range(256):
            if goes_along(d, a, corner(mesh, u, (k_u + 1 + back) % 3)):
                return False
            u = mesh.neighbour[u, k_u if back == 0 else (k_u + 2) % 3]
            if u == t:
                return True
            if u < 0:
                break
            k_u = 0
            while k_u < 2 and mesh.triangle[u, k_u] != v:
                k_u += 1
    return True
