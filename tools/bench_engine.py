"""The engine beside MuJoCo and PyBullet: the same mechanisms, dt = 1 ms, taking turns on one pinned core; medians.

    python tools/bench_engine.py

Needs mujoco and pybullet from PyPI (in the dev extra). The gap is the largest opening of a joint that was seen after
each turn of ours.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import mujoco
import numpy as np
from mujoco_peer import to_mjcf
from numba.core.runtime import _nrt_python, rtsys
from rich.console import Console
from rich.table import Table

from plant.collision.shape.shapes import Box
from plant.engine.compile import compile_world
from plant.world.world import World

TURNS, STEPS, DT = 25, 50, 1e-3
WALLS = ((1, 0), (-1, 0), (0, 1), (0, -1))
WHEELS = ((1.3, 1.0), (1.3, -1.0), (-1.3, 1.0), (-1.3, -1.0))


def excavator() -> World:
    """A wheeled excavator's topology with made-up numbers: 14 bodies, two closed loops, 8 wheel contacts, 5 motors."""
    w = World()
    w.plane()
    w.material("default", "default", friction=0.8)
    y = (0, 1, 0)
    w.body("chassis", mass=6000, inertia=(5000, 9000, 12000), pos=(0, 0, 1.0))
    for i, (px, py) in enumerate(WHEELS):
        w.body(f"wheel{i}", mass=200, inertia=(25, 40, 25), pos=(px, py, 0.5))
        w.hinge(f"axle{i}", "chassis", f"wheel{i}", at=(px, py, 0.5), axis=y)
        for dy in (-0.15, 0.15):
            w.sphere(f"wheel{i}", centre=(0, dy, 0), radius=0.5)
    for name, mass, inertia, pos in (
        ("house", 8000, (6000, 9000, 9000), (-0.5, 0, 2.0)),
        ("boom", 1500, (300, 4000, 4000), (2.0, 0, 3.5)),
        ("stick", 700, (100, 700, 700), (4.5, 0, 3.5)),
        ("bucket", 600, (150, 150, 150), (5.2, 0, 1.8)),
        ("barrel", 150, (10, 50, 50), (1.2, 0, 2.4)),
        ("piston", 100, (8, 40, 40), (1.6, 0, 2.9)),
        ("rocker", 60, (3, 5, 5), (4.7, 0, 2.6)),
        ("link", 50, (3, 5, 5), (5.1, 0, 2.6)),
        ("blade", 400, (60, 40, 80), (2.0, 0, 0.6)),
    ):
        w.body(name, mass=mass, inertia=inertia, pos=pos)
    w.hinge("swing", "chassis", "house", at=(0, 0, 1.3), axis=(0, 0, 1))
    w.hinge("barrel_pin", "house", "barrel", at=(0.9, 0, 2.0), axis=y)
    w.prismatic("cylinder", "barrel", "piston", at=(1.4, 0, 2.65), axis=(0.7, 0, 0.9))
    for name, a, b, at in (
        ("boom_foot", "house", "boom", (0.5, 0, 2.2)),
        ("stick_pin", "boom", "stick", (4.0, 0, 4.2)),
        ("bucket_pin", "stick", "bucket", (5.0, 0, 2.3)),
        ("piston_pin", "piston", "boom", (1.8, 0, 3.2)),
        ("rocker_pin", "stick", "rocker", (4.85, 0, 2.7)),
        ("link_pin", "rocker", "link", (5.0, 0, 2.8)),
        ("link_bucket", "link", "bucket", (5.25, 0, 2.3)),
        ("blade_pin", "chassis", "blade", (1.6, 0, 0.8)),
    ):
        w.hinge(name, a, b, at=at, axis=y)
    w.motor("drive_swing", "swing", force=1e5)
    w.motor("drive_boom", "cylinder", axis="z", speed=0.05, force=5e5)
    w.motor("drive_stick", "stick_pin", speed=0.1, force=3e5)
    w.motor("drive_bucket", "rocker_pin", speed=0.1, force=1e5)
    w.motor("drive_blade", "blade_pin", force=1e5)
    return w


def chain(links: int, hinged: bool = False) -> World:
    """Links of 1 kg and 0.1 m, level at first, hanging on their first end."""
    w, before = World(), None
    for k in range(links):
        w.body(f"b{k}", mass=1, inertia=(1e-3, 1e-3, 1e-3), pos=(0.1 * k + 0.05, 0, 0))
        if hinged:
            w.hinge(f"j{k}", before, f"b{k}", at=(0.1 * k, 0, 0), axis=(0, 1, 0))
        else:
            w.ball(f"j{k}", before, f"b{k}", at=(0.1 * k, 0, 0))
        before = f"b{k}"
    return w


def stack(boxes: int) -> World:
    """Cubes of 0.2 m and 1 kg on each other."""
    w = World()
    w.plane()
    for k in range(boxes):
        w.solid(f"box{k}", Box(0.2, 0.2, 0.2), density=125, pos=(0, 0, 0.1 + 0.2 * k))
    return w


