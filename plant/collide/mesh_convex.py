"""Boxes, cylinders, cones and hulls against meshes.

Two kinds of points make up the contact of a convex solid with a surface:

- a point of the solid (solid.py says which) below a triangle; the normal is the triangle's. Only the triangle
  straight above a point lists it, so the flat triangles of a floor act as one face, and of several faces that
  a point is below it is pushed out through the nearest. At a hollow edge both faces hold the point.
- a ridge of the surface inside the solid. The signed distance to a solid is convex along the ridge, so it has one
  minimum, found by halving; where it is as good as level, the two ends of that stretch count instead. The normal
  is the solid's, turned into the cone of normals that the ridge may have. Flat and hollow edges are never looked at.

All is worked out in the frame of the solid. Ref: Luaces 4.6.3 (the distance to a cylinder minimised over each triangle
by an active set; here the minimum lies in a corner or on an edge, which leaves one variable), 4.8.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.collide.mesh import BORDER, COUNT, FIRST, HOLLOW, RIDGE, SKIP, corner, face, meets
from plant.collide.mesh_round import nearest
from plant.collide.solid import CONE, CYLINDER, extent, overshoot, point, points, reach_of, rim_way, signed
from plant.collide.triangle import FEATURES, add, along, dot, into, place, product, sub, times, to_world, unit

HALVINGS = 30
LEVEL = 1e-4  # of the size of the solid: by so much the depth may differ along a ridge that counts as level
STEEP = 0.3  # cosine: a normal is not turned further than this to fit a ridge
SAME = 256  # points of a solid that are told apart by their number
MANY = 4 * SAME  # features below this are points of the solid


@kernel
def convex_mesh(shape, placed, hull, mesh, i, j, margin, out):
    """A box, cylinder, cone or hull against a mesh; `hull` is looked at only for a hull."""
    m, kind, size, h = shape.asset[j], shape.kind[i], shape.size[i], shape.asset[i]
    pos, rot = placed.pos[i], placed.rot[i]
    centre = place(placed, j, (pos[0], pos[1], pos[2]))
    x, y, z = turned(rot, placed.rot[j])  # the mesh's axes in the frame of the solid
    low, high = box_in(centre, x, y, z, reach_of(kind, size), margin)
    node, end, count = mesh.first_node[m], mesh.first_node[m + 1], 0
    while node < end:
        if not meets(mesh, node, low, high):
            node = mesh.link[node, SKIP]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            n = put(x, y, z, face(mesh, t))
            a = put(x, y, z, sub(corner(mesh, t, 0), centre))
            least, most = extent(kind, size, hull, h, n)
            height = dot(n, a)
            if least - height > margin or most < height:
                continue
            b = put(x, y, z, sub(corner(mesh, t, 1), centre))
            c = put(x, y, z, sub(corner(mesh, t, 2), centre))
            e = mesh.edge[t]
            hollow = (e[0] == HOLLOW, e[1] == HOLLOW, e[2] == HOLLOW)
            count = points_below(kind, size, hull, h, a, b, c, n, hollow, margin, out, count, t)
            for k in range(3):
                u = mesh.neighbour[t, k]
                if e[k] == BORDER or (e[k] == RIDGE and t < u):
                    f, g = (a, b) if k == 0 else (b, c) if k == 1 else (c, a)
                    o = put(x, y, z, face(mesh, u)) if u >= 0 else unit(product(sub(g, f), n))
                    count = ridge_inside(kind, size, hull, h, f, g, n, o, margin, out, count, 8 * t + k)
        node += 1
    if kind == CYLINDER or kind == CONE:
        count = _drop_far(mesh, m, x, y, z, centre, out, count)
    return to_world(placed, i, out, count)


@inline
def turned(a, b):
    """The axes (columns) of the rotation `b` in the axes of the rotation `a`."""
    return (
        into(a, (b[0, 0], b[1, 0], b[2, 0])),
        into(a, (b[0, 1], b[1, 1], b[2, 1])),
        into(a, (b[0, 2], b[1, 2], b[2, 2])),
    )


@inline
def put(x, y, z, v):
    """The vector `v` in a frame in which its own axes are x, y, z."""
    return (
        x[0] * v[0] + y[0] * v[1] + z[0] * v[2],
        x[1] * v[0] + y[1] * v[1] + z[1] * v[2],
        x[2] * v[0] + y[2] * v[1] + z[2] * v[2],
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
def points_below(kind, size, hull, h, a, b, c, n, hollow, margin, out, count, t):
    """Points of the solid below the triangle abc with the normal `n`, all in the frame of the solid."""
    x, y = rim_way(n)
    height = dot(n, a)
    beyond = 0.5 * min(size[0], size[1])
    for k in range(min(points(kind, hull, h), SAME)):
        p = point(kind, size, hull, h, k, x, y)
        depth = height - dot(n, p)
        if depth < -margin:
            continue
        over, is_over = 1e-9 * beyond, False
        u, v, w = overshoot(p, a, b, n), overshoot(p, b, c, n), overshoot(p, c, a, n)
        if u > over or v > over or w > over:
            is_over = True
            if (
                depth <= 0.0
                or (u > over and (not hollow[0] or u > beyond))
                or (v > over and (not hollow[1] or v > beyond))
                or (w > over and (not hollow[2] or w > beyond))
            ):
                continue
        if is_over:
            count = add(out, count, along(p, 0.5 * depth, n), n, depth, MANY + 8 * t + 7, 1e-6 * beyond)
        else:
            count = _through_nearest(out, count, p, n, depth, k, 1e-6 * beyond)
    return count


@inline
def _through_nearest(out, count, p, n, depth, k, near):
    """List point `k` of the solid, at `p`, or change its entry if this face is nearer.

    The points of a rim depend on the face, so a rim between a floor and a wall has two of the same number.
    """
    middle = along(p, 0.5 * depth, n)
    for q in range(count):
        if out.feature[q] % SAME == k and out.feature[q] < MANY:
            half, m, x = 0.5 * out.depth[q], out.normal[q], out.point[q]
            d = sub((x[0] - half * m[0], x[1] - half * m[1], x[2] - half * m[2]), p)
            if dot(d, d) > near * near:
                k += SAME
            else:
                if abs(depth) < abs(out.depth[q]):
                    out.point[q, 0], out.point[q, 1], out.point[q, 2] = middle
                    out.normal[q, 0], out.normal[q, 1], out.normal[q, 2] = n
                    out.depth[q] = depth
                return count
    return add(out, count, middle, n, depth, k, 0.0)


@kernel
def _drop_far(mesh, m, x, y, z, centre, out, count):
    """Take out points of rims that lie much nearer to another face than to the one that lists them; one stays."""
    kept, least = 0, 0
    for q in range(count):
        depth, n, at = out.depth[q], out.normal[q], out.point[q]
        if depth < out.depth[least]:
            least = q
        if depth > 0.0 and out.feature[q] < MANY:
            s = 0.5 * depth
            p = (at[0] - s * n[0], at[1] - s * n[1], at[2] - s * n[2])
            there = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
            t, _, _, _, _ = nearest(mesh, m, there, s * s)
            if t >= 0:
                continue
        _move(out, q, kept)
        kept += 1
    if kept == 0 and count > 0:
        _move(out, least, 0)
        return 1
    return kept


@inline
def _move(out, a, b):
    out.depth[b], out.feature[b] = out.depth[a], out.feature[a]
    for i in range(3):
        out.point[b, i], out.normal[b, i] = out.point[a, i], out.normal[a, i]


@kernel
def ridge_inside(kind, size, hull, h, a, b, n, o, margin, out, count, name):
    """The ridge ab, between faces with the normals `n` (which has it anticlockwise) and `o`, inside the solid."""
    e = sub(b, a)
    length = math.sqrt(dot(e, e))
    d, _, _, _ = signed(kind, size, hull, h, along(a, 0.5, e))
    if d > 0.5 * length + margin:
        return count
    s, way = _lowest(kind, size, hull, h, a, e)
    d, _, _, _ = signed(kind, size, hull, h, along(a, s, e))
    if d > margin:
        return count
    near = 0.5 * min(size[0], size[1])
    feature = MANY + name % ((FEATURES - MANY) // 2) * 2
    fit = _into_cone(way, e, n, o)
    part, whole = dot(fit, way), math.sqrt(dot(way, way))
    if whole < STEEP or part < (STEEP if d < 0.0 else 0.999) * whole:
        if d >= 0.0 or s == 0.0 or s == 1.0:  # another ridge that ends there has the contact
            return count
        fit = unit((n[0] + o[0], n[1] + o[1], n[2] + o[2]))
        depth = _way_out(kind, size, hull, h, along(a, s, e), times(-1.0, fit))
        return add(out, count, along(along(a, s, e), -0.5 * depth, fit), fit, depth, feature, 1e-6 * near)
    first, last = _level(kind, size, hull, h, a, e, s, d + LEVEL * near)
    if (last - first) * length < 0.02 * near:
        first = last = s
    for k in range(2 if last > first else 1):
        p = along(a, last if k == 1 else first, e)
        d, _, _, _ = signed(kind, size, hull, h, p)
        depth = -d / part if d < 0.0 else -d
        count = add(out, count, along(p, -0.5 * depth, fit), fit, depth, feature + k, 1e-6 * near)
    return count


@inline
def _way_out(kind, size, hull, h, p, way):
    """How far it is from `p`, inside the solid, along `way` to its surface."""
    low, high = 0.0, 2.0 * (size[0] + size[1] + size[2])
    for _ in range(HALVINGS):
        s = 0.5 * (low + high)
        d, _, _, _ = signed(kind, size, hull, h, along(p, s, way))
        if d < 0.0:
            low = s
        else:
            high = s
    return 0.5 * (low + high)


@inline
def _lowest(kind, size, hull, h, a, e):
    """Where along a + s e, 0 <= s <= 1, the signed distance is least, and the solid's inward normal there.

    The slope is the normal's part along e. Between two faces of the solid the normal jumps; then it is the mean of the
    two whose slope is 0, which is square to the ridge and to the edge of the solid, and shorter than 1: the depth over
    its length is how far edge and ridge have passed each other.
    """
    _, px, py, pz = signed(kind, size, hull, h, a)
    p = px * e[0] + py * e[1] + pz * e[2]
    if p >= 0.0:
        return 0.0, (-px, -py, -pz)
    _, qx, qy, qz = signed(kind, size, hull, h, along(a, 1.0, e))
    q = qx * e[0] + qy * e[1] + qz * e[2]
    if q <= 0.0:
        return 1.0, (-qx, -qy, -qz)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        s = 0.5 * (low + high)
        _, gx, gy, gz = signed(kind, size, hull, h, along(a, s, e))
        slope = gx * e[0] + gy * e[1] + gz * e[2]
        if slope > 0.0:
            high, q, qx, qy, qz = s, slope, gx, gy, gz
        else:
            low, p, px, py, pz = s, slope, gx, gy, gz
    w = q / (q - p)
    way = (-w * px - (1.0 - w) * qx, -w * py - (1.0 - w) * qy, -w * pz - (1.0 - w) * qz)
    return 0.5 * (low + high), way


@inline
def _level(kind, size, hull, h, a, e, s, bound):
    """The stretch about `s` along which the signed distance stays below `bound`."""
    first, last = s, s
    for side in range(2):
        inside, outside = s, 1.0 if side == 1 else 0.0
        d, _, _, _ = signed(kind, size, hull, h, along(a, outside, e))
        if d <= bound:
            inside = outside
        else:
            for _ in range(20):
                middle = 0.5 * (inside + outside)
                d, _, _, _ = signed(kind, size, hull, h, along(a, middle, e))
                if d <= bound:
                    inside = middle
                else:
                    outside = middle
        if side == 1:
            last = inside
        else:
            first = inside
    return first, last


@inline
def _into_cone(way, e, n, o):
    """The direction nearest to `way` that leans over neither of the faces with the normals `n` and `o`."""
    if dot(way, product(n, e)) > 0.0:
        return n
    if dot(way, product(e, o)) > 0.0:
        return o
    return unit(way)
