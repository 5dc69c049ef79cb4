"""What all tests share: names of their own in shared memory, and a word about the tests that were left out."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from support import SHM

_numbers = itertools.count()


@pytest.fixture
def name() -> Iterator[str]:
    """A name that no other test and no other run of the tests has; what it leaves in shared memory is removed."""
    mine = f"t{os.getpid()}-{next(_numbers)}"
    yield mine
    for path in SHM.glob(f"hilnode.{mine}*"):
        path.unlink(missing_ok=True)


LEFT_OUT = {
    "slow": "make test-slow",
    "timing": "make test-timing, on a quiet machine",
    "hardware": "pytest -m hardware, with the devices",
    "lab": "make test-lab",
    "web": "make test-web, with chromium",
}
_deselected = dict.fromkeys(LEFT_OUT, 0)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in LEFT_OUT:
            _deselected[mark] += item.get_closest_marker(mark) is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells whoever writes the summary what it has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = _deselected


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker has left out the same."""
    _deselected.update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, and how to run it."""
    for mark, count in _deselected.items():
        if count:
            terminalreporter.write_line(f"left out: {count} {mark} tests ({LEFT_OUT[mark]})")
