"""Bodies of a world and the shapes that they collide with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hilnode.core.signals import nearest
from plant.collision.scene import EVERYTHING
from plant.collision.shape.shapes import Plane, Shape, Sphere
from plant.world.checks import Vector, WorldError, three
from plant.world.rotations import frame_along


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


@dataclass(kw_only=True)
class WithBodies:
    """The part of a World that holds bodies and shapes."""

    bodies: dict[str, Body] = field(default_factory=dict)
    shapes: list[Placed] = field(default_factory=list)

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
            three(f"{where}: pos", pos),
            turned / size,
            three(f"{where}: com", com),
            three(f"{where}: vel", vel),
            three(f"{where}: spin", spin),
            kind,
        )
        return name

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
        where = three(f"shape on {body!r}: at", at)
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
        n = three("plane: normal", normal)
        size = float(np.linalg.norm(n))
        if not size > 0 or not math.isfinite(offset):
            raise WorldError(f"plane: normal {tuple(n)} needs a direction, offset {offset} must be finite")
        quat = frame_along("plane", n, None)
        self.shape(None, Plane(), at=n / size * (offset / size), quat=quat, material=material)

    def _two_bodies(self, who: str, a: str | None, b: str | None) -> None:
        """Refuse bodies that are not there, or one and the same."""
        for body in (a, b):
            if body is not None and body not in self.bodies:
                raise WorldError(f"{who}: no body {body!r}: {nearest(body, list(self.bodies))}")
        if a is None and b is None:
            raise WorldError(f"{who} connects the ground with itself: name a body")
        if a == b:
            raise WorldError(f"{who} connects body {a!r} with itself")

    def _new(self, name: str, table: Mapping[str, object], what: str) -> None:
        if name in table:
            raise WorldError(f"two {what}s are called {name!r}")
