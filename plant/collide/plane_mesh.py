"""A mesh on a plane: its lowest corners, found through the tree of boxes."""

from __future__ import annotations

import math

from hilnode.jit import kernel
from plant.collide.mesh import COUNT, FIRST, SKIP
from plant.collide.model import POINTS

FEATURES = (1 << 20) - 1


@kernel
def plane_mesh(shape, placed, mesh, i, j, margin, out):
    """The corners of mesh j near plane i, the deepest of them if they are many; the feature is the corner's number."""
    r, p, m = placed.rot, placed.pos, shape.asset[j]
    nx, ny, nz = r[i, 0, 2], r[i, 1, 2], r[i, 2, 2]
    above = nx * (p[j, 0] - p[i, 0]) + ny * (p[j, 1] - p[i, 1]) + nz * (p[j, 2] - p[i, 2])
    lx = r[j, 0, 0] * nx + r[j, 1, 0] * ny + r[j, 2, 0] * nz  # the plane's normal in the frame of the mesh
    ly = r[j, 0, 1] * nx + r[j, 1, 1] * ny + r[j, 2, 1] * nz
    lz = r[j, 0, 2] * nx + r[j, 1, 2] * ny + r[j, 2, 2] * nz
    box, link, first = mesh.box, mesh.link, mesh.first_vertex[m]
    node, end, count = mesh.first_node[m], mesh.first_node[m + 1], 0
    while node < end:
        lowest = above + min(lx * box[node, 0], lx * box[node, 3])
        lowest += min(ly * box[node, 1], ly * box[node, 4]) + min(lz * box[node, 2], lz * box[node, 5])
        if lowest >= margin:
            node = link[node, SKIP]
            continue
        for t in range(link[node, FIRST], link[node, FIRST] + link[node, COUNT]):
            for k in range(3):
                v = mesh.triangle[t, k]
                x = mesh.vertex[v]
                depth = -(above + lx * x[0] + ly * x[1] + lz * x[2])
                if depth > -margin:
                    count = _keep(out, count, depth, (v - first) & FEATURES, x, placed, i, j)
        node += 1
    return count


@kernel
def _keep(out, count, depth, feature, x, placed, i, j):
    """List a corner if it is new, and deeper than the shallowest where there is no room."""
    at, least = count, math.inf
    for k in range(count):
        if out.feature[k] == feature:
            return count
        if count == POINTS and out.depth[k] < least:
            at, least = k, out.depth[k]
    if count == POINTS and depth <= least:
        return count
    r, p = placed.rot, placed.pos
    for c in range(3):
        n = r[i, c, 2]
        y = p[j, c] + r[j, c, 0] * x[0] + r[j, c, 1] * x[1] + r[j, c, 2] * x[2]
        out.point[at, c], out.normal[at, c] = y + 0.5 * depth * n, -n
    out.depth[at], out.feature[at] = depth, feature
    return min(count + 1, POINTS)
