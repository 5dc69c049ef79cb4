"""Tests in the virtual lab PC, which `make test-lab` starts; anywhere else they are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from labvm.vcan import VirtualBus


@pytest.fixture(autouse=True, scope="session")
def _in_the_lab() -> None:
    if os.environ.get("HILNODE_LAB") != "1":
        pytest.skip("needs the virtual lab PC: make test-lab")


@pytest.fixture
def bus() -> Iterator[VirtualBus]:
    """A CAN bus in software that is up, with a name of its own."""
    with VirtualBus(f"vcan{os.getpid()}") as made:
        yield made
