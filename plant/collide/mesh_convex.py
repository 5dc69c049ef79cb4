"""Boxes, cylinders, cones and hulls against meshes.

Two kinds of points make up the contact of a convex solid with a surface:

- a ridge of the surface inside the solid (ridge.py). Flat and hollow edges are never looked at.
- a point of the solid (solid.py says which) inside the mesh. Candidates are points below a triangle, straight or
  beyond a hollow edge; they are noted first. A point is inside where the nearest point of the whole surface says so:
  by the face's normal there, the sum of two faces' on an edge, the mean by angles at a vertex. One that is inside
  is held by the face that it is nearest to and by those beyond the hollow edges of that face whose planes it is below
  too; beyond a hollow edge, where no face is straight above it, by both faces of the edge; beyond a hollow corner
  by all faces about it.

So the flat triangles of a floor act as one face, a corner of a box in a ditch is held by both sides, and what holds it
beyond an edge comes and goes with a depth of 0. Faces that are nearly in one plane speak once, through the deepest.

A point that has gone through to the other side of a thin wall is not inside. If the way to it from the centre of
the solid goes through the wall, the two overlap all the same, and it is held by the face that it went through.

All is worked out in the frame of the solid. Ref: Luaces 4.8.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.collide.mesh import BORDER, COUNT, FIRST, HOLLOW, RIDGE, SKIP, at, corner, face, gap, meets
from plant.collide.mesh_round import nearest
from plant.collide.ray import HUGE, ray_mesh
from plant.collide.ridge import BETWEEN, MANY, SAME, START, may_be_next, peak_inside, ridge_inside
from plant.collide.solid import CONE, CYLINDER, extent, point, points, reach_of, rim_way
from plant.collide.triangle import (
    CORNER,
    FACE,
    FEATURES,
    add,
    along,
    behind,
    dot,
    into,
    place,
    product,
    pull,
    sub,
    times,
    to_world,
    unit,
)
from plant.collide.vicinity import is_nearest_corner, on_border, outward

ALIKE = 0.985  # cosine between faces that count as one where they hold a point
ROUND = 64  # faces about a corner that are looked at


@kernel
def convex_mesh(shape, placed, hull, mesh, i, j, margin, out):
    """A box, cylinder, cone or hull against a mesh; `hull` is looked at only for a hull."""
    m, kind, size, h = shape.asset[j], shape.kind[i], shape.size[i], shape.asset[i]
    pos, rot = placed.pos[i], placed.rot[i]
    centre = place(placed, j, (pos[0], pos[1], pos[2]))
    x, y, z = turned(rot, placed.rot[j])  # the mesh's axes in the frame of the solid
    frame = (centre, x, y, z)
    count, is_pierced = _look(kind, size, hull, h, mesh, m, frame, margin, out, False)
    count = _hold(mesh, m, frame, kind == CYLINDER or kind == CONE, margin, 0.5 * min(size[0], size[1]), out, count)
    if count == 0 and is_pierced:
        count, _ = _look(kind, size, hull, h, mesh, m, frame, margin, out, True)
    if mesh.closed[m] != 0 and not _any_deep(out, count):
        count = _from_inside(kind, size, hull, h, mesh, m, frame, out, count)
    return to_world(placed, i, out, count)


@kernel
def _look(kind, size, hull, h, mesh, m, frame, margin, out, at_any_cost):
    """Note points of the solid below triangles and list ridges inside it; with nothing else to go by only these.

    Returns how many there are, and whether a ridge is inside that has not been listed.
    """
    centre, x, y, z = frame
    low, high = box_in(centre, x, y, z, reach_of(kind, size), margin)
    node, end, count, is_pierced = mesh.first_node[m], mesh.first_node[m + 1], 0, False
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
            if not at_any_cost:
                count = _note_points(kind, size, hull, h, mesh, t, frame, a, b, c, n, margin, out, count)
            for k in range(3):
                u, e = mesh.neighbour[t, k], mesh.edge[t, k]
                if e == BORDER or (e == RIDGE and t < u):
                    f, g = (a, b) if k == 0 else (b, c) if k == 1 else (c, a)
                    o = put(x, y, z, face(mesh, u)) if u >= 0 else unit(product(sub(g, f), n))
                    count, where, d, way = ridge_inside(
                        kind, size, hull, h, f, g, n, o, margin, out, count, 8 * t + k, at_any_cost
                    )
                    if where != BETWEEN:
                        q = k if where == START else (k + 1) % 3
                        is_next = may_be_next(n, o, d, way)
                        if is_next or is_nearest_corner(mesh, t, q, (dot(x, way), dot(y, way), dot(z, way))):
                            name = 8 * mesh.triangle[t, q] + 7
                            count = peak_inside(size, f if where == START else g, d, way, out, count, name)
                        elif d < 0.0:
                            is_pierced = True
        node += 1
    return count, is_pierced


@inline
def _any_deep(out, count):
    for q in range(count):
        if out.depth[q] > 0.0:
            return True
    return False


@kernel
def _from_inside(kind, size, hull, h, mesh, m, frame, out, count):
    """If the centre of a solid is inside a closed mesh: push it out the way on which that is nearest to the surface.

    All of the solid is inside then, or nothing of it but what has come out on another side. Returns the new count.
    """
    centre, x, y, z = frame
    if gap(mesh, mesh.first_node[m], centre) > 0.0:
        return count
    t, region, fx, fy, fz = nearest(mesh, m, centre, math.inf)
    way = sub((fx, fy, fz), centre)
    if dot(way, outward(mesh, t, region)) <= 0.0:
        return count
    n = face(mesh, t) if region == FACE else unit(way)
    v = put(x, y, z, n)
    u, w = rim_way(v)
    count = 0
    for k in range(min(points(kind, hull, h), SAME)):
        p = point(kind, size, hull, h, k, u, w)
        there = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
        depth, o = ray_mesh(mesh, m, there, n, HUGE)
        if depth < HUGE and dot(o, n) > 0.0:
            count = add(out, count, along(p, 0.5 * depth, v), v, depth, k, 0.0)
    return count


@inline
def _side(mesh, t, v):
    """Which corner of triangle `t` the vertex `v` is."""
    return 0 if mesh.triangle[t, 0] == v else 1 if mesh.triangle[t, 1] == v else 2


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
def _note_points(kind, size, hull, h, mesh, t, frame, a, b, c, n, margin, out, count):
    """Note the points of the solid below triangle t = abc with the normal `n`, all in the frame of the solid.

    Those straight below it, and those beyond a hollow edge of it, where no triangle need be straight above them.
    """
    x, y = rim_way(n)
    height = dot(n, a)
    beyond = 0.5 * min(size[0], size[1])
    over, near = 1e-9 * beyond, 1e-6 * beyond
    d, e, f = unit(product(sub(b, a), n)), unit(product(sub(c, b), n)), unit(product(sub(a, c), n))  # out of its sides
    du, dv, dw = dot(d, a) + over, dot(e, b) + over, dot(f, c) + over
    for k in range(min(points(kind, hull, h), SAME)):
        p = point(kind, size, hull, h, k, x, y)
        depth = height - dot(n, p)
        if depth < -margin:
            continue
        u, v, w = dot(d, p) > du, dot(e, p) > dv, dot(f, p) > dw
        if not (u or v or w):
            count = note(out, count, p, n, depth, k, False, near)
        elif depth > 0.0 and _is_hollow(mesh.edge[t], u, v, w):
            way = _to_hollow(mesh, t, frame, p, a, b, c)
            far = math.sqrt(dot(way, way))
            if far > 0.0:
                count = note(out, count, p, times(1.0 / far, way), far, k, True, near)
    return count


@inline
def _is_hollow(edge, u, v, w):
    """Whether a point is beyond a hollow edge and no ridge or border; u, v, w: which of the three it is beyond."""
    if (u and edge[0] > 0) or (v and edge[1] > 0) or (w and edge[2] > 0):
        return False
    return (u and edge[0] == HOLLOW) or (v and edge[1] == HOLLOW) or (w and edge[2] == HOLLOW)


@inline
def note(out, count, p, way, depth, k, is_beyond, near):
    """Keep point `k` of the solid, at `p`, which is `depth` from a face along `way`; the nearest face is kept.

    A point that may be inside counts more than a gap. `is_beyond`: no face of the mesh need be straight above it.
    The points of a rim depend on the face, so there may be several of the same number.
    """
    middle = along(p, 0.5 * depth, way)
    name = k
    for q in range(count):
        f = out.feature[q] if out.feature[q] >= 0 else -1 - out.feature[q]
        if f < MANY and f % SAME == k:
            half, m, x = 0.5 * out.depth[q], out.normal[q], out.point[q]
            d = sub((x[0] - half * m[0], x[1] - half * m[1], x[2] - half * m[2]), p)
            if dot(d, d) > near * near:
                name += SAME
                continue
            was = out.depth[q]
            if (depth > 0.0) == (was > 0.0):
                is_better = abs(depth) < abs(was)
            else:
                is_better = depth > 0.0
            if is_better:
                _write(out, q, middle, way, depth, -1 - f if is_beyond else f)
            return count
    if name >= MANY:
        return count
    after = add(out, count, middle, way, depth, name, 0.0)
    if is_beyond and after > count:
        out.feature[count] = -1 - name
    return after


@inline
def _write(out, q, middle, n, depth, feature):
    out.point[q, 0], out.point[q, 1], out.point[q, 2] = middle
    out.normal[q, 0], out.normal[q, 1], out.normal[q, 2] = n
    out.depth[q], out.feature[q] = depth, feature


@inline
def _to_hollow(mesh, t, frame, p, a, b, c):
    """The way from `p`, below the plane of triangle t = abc and beyond its edges, to the nearest of its hollow edges.

    Null if a neighbour is nearer.
    """
    region, x, y, z = pull(p, a, b, c)
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
            if not behind(times(-1.0, way), u, v, put(frame[1], frame[2], frame[3], sub(at(mesh, apex), frame[0]))):
                return 0.0, 0.0, 0.0
    return way


@kernel
def _hold(mesh, m, frame, is_round, margin, near, out, count):
    """Turn the points that were noted into contacts; those that are not inside are taken out. Returns the new count.

    `frame`: the centre of the solid in the mesh's frame, and the axes of the mesh in the frame of the solid. Points
    of a rim (`is_round`) that another face is much nearer to are left to that face, unless nothing else is left.
    """
    listed, spare, least = count, -1, math.inf
    for q in range(count):
        f = out.feature[q]
        if f < MANY and out.depth[q] > 0.0:
            s, n, x = 0.5 * out.depth[q], out.normal[q], out.point[q]
            p = (x[0] - s * n[0], x[1] - s * n[1], x[2] - s * n[2])
            listed = _hold_one(mesh, m, frame, p, q, margin, near, out, listed)
            if is_round and out.feature[q] >= 0 and out.depth[q] < s:
                if out.depth[q] < least:
                    spare, least = q, out.depth[q]
                out.feature[q] = -2 - out.feature[q]
    return _compact(out, listed, spare)


@inline
def _compact(out, count, spare):
    """Take out the entries with negative features; if there are no others, `spare` stays."""
    kept = 0
    for q in range(count):
        if out.feature[q] >= 0:
            _move(out, q, kept)
            kept += 1
    if kept == 0 and spare >= 0:
        out.feature[spare] = -2 - out.feature[spare]
        _move(out, spare, 0)
        return 1
    return kept


@inline
def _move(out, a, b):
    out.depth[b], out.feature[b] = out.depth[a], out.feature[a]
    for i in range(3):
        out.point[b, i], out.normal[b, i] = out.point[a, i], out.normal[a, i]


@kernel
def _hold_one(mesh, m, frame, p, q, margin, near, out, count):
    """Entry `q` is the point `p` of the solid: write there what holds it, and more at the end of the list."""
    centre, x, y, z = frame
    is_beyond = out.feature[q] < 0
    name = -1 - out.feature[q] if is_beyond else out.feature[q]
    there = (centre[0] + dot(x, p), centre[1] + dot(y, p), centre[2] + dot(z, p))
    reach = out.depth[q] * (1.0 + 1e-9) + 1e-9 * near
    t, region, fx, fy, fz = nearest(mesh, m, there, reach * reach)
    if t < 0 or on_border(mesh, t, region):
        return count
    d = sub(there, (fx, fy, fz))
    if dot(d, outward(mesh, t, region)) >= 0.0:
        _outside(mesh, m, frame, p, there, t, region, q, name, is_beyond, margin, out)
        return count
    around = 3 if region == FACE else 2 if region < CORNER else ROUND
    best, deep, u = t, _below(mesh, t, there), t
    if region != FACE:
        for k in range(around):
            u = _next_about(mesh, t, region, u, k)
            if u < 0:
                break
            if _below(mesh, u, there) > deep:
                best, deep = u, _below(mesh, u, there)
    n = face(mesh, best)
    v = put(x, y, z, n)
    _write(out, q, along(p, 0.5 * deep, v), v, deep, name)
    u = t
    for k in range(around):
        u = _next_about(mesh, t, region, u, k)
        if u < 0 and region >= CORNER:
            break
        if u < 0 or u == best or dot(n, face(mesh, u)) > ALIKE:
            continue
        less = _below(mesh, u, there)
        if less > 0.0:
            v = put(x, y, z, face(mesh, u))
            other = MANY + (SAME * u + name % SAME) % (FEATURES - MANY)
            count = add(out, count, along(p, 0.5 * less, v), v, less, other, 1e-6 * near)
    return count


@inline
def _below(mesh, t, p):
    """How far `p` is below the plane of triangle `t`."""
    return dot(sub(corner(mesh, t, 0), p), face(mesh, t))


@inline
def _next_about(mesh, t, region, u, k):
    """The triangle number `k` about a region of `t`, `u` the one before; -1 = none there.

    About a face those beyond its hollow edges; about an edge its two; about a corner one after the other.
    """
    if region == FACE:
        return mesh.neighbour[t, k] if mesh.edge[t, k] == HOLLOW else -1
    if region < CORNER:
        return t if k == 0 else mesh.neighbour[t, region - 1]
    if k == 0 or u < 0:
        return t if k == 0 else -1
    u = mesh.neighbour[u, _side(mesh, u, mesh.triangle[t, region - CORNER])]
    return -1 if u == t else u


@kernel
def _outside(mesh, m, frame, p, there, t, region, q, name, is_beyond, margin, out):
    """A point that is outside: it went through a wall, or there is a gap to the face that it is nearest to."""
    centre, x, y, z = frame
    way = sub(there, centre)
    far = math.sqrt(dot(way, way))
    out.feature[q] = -1
    if far <= 0.0:
        return
    way = times(1.0 / far, way)
    s, n = ray_mesh(mesh, m, centre, way, far)
    if s < far and dot(n, way) > 0.0:  # the centre is inside
        out.feature[q] = name if not is_beyond else -1
        return
    if s < far:
        depth, close = -(far - s) * dot(n, way), 1e-6 * far
        if nearest(mesh, m, along(there, depth, n), close * close)[0] < 0:  # the wall ends before that
            n, depth = times(-1.0, way), far - s
        v = put(x, y, z, n)
        _write(out, q, along(p, 0.5 * depth, v), v, depth, name)
        return
    if region == FACE or (region < CORNER and mesh.edge[t, region - 1] != RIDGE):
        depth = _below(mesh, t, there)
        if -margin <= depth <= 0.0:
            v = put(x, y, z, face(mesh, t))
            _write(out, q, along(p, 0.5 * depth, v), v, depth, name)