def pile(boxes: int) -> World:
    """Cubes of 0.2 m and 1 kg, dropped between four walls."""
    rng = np.random.default_rng(1)
    w = World()
    w.plane()
    for x, y in WALLS:
        w.plane(normal=(x, y, 0), offset=-0.5)
    for k in range(boxes):
        layer, place = divmod(k, 9)
        turned = rng.normal(size=4)
        w.solid(
            f"box{k}",
            Box(0.2, 0.2, 0.2),
            density=125,
            pos=(0.33 * (place % 3 - 1), 0.33 * (place // 3 - 1), 0.3 + 0.36 * layer),
            quat=turned / np.linalg.norm(turned),
        )
    return w


def compare(world: World, settle: int = 200) -> tuple[float, float, float]:
    """Microseconds a step of ours and of MuJoCo's, and our largest gap [mm]."""
    model = mujoco.MjModel.from_xml_string(to_mjcf(world, DT))
    data = mujoco.MjData(model)
    data.ctrl[:] = [a.speed for a in world.actuators.values()]
    engine = compile_world(world, DT)
    assert engine.step(settle) == 0
    mujoco.mj_step(model, data, settle)
    ours, theirs, gap = in_turns(
        lambda: check(engine.step(STEPS)), lambda: mujoco.mj_step(model, data, STEPS), engine.gap
    )
    return ours, theirs, gap * 1e3


def in_turns(
    ours: Callable[[], None], theirs: Callable[[], None], look: Callable[[], float] = lambda: 0.0
) -> tuple[float, float, float]:
    """Medians [us a step] of two that take turns, and the largest of what `look` says after each of ours."""
    mine, other, seen = [], [], 0.0
    for _ in range(TURNS):
        began = time.perf_counter()
        ours()
        mine.append(time.perf_counter() - began)
        seen = max(seen, look())
        began = time.perf_counter()
        theirs()
        other.append(time.perf_counter() - began)
    scale = 1e6 / STEPS
    return float(np.median(mine)) * scale, float(np.median(other)) * scale, seen


def compare_pile(boxes: int) -> tuple[float, float, int, int]:
    """Microseconds a step of ours and of PyBullet's on a pile that has come to rest, and the contacts of both.

    Ours settles it; PyBullet takes it over and settles it once more.
    """
    import pybullet

    engine = compile_world(pile(boxes), DT, contacts=20 * boxes)
    assert engine.step(4000) == 0
    state = engine.content.data.state
    pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.80665)
    pybullet.setTimeStep(DT)
    for normal, at in (((0, 0, 1), (0, 0, 0)), *(((x, y, 0), (-0.5 * x, -0.5 * y, 0)) for x, y in WALLS)):
        plane = pybullet.createCollisionShape(pybullet.GEOM_PLANE, planeNormal=normal)
        pybullet.createMultiBody(0, plane, basePosition=at)
    cube = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1] * 3)
    for k in range(boxes):
        w, x, y, z = state.quat[k]
        pybullet.createMultiBody(1.0, cube, basePosition=state.pos[k].tolist(), baseOrientation=[x, y, z, w])

    def theirs() -> None:
        for _ in range(STEPS):
            pybullet.stepSimulation()

    for _ in range(10):
        theirs()
    mine, other, _ = in_turns(lambda: check(engine.step(STEPS)), theirs)
    contacts = len(pybullet.getContactPoints())
    pybullet.disconnect()
    return mine, other, int(engine.content.data.contact.count[0]), contacts


def check(status: int) -> None:
    assert status == 0, status


def rebuild_cost(world: World) -> float:
    """Microseconds that a step takes longer when its graph is laid out anew."""
    engine = compile_world(world, DT)
    engine.step(200)
    plain, anew = [], []
    for _ in range(200):
        began = time.perf_counter()
        engine.step()
        plain.append(time.perf_counter() - began)
        engine.content.data.graph.dirty[0] = 1
        began = time.perf_counter()
        engine.step()
        anew.append(time.perf_counter() - began)
    return float(np.median(anew) - np.median(plain)) * 1e6


def allocations(world: World) -> int:
    """Allocations by compiled code in 1000 steps."""
    engine = compile_world(world, DT)
    engine.step(10)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    engine.step(1000)
    return int(rtsys.get_allocation_stats().alloc - before)


def main() -> None:
    began = time.perf_counter()
    compile_world(stack(2), DT).step()
    first = time.perf_counter() - began
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = Table("mechanism", r"hilnode \[us]", r"peer \[us]", "ratio", r"gap \[mm]", "bound")
    for name, world, bound in (
        ("14-body excavator, 8 contacts", excavator(), "<= 1.0x MuJoCo, 0.01 mm"),
        ("100-link ball chain", chain(100), "<= 0.15x MuJoCo, 0.01 mm"),
        ("100-link hinge chain, spook", chain(100, hinged=True), "see bench_articulated.py"),
        ("10-box stack at rest, 40 contacts", stack(10), "<= 1.0x MuJoCo"),
    ):
        ours, theirs, gap = compare(world)
        table.add_row(name, f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}", f"{gap:.4f}", bound)
    ours, theirs, mine, other = compare_pile(200)
    name = f"200-box pile, {mine} contacts (peer {other})"
    table.add_row(name, f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}", "", "<= 1.0x PyBullet")
    for links in (10, 30, 100, 300, 1000):
        engine = compile_world(chain(links), DT)
        engine.step(20)
        best = math.inf
        for _ in range(10):
            began = time.perf_counter()
            engine.step(20)
            best = min(best, time.perf_counter() - began)
        table.add_row(f"ball chain of {links}", f"{best / 20 * 1e6:.1f}", "", "", "", "linear")
    Console().print(table)
    print(f"first world, compiled and stepped: {first:.1f} s (cold: minutes; warm: what it takes to load the kernels)")
    print(f"graph laid out anew, excavator: {rebuild_cost(excavator()):.1f} us more in that step")
    print(f"allocations in 1000 steps, excavator: {allocations(excavator())}")


if __name__ == "__main__":
    main()
