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
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilnode.signals import nearest
from plant.collide.scene import EVERYTHING
from plant.collide.shapes import Plane, Shape, Sphere
from plant.crank import NO_CRANK, Crank, crank_of
from plant.model import DISTANCE, Bound, Turning
from plant.smooth.material import LAWS, NO_LAW, ForceLaw, LawError, force_law

if TYPE_CHECKING:
    from plant.compile import Engine

Vector = NDArray[np.float64]
Axis = Literal["x", "y", "z", "turn", "turn_a", "turn_b", "about_x", "about_y", "about_z"]

RIGID = math.inf
"""[N/m, N m/rad] stiffness of a locked axis when none is given: it gives way by rounding alone."""


ABOUT = 8  # first of the three axis codes of a turn that has a speed but no angle


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
    """A motor, a limit, friction or a spring on a free axis of a joint."""

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
    restitution: float = 0.0
    acceleration: float = 0.0


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


@dataclass
class Coupling:
    """Free coordinates of joints in a fixed ratio: the sum of ratio x coordinate stays what it was."""

    name: str
    terms: tuple[tuple[str, int, float], ...]  # joint, axis, ratio


@dataclass
class Spring:
    """A spring and damper between two points."""

    name: str
    a: str | None
    b: str | None
    at_a: Vector
    at_b: Vector
    rest: float
    stiffness: float
    damping: float
    low: float
    high: float
    table: tuple[Vector, Vector] | None


@dataclass(frozen=True)
class Cylinder:
    """A hydraulic cylinder with pressures; see `hydraulics` for what the numbers do."""

    name: str
    area_a: float  # [m^2] of the piston
    area_b: float  # [m^2] around the rod
    stroke: float  # [m]
    dead: float  # [m^3]
    bulk: float  # [Pa]
    supply: float  # [Pa]
    tank: float  # [Pa]
    relief: float  # [Pa]
    relief_gain: float  # [m^3/(s Pa)]
    valve_gain: float  # [m^3/(s sqrt(Pa))]
    laminar: float  # [Pa]
    pressure: tuple[float, float]  # [Pa] at the start
    crank: Crank = NO_CRANK  # on a hinge
    closed: float = 0.0  # [m] from pin to pin with the piston in, on a hinge


@dataclass(frozen=True)
class Placed:
    """A shape on a body, or on the ground."""

    body: str | None
    shape: Shape
    at: Vector
    quat: Vector
    material: str
    group: int
    mask: int


@dataclass(frozen=True)
class Material:
    """What happens where two materials touch."""

    friction: float = 0.5  # dynamic
    stiction: float | None = None  # static; None = as dynamic
    restitution: float = 0.0
    stiffness: float = 1e8  # [N/m]
    damping_time: float | None = None  # [s] damping over stiffness; None = two steps
    adhesion: float = 0.0  # [N]
    slip: float = 0.0  # [m/s per N] viscous creep of the friction
    law: ForceLaw = NO_LAW  # force law of smooth contacts


