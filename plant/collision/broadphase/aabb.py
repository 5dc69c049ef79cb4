"""Axis-aligned bounding boxes, kept as rows (low x, y, z, high x, y, z) of an array: union, surface, overlap.

Ref: Luaces 4.5.1. Touching counts as overlap everywhere.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline

TINY = 1e-300
FURTHEST = 1e200  # along a ray: less than anything divided by TINY


@inline
def overlaps(box, n, x0, y0, z0, x1, y1, z1):
    """Whether row `n` overlaps the box from (x0, y0, z0) to (x1, y1, z1)."""
    return (
        (box[n, 0] <= x1)
        & (box[n, 3] >= x0)
        & (box[n, 1] <= y1)
        & (box[n, 4] >= y0)
        & (box[n, 2] <= z1)
        & (box[n, 5] >= z0)
    )


@inline
def join(box, n, a, b):
    """Row `n` = the smallest box around rows `a` and `b`."""
    box[n, 0], box[n, 3] = min(box[a, 0], box[b, 0]), max(box[a, 3], box[b, 3])
    box[n, 1], box[n, 4] = min(box[a, 1], box[b, 1]), max(box[a, 4], box[b, 4])
    box[n, 2], box[n, 5] = min(box[a, 2], box[b, 2]), max(box[a, 5], box[b, 5])


@inline
def area(box, a):
    """Half the surface of row `a`: the chance that something is looked for in it."""
    x, y, z = box[a, 3] - box[a, 0], box[a, 4] - box[a, 1], box[a, 5] - box[a, 2]
    return x * y + y * z + z * x


@inline
def joint_area(box, a, b):
    """Half the surface of the smallest box around rows `a` and `b`."""
    x = max(box[a, 3], box[b, 3]) - min(box[a, 0], box[b, 0])
    y = max(box[a, 4], box[b, 4]) - min(box[a, 1], box[b, 1])
    z = max(box[a, 5], box[b, 5]) - min(box[a, 2], box[b, 2])
    return x * y + y * z + z * x


@inline
def reciprocal(d):
    """1 / d for the slab test; a huge number in place of infinity, so that 0 times it is 0."""
    if abs(d) > TINY:
        return 1.0 / d
    return math.copysign(1.0 / TINY, d)


@inline
def ray_meets(box, n, x, y, z, ix, iy, iz, far):
    """Whether the ray from (x, y, z) meets row `n` within `far`; (ix, iy, iz) are the reciprocals of its direction."""
    a, b = (box[n, 0] - x) * ix, (box[n, 3] - x) * ix
    near, far = max(0.0, min(a, b)), min(far, max(a, b))
    a, b = (box[n, 1] - y) * iy, (box[n, 4] - y) * iy
    near, far = max(near, min(a, b)), min(far, max(a, b))
    a, b = (box[n, 2] - z) * iz, (box[n, 5] - z) * iz
    return max(near, min(a, b)) <= min(far, max(a, b))
