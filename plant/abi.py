"""The ABI of a plant: one C function over flat buffers, called by whoever steps it.

    int64_t step(void *self, int64_t step, const double *params,
                 const double *inputs, double *outputs, double *poses);

`self` is whatever the plant wants back, `step` counts plant steps from 0, `poses` holds 7 numbers per body
(position [m], quaternion w x y z). The answer is 0, or a status that trips the node. `reset` has the same
shape: it restores the initial state and fills outputs and poses. A plant from C or Rust gives its addresses as
they are (`plant/hilnode_plant.h`); one written in numba uses `step_function` and `hilnode.core.struct`:

    class Pendulum(NamedTuple):
        state: F1

    view = viewer(Pendulum)                       # how the step gets its arrays back from the pointer

    @step_function
    def step(self, n, params, inputs, outputs, poses):
        p = view(self)
        p.state[0] += ...
        return OK
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from hilnode.core.jit import exported
from hilnode.core.signals import Signal, check_unique

_DOUBLES = types.CPointer(types.float64)
STEP = types.int64(types.int64, types.int64, _DOUBLES, _DOUBLES, _DOUBLES, _DOUBLES)
"""The step's signature; `self` travels as an integer address."""


class Status(IntEnum):
    """What a step returns. Plants may add their own codes from 100 on."""

    OK = 0
    NOT_FINITE = 1  # a state became NaN or infinite
    DIVERGED = 2  # a state left every plausible range
    SOLVER_FAILED = 3  # no solution within the iteration limit


OK, NOT_FINITE, DIVERGED, SOLVER_FAILED = (int(s) for s in Status)


class Task(NamedTuple):
    """A step function that runs on every k-th plant step, in the order of the list."""

    name: str
    address: int
    self_address: int
    every: int = 1
    phase: int = 0


class Grid(NamedTuple):
    """Ground that changes while running, for displays: heights on a grid, which hot code writes and others read.

    A tile is `TILE` x `TILE` samples; its stamp counts up after one of them has changed.
    """

    name: str
    corner: tuple[float, float, float]  # [m] where sample (0, 0) is with height 0
    spacing: tuple[float, float]  # [m] along x, the first index, and y
    heights: NDArray[np.float64]  # [nx, ny] [m]
    stamps: NDArray[np.int64]  # [ceil(nx / TILE), ceil(ny / TILE)]
    colour: tuple[float, float, float] = (0.55, 0.45, 0.33)
    rim: tuple[float, float, float] | None = None  # colour of what grows around it, which it fades to
    floor: tuple[float, float, float] | None = None  # colour of what it lies on, where its height is 0
    body: str = ""  # a prop: `corner` is then measured from where that is, and there is no grid until it is somewhere


class Arrows(NamedTuple):
    """Forces at points, for displays. `stamp` is odd while hot code writes, and counts up by two each time."""

    stamp: NDArray[np.int64]  # [1]
    count: NDArray[np.int64]  # type: ignore[assignment]  # [1] how many there are now
    at: NDArray[np.float64]  # [most, 3] [m]
    force: NDArray[np.float64]  # [most, 3] [N]


class Collisions(NamedTuple):
    """Bodies that began to push each other, for events: a ring that hot code writes. Entry k is at k modulo its length.

    The loop reads it after each step, in its own thread.
    """

    count: NDArray[np.int64]  # type: ignore[assignment]  # [1] entries so far
    body: NDArray[np.int64]  # [n, 2] places in `Plant.bodies`; -1 = the ground
    point: NDArray[np.float64]  # [n, 3] where [m]
    impulse: NDArray[np.float64]  # [n] how hard [N s]
    least: float = 0.0  # [N s] what is softer is not told


class Props(NamedTuple):
    """Bodies that rarely move, for displays: too many for every row. Their entries in `Plant.scene` name them."""

    names: tuple[str, ...]
    poses: NDArray[np.float64]  # [n, 7] position [m] and quaternion w x y z
    stamps: NDArray[np.int64]  # [n] counts up after its pose has changed


TILE = 16
"""Samples along each side of a tile of a Grid."""


@dataclass(frozen=True)
class Plant:
    """A compiled plant as the node sees it: names for people, addresses for the tick."""

    name: str
    dt: float  # [s] the step it was compiled for
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    tasks: tuple[Task, ...]
    parameters: tuple[Signal, ...] = ()
    bodies: tuple[str, ...] = ()
    reset: tuple[int, int] = (0, 0)  # address of the reset function and its self; 0 = none
    status: dict[int, str] = field(default_factory=dict)  # sentences for status codes of its own
    scene: tuple[dict[str, Any], ...] = ()  # what its bodies look like: entries of plant/visual/entries.py
    grids: tuple[Grid, ...] = ()  # ground that changes
    arrows: Arrows | None = None  # contact forces
    props: Props | None = None  # bodies that rarely move
    collisions: Collisions | None = None  # what becomes events
    owner: object = None  # keeps the memory behind the addresses alive

    def __post_init__(self) -> None:
        check_unique((*self.inputs, *self.outputs), f"plant {self.name}")
        check_unique(self.parameters, f"plant {self.name}, parameters")
        if not self.tasks:
            raise ValueError(f"plant {self.name} has no task to run")
        for task in self.tasks:
            if not 0 <= task.phase < task.every:
                raise ValueError(
                    f"plant {self.name}, task {task.name}: phase {task.phase} must lie in 0 .. {task.every - 1}"
                )

    def explain(self, status: int) -> str:
        """A sentence for a status code."""
        known = {
            NOT_FINITE: "a state became NaN or infinite",
            DIVERGED: "the state left every plausible range",
            SOLVER_FAILED: "the solver found no solution",
        }
        return self.status.get(status) or known.get(status) or f"plant status {status}"


def step_function(function: Callable[..., int]) -> Any:
    """Compile `function(self, step, params, inputs, outputs, poses) -> int` to the plant ABI.

    Its `.address` is the pointer.
    """
    return exported(STEP)(function)
