"""opcua: the client, against a server in a process of its own; slow: one by node-opcua, which shares no code."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from opcua_peer import TYPES
from support import free_port, wait_for

from drivers.base import DriverError, OptionError
from drivers.opcua.client import Opcua
from drivers.opcua.options import number_for

HERE = Path(__file__).resolve().parent


class Peer:
    """The server's process, and a word with it."""

    def __init__(self, port: int, *more: str) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "opcua_peer.py"), str(port), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __call__(self, words: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self._line()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    made = Peer(free_port())
    yield made
    made.close()


def channel(name: str, node: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name.lower(), "node": node or f"nsu=urn:test:plc;s={name}", **more}


@contextlib.contextmanager
def client(peer: Peer, **options: Any) -> Iterator[Opcua]:
    driver = Opcua("plc", {"connect": f"opc.tcp://127.0.0.1:{peer.port}/plc", "publish_ms": 10, **options})
    driver.open()
    try:
        yield driver
    finally:
        driver.close()


class Reader:
    """Reads a driver's inputs until they are as wanted."""

    def __init__(self, driver: Opcua) -> None:
        self.driver = driver
        self.values = np.full(len(driver.inputs), -99.0)
        self.stamps = np.zeros(len(driver.inputs), np.int64)

    def once(self) -> bool:
        return self.driver.read(self.values, self.stamps)

    def until(self, *wanted: float) -> None:
        def there() -> bool:
            self.once()
            return self.values.tolist() == list(wanted)

        wait_for(there, f"{wanted}, have {self.values}", 20)


def test_values_come_by_subscription(peer: Peer) -> None:
    peer("set Double 1.25")
    peer("set Int16 -5")
    peer("set Boolean 1")
    with client(peer, inputs=[channel("Double"), channel("Int16", "ns=2;s=Int16"), channel("Boolean")]) as driver:
        reader = Reader(driver)
        reader.until(1.25, -5.0, 1.0)
        before = time.monotonic_ns()
        peer("set Double 2.5")
        reader.until(2.5, -5.0, 1.0)
        assert before < reader.stamps[0] <= time.monotonic_ns()
        assert driver.trouble == ""


def test_a_value_that_stays_is_fresh_as_long_as_the_server_lives(peer: Peer) -> None:
    peer("set Double 4.5")
    with client(peer, inputs=[channel("Double")]) as driver:
        reader = Reader(driver)
        reader.until(4.5)
        first = reader.stamps[0]
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            reader.once()
        assert reader.stamps[0] - first > 0.3e9
        assert reader.values[0] == 4.5


def test_source_timestamps(peer: Peer) -> None:
    peer("set Double 8.5")
    time.sleep(0.5)
    with client(peer, inputs=[channel("Double")], stamps="source") as driver:
        reader = Reader(driver)
        reader.until(8.5)
        first = int(reader.stamps[0])
        age = time.monotonic_ns() - first
        assert 0.5e9 < age < 30e9  # as old as the value, not as its arrival
        time.sleep(0.1)
        reader.once()
        assert abs(reader.stamps[0] - first) < 50e6
        peer("set Double 9.5")
        reader.until(9.5)
        assert reader.stamps[0] > first + 0.1e9


def test_a_bad_value_is_not_taken(peer: Peer) -> None:
    peer("set Float 3.5")
    peer("set Double 1.0")
    with client(peer, inputs=[channel("Float"), channel("Double")]) as driver:
        reader = Reader(driver)
        reader.until(3.5, 1.0)
        peer("bad Float")
        wait_for(lambda: reader.once() and driver.trouble, "trouble", 20)
        assert driver.trouble == "float has no good value: BadSensorFailure"
        stamp = reader.stamps[0]
        peer("set Double 2.0")
        reader.until(3.5, 2.0)
        assert reader.stamps[0] == stamp
        peer("set Float 4.5")
        reader.until(4.5, 2.0)
        assert driver.trouble == ""


def test_units_of_the_server_are_converted(peer: Peer) -> None:
    peer("set Length 1500.0")
    peer("set Mass 3.0")
    with client(
        peer,
        inputs=[channel("Length", unit="m"), channel("Mass", unit="s")],
        outputs=[{"name": "out", "unit": "m", "node": "nsu=urn:test:plc;s=Length"}],
    ) as driver:
        reader = Reader(driver)
        reader.until(1.5, 3.0)
        assert "mass: the server's unit is 'kg'" in driver.trouble
        driver.write(np.array([0.25]))
        assert peer("get Length") == "250.0"
        reader.until(0.25, 3.0)
    with client(peer, inputs=[channel("Length", unit="m"), channel("Mass", unit="s")], check_units=False) as driver:
        Reader(driver).until(250.0, 3.0)
        assert driver.trouble == ""


@pytest.mark.parametrize("name", TYPES)
def test_numbers_take_the_type_of_the_variable(peer: Peer, name: str) -> None:
    with client(peer, outputs=[channel(name)]) as driver:
        for value in (1.0, 0.0, -7.6, 300.2, 1e30):
            driver.write(np.array([value]))
            want = float(number_for(value, name))
            assert float(peer(f"get {name}")) == (float(np.float32(want)) if name == "Float" else want)


def test_only_changes_are_written_and_all_of_them_now_and_then(peer: Peer) -> None:
    with client(peer, outputs=[channel("Double"), channel("Int32")], refresh_ms=0) as driver:
        driver.write(np.array([1.0, 2.0]))
        peer("set Double 77.0")
        driver.write(np.array([1.0, 3.0]))
        assert (peer("get Double"), peer("get Int32")) == ("77.0", "3.0")
    with client(peer, outputs=[channel("Double")], refresh_ms=50) as driver:
        driver.write(np.array([1.0]))
        peer("set Double 77.0")
        time.sleep(0.06)
        driver.write(np.array([1.0]))
        assert peer("get Double") == "1.0"


def test_a_refused_write_does_not_hinder_the_others(peer: Peer) -> None:
    with client(peer, outputs=[channel("Fixed"), channel("Double"), channel("Int16")]) as driver:
        with pytest.raises(ValueError, match=r"int16 = nan is .*; fixed \(nsu=.*Fixed\) was refused: BadUserAcc"):
            driver.write(np.array([1.0, 6.5, np.nan]))
        assert peer("get Double") == "6.5"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("ns=2;s=Nowhere", r"has no variable ns=2;s=Nowhere \(x\): BadNodeIdUnknown"),
        ("nsu=urn:nobody;s=Double", "no namespace 'urn:nobody': it has .*urn:test:plc"),
        ("ns=2;s=Text", "is of type String: a channel is one number"),
        ("ns=2;s=List", "is a list: a channel is one number"),
        ("i=85", "has no variable i=85"),
    ],
)
def test_nodes_that_are_no_channels(peer: Peer, node: str, words: str) -> None:
    threads = threading.active_count()
    with pytest.raises(DriverError, match=words), client(peer, inputs=[channel("x", node)]):
        pass
    assert threading.active_count() == threads


