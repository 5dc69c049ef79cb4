"""User-facing shapes: full lengths, checked on construction, with mass properties.

    Sphere(radius)                   Capsule(radius, length)          length between the centres of its round ends
    Box(x, y, z)                     Cylinder(radius, height)         Cone(radius, height)
    Hull(points)                     Mesh(vertices, triangles)        Field(heights, spacing)
    Plane()                          Torus(ring, wire)                Link(length, bend, wire)

Frames are those of `plant.collision.model`. Points of a hull or mesh may lie anywhere: `middle()` says where the origin
of the shape's frame, the middle of its box, is in their coordinates. Mass properties are in the coordinates that
the shape was given in: mass [kg], centre of mass [m], inertia about that centre [kg m^2].
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plant.collision.model import Kind
from plant.collision.shape.hull import hull_triangles
from plant.collision.shape.polyhedron import find_fault, is_closed, solid_integrals, weld

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MassProperties = tuple[float, Floats, Floats]
Sizes = tuple[float, float, float, float]
Progress = Callable[[float, str], None]


class Shape:
    """What every shape can say of itself."""

    kind: ClassVar[Kind]

    def sizes(self) -> Sizes:
        """The sizes as `Shapes.size` wants them."""
        raise NotImplementedError

    def bound(self) -> float:
        """Radius of the sphere about the frame's origin that holds the shape."""
        raise NotImplementedError

    def middle(self) -> Floats:
        """Origin of the shape's frame in the coordinates the shape was given in."""
        return np.zeros(3)

    def mass_properties(self, density: float) -> MassProperties:
        """Mass, centre of mass and inertia about it for a density [kg/m^3]."""
        _positive(self, density=density)
        volume, centre, xx = self._second_moments()
        return density * volume, centre, density * (np.trace(xx) * np.eye(3) - xx)

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        """Volume, its centre, and the integrals of x x' about the centre."""
        raise ValueError(f"a {type(self).__name__} has no mass: it is for the ground; give its body one by hand")


def _positive(shape: Shape, **values: float) -> None:
    for name, value in values.items():
        if not (isinstance(value, (int, float, np.floating, np.integer)) and 0.0 < value < math.inf):
            raise ValueError(f"{type(shape).__name__}: {name} must be a finite number above 0, not {value!r}")


def _diagonal(x: float, y: float, z: float) -> Floats:
    return np.diag([x, y, z])


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball."""

    radius: float
    kind: ClassVar[Kind] = Kind.SPHERE

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius)

    def sizes(self) -> Sizes:
        return self.radius, 0.0, 0.0, 0.0

    def bound(self) -> float:
        return self.radius

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        volume = 4.0 / 3.0 * math.pi * self.radius**3
        return volume, np.zeros(3), volume * self.radius**2 / 5.0 * np.eye(3)


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder along z with round ends; `length` is that of its core, without the ends."""

    radius: float
    length: float
    kind: ClassVar[Kind] = Kind.CAPSULE

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius, length=self.length)

    def sizes(self) -> Sizes:
        return self.radius, 0.5 * self.length, 0.0, 0.0

    def bound(self) -> float:
        return self.radius + 0.5 * self.length

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        r, long = self.radius, self.length
        tube, ball = math.pi * r * r * long, 4.0 / 3.0 * math.pi * r**3
        across = tube * r * r / 4.0 + ball * r * r / 5.0
        along = tube * long**2 / 12.0 + ball * (r * r / 5.0 + long**2 / 4.0 + 3.0 * long * r / 8.0)
        return tube + ball, np.zeros(3), _diagonal(across, across, along)


