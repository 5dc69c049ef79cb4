r"""The timing log: every tick's times in one file that survives a kill at any moment.

    file     "HILTIME\n"  version u32  json length u32  crc32 of those two and the json u32  json (what run this was)
    block    "\x89HLBLK\r\n"  kind u32  length u32  crc32 of the payload u32  crc32 of the head before it u32
             payload
    block    ...

    kind     payload
    ROWS     table of row headers (`hilnode.shared.row.Col`)
    SAMPLES  table of machine counters (`MachineSample`)
    LOST     u64: rows the recorder could not read before the ring overwrote them
    FOOTER   u64: ticks the node made; its presence says that the run ended in order

    table    rows u32  columns u32  then zlib of the bytes of the differences down each column: first the lowest
             byte of all differences, column by column, then the next byte of all, and so on

Little endian. Times grow steadily, so that differences are small and their high bytes all alike: a row of
96 bytes takes about 13. Every block stands alone: a cut or damaged file loses only the blocks that are hit.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.machine_sample import MachineSample
from hilnode.shared.row import HEADER, Col

__all__ = ["FILE_NAME", "Kind", "MachineSample", "TimingLog", "TimingLogError", "TimingWriter", "read"]

FILE_NAME = "timing.hlog"
"""What the log is called in a run directory."""

VERSION = 1
FILE_MAGIC = b"HILTIME\n"
FILE_HEAD = struct.Struct("<8sIII")
BLOCK_MAGIC = b"\x89HLBLK\r\n"
BLOCK_HEAD = struct.Struct("<8sIIII")
TABLE_HEAD = struct.Struct("<II")
NUMBER = struct.Struct("<Q")

Table = NDArray[np.int64]


class TimingLogError(ValueError):
    """A file that is no timing log, or one written by a newer hilnode."""


class Kind(IntEnum):
    """What a block holds."""

    ROWS = 1
    SAMPLES = 2
    LOST = 3
    FOOTER = 4


def pack_table(table: Table) -> bytes:
    """Pack int64 `[n, columns]` as the file holds it; differences wrap around, so that any value survives."""
    columns = np.array(table.T, dtype="<i8", order="C")
    columns[:, 1:] -= columns[:, :-1].copy()
    planes = columns.view(np.uint8).reshape(-1, 8).T
    return TABLE_HEAD.pack(*table.shape) + zlib.compress(planes.tobytes(), 1)


def unpack_table(payload: bytes) -> Table:
    """Unpack what `pack_table` made, as `[columns, n]`: a column lies in one piece."""
    n, width = TABLE_HEAD.unpack_from(payload)
    planes = np.frombuffer(zlib.decompress(payload[TABLE_HEAD.size :]), np.uint8).reshape(8, n * width)
    columns = np.ascontiguousarray(planes.T).view("<i8").reshape(width, n)
    return np.cumsum(columns, axis=1, dtype=np.int64)


def block(kind: Kind, payload: bytes) -> bytes:
    """Frame a payload so that a reader can find it, check it and step over it."""
    head = struct.pack("<8sIII", BLOCK_MAGIC, kind, len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def file_head(meta: dict[str, Any]) -> bytes:
    """Begin a file: what it is, and what run it belongs to."""
    text = json.dumps(meta).encode()
    return FILE_HEAD.pack(FILE_MAGIC, VERSION, len(text), _head_crc(VERSION, text)) + text


def _head_crc(version: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(struct.pack("<II", version, len(text))))


class TimingWriter:
    """Appends to a new log. `append`, `sample` and `lost` only buffer; `flush` is one write of whole blocks.

    What was flushed survives a kill of this process; with `sync` it also survives a power cut, at the price of waiting
    for the disc.
    """

    def __init__(self, path: str | os.PathLike[str], meta: dict[str, Any], *, resume: bool = False) -> None:
        """`resume` goes on with a file whose writer was killed; half a block at its end is damage the reader counts."""
        self.path = Path(path)
        self._rows: list[Table] = []
        self._samples: list[MachineSample] = []
        self._lost = 0
        how = 0 if resume else os.O_CREAT | os.O_EXCL
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | how, 0o644)
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        if not resume:
            try:
                self._write(file_head(meta))
            except OSError:
                self.abandon()
                raise

    def append(self, header_rows: Table) -> None:
        """Take a copy of `[n, 12]` row headers: the ring may overwrite the original at once."""
        if header_rows.ndim != 2 or header_rows.shape[1] != HEADER or header_rows.dtype != np.int64:
            raise ValueError(
                f"{self.path}: append() got {header_rows.dtype} {list(header_rows.shape)};"
                f" it takes int64 [n, {HEADER}]: pass rows[:, :{HEADER}] of the ring, viewed as int64"
            )
        if len(header_rows):
            self._rows.append(header_rows.copy())

    def sample(self, d: MachineSample) -> None:
        """Take one reading of the machine's counters."""
        self._samples.append(d)

    def lost(self, n: int) -> None:
        """Note that the ring overwrote `n` rows before the recorder read them."""
        self._lost += n

    def flush(self, *, sync: bool = False) -> None:
        """Write what is buffered.

        If the disc refuses, the file is cut back to its last whole block, the buffered rows are given up and
        counted as lost, so that memory stays bounded, and the error goes to the caller, who may go on.
        """
        rows, samples, lost = self._rows, self._samples, self._lost
        self._rows, self._samples, self._lost = [], [], 0
        out = b""
        if rows:
            out += block(Kind.ROWS, pack_table(np.concatenate(rows)))
        if samples:
            out += block(Kind.SAMPLES, pack_table(np.array(samples, np.int64)))
        if lost:
            out += block(Kind.LOST, NUMBER.pack(lost))
        try:
            self._write(out)
        except OSError:
            self._lost = lost + sum(len(part) for part in rows)
            raise
        if sync:
            os.fdatasync(self._fd)

    def close(self, total_ticks: int) -> None:
        """Write the rest and the footer. Without this call a reader knows that the run was cut short."""
        if self._fd < 0:
            return
        try:
            self.flush()
            self._write(block(Kind.FOOTER, NUMBER.pack(total_ticks)))
            os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1

    def abandon(self) -> None:
        """Let go of the file without a footer."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def _write(self, data: bytes) -> None:
        """Write all of it or nothing: half a block in the middle of the file would cost the reader the next one."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            if len(left) < len(data):
                os.ftruncate(self._fd, self._size)
                os.lseek(self._fd, self._size, os.SEEK_SET)
            raise
        self._size += len(data)


