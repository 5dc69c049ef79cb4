"""Boxes, cylinders, cones and hulls against meshes.

Two kinds of points make up the contact of a convex solid with a surface:

- a ridge of the surface inside the solid (ridge.py). Flat and hollow edges are never looked at.
- a point of the solid (solid.py says which) inside the mesh. Candidates are noted first, each with a bound for its
  distance from the surface; mesh_points_inside.py finds out which are inside, and what holds them.

Few points of the solid are candidates, and few triangles are near it. From a centre outside the mesh no way leads to a
corner inside but through a triangle, and this one meets the solid: so a corner of a box or hull is a candidate if the
line from the centre to it goes in through a triangle. If the centre is inside, all corners are, unless no triangle
meets the solid: then it is wholly inside, and pushed out as a whole. Which points of a rim count depends on the face,
so a rim has no such line to go by: its candidates are the points below a triangle, straight or beyond a hollow edge.
So are corners straight below one: across a gap, or where they may have gone through a wall.

All is worked out in the frame of the solid. Ref: Luaces 4.8.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_normals import is_nearest_corner, on_border, outward
from plant.collision.narrowphase.mesh_points_inside import hold, note
from plant.collision.narrowphase.mesh_round import nearest
from plant.collision.narrowphase.pierce import depth_below, place_in_plane
from plant.collision.narrowphase.ray import HUGE, ray_mesh
from plant.collision.narrowphase.ridge import BETWEEN, MANY, START, may_be_next, peak_inside, ridge_inside
from plant.collision.shape.bvh8 import LEVELS, around, lowest, next_leaf
from plant.collision.shape.mesh import BORDER, HOLLOW, RIDGE, at, face, gap
from plant.collision.shape.solid import CONE, CYLINDER, extent, point, points, reach_of, rim_way
from plant.collision.shape.triangle import CORNER, FACE, behind, closest_point
from plant.collision.vec3 import along, cross, dot, from_basis, point_to_local, sub, times, unit, vector_to_local


@kernel
def convex_mesh(shape, placed, hull, mesh, i, j, margin, out):
    """A box, cylinder, cone or hull against a mesh; `hull` is looked at only for a hull."""
    m, kind, size, h = shape.asset[j], shape.kind[i], shape.size[i], shape.asset[i]
    pos, rot = placed.pos[i], placed.rot[i]
    centre = point_to_local(placed, j, (pos[0], pos[1], pos[2]))
    half = reach_of(kind, size)
    is_near, is_in, n, foot = _middle(mesh, m, centre, (math.sqrt(dot(half, half)) + margin) * (1.0 + 1e-9))
    if not (is_near or is_in):
        return 0
    x, y, z = turned(rot, placed.rot[j])  # the mesh's axes in the frame of the solid
    frame, is_round, count = (centre, x, y, z), kind == CYLINDER or kind == CONE, 0
    if is_near:
        begin, has_all = from_basis(x, y, z, sub(foot, centre)), is_in and not is_round
        count, is_pierced = _collect_candidates(
            kind, size, hull, h, mesh, m, frame, has_all, begin, margin, out, 0, False
        )
        count = hold(mesh, m, frame, is_round, margin, 0.5 * min(size[0], size[1]), out, count)
        if is_pierced and not any_deep(out, count):
            count, _ = _collect_candidates(kind, size, hull, h, mesh, m, frame, False, begin, margin, out, count, True)
    if is_in and mesh.closed[m] != 0 and not any_deep(out, count):
        count = _from_inside(kind, size, hull, h, mesh, m, frame, n, out)
    elif is_near and not any_deep(out, count):
        count = _pierce(kind, size, hull, h, mesh, m, frame, margin, out, count)
    return manifold_to_world(placed, i, out, count)


@kernel
def _middle(mesh, m, centre, reach):
    """Whether the surface is nearer to the centre of a solid than `reach`; whether the centre is inside; if one of the
    two, the normal that it is to be pushed out along, and the closest point."""
    t, region, x, y, z = nearest(mesh, m, centre, reach * reach)
    is_near = t >= 0
    if not is_near and mesh.closed[m] != 0 and gap(mesh, mesh.first_node[m], centre) <= 0.0:
        t, region, x, y, z = nearest(mesh, m, centre, math.inf)
    if t < 0:
        return False, False, centre, centre
    foot = (x, y, z)
    way = sub(foot, centre)
    is_in = dot(way, outward(mesh, t, region)) > 0.0 and not on_border(mesh, t, region)
    return is_near, is_in, face(mesh, t) if region == FACE else unit(way), foot


@kernel
def _note_all(kind, size, hull, h, foot, out):
    """Note all corners of a solid whose centre is inside; `foot` is a point of the surface, in its frame."""
    count, near = 0, 5e-7 * min(size[0], size[1])
    for k in range(points(kind, hull, h)):
        p = point(kind, size, hull, h, k, 1.0, 0.0)
        way = sub(foot, p)
        count = note(out, count, p, unit(way), math.sqrt(dot(way, way)), k, True, near)
    return count


@kernel
def _collect_candidates(kind, size, hull, h, mesh, m, frame, note_all, foot, margin, out, count, is_fallback):
    """Collect points of the solid that may be inside the mesh, and list ridges of the mesh inside the solid.

    `is_fallback`: the second pass, for ridges alone, after a first one that found a ridge inside but no depth.
    `note_all`: note all corners as soon as a triangle meets the solid; `foot` is a point of the surface in its frame.
    Returns how many there are, and whether a ridge is inside that has not been listed.
    """
    centre, x, y, z = frame
    half, is_round, is_pierced = reach_of(kind, size), kind == CYLINDER or kind == CONE, False
    low, high = box_in(centre, x, y, z, half, margin)
    bounds = around(low, high)
    level, node, waiting = mesh.wide_level[m, LEVELS], 0, 1
    while True:
        level, node, waiting, first, met = next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            return count, is_pierced
        while met != 0:
            t = first + lowest(met)
            met &= met - 1
            a = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 0]), centre))
            b = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 1]), centre))
            c = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 2]), centre))
            is_far = _is_beside(half, margin, a, b, c)
            if is_far and not is_round:
                continue
            n = from_basis(x, y, z, face(mesh, t))
            least, most = extent(kind, size, hull, h, n)
            height = dot(n, a)
            if least - height > margin or most < height:
                continue
            if note_all:
                count, note_all = _note_all(kind, size, hull, h, foot, out), False
            if not is_fallback:
                count = _note_points(kind, size, hull, h, mesh, t, frame, a, b, c, n, margin, out, count)
            if is_far:
                continue
            for k in range(3):
                u, e = mesh.neighbour[t, k], mesh.edge[t, k]
                if e == BORDER or (e == RIDGE and t < u):
                    f, g = (a, b) if k == 0 else (b, c) if k == 1 else (c, a)
                    if _is_beside(half, margin, f, g, g):
                        continue
                    o = from_basis(x, y, z, face(mesh, u)) if u >= 0 else unit(cross(sub(g, f), n))
                    count, where, d, way = ridge_inside(
                        kind, size, hull, h, f, g, n, o, margin, out, count, 8 * t + k, is_fallback
                    )
                    if where != BETWEEN:
                        q = k if where == START else (k + 1) % 3
                        is_next = may_be_next(n, o, d, way)
                        if is_next or is_nearest_corner(mesh, t, q, (dot(x, way), dot(y, way), dot(z, way))):
                            name = 8 * mesh.triangle[t, q] + 7
                            count = peak_inside(size, f if where == START else g, d, way, out, count, name)
                        elif d < 0.0:
                            is_pierced = True


@inline
def _is_beside(half, margin, a, b, c):
    """Whether abc is wholly beyond a face of the box about the solid, by more than `margin`."""
    u, v, w = half[0] + margin, half[1] + margin, half[2] + margin
    return (
        min(a[0], b[0], c[0]) > u
        or max(a[0], b[0], c[0]) < -u
        or min(a[1], b[1], c[1]) > v
        or max(a[1], b[1], c[1]) < -v
        or min(a[2], b[2], c[2]) > w
        or max(a[2], b[2], c[2]) < -w
    )


@inline
def any_deep(out, count):
    """Whether any of the points overlaps."""
    for q in range(count):
        if out.depth[q] > 0.0:
            return True
    return False


@kernel
def _from_inside(kind, size, hull, h, mesh, m, frame, n, out):
    """Push a solid whose centre is inside a closed mesh out along `n`, on which that is closest to the surface.

    All of the solid is inside then, or none of its points: it goes in and comes out again as a peg does, and its centre
    stands for it. Returns how many points there are.
    """
    centre, x, y, z = frame
    v = from_basis(x, y, z, n)
    u, w = rim_way(v)
    count = 0
    for k in range(points(kind, hull, h)):
        p = point(kind, size, hull, h, k, u, w)
        there = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
        depth, o = ray_mesh(mesh, m, there, n, HUGE)
        if depth < HUGE and dot(o, n) > 0.0:
            count = add_point(out, count, along(p, 0.5 * depth, v), v, depth, k, 0.0)
    if count == 0:
        up, _ = ray_mesh(mesh, m, centre, n, HUGE)
        depth = up + depth_below(kind, size, hull, h, (0.0, 0.0, 0.0), v)
        if up < HUGE:
            count = add_point(out, count, times(up - 0.5 * depth, v), v, depth, MANY - 1, 0.0)
    return count


@kernel
def _pierce(kind, size, hull, h, mesh, m, frame, margin, out, count):
    """Add what the solid goes through like a peg (pierce.py): of all such faces the one that it clears soonest."""
    centre, x, y, z = frame
    half = reach_of(kind, size)
    low, high = box_in(centre, x, y, z, half, 0.0)
    bounds = around(low, high)
    level, node, waiting = mesh.wide_level[m, LEVELS], 0, 1
    best, normal, foot, there = math.inf, centre, centre, centre
    while True:
        level, node, waiting, first, met = next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            break
        while met != 0:
            t = first + lowest(met)
            met &= met - 1
            a = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 0]), centre))
            b = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 1]), centre))
            c = from_basis(x, y, z, sub(at(mesh, mesh.row[t, 2]), centre))
            if _is_beside(half, 0.0, a, b, c):
                continue
            n = from_basis(x, y, z, face(mesh, t))
            p, below = place_in_plane(kind, size, hull, h, n, dot(n, a))
            if below <= 0.0 or below >= best:
                continue
            d, e, f = cross(sub(b, a), n), cross(sub(c, b), n), cross(sub(a, c), n)  # out of its sides
            over = 5e-10 * min(size[0], size[1])
            u = dot(d, sub(p, a)) > over * _length(d)
            v = dot(e, sub(p, b)) > over * _length(e)
            w = dot(f, sub(p, c)) > over * _length(f)
            if not (u or v or w):
                best, normal, foot, there = below, n, p, p
            elif _is_hollow(mesh.edge[t], u, v, w):
                is_in, g, o = _nearest_above(mesh, m, frame, p)
                if is_in:
                    best, normal, foot, there = below, o, g, p
    if best < math.inf:
        way = sub(foot, there)
        depth = math.sqrt(dot(way, way)) + depth_below(kind, size, hull, h, there, normal)
        if depth > 0.0:
            count = add_point(out, count, along(foot, -0.5 * depth, normal), normal, depth, MANY - 1, 0.0)
    return count


@inline
def _nearest_above(mesh, m, frame, p):
    """Whether the point `p` is inside the mesh; the closest point of that, and the way there, in the solid's frame."""
    centre, x, y, z = frame
    at_p = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
    t, region, fx, fy, fz = nearest(mesh, m, at_p, math.inf)
    way = sub((fx, fy, fz), at_p)
    is_in = dot(way, outward(mesh, t, region)) > 0.0 and not on_border(mesh, t, region)
    n = face(mesh, t) if region == FACE else unit(way)
    return is_in, along(p, math.sqrt(dot(way, way)), from_basis(x, y, z, n)), from_basis(x, y, z, n)


