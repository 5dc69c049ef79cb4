"""Convex solids as polyhedra, and polygons clipped by their planes.

Boxes and hulls are what they are. Capsules, cylinders and cones are given flat faces: `SIDES` round the axis, wide
enough that the polygon has the area of the circle, so that a cylinder standing on its base or lying half under
water has its true volume; a capsule's end has `RINGS` rings of them, and its true volume too. The surface is then
nowhere further off than 0.15 % of the radius (capsule: 0.6 %), outside near the edges and inside between them. So
shallow overlaps are coarse: of a capsule in a plane, lying and upright, the volume is off by up to 7 and 30 % at a
depth of 1 % of the radius, by 0.5 and 5 % at 10 %, and by 0.1 and 0.6 % at 50 %.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import F1, F2, F3, I1
from plant.collision.model import Kind
from plant.collision.narrowphase.mesh_convex import turned
from plant.collision.shape.hull import Hulls, build_hulls
from plant.collision.vec3 import from_basis, unit, vector_to_local
from plant.collision.volume.moments import Sums, add_patch, add_solid, measure, new_sums, set_origin

SIDES = 48  # faces round a cylinder or cone
ENDS = 32  # faces round a capsule
RINGS = 8  # rings of faces on each end of a capsule
NEAR = 1e-10  # of a solid's length: a face so near to a plane of the other solid lies in it
ALONE, ANY = -1, -2  # no mate; no face has this mate
WITHIN, CROSSING, BEYOND, LEVEL = 0, 1, 2, 3
BOX, CAPSULE, CYLINDER, CONE, HULL = (
    int(Kind.BOX),
    int(Kind.CAPSULE),
    int(Kind.CYLINDER),
    int(Kind.CONE),
    int(Kind.HULL),
)

Floats = NDArray[np.float64]


class Solid(NamedTuple):
    """A convex polyhedron in the frame of shape j."""

    vertex: F2  # [v, 3]
    plane: F2  # [f, 4] outward unit normal, n . x on the face
    first: I1  # [f + 1] first entry in `loop` of each face
    loop: I1  # vertices round each face, counter-clockwise seen from outside
    box: F2  # [f, 6] low and high of each face
    reach: F2  # [2, 3] low and high of all
    live: I1  # [f] faces that reach into the part of space looked at
    blade: F2  # [4, f] planes that cut this part of space
    name: I1  # [f] their faces
    many: I1  # [4] vertices, faces, live faces, blades


class Cutter(NamedTuple):
    """Room to cut polygons, and the integrals of what is left."""

    polygon: F3  # [2, n, 3] before and after a cut
    todo: I1  # [f] planes to cut by
    own: I1  # [f] 0, 1, 2, ...: each face its own mate
    gap: F1  # [f] heights of a point over planes
    border: F1  # [16] integrals along the border of a piece
    sums: Sums


def _ring(n: int) -> tuple[Floats, float]:
    """Directions round the axis, and by how much wider than the circle a polygon of the same area is."""
    step = 2.0 * math.pi / n
    angle = (np.arange(n) + 0.5) * step
    return np.column_stack([np.cos(angle), np.sin(angle)]), math.sqrt(step / math.sin(step))


def _capsule_points() -> Floats:
    """A capsule of radius 1 with its ends' centres at z = 1 and -1; the rings at the equators belong to both ends."""
    across, wider = _ring(ENDS)
    heights = np.arange(RINGS) / RINGS * 0.5 * math.pi
    rings = [np.column_stack([across * math.cos(a), np.full(ENDS, math.sin(a))]) for a in heights]
    end = np.concatenate([*rings, [[0.0, 0.0, 1.0]]])
    end[:ENDS] *= wider
    for _ in range(20):
        end[ENDS:] *= (2.0 / 3.0 * math.pi / ConvexHull(end).volume) ** (1.0 / 3.0)
    end[:, 2] += 1.0
    return np.concatenate([end, end * [1, 1, -1]])


