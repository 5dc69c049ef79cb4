"""Subscribers as the publisher sees them: what did not fit, how much may wait for one, and when one is cut off."""

import os
import socket as sockets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq
from support import wait_for

from bridge.client.link import identify
from bridge.protocol.endpoints import HIGH_WATER, bound
from bridge.protocol.keys import Keyring, Pair, read_client_key
from bridge.protocol.operations import Role
from bridge.protocol.zap_authenticator import ZapAuthenticator
from bridge.publish.subscribers import Subscribers


class Hall:
    """Subscribers at a port of its own, with or without keys."""

    def __init__(self, keyring: Keyring | None = None) -> None:
        self.refusals: list[tuple[str, str, str]] = []
        self._context = zmq.Context()
        self.authenticator = authenticator = ZapAuthenticator(self._context, keyring) if keyring else None
        socket = bound(self._context, keyring, zmq.XPUB, "publish", "tcp://127.0.0.1:*")
        self.endpoint = socket.getsockopt(zmq.LAST_ENDPOINT).decode()
        self.subscribers = Subscribers(
            socket,
            keyed=keyring is not None,
            is_welcome=lambda user: authenticator is None or authenticator.guest(user) is not None,
            refused=lambda *told: self.refusals.append(told),
        )
        self._clients: list[zmq.Socket[bytes]] = []

    def subscriber(self, topic: str, key: Path | None = None, **options: Any) -> zmq.Socket[bytes]:
        """One that is there: the subscription has arrived."""
        socket = identify(self._context.socket(zmq.SUB), read_client_key(key) if key else None)
        self._clients.append(socket)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        socket.subscribe(topic)
        socket.connect(self.endpoint)
        self.until(lambda: self.gets(socket, topic.encode()), "the subscription")
        drain(socket, 50)
        for other in self._clients:
            drain(other, 10)
        return socket

    def gets(self, socket: zmq.Socket[bytes], topic: bytes = b"raw") -> bool:
        """Whether a message that is sent now reaches it."""
        self.subscribers.send([topic, b"probe"])
        return bool(socket.poll(20)) and bool(socket.recv_multipart())

    def look(self) -> int:
        """Connections that are open."""
        self.subscribers.look()
        return self.subscribers.connections.count

    def until(self, look: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
        end = time.monotonic() + seconds
        while not look():
            assert time.monotonic() < end, what
            self.subscribers.look()
            time.sleep(0.01)

    def close(self) -> None:
        for socket in self._clients:
            socket.close(0)
        self.subscribers.close()
        if self.authenticator:
            self.authenticator.close()
        self._context.destroy(0)


@pytest.fixture
def hall() -> Iterator[Hall]:
    made = Hall()
    yield made
    made.close()


def drain(socket: zmq.Socket[bytes], wait_ms: int = 500) -> list[bytes]:
    got = []
    while socket.poll(wait_ms):
        got.append(socket.recv_multipart()[1])
    return got


def tcp_of_ours() -> list[Any]:
    """The TCP sockets of this process, with their descriptors."""
    return psutil.Process().net_connections("tcp")


def takes(thief: sockets.socket, endpoint: str) -> bool:
    """Whether it could have the port."""
    try:
        thief.bind(("127.0.0.1", int(endpoint.rpartition(":")[2])))
    except OSError:
        return False
    thief.listen()
    return True


def test_a_stalled_subscriber_is_seen_to_overflow_and_the_others_lose_nothing(hall):
    stalled = hall.subscriber("raw", RCVHWM=100, RCVBUF=10_000)
    reader = hall.subscriber("raw", RCVHWM=0)
    other = hall.subscriber("state", RCVHWM=0)
    total, got = HIGH_WATER + 12_000, 0
    for number in range(total):
        hall.subscribers.send([b"raw", number.to_bytes(4, "little") + bytes(1000)])
        if number % 500 == 0:
            hall.subscribers.send([b"state", b"x"])
            hall.subscribers.look()
            while got < number:
                reader.recv_multipart()
                got += 1
    assert got + len(drain(reader)) == total
    arrived = [int.from_bytes(body[:4], "little") for body in drain(stalled)]
    assert arrived == sorted(arrived)
    assert total - len(arrived) > 1000
    assert hall.subscribers.overflows == 1
    assert len(drain(other)) == total // 500


def test_nobody_who_reads_is_said_to_lose(hall):
    readers = [hall.subscriber("raw", RCVHWM=0) for _ in range(3)]
    for number in range(3 * HIGH_WATER):
        hall.subscribers.send([b"raw", bytes(100)])
        if number % 200 == 0:
            for reader in readers:
                while reader.poll(0):
                    reader.recv_multipart()
            hall.subscribers.look()
    assert hall.subscribers.overflows == 0


def test_a_number_that_is_another_file_by_now_is_left_alone(hall):
    """A subscriber has gone before it was heard, and its descriptor's number belongs to a socket of somebody else."""
    port = int(hall.endpoint.rpartition(":")[2])
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context.socket(zmq.SUB) as hasty:
        hasty.linger = 0
        hasty.subscribe("raw")
        hasty.connect(hall.endpoint)
        number = wait_for(lambda: next((c.fd for c in tcp_of_ours() if c.laddr.port == port and c.raddr), 0), "it")
        time.sleep(0.2)  # until the subscription has come
    context.term()
    wait_for(lambda: number not in [c.fd for c in tcp_of_ours()], "ZeroMQ to close it")
    ours, theirs = sockets.socket(sockets.AF_UNIX), sockets.socket(sockets.AF_UNIX)
    with sockets.socket(sockets.AF_UNIX) as listener, ours, theirs:
        listener.bind("")  # a name of the kernel's own making: bytes that begin with a zero
        listener.listen()
        ours.connect(listener.getsockname())
        far, _ = listener.accept()
        with far:
            os.dup2(ours.fileno(), number)
            hall.subscribers.look()
            hall.subscribers.send([b"raw", b"x"])
            hall.subscribers.look()
            ours.close()
            os.close(number)
            far.settimeout(1.0)
            assert far.recv(1) == b"", "nobody holds the other end of it"


def test_a_report_that_can_not_be_read_ends_nothing(hall, monkeypatch):
    def spoilt(*_: Any) -> dict[str, Any]:
        raise TypeError("argument of type 'int' is not iterable")

    reader = hall.subscriber("raw")
    with monkeypatch.context() as patch:
        patch.setattr("bridge.protocol.connections.recv_monitor_message", spoilt)
        patch.setattr("bridge.publish.subscribers.sender", spoilt)
        patch.setattr(hall.subscribers, "_keyed", True)
        hall.subscriber("raw")
        hall.until(lambda: len(hall.refusals) > 1, "both to be noted")
    assert {reason for reason, _, _ in hall.refusals} == {"malformed"}
    hall.subscribers.send([b"raw", b"on"])
    assert reader.poll(2000)
    assert reader.recv_multipart()[1] == b"on"


def test_one_that_takes_nothing_is_disconnected_alone(monkeypatch):
    monkeypatch.setattr("bridge.protocol.endpoints.STALLED_MS", 500)
    hall = Hall()
    hall.subscriber("terrain", RCVHWM=1)
    reader = hall.subscriber("terrain", RCVHWM=0)
    wait_for(lambda: hall.look() == 2, "both")
    sent = got = 0
    end = time.monotonic() + 20.0
    while hall.look() == 2:
        assert time.monotonic() < end
        hall.subscribers.send([b"terrain", bytes(200_000)])
        sent += 1
        time.sleep(0.02)
        while reader.poll(0):
            reader.recv_multipart()
            got += 1
    assert got + len(drain(reader)) == sent
    assert hall.refusals == []
    hall.close()


def test_large_messages_of_a_slow_subscriber_do_not_fill_the_memory(hall, monkeypatch):
    """A few thousand messages of half a megabyte are far below the bound on messages: then all begin anew."""
    most_bytes = 50_000_000
    monkeypatch.setattr("bridge.publish.subscribers.MOST_BYTES", most_bytes)
    hall.subscriber("terrain", RCVHWM=1)
    reader = hall.subscriber("terrain", RCVHWM=0)
    process, most, body = psutil.Process(), 0, bytes(500_000)
    before = process.memory_info().rss
    for _ in range(600):
        hall.subscribers.send([b"terrain", bytes(body)])
        hall.subscribers.look()
        while reader.poll(2):
            reader.recv_multipart()
        most = max(most, process.memory_info().rss - before)
    assert most < 3 * most_bytes  # both ends are in this process
    assert [(reason, "MB wait" in why) for reason, _, why in hall.refusals] == [("refused", True)]
    hall.until(lambda: hall.gets(reader, b"terrain"), "the reader to be back")


def test_the_endpoint_is_taken_back_when_somebody_else_had_it_for_a_while(hall):
    reader = hall.subscriber("raw")
    with sockets.socket() as thief:
        thief.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        hall.subscribers._socket.unbind(hall.endpoint)
        wait_for(lambda: takes(thief, hall.endpoint), "the port")
        hall.subscribers._bind()
        hall.subscribers.look()
        hall.subscribers.send([b"raw", b"to nobody"])
        assert [reason for reason, _, _ in hall.refusals] == ["refused"]
    hall.until(lambda: hall.gets(reader), "the reader to be back")


def test_an_endpoint_that_can_not_be_unbound_ends_nothing(hall, monkeypatch):
    reader = hall.subscriber("raw")
    monkeypatch.setattr(hall.subscribers, "_endpoint", "tcp://127.0.0.1:1")
    hall.subscribers._bind_anew()
    assert [reason for reason, _, _ in hall.refusals] == ["refused"]
    assert hall.gets(reader)


def test_a_subscriber_that_sends_is_noted(hall):
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context.socket(zmq.XSUB) as socket:
        socket.linger = 0
        socket.connect(hall.endpoint)
        socket.send(b"\x01raw")
        socket.send(b"hello")
        hall.until(lambda: len(hall.refusals) > 0, "the refusal")
    context.term()
    assert hall.refusals[0][0] == "malformed"


def test_a_long_topic_costs_the_connection_alone(hall):
    """ZeroMQ keeps a hundred bytes for each byte of a topic."""
    reader = hall.subscriber("raw")
    wait_for(lambda: hall.look() == 1, "the reader")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    before = psutil.Process().memory_info().rss
    with context.socket(zmq.SUB) as greedy:
        greedy.linger = 0
        greedy.reconnect_ivl = -1
        greedy.connect(hall.endpoint)
        wait_for(lambda: hall.look() == 2, "the other")
        greedy.setsockopt(zmq.SUBSCRIBE, bytes(100_000))
        wait_for(lambda: greedy.poll(1) or hall.look() == 1, "its end")
        assert psutil.Process().memory_info().rss - before < 50_000_000  # its own tree of topics is in this process too
    context.term()
    assert hall.gets(reader)


class TestKeys:
    @pytest.fixture
    def keyring(self, tmp_path) -> Keyring:
        return Keyring(tmp_path / "keys")

    def test_a_subscription_ends_with_its_key_and_the_others_come_back(self, keyring):
        anna, bob = keyring.admit("anna", Role.WATCH), keyring.admit("bob", Role.WATCH)
        hall = Hall(keyring)
        first, second = hall.subscriber("raw", anna), hall.subscriber("raw", bob)
        hall.subscribers.send([b"raw", b"before"])
        assert first.recv_multipart()[1] == second.recv_multipart()[1] == b"before"
        keyring.revoke("anna")
        hall.until(lambda: len(hall.refusals) > 0, "the subscription ends", 3.0)
        assert hall.refusals[0][:2] == ("unauthorised", "anna")
        hall.until(lambda: hall.gets(second), "bob is back", 3.0)
        drain(first), drain(second, 50)
        for _ in range(50):  # she tries again meanwhile
            hall.subscribers.send([b"raw", b"after"])
            hall.subscribers.look()
            time.sleep(0.01)
        assert drain(first) == []
        assert drain(second) == [b"after"] * 50
        assert [who for reason, who, _ in hall.refusals if reason == "unauthorised"] == ["anna"]
        hall.close()

    @pytest.mark.parametrize("wrong", ["no key", "the key of another node"])
    def test_who_does_not_get_past_the_greeting_is_noted(self, keyring, wrong):
        anna = read_client_key(keyring.admit("anna", Role.WATCH))
        hall = Hall(keyring)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        with context.socket(zmq.SUB) as socket:
            if wrong != "no key":
                identify(socket, anna)
                socket.curve_serverkey = Pair.new().public.encode()
            socket.linger = 0
            socket.subscribe("")
            socket.connect(hall.endpoint)
            hall.until(lambda: len(hall.refusals) > 0, "the refusal")
        context.term()
        assert hall.refusals[0][0] == "unauthenticated"
        hall.close()
