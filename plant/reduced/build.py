"""Joint coordinates of a World: its bodies and joints as nodes of a kinematic tree, branch by branch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hilnode.core.struct import zeros
from plant.model import DISTANCE, Turning
from plant.reduced import kinematic_tree as hot
from plant.reduced.spanning_tree import Branch, TreeError
from plant.world.bodies import Body
from plant.world.checks import Vector
from plant.world.joints import Joint
from plant.world.rotations import conjugate, matrix, product, quaternion, rotated
from plant.world.world import World

LOOSE = 1e-9  # [m, m/s] how far a world may be from what its joints allow
_TURNS = {Turning.ALL_FREE: (), Turning.NONE_FREE: (3, 4, 5), Turning.ONE_FREE: (3, 4), Turning.TWO_FREE: (3,)}


@dataclass
class Builder:
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
    closures: list[tuple[Joint, list[tuple[int, Vector]]]] = field(default_factory=list)  # node and frame of a and b

    def add(self, branch: Branch) -> None:
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
        axes = matrix(joint.quat)
        a, b = joint.at, joint.at if joint.at_b is None else joint.at_b
        apart = axes.T @ (b - a)
        if any(abs(apart[k]) > LOOSE for k in range(3) if k not in slides):
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
        turned = axes if quat is None else axes @ matrix(quat)
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
        turned = axes.T @ matrix(body.quat)
        c = axes.T @ (body.pos + rotated(body.quat, body.com) - origin)
        tensor = turned @ body.inertia @ turned.T + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
        self.inertia[node] += [*tensor[np.triu_indices(3)], *(body.mass * c), body.mass]

    def close(self, joint: Joint) -> None:
        """A joint that closes a loop: its frames on both sides and its rows."""
        _free_axes(joint)
        axes = matrix(joint.quat)
        frames = []
        for body, at in ((joint.a, joint.at), (joint.b, joint.at if joint.at_b is None else joint.at_b)):
            node = -1 if body is None else self.node.get(body, -1)
            origin, turned = self.pose[node] if node >= 0 else (np.zeros(3), np.eye(3))
            frames.append((node, np.concatenate([(turned.T @ axes).ravel(), turned.T @ (at - origin)])))
        self.closures.append((joint, frames))

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
                all=_ints(list(range(n))),
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
                speed=np.zeros((n + 1, 3)),
            ),
            loop=self._loops(),
            body=hot.Bodies(np.array(coms), np.array([b.quat for b in bodies]), np.zeros((len(bodies), 6))),
        )

    def _loops(self) -> hot.Loops:
        """Paths from both ends of each closure to the ground, and room for its rows."""
        n, first, path_at = len(self.kind), [0], [0]
        axis: list[int] = []
        path: list[int] = []
        side: list[float] = []
        for joint, ends in self.closures:
            a, b = (self._line(node) for node, _ in ends)
            nodes = sorted({*a, *b}, reverse=True)
            path += nodes
            side += [float(i in b) - float(i in a) for i in nodes]
            axis += joint.locked
            first.append(len(axis))
            path_at.append(len(path))
        count, rows = len(self.closures), len(axis)
        filled = {
            "node": np.array([[n if i < 0 else i for i, _ in ends] for _, ends in self.closures], np.int64),
            "turning": _ints([int(joint.turning) for joint, _ in self.closures]),
            "frame": np.array([[frame for _, frame in ends] for _, ends in self.closures], float),
            "length": np.array([joint.length for joint, _ in self.closures], float),
            "reach": np.array([self._reach(joint, ends) for joint, ends in self.closures], float),
            "first": _ints(first),
            "axis": _ints(axis),
            "path_at": _ints(path_at),
            "path": _ints(path),
            "side": np.array(side, float),
            "moved": _ints(sorted(set(path))),
        }
        shapes: dict[str, tuple[int, ...]] = {"node": (count, 2), "frame": (count, 2, 12), "seen": (count, 2, 12)}
        shapes |= {
            "line": (rows, 3),
            "jacobian": (rows, n),
            "half": (rows, n),
            "matrix": (rows, rows),
            "lower": (rows, rows),
        }
        empty = zeros(hot.Loops, shapes | {"push": (n + 1, 6), "shift": (n,)}, rows)
        return empty._replace(**{k: v.reshape(shapes.get(k, v.shape)) for k, v in filled.items()})

    def _reach(self, joint: Joint, ends: list[tuple[int, Vector]]) -> float:
        """The largest arm of a closure's anchor, or size of a link, on its path."""
        found = [0.0]
        for i in {i for node, _ in ends for i in self._line(node)}:
            found.append(float(np.linalg.norm(joint.at - self.pose[i][0])))
            if self.inertia[i][9] > 0:
                found.append(math.sqrt(self.inertia[i][[0, 3, 5]].sum() / self.inertia[i][9]))
        return max(found)

    def _line(self, node: int) -> list[int]:
        """Nodes from here to the ground."""
        found = []
        while node >= 0:
            found.append(node)
            node = self.parent[node]
        return found


def _free_axes(joint: Joint) -> tuple[list[int], tuple[int, ...]]:
    """Which of x, y, z slide, and which turn one after the other (a ball's do not)."""
    turning = Turning(joint.turning)
    if tuple(sorted(k for k in joint.locked if 3 <= k < DISTANCE)) != _TURNS[turning]:
        raise TreeError(
            f"joint {joint.name!r} locks axes {joint.locked} but turns as {turning.name}, which of the angular ones "
            f"locks {_TURNS[turning]}: it is none of hinge, prismatic, ball, universal, fixed, cylindrical, planar, "
            "point_line"
        )
    turns = {Turning.ONE_FREE: (2,), Turning.TWO_FREE: (0, 1)}.get(turning, ())
    return [k for k in range(3) if k not in joint.locked], turns


def _speeds(world: World, made: Builder, branch: Branch, start: int) -> list[float]:
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
    if not np.abs(columns @ speeds - given).max() <= LOOSE * (1.0 + np.abs(given).max()):
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


def _runs(parent: list[int]) -> list[int]:
    """For each node the lowest one from which k, k + 1, ... are each other's parents up to here."""
    out: list[int] = []
    for i, p in enumerate(parent):
        out.append(out[i - 1] if i > 0 and p == i - 1 else i)
    return out


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)