@inline
def turned(a, b):
    """The axes (columns) of the rotation `b` in the axes of the rotation `a`."""
    return (
        vector_to_local(a, (b[0, 0], b[1, 0], b[2, 0])),
        vector_to_local(a, (b[0, 1], b[1, 1], b[2, 1])),
        vector_to_local(a, (b[0, 2], b[1, 2], b[2, 2])),
    )


@inline
def box_in(centre, x, y, z, half, margin):
    """Low and high of the box, parallel to other axes, about a solid: `x`, `y`, `z` are those axes in its frame."""
    rx = abs(x[0]) * half[0] + abs(x[1]) * half[1] + abs(x[2]) * half[2] + margin
    ry = abs(y[0]) * half[0] + abs(y[1]) * half[1] + abs(y[2]) * half[2] + margin
    rz = abs(z[0]) * half[0] + abs(z[1]) * half[1] + abs(z[2]) * half[2] + margin
    return (
        (centre[0] - rx, centre[1] - ry, centre[2] - rz),
        (centre[0] + rx, centre[1] + ry, centre[2] + rz),
    )


@kernel
def _note_points(kind, size, hull, h, mesh, t, frame, a, b, c, n, margin, out, count):
    """Note the points of the solid below triangle t = abc with the normal `n`, all in the frame of the solid.

    Those straight below it; corners to which the line from the centre goes in through it; and points of a rim beyond a
    hollow edge of it, where no triangle need be straight above them.
    """
    x, y = rim_way(n)
    height, is_round = dot(n, a), kind == CYLINDER or kind == CONE
    beyond = 0.5 * min(size[0], size[1])
    over, near = 1e-9 * beyond, 1e-6 * beyond
    d, e, f = cross(sub(b, a), n), cross(sub(c, b), n), cross(sub(a, c), n)  # out of its sides
    du, dv, dw = dot(d, a) + over * _length(d), dot(e, b) + over * _length(e), dot(f, c) + over * _length(f)
    for k in range(points(kind, hull, h)):
        p = point(kind, size, hull, h, k, x, y)
        depth = height - dot(n, p)
        if depth < -margin:
            continue
        u, v, w = dot(d, p) > du, dot(e, p) > dv, dot(f, p) > dw
        if not (u or v or w):
            count = note(out, count, p, n, depth, k, False, near)
        elif depth > 0.0:
            if not is_round:
                if height < 0.0 and _goes_through(p, a, b, c, over):
                    size_p = math.sqrt(dot(p, p))
                    far = size_p * depth / (depth - height)
                    count = note(out, count, p, times(-1.0 / size_p, p), far, k, True, near)
            elif _is_hollow(mesh.edge[t], u, v, w):
                way = _to_hollow(mesh, t, frame, p, a, b, c)
                far = math.sqrt(dot(way, way))
                if far > 0.0:
                    count = note(out, count, p, times(1.0 / far, way), far, k, True, near)
    return count


