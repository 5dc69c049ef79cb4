"""Spheres against all convex shapes but hulls, capsules against capsules and planes: all exact.

A sphere is a point and a capsule a segment, grown by a radius; so each pair is the closest point of the other shape to
a core, and the radius on top. Where the core itself lies inside the other shape, the way out is the shortest one.
Ref: Luaces sections 4.5.2 (box and sphere, eq. 4.21-4.22) and 4.6.2 (closest points of edges, eq. 4.35-4.40).

Capsules that lie along something get a point at each end of the common length, so that they do not rock.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel

NEAR = 1e-12  # [m] nearer cores have no direction of their own
LYING = 0.05  # sine of the angle [3 degrees] up to which a core counts as parallel to what it lies on
BETTER = 1e-6  # of the radius: as much deeper must a point between the ends be to be listed as well


@inline
def put(out, n, x, y, z, nx, ny, nz, depth, feature):
    """List one point; the next free place."""
    out.point[n, 0], out.point[n, 1], out.point[n, 2] = x, y, z
    out.normal[n, 0], out.normal[n, 1], out.normal[n, 2] = nx, ny, nz
    out.depth[n], out.feature[n] = depth, feature
    return n + 1


@inline
def along(rot, i, k, x, y, z):
    """The part of a vector along axis k of frame i."""
    return rot[i, 0, k] * x + rot[i, 1, k] * y + rot[i, 2, k] * z


@inline
def to_frame(placed, j, x, y, z):
    """A point of the world in the frame of shape j."""
    rot, pos = placed.rot, placed.pos
    x, y, z = x - pos[j, 0], y - pos[j, 1], z - pos[j, 2]
    return along(rot, j, 0, x, y, z), along(rot, j, 1, x, y, z), along(rot, j, 2, x, y, z)


@inline
def turned(rot, j, x, y, z):
    """A vector in frame j in world axes."""
    return (
        rot[j, 0, 0] * x + rot[j, 0, 1] * y + rot[j, 0, 2] * z,
        rot[j, 1, 0] * x + rot[j, 1, 1] * y + rot[j, 1, 2] * z,
        rot[j, 2, 0] * x + rot[j, 2, 1] * y + rot[j, 2, 2] * z,
    )


@inline
def ball_in_frame(placed, j, out, n, x, y, z, radius, nx, ny, nz, distance, margin, feature):
    """List a ball about a point of the world that has this distance from shape j and this normal in its frame."""
    gap = distance - radius
    if gap >= margin:
        return n
    nx, ny, nz = turned(placed.rot, j, nx, ny, nz)
    back = radius + 0.5 * gap
    return put(out, n, x - back * nx, y - back * ny, z - back * nz, nx, ny, nz, -gap, feature)


@inline
def balls(out, n, x, y, z, r, u, v, w, s, nx, ny, nz, margin, feature):
    """List two balls about (x, y, z) and (u, v, w) with radii r and s; (nx, ny, nz) is the normal if they coincide."""
    dx, dy, dz = x - u, y - v, z - w
    square = dx * dx + dy * dy + dz * dz
    reach = r + s + margin
    if reach <= 0.0 or square >= reach * reach:
        return n
    distance = math.sqrt(square)
    if distance > NEAR:
        nx, ny, nz = dx / distance, dy / distance, dz / distance
    gap = distance - r - s
    out_of = s + 0.5 * gap
    return put(out, n, u + out_of * nx, v + out_of * ny, w + out_of * nz, nx, ny, nz, -gap, feature)


@inline
def clamp(x, h):
    """The closest number to x from -h to h."""
    return min(max(x, -h), h)


@inline
def box_distance(x, y, z, a, b, c):
    """Signed distance of a point from a box with these half lengths about the origin, and the normal there."""
    dx, dy, dz = x - clamp(x, a), y - clamp(y, b), z - clamp(z, c)
    square = dx * dx + dy * dy + dz * dz
    if square > NEAR * NEAR:
        distance = math.sqrt(square)
        return distance, dx / distance, dy / distance, dz / distance
    u, v, w = abs(x) - a, abs(y) - b, abs(z) - c
    if w >= u and w >= v:
        return w, 0.0, 0.0, math.copysign(1.0, z)
    if v >= u:
        return v, 0.0, math.copysign(1.0, y), 0.0
    return u, math.copysign(1.0, x), 0.0, 0.0


@inline
def cylinder_distance(x, y, z, r, h):
    """Signed distance of a point from a cylinder about the z axis, and the normal there."""
    rho = math.sqrt(x * x + y * y)
    ex, ey = (x / rho, y / rho) if rho > NEAR else (1.0, 0.0)
    up = math.copysign(1.0, z)
    side, cap = rho - r, abs(z) - h
    if side > 0.0 and cap > 0.0:
        distance = math.sqrt(side * side + cap * cap)
        s, c = side / distance, up * cap / distance
        return distance, s * ex, s * ey, c
    if cap >= side:
        return cap, 0.0, 0.0, up
    return side, ex, ey, 0.0


@inline
def cone_distance(x, y, z, r, h):
    """Signed distance of a point from a cone about the z axis, and the normal there.

    In the plane through the axis and the point the cone is a triangle: the base, the slant side from the rim (r, -h) to
    the tip (0, h), and the axis.
    """
    rho = math.sqrt(x * x + y * y)
    ex, ey = (x / rho, y / rho) if rho > NEAR else (1.0, 0.0)
    slant = math.sqrt(r * r + 4.0 * h * h)
    tx, tz = (-r / slant, 2.0 * h / slant) if slant > NEAR else (0.0, 1.0)
    t = (rho - r) * tx + (z + h) * tz  # along the slant side, from the rim
    side, base = (rho - r) * tz - (z + h) * tx, -h - z
    if side <= 0.0 and base <= 0.0:
        if base >= side:
            return base, 0.0, 0.0, -1.0
        return side, tz * ex, tz * ey, -tx
    if side > 0.0 and t > 0.0 and t < slant:
        return side, tz * ex, tz * ey, -tx
    if base > 0.0 and rho <= r:
        return base, 0.0, 0.0, -1.0
    du, dw = (rho, z - h) if t >= slant else (rho - r, z + h)
    distance = math.sqrt(du * du + dw * dw)
    if distance <= NEAR:
        return distance, tz * ex, tz * ey, -tx
    return distance, du / distance * ex, du / distance * ey, dw / distance


@kernel
def sphere_sphere(shape, placed, i, j, margin, out):
    """One point."""
    p, s = placed.pos, shape.size
    return balls(
        out, 0, p[i, 0], p[i, 1], p[i, 2], s[i, 0], p[j, 0], p[j, 1], p[j, 2], s[j, 0], 0.0, 0.0, 1.0, margin, 0
    )


@kernel
def sphere_capsule(shape, placed, i, j, margin, out):
    """One point; features: the core's lower end, upper end or side."""
    p, r, s = placed.pos, placed.rot, shape.size
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    half = s[j, 1]
    t = along(r, j, 2, x - p[j, 0], y - p[j, 1], z - p[j, 2])
    feature = 0 if abs(t) < half else (1 if t < 0.0 else 2)
    t = clamp(t, half)
    u, v, w = p[j, 0] + t * r[j, 0, 2], p[j, 1] + t * r[j, 1, 2], p[j, 2] + t * r[j, 2, 2]
    return balls(out, 0, x, y, z, s[i, 0], u, v, w, s[j, 0], r[j, 0, 0], r[j, 1, 0], r[j, 2, 0], margin, feature)


