"""Volume integrals over the overlap of two solids, summed over the pieces of its surface.

The surface of an overlap is what each solid's surface has inside the other. A flat piece of it with the outward unit
normal n, seen from a point o, is the base of a pyramid of height d = n . (x - o), with the integrals of its base:

    volume  d/3 ∫ dA        ∫ x dV = d/4 ∫ x dA        ∫ x x' dV = d/5 ∫ x x' dA        (x measured from o)

Added over all pieces they are the integrals of the solid, by the divergence theorem, wherever o is. It is put on the
first piece found, so that nothing cancels however thin the overlap is.

The contact plane and its patch come from the pieces of one of the two surfaces: with the contour in which the surfaces
meet, the sums of n, x n' and x x' n over the pieces are those of any surface that the contour bounds (Stokes).

Ref: Luaces 4.6-4.10 (what is needed), 4.89-4.93 (plane and centroid of a contour). His plane is the least squares fit
of the vertices of the contour, which turns when a straight part gets one vertex more; here it is the plane on which the
projected contour has the largest area: the same for a flat contour, and always perpendicular to the direction in which
the volume falls fastest when body i moves. With n and the area A of the patch, a small move u of body i changes the
volume by -A n . u. Area and centroid are those of the projected contour (4.93); the plane goes through the centroid of
the volume, so that rho_n in 4.8 has no part along n.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, F3, I1, zeros
from plant.collision.model import Kind
from plant.collision.vec3 import cross, dot, sub, unit, vector_to_world

APART, FOUND, ENCLOSED, TOO_MANY, UNKNOWN = 0, 1, 2, 3, 4
NO_CONTOUR = 1e-6  # of volume^(2/3): with a smaller area vector the surfaces' contour tells no direction
SMALLEST = 1e-13  # of the smaller shape's bound^3: a smaller volume is rounding
PLANE, FIELD = int(Kind.PLANE), int(Kind.FIELD)


class Overlap(NamedTuple):
    """What two solids have in common, in world axes; the first is shape i, the second shape j."""

    status: I1  # [1] APART, FOUND, ENCLOSED (no contour, area 0, a guess for a normal), TOO_MANY, UNKNOWN
    volume: F1  # [1] m^3
    centroid: F1  # [3] of the volume, m
    inertia: F2  # [3, 3] of the volume about its centroid, for a density of 1, m^5: J_c in Luaces 4.7 and 4.10
    normal: F1  # [3] unit, of the contact plane, from j towards i
    area: F1  # [1] of the contour projected on the contact plane, m^2; volume / area is the mean depth
    point: F1  # [3] centroid of that patch, in the contact plane through the volume's centroid, m
    patch: F2  # [3, 3] inertia of the patch about `point`, for 1 kg/m^2, m^4


class Regions(NamedTuple):
    """What contacts by volume know beyond their place in the list of contacts, where the centroid is their point."""

    volume: F1  # [c] m^3; 0 = they only come near
    area: F1  # [c] m^2
    at: F2  # [c, 3] centroid of the patch, m
    inertia: F3  # [c, 3, 3] of the volume, m^5
    patch: F3  # [c, 3, 3] inertia of the patch, m^4


class Sums(NamedTuple):
    """Integrals so far, in the frame of shape j and about `origin`."""

    origin: F1  # [4] and 1 once it is set
    solid: F1  # [10] of 1, x, y, z, xx, yy, zz, xy, xz, yz over the volume
    patch: F1  # [30] of the same over pieces of one surface, times the normal's x, then y, then z
    piece: F1  # [10] of the same over one piece


def new_overlap() -> Overlap:
    """Room for one answer."""
    one = np.zeros(1)
    square = np.zeros((3, 3))
    return Overlap(np.zeros(1, np.int64), one, np.zeros(3), square, np.zeros(3), one.copy(), np.zeros(3), square.copy())


def new_regions(count: int) -> Regions:
    """Room for so many contacts by volume."""
    square = (count, 3, 3)
    made: Regions = zeros(Regions, {"at": (count, 3), "inertia": square, "patch": square}, count)
    return made


def new_sums() -> Sums:
    """Room for the integrals of one pair."""
    return Sums(np.zeros(4), np.zeros(10), np.zeros(30), np.zeros(10))


@inline
def mean_depth(volume, area):
    """How deep an overlap is: the mean over its patch, or the side of a cube if one shape is inside the other [m]."""
    return volume / area if area > 0.0 else volume ** (1.0 / 3.0)


@kernel
def keep_region(out, region, c):
    """Overlap `out` as that of contact `c`."""
    region.volume[c], region.area[c] = out.volume[0], out.area[0]
    for k in range(3):
        region.at[c, k] = out.point[k]
        for m in range(3):
            region.inertia[c, k, m], region.patch[c, k, m] = out.inertia[k, m], out.patch[k, m]


@kernel
def clear(sums):
    """Begin with nothing."""
    sums.origin[3] = 0.0
    for k in range(10):
        sums.solid[k] = 0.0
    for k in range(30):
        sums.patch[k] = 0.0


@inline
def set_origin(sums, x, y, z):
    """Measure from here."""
    sums.origin[0], sums.origin[1], sums.origin[2], sums.origin[3] = x, y, z, 1.0


@kernel
def measure(sums, polygon, side, count, nx, ny, nz):
    """Integrals over the flat polygon[side, :count], counter-clockwise about n, into `piece`; returns its height d."""
    if sums.origin[3] == 0.0:
        set_origin(sums, polygon[side, 0, 0], polygon[side, 0, 1], polygon[side, 0, 2])
    o, n = (sums.origin[0], sums.origin[1], sums.origin[2]), (nx, ny, nz)
    a = (polygon[side, 0, 0] - o[0], polygon[side, 0, 1] - o[1], polygon[side, 0, 2] - o[2])
    b = (polygon[side, 1, 0] - o[0], polygon[side, 1, 1] - o[1], polygon[side, 1, 2] - o[2])
    s0 = sx = sy = sz = xx = yy = zz = xy = xz = yz = 0.0
    for k in range(2, count):
        c = (polygon[side, k, 0] - o[0], polygon[side, k, 1] - o[1], polygon[side, k, 2] - o[2])
        w = dot(n, cross(sub(b, a), sub(c, a))) / 24.0
        x, y, z = a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2]
        s0 += w
        sx += w * x
        sy += w * y
        sz += w * z
        xx += w * (a[0] * a[0] + b[0] * b[0] + c[0] * c[0] + x * x)
        yy += w * (a[1] * a[1] + b[1] * b[1] + c[1] * c[1] + y * y)
        zz += w * (a[2] * a[2] + b[2] * b[2] + c[2] * c[2] + z * z)
        xy += w * (a[0] * a[1] + b[0] * b[1] + c[0] * c[1] + x * y)
        xz += w * (a[0] * a[2] + b[0] * b[2] + c[0] * c[2] + x * z)
        yz += w * (a[1] * a[2] + b[1] * b[2] + c[1] * c[2] + y * z)
        b = c
    q = sums.piece
    q[0], q[1], q[2], q[3] = 12.0 * s0, 4.0 * sx, 4.0 * sy, 4.0 * sz
    q[4], q[5], q[6], q[7], q[8], q[9] = xx, yy, zz, xy, xz, yz
    return dot(n, a)


@kernel
def add_solid(sums, height, sign):
    """Add (sign 1) or take away (-1) the pyramid on the piece measured last."""
    q, s = sums.piece, sums.solid
    s[0] += sign * height / 3.0 * q[0]
    for k in range(1, 4):
        s[k] += sign * height / 4.0 * q[k]
    for k in range(4, 10):
        s[k] += sign * height / 5.0 * q[k]


@kernel
def add_patch(sums, nx, ny, nz, sign):
    """Add the piece measured last, with the normal n, to the patch."""
    q, s = sums.piece, sums.patch
    nx, ny, nz = sign * nx, sign * ny, sign * nz
    for k in range(10):
        s[k] += q[k] * nx
        s[10 + k] += q[k] * ny
        s[20 + k] += q[k] * nz


@inline
def _write_inertia(rot, xx, yy, zz, xy, xz, yz, out):
    """`out` = the inertia tensor in world axes from second moments in the frame `rot`."""
    a = vector_to_world(rot, (yy + zz, -xy, -xz))  # columns of R J, then rows of R (R J)' = R J R'
    b = vector_to_world(rot, (-xy, xx + zz, -yz))
    c = vector_to_world(rot, (-xz, -yz, xx + yy))
    for k in range(3):
        out[k, 0], out[k, 1], out[k, 2] = vector_to_world(rot, (a[k], b[k], c[k]))


@inline
def _away(shape, placed, i, j):
    """Normal where there is no contour to take it from: out of a plane or field, else from the origin of j to i's."""
    p, q = placed.pos[i], placed.pos[j]
    if shape.kind[j] == PLANE or shape.kind[j] == FIELD:
        return vector_to_world(placed.rot[j], (0.0, 0.0, 1.0))
    if shape.kind[i] == PLANE:
        return vector_to_world(placed.rot[i], (0.0, 0.0, -1.0))
    return unit((p[0] - q[0], p[1] - q[1], p[2] - q[2]))


