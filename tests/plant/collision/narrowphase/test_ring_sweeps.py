"""Many random tori and links: no place on a core is nearer to the other shape than the deepest point says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from primitive_pairs import Body, Found, Kind
from ring_cases import KINDS, MARGIN, random_pair, rings, small_pair, walked_last

from plant.collision.narrowphase.ring import BETTER

AROUND = np.linspace(0, 1, 512, endpoint=False)
CHUNK = 1000  # pairs at a time


def names(kinds: tuple[Kind, Kind]) -> str:
    return "_".join(k.name.lower() for k in kinds)


EACH = pytest.mark.parametrize("kinds", KINDS, ids=names)


def gap(kind: Kind, size: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Signed distances [n, m] of points q [n, m, 3] from shapes of a kind with sizes [n, 3], in closed form."""
    a, b, c = (size[:, k, None] for k in range(3))
    x, y, z = np.moveaxis(q, -1, 0)
    rho = np.hypot(x, y)
    if kind == Kind.PLANE:
        return z
    if kind <= Kind.CAPSULE:
        return np.hypot(rho, np.maximum(np.abs(z) - (b if kind == Kind.CAPSULE else 0), 0)) - a
    if kind >= Kind.TORUS:
        half, bend, wire = (0 * a, a, b) if kind == Kind.TORUS else (a, b, c)
        return np.hypot(np.hypot(np.maximum(np.abs(x) - half, 0), y) - bend, z) - wire
    if kind == Kind.CONE:
        slant = np.hypot(a, 2 * b)
        along = np.clip(((a - rho) * a + (z + b) * 2 * b) / slant, 0, slant)
        side = np.hypot(rho - a + along * a / slant, z + b - along * 2 * b / slant)
        base = np.hypot(np.maximum(rho - a, 0), z + b)
        inside = (z > -b) & ((rho - a) * 2 * b + (z + b) * a < 0)
        return np.where(inside, -1, 1) * np.minimum(side, base)
    d = [np.abs(x) - a, np.abs(y) - b, np.abs(z) - c] if kind == Kind.BOX else [rho - a, np.abs(z) - b]
    return np.sqrt(sum(np.maximum(e, 0) ** 2 for e in d)) + np.minimum(np.max(d, axis=0), 0)


def outline(kind: Kind, size: np.ndarray) -> np.ndarray:
    """Points [n, m, 3] all around cores, in their own frames."""
    quarter, part = np.divmod(4 * AROUND, 1)
    if kind == Kind.TORUS:
        angle = 2 * np.pi * AROUND
        return np.stack([size[:, :1] * np.cos(angle), size[:, :1] * np.sin(angle), 0 * size[:, :1] * angle], -1)
    half, bend, angle = size[:, :1], size[:, 1:2], np.pi * (part - 0.5)
    sign, turns = np.where(quarter < 2, 1, -1), quarter % 2 == 0
    x = np.where(turns, half + bend * np.cos(angle), half * (1 - 2 * part))
    y = np.where(turns, bend * np.sin(angle), bend)
    return np.stack([sign * x, sign * y, 0 * x], -1)


def seen(point: np.ndarray, at: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Points [n, m, 3] of the world in the frames of shapes."""
    return (point - at[:, None]) @ turn


def check(kinds: tuple[Kind, Kind], two: list[tuple[Body, Body]], every: list[Found]) -> int:
    """The depth is too small if a sample is nearer, and too large if the core is not as near there."""
    size = np.array([[[*body.size, 0, 0, 0][:3] for body in pair] for pair in two], float)
    at = np.array([[body.at for body in pair] for pair in two], float)
    turn = np.array([[body.turn for body in pair] for pair in two], float)
    wire = size[:, 1, 1 if kinds[1] == Kind.TORUS else 2]
    core = outline(kinds[1], size[:, 1]) @ turn[:, 1].transpose(0, 2, 1) + at[:, 1, None]
    nearest = gap(kinds[0], size[:, 0], seen(core, at[:, 0], turn[:, 0])).min(1) - wire
    hit = np.array([found.count > 0 for found in every])
    assert hit[nearest < MARGIN - 1e-9].all()
    found = [f for f in every if f.count]
    top = [int(f.depth.argmax()) for f in found]
    depth, size, at, turn, wire = np.array([f.deepest for f in found]), size[hit], at[hit], turn[hit], wire[hit]
    trifle = BETTER * (size[:, 1, 0] + (size[:, 1, 1] if kinds[1] == Kind.LINK else 0.0))
    lack = -nearest[hit] - depth
    assert (lack <= trifle + 1e-9).all()
    way = -np.array([f.normal[k] for f, k in zip(found, top, strict=True)])
    point = np.array([f.point[k] for f, k in zip(found, top, strict=True)])
    place = (point + (wire - 0.5 * depth)[:, None] * way)[:, None]
    on_core = gap(kinds[1], size[:, 1], seen(place, at[:, 1], turn[:, 1]))[:, 0] + wire
    assert np.abs(on_core).max() < 1e-7
    from_other = gap(kinds[0], size[:, 0], seen(place, at[:, 0], turn[:, 0]))[:, 0]
    assert np.abs(from_other - wire + depth).max() < 1e-7
    return len(found)


def sweep(kinds: tuple[Kind, Kind], count: int, seed: int, draw: Any = random_pair) -> None:
    rng, touched = np.random.default_rng(seed), 0
    for _ in range(count // CHUNK):
        two = [draw(kinds, rng) for _ in range(CHUNK)]
        laid = [walked_last(i, j, found) for (i, j), found in zip(two, rings(two, MARGIN), strict=True)]
        for order in dict.fromkeys((kinds, kinds[::-1])):
            some = [(i, j, found) for i, j, found in laid if (i.kind, j.kind) == order]
            touched += check(order, [(i, j) for i, j, _ in some], [found for _, _, found in some]) if some else 0
    assert touched > 0.3 * count


@EACH
def test_no_place_on_the_core_is_nearer_than_the_deepest_point(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 2000, 7)


@pytest.mark.parametrize("kinds", [k for k in KINDS if k[0] != Kind.PLANE], ids=names)
def test_a_shape_smaller_than_a_step_along_the_core_is_not_lost(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 1000, 9, small_pair)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@EACH
def test_no_place_on_many_cores_is_nearer_than_the_deepest_point(kinds: tuple[Kind, Kind]) -> None:
    sweep(kinds, 100_000, 8)
