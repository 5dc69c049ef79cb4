"""Box against box and box against plane.

Two boxes are tried along their 15 separating axes (Luaces table 4.1, eq. 4.23): three face normals of each box and the
nine cross products of their edges. The axis with the largest separation tells the depth if they overlap, and a lower
bound of the gap if not. Then, in this order, whichever first yields a point as near as that axis says:

    a face of i that is nearly perpendicular to the axis, with the face of j that meets it clipped to its sides
    a face of j likewise
    the two edges that cross, one point
    the closest corner of one box to the other, one point (boxes apart, corner or edge against edge or corner)

Faces come before edges and i before j even when the other is better by a hair or by a small tilt, so that boxes at rest
on each other keep their points. This loses next to nothing: the clipped face holds the crossing of edges too.

While the boxes overlap, the normal is one of the 15 axes; while they are apart, the first point has the true distance,
which the axes alone do not give.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel

RELATIVE = 0.01  # of the depth or gap: as much may a face be worse than an edge, or a face of i than one of j
ABSOLUTE = 1e-6  # of the smaller box, likewise
SQUARE = 0.999  # cosine of the angle up to which a face counts as perpendicular to an axis: 2.6 degrees
RIM = 2e-3  # of the smallest half length in a pair of faces: a corner that sticks out as little still counts as inside
PARALLEL = 1e-14  # squared sine of the angle below which two edges give no axis
EDGES, CORNERS = 4096, 8192  # feature numbers of edge pairs and corners start here; those of faces at 0


@kernel
def box_box(shape, placed, i, j, margin, out):
    """Points of two boxes: up to 8 for faces, 1 for edges and corners."""
    size, rot, pos = shape.size, placed.rot, placed.pos
    a0, a1, a2 = size[i, 0], size[i, 1], size[i, 2]
    b0, b1, b2 = size[j, 0], size[j, 1], size[j, 2]
    x, y, z = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
    t0, t1, t2 = _along(rot, i, 0, x, y, z), _along(rot, i, 1, x, y, z), _along(rot, i, 2, x, y, z)
    c00, c01, c02 = _cosine(rot, i, 0, j, 0), _cosine(rot, i, 0, j, 1), _cosine(rot, i, 0, j, 2)
    c10, c11, c12 = _cosine(rot, i, 1, j, 0), _cosine(rot, i, 1, j, 1), _cosine(rot, i, 1, j, 2)
    c20, c21, c22 = _cosine(rot, i, 2, j, 0), _cosine(rot, i, 2, j, 1), _cosine(rot, i, 2, j, 2)
    q00, q01, q02, q10, q11, q12 = abs(c00), abs(c01), abs(c02), abs(c10), abs(c11), abs(c12)
    q20, q21, q22 = abs(c20), abs(c21), abs(c22)

    apart, axis = abs(t0) - (a0 + b0 * q00 + b1 * q01 + b2 * q02), 0
    apart, axis = _larger(apart, axis, abs(t1) - (a1 + b0 * q10 + b1 * q11 + b2 * q12), 1)
    apart, axis = _larger(apart, axis, abs(t2) - (a2 + b0 * q20 + b1 * q21 + b2 * q22), 2)
    if apart > margin:
        return 0
    other = abs(c00 * t0 + c10 * t1 + c20 * t2) - (b0 + a0 * q00 + a1 * q10 + a2 * q20)
    apart, axis = _larger(apart, axis, other, 3)
    other = abs(c01 * t0 + c11 * t1 + c21 * t2) - (b1 + a0 * q01 + a1 * q11 + a2 * q21)
    apart, axis = _larger(apart, axis, other, 4)
    other = abs(c02 * t0 + c12 * t1 + c22 * t2) - (b2 + a0 * q02 + a1 * q12 + a2 * q22)
    apart, axis = _larger(apart, axis, other, 5)
    if apart > margin:
        return 0

    edge, pair = -math.inf, 0
    other = abs(c10 * t2 - c20 * t1) - (a1 * q20 + a2 * q10 + b1 * q02 + b2 * q01)
    edge, pair = _crossed(edge, pair, other, c10, c20, 0)
    other = abs(c11 * t2 - c21 * t1) - (a1 * q21 + a2 * q11 + b0 * q02 + b2 * q00)
    edge, pair = _crossed(edge, pair, other, c11, c21, 1)
    other = abs(c12 * t2 - c22 * t1) - (a1 * q22 + a2 * q12 + b0 * q01 + b1 * q00)
    edge, pair = _crossed(edge, pair, other, c12, c22, 2)
    other = abs(c20 * t0 - c00 * t2) - (a0 * q20 + a2 * q00 + b1 * q12 + b2 * q11)
    edge, pair = _crossed(edge, pair, other, c20, c00, 3)
    other = abs(c21 * t0 - c01 * t2) - (a0 * q21 + a2 * q01 + b0 * q12 + b2 * q10)
    edge, pair = _crossed(edge, pair, other, c21, c01, 4)
    other = abs(c22 * t0 - c02 * t2) - (a0 * q22 + a2 * q02 + b0 * q11 + b1 * q10)
    edge, pair = _crossed(edge, pair, other, c22, c02, 5)
    other = abs(c00 * t1 - c10 * t0) - (a0 * q10 + a1 * q00 + b1 * q22 + b2 * q21)
    edge, pair = _crossed(edge, pair, other, c00, c10, 6)
    other = abs(c01 * t1 - c11 * t0) - (a0 * q11 + a1 * q01 + b0 * q22 + b2 * q20)
    edge, pair = _crossed(edge, pair, other, c01, c11, 7)
    other = abs(c02 * t1 - c12 * t0) - (a0 * q12 + a1 * q02 + b0 * q21 + b1 * q20)
    edge, pair = _crossed(edge, pair, other, c02, c12, 8)
    if edge > margin:
        return 0

    slack = ABSOLUTE * min(a0 + a1 + a2, b0 + b1 + b2) + RELATIVE * abs(max(apart, edge))
    if edge <= apart + slack:
        n = _face_first(shape, placed, i, j, max(apart, edge), axis, slack, margin, out)
        if n >= 0:
            return n
        if edge <= apart:
            owner, axis = (i, axis) if axis < 3 else (j, axis - 3)
            x, y, z = rot[owner, 0, axis], rot[owner, 1, axis], rot[owner, 2, axis]
            return _corner(shape, placed, i, j, x, y, z, apart, margin, out)
    return _edge_first(shape, placed, i, j, edge, pair, slack, margin, out)


@inline
def _along(rot, i, k, x, y, z):
    """The part of a vector along axis k of frame i."""
    return rot[i, 0, k] * x + rot[i, 1, k] * y + rot[i, 2, k] * z


@inline
def _cosine(rot, i, k, j, m):
    """Between axis k of frame i and axis m of frame j."""
    return _along(rot, i, k, rot[j, 0, m], rot[j, 1, m], rot[j, 2, m])


@inline
def _larger(best, which, other, this):
    if other > best:
        return other, this
    return best, which


@inline
def _crossed(best, which, other, c, s, this):
    """Keep the cross product with the larger separation; `other` is still multiplied by its length, from c and s."""
    square = c * c + s * s
    if square < PARALLEL:
        return best, which
    return _larger(best, which, other / math.sqrt(square), this)


@inline
def _most_square(rot, i, x, y, z):
    """The axis of frame i that is closest to a direction, and the cosine between them."""
    u, v, w = abs(_along(rot, i, 0, x, y, z)), abs(_along(rot, i, 1, x, y, z)), abs(_along(rot, i, 2, x, y, z))
    if w > u and w > v:
        return 2, w
    if v > u:
        return 1, v
    return 0, u


@kernel
def _face_first(shape, placed, i, j, apart, axis, slack, margin, out):
    """The points when a face normal (0-2 of i, 3-5 of j) is the best axis, or -1 if the faces do not meet."""
    if axis < 3:
        n, deepest = _face(shape, placed, i, j, axis, 0, margin, out)
        return n if abs(deepest + apart) <= slack else -1
    rot, axis = placed.rot, axis - 3
    k, cosine = _most_square(rot, i, rot[j, 0, axis], rot[j, 1, axis], rot[j, 2, axis])
    if cosine > SQUARE:
        n, deepest = _face(shape, placed, i, j, k, 0, margin, out)
        if abs(deepest + apart) <= slack:
            return n
    n, deepest = _face(shape, placed, j, i, axis, 1, margin, out)
    return n if abs(deepest + apart) <= slack else -1


@kernel
def _edge_first(shape, placed, i, j, apart, pair, slack, margin, out):
    """The points when a cross product of edges (3 x axis of i + axis of j) is the best axis."""
    rot, pos = placed.rot, placed.pos
    p, q = pair // 3, pair % 3
    ax, ay, az = rot[i, 0, p], rot[i, 1, p], rot[i, 2, p]
    bx, by, bz = rot[j, 0, q], rot[j, 1, q], rot[j, 2, q]
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    length = math.sqrt(x * x + y * y + z * z)
    if x * (pos[i, 0] - pos[j, 0]) + y * (pos[i, 1] - pos[j, 1]) + z * (pos[i, 2] - pos[j, 2]) < 0.0:
        length = -length
    x, y, z = x / length, y / length, z / length

    k, cosine = _most_square(rot, i, x, y, z)
    if cosine > SQUARE:
        n, deepest = _face(shape, placed, i, j, k, 0, margin, out)
        if abs(deepest + apart) <= slack:
            return n
    k, cosine = _most_square(rot, j, x, y, z)
    if cosine > SQUARE:
        n, deepest = _face(shape, placed, j, i, k, 1, margin, out)
        if abs(deepest + apart) <= slack:
            return n
    return _edge(shape, placed, i, j, p, q, x, y, z, apart, margin, out)


@inline
def _edge_middle(shape, placed, i, k, x, y, z):
    """The middle of the edge of box i along its axis k that lies farthest along (x, y, z), and its number 0-3."""
    size, rot, pos = shape.size, placed.rot, placed.pos
    u, v = (k + 1) % 3, (k + 2) % 3
    s, t, number = size[i, u], size[i, v], 0
    if _along(rot, i, u, x, y, z) < 0.0:
        s, number = -s, 1
    if _along(rot, i, v, x, y, z) < 0.0:
        t, number = -t, number + 2
    return (
        pos[i, 0] + s * rot[i, 0, u] + t * rot[i, 0, v],
        pos[i, 1] + s * rot[i, 1, u] + t * rot[i, 1, v],
        pos[i, 2] + s * rot[i, 2, u] + t * rot[i, 2, v],
        number,
    )


@kernel
def _edge(shape, placed, i, j, p, q, x, y, z, apart, margin, out):
    """The point of two crossing edges, along axis p of i and axis q of j, with the normal (x, y, z)."""
    size, rot = shape.size, placed.rot
    ix, iy, iz, edge_i = _edge_middle(shape, placed, i, p, -x, -y, -z)
    jx, jy, jz, edge_j = _edge_middle(shape, placed, j, q, x, y, z)
    dx, dy, dz = jx - ix, jy - iy, jz - iz
    cosine = _cosine(rot, i, p, j, q)
    d, e = _along(rot, i, p, dx, dy, dz), _along(rot, j, q, dx, dy, dz)
    square = max(1.0 - cosine * cosine, PARALLEL)
    s, t = (d - cosine * e) / square, (cosine * d - e) / square
    a, b = size[i, p], size[j, q]
    if apart > 0.0 and (abs(s) > a or abs(t) > b):
        return _corner(shape, placed, i, j, x, y, z, apart, margin, out)
    s, t = min(max(s, -a), a), min(max(t, -b), b)
    out.point[0, 0] = 0.5 * (ix + s * rot[i, 0, p] + jx + t * rot[j, 0, q])
    out.point[0, 1] = 0.5 * (iy + s * rot[i, 1, p] + jy + t * rot[j, 1, q])
    out.point[0, 2] = 0.5 * (iz + s * rot[i, 2, p] + jz + t * rot[j, 2, q])
    out.normal[0, 0], out.normal[0, 1], out.normal[0, 2] = x, y, z
    out.depth[0], out.feature[0] = -apart, EDGES + (p * 4 + edge_i) * 12 + q * 4 + edge_j
    return 1


@kernel
def _face(shape, placed, r, o, k, swapped, margin, out):
    """Clip the face of box o that meets the face across axis k of box r to that face; number of points, deepest.

    In the frame (u, v, w) of the face of r, with w outward, the face of o is a parallelogram over (u, v) with the
    centre c and the half sides e and f, and its height w is linear. The points are its corners inside the border, the
    crossings of its sides with the border and the corners of r's face that it covers. The border stands out by the
    rim; a point beyond the true face is moved onto it.
    """
    size, rot, pos = shape.size, placed.rot, placed.pos
    ku, kv = (k + 1) % 3, (k + 2) % 3
    hu, hv = size[r, ku], size[r, kv]
    x, y, z = pos[o, 0] - pos[r, 0], pos[o, 1] - pos[r, 1], pos[o, 2] - pos[r, 2]
    cu, cv, cw = _along(rot, r, ku, x, y, z), _along(rot, r, kv, x, y, z), _along(rot, r, k, x, y, z)
    side, face = (1.0, 2 * k) if cw >= 0.0 else (-1.0, 2 * k + 1)
    nx, ny, nz = side * rot[r, 0, k], side * rot[r, 1, k], side * rot[r, 2, k]

    m, _ = _most_square(rot, o, nx, ny, nz)
    me, mf = (m + 1) % 3, (m + 2) % 3
    he, hf = size[o, me], size[o, mf]
    tilt_u, tilt_v, tilt_w = _cosine(rot, r, ku, o, m), _cosine(rot, r, kv, o, m), _along(rot, o, m, nx, ny, nz)
    h, face_o = (-size[o, m], 2 * m) if tilt_w > 0.0 else (size[o, m], 2 * m + 1)
    cu += h * tilt_u
    cv += h * tilt_v
    cw = side * cw - size[r, k] + h * tilt_w
    slope_u, slope_v = -tilt_u / tilt_w, -tilt_v / tilt_w
    eu, ev = he * _cosine(rot, r, ku, o, me), he * _cosine(rot, r, kv, o, me)
    fu, fv = hf * _cosine(rot, r, ku, o, mf), hf * _cosine(rot, r, kv, o, mf)
    lowest = cw - he * abs(_cosine(rot, r, k, o, me)) - hf * abs(_cosine(rot, r, k, o, mf))

    rim = RIM * min(min(hu, hv), min(he, hf))
    count = _overlap(out, cu, cv, eu, ev, fu, fv, hu + rim, hv + rim)

    turn = 1.0 if swapped else -1.0
    first = ((6 * swapped + face) * 6 + face_o) * 32
    base = side * size[r, k]
    n, deepest = 0, -math.inf
    for q in range(count):
        u, v = min(max(out.point[q, 0], -hu), hu), min(max(out.point[q, 1], -hv), hv)
        w = max(cw + slope_u * (u - cu) + slope_v * (v - cv), lowest)
        if w >= margin:
            continue
        up = base + 0.5 * side * w
        for d in range(3):
            out.point[n, d] = pos[r, d] + u * rot[r, d, ku] + v * rot[r, d, kv] + up * rot[r, d, k]
        out.normal[n, 0], out.normal[n, 1], out.normal[n, 2] = turn * nx, turn * ny, turn * nz
        out.depth[n], out.feature[n] = -w, first + out.feature[q]
        deepest = max(deepest, -w)
        n += 1
    return n, deepest


@inline
def _put(out, n, u, v, code):
    out.point[n, 0], out.point[n, 1], out.feature[n] = u, v, code
    return n + 1


@inline
def _overlap(out, cu, cv, eu, ev, fu, fv, gu, gv):
    """List the corners of a parallelogram (centre c, half sides e and f) cut by the rectangle |u| <= gu, |v| <= gv.

    They are laid in out.point with their numbers: 0-3 corners of the parallelogram, 4-7 of the rectangle, 8-23 the
    crossings of each side of the one with each side of the other.
    """
    n = 0
    if abs(cu) + abs(eu) + abs(fu) <= gu and abs(cv) + abs(ev) + abs(fv) <= gv:
        n = _put(out, n, cu - eu - fu, cv - ev - fv, 0)
        n = _put(out, n, cu + eu - fu, cv + ev - fv, 1)
        n = _put(out, n, cu + eu + fu, cv + ev + fv, 2)
        return _put(out, n, cu - eu + fu, cv - ev + fv, 3)
    n = _cut(out, n, 0, cu - eu - fu, cv - ev - fv, 2.0 * eu, 2.0 * ev, gu, gv)
    n = _cut(out, n, 1, cu + eu - fu, cv + ev - fv, 2.0 * fu, 2.0 * fv, gu, gv)
    n = _cut(out, n, 2, cu + eu + fu, cv + ev + fv, -2.0 * eu, -2.0 * ev, gu, gv)
    n = _cut(out, n, 3, cu - eu + fu, cv - ev + fv, -2.0 * fu, -2.0 * fv, gu, gv)
    area = eu * fv - ev * fu
    for q in range(4):
        u, v = gu if q & 1 else -gu, gv if q & 2 else -gv
        s = ((u - cu) * fv - (v - cv) * fu) / area
        t = ((v - cv) * eu - (u - cu) * ev) / area
        if abs(s) <= 1.0 and abs(t) <= 1.0:
            n = _put(out, n, u, v, 4 + q)
    return n


@kernel
def _cut(out, n, side, u, v, du, dv, gu, gv):
    """List the start of a side (if inside) and where it crosses the rectangle's border, by slabs."""
    low, low_code, high, high_code = 0.0, side, 1.0, -1
    near, far, code = _slab(u, du, gu)
    if near > low:
        low, low_code = near, 8 + 4 * side + code
    if far < high:
        high, high_code = far, 9 + 4 * side - code
    near, far, code = _slab(v, dv, gv)
    if near > low:
        low, low_code = near, 10 + 4 * side + code
    if far < high:
        high, high_code = far, 11 + 4 * side - code
    if low > high:
        return n
    n = _put(out, n, u + low * du, v + low * dv, low_code)
    if high_code >= 0:
        n = _put(out, n, u + high * du, v + high * dv, high_code)
    return n


