"""The World: bodies, joints and materials by name, in SI units, until `compile()` turns them into arrays.

    world = World()
    arm = world.body("arm", mass=10, inertia=(1, 1, 0.1), pos=(0, 0, 1))
    world.hinge("shoulder", None, arm, at=(0, 0, 1.5), axis=(0, 1, 0))
    engine = world.compile(dt=0.001)

Joints are data over one six-axis joint: a frame fixed in each of two bodies, and which of the six axes are
locked. The first body may be None: the ground. The joint's z axis is the one that a hinge turns about and a
slider slides along.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilnode.signals import nearest
from plant.model import Bound, Turning

if TYPE_CHECKING:
    from plant.compile import Engine

Vector = NDArray[np.float64]
Axis = Literal["x", "y", "z", "turn"]

RIGID = 1e11
"""[N/m, N m/rad] stiffness of a locked axis when none is given: no machine part is stiffer."""


class WorldError(ValueError):
    """A world that cannot be; the message names what is wrong with what."""


@dataclass
class Body:
    """A rigid body. `pos` and `quat` place its frame; the centre of mass lies at `com` in that frame."""

    name: str
    mass: float
    inertia: Vector  # [3, 3] about the centre of mass, body axes
    pos: Vector
    quat: Vector
    com: Vector
    vel: Vector
    spin: Vector
    kind: Literal["dynamic", "kinematic", "static"]


@dataclass
class Actuator:
    """A motor, a limit or friction on a free axis of a joint."""

    name: str
    joint: str
    axis: int
    kind: Bound
    side: float = 1.0
    speed: float = 0.0
    position: float = 0.0
    gain: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    stiffness: float = RIGID
    damping_time: float | None = None


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


@dataclass(frozen=True)
class Material:
    """What happens where two materials touch."""

    friction: float = 0.5
    stiffness: float = 1e8  # [N/m]
    damping_time: float | None = None  # [s] damping over stiffness; None = two steps
    adhesion: float = 0.0  # [N]
    slip: float = 0.0  # [m/s per N] viscous creep of the friction


@dataclass
class World:
    """A machine and its surroundings, described."""

    gravity: Sequence[float] = (0.0, 0.0, -9.80665)
    visible: float = 4e-6  # [m] gap in a joint that is closed at once
    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    actuators: dict[str, Actuator] = field(default_factory=dict)
    spheres: list[tuple[str, Vector, float, str]] = field(default_factory=list)
    planes: list[tuple[Vector, float, str]] = field(default_factory=list)
    materials: dict[tuple[str, str], Material] = field(default_factory=dict)

    def body(
        self,
        name: str,
        *,
        mass: float = 1.0,
        inertia: ArrayLike = (1.0, 1.0, 1.0),
        pos: ArrayLike = (0, 0, 0),
        quat: ArrayLike = (1, 0, 0, 0),
        com: ArrayLike = (0, 0, 0),
        vel: ArrayLike = (0, 0, 0),
        spin: ArrayLike = (0, 0, 0),
        kind: Literal["dynamic", "kinematic", "static"] = "dynamic",
    ) -> str:
        """Add a body; `inertia` is three principal moments or a 3 x 3 tensor about the centre of mass [kg m^2]."""
        self._new(name, self.bodies, "body")
        tensor = np.array(inertia, float)
        tensor = np.diag(tensor) if tensor.shape == (3,) else tensor
        if tensor.shape != (3, 3):
            raise WorldError(f"body {name!r}: inertia must be three moments or a 3 x 3 tensor, not {tensor.shape}")
        turned = np.array(quat, float)
        size = float(np.linalg.norm(turned))
        if not size > 0:
            raise WorldError(f"body {name!r}: quat {tuple(turned)} is no rotation")
        where = f"body {name!r}"
        self.bodies[name] = Body(
            name,
            float(mass),
            tensor,
            _three(f"{where}: pos", pos),
            turned / size,
            _three(f"{where}: com", com),
            _three(f"{where}: vel", vel),
            _three(f"{where}: spin", spin),
            kind,
        )
        return name

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
    ) -> str:
        """The six-axis joint at the world point `at`, its z along `axis` and its x near `reference`."""
        self._new(name, self.joints, "joint")
        for body in (a, b):
            if body is not None and body not in self.bodies:
                raise WorldError(f"joint {name!r}: no body {body!r}: {nearest(body, list(self.bodies))}")
        if a is None and b is None:
            raise WorldError(f"joint {name!r} connects the ground with itself: name a body")
        if a == b:
            raise WorldError(f"joint {name!r} connects body {a!r} with itself")
        if not 0 < stiffness < math.inf:
            raise WorldError(
                f"joint {name!r}: stiffness {stiffness} must be positive and finite; a rigid one has {RIGID:g}"
            )
        if damping_time is not None and not 0 <= damping_time < math.inf:
            raise WorldError(f"joint {name!r}: damping_time {damping_time} s must not be negative")
        quat = frame_along(name, np.array(axis, float), None if reference is None else np.array(reference, float))
        where = _three(f"joint {name!r}: at", at)
        other = None if at_b is None else _three(f"joint {name!r}: at_b", at_b)
        self.joints[name] = Joint(name, a, b, where, quat, locked, turning, stiffness, damping_time, other)
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
        """Slides in a plane square to the axis and turns about it."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(2, 3, 4), turning=Turning.ONE_FREE, **options)

    def point_line(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis: ArrayLike, **options: float
    ) -> str:
        """A point of b stays on a line of a; all turns are free."""
        return self.joint(name, a, b, at=at, axis=axis, locked=(0, 1), turning=Turning.ALL_FREE, **options)

    def universal(
        self, name: str, a: str | None, b: str | None, *, at: ArrayLike, axis_a: ArrayLike, axis_b: ArrayLike
    ) -> str:
        """Turns about an axis of a and a square one of b."""
        x, y = _three(f"joint {name!r}: axis_a", axis_a), _three(f"joint {name!r}: axis_b", axis_b)
        if not abs(x @ y) <= 1e-6 * np.linalg.norm(x) * np.linalg.norm(y):
            raise WorldError(f"joint {name!r}: the axes of a universal joint must be square to each other")
        return self.joint(
            name, a, b, at=at, axis=np.cross(x, y), reference=x, locked=(0, 1, 2, 3), turning=Turning.TWO_FREE
        )

    def sphere(
        self, body: str, *, centre: ArrayLike = (0, 0, 0), radius: float = 0.0, material: str = "default"
    ) -> None:
        """A sphere that collides, at `centre` in the body's frame; radius 0 is a point."""
        if body not in self.bodies:
            raise WorldError(f"sphere: no body {body!r}: {nearest(body, list(self.bodies))}")
        if not radius >= 0:
            raise WorldError(f"sphere on body {body!r}: radius {radius} must not be negative")
        self.spheres.append((body, _three(f"sphere on body {body!r}: centre", centre), float(radius), material))

    def plane(self, *, normal: ArrayLike = (0, 0, 1), offset: float = 0.0, material: str = "default") -> None:
        """A plane of the ground: points x with normal . x = offset; solid on the side away from the normal."""
        n = _three("plane: normal", normal)
        size = float(np.linalg.norm(n))
        if not size > 0 or not math.isfinite(offset):
            raise WorldError(f"plane: normal {tuple(n)} needs a direction, offset {offset} must be finite")
        self.planes.append((n / size, offset / size, material))

    def material(self, one: str, other: str, **properties: float) -> None:
        """Properties of the contact between two materials."""
        made = Material(**properties)
        if not (made.friction >= 0 and 0 < made.stiffness < math.inf and made.adhesion >= 0 and made.slip >= 0):
            raise WorldError(
                f"material {one!r} on {other!r}: friction, adhesion, slip must be >= 0 and stiffness > 0: {made}"
            )
        self.materials[one, other] = self.materials[other, one] = made

    def motor(self, name: str, joint: str, *, axis: Axis = "turn", speed: float = 0.0, force: float = math.inf) -> str:
        """Drive a free axis at `speed` [m/s, rad/s] with at most `force` [N, N m]."""
        return self._actuate(Actuator(name, joint, _axis(axis), Bound.MOTOR, speed=speed, low=-force, high=force))

    def servo(
        self, name: str, joint: str, *, axis: Axis = "turn", position: float, gain: float, force: float = math.inf
    ) -> str:
        """Drive a free axis to `position` [m, rad] at `gain` times the distance per second, with at most `force`."""
        return self._actuate(
            Actuator(name, joint, _axis(axis), Bound.MOTOR, position=position, gain=gain, low=-force, high=force)
        )

    def limit(self, name: str, joint: str, *, axis: Axis = "turn", low: float, high: float) -> None:
        """Keep a free axis between `low` and `high` [m, rad]."""
        if not low < high:
            raise WorldError(f"limit {name!r} on joint {joint!r}: low {low} must lie below high {high}")
        self._actuate(Actuator(f"{name}.low", joint, _axis(axis), Bound.LIMIT, 1.0, position=low, low=0.0))
        self._actuate(Actuator(f"{name}.high", joint, _axis(axis), Bound.LIMIT, -1.0, position=high, low=0.0))

    def friction(self, name: str, joint: str, *, axis: Axis = "turn", force: float) -> str:
        """Dry friction of at most `force` [N, N m] in a free axis."""
        return self._actuate(Actuator(name, joint, _axis(axis), Bound.FRICTION, low=-force, high=force))

    def _actuate(self, actuator: Actuator) -> str:
        self._new(actuator.name, self.actuators, "actuator")
        if actuator.joint not in self.joints:
            hint = nearest(actuator.joint, list(self.joints))
            raise WorldError(f"{actuator.name!r}: no joint {actuator.joint!r}: {hint}")
        joint = self.joints[actuator.joint]
        if actuator.axis in joint.locked or (actuator.axis == 5 and joint.turning != Turning.ONE_FREE):
            raise WorldError(f"{actuator.name!r}: joint {joint.name!r} leaves no such axis free")
        if not actuator.low <= 0 <= actuator.high:
            raise WorldError(f"{actuator.name!r}: its force {actuator.high} must not be negative")
        self.actuators[actuator.name] = actuator
        return actuator.name

    def compile(self, dt: float, *, contacts: int = 64) -> Engine:
        """Arrays for steps of `dt` seconds, with room for so many contacts; refuses what cannot be, with names."""
        from plant.compile import compile_world  # it builds on this file

        return compile_world(self, dt, contacts=contacts)

    def _new(self, name: str, table: Mapping[str, object], what: str) -> None:
        if name in table:
            raise WorldError(f"two {what}s are called {name!r}")


