"""Options of both Modbus kinds: what makes no sense is one line that names the key, the value and the way out."""

import pytest

from drivers.base import OptionError
from drivers.modbus.client import Modbus
from drivers.modbus.options import ModbusOptions, Rtu, Tcp
from drivers.modbus.server import ModbusServer
from drivers.registry import create

CHANNEL = {"name": "a", "holding": 0, "type": "uint16"}


def client(**options: object) -> Modbus:
    return Modbus("plc", {"connect": "127.0.0.1:502", **options})


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ({"name": "a"}, "plc.inputs: a: needs the address in exactly one of coil, discrete, input, holding; got none"),
        ({**CHANNEL, "coil": 1}, "exactly one of .* got coil = 1, holding = 0"),
        ({**CHANNEL, "holding": 40001.0}, "holding = 40001.0: must be an address from 0 to 65535"),
        ({**CHANNEL, "holding": 400001}, "what a manual calls 40001 or 400001 is holding 0"),
        ({**CHANNEL, "holding": -1}, "holding = -1"),
        ({**CHANNEL, "holding": True}, "holding = True"),
        ({**CHANNEL, "type": "float64"}, "type = 'float64': must be one of int16, uint16, int32, uint32, float32, or"),
        ({"name": "a", "holding": 0}, "type = None: must be one of"),
        ({**CHANNEL, "bit": 3}, "type = 'uint16' and bit = 3: a bit of a register has no type"),
        (
            {"name": "a", "holding": 0, "bit": 16},
            r"bit = 16: must be a whole number from 0 \(least significant\) to 15",
        ),
        ({"name": "a", "coil": 0, "type": "uint16"}, "a coil is one bit: leave out type and bit"),
        ({"name": "a", "discrete": 0, "bit": 0}, "a discrete is one bit"),
        (
            {"name": "a", "holding": 65535, "type": "float32"},
            "a float32 takes two registers, and 65535 is the last one",
        ),
        ({**CHANNEL, "words": "middle"}, "words = 'middle': must be one of big, little"),
        ({**CHANNEL, "scale": 0}, "scale = 0: must be a number other than 0"),
        ({**CHANNEL, "scale": float("nan")}, "scale = nan"),
        ({**CHANNEL, "offset": "1"}, "offset = '1': must be a number"),
        ({**CHANNEL, "colour": "red"}, "colour"),
        ({**CHANNEL, "name": "A B"}, "A B"),
        ({**CHANNEL, "poll_ms": 0}, "plc.inputs.a.poll_ms = 0: must be a number from 1 to"),
        ("a", "plc.inputs = .'a'.: must be a list of tables such as"),
    ],
)
def test_a_channel_that_makes_no_sense(channel, says):
    with pytest.raises(OptionError, match=says):
        client(inputs=[channel])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"connect": "h:0"}, "connect = 'h:0': must be host or host:port"),
        ({"connect": "h:70000"}, "h:70000"),
        ({"connect": ":502"}, "host or host:port"),
        ({"connect": 502}, "connect = 502"),
        ({"port": "/dev/ttyUSB0"}, "give either connect .* or port"),
        ({"baud": 9600}, r"baud = 9600: belongs to a serial line \(port\), not to connect"),
        ({"unit_id": 256}, "unit_id = 256: must be a whole number from 0 to 255"),
        ({"timeout_ms": 0}, "timeout_ms = 0: must be a number from 1 to 60000"),
        ({"poll_ms": "fast"}, "poll_ms = 'fast'"),
        ({"gap": 200}, "gap = 200"),
        ({"max_registers": 126}, "max_registers = 126: must be a whole number from 2 to 125"),
        ({"writes": "often"}, "writes = 'often': must be one of auto, single, multiple"),
        ({"words": 1}, "words = 1: must be one of big, little"),
        ({"host": "h"}, "drivers.plc.host is no option of this kind"),
        ({"outputs": [{"name": "a", "input": 0, "type": "int16"}]}, "exactly one of coil, holding; got input = 0"),
        ({"outputs": [{"name": "a", "discrete": 0}]}, "exactly one of coil, holding; got discrete = 0"),
        ({"writes": "single", "outputs": [{"name": "a", "holding": 0, "type": "float32"}]}, "must be written together"),
    ],
)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        client(**options)


def test_overlapping_registers():
    level = {"name": "level", "holding": 3, "type": "float32"}
    with pytest.raises(OptionError) as caught:
        client(inputs=[{"name": "pump", "holding": 4, "type": "uint16"}, level])
    assert str(caught.value) == (
        "drivers.plc.inputs: pump (holding 4, uint16) overlaps level (holding 3-4, float32): "
        "give each a place of its own; 32-bit types take two registers"
    )
    client(inputs=[level], outputs=[{**level, "name": "target"}])  # a client may read back what it writes
    with pytest.raises(OptionError, match=r"inputs and outputs: .* overlaps"):
        ModbusServer("s", {"listen": "h:502", "inputs": [level], "outputs": [{**level, "name": "target"}]})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"inputs": [{"name": "a", "input": 0, "type": "int16"}]}, "exactly one of coil, holding; got input = 0"),
        ({}, "needs inputs, outputs or both"),
        ({"timeout_ms": 1}, "timeout_ms is no option"),
    ],
)
def test_a_server_that_makes_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        ModbusServer("s", {"listen": "127.0.0.1:5020", **options})


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"connect": "plc.local"}, Tcp("plc.local", 502)),
        ({"connect": "10.0.0.1:5020"}, Tcp("10.0.0.1", 5020)),
        ({"connect": "[::1]:502"}, Tcp("::1", 502)),
        ({"connect": "[fe80::1]"}, Tcp("fe80::1", 502)),
        ({"port": "/dev/ttyUSB0"}, Rtu("/dev/ttyUSB0", 19200, "even", 1)),
        ({"port": "/dev/ttyS0", "baud": 9600, "parity": "none", "stop_bits": 2}, Rtu("/dev/ttyS0", 9600, "none", 2)),
    ],
)
def test_lines(options, line):
    assert ModbusOptions("plc", options).line("connect") == line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"port": ""}, "port = '': must be the path of a serial port"),
        ({"port": "/dev/ttyS0", "baud": 9601}, "baud = 9601: must be one of 1200, 2400"),
        ({"port": "/dev/ttyS0", "parity": "mark"}, "parity = 'mark': must be one of even, odd, none"),
        ({"port": "/dev/ttyS0", "stop_bits": 3}, "stop_bits = 3"),
        ({"port": "/dev/ttyS0", "unit_id": 0}, "unit_id = 0: must be a whole number from 1 to 247"),
        ({}, "give either connect .* or port"),
    ],
)
def test_serial_lines_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        Modbus("plc", options)


def test_both_kinds_are_known_by_name():
    assert isinstance(create("modbus", "plc", {"connect": "h"}), Modbus)
    assert isinstance(create("modbus-server", "s", {"listen": "h", "outputs": [CHANNEL]}), ModbusServer)


def test_the_silence_between_frames():
    """3.5 characters of 11 bits at 9600 baud, and the standard's fixed 1.75 ms above 19200."""
    assert Rtu("t", 9600).quiet == pytest.approx(0.00401, abs=1e-5)
    assert Rtu("t", 115200).quiet == 0.00175
