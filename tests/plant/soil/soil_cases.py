"""A piece of ground, a bucket and ways to move it, for the tests of the soil."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.collision.model import Kind
from plant.collision.narrowphase.field import Fields
from plant.collision.scene import Placement, build_scene
from plant.collision.shape.shapes import Field
from plant.soil.bucket import Bucket
from plant.soil.build import build_soil
from plant.soil.flight import air_of, launch
from plant.soil.ground import Ground, build_ground
from plant.soil.heap import scatter
from plant.soil.kind import SoilKind
from plant.soil.model import BUCKET, GONE, OUT, POOL, POUR, PUSH, REST, Soil, book
from plant.soil.step import reset_soil, soil_step

H = 0.001
STILL = SoilKind(mu_dig=0.0, mu_cp=0.0)


class Site(NamedTuple):
    """All records of a test."""

    soil: Soil
    ground: Ground
    field: Fields


view_site = viewer(Site)


@kernel
def _run(site, pos, rot, vel, h, wrench, out):
    s = view_site(site)
    for k in range(len(pos)):
        wrench[k, :] = 0.0
        status = soil_step(s.soil, s.ground, s.field, pos[k], rot[k], vel[k], h, wrench[k])
        if status != 0:
            return status
        out[k, :] = s.soil.state.out
    return 0


@kernel
def _reset(site):
    s = view_site(site)
    reset_soil(s.soil, s.ground, s.field)


@kernel
def _launch(site, p, v, volume):
    return launch(view_site(site).soil, p[0], p[1], p[2], v[0], v[1], v[2], volume)


@kernel
def _scatter(site, x, y, volume, sigma, rays):
    s = view_site(site)
    return scatter(s.soil, s.ground, s.field, x, y, volume, sigma, rays)


@kernel
def _book(site, account, amount):
    book(view_site(site).soil, account, amount)


@kernel
def _air(site):
    return air_of(view_site(site).soil)


# Seen from the side (y across): the lip at the origin, the mouth 0.8 m up to the hinge, the floor along +x.
PROFILE = np.array([[0.0, 0.0], [0.0, 0.8], [0.6, 0.7], [0.8, 0.3], [0.7, 0.0]])


def a_bucket(width: float = 1.2, **changes: Any) -> Bucket:
    """A bucket that digs towards -x when it is not turned: mouth in the plane x = 0, floor level."""
    hull = np.array([[x, y, z] for y in (-width / 2, width / 2) for x, z in PROFILE])
    given = {
        "hull": hull,
        "left": (0, width / 2, 0),
        "right": (0, -width / 2, 0),
        "hinge": (0, 0, 0.8),
        "struck": 0.5,
        "heaped": 0.6,
        **changes,
    }
    return Bucket(**given)


def about_y(angle: float) -> np.ndarray:
    """Positive angles turn the bucket's lip up: its mouth looks to the sky at pi / 2."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


