"""A ray against one shape of any kind: distance and normal of the hit (cast.py: against the whole scene).

Directions are unit vectors. A ray that starts inside a solid (or below a height field) hits it at distance 0 with the
normal against the ray. A mesh is a surface: it is hit from both sides, and the normal is the triangle's own.

Box, cylinder, cone and hull are where the ray is inside all of their bounds at once. The torus is a quartic, whose
roots are parted by those of its derivatives. The link is approached in steps of its distance. A mesh is searched down
its tree, the nearer branch first; a field is walked cell by cell.

Limits: a ray that only grazes a link may be taken for a miss.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.model import Kind
from plant.collision.narrowphase.field import below, sample
from plant.collision.narrowphase.torus_ray import ray_torus
from plant.collision.shape.mesh import COUNT, FIRST, RIGHT, corner
from plant.collision.shape.solid import signed
from plant.collision.vec3 import along, cross, dot, point_to_local, sub, times, unit, vector_to_local, vector_to_world

SPHERE, CAPSULE, BOX, CYLINDER = int(Kind.SPHERE), int(Kind.CAPSULE), int(Kind.BOX), int(Kind.CYLINDER)
CONE, HULL, PLANE, TORUS = int(Kind.CONE), int(Kind.HULL), int(Kind.PLANE), int(Kind.TORUS)
LINK, MESH, FIELD = int(Kind.LINK), int(Kind.MESH), int(Kind.FIELD)
HUGE = 1e300
MARCH = 256  # steps towards a link, at most


@kernel
def ray_shape(shape, placed, hull, mesh, field, s, origin, direction, far):
    """Distance to shape `s` (inf or at least `far` = not hit) and the outward normal, world axes."""
    kind, size, rot = shape.kind[s], shape.size[s], placed.rot[s]
    o, d = point_to_local(placed, s, origin), vector_to_local(rot, direction)
    n = times(-1.0, d)
    t = math.inf
    if kind == SPHERE:
        t = _sphere(o, d, size[0])
        if t > 0.0:
            n = unit(along(o, t, d))
    elif kind == CAPSULE:
        t, n = _capsule(o, d, size[0], size[1])
    elif kind == PLANE:
        t = _plane(o, d)
        if t > 0.0:
            n = (0.0, 0.0, 1.0)
    elif kind == TORUS:
        t, n = ray_torus(o, d, size[0], size[1])
    elif kind == LINK:
        t, n = _link(o, d, size[0], size[1], size[2], far)
    elif kind == MESH:
        t, n = ray_mesh(mesh, shape.asset[s], o, d, far)
    elif kind == FIELD:
        t, n = ray_field(field, shape.asset[s], o, d, far)
    else:
        t = _solid(kind, size, hull, shape.asset[s], o, d)
        if 0.0 < t < math.inf:
            p = along(o, t + 1e-9 * (size[0] + size[1]), d)
            _, x, y, z = signed(kind, size, hull, shape.asset[s], p, 0.0)
            n = (x, y, z)
    return t, vector_to_world(rot, n)


@inline
def _entry(low, high):
    """Where a ray that is inside from `low` to `high` enters: 0 if it starts inside, inf if it never does."""
    if low > high or high < 0.0:
        return math.inf
    return max(low, 0.0)


@inline
def _roots(a, b, c):
    """Roots of a t^2 + 2 b t + c, a > 0, in order; (inf, -inf) if there are none."""
    under = b * b - a * c
    if under < 0.0:
        return math.inf, -math.inf
    q = -b - math.copysign(math.sqrt(under), b)
    if q == 0.0:
        return 0.0, 0.0
    return min(q / a, c / q), max(q / a, c / q)


@inline
def _sphere(o, d, radius):
    ahead = -dot(o, d)
    p = along(o, ahead, d)
    under = radius * radius - dot(p, p)
    if under < 0.0:
        return math.inf
    half = math.sqrt(under)
    return _entry(ahead - half, ahead + half)


@inline
def _plane(o, d):
    if o[2] <= 0.0:
        return 0.0
    return -o[2] / d[2] if d[2] < 0.0 else math.inf


@inline
def _slab(o, d, half):
    """Where a ray is between -half and half along one axis."""
    if abs(d) < 1e-300:
        return (-math.inf, math.inf) if abs(o) <= half else (math.inf, -math.inf)
    s, t = (-half - o) / d, (half - o) / d
    return min(s, t), max(s, t)


@inline
def _tube(o, d, radius):
    """Where a ray is within `radius` of the axis z."""
    a = d[0] * d[0] + d[1] * d[1]
    c = o[0] * o[0] + o[1] * o[1] - radius * radius
    if a < 1e-24:
        return (-math.inf, math.inf) if c <= 0.0 else (math.inf, -math.inf)
    return _roots(a, o[0] * d[0] + o[1] * d[1], c)


@inline
def _capsule(o, d, radius, half):
    """Of the tube between its ends and the two spheres, what is hit first."""
    low, high = _tube(o, d, radius)
    s, t = _slab(o[2], d[2], half)
    best = _entry(max(low, s), min(high, t))
    best = min(best, _sphere((o[0], o[1], o[2] - half), d, radius), _sphere((o[0], o[1], o[2] + half), d, radius))
    if best == 0.0 or best == math.inf:
        return best, times(-1.0, d)
    p = along(o, best, d)
    return best, unit((p[0], p[1], p[2] - min(max(p[2], -half), half)))


@kernel
def _solid(kind, size, hull, h, o, d):
    """Where a ray enters a box, cylinder, cone or hull."""
    if kind == BOX:
        low, high = _slab(o[0], d[0], size[0])
        for k in range(1, 3):
            s, t = _slab(o[k], d[k], size[k])
            low, high = max(low, s), min(high, t)
        return _entry(low, high)
    if kind == CYLINDER:
        low, high = _tube(o, d, size[0])
        s, t = _slab(o[2], d[2], size[1])
        return _entry(max(low, s), min(high, t))
    if kind == CONE:
        return _cone(o, d, size[0], size[1])
    low, high = -math.inf, math.inf
    for k in range(hull.face_first[h], hull.face_first[h + 1]):
        f = hull.plane[k]
        rate = f[0] * d[0] + f[1] * d[1] + f[2] * d[2]
        height = f[0] * o[0] + f[1] * o[1] + f[2] * o[2] - f[3]
        if abs(rate) < 1e-300:
            if height > 0.0:
                return math.inf
        elif rate > 0.0:
            high = min(high, -height / rate)
        else:
            low = max(low, -height / rate)
    return _entry(low, high)


@inline
def _cone(o, d, radius, half):
    """x^2 + y^2 <= (slope (half - z))^2 between base and tip; a ray steeper than the flank is inside at both ends."""
    s, t = _slab(o[2], d[2], half)
    slope = 0.5 * radius / half
    u, v = slope * (half - o[2]), -slope * d[2]
    a = d[0] * d[0] + d[1] * d[1] - v * v
    b = o[0] * d[0] + o[1] * d[1] - u * v
    c = o[0] * o[0] + o[1] * o[1] - u * u
    if abs(a) < 1e-14:
        if abs(b) < 1e-14:
            return _entry(s, t) if c <= 0.0 else math.inf
        at = -0.5 * c / b
        return _entry(s, min(t, at)) if b > 0.0 else _entry(max(s, at), t)
    if a > 0.0:
        low, high = _roots(a, b, c)
        return _entry(max(low, s), min(high, t))
    low, high = _roots(-a, -b, -c)
    if low > high:
        return _entry(s, t)
    return min(_entry(s, min(t, low)), _entry(max(s, high), t))


@inline
def _link_at(p, half, ring):
    """Distance from `p` to the core of a link, and the direction away from it."""
    x = p[0] - min(max(p[0], -half), half)
    rho = math.sqrt(x * x + p[1] * p[1])
    away = math.sqrt((rho - ring) * (rho - ring) + p[2] * p[2])
    k = (rho - ring) / max(rho, 1e-300)
    return away, unit((k * x, k * p[1], p[2]))


@kernel
def _link(o, d, half, ring, wire, far):
    """Step by the distance to the surface; when it is near, by Newton, which stays outside where the wire is convex."""
    reach = half + ring + wire
    ahead = -dot(o, d)
    p = along(o, ahead, d)
    under = reach * reach - dot(p, p)
    back = times(-1.0, d)
    if under < 0.0 or ahead + math.sqrt(under) < 0.0:
        return math.inf, back
    t, end = max(0.0, ahead - math.sqrt(under)), min(far, ahead + math.sqrt(under))
    before = t
    for _ in range(MARCH):
        away, n = _link_at(along(o, t, d), half, ring)
        gap = away - wire
        if gap <= 0.0 and t == 0.0:
            return 0.0, back
        if gap < -1e-12 * reach:
            t = 0.5 * (before + t)
            continue
        if gap < 1e-12 * reach:
            return t, n
        before = t
        fall = -dot(n, d)
        t += gap / fall if gap < 0.3 * wire * fall else gap
        if t > end:
            return math.inf, back
    return math.inf, back


@inline
def into_box(mesh, node, o, inverse, far):
    """Where a ray enters a node's box; inf if it does not before `far`."""
    b = mesh.box[node]
    s, t = (b[0] - o[0]) * inverse[0], (b[3] - o[0]) * inverse[0]
    low, high = min(s, t), max(s, t)
    s, t = (b[1] - o[1]) * inverse[1], (b[4] - o[1]) * inverse[1]
    low, high = max(low, min(s, t)), min(high, max(s, t))
    s, t = (b[2] - o[2]) * inverse[2], (b[5] - o[2]) * inverse[2]
    low, high = max(low, min(s, t), 0.0), min(high, max(s, t), far)
    return low if low <= high * (1.0 + 1e-14) else math.inf


