"""The step: index-3 augmented Lagrangian with projections of velocities and accelerations (ALI3-P).

    collide             the contact list
    predict             q, v with the acceleration of the step before (eq. 2.12, 2.13)
    iterate             residual, tangent, correction, multipliers (eq. 2.58-2.61); a fixed budget of iterations
    project             velocities, then accelerations, onto the constraints (eq. 2.64-2.80); limits bounce
    give poses          bodies, joints and sensors see what they would see in the other core

The factor of the last iteration serves the projections (Cuadrado's choice), or the matrix is made anew from masses
alone (Bayo and Ledesma's): `Method.own_mass`.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.abi import NOT_FINITE, OK
from plant.codes import Bound
from plant.constraint.contact import remember_contacts, warm_contacts
from plant.constraint.hydraulics import cylinder_row, keep_pressure
from plant.model import view_engine
from plant.natural.contact import add_contacts, begin_contacts, keep_contacts, push_contacts, renew_pairs
from plant.natural.frames import give_poses, load_entities, move_known, take_momenta, take_poses
from plant.natural.model import Form, Report, Role, view_natural
from plant.natural.rows import evaluate, evaluate_g_ddots, keep_multipliers, respond
from plant.natural.tangent import (
    add_inertia,
    add_masses,
    add_rows,
    add_slopes,
    clear,
    correct,
    empty_residual,
    factor,
    finish_residual,
    holds,
    lay_out_tangent,
    off_g_ddot,
    push_back,
    solve_residual,
    split_rates,
    start_residual,
)
from plant.solver.direct import joint_reaction
from plant.stages import call_stage
from plant.velocity.force_field import apply_fields
from plant.velocity.position_projection import settle
from plant.velocity.step import BROKEN, OVERFLOW, POSES_VALID, STEPS, break_joints, what_is_full

TANGENT_FULL = 101
TANGENT_STATUS = {TANGENT_FULL: "so many bodies touch each other that the tangent matrix has no room for them"}
ASSEMBLY = 60  # rounds of Newton on open constraints
CLOSED = 1e-13
SETTLED = 1e-11  # a correction of a coordinate below this ends the iteration
START = 12  # rounds that find the first accelerations
STEADY = 1e-9  # [m/s, rad/s] a drive that is off its speed by less holds it
EVEN_RATE, EVEN_ACCELERATION = 1e-10, 1e-8  # [m/s], [m/s^2] a projection that leaves less is done
OFF, HOLD, STOP, OIL, DRIVE = int(Role.OFF), int(Role.HOLD), int(Role.STOP), int(Role.OIL), int(Role.DRIVE)
PART = int(Form.PART)
MOTOR, LIMIT, FRICTION = int(Bound.MOTOR), int(Bound.LIMIT), int(Bound.FRICTION)
SPRING, HYDRAULIC, GUIDE = int(Bound.SPRING), int(Bound.HYDRAULIC), int(Bound.GUIDE)
RESIDUAL, GAP, GAP_RATE = int(Report.RESIDUAL), int(Report.GAP), int(Report.GAP_RATE)
GAP_ACCELERATION, ITERATIONS, LAYOUTS = int(Report.GAP_ACCELERATION), int(Report.ITERATIONS), int(Report.LAYOUTS)


def natural_stage(address, count):
    """So many steps; 0 or the first status that is not."""
    e = view_engine(address)
    for _ in range(count):
        status = step(e)
        if status != 0:
            return status
    return 0


@kernel
def step(e):
    """One step. Returns a status."""
    n = view_natural(e.model.setup.core)
    d, m, p = e.data, e.model, n.method
    placed_anew = False
    if d.status[POSES_VALID] == 0:  # poses were set from outside
        settle(e, 0)
        d.status[POSES_VALID] = 1
        take_poses(e, n)
        take_turns(e, n)
        n.solution.dirty[0] = 1
        placed_anew = True
    d.status[OVERFLOW] = call_stage(m.stage.collide, address_of(e), 0)
    if d.status[OVERFLOW] > 0:
        return what_is_full(e.scene)
    warm_contacts(d.contact, d.warm)
    renew_pairs(e, n)
    if n.solution.dirty[0] == 1:
        n.report[LAYOUTS] += 1.0
        if lay_out_tangent(e, n) != 0:
            return TANGENT_FULL
    apply_fields(e)
    load_entities(e, n)
    begin_contacts(e, n)
    if placed_anew:
        begin_guides(e, n)
        find_velocities(e, n)
        set_goals(e, n)
        begin_guides(e, n)
        find_accelerations(e, n)
    set_goals(e, n)
    predict(n)
    move_known(e, n)
    evaluate(n)
    n.report[ITERATIONS] = 0.0
    for _ in range(p.iterations):
        n.report[ITERATIONS] += 1.0
        if iterate(e, n):
            break
    respond(e, n)
    project(e, n)
    if p.df != 0.0:
        start_residual(n)
    push_contacts(e, n, p.h)
    if p.df != 0.0:
        keep_forces(n)
    keep_drives(e, n)
    if give_poses(e, n) != 0:
        return NOT_FINITE
    keep_contacts(e, n)
    remember_contacts(d.contact, d.warm, d.log, d.status[STEPS])
    settle(e, 0)
    give_reactions(e, n)
    let_go(e, n)
    move_guides(e, n)
    d.status[STEPS] += 1
    return OK


@kernel
def set_goals(e, n):
    """Where drives and limits want their rows at the end of the step; how fast limits are met; what oil pushes with."""
    r, act, target, h = n.row, e.model.actuator, e.data.target, e.model.setup.h
    for i in range(r.count[0]):
        k = r.actuator[i]
        if k < 0 or r.role[i] == OFF:
            continue
        kind = act.kind[k]
        if kind == MOTOR or kind == FRICTION:
            speed = 0.0
            if kind == MOTOR:
                speed = target.speed[k] + target.gain[k] * (target.position[k] - r.value[i])
            r.goal_rate[i] = speed
            r.low[i], r.high[i] = -target.high[k], -target.low[k]
        elif kind == LIMIT:
            r.goal[i], r.k[i] = target.position[k], r.rate[i]
        elif kind == SPRING:
            r.goal[i] = target.position[k]
        elif kind == HYDRAULIC:
            sigma, rhs = cylinder_row(e, act.cylinder[k], r.value[i])
            r.c[i] = 1.0 / (h * sigma)
            r.goal[i] = rhs * r.c[i]
        elif kind == GUIDE:
            r.goal[i], r.goal_rate[i] = target.position[k], target.speed[k]
            r.goal_acceleration[i] = target.acceleration[k]


@kernel
def take_turns(e, n):
    """Angles go on from the turns that the joints have made."""
    r, angle = n.row, e.data.state.angle
    for i in range(r.count[0]):
        if r.turn[i] >= 0:
            turned = angle[r.turn[i] >> 1, r.turn[i] & 1]
            r.value[i] = turned if math.isfinite(turned) else 0.0


@kernel
def begin_guides(e, n):
    """Guides of a state that was set from outside go on from there, as fast as they would have come to the end of the
    step with a constant acceleration."""
    r, act, target, h = n.row, e.model.actuator, e.data.target, e.model.setup.h
    evaluate(n)
    for i in range(r.count[0]):
        k = r.actuator[i]
        if k >= 0 and r.role[i] == HOLD and act.kind[k] == GUIDE:
            acceleration = target.acceleration[k]
            r.goal[i], r.goal_rate[i] = r.value[i], target.speed[k] - h * acceleration
            r.goal_acceleration[i] = acceleration
            target.position[k] = r.goal[i] + h * r.goal_rate[i] + 0.5 * h * h * acceleration


@kernel
def move_guides(e, n):
    """Guides that nobody tells otherwise go on with the acceleration that they have."""
    r, act, target, h = n.row, e.model.actuator, e.data.target, e.model.setup.h
    for i in range(r.count[0]):
        k = r.actuator[i]
        if k >= 0 and r.role[i] == HOLD and act.kind[k] == GUIDE:
            target.position[k] += h * target.speed[k] + 0.5 * h * h * target.acceleration[k]
            target.speed[k] += h * target.acceleration[k]


@kernel
def predict(n):
    """The end of the step with the acceleration of its beginning."""
    ent, h = n.entity, n.method.h
    for x in range(ent.count[0]):
        for k in range(3):
            ent.a_before[x, k] = ent.a[x, k]
            if ent.known[x] == 0:
                ent.q[x, k] += h * ent.v[x, k] + 0.5 * h * h * ent.a[x, k]
                ent.v[x, k] += h * ent.a[x, k]


@kernel
def iterate(e, n):
    """One correction; True if it was too small to matter."""
    p, ent = n.method, n.entity
    respond(e, n)
    start_residual(n)
    push_contacts(e, n, p.h)
    finish_residual(e, n)
    clear(n)
    add_masses(e, n, 1.0 - p.dm)
    of_position, of_rate = (1.0 - p.df) * p.beta * p.h * p.h, (1.0 - p.df) * p.gamma * p.h
    add_rows(n, of_position, of_rate)
    add_contacts(e, n)
    factor(n)
    solve_residual(n, -p.beta * p.h * p.h)
    if p.ahead == 1:
        keep_multipliers(n, 1.0, p.gamma / (p.beta * p.h))
    most = correct(n, ent.q, 1.0)
    correct(n, ent.v, p.gamma / (p.beta * p.h))
    correct(n, ent.a, 1.0 / (p.beta * p.h * p.h))
    n.report[RESIDUAL] = most
    evaluate(n)
    if p.ahead == 0:
        keep_multipliers(n, 0.0, 0.0)
    return most < SETTLED


@kernel
def project(e, n):
    """Velocities and accelerations onto the constraints; the largest violations that are left go into the report."""
    p, ent, r = n.method, n.entity, n.row
    if p.own_mass == 1:
        factor_held(e, n)
    gap = 0.0
    for i in range(r.count[0]):
        if r.role[i] == HOLD:
            gap = max(gap, abs(r.value[i] - r.goal[i]))
    n.report[GAP] = gap
    bounced = _meet_limits(n, e.model.setup.quiet)
    split_rates(n)
    n.report[GAP_RATE] = _rounds(n, 1, ent.v, EVEN_RATE)
    evaluate(n)
    evaluate_g_ddots(n)
    split_rates(n)
    n.report[GAP_ACCELERATION] = _rounds(n, 2, ent.a, EVEN_ACCELERATION)
    if bounced:
        _leave_limits(n)


@kernel
def _meet_limits(n, quiet):
    """Limits that were met in this step faster than `quiet` send their rows back; whether there are any."""
    r, some = n.row, False
    for i in range(r.count[0]):
        if r.role[i] != STOP or r.active[i] == 0 or r.c[i] == 0.0:
            continue
        if (-r.k[i] if r.high[i] == 0.0 else r.k[i]) > quiet:
            r.goal_rate[i] = -r.c[i] * r.k[i]
            some = True
    return some


@kernel
def _leave_limits(n):
    """Limits that sent their rows back have done so, and push no longer."""
    r = n.row
    for i in range(r.count[0]):
        if r.role[i] == STOP and r.goal_rate[i] != 0.0:
            r.goal_rate[i] = r.force[i] = r.multiplier[i] = 0.0
            r.active[i] = 0


@kernel
def factor_held(e, n):
    """M and the rows that hold, nothing else: the matrix of Bayo and Ledesma's projection."""
    r, p = n.row, n.method
    clear(n)
    add_masses(e, n, 1.0)
    for i in range(r.count[0]):
        firm = r.penalty[i] if holds(r, i) else 0.0
        r.stiff[i], r.drag[i] = (0.0, firm) if r.role[i] == DRIVE else (firm, 0.0)
    add_rows(n, p.beta * p.h * p.h, p.gamma * p.h)
    factor(n)


