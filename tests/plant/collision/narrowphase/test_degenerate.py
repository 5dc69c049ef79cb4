"""Meshes and fields in degenerate cases: answers are finite, and what must be so is so.

A floor at z = 0 is one floor however it is cut: every shape that reaches so far below it is that deep in it, whether
its triangles are needles of 10 m by 0.1 mm, a kilometre or a millimetre wide. Concentric shapes, plates without
thickness and edges along edges have closed forms where they have any.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import trimesh
from coal_peer import grid_triangles
from mesh_scenes import block
from pair_truth import extents, faces
from placed_pairs import Pair
from primitive_pairs import Found
from scipy.spatial.transform import Rotation

from plant.collision.model import Kind
from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Field, Hull, Link, Mesh, Shape, Sphere, Torus

CLOUD = np.random.default_rng(2).normal(size=(20, 3))


def lumps(size: float) -> dict[Kind, Shape]:
    """One of each kind that can lie on a floor, about `size` across."""
    ball = trimesh.creation.icosphere(subdivisions=1, radius=0.5 * size)
    return {
        Kind.SPHERE: Sphere(0.5 * size),
        Kind.CAPSULE: Capsule(0.3 * size, 0.6 * size),
        Kind.BOX: Box(0.8 * size, 0.6 * size, 0.4 * size),
        Kind.CYLINDER: Cylinder(0.4 * size, 0.6 * size),
        Kind.CONE: Cone(0.4 * size, 0.8 * size),
        Kind.HULL: Hull(0.3 * size * CLOUD),
        Kind.TORUS: Torus(0.4 * size, 0.1 * size),
        Kind.LINK: Link(0.5 * size, 0.3 * size, 0.1 * size),
        Kind.MESH: Mesh(np.array(ball.vertices), np.array(ball.faces)),
    }


def floor(nx: int, ny: int, dx: float, dy: float) -> Mesh:
    x, y = np.meshgrid((np.arange(nx) - 0.5 * (nx - 1)) * dx, (np.arange(ny) - 0.5 * (ny - 1)) * dy, indexing="ij")
    return Mesh(np.stack([x, y, 0 * x], -1).reshape(-1, 3), grid_triangles(nx, ny))


FLOORS: dict[str, tuple[Shape, float]] = {  # with the size of what lies on them
    "needles": (floor(2, 2001, 10.0, 1e-4), 0.05),
    "a kilometre under a millimetre": (floor(3, 3, 1000.0, 1000.0), 1e-3),
    "millimetres under a metre": (floor(41, 41, 0.05, 0.05), 1.0),
    "a field of a kilometre under a millimetre": (Field(np.zeros((4, 4)), 1000.0), 1e-3),
    "a field of needles": (Field(np.zeros((3, 401)), (10.0, 1e-3)), 0.05),
}


def reach_down(shape: Shape, turn: np.ndarray) -> float:
    """How far a shape reaches below the origin of its frame."""
    size, corners = np.array([shape.sizes()]), [faces(shape)]
    return float(extents(shape.kind, size, np.zeros(1, int), corners, (turn.T @ [0.0, 0.0, -1.0])[None])[0])


def turns(rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Straight, on each side, nearly straight, and anyhow."""
    yield np.eye(3)
    for axis in np.eye(3):
        for angle in (0.5 * np.pi, np.pi, 1e-9, 1e-13):
            yield Rotation.from_rotvec(angle * axis).as_matrix()
    yield from Rotation.random(12, random_state=rng).as_matrix()


def is_sound(found: Found, margin: float) -> bool:
    finite = np.isfinite(found.point).all() and np.isfinite(found.depth).all()
    unit = np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-9)
    return bool(finite and unit and (found.depth >= -margin - 1e-12).all())


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.parametrize("kind", lumps(1.0), ids=lambda k: k.name.lower())
def test_a_floor_is_a_floor_however_it_is_cut(kind: Kind, name: str) -> None:
    ground, size = FLOORS[name]
    shape, rng = lumps(size)[kind], np.random.default_rng(5)
    made = list(turns(rng))
    for sunk in (0.02 * size, 1e-6 * size, -1e-3 * size):
        pos, rot = np.zeros((len(made), 2, 3)), np.tile(np.eye(3), (len(made), 2, 1, 1))
        for k, turn in enumerate(made):
            rot[k, 0] = turn
            pos[k, 0] = *(0.3 * size * rng.uniform(-1, 1, 2)), reach_down(shape, turn) - sunk
        margin = 0.01 * size
        for k, found in enumerate(Pair(shape, ground).run(pos, rot, margin)):
            assert is_sound(found, margin), (k, sunk)
            assert found.depth.max(initial=-9.0) == pytest.approx(sunk, abs=2e-5 * size), (k, found)
            best = found.depth.argmax()
            if kind != Kind.MESH or sunk > 0.0:  # the nearest of two meshes across a gap is known to a rounding error
                assert found.normal[best] == pytest.approx([0, 0, 1], abs=1e-4), (k, found)


