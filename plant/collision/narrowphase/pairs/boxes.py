"""Boxes against boxes; what has corners or edges against planes."""

from __future__ import annotations

from plant.collide.box_box import box_box, box_plane
from plant.collide.convex import convex_plane
from plant.collide.model import Kind
from plant.collide.near import pair
from plant.collide.scene import view_scene
from plant.collide.turned import cone_plane, cylinder_plane


@pair(Kind.BOX, Kind.BOX)
def _box_box(scene, i, j, margin):
    s = view_scene(scene)
    return box_box(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.BOX, Kind.PLANE)
def _box_plane(scene, i, j, margin):
    s = view_scene(scene)
    return box_plane(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CYLINDER, Kind.PLANE)
def _cylinder_plane(scene, i, j, margin):
    s = view_scene(scene)
    return cylinder_plane(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CONE, Kind.PLANE)
def _cone_plane(scene, i, j, margin):
    s = view_scene(scene)
    return cone_plane(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.HULL, Kind.PLANE)
def _hull_plane(scene, i, j, margin):
    s = view_scene(scene)
    return convex_plane(s.shape, s.placed, s.hull, i, j, margin, s.out)
