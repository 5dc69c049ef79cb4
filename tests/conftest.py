"""What several folders of tests share: names of their own in shared memory, and a look at what was left behind."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SHM = Path("/dev/shm")
_numbers = itertools.count()


def left_in_memory(name: str) -> list[str]:
    """Segments whose name begins with `name`."""
    return sorted(path.name for path in SHM.glob(f"hilnode.{name}*"))


@pytest.fixture
def name() -> Iterator[str]:
    """A name that no other test and no other run of the tests has; what it leaves in shared memory is removed."""
    mine = f"t{os.getpid()}-{next(_numbers)}"
    yield mine
    for path in SHM.glob(f"hilnode.{mine}*"):
        path.unlink(missing_ok=True)