@kernel
def _rounds(n, order, moving, even):
    """Rounds of a projection until what is off is less than `even`, or there are no more; what is left."""
    empty_residual(n)
    off = push_back(n, order)
    for _ in range(n.method.rounds):
        if off < even:
            break
        solve_residual(n, -1.0)
        correct(n, moving, 1.0)
        empty_residual(n)
        off = push_back(n, order)
    return off


@kernel
def keep_forces(n):
    """Constraints - Q at the end of the step, for the weights of the next."""
    ent = n.entity
    for x in range(ent.count[0]):
        for k in range(3):
            ent.before[x, k] = ent.residual[x, k]


@kernel
def find_velocities(e, n):
    """Velocities of a state that was set from outside: of those that the constraints allow the nearest to the bodies'
    own, in the metric of the masses (eq. 2.71 with the mass matrix). Drives and limits do not take part."""
    ent, r = n.entity, n.row
    evaluate(n)
    for i in range(r.count[0]):
        r.active[i] = 0
    factor_held(e, n)
    split_rates(n)
    take_momenta(e, n)
    for _ in range(START):
        push_back(n, 1)
        solve_residual(n, -1.0)
        correct(n, ent.v, 1.0)
        empty_residual(n)
    evaluate(n)


@kernel
def find_accelerations(e, n):
    """Accelerations and multipliers of a state that was set from outside: M a + slopes' l = Q, slopes a + g_ddot = 0.

    Drives that are as fast as they should be hold their acceleration, those that are not push as hard as they may: so
    does one that cannot hold. Limits do not take part.
    """
    r = n.row
    respond(e, n)
    evaluate_g_ddots(n)
    for i in range(r.count[0]):
        role = r.role[i]
        if role == HOLD or role == STOP or role == DRIVE:
            off = r.rate[i] - r.goal_rate[i]
            r.active[i] = 1 if role == DRIVE and abs(off) < STEADY else 0
            r.multiplier[i] = r.force[i] = 0.0
            if role == DRIVE and r.active[i] == 0:
                _push_fully(r, i, off)
    solve_accelerations(e, n)
    slips = False
    for i in range(r.count[0]):
        if r.role[i] == DRIVE and r.active[i] == 1 and not r.low[i] <= r.multiplier[i] <= r.high[i]:
            r.active[i] = 0
            _push_fully(r, i, r.multiplier[i])
            slips = True
    if slips:
        solve_accelerations(e, n)


