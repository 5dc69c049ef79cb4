"""Compile the kernels of the node and of the engine into the cache, with lines of progress; silent if that is done."""

import os
import sys
from functools import partial

from bridge import ecu_lane, waiting
from hilnode import jit
from hilnode.cli import default_config
from hilnode.config import load, overlay
from hilnode.lockfree.ring import Ring
from hilnode.node import Node
from plant.collide.shapes import Box, Capsule, Sphere
from plant.world import World


def say(line: str) -> None:
    print(line, flush=True)


def warm_readers() -> None:
    """What the helper processes use beside the node's own kernels."""
    ring = Ring.create(f"warm-{os.getpid()}.rows", capacity=16, width=1)
    ring.reader(first=0).read()
    waiting.await_rows(ring.view, 0, 0, waiting.now(), 1000)
    ring.close()
    ecu_lane.warm_up()


def warm_engine(stepper: str) -> None:
    """The step of a core of the rigid-body engine, and the pairs of shapes that most worlds have."""
    world = World()
    world.plane()
    for i, shape in enumerate((Sphere(0.1), Box(0.2, 0.2, 0.2), Capsule(0.1, 0.2))):
        world.solid(f"body{i}", shape, density=1000, pos=(0, 0, 1 + i))
    world.compile(dt=0.001, stepper=stepper).step()


def main() -> int:
    quiet = {"node.name": f"warm-{os.getpid()}", "safety.watchdog": False, "bridge.enabled": False}
    Node(overlay(load(default_config()), **quiet), say=say).close()
    cores = [(f"the engine, stepper {name}", partial(warm_engine, name)) for name in ("spook", "ali3p")]
    jit.warm_up("engine", cores, say)
    jit.warm_up("readers", [("the readers", warm_readers)], say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
