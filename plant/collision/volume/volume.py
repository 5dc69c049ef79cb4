"""The overlap volume of two shapes, for contact by elastic foundation (Luaces 4.6-4.10).

    volumes = build_volumes(scene.hull, [(Kind.BOX, Kind.PLANE)])    once: all memory, and the kernels of these pairs
    struct = Struct(volumes)
    overlap(scene_address, struct.address, i, j)                     hot, the lower kind first: 1 = they overlap
    volumes.out                                                      the answer, an `Overlap`, in world axes

Exact for balls, boxes and hulls against each other and against planes, closed meshes and height fields; capsules,
cylinders and cones are polyhedra (clip.py says how fine). Several regions in which two bodies overlap count as one,
with their common centroid, inertia and mean plane: this is what the sums of their forces depend on.

Limits: tori, links, two meshes, a mesh and a field are not known (status UNKNOWN). An open mesh is ground below its
surface, and what is over its border is not told right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hilnode.core.jit import exported, inline, kernel
from hilnode.core.struct import I1, I2, viewer
from plant.collision.model import Kind
from plant.collision.scene import view_scene
from plant.collision.shape.hull import Hulls
from plant.collision.vec3 import dot, vector_to_local
from plant.collision.volume.ball import ball_ball, ball_field, ball_mesh, ball_plane, ball_solid
from plant.collision.volume.clip import (
    NEAR,
    Cutter,
    Solid,
    below_plane,
    between,
    build_templates,
    load,
    new_cutter,
    new_solid,
)
from plant.collision.volume.column import in_field, in_mesh, mesh_below
from plant.collision.volume.moments import TOO_MANY, UNKNOWN, Overlap, clear, finish, new_overlap, nothing

SOLIDS = (Kind.CAPSULE, Kind.BOX, Kind.CYLINDER, Kind.CONE, Kind.HULL)


class Volumes(NamedTuple):
    """Constant solids, room to work in, and the last answer."""

    table: I2  # [kind, kind] address of the kernel of each pair of kinds, 0 = not known or not asked for
    template: Hulls
    first: Solid
    second: Solid
    mate: I1  # [f] face of the second solid that lies in the plane of each face of the first; ALONE = none
    cutter: Cutter
    out: Overlap


view_volumes = viewer(Volumes)


@inline
def _near(shape, i, j):
    """How near a face of one of two shapes is to a plane of the other when it lies in it."""
    return NEAR * min(shape.bound[i], shape.bound[j])


@inline
def _centre(placed, i, j):
    """The origin of shape i in the frame of shape j."""
    p, q = placed.pos[i], placed.pos[j]
    return vector_to_local(placed.rot[j], (p[0] - q[0], p[1] - q[1], p[2] - q[2]))


@inline
def _begin(scene, volumes):
    """The arrays of a pair, and sums to start with. Every pair below is: begin, cut, end."""
    s, v = view_scene(scene), view_volumes(volumes)
    clear(v.cutter.sums)
    return s, v


@inline
def _load(s, v, i, j, solid):
    """Put the polyhedron of shape i, in the frame of shape j, into `solid`; False if there is no room."""
    return load(s.shape, s.placed, s.hull, v.template, i, j, solid)


@inline
def _end(s, v, i, j):
    """The answer from the sums."""
    return finish(v.cutter.sums, s.shape, s.placed, i, j, v.out)


def _ball_ball(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    ball_ball(v.cutter.sums, _centre(s.placed, i, j), s.shape.size[i, 0], s.shape.size[j, 0])
    return _end(s, v, i, j)


def _ball_plane(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    ball_plane(v.cutter.sums, _centre(s.placed, i, j), s.shape.size[i, 0])
    return _end(s, v, i, j)


def _ball_mesh(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    ball_mesh(v.cutter.sums, _centre(s.placed, i, j), s.shape.size[i, 0], s.mesh, s.shape.asset[j], v.cutter)
    return _end(s, v, i, j)


def _ball_field(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    ball_field(v.cutter.sums, _centre(s.placed, i, j), s.shape.size[i, 0], s.field, s.shape.asset[j], v.cutter)
    return _end(s, v, i, j)


def _ball_solid(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    if not _load(s, v, j, j, v.second):
        return nothing(v.out, TOO_MANY)
    ball_solid(v.cutter.sums, _centre(s.placed, i, j), s.shape.size[i, 0], v.second, v.cutter)
    return _end(s, v, i, j)


def _solid_solid(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    if not (_load(s, v, i, j, v.first) and _load(s, v, j, j, v.second)):
        return nothing(v.out, TOO_MANY)
    between(v.first, v.second, v.mate, v.cutter, _near(s.shape, i, j))
    return _end(s, v, i, j)


def _solid_plane(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    if not _load(s, v, i, j, v.first):
        return nothing(v.out, TOO_MANY)
    below_plane(v.first, v.cutter)
    return _end(s, v, i, j)


def _solid_mesh(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    if not _load(s, v, i, j, v.first):
        return nothing(v.out, TOO_MANY)
    in_mesh(s.mesh, s.shape.asset[j], v.first, v.cutter, _near(s.shape, i, j))
    return _end(s, v, i, j)


def _solid_field(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    if not _load(s, v, i, j, v.first):
        return nothing(v.out, TOO_MANY)
    in_field(s.field, s.shape.asset[j], v.first, v.cutter, _near(s.shape, i, j))
    return _end(s, v, i, j)


def _plane_mesh(scene, volumes, i, j):
    s, v = _begin(scene, volumes)
    up = (s.placed.rot[i, 0, 2], s.placed.rot[i, 1, 2], s.placed.rot[i, 2, 2])
    n = vector_to_local(s.placed.rot[j], up)
    mesh_below(s.mesh, s.shape.asset[j], n, dot(n, _centre(s.placed, i, j)), v.cutter)
    return _end(s, v, i, j)


def _known() -> dict[tuple[Kind, Kind], Callable[..., int]]:
    ball = Kind.SPHERE
    known: dict[tuple[Kind, Kind], Callable[..., int]] = {
        (ball, ball): _ball_ball,
        (ball, Kind.PLANE): _ball_plane,
        (ball, Kind.MESH): _ball_mesh,
        (ball, Kind.FIELD): _ball_field,
        (Kind.PLANE, Kind.MESH): _plane_mesh,
    }
    for a in SOLIDS:
        known[ball, a] = _ball_solid
        known[a, Kind.PLANE], known[a, Kind.MESH], known[a, Kind.FIELD] = _solid_plane, _solid_mesh, _solid_field
        for b in SOLIDS:
            if a <= b:
                known[a, b] = _solid_solid
    return known


KNOWN = _known()
"""Pairs of kinds whose overlap can be told, the lower one first."""

_SIGNATURE = types.int64(types.int64, types.int64, types.int64, types.int64)
_compiled: dict[Callable[..., int], Any] = {}


def _table(wanted: Iterable[tuple[Kind, Kind]]) -> NDArray[np.int64]:
    """Addresses of the kernels of these pairs, compiled if need be; 0 for all others."""
    table = np.zeros((len(Kind), len(Kind)), np.int64)
    for key in wanted:
        if function := KNOWN.get(key):
            if function not in _compiled:
                _compiled[function] = exported(_SIGNATURE)(function)
            table[key] = _compiled[function].address
    return table


def build_volumes(hulls: Hulls, wanted: Iterable[tuple[Kind, Kind]] = KNOWN) -> Volumes:
    """Room for any pair of a scene with these hulls, and the kernels of the pairs of kinds that are wanted."""
    template = build_templates()
    first, second = new_solid((template, hulls)), new_solid((template, hulls))
    mate = np.zeros(len(first.plane), np.int64)
    return Volumes(_table(wanted), template, first, second, mate, new_cutter(first), new_overlap())


_I64 = ir.IntType(64)
_PAIR = ir.FunctionType(_I64, [_I64] * 4)


@intrinsic  # type: ignore[untyped-decorator]
def _call(typing: Any, function: Any, scene: Any, volumes: Any, i: Any, j: Any) -> Any:
    """Call the kernel at address `function`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.inttoptr(args[0], _PAIR.as_pointer()), args[1:])

    return types.int64(*[types.int64] * 5), emit


@kernel
def overlap(scene, volumes, i, j):
    """What shapes i and j have in common, into `Volumes.out`; the kind of i is not the higher one.

    `scene` and `volumes` are addresses of structs. Returns 1 if they overlap, else 0; `out.status` says why.
    """
    s, v = view_scene(scene), view_volumes(volumes)
    function = v.table[s.shape.kind[i], s.shape.kind[j]]
    if function == 0:
        return nothing(v.out, UNKNOWN)
    return _call(function, scene, volumes, i, j)
