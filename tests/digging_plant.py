"""A plant that digs: each step changes one sample of its ground, an arrow follows it and now and then a stone moves.

Nothing in it is random: what the heights are after n steps can be computed again, see `heights_after`.
Input `dig.lift` raises and lowers what it digs; `dig.stick` is what an operator holds.
"""

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.signals import Signal
from hilnode.core.struct import F1, F2, I1, I2, Struct, viewer
from plant.abi import TILE, Arrows, Grid, Plant, Props, Task, step_function
from plant.visual.entries import entry

NX, NY = 70, 41  # not whole tiles, on purpose
ARROWS, STONES = 3, 5


class Memory(NamedTuple):
    heights: F2
    tiles: I2
    arrow_stamp: I1
    arrow_count: I1
    at: F2
    force: F2
    poses: F2
    prop_stamps: I1
    state: F1


_view = viewer(Memory)


@kernel
def dig(heights, tiles, n, deeper):
    """Step n's change: a sample somewhere goes up or down by a few millimetres, seldom by metres."""
    a = (n * 7919) % heights.size
    i, j = a // heights.shape[1], a % heights.shape[1]
    by = 0.0137 * ((n % 5) - 2) - deeper
    if n % 97 == 0:
        by = 4.2 if heights[i, j] < 0.0 else -4.2
    heights[i, j] += by
    tiles[i // 16, j // 16] += 1
    return i, j


@step_function
def step(self, n, params, inputs, outputs, poses):
    m = _view(self)
    i, j = dig(m.heights, m.tiles, n, params[0])
    m.arrow_stamp[0] += 1
    m.arrow_count[0] = (n // 100) % (m.at.shape[0] + 1)
    for k in range(m.arrow_count[0]):
        m.at[k, 0], m.at[k, 1], m.at[k, 2] = i, j, k
        m.force[k, 0], m.force[k, 1], m.force[k, 2] = 0.0, 0.0, 1000.0 + k
    m.arrow_stamp[0] += 1
    if n % 50 == 0:
        stone = (n // 50) % m.poses.shape[0]
        m.poses[stone, 2] += 0.01
        m.prop_stamps[stone] += 1
    m.state[0] += inputs[0] * 1e-3
    outputs[0] = m.state[0]
    outputs[1] = n + 1.0
    outputs[2] = inputs[1]
    for k in range(7):
        poses[k] = 0.0
    poses[0], poses[2], poses[3] = m.state[0], 0.001 * n, 1.0
    return 0


@step_function
def reset(self, n, params, inputs, outputs, poses):
    m = _view(self)
    m.heights[:, :] = 0.0
    m.tiles[:, :] += 1
    m.state[0] = 0.0
    for k in range(3):
        outputs[k] = 0.0
    for k in range(7):
        poses[k] = 0.0
    poses[3] = 1.0
    return 0


def heights_after(steps: int, nx: int = NX, ny: int = NY) -> np.ndarray:
    """The ground after so many steps."""
    heights, tiles = np.zeros((nx, ny)), np.zeros(((nx + 15) // 16, (ny + 15) // 16), np.int64)
    for n in range(steps):
        dig(heights, tiles, n, 0.0)
    return heights


def create(dt: float, *, nx: int = NX, ny: int = NY) -> Plant:
    shape = (-(-nx // TILE), -(-ny // TILE))
    poses = np.zeros((STONES, 7))
    poses[:, 3] = 1.0
    memory = Memory(
        heights=np.zeros((nx, ny)),
        tiles=np.zeros(shape, np.int64),
        arrow_stamp=np.zeros(1, np.int64),
        arrow_count=np.zeros(1, np.int64),
        at=np.zeros((ARROWS, 3)),
        force=np.zeros((ARROWS, 3)),
        poses=poses,
        prop_stamps=np.zeros(STONES, np.int64),
        state=np.zeros(1),
    )
    record = Struct(memory)
    names = tuple(f"stone{k}" for k in range(STONES))
    return Plant(
        "dig",
        dt,
        inputs=(Signal("dig.lift", "m/s", low=-10, high=10), Signal("dig.stick", "1", low=-1, high=1)),
        outputs=(Signal("dig.height", "m"), Signal("dig.count"), Signal("dig.held", "1")),
        tasks=(Task("dig", step.address, record.address),),
        parameters=(Signal("dig.deeper", "m", default=0.0, low=-1, high=1, doc="added to each change"),),
        bodies=("bucket",),
        reset=(reset.address, record.address),
        scene=(
            entry("bucket", "box", (0.5, 0.5, 0.5)),
            *(entry(name, "sphere", (0.1,)) for name in names),
        ),
        grids=(Grid("ground", (-3.0, -2.0, 0.5), (0.1, 0.1), memory.heights, memory.tiles),),
        arrows=Arrows(memory.arrow_stamp, memory.arrow_count, memory.at, memory.force),
        props=Props(names, memory.poses, memory.prop_stamps),
        owner=record,
    )
