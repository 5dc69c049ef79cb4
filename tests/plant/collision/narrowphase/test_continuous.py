"""The contact points of every pair of kinds move continuously when the shapes do.

Pairs are put down anywhere (as in test_every_pair.py) and the first is moved on along a smooth path, in steps so small
that no point of it goes further than a thousandth of the smaller shape. After each step is asked:

depth     The deepest depth has changed by no more than the motion. (Signed distance and depth of penetration do not
          change faster than that; a gap beyond the margin counts as the margin.)
middle    The mean of the points, weighed by how much deeper than the margin each is, has moved by no more than FAST
          motions times the ratio of size and margin: a point that comes or goes at the margin has no weight, and where
          two faces are nearly parallel the deepest place wanders over all of them while they turn by the ratio of
          margin and size.

Exceptions, by the share of the steps in which they may occur (`jumps_allowed`, `leaps_allowed`):

solids and meshes on meshes, solids on fields
          Deep in a surface of triangles several ways out are as short, and which face holds a point changes from one
          to the other: the depth jumps.
rings, capsules on fields
          A second minimum of the distance along the core comes or goes at once.
middles   A face that is clipped against another instead of the other way round has other corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from pair_draws import Places, draw
from pair_judge import Judge, Pair
from scipy.spatial.transform import Rotation

from plant.collision.model import Kind
from plant.collision.pairs.table import known_pairs

PATHS, STEPS = 250, 40
STEP = 1e-3  # of the smaller shape: the motion of a step
MARGIN = 0.1  # of the smaller shape
JUMP = 1e-5  # of the smaller shape: what counts as rounding
FAST = 20.0
SOLID = (Kind.BOX, Kind.CYLINDER, Kind.CONE, Kind.HULL)


@dataclass
class Walk:
    """What happened in the steps [paths, steps] of many paths."""

    judge: Judge
    places: Places
    motion: np.ndarray  # of a step [paths]
    small: np.ndarray  # size of the smaller shape [paths]
    scale: np.ndarray  # of both [paths]
    depth: np.ndarray  # [paths, steps + 1]
    middle: np.ndarray  # [paths, steps + 1, 3] NaN where there are no points
    count: np.ndarray  # [paths, steps + 1]

    @property
    def jump(self) -> np.ndarray:
        """By how much more than the motion the depth changes [paths, steps]."""
        return np.abs(np.diff(self.depth, axis=1)) - self.motion[:, None]

    @property
    def leap(self) -> np.ndarray:
        """How far the middle goes, in motions times the ratio of size and margin; 0 where there is none."""
        way = np.linalg.norm(np.diff(self.middle, axis=1), axis=2)
        return np.nan_to_num(way / (self.motion * self.scale / (MARGIN * self.small))[:, None])


@cache
def walk(pair: Pair, seed: int) -> Walk:
    judge, rng = Judge(pair, seed), np.random.default_rng([seed, 1])
    start = draw(*judge.families, rng, PATHS, lambda places: judge.truth(places, 24))
    bounds = [np.where(f.graph | np.isinf(f.bound), np.inf, f.bound) for f in judge.families]
    each = np.stack([b[w] for b, w in zip(bounds, start.which.T, strict=True)])
    small, scale = each.min(0), judge.scale(start)
    moving = np.where(np.isinf(each[0]), 1, 0)  # of ground and something the something
    reach = np.take_along_axis(each, moving[None], 0)[0]
    motion = STEP * small
    way, spin = rng.normal(size=(PATHS, 3)), rng.normal(size=(PATHS, 3))
    share = rng.uniform(0.0, 1.0, PATHS)
    way *= (share * motion / np.linalg.norm(way, axis=1))[:, None]
    spin *= ((1 - share) * motion / reach / np.linalg.norm(spin, axis=1))[:, None]
    rows = np.repeat(np.arange(PATHS), STEPS + 1)
    t = np.tile(np.arange(STEPS + 1), PATHS)
    places = start.taken(rows)
    turn = Rotation.from_rotvec(spin[rows] * t[:, None]).as_matrix()
    who = moving[rows]
    all_ = np.arange(len(rows))
    places.pos[all_, who] += way[rows] * t[:, None]
    places.rot[all_, who] = turn @ places.rot[all_, who]
    places = places._replace(margin=MARGIN * small[rows])
    found = judge.table.points(places)
    weight = found.depth + places.margin[found.pair]
    total = np.bincount(found.pair, weight, len(rows))
    with np.errstate(invalid="ignore"):
        middle = np.stack([np.bincount(found.pair, weight * found.point[:, c], len(rows)) for c in range(3)], 1)
        middle /= total[:, None]
    depth = np.maximum(found.depths, -places.margin)
    shape = PATHS, STEPS + 1
    return Walk(
        judge,
        places,
        motion,
        small,
        scale,
        depth.reshape(shape),
        middle.reshape(*shape, 3),
        found.count.reshape(shape),
    )


def jumps_allowed(pair: Pair) -> float:
    """Share of the steps in which the depth may jump."""
    one, other = pair
    if other == Kind.MESH and (one in SOLID or one == Kind.MESH):
        return 0.015
    if other == Kind.FIELD and (one in SOLID or one in (Kind.CAPSULE, Kind.LINK)):
        return 0.002
    return 5e-4 if other == Kind.MESH and one in (Kind.TORUS, Kind.LINK) else 0.0


def leaps_allowed(pair: Pair) -> float:
    """Share of the steps in which the middle may leap."""
    if Kind.TORUS in pair or Kind.LINK in pair:
        return 0.005
    return 0.001 if pair[0] != Kind.SPHERE else 0.0


def names(pair: Pair) -> str:
    return f"{pair[0].name.lower()}-{pair[1].name.lower()}"


@pytest.mark.parametrize("pair", sorted(known_pairs()), ids=names)
def test_the_depth_changes_no_faster_than_the_places(pair: Pair) -> None:
    seen = walk(pair, 3)
    assert (seen.count > 0).mean() > 0.5
    jumped = seen.jump > JUMP * seen.small[:, None]
    path, step = np.unravel_index(seen.jump.argmax(), jumped.shape)
    told = f"depth {seen.depth[path, step]} to {seen.depth[path, step + 1]} in {seen.motion[path]} on path {path}"
    assert jumped.mean() <= jumps_allowed(pair), f"{jumped.sum()} jumps, the worst from {told}"


@pytest.mark.parametrize("pair", sorted(known_pairs()), ids=names)
def test_the_middle_of_the_points_moves_no_faster_than_it_must(pair: Pair) -> None:
    leap = walk(pair, 3).leap
    assert (leap > FAST).mean() <= leaps_allowed(pair), f"{(leap > FAST).sum()} leaps of up to {leap.max():.0f}"