def _axis(axis: Axis) -> int:
    known = {"x": 0, "y": 1, "z": 2, "turn": 5}
    if axis not in known:
        raise WorldError(f"axis {axis!r} is not known: {nearest(axis, list(known))}")
    return known[axis]


def _three(what: str, given: ArrayLike) -> Vector:
    """Three finite numbers."""
    v = np.array(given, float)
    if v.shape != (3,) or not np.isfinite(v).all():
        raise WorldError(f"{what} = {given!r}: must be three finite numbers")
    return v


def frame_along(name: str, z: Vector, x: Vector | None) -> Vector:
    """Quaternion of the frame whose z points along `z` and whose x is as near to `x` as can be."""
    size = float(np.linalg.norm(z))
    if not size > 0:
        raise WorldError(f"joint {name!r}: its axis has no direction")
    z = z / size
    if x is None:
        x = np.array([1.0, 0, 0]) if abs(z[0]) < 0.9 else np.array([0, 1.0, 0])
    x = x - z * (x @ z)
    if not np.linalg.norm(x) > 1e-9:
        raise WorldError(f"joint {name!r}: its reference direction lies along its axis")
    x = x / np.linalg.norm(x)
    r = np.column_stack([x, np.cross(z, x), z])
    return quaternion(r)


def quaternion(r: Vector) -> Vector:
    """Unit quaternion w x y z of a rotation matrix."""
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0, 0, 0],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], 0, 0],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], 0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    values, vectors = np.linalg.eigh(k / 3.0)
    q = vectors[[3, 0, 1, 2], np.argmax(values)]
    return q if q[0] >= 0 else -q


def rotated(q: Vector, v: Vector) -> Vector:
    """`v` turned by `q`."""
    u = q[1:]
    t = 2.0 * np.cross(u, v)
    return v + q[0] * t + np.cross(u, t)


def conjugate(q: Vector) -> Vector:
    """The rotation back."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def product(a: Vector, b: Vector) -> Vector:
    """Quaternion product."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])
