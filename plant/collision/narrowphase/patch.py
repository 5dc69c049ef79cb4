"""Contact patches of two convex shapes: their touching faces, clipped against each other.

Each shape gives the polygon that faces the other: a face of a box or hull, eight points of the round end of a cylinder
or cone, or the straight line that touches on the side of a cylinder, cone or capsule. Both are looked at along the
normal; what they have in common in that picture is the patch of contact, and the depth at each of its corners is the
difference of the two heights there. Along the normal no two shapes overlap more than by the depth of the pair, so
a patch never exaggerates; where it does not reach that depth the caller adds the deepest point.

A corner is named by the two edges that meet in it, so that it keeps its name while the same edges cross.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import POINTS
from plant.collision.narrowphase.gjk import SIDES
from plant.collision.shape.support import BOX, CAPSULE, CYLINDER, HULL, climb, radius

ROOM = 2 * SIDES  # corners of a clipped polygon; also the first row of the next polygon in the scratch
RING = 8  # corners that stand for a round face
STEEP = 0.1  # cosine between a face and the normal below which its heights mean nothing
PARALLEL = 0.02  # sine of the angle up to which two lines touch along their length


@kernel
def clip_patch(shape, placed, hull, s, i, j, margin, out):
    """List the corners of the patch between i and j for the normal in the scratch's result; returns how many."""
    if shape.kind[i] < CAPSULE or shape.kind[j] < CAPSULE:
        return 0
    p, r = s.place, s.result
    nx, ny, nz = r[0], r[1], r[2]
    na, face_a = _touching(shape, hull, s, i, 0, -nx, -ny, -nz)
    lx = p[0] * nx + p[3] * ny + p[6] * nz
    ly = p[1] * nx + p[4] * ny + p[7] * nz
    lz = p[2] * nx + p[5] * ny + p[8] * nz
    nb, face_b = _touching(shape, hull, s, j, ROOM, lx, ly, lz)
    ux, uy, uz, vx, vy, vz = _plane(nx, ny, nz)
    _flatten(s, na, nb, ux, uy, uz, vx, vy, vz, nx, ny, nz, radius(shape, i), radius(shape, j))
    lean_a, lean_b = _lean(s.polygon, 0, na), _lean(s.polygon, ROOM, nb)
    if (na > 2 and abs(lean_a) < STEEP) or (nb > 2 and abs(lean_b) < STEEP):
        return 0
    swapped = nb > 2 and (na <= 2 or abs(lean_b) > abs(lean_a) + 1e-3)
    name = 8192 * (1 + (7 * face_a + face_b) % 126)
    basis = (ux, uy, uz, vx, vy, vz)
    if na == 2 and nb == 2:
        return _two_lines(placed, s, i, margin, basis, name, out)
    if swapped:
        if na == 2:
            return _line_on_face(placed, s, i, ROOM, nb, 0, lean_b, margin, basis, name, 1, out)
        return _face_on_face(placed, s, i, ROOM, nb, 0, na, lean_b, margin, basis, name, 1, out)
    if nb == 2:
        return _line_on_face(placed, s, i, 0, na, ROOM, lean_a, margin, basis, name, 0, out)
    return _face_on_face(placed, s, i, 0, na, ROOM, nb, lean_a, margin, basis, name, 0, out)


@kernel
def facing(shape, hull, i, start, dx, dy, dz):
    """Outward normal of the flat face of shape i that looks most along (dx, dy, dz), in its frame; 0 if it has none."""
    kind = shape.kind[i]
    if kind == HULL:
        f = _face_about(hull, shape.asset[i], start, dx, dy, dz)
        return hull.plane[f, 0], hull.plane[f, 1], hull.plane[f, 2]
    if kind < BOX:
        return 0.0, 0.0, 0.0
    if kind == BOX and abs(dx) > abs(dy) and abs(dx) > abs(dz):
        return math.copysign(1.0, dx), 0.0, 0.0
    if kind == BOX and abs(dy) > abs(dz):
        return 0.0, math.copysign(1.0, dy), 0.0
    return 0.0, 0.0, math.copysign(1.0, dz)


@inline
def _put(q, k, x, y, z):
    q[k, 0], q[k, 1], q[k, 2] = x, y, z


