"""What a step of the soil costs: digging on a grid of 256 x 256, dumping, and waiting.

python tools/bench_soil.py [--steps 20000]
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from hilnode.shared.clock import now_ns
from plant.collision.model import Kind
from plant.collision.narrowphase.field import Fields
from plant.collision.scene import Placement, build_scene
from plant.collision.shape.shapes import Field
from plant.soil.bucket import Bucket
from plant.soil.build import build_soil
from plant.soil.ground import Ground, build_ground
from plant.soil.kind import SoilKind
from plant.soil.model import BUCKET, Soil, book
from plant.soil.step import reset_soil, soil_step


class Site(NamedTuple):
    """What a step takes."""

    soil: Soil
    ground: Ground
    field: Fields


_view = viewer(Site)
H = 0.001


@kernel
def _timed(site, load, pos, rot, vel, h, wrench, took):
    s = _view(site)
    reset_soil(s.soil, s.ground, s.field)
    book(s.soil, BUCKET, load)
    for k in range(len(pos)):
        began = now_ns()
        soil_step(s.soil, s.ground, s.field, pos[k], rot[k], vel[k], h, wrench)
        took[k] = now_ns() - began


def _site() -> Struct:
    land = Field(np.zeros((256, 256)), 0.15, low=-5, high=5)
    bed = Field(np.zeros((20, 40)), 0.15, low=-0.1, high=2)
    spare = Field(np.zeros((48, 48)), 0.15, low=-2, high=3)
    at = [(land, (0, 0, 0)), (bed, (4, 8, 1.5)), (spare, (500, 0, 0)), (spare, (500, 0, 0))]
    scene = build_scene(
        [Placement(field, -1, np.asarray(a, float), np.eye(3), 0) for field, a in at],
        np.zeros(0, np.int64),
        np.zeros((0, 3)),
        np.zeros((0, 3, 3)),
        spare=0,
        joints=0,
        excluded=(),
        margin=0.01,
        table=np.zeros((len(Kind), len(Kind)), np.int64),
    )
    ground = build_ground(scene, [0, 1, 2, 3])
    side = [[0, 0], [0, 0.8], [0.6, 0.7], [0.8, 0.3], [0.7, 0]]
    hull = np.array([[x, y, z] for y in (-0.6, 0.6) for x, z in side])
    bucket = Bucket(hull, (0, 0.6, 0), (0, -0.6, 0), (0, 0, 0.8), struck=0.5, heaped=0.6)
    soil = build_soil(scene, ground, SoilKind(), bucket, soil=[0], beds=[1], reserve=[2, 3])
    return Struct(Site(soil, ground, scene.field))


def _turn(angle: float, yaw: float = 0.0) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    a, b = math.cos(yaw), math.sin(yaw)
    return np.array([[a, -b, 0], [b, a, 0], [0, 0, 1]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _cases(n: int) -> dict[str, tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    """Load, places, turns and velocities of each case."""
    t = np.arange(n) * H
    still = np.zeros((n, 6))
    up = np.tile(_turn(math.pi / 2), (n, 1, 1))
    stroke, part = np.divmod(t, 4.0)
    dig = np.column_stack([8 - 0.6 * part, -8 + 0.37 * stroke, -0.3 - 0.02 * stroke])
    push = np.tile([-0.6, 0, 0, 0, 0, 0], (n, 1))
    slant = dig @ _turn(0, math.radians(30)).T
    air = np.tile([0, 0, 3.0], (n, 1))
    return {
        "in the air, empty": (0.0, air, up, still),
        "digging along the grid": (0.0, dig, np.tile(np.eye(3), (n, 1, 1)), push),
        "digging across it, turned": (
            0.0,
            slant,
            np.tile(_turn(0.4, math.radians(30)), (n, 1, 1)),
            push @ np.kron(np.eye(2), _turn(0, math.radians(30)).T),
        ),
        "dumping": (0.48, air, np.array([_turn(math.pi / 2 - min(0.1 * s, 2.5)) for s in t]), still),
        "nothing left to do": (0.0, air, up, still),
    }


def measure(n: int) -> dict[str, np.ndarray]:
    """Median, p99, p99.9 and most [us] of each case, over n steps after as many that warm up."""
    record = _site()
    found = {}
    for name, (load, pos, rot, vel) in _cases(n).items():
        took = np.zeros(n)
        given = [np.ascontiguousarray(a) for a in (pos, rot, vel)]
        for _ in range(2):
            _timed(record.address, load, *given, H, np.zeros(6), took)
        found[name] = np.quantile(took, [0.5, 0.99, 0.999, 1.0]) / 1000
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    n = parser.parse_args().steps
    print(f"{'':28}{'median':>9}{'p99':>9}{'p99.9':>9}{'most':>9}   [us]")
    for name, q in measure(n).items():
        print(f"{name:28}" + "".join(f"{v:9.2f}" for v in q))


if __name__ == "__main__":
    main()