@kernel
def nothing(out, status):
    """No overlap, and why."""
    out.status[0], out.volume[0], out.area[0] = status, 0.0, 0.0
    for k in range(3):
        out.centroid[k] = out.normal[k] = out.point[k] = 0.0
        for m in range(3):
            out.inertia[k, m] = out.patch[k, m] = 0.0
    return 0


@kernel
def finish(sums, shape, placed, i, j, out):
    """The answer for shapes i and j, in world axes. Returns 1 if there is an overlap."""
    s, rot = sums.solid, placed.rot[j]
    volume = s[0]
    if not volume > SMALLEST * min(shape.bound[i], shape.bound[j]) ** 3:
        return nothing(out, APART)
    x, y, z = s[1] / volume, s[2] / volume, s[3] / volume
    out.status[0], out.volume[0] = FOUND, volume
    _write_point(placed, j, sums.origin, x, y, z, out.centroid)
    _write_inertia(
        rot,
        max(s[4] - volume * x * x, 0.0),
        max(s[5] - volume * y * y, 0.0),
        max(s[6] - volume * z * z, 0.0),
        s[7] - volume * x * y,
        s[8] - volume * x * z,
        s[9] - volume * y * z,
        out.inertia,
    )
    _finish_patch(sums, shape, placed, i, j, volume, (x, y, z), out)
    return 1


