"""Pairs of nodes of two BVHs: a lower bound of the distance between their boxes.

Boxes are parallel to the axes of their own mesh. A walk through two trees asks for this bound a thousand times, so what
depends on one box alone is worked out once for all pairs that it is in. Everything is in the frame of the second mesh;
o is the origin and x, y, z are the axes of the first. Sums and widths of a box are twice its centre and half lengths,
so all is kept twice as large.
"""

from __future__ import annotations

from hilnode.core.jit import inline
from plant.collision.shape.mesh import COUNT, FIRST

ALIKE = 2.0  # two boxes that differ in size by less are both opened at once


@inline
def girth(mesh, node):
    """The longest side of a node's box."""
    b = mesh.box[node]
    return max(b[3] - b[0], b[4] - b[1], b[5] - b[2])


@inline
def is_leaf(mesh, node):
    """Whether a node has triangles of its own."""
    return mesh.link[node, COUNT] > 0


@inline
def is_low(mesh, node):
    """Whether a node is a leaf or has two: then all its triangles are in one leaf of the wide tree (bvh8.py)."""
    return mesh.link[node, COUNT] > 0 or mesh.link[node + 1, COUNT] > 0


@inline
def first_of(mesh, node):
    """The first triangle of a low node."""
    return mesh.link[node, FIRST] if mesh.link[node, COUNT] > 0 else mesh.link[node + 1, FIRST]


@inline
def first_box(mesh, node, o, x, y, z):
    """A box of the first mesh: its centre, its reach along the axes of the second and along its own."""
    b = mesh.box[node]
    hx, hy, hz = b[3] - b[0], b[4] - b[1], b[5] - b[2]
    cx, cy, cz = b[3] + b[0], b[4] + b[1], b[5] + b[2]
    return (
        x[0] * cx + y[0] * cy + z[0] * cz + 2.0 * o[0],
        x[1] * cx + y[1] * cy + z[1] * cz + 2.0 * o[1],
        x[2] * cx + y[2] * cy + z[2] * cz + 2.0 * o[2],
        hx * abs(x[0]) + hy * abs(y[0]) + hz * abs(z[0]),
        hx * abs(x[1]) + hy * abs(y[1]) + hz * abs(z[1]),
        hx * abs(x[2]) + hy * abs(y[2]) + hz * abs(z[2]),
        hx,
        hy,
        hz,
    )


@inline
def second_box(mesh, node, x, y, z):
    """A box of the second mesh: its centre, its reach along its own axes and along those of the first."""
    b = mesh.box[node]
    centre = b[3] + b[0], b[4] + b[1], b[5] + b[2]
    return box_there(centre, b[3] - b[0], b[4] - b[1], b[5] - b[2], x, y, z)


@inline
def box_there(centre, kx, ky, kz, x, y, z):
    """As second_box, from twice the centre and the widths."""
    return (
        centre[0],
        centre[1],
        centre[2],
        kx,
        ky,
        kz,
        kx * abs(x[0]) + ky * abs(x[1]) + kz * abs(x[2]),
        kx * abs(y[0]) + ky * abs(y[1]) + kz * abs(y[2]),
        kx * abs(z[0]) + ky * abs(z[1]) + kz * abs(z[2]),
    )


@inline
def _larger(a, b):
    return a if a > b else b


@inline
def apart(a, b, x, y, z):
    """A bound from below of the distance of two boxes, negative if they may overlap: the largest gap along the axes of
    both frames. There is no way out before the sixth axis: a branch that is hard to foretell costs more."""
    dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    gap = _larger(abs(dx) - (a[3] + b[3]), abs(dy) - (a[4] + b[4]))
    gap = _larger(gap, abs(dz) - (a[5] + b[5]))
    gap = _larger(gap, abs(dx * x[0] + dy * x[1] + dz * x[2]) - (a[6] + b[6]))
    gap = _larger(gap, abs(dx * y[0] + dy * y[1] + dz * y[2]) - (a[7] + b[7]))
    return 0.5 * _larger(gap, abs(dx * z[0] + dy * z[1] + dz * z[2]) - (a[8] + b[8]))


@inline
def push(work, depth, a, b, gap, reach):
    """Let a pair of nodes wait if they are within reach; returns how many wait."""
    work.stack[depth, 0], work.stack[depth, 1], work.apart[depth] = a, b, gap
    return depth + (1 if gap <= reach else 0)
