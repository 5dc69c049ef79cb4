"""Targets of fuzz_decoders.py: frames on serial lines, judged by struct, zlib, fastcrc and checksums bit by bit."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

import fastcrc
import numpy as np

from drivers.serial.frames import Counts, Decoder, Frame


def crc16(data: Sequence[int]) -> int:
    """CRC-16/MODBUS."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


Found = tuple[list[tuple[float, float]], Counts]
"""Values of each frame in some bytes, and what became of the bytes."""


class _Serial:
    """A frame decoder, begun anew for each piece of data: all of its bytes are frames, others or garbage."""

    options: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        self.decoder = Decoder(Frame("fuzz.receive", self.options))
        self.values = np.zeros(2)
        self.expected = Counts()

    def check(self, data: bytes) -> int:
        found, counts = self.judge(data)
        before, expected = self.decoder.counts.frames, self.expected
        self.values[:] = np.nan
        self.decoder.feed(data, self.values)
        self.decoder.reset()
        if found:
            assert repr(self.values.tolist()) == repr([float(x) for x in found[-1]]), data.hex(" ")
        else:
            assert np.isnan(self.values).all(), f"a value out of nothing: {data.hex(' ')}"
        expected.frames += len(found)
        expected.garbage += counts.garbage
        expected.bad_checksum += counts.bad_checksum
        expected.other += counts.other
        assert self.decoder.counts == expected, f"{data.hex(' ')}: {self.decoder.counts} != {expected}"
        return self.decoder.counts.frames - before

    def judge(self, data: bytes) -> Found:
        """What is in these bytes."""
        raise NotImplementedError


class SerialBinary(_Serial):
    """AA 55, a uint32, a float32, CRC-32 as zlib computes it."""

    kind = "crc-32/iso-hdlc"
    width = 4  # [bytes] of the checksum

    def __init__(self) -> None:
        self.options = {  # type: ignore[misc]
            "format": "binary",
            "start": [0xAA, 0x55],
            "fields": [{"name": "n", "type": "uint32"}, {"name": "x", "type": "float32"}],
            "checksum": {"kind": self.kind, "from": 2},
        }
        self.size = 10 + self.width
        super().__init__()

    def sum(self, body: bytes) -> int:
        return zlib.crc32(body)

    def good(self, dice: random.Random) -> bytes:
        body = struct.pack("<If", dice.randrange(2**32), dice.uniform(-1e6, 1e6))
        return b"\xaa\x55" + body + self.sum(body).to_bytes(self.width, "little")

    def judge(self, data: bytes) -> Found:
        found, refused, at = [], 0, 0
        while (at := data.find(b"\xaa\x55", at)) >= 0 and at + self.size <= len(data):
            body, check = data[at + 2 : at + 10], data[at + 10 : at + self.size]
            whole = check == self.sum(body).to_bytes(self.width, "little")
            if whole:
                found.append(struct.unpack("<If", body))
            refused += not whole
            at += self.size if whole else 1
        return found, Counts(bad_checksum=refused, garbage=len(data) - self.size * len(found))


class SerialSum(SerialBinary):
    """The same with the sum of the bytes: one in 256 spoiled frames has a good one."""

    kind, width = "sum8", 1

    def sum(self, body: bytes) -> int:
        return sum(body) % 256


class SerialXor(SerialBinary):
    """The same with all bytes xored."""

    kind, width = "xor", 1

    def sum(self, body: bytes) -> int:
        out = 0
        for byte in body:
            out ^= byte
        return out


class SerialCrc8(SerialBinary):
    """The same with a CRC-8, computed by fastcrc."""

    kind, width = "crc-8/maxim-dow", 1

    def sum(self, body: bytes) -> int:
        return int(fastcrc.crc8.maxim_dow(body))


class SerialCrc16(SerialBinary):
    """The same with a CRC-16, computed by fastcrc."""

    kind, width = "crc-16/xmodem", 2

    def sum(self, body: bytes) -> int:
        return int(fastcrc.crc16.xmodem(body))


