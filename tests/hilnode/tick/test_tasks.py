"""Slower tasks beside the plant: which steps, in which order, and what their status does."""

from __future__ import annotations

import numpy as np
import pytest

from hilnode.shared.codes import Cause, Event
from hilnode.shared.row import State

from .bench import config, stimulus
from .plants import BROKEN, counter, failing, pass_through, with_tasks

CONSTANT = stimulus("constant", value=-5.0)


@pytest.mark.parametrize(("every", "phase"), [(1, 0), (2, 0), (2, 1), (5, 3), (1000, 7)])
def test_every_and_phase(bench, every, phase):
    """The counter overwrites the output of the plant before it on the steps on which it runs."""
    b = bench(config(CONSTANT), with_tasks(pass_through(), (counter(), every, phase)), last_tick=100)
    b.start()
    b.run()
    n = np.arange(100)
    runs = n % every == phase
    assert (b.rows["y.0"] == np.where(runs, np.cumsum(runs), -5.0)).all()


def test_tasks_run_in_the_order_of_the_list(bench):
    last = bench(config(CONSTANT), with_tasks(pass_through(), (counter(), 1, 0)), last_tick=10)
    last.start()
    last.run()
    assert (last.rows["y.0"] == np.arange(1, 11)).all()
    first = bench(config(CONSTANT), with_tasks(counter(), (pass_through(), 1, 0)), last_tick=10)
    first.start()
    first.run()
    assert (first.rows["y.0"] == -5.0).all()


def test_every_task_is_told_the_same_step(bench):
    seen: list[int] = []
    b = bench(config(), with_tasks(pass_through(), (counter(), 3, 2)), last_tick=10)
    b.on_step(seen.append)
    b.start()
    b.run()
    assert seen == list(range(10))


def test_status_of_a_slow_task_trips_in_that_tick(bench):
    b = bench(config(), with_tasks(pass_through(), (failing(at=[6, 7]), 4, 3), (counter(), 1, 0)), last_tick=30)
    b.start()
    b.run()
    r = b.rows
    assert [(h.tick, h.index, h.value) for h in b.heard(Event.TRIP)] == [(7, Cause.PLANT, BROKEN)]
    assert r["status"].tolist() == [0] * 7 + [BROKEN] + [0] * 22
    assert (r["state"] == np.where(np.arange(30) < 7, State.RUNNING, State.TRIPPED)).all()
    assert (r["y.0"][:7] == np.arange(1, 8)).all()
    assert (r["y.0"][7:] == 0.0).all()  # the plant ran, the tasks after the failing one did not


def test_task_that_never_runs_is_harmless(bench):
    b = bench(config(), with_tasks(pass_through(), (failing(at=range(100)), 2000, 1999)), last_tick=100)
    b.start()
    b.run()
    assert (b.rows["state"] == State.RUNNING).all()


@pytest.mark.parametrize(("every", "phase"), [(0, 0), (2, 2), (3, -1), (-1, 0)])
def test_impossible_phase_is_refused_with_names(every, phase):
    with pytest.raises(ValueError, match="pass_through, task counter: phase"):
        with_tasks(pass_through(), (counter(), every, phase))