@inline
def reciprocal(x):
    """1 / x, or as good as infinite."""
    return 1.0 / x if abs(x) > 1e-150 else math.copysign(1e150, x)


@inline
def through_triangle(o, d, a, b, c):
    """Where a ray goes through a triangle, or inf; on an edge it hits both neighbours, so none lets it through."""
    e, f = sub(b, a), sub(c, a)
    p = cross(d, f)
    det = dot(e, p)
    if abs(det) < 1e-300:
        return math.inf
    s = sub(o, a)
    u = dot(s, p) / det
    q = cross(s, e)
    v = dot(d, q) / det
    if u < -1e-12 or v < -1e-12 or u + v > 1.0 + 1e-12:
        return math.inf
    t = dot(f, q) / det
    return t if t >= 0.0 else math.inf


@kernel
def ray_mesh(mesh, m, o, d, far):
    """Distance to mesh `m` before `far` (else inf), in its own frame, and the normal of the triangle."""
    inverse = (reciprocal(d[0]), reciprocal(d[1]), reciprocal(d[2]))
    node, level, later = mesh.first_node[m], 0, 0
    best, owner = far, -1
    if into_box(mesh, node, o, inverse, best) == math.inf:
        return math.inf, d
    while True:
        go_down = False
        if mesh.link[node, COUNT] == 0:
            left, right = node + 1, mesh.link[node, RIGHT]
            a, b = into_box(mesh, left, o, inverse, best), into_box(mesh, right, o, inverse, best)
            if min(a, b) < math.inf:
                level += 1
                later = (later << 1) | (1 if max(a, b) < math.inf else 0)
                node = left if a <= b else right
                go_down = True
        else:
            for t in range(mesh.link[node, FIRST], mesh.link[node, FIRST] + mesh.link[node, COUNT]):
                s = through_triangle(o, d, corner(mesh, t, 0), corner(mesh, t, 1), corner(mesh, t, 2))
                if s < best:
                    best, owner = s, t
        while not go_down:
            while level > 0 and later & 1 == 0:
                node, later, level = mesh.parent[node], later >> 1, level - 1
            if level == 0:
                if owner < 0:
                    return math.inf, d
                return best, (mesh.normal[owner, 0], mesh.normal[owner, 1], mesh.normal[owner, 2])
            above = mesh.parent[node]
            node = mesh.link[above, RIGHT] if node == above + 1 else above + 1
            later -= 1
            go_down = into_box(mesh, node, o, inverse, best) < math.inf


