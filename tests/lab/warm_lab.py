"""Compile what the lab's tests use, outside the lab: `python warm_lab.py`. Silent if that is done."""

import os
import sys
from pathlib import Path

import numpy as np

from hilnode.core import jit
from hilnode.shared.lockfree.mailbox import Mailbox

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import warm


def say(line: str) -> None:
    print(f"lab: {line}", flush=True)


def warm_mailbox() -> None:
    box = Mailbox.create(f"warm{os.getpid()}.box", channels=1)
    box.put(np.zeros(1), np.zeros(1, np.int64))
    box.take()
    box.close()


if __name__ == "__main__":
    jit.warm_up("lab", [("the mailbox", warm_mailbox), ("the node", warm.warm_node)], say)
