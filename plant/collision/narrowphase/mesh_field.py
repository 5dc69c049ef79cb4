"""Meshes against height fields.

As for two meshes (mesh_mesh.py), with the cells of the field in place of a tree: a box of the mesh looks up the samples
below it and is passed over if it lies above all of them or below all of them. Triangles that cross give regions of
contact (surface_intersection.py); the samples inside a region are those of its rectangle, at most SIDE along each
axis. If none cross, the closest pair within the margin is listed, and corners about it, against the triangle right
below them. A mesh that lies wholly under the surface is lifted out along the normals of the triangles above its
corners.

Limits: a contour that leaves the field over its border is open, and its plane is rough.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import below, cells, corner_of, is_peak, sample, triangle
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_convex import turned
from plant.collision.narrowphase.mesh_gap import (
    SLAB,
    TOUCH,
    between_triangles,
    gap_feature,
    is_new,
    loose_gap,
    pair_of,
    slab,
)
from plant.collision.narrowphase.mesh_normals import outward
from plant.collision.narrowphase.node_pair import box_there, first_box, is_leaf
from plant.collision.narrowphase.ray import HUGE, through_field
from plant.collision.narrowphase.region import (
    DEEPER,
    LOWEST,
    NEAR,
    list_centre,
    list_side,
    list_vertex,
    most,
    out_of_mesh,
    reach_of,
)
from plant.collision.narrowphase.surface_intersection import (
    EVEN,
    LOOSE,
    SPOTS,
    begin_search,
    contour,
    forget,
    go_on_search,
    inside,
    is_hole,
    join,
    keep,
    keep_low,
    moved,
    perpendicular_axes,
    within,
)
from plant.collision.shape.mesh import COUNT, FIRST, RIGHT, SKIP_TO, at, corner, face
from plant.collision.shape.triangle import CORNER, closest_point
from plant.collision.vec3 import along, cross, dot, from_basis, point_to_local, sub, unit

SIDE = 32  # samples looked at along each axis of a region
FEW = 256  # cells below a box that are looked at before its branches are


@kernel
def mesh_field(shape, placed, mesh, field, work, i, j, margin, out):
    """Mesh i against field j; `work` is a Crossing."""
    p = placed.pos[i]
    o = point_to_local(placed, j, (p[0], p[1], p[2]))  # the frame of i in that of j
    x, y, z = turned(placed.rot[j], placed.rot[i])
    m, f = shape.asset[i], shape.asset[j]
    n, t, u = _walk(mesh, field, work, m, f, o, x, y, z, min(margin, _first_gap(mesh, field, m, f, o, x, y, z)))
    count = 0
    if n > 0:
        join(work, n)
        count = _regions(mesh, field, work, m, f, n, False, o, x, y, z, margin, out)
        if count == 0:
            count = _regions(mesh, field, work, m, f, n, True, o, x, y, z, margin, out)
    elif t >= 0:
        count = _gap(mesh, field, work, m, f, t, u, o, x, y, z, margin, out)
    else:
        count = _under(mesh, field, work, m, f, o, x, y, z, out)
    return manifold_to_world(placed, j, out, count)


@inline
def _span(mesh, node, o, x, y, z):
    """Low and high of a node's box in the frame of the field."""
    b = first_box(mesh, node, o, x, y, z)
    low = 0.5 * (b[0] - b[3]), 0.5 * (b[1] - b[4]), 0.5 * (b[2] - b[5])
    return low, (0.5 * (b[0] + b[3]), 0.5 * (b[1] + b[4]), 0.5 * (b[2] + b[5]))


@inline
def _surface(field, f, p):
    """Whether there is ground below or above `p`, whether `p` is under it, the height over its triangle, the normal."""
    is_under, cx, cy, ck = below(field, f, p)
    if cx < 0:
        return False, False, math.inf, (0.0, 0.0, 1.0)
    a, b, c = triangle(field, f, cx, cy, ck)
    n = unit(cross(sub(b, a), sub(c, a)))
    return True, is_under, dot(sub(p, a), n), n


