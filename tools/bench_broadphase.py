"""The broad phase: moving shapes by the tree and by a sweep along one axis; scenery by its three trees. Medians.

    python tools/bench_broadphase.py

A step places all shapes and lists their pairs, on one pinned core; processor time, so that other programs on the
machine do not count. The sweep (sorted along the axis on which the
shapes are strewn widest, each tried against all that overlap it there) keeps nothing between steps but the order.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.broadphase.find_pairs import find_pairs
from plant.collision.broadphase.model import BroadPhase, build_broad_phase, view_broad_phase
from plant.collision.broadphase.pairs import may_meet, new_pairs, pair_key, sort_keys, view_pairs
from plant.collision.broadphase.static_tree import METHODS, build_scenery, query_scenery, ray_scenery, view_scenery
from plant.collision.model import Kind, Shapes, new_placed, view_placed, view_shapes
from plant.collision.transforms import place_ground, place_shapes

DT, STEPS, HALF = 1e-3, 200, 0.1
BOUND = 500.0  # [us] a step of 1,000 bodies


@kernel
def set_up(shapes, placed, pos, rot):
    place_ground(view_shapes(shapes), view_placed(placed))
    place_shapes(view_shapes(shapes), view_placed(placed), pos, rot)


@kernel
def by_tree(shapes, placed, broad, pairs, pos, rot, vel, asleep):
    shape, place = view_shapes(shapes), view_placed(placed)
    place_shapes(shape, place, pos, rot)
    return find_pairs(view_broad_phase(broad), shape, place, vel, asleep, view_pairs(pairs))


@kernel
def by_sweep(shapes, placed, broad, pairs, pos, rot, order, begins, spare, axis):
    """The same pairs among moving shapes, by a sweep along `axis`."""
    shape, place, f, out = view_shapes(shapes), view_placed(placed), view_broad_phase(broad), view_pairs(pairs)
    place_shapes(shape, place, pos, rot)
    low, high, n, count = place.low, place.high, order.size, 0
    for p in range(n):
        begins[p] = low[order[p], axis]
    for p in range(1, n):  # nearly in order since the last step
        s, begin, q = order[p], begins[p], p - 1
        while q >= 0 and begins[q] > begin:
            begins[q + 1], order[q + 1] = begins[q], order[q]
            q -= 1
        begins[q + 1], order[q + 1] = begin, s
    a, b = (axis + 1) % 3, (axis + 2) % 3
    for p in range(n):
        i = order[p]
        end = high[i, axis] + f.margin
        a0, a1, b0, b1 = low[i, a] - f.margin, high[i, a] + f.margin, low[i, b] - f.margin, high[i, b] + f.margin
        for q in range(p + 1, n):
            if begins[q] > end:
                break
            j = order[q]
            near = (low[j, a] <= a1) & (high[j, a] >= a0) & (low[j, b] <= b1) & (high[j, b] >= b0)
            if near and may_meet(shape, f.role, f.excluded, f.bodies, i, j):
                f.key_new[count] = pair_key(shape, f.bits, i, j)
                count += 1
    sort_keys(f.key_new, spare, f.table, count, f.bits)
    for k in range(count):
        out.pair[k, 0], out.pair[k, 1] = f.key_new[k] >> f.bits, f.key_new[k] & ((1 << f.bits) - 1)
    out.count[0] = count


@kernel
def many_boxes(scenery, boxes, found):
    view, total = view_scenery(scenery), 0
    for k in range(boxes.shape[0]):
        b = boxes[k]
        total += query_scenery(view, b[0], b[1], b[2], b[3], b[4], b[5], found)
    return total


@kernel
def many_rays(scenery, rays, found):
    view, total = view_scenery(scenery), 0
    for k in range(rays.shape[0]):
        r = rays[k]
        total += ray_scenery(view, r[0], r[1], r[2], r[3], r[4], r[5], 1.0, found)
    return total


@dataclass
class Scene:
    """Boxes of 0.2 m, one on each body, and how they move."""

    name: str
    pos: np.ndarray
    speed: float  # [m/s] one by one
    fall: float = 0.0  # [m/s] all together
    spin: float = 1.0  # [rad/s] per m/s


def pile(n: int, gap: float, rng: np.random.Generator) -> np.ndarray:
    """A block of cubes a little apart, none quite in its place."""
    side = round(n ** (1 / 3)) + 1
    grid = np.stack(np.unravel_index(np.arange(n), (side, side, side)), axis=1)
    return grid * (2 * HALF + gap) + rng.normal(size=(n, 3)) * 0.01


def cubes(n: int) -> Shapes:
    whole = [np.full(n, v, np.int64) for v in (0, 1, 1, -1, 1)]
    turn, size = np.tile(np.eye(3), (n, 1, 1)), np.full((n, 4), HALF)
    kind, body, bound = np.full(n, int(Kind.BOX)), np.arange(n), np.full(n, 2 * HALF)
    return Shapes(kind, body, np.zeros((n, 3)), turn, size, bound, *whole)


def turned(angle: np.ndarray) -> np.ndarray:
    """Rotations [n, 3, 3] about z."""
    c, s, o, e = np.cos(angle), np.sin(angle), np.zeros(len(angle)), np.ones(len(angle))
    return np.ascontiguousarray(np.stack((c, -s, o, s, c, o, o, o, e), axis=1).reshape(-1, 3, 3))


def run(scene: Scene) -> tuple[int, BroadPhase, np.ndarray, np.ndarray]:
    """Pairs in the middle of the run, and microseconds of each step by tree and by sweep."""
    rng, pos, n = np.random.default_rng(1), scene.pos.copy(), len(scene.pos)
    shapes, placed, pairs = cubes(n), new_placed(n), new_pairs(60 * n)
    vel, asleep, angle = np.zeros((n, 6)), np.zeros(n, np.int64), rng.uniform(0, 0.3, n)
    vel[:, :3] = rng.normal(size=(n, 3)) * scene.speed / np.sqrt(3) - [0, 0, scene.fall]
    rate = scene.spin * rng.normal(size=n) * scene.speed
    records = [Struct(shapes), Struct(placed)]
    set_up(records[0].address, records[1].address, pos, turned(angle))
    broad = build_broad_phase(shapes, placed, np.zeros(n, np.int64), room=60 * n)
    records += [Struct(broad), Struct(pairs)]
    address = [r.address for r in records]
    axis = int(np.ptp(pos, axis=0).argmax())
    order, begins, spare = np.argsort(placed.low[:, axis]), np.zeros(n), np.zeros(60 * n, np.int64)
    tree, sweep, seen = [], [], 0
    for step in range(STEPS + 1):
        pos, angle = pos + vel[:, :3] * DT, angle + rate * DT
        rot = turned(angle)
        began = time.thread_time()
        assert by_tree(*address, pos, rot, vel, asleep) == 0
        tree.append(time.thread_time() - began)
        found = pairs.pair[: pairs.count[0]].copy()
        began = time.thread_time()
        by_sweep(*address, pos, rot, order, begins, spare, axis)
        sweep.append(time.thread_time() - began)
        assert np.array_equal(found, pairs.pair[: pairs.count[0]])
        seen = len(found) if step == STEPS // 2 else seen
    return seen, broad, np.array(tree[1:]) * 1e6, np.array(sweep[1:]) * 1e6


def moving() -> Table:
    rng = np.random.default_rng(0)
    table = Table(
        "moving boxes", "pairs", "candidates", r"tree \[us]", r"tree 99 % \[us]", r"sweep \[us]", "bound", title="step"
    )
    block, loose = pile(1000, 0.03, rng), rng.uniform(0, 12, (1000, 3))
    scenes = [
        Scene("1,000 in a pile, settling", block, 0.05),
        Scene("1,000 in a pile, stirred at 1 m/s", block, 1.0),
        Scene("1,000 in a pile, falling together at 5 m/s", block, 0.05, fall=5.0),
        Scene("1,000 strewn, 1 m/s", loose, 1.0),
        Scene("1,000 strewn, 5 m/s", loose, 5.0),
        Scene("1,000 strewn, 20 m/s", loose, 20.0),
        Scene("10,000 in a pile, settling", pile(10_000, 0.03, rng), 0.05),
        Scene("10,000 strewn, 5 m/s", rng.uniform(0, 26, (10_000, 3)), 5.0),
    ]
    for scene in scenes:
        pairs, broad, tree, sweep = run(scene)
        bound = f"<= {BOUND:.0f}" if len(scene.pos) == 1000 else ""
        table.add_row(
            scene.name,
            f"{pairs}",
            f"{broad.state[0]}",
            f"{np.median(tree):.0f}",
            f"{np.percentile(tree, 99):.0f}",
            f"{np.median(sweep):.0f}",
            bound,
        )
    return table


def strewn(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Scenery [n, 6] of about one box in 8 m^3: evenly, or a town: streets, houses, and their bricks."""
    if name == "even":
        low, size = rng.uniform(0, 2 * n ** (1 / 3), (n, 3)), rng.uniform(0.2, 1.5, (n, 3))
    else:
        town = rng.uniform(0, 20 * n**0.5 / 3, (max(n // 200, 1), 2))
        low = np.c_[town[rng.integers(len(town), size=n)] + rng.normal(size=(n, 2)) * 2, rng.exponential(2.0, n)]
        size = 10.0 ** rng.uniform(-1, 0.7, (n, 3))
    return np.hstack((low, low + size))


def best(call: object, *args: object) -> float:
    """Seconds of the fastest of seven calls."""
    times = []
    for _ in range(7):
        began = time.thread_time()
        call(*args)  # type: ignore[operator]
        times.append(time.thread_time() - began)
    return min(times)


def scenery() -> Table:
    rng, asked = np.random.default_rng(2), 2000
    table = Table("scenery", "boxes", "found", title="one search of 0.5 m boxes | one ray of 10 m")
    for method in METHODS:
        table.add_column(rf"{method} \[ns]")
    table.add_column(r"built in \[ms]")
    for name in ("even", "town"):
        for n in (100, 1000, 10_000, 100_000):
            boxes = strewn(name, n, rng)
            at = boxes[rng.integers(n, size=asked), :3] + rng.normal(size=(asked, 3)) * 0.5
            search, ray = np.hstack((at, at + 0.5)), np.hstack((at, rng.normal(size=(asked, 3)) * 10 / np.sqrt(3)))
            found, cells, built, total = np.zeros(n, np.int64), [], [], 0
            for method in METHODS:
                began = time.thread_time()
                record = Struct(build_scenery(boxes, np.arange(n), method))
                built.append(f"{(time.thread_time() - began) * 1e3:.0f}")
                total = many_boxes(record.address, search, found)
                by_box, by_ray = (
                    best(many_boxes, record.address, search, found),
                    best(many_rays, record.address, ray, found),
                )
                cells.append(f"{by_box / asked * 1e9:.0f} | {by_ray / asked * 1e9:.0f}")
            table.add_row(name, f"{n}", f"{total / asked:.1f}", *cells, " ".join(built))
    return table


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for table in (moving(), scenery()):
        Console().print(table)


if __name__ == "__main__":
    main()
