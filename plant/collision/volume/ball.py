"""Overlap of a ball with a half-space, another ball, or a solid with flat faces: exact.

Against a plane or a ball it is one cap or two. Against flat faces the ball is parted into cones from its centre, one
on each face. With Q the part of a face that is inside the ball (a polygon cut by a circle), its cone holds the pyramid
on Q and, over the rest of the face, a sector of the ball, whose integrals are those over the solid angle it fills. The
solid angles of all faces add up to the full 4 pi if the centre is inside and to nothing if it is not, so that only
faces that come into the ball are looked at:

    volume = [centre inside] 4/3 pi R^3 + sum over faces of  ± (|h|/3 area(Q) - R^3/3 angle(Q))

with h the height of the face over the centre and ± its sign; first and second moments alike with R^4/4 ∫ n dw and
R^5/5 ∫ n n' dw. Both kinds of integrals go round the border of Q, which consists of straight edges and arcs: those of
the plane figure by Green, those over the angle by the divergence theorem on the cone,

    ∫ n dw = 1/2 ∮ r x dr,      ∫ n n' dw = angle/3 + sum over the cone's flanks of their inward normal times ∫ x dA.

Whether the centre is inside follows from the sum, as the volume is between 0 and that of the ball.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import below, cells, triangle
from plant.collision.shape.mesh import COUNT, FIRST, SKIP_TO, corner, meets
from plant.collision.vec3 import TINY, cross, dot, sub, times, unit
from plant.collision.volume.clip import around, put_triangle, take_face
from plant.collision.volume.column import wall
from plant.collision.volume.moments import add_patch, add_solid, set_origin

CERTAIN = 1e-9  # of the ball's volume: a sum below tells nothing about where the centre is


@kernel
def _add_cap(sums, radius, height, g, side):
    """Add the cap of the given height on the plane through the origin, its tip along side * g."""
    t, r = height, radius
    volume = math.pi * t * t * (r - t / 3.0)
    s1 = math.pi * t**3 * (2.0 / 3.0 * r - t / 4.0)  # integrals of s and s^2, s from the tip
    s2 = math.pi * t**4 * (r / 2.0 - t / 5.0)
    wide = math.pi / 4.0 * t**3 * (4.0 / 3.0 * r * r - r * t + t * t / 5.0)
    first, second = side * (t * volume - s1), t * t * volume - 2.0 * t * s1 + s2
    q, more = sums.solid, second - wide
    q[0] += volume
    q[1], q[2], q[3] = q[1] + first * g[0], q[2] + first * g[1], q[3] + first * g[2]
    q[4] += wide + more * g[0] * g[0]
    q[5] += wide + more * g[1] * g[1]
    q[6] += wide + more * g[2] * g[2]
    q[7] += more * g[0] * g[1]
    q[8] += more * g[0] * g[2]
    q[9] += more * g[1] * g[2]


@kernel
def _add_disc(sums, square, g, nx, ny, nz):
    """Add the disc about the origin, perpendicular to g and of this radius squared, to the patch, with the normal n."""
    area, q = math.pi * square, sums.piece
    second = 0.25 * area * square
    q[0], q[1], q[2], q[3] = area, 0.0, 0.0, 0.0
    q[4], q[5], q[6] = second * (1.0 - g[0] * g[0]), second * (1.0 - g[1] * g[1]), second * (1.0 - g[2] * g[2])
    q[7], q[8], q[9] = -second * g[0] * g[1], -second * g[0] * g[2], -second * g[1] * g[2]
    add_patch(sums, nx, ny, nz, 1.0)


@kernel
def ball_plane(sums, c, radius):
    """A ball about `c` below z = 0."""
    depth = radius - c[2]
    if depth <= 0.0:
        return
    up = (0.0, 0.0, 1.0)
    set_origin(sums, c[0], c[1], 0.0)
    if depth >= 2.0 * radius:
        set_origin(sums, c[0], c[1], c[2])
        _add_ball(sums, radius)
        return
    _add_cap(sums, radius, depth, up, -1.0)
    _add_disc(sums, depth * (2.0 * radius - depth), up, 0.0, 0.0, 1.0)


@kernel
def ball_ball(sums, c, radius, other):
    """A ball about `c` and one about the origin, of radius `other`."""
    far = math.sqrt(dot(c, c))
    if far >= radius + other:
        return
    if far <= abs(radius - other) or far < TINY:
        if radius < other:
            set_origin(sums, c[0], c[1], c[2])
        else:
            set_origin(sums, 0.0, 0.0, 0.0)
        _add_ball(sums, min(radius, other))
        return
    g = times(1.0 / far, c)
    depth = radius + other - far
    t = depth * (radius - other + far) / (2.0 * far)  # of the cap of the ball about the origin, whose tip is along g
    u = depth * (other - radius + far) / (2.0 * far)
    at = times(other - t, g)
    set_origin(sums, at[0], at[1], at[2])
    _add_cap(sums, other, t, g, 1.0)
    _add_cap(sums, radius, u, g, -1.0)
    _add_disc(sums, t * (2.0 * other - t), g, g[0], g[1], g[2])


@kernel
def _add_ball(sums, radius):
    """Add the whole ball about the origin."""
    volume = 4.0 / 3.0 * math.pi * radius**3
    second = volume * radius * radius / 5.0
    sums.solid[0] += volume
    for k in range(4, 7):
        sums.solid[k] += second


@kernel
def _line(t, p, q, height):
    """Integrals along the straight part from p to q of the border, in the axes of the face, added to `t`.

    t[0:6]: of 1, u, v, uu, vv, uv over the triangle with the foot of the centre; t[6]: solid angle; t[7:10]: ∫ n dw;
    t[10:16]: of the flank, uu, vv, ww, uv, uw, vw.
    """
    det = p[0] * q[1] - p[1] * q[0]
    u, v, w = p[0] + q[0], p[1] + q[1], det / 24.0
    t[0] += 12.0 * w
    t[1] += 4.0 * w * u
    t[2] += 4.0 * w * v
    t[3] += w * (p[0] * p[0] + q[0] * q[0] + u * u)
    t[4] += w * (p[1] * p[1] + q[1] * q[1] + v * v)
    t[5] += w * (p[0] * p[1] + q[0] * q[1] + u * v)
    a, b = (p[0], p[1], height), (q[0], q[1], height)
    n = cross(a, b)
    size, la, lb, ab = math.sqrt(dot(n, n)), math.sqrt(dot(a, a)), math.sqrt(dot(b, b)), dot(a, b)
    t[6] += 2.0 * math.atan2(det, la * lb + height * (la + lb) + ab)
    if size <= TINY:
        return
    n = times(1.0 / size, n)
    angle = 0.5 * math.atan2(size, ab)
    t[7] += angle * n[0]
    t[8] += angle * n[1]
    t[9] += angle * n[2]
    x = cross(sub(times(1.0 / lb, b), times(1.0 / la, a)), n)
    t[10] += n[0] * x[0] / 3.0
    t[11] += n[1] * x[1] / 3.0
    t[12] += n[2] * x[2] / 3.0
    t[13] += (n[0] * x[1] + n[1] * x[0]) / 6.0
    t[14] += (n[0] * x[2] + n[2] * x[0]) / 6.0
    t[15] += (n[1] * x[2] + n[2] * x[1]) / 6.0


@kernel
def _arc(t, p, q, height, square, radius):
    """The same along the arc of the circle between the directions of p and q."""
    turn = math.atan2(p[0] * q[1] - p[1] * q[0], p[0] * q[0] + p[1] * q[1])
    lp, lq = math.sqrt(p[0] * p[0] + p[1] * p[1]) + TINY, math.sqrt(q[0] * q[0] + q[1] * q[1]) + TINY
    c1, s1, c2, s2 = p[0] / lp, p[1] / lp, q[0] / lq, q[1] / lq
    a = math.sqrt(square)
    cos, sin = s2 - s1, c1 - c2  # integrals over the arc of cos, sin, cos^2, sin^2, cos sin
    coscos, cossin = 0.5 * (turn + s2 * c2 - s1 * c1), 0.5 * (s2 * s2 - s1 * s1)
    sinsin = turn - coscos
    t[0] += 0.5 * square * turn
    t[1] += square * a / 3.0 * cos
    t[2] += square * a / 3.0 * sin
    t[3] += 0.25 * square * square * coscos
    t[4] += 0.25 * square * square * sinsin
    t[5] += 0.25 * square * square * cossin
    k, s = height / radius, a / radius
    t[6] += square / (radius * (radius + height)) * turn
    t[7] -= 0.5 * k * s * cos
    t[8] -= 0.5 * k * s * sin
    t[9] += 0.5 * s * s * turn
    flank = s * s * k / 3.0
    t[10] -= flank * coscos
    t[11] -= flank * sinsin
    t[12] += flank * turn
    t[13] -= flank * cossin
    t[14] += s / 6.0 * (s * s - k * k) * cos
    t[15] += s / 6.0 * (s * s - k * k) * sin


@kernel
def _edge(t, p, q, height, square, radius):
    """One edge of a face, from p to q: arcs outside the circle, and the straight part inside."""
    e = (q[0] - p[0], q[1] - p[1])
    a, b = e[0] * e[0] + e[1] * e[1], p[0] * e[0] + p[1] * e[1]
    det = p[0] * e[1] - p[1] * e[0]
    root = square * a - det * det
    if a <= TINY:
        return
    if root <= 0.0:
        _arc(t, p, q, height, square, radius)
        return
    root = math.sqrt(root)
    first, last = (-b - root) / a, (-b + root) / a
    if first >= 1.0 or last <= 0.0:
        _arc(t, p, q, height, square, radius)
        return
    x = (p[0] + first * e[0], p[1] + first * e[1]) if first > 0.0 else p
    y = (p[0] + last * e[0], p[1] + last * e[1]) if last < 1.0 else q
    if first > 0.0:
        _arc(t, p, x, height, square, radius)
    _line(t, x, y, height)
    if last < 1.0:
        _arc(t, y, q, height, square, radius)


@kernel
def _face(sums, polygon, count, n, radius, t):
    """Add the cone on the face polygon[0, :count] with the outward normal `n`; the ball is about the origin of sums."""
    o = sums.origin
    h = n[0] * (polygon[0, 0, 0] - o[0]) + n[1] * (polygon[0, 0, 1] - o[1]) + n[2] * (polygon[0, 0, 2] - o[2])
    x, y, z, reach = around(polygon, count)
    x, y, z, reach = x - o[0], y - o[1], z - o[2], reach + radius
    if abs(h) >= radius or x * x + y * y + z * z >= reach * reach:
        return
    u, v = _perpendicular_axes(n)
    square, height = (radius - abs(h)) * (radius + abs(h)), abs(h)
    for k in range(16):
        t[k] = 0.0
    p = _flat(polygon, count - 1, o, u, v)
    for k in range(count):
        q = _flat(polygon, k, o, u, v)
        _edge(t, p, q, height, square, radius)
        p = q
    if t[0] <= 0.0:
        return
    sign = 1.0 if h >= 0.0 else -1.0
    third = t[6] / 3.0
    _turn(t[0], t[1], t[2], t[0] * h, t[3], t[4], t[0] * h * h, t[5], t[1] * h, t[2] * h, u, v, n, sums.piece)
    add_solid(sums, h, 1.0)
    add_patch(sums, n[0], n[1], n[2], 1.0)
    _turn(
        t[6], t[7], t[8], sign * t[9], third + t[10], third + t[11], third + t[12],
        t[13], sign * t[14], sign * t[15], u, v, n, sums.piece,
    )  # fmt: skip
    s, q, r = sums.solid, sums.piece, sign * radius**3
    s[0] -= r / 3.0 * q[0]
    for k in range(1, 4):
        s[k] -= r * radius / 4.0 * q[k]
    for k in range(4, 10):
        s[k] -= r * radius * radius / 5.0 * q[k]


@inline
def _turn(one, x, y, z, xx, yy, zz, xy, xz, yz, u, v, n, q):
    """Moments in the axes u, v, n, written to `q` in the axes in which these are given."""
    q[0] = one
    for k in range(3):
        q[1 + k] = x * u[k] + y * v[k] + z * n[k]
    a = _axes(xx, xy, xz, u, v, n)
    b = _axes(xy, yy, yz, u, v, n)
    c = _axes(xz, yz, zz, u, v, n)
    q[4] = u[0] * a[0] + v[0] * b[0] + n[0] * c[0]
    q[5] = u[1] * a[1] + v[1] * b[1] + n[1] * c[1]
    q[6] = u[2] * a[2] + v[2] * b[2] + n[2] * c[2]
    q[7] = u[0] * a[1] + v[0] * b[1] + n[0] * c[1]
    q[8] = u[0] * a[2] + v[0] * b[2] + n[0] * c[2]
    q[9] = u[1] * a[2] + v[1] * b[2] + n[1] * c[2]


@inline
def _axes(x, y, z, u, v, n):
    return (
        x * u[0] + y * v[0] + z * n[0],
        x * u[1] + y * v[1] + z * n[1],
        x * u[2] + y * v[2] + z * n[2],
    )


@inline
def _perpendicular_axes(n):
    """Two unit vectors perpendicular to `n`, so that u, v, n is right-handed."""
    if abs(n[2]) < 0.7:
        u = unit((-n[1], n[0], 0.0))
    else:
        u = unit((0.0, -n[2], n[1]))
    return u, cross(n, u)


@inline
def _flat(polygon, k, o, u, v):
    p = (polygon[0, k, 0] - o[0], polygon[0, k, 1] - o[1], polygon[0, k, 2] - o[2])
    return dot(p, u), dot(p, v)


@kernel
def _close(sums, radius, inside):
    """Add the whole ball if its centre is inside: by the sign of the sum, or `inside` if the sum is close to zero."""
    volume = 4.0 / 3.0 * math.pi * radius**3
    if abs(sums.solid[0]) > CERTAIN * volume:
        inside = sums.solid[0] < 0.0
    if inside:
        _add_ball(sums, radius)


@kernel
def ball_solid(sums, c, radius, solid, cutter):
    """A ball about `c` and a convex polyhedron."""
    set_origin(sums, c[0], c[1], c[2])
    inside = True
    for f in range(solid.many[1]):
        n = (solid.plane[f, 0], solid.plane[f, 1], solid.plane[f, 2])
        h = solid.plane[f, 3] - dot(n, c)
        inside = inside and h >= 0.0
        if h <= -radius:
            return
        if h < radius:
            _face(sums, cutter.polygon, take_face(solid, f, cutter.polygon), n, radius, cutter.border)
    _close(sums, radius, inside)


@kernel
def _triangle(sums, c, radius, cutter, x, y, z):
    """The triangle xyz of a surface, if it is near the ball."""
    if (
        min(x[0], y[0], z[0]) > c[0] + radius
        or max(x[0], y[0], z[0]) < c[0] - radius
        or min(x[1], y[1], z[1]) > c[1] + radius
        or max(x[1], y[1], z[1]) < c[1] - radius
        or min(x[2], y[2], z[2]) > c[2] + radius
        or max(x[2], y[2], z[2]) < c[2] - radius
    ):
        return
    put_triangle(cutter.polygon, x, y, z)
    _face(sums, cutter.polygon, 3, unit(cross(sub(y, x), sub(z, x))), radius, cutter.border)


@kernel
def ball_mesh(sums, c, radius, mesh, m, cutter):
    """A ball about `c` and the inside of mesh `m`."""
    set_origin(sums, c[0], c[1], c[2])
    low, high = (c[0] - radius, c[1] - radius, c[2] - radius), (c[0] + radius, c[1] + radius, c[2] + radius)
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    while node < end:
        if not meets(mesh, node, low, high):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            _triangle(sums, c, radius, cutter, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
        node += 1
    _close(sums, radius, _is_inside(mesh, m, c))


@kernel
def _is_inside(mesh, m, c):
    """Whether a ray from `c` up along z leaves the mesh once more than it enters it."""
    node, end, count = mesh.first_node[m], mesh.first_node[m + 1], 0
    high = (c[0], c[1], math.inf)
    while node < end:
        if not meets(mesh, node, c, high):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            x, y, z = sub(corner(mesh, t, 0), c), sub(corner(mesh, t, 1), c), sub(corner(mesh, t, 2), c)
            a, b, d = _winds(x, y), _winds(y, z), _winds(z, x)
            if a + b + d != 0:
                n = cross(sub(y, x), sub(z, x))
                if dot(n, x) * n[2] > 0.0:
                    count += 1 if n[2] > 0.0 else -1
        node += 1
    return count > 0


@inline
def _winds(a, b):
    """1 or -1 if the edge ab, seen along z, passes the origin's positive x axis, up or down; else 0."""
    if (a[1] < 0.0) == (b[1] < 0.0):
        return 0
    det = a[0] * b[1] - a[1] * b[0]
    if a[1] < 0.0:
        return 1 if det > 0.0 else 0
    return -1 if det < 0.0 else 0


@kernel
def ball_field(sums, c, radius, field, f, cutter):
    """A ball about `c` and the ground below field `f`."""
    set_origin(sums, c[0], c[1], c[2])
    x0, y0, x1, y1 = cells(field, f, c[0] - radius, c[1] - radius, c[0] + radius, c[1] + radius)
    for x in range(x0, x1):
        for y in range(y0, y1):
            for k in range(2):
                a, b, d = triangle(field, f, x, y, k)
                _triangle(sums, c, radius, cutter, a, b, d)
            for k in range(4):
                there, a, b, d, e = wall(field, f, x, y, k, c[2] - 2.0 * radius)
                if there:
                    _triangle(sums, c, radius, cutter, a, b, d)
                    _triangle(sums, c, radius, cutter, a, d, e)
    inside, _, _, _ = below(field, f, c)
    _close(sums, radius, inside)