@inline
def _number(field, f, cx, cy, ck):
    return 2 * (cx * field.ny[f] + cy) + ck


@inline
def _beyond(field, f, u, edge):
    """The triangle across an edge of triangle `u`, or -1."""
    ny = field.ny[f]
    cx, cy, ck = u // 2 // ny, u // 2 % ny, u % 2
    if edge == 2 - 2 * ck:  # the one that parts the cell
        return u + 1 - 2 * ck
    if ck == 0:
        cx, cy = (cx, cy - 1) if edge == 0 else (cx + 1, cy)
    else:
        cx, cy = (cx, cy + 1) if edge == 1 else (cx - 1, cy)
    if cx < 0 or cy < 0 or cx >= field.nx[f] - 1 or cy >= ny - 1:
        return -1
    return _number(field, f, cx, cy, 1 - ck)


@kernel
def _first_gap(mesh, field, m, f, o, x, y, z):
    """A bound from above of the gap, from the corners of the lowest leaf; 0 if one is under the surface."""
    node = mesh.first_node[m]
    while not is_leaf(mesh, node):
        left, right = _span(mesh, node + 1, o, x, y, z), _span(mesh, mesh.link[node, RIGHT], o, x, y, z)
        node = node + 1 if left[0][2] <= right[0][2] else mesh.link[node, RIGHT]
    best = math.inf
    for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
        for k in range(3):
            p = moved(o, x, y, z, corner(mesh, t, k))
            found, _, height, n = _surface(field, f, p)
            if found:
                best = min(best, max(height / n[2], 0.0))
    return best * (1.0 + 1e-9)


@kernel
def _walk(mesh, field, work, m, f, o, x, y, z, reach):
    """Fill the list of segments; returns how many, or the closest two triangles within reach (-1: none) if none."""
    node, end, n, best_t, best_u = mesh.first_node[m], mesh.first_node[m + 1], 0, -1, -1
    while node < end:
        low, high = _span(mesh, node, o, x, y, z)
        x0, y0, x1, y1 = cells(field, f, low[0] - reach, low[1] - reach, high[0] + reach, high[1] + reach)
        if x1 <= x0 or y1 <= y0 or _all_off(field, f, x0, y0, x1, y1, low[2] - reach, high[2] + reach):
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            n, reach, best_t, best_u = _over_cells(mesh, field, work, f, t, o, x, y, z, n, reach, best_t, best_u)
        node += 1
    return n, best_t, best_u


@inline
def _all_off(field, f, x0, y0, x1, y1, low, high):
    """Whether all samples of some cells, if they are few, lie below `low`, or all above `high`."""
    if (x1 - x0) * (y1 - y0) > FEW:
        return False
    least, most = math.inf, -math.inf
    for cx in range(x0, x1 + 1):
        row = field.first[f] + cx * field.ny[f]
        for cy in range(y0, y1 + 1):
            h = field.height[row + cy]
            least, most = min(least, h), max(most, h)
    return most < low or least > high