@inline
def _slab(u, du, gu):
    """Where u + t du enters and leaves |u| <= gu; and 1 if it enters at the upper border."""
    if du == 0.0:
        if abs(u) <= gu:
            return -math.inf, math.inf, 0
        return math.inf, -math.inf, 0
    if du > 0.0:
        return (-gu - u) / du, (gu - u) / du, 0
    return (gu - u) / du, (-gu - u) / du, 1


@kernel
def _corner(shape, placed, i, j, x, y, z, apart, margin, out):
    """The closest corner of one box to the other, for boxes apart; (x, y, z) is the axis if the distance is 0."""
    square_i, corner_i = _nearest(shape, placed, j, i)
    square_j, corner_j = _nearest(shape, placed, i, j)
    if square_i <= square_j:
        square, r, o, corner, turn = square_i, j, i, corner_i, 1.0
    else:
        square, r, o, corner, turn = square_j, i, j, corner_j, -1.0
    pos, rot = placed.pos, placed.rot
    u, v, w = _corner_from(shape, placed, r, o, corner)
    du, dv, dw = _outside(u, shape.size[r, 0]), _outside(v, shape.size[r, 1]), _outside(w, shape.size[r, 2])
    distance = math.sqrt(square)
    if distance >= margin:
        return 0
    for d in range(3):
        middle = (u - 0.5 * du) * rot[r, d, 0] + (v - 0.5 * dv) * rot[r, d, 1] + (w - 0.5 * dw) * rot[r, d, 2]
        out.point[0, d] = pos[r, d] + middle
    if distance > 1e-12:
        turn /= distance
        x = turn * (du * rot[r, 0, 0] + dv * rot[r, 0, 1] + dw * rot[r, 0, 2])
        y = turn * (du * rot[r, 1, 0] + dv * rot[r, 1, 1] + dw * rot[r, 1, 2])
        z = turn * (du * rot[r, 2, 0] + dv * rot[r, 2, 1] + dw * rot[r, 2, 2])
    else:
        distance = apart
        if x * (pos[i, 0] - pos[j, 0]) + y * (pos[i, 1] - pos[j, 1]) + z * (pos[i, 2] - pos[j, 2]) < 0.0:
            x, y, z = -x, -y, -z
    out.normal[0, 0], out.normal[0, 1], out.normal[0, 2] = x, y, z
    out.depth[0], out.feature[0] = -distance, CORNERS + (8 if turn > 0.0 else 0) + corner
    return 1


