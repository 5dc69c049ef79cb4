"""The engine's arrays: `Model`, constant after compile, and `Data`, everything that changes.

They are grouped by the stage that writes them.

Indices: body b, joint j, coupling p, node n (bodies, joints and couplings in the order of elimination), bounded
row k, contact c. A body of -1 is the ground. SI units, z up, quaternions w x y z, velocities and angular velocities in
world axes at the centre of mass.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from hilnode.core.struct import F1, F2, F3, I1, I2, viewer
from plant.codes import BodyKind, Bound, Solver, Stepper, Turning
from plant.collision.scene import Scene
from plant.collision.volume.moments import Regions
from plant.contact_law.model import FoundationForce, Response, Smooth
from plant.sparse.block_ldl import Factor
from plant.sparse.ordering import Pattern, Sketch
from plant.stages import Stages

__all__ = ["BodyKind", "Bound", "Solver", "Stepper", "Turning"]  # handed on

ROWS = 6  # of a joint
DISTANCE = 6  # code of a row that keeps two points apart by a length


class Setup(NamedTuple):
    """Constants of the stepper."""

    h: float  # [s]
    gx: float  # gravity [m/s^2]
    gy: float
    gz: float
    stepper: int  # Stepper
    solver: int  # Solver
    friction_rounds: int  # scaled-box iterations, Vortex 2.5.2
    newtons: int  # most factorisations in a step and island
    sweeps: int  # of iterative solves
    relaxation: float  # of iterative sweeps: 1 = Gauss-Seidel
    visible: float  # a gap in a joint that is closed at once [m]; smaller ones are left to the stabilisation
    slow: float  # [m/s] below it a contact sticks
    quiet: float  # [m/s] an approach slower than this does not bounce
    margin: float  # [m] a gap across which contacts are listed
    sleep_after: float  # [s] an island that is at rest for so long is put to sleep; 0 = never
    core: int  # address of the arrays of the core in natural coordinates; 0 = it is not used


class Cylinders(NamedTuple):
    """Constant properties of hydraulic cylinders."""

    actuator: I1
    area_a: F1  # [m^2]
    area_b: F1
    dead: F1  # [m^3] oil in lines and ends, each chamber
    stroke: F1  # [m]
    bulk: F1  # [Pa]
    tank: F1  # [Pa]
    relief: F1  # [Pa]
    relief_gain: F1  # [m^3/(s Pa)]
    valve_gain: F1  # [m^3/(s sqrt(Pa))] at full opening
    laminar: F1  # [Pa] below this drop the flow is linear
    linkage: F2  # [c, 3] arms [m] and phase [rad] of its hinge; 0 = it lies along a slide
    closed: F1  # [m] length with the piston in, from pin to pin; 0 on a slide


class Chambers(NamedTuple):
    """State of the cylinders' chambers, and what the step needs after its solve."""

    pressure: F2  # [c, 2] A and B [Pa]
    valve: F1  # [c] opening, -1 .. 1, set from outside
    supply: F1  # [c] pump pressure [Pa], set from outside
    flow: F2  # [c, 2] into A and B in the last step [m^3/s]
    give: F2  # [c, 2] a: pressure for each m^3/s of flow, over the step
    out: F1  # [c] piston out by [m]
    slope: F1  # [c] its change with the joint's coordinate: 1 on a slide, dL/dangle on a hinge [m/rad]


class Bodies(NamedTuple):
    """Constant properties of bodies."""

    kind: I1
    mass: F1  # [kg]
    inertia: F3  # [b, 3, 3] about the centre of mass, body axes [kg m^2]
    com: F2  # [b, 3] centre of mass in the body's frame [m]


