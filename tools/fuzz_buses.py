"""Targets of fuzz_decoders.py: datagrams, Modbus, HID reports and CAN frames, judged by other implementations."""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar

import msgpack
import msgpack.fallback
import numpy as np
from fuzz_serial import crc16

from drivers.base import DriverError
from drivers.can.bus import Can
from drivers.hid.channels import channels_of
from drivers.hid.decoder import Counts as HidCounts
from drivers.hid.decoder import Decoder as HidDecoder
from drivers.hid.report import Descriptor, DescriptorError, Field, Kind, parse
from drivers.hid.usages import picks_of
from drivers.modbus.client import Modbus
from drivers.modbus.server import ModbusServer
from drivers.udp.driver import Udp


class UdpDatagram:
    """Three float32, big-endian: a datagram of this length is a frame, no other is."""

    def __init__(self) -> None:
        self.driver = Udp(
            "fuzz", {"listen": "127.0.0.1:9", "inputs": ["a", "b", "c"], "type": "float32", "order": "big"}
        )
        self.values, self.stamps = np.zeros(3), np.zeros(3, np.int64)
        self.driver._receiver = self  # type: ignore[assignment]
        self.data = b""

    def recv(self, _: int) -> bytes:
        return self.data

    def good(self, dice: random.Random) -> bytes:
        return struct.pack(">3f", *(dice.uniform(-1e6, 1e6) for _ in range(3)))

    def check(self, data: bytes) -> int:
        self.data = data
        self.values[:] = -99.0
        refused = False
        try:
            self.driver.read(self.values, self.stamps)
        except ValueError:
            refused = True
        assert refused == (len(data) != 12), f"{data.hex(' ')}: refused {refused}"
        expected = (-99.0, -99.0, -99.0) if refused else struct.unpack(">3f", data)
        assert repr(self.values.tolist()) == repr(list(expected))  # as text, where NaN is NaN
        return int(not refused)


class UdpMsgpack(UdpDatagram):
    """MessagePack with three channels, a list or a map: decoded once more by msgpack's other implementation."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Udp("fuzz", {"listen": "127.0.0.1:9", "inputs": ["a", "b", "c"], "format": "msgpack"})
        self.driver._receiver = self  # type: ignore[assignment]

    def good(self, dice: random.Random) -> bytes:
        numbers = [dice.choice([dice.uniform(-1e6, 1e6), dice.randrange(2**32), True]) for _ in range(3)]
        some = dice.sample("abc", dice.randint(1, 3))
        return bytes(msgpack.packb(dice.choice([numbers, dict(zip(some, numbers, strict=False))])))

    def expected(self, data: bytes) -> dict[str, float]:
        """Channels and their values; empty if it is to be refused."""
        reader = msgpack.fallback.Unpacker(strict_map_key=True)
        reader.feed(data)
        try:
            found = reader.unpack()
        except Exception:  # whatever the other one raises: there is no message in it
            return {}
        if reader.tell() != len(data):
            return {}
        if isinstance(found, list) and len(found) == 3:
            found = dict(zip("abc", found, strict=True))
        if not isinstance(found, dict) or not set(found) <= set("abc"):
            return {}
        return found if all(isinstance(x, (int, float)) for x in found.values()) else {}

    def check(self, data: bytes) -> int:
        self.data = data
        self.values[:], self.stamps[:] = -99.0, 0
        refused = False
        try:
            self.driver.read(self.values, self.stamps)
        except ValueError:
            refused = True
        expected = self.expected(data)
        assert refused == (not expected), f"{data.hex(' ')}: refused {refused}"
        assert repr(self.values.tolist()) == repr([float(expected.get(name, -99.0)) for name in "abc"]), data.hex(" ")
        assert [bool(t) for t in self.stamps] == [name in expected for name in "abc"], data.hex(" ")
        return int(not refused)


class _Line:
    """Stands in for pymodbus's client: its framer decodes bytes that never went over a line."""

    def __init__(self, framer: Any) -> None:
        self.framer = framer
        self.data = b""

    def read_holding_registers(self, first: int, *, count: int, device_id: int) -> Any:
        from pymodbus.exceptions import ModbusIOException

        _, pdu = self.framer.handleFrame(self.data, device_id, 7)
        if pdu is None:
            raise ModbusIOException("nothing")
        return pdu


