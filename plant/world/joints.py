"""Joints of a world: hinge, slider, ball and the others, all kinds of one six-axis joint.

Joints are data: a frame fixed in each of two bodies, and which of the six axes are locked. The first body may be
None: the ground. The joint's z axis is the one that a hinge turns about and a slider slides along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hilnode.core.signals import nearest
from plant.codes import Turning
from plant.constraint.joint_coordinate import ABOUT, TURN, TURN_A, TURN_B
from plant.model import DISTANCE
from plant.world.bodies import WithBodies
from plant.world.checks import Vector, WorldError, distance_between, three
from plant.world.rotations import frame_along

Axis = Literal["x", "y", "z", "turn", "turn_a", "turn_b", "about_x", "about_y", "about_z"]

RIGID = math.inf
"""[N/m, N m/rad] stiffness of a locked axis when none is given: it gives way by rounding alone."""


@dataclass
class Joint:
    """Two frames and the axes that are locked between them."""

    name: str
    a: str | None
    b: str | None
    at: Vector
    quat: Vector
    locked: tuple[int, ...]  # 0..2 linear, 3.. angular rows
    turning: Turning
    stiffness: float = RIGID
    damping_time: float | None = None  # [s] damping over stiffness; None = two steps
    at_b: Vector | None = None  # where b's anchor is, if not at the same place
    length: float = 0.0  # [m] of a distance row
    strength: float = math.inf  # [N] pull at which it breaks
    twist: float = math.inf  # [N m] torque at which it breaks


@dataclass(kw_only=True)
class WithJoints(WithBodies):
    """The part of a World that holds joints."""

    joints: dict[str, Joint] = field(default_factory=dict)

    def joint(
        self,
        name: str,
        a: str | None,
        b: str | None,
        *,
        at: ArrayLike,
        axis: ArrayLike = (0, 0, 1),
        reference: ArrayLike | None = None,
        locked: tuple[int, ...],
        turning: Turning,
        stiffness: float = RIGID,
        damping_time: float | None = None,
        at_b: ArrayLike | None = None,
        length: float = 0.0,
        strength: float = math.inf,
        twist: float = math.inf,
    ) -> str:
        """The six-axis joint at the world point `at`, its z along `axis` and its x near `reference`."""
        self._new(name, self.joints, "joint")
        self._two_bodies(f"joint {name!r}", a, b)
        if not stiffness > 0:
            raise WorldError(f"joint {name!r}: stiffness {stiffness} must be positive; a rigid joint has {RIGID}")
        if not (strength > 0 and twist > 0):
            raise WorldError(f"joint {name!r}: strength {strength} and twist {twist} must be positive, or left out")
        if damping_time is not None and not 0 <= damping_time < math.inf:
            raise WorldError(f"joint {name!r}: damping_time {damping_time} s must not be negative")
        quat = frame_along(name, np.array(axis, float), None if reference is None else np.array(reference, float))
        where = three(f"joint {name!r}: at", at)
        other = None if at_b is None else three(f"joint {name!r}: at_b", at_b)
        self.joints[name] = Joint(
            name, a, b, where, quat, locked, turning, stiffness, damping_time, other, length, strength, twist
        )
        return name

    def ball(self, name: str, a: str | None, b: str | None, *, at: ArrayLike, **options: float) -> str:
        """A point of both bodies stays together; all turns are free."""
        return self.joint(name, a, b, at=at, locked=(0, 1, 2), turning=Turning.ALL_FREE, **options)

    def hinge(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """Turns about one axis."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(0, 1, 2, 3, 4), turning=Turning.ONE_FREE, **options)

    def prismatic(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """Slides along one axis."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(0, 1, 3, 4, 5), turning=Turning.NONE_FREE, **options)

    def cylindrical(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """Slides along one axis and turns about it."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(0, 1, 3, 4), turning=Turning.ONE_FREE, **options)

    def fixed(self, name: str, a: str | None, b: str | None, *, at: ArrayLike, **options: float) -> str:
        """Nothing moves."""
        return self.joint(name, a, b, at=at, locked=(0, 1, 2, 3, 4, 5), turning=Turning.NONE_FREE, **options)

    def planar(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """Slides in a plane perpendicular to the axis and turns about it."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(2, 3, 4), turning=Turning.ONE_FREE, **options)

    def point_line(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """A point of b stays on a line of a; all turns are free."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(0, 1), turning=Turning.ALL_FREE, **options)

    def universal(
        self,
        name: str,
        a: str | None,
        b: str | None,
        *,
        at: ArrayLike,
        axis_a: ArrayLike,
        axis_b: ArrayLike,
        **options: float,
    ) -> str:
        """Turns about an axis of a (`turn_a`) and a perpendicular one of b (`turn_b`)."""
        return self._two_axes(name, a, b, at, axis_a, axis_b, (0, 1, 2, 3), options)

    def car_wheel(
        self,
        name: str,
        chassis: str | None,
        wheel: str,
        *,
        at: ArrayLike,
        steering: ArrayLike,
        axle: ArrayLike,
        **options: float,
    ) -> str:
        """A wheel that travels along the steering axis (`x`), steers about it (`turn_a`) and rolls (`turn_b`).

        Travel is free until a spring (`spring_on`) and limits hold it, steering until a servo does.
        """
        return self._two_axes(name, chassis, wheel, at, steering, axle, (1, 2, 3), options)

    def _two_axes(
        self,
        name: str,
        a: str | None,
        b: str | None,
        at: ArrayLike,
        axis_a: ArrayLike,
        axis_b: ArrayLike,
        locked: tuple[int, ...],
        options: dict[str, float],
    ) -> str:
        x, y = three(f"joint {name!r}: first axis", axis_a), three(f"joint {name!r}: second axis", axis_b)
        if not abs(x @ y) <= 1e-6 * np.linalg.norm(x) * np.linalg.norm(y):
            raise WorldError(f"joint {name!r}: its two axes must be perpendicular to each other")
        return self.joint(
            name, a, b, at=at, axis=np.cross(x, y), reference=x, locked=locked, turning=Turning.TWO_FREE, **options
        )

    def distance(
        self, name: str, a: str | None, b: str | None, *, at_a: ArrayLike, at_b: ArrayLike, **options: float
    ) -> str:
        """Two points stay as far apart as they are: a rod without mass."""
        return self.joint(
            name,
            a,
            b,
            at=at_a,
            at_b=at_b,
            length=distance_between(name, at_a, at_b),
            locked=(DISTANCE,),
            turning=Turning.ALL_FREE,
            **options,
        )

    def double_hinge(
        self,
        name: str,
        a: str | None,
        b: str | None,
        *,
        at_a: ArrayLike,
        at_b: ArrayLike,
        axis: ArrayLike,
        **options: float,
    ) -> str:
        """Two parallel hinges, one in each body, as far apart as they are: a link without mass between them."""
        way = three(f"joint {name!r}: at_b", at_b) - three(f"joint {name!r}: at_a", at_a)
        z = three(f"joint {name!r}: axis", axis)
        if abs(way @ z) > 1e-6 * np.linalg.norm(way) * np.linalg.norm(z):
            raise WorldError(f"joint {name!r}: at_a and at_b must lie perpendicular to the axis")
        return self.joint(
            name,
            a,
            b,
            at=at_a,
            at_b=at_b,
            axis=axis,
            length=distance_between(name, at_a, at_b),
            locked=(2, 3, 4, DISTANCE),
            turning=Turning.ONE_FREE,
            **options,
        )

    def _free_axis(self, who: str, name: str, axis: int) -> None:
        """Refuse an axis that the joint does not leave free, or a joint that is not there."""
        if name not in self.joints:
            raise WorldError(f"{who}: no joint {name!r}: {nearest(name, list(self.joints))}")
        joint = self.joints[name]
        turning = {TURN: Turning.ONE_FREE, TURN_A: Turning.TWO_FREE, TURN_B: Turning.TWO_FREE}.get(axis)
        if axis >= ABOUT:
            turning = Turning.ALL_FREE
        if (axis < 3 and axis in joint.locked) or (turning is not None and joint.turning != turning):
            raise WorldError(f"{who}: joint {name!r} leaves no such axis free")


def axis_code(axis: Axis) -> int:
    """The number of an axis by its name: a slide, a turn, or a turn about one of three free axes."""
    known = {"x": 0, "y": 1, "z": 2, "turn": TURN, "turn_a": TURN_A, "turn_b": TURN_B}
    known |= {"about_x": ABOUT, "about_y": ABOUT + 1, "about_z": ABOUT + 2}
    if axis not in known:
        raise WorldError(f"axis {axis!r} is not known: {nearest(axis, list(known))}")
    return known[axis]
