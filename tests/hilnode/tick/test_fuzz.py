"""Random commands, sixteen at each tick: whatever is asked, what must always hold does hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hilnode.shared.codes import Answer, Command, Event
from hilnode.shared.row import State
from hilnode.tick.faults import Kind
from hilnode.tick.layout import Exit
from hilnode.tick.stimulus import Wave

from .bench import alarm, config, stimulus, wire_in, wire_out
from .plants import counter, failing, with_tasks

TICKS = 150
SAFE = -3.0
CONFIGURED, ARMED, RUNNING, TRIPPED, CLEARED, STOPPED = State
WAYS = {
    (CONFIGURED, ARMED),
    (CLEARED, ARMED),
    (ARMED, RUNNING),
    (TRIPPED, CLEARED),
    *((state, TRIPPED) for state in (CONFIGURED, ARMED, RUNNING, CLEARED)),
    *((state, CONFIGURED) for state in (ARMED, RUNNING, CLEARED)),
}


def command(rng: np.random.Generator) -> tuple[Command, int, list[float]]:
    """Any op; index and parameters mostly sensible, sometimes not."""
    op = Command(rng.choice([*Command, Command.ARM, Command.RUN, Command.RUN, Command.CLEAR]))
    index = int(rng.choice([*range(-2, 5), 31, 32, 2**40]))
    if op == Command.TRIP:
        return op, 0, []
    if op == Command.SPEED:
        return op, 0, [float(rng.choice([1.0, 10.0, 100.0, 0.0, np.nan, 1e9]))]
    if op == Command.STEP:
        return op, 0, [float(rng.choice([0.0, 1.0, 3.0, np.nan]))]
    if op in (Command.STIMULUS, Command.FAULT):
        kinds = [k for k in (Wave if op == Command.STIMULUS else Kind) if k != Wave.TABLE]
        span = [0.0, float(rng.choice([0.05, np.inf]))]
        return (
            op,
            index,
            [float(rng.integers(-1, 4)), float(rng.choice([0, *kinds])), 1.0, *span, *rng.uniform(1, 9, 6)],
        )
    return op, index, [float(rng.normal(0.0, 5.0))]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_asked(bench, seed):
    rng = np.random.default_rng(seed)
    b = bench(
        config(
            wire_in(source="", clamp=[-40.0, 40.0], rate_limit=2000.0),
            stimulus("sine", amplitude=2.0, frequency_hz=20.0),
            wire_out(safe=SAFE, rate_limit=3000.0),
            alarm("u.0", above=30.0, action="trip"),
            alarm("y.0", above=50.0, action="set", set="dev.out.0", value=-2.0),
            bumpless_ms=4,
        ),
        with_tasks(counter(), (failing(at=range(40, 60)), 7, 3)),
        last_tick=TICKS,
    )
    asked = [b.at(tick, *command(rng)) for tick in range(TICKS) for _ in range(12)]
    assert b.run() == Exit.ENDED
    r = b.rows
    assert (r["tick"] == np.arange(TICKS)).all()
    # devices leave their safe value while running, and only then
    resting = r["state"] != RUNNING
    assert (r["dev.out.0"][resting] == SAFE).all()
    assert resting.any()
    assert (~resting).any()
    for name in ("u.0", "y.0", "dev.out.0"):
        assert np.isfinite(r[name]).all()
    # the plant moves by one step, stands, or begins again; it moves only while running
    moved = np.diff(r["step"], prepend=0)
    assert (moved[resting] <= 0).all()
    assert ((moved == 0) | (moved == 1) | (r["step"] <= 1)).all()
    # every change of state is a known one, and each begins where the last ended
    changes = [(State(int(h.value)), State(h.index)) for h in b.heard(Event.STATE)]
    assert set(changes[:-1]) <= WAYS
    assert all(a[1] == z[0] for a, z in pairwise(changes))
    assert changes[-1][1] == STOPPED
    # every command has its answer, at its tick
    assert [b.answers[i].tick for i in asked] == [k // 12 for k in range(len(asked))]
    assert {Answer(b.answers[i].index) for i in asked} >= {Answer.DONE, Answer.WRONG_STATE, Answer.UNKNOWN}
