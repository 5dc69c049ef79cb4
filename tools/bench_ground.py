"""A plant for benchmarks of the page: an excavator's worth of bodies and signals, and a bucket that digs.

The bucket goes round in the ground, takes a layer of some millimetres with it and heaps it up behind itself, so that
some tiles change all the time, as they do under a machine at work.
"""

from typing import NamedTuple

import numpy as np

from hilnode.core.signals import Signal
from hilnode.core.struct import F1, F2, I1, I2, Struct, viewer
from plant.abi import OK, TILE, Arrows, Grid, Plant, Props, Task, step_function

SIGNALS, BODIES, SIDE, ARROWS, STONES = 40, 20, 256, 40, 50
BUCKET = 6  # samples on each side of its middle


class Memory(NamedTuple):
    """All that the step writes."""

    heights: F2
    tiles: I2
    stamp: I1
    count: I1
    at: F2
    force: F2
    poses: F2
    moved: I1
    carried: F1


_view = viewer(Memory)


@step_function
def _dig(self, n, params, inputs, outputs, poses):
    m = _view(self)
    angle = 0.5e-3 * n
    x, y = 128.0 + 60.0 * np.cos(angle), 128.0 + 40.0 * np.sin(angle)
    i, j = int(x), int(y)
    if n % 4 == 0:  # a soil's own rhythm
        for a in range(i - BUCKET, i + BUCKET + 1):
            for b in range(j - BUCKET, j + BUCKET + 1):
                taken = 0.0004 * (1.0 + 0.5 * np.sin(a + 0.7 * b))
                m.heights[a, b] -= taken
                m.carried[0] += taken
                m.tiles[a // 16, b // 16] += 1
        for a in range(i - BUCKET - 8, i - BUCKET):
            for b in range(j - 4, j + 5):
                m.heights[a, b] += m.carried[0] / 72.0
                m.tiles[a // 16, b // 16] += 1
        m.carried[0] = 0.0
    m.stamp[0] += 1
    m.count[0] = ARROWS // 2 + n % (ARROWS // 2)
    for k in range(m.count[0]):
        m.at[k, 0], m.at[k, 1], m.at[k, 2] = x * 0.1, y * 0.1, 0.01 * k
        m.force[k, 2] = 1000.0 + k
    m.stamp[0] += 1
    if n % 20 == 0:
        stone = (n // 20) % STONES
        m.poses[stone, 2] = np.sin(angle)
        m.moved[stone] += 1
    for k in range(SIGNALS):
        outputs[k] = np.sin(angle + k)
    for k in range(BODIES):
        poses[7 * k], poses[7 * k + 1], poses[7 * k + 2], poses[7 * k + 3] = x * 0.1, y * 0.1, 0.1 * k, 1.0
    return OK


def digger(dt: float) -> Plant:
    """40 inputs and 40 outputs, 20 bodies, ground of 256 x 256 samples, arrows and stones."""
    tiles = np.zeros((SIDE // TILE, SIDE // TILE), np.int64)
    poses = np.zeros((STONES, 7))
    poses[:, 3] = 1.0
    memory = Memory(
        heights=np.zeros((SIDE, SIDE)),
        tiles=tiles,
        stamp=np.zeros(1, np.int64),
        count=np.zeros(1, np.int64),
        at=np.zeros((ARROWS, 3)),
        force=np.zeros((ARROWS, 3)),
        poses=poses,
        moved=np.zeros(STONES, np.int64),
        carried=np.zeros(1),
    )
    record = Struct(memory)
    return Plant(
        "digger",
        dt,
        tuple(Signal(f"digger.in.{k}") for k in range(SIGNALS)),
        tuple(Signal(f"digger.out.{k}") for k in range(SIGNALS)),
        (Task("digger", _dig.address, record.address),),
        bodies=tuple(f"digger.body{k}" for k in range(BODIES)),
        grids=(Grid("ground", (0.0, 0.0, 0.0), (0.1, 0.1), memory.heights, memory.tiles),),
        arrows=Arrows(memory.stamp, memory.count, memory.at, memory.force),
        props=Props(tuple(f"stone{k}" for k in range(STONES)), memory.poses, memory.moved),
        owner=record,
    )
