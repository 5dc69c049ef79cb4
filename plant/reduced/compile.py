"""Compile a World into joint coordinates (`compile_tree`).

    tree = compile_tree(world, dt=0.001)
    tree.q[tree.places("elbow")] = 0.3
    tree.restart()
    tree.step(1000)
    tree.refresh()
    tree.body.pos[tree.index("hand")]

The tree grows from the ground (None and static bodies), and from a base body with six degrees of freedom in every group
of bodies that nothing ties to the ground. A joint's coordinates are where b is, seen from a: slides along the joint's
x, y, z, then the turn about z, or about x of a and y of b for a universal joint; all zero as the world is assembled. A
ball is a unit quaternion of its outer body seen from its inner one (nearer to the root), and its velocity is in the
joint's axes fixed to the outer one. A base is the position of its centre of mass in world axes and the quaternion of
the body, with velocity in world axes and spin in body axes. Bodies on fixed joints are part of the link they are on.

A joint that closes a loop of others declared before it has no coordinates; its locked axes are rows that hold the loop
together (plant.reduced.loop_closure), and so are joints that keep a distance. If the loop is open as the world is
drawn, the other joints move to close it; if they can not, the world is refused. Coordinates set from outside need
`assemble`.

Limits: actuators of the world (motors, servos, limits, friction) are left to the caller, who writes forces to `tau`;
couplings, and springs of joints, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.model import DISTANCE
from plant.reduced import kinematic_tree as hot
from plant.reduced import loop_closure
from plant.reduced import step as articulated
from plant.reduced.build import LOOSE, Builder
from plant.reduced.spanning_tree import Branch, TreeError, branches, loop_of
from plant.world.bodies import Body
from plant.world.checks import Vector
from plant.world.joints import Joint
from plant.world.rotations import matrix
from plant.world.world import World

Integrator = Literal["midpoint", "euler", "rk4"]
Method = Literal["aba", "crba"]

_INTEGRATORS = {"midpoint": hot.MIDPOINT, "euler": hot.EULER, "rk4": hot.RK4}
_METHODS = {"aba": hot.ABA, "crba": hot.CRBA}
_WEIGHTLESS = 1e-12  # inertia along a joint over that of what it carries, below which nothing holds it
_TURNS = 100  # of Newton's method to close the loops of a world

__all__ = ["Tree", "TreeError", "compile_tree"]


@kernel
def run_steps(address, count):
    """`count` steps; 0 or the first bad status."""
    t = hot.view_tree(address)
    for _ in range(count):
        status = articulated.step(t)
        if status != 0:
            return status
    return 0


@kernel
def run_accelerate(address):
    """qdd at the present q and qd."""
    t = hot.view_tree(address)
    articulated.accelerate(t, t.motion.q, t.motion.qd, t.motion.qd, 0.0)


@kernel
def run_outputs(address):
    """Poses and velocities of the bodies."""
    articulated.outputs(hot.view_tree(address))


@kernel
def run_assemble(address, turns):
    """Coordinates at which all loops are closed; the largest error left."""
    return loop_closure.assemble(hot.view_tree(address), turns)


@kernel
def run_settle(address):
    """Velocities that keep all loops closed, after `run_assemble`."""
    loop_closure.settle(hot.view_tree(address))


@dataclass
class Tree:
    """A compiled tree: q and qd are the state, qdd what the last evaluation gave."""

    world: World
    content: hot.Tree
    record: Struct
    names: list[str]
    _places: dict[str, list[int]]
    _dofs: dict[str, list[int]]
    closures: list[str]  # joints that close loops

    @property
    def q(self) -> Vector:
        return self.content.motion.q

    @property
    def qd(self) -> Vector:
        return self.content.motion.qd

    @property
    def qdd(self) -> Vector:
        return self.content.motion.qdd

    @property
    def body(self) -> hot.Bodies:
        """Poses and velocities of the bodies as of the last `refresh`."""
        return self.content.body

    def step(self, count: int = 1) -> int:
        """Advance; 0 or the status that ended it."""
        return int(run_steps(self.record.address, count))

    def restart(self) -> Vector:
        """qdd at the present q and qd. Call it after setting these from outside: the midpoint rule predicts with it."""
        run_accelerate(self.record.address)
        return self.qdd

    def assemble(self) -> float:
        """Close all loops from where q is, by the smallest change in terms of the masses; the gap left [m, rad].

        Velocities become those nearest to qd that keep the loops closed. Call it after setting q or qd from outside.
        """
        gap = float(run_assemble(self.record.address, _TURNS)) if self.closures else 0.0
        if self.closures:
            run_settle(self.record.address)
        self.restart()
        return gap

    def gap(self) -> float:
        """The largest violation of a linear axis of a joint that closes a loop, after the last step [m]."""
        loop = self.content.loop
        return float(np.abs(loop.error[(loop.axis < 3) | (loop.axis == DISTANCE)]).max(initial=0.0))

    def reaction(self, closure: str) -> Vector:
        """Forces in the locked axes of a joint that closes a loop, on b along its axes in a [N, N m].

        Of rows that say the same only the first carries a force.
        """
        k, loop = self.closures.index(closure), self.content.loop
        return loop.force[loop.first[k] : loop.first[k + 1]].copy()

    def refresh(self) -> hot.Bodies:
        """Bring `body` up to date."""
        run_outputs(self.record.address)
        return self.body

    def index(self, body: str) -> int:
        return self.names.index(body)

    def places(self, name: str) -> list[int]:
        """Where the coordinates of a joint, or of a free base body, are in q."""
        return self._places[name]

    def dofs(self, name: str) -> list[int]:
        """Where the velocities of a joint, or of a free base body, are in qd, qdd, tau and damping."""
        return self._dofs[name]

    def energy(self) -> float:
        """Kinetic and potential [J]."""
        total, gravity = 0.0, np.array(self.world.gravity, float)
        for body, pos, vel, inertia in self._moving():
            total += float(0.5 * body.mass * vel[:3] @ vel[:3] + 0.5 * vel[3:] @ inertia @ vel[3:])
            total -= float(body.mass * gravity @ pos)
        return total

    def momentum(self) -> Vector:
        """[6] linear [kg m/s], and angular about the world's origin [kg m^2/s]."""
        total = np.zeros(6)
        for body, pos, vel, inertia in self._moving():
            total[:3] += body.mass * vel[:3]
            total[3:] += np.cross(pos, body.mass * vel[:3]) + inertia @ vel[3:]
        return total

    def _moving(self) -> list[tuple[Body, Vector, Vector, Vector]]:
        """Body, position, velocity and inertia in world axes of all that have mass here."""
        out = self.refresh()
        found = []
        for k, body in enumerate(self.world.bodies.values()):
            if body.kind == "dynamic":
                r = matrix(out.quat[k])
                found.append((body, out.pos[k], out.vel[k], r @ body.inertia @ r.T))
        return found


