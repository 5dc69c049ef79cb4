"""Scans an MCAP file from its first byte, whether or not its writer lived to finish it.

An MCAP file is a line of records: opcode u8, length u64, content. Walking over their heads needs no summary, so a file
whose writer was killed reads as well as any other, up to its last whole record.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b"\x89MCAP0\r\n"
HEAD = struct.Struct("<BQ")
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
_CHUNK, _U64 = struct.Struct("<QQQII"), struct.Struct("<Q")
MESSAGE_INDEX, METADATA, DATA_END = 0x07, 0x0C, 0x0F


class RecordingError(ValueError):
    """A file that is no recording, or one that this program cannot read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands."""

    opcode: int
    offset: int  # of its head
    length: int  # with its head

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True)
class Scan:
    """All whole records of the data section, in order."""

    places: list[Place]
    end: int  # of the last whole record of the data section
    torn: int  # bytes behind it that are no whole record
    complete: bool  # the writer ended in order

    def of(self, opcode: int) -> list[Place]:
        return [p for p in self.places if p.opcode == opcode]


def scan(file: BinaryIO, path: Path) -> Scan:
    """Walk over the records up to the end of the data section."""
    size = file.seek(0, 2)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise RecordingError(f"{path} is no MCAP file: name a run's folder, or the rows.mcap in it")
    places: list[Place] = []
    at, complete = len(MAGIC), False
    while at + HEAD.size <= size:
        file.seek(at)
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:  # a new writer has just cut off what a killed one left
            size = max(at, file.seek(0, 2))
            break
        opcode, length = HEAD.unpack(head)
        if opcode == DATA_END:
            file.seek(size - len(MAGIC))
            complete = file.read(len(MAGIC)) == MAGIC and size > at + len(MAGIC)
            break
        if length > size - at - HEAD.size or opcode == 0:
            break
        places.append(Place(opcode, at, HEAD.size + length))
        at += HEAD.size + length
    return Scan(places, at, 0 if complete else size - at, complete)


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """What stands before the data of a chunk."""

    start: int  # time of its first message [ns]
    end: int  # and of its last
    size: int  # of the data when it is unpacked
    crc: int  # of that data; 0 = not known
    compression: str
    data: Place  # where the data stand

    @classmethod
    def read(cls, file: BinaryIO, place: Place) -> ChunkHead:
        file.seek(place.offset + HEAD.size)
        start, end, size, crc, length = _CHUNK.unpack(file.read(_CHUNK.size))
        name = file.read(length).decode()
        (packed,) = _U64.unpack(file.read(_U64.size))
        return cls(start, end, size, crc, name, Place(CHUNK, file.tell(), packed))


def content(file: BinaryIO, place: Place) -> bytes:
    """The bytes of a record, without its head."""
    file.seek(place.offset + HEAD.size)
    return file.read(place.length - HEAD.size)