@inline
def _push_fully(r, i, way):
    """A drive at the bound that lies this way; one without bounds leaves it to the step."""
    bound = r.high[i] if way > 0.0 else r.low[i]
    r.force[i] = r.multiplier[i] = bound if math.isfinite(bound) else 0.0


@kernel
def solve_accelerations(e, n):
    """Accelerations, and multipliers of what holds.

    The same augmented iteration as everywhere, with weights w: T a+ = Q - slopes' (l + w g_ddot), l+ = l + w (slopes a+
    + g_ddot).
    """
    ent, r = n.entity, n.row
    for i in range(r.count[0]):
        if holds(r, i):
            r.multiplier[i] = 0.0
    for x in range(ent.count[0]):
        if ent.known[x] == 0:
            ent.a[x, 0] = ent.a[x, 1] = ent.a[x, 2] = 0.0
    split_rates(n)
    factor_held(e, n)
    start_residual(n)
    push_contacts(e, n, 0.0)
    keep_forces(n)
    add_inertia(e, n, 1.0, 0.0)
    for _ in range(START):
        push_back(n, 2)
        solve_residual(n, -1.0)
        correct(n, ent.a, 1.0)
        for i in range(r.count[0]):
            if holds(r, i):
                r.multiplier[i] += r.weight[i] * off_g_ddot(r, i, ent.a)
        empty_residual(n)
    for i in range(r.count[0]):
        if holds(r, i):
            add_slopes(r, ent.before, i, r.multiplier[i])


