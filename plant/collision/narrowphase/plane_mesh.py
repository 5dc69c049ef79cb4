"""A mesh on a plane: its lowest vertices, found through the BVH."""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.collision.model import POINTS
from plant.collision.shape.mesh import COUNT, FIRST, SKIP_TO

FEATURES = (1 << 20) - 1


@kernel
def plane_mesh(shape, placed, mesh, i, j, margin, out):
    """The corners of mesh j near plane i, the deepest of them if they are many; the feature is the corner's number.

    When there is no room left, branches that are no deeper than the shallowest corner listed are not looked at.
    """
    r, p, m = placed.rot, placed.pos, shape.asset[j]
    nx, ny, nz = r[i, 0, 2], r[i, 1, 2], r[i, 2, 2]
    above = nx * (p[j, 0] - p[i, 0]) + ny * (p[j, 1] - p[i, 1]) + nz * (p[j, 2] - p[i, 2])
    lx = r[j, 0, 0] * nx + r[j, 1, 0] * ny + r[j, 2, 0] * nz  # the plane's normal in the frame of the mesh
    ly = r[j, 0, 1] * nx + r[j, 1, 1] * ny + r[j, 2, 1] * nz
    lz = r[j, 0, 2] * nx + r[j, 1, 2] * ny + r[j, 2, 2] * nz
    box, link, first = mesh.box, mesh.link, mesh.first_vertex[m]
    node, end, count, worst, least = mesh.first_node[m], mesh.first_node[m + 1], 0, 0, -margin
    while node < end:
        lowest = above + min(lx * box[node, 0], lx * box[node, 3])
        lowest += min(ly * box[node, 1], ly * box[node, 4]) + min(lz * box[node, 2], lz * box[node, 5])
        if -lowest <= least:
            node = link[node, SKIP_TO]
            continue
        for t in range(link[node, FIRST], link[node, FIRST] + link[node, COUNT]):
            for k in range(3):
                v = mesh.triangle[t, k]
                x = mesh.vertex[v]
                depth = -(above + lx * x[0] + ly * x[1] + lz * x[2])
                if depth > least:
                    count, worst, least = _keep(
                        out, count, worst, least, depth, (v - first) & FEATURES, x, placed, i, j
                    )
        node += 1
    return count


@kernel
def _keep(out, count, worst, least, depth, feature, x, placed, i, j):
    """List a corner that is deeper than `least` if it is new; without room in the place of the shallowest, `worst`.

    Returns the new count, the shallowest, and the depth that the next corner must exceed.
    """
    same = 0
    for k in range(count):  # all of them, so that several are compared at once
        same += 1 if out.feature[k] == feature else 0
    if same > 0:
        return count, worst, least
    at = worst if count == POINTS else count
    count = min(count + 1, POINTS)
    r, p = placed.rot, placed.pos
    for c in range(3):
        n = r[i, c, 2]
        y = p[j, c] + r[j, c, 0] * x[0] + r[j, c, 1] * x[1] + r[j, c, 2] * x[2]
        out.point[at, c], out.normal[at, c] = y + 0.5 * depth * n, -n
    out.depth[at], out.feature[at] = depth, feature
    if count == POINTS:
        worst, least = 0, out.depth[0]
        for k in range(1, POINTS):
            d = out.depth[k]
            worst, least = (k, d) if d < least else (worst, least)
    return count, worst, least