@kernel
def _over_cells(mesh, field, work, f, t, o, x, y, z, n, reach, best_t, best_u):
    """Triangle `t` against all cells below it: the new number of segments, the new reach and closest pair."""
    a = moved(o, x, y, z, corner(mesh, t, 0))
    b = moved(o, x, y, z, corner(mesh, t, 1))
    c = moved(o, x, y, z, corner(mesh, t, 2))
    k = from_basis(x, y, z, face(mesh, t))
    low, high = min(a[2], b[2], c[2]), max(a[2], b[2], c[2])
    x0, y0, x1, y1 = cells(
        field,
        f,
        min(a[0], b[0], c[0]) - reach,
        min(a[1], b[1], c[1]) - reach,
        max(a[0], b[0], c[0]) + reach,
        max(a[1], b[1], c[1]) + reach,
    )
    for cx in range(x0, x1):
        for cy in range(y0, y1):
            p, r = sample(field, f, cx, cy), sample(field, f, cx + 1, cy)
            s, w = sample(field, f, cx + 1, cy + 1), sample(field, f, cx, cy + 1)
            if min(p[2], r[2], s[2], w[2]) > high + reach or max(p[2], r[2], s[2], w[2]) < low - reach:
                continue
            for half in range(2):
                e, g = (r, s) if half == 0 else (s, w)
                m = unit(cross(sub(e, p), sub(g, p)))
                level = dot(m, p)
                ha, hb, hc = dot(m, a) - level, dot(m, b) - level, dot(m, c) - level
                if min(ha, hb, hc) > reach or max(ha, hb, hc) < -reach:
                    continue
                u = _number(field, f, cx, cy, half)
                new, ends, square, at_i, _, p_i, p_j = pair_of(
                    work, n, t, u, a, b, c, k, ha, hb, hc, p, e, g, m, reach, n == 0
                )
                if new > n:
                    _lead(mesh, field, work, f, n, 0, t, u, ends[0], ends[1])
                    _lead(mesh, field, work, f, n, 2, t, u, ends[2], ends[3])
                    n, reach = new, 0.0
                elif at_i >= 0:
                    d = sub(p_i, p_j)
                    from_above = dot(d, m) >= 0.0 and not below(field, f, p_i)[0]
                    if from_above and dot(d, from_basis(x, y, z, outward(mesh, t, at_i))) <= 0.0:
                        reach, best_t, best_u = math.sqrt(square), t, u
    return n, reach, best_t, best_u


@inline
def _lead(mesh, field, work, f, n, end, t, u, side, edge):
    """Enter the pair that an end of segment `n`, on an edge of one of its triangles, leads to."""
    work.next[n, end] = mesh.neighbour[t, edge] if side == 0 else t
    work.next[n, end + 1] = _beyond(field, f, u, edge) if side == 1 else u


@kernel
def _regions(mesh, field, work, m, f, n, holes, o, x, y, z, margin, out):
    """List the points of all regions of `n` segments, or of what look like holes in them."""
    count = 0
    for s in range(n):
        if work.group[s] != s:
            continue
        centre, normal, u, v, low, high, size = contour(work, s, x, y, z)
        if is_hole(work, s, normal) != holes:
            continue
        low = min(low, inside(mesh, work, s, 0, -1, o, x, y, z, centre, normal, u, v, size, margin))
        low = min(low, _corners_under(mesh, field, work, f, s, o, x, y, z, centre, normal, u, v))
        high = max(high, _samples_inside(field, work, f, s, centre, normal, u, v, margin))
        before, side = count, 0 if -low >= (1.0 - EVEN) * high else 1
        frame = o, x, y, z
        count = _list_side(mesh, field, work, m, f, side, 0, 0.0, frame, normal, low, high, size, out, count)
        first, least = LOWEST if count > before else 0, DEEPER * most(out, before, count)
        count = _list_side(mesh, field, work, m, f, 1 - side, first, least, frame, normal, low, high, size, out, count)
        if count == before:
            up = _leave(field, f, centre, normal, HUGE)
            down = out_of_mesh(mesh, m, 1, o, x, y, z, centre, normal, NEAR * size - low, size)
            count = list_centre(work, s, centre, normal, up, down, NEAR * size, out, count)
        if margin > 0.0:
            count = _list_above(field, work, f, margin, out, count)
            count = _list_peaks(mesh, field, work, m, f, o, x, y, z, margin, out, count)
    return count


@kernel
def _leave(field, f, p, d, far):
    """Where a ray from `p` along `d` comes out of the ground; -1 if it does not before `far`, or starts above it."""
    if not below(field, f, p)[0]:
        return -1.0
    way, _ = through_field(field, f, p, d, far)
    return way if way <= far else -1.0


