"""How late does this machine wake a thread that asked for an exact time?

A bare loop in the tick's place: same clock, same absolute sleep, same privileges, same CPU, no work. What it measures
is what the machine adds to every tick before the node has done anything.

The verdict stands on the scale of LinuxCNC's latency test, numbers that machine builders know. Its manual speaks of the
maximum: under about 15-20 us software stepping gives very nice results; at 30-50 us results are still good, but the
step rate may disappoint; from 100 us the PC is no candidate for software stepping; over 1 ms it is none for LinuxCNC at
all. It says nothing about 20-30 and 50-100 us: the borders at 20 and 50 us are drawn here. It also asks for several
minutes of measurement on a busy machine.

Ref: LinuxCNC, "Latency Test", docs/src/install/latency-test.adoc.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.shared.clock import now_ns, sleep_until
from hilnode.shared.realtime import AwakeCpus, make_thread_hard

PERIOD_NS = 1_000_000
PRIORITY = 80
GLIMPSE_S = 120.0
"""A shorter measurement is called a glimpse: rare stalls (firmware, disc, graphics) come once in a minute or so."""


@dataclass(frozen=True, slots=True)
class Grade:
    """One step of the scale: what a maximum below `below_us` [us] is good for."""

    name: str
    below_us: float
    stepping: str
    loop: str


GRADES = (
    Grade("excellent", 20.0, "fast software stepping", "It costs a 1 kHz loop next to nothing."),
    Grade("good", 50.0, "software stepping at a lower step rate", "It hardly touches a 1 kHz loop."),
    Grade("usable", 100.0, "slow software stepping at best", "A 1 kHz loop has room to spare."),
    Grade(
        "slack needed",
        math.nextafter(1000.0, math.inf),  # 1 ms itself still belongs here
        "no software stepping, hardware step generators only",
        "A 1 kHz loop holds if the plant leaves that much of each period free.",
    ),
    Grade(
        "not suited",
        math.inf,
        "no candidate, with or without software stepping",
        "A 1 kHz loop misses deadlines here, however fast the plant is.",
    ),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """Wake-up latencies [us] of one measurement, and under what conditions it ran."""

    cpu: int
    samples: int
    period_us: float
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    pinned: bool
    fifo: bool

    @property
    def seconds(self) -> float:
        return self.samples * self.period_us * 1e-6


def grade(max_us: float) -> Grade:
    """The step of the scale that a maximum latency [us] falls on."""
    for step in GRADES:
        if max_us < step.below_us:
            return step
    return GRADES[-1]


def sentence(probe: Probe) -> str:
    """The grade in words: the worst case, what it allows, and how far to trust it."""
    step, periods = grade(probe.max_us), probe.max_us / probe.period_us
    share = f"{100 * periods:.0f} % of a period" if periods < 1 else f"{periods:.1f} periods"
    words = [
        f"The worst of {probe.samples} wake-ups came {_us(probe.max_us)} late: {share}.",
        step.loop,
        f"On LinuxCNC's scale: {step.stepping}.",
    ]
    if not probe.fifo:
        words.append("Measured without SCHED_FIFO, which was refused: with it, expect better.")
    if not probe.pinned:
        words.append(f"Measured on no fixed CPU: pinning to CPU {probe.cpu} was refused.")
    if probe.seconds < GLIMPSE_S:
        words.append(f"{probe.seconds:.3g} s is a glimpse: measure some minutes under load before you rely on it.")
    return " ".join(words)


def measure(cpu: int, seconds: float = 3.0, *, period_ns: int = PERIOD_NS, priority: int = PRIORITY) -> Probe:
    """Wake once per period on `cpu` for so many seconds.

    It runs in a thread of its own, so that the caller's scheduling stays as it is. Where pinning or SCHED_FIFO is
    refused it measures all the same and says so in the result.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"latency probe: seconds = {seconds!r} is no duration; give a positive number such as 3.0")
    if period_ns <= 0:
        raise ValueError(f"latency probe: period_ns = {period_ns!r} must be positive, such as {PERIOD_NS} for 1 kHz")
    latencies = np.zeros(max(1, round(seconds * 1e9 / period_ns)), dtype=np.int64)
    latencies.fill(0)  # zeros() alone maps pages lazily: none may be faulted in while measuring
    stop = np.zeros(1, dtype=np.int64)
    _loop(period_ns, np.zeros(1, dtype=np.int64), stop)  # compiles here, not under SCHED_FIFO

    def run() -> tuple[bool, bool, int]:
        make_thread_hard(cpu, priority)
        pinned, fifo = os.sched_getaffinity(0) == {cpu}, os.sched_getscheduler(0) == os.SCHED_FIFO
        return pinned, fifo, _loop(period_ns, latencies, stop)

    awake = AwakeCpus()
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="latency-probe") as pool:
            job = pool.submit(run)
            try:
                pinned, fifo, code = job.result()
            finally:
                stop[0] = 1  # on Ctrl-C too: the compiled loop sees only this
    finally:
        awake.close()
    if code:
        raise OSError(code, f"latency probe: clock_nanosleep failed: {os.strerror(code)}")
    return summarise(latencies, cpu=cpu, period_ns=period_ns, pinned=pinned, fifo=fifo)


def summarise(latencies: NDArray[np.int64], *, cpu: int, period_ns: int, pinned: bool, fifo: bool) -> Probe:
    """Percentiles of latencies [ns], in microseconds."""
    p50, p99, p999, top = (float(x) * 1e-3 for x in np.percentile(latencies, (50.0, 99.0, 99.9, 100.0)))
    return Probe(cpu, latencies.size, period_ns * 1e-3, p50, p99, p999, top, pinned, fifo)


@kernel
def _loop(period_ns: int, latencies: NDArray[np.int64], stop: NDArray[np.int64]) -> int:
    """Fill `latencies` [ns], one per deadline; 0 or the error number of the sleep.

    Unlike cyclictest it skips no deadline after a stall: a tick would have missed each of them, so each counts.
    """
    deadline = now_ns() + period_ns
    for i in range(latencies.size):
        code = sleep_until(deadline)
        if code != 0:
            return code
        latencies[i] = now_ns() - deadline
        if stop[0] != 0:
            break
        deadline += period_ns
    return 0


def _us(us: float) -> str:
    return f"{us:.0f} us" if us < 1000 else f"{us / 1000:.1f} ms"