@inline
def _outside(u, h):
    """How far u lies beyond the interval from -h to h, with its sign."""
    return u - min(max(u, -h), h)


@inline
def _corner_from(shape, placed, r, o, corner):
    """A corner of box o (bits: upper side along x, y, z) in the frame of box r."""
    size, rot, pos = shape.size, placed.rot, placed.pos
    a = size[o, 0] if corner & 1 else -size[o, 0]
    b = size[o, 1] if corner & 2 else -size[o, 1]
    c = size[o, 2] if corner & 4 else -size[o, 2]
    x = pos[o, 0] - pos[r, 0] + a * rot[o, 0, 0] + b * rot[o, 0, 1] + c * rot[o, 0, 2]
    y = pos[o, 1] - pos[r, 1] + a * rot[o, 1, 0] + b * rot[o, 1, 1] + c * rot[o, 1, 2]
    z = pos[o, 2] - pos[r, 2] + a * rot[o, 2, 0] + b * rot[o, 2, 1] + c * rot[o, 2, 2]
    return _along(rot, r, 0, x, y, z), _along(rot, r, 1, x, y, z), _along(rot, r, 2, x, y, z)


@kernel
def _nearest(shape, placed, r, o):
    """Squared distance of box r from the closest corner of box o, and the corner."""
    best, which = math.inf, 0
    for corner in range(8):
        u, v, w = _corner_from(shape, placed, r, o, corner)
        u, v, w = _outside(u, shape.size[r, 0]), _outside(v, shape.size[r, 1]), _outside(w, shape.size[r, 2])
        square = u * u + v * v + w * w
        if square < best:
            best, which = square, corner
    return best, which


