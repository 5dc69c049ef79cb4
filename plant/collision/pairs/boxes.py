"""Boxes against boxes; boxes, cylinders, cones and hulls against planes."""

from __future__ import annotations

from plant.collision.model import Kind
from plant.collision.narrowphase.box_box import box_box, box_plane
from plant.collision.narrowphase.convex import convex_plane
from plant.collision.narrowphase.cylinder_plane import cone_plane, cylinder_plane
from plant.collision.pairs.table import pair
from plant.collision.scene import view_scene


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
