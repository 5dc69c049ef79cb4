"""Frames: every whole one is found, nothing else is, and every byte is accounted for, however the stream is cut."""

import math
import random
import struct
import zlib
from itertools import pairwise

import fastcrc  # checksums of somebody else
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.base import OptionError
from drivers.serial.frames import Counts, Decoder, Frame

MODBUS = {
    "format": "binary",
    "order": "big",
    "fields": [{"bytes": [1, 3]}, {"length": "uint8", "adds": 5}, {"name": "a", "type": "int16", "scale": 0.1}, "b"],
    "checksum": {"kind": "crc-16/modbus", "order": "little"},
}
NMEA = {
    "format": "csv",
    "start": "$",
    "end": "\r\n",
    "checksum": {"kind": "xor", "from": 1, "mark": "*"},
    "fields": [{"text": "GPGGA"}, "time", {"skip": 6}, "hdop", {"name": "height", "unit": "m"}, {"skip": 5}],
}
GPGGA = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n"
NUMBERED = {
    "format": "binary",
    "start": [0xAA, 0x55],
    "fields": [{"name": "n", "type": "uint32"}, {"name": "x", "type": "float32"}],
    "checksum": {"kind": "crc-32/iso-hdlc", "from": 2},
}


def decoder(options: dict, **more) -> Decoder:
    return Decoder(Frame("io.receive", options, **more), **more)


def feed(d: Decoder, data: bytes) -> tuple[int, list[float]]:
    values = np.full(len(d.frame.channels), -99.0)
    return d.feed(data, values), values.tolist()


def counted(d: Decoder) -> tuple[int, int, int, int, int]:
    c = d.counts
    return c.frames, c.bad_checksum, c.other, c.garbage, d.waiting


def numbered(n: int, x: float) -> bytes:
    """A frame of NUMBERED, made by the standard library."""
    body = struct.pack("<If", n, x)
    return b"\xaa\x55" + body + struct.pack("<I", zlib.crc32(body))


# -- what a frame may look like ---------------------------------------------------------------------------------------


def test_a_published_nmea_sentence():
    d = decoder(NMEA)
    assert feed(d, GPGGA) == (1, [123519.0, 0.9, 545.4])
    assert [(s.name, s.unit) for s in d.frame.channels] == [("time", ""), ("hdop", ""), ("height", "m")]
    assert feed(d, b"$GPRMC,225446,A,4916.45,N,12311.12,W,000.5,054.7,191194,020.3,E*68\r\n")[0] == 0
    assert feed(d, GPGGA.replace(b"545", b"546"))[0] == 0
    assert counted(d) == (1, 1, 1, len(GPGGA), 0)


def test_every_binary_type_in_both_orders():
    names = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
             "uint64": "Q", "float32": "f", "float64": "d"}  # fmt: skip
    given = [-5, 200, -3000, 60000, -100000, 4000000000, -(2**40), 2**52, 0.5, -1e300]
    for order, mark in (("little", "<"), ("big", ">")):
        fields = [{"name": f"f{k}", "type": t} for k, t in enumerate(names)]
        d = decoder({"format": "binary", "order": order, "end": "\n", "fields": fields})
        data = struct.pack(mark + "".join(names.values()), *given) + b"\n"
        assert feed(d, data) == (1, [float(g) for g in given])
        assert d.frame.pack(np.array(given, float)) == data


def test_length_field_and_frames_of_other_lengths():
    d = decoder({**MODBUS, "fields": [{"bytes": [1]}, {"skip": 1}, *MODBUS["fields"][1:]], "longest": 40})

    def answer(function: int, payload: bytes) -> bytes:
        body = bytes([1, function, len(payload)]) + payload
        return body + fastcrc.crc16.modbus(body).to_bytes(2, "little")

    ours = answer(3, struct.pack(">hf", -123, 2.5))
    assert feed(d, answer(1, b"\x01") + ours + answer(3, bytes(20))) == (2, [0.0, 0.0])  # a longer one has ours first
    assert feed(d, ours) == (1, [pytest.approx(-12.3), 2.5])
    assert counted(d) == (3, 0, 1, 0, 0)
    assert d.frame.pack(np.array([-12.3, 2.5])) == answer(0, struct.pack(">hf", -123, 2.5))


