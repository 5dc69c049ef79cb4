r"""User-facing description of a bucket: its convex hull, cutting edge, hinge and capacity.

            hinge *----______            seen from the side, in the plane across the lip
                 /            \
        mouth   /   inside     |         n: through the mouth inwards
          m    /      n ->     |         m: along the mouth, from the lip to the hinge; its length is 2r (eq. 3.26)
              /               /          edge: where the cutting plate points, the direction of excavation
        lip  *______________ /
        <- edge

The mouth is the rectangle between the lip and the line through the hinge along the lip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plant.collision.shape.hull import hull_triangles
from plant.soil.kind import SoilError, check
from plant.soil.model import Tool

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bucket:
    """A bucket in the frame of its body [m], [m^3], [rad].

    `hull` [n, 3] corners of its outside; `left`, `right` ends of the cutting edge; `hinge` a point of the line that
    closes the mouth at the other end; `inside` any point inside (the middle of the hull if nothing is said). Capacities
    are of loose soil. The tilt of the mouth is 0 when it opens upwards; `over_lip` and `over_hinge` are the tilts at
    which soil begins to leave over that side, and at which the bucket is empty. They end by default where the
    range of the discharging angle does (Luaces 4.8.1: -pi/2 to 7 pi/9).

    `lip_mass` [kg] keeps the digging force of stiff soil stable in explicit steps: it never takes more out of the
    lip's motion than this mass has. `weigh=False` leaves the weight of the load to whoever changes the body's mass.
    """

    hull: ArrayLike
    left: Sequence[float]
    right: Sequence[float]
    hinge: Sequence[float]
    struck: float
    heaped: float | None = None
    inside: Sequence[float] | None = None
    slices: int = 8
    over_lip: tuple[float, float] = (math.radians(20), math.radians(140))
    over_hinge: tuple[float, float] = (math.radians(20), math.radians(90))
    lip_mass: float = math.inf
    weigh: bool = True

    def __post_init__(self) -> None:
        check("Bucket: struck", self.struck, 1e-6, 1e4, "m^3")
        if self.heaped is not None:
            check("Bucket: heaped", self.heaped, self.struck, 1e4, "m^3")
        check("Bucket: slices", self.slices, 1, 64, "")
        if self.slices != int(self.slices):
            raise SoilError(f"Bucket: slices {self.slices!r} must be a whole number from 1 to 64")
        if not self.lip_mass > 0.0:
            raise SoilError(f"Bucket: lip_mass {self.lip_mass!r} must be above 0 kg")
        for name in ("over_lip", "over_hinge"):
            begin, end = getattr(self, name)
            check(f"Bucket: {name} begin", begin, 0.0, math.pi, "rad")
            check(f"Bucket: {name} end", end, 0.0, math.pi, "rad")
            if not end > begin:
                raise SoilError(f"Bucket: {name} must begin before it ends, not {begin:g} to {end:g} rad")
        for name in ("left", "right", "hinge", *(() if self.inside is None else ("inside",))):
            self._point(name)

    def _point(self, name: str) -> Floats:
        point = np.asarray(getattr(self, name), np.float64)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise SoilError(f"Bucket: {name} {getattr(self, name)!r} must be three finite numbers [m]")
        return point

    def constants(self, com: ArrayLike = (0.0, 0.0, 0.0)) -> Tool:
        """As hot code takes it, measured from the centre of mass `com` of its body (given in the body's frame)."""
        origin = np.asarray(com, np.float64)
        try:
            vertex, triangle = hull_triangles(np.asarray(self.hull, np.float64), "Bucket: hull")
        except ValueError as error:
            raise SoilError(str(error)) from error
        vertex = vertex - origin
        centre, planes = _solid(vertex, triangle)
        lip = np.array([self._point("left"), self._point("right")]) - origin
        inside = centre if self.inside is None else self._point("inside") - origin
        axis, reach, width = _mouth(lip, self._point("hinge") - origin, inside)
        flat = np.column_stack([(vertex - lip[0]) @ axis[1], (vertex - lip[0]) @ axis[2]])
        away = flat[np.linalg.norm(flat, axis=1) > 1e-6 * reach]
        angle = float(np.arctan2(away[:, 1], away[:, 0]).max())
        if not 0.05 < angle < math.pi - 0.01:
            raise SoilError("Bucket: the hull must lie on the inner side of the mouth, with the lip as its front edge")
        deep = flat[:, 1].max()
        heaped = self.struck * 1.1 if self.heaped is None else self.heaped
        return Tool(
            lip=lip,
            axis=axis,
            edge=-(math.cos(angle) * axis[1] + math.sin(angle) * axis[2]),
            plane=planes,
            empty_centre=centre + (0.9 * deep - (centre - lip[0]) @ axis[2]) * axis[2],
            full_centre=centre,
            reach=reach,
            width=width,
            radius=float(np.linalg.norm(vertex, axis=1).max()),
            struck=float(self.struck),
            heaped=float(heaped),
            lip_begin=self.over_lip[0],
            lip_end=self.over_lip[1],
            hinge_begin=self.over_hinge[0],
            hinge_end=self.over_hinge[1],
            slices=int(self.slices),
            lip_mass=float(self.lip_mass),
            weigh=int(self.weigh),
        )


def _mouth(lip: Floats, hinge: Floats, inside: Floats) -> tuple[Floats, float, float]:
    """Axes of the mouth as rows (along the lip, to the hinge, inwards), its length and its width."""
    along = lip[1] - lip[0]
    width = float(np.linalg.norm(along))
    if not width > 1e-6:
        raise SoilError(f"Bucket: left and right must be apart, not {width:g} m")
    along = along / width
    back = hinge - lip[0]
    back = back - (back @ along) * along
    reach = float(np.linalg.norm(back))
    if not reach > 1e-6:
        raise SoilError(f"Bucket: hinge must lie off the line of the lip, not {reach:g} m from it")
    back = back / reach
    inwards = np.cross(along, back)
    way = float((inside - lip[0]) @ inwards)
    if abs(way) < 1e-9:
        raise SoilError("Bucket: inside lies in the plane of the mouth, so there is no inner side: give another point")
    return np.array([along, back, math.copysign(1.0, way) * inwards]), reach, width


def _solid(vertex: Floats, triangle: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Centre of a hull and its planes, one for each direction."""
    a, b, c = (vertex[triangle[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    volume = np.einsum("ij,ij->i", a - vertex[0], normal) / 6.0
    centre = vertex[0] + ((a + b + c - 3 * vertex[0]) / 4.0 * volume[:, None]).sum(0) / volume.sum()
    normal = normal / np.linalg.norm(normal, axis=1)[:, None]
    kept: list[Floats] = []
    for n in normal:
        if not any(float(n @ k) > 1 - 1e-9 for k in kept):
            kept.append(n)
    normals = np.array(kept)
    return centre, np.column_stack([normals, (vertex @ normals.T).max(0)])
