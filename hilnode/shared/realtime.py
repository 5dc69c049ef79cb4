"""Real-time privileges: what the tick requests of the PC before it is armed, and one line for each refusal."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

_libc = ctypes.CDLL(None, use_errno=True)
MCL_CURRENT, MCL_FUTURE = 1, 2
PR_SET_TIMERSLACK = 29
ROOT = Path("/")
CPUS_MOST = 4096
"""No CPU number above this is believed: a garbled list must not become a set of millions."""


def choose_cpu(wanted: int | Literal["auto", "none"], root: Path = ROOT) -> int:
    """The CPU for the tick: a given one, -1 for none, or the best there is.

    That is the last isolated CPU this process may use, else the last allowed one (the first ones get most
    interrupts). A process starts with the isolated CPUs left out of its mask, and yet it may move there: so for
    these the mask does not count, only whether the machine lets a thread go.
    """
    if wanted == "none":
        return -1
    if wanted != "auto":
        return wanted
    allowed, online = os.sched_getaffinity(0), online_cpus(root)
    usable = {c for c in isolated_cpus(root) if c in allowed or (c in online and _lets_move_to(c, root))}
    return max(usable or allowed)


def _lets_move_to(cpu: int, root: Path) -> bool:
    """Whether a thread may move to an online CPU: not out of the cpuset of a container or a service, for one.

    Only the running machine can be asked; below another root its files are believed.
    """

    def move() -> bool:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError:
            return False
        return True

    if root != ROOT:
        return True
    with ThreadPoolExecutor(1) as pool:  # the thread that has moved ends here
        return pool.submit(move).result()


def isolated_cpus(root: Path = ROOT) -> set[int]:
    """Taken off the scheduler's list at boot (isolcpus) or later (an isolated cpuset partition)."""
    at_boot, later = "sys/devices/system/cpu/isolated", "sys/fs/cgroup/cpuset.cpus.isolated"
    return _cpus_in(root / at_boot) | _cpus_in(root / later)


def online_cpus(root: Path = ROOT) -> set[int]:
    """The CPUs that are switched on."""
    return _cpus_in(root / "sys/devices/system/cpu/online")


def _cpus_in(path: Path) -> set[int]:
    try:
        return cpu_list(path.read_text(errors="replace"))
    except OSError:
        return set()


def cpu_list(text: str | None) -> set[int]:
    """The CPUs in the kernel's notation, `0-3,8`; words that are no number, such as `managed_irq`, are passed over."""
    cpus: set[int] = set()
    for part in (text or "").split(","):
        if found := re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", part):
            first = int(found[1])
            cpus.update(range(first, min(int(found[2] or first), CPUS_MOST) + 1))
    return cpus


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
                f"no SCHED_FIFO priority {priority}: not permitted. Add '@realtime - rtprio 95' to "
                "/etc/security/limits.d/realtime.conf and join that group, or run as root"
            )
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # [ns] matters when SCHED_FIFO was refused
    return refused


def keep_pace(priority: int) -> None:
    """Give the calling thread SCHED_FIFO if that is permitted; what it starts is ordinary again.

    For a thread that takes Python's lock beside threads of that priority: an ordinary one that is put aside while it
    holds the lock makes all of them wait.
    """
    if priority > 0:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def keep_off(cpu: int) -> None:
    """Keep the calling thread, and threads and children it makes from now on, away from the tick's CPU."""
    if cpu >= 0:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, others(cpu))


@contextlib.contextmanager
def kept_off(cpu: int) -> Iterator[None]:
    """A process started in here never runs on the tick's CPU, not even while it loads its libraries.

    A child inherits the mask of the thread that starts it. That thread gets its own back at the end.
    """
    allowed = os.sched_getaffinity(0)
    keep_off(cpu)
    try:
        yield
    finally:
        if cpu >= 0:
            os.sched_setaffinity(0, allowed)


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


def share_lock(seconds: float = 1e-4) -> Callable[[], None]:
    """Let a thread that wants Python's lock have it after so long; it is 5 ms by default.

    Of two drivers that wake up together the quick one shall not wait for all that the slow one does. Returns a
    function that undoes it.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    return lambda: sys.setswitchinterval(usual)


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
