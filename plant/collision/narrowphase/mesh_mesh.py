"""Meshes against meshes: where their surfaces intersect, and how near they are if they do not.

Both trees are walked together, once, down the nearer pair of boxes first; of two boxes within reach of each other the
larger is opened (Luaces 4.6.1). The walk ends at nodes of up to eight triangles, whose own boxes the wide tree has side
by side (bvh8.py): each triangle of one node is tested against those of the other all at once, and where boxes meet
there is a pair. It is put aside if one lies further than the reach on one side of the plane of the other. If both are
on both sides, they may cross; if they do, the reach is 0 from then on, and the contact is that of
surface_intersection.py. Otherwise their distance is worked out, and the reach becomes the least yet, so that the walk
ends with the closest pair; mesh_gap.py lists it. If there is none, or one looks at the back of the other, one may be
wholly inside the other (mesh_inside.py).

Where faces lie in each other, as in a stack of blocks, surfaces touch without crossing, or contours fall to pieces and
no vertex is inside: all depths are 0. Then all is asked again with one mesh put aside by a millionth of its size, askew
to everything; and if there is no depth even so, whether one is inside the other.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import manifold_to_world
from plant.collision.narrowphase.mesh_convex import turned
from plant.collision.narrowphase.mesh_gap import TOUCH, list_gap, list_loose, pair_of
from plant.collision.narrowphase.mesh_inside import list_inside, list_middle
from plant.collision.narrowphase.mesh_normals import on_border, outward
from plant.collision.narrowphase.node_pair import ALIKE, apart, first_box, first_of, girth, is_low, push, second_box
from plant.collision.narrowphase.region import DEEPER, LOWEST, NEAR, list_centre, list_side, most, out_of_mesh
from plant.collision.narrowphase.surface_intersection import EVEN, contour, inside, is_hole, join, moved, put_back
from plant.collision.shape.bvh8 import around, lowest, met_of
from plant.collision.shape.mesh import RIGHT, corner, face
from plant.collision.vec3 import along, dot, from_basis, point_to_local, sub

ASIDE = 1e-6  # of the size of the smaller mesh: how far one is put aside where faces lie in each other


@kernel
def mesh_mesh(shape, placed, mesh, work, i, j, margin, out):
    """Mesh i against mesh j; `work` is a Crossing."""
    p = placed.pos[i]
    o = point_to_local(placed, j, (p[0], p[1], p[2]))  # the frame of i in that of j
    x, y, z = turned(placed.rot[j], placed.rot[i])
    m, w = shape.asset[i], shape.asset[j]
    s = ASIDE * min(girth(mesh, mesh.first_node[m]), girth(mesh, mesh.first_node[w]))
    n, t, u = _walk(mesh, work, m, w, o, x, y, z, margin, TOUCH * margin)
    if n == 0 and t < 0 and margin < s:  # without a margin, too, faces that lie in each other are to be found
        n, t, u = _walk(mesh, work, m, w, o, x, y, z, s, TOUCH * s)
    count = 0
    if n > 0:
        count = _crossed(mesh, work, m, w, n, o, x, y, z, margin, out)
    elif t >= 0:
        count = list_gap(mesh, work, m, w, t, u, o, x, y, z, margin, out)
    else:
        count = list_inside(mesh, work, m, w, o, x, y, z, out)
    if count > 0 and -s < _deepest(out, count) <= 0.0:
        o = (o[0] + 0.61 * s, o[1] + 0.37 * s, o[2] + 0.7 * s)
        n, t, u = _walk(mesh, work, m, w, o, x, y, z, 0.0, 0.0)
        if n > 0:
            count = _crossed(mesh, work, m, w, n, o, x, y, z, margin, out)
        if _deepest(out, count) <= 0.0:
            within = list_inside(mesh, work, m, w, o, x, y, z, out)
            within = within if within > 0 else list_middle(mesh, m, w, o, x, y, z, out)
            count = within if within > 0 else count
    if _deepest(out, count) < -margin:
        return 0
    return manifold_to_world(placed, j, out, count)


@inline
def _deepest(out, count):
    """The depth of the deepest point, overlapping or not."""
    depth = -math.inf
    for k in range(count):
        depth = max(depth, out.depth[k])
    return depth


@kernel
def _crossed(mesh, work, m, w, n, o, x, y, z, margin, out):
    """List the points of meshes that cross in `n` segments.

    If all contours are holes, one mesh is inside the other but for those.
    """
    join(work, n)
    count = _regions(mesh, work, m, w, n, False, o, x, y, z, margin, out)
    count = count if count > 0 else list_inside(mesh, work, m, w, o, x, y, z, out)
    return count if count > 0 else _regions(mesh, work, m, w, n, True, o, x, y, z, margin, out)


@kernel
def _regions(mesh, work, m, w, n, holes, o, x, y, z, margin, out):
    """List the points of all regions of `n` segments, or of what look like holes in them."""
    count = 0
    for s in range(n):
        if work.group[s] != s:
            continue
        centre, normal, u, v, low, high, size = contour(work, s, x, y, z)
        if is_hole(work, s, normal) != holes:
            continue
        low = min(low, inside(mesh, work, s, 0, w, o, x, y, z, centre, normal, u, v, size, margin))
        high = max(high, inside(mesh, work, s, 1, m, o, x, y, z, centre, normal, u, v, size, margin))
        before, side = count, 0 if -low >= (1.0 - EVEN) * high else 1
        to, back = (w, m) if side == 0 else (m, w)
        count = list_side(mesh, work, to, side, 0, 0.0, o, x, y, z, normal, low, high, size, out, count)
        first, least = LOWEST if count > before else 0, DEEPER * most(out, before, count)
        count = list_side(mesh, work, back, 1 - side, first, least, o, x, y, z, normal, low, high, size, out, count)
        if count == before:
            near = NEAR * size  # a contour may lie in a face: the rays start a little before it
            up = out_of_mesh(mesh, w, 0, o, x, y, z, along(centre, -near, normal), normal, high + 2.0 * near, size)
            down = out_of_mesh(mesh, m, 1, o, x, y, z, along(centre, near, normal), normal, 2.0 * near - low, size)
            up, down = max(up - near, 0.0) if up >= 0.0 else up, max(down - near, 0.0) if down >= 0.0 else down
            count = list_centre(work, s, centre, normal, up, down, near, out, count)
        if margin > 0.0:
            count = list_loose(mesh, work, 0, w, o, x, y, z, margin, out, count)
            count = list_loose(mesh, work, 1, m, o, x, y, z, margin, out, count)
    return count


@kernel
def _walk(mesh, work, m, w, o, x, y, z, reach, touch):
    """Fill the list of segments; returns how many, or the closest two triangles within reach if none.

    The first of them is -1 if there are none, or if one looks at the back of the other, as from inside it.
    """
    a, b = mesh.first_node[m], mesh.first_node[w]
    gap = apart(first_box(mesh, a, o, x, y, z), second_box(mesh, b, x, y, z), x, y, z)
    depth, n, t, u = push(work, 0, a, b, gap, reach), 0, -1, -1
    while depth > 0:
        depth -= 1
        a, b = work.stack[depth, 0], work.stack[depth, 1]
        if work.apart[depth] > reach:
            continue
        low_a, low_b = is_low(mesh, a), is_low(mesh, b)
        if low_a and low_b:
            n, reach, t, u = _leaves(mesh, work, m, w, a, b, o, x, y, z, n, reach, touch, t, u)
            continue
        if depth + 4 > work.apart.size:
            continue
        size_a, size_b = girth(mesh, a), girth(mesh, b)
        if low_b or (not low_a and size_a > ALIKE * size_b):
            depth = _open_first(mesh, work, depth, a, b, o, x, y, z, reach)
        elif low_a or size_b > ALIKE * size_a:
            depth = _open_second(mesh, work, depth, a, b, o, x, y, z, reach)
        else:
            depth = _open_both(mesh, work, depth, a, b, o, x, y, z, reach)
    return n, t, u


@inline
def _open_first(mesh, work, depth, a, b, o, x, y, z, reach):
    left, right, other = a + 1, mesh.link[a, RIGHT], second_box(mesh, b, x, y, z)
    p = apart(first_box(mesh, left, o, x, y, z), other, x, y, z)
    q = apart(first_box(mesh, right, o, x, y, z), other, x, y, z)
    depth = push(work, depth, right if p < q else left, b, max(p, q), reach)
    return push(work, depth, left if p < q else right, b, min(p, q), reach)


@inline
def _open_second(mesh, work, depth, a, b, o, x, y, z, reach):
    left, right, other = b + 1, mesh.link[b, RIGHT], first_box(mesh, a, o, x, y, z)
    p = apart(other, second_box(mesh, left, x, y, z), x, y, z)
    q = apart(other, second_box(mesh, right, x, y, z), x, y, z)
    depth = push(work, depth, a, right if p < q else left, max(p, q), reach)
    return push(work, depth, a, left if p < q else right, min(p, q), reach)


@inline
def _open_both(mesh, work, depth, a, b, o, x, y, z, reach):
    """Four pairs of branches. Those of the nearer branch of i come last, and so are looked at first: that shortens the
    reach early. Where surfaces cross, it is 0 and the order does not matter."""
    left, right, low, high = a + 1, mesh.link[a, RIGHT], b + 1, mesh.link[b, RIGHT]
    c, d = second_box(mesh, low, x, y, z), second_box(mesh, high, x, y, z)
    box = first_box(mesh, left, o, x, y, z)
    p, q = apart(box, c, x, y, z), apart(box, d, x, y, z)
    box = first_box(mesh, right, o, x, y, z)
    r, s = apart(box, c, x, y, z), apart(box, d, x, y, z)
    if reach > 0.0:
        swap = min(p, q) < min(r, s)
        left, right = (right, left) if swap else (left, right)
        p, q, r, s = (r, s, p, q) if swap else (p, q, r, s)
        swap = min(p, r) < min(q, s)
        low, high = (high, low) if swap else (low, high)
        p, q, r, s = (q, p, s, r) if swap else (p, q, r, s)
    depth = push(work, depth, left, low, p, reach)
    depth = push(work, depth, left, high, q, reach)
    depth = push(work, depth, right, low, r, reach)
    return push(work, depth, right, high, s, reach)


@kernel
def _leaves(mesh, work, m, w, node, other, o, x, y, z, n, reach, touch, best_t, best_u):
    """All pairs of triangles of two nodes of up to eight each: the new number of segments, the new reach and closest
    pair. Of each node those are put aside whose own boxes, all eight tested at once, are out of reach.

    What is no further than `touch` comes from neither side.
    """
    first, second = first_of(mesh, node), first_of(mesh, other)
    box, far = second_box(mesh, other, x, y, z), 2.0 * reach
    centre = put_back(o, x, y, z, (0.5 * box[0], 0.5 * box[1], 0.5 * box[2]))
    half = 0.5 * (box[6] + far), 0.5 * (box[7] + far), 0.5 * (box[8] + far)
    rows = met_of(mesh, m, first, around(sub(centre, half), along(centre, 1.0, half)))
    while rows != 0:
        t = first + lowest(rows)
        rows &= rows - 1
        a = moved(o, x, y, z, corner(mesh, t, 0))
        b = moved(o, x, y, z, corner(mesh, t, 1))
        c = moved(o, x, y, z, corner(mesh, t, 2))
        low = min(a[0], b[0], c[0]) - reach, min(a[1], b[1], c[1]) - reach, min(a[2], b[2], c[2]) - reach
        high = max(a[0], b[0], c[0]) + reach, max(a[1], b[1], c[1]) + reach, max(a[2], b[2], c[2]) + reach
        columns, k = met_of(mesh, w, second, around(low, high)), from_basis(x, y, z, face(mesh, t))
        while columns != 0:
            u = second + lowest(columns)
            columns &= columns - 1
            h, q = face(mesh, u), corner(mesh, u, 0)
            level = dot(h, q)
            ha, hb, hc = dot(h, a) - level, dot(h, b) - level, dot(h, c) - level
            if min(ha, hb, hc) > reach or max(ha, hb, hc) < -reach:
                continue
            e, f = corner(mesh, u, 1), corner(mesh, u, 2)
            new, ends, square, at_i, at_j, p_i, p_j = pair_of(
                work, n, t, u, a, b, c, k, ha, hb, hc, q, e, f, h, reach, n == 0
            )
            if new > n:
                _lead(mesh, work, n, 0, t, u, ends[0], ends[1])
                _lead(mesh, work, n, 2, t, u, ends[2], ends[3])
                n, reach = new, 0.0
            elif at_i >= 0:
                d = sub(p_i, p_j)
                out_i, out_j = from_basis(x, y, z, outward(mesh, t, at_i)), outward(mesh, u, at_j)
                if dot(d, out_j) >= -touch and dot(d, out_i) <= touch:
                    reach, best_t, best_u = math.sqrt(square), t, u
                elif not (on_border(mesh, t, at_i) or on_border(mesh, u, at_j)):  # over a border there is no behind
                    reach, best_t = math.sqrt(square), -1
    return n, reach, best_t, best_u


@inline
def _lead(mesh, work, n, end, t, u, side, edge):
    """Enter the pair that an end of segment `n`, on an edge of one of its triangles, leads to."""
    work.next[n, end] = mesh.neighbour[t, edge] if side == 0 else t
    work.next[n, end + 1] = mesh.neighbour[u, edge] if side == 1 else u
