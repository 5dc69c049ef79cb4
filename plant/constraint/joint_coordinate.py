"""Free coordinates of joints: their values, and their Jacobians over the two bodies.

    0, 1, 2    slide of b's anchor against a's, along an axis of the joint frame in a [m]
    5          turn of a hinge about z [rad]
    6, 7       turns of a universal joint: about its axis in a, about its axis in b [rad]
    8, 9, 10   turning speed about x, y, z of the joint frame in a, for joints whose turns are all free; no value

Actuators act on a coordinate; couplings tie several together.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.numeric.algebra import cross

TURN, TURN_A, TURN_B = 5, 6, 7  # axis codes of an angle: of a hinge; of a universal joint, about x of A and y of B
ABOUT = 8  # first of the three axis codes of a turn that has a speed but no angle


@inline
def put(g, sign, lx, ly, lz, ax, ay, az):
    """A row of six."""
    g[0], g[1], g[2], g[3], g[4], g[5] = sign * lx, sign * ly, sign * lz, sign * ax, sign * ay, sign * az


@kernel
def coordinate(e, j, axis, ga, gb):
    """Value of a free coordinate of joint `j`; its Jacobian over a and b into `ga` and `gb`."""
    row, angle = e.data.row, e.data.state.angle[j]
    axes = row.axes[j]
    if axis >= 3:
        if axis == TURN_B:
            n = row.spin_axis[j]
        elif axis >= ABOUT:
            n = axes[axis - ABOUT]
        else:
            n = axes[2] if axis == TURN else axes[0]
        put(ga, -1.0, 0.0, 0.0, 0.0, n[0], n[1], n[2])
        put(gb, 1.0, 0.0, 0.0, 0.0, n[0], n[1], n[2])
        if axis >= ABOUT:
            return 0.0
        return angle[1] if axis == TURN_B else angle[0]
    n, ra, rb, s = axes[axis], row.arm[j, 0], row.arm[j, 1], row.slide[j]
    # B's anchor seen from A's centre of mass: A's own arm and the slide
    sx = ra[0] + axes[0, 0] * s[0] + axes[1, 0] * s[1] + axes[2, 0] * s[2]
    sy = ra[1] + axes[0, 1] * s[0] + axes[1, 1] * s[1] + axes[2, 1] * s[2]
    sz = ra[2] + axes[0, 2] * s[0] + axes[1, 2] * s[1] + axes[2, 2] * s[2]
    px, py, pz = cross(sx, sy, sz, n[0], n[1], n[2])
    put(ga, -1.0, n[0], n[1], n[2], px, py, pz)
    px, py, pz = cross(rb[0], rb[1], rb[2], n[0], n[1], n[2])
    put(gb, 1.0, n[0], n[1], n[2], px, py, pz)
    return s[axis]