class _ModbusAnswer:
    """An answer to `read holding registers 0 to 2 of unit 5`, through the framer, the link and the driver."""

    framer: str

    def __init__(self) -> None:
        import threading

        import pymodbus.framer
        from pymodbus.pdu import DecodePDU

        from drivers.modbus.answers import be_strict
        from drivers.modbus.link import Link
        from drivers.modbus.options import Tcp

        names = ("a", "b", "c")
        self.driver = Modbus(
            "fuzz",
            {
                "connect": "127.0.0.1:9",
                "poll_ms": 1,
                "inputs": [{"name": n, "holding": k, "type": "uint16"} for k, n in enumerate(names)],
            },
        )
        decoder = DecodePDU(False)
        be_strict(decoder)
        self.line = _Line(getattr(pymodbus.framer, self.framer)(decoder))
        link = Link.__new__(Link)
        link._line, link._unit, link._timeout = Tcp("127.0.0.1", 9), 5, 0.0
        link._one_at_a_time, link._closed, link._silent, link._quiet_until = threading.Lock(), False, 0, 0.0
        link._client = self.line
        self.driver._link = link
        self.values, self.stamps = np.zeros(3), np.zeros(3, np.int64)

    def check(self, data: bytes) -> int:
        from drivers.modbus.options import Refused

        self.line.data = data
        self.values[:] = -99.0
        self.driver._polls[0].due = 0.0
        refused = False
        try:
            self.driver.read(self.values, self.stamps)
        except (DriverError, Refused):
            refused = True
        if refused:
            assert (self.values == -99.0).all(), f"{data.hex(' ')}: refused, and yet {self.values.tolist()}"
            return 0
        words = struct.pack(">3H", *self.values.astype(int).tolist())
        assert self.vouched(data, b"\x03\x06" + words), f"{data.hex(' ')} gave {self.values.tolist()}"
        return 1

    def vouched(self, data: bytes, pdu: bytes) -> bool:
        """Whether this answer stands in the data, as the standard wants it."""
        raise NotImplementedError


class ModbusRtu(_ModbusAnswer):
    """With a CRC, here once more bit by bit as the standard's flow chart has it."""

    framer = "FramerRTU"

    def good(self, dice: random.Random) -> bytes:
        body = b"\x05\x03\x06" + dice.randbytes(6)
        return body + crc16(body).to_bytes(2, "little")

    def vouched(self, data: bytes, pdu: bytes) -> bool:
        body = b"\x05" + pdu
        return body + crc16(body).to_bytes(2, "little") in data


class ModbusTcp(_ModbusAnswer):
    """With a header that has a number, but no checksum: the network has its own."""

    framer = "FramerSocket"

    def good(self, dice: random.Random) -> bytes:
        return struct.pack(">HHHBBB", 7, 0, 9, 5, 3, 6) + dice.randbytes(6)

    def vouched(self, data: bytes, pdu: bytes) -> bool:
        return b"\x05" + pdu in data


class ModbusRequest:
    """Writes to a server's registers: int16 at 10 and 11, an int32 at 12 and 13; nothing cut, nothing beside."""

    def __init__(self) -> None:
        places = [("a", 10, "int16"), ("b", 11, "int16"), ("c", 12, "int32")]
        inputs = [{"name": n, "holding": at, "type": t} for n, at, t in places]
        self.map = ModbusServer("fuzz", {"listen": "127.0.0.1:9", "inputs": inputs}).map
        self.values, self.stamps = np.zeros(3), np.zeros(3, np.int64)
        self.words = [0, 0, 0, 0]

    def good(self, dice: random.Random) -> bytes:
        first, count = dice.choice([(10, 1), (10, 2), (11, 1), (12, 2), (10, 4), (11, 3)])
        return bytes([first]) + dice.randbytes(2 * count)

    def check(self, data: bytes) -> int:
        first, count = (data[0] if data else 0), max(0, len(data) - 1) // 2
        words = struct.unpack(f">{count}H", data[1 : 1 + 2 * count])
        end = first + len(words)
        fits = bool(words) and 10 <= first != 13 and end <= 14 and end != 13
        taken = self.map.write("holding", first, words) if words else False
        assert taken == fits, f"{data.hex(' ')}: taken {taken}"
        fresh = self.map.take(self.values, self.stamps, 0.0)
        assert fresh == fits
        if fits:
            self.words[first - 10 : end - 10] = words
            image = struct.pack(">4H", *self.words)
            here = [*struct.unpack_from(">hh", image), *struct.unpack_from(">i", image, 4)]
            told = self.stamps > 0
            assert self.values[told].tolist() == np.array(here, float)[told].tolist()
        return int(taken)


