"""Waiting for rows without the GIL: the compiled part of the bridge, in a file of its own so that changes
elsewhere do not compile it again."""

from __future__ import annotations

from hilnode.core.jit import kernel
from hilnode.shared.clock import now_ns, sleep_until
from hilnode.shared.lockfree.ring import RingView, pushed


@kernel
def await_rows(ring: RingView, row: int, due: int, until: int, poll: int) -> int:
    """Sleep until row number `row` is there or it is `until`; answers how many rows there are.

    Before `due`, when the row can not be there yet, nobody looks; from then on every `poll` ns. All times are ns of
    CLOCK_MONOTONIC.
    """
    now = now_ns()
    count = pushed(ring)
    while now < until and count <= row:
        sleep_until(min(until, max(due, now + poll)))
        now = now_ns()
        count = pushed(ring)
    return count


@kernel
def now() -> int:
    """CLOCK_MONOTONIC [ns], for Python."""
    return now_ns()
