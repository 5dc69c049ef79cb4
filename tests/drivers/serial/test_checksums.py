"""Checksums against published check values, published frames, and a library that somebody else wrote."""

import fastcrc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.base import OptionError
from drivers.options import Options
from drivers.serial.checksums import CRCS, SUMS, Crc, checksum_from, crc_checksum

CHECK = {  # CRC of "123456789", from the catalogue of parametrised CRC algorithms
    "crc-8/smbus": 0xF4,
    "crc-8/maxim-dow": 0xA1,
    "crc-8/sae-j1850": 0x4B,
    "crc-8/autosar": 0xDF,
    "crc-8/dvb-s2": 0xBC,
    "crc-8/nrsc-5": 0xF7,
    "crc-8/rohc": 0xD0,
    "crc-16/arc": 0xBB3D,
    "crc-16/modbus": 0x4B37,
    "crc-16/usb": 0xB4C8,
    "crc-16/umts": 0xFEE8,
    "crc-16/xmodem": 0x31C3,
    "crc-16/ibm-3740": 0x29B1,
    "crc-16/genibus": 0xD64E,
    "crc-16/kermit": 0x2189,
    "crc-16/ibm-sdlc": 0x906E,
    "crc-16/mcrf4xx": 0x6F91,
    "crc-16/dnp": 0xEA82,
    "crc-32/iso-hdlc": 0xCBF43926,
    "crc-32/bzip2": 0xFC891918,
    "crc-32/mpeg-2": 0x0376E6E7,
    "crc-32/jamcrc": 0x340BC6D9,
    "crc-32/cksum": 0x765E7680,
    "crc-32/iscsi": 0xE3069283,
}


def checksum(given: object):
    return checksum_from(Options("io.receive.checksum", {"kind": given}, ("kind",)), "kind")


@pytest.mark.parametrize("name", CRCS)
def test_published_check_value(name):
    assert checksum(name).compute(b"123456789") == CHECK[name]


@pytest.mark.parametrize("name", CRCS)
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=80))
def test_crc_is_that_of_another_library(name, data):
    width, _, algorithm = name.removeprefix("crc-").partition("/")
    theirs = getattr(getattr(fastcrc, f"crc{width}"), algorithm.replace("-", "_"))
    assert checksum(name).compute(data) == theirs(data)
    assert checksum(name).size == int(width) // 8


@pytest.mark.parametrize(
    ("name", "covered", "result"),
    [
        ("crc-16/modbus", "01 03 00 00 00 0A", 0xCDC5),  # read ten holding registers: sent low byte first, C5 CD
        ("lrc", "0B 00 10 00 61 64 64 72 65 73 73 20 67 61 70", 0xA7),  # :0B0010006164647265737320676170A7, Intel hex
        ("sum8-inverted", "01 02 01", 0xFB),  # FF FF 01 02 01 FB, a Dynamixel ping
        ("xor", b"GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,".hex(), 0x47),  # NMEA 0183, *47
        ("sum8", "FF FF 03", 0x01),
        ("sum16", "FF FF 03", 0x0201),
    ],
)
def test_published_frames(name, covered, result):
    assert checksum(name).compute(bytes.fromhex(covered)) == result


def test_nothing_sums_up_to_nothing():
    assert {name: s.compute(b"") for name, s in SUMS.items()} == {
        "sum8": 0, "sum16": 0, "lrc": 0, "sum8-inverted": 0xFF, "xor": 0,
    }  # fmt: skip


@given(st.binary(max_size=20))
def test_crc_from_its_parameters(data):
    table = {"width": 16, "poly": 0x1021, "init": 0xFFFF, "refin": True, "refout": True, "xorout": 0xFFFF}
    assert checksum(table).compute(data) == fastcrc.crc16.ibm_sdlc(data)


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("refin", [True, False])
@given(data=st.binary(max_size=20))
def test_refout_turns_the_result_around(width, refin, data):
    same = crc_checksum("a", Crc(width, 0x1D, 0x5A, refin, refin, 0)).compute(data)
    turned = crc_checksum("b", Crc(width, 0x1D, 0x5A, refin, not refin, 0)).compute(data)
    assert f"{same:0{width}b}"[::-1] == f"{turned:0{width}b}"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("crc-16/modbs", "'crc-16/modbs' is not known: did you mean 'crc-16/modbus'"),
        ({"width": 12, "poly": 1}, "width = 12: must be 8, 16 or 32"),
        ({"width": 8}, "poly is missing"),
        ({"width": 8, "poly": 0x1021}, "poly = 4129: must be a whole number from 0 to 255"),
        ({"poly": 1, "reflect": True}, "drivers.io.receive.checksum.kind.reflect is no option"),
        (16, "= 16: must be a table with the keys width"),
    ],
)
def test_checksums_that_make_no_sense(given, says):
    with pytest.raises(OptionError, match=says):
        checksum(given)