class HidReports:
    """Two numbered reports: 1 has x and y (int16), 8 buttons and a hat, 2 has a wheel (uint8); here by struct.

    A report of another number, or one that is cut, leaves every value and stamp as it was. What follows a report is
    not looked at: Linux hands out whole buffers.
    """

    descriptor = bytes.fromhex(
        "0501 0904 a101 8501 160080 26ff7f 7510 9502 0930 0931 8102 0509 1901 2908 1500 2501 7501 9508 8102"
        "0501 0939 1500 2507 7504 9501 8142 7504 9501 8101 8502 0932 1500 26ff00 7508 9501 8102 c0"
    )
    channels: ClassVar = {
        **{name: {"usage": name, "as": "raw"} for name in ("x", "y")},
        **{"fire": "button 1", "shots": {"usage": "button 2", "as": "count"}, "hat_x": "hat_x", "hat_y": "hat_y"},
        "wheel": {"usage": "z", "as": "raw"},
    }
    hat = (
        (0, -1),
        (1, -1),
        (1, 0),
        (1, 1),
        (0, 1),
        (-1, 1),
        (-1, 0),
        (-1, -1),
        *[(0, 0)] * 8,
    )  # from the top, clockwise
    stick = struct.Struct("<xhhBB")

    def __init__(self) -> None:
        self.decoder = HidDecoder(parse(self.descriptor), channels_of("fuzz", self.channels, None))
        self.values, self.stamps = np.zeros(7), np.zeros(7, np.int64)
        self.expected, self.told = HidCounts(), [0] * 7
        self.now = self.buttons = 0

    def good(self, dice: random.Random) -> bytes:
        return b"\x01" + dice.randbytes(6) if dice.random() < 0.7 else b"\x02" + dice.randbytes(1)

    def check(self, data: bytes) -> int:
        self.now += 1
        before = self.values.tolist()
        taken = self.decoder.feed(data, self.values, self.stamps, self.now)
        needed = {1: self.stick.size, 2: 2}.get(data[0] if data else 0)
        if needed is None:
            self.expected.other += 1
        elif len(data) < needed:
            self.expected.short += 1
        else:
            before = self.moved(data, before)
            self.expected.reports += 1
        assert taken == (needed is not None and len(data) >= needed), f"{data.hex(' ')}: taken {taken}"
        assert self.values.tolist() == before, f"{data.hex(' ')}: {self.values.tolist()} != {before}"
        assert self.stamps.tolist() == self.told, data.hex(" ")
        assert self.decoder.counts == self.expected, f"{data.hex(' ')}: {self.decoder.counts} != {self.expected}"
        return int(taken)

    def moved(self, data: bytes, old: list[float]) -> list[float]:
        """What the values are after this report."""
        if data[0] == 2:
            self.told[6] = self.now
            return [*old[:6], float(data[1])]
        x, y, buttons, hat = self.stick.unpack_from(data)
        pressed = 0 if not self.told[0] else buttons & ~self.buttons & 3  # at the first report nobody knows since when
        self.expected.presses += pressed.bit_count()
        self.buttons = buttons
        self.told[:6] = [self.now] * 6
        return [
            float(x),
            float(y),
            float(buttons & 1),
            old[3] + (pressed >> 1),
            *map(float, self.hat[hat & 15]),
            old[6],
        ]


