"""The same config gives the same bits: twice in one process, and in two; and the loop allocates nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from hilnode.shared.codes import Command
from hilnode.shared.row import Flag

from .bench import Bench, alarm, config, fault, stimulus, wire_in, wire_out
from .plants import pass_through

TORQUE, ELBOW = "pendulum.shoulder.torque", "pendulum.elbow.torque"
EVERYTHING = config(
    wire_in(TORQUE, "", filter_hz=80.0, rate_limit=5000.0),
    stimulus("noise", TORQUE, sigma=2.0, seed=11),
    stimulus("chirp", ELBOW, amplitude=1.0, f0_hz=0.5, f1_hz=20.0, seconds=5.0),
    fault("noise", "pendulum.shoulder.angle", sigma=0.01, seed=12),
    fault("drop", "pendulum.elbow.speed", probability=0.2, seed=13),
    fault("delay", "dev.out.1", ms=12),
    wire_out("dev.out.0", "pendulum.shoulder.angle", filter_hz=50.0),
    wire_out("dev.out.1", "pendulum.elbow.speed", rate_limit=100.0),
    alarm("pendulum.tip.z", above=0.2, action="set", set="dev.out.0", value=0.0),
    channels=2,
    bumpless_ms=100,
)
STEPS = 10_000


def digest() -> str:
    """A hash over all numbers of a run that do not come from the clock."""
    b = Bench(EVERYTHING, last_tick=STEPS)
    try:
        b.start()
        b.at(500, Command.FORCE, ELBOW, [3.0])
        b.at(600, Command.RELEASE, ELBOW)
        b.run()
        s = b.schema
        names = [x.name for x in s.signals]
        h = hashlib.sha256()
        for name in ("step", "flags", "state", "status", *names, "poses"):
            h.update(b.rows[name].tobytes())
        assert b.rows["step"][-1] == STEPS
        assert np.ptp(b.rows["pendulum.shoulder.angle"]) > 0.1
        assert b.flagged(Flag.FAULT).all()
        return h.hexdigest()
    finally:
        b.close()


def test_same_bits_twice_and_in_another_process():
    here = digest()
    assert digest() == here
    package = __name__.rpartition(".")[0]
    top = Path(__file__).resolve().parents[package.count(".") + 1]
    code = f"from {__name__} import digest; print(digest())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(top), os.environ.get("PYTHONPATH", "")])}
    there = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=120
    )
    assert there.stdout.strip() == here


@numba.njit
def _allocates(n):
    return np.zeros(n).sum()


@pytest.fixture
def counting():
    """Numba counts its allocations."""
    was = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not was:
        _nrt_python.memsys_disable_stats()


def test_loop_allocates_nothing(bench, counting):
    ticks = 200_000
    b = bench(
        config(
            wire_in("u.0", "dev.in.0", filter_hz=50.0, rate_limit=10.0, stale="ramp"),
            stimulus("noise", "u.1", sigma=1.0),
            fault("delay", "y.1", ms=20),
            wire_out("dev.out.0", "y.0"),
            wire_out("dev.out.1", "y.1", filter_hz=10.0),
            alarm("y.1", above=3.5, action="set", set="dev.out.0", value=0.0),
            channels=2,
        ),
        pass_through(channels=2),
        last_tick=ticks,
        keep=64,
    )
    counts = []
    b.on_step(lambda n: counts.append(rtsys.get_allocation_stats()), every=100, phase=50)
    b.start()
    b.run()
    assert b.rows["step"][-1] == ticks
    assert len(counts) == ticks / 100
    assert counts[0] == counts[-1]
    _allocates(10)
    assert rtsys.get_allocation_stats().alloc > counts[-1].alloc  # it does count