def test_a_server_that_is_not_there() -> None:
    driver = Opcua("plc", {"connect": f"127.0.0.1:{free_port()}", "inputs": [channel("Double")]})
    with pytest.raises(DriverError, match="the host is there, but no OPC UA server listens on this port"):
        driver.open()
    with pytest.raises(DriverError, match="not open"):
        driver.read(np.zeros(1), np.zeros(1, np.int64))
    driver.close()
    driver.close()


def test_the_watchdogs_way(peer: Peer) -> None:
    dog = Opcua("plc", {"connect": f"127.0.0.1:{peer.port}/plc", "outputs": [channel("Double")]})
    dog.prepare_safe()
    try:
        dog.write_safe(np.array([-1.0]))
        assert peer("get Double") == "-1.0"
        peer("set Double 5.0")
        dog.write_safe(np.array([-1.0]))
        assert peer("get Double") == "-1.0"
    finally:
        dog.close()


def driver_for(peer: Peer) -> Opcua:
    return Opcua(
        "plc",
        {
            "connect": f"127.0.0.1:{peer.port}/plc",
            "inputs": [channel("Double")],
            "outputs": [channel("Int16")],
            "publish_ms": 10,
            "timeout_ms": 400,
        },
    )


def lose(reader: Reader) -> str:
    """Read until the driver says that the server is gone."""

    def lost() -> str:
        try:
            reader.once()
        except DriverError as error:
            return str(error)
        return ""

    return wait_for(lost, "a loss", 20)