def test_checksum_inside_the_frame():
    options = {
        "format": "binary",
        "start": "S",
        "fields": [{"skip": 2}, {"name": "a", "type": "uint16"}, {"name": "b", "type": "uint16"}],
        "checksum": {"kind": "sum16", "at": 1},
    }
    data = b"S" + struct.pack("<HHH", 1 + 2 + 3, 0x0201, 3)
    assert feed(decoder(options), data) == (1, [513.0, 3.0])
    assert Frame("io.send", options).pack(np.array([513.0, 3.0])) == data


@pytest.mark.parametrize(
    ("begin", "to", "covered"), [(0, -1, b"SAB"), (1, -1, b"AB"), (1, -2, b"A"), (2, None, b"B"), (0, 2, b"SA")]
)
def test_what_a_checksum_covers(begin, to, covered):
    cover = {"from": begin} | ({} if to is None else {"to": to})
    options = {"format": "binary", "start": "S", "end": "E", "fields": [{"name": "x", "type": "uint16"}]}
    d = decoder({**options, "checksum": {"kind": "sum8", **cover}})
    assert feed(d, b"SAB" + bytes([sum(covered) & 255]) + b"E")[0] == 1
    assert feed(d, b"SAB" + bytes([sum(covered) + 1 & 255]) + b"E")[0] == 0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"1,2.5\n", [1, 2.5]),
        (b" -1e3 ,\t+.5\r\n", [-1000, 0.5]),
        (b"3.,7\n", [3, 7]),
        (b"1_000,2\n", None),
        (b"1,2,3\n", None),
        (b"1\n", None),
        (b"1,\n", None),
        (b"1,0x10\n", None),
        ("１,２\n".encode(), None),
        (b"1e999,2\n", [math.inf, 2]),
    ],
)
def test_what_is_a_line_of_numbers(text, values):
    found, got = feed(decoder({"format": "csv", "fields": ["a", "b"]}, aligned=True), text)
    assert found == (values is not None)
    assert got == (values or [-99.0, -99.0])


def test_a_sensor_that_says_nan_is_heard():
    assert math.isnan(feed(decoder({"format": "csv", "fields": ["a"]}, aligned=True), b"nan\n")[1][0])


def test_columns_between_spaces_and_hexadecimal_ones():
    fields = [{"name": "a", "type": "hex"}, {"name": "b", "type": "whole"}]
    d = decoder({"format": "csv", "separator": " ", "fields": fields}, aligned=True)
    assert feed(d, b"  0xFF   -12 \n") == (1, [255.0, -12.0])
    assert feed(d, b"ff 1.5\n")[0] == 0
    assert feed(d, b"f" * 300 + b" 1\n")[0] == 0


def test_regex_by_names_of_groups():
    options = {
        "format": "regex",
        "pattern": r"T=(?P<oil_temp>\S+) C(?:, P=(?P<p>\S+) bar)?",
        "fields": [{"name": "oil.temp", "unit": "degC"}, {"name": "p", "scale": 1e5, "unit": "Pa"}],
    }
    d = decoder(options, aligned=True)
    assert feed(d, b"T=21.5 C, P=1.5 bar\r\n") == (1, [21.5, 150000.0])
    assert feed(d, b"T=21.5 C\nT=warm C, P=2 bar\nT=21.5 C, P=1.5 bar.\nboot\n")[0] == 0
    assert counted(d) == (1, 0, 4, 0, 0)


def test_scale_and_offset_both_ways():
    fields = [{"name": "t", "type": "uint8", "scale": 0.5, "offset": -40.0, "unit": "degC"}]
    frame = Frame("io.receive", {"format": "binary", "start": "T", "fields": fields})
    assert feed(Decoder(frame), b"T\x82") == (1, [25.0])
    assert frame.pack(np.array([25.0])) == b"T\x82"
    assert frame.pack(np.array([25.2])) == b"T\x82"  # to the nearest
    assert frame.pack(np.array([1e9])) == b"T\xff"  # no further than the type goes
    assert frame.pack(np.array([-1e9])) == b"T\x00"


