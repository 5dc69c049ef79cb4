"""Reads a recorded run: rows as they were in the ring, events, and what is missing.

    with Run("runs/bench-20270101-120000") as run:
        for rows in run.rows(start_s=2.0, end_s=3.0):     # int64 [n, words], a chunk at a time
            angle = run.column(rows, "pendulum.elbow.angle")

A file whose recorder was killed is read up to its last whole chunk. `notes` says in plain words what is missing. Times
are seconds since the first row, by the clock of the node's PC.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgpack
import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import EndOfFile
from mcap.records import Channel, Metadata
from numpy.typing import NDArray

from bridge.protocol.row_message import PREFIX
from bridge.protocol.rows import unknown_layout
from bridge.record.mcap_scan import CHANNEL, CHUNK, HEAD, MESSAGE, METADATA, ChunkHead, RecordingError, scan
from bridge.record.mcap_scan import content as body_of
from hilnode.core.signals import UnknownName, nearest
from hilnode.shared.row import Col, Schema

FILE_NAME = "rows.mcap"
ROWS, EVENTS, PROGRESS, SIGHTS = "/rows", "/events", "/recorder", "/sights"
RUN = "hilnode.run"
"""Name of the metadata record that tells what run it is."""

_MESSAGE = struct.Struct("<HIQQ")
_KEPT = 4  # unpacked chunks: a player goes back and forth
_JSON = ("config", "schema", "parameters", "scene", "sights", "tasks", "clock_offset_ns", "first_event")


@dataclass(frozen=True)
class Content:
    """What one chunk holds."""

    rows: NDArray[np.int64]
    events: list[dict[str, Any]]  # with `number`, which counts all events of the run
    progress: list[dict[str, Any]]
    sights: list[dict[str, Any]]  # messages of bridge/record/display_record.py


class Run:
    """One recording, by its folder or its file."""

    def __init__(self, place: Path | str) -> None:
        path = Path(place)
        self.path = path / FILE_NAME if path.is_dir() else path
        if not self.path.exists():
            raise RecordingError(f"{self.path}: no such recording; record one with hilnode run --record")
        self._file = self.path.open("rb")
        try:
            self._open()
        except EndOfFile:
            self._file.close()
            raise RecordingError(f"{self.path} is just being begun: try again") from None
        except BaseException:
            self._file.close()
            raise
        self._cached = functools.lru_cache(_KEPT)(self._read)

    def _open(self) -> None:
        found = scan(self._file, self.path)
        self.complete, self.torn = found.complete, found.torn
        self.about = self._about([body_of(self._file, p) for p in found.of(METADATA)])
        if trouble := unknown_layout(self.about["schema"]):
            raise RecordingError(f"{self.path}: {trouble}")
        self.schema = Schema.from_dict(self.about["schema"])
        self._topics: dict[int, str] = {}
        for place in found.of(CHANNEL):
            self._note_channel(body_of(self._file, place))
        self.chunks: list[ChunkHead] = []
        with contextlib.suppress(struct.error):  # a new recorder has just cut off what a killed one left
            for place in found.of(CHUNK):
                self.chunks.append(ChunkHead.read(self._file, place))
        self.damaged: set[int] = set()  # numbers of chunks that could not be read
        named = [*range(self.schema.at_inputs, self.schema.at_ages)]
        named += range(self.schema.at_outputs, self.schema.at_poses)
        self.columns = {s.name: k for s, k in zip(self.schema.signals, named, strict=True)}
        self._origin: int | None = None
        self._progress: dict[str, Any] | None = None

    def _about(self, texts: list[bytes]) -> dict[str, Any]:
        for text in texts:
            record = Metadata.read(ReadDataStream(io.BytesIO(text)))
            if record.name == RUN:
                return {k: json.loads(v) if k in _JSON else v for k, v in record.metadata.items()}
        raise RecordingError(f"{self.path} is an MCAP file, but not of a hilnode run: it has no metadata {RUN!r}")

    def _note_channel(self, body: bytes) -> None:
        channel = Channel.read(ReadDataStream(io.BytesIO(body)))
        self._topics[channel.id] = channel.topic

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def origin_ns(self) -> int:
        """Wake of the first row: where the seconds are counted from."""
        if self._origin is None:
            first = next((c.rows for c in self._contents(range(len(self.chunks))) if len(c.rows)), None)
            if first is None:
                raise RecordingError(
                    f"{self.path} has no rows" + ("" if self.complete else ": its recorder was killed")
                )
            self._origin = int(first[0, Col.WAKE])
        return self._origin

    @property
    def duration_s(self) -> float:
        """From the first row to the last."""
        for held in self._contents(range(len(self.chunks) - 1, -1, -1)):
            if len(held.rows):
                return float(held.rows[-1, Col.WAKE] - self.origin_ns) * 1e-9
        return 0.0

    @property
    def progress(self) -> dict[str, Any]:
        """The recorder's own count at its last chunk."""
        if self._progress is None:
            last = (c.progress[-1] for c in self._contents(range(len(self.chunks) - 1, -1, -1)) if c.progress)
            self._progress = next(last, {})
        return self._progress

    @property
    def notes(self) -> list[str]:
        """What is missing, one line each; nothing if all is there."""
        notes = []
        if lost := self.progress.get("lost_rows"):
            notes.append(f"{lost} rows were overwritten before they could be recorded")
        if lost := self.progress.get("lost_events"):
            notes.append(f"{lost} events were overwritten before they could be recorded")
        if self.damaged:
            notes.append(f"{len(self.damaged)} of {len(self.chunks)} chunks are damaged and were left out")
        if not self.complete:
            notes.append(
                "the file was not finished: what came after its last chunk is missing"
                + (f", and {self.torn} bytes at its end are no whole chunk" if self.torn else "")
            )
        return notes

    def column(self, rows: NDArray[np.int64], name: str) -> NDArray[np.float64]:
        """A signal by name, out of rows."""
        if name not in self.columns:
            raise UnknownName(f"no signal {name!r}: {nearest(name, list(self.columns))}")
        return rows[:, self.columns[name]].view(np.float64)

    def seconds(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds since the first row."""
        return np.asarray((rows[:, Col.WAKE] - self.origin_ns) * 1e-9, np.float64)

    # -- what it holds ----------------------------------------------------------------------------------------------

    def chunk(self, number: int) -> Content:
        """What a chunk holds; nothing if it is damaged."""
        return self._cached(number)

    def chunk_at(self, time_ns: int) -> int:
        """The number of the first chunk that ends at this monotonic time or later; `len(chunks)` if there is none."""
        time = time_ns + int(self.about["clock_offset_ns"])
        return next((k for k, c in enumerate(self.chunks) if c.end >= time), len(self.chunks))

    def chunk_of_tick(self, tick: int) -> int:
        """The number of the chunk in which a row is; the one before, if it was lost."""
        low, high = 0, len(self.chunks) - 1
        while low < high:
            middle = (low + high + 1) // 2
            rows = self.chunk(middle).rows
            if len(rows) and rows[0, Col.TICK] > tick:
                high = middle - 1
            else:
                low = middle
        return low

    def rows(self, start_s: float | None = None, end_s: float | None = None) -> Iterator[NDArray[np.int64]]:
        """Rows of a span of time, a chunk at a time."""
        first = 0 if start_s is None else self.chunk_at(self.origin_ns + round(start_s * 1e9))
        for held in self._contents(range(first, len(self.chunks))):
            if not len(held.rows):
                continue
            seconds = self.seconds(held.rows)
            if end_s is not None and seconds[0] > end_s:
                return
            wanted = (seconds >= (start_s or 0.0)) & (seconds <= (np.inf if end_s is None else end_s))
            if wanted.any():
                yield held.rows[wanted]

    def events(self) -> Iterator[dict[str, Any]]:
        """All events in order."""
        for held in self._contents(range(len(self.chunks))):
            yield from held.events

    def _contents(self, numbers: range) -> Iterator[Content]:
        for number in numbers:
            yield self._read(number)

    def _read(self, number: int) -> Content:
        data = self._unpacked(number)
        if data is None:
            self.damaged.add(number)
            data = b""
        rows: list[memoryview] = []
        events: list[dict[str, Any]] = []
        progress: list[dict[str, Any]] = []
        sights: list[dict[str, Any]] = []
        view, at = memoryview(data), 0
        while at < len(data):
            opcode, length = HEAD.unpack_from(data, at)
            at += HEAD.size
            if opcode == MESSAGE:
                channel, sequence, _, _ = _MESSAGE.unpack_from(data, at)
                body = view[at + _MESSAGE.size : at + length]
                topic = self._topics.get(channel)
                if topic == ROWS:
                    rows.append(body[len(PREFIX) :])
                elif topic == EVENTS:
                    events.append({"number": sequence, **json.loads(bytes(body))})
                elif topic == PROGRESS:
                    progress.append(json.loads(bytes(body)))
                elif topic == SIGHTS:
                    sights.append(msgpack.unpackb(body))
            elif opcode == CHANNEL:  # other programs put them into the chunks
                self._note_channel(data[at : at + length])
            at += length
        table = np.frombuffer(b"".join(rows), "<i8").reshape(len(rows), self.schema.words)
        return Content(table, events, progress, sights)

    def _unpacked(self, number: int) -> bytes | None:
        head = self.chunks[number]
        packed = os.pread(self._file.fileno(), head.data.length, head.data.offset)  # several threads may read
        try:
            if head.compression == "zstd":
                data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=head.size)
            elif head.compression == "lz4":
                import lz4.frame

                data = lz4.frame.decompress(packed)
            else:
                data = packed
        except (zstandard.ZstdError, RuntimeError):
            return None
        if len(data) != head.size or (head.crc and zlib.crc32(data) != head.crc):
            return None
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
