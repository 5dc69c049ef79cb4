"""What every test against triangles shares: small vectors, the nearest point of a triangle, the list of points.

Vectors are tuples of three numbers, which stay in registers. A point of a triangle lies in one of seven regions, and
from the region follows which normals a contact there may have: inside the face only the face's own; on an edge those
between the two faces that share it; at a corner those that lie behind no edge that ends there. A direction outside
this cone belongs to a neighbour, which lists the contact itself: so edges between flat triangles never show.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.collide.model import POINTS

FACE, EDGE, CORNER = 0, 1, 4  # regions: 0 the face, 1..3 edge k - 1 (from corner k - 1 to the next), 4..6 corner k - 4
FEATURES = 0xFFFFF
TINY = 1e-300


@inline
def sub(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def along(a, s, b):
    """a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@inline
def dot(a, b):
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def product(a, b):
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def times(s, a):
    """s a."""
    return s * a[0], s * a[1], s * a[2]


@inline
def unit(a):
    """a / |a|; the z axis for a null vector."""
    square = dot(a, a)
    if square < TINY:
        return 0.0, 0.0, 1.0
    return times(1.0 / math.sqrt(square), a)


@inline
def into(rot, a):
    """The vector `a` of the world in the axes that are the columns of `rot`."""
    return (
        rot[0, 0] * a[0] + rot[1, 0] * a[1] + rot[2, 0] * a[2],
        rot[0, 1] * a[0] + rot[1, 1] * a[1] + rot[2, 1] * a[2],
        rot[0, 2] * a[0] + rot[1, 2] * a[1] + rot[2, 2] * a[2],
    )


@inline
def out_of(rot, a):
    """The vector `a` in the axes that are the columns of `rot`, in the world."""
    return (
        rot[0, 0] * a[0] + rot[0, 1] * a[1] + rot[0, 2] * a[2],
        rot[1, 0] * a[0] + rot[1, 1] * a[1] + rot[1, 2] * a[2],
        rot[2, 0] * a[0] + rot[2, 1] * a[1] + rot[2, 2] * a[2],
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
def place(placed, s, a):
    """The point `a` of the world in the frame of shape `s`."""
    p = placed.pos[s]
    return into(placed.rot[s], (a[0] - p[0], a[1] - p[1], a[2] - p[2]))


@inline
def world(placed, s, a):
    """The point `a` of the frame of shape `s` in the world."""
    x, y, z = out_of(placed.rot[s], a)
    p = placed.pos[s]
    return x + p[0], y + p[1], z + p[2]


@inline
def pull(p, a, b, c):
    """The point of the triangle abc nearest to `p`, after its region.

    Ref: Luaces 4.30-4.40 (inside by barycentric coordinates, else on an edge), ordered so that each of the seven
    regions is met once.
    """
    ab, ac, ap = sub(b, a), sub(c, a), sub(p, a)
    d1, d2 = dot(ab, ap), dot(ac, ap)
    if d1 <= 0.0 and d2 <= 0.0:
        return 4, a[0], a[1], a[2]
    bp = sub(p, b)
    d3, d4 = dot(ab, bp), dot(ac, bp)
    if d3 >= 0.0 and d4 <= d3:
        return 5, b[0], b[1], b[2]
    cp = sub(p, c)
    d5, d6 = dot(ab, cp), dot(ac, cp)
    if d6 >= 0.0 and d5 <= d6:
        return 6, c[0], c[1], c[2]
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        x, y, z = along(a, d1 / (d1 - d3), ab)
        return 1, x, y, z
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        x, y, z = along(a, d2 / (d2 - d6), ac)
        return 3, x, y, z
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        x, y, z = along(b, (d4 - d3) / ((d4 - d3) + (d5 - d6)), sub(c, b))
        return 2, x, y, z
    scale = 1.0 / (va + vb + vc)
    x, y, z = along(along(a, vb * scale, ab), vc * scale, ac)
    return 0, x, y, z


@inline
def behind(d, a, b, apex):
    """Whether the direction `d` from the edge ab does not lean over the triangle that ends in `apex`.

    Of two neighbours both must be behind, or the face of one of them is nearer. A hair's breadth is allowed: a
    point exactly above an edge must belong to somebody.
    """
    e, f = sub(b, a), sub(apex, a)
    ee = dot(e, e)
    m = along(times(ee, f), -dot(f, e), e)  # into the triangle, square to the edge
    return dot(d, m) <= 1e-9 * math.sqrt(dot(d, d) * dot(m, m)) + TINY


@inline
def bend(a, b, c, apex):
    """How much the neighbour's `apex` lies above the plane of abc, as a sine: > 0 hollow, 0 flat, < 0 ridge."""
    n = product(sub(b, a), sub(c, a))
    f = sub(apex, a)
    return dot(n, f) / math.sqrt(dot(n, n) * dot(f, f) + TINY)


@kernel
def add(out, count, point, normal, depth, feature, near):
    """List a point unless one within `near` with the same normal is there; returns the new count.

    When there is no room left, the shallowest point makes way.
    """
    for k in range(count):
        q, m = out.point[k], out.normal[k]
        x, y, z = q[0] - point[0], q[1] - point[1], q[2] - point[2]
        alike = m[0] * normal[0] + m[1] * normal[1] + m[2] * normal[2]
        if x * x + y * y + z * z <= near * near and alike > 0.99999:
            if depth > out.depth[k]:
                return _put(out, k, count, point, normal, depth, feature)
            return count
    if count < POINTS:
        return _put(out, count, count + 1, point, normal, depth, feature)
    least = 0
    for k in range(1, POINTS):
        if out.depth[k] < out.depth[least]:
            least = k
    if depth > out.depth[least]:
        _put(out, least, count, point, normal, depth, feature)
    return count


@inline
def _put(out, k, count, point, normal, depth, feature):
    out.point[k, 0], out.point[k, 1], out.point[k, 2] = point
    out.normal[k, 0], out.normal[k, 1], out.normal[k, 2] = normal
    out.depth[k], out.feature[k] = depth, feature & FEATURES
    return count


@kernel
def to_world(placed, s, out, count):
    """Points and normals in the frame of shape `s` become those of the world."""
    for k in range(count):
        q, m = out.point[k], out.normal[k]
        q[0], q[1], q[2] = world(placed, s, (q[0], q[1], q[2]))
        m[0], m[1], m[2] = out_of(placed.rot[s], (m[0], m[1], m[2]))
    return count
