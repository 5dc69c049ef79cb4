"""Scenes of one shape before one mesh or field, and meshes to put there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
from coal_peer import grid_triangles
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision import model
from plant.collision import scene as scenes
from plant.collision.pairs.table import call_pair, pair_table
from plant.collision.scene import view_scene
from plant.collision.shape.mesh import Meshes


@kernel
def touch(scene, i, j, margin):
    """What the engine does with a pair: the kernel of its kinds, through the table."""
    s = view_scene(scene)
    return call_pair(s.table[s.shape.kind[i], s.shape.kind[j]], scene, i, j, margin)


@cache
def empty_scene() -> scenes.Scene:
    """A scene of nothing."""
    none: Any = {"spare": 0, "joints": 0, "excluded": (), "margin": 0.0, "table": pair_table([])}
    return scenes.build_scene([], np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3, 3)), **none)


class Scene:
    """Shape 0 before shape 1, whose asset number is 0; `touch` asks the table of pairs for the points of the two.

    All tests that go through the table share one compiled kernel for each pair of kinds. `assets` are Meshes or Fields;
    `more` are further fields of the whole scene.
    """

    def __init__(self, kinds: list[int], sizes: list[list[float]], assets: Any = None, **more: Any) -> None:
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
        self.records = [Struct(self.shape), Struct(self.placed), Struct(assets) if assets else None, Struct(self.out)]
        self.assets, self.more = assets, more
        if assets:
            self.more |= {"mesh" if isinstance(assets, Meshes) else "field": assets}

    @cached_property
    def whole(self) -> Struct:
        """The scene as the engine has it."""
        table = pair_table([(model.Kind(self.shape.kind[0]), model.Kind(self.shape.kind[1]))])
        return Struct(
            empty_scene()._replace(shape=self.shape, placed=self.placed, out=self.out, table=table, **self.more)
        )

    def touch(self, margin: float = 0.0) -> int:
        """Fill `out`; returns the number of points."""
        return touch(self.whole.address, 0, 1, margin)

    def put(self, s: int, pos: Any, turn: Any = None) -> None:
        self.placed.pos[s] = pos
        self.placed.rot[s] = np.eye(3) if turn is None else turn

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
    return vertex, grid_triangles(n, n)


def hills(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    return 0.4 * np.sin(1.1 * x) * np.cos(0.9 * y) + 0.05 * rng.standard_normal(x.shape)


def block(x: float, y: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    """A box as a closed mesh of 12 triangles."""
    import trimesh

    box = trimesh.creation.box(extents=(2 * x, 2 * y, 2 * z))
    return np.array(box.vertices), np.array(box.faces)
