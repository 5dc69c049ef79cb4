"""Position projection: bodies back onto their joints, out of limits and deep contacts.

Joints are projected when a step has left a gap that can be seen, limits and contacts when bodies were put into them.

One Newton step of the positions with the factor of the velocity solve, which is at hand:

    | M  G' | | dq |   |  0 |
    | G  -S | | l  | = | -g |

so the correction is the smallest in the metric of the masses, and heavy bodies move least (Koerner eq. 2.15
projects in the same way). Ordinary steps stay below the tolerance and pay nothing; a whip that cracks pays for itself.
Contacts and limits that carry load are in the factor and hold against it; those that were found too deep are
parted by a share at each step. Velocities do not change, so nothing is flung.
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.codes import Stepper
from plant.constraint.coupling import coupling_rows
from plant.constraint.joint import joint_rows
from plant.constraint.kinematics import place_bodies, solve3, world_inertia
from plant.model import DISTANCE
from plant.numeric.algebra import rotation, turn
from plant.solver.direct import assemble
from plant.sparse.block_ldl import factorise, solve

VISIBLE_TURN = 1e-4  # [rad] smaller tilts are left to the stabilisation
ROUNDS = 3
PART = 0.2  # share of an overlap from the start that is parted in a step
PROJECTED = int(Stepper.PROJECTED)


@kernel
def _is_visible(e, i):
    """Whether a locked axis in island `i` that is not soft on purpose is violated by more than may be seen."""
    m, d = e.model, e.data
    gap, bodies, joints = m.setup.visible, m.body.mass.size, m.joint.a.size
    if m.setup.stepper == PROJECTED:
        gap = 0.0
    for n in range(d.graph.first[i], d.graph.first[i + 1]):
        j = d.graph.owner[n] - bodies
        if j < 0 or j >= joints or m.joint.rigid[j] == 0:
            continue
        for k in range(6):
            axis = m.joint.axis[j, k]
            much = gap if axis < 3 or axis == DISTANCE else VISIBLE_TURN
            if axis >= 0 and abs(d.row.error[j, k]) > much:
                return True
    return False


@kernel
def _has_excess(d, i):
    for r in range(d.graph.row_first[i], d.graph.row_first[i + 1]):
        k = d.bounded.by_island[r]
        if d.bounded.excess[k] > 0.0 and d.bounded.state[k] == 0:
            return True
    return False


@kernel
def settle(e, rounds):
    """Frames and joint rows at the new poses, projected up to `rounds` times if need be."""
    d = e.data
    place_bodies(e)
    joint_rows(e, d.scratch)
    for again in range(rounds):
        moved = False
        for i in range(d.graph.islands[0]):
            if d.graph.first[i] == d.graph.first[i + 1]:
                continue
            parted = again == 0 and _has_excess(d, i)
            if parted or _is_visible(e, i):
                if again > 0:  # the first round was not enough: the bodies have turned too far for the old factor
                    assemble(e, i)
                    factorise(d.pattern, d.factor, d.graph.first[i], d.graph.first[i + 1])
                _project(e, i, parted)
                moved = True
        if not moved:
            break
        joint_rows(e, d.scratch)
    coupling_rows(e)


@kernel
def _project(e, i, parted):
    m, d = e.model, e.data
    x, g, rows = d.x, d.graph, d.bounded
    bodies, joints = m.body.mass.size, m.joint.a.size
    begin, end = g.first[i], g.first[i + 1]
    for n in range(begin, end):
        x[n, :] = 0.0
        j = g.owner[n] - bodies
        if 0 <= j < joints:
            for k in range(d.pattern.size[n]):
                if m.joint.axis[j, k] >= 0 and m.joint.rigid[j] == 1:
                    x[n, k] = -d.row.error[j, k]
    if parted:
        for r in range(g.row_first[i], g.row_first[i + 1]):
            k = rows.by_island[r]
            if rows.excess[k] > 0.0 and rows.state[k] == 0:
                if rows.slot[k] >= 0:
                    x[g.joint_node[rows.joint[k]], rows.slot[k]] = rows.side[k] * PART * rows.excess[k]
                    continue
                w = PART * rows.excess[k] / rows.sigma[k]
                for side in range(2):
                    b = rows.a[k] if side == 0 else rows.b[k]
                    if b >= 0:
                        for c in range(6):
                            x[g.body_node[b], c] += w * (rows.ga[k, c] if side == 0 else rows.gb[k, c])
    solve(d.pattern, d.factor, x, begin, end)
    for n in range(begin, end):
        b = g.owner[n]
        if b < bodies:
            _shift(d.state, d.frame, m.body.inertia[b], b, x[n])


@kernel
def _shift(state, frame, local, b, way):
    """Move and turn a body by `way`; it keeps its momentum, so its angular velocity changes with its inertia."""
    i, v, p = frame.inertia[b], state.vel[b], state.pos[b]
    lx = i[0, 0] * v[3] + i[0, 1] * v[4] + i[0, 2] * v[5]
    ly = i[1, 0] * v[3] + i[1, 1] * v[4] + i[1, 2] * v[5]
    lz = i[2, 0] * v[3] + i[2, 1] * v[4] + i[2, 2] * v[5]
    p[0] += way[0]
    p[1] += way[1]
    p[2] += way[2]
    turn(state.quat[b], way[3], way[4], way[5])
    rotation(state.quat[b], frame.rot[b])
    world_inertia(frame.rot[b], local, i)
    v[3], v[4], v[5] = solve3(i, lx, ly, lz)