@kernel
def _list_side(mesh, field, work, m, f, side, first, least, frame, normal, low, high, size, out, count):
    """As list_side of region.py: corners of the mesh are pushed out of the field, samples out of mesh `m`."""
    if side == 1:
        o, x, y, z = frame
        return list_side(mesh, work, m, 1, first, least, o, x, y, z, normal, low, high, size, out, count)
    for spot in range(first, SPOTS):
        if work.name[spot] >= 0:
            p, _ = reach_of(work, spot, 0, low, high, 0.0)
            depth = _leave(field, f, p, normal, HUGE)
            if depth > least:
                count = list_vertex(work, spot, 0, p, normal, depth, NEAR * size, out, count)
    return count


@kernel
def _corners_under(mesh, field, work, f, root, o, x, y, z, centre, normal, u, v):
    """Keep corners of the mesh that are under the surface but not within the contour; returns their extreme height.

    So it is where the widest part of a body is under it: the contour is narrower than what is below.
    """
    tail, head, extreme = begin_search(work, root, 0), 0, 0.0
    while head < tail:
        t = work.queue[head]
        head += 1
        reached = 0
        for k in range(3):
            p = moved(o, x, y, z, corner(mesh, t, k))
            d = sub(p, centre)
            height = dot(d, normal)
            if height < 0.0 and below(field, f, p)[0]:
                reached |= 1 << k
                extreme = min(extreme, height)
                keep(work, 0, SPOTS, dot(d, u), dot(d, v), height, p, mesh.triangle[t, k])
        if reached != 0:
            tail = go_on_search(mesh, work, t, reached, tail)
    return extreme


