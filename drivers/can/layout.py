"""Bit layout of CAN messages: bytes of a frame to numbers and back, by a table made once.

cantools reads the database and knows what the bits mean; its own coding goes through dictionaries and takes 1.4 times
(decoding) to 3 times (encoding) as long. A signal here is a shift and a mask in the frame taken as one whole number:

    Intel (little endian)     start = its lowest bit, numbered as in the number read with byte 0 lowest
    Motorola (big endian)     start = its highest bit in the same numbering; shift = from the end of the number read
                              with byte 0 highest: 8 * length - (8 * (start // 8) + 7 - start % 8) - bits

A multiplexed message is a tree of pages. What is received picks its pages by the multiplexers' values; what is sent
goes page by page, in turn. A frame is taken whole or not at all.

Ref: Vector, "DBC File Format Documentation", section 8.2 (signals), section 13 (extended multiplexing).
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cantools.database.can import Message, Signal

FLOATS = {bits: struct.Struct(form) for bits, form in ((16, "<e"), (32, "<f"), (64, "<d"))}
LARGEST = {16: 65504.0, 32: 3.4028234663852886e38, 64: math.inf}
FD_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64)
MOST_PAGES = 1000
NO_CHANNEL = -1


@dataclass(frozen=True, slots=True)
class Field:
    """Where one signal lies and what its number means."""

    name: str
    channel: int  # of the driver, or NO_CHANNEL
    big: bool
    shift: int
    mask: int
    sign: int  # its highest bit if it is signed, else 0
    float_bits: int  # 16, 32 or 64; 0 for a whole number
    scale: float  # whole where the database has a whole number: so that 64 bits keep their last digit
    offset: float

    def raw(self, value: float) -> int:
        """The bits for a value, the nearest that there is; ValueError for what is no number."""
        if not math.isfinite(value):
            raise ValueError(f"{self.name} = {value} is no number: not sent")
        number = (value - self.offset) / self.scale
        if self.float_bits:
            most = LARGEST[self.float_bits]
            return int.from_bytes(FLOATS[self.float_bits].pack(min(max(number, -most), most)), "little")
        low, high = (-self.sign, self.sign - 1) if self.sign else (0, self.mask)
        return (low if number <= low else high if number >= high else round(number)) & self.mask

    @property
    def span(self) -> tuple[float, float]:
        """The least and the greatest value that the bits can hold."""
        if self.float_bits:
            return -math.inf, math.inf
        low, high = (-self.sign, self.sign - 1) if self.sign else (0, self.mask)
        ends = sorted((low * self.scale + self.offset, high * self.scale + self.offset))
        return float(ends[0]), float(ends[1])


def field_of(signal: Signal, length: int, channel: int) -> Field:
    """The place of a signal in a message of `length` bytes."""
    start, bits = signal.start, signal.length
    big = signal.byte_order == "big_endian"
    shift = 8 * length - (8 * (start // 8) + 7 - start % 8) - bits if big else start
    return Field(
        name=signal.name,
        channel=channel,
        big=big,
        shift=shift,
        mask=(1 << bits) - 1,
        sign=1 << (bits - 1) if signal.is_signed and not signal.is_float else 0,
        float_bits=bits if signal.is_float else 0,
        scale=signal.conversion.scale,
        offset=signal.conversion.offset,
    )


Whole = tuple[int, bool, int, int, int, float, float]
Float = tuple[int, bool, int, int, int, Callable[[bytes], tuple[float]], float, float]
"""What `decode` walks through: channel, byte order, shift, mask, then sign or (bytes, unpack), scale, offset."""


@dataclass(slots=True)
class Page:
    """Signals that come together, and the multiplexers among them with the pages that they choose."""

    fields: list[Field] = field(default_factory=list)
    switches: list[tuple[Field, dict[int, Page]]] = field(default_factory=list)
    numbers: tuple[Whole, ...] = ()
    floats: tuple[Float, ...] = ()

    def freeze(self) -> Page:
        """Make the tables that `decode` walks through."""
        used = [f for f in self.fields if f.channel != NO_CHANNEL]
        self.numbers = tuple(
            (f.channel, f.big, f.shift, f.mask, f.sign, f.scale, f.offset) for f in used if not f.float_bits
        )
        self.floats = tuple(
            (f.channel, f.big, f.shift, f.mask, f.float_bits // 8, FLOATS[f.float_bits].unpack, f.scale, f.offset)
            for f in used
            if f.float_bits
        )
        return self


class Layout:
    """One message. `channels` says where each of its signals goes, by the signal's name."""

    def __init__(self, message: Message, channels: Mapping[str, int]) -> None:
        self.name = message.name
        self.length = message.length
        fields = {s.name: field_of(s, message.length, channels.get(s.name, NO_CHANNEL)) for s in message.signals}
        self._both = any(f.big for f in fields.values())
        self._top = _page(message.signal_tree, fields)

    # -- receiving ------------------------------------------------------------------------------------------------

    def decode(self, data: bytes | bytearray, now: int, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> None:
        """Put the frame's values and the time `now` into their channels; ValueError, and nothing done, for a bad one.

        More bytes than the message has are no fault: CAN FD rounds lengths up.
        """
        length = self.length
        if len(data) < length:
            raise ValueError(f"{self.name}: a frame of {len(data)} bytes, the database has {length}: dropped")
        if len(data) > length:
            data = data[:length]
        words = (int.from_bytes(data, "little"), int.from_bytes(data, "big") if self._both else 0)
        top = self._top
        for page in self._chosen(words) if top.switches else (top,):
            for channel, big, shift, mask, sign, scale, offset in page.numbers:
                values[channel] = (((words[big] >> shift & mask) ^ sign) - sign) * scale + offset
                stamps[channel] = now
            for channel, big, shift, mask, size, unpack, scale, offset in page.floats:
                values[channel] = unpack((words[big] >> shift & mask).to_bytes(size, "little"))[0] * scale + offset
                stamps[channel] = now

    def _chosen(self, words: tuple[int, int]) -> list[Page]:
        """The pages that this frame holds."""
        pages = [self._top]
        for page in pages:  # grows while it is walked
            for f, choices in page.switches:
                number = words[f.big] >> f.shift & f.mask
                if number not in choices:
                    raise ValueError(f"{self.name}: {f.name} = {number} is a page that the database has not: dropped")
                pages.append(choices[number])
        return pages

    # -- sending --------------------------------------------------------------------------------------------------

    def frames(self) -> list[PackedFrame]:
        """What is sent for this message: one frame, or one for each page."""
        return [PackedFrame(self.length, f, fixed) for f, fixed in _ways(self._top)]


class PackedFrame:
    """One page of a message, to be filled with values. Bits that no signal has are 0."""

    def __init__(self, length: int, fields: Sequence[Field], fixed: Sequence[tuple[Field, int]]) -> None:
        self._length = length
        self._fields = tuple(fields)
        self._little = sum(number << f.shift for f, number in fixed if not f.big)
        self._big = sum(number << f.shift for f, number in fixed if f.big)
        self.size = next(n for n in FD_LENGTHS if n >= length)  # on the wire; CAN FD has not every length

    def encode(self, values: Sequence[float]) -> bytes:
        """The bytes for these values of the driver's channels."""
        words = [self._little, self._big]
        for f in self._fields:
            words[f.big] |= f.raw(values[f.channel]) << f.shift
        little = words[0] | int.from_bytes(words[1].to_bytes(self._length, "big"), "little")
        return little.to_bytes(self.size, "little")


def _page(tree: Any, fields: Mapping[str, Field]) -> Page:
    """From cantools' tree: names, and for a multiplexer a dictionary {name: {number: tree}}."""
    page = Page()
    for node in tree:
        if isinstance(node, str):
            page.fields.append(fields[node])
        else:
            ((name, choices),) = node.items()
            page.fields.append(fields[name])
            page.switches.append((fields[name], {n: _page(below, fields) for n, below in choices.items()}))
    return page.freeze()


Way = tuple[list[Field], list[tuple[Field, int]]]  # fields with a channel, and multiplexers with their numbers


def _ways(page: Page) -> list[Way]:
    """Every combination of pages."""
    switches = {f.name for f, _ in page.switches}
    own = [f for f in page.fields if f.name not in switches and f.channel != NO_CHANNEL]
    branches: list[list[Way]] = []
    for f, choices in page.switches:
        branches.append([(more, [(f, n), *fixed]) for n, below in choices.items() for more, fixed in _ways(below)])
    if math.prod(len(b) for b in branches) > MOST_PAGES:
        raise ValueError(f"it has more than {MOST_PAGES} pages")
    return [
        (own + [f for more, _ in chosen for f in more], [pair for _, fixed in chosen for pair in fixed])
        for chosen in itertools.product(*branches)
    ]
