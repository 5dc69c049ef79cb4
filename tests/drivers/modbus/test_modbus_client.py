"""modbus: our client against a foreign server (pyModbusTCP) and against a peer whose every byte is given here."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from modbus_peers import Scripted, foreign_server, registers, scripted
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice
from support import free_port, is_alive, remote_node, wait_for

from drivers.base import DriverError
from drivers.modbus.client import Modbus
from drivers.modbus.options import Refused
from drivers.runner import Runner
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

INPUTS = [
    {"name": "torque", "unit": "N*m", "holding": 0, "type": "float32"},
    {"name": "level", "unit": "m", "holding": 2, "type": "uint16", "scale": 0.01},
    {"name": "low", "holding": 3, "bit": 0},
    {"name": "high", "holding": 3, "bit": 15},
    {"name": "count", "input": 100, "type": "int32", "words": "little"},
    {"name": "run", "coil": 5},
    {"name": "door", "discrete": 7},
]
OUTPUTS = [
    {"name": "speed", "holding": 20, "type": "float32"},
    {"name": "mode", "holding": 22, "type": "int16"},
    {"name": "far", "holding": 40, "type": "uint16"},
    {"name": "lamp", "coil": 20},
    {"name": "horn", "coil": 21},
]


def make(port: int, **options: object) -> Modbus:
    return Modbus("plc", {"connect": f"127.0.0.1:{port}", "poll_ms": 1, **options})


@pytest.fixture
def foreign() -> Iterator[tuple[int, object]]:
    with foreign_server() as made:
        yield made


@pytest.fixture
def closing() -> Iterator[list[Modbus]]:
    made: list[Modbus] = []
    yield made
    for driver in made:
        driver.close()


def read_all(driver: Modbus) -> tuple[list[float], list[int]]:
    values, stamps = np.full(len(driver.inputs), -99.0), np.zeros(len(driver.inputs), np.int64)
    wait_for(lambda: driver.read(values, stamps) and stamps.all(), "all channels", 5.0)
    return values.tolist(), stamps.tolist()


def test_every_table_and_type_is_read_from_a_foreign_server(foreign, closing):
    port, bank = foreign
    bank.set_holding_registers(0, [*struct.unpack(">2H", struct.pack(">f", -12.5)), 250, 0x8000])
    low, high = struct.unpack(">2H", struct.pack(">i", -100_000))[::-1]
    bank.set_input_registers(100, [low, high])
    bank.set_coils(5, [True])
    bank.set_discrete_inputs(7, [True])
    driver = make(port, inputs=INPUTS)
    closing.append(driver)
    driver.open()
    before = time.monotonic_ns()
    values, stamps = read_all(driver)
    assert values == [-12.5, 2.5, 0.0, 1.0, -100_000.0, 1.0, 1.0]
    assert all(before <= s <= time.monotonic_ns() for s in stamps)


def test_every_form_is_written_to_a_foreign_server(foreign, closing):
    port, bank = foreign
    driver = make(port, outputs=OUTPUTS)
    closing.append(driver)
    driver.open()
    driver.write(np.array([1.25, -3.0, 7.0, 1.0, 0.0]))
    assert bank.get_holding_registers(20, 3) == [*struct.unpack(">2H", struct.pack(">f", 1.25)), 0xFFFD]
    assert bank.get_holding_registers(40, 1) == [7]
    assert bank.get_coils(20, 2) == [True, False]
    driver.write(np.array([1.25, 4.0, 7.0, 1.0, 1.0]))
    assert bank.get_holding_registers(22, 1) == [4]
    assert bank.get_coils(20, 2) == [True, True]


@contextlib.contextmanager
def pymodbus_server(device: SimDevice) -> Iterator[int]:
    """pymodbus's own server with its own registers, in a thread."""
    port, up, loops = free_port(), threading.Event(), []

    async def serve() -> None:
        loops.append((asyncio.get_running_loop(), ending := asyncio.Event()))
        server = ModbusTcpServer(device, address=("127.0.0.1", port))
        await server.serve_forever(background=True)
        up.set()
        await ending.wait()
        await server.shutdown()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert up.wait(5)
        yield port
    finally:
        loop, ending = loops[0]
        loop.call_soon_threadsafe(ending.set)
        thread.join(5)


