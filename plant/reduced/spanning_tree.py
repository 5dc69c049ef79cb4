"""The spanning tree of a World's joints: which connect a body to the tree, and which close a loop.

The joints are taken in the order in which they are declared, so whoever writes the world says where a loop is cut: at
its last joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plant.model import DISTANCE
from plant.world.checks import WorldError
from plant.world.joints import Joint
from plant.world.world import World

Ends = dict[str, tuple[str | None, ...]]


class TreeError(WorldError):
    """A world that joint coordinates can not describe; the message names bodies and joints."""


@dataclass
class Branch:
    """A body and the joint that ties it to the tree; no joint: a free base."""

    body: str
    joint: Joint | None
    inner: str | None  # the body it hangs on; None = the ground


def branches(world: World, floating: Sequence[str] | None) -> tuple[list[Branch], list[Joint]]:
    """All bodies that move, each after the one that it hangs on, along each limb to its end before the next; and the
    joints that close loops.
    """
    ground = {name for name, b in world.bodies.items() if b.kind == "static"}
    for name in floating or ():
        if name not in world.bodies or name in ground:
            raise TreeError(f"floating base {name!r} is no body that can move; there are {', '.join(world.bodies)}")
    ends = {j.name: tuple(None if n in ground else n for n in (j.a, j.b)) for j in world.joints.values()}
    for name, pair in ends.items():
        if pair == (None, None):
            raise TreeError(f"joint {name!r} connects nothing that can move")
    tree = _tree_joints(world, ends)
    closures = [j for j in world.joints.values() if j.name not in tree]
    found: dict[str, Branch] = {}

    def grow(todo: list[Branch]) -> None:
        while todo:
            branch = todo.pop()
            if branch.body in found:
                raise TreeError(
                    f"floating base {branch.body!r} hangs on the ground or on another base already: "
                    "leave it out of floating"
                )
            found[branch.body] = branch
            todo += _around(tree, ends, branch.body, branch.joint)

    grow(_around(tree, ends, None, None))
    for name in floating or ():
        grow([Branch(name, None, None)])
    loose = [n for n in world.bodies if n not in found and n not in ground]
    if floating is not None and loose:
        raise TreeError(
            f"no joint leads from the ground to {listed(loose)}: add one, or name a floating base among them"
        )
    for name in loose:
        if name not in found:
            grow([Branch(name, None, None)])
    return list(found.values()), closures


def _tree_joints(world: World, ends: Ends) -> dict[str, Joint]:
    """The joints in the order in which they are declared, but for those that close a loop of them; Kruskal's choice.

    One that keeps a distance has no coordinates: it always closes.
    """
    group: dict[str | None, str | None] = {}

    def top(name: str | None) -> str | None:
        while group.get(name, name) != name:
            name = group[name]
        return name

    tree = {}
    for joint in world.joints.values():
        one, other = map(top, ends[joint.name])
        if one != other and DISTANCE not in joint.locked:
            group[one] = other
            tree[joint.name] = joint
    return tree


def _around(tree: dict[str, Joint], ends: Ends, body: str | None, but: Joint | None) -> list[Branch]:
    """What hangs on `body` (None: the ground) by joints other than `but`; the first declared is last: taken first."""
    found = []
    for joint in tree.values():
        a, b = ends[joint.name]
        if joint is but or body not in (a, b):
            continue
        outer = b if a == body else a
        if outer is not None:
            found.append(Branch(outer, joint, body))
    return found[::-1]


def listed(names: Sequence[str]) -> str:
    """Bodies in words."""
    return ("body " if len(names) == 1 else "bodies ") + ", ".join(repr(n) for n in names)


def loop_of(joint: Joint, found: Sequence[Branch]) -> str:
    """The bodies around the loop that `joint` closes, in words."""
    inner = {b.body: b.inner for b in found}

    def line(name: str | None) -> list[str]:
        found = []
        while name in inner:
            found.append(name)
            name = inner[name]
        return found

    one, two = line(joint.a), line(joint.b)
    meet = [n for n in one if n in two][:1]
    around = [n for n in one if n not in two] + meet + [n for n in two if n not in one][::-1]
    return listed(around) + ("" if meet else " and the ground")
