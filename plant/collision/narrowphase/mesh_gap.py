"""Meshes with a small gap between them: their closest points, and a few more nearby that may touch next.

A fast body must be held before it is inside another, so points are listed across a gap too. The closest points of
two surfaces lie on a corner and a face or on two edges of a pair of triangles; the pair comes from the search of
mesh_mesh.py. A body that is stopped at one point turns about it, so up to four corners of each mesh, far apart and no
further from the other than the margin, are listed beside it: those that lie furthest out and closest in the slab that
the closest point leaves free. What comes from behind a face does not count.

Ref: Luaces 4.30-4.40 (the closest point of a triangle).
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point
from plant.collision.narrowphase.mesh_capsule import between
from plant.collision.narrowphase.mesh_normals import outward
from plant.collision.narrowphase.mesh_round import nearest
from plant.collision.narrowphase.node_pair import apart, first_box, second_box
from plant.collision.narrowphase.surface_intersection import (
    LOOSE,
    cut,
    forget,
    keep_low,
    moved,
    perpendicular_axes,
    splits,
)
from plant.collision.shape.mesh import COUNT, FIRST, SKIP_TO, corner
from plant.collision.shape.triangle import CORNER, EDGE, closest_point
from plant.collision.vec3 import along, dot, from_basis, sub, times, unit

SLAB = 1.0  # of what the margin leaves beyond the closest points: all that may touch as long as the other is flat
TOUCH = 1e-9  # of the margin: the way between nearer points is rounding, the surface knows the normal


@kernel
def between_triangles(a, b, c, q, e, f, limit):
    """Square of the distance of the triangles abc and qef, which do not cross, if less than `limit`; the regions in
    which the closest points lie (see shape/triangle.py), and the points. The first region is -1 if they are further
    apart."""
    best, at_i, at_j, p_i, p_j = limit, -1, -1, a, q
    for k in range(3):
        p = a if k == 0 else b if k == 1 else c
        region, px, py, pz = closest_point(p, q, e, f)
        d = sub(p, (px, py, pz))
        if dot(d, d) < best:
            best, at_i, at_j, p_i, p_j = dot(d, d), CORNER + k, region, p, (px, py, pz)
        p = q if k == 0 else e if k == 1 else f
        region, px, py, pz = closest_point(p, a, b, c)
        d = sub(p, (px, py, pz))
        if dot(d, d) < best:
            best, at_i, at_j, p_i, p_j = dot(d, d), region, CORNER + k, (px, py, pz), p
    for k in range(3):
        g, h = (a, b) if k == 0 else (b, c) if k == 1 else (c, a)
        for m in range(3):
            v, w = (q, e) if m == 0 else (e, f) if m == 1 else (f, q)
            s, r = between(g, h, v, w)
            if 0.0 < s < 1.0 and 0.0 < r < 1.0:  # ends are corners, which were looked at
                p, foot = along(g, s, sub(h, g)), along(v, r, sub(w, v))
                d = sub(p, foot)
                if dot(d, d) < best:
                    best, at_i, at_j, p_i, p_j = dot(d, d), EDGE + k, EDGE + m, p, foot
    return best, at_i, at_j, p_i, p_j


@inline
def pair_of(work, n, t, u, a, b, c, k, ha, hb, hc, q, e, f, m, reach, gaps):
    """Two triangles, abc (number t, normal k, heights ha .. hc over the other's plane) and qef (u, m), that the plane
    of the second does not part by more than the reach.

    Returns the number of segments, one more if they cross, with the sides and edges of the ends; and, if they do not
    but are nearer than the reach and `gaps` are asked for, the square of their distance, and the regions and the way
    between the closest points; the first region is -1 if not.
    """
    level, none = dot(k, a), (0.0, 0.0, 0.0)
    hq, he, hf = dot(k, q) - level, dot(k, e) - level, dot(k, f) - level
    if min(hq, he, hf) > reach or max(hq, he, hf) < -reach:
        return n, (0, 0, 0, 0), 0.0, -1, -1, none, none
    if splits(ha, hb, hc) and splits(hq, he, hf):
        new, side0, edge0, side1, edge1 = cut(work, n, t, u, a, b, c, k, ha, hb, hc, q, e, f, m, hq, he, hf)
        if new > n:
            return new, (side0, edge0, side1, edge1), 0.0, -1, -1, none, none
    if not gaps or reach <= 0.0:
        return n, (0, 0, 0, 0), 0.0, -1, -1, none, none
    square, at_i, at_j, p_i, p_j = between_triangles(a, b, c, q, e, f, reach * reach)
    return n, (0, 0, 0, 0), square, at_i, at_j, p_i, p_j


@inline
def gap_feature(mesh, t, u_corner, at_i):
    """Feature of a gap's contact: the vertex of i, else that of j (`u_corner`, -1 = none), else the triangle of i."""
    if at_i >= CORNER:
        return 8 * mesh.triangle[t, at_i - CORNER]
    return 8 * u_corner + 1 if u_corner >= 0 else 8 * t + 3


@kernel
def list_gap(mesh, work, m, w, t, u, o, x, y, z, margin, out):
    """Points of meshes `m` (i) and `w` (j) whose closest triangles are `t` and `u`; returns how many."""
    _, at_i, at_j, p, q = between_triangles(
        moved(o, x, y, z, corner(mesh, t, 0)),
        moved(o, x, y, z, corner(mesh, t, 1)),
        moved(o, x, y, z, corner(mesh, t, 2)),
        corner(mesh, u, 0),
        corner(mesh, u, 1),
        corner(mesh, u, 2),
        math.inf,
    )
    d = sub(p, q)
    size = math.sqrt(dot(d, d))
    normal = unit(d) if size > TOUCH * margin else unit(outward(mesh, u, at_j))
    name = gap_feature(mesh, t, mesh.triangle[u, at_j - CORNER] if at_j >= CORNER else -1, at_i)
    count = add_point(out, 0, along(q, 0.5, d), normal, -size, name, 0.0)
    forget(work, 0)
    forget(work, 1)
    a, b = mesh.first_node[m], mesh.first_node[w]
    thick = SLAB * (margin - size)
    box = second_box(mesh, b, x, y, z)
    slab(mesh, work, 0, a, box, normal, p, thick, o, x, y, z, margin)
    box = first_box(mesh, a, o, x, y, z)
    slab(mesh, work, 1, b, box, normal, q, thick, o, x, y, z, margin)
    count = list_loose(mesh, work, 0, w, o, x, y, z, margin, out, count)
    return list_loose(mesh, work, 1, m, o, x, y, z, margin, out, count)


@kernel
def slab(mesh, work, side, root, box, normal, origin, thick, o, x, y, z, margin):
    """Keep as loose the outermost corners of one mesh no further than `thick` from `origin` along the normal and within
    `margin` of a box of the other."""
    n, level = normal, dot(normal, origin)
    if side == 0:
        n, level = (dot(normal, x), dot(normal, y), dot(normal, z)), level - dot(normal, o)
    u, v = perpendicular_axes(normal)
    node, end = root, mesh.link[root, SKIP_TO]
    while node < end:
        q = mesh.box[node]
        radius = 0.5 * (abs(n[0]) * (q[3] - q[0]) + abs(n[1]) * (q[4] - q[1]) + abs(n[2]) * (q[5] - q[2]))
        height = 0.5 * (n[0] * (q[3] + q[0]) + n[1] * (q[4] + q[1]) + n[2] * (q[5] + q[2])) - level
        if side == 0:
            gap = apart(first_box(mesh, node, o, x, y, z), box, x, y, z)
        else:
            gap = apart(box, second_box(mesh, node, x, y, z), x, y, z)
        if abs(height) > radius + thick or gap > margin:
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            for k in range(3):
                p = corner(mesh, t, k)
                height = dot(n, p) - level
                if abs(height) <= thick:
                    if side == 0:
                        p = moved(o, x, y, z, p)
                    d = sub(p, origin)
                    away = height if side == 0 else -height  # what is near comes before what is far out
                    keep_low(work, LOOSE + 4 * side, dot(d, u), dot(d, v), away, p, mesh.triangle[t, k])
        node += 1


@inline
def is_new(work, spot):
    """Whether a loose corner was kept there, and not in a spot before it."""
    name, seen = work.name[spot], False
    for other in range(LOOSE + 4 * ((spot - LOOSE) // 4), spot):
        seen |= work.name[other] == name
    return name >= 0 and not seen


@kernel
def list_loose(mesh, work, side, asset, o, x, y, z, margin, out, count):
    """List the loose corners that were kept of one side, against the closest point of mesh `asset`, the other one."""
    for spot in range(LOOSE + 4 * side, LOOSE + 4 * side + 4):
        gap, middle, n = loose_gap(mesh, work, spot, side, asset, o, x, y, z, margin)
        if gap <= margin:
            count = add_point(out, count, middle, n, -gap, 8 * work.name[spot] + side, 1e-6 * margin)
    return count


@kernel
def loose_gap(mesh, work, spot, side, asset, o, x, y, z, margin):
    """The gap from a loose corner to mesh `asset` (inf: none within the margin), its middle and its normal, to i."""
    p = (work.found[spot, 1], work.found[spot, 2], work.found[spot, 3])
    if not is_new(work, spot):
        return math.inf, p, p
    there = p
    if side == 1:
        d = sub(p, o)
        there = (dot(d, x), dot(d, y), dot(d, z))
    t, region, fx, fy, fz = nearest(mesh, asset, there, margin * margin)
    if t < 0:
        return math.inf, p, p
    d, n = sub(there, (fx, fy, fz)), outward(mesh, t, region)
    if dot(d, n) < 0.0:
        return math.inf, p, p
    size = math.sqrt(dot(d, d))
    n = unit(d) if size > TOUCH * margin else unit(n)
    if side == 1:
        n = from_basis(x, y, z, n)
    middle = along(p, -0.5 * size, n)
    return size, middle, n if side == 0 else times(-1.0, n)
