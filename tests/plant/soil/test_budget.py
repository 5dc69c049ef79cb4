"""What a step of the soil may cost."""

import pytest
from bench_soil import measure


@pytest.mark.timing
def test_a_step_keeps_its_budget_on_256_by_256_samples() -> None:
    found = measure(20_000)
    for name, (_, p99, *_) in found.items():
        assert p99 <= (2 if name in ("in the air, empty", "nothing left to do") else 25), name
