"""EPA: the penetration depth of two convex cores, by a polytope that expands inside their Minkowski difference A - B.

The shortest push that parts the cores leads from the origin to the closest point of the difference's surface. The
polytope begins as a tetrahedron; the face closest to the origin is the lower bound of the depth, the support point
beyond that face gives an upper one and a new corner, until the two bounds meet. On polyhedra they meet exactly. On
curved shapes they meet to a given part of the depth, or not at all where a ball sits next to the axis of a cylinder and
all directions are nearly as good; there the best push found is polished, which keeps it a push that parts the two.

The side of a face is told by the order of its corners and never by the origin, so that an origin on the surface, as
when two shapes just touch, is like any other.

Ref: van den Bergen, "Proximity queries and penetration depth computation on 3D game objects", 2001.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.gjk import APART, CORNERS, difference_support, separate
from plant.numeric.algebra import cross

POLISH = 20  # rounds of polishing where the bounds did not meet
ASKEW = 1e-6  # 1 - cosine between the push and the normal of a face that it may cross


@kernel
def penetrate(shape, hull, s, i, j, scale, loose):
    """Fill the result for overlapping cores from the simplex that `separate` left.

    `loose` is how far the bounds of the depth may be apart, as a part of it: 0 for polyhedra.
    """
    corners = _solid(shape, hull, s, i, j, 1e-12 * scale)
    if corners < 4:
        return
    faces = _tetrahedron(s, scale)
    slack = 1e-14 * scale if loose == 0.0 else 1e-9 * scale
    met = False
    upper, ux, uy, uz, ui, uj, uk = math.inf, 0.0, 0.0, 1.0, 0, 1, 2
    while faces > 0 and corners < CORNERS:
        best = 0
        for f in range(1, faces):
            if s.plane[f, 3] < s.plane[best, 3]:
                best = f
        nx, ny, nz, d = s.plane[best, 0], s.plane[best, 1], s.plane[best, 2], s.plane[best, 3]
        if d >= upper:
            met = True
            break
        difference_support(shape, hull, s, i, j, corners, nx, ny, nz)
        h = nx * s.w[corners, 0] + ny * s.w[corners, 1] + nz * s.w[corners, 2]
        if h < upper:
            upper, ux, uy, uz = h, nx, ny, nz
            ui, uj, uk = s.face[best, 0], s.face[best, 1], s.face[best, 2]
        if upper - d <= slack + loose * abs(d):
            met = True
            break
        if h - d <= s.plane[best, 4]:
            s.plane[best, 3] = math.inf
            continue
        faces = _grow(s, faces, best, corners, scale)
        corners += 1
    bound = upper + slack + loose * abs(upper)
    ui, uj, uk = _crossed(s, faces, bound, ux, uy, uz, ui, uj, uk)
    _finish(s, ui, uj, uk, -ux, -uy, -uz, upper)
    if loose > 0.0 or not met:
        _polish(shape, hull, s, i, j, scale, 1 if met else POLISH)


@kernel
def tighten(shape, hull, s, i, j, scale):
    """Improve the normal in the result of cores that are apart, but by so little that rounding ended the search.

    Between round cores the simplex becomes as slim as its corners are uncertain, and its closest point has digits only
    for the distance, not for the direction of a gap that is a millionth of the size.
    """
    r = s.result
    difference_support(shape, hull, s, i, j, 0, -r[0], -r[1], -r[2])
    r[3] = r[0] * s.w[0, 0] + r[1] * s.w[0, 1] + r[2] * s.w[0, 2]
    _polish(shape, hull, s, i, j, scale, POLISH)


@kernel
def _polish(shape, hull, s, i, j, scale, rounds):
    """Improve the push in the result, which is near the best, by distances that are easy to compute.

    From a point outside the difference, straight beyond its surface along the push, the closest point of the surface
    gives a push that is never longer. As it creeps where the surface is nearly round about the origin, each step is
    tried at twice, four times ... its angle.
    """
    p, r = s.place, s.result
    tx, ty, tz = p[9], p[10], p[11]
    ux, uy, uz, upper = -r[0], -r[1], -r[2], -r[3]
    for turn in range(rounds):
        reach = 1.1 * max(upper, 0.0) + 1e-3 * scale
        kx, ky, kz, kd, ka, kb, kc = r[0], r[1], r[2], r[3], r[4], r[5], r[6]
        p[9], p[10], p[11] = tx + reach * ux, ty + reach * uy, tz + reach * uz
        state = separate(shape, hull, s, i, j, math.inf, scale, -ux, -uy, -uz)
        p[9], p[10], p[11] = tx, ty, tz
        depth = -reach * (r[0] * ux + r[1] * uy + r[2] * uz) - r[3]
        if state != APART or not depth <= upper:
            r[0], r[1], r[2], r[3], r[4], r[5], r[6] = kx, ky, kz, kd, ka, kb, kc
            break
        gain = upper - depth
        nx, ny, nz = -r[0], -r[1], -r[2]
        r[3] = -depth
        if gain <= 1e-9 * abs(depth) or turn + 1 == rounds:
            break
        upper, ux, uy, uz = _reach_on(shape, hull, s, i, j, depth, ux, uy, uz, nx, ny, nz)
    for m in range(3):
        r[7 + m] = r[4 + m] - r[3] * r[m]


@kernel
def _reach_on(shape, hull, s, i, j, depth, ux, uy, uz, nx, ny, nz):
    """Turn on from u past n, doubling the angle while the depth falls; returns the least depth and its direction."""
    cx, cy, cz = cross(ux, uy, uz, nx, ny, nz)
    vx, vy, vz = cross(cx, cy, cz, ux, uy, uz)
    side = math.sqrt(vx * vx + vy * vy + vz * vz)
    if side <= 1e-14:
        return depth, nx, ny, nz
    angle = math.atan2(side, ux * nx + uy * ny + uz * nz)
    while angle < 1.0:
        angle *= 2.0
        c, v = math.cos(angle), math.sin(angle) / side
        x, y, z = c * ux + v * vx, c * uy + v * vy, c * uz + v * vz
        size = math.sqrt(x * x + y * y + z * z)
        x, y, z = x / size, y / size, z / size
        difference_support(shape, hull, s, i, j, 0, x, y, z)
        h = x * s.w[0, 0] + y * s.w[0, 1] + z * s.w[0, 2]
        if h >= depth:
            break
        depth, nx, ny, nz = h, x, y, z
    return depth, nx, ny, nz


@kernel
def _crossed(s, faces, bound, ux, uy, uz, ui, uj, uk):
    """The face, of those at right angles to the push u and no farther than `bound`, that the push itself crosses.

    Several triangles of the polytope lie in one plane where a face of A is parallel to one of B: their plane is the
    closest, but only one of them holds the point where the push leaves. The corners ui, uj, uk if there is none.
    """
    best = -math.inf
    for f in range(faces):
        p = s.plane[f]
        if p[3] <= bound and p[0] * ux + p[1] * uy + p[2] * uz > 1.0 - ASKEW:
            i, j, k = s.face[f, 0], s.face[f, 1], s.face[f, 2]
            u, v, t = _shares(s.w, i, j, k)
            least = min(u, v, t) / (abs(u) + abs(v) + abs(t))
            if least > best:
                best, ui, uj, uk = least, i, j, k
    return ui, uj, uk


@inline
def _shares(w, i, j, k):
    """Areas, times the same number, of the triangles that the foot of the origin makes with the sides of i, j, k."""
    mx, my, mz, _ = _normal(w, i, j, k)
    px, py, pz = cross(w[j, 0], w[j, 1], w[j, 2], w[k, 0], w[k, 1], w[k, 2])
    qx, qy, qz = cross(w[k, 0], w[k, 1], w[k, 2], w[i, 0], w[i, 1], w[i, 2])
    tx, ty, tz = cross(w[i, 0], w[i, 1], w[i, 2], w[j, 0], w[j, 1], w[j, 2])
    return mx * px + my * py + mz * pz, mx * qx + my * qy + mz * qz, mx * tx + my * ty + mz * tz


@inline
def _finish(s, i, j, k, nx, ny, nz, depth):
    """The result: the witnesses are where the face i, j, k closest to the origin is crossed by its normal."""
    w, a, r = s.w, s.a, s.result
    u, v, t = _shares(w, i, j, k)
    u, v, t = max(0.0, u), max(0.0, v), max(0.0, t)
    whole = u + v + t
    if whole > 0.0:
        u, v, t = u / whole, v / whole, t / whole
    else:
        u, v, t = 1.0, 0.0, 0.0
    r[0], r[1], r[2], r[3] = nx, ny, nz, -depth
    for m in range(3):
        r[4 + m] = u * a[i, m] + v * a[j, m] + t * a[k, m]
        r[7 + m] = r[4 + m] + depth * r[m]


@kernel
def _solid(shape, hull, s, i, j, thin):
    """Make the simplex a tetrahedron that is thicker than `thin`; returns its number of corners.

    Less than 4 if the difference itself is flat (two lines that cross, a point on a line); then the result is filled:
    a push across the flat side.
    """
    n = s.corners[0]
    if n == 4 and abs(_height(s.w, 3)) <= thin:
        n = 3
        s.share[0], s.share[1], s.share[2] = 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0
    known = min(n, 3)
    for m in range(3):
        s.result[4 + m] = 0.0
        for k in range(known):
            s.result[4 + m] += s.share[k] * s.a[k, m]
    if n == 3 and _narrow(s.w, thin):
        n = 2
    if n == 2 and _length(s.w) <= thin:
        n = 1
    while n < 4:
        dx, dy, dz = _perpendicular(s.w, n)
        difference_support(shape, hull, s, i, j, n, dx, dy, dz)
        if _along(s.w, n, dx, dy, dz) <= thin:
            difference_support(shape, hull, s, i, j, n, -dx, -dy, -dz)
            if _along(s.w, n, -dx, -dy, -dz) <= thin:
                _finish_flat(s, dx, dy, dz)
                return n
        n += 1
    return n


@inline
def _finish_flat(s, dx, dy, dz):
    """The push across a flat difference, to the side where A's origin is already."""
    p, r = s.place, s.result
    if dx * p[9] + dy * p[10] + dz * p[11] > 0.0:
        dx, dy, dz = -dx, -dy, -dz
    r[0], r[1], r[2], r[3] = dx, dy, dz, 0.0
    r[7], r[8], r[9] = r[4], r[5], r[6]


