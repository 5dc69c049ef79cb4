"""Tori and links on hulls, meshes and height fields: distances by coal along their cores, and how they lie.

To coal a mesh is a surface, so only rings whose core is outside can be compared. Sampled distances along the core are
never nearer than the deepest point says, and the deepest point's own place on the core is as near as it says.
"""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest
import trimesh
from mesh_scenes import block, grid, hills
from placed_pairs import Pair, field_mesh, in_coal
from primitive_pairs import Found
from scipy.spatial.transform import Rotation

from plant.collision.model import Kind
from plant.collision.narrowphase.ring import BETTER, PLACES
from plant.collision.shape.shapes import Field, Hull, Link, Mesh, Shape, Torus

RINGS = {"torus": Torus(0.12, 0.03), "link": Link(0.3, 0.08, 0.02)}
MARGIN = 0.03
SAMPLES = 64


def rock() -> Mesh:
    """A rough ball of 1,280 triangles, with many hollow edges."""
    ball, rng = trimesh.creation.icosphere(subdivisions=3, radius=0.18), np.random.default_rng(8)
    return Mesh(np.array(ball.vertices) * (1 + 0.02 * rng.standard_normal((642, 1))), np.array(ball.faces))


OTHERS: dict[str, Any] = {
    "tetrahedron": Hull([(0.2, 0, 0), (-0.1, 0.15, 0), (-0.1, -0.15, 0.02), (0, 0, 0.2)]),
    "cut gem": Hull(np.random.default_rng(4).normal(size=(60, 3)) * (0.1, 0.07, 0.05)),
    "rock": rock(),
    "block": Mesh(*block(0.12, 0.1, 0.08)),
    "hilly mesh": Mesh(*grid(16, 1.0, lambda x, y: 0.3 * hills(2 * x, 2 * y))),
    "field": Field(0.03 * np.random.default_rng(3).standard_normal((14, 14)), 0.15),
}


def half_and_bend(ring: Shape) -> tuple[float, float]:
    return (0.0, ring.sizes()[0]) if ring.kind == Kind.TORUS else (ring.sizes()[0], ring.sizes()[1])


def wire_of(ring: Shape) -> float:
    return ring.sizes()[1 if ring.kind == Kind.TORUS else 2]


def core(ring: Shape, count: int = SAMPLES) -> np.ndarray:
    """Points all around the core, in the frame of the ring."""
    half, bend = half_and_bend(ring)
    quarter, part = np.divmod(np.linspace(0, 4, count, endpoint=False), 1)
    if half == 0.0:
        angle = 0.5 * np.pi * (quarter + part)
        return bend * np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    angle, sign = np.pi * (part - 0.5), np.where(quarter < 2, 1, -1)
    x = np.where(quarter % 2 == 0, half + bend * np.cos(angle), half * (1 - 2 * part))
    y = np.where(quarter % 2 == 0, bend * np.sin(angle), bend)
    return np.stack([sign * x, sign * y, 0 * x], -1)


def off_core(ring: Shape, p: np.ndarray) -> float:
    """Distance of a point in the ring's frame from the core."""
    half, bend = half_and_bend(ring)
    return float(np.hypot(np.hypot(max(abs(p[0]) - half, 0), p[1]) - bend, p[2]))


class Ring:
    """A ring before another shape, which stays at the origin."""

    def __init__(self, ring: Shape, other: Shape) -> None:
        self.ring, self.other = ring, other
        self.first = ring.kind < other.kind  # the lower kind comes first
        self.pair = Pair(ring, other) if self.first else Pair(other, ring)

    def run(self, at: np.ndarray, turn: np.ndarray, margin: float) -> list[Found]:
        """Manifolds with normals that point from the other shape to the ring."""
        n, k = len(at), 0 if self.first else 1
        pos, rot = np.zeros((n, 2, 3)), np.tile(np.eye(3), (n, 2, 1, 1))
        pos[:, k], rot[:, k] = at, turn
        every = self.pair.run(pos, rot, margin)
        for found in every:
            found.normal *= 1 if self.first else -1
        return every


