"""Scenes for the broad phase: shapes of all kinds on bodies of all kinds, moved by hand."""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.broadphase.find_pairs import find_pairs
from plant.collision.broadphase.model import STALE, BroadPhase, build_broad_phase, view_broad_phase
from plant.collision.broadphase.pairs import Pairs, new_pairs, view_pairs
from plant.collision.model import Kind, Placed, Shapes, new_placed, view_placed, view_shapes
from plant.collision.transforms import place_ground, place_shapes
from plant.model import BodyKind


@kernel
def place_all(shapes, placed, pos, rot):
    shape, place = view_shapes(shapes), view_placed(placed)
    place_ground(shape, place)
    place_shapes(shape, place, pos, rot)


@kernel
def step_broad_phase(shapes, placed, broad, pairs, pos, rot, vel, asleep, count):
    """Place and find, `count` times."""
    shape, place, left_out = view_shapes(shapes), view_placed(placed), 0
    for _ in range(count):
        place_shapes(shape, place, pos, rot)
        left_out = find_pairs(view_broad_phase(broad), shape, place, vel, asleep, view_pairs(pairs))
    return left_out


def make_shapes(kind: np.ndarray, body: np.ndarray, size: np.ndarray, rng: np.random.Generator | None = None) -> Shapes:
    """Shapes in the middle of their bodies, or somewhere about it if there is an `rng`."""
    n = len(kind)
    whole = [np.full(n, value, np.int64) for value in (0, 1, 1, -1, 1)]
    material, group, mask, asset, enabled = whole
    at, turn = np.zeros((n, 3)), np.tile(np.eye(3), (n, 1, 1))
    if rng is not None:
        at, turn = rng.normal(size=(n, 3)) * 0.1, Rotation.random(n, random_state=rng).as_matrix()
    return Shapes(
        kind.astype(np.int64),
        body.astype(np.int64),
        at,
        turn,
        size.astype(np.float64),
        np.where(kind == Kind.PLANE, np.inf, np.linalg.norm(size[:, :3], axis=1) * 2),
        material,
        group,
        mask,
        asset,
        enabled,
    )


@dataclass
class Scene:
    """Shapes on bodies that a test moves as it likes."""

    shapes: Shapes
    body_kind: np.ndarray
    pos: np.ndarray
    rot: np.ndarray
    excluded: list[tuple[int, int]] = field(default_factory=list)
    margin: float = 0.02
    scenery: str = "tree"
    room: int | None = None
    listed: int = 50_000

    def __post_init__(self) -> None:
        self.vel = np.zeros((len(self.pos), 6))
        self.asleep = np.zeros(len(self.pos), np.int64)
        self.placed: Placed = new_placed(len(self.shapes.kind))
        self.records = [Struct(self.shapes), Struct(self.placed)]
        place_all(*self.addresses(), self.pos, self.rot)
        self.broad: BroadPhase = build_broad_phase(
            self.shapes,
            self.placed,
            self.body_kind,
            excluded=self.excluded,
            margin=self.margin,
            scenery=self.scenery,
            room=self.room,
        )
        self.pairs: Pairs = new_pairs(self.listed)
        self.records += [Struct(self.broad), Struct(self.pairs)]

    def addresses(self) -> list[int]:
        return [record.address for record in self.records]

    def step(self, count: int = 1) -> int:
        return int(step_broad_phase(*self.addresses(), self.pos, self.rot, self.vel, self.asleep, count))

    def found(self) -> np.ndarray:
        return self.pairs.pair[: self.pairs.count[0]]

    def forget(self) -> None:
        self.broad.state[STALE] = 1

    def expected(self) -> np.ndarray:
        """All pairs by trying every two shapes, in the order that is asked for."""
        s, p = self.shapes, self.placed
        n = len(s.kind)
        kind_of = np.append(self.body_kind, BodyKind.STATIC)[s.body]
        idle = (kind_of == BodyKind.STATIC) | (np.append(self.asleep, 0)[s.body] != 0)
        plane = s.kind == Kind.PLANE
        i, j = np.triu_indices(n, 1)
        meets = (s.body[i] != s.body[j]) & ((kind_of[i] == BodyKind.DYNAMIC) | (kind_of[j] == BodyKind.DYNAMIC))
        meets &= ((s.group[i] & s.mask[j]) != 0) & ((s.group[j] & s.mask[i]) != 0)
        meets &= (s.enabled[i] != 0) & (s.enabled[j] != 0) & ~(idle[i] & idle[j]) & ~(plane[i] & plane[j])
        i, j = i[meets], j[meets]
        apart = {frozenset(pair) for pair in self.excluded}
        near = (np.maximum(p.low[i] - p.high[j], p.low[j] - p.high[i]) <= self.margin).all(axis=1)
        flat = np.flatnonzero(plane[i] | plane[j])
        a, b = np.where(plane[i], i, j)[flat], np.where(plane[i], j, i)[flat]
        sides = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T[:, None]  # the eight corners
        corners = np.where(sides, p.high[b], p.low[b])
        near[flat] = ((corners - p.pos[a]) * p.rot[a][:, :, 2]).sum(axis=2).min(axis=0) <= self.margin
        pairs = []
        for a, b in zip(i[near], j[near], strict=True):
            if frozenset((s.body[a], s.body[b])) in apart:
                continue
            pairs.append((a, b) if (s.kind[a], a) <= (s.kind[b], b) else (b, a))
        return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def random_scene(seed: int, bodies: int, scenery: str = "tree", width: float = 4.0, **options: object) -> Scene:
    """Everything at once: all kinds of shapes and bodies, ground, planes fixed and moving, groups, excluded pairs."""
    rng = np.random.default_rng(seed)
    shapes = 2 * bodies
    body = rng.integers(-1, bodies, shapes)
    body[: shapes // 8] = -1
    kind = rng.choice([k for k in Kind if k != Kind.PLANE], shapes)
    kind[:2] = kind[-1] = Kind.PLANE  # two of the ground, one on a body
    body[-1] = bodies - 1
    body_kind = rng.choice([0, 0, 0, 0, 1, 2], bodies)
    body_kind[-1] = BodyKind.DYNAMIC
    made = make_shapes(kind, body, rng.uniform(0.05, 0.3, (shapes, 4)), rng)
    ground = body < 0
    made.at[ground] = rng.uniform(0, width, (ground.sum(), 3))
    made.at[:2] = 0.0, 0.0, 0.2
    made.group[:] = rng.choice([1, 2, 3], shapes)
    made.mask[:] = rng.choice([1, 3, 3, 3], shapes)
    excluded = [(int(a), int(b)) for a, b in rng.integers(-1, bodies, (bodies, 2))]
    pos, rot = rng.uniform(0, width, (bodies, 3)), Rotation.random(bodies, random_state=rng).as_matrix()
    return Scene(made, body_kind, pos, rot, excluded, scenery=scenery, **options)  # type: ignore[arg-type]