def test_text_out():
    fields = [{"name": "a", "decimals": 2}, {"text": "{x}"}, {"name": "b", "type": "hex"}, {"skip": 1}, "c"]
    sent = Frame("io.send", {"format": "csv", "start": "!", "end": "\r", "fields": fields}, sent=True)
    assert sent.pack(np.array([1.005, 255.0, 0.1])) == b"!1.00,{x},FF,,0.1\r"
    summed = Frame("io.send", {**NMEA, "fields": [{"text": "PVEL"}, "v"]}, sent=True)
    assert summed.pack(np.array([2.0])) == b"$PVEL,2*%02X\r\n" % (ord("P") ^ ord("V") ^ ord("E") ^ ord("L") ^ 44 ^ 50)
    fields = ["speed", {"name": "gear", "type": "whole"}]
    template = {"format": "template", "template": "SET {speed:.1f} G{gear:02d}", "fields": fields}
    assert Frame("io.send", template, sent=True).pack(np.array([3.14159, 2.6])) == b"SET 3.1 G03\n"


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2))
def test_what_is_packed_is_what_is_found(given_values):
    for options in (MODBUS, {"format": "csv", "fields": [{"name": "a", "decimals": 3}, "b"], "checksum": "crc-16/arc"}):
        d = decoder(options, aligned=True)
        wanted = np.clip(given_values, -3276, 3276)
        found, got = feed(d, d.frame.pack(wanted))
        assert found == 1
        assert got[0] == pytest.approx(wanted[0], abs=0.0501)
        assert got[1] == pytest.approx(wanted[1], rel=1e-6)


# -- finding frames in a stream ---------------------------------------------------------------------------------------


def test_garbage_and_split_frames():
    d = decoder(NUMBERED)
    one, two = numbered(1, 0.5), numbered(2, 1.5)
    assert feed(d, b"\x00\xaa\x55\xaa" + one[:5])[0] == 0
    assert feed(d, one[5:] + two[:1]) == (1, [1.0, 0.5])
    assert feed(d, two[1:] + b"\xaa") == (1, [2.0, 1.5])
    assert counted(d) == (2, 1, 0, 4, 1)
    d.reset()
    assert counted(d) == (2, 1, 0, 5, 0)


def test_a_false_start_does_not_swallow_the_frame_behind_it():
    d = decoder(NUMBERED)
    assert feed(d, numbered(1, 2.0)[:9] + numbered(2, 3.0)) == (1, [2.0, 3.0])
    assert counted(d) == (1, 1, 0, 9, 0)


def test_a_line_without_its_beginning_is_no_value():
    d = decoder({"format": "csv", "fields": ["x"]})
    assert feed(d, b"2.5\n")[0] == 0  # it may have been 112.5
    assert feed(d, b"112.5\n") == (1, [112.5])
    assert counted(d) == (1, 0, 0, 4, 0)


def test_a_line_that_never_ends_is_given_up():
    d = decoder({"format": "csv", "fields": ["x"], "longest": 8, "end": "\r\n"}, aligned=True)
    for _ in range(1000):
        feed(d, b"1" * 7)
    assert d.waiting == 0
    assert feed(d, b"1\r")[0] == 0
    assert feed(d, b"\n12345678\r\n123456789\r\n") == (1, [12345678.0])
    assert counted(d) == (1, 0, 0, 7000 + 3 + 11, 0)


SOUP = {
    "length": {
        "format": "binary",
        "start": "ab",
        "fields": [{"length": "uint8", "adds": -90}, {"name": "x", "type": "uint8"}],
        "checksum": {"kind": "xor", "from": 2},
        "longest": 9,
    },
    "bare": {"format": "binary", "fields": [{"name": "x", "type": "uint8"}, {"bytes": "b"}], "checksum": "xor"},
    "end": {"format": "binary", "fields": [{"name": "x", "type": "uint8"}], "end": "ab"},
    "csv": {"format": "csv", "fields": ["x"], "end": "ab", "longest": 4},
    "summed": {
        "format": "csv",
        "start": "b1",
        "fields": ["x"],
        "checksum": {"kind": "xor", "mark": "*"},
        "end": "a",
        "longest": 9,
    },
}


