"""HID report descriptors: which bits of which report mean what.

A descriptor is a list of items. Global items (usage page, logical range, size, count) stay until they change and can be
pushed and popped; local items (usages) are for the next main item only; a main item makes fields of what has gathered.

Ref: Device Class Definition for HID 1.11, sections 5.4 to 6.2.2. Where devices bend the rules, the fields are what
Linux makes of them (drivers/hid/hid-core.c): a logical maximum is unsigned if the minimum is not negative, and usages
take the usage page that holds at the main item.
Limits: delimiters (alternative usages) take the first; strings, designators and collections are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag

MOST_FIELDS = 4096
"""More fields than any device has: a descriptor that asks for more is broken, and must not eat the memory."""
MOST_BITS = 16384 * 8
"""The longest report that Linux takes (HID_MAX_BUFFER_SIZE)."""
MOST_USAGES = 12288
"""For one main item; Linux takes no more either (HID_MAX_USAGES)."""
WIDEST = 32  # [bit]


class DescriptorError(ValueError):
    """A descriptor that makes no sense."""


class Main(IntFlag):
    """Flags of a main item (HID 1.11, section 6.2.2.5)."""

    CONSTANT = 0x01
    VARIABLE = 0x02
    RELATIVE = 0x04
    NULL_STATE = 0x40


class Kind(IntEnum):
    """What a report is for."""

    INPUT = 8
    OUTPUT = 9
    FEATURE = 11


@dataclass(frozen=True, slots=True)
class Field:
    """One number in a report, or an array: `count` numbers, each of which points at one of `usages`."""

    kind: Kind
    report: int  # its id; 0 if the device does not number its reports
    bit: int  # where it begins, after the id
    size: int  # [bit]
    usages: tuple[int, ...]  # page << 16 | id
    low: int
    high: int
    physical_low: int = 0
    physical_high: int = 0
    exponent: int = 0
    unit: int = 0
    flags: int = Main.VARIABLE
    count: int = 1

    @property
    def is_array(self) -> bool:
        return not self.flags & Main.VARIABLE

    @property
    def is_relative(self) -> bool:
        return bool(self.flags & Main.RELATIVE)

    @property
    def is_signed(self) -> bool:
        return self.low < 0

    @property
    def scale(self) -> tuple[float, float]:
        """(factor, offset) from the number to what it measures; the number itself where nothing is said."""
        bottom, top = self.physical_low, self.physical_high
        if (bottom == 0 and top == 0) or self.high == self.low:
            bottom, top = self.low, self.high
        power = 10.0**self.exponent
        factor = (top - bottom) / (self.high - self.low) * power if self.high != self.low else power
        return factor, bottom * power - self.low * factor


@dataclass(frozen=True)
class Descriptor:
    """All fields of a device that carry something, and the length of its reports."""

    fields: tuple[Field, ...]
    numbered: bool  # whether reports begin with their id
    bits: dict[tuple[Kind, int], int]

    def of(self, kind: Kind) -> list[Field]:
        return [f for f in self.fields if f.kind == kind]

    def size(self, kind: Kind, report: int) -> int:
        """Bytes of a report, without its id."""
        return (self.bits.get((kind, report), 0) + 7) // 8

    def longest(self, kind: Kind) -> int:
        """Bytes of the longest report of a kind, with its id."""
        return max((self.size(k, r) for k, r in self.bits if k == kind), default=0) + self.numbered


@dataclass
class _Globals:
    page: int = 0
    low: tuple[int, int] = (0, 0)  # (number, its bytes): the sign is only known with the other end
    high: tuple[int, int] = (0, 0)
    physical_low: tuple[int, int] = (0, 0)
    physical_high: tuple[int, int] = (0, 0)
    exponent: int = 0
    unit: int = 0
    size: int = 0
    count: int = 0
    report: int = 0


@dataclass
class _Locals:
    usages: list[tuple[int, int]] = field(default_factory=list)  # (usage, its bytes)
    least: tuple[int, int] | None = None
    delimited: int = 0  # usages seen within a delimiter


def parse(data: bytes) -> Descriptor:
    """The fields of a descriptor; DescriptorError if it cannot be read."""
    return _Parser().run(data)


def _items(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(type, tag, value, its bytes) of every item."""
    at = 0
    while at < len(data):
        prefix = data[at]
        at += 1
        if prefix == 0xFE:  # a long item: nobody has ever defined one
            at += 2 + (data[at] if at < len(data) else 0)
            continue
        size = (0, 1, 2, 4)[prefix & 3]
        if at + size > len(data):
            raise DescriptorError(f"the descriptor of {len(data)} bytes ends within the item at byte {at - 1}")
        yield prefix >> 2 & 3, prefix >> 4, int.from_bytes(data[at : at + size], "little"), size
        at += size


