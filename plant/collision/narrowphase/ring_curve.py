"""The core curve of a torus or a chain link, divided into steps.

A torus is a circle grown by the radius of its wire; a link is a stadium (two straight parts and two half circles) grown
likewise, and a torus is a link without straight parts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline
from plant.collision.model import Kind
from plant.collision.narrowphase.sphere_capsule import NEAR, clamp
from plant.collision.vec3 import along

STEPS = 32  # along the curve; those of a link: 8 for each bend and each straight part
LINK = int(Kind.LINK)

Vector = tuple[float, float, float]
_TURN = 2.0 * math.pi / STEPS
_COS = np.cos(_TURN * np.arange(STEPS))
_SIN = np.sin(_TURN * np.arange(STEPS))


class Curve(NamedTuple):
    """A core curve seen from another shape's frame."""

    half: float  # half length of the straight parts; 0 for a torus
    bend: float  # radius of the bends
    wire: float  # radius of the wire
    centre: Vector
    x: Vector  # axes of the ring's plane
    y: Vector


@inline
def ring_size(shape, j):
    """Half length of the straight parts, radius of the bends, radius of the wire."""
    if shape.kind[j] == LINK:
        return shape.size[j, 0], shape.size[j, 1], shape.size[j, 2]
    return 0.0, shape.size[j, 0], shape.size[j, 1]


@inline
def longest_step(curve):
    """The length of the longest step."""
    return max(curve.bend * (_TURN if curve.half == 0.0 else 2.0 * _TURN), 0.25 * curve.half)


@inline
def _seen(curve, c, s, tc, ts):
    """A place and a tangent in the plane of the ring, in the frame that the curve is seen from."""
    x, y = curve.x, curve.y
    tangent = tc * x[0] + ts * y[0], tc * x[1] + ts * y[1], tc * x[2] + ts * y[2]
    return along(along(curve.centre, c, x), s, y), tangent


@inline
def on_step(curve, k):
    """The curve at a whole step: place and unit tangent."""
    half, bend = curve.half, curve.bend
    if half == 0.0:
        return _seen(curve, bend * _COS[k], bend * _SIN[k], -_SIN[k], _COS[k])
    if k < 8:
        c, s = _COS[(2 * k + 24) % STEPS], _SIN[(2 * k + 24) % STEPS]
        return _seen(curve, half + bend * c, bend * s, -s, c)
    if k < 16:
        return _seen(curve, half * (1.0 - 0.25 * (k - 8)), bend, -1.0, 0.0)
    if k < 24:
        c, s = _COS[(2 * k + 8) % STEPS], _SIN[(2 * k + 8) % STEPS]
        return _seen(curve, bend * c - half, bend * s, -s, c)
    return _seen(curve, half * (0.25 * (k - 24) - 1.0), -bend, 1.0, 0.0)


@inline
def on_curve(curve, k, part):
    """As `on_step`, at a part of the way from step k to the next."""
    half, bend = curve.half, curve.bend
    if half == 0.0:
        angle = _TURN * (k + part)
    elif k < 8:
        angle = 2.0 * _TURN * (k + part - 4.0)
    elif k < 16:
        return _seen(curve, half * (1.0 - 0.25 * (k + part - 8.0)), bend, -1.0, 0.0)
    elif k < 24:
        angle = 2.0 * _TURN * (k + part - 12.0)
    else:
        return _seen(curve, half * (0.25 * (k + part - 24.0) - 1.0), -bend, 1.0, 0.0)
    c, s = math.cos(angle), math.sin(angle)
    return _seen(curve, (half if k < 8 else -half) + bend * c, bend * s, -s, c)


@inline
def step_size(curve, k):
    """Length of step k, and the curvature there."""
    if curve.half == 0.0:
        return _TURN * curve.bend, 1.0 / max(curve.bend, 1e-300)
    if k & 8:
        return 0.25 * curve.half, 0.0
    return 2.0 * _TURN * curve.bend, 1.0 / max(curve.bend, 1e-300)


@inline
def _outward(p, half):
    """The closest place to `p` on the segment within a stadium, as x, and the unit vector from there to `p`, level."""
    middle = clamp(p[0], half)
    u, v = p[0] - middle, p[1]
    size = math.sqrt(u * u + v * v)
    if size > NEAR:
        return middle, u / size, v / size
    return middle, 0.0, 1.0


@inline
def _away(p, x, y):
    """Distance of `p` from (x, y, 0), and the unit vector from there."""
    dx, dy, dz = p[0] - x, p[1] - y, p[2]
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    if distance <= NEAR:
        return distance, (0.0, 0.0, 1.0)
    return distance, (dx / distance, dy / distance, dz / distance)


@inline
def core_distance(p, half, bend):
    """Distance of a point from a stadium in the plane z = 0, and the normal there.

    A stadium is what lies at the bends' radius from a segment: the closest point lies straight out from the segment.
    """
    middle, u, v = _outward(p, half)
    return _away(p, middle + bend * u, bend * v)


@inline
def across_distance(p, half, bend):
    """As `core_distance`, for the place that lies across the hole: from the closest one straight over the segment.

    That is on the other straight part, or, from beyond the ends of the segment, on that or on the other bend.
    """
    middle, u, v = _outward(p, half)
    if bend * abs(u) > 2.0 * half * abs(v):
        way = 2.0 * half * abs(u) + math.sqrt(max(bend * bend - 4.0 * half * half * v * v, 0.0))
    else:
        way = bend / max(abs(v), 1e-300)
    return _away(p, middle - way * u, -way * v)


@inline
def from_middle(p, half):
    """Distance of a point from the segment within a stadium, in the plane of both."""
    u = p[0] - clamp(p[0], half)
    return math.sqrt(u * u + p[1] * p[1])
