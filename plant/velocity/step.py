"""The step at velocity level: velocities and impulses in one solve, then positions.

Ref: Nordberg and Servin eq. 8-10; Vortex eq. 16, 22, 29.

    collide, wake       contacts; who is woken by them
    islands             sets of connected bodies, and the order of elimination if the graph has changed
    rows                bounded rows; the joint rows are there from the step before
    impact              contacts that bounce (Nordberg and Servin 2.3)
    solve               every island by its solver
    move, settle        new poses, their matrices and joint rows, gaps closed
    break, sleep        joints that bore too much; islands that came to rest

Three steppers differ in how the joint rows are stabilised: `spook`, `linearised` (Koerner eq. 2.13) and `projected`
(Koerner eq. 2.14 and 2.15).
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from hilnode.core.struct import address_of
from plant.abi import NOT_FINITE, OK
from plant.collision.contact_list import find_contacts
from plant.constraint.actuators import actuator_rows
from plant.constraint.contact import contact_rows, keep_rows, warm_contacts
from plant.constraint.hydraulics import keep_pressures
from plant.constraint.kinematics import load_bodies, move_bodies
from plant.constraint.springs import spring_rows
from plant.model import DISTANCE, Status, view_engine
from plant.solver.dispatch import solve_rows, sort_rows
from plant.solver.impact import impact, is_impact
from plant.solver.iterative import lock_rows
from plant.solver.sleep import fall_asleep, wake_pushed, wake_touched
from plant.sparse.islands import update_graph
from plant.stages import Stage, Stages, address_of_stage, call_stage
from plant.velocity.force_field import apply_fields
from plant.velocity.position_projection import ROUNDS, settle

CONTACTS_FULL, PAIRS_FULL, MESHES_FULL = 100, 102, 103
FULL = {
    CONTACTS_FULL: "more contacts than there is room for: compile the world with more (contacts=...)",
    PAIRS_FULL: "more pairs of shapes come near each other than there is room for: compile the world with more "
    "(pairs=...)",
    MESHES_FULL: "two meshes cross each other along more triangles than there is room for: use coarser meshes or hulls",
}
"""Sentences for what ends a run for lack of room."""
IMPACTS = 16  # in a step, at most
OVERFLOW, FACTORS, POSES_VALID = int(Status.OVERFLOW), int(Status.FACTORS), int(Status.POSES_VALID)
BROKEN, STEPS = int(Status.BROKEN), int(Status.STEPS)


@kernel
def write_rows(e):
    """All bounded rows of the step, sorted by island. A new kind of row is one more line here."""
    e.data.bounded.count[0] = 0
    actuator_rows(e)
    spring_rows(e)
    contact_rows(e)
    lock_rows(e)
    sort_rows(e)


def collide_stage(address, unused):
    """The contact list of this step; returns how many found no room."""
    e = view_engine(address)
    m, d = e.model, e.data
    return find_contacts(
        e.scene,
        d.state.pos,
        d.frame.rot,
        d.state.vel,
        d.state.asleep,
        m.material.pair,
        m.material.smooth.law,
        m.setup.margin,
        m.setup.h,
        d.contact,
        d.region,
    )


def solve_stage(address, rounds):
    """Velocities and impulses of all islands."""
    solve_rows(view_engine(address), rounds)
    return 0


def step_stage(address, count):
    """So many steps; 0 or the first status that is not."""
    e = view_engine(address)
    for _ in range(count):
        status = step(e)
        if status != 0:
            return status
    return 0


def stages(
    step_piece: Stage = step_stage, foundation: Stage | None = None, foundation_slopes: Stage | None = None
) -> Stages:
    """The addresses of the pieces, which are compiled now if they never were; `solve` only if `step` needs it."""
    solve = solve_stage if step_piece is step_stage else None
    return Stages(*(address_of_stage(s) for s in (collide_stage, solve, step_piece, foundation, foundation_slopes)))


@kernel
def step(e):
    """One step. Returns a status."""
    d, setup = e.data, e.model.setup
    if d.status[POSES_VALID] == 0:  # poses were set from outside
        settle(e, 0)
        d.status[POSES_VALID] = 1
    d.status[FACTORS] = 0
    here = address_of(e)
    wake_pushed(e)
    d.status[OVERFLOW] = call_stage(e.model.stage.collide, here, 0)
    if wake_touched(e):
        d.status[OVERFLOW] = call_stage(e.model.stage.collide, here, 0)
    if d.status[OVERFLOW] > 0:
        return what_is_full(e.scene)
    warm_contacts(d.contact, d.warm)
    update_graph(e)
    write_rows(e)
    for _ in range(IMPACTS):  # one may lead to the next, as in a row of balls
        if not is_impact(d.bounded):
            break
        impact(e)
        write_rows(e)
    apply_fields(e)
    load_bodies(e, setup.h)
    # Contacts that all stayed have bounds from their last normal impulses: one round will do (Vortex 2.5.2, end).
    call_stage(e.model.stage.solve, here, 1 if d.contact.new[0] == 0 else setup.friction_rounds)
    keep_rows(e)
    keep_pressures(e)
    if move_bodies(e) != 0:
        return NOT_FINITE
    settle(e, ROUNDS)
    break_joints(e)
    fall_asleep(e)
    d.status[STEPS] += 1
    return OK


@inline
def what_is_full(scene):
    """The status for what found no room in this step."""
    if scene.pairs.lost[0] > 0:
        return PAIRS_FULL
    return MESHES_FULL if scene.crossing.lost[0] > 0 else CONTACTS_FULL


@kernel
def break_joints(e):
    """Take away joints whose force or torque in this step was more than they bear."""
    m, d = e.model, e.data
    for j in range(m.joint.a.size):
        if m.joint.on[j] == 0 or (math.isinf(m.joint.strength[j]) and math.isinf(m.joint.twist[j])):
            continue
        force, twist = 0.0, 0.0
        for i in range(6):
            axis, f = m.joint.axis[j, i], d.row.force[j, i]
            if axis >= 0 and (axis < 3 or axis == DISTANCE):
                force += f * f
            elif axis >= 3:
                twist += f * f
        if math.sqrt(force) > m.joint.strength[j] or math.sqrt(twist) > m.joint.twist[j]:
            m.joint.on[j] = 0
            d.row.force[j, :] = 0.0
            d.graph.dirty[0] = 1
            d.status[BROKEN] += 1
