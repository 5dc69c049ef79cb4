"""Hulls of many corners against meshes and fields."""

from __future__ import annotations

import numpy as np
import pytest
from mesh_scenes import grid
from placed_pairs import Pair
from scipy.spatial.transform import Rotation

from plant.collision.shape.shapes import Field, Hull, Mesh
from plant.world.checks import WorldError
from plant.world.world import World


def round_hull(corners: int) -> Hull:
    ball = np.random.default_rng(3).normal(size=(corners, 3))
    return Hull(ball / np.linalg.norm(ball, axis=1)[:, None])


@pytest.mark.parametrize("ground", ["mesh", "field"])
def test_a_hull_on_a_surface_has_so_many_corners_at_most(ground: str) -> None:
    world = World()
    floor = Mesh(*grid(3, 5.0, lambda x, y: 0 * x)) if ground == "mesh" else Field(np.zeros((3, 3)), 5.0)
    world.shape(None, floor, mask=2)
    world.body("gem", mass=1.0, inertia=(1, 1, 1), pos=(0, 0, 3))
    world.shape("gem", round_hull(1024), group=2)
    world.compile(1e-3)
    world.shape("gem", round_hull(1025), group=4)  # does not meet it
    world.compile(1e-3)
    world.shape("gem", round_hull(1025), group=2)
    with pytest.raises(WorldError, match=r"hull \(shape 3, on gem\): has 1025 corners, .* of 1024 at most; leave out"):
        world.compile(1e-3)


@pytest.mark.parametrize("ground", ["mesh", "field"])
@pytest.mark.parametrize("corners", [300, 500, 1024])
def test_every_corner_of_a_large_hull_touches(ground: str, corners: int) -> None:
    """Turned so that each of some corners in turn is the lowest: it is that deep. Beyond 256 none was seen."""
    hull = round_hull(corners)
    floor = Mesh(*grid(3, 5.0, lambda x, y: 0 * x)) if ground == "mesh" else Field(np.zeros((3, 3)), 5.0)
    pair = Pair(hull, floor)
    at = hull.vertices - hull.middle()
    numbers = np.arange(corners - 1, 0, -7)
    pos, rot = np.zeros((len(numbers), 2, 3)), np.tile(np.eye(3), (len(numbers), 2, 1, 1))
    for row, k in enumerate(numbers):
        rot[row, 0] = Rotation.align_vectors([[0, 0, -1.0]], [at[k]])[0].as_matrix()
        pos[row, 0] = 0.3, 0.2, 0.01 - (at @ rot[row, 0].T)[:, 2].min() - 0.02
    for found in pair.run(pos, rot):
        assert found.depth.max(initial=-1.0) == pytest.approx(0.01, abs=1e-9)
        assert found.normal[found.depth.argmax()] == pytest.approx([0, 0, 1])
