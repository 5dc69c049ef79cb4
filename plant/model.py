"""The engine's arrays: `Model`, constant after compile, and `Data`, everything that changes. Grouped by the
stage that writes them.

Indices: body b, joint j, node n (bodies and joints in the order of elimination), bounded row k, contact c. A
body of -1 is the ground. SI units, z up, quaternions w x y z, velocities and angular velocities in world axes
at the centre of mass.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from hilnode.record import F1, F2, F3, I1, I2, viewer
from plant.ldl import Factor, Pattern

ROWS = 6  # of a joint


class BodyKind(IntEnum):
    """How a body moves."""

    DYNAMIC = 0
    KINEMATIC = 1  # by its given velocity
    STATIC = 2


class Turning(IntEnum):
    """How a joint's angular rows are written: by how many turning axes it leaves free."""

    ALL_FREE = 0  # ball: no angular row
    NONE_FREE = 1  # fixed, prismatic: three rows, vector part of the relative quaternion
    ONE_FREE = 2  # hinge: axis z of both frames stays parallel, two rows
    TWO_FREE = 3  # universal: x of A stays square to y of B, one row


class Bound(IntEnum):
    """What a bounded row is for."""

    MOTOR = 0
    LIMIT = 1
    FRICTION = 2  # in a joint
    CONTACT = 3  # normal; its two friction rows follow


class Setup(NamedTuple):
    """Constants of the stepper."""

    h: float  # [s]
    gx: float  # gravity [m/s^2]
    gy: float
    gz: float
    friction_rounds: int  # scaled-box iterations, Vortex 2.5.2
    pivots: int  # most principal pivots in a step
    visible: float  # a gap in a joint that is closed at once [m]; smaller ones are left to the stabilisation


class Bodies(NamedTuple):
    """Constant properties of bodies."""

    kind: I1
    mass: F1  # [kg]
    inertia: F3  # [b, 3, 3] about the centre of mass, body axes [kg m^2]
    com: F2  # [b, 3] centre of mass in the body's frame [m]
    node: I1  # [b] its node, -1 = none
    path: I2  # [b, longest] its node and all ancestors, rising
    path_length: I1


class Joints(NamedTuple):
    """Constant properties of joints."""

    a: I1  # first body
    b: I1  # second body
    pa: F2  # [j, 3] anchor from a's centre of mass, in a's axes [m]
    qa: F2  # [j, 4] joint frame in a's axes
    pb: F2
    qb: F2
    turning: I1  # Turning
    axis: I2  # [j, ROWS] 0..2 linear x y z, 3.. angular row; -1 = padding
    sigma: F2  # [j, ROWS] regularisation, SPOOK eq. 9
    upsilon: F2  # [j, ROWS] stabilisation, SPOOK eq. 9
    rigid: I1  # [j] 1 = as stiff as can be: gaps are closed; 0 = it gives way on purpose
    node: I1
    block_a: I1  # [j] block of the pair (joint, a), -1 = none
    block_b: I1
    over_a: I1  # [j] 1 = the joint comes after body a in the order: the block is G, else G'
    over_b: I1


class Actuators(NamedTuple):
    """Bounded rows of joints: motors, limits and friction on a free axis."""

    joint: I1
    axis: I1  # 0..2 linear, 5 = the free angle about z
    kind: I1  # Bound
    side: F1  # limits: +1 lower, -1 upper
    sigma: F1  # from stiffness and damping
    upsilon: F1


class Targets(NamedTuple):
    """What people change while running: goals of actuators."""

    speed: F1  # [actuator] motors: target speed
    position: F1  # [actuator] limits: where; position motors: target
    gain: F1  # [actuator] position motors: 1/s towards the target; 0 = a speed motor
    low: F1  # [actuator] least force
    high: F1  # [actuator] greatest force


class Materials(NamedTuple):
    """Contact properties per pair of materials."""

    friction: F1
    sigma: F1
    upsilon: F1
    adhesion: F1  # [N]
    slip: F1  # [m/(N s)] inverse of a drag coefficient
    pair: I2  # [material, material] index


