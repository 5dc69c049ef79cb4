"""Projection: bodies back onto their joints, when a step has left a gap that can be seen.

One Newton step of the positions with the factor of the velocity solve, which is at hand:

    | M  G' | | dq |   |  0 |
    | G  -S | | l  | = | -g |

so the correction is the smallest in the metric of the masses, and heavy bodies move least (Koerner eq.
2.13-2.15 project in the same way). Ordinary steps stay below the tolerance and pay nothing; a whip that cracks
pays for itself.
"""

from __future__ import annotations

from hilnode.jit import kernel
from plant.algebra import turn
from plant.kinematics import place_bodies, solve3
from plant.ldl import solve
from plant.rows import joint_rows

VISIBLE_TURN = 1e-4  # [rad] smaller tilts are left to the stabilisation
ROUNDS = 3


@kernel
def is_visible(e):
    """Whether a locked axis that is not soft on purpose is violated by more than may be seen."""
    gap = e.model.setup.visible
    for j in range(e.model.joint.a.size):
        for i in range(6):
            axis = e.model.joint.axis[j, i]
            much = gap if axis < 3 else VISIBLE_TURN
            if axis >= 0 and e.model.joint.rigid[j] == 1 and abs(e.data.row.error[j, i]) > much:
                return True
    return False


@kernel
def settle(e, scratch, rounds):
    """Frames and joint rows at the new poses, projected up to `rounds` times if need be."""
    place_bodies(e)
    joint_rows(e, scratch)
    for _ in range(rounds):
        if not is_visible(e):
            return
        _project(e)
        place_bodies(e)
        _keep_momentum(e)
        joint_rows(e, scratch)


@kernel
def _project(e):
    m, d = e.model, e.data
    x = d.x
    x[:] = 0.0
    for j in range(m.joint.a.size):
        n = m.joint.node[j]
        for i in range(m.pattern.size[n]):
            if m.joint.axis[j, i] >= 0 and m.joint.rigid[j] == 1:
                x[n, i] = -d.row.error[j, i]
    solve(m.pattern, d.factor, x)
    for b in range(m.body.mass.size):
        n = m.body.node[b]
        if n >= 0:
            i, v, k = d.frame.inertia[b], d.state.vel[b], d.frame.momentum[b]
            for c in range(3):
                k[3 + c] = i[c, 0] * v[3] + i[c, 1] * v[4] + i[c, 2] * v[5]
            p = d.state.pos[b]
            p[0] += x[n, 0]
            p[1] += x[n, 1]
            p[2] += x[n, 2]
            turn(d.state.quat[b], x[n, 3], x[n, 4], x[n, 5])


@kernel
def _keep_momentum(e):
    """Angular velocities that give the turned bodies the angular momentum they had."""
    d = e.data
    for b in range(e.model.body.mass.size):
        if e.model.body.node[b] >= 0:
            k, v = d.frame.momentum[b], d.state.vel[b]
            v[3], v[4], v[5] = solve3(d.frame.inertia[b], k[3], k[4], k[5])
