"""Height fields: their samples, and spheres and capsules against them.

A field is a grid of heights over a rectangle, the ground below it is solid. Each cell is two triangles, parted from its
low corner to its high one:

    (x, y+1) ---- (x+1, y+1)
        |    1  /   |
        |     /     |            corner (x, y): x in 0 .. nx - 1, y in 0 .. ny - 1
        |   /   0   |
    (x, y) ------ (x+1, y)

The origin of the frame is the middle of the rectangle; heights are z in it. Which triangles are near follows from the
position alone, so that there is no tree, and a height may change at any time (`set_height`) without anything else
to be done. What is not above the rectangle is not touched, except for a rim that a sphere overlaps from above.

The contacts are those of mesh_round.py: local minima of the distance to the surface, with the normals that no
neighbour has a better claim to. A core below the surface is lifted out through the closest point, from any depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, I1, viewer
from plant.collision.narrowphase.manifold import add_point, manifold_to_world
from plant.collision.narrowphase.mesh_capsule import between
from plant.collision.narrowphase.mesh_round import SPREAD
from plant.collision.shape.mesh import FLAT
from plant.collision.shape.triangle import CORNER, FACE, behind, bend, closest_point
from plant.collision.vec3 import along, cross, dot, point_to_local, sub, times, unit


class Fields(NamedTuple):
    """All height fields of a world, one after the other."""

    height: F1  # [h] sample (x, y) of field f is height[first[f] + x * ny[f] + y]
    first: I1  # [f + 1]
    nx: I1  # [f]
    ny: I1  # [f]
    step: F2  # [f, 2] spacing of the samples along x and y


view_fields = viewer(Fields)


class FieldError(ValueError):
    """A height field that cannot be used."""


def build_fields(fields: Sequence[tuple[Any, float, float]]) -> Fields:
    """The arrays of fields, each (heights [nx, ny], spacing along x, spacing along y) [m]."""
    heights: list[np.ndarray] = []
    for f, (given, dx, dy) in enumerate(fields):
        height = np.asarray(given, np.float64)
        if height.ndim != 2 or min(height.shape) < 2:
            raise FieldError(f"field {f}: heights must be an array of at least 2 x 2, not {height.shape}")
        if not np.isfinite(height).all():
            x, y = np.argwhere(~np.isfinite(height))[0]
            raise FieldError(f"field {f}: the height of sample ({x}, {y}) is {height[x, y]}, not a finite number")
        if not (np.isfinite([dx, dy]).all() and dx > 0 and dy > 0):
            raise FieldError(f"field {f}: the spacing must be positive, not {dx} by {dy}")
        heights.append(height)
    return Fields(
        height=np.concatenate([h.ravel() for h in heights] or [np.zeros(0)]),
        first=np.cumsum([0] + [h.size for h in heights]).astype(np.int64),
        nx=np.array([h.shape[0] for h in heights], np.int64),
        ny=np.array([h.shape[1] for h in heights], np.int64),
        step=np.array([(dx, dy) for _, dx, dy in fields], np.float64).reshape(-1, 2),
    )


@kernel
def set_height(field, f, x, y, z):
    """Change one sample; the next search sees it."""
    field.height[field.first[f] + x * field.ny[f] + y] = z


@inline
def sample(field, f, x, y):
    """The corner (x, y)."""
    nx, ny = field.nx[f], field.ny[f]
    return (
        (x - 0.5 * (nx - 1)) * field.step[f, 0],
        (y - 0.5 * (ny - 1)) * field.step[f, 1],
        field.height[field.first[f] + x * ny + y],
    )


@inline
def is_sample(field, f, x, y):
    """Whether there is a corner (x, y)."""
    return 0 <= x < field.nx[f] and 0 <= y < field.ny[f]


@inline
def cells(field, f, low_x, low_y, high_x, high_y):
    """First and one past the last cell along x and y that a rectangle touches."""
    nx, ny = field.nx[f], field.ny[f]
    dx, dy = field.step[f, 0], field.step[f, 1]
    x0 = math.floor(min(max(low_x / dx + 0.5 * (nx - 1), 0.0), 1.0 * nx))
    y0 = math.floor(min(max(low_y / dy + 0.5 * (ny - 1), 0.0), 1.0 * ny))
    x1 = math.floor(min(max(high_x / dx + 0.5 * (nx - 1), -1.0), nx - 2.0)) + 1
    y1 = math.floor(min(max(high_y / dy + 0.5 * (ny - 1), -1.0), ny - 2.0)) + 1
    return int(x0), int(y0), int(x1), int(y1)


@inline
def highest(field, f, x, y):
    """The highest corner of the cell (x, y), or of what there is of it at the far border."""
    ny = field.ny[f]
    at = field.first[f] + x * ny + y
    right = ny if x < field.nx[f] - 1 else 0
    up = 1 if y < ny - 1 else 0
    h = field.height
    return max(h[at], h[at + right], h[at + up], h[at + right + up])


@inline
def triangle(field, f, x, y, k):
    """The corners of triangle `k` of cell (x, y)."""
    a, c = sample(field, f, x, y), sample(field, f, x + 1, y + 1)
    if k == 0:
        return a, sample(field, f, x + 1, y), c
    return a, c, sample(field, f, x, y + 1)


@inline
def apex(x, y, k, edge):
    """The third corner of the triangle across an edge of triangle `k` of cell (x, y); it may lie outside the field."""
    if k == 0:
        if edge == 0:
            return x, y - 1
        if edge == 1:
            return x + 2, y + 1
        return x, y + 1
    if edge == 0:
        return x + 1, y
    if edge == 1:
        return x + 1, y + 2
    return x - 1, y


@inline
def corner_of(x, y, k, i):
    """Corner `i` of triangle `k` of cell (x, y)."""
    if i == 0:
        return x, y
    if i == 1:
        return x + 1, y + k
    return x + 1 - k, y + 1


@inline
def below(field, f, p):
    """Whether `p` is above the rectangle and under the surface, and the cell and triangle there."""
    nx, ny = field.nx[f], field.ny[f]
    u, v = p[0] / field.step[f, 0] + 0.5 * (nx - 1), p[1] / field.step[f, 1] + 0.5 * (ny - 1)
    if not (0.0 <= u <= nx - 1.0 and 0.0 <= v <= ny - 1.0):
        return False, -1, 0, 0
    x, y = min(int(u), nx - 2), min(int(v), ny - 2)
    u, v = u - x, v - y
    k = 0 if u >= v else 1
    at = field.first[f] + x * ny + y
    a, c = field.height[at], field.height[at + ny + 1]
    if k == 0:
        b = field.height[at + ny]
        z = a + u * (b - a) + v * (c - b)
    else:
        b = field.height[at + 1]
        z = a + v * (b - a) + u * (c - b)
    return p[2] < z, x, y, k


@kernel
def sphere_field(shape, placed, field, i, j, margin, out):
    """A sphere against a height field."""
    p = placed.pos[i]
    c = point_to_local(placed, j, (p[0], p[1], p[2]))
    return manifold_to_world(placed, j, out, touch_ball(field, shape.asset[j], c, shape.size[i, 0], margin, out, 0, 0))


@kernel
def capsule_field(shape, placed, field, i, j, margin, out):
    """A capsule against a height field: its ends as spheres, and its core against ridges in between."""
    f, radius, half = shape.asset[j], shape.size[i, 0], shape.size[i, 1]
    p, r = placed.pos[i], placed.rot[i]
    a = point_to_local(placed, j, (p[0] - half * r[0, 2], p[1] - half * r[1, 2], p[2] - half * r[2, 2]))
    b = point_to_local(placed, j, (p[0] + half * r[0, 2], p[1] + half * r[1, 2], p[2] + half * r[2, 2]))
    count = touch_ball(field, f, a, radius, margin, out, 0, 0)
    count = touch_ball(field, f, b, radius, margin, out, count, 1)
    reach = radius + margin
    x0, y0, x1, y1 = cells(
        field,
        f,
        min(a[0], b[0]) - reach,
        min(a[1], b[1]) - reach,
        max(a[0], b[0]) + reach,
        max(a[1], b[1]) + reach,
    )
    lowest = min(a[2], b[2]) - reach
    for x in range(x0, x1 + 1):
        for y in range(y0, y1 + 1):
            if highest(field, f, x, y) < lowest:
                continue
            for k in range(3):
                count = _over_ridge(field, f, x, y, k, a, b, radius, margin, out, count)
    return manifold_to_world(placed, j, out, count)


@kernel
def touch_ball(field, f, c, radius, margin, out, count, tag):
    """List where a sphere at `c` (in the field's frame) touches field `f`; returns the new count."""
    reach = radius + margin
    limit = reach * reach
    inside, x, y, k = below(field, f, c)
    x0, y0, x1, y1 = cells(field, f, c[0] - reach, c[1] - reach, c[0] + reach, c[1] + reach)
    best, owner, where, foot = limit, -1, FACE, c
    for cx in range(x0, x1):
        for cy in range(y0, y1):
            a, b = sample(field, f, cx, cy), sample(field, f, cx + 1, cy)
            d, e = sample(field, f, cx + 1, cy + 1), sample(field, f, cx, cy + 1)
            if c[2] - reach > max(a[2], b[2], d[2], e[2]) or c[2] + reach < min(a[2], b[2], d[2], e[2]):
                continue
            for ck in range(2):
                u, v, w = (a, b, d) if ck == 0 else (a, d, e)
                region, px, py, pz = closest_point(c, u, v, w)
                way = sub(c, (px, py, pz))
                square = dot(way, way)
                if square > limit:
                    continue
                if inside:
                    if square < best:
                        best, owner, where = square, (cx * field.ny[f] + cy) * 2 + ck, region
                        foot = (px, py, pz)
                else:
                    n = unit(cross(sub(v, u), sub(w, u)))
                    count = _above(field, f, cx, cy, ck, region, (px, py, pz), way, n, radius, out, count, tag)
    if not inside:
        return count
    if owner >= 0:
        x, y, k = owner // 2 // field.ny[f], owner // 2 % field.ny[f], owner % 2
    a, b, d = triangle(field, f, x, y, k)
    n = unit(cross(sub(b, a), sub(d, a)))
    size = dot(sub(a, c), n)
    if owner >= 0:
        size = math.sqrt(best)
        if where != FACE and size > 1e-9 * radius:
            n = times(1.0 / size, sub(foot, c))
    depth = radius + size
    middle = along(c, 0.5 * (size - radius), n)
    return add_point(out, count, middle, n, depth, _name(field, f, x, y, k) + SPREAD * tag, 1e-6 * radius)


@inline
def _name(field, f, x, y, k):
    return 8 * ((x * field.ny[f] + y) * 2 + k)


@kernel
def _above(field, f, x, y, k, region, foot, d, n, radius, out, count, tag):
    """A centre above a face, an edge or a corner: a contact unless a neighbour is nearer."""
    if dot(d, n) < 0.0:
        return count
    feature = _name(field, f, x, y, k) + region
    if region == FACE:
        depth = radius - dot(d, n)
        return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)
    if region < CORNER:
        u, v = apex(x, y, k, region - 1)
        if is_sample(field, f, u, v):
            e, g = corner_of(x, y, k, region - 1), corner_of(x, y, k, region % 3)
            a, b = sample(field, f, e[0], e[1]), sample(field, f, g[0], g[1])
            if not behind(d, a, b, sample(field, f, u, v)):
                return count
    else:
        u, v = corner_of(x, y, k, region - CORNER)
        if not is_peak(field, f, u, v, d):
            return count
    size = math.sqrt(dot(d, d))
    if size > 1e-9 * radius:
        n = times(1.0 / size, d)
    depth = radius - size
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, feature + SPREAD * tag, 1e-6 * radius)