def test_numbers_as_pymodbus_packs_them(closing):
    data = [
        SimData(0, values=[1.5, -2.25], datatype=DataType.FLOAT32),
        SimData(4, values=-123456, datatype=DataType.INT32),
        SimData(6, values=3_000_000_000, datatype=DataType.UINT32),
        SimData(8, values=-7, datatype=DataType.INT16),
    ]
    kinds = {0: "float32", 2: "float32", 4: "int32", 6: "uint32", 8: "int16"}
    inputs = [{"name": f"r{at}", "holding": at, "type": kind} for at, kind in kinds.items()]
    with pymodbus_server(SimDevice(1, simdata=data)) as port:
        driver = make(port, inputs=inputs, outputs=[{**i, "name": f"w{i['name']}"} for i in inputs])
        closing.append(driver)
        driver.open()
        assert read_all(driver)[0] == [1.5, -2.25, -123456.0, 3e9, -7.0]
        driver.write(np.array([0.5, 8.0, 70_000.0, 4e9, -8.0]))
        assert read_all(driver)[0] == [0.5, 8.0, 70_000.0, 4e9, -8.0]


def test_a_plc_that_is_gone_does_not_hold_up_the_watchdog(peer, closing):
    dog = make(peer.port, outputs=OUTPUTS, timeout_ms=5000)
    closing.append(dog)
    peer.answer = lambda request: None
    began = time.monotonic()
    with pytest.raises(DriverError):
        dog.write_safe(np.zeros(5))
    assert time.monotonic() - began < 1.0


def echo(request: bytes) -> bytes:
    """What a healthy device answers: zeros to reads, the echo of the standard to writes."""
    function, _, count = struct.unpack(">BHH", request[:5])
    if function in (1, 2):
        return bytes([function, (count + 7) // 8]) + bytes((count + 7) // 8)
    return bytes([function]) + registers([0] * count) if function in (3, 4) else request[:5]


@pytest.fixture
def peer() -> Iterator[Scripted]:
    with scripted(echo) as made:
        yield made


def test_neighbours_are_read_in_one_request(peer, closing):
    driver = make(peer.port, inputs=INPUTS, unit_id=17)
    closing.append(driver)
    driver.open()
    read_all(driver)
    wanted = {bytes.fromhex(h) for h in ("03 0000 0004", "04 0064 0002", "01 0005 0001", "02 0007 0001")}
    assert set(peer.requests) == wanted
    assert set(peer.units) == {17}


def test_each_group_has_its_own_period(peer, closing):
    fast, slow = {"name": "fast", "input": 0, "type": "int16"}, {"name": "slow", "input": 1, "type": "int16"}
    driver = make(peer.port, inputs=[{**fast, "poll_ms": 10}, {**slow, "poll_ms": 100}])
    closing.append(driver)
    driver.open()
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        driver.read(values, stamps)
    counts = [sum(r[1:3] == bytes([0, address]) for r in peer.requests) for address in (0, 1)]
    assert 3 <= counts[1] <= 7
    assert 3 * counts[1] <= counts[0] <= 55


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ("auto", ["06 0000 0005", "10 0000 0002 04 0006 0007", "05 0003 ff00", "0f 0003 0002 01 02"]),
        ("single", ["06 0000 0005", "06 0000 0006", "06 0001 0007", "05 0003 ff00", "05 0003 0000", "05 0004 ff00"]),
        ("multiple", ["10 0000 0001 02 0005", "10 0000 0002 04 0006 0007", "0f 0003 0001 01 01", "0f 0003 0002 01 02"]),
    ],
)
def test_changes_go_out_with_the_right_function(peer, closing, how, sent):
    """Frames by hand from the standard, sections 6.5, 6.6, 6.11 and 6.12."""
    places = [{"holding": 0, "type": "uint16"}, {"holding": 1, "type": "uint16"}, {"coil": 3}, {"coil": 4}]
    outputs = [{"name": f"o{k}", **place} for k, place in enumerate(places)]
    driver = make(peer.port, outputs=outputs, writes=how, refresh_ms=0)
    closing.append(driver)
    driver.open()
    driver.write(np.zeros(4))
    peer.requests.clear()
    for values in ([5, 0, 0, 0], [5, 0, 0, 0], [6, 7, 0, 0], [6, 7, 1, 0], [6, 7, 0, 1], [6.2, 7.4, 0.1, 0.9]):
        driver.write(np.array(values, float))
    assert peer.requests == [bytes.fromhex(h) for h in sent]


