"""Combined slip, shared by the laws: how longitudinal and lateral slip make one force."""

from __future__ import annotations

import math

from hilnode.core.jit import inline


@inline
def direction(nx, ny, sx, sy):
    """Unit vector of the force, and how large the normalised slip (nx, ny) is; (sx, sy) is the slip itself.

    Up to a normalised slip of 1 the force follows the normalised slip, for there the stiffness of each direction
    rules. A tire that slides altogether is pushed against the way it slides, so beyond 1 the direction goes over to the
    slip's own, with the weight 1 - 1 / size. (The idea is that of Bakker, Pacejka and Lidner 1989; the weight is ours.)
    """
    size = math.sqrt(nx * nx + ny * ny)
    if not size > 0.0:
        return 0.0, 0.0, 0.0
    x, y = nx / size, ny / size
    if size > 1.0:
        keep = 1.0 / size
        length = math.sqrt(sx * sx + sy * sy)
        x = keep * x + (1.0 - keep) * sx / length
        y = keep * y + (1.0 - keep) * sy / length
        norm = math.sqrt(x * x + y * y)
        x, y = x / norm, y / norm
    return x, y, size
