"""Capsules against meshes: the two ends as spheres, the segment between them against convex and border edges."""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_normals import is_nearest, normal_there, on_border, outward
from plant.collision.narrowphase.mesh_round import SPREAD, nearest, touch_ball
from plant.collision.shape.mesh import BORDER, COUNT, FIRST, RIDGE, SKIP_TO, corner, face, meets
from plant.collision.shape.triangle import CORNER, FACE, behind, closest_point
from plant.collision.vec3 import along, dot, point_to_local, sub, times

NUDGE = 1e-6  # of the radius: out of the reach of rounding


@kernel
def capsule_mesh(shape, placed, mesh, i, j, margin, out):
    """A capsule against a mesh: its two ends as spheres, and its core against ridges in between."""
    m, radius, half = shape.asset[j], shape.size[i, 0], shape.size[i, 1]
    p, r = placed.pos[i], placed.rot[i]
    a = point_to_local(placed, j, (p[0] - half * r[0, 2], p[1] - half * r[1, 2], p[2] - half * r[2, 2]))
    b = point_to_local(placed, j, (p[0] + half * r[0, 2], p[1] + half * r[1, 2], p[2] + half * r[2, 2]))
    return manifold_to_world(placed, j, out, _touch_segment(mesh, m, a, b, radius, margin, out, 0, 0))


@kernel
def _touch_segment(mesh, m, a, b, radius, margin, out, count, tag):
    """List where a segment with a radius touches mesh `m`."""
    reach = radius + margin
    low = min(a[0], b[0]) - reach, min(a[1], b[1]) - reach, min(a[2], b[2]) - reach
    high = max(a[0], b[0]) + reach, max(a[1], b[1]) + reach, max(a[2], b[2]) + reach
    if not meets(mesh, mesh.first_node[m], low, high):
        return count
    count = touch_ball(mesh, m, a, radius, margin, out, count, tag)
    count = touch_ball(mesh, m, b, radius, margin, out, count, tag + 1)
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    while node < end:
        if not meets(mesh, node, low, high):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            n, o = face(mesh, t), corner(mesh, t, 0)
            p, q = dot(sub(a, o), n), dot(sub(b, o), n)
            if min(p, q) > reach or max(p, q) < -reach:
                continue
            if (p > 0.0) != (q > 0.0) and min(p, q) < -reach:
                count = _pierced(mesh, t, a, b, p, q, n, radius, out, count, tag)
            for k in range(3):
                u = mesh.neighbour[t, k]
                if mesh.edge[t, k] == BORDER or (mesh.edge[t, k] == RIDGE and t < u):
                    count = _over_ridge(mesh, m, t, k, a, b, radius, margin, out, count, tag)
        node += 1
    return count


@inline
def _pierced(mesh, t, a, b, p, q, n, radius, out, count, tag):
    """The core goes through the face: its lower end is to be lifted out."""
    x = along(a, p / (p - q), sub(b, a))
    region, _, _, _ = closest_point(x, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
    if region != FACE:
        return count
    low, depth = (b, radius - q) if q < p else (a, radius - p)
    return add_point(out, count, along(low, 0.5 * depth - radius, n), n, depth, 8 * t + 6 + SPREAD * tag, 1e-6 * radius)


@kernel
def _over_ridge(mesh, m, t, k, a, b, radius, margin, out, count, tag):
    """The core against an edge, where the closest point lies between the core's ends (they are done as spheres)."""
    c, e = corner(mesh, t, k), corner(mesh, t, (k + 1) % 3)
    s, u = between(a, b, c, e)
    if s <= 1e-9 or s >= 1.0 - 1e-9:
        return count
    foot = along(c, u, sub(e, c))
    core = along(a, s, sub(b, a))
    d = sub(core, foot)
    square = dot(d, d)
    if square > (radius + margin) * (radius + margin):
        return count
    region = k + 1
    if u <= 0.0:
        region = CORNER + k
    elif u >= 1.0:
        region = CORNER + (k + 1) % 3
    n, feature = normal_there(mesh, t, region)
    size = math.sqrt(square)
    way = 1.0
    if dot(d, n) < 0.0:  # the ridge has come through the core, or looks away from it on the far side of a thin wall
        if on_border(mesh, t, region) or not _goes_inside(mesh, m, core, sub(b, a), size, radius):
            return count
        way = -1.0
        d = times(-1.0, d)
    if size > 1e-9 * radius:
        if not is_nearest(mesh, t, region, d) or not behind(d, c, e, corner(mesh, t, (k + 2) % 3)):
            return count
        n = times(1.0 / size, d)
    depth = radius - way * size
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * (tag + 2), 1e-6 * radius)


@inline
def _goes_inside(mesh, m, p, x, size, radius):
    """Whether the core, which goes along `x`, is inside the mesh at `p` or next to it.

    A core that goes straight in through a face is closest to the edges about that face just where it goes in, and at
    that place itself rounding would tell.
    """
    step = NUDGE * radius
    square, step = (size + step) * (size + step), step / math.sqrt(dot(x, x))
    return _is_inside(mesh, m, along(p, step, x), square) or _is_inside(mesh, m, along(p, -step, x), square)


@kernel
def _is_inside(mesh, m, p, square):
    """Whether `p`, no further from the surface than the root of `square`, is inside the mesh."""
    t, region, x, y, z = nearest(mesh, m, p, square * (1.0 + 1e-9))
    return t >= 0 and not on_border(mesh, t, region) and dot(sub(p, (x, y, z)), outward(mesh, t, region)) < 0.0


@inline
def between(a, b, c, e):
    """Parameters, 0 to 1, of the closest points of the segments ab and ce."""
    x, y, w = sub(b, a), sub(e, c), sub(a, c)
    xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
    xw, yw = dot(x, w), dot(y, w)
    under = xx * yy - xy * xy
    s = 0.5
    if under > 1e-12 * xx * yy:
        s = min(max((xy * yw - yy * xw) / under, 0.0), 1.0)
    u = (xy * s + yw) / max(yy, 1e-300)
    if u < 0.0 or u > 1.0:
        u = min(max(u, 0.0), 1.0)
        s = min(max((xy * u - xw) / max(xx, 1e-300), 0.0), 1.0)
    return s, u
