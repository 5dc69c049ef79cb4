"""What the tick asks of the machine; whatever changes a process for good is tried in a process of its own."""

from __future__ import annotations

import errno
import gc
import json
import os
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hilnode.shared import realtime
from hilnode.shared.realtime import AwakeCpus, choose_cpu, freeze_garbage, others, share_lock

CPUS = "sys/devices/system/cpu"
PARTITION = "sys/fs/cgroup/cpuset.cpus.isolated"
LATENCY = "/dev/cpu_dma_latency"

APART = """
import ctypes, json, os, pwd, resource, sys, threading
from pathlib import Path
from hilnode.shared import realtime

def tell(what):
    print(json.dumps(what))

def drop_privileges():
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
"""

two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def apart(code: str) -> Any:
    """What `code` tells in a process of its own, which may do to itself what it likes."""
    done = subprocess.run(
        [sys.executable, "-c", APART + textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def machine(root: Path, **files: str) -> Path:
    """A root folder with these files; `isolated`, `online` and `partition` are where the kernel has them."""
    for name, content in files.items():
        path = root / (PARTITION if name == "partition" else f"{CPUS}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


@pytest.fixture
def may_use(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[int]], None]:
    """Sets the mask this process seems to have."""

    def pretend(cpus: set[int]) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))

    return pretend


@pytest.mark.parametrize(
    ("files", "cpu"),
    [
        ({}, 2),
        ({"isolated": "", "online": "0-3"}, 2),
        ({"isolated": "1", "online": "0-3"}, 1),
        ({"isolated": "1"}, 1),  # in the mask, so it is online
        ({"isolated": "0-1", "online": "0-3"}, 1),
        ({"isolated": "3", "online": "0-3"}, 3),  # not in the mask
        ({"isolated": "2-4,6", "online": "0-4,7"}, 4),
        ({"isolated": "3", "online": "0-2"}, 2),
        ({"isolated": "3"}, 2),
        ({"isolated": "", "partition": "1", "online": "0-3"}, 1),
        ({"isolated": "0", "partition": "1", "online": "0-3"}, 1),
        ({"isolated": "noise 99999-1,-", "online": "?"}, 2),
    ],
)
def test_the_last_isolated_cpu_else_the_last_allowed(
    files: dict[str, str], cpu: int, tmp_path: Path, may_use: Callable[[set[int]], None]
) -> None:
    may_use({0, 1, 2})
    assert choose_cpu("auto", machine(tmp_path, **files)) == cpu


def test_a_folder_in_place_of_a_file_is_no_cpu(tmp_path: Path, may_use: Callable[[set[int]], None]) -> None:
    may_use({0, 4})
    (tmp_path / CPUS / "isolated").mkdir(parents=True)
    assert choose_cpu("auto", tmp_path) == 4


def test_a_given_cpu_and_none_are_taken_as_they_are(tmp_path: Path) -> None:
    root = machine(tmp_path, isolated="1", online="0-1")
    assert choose_cpu(0, root) == 0
    assert choose_cpu(7, root) == 7
    assert choose_cpu("none", root) == -1


def test_this_machine_gives_a_cpu_that_can_be_used() -> None:
    told = apart("""
        cpu = realtime.choose_cpu("auto")
        os.sched_setaffinity(0, {cpu})
        tell([cpu, sorted(os.sched_getaffinity(0))])
    """)
    assert told[1] == [told[0]]