def random_places(other: Shape, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    turn = Rotation.random(count, random_state=rng).as_matrix()
    if isinstance(other, Field) or other is OTHERS["hilly mesh"]:
        return rng.uniform((-0.5, -0.5, 0.0), (0.5, 0.5, 0.4), (count, 3)), turn
    way = rng.normal(size=(count, 3))
    return way / np.linalg.norm(way, axis=1)[:, None] * rng.uniform(0.0, 0.5, (count, 1)), turn


def outside(other: Any, points: np.ndarray) -> np.ndarray:
    """Which of the points are outside, in the frame of the shape."""
    if isinstance(other, Field) or other is OTHERS["hilly mesh"]:
        vertex, triangle = field_mesh(other) if isinstance(other, Field) else (other.vertices, other.triangles)
        vertex = np.asarray(vertex) - (0 if isinstance(other, Field) else other.middle())
        return np.array([p[2] > _height(vertex[triangle], p) for p in points])
    corner = (np.asarray(other.vertices) - other.middle())[other.triangles]
    return np.array([abs(_solid_angle(corner - p)) < 2 * np.pi for p in points])


def _solid_angle(corner: np.ndarray) -> float:
    """Of triangles [t, 3, 3] seen from the origin: 4 pi from inside a closed mesh (van Oosterom and Strackee 1983)."""
    a, b, c = corner[:, 0], corner[:, 1], corner[:, 2]
    x, y, z = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    under = x * y * z + np.sum(a * b, 1) * z + np.sum(b * c, 1) * x + np.sum(c * a, 1) * y
    return float(2 * np.arctan2(np.sum(a * np.cross(b, c), 1), under).sum())


def _height(corner: np.ndarray, p: np.ndarray) -> float:
    """Of the triangle [t, 3, 3] straight below or above a point."""
    a, u, v = corner[:, 0], corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    d, under = p - a, u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    s = (d[:, 0] * v[:, 1] - d[:, 1] * v[:, 0]) / under
    t = (u[:, 0] * d[:, 1] - u[:, 1] * d[:, 0]) / under
    k = int(np.argmax(np.minimum(np.minimum(s, t), 1 - s - t)))
    return float(a[k, 2] + s[k] * u[k, 2] + t[k] * v[k, 2])


def sweep(ring: Shape, other: Shape, count: int, seed: int) -> None:
    rng, scene, wire = np.random.default_rng(seed), Ring(ring, other), wire_of(ring)
    at, turn = random_places(other, count, rng)
    every, around, theirs, ball = scene.run(at, turn, MARGIN), core(ring), in_coal(other), coal.Sphere(1e-6)
    begin = outside(other, at + turn @ around[0]) if not isinstance(other, Hull) else np.ones(count, bool)

    def distance(p: np.ndarray) -> float:
        place, request = coal.Transform3s(np.eye(3), p), coal.DistanceRequest()
        return float(coal.distance(ball, place, theirs, coal.Transform3s(), request, coal.DistanceResult())) + 1e-6

    crossed, compared, shallow = 0.5 * np.linalg.norm(around[0] - around[1]), 0, 0
    for k in np.flatnonzero(begin):
        nearest = min(distance(p) for p in around @ turn[k].T + at[k])
        if nearest < crossed:
            continue
        found = every[k]
        if found.count == 0:
            assert nearest - wire > MARGIN - 1e-6
            continue
        shallow += found.deepest < wire - nearest - BETTER * sum(half_and_bend(ring)) - 1e-6
        top = int(found.depth.argmax())
        place = found.point[top] + (wire - 0.5 * found.depth[top]) * found.normal[top]
        assert off_core(ring, turn[k].T @ (place - at[k])) < 1e-7
        assert distance(place) == pytest.approx(wire - found.deepest, abs=2e-6)
        compared += 1
    assert compared > 0.05 * count
    assert shallow <= count // 1000  # of two minima within half a step only one is found


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ring", RINGS)
def test_rings_are_as_near_as_coal_finds_their_cores(ring: str, other: str) -> None:
    sweep(RINGS[ring], OTHERS[other], 500, 1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ring", RINGS)
def test_many_rings_are_as_near_as_coal_finds_their_cores(ring: str, other: str) -> None:
    sweep(RINGS[ring], OTHERS[other], 100_000, 2)


def flat(shape: str) -> Shape:
    """Level ground at z = 0."""
    if shape == "mesh":
        return Mesh(*grid(21, 2.0, lambda x, y: 0.0 * x))
    if shape == "field":
        return Field(np.zeros((21, 21)), 0.2)
    return Hull([(x, y, z) for x in (-2, 2) for y in (-2, 2) for z in (-1.0, 1.0)])


GROUNDS = pytest.mark.parametrize("ground", ["mesh", "field", "hull"])
EACH = pytest.mark.parametrize("ring", RINGS)


@GROUNDS
@EACH
def test_a_ring_flat_on_the_ground_keeps_four_points_while_it_trembles_and_slides(ring: str, ground: str) -> None:
    rng, shape, n = np.random.default_rng(4), RINGS[ring], 300
    up = (1.0 if ground == "hull" else 0.0) + wire_of(shape) - 1e-5
    at = np.c_[rng.uniform(-0.8, 0.8, (n, 2)), np.full(n, up)]
    turn = Rotation.from_rotvec(rng.uniform(-5e-6, 5e-6, (n, 3))) * Rotation.from_rotvec(
        np.c_[np.zeros((n, 2)), rng.uniform(0, 2 * np.pi, n)]
    )
    for found in Ring(shape, flat(ground)).run(at, turn.as_matrix(), 2e-3):
        assert list(found.feature) == [0, 8, 16, 24]
        assert found.normal[:, 2] == pytest.approx(1.0)
        assert found.depth == pytest.approx(1e-5, abs=1e-5)


@GROUNDS
@EACH
def test_a_ring_over_the_ground_reaches_as_low_as_its_closed_form(ring: str, ground: str) -> None:
    """Lowest point of a torus: ring * sin(tilt) + wire below the centre; a link adds its straight part."""
    rng, shape, n = np.random.default_rng(9), RINGS[ring], 1000
    (half, bend), wire = half_and_bend(shape), wire_of(shape)
    turn = Rotation.random(n, random_state=rng).as_matrix()
    low = half * abs(turn[:, 2, 0]) + bend * np.hypot(turn[:, 2, 0], turn[:, 2, 1]) + wire
    top, depth = 1.0 if ground == "hull" else 0.0, rng.uniform(-9e-3, 0.9 * wire, n)
    scene, at = Ring(shape, flat(ground)), np.array([0.1, 0.2, top])
    for d, found in zip(depth, scene.run(at + np.c_[0 * low, 0 * low, low - depth], turn, 0.01), strict=True):
        assert found.deepest == pytest.approx(d, abs=BETTER * (half + bend))
        assert found.normal == pytest.approx(np.tile([0, 0, 1.0], (found.count, 1)), abs=1e-9)
    for found in scene.run(at + np.c_[0 * low, 0 * low, low + 0.011], turn, 0.01):
        assert found.count == 0


@GROUNDS
@EACH
def test_a_ring_that_comes_down_on_one_side_is_held_on_the_other(ring: str, ground: str) -> None:
    """Across a margin as large as itself, a tilted ring has points that span it."""
    shape = RINGS[ring]
    half, bend = half_and_bend(shape)
    top = 1.0 if ground == "hull" else 0.0
    for tilt in (0.1, 0.5, 1.0, 1.4):
        turn = Rotation.from_rotvec([0, tilt, 0]).as_matrix()
        lift = (half + bend) * np.sin(tilt) + wire_of(shape)
        [found] = Ring(shape, flat(ground)).run(np.array([[0, 0, top + lift]]), turn[None], 2.0)
        assert found.count >= 4
        local = (found.point - 0.5 * found.depth[:, None] * found.normal - (0, 0, top + lift)) @ turn
        assert np.ptp(local[:, 0]) > half + bend
        assert np.ptp(local[:, 1]) > bend
        assert found.depth.max() == pytest.approx(0.0, abs=1e-6)
        assert (found.depth <= 1e-6).all()


def test_a_link_in_a_groove_is_held_on_both_sides() -> None:
    """A straight part of a link along a groove of two slopes at right angles: each of its balls touches both."""
    groove = Mesh(*grid(21, 1.0, lambda x, y: np.abs(y)))
    shape = RINGS["link"]
    upright = Rotation.from_rotvec([np.pi / 2, 0, 0]).as_matrix()  # the ring's plane stands along the groove
    lift = shape.sizes()[1] + np.sqrt(2) * (wire_of(shape) - 1e-5)
    [found] = Ring(shape, groove).run(np.array([[0, 0, lift]]) - groove.middle(), upright[None], 2e-3)
    assert len(set(found.feature)) == found.count
    assert {int(f) // PLACES for f in found.feature} == {0, 1}
    for side in (1, -1):
        held = found.normal @ (0, -side * np.sqrt(0.5), np.sqrt(0.5)) > 1 - 1e-9
        assert held.sum() >= 2
        assert np.ptp(found.point[held, 0]) == pytest.approx(2 * shape.sizes()[0], abs=1e-6)
    assert found.depth == pytest.approx(1e-5, abs=1e-8)


def test_a_ring_beyond_the_border_of_a_sheet_is_not_touched() -> None:
    scene = Ring(RINGS["torus"], Mesh(*grid(5, 1.0, lambda x, y: 0.0 * x)))
    below = np.array([[1.2, 0, -0.05], [1.3, 0.2, -0.1], [0, 0, -0.5]])
    for found in scene.run(below, np.tile(np.eye(3), (3, 1, 1)), 0.01):
        assert found.count == 0


def test_a_ring_deep_inside_a_block_is_pushed_out_by_the_nearest_way() -> None:
    """Each place of the core leaves through the nearest face, so that the deepest says how far the nearest face is."""
    scene = Ring(RINGS["torus"], Mesh(*block(1.0, 0.9, 0.5)))
    [found] = scene.run(np.array([[0, 0, 0.1]]), np.eye(3)[None], 2e-3)
    assert found.deepest == pytest.approx(0.4 + 0.03)
    assert found.normal[:, 2] == pytest.approx(1.0)


@pytest.mark.parametrize("other", OTHERS)
@EACH
def test_degenerate_places_give_finite_points(ring: str, other: str) -> None:
    turns = [np.eye(3), *(Rotation.from_rotvec(v).as_matrix() for v in ((1e-13, 0, 0), (np.pi / 2, 0, 0), (1, 2, 3)))]
    places = [(0, 0, 0), (0, 0, 1e-13), (1e-300, 0, 0), (0.12, 0, 0), (0, 0, 0.08), (1e9, 0, 0), (0, 0, -1e9)]
    at, turn = np.array([p for p in places for _ in turns], float), np.array(turns * len(places))
    for margin in (0.0, 0.1, 1e3):
        for found in Ring(RINGS[ring], OTHERS[other]).run(at, turn, margin):
            assert np.isfinite(found.point).all()
            assert np.isfinite(found.depth).all()
            assert np.linalg.norm(found.normal, axis=1) == pytest.approx(np.ones(found.count))


def test_a_straight_that_leaves_a_face_by_its_edge_touches_at_the_edge() -> None:
    """Three steps of the straight are level with a face of a block, the first of them a little past its edge, which is
    aside from there. The deepest point is where the wire meets the edge squarely, on its surface and not within."""
    link, lean, gap = Link(0.166, 0.153, 0.05), 2e-3, 4e-3
    half, bend, wire = link.sizes()[:3]
    past = 1e-4  # how far the step is past the edge
    x, y, along = np.array([np.cos(lean), 0, -np.sin(lean)]), np.array([-np.sin(lean), 0, -np.cos(lean)]), -0.5 * half
    turn = np.stack([x, y, np.cross(x, y)], 1)
    edge = np.array([1.0, 0.0, 1.0])  # of a block of two metres
    at = edge + np.array([past, 0, gap]) - turn @ [along, bend, 0.0]
    (found,) = Ring(link, Mesh(*block(1, 1, 1))).run(at[None], turn[None], 0.01)
    deepest = int(np.argmax(found.depth))
    line = at + bend * y
    nearest = np.linalg.norm(np.cross(edge - line, x))
    assert found.depth[deepest] == pytest.approx(wire - nearest, abs=1e-9)
    low = found.point[deepest] - 0.5 * found.depth[deepest] * found.normal[deepest]
    assert np.linalg.norm(np.cross(low - line, x)) == pytest.approx(wire, abs=1e-9)