@cache
def build_templates() -> Hulls:
    """A box, a capsule, a cylinder and a cone of sizes 1, in this order, about the origin."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    across, wider = _ring(SIDES)
    low, high = (np.column_stack([across * wider, np.full(SIDES, z)]) for z in (-1.0, 1.0))
    return build_hulls(
        [corners, _capsule_points(), np.concatenate([low, high]), np.concatenate([low, [[0.0, 0.0, 1.0]]])]
    )


def new_solid(hulls: tuple[Hulls, ...]) -> Solid:
    """Room for the largest of these."""
    vertices, faces, loops = (
        max(int(np.diff(first).max(initial=0)) for first in firsts)
        for firsts in zip(*((h.first, h.face_first, h.loop_first[h.face_first]) for h in hulls), strict=True)
    )
    return Solid(
        vertex=np.zeros((vertices, 3)),
        plane=np.zeros((faces, 4)),
        first=np.zeros(faces + 1, np.int64),
        loop=np.zeros(loops, np.int64),
        box=np.zeros((faces, 6)),
        reach=np.zeros((2, 3)),
        live=np.zeros(faces, np.int64),
        blade=np.zeros((4, faces)),
        name=np.zeros(faces, np.int64),
        many=np.zeros(4, np.int64),
    )


def new_cutter(solid: Solid) -> Cutter:
    """Room for any face or triangle cut by all planes of a solid: each cut adds one corner at most."""
    faces = len(solid.plane)
    return Cutter(
        np.zeros((2, len(solid.vertex) + faces + 8, 3)),
        np.zeros(faces, np.int64),
        np.arange(faces),
        np.zeros(faces),
        np.zeros(16),
        new_sums(),
    )


@kernel
def load(shape, placed, hulls, templates, s, j, solid):
    """Shape `s` as a polyhedron in the frame of shape `j`; whether there was room."""
    kind, x, y, z, shift = shape.kind[s], shape.size[s, 0], shape.size[s, 1], shape.size[s, 2], 0.0
    source, h = templates, 0
    if kind == HULL:
        source, h, x, y, z = hulls, shape.asset[s], 1.0, 1.0, 1.0
    elif kind == CAPSULE:
        h, shift, y, z = 1, y - x, x, x
    elif kind == CYLINDER or kind == CONE:
        h, z, y = 2 if kind == CYLINDER else 3, y, x
    v0, f0 = source.first[h], source.face_first[h]
    vertices, faces = source.first[h + 1] - v0, source.face_first[h + 1] - f0
    l0 = source.loop_first[f0]
    loops = source.loop_first[f0 + faces] - l0
    if vertices > solid.vertex.shape[0] or faces > solid.plane.shape[0] or loops > solid.loop.shape[0]:
        return False
    solid.many[0], solid.many[1] = vertices, faces
    a, b = placed.pos[s], placed.pos[j]
    at = vector_to_local(placed.rot[j], (a[0] - b[0], a[1] - b[1], a[2] - b[2]))
    e, f, g = turned(placed.rot[j], placed.rot[s])
    _load_vertices(source.vertex, v0, vertices, (x, y, z), shift, at, e, f, g, solid)
    for k in range(loops):
        solid.loop[k] = source.loop[l0 + k] - v0
    for k in range(faces):
        q = source.plane[f0 + k]
        n = from_basis(e, f, g, unit((q[0] / x, q[1] / y, q[2] / z)))
        solid.first[k] = source.loop_first[f0 + k] - l0
        v = solid.loop[solid.first[k]]
        solid.plane[k, 0], solid.plane[k, 1], solid.plane[k, 2] = n
        solid.plane[k, 3] = n[0] * solid.vertex[v, 0] + n[1] * solid.vertex[v, 1] + n[2] * solid.vertex[v, 2]
    solid.first[faces] = loops
    return True


@kernel
def _load_vertices(source, first, count, scale, shift, at, e, f, g, solid):
    """Vertices scaled, moved out along z by `shift`, turned to the axes e, f, g and put at `at`; and their box."""
    lx = ly = lz = math.inf
    hx = hy = hz = -math.inf
    for k in range(count):
        v = source[first + k]
        p = from_basis(e, f, g, (scale[0] * v[0], scale[1] * v[1], scale[2] * v[2] + math.copysign(1.0, v[2]) * shift))
        x, y, z = p[0] + at[0], p[1] + at[1], p[2] + at[2]
        solid.vertex[k, 0], solid.vertex[k, 1], solid.vertex[k, 2] = x, y, z
        lx, ly, lz = min(lx, x), min(ly, y), min(lz, z)
        hx, hy, hz = max(hx, x), max(hy, y), max(hz, z)
    r = solid.reach
    r[0, 0], r[0, 1], r[0, 2], r[1, 0], r[1, 1], r[1, 2] = lx, ly, lz, hx, hy, hz


@kernel
def select(solid, low, high, near):
    """List the faces that reach into the box from `low` to `high`, and the planes that cut it."""
    mx, my, mz = 0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2])
    hx, hy, hz = 0.5 * (high[0] - low[0]), 0.5 * (high[1] - low[1]), 0.5 * (high[2] - low[2])
    live = blades = 0
    for f in range(solid.many[1]):
        a, b, c, d = solid.plane[f, 0], solid.plane[f, 1], solid.plane[f, 2], solid.plane[f, 3]
        h, r = a * mx + b * my + c * mz - d, abs(a) * hx + abs(b) * hy + abs(c) * hz + near
        if h > -r:
            t = solid.blade
            t[0, blades], t[1, blades], t[2, blades], t[3, blades] = a, b, c, d
            solid.name[blades] = f
            blades += 1
            if h < r and _reaches(solid, f, low, high):
                solid.live[live] = f
                live += 1
    solid.many[2], solid.many[3] = live, blades


@inline
def _reaches(solid, f, low, high):
    """Whether the box of face `f`, which is noted, meets another."""
    lx = ly = lz = math.inf
    hx = hy = hz = -math.inf
    for k in range(solid.first[f], solid.first[f + 1]):
        v = solid.loop[k]
        x, y, z = solid.vertex[v, 0], solid.vertex[v, 1], solid.vertex[v, 2]
        lx, ly, lz = min(lx, x), min(ly, y), min(lz, z)
        hx, hy, hz = max(hx, x), max(hy, y), max(hz, z)
    b = solid.box
    b[f, 0], b[f, 1], b[f, 2], b[f, 3], b[f, 4], b[f, 5] = lx, ly, lz, hx, hy, hz
    return lx <= high[0] and hx >= low[0] and ly <= high[1] and hy >= low[1] and lz <= high[2] and hz >= low[2]


@kernel
def take_face(solid, f, polygon):
    """Face `f` into polygon[0]; returns its number of corners."""
    first, count = solid.first[f], solid.first[f + 1] - solid.first[f]
    for k in range(count):
        v = solid.loop[first + k]
        polygon[0, k, 0], polygon[0, k, 1], polygon[0, k, 2] = (
            solid.vertex[v, 0],
            solid.vertex[v, 1],
            solid.vertex[v, 2],
        )
    return count


@inline
def put_triangle(polygon, a, b, c):
    """The triangle abc into polygon[0]."""
    polygon[0, 0, 0], polygon[0, 0, 1], polygon[0, 0, 2] = a
    polygon[0, 1, 0], polygon[0, 1, 1], polygon[0, 1, 2] = b
    polygon[0, 2, 0], polygon[0, 2, 1], polygon[0, 2, 2] = c


@kernel
def cut(polygon, side, count, nx, ny, nz, d):
    """Cut polygon[side, :count] to what has n . x <= d; returns the side where it is now and its number of corners."""
    made, other = 0, 1 - side
    px, py, pz = polygon[side, count - 1, 0], polygon[side, count - 1, 1], polygon[side, count - 1, 2]
    b = nx * px + ny * py + nz * pz - d
    for k in range(count):
        qx, qy, qz = polygon[side, k, 0], polygon[side, k, 1], polygon[side, k, 2]
        a, b = b, nx * qx + ny * qy + nz * qz - d
        if (a > 0.0) != (b > 0.0):
            s = a / (a - b)
            polygon[other, made, 0] = px + s * (qx - px)
            polygon[other, made, 1] = py + s * (qy - py)
            polygon[other, made, 2] = pz + s * (qz - pz)
            made += 1
        if b <= 0.0:
            polygon[other, made, 0], polygon[other, made, 1], polygon[other, made, 2] = qx, qy, qz
            made += 1
        px, py, pz = qx, qy, qz
    return other, made


@inline
def _side_of(polygon, count, a, b, c, d, near):
    """Where polygon[0, :count] is: WITHIN a plane, CROSSING it, BEYOND it, or in it (LEVEL)."""
    low, high = math.inf, -math.inf
    for k in range(count):
        h = a * polygon[0, k, 0] + b * polygon[0, k, 1] + c * polygon[0, k, 2] - d
        low, high = min(low, h), max(high, h)
    if low >= -near:
        return LEVEL if high <= near else BEYOND
    return CROSSING if high > 0.0 else WITHIN


@inline
def around(polygon, count):
    """Centre and radius of a ball that holds polygon[0, :count]."""
    x = y = z = square = 0.0
    for k in range(count):
        x += polygon[0, k, 0]
        y += polygon[0, k, 1]
        z += polygon[0, k, 2]
    x, y, z = x / count, y / count, z / count
    for k in range(count):
        u, v, w = polygon[0, k, 0] - x, polygon[0, k, 1] - y, polygon[0, k, 2] - z
        square = max(square, u * u + v * v + w * w)
    return x, y, z, math.sqrt(square)


@kernel
def cut_by(cutter, count, solid, near, mate, own):
    """Cut polygon[0, :count] by the blades of a solid, but not by those whose `mate` is the face `own`.

    What lies in one of its planes counts as outside. Returns the side where the polygon is, its number of corners, and
    the plane that it lies in or -1.
    """
    polygon, todo, gap, t, blades = cutter.polygon, cutter.todo, cutter.gap, solid.blade, solid.many[3]
    x, y, z, radius = around(polygon, count)
    for k in range(blades):
        gap[k] = t[0, k] * x + t[1, k] * y + t[2, k] * z - t[3, k]
    radius += near
    crossing, level = 0, -1
    for k in range(blades):
        if gap[k] <= -radius or mate[solid.name[k]] == own:
            continue
        if gap[k] > radius:
            return 0, 0, -1
        where = _side_of(polygon, count, t[0, k], t[1, k], t[2, k], t[3, k], near)
        if where == BEYOND:
            return 0, 0, -1
        if where == LEVEL:
            level = solid.name[k]
        elif where == CROSSING:
            todo[crossing] = k
            crossing += 1
    if level >= 0:
        return 0, 0, level
    side = 0
    for n in range(crossing):
        k = todo[n]
        side, count = cut(polygon, side, count, t[0, k], t[1, k], t[2, k], t[3, k])
        if count < 3:
            return side, 0, -1
    return side, count, -1


@kernel
def add_half(cutter, count, solid, level, near, nx, ny, nz, part):
    """Add part of polygon[0, :count], which lies in the plane `level` of a solid and has the normal n, to the patch."""
    side, count, _ = cut_by(cutter, count, solid, near, cutter.own, level)
    if count >= 3:
        measure(cutter.sums, cutter.polygon, side, count, nx, ny, nz)
        add_patch(cutter.sums, nx, ny, nz, part)


@kernel
def between(first, second, mate, cutter, near):
    """Integrals over the overlap of two convex polyhedra; the patch is of the second's surface.

    Faces that lie in one plane and look the same way would count twice or not at all, as rounding has it: such a face
    of the first leaves it to that of the second, its `mate`. Of the patch each has half: the slope of the volume
    jumps there, and this is its mean.
    """
    a, b = first.reach, second.reach
    low = (max(a[0, 0], b[0, 0]) - near, max(a[0, 1], b[0, 1]) - near, max(a[0, 2], b[0, 2]) - near)
    high = (min(a[1, 0], b[1, 0]) + near, min(a[1, 1], b[1, 1]) + near, min(a[1, 2], b[1, 2]) + near)
    if low[0] >= high[0] or low[1] >= high[1] or low[2] >= high[2]:
        return
    select(first, low, high, near)
    select(second, low, high, near)
    polygon, sums, p, q = cutter.polygon, cutter.sums, first.plane, second.plane
    for f in range(first.many[1]):
        mate[f] = ALONE
    for k in range(first.many[2]):
        f = first.live[k]
        side, count, level = cut_by(cutter, take_face(first, f, polygon), second, near, cutter.own, ANY)
        if level >= 0 and p[f, 0] * q[level, 0] + p[f, 1] * q[level, 1] + p[f, 2] * q[level, 2] > 0.0:
            mate[f] = level
            add_half(cutter, first.first[f + 1] - first.first[f], second, level, near, p[f, 0], p[f, 1], p[f, 2], -0.5)
        if count >= 3:
            add_solid(sums, measure(sums, polygon, side, count, p[f, 0], p[f, 1], p[f, 2]), 1.0)
    for k in range(second.many[2]):
        f = second.live[k]
        side, count, _ = cut_by(cutter, take_face(second, f, polygon), first, 0.0, mate, f)
        if count >= 3:
            add_solid(sums, measure(sums, polygon, side, count, q[f, 0], q[f, 1], q[f, 2]), 1.0)
            add_patch(sums, q[f, 0], q[f, 1], q[f, 2], 1.0)


@kernel
def below_plane(solid, cutter):
    """Integrals over what a convex polyhedron has below z = 0; the patch is of the polyhedron's surface.

    Measured from a point of the plane, the plane's own piece has no height and adds nothing.
    """
    polygon, sums, p = cutter.polygon, cutter.sums, solid.plane
    if solid.reach[0, 2] >= 0.0:
        return
    r = solid.reach
    set_origin(sums, 0.5 * (r[0, 0] + r[1, 0]), 0.5 * (r[0, 1] + r[1, 1]), 0.0)
    for f in range(solid.many[1]):
        side, count = cut(polygon, 0, take_face(solid, f, polygon), 0.0, 0.0, 1.0, 0.0)
        if count >= 3:
            add_solid(sums, measure(sums, polygon, side, count, p[f, 0], p[f, 1], p[f, 2]), 1.0)
            add_patch(sums, p[f, 0], p[f, 1], p[f, 2], -1.0)
