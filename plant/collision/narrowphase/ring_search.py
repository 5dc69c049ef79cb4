"""Branch and bound along the core curve of a ring: is any part nearer to the other shape than the minima found so far?

A walk in steps sees minima that are a step apart; what is smaller than a step may hide between two of them. So each
step has a lower bound of the distances in it, from the distances and slopes at its ends. Where the bound does not rule
out a nearer place the step is parted, at the place where the bound is least, and so on until every part is ruled
out (branch and bound, after Piyavskii and Shubert). Three facts give the bounds:

- No distance changes faster than the point moves: between ends with distances a and b, a way h apart, it is nowhere
  less than (a + b - h) / 2.
- The signed distance from a convex shape is a convex function. So the plane through the closest point,
  perpendicular to the normal n, is below it everywhere, and along a curve with the curvature c that plane is a parabola
  with the slope n.t and the bend c n.m (t tangent, m to the middle of the bend). From both ends two parabolas meet.
- The distance from a ring bends down only inside it, around its axis, by no more than 1 / r at the distance r from the
  axis (the segment within, of a link). With the curve's own bend that makes a parabola too.

A mesh or field is neither, but each of its triangles is convex. So the triangles that are near enough to a step are
searched one by one; what they find counts if it is what is closest there, seen from outside.

Limits: on a mesh or field this is for cores outside; of those that run through the surface the middles of steps are
looked at. A step along which the distance is level is parted once: a ring about a bolt has no better bound. A search
ends after SEARCHES distances (FACE_SEARCHES on triangles), which is ten times what is usual.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.collision.narrowphase.field import cells, triangle
from plant.collision.narrowphase.ring_curve import STEPS, from_middle, longest_step, on_curve, ring_size, step_size
from plant.collision.narrowphase.ring_distance import MESH, TORUS, distance_from
from plant.collision.shape.bvh8 import LEVELS, around, lowest, next_leaf
from plant.collision.shape.mesh import at
from plant.collision.shape.triangle import closest_point
from plant.collision.vec3 import cross, dot, sub, times

EVEN = 1e-3  # slope up to which a level stretch has no bumps between two steps
LEAST_SLOPE = 1e-8  # where a minimum counts as found: its distance is then right to rounding
REFINE = 42  # at most so many steps to a minimum; half a dozen as a rule
UNSEEN = math.inf  # mark of a step whose distance is only known to be out of reach
ROWS = 40  # parts of a step that may wait; half a dozen as a rule
SEARCHES, FACE_SEARCHES = 200, 3000
NEARER = 0.1  # if the one end is nearer than the other by that factor, a step is parted nearer to it: few parts suffice
SHORTEST = 1e-6  # of a step: shorter parts are left


@inline
def bow_at(other, curve, p, t, n):
    """What bounds the bend of the distance at a place with this tangent and normal.

    Of a ring how far the place is from its axis; of any other shape how far its normal points to the bend's middle.
    """
    shape, i = other.shape, other.i
    if TORUS <= shape.kind[i] < MESH:
        return from_middle(p, ring_size(shape, i)[0])
    return dot(n, curve.y) * dot(t, curve.x) - dot(n, curve.x) * dot(t, curve.y)


@inline
def is_steep(other, curve, s, k):
    """Whether the slopes at the ends of step k say that the distance rises, or falls, all along it."""
    after, kind = (k + 1) % STEPS, other.shape.kind[other.i]
    if kind >= MESH or s.bow[k] == UNSEEN or s.bow[after] == UNSEEN:
        return False
    length, bend = step_size(curve, k)
    if kind >= TORUS:
        bend += _bend_inside(s.bow[k], s.bow[after], length, ring_size(other.shape, other.i)[1])
    return s.slope[k] > bend * length or s.slope[after] < -bend * length


@inline
def _bend_inside(one, other, h, hollow):
    """How much the distance from a ring bends down at most, between places this far from its axis, a way h apart."""
    axis = 0.5 * (one + other - h)
    return 1.0 / max(axis, 1e-300) if axis < hollow else 0.0


@kernel
def turning_point(other, curve, k, low, high, here, there, limit):
    """Which part of the way from step k to the next the slope turns from falling to rising, between low and high.

    Regula falsi (Illinois) first; a slope that jumps, at an edge of a shape's inside, is left to halving.
    """
    side = 0
    for step in range(REFINE):
        part = (low * there - high * here) / (there - here)
        if step > 8 or not (part > low and part < high):
            part = 0.5 * (low + high)
        p, t = on_curve(curve, k, part)
        _, n = distance_from(other, p, limit)
        rise = dot(n, t)
        if abs(rise) < LEAST_SLOPE or high - low < 1e-10:
            return part
        if rise < 0.0:
            low, here = part, rise
            if side == -1:
                there *= 0.5
            side = -1
        else:
            high, there = part, rise
            if side == 1:
                here *= 0.5
            side = 1
    return 0.5 * (low + high)


@kernel
def nearer_place(other, curve, s, best, trifle):
    """The closest place of the core, if it is nearer than `best` by more than `trifle`: its step and part of that.

    Step -1 if there is none. The scratch has the walk along the ring.
    """
    shape, i = other.shape, other.i
    on_surface = shape.kind[i] >= MESH
    limit = other.reach + longest_step(curve)
    left = FACE_SEARCHES if on_surface else SEARCHES
    found = (best, -1, 0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(STEPS):
        length, _ = step_size(curve, k)
        after = (k + 1) % STEPS
        if 0.5 * (s.gap[k] + s.gap[after] - length) >= found[0] - trifle:
            continue
        if on_surface:
            found, left = _step_on_surface(other, curve, s, k, found, trifle, limit, left)
        else:
            _see(other, curve, s, k, limit)
            _see(other, curve, s, after, limit)
            s.end[0, 0], s.end[0, 1], s.end[0, 2], s.end[0, 3] = 1.0, s.gap[after], s.slope[after], s.bow[after]
            begin = (0.0, s.gap[k], s.slope[k], s.bow[k])
            found, left = _step(other, curve, s, k, False, begin, found, trifle, limit, left)
    best, k, part, low, high, here, there = found
    if k >= 0 and low < high:
        better = turning_point(other, curve, k, low, high, here, there, limit)
        p, _ = on_curve(curve, k, better)
        d, n = distance_from(other, p, limit)
        if d < best and dot(n, n) > 0.5:
            part = better
    return k, part


@kernel
def _see(other, curve, s, k, limit):
    """Fill the scratch at a step that the walk left out."""
    if s.bow[k] == UNSEEN:
        _, s.gap[k], s.slope[k], s.bow[k] = _end(other, curve, s, k, 0.0, False, limit)


@kernel
def _end(other, curve, s, k, part, alone, limit):
    """A place on the way from step k to the next: its part of that way, distance, slope and bow.

    From the triangle in the scratch if that is `alone`, or else from the whole shape.
    """
    p, t = on_curve(curve, k, part)
    if alone:
        d, n = _from_triangle(s, p)
    else:
        d, n = distance_from(other, p, limit)
    return part, d, dot(n, t), bow_at(other, curve, p, t, n)


@inline
def _from_triangle(s, p):
    """Distance of a point from the triangle in the scratch, and the normal."""
    c = s.corner
    _, x, y, z = closest_point(p, (c[0, 0], c[0, 1], c[0, 2]), (c[1, 0], c[1, 1], c[1, 2]), (c[2, 0], c[2, 1], c[2, 2]))
    d = sub(p, (x, y, z))
    size = math.sqrt(dot(d, d))
    return size, times(1.0 / max(size, 1e-300), d)


@kernel
def _step(other, curve, s, k, alone, a, found, trifle, limit, left):
    """Search step k from its end `a` to the end that is in the first row of the scratch, one part after the other.

    `found` is the closest place so far: distance, step, part, and if a minimum is sure to lie about it the parts on
    both sides of that and the slopes there. `left` is how many distances may be asked for.
    """
    length, curl = step_size(curve, k)
    hollow = ring_size(other.shape, other.i)[1] if TORUS <= other.shape.kind[other.i] < MESH else -1.0
    b = s.end[0, 0], s.end[0, 1], s.end[0, 2], s.end[0, 3]
    found = _taken(k, a, a, b, found, trifle)
    found = _taken(k, b, a, b, found, trifle)
    shortest = 0.6 if max(abs(a[2]), abs(b[2])) < EVEN and not alone else SHORTEST
    top = 0
    while top >= 0:
        b = s.end[top, 0], s.end[top, 1], s.end[top, 2], s.end[top, 3]
        h = length * (b[0] - a[0])
        bound, way = _floor(a, b, h, curl, hollow)
        target = found[0] - trifle
        if bound >= target or b[0] - a[0] < shortest or top == ROWS - 1 or left == 0:
            a, top = b, top - 1
            continue
        if a[1] - target < NEARER * (b[1] - target):
            way *= 0.5
        elif b[1] - target < NEARER * (a[1] - target):
            way = 0.5 + 0.5 * way
        c = _end(other, curve, s, k, a[0] + way * (b[0] - a[0]), alone, limit)
        left -= 1
        found = _taken(k, c, a, b, found, trifle)
        top += 1
        s.end[top, 0], s.end[top, 1], s.end[top, 2], s.end[top, 3] = c
    return found, left


@inline
def _taken(k, c, a, b, found, trifle):
    """The place `c` of step k, between `a` and `b`, if it is nearer than what was found."""
    if not c[1] < found[0] - trifle:
        return found
    if c[2] < 0.0 and b[2] > 0.0:
        return c[1], k, c[0], c[0], b[0], c[2], b[2]
    if c[2] > 0.0 and a[2] < 0.0:
        return c[1], k, c[0], a[0], c[0], a[2], c[2]
    return c[1], k, c[0], 0.0, 0.0, 0.0, 0.0


@inline
def _floor(a, b, h, curl, hollow):
    """A lower bound of the distance between two ends, a way h apart, and at which part of it the bound is least.

    Sines and cosines of the curve's turn are replaced by parabolas that are nowhere above them.
    """
    turn = (curl * h) ** 2
    if hollow >= 0.0:
        one = other = -curl - _bend_inside(a[3], b[3], h, hollow)
    else:
        one, other = curl * a[3], curl * b[3]
        one *= 1.0 if one < 0.0 else 1.0 - turn / 12.0
        other *= 1.0 if other < 0.0 else 1.0 - turn / 12.0
    on = a[2] if a[2] < 0.0 else a[2] * (1.0 - turn / 6.0)
    back = -b[2] if b[2] > 0.0 else -b[2] * (1.0 - turn / 6.0)
    mean = 0.5 * (one + other)
    under = -on - back - mean * h
    way = a[1] - b[1] - back * h - 0.5 * mean * h * h
    way = min(max(way / under, 0.1 * h), 0.9 * h) if under > 0.0 else 0.5 * h
    bound = min(_lowest(a[1], on, one, way), _lowest(b[1], back, other, h - way))
    return max(bound, 0.5 * (a[1] + b[1] - h)), way / max(h, 1e-300)


@inline
def _lowest(d, slope, bend, h):
    """The least of d + slope x + bend x x / 2 from 0 to h."""
    if slope < 0.0 and slope + bend * h > 0.0:
        return d - 0.5 * slope * slope / bend
    return min(d, d + h * (slope + 0.5 * bend * h))


@kernel
def _step_on_surface(other, curve, s, k, found, trifle, limit, left):
    """As `_step`, on a mesh or field: a search for each triangle near enough to step k."""
    after = (k + 1) % STEPS
    if s.bow[k] != UNSEEN and s.bow[after] != UNSEEN:
        a, b = (0.0, s.gap[k], s.slope[k], 0.0), (1.0, s.gap[after], s.slope[after], 0.0)
        found = _taken(k, b, a, b, _taken(k, a, a, b, found, trifle), trifle)
    if found[0] - trifle <= 0.0:
        c = _end(other, curve, s, k, 0.5, False, limit)
        return _taken(k, c, c, c, found, trifle), left
    length, curl = step_size(curve, k)
    rise = 0.125 * curl * length * length  # of the curve above its chord
    begin, end, middle = on_curve(curve, k, 0.0), on_curve(curve, k, 1.0), on_curve(curve, k, 0.5)
    way = begin, end, middle[0], length, rise
    p, q, far = begin[0], end[0], found[0] - trifle + rise
    low = min(p[0], q[0]) - far, min(p[1], q[1]) - far, min(p[2], q[2]) - far
    high = max(p[0], q[0]) + far, max(p[1], q[1]) + far, max(p[2], q[2]) + far
    if other.shape.kind[other.i] == MESH:
        return _faces_of_mesh(other, curve, s, k, way, low, high, found, trifle, limit, left)
    return _faces_of_field(other, curve, s, k, way, low, high, found, trifle, limit, left)


@kernel
def _faces_of_mesh(other, curve, s, k, way, low, high, found, trifle, limit, left):
    """Search step k over the triangles of a mesh within a box."""
    mesh, m, bounds = other.mesh, other.shape.asset[other.i], around(low, high)
    level, node, waiting = mesh.wide_level[m, LEVELS], 0, 1
    while True:
        level, node, waiting, first, met = next_leaf(mesh, m, level, node, waiting, bounds)
        if met == 0:
            return found, left
        while met != 0:
            t = first + lowest(met)
            met &= met - 1
            p, q, r = at(mesh, mesh.row[t, 0]), at(mesh, mesh.row[t, 1]), at(mesh, mesh.row[t, 2])
            if _is_worth_it(way, p, q, r, found[0] - trifle):
                found, left = _face(other, curve, s, k, way, p, q, r, found, trifle, limit, left)


@kernel
def _faces_of_field(other, curve, s, k, way, low, high, found, trifle, limit, left):
    """Search step k over the triangles of a field within a box."""
    field, f = other.field, other.shape.asset[other.i]
    x0, y0, x1, y1 = cells(field, f, low[0], low[1], high[0], high[1])
    for x in range(x0, x1):
        for y in range(y0, y1):
            for part in range(2):
                p, q, r = triangle(field, f, x, y, part)
                if max(p[2], q[2], r[2]) < low[2] or min(p[2], q[2], r[2]) > high[2]:
                    continue
                if _is_worth_it(way, p, q, r, found[0] - trifle):
                    found, left = _face(other, curve, s, k, way, p, q, r, found, trifle, limit, left)
    return found, left


@inline
def _is_worth_it(way, p, q, r, target):
    """Whether a triangle may be nearer than `target` to a step, and seen from above.

    Where an edge or corner of a triangle that is seen from below is closest, a neighbour is seen from above.
    """
    begin, end, middle, length, rise = way
    n = cross(sub(q, p), sub(r, p))
    height = max(dot(n, sub(begin[0], p)), dot(n, sub(end[0], p)))
    if height < 0.0 and height * height > rise * rise * dot(n, n):
        return False
    _, x, y, z = closest_point(middle, p, q, r)
    d, far = sub(middle, (x, y, z)), target + 0.5 * length
    return target > 0.0 and dot(d, d) < far * far


@kernel
def _face(other, curve, s, k, way, p, q, r, found, trifle, limit, left):
    """Search step k over one triangle; what it finds counts if nothing else is nearer there, and from outside."""
    for c in range(3):
        s.corner[0, c], s.corner[1, c], s.corner[2, c] = p[c], q[c], r[c]
    (u, on), (v, ahead) = way[0], way[1]
    one, n = _from_triangle(s, u)
    two, m = _from_triangle(s, v)
    if 0.5 * (one + two - way[3]) >= found[0] - trifle:
        return found, left
    s.end[0, 0], s.end[0, 1], s.end[0, 2], s.end[0, 3] = 1.0, two, dot(m, ahead), bow_at(other, curve, v, ahead, m)
    a = 0.0, one, dot(n, on), bow_at(other, curve, u, on, n)
    better, left = _step(other, curve, s, k, True, a, found, trifle, limit, left)
    if better[0] < found[0]:
        place, _ = on_curve(curve, k, better[2])
        d, n = distance_from(other, place, limit)
        if dot(n, n) > 0.5 and d <= better[0] + 1e-9 * limit:
            return better, left
    return found, left