@dataclass(frozen=True)
class Box(Shape):
    """A box of full lengths x, y, z about its centre."""

    x: float
    y: float
    z: float
    kind: ClassVar[Kind] = Kind.BOX

    def __post_init__(self) -> None:
        _positive(self, x=self.x, y=self.y, z=self.z)

    def sizes(self) -> Sizes:
        return 0.5 * self.x, 0.5 * self.y, 0.5 * self.z, 0.0

    def bound(self) -> float:
        return 0.5 * math.sqrt(self.x**2 + self.y**2 + self.z**2)

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        volume = self.x * self.y * self.z
        return volume, np.zeros(3), volume / 12.0 * _diagonal(self.x**2, self.y**2, self.z**2)


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder along z about its centre."""

    radius: float
    height: float
    kind: ClassVar[Kind] = Kind.CYLINDER

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius, height=self.height)

    def sizes(self) -> Sizes:
        return self.radius, 0.5 * self.height, 0.0, 0.0

    def bound(self) -> float:
        return math.hypot(self.radius, 0.5 * self.height)

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        volume, across = math.pi * self.radius**2 * self.height, self.radius**2 / 4.0
        return volume, np.zeros(3), volume * _diagonal(across, across, self.height**2 / 12.0)


@dataclass(frozen=True)
class Cone(Shape):
    """A cone along z, its tip at half the height above the origin and its base as far below."""

    radius: float
    height: float
    kind: ClassVar[Kind] = Kind.CONE

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius, height=self.height)

    def sizes(self) -> Sizes:
        return self.radius, 0.5 * self.height, 0.0, 0.0

    def bound(self) -> float:
        return math.hypot(self.radius, 0.5 * self.height)

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        volume, across = math.pi * self.radius**2 * self.height / 3.0, 0.15 * self.radius**2
        centre = np.array([0.0, 0.0, -0.25 * self.height])
        return volume, centre, volume * _diagonal(across, across, 3.0 / 80.0 * self.height**2)


@dataclass(frozen=True)
class Plane(Shape):
    """The ground below z = 0, without end."""

    kind: ClassVar[Kind] = Kind.PLANE

    def sizes(self) -> Sizes:
        return 0.0, 0.0, 0.0, 0.0

    def bound(self) -> float:
        return math.inf


@dataclass(frozen=True)
class Torus(Shape):
    """A ring in the plane z = 0: `ring` is the radius of its centre line, `wire` that of the wire."""

    ring: float
    wire: float
    kind: ClassVar[Kind] = Kind.TORUS

    def __post_init__(self) -> None:
        _positive(self, ring=self.ring, wire=self.wire)
        _open_ring(self, "ring", self.ring, self.wire)

    def sizes(self) -> Sizes:
        return self.ring, self.wire, 0.0, 0.0

    def bound(self) -> float:
        return self.ring + self.wire

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        r, a = self.ring**2, self.wire**2
        volume = 2.0 * math.pi**2 * self.ring * a
        flat = 0.5 * r + 0.375 * a
        return volume, np.zeros(3), volume * _diagonal(flat, flat, 0.25 * a)


@dataclass(frozen=True)
class Link(Shape):
    """A chain link in the plane z = 0: two straight parts of `length` along x and half rings of radius `bend`."""

    length: float
    bend: float
    wire: float
    kind: ClassVar[Kind] = Kind.LINK

    def __post_init__(self) -> None:
        _positive(self, length=self.length, bend=self.bend, wire=self.wire)
        _open_ring(self, "bend", self.bend, self.wire)

    def sizes(self) -> Sizes:
        return 0.5 * self.length, self.bend, self.wire, 0.0

    def bound(self) -> float:
        return 0.5 * self.length + self.bend + self.wire

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        """A torus cut in half, the halves moved apart along x, and two straight wires between them."""
        long, r, a = self.length, self.bend, self.wire
        straight = 2.0 * math.pi * a * a * long
        bends, _, xx = Torus(r, a)._second_moments()
        outward = 2.0 * (r * r + 0.25 * a * a) / (math.pi * r)  # centre of half a torus from its cut
        xx[0, 0] += bends * (long * outward + 0.25 * long**2) + straight * long**2 / 12.0
        xx[1, 1] += straight * (r * r + 0.25 * a * a)
        xx[2, 2] += straight * 0.25 * a * a
        return bends + straight, np.zeros(3), xx


def _open_ring(shape: Shape, name: str, ring: float, wire: float) -> None:
    if wire >= ring:
        raise ValueError(
            f"{type(shape).__name__}: wire ({wire}) must be thinner than {name} ({ring}), or there is no hole"
        )


class _Boxed(Shape):
    """A shape whose frame has its origin in the middle of its box."""

    def corners(self) -> Floats:
        """Points whose box is that of the shape."""
        raise NotImplementedError

    def middle(self) -> Floats:
        points = self.corners()
        return 0.5 * (points.min(0) + points.max(0))

    def sizes(self) -> Sizes:
        x, y, z = 0.5 * np.ptp(self.corners(), axis=0)
        return float(x), float(y), float(z), 0.0

    def bound(self) -> float:
        return float(np.linalg.norm(self.corners() - self.middle(), axis=1).max())


@dataclass(frozen=True, eq=False)
class Hull(_Boxed):
    """The convex hull of points [n, 3]."""

    points: ArrayLike
    vertices: Floats = field(init=False, repr=False)
    triangles: Ints = field(init=False, repr=False)
    kind: ClassVar[Kind] = Kind.HULL

    def __post_init__(self) -> None:
        vertices, triangles = hull_triangles(np.array(self.points, np.float64), "Hull")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)

    def corners(self) -> Floats:
        return self.vertices

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        return solid_integrals(self.vertices, self.triangles)


@dataclass(frozen=True, eq=False)
class Mesh(_Boxed):
    """Triangles [t, 3] over vertices [v, 3], counter-clockwise seen from outside.

    A surface with open edges is taken too, for ground and walls, but has no mass. `source` is the file that it came
    from, for messages.
    """

    vertices: Floats
    triangles: Ints
    source: str = ""
    kind: ClassVar[Kind] = Kind.MESH

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, np.float64)
        triangles = np.array(self.triangles)
        for name, array in (("vertices", vertices), ("triangles", triangles)):
            if array.ndim != 2 or array.shape[1] != 3:
                raise ValueError(f"Mesh: {name} must be an array [n, 3], not of shape {list(array.shape)}")
        if triangles.dtype.kind not in "iu":
            raise ValueError(f"Mesh: triangles must be whole numbers of vertices, not {triangles.dtype}")
        triangles = triangles.astype(np.int64)
        if fault := find_fault(vertices, triangles, closed=False):
            raise ValueError(f"{self.source or 'Mesh'}: {fault}")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)

    def corners(self) -> Floats:
        return self.vertices

    def is_closed(self) -> bool:
        """Whether it has no open edge, so that it has an inside."""
        return is_closed(self.triangles)

    def fault(self, closed: bool = False) -> str:
        """What is wrong with it as it is now, as `find_fault` says it."""
        return find_fault(self.vertices, self.triangles, closed)

    def _second_moments(self) -> tuple[float, Floats, Floats]:
        if fault := self.fault(closed=True):
            raise ValueError(f"{self.source or 'Mesh'}: no mass without a closed surface: {fault}")
        return solid_integrals(self.vertices, self.triangles)


@dataclass(frozen=True, eq=False)
class Field(_Boxed):
    """Ground by heights [nx, ny] on a grid, x along the first index; `spacing` is one number or one each for x and y.

    The grid lies about z's axis: its middle is x = y = 0. Heights that change while running must stay within `low` and
    `high` [m], which are those of now if nothing is said: what lies beyond is not searched.
    """

    heights: ArrayLike
    spacing: float | tuple[float, float]
    low: float | None = None
    high: float | None = None
    kind: ClassVar[Kind] = Kind.FIELD

    def __post_init__(self) -> None:
        heights = np.array(self.heights, np.float64)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ValueError(f"Field: heights must be an array of 2 x 2 or more, not of shape {list(heights.shape)}")
        bad = np.argwhere(~np.isfinite(heights))
        if len(bad):
            raise ValueError(
                f"Field: height {bad[0].tolist()} is {heights[tuple(bad[0])]}; fill it from its neighbours"
            )
        x, y = self.spacing if isinstance(self.spacing, tuple) else (self.spacing, self.spacing)
        _positive(self, spacing=x)
        _positive(self, spacing=y)
        low = float(heights.min() if self.low is None else self.low)
        high = float(heights.max() if self.high is None else self.high)
        if not (low <= heights.min() and heights.max() <= high):
            raise ValueError(
                f"Field: its heights from {heights.min():g} to {heights.max():g} m must lie within low {low:g} "
                f"and high {high:g}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "spacing", (float(x), float(y)))

    def steps(self) -> tuple[float, float]:
        """Spacing along x and y [m]."""
        return self.spacing if isinstance(self.spacing, tuple) else (self.spacing, self.spacing)

    def corners(self) -> Floats:
        heights = np.asarray(self.heights)
        x, y = (0.5 * step * (n - 1) for step, n in zip(self.steps(), heights.shape, strict=True))
        return np.array([[a, b, c] for a in (-x, x) for b in (-y, y) for c in (self.low, self.high)], float)


def mesh_from_file(
    path: str | os.PathLike[str], progress: Progress | None = None, *, scale: float = 1.0, closed: bool = True
) -> Mesh:
    """The surface in an STL, OBJ, glTF or GLB file, parts of a scene joined where they stand.

    `scale` turns the file's unit into metres (0.001 for millimetres). `closed=False` lets a surface with open edges
    through. `progress(part, what)` is called before each stage, with the part of the work done so far.
    Raises ValueError with the file, the triangle and the fix if the surface is not sound.
    """
    try:
        import trimesh
    except ImportError as error:
        raise ImportError("reading mesh files needs trimesh: pip install hilnode[mesh]") from error
    say = progress or (lambda part, what: None)
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise FileNotFoundError(f"{name}: there is no such file")
    say(0.0, "reading")
    try:
        read = trimesh.load_scene(name, process=False).to_mesh()
    except Exception as error:  # a reader fails in its own way on each broken file
        raise ValueError(f"{name}: cannot be read as a mesh ({error}); export it as STL, OBJ or GLB") from error
    vertices, triangles = np.array(read.vertices, np.float64) * scale, np.array(read.faces, np.int64)
    if len(triangles):
        say(0.4, f"welding {len(triangles)} triangles")
        vertices, triangles = weld(vertices, triangles.reshape(-1, 3))
    say(0.7, f"checking {len(triangles)} triangles")
    if fault := find_fault(vertices, triangles, closed):
        raise ValueError(f"{name}: {fault}")
    say(0.9, "taking it over")
    mesh = Mesh(vertices, triangles, name)
    say(1.0, "done")
    return mesh
