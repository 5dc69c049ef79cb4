"""Avalanches: loose soil steeper than its angle of repose slides, a few samples a step, until none is left.

A sample looks at the eight triangles around it, each between a neighbour along an axis and one across, and takes the
steepest way down (the facets of Tarboton, 1997). If it is steeper than the slope at which sliding begins, so
much of the loose layer goes to the two corners of the triangle as brings it to the angle of repose, by one Newton step:
the slope is convex in what is moved, so the step never goes too far. Bank soil stands up to the steeper angle of a
cut wall; beyond it, it breaks and comes down as loose soil.

Each slide lowers the soil by at least a fixed amount, so sliding ends. Samples wait in a queue in which each stands
once; a step looks at `budget` of them, and with nothing in the queue costs nothing.

Limits: soil does not slide over the rim of a patch.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.soil.books import put, take
from plant.soil.model import QUANTA, QUANTUM, REST, SOIL, book

THIN = 1e-6  # [m] a loose layer thinner than this stays where it is
WAYS = 8


@inline
def _way(k):
    """Facet `k`: the steps to the neighbour along an axis, and from there to the one across."""
    sign = 1 if k & 1 else -1
    side = 1 if k & 2 else -1
    if k & 4:
        return 0, sign, side, 0
    return sign, 0, 0, side


@kernel
def steepest(field, f, i, j):
    """Slope of the steepest way down from sample (i, j), its facet and the share of the way across; -1 if there is
    none."""
    nx, ny = field.nx[f], field.ny[f]
    k = field.first[f] + i * ny + j
    z = field.height[k]
    best, facet, part = 0.0, -1, 0.0
    for way in range(WAYS):
        a, b, c, d = _way(way)
        if not (0 <= i + a < nx and 0 <= j + b < ny):
            continue
        first = field.height[k + a * ny + b]
        d1, d2 = (field.step[f, 0], field.step[f, 1]) if a != 0 else (field.step[f, 1], field.step[f, 0])
        s1, s2, across = (z - first) / d1, 0.0, 0.0
        if 0 <= i + a + c < nx and 0 <= j + b + d < ny:
            s2 = (first - field.height[k + (a + c) * ny + b + d]) / d2
        if s2 > 0.0 and s1 * d2 > s2 * d1:
            across = s2 * d1 / (s1 * d2)
        elif s2 > 0.0:  # beyond the diagonal: straight along it
            across = 1.0
            s = (s1 * d1 + s2 * d2) / (d1 * d1 + d2 * d2)
            s1, s2 = s * d1, s * d2
        else:
            s2 = 0.0
        square = s1 * s1 + s2 * s2
        if s1 > 0.0 and square > best:
            best, facet, part = square, way, across
    return math.sqrt(best), facet, part


@inline
def _gain(d1, d2, part):
    """How fast the slope falls with what goes down a facet.

    With s1 along the axis and s2 across, ds1 = -(2 - part) / d1 and ds2 = (1 - 2 part) / d2 for each metre taken, and
    the slope points along (d1, part d2).
    """
    return (2.0 - 2.0 * part + 2.0 * part * part) / math.sqrt(d1 * d1 + part * part * d2 * d2)


@kernel
def _slide(soil, ground, field, p, i, j):
    """Let one sample slide, if it is too steep."""
    land, kind = soil.land, soil.kind
    f = ground.field[p]
    ny = field.ny[f]
    slope, facet, part = steepest(field, f, i, j)
    if slope <= kind.slide:
        return
    k = field.first[f] + i * ny + j
    a, b, c, d = _way(facet)
    d1, d2 = (field.step[f, 0], field.step[f, 1]) if a != 0 else (field.step[f, 1], field.step[f, 0])
    if land.loose[k] > THIN:
        down = min((slope - kind.repose) / _gain(d1, d2, part), land.loose[k])
    elif slope > kind.wall * 1.01 and land.diggable[p] == SOIL:
        down = (slope - kind.wall) / (_gain(d1, d2, part) * kind.bulking)
    else:
        return
    down = math.floor(down * QUANTA) * QUANTUM
    moved, _ = take(soil, ground, field, p, i, j, field.height[k] - down)
    left = moved - put(soil, ground, field, p, i + a, j + b, (1.0 - part) * moved)
    left -= put(soil, ground, field, p, i + a + c, j + b + d, part * moved) if part > 0.0 else 0.0
    book(soil, REST, left)


@kernel
def relax(soil, ground, field):
    """Look at the next samples of the queue, and let those slide that are too steep."""
    q = soil.queue
    for _ in range(q.budget):
        if q.ends[0] == q.ends[1]:
            return
        item = q.item[q.ends[0]]
        q.ends[0] = q.ends[0] + 1 if q.ends[0] + 1 < q.item.size else 0
        p, s = item // q.stride, item % q.stride
        f = ground.field[p]
        q.queued[field.first[f] + s] = 0
        _slide(soil, ground, field, p, s // field.ny[f], s % field.ny[f])
