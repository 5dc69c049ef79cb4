"""The three trees over boxes at rest against all boxes tried by numpy, and against coal for rays."""

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.broadphase.static_tree import METHODS, build_scenery, query_scenery, ray_scenery, view_scenery


@kernel
def ask_box(address, box, found):
    return query_scenery(view_scenery(address), box[0], box[1], box[2], box[3], box[4], box[5], found)


@kernel
def ask_ray(address, ray, far, found):
    return ray_scenery(view_scenery(address), ray[0], ray[1], ray[2], ray[3], ray[4], ray[5], far, found)


def strewn(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Boxes [n, 6]: evenly, in clumps of all sizes, on a grid with touching faces, or all in one place."""
    if name == "even":
        low, size = rng.uniform(-10, 10, (n, 3)), rng.uniform(0.1, 1, (n, 3))
    elif name == "clumps":
        low = np.cumsum(rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-3, 1, (n, 1)), axis=0)
        size = 10.0 ** rng.uniform(-3, 1.5, (n, 3))
    elif name == "grid":
        low, size = (
            np.stack(np.unravel_index(np.arange(n), (10, 10, -(-n // 100))), axis=1).astype(float),
            np.ones((n, 3)),
        )
    elif name == "flat":
        low, size = np.c_[rng.uniform(-12, 12, (n, 2)), np.zeros(n)], np.c_[rng.uniform(0, 3, (n, 2)), np.zeros(n)]
    else:
        low, size = np.zeros((n, 3)), np.ones((n, 3))
    return np.hstack((low, low + size))


def overlapping(boxes: np.ndarray, box: np.ndarray) -> list[int]:
    return np.flatnonzero(((boxes[:, :3] <= box[3:]) & (boxes[:, 3:] >= box[:3])).all(axis=1)).tolist()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["even", "clumps", "grid", "flat", "one place"])
def test_search_by_box(method, name):
    rng = np.random.default_rng(1)
    boxes = strewn(name, 600, rng)
    tree = Struct(build_scenery(boxes, np.arange(600), method))
    found, seen = np.zeros(600, np.int64), 0
    for _ in range(200):
        around = boxes[rng.integers(600), :3] + rng.normal(size=3)
        if name == "grid":
            around = np.round(around)
        box = np.concatenate((around, around + rng.choice([0.0, 1.0, 3.0], 3)))
        count = ask_box(tree.address, box, found)
        assert sorted(found[:count].tolist()) == overlapping(boxes, box)
        seen += count
    assert seen > 100
    assert ask_box(tree.address, np.array([1e6] * 6), found) == 0


def crossed(boxes: np.ndarray, start: np.ndarray, end: np.ndarray) -> list[int]:
    """coal's answer: the boxes that a capsule as thin as a ray touches."""
    way = np.linalg.norm(end - start)
    turn = Rotation.align_vectors([(end - start) / way], [[0, 0, 1]])[0].as_matrix()
    ray, place = coal.Capsule(1e-9, way), coal.Transform3s(turn, 0.5 * (start + end))
    touched = []
    for k, box in enumerate(boxes):
        solid, at = coal.Box(*(box[3:] - box[:3])), coal.Transform3s(np.eye(3), 0.5 * (box[:3] + box[3:]))
        if coal.collide(ray, place, solid, at, coal.CollisionRequest(), coal.CollisionResult()):
            touched.append(k)
    return touched


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["even", "grid"])
def test_search_along_a_ray(method, name):
    """coal tries the same rays against every box."""
    rng = np.random.default_rng(2)
    boxes = strewn(name, 300, rng)
    tree = Struct(build_scenery(boxes, np.arange(300), method))
    found, seen = np.zeros(300, np.int64), 0
    for _ in range(20):
        a, b = rng.integers(300, size=2)
        start = rng.uniform(boxes[a, :3], boxes[a, 3:]) + rng.normal(size=3)
        toward = rng.uniform(boxes[b, :3], boxes[b, 3:]) - start
        far = rng.choice([1.0, 2.0])
        count = ask_ray(tree.address, np.concatenate((start, toward)), far, found)
        assert sorted(found[:count].tolist()) == crossed(boxes, start, start + far * toward)
        seen += count
    assert seen >= 20


@pytest.mark.parametrize("method", METHODS)
def test_a_ray_along_an_axis_ends_where_it_should(method):
    boxes = strewn("grid", 400, np.random.default_rng(3))  # 10 x 10 x 4 unit cubes
    tree = Struct(build_scenery(boxes, np.arange(400), method))
    found = np.zeros(400, np.int64)
    for far, expected in ((3.0, 3), (np.inf, 10), (0.5, 0)):
        assert ask_ray(tree.address, np.array([-0.75, 3.5, 2.5, 1.0, 0.0, 0.0]), far, found) == expected
    assert ask_ray(tree.address, np.array([10.75, 3.5, 2.5, -2.0, -0.0, 0.0]), 1.0, found) == 2
    assert ask_ray(tree.address, np.array([4.5, 3.5, 20.0, 0.0, 0.0, -1.0]), np.inf, found) == 4
    assert ask_ray(tree.address, np.array([4.5, 3.5, 20.0, 0.0, 0.0, 1.0]), np.inf, found) == 0
    assert ask_ray(tree.address, np.array([4.5, 30.5, 20.0, 0.0, 0.0, -1.0]), np.inf, found) == 0
    assert ask_ray(tree.address, np.array([4.5, 3.5, 2.5, 0.0, 0.0, 0.0]), np.inf, found) == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_small_scenes_and_short_lists(method, n):
    boxes = strewn("one place", n, np.random.default_rng(4))
    tree = Struct(build_scenery(boxes, np.arange(n), method))
    for room in (0, 3, 8):
        found = np.full(room, -1)
        assert ask_box(tree.address, np.array([0.5] * 6), found) == n
        assert ask_ray(tree.address, np.array([0.5] * 6), 1.0, found) == n
        assert (found >= 0).sum() == min(n, room)


@pytest.mark.parametrize("method", METHODS)
def test_the_trees_are_shallow(method):
    """20,000 boxes strewn evenly: a search that finds one box goes through a few tens of nodes."""
    low = np.random.default_rng(5).uniform(0, 500, (20_000, 3))
    made = build_scenery(np.hstack((low, low + 1.0)), np.arange(20_000), method)
    if method == "kdtree":
        assert made.kdtree.stack.size < 17
    elif method == "octree":
        assert made.octree.own.max() < 20
        assert made.octree.box.shape[0] < 20_000
    else:
        assert made.tree.height.max() < 24


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(ValueError, match="scenery by 'grid': there are tree, octree, kdtree"):
        build_scenery(np.zeros((0, 6)), np.zeros(0), "grid")