def _signed(value: int, size: int) -> int:
    return value - (1 << 8 * size) if size and value >> (8 * size - 1) else value


def _range(low: tuple[int, int], high: tuple[int, int]) -> tuple[int, int]:
    bottom = _signed(*low)
    return bottom, _signed(*high) if bottom < 0 else high[0]


class _Parser:
    def __init__(self) -> None:
        self.now = _Globals()
        self.here = _Locals()
        self.stack: list[_Globals] = []
        self.fields: list[Field] = []
        self.bits: dict[tuple[Kind, int], int] = {}
        self.in_delimiter = False

    def run(self, data: bytes) -> Descriptor:
        for what, tag, value, size in _items(data):
            (self._main, self._global, self._local, self._reserved)[what](tag, value, size)
        numbered = any(report for _, report in self.bits)
        return Descriptor(tuple(self.fields), numbered, self.bits)

    def _reserved(self, tag: int, value: int, size: int) -> None:
        """Skipped, as everybody does."""

    def _global(self, tag: int, value: int, size: int) -> None:
        now = self.now
        match tag:
            case 0:
                now.page = value & 0xFFFF
            case 1:
                now.low = (value, size)
            case 2:
                now.high = (value, size)
            case 3:
                now.physical_low = (value, size)
            case 4:
                now.physical_high = (value, size)
            case 5:
                number = _signed(value, size)  # most devices write -2 as 0x0E, some as 0xFE
                now.exponent = (number ^ 8) - 8 if 0 <= number < 16 else max(-8, min(7, number))
            case 6:
                now.unit = value
            case 7:
                now.size = value
            case 8:
                if not 1 <= value <= 255:
                    raise DescriptorError(f"report id {value} is not from 1 to 255")
                now.report = value
            case 9:
                now.count = value
            case 10:
                if len(self.stack) >= 64:
                    raise DescriptorError("more than 64 pushes without a pop")
                self.stack.append(replace(now))
            case 11:
                if not self.stack:
                    raise DescriptorError("a pop without a push")
                self.now = self.stack.pop()

    def _local(self, tag: int, value: int, size: int) -> None:
        here = self.here
        match tag:
            case 0:
                here.delimited += self.in_delimiter
                if here.delimited <= 1 or not self.in_delimiter:
                    self._room_for(1)
                    here.usages.append((value, size))
            case 1:
                here.least = (value, size)
            case 2 if here.least is not None:
                first, width = here.least
                if width == 4 and size < 4:
                    value |= first & ~0xFFFF  # an extended minimum tells the page of both
                self._room_for(value - first + 1)
                here.usages += [(n, max(width, size)) for n in range(first, value + 1)]
                here.least = None
            case 10:
                self.in_delimiter, here.delimited = bool(value), 0

    def _room_for(self, more: int) -> None:
        if len(self.here.usages) + more > MOST_USAGES:
            raise DescriptorError(f"more than {MOST_USAGES} usages for one item")

    def _main(self, tag: int, value: int, size: int) -> None:
        if tag in (Kind.INPUT, Kind.OUTPUT, Kind.FEATURE):
            self._add(Kind(tag), value)
        self.here = _Locals()

    def _add(self, kind: Kind, flags: int) -> None:
        now = self.now
        begin = self.bits.get((kind, now.report), 0)
        end = begin + now.size * now.count
        if end > MOST_BITS or now.count > MOST_BITS:
            raise DescriptorError(f"a {kind.name.lower()} report of more than {MOST_BITS // 8} bytes")
        self.bits[kind, now.report] = end
        usages = [n if width == 4 else now.page << 16 | n & 0xFFFF for n, width in self.here.usages]
        if flags & Main.CONSTANT or not usages or not 1 <= now.size <= WIDEST:
            return  # padding, or nothing that anybody could ask for
        numbers = now.count if flags & Main.VARIABLE else min(now.count, 1)
        if len(self.fields) + numbers > MOST_FIELDS:
            raise DescriptorError(f"more than {MOST_FIELDS} fields")
        ranges = (*_range(now.low, now.high), *_range(now.physical_low, now.physical_high))
        for k in range(numbers):
            mine = (usages[min(k, len(usages) - 1)],) if flags & Main.VARIABLE else tuple(usages)
            place = (kind, now.report, begin + k * now.size, now.size)
            count = 1 if flags & Main.VARIABLE else now.count
            self.fields.append(Field(*place, mine, *ranges, now.exponent, now.unit, flags, count))
