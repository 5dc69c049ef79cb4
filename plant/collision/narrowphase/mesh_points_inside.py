"""Points of a convex solid inside a mesh: first collected as candidates, then assigned to the closest faces.

A point is inside where the closest point of the whole surface says so: by the face's normal there, the sum of two
faces' on an edge, the mean by angles at a vertex. One that is inside is held by the face that it is closest to and by
those beyond the hollow edges of that face whose planes it is below too; beyond a hollow edge, where no face is straight
above it, by both faces of the edge; beyond a hollow corner by all faces about it.

So the flat triangles of a floor act as one face, a corner of a box in a ditch is held by both sides, and what holds it
beyond an edge comes and goes with a depth of 0. Faces that are nearly in one plane speak once, through the deepest.

A point that has gone through to the other side of a thin wall is not inside. If it is straight below a face of the
wall, and the way to it from the centre of the solid goes through the wall, the two overlap all the same, and
it is held by the face that it went through.

Until they are held, points beyond all faces have negative features. Ref: Luaces 4.8.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import FEATURES, add_point
from plant.collision.narrowphase.mesh_normals import on_border, outward
from plant.collision.narrowphase.mesh_round import nearest
from plant.collision.narrowphase.ray import ray_mesh
from plant.collision.narrowphase.ridge import MANY, SAME
from plant.collision.shape.mesh import HOLLOW, RIDGE, corner, face
from plant.collision.shape.triangle import CORNER, FACE
from plant.collision.vec3 import along, dot, from_basis, sub, times

ALIKE = 0.985  # cosine between faces that count as one where they hold a point
ROUND = 64  # faces about a corner that are looked at


@inline
def note(out, count, p, way, depth, k, is_beyond, near):
    """Keep point `k` of the solid, at `p`, which is `depth` from a face along `way`; the closest face is kept.

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
    after = add_point(out, count, middle, way, depth, name, 0.0)
    if is_beyond and after > count:
        out.feature[count] = -1 - name
    return after


@inline
def _write(out, q, middle, n, depth, feature):
    out.point[q, 0], out.point[q, 1], out.point[q, 2] = middle
    out.normal[q, 0], out.normal[q, 1], out.normal[q, 2] = n
    out.depth[q], out.feature[q] = depth, feature


@kernel
def hold(mesh, m, frame, is_round, margin, near, out, count):
    """Turn the points that were noted into contacts; those that are not inside are taken out. Returns the new count.

    `frame`: the centre of the solid in the mesh's frame, and the axes of the mesh in the frame of the solid. Points
    of a rim (`is_round`) that another face is much nearer to are left to that face, unless nothing else overlaps: that
    face may lie wholly beyond the solid.
    """
    listed, spare, least = count, -1, math.inf
    for q in range(count):
        f = out.feature[q]
        if f < MANY and out.depth[q] > 0.0:
            s, n, x = 0.5 * out.depth[q], out.normal[q], out.point[q]
            p = (x[0] - s * n[0], x[1] - s * n[1], x[2] - s * n[2])
            listed = _hold_one(mesh, m, frame, p, q, is_round, margin, near, out, listed)
            if is_round and out.feature[q] >= 0 and out.depth[q] < s:
                if out.depth[q] < least:
                    spare, least = q, out.depth[q]
                out.feature[q] = -2 - out.feature[q]
    return _compact(out, listed, spare)


@inline
def _compact(out, count, spare):
    """Take out the entries with negative features; if no other overlaps, `spare` stays."""
    if spare >= 0:
        is_deep = False
        for q in range(count):
            is_deep |= out.feature[q] >= 0 and out.depth[q] > 0.0
        if not is_deep:
            out.feature[spare] = -2 - out.feature[spare]
    kept = 0
    for q in range(count):
        if out.feature[q] >= 0:
            _move(out, q, kept)
            kept += 1
    return kept


@inline
def _move(out, a, b):
    out.depth[b], out.feature[b] = out.depth[a], out.feature[a]
    for i in range(3):
        out.point[b, i], out.normal[b, i] = out.point[a, i], out.normal[a, i]


@kernel
def _hold_one(mesh, m, frame, p, q, is_round, margin, near, out, count):
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
        is_through = is_round or not is_beyond
        _outside(mesh, m, frame, p, there, t, region, q, name, is_beyond, is_through, margin, out)
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
    v = from_basis(x, y, z, n)
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
            v = from_basis(x, y, z, face(mesh, u))
            other = MANY + (SAME * u + name % SAME) % (FEATURES - MANY)
            count = add_point(out, count, along(p, 0.5 * less, v), v, less, other, 1e-6 * near)
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
def _outside(mesh, m, frame, p, there, t, region, q, name, is_beyond, is_through, margin, out):
    """A point that is outside: it went through a wall, or there is a gap to the face that it is closest to."""
    centre, x, y, z = frame
    way = sub(there, centre)
    far = math.sqrt(dot(way, way))
    out.feature[q] = -1
    if is_through and far > 0.0:
        way = times(1.0 / far, way)
        s, n = ray_mesh(mesh, m, centre, way, far)
        if s < far and dot(n, way) > 0.0:  # the centre is inside
            out.feature[q] = name if not is_beyond else -1
            return
        if s < far:
            depth, close = -(far - s) * dot(n, way), 1e-6 * far
            if nearest(mesh, m, along(there, depth, n), close * close)[0] < 0:  # the wall ends before that
                n, depth = times(-1.0, way), far - s
            v = from_basis(x, y, z, n)
            _write(out, q, along(p, 0.5 * depth, v), v, depth, name)
            return
    if region == FACE or (region < CORNER and mesh.edge[t, region - 1] != RIDGE):
        depth = _below(mesh, t, there)
        if -margin <= depth <= 0.0:
            v = from_basis(x, y, z, face(mesh, t))
            _write(out, q, along(p, 0.5 * depth, v), v, depth, name)


@inline
def _side(mesh, t, v):
    """Which corner of triangle `t` the vertex `v` is."""
    return 0 if mesh.triangle[t, 0] == v else 1 if mesh.triangle[t, 1] == v else 2
