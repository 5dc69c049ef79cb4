"""Entries of the engine's arrays: writes one body, joint, actuator or coupling to its place.

Used at compile for all of them, and by a running engine for one that is added.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from plant import model
from plant.codes import BodyKind, Bound
from plant.constraint.coupling import coupling_rows
from plant.model import Chambers, Cylinders, Status
from plant.sparse.ordering import ENDS
from plant.velocity.position_projection import settle
from plant.world.actuators import Actuator
from plant.world.bodies import Body
from plant.world.couplings import Coupling
from plant.world.joints import Joint
from plant.world.rotations import conjugate, product, rotated
from plant.world.world import World

KINDS = {k.name.lower(): int(k) for k in BodyKind if k != BodyKind.ABSENT}
DAMPING_STEPS = 2.0  # damping time of a locked axis in steps, when none is given
STIFF = 1e-10  # compliance of a rigid joint, as a share of the inverse masses it holds
FIRM = 1e-9  # compliance of a rigid motor or limit, likewise
POSES_VALID = int(Status.POSES_VALID)


def spook_parameters(stiffness: float, damping_time: float | None, h: float) -> tuple[float, float]:
    """Regularisation and stabilisation of a row from physical units (SPOOK eq. 9 with epsilon = 1 / stiffness)."""
    tau = DAMPING_STEPS * h if damping_time is None else damping_time
    upsilon = 1.0 / (1.0 + 4.0 * tau / h)
    return 4.0 / (stiffness * h * h) * upsilon, upsilon


def joint_shapes(n: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of `n` joints that are not one number each."""
    return {
        **dict.fromkeys(("pa", "pb"), (n, 3)),
        **dict.fromkeys(("qa", "qb"), (n, 4)),
        **dict.fromkeys(("axis", "sigma", "upsilon"), (n, model.ROWS)),
    }


def coupling_shapes(n: int) -> dict[str, tuple[int, ...]]:
    """As `joint_shapes`, for couplings."""
    return {**dict.fromkeys(("joint", "axis", "ratio"), (n, 3)), "body": (n, ENDS)}


def write_body(made: model.Model, data: model.Data, k: int, body: Body) -> None:
    """Body `k`."""
    m, s = made.body, data.state
    m.kind[k], m.mass[k] = KINDS[body.kind], body.mass
    m.inertia[k], m.com[k] = body.inertia, body.com
    arm = rotated(body.quat, body.com)
    s.pos[k], s.quat[k] = body.pos + arm, body.quat
    s.vel[k] = np.concatenate([body.vel + np.cross(body.spin, arm), body.spin])
    s.wrench[k] = 0.0
    s.asleep[k], s.rested[k] = 0, 0.0


def _looseness(e: model.Engine, bodies: tuple[int, ...]) -> tuple[float, float]:
    """Inverse masses and inverse moments of the bodies that a row holds together."""
    mass, turn = 0.0, 0.0
    for b in bodies:
        if b >= 0 and e.model.body.kind[b] == BodyKind.DYNAMIC:
            mass += 1.0 / e.model.body.mass[b]
            turn += 3.0 / float(np.trace(e.model.body.inertia[b]))
    return mass, turn


def write_joint(e: model.Engine, k: int, joint: Joint, world: World, number: dict[str, int]) -> None:
    """Joint `k`, between bodies where the world has placed them."""
    out = e.model.joint
    for name, body_of, point_of, quat_of in ((joint.a, out.a, out.pa, out.qa), (joint.b, out.b, out.pb, out.qb)):
        where = joint.at_b if body_of is out.b and joint.at_b is not None else joint.at
        body_of[k], point_of[k], quat_of[k] = -1, where, joint.quat
        if name is not None:
            frame = world.bodies[name]
            body_of[k] = number[name]
            point_of[k] = rotated(conjugate(frame.quat), where - frame.pos) - frame.com
            quat_of[k] = product(conjugate(frame.quat), joint.quat)
    out.turning[k] = int(joint.turning)
    out.rigid[k] = int(math.isinf(joint.stiffness))
    out.length[k], out.strength[k], out.twist[k] = joint.length, joint.strength, joint.twist
    sigma, upsilon = spook_parameters(joint.stiffness, joint.damping_time, e.model.setup.h)
    mass, turn = _looseness(e, (int(out.a[k]), int(out.b[k])))
    out.axis[k] = -1
    for row, axis in enumerate(joint.locked):
        out.axis[k, row] = axis
        out.sigma[k, row] = max(sigma, STIFF * (mass if axis < 3 or axis == model.DISTANCE else turn))
        out.upsilon[k, row] = upsilon
    out.rows[k] = len(joint.locked)
    e.data.row.ga[k], e.data.row.gb[k], e.data.row.force[k], e.data.row.error[k] = 0.0, 0.0, 0.0, 0.0
    e.data.state.angle[k] = 0.0
    out.on[k] = 1