class Joints(NamedTuple):
    """Constant properties of joints."""

    on: I1  # 1 = holds, 0 = taken away, broken or switched off
    a: I1  # first body
    b: I1  # second body
    pa: F2  # [j, 3] anchor from a's centre of mass, in a's axes [m]
    qa: F2  # [j, 4] joint frame in a's axes
    pb: F2
    qb: F2
    turning: I1  # Turning
    axis: I2  # [j, ROWS] 0..2 linear x y z, 3.. angular row, DISTANCE; -1 = padding
    rows: I1  # [j] locked axes and actuated coordinates
    length: F1  # [j] of a distance row [m]
    sigma: F2  # [j, ROWS] regularisation, SPOOK eq. 9
    upsilon: F2  # [j, ROWS] stabilisation, SPOOK eq. 9
    rigid: I1  # [j] 1 = as stiff as can be: gaps are closed; 0 = it gives way on purpose
    strength: F1  # [j] pull or push that it bears before it breaks [N]; inf = any
    twist: F1  # [j] torque that it bears [N m]


class Couplings(NamedTuple):
    """One row over free coordinates of up to three joints: sum of ratio x coordinate = offset. Gears, racks, screws."""

    on: I1
    joint: I2  # [p, 3] -1 = none
    axis: I2  # [p, 3] free coordinates, see `joint_coordinate`
    ratio: F2  # [p, 3]
    body: I2  # [p, ENDS] the bodies that the row touches, each once
    sigma: F1
    upsilon: F1


class Actuators(NamedTuple):
    """Bounded rows of joints: motors, limits, friction, springs, cylinders and guides on a free axis."""

    on: I1
    joint: I1
    axis: I1  # free coordinate, see `joint_coordinate`
    slot: I1  # row of its coordinate in the joint's node, beyond the locked ones; actuators of one axis share it
    kind: I1  # Bound
    side: F1  # limits: +1 lower, -1 upper
    sigma: F1  # from stiffness and damping
    upsilon: F1
    bounce: F1  # limits: restitution
    cylinder: I1  # hydraulic ones: which, else -1


class Springs(NamedTuple):
    """Spring and damper between a point of a and a point of b, along the line that joins them."""

    on: I1
    a: I1
    b: I1
    pa: F2  # [s, 3] from the centre of mass, body axes [m]
    pb: F2
    rest: F1  # [m]
    stiffness: F1  # [N/m]
    damping: F1  # [N s/m]
    low: F1  # [N] least force, pull negative
    high: F1
    table: I1  # [s] first entry of its table, -1 = linear
    table_size: I1
    table_x: F1  # stretch [m], all tables one after the other
    table_y: F1  # force that pulls the points together [N]


class Targets(NamedTuple):
    """What people change while running: goals of actuators."""

    speed: F1  # [actuator] motors: target speed; guides: at the end of the coming step
    position: F1  # [actuator] limits: where; position motors: target; guides: at the end of the coming step
    acceleration: F1  # [actuator] guides: at the end of the coming step [m/s^2, rad/s^2]
    gain: F1  # [actuator] position motors: 1/s towards the target; 0 = a speed motor
    low: F1  # [actuator] least force
    high: F1  # [actuator] greatest force
    pushed: F1  # [actuator] told by the engine: the force of the last step [N, N m], on b along the coordinate


class Materials(NamedTuple):
    """Contact properties per pair of materials."""

    friction: F1  # dynamic
    stiction: F1  # static
    bounce: F1  # restitution
    stiffness: F1  # [N/m]
    sigma: F1
    upsilon: F1
    adhesion: F1  # [N]
    slip: F1  # [m/(N s)] inverse of a drag coefficient
    pair: I2  # [material, material] index
    smooth: Smooth  # force laws of pairs that are not rigid


class Fields(NamedTuple):
    """Force fields of the user."""

    address: I1


class Model(NamedTuple):
    """All that does not change."""

    setup: Setup
    stage: Stages
    body: Bodies
    joint: Joints
    coupling: Couplings
    actuator: Actuators
    spring: Springs
    cylinder: Cylinders
    field: Fields
    material: Materials


class State(NamedTuple):
    """Integrated quantities and what is applied from outside."""

    pos: F2  # [b, 3] centre of mass [m]
    quat: F2  # [b, 4]
    vel: F2  # [b, 6] linear [m/s], angular [rad/s]
    wrench: F2  # [b, 6] force [N] and torque [N m] from outside, kept until changed
    field_wrench: F2  # [b, 6] the same of force fields, of this step
    angle: F2  # [j, 2] free angle of a hinge, or the two of a universal joint, unwound [rad]
    asleep: I1  # [b] 1 = at rest with its island, left out of everything until something comes
    rested: F1  # [b] how long it has been slow [s]
    sleep_group: I1  # [b] number of the sleeping island it belongs to


