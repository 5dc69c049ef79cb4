"""Distances between shapes by means that share nothing with the pair kernels: coal, support functions, and sampling.

- `coal_distances`: coal's signed distance and normal, pair by pair.
- `extents`: how far a shape reaches along a direction, in closed form. The overlap of two convex shapes along any
  direction is an upper bound of their depth, and the gap along any direction a lower bound of their distance.
- `signed`: distance of a point from the surface of any shape, negative inside: closed forms, and for hulls, meshes and
  fields a look at every triangle (nearest point after Ericson, if the ball about it is nearer than what was found; the
  inside by the solid angle of the surface, or by the height of a surface that is a graph over x, y).
- `core_distances`: a sphere, capsule, torus or link is a curve with a radius. Its distance from any shape is the least
  of `signed` along the curve, found from samples and golden sections between them, less the radius. Between two points
  that are nearer to each other than one of them is to the surface nobody changes sides.
"""

from __future__ import annotations

import math
from typing import Any

import coal
import numpy as np
from coal_peer import field_mesh

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind
from plant.collision.shape.shapes import Field, Hull, Mesh, Shape

SPHERE, CAPSULE, BOX, CYLINDER, CONE = (int(k) for k in (Kind.SPHERE, Kind.CAPSULE, Kind.BOX, Kind.CYLINDER, Kind.CONE))
PLANE, TORUS, LINK = int(Kind.PLANE), int(Kind.TORUS), int(Kind.LINK)
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def faces(shape: Shape) -> np.ndarray:
    """The triangles [t, 3, 3] of a hull, mesh or field in its frame; none of other shapes."""
    if isinstance(shape, (Hull, Mesh)):
        return np.ascontiguousarray((shape.vertices - shape.middle())[shape.triangles])
    if isinstance(shape, Field):
        vertices, triangles = field_mesh(shape)
        return vertices[triangles]
    return np.zeros((0, 3, 3))


def is_graph(shape: Shape) -> bool:
    """Whether a surface is ground: open, one height over each place."""
    return isinstance(shape, Field) or (isinstance(shape, Mesh) and _borders(shape.triangles))


def _borders(triangles: np.ndarray) -> bool:
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), 1)
    return bool((np.unique(edges, axis=0, return_counts=True)[1] == 1).any())


# coal


