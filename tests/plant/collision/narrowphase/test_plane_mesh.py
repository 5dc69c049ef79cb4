"""A mesh on a plane: which of its corners are listed. Truth: the heights of all corners."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from mesh_scenes import Scene, random_turn

from plant.collision.model import POINTS, Kind
from plant.collision.shape.mesh import build_meshes


def rough_ball():
    ball, rng = trimesh.creation.icosphere(subdivisions=3, radius=0.5), np.random.default_rng(1)
    return np.array(ball.vertices) * (1 + 0.05 * rng.standard_normal((len(ball.vertices), 1))), np.array(ball.faces)


@pytest.mark.parametrize("sunk", [-0.01, 0.02, 0.1, 0.5, 1.2])
def test_the_deepest_corners_are_listed_once_each(sunk):
    """Few if it stands on the plane; as many as there is room for, and none but the deepest, if it is deep in it."""
    vertex, triangle = rough_ball()
    meshes, rng = build_meshes([(vertex, triangle)]), np.random.default_rng(2)
    scene = Scene([Kind.PLANE, Kind.MESH], [[0], [1, 1, 1]], meshes)
    corner, margin = meshes.vertex, 0.02
    for _ in range(50):
        up, turn = random_turn(rng), random_turn(rng)
        level = corner @ turn.T @ up[:, 2]
        at = rng.uniform(-3, 3, 3)
        scene.put(0, at, up)
        scene.put(1, at + up[:, 2] * (-level.min() - sunk), turn)
        n = scene.touch(margin)
        point, normal, depth = scene.local(n)
        height = level - level.min() - sunk
        order = np.argsort(height)[:POINTS]
        order = order[height[order] < margin]
        name = scene.out.feature[:n]
        assert sorted(name) == sorted(order)
        np.testing.assert_allclose(depth, -height[name], atol=1e-12)
        np.testing.assert_allclose(normal, [-up[:, 2]] * n, atol=1e-12)
        middle = corner[name] @ turn.T + scene.placed.pos[1] + 0.5 * depth[:, None] * up[:, 2]
        np.testing.assert_allclose(point, middle, atol=1e-12)
