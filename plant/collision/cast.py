"""Ray casts: the closest shape that a ray, or each of many rays, hits.

The trees of the broad phase give the shapes whose boxes the ray goes through, moving ones and scenery; planes are in no
tree and are all asked. What is left is asked after its bounding sphere (ray.py). The boxes must be those of now:
`update_broad_phase` puts shapes that have moved since the last step where they are.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.broadphase.dynamic_tree import query_ray
from plant.collision.broadphase.find_pairs import find_pairs
from plant.collision.broadphase.static_tree import ray_scenery
from plant.collision.narrowphase.ray import ray_shape
from plant.collision.transforms import place_shapes
from plant.collision.vec3 import along, dot


@kernel
def update_broad_phase(scene, pos, rot, vel, asleep):
    """Put all shapes where bodies at `pos` [b, 3], turned by `rot` [b, 3, 3], are, also in the trees."""
    if scene.shape.kind.size > 0:
        place_shapes(scene.shape, scene.placed, pos, rot)
        find_pairs(scene.broad, scene.shape, scene.placed, vel, asleep, scene.pairs)


@kernel
def cast(scene, origin, direction, far, mask, normal):
    """The closest of the enabled shapes in the groups of `mask` that a ray hits before `far`: its number and distance.

    (-1, far) if it hits none. `normal` [3] becomes the outward normal there, world axes. `direction` is a unit vector.
    Of two shapes at the same distance the one with the lower number counts.
    """
    o, d = (origin[0], origin[1], origin[2]), (direction[0], direction[1], direction[2])
    which, best, found, plane = -1, far, scene.broad.found, scene.broad.plane
    for n in range(plane.size):
        which, best = _nearer(scene, plane[n], o, d, mask, which, best, normal)
    for n in range(query_ray(scene.broad.tree, o[0], o[1], o[2], d[0], d[1], d[2], far, found)):
        which, best = _nearer(scene, scene.broad.shape[found[n]], o, d, mask, which, best, normal)
    scenery = scene.broad.scenery
    for n in range(ray_scenery(scenery, o[0], o[1], o[2], d[0], d[1], d[2], min(best, far), found)):
        which, best = _nearer(scene, scenery.shape[found[n]], o, d, mask, which, best, normal)
    return which, best


@kernel
def cast_many(scene, origin, direction, far, mask, which, distance, normal):
    """`cast` for rays by rows: origin, direction, normal [n, 3]; which, distance [n]."""
    for k in range(which.size):
        which[k], distance[k] = cast(scene, origin[k], direction[k], far, mask, normal[k])


@inline
def _nearer(scene, s, o, d, mask, which, best, normal):
    """Shape `s` if the ray hits it before `best`, else what was; and the distance."""
    shape, placed = scene.shape, scene.placed
    if shape.enabled[s] == 0 or shape.group[s] & mask == 0 or not _may_hit(shape, placed, s, o, d, best):
        return which, best
    distance, n = ray_shape(shape, placed, scene.hull, scene.mesh, scene.field, s, o, d, best * (1.0 + 1e-15))
    if distance < best or (distance == best and s < which):
        normal[0], normal[1], normal[2] = n
        return s, distance
    return which, best


@inline
def _may_hit(shape, placed, s, o, d, far):
    """Whether the ray passes through the sphere about a shape."""
    bound = shape.bound[s]
    if bound == math.inf:
        return True
    p = placed.pos[s]
    c = (p[0] - o[0], p[1] - o[1], p[2] - o[2])
    ahead = min(max(dot(c, d), 0.0), far)
    c = along(c, -ahead, d)
    return dot(c, c) <= bound * bound
