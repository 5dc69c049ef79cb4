"""Couplings: one row over the free coordinates of up to three joints, for gears, racks, screws and differentials.

    ratio_1 q_1 + ratio_2 q_2 + ratio_3 q_3 = offset

with the offset that they had at compile. Since the angles of hinges are unwound, this holds at position level and a
gear never slips. It makes, by the choice of joints and ratios:

    gear            q_1 - r q_2               two hinges                (Vortex eq. 43)
    rack            slide - radius x angle    a slider and a hinge
    screw           slide - lead x angle      both of one cylindrical joint
    differential    q_in - (q_1 + q_2) / 2    three hinges              (Vortex eq. 47)
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.constraint.joint_coordinate import coordinate
from plant.sparse.ordering import ENDS


@kernel
def coupling_rows(e):
    """Jacobian and error of every coupling, at the joint rows of now."""
    m, d = e.model, e.data
    ga, gb = d.scratch[0], d.scratch[1]
    for p in range(m.coupling.on.size):
        if m.coupling.on[p] == 0:
            continue
        g = d.coupled.g[p]
        g[:] = 0.0
        total = 0.0
        for k in range(3):
            j, ratio = m.coupling.joint[p, k], m.coupling.ratio[p, k]
            if j < 0:
                continue
            total += ratio * coordinate(e, j, m.coupling.axis[p, k], ga, gb)
            for q in range(ENDS):
                body = m.coupling.body[p, q]
                if body >= 0 and body == m.joint.a[j]:
                    for c in range(6):
                        g[q, c] += ratio * ga[c]
                if body >= 0 and body == m.joint.b[j]:
                    for c in range(6):
                        g[q, c] += ratio * gb[c]
        d.coupled.error[p] = total - d.coupled.offset[p]