def test_a_server_that_freezes_and_thaws(peer: Peer) -> None:
    peer("set Double 2.0")
    driver = driver_for(peer)
    driver.open()
    try:
        reader = Reader(driver)
        reader.until(2.0)
        peer("freeze")
        began = time.monotonic()
        assert lose(reader).startswith("lost opc.tcp://")
        assert time.monotonic() - began < 10
        with pytest.raises(DriverError):
            driver.write(np.array([3.0]))
        began = time.monotonic()
        driver.close()
        assert time.monotonic() - began < 3
        os.kill(peer.process.pid, signal.SIGCONT)
        wait_for(lambda: opened(driver), "the server after its freeze", 30)
        reader.until(2.0)
    finally:
        os.kill(peer.process.pid, signal.SIGCONT)
        driver.close()


@pytest.mark.slow
def test_a_server_that_dies_and_returns() -> None:
    first = Peer(free_port())
    driver = driver_for(first)
    second = None
    try:
        driver.open()
        reader = Reader(driver)
        reader.until(0.0)
        first.close()
        lose(reader)
        driver.close()
        second = Peer(first.port)
        second("set Double 6.0")
        wait_for(lambda: opened(driver), "the new server", 30)
        reader.until(6.0)
        driver.write(np.array([3.0]))
        assert second("get Int16") == "3.0"
    finally:
        driver.close()
        for each in (first, second):
            if each is not None:
                each.close()


def opened(driver: Opcua) -> bool:
    with contextlib.suppress(DriverError):
        driver.open()
        return True
    return False


