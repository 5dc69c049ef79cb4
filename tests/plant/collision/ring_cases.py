"""Random tori and links before random shapes that their sizes describe, and the kernels of the table to run on them."""

from __future__ import annotations

import numpy as np
from primitive_pairs import Body, Found, Kind, random_turn, runner

rings = runner(Kind.BOX, Kind.TORUS)  # the walk along the core, which serves balls too
balls = runner(Kind.SPHERE, Kind.TORUS)
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


def small_pair(kinds: tuple[Kind, Kind], rng: np.random.Generator) -> tuple[Body, Body]:
    """A shape as small as a tenth of the ring's steps, beside its core."""
    i, j = random_body(kinds[0], rng), random_body(kinds[1], rng)
    i = i._replace(size=0.03 * np.asarray(i.size))
    half, bend = (0.0, j.size[0]) if j.kind == Kind.TORUS else (j.size[0], j.size[1])
    angle, way = rng.uniform(0, 2 * np.pi), rng.normal(size=3)
    core = bend * np.cos(angle) + half * rng.uniform(-1, 1), bend * np.sin(angle), 0.0
    off = rng.uniform(0, 1.2) * (j.size[-1] + np.sum(i.size)) * way / np.linalg.norm(way)
    return i, j._replace(at=i.at - np.asarray(j.turn) @ (core + off))


def walked_last(i: Body, j: Body, found: Found) -> tuple[Body, Body, Found]:
    """The same pair with the ring that is walked last, and normals away from it: of two rings the smaller one."""
    if i.kind < Kind.TORUS or np.sum(i.size[:-1]) >= np.sum(j.size[:-1]):
        return i, j, found
    return j, i, Found(found.point, -found.normal, found.depth, found.feature)