class Frames(NamedTuple):
    """Computed by kinematics."""

    rot: F3  # [b, 3, 3]
    inertia: F3  # [b, 3, 3] world axes
    inverse: F3  # [b, 3, 3] of it; kept where an island is solved by iteration
    momentum: F2  # [b, 6] M v + h f


class JointRows(NamedTuple):
    """Computed by constraint/joint.py."""

    ga: F3  # [j, ROWS, 6]
    gb: F3
    error: F2  # [j, ROWS] violation [m, rad]
    drive: F2  # [j, ROWS] actuated coordinates: inverse compliance of all actuators of the row that are free
    goal: F2  # [j, ROWS] and the sum of their right-hand sides over compliance
    rest: F2  # [j, ROWS] what the softer ones leave of the impulse to the stiffest
    rest_set: F2  # [j, ROWS] 1 = `rest` is that of this solve
    g_ddot: F2  # [j, ROWS] second derivative of the violation at constant velocities [m/s^2, rad/s^2]
    force: F2  # [j, ROWS] reaction [N, N m], along the row
    reaction: F2  # [j, 3] linear reaction on b, world axes [N]
    axes: F3  # [j, 3, 3] joint frame of a in world axes, by rows
    arm: F3  # [j, 2, 3] anchors from the centres of mass, world axes
    slide: F2  # [j, 3] b's anchor from a's, in joint axes
    spin_axis: F2  # [j, 3] second axis of a universal joint: y of frame B, world


class CouplingRows(NamedTuple):
    """Computed by coupling."""

    g: F3  # [p, ENDS, 6]
    error: F1
    offset: F1  # [p] what the sum was at compile
    force: F1


class Contacts(NamedTuple):
    """The contact list: where collision detection and the engine meet. Filled by collide, rows 0 .. count[0] - 1."""

    count: I1  # type: ignore[assignment]  # [1]
    body: I2  # [c, 2] the normal pushes the first and pulls the second
    point: F2  # [c, 3] world [m]
    normal: F2  # [c, 3] unit, from the second towards the first
    depth: F1  # > 0 overlapping [m]
    pair: I1  # material pair
    feature: I1  # persistent id of what touches what
    friction: F1  # static or dynamic coefficient of this step
    impulse: F2  # [c, 3] normal and two tangents [N s], of the last step
    tangent: F2  # [c, 3] first tangent of the last step
    push: F1  # [c] normal impulse of this step, that of bounces included [N s]
    stretch: F2  # [c, 3] smooth ones: of the bristles [m]
    first_rate: F1  # smooth ones: approach when the contact began [m/s], 0 = it has not
    new: I1  # [1] contacts that the step before did not have
    old_count: I1  # [1] the list of the step before, for warm starts
    old_feature: I1
    old_body: I2
    old_push: F1
    old_impulse: F2
    old_tangent: F2
    old_stretch: F2
    old_first_rate: F1


class Rows(NamedTuple):
    """Bounded rows of this step: actuators, springs, then contacts with two friction rows each, rigid or smooth, and
    three more for spinning and rolling if they are volumes.

    They are written by `actuators`, `springs` and `contact`, and solved by `direct` or `iterative`.
    """

    count: I1  # type: ignore[assignment]  # [1]
    kind: I1
    source: I1  # [k] actuator, spring or contact that it comes from
    a: I1  # [k] bodies
    b: I1
    ga: F2  # [k, 6]
    gb: F2
    rhs: F1
    prescribed_speed: F1  # [k] part of G v of bodies that the solve can not change
    hits: I1  # [k] 1 = takes part in an impact: its gap closes within the step
    bounce: F1  # [k] speed to leave with after an impact, 0 = none
    excess: F1  # [k] violation that is left to projection [m, rad]
    sigma: F1
    low: F1  # impulse bounds [N s]
    high: F1
    value: F1  # impulse
    state: I1  # 0 free, -1 at low, +1 at high
    next_state: I1  # [k] state that the last solve says it should have
    kept: I1  # [actuator] state of its row in the last step: where the next one starts
    speed: F1  # [k] G v of the last solve
    speed_before: F1  # [k] of the one before, for the line search
    value_before: F1
    block: I1  # [k] block of its two bodies in the factor, -1 = none
    slot: I1  # [k] actuators: row in the node of their joint, -1 = eliminated before the bodies
    joint: I1  # [k] of actuators
    side: F1  # [k] sign of the row against the coordinate of its joint
    by_island: I1  # [k] rows sorted by island
    back: F2  # [k, 12] M^-1 G' of both bodies, for iteration
    diagonal: F1  # [k] G M^-1 G' + sigma
    step: F1  # [k] for the gradient


