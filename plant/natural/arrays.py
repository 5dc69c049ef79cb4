"""The arrays of the core from a description of its entities and rows, with room for what comes later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilnode.core.struct import zeros
from plant import model
from plant.natural import model as natural
from plant.natural.builder import Builder, Row
from plant.natural.model import Form
from plant.sparse import block_ldl, ordering
from plant.world.checks import WorldError

LARGEST = 2000  # nodes of the tangent matrix
DENSE = 160  # up to so many nodes there is room for every block


@dataclass(frozen=True)
class Room:
    """How long the arrays are: enough for every body and joint that the engine has a place for, with nothing shared."""

    bodies: int
    entities: int
    lines: int
    rows: int
    terms: int
    contacts: int

    @staticmethod
    def of(e: model.Engine) -> Room:
        bodies, joints, actuators = len(e.model.body.mass), len(e.model.joint.on), len(e.model.actuator.on)
        couplings, springs = len(e.model.coupling.on), len(e.model.spring.on)
        lines = 3 * bodies + 8 * (joints + actuators + couplings) + springs + 1
        rows = 6 * (bodies + joints) + 2 * actuators + 4 * couplings + springs + 1
        return Room(bodies, 4 * (bodies + 1), lines, rows, 12 * rows + 36 * couplings, len(e.data.contact.depth))


def new_arrays(e: model.Engine, method: natural.Method) -> natural.Natural:
    """Empty arrays for everything that the engine has a place for."""
    room = Room.of(e)
    n, r, c = room.entities, room.rows, room.contacts
    three = dict.fromkeys(("q", "v", "a", "load", "residual", "before", "a_before"), (n, 3))
    row_shapes = {
        **dict.fromkeys(("use", "ratio"), (r, 3)),
        **dict.fromkeys(("share", "slope"), (room.terms, 3)),
        "first": (r + 1,),
        "entity": (room.terms,),
        "count": (1,),
    }
    line_shapes = {"first": (room.lines + 1,), "value": (room.lines, 3), "rate": (room.lines, 3), "count": (1,)}
    contact_shapes = {
        "share": (c, 2, 4),
        "weight": (c, 3, 3),
        **dict.fromkeys(("start", "prescribed", "stretch", "next", "push"), (c, 3)),
    }
    square = (room.bodies + 1, 4, 4)
    return natural.Natural(
        method=method,
        entity=zeros(natural.Entities, {**three, "local": (n, 4), "count": (1,)}, n),
        frame=zeros(natural.Frames, {"of": square[:2], "made": square, "part": square, "mass": square}, 0),
        combination=zeros(natural.Combinations, line_shapes, 8 * room.lines),
        row=zeros(natural.Rows, row_shapes, r),
        solution=_solution(4 * room.bodies, c),
        contact=zeros(natural.ContactForces, contact_shapes, c),
        foundation=_foundation_rows(len(e.data.region.volume)),
        report=np.zeros(natural.Report.COUNT),
        wrench=natural.FoundationWrenches(*np.zeros((3, len(e.data.region.volume), 3))),
    )


def _foundation_rows(contacts: int) -> natural.FoundationRows:
    """Room for the rows of so many contacts by volume."""
    rows = 6 * contacts
    shapes = {"entity": (8 * rows,), "slope": (8 * rows, 3), "pos": (2, 3), "rot": (2, 3, 3), "vel": (2, 6)}
    made: natural.FoundationRows = zeros(natural.FoundationRows, shapes, rows)
    made.first[:] = 8 * np.arange(rows)
    return made


def _solution(nodes: int, contacts: int) -> natural.Solution:
    nodes = max(1, nodes)
    if nodes > LARGEST:
        raise WorldError(
            f"{nodes // 4} bodies: the core in natural coordinates takes up to {LARGEST // 4}; "
            "use stepper='spook' for a world of this size"
        )
    blocks = nodes * (nodes - 1) // 2 if nodes <= DENSE else 40 * nodes
    updates = nodes**3 // 6 if nodes <= DENSE else 40 * blocks
    return natural.Solution(
        dirty=np.ones(1, np.int64),
        nodes=np.zeros(1, np.int64),
        where=np.full((nodes, nodes), -1, np.int64),
        pairs=np.zeros((max(1, contacts), 2), np.int64),
        pair_count=np.zeros(1, np.int64),
        sketch=ordering.new_sketch(nodes),
        pattern=ordering.new_pattern(nodes, max(1, blocks), max(1, updates)),
        factor=block_ldl.new_factor(nodes, max(1, blocks)),
        x=np.zeros((nodes, 6)),
    )


def fill(made: natural.Natural, b: Builder) -> None:
    """Write a description into the arrays, over whatever they held."""
    used = sorted({b.sharing.find(x) for f in b.sharing.frames for x in f.entity})
    place = {e: i for i, e in enumerate(used)}
    _fill_entities(made.entity, b, place)
    frame = made.frame
    for k, f in enumerate(b.sharing.frames):
        frame.of[k] = [place[int(x)] for x in b.of[k]] if f.entity else 0
    frame.made[:], frame.part[:], frame.mass[:] = b.made, b.part, b.masses()
    _fill_lines(made.combination, b, place)
    _fill_rows(made.row, b, place, made.entity.known)
    made.solution.dirty[0] = 1


def _fill_entities(entity: natural.Entities, b: Builder, place: dict[int, int]) -> None:
    entity.count[0] = len(place)
    entity.users[:] = entity.known[:] = 0
    entity.node[:] = entity.mate[:] = entity.owner[:] = -1
    waiting: dict[frozenset[int], int] = {}
    for e, i in place.items():
        thing = b.sharing.entities[e]
        entity.users[i] = len(thing.users)
        if (o := thing.owner) is not None:
            entity.known[i], entity.owner[i], entity.local[i] = 1, o, thing.local
            entity.q[i] = thing.local[0] * b.pos[o] + b.rot[o] @ thing.local[1:]
            entity.v[i] = entity.a[i] = 0.0
            continue
        mate = waiting.pop(key := frozenset(thing.users), None)  # two to a node where the same bodies use both
        if mate is None:
            waiting[key] = i
        else:
            entity.mate[i], entity.mate[mate] = mate, i


def _fill_lines(combination: natural.Combinations, b: Builder, place: dict[int, int]) -> None:
    combination.count[0] = len(b.line_list)
    at = 0
    for i, line in enumerate(b.line_list):
        combination.first[i] = at
        for e, s in line.share.items():
            combination.entity[at], combination.share[at] = place[e], s
            at += 1
    combination.first[len(b.line_list)] = at


def _terms(b: Builder, row: Row, place: dict[int, int], known: NDArray[np.int64]) -> list[tuple[int, list[float]]]:
    """Entities of a row with their shares in each of its combinations; those that move freely first."""
    if row.form == Form.SUM:
        return [t for other in row.use for t in _terms(b, b.rows[other], place, known) if not known[t[0]]]
    shares: dict[int, list[float]] = {}
    for k, line in enumerate(row.lines):
        for e, s in line.share.items():
            shares.setdefault(place[e], [0.0, 0.0, 0.0])[k] += s
    return sorted(shares.items(), key=lambda t: (known[t[0]], t[0]))


def _fill_rows(out: natural.Rows, b: Builder, place: dict[int, int], known: NDArray[np.int64]) -> None:
    out.count[0] = len(b.rows)
    out.use[:] = -1
    out.slope[:] = out.ratio[:] = 0.0
    at = 0
    for i, row in enumerate(b.rows):
        terms = _terms(b, row, place, known)
        out.first[i], out.free[i] = at, sum(1 for e, _ in terms if not known[e])
        for e, s in terms:
            out.entity[at], out.share[at] = e, s
            if row.form == Form.PART:
                out.slope[at, row.use[1]] = s[0]
            at += 1
        out.form[i], out.role[i] = int(row.form), int(row.role)
        out.use[i, : len(row.use)], out.ratio[i, : len(row.ratio)] = row.use, row.ratio
        out.goal[i], out.low[i], out.high[i] = row.goal, row.low, row.high
        out.k[i], out.c[i] = row.stiffness, row.damping
        out.joint[i], out.slot[i], out.actuator[i], out.spring[i] = row.joint, row.slot, row.actuator, row.spring
        out.turn[i], out.goal_rate[i], out.goal_acceleration[i] = row.turn, row.goal_rate, row.goal_acceleration
        out.value[i] = out.force[i] = out.multiplier[i] = out.stiff[i] = out.drag[i] = 0.0
        out.active[i] = 0
    out.first[len(b.rows)] = at
