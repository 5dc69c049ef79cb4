"""Hydraulic cylinder with pressures: two chambers of compressible oil, a four-way valve, relief valves.

    chamber A   volume V_A = dead + area_a x,              pushes the piston out
    chamber B   volume V_B = dead + area_b (stroke - x),   pulls it in
    p' V / bulk = flow in - area x speed
    valve       flow = k u dp / sqrt(|dp| + laminar); u > 0: A from the pump, B to the tank; u < 0: the other way
    check       no oil goes back to the pump: a load that asks for more than the pump gives is held, not let down
    relief      flow out = relief_gain (p - relief) above the relief pressure
    force       area_a p_A - area_b p_B

Oil is stiff: a trapped column rings at hundreds of radians a second, and flow through a nearly shut valve is stiffer
still. Both chambers are taken implicitly, linearised at the pressures of now: p+ = p + a (Q - area u+) with
a = (h bulk / V) / (1 + (h bulk / V) s), s = -dQ/dp. The force at the end of the step is then F0 - K u+, one soft row on
the slide of the joint, so that the step is stable for any bulk modulus. First order: a trapped column of natural
frequency w is damped by w h / 2 of critical.

A cylinder between two pins of a hinge (`cylinder_linkage`) acts on the hinge's angle instead: with r = dL/dangle
its piston moves at r w, its torque is r F, and the row is u+ = r w+ divided by r.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.codes import Bound
from plant.constraint.cylinder_linkage import reach

HYDRAULIC = int(Bound.HYDRAULIC)
FULLY_SHUT = 1e-9  # a valve nearer to its middle than this passes nothing


@inline
def _through(gain, laminar, drop):
    """Flow through an orifice, and its slope against the drop."""
    root = math.sqrt(abs(drop) + laminar)
    return gain * drop / root, gain * (0.5 * abs(drop) + laminar) / (root * root * root)


@inline
def _from_pump(gain, laminar, drop):
    """Flow through an orifice behind a load check, and a slope for it: that of the line to no drop at all, which is
    steeper than the curve's own, so that a step never carries the chamber above the pump, where it would be kept."""
    if drop <= 0.0:
        return 0.0, 0.0
    slope = gain / math.sqrt(drop + laminar)
    return slope * drop, slope


@kernel
def _chamber(cylinder, chamber, c, side, h, volume):
    """Flow into a chamber at the pressures of now, and how far its pressure gives way: written to `flow`, `give`."""
    p, u = chamber.pressure[c, side], chamber.valve[c]
    u = min(max(u if side == 0 else -u, -1.0), 1.0)
    flow, slope = 0.0, 0.0
    if u > FULLY_SHUT:
        flow, slope = _from_pump(cylinder.valve_gain[c] * u, cylinder.laminar[c], chamber.supply[c] - p)
    elif u < -FULLY_SHUT:
        flow, slope = _through(cylinder.valve_gain[c] * -u, cylinder.laminar[c], cylinder.tank[c] - p)
    over = p - cylinder.relief[c]
    if over > 0.0:
        flow -= cylinder.relief_gain[c] * over
        slope += cylinder.relief_gain[c]
    stiff = h * cylinder.bulk[c] / volume
    chamber.flow[c, side] = flow
    chamber.give[c, side] = stiff / (1.0 + stiff * slope)


@kernel
def cylinder_row(e, c, where):
    """Compliance and right-hand side of the row of cylinder `c` on a joint's coordinate that is at `where`."""
    cylinder, chamber, h = e.model.cylinder, e.data.chamber, e.model.setup.h
    linkage = cylinder.linkage[c]
    length, slope = reach(linkage[0], linkage[1], linkage[2], where)
    x = length - cylinder.closed[c]
    chamber.out[c], chamber.slope[c] = x, slope
    a, b, dead = cylinder.area_a[c], cylinder.area_b[c], cylinder.dead[c]
    # A piston beyond its stroke is for limits to stop; the dead volume is the least there is.
    out = min(max(x, 0.0), cylinder.stroke[c])
    _chamber(cylinder, chamber, c, 0, h, dead + a * out)
    _chamber(cylinder, chamber, c, 1, h, dead + b * (cylinder.stroke[c] - out))
    force = a * (chamber.pressure[c, 0] + chamber.give[c, 0] * chamber.flow[c, 0])
    force -= b * (chamber.pressure[c, 1] + chamber.give[c, 1] * chamber.flow[c, 1])
    stiff = a * a * chamber.give[c, 0] + b * b * chamber.give[c, 1]
    return 1.0 / (h * stiff * slope * slope), force / (stiff * slope)


@kernel
def keep_pressures(e):
    """Pressures at the end of the step, by the speeds that the solve has found."""
    cylinder, chamber, rows = e.model.cylinder, e.data.chamber, e.data.bounded
    for k in range(rows.count[0]):
        if rows.kind[k] != HYDRAULIC:
            continue
        c = e.model.actuator.cylinder[rows.source[k]]
        keep_pressure(cylinder, chamber, c, rows.rhs[k] - rows.sigma[k] * rows.value[k] + rows.prescribed_speed[k])


@inline
def keep_pressure(cylinder, chamber, c, u):
    """Pressures of one cylinder after a step in which its joint moved at the speed `u`. Oil does not pull."""
    u *= chamber.slope[c]
    p, flow, give = chamber.pressure[c], chamber.flow[c], chamber.give[c]
    p[0] = max(0.0, p[0] + give[0] * (flow[0] - cylinder.area_a[c] * u))
    p[1] = max(0.0, p[1] + give[1] * (flow[1] + cylinder.area_b[c] * u))
