"""Subscribers as the publisher sees them: what each has lost, how much may wait for one, and when it is cut off."""

import socket as sockets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq

from bridge.audience import HIGH_WATER, MOST_BYTES, Audience
from bridge.doorman import Doorman
from bridge.endpoints import bound
from bridge.keys import Keyring, Pair, read_client_key
from bridge.link import identify
from bridge.requests import Role


class Hall:
    """An audience on a port of its own, with or without keys."""

    def __init__(self, keyring: Keyring | None = None) -> None:
        self.refusals: list[tuple[str, str, str]] = []
        self._context = zmq.Context()
        self.doorman = doorman = Doorman(self._context, keyring) if keyring else None
        socket = bound(self._context, keyring, zmq.XPUB, "publish", "tcp://127.0.0.1:*")
        self.endpoint = socket.getsockopt(zmq.LAST_ENDPOINT).decode()
        self.audience = Audience(
            socket,
            keyed=keyring is not None,
            is_welcome=lambda user: doorman is None or doorman.guest(user) is not None,
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
        before = len(self.audience._listeners)
        self.until(lambda: len(self.audience._listeners) > before, "the subscription")
        return socket

    def until(self, look: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
        end = time.monotonic() + seconds
        while not look():
            assert time.monotonic() < end, what
            self.audience.look()
            time.sleep(0.01)

    def close(self) -> None:
        for socket in self._clients:
            socket.close(0)
        self.audience.close()
        if self.doorman:
            self.doorman.close()
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


def test_what_a_stalled_subscriber_loses_is_counted_and_the_other_loses_nothing(hall):
    """The count is that of the subscriber itself, by the numbers in the messages."""
    stalled = hall.subscriber("raw", RCVHWM=100, RCVBUF=10_000)
    name = next(iter(hall.audience._listeners.values())).name
    reader = hall.subscriber("raw", RCVHWM=0)
    other = hall.subscriber("state", RCVHWM=0)
    total, got = HIGH_WATER + 12_000, 0
    for number in range(total):
        hall.audience.send([b"raw", number.to_bytes(4, "little") + bytes(1000)])
        if number % 500 == 0:
            hall.audience.send([b"state", b"x"])
            hall.audience.look()
            while got < number:
                reader.recv_multipart()
                got += 1
    assert got + len(drain(reader)) == total
    hall.audience.look()
    counted = hall.audience.dropped()
    arrived = [int.from_bytes(body[:4], "little") for body in drain(stalled)]
    assert arrived == sorted(arrived)
    missing = total - len(arrived)
    assert missing > 1000
    assert counted == {name: missing}, "while it stalls"
    hall.until(lambda: next(iter(hall.audience._listeners.values())).full is None, "it is idle again")
    assert hall.audience.dropped() == {name: missing}, "and afterwards"
    assert len(drain(other)) == total // 500
    stalled.close(0)
    hall.until(lambda: name not in [a.name for a in hall.audience._listeners.values()], "it has left")
    assert hall.audience.dropped() == {name: missing}, "what it lost is still told"


def test_one_for_whom_zeromq_has_not_come_round_yet_is_not_idle(hall, monkeypatch):
    """Its messages wait in ZeroMQ, and the kernel has nothing for it: who loses is known all the same."""
    hall.subscriber("raw", RCVHWM=100, RCVBUF=10_000)
    name = next(iter(hall.audience._listeners.values())).name
    with monkeypatch.context() as patch:
        patch.setattr("bridge.audience._queued", lambda _handle: 0)
        for number in range(HIGH_WATER):
            hall.audience.send([b"raw", bytes(1000)])
            if number % 500 == 499:
                hall.audience.look()
    for _ in range(2000):
        hall.audience.send([b"raw", bytes(1000)])
    hall.audience.look()
    assert list(hall.audience.dropped()) == [name]


def test_a_number_that_is_no_connection_any_more_is_not_taken_for_one(hall):
    """A subscriber that was closed before it was heard: its number may belong to another kind of socket by then."""
    with sockets.socket(sockets.AF_NETLINK, sockets.SOCK_RAW) as other:
        assert hall.audience.connections.know(other.fileno()) is None
        assert other.fileno() not in hall.audience.connections.open


def test_one_that_is_always_too_slow_is_counted_on_the_way_and_exactly_when_it_has_caught_up(hall):
    """It takes a third of what is sent, so its queue is full again and again."""
    slow = hall.subscriber("raw", RCVHWM=100, RCVBUF=10_000)
    got, total = 0, 60_000
    for number in range(total):
        hall.audience.send([b"raw", bytes(2000)])
        if number % 3 == 0 and slow.poll(0):
            slow.recv_multipart()
            got += 1
        if number % 500 == 0:
            hall.audience.look()
    hall.audience.look()
    (on_the_way,) = hall.audience.dropped().values()
    got += len(drain(slow))
    hall.until(lambda: next(iter(hall.audience._listeners.values())).full is None, "it is idle again")
    (counted,) = hall.audience.dropped().values()
    assert counted == total - got
    assert counted > 10_000
    assert on_the_way == pytest.approx(counted, rel=0.25)


def test_nobody_who_reads_is_said_to_lose(hall):
    readers = [hall.subscriber("raw", RCVHWM=0) for _ in range(3)]
    for number in range(3 * HIGH_WATER):
        hall.audience.send([b"raw", bytes(100)])
        if number % 200 == 0:
            for reader in readers:
                while reader.poll(0):
                    reader.recv_multipart()
            hall.audience.look()
    assert hall.audience.dropped() == {}


def test_large_messages_of_a_stalled_subscriber_do_not_fill_the_memory(hall):
    """A few thousand messages of half a megabyte are far below the bound on messages."""
    hall.subscriber("terrain", RCVHWM=1)
    reader = hall.subscriber("terrain", RCVHWM=0)
    process, most, body = psutil.Process(), 0, bytes(500_000)
    before = process.memory_info().rss
    for _ in range(600):
        hall.audience.send([b"terrain", bytes(body)])
        hall.audience.look()
        assert reader.poll(2000)
        assert len(reader.recv_multipart()[1]) == len(body)
        most = max(most, process.memory_info().rss - before)
    assert most < 2.5 * MOST_BYTES  # both ends are in this process
    assert any(reason == "refused" and "MB waited" in why for reason, _, why in hall.refusals)


def test_a_message_larger_than_the_bound_cuts_nobody_off(hall):
    reader = hall.subscriber("scene", RCVHWM=0)
    for _ in range(3):
        hall.audience.send([b"scene", bytes(2 * MOST_BYTES)])
        hall.audience.look()
        hall.until(lambda: bool(reader.poll(0)), "the scene")
        assert len(reader.recv_multipart()[1]) == 2 * MOST_BYTES
    assert hall.refusals == []


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


class TestKeys:
    @pytest.fixture
    def keyring(self, tmp_path) -> Keyring:
        return Keyring(tmp_path / "keys")

    def test_a_subscription_ends_with_its_key_and_the_others_go_on(self, keyring):
        anna, bob = keyring.admit("anna", Role.WATCH), keyring.admit("bob", Role.WATCH)
        hall = Hall(keyring)
        first, second = hall.subscriber("raw", anna), hall.subscriber("raw", bob)
        hall.audience.send([b"raw", b"before"])
        assert first.recv_multipart()[1] == second.recv_multipart()[1] == b"before"
        keyring.revoke("anna")
        hall.until(lambda: len(hall.audience._listeners) == 1, "the subscription ends", 3.0)
        for _ in range(50):  # she tries again meanwhile
            hall.audience.send([b"raw", b"after"])
            hall.audience.look()
            time.sleep(0.01)
        assert drain(first) == []
        assert drain(second) == [b"after"] * 50
        assert any(reason == "unauthorised" and who.startswith("anna@") for reason, who, _ in hall.refusals)
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
