"""Actuators of a world: motors, servos, guides, limits, friction, springs and hydraulic cylinders."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hilnode.core.signals import nearest
from plant.codes import Bound, Turning
from plant.constraint.cylinder_linkage import NO_LINKAGE, CylinderLinkage, linkage_of
from plant.constraint.joint_coordinate import ABOUT
from plant.world.checks import Vector, WorldError, distance_between, three
from plant.world.joints import RIGID, Axis, WithJoints, axis_code
from plant.world.rotations import rotated


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
    linkage: CylinderLinkage = NO_LINKAGE  # on a hinge
    closed: float = 0.0  # [m] from pin to pin with the piston in, on a hinge


@dataclass(kw_only=True)
class WithActuators(WithJoints):
    """The part of a World that holds what drives, springs and bounds the free axes of joints."""

    actuators: dict[str, Actuator] = field(default_factory=dict)
    springs: dict[str, Spring] = field(default_factory=dict)
    cylinders: dict[str, Cylinder] = field(default_factory=dict)

    def motor(self, name: str, joint: str, *, axis: Axis = "turn", speed: float = 0.0, force: float = math.inf) -> str:
        """Drive a free axis at `speed` [m/s, rad/s] with at most `force` [N, N m]."""
        return self._actuate(Actuator(name, joint, axis_code(axis), Bound.MOTOR, speed=speed, low=-force, high=force))

    def servo(
        self, name: str, joint: str, *, axis: Axis = "turn", position: float, gain: float, force: float = math.inf
    ) -> str:
        """Drive a free axis to `position` [m, rad] at `gain` times the distance per second, with at most `force`."""
        return self._actuate(
            Actuator(name, joint, axis_code(axis), Bound.MOTOR, position=position, gain=gain, low=-force, high=force)
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
            name, joint, axis_code(axis), Bound.GUIDE, speed=speed, position=position, acceleration=acceleration
        )
        return self._actuate(made)

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
                    axis_code(axis),
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
        return self._actuate(Actuator(name, joint, axis_code(axis), Bound.FRICTION, low=-force, high=force))

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
                axis_code(axis),
                Bound.SPRING,
                position=rest,
                stiffness=stiffness,
                damping_time=damping / stiffness,
            )
        )

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
        far = distance_between(name, at_a, at_b)
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
            three(f"spring {name!r}: at_a", at_a),
            three(f"spring {name!r}: at_b", at_b),
            far if rest is None else rest,
            stiffness,
            damping,
            -math.inf,
            0.0 if pull_only else math.inf,
            made,
        )
        return name

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
        linkage = NO_LINKAGE
        if pins is not None:
            if joint not in self.joints:
                raise WorldError(f"cylinder {name!r}: no joint {joint!r}: {nearest(joint, list(self.joints))}")
            hinge = self.joints[joint]
            try:
                linkage = linkage_of(hinge.at, rotated(hinge.quat, np.array([0.0, 0.0, 1.0])), *pins)
            except ValueError as error:
                raise WorldError(f"cylinder {name!r}: {error}") from error
            if not 0 < closed <= linkage.length(0.0) <= closed + stroke:
                raise WorldError(
                    f"cylinder {name!r}: its pins are {linkage.length(0.0):.4g} m apart, which must lie between closed "
                    f"{closed} and {closed + stroke} m"
                )
        area = math.pi / 4 * bore**2
        self._actuate(Actuator(name, joint, axis_code("z" if pins is None else "turn"), Bound.HYDRAULIC))
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
            linkage=linkage,
            closed=closed,
        )
        return name

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
        bounds = [*three(f"{name!r}: force", force), *three(f"{name!r}: torque", torque)]
        for axis_name, bound in zip(("x", "y", "z", "about_x", "about_y", "about_z"), bounds, strict=True):
            if bound:
                self.motor(f"{name}.{axis_name}", name, axis=axis_name, force=bound)  # type: ignore[arg-type]
        return name

    def _actuate(self, actuator: Actuator) -> str:
        self._new(actuator.name, self.actuators, "actuator")
        self._free_axis(repr(actuator.name), actuator.joint, actuator.axis)
        if actuator.axis >= ABOUT and (actuator.kind != Bound.MOTOR or actuator.gain > 0):
            raise WorldError(f"{actuator.name!r}: a turn about one of three free axes has a speed but no angle")
        if not actuator.low <= 0 <= actuator.high:
            raise WorldError(f"{actuator.name!r}: its force {actuator.high} must not be negative")
        self.actuators[actuator.name] = actuator
        return actuator.name
