"""Round shapes against meshes: sphere, capsule, torus, link.

A round shape is a core (a point, a segment, a curve) with a radius. A contact is a local minimum of the distance from
the core to the surface, so a sphere in a corner has two points and one on a ridge has one. Whether
the core is outside follows from the normal at the nearest point of all: the face's, the sum of two faces' on an
edge, the mean by angles at a vertex. A core inside is pushed out through that nearest point. In a closed mesh a
core is pushed out from any depth; through an open one it is seen down to radius + margin.

The core of a torus, and of the bends of a link, is cut into pieces. Where the distance to the surface falls at one end
of a piece and rises at the other, the nearest place between them is worked out, and a sphere there gives the contact.

Ref: Luaces 4.6.2 for spheres (eq. 4.27-4.40); 4.6.4 and 4.6.5 minimise the same distance for tori and links with an
augmented Lagrangian per triangle, one for every triangle near.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel
from plant.collide.mesh import BORDER, COUNT, FIRST, RIDGE, RIGHT, SKIP, at, corner, face, gap, meets
from plant.collide.triangle import (
    CORNER,
    FACE,
    add,
    along,
    behind,
    dot,
    into,
    place,
    product,
    pull,
    sub,
    times,
    to_world,
    unit,
)
from plant.collide.wide import LEVELS, around, lowest, next_leaf

AROUND = 16  # pieces along a torus, and along the two bends of a link together
STEPS = 24  # towards the nearest place on a piece of a bend, at most; two to six as a rule
LEVEL = 1e-7  # slope of a bend over the surface that counts as none
SPREAD = 349525  # keeps the features of several spheres of one shape apart


@kernel
def sphere_mesh(shape, placed, mesh, i, j, margin, out):
    """A sphere against a mesh."""
    p = placed.pos[i]
    c = place(placed, j, (p[0], p[1], p[2]))
    return to_world(placed, j, out, _touch(mesh, shape.asset[j], c, shape.size[i, 0], margin, out, 0, 0))


@kernel
def capsule_mesh(shape, placed, mesh, i, j, margin, out):
    """A capsule against a mesh: its two ends as spheres, and its core against ridges in between."""
    m, radius, half = shape.asset[j], shape.size[i, 0], shape.size[i, 1]
    p, r = placed.pos[i], placed.rot[i]
    a = place(placed, j, (p[0] - half * r[0, 2], p[1] - half * r[1, 2], p[2] - half * r[2, 2]))
    b = place(placed, j, (p[0] + half * r[0, 2], p[1] + half * r[1, 2], p[2] + half * r[2, 2]))
    return to_world(placed, j, out, _touch_segment(mesh, m, a, b, radius, margin, out, 0, 0))


@kernel
def torus_mesh(shape, placed, mesh, i, j, margin, out):
    """A torus against a mesh."""
    return _touch_ring(placed, mesh, shape.asset[j], i, j, 0.0, shape.size[i, 0], shape.size[i, 1], margin, out)


@kernel
def link_mesh(shape, placed, mesh, i, j, margin, out):
    """A chain link against a mesh: two straight parts and two bends."""
    size = shape.size[i]
    return _touch_ring(placed, mesh, shape.asset[j], i, j, size[0], size[1], size[2], margin, out)


@kernel
def _touch(mesh, m, c, radius, margin, out, count, tag):
    """List where a sphere at `c` (in the mesh's frame) touches mesh `m`; returns the new count."""
    reach = radius + margin
    limit = reach * reach
    bounds = around((c[0] - reach, c[1] - reach, c[2] - reach), (c[0] + reach, c[1] + reach, c[2] + reach))
    best, owner, where, foot, outside = limit, -1, FACE, c, False
    level, node, waiting = mesh.wide_level[m, LEVELS], 0, 1
    while True:
        level, node, waiting, first, met = next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            break
        while met != 0:
            t = first + lowest(met)
            met &= met - 1
            p, q, r = at(mesh, mesh.row[t, 0]), at(mesh, mesh.row[t, 1]), at(mesh, mesh.row[t, 2])
            region, x, y, z = pull(c, p, q, r)
            d = sub(c, (x, y, z))
            square = dot(d, d)
            if square > limit:
                continue
            if square < best:
                best, owner, where, foot, outside = square, t, region, (x, y, z), False
            if region == FACE:
                n = unit(product(sub(q, p), sub(r, p)))  # as it is in mesh.normal, which would have to be waited for
                if dot(d, n) >= 0.0:
                    count = _above_face(t, (x, y, z), dot(d, n), n, radius, out, count, tag)
                    outside = outside or t == owner
            elif not _leans_over(mesh, t, region, d, p, q, r):
                count = _above_edge(mesh, t, region, (x, y, z), d, radius, out, count, tag)
    if outside:
        return count
    if owner < 0:
        return _from_inside(mesh, m, c, radius, out, count, tag)
    return _below(mesh, owner, where, foot, sub(c, foot), radius, out, count, tag)


@inline
def _above_face(t, foot, height, n, radius, out, count, tag):
    depth = radius - height
    return add(out, count, along(foot, -0.5 * depth, n), n, depth, 8 * t + SPREAD * tag, 1e-6 * radius)


@inline
def _leans_over(mesh, t, region, d, p, q, r):
    """Whether the triangle across the edge of this region of `t`, which has the corners p, q, r, leans towards `d`.

    At a corner it is asked of the edges from there to the vertices across both edges that end in it: the other edges
    there are left to the walk about the corner, which few need.
    """
    k = (region - 1) % 3
    a, b = (p, q) if k == 0 else (q, r) if k == 1 else (r, p)
    v = mesh.row[t, 3 + k]
    if region < CORNER:
        return v >= 0 and not behind(d, a, b, at(mesh, v))
    u = mesh.row[t, 3 + (k + 2) % 3]
    return (v >= 0 and goes_along(d, a, at(mesh, v))) or (u >= 0 and goes_along(d, a, at(mesh, u)))


@kernel
def _above_edge(mesh, t, region, foot, d, radius, out, count, tag):
    """A sphere over an edge or a corner of `t`, to which no triangle across an edge is nearer."""
    if region >= CORNER and not _is_nearest_corner(mesh, t, region - CORNER, d):
        return count
    n, feature = _normal_there(mesh, t, region)
    if dot(d, n) < 0.0:
        return count
    size = math.sqrt(dot(d, d))
    if size > 1e-9 * radius:
        n = times(1.0 / size, d)
    depth = radius - size
    return add(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)


@kernel
def _below(mesh, t, region, foot, d, radius, out, count, tag):
    """If the nearest point of all says that the centre is inside, push it out through there."""
    n, feature = _normal_there(mesh, t, region)
    if dot(d, n) >= 0.0 or _on_border(mesh, t, region):
        return count
    size = math.sqrt(dot(d, d))
    if region != FACE and size > 1e-9 * radius:
        n = times(-1.0 / size, d)
    depth = radius + size
    return add(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)


@kernel
def _from_inside(mesh, m, c, radius, out, count, tag):
    """A centre further from the surface of a closed mesh than it reaches: push it out if it is inside."""
    root = mesh.first_node[m]
    if mesh.closed[m] == 0 or gap(mesh, root, c) > 0.0:
        return count
    t, region, x, y, z = nearest(mesh, m, c, math.inf)
    return _below(mesh, t, region, (x, y, z), sub(c, (x, y, z)), radius, out, count, tag)


@kernel
def nearest(mesh, m, c, limit):
    """Triangle, region and place of the point of mesh `m` nearest to `c`, nearer than sqrt(limit); triangle -1 = none.

    Down the nearer branch first; the other is looked at on the way back up. `later` has a bit for each level at which
    it still waits, so that the way back needs no stack.
    """
    root = mesh.first_node[m]
    best, owner, where, foot = limit, -1, FACE, c
    node, level, later = root, 0, 0
    while True:
        if mesh.link[node, COUNT] == 0:
            left, right = node + 1, mesh.link[node, RIGHT]
            a, b = gap(mesh, left, c), gap(mesh, right, c)
            if min(a, b) < best:
                level += 1
                later = (later << 1) | (1 if max(a, b) < best else 0)
                node = left if a <= b else right
                continue
        else:
            for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
                region, x, y, z = pull(c, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
                d = sub(c, (x, y, z))
                square = dot(d, d)
                if square < best:
                    best, owner, where, foot = square, t, region, (x, y, z)
        while True:
            while level > 0 and later & 1 == 0:
                node, later, level = mesh.parent[node], later >> 1, level - 1
            if level == 0:
                return owner, where, foot[0], foot[1], foot[2]
            above = mesh.parent[node]
            node = mesh.link[above, RIGHT] if node == above + 1 else above + 1
            later -= 1
            if gap(mesh, node, c) < best:
                break


@inline
def _normal_there(mesh, t, region):
    """An outward normal (on an edge not unit) and the feature at a region of `t`."""
    n = face(mesh, t)
    if region == FACE:
        return n, 8 * t
    if region < CORNER:
        k = region - 1
        u = mesh.neighbour[t, k]
        if u < 0:
            return n, 8 * t + region
        m = face(mesh, u)
        return unit((n[0] + m[0], n[1] + m[1], n[2] + m[2])), 8 * min(t, u) + 1
    v = mesh.triangle[t, region - CORNER]
    if mesh.rim[v] == 1:
        return n, 8 * v + 7
    return (mesh.outward[v, 0], mesh.outward[v, 1], mesh.outward[v, 2]), 8 * v + 7


@inline
def _on_border(mesh, t, region):
    if region == FACE:
        return False
    if region < CORNER:
        return mesh.neighbour[t, region - 1] < 0
    return mesh.rim[mesh.triangle[t, region - CORNER]] == 1


@inline
def _is_nearest(mesh, t, region, d):
    """Whether no neighbour at this edge or corner leans towards `d`."""
    if region < CORNER:
        k = region - 1
        v = mesh.across[t, k]
        return v < 0 or behind(d, corner(mesh, t, k), corner(mesh, t, (k + 1) % 3), at(mesh, v))
    return _is_nearest_corner(mesh, t, region - CORNER, d)


@inline
def goes_along(d, a, b):
    """Whether the edge from `a` to `b` goes along `d`, by more than a hair's breadth."""
    e = sub(b, a)
    return dot(d, e) > 1e-9 * math.sqrt(dot(d, d)) * math.sqrt(dot(e, e))


@kernel
def _is_nearest_corner(mesh, t, k, d):
    """Walk about the corner: no edge that ends in it may go along `d`."""
    v = mesh.triangle[t, k]
    a = at(mesh, v)
    for back in range(2):  # one way round, and the other if there is a border
        u, k_u = t, k
        for _ in range(256):
            if goes_along(d, a, corner(mesh, u, (k_u + 1 + back) % 3)):
                return False
            u = mesh.neighbour[u, k_u if back == 0 else (k_u + 2) % 3]
            if u == t:
                return True
            if u < 0:
                break
            k_u = 0
            while k_u < 2 and mesh.triangle[u, k_u] != v:
                k_u += 1
    return True


@kernel
def _touch_segment(mesh, m, a, b, radius, margin, out, count, tag):
    """List where a segment with a radius touches mesh `m`."""
    reach = radius + margin
    low = min(a[0], b[0]) - reach, min(a[1], b[1]) - reach, min(a[2], b[2]) - reach
    high = max(a[0], b[0]) + reach, max(a[1], b[1]) + reach, max(a[2], b[2]) + reach
    if not meets(mesh, mesh.first_node[m], low, high):
        return count
    count = _touch(mesh, m, a, radius, margin, out, count, tag)
    count = _touch(mesh, m, b, radius, margin, out, count, tag + 1)
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    while node < end:
        if not meets(mesh, node, low, high):
            node = mesh.link[node, SKIP]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            n, o = face(mesh, t), corner(mesh, t, 0)
            p, q = dot(sub(a, o), n), dot(sub(b, o), n)
            if min(p, q) > reach or max(p, q) < -reach:
                continue
            if (p > 0.0) != (q > 0.0) and min(p, q) < -reach:
                count = _pierced(mesh, t, a, b, p, q, n, radius, out, count, tag)
            for k in range(3):
                u = mesh.neighbour[t, k]
                if mesh.edge[t, k] == BORDER or (mesh.edge[t, k] == RIDGE and t < u):
                    count = _over_ridge(mesh, t, k, a, b, radius, margin, out, count, tag)
        node += 1
    return count


@inline
def _pierced(mesh, t, a, b, p, q, n, radius, out, count, tag):
    """The core goes through the face: its lower end is to be lifted out."""
    x = along(a, p / (p - q), sub(b, a))
    region, _, _, _ = pull(x, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
    if region != FACE:
        return count
    low, depth = (b, radius - q) if q < p else (a, radius - p)
    return add(out, count, along(low, 0.5 * depth - radius, n), n, depth, 8 * t + 6 + SPREAD * tag, 1e-6 * radius)


@kernel
def _over_ridge(mesh, t, k, a, b, radius, margin, out, count, tag):
    """The core against an edge, where the nearest point lies between the core's ends (they are done as spheres)."""
    c, e = corner(mesh, t, k), corner(mesh, t, (k + 1) % 3)
    s, u = between(a, b, c, e)
    if s <= 1e-9 or s >= 1.0 - 1e-9:
        return count
    foot = along(c, u, sub(e, c))
    d = sub(along(a, s, sub(b, a)), foot)
    square = dot(d, d)
    if square > (radius + margin) * (radius + margin):
        return count
    region = k + 1
    if u <= 0.0:
        region = CORNER + k
    elif u >= 1.0:
        region = CORNER + (k + 1) % 3
    n, feature = _normal_there(mesh, t, region)
    size = math.sqrt(square)
    way = 1.0
    if dot(d, n) < 0.0:  # the ridge has come through the core
        if _on_border(mesh, t, region):
            return count
        way = -1.0
        d = times(-1.0, d)
    if size > 1e-9 * radius:
        if not _is_nearest(mesh, t, region, d) or not behind(d, c, e, corner(mesh, t, (k + 2) % 3)):
            return count
        n = times(1.0 / size, d)
    depth = radius - way * size
    return add(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * (tag + 2), 1e-6 * radius)


@inline
def between(a, b, c, e):
    """Parameters, 0 to 1, of the nearest points of the segments ab and ce."""
    x, y, w = sub(b, a), sub(e, c), sub(a, c)
    xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
    xw, yw = dot(x, w), dot(y, w)
    under = xx * yy - xy * xy
    s = 0.5
    if under > 1e-12 * xx * yy:
        s = min(max((xy * yw - yy * xw) / under, 0.0), 1.0)
    u = (xy * s + yw) / max(yy, 1e-300)
    if u < 0.0 or u > 1.0:
        u = min(max(u, 0.0), 1.0)
        s = min(max((xy * u - xw) / max(xx, 1e-300), 0.0), 1.0)
    return s, u


@kernel
def _touch_ring(placed, mesh, m, i, j, half, ring, wire, margin, out):
    """A closed curve of two bends of radius `ring` whose centres are 2 `half` apart, with the radius `wire`."""
    reach = half + ring + wire + margin
    p, r = placed.pos[i], placed.rot[i]
    centre = place(placed, j, (p[0], p[1], p[2]))
    root = mesh.first_node[m]
    if gap(mesh, root, centre) > reach * reach:
        return 0
    ux = into(placed.rot[j], (r[0, 0], r[1, 0], r[2, 0]))
    uy = into(placed.rot[j], (r[0, 1], r[1, 1], r[2, 1]))
    count = 0
    if half > 0.0:
        for side in range(2):
            y = ring if side == 0 else -ring
            a, b = along(along(centre, -half, ux), y, uy), along(along(centre, half, ux), y, uy)
            count = _touch_segment(mesh, m, a, b, wire, margin, out, count, 2 * AROUND + 4 * side)
    step = 2.0 * math.pi / AROUND
    reach = wire + margin + step * ring  # whatever touches a piece is seen from both its ends
    last = _slope(mesh, m, along(centre, half, ux), ux, uy, 0.0, ring, reach)
    for k in range(AROUND):
        low, high = k * step, (k + 1) * step
        middle = along(centre, half if math.cos(low + 0.5 * step) >= 0.0 else -half, ux)
        if half > 0.0 and (k == AROUND // 4 or k == 3 * AROUND // 4):
            last = _slope(mesh, m, middle, ux, uy, low, ring, reach)
        this = _slope(mesh, m, middle, ux, uy, high, ring, reach)
        if last <= LEVEL and this >= -LEVEL:
            angle = _level(mesh, m, middle, ux, uy, low, high, last, this, ring, reach)
            x, y = math.cos(angle), math.sin(angle)
            c = along(along(middle, ring * x, ux), ring * y, uy)
            count = _touch(mesh, m, c, wire, margin, out, count, k)
        last = this
    return to_world(placed, j, out, count)


@kernel
def _slope(mesh, m, middle, ux, uy, angle, ring, reach):
    """How fast a bend leaves the surface at `angle` (> 0: it goes away); 2 if the surface is out of reach.

    It is the component along the bend of the normal at the nearest point, which changes sign where the distance is
    least.
    """
    x, y = math.cos(angle), math.sin(angle)
    c = along(along(middle, ring * x, ux), ring * y, uy)
    t, region, fx, fy, fz = nearest(mesh, m, c, reach * reach if mesh.closed[m] == 0 else math.inf)
    if t < 0:
        return 2.0
    n, _ = _normal_there(mesh, t, region)
    d = sub(c, (fx, fy, fz))
    size = math.sqrt(dot(d, d))
    if region != FACE and size > 1e-9 * ring:
        n = times((1.0 if dot(d, n) >= 0.0 else -1.0) / size, d)
    return x * dot(n, uy) - y * dot(n, ux)


@kernel
def _level(mesh, m, middle, ux, uy, low, high, first, last, ring, reach):
    """The angle between `low` and `high` at which the slope is 0 (false position, Illinois)."""
    if last - first < LEVEL:
        return 0.5 * (low + high)
    side = 0
    angle = low
    for _ in range(STEPS):
        angle = (low * last - high * first) / (last - first)
        slope = _slope(mesh, m, middle, ux, uy, angle, ring, reach)
        if abs(slope) < LEVEL or high - low < 1e-9:
            break
        if slope > 0.0:
            high, last = angle, slope
            first = 0.5 * first if side == 1 else first
            side = 1
        else:
            low, first = angle, slope
            last = 0.5 * last if side == -1 else last
            side = -1
    return angle
