"""Reactions of joints that are only shared entities and so have no multipliers: from the bodies' equations of motion.

What moves a body and is not gravity, a push from outside, a contact or a spring comes through its joints. With the
accelerations that the step has found, that is six numbers for each body; what a joint can carry are its locked rows,
and its free coordinate where something drives it. All joints together are solved by least squares, so where a mechanism
is held more often than need be, the load is spread evenly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plant import model
from plant.codes import BodyKind
from plant.constraint.joint_coordinate import ABOUT, TURN, TURN_B
from plant.contact_law.model import Law
from plant.natural import model as natural

Array = NDArray[np.float64]
FOUNDATION = int(Law.FOUNDATION)


def find_reactions(e: model.Engine, n: natural.Natural) -> Array:
    """[j, 6] what the locked rows of every joint push with in the state of now: on b along the row, on a against it."""
    columns, owners = _columns(e)
    missing = _missing(e, n)
    out = np.zeros((len(e.model.joint.on), 6))
    if owners:
        matrix = np.array(columns).reshape(len(columns), -1).T
        found = np.linalg.lstsq(matrix, missing.ravel(), rcond=1e-10)[0]
        for (j, slot), f in zip(owners, found, strict=True):
            if slot >= 0:
                out[j, slot] = f
    return out


def _columns(e: model.Engine) -> tuple[list[Array], list[tuple[int, int]]]:
    """Wrenches [b, 6] of a unit of each row of each joint, and whose: joint and row, -1 = a free coordinate."""
    m, row = e.model, e.data.row
    columns, owners = [], []

    def enter(j: int, slot: int, ga: Array, gb: Array) -> None:
        column = np.zeros((len(m.body.mass), 6))
        for b, g in ((int(m.joint.a[j]), ga), (int(m.joint.b[j]), gb)):
            if b >= 0 and m.body.kind[b] == BodyKind.DYNAMIC:
                column[b] += g
        columns.append(column)
        owners.append((j, slot))

    for j in np.flatnonzero(m.joint.on).tolist():
        for slot in np.flatnonzero(m.joint.axis[j] >= 0).tolist():
            enter(j, slot, row.ga[j, slot], row.gb[j, slot])
    driven = {(int(j), int(x)) for j, x, on in zip(m.actuator.joint, m.actuator.axis, m.actuator.on, strict=True) if on}
    for p in np.flatnonzero(m.coupling.on).tolist():
        driven |= {(int(j), int(x)) for j, x in zip(m.coupling.joint[p], m.coupling.axis[p], strict=True) if j >= 0}
    for j, axis in sorted(driven):
        if m.joint.on[j]:
            enter(j, -1, *_coordinate(row, j, axis))
    return columns, owners


def _coordinate(row: model.JointRows, j: int, axis: int) -> tuple[Array, Array]:
    """Jacobian of a free coordinate over both bodies, as `coordinate` has it."""
    axes = row.axes[j]
    if axis >= ABOUT:
        way = np.concatenate([np.zeros(3), axes[axis - ABOUT]])
    elif axis >= 3:
        way = np.concatenate([np.zeros(3), row.spin_axis[j] if axis == TURN_B else axes[2 if axis == TURN else 0]])
    else:
        seen = row.arm[j, 0] + axes.T @ row.slide[j]
        return (
            -np.concatenate([axes[axis], np.cross(seen, axes[axis])]),
            np.concatenate([axes[axis], np.cross(row.arm[j, 1], axes[axis])]),
        )
    return -way, way


def _missing(e: model.Engine, n: natural.Natural) -> Array:
    """[b, 6] force and torque about the centre of mass that are left to the joints of each body."""
    m, state = e.model, e.data.state
    out = np.zeros((len(m.body.mass), 6))
    gravity = np.array([m.setup.gx, m.setup.gy, m.setup.gz])
    for b in np.flatnonzero(m.body.kind == BodyKind.DYNAMIC).tolist():
        out[b] = _wrench(e, n, b, n.frame.mass[b] @ n.entity.a[n.frame.of[b]]) - state.wrench[b] - state.field_wrench[b]
        out[b, :3] -= m.body.mass[b] * gravity
    _take_contacts(e, n, out)
    _take_springs(e, n, out)
    return out


def _wrench(e: model.Engine, n: natural.Natural, b: int, forces: Array) -> Array:
    """Force and torque about the centre of mass of forces [4, 3] on the entities of a body."""
    made = n.frame.made[b]
    arms = made[:, 1:] @ e.data.frame.rot[b].T
    return np.concatenate([made[:, 0] @ forces, np.cross(arms, forces).sum(axis=0)])


def _take_contacts(e: model.Engine, n: natural.Natural, out: Array) -> None:
    """Take off what contacts push with."""
    contact, law = e.data.contact, e.model.material.smooth.law
    for c in range(int(contact.count[0])):
        sides = [
            (s, int(b)) for s, b in enumerate(contact.body[c]) if b >= 0 and e.model.body.kind[b] == BodyKind.DYNAMIC
        ]
        for side, b in sides:
            sign = 1 - 2 * side
            if law[contact.pair[c]] == FOUNDATION:
                force, arm = n.wrench.force[c], n.wrench.point[c] - e.data.state.pos[b]
                out[b] -= sign * np.concatenate([force, np.cross(arm, force) + n.wrench.torque[c]])
            else:
                out[b] -= _wrench(e, n, b, sign * np.outer(n.contact.share[c, side], n.contact.push[c]))


def _take_springs(e: model.Engine, n: natural.Natural, out: Array) -> None:
    """Take off what springs between points pull with."""
    spring, state, rot = e.model.spring, e.data.state, e.data.frame.rot
    for i in np.flatnonzero(n.row.spring[: n.row.count[0]] >= 0).tolist():
        k = int(n.row.spring[i])
        ends = []
        for b, p in ((int(spring.a[k]), spring.pa[k]), (int(spring.b[k]), spring.pb[k])):
            arm = rot[b] @ p if b >= 0 else p
            ends.append((b, arm, state.pos[b] + arm if b >= 0 else p))
        way = ends[1][2] - ends[0][2]
        size = float(np.linalg.norm(way))
        if size == 0.0:
            continue
        for (b, arm, _), sign in zip(ends, (1.0, -1.0), strict=True):
            if b >= 0 and e.model.body.kind[b] == BodyKind.DYNAMIC:
                pull = sign * n.row.force[i] * way / size
                out[b] -= np.concatenate([pull, np.cross(arm, pull)])
