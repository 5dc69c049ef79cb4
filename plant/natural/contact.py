"""Contact forces: the laws of `contact_law` at the coordinates of each iteration; those of volumes are in `foundation`.

The list is found once, at the beginning of the step. Within the step a contact keeps its normal and the material points
of both bodies; depth and stretch follow their displacement x, so that force and tangent fit together:

    depth = depth at the start - n . x          stretch = stretch at the start + tangential part of x

The tangent matrix takes the symmetric, positive part of the derivatives: along the normal, and in the tangent plane
with negative directions left out. What is dropped (friction follows the load; friction that falls with speed) is in the
residual all the same, so it costs iterations, not exactness.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.codes import BodyKind
from plant.constraint.compliant_contact import LEAST, SETTLED
from plant.constraint.contact_jacobian import slip_at
from plant.contact_law.bristle import contact_law
from plant.contact_law.model import Law
from plant.natural.tangent import add_block
from plant.numeric.algebra import cross
from plant.stages import call_stage

DYNAMIC = int(BodyKind.DYNAMIC)
FOUNDATION = int(Law.FOUNDATION)


@kernel
def renew_pairs(e, n):
    """Ask for a new layout if two bodies touch whose entities have no blocks in common."""
    contact, s, kind = e.data.contact, n.solution, e.model.body.kind
    missing = False
    for c in range(contact.count[0]):
        a, b = contact.body[c, 0], contact.body[c, 1]
        if a < 0 or b < 0 or kind[a] != DYNAMIC or kind[b] != DYNAMIC:
            continue
        if c > 0 and contact.body[c - 1, 0] == a and contact.body[c - 1, 1] == b:
            continue
        known = False
        for p in range(s.pair_count[0]):
            if s.pairs[p, 0] == a and s.pairs[p, 1] == b:
                known = True
                break
        if not known:
            missing = True
            break
    if not missing and s.dirty[0] == 0:
        return
    s.dirty[0] = 1
    s.pair_count[0] = 0
    for c in range(contact.count[0]):
        a, b = contact.body[c, 0], contact.body[c, 1]
        if a < 0 or b < 0 or kind[a] != DYNAMIC or kind[b] != DYNAMIC:
            continue
        k = s.pair_count[0]
        if k == 0 or s.pairs[k - 1, 0] != a or s.pairs[k - 1, 1] != b:
            s.pairs[k, 0], s.pairs[k, 1] = a, b
            s.pair_count[0] = k + 1


@kernel
def begin_contacts(e, n):
    """Where each contact is in terms of entities, at the beginning of the step."""
    contact, t, m, state = e.data.contact, n.contact, e.model, e.data.state
    least = max(SETTLED * m.setup.quiet, LEAST)
    for c in range(contact.count[0]):
        t.mass[c] = _mass(e, c)
        t.first[c] = contact.first_rate[c]
        if t.first[c] == 0.0:
            x, y, z = slip_at(contact.point[c], state, contact.body[c, 0], contact.body[c, 1])
            way = contact.normal[c]
            t.first[c] = max(-(x * way[0] + y * way[1] + z * way[2]), least)
        for i in range(3):
            t.start[c, i] = t.prescribed[c, i] = 0.0
            t.stretch[c, i] = contact.stretch[c, i]
        for side in range(2):
            b, sign = contact.body[c, side], 1.0 - 2.0 * side
            point = contact.point[c]
            if b < 0:
                t.share[c, side, :] = 0.0
                continue
            rx, ry, rz = point[0] - state.pos[b, 0], point[1] - state.pos[b, 1], point[2] - state.pos[b, 2]
            if m.body.kind[b] != DYNAMIC:
                t.share[c, side, :] = 0.0
                v = state.vel[b]
                x, y, z = cross(v[3], v[4], v[5], rx, ry, rz)
                t.prescribed[c, 0] += sign * (v[0] + x)
                t.prescribed[c, 1] += sign * (v[1] + y)
                t.prescribed[c, 2] += sign * (v[2] + z)
                continue
            rot, part = e.data.frame.rot[b], n.frame.part[b]
            lx = rot[0, 0] * rx + rot[1, 0] * ry + rot[2, 0] * rz
            ly = rot[0, 1] * rx + rot[1, 1] * ry + rot[2, 1] * rz
            lz = rot[0, 2] * rx + rot[1, 2] * ry + rot[2, 2] * rz
            for k in range(4):
                s = part[k, 0] + part[k, 1] * lx + part[k, 2] * ly + part[k, 3] * lz
                t.share[c, side, k] = s
                x = n.frame.of[b, k]
                for i in range(3):
                    t.start[c, i] += sign * s * n.entity.q[x, i]


@kernel
def _mass(e, c):
    """Effective mass of a contact: that of its pair of bodies, shared by the contacts that the pair has."""
    contact, m = e.data.contact, e.model
    a, b = contact.body[c, 0], contact.body[c, 1]
    loose = 0.0
    if a >= 0 and m.body.kind[a] == DYNAMIC:
        loose += 1.0 / m.body.mass[a]
    if b >= 0 and m.body.kind[b] == DYNAMIC:
        loose += 1.0 / m.body.mass[b]
    count, k = 0, c
    while k >= 0 and contact.body[k, 0] == a and contact.body[k, 1] == b:
        count, k = count + 1, k - 1
    k = c + 1
    while k < contact.count[0] and contact.body[k, 0] == a and contact.body[k, 1] == b:
        count, k = count + 1, k + 1
    return 1.0 / (loose * count) if loose > 0.0 else 0.0


@kernel
def push_contacts(e, n, elapsed):
    """residual -= forces of all contacts, `elapsed` seconds after the list was found; weights of their derivatives."""
    contact, t, p, ent = e.data.contact, n.contact, n.method, n.entity
    law, out = e.model.material.smooth, e.data.response
    of_position, of_rate = (1.0 - p.df) * p.beta * p.h * p.h, (1.0 - p.df) * p.gamma * p.h
    for c in range(contact.count[0]):
        if law.law[contact.pair[c]] == FOUNDATION:
            call_stage(e.model.stage.foundation, address_of(e), c)
            continue
        nx, ny, nz = contact.normal[c, 0], contact.normal[c, 1], contact.normal[c, 2]
        x = elapsed * t.prescribed[c, 0] - t.start[c, 0]
        y = elapsed * t.prescribed[c, 1] - t.start[c, 1]
        z = elapsed * t.prescribed[c, 2] - t.start[c, 2]
        vx, vy, vz = t.prescribed[c, 0], t.prescribed[c, 1], t.prescribed[c, 2]
        for side in range(2):
            b = contact.body[c, side]
            if b < 0 or e.model.body.kind[b] != DYNAMIC:
                continue
            for k in range(4):
                s, q = (1.0 - 2.0 * side) * t.share[c, side, k], n.frame.of[b, k]
                x, y, z = x + s * ent.q[q, 0], y + s * ent.q[q, 1], z + s * ent.q[q, 2]
                vx, vy, vz = vx + s * ent.v[q, 0], vy + s * ent.v[q, 1], vz + s * ent.v[q, 2]
        depth, rate = contact.depth[c] - (nx * x + ny * y + nz * z), -(nx * vx + ny * vy + nz * vz)
        t.depth[c] = depth
        t.load[c] = contact_law(
            law,
            contact.pair[c],
            nx,
            ny,
            nz,
            depth,
            rate,
            t.first[c],
            t.stretch[c, 0] + x,
            t.stretch[c, 1] + y,
            t.stretch[c, 2] + z,
            t.stretch[c, 0],
            t.stretch[c, 1],
            t.stretch[c, 2],
            vx,
            vy,
            vz,
            t.mass[c],
            p.h,
            out,
        )
        for i in range(3):
            t.next[c, i], t.push[c, i] = out.stretch[i], out.force[i]
        _weigh(out, nx, ny, nz, of_position, of_rate, t.weight[c])
        for side in range(2):
            b = contact.body[c, side]
            if b < 0 or e.model.body.kind[b] != DYNAMIC:
                continue
            for k in range(4):
                s, q = (1.0 - 2.0 * side) * t.share[c, side, k], n.frame.of[b, k]
                ent.residual[q, 0] -= s * out.force[0]
                ent.residual[q, 1] -= s * out.force[1]
                ent.residual[q, 2] -= s * out.force[2]


@kernel
def _weigh(out, nx, ny, nz, of_position, of_rate, w):
    """w = positive, symmetric part of of_position K + of_rate C, normal and tangent plane apart."""
    k, c = out.stiffness, out.damping
    for i in range(3):
        for j in range(i, 3):
            w[i, j] = 0.5 * (of_position * (k[i, j] + k[j, i]) + of_rate * (c[i, j] + c[j, i]))
            w[j, i] = w[i, j]
    if abs(nx) < 0.7:
        ux, uy, uz = 1.0 - nx * nx, -nx * ny, -nx * nz
    else:
        ux, uy, uz = -ny * nx, 1.0 - ny * ny, -ny * nz
    s = 1.0 / math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = s * ux, s * uy, s * uz
    tx, ty, tz = cross(nx, ny, nz, ux, uy, uz)
    along = max(0.0, _between(w, nx, ny, nz, nx, ny, nz))
    a, b, d = (
        _between(w, ux, uy, uz, ux, uy, uz),
        _between(w, ux, uy, uz, tx, ty, tz),
        _between(w, tx, ty, tz, tx, ty, tz),
    )
    middle, reach = 0.5 * (a + d), math.sqrt(0.25 * (a - d) * (a - d) + b * b)
    high, low = max(0.0, middle + reach), max(0.0, middle - reach)
    # the axis of the larger one: high p p' + low (plane - p p')
    turned = 0.5 * math.atan2(2.0 * b, a - d)
    co, si = math.cos(turned), math.sin(turned)
    px, py, pz = co * ux + si * tx, co * uy + si * ty, co * uz + si * tz
    diff, rest = high - low, along - low
    w[0, 0] = low + diff * px * px + rest * nx * nx
    w[1, 1] = low + diff * py * py + rest * ny * ny
    w[2, 2] = low + diff * pz * pz + rest * nz * nz
    w[0, 1] = w[1, 0] = diff * px * py + rest * nx * ny
    w[0, 2] = w[2, 0] = diff * px * pz + rest * nx * nz
    w[1, 2] = w[2, 1] = diff * py * pz + rest * ny * nz


@inline
def _between(w, ax, ay, az, bx, by, bz):
    """a' W b."""
    return (
        ax * (w[0, 0] * bx + w[0, 1] * by + w[0, 2] * bz)
        + ay * (w[1, 0] * bx + w[1, 1] * by + w[1, 2] * bz)
        + az * (w[2, 0] * bx + w[2, 1] * by + w[2, 2] * bz)
    )