@inline
def _leaves(u, rate, cell):
    """When a coordinate that starts at `u` leaves a cell."""
    if abs(rate) < 1e-150:
        return math.inf
    return (cell + (1 if rate > 0.0 else 0) - u) / rate


@kernel
def ray_field(field, f, o, d, far):
    """Distance to field `f` before `far` (else inf), in its own frame, and the normal there."""
    if below(field, f, o)[0]:
        return 0.0, times(-1.0, d)
    return through_field(field, f, o, d, far)


@kernel
def through_field(field, f, o, d, far):
    """As ray_field, from either side of the surface."""
    nx, ny, dx, dy = field.nx[f], field.ny[f], field.step[f, 0], field.step[f, 1]
    n = times(-1.0, d)
    s0, s1 = _slab(o[0], d[0], 0.5 * (nx - 1) * dx)
    t0, t1 = _slab(o[1], d[1], 0.5 * (ny - 1) * dy)
    t, end = max(s0, t0, 0.0), min(s1, t1, far)
    if not t <= end:
        return math.inf, n
    u, v = (o[0] + t * d[0]) / dx + 0.5 * (nx - 1), (o[1] + t * d[1]) / dy + 0.5 * (ny - 1)
    x, y = min(max(int(u), 0), nx - 2), min(max(int(v), 0), ny - 2)
    for _ in range(nx + ny):
        next_x = _leaves(o[0] / dx + 0.5 * (nx - 1), d[0] / dx, x)
        next_y = _leaves(o[1] / dy + 0.5 * (ny - 1), d[1] / dy, y)
        leave = max(t, min(next_x, next_y, end))
        a, b = sample(field, f, x, y), sample(field, f, x + 1, y)
        c, e = sample(field, f, x + 1, y + 1), sample(field, f, x, y + 1)
        if min(o[2] + t * d[2], o[2] + leave * d[2]) <= max(a[2], b[2], c[2], e[2]):
            p, q = through_triangle(o, d, a, b, c), through_triangle(o, d, a, c, e)
            if min(p, q) <= end:
                if p <= q:
                    return p, unit(cross(sub(b, a), sub(c, a)))
                return q, unit(cross(sub(c, a), sub(e, a)))
        if leave >= end:
            return math.inf, n
        t = leave
        if next_x < next_y:
            x += 1 if d[0] > 0.0 else -1
        else:
            y += 1 if d[1] > 0.0 else -1
        if x < 0 or y < 0 or x > nx - 2 or y > ny - 2:
            return math.inf, n
    return math.inf, n
