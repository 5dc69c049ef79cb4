"""Springs and dampers between two points, as soft rows: implicit, so that they are stable at any stiffness.

    linear    SPOOK eq. 9 with epsilon = 1 / stiffness and the damping time damping / stiffness
    table     the same with the slope of the table at the present stretch; where the table falls or is level there
              is no stiffness to be implicit about, and the force is applied as it is

Ref: Nordberg and Servin eq. 9; Vortex 2.4.
"""

from __future__ import annotations

import math

from hilnode.core.jit import kernel
from plant.codes import Bound
from plant.constraint.actuators import row_speed
from plant.constraint.joint_coordinate import put
from plant.numeric.algebra import cross

SPRING = int(Bound.SPRING)


@kernel
def spring_rows(e):
    """Append one row for every spring."""
    m, d, h = e.model, e.data, e.model.setup.h
    spring, rows, state = m.spring, d.bounded, d.state
    for i in range(spring.on.size):
        if spring.on[i] == 0:
            continue
        k = rows.count[0]
        a, b = spring.a[i], spring.b[i]
        stretch = _line(d, spring.pa[i], spring.pb[i], a, b, rows.ga[k], rows.gb[k]) - spring.rest[i]
        stiffness, damping = spring.stiffness[i], spring.damping[i]
        force = -stiffness * stretch
        if spring.table[i] >= 0:
            force, stiffness = look_up(spring, i, stretch)
        rows.a[k], rows.b[k], rows.kind[k], rows.source[k] = a, b, SPRING, i
        rows.low[k], rows.high[k] = h * spring.low[i], h * spring.high[i]
        rows.excess[k] = rows.bounce[k] = rows.value[k] = 0.0
        rows.state[k] = rows.hits[k] = 0
        rows.slot[k] = -1
        speed = row_speed(state, a, b, rows.ga[k], rows.gb[k])
        if stiffness > 0.0:
            upsilon = 1.0 / (1.0 + 4.0 * damping / (stiffness * h))
            rows.sigma[k] = 4.0 * upsilon / (stiffness * h * h)
            rows.rhs[k] = upsilon * (4.0 / h * force / stiffness + speed)
        elif damping > 0.0:
            rows.sigma[k] = 1.0 / (h * damping)
            rows.rhs[k] = force / damping
        else:
            rows.sigma[k], rows.rhs[k] = 1.0, 0.0
            rows.low[k] = rows.high[k] = h * min(max(force, spring.low[i]), spring.high[i])
            rows.state[k] = -1
        rows.count[0] = k + 1


@kernel
def _line(d, pa, pb, a, b, ga, gb):
    """Distance of the two points; the row of its rate."""
    rax, ray, raz = _arm(d, a, pa)
    rbx, rby, rbz = _arm(d, b, pb)
    dx, dy, dz = rbx - rax, rby - ray, rbz - raz
    if b >= 0:
        dx, dy, dz = dx + d.state.pos[b, 0], dy + d.state.pos[b, 1], dz + d.state.pos[b, 2]
    if a >= 0:
        dx, dy, dz = dx - d.state.pos[a, 0], dy - d.state.pos[a, 1], dz - d.state.pos[a, 2]
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length > 0.0:
        dx, dy, dz = dx / length, dy / length, dz / length
    else:
        dz = 1.0
    px, py, pz = cross(rax, ray, raz, dx, dy, dz)
    put(ga, -1.0, dx, dy, dz, px, py, pz)
    px, py, pz = cross(rbx, rby, rbz, dx, dy, dz)
    put(gb, 1.0, dx, dy, dz, px, py, pz)
    return length


@kernel
def _arm(d, b, p):
    if b < 0:
        return p[0], p[1], p[2]
    r = d.frame.rot[b]
    return (
        r[0, 0] * p[0] + r[0, 1] * p[1] + r[0, 2] * p[2],
        r[1, 0] * p[0] + r[1, 1] * p[1] + r[1, 2] * p[2],
        r[2, 0] * p[0] + r[2, 1] * p[1] + r[2, 2] * p[2],
    )


@kernel
def look_up(spring, i, stretch):
    """Force that drives the points apart, and the slope of the pull, from the table; beyond its ends the last slope."""
    first, n = spring.table[i], spring.table_size[i]
    k = first
    while k < first + n - 2 and stretch > spring.table_x[k + 1]:
        k += 1
    slope = (spring.table_y[k + 1] - spring.table_y[k]) / (spring.table_x[k + 1] - spring.table_x[k])
    return -(spring.table_y[k] + slope * (stretch - spring.table_x[k])), slope
