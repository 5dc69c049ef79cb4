"""The black box: which rows and samples it cuts out, and the cause it names for hand-made incidents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hilnode.shared.blackbox import Incident, cut, guess_cause, save
from hilnode.shared.machine_sample import CPU_TICK_NS, UNKNOWN, MachineSample, Sampler
from hilnode.shared.row import Col, Flag, State
from hilnode.shared.timinglog import TimingLog

MS = 1_000_000
BEGIN = 9_000 * MS
BAD = 2_510  # the tick that goes wrong


def make_columns(count: int = 6000) -> np.ndarray:
    """A 1 kHz run that keeps its time: wakes 10 µs late, steps 200 µs, 20 µs of its own."""
    columns = np.zeros((12, count), np.int64)
    columns[Col.TICK] = np.arange(count)
    columns[Col.DEADLINE] = BEGIN + columns[Col.TICK] * MS
    columns[Col.STATE] = State.RUNNING
    set_times(columns, slice(None))
    return columns


def set_times(
    columns: np.ndarray, at: int | slice, late: int = 10_000, step: int = 200_000, own: int = 20_000, flags: int = 0
) -> None:
    columns[Col.WAKE, at] = columns[Col.DEADLINE, at] + late
    columns[Col.START, at] = columns[Col.WAKE, at] + own // 2
    columns[Col.END, at] = columns[Col.START, at] + step
    columns[Col.DONE, at] = columns[Col.END, at] + own // 2
    columns[Col.FLAGS, at] = flags


def make_samples(count: int = 120, **rise: int) -> tuple[MachineSample, ...]:
    """Samples every 50 ms with quiet counters; `rise` is added from the first one after the bad tick on."""
    samples = []
    for i in range(count):
        quiet = MachineSample(BEGIN + 50 * i * MS, 7, 0, 50 * i, 0, 50_000 * i, 3, 0, 2, 1, 4 * MS, 10**8, 12 * MS * i)
        if i * 50 > BAD:
            quiet = quiet._replace(**{name: getattr(quiet, name) + by for name, by in rise.items()})
        samples.append(quiet)
    return tuple(samples)


def log_of(columns: np.ndarray, samples: tuple[MachineSample, ...] = ()) -> TimingLog:
    return TimingLog(meta={"period_ns": MS}, columns=columns, samples=samples)


def incident(late: int = 10_000, step: int = 200_000, own: int = 20_000, **rise: int) -> Incident:
    columns = make_columns()
    set_times(columns, BAD, late, step, own, Flag.OVERRUN)
    (found,) = cut(log_of(columns, make_samples(**rise)))
    return found


# --- what is cut out


def test_cuts_a_second_either_side() -> None:
    found = incident(late=2 * MS)
    assert found.tick == BAD
    assert found.rows[:, Col.TICK].tolist() == list(range(BAD - 1000, BAD + 1001))
    assert found.samples[0].time_ns <= BEGIN + (BAD - 1000) * MS
    assert found.samples[-1].time_ns >= BEGIN + (BAD + 1000) * MS
    assert len(found.samples) == 42


def test_counters_across_the_smallest_interval_around_the_overrun() -> None:
    found = incident(late=2 * MS, run_delay_ns=1_700_000, minor_faults=12)
    assert found.before is not None
    assert found.after is not None
    assert (found.before.time_ns - BEGIN, found.after.time_ns - BEGIN) == (2500 * MS, 2550 * MS)
    delta = found.delta
    assert delta is not None
    assert (delta.time_ns, delta.run_delay_ns, delta.minor_faults) == (50 * MS, 1_750_000, 12)


def test_a_long_overrun_widens_the_interval_until_it_ends() -> None:
    found = incident(late=130 * MS)
    assert found.before is not None
    assert found.after is not None
    assert (found.before.time_ns - BEGIN, found.after.time_ns - BEGIN) == (2500 * MS, 2650 * MS)


def test_overruns_of_one_window_are_one_incident() -> None:
    columns = make_columns()
    for at in (1000, 1001, 1900, 2100, 4000):
        set_times(columns, at, late=2 * MS, flags=Flag.OVERRUN)
    assert [(i.tick, i.overruns) for i in cut(log_of(columns))] == [(1000, 3), (2100, 1), (4000, 1)]
    assert [(i.tick, i.overruns) for i in cut(log_of(columns), seconds=0.2)] == [
        (1000, 2), (1900, 1), (2100, 1), (4000, 1),
    ]  # fmt: skip


def test_only_the_first_incidents() -> None:
    columns = make_columns(30_000)
    for at in range(0, 30_000, 1500):
        set_times(columns, at, late=2 * MS, flags=Flag.OVERRUN)
    assert [i.tick for i in cut(log_of(columns), first=3)] == [0, 1500, 3000]
    assert len(cut(log_of(columns))) == 8


def test_the_warm_up_is_no_incident() -> None:
    columns = make_columns()
    set_times(columns, 5, late=2 * MS, flags=Flag.OVERRUN | Flag.GRACE)
    assert cut(log_of(columns)) == []
    assert cut(TimingLog()) == []


# --- causes


def test_slow_plant() -> None:
    said = guess_cause(incident(step=3_200_000))
    assert said == "plant step took 3.2 ms of a 1 ms period: the plant is too slow here"


def test_slow_plant_is_not_excused_by_the_delay_of_many_wake_ups() -> None:
    assert "the plant is too slow" in guess_cause(incident(step=1_100_000, run_delay_ns=700_000))


def test_slow_plant_is_not_excused_by_a_few_page_faults() -> None:
    assert "the plant is too slow" in guess_cause(incident(step=3_200_000, minor_faults=5))


def test_another_task_held_the_cpu() -> None:
    said = guess_cause(incident(late=1_800_000, run_delay_ns=1_650_000, minor_faults=3))
    assert said == "woke 1.8 ms late while the run queue delay rose by 1.7 ms: another task held the CPU"


def test_preempted_within_the_plant() -> None:
    said = guess_cause(incident(step=4 * MS, run_delay_ns=3_700_000, involuntary_switches=1))
    assert "plant step took 4 ms" in said
    assert "another task held the CPU" in said


def test_steal() -> None:
    said = guess_cause(incident(late=8 * MS, cpu_steal_ticks=1))
    assert said == f"woke 8 ms late while steal rose by {CPU_TICK_NS // MS} ms: the hypervisor took the CPU"


def test_page_faults() -> None:
    assert "page faults rose by 12" in guess_cause(incident(late=1_500_000, minor_faults=12))
    assert "1 page came from the disc" in guess_cause(incident(step=3 * MS, major_faults=1))


def test_page_faults_that_are_always_there_are_no_cause() -> None:
    columns = make_columns()
    set_times(columns, BAD, late=1_500_000, flags=Flag.OVERRUN)
    steady = tuple(s._replace(minor_faults=12 * i) for i, s in enumerate(make_samples()))
    (found,) = cut(log_of(columns, steady))
    assert guess_cause(found) == "woke 1.5 ms late: cause not visible in these counters"


def test_interrupts() -> None:
    assert "irq/softirq time rose by" in guess_cause(incident(late=5 * MS, cpu_softirq_ticks=1))
    assert "irq/softirq time rose by" in guess_cause(incident(own=5 * MS, cpu_irq_ticks=2))


def test_garbage_collection() -> None:
    assert "collected garbage for 4 ms" in guess_cause(incident(own=5 * MS, gc_ns=4 * MS))


def test_stopped_while_asleep() -> None:
    said = guess_cause(incident(late=400 * MS))
    assert said.startswith("woke 400 ms late")
    assert said.endswith("node was stopped (SIGSTOP/debugger)")


def test_stopped_in_spite_of_a_little_steal() -> None:
    assert "node was stopped" in guess_cause(incident(late=400 * MS, cpu_steal_ticks=1))


def test_stopped_within_the_plant_differs_from_a_slow_plant_by_the_cpu_time() -> None:
    assert "node was stopped" in guess_cause(incident(step=400 * MS))
    assert "the plant is too slow" in guess_cause(incident(step=400 * MS, on_cpu_ns=400 * MS))


def test_a_short_silence_is_not_called_a_stop() -> None:
    assert guess_cause(incident(late=9 * MS)) == "woke 9 ms late: cause not visible in these counters"


def test_a_kernel_that_does_not_count_run_delay_proves_no_stop() -> None:
    columns = make_columns()
    set_times(columns, BAD, late=400 * MS, flags=Flag.OVERRUN)
    blind = tuple(s._replace(run_delay_ns=UNKNOWN, on_cpu_ns=UNKNOWN) for s in make_samples())
    (found,) = cut(log_of(columns, blind))
    assert found.delta is not None
    assert found.delta.run_delay_ns == UNKNOWN
    assert guess_cause(found) == "woke 400 ms late: cause not visible in these counters"
    busy = tuple(s._replace(run_delay_ns=UNKNOWN) for s in make_samples(involuntary_switches=2))
    (found,) = cut(log_of(columns, busy))
    assert "taken off the CPU 2 times" in guess_cause(found)


@pytest.mark.parametrize("kept", [slice(0, 0), slice(0, 40), slice(60, None)])
def test_without_samples_around_it(kept: slice) -> None:
    columns = make_columns()
    set_times(columns, BAD, late=2 * MS, flags=Flag.OVERRUN)
    (found,) = cut(log_of(columns, make_samples()[kept]))
    assert found.delta is None
    assert "no machine counters around this tick" in guess_cause(found)


def test_a_real_process_that_is_really_stopped() -> None:
    """The counters of a sleeping child across a SIGSTOP leave no other cause standing."""
    program = "import time; print(flush=True)\nwhile True: time.sleep(0.001)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            with Sampler(child.pid, child.pid, 0) as sampler:
                before = sampler.take()
                os.kill(child.pid, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(child.pid, signal.SIGCONT)
                time.sleep(0.02)
                after = sampler.take()
        finally:
            child.kill()
    if UNKNOWN in (before.run_delay_ns, before.cpu_steal_ticks):
        pytest.skip("this kernel does not tell run queue delay or steal")
    columns = make_columns(3)
    columns[Col.DEADLINE] = before.time_ns + np.array([1, 2, 303]) * MS
    set_times(columns, slice(None))
    set_times(columns, 1, late=300 * MS, flags=Flag.OVERRUN)
    (found,) = cut(log_of(columns, (before, after)))
    assert "node was stopped" in guess_cause(found)


# --- on disc


def test_save(tmp_path: Path) -> None:
    columns = make_columns()
    set_times(columns, BAD, late=1_800_000, flags=Flag.OVERRUN | Flag.STALE)
    set_times(columns, 4500, step=3 * MS, flags=Flag.OVERRUN)
    incidents = cut(log_of(columns, make_samples(run_delay_ns=1_650_000)))
    paths = save(incidents, tmp_path / "run")
    assert [p.name for p in paths] == ["blackbox-2510.json", "blackbox-4500.json"]
    said = json.loads(paths[0].read_text())
    assert said["cause"] == guess_cause(incidents[0])
    assert (said["tick"], said["late_ns"], said["step_ns"], said["own_ns"]) == (BAD, 1_800_000, 200_000, 20_000)
    assert said["flags"] == ["OVERRUN", "STALE"]
    assert said["counters_rose"]["run_delay_ns"] == 1_700_000
    tick = said["row_columns"].index("tick")
    assert [row[tick] for row in said["rows"]] == list(range(BAD - 1000, BAD + 1001))
    assert len(said["samples"][0]) == len(said["sample_columns"])
