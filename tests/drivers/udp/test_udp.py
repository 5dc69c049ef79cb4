"""udp: packed numbers or MessagePack both ways; a wrong frame is an error and never a value."""

import math
import socket
import struct
import time

import msgpack
import numpy as np
import pytest
from support import wait_for

from drivers.base import DriverError, OptionError
from drivers.udp.driver import Udp

TYPES = {
    "float64": "d",
    "float32": "f",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
}


@pytest.fixture
def peer():
    """The far end: a bound socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(5)
        yield made


def address(of: socket.socket) -> str:
    return "{}:{}".format(*of.getsockname())


def free_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return address(probe)


@pytest.fixture
def listener():
    """Makes open drivers that listen, and closes them."""
    made: list[Udp] = []

    def one(inputs: list[object], **options: object) -> Udp:
        made.append(Udp("io", {"listen": free_address(), "inputs": inputs, **options}))
        made[-1].open()
        return made[-1]

    yield one
    for driver in made:
        driver.close()


def send(data: bytes, to: Udp, peer: socket.socket) -> None:
    host, _, port = str(to.options["listen"]).rpartition(":")
    peer.sendto(data, (host, int(port)))


def receive(driver: Udp) -> tuple[bool, list[float], list[int]]:
    """What one read gives; waits for a datagram."""
    values = np.full(len(driver.inputs), -99.0)
    stamps = np.zeros(len(driver.inputs), np.int64)
    got = wait_for(lambda: driver.read(values, stamps), "a datagram", 5.0)
    return got, values.tolist(), stamps.tolist()


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("type_", TYPES)
def test_numbers_come_in_as_they_were_packed(listener, peer, type_, order):
    driver = listener(["a", "b", "c"], type=type_, order=order)
    top = {"int8": -128, "uint8": 255, "int16": 300, "int32": 300}.get(type_, 40_000)
    sent = [0, 1, top] if "int" in type_ else [0.0, -1.5, 2.0**-3]
    before = time.monotonic_ns()
    send(struct.pack("<>"[order == "big"] + "3" + TYPES[type_], *sent), driver, peer)
    got, values, stamps = receive(driver)
    assert got
    assert values == [float(x) for x in sent]
    assert all(before <= s <= time.monotonic_ns() for s in stamps)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("type_", TYPES)
def test_numbers_go_out_packed(peer, type_, order):
    driver = Udp("io", {"send": address(peer), "outputs": ["a", "b"], "type": type_, "order": order})
    driver.open()
    driver.write(np.array([3.0, 100.0]))
    assert peer.recv(100) == struct.pack(
        "<>"[order == "big"] + "2" + TYPES[type_], *([3, 100] if "int" in type_ else [3.0, 100.0])
    )
    driver.close()


def test_a_read_without_a_datagram_returns_soon(listener):
    driver = listener(["a"])
    began = time.monotonic()
    assert driver.read(np.zeros(1), np.zeros(1, np.int64)) is False
    assert time.monotonic() - began < 2.0


MIXED = [{"name": "a", "type": "uint8"}, {"name": "b", "unit": "m"}, {"name": "c", "type": "int16"}]


def test_each_channel_may_have_a_type_of_its_own(listener, peer):
    """A C struct without padding."""
    driver = listener(MIXED, type="float32", order="big")
    send(struct.pack(">Bfh", 200, 0.5, -7), driver, peer)
    assert receive(driver)[1] == [200.0, 0.5, -7.0]
    out = Udp("io", {"send": address(peer), "outputs": MIXED, "type": "float32", "order": "big"})
    out.open()
    out.write(np.array([300.0, 0.25, -1e9]))
    assert peer.recv(100) == struct.pack(">Bfh", 255, 0.25, -32768)
    out.close()


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ([1.5, 2, True], [1.5, 2.0, 1.0]),
        ({"c": 7.0, "a": -1}, [-1.0, -99.0, 7.0]),
        ({"b": math.inf}, [-99.0, math.inf, -99.0]),
    ],
)
def test_messagepack_comes_in_as_a_list_or_by_name(listener, peer, message, values):
    """What a map does not name keeps its value and its age."""
    driver = listener(["a", "b", "c"], format="msgpack")
    send(msgpack.packb(message), driver, peer)
    _, got, stamps = receive(driver)
    assert got == values
    assert [bool(s) for s in stamps] == [v != -99.0 for v in values]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not MessagePack"),
        (b"\xc1", "not MessagePack"),
        (b"\x92\x01", "not MessagePack"),
        (b"\x91" * 5000, "not MessagePack"),
        (msgpack.packb([1, 2]) + b"\x00", "not MessagePack"),
        (msgpack.packb([1, 2, 3]), "a list of 3, expected 2"),
        (msgpack.packb({}), "a map or a list with numbers"),
        (msgpack.packb(7), "a map or a list with numbers"),
        (msgpack.packb({"x": 1.0}), "no channel 'x', there is a, b"),
        (msgpack.packb({"a": 1.0, "b": "2"}), "b is str, not a number"),
        (msgpack.packb([1.0, None]), "b is NoneType, not a number"),
    ],
)
def test_other_messagepack_is_an_error_and_no_value(listener, peer, data, says):
    driver = listener(["a", "b"], format="msgpack")
    values, stamps = np.array([7.0, 8.0]), np.zeros(2, np.int64)
    send(data, driver, peer)
    with pytest.raises(ValueError, match=says):
        wait_for(lambda: driver.read(values, stamps), "a complaint", 5.0)
    assert values.tolist() == [7.0, 8.0]
    assert stamps.tolist() == [0, 0]


def test_messagepack_goes_out_as_a_map_of_floats(peer):
    driver = Udp("io", {"send": address(peer), "outputs": ["a", "b"], "format": "msgpack"})
    driver.open()
    driver.write(np.array([3.0, -0.5]))
    assert peer.recv(100).hex() == "82a161cb4008000000000000a162cbbfe0000000000000"
    driver.close()


@pytest.mark.parametrize("size", [0, 1, 15, 17, 8, 24, 1400])
def test_a_datagram_of_another_length_is_an_error_and_no_value(listener, peer, size):
    driver = listener(["a", "b"])  # 16 bytes
    values, stamps = np.array([7.0, 8.0]), np.zeros(2, np.int64)
    send(bytes(size), driver, peer)
    with pytest.raises(ValueError, match=f"{size} bytes, expected 16"):
        wait_for(lambda: driver.read(values, stamps), "a complaint", 5.0)
    assert values.tolist() == [7.0, 8.0]
    send(struct.pack("<2d", 1.0, 2.0), driver, peer)
    assert receive(driver)[1] == [1.0, 2.0]  # the next good one is taken


def test_values_that_are_no_numbers_are_passed_on(listener, peer):
    """Whether a NaN is acceptable is the tick's decision, which flags it; the driver only translates."""
    driver = listener(["a", "b"])
    send(struct.pack("<2d", math.nan, math.inf), driver, peer)
    values = receive(driver)[1]
    assert math.isnan(values[0])
    assert values[1] == math.inf


