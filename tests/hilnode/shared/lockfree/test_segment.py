"""Segments: one owner at a time, nothing of a crash stays in the way, and a wrong reader is refused."""

import errno
import gc
import os
import resource
import signal
import struct
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress

import numpy as np
import pytest
from support import SHM, left_in_memory

from hilnode.shared.lockfree import segment
from hilnode.shared.lockfree.segment import (
    Segment,
    SegmentBusy,
    SegmentError,
    SegmentMismatch,
    SegmentMissing,
    owner_alive,
    remove_leftovers,
)

PAGE = 4096
HEAD = struct.Struct("<8q")  # magic, version, kind, schema, pid, bytes, two shape words
MAGIC = int.from_bytes(b"hilnode", "little")
OWNER = """
    import sys, time
    from hilnode.shared.lockfree.segment import Segment
    made = Segment.create(sys.argv[1], kind=7, words=16, schema=5, shape=(3, 4))
    made.words[:] = range(16)
    print("mine", flush=True)
    sys.stdin.readline()
    made.close()
"""


class Owner:
    """Another process that owns a segment until told to close it, or killed."""

    def __init__(self, name: str) -> None:
        code = textwrap.dedent(OWNER)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "mine\n"
        self.pid = self.process.pid

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def close(self) -> None:
        self.process.communicate("\n")
        assert self.process.returncode == 0


@pytest.fixture
def owner(name):
    made = Owner(name)
    yield made
    made.kill()


def test_a_segment_is_a_page_of_header_and_zeroed_words(name):
    with_shape = Segment.create(name, kind=3, words=10, schema=0x1234, shape=(2, 5))
    data = (SHM / f"hilnode.{name}").read_bytes()
    assert len(data) == PAGE + 80
    assert HEAD.unpack_from(data) == (MAGIC, 1, 3, 0x1234, os.getpid(), 80, 2, 5)
    assert data[HEAD.size :] == bytes(len(data) - HEAD.size)
    assert with_shape.words.shape == (10,)
    assert with_shape.address == with_shape.words.ctypes.data
    with_shape.close()
    assert left_in_memory(name) == []


def test_only_this_user_may_open_it(name):
    made = Segment.create(name, kind=1, words=1)
    assert (SHM / f"hilnode.{name}").stat().st_mode & 0o777 == 0o600
    made.close()


def test_both_sides_see_the_same_words(name):
    here = Segment.create(name, kind=3, words=4, schema=9, shape=(1, 2))
    there = Segment.attach(name, kind=3, schema=9)
    assert (there.kind, there.schema, there.shape, there.pid, there.owner) == (3, 9, (1, 2), os.getpid(), False)
    here.words[2] = -5
    there.words[3] = 1 << 62
    assert there.words.tolist() == here.words.tolist() == [0, 0, -5, 1 << 62]
    there.close()
    assert left_in_memory(name) == [f"hilnode.{name}"]  # a reader that leaves takes nothing away
    here.close()


def test_attach_to_another_process(owner, name):
    there = Segment.attach(name, kind=7, schema=5)
    assert there.pid == owner.pid
    assert there.words.tolist() == list(range(16))
    there.close()


def test_a_second_owner_is_refused_with_the_pid_of_the_first(owner, name):
    with pytest.raises(SegmentBusy, match=rf"process {owner.pid}\b.*node\.name") as caught:
        Segment.create(name, kind=7, words=16)
    assert caught.value.pid == owner.pid
    assert owner_alive(name) == owner.pid
    assert Segment.attach(name, kind=7).words.tolist() == list(range(16))  # untouched by the attempt
    owner.close()
    Segment.create(name, kind=7, words=16).close()


def test_a_second_owner_in_the_same_process_is_refused(name):
    first = Segment.create(name, kind=1, words=1)
    with pytest.raises(SegmentBusy) as caught:
        Segment.create(name, kind=1, words=1)
    assert caught.value.pid == os.getpid()
    first.close()


