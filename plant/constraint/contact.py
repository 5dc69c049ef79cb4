"""Contact rows: a normal and two tangents for every entry of the contact list, and their warm start by feature.

    normal     G v >= what the gap allows (Vortex eq. 24)      impulse >= -adhesion
    tangents   G v = 0                                         |impulse| <= mu times the normal's (scaled box, eq. 29)

The first tangent of a sliding contact points along the slip, so that the box is exact in the direction that matters.
Friction is static while the contact does not slip, dynamic when it does. A contact that was deeper than its load can
explain when it was found is parted by projection (see `position_projection`), not by a push.

Contacts of materials with a force law are written by constraint/compliant_contact.py instead, volumes of overlap by
velocity/foundation_rows.py.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.codes import BodyKind, Bound
from plant.constraint.actuators import RESTING, UNSEEN, restitution_correction, row_speed
from plant.constraint.compliant_contact import keep_smooth, smooth_rows
from plant.constraint.contact_jacobian import choose_tangent, contact_row
from plant.contact_law.model import Law
from plant.model import Status
from plant.numeric.algebra import cross
from plant.numeric.hash_table import clear, get
from plant.numeric.hash_table import put as remember
from plant.stages import call_stage

DYNAMIC = int(BodyKind.DYNAMIC)
SPRING, CONTACT, TANGENT = int(Bound.SPRING), int(Bound.CONTACT), int(Bound.TANGENT)
HYDRAULIC, SMOOTH = int(Bound.HYDRAULIC), int(Bound.SMOOTH)
RIGID, FOUNDATION = int(Law.RIGID), int(Law.FOUNDATION)
STEPS = int(Status.STEPS)
TOUCHING = 0.005  # share of the margin across which adhesion still holds
GRIP = 1e-5  # compliance of sticking friction, as a share of the inverse masses


@kernel
def warm_contacts(contact, warm):
    """Warm start: impulses, tangents and bristles of contacts that stayed, by their feature.

    The lists of two steps are alike as a rule, so the hash table is made only when they are not.
    """
    n, old = contact.count[0], contact.old_count[0]
    contact.new[0] = n
    hashed = False
    for c in range(n):
        o = c if c < old and contact.old_feature[c] == contact.feature[c] else -1
        if o < 0 and old > 0:
            if not hashed:
                clear(warm.key)
                for s in range(old):
                    remember(warm.key, warm.place, contact.old_feature[s], s)
                hashed = True
            o = get(warm.key, warm.place, contact.feature[c])
        for i in range(3):
            contact.impulse[c, i] = contact.old_impulse[o, i] if o >= 0 else 0.0
            contact.tangent[c, i] = contact.old_tangent[o, i] if o >= 0 else 0.0
            contact.stretch[c, i] = contact.old_stretch[o, i] if o >= 0 else 0.0
        contact.first_rate[c] = contact.old_first_rate[o] if o >= 0 else 0.0
        contact.new[0] -= 1 if o >= 0 else 0
        contact.push[c] = 0.0


@kernel
def contact_rows(e):
    """Append a normal and two tangent rows for every contact in the list."""
    m, d, h = e.model, e.data, e.model.setup.h
    contact, rows, state, law = d.contact, d.bounded, d.state, m.material.smooth.law
    for c in range(contact.count[0]):
        a, b, pair = contact.body[c, 0], contact.body[c, 1], contact.pair[c]
        if law[pair] != RIGID:
            if law[pair] == FOUNDATION:
                call_stage(m.stage.foundation, address_of(e), c)
            else:
                smooth_rows(e, c)
            continue
        n = contact.normal[c]
        k = rows.count[0]
        contact_row(contact.point[c], state, rows, k, a, b, n[0], n[1], n[2])
        rows.kind[k], rows.source[k] = CONTACT, c
        _normal_row(e, rows, k, c, pair)
        slip = choose_tangent(contact, c, state, m.setup.slow)
        t = contact.tangent[c]
        ux, uy, uz = cross(n[0], n[1], n[2], t[0], t[1], t[2])
        friction = m.material.stiction[pair] if slip < m.setup.slow else m.material.friction[pair]
        contact.friction[c] = friction
        reach = friction * max(contact.impulse[c, 0], 0.0)
        sigma = max(m.material.slip[pair] / h, GRIP * _looseness(m, a, b))
        for i in range(2):
            q = k + 1 + i
            if i == 0:
                contact_row(contact.point[c], state, rows, q, a, b, t[0], t[1], t[2])
            else:
                contact_row(contact.point[c], state, rows, q, a, b, ux, uy, uz)
            rows.kind[q], rows.source[q] = TANGENT, c
            rows.rhs[q] = rows.excess[q] = rows.bounce[q] = 0.0
            rows.sigma[q] = sigma
            rows.low[q], rows.high[q] = -reach, reach
            rows.state[q] = 0
            rows.hits[q] = rows.hits[k]
            rows.value[q] = 0.0
        rows.value[k] = contact.impulse[c, 0]
        rows.value[k + 1] = contact.impulse[c, 1] if slip < m.setup.slow else -contact.impulse[c, 1]
        if slip >= m.setup.slow:
            rows.state[k + 1] = -1  # friction against the slip
        rows.count[0] = k + 3


@kernel
def _normal_row(e, rows, k, c, pair):
    setup, material, contact = e.model.setup, e.model.material, e.data.contact
    h, depth = setup.h, contact.depth[c]
    speed = row_speed(e.data.state, rows.a[k], rows.b[k], rows.ga[k], rows.gb[k])
    rows.sigma[k], rows.high[k] = material.sigma[pair], math.inf
    rows.excess[k] = rows.bounce[k] = 0.0
    rows.hits[k] = 1 if depth - h * speed > 0.0 and speed < -RESTING * setup.quiet else 0
    if material.bounce[pair] > 0.0 and speed < -setup.quiet and rows.hits[k] == 1:
        rows.bounce[k] = -material.bounce[pair] * speed + restitution_correction(e, rows, k, material.bounce[pair])
    if depth > 0.0:
        own = UNSEEN * setup.visible + 2.0 * max(contact.impulse[c, 0], 0.0) / (h * material.stiffness[pair])
        rows.excess[k] = max(0.0, depth - own)
        push = 4.0 / h * min(depth, own) if contact.impulse[c, 0] > 0.0 or depth <= own else 0.0
        rows.rhs[k] = max(0.0, material.upsilon[pair] * (push + speed))
    else:  # not yet touching: it may come as close as the gap
        rows.rhs[k] = depth / h
    rows.low[k] = -h * material.adhesion[pair] if depth > -TOUCHING * setup.margin else 0.0
    rows.state[k] = 0 if contact.impulse[c, 0] > 0.0 or depth > 0.0 else -1


@inline
def _looseness(m, a, b):
    """Sum of the inverse masses of the bodies that move."""
    s = 0.0
    if a >= 0 and m.body.kind[a] == DYNAMIC:
        s += 1.0 / m.body.mass[a]
    if b >= 0 and m.body.kind[b] == DYNAMIC:
        s += 1.0 / m.body.mass[b]
    return s


@kernel
def keep_rows(e):
    """What this step found, kept for the next: states by actuator, impulses by feature.

    The first tangent of a contact at rest turns to where its friction points, so that the box bounds it as the
    cone would.
    """
    contact, rows, law = e.data.contact, e.data.bounded, e.model.material.smooth.law
    for c in range(contact.count[0]):
        if law[contact.pair[c]] != RIGID:
            contact.impulse[c, 0] = contact.impulse[c, 1] = 0.0  # one that does not push has no rows
            if law[contact.pair[c]] != FOUNDATION:
                keep_smooth(e, c)
    pushed, per_second = e.data.target.pushed, 1.0 / e.model.setup.h
    pushed[:] = 0.0
    for k in range(rows.count[0]):
        c = rows.source[k]
        if rows.slot[k] >= 0 and (rows.kind[k] <= SPRING or rows.kind[k] == HYDRAULIC):
            pushed[c] = rows.side[k] * rows.value[k] * per_second
        if rows.kind[k] < SPRING:
            rows.kept[c] = rows.state[k]
        elif rows.kind[k] == CONTACT or rows.kind[k] == SMOOTH:
            n, t = contact.normal[c], contact.tangent[c]
            p, q = rows.value[k + 1], rows.value[k + 2]
            size = math.sqrt(p * p + q * q)
            contact.impulse[c, 0], contact.impulse[c, 1], contact.impulse[c, 2] = rows.value[k], size, 0.0
            if size > 1e-9 * abs(rows.value[k]) and size > 0.0:
                ux, uy, uz = cross(n[0], n[1], n[2], t[0], t[1], t[2])
                p, q = p / size, q / size
                t[0], t[1], t[2] = p * t[0] + q * ux, p * t[1] + q * uy, p * t[2] + q * uz
    remember_contacts(contact, e.data.warm, e.data.log, e.data.status[STEPS])


@kernel
def remember_contacts(contact, warm, log, step):
    """The list of this step, kept as the old one of the next; who began to push each other is logged."""
    n_contacts, is_any_new = contact.count[0], False
    for c in range(n_contacts):
        contact.push[c] += max(contact.impulse[c, 0], 0.0)
        is_same = c < contact.old_count[0] and contact.old_feature[c] == contact.feature[c]
        is_any_new |= contact.push[c] > 0.0 and not (is_same and contact.old_push[c] > 0.0)
    if is_any_new:
        _log_collisions(contact, warm, log, step)
    contact.old_count[0] = n_contacts
    for c in range(n_contacts):
        contact.old_feature[c] = contact.feature[c]
        contact.old_body[c, 0], contact.old_body[c, 1] = contact.body[c, 0], contact.body[c, 1]
        contact.old_push[c] = contact.push[c]
        for i in range(3):
            contact.old_impulse[c, i] = contact.impulse[c, i]
            contact.old_tangent[c, i] = contact.tangent[c, i]
            contact.old_stretch[c, i] = contact.stretch[c, i]
        contact.old_first_rate[c] = contact.first_rate[c]


@kernel
def _log_collisions(contact, warm, log, step):
    """Write down pairs of bodies that did not push each other in the step before, with all that they push now.

    Looked up in the hash table of the warm starts, which has served for this step.
    """
    size, first = log.step.size, log.count[0]
    clear(warm.key)
    for o in range(contact.old_count[0]):
        if contact.old_push[o] > 0.0:
            remember(warm.key, warm.place, _pair_key(contact.old_body[o]), 0)
    for c in range(contact.count[0]):
        push = contact.push[c]
        if not push > 0.0:
            continue
        key = _pair_key(contact.body[c])
        entry = get(warm.key, warm.place, key) - 1
        if entry == -1:  # they touched before
            continue
        if entry < 0:
            entry, k = log.count[0], log.count[0] % size
            remember(warm.key, warm.place, key, entry + 1)
            log.count[0] = entry + 1
            log.step[k], log.feature[k], log.impulse[k] = step, contact.feature[c], 0.0
            log.body[k, 0], log.body[k, 1] = contact.body[c, 0], contact.body[c, 1]
            log.point[k, 0] = log.point[k, 1] = log.point[k, 2] = 0.0
        if entry >= log.count[0] - size:
            k = entry % size
            log.impulse[k] += push
            for i in range(3):
                log.point[k, i] += push * contact.point[c, i]
    for entry in range(max(first, log.count[0] - size), log.count[0]):
        for i in range(3):
            log.point[entry % size, i] /= log.impulse[entry % size]


@inline
def _pair_key(body):
    """Two bodies, of which one may be the ground (-1), as one number, in either order."""
    a, b = min(body[0], body[1]) + 1, max(body[0], body[1]) + 1
    return (a << 31) | b
