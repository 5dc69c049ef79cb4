"""Impacts: contacts and limits that close within the step bounce with Newton restitution, before the step itself.

The impact stage solves for impulses alone (no forces, no time passes), with every joint held and every other closing
contact at least not approaching (Nordberg and Servin 2.3). One impact may lead to the next: the stage is repeated
while something bounces. A pair bounces at the place where the step would have
closed its gap, so it never overlaps, and a perfectly elastic ball keeps its energy.
"""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.core.struct import address_of
from plant.codes import Bound
from plant.constraint.contact import GRIP
from plant.constraint.kinematics import load_bodies
from plant.model import Status
from plant.stages import call_stage

LOCK, CONTACT, TANGENT = int(Bound.LOCK), int(Bound.CONTACT), int(Bound.TANGENT)
IMPACTS, IMPACT_NOW = int(Status.IMPACTS), int(Status.IMPACT_NOW)


@kernel
def is_impact(rows):
    """Whether something bounces in this step."""
    for k in range(rows.count[0]):
        if rows.bounce[k] > 0.0:
            return True
    return False


@kernel
def impact(e):
    """Velocities after the impacts of this step. The rows must be written anew afterwards."""
    m, d = e.model, e.data
    rows = d.bounded
    load_bodies(e, 0.0)
    for k in range(rows.count[0]):
        kind = rows.kind[k]
        if kind == LOCK:
            rows.rhs[k] = -rows.prescribed_speed[k]
            continue
        rows.rhs[k] = rows.bounce[k] - rows.prescribed_speed[k]
        rows.value[k] = 0.0
        rows.sigma[k] = min(rows.sigma[k], GRIP * _looseness(m, rows.a[k], rows.b[k]))
        rows.state[k] = 0 if kind != TANGENT and rows.hits[k] == 1 else -1
        if kind == TANGENT or rows.hits[k] == 0:
            rows.low[k] = rows.high[k] = 0.0
        else:
            rows.low[k] = 0.0
    d.status[IMPACT_NOW] = 1
    call_stage(m.stage.solve, address_of(e), 2)
    d.status[IMPACT_NOW] = 0
    d.status[IMPACTS] += 1
    for k in range(rows.count[0]):
        if rows.kind[k] == CONTACT:
            d.contact.push[rows.source[k]] += max(rows.value[k], 0.0)


@kernel
def _looseness(m, a, b):
    s = 0.0
    if a >= 0:
        s += 1.0 / m.body.mass[a]
    if b >= 0:
        s += 1.0 / m.body.mass[b]
    return s
