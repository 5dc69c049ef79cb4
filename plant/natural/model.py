"""Arrays of the core in natural coordinates.

An *entity* is a point or a vector: three coordinates. A body is four entities, any that span its frame; every point of
it is a fixed linear combination of the four, so its mass matrix is constant, four by four numbers times the unit
matrix. Bodies that are joined may share entities: a joint that is nothing but shared entities has no equations.
Known entities belong to the ground or to bodies that move as they are told.

A *combination* is a point, a direction or a difference of points, linear in entities. A *row* is a function of
combinations: its value, rate and gradient. What a row does (hold, drive, pull) is its role.

Indices: entity e, body b (the last one is the ground), combination c, row r, term t of a row.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from hilnode.core.struct import F1, F2, F3, I1, I2, viewer
from plant.sparse.block_ldl import Factor
from plant.sparse.ordering import Pattern, Sketch


class Form(IntEnum):
    """What function of its combinations a row is."""

    DOT = 0  # first . second
    PART = 1  # one component of the first
    ANGLE = 2  # turn of the first in the plane of second (0) and third (90 degrees) [rad]
    LENGTH = 3  # |first|
    SUM = 4  # of other rows, each times its ratio


class Role(IntEnum):
    """What a row does."""

    OFF = 0
    HOLD = 1  # value = goal, which a guide moves
    STOP = 2  # value on one side of the goal: limits
    PULL = 3  # spring and damper about the goal, linear
    TABLE = 4  # spring with a table
    OIL = 5  # hydraulic cylinder: force = offset - damping x rate
    DRIVE = 6  # rate = goal rate, as far as a force between bounds can reach: motors, friction


class Penalty(IntEnum):
    """How penalty factors are chosen."""

    SCALAR = 0  # one for all
    MATRIX = 1  # in proportion to the mass of the body (Luaces eq. 2.82)
    EFFECTIVE = 2  # in proportion to the mass that the row itself feels


class Method(NamedTuple):
    """Constants of the step."""

    h: float  # [s]
    beta: float
    gamma: float
    dm: float
    df: float
    iterations: int
    own_mass: int  # 1 = project with the mass matrix (Bayo and Ledesma), 0 = with the tangent (Cuadrado)
    rounds: int  # of the projections
    ahead: int  # 1 = multipliers from the linear solve, 0 = from what is violated after it


class Entities(NamedTuple):
    """Points and vectors."""

    count: I1  # type: ignore[assignment]  # [1]
    q: F2  # [e, 3]
    v: F2
    a: F2
    users: I1  # [e] bodies that are made of it; 0 = free place
    known: I1  # [e] 1 = moves as it is told
    owner: I1  # [e] of known ones: body, the ground is the last
    local: F2  # [e, 4] of known ones: 1 or 0 for point or vector, then its place in the owner's axes
    node: I1  # [e] node of the tangent matrix, -1 = known or free place
    place: I1  # [e] 0 or 3: first row in its node
    mate: I1  # [e] entity that shares its node, -1 = none
    load: F2  # [e, 3] forces that do not change within the step
    residual: F2  # [e, 3] constraints - Q, then the whole residual
    before: F2  # [e, 3] constraints - Q at the beginning of the step
    a_before: F2


class Frames(NamedTuple):
    """Bodies in terms of entities; the last one is the ground."""

    of: I2  # [b, 4]
    made: F3  # [b, 4, 4] entity k = made[k, 0] x origin + made[k, 1:] in body axes
    part: F3  # [b, 4, 4] share of entity k in origin and axes: its inverse, transposed
    mass: F3  # [b, 4, 4]


class Combinations(NamedTuple):
    """Linear combinations of entities."""

    count: I1  # type: ignore[assignment]  # [1]
    first: I1  # [c + 1]
    entity: I1  # [terms]
    share: F1
    value: F2  # [c, 3]
    rate: F2


class Rows(NamedTuple):
    """Functions of the coordinates."""

    count: I1  # type: ignore[assignment]  # [1]
    form: I1
    role: I1
    use: I2  # [r, 3] combinations; rows for a SUM
    ratio: F2  # [r, 3] of a SUM
    first: I1  # [r + 1] its terms
    free: I1  # [r] terms of entities that are not known: they come first
    entity: I1  # [t]
    share: F2  # [t, 3] coefficient of the entity in each combination
    slope: F2  # [t, 3] gradient
    value: F1
    rate: F1
    g_ddot: F1  # second derivative at constant velocities
    known_rate: F1  # part of the rate that comes from known entities
    known_g_ddot: F1  # and of the second derivative
    goal: F1
    goal_rate: F1
    goal_acceleration: F1
    penalty: F1
    multiplier: F1
    force: F1  # along the gradient, on the left-hand side
    stiff: F1  # d force / d value
    drag: F1  # d force / d rate
    weight: F1  # of its slopes in the tangent matrix
    low: F1  # bounds of the force
    high: F1
    active: I1  # [r] 1 = holds now
    k: F1  # of PULL: stiffness; of STOP: the rate at the beginning of the step
    c: F1  # of PULL and OIL: damping; of STOP: restitution
    joint: I1  # [r] whose reaction it is, -1 = none
    slot: I1  # [r] row of that joint
    actuator: I1  # [r] -1 = none
    spring: I1  # [r] -1 = none
    turn: I1  # [r] of an ANGLE: 2 x joint + which of its turns, -1 = none


class Solution(NamedTuple):
    """The tangent matrix."""

    dirty: I1  # [1] 1 = lay out again
    nodes: I1  # [1]
    where: I2  # [node, node] block, -1 = none
    pairs: I2  # [pairs, 2] bodies in contact that the layout knows
    pair_count: I1  # [1]
    sketch: Sketch
    pattern: Pattern
    factor: Factor
    x: F2  # [node, 6]


class ContactForces(NamedTuple):
    """Contacts within a step: where they are in terms of entities, and what the law has said."""

    share: F3  # [contact, 2, 4] of each body's entities in its point; zeros if the body moves as it is told
    start: F2  # [contact, 3] a's point against b's at the beginning of the step
    prescribed: F2  # [contact, 3] velocity of a's point against b's, as far as they move as they are told
    stretch: F2  # [contact, 3] of the bristle at the beginning of the step
    next: F2  # [contact, 3] and at its end
    mass: F1
    load: F1  # [N]
    push: F2  # [contact, 3] force on the first body [N]
    first: F1  # [m/s] speed at which the contact began
    depth: F1  # [m]
    weight: F3  # [contact, 3, 3] its share of the tangent matrix


class FoundationRows(NamedTuple):
    """Contacts by volume within a step: six rows each (see `FoundationForce`), row 6 c + i for way i of contact c."""

    first: I1  # [row] its terms
    free: I1  # [row] how many: entities that are not known
    entity: I1  # [t]
    slope: F2  # [t, 3] gradient
    weight: F1  # [row] of its slopes in the tangent matrix
    pos: F2  # [2, 3] the bodies of the contact at hand, at the coordinates of the iteration
    rot: F3  # [2, 3, 3]
    vel: F2  # [2, 6]


class FoundationWrenches(NamedTuple):
    """Force and torque of contacts by volume on their first body, from the last iteration."""

    point: F2  # [contact, 3] world [m]
    force: F2  # [contact, 3] there [N]
    torque: F2  # [contact, 3] [N m]


class Natural(NamedTuple):
    """One argument for every kernel of this core."""

    method: Method
    entity: Entities
    frame: Frames
    combination: Combinations
    row: Rows
    solution: Solution
    contact: ContactForces
    foundation: FoundationRows
    report: F1  # [Report]
    wrench: FoundationWrenches


class Report(IntEnum):
    """Indices into `Natural.report`, the figures of merit of the last step."""

    RESIDUAL = 0  # largest entry of the last correction of q [m; 1 of a vector]
    GAP = 1  # largest violation of a held row after the step
    GAP_RATE = 2
    GAP_ACCELERATION = 3
    ITERATIONS = 4
    LAYOUTS = 5  # since compile
    COUNT = 6


view_natural = viewer(Natural)