@inline
def is_peak(field, f, x, y, d):
    """Whether none of the six edges that end in the corner (x, y) goes along `d`."""
    p = sample(field, f, x, y)
    bound = 1e-9 * math.sqrt(dot(d, d))
    for k in range(6):
        u = x + (1 if k < 2 else 0 if k == 2 or k == 5 else -1)
        v = y + (0 if k == 0 or k == 3 else 1 if k < 3 else -1)
        if is_sample(field, f, u, v):
            e = sub(sample(field, f, u, v), p)
            if dot(d, e) > bound * math.sqrt(dot(e, e)):
                return False
    return True


@inline
def edge(field, f, x, y, k):
    """Edge `k` from corner (x, y): to x + 1, to y + 1, to both. Its kind (-1 there is none, 0 none that sticks out,
    1 a ridge, 2 border), its ends, and the third corners of the triangles on its right and left."""
    u, v = x + (1 if k != 1 else 0), y + (1 if k != 0 else 0)
    a = (0.0, 0.0, 0.0)
    if not is_sample(field, f, u, v):
        return -1, a, a, a, a
    rx, ry = (x, y - 1) if k == 0 else (x + 1, y + 1) if k == 1 else (x + 1, y)
    lx, ly = (x + 1, y + 1) if k == 0 else (x - 1, y) if k == 1 else (x, y + 1)
    a, b = sample(field, f, x, y), sample(field, f, u, v)
    if not is_sample(field, f, rx, ry) or not is_sample(field, f, lx, ly):
        return 2, a, b, a, b
    right, left = sample(field, f, rx, ry), sample(field, f, lx, ly)
    return 1 if bend(a, b, left, right) < -FLAT else 0, a, b, right, left