@pytest.mark.parametrize(
    ("type_", "given", "goes_out"),
    [
        ("int16", [1e9, -1e9, 32767.4, -32768.4], [32767, -32768, 32767, -32768]),
        ("uint16", [1e9, -5.0, 65535.2, 0.4], [65535, 0, 65535, 0]),
        ("int32", [1e300, -1e300, 2147483647.0, 1.6], [2**31 - 1, -(2**31), 2**31 - 1, 2]),
        ("uint32", [1e300, -1e-9, 4294967295.0, 2.5], [2**32 - 1, 0, 2**32 - 1, 2]),
    ],
)
def test_whole_numbers_saturate_and_are_rounded(peer, type_, given, goes_out):
    driver = Udp("io", {"send": address(peer), "outputs": list("abcd"), "type": type_})
    driver.open()
    driver.write(np.array(given))
    assert list(struct.unpack("<4" + TYPES[type_], peer.recv(100))) == goes_out
    driver.close()


@pytest.mark.parametrize("value", [1e39, -1e300])
def test_a_float32_saturates_too(peer, value):
    driver = Udp("io", {"send": address(peer), "outputs": ["a", "b"], "type": "float32"})
    driver.open()
    try:
        driver.write(np.array([value, 1.0]))
        first, second = struct.unpack("<2f", peer.recv(100))
    finally:
        driver.close()
    assert abs(first) >= 3.4e38
    assert second == 1.0


def test_a_taken_port_is_one_clear_line(peer):
    driver = Udp("io", {"listen": address(peer), "inputs": ["a"]})
    with pytest.raises(DriverError) as caught:
        driver.open()
    said = str(caught.value)
    assert said == f"cannot listen on {address(peer)}: the port is taken by another program (ss -ulpn shows which)"
    driver.close()
    driver.close()


def test_an_address_of_another_machine_is_one_clear_line():
    driver = Udp("io", {"listen": "192.0.2.1:5000", "inputs": ["a"]})
    with pytest.raises(DriverError, match=r"192\.0\.2\.1:5000: this machine has no such address"):
        driver.open()


