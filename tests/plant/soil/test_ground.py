"""The ground's heights and slopes are those of the two triangles of each cell (Luaces eq. 4.103 to 4.105)."""

import numpy as np
import pytest

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.abi import TILE
from plant.collision.scene import view_scene
from plant.collision.shape.shapes import Field, Sphere
from plant.soil.ground import BOTTOM, NOWHERE, Ground, build_ground, change_height, surface
from plant.world.world import World

_view = viewer(Ground)


@kernel
def _surface(ground, scene, x, y):
    return surface(_view(ground), view_scene(scene).field, x, y)


@kernel
def _change(ground, scene, p, i, j, z):
    change_height(_view(ground), view_scene(scene).field, p, i, j, z)


class Land:
    """A hilly patch at x = 3, and a small one that lies higher on top of it."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.heights = rng.uniform(-0.5, 0.5, (40, 33))
        world = World()
        world.shape(None, Field(self.heights, (0.25, 0.5), low=-3, high=3), at=(3, 0, 1))
        world.shape(None, Field(np.full((5, 5), 0.2), 0.2, low=0, high=1), at=(3, 1, 2))
        world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 9))
        self.engine = world.compile(dt=0.001)
        scene = self.engine.content.scene
        self.ground = build_ground(scene, [0, 1])
        self.records = Struct(self.ground), Struct(scene)
        self.addresses = [r.address for r in self.records]

    def at(self, x: float, y: float) -> tuple[int, float, float, float]:
        return _surface(*self.addresses, x, y)


@pytest.fixture(scope="module")
def land() -> Land:
    return Land()


def test_samples_and_planes_between_them(land: Land) -> None:
    rng = np.random.default_rng(4)
    for _ in range(500):
        i, j = rng.integers(0, 39), rng.integers(0, 32)
        u, v = rng.uniform(0.01, 0.99, 2)
        corners = [(i, j), (i + 1, j), (i + 1, j + 1)] if u >= v else [(i, j), (i + 1, j + 1), (i, j + 1)]
        points = np.array([(0.25 * a, 0.5 * b, land.heights[a, b]) for a, b in corners])
        n = np.cross(points[1] - points[0], points[2] - points[0])  # eq. 4.103
        x, y = 0.25 * (i + u), 0.5 * (j + v)
        z = -(-n @ points[0] + x * n[0] + y * n[1]) / n[2]  # eq. 4.104, 4.105
        p, height, sx, sy = land.at(x - 0.125 * 39 + 3, y - 0.25 * 32)
        if p == 1:
            assert height == pytest.approx(2.2)
            continue
        assert p == 0
        assert height == pytest.approx(z + 1, abs=1e-12)
        assert (sx, sy) == pytest.approx((-n[0] / n[2], -n[1] / n[2]), abs=1e-12)


def test_nowhere_beyond_the_rim(land: Land) -> None:
    assert land.at(-40, 0) == (NOWHERE, BOTTOM, 0.0, 0.0)


def test_a_change_is_seen_by_all_and_stamps_its_tile() -> None:
    land = Land()
    _change(*land.addresses, 0, 17, 20, -2.0)
    assert land.at(17 * 0.25 - 0.125 * 39 + 3, 20 * 0.5 - 0.25 * 32)[1] == pytest.approx(1 - 2)
    tiles = land.ground.stamp[0].reshape(-1, -(-33 // TILE))
    assert tiles[1, 1] == 1
    assert tiles.sum() == 1


def test_a_turned_field_is_no_ground() -> None:
    world = World()
    world.shape(None, Field(np.zeros((3, 3)), 1.0), quat=(0.9, 0.1, 0, 0))
    world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 9))
    with pytest.raises(ValueError, match="level"):
        build_ground(world.compile(dt=0.001).content.scene, [0])


def test_a_field_keeps_to_its_range() -> None:
    with pytest.raises(ValueError, match="within low 0 and high 1"):
        Field(np.full((3, 3), 2.0), 1.0, low=0, high=1)


def test_a_ball_rests_on_a_heap_that_came_later() -> None:
    world = World()
    world.shape(None, Field(np.zeros((21, 21)), 0.5, low=-2, high=3))
    world.solid("ball", Sphere(0.2), density=1000, pos=(0, 0, 2.4))
    engine = world.compile(dt=0.001)
    field = engine.content.scene.field
    field.height[:] += 2.0
    assert engine.step(1500) == 0
    assert engine.position("ball")[2] == pytest.approx(2.2, abs=2e-3)
