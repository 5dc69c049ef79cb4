"""Counters of the kernel that explain a late tick, sampled about twenty times a second.

When a tick is late, the row says by how much, but not why. These counters say why: another task held the CPU
(run-queue delay), the hypervisor took it (steal), memory was not there (page faults), an interrupt ran. They are read
from outside, by the recorder, so that the tick itself pays nothing.

The files below /proc are opened once and re-read with `pread`: one sample costs tens of microseconds.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple, Self

UNKNOWN = -1
"""A counter that this kernel does not tell. Zero would claim that nothing happened."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CPU_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
"""The kernel counts steal and interrupt time in units of this length, commonly 10 ms."""

CPU_LINE_BYTES = 220  # the longest line a CPU can have in /proc/stat: ten 20-digit numbers


class MachineSample(NamedTuple):
    """Counters of the tick's thread and of its CPU since they began, at one time; `UNKNOWN` where not told."""

    time_ns: int  # CLOCK_MONOTONIC, as the times in a row
    minor_faults: int  # pages mapped without the disc
    major_faults: int  # pages fetched from the disc
    voluntary_switches: int  # the thread went to sleep
    involuntary_switches: int  # the thread was taken off its CPU
    run_delay_ns: int  # ready to run, but waiting for a CPU
    cpu_steal_ticks: int  # the hypervisor ran something else [CPU_TICK_NS]
    cpu_irq_ticks: int  # [CPU_TICK_NS]
    cpu_softirq_ticks: int  # [CPU_TICK_NS]
    gc_count: int  # Python garbage collections in the node
    gc_ns: int  # and the time they took
    rss_bytes: int  # memory of the whole process that is in RAM
    on_cpu_ns: int = UNKNOWN  # the thread really ran; tells a long computation from a stopped process


class ThreadCounters(NamedTuple):
    """What /proc/PID/task/TID/stat tells."""

    minor_faults: int = UNKNOWN
    major_faults: int = UNKNOWN
    rss_bytes: int = UNKNOWN


class Switches(NamedTuple):
    """What /proc/PID/task/TID/status tells."""

    voluntary: int = UNKNOWN
    involuntary: int = UNKNOWN


class Schedule(NamedTuple):
    """What /proc/PID/task/TID/schedstat tells."""

    on_cpu_ns: int = UNKNOWN
    run_delay_ns: int = UNKNOWN


class CpuTime(NamedTuple):
    """What one CPU's line of /proc/stat tells."""

    irq: int = UNKNOWN
    softirq: int = UNKNOWN
    steal: int = UNKNOWN


def parse_stat(text: bytes) -> ThreadCounters:
    """Read proc(5) `stat`. The thread's name may hold spaces and brackets: count from the last bracket."""
    fields = text[text.rindex(b")") + 1 :].split()  # fields[0] is field 3 of the manual page
    return ThreadCounters(int(fields[7]), int(fields[9]), int(fields[21]) * PAGE_BYTES)


def parse_status(text: bytes) -> Switches:
    """Read the two last lines of proc(5) `status`."""
    at = text.index(b"\nvoluntary_ctxt_switches:")
    words = text[at:].split()
    return Switches(int(words[1]), int(words[3]))


def parse_schedstat(text: bytes) -> Schedule:
    """Read time on the CPU and time in the run queue. A kernel that does not count says `0 0 0`."""
    on_cpu, delay, slices = (int(word) for word in text.split()[:3])
    return Schedule(on_cpu, delay) if slices else Schedule()


def parse_cpu(text: bytes, cpu: int) -> CpuTime:
    """Read one CPU's line of proc(5) /proc/stat; a negative `cpu` means the sum over all."""
    if cpu < 0:
        at = text.index(b"cpu ")
    else:
        at = text.index(b"\ncpu%d " % cpu)
    words = text[at:].split(maxsplit=9)
    return CpuTime(int(words[6]), int(words[7]), int(words[8]))


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


class Sampler:
    """Reads the counters of one thread and of the CPU it is pinned to (negative: it is not pinned, all CPUs).

    It never raises because of the machine: what cannot be read is `UNKNOWN`, and a thread that
    has ended keeps its last values, since the last sample is the one that matters after a crash.
    """

    def __init__(self, pid: int, tid: int, cpu: int) -> None:
        task = f"/proc/{pid}/task/{tid}"
        self._cpu = cpu
        self._cpu_bytes = CPU_LINE_BYTES * (max(cpu, 0) + 2)
        self._stat = _open(f"{task}/stat")
        self._status = _open(f"{task}/status")
        self._schedstat = _open(f"{task}/schedstat")
        self._cpus = _open("/proc/stat")
        self._thread = ThreadCounters()
        self._switches = Switches()
        self._schedule = Schedule()
        self._cpu_time = CpuTime()
        self.alive = self._stat is not None
        """Whether the thread was there when last looked at."""

    def take(self, gc_count: int = 0, gc_ns: int = 0) -> MachineSample:
        """Read all counters now. The node passes what its garbage collector did; nobody else can know."""
        now = time.monotonic_ns()
        self._read_thread()
        self._read_cpu()
        return MachineSample(
            time_ns=now,
            minor_faults=self._thread.minor_faults,
            major_faults=self._thread.major_faults,
            voluntary_switches=self._switches.voluntary,
            involuntary_switches=self._switches.involuntary,
            run_delay_ns=self._schedule.run_delay_ns,
            cpu_steal_ticks=self._cpu_time.steal,
            cpu_irq_ticks=self._cpu_time.irq,
            cpu_softirq_ticks=self._cpu_time.softirq,
            gc_count=gc_count,
            gc_ns=gc_ns,
            rss_bytes=self._thread.rss_bytes,
            on_cpu_ns=self._schedule.on_cpu_ns,
        )

    def _read_thread(self) -> None:
        if self._stat is None:
            return
        try:
            thread = parse_stat(os.pread(self._stat, 1024, 0))
            if self._status is not None:
                self._switches = parse_status(os.pread(self._status, 8192, 0))
            if self._schedstat is not None:
                self._schedule = parse_schedstat(os.pread(self._schedstat, 128, 0))
        except (OSError, ValueError, IndexError):  # the thread ended, perhaps between two of the reads
            self.alive = False
            return
        self._thread = thread

    def _read_cpu(self) -> None:
        if self._cpus is None:
            return
        try:
            self._cpu_time = parse_cpu(os.pread(self._cpus, self._cpu_bytes, 0), self._cpu)
        except (OSError, ValueError, IndexError):  # the CPU is offline or does not exist
            return

    def close(self) -> None:
        """Give the files back. Later samples repeat the last values."""
        for fd in (self._stat, self._status, self._schedstat, self._cpus):
            if fd is not None:
                os.close(fd)
        self._stat = self._status = self._schedstat = self._cpus = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
