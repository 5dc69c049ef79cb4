"""Boxes, cylinders, cones and hulls against height fields.

As for meshes (mesh_convex.py): points of the solid under the surface, with the normal of the triangle above them,
and ridges of the surface inside the solid. The triangle above a point is found from its place alone. A point in a
hollow is held by the faces on both sides, so that a corner does not rattle in a ditch.
"""

from __future__ import annotations

from hilnode.jit import inline, kernel
from plant.collide.field import apex, below, cells, corner_of, edge, highest, is_peak, is_sample, sample, triangle
from plant.collide.mesh_convex import ALIKE, box_in, put, turned
from plant.collide.ridge import BETWEEN, SAME, START, peak_inside, ridge_inside
from plant.collide.solid import BOX, HULL, point, points, reach_of, rim_way
from plant.collide.triangle import add, along, dot, place, product, sub, to_world, unit


@kernel
def convex_field(shape, placed, hull, field, i, j, margin, out):
    """A box, cylinder, cone or hull against a height field; `hull` is looked at only for a hull."""
    f, kind, size, h = shape.asset[j], shape.kind[i], shape.size[i], shape.asset[i]
    pos = placed.pos[i]
    centre = place(placed, j, (pos[0], pos[1], pos[2]))
    x, y, z = turned(placed.rot[i], placed.rot[j])  # the field's axes in the frame of the solid
    low, high = box_in(centre, x, y, z, reach_of(kind, size), margin)
    x0, y0, x1, y1 = cells(field, f, low[0], low[1], high[0], high[1])
    if x1 <= x0 or y1 <= y0 or not _any_above(field, f, x0, y0, x1, y1, low[2]):
        return 0
    frame, count = (centre, x, y, z), 0
    for k in range(min(points(kind, hull, h), SAME)):
        count = _point_below(field, f, kind, size, hull, h, k, frame, margin, out, count)
    cell = (x0, y0, x1, y1)
    count, is_pierced = _ridges(field, f, kind, size, hull, h, frame, cell, low[2], margin, out, count, False)
    if count == 0 and is_pierced:
        count, _ = _ridges(field, f, kind, size, hull, h, frame, cell, low[2], margin, out, count, True)
    return to_world(placed, i, out, count)


@kernel
def _ridges(field, f, kind, size, hull, h, frame, cell, lowest, margin, out, count, at_any_cost):
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
                n = put(x, y, z, unit(product(sub(b, a), sub(left, a))))
                o = put(x, y, z, unit(product(sub(right, a), sub(b, a))))
                a, b = put(x, y, z, sub(a, centre)), put(x, y, z, sub(b, centre))
                name = 4 * (cx * field.ny[f] + cy) + k
                count, where, d, way = ridge_inside(
                    kind, size, hull, h, a, b, n, o, margin, out, count, name, at_any_cost
                )
                if where != BETWEEN:
                    u, v = (cx, cy) if where == START else (cx + (1 if k != 1 else 0), cy + (1 if k != 0 else 0))
                    if is_peak(field, f, u, v, (dot(x, way), dot(y, way), dot(z, way))):
                        name = 4 * (u * field.ny[f] + v) + 3
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
    """Point `k` of the solid against the triangle above it; a rim is turned to that triangle's slope first."""
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
        n = put(x, y, z, unit(product(sub(b, a), sub(c, a))))
    a, b, c = triangle(field, f, cx, cy, ck)
    m = unit(product(sub(b, a), sub(c, a)))
    n = put(x, y, z, m)
    depth = dot(sub(a, at), m)
    if depth < -margin:
        return count
    count = add(out, count, along(p, 0.5 * depth, n), n, depth, k, 0.0)
    if depth <= 0.0:
        return count
    for e in range(3):  # the faces across hollow edges, if they are above the point too
        u, v = apex(cx, cy, ck, e)
        if not is_sample(field, f, u, v):
            continue
        g, q = corner_of(cx, cy, ck, e), corner_of(cx, cy, ck, (e + 1) % 3)
        a, b, c = sample(field, f, q[0], q[1]), sample(field, f, g[0], g[1]), sample(field, f, u, v)
        if dot(sub(c, b), m) <= 0.0:
            continue
        o = unit(product(sub(b, a), sub(c, a)))
        deep = dot(sub(a, at), o)
        if deep > 0.0 and dot(o, m) < ALIKE:
            n = put(x, y, z, o)
            count = add(out, count, along(p, 0.5 * deep, n), n, deep, k + (1 + e) * SAME, 0.0)
    return count
