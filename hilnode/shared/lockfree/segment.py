"""Named shared memory with one owner, a schema hash and no locks to leave behind.

A segment is a file in /dev/shm: one page of header, then the payload. The owner holds a kernel file lock
(flock) on it for as long as it lives; the kernel drops that lock when the process dies, however it dies. So a
second owner is refused with the pid of the first, and what a crash leaves behind is simply replaced.

`multiprocessing.shared_memory` is not used because its resource tracker unlinks a segment when any process that
had merely attached to it ends (Python < 3.13): a dying monitor would pull the memory from under the node.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HOME = Path("/dev/shm")
PREFIX = "hilnode."
PAGE = 4096
MAGIC = 0x65646F6E6C6968  # "hilnode" in little-endian bytes
VERSION = 1
_HEADER = struct.Struct("<8q")  # magic, version, kind, schema hash, owner's pid, payload bytes, two shape words


class SegmentError(RuntimeError):
    """Shared memory that cannot be had; the message says why and what to do."""


class SegmentBusy(SegmentError):
    """The name belongs to a living process: `pid`."""

    def __init__(self, name: str, pid: int) -> None:
        by = f"process {pid}: stop it (kill {pid})" if pid else "a process that is just starting: wait for it"
        super().__init__(f"{name!r} is in use by {by} or give this node another name (node.name)")
        self.pid = pid


class SegmentMissing(SegmentError):
    """No such segment: the node is not running, or has another name."""


class SegmentMismatch(SegmentError):
    """The segment holds something else than the caller expects."""


class Segment:
    """A piece of shared memory. Make one with `create` (owner) or `attach` (anyone)."""

    def __init__(self, name: str, fd: int, owner: bool) -> None:
        self.name = name
        self.owner = owner
        self._fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        (_, _, self.kind, self.schema, self.pid, self.size, *shape) = _HEADER.unpack_from(self._map)
        self.shape: tuple[int, int] = (shape[0], shape[1])
        self.words: NDArray[np.int64] = np.frombuffer(self._map, np.int64, self.size // 8, PAGE)
        self.address: int = self.words.ctypes.data
        self.closed = False

    @classmethod
    def create(cls, name: str, *, kind: int, words: int, schema: int = 0, shape: tuple[int, int] = (0, 0)) -> Segment:
        """Make the segment `name` with `words` zeroed 8-byte words, or refuse if a living process owns it."""
        path = _path(name)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = _HEADER.unpack(os.pread(fd, _HEADER.size, 0).ljust(_HEADER.size, b"\0"))[4]
                os.close(fd)
                raise SegmentBusy(name, pid) from None
            if not _same_file(fd, path):  # replaced between open and lock: look again
                os.close(fd)
                continue
            if os.fstat(fd).st_size:
                # Left by a crash. Its readers may still have it mapped: give them their old memory and make a new file.
                os.unlink(path)
                os.close(fd)
                continue
            break
        size = 8 * words
        try:
            os.posix_fallocate(fd, 0, PAGE + size)  # a full /dev/shm says so here, not by SIGBUS in the tick
        except OSError as error:
            os.unlink(path)
            os.close(fd)
            raise SegmentError(
                f"{path}: {error.strerror} while reserving {(PAGE + size) / 1e6:.1f} MB of shared memory. "
                "Free some (ls -l /dev/shm) or lower log.ring_seconds"
            ) from error
        os.pwrite(fd, _HEADER.pack(MAGIC, VERSION, kind, schema, os.getpid(), size, *shape), 0)
        try:
            return cls(name, fd, owner=True)
        except BaseException:
            os.unlink(path)
            os.close(fd)
            raise

    @classmethod
    def attach(cls, name: str, *, kind: int, schema: int | None = None) -> Segment:
        """Open another process's segment; `schema`, when given, must be the one it was made with."""
        path = _path(name)
        try:
            fd = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            raise SegmentMissing(f"{path} does not exist: no node of that name is running") from None
        head = os.pread(fd, _HEADER.size, 0)
        fields = _HEADER.unpack(head) if len(head) == _HEADER.size else (0,) * 8
        problem = None
        if fields[0] != MAGIC:
            problem = "is not a hilnode segment (or is still being made)"
        elif fields[1] != VERSION:
            problem = f"has layout version {fields[1]}, this program knows {VERSION}"
        elif fields[2] != kind:
            problem = f"is of kind {fields[2]}, not {kind}"
        elif fields[5] < 0 or PAGE + fields[5] > os.fstat(fd).st_size:
            problem = f"is cut short: it should hold {fields[5]} bytes"
        elif schema is not None and fields[3] != schema:
            problem = f"has schema {fields[3]:016x}, expected {schema:016x}: the node was started with another config"
        if problem:
            os.close(fd)
            raise SegmentMismatch(f"{path} {problem}")
        return cls(name, fd, owner=False)

    def close(self) -> None:
        """Give up the name (owner) and the file. Safe to call twice.

        The memory itself stays mapped while this object lives: a driver thread that wakes up late writes into
        memory that nobody reads any more, instead of crashing the process.
        """
        if self.closed:
            return
        self.closed = True
        if self.owner and _same_file(self._fd, _path(self.name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_path(self.name))
        os.close(self._fd)


def owner_alive(name: str) -> int:
    """The pid that owns segment `name`, or 0 if nobody does."""
    try:
        fd = os.open(_path(name), os.O_RDWR)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        head = os.pread(fd, _HEADER.size, 0)
        return int(_HEADER.unpack(head)[4]) if len(head) == _HEADER.size else 0
    finally:
        os.close(fd)
    return 0


def _path(name: str) -> Path:
    return HOME / (PREFIX + name)


def _same_file(fd: int, path: Path) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def remove_leftovers(node: str) -> None:
    """Remove the segments of a node that died; those of a living owner are left alone.

    The lock is held while the name goes, so that a new owner can not have come in between.
    """
    for path in HOME.glob(f"{PREFIX}{node}.*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same_file(fd, path):
                    os.unlink(path)
            finally:
                os.close(fd)
