"""Back to the beginning: an engine's state as it was at compile, restored by hot code."""

from __future__ import annotations

from typing import NamedTuple

from hilnode.jit import kernel
from hilnode.record import F2
from plant.model import Data, Status
from plant.natural.model import view_natural
from plant.project import settle

PLACED = int(Status.PLACED)


class Start(NamedTuple):
    """What moves, as it was."""

    pos: F2  # [b, 3]
    quat: F2  # [b, 4]
    vel: F2  # [b, 6]
    angle: F2  # [j, turns]
    pressure: F2  # [c, 2]


def start_of(data: Data) -> Start:
    """The state of now, to come back to."""
    s = data.state
    return Start(s.pos.copy(), s.quat.copy(), s.vel.copy(), s.angle.copy(), data.chamber.pressure.copy())


@kernel
def restart(e, start):
    """The state of `start`, at rest in every other respect: nothing touched, nothing pulled, nobody asleep."""
    s, d = e.data.state, e.data
    s.pos[:] = start.pos
    s.quat[:] = start.quat
    s.vel[:] = start.vel
    s.angle[:] = start.angle
    d.chamber.pressure[:] = start.pressure
    d.contact.old_count[0] = 0
    d.bounded.kept[:] = 0
    d.row.force[:] = 0.0
    d.status[PLACED] = 0
    s.asleep[:] = 0
    s.rested[:] = 0.0
    d.graph.dirty[0] = 1
    if e.model.setup.core != 0:
        _forget(view_natural(e.model.setup.core))
    settle(e, 0)
    d.status[PLACED] = 0


@kernel
def _forget(n):
    """In natural coordinates: multipliers, accelerations, and the contacts that the layout of the tangent knows."""
    n.row.multiplier[:] = 0.0
    n.row.force[:] = 0.0
    n.row.active[:] = 0
    n.row.drag[:] = 0.0
    n.entity.a[:] = 0.0
    n.entity.a_before[:] = 0.0
    n.entity.before[:] = 0.0
    n.entity.residual[:] = 0.0
    n.solution.pair_count[0] = 0
    n.solution.dirty[0] = 1
