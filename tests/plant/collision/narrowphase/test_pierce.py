"""Solids that go through a surface like a peg: no point of them is inside it, and no ridge of it is inside them."""

from __future__ import annotations

import numpy as np
import pytest
from mesh_scenes import block, grid
from placed_pairs import Pair
from scipy.spatial.transform import Rotation

from plant.collision.model import Kind
from plant.collision.shape.shapes import Box, Cone, Cylinder, Field, Hull, Mesh, Shape

ROD = 0.1 * np.array([[x, y, 20 * z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
PEGS = [Box(0.2, 0.2, 4.0), Cylinder(0.1, 4.0), Hull(ROD)]  # along z, 0.1 to each side
BLOCK = Mesh(*block(0.5, 0.5, 0.5))


def put(shape: Shape, other: Shape, pos: np.ndarray, rot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depths and normals of a shape at a place and turn over another at the origin."""
    found = Pair(shape, other).run(np.stack([pos, np.zeros(3)])[None], np.stack([rot, np.eye(3)])[None])[0]
    return found.depth, found.normal


@pytest.mark.parametrize("peg", [PEGS[0], PEGS[2]], ids=lambda s: s.kind.name.lower())
def test_a_peg_whose_middle_is_inside_leaves_through_the_nearest_side(peg: Shape) -> None:
    depth, normal = put(peg, BLOCK, np.array([0.15, 0.02, 0.0]), np.eye(3))
    assert depth.max() == pytest.approx(0.5 - 0.15 + 0.1)
    assert normal[depth.argmax()] == pytest.approx([1.0, 0.0, 0.0])


@pytest.mark.parametrize("peg", [*PEGS, Cone(0.1, 4.0)], ids=lambda s: s.kind.name.lower())
@pytest.mark.parametrize("along", [0.7, 1.0, -1.0])
def test_a_peg_through_two_sides_whose_middle_is_outside(peg: Shape, along: float) -> None:
    """Askew from the top to a side, below the edge between them. What is round may be drawn back the way it came."""
    turn = Rotation.from_euler("y", -45, degrees=True).as_matrix()
    depth, normal = put(peg, BLOCK, np.array([0.25, 0.03, 0.25]) + along * turn[:, 2], turn)
    assert depth.max(initial=0.0) > 0.05
    if peg.kind in (Kind.BOX, Kind.HULL):
        assert max(normal[depth.argmax()][[0, 2]]) == pytest.approx(1.0)


@pytest.mark.parametrize("peg", [*PEGS, Cone(0.1, 4.0)], ids=lambda s: s.kind.name.lower())
def test_a_peg_past_the_edge_is_not_held(peg: Shape) -> None:
    turn = Rotation.from_euler("y", -45, degrees=True).as_matrix()
    depth, _ = put(peg, BLOCK, np.array([0.58, 0.03, 0.58]) + turn[:, 2], turn)
    assert depth.max(initial=0.0) == 0.0


@pytest.mark.parametrize("kind", ["mesh", "field"])
def test_a_rim_between_two_slopes_that_send_it_to_each_other(kind: str) -> None:
    """A leaning disc in a ditch: whichever slope it is turned to, the other one is below its lowest point."""
    side, slope = np.linspace(-2.0, 2.0, 9), 0.5
    if kind == "field":
        ground: Shape = Field(np.abs(np.tile(side, (9, 1)).T) * slope, 0.5)
        lift = ground.middle()[2]
    else:
        ground = Mesh(*grid(9, 2.0, lambda x, y: slope * np.abs(x)))
        lift = ground.middle()[2]
    disc, turn = Cylinder(0.4, 0.05), Rotation.from_euler("x", 80, degrees=True).as_matrix()
    for z in np.linspace(0.30, 0.44, 15):
        depth, _ = put(disc, ground, np.array([0.0, 0.1, z - lift]), turn)
        angle = np.linspace(0.0, 2.0 * np.pi, 4001)
        rim = np.stack([0.4 * np.cos(angle), 0.4 * np.sin(angle), 0 * angle], 1)
        up = np.array([0.0, 0.0, 0.025])
        both = np.concatenate([rim + up, rim - up]) @ turn.T + [0.0, 0.1, z]
        least = (both[:, 2] - slope * np.abs(both[:, 0])).min()
        assert (depth.max(initial=0.0) > 0.0) == (least < 0.0), (z, least)