def write_actuator(e: model.Engine, k: int, actuator: Actuator, number: dict[str, int], cylinder: int = -1) -> None:
    """Actuator `k`; a hydraulic one says which cylinder it is."""
    out, target, joint, h = e.model.actuator, e.data.target, number[actuator.joint], e.model.setup.h
    same = np.flatnonzero((out.on == 1) & (out.joint == joint) & (out.axis == actuator.axis))
    if same.size:
        out.slot[k] = out.slot[same[0]]
    else:
        out.slot[k] = e.model.joint.rows[joint]
        e.model.joint.rows[joint] += 1
    out.joint[k], out.axis[k], out.kind[k], out.side[k] = joint, actuator.axis, int(actuator.kind), actuator.side
    mass, turn = _looseness(e, (int(e.model.joint.a[joint]), int(e.model.joint.b[joint])))
    sigma, upsilon = spook_parameters(actuator.stiffness, actuator.damping_time, h)
    out.sigma[k] = max(sigma, FIRM * (mass if actuator.axis < 3 else turn))
    out.upsilon[k], out.bounce[k] = upsilon, actuator.restitution
    out.cylinder[k] = cylinder
    target.speed[k], target.position[k], target.gain[k] = actuator.speed, actuator.position, actuator.gain
    target.low[k], target.high[k], target.acceleration[k] = actuator.low, actuator.high, actuator.acceleration
    if actuator.kind == Bound.GUIDE:  # as it will be at the end of the coming step
        target.position[k] += h * (actuator.speed + 0.5 * h * actuator.acceleration)
        target.speed[k] += h * actuator.acceleration
    e.data.bounded.kept[k] = 0
    out.on[k] = 1


def cylinders(world: World) -> Cylinders:
    """Constant properties of all hydraulic cylinders."""
    made, acts = list(world.cylinders.values()), list(world.actuators)

    def column(name: str) -> NDArray[np.float64]:
        return np.array([getattr(c, name) for c in made], float)

    return Cylinders(
        actuator=np.array([acts.index(c.name) for c in made], np.int64),
        linkage=np.array([c.linkage for c in made], float).reshape(-1, 3),
        **{name: column(name) for name in Cylinders._fields if name not in ("actuator", "linkage")},
    )


def chambers(world: World) -> Chambers:
    """Their state at the start."""
    made = list(world.cylinders.values())
    n = len(made)
    return Chambers(
        pressure=np.array([c.pressure for c in made], float).reshape(-1, 2),
        valve=np.zeros(n),
        supply=np.array([c.supply for c in made], float),
        flow=np.zeros((n, 2)),
        give=np.zeros((n, 2)),
        out=np.zeros(n),
        slope=np.ones(n),
    )


def write_coupling(e: model.Engine, k: int, coupling: Coupling, number: dict[str, int]) -> None:
    """Coupling `k`; its offset is found when the joints are placed."""
    out, joints = e.model.coupling, e.model.joint
    out.joint[k], out.ratio[k], out.body[k] = -1, 0.0, -1
    bodies: list[int] = []
    loose = 0.0
    for i, (name, axis, ratio) in enumerate(coupling.terms):
        j = number[name]
        out.joint[k, i], out.axis[k, i], out.ratio[k, i] = j, axis, ratio
        ends = (int(joints.a[j]), int(joints.b[j]))
        bodies += [b for b in ends if b >= 0 and b not in bodies]
        mass, turn = _looseness(e, ends)
        loose += ratio * ratio * (mass if axis < 3 else turn)
    out.body[k, : len(bodies)] = bodies
    _, out.upsilon[k] = spook_parameters(math.inf, None, e.model.setup.h)
    out.sigma[k] = STIFF * loose
    out.on[k] = 1


@kernel
def _place(address):
    e = model.view_engine(address)
    settle(e, 0)
    for p in range(e.model.coupling.on.size):
        e.data.coupled.offset[p] += e.data.coupled.error[p]
    coupling_rows(e)
    e.data.status[POSES_VALID] = 1


def find_offsets(address: int) -> None:
    """Frames and rows at the poses of now; couplings take the coordinates as they are for their offsets."""
    _place(address)
