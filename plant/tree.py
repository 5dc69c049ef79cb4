"""Compile a World whose joints form a tree into joint coordinates, for the stepper `articulated`.

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

Limits: actuators of the world (motors, servos, limits, friction) are left to the caller, who writes forces to `tau`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hilnode.jit import kernel
from hilnode.record import Record
from plant import articulated as hot
from plant.model import Turning
from plant.world import Body, Joint, Vector, World, WorldError, conjugate, product, quaternion, rotated

Integrator = Literal["midpoint", "euler", "rk4"]
Method = Literal["aba", "crba"]

_INTEGRATORS = {"midpoint": hot.MIDPOINT, "euler": hot.EULER, "rk4": hot.RK4}
_METHODS = {"aba": hot.ABA, "crba": hot.CRBA}
_TURNS = {Turning.ALL_FREE: (), Turning.NONE_FREE: (3, 4, 5), Turning.ONE_FREE: (3, 4), Turning.TWO_FREE: (3,)}
_LOOSE = 1e-9  # [m, m/s] how far a world may be from what its joints allow
_WEIGHTLESS = 1e-12  # inertia along a joint over that of what it carries, below which nothing holds it


class TreeError(WorldError):
    """A world that is no tree, or that joint coordinates can not describe; the message names bodies and joints."""


@kernel
def run_steps(address, count):
    """`count` steps; 0 or the first bad status."""
    t = hot.view_tree(address)
    for _ in range(count):
        status = hot.step(t)
        if status != 0:
            return status
    return 0


@kernel
def run_accelerate(address):
    """qdd at the present q and qd."""
    t = hot.view_tree(address)
    hot.accelerate(t, t.motion.q, t.motion.qd, t.motion.qd, 0.0)


@kernel
def run_outputs(address):
    """Poses and velocities of the bodies."""
    hot.outputs(hot.view_tree(address))


@dataclass
class Tree:
    """A compiled tree: q and qd are the state, qdd what the last evaluation gave."""

    world: World
    content: hot.Tree
    record: Record
    names: list[str]
    _places: dict[str, list[int]]
    _dofs: dict[str, list[int]]

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
                r = _matrix(out.quat[k])
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
    made = _Builder(world)
    for branch in _branches(world, floating):
        made.add(branch)
    if not made.kind:
        raise TreeError("nothing in this world can move: it has no joint with a free axis and no loose body")
    gx, gy, gz = map(float, world.gravity)
    setup = hot.Setup(float(dt), gx, gy, gz, _INTEGRATORS[integrator], _METHODS[method])
    content = made.content(setup)
    tree = Tree(world, content, Record(content), list(world.bodies), made.places, made.dofs)
    _check_inertia(tree, made)
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


def _check_inertia(tree: Tree, made: _Builder) -> None:
    """Every degree of freedom must move some inertia, or its acceleration is anything."""
    by_nodes = Record(tree.content._replace(setup=tree.content.setup._replace(method=hot.ABA)))
    run_accelerate(by_nodes.address)
    work = tree.content.work
    for i, name in enumerate(made.owner):
        along = 1.0 / work.drive[i, 6]
        slides = made.kind[i] == hot.SLIDE
        whole = work.inertia[i, [15, 18, 20] if slides else [0, 3, 5]].sum()
        if not along > _WEIGHTLESS * whole:
            raise TreeError(f"joint {name!r} is free in a direction in which what it carries has no inertia")


@dataclass
class _Branch:
    """A body and the joint that ties it to the tree; no joint: a free base."""

    body: str
    joint: Joint | None
    inner: str | None  # the body it hangs on; None = the ground


def _branches(world: World, floating: Sequence[str] | None) -> list[_Branch]:
    """All bodies that move, each after the one that it hangs on, along each limb to its end before the next."""
    ground = {name for name, b in world.bodies.items() if b.kind == "static"}
    for name in floating or ():
        if name not in world.bodies or name in ground:
            raise TreeError(f"floating base {name!r} is no body that can move; there are {', '.join(world.bodies)}")
    ends = {j.name: tuple(None if n in ground else n for n in (j.a, j.b)) for j in world.joints.values()}
    for name, pair in ends.items():
        if pair == (None, None):
            raise TreeError(f"joint {name!r} connects nothing that can move")
    found: dict[str, _Branch] = {}

    def grow(todo: list[_Branch]) -> None:
        while todo:
            branch = todo.pop()
            if branch.body in found:
                raise TreeError(_loop(branch, found))
            found[branch.body] = branch
            todo += _around(world, ends, branch.body, branch.joint)

    grow(_around(world, ends, None, None))
    for name in floating or ():
        grow([_Branch(name, None, None)])
    loose = [n for n in world.bodies if n not in found and n not in ground]
    if floating is not None and loose:
        raise TreeError(
            f"no joint leads from the ground to {_listed(loose)}: add one, or name a floating base among them"
        )
    for name in loose:
        if name not in found:
            grow([_Branch(name, None, None)])
    return list(found.values())


def _around(
    world: World, ends: dict[str, tuple[str | None, ...]], body: str | None, but: Joint | None
) -> list[_Branch]:
    """What hangs on `body` (None: the ground) by joints other than `but`; the first declared is last: taken first."""
    found = []
    for joint in world.joints.values():
        a, b = ends[joint.name]
        if joint is but or body not in (a, b):
            continue
        outer = b if a == body else a
        if outer is not None:
            found.append(_Branch(outer, joint, body))
        elif body is not None:  # a second way to the ground
            found.append(_Branch(body, joint, None))
    return found[::-1]


def _listed(names: Sequence[str]) -> str:
    return ("body " if len(names) == 1 else "bodies ") + ", ".join(repr(n) for n in names)


def _loop(branch: _Branch, found: dict[str, _Branch]) -> str:
    """The sentence about the loop that `branch` closes."""
    if branch.joint is None:
        return f"floating base {branch.body!r} hangs on the ground or on another base already: leave it out of floating"

    def line(name: str | None) -> list[str]:
        return [] if name is None else [name, *line(found[name].inner if name in found else None)]

    one, two = line(branch.inner), line(branch.body)
    meet = [n for n in one if n in two][:1]
    around = [n for n in one if n not in two] + meet + [n for n in two if n not in one][::-1]
    return (
        f"joint {branch.joint.name!r} closes a loop through {_listed(around)}{'' if meet else ' and the ground'}: "
        "joint coordinates know only trees; leave the joint out, or compile this world with constraints"
    )


@dataclass
class _Builder:
    """Grows the node arrays branch by branch. Poses here are those of the assembled world."""

    world: World
    parent: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    owner: list[str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    axis: list[int] = field(default_factory=list)  # column of the frame that a node moves along
    frame: list[Vector] = field(default_factory=list)
    inertia: list[Vector] = field(default_factory=list)  # [10] as in Nodes
    q: list[float] = field(default_factory=list)
    qd: list[float] = field(default_factory=list)
    pose: list[tuple[Vector, Vector]] = field(default_factory=list)  # origin, axes of each node
    node: dict[str, int] = field(default_factory=dict)  # of a body, -1 = the ground
    places: dict[str, list[int]] = field(default_factory=dict)
    dofs: dict[str, list[int]] = field(default_factory=dict)

    def add(self, branch: _Branch) -> None:
        """The nodes of a body's joint, its mass, and the joint's speeds."""
        body, joint = self.world.bodies[branch.body], branch.joint
        inner = -1 if branch.inner is None else self.node[branch.inner]
        start = len(self.kind)
        if joint is None:
            last = self._add_base(body)
            name, reverse = body.name, False
        else:
            reverse = joint.b != body.name
            last = self._add_joint(joint, inner, reverse)
            name = joint.name
        self.node[body.name] = last
        if last >= 0:
            self._add_mass(body, last)
        self.qd += _speeds(self.world, self, branch, start)
        if name in self.dofs:
            raise TreeError(f"a joint and a floating base are both called {name!r}: rename one")
        nodes = range(start, len(self.kind))
        single = [i for i in nodes if self.kind[i] < hot.BALL]
        single = single[::-1] if reverse else single
        ball = [i for i in nodes if self.kind[i] >= hot.BALL]
        self.dofs[name] = single + ball
        self.places[name] = [self.at[i] for i in single] + [self.at[ball[0]] + k for k in range(4) if ball]

    def _add_base(self, body: Body) -> int:
        com = body.pos + rotated(body.quat, body.com)
        last, point = -1, np.zeros(3)
        for k in range(3):
            end = point + com * (np.arange(3) == k)
            last = self._node(body.name, hot.SLIDE, last, point, _z_along(k, 1.0), float(com[k]), end)
            point = end
        return self._ball(body.name, last, com, np.eye(3), body.quat)

    def _add_joint(self, joint: Joint, inner: int, reverse: bool) -> int:
        """A joint's free axes in a row; seen from b they come in the opposite order and direction."""
        slides, turns = _free_axes(joint)
        axes = _matrix(joint.quat)
        a, b = joint.at, joint.at if joint.at_b is None else joint.at_b
        apart = axes.T @ (b - a)
        if any(abs(apart[k]) > _LOOSE for k in range(3) if k not in slides):
            raise TreeError(
                f"joint {joint.name!r}: its anchors are {np.linalg.norm(b - a):g} m apart along a locked axis"
            )
        row = [(hot.SLIDE, k, float(apart[k])) for k in slides] + [(hot.HINGE, k, 0.0) for k in turns]
        side, point = (-1.0, b.copy()) if reverse else (1.0, a.copy())
        ball = joint.turning == Turning.ALL_FREE
        last = inner
        if ball and reverse:
            last = self._ball(joint.name, last, point, axes, None)
        for kind, k, value in row[::-1] if reverse else row:
            origin = point.copy()
            if kind == hot.SLIDE:
                point = point + side * value * axes[:, k]
            last = self._node(joint.name, kind, last, origin, axes @ _z_along(k, side), value, point)
        if ball and not reverse:
            last = self._ball(joint.name, last, point, axes, None)
        return last

    def _node(self, name: str, kind: int, parent: int, origin: Vector, axes: Vector, value: float, end: Vector) -> int:
        """A node whose frame at q = 0 is (origin, axes) and as assembled is at `end`."""
        self._append(name, kind, parent, origin, axes, end)
        self.at.append(len(self.q))
        self.axis.append(2)
        self.q.append(value)
        return len(self.kind) - 1

    def _ball(self, name: str, parent: int, point: Vector, axes: Vector, quat: Vector | None) -> int:
        """Three nodes; the last one's frame is turned by `quat`."""
        place = len(self.q)
        self.q += [1.0, 0.0, 0.0, 0.0] if quat is None else list(quat)
        turned = axes if quat is None else axes @ _matrix(quat)
        for k in range(3):
            last = len(self.kind) - 1
            kind = hot.BALL if k == 0 else hot.BALL_NEXT
            self._append(name, kind, parent if k == 0 else last, point, axes, point)
            self.pose[-1] = (point, turned)
            self.at.append(place)
            self.axis.append(k)
        return len(self.kind) - 1

    def _append(self, name: str, kind: int, parent: int, origin: Vector, axes: Vector, end: Vector) -> None:
        base, turned = self.pose[parent] if parent >= 0 else (np.zeros(3), np.eye(3))
        self.parent.append(parent)
        self.kind.append(kind)
        self.owner.append(name)
        self.frame.append(np.concatenate([(turned.T @ axes).ravel(), turned.T @ (origin - base)]))
        self.inertia.append(np.zeros(10))
        self.pose.append((end, axes))

    def _add_mass(self, body: Body, node: int) -> None:
        """Add a body to the inertia that `node` carries."""
        origin, axes = self.pose[node]
        turned = axes.T @ _matrix(body.quat)
        c = axes.T @ (body.pos + rotated(body.quat, body.com) - origin)
        tensor = turned @ body.inertia @ turned.T + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
        self.inertia[node] += [*tensor[np.triu_indices(3)], *(body.mass * c), body.mass]

    def content(self, setup: hot.Setup) -> hot.Tree:
        """The record of all arrays."""
        n, nq, bodies = len(self.kind), len(self.q), list(self.world.bodies.values())
        node = [self.node.get(b.name, -1) for b in bodies]
        poses = [self.pose[i] if i >= 0 else (np.zeros(3), np.eye(3)) for i in node]
        coms = [b.pos + rotated(b.quat, b.com) for b in bodies]
        quats = [product(conjugate(quaternion(p[1])), b.quat) for p, b in zip(poses, bodies, strict=True)]
        frame = np.zeros((n + 1, 24))
        frame[n, [0, 4, 8]] = 1.0
        full = n if setup.method == hot.CRBA else 0
        return hot.Tree(
            setup=setup,
            node=hot.Nodes(
                parent=_ints([n if p < 0 else p for p in self.parent]),
                kind=_ints(self.kind),
                at=_ints(self.at),
                run=_ints(_runs(self.parent)),
                heavy=_ints([int(i[9] > 0) for i in self.inertia]),
                frame=np.array(self.frame),
                inertia=np.array(self.inertia),
            ),
            part=hot.Parts(
                node=_ints([n if i < 0 else i for i in node]),
                com=np.array([p[1].T @ (c - p[0]) for p, c in zip(poses, coms, strict=True)]),
                quat=np.array(quats),
            ),
            motion=hot.Motion(
                np.array(self.q), np.array(self.qd), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((len(bodies), 6))
            ),
            work=hot.Work(
                frame=frame,
                bias=np.zeros((n, 6)),
                inertia=np.zeros((n + 1, 27)),
                drive=np.zeros((n, 8)),
                acc=np.zeros((n + 1, 6)),
                mass=np.zeros((full, full)),
                stage_q=np.zeros(nq),
                stage_qd=np.zeros(n),
                sum_q=np.zeros(nq),
                sum_qd=np.zeros(n),
                rate=np.zeros(nq),
            ),
            body=hot.Bodies(np.array(coms), np.array([b.quat for b in bodies]), np.zeros((len(bodies), 6))),
        )


