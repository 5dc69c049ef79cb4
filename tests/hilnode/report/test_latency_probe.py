"""The probe's arithmetic against closed forms, its loop against the clock, its scale against LinuxCNC's manual."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest

from hilnode.report import latency_probe
from hilnode.report.latency_probe import GRADES, Probe, grade, measure, sentence, summarise

SCALE = [
    (0.0, "excellent"),
    (19.999, "excellent"),
    (20.0, "good"),
    (49.999, "good"),
    (50.0, "usable"),
    (99.999, "usable"),
    (100.0, "slack needed"),
    (1000.0, "slack needed"),
    (1000.001, "not suited"),
    (math.inf, "not suited"),
    (math.nan, "not suited"),
]


def probe(max_us: float = 30.0, *, samples: int = 3000, pinned: bool = True, fifo: bool = True) -> Probe:
    return Probe(1, samples, 1000.0, 5.0, 10.0, 20.0, max_us, pinned, fifo)


@pytest.mark.parametrize(("max_us", "name"), SCALE)
def test_grade_at_its_borders(max_us: float, name: str) -> None:
    assert grade(max_us).name == name


def test_the_scale_rises() -> None:
    borders = [g.below_us for g in GRADES]
    assert borders == sorted(set(borders))
    assert borders[-1] == math.inf


def test_percentiles_of_an_even_ramp() -> None:
    ramp = np.random.default_rng(1).permutation(np.arange(1001, dtype=np.int64) * 1000)
    found = summarise(ramp, cpu=2, period_ns=500_000, pinned=True, fifo=False)
    assert (found.p50_us, found.p99_us, found.p999_us, found.max_us) == pytest.approx((500.0, 990.0, 999.0, 1000.0))
    assert (found.cpu, found.samples, found.period_us) == (2, 1001, 500.0)
    assert found.seconds == pytest.approx(1001 * 500e-6)
    assert (found.pinned, found.fifo) == (True, False)


def test_probe_for_real() -> None:
    cpu = max(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0), os.sched_getscheduler(0)
    began = time.monotonic()
    found = measure(cpu, 0.2)
    assert time.monotonic() - began >= 0.2
    assert (found.cpu, found.samples, found.period_us) == (cpu, 200, 1000.0)
    assert found.pinned
    values = [found.p50_us, found.p99_us, found.p999_us, found.max_us]
    assert all(math.isfinite(v) for v in values)
    assert values == sorted(values)
    assert values[0] > 0.0  # an absolute sleep never ends early, and reading the clock takes time
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before


def test_idle_states_are_held_off_only_while_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    loop = latency_probe._loop

    class Awake:
        def __init__(self) -> None:
            events.append("awake")

        def close(self) -> None:
            events.append("released")

    def watched(period_ns: int, latencies: np.ndarray, stop: np.ndarray) -> int:
        events.append(f"loop {latencies.size}")
        return loop(period_ns, latencies, stop)

    monkeypatch.setattr(latency_probe, "AwakeCpus", Awake)
    monkeypatch.setattr(latency_probe, "_loop", watched)
    measure(0, 0.01)
    assert events == ["loop 1", "awake", "loop 10", "released"]


def test_no_latency_is_negative_and_no_deadline_is_skipped() -> None:
    latencies = np.full(200, -1, dtype=np.int64)
    code = latency_probe._loop(1, latencies, np.zeros(1, dtype=np.int64))
    assert code == 0
    assert latencies.min() >= 0
    assert np.diff(latencies).min() >= -1  # deadlines 1 ns apart: lateness only grows, but for that nanosecond


def test_loop_ends_at_the_flag() -> None:
    latencies = np.full(50, -1, dtype=np.int64)
    latency_probe._loop(1000, latencies, np.ones(1, dtype=np.int64))
    assert latencies[0] >= 0
    assert (latencies[1:] == -1).all()


def test_ctrl_c_ends_the_measurement() -> None:
    main = threading.main_thread().ident
    assert main is not None
    measure(0, 0.01)  # compiled before the clock runs
    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        measure(0, 20.0)
    timer.join()
    assert time.monotonic() - began < 5.0


def test_refused_pinning_is_told() -> None:
    found = measure(100_000, 0.01)
    assert not found.pinned
    assert "CPU 100000 was refused" in sentence(found)


def test_refused_fifo_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(latency_probe.os, "sched_setscheduler", refuse)
    found = measure(0, 0.01)
    assert not found.fifo
    assert "without SCHED_FIFO" in sentence(found)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_duration_is_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="give a positive number"):
        measure(0, seconds)


def test_a_period_is_positive() -> None:
    with pytest.raises(ValueError, match="1 kHz"):
        measure(0, 0.1, period_ns=0)


def test_sentence_says_share_and_use() -> None:
    assert "30 us late: 3 % of a period" in sentence(probe(30.0))
    assert "2.5 ms late: 2.5 periods" in sentence(probe(2500.0))
    assert "software stepping at a lower step rate" in sentence(probe(30.0))
    assert "SCHED_FIFO" not in sentence(probe())


def test_sentence_warns_of_a_glimpse_only() -> None:
    assert "3 s is a glimpse" in sentence(probe(samples=3000))
    assert "glimpse" not in sentence(probe(samples=300_000))