@two_cpus
def test_an_isolated_cpu_outside_the_mask_is_tried_on_the_running_machine(tmp_path: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    machine(tmp_path, isolated=f"{last},4095", online="0-4095")  # the kernel will refuse the greater one
    told = apart(f"""
        os.sched_setaffinity(0, {{{first}}})
        realtime.ROOT = Path({str(tmp_path)!r})
        before = sorted(os.sched_getaffinity(0))
        cpu = realtime.choose_cpu("auto", realtime.ROOT)
        tell([cpu, before, sorted(os.sched_getaffinity(0))])
    """)
    assert told == [last, [first], [first]]


def test_an_isolated_cpu_that_is_refused_is_not_chosen(
    tmp_path: Path, may_use: Callable[[set[int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, cpus: set[int]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        assert cpus == {3}
        raise OSError(errno.EINVAL, "Invalid argument")

    may_use({0, 1})
    monkeypatch.setattr(realtime, "ROOT", machine(tmp_path, isolated="3", online="0-3"))
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert choose_cpu("auto", tmp_path) == 1


@pytest.mark.parametrize(
    ("allowed", "cpu", "rest"),
    [({0, 1, 2}, 2, {0, 1}), ({0, 1}, 3, {0, 1}), ({1}, 1, {1}), ({0, 1}, -1, {0, 1})],
)
def test_others(allowed: set[int], cpu: int, rest: set[int], may_use: Callable[[set[int]], None]) -> None:
    may_use(allowed)
    assert others(cpu) == rest


@two_cpus
def test_keep_off_moves_this_thread_and_what_it_starts() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    told = apart(f"""
        import subprocess
        seen = []
        def look():
            seen.append(sorted(os.sched_getaffinity(0)))
        realtime.keep_off({allowed[-1]})
        look()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        child = "import os; print(sorted(os.sched_getaffinity(0)))"
        seen.append(json.loads(subprocess.check_output([sys.executable, "-c", child])))
        tell(seen)
    """)
    assert told == [allowed[:-1]] * 3


def test_keep_off_no_cpu_or_the_only_one_changes_nothing() -> None:
    cpu = min(os.sched_getaffinity(0))
    told = apart(f"""
        seen = []
        realtime.keep_off(-1)
        seen.append(sorted(os.sched_getaffinity(0)))
        os.sched_setaffinity(0, {{{cpu}}})
        realtime.keep_off({cpu})
        seen.append(sorted(os.sched_getaffinity(0)))
        tell(seen)
    """)
    assert told == [sorted(os.sched_getaffinity(0)), [cpu]]


@two_cpus
def test_make_thread_hard_pins_the_calling_thread_alone() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    told = apart(f"""
        PR_GET_TIMERSLACK = 30
        seen = []
        def hard():
            seen.append(realtime.make_thread_hard({allowed[-1]}, 0))
            seen.append(sorted(os.sched_getaffinity(0)))
            seen.append(ctypes.CDLL(None).prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
        thread = threading.Thread(target=hard)
        thread.start()
        thread.join()
        seen.append(sorted(os.sched_getaffinity(0)))
        tell(seen)
    """)
    assert told == [[], allowed[-1:], 1, allowed]


def test_make_thread_hard_gives_the_priority_asked_for() -> None:
    told = apart("""
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except PermissionError:
            tell(None)
        else:
            refused = realtime.make_thread_hard(-1, 7)
            now = os.sched_getscheduler(0) == os.SCHED_FIFO, os.sched_getparam(0).sched_priority
            tell([refused, *now, len(os.sched_getaffinity(0))])
    """)
    if told is None:
        pytest.skip("SCHED_FIFO is not permitted here")
    assert told == [[], True, 7, len(os.sched_getaffinity(0))]


def test_keep_pace_is_not_passed_on_to_what_the_thread_starts() -> None:
    told = apart("""
        import subprocess
        import sys
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except PermissionError:
            tell(None)
        else:
            realtime.keep_pace(7)
            mine = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.sched_getparam(0).sched_priority
            ask = [sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"]
            tell([*mine, int(subprocess.run(ask, capture_output=True, text=True).stdout)])
    """)
    if told is None:
        pytest.skip("SCHED_FIFO is not permitted here")
    assert told == [os.SCHED_FIFO, 7, os.SCHED_OTHER]


def test_make_thread_hard_says_what_was_refused_and_goes_on() -> None:
    refused, policy, allowed = apart("""
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        drop_privileges()
        refused = realtime.make_thread_hard(4095, 80)
        tell([refused, os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))])
    """)
    pinning, priority = refused
    assert "CPU 4095" in pinning
    assert "node.cpu" in pinning
    assert os.strerror(errno.EINVAL) in pinning
    assert f"may use {', '.join(map(str, allowed))})" in pinning
    assert "SCHED_FIFO priority 80" in priority
    assert "rtprio" in priority
    assert "/etc/security/limits.d/realtime.conf" in priority
    assert policy == os.SCHED_OTHER


@pytest.mark.parametrize(("limit", "code"), [(0, errno.EPERM), (65536, errno.ENOMEM)])
def test_lock_memory_says_why_not(limit: int, code: int) -> None:
    told = apart(f"""
        resource.setrlimit(resource.RLIMIT_MEMLOCK, ({limit}, {limit}))
        drop_privileges()
        refused = realtime.lock_memory()
        status = Path("/proc/self/status").read_text()
        tell([refused, int(status.split("VmLck:")[1].split()[0])])
    """)
    (line,), locked_kb = told
    assert line.startswith(f"memory not locked: {os.strerror(code)}. ")
    assert "memlock unlimited" in line
    assert "node.lock_memory = false" in line
    assert locked_kb == 0


def test_lock_memory_and_back() -> None:
    told = apart("""
        def locked():
            return int(Path("/proc/self/status").read_text().split("VmLck:")[1].split()[0])
        seen = [realtime.lock_memory(), locked()]
        realtime.unlock_memory()
        tell([*seen, locked()])
    """)
    refused, during, after = told
    if refused:
        pytest.skip(refused[0])
    assert during > 1000  # [kB] an interpreter is larger than that
    assert after == 0


def test_cpus_are_kept_awake_while_the_file_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device, opened, real = tmp_path / "latency", [], os.open
    device.touch()

    def redirect(path: str, flags: int) -> int:
        opened.append((path, flags, real(device, flags)))
        return opened[-1][2]

    monkeypatch.setattr(os, "open", redirect)
    awake = AwakeCpus()
    ((path, flags, fd),) = opened
    assert (path, flags) == (LATENCY, os.O_WRONLY)
    assert awake.refused == []
    assert device.read_bytes() == bytes(4)  # a 32-bit zero: the kernel takes any other length for text
    os.fstat(fd)  # raises if it is closed already
    awake.close()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(fd)
    awake.close()


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOENT])
def test_cpus_that_may_sleep_are_a_sentence(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(os, "open", refuse)
    awake = AwakeCpus()
    assert awake.refused == [f"CPU sleep states stay on: {LATENCY}: {os.strerror(code)}"]
    awake.close()


@pytest.mark.skipif(not os.access(LATENCY, os.R_OK | os.W_OK), reason="needs /dev/cpu_dma_latency")
def test_the_kernel_sees_the_wish() -> None:
    awake = AwakeCpus()
    try:
        with open(LATENCY, "rb", buffering=0) as device:
            assert struct.unpack("i", device.read(4)) == (0,)
    finally:
        awake.close()


def test_frozen_garbage_is_left_alone_and_collections_are_counted() -> None:
    reports: list[tuple[int, int]] = []
    callbacks = list(gc.callbacks)
    gc.disable()  # only the collections below
    try:
        undo = freeze_garbage(lambda count, ns: reports.append((count, ns)))
        assert gc.get_freeze_count() > 1000  # everything alive: at least the modules of this test
        gc.collect()
        gc.collect(0)
        undo()
        assert gc.get_freeze_count() == 0
        gc.collect()
    finally:
        gc.enable()
    assert [count for count, _ in reports] == [1, 2]
    assert 0 < reports[0][1] < reports[1][1] < 10_000_000_000
    assert gc.callbacks == callbacks
    undo()  # a second time is harmless


def test_pythons_lock_is_given_away_soon():
    """A thread that computes lets another, which wakes every millisecond, have the lock in time."""
    usual, stop, late = sys.getswitchinterval(), threading.Event(), []

    def compute():
        while not stop.is_set():
            sum(range(100))  # short steps: between them the lock can be asked for

    busy = threading.Thread(target=compute)
    undo = share_lock(1e-4)
    try:
        assert sys.getswitchinterval() == pytest.approx(1e-4)
        busy.start()
        for _ in range(200):
            before = time.monotonic()
            time.sleep(0.001)
            late.append(time.monotonic() - before - 0.001)
    finally:
        undo()
        stop.set()
        busy.join()
    assert sys.getswitchinterval() == usual
    assert sorted(late)[20] < 0.5 * usual  # the usual interval would be waited for each time
