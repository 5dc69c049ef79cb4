"""The narrow phase: contact points of a pair of shapes; `collision/pairs` says which kernel serves which pair.

closed forms   sphere_capsule.py, capsule_box.py, capsule_cylinder.py, cylinder_plane.py, box_box.py (separating axes)
convex         convex.py for any two convex shapes: gjk.py (distance), epa.py (penetration depth), patch.py (faces)
meshes         mesh_round.py, mesh_capsule.py, mesh_convex.py, plane_mesh.py; mesh_mesh.py and mesh_field.py with
               surface_intersection.py (where surfaces cross), region.py (contact points there), mesh_gap.py (apart),
               mesh_inside.py (one within the other)
solid in mesh  mesh_points_inside.py, ridge.py, pierce.py, mesh_normals.py, ray_exit.py
height fields  field.py (spheres and capsules), field_convex.py
rings          ring.py (torus and chain link), ring_curve.py, ring_search.py, ring_distance.py
rays           ray.py (against any shape), torus_ray.py
shared         manifold.py, reduce.py (few points out of many), node_pair.py, surface_distance.py
"""
