"""What the tests of the page share: one browser, and a node that is made up."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import CHROMIUM, Browser, Page
from fake_node import FakeNode


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser nothing here can run: say so instead of failing, but fail where all must run."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not CHROMIUM:
            if os.environ.get("CI") == "true":
                raise pytest.UsageError("chromium is missing, and CI=true: apt-get install chromium")
            item.add_marker(pytest.mark.skip(reason="chromium is missing: apt-get install chromium"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def fake() -> Iterator[FakeNode]:
    with FakeNode() as fake:
        yield fake


@pytest.fixture
def opened(browser: Browser, fake: FakeNode) -> Iterator[Page]:
    """The viewer of the made-up node, after its first pictures; it must have nothing to complain about at the end."""
    page = browser.open(fake.url + "/")
    page.wait("window.hilnode?.frame > 2", 60)
    yield page
    problems = page.console + page.run("window.hilnode.errors")
    page.close()
    assert problems == []