@kernel
def _finish_patch(sums, shape, placed, i, j, volume, centre, out):
    """Contact plane and patch; `centre` is the volume's centroid, seen from the origin of the sums."""
    t, rot = sums.patch, placed.rot[j]
    area = math.sqrt(t[0] * t[0] + t[10] * t[10] + t[20] * t[20])
    if area <= NO_CONTOUR * volume ** (2.0 / 3.0):
        out.status[0], out.area[0] = ENCLOSED, 0.0
        out.normal[0], out.normal[1], out.normal[2] = _away(shape, placed, i, j)
        for k in range(3):
            out.point[k] = out.centroid[k]
            out.patch[k, 0] = out.patch[k, 1] = out.patch[k, 2] = 0.0
        return
    n = (t[0] / area, t[10] / area, t[20] / area)
    x, y, z = _along(t, 1, n) / area, _along(t, 2, n) / area, _along(t, 3, n) / area
    lift = dot(n, centre) - dot(n, (x, y, z))
    out.area[0] = area
    out.normal[0], out.normal[1], out.normal[2] = vector_to_world(rot, n)
    _write_point(placed, j, sums.origin, x + lift * n[0], y + lift * n[1], z + lift * n[2], out.point)
    # Second moments about the centroid, without what is along n: Q = P M P with P = 1 - n n'.
    xx, yy, zz = _along(t, 4, n) - area * x * x, _along(t, 5, n) - area * y * y, _along(t, 6, n) - area * z * z
    xy, xz, yz = _along(t, 7, n) - area * x * y, _along(t, 8, n) - area * x * z, _along(t, 9, n) - area * y * z
    u, v, w = dot((xx, xy, xz), n), dot((xy, yy, yz), n), dot((xz, yz, zz), n)
    nn = dot((u, v, w), n)
    _write_inertia(
        rot,
        xx - 2.0 * u * n[0] + nn * n[0] * n[0],
        yy - 2.0 * v * n[1] + nn * n[1] * n[1],
        zz - 2.0 * w * n[2] + nn * n[2] * n[2],
        xy - u * n[1] - v * n[0] + nn * n[0] * n[1],
        xz - u * n[2] - w * n[0] + nn * n[0] * n[2],
        yz - v * n[2] - w * n[1] + nn * n[1] * n[2],
        out.patch,
    )


@inline
def _along(t, k, n):
    """The patch integral number `k`, with the part of the normals along `n`."""
    return t[k] * n[0] + t[10 + k] * n[1] + t[20 + k] * n[2]


@inline
def _write_point(placed, j, origin, x, y, z, out):
    p = vector_to_world(placed.rot[j], (origin[0] + x, origin[1] + y, origin[2] + z))
    for k in range(3):
        out[k] = placed.pos[j, k] + p[k]