@dataclass
class World:
    """A machine and its surroundings, described."""

    gravity: Sequence[float] = (0.0, 0.0, -9.80665)
    visible: float = 4e-6  # [m] gap in a joint that is closed at once
    margin: float = 2e-3  # [m] contacts are listed across a gap smaller than this
    slow: float = 1e-4  # [m/s] a contact that slips more slowly sticks
    quiet: float | None = None  # [m/s] slower approaches do not bounce; None = four steps of free fall
    sleep_after: float = 0.0  # [s] islands at rest for so long are left alone until something comes; 0 = never
    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    actuators: dict[str, Actuator] = field(default_factory=dict)
    couplings: dict[str, Coupling] = field(default_factory=dict)
    springs: dict[str, Spring] = field(default_factory=dict)
    cylinders: dict[str, Cylinder] = field(default_factory=dict)
    fields: list[Any] = field(default_factory=list)
    shapes: list[Placed] = field(default_factory=list)
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
        where = _three(f"joint {name!r}: at", at)
        other = None if at_b is None else _three(f"joint {name!r}: at_b", at_b)
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
        """Slides in a plane square to the axis and turns about it."""
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
        """Turns about an axis of a (`turn_a`) and a square one of b (`turn_b`)."""
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
        x, y = _three(f"joint {name!r}: first axis", axis_a), _three(f"joint {name!r}: second axis", axis_b)
        if not abs(x @ y) <= 1e-6 * np.linalg.norm(x) * np.linalg.norm(y):
            raise WorldError(f"joint {name!r}: its two axes must be square to each other")
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
            length=_apart(name, at_a, at_b),
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
        way = _three(f"joint {name!r}: at_b", at_b) - _three(f"joint {name!r}: at_a", at_a)
        z = _three(f"joint {name!r}: axis", axis)
        if abs(way @ z) > 1e-6 * np.linalg.norm(way) * np.linalg.norm(z):
            raise WorldError(f"joint {name!r}: at_a and at_b must lie square to the axis")
        return self.joint(
            name,
            a,
            b,
            at=at_a,
            at_b=at_b,
            axis=axis,
            length=_apart(name, at_a, at_b),
            locked=(2, 3, 4, DISTANCE),
            turning=Turning.ONE_FREE,
            **options,
        )

    def force_constraint(
        self,
        name: str,
        a: str | None,
        b: str | None,
        *,
        at: ArrayLike,
        axis: ArrayLike = (0, 0, 1),
        force: ArrayLike = (0, 0, 0),
        torque: ArrayLike = (0, 0, 0),
    ) -> str:
        """Six bounded forces between two bodies: each axis is held against moving with at most so much [N, N m].

        Axes with a bound of zero are free. The speeds that the axes are held at, and the bounds, are those of motors
        called `<name>.x` to `<name>.about_z`, and may be changed while running.
        """
        self.joint(name, a, b, at=at, axis=axis, locked=(), turning=Turning.ALL_FREE)
        bounds = [*_three(f"{name!r}: force", force), *_three(f"{name!r}: torque", torque)]
        for axis_name, bound in zip(("x", "y", "z", "about_x", "about_y", "about_z"), bounds, strict=True):
            if bound:
                self.motor(f"{name}.{axis_name}", name, axis=axis_name, force=bound)  # type: ignore[arg-type]
        return name

    def gear(self, name: str, first: str, second: str, *, ratio: float) -> str:
        """Two hinges turn together: the first by `ratio` times the second (Vortex eq. 43); negative = other way."""
        return self.couple(name, (first, "turn", 1.0), (second, "turn", -ratio))

    def rack(self, name: str, slider: str, pinion: str, *, radius: float) -> str:
        """A slider moves by `radius` [m] for each radian of a hinge."""
        return self.couple(name, (slider, "z", 1.0), (pinion, "turn", -radius))

    def screw(self, name: str, joint: str, *, lead: float) -> str:
        """A cylindrical joint slides by `lead` [m] for each revolution."""
        return self.couple(name, (joint, "z", 1.0), (joint, "turn", -lead / (2 * math.pi)))

    def differential(self, name: str, shaft: str, left: str, right: str) -> str:
        """The shaft's hinge turns by the mean of the other two (Vortex eq. 47, open differential)."""
        return self.couple(name, (shaft, "turn", 1.0), (left, "turn", -0.5), (right, "turn", -0.5))

    def couple(self, name: str, *terms: tuple[str, Axis, float]) -> str:
        """The sum of ratio x coordinate over two or three (joint, axis, ratio) stays what it is at compile."""
        self._new(name, self.couplings, "coupling")
        if not 2 <= len(terms) <= 3:
            raise WorldError(f"coupling {name!r}: two or three coordinates, not {len(terms)}")
        made = []
        for joint, axis, ratio in terms:
            self._free_axis(f"coupling {name!r}", joint, _axis(axis))
            if not (math.isfinite(ratio) and ratio != 0):
                raise WorldError(f"coupling {name!r}: ratio {ratio} of joint {joint!r} must be finite and not zero")
            made.append((joint, _axis(axis), float(ratio)))
        self.couplings[name] = Coupling(name, tuple(made))
        return name

    def spring(
        self,
        name: str,
        a: str | None,
        b: str | None,
        *,
        at_a: ArrayLike,
        at_b: ArrayLike,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: float | None = None,
        pull_only: bool = False,
        table: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> str:
        """A spring [N/m] and damper [N s/m] between two world points; `rest` [m] is their distance if not given.

        `table` = (stretches [m], pulls [N]) replaces the stiffness: rising stretches, linear between them.
        """
        self._new(name, self.springs, "spring")
        self._two_bodies(f"spring {name!r}", a, b)
        far = _apart(name, at_a, at_b)
        if not (0 <= stiffness < math.inf and 0 <= damping < math.inf):
            raise WorldError(f"spring {name!r}: stiffness {stiffness} and damping {damping} must not be negative")
        made = None
        if table is not None:
            made = np.array(table[0], float), np.array(table[1], float)
            if (
                made[0].ndim != 1
                or made[0].shape != made[1].shape
                or made[0].size < 2
                or not (np.diff(made[0]) > 0).all()
            ):
                raise WorldError(f"spring {name!r}: table needs as many pulls as stretches, two or more, rising")
        elif stiffness == 0 and damping == 0:
            raise WorldError(f"spring {name!r}: give a stiffness, a damping or a table")
        self.springs[name] = Spring(
            name,
            a,
            b,
            _three(f"spring {name!r}: at_a", at_a),
            _three(f"spring {name!r}: at_b", at_b),
            far if rest is None else rest,
            stiffness,
            damping,
            -math.inf,
            0.0 if pull_only else math.inf,
            made,
        )
        return name

    def spring_on(
        self, name: str, joint: str, *, axis: Axis = "turn", stiffness: float, damping: float = 0.0, rest: float = 0.0
    ) -> str:
        """A spring [N/m, N m/rad] and damper on a free axis of a joint, at rest at `rest` [m, rad]."""
        if not (0 < stiffness < math.inf and 0 <= damping < math.inf):
            raise WorldError(f"spring {name!r}: stiffness {stiffness} must be positive, damping {damping} not negative")
        return self._actuate(
            Actuator(
                name,
                joint,
                _axis(axis),
                Bound.SPRING,
                position=rest,
                stiffness=stiffness,
                damping_time=damping / stiffness,
            )
        )

    def shape(
        self,
        body: str | None,
        shape: Shape,
        *,
        at: ArrayLike = (0, 0, 0),
        quat: ArrayLike = (1, 0, 0, 0),
        material: str = "default",
        group: int = 1,
        mask: int = EVERYTHING,
    ) -> None:
        """A shape that collides, placed in the body's frame; several make a compound. None is the ground.

        Two shapes meet if each is in the other's mask: `group` and `mask` are bits. Bodies that share a joint never do;
        one that is joined to the ground still meets it, as a wheel on a guided axle does. A mesh on a body that moves
        by itself must be closed.
        """
        if body is not None and body not in self.bodies:
            raise WorldError(f"shape: no body {body!r}: {nearest(body, list(self.bodies))}")
        turned = np.array(quat, float)
        if turned.shape != (4,) or not np.linalg.norm(turned) > 0:
            raise WorldError(f"shape on {body!r}: quat {tuple(turned)} is no rotation")
        where = _three(f"shape on {body!r}: at", at)
        turned = turned / np.linalg.norm(turned)
        self.shapes.append(Placed(body, shape, where, turned, material, group, mask))

    def solid(self, name: str, shape: Shape, *, density: float, material: str = "default", **state: Any) -> str:
        """A body of one shape, its mass and inertia from the shape and a density [kg/m^3]."""
        mass, centre, inertia = shape.mass_properties(density)
        self.body(name, mass=mass, inertia=inertia, com=centre, **state)
        self.shape(name, shape, material=material)
        return name

    def sphere(self, body: str, *, centre: ArrayLike = (0, 0, 0), radius: float, material: str = "default") -> None:
        """A sphere that collides, at `centre` in the body's frame."""
        try:
            ball = Sphere(radius)
        except ValueError as error:
            raise WorldError(f"sphere on body {body!r}: {error}") from error
        self.shape(body, ball, at=centre, material=material)

    def plane(self, *, normal: ArrayLike = (0, 0, 1), offset: float = 0.0, material: str = "default") -> None:
        """A plane of the ground: points x with normal . x = offset; solid on the side away from the normal."""
        n = _three("plane: normal", normal)
        size = float(np.linalg.norm(n))
        if not size > 0 or not math.isfinite(offset):
            raise WorldError(f"plane: normal {tuple(n)} needs a direction, offset {offset} must be finite")
        quat = frame_along("plane", n, None)
        self.shape(None, Plane(), at=n / size * (offset / size), quat=quat, material=material)

    def material(self, one: str, other: str, *, law: str = "rigid", **properties: Any) -> None:
        """Properties of the contact between two materials: `friction` and `stiction` (dynamic and static coefficient),
        `restitution`, `adhesion` [N], and what belongs to the law.

        rigid                 no force law, but bounded rows: stiffness [N/m], damping_time [s], slip [m/s per N]
        hunt_crossley         F = k d^n (1 + b r / r0): stiffness k [N/m^n], exponent n (1.5), hysteresis b (from the
        lankarani_nikravesh   restitution: both laws have it near 1; `smooth.laws.exact_hysteresis` gives it for all)
        kelvin_voigt          F = k d + c r: stiffness [N/m], damping [N s/m] (from the restitution)
        smc                   Hertz and Mindlin with history: stiffness [N/m^1.5], shear_stiffness [N/m^1.5] (Mindlin's)
        wang                  F = k d^n (1 + 3/2 a r) + c r: stiffness, exponent n (1), dissipation a [s/m] (1 -
                              restitution: as at 1 m/s), damping c [N s/m], shear_stiffness [N/m], shear_damping [N s/m]
        foundation            an elastic layer that the whole overlap of the shapes presses on, a column of length z
                              with the pressure E / h z (1 + a r): modulus E [Pa] and layer h [m] (of both bodies
                              together, or one for each), dissipation a [s/m] (0.5), friction, slow [m/s] (0.001:
                              below it friction fades with the slip, so that bodies on a slope creep). It resists
                              rolling and spinning too. For spheres, capsules, boxes, cylinders, cones and hulls, on
                              each other and on planes, meshes and fields

        with depth d, rate r of approach, first rate r0. Instead of a stiffness, for Hertz's exponent 1.5: `young` [Pa]
        and `poisson` (one for both, or one for each), `radius` [m] of a sphere on a plane or of two spheres. The force
        laws take `viscous` friction [N s/m]; the first three stick by bristles: bristle_stiffness [N/m],
        bristle_damping [N s/m], stick_speed [m/s], by default from load, mass and step, and strain (share of the
        greatest stretch that is left when they give way; by default what the damper leaves of it). A contact should
        last ten steps or more, pi sqrt(m / k) if it is linear. The dissipation of wang and of the foundation goes with
        the load and hardly damps a body at rest: give wang a damping too.
        """
        if law != "rigid":
            try:
                smooth = force_law(law, properties)
            except LawError as error:
                raise WorldError(f"material {one!r} on {other!r}: {error}") from error
            properties = {"friction": smooth.friction, "stiction": smooth.stiction, "law": smooth}
        if strange := sorted(set(properties) - {f.name for f in fields(Material)}):
            known = ", ".join(f.name for f in fields(Material) if f.name != "law")
            raise WorldError(
                f"material {one!r} on {other!r}: no {', '.join(strange)} without a force law; known are {known}, "
                f"and law: {', '.join(LAWS)}"
            )
        made = Material(**properties)
        if not (
            made.friction >= 0
            and (made.stiction is None or made.stiction >= made.friction)
            and 0 <= made.restitution <= 1
            and 0 < made.stiffness < math.inf
            and made.adhesion >= 0
            and made.slip >= 0
        ):
            raise WorldError(
                f"material {one!r} on {other!r}: friction, adhesion, slip must be >= 0, stiction >= friction, "
                f"restitution within 0 and 1, stiffness > 0: {made}"
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

    def guide(
        self,
        name: str,
        joint: str,
        *,
        axis: Axis = "turn",
        position: float = 0.0,
        speed: float = 0.0,
        acceleration: float = 0.0,
    ) -> str:
        """Move a free axis as it is told, whatever force that takes: a rheonomic constraint of stepper 'ali3p'.

        `position` [m, rad], `speed` and `acceleration` are those of the start; the acceleration stays until
        `Engine.guide` tells others. Bodies are fitted to the position, as to any other constraint.
        """
        if not all(math.isfinite(v) for v in (position, speed, acceleration)):
            raise WorldError(f"guide {name!r}: position {position}, speed {speed}, acceleration {acceleration}: finite")
        made = Actuator(
            name, joint, _axis(axis), Bound.GUIDE, speed=speed, position=position, acceleration=acceleration
        )
        return self._actuate(made)

    def hydraulic_cylinder(
        self,
        name: str,
        joint: str,
        *,
        bore: float,
        rod: float,
        stroke: float,
        flow: float,
        supply: float = 250e5,
        relief: float = 300e5,
        pressure: tuple[float, float] = (1e5, 1e5),
        bulk: float = 1.4e9,
        tank: float = 1e5,
        line_volume: float = 1e-3,
        pins: tuple[ArrayLike, ArrayLike] | None = None,
        closed: float = 0.0,
    ) -> str:
        """A cylinder with pressures on the slide `z` of a joint, which is 0 with the piston in and `stroke` when out.

        On a hinge it turns the second body against the first: `pins` are the points of the first and of the second
        body that it stands between, `closed` [m] is its length from pin to pin with the piston in.

        Diameters of `bore` and `rod` and `stroke` [m]; `flow` [m^3/s] through the open valve at full supply pressure.
        The valve (-1 .. 1) and the supply pressure [Pa] are set while running. Give the joint a limit for the ends.
        """
        sizes = {"bore": bore, "stroke": stroke, "flow": flow, "bulk": bulk, "line_volume": line_volume}
        for what, value in sizes.items():
            if not 0 < value < math.inf:
                raise WorldError(f"cylinder {name!r}: {what} {value} must be positive")
        if not (0 <= rod < bore and 0 <= tank < supply and supply < relief and min(pressure) >= 0):
            raise WorldError(f"cylinder {name!r}: needs rod < bore, tank < supply < relief, pressures not negative")
        crank = NO_CRANK
        if pins is not None:
            if joint not in self.joints:
                raise WorldError(f"cylinder {name!r}: no joint {joint!r}: {nearest(joint, list(self.joints))}")
            hinge = self.joints[joint]
            try:
                crank = crank_of(hinge.at, rotated(hinge.quat, np.array([0.0, 0.0, 1.0])), *pins)
            except ValueError as error:
                raise WorldError(f"cylinder {name!r}: {error}") from error
            if not 0 < closed <= crank.length(0.0) <= closed + stroke:
                raise WorldError(
                    f"cylinder {name!r}: its pins are {crank.length(0.0):.4g} m apart, which must lie between closed "
                    f"{closed} and {closed + stroke} m"
                )
        area = math.pi / 4 * bore**2
        self._actuate(Actuator(name, joint, _axis("z" if pins is None else "turn"), Bound.HYDRAULIC))
        self.cylinders[name] = Cylinder(
            name,
            area_a=area,
            area_b=area - math.pi / 4 * rod**2,
            stroke=stroke,
            dead=line_volume,
            bulk=bulk,
            supply=supply,
            tank=tank,
            relief=relief,
            relief_gain=flow / (0.05 * relief),
            valve_gain=flow / math.sqrt(supply - tank),
            laminar=1e4,
            pressure=pressure,
            crank=crank,
            closed=closed,
        )
        return name

    def force_field(self, function: Any) -> None:
        """A force field: a C function that adds to the wrenches of all bodies at each step; see `plant.fields`."""
        self.fields.append(function)

    def limit(
        self,
        name: str,
        joint: str,
        *,
        axis: Axis = "turn",
        low: float,
        high: float,
        stiffness: float = RIGID,
        restitution: float = 0.0,
    ) -> None:
        """Keep a free axis between `low` and `high` [m, rad]."""
        if not low < high:
            raise WorldError(f"limit {name!r} on joint {joint!r}: low {low} must lie below high {high}")
        if not (stiffness > 0 and 0 <= restitution <= 1):
            raise WorldError(f"limit {name!r}: stiffness {stiffness} must be positive, restitution within 0 and 1")
        for end, side, place in (("low", 1.0, low), ("high", -1.0, high)):
            self._actuate(
                Actuator(
                    f"{name}.{end}",
                    joint,
                    _axis(axis),
                    Bound.LIMIT,
                    side,
                    position=place,
                    low=0.0,
                    stiffness=stiffness,
                    restitution=restitution,
                )
            )

    def friction(self, name: str, joint: str, *, axis: Axis = "turn", force: float) -> str:
        """Dry friction of at most `force` [N, N m] in a free axis."""
        return self._actuate(Actuator(name, joint, _axis(axis), Bound.FRICTION, low=-force, high=force))

    def _actuate(self, actuator: Actuator) -> str:
        self._new(actuator.name, self.actuators, "actuator")
        self._free_axis(repr(actuator.name), actuator.joint, actuator.axis)
        if actuator.axis >= ABOUT and (actuator.kind != Bound.MOTOR or actuator.gain > 0):
            raise WorldError(f"{actuator.name!r}: a turn about one of three free axes has a speed but no angle")
        if not actuator.low <= 0 <= actuator.high:
            raise WorldError(f"{actuator.name!r}: its force {actuator.high} must not be negative")
        self.actuators[actuator.name] = actuator
        return actuator.name

    def _free_axis(self, who: str, name: str, axis: int) -> None:
        """Refuse an axis that the joint does not leave free, or a joint that is not there."""
        if name not in self.joints:
            raise WorldError(f"{who}: no joint {name!r}: {nearest(name, list(self.joints))}")
        joint = self.joints[name]
        turning = {5: Turning.ONE_FREE, 6: Turning.TWO_FREE, 7: Turning.TWO_FREE}.get(axis)
        if axis >= ABOUT:
            turning = Turning.ALL_FREE
        if (axis < 3 and axis in joint.locked) or (turning is not None and joint.turning != turning):
            raise WorldError(f"{who}: joint {name!r} leaves no such axis free")

    def _two_bodies(self, who: str, a: str | None, b: str | None) -> None:
        """Refuse bodies that are not there, or one and the same."""
        for body in (a, b):
            if body is not None and body not in self.bodies:
                raise WorldError(f"{who}: no body {body!r}: {nearest(body, list(self.bodies))}")
        if a is None and b is None:
            raise WorldError(f"{who} connects the ground with itself: name a body")
        if a == b:
            raise WorldError(f"{who} connects body {a!r} with itself")

    def compile(self, dt: float, **options: Any) -> Engine:
        """Arrays for steps of `dt` seconds; refuses what cannot be, with names. Options: see `compile_world`."""
        from plant.compile import compile_world  # it builds on this file

        return compile_world(self, dt, **options)

    def _new(self, name: str, table: Mapping[str, object], what: str) -> None:
        if name in table:
            raise WorldError(f"two {what}s are called {name!r}")


def _axis(axis: Axis) -> int:
    known = {"x": 0, "y": 1, "z": 2, "turn": 5, "turn_a": 6, "turn_b": 7, "about_x": 8, "about_y": 9, "about_z": 10}
    if axis not in known:
        raise WorldError(f"axis {axis!r} is not known: {nearest(axis, list(known))}")
    return known[axis]


def _apart(name: str, a: ArrayLike, b: ArrayLike) -> float:
    """Distance of two points that must not be one."""
    far = float(np.linalg.norm(_three(f"{name!r}: at_b", b) - _three(f"{name!r}: at_a", a)))
    if not far > 0:
        raise WorldError(f"{name!r}: at_a and at_b are the same point")
    return far


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


def matrix(q: Vector) -> Vector:
    """Rotation matrix of a unit quaternion."""
    return np.column_stack([rotated(q, axis) for axis in np.eye(3)])


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