@kernel
def keep_drives(e, n):
    """What actuators pushed with; pressures of cylinders at the end of the step, by the speeds that it has found."""
    r, act, pushed = n.row, e.model.actuator, e.data.target.pushed
    pushed[:] = 0.0
    for i in range(r.count[0]):
        if r.actuator[i] >= 0:
            pushed[r.actuator[i]] = -r.force[i]
        if r.role[i] == OIL:
            keep_pressure(e.model.cylinder, e.data.chamber, act.cylinder[r.actuator[i]], r.rate[i])


@kernel
def give_reactions(e, n):
    """What the rows of joints push with, where the other core has it. Joints that are shared have none to give."""
    r, row, joint = n.row, e.data.row, e.model.joint
    for j in range(joint.a.size):
        for k in range(6):
            row.force[j, k] = 0.0
    for i in range(r.count[0]):
        j = r.joint[i]
        if j < 0:
            continue
        if r.form[i] == PART:  # along an axis of the world: the other core's rows lie along the joint's own
            for k in range(3):
                row.force[j, k] -= row.axes[j, k, r.use[i, 1]] * r.force[i]
        else:
            row.force[j, r.slot[i]] = -r.force[i]
    for j in range(joint.a.size):
        joint_reaction(e.model, e.data, j)


@kernel
def let_go(e, n):
    """Break joints loaded beyond their strength in this step; switch off their rows and those of their actuators."""
    r, joint, act = n.row, e.model.joint, e.model.actuator
    before = e.data.status[BROKEN]
    break_joints(e)
    if e.data.status[BROKEN] == before:
        return
    for i in range(r.count[0]):
        j = r.joint[i] if r.actuator[i] < 0 else act.joint[r.actuator[i]]
        if j >= 0 and joint.on[j] == 0:
            r.role[i] = OFF
            r.force[i] = r.multiplier[i] = 0.0
    n.solution.dirty[0] = 1


def look_stage(address, assemble):
    """Entities from the poses of now, bodies moved onto their constraints if asked to, rows evaluated; what is open."""
    e = view_engine(address)
    n = view_natural(e.model.setup.core)
    settle(e, 0)
    take_poses(e, n)
    take_turns(e, n)
    evaluate(n)
    n.solution.pair_count[0] = 0
    if assemble == 1:
        if lay_out_tangent(e, n) != 0:
            return TANGENT_FULL
        assemble_positions(e, n)
        find_velocities(e, n)
        give_poses(e, n)
        settle(e, 0)
    return 0


@kernel
def assemble_positions(e, n):
    """Newton on the constraints, with the least motion in the metric of the masses."""
    r, ent = n.row, n.entity
    for _ in range(ASSEMBLY):
        factor_held(e, n)
        empty_residual(n)
        most = 0.0
        for i in range(r.count[0]):
            if r.role[i] != HOLD:
                continue
            off = r.value[i] - r.goal[i]
            most = max(most, abs(off))
            add_slopes(r, ent.residual, i, r.weight[i] * off)
        if most < CLOSED:
            break
        solve_residual(n, -1.0)
        correct(n, ent.q, 1.0)
        evaluate(n)
