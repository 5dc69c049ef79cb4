"""Contacts by overlap volume: the elastic foundation of `contact_law` at the coordinates of each iteration.

The overlap itself is found anew in every iteration, with the bodies where the coordinates have them, so at the end of
the step force and torque are those of the overlap there. The tangent matrix takes the law's own slopes in six ways,
each positive; what they leave out (friction follows the load, levers change as bodies move) costs iterations, not
exactness. Along a slip the slope of friction is that of the law while the slip is slow, and the drag once friction is
nearly full: so the iteration converges close to rest, and does not overshoot from far away.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.codes import BodyKind
from plant.collision.contact_list import shapes_of
from plant.collision.transforms import place_shape
from plant.collision.volume.moments import mean_depth
from plant.collision.volume.volume import overlap, view_volumes
from plant.contact_law.foundation import foundation_force
from plant.model import view_engine
from plant.natural.frames import frame_of
from plant.natural.model import view_natural
from plant.natural.tangent import add_outer, add_slopes
from plant.numeric.algebra import cross

DYNAMIC = int(BodyKind.DYNAMIC)
STILL = 1e-12  # [m/s] a slip that points nowhere


def foundation_force_stage(address, c):
    """residual -= push of contact `c`; its slopes and their weights."""
    e = view_engine(address)
    push_foundation(e, view_natural(e.model.setup.core), c)
    return 0


def foundation_slopes_stage(address, c):
    """The share of contact `c` in the tangent matrix."""
    e = view_engine(address)
    n = view_natural(e.model.setup.core)
    foundation = n.foundation
    for i in range(6 * c, 6 * c + 6):
        if foundation.weight[i] > 0.0:
            add_outer(
                foundation,
                n.entity,
                n.solution,
                foundation.first[i],
                foundation.first[i] + foundation.free[i],
                foundation.weight[i],
            )
    return 0


@kernel
def _place(e, n, c, i, j):
    """Bodies of contact `c` and their shapes `i` and `j` where the coordinates have them.

    Bodies that move as they are told are where they are told to be at this time.
    """
    contact, state, foundation, scene = e.data.contact, e.data.state, n.foundation, e.scene
    for side in range(2):
        b, s = contact.body[c, side], i if side == 0 else j
        pos, rot, vel = foundation.pos[side], foundation.rot[side], foundation.vel[side]
        if b >= 0 and e.model.body.kind[b] == DYNAMIC:
            frame_of(n.entity, n.frame.of[b], n.frame.part[b], pos, rot, vel)
            place_shape(scene.shape, scene.placed, s, pos, rot)
        elif b >= 0:
            for k in range(3):
                pos[k] = state.pos[b, k]
                vel[k], vel[3 + k] = state.vel[b, k], state.vel[b, 3 + k]
            place_shape(scene.shape, scene.placed, s, pos, e.data.frame.rot[b])
        else:
            for k in range(6):
                vel[k] = 0.0


@inline
def _slip(foundation, point):
    """Velocity of the first body against the second at a point."""
    p, q, v, w = foundation.pos[0], foundation.pos[1], foundation.vel[0], foundation.vel[1]
    ax, ay, az = cross(v[3], v[4], v[5], point[0] - p[0], point[1] - p[1], point[2] - p[2])
    bx, by, bz = cross(w[3], w[4], w[5], point[0] - q[0], point[1] - q[1], point[2] - q[2])
    return v[0] - w[0] + ax - bx, v[1] - w[1] + ay - by, v[2] - w[2] + az - bz


@inline
def _set_tangent(way, n, velocity):
    """The first tangent: along the slip, or any; returns the speed of the slip."""
    s = velocity[0] * n[0] + velocity[1] * n[1] + velocity[2] * n[2]
    x, y, z = velocity[0] - s * n[0], velocity[1] - s * n[1], velocity[2] - s * n[2]
    slip = size = math.sqrt(x * x + y * y + z * z)
    if not slip > STILL:
        if abs(n[0]) < 0.7:
            x, y, z = 1.0 - n[0] * n[0], -n[0] * n[1], -n[0] * n[2]
        else:
            x, y, z = -n[1] * n[0], 1.0 - n[1] * n[1], -n[1] * n[2]
        size = math.sqrt(x * x + y * y + z * z)
    way[1, 0], way[1, 1], way[1, 2] = x / size, y / size, z / size
    return slip


@inline
def _height(e, foundation, contact, c, point, n):
    """How high the centre of mass of a body that moves is over the contact plane, of two the higher one."""
    high = 0.0
    for side in range(2):
        b, p = contact.body[c, side], foundation.pos[side]
        if b >= 0 and e.model.body.kind[b] == DYNAMIC:
            over = n[0] * (p[0] - point[0]) + n[1] * (p[1] - point[1]) + n[2] * (p[2] - point[2])
            high = max(high, over if side == 0 else -over)
    return high


@kernel
def push_foundation(e, n, c):
    """residual -= push of contact `c` at the coordinates of now; its slopes and their weights."""
    contact, t, foundation, p, law, out = (
        e.data.contact,
        n.contact,
        n.foundation,
        n.method,
        e.model.material.smooth,
        e.data.foundation,
    )
    i, j = shapes_of(e.scene, contact.feature[c])
    pair = contact.pair[c]
    t.load[c] = t.depth[c] = t.next[c, 0] = t.next[c, 1] = t.next[c, 2] = 0.0
    for k in range(6 * c, 6 * c + 6):
        foundation.weight[k] = 0.0
        foundation.free[k] = 0
    for k in range(3):
        n.wrench.force[c, k] = n.wrench.torque[c, k] = 0.0
    _place(e, n, c, i, j)
    if overlap(address_of(e.scene), e.scene.volumes, i, j) == 0:
        return
    found = view_volumes(e.scene.volumes).out
    point, at, normal = found.centroid, found.point, found.normal
    velocity = _slip(foundation, point)
    v, w = foundation.vel[0], foundation.vel[1]
    slip = _set_tangent(out.way, normal, velocity)
    load = foundation_force(
        law.stiffness[pair],
        law.dissipation[pair],
        law.friction[pair],
        law.stick_speed[pair],
        found.volume[0],
        found.area[0],
        normal,
        found.inertia,
        found.patch,
        (point[0] - at[0], point[1] - at[1], point[2] - at[2]),
        _height(e, foundation, contact, c, point, normal),
        velocity,
        (v[3] - w[3], v[4] - w[4], v[5] - w[5]),
        out,
    )
    if not load > 0.0:
        return
    t.load[c], t.depth[c] = load, mean_depth(found.volume[0], found.area[0])
    share = out.force[1] / out.reach[1] if out.reach[1] > 0.0 else 0.0
    if slip > 0.0 and share * share < 0.5:
        out.damping[1] *= 1.0 - share * share
    of_position, of_rate = (1.0 - p.df) * p.beta * p.h * p.h, (1.0 - p.df) * p.gamma * p.h
    for k in range(6):
        row = 6 * c + k
        _write_slopes(e, n, c, row, k, at if k == 0 else point, out.way[k])
        foundation.weight[row] = of_position * out.stiffness[k] + of_rate * out.damping[k]
        add_slopes(foundation, n.entity.residual, row, -out.force[k])
    _store_wrench(n.wrench, c, out, point, at)


@inline
def _store_wrench(wrench, c, out, point, at):
    """Force and torque at the centroid; the normal force is given through the middle of the patch."""
    way, f = out.way, out.force
    x, y, z = cross(at[0] - point[0], at[1] - point[1], at[2] - point[2], way[0, 0], way[0, 1], way[0, 2])
    arm = (x, y, z)
    for k in range(3):
        wrench.point[c, k] = point[k]
        wrench.force[c, k] = f[0] * way[0, k] + f[1] * way[1, k] + f[2] * way[2, k]
        wrench.torque[c, k] = f[0] * arm[k] + f[3] * way[3, k] + f[4] * way[4, k] + f[5] * way[5, k]


@kernel
def _write_slopes(e, n, c, row, kind, point, way):
    """Gradient of row `row` over the entities of both bodies: along `way` at a point, or about it."""
    contact, foundation, known = e.data.contact, n.foundation, n.entity.known
    begin, count = foundation.first[row], 0
    x, y, z = way[0], way[1], way[2]
    for side in range(2):
        b, sign = contact.body[c, side], 1.0 - 2.0 * side
        if b < 0 or e.model.body.kind[b] != DYNAMIC:
            continue
        part, of, pos, rot = n.frame.part[b], n.frame.of[b], foundation.pos[side], foundation.rot[side]
        dx, dy, dz = point[0] - pos[0], point[1] - pos[1], point[2] - pos[2]
        lx = rot[0, 0] * dx + rot[1, 0] * dy + rot[2, 0] * dz
        ly = rot[0, 1] * dx + rot[1, 1] * dy + rot[2, 1] * dz
        lz = rot[0, 2] * dx + rot[1, 2] * dy + rot[2, 2] * dz
        for k in range(4):
            if known[of[k]] == 1:
                continue
            q = begin + count
            foundation.entity[q] = of[k]
            if kind < 3:
                s = sign * (part[k, 0] + part[k, 1] * lx + part[k, 2] * ly + part[k, 3] * lz)
                foundation.slope[q, 0], foundation.slope[q, 1], foundation.slope[q, 2] = s * x, s * y, s * z
            else:  # half of way x axis on each axis: the rate of any rigid turn is then way . angular velocity
                ax = part[k, 1] * rot[0, 0] + part[k, 2] * rot[0, 1] + part[k, 3] * rot[0, 2]
                ay = part[k, 1] * rot[1, 0] + part[k, 2] * rot[1, 1] + part[k, 3] * rot[1, 2]
                az = part[k, 1] * rot[2, 0] + part[k, 2] * rot[2, 1] + part[k, 3] * rot[2, 2]
                cx, cy, cz = cross(x, y, z, ax, ay, az)
                s = 0.5 * sign
                foundation.slope[q, 0], foundation.slope[q, 1], foundation.slope[q, 2] = s * cx, s * cy, s * cz
            count += 1
    foundation.free[row] = count