@inline
def _along(w, n, dx, dy, dz):
    """How far corner n is beyond corner 0 along the direction."""
    return (w[n, 0] - w[0, 0]) * dx + (w[n, 1] - w[0, 1]) * dy + (w[n, 2] - w[0, 2]) * dz


@inline
def _length(w):
    """Length of the first edge."""
    return math.sqrt(_span(w, 0, 1))


@inline
def _normal(w, i, j, k):
    """Cross product of two edges of the triangle, and its length."""
    x, y, z = cross(
        w[j, 0] - w[i, 0],
        w[j, 1] - w[i, 1],
        w[j, 2] - w[i, 2],
        w[k, 0] - w[i, 0],
        w[k, 1] - w[i, 1],
        w[k, 2] - w[i, 2],
    )
    return x, y, z, math.sqrt(x * x + y * y + z * z)


@inline
def _narrow(w, thin):
    """Whether the first three corners lie on one line."""
    _, _, _, size = _normal(w, 0, 1, 2)
    return size <= thin * max(_length(w), math.sqrt(_span(w, 1, 2)))


@inline
def _height(w, k):
    """Height of corner k above the triangle of the first three; 0 if these have no plane."""
    x, y, z, size = _normal(w, 0, 1, 2)
    return _along(w, k, x, y, z) / size if size > 0.0 else 0.0


