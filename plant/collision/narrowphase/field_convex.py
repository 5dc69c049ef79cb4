"""Boxes, cylinders, cones and hulls against height fields.

As for meshes (mesh_convex.py): points of the solid under the surface, with the normal of the triangle above them,
and ridges of the surface inside the solid. The triangle above a point is found from its place alone. A point in a
hollow is held by the faces on both sides, so that a corner does not rattle in a ditch. A point above the surface has
a gap to the triangle that it is closest to, which need not be the one straight below it.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import (
    apex,
    below,
    cells,
    corner_of,
    edge,
    highest,
    is_peak,
    is_sample,
    sample,
    triangle,
)
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_convex import any_deep, box_in, turned
from plant.collision.narrowphase.mesh_points_inside import ALIKE, note
from plant.collision.narrowphase.pierce import depth_below, place_in_plane
from plant.collision.narrowphase.ridge import BETWEEN, MANY, SAME, START, may_be_next, peak_inside, ridge_inside
from plant.collision.shape.solid import BOX, CONE, HULL, extent, point, points, reach_of, rim_way
from plant.collision.vec3 import along, cross, dot, from_basis, point_to_local, sub, unit

HAIR = 1e-9  # of a depth: what is rounding
WALK = 4  # triangles tried for the way up


@kernel
def convex_field(shape, placed, hull, field, i, j, margin, out):
    """A box, cylinder, cone or hull against a height field; `hull` is looked at only for a hull."""
    f, kind, size, h = shape.asset[j], shape.kind[i], shape.size[i], shape.asset[i]
    pos = placed.pos[i]
    centre = point_to_local(placed, j, (pos[0], pos[1], pos[2]))
    x, y, z = turned(placed.rot[i], placed.rot[j])  # the field's axes in the frame of the solid
    low, high = box_in(centre, x, y, z, reach_of(kind, size), margin)
    x0, y0, x1, y1 = cells(field, f, low[0], low[1], high[0], high[1])
    if x1 <= x0 or y1 <= y0 or not _any_above(field, f, x0, y0, x1, y1, low[2]):
        return 0
    frame, count, cell = (centre, x, y, z), 0, (x0, y0, x1, y1)
    whole = points(kind, hull, h)
    for k in range(whole):
        count = _point_below(field, f, kind, size, hull, h, k, frame, margin, out, count)
    if kind != BOX and kind != HULL:
        count = _unsettled(field, f, kind, size, hull, h, frame, cell, low[2], out, count)
        count = _gaps(field, f, kind, size, hull, h, 0, whole, frame, cell, low[2], margin, out, count)
    count, is_pierced = _ridges(field, f, kind, size, hull, h, frame, cell, low[2], margin, out, count, False)
    if is_pierced and not any_deep(out, count):
        count, _ = _ridges(field, f, kind, size, hull, h, frame, cell, low[2], margin, out, count, True)
    if not any_deep(out, count):
        count = _pierce(field, f, kind, size, hull, h, frame, cell, low[2], out, count)
    return manifold_to_world(placed, i, out, count)


@kernel
def _ridges(field, f, kind, size, hull, h, frame, cell, lowest, margin, out, count, is_fallback):
    """The ridges of some cells; returns the new count, and whether one is inside that has not been listed."""
    centre, x, y, z = frame
    is_pierced = False
    for cx in range(cell[0], cell[2] + 1):
        for cy in range(cell[1], cell[3] + 1):
            if highest(field, f, cx, cy) < lowest:
                continue
            for k in range(3):
                is_ridge, a, b, right, left = edge(field, f, cx, cy, k)
                if is_ridge != 1:
                    continue
                n = from_basis(x, y, z, unit(cross(sub(b, a), sub(left, a))))
                o = from_basis(x, y, z, unit(cross(sub(right, a), sub(b, a))))
                a, b = from_basis(x, y, z, sub(a, centre)), from_basis(x, y, z, sub(b, centre))
                name = 8 * (cx * field.ny[f] + cy) + k
                count, where, d, way = ridge_inside(
                    kind, size, hull, h, a, b, n, o, margin, out, count, name, is_fallback
                )
                if where != BETWEEN:
                    u, v = (cx, cy) if where == START else (cx + (1 if k != 1 else 0), cy + (1 if k != 0 else 0))
                    is_next = may_be_next(n, o, d, way)
                    if is_next or is_peak(field, f, u, v, (dot(x, way), dot(y, way), dot(z, way))):
                        name = 8 * (u * field.ny[f] + v) + 3
                        count = peak_inside(size, a if where == START else b, d, way, out, count, name)
                    elif d < 0.0:
                        is_pierced = True
    return count, is_pierced


@inline
def _any_above(field, f, x0, y0, x1, y1, z):
    """Whether any sample of some cells is higher than `z`."""
    for x in range(x0, x1 + 1):
        row = field.first[f] + x * field.ny[f]
        for y in range(y0, y1 + 1):
            if field.height[row + y] >= z:
                return True
    return False


@kernel
def _point_below(field, f, kind, size, hull, h, k, frame, margin, out, count):
    """Point `k` of the solid against the triangle above it; a rim is turned to that triangle's slope first.

    A corner above the surface is measured from the triangles about it; rims are left to the caller.
    """
    centre, x, y, z = frame
    n = z
    p = point(kind, size, hull, h, k, 1.0, 0.0)
    turns = 1 if kind == BOX or kind == HULL else 3
    at = centre
    cx, cy, ck = -1, 0, 0
    for _ in range(turns):
        u, v = rim_way(n)
        p = point(kind, size, hull, h, k, u, v)
        at = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
        _, cx, cy, ck = below(field, f, at)
        if cx < 0:
            return count
        a, b, c = triangle(field, f, cx, cy, ck)
        n = from_basis(x, y, z, unit(cross(sub(b, a), sub(c, a))))
    a, b, c = triangle(field, f, cx, cy, ck)
    m = unit(cross(sub(b, a), sub(c, a)))
    n = from_basis(x, y, z, m)
    depth = dot(sub(a, at), m)
    if depth <= 0.0:
        if turns == 1:
            cell = cells(field, f, at[0] - margin, at[1] - margin, at[0] + margin, at[1] + margin)
            count = _gaps(field, f, kind, size, hull, h, k, k + 1, frame, cell, at[2] - margin, margin, out, count)
        return count
    return _list_below(field, f, k, frame, p, at, cx, cy, ck, depth, out, count)


@kernel
def _list_below(field, f, k, frame, p, at, cx, cy, ck, depth, out, count):
    """List point `k` of the solid, `p` or `at` in the frame of the field, `depth` under the plane of the triangle
    straight above it."""
    _, x, y, z = frame
    cx, cy, ck, depth = _way_up(field, f, at, cx, cy, ck, depth)
    a, b, c = triangle(field, f, cx, cy, ck)
    m = unit(cross(sub(b, a), sub(c, a)))
    n = from_basis(x, y, z, m)
    count = add_point(out, count, along(p, 0.5 * depth, n), n, depth, k, 0.0)
    for e in range(3):  # the faces across hollow edges, if the point comes out there too
        u, v = apex(cx, cy, ck, e)
        if not is_sample(field, f, u, v):
            continue
        g, q = corner_of(cx, cy, ck, e), corner_of(cx, cy, ck, (e + 1) % 3)
        a, b, c = sample(field, f, q[0], q[1]), sample(field, f, g[0], g[1]), sample(field, f, u, v)
        if dot(sub(c, b), m) <= 0.0:
            continue
        o = unit(cross(sub(b, a), sub(c, a)))
        deep = dot(sub(a, at), o)
        if deep > 0.0 and dot(o, m) < ALIKE and _ends_under(field, f, at, deep, o):
            n = from_basis(x, y, z, o)
            count = add_point(out, count, along(p, 0.5 * deep, n), n, deep, k + (1 + e) * SAME, 0.0)
    return count


@kernel
def _unsettled(field, f, kind, size, hull, h, frame, cell, lowest, out, count):
    """Rims for which `_point_below` found no contact, as its iteration may alternate between two faces: try the rim's
    lowest point for each face of some cells, and list the one that is deepest under the surface."""
    centre, x, y, z = frame
    for k in range(0, points(kind, hull, h), 4):
        is_listed = kind == CONE and k == 4  # the tip is where it is
        for q in range(count):
            is_listed |= out.feature[q] == k
        if is_listed:
            continue
        deepest, best = 0.0, centre
        for cx in range(cell[0], cell[2]):
            for cy in range(cell[1], cell[3]):
                if highest(field, f, cx, cy) < lowest:
                    continue
                for ck in range(2):
                    a, b, c = triangle(field, f, cx, cy, ck)
                    m = unit(cross(sub(b, a), sub(c, a)))
                    n = from_basis(x, y, z, m)
                    u, v = rim_way(n)
                    p = point(kind, size, hull, h, k, u, v)
                    if dot(m, sub(a, centre)) > dot(n, p):
                        depth = _under(field, f, frame, p)[0]
                        if depth > deepest:
                            deepest, best = depth, p
        if deepest > 0.0:
            depth, at, gx, gy, gk = _under(field, f, frame, best)
            count = _list_below(field, f, k, frame, best, at, gx, gy, gk, depth, out, count)
    return count


@inline
def _under(field, f, frame, p):
    """How far the point `p` of the solid is under the plane of the triangle straight above it (0: it is not); the point
    in the frame of the field, and that triangle."""
    centre, x, y, z = frame
    at = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
    is_under, cx, cy, ck = below(field, f, at)
    if not is_under:
        return 0.0, at, cx, cy, ck
    a, b, c = triangle(field, f, cx, cy, ck)
    return dot(sub(a, at), unit(cross(sub(b, a), sub(c, a)))), at, cx, cy, ck


@kernel
def _pierce(field, f, kind, size, hull, h, frame, cell, lowest, out, count):
    """Add what the solid goes through like a peg (pierce.py): of all such faces the one that it clears soonest."""
    centre, x, y, z = frame
    best, normal, foot = math.inf, centre, centre
    for cx in range(cell[0], cell[2]):
        for cy in range(cell[1], cell[3]):
            if highest(field, f, cx, cy) < lowest:
                continue
            for ck in range(2):
                a, b, c = triangle(field, f, cx, cy, ck)
                m = unit(cross(sub(b, a), sub(c, a)))
                n = from_basis(x, y, z, m)
                p, reach = place_in_plane(kind, size, hull, h, n, dot(m, sub(a, centre)))
                if reach <= 0.0 or reach >= best:
                    continue
                at = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
                if _is_over(at, a, b, c, m) or below(field, f, at)[0]:
                    best, normal, foot = reach, n, p
    if best < math.inf:
        depth = depth_below(kind, size, hull, h, foot, normal)
        if depth > 0.0:
            count = add_point(out, count, along(foot, -0.5 * depth, normal), normal, depth, MANY - 1, 0.0)
    return count


@inline
def _ends_under(field, f, p, depth, n):
    """Whether the way of `depth` from `p` along `n`, to the plane of a triangle, ends no higher than the surface: that
    plane may go on above it."""
    x, y, z = along(p, depth, n)
    return below(field, f, (x, y, z - HAIR * depth))[0]


@inline
def _way_up(field, f, p, cx, cy, ck, depth):
    """The triangle through which `p`, `depth` under the plane of a triangle, comes out along that one's normal.

    Begins with the triangle straight above: where its plane goes on above the surface, the triangle there is next.
    """
    for _ in range(WALK):
        a, b, c = triangle(field, f, cx, cy, ck)
        x, y, z = along(p, depth, unit(cross(sub(b, a), sub(c, a))))
        is_under, u, v, w = below(field, f, (x, y, z - HAIR * depth))
        if is_under or u < 0:
            break
        a, b, c = triangle(field, f, u, v, w)
        other = dot(sub(a, p), unit(cross(sub(b, a), sub(c, a))))
        if other <= 0.0:
            break
        cx, cy, ck, depth = u, v, w, other
    return cx, cy, ck, depth


@kernel
def _gaps(field, f, kind, size, hull, h, first, last, frame, cell, lowest, margin, out, count):
    """List, of the points `first` to `last` of the solid that are above the surface, the gaps to the faces of cells."""
    centre, x, y, z = frame
    near = 5e-7 * min(size[0], size[1])
    for cx in range(cell[0], cell[2]):
        for cy in range(cell[1], cell[3]):
            if highest(field, f, cx, cy) < lowest:
                continue
            for ck in range(2):
                a, b, c = triangle(field, f, cx, cy, ck)
                m = unit(cross(sub(b, a), sub(c, a)))
                n, height = from_basis(x, y, z, m), dot(m, sub(a, centre))
                if last - first > 1 and extent(kind, size, hull, h, n)[0] - height > margin:
                    continue
                u, v = rim_way(n)
                for k in range(first, last):
                    p = point(kind, size, hull, h, k, u, v)
                    depth = height - dot(n, p)
                    if -margin <= depth <= 0.0:
                        at = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
                        if _is_over(at, a, b, c, m) and not below(field, f, at)[0]:
                            count = note(out, count, p, n, depth, k, False, near)
    return count


@inline
def _is_over(p, a, b, c, n):
    """Whether `p`, seen along the normal `n` of the triangle abc, lies in it, within 1e-9 of a side's length."""
    e, f, g = sub(b, a), sub(c, b), sub(a, c)
    over = -1e-9 * dot(e, e)
    return (
        dot(cross(e, sub(p, a)), n) >= over
        and dot(cross(f, sub(p, b)), n) >= over
        and dot(cross(g, sub(p, c)), n) >= over
    )
