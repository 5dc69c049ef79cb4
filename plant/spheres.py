"""Contacts of spheres with planes and with each other: every sphere against every plane and every later sphere.

Enough for wheels, feet and corner points of a few bodies; a sphere of radius 0 is a point. A sphere belongs to
a body, a plane to the ground. The normal of a contact points towards the first body, and its feature number is
made of the two shapes, so that it stays the same while they touch.

Limits: no broad phase, so the cost grows with the square of the number of spheres.
"""

from __future__ import annotations

import math

from hilnode.jit import inline, kernel


@kernel
def collide(e):
    """Fill the contact list with what touches or may touch within two steps; returns how many found no room."""
    m, d = e.model, e.data
    s, contact = m.shape, d.contact
    contact.count[0] = 0
    n, left_out = s.body.size, 0
    reach_ahead = 2.0 * m.setup.h
    for i in range(n):
        b = s.body[i]
        r, x = d.frame.rot[b], d.state.pos[b]
        for k in range(3):
            d.centre[i, k] = x[k] + r[k, 0] * s.centre[i, 0] + r[k, 1] * s.centre[i, 1] + r[k, 2] * s.centre[i, 2]
        c = d.centre[i]
        for p in range(s.plane.shape[0]):
            nx, ny, nz = s.plane[p, 0], s.plane[p, 1], s.plane[p, 2]
            gap = nx * c[0] + ny * c[1] + nz * c[2] - s.plane[p, 3] - s.radius[i]
            if gap < s.margin[0] + reach_ahead * _approach(d.state.vel[b], nx, ny, nz):
                deep = s.radius[i] + 0.5 * gap
                pair = m.material.pair[s.material[i], s.plane_material[p]]
                left_out += _list(
                    contact,
                    b,
                    -1,
                    c[0] - deep * nx,
                    c[1] - deep * ny,
                    c[2] - deep * nz,
                    nx,
                    ny,
                    nz,
                    -gap,
                    pair,
                    i * (n + 64) + p,
                )
        for j in range(i):
            o = s.body[j]
            if s.apart[b, o] == 0:
                continue
            dx, dy, dz = c[0] - d.centre[j, 0], c[1] - d.centre[j, 1], c[2] - d.centre[j, 2]
            reach = s.radius[i] + s.radius[j]
            square = dx * dx + dy * dy + dz * dz
            far = reach + s.margin[0] + reach_ahead * (_speed(d.state.vel[b]) + _speed(d.state.vel[o]))
            if square > far * far or reach == 0.0:
                continue
            size = math.sqrt(square)
            if size > 1e-12:
                dx, dy, dz = dx / size, dy / size, dz / size
            else:
                dx, dy, dz = 0.0, 0.0, 1.0
            deep = s.radius[i] + 0.5 * (size - reach)
            pair = m.material.pair[s.material[i], s.material[j]]
            left_out += _list(
                contact,
                b,
                o,
                c[0] - deep * dx,
                c[1] - deep * dy,
                c[2] - deep * dz,
                dx,
                dy,
                dz,
                reach - size,
                pair,
                i * (n + 64) + 64 + j,
            )
    return left_out


@inline
def _approach(v, nx, ny, nz):
    """Speed against the normal, 0 if it goes away."""
    return max(0.0, -(v[0] * nx + v[1] * ny + v[2] * nz))


@inline
def _speed(v):
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@kernel
def _list(contact, a, b, x, y, z, nx, ny, nz, depth, pair, feature):
    """Add one contact; 1 if there was no room for it."""
    k = contact.count[0]
    if k == contact.depth.size:
        return 1
    contact.body[k, 0], contact.body[k, 1] = a, b
    contact.point[k, 0], contact.point[k, 1], contact.point[k, 2] = x, y, z
    contact.normal[k, 0], contact.normal[k, 1], contact.normal[k, 2] = nx, ny, nz
    contact.depth[k], contact.pair[k], contact.feature[k] = depth, pair, feature
    contact.count[0] = k + 1
    return 0
