"""From poses of bodies to the contact list: transforms, broad phase, narrow phase, reduction to a few points a pair.

Fast bodies do not tunnel: boxes are stretched by what a body may travel in two steps, and points are listed across
that distance; a contact that is not yet touching only limits how far the gap may close.

A pair whose materials have the law of the elastic foundation gets one contact: the centroid of the overlap, its mean
depth and the normal of the contact plane. If they only come near, it is their closest point.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.collision.broadphase.find_pairs import find_pairs
from plant.collision.narrowphase.reduce import reduce
from plant.collision.pairs.table import call_pair
from plant.collision.transforms import place_shapes
from plant.collision.volume.moments import keep_region, mean_depth
from plant.collision.volume.volume import overlap, view_volumes
from plant.contact_law.model import Law

FEATURES = 20  # bits of a feature within its pair
MOST = 4  # points kept of one pair: what holds a face steady
FOUNDATION = int(Law.FOUNDATION)
AHEAD = 2.0  # steps of travel across which points are listed


@inline
def _travel(scene, vel, s, time):
    """How far a point of shape `s` may go in `time`."""
    b = scene.shape.body[s]
    if b < 0:
        return 0.0
    v = vel[b]
    a = scene.shape.at[s]
    arm = scene.shape.bound[s] + math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
    spin = math.sqrt(v[3] * v[3] + v[4] * v[4] + v[5] * v[5])
    turned = spin * arm if spin > 0.0 else 0.0  # a plane has no bound, and a still one no travel
    return time * (math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) + turned)


@kernel
def _stretch(scene, vel, time, margin):
    """Grow the boxes of fast shapes by what they may travel."""
    low, high = scene.placed.low, scene.placed.high
    for k in range(scene.broad.shape.size):
        s = scene.broad.shape[k]
        way = _travel(scene, vel, s, time)
        if way > 0.5 * margin:
            for c in range(3):
                low[s, c] -= way
                high[s, c] += way


@kernel
def find_contacts(scene, pos, rot, vel, asleep, material_pair, law, margin, h, contact, region):
    """Fill the contact list, and `region` where the law of a pair of materials asks for a volume; returns how many
    pairs, segments of crossing meshes or points found no room."""
    shape, out = scene.shape, scene.out
    contact.count[0] = 0
    if shape.kind.size == 0:
        return 0
    place_shapes(shape, scene.placed, pos, rot)
    _stretch(scene, vel, AHEAD * h, margin)
    left_out = find_pairs(scene.broad, shape, scene.placed, vel, asleep, scene.pairs)
    scene.pairs.lost[0], scene.crossing.lost[0] = left_out, 0
    here, shapes = address_of(scene), shape.kind.size
    for p in range(scene.pairs.count[0]):
        i, j = scene.pairs.pair[p, 0], scene.pairs.pair[p, 1]
        function = scene.table[shape.kind[i], shape.kind[j]]
        if function == 0:
            continue
        reach = margin + _travel(scene, vel, i, AHEAD * h) + _travel(scene, vel, j, AHEAD * h)
        count = reduce(out, call_pair(function, here, i, j, reach), MOST)
        name = (i * shapes + j) << FEATURES
        pair = material_pair[shape.material[i], shape.material[j]]
        if law[pair] == FOUNDATION:
            if count > 0:
                left_out += _list_volume(scene, contact, region, count, i, j, pair, name)
            continue
        for k in range(count):
            left_out += _list(contact, out, k, shape.body[i], shape.body[j], pair, name)
    return left_out + scene.crossing.lost[0]


@inline
def _list(contact, out, k, a, b, pair, name):
    """Add one point of the manifold; 1 if there was no room for it."""
    n = contact.count[0]
    if n == contact.depth.size:
        return 1
    contact.body[n, 0], contact.body[n, 1] = a, b
    for c in range(3):
        contact.point[n, c], contact.normal[n, c] = out.point[k, c], out.normal[k, c]
    contact.depth[n], contact.pair[n], contact.feature[n] = out.depth[k], pair, name + out.feature[k]
    contact.count[0] = n + 1
    return 0


@kernel
def _list_volume(scene, contact, region, count, i, j, pair, name):
    """Add the overlap of two shapes as one contact, or their closest point; 1 if there was no room for it."""
    c, shape, out, near = contact.count[0], scene.shape, scene.out, 0
    if c == contact.depth.size:
        return 1
    for k in range(1, count):
        if out.depth[k] > out.depth[near]:
            near = k
    deep = out.depth[near] > 0.0
    out.depth[near], out.feature[near] = min(out.depth[near], 0.0), 0
    _list(contact, out, near, shape.body[i], shape.body[j], pair, name)
    region.volume[c] = 0.0
    if deep and overlap(address_of(scene), scene.volumes, i, j) == 1:
        found = view_volumes(scene.volumes).out
        keep_region(found, region, c)
        contact.depth[c] = mean_depth(found.volume[0], found.area[0])
        for k in range(3):
            contact.point[c, k], contact.normal[c, k] = found.centroid[k], found.normal[k]
    return 0


@inline
def shapes_of(scene, feature):
    """The two shapes whose contact this is."""
    pair, shapes = feature >> FEATURES, scene.shape.kind.size
    return pair // shapes, pair % shapes
