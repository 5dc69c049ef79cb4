"""Overlap of a convex polyhedron with a surface: a triangle mesh or a height field.

The triangles inside the solid are cut by its planes. What its own faces have inside the ground is found by columns:
looking along an axis d of the surface's frame, the ground below a triangle that looks up (n . d > 0) counts once, and
that below one that looks down is taken away again; at each point inside the ground this leaves one, elsewhere nothing.
So each face of the solid is cut to the column below each triangle over it, and the pieces are added with the
triangle's sign. Every piece changes little when a corner moves a little: there is no question of inside or outside
that rounding could answer wrongly.

A face along d has no width in that view. Its plane cuts a triangle in a segment, and the column below that is a strip.

d is the axis closest to the mean normal of the surface inside the solid, along which few triangles lie beyond it; that
of a field is up. An open mesh is ground below its surface in the same way, as long as the solid is not over its
border; a field ends in walls.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import cells, sample, triangle
from plant.collision.shape.mesh import COUNT, FIRST, SKIP_TO, corner, meets
from plant.collision.vec3 import along, cross, dot, sub, unit
from plant.collision.volume.clip import ANY, add_half, cut, cut_by, put_triangle, select, take_face
from plant.collision.volume.moments import add_patch, add_solid, measure, set_origin

NOWHERE = (0.0, 0.0, 0.0)
UPRIGHT = 1e-6  # cosine to d below which a face stands along it


@kernel
def _skin(cutter, solid, a, b, c, near):
    """The triangle abc, cut to what is inside the solid."""
    p, sums = cutter.polygon, cutter.sums
    put_triangle(p, a, b, c)
    side, count, level = cut_by(cutter, 3, solid, near, cutter.own, ANY)
    if count < 3 and level < 0:
        return
    n = unit(cross(sub(b, a), sub(c, a)))
    if level >= 0:
        if dot(n, (solid.plane[level, 0], solid.plane[level, 1], solid.plane[level, 2])) > 0.0:
            add_half(cutter, 3, solid, level, near, n[0], n[1], n[2], 0.5)
    else:
        add_solid(sums, measure(sums, p, side, count, n[0], n[1], n[2]), 1.0)
        add_patch(sums, n[0], n[1], n[2], 1.0)


@kernel
def _under(cutter, solid, a, b, c, d, near):
    """What the faces of a solid have in the column below the triangle abc."""
    n = unit(cross(sub(b, a), sub(c, a)))
    rise = dot(n, d)
    if rise == 0.0:
        return
    lx, ly, lz = min(a[0], b[0], c[0]), min(a[1], b[1], c[1]), min(a[2], b[2], c[2])
    hx, hy, hz = max(a[0], b[0], c[0]), max(a[1], b[1], c[1]), max(a[2], b[2], c[2])
    box, q = solid.box, solid.plane
    for k in range(solid.many[2]):
        f = solid.live[k]
        if (
            (lx > box[f, 3] and d[0] <= 0.0)
            or (hx < box[f, 0] and d[0] >= 0.0)
            or (ly > box[f, 4] and d[1] <= 0.0)
            or (hy < box[f, 1] and d[1] >= 0.0)
            or (lz > box[f, 5] and d[2] <= 0.0)
            or (hz < box[f, 2] and d[2] >= 0.0)
        ):
            continue
        m, h = (q[f, 0], q[f, 1], q[f, 2]), q[f, 3]
        ha, hb, hc = _height(m, h, a, near), _height(m, h, b, near), _height(m, h, c, near)
        if abs(dot(m, d)) > UPRIGHT:
            level = ha == 0.0 and hb == 0.0 and hc == 0.0
            if level and dot(m, d) < 0.0:
                continue
            count, side = take_face(solid, f, cutter.polygon), 0
            sign = math.copysign(1.0, rise)
            side, count = _cut_side(cutter.polygon, side, count, a, b, d, sign)
            side, count = _cut_side(cutter.polygon, side, count, b, c, d, sign)
            side, count = _cut_side(cutter.polygon, side, count, c, a, d, sign)
            if not level:
                side, count = _cut_top(cutter.polygon, side, count, a, n, sign)
            if count >= 3:
                add_solid(cutter.sums, measure(cutter.sums, cutter.polygon, side, count, m[0], m[1], m[2]), sign)
        else:
            _strip(cutter, solid, f, a, b, c, n, d, m, ha, hb, hc)


@inline
def _height(m, offset, p, near):
    """Height of `p` over a plane, 0 if it lies in it."""
    h = dot(m, p) - offset
    return h if abs(h) > near else 0.0


@inline
def _cut_side(polygon, side, count, a, b, d, sign):
    """Cut to the side of the edge ab, seen along d, on which its triangle is."""
    if count < 3:
        return side, 0
    n = cross(sub(b, a), d)
    return cut(polygon, side, count, sign * n[0], sign * n[1], sign * n[2], sign * dot(n, a))


@inline
def _cut_top(polygon, side, count, a, n, sign):
    """Cut to what is below the triangle's plane, seen along d."""
    if count < 3:
        return side, 0
    return cut(polygon, side, count, sign * n[0], sign * n[1], sign * n[2], sign * dot(n, a))


