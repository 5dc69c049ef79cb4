"""What all tests share: names of their own in shared memory, who runs beside whom, a word about what was left out."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from company import bears_company, rank_of
from support import SHM

_numbers = itertools.count()


@pytest.fixture
def name() -> Iterator[str]:
    """A name that no other test and no other run of the tests has; what it leaves in shared memory is removed."""
    mine = f"t{os.getpid()}-{next(_numbers)}"
    yield mine
    for path in SHM.glob(f"hilnode.{mine}*"):
        path.unlink(missing_ok=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("together", "alone"),
        help="only the tests that bear company, or only those that want the machine to themselves (tests/company.py)",
    )


@pytest.hookimpl(tryfirst=True)  # before the marks: what is left out is counted in the part that it belongs to
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if part := config.getoption("--part"):
        items[:] = [item for item in items if _part_of(item) == part]
    if part == "together":
        items.sort(key=lambda item: rank_of(item.nodeid))


def _part_of(item: pytest.Item) -> str:
    shares = bears_company(item.nodeid) and not item.get_closest_marker("alone")
    return "together" if shares else "alone"


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