class HidDescriptors:
    """Report descriptors: numbered fields of any width, in any order, with holes; the layout is known by making them.

    A spoiled one is refused, or gives fields that lie within their reports and a decoder that takes any report: each
    tenth is played with, which takes longer than all the rest.
    """

    axes = range(0x30, 0x39)
    played = 10

    def __init__(self) -> None:
        self.made: tuple[bytes, list[tuple[int, int, int, int, int]]] = (b"", [])
        self.parsed = 0

    def good(self, dice: random.Random) -> bytes:
        """A joystick with up to three reports of up to five axes."""
        out, layout = bytearray(b"\x05\x01\x09\x04\xa1\x01"), []
        for report in range(1, dice.randint(1, 3) + 1):
            out += bytes([0x85, report])
            at = 0
            for usage in dice.sample(self.axes, dice.randint(1, 5)):
                size, signed = dice.randint(2, 32), dice.random() < 0.5
                low, high = (-(1 << size - 1), (1 << size - 1) - 1) if signed else (0, (1 << min(size, 31)) - 1)
                out += b"\x17" + struct.pack("<i", low) + b"\x27" + struct.pack("<i", high)
                out += bytes([0x75, size, 0x95, 1, 0x09, usage, 0x81, 0x02])
                layout.append((report, 1 << 16 | usage, at, size, high))
                at += size
                if hole := dice.choice([0, 0, 3, 8]):
                    out += bytes([0x75, hole, 0x95, 1, 0x81, 0x01])
                    at += hole
        self.made = bytes(out) + b"\xc0", layout
        return self.made[0]

    def check(self, data: bytes) -> int:
        try:
            descriptor = parse(data)
        except DescriptorError:
            assert data != self.made[0], f"a good descriptor was refused: {data.hex(' ')}"
            return 0
        inputs = descriptor.of(Kind.INPUT)
        if data == self.made[0]:
            found = [(f.report, f.usages[0], f.bit, f.size, f.high) for f in inputs]
            assert found == self.made[1], f"{data.hex(' ')}: {found} != {self.made[1]}"
        for f in descriptor.fields:
            assert 0 < f.size * f.count <= descriptor.bits[f.kind, f.report] - f.bit, f"{data.hex(' ')}: {f}"
        self.parsed += 1
        if self.parsed % self.played == 0:
            self.play(descriptor, inputs)
        return 1

    def play(self, descriptor: Descriptor, inputs: Sequence[Field]) -> None:
        """Give the decoder of all that it has the least, the most and too short a report."""
        names = {pick.channel: pick.name for pick in picks_of(inputs)}
        if not names:
            return
        try:
            decoder = HidDecoder(descriptor, channels_of("fuzz", names, None))
        except ValueError:  # in words: a range that does not rise, two channels of one name
            return
        values, stamps = np.zeros(len(names)), np.zeros(len(names), np.int64)
        for report in {f.report for f in inputs}:
            size = descriptor.size(Kind.INPUT, report)
            for filling in (b"\x00" * size, b"\xff" * size, b"\xff" * (size // 2)):
                decoder.feed(bytes([report]) * descriptor.numbered + filling, values, stamps, 1)
        assert np.isfinite(values).all()


DBC = """VERSION "1"
BU_: NODE ECU
BO_ 512 Diagnosis: 8 ECU
 SG_ Page M : 0|4@1+ (1,0) [0|15] "" NODE
 SG_ Status : 4|4@1- (1,0) [-8|7] "" NODE
 SG_ Boots m0 : 8|32@1+ (1,0) [0|4294967295] "" NODE
 SG_ Voltage m1 : 8|16@1+ (0.001,0) [0|65.535] "V" NODE
 SG_ Current m1 : 31|16@0- (0.01,-5) [-332.68|322.67] "A" NODE
 SG_ Level m2 : 15|32@0- (2,1) [0|0] "m" NODE
SIG_VALTYPE_ 512 Level : 1;
"""


class CanFrames:
    """Frames of a message with three pages, both byte orders, a float32: cantools decodes them once more, its own way.

    A frame that is too short, or of another page, is an error and changes nothing.
    """

    def __init__(self) -> None:
        import can
        import cantools
        from cantools.database.can import Database

        self.library, self.refusal = can, cantools.database.DecodeError
        with tempfile.NamedTemporaryFile("w", suffix=".dbc") as file:
            file.write(DBC)
            file.flush()
            options = {"dbc": file.name, "interface": "virtual", "channel": "fuzz", "receive": ["Diagnosis"]}
            self.driver = Can("fuzz", options)
        database = cantools.database.load_string(DBC)
        assert isinstance(database, Database)
        self.message = database.get_message_by_name("Diagnosis")
        self.names = [s.name for s in self.message.signals]
        self.values, self.stamps = np.zeros(len(self.names)), np.zeros(len(self.names), np.int64)
        self.driver._bus = self  # type: ignore[assignment]
        self.frames: list[Any] = []

    def recv(self, _: float) -> Any:
        return self.frames.pop() if self.frames else None

    def good(self, dice: random.Random) -> bytes:
        return bytes([dice.randrange(16) << 4 | dice.randrange(3)]) + dice.randbytes(7)

    def check(self, data: bytes) -> int:
        self.frames = [self.library.Message(arbitration_id=512, is_extended_id=False, data=data)]
        self.stamps[:] = 0
        try:
            found: Any = self.message.decode(data, decode_choices=False)
        except self.refusal:
            found = {}
        expected = [float(found.get(name, old)) for name, old in zip(self.names, self.values.tolist(), strict=True)]
        try:
            taken = self.driver.read(self.values, self.stamps)
        except ValueError:
            taken = False
        assert taken == bool(found), f"{data.hex(' ')}: taken {taken}"
        assert repr(self.values.tolist()) == repr(expected), f"{data.hex(' ')}: {self.values.tolist()} != {expected}"
        assert [bool(t) for t in self.stamps] == [name in found for name in self.names], data.hex(" ")
        return int(taken)
