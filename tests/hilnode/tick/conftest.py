"""Benches that are taken down after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .bench import Bench


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    """Makes benches, as many as a test wants."""
    made: list[Bench] = []

    def make(*arguments: Any, **options: Any) -> Bench:
        made.append(Bench(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
