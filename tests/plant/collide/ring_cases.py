"""Random tori and links before random shapes that their sizes describe, and the kernels to run on them."""

from __future__ import annotations

import numba
import numpy as np
from primitive_pairs import Body, Kind, random_turn, runner

from hilnode.record import Record
from plant.collide.field import build_fields, view_fields
from plant.collide.hull import build_hulls, view_hulls
from plant.collide.mesh import build_meshes, view_meshes
from plant.collide.ring import new_ring_scratch, shape_ring, sphere_ring, view_ring_scratch

NOTHING = [Record(nothing) for nothing in (build_hulls([]), build_meshes([]), build_fields([]), new_ring_scratch())]
HULLS, MESHES, FIELDS, SCRATCH = (record.address for record in NOTHING)


@numba.njit(error_model="numpy")
def _walked(shape, placed, i, j, margin, out):
    h, m, f, s = view_hulls(HULLS), view_meshes(MESHES), view_fields(FIELDS), view_ring_scratch(SCRATCH)
    return shape_ring(shape, placed, h, m, f, s, i, j, margin, out)


@numba.njit(error_model="numpy")
def _short_way(shape, placed, i, j, margin, out):
    h, m, f, s = view_hulls(HULLS), view_meshes(MESHES), view_fields(FIELDS), view_ring_scratch(SCRATCH)
    return sphere_ring(shape, placed, h, m, f, s, i, j, margin, out)


rings = runner(_walked)
balls = runner(_short_way)
OTHERS = {Kind.SPHERE: 1, Kind.CAPSULE: 2, Kind.BOX: 3, Kind.CYLINDER: 2, Kind.CONE: 2, Kind.PLANE: 0}
KINDS = [*((kind, ring) for kind in (*OTHERS, Kind.TORUS) for ring in (Kind.TORUS, Kind.LINK)), (Kind.LINK, Kind.LINK)]
MARGIN = 0.1


def random_body(kind: Kind, rng: np.random.Generator) -> Body:
    if kind == Kind.TORUS:
        size = rng.uniform(0.5, 1.0) * np.array([1.0, rng.uniform(0.05, 0.4)])
    elif kind == Kind.LINK:
        size = rng.uniform(0.5, 1.0) * np.array([rng.uniform(0.1, 2.0), 1.0, rng.uniform(0.05, 0.4)])
    else:
        size = np.exp(rng.uniform(-2, 0, OTHERS[kind]))
    return Body(kind, size, rng.normal(size=3), random_turn(rng))


def random_pair(kinds: tuple[Kind, Kind], rng: np.random.Generator) -> tuple[Body, Body]:
    i, j = random_body(kinds[0], rng), random_body(kinds[1], rng)
    way = rng.normal(size=3)
    far = rng.uniform(0, 0.8) * (np.sum(i.size) + np.sum(j.size)) * way / np.linalg.norm(way)
    if kinds[0] == Kind.PLANE:
        far = rng.uniform(-0.5, 1.0) * np.sum(j.size) * np.asarray(i.turn)[:, 2]
    return i, j._replace(at=i.at + far)
