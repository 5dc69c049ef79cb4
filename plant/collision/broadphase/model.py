"""The arrays of the broad phase, constant ones and those kept between steps, and how they are built from shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hilnode.core.struct import I1, viewer
from plant.codes import BodyKind
from plant.collision.broadphase.dynamic_tree import Tree, new_tree
from plant.collision.broadphase.pairs import DIGITS, exclude
from plant.collision.broadphase.static_tree import Scenery, build_scenery
from plant.collision.model import Kind, Placed, Shapes

PLANE, STATIC = int(Kind.PLANE), int(BodyKind.STATIC)
COUNT, STALE, FLIP = 0, 1, 2  # places in BroadPhase.state
NEAR_SCENERY = 65536  # candidates among the scenery, at most, unless more are asked for
AWAKE, IDLE, DISABLED = 0, 1, 2  # of BroadPhase.rest: a pair needs a sum below 2


class BroadPhase(NamedTuple):
    """What the broad phase knows, and what it keeps between steps."""

    margin: float  # [m] boxes this near make a pair
    slack: float  # a fat box is larger on each side by this part of the mean side of the tight one
    ahead: float  # [s] of motion that a fat box holds
    bits: int  # of a shape's number in a key
    bodies: int
    role: I1  # [s] BodyKind of its body; the ground is static
    shape: I1  # [leaf] the moving shapes
    plane: I1  # [p] planes, on whatever body
    excluded: I1  # keys of pairs of bodies, sorted
    tree: Tree
    scenery: Scenery
    rest: I1  # [s] AWAKE, IDLE (asleep or static) or DISABLED
    changed: I1  # [s] 1 = its candidates are to be found again
    moved: I1  # [leaf] those that changed in this step
    found: I1  # of a search
    key_a: I1  # [room] candidates, sorted: in one of these two, by turns
    key_b: I1
    key_new: I1  # [room]
    table: I1  # of the sort
    state: I1  # [3] number of candidates; 1 = find all again; which list holds them


view_broad_phase = viewer(BroadPhase)


def build_broad_phase(
    shapes: Shapes,
    placed: Placed,
    body_kind: np.ndarray,
    *,
    excluded: Iterable[tuple[int, int]] = (),
    margin: float = 0.01,
    slack: float = 0.1,
    ahead: float = 0.02,
    scenery: str = "tree",
    room: int | None = None,
) -> BroadPhase:
    """The broad phase of these shapes, of which the static ones must have been placed.

    `body_kind` are BodyKinds; `excluded` pairs of bodies never meet (-1 is the ground); `room` is for candidates, of
    which there are two to three times as many as pairs: by default 24 for each moving shape, and for a few movers as
    many as there is scenery, or NEAR_SCENERY in all.
    """
    if not (margin >= 0 and slack > 0 and ahead >= 0):
        raise ValueError(f"margin {margin} m, slack {slack}, ahead {ahead} s: none may be negative, slack not zero")
    count, bodies = len(shapes.kind), len(body_kind)
    role = np.where(shapes.body < 0, STATIC, np.append(body_kind, STATIC)[shapes.body]).astype(np.int64)
    is_plane = shapes.kind == PLANE
    still = np.flatnonzero((role == STATIC) & ~is_plane)
    moving = np.flatnonzero((role != STATIC) & ~is_plane)
    planes = np.flatnonzero(is_plane)
    loose = int((role[planes] != STATIC).sum())
    if room is None:
        room = 64 + len(moving) * (24 + len(planes)) + loose * count + min(len(moving) * len(still), NEAR_SCENERY)
    boxes = np.hstack((placed.low, placed.high))[still]
    if not np.isfinite(boxes).all():
        bad = still[~np.isfinite(boxes).all(axis=1)]
        raise ValueError(
            f"static shapes {bad.tolist()} have no finite place: place them before building the broad phase"
        )
    return BroadPhase(
        margin,
        slack,
        ahead,
        bits=max(1, count.bit_length()),
        bodies=bodies,
        role=role,
        shape=moving,
        plane=planes,
        excluded=exclude(bodies, excluded),
        tree=new_tree(len(moving)),
        scenery=build_scenery(boxes, still, scenery),
        rest=np.where(role == STATIC, IDLE, AWAKE).astype(np.int64),
        changed=np.zeros(count, np.int64),
        moved=np.zeros(len(moving), np.int64),
        found=np.zeros(max(len(moving), len(still)), np.int64),
        key_a=np.zeros(room, np.int64),
        key_b=np.zeros(room, np.int64),
        key_new=np.zeros(room, np.int64),
        table=np.zeros(DIGITS, np.int64),
        state=np.array([0, 1, 0]),
    )
