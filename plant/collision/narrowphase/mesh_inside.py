"""A mesh that is wholly inside another, closed one: the surfaces do not intersect, and it is pushed out as a whole.

It is pushed out the way on which its middle (or, if that is outside, its first vertex) is closest to the surface. Its
vertices that are furthest across that way, and the deepest, are listed with what each has to go.

Two meshes may be in each other with all vertices of both outside, as two balls of the same size and other triangles:
their surfaces cross in many small rings, none of which has a depth. Then a middle that is in both stands for them.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point
from plant.collision.narrowphase.mesh_normals import outward
from plant.collision.narrowphase.mesh_round import nearest
from plant.collision.narrowphase.ray import HUGE, ray_mesh
from plant.collision.narrowphase.surface_intersection import SPOTS, forget, keep, moved, perpendicular_axes
from plant.collision.shape.mesh import at, face, gap
from plant.collision.shape.triangle import FACE
from plant.collision.vec3 import along, dot, from_basis, sub, times, unit

TIE = 1e-6  # of two vertices as far across as each other the deeper one is listed


@kernel
def list_inside(mesh, work, m, w, o, x, y, z, out):
    """Points of mesh `m` (i) and `w` (j), which do not cross, if one is inside the other; returns how many.

    The frame of i in that of j is `o`, `x`, `y`, `z`.
    """
    first = moved(o, x, y, z, at(mesh, mesh.first_vertex[m]))
    is_in, n = _way_out(mesh, w, o, first)
    if is_in:
        return _list(mesh, work, m, w, 0, o, x, y, z, n, out)
    middle = (-dot(o, x), -dot(o, y), -dot(o, z))
    d = sub(at(mesh, mesh.first_vertex[w]), o)
    is_in, n = _way_out(mesh, m, middle, (dot(d, x), dot(d, y), dot(d, z)))
    if is_in:
        return _list(mesh, work, w, m, 1, o, x, y, z, n, out)
    return 0


@kernel
def list_middle(mesh, m, w, o, x, y, z, out):
    """As `list_inside`, where the middle of one of the two is inside both; returns how many points there are."""
    back = (-dot(o, x), -dot(o, y), -dot(o, z))
    for side in range(2):
        inner, outer = (m, w) if side == 0 else (w, m)
        p, here = o if side == 0 else back, (0.0, 0.0, 0.0)  # the middle in the frame of the outer mesh and in its own
        is_in, n = _to_surface(mesh, outer, p)
        if not is_in or not _to_surface(mesh, inner, here)[0]:
            continue
        down = (-dot(n, x), -dot(n, y), -dot(n, z)) if side == 0 else times(-1.0, from_basis(x, y, z, n))
        above, _ = ray_mesh(mesh, outer, p, n, HUGE)
        below, _ = ray_mesh(mesh, inner, here, down, HUGE)
        if above < HUGE and below < HUGE:
            middle, normal = along(p, 0.5 * (above - below), n), n
            if side == 1:
                middle, normal = moved(o, x, y, z, middle), down
            return add_point(out, 0, middle, normal, above + below, 8 * mesh.first_vertex[inner] + side, 0.0)
    return 0


@kernel
def _way_out(mesh, m, middle, first):
    """Whether the vertex `first` of another mesh is inside mesh `m`, and the way out, for that mesh's `middle`."""
    is_in, n = _to_surface(mesh, m, first)
    if is_in:
        is_better, way = _to_surface(mesh, m, middle)
        if is_better:
            n = way
    return is_in, n


@kernel
def _to_surface(mesh, m, p):
    """Whether `p` is inside mesh `m`, and the shortest way to its surface, as a unit vector."""
    none = (0.0, 0.0, 1.0)
    if mesh.closed[m] == 0 or gap(mesh, mesh.first_node[m], p) > 0.0:
        return False, none
    t, region, fx, fy, fz = nearest(mesh, m, p, math.inf)
    way = sub((fx, fy, fz), p)
    if dot(way, outward(mesh, t, region)) <= 0.0:
        return False, none
    return True, face(mesh, t) if region == FACE else unit(way)


@inline
def _in_outer(side, o, x, y, z, p):
    """The vertex `p` of the inner mesh, which is i (side 0) or j (side 1), in the frame of the outer one."""
    if side == 0:
        return moved(o, x, y, z, p)
    d = sub(p, o)
    return dot(d, x), dot(d, y), dot(d, z)


@kernel
def _list(mesh, work, inner, outer, side, o, x, y, z, n, out):
    """List vertices of mesh `inner`, to be pushed out of mesh `outer` along `n` (in the frame of that)."""
    u, v = perpendicular_axes(n)
    b = mesh.box[mesh.first_node[outer]]
    top = abs(n[0]) * (b[3] - b[0]) + abs(n[1]) * (b[4] - b[1]) + abs(n[2]) * (b[5] - b[2])  # above all of it
    forget(work, 0)
    for vertex in range(mesh.first_vertex[inner], mesh.first_vertex[inner + 1]):
        p = _in_outer(side, o, x, y, z, at(mesh, vertex))
        down = top - dot(p, n)
        keep(work, 0, SPOTS, dot(p, u) + TIE * down, dot(p, v) + TIE * down, down, p, vertex)
    count = 0
    for spot in range(SPOTS):
        p = (work.found[spot, 1], work.found[spot, 2], work.found[spot, 3])
        depth, there = ray_mesh(mesh, outer, p, n, HUGE)
        if depth >= HUGE or dot(there, n) <= 0.0:
            continue
        middle, normal = along(p, 0.5 * depth, n), n
        if side == 1:
            middle, normal = moved(o, x, y, z, middle), times(-1.0, from_basis(x, y, z, n))
        count = add_point(out, count, middle, normal, depth, 8 * work.name[spot] + side, 1e-9)
    return count
