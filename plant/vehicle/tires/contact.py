"""Contact of a wheel with the ground: the local ground plane, penetration, contact point and rolling direction.

    plane       least squares through six heights under the wheel, three along by two across. The points move with the
                wheel, so the plane is as continuous as the ground.
    steps       where a patch ends the ground jumps. Each height follows what is found there no faster than a slope
                of STEEP allows over the way that the wheel moved, so that it feels a steep ramp instead. (Where the
                points were shifted by the search below, a slope of 1 is allowed for: more would feed on itself.)
    where       on a slope the wheel touches beside its middle, at -R n. The points are laid around there, by the normal
                of the last steps, smoothed over FOLLOW so that the search cannot run ahead of the wheel.
    depth       R sin + (w / 2) (sqrt(cos^2 + e^2) - e) - height of the middle above the plane, with the angle between
                axis and normal: a disc whose tread is a little round, so that the point of contact moves over to the
                lower edge as the wheel leans, without a jump. The point is where this body touches a plane, so that
                the normal force has an energy.
    forwards    axis x normal; a wheel that lies on its side has none, and takes any.

Limits: what is smaller than the contact is averaged; a wall is felt as the slope of the six points.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.soil.ground import NOWHERE, surface

ALONG = 0.35  # half the length over which the ground is sampled, over the radius
ROUND = 0.25  # e: lean at which the contact has moved most of the way to the edge of the tread
STEEP = 3.0  # steepest slope that is felt
SETTLE = 0.5  # [m/s] ground that changes under a standing wheel is followed so fast
FOLLOW = 0.02  # [s]
DEEP = 0.9  # of the radius: a wheel is pushed out no harder than from there
BELOW, ABOVE = 3.0, 2.0  # radii: ground further away does not matter
LOST = 6.0  # radii: a height so far from the wheel is no longer where it is, and is taken anew


@inline
def _look(tires, w, ground, field, x, y, z, hx, hy, allowed):
    """Read the heights around (x, y) for a wheel of middle height `z`, heading (hx, hy). Returns how many there are."""
    r, half = tires.radius[w], 0.5 * tires.width[w]
    found = 0
    for k in range(6):
        u, v = (k // 2 - 1) * ALONG * r, (2 * (k % 2) - 1) * half
        patch, height, _, _ = surface(ground, field, x + u * hx - v * hy, y + u * hy + v * hx)
        if patch != NOWHERE:
            found += 1
        height = min(max(height, z - BELOW * r), z + ABOVE * r)
        was = tires.height[w, k]
        if allowed >= 0.0 and abs(was - z) < LOST * r:
            height = min(max(height, was - allowed), was + allowed)
        tires.height[w, k] = height
    return found


@inline
def _plane(tires, w, hx, hy):
    """Height of the plane in the middle, and its normal."""
    a = tires.height[w]
    along, half = ALONG * tires.radius[w], 0.5 * tires.width[w]
    middle = (a[0] + a[1] + a[2] + a[3] + a[4] + a[5]) / 6.0
    su = (a[4] + a[5] - a[0] - a[1]) / (4.0 * along)
    sv = (a[1] + a[3] + a[5] - a[0] - a[2] - a[4]) / (6.0 * half)
    gx, gy = su * hx - sv * hy, su * hy + sv * hx
    s = 1.0 / math.sqrt(1.0 + gx * gx + gy * gy)
    return middle, -gx * s, -gy * s, s


@kernel
def find_plane(tires, w, ground, field, x, y, z, ax, ay, yaw, h):
    """The plane under wheel `w`, middle (x, y, z) [m], axis (ax, ay, .), turning about z by `yaw` [rad/s].

    Returns whether there is ground, a point of the plane and its normal.
    """
    flat = math.sqrt(ax * ax + ay * ay)
    hx, hy = (ay / flat, -ax / flat) if flat > 1e-3 else (1.0, 0.0)
    r = tires.radius[w]
    rounds = 1
    if tires.fresh[w] == 1:
        tires.lean[w, 0], tires.lean[w, 1] = 0.0, 0.0
        rounds = 4
    middle, nx, ny, nz = 0.0, 0.0, 0.0, 1.0
    px, py = x, y
    shift = tires.shift[w]
    for _ in range(rounds):
        px, py = x - r * tires.lean[w, 0], y - r * tires.lean[w, 1]
        allowed = -1.0
        if tires.fresh[w] == 0:
            dx, dy = x - tires.middle[w, 0], y - tires.middle[w, 1]
            turned = abs(yaw) * (ALONG * r + 0.5 * tires.width[w]) * h
            allowed = STEEP * (math.sqrt(dx * dx + dy * dy) + turned) + shift + SETTLE * h
        found = _look(tires, w, ground, field, px, py, z, hx, hy, allowed)
        if found == 0:
            tires.fresh[w] = 1
            return False, px, py, z, 0.0, 0.0, 1.0
        middle, nx, ny, nz = _plane(tires, w, hx, hy)
        follow = 1.0 if tires.fresh[w] == 1 else h / (h + FOLLOW)
        sx, sy = follow * (nx - tires.lean[w, 0]), follow * (ny - tires.lean[w, 1])
        tires.lean[w, 0] += sx
        tires.lean[w, 1] += sy
        shift = r * math.sqrt(sx * sx + sy * sy)
    tires.middle[w, 0], tires.middle[w, 1], tires.shift[w] = x, y, shift
    tires.fresh[w] = 0
    return True, px, py, middle, nx, ny, nz


@inline
def reach(radius, width, ax, ay, az, nx, ny, nz):
    """How far a wheel with this axis reaches against the normal [m], and the point there, from its middle."""
    c = ax * nx + ay * ny + az * nz
    rx, ry, rz = nx - c * ax, ny - c * ay, nz - c * az
    s = math.sqrt(rx * rx + ry * ry + rz * rz)
    root = math.sqrt(c * c + ROUND * ROUND)
    far = radius * s + 0.5 * width * (root - ROUND)
    out = radius / s if s > 1e-9 else 0.0
    side = 0.5 * width * c / root
    # up to a part along n, which the plane gives
    return far, -out * rx - side * ax, -out * ry - side * ay, -out * rz - side * az


@inline
def forwards(ax, ay, az, nx, ny, nz):
    """Unit vector along the ground in which the wheel rolls; any that lies in the ground if it lies on its side."""
    x, y, z = ay * nz - az * ny, az * nx - ax * nz, ax * ny - ay * nx
    s = math.sqrt(x * x + y * y + z * z)
    if not s > 1e-6:  # (1, 0, 0) less its part along n, or (0, 1, 0) where that would be nothing
        x, y, z = (1.0 - nx * nx, -nx * ny, -nx * nz) if abs(nx) < 0.8 else (-ny * nx, 1.0 - ny * ny, -ny * nz)
        s = math.sqrt(x * x + y * y + z * z)
    return x / s, y / s, z / s
