"""Everything but tori and links against meshes and height fields."""

from __future__ import annotations

from plant.collision.model import Kind
from plant.collision.narrowphase.field import capsule_field, sphere_field
from plant.collision.narrowphase.field_convex import convex_field
from plant.collision.narrowphase.mesh_capsule import capsule_mesh
from plant.collision.narrowphase.mesh_convex import convex_mesh
from plant.collision.narrowphase.mesh_field import mesh_field
from plant.collision.narrowphase.mesh_mesh import mesh_mesh
from plant.collision.narrowphase.mesh_round import sphere_mesh
from plant.collision.narrowphase.plane_mesh import plane_mesh
from plant.collision.pairs.table import pair
from plant.collision.scene import view_scene


@pair(Kind.SPHERE, Kind.MESH)
def _sphere_mesh(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_mesh(s.shape, s.placed, s.mesh, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.MESH)
def _capsule_mesh(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_mesh(s.shape, s.placed, s.mesh, i, j, margin, s.out)


@pair(Kind.BOX, Kind.MESH)
@pair(Kind.CYLINDER, Kind.MESH)
@pair(Kind.CONE, Kind.MESH)
@pair(Kind.HULL, Kind.MESH)
def _convex_mesh(scene, i, j, margin):
    s = view_scene(scene)
    return convex_mesh(s.shape, s.placed, s.hull, s.mesh, i, j, margin, s.out)


@pair(Kind.MESH, Kind.MESH)
def _mesh_mesh(scene, i, j, margin):
    s = view_scene(scene)
    return mesh_mesh(s.shape, s.placed, s.mesh, s.crossing, i, j, margin, s.out)


@pair(Kind.SPHERE, Kind.FIELD)
def _sphere_field(scene, i, j, margin):
    s = view_scene(scene)
    return sphere_field(s.shape, s.placed, s.field, i, j, margin, s.out)


@pair(Kind.CAPSULE, Kind.FIELD)
def _capsule_field(scene, i, j, margin):
    s = view_scene(scene)
    return capsule_field(s.shape, s.placed, s.field, i, j, margin, s.out)


@pair(Kind.BOX, Kind.FIELD)
@pair(Kind.CYLINDER, Kind.FIELD)
@pair(Kind.CONE, Kind.FIELD)
@pair(Kind.HULL, Kind.FIELD)
def _convex_field(scene, i, j, margin):
    s = view_scene(scene)
    return convex_field(s.shape, s.placed, s.hull, s.field, i, j, margin, s.out)


@pair(Kind.MESH, Kind.FIELD)
def _mesh_field(scene, i, j, margin):
    s = view_scene(scene)
    return mesh_field(s.shape, s.placed, s.mesh, s.field, s.crossing, i, j, margin, s.out)


@pair(Kind.PLANE, Kind.MESH)
def _plane_mesh(scene, i, j, margin):
    s = view_scene(scene)
    return plane_mesh(s.shape, s.placed, s.mesh, i, j, margin, s.out)
