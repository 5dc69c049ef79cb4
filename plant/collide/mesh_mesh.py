"""Meshes against meshes: where their surfaces cross.

Two surfaces that overlap cross along closed contours, one for each region of contact. Steps, per Luaces 4.7:

1. Both trees are walked together; of two boxes that meet, the larger is opened (4.6.1). Two leaves give pairs of
   triangles.
2. A pair that crosses gives a segment, whose ends are where an edge of one goes through the other (4.81-4.85).
3. An end on an edge leads to the pair with the neighbour across that edge: so segments are joined to regions
   (4.86-4.88).
4. A segment runs along n_i x n_j, so that all segments of a contour go the same way round, and the contour need
   not be put in order: its vector area is the sum over its segments, and so is its centroid (4.93). The area's
   direction is the normal of the contact plane. Luaces fits the plane by least squares (4.89-4.91); the area
   needs no factorisation and has a sign.
5. From the triangles that cross, the vertices inside are reached from neighbour to neighbour: those on the far side of
   the plane whose projection lies within the contour, by counting crossings (4.7.6).

The depth of a region is the distance along the normal from the lowest point of i to the highest of j, of contour and
vertices inside. (Luaces 4.99 takes the larger of the two distances from the plane; their sum is the whole
overlap, also where both surfaces are curved.) A region gives up to five points, the deepest vertex and four far apart,
each with its own depth, and one at its centroid if no vertex is inside.

Limits: only surfaces that cross touch; there are no gaps, and a mesh that is wholly inside another is not seen. Pairs,
segments and vertices beyond the room in the scratch are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.jit import inline, kernel
from hilnode.record import F2, I1, I2, viewer
from plant.collide.mesh import COUNT, FIRST, RIGHT, corner, face
from plant.collide.mesh_convex import put, turned
from plant.collide.triangle import add, along, dot, place, product, sub, times, to_world, unit

DEPTH = 256  # pairs of nodes that wait
SPOTS = 5  # points of a region, at most
INSIDE = 512  # triangles searched for vertices inside, per region and side


class Crossing(NamedTuple):
    """Scratch of mesh_mesh, for one thread."""

    stack: I2  # [DEPTH, 2] pairs of nodes still to be looked at
    segment: F2  # [s, 6] from and to, in the frame of j
    pair: I2  # [s, 2] triangles of i and j
    next: I2  # [s, 4] the edge at each end: side (0: of i's triangle, 1: of j's) and number
    group: I1  # [s] the segment that stands for its region
    table: I1  # [2 s or more, power of two] segments by their pair; -1 = free
    mark: I1  # [triangles of all meshes] the search that saw it last
    queue: I1  # [INSIDE]
    found: F2  # [2 * SPOTS, 5] per side, the vertex inside that is furthest each way: how far, where, height
    name: I1  # [2 * SPOTS] its number; -1 = none
    turn: I1  # [1] number of the last search


view_crossing = viewer(Crossing)


def new_crossing(triangles: int, segments: int = 2048) -> Crossing:
    """Scratch for meshes of so many triangles in all."""
    table = 1 << (2 * segments - 1).bit_length()
    whole = np.int64
    return Crossing(
        stack=np.zeros((DEPTH, 2), whole),
        segment=np.zeros((segments, 6)),
        pair=np.zeros((segments, 2), whole),
        next=np.zeros((segments, 4), whole),
        group=np.zeros(segments, whole),
        table=np.full(table, -1, whole),
        mark=np.zeros(triangles, whole),
        queue=np.zeros(INSIDE, whole),
        found=np.zeros((2 * SPOTS, 5)),
        name=np.zeros(2 * SPOTS, whole),
        turn=np.zeros(1, whole),
    )


@kernel
def mesh_mesh(shape, placed, mesh, work, i, j, margin, out):
    """Mesh i against mesh j; `work` is a Crossing."""
    p = placed.pos[i]
    o = place(placed, j, (p[0], p[1], p[2]))  # the frame of i in that of j
    x, y, z = turned(placed.rot[j], placed.rot[i])
    n = _cross_trees(mesh, work, shape.asset[i], shape.asset[j], o, x, y, z)
    if n == 0:
        return 0
    _join(mesh, work, n)
    count = 0
    for s in range(n):
        if _root(work, s) == s:
            count = _region(mesh, work, s, n, o, x, y, z, out, count)
    return to_world(placed, j, out, count)


@inline
def _moved(o, x, y, z, p):
    q = put(x, y, z, p)
    return q[0] + o[0], q[1] + o[1], q[2] + o[2]


@inline
def _boxes_meet(mesh, a, b, o, x, y, z):
    """Whether the box of node `a`, in another frame, may meet that of node `b`: the axes of both frames separate."""
    p, q = mesh.box[a], mesh.box[b]
    hx, hy, hz = 0.5 * (p[3] - p[0]), 0.5 * (p[4] - p[1]), 0.5 * (p[5] - p[2])
    kx, ky, kz = 0.5 * (q[3] - q[0]), 0.5 * (q[4] - q[1]), 0.5 * (q[5] - q[2])
    c = _moved(o, x, y, z, (0.5 * (p[0] + p[3]), 0.5 * (p[1] + p[4]), 0.5 * (p[2] + p[5])))
    d = (c[0] - 0.5 * (q[0] + q[3]), c[1] - 0.5 * (q[1] + q[4]), c[2] - 0.5 * (q[2] + q[5]))
    if (
        abs(d[0]) > kx + hx * abs(x[0]) + hy * abs(y[0]) + hz * abs(z[0])
        or abs(d[1]) > ky + hx * abs(x[1]) + hy * abs(y[1]) + hz * abs(z[1])
        or abs(d[2]) > kz + hx * abs(x[2]) + hy * abs(y[2]) + hz * abs(z[2])
    ):
        return False
    return (
        abs(dot(d, x)) <= hx + kx * abs(x[0]) + ky * abs(x[1]) + kz * abs(x[2])
        and abs(dot(d, y)) <= hy + kx * abs(y[0]) + ky * abs(y[1]) + kz * abs(y[2])
        and abs(dot(d, z)) <= hz + kx * abs(z[0]) + ky * abs(z[1]) + kz * abs(z[2])
    )


@inline
def _girth(mesh, node):
    b = mesh.box[node]
    return max(b[3] - b[0], b[4] - b[1], b[5] - b[2])


@kernel
def _cross_trees(mesh, work, m, w, o, x, y, z):
    """Fill the list of segments; returns how many."""
    stack, depth, n = work.stack, 1, 0
    stack[0, 0], stack[0, 1] = mesh.first_node[m], mesh.first_node[w]
    while depth > 0:
        depth -= 1
        a, b = stack[depth, 0], stack[depth, 1]
        if not _boxes_meet(mesh, a, b, o, x, y, z):
            continue
        leaf_a, leaf_b = mesh.link[a, COUNT] > 0, mesh.link[b, COUNT] > 0
        if leaf_a and leaf_b:
            for t in range(mesh.link[a, FIRST], mesh.link[a, FIRST] + mesh.link[a, COUNT]):
                for u in range(mesh.link[b, FIRST], mesh.link[b, FIRST] + mesh.link[b, COUNT]):
                    n = _cross_pair(mesh, work, t, u, o, x, y, z, n)
        elif depth + 2 <= stack.shape[0]:
            if leaf_b or (not leaf_a and _girth(mesh, a) >= _girth(mesh, b)):
                stack[depth, 0], stack[depth, 1] = a + 1, b
                stack[depth + 1, 0], stack[depth + 1, 1] = mesh.link[a, RIGHT], b
            else:
                stack[depth, 0], stack[depth, 1] = a, b + 1
                stack[depth + 1, 0], stack[depth + 1, 1] = a, mesh.link[b, RIGHT]
            depth += 2
    return n


@kernel
def _cross_pair(mesh, work, t, u, o, x, y, z, n):
    """Where triangle `t` of i and `u` of j cross: both cut the line that their planes share in an interval each."""
    m, q = face(mesh, u), corner(mesh, u, 0)
    a = _moved(o, x, y, z, corner(mesh, t, 0))
    b = _moved(o, x, y, z, corner(mesh, t, 1))
    c = _moved(o, x, y, z, corner(mesh, t, 2))
    ha, hb, hc = dot(sub(a, q), m), dot(sub(b, q), m), dot(sub(c, q), m)
    if (ha > 0.0) == (hb > 0.0) and (hb > 0.0) == (hc > 0.0):
        return n
    k = put(x, y, z, face(mesh, t))
    e, f = corner(mesh, u, 1), corner(mesh, u, 2)
    hq, he, hf = dot(sub(q, a), k), dot(sub(e, a), k), dot(sub(f, a), k)
    if (hq > 0.0) == (he > 0.0) and (he > 0.0) == (hf > 0.0):
        return n
    way = product(k, m)
    p0, e0, p1, e1 = _cut(a, b, c, ha, hb, hc, way)
    q0, f0, q1, f1 = _cut(q, e, f, hq, he, hf, way)
    low0, low1 = dot(p0, way), dot(q0, way)
    high0, high1 = dot(p1, way), dot(q1, way)
    if max(low0, low1) > min(high0, high1) or n == work.group.size:
        return n
    begin, side0, name0 = (p0, 0, e0) if low0 >= low1 else (q0, 1, f0)
    end, side1, name1 = (p1, 0, e1) if high0 <= high1 else (q1, 1, f1)
    g = work.segment[n]
    g[0], g[1], g[2] = begin
    g[3], g[4], g[5] = end
    work.pair[n, 0], work.pair[n, 1], work.group[n] = t, u, n
    work.next[n, 0], work.next[n, 1], work.next[n, 2], work.next[n, 3] = side0, name0, side1, name1
    return n + 1


@inline
def _cut(a, b, c, ha, hb, hc, way):
    """The two places, in order along `way`, where a triangle crosses a plane that its corners have these heights over,
    each followed by the number of the edge there."""
    if (ha > 0.0) != (hb > 0.0):
        p, k = along(a, ha / (ha - hb), sub(b, a)), 0
        if (hb > 0.0) != (hc > 0.0):
            q, m = along(b, hb / (hb - hc), sub(c, b)), 1
        else:
            q, m = along(c, hc / (hc - ha), sub(a, c)), 2
    else:
        p, k = along(b, hb / (hb - hc), sub(c, b)), 1
        q, m = along(c, hc / (hc - ha), sub(a, c)), 2
    if dot(p, way) <= dot(q, way):
        return p, k, q, m
    return q, m, p, k


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
def _join(mesh, work, n):
    """Join each segment with the next one of its contour: same triangle of one mesh, neighbour of the other."""
    table = work.table
    for k in range(table.size):
        table[k] = -1
    for s in range(n):
        k = _slot(work.pair[s, 0], work.pair[s, 1], table.size)
        while table[k] >= 0:
            k = (k + 1) & (table.size - 1)
        table[k] = s
    for s in range(n):
        for end in range(2):
            t, u, edge = work.pair[s, 0], work.pair[s, 1], work.next[s, 2 * end + 1]
            if work.next[s, 2 * end] == 0:
                t = mesh.neighbour[t, edge]
            else:
                u = mesh.neighbour[u, edge]
            k = _slot(t, u, table.size)
            while t >= 0 and u >= 0 and table[k] >= 0:
                other = table[k]
                if work.pair[other, 0] == t and work.pair[other, 1] == u:
                    a, b = _root(work, s), _root(work, other)
                    work.group[max(a, b)] = min(a, b)
                    break
                k = (k + 1) & (table.size - 1)


@inline
def _ends(work, s):
    g = work.segment[s]
    return (g[0], g[1], g[2]), (g[3], g[4], g[5])


@kernel
def _region(mesh, work, root, n, o, x, y, z, out, count):
    """Plane, centroid and depth of one region, and its points, in the frame of j."""
    origin, _ = _ends(work, root)
    area, size, length = (0.0, 0.0, 0.0), 0.0, 0.0
    for s in range(root, n):
        if _root(work, s) == root:
            a, b = _ends(work, s)
            a, b = sub(a, origin), sub(b, origin)
            area = along(area, 0.5, product(a, b))
            size = max(size, dot(a, a), dot(b, b))
            length += math.sqrt(dot(sub(b, a), sub(b, a)))
    if dot(area, area) < 1e-20 * size * size:
        area = (0.0, 0.0, 0.0)
        for s in range(root, n):  # a line, not a ring: the faces of j along it know the normal
            if _root(work, s) == root:
                area = along(area, -1.0, face(mesh, work.pair[s, 1]))
    normal = unit(times(-1.0, area))
    u = unit(product(normal, (1.0, 0.4, 0.2) if abs(normal[0]) < 0.7 else (0.2, 1.0, 0.4)))  # askew to most boxes
    v = product(normal, u)
    centre, low, high = _centroid(work, root, n, origin, normal, u, v)
    low = min(low, _inside(mesh, work, root, n, 0, o, x, y, z, centre, normal, u, v))
    high = max(high, _inside(mesh, work, root, n, 1, o, x, y, z, centre, normal, u, v))
    side = 0 if -low >= high else 1
    near, before = 1e-6 * math.sqrt(size), count
    for k in range(side * SPOTS, (side + 1) * SPOTS):
        if work.name[k] < 0:
            continue
        f = work.found[k]
        depth = high - f[4] if side == 0 else f[4] - low
        middle = along((f[1], f[2], f[3]), (0.5 if side == 0 else -0.5) * depth, normal)
        count = add(out, count, middle, normal, depth, 8 * work.name[k] + side, near)
    if count == before:
        count = add(out, count, centre, normal, high - low, 8 * work.pair[root, 0] + 2, near)
    return count


@inline
def _centroid(work, root, n, origin, normal, u, v):
    """Centroid of a contour in its plane (4.93), at the mean height; and the least and largest height over it."""
    area, cu, cv, height, length, mu, mv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    low, high = math.inf, -math.inf
    for s in range(root, n):
        if _root(work, s) != root:
            continue
        a, b = _ends(work, s)
        a, b = sub(a, origin), sub(b, origin)
        au, av, bu, bv = dot(a, u), dot(a, v), dot(b, u), dot(b, v)
        twice = au * bv - bu * av
        area, cu, cv = area + twice, cu + (au + bu) * twice, cv + (av + bv) * twice
        ha, hb = dot(a, normal), dot(b, normal)
        w = math.sqrt(dot(sub(b, a), sub(b, a))) + 1e-300
        height, length = height + 0.5 * w * (ha + hb), length + w
        mu, mv = mu + 0.5 * w * (au + bu), mv + 0.5 * w * (av + bv)
        low, high = min(low, ha, hb), max(high, ha, hb)
    if abs(area) > 1e-12 * length * length:
        cu, cv = cu / (3.0 * area), cv / (3.0 * area)
    else:
        cu, cv = mu / length, mv / length
    height /= length
    centre = along(along(along(origin, cu, u), cv, v), height, normal)
    return centre, low - height, high - height


@kernel
def _inside(mesh, work, root, n, side, o, x, y, z, centre, normal, u, v):
    """Go over the vertices of one mesh inside a region, keep the outermost; returns their extreme height."""
    work.turn[0] += 1
    turn, queue, head, tail = work.turn[0], work.queue, 0, 0
    for k in range(side * SPOTS, (side + 1) * SPOTS):
        work.name[k] = -1
    extreme = 0.0
    for s in range(root, n):
        t = work.pair[s, side]
        if _root(work, s) == root and work.mark[t] != turn and tail < queue.size:
            work.mark[t] = turn
            queue[tail] = t
            tail += 1
    while head < tail:
        t = queue[head]
        head += 1
        reached = False
        for k in range(3):
            p = corner(mesh, t, k)
            if side == 0:
                p = _moved(o, x, y, z, p)
            d = sub(p, centre)
            height = dot(d, normal)
            if (height >= 0.0) == (side == 0) or not _within(work, root, n, d, centre, u, v):
                continue
            reached = True
            extreme = min(extreme, height) if side == 0 else max(extreme, height)
            _keep(work, side, dot(d, u), dot(d, v), height, p, mesh.triangle[t, k])
        for k in range(3):
            w = mesh.neighbour[t, k]
            if reached and w >= 0 and work.mark[w] != turn and tail < queue.size:
                work.mark[w] = turn
                queue[tail] = w
                tail += 1
    return extreme


@inline
def _keep(work, side, a, b, height, p, name):
    for k in range(SPOTS):
        score = a if k == 0 else -a if k == 1 else b if k == 2 else -b if k == 3 else abs(height)
        spot = side * SPOTS + k
        f = work.found[spot]
        if work.name[spot] < 0 or score > f[0]:
            work.name[spot] = name
            f[0], f[1], f[2], f[3], f[4] = score, p[0], p[1], p[2], height


@inline
def _within(work, root, n, d, centre, u, v):
    """Whether a point lies within the contour, seen along the normal: a ray along u crosses it an odd number of times.

    The point is moved a hair towards the centroid: the corners of a box that stands on the other mesh lie right
    below the contour.
    """
    pu, pv = (1.0 - 1e-6) * dot(d, u), (1.0 - 1e-6) * dot(d, v)
    odd = False
    for s in range(root, n):
        if _root(work, s) != root:
            continue
        a, b = _ends(work, s)
        a, b = sub(a, centre), sub(b, centre)
        av, bv = dot(a, v), dot(b, v)
        if (av > pv) != (bv > pv):
            au = dot(a, u)
            if au + (pv - av) / (bv - av) * (dot(b, u) - au) > pu:
                odd = not odd
    return odd