@pytest.mark.parametrize("kind", lumps(1.0), ids=lambda k: k.name.lower())
def test_concentric_shapes_overlap(kind: Kind) -> None:
    """In a block and a ball, straight or nearly so."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.5)
    for other in (Mesh(*block(0.5, 0.5, 0.5)), Mesh(np.array(ball.vertices), np.array(ball.faces))):
        for size in (0.1, 1.0, 10.0):
            shape = lumps(size)[kind]
            made = list(turns(np.random.default_rng(7)))
            rot = np.tile(np.eye(3), (len(made), 2, 1, 1))
            rot[:, 0] = made
            for k, found in enumerate(Pair(shape, other).run(np.zeros((len(made), 2, 3)), rot)):
                assert is_sound(found, 0.0), (size, k)
                ring = kind in (Kind.TORUS, Kind.LINK) and size == 10.0  # goes round it
                assert (found.depth.max(initial=0.0) > 0.0) != ring, (size, k, found)


@pytest.mark.parametrize("kind", lumps(1.0), ids=lambda k: k.name.lower())
def test_a_plate_without_thickness_gives_finite_answers(kind: Kind) -> None:
    plate = Mesh(*block(0.5, 0.5, 5e-10))
    made = list(turns(np.random.default_rng(8)))
    rot = np.tile(np.eye(3), (len(made), 2, 1, 1))
    rot[:, 0] = made
    for height in (0.0, 1e-9, 0.1, 0.3):
        pos = np.zeros((len(made), 2, 3))
        pos[:, 0] = 0.1, 0.05, height
        shape = lumps(0.4)[kind]
        for k, found in enumerate(Pair(shape, plate).run(pos, rot, 0.01)):
            assert is_sound(found, 0.01), (height, k)
            gap = height - reach_down(shape, made[k])
            assert len(found.depth) == 0 or gap < 0.0101, (height, k)
            assert len(found.depth) > 0 or gap > -1e-9, (height, k)


@pytest.mark.parametrize("thin", [Box(0.4, 0.3, 1e-9), Cylinder(0.2, 1e-9), Hull(CLOUD * [0.1, 0.1, 1e-8])])
@pytest.mark.parametrize("ground", [Mesh(*block(1, 1, 0.5)), Field(np.zeros((9, 9)), 0.25)], ids=["mesh", "field"])
def test_a_sheet_on_a_floor(thin: Shape, ground: Shape) -> None:
    pos, rot = np.zeros((3, 2, 3)), np.tile(np.eye(3), (3, 2, 1, 1))
    pos[:, 0, 2] = 1e-3, 0.0, -1e-3
    pos[:, 1, 2] = -0.5 if ground.kind == Kind.MESH else 0.0
    for height, found in zip(pos[:, 0, 2], Pair(thin, ground).run(pos, rot, 0.01), strict=True):
        assert is_sound(found, 0.01)
        assert found.depth.max(initial=-9.0) == pytest.approx(-height, abs=1e-7)


OFFSETS = np.array([(0.98, 0.0, 0.0), (0.98, 0.5, 0.25), (0.98, 0.96, 0.0), (0.98, 0.96, 0.95), (0.0, 0.0, 0.99)])


def side_by_side(one: Shape, margin: float) -> list[Found]:
    """A unit cube beside, on and against the edge of another that is a mesh."""
    pos, rot = np.zeros((len(OFFSETS), 2, 3)), np.tile(np.eye(3), (len(OFFSETS), 2, 1, 1))
    pos[:, 0] = OFFSETS
    return Pair(one, Mesh(*block(0.5, 0.5, 0.5))).run(pos, rot, margin)


def test_edges_along_edges() -> None:
    """Out by the shortest way."""
    for offset, found in zip(OFFSETS, side_by_side(Box(1, 1, 1), 0.0), strict=True):
        assert is_sound(found, 0.0)
        assert found.depth.max(initial=0.0) == pytest.approx(1.0 - offset.max(), abs=1e-9), offset


def test_edges_along_edges_of_two_meshes() -> None:
    """As the engine asks, with a margin: no less deep than the shortest way out, and no deeper than the next one."""
    for offset, found in zip(OFFSETS, side_by_side(Mesh(*block(0.5, 0.5, 0.5)), 1e-3), strict=True):
        assert is_sound(found, 1e-3)
        shortest, following, _ = 1.0 - np.sort(offset)[::-1]
        assert shortest - 1e-5 < found.depth.max(initial=0.0) < following + 1e-5, offset


def test_edges_along_edges_of_two_meshes_without_a_margin() -> None:
    for found in side_by_side(Mesh(*block(0.5, 0.5, 0.5)), 0.0):
        assert found.depth.max(initial=0.0) > 0.0
