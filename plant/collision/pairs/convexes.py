"""Convex pairs without a closed form of their own: by their support functions."""

from __future__ import annotations

from plant.collision.model import Kind
from plant.collision.narrowphase.convex import convex_convex
from plant.collision.pairs.table import pair
from plant.collision.scene import view_scene

CONVEX = [kind for kind in Kind if kind <= Kind.HULL]
CLOSED_FORM = {
    *((Kind.SPHERE, kind) for kind in CONVEX if kind != Kind.HULL),
    *((Kind.CAPSULE, kind) for kind in (Kind.CAPSULE, Kind.BOX, Kind.CYLINDER)),
    (Kind.BOX, Kind.BOX),
}


def _convex(scene, i, j, margin):
    """Any two convex shapes."""
    s = view_scene(scene)
    return convex_convex(s.shape, s.placed, s.hull, s.convex, i, j, margin, s.out)


for _one in CONVEX:
    for _other in CONVEX[_one:]:
        if (_one, _other) not in CLOSED_FORM:
            pair(_one, _other)(_convex)
