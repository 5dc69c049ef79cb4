"""Soil in the air: parcels on parabolas, each until it meets the highest patch below it.

    p(t) = p0 + v0 t - g t^2 / 2

Each step looks whether a parcel has come below the surface, and if so finds the time by bisection, so that the place
where it lands does not depend on the step. It is laid down about that place (`plant.soil.heap`). Where there is only
scenery, it waits until a reserved patch has been laid there (`plant.soil.drape`); with none left, and where there is no
ground at all, it is gone. Where a patch has no room left, on a truck that is heaped as high as it may be, it rolls to a
random place beside and falls from there.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.soil.drape import begin_patch
from plant.soil.ground import surface
from plant.soil.heap import is_soil, normal_pair, scatter
from plant.soil.model import GONE, LANDINGS, REST, book, clear

HALVINGS = 30
LANDED_AT_ONCE = 2  # in a step; others wait, so that a step has an end
LEFT = 1e-8  # [m^3] what is left of a parcel below it is rounding


@inline
def where(parcel, gravity, k, t):
    """Place of parcel `k` at the time t after its start."""
    p, v = parcel.start[k], parcel.speed[k]
    return p[0] + v[0] * t, p[1] + v[1] * t, p[2] + (v[2] - 0.5 * gravity * t) * t


@kernel
def launch(soil, x, y, z, vx, vy, vz, volume):
    """Let a bank volume fly from (x, y, z) [m] at (vx, vy, vz) [m/s]. False if all places are taken."""
    parcel = soil.parcel
    k = parcel.ends[1]
    after = k + 1 if k + 1 < parcel.volume.size else 0
    if after == parcel.ends[0]:
        return False
    parcel.start[k, 0], parcel.start[k, 1], parcel.start[k, 2] = x, y, z
    parcel.speed[k, 0], parcel.speed[k, 1], parcel.speed[k, 2] = vx, vy, vz
    parcel.volume[k], parcel.time[k] = volume, 0.0
    parcel.ends[1] = after
    return True


@inline
def _below(soil, ground, field, k, t):
    x, y, z = where(soil.parcel, soil.kind.gravity, k, t)
    return z <= surface(ground, field, x, y)[1]


@kernel
def landing_time(soil, ground, field, k, t, h):
    """The time between t and t + h at which parcel `k` meets the surface that it is below at t + h."""
    if _below(soil, ground, field, k, t):
        return t
    low, high = t, t + h
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _below(soil, ground, field, k, middle):
            high = middle
        else:
            low = middle
    return high


@kernel
def _land(soil, ground, field, k, t):
    """Lay parcel `k` down where it is at time t. What finds no soil to lie on waits for a patch, or is gone."""
    s, parcel = soil.state, soil.parcel
    x, y, z = where(parcel, soil.kind.gravity, k, t)
    whole = parcel.volume[k] + clear(soil, REST)
    left = scatter(soil, ground, field, x, y, whole, soil.kind.spread, soil.kind.rays)
    if left <= LEFT:
        book(soil, REST, left)
    elif begin_patch(soil, ground, field, x, y):
        parcel.volume[k] = left
        parcel.time[k] = t
        return
    elif is_soil(soil, surface(ground, field, x, y)[0]):
        g, b = normal_pair(s.random)
        far = soil.land.cell + soil.kind.spread
        parcel.start[k, 0], parcel.start[k, 1], parcel.start[k, 2] = x + far * g, y + far * b, z
        parcel.speed[k, :] = 0.0
        parcel.volume[k], parcel.time[k] = left, 0.0
        return
    else:
        book(soil, GONE, left)
    parcel.volume[k] = 0.0
    s.counter[LANDINGS] += 1


@kernel
def fly(soil, ground, field, h):
    """Move all parcels on, and lay down those that have landed."""
    parcel, gravity = soil.parcel, soil.kind.gravity
    size = parcel.volume.size
    k, last, landed = parcel.ends[0], parcel.ends[1], 0
    while k != last:
        if parcel.volume[k] > 0.0:
            t = parcel.time[k]
            x, y, z = where(parcel, gravity, k, t + h)
            if not z > soil.land.bottom:
                book(soil, GONE, parcel.volume[k])
                parcel.volume[k] = 0.0
            elif z > surface(ground, field, x, y)[1]:
                parcel.time[k] = t + h
            elif landed < LANDED_AT_ONCE:
                _land(soil, ground, field, k, landing_time(soil, ground, field, k, t, h))
                landed += 1
        k = k + 1 if k + 1 < size else 0
    while parcel.ends[0] != last and parcel.volume[parcel.ends[0]] == 0.0:
        parcel.ends[0] = parcel.ends[0] + 1 if parcel.ends[0] + 1 < size else 0


@kernel
def air_of(soil):
    """Bank volume in flight [m^3]."""
    parcel, total = soil.parcel, 0.0
    k = parcel.ends[0]
    while k != parcel.ends[1]:
        total += parcel.volume[k]
        k = k + 1 if k + 1 < parcel.volume.size else 0
    return total