def test_what_a_killed_owner_leaves_is_replaced_and_its_readers_keep_the_old_memory(owner, name):
    reader = Segment.attach(name, kind=7)
    owner.kill()
    assert owner_alive(name) == 0
    assert left_in_memory(name) == [f"hilnode.{name}"]
    new = Segment.create(name, kind=7, words=16)
    assert new.words.tolist() == [0] * 16
    new.words[:] = 99
    assert reader.words.tolist() == list(range(16))
    assert Segment.attach(name, kind=7).words.tolist() == [99] * 16
    new.close()


def test_leftovers_of_another_size_are_replaced_too(owner, name):
    owner.kill()
    new = Segment.create(name, kind=1, words=100_000)
    assert new.words.shape == (100_000,)
    new.close()


def test_the_owner_dies_while_somebody_waits_for_the_name(name):
    """Many processes want the same name; exactly one has it at any time, and all get it in the end."""
    code = textwrap.dedent("""
        import os, sys, time
        from hilnode.shared.lockfree.segment import Segment, SegmentBusy
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                made = Segment.create(sys.argv[1], kind=1, words=1)
            except SegmentBusy:
                continue
            made.words[0] += 1
            time.sleep(0.002)
            assert made.words[0] == 1, "two owners at once"
            if sys.argv[2] == "die":
                os.kill(os.getpid(), 9)
            made.close()
            sys.exit(0)
        sys.exit("never got it")
    """)
    how = ["die", "close"] * 4
    crowd = [subprocess.Popen([sys.executable, "-c", code, name, h], stderr=subprocess.PIPE) for h in how]
    for h, process in zip(how, crowd, strict=True):
        _, said = process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if h == "die" else 0), said.decode()


def test_attach_to_nothing_says_so(name):
    with pytest.raises(SegmentMissing, match=rf"hilnode\.{name} does not exist: no node of that name is running"):
        Segment.attach(name, kind=1)


def header(**changes: int) -> bytes:
    fields = {"magic": MAGIC, "version": 1, "kind": 7, "schema": 5, "pid": 1, "size": 64, "a": 0, "b": 0} | changes
    return HEAD.pack(*fields.values()).ljust(PAGE + 64, b"\0")


def held_files():
    """Paths of all files that this process has open. A count would be disturbed by what the collector closes."""
    paths = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            paths.append(os.readlink(f"/proc/self/fd/{number}"))
    return paths


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a hilnode segment"),
        (b"x", "not a hilnode segment"),
        (b"not at all what was expected " * 300, "not a hilnode segment"),
        (bytes(PAGE + 64), "still being made"),
        (header(version=2), "layout version 2, this program knows 1"),
        (header(version=-1), "layout version -1"),
        (header(kind=8), "kind 8, not 7"),
        (header(schema=6), "schema 0000000000000006, expected 0000000000000005"),
        (header()[:PAGE], "bytes"),
        (header()[:-8], "bytes"),
        (header(size=-8), "bytes"),
    ],
    ids=["empty", "short", "text", "zeros", "newer", "negative", "kind", "schema", "no payload", "cut", "size"],
)
def test_attach_refuses_what_it_does_not_know(name, content, says):
    path = SHM / f"hilnode.{name}"
    path.write_bytes(content)
    with pytest.raises(SegmentMismatch, match=says) as caught:
        Segment.attach(name, kind=7, schema=5)
    assert str(path) in str(caught.value)
    assert str(path) not in held_files()  # it is closed again
    assert path.exists()


def test_garbage_under_the_name_does_not_keep_an_owner_out(name):
    (SHM / f"hilnode.{name}").write_bytes(b"garbage")
    made = Segment.create(name, kind=1, words=2)
    assert made.words.tolist() == [0, 0]
    made.close()