def compile_tree(
    world: World,
    dt: float,
    *,
    integrator: Integrator = "midpoint",
    method: Method = "aba",
    floating: Sequence[str] | None = None,
) -> Tree:
    """Arrays for `world` at steps of `dt` seconds.

    `floating` names the bodies that are free bases, and nothing else may be loose; None takes the first body of every
    loose group.
    """
    for what, given, known in (("integrator", integrator, _INTEGRATORS), ("method", method, _METHODS)):
        if given not in known:
            raise TreeError(f"{what} {given!r}: choose one of {', '.join(known)}")
    if not (math.isfinite(dt) and dt > 0):
        raise TreeError(f"dt {dt} s must be positive")
    for body in world.bodies.values():
        _check_body(body)
    made = Builder(world)
    found, closures = branches(world, floating)
    for branch in found:
        made.add(branch)
    for joint in closures:
        made.close(joint)
    if not made.kind:
        raise TreeError("nothing in this world can move: it has no joint with a free axis and no loose body")
    gx, gy, gz = map(float, world.gravity)
    setup = hot.Setup(float(dt), gx, gy, gz, _INTEGRATORS[integrator], _METHODS[method])
    content = made.content(setup)
    names = [joint.name for joint in closures]
    tree = Tree(world, content, Struct(content), list(world.bodies), made.places, made.dofs, names)
    _check_inertia(tree, made)
    _close(tree, closures, found)
    tree.restart()
    tree.refresh()
    return tree


