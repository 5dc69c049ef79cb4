"""Smooth contacts at velocity level: the force law of a contact, made implicit over the step, as three bounded rows.

A row takes the law's force F, stiffness k = -dF/dx and damping c = -dF/dv along its direction, all at the start of the
step, and the speeds u of now and u' of the end:

    impulse = h (F - h k (b u' + g u) - t c (u' - u))

The weights suit how well the step resolves the contact, z = k h^2 / m and y = h c / m with the effective mass m.
Resolved ones (z, y << 1) have b = 1/4, g = -1/4, t = 1/2: the mean over three steps of SPOOK (Nordberg and Servin
eq. 9) and the mean speed, which neither gain nor lose energy. Stiffer ones go over to b = 1, g = 0 (backward Euler)
with the share s = z / (4 + z), so that a contact that lasts a step or two does not throw out what falls into it;
t = 1 - 1 / y is where a damper just stops a body and does not turn it back. At z = 0.1, ten steps of contact, an
elastic impact keeps 0.99 of its speed, at z = 1 between 0.7 and 0.9.

The normal row does not pull beyond the adhesion, friction not beyond the law's own cone at the load of now. A direction
in which the law has no slope (plain sliding) gets Coulomb's row: the force of the law, or what stops it. There is no
impact stage and no projection: restitution and depth are the law's.

Coupling between the rows of one contact (friction that follows the load within a step) is left out; the load is that
of the start of the step.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import Bound
from plant.constraint.contact_jacobian import choose_tangent, contact_row, slip_at
from plant.constraint.kinematics import solve3
from plant.contact_law.bristle import contact_law
from plant.contact_law.normal_force import SMC, normal
from plant.numeric.algebra import cross
from plant.sparse.islands import is_free

SMOOTH, SMOOTH_TANGENT = int(Bound.SMOOTH), int(Bound.SMOOTH_TANGENT)
SETTLED = 0.25  # share of the quiet speed (by default: free fall over a step) that counts as the least first speed
LEAST = 1e-4  # [m/s] the same where nothing falls
LEVEL = 1e-9  # slope of a law, over a step and against the mass, below which there is none
FIRM = 1e-5  # compliance of a row that stops a slip, as a share of the inverse mass


@inline
def begin(contact, c, rate, quiet):
    """The speed at which the contact began: kept while it overlaps, forgotten when it parts.

    Laws divide by it. A contact that was put down, or came up under a resting body, has hardly any; from
    zero its damping would grow without end and freeze the contact at the first touch. What gravity adds in
    a step is not resolved by the step anyway, so no approach counts for less.
    """
    if not contact.depth[c] > 0.0:
        contact.first_rate[c] = 0.0
    elif contact.first_rate[c] == 0.0:
        contact.first_rate[c] = max(rate, SETTLED * quiet, LEAST)
    return contact.first_rate[c]


@kernel
def contact_mass(m, d, c):
    """Effective mass of contact `c` along its normal, 1 / (G M^-1 G') [kg]; 0 if the solve can move neither body."""
    n, point, loose = d.contact.normal[c], d.contact.point[c], 0.0
    for side in range(2):
        b = d.contact.body[c, side]
        if is_free(m, d, b):
            p = d.state.pos[b]
            gx, gy, gz = cross(point[0] - p[0], point[1] - p[1], point[2] - p[2], n[0], n[1], n[2])
            x, y, z = solve3(d.frame.inertia[b], gx, gy, gz)
            loose += 1.0 / m.body.mass[b] + gx * x + gy * y + gz * z
    return 1.0 / loose if loose > 0.0 else 0.0


@kernel
def smooth_rows(e, c):
    """Append the three rows of contact `c`, if it pushes."""
    m, d, h = e.model, e.data, e.model.setup.h
    contact, rows, out, law = d.contact, d.bounded, d.response, m.material.smooth
    a, b, pair = contact.body[c, 0], contact.body[c, 1], contact.pair[c]
    n, s, point = contact.normal[c], contact.stretch[c], contact.point[c]
    vx, vy, vz = slip_at(point, d.state, a, b)
    u = n[0] * vx + n[1] * vy + n[2] * vz
    first = begin(contact, c, -u, m.setup.quiet)
    if not contact.depth[c] > 0.0:
        return
    mass = contact_mass(m, d, c)
    if mass == 0.0:
        return
    x, y, z = s[0], s[1], s[2]
    load = contact_law(
        law, pair, n[0], n[1], n[2], contact.depth[c], -u, first, x, y, z, x, y, z, vx, vy, vz, mass, h, out
    )
    if not load > 0.0 and law.adhesion[pair] == 0.0:
        return
    slip = choose_tangent(contact, c, d.state, m.setup.slow)
    t = contact.tangent[c]
    ux, uy, uz = cross(n[0], n[1], n[2], t[0], t[1], t[2])
    k = rows.count[0]
    contact_row(point, d.state, rows, k, a, b, n[0], n[1], n[2])
    force = n[0] * out.force[0] + n[1] * out.force[1] + n[2] * out.force[2]
    stiffness, damping = _along(out.stiffness, n[0], n[1], n[2]), _along(out.damping, n[0], n[1], n[2])
    if law.law[pair] == SMC:  # its damping rises with the fourth root of the depth, without end at the surface
        _, ahead, _ = normal(law, pair, contact.depth[c] + h * max(-u, 0.0), -u, first, mass)
        stiffness = min(stiffness, ahead)
    law_row(rows, k, c, SMOOTH, force, stiffness, damping, u, mass, h)
    rows.low[k], rows.high[k] = -h * law.adhesion[pair], math.inf
    rows.state[k] = 0
    most = law.friction[pair] if law.law[pair] >= SMC else law.stiction[pair]
    load = max(load, contact.impulse[c, 0] / h + law.adhesion[pair])
    reach = h * (most * load + law.viscous[pair] * slip)
    contact_row(point, d.state, rows, k + 1, a, b, t[0], t[1], t[2])
    _tangent_row(rows, k + 1, c, out, t[0], t[1], t[2], vx, vy, vz, mass, h, reach)
    contact_row(point, d.state, rows, k + 2, a, b, ux, uy, uz)
    _tangent_row(rows, k + 2, c, out, ux, uy, uz, vx, vy, vz, mass, h, reach)
    rows.count[0] = k + 3


@inline
def _along(m, x, y, z):
    """(x, y, z) m (x, y, z)'."""
    return (
        x * (m[0, 0] * x + (m[0, 1] + m[1, 0]) * y)
        + y * (m[1, 1] * y + (m[1, 2] + m[2, 1]) * z)
        + z * (m[2, 2] * z + (m[0, 2] + m[2, 0]) * x)
    )


@inline
def law_row(rows, k, c, kind, force, stiffness, damping, u, mass, h):
    """Row `k`, along which the bodies part at the speed `u`, by the law along it; False if that has no slope."""
    rows.kind[k], rows.source[k] = kind, c
    rows.excess[k] = rows.bounce[k] = 0.0
    rows.hits[k] = 0
    rows.value[k] = h * force
    stiffness, damping = max(stiffness, 0.0), max(damping, 0.0)
    stiff, much = stiffness * h * h / mass, damping * h / mass
    share = stiff / (4.0 + stiff)
    damping *= max(0.5, 1.0 - 1.0 / much) if much > 0.0 else 0.5
    slope = h * stiffness * (0.25 + 0.75 * share) + damping
    if slope * h > LEVEL * mass:
        rows.sigma[k] = 1.0 / (h * slope)
        rows.rhs[k] = (force + (damping + 0.25 * h * stiffness * (1.0 - share)) * u) / slope
        return True
    rows.sigma[k], rows.rhs[k] = 1.0 / (LEVEL * mass), force * h / (LEVEL * mass)
    return False


@inline
def _tangent_row(rows, k, c, out, x, y, z, vx, vy, vz, mass, h, reach):
    u = x * vx + y * vy + z * vz
    force = out.force[0] * x + out.force[1] * y + out.force[2] * z
    stiffness, damping = _along(out.stiffness, x, y, z), _along(out.damping, x, y, z)
    rows.low[k], rows.high[k] = -reach, reach
    rows.state[k] = 0
    if law_row(rows, k, c, SMOOTH_TANGENT, force, stiffness, damping, u, mass, h):
        return
    rows.sigma[k], rows.rhs[k] = FIRM / mass, 0.0
    rows.low[k] = rows.high[k] = h * force
    rows.state[k] = -1
    if force * u < 0.0:  # friction stops a slip and does not turn it round
        rows.low[k], rows.high[k] = min(h * force, 0.0), max(h * force, 0.0)
        rows.state[k] = -1 if force < 0.0 else 1


@kernel
def keep_smooth(e, c):
    """The stretch of the bristles of contact `c` after the step, from the velocities that were just found."""
    m, d, h = e.model, e.data, e.model.setup.h
    contact, out = d.contact, d.response
    n, s = contact.normal[c], contact.stretch[c]
    depth, a, b = contact.depth[c], contact.body[c, 0], contact.body[c, 1]
    if depth > 0.0:
        vx, vy, vz = slip_at(contact.point[c], d.state, a, b)
        rate = -(n[0] * vx + n[1] * vy + n[2] * vz)
        depth += h * rate
        contact_law(
            m.material.smooth,
            contact.pair[c],
            n[0],
            n[1],
            n[2],
            depth,
            rate,
            contact.first_rate[c],
            s[0] + h * vx,
            s[1] + h * vy,
            s[2] + h * vz,
            s[0],
            s[1],
            s[2],
            vx,
            vy,
            vz,
            contact_mass(m, d, c),
            h,
            out,
        )
    for i in range(3):
        s[i] = out.stretch[i] if depth > 0.0 else 0.0
