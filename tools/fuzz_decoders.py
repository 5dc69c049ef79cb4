"""Spoiled frames into every decoder: nothing but refusals, counters exact, no value that a checksum does not vouch for.

    python tools/fuzz_decoders.py                        a million frames into each
    python tools/fuzz_decoders.py udp --frames 20000     into one
    python tools/fuzz_decoders.py serial-csv --atheris   guided by coverage, for ever: pip install "hilnode[fuzz]"
    python tools/fuzz_decoders.py hid --atheris -max_total_time=60    the same with options of libFuzzer

A target makes good frames and judges any bytes: `check` gives them to the decoder and compares what it took with what
another implementation (struct, zlib, fastcrc, cantools, a checksum bit by bit) finds in them. A new decoder is one
class in fuzz_serial.py or fuzz_buses.py, and a line in `TARGETS`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fuzz_buses import (
    CanFrames,
    HidDescriptors,
    HidReports,
    ModbusRequest,
    ModbusRtu,
    ModbusTcp,
    UdpDatagram,
    UdpMsgpack,
)
from fuzz_serial import (
    SerialBinary,
    SerialCrc8,
    SerialCrc16,
    SerialCsv,
    SerialLength,
    SerialRegex,
    SerialSum,
    SerialXor,
)


class Target(Protocol):
    """One decoder under fire."""

    def good(self, dice: random.Random) -> bytes:
        """A frame that the decoder must take."""

    def check(self, data: bytes) -> int:
        """Give it these bytes; how many frames it took. AssertionError if it was wrong to take or to refuse."""


def run(target: Target, frames: int, seed: int = 1) -> tuple[int, int]:
    """Frames of which half are spoiled; how many were taken and how many refused."""
    dice = random.Random(seed)
    taken = refused = 0
    for _ in range(frames):
        data = target.good(dice)
        whole = dice.random() < 0.5
        got = target.check(data if whole else spoil(data, dice))
        assert got == 1 or not whole, f"a good frame was refused: {data.hex(' ')}"
        taken += got
        refused += not got
    return taken, refused


def spoil(data: bytes, dice: random.Random) -> bytes:
    """The same with one to three accidents."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        accident = dice.randrange(6)
        at = dice.randrange(len(out) + 1)
        if accident == 0 and at < len(out):
            out[at] ^= 1 << dice.randrange(8)
        elif accident == 1:
            del out[at:]
        elif accident == 2:
            del out[:at]
        elif accident == 3:
            out[at:at] = dice.randbytes(dice.randint(1, 8))
        elif accident == 4 and at < len(out):
            out[at] = dice.randrange(256)
        else:
            out += data[: dice.randrange(len(data) + 1)]
    return bytes(out)


TARGETS: dict[str, Callable[[], Target]] = {
    "serial-binary": SerialBinary,
    "serial-sum": SerialSum,
    "serial-xor": SerialXor,
    "serial-crc8": SerialCrc8,
    "serial-crc16": SerialCrc16,
    "serial-length": SerialLength,
    "serial-csv": SerialCsv,
    "serial-regex": SerialRegex,
    "udp": UdpDatagram,
    "udp-msgpack": UdpMsgpack,
    "modbus-rtu": ModbusRtu,
    "modbus-tcp": ModbusTcp,
    "modbus-request": ModbusRequest,
    "hid": HidReports,
    "hid-descriptor": HidDescriptors,
    "can": CanFrames,
}


def guided(target: Target, options: Sequence[str]) -> None:
    """Let atheris look for bytes that break it; ends with the first that does, or when libFuzzer's options say so."""
    try:
        import atheris
    except ImportError:
        sys.exit('atheris is not installed: pip install "hilnode[fuzz]"')
    atheris.instrument_all()
    atheris.Setup([*sys.argv[:1], *options], lambda data: void(target.check(data)))
    atheris.Fuzz()


def void(_: object) -> None:
    """For what is done for its effect."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", action="store_true", help="guided by coverage, one target")
    given, more = parser.parse_known_args()
    if more and not given.atheris:
        parser.error(f"unknown: {' '.join(more)} (options of libFuzzer go with --atheris)")
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}: known are {', '.join(TARGETS)}")
    names = given.targets or list(TARGETS)
    if given.atheris:
        guided(TARGETS[names[0]](), more)
        return
    for name in names:
        began = time.monotonic()
        taken, refused = run(TARGETS[name](), given.frames, given.seed)
        took = time.monotonic() - began
        cost = 1e6 * took / given.frames
        print(f"{name:16} {given.frames} pieces: {taken} frames taken, {refused} pieces refused, {cost:.1f} us each")


if __name__ == "__main__":
    main()