@pytest.mark.parametrize("options", SOUP.values(), ids=SOUP)
@settings(max_examples=300, deadline=None)
@given(data=st.lists(st.sampled_from(b"ab1*_`c\x00"), max_size=60).map(bytes), cuts=st.lists(st.integers(0, 60)))
def test_it_does_not_matter_how_the_stream_is_cut(options, data, cuts):
    whole, pieces = decoder(options), decoder(options)
    last, found = [-99.0], feed(whole, data)
    edges = [0, *sorted(c for c in cuts if c < len(data)), len(data)]
    for a, b in pairwise(edges):
        got, values = feed(pieces, data[a:b])
        last = values if got else last
    assert counted(pieces) == counted(whole)
    assert last == found[1]
    assert pieces.waiting <= 9 + 1  # no more than the longest frame and the beginning of an end


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(b"\xaa\x55\x00\x01"), max_size=80).map(bytes), st.lists(st.integers(0, 3), max_size=4))
def test_every_byte_is_accounted_for(noise, frames):
    d = decoder(NUMBERED)
    data = noise + b"".join(numbered(n, 1.0) for n in frames) + noise
    feed(d, data)
    assert d.counts.garbage + d.waiting + 14 * d.counts.frames == len(data)
    assert d.counts.frames >= len(frames) - 1  # one may hide behind a start at the end of the noise, until it is over


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_into_any_frame(data):
    options = data.draw(st.sampled_from([MODBUS, NMEA, NUMBERED, *SOUP.values()]))
    d = decoder(options)
    fed = data.draw(st.lists(st.binary(max_size=300), max_size=4))
    for piece in fed:
        feed(d, piece)
    assert d.counts.garbage + d.waiting <= sum(map(len, fed))


# -- a million --------------------------------------------------------------------------------------------------------


def mutated(frame: bytes, how: float, rng: random.Random) -> bytes:
    """The frame as a bad line delivers it."""
    at = rng.randrange(1, len(frame))
    if how < 0.4:  # a bit turned over
        return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]
    if how < 0.6:  # cut off
        return frame[:at]
    if how < 0.75:  # a byte lost
        return frame[:at] + frame[at + 1 :]
    if how < 0.9:  # bytes too many, within
        return frame[:at] + rng.randbytes(1 + rng.randrange(3)) + frame[at:]
    return rng.randbytes(rng.randrange(40))


def stream(count: int, make, rng: random.Random) -> tuple[bytes, list[tuple[int, float]]]:
    """So many frames, a third of them mutated, and the values of those that are whole."""
    sent, whole = [], []
    for n in range(count):
        frame, value = make(n)
        if rng.random() < 1 / 3:
            frame = bad if (bad := mutated(frame, rng.random(), rng)) != frame else b""
        else:
            whole.append((n, value))
        sent.append(frame)
    return b"".join(sent), whole


def heard(d: Decoder, data: bytes, rng: random.Random) -> list[tuple[int, float]]:
    """Every value that the decoder accepts of a stream in random pieces."""
    got, unpack = [], d.frame.layout.unpack

    def watched(body, values):
        good = unpack(body, values)
        if good:
            got.append((int(values[0]), float(values[1])))
        return good

    d.frame.layout.unpack = watched
    at, values = 0, np.zeros(2)
    while at < len(data):
        size = rng.randrange(1, 120)
        d.feed(data[at : at + size], values)
        at += size
    return got


