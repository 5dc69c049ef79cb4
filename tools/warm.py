"""Compile every kernel of the node into the cache, with a line of progress each; silent if that is done."""

import os
import sys

from bridge import publisher
from hilnode import jit
from hilnode.cli import default_config
from hilnode.config import load, overlay
from hilnode.lockfree.ring import Ring
from hilnode.node import Node


def say(line: str) -> None:
    print(line, flush=True)


def warm_readers() -> None:
    """What the helper processes use beside the node's own kernels."""
    ring = Ring.create(f"warm-{os.getpid()}.rows", capacity=16, width=1)
    ring.reader(first=0).read()
    publisher.await_rows(ring.view, 0, publisher.now())
    ring.close()


def main() -> int:
    quiet = {"node.name": f"warm-{os.getpid()}", "safety.watchdog": False, "bridge.enabled": False}
    Node(overlay(load(default_config()), **quiet), say=say).close()
    jit.warm_up("readers", [("the readers", warm_readers)], say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