def test_half_a_number_never_travels_alone(peer, closing):
    driver = make(peer.port, outputs=OUTPUTS[:1], refresh_ms=0)
    closing.append(driver)
    driver.open()
    driver.write(np.array([1.0]))
    driver.write(np.array([2.0]))  # 3f800000 and 40000000: the low words are the same
    assert peer.requests[-1] == bytes.fromhex("10 0014 0002 04 4000 0000")


def test_everything_is_written_again_after_a_while(peer, closing):
    driver = make(peer.port, outputs=OUTPUTS[1:2], refresh_ms=50)
    closing.append(driver)
    driver.open()
    until = time.monotonic() + 0.35
    while time.monotonic() < until:
        driver.write(np.array([3.0]))
        time.sleep(0.005)
    assert 3 <= len(peer.requests) <= 8
    assert set(peer.requests) == {bytes.fromhex("06 0016 0003")}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (1, "illegal function: the device does not know"),
        (2, r"reading holding 0 of unit 1 at 127.0.0.1:\d+: illegal address: the device has no such place"),
        (3, "illegal value"),
        (4, "device failure"),
        (6, "busy"),
        (11, "the device behind the gateway does not answer: is unit_id right"),
        (77, r"a code that the standard does not have \(exception 77\)"),
    ],
)
def test_a_refusal_is_told_in_words_and_is_no_reason_to_reconnect(peer, closing, code, says):
    driver = make(peer.port, inputs=[{"name": "a", "holding": 0, "type": "uint16"}])
    closing.append(driver)
    driver.open()
    peer.answer = lambda request: bytes([request[0] | 0x80, code])
    values, stamps = np.array([5.0]), np.zeros(1, np.int64)
    with pytest.raises(Refused, match=says):
        driver.read(values, stamps)
    assert (values[0], stamps[0]) == (5.0, 0)
    peer.answer = echo
    wait_for(lambda: driver.read(values, stamps), "a value")
    assert peer.connections == 1


def test_a_refused_write_does_not_hold_up_the_others_and_is_tried_again(peer, closing):
    driver = make(peer.port, outputs=OUTPUTS, refresh_ms=0)
    closing.append(driver)
    driver.open()
    peer.answer = lambda request: bytes([0x90, 4]) if request[0] == 16 else echo(request)
    with pytest.raises(Refused, match=r"writing holding 20-22 of unit 1 .* device failure"):
        driver.write(np.ones(5))
    assert [r[0] for r in peer.requests] == [15, 16, 6]
    peer.answer = echo
    driver.write(np.ones(5))
    assert [r[0] for r in peer.requests[3:]] == [16]


def test_not_a_number_keeps_only_its_own_block_back(peer, closing):
    driver = make(peer.port, outputs=OUTPUTS)
    closing.append(driver)
    driver.open()
    with pytest.raises(ValueError, match="far is not a number: holding 40 keeps its last value"):
        driver.write(np.array([1.0, 1.0, np.nan, 1.0, 1.0]))
    assert [r[0] for r in peer.requests] == [15, 16]