@kernel
def sphere_box(shape, placed, i, j, margin, out):
    """One point; inside, the way out is through the closest face."""
    p, s = placed.pos, shape.size
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    u, v, w = to_frame(placed, j, x, y, z)
    distance, nx, ny, nz = box_distance(u, v, w, s[j, 0], s[j, 1], s[j, 2])
    return ball_in_frame(placed, j, out, 0, x, y, z, s[i, 0], nx, ny, nz, distance, margin, 0)


@kernel
def sphere_cylinder(shape, placed, i, j, margin, out):
    """One point; inside, the way out is through the side or the nearer end."""
    p, s = placed.pos, shape.size
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    u, v, w = to_frame(placed, j, x, y, z)
    distance, nx, ny, nz = cylinder_distance(u, v, w, s[j, 0], s[j, 1])
    return ball_in_frame(placed, j, out, 0, x, y, z, s[i, 0], nx, ny, nz, distance, margin, 0)


@kernel
def sphere_cone(shape, placed, i, j, margin, out):
    """One point; inside, the way out is through the slant side or the base."""
    p, s = placed.pos, shape.size
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    u, v, w = to_frame(placed, j, x, y, z)
    distance, nx, ny, nz = cone_distance(u, v, w, s[j, 0], s[j, 1])
    return ball_in_frame(placed, j, out, 0, x, y, z, s[i, 0], nx, ny, nz, distance, margin, 0)


@kernel
def sphere_plane(shape, placed, i, j, margin, out):
    """One point."""
    p, s = placed.pos, shape.size
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    _, _, w = to_frame(placed, j, x, y, z)
    return ball_in_frame(placed, j, out, 0, x, y, z, s[i, 0], 0.0, 0.0, 1.0, w, margin, 0)