@kernel
def _strip(cutter, solid, f, a, b, c, n, d, m, ha, hb, hc):
    """What the upright face `f` has in the strip below the segment in which its plane cuts the triangle abc."""
    if (ha < 0.0) == (hb < 0.0) and (hb < 0.0) == (hc < 0.0):
        return
    v = unit((d[0] - dot(m, d) * m[0], d[1] - dot(m, d) * m[1], d[2] - dot(m, d) * m[2]))
    u = cross(v, m)
    low, high = math.inf, -math.inf
    for k in range(3):
        p, q, hp, hq = (a, b, ha, hb) if k == 0 else (b, c, hb, hc) if k == 1 else (c, a, hc, ha)
        if (hp < 0.0) != (hq < 0.0):
            s = hp / (hp - hq) if hp < 0.0 else 1.0 - hq / (hq - hp)
            at = dot(u, along(p, s, sub(q, p)))
            low, high = min(low, at), max(high, at)
    rise = dot(n, v)
    if not high > low or rise == 0.0:
        return
    polygon, sign = cutter.polygon, math.copysign(1.0, rise)
    side, count = cut(polygon, 0, take_face(solid, f, polygon), -u[0], -u[1], -u[2], -low)
    if count >= 3:
        side, count = cut(polygon, side, count, u[0], u[1], u[2], high)
    side, count = _cut_top(polygon, side, count, a, n, sign)
    if count >= 3:
        add_solid(cutter.sums, measure(cutter.sums, polygon, side, count, m[0], m[1], m[2]), sign)


@inline
def _misses(solid, lx, ly, lz, hx, hy, hz, d):
    """Whether a plane of the solid parts it from a box; with d not 0, from all that lies below the box along d."""
    t = solid.blade
    mx, my, mz = 0.5 * (lx + hx), 0.5 * (ly + hy), 0.5 * (lz + hz)
    rx, ry, rz = 0.5 * (hx - lx), 0.5 * (hy - ly), 0.5 * (hz - lz)
    for k in range(solid.many[3]):
        a, b, c = t[0, k], t[1, k], t[2, k]
        over = a * mx + b * my + c * mz - t[3, k] > abs(a) * rx + abs(b) * ry + abs(c) * rz
        if over and a * d[0] + b * d[1] + c * d[2] <= 0.0:
            return True
    return False


@inline
def _skip_node(mesh, node, low, high, solid, d):
    """Whether a branch of the mesh's tree has nothing to do with the solid."""
    b = mesh.box[node]
    return not meets(mesh, node, low, high) or _misses(solid, b[0], b[1], b[2], b[3], b[4], b[5], d)


@inline
def _outlook(sums):
    """The axis, with its sign, closest to the mean normal of the surface so far; up if there is none."""
    x, y, z = sums.patch[0], sums.patch[10], sums.patch[20]
    if abs(x) > abs(y) and abs(x) > abs(z):
        return (math.copysign(1.0, x), 0.0, 0.0)
    if abs(y) > abs(z):
        return (0.0, math.copysign(1.0, y), 0.0)
    return (0.0, 0.0, math.copysign(1.0, z))


@kernel
def in_mesh(mesh, m, solid, cutter, near):
    """Integrals over what a convex polyhedron has inside mesh `m`, in the mesh's frame; the patch is of the mesh."""
    r, sums = solid.reach, cutter.sums
    low, high = (r[0, 0], r[0, 1], r[0, 2]), (r[1, 0], r[1, 1], r[1, 2])
    select(solid, low, high, near)
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    while node < end:
        if _skip_node(mesh, node, low, high, solid, NOWHERE):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            _skin(cutter, solid, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2), near)
        node += 1
    d = _outlook(sums)
    far = (math.inf, math.inf, math.inf)
    low = _extend(low, far, d, -1.0)
    high = _extend(high, far, d, 1.0)
    node = mesh.first_node[m]
    while node < end:
        if _skip_node(mesh, node, low, high, solid, d):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            _under(cutter, solid, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2), d, near)
        node += 1