@kernel
def add_contacts(e, n):
    """The contacts' share of the tangent matrix."""
    contact, t, ent, kind, law = e.data.contact, n.contact, n.entity, e.model.body.kind, e.model.material.smooth.law
    for c in range(contact.count[0]):
        if not t.depth[c] > 0.0:
            continue
        if law[contact.pair[c]] == FOUNDATION:
            call_stage(e.model.stage.foundation_slopes, address_of(e), c)
            continue
        for one in range(8):
            a = contact.body[c, one >> 2]
            if a < 0 or kind[a] != DYNAMIC:
                continue
            x = n.frame.of[a, one & 3]
            s = (1.0 - 2.0 * (one >> 2)) * t.share[c, one >> 2, one & 3]
            if ent.known[x] == 1 or s == 0.0:
                continue
            for two in range(one, 8):
                b = contact.body[c, two >> 2]
                if b < 0 or kind[b] != DYNAMIC:
                    continue
                y = n.frame.of[b, two & 3]
                p = s * (1.0 - 2.0 * (two >> 2)) * t.share[c, two >> 2, two & 3]
                if ent.known[y] == 0:
                    # an entity that both bodies share stands in the list twice: its own block gets both products
                    add_block(ent, n.solution, x, y, 2.0 * p if x == y and one != two else p, t.weight[c])


