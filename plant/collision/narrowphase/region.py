"""The contact points of a region in which two triangle surfaces overlap (surface_intersection.py).

A region gives up to five vertices inside, the deepest and four far apart, of the side that is further beyond the plane
of the contour. Along the normal of the region each is pushed out of the other surface: its depth is the way to where
it leaves that surface, or, if it has gone through to the other side, all of it up to the top of the region. (Luaces
4.99 has one depth for the whole region, the larger distance from its plane.) So both ends of every point lie on the
surfaces, also where they are curved. The deepest vertex of the other side is listed too if it is deeper than all.

If no vertex is inside, as where an edge crosses an edge, the line through the centroid is asked the same of both
surfaces; and if that misses one of them, a place on the contour, which lies on both, holds the region at depth 0.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.manifold import add_point
from plant.collision.narrowphase.ray_exit import leave_mesh
from plant.collision.narrowphase.surface_intersection import SPOTS, put_back
from plant.collision.vec3 import along, dot

NEAR = 1e-6  # of the size of a region: points no further apart are one
DEEPER = 1.001  # a vertex of the other side counts if it is deeper by as much
LOWEST = SPOTS - 1  # the spot of the deepest vertex


@kernel
def out_of_mesh(mesh, m, side, o, x, y, z, p, normal, far, size):
    """How far the point `p` of one side has to go along the normal (j: against it) to leave mesh `m` of the other; -1
    if it is neither inside nor before `far`."""
    if side == 0:
        first, last = leave_mesh(mesh, m, p, normal, far)
    else:
        d = (-dot(normal, x), -dot(normal, y), -dot(normal, z))
        first, last = leave_mesh(mesh, m, put_back(o, x, y, z, p), d, far)
    return first if 0.0 <= first <= max(far, size) else last


@inline
def most(out, first, count):
    """The largest depth of the points from `first` on; 0 if there are none."""
    depth = 0.0
    for k in range(first, count):
        depth = max(depth, out.depth[k])
    return depth


@inline
def reach_of(work, spot, side, low, high, near):
    """Where the vertex kept in a spot is, and how far it may have to go: to the top of the region."""
    f = work.found[spot]
    return (f[1], f[2], f[3]), (high - f[4] if side == 0 else f[4] - low) + near


@inline
def list_vertex(work, spot, side, p, normal, depth, near, out, count):
    """List the vertex `p` kept in a spot, which is that deep; returns the new count."""
    middle = along(p, (0.5 if side == 0 else -0.5) * depth, normal)
    return add_point(out, count, middle, normal, depth, 8 * work.name[spot] + side, near)


@kernel
def list_side(mesh, work, m, side, first, least, o, x, y, z, normal, low, high, size, out, count):
    """List the vertices of one side kept from spot `first` on that are deeper than `least` in mesh `m`, the other."""
    near = NEAR * size
    for spot in range(side * SPOTS + first, (side + 1) * SPOTS):
        if work.name[spot] >= 0:
            p, far = reach_of(work, spot, side, low, high, near)
            depth = out_of_mesh(mesh, m, side, o, x, y, z, p, normal, far, size)
            if depth > least:
                count = list_vertex(work, spot, side, p, normal, depth, near, out, count)
    return count


@kernel
def list_centre(work, root, centre, normal, up, down, near, out, count):
    """List the line through the centroid, which leaves j after `up` and i after `down` the other way (< 0: it misses).

    Or else the middle of the first segment of the contour.
    """
    feature = 8 * work.pair[root, 0] + 2
    if up >= 0.0 and down >= 0.0:
        return add_point(out, count, along(centre, 0.5 * (up - down), normal), normal, up + down, feature, near)
    g = work.segment[root]
    middle = (0.5 * (g[0] + g[3]), 0.5 * (g[1] + g[4]), 0.5 * (g[2] + g[5]))
    return add_point(out, count, middle, normal, 0.0, feature, near)
