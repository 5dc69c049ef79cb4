"""Spheres and capsules against primitives."""

from __future__ import annotations

from plant.collision.model import Kind
from plant.collision.narrowphase.capsule_box import capsule_box
from plant.collision.narrowphase.capsule_cylinder import capsule_cylinder
from plant.collision.narrowphase.sphere_capsule import (
    capsule_capsule,
    capsule_plane,
    sphere_box,
    sphere_capsule,
    sphere_cone,
    sphere_cylinder,
    sphere_plane,
    sphere_sphere,
)
from plant.collision.pairs.table import pair
from plant.collision.scene import view_scene


@pair(Kind.SPHERE, Kind.SPHERE)
def _sphere_sphere(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_sphere(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.CAPSULE)
def _sphere_capsule(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_capsule(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.BOX)
def _sphere_box(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_box(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.CYLINDER)
def _sphere_cylinder(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_cylinder(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.CONE)
def _sphere_cone(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_cone(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.PLANE)
def _sphere_plane(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_plane(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.CAPSULE)
def _capsule_capsule(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_capsule(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.BOX)
def _capsule_box(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_box(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.CYLINDER)
def _capsule_cylinder(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_cylinder(s.shape, s.placed, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.PLANE)
def _capsule_plane(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_plane(s.shape, s.placed, i, j, margin, s.out)