@inline
def _point_along(push, normal, out):
    """Size of the part of a force in the plane of contact; `out` is turned to where it points."""
    s = push[0] * normal[0] + push[1] * normal[1] + push[2] * normal[2]
    x, y, z = push[0] - s * normal[0], push[1] - s * normal[1], push[2] - s * normal[2]
    size = math.sqrt(x * x + y * y + z * z)
    if size > 0.0:
        out[0], out[1], out[2] = x / size, y / size, z / size
    return size


@kernel
def keep_contacts(e, n):
    """Store contact impulses, friction directions, stretches and first rates, for the next step and for queries."""
    contact, t, h, law = e.data.contact, n.contact, n.method.h, e.model.material.smooth.law
    for c in range(contact.count[0]):
        contact.impulse[c, 0] = h * t.load[c]
        push = n.wrench.force[c] if law[contact.pair[c]] == FOUNDATION else t.push[c]
        along = _point_along(push, contact.normal[c], contact.tangent[c])
        contact.impulse[c, 1] = h * along if t.depth[c] > 0.0 else 0.0
        contact.impulse[c, 2] = 0.0
        for i in range(3):
            contact.stretch[c, i] = t.next[c, i]
        contact.first_rate[c] = t.first[c] if t.depth[c] > 0.0 else 0.0
