"""The address of a channel in a Modbus device, and the encoding of its number there.

A device has four tables: coils and discrete inputs hold bits, holding and input registers hold 16-bit words. A number
of 32 bits takes two registers, and makers disagree about which word comes first and which byte of a word: `words` and
`bytes` say it. What a manual calls A B C D, most significant byte first, is

    bytes \\ words    big        little
    big              A B C D    C D A B
    little           B A D C    D C B A

Ref: MODBUS Application Protocol Specification V1.1b3, sections 4.3 and 6.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TABLES = ("coil", "discrete", "input", "holding")
BIT_TABLES = ("coil", "discrete")
WRITABLE = ("coil", "holding")
LAST_ADDRESS = 65535

BIT = "bit"
_FLOAT32 = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]
_CODES = {"int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "float32": ">f"}
TYPES = tuple(_CODES)
_NUMBERS = {name: struct.Struct(code) for name, code in _CODES.items()}
_WORDS = {
    (order, size): struct.Struct(f"{sign}{size}H") for order, sign in (("big", ">"), ("little", "<")) for size in (1, 2)
}
LIMITS = {
    "int16": (-(2.0**15), 2.0**15 - 1),
    "uint16": (0.0, 2.0**16 - 1),
    "int32": (-(2.0**31), 2.0**31 - 1),
    "uint32": (0.0, 2.0**32 - 1),
    "float32": (-_FLOAT32, _FLOAT32),
}


@dataclass(frozen=True, slots=True)
class Point:
    """The place and the form of one channel. The value is `raw * scale + offset`, in the unit of its signal.

    `bit` is the bit of a register, 0 the least significant; -1 for whole registers, coils and discrete inputs.
    """

    name: str
    table: str
    address: int
    type: str
    bit: int = -1
    words: str = "big"
    bytes: str = "big"
    scale: float = 1.0
    offset: float = 0.0

    @property
    def size(self) -> int:
        """Registers (or coils) it takes."""
        return 2 if self.type in ("int32", "uint32", "float32") else 1

    @property
    def end(self) -> int:
        """The address after its last one."""
        return self.address + self.size

    @property
    def place(self) -> str:
        """For people: `holding 4-5`, `holding 7 bit 3`."""
        bit = f" bit {self.bit}" if self.bit >= 0 else ""
        return f"{span(self.table, self.address, self.size)}{bit}"

    def decode(self, cells: Sequence[int], at: int) -> float:
        """The value that `cells` hold from index `at` on."""
        return self._raw(cells, at) * self.scale + self.offset

    def _raw(self, cells: Sequence[int], at: int) -> float:
        if self.bit >= 0:
            return float(self._in_order(cells[at]) >> self.bit & 1)
        if self.type == BIT:
            return float(bool(cells[at]))
        taken = cells[at : at + self.size]
        if self.words == "little":
            taken = taken[::-1]
        return float(_NUMBERS[self.type].unpack(_WORDS[self.bytes, self.size].pack(*taken))[0])

    def encode(self, value: float, cells: list[int], at: int) -> None:
        """Write a value into `cells` from index `at` on; what the form cannot hold becomes its limit.

        Other bits of the same register stay as they are.
        """
        raw = (value - self.offset) / self.scale
        if math.isnan(raw):
            raise ValueError(f"{self.name} is not a number: {self.place} keeps its last value")
        if self.bit >= 0:
            kept = self._in_order(cells[at]) & ~(1 << self.bit)
            cells[at] = self._in_order(kept | (raw >= 0.5) << self.bit)
        elif self.type == BIT:
            cells[at] = int(raw >= 0.5)
        else:
            taken = _WORDS[self.bytes, self.size].unpack(_NUMBERS[self.type].pack(self._fitting(raw)))
            cells[at : at + self.size] = taken[::-1] if self.words == "little" else taken

    def _fitting(self, raw: float) -> float:
        low, high = LIMITS[self.type]
        raw = min(max(raw, low), high)
        return raw if self.type == "float32" else round(raw)

    def _in_order(self, word: int) -> int:
        """The word with its bytes exchanged where the device has them so."""
        return word if self.bytes == "big" else (word & 0xFF) << 8 | word >> 8


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring registers that go over the wire together; `members` are (channel number, point)."""

    table: str
    first: int
    count: int
    members: tuple[tuple[int, Point], ...]

    @property
    def place(self) -> str:
        return span(self.table, self.first, self.count)


def span(table: str, first: int, count: int) -> str:
    """For people: `holding 4`, `holding 4-9`."""
    return f"{table} {first}" + (f"-{first + count - 1}" if count > 1 else "")


def blocks_of(points: Iterable[tuple[int, Point]], *, gap: int, registers: int, bits: int) -> list[Block]:
    """As few requests as possible: neighbours together, over at most `gap` unused places, up to a device's limits."""
    made: list[Block] = []
    run: list[tuple[int, Point]] = []
    for number, point in sorted(points, key=lambda p: (TABLES.index(p[1].table), p[1].address, p[1].bit)):
        if run:
            first, last = run[0][1], run[-1][1]
            most = bits if point.table in BIT_TABLES else registers
            near = point.table == last.table and point.address <= last.end + gap
            if not near or point.end - first.address > most:
                made.append(_block(run))
                run = []
        run.append((number, point))
    return [*made, _block(run)] if run else made


def _block(run: Sequence[tuple[int, Point]]) -> Block:
    first, last = run[0][1], run[-1][1]
    return Block(first.table, first.address, last.end - first.address, tuple(run))


def overlap(points: Iterable[Point]) -> tuple[Point, Point] | None:
    """Two points that want the same place, if there are any; different bits of one register do not."""
    ordered = sorted(points, key=lambda p: (p.table, p.address, p.bit))
    for one, other in itertools.pairwise(ordered):
        apart = one.table != other.table or one.end <= other.address
        if not apart and not (one.bit >= 0 and other.bit >= 0 and one.bit != other.bit):
            return one, other
    return None
