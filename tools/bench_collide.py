"""Collision detection beside coal (formerly hpp-fcl): the same pairs, taking turns on one pinned core; medians.

    python tools/bench_collide.py [primitives] [convex] [meshes] [broadphase] [terrain] [scale]

Needs coal from PyPI (in the dev extra). Everything but `scale`, which takes a minute, is run if nothing is named;
`scale` also draws docs/images/collision_scale.png.

What is compared. Ours: a compiled loop that puts both shapes in their places and calls the kernel of the pair through
the table of pairs, which returns the whole manifold (all points, normals, depths, features). Theirs: coal.collide with
contacts, as many at most as we return, from a Python loop; of primitives and convex shapes it returns one point. On a
mesh or field coal stops when it has found so many triangles, wherever they are, while we look at all that touch; in
`near` both look at everything. What the loop itself costs is measured in every turn on two spheres that are far apart
and taken off: `net`, with the half width of the middle half of the turns. That takes off coal's own work on two far
spheres too, so cheap pairs are compared a second time with the same taken off ours: `beyond far`. Processor time, so
that other programs on the machine count as little as can be. Pairs are placed at random and then moved along a line
until they overlap by 2 percent of the smaller shape for coal, as bodies that rest on each other do; `near` are the same
pairs, apart by as much. Where we see no contact in more than 3 percent of the first (missed) or one in the second
(early), it is said.

A verdict stands beside each bound; the program ends with 1 if a bound is missed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import coal
import numpy as np
from coal_peer import grid_triangles, height_field_twin, twin
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant.collision.model import Kind
from plant.collision.pairs.convexes import CLOSED_FORM
from plant.collision.pairs.table import call_pair, known_pairs, pair_table
from plant.collision.scene import Placement, Scene, build_scene, view_scene
from plant.collision.shape.shapes import Box, Capsule, Cone, Cylinder, Field, Hull, Mesh, Plane, Shape, Sphere

PAIRS, TURNS, OVERLAP = 300, 41, 0.02
LEVEL = 0.25  # [us] for a level of a tree of two branches, half of a miss of the nearest caches
DOCS = Path(__file__).resolve().parent.parent / "docs"
FLAT = {(Kind.BOX, Kind.BOX), (Kind.BOX, Kind.CYLINDER), (Kind.CYLINDER, Kind.CYLINDER)}
FLAT |= {(Kind.BOX, Kind.PLANE), (Kind.CYLINDER, Kind.PLANE), (Kind.CONE, Kind.PLANE)}
Poses = tuple[np.ndarray, np.ndarray]  # [n, 2, 3] places and [n, 2, 3, 3] turns of both shapes


@kernel
def one_by_one(scene, pos, rot, margin, counts):
    """Put the two shapes of the scene in each of the places, one after the other, and ask for their points."""
    s = view_scene(scene)
    function = s.table[s.shape.kind[0], s.shape.kind[1]]
    for k in range(pos.shape[0]):
        for b in range(2):
            for c in range(3):
                s.placed.pos[b, c] = pos[k, b, c]
                for d in range(3):
                    s.placed.rot[b, c, d] = rot[k, b, c, d]
        counts[k] = call_pair(function, scene, 0, 1, margin)


class Ours:
    """Two shapes and their pair kernel."""

    def __init__(self, one: Shape, other: Shape) -> None:
        shapes = [Placement(s, b, np.zeros(3), np.eye(3), 0) for b, s in enumerate((one, other))]
        self.scene: Scene = build_scene(
            shapes,
            np.zeros(2, np.int64),
            np.zeros((2, 3)),
            np.tile(np.eye(3), (2, 1, 1)),
            spare=0,
            joints=0,
            excluded=(),
            margin=0.0,
            table=pair_table([(one.kind, other.kind)]),
        )
        self.record = Struct(self.scene)

    def points(self, poses: Poses, margin: float = 0.0) -> np.ndarray:
        """How many points each pair of places has."""
        counts = np.zeros(len(poses[0]), np.int64)
        one_by_one(self.record.address, *poses, margin, counts)
        return counts


class Theirs:
    """The same two for coal."""

    def __init__(self, one: Shape, other: Shape, most: int) -> None:
        own = isinstance(other, Field) and one.kind != Kind.MESH
        self.shapes = twin(one), height_field_twin(other) if own else twin(other)
        self.request = coal.CollisionRequest()
        self.request.enable_contact = True
        self.request.num_max_contacts = max(1, most)
        self.result = coal.CollisionResult()

    def places(self, poses: Poses) -> list[tuple[Any, Any]]:
        pos, rot = poses
        return [tuple(coal.Transform3s(rot[k, b], pos[k, b]) for b in range(2)) for k in range(len(pos))]

    def touch(self, poses: Poses) -> np.ndarray:
        """Which pairs touch."""
        return np.array([self.points([p]) for p in self.places(poses)], bool)

    def points(self, places: Sequence[tuple[Any, Any]]) -> int:
        """Pairs that touch."""
        one, other, request, result, collide = *self.shapes, self.request, self.result, coal.collide
        hits = 0
        for a, b in places:
            result.clear()
            collide(one, a, other, b, request, result)
            hits += result.isCollision()
        return hits


def hills(points: int, cell: float, seed: int = 7) -> Mesh:
    """Rough ground of points x points samples, two triangles a cell."""
    half, rng = 0.5 * cell * (points - 1), np.random.default_rng(seed)
    x, y = np.meshgrid(*[np.linspace(-half, half, points)] * 2, indexing="ij")
    z = np.sin(0.37 * x) * np.cos(0.29 * y) + 0.1 * cell * rng.standard_normal(x.shape)
    return Mesh(np.stack([x, y, z], -1).reshape(-1, 3), grid_triangles(points, points))


def rock(radius: float, rounds: int, seed: int) -> Mesh:
    """A closed, rough ball of 20 * 4^rounds triangles."""
    import trimesh

    ball, rng = trimesh.creation.icosphere(subdivisions=rounds, radius=radius), np.random.default_rng(seed)
    rough = np.array(ball.vertices) * (1 + 0.05 * rng.standard_normal((len(ball.vertices), 1)))
    return Mesh(rough, np.array(ball.faces))


def shapes() -> dict[Kind, Shape]:
    rng = np.random.default_rng(4)
    cloud = rng.normal(size=(40, 3))
    return {
        Kind.SPHERE: Sphere(0.5),
        Kind.CAPSULE: Capsule(0.3, 0.8),
        Kind.BOX: Box(0.8, 1.0, 0.6),
        Kind.CYLINDER: Cylinder(0.4, 1.0),
        Kind.CONE: Cone(0.5, 1.0),
        Kind.HULL: Hull(0.5 * cloud / np.linalg.norm(cloud, axis=1)[:, None]),
        Kind.PLANE: Plane(),
        Kind.MESH: rock(0.6, 3, 5),
        Kind.FIELD: Field(0.2 * np.random.default_rng(3).standard_normal((60, 60)), 0.25),
    }


def touching(theirs: Theirs, one: Shape, other: Shape, seed: int, flat: bool = False) -> tuple[Poses, Poses]:
    """Places that overlap by a little, and the same a little apart; `flat`: the first stands on the other.

    From far away along a random line to where they first touch, as coal sees it: 40 places along it, then halved.
    """
    rng = np.random.default_rng(seed)
    ground = other.kind in (Kind.PLANE, Kind.FIELD)
    size = one.bound() if ground else min(one.bound(), other.bound())
    reach = sum(s.bound() for s in (one, other) if s.kind not in (Kind.PLANE, Kind.FIELD))
    far = 1.1 * reach + (1.0 if other.kind == Kind.FIELD else 0.0)
    turn = Rotation.random(2 * PAIRS, random_state=rng).as_matrix().reshape(PAIRS, 2, 3, 3)
    base, way = rng.uniform(-2, 2, (PAIRS, 3)), rng.normal(size=(PAIRS, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    begin = base.copy()
    if flat:
        begin += np.einsum("kij,kj->ki", turn[:, 1, :, :2], rng.uniform(-0.2, 0.2, (PAIRS, 2)))
        spin = Rotation.from_rotvec(np.outer(rng.uniform(0, 6, PAIRS), [0, 0, 1])).as_matrix()
        way, turn[:, 0] = turn[:, 1, :, 2].copy(), turn[:, 1] @ spin
    elif ground:
        way = turn[:, 1, :, 2].copy()
        begin += np.einsum("kij,kj->ki", turn[:, 1, :, :2], rng.uniform(-4, 4, (PAIRS, 2)))
    elif one.kind == Kind.PLANE:
        way = -turn[:, 0, :, 2]

    def at(distance: np.ndarray) -> Poses:
        return np.stack([begin + way * distance[:, None], base], 1), np.ascontiguousarray(turn)

    apart, low = np.full(PAIRS, far), np.full(PAIRS, 0.0)
    steps = np.linspace(far, -0.2 * far if ground else 0.0, 41)
    open_ = np.ones(PAIRS, bool)
    for distance in steps[1:]:
        hit = theirs.touch(at(np.full(PAIRS, distance))) & open_
        low[hit] = distance
        open_ &= ~hit
        apart[open_] = distance
    for _ in range(20):
        middle = 0.5 * (apart + low)
        hit = theirs.touch(at(middle))
        low, apart = np.where(hit, middle, low), np.where(hit, apart, middle)
    return at(low - OVERLAP * size), at(apart + OVERLAP * size)


def take_turns(*calls: Callable[[], object], turns: int = TURNS) -> np.ndarray:
    """Processor time [s] of each call in each turn."""
    spent: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(turns):
        for call, times in zip(calls, spent, strict=True):
            began = time.thread_time()
            call()
            times.append(time.thread_time() - began)
    return np.array(spent)


def loop_cost() -> tuple[Theirs, list[tuple[Any, Any]], Ours, Poses]:
    """Two spheres too far apart for anything but a look: what the loops cost."""
    one, other = Sphere(0.5), Sphere(0.5)
    theirs, pos = Theirs(one, other, 1), np.zeros((PAIRS, 2, 3))
    pos[:, 1] = 1e3
    poses = pos, np.tile(np.eye(3), (PAIRS, 2, 1, 1))
    return theirs, theirs.places(poses), Ours(one, other), poses


missed_bounds: list[str] = []


def verdict(what: str, ours: float, bound: float, spread: float = 0.0) -> str:
    """Whether a bound, known to within `spread`, is kept; a miss is remembered."""
    if ours <= bound - spread:
        return "kept"
    if ours <= bound + spread:
        return "in the noise"
    missed_bounds.append(what)
    return "[red]missed"


def compare(kinds: Sequence[tuple[Kind, Kind]], title: str, bound: float, turns: int = TURNS) -> Table:
    """Nanoseconds a pair of ours and theirs."""
    table = Table(title=f"{title}, ns a pair")
    for name in ("pair", "points", "ours", "coal raw", "coal net", "ratio", "beyond far", "near", "ratio near"):
        table.add_column(name, justify="left" if name == "pair" else "right")
    table.add_column(f"bound {bound:.1f}x")
    made, (idle, idle_places, idle_ours, idle_poses) = shapes(), loop_cost()
    for one, other, flat in [(*p, f) for p in kinds for f in (False, True) if not f or p in FLAT]:
        ours = Ours(made[one], made[other])
        theirs = Theirs(made[one], made[other], 1)
        hit, near = touching(theirs, made[one], made[other], 11, flat)
        counts = ours.points(hit)
        theirs.request.num_max_contacts = max(1, int(np.median(counts)))
        places = theirs.places(hit), theirs.places(near)
        missed, early = float((counts == 0).mean()), float((ours.points(near) > 0).mean())
        times = take_turns(
            lambda o=ours, p=hit: o.points(p),
            lambda o=ours, p=near: o.points(p, 1e-3),
            lambda: idle_ours.points(idle_poses),
            lambda t=theirs, p=places: t.points(p[0]),
            lambda: idle.points(idle_places),
            lambda t=theirs, p=places: t.points(p[1]),
            turns=turns,
        )
        times *= 1e9 / PAIRS
        mine, mine_near, mine_idle, raw, _, _ = np.median(times, axis=1)
        net, net_near = np.median(times[3] - times[4]), np.median(times[5] - times[4])
        spread = 0.5 * float(np.subtract(*np.percentile(times[3] - times[4], (75, 25))))
        table.add_row(
            f"{one.name.lower()} on {other.name.lower()}{', flat' if flat else ''}"
            + (f" (missed {missed:.0%}, early {early:.0%})" if max(missed, early) > 0.03 else ""),
            f"{counts.mean():.1f}",
            f"{mine:.0f}",
            f"{raw:.0f}",
            f"{net:.0f} ± {spread:.0f}",
            f"{mine / net:.2f}" if net > spread else "-",
            f"{mine - mine_idle:.0f} | {net:.0f}",
            f"{mine_near:.0f} | {net_near:.0f}",
            f"{mine_near / net_near:.2f}" if net_near > spread else "-",
            verdict(f"{one.name.lower()} on {other.name.lower()}", mine, bound * net, bound * spread),
        )
    return table


def primitives() -> Table:
    flat = {p for p in known_pairs() if p[1] == Kind.PLANE and p[0] != Kind.HULL}
    return compare(sorted(CLOSED_FORM | flat), "primitives", 1.0)


def convex() -> Table:
    pairs = [p for p in known_pairs() if p[1] <= Kind.PLANE and p not in CLOSED_FORM]
    return compare(sorted(p for p in pairs if p[1] == Kind.HULL or Kind.HULL in p or p[1] != Kind.PLANE), "convex", 1.5)


def meshes() -> Table:
    known = {p for p in known_pairs() if p[1] in (Kind.MESH, Kind.FIELD) and p[0] in shapes()}
    return compare(sorted(known), "mesh of 1,280 triangles and field of 60 x 60", 1.5, 9)


def walk(ground: Mesh, ball: Sphere, count: int, stride: float | None) -> Poses:
    """Places of a ball that touches the ground: a walk in steps of `stride`, or anywhere."""
    rng, points = np.random.default_rng(9), round(len(ground.vertices) ** 0.5)
    half = ground.vertices[:, 0].max()
    if stride is None:
        at = rng.uniform(-half + 1, half - 1, (count, 2))
    else:
        heading = np.cumsum(rng.normal(size=count) * 0.02)
        at = np.cumsum(np.stack([np.cos(heading), np.sin(heading)], 1) * stride, 0)
        at = (at + half - 1) % (2 * half - 2) - half + 1
    grid = ground.vertices.reshape(points, points, 3)
    cell = 2 * half / (points - 1)
    near = np.clip(np.round((at + half) / cell).astype(int), 0, points - 1)
    pos, rot = np.zeros((count, 2, 3)), np.tile(np.eye(3), (count, 2, 1, 1))
    pos[:, 0] = np.column_stack([at, grid[near[:, 0], near[:, 1], 2] + 0.7 * ball.radius]) - ground.middle()
    return pos, rot


def ask_ground(points: int, cell: float, *, with_coal: bool = True) -> list[float]:
    """Microseconds a query: ours walking and anywhere, coal walking and anywhere (net)."""
    ground, ball, count = hills(points, cell), Sphere(0.6 * cell), 2000
    ours = Ours(ball, ground)
    poses = walk(ground, ball, count, 0.02 * cell), walk(ground, ball, count, None)
    touched = [float((ours.points(p) > 0).mean()) for p in poses]
    assert min(touched) > 0.97, f"the ball must touch the ground: {touched}"
    calls: list[Callable[[], object]] = [lambda p=p: ours.points(p) for p in poses]
    if with_coal:
        theirs, (idle, idle_places, _, _) = Theirs(ball, ground, 4), loop_cost()
        places = [theirs.places(p) for p in poses]
        calls += [lambda p=p: theirs.points(p) for p in places] + [lambda: idle.points(idle_places)]
    times = np.median(take_turns(*calls, turns=11), axis=1)
    per = [t / count * 1e6 for t in times[:4]]
    if with_coal:
        idle_time = times[4] / PAIRS * 1e6
        per[2:] = [t - idle_time for t in per[2:]]
    return per


def terrain() -> Table:
    table = Table(
        "sphere on 100,352 triangles", "ours, us", "coal net, us", "ratio", "bound 2 us", title="sphere on a terrain"
    )
    walking, jumping, coal_walking, coal_jumping = ask_ground(225, 0.5)
    for name, mine, other in (
        ("rolling on, 1 cm a query", walking, coal_walking),
        ("anywhere", jumping, coal_jumping),
    ):
        kept = verdict(f"sphere on a terrain, {name}", mine, 2.0)
        table.add_row(name, f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.2f}", kept)
    return table


def broadphase() -> Table:
    import bench_broadphase as peer_bench

    table = Table("1,000 moving boxes, broad phase", "pairs", "median, us", "99 %, us", "bound 500 us")
    rng = np.random.default_rng(0)
    block, loose = peer_bench.pile(1000, 0.03, rng), rng.uniform(0, 12, (1000, 3))
    for scene in (
        peer_bench.Scene("in a pile, settling", block, 0.05),
        peer_bench.Scene("in a pile, stirred at 1 m/s", block, 1.0),
        peer_bench.Scene("strewn, 5 m/s", loose, 5.0),
        peer_bench.Scene("strewn, 20 m/s", loose, 20.0),
    ):
        pairs, _, tree, _ = peer_bench.run(scene)
        median = float(np.median(tree))
        kept = verdict(f"broad phase, {scene.name}", median, 500.0)
        table.add_row(scene.name, f"{pairs}", f"{median:.0f}", f"{np.percentile(tree, 99):.0f}", kept)
    return table


def scale() -> Table:
    """Logarithmic: from each size to the next the time grows no faster than LEVEL for each level of the tree."""
    names = "triangles", "rolling, us", "anywhere, us", "coal net rolling, us", "coal net anywhere, us", "logarithmic"
    table = Table(*names)
    counts, all_times = [], []
    for points in (23, 41, 72, 129, 225, 400, 708):
        triangles = 2 * (points - 1) ** 2
        times = ask_ground(points, 0.5)
        counts.append(triangles)
        all_times.append(times)
        line = logarithm(counts, all_times)
        kept = verdict(f"{triangles:,} triangles", max(times[:2]), line[-1])
        table.add_row(f"{triangles:,}", *(f"{t:.2f}" for t in times), kept)
    _draw(counts, np.array(all_times))
    return table


def logarithm(counts: Sequence[int], times: Sequence[Sequence[float]]) -> np.ndarray:
    """The bound: what the smallest terrain takes, and LEVEL more for each doubling of the triangles."""
    return max(times[0][:2]) + LEVEL * np.log2(np.array(counts) / counts[0])


def _draw(counts: list[int], times: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    for k, (name, style) in enumerate(
        (("rolling on", "o-"), ("anywhere", "s-"), ("coal, rolling on", "o--"), ("coal, anywhere", "s--"))
    ):
        axes.semilogx(counts, times[:, k], style, color="C0" if k < 2 else "C7", label=name, markersize=4)
    axes.semilogx(counts, logarithm(counts, times.tolist()), ":", color="C3", label=f"bound: {LEVEL} µs a doubling")
    axes.set_xlabel("triangles of the terrain")
    axes.set_ylabel("µs a query")
    axes.set_title("one sphere on a terrain, touching")
    axes.grid(alpha=0.3)
    axes.set_ylim(0.0, 1.3 * times.max())
    axes.legend(loc="upper left", ncols=2, fontsize="small")
    figure.savefig(DOCS / "images" / "collision_scale.png", dpi=100)


CHOICES: dict[str, Callable[[], Table]] = {
    f.__name__: f for f in (primitives, convex, meshes, broadphase, terrain, scale)
}


def main() -> None:
    wanted = sys.argv[1:] or [name for name in CHOICES if name != "scale"]
    if unknown := [name for name in wanted if name not in CHOICES]:
        raise SystemExit(f"{', '.join(unknown)}: not known; there are {', '.join(CHOICES)}")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    console = Console(width=None if sys.stdout.isatty() else 160)
    for name in wanted:
        console.print(CHOICES[name]())
    if missed_bounds:
        raise SystemExit(f"missed: {', '.join(missed_bounds)}")


if __name__ == "__main__":
    main()