def million_binary(count: int) -> None:
    rng = random.Random(1)

    def make(n: int) -> tuple[bytes, float]:
        value = struct.unpack("<f", struct.pack("<f", math.sin(n)))[0]
        return numbered(n, value), value

    data, sent = stream(count, make, rng)
    good, refused, at = [], 0, 0
    while (at := data.find(b"\xaa\x55", at)) >= 0 and at + 14 <= len(data):  # the same once more, by zlib
        body, check = data[at + 2 : at + 10], data[at + 10 : at + 14]
        whole = check == struct.pack("<I", zlib.crc32(body))
        good += [struct.unpack("<If", body)] if whole else []
        refused += not whole
        at += 14 if whole else 1
    d = decoder(NUMBERED)
    assert heard(d, data, rng) == good
    lost, healed = set(sent) - set(good), set(good) - set(sent)
    assert len(lost) <= len(healed) < count / 1000  # lost only to a cut frame whose last byte the next one's first is
    assert all(value == make(n)[1] for n, value in good)  # and no value that was never sent
    assert d.counts == Counts(len(good), refused, 0, len(data) - 14 * len(good) - d.waiting)


def million_text(count: int) -> None:
    rng = random.Random(2)
    options = {
        "format": "csv",
        "start": "$",
        "fields": ["n", "x"],
        "checksum": {"kind": "crc-32/iso-hdlc", "mark": "*"},
    }

    def make(n: int) -> tuple[bytes, float]:
        text = b"$%d,%.3f" % (n, n / 8)
        return b"%s*%08X\n" % (text, zlib.crc32(text)), float(b"%.3f" % (n / 8))

    data, sent = stream(count, make, rng)
    data += b"\n"
    good, size, refused = [], 0, 0
    for line in data.split(b"\n")[:-1]:  # the same once more, line by line
        body, mark, check = line[max(0, line.rfind(b"$")) :].removesuffix(b"\r").rpartition(b"*")
        if b"$" in line and mark and check.upper() == b"%08X" % zlib.crc32(body):
            good.append(tuple(float(word) for word in body[1:].split(b",")))
            size += len(line) + 1 - line.rfind(b"$")
        else:
            refused += b"$" in line and line[line.rfind(b"$") :].removesuffix(b"\r") != b"$"
    d = decoder(options)
    assert heard(d, data, rng) == [(int(n), x) for n, x in good]
    assert all(x == make(int(n))[1] for n, x in good)
    assert set(sent) <= set(good)
    assert d.counts == Counts(len(good), refused, 0, len(data) - size)
    assert d.waiting == 0


@pytest.mark.parametrize("play", [million_binary, million_text])
def test_twenty_thousand_frames_a_third_of_them_bad(play):
    play(20_000)


@pytest.mark.slow
@pytest.mark.parametrize("play", [million_binary, million_text])
def test_a_million_frames_a_third_of_them_bad(play):
    play(1_000_000)


# -- options ----------------------------------------------------------------------------------------------------------