@kernel
def _touching(shape, hull, s, i, row, dx, dy, dz):
    """Polygon of shape i that faces (dx, dy, dz), in its own frame, from `row` on; returns corners and face number."""
    kind, size, q = shape.kind[i], shape.size, s.polygon
    if kind == HULL:
        return _hull_face(hull, shape.asset[i], s.start[0 if row == 0 else 1], q, row, dx, dy, dz)
    if kind == BOX:
        return 4, _box_face(size[i, 0], size[i, 1], size[i, 2], q, row, dx, dy, dz)
    aside = math.sqrt(dx * dx + dy * dy)
    half = size[i, 1]
    if kind == CAPSULE:
        _put(q, row, 0.0, 0.0, -half)
        _put(q, row + 1, 0.0, 0.0, half)
        return 2, 0
    if kind == CYLINDER:
        if abs(dz) >= aside:
            return _ring(q, row, size[i, 0], math.copysign(half, dz)), 0 if dz < 0.0 else 1
        x, y = size[i, 0] * dx / aside, size[i, 0] * dy / aside
        _put(q, row, x, y, -half)
        _put(q, row + 1, x, y, half)
        return 2, 2
    slope = math.sqrt(4.0 * half * half + size[i, 0] * size[i, 0])
    if -dz * slope >= 2.0 * half * aside + size[i, 0] * dz:
        return _ring(q, row, size[i, 0], -half), 0
    x, y = (size[i, 0] * dx / aside, size[i, 0] * dy / aside) if aside > 0.0 else (size[i, 0], 0.0)
    _put(q, row, x, y, -half)
    _put(q, row + 1, 0.0, 0.0, half)
    return 2, 1


@inline
def _ring(q, row, r, z):
    d = r * math.sqrt(0.5)
    _put(q, row, r, 0.0, z)
    _put(q, row + 1, d, d, z)
    _put(q, row + 2, 0.0, r, z)
    _put(q, row + 3, -d, d, z)
    _put(q, row + 4, -r, 0.0, z)
    _put(q, row + 5, -d, -d, z)
    _put(q, row + 6, 0.0, -r, z)
    _put(q, row + 7, d, -d, z)
    return RING


@inline
def _box_face(a, b, c, q, row, dx, dy, dz):
    """The face of a box that looks most along the direction; returns its number."""
    if abs(dx) >= abs(dy) and abs(dx) >= abs(dz):
        x = math.copysign(a, dx)
        _put(q, row, x, b, c)
        _put(q, row + 1, x, -b, c)
        _put(q, row + 2, x, -b, -c)
        _put(q, row + 3, x, b, -c)
        return 0 if dx < 0.0 else 1
    if abs(dy) >= abs(dz):
        y = math.copysign(b, dy)
        _put(q, row, a, y, c)
        _put(q, row + 1, -a, y, c)
        _put(q, row + 2, -a, y, -c)
        _put(q, row + 3, a, y, -c)
        return 2 if dy < 0.0 else 3
    z = math.copysign(c, dz)
    _put(q, row, a, b, z)
    _put(q, row + 1, -a, b, z)
    _put(q, row + 2, -a, -b, z)
    _put(q, row + 3, a, -b, z)
    return 4 if dz < 0.0 else 5


@inline
def _face_about(hull, h, start, dx, dy, dz):
    """Of the faces about the farthest vertex of hull h the one that looks most along the direction."""
    top = climb(hull, h, start, dx, dy, dz)
    best, most = hull.round[hull.round_first[top]], -math.inf
    for e in range(hull.round_first[top], hull.round_first[top + 1]):
        f = hull.round[e]
        along = hull.plane[f, 0] * dx + hull.plane[f, 1] * dy + hull.plane[f, 2] * dz
        if along > most:
            best, most = f, along
    return best


