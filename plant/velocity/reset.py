"""Reset: an engine's state as it was at compile, restored by hot code."""

from __future__ import annotations

from typing import NamedTuple

from hilnode.core.jit import kernel
from hilnode.core.struct import F2
from plant.model import Data, Status
from plant.velocity.position_projection import settle

POSES_VALID = int(Status.POSES_VALID)


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
    """Restore the state of `start`; all else is cleared: no warm start, no reaction forces, no body asleep."""
    s, d = e.data.state, e.data
    s.pos[:] = start.pos
    s.quat[:] = start.quat
    s.vel[:] = start.vel
    s.angle[:] = start.angle
    d.chamber.pressure[:] = start.pressure
    d.contact.old_count[0] = 0
    d.bounded.kept[:] = 0
    d.row.force[:] = 0.0
    d.row.reaction[:] = 0.0
    d.status[POSES_VALID] = 0
    s.asleep[:] = 0
    s.rested[:] = 0.0
    d.graph.dirty[0] = 1
    settle(e, 0)  # frames too, for whoever looks at them before the next step
    d.status[POSES_VALID] = 0
