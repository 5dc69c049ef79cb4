"""Writes MCAP such that a kill at any moment loses at most the chunk being written.

    magic  header  metadata  schemas  channels  | chunk  message indexes | chunk  message indexes | ...  summary  magic

What stands between two bars is one write and one wait for the disc. Rows of a chunk have all the same size, so they are
laid out by numpy at once instead of one by one: a thousand rows take a millisecond. The `mcap` package defines the
records; its own writer decides by itself when a chunk is full and cannot go on with a file.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream, RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from numpy.typing import NDArray

from bridge.record.mcap_scan import (
    CHUNK,
    MAGIC,
    MESSAGE,
    MESSAGE_INDEX,
    METADATA,
    ChunkHead,
    Place,
    RecordingError,
    content,
    scan,
)

MESSAGE_HEAD = 22  # [bytes] channel, sequence and two times, before the data
_LEVEL = 1  # of zstd: several hundred megabytes a second


@dataclass(frozen=True)
class Messages:
    """Messages of one channel, ready to stand in a chunk."""

    channel: int
    times: NDArray[np.int64]
    offsets: NDArray[np.int64]  # of each message within `data`
    data: bytes


def even_messages(
    channel: int, sequence: NDArray[np.int64], times: NDArray[np.int64], prefix: bytes, words: NDArray[np.int64]
) -> Messages:
    """Messages of one size: `prefix` and a row of `words` each."""
    form = np.dtype(
        [
            ("opcode", "u1"),
            ("length", "<u8"),
            ("channel", "<u2"),
            ("sequence", "<u4"),
            ("log_time", "<i8"),
            ("publish_time", "<i8"),
            ("prefix", "u1", len(prefix)),
            ("words", "<i8", words.shape[1]),
        ]
    )
    table = np.zeros(len(words), form)
    table["opcode"], table["length"], table["channel"] = MESSAGE, form.itemsize - 9, channel
    table["sequence"] = sequence & 0xFFFFFFFF
    table["log_time"] = table["publish_time"] = times
    table["prefix"] = np.frombuffer(prefix, np.uint8)
    table["words"] = words
    return Messages(channel, times, np.arange(len(words)) * form.itemsize, table.tobytes())


def uneven_messages(channel: int, items: Sequence[tuple[int, int, bytes]]) -> Messages:
    """Messages of any size, from (sequence, time, data)."""
    data, offsets = bytearray(), []
    for sequence, time, body in items:
        offsets.append(len(data))
        data += MESSAGE.to_bytes(1, "little") + (MESSAGE_HEAD + len(body)).to_bytes(8, "little")
        data += channel.to_bytes(2, "little") + (sequence & 0xFFFFFFFF).to_bytes(4, "little")
        data += 2 * time.to_bytes(8, "little") + body
    return Messages(channel, np.array([t for _, t, _ in items], np.int64), np.array(offsets, np.int64), bytes(data))


class McapFile:
    """One file being written. An OSError leaves it as it was after the last chunk."""

    def __init__(self, path: Path, head: Sequence[McapRecord], last_channel: int) -> None:
        """Begin a file with these records, or go on with the one that is there.

        `last_channel` is the one that has a message in every chunk: its index ends the group of records that is written
        at once, so that a half-written group can be told.
        """
        self.path = path
        self._head = [record for record in head if isinstance(record, (Schema, Channel))]
        self._indexes: list[ChunkIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = {}
        self._last = last_channel
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.size = 0
        self.cut = 0  # bytes of a half-written group that were taken away
        self.resumed = os.fstat(self._fd).st_size > 0 and self._resume()
        if not self.resumed:
            self._begin(head)

    def _begin(self, head: Sequence[McapRecord]) -> None:
        os.ftruncate(self._fd, 0)
        builder = RecordBuilder()
        builder.write(MAGIC)
        for record in head:
            at = builder.count
            record.write(builder)
            if isinstance(record, Metadata):
                self._metadata.append(MetadataIndex(offset=at, length=builder.count - at, name=record.name))
        self._write(builder.end())

    def _resume(self) -> bool:
        """Take the file as a killed writer left it; False if it had not come as far as its first chunk."""
        with self.path.open("rb") as file:
            try:
                found = scan(file, self.path)
            except RecordingError:  # killed within its first bytes
                return False
            groups = self._groups(file, found.places)
            if not groups:
                return False
            for place in found.of(METADATA):
                name = Metadata.read(ReadDataStream(io.BytesIO(content(file, place)))).name
                self._metadata.append(MetadataIndex(offset=place.offset, length=place.length, name=name))
            size = file.seek(0, 2)
        self.size = groups[-1]
        self.cut = size - self.size
        os.ftruncate(self._fd, self.size)
        return True

    def _groups(self, file: BinaryIO, places: Sequence[Place]) -> list[int]:
        """Ends of the whole groups; notes their chunks."""
        ends: list[int] = []
        chunk: Place | None = None
        indexes: dict[int, tuple[Place, int]] = {}
        for place in places:
            if place.opcode == CHUNK:
                chunk, indexes = place, {}
            elif place.opcode == MESSAGE_INDEX and chunk:
                file.seek(place.offset + 9)
                channel = int.from_bytes(file.read(2), "little")
                indexes[channel] = (place, (place.length - 15) // 16)
                if channel == self._last:
                    self._note_group(file, chunk, indexes)
                    ends.append(place.end)
                    chunk = None
        return ends

    def _note_group(self, file: BinaryIO, place: Place, indexes: dict[int, tuple[Place, int]]) -> None:
        head = ChunkHead.read(file, place)
        offsets = {channel: index.offset for channel, (index, _) in indexes.items()}
        length = max(index.end for index, _ in indexes.values()) - place.end
        self._note(place, head.compression, (head.data.length, head.size), (head.start, head.end), offsets, length)
        for channel, (_, count) in indexes.items():
            self._counts[channel] = self._counts.get(channel, 0) + count

    def _note(
        self,
        place: Place,
        compression: str,
        sizes: tuple[int, int],
        times: tuple[int, int],
        index_offsets: dict[int, int],
        index_length: int,
    ) -> None:
        """Remember a chunk for the summary."""
        self._indexes.append(
            ChunkIndex(
                chunk_length=place.length,
                chunk_start_offset=place.offset,
                compression=compression,
                compressed_size=sizes[0],
                uncompressed_size=sizes[1],
                message_start_time=times[0],
                message_end_time=times[1],
                message_index_offsets=index_offsets,
                message_index_length=index_length,
            )
        )

    def add(self, parts: Sequence[Messages]) -> None:
        """One chunk, on the disc when this returns. The last part must be of `last_channel`."""
        assert parts[-1].channel == self._last
        data = b"".join(part.data for part in parts)
        packed = self._compressor.compress(data)
        times = min(int(part.times.min()) for part in parts), max(int(part.times.max()) for part in parts)
        builder = RecordBuilder()
        Chunk(
            compression="zstd",
            data=packed,
            message_start_time=times[0],
            message_end_time=times[1],
            uncompressed_crc=zlib.crc32(data),
            uncompressed_size=len(data),
        ).write(builder)
        place = Place(CHUNK, self.size, builder.count)
        index_offsets, before = {}, 0
        for part in parts:
            index_offsets[part.channel] = self.size + builder.count
            pairs = np.column_stack([part.times, part.offsets + before]).astype("<i8")
            _write_index(builder, part.channel, pairs.tobytes())
            before += len(part.data)
        index_length = builder.count - place.length
        self._write(builder.end())
        self._note(place, "zstd", (len(packed), len(data)), times, index_offsets, index_length)
        for part in parts:
            self._counts[part.channel] = self._counts.get(part.channel, 0) + len(part.times)

    def finish(self) -> None:
        """Write the summary that lets other tools open a long file at once, and close."""
        try:
            self._write(self._summary())
        finally:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _summary(self) -> bytes:
        builder = RecordBuilder()
        DataEnd(0).write(builder)
        start = builder.count
        for record in self._head:
            record.write(builder)
        for index in (*self._metadata, *self._indexes):
            index.write(builder)
        schemas = sum(isinstance(r, Schema) for r in self._head)
        Statistics(
            attachment_count=0,
            channel_count=len(self._head) - schemas,
            channel_message_counts=self._counts,
            chunk_count=len(self._indexes),
            message_count=sum(self._counts.values()),
            message_end_time=max((i.message_end_time for i in self._indexes), default=0),
            message_start_time=min((i.message_start_time for i in self._indexes), default=0),
            metadata_count=len(self._metadata),
            schema_count=schemas,
        ).write(builder)
        Footer(summary_start=self.size + start, summary_offset_start=0, summary_crc=0).write(builder)
        builder.write(MAGIC)
        return bytes(builder.end())

    def _write(self, data: bytes) -> None:
        """All of it, down to the disc, or none of it."""
        view, at = memoryview(data), self.size
        try:
            while view:
                count = os.pwrite(self._fd, view, at)
                view, at = view[count:], at + count
            os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        self.size = at


def _write_index(builder: RecordBuilder, channel: int, pairs: bytes) -> None:
    """A MessageIndex record; that of `mcap` takes a list of pairs, a thousand a second."""
    builder.start_record(Opcode.MESSAGE_INDEX)
    builder.write2(channel)
    builder.write4(len(pairs))
    builder.write(pairs)
    builder.finish_record()