class Plot:
    """Fields as patches of a ground, with soil and a bucket."""

    def __init__(
        self,
        fields: Sequence[tuple[Field, tuple[float, float, float]]],
        kind: SoilKind = STILL,
        bucket: Bucket | None = None,
        **soil: Any,
    ) -> None:
        scene = build_scene(
            [Placement(field, -1, np.asarray(at, float), np.eye(3), 0) for field, at in fields],
            np.zeros(0, np.int64),
            np.zeros((0, 3)),
            np.zeros((0, 3, 3)),
            spare=0,
            joints=0,
            excluded=(),
            margin=0.01,
            table=np.zeros((len(Kind), len(Kind)), np.int64),
        )
        self.ground = build_ground(scene, list(range(len(fields))))
        self.kind = kind
        self.soil = build_soil(scene, self.ground, kind, bucket or a_bucket(), **{"soil": [0], **soil})
        self.field = scene.field
        self.record = Struct(Site(self.soil, self.ground, self.field))
        self.address = self.record.address
        self.before = self.total()

    def heights(self, p: int = 0) -> np.ndarray:
        """World heights of patch `p` [nx, ny]."""
        f = self.ground.field[p]
        part = self.field.height[self.field.first[f] : self.field.first[f + 1]]
        return part.reshape(self.field.nx[f], self.field.ny[f]) + self.ground.at[p, 2]

    def loose(self, p: int = 0) -> np.ndarray:
        f = self.ground.field[p]
        part = self.soil.land.loose[self.field.first[f] : self.field.first[f + 1]]
        return part.reshape(self.field.nx[f], self.field.ny[f])

    def places(self, p: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """World x and y of the samples."""
        f = self.ground.field[p]
        x, y = (
            self.ground.at[p, k] + (np.arange(n) - (n - 1) / 2) * self.field.step[f, k]
            for k, n in enumerate((self.field.nx[f], self.field.ny[f]))
        )
        return np.meshgrid(x, y, indexing="ij")

    def run(self, pos: Any, rot: Any, vel: Any = (0.0,) * 6, h: float = H) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Steps along a path; answers the wrenches and what was told, by name."""
        pos = np.array(np.atleast_2d(pos), float, order="C")
        n = len(pos)
        rot = np.array(np.broadcast_to(np.asarray(rot, float), (n, 3, 3)), order="C")
        vel = np.array(np.broadcast_to(np.asarray(vel, float), (n, 6)), order="C")
        wrench, out = np.zeros((n, 6)), np.zeros((n, len(OUT)))
        self.status = _run(self.address, pos, rot, vel, h, wrench, out)
        return wrench, {name: out[:, k] for k, (name, _, _) in enumerate(OUT)}

    def wait(self, seconds: float) -> dict[str, np.ndarray]:
        """Time passes with the bucket far up, its mouth to the sky."""
        n = round(seconds / H)
        self.soil.state.known[0] = 0
        return self.run(np.tile([0.0, 0.0, 800.0], (n, 1)), about_y(math.pi / 2))[1]

    def drag(self, start: Any, velocity: Any, seconds: float, rot: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Move the bucket from `start` in a straight line."""
        n = round(seconds / H)
        velocity = np.asarray(velocity, float)
        pos = np.asarray(start, float) + np.outer(np.arange(n + 1) * H, velocity)
        return self.run(pos, np.eye(3) if rot is None else rot, (*velocity, 0, 0, 0))

    def launch(self, place: Any, velocity: Any, volume: float) -> bool:
        ok: bool = _launch(self.address, np.asarray(place, float), np.asarray(velocity, float), volume)
        return ok

    def scatter(self, x: float, y: float, volume: float, sigma: float, rays: int) -> float:
        left: float = _scatter(self.address, x, y, volume, sigma, rays)
        return left

    def load(self, volume: float) -> None:
        """Put a bank volume into the bucket."""
        _book(self.address, BUCKET, volume)
        self.before += volume

    def reset(self) -> None:
        _reset(self.address)

    def held(self, account: int) -> float:
        return float(self.soil.state.account[account] + self.soil.state.error[account])

    def total(self) -> float:
        """All soil there is, from the samples themselves: bank, heaps, bucket, air and what is on its way [m^3]."""
        terms = [self.held(k) for k in (BUCKET, POOL, PUSH, POUR, REST, GONE)]
        terms += self.soil.parcel.volume.tolist()
        for p in range(len(self.ground.field)):
            if self.soil.land.diggable[p] == 0 and self.soil.land.reserve[p] == 0:
                continue
            area, loose = self.soil.land.area[p], self.loose(p)
            terms.append(area * math.fsum((loose / self.kind.bulking).ravel()))
            if self.soil.land.diggable[p] == 2:
                bank = self.heights(p) - self.ground.at[p, 2] - loose
                terms.append(area * math.fsum(bank.ravel()))
        return math.fsum(terms)

    def digest(self) -> bytes:
        """Everything that changes, as bytes."""
        arrays = [self.field.height, self.soil.land.loose, *self.soil.state, *self.soil.parcel, self.ground.on]
        return b"".join(a.tobytes() for a in arrays)


def flat(n: int = 81, spacing: float = 0.15, height: float = 0.0, low: float = -4, high: float = 6) -> Field:
    """A level field about z = height."""
    return Field(np.full((n, n), height), spacing, low=low, high=high)