def test_nobody_at_the_other_end_is_no_failure():
    """A controller may be switched on later: a refused datagram must not take the driver down."""
    driver = Udp("io", {"send": free_address(), "outputs": ["a"]})
    driver.open()
    for _ in range(20):
        driver.write(np.zeros(1))
    driver.close()


def test_a_closed_driver_says_so_and_opens_again(peer):
    driver = Udp("io", {"listen": free_address(), "send": address(peer), "inputs": ["x"], "outputs": ["a"]})
    with pytest.raises(DriverError, match="not open"):
        driver.read(np.zeros(1), np.zeros(1, np.int64))
    with pytest.raises(DriverError, match="not open"):
        driver.write(np.zeros(1))
    for _ in range(2):
        driver.open()
        driver.write(np.ones(1))
        assert peer.recv(100) == struct.pack("<d", 1.0)
        driver.close()


def test_the_watchdog_can_send_while_the_node_listens(peer):
    """Its copy of the driver must not want the port that the node's has."""
    options = {"listen": free_address(), "send": address(peer), "inputs": ["x"], "outputs": ["a"]}
    node, watchdog = Udp("io", options), Udp("io", options)
    node.open()
    watchdog.prepare_safe()
    watchdog.write_safe(np.array([5.0]))
    assert peer.recv(100) == struct.pack("<d", 5.0)
    node.close()
    watchdog.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"inputs": ["a"]}, "drivers.io.listen = None: must be host:port"),
        ({"outputs": ["a"]}, "drivers.io.send = None: must be host:port"),
        ({"inputs": ["a"], "listen": "127.0.0.1"}, "host:port"),
        ({"inputs": ["a"], "listen": ":5000"}, "host:port"),
        ({"inputs": ["a"], "listen": "127.0.0.1:0"}, "host:port"),
        ({"inputs": ["a"], "listen": "127.0.0.1:65536"}, "host:port"),
        ({"inputs": ["a"], "listen": 5000}, "5000"),
        ({"type": "int24"}, "one of float64, float32, int8, int16"),
        (
            {"inputs": [{"name": "a", "type": "bit"}], "listen": "127.0.0.1:5000"},
            "io.inputs: type = 'bit': must be one of",
        ),
        ({"format": "xml"}, "drivers.io.format = 'xml': must be one of numbers, msgpack"),
        ({"format": "msgpack", "type": "int16"}, "bring type and order along; leave them out"),
        ({"format": "msgpack", "outputs": [{"name": "a", "type": "int16"}]}, "leave them out"),
        ({"order": "middle"}, "one of little, big"),
        ({"baud": 9600}, "drivers.io.baud is no option"),
        ({"inputs": "a"}, "must be a list"),
        ({"inputs": [1]}, "neither a name nor a table"),
        ({"inputs": ["Not A Name"]}, "Not A Name"),
        ({"inputs": [{"name": "a", "colour": 1}]}, "colour"),
        ({"outputs": [{"name": "a", "high": -1.0}]}, "outside|finite"),
    ],
)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        Udp("io", options)


def test_two_channels_of_one_name_are_refused():
    with pytest.raises(OptionError, match="'a'"):
        Udp("io", {"inputs": ["a", "a"], "listen": "127.0.0.1:5000"})


# -- names of hosts ---------------------------------------------------------------------------------------------------


def test_a_name_is_looked_up_when_it_is_opened_and_never_again(peer, monkeypatch):
    looked_up: list[object] = []
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: (looked_up.append(a), real(*a, **k))[1])
    driver = Udp("io", {"send": f"localhost:{peer.getsockname()[1]}", "outputs": ["a"]})
    driver.open()
    for _ in range(5):
        driver.write(np.ones(1))
        assert peer.recv(100) == struct.pack("<d", 1.0)
    assert driver._to == ("127.0.0.1", peer.getsockname()[1])
    assert len(looked_up) == 1
    driver.close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300])
def test_a_name_that_nobody_knows_is_one_clear_line(host):
    for options in ({"send": f"{host}:5000", "outputs": ["a"]}, {"listen": f"{host}:5000", "inputs": ["a"]}):
        driver = Udp("io", options)
        with pytest.raises(DriverError, match=f"{host}:5000: no such host .getent ahostsv4 {host} must know it"):
            driver.open()
        driver.close()


def test_not_a_number_in_a_whole_one_is_not_sent(peer):
    driver = Udp("io", {"send": address(peer), "outputs": ["a"], "type": "int16"})
    driver.open()
    with pytest.raises(ValueError, match="nan cannot be sent as a whole number: nothing is sent"):
        driver.write(np.array([np.nan]))
    driver.close()
