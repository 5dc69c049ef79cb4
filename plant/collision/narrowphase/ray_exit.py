"""Where a ray that starts inside a mesh exits, and whether it does start inside."""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from plant.collision.narrowphase.ray import into_box, reciprocal, through_triangle
from plant.collision.shape.mesh import COUNT, FIRST, SKIP_TO, corner, face
from plant.collision.vec3 import dot


@kernel
def leave_mesh(mesh, m, o, d, far):
    """Where a ray from `o` along `d` leaves mesh `m` for the first time, if `o` is inside it, and for the last time
    before `far`; -1 if it does not.

    It starts inside a closed mesh, or below an open one, if it leaves before it enters. To count how often it does
    either would not do: through an edge it goes twice.
    """
    inverse = (reciprocal(d[0]), reciprocal(d[1]), reciprocal(d[2]))
    first, last, enters = math.inf, -1.0, math.inf
    node, end = mesh.first_node[m], mesh.first_node[m + 1]
    while node < end:
        if into_box(mesh, node, o, inverse, math.inf) == math.inf:
            node = mesh.link[node, SKIP_TO]
            continue
        for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
            s = through_triangle(o, d, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
            if s == math.inf:
                continue
            if dot(face(mesh, t), d) > 0.0:
                first = min(first, s)
                if last < s <= far:
                    last = s
            else:
                enters = min(enters, s)
        node += 1
    return first if first < enters else -1.0, last