def _check_body(body: Body) -> None:
    """As for any engine, but a moment may be zero: a point mass on an arm is fine in joint coordinates."""
    if body.kind == "kinematic":
        raise TreeError(f"body {body.name!r} is kinematic: joint coordinates know only dynamic and static bodies")
    if body.kind == "static":
        return
    if not (math.isfinite(body.mass) and body.mass > 0):
        raise TreeError(f"body {body.name!r}: mass {body.mass} kg must be positive; for a fixed one use kind='static'")
    if not np.allclose(body.inertia, body.inertia.T, rtol=1e-9, atol=0):
        raise TreeError(f"body {body.name!r}: its inertia tensor is not symmetric")
    moments = np.linalg.eigvalsh(body.inertia)
    if not (np.isfinite(moments).all() and moments[0] >= -1e-12 * moments[2]):
        raise TreeError(f"body {body.name!r}: principal moments {moments.tolist()} kg m^2 must not be negative")
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-9):
        raise TreeError(
            f"body {body.name!r}: principal moments {moments.tolist()} break the triangle rule: no rigid body has them"
        )


def _check_inertia(tree: Tree, made: Builder) -> None:
    """Every degree of freedom must move some inertia, or its acceleration is anything."""
    by_nodes = Struct(tree.content._replace(setup=tree.content.setup._replace(method=hot.ABA)))
    run_accelerate(by_nodes.address)
    work = tree.content.work
    for i, name in enumerate(made.owner):
        along = 1.0 / work.drive[i, 6]
        slides = made.kind[i] == hot.SLIDE
        whole = work.inertia[i, [15, 18, 20] if slides else [0, 3, 5]].sum()
        if not along > _WEIGHTLESS * whole:
            raise TreeError(f"joint {name!r} is free in a direction in which what it carries has no inertia")


def _close(tree: Tree, closures: list[Joint], found: Sequence[Branch]) -> None:
    """Close the loops, and refuse those that stay open or that the bodies' velocities tear apart."""
    if not closures:
        return
    run_assemble(tree.record.address, 0)
    loop = tree.content.loop
    drawn = loop.error.copy()
    run_assemble(tree.record.address, _TURNS)
    for k, joint in enumerate(closures):
        rows = slice(loop.first[k], loop.first[k + 1])
        left, open_by = (_largest(e[rows], joint.locked) for e in (loop.error, drawn))
        if not np.abs(loop.error[rows]).max(initial=0.0) <= LOOSE:
            raise TreeError(
                f"joint {joint.name!r} can not close the loop through {loop_of(joint, found)}: as drawn it is open by "
                f"{open_by}, and by {left} at best: check its anchors and its length"
            )
        if not np.abs(loop.rate[rows]).max(initial=0.0) <= LOOSE * (1.0 + np.abs(tree.qd).max()):
            raise TreeError(
                f"joint {joint.name!r} closes the loop through {loop_of(joint, found)}, whose vel and spin would tear "
                f"it open at {_largest(loop.rate[rows], joint.locked)}/s"
            )


def _largest(rows: Vector, axes: Sequence[int]) -> str:
    """The largest row in words."""
    k = int(np.argmax(np.abs(rows)))
    return f"{abs(rows[k]):.3g} {'m' if axes[k] < 3 or axes[k] == DISTANCE else 'rad'}"