def test_memory_that_is_full_is_said_before_it_is_touched(name, monkeypatch):
    def full(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(segment.os, "posix_fallocate", full)
    with pytest.raises(SegmentError, match=r"No space left on device.*8\.0 MB.*/dev/shm.*log\.ring_seconds"):
        Segment.create(name, kind=1, words=1_000_000)
    assert left_in_memory(name) == []


def test_a_limit_on_file_size_is_met_like_a_full_memory(name):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(SegmentError, match="File too large while reserving"):
            Segment.create(name, kind=1, words=1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert left_in_memory(name) == []
    Segment.create(name, kind=1, words=1).close()


def test_memory_that_cannot_be_mapped_leaves_nothing_behind(name, monkeypatch):
    def refuse(fd: int, length: int) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(segment.mmap, "mmap", refuse)
    with pytest.raises((SegmentError, OSError)):
        Segment.create(name, kind=1, words=1)
    monkeypatch.undo()
    assert left_in_memory(name) == []
    Segment.create(name, kind=1, words=1).close()


def test_an_owner_without_a_header_yet_is_not_called_process_0(name):
    path = SHM / f"hilnode.{name}"
    code = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(flush=True); sys.stdin.readline()"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as maker:
        assert maker.stdout is not None
        maker.stdout.readline()
        with pytest.raises(SegmentError) as caught:
            Segment.create(name, kind=1, words=1)
        maker.communicate("\n")
    assert "kill 0" not in str(caught.value)


def test_closing_twice_is_harmless(name):
    made = Segment.create(name, kind=1, words=1)
    made.close()
    made.close()
    assert made.closed


def test_a_view_outlives_the_close(name):
    """A driver's thread that wakes up late writes into memory nobody reads any more, and crashes nothing."""
    made = Segment.create(name, kind=1, words=1024)
    view = made.words[10:20]
    made.close()
    view[:] = 7
    assert made.words[10:20].tolist() == [7] * 10
    del made
    gc.collect()
    view[:] = 8
    assert view.tolist() == [8] * 10


def test_closing_late_takes_nothing_from_the_next_owner(name):
    """An owner whose file was removed under it must not unlink what stands there now."""
    first = Segment.create(name, kind=1, words=1)
    os.unlink(SHM / f"hilnode.{name}")
    second = Segment.create(name, kind=1, words=1)
    first.close()
    assert left_in_memory(name) == [f"hilnode.{name}"]
    assert owner_alive(name) == os.getpid()
    second.close()


def test_remove_leftovers_takes_the_dead_and_leaves_the_living(name):
    dead = Owner(f"{name}.rows")
    living = Owner(f"{name}.control")
    stranger = Owner(f"{name}x.rows")
    dead.kill()
    stranger.kill()
    mine = Segment.create(f"{name}.events", kind=1, words=1)
    remove_leftovers(name)
    assert left_in_memory(name) == [f"hilnode.{name}.control", f"hilnode.{name}.events", f"hilnode.{name}x.rows"]
    assert Segment.attach(f"{name}.control", kind=7).words.tolist() == list(range(16))
    mine.close()
    living.close()
    remove_leftovers(f"{name}x")
    assert left_in_memory(name) == []


def test_remove_leftovers_never_takes_a_name_from_under_a_new_owner(name):
    """A node started again while the watchdog of the dead one still cleans up."""
    ended = threading.Event()

    def clean() -> None:
        while not ended.is_set():
            remove_leftovers(name)

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    stolen = 0
    for _ in range(3000):
        (SHM / f"hilnode.{name}.rows").write_bytes(b"left by the dead one")
        try:
            made = Segment.create(f"{name}.rows", kind=1, words=1)
        except SegmentBusy:  # the cleaner has it in hand this very moment
            continue
        stolen += not (SHM / f"hilnode.{name}.rows").exists()
        made.close()
    ended.set()
    cleaner.join()
    assert stolen == 0


def test_words_are_ordinary_int64(name):
    made = Segment.create(name, kind=1, words=3)
    assert made.words.dtype == np.int64
    assert made.words.flags.c_contiguous
    assert made.address % 64 == 0  # words 0, 8, 16 ... begin cache lines
    made.close()
