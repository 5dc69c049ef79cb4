"""Compile the kernels of the node and of the engine into the cache, with lines of progress; silent if that is done.

Each part is compiled in a process of its own, on as many cores as there are.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from hilnode.core import jit


def warm_node() -> None:
    """The tick, with the smallest plant."""
    from pathlib import Path

    from hilnode.config.config import load, overlay
    from hilnode.node.node import Node

    small = Path(__file__).resolve().parent.parent / "configs" / "pendulum.toml"
    quiet = {"node.name": f"warm-{os.getpid()}", "safety.watchdog": False, "bridge.enabled": False}
    Node(overlay(load(small), **quiet), say=lambda _: None).close()


def warm_readers() -> None:
    """What the helper processes use beside the node's own kernels."""
    from bridge.ecu import lane
    from bridge.protocol import waiting
    from hilnode.shared.lockfree.ring import Ring

    ring = Ring.create(f"warm-{os.getpid()}.rows", capacity=16, width=1)
    ring.reader(first=0).read()
    waiting.await_rows(ring.view, 0, 0, waiting.now(), 1000)
    ring.close()
    lane.warm_up()


def warm_default() -> None:
    """The default machine, on the core that it shares with most worlds."""
    from plant.machines.excavator.plant import create

    warm_engine("spook")
    create(0.001)


def warm_engine(stepper: str) -> None:
    """The step of a core of the rigid-body engine, and the pairs of shapes that most worlds have."""
    from plant.collision.shape.shapes import Box, Capsule, Sphere
    from plant.world.world import World

    world = World()
    world.plane()
    for i, shape in enumerate((Sphere(0.1), Box(0.2, 0.2, 0.2), Capsule(0.1, 0.2))):
        world.solid(f"body{i}", shape, density=1000, pos=(0, 0, 1 + i))
    world.compile(dt=0.001, stepper=stepper).step()


def warm_pairs(family: str) -> None:
    """The pairs of shapes that few worlds have, but many tests: two workers would compile them side by side."""
    from plant.collision.model import Kind
    from plant.collision.pairs.table import known_pairs, pair_table

    rings, surfaces = {Kind.TORUS, Kind.LINK}, {Kind.MESH, Kind.FIELD}

    def family_of(pair: tuple[Kind, Kind]) -> str:
        return "rings" if rings.intersection(pair) else "surfaces" if surfaces.intersection(pair) else "solids"

    pair_table(sorted(pair for pair in known_pairs() if family_of(pair) == family))


JOBS: dict[str, Callable[[], None]] = {  # the longest first
    "the engine, stepper spook, and the excavator": warm_default,
    "the engine, stepper ali3p": partial(warm_engine, "ali3p"),
    "pairs of rings": partial(warm_pairs, "rings"),
    "pairs of surfaces": partial(warm_pairs, "surfaces"),
    "pairs of solids": partial(warm_pairs, "solids"),
    "the node": warm_node,
    "the readers": warm_readers,
}


def run(name: str) -> float:
    """One job, its progress on stderr left away; how long it took."""
    began = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        sys.stderr = nowhere
        JOBS[name]()
        sys.stderr = sys.__stderr__
    return time.perf_counter() - began


def main() -> int:
    if jit.is_warm("all"):
        return 0
    print(f"compiling for this machine, once, into {jit.HOME}: some minutes if it is empty", flush=True)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(JOBS), os.cpu_count() or 1), mp_context=spawned) as pool:
        waiting = {pool.submit(run, name): name for name in JOBS}
        for count, done in enumerate(as_completed(waiting), 1):
            print(f"compiled {waiting[done]} in {done.result():.0f} s ({count}/{len(JOBS)})", flush=True)
    jit.mark_warm("all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
