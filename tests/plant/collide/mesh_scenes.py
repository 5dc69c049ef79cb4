"""Scenes of one shape before one mesh or field, and meshes to put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from hilnode.record import Record
from plant.collide import model


class Scene:
    """Shape 0 before shape 1, whose asset number is 0; `hit` runs a pair kernel on the two."""

    def __init__(self, kinds: list[int], sizes: list[list[float]], assets: Any = None) -> None:
        n = len(kinds)
        size = np.zeros((n, 4))
        for k, s in enumerate(sizes):
            size[k, : len(s)] = s
        turn = np.tile(np.eye(3), (n, 1, 1))
        zero, one = np.zeros(n, np.int64), np.ones(n, np.int64)
        kind = np.array(kinds, np.int64)
        bound = np.where(kind == model.Kind.PLANE, np.inf, 1e3)
        self.shape = model.Shapes(
            kind, zero - 1, np.zeros((n, 3)), turn, size, bound, zero, one, one.copy(), zero.copy(), one.copy()
        )
        self.placed, self.out = model.new_placed(n), model.new_manifold()
        self.placed.rot[:] = np.eye(3)
        self.records = [Record(self.shape), Record(self.placed), Record(assets) if assets else None, Record(self.out)]
        self.assets = assets

    def put(self, s: int, pos: Any, turn: Any = None) -> None:
        self.placed.pos[s] = pos
        self.placed.rot[s] = np.eye(3) if turn is None else turn

    def hit(self, kernel: Callable[..., int], margin: float = 0.0) -> int:
        a = [r.address for r in self.records if r]
        return kernel(*a, margin)

    def local(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Copies of the points, normals and depths."""
        return self.out.point[:n].copy(), self.out.normal[:n].copy(), self.out.depth[:n].copy()


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return np.ascontiguousarray(Rotation.random(random_state=rng).as_matrix())


def grid(n: int, half: float, height: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A surface over a square of n x n points, two triangles per cell, outside up."""
    x = np.linspace(-half, half, n)
    at_x, at_y = np.meshgrid(x, x, indexing="ij")
    vertex = np.stack([at_x, at_y, height(at_x, at_y)], -1).reshape(-1, 3)
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = i[:-1, :-1].ravel(), i[1:, :-1].ravel(), i[1:, 1:].ravel(), i[:-1, 1:].ravel()
    return vertex, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def hills(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    return 0.4 * np.sin(1.1 * x) * np.cos(0.9 * y) + 0.05 * rng.standard_normal(x.shape)


def block(x: float, y: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    """A box as a closed mesh of 12 triangles."""
    import trimesh

    box = trimesh.creation.box(extents=(2 * x, 2 * y, 2 * z))
    return np.array(box.vertices), np.array(box.faces)