class Shapes(NamedTuple):
    """What can touch: spheres of bodies, planes of the ground."""

    body: I1  # [s]
    centre: F2  # [s, 3] from the centre of mass, body axes [m]
    radius: F1  # [m]
    material: I1
    plane: F2  # [p, 4] unit normal and offset along it [m]
    plane_material: I1
    apart: I2  # [b, b] 1 = the two may touch: they share no joint
    margin: F1  # [1] contacts are listed when nearer than this [m]


class Model(NamedTuple):
    """All that does not change."""

    setup: Setup
    body: Bodies
    joint: Joints
    actuator: Actuators
    material: Materials
    shape: Shapes
    pattern: Pattern


class State(NamedTuple):
    """Integrated quantities and what is applied from outside."""

    pos: F2  # [b, 3] centre of mass [m]
    quat: F2  # [b, 4]
    vel: F2  # [b, 6] linear [m/s], angular [rad/s]
    wrench: F2  # [b, 6] force [N] and torque [N m] from outside, kept until changed
    angle: F1  # [j] free angle of a hinge, unwound [rad]


class Frames(NamedTuple):
    """Computed by kinematics."""

    rot: F3  # [b, 3, 3]
    inertia: F3  # [b, 3, 3] world axes
    momentum: F2  # [b, 6] M v + h f


class JointRows(NamedTuple):
    """Computed by rows."""

    ga: F3  # [j, ROWS, 6]
    gb: F3
    error: F2  # [j, ROWS] violation [m, rad]
    curve: F2  # [j, ROWS] second derivative of the violation at constant velocities [m/s^2, rad/s^2]
    force: F2  # [j, ROWS] reaction [N, N m], along the row
    axes: F3  # [j, 3, 3] joint frame of a in world axes, by rows
    arm: F3  # [j, 2, 3] anchors from the centres of mass, world axes
    slide: F2  # [j, 3] b's anchor from a's, in joint axes


class Contacts(NamedTuple):
    """The contact list: where collision detection and the engine meet. Filled by collide, rows 0 .. count[0] - 1."""

    count: I1  # type: ignore[assignment]  # [1]
    body: I2  # [c, 2] the normal pushes the first and pulls the second
    point: F2  # [c, 3] world [m]
    normal: F2  # [c, 3] unit, from the second towards the first
    depth: F1  # > 0 overlapping [m]
    pair: I1  # material pair
    feature: I1  # persistent id of what touches what
    impulse: F2  # [c, 3] normal and two tangents [N s], of the last step
    tangent: F2  # [c, 3] first tangent of the last step
    new: I1  # [1] contacts that the step before did not have
    old_count: I1  # [1] the list of the step before, for warm starts
    old_feature: I1
    old_impulse: F2
    old_tangent: F2


class Bounded(NamedTuple):
    """Bounded rows of this step: actuators, then contacts with two friction rows each. Computed by bounded."""

    count: I1  # type: ignore[assignment]  # [1]
    kind: I1
    of: I1  # [k] actuator or contact
    a: I1  # [k] bodies
    b: I1
    ga: F2  # [k, 6]
    gb: F2
    rhs: F1
    sigma: F1
    low: F1  # impulse bounds [N s]
    high: F1
    value: F1  # impulse
    state: I1  # 0 free, -1 at low, +1 at high
    kept: I1  # [actuator] state of its row in the last step: where the next one starts
    path: I2  # [k, longest] nodes
    path_length: I1
    y: F3  # [k, longest, 6] forward-substituted
    z: F3  # [k, longest, 6] D^-1 y
    here: I2  # [n, k] rows that pass a node: row x 65536 + slot in its path
    here_count: I1  # [n]
    matrix: F2  # [k, k]
    chol: F2  # [k, k]
    work: F1
    free: I1


class Data(NamedTuple):
    """All that changes."""

    state: State
    frame: Frames
    row: JointRows
    contact: Contacts
    bounded: Bounded
    target: Targets
    factor: Factor
    centre: F2  # [s, 3] of spheres, world [m]
    x: F2  # [n, 6] right-hand side, then solution
    status: I1  # [4] contacts left out, pivots of the last step, times iteration had to help, 1 = rows fit the poses


class Engine(NamedTuple):
    """One argument for every kernel."""

    model: Model
    data: Data


view_engine = viewer(Engine)