@kernel
def box_plane(shape, placed, i, j, margin, out):
    """Every corner of box i nearer than the margin to plane j."""
    size, rot, pos = shape.size, placed.rot, placed.pos
    x, y, z = rot[j, 0, 2], rot[j, 1, 2], rot[j, 2, 2]
    height = x * (pos[i, 0] - pos[j, 0]) + y * (pos[i, 1] - pos[j, 1]) + z * (pos[i, 2] - pos[j, 2])
    a, b, c = size[i, 0], size[i, 1], size[i, 2]
    up, vp, wp = a * _along(rot, i, 0, x, y, z), b * _along(rot, i, 1, x, y, z), c * _along(rot, i, 2, x, y, z)
    n = 0
    if height - abs(up) - abs(vp) - abs(wp) >= margin:
        return n
    for corner in range(8):
        su, sv, sw = 1.0 if corner & 1 else -1.0, 1.0 if corner & 2 else -1.0, 1.0 if corner & 4 else -1.0
        gap = height + su * up + sv * vp + sw * wp
        if gap >= margin:
            continue
        u, v, w = su * a, sv * b, sw * c
        for d in range(3):
            corner_d = pos[i, d] + u * rot[i, d, 0] + v * rot[i, d, 1] + w * rot[i, d, 2]
            out.point[n, d] = corner_d - 0.5 * gap * rot[j, d, 2]
            out.normal[n, d] = rot[j, d, 2]
        out.depth[n], out.feature[n] = -gap, corner
        n += 1
    return n
