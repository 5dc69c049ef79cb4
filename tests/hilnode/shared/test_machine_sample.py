"""The machine's counters: hand-written /proc texts, and this very machine."""

from __future__ import annotations

import gc
import mmap
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

import pytest

from hilnode.shared.machine_sample import (
    PAGE_BYTES,
    UNKNOWN,
    CpuTime,
    Sampler,
    Schedule,
    parse_cpu,
    parse_schedstat,
    parse_stat,
    parse_status,
)

CPUS = (
    b"cpu  6888 0 2408 166679 613 5 44 211 0 0\n"
    b"cpu0 761 0 714 86748 21 1 7 102 0 0\n"
    b"cpu1 6126 0 1693 79931 591 4 37 109 0 0\n"
    b"cpu10 1 2 3 4 5 6 7 8 9 10\n"
    b"intr 125126 0 0\n"
)


def here() -> Sampler:
    return Sampler(os.getpid(), threading.get_native_id(), -1)


def test_stat_with_a_hostile_thread_name() -> None:
    text = b"42 (a) R 1 (b) S 3814 3814 2650 0 -1 4194304 1234 8 56 7 0 0 0 0 20 0 1 0 88650 3133440 356 1844 0\n"
    assert parse_stat(text) == (1234, 56, 356 * PAGE_BYTES)


def test_status() -> None:
    text = b"Name:\tx\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
    assert parse_status(text) == (150, 545)


def test_schedstat() -> None:
    assert parse_schedstat(b"85258396 33313 4\n") == Schedule(on_cpu_ns=85258396, run_delay_ns=33313)


def test_a_kernel_that_does_not_count_is_not_read_as_no_delay() -> None:
    assert parse_schedstat(b"0 0 0\n") == Schedule(UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("cpu", "expected"), [(0, (1, 7, 102)), (1, (4, 37, 109)), (10, (6, 7, 8)), (-1, (5, 44, 211))]
)
def test_cpu_line(cpu: int, expected: tuple[int, int, int]) -> None:
    assert parse_cpu(CPUS, cpu) == CpuTime(*expected)


def test_counts_the_same_faults_and_switches_as_getrusage() -> None:
    with here() as sampler:
        sampler.take()
        before, first = resource.getrusage(resource.RUSAGE_THREAD), sampler.take()
        with mmap.mmap(-1, 600 * PAGE_BYTES) as memory:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            for page in range(600):
                memory[page * PAGE_BYTES] = 1
            for _ in range(5):
                time.sleep(0.001)
            second, after = sampler.take(), resource.getrusage(resource.RUSAGE_THREAD)
    faults = second.minor_faults - first.minor_faults
    sleeps = second.voluntary_switches - first.voluntary_switches
    assert 600 <= faults <= after.ru_minflt - before.ru_minflt
    assert 5 <= sleeps <= after.ru_nvcsw - before.ru_nvcsw
    assert second.rss_bytes > 1 << 20


def test_time_on_cpu_tells_work_from_sleep() -> None:
    with here() as sampler:
        first = sampler.take()
        if first.on_cpu_ns == UNKNOWN:
            pytest.skip("this kernel keeps no schedstat")
        time.sleep(0.1)
        slept = sampler.take()
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        worked = sampler.take()
    assert slept.on_cpu_ns - first.on_cpu_ns < 50_000_000
    assert worked.on_cpu_ns - slept.on_cpu_ns > 50_000_000


def test_passes_on_what_only_the_node_knows_and_reads_the_clock_of_the_rows() -> None:
    with here() as sampler:
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        sample = sampler.take(gc_count=3, gc_ns=456)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert (sample.gc_count, sample.gc_ns) == (3, 456)
    assert before <= sample.time_ns <= after


def test_a_process_that_ends_keeps_its_last_values() -> None:
    program = "print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = Sampler(child.pid, child.pid, 0)
        last = sampler.take()
        assert sampler.alive
        child.kill()
    after = sampler.take()
    sampler.close()
    assert not sampler.alive
    assert last.minor_faults > 100
    assert after.minor_faults == last.minor_faults
    assert after.rss_bytes == last.rss_bytes
    assert after.run_delay_ns == last.run_delay_ns
    assert after.time_ns > last.time_ns


def test_a_process_that_never_was_and_a_cpu_that_is_not_there() -> None:
    with Sampler(2**22 + 1, 2**22 + 1, 9999) as sampler:
        sample = sampler.take()
    assert not sampler.alive
    assert (sample.minor_faults, sample.run_delay_ns, sample.cpu_steal_ticks) == (UNKNOWN, UNKNOWN, UNKNOWN)


def test_gives_its_files_back() -> None:
    gc.collect()  # so that nothing else is closed while we count
    before = len(os.listdir("/proc/self/fd"))
    sampler = here()
    assert len(os.listdir("/proc/self/fd")) > before
    sampler.close()
    sampler.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.timing
def test_a_sample_is_cheap() -> None:
    with here() as sampler:
        costs = []
        for _ in range(500):
            began = time.perf_counter_ns()
            sampler.take()
            costs.append(time.perf_counter_ns() - began)
    assert statistics.median(costs) < 150_000