@kernel
def _over_ridge(field, f, x, y, k, a, b, radius, margin, out, count):
    """The core of a capsule against a ridge, where the closest point lies between the ends of the core."""
    kind, c, e, right, left = edge(field, f, x, y, k)
    if kind != 1:
        return count
    s, u = between(a, b, c, e)
    if s <= 1e-9 or s >= 1.0 - 1e-9:
        return count
    foot, core = along(c, u, sub(e, c)), along(a, s, sub(b, a))
    d = sub(core, foot)
    size = math.sqrt(dot(d, d))
    if size > radius + margin:
        return count
    way = 1.0
    if d[2] < 0.0 and below(field, f, core)[0]:  # the ridge has come through the core
        way, d = -1.0, times(-1.0, d)
    if u <= 0.0 or u >= 1.0:
        at_end = u >= 1.0
        if not is_peak(field, f, x + (1 if at_end and k != 1 else 0), y + (1 if at_end and k != 0 else 0), d):
            return count
    elif not behind(d, c, e, right) or not behind(d, c, e, left):
        return count
    n = (0.0, 0.0, 1.0)
    if size > 1e-9 * radius:
        n = times(1.0 / size, d)
    depth = radius - way * size
    name = 8 * ((x * field.ny[f] + y) * 2) + 4 + k + 2 * SPREAD
    return add_point(out, count, along(foot, -0.5 * depth, n), n, depth, name, 1e-6 * radius)
