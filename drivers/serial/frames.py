"""Framing of a byte stream: finding, checking and building frames.

    binary          start | fields | checksum | end         its size is fixed, or told by a length among the fields
    csv, regex      start | text | mark checksum | end      it ends where `end` stands

A stream has no borders: frames arrive split, glued together and between garbage. The decoder looks for the first
place where a whole frame fits, byte by byte, and takes nothing else. What it finds depends on the bytes only, never
on how they were cut into reads. Every byte is accounted for: it is part of a frame, or garbage, or still waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from drivers.base import OptionError
from drivers.fields import Binary, Text
from drivers.options import Options
from drivers.serial.checksums import Checksum, checksum_from

KEYS = ("format", "fields", "start", "end", "checksum", "longest", "order", "separator", "pattern", "template")
Order = Literal["little", "big"]
BYTE_ORDERS: dict[str, Order] = {"little": "little", "big": "big"}
OWN_KEYS = {"order": "binary", "separator": "csv", "pattern": "regex", "template": "template"}
LONGEST = 1024  # [bytes] a frame; more means that its end was lost


@dataclass(slots=True)
class Counts:
    """What became of the bytes."""

    frames: int = 0  # good ones
    bad_checksum: int = 0  # frames refused for it; what begins inside of one, without a start mark, is no other
    other: int = 0  # whole, but not ours: other constants, another number of columns
    garbage: int = 0  # [bytes] that belong to none of the frames and others


class Check:
    """A checksum in its place. `from` and `to` cut out what it covers as Python slices do; `end` is not counted."""

    def __init__(self, options: Options, text: bool, order: str) -> None:
        given = options.given["checksum"]
        known = ("kind", "from", "to", "at", "order", "mark")
        table = Options(f"{options.name}.checksum", {"kind": given} if isinstance(given, str) else given, known)
        if not table.has("kind"):
            raise OptionError(f'drivers.{table.name}.kind is missing, such as "crc-16/modbus"')
        self.sum: Checksum = checksum_from(table, "kind")
        self.text = text
        self.mark = table.octets("mark")
        self._order: Order = table.choice("order", order, BYTE_ORDERS)
        self.size = 2 * self.sum.size if text else self.sum.size
        for key in ("at", "mark"):
            if table.has(key) and text == (key == "at"):
                raise table.wrong(key, "is for binary frames" if text else "is for text; use { bytes = ... } instead")
        self.at = table.whole("at", 0, 0, 4096) if table.has("at") else None
        self.tail = 0 if self.at is not None else len(self.mark) + self.size  # bytes behind the fields
        begin, to = (0, -self.tail) if self.at is None else (self.at + self.size, None)
        self._begin = table.whole("from", begin, -4096, 4096)
        self._to = table.whole("to", 0, -4096, 4096) if table.has("to") else to

    def compute(self, body: bytes) -> int:
        return self.sum.compute(body[self._begin : self._to])

    def holds(self, body: bytes) -> bool:
        """Whether the checksum in the body is that of the body."""
        at = len(body) - self.size if self.at is None else self.at
        stored = body[at : at + self.size] if at >= len(self.mark) else b""
        if len(stored) != self.size:
            return False
        if not self.text:
            return int.from_bytes(stored, self._order) == self.compute(body)
        return body[at - len(self.mark) : at] == self.mark and stored.upper() == self._written(self.compute(body))

    def put(self, body: bytes) -> bytes:
        """The body with its checksum, behind it or in the room that it has inside."""
        if self.at is None:
            body += self.mark + bytes(self.size)
        at = len(body) - self.size if self.at is None else self.at
        return body[:at] + self._written(self.compute(body)) + body[at + self.size :]

    def _written(self, value: int) -> bytes:
        return b"%0*X" % (self.size, value) if self.text else value.to_bytes(self.size, self._order)


class Frame:
    """One kind of frame, from its options; see docs/connect-a-serial-device.md.

    `sent`: it is made here, not looked for. `aligned`: it is known where it begins, as of an answer to a request.
    """

    def __init__(
        self, name: str, given: object, *, sent: bool = False, aligned: bool = False, more: tuple[str, ...] = ()
    ) -> None:
        options = Options(name, given, KEYS + more)
        forms = ("binary", "csv", "template") if sent else ("binary", "csv", "regex")
        form = options.choice("format", "", {f: f for f in forms})
        for key, of in OWN_KEYS.items():
            if options.has(key) and of != form:
                raise options.wrong(key, f"is for format = {of!r}, this is {form!r}")
        self.text = form != "binary"
        self.start = options.octets("start")
        self.end = options.octets("end", b"\n" if self.text else b"")
        self.longest = options.whole("longest", LONGEST, 1, 65536)
        self.layout = Text(options, form) if self.text else Binary(options, self.start)
        self.channels = self.layout.channels
        self.check = None
        if options.has("checksum"):
            self.check = Check(options, self.text, options.text("order", "little"))
        self.tail = (self.check.tail if self.check else 0) + len(self.end)
        self.size = self.layout.needs + self.tail if isinstance(self.layout, Binary) else 0  # with just the fields
        if isinstance(self.layout, Binary):
            self._check_binary(options, self.layout, sent or aligned)
        elif not self.end:
            raise options.wrong("end", "must be given: it is how the end of a line of text is found")

    def _check_binary(self, options: Options, layout: Binary, aligned: bool) -> None:
        if not (aligned or self.start or self.end or self.check):
            raise OptionError(
                f"drivers.{options.name}: nothing tells where a frame begins; give start, end or checksum"
            )
        if self.size > self.longest:
            raise OptionError(f"drivers.{options.name}.longest = {self.longest}: a frame has {self.size} bytes")
        check = self.check
        if check is None or check.at is None:
            return
        if not any(low <= check.at and check.at + check.size <= high for low, high in layout.gaps):
            raise OptionError(
                f"drivers.{options.name}.checksum.at = {check.at}: there must be {{ skip = {check.size} }} at this "
                "place among the fields, to leave room for it"
            )

    def pack(self, values: NDArray[np.float64]) -> bytes:
        """The frame that says these values."""
        body = self.start + self.layout.pack(values, self.size)
        return (self.check.put(body) if self.check else body) + self.end


class Decoder:
    """Finds frames of one kind in a stream. Feed it whatever came."""

    def __init__(self, frame: Frame, *, aligned: bool = False) -> None:
        """`aligned`: the stream begins with a frame, as an answer to a request does."""
        self.frame = frame
        self.counts = Counts()
        self.last = b""  # good frame, for people
        self._buffer = bytearray()
        self._blind = frame.text and not frame.start and not aligned  # the first line may have lost its beginning
        self._hunting = self._blind  # everything up to the next `end` is garbage
        self._spoilt = 0  # bytes left of a frame that was refused, among which no other is counted
        self._search = self._lines if frame.text else self._packed

    @property
    def waiting(self) -> int:
        """Bytes that may become a frame."""
        return len(self._buffer)

    def reset(self) -> None:
        """Begin anew: what was waiting is garbage."""
        self.counts.garbage += len(self._buffer)
        self._buffer.clear()
        self._hunting = self._blind
        self._spoilt = 0

    def feed(self, data: bytes, values: NDArray[np.float64]) -> int:
        """Take bytes; how many good frames they completed. `values` has the newest."""
        self._buffer += data
        before = self.counts.frames
        del self._buffer[: self._search(values)]
        return self.counts.frames - before

    def _packed(self, values: NDArray[np.float64]) -> int:
        """Binary frames: is there a whole one at each place where one may begin? How many bytes are dealt with."""
        buffer, start, counts = self._buffer, self.frame.start, self.counts
        at = 0
        while True:
            if start:
                begin = buffer.find(start, at)
                if begin < 0:
                    begin = _possible(start, buffer, at)
                counts.garbage += begin - at
                at = begin
            size = self._size(at)
            if size == 0 or at + size > len(buffer):
                return at
            refused = counts.bad_checksum
            if size > 0 and self._take(bytes(buffer[at : at + size]), values):
                self._spoilt = 0
                at += size
                continue
            if counts.bad_checksum > refused and not start:
                # Without a mark every byte may be a beginning: what is refused at each of them is one frame.
                counts.bad_checksum -= self._spoilt > 0
                self._spoilt = self._spoilt or size
            self._spoilt -= self._spoilt > 0
            counts.garbage += 1
            at += 1

    def _size(self, at: int) -> int:
        """Bytes of the frame that begins here; 0 when it cannot be told yet, -1 when there can be none."""
        frame, layout = self.frame, self.frame.layout
        if not isinstance(layout, Binary) or layout.length is None:
            return frame.size
        length = layout.length
        place = at + length.at
        if place + length.code.size > len(self._buffer):
            return 0
        size = int(length.code.unpack_from(self._buffer, place)[0]) + length.adds
        return size if length.at + length.code.size + frame.tail <= size <= frame.longest else -1

    def _take(self, data: bytes, values: NDArray[np.float64]) -> bool:
        """Whether these bytes are a frame, ours or another."""
        frame = self.frame
        if not data.endswith(frame.end):
            return False
        body = data[: len(data) - len(frame.end)]
        if not self._checked(body):
            return False
        if frame.layout.unpack(body[: len(data) - frame.tail], values):
            self.counts.frames += 1
            self.last = data
            return True
        if frame.check is None:
            return False  # nothing vouches for it: a frame may begin at the next byte
        self.counts.other += 1
        return True

    def _lines(self, values: NDArray[np.float64]) -> int:
        """Text: whatever stands before each `end`. How many bytes are dealt with."""
        buffer, frame, counts = self._buffer, self.frame, self.counts
        end, at = frame.end, 0
        while (stop := buffer.find(end, at)) >= 0:
            line, size = bytes(buffer[at:stop]), stop + len(end) - at
            begin = line.rfind(frame.start) if frame.start else 0
            lost = self._hunting or begin < 0 or len(line) > frame.longest
            taken = not lost and self._line(line[begin:], values)
            counts.garbage += begin if taken else size
            self._hunting = False
            at += size
        edge = _possible(end, buffer, at)  # what stands behind it may be the beginning of an end
        if self._hunting or edge - at > frame.longest:
            self._hunting = True
            counts.garbage += edge - at
            at = edge
        return at

    def _line(self, line: bytes, values: NDArray[np.float64]) -> bool:
        """Whether this line is a frame, ours or another."""
        frame, counts = self.frame, self.counts
        if frame.end == b"\n":
            line = line.removesuffix(b"\r")
        if len(line) == len(frame.start) or not self._checked(line):
            return False
        tail = frame.check.tail if frame.check else 0
        if frame.layout.unpack(line[len(frame.start) : len(line) - tail], values):
            counts.frames += 1
            self.last = line
        else:
            counts.other += 1
        return True

    def _checked(self, body: bytes) -> bool:
        check = self.frame.check
        if check is None or check.holds(body):
            return True
        self.counts.bad_checksum += 1
        return False


def _possible(word: bytes, buffer: bytearray, at: int) -> int:
    """Where, from `at` on, the buffer ends with the beginning of `word`; its end, if it does not."""
    for size in range(min(len(word) - 1, len(buffer) - at), 0, -1):
        if buffer.endswith(word[:size]):
            return len(buffer) - size
    return len(buffer)
