"""modbus-server: asked by mbpoll (libmodbus) and pyModbusTCP, which nobody here wrote, and by hand-made frames."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from modbus_peers import mbpoll
from pyModbusTCP.client import ModbusClient
from pyModbusTCP.constants import EXP_DATA_ADDRESS, EXP_DATA_VALUE, EXP_GATEWAY_TARGET_DEVICE_FAILED_TO_RESPOND
from support import free_port, wait_for

from drivers.base import DriverError
from drivers.modbus.server import ModbusServer

INPUTS = [
    {"name": "torque", "unit": "N*m", "holding": 0, "type": "float32", "default": 1.5},
    {"name": "mode", "holding": 2, "type": "int16"},
    {"name": "count", "holding": 3, "type": "int32"},
    {"name": "horn", "holding": 5, "bit": 0},
    {"name": "lamp", "holding": 5, "bit": 9},
    {"name": "run", "coil": 0},
    {"name": "reset", "coil": 1},
]
OUTPUTS = [
    {"name": "angle", "unit": "rad", "input": 0, "type": "float32"},
    {"name": "load", "unit": "kg", "input": 2, "type": "uint16", "scale": 0.5},
    {"name": "depth", "input": 6, "type": "int32", "words": "little"},
    {"name": "moving", "discrete": 0, "safe": 1.0},
    {"name": "alarm", "discrete": 3},
    {"name": "mirror", "holding": 20, "type": "int16"},
]
VALUES = np.array([-0.75, 1000.0, -70_000.0, 0.0, 1.0, -5.0])


@pytest.fixture
def server() -> Iterator[ModbusServer]:
    made = ModbusServer("s", {"listen": f"127.0.0.1:{free_port()}", "inputs": INPUTS, "outputs": OUTPUTS})
    made.open()
    made.write(VALUES)
    yield made
    made.close()


def port_of(server: ModbusServer) -> int:
    return int(str(server.options["listen"]).rpartition(":")[2])


@pytest.fixture
def client(server) -> Iterator[ModbusClient]:
    made = ModbusClient("127.0.0.1", port_of(server), timeout=5, auto_open=True)
    yield made
    made.close()


def commands(server: ModbusServer) -> dict[str, float]:
    """The channels that the next read brings."""
    values, stamps = np.full(len(INPUTS), np.nan), np.zeros(len(INPUTS), np.int64)
    wait_for(lambda: server.read(values, stamps), "a command", 5.0)
    return {s.name: v for s, v, t in zip(server.inputs, values, stamps, strict=True) if t}


@pytest.mark.parametrize(
    ("kind", "first", "count", "shown"),
    [
        (("-t", "3:float", "-B"), 0, 1, ["-0.75"]),
        (("-t", "3"), 2, 1, ["2000"]),
        (("-t", "3:int"), 6, 1, ["-70000"]),
        (("-t", "1"), 0, 4, ["0", "0", "0", "1"]),
        (("-t", "4"), 20, 1, ["65531 (-5)"]),
        (("-t", "4:float", "-B"), 0, 1, ["1.5"]),
        (("-t", "0"), 0, 2, ["0", "0"]),
    ],
)
def test_mbpoll_reads_the_plant(server, kind, first, count, shown):
    done = mbpoll("-m", "tcp", "-p", port_of(server), *kind, "-r", first, "-c", count, "127.0.0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^\[\d+\]:\s+(.*?)\s*$", done.stdout, re.MULTILINE) == shown


@pytest.mark.parametrize(
    ("kind", "first", "written", "came"),
    [
        (("-t", "4:float", "-B"), 0, ["-2.25"], {"torque": -2.25}),
        (("-t", "4"), 2, ["65533"], {"mode": -3.0}),
        (("-t", "4:int", "-B"), 3, ["123456"], {"count": 123456.0}),
        (("-t", "4"), 5, ["513"], {"horn": 1.0, "lamp": 1.0}),
        (("-t", "0"), 1, ["1"], {"reset": 1.0}),
        (("-t", "0"), 0, ["1", "0"], {"run": 1.0, "reset": 0.0}),
    ],
)
def test_mbpoll_writes_commands(server, kind, first, written, came):
    before = time.monotonic_ns()
    done = mbpoll("-m", "tcp", "-p", port_of(server), *kind, "-r", first, "127.0.0.1", "--", *written)
    assert done.returncode == 0, done.stdout + done.stderr
    values, stamps = np.zeros(len(INPUTS)), np.zeros(len(INPUTS), np.int64)
    assert server.read(values, stamps)
    got = {s.name: v for s, v, t in zip(server.inputs, values, stamps, strict=True) if t}
    assert got == came
    assert all(before < t < time.monotonic_ns() for t in stamps[stamps > 0])
    assert not server.read(values, stamps)


def test_mbpoll_is_told_what_is_not_there(server):
    done = mbpoll("-m", "tcp", "-p", port_of(server), "-t", "3", "-r", "100", "127.0.0.1")
    assert done.returncode != 0
    assert "Illegal data address" in done.stderr + done.stdout


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.read_input_registers(7, 2),  # beyond the last
        lambda c: c.read_discrete_inputs(4, 1),
        lambda c: c.read_holding_registers(65535, 1),
        lambda c: c.write_single_register(0, 1),  # half of a float
        lambda c: c.write_multiple_registers(2, [1, 2]),  # one and a half
        lambda c: c.write_multiple_registers(5, [0, 0]),  # a gap
        lambda c: c.write_single_register(20, 1),  # what the node writes
        lambda c: c.write_single_coil(2, True),
    ],
)
def test_what_is_not_there_or_would_be_cut_is_an_illegal_address(server, client, ask):
    assert not ask(client)
    assert client.last_except == EXP_DATA_ADDRESS
    assert not server.read(np.zeros(len(INPUTS)), np.zeros(len(INPUTS), np.int64))
    assert client.read_holding_registers(0, 6) == [0x3FC0, 0, 0, 0, 0, 0]


def test_gaps_read_as_zero(client):
    assert client.read_input_registers(2, 5) == [2000, 0, 0, 0, -70_000 & 0xFFFF]


def test_several_commands_at_once_and_their_echo(server, client):
    assert client.write_multiple_registers(0, [0x4048, 0xF5C3, 7, 0xFFFF, 0xFFFE, 1])
    got = commands(server)
    assert got == {"torque": pytest.approx(3.14), "mode": 7.0, "count": -2.0, "horn": 1.0, "lamp": 0.0}
    assert client.read_holding_registers(0, 6) == [0x4048, 0xF5C3, 7, 0xFFFF, 0xFFFE, 1]


def test_a_command_that_is_repeated_stays_fresh(server, client):
    """A PLC that writes the same value again is alive, and one that stops makes the input old."""
    values, stamps = np.zeros(len(INPUTS)), np.zeros(len(INPUTS), np.int64)
    seen = []
    for _ in range(3):
        client.write_single_register(2, 9)
        assert server.read(values, stamps)
        seen.append(int(stamps[1]))
    assert seen == sorted(set(seen))
    assert not server.read(values, stamps)


def test_other_function_codes_of_the_standard(server, client):
    """Function 23 writes and reads in one request."""
    assert client.write_read_multiple_registers(2, [11], 2, 1) == [11]
    assert commands(server) == {"mode": 11.0}


def test_a_wrong_unit_is_told_so():
    """With a unit_id the server is that unit only; without one it answers whatever unit it is asked for."""
    address = f"127.0.0.1:{free_port()}"
    server = ModbusServer("s", {"listen": address, "outputs": OUTPUTS[:1], "unit_id": 5})
    server.open()
    client = ModbusClient("127.0.0.1", port_of(server), unit_id=6, timeout=5)
    try:
        assert client.read_input_registers(0, 2) is None
        assert client.last_except == EXP_GATEWAY_TARGET_DEVICE_FAILED_TO_RESPOND
        client.unit_id = 5
        assert client.read_input_registers(0, 2) == [0, 0]
    finally:
        client.close()
        server.close()


@pytest.mark.parametrize("unit", [0, 1, 255])
def test_any_unit_is_answered(client, unit):
    client.unit_id = unit
    assert client.read_input_registers(2, 1) == [2000]


def test_safe_values_before_the_first_write():
    server = ModbusServer("s", {"listen": f"127.0.0.1:{free_port()}", "outputs": OUTPUTS})
    server.open()
    client = ModbusClient("127.0.0.1", port_of(server), timeout=5)
    try:
        assert client.read_discrete_inputs(0, 1) == [True]
    finally:
        client.close()
        server.close()


def test_a_plant_that_is_not_a_number_is_a_device_failure(server, client):
    server.write(np.array([np.nan, 1000.0, 0.0, 0.0, 0.0, 0.0]))
    assert client.read_input_registers(0, 2) is None
    assert client.last_except_as_txt == "slave device failure"
    assert client.read_input_registers(2, 1) == [2000]


def receive(end: socket.socket, wanted: int) -> bytes:
    got = b""
    while len(got) < wanted:
        more = end.recv(wanted - len(got))
        assert more, f"the connection ended after {got.hex()}"
        got += more
    return got


def exchange(server: ModbusServer, data: bytes, wanted: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port_of(server)), 5) as end:
        end.sendall(data)
        return receive(end, wanted)


def test_frames_of_the_standard(server):
    """Section 6.4 by hand: read input register 2 of unit 1, transaction 0x1234."""
    assert exchange(server, bytes.fromhex("1234 0000 0006 01 04 0002 0001"), 11) == bytes.fromhex(
        "1234 0000 0005 01 04 02 07d0"
    )


def test_a_frame_in_pieces(server):
    with socket.create_connection(("127.0.0.1", port_of(server)), 5) as end:
        for byte in bytes.fromhex("1234 0000 0006 01 04 0002 0001"):
            end.sendall(bytes([byte]))
            time.sleep(0.005)
        assert receive(end, 11)[-2:] == bytes.fromhex("07d0")


def test_too_many_registers_are_refused(server, client):
    answer = exchange(server, bytes.fromhex("0001 0000 0006 01 04 0000 007e"), 9)
    assert answer[7] & 0x80
    assert answer[8] in (1, EXP_DATA_VALUE)
    assert client.read_input_registers(2, 1) == [2000]


def test_garbage_harms_nobody(server, client):
    """Random bytes and spoilt requests on connections of their own, while another client goes on."""
    dice = random.Random(3)
    good = bytes.fromhex("0001 0000 0006 01 04 0002 0001")
    for k in range(150):
        data = bytearray(good)
        if k % 3:
            for _ in range(dice.randint(1, 4)):
                data[dice.randrange(6, len(data))] = dice.randrange(256)
            data[4:6] = struct.pack(">H", dice.choice((0, 1, 2, 6, 6, 6, 255, 65535)))
            if data[7] in (5, 6, 15, 16, 22, 23):
                data[7] = 3  # writes are another test's
        else:
            data = bytearray(dice.randbytes(dice.randint(1, 300)))
            data[7:8] = b"\x2b"
        with socket.create_connection(("127.0.0.1", port_of(server)), 5) as end:
            end.sendall(bytes(data))
            end.settimeout(0.002)
            with contextlib.suppress(TimeoutError):
                end.recv(300)
        if k % 10 == 0:
            assert client.read_input_registers(2, 1) == [2000]
    assert not server.read(np.zeros(len(INPUTS)), np.zeros(len(INPUTS), np.int64))


def test_a_taken_port_is_one_clear_line(server):
    second = ModbusServer("s", dict(server.options))
    with pytest.raises(DriverError) as caught:
        second.open()
    assert str(caught.value) == (
        f"cannot serve on 127.0.0.1:{port_of(server)}: the port is taken by another program (ss -tlpn shows which)"
    )
    second.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"listen": "192.0.2.1:5020"}, "cannot serve on 192.0.2.1:5020: this machine has no such address"),
        ({"listen": "no-such-host.invalid:5020"}, "this machine has no such address"),
        ({"port": "/dev/no-such-port"}, "cannot serve on /dev/no-such-port: there is no such port"),
    ],
)
def test_a_line_that_is_not_there_is_one_clear_line(options, says):
    with pytest.raises(DriverError, match=says):
        ModbusServer("s", {**options, "outputs": OUTPUTS}).open()


def test_it_ends_cleanly_with_clients_connected_and_opens_again(server, client):
    assert client.read_input_registers(2, 1) == [2000]
    before = threading.active_count()
    for _ in range(3):
        server.close()
        server.close()
        assert threading.active_count() == before - 1
        with pytest.raises(DriverError, match="not open"):
            server.read(np.zeros(len(INPUTS)), np.zeros(len(INPUTS), np.int64))
        assert client.read_input_registers(2, 1) is None
        server.open()
        assert client.read_input_registers(2, 1) == [2000]


def test_a_missing_library_is_one_clear_line(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "pymodbus"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("drivers.modbus.link", "drivers.modbus.service"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pymodbus", None)
    with pytest.raises(DriverError, match=r'^the library pymodbus is not installed: pip install "hilnode\[modbus\]"'):
        ModbusServer("s", {"listen": "127.0.0.1:5020", "outputs": OUTPUTS}).open()


def test_requests_that_come_together_are_all_answered(server):
    """A master may send the next request before the answer to the last."""
    ask = b"".join(struct.pack(">HHHBBHH", n, 0, 6, 1, 4, 2, 1) for n in (1, 2, 3))
    answers = exchange(server, ask, 33)
    assert [int.from_bytes(answers[k : k + 2], "big") for k in (0, 11, 22)] == [1, 2, 3]
    with socket.create_connection(("127.0.0.1", port_of(server)), 5) as end:
        for k in range(15):
            end.sendall(ask[12 * (k % 3) : 12 * (k % 3) + 12])
        answers = receive(end, 15 * 11)
    assert [answers[11 * k + 1] for k in range(15)] == [1, 2, 3] * 5


def test_every_snapshot_is_of_one_moment(server, client):
    """Two outputs that the node always writes alike never differ in one answer."""
    begun, ending = threading.Event(), threading.Event()

    def write() -> None:
        row, k = np.zeros(len(OUTPUTS)), 0
        while not ending.is_set():
            k = (k + 1) % 60_000
            row[0] = k
            time.sleep(0.0001)
            row[1] = 0.5 * k
            server.write(row)  # one array for ever, as the runner has it
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(10)
        for _ in range(300):
            high, low, load = client.read_input_registers(0, 3)
            assert struct.unpack(">f", struct.pack(">2H", high, low))[0] == load
    finally:
        ending.set()
        writer.join(5)