@inline
def _hull_face(hull, h, start, q, row, dx, dy, dz):
    """The face of a hull that touches; one with more corners than there is room for is thinned out evenly."""
    best = _face_about(hull, h, start, dx, dy, dz)
    first = hull.loop_first[best]
    corners = hull.loop_first[best + 1] - first
    n = min(corners, SIDES)
    for k in range(n):
        v = hull.loop[first + k * corners // n]
        _put(q, row + k, hull.vertex[v, 0], hull.vertex[v, 1], hull.vertex[v, 2])
    return n, best - hull.face_first[h]


@inline
def _plane(nx, ny, nz):
    """Two unit vectors at right angles to n and each other."""
    if abs(nx) <= abs(ny) and abs(nx) <= abs(nz):
        ux, uy, uz = 0.0, nz, -ny
    elif abs(ny) <= abs(nz):
        ux, uy, uz = -nz, 0.0, nx
    else:
        ux, uy, uz = ny, -nx, 0.0
    size = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / size, uy / size, uz / size
    return ux, uy, uz, ny * uz - nz * uy, nz * ux - nx * uz, nx * uy - ny * ux


@inline
def _flatten(s, na, nb, ux, uy, uz, vx, vy, vz, nx, ny, nz, ra, rb):
    """Both polygons as seen along the normal: two coordinates in the picture, and the height of the surface."""
    q, p = s.polygon, s.place
    for k in range(na):
        x, y, z = q[k, 0], q[k, 1], q[k, 2]
        _put(q, k, ux * x + uy * y + uz * z, vx * x + vy * y + vz * z, nx * x + ny * y + nz * z - ra)
    for k in range(ROOM, ROOM + nb):
        a, b, c = q[k, 0], q[k, 1], q[k, 2]
        x = p[0] * a + p[1] * b + p[2] * c + p[9]
        y = p[3] * a + p[4] * b + p[5] * c + p[10]
        z = p[6] * a + p[7] * b + p[8] * c + p[11]
        _put(q, k, ux * x + uy * y + uz * z, vx * x + vy * y + vz * z, nx * x + ny * y + nz * z + rb)


@inline
def _newell(q, row, n):
    """Area vector of a polygon, from its first corner."""
    x, y, z = 0.0, 0.0, 0.0
    for k in range(1, n - 1):
        ax, ay, az = q[row + k, 0] - q[row, 0], q[row + k, 1] - q[row, 1], q[row + k, 2] - q[row, 2]
        m = row + k + 1
        bx, by, bz = q[m, 0] - q[row, 0], q[m, 1] - q[row, 1], q[m, 2] - q[row, 2]
        x += ay * bz - az * by
        y += az * bx - ax * bz
        z += ax * by - ay * bx
    return x, y, z


@inline
def _lean(q, row, n):
    """Cosine between a polygon and the normal, negative if it runs clockwise in the picture; 0 for a line."""
    x, y, z = _newell(q, row, n)
    size = math.sqrt(x * x + y * y + z * z)
    return z / size if size > 0.0 else 0.0


@inline
def _list(placed, s, i, basis, u, v, low, high, feature, margin, out, count):
    """Add a point if the surfaces, at heights `low` (A) and `high` (B), are near enough; returns the new count."""
    depth = high - low
    if depth <= -margin or count == POINTS:
        return count
    r, rot, pos, h = s.result, placed.rot, placed.pos, 0.5 * (low + high)
    x = basis[0] * u + basis[3] * v + r[0] * h
    y = basis[1] * u + basis[4] * v + r[1] * h
    z = basis[2] * u + basis[5] * v + r[2] * h
    for m in range(3):
        out.point[count, m] = pos[i, m] + rot[i, m, 0] * x + rot[i, m, 1] * y + rot[i, m, 2] * z
        out.normal[count, m] = rot[i, m, 0] * r[0] + rot[i, m, 1] * r[1] + rot[i, m, 2] * r[2]
    out.depth[count], out.feature[count] = depth, feature
    return count + 1


@kernel
def _two_lines(placed, s, i, margin, basis, name, out):
    """Two lines side by side touch at both ends of what they share; lines that cross have no patch."""
    q = s.polygon
    ax, ay, dx, dy = q[0, 0], q[0, 1], q[1, 0] - q[0, 0], q[1, 1] - q[0, 1]
    bx, by, ex, ey = q[ROOM, 0], q[ROOM, 1], q[ROOM + 1, 0] - q[ROOM, 0], q[ROOM + 1, 1] - q[ROOM, 1]
    dd, ee = dx * dx + dy * dy, ex * ex + ey * ey
    turn = dx * ey - dy * ex
    if dd == 0.0 or ee == 0.0 or turn * turn > PARALLEL * PARALLEL * dd * ee:
        return 0
    t0 = ((bx - ax) * dx + (by - ay) * dy) / dd
    t1 = t0 + (ex * dx + ey * dy) / dd
    low, high = max(0.0, min(t0, t1)), min(1.0, max(t0, t1))
    if high <= low:
        return 0
    count = 0
    for end in range(2):
        t = low if end == 0 else high
        f = (t - t0) / (t1 - t0)
        ha = q[0, 2] + t * (q[1, 2] - q[0, 2])
        hb = q[ROOM, 2] + f * (q[ROOM + 1, 2] - q[ROOM, 2])
        count = _list(placed, s, i, basis, ax + t * dx, ay + t * dy, ha, hb, name + end, margin, out, count)
    return count


@inline
def _level(q, row, n):
    """Height of a polygon's plane: h = c + a u + b v."""
    x, y, z = _newell(q, row, n)
    a, b = -x / z, -y / z
    return q[row, 2] - a * q[row, 0] - b * q[row, 1], a, b


@kernel
def _line_on_face(placed, s, i, face, n, line, lean, margin, basis, name, swapped, out):
    """The part of a line that lies over a face; a swapped face belongs to the second shape."""
    q = s.polygon
    c, a, b = _level(q, face, n)
    x, y, h = q[line, 0], q[line, 1], q[line, 2]
    dx, dy, dh = q[line + 1, 0] - x, q[line + 1, 1] - y, q[line + 1, 2] - h
    low, high, from_edge, to_edge = 0.0, 1.0, 0, 0
    for k in range(n):
        m = k + 1 if k + 1 < n else 0
        ex, ey = q[face + m, 0] - q[face + k, 0], q[face + m, 1] - q[face + k, 1]
        if lean < 0.0:
            ex, ey = -ex, -ey
        inside = ex * (y - q[face + k, 1]) - ey * (x - q[face + k, 0])
        rate = ex * dy - ey * dx
        if rate > 0.0 and -inside > low * rate:
            low, from_edge = -inside / rate, k + 1
        elif rate < 0.0 and inside < high * -rate:
            high, to_edge = inside / -rate, k + 1
        elif rate == 0.0 and inside < 0.0:
            return 0
    if high < low:
        return 0
    count = 0
    for end in range(2):
        t = low if end == 0 else high
        feature = name + 2 * (64 * (from_edge if end == 0 else to_edge) + end) + swapped
        u, v, mine = x + t * dx, y + t * dy, h + t * dh
        other = c + a * u + b * v
        if swapped == 1:
            count = _list(placed, s, i, basis, u, v, mine, other, feature, margin, out, count)
        else:
            count = _list(placed, s, i, basis, u, v, other, mine, feature, margin, out, count)
    return count


@kernel
def _face_on_face(placed, s, i, face, n, other, m, lean, margin, basis, name, swapped, out):
    """The polygon at row `other` clipped to the one at `face` (Sutherland and Hodgman), edge by edge."""
    q, label = s.polygon, s.label
    c, a, b = _level(q, face, n)
    here = 0
    for k in range(m):
        _put(q, 2 * ROOM + k, q[other + k, 0], q[other + k, 1], q[other + k, 2])
        label[0, k] = k
    for k in range(n):
        m = _clip_edge(s, face + k, face + (k + 1 if k + 1 < n else 0), lean, here, m, SIDES + k)
        here = 1 - here
        if m == 0:
            return 0
    count, row = 0, (2 + here) * ROOM
    for k in range(m):
        before = label[here, k - 1 if k > 0 else m - 1]
        feature = name + 2 * (64 * before + label[here, k]) + swapped
        u, v, mine = q[row + k, 0], q[row + k, 1], q[row + k, 2]
        base = c + a * u + b * v
        if swapped == 1:
            count = _list(placed, s, i, basis, u, v, mine, base, feature, margin, out, count)
        else:
            count = _list(placed, s, i, basis, u, v, base, mine, feature, margin, out, count)
    return count


@inline
def _clip_edge(s, p, r, lean, here, m, name):
    """Cut the polygon by the line from row p to row r; from one half of the clipping room to the other."""
    q, label = s.polygon, s.label
    src, dst, there = (2 + here) * ROOM, (3 - here) * ROOM, 1 - here
    ox, oy, ex, ey = q[p, 0], q[p, 1], q[r, 0] - q[p, 0], q[r, 1] - q[p, 1]
    if lean < 0.0:
        ex, ey = -ex, -ey
    kept = 0
    x, y, h = q[src, 0], q[src, 1], q[src, 2]
    side = ex * (y - oy) - ey * (x - ox)
    for k in range(m):
        to = src + (k + 1 if k + 1 < m else 0)
        x1, y1, h1 = q[to, 0], q[to, 1], q[to, 2]
        side1 = ex * (y1 - oy) - ey * (x1 - ox)
        if side >= 0.0 and kept < ROOM:
            _put(q, dst + kept, x, y, h)
            label[there, kept] = label[here, k]
            kept += 1
        if (side >= 0.0) != (side1 >= 0.0) and kept < ROOM:
            t = side / (side - side1)
            _put(q, dst + kept, x + t * (x1 - x), y + t * (y1 - y), h + t * (h1 - h))
            label[there, kept] = name if side >= 0.0 else label[here, k]
            kept += 1
        x, y, h, side = x1, y1, h1, side1
    return kept
