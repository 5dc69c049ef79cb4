"""Rays. Truth: MuJoCo's rays, roots of polynomials by numpy, all triangles one by one, a fine search."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import trimesh
from mesh_scenes import Scene, grid, hills, random_turn
from numpy.polynomial import Polynomial

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import Kind, view_placed, view_shapes
from plant.collision.narrowphase import ray
from plant.collision.narrowphase.field import build_fields, view_fields
from plant.collision.shape.hull import build_hulls, view_hulls
from plant.collision.shape.mesh import build_meshes, view_meshes

N, HALF = 17, 2.0
POINTS = np.random.default_rng(1).normal(size=(30, 3)) * (0.5, 0.4, 0.3)
POINTS -= 0.5 * (POINTS.min(axis=0) + POINTS.max(axis=0))
SURFACE = grid(N, HALF, hills)


ASSETS = [
    Struct(build_hulls([POINTS])),
    Struct(build_meshes([SURFACE])),
    Struct(build_fields([(SURFACE[0][:, 2].reshape(N, N), 2 * HALF / (N - 1), 2 * HALF / (N - 1))])),
]


@kernel
def many(s, p, h, m, f, origin, direction, far, mask, which, distance, normal):
    shape, placed, hull, mesh, field = view_shapes(s), view_placed(p), view_hulls(h), view_meshes(m), view_fields(f)
    for k in range(which.size):
        o, d = origin[k], direction[k]
        which[k], distance[k] = -1, far
        for i in range(shape.kind.size):
            if shape.enabled[i] == 0 or shape.group[i] & mask == 0:
                continue
            t, n = ray.ray_shape(
                shape, placed, hull, mesh, field, i, (o[0], o[1], o[2]), (d[0], d[1], d[2]), distance[k]
            )
            if t < distance[k]:
                which[k], distance[k] = i, t
                normal[k, 0], normal[k, 1], normal[k, 2] = n


def cast(scene, origin, direction, far=np.inf, mask=1):
    n = len(origin)
    which, distance, normal = np.zeros(n, np.int64), np.zeros(n), np.zeros((n, 3))
    a = [r.address for r in (*scene.records[:2], *ASSETS)]
    many(*a, origin, direction, far, mask, which, distance, normal)
    return which, distance, normal


def rays(rng, n, spread):
    """Half of them aimed at the shape, from outside and inside."""
    origin = rng.normal(size=(n, 3)) * 1.5
    aim = rng.normal(size=(n, 3)) * spread - origin
    return origin, aim / np.linalg.norm(aim, axis=1)[:, None]


def inside_ray_brute(triangles, o, d):
    """Nearest crossing of all triangles: plane by plane, then the three edges."""
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    n = np.cross(b - a, c - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = ((a - o) * n).sum(axis=1) / (n @ d)
    ok = np.isfinite(t) & (t >= 0)
    p = o + np.where(ok, t, 0)[:, None] * d
    for u, v in ((a, b), (b, c), (c, a)):
        ok &= (np.cross(v - u, p - u) * n).sum(axis=1) >= 0
    if not ok.any():
        return np.inf, None
    k = np.flatnonzero(ok)[t[ok].argmin()]
    return t[k], n[k] / np.linalg.norm(n[k])


MUJOCO = {
    Kind.SPHERE: ("sphere", [0.5], "0.5"),
    Kind.CAPSULE: ("capsule", [0.3, 0.5], "0.3 0.5"),
    Kind.BOX: ("box", [0.3, 0.4, 0.5], "0.3 0.4 0.5"),
    Kind.CYLINDER: ("cylinder", [0.4, 0.5], "0.4 0.5"),
    Kind.PLANE: ("plane", [], "0 0 1"),
}


@pytest.mark.parametrize("kind", MUJOCO)
def test_round_and_flat_shapes_as_mujoco_sees_them(kind):
    name, size, theirs = MUJOCO[kind]
    rng = np.random.default_rng(int(kind))
    scene = Scene([kind], [size])
    turn, at = random_turn(rng), rng.normal(size=3) * 0.2
    scene.put(0, at, turn)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, turn.ravel())
    text = (
        f'<mujoco><worldbody><geom type="{name}" size="{theirs}" pos="{at[0]} {at[1]} {at[2]}" '
        f'quat="{quat[0]} {quat[1]} {quat[2]} {quat[3]}"/></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    origin, direction = rays(rng, 2000, 0.5)
    which, distance, normal = cast(scene, origin, direction)
    hits, geom = 0, np.zeros(1, np.int32)
    for k in range(len(origin)):
        if distance[k] == 0.0:
            continue  # from inside MuJoCo finds the way out
        t = mujoco.mj_ray(model, data, origin[k], direction[k], None, 1, -1, geom, None)
        assert (t >= 0) == (which[k] == 0)
        if t >= 0:
            hits += 1
            assert abs(distance[k] - t) < 1e-9 * max(1.0, t)
            assert normal[k] @ direction[k] < 1e-9
            assert abs(np.linalg.norm(normal[k]) - 1) < 1e-9
    assert hits > 300


def signed_numpy(kind, size, p):
    """Distances of points to shapes, negative inside, written as sums of squares."""
    rho = np.hypot(p[:, 0], p[:, 1])
    if kind == Kind.TORUS:
        return np.hypot(rho - size[0], p[:, 2]) - size[1]
    if kind == Kind.LINK:
        x = p[:, 0] - np.clip(p[:, 0], -size[0], size[0])
        return np.hypot(np.hypot(x, p[:, 1]) - size[1], p[:, 2]) - size[2]
    if kind == Kind.CONE:
        return np.maximum(-size[1] - p[:, 2], 2 * size[1] * rho - size[0] * (size[1] - p[:, 2]))
    planes = ASSETS[0].content.plane
    return (p @ planes[:, :3].T - planes[:, 3]).max(axis=1)


@pytest.mark.parametrize(
    ("kind", "size"),
    [(Kind.CONE, [0.4, 0.5]), (Kind.HULL, [1]), (Kind.TORUS, [0.7, 0.2]), (Kind.LINK, [0.4, 0.3, 0.12])],
)
def test_other_shapes_as_a_fine_search_sees_them(kind, size):
    rng = np.random.default_rng(int(kind))
    scene = Scene([kind], [size])
    turn, at = random_turn(rng), rng.normal(size=3) * 0.2
    scene.put(0, at, turn)
    origin, direction = rays(rng, 1000, 0.5)
    which, distance, normal = cast(scene, origin, direction)
    hits, along = 0, np.linspace(0, 8, 16001)
    for k in range(len(origin)):
        p = (origin[k] + along[:, None] * direction[k] - at) @ turn
        inside = signed_numpy(kind, size, p) <= 0
        if not inside.any():
            if which[k] == 0:  # thinner than the step of the search
                q = (origin[k] + distance[k] * direction[k] - at) @ turn
                assert abs(signed_numpy(kind, size, q[None])[0]) < 1e-9
            continue
        hits += 1
        assert which[k] == 0
        first = inside.argmax()
        if first == 0:
            assert distance[k] == 0.0
            continue
        assert along[first - 1] - 1e-9 <= distance[k] <= along[first] + 1e-9
        q = (origin[k] + distance[k] * direction[k] - at) @ turn
        assert abs(signed_numpy(kind, size, q[None])[0]) < 1e-9
        step = q + 1e-6 * (turn.T @ normal[k])
        assert signed_numpy(kind, size, step[None])[0] > 0
        assert normal[k] @ direction[k] < 1e-6
    assert hits > 200


def test_torus_at_the_roots_that_numpy_finds():
    ring, wire = 1.0, 0.4
    scene = Scene([Kind.TORUS], [[ring, wire]])
    rng, hits = np.random.default_rng(5), 0
    origin, direction = rays(rng, 1500, 1.0)
    origin *= 2.0
    which, distance, _ = cast(scene, origin, direction)
    for k in range(len(origin)):
        x, y, z = (Polynomial((origin[k, i], direction[k, i])) for i in range(3))
        square = x * x + y * y + z * z + (ring**2 - wire**2)
        roots = (square * square - 4 * ring**2 * (x * x + y * y)).roots()
        real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
        start = np.hypot(np.hypot(*origin[k, :2]) - ring, origin[k, 2]) < wire
        if start:
            assert distance[k] == 0.0
        elif (real >= 0).any():
            hits += 1
            assert abs(distance[k] - real[real >= 0][0]) < 1e-6
        elif (np.abs(roots.imag) > 1e-4).all() or (real < 0).all():
            assert which[k] == -1
    assert hits > 200


@pytest.mark.parametrize("kind", [Kind.MESH, Kind.FIELD])
def test_surfaces_as_all_triangles_one_by_one(kind):
    rng = np.random.default_rng(int(kind))
    scene = Scene([kind], [[1]])
    turn, at = random_turn(rng), rng.normal(size=3)
    scene.put(0, at, turn)
    triangles, hits = SURFACE[0][SURFACE[1]], 0
    origin, direction = rays(rng, 2000, 0.8)
    world = origin @ turn.T + at, direction @ turn.T
    which, distance, normal = cast(scene, *(np.ascontiguousarray(w) for w in world))
    for k in range(len(origin)):
        t, n = inside_ray_brute(triangles, origin[k], direction[k])
        if kind == Kind.FIELD and distance[k] == 0.0:
            up, _ = inside_ray_brute(triangles, origin[k], np.array((0, 0, 1.0)))
            assert np.isfinite(up)
            continue
        assert (which[k] == 0) == np.isfinite(t)
        if np.isfinite(t):
            hits += 1
            assert abs(distance[k] - t) < 1e-9
            np.testing.assert_allclose(normal[k], turn @ n, atol=1e-9)
    assert hits > 500


@pytest.mark.parametrize("kind", [Kind.MESH, Kind.FIELD])
def test_rays_along_the_grid_and_through_its_corners(kind):
    """Straight down on corners, edges and diagonals, and level along grid lines: none slips through."""
    scene = Scene([kind], [[1]])
    corners = SURFACE[0][(np.abs(SURFACE[0][:, :2]) < 1.9).all(axis=1)]
    step = 2 * HALF / (N - 1)
    for shift in ((0, 0), (0.5 * step, 0), (0, 0.5 * step), (0.5 * step, 0.5 * step), (1e-13, 0)):
        origin = np.ascontiguousarray(corners + np.array((*shift, 0)))
        origin[:, 2] = 3.0
        down = np.tile((0.0, 0.0, -1.0), (len(origin), 1))
        which, distance, _ = cast(scene, origin, down)
        assert (which == 0).all()
        if shift == (0, 0):
            np.testing.assert_allclose(distance, 3.0 - corners[:, 2], atol=1e-12)
    origin = np.array([(-3.0, y * step, 0.0) for y in range(-7, 8)])
    which, _, _ = cast(scene, origin, np.tile((1.0, 0.0, 0.0), (15, 1)))
    assert (which == 0).sum() >= 14


def test_nearest_of_several_and_only_of_the_groups_asked_for():
    scene = Scene([Kind.SPHERE, Kind.BOX, Kind.PLANE], [[0.5], [0.5, 0.5, 0.5], []])
    scene.put(0, (0, 0, 2))
    scene.put(1, (0, 0, 4))
    scene.shape.group[:] = (1, 2, 4)
    origin, down = np.array([[0.0, 0, 9]]), np.array([[0.0, 0, -1]])
    for mask, who, far in ((7, 1, 4.5), (5, 0, 6.5), (4, 2, 9.0), (8, -1, np.inf)):
        which, distance, normal = cast(scene, origin, down, mask=mask)
        assert which[0] == who
        assert distance[0] == far
        if who >= 0:
            np.testing.assert_allclose(normal[0], (0, 0, 1), atol=1e-12)
    assert cast(scene, origin, down, far=4.0)[0][0] == -1
    scene.shape.enabled[1] = 0
    assert cast(scene, origin, down, mask=7)[0][0] == 0


def test_hull_is_hit_where_trimesh_says_it_is_on_the_surface():
    scene, rng = Scene([Kind.HULL], [[1]]), np.random.default_rng(9)
    origin, direction = rays(rng, 300, 0.2)
    which, distance, _ = cast(scene, origin, direction)
    triangles = np.asarray(trimesh.convex.convex_hull(POINTS).triangles)
    out = (which == 0) & (distance > 0)
    assert out.sum() > 50
    for k in np.flatnonzero(out):
        p = origin[k] + distance[k] * direction[k]
        q = trimesh.triangles.closest_point(triangles, np.tile(p, (len(triangles), 1)))
        assert np.linalg.norm(q - p, axis=1).min() < 1e-9