# -- certificates and passwords -----------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> None:
    """A key and a certificate that it signed itself, as the standard wants it (Part 6, 6.2.2)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = [x509.UniformResourceIdentifier(f"urn:test:{name}"), x509.DNSName("localhost")]
    usage = x509.KeyUsage(True, True, True, True, False, True, False, False, False)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.der").write_bytes(made.public_bytes(serialization.Encoding.DER))
    (folder / f"{name}.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    for name in ("server", "client", "stranger"):
        certificate(folder, name)
    (folder / "password").write_text("geheim\n")
    (folder / "wrong").write_text("secret\n")
    return folder


def papers_of(folder: Path, **changed: str) -> dict[str, str]:
    files = {
        "certificate": "client.der",
        "private_key": "client.pem",
        "server_certificate": "server.der",
        "password_file": "password",
    } | changed
    return {"user": "anna", **{key: str(folder / name) for key, name in files.items()}}


def test_certificates_and_a_password(papers: Path) -> None:
    peer = Peer(free_port(), str(papers))
    try:
        inputs = [channel("Double")]
        with client(peer, inputs=inputs, outputs=[channel("Int16")], **papers_of(papers)) as driver:
            driver.write(np.array([12.0]))
            assert peer("get Int16") == "12.0"
            peer("set Double 3.0")
            Reader(driver).until(3.0)
        with pytest.raises(DriverError, match=r"cannot connect"), client(peer, inputs=inputs, timeout_ms=1000):
            pass  # neither encrypted nor with a name
        wrong = papers_of(papers, password_file="wrong")
        with pytest.raises(DriverError, match=r"(?i)user|identity|password"), client(peer, inputs=inputs, **wrong):
            pass
        other = papers_of(papers, server_certificate="stranger.der")  # the server cannot be who it should be
        with pytest.raises(DriverError, match="cannot connect"), client(peer, inputs=inputs, timeout_ms=1000, **other):
            pass
        nothing = papers_of(papers, password_file="nowhere")
        with (
            pytest.raises(DriverError, match=r"password_file .*nowhere cannot be read"),
            client(peer, inputs=inputs, **nothing),
        ):
            pass
    finally:
        peer.close()


# -- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "connect = None: must be an address"),
        ({"connect": "http://x"}, "must be an address such as 'opc.tcp://192.168.0.10:4840'"),
        ({"connect": "x:99999"}, "must be an address"),
        ({"connect": "x"}, "needs inputs, outputs or both"),
        ({"connect": "x", "inputs": [{"name": "a"}]}, "inputs: a: node = None: must be the identifier of a node"),
        ({"connect": "x", "inputs": [{"name": "a", "node": "Torque"}]}, "node = 'Torque': must be the identifier"),
        ({"connect": "x", "inputs": [1]}, "must be a list of tables"),
        ({"connect": "x", "inputs": ["a"]}, "must be the identifier of a node"),
        ({"connect": "x", "inputs": [channel("a"), channel("a")]}, "two signals are called 'a'"),
        ({"connect": "x", "inputs": [channel("a")], "stamps": "server"}, "must be one of arrival, source"),
        ({"connect": "x", "inputs": [channel("a")], "certificate": "c"}, "go together"),
        ({"connect": "x", "inputs": [channel("a")], "user": "c"}, "user and password_file go together"),
        ({"connect": "x", "inputs": [channel("a")], "pubish_ms": 1}, "did you mean 'publish_ms'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        Opcua("plc", options)
    assert str(caught.value).startswith("drivers.plc")


def test_addresses() -> None:
    def text(given: str) -> str:
        return str(Opcua("plc", {"connect": given, "inputs": [channel("a")]})._address)

    assert text("plc") == "opc.tcp://plc:4840"
    assert text("10.0.0.1:4841") == "opc.tcp://10.0.0.1:4841"
    assert text("opc.tcp://plc:4841/a/b") == "opc.tcp://plc:4841/a/b"
    assert text("opc.tcp://[::1]:4841") == "opc.tcp://[::1]:4841"


# -- a stranger ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_of_node_opcua() -> None:
    """NODE_PATH names a folder with node-opcua-server and node-opcua-client (npm install)."""
    with stranger("server", port := free_port()) as process:
        assert said(process) == "ready"
        driver = Opcua(
            "plc",
            {
                "connect": f"opc.tcp://127.0.0.1:{port}",
                "inputs": [{"name": "level", "node": "ns=1;s=Level"}],
                "outputs": [{"name": "valve", "node": "ns=1;s=Valve"}],
                "publish_ms": 20,
            },
        )
        driver.open()
        try:
            Reader(driver).until(12.5)
            driver.write(np.array([0.75]))
            assert said(process) == "valve 0.75"
            Reader(driver).until(0.75)  # it shows at Level what it got at Valve
        finally:
            driver.close()


def said(process: subprocess.Popen[str]) -> str:
    """Its next line that is meant for us."""
    assert process.stdout is not None
    return next((line[2:].strip() for line in process.stdout if line.startswith("> ")), "")


@contextlib.contextmanager
def stranger(role: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """node-opcua as a server or a client."""
    node, modules = shutil.which("node"), os.environ.get("NODE_PATH", "")
    if node is None or not (Path(modules) / "node-opcua-server").exists():
        pytest.skip("needs node, and NODE_PATH with node-opcua-server and node-opcua-client in it")
    process = subprocess.Popen(
        [node, str(HERE / "opcua_stranger.js"), role, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