def _free_axes(joint: Joint) -> tuple[list[int], tuple[int, ...]]:
    """Which of x, y, z slide, and which turn one after the other (a ball's do not)."""
    turning = Turning(joint.turning)
    if tuple(sorted(k for k in joint.locked if k >= 3)) != _TURNS[turning]:
        raise TreeError(
            f"joint {joint.name!r} locks axes {joint.locked} but turns as {turning.name}, which of the angular ones "
            f"locks {_TURNS[turning]}: it is none of hinge, prismatic, ball, universal, fixed, cylindrical, planar, "
            "point_line"
        )
    turns = {Turning.ONE_FREE: (2,), Turning.TWO_FREE: (0, 1)}.get(turning, ())
    return [k for k in range(3) if k not in joint.locked], turns


def _speeds(world: World, made: _Builder, branch: _Branch, start: int) -> list[float]:
    """The joint speeds that give a body its velocity, which must be one that the joint allows."""
    body, joint = world.bodies[branch.body], branch.joint
    here = body.pos + rotated(body.quat, body.com) if joint is None else joint.at
    given = np.concatenate([body.vel + np.cross(body.spin, here - body.pos), body.spin])
    if branch.inner is not None:
        inner = world.bodies[branch.inner]
        given -= np.concatenate([inner.vel + np.cross(inner.spin, here - inner.pos), inner.spin])
    nodes = range(start, len(made.kind))
    columns = np.zeros((6, len(nodes)))
    for k, i in enumerate(nodes):
        origin, axes = made.pose[i]
        axis = axes[:, made.axis[i]]
        if made.kind[i] == hot.SLIDE:
            columns[:3, k] = axis
        else:
            columns[:3, k], columns[3:, k] = np.cross(axis, here - origin), axis
    speeds = np.linalg.lstsq(columns, given, rcond=None)[0] if len(nodes) else np.zeros(0)
    if not np.abs(columns @ speeds - given).max() <= _LOOSE * (1.0 + np.abs(given).max()):
        raise TreeError(
            f"body {body.name!r}: {joint and joint.name!r} does not allow its vel {body.vel.tolist()} m/s and "
            f"spin {body.spin.tolist()} rad/s, given how {branch.inner or 'the ground'!r} moves"
        )
    return [float(s) for s in speeds]


def _z_along(k: int, side: float) -> Vector:
    """Axes whose z is `side` times the k-th."""
    if k == 2:
        return np.diag([1.0, side, side])
    return np.roll(np.eye(3), k + 1, axis=0) @ np.diag([1.0, side, side])


def _matrix(q: Vector) -> Vector:
    """Rotation matrix of a unit quaternion."""
    return np.column_stack([rotated(q, e) for e in np.eye(3)])


def _runs(parent: list[int]) -> list[int]:
    """For each node the lowest one from which k, k + 1, ... are each other's parents up to here."""
    out: list[int] = []
    for i, p in enumerate(parent):
        out.append(out[i - 1] if i > 0 and p == i - 1 else i)
    return out


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)
