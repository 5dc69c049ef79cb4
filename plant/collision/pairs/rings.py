"""Tori and chain links: against spheres in closed form, against the rest by a search along their core curve."""

from __future__ import annotations

from plant.collision.model import Kind
from plant.collision.narrowphase.ring import shape_ring, sphere_ring
from plant.collision.pairs.table import pair
from plant.collision.scene import view_scene


def _sphere_ring(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_ring(s.shape, s.placed, s.hull, s.mesh, s.field, s.ring, i, j, margin, s.out)


def _shape_ring(scene, i, j, margin):
    s = view_scene(scene)
    return shape_ring(s.shape, s.placed, s.hull, s.mesh, s.field, s.ring, i, j, margin, s.out)


for _one in (Kind.TORUS, Kind.LINK):
    for _other in Kind:
        pair(min(_one, _other), max(_one, _other))(_sphere_ring if _other == Kind.SPHERE else _shape_ring)