@inline
def _perpendicular(w, n):
    """A unit vector perpendicular to the span of the first n corners."""
    if n == 1:
        return 0.0, 0.0, 1.0
    if n == 3:
        x, y, z, size = _normal(w, 0, 1, 2)
        return x / size, y / size, z / size
    x, y, z = w[1, 0] - w[0, 0], w[1, 1] - w[0, 1], w[1, 2] - w[0, 2]
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        x, y, z = 0.0, z, -y
    elif abs(y) <= abs(z):
        x, y, z = -z, 0.0, x
    else:
        x, y, z = y, -x, 0.0
    size = math.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


@inline
def _tetrahedron(s, scale):
    """The four faces of the first four corners, outward; returns 4."""
    i, j = (1, 2) if _height(s.w, 3) < 0.0 else (2, 1)
    _set(s, scale, 0, 0, i, j, 1, 2, 3)
    _set(s, scale, 1, i, 0, 3, 0, 3, 2)
    _set(s, scale, 2, j, i, 3, 0, 1, 3)
    _set(s, scale, 3, 0, j, 3, 0, 2, 1)
    return 4


@kernel
def _set(s, scale, f, i, j, k, ij, jk, ki):
    """Face f = the triangle i, j, k beside three others; one without an area is never the closest and never visible.

    The normal of a thin triangle is uncertain by the rounding of its corners over its width, and with it which
    far corners see it.
    """
    w = s.w
    s.face[f, 0], s.face[f, 1], s.face[f, 2] = i, j, k
    s.beside[f, 0], s.beside[f, 1], s.beside[f, 2] = ij, jk, ki
    s.mark[f] = 0
    x, y, z, size = _normal(w, i, j, k)
    if size > 0.0:
        x, y, z = x / size, y / size, z / size
        s.plane[f, 0], s.plane[f, 1], s.plane[f, 2] = x, y, z
        s.plane[f, 3] = x * w[i, 0] + y * w[i, 1] + z * w[i, 2]
        long = max(_span(w, i, j), _span(w, j, k), _span(w, k, i))
        s.plane[f, 4] = 4e-16 * scale * (1.0 + scale * math.sqrt(long) / size)
    else:
        s.plane[f, 0], s.plane[f, 1], s.plane[f, 2], s.plane[f, 3], s.plane[f, 4] = 0.0, 0.0, 0.0, math.inf, 0.0