@kernel
def _list_peaks(mesh, field, work, m, f, o, x, y, z, margin, out, count):
    """List the loose samples that were kept, if they stick out towards the closest point of the mesh."""
    for spot in range(LOOSE + 4, LOOSE + 8):
        gap, middle, n = loose_gap(mesh, work, spot, 1, m, o, x, y, z, margin)
        name = work.name[spot]
        if gap <= margin and is_peak(field, f, name // field.ny[f], name % field.ny[f], n):
            count = add_point(out, count, middle, n, -gap, 8 * name + 1, 1e-6 * margin)
    return count


@kernel
def _samples_inside(field, work, f, root, centre, normal, u, v, margin):
    """Go over the samples inside a region, keep the outermost; returns their extreme height.

    Samples about it, not inside but no further than `margin` from the plane, are kept as loose.
    """
    forget(work, 1)
    x0, y0, x1, y1 = math.inf, math.inf, -math.inf, -math.inf
    s, extreme = root, 0.0
    while s >= 0:
        g = work.segment[s]
        x0, y0, x1, y1 = min(x0, g[0], g[3]), min(y0, g[1], g[4]), max(x1, g[0], g[3]), max(y1, g[1], g[4])
        s = work.chain[s]
    first_x, first_y, last_x, last_y = cells(field, f, x0, y0, x1, y1)
    step_x, step_y = 1 + (last_x - first_x) // SIDE, 1 + (last_y - first_y) // SIDE
    for cx in range(first_x, last_x + 1, step_x):
        for cy in range(first_y, last_y + 1, step_y):
            p = sample(field, f, cx, cy)
            d = sub(p, centre)
            height = dot(d, normal)
            if height <= 0.0 and height < -margin:
                continue
            du, dv, name = dot(d, u), dot(d, v), cx * field.ny[f] + cy
            if height > 0.0 and within(work, root, du, dv):
                extreme = max(extreme, height)
                keep(work, SPOTS, SPOTS, du, dv, height, p, name)
            elif abs(height) <= margin:
                keep(work, LOOSE + 4, 4, du, dv, height, p, name)
    return extreme


@kernel
def _list_above(field, work, f, margin, out, count):
    """List the loose corners of the mesh that were kept, against the triangle below them."""
    for spot in range(LOOSE, LOOSE + 4):
        p = (work.found[spot, 1], work.found[spot, 2], work.found[spot, 3])
        is_under, cx, cy, ck = below(field, f, p)
        if is_under or cx < 0 or not is_new(work, spot):
            continue
        a, b, c = triangle(field, f, cx, cy, ck)
        _, fx, fy, fz = closest_point(p, a, b, c)
        d = sub(p, (fx, fy, fz))
        gap = math.sqrt(dot(d, d))
        if gap <= margin:
            n = unit(d) if gap > TOUCH * margin else unit(cross(sub(b, a), sub(c, a)))
            count = add_point(out, count, along(p, -0.5 * gap, n), n, -gap, 8 * work.name[spot], 1e-6 * margin)
    return count


@kernel
def _gap(mesh, field, work, m, f, t, u, o, x, y, z, margin, out):
    """Points of a mesh above the surface, whose closest triangles are `t` and `u`; returns how many."""
    ny = field.ny[f]
    cx, cy, ck = u // 2 // ny, u // 2 % ny, u % 2
    a, b, c = triangle(field, f, cx, cy, ck)
    _, at_i, at_j, p, q = between_triangles(
        moved(o, x, y, z, corner(mesh, t, 0)),
        moved(o, x, y, z, corner(mesh, t, 1)),
        moved(o, x, y, z, corner(mesh, t, 2)),
        a,
        b,
        c,
        math.inf,
    )
    d = sub(p, q)
    size = math.sqrt(dot(d, d))
    normal = unit(d) if size > TOUCH * margin else unit(cross(sub(b, a), sub(c, a)))
    name = -1
    if at_j >= CORNER:
        vx, vy = corner_of(cx, cy, ck, at_j - CORNER)
        name = vx * ny + vy
    count = add_point(out, 0, along(q, 0.5, d), normal, -size, gap_feature(mesh, t, name, at_i), 0.0)
    forget(work, 0)
    forget(work, 1)
    wide, long = (field.nx[f] - 1) * field.step[f, 0], (ny - 1) * field.step[f, 1]
    box = box_there((0.0, 0.0, 2.0 * p[2]), 2.0 * wide, 2.0 * long, wide + long, x, y, z)
    slab(mesh, work, 0, mesh.first_node[m], box, normal, p, SLAB * (margin - size), o, x, y, z, margin)
    _slab_of_field(mesh, field, work, m, f, normal, q, SLAB * (margin - size), o, x, y, z)
    count = _list_above(field, work, f, margin, out, count)
    return _list_peaks(mesh, field, work, m, f, o, x, y, z, margin, out, count)


@kernel
def _slab_of_field(mesh, field, work, m, f, normal, origin, thick, o, x, y, z):
    """Keep as loose the outermost samples below the mesh no further than `thick` from `origin` along the normal."""
    low, high = _span(mesh, mesh.first_node[m], o, x, y, z)
    x0, y0, x1, y1 = cells(field, f, low[0], low[1], high[0], high[1])
    u, v = perpendicular_axes(normal)
    for cx in range(x0, x1 + 1, 1 + (x1 - x0) // SIDE):
        for cy in range(y0, y1 + 1, 1 + (y1 - y0) // SIDE):
            p = sample(field, f, cx, cy)
            d = sub(p, origin)
            height = dot(d, normal)
            if abs(height) <= thick:
                keep_low(work, LOOSE + 4, dot(d, u), dot(d, v), -height, p, cx * field.ny[f] + cy)


@kernel
def _under(mesh, field, work, m, f, o, x, y, z, out):
    """A mesh that does not cross the surface, if it lies under it: its outermost and its deepest corner; how many."""
    count = 0
    if not below(field, f, moved(o, x, y, z, corner(mesh, mesh.first_triangle[m], 0)))[0]:
        return 0
    forget(work, 0)
    for vertex in range(mesh.first_vertex[m], mesh.first_vertex[m + 1]):
        p = moved(o, x, y, z, at(mesh, vertex))
        _, is_under, height, _ = _surface(field, f, p)
        if is_under:
            keep(work, 0, SPOTS, p[0], p[1], height, p, vertex)
    for spot in range(SPOTS):
        g = work.found[spot]
        p = (g[1], g[2], g[3])
        n = _surface(field, f, p)[3]
        depth = _leave(field, f, p, n, HUGE)
        if work.name[spot] >= 0 and depth > 0.0:
            count = list_vertex(work, spot, 0, p, n, depth, 1e-9, out, count)
    return count