def binary(**more) -> dict:
    return {"format": "binary", "start": "S", "fields": ["x"], **more}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("csv", "drivers.io.receive = 'csv': must be a table"),
        ({"fields": ["x"]}, "receive.format = None: must be one of binary, csv, regex"),
        ({"format": "template", "fields": ["x"]}, "format = 'template': must be one of binary, csv, regex"),
        ({"format": "binary", "fields": ["x"]}, "nothing tells where a frame begins; give start, end or checksum"),
        (binary(fields=[]), "fields = .*: must be a list of names or tables"),
        (binary(fields=[3]), "3 must be a name or a table with one of name, skip"),
        (binary(fields=[{"name": "x", "skip": 1}]), "must be a name or a table with one of"),
        (binary(fields=[{"name": "x", "type": "int24"}]), r"fields\[0\].type = 'int24': must be one of int8, uint8"),
        (binary(fields=[{"name": "x", "scale": 0}]), r"fields\[0\].scale = 0: must not be 0"),
        (binary(fields=[{"name": "x", "typ": "int8"}]), r"fields\[0\].typ is no option .*did you mean 'type'"),
        (binary(fields=[{"name": "X"}]), "signal name 'X'"),
        (binary(fields=["x", "x"]), "two signals are called 'x'"),
        (binary(fields=["x", {"length": "int8"}]), r"length = 'int8': must be one of uint8, uint16, uint32"),
        (binary(fields=["x", {"length": "uint8"}, {"length": "uint8"}]), "one length, here are two"),
        (binary(fields=["x", {"bytes": [256]}]), r"bytes = \[256\]: must be text .* or a list of bytes"),
        (binary(start="é\u20ac"), "start = .*must be text .* or a list of bytes"),
        (binary(order="middle"), "order = 'middle': must be one of little, big"),
        (binary(separator=";"), "separator = ';': is for format = 'csv', this is 'binary'"),
        (binary(longest=4), "longest = 4: a frame has 5 bytes"),
        (binary(checksum={"from": 1}), "checksum.kind is missing"),
        (binary(checksum={"kind": "xor", "mark": "*"}), "mark = .*is for text"),
        (binary(checksum={"kind": "xor", "at": 1}), r"checksum.at = 1: there must be \{ skip = 1 \}"),
        ({"format": "csv", "fields": ["x"], "checksum": {"kind": "xor", "at": 1}}, "at = 1: is for binary"),
        ({"format": "csv", "fields": ["x"], "end": ""}, "end = '': must be given"),
        ({"format": "csv", "fields": ["x"], "separator": "::"}, "separator = '::': must be one character"),
        ({"format": "csv", "fields": ["x", {"bytes": "a"}]}, "a column has a name, skip or text"),
        ({"format": "regex", "fields": ["x"], "pattern": "("}, "pattern = '\\(': is no regular expression"),
        ({"format": "regex", "fields": ["x"], "pattern": "(?P<y>.)"}, r"\(\?P<x>...\) is missing"),
        ({"format": "regex", "fields": [{"skip": 1}], "pattern": "."}, "every field needs a name"),
    ],
)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        Frame("io.receive", options)


@pytest.mark.parametrize("template", ["{y}", "{x:d}", "{x", "{x.real.y}"])
def test_templates_that_make_no_sense(template):
    with pytest.raises(OptionError, match=r"template = .*: must be text with \{x\} in it"):
        Frame("io.send", {"format": "template", "template": template, "fields": ["x"]}, sent=True)


# -- numbers that a type does not have --------------------------------------------------------------------------------


def test_what_is_beyond_a_type_becomes_its_limit_and_what_is_no_number_is_not_sent():
    frame = Frame(
        "dut.send", binary(fields=[{"name": "n", "type": "int16"}, {"name": "x", "type": "float32"}]), sent=True
    )
    for value, n in ((math.inf, 32767), (-math.inf, -32768), (1e300, 32767), (-7.6, -8)):
        assert frame.pack(np.array([value, 1.0]))[1:3] == struct.pack("<h", n)
    with pytest.raises(ValueError, match="nan cannot be sent as a whole number"):
        frame.pack(np.array([math.nan, 1.0]))
    line = Frame("dut.send", {"format": "csv", "fields": [{"name": "n", "type": "whole"}]}, sent=True)
    for value in (math.inf, math.nan):
        with pytest.raises(ValueError, match="cannot be sent as a whole number"):
            line.pack(np.array([value]))


# -- frames that are refused ------------------------------------------------------------------------------------------


def test_without_a_start_mark_a_spoilt_frame_is_refused_once():
    """Every byte of it may be a beginning; but it was one frame, and so were two of them."""
    options = {"format": "binary", "fields": [{"name": "n", "type": "uint32"}], "checksum": "crc-16/modbus"}
    d = decoder(options)
    good = [Frame("dut.send", options, sent=True).pack(np.array([float(n)])) for n in range(1, 6)]
    spoilt = bytes([good[1][0] ^ 0x55, *good[1][1:]])
    for stream_ in ((good[0], spoilt, good[2]), (good[0], spoilt, spoilt, good[2])):
        before = d.counts.bad_checksum
        for byte in b"".join(stream_):
            feed(d, bytes([byte]))
        assert d.counts.bad_checksum - before == len(stream_) - 2
    assert d.counts.frames == 4