@inline
def _span(w, i, j):
    """Square of the distance of two corners."""
    x, y, z = w[j, 0] - w[i, 0], w[j, 1] - w[i, 1], w[j, 2] - w[i, 2]
    return x * x + y * y + z * z


@kernel
def _grow(s, faces, best, k, scale):
    """Replace the faces visible from corner k, found from face `best` on, by faces between their horizon and k.

    Returns how many places for faces are in use, or 0 if rounding has left a horizon that is not one closed loop, or
    there is no room.
    """
    seen = _list_visible_faces(s, best, k)
    edges = _border(s, seen, k)
    if edges < 3 or faces + edges - seen > s.face.shape[0]:
        return 0
    for e in range(edges):
        s.leaves[s.edge[e, 0]] = -1
    for e in range(edges):
        if s.leaves[s.edge[e, 0]] >= 0:
            return 0
        s.leaves[s.edge[e, 0]] = s.seen[e] if e < seen else faces + e - seen
    for e in range(edges):
        i, j, beyond = s.edge[e, 0], s.edge[e, 1], s.edge[e, 2]
        f = s.leaves[i]
        _set(s, scale, f, i, j, k, beyond, s.leaves[j], 0)
        for m in range(3):
            if s.face[beyond, m] == j:
                s.beside[beyond, m] = f
    for e in range(edges):
        f = s.leaves[s.edge[e, 0]]
        s.beside[s.beside[f, 1], 2] = f
    for e in range(edges, seen):
        s.plane[s.seen[e], 3] = math.inf
    return max(faces, faces + edges - seen)


@inline
def _list_visible_faces(s, best, k):
    """List the faces visible from corner k, by a search from face `best` over neighbours; returns how many."""
    x, y, z = s.w[k, 0], s.w[k, 1], s.w[k, 2]
    plane, seen, at = s.plane, 1, 0
    s.seen[0], s.mark[best] = best, k
    while at < seen:
        f = s.seen[at]
        at += 1
        for m in range(3):
            g = s.beside[f, m]
            if s.mark[g] != k and plane[g, 0] * x + plane[g, 1] * y + plane[g, 2] * z - plane[g, 3] > plane[g, 4]:
                s.mark[g] = k
                s.seen[seen] = g
                seen += 1
    return seen


@inline
def _border(s, seen, k):
    """List the horizon: the edges between visible and hidden faces; returns how many."""
    edges = 0
    for at in range(seen):
        f = s.seen[at]
        for m in range(3):
            g = s.beside[f, m]
            if s.mark[g] != k and edges < s.edge.shape[0]:
                s.edge[edges, 0] = s.face[f, m]
                s.edge[edges, 1] = s.face[f, m + 1 if m < 2 else 0]
                s.edge[edges, 2] = g
                edges += 1
    return edges