@dataclass(frozen=True, eq=False)
class TimingLog:
    """What a file held. Ticks are in the order they were written."""

    meta: dict[str, Any] = field(default_factory=dict)
    columns: Table = field(default_factory=lambda: np.empty((HEADER, 0), np.int64))
    samples: tuple[MachineSample, ...] = ()
    lost: int = 0
    closed: bool = False
    damaged_blocks: int = 0
    total: int | None = None
    path: Path = Path(FILE_NAME)

    def __len__(self) -> int:
        return self.columns.shape[1]

    @property
    def rows(self) -> Table:
        """Row headers `[n, 12]`, words as in `hilnode.shared.row.Col`."""
        return self.columns.T

    @property
    def tick(self) -> Table:
        return self.columns[Col.TICK]

    @property
    def step(self) -> Table:
        return self.columns[Col.STEP]

    @property
    def deadline(self) -> Table:
        return self.columns[Col.DEADLINE]

    @property
    def wake(self) -> Table:
        return self.columns[Col.WAKE]

    @property
    def start(self) -> Table:
        return self.columns[Col.START]

    @property
    def end(self) -> Table:
        return self.columns[Col.END]

    @property
    def done(self) -> Table:
        return self.columns[Col.DONE]

    @property
    def period(self) -> Table:
        return self.columns[Col.PERIOD]

    @property
    def flags(self) -> Table:
        return self.columns[Col.FLAGS]

    @property
    def state(self) -> Table:
        return self.columns[Col.STATE]

    @property
    def status(self) -> Table:
        return self.columns[Col.STATUS]

    @property
    def missed(self) -> Table:
        return self.columns[Col.MISSED]

    @property
    def missing(self) -> int:
        """Ticks the node made that are not in the file.

        Counted from tick 0 to the footer's total, or to the last tick seen if there is no footer.
        """
        last = int(self.tick.max()) + 1 if len(self) else 0
        expected = max(last, self.total or 0)
        return expected - len(np.unique(self.tick[self.tick >= 0]))