@inline
def _length(a):
    """The length of `a`, or up to 1.8 times as much."""
    return abs(a[0]) + abs(a[1]) + abs(a[2])


@inline
def _goes_through(p, a, b, c, over):
    """Whether the line from the origin, in front of the triangle abc, to `p`, behind it, goes through it or past it by
    no more than a hair's breadth."""
    u, v, w = cross(a, b), cross(b, c), cross(c, a)
    return dot(u, p) <= over * _length(u) and dot(v, p) <= over * _length(v) and dot(w, p) <= over * _length(w)


@inline
def _is_hollow(edge, u, v, w):
    """Whether a point is beyond a hollow edge and no ridge or border; u, v, w: which of the three it is beyond."""
    if (u and edge[0] > 0) or (v and edge[1] > 0) or (w and edge[2] > 0):
        return False
    return (u and edge[0] == HOLLOW) or (v and edge[1] == HOLLOW) or (w and edge[2] == HOLLOW)


@inline
def _to_hollow(mesh, t, frame, p, a, b, c):
    """The way from `p`, below the plane of triangle t = abc and beyond its edges, to the closest of its hollow edges.

    Null if a neighbour is nearer.
    """
    region, x, y, z = closest_point(p, a, b, c)
    way = sub((x, y, z), p)
    if region == FACE:
        return 0.0, 0.0, 0.0
    for k in range(3):
        if region < CORNER and k != region - 1:
            continue
        if region >= CORNER and k == (region - CORNER + 1) % 3:
            continue
        apex = mesh.across[t, k]
        if apex >= 0:
            u, v = (a, b) if k == 0 else (b, c) if k == 1 else (c, a)
            if not behind(
                times(-1.0, way), u, v, from_basis(frame[1], frame[2], frame[3], sub(at(mesh, apex), frame[0]))
            ):
                return 0.0, 0.0, 0.0
    return way
