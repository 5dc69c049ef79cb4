"""Real-time privileges: what the tick asks of the machine before it is armed, and the one line each when it says no."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import struct
import time
from collections.abc import Callable
from typing import Literal

_libc = ctypes.CDLL(None, use_errno=True)
MCL_CURRENT, MCL_FUTURE = 1, 2
PR_SET_TIMERSLACK = 29


def choose_cpu(wanted: int | Literal["auto", "none"]) -> int:
    """The CPU for the tick: the last allowed one (the first ones get most interrupts), a given one, or -1 for none."""
    if wanted == "none":
        return -1
    if wanted == "auto":
        return max(os.sched_getaffinity(0))
    return wanted


def others(cpu: int) -> set[int]:
    """All allowed CPUs but this one; all of them if there is no other."""
    allowed = os.sched_getaffinity(0)
    return allowed - {cpu} or allowed


def make_thread_hard(cpu: int, priority: int) -> list[str]:
    """Pin the calling thread and give it SCHED_FIFO; returns what the machine refused, one line each."""
    refused = []
    if cpu >= 0:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError as error:
            refused.append(f"not pinned to CPU {cpu}: {error.strerror} (node.cpu; this process may use {_allowed()})")
    if priority > 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except PermissionError:
            refused.append(
                f"no SCHED_FIFO priority {priority}: not permitted. Add '@realtime - rtprio 98' to "
                "/etc/security/limits.d/realtime.conf and join that group, or run as root"
            )
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # [ns] matters when SCHED_FIFO was refused
    return refused


def keep_off(cpu: int) -> None:
    """Keep the calling thread, and threads and children it makes from now on, away from the tick's CPU."""
    if cpu >= 0:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, others(cpu))


def lock_memory() -> list[str]:
    """Keep every page of this process in memory, also those to come."""
    if _libc.mlockall(MCL_CURRENT | MCL_FUTURE) == 0:
        return []
    why = os.strerror(ctypes.get_errno())
    return [
        f"memory not locked: {why}. Add '@realtime - memlock unlimited' to /etc/security/limits.d/realtime.conf, "
        "or set node.lock_memory = false"
    ]


def unlock_memory() -> None:
    """Take `lock_memory` back."""
    _libc.munlockall()


class AwakeCpus:
    """Holds /dev/cpu_dma_latency at 0, so that no CPU falls into a sleep state it must climb out of at each tick."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._fd = -1
        try:
            self._fd = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
            os.write(self._fd, struct.pack("i", 0))
        except OSError as error:
            self.refused.append(f"CPU sleep states stay on: /dev/cpu_dma_latency: {error.strerror}")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def freeze_garbage(report: Callable[[int, int], None]) -> Callable[[], None]:
    """Collect once, take everything alive out of later collections, and report count and time [ns] of those
    still to come.

    Returns a function that undoes it.
    """
    gc.collect()
    gc.freeze()
    total = [0, 0, 0]  # count, time, begin

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            total[2] = time.monotonic_ns()
        else:
            total[0] += 1
            total[1] += time.monotonic_ns() - total[2]
            report(total[0], total[1])

    gc.callbacks.append(watch)

    def undo() -> None:
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(watch)
        gc.unfreeze()

    return undo


def _allowed() -> str:
    return ", ".join(map(str, sorted(os.sched_getaffinity(0))))
