"""Spheres against meshes; capsules, tori and links use the same tests.

A round shape is a core (a point, a segment, a curve) with a radius. A contact is a local minimum of the distance from
the core to the surface, so a sphere in a corner has two points and one on a ridge has one. Whether
the core is outside follows from the normal at the closest point of all: the face's, the sum of two faces' on an
edge, the mean by angles at a vertex. A core inside is pushed out through that closest point. In a closed mesh a
core is pushed out from any depth; through an open one it is seen down to radius + margin.

Ref: Luaces 4.6.2 (eq. 4.27-4.40).
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_normals import goes_along, is_nearest_corner, normal_there, on_border
from plant.collision.shape.bvh8 import LEVELS, around, lowest, next_leaf
from plant.collision.shape.mesh import COUNT, FIRST, RIGHT, at, corner, gap
from plant.collision.shape.triangle import CORNER, FACE, behind, closest_point
from plant.collision.vec3 import along, cross, dot, point_to_local, sub, times, unit

SPREAD = 349525  # keeps the features of several spheres of one shape apart


@kernel
def sphere_mesh(shape, placed, mesh, i, j, margin, out):
    """A sphere against a mesh."""
    p = placed.pos[i]
    c = point_to_local(placed, j, (p[0], p[1], p[2]))
    return manifold_to_world(placed, j, out, touch_ball(mesh, shape.asset[j], c, shape.size[i, 0], margin, out, 0, 0))


@kernel
def touch_ball(mesh, m, c, radius, margin, out, count, tag):
    """List where a sphere at `c` (in the mesh's frame) touches mesh `m`; returns the new count."""
    reach = radius + margin
    limit = reach * reach
    bounds = around((c[0] - reach, c[1] - reach, c[2] - reach), (c[0] + reach, c[1] + reach, c[2] + reach))
    best, owner, where, foot, outside = limit, -1, FACE, c, False
    level, node, waiting = mesh.wide_level[m, LEVELS], 0, 1
    while True:
        level, node, waiting, first, met = next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            break
        while met != 0:
            t = first + lowest(met)
            met &= met - 1
            p, q, r = at(mesh, mesh.row[t, 0]), at(mesh, mesh.row[t, 1]), at(mesh, mesh.row[t, 2])
            region, x, y, z = closest_point(c, p, q, r)
            d = sub(c, (x, y, z))
            square = dot(d, d)
            if square > limit:
                continue
            if square < best:
                best, owner, where, foot, outside = square, t, region, (x, y, z), False
            if region == FACE:
                n = unit(cross(sub(q, p), sub(r, p)))  # as it is in mesh.normal, which would have to be waited for
                if dot(d, n) >= 0.0:
                    count = _above_face(t, (x, y, z), dot(d, n), n, radius, out, count, tag)
                    outside = outside or t == owner
            elif not _leans_over(mesh, t, region, d, p, q, r):
                count = _above_edge(mesh, t, region, (x, y, z), d, radius, out, count, tag)
    if outside:
        return count
    if owner < 0:
        return _from_inside(mesh, m, c, radius, out, count, tag)
    return _below(mesh, owner, where, foot, sub(c, foot), radius, out, count, tag)


@inline
def _above_face(t, foot, height, n, radius, out, count, tag):
    depth = radius - height
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, 8 * t + SPREAD * tag, 1e-6 * radius)


@inline
def _leans_over(mesh, t, region, d, p, q, r):
    """Whether the triangle across the edge of this region of `t`, which has the corners p, q, r, leans towards `d`.

    At a corner it is asked of the edges from there to the vertices across both edges that end in it: the other edges
    there are left to the walk about the corner, which few need.
    """
    k = (region - 1) % 3
    a, b = (p, q) if k == 0 else (q, r) if k == 1 else (r, p)
    v = mesh.row[t, 3 + k]
    if region < CORNER:
        return v >= 0 and not behind(d, a, b, at(mesh, v))
    u = mesh.row[t, 3 + (k + 2) % 3]
    return (v >= 0 and goes_along(d, a, at(mesh, v))) or (u >= 0 and goes_along(d, a, at(mesh, u)))


@kernel
def _above_edge(mesh, t, region, foot, d, radius, out, count, tag):
    """A sphere over an edge or a corner of `t`, to which no triangle across an edge is nearer."""
    if region >= CORNER and not is_nearest_corner(mesh, t, region - CORNER, d):
        return count
    n, feature = normal_there(mesh, t, region)
    if dot(d, n) < 0.0:
        return count
    size = math.sqrt(dot(d, d))
    if size > 1e-9 * radius:
        n = times(1.0 / size, d)
    depth = radius - size
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)


@kernel
def _below(mesh, t, region, foot, d, radius, out, count, tag):
    """If the closest point of all says that the centre is inside, push it out through there."""
    n, feature = normal_there(mesh, t, region)
    if dot(d, n) >= 0.0 or on_border(mesh, t, region):
        return count
    size = math.sqrt(dot(d, d))
    if region != FACE and size > 1e-9 * radius:
        n = times(-1.0 / size, d)
    depth = radius + size
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)


@kernel
def _from_inside(mesh, m, c, radius, out, count, tag):
    """A centre further from the surface of a closed mesh than it reaches: push it out if it is inside."""
    root = mesh.first_node[m]
    if mesh.closed[m] == 0 or gap(mesh, root, c) > 0.0:
        return count
    t, region, x, y, z = nearest(mesh, m, c, math.inf)
    return _below(mesh, t, region, (x, y, z), sub(c, (x, y, z)), radius, out, count, tag)


@kernel
def nearest(mesh, m, c, limit):
    """Triangle, region and place of the point of mesh `m` closest to `c`, nearer than sqrt(limit); triangle -1 = none.

    Down the nearer branch first; the other is looked at on the way back up. `later` has a bit for each level at which
    it still waits, so that the way back needs no stack.
    """
    root = mesh.first_node[m]
    best, owner, where, foot = limit, -1, FACE, c
    node, level, later = root, 0, 0
    while True:
        if mesh.link[node, COUNT] == 0:
            left, right = node + 1, mesh.link[node, RIGHT]
            a, b = gap(mesh, left, c), gap(mesh, right, c)
            if min(a, b) < best:
                level += 1
                later = (later << 1) | (1 if max(a, b) < best else 0)
                node = left if a <= b else right
                continue
        else:
            for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
                region, x, y, z = closest_point(c, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
                d = sub(c, (x, y, z))
                square = dot(d, d)
                if square < best:
                    best, owner, where, foot = square, t, region, (x, y, z)
        while True:
            while level > 0 and later & 1 == 0:
                node, later, level = mesh.parent[node], later >> 1, level - 1
            if level == 0:
                return owner, where, foot[0], foot[1], foot[2]
            above = mesh.parent[node]
            node = mesh.link[above, RIGHT] if node == above + 1 else above + 1
            later -= 1
            if gap(mesh, node, c) < best:
                break