class SerialLength(_Serial):
    """7E, the length of the whole frame in a byte, a uint16, an int16, more bytes that nobody reads, CRC-8.

    A frame that is whole but too short for both numbers is another one.
    """

    options: ClassVar = {
        "format": "binary",
        "start": [0x7E],
        "fields": [{"length": "uint8"}, {"name": "n", "type": "uint16"}, {"name": "x", "type": "int16"}],
        "checksum": "crc-8/smbus",
    }

    def good(self, dice: random.Random) -> bytes:
        rest = dice.randbytes(4 + dice.choice([0, 0, 1, 9]))
        body = b"\x7e" + bytes([len(rest) + 3]) + rest
        return body + bytes([fastcrc.crc8.smbus(body)])

    def judge(self, data: bytes) -> Found:
        found, counts, at = [], Counts(), 0
        while (at := data.find(b"\x7e", at)) >= 0 and at + 2 <= len(data):
            size = data[at + 1]
            if size < 3:
                at += 1
                continue
            if at + size > len(data):
                break
            body, check = data[at : at + size - 1], data[at + size - 1]
            if fastcrc.crc8.smbus(body) != check:
                counts.bad_checksum += 1
                at += 1
                continue
            if size < 7:
                counts.other += 1
            else:
                found.append(struct.unpack_from("<Hh", body, 2))
            counts.garbage -= size
            at += size
        counts.garbage += len(data)
        return found, counts


class _SerialLine(_Serial):
    """Lines that begin with a mark and end with *, a checksum in hexadecimal digits and a line feed."""

    mark: bytes
    digits: int

    def sum(self, body: bytes) -> int:
        raise NotImplementedError

    def numbers(self, body: bytes) -> tuple[float, float] | None:
        """What a line says; None if it is another one."""
        raise NotImplementedError

    def judge(self, data: bytes) -> Found:
        found, counts, kept = [], Counts(), 0
        for line in data.split(b"\n")[:-1]:
            begin = line.rfind(self.mark)
            inner = line[begin:].removesuffix(b"\r")
            if begin < 0 or inner == self.mark:
                continue
            body, mark, check = inner.rpartition(b"*")
            if not mark or check.upper() != b"%0*X" % (self.digits, self.sum(body)):
                counts.bad_checksum += 1
                continue
            kept += len(line) + 1 - begin
            if (numbers := self.numbers(body[1:])) is None:
                counts.other += 1
            else:
                found.append(numbers)
        counts.garbage = len(data) - kept
        return found, counts


class SerialCsv(_SerialLine):
    """$n,x*CRC in hexadecimal, a line of text."""

    options: ClassVar = {
        "format": "csv",
        "start": "$",
        "fields": ["n", "x"],
        "checksum": {"kind": "crc-32/iso-hdlc", "mark": "*"},
    }
    mark, digits = b"$", 8

    def sum(self, body: bytes) -> int:
        return zlib.crc32(body)

    def good(self, dice: random.Random) -> bytes:
        text = b"$%d,%.3f" % (dice.randrange(2**31), dice.uniform(-1e6, 1e6))
        return b"%s*%08X\n" % (text, zlib.crc32(text))

    def numbers(self, body: bytes) -> tuple[float, float] | None:
        n, x = body.split(b",")
        return float(n), float(x)


class SerialRegex(_SerialLine):
    """@N<digits> X<sign><digits>.<digits>: read by a pattern, the bytes added up to vouch for it, as few as 8 bits."""

    options: ClassVar = {
        "format": "regex",
        "start": "@",
        "pattern": r"N(?P<n>[0-9]{1,9}) X(?P<x>[-+][0-9]{1,9}[.][0-9]{3})",
        "fields": ["n", "x"],
        "checksum": {"kind": "sum8", "mark": "*"},
    }
    mark, digits = b"@", 2

    def sum(self, body: bytes) -> int:
        return sum(body) % 256

    def good(self, dice: random.Random) -> bytes:
        text = b"@N%d X%+.3f" % (dice.randrange(10**9), dice.uniform(-1e6, 1e6))
        return b"%s*%02X\n" % (text, self.sum(text))

    def numbers(self, body: bytes) -> tuple[float, float] | None:
        """By hand, a character at a time, where the decoder has a pattern."""
        n, space, x = body.partition(b" X")
        whole, point, part = x[1:].partition(b".")
        digits = (n[1:], whole, part)
        if not n.startswith(b"N") or not space or x[:1] not in (b"+", b"-") or not point:
            return None
        if any(not d or any(c not in b"0123456789" for c in d) for d in digits):
            return None
        if len(n) > 10 or len(whole) > 9 or len(part) != 3:
            return None
        return float(n[1:]), float(x)