@pytest.mark.parametrize(
    "pdu", ["03 02 0001", "03 06 0001 0002 0003", "04 04 0001 0002", "03 04 0001", "03", "06 0000 0001"]
)
def test_an_answer_to_something_else_is_no_value(peer, closing, pdu):
    driver = make(peer.port, inputs=INPUTS[:1], timeout_ms=100)
    closing.append(driver)
    driver.open()
    peer.answer = lambda request: bytes.fromhex(pdu)
    values, stamps = np.array([5.0]), np.zeros(1, np.int64)
    with pytest.raises((Refused, DriverError)):
        driver.read(values, stamps)
    assert (values[0], stamps[0]) == (5.0, 0)


def test_a_silent_device_is_lost_in_time(peer, closing):
    driver = make(peer.port, inputs=INPUTS[:1], timeout_ms=80, unit_id=9)
    closing.append(driver)
    driver.open()
    peer.answer = lambda request: None
    began = time.monotonic()
    with pytest.raises(DriverError, match=r"reading holding 0-1: no usable answer from unit 9 at .* within 80 ms"):
        driver.read(np.zeros(1), np.zeros(1, np.int64))
    assert 0.07 < time.monotonic() - began < 1.0


def test_a_late_answer_is_never_taken_for_the_next(peer, closing):
    """The first answer comes after the timeout; after reconnecting only fresh answers count."""
    driver = make(peer.port, inputs=[{"name": "a", "holding": 0, "type": "uint16"}], timeout_ms=150)
    closing.append(driver)
    driver.open()
    number = iter(range(1, 100))

    def late(request: bytes) -> bytes:
        time.sleep(0.25)
        return b"\x03" + registers([next(number)])

    peer.answer = late
    values, stamps = np.zeros(1), np.zeros(1, np.int64)
    with pytest.raises(DriverError):
        driver.read(values, stamps)
    peer.answer = lambda request: b"\x03" + registers([1000])
    driver.open()
    time.sleep(0.3)
    wait_for(lambda: driver.read(values, stamps), "a value")
    assert values[0] == 1000.0


def test_mutated_frames_never_do_worse_than_an_error(peer, closing):
    """Bits flipped, bytes lost, added and exchanged: never another exception, never what is no register."""
    dice = random.Random(8)

    def spoil(frame: bytes) -> bytes:
        data = bytearray(frame)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(data) or 1)
            what = dice.randrange(4)
            if what == 0 and data:
                data[at] ^= 1 << dice.randrange(8)
            elif what == 1 and data:
                del data[at:]
            elif what == 2:
                data[at:at] = dice.randbytes(dice.randint(1, 8))
            else:
                data = bytearray(dice.randbytes(dice.randint(0, 40)))
        return bytes(data)

    peer.answer = lambda request: b"\x03" + registers([7, 8, 9])
    peer.wire = spoil
    driver = make(
        peer.port, inputs=[{"name": n, "holding": k, "type": "uint16"} for k, n in enumerate("abc")], timeout_ms=5
    )
    closing.append(driver)
    driver.open()
    values, stamps = np.array([7.0, 8.0, 9.0]), np.zeros(3, np.int64)
    failed = 0
    for _ in range(300):
        try:
            driver.read(values, stamps)
        except Refused:
            failed += 1
        except DriverError:
            failed += 1
            driver.open()
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 65535)).all()
    assert failed > 100


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"connect": "no-such-host.invalid"}, "cannot connect to no-such-host.invalid:502: no such host"),
        ({"connect": "127.0.0.1:PORT"}, "the host is there, but no Modbus server listens on port"),
        (
            {"port": "/dev/no-such-port"},
            "cannot open /dev/no-such-port: there is no such port: is the adapter plugged in",
        ),
        ({"port": "/dev/null"}, "cannot open /dev/null: it is no serial port"),
    ],
)
def test_a_device_that_is_not_there_is_one_clear_line(options, says):
    options = {k: v.replace("PORT", str(free_port())) for k, v in options.items()}
    driver = Modbus("plc", {**options, "inputs": INPUTS})
    with pytest.raises(DriverError, match=says) as caught:
        driver.open()
    assert "\n" not in str(caught.value)
    driver.close()


