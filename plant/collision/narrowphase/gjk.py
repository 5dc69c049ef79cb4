"""GJK: the distance between two convex cores, by the algorithm of Gilbert, Johnson and Keerthi.

The two cores are apart exactly if their difference A - B does not hold the origin, and the point of the difference
closest to the origin is the shortest way between them. The difference is never built: a simplex of up to four of its
points is moved towards the origin, one support point at a time.

Everything is in the frame of the first shape, so that numbers stay as small as the shapes are.

Ref: Luaces 4.8 names it for general polyhedra; Gilbert, Johnson, Keerthi 1988; van den Bergen, "A fast and robust GJK
implementation", 1999 (ends when the lower bound v.w / |v| meets the upper bound |v|).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, I2, viewer
from plant.collision.shape.support import HULL, core_support
from plant.numeric.algebra import cross

FAR, APART, OVERLAP = 0, 1, 2
STEPS = 100  # more than any pair needs; curved ones take up to some 40
CORNERS = 128  # vertices of the polytope that grows inside overlapping cores
SIDES = 32  # corners of a face that are used for clipping


class ConvexScratch(NamedTuple):
    """Room to work for pairs of convex shapes; holds nothing between two calls."""

    place: F1  # [12] frame of the second shape in that of the first: rotation by rows, origin
    start: I1  # [2] vertex of each hull found last
    corners: I1  # [1] how many corners the simplex has
    w: F2  # [CORNERS, 3] points of the difference A - B; the first `corners` are the simplex
    a: F2  # [CORNERS, 3] the points of A they come from
    share: F1  # [4] weight of each corner of the simplex in the closest point
    result: F1  # [11] normal from B to A, distance (negative: overlap), closest points on A and on B, gap along normal
    face: I2  # [2 CORNERS, 3] triangles of the polytope
    plane: F2  # [2 CORNERS, 5] their outward normals, distances from the origin, and the rounding of these
    beside: I2  # [2 CORNERS, 3] the triangle across each edge; the edge begins at that corner
    seen: I1  # [2 CORNERS] triangles that a new corner sees
    mark: I1  # [2 CORNERS] the corner that saw a triangle last
    edge: I2  # [2 CORNERS, 3] border of what a new corner sees: from, to, triangle beyond
    leaves: I1  # [CORNERS] the new triangle on the border edge that leaves a corner
    polygon: F2  # [4, 2 SIDES, 3] flattened to rows: touching faces of A and B, and two for clipping
    label: I2  # [2, 2 SIDES] names of the edges of the polygon that is clipped


view_convex_scratch = viewer(ConvexScratch)


def new_convex_scratch() -> ConvexScratch:
    """Room for one pair at a time; one per thread."""
    return ConvexScratch(
        place=np.zeros(12),
        start=np.zeros(2, np.int64),
        corners=np.zeros(1, np.int64),
        w=np.zeros((CORNERS, 3)),
        a=np.zeros((CORNERS, 3)),
        share=np.zeros(4),
        result=np.zeros(11),
        face=np.zeros((2 * CORNERS, 3), np.int64),
        plane=np.zeros((2 * CORNERS, 5)),
        beside=np.zeros((2 * CORNERS, 3), np.int64),
        seen=np.zeros(2 * CORNERS, np.int64),
        mark=np.zeros(2 * CORNERS, np.int64),
        edge=np.zeros((2 * CORNERS, 3), np.int64),
        leaves=np.zeros(CORNERS, np.int64),
        polygon=np.zeros((4 * 2 * SIDES, 3)),
        label=np.zeros((2, 2 * SIDES), np.int64),
    )


@inline
def relate(shape, placed, hull, s, i, j):
    """Put the frame of shape j, seen from that of shape i, into the scratch; returns the distance of their origins."""
    r, p, place = placed.rot, placed.pos, s.place
    x, y, z = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
    for k in range(3):
        a, b, c = r[i, 0, k], r[i, 1, k], r[i, 2, k]
        for m in range(3):
            place[3 * k + m] = a * r[j, 0, m] + b * r[j, 1, m] + c * r[j, 2, m]
        place[9 + k] = a * x + b * y + c * z
    s.start[0] = hull.first[shape.asset[i]] if shape.kind[i] == HULL else 0
    s.start[1] = hull.first[shape.asset[j]] if shape.kind[j] == HULL else 0
    return math.sqrt(x * x + y * y + z * z)


@kernel
def difference_support(shape, hull, s, i, j, k, dx, dy, dz):
    """Corner k = the point of A - B farthest along (dx, dy, dz), in the frame of A."""
    p = s.place
    ax, ay, az, at_a = core_support(shape, hull, i, s.start[0], dx, dy, dz)
    lx = -(p[0] * dx + p[3] * dy + p[6] * dz)
    ly = -(p[1] * dx + p[4] * dy + p[7] * dz)
    lz = -(p[2] * dx + p[5] * dy + p[8] * dz)
    bx, by, bz, at_b = core_support(shape, hull, j, s.start[1], lx, ly, lz)
    s.start[0], s.start[1] = at_a, at_b
    s.a[k, 0], s.a[k, 1], s.a[k, 2] = ax, ay, az
    s.w[k, 0] = ax - (p[0] * bx + p[1] * by + p[2] * bz + p[9])
    s.w[k, 1] = ay - (p[3] * bx + p[4] * by + p[5] * bz + p[10])
    s.w[k, 2] = az - (p[6] * bx + p[7] * by + p[8] * bz + p[11])


@kernel
def separate(shape, hull, s, i, j, far, scale, vx, vy, vz):
    """FAR if the cores are farther apart than `far`, APART with the result filled, or OVERLAP with a simplex.

    `v` is where to begin: a direction that may separate, from B to A. `scale` [m] is the size of the pair: what is
    nearer than rounding can tell counts as overlap. When FAR, the result's normal is the direction that showed it.
    When APART, the distance is less than the result's, if at all, and no less than the gap along its normal.
    """
    w, n, gap = s.w, 0, -math.inf
    tiny = 1e-13 * scale
    if vx * vx + vy * vy + vz * vz < tiny * tiny:
        vx, vy, vz = 1.0, 0.0, 0.0
    vv = vx * vx + vy * vy + vz * vz
    for step in range(STEPS):
        difference_support(shape, hull, s, i, j, n, -vx, -vy, -vz)
        x, y, z = w[n, 0], w[n, 1], w[n, 2]
        vw = vx * x + vy * y + vz * z
        size = math.sqrt(vv)
        gap = vw / size
        if gap > far:
            s.result[0], s.result[1], s.result[2] = vx / size, vy / size, vz / size
            return FAR
        if n > 0:
            if vv - vw <= size * (1e-9 * size + tiny):
                break
            if _known(w, n, x, y, z):
                break
        s.corners[0] = n + 1
        kx, ky, kz = vx, vy, vz
        inside, vx, vy, vz = _nearest(s)
        n = s.corners[0]
        before, vv = vv, vx * vx + vy * vy + vz * vz
        if inside or vv <= tiny * tiny:
            return OVERLAP
        if step > 0 and vv >= before:  # the corners are too close: one of the two steps is rounding, so ask the shapes
            difference_support(shape, hull, s, i, j, n, -vx, -vy, -vz)
            now = (vx * w[n, 0] + vy * w[n, 1] + vz * w[n, 2]) / math.sqrt(vv)
            if gap > now:
                vx, vy, vz = kx, ky, kz
            gap = max(gap, now)
            break
    s.corners[0], s.result[10] = n, gap
    _finish(s, vx, vy, vz)
    return APART if s.result[3] <= far else FAR


@inline
def _known(w, n, x, y, z):
    """Whether the point is one of the first n corners already."""
    found = False
    for k in range(n):
        found |= w[k, 0] == x and w[k, 1] == y and w[k, 2] == z
    return found


@inline
def _finish(s, vx, vy, vz):
    """The result from the simplex and the shares of its corners."""
    size = math.sqrt(vx * vx + vy * vy + vz * vz)
    nx, ny, nz = vx / size, vy / size, vz / size
    ax, ay, az = 0.0, 0.0, 0.0
    for k in range(s.corners[0]):
        ax += s.share[k] * s.a[k, 0]
        ay += s.share[k] * s.a[k, 1]
        az += s.share[k] * s.a[k, 2]
    r = s.result
    r[0], r[1], r[2], r[3] = nx, ny, nz, size
    r[4], r[5], r[6] = ax, ay, az
    r[7], r[8], r[9] = ax - vx, ay - vy, az - vz


@kernel
def _nearest(s):
    """Reduce the simplex to the corners that carry its point closest to the origin.

    Returns whether the origin is inside a tetrahedron, and that point.
    """
    w, n = s.w, s.corners[0]
    if n == 1:
        s.share[0] = 1.0
        return False, w[0, 0], w[0, 1], w[0, 2]
    if n == 2:
        u, v, _, x, y, z = _on_line(w[0, 0], w[0, 1], w[0, 2], w[1, 0], w[1, 1], w[1, 2])
        _keep(s, 0, 1, -1, u, v, 0.0)
        return False, x, y, z
    if n == 3:
        u, v, p, x, y, z = _on_triangle(s, 0, 1, 2)
        _keep(s, 0, 1, 2, u, v, p)
        return False, x, y, z
    best, bu, bv, bp, bx, by, bz, bi, bj = math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0
    for e in range(3):
        i, j, k = e, (e + 1) % 3, (e + 2) % 3
        if _outside(w, i, j, k):
            u, v, p, x, y, z = _on_triangle(s, i, j, 3)
            if x * x + y * y + z * z < best:
                best, bu, bv, bp, bx, by, bz, bi, bj = x * x + y * y + z * z, u, v, p, x, y, z, i, j
    if best == math.inf:
        return True, 0.0, 0.0, 0.0
    _keep(s, bi, bj, 3, bu, bv, bp)
    return False, bx, by, bz


@inline
def _outside(w, i, j, k):
    """Whether the origin is beyond the face (i, j, 3) of the tetrahedron, or the tetrahedron too flat to say."""
    ax, ay, az = w[i, 0] - w[3, 0], w[i, 1] - w[3, 1], w[i, 2] - w[3, 2]
    bx, by, bz = w[j, 0] - w[3, 0], w[j, 1] - w[3, 1], w[j, 2] - w[3, 2]
    cx, cy, cz = w[k, 0] - w[3, 0], w[k, 1] - w[3, 1], w[k, 2] - w[3, 2]
    nx, ny, nz = cross(ax, ay, az, bx, by, bz)
    inner = nx * cx + ny * cy + nz * cz
    origin = -(nx * w[3, 0] + ny * w[3, 1] + nz * w[3, 2])
    thick = inner * inner
    flat = 1e-26 * (nx * nx + ny * ny + nz * nz) * (cx * cx + cy * cy + cz * cz)
    return thick <= flat or (origin < 0.0) == (inner > 0.0)


@inline
def _on_line(ax, ay, az, bx, by, bz):
    """Shares of a and b in the point of their line closest to the origin, a 0, and that point."""
    dx, dy, dz = bx - ax, by - ay, bz - az
    dd = dx * dx + dy * dy + dz * dz
    t = -(ax * dx + ay * dy + az * dz)
    if t <= 0.0:
        return 1.0, 0.0, 0.0, ax, ay, az
    if t >= dd:
        return 0.0, 1.0, 0.0, bx, by, bz
    t /= dd
    return 1.0 - t, t, 0.0, ax + t * dx, ay + t * dy, az + t * dz


@inline
def _areas(w, i, j, k, x, y, z, nx, ny, nz):
    """Areas, times the length of n, of the triangles that the point makes with the sides across from i, j, k.

    Measured from the point, not from the origin: so small triangles far away keep their digits.
    """
    ax, ay, az = w[i, 0] - x, w[i, 1] - y, w[i, 2] - z
    bx, by, bz = w[j, 0] - x, w[j, 1] - y, w[j, 2] - z
    cx, cy, cz = w[k, 0] - x, w[k, 1] - y, w[k, 2] - z
    px, py, pz = cross(bx, by, bz, cx, cy, cz)
    qx, qy, qz = cross(cx, cy, cz, ax, ay, az)
    rx, ry, rz = cross(ax, ay, az, bx, by, bz)
    return px * nx + py * ny + pz * nz, qx * nx + qy * ny + qz * nz, rx * nx + ry * ny + rz * nz


@inline
def _on_triangle(s, i, j, k):
    """Shares of corners i, j, k in the point of their triangle closest to the origin, and that point.

    Over the inside the point is taken along the triangle's normal, which stays exact however near the origin is.
    """
    w = s.w
    ax, ay, az = w[i, 0], w[i, 1], w[i, 2]
    bx, by, bz = w[j, 0], w[j, 1], w[j, 2]
    cx, cy, cz = w[k, 0], w[k, 1], w[k, 2]
    nx, ny, nz = cross(bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az)
    nn = nx * nx + ny * ny + nz * nz
    t = (ax * nx + ay * ny + az * nz) / nn if nn > 0.0 else 0.0
    ox, oy, oz = t * nx, t * ny, t * nz
    u, v, p = _areas(w, i, j, k, ox, oy, oz, nx, ny, nz)
    if u > 0.0 and v > 0.0 and p > 0.0 and nn > 0.0:
        whole = 1.0 / (u + v + p)
        return u * whole, v * whole, p * whole, ox, oy, oz
    bu, bv, bp, x, y, z = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    best = math.inf
    if u <= 0.0 or nn == 0.0:
        f, g, _, ex, ey, ez = _on_line(bx, by, bz, cx, cy, cz)
        best, bu, bv, bp, x, y, z = ex * ex + ey * ey + ez * ez, 0.0, f, g, ex, ey, ez
    if v <= 0.0 or nn == 0.0:
        f, g, _, ex, ey, ez = _on_line(cx, cy, cz, ax, ay, az)
        if ex * ex + ey * ey + ez * ez < best:
            best, bu, bv, bp, x, y, z = ex * ex + ey * ey + ez * ez, g, 0.0, f, ex, ey, ez
    if p <= 0.0 or nn == 0.0:
        f, g, _, ex, ey, ez = _on_line(ax, ay, az, bx, by, bz)
        if ex * ex + ey * ey + ez * ez < best:
            best, bu, bv, bp, x, y, z = ex * ex + ey * ey + ez * ez, f, g, 0.0, ex, ey, ez
    return bu, bv, bp, x, y, z


@inline
def _keep(s, i, j, k, u, v, p):
    """Leave in the simplex those of the corners i < j < k (k = -1: none) whose share is not 0; i may be above j."""
    n = 0
    if i > j:
        i, j, u, v = j, i, v, u
    if u > 0.0:
        n = _move(s, i, n, u)
    if v > 0.0:
        n = _move(s, j, n, v)
    if k >= 0 and p > 0.0:
        n = _move(s, k, n, p)
    s.corners[0] = n


@inline
def _move(s, k, n, share):
    """Corner k becomes corner n."""
    for m in range(3):
        s.w[n, m] = s.w[k, m]
        s.a[n, m] = s.a[k, m]
    s.share[n] = share
    return n + 1
