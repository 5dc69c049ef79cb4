"""The elastic foundation at velocity level: one overlap as six bounded rows, made implicit over the step.

The normal and the two axes of rolling are rows as those of other laws (`law_row`): stiffness and damping along them are
linearised, with weights that suit how well the step resolves them. So a stiff layer does not throw a box out, nor rock
it up.

Friction, of sliding and of spinning, is a drag w(u) that falls as the slip u grows; over a step

    impulse = -h w (t u' + (1 - t) u),   t = y / (1 + y),   y = h w / m

Fast slip (y << 1) gets the force of the law, within y^2; near rest (y >> 1) the row is implicit, and as it is a drag
and no slope, it stops the slip and does not turn it round. What stays is the law: with u' = u, impulse = -h w u.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.constraint.actuators import row_speed
from plant.constraint.compliant_contact import LEVEL, SMOOTH, SMOOTH_TANGENT, law_row
from plant.constraint.contact_jacobian import choose_tangent, contact_row, slip_at, spin_between, spin_row
from plant.constraint.kinematics import solve3
from plant.contact_law.foundation import foundation_force
from plant.model import view_engine
from plant.sparse.islands import is_free


def foundation_row_stage(address, c):
    """Append the rows of contact `c`, an overlap of two foundations."""
    foundation_rows(view_engine(address), c)
    return 0


@kernel
def _row_mass(m, d, rows, k):
    """Effective mass, or moment of inertia, that row `k` feels; 0 if the solve can move neither body."""
    loose = 0.0
    for side in range(2):
        b, g = (rows.a[k], rows.ga[k]) if side == 0 else (rows.b[k], rows.gb[k])
        if is_free(m, d, b):
            x, y, z = solve3(d.frame.inertia[b], g[3], g[4], g[5])
            loose += (g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / m.body.mass[b] + g[3] * x + g[4] * y + g[5] * z
    return 1.0 / loose if loose > 0.0 else 0.0


@inline
def _height(m, d, point, n, a, b):
    """How high the centre of mass of a body that moves is over the contact plane, of two the higher one."""
    high = 0.0
    for side in range(2):
        q, s = (a, 1.0) if side == 0 else (b, -1.0)
        if is_free(m, d, q):
            p = d.state.pos[q]
            over = n[0] * (p[0] - point[0]) + n[1] * (p[1] - point[1]) + n[2] * (p[2] - point[2])
            high = max(high, s * over)
    return high


@inline
def _drag_row(rows, k, c, drag, u, mass, h, reach):
    """Row `k`: friction with the drag of now."""
    law_row(rows, k, c, SMOOTH_TANGENT, -drag * u, 0.0, 0.0, u, mass, h)
    rows.low[k], rows.high[k], rows.state[k] = -reach, reach, 0
    much = h * drag / mass
    if much > LEVEL:
        share = much / (1.0 + much)
        rows.sigma[k], rows.rhs[k] = 1.0 / (h * drag * share), -u / much


@kernel
def foundation_rows(e, c):
    """Append the rows of overlap `c`, if it pushes."""
    m, d, h = e.model, e.data, e.model.setup.h
    contact, rows, foundation, law, region, state = (
        d.contact,
        d.bounded,
        d.foundation,
        m.material.smooth,
        d.region,
        d.state,
    )
    if not region.volume[c] > 0.0:
        return
    a, b, pair, k = contact.body[c, 0], contact.body[c, 1], contact.pair[c], rows.count[0]
    n, point, at = contact.normal[c], contact.point[c], region.at[c]
    contact_row(at, state, rows, k, a, b, n[0], n[1], n[2])
    mass = _row_mass(m, d, rows, k)
    if mass == 0.0:
        return
    choose_tangent(contact, c, state, m.setup.slow)
    way, t = foundation.way, contact.tangent[c]
    way[1, 0], way[1, 1], way[1, 2] = t[0], t[1], t[2]
    load = foundation_force(
        law.stiffness[pair],
        law.dissipation[pair],
        law.friction[pair],
        law.stick_speed[pair],
        region.volume[c],
        region.area[c],
        n,
        region.inertia[c],
        region.patch[c],
        (point[0] - at[0], point[1] - at[1], point[2] - at[2]),
        _height(m, d, point, n, a, b),
        slip_at(point, state, a, b),
        spin_between(state, a, b),
        foundation,
    )
    if not load > 0.0:
        return
    u = row_speed(state, a, b, rows.ga[k], rows.gb[k])
    law_row(rows, k, c, SMOOTH, load, foundation.stiffness[0], foundation.damping[0], u, mass, h)
    rows.low[k], rows.high[k], rows.state[k] = 0.0, math.inf, 0
    ahead = 1.0 + h * foundation.stiffness[0] * max(-u, 0.0) / load
    for i in range(1, 6):
        q = k + i
        if i < 3:
            contact_row(point, state, rows, q, a, b, way[i, 0], way[i, 1], way[i, 2])
        else:
            spin_row(rows, q, a, b, way[i, 0], way[i, 1], way[i, 2])
        mass = _row_mass(m, d, rows, q)
        u = row_speed(state, a, b, rows.ga[q], rows.gb[q])
        if i < 4:
            _drag_row(rows, q, c, foundation.damping[i], u, mass, h, h * foundation.reach[i])
        else:
            law_row(
                rows,
                q,
                c,
                SMOOTH_TANGENT,
                foundation.force[i],
                foundation.stiffness[i],
                foundation.damping[i],
                u,
                mass,
                h,
            )
            reach = h * ahead * foundation.reach[i]
            rows.low[q], rows.high[q], rows.state[q] = -reach, reach, 0
    rows.count[0] = k + 6