@kernel
def mesh_below(mesh, m, n, d, cutter):
    """Integrals over what the inside of mesh `m` has below the plane n . x = d; the patch is of the mesh.

    Measured from a point of the plane, the plane's own piece has no height and adds nothing.
    """
    polygon, sums, box, link = cutter.polygon, cutter.sums, mesh.box, mesh.link
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    set_origin(sums, d * n[0], d * n[1], d * n[2])
    while node < end:
        b = box[node]
        middle = 0.5 * (n[0] * (b[0] + b[3]) + n[1] * (b[1] + b[4]) + n[2] * (b[2] + b[5]))
        if middle - 0.5 * (abs(n[0]) * (b[3] - b[0]) + abs(n[1]) * (b[4] - b[1]) + abs(n[2]) * (b[5] - b[2])) >= d:
            node = link[node, SKIP_TO]
            continue
        for t in range(link[node, FIRST], link[node, FIRST] + link[node, COUNT]):
            p, q, r = corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2)
            put_triangle(polygon, p, q, r)
            side, count = cut(polygon, 0, 3, n[0], n[1], n[2], d)
            if count >= 3:
                o = unit(cross(sub(q, p), sub(r, p)))
                add_solid(sums, measure(sums, polygon, side, count, o[0], o[1], o[2]), 1.0)
                add_patch(sums, o[0], o[1], o[2], 1.0)
        node += 1


@inline
def _extend(p, far, d, sign):
    """The corner `p` of a box, moved to infinity along d if it is the low (-1) or high (1) one on that side."""
    return (
        sign * far[0] if sign * d[0] > 0.0 else p[0],
        sign * far[1] if sign * d[1] > 0.0 else p[1],
        sign * far[2] if sign * d[2] > 0.0 else p[2],
    )


@inline
def _misses_cell(field, f, x, y, solid, d):
    """As `_misses`, for the surface in cell (x, y)."""
    a, c = sample(field, f, x, y), sample(field, f, x + 1, y + 1)
    b, e = sample(field, f, x + 1, y), sample(field, f, x, y + 1)
    low, high = min(a[2], b[2], c[2], e[2]), max(a[2], b[2], c[2], e[2])
    return high < solid.reach[0, 2] or _misses(solid, a[0], a[1], low, c[0], c[1], high, d)


@kernel
def in_field(field, f, solid, cutter, near):
    """Integrals over what a convex polyhedron has below field `f`, in the field's frame; the patch is of the field."""
    r = solid.reach
    select(solid, (r[0, 0], r[0, 1], r[0, 2]), (r[1, 0], r[1, 1], r[1, 2]), near)
    x0, y0, x1, y1 = cells(field, f, r[0, 0], r[0, 1], r[1, 0], r[1, 1])
    up, floor = (0.0, 0.0, 1.0), r[0, 2] - (r[1, 2] - r[0, 2])
    for x in range(x0, x1):
        for y in range(y0, y1):
            if not _misses_cell(field, f, x, y, solid, NOWHERE):
                for k in range(2):
                    a, b, c = triangle(field, f, x, y, k)
                    _skin(cutter, solid, a, b, c, near)
            for k in range(4):
                there, a, b, c, e = wall(field, f, x, y, k, floor)
                if there:
                    _skin(cutter, solid, a, b, c, near)
                    _skin(cutter, solid, a, c, e, near)
    for x in range(x0, x1):
        for y in range(y0, y1):
            if not _misses_cell(field, f, x, y, solid, up):
                for k in range(2):
                    a, b, c = triangle(field, f, x, y, k)
                    _under(cutter, solid, a, b, c, up, near)


@inline
def wall(field, f, x, y, k, floor):
    """The wall below side `k` of cell (x, y) down to `floor`: whether there is one, and its four corners."""
    a = b = sample(field, f, x, y)
    there = False
    if k == 0 and y == 0:
        there, a = True, sample(field, f, x + 1, y)
    elif k == 1 and x == field.nx[f] - 2:
        there, a, b = True, sample(field, f, x + 1, y + 1), sample(field, f, x + 1, y)
    elif k == 2 and y == field.ny[f] - 2:
        there, a, b = True, sample(field, f, x, y + 1), sample(field, f, x + 1, y + 1)
    elif k == 3 and x == 0:
        there, b = True, sample(field, f, x, y + 1)
    there = there and max(a[2], b[2]) > floor
    return there, a, b, (b[0], b[1], min(b[2], floor)), (a[0], a[1], min(a[2], floor))