def coal_distances(one: list[Any], other: list[Any], pos: np.ndarray, rot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distance and normal (from the second to the first) of each pair at [n, 2, 3] and [n, 2, 3, 3]."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    distance, normal = np.zeros(len(pos)), np.zeros((len(pos), 3))
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        result.clear()
        places = [coal.Transform3s(rot[k, s], pos[k, s]) for s in range(2)]
        distance[k] = coal.distance(a, places[0], b, places[1], request, result)
        normal[k] = -result.normal
        if 0.0 < distance[k] < 1e3:  # of two meshes the normal is not set
            apart = result.getNearestPoint1() - result.getNearestPoint2()
            normal[k] = apart / math.sqrt(apart @ apart) if apart @ apart > 1e-18 else normal[k]
    return distance, np.where(np.isfinite(normal).all(1)[:, None], normal, 0.0)


# Support functions


def extents(kind: Kind, size: np.ndarray, which: np.ndarray, corners: list[np.ndarray], d: np.ndarray) -> np.ndarray:
    """How far shapes reach along the unit vectors `d` [n, 3] of their frames; `corners` are those of each variant."""
    x, y, z = d.T
    aside = np.hypot(x, y)
    r, h = size[:, 0], size[:, 1]
    match kind:
        case Kind.SPHERE:
            return r
        case Kind.CAPSULE:
            return r + h * np.abs(z)
        case Kind.BOX:
            return (size[:, :3] * np.abs(d)).sum(1)
        case Kind.CYLINDER:
            return r * aside + h * np.abs(z)
        case Kind.CONE:
            return np.maximum(h * z, r * aside - h * z)
        case Kind.PLANE:
            return np.where(z > 1.0 - 1e-9, 0.0, np.inf)
        case Kind.TORUS:
            return r * aside + h
        case Kind.LINK:
            return r * np.abs(x) + h * aside + size[:, 2]
    reach = np.zeros(len(d))
    for v in np.unique(which):
        mine = which == v
        reach[mine] = (corners[v].reshape(-1, 3) @ d[mine].T).max(0)
    return reach


# Signed distance of points


@inline
def _box(x, y, z, a, b, c):
    u, v, w = abs(x) - a, abs(y) - b, abs(z) - c
    out = math.sqrt(max(u, 0.0) ** 2 + max(v, 0.0) ** 2 + max(w, 0.0) ** 2)
    return out + min(max(u, v, w), 0.0)


@inline
def _cone(rho, z, r, h):
    """Of the triangle with its corners at (r, -h), (0, h), (-r, -h) of the half plane rho, z."""
    ex, ez = -r, 2.0 * h
    length = math.sqrt(ex * ex + ez * ez)
    t = min(max(((rho - r) * ex + (z + h) * ez) / (length * length), 0.0), 1.0)
    side = math.sqrt((rho - r - t * ex) ** 2 + (z + h - t * ez) ** 2)
    base = math.sqrt(max(rho - r, 0.0) ** 2 + (z + h) ** 2)
    outside = ((rho - r) * ez - (z + h) * ex) / length > 0.0 or z < -h
    return min(side, base) if outside else -min(side, base)


@inline
def _stadium(x, y, z, half, bend):
    u = x - min(max(x, -half), half)
    return math.sqrt((math.sqrt(u * u + y * y) - bend) ** 2 + z * z)


@kernel
def _to_triangle(t, px, py, pz):
    """Square of the distance of a point from a triangle (Ericson, Real-Time Collision Detection, 5.1.5)."""
    abx, aby, abz = t[1, 0] - t[0, 0], t[1, 1] - t[0, 1], t[1, 2] - t[0, 2]
    acx, acy, acz = t[2, 0] - t[0, 0], t[2, 1] - t[0, 1], t[2, 2] - t[0, 2]
    apx, apy, apz = px - t[0, 0], py - t[0, 1], pz - t[0, 2]
    d1, d2 = abx * apx + aby * apy + abz * apz, acx * apx + acy * apy + acz * apz
    bpx, bpy, bpz = px - t[1, 0], py - t[1, 1], pz - t[1, 2]
    d3, d4 = abx * bpx + aby * bpy + abz * bpz, acx * bpx + acy * bpy + acz * bpz
    cpx, cpy, cpz = px - t[2, 0], py - t[2, 1], pz - t[2, 2]
    d5, d6 = abx * cpx + aby * cpy + abz * cpz, acx * cpx + acy * cpy + acz * cpz
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        v, w = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        v, w = 1.0, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        v, w = 0.0, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v, w = d1 / (d1 - d3), 0.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v, w = 0.0, d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        v = 1.0 - w
    else:
        under = 1.0 / (va + vb + vc)
        v, w = vb * under, vc * under
    return (apx - v * abx - w * acx) ** 2 + (apy - v * aby - w * acy) ** 2 + (apz - v * abz - w * acz) ** 2


@kernel
def _is_inside(tri, px, py, pz):
    """Whether the surface goes round the point: its solid angle is 4 pi, not 0 (van Oosterom and Strackee)."""
    angle = 0.0
    for k in range(tri.shape[0]):
        t = tri[k]
        ax, ay, az = t[0, 0] - px, t[0, 1] - py, t[0, 2] - pz
        bx, by, bz = t[1, 0] - px, t[1, 1] - py, t[1, 2] - pz
        cx, cy, cz = t[2, 0] - px, t[2, 1] - py, t[2, 2] - pz
        a, b, c = (
            math.sqrt(ax * ax + ay * ay + az * az),
            math.sqrt(bx * bx + by * by + bz * bz),
            math.sqrt(cx * cx + cy * cy + cz * cz),
        )
        volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
        ab, bc, ca = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz, cx * ax + cy * ay + cz * az
        angle += 2.0 * math.atan2(volume, a * b * c + ab * c + bc * a + ca * b)
    return angle > 2.0 * math.pi


@kernel
def _is_under(tri, px, py, pz):
    """Whether the point is straight below one of the triangles, all of which look up."""
    for k in range(tri.shape[0]):
        t = tri[k]
        u = (t[1, 0] - t[0, 0]) * (py - t[0, 1]) - (t[1, 1] - t[0, 1]) * (px - t[0, 0])
        v = (t[2, 0] - t[1, 0]) * (py - t[1, 1]) - (t[2, 1] - t[1, 1]) * (px - t[1, 0])
        w = (t[0, 0] - t[2, 0]) * (py - t[2, 1]) - (t[0, 1] - t[2, 1]) * (px - t[2, 0])
        if u >= 0.0 and v >= 0.0 and w >= 0.0 and u + v + w > 0.0:
            return pz < (v * t[0, 2] + w * t[1, 2] + u * t[2, 2]) / (u + v + w)
    return False


def balls(triangles: np.ndarray) -> np.ndarray:
    """Centre and radius [t, 4] of a ball about each triangle [t, 3, 3]."""
    centre = triangles.mean(1)
    radius = np.linalg.norm(triangles - centre[:, None], axis=2).max(1, initial=0.0)
    return np.column_stack([centre, radius * (1.0 + 1e-12)])


@kernel
def _to_surface(tri, ball, x, y, z):
    """Distance of a point from the nearest triangle."""
    best, root = math.inf, math.inf
    for t in range(tri.shape[0]):
        dx, dy, dz, reach = x - ball[t, 0], y - ball[t, 1], z - ball[t, 2], root + ball[t, 3]
        if dx * dx + dy * dy + dz * dz < reach * reach:
            square = _to_triangle(tri[t], x, y, z)
            if square < best:
                best, root = square, math.sqrt(square)
    return root


@kernel
def signed(kind, size, tri, ball, graph, x, y, z, side):
    """Signed distance of a point in the frame of a shape; `graph`: its triangles are ground.

    `side`: 1 if it is known to be outside, -1 inside, 0 if it is to be found out.
    """
    rho = math.sqrt(x * x + y * y)
    if kind == SPHERE:
        return math.sqrt(rho * rho + z * z) - size[0]
    if kind == CAPSULE:
        return math.sqrt(rho * rho + max(abs(z) - size[1], 0.0) ** 2) - size[0]
    if kind == BOX:
        return _box(x, y, z, size[0], size[1], size[2])
    if kind == CYLINDER:
        return _box(rho, 0.0, z, size[0], size[0], size[1])
    if kind == CONE:
        return _cone(rho, z, size[0], size[1])
    if kind == PLANE:
        return z
    if kind == TORUS:
        return _stadium(x, y, z, 0.0, size[0]) - size[1]
    if kind == LINK:
        return _stadium(x, y, z, size[0], size[1]) - size[2]
    far = _to_surface(tri, ball, x, y, z)
    if side != 0:
        return side * far
    inside = _is_under(tri, x, y, z) if graph else _is_inside(tri, x, y, z)
    return -far if inside else far


@inline
def _turned_back(r, x, y, z):
    return (
        r[0, 0] * x + r[1, 0] * y + r[2, 0] * z,
        r[0, 1] * x + r[1, 1] * y + r[2, 1] * z,
        r[0, 2] * x + r[1, 2] * y + r[2, 2] * z,
    )


@kernel
def signed_many(kind, size, tri, ball, first, graph, which, pos, rot, point, out):
    """Signed distance of point k [n, 3] (world) from variant which[k] at pos[k], rot[k]."""
    for k in range(point.shape[0]):
        v, p, o = which[k], point[k], pos[k]
        x, y, z = _turned_back(rot[k], p[0] - o[0], p[1] - o[1], p[2] - o[2])
        mine = slice(first[v], first[v + 1])
        out[k] = signed(kind, size[v], tri[mine], ball[mine], graph[v], x, y, z, 0)


# Curves with a radius


@inline
def _on_core(kind, size, s):
    """The core at 0 <= s <= 1 of its length."""
    if kind == SPHERE:
        return 0.0, 0.0, 0.0
    if kind == CAPSULE:
        return 0.0, 0.0, (2.0 * s - 1.0) * size[1]
    half, bend = (0.0, size[0]) if kind == TORUS else (size[0], size[1])
    way, straight, bow = s * (4.0 * half + 2.0 * math.pi * bend), 2.0 * half, math.pi * bend
    if way < bow:
        return half + bend * math.sin(way / bend), -bend * math.cos(way / bend), 0.0
    if way < bow + straight:
        return half - (way - bow), bend, 0.0
    way -= bow + straight
    if way < bow:
        return -half - bend * math.sin(way / bend), bend * math.cos(way / bend), 0.0
    return way - bow - half, -bend, 0.0


@inline
def _at_core(kind, size, s, o, r, target, tsize, tri, ball, graph, side):
    """Signed distance of a place on the core, `o` and `r` being its frame in that of the target."""
    x, y, z = _on_core(kind, size, s)
    return signed(
        target,
        tsize,
        tri,
        ball,
        graph,
        o[0] + r[0, 0] * x + r[0, 1] * y + r[0, 2] * z,
        o[1] + r[1, 0] * x + r[1, 1] * y + r[1, 2] * z,
        o[2] + r[2, 0] * x + r[2, 1] * y + r[2, 2] * z,
        side,
    )


@inline
def _side(value, way):
    """On which side a place is that is at most `way` from one with the signed distance `value`; 0 = unknown."""
    return 0 if abs(value) <= 1.01 * way else 1 if value > 0.0 else -1


@kernel
def _least(kind, size, o, r, target, tsize, tri, ball, graph, samples, value):
    """Where on the core the signed distance is least: golden sections about every sample that is a local minimum."""
    if kind == SPHERE:
        return 0.0, _at_core(kind, size, 0.0, o, r, target, tsize, tri, ball, graph, 0)
    round_ = kind != CAPSULE
    best, place = math.inf, 0.0
    length = 2.0 * size[1] if kind == CAPSULE else 2.0 * math.pi * size[0]
    if kind == LINK:
        length = 4.0 * size[0] + 2.0 * math.pi * size[1]
    for k in range(samples + 1):
        side = _side(value[k - 1], length / samples) if k > 0 else 0
        value[k] = _at_core(kind, size, k / samples, o, r, target, tsize, tri, ball, graph, side)
        if value[k] < best:
            best, place = value[k], k / samples
    level = best + length / samples  # a distance falls no faster than the way along the core
    for k in range(samples + 1):
        before = value[k - 1] if k > 0 else value[samples - 1] if round_ else math.inf
        after = value[k + 1] if k < samples else value[1] if round_ else math.inf
        if value[k] > before or value[k] > after or value[k] > level:
            continue
        low, high, side = (k - 1.0) / samples, (k + 1.0) / samples, _side(value[k], length / samples)
        if not round_:
            low, high = max(low, 0.0), min(high, 1.0)
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        fa = _at_core(kind, size, a % 1.0 if round_ else a, o, r, target, tsize, tri, ball, graph, side)
        fb = _at_core(kind, size, b % 1.0 if round_ else b, o, r, target, tsize, tri, ball, graph, side)
        for _ in range(44):
            if fa < fb:
                high, b, fb = b, a, fa
                a = high - GOLDEN * (high - low)
                fa = _at_core(kind, size, a % 1.0 if round_ else a, o, r, target, tsize, tri, ball, graph, side)
            else:
                low, a, fa = a, b, fb
                b = low + GOLDEN * (high - low)
                fb = _at_core(kind, size, b % 1.0 if round_ else b, o, r, target, tsize, tri, ball, graph, side)
        s, f = (a, fa) if fa < fb else (b, fb)
        if f < best:
            best, place = f, s % 1.0 if round_ else s
    return place, best


@kernel
def core_distances(
    kind, size, which, pos, rot, target, tsize, tri, ball, first, graph, other, tpos, trot, samples, out
):
    """Least signed distance of the core of variant which[k] from variant other[k]; out [n, 7]: it, place, gradient.

    Place and gradient are in the world; the gradient is by central differences.
    """
    value, r, o = np.zeros(samples + 1), np.zeros((3, 3)), np.zeros(3)
    for k in range(out.shape[0]):
        v = other[k]
        mine, theirs = size[which[k]], tsize[v]
        corners, about = tri[first[v] : first[v + 1]], ball[first[v] : first[v + 1]]
        for c in range(3):
            r[0, c], r[1, c], r[2, c] = _turned_back(trot[k], rot[k, 0, c], rot[k, 1, c], rot[k, 2, c])
        o[0], o[1], o[2] = _turned_back(trot[k], pos[k, 0] - tpos[k, 0], pos[k, 1] - tpos[k, 1], pos[k, 2] - tpos[k, 2])
        s, out[k, 0] = _least(kind, mine, o, r, target, theirs, corners, about, graph[v], samples, value)
        x, y, z = _on_core(kind, mine, s)
        p = o + r @ np.array([x, y, z])
        gradient = np.zeros(3)
        step = 1e-6 * (mine[0] + mine[1] + mine[2])
        for c in range(3):
            q = p.copy()
            q[c] += step
            ahead = signed(target, theirs, corners, about, graph[v], q[0], q[1], q[2], 0)
            q[c] -= 2.0 * step
            behind = signed(target, theirs, corners, about, graph[v], q[0], q[1], q[2], 0)
            gradient[c] = (ahead - behind) / (2.0 * step)
        out[k, 1:4] = tpos[k] + trot[k] @ p
        out[k, 4:7] = trot[k] @ gradient
