"""Candidate pairs of a step: moving shapes against each other, against static shapes and against planes.

    shapes ──► fat boxes ──► tree, scenery, planes ──► candidates ──► exact boxes, sleep ──► pairs
               only of those that      │               kept sorted     every step, in the
               left their fat box ─────┘               between steps   order of candidates

A moving shape stands in the tree with a fat box: its tight box, the margin, some slack, and the way that it goes in the
time `ahead`. While the tight box with its margin stays inside, nobody can come near it without being a candidate, so
that most steps only look through the candidates. A shape that leaves its fat box gets a new one, and only its own
candidates are found again.

A pair is listed if its tight boxes are not more than the margin apart on any axis (box against plane: if a corner of
the box is not more than the margin above it), both shapes are enabled, and at least one of the two bodies is neither
static nor asleep. At least one must be dynamic: nothing else can give way. Static bodies and the ground stand where
they were when the broad phase was built; kinematic bodies move.

A sweep along one axis, sorted anew in each step, is slower in every scene of tools/bench_broadphase.py (two to four
times with 1,000 bodies, twenty times in a pile of 10,000), so there is none.

The graph of bounding spheres of Luaces 4.4.4 (eq. 4.12 to 4.14, where 4.14 lacks a factor 1/2), one per mechanism, is
not here: it must be laid down by hand, its spheres hold far more space than a boom or a rod does, and it leaves the
pairs of mechanisms to be tried one by one. The tree groups what is near by itself, also across mechanisms. The
objection there, that updating a tree at each instant is too dear, is met by the fat boxes.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.collision.broadphase.dynamic_tree import ABSENT, NONE, ROOT, insert_leaf, query_box, rebuild, remove_leaf
from plant.collision.broadphase.model import AWAKE, COUNT, DISABLED, FLIP, IDLE, PLANE, STALE, STATIC
from plant.collision.broadphase.pairs import may_meet, merge_keys, pair_key, sort_keys
from plant.collision.broadphase.static_tree import query_scenery

MANY = 10  # a tree of which one leaf in so many moves in a step is built anew
ODD = 16  # a tree higher by so much than twice the logarithm of its leaves has grown badly: it is built anew
LONGEST = 2.0  # stretch of a fat box by its velocity, at most so many times its size
GOLDEN = 0.6180339887498949  # its multiples, without their whole part, are spread evenly over 0 .. 1
UNBOUNDED = 1e12  # [m] a longer box is not that of a thing: such a shape is left out


@inline
def _plane_near(placed, p, x0, y0, z0, x1, y1, z1, margin):
    """Whether some corner of the box is not more than `margin` above the plane `p`."""
    a, b, c = placed.rot[p, 0, 2], placed.rot[p, 1, 2], placed.rot[p, 2, 2]
    x, y, z = placed.pos[p, 0], placed.pos[p, 1], placed.pos[p, 2]
    lowest = min(a * (x0 - x), a * (x1 - x)) + min(b * (y0 - y), b * (y1 - y)) + min(c * (z0 - z), c * (z1 - z))
    return lowest <= margin


@inline
def _has_place(shape, placed, s):
    """Whether a shape takes part: enabled, with a box that is one (a body that ran away has none)."""
    low, high = placed.low, placed.high
    return (
        (shape.enabled[s] != 0)
        & (abs(low[s, 0]) + abs(high[s, 0]) < UNBOUNDED)
        & (abs(low[s, 1]) + abs(high[s, 1]) < UNBOUNDED)
        & (abs(low[s, 2]) + abs(high[s, 2]) < UNBOUNDED)
    )


@inline
def _is_inside(box, k, placed, s, margin):
    """Whether the tight box of shape `s` with its margin is still inside the fat one of leaf `k`."""
    low, high = placed.low, placed.high
    return (
        (low[s, 0] - margin >= box[k, 0])
        & (high[s, 0] + margin <= box[k, 3])
        & (low[s, 1] - margin >= box[k, 1])
        & (high[s, 1] + margin <= box[k, 4])
        & (low[s, 2] - margin >= box[k, 2])
        & (high[s, 2] + margin <= box[k, 5])
    )


@inline
def _fatten(broad, shape, placed, vel, k):
    """A new fat box for leaf `k`: of another size than its neighbours', so that bodies that move alike do not all
    leave theirs in the same step.
    """
    s, box, low, high = broad.shape[k], broad.tree.box, placed.low, placed.high
    b = shape.body[s]
    side = (high[s, 0] - low[s, 0] + high[s, 1] - low[s, 1] + high[s, 2] - low[s, 2]) / 3.0
    side = max(side, 4.0 * broad.margin)  # a point needs some slack too
    share = 0.5 + (k * GOLDEN) % 1.0
    more, longest = broad.margin + broad.slack * share * side, LONGEST * side
    for a in range(3):
        way = broad.ahead * share * vel[b, a]
        back = max(-longest, way) if way < 0.0 else 0.0
        forth = min(longest, way) if way > 0.0 else 0.0
        box[k, a], box[k, a + 3] = low[s, a] - more + back, high[s, a] + more + forth


@kernel
def _who_moved(broad, shape, placed, asleep):
    """List the leaves that came, went or left their fat box, and note who rests; returns how many moved."""
    up, box, stale, count = broad.tree.up, broad.tree.box, broad.state[STALE] != 0, 0
    for k in range(broad.shape.size):
        s = broad.shape[k]
        here = _has_place(shape, placed, s)
        broad.rest[s] = (IDLE if asleep[shape.body[s]] != 0 else AWAKE) if here else DISABLED
        was_here = up[k] != ABSENT
        if stale or here != was_here or (here and not _is_inside(box, k, placed, s, broad.margin)):
            broad.moved[count] = k
            broad.changed[s] = 1
            count += 1
    for n in range(broad.plane.size):
        p = broad.plane[n]
        if broad.role[p] != STATIC:
            broad.rest[p] = IDLE if asleep[shape.body[p]] != 0 else AWAKE
    return count


@kernel
def _move_leaves(broad, shape, placed, vel, count):
    """Give the moved leaves new boxes, one by one or, if they are many, in a new tree."""
    up, anew = broad.tree.up, count * MANY > broad.shape.size
    for n in range(count):
        k = broad.moved[n]
        if not anew and up[k] != ABSENT:
            remove_leaf(broad.tree, k)
        if broad.rest[broad.shape[k]] == DISABLED:
            up[k] = ABSENT
            continue
        _fatten(broad, shape, placed, vel, k)
        if anew:
            up[k] = NONE
        else:
            insert_leaf(broad.tree, k)
    root = broad.tree.state[ROOT]
    if anew or (root != NONE and broad.tree.height[root] > 2 * broad.bits + ODD):
        rebuild(broad.tree)


@inline
def _note(broad, shape, count, i, j):
    """Add a candidate if the two can ever meet; counts on when there is no room."""
    if not may_meet(shape, broad.role, broad.excluded, broad.bodies, i, j):
        return count
    if count < broad.key_new.size:
        broad.key_new[count] = pair_key(shape, broad.bits, i, j)
    return count + 1


@kernel
def _neighbours(broad, shape, placed, k, count):
    """Add the candidates of the moved leaf `k`; of two moved ones, the later finds the pair."""
    s, box, found = broad.shape[k], broad.tree.box, broad.found
    x0, y0, z0, x1, y1, z1 = box[k, 0], box[k, 1], box[k, 2], box[k, 3], box[k, 4], box[k, 5]
    for n in range(query_box(broad.tree, x0, y0, z0, x1, y1, z1, found)):
        o = broad.shape[found[n]]
        if o < s or (o > s and broad.changed[o] == 0):
            count = _note(broad, shape, count, s, o)
    for n in range(query_scenery(broad.scenery, x0, y0, z0, x1, y1, z1, found)):
        count = _note(broad, shape, count, s, broad.scenery.shape[found[n]])
    for n in range(broad.plane.size):
        p = broad.plane[n]
        if broad.role[p] != STATIC or _plane_near(placed, p, x0, y0, z0, x1, y1, z1, 0.0):
            count = _note(broad, shape, count, s, p)
    return count


@kernel
def _loose_planes(broad, shape, count):
    """Add the candidates of planes on moving bodies with the scenery: all of it, for such a plane reaches anywhere."""
    for n in range(broad.plane.size):
        p = broad.plane[n]
        if broad.role[p] != STATIC:
            for m in range(broad.scenery.shape.size):
                count = _note(broad, shape, count, p, broad.scenery.shape[m])
    return count


@kernel
def _update_candidates(broad, shape, placed, moved):
    """Find the candidates of moved leaves again; returns how many found no room: then the next step finds all anew."""
    state, count = broad.state, 0
    if state[STALE] != 0:
        state[COUNT] = 0
        count = _loose_planes(broad, shape, 0)
    for n in range(moved):
        if broad.tree.up[broad.moved[n]] != ABSENT:
            count = _neighbours(broad, shape, placed, broad.moved[n], count)
    room = broad.key_new.size
    left_out, count = max(0, count - room), min(count, room)
    old, out = (broad.key_b, broad.key_a) if state[FLIP] != 0 else (broad.key_a, broad.key_b)
    sort_keys(broad.key_new, out, broad.table, count, broad.bits)
    total = merge_keys(old, state[COUNT], broad.key_new, count, broad.changed, broad.bits, out)
    left_out += max(0, total - room)
    state[COUNT], state[FLIP], state[STALE] = min(total, room), 1 - state[FLIP], 1 if left_out > 0 else 0
    for n in range(moved):
        broad.changed[broad.shape[broad.moved[n]]] = 0
    return left_out


@inline
def _is_near_plane(placed, p, s, margin):
    """The box of shape `s` against the plane `p`."""
    low, high = placed.low, placed.high
    return _plane_near(placed, p, low[s, 0], low[s, 1], low[s, 2], high[s, 0], high[s, 1], high[s, 2], margin)


@kernel
def _list_pairs(broad, shape, placed, out):
    """Fill `out` with the candidates that are near and not both at rest; returns how many found no room.

    Candidates with the same first shape follow each other, so its box is loaded once. Each is written down in any case
    and kept if it counts: half of them do, and the processor would guess a jump wrong as often.
    """
    bits, rest, margin, room = broad.bits, broad.rest, broad.margin, out.pair.shape[0]
    low, high, kind, enabled = placed.low, placed.high, shape.kind, shape.enabled
    key = broad.key_b if broad.state[FLIP] != 0 else broad.key_a
    mask, total, n, count = (1 << bits) - 1, broad.state[COUNT], 0, 0
    while n < total:
        i = key[n] >> bits
        x0, y0, z0 = low[i, 0] - margin, low[i, 1] - margin, low[i, 2] - margin
        x1, y1, z1 = high[i, 0] + margin, high[i, 1] + margin, high[i, 2] + margin
        rest_i = rest[i] if enabled[i] != 0 else DISABLED
        while n < total and key[n] >> bits == i:
            j = key[n] & mask
            n += 1
            if kind[j] == PLANE:
                near = _is_near_plane(placed, j, i, margin)
            elif kind[i] == PLANE:
                near = _is_near_plane(placed, i, j, margin)
            else:
                near = (low[j, 0] <= x1) & (low[j, 1] <= y1) & (low[j, 2] <= z1)
                near &= (high[j, 0] >= x0) & (high[j, 1] >= y0) & (high[j, 2] >= z0)
            if count < room:
                out.pair[count, 0], out.pair[count, 1] = i, j
            count += near & (rest_i + rest[j] < DISABLED) & (enabled[j] != 0)
    out.count[0] = min(count, room)
    return count - out.count[0]


@kernel
def find_pairs(broad, shape, placed, vel, asleep, out):
    """Fill `out` with the pairs of this step; returns how many found no room.

    `vel` [b, 6] are velocities (only the linear part is used, and only for speed: any value gives the same pairs),
    `asleep` [b] is 1 for bodies at rest. After a change of groups, masks or excluded pairs set state[STALE] to 1.
    """
    left_out = 0
    moved = _who_moved(broad, shape, placed, asleep)
    if moved > 0 or broad.state[STALE] != 0:
        _move_leaves(broad, shape, placed, vel, moved)
        left_out = _update_candidates(broad, shape, placed, moved)
    return left_out + _list_pairs(broad, shape, placed, out)