@dataclass
class _Scan:
    """The pieces of a file while it is being read."""

    data: bytes
    meta: dict[str, Any] = field(default_factory=dict)
    rows: list[Table] = field(default_factory=list)
    samples: list[MachineSample] = field(default_factory=list)
    lost: int = 0
    total: int | None = None
    damaged: int = 0

    def file_head(self, path: Path) -> int:
        """Read the head of the file; return where the blocks begin, or where to begin looking for one."""
        data = self.data
        if len(data) < FILE_HEAD.size or not data.startswith(FILE_MAGIC):
            if not FILE_MAGIC.startswith(data[: len(FILE_MAGIC)]):
                self.damaged += 1
            return _next_block(data, 0)
        _, version, length, crc = FILE_HEAD.unpack_from(data)
        text = data[FILE_HEAD.size : FILE_HEAD.size + length]
        if len(text) == length and _head_crc(version, text) == crc:
            if version != VERSION:
                raise TimingLogError(
                    f"{path}: timing log of version {version}, this hilnode reads version {VERSION}:"
                    " read it with the hilnode that wrote it (its run.json names the version)"
                )
            self.meta = json.loads(text)
            return FILE_HEAD.size + length
        found = _next_block(data, FILE_HEAD.size)
        if found < len(data) or len(text) == length:  # damaged; otherwise just cut short
            self.damaged += 1
        return found

    def blocks(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield `(kind, payload)` of every whole block from `at` on; count what had to be stepped over."""
        data = self.data
        while at < len(data):
            head = data[at : at + BLOCK_HEAD.size]
            if len(head) < BLOCK_HEAD.size and BLOCK_MAGIC.startswith(head[: len(BLOCK_MAGIC)]):
                return  # cut within a head
            if _head_is_whole(head):
                _, kind, length, crc, _ = BLOCK_HEAD.unpack(head)
                begin = at + BLOCK_HEAD.size
                payload = data[begin : begin + length]
                if len(payload) == length and zlib.crc32(payload) == crc:
                    yield kind, payload
                    at = begin + length
                    continue
                at = _next_block(data, begin)
                if at == len(data) and len(payload) < length:
                    return  # cut within a payload
            else:
                at = _next_block(data, at + 1)
            self.damaged += 1

    def take(self, kind: int, payload: bytes) -> None:
        """Sort one block in. A kind from a newer hilnode is passed over: it is an addition, not damage."""
        if kind == Kind.ROWS:
            self.rows.append(unpack_table(payload))
        elif kind == Kind.SAMPLES:
            self.samples.extend(MachineSample(*counters) for counters in unpack_table(payload).T.tolist())
        elif kind == Kind.LOST:
            self.lost += NUMBER.unpack(payload)[0]
        elif kind == Kind.FOOTER:
            self.total = NUMBER.unpack(payload)[0]


def _next_block(data: bytes, start: int) -> int:
    """Where the next block may begin, at or after `start`; the end of the file if there is none."""
    at = data.find(BLOCK_MAGIC, start)
    return at if at >= 0 else len(data)


def _head_is_whole(head: bytes) -> bool:
    if len(head) < BLOCK_HEAD.size or not head.startswith(BLOCK_MAGIC):
        return False
    return zlib.crc32(head[:-4]) == int.from_bytes(head[-4:], "little")


def read(path: str | os.PathLike[str]) -> TimingLog:
    """Read a log, whole or not.

    A cut file gives every block that is complete and `closed=False`; damaged blocks are stepped over and counted.
    Only a file that was never a timing log, or one of another version, is refused.
    """
    path = Path(path)
    scan = _Scan(path.read_bytes())
    begin = scan.file_head(path)
    if begin == len(scan.data) and not FILE_MAGIC.startswith(scan.data[: len(FILE_MAGIC)]):
        raise TimingLogError(
            f"{path}: not a timing log: it begins with {scan.data[:8]!r}, not {FILE_MAGIC!r}, and holds no block;"
            f" give a run directory or its {FILE_NAME}"
        )
    for kind, payload in scan.blocks(begin):
        scan.take(kind, payload)
    columns = np.concatenate(scan.rows, axis=1) if scan.rows else np.empty((HEADER, 0), np.int64)
    return TimingLog(
        meta=scan.meta,
        columns=columns,
        samples=tuple(scan.samples),
        lost=scan.lost,
        closed=scan.total is not None,
        damaged_blocks=scan.damaged,
        total=scan.total,
        path=path,
    )