class Graph(NamedTuple):
    """Islands, and where their bodies and constraints are in the factor. Written by `islands`."""

    dirty: I1  # [1] 1 = a joint or a body came or went: build it again
    body_node: I1  # [b] -1 = not in the factor
    joint_node: I1  # [j]
    coupling_node: I1  # [p]
    owner: I1  # [n] body, or bodies + joint, or bodies + joints + coupling
    block: I2  # [j + p, ENDS] block of a constraint and each of its bodies, -1 = none
    over: I2  # [j + p, ENDS] 1 = the constraint comes after the body in the order: the block is G, else G'
    root: I1  # [b] union-find
    island: I1  # [b] -1 = none
    islands: I1  # [3] how many; how often the graph was built; islands that are solved by iteration
    first: I1  # [islands + 1] first node of each
    row_first: I1  # [islands + 1] first of its rows in `by_island`
    solver: I1  # [islands]
    strained: I1  # [islands] 1 = with loops: redundant joints share their load by compliance
    coupled: I1  # [islands] 1 = with couplings
    members: I1  # [islands] bodies
    loops: I1  # [islands] edges beyond a tree
    local: I1  # [b + j + p] number in the sketch
    list: I1  # [b + j + p] what is in the sketch
    head: I1  # [islands] lists of what belongs to each, linked by `next`
    next: I1  # [b + j + p]
    pair_head: I1  # [islands] lists of springs and contacts between two moving bodies
    pair_next: I1
    key: I1  # hash table of pairs of bodies that share a block
    block_of: I1


class Log(NamedTuple):
    """Collisions: pairs of bodies that began to push each other. A ring: entry k is at k modulo its length."""

    count: I1  # type: ignore[assignment]  # [1] entries written since compile
    step: I1
    feature: I1  # of the first of their contacts in the list
    body: I2
    point: F2  # where they pushed, on average by impulse, world [m]
    impulse: F1  # [N s] of all their contacts in the step in which they began, that of bounces included


class Warm(NamedTuple):
    """Contacts of the last step by feature: a hash table."""

    key: I1
    place: I1


class Data(NamedTuple):
    """All that changes."""

    state: State
    frame: Frames
    row: JointRows
    coupled: CouplingRows
    contact: Contacts
    log: Log
    warm: Warm
    region: Regions  # of contacts by volume
    response: Response  # of the smooth contact at hand
    foundation: FoundationForce  # of the contact by volume at hand
    bounded: Rows
    target: Targets
    chamber: Chambers
    graph: Graph
    sketch: Sketch
    pattern: Pattern
    factor: Factor
    x: F2  # [n, 6] right-hand side, then solution
    scratch: F2  # [10, 6]
    status: I1  # [Status]


class Engine(NamedTuple):
    """One argument for every kernel."""

    model: Model
    data: Data
    scene: Scene


class Status(IntEnum):
    """Places in `Data.status`."""

    OVERFLOW = 0  # contacts, pairs or segments of crossing meshes that found no room in this step
    FACTORS = 1  # factorisations of this step
    FALLBACKS = 2  # times since compile that iteration had to finish a direct solve
    POSES_VALID = 3  # 1 = frames and rows fit the poses; 0 = poses were set from outside
    IMPACTS = 4  # impact stages since compile
    BROKEN = 5  # joints broken since compile
    IMPACT_NOW = 6  # 1 = the solve is that of an impact stage
    STEPS = 7  # steps since compile
    COUNT = 8


view_engine = viewer(Engine)
