"""Sleep: an island whose bodies have all been slow for a while is left out of the step until something disturbs it.

A body is slow below `slow` times ten, at its centre and, by its turning, at the distance of its radius of gyration.
It is woken with its whole island by a contact with a body that moves, and by a push from outside. Islands with
a motor, or joined to a body that moves as it is told, do not sleep.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind, Bound

DYNAMIC, KINEMATIC = int(BodyKind.DYNAMIC), int(BodyKind.KINEMATIC)
MOTOR = int(Bound.MOTOR)
LAZY = 10.0  # times `slow`: below it a body may fall asleep


@inline
def _is_slow(m, d, b):
    v, i, much = d.state.vel[b], m.body.inertia[b], LAZY * m.setup.slow
    turning = (i[0, 0] + i[1, 1] + i[2, 2]) / (2.0 * m.body.mass[b])  # square of the radius of gyration
    square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    square += turning * (v[3] * v[3] + v[4] * v[4] + v[5] * v[5])
    return square < much * much


@inline
def _is_pushed(d, b):
    w = d.state.wrench[b]
    return w[0] != 0.0 or w[1] != 0.0 or w[2] != 0.0 or w[3] != 0.0 or w[4] != 0.0 or w[5] != 0.0


@kernel
def wake_pushed(e):
    """Wake the islands that are pushed from outside, before contacts are looked for."""
    m, d = e.model, e.data
    if m.setup.sleep_after == 0.0:
        return
    for b in range(m.body.mass.size):
        if d.state.asleep[b] == 1 and _is_pushed(d, b):
            wake_with(m, d, b)


@kernel
def wake_touched(e):
    """Wake the islands that something has come to; True if there were any: their own contacts are not in the list."""
    m, d = e.model, e.data
    woken = False
    if m.setup.sleep_after == 0.0:
        return woken
    for c in range(d.contact.count[0]):
        a, b = d.contact.body[c, 0], d.contact.body[c, 1]
        if a < 0 or b < 0:
            continue
        if d.state.asleep[a] == 1 and _stirs(m, d, b):
            wake_with(m, d, a)
            woken = True
        elif d.state.asleep[b] == 1 and _stirs(m, d, a):
            wake_with(m, d, b)
            woken = True
    return woken


@kernel
def _stirs(m, d, b):
    """Whether the touch of a body wakes another."""
    if m.body.kind[b] == KINEMATIC:
        return not _is_slow(m, d, b)
    return m.body.kind[b] == DYNAMIC and d.state.asleep[b] == 0 and d.state.rested[b] == 0.0


@kernel
def wake_with(m, d, body):
    """Wake a body and all that fell asleep with it."""
    group = d.state.sleep_group[body]
    for b in range(m.body.mass.size):
        if d.state.asleep[b] == 1 and d.state.sleep_group[b] == group:
            d.state.asleep[b] = 0
            d.state.rested[b] = 0.0
    d.graph.dirty[0] = 1


@kernel
def fall_asleep(e):
    """Count how long bodies have been slow; put whole islands to sleep."""
    m, d = e.model, e.data
    g, setup = d.graph, e.model.setup
    if setup.sleep_after == 0.0:
        return
    for b in range(m.body.mass.size):
        if g.island[b] >= 0:
            d.state.rested[b] = d.state.rested[b] + setup.h if _is_slow(m, d, b) and not _is_pushed(d, b) else 0.0
    for i in range(m.actuator.joint.size):
        if m.actuator.kind[i] == MOTOR and m.actuator.on[i] == 1 and m.joint.on[m.actuator.joint[i]] == 1:
            _keep_awake(m, d, m.actuator.joint[i])
    for j in range(m.joint.a.size):
        a, b = m.joint.a[j], m.joint.b[j]
        if m.joint.on[j] == 0:
            continue
        if (a >= 0 and m.body.kind[a] == KINEMATIC) or (b >= 0 and m.body.kind[b] == KINEMATIC):
            _keep_awake(m, d, j)
    for i in range(g.islands[0]):
        _put_to_sleep(m, d, i)


@kernel
def _keep_awake(m, d, j):
    for b in (m.joint.a[j], m.joint.b[j]):
        if b >= 0:
            d.state.rested[b] = 0.0


@kernel
def _put_to_sleep(m, d, i):
    g, bodies = d.graph, m.body.mass.size
    b, lead = g.head[i], g.head[i]
    while b >= 0 and b < bodies:
        if d.state.rested[b] < m.setup.sleep_after:
            return
        b = g.next[b]
    b = lead
    while b >= 0 and b < bodies:
        d.state.asleep[b] = 1
        d.state.sleep_group[b] = lead
        d.state.vel[b, :] = 0.0
        b = g.next[b]
    g.dirty[0] = 1