@kernel
def capsule_plane(shape, placed, i, j, margin, out):
    """A point for each end."""
    p, r, s = placed.pos, placed.rot, shape.size
    n = 0
    for end in range(2):
        t = s[i, 1] if end else -s[i, 1]
        x, y, z = p[i, 0] + t * r[i, 0, 2], p[i, 1] + t * r[i, 1, 2], p[i, 2] + t * r[i, 2, 2]
        _, _, w = to_frame(placed, j, x, y, z)
        n = ball_in_frame(placed, j, out, n, x, y, z, s[i, 0], 0.0, 0.0, 1.0, w, margin, end)
    return n


@inline
def nearest_on_segments(dx, dy, dz, ax, ay, az, a, bx, by, bz, b):
    """Where on segments about 0 and d, with unit directions and half lengths, they are closest: s, t along them."""
    cosine = ax * bx + ay * by + az * bz
    p, q = ax * dx + ay * dy + az * dz, bx * dx + by * dy + bz * dz
    kx, ky, kz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    square = kx * kx + ky * ky + kz * kz
    s = clamp((p - cosine * q) / square, a) if square > 1e-20 else clamp(p, a)
    t = cosine * s - q
    if abs(t) > b:
        t = clamp(t, b)
        s = clamp(cosine * t + p, a)
    return s, t, square


@kernel
def capsule_capsule(shape, placed, i, j, margin, out):
    """One point; along each other, a point at each end of the common length too.

    Features: 0 the closest points, 1 and 2 an end of i, 3 and 4 an end of j.
    """
    pos, rot, size = placed.pos, placed.rot, shape.size
    ax, ay, az, a = rot[i, 0, 2], rot[i, 1, 2], rot[i, 2, 2], size[i, 1]
    bx, by, bz, b = rot[j, 0, 2], rot[j, 1, 2], rot[j, 2, 2], size[j, 1]
    dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
    reach = a + b + size[i, 0] + size[j, 0] + margin
    if dx * dx + dy * dy + dz * dz > reach * reach:
        return 0
    s, t, square = nearest_on_segments(dx, dy, dz, ax, ay, az, a, bx, by, bz, b)
    n = 0
    if square < LYING * LYING:
        n = _common_ends(shape, placed, i, j, margin, out)
    best = max(out.depth[0], out.depth[n - 1]) if n > 0 else -math.inf
    kx, ky, kz = rot[i, 0, 0], rot[i, 1, 0], rot[i, 2, 0]
    if square > 1e-20:
        kx, ky, kz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        length = math.sqrt(square)
        kx, ky, kz = kx / length, ky / length, kz / length
    more = _rods(placed, i, j, s, t, size[i, 0], size[j, 0], kx, ky, kz, margin, out, n, 0)
    if more > n and n > 0 and out.depth[n] <= best + BETTER * min(size[i, 0], size[j, 0]):
        return n
    return more


@inline
def _rods(placed, i, j, s, t, r, q, kx, ky, kz, margin, out, n, feature):
    """List the balls at s along the core of i and t along the core of j."""
    pos, rot = placed.pos, placed.rot
    x, y, z = pos[i, 0] + s * rot[i, 0, 2], pos[i, 1] + s * rot[i, 1, 2], pos[i, 2] + s * rot[i, 2, 2]
    u, v, w = pos[j, 0] + t * rot[j, 0, 2], pos[j, 1] + t * rot[j, 1, 2], pos[j, 2] + t * rot[j, 2, 2]
    return balls(out, n, x, y, z, r, u, v, w, q, kx, ky, kz, margin, feature)


@kernel
def _common_ends(shape, placed, i, j, margin, out):
    """List the two ends of the length that two nearly parallel cores share."""
    pos, rot, size = placed.pos, placed.rot, shape.size
    a, b = size[i, 1], size[j, 1]
    dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
    cosine = along(rot, i, 2, rot[j, 0, 2], rot[j, 1, 2], rot[j, 2, 2])
    p, q = along(rot, i, 2, dx, dy, dz), along(rot, j, 2, dx, dy, dz)
    way = 1.0 if cosine > 0.0 else -1.0
    n = 0
    for end in range(2):
        up = 1.0 if end else -1.0
        s, t = up * a, cosine * up * a - q  # the end of i and its foot on j
        feature = 1 + end
        if abs(t) > b:  # then the end of j on this side, and its foot on i
            t = up * way * b
            s = cosine * t + p
            feature = 3 + (1 if t > 0.0 else 0)
            if abs(s) > a:
                continue
        n = _rods(
            placed,
            i,
            j,
            s,
            t,
            size[i, 0],
            size[j, 0],
            rot[i, 0, 0],
            rot[i, 1, 0],
            rot[i, 2, 0],
            margin,
            out,
            n,
            feature,
        )
    return n
