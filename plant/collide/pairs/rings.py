"""Tori and chain links: against spheres in closed form, against the rest by a walk along their wire."""

from __future__ import annotations

from plant.collide.model import Kind
from plant.collide.near import pair
from plant.collide.ring import shape_ring, sphere_ring
from plant.collide.scene import view_scene


def _sphere_ring(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_ring(s.shape, s.placed, i, j, margin, s.out)


def _shape_ring(scene, i, j, margin):
    s = view_scene(scene)
    return shape_ring(s.shape, s.placed, i, j, margin, s.out)


for _kind in (Kind.TORUS, Kind.LINK):
    pair(Kind.SPHERE, _kind)(_sphere_ring)
    for _other in (Kind.CAPSULE, Kind.BOX, Kind.CYLINDER, Kind.CONE, Kind.PLANE):
        pair(_other, _kind)(_shape_ring)
pair(Kind.TORUS, Kind.TORUS)(_shape_ring)
pair(Kind.TORUS, Kind.LINK)(_shape_ring)
pair(Kind.LINK, Kind.LINK)(_shape_ring)
