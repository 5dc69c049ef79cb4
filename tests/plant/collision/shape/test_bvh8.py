"""The wide tree over triangles: its boxes, its walk, and spheres that are found through it.

Truth: comparisons of all triangles by numpy, coal's distances to its own trees.
"""

from __future__ import annotations

import coal
import numpy as np
import pytest
import trimesh
from coal_peer import mesh_twin
from mesh_scenes import Scene, block, grid, hills

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.narrowphase.node_pair import first_of, is_low
from plant.collision.shape import bvh8
from plant.collision.shape import mesh as meshes
from plant.collision.shape.mesh import MeshError, build_meshes, view_meshes

SIZES = (1, 2, 7, 8, 9, 63, 64, 65, 513, 1200)


@kernel
def found(address, m, x, y, z, reach, numbers):
    """Numbers of the triangles that a walk finds."""
    mesh, count = view_meshes(address), 0
    level, node, waiting = mesh.wide_level[m, bvh8.LEVELS], 0, 1
    bounds = bvh8.around((x - reach, y - reach, z - reach), (x + reach, y + reach, z + reach))
    while True:
        level, node, waiting, first, met = bvh8.next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            return count
        while met != 0:
            numbers[count] = first + bvh8.lowest(met)
            met &= met - 1
            count += 1


@kernel
def refit(address, m):
    meshes.refit(view_meshes(address), m)


