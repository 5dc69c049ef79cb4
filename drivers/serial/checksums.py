"""Checksums at the end of frames: sums, xor, and CRCs under their published names.

The CRCs are Williams' parameter model (width, poly, init, refin, refout, xorout), one table look-up per byte. Names and
parameters are those of the public catalogue of parametrised CRC algorithms; each has a published check value, the CRC
of the nine bytes "123456789", which the tests compare.

Ref: R. Williams, "A Painless Guide to CRC Error Detection Algorithms", 1993;
     G. Cook, "Catalogue of parametrised CRC algorithms", reveng.sourceforge.io/crc-catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any

from drivers.base import OptionError
from drivers.options import Options
from hilnode.core.signals import nearest


@dataclass(frozen=True, slots=True)
class Checksum:
    """A way to sum up bytes; `size` [bytes] is that of the result."""

    name: str
    size: int
    compute: Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class Crc:
    """The parameters of a CRC, as published."""

    width: int
    poly: int
    init: int
    refin: bool
    refout: bool
    xorout: int


CRCS = {
    "crc-8/smbus": Crc(8, 0x07, 0x00, False, False, 0x00),
    "crc-8/maxim-dow": Crc(8, 0x31, 0x00, True, True, 0x00),
    "crc-8/sae-j1850": Crc(8, 0x1D, 0xFF, False, False, 0xFF),
    "crc-8/autosar": Crc(8, 0x2F, 0xFF, False, False, 0xFF),
    "crc-8/dvb-s2": Crc(8, 0xD5, 0x00, False, False, 0x00),
    "crc-8/nrsc-5": Crc(8, 0x31, 0xFF, False, False, 0x00),
    "crc-8/rohc": Crc(8, 0x07, 0xFF, True, True, 0x00),
    "crc-16/arc": Crc(16, 0x8005, 0x0000, True, True, 0x0000),
    "crc-16/modbus": Crc(16, 0x8005, 0xFFFF, True, True, 0x0000),
    "crc-16/usb": Crc(16, 0x8005, 0xFFFF, True, True, 0xFFFF),
    "crc-16/umts": Crc(16, 0x8005, 0x0000, False, False, 0x0000),
    "crc-16/xmodem": Crc(16, 0x1021, 0x0000, False, False, 0x0000),
    "crc-16/ibm-3740": Crc(16, 0x1021, 0xFFFF, False, False, 0x0000),
    "crc-16/genibus": Crc(16, 0x1021, 0xFFFF, False, False, 0xFFFF),
    "crc-16/kermit": Crc(16, 0x1021, 0x0000, True, True, 0x0000),
    "crc-16/ibm-sdlc": Crc(16, 0x1021, 0xFFFF, True, True, 0xFFFF),
    "crc-16/mcrf4xx": Crc(16, 0x1021, 0xFFFF, True, True, 0x0000),
    "crc-16/dnp": Crc(16, 0x3D65, 0x0000, True, True, 0xFFFF),
    "crc-32/iso-hdlc": Crc(32, 0x04C11DB7, 0xFFFFFFFF, True, True, 0xFFFFFFFF),
    "crc-32/bzip2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, False, False, 0xFFFFFFFF),
    "crc-32/mpeg-2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, False, False, 0x00000000),
    "crc-32/jamcrc": Crc(32, 0x04C11DB7, 0xFFFFFFFF, True, True, 0x00000000),
    "crc-32/cksum": Crc(32, 0x04C11DB7, 0x00000000, False, False, 0xFFFFFFFF),
    "crc-32/iscsi": Crc(32, 0x1EDC6F41, 0xFFFFFFFF, True, True, 0xFFFFFFFF),
}

SUMS = {
    "sum8": Checksum("sum8", 1, lambda data: sum(data) & 0xFF),
    "sum16": Checksum("sum16", 2, lambda data: sum(data) & 0xFFFF),
    "lrc": Checksum("lrc", 1, lambda data: -sum(data) & 0xFF),
    "sum8-inverted": Checksum("sum8-inverted", 1, lambda data: ~sum(data) & 0xFF),
    "xor": Checksum("xor", 1, lambda data: reduce(xor, data, 0)),
}
"""`lrc` is the negated sum (Modbus ASCII, Intel hex): all bytes and it add up to 0."""


def checksum_from(options: Options, key: str) -> Checksum:
    """A checksum by its name, or a CRC by its parameters: `{ width, poly, init, refin, refout, xorout }`."""
    given = options.given.get(key)
    if isinstance(given, str):
        if given in SUMS:
            return SUMS[given]
        if given in CRCS:
            return crc_checksum(given, CRCS[given])
        raise OptionError(f"drivers.{options.name}.{key} = {given!r} is not known: {nearest(given, [*SUMS, *CRCS])}")
    name = f"{options.name}.{key}"
    table = Options(name, given, ("width", "poly", "init", "refin", "refout", "xorout"))
    width = table.whole("width", 16, 8, 32)
    if width not in (8, 16, 32):
        raise table.wrong("width", "must be 8, 16 or 32")
    top = (1 << width) - 1
    if not table.has("poly"):
        raise OptionError(f"drivers.{name}.poly is missing: the polynomial without its highest bit, such as 0x1021")
    numbers: dict[str, Any] = {k: table.whole(k, 0, 0, top) for k in ("poly", "init", "xorout")}
    flags = {k: table.flag(k, False) for k in ("refin", "refout")}
    return crc_checksum(f"crc-{width}", Crc(width, **numbers, **flags))


def crc_checksum(name: str, crc: Crc) -> Checksum:
    """The checksum that these parameters describe."""
    return Checksum(name, crc.width // 8, _reflected(crc) if crc.refin else _plain(crc))


def _mirror(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


def _reflected(crc: Crc) -> Callable[[bytes], int]:
    """Lowest bit first: the register moves right."""
    poly, table = _mirror(crc.poly, crc.width), []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ poly if value & 1 else value >> 1
        table.append(value)
    begin, width, swap, xorout = _mirror(crc.init, crc.width), crc.width, not crc.refout, crc.xorout

    def compute(data: bytes) -> int:
        register = begin
        for byte in data:
            register = (register >> 8) ^ table[(register ^ byte) & 0xFF]
        return (_mirror(register, width) if swap else register) ^ xorout

    return compute


def _plain(crc: Crc) -> Callable[[bytes], int]:
    """Highest bit first: the register moves left."""
    top, mask, shift, table = 1 << (crc.width - 1), (1 << crc.width) - 1, crc.width - 8, []
    for value in range(256):
        value <<= shift
        for _ in range(8):
            value = ((value << 1) ^ crc.poly if value & top else value << 1) & mask
        table.append(value)
    begin, width, swap, xorout = crc.init, crc.width, crc.refout, crc.xorout

    def compute(data: bytes) -> int:
        register = begin
        for byte in data:
            register = ((register << 8) & mask) ^ table[(register >> shift) ^ byte]
        return (_mirror(register, width) if swap else register) ^ xorout

    return compute
