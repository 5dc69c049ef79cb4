"""Contacts of any two convex shapes, from their support functions alone.

Apart: GJK gives distance, normal and closest points (gjk.py). Overlapping: EPA gives the shortest push (epa.py). Both
work on the cores; radii of spheres and capsules are added here, which makes those exact. Faces and lines that lie on
each other are then clipped to a patch (patch.py), so that a body at rest stands on the corners of its base.

Accuracy: to rounding for spheres, capsules, boxes and hulls; 1e-6 of the depth where a cylinder or cone takes part.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import POINTS
from plant.collision.narrowphase.epa import penetrate, tighten
from plant.collision.narrowphase.gjk import FAR, OVERLAP, difference_support, relate, separate
from plant.collision.narrowphase.patch import clip_patch, facing
from plant.collision.narrowphase.reduce import reduce
from plant.collision.shape.support import CONE, CYLINDER, climb, radius

MOST = 8  # points of a patch that are kept
LOOSE = 1e-6  # allowed error of the depth of curved shapes before it is polished, as a part of it
ASKEW = 1e-8  # allowed error of the distance of curved shapes, as a part of it; the root of twice that is the normal's
NEARLY = 1e-6  # a normal this near to that of a flat face, as 1 - cosine, may be the same


@kernel
def convex_convex(shape, placed, hull, scratch, i, j, margin, out):
    """Contact points of two convex shapes; returns their number, at most MOST."""
    d = relate(shape, placed, hull, scratch, i, j)
    p = scratch.place
    return _meet(shape, placed, hull, scratch, i, j, margin, d, -p[9], -p[10], -p[11], out)


@kernel
def convex_convex_from(shape, placed, hull, scratch, last, i, j, margin, out):
    """As `convex_convex`, beginning with the direction `last` [3] (world) and leaving there the one found.

    A pair that is still apart in that direction is told apart after one support point. Zeros mean no idea.
    """
    d = relate(shape, placed, hull, scratch, i, j)
    r, p = placed.rot, scratch.place
    x = r[i, 0, 0] * last[0] + r[i, 1, 0] * last[1] + r[i, 2, 0] * last[2]
    y = r[i, 0, 1] * last[0] + r[i, 1, 1] * last[1] + r[i, 2, 1] * last[2]
    z = r[i, 0, 2] * last[0] + r[i, 1, 2] * last[1] + r[i, 2, 2] * last[2]
    if x * x + y * y + z * z < 0.5:
        x, y, z = -p[9], -p[10], -p[11]
    count = _meet(shape, placed, hull, scratch, i, j, margin, d, x, y, z, out)
    n = scratch.result
    for m in range(3):
        last[m] = r[i, m, 0] * n[0] + r[i, m, 1] * n[1] + r[i, m, 2] * n[2]
    return count


@kernel
def _meet(shape, placed, hull, s, i, j, margin, apart, x, y, z, out):
    """Contact points of two shapes whose origins are `apart`; (x, y, z) is the direction to begin with."""
    scale = shape.bound[i] + shape.bound[j]
    if apart >= scale + margin:
        s.result[0], s.result[1], s.result[2] = 0.0, 0.0, 0.0
        return 0
    reach = radius(shape, i) + radius(shape, j)
    state = separate(shape, hull, s, i, j, reach + margin, scale, x, y, z)
    if state == FAR:
        return 0
    curved = _curved(shape, i) or _curved(shape, j)
    if state == OVERLAP:
        penetrate(shape, hull, s, i, j, scale, LOOSE if curved else 0.0)
    elif curved and s.result[3] - s.result[10] > ASKEW * s.result[3]:
        tighten(shape, hull, s, i, j, scale)
    if curved:
        _snap(shape, hull, s, i, j, scale)
    depth = reach - s.result[3]
    if depth <= -margin:
        return 0
    count = clip_patch(shape, placed, hull, s, i, j, margin, out)
    deepest = -math.inf
    for k in range(count):
        deepest = max(deepest, out.depth[k])
    if deepest < depth - 1e-7 * abs(depth) - 1e-12 * scale:
        count = _witness(shape, placed, s, i, j, depth, min(count, POINTS - 1), out)
    return reduce(out, count, MOST)


@inline
def _curved(shape, i):
    return shape.kind[i] == CYLINDER or shape.kind[i] == CONE


@kernel
def _snap(shape, hull, s, i, j, scale):
    """Take the normal of a flat face if it is nearly the one found and no worse.

    Curved shapes have their normal from an iteration; a cylinder on a box has that of the box to the last digit.
    """
    p, r = s.place, s.result
    x, y, z = facing(shape, hull, i, s.start[0], -r[0], -r[1], -r[2])
    _try(shape, hull, s, i, j, scale, -x, -y, -z)
    a = p[0] * r[0] + p[3] * r[1] + p[6] * r[2]
    b = p[1] * r[0] + p[4] * r[1] + p[7] * r[2]
    c = p[2] * r[0] + p[5] * r[1] + p[8] * r[2]
    x, y, z = facing(shape, hull, j, s.start[1], a, b, c)
    a, b, c = p[0] * x + p[1] * y + p[2] * z, p[3] * x + p[4] * y + p[5] * z, p[6] * x + p[7] * y + p[8] * z
    _try(shape, hull, s, i, j, scale, a, b, c)


@inline
def _try(shape, hull, s, i, j, scale, x, y, z):
    """Make (x, y, z) the normal if it is nearly that already and the overlap along it is no more."""
    r, k = s.result, s.w.shape[0] - 1
    if x * r[0] + y * r[1] + z * r[2] > 1.0 - NEARLY:
        difference_support(shape, hull, s, i, j, k, -x, -y, -z)
        apart = x * s.w[k, 0] + y * s.w[k, 1] + z * s.w[k, 2]
        if apart >= r[3] - 1e-13 * scale:
            r[0], r[1], r[2], r[3] = x, y, z, apart
            r[7], r[8], r[9] = r[4] - apart * x, r[5] - apart * y, r[6] - apart * z


@inline
def _witness(shape, placed, s, i, j, depth, count, out):
    """Add the deepest point itself: half way between the closest points of the surfaces. Its feature is 0."""
    r, rot = s.result, placed.rot
    shift = 0.5 * (radius(shape, j) - radius(shape, i))
    x = 0.5 * (r[4] + r[7]) + shift * r[0]
    y = 0.5 * (r[5] + r[8]) + shift * r[1]
    z = 0.5 * (r[6] + r[9]) + shift * r[2]
    for m in range(3):
        out.point[count, m] = placed.pos[i, m] + rot[i, m, 0] * x + rot[i, m, 1] * y + rot[i, m, 2] * z
        out.normal[count, m] = rot[i, m, 0] * r[0] + rot[i, m, 1] * r[1] + rot[i, m, 2] * r[2]
    out.depth[count], out.feature[count] = depth, 0
    return count + 1


@kernel
def convex_plane(shape, placed, hull, i, j, margin, out):
    """The vertices of hull i near plane j, the POINTS deepest of them; the feature is the vertex's number."""
    r, p = placed.rot, placed.pos
    nx, ny, nz = r[j, 0, 2], r[j, 1, 2], r[j, 2, 2]
    above = nx * (p[i, 0] - p[j, 0]) + ny * (p[i, 1] - p[j, 1]) + nz * (p[i, 2] - p[j, 2])
    lx = r[i, 0, 0] * nx + r[i, 1, 0] * ny + r[i, 2, 0] * nz
    ly = r[i, 0, 1] * nx + r[i, 1, 1] * ny + r[i, 2, 1] * nz
    lz = r[i, 0, 2] * nx + r[i, 1, 2] * ny + r[i, 2, 2] * nz
    h, v = shape.asset[i], hull.vertex
    first, end = hull.first[h], hull.first[h + 1]
    low = climb(hull, h, first, -lx, -ly, -lz)
    if above + lx * v[low, 0] + ly * v[low, 1] + lz * v[low, 2] >= margin:
        return 0
    count = 0
    for k in range(first, end):
        depth = -(above + lx * v[k, 0] + ly * v[k, 1] + lz * v[k, 2])
        if depth <= -margin:
            continue
        at = count
        if count == POINTS:
            at = _shallowest(out)
            if depth <= out.depth[at]:
                continue
        else:
            count += 1
        half = 0.5 * depth
        for m in range(3):
            n = r[j, m, 2]
            x = p[i, m] + r[i, m, 0] * v[k, 0] + r[i, m, 1] * v[k, 1] + r[i, m, 2] * v[k, 2]
            out.point[at, m], out.normal[at, m] = x + half * n, n
        out.depth[at], out.feature[at] = depth, (k - first) % 1048576
    return count


@inline
def _shallowest(out):
    best = 0
    for k in range(1, POINTS):
        if out.depth[k] < out.depth[best]:
            best = k
    return best