def loose(count: int, seed: int, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Triangles that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(0, 0.05, (count, 3, 3)) + offset
    return corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def ball() -> tuple[np.ndarray, np.ndarray]:
    made = trimesh.creation.icosphere(subdivisions=4, radius=2.0)
    return np.array(made.vertices), np.array(made.faces)


def needles() -> tuple[np.ndarray, np.ndarray]:
    """A surface of triangles a hundred times as long as they are wide."""
    vertex, triangle = grid(150, 20.0, lambda x, y: 0.02 * hills(x, y))
    return vertex * (0.1, 10.0, 1.0), triangle


def corners_of(made: meshes.Meshes, m: int) -> np.ndarray:
    return made.vertex[made.triangle[made.first_triangle[m] : made.first_triangle[m + 1]]]


def check_boxes(made: meshes.Meshes, m: int) -> None:
    """Every node's boxes hold the triangles of its branches, and are larger by no more than a rounding."""
    corners, run = corners_of(made, m), 1
    for level in range(made.wide_level[m, bvh8.LEVELS]):
        for branch in range(-(-len(corners) // run)):
            node, k = made.wide_level[m, level] + branch // 8, branch % 8
            box = made.wide[node].reshape(6, 8)[:, k].astype(float)
            below = corners[branch * run : (branch + 1) * run].reshape(-1, 3)
            low, high = below.min(axis=0), below.max(axis=0)
            assert (box[:3] <= low).all()
            assert (box[3:] >= high).all()
            np.testing.assert_allclose(box, (*low, *high), rtol=5e-7, atol=1e-40)
        for k in range(-(-len(corners) // run) % 8 or 8, 8):
            assert (made.wide[node].reshape(6, 8)[:, k] == [np.inf] * 3 + [-np.inf] * 3).all()
        run *= 8


@pytest.mark.parametrize("offset", [0.0, 1234.5, -7e5])
def test_boxes_hold_their_branches_and_hardly_more(offset):
    made = build_meshes([loose(n, n, offset) for n in SIZES])
    for m in range(len(SIZES)):
        check_boxes(made, m)


def test_boxes_hold_their_branches_after_a_refit():
    made = build_meshes([loose(n, n) for n in SIZES])
    record = Struct(made)
    before = made.wide.copy()
    made.vertex[:] += np.random.default_rng(2).normal(0, 0.1, made.vertex.shape)
    for m in range(len(SIZES)):
        refit(record.address, m)
        check_boxes(made, m)
    assert not np.array_equal(before, made.wide)


def test_rows_are_corners_and_the_vertices_across():
    made = build_meshes([grid(12, 1.0, hills), block(1, 2, 3)])
    assert np.array_equal(made.row, np.hstack([made.triangle, made.across]))
    assert (made.row < 0).any()


@pytest.mark.parametrize("count", [*SIZES, 4097])
def test_every_branch_is_a_branch_of_the_binary_tree(count):
    """So its triangles were put together because they are close to each other."""
    made = build_meshes([block(1, 1, 1), loose(count, 3)])
    begin, end = made.first_triangle[1:3]
    link = made.link[made.first_node[1] : made.first_node[2]]
    last = made.link[link[:, meshes.SKIP_TO] - 1]
    spans = set(zip(link[:, meshes.FIRST], last[:, meshes.FIRST] + last[:, meshes.COUNT], strict=True))
    for level in range(1, made.wide_level[1, bvh8.LEVELS]):
        runs = np.arange(begin, end, 8**level)
        assert set(zip(runs, np.minimum(runs + 8**level, end), strict=True)) <= spans


@kernel
def low_nodes(address, numbers):
    """The first triangle of every low node, and how many there are."""
    mesh, count = view_meshes(address), 0
    for node in range(mesh.parent.size):
        above = mesh.parent[node]
        if is_low(mesh, node) and (above < 0 or not is_low(mesh, above)):
            numbers[count] = first_of(mesh, node)
            count += 1
    return count


@pytest.mark.parametrize("count", [*SIZES, 4097])
def test_low_nodes_of_the_binary_tree_are_the_leaves(count):
    """Walks down two binary trees end there and ask for all eight triangles at once."""
    record, numbers = Struct(build_meshes([loose(count, count)])), np.zeros(count, np.int64)
    low = low_nodes(record.address, numbers)
    assert sorted(numbers[:low]) == list(range(0, count, bvh8.WIDE))


@pytest.mark.parametrize("offset", [0.0, 1234.5])
def test_walk_finds_the_triangles_whose_boxes_meet_in_their_order(offset):
    made = build_meshes([loose(n, n, offset) for n in SIZES])
    record, rng, numbers, some = Struct(made), np.random.default_rng(8), np.zeros(2000, np.int64), 0
    for m in range(len(SIZES)):
        corners = corners_of(made, m)
        low, high = corners.min(axis=1), corners.max(axis=1)
        for reach in (0.0, 0.02, 0.3, 5.0):
            for c in rng.uniform(-1.2, 1.2, (25, 3)) + offset:
                met = ((low <= c + reach) & (high >= c - reach)).all(axis=1)
                hair = 1e-6 * (abs(offset) + 2.0)
                maybe = ((low <= c + reach + hair) & (high >= c - reach - hair)).all(axis=1)
                mine = numbers[: found(record.address, m, *c, reach, numbers)] - made.first_triangle[m]
                assert (np.diff(mine) > 0).all()
                assert set(np.flatnonzero(met)) <= set(mine) <= set(np.flatnonzero(maybe))
                some += len(mine) > 0
    assert some > 200


def test_walk_finds_nothing_far_away_and_every_triangle_once_without_bounds():
    made = build_meshes([loose(100, 1)])
    record, numbers = Struct(made), np.zeros(2000, np.int64)
    for c in (1e300, -1e300, np.inf, np.nan):
        assert found(record.address, 0, c, 0.0, 0.0, 0.1, numbers) == 0
    assert found(record.address, 0, 0.0, 0.0, 0.0, 1e300, numbers) == 100


def test_levels_of_small_meshes_and_refusal_of_a_mesh_with_too_many():
    _, table = bvh8.lay_out([1, 64, 65])
    assert table[:, bvh8.LEVELS].tolist() == [1, 2, 3]
    assert table[:, 0].tolist() == [0, 1, 1 + 8 + 1]
    assert table[2, 1:3].tolist() == [10 + 9, 10 + 9 + 2]
    many = np.broadcast_to(np.arange(3), (bvh8.MOST + 1, 3))
    with pytest.raises(MeshError, match="16777217 triangles; cut it into meshes of 16777216 at most"):
        build_meshes([(np.eye(3), many)])


@pytest.mark.parametrize("surface", [lambda: grid(150, 20.0, hills), ball, needles], ids=["terrain", "ball", "needles"])
@pytest.mark.parametrize("count", [700, pytest.param(34000, marks=pytest.mark.slow)])
def test_sphere_is_as_far_as_coal_says(surface, count):
    """Spheres on the outside of a triangle somewhere: the gap to the mesh, and none beyond the margin."""
    vertex, triangle = surface()
    made, theirs = build_meshes([(vertex, triangle)]), mesh_twin(vertex, triangle)
    scene = Scene([0, 9], [[1.0], [1]], made)
    inner = np.flatnonzero((abs(vertex[triangle])[:, :, :2] < 0.8 * vertex[:, :2].max(axis=0)).all(axis=(1, 2)))
    where = np.arange(len(triangle)) if made.closed[0] else inner  # a sphere under a border is nobody's
    rng, still, margin, seen = np.random.default_rng(21), coal.Transform3s(), 0.02, 0
    for _ in range(count):
        corners = vertex[triangle[rng.choice(where)]]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        radius = rng.uniform(0.02, 0.2)
        c = rng.dirichlet((1, 1, 1)) @ corners + normal / np.linalg.norm(normal) * radius * rng.uniform(1.0, 1.3)
        scene.shape.size[0, 0] = radius
        scene.put(0, c)
        n = scene.touch(margin)
        gap = coal.distance(
            coal.Sphere(radius),
            coal.Transform3s(np.eye(3), c),
            theirs,
            still,
            coal.DistanceRequest(),
            coal.DistanceResult(),
        )
        if 1e-4 < gap < margin - 1e-6:
            seen += n > 0
            assert abs(scene.out.depth[:n].max(initial=-np.inf) + gap) < 1e-6
        elif gap > margin + 1e-6:
            assert n == 0
    assert seen > 0.2 * count
