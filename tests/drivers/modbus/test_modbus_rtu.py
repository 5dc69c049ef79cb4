"""Modbus RTU over kernel terminals joined by socat: against mbpoll, a hand-made device, and both kinds together."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import serial.tools.list_ports
from modbus_peers import RtuSlave, crc, mbpoll, registers, serial_cable
from support import wait_for

from drivers.base import DriverError, OptionError
from drivers.modbus.client import Modbus
from drivers.modbus.link import Missing
from drivers.modbus.options import Refused
from drivers.modbus.server import ModbusServer

LINE = {"baud": 115200, "parity": "none"}
A = {"name": "a", "holding": 0, "type": "uint16"}
B = {"name": "b", "holding": 9, "type": "uint16"}


@pytest.fixture
def cable(tmp_path) -> Iterator[tuple[str, str]]:
    with serial_cable(tmp_path) as ends:
        yield ends


@pytest.fixture
def slave(cable) -> Iterator[RtuSlave]:
    """Answers reads with the address that was asked for, plus 100."""
    made = RtuSlave(cable[1], lambda r: b"\x03" + registers([r[2] + 100]) if r[0] == 3 else r[:5])
    yield made
    made.close()


@pytest.fixture
def client(cable, slave) -> Iterator[Modbus]:
    options = {"port": cable[0], **LINE, "inputs": [A, B], "outputs": [{**A, "name": "o"}], "poll_ms": 1}
    made = Modbus("plc", {**options, "timeout_ms": 150})
    made.open()
    yield made
    made.close()


def read_both(client: Modbus) -> list[float]:
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    wait_for(lambda: client.read(values, stamps) and stamps.all(), "both channels", 5.0)
    return values.tolist()


def test_the_checksum_of_this_test_is_the_published_one():
    """CRC-16/MODBUS of the digits 1 to 9."""
    assert crc(b"123456789") == 0x4B37


def test_reads_and_writes(client, slave):
    assert read_both(client) == [100.0, 109.0]
    client.write(np.array([513.0]))
    assert slave.requests[-1][1] == bytes.fromhex("06 0000 0201")


def test_found_by_what_usb_says_and_again_at_another_port(cable, slave, monkeypatch):
    ports = [SimpleNamespace(device=cable[0], vid=0x0403, pid=0x6001, serial_number="A1")]
    monkeypatch.setattr(serial.tools.list_ports, "comports", lambda: ports)
    made = Modbus("plc", {"usb": "0403:6001:A1", **LINE, "inputs": [A, B], "poll_ms": 1, "timeout_ms": 150})
    made.open()
    assert read_both(made) == [100.0, 109.0]
    made.close()
    ports.clear()
    with pytest.raises(DriverError, match="no USB serial port fits usb = 0403:6001:A1: is it plugged in"):
        made.open()
    with pytest.raises(OptionError, match="or usb"):
        Modbus("plc", {"usb": "0403:6001", "port": cable[0], "inputs": [A]})


def test_frames_are_kept_apart(client, slave):
    """Between an answer and the next request the line is quiet for 1.75 ms."""
    answered: list[float] = []

    def note(frame: bytes) -> bytes:
        answered.append(time.monotonic())
        return frame

    slave.wire = note
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    for _ in range(30):
        client.read(values, stamps)
    asked = [when for when, _ in slave.requests]
    assert len(asked) >= 20
    assert min(ask - done for done, ask in zip(answered, asked[1:], strict=False)) >= 0.00175


def test_noise_costs_a_frame_and_silence_the_line(client, slave):
    values, stamps = np.array([7.0, 7.0]), np.zeros(2, np.int64)
    slave.wire = lambda frame: frame[:-1] + bytes([frame[-1] ^ 1])
    for _ in range(2):
        with pytest.raises(Missing, match=r"no usable answer from unit 1 at .* within 150 ms"):
            client.read(values, stamps)
    with pytest.raises(DriverError, match="3 times in a row: check unit_id, baud, parity and the two wires"):
        client.read(values, stamps)
    assert values.tolist() == [7.0, 7.0]
    slave.wire = lambda frame: frame
    assert read_both(client) == [100.0, 109.0]


def test_a_late_answer_is_never_taken_for_the_next(client, slave):
    """RTU frames carry no number, and both answers have the same length."""
    assert read_both(client) == [100.0, 109.0]
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    slave.delay = 0.22
    with pytest.raises(Missing):
        client.read(values, stamps)
    slave.delay = 0.0
    for _ in range(4):
        client.read(values, stamps)
        assert values[0] in (0.0, 100.0)
        assert values[1] in (0.0, 109.0)
    assert values.tolist() == [100.0, 109.0]


def test_a_wrong_unit_stays_silent(cable, slave):
    slave.unit = 2
    client = Modbus("plc", {"port": cable[0], **LINE, "inputs": [A], "timeout_ms": 30})
    client.open()
    try:
        with pytest.raises(Missing, match="unit 1"):
            client.read(np.zeros(1), np.zeros(1, np.int64))
    finally:
        client.close()


def test_a_refusal_in_words(client, slave):
    slave.answer = lambda request: bytes([request[0] | 0x80, 6])
    with pytest.raises(Refused, match="busy"):
        client.read(np.zeros(2), np.zeros(2, np.int64))


def test_an_unplugged_adapter_is_lost(tmp_path):
    with serial_cable(tmp_path) as (near, _):
        client = Modbus("plc", {"port": near, **LINE, "inputs": [A], "timeout_ms": 2000})
        client.open()
    began = time.monotonic()
    with pytest.raises(DriverError, match=r"closed the connection|is gone"):
        client.read(np.zeros(1), np.zeros(1, np.int64))
    assert time.monotonic() - began < 1.5
    client.close()
    with pytest.raises(DriverError, match="there is no such port"):
        client.open()


def test_one_program_has_the_line_and_the_watchdog_may_share_it(client, slave, cable):
    second = Modbus("plc", dict(client.options))
    with pytest.raises(DriverError, match=r"cannot open .*: another program has it \(fuser .* shows which\)"):
        second.open()
    second.write_safe(np.array([77.0]))
    assert slave.requests[-1][1] == bytes.fromhex("06 0000 004d")
    second.close()
    assert read_both(client) == [100.0, 109.0]


@pytest.fixture
def server(cable) -> Iterator[ModbusServer]:
    options = {"port": cable[1], **LINE, "unit_id": 3, "words": "little"}
    inputs = [{"name": "torque", "holding": 0, "type": "float32"}, {"name": "run", "coil": 0}]
    outputs = [{"name": "angle", "input": 0, "type": "float32"}, {"name": "moving", "discrete": 2}]
    made = ModbusServer("s", {**options, "inputs": inputs, "outputs": outputs})
    made.open()
    made.write(np.array([-2.5, 1.0]))
    yield made
    made.close()


RTU = ("-m", "rtu", "-b", "115200", "-P", "none", "-a", "3")


def test_mbpoll_reads_and_writes_our_server(cable, server):
    done = mbpoll(*RTU, "-t", "3:float", "-r", "0", cable[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\[0\]:\s+-2.5\s*$", done.stdout, re.MULTILINE)
    done = mbpoll(*RTU, "-t", "4:float", "-r", "0", cable[0], "6.25")
    assert done.returncode == 0, done.stdout + done.stderr
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    assert server.read(values, stamps)
    assert values.tolist() == [6.25, 0.0]
    assert (stamps > 0).tolist() == [True, False]


def test_mbpoll_gets_no_answer_from_another_unit(cable, server):
    done = mbpoll("-m", "rtu", "-b", "115200", "-P", "none", "-a", "4", "-o", "0.1", "-t", "3", "-r", "0", cable[0])
    assert done.returncode != 0
    assert "timed out" in done.stderr + done.stdout


def test_our_client_and_our_server(cable, server):
    options = {"port": cable[0], **LINE, "unit_id": 3, "words": "little", "poll_ms": 1}
    inputs, outputs = server.options["outputs"], server.options["inputs"]
    client = Modbus("plc", {**options, "inputs": inputs, "outputs": outputs})
    client.open()
    try:
        assert read_both(client) == [-2.5, 1.0]
        client.write(np.array([12.5, 1.0]))
    finally:
        client.close()
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    wait_for(lambda: server.read(values, stamps) and stamps.all(), "both commands")
    assert values.tolist() == [12.5, 1.0]


def test_a_server_whose_adapter_is_unplugged_says_so(tmp_path):
    with serial_cable(tmp_path) as (_, far):
        server = ModbusServer("s", {"port": far, **LINE, "outputs": [A]})
        server.open()
        server.write(np.zeros(1))

    def ended() -> bool:
        try:
            server.write(np.zeros(1))
        except DriverError as error:
            return "has ended" in str(error)
        return False

    wait_for(ended, "the server to notice")
    server.close()


def test_random_bytes_never_become_a_value(client, slave):
    """What is not a frame with a right checksum is an error, whatever it is."""
    values, stamps = np.array([7.0, 7.0]), np.zeros(2, np.int64)
    slave.wire = lambda frame: os.urandom(1 + frame[-1] % 20) + struct.pack(">B", frame[0] ^ 0x55)
    for _ in range(4):
        with pytest.raises((Missing, DriverError)):
            client.read(values, stamps)
    assert values.tolist() == [7.0, 7.0]
