"""Contact regions where two triangle surfaces intersect.

Two surfaces that overlap cross along closed contours, one for each region of contact. Steps, per Luaces 4.7, after the
pairs of triangles that may cross have been found (mesh_mesh.py, mesh_field.py):

1. A pair that crosses gives a segment, whose ends are where an edge of one goes through the other (4.81-4.85).
2. An end on an edge leads to the pair with the neighbour across that edge: so segments are joined to regions
   (4.86-4.88).
3. A segment runs along n_i x n_j, so that all segments of a contour go the same way round, and the contour need
   not be put in order: its vector area is the sum over its segments, and so is its centroid (4.93). The area's
   direction is the normal of the contact plane. Luaces fits the plane by least squares (4.89-4.91); the area
   needs no factorisation and has a sign. Rough surfaces may also leave each other within a region: the contour of
   such a hole runs the other way round and would have all else of the bodies for its inside. It is passed over.
4. Of the triangles that cross, the vertices inside are those on the far side of the plane whose projection lies within
   the contour, by counting crossings (4.7.6), or which a ray finds inside: a body that is more than half in is wider
   than its contour. From there the others are reached from neighbour to neighbour.

Its points are listed by region.py. Everything is in the frame of j. Segments beyond the room in the scratch are counted
(`lost`); the stack is deeper than any walk down two balanced trees, and the queue as long as all triangles.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, I2, viewer
from plant.collision.narrowphase.ray_exit import leave_mesh
from plant.collision.shape.mesh import corner
from plant.collision.vec3 import along, cross, dot, from_basis, sub, times, unit

DEPTH = 256  # pairs of nodes that wait
SPOTS = 5  # points of a region, at most
LOOSE = 2 * SPOTS  # where the spots of vertices that are not inside begin: four per side
FEWEST, MOST = 2048, 65536  # room for segments
EVEN = 1e-9  # of the distance of a vertex from the middle of its region: what is rounding
BULGE = 1e-3  # of the size of a region: vertices beside the contour are asked for if they are beyond its plane by more


class Crossing(NamedTuple):
    """Scratch of two surfaces, for one thread."""

    stack: I2  # [DEPTH, 2] pairs of nodes still to be looked at
    apart: F1  # [DEPTH] a bound of their distance from below
    segment: F2  # [s, 6] from and to
    flat: F2  # [s, 4] the same from the centroid of its region, in the plane of the region
    lean: F2  # [s, 6] normals of j's triangle and of i's
    pair: I2  # [s, 2] triangles of i and j
    next: I2  # [s, 4] the pairs that the two ends lead to; -1 = a border
    group: I1  # [s] the segment that stands for its region, the first of it
    chain: I1  # [s] the next segment of the region; -1 = none
    last: I1  # [s] the last segment of the region, for the one that stands for it
    table: I1  # [2 s or more, power of two] segments by their pair; -1 = free
    mark: I1  # [triangles of all meshes] the search that saw it last
    queue: I1  # [triangles of all meshes] those whose vertices may be inside
    found: F2  # [LOOSE + 8, 5] the vertex that is furthest each way: how far, where, height
    name: I1  # [LOOSE + 8] its number; -1 = none
    turn: I1  # [1] number of the last search
    lost: I1  # [1] segments that found no room since somebody set it to 0


view_crossing = viewer(Crossing)


def new_crossing(triangles: int, segments: int | None = None) -> Crossing:
    """Scratch for meshes of so many triangles in all; by default with room for two segments on each of them."""
    if segments is None:
        segments = min(max(FEWEST, 2 * triangles), MOST)
    table = 1 << (2 * segments - 1).bit_length()
    whole = np.int64
    return Crossing(
        stack=np.zeros((DEPTH, 2), whole),
        apart=np.zeros(DEPTH),
        segment=np.zeros((segments, 6)),
        flat=np.zeros((segments, 4)),
        lean=np.zeros((segments, 6)),
        pair=np.zeros((segments, 2), whole),
        next=np.zeros((segments, 4), whole),
        group=np.zeros(segments, whole),
        chain=np.zeros(segments, whole),
        last=np.zeros(segments, whole),
        table=np.full(table, -1, whole),
        mark=np.zeros(triangles, whole),
        queue=np.zeros(triangles, whole),
        found=np.zeros((LOOSE + 8, 5)),
        name=np.zeros(LOOSE + 8, whole),
        turn=np.zeros(1, whole),
        lost=np.zeros(1, whole),
    )


@inline
def moved(o, x, y, z, p):
    """The point `p` of the frame of i, whose origin is `o` and whose axes are x, y, z, in that of j."""
    q = from_basis(x, y, z, p)
    return q[0] + o[0], q[1] + o[1], q[2] + o[2]


@inline
def put_back(o, x, y, z, p):
    """The point `p` of the frame of j in that of i: `moved` undone."""
    d = sub(p, o)
    return dot(d, x), dot(d, y), dot(d, z)


@inline
def splits(a, b, c):
    """Whether corners at these heights lie on both sides of a plane; a corner in it counts as below."""
    return (a > 0.0) != (b > 0.0) or (b > 0.0) != (c > 0.0)


@kernel
def cut(work, n, t, u, a, b, c, k, ha, hb, hc, q, e, f, m, hq, he, hf):
    """Enter the segment along which triangle abc (normal k, number t) and qef (m, u), each on both sides of the plane
    of the other, cross, if they do: both cut the line that their planes share in an interval each.

    The corners' heights over the other's plane are ha .. hf. Returns the new number of segments, and for the two ends
    the side (0: i, 1: j) and the number of the edge that they lie on.
    """
    way = cross(k, m)
    p0, p1, e0, e1 = _interval(dot(a, way), dot(b, way), dot(c, way), ha, hb, hc)
    q0, q1, f0, f1 = _interval(dot(q, way), dot(e, way), dot(f, way), hq, he, hf)
    if max(p0, q0) > min(p1, q1):
        return n, 0, 0, 0, 0
    if n == work.group.size:
        work.lost[0] += 1
        return n, 0, 0, 0, 0
    side0, name0 = (0, e0) if p0 >= q0 else (1, f0)
    side1, name1 = (0, e1) if p1 <= q1 else (1, f1)
    g = work.segment[n]
    g[0], g[1], g[2] = _end(a, b, c, ha, hb, hc, name0) if side0 == 0 else _end(q, e, f, hq, he, hf, name0)
    g[3], g[4], g[5] = _end(a, b, c, ha, hb, hc, name1) if side1 == 0 else _end(q, e, f, hq, he, hf, name1)
    work.lean[n, 0], work.lean[n, 1], work.lean[n, 2] = m
    work.lean[n, 3], work.lean[n, 4], work.lean[n, 5] = k
    work.pair[n, 0], work.pair[n, 1], work.group[n] = t, u, n
    return n + 1, side0, name0, side1, name1


@inline
def _interval(a, b, c, ha, hb, hc):
    """From where to where, along a line in a plane, the plane cuts a triangle whose corners are at a, b, c along the
    line and at ha, hb, hc over the plane; and the numbers of the edges there."""
    if (ha > 0.0) != (hb > 0.0):
        p, k = a + ha / (ha - hb) * (b - a), 0
        if (hb > 0.0) != (hc > 0.0):
            q, m = b + hb / (hb - hc) * (c - b), 1
        else:
            q, m = c + hc / (hc - ha) * (a - c), 2
    else:
        p, k = b + hb / (hb - hc) * (c - b), 1
        q, m = c + hc / (hc - ha) * (a - c), 2
    if p <= q:
        return p, q, k, m
    return q, p, m, k


@inline
def _end(a, b, c, ha, hb, hc, edge):
    """Where an edge of a triangle goes through a plane over which its corners have these heights."""
    if edge == 0:
        return along(a, ha / (ha - hb), sub(b, a))
    if edge == 1:
        return along(b, hb / (hb - hc), sub(c, b))
    return along(c, hc / (hc - ha), sub(a, c))


@inline
def _slot(t, u, size):
    return ((t * 73856093) ^ (u * 19349663)) & (size - 1)


@inline
def _root(work, s):
    while work.group[s] != s:
        work.group[s] = work.group[work.group[s]]
        s = work.group[s]
    return s


@kernel
def join(work, n):
    """Join each segment with the next one of its contour: same triangle of one side, neighbour of the other."""
    table, size = work.table, 4
    while size < 2 * n:
        size *= 2
    for k in range(size):
        table[k] = -1
    for s in range(n):
        k = _slot(work.pair[s, 0], work.pair[s, 1], size)
        while table[k] >= 0:
            k = (k + 1) & (size - 1)
        table[k] = s
    for s in range(n):
        for end in range(2):
            t, u = work.next[s, 2 * end], work.next[s, 2 * end + 1]
            k = _slot(t, u, size)
            while t >= 0 and u >= 0 and table[k] >= 0:
                other = table[k]
                if work.pair[other, 0] == t and work.pair[other, 1] == u:
                    a, b = _root(work, s), _root(work, other)
                    work.group[max(a, b)] = min(a, b)
                    break
                k = (k + 1) & (size - 1)
    for s in range(n):
        root = _root(work, s)
        work.group[s], work.chain[s] = root, -1
        if root != s:
            work.chain[work.last[root]] = s
        work.last[root] = s


@inline
def _ends(work, s):
    g = work.segment[s]
    return (g[0], g[1], g[2]), (g[3], g[4], g[5])


@inline
def perpendicular_axes(normal):
    """Two axes perpendicular to a normal, and askew to most boxes, so that their corners lie furthest along them."""
    u = unit(cross(normal, (1.0, 0.4, 0.2) if abs(normal[0]) < 0.7 else (0.2, 1.0, 0.4)))
    return u, cross(normal, u)


@inline
def perpendicular_axes_of_both(normal, x, y, z):
    """As `perpendicular_axes`, but askew both to the axes x, y, z of i and to those of j: up to their signs, the same
    two axes whichever of the two meshes is i."""
    s = (x[0] + 0.4 * y[0] + 0.2 * z[0], x[1] + 0.4 * y[1] + 0.2 * z[1], x[2] + 0.4 * y[2] + 0.2 * z[2])
    a = cross(normal, (s[0] + 1.0, s[1] + 0.4, s[2] + 0.2))
    b = cross(normal, (s[0] - 1.0, s[1] - 0.4, s[2] - 0.2))
    if dot(a, a) < (1.0 - EVEN) * dot(b, b):
        a = b
    if dot(a, a) < 0.05:
        return perpendicular_axes(normal)
    u = unit(a)
    return u, cross(normal, u)


@kernel
def contour(work, root, x, y, z):
    """Plane of one region: its centroid, normal and two axes in it, the least and the largest height of the contour
    over the centroid, and its size, whichever of its segments is the first. The axes of i are `x`, `y`, `z`."""
    origin, _ = _ends(work, root)
    area, lean, size, s = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, root
    while s >= 0:
        a, b = _ends(work, s)
        a, b = sub(a, origin), sub(b, origin)
        area = along(area, 0.5, cross(a, b))
        lean = along(lean, -1.0, (work.lean[s, 0], work.lean[s, 1], work.lean[s, 2]))
        size = max(size, dot(a, a), dot(b, b))
        s = work.chain[s]
    if dot(area, area) < 1e-20 * size * size:  # a line, not a ring: the faces of j along it know the normal
        area = lean
    normal = unit(times(-1.0, area))
    u, v = perpendicular_axes_of_both(normal, x, y, z)
    centre, low, high, size = _centroid(work, root, origin, normal, u, v)
    return centre, normal, u, v, low, high, size


@inline
def _centroid(work, root, origin, normal, u, v):
    """Centroid of a contour in its plane (4.93), at the mean height; the least and largest height over it, and twice
    the largest distance from it."""
    area, cu, cv, height, length, mu, mv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    low, high, s, flat = math.inf, -math.inf, root, work.flat
    while s >= 0:
        a, b = _ends(work, s)
        a, b = sub(a, origin), sub(b, origin)
        au, av, bu, bv = dot(a, u), dot(a, v), dot(b, u), dot(b, v)
        flat[s, 0], flat[s, 1], flat[s, 2], flat[s, 3] = au, av, bu, bv
        twice = au * bv - bu * av
        area, cu, cv = area + twice, cu + (au + bu) * twice, cv + (av + bv) * twice
        ha, hb = dot(a, normal), dot(b, normal)
        w = math.sqrt(dot(sub(b, a), sub(b, a))) + 1e-300
        height, length = height + 0.5 * w * (ha + hb), length + w
        mu, mv = mu + 0.5 * w * (au + bu), mv + 0.5 * w * (av + bv)
        low, high = min(low, ha, hb), max(high, ha, hb)
        s = work.chain[s]
    if abs(area) > 1e-12 * length * length:
        cu, cv = cu / (3.0 * area), cv / (3.0 * area)
    else:
        cu, cv = mu / length, mv / length
    height /= length
    s, square = root, 0.0
    while s >= 0:
        flat[s, 0], flat[s, 1] = flat[s, 0] - cu, flat[s, 1] - cv
        flat[s, 2], flat[s, 3] = flat[s, 2] - cu, flat[s, 3] - cv
        square = max(square, flat[s, 0] ** 2 + flat[s, 1] ** 2, flat[s, 2] ** 2 + flat[s, 3] ** 2)
        s = work.chain[s]
    centre = along(along(along(origin, cu, u), cv, v), height, normal)
    low, high = low - height, high - height
    return centre, low, high, 2.0 * math.sqrt(square + max(low * low, high * high))


@kernel
def is_hole(work, root, normal):
    """Whether a contour is a hole in the region of another: the overlap lies about it, not within.

    Across a segment the overlap is the wedge behind both triangles. If that lies towards the inside of the contour, n_j
    leans to the normal by more than n_i does.
    """
    total, s = 0.0, root
    while s >= 0:
        a, b = _ends(work, s)
        d, f = sub(b, a), work.lean[s]
        total += math.sqrt(dot(d, d)) * dot(normal, (f[0] - f[3], f[1] - f[4], f[2] - f[5]))
        s = work.chain[s]
    return total < 0.0


@kernel
def _is_in(mesh, other, side, o, x, y, z, p, normal):
    """Whether a vertex of one side is inside mesh `other`, by a ray along the normal (of j: against it)."""
    if side == 0:
        return leave_mesh(mesh, other, p, normal, 0.0)[0] >= 0.0
    d = (-dot(normal, x), -dot(normal, y), -dot(normal, z))
    return leave_mesh(mesh, other, put_back(o, x, y, z, p), d, 0.0)[0] >= 0.0


@kernel
def inside(mesh, work, root, side, other, o, x, y, z, centre, normal, u, v, size, margin):
    """Go over the vertices of one mesh inside a region, keep the outermost; returns their extreme height.

    Where the region is wider than its contour, mesh `other` (-1: none) tells whether a vertex is inside it. Vertices of
    triangles that cross, not inside but no further than `margin` from the plane, are kept as loose.
    """
    forget(work, side)
    crossing, head, extreme = begin_search(work, root, side), 0, 0.0
    tail, bulge, hair = crossing, BULGE * size, EVEN * size
    while head < tail:
        t = work.queue[head]
        head += 1
        reached = 0
        for k in range(3):
            p = corner(mesh, t, k)
            if side == 0:
                p = moved(o, x, y, z, p)
            d = sub(p, centre)
            height = dot(d, normal)
            beyond = height if side == 1 else -height
            is_beyond, near = beyond > hair, head <= crossing and abs(height) <= margin
            if not (is_beyond or near):
                continue
            du, dv = dot(d, u), dot(d, v)
            is_in = is_beyond and (head > crossing or within(work, root, du, dv))
            if not is_in and other >= 0 and beyond > bulge:
                is_in = _is_in(mesh, other, side, o, x, y, z, p, normal)
            if is_in:
                reached |= 1 << k
                extreme = min(extreme, height) if side == 0 else max(extreme, height)
                keep(work, side * SPOTS, SPOTS, du, dv, height, p, mesh.triangle[t, k])
            elif near:
                keep(work, LOOSE + 4 * side, 4, du, dv, height, p, mesh.triangle[t, k])
        if reached != 0:
            tail = go_on_search(mesh, work, t, reached, tail)
    return extreme


@inline
def begin_search(work, root, side):
    """Queue the triangles of one side that cross in a region; returns how many."""
    work.turn[0] += 1
    turn, queue, tail, s = work.turn[0], work.queue, 0, root
    while s >= 0:
        t = work.pair[s, side]
        if work.mark[t] != turn and tail < queue.size:
            work.mark[t] = turn
            queue[tail] = t
            tail += 1
        s = work.chain[s]
    return tail


@inline
def go_on_search(mesh, work, t, corners, tail):
    """Queue the neighbours of triangle `t`, that share one of these corners (bits), if they were not yet; returns the
    new length of the queue."""
    turn, queue = work.turn[0], work.queue
    for k in range(3):
        w = mesh.neighbour[t, k]
        ends = 1 << k | 1 << (k + 1) % 3
        if w >= 0 and corners & ends != 0 and work.mark[w] != turn and tail < queue.size:
            work.mark[w] = turn
            queue[tail] = w
            tail += 1
    return tail


@inline
def forget(work, side):
    """No vertex of this side is kept."""
    for k in range(SPOTS):
        work.name[side * SPOTS + k] = -1
    for k in range(4):
        work.name[LOOSE + 4 * side + k] = -1


@inline
def keep(work, first, spots, a, b, height, p, name):
    """Keep a vertex in the spots from `first` on if it is the furthest yet along +a, -a, +b, -b, or in height.

    Of several as far as each other, as regular meshes have them, that with the least number: rounding must not decide.
    """
    even = EVEN * (abs(a) + abs(b) + abs(height))
    for k in range(spots):
        score = a if k == 0 else -a if k == 1 else b if k == 2 else -b if k == 3 else abs(height)
        f = work.found[first + k]
        more, was = score - f[0], work.name[first + k]
        if was < 0 or more > even or (more >= -even and name < was):
            work.name[first + k] = name
            f[0], f[1], f[2], f[3], f[4] = score, p[0], p[1], p[2], height


@inline
def keep_low(work, first, a, b, away, p, name):
    """As `keep` in four spots, but what a vertex is further away counts against it."""
    for k in range(4):
        score = (a if k == 0 else -a if k == 1 else b if k == 2 else -b) - 2.0 * away
        f = work.found[first + k]
        if work.name[first + k] < 0 or score > f[0]:
            work.name[first + k] = name
            f[0], f[1], f[2], f[3], f[4] = score, p[0], p[1], p[2], away


@inline
def within(work, root, pu, pv):
    """Whether a point of the plane lies within the contour: a ray along u crosses it an odd number of times.

    The point is moved a hair towards the centroid: the corners of a box that stands on the other mesh lie right
    below the contour.
    """
    pu, pv, odd, s, flat = (1.0 - 1e-6) * pu, (1.0 - 1e-6) * pv, False, root, work.flat
    while s >= 0:
        av, bv = flat[s, 1], flat[s, 3]
        if (av > pv) != (bv > pv):
            au = flat[s, 0]
            if au + (pv - av) / (bv - av) * (flat[s, 2] - au) > pu:
                odd = not odd
        s = work.chain[s]
    return odd