def test_a_host_that_never_answers_is_given_up_in_time():
    """A full queue of a listener drops what asks to connect, as a host that is switched off does."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        fill = [socket.socket() for _ in range(4)]
        for one in fill:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        with pytest.raises(DriverError, match="nobody answers there"):
            make(port, inputs=INPUTS, timeout_ms=100).open()
        assert time.monotonic() - began < 2.0
        for one in fill:
            one.close()


@pytest.mark.parametrize("missing", ["pymodbus", "serial"])
def test_a_missing_library_is_one_clear_line(monkeypatch, missing):
    for name in [n for n in sys.modules if n.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "drivers.modbus.link")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(DriverError, match=rf'^the library {missing} is not installed: pip install "hilnode\[modbus\]"'):
        make(502, inputs=INPUTS).open()


def test_a_close_ends_a_request_under_way(peer, closing):
    driver = make(peer.port, inputs=INPUTS[:1], timeout_ms=30_000)
    driver.open()
    peer.answer = lambda request: None
    failed: list[Exception] = []

    def ask() -> None:
        try:
            driver.read(np.zeros(1), np.zeros(1, np.int64))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    wait_for(lambda: peer.requests, "the request")
    driver.close()
    driver.close()
    thread.join(5)
    assert not thread.is_alive()
    assert isinstance(failed[0], DriverError)
    with pytest.raises(DriverError, match="not open"):
        driver.write(np.zeros(0))


def test_reader_and_writer_share_the_line(peer, closing):
    """Two threads at full speed: every answer reaches the one who asked."""
    peer.answer = lambda request: b"\x03" + registers([request[2]] * 1) if request[0] == 3 else echo(request)
    inputs = [{"name": f"i{k}", "holding": 2 * k, "type": "uint16"} for k in range(5)]
    driver = make(peer.port, inputs=inputs, outputs=OUTPUTS[1:2])
    closing.append(driver)
    driver.open()
    ending = threading.Event()

    def write() -> None:
        k = 0.0
        while not ending.is_set():
            driver.write(np.array([k := k + 1]))

    writer = threading.Thread(target=write)
    writer.start()
    values, stamps = np.zeros(5), np.zeros(5, np.int64)
    try:
        for _ in range(200):
            driver.read(values, stamps)
    finally:
        ending.set()
        writer.join(5)
    assert values.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert sum(r[0] == 6 for r in peer.requests) > 20


@pytest.fixture
def running(name) -> Iterator[object]:
    """A driver in its runner, with its health."""
    made: list[tuple[Runner, Mailbox]] = []

    def one(driver: Modbus) -> tuple[Runner, Mailbox]:
        inbox = Mailbox.create(f"{name}.{len(made)}", channels=len(driver.inputs))
        runner = Runner(
            driver,
            inbox=inbox,
            outbox=None,
            used=np.array([], np.int64),
            safe=np.array([s.safe for s in driver.outputs]),
            health=np.zeros(HEALTH_WORDS, np.int64),
            live=lambda: False,
            period=0.005,
        )
        made.append((runner, inbox))
        runner.start()
        return runner, inbox

    yield one
    for runner, inbox in made:
        assert runner.stop(time.monotonic() + 5)
        inbox.close()


def test_a_plc_that_restarts_is_found_again_and_written_to(running):
    port = free_port()
    options = {"inputs": INPUTS[1:2], "outputs": [{**OUTPUTS[2], "safe": 55.0}]}
    runner, inbox = running(make(port, **options))
    state = lambda: Health(int(runner.health[H.STATE]))  # noqa: E731
    wait_for(lambda: state() == Health.DOWN and "no Modbus server listens" in runner.trouble, "a complaint")
    for round_ in (1, 2):
        with foreign_server(port) as (_, bank):
            bank.set_holding_registers(2, [100 * round_])
            wait_for(lambda: state() == Health.UP, "the driver to be up")
            wait_for(lambda n=round_: inbox.take()[1][0] == float(n), "its value")
            wait_for(lambda b=bank: b.get_holding_registers(40, 1) == [55], "the safe value")
        wait_for(lambda: state() == Health.DOWN, "the driver to be down")
    assert runner.health[H.RECONNECTS] >= 1


def test_a_device_that_refuses_is_degraded_not_down(running, peer):
    peer.answer = lambda request: bytes([request[0] | 0x80, 2])
    runner, _ = running(make(peer.port, inputs=INPUTS[:1]))
    wait_for(lambda: runner.health[H.ERRORS] >= 3, "three refusals")
    assert runner.health[H.STATE] == Health.DEGRADED
    assert runner.trouble.startswith("Refused: reading holding 0-1 of unit 1 at 127.0.0.1")
    assert peer.connections == 1


def test_one_block_that_is_refused_degrades_for_as_long_as_it_is(running, peer):
    """Others come all the while: the health does not swing with each of them."""
    refused = lambda request: request[0] == 1  # noqa: E731 - the coils
    peer.answer = lambda request: bytes([0x81, 2]) if refused(request) else echo(request)
    runner, _ = running(make(peer.port, inputs=[INPUTS[1], INPUTS[5]]))
    wait_for(lambda: runner.health[H.STATE] == Health.DEGRADED, "the driver to be degraded")
    frames, errors, seen = int(runner.health[H.FRAMES]), int(runner.health[H.ERRORS]), set()
    while runner.health[H.FRAMES] < frames + 20 or runner.health[H.ERRORS] < errors + 5:
        seen.add(Health(int(runner.health[H.STATE])))
    assert seen == {Health.DEGRADED}
    assert "reading coil 5" in runner.trouble
    refused = lambda request: False  # noqa: E731
    wait_for(lambda: runner.health[H.STATE] == Health.UP, "the driver to be up")


def test_the_watchdogs_copy_writes_beside_the_nodes_and_again_after_a_restart(foreign, closing):
    port, bank = foreign
    node, dog = make(port, outputs=OUTPUTS), make(port, outputs=OUTPUTS)
    closing += [node, dog]
    node.open()
    node.write(np.full(5, 1.0))
    dog.prepare_safe()
    dog.write_safe(np.array([0.0, 9.0, 9.0, 0.0, 1.0]))
    assert bank.get_holding_registers(22, 1) == [9]
    assert bank.get_coils(20, 2) == [False, True]
    bank.set_holding_registers(22, [1])
    dog.write_safe(np.array([0.0, 9.0, 9.0, 0.0, 1.0]))  # although nothing has changed for this copy
    assert bank.get_holding_registers(22, 1) == [9]


def test_the_watchdog_connects_again_when_its_old_connection_is_dead(peer, closing):
    dog = make(peer.port, outputs=OUTPUTS[1:2])
    closing.append(dog)
    dog.write_safe(np.array([1.0]))
    peer.hang_up()
    dog.write_safe(np.array([2.0]))
    assert peer.requests[-1] == bytes.fromhex("06 0016 0002")
    assert peer.connections == 2


NODE = """
plant.kind = "trouble_plant:create"
safety.bumpless_ms = 0
log.timing = false
[drivers.plc]
kind = "modbus"
connect = "127.0.0.1:{port}"
period_ms = 10.0
outputs = [{{ name = "count", holding = 7, type = "uint16", safe = 60000.0 }}]
[signals.outputs."plc.count"]
from = "trouble.count"
"""


def test_a_killed_node_leaves_safe_registers(foreign, tmp_path, name):
    port, bank = foreign
    read = lambda: bank.get_holding_registers(7, 1)[0]  # noqa: E731
    with remote_node(tmp_path, name, NODE.format(port=port)) as node:
        wait_for(lambda: read() == 60000, "the safe value before the start")
        node.ask("arm")
        node.ask("run")
        wait_for(lambda: 0 < read() < 60000, "a live value")
        node.process.kill()
        wait_for(lambda: not is_alive(node.pid), "the node's end")
        wait_for(lambda: read() == 60000, "the watchdog's safe value")
