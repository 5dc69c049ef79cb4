"""The command server by itself: who is let through, what is counted, and that nothing else gets to the node."""

import json
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from mutations import decoded, mutated, packed_pairs

from bridge.client.client import Node
from bridge.protocol.audit import WRITTEN_OUT, Audit
from bridge.protocol.endpoints import HARD_LIMIT
from bridge.protocol.keys import Keyring, Pair, read_client_key
from bridge.protocol.operations import LARGEST, OPERATIONS, REASONS, REQUIRED, VERSION, NodeError, Operation, Role
from bridge.protocol.zap_authenticator import ZapAuthenticator, protect
from bridge.publish.commands import CommandServer
from hilnode.shared.local_rpc import NotAnswered


class Bench:
    """A server whose node only notes what it is asked for."""

    def __init__(self, folder: Path, *, keyring: Keyring | None = None, anybody: Role = Role.ADMIN) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.log = folder / "audit.jsonl"
        self._dealers: list[zmq.Socket[bytes]] = []
        self._context = zmq.Context()
        self.authenticator = ZapAuthenticator(self._context, keyring) if keyring else None
        socket = self._context.socket(zmq.ROUTER)
        socket.setsockopt(zmq.MAXMSGSIZE, HARD_LIMIT)
        if keyring:
            protect(socket, keyring)
        socket.bind("tcp://127.0.0.1:*")
        self.endpoint = socket.getsockopt(zmq.LAST_ENDPOINT).decode()
        authenticator = self.authenticator
        self.server = CommandServer(
            socket,
            ask=self._ask,
            local={"scene": lambda: {"scene": [1]}},
            hello={"publish": "tcp://127.0.0.1:1"},
            tick=lambda: 77,
            audit=Audit(self.log),
            role_of=(lambda who: g.role if (g := authenticator.guest(who)) else None) if authenticator else None,
            anybody=anybody,
        )
        if authenticator:
            authenticator.on_refusal = self.server.note_refusal
        self.server.start()

    def _ask(self, operation: str, given: dict[str, Any]) -> Any:
        if operation == "swap":
            self.hold.wait(10)
        self.asked.append((operation, given))
        if operation == "arm":
            raise NotAnswered("not possible now")
        return 123

    def dealer(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 5000)
        socket.connect(self.endpoint)
        self._dealers.append(socket)
        return socket

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def close(self) -> None:
        self.hold.set()
        for socket in self._dealers:
            socket.close(0)
        self.server.close()
        if self.authenticator:
            self.authenticator.close()
        self._context.destroy(0)


@pytest.fixture
def bench(tmp_path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def until(look, what: str, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_a_request_gets_to_the_node_with_its_fields_and_is_written_down(bench):
    with Node(bench.endpoint) as node:
        assert node.force("a.b", 0.5) == 123
        assert node.release() == 123
        assert node.ask("scene")["scene"] == [1]
    assert bench.asked == [("force", {"name": "a.b", "value": 0.5}), ("release", {})]
    assert [line["asked"] for line in bench.lines()] == [
        {"op": "force", "name": "a.b", "value": 0.5},
        {"op": "release"},
    ]
    assert {line["tick"] for line in bench.lines()} == {77}


def test_the_node_s_own_refusal_reaches_the_client(bench):
    with Node(bench.endpoint) as node, pytest.raises(NodeError, match="not possible now") as refusal:
        node.arm()
    assert refusal.value.reason == "refused"
    assert bench.server.counts.refused["refused"] == 1


def test_a_req_socket_is_answered_too(bench):
    """Who has only the simplest of ZeroMQ's sockets sends an empty frame before the message."""
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.setsockopt(zmq.RCVTIMEO, 5000)
    socket.connect(bench.endpoint)
    socket.send(msgpack.packb({"v": VERSION, "id": 1, "op": "hello"}))
    assert msgpack.unpackb(socket.recv())["ok"] is True
    context.destroy(0)


def request(session: int, seq: Any, op: str = "pause", **fields: Any) -> bytes:
    return msgpack.packb({"v": VERSION, "session": session, "seq": seq, "id": 1, "op": op, **fields})


def greeted(bench: Bench) -> tuple[zmq.Socket[bytes], int]:
    socket = bench.dealer()
    socket.send(request(0, 0, "hello"))
    return socket, msgpack.unpackb(socket.recv())["session"]


def outcome(socket: zmq.Socket[bytes], body: bytes) -> str:
    socket.send(body)
    answer = msgpack.unpackb(socket.recv())
    return "done" if answer["ok"] else answer["reason"]


def test_a_message_that_is_sent_again_has_no_effect(bench):
    socket, session = greeted(bench)
    body = request(session, 5)
    assert outcome(socket, body) == "done"
    assert outcome(socket, body) == "replayed"
    assert outcome(socket, request(session, 4)) == "replayed"
    assert outcome(socket, request(session + 1, 6)) == "replayed"
    other, _ = greeted(bench)
    assert outcome(other, request(session, 6)) == "replayed"  # another client with an overheard session
    assert outcome(socket, request(session, 6)) == "done"
    assert len(bench.asked) == 2
    assert bench.server.counts.refused["replayed"] == 4


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (msgpack.packb([1, 2]), "malformed"),
        (msgpack.packb({1: 2}), "malformed"),
        (b"\x84\xa1v\x01\xa2id\x01\xa2op\xa5hello\xa2op\xa4stop", "malformed"),  # two operations at once
        (msgpack.packb({"v": True, "id": 1, "op": "hello"}), "version"),
        (msgpack.packb({"v": 1, "id": [1], "op": "arm"}), "malformed"),
        (msgpack.packb({"v": 2, "id": 1, "op": "hello"}), "version"),
        (msgpack.packb({"v": 1, "id": 1, "op": "explode"}), "unknown"),
        (msgpack.packb({"v": 1, "id": 1, "op": "force", "name": "a", "value": float("nan")}), "malformed"),
        (msgpack.packb({"v": 1, "id": 1, "op": "arm"}), "replayed"),  # without a session
        (msgpack.packb({"v": 1, "id": 1, "op": "hello", "pad": "x" * LARGEST}), "oversized"),
        (b"\x91" * 60_000, "malformed"),  # nested beyond every bound
    ],
)
def test_what_makes_no_sense_is_refused_and_counted(bench, body, reason):
    assert outcome(bench.dealer(), body) == reason
    assert bench.server.counts.refused[reason] == 1
    assert bench.asked == []
    assert bench.lines()[0]["refused"] == reason


def test_a_message_beyond_the_hard_limit_costs_the_connection_alone(bench):
    greedy, polite = bench.dealer(), greeted(bench)
    greedy.setsockopt(zmq.RCVTIMEO, 300)
    assert outcome(greedy, b"\xc1") == "malformed"  # it is there
    greedy.send(bytes(HARD_LIMIT + 1))
    with pytest.raises(zmq.Again):
        greedy.recv()
    assert outcome(polite[0], request(polite[1], 1)) == "done"
    assert bench.server.counts.refused.total() == 1  # ZeroMQ tells nobody why it closed it


def test_a_client_that_leaves_is_none_that_was_refused(bench):
    for _ in range(20):
        with Node(bench.endpoint) as node:
            node.pause()
    socket = bench.dealer()
    socket.send(b"\xc1")
    socket.close(100)  # without having heard the answer
    time.sleep(0.2)
    assert sum(bench.server.counts.refused.values()) <= 1


@pytest.mark.parametrize("size", [LARGEST + 1, HARD_LIMIT])
def test_a_message_that_is_too_large_is_counted_and_told_so(bench, size):
    assert outcome(bench.dealer(), bytes(size)) == "oversized"
    assert bench.server.counts.refused["oversized"] == 1


def test_several_frames_are_no_request(bench):
    socket = bench.dealer()
    socket.send_multipart([b"a", b"b", b"c"])
    assert msgpack.unpackb(socket.recv())["reason"] == "malformed"


@pytest.mark.parametrize("role", list(Role))
def test_each_may_do_what_its_role_allows(tmp_path, role):
    bench = Bench(tmp_path, anybody=role)
    socket, session = greeted(bench)
    values = {"text": "x", "number": 1.0, "count": 1, "slot": 0, "table": {}, "tables": []}
    for seq, operation in enumerate((o for o in OPERATIONS.values() if o.name not in ("hello", "schema", "rate")), 1):
        fields = {key: values[field.type] for key, field in operation.fields.items()}
        seen = outcome(socket, request(session, seq, operation.name, **fields))
        wanted = "unauthorised" if operation.role > role else "refused" if operation.name == "arm" else "done"
        assert seen == wanted, operation.name
    bench.close()


def test_a_trip_does_not_wait_behind_a_device_that_does_not_let_go(bench):
    bench.hold.clear()
    slow = [greeted(bench) for _ in range(8)]
    for socket, session in slow:
        socket.send(request(session, 1, "swap", driver="rig", to="twin"))
    socket, session = greeted(bench)
    assert outcome(socket, request(session, 1, "trip")) == "done"
    assert [operation for operation, _ in bench.asked] == ["trip"]
    bench.hold.set()
    for socket, _ in slow:
        assert msgpack.unpackb(socket.recv())["ok"] is True


def test_too_many_at_once_are_told_so(bench):
    bench.hold.clear()
    socket, session = greeted(bench)
    for seq in range(1, 71):
        socket.send(request(session, seq, "swap", driver="rig", to="twin"))
    refused = [msgpack.unpackb(socket.recv()) for _ in range(6)]
    assert all(not r["ok"] and "waiting already" in r["error"] for r in refused)


def test_a_flood_of_nonsense_is_counted_and_does_not_fill_the_disk(bench):
    socket = bench.dealer()
    for _ in range(5000):
        socket.send(b"\xc1")
    until(lambda: bench.server.counts.refused["malformed"] == 5000, "all counted")
    time.sleep(1.1)  # the next second sums up
    outcome(bench.dealer(), b"\xc1")  # one whose answers are not all there already
    lines = bench.lines()
    assert len(lines) < 20 * WRITTEN_OUT
    assert sum(line.get("count", 1) for line in lines) == 5001


SAMPLES = {"text": "a.b", "number": 0.5, "count": 2, "slot": 1, "table": {"a.b": 1.0}, "tables": [{"signal": "a.b"}]}


class Judge:
    """What a message says, read by another decoder than the server's and judged by the protocol's own words.

    `effects` counts the requests that a node may have been asked for: operation and fields, to the last bit.
    """

    def __init__(self, session: int) -> None:
        self.effects: Counter[tuple[str, str]] = Counter()
        self.session, self.last, self.greetings = session, 0, 1

    def hear(self, body: bytes) -> None:
        message = decoded(body)
        if not isinstance(message, dict) or not all(self._is("text", key) for key in message):
            return
        given = {k: v for k, v in message.items() if k not in ("v", "session", "seq", "id", "op")}
        operation = OPERATIONS.get(message["op"]) if type(message.get("op")) is str else None
        if type(message.get("v")) is not int or message["v"] != 1:
            return
        if operation is None or not self._is_new(message) or not self._fits(operation, given):
            return
        self.last = message["seq"]
        told = {k: v for k, v in given.items() if v is not None}
        defaults = {k: f.default for k, f in operation.fields.items() if f.default not in (None, REQUIRED)}
        if operation.name not in ("scene", "losses"):  # the server answers these itself
            self.effects[effect(operation.name, defaults | told)] += 1

    def _is_new(self, message: dict[str, Any]) -> bool:
        ident, seq = message.get("id"), message.get("seq")
        good = isinstance(ident, int) or (isinstance(ident, str) and len(ident) <= 64)
        return good and message.get("session") == self.session and type(seq) is int and self.last < seq < 2**63

    def _fits(self, operation: Operation, given: dict[str, Any]) -> bool:
        fields = operation.fields
        needed = {k for k, f in fields.items() if f.default is REQUIRED}
        if not needed <= given.keys() or (given.keys() - fields.keys() and not operation.open):
            return False
        return all(
            self._is(fields[k].type, v) or (v is None and fields[k].default is None)
            if k in fields
            else self._is("number", v)
            for k, v in given.items()
        )

    def _is(self, kind: str, value: Any) -> bool:
        whole = type(value) is int
        number = (whole and abs(value) < 2**63) or (type(value) is float and math.isfinite(value))
        text = type(value) is str and len(value) <= 200
        if kind == "table":
            return type(value) is dict and all(self._is("text", k) and self._is("number", v) for k, v in value.items())
        if kind == "tables":
            return type(value) is list and all(map(self._is_mixed, value))
        return {
            "text": text,
            "number": number,
            "count": whole and 1 <= value <= 10**9,
            "slot": whole and 0 <= value < 2**53,
        }[kind]

    def _is_mixed(self, table: Any) -> bool:
        return type(table) is dict and all(
            self._is("text", k) and (type(v) is bool or self._is("number", v) or self._is("text", v))
            for k, v in table.items()
        )


def effect(operation: str, given: dict[str, Any]) -> tuple[str, str]:
    """A request in a form that can be compared: types and all bits count, the order does not."""
    return operation, repr(sorted(given.items()))


def greet_again(socket: zmq.Socket[bytes]) -> int:
    """A new session on the same connection; answers to what was sent before are passed over."""
    socket.send(msgpack.packb({"v": VERSION, "id": "again", "op": "hello"}))
    while (answer := msgpack.unpackb(socket.recv())).get("id") != "again":
        continue
    return int(answer["session"])


def fuzz(bench: Bench, count: int) -> Judge:
    """Send mutated requests of all kinds. Their session is right, so that only their form protects."""
    rng = random.Random(count)
    socket, session = greeted(bench)
    judge, names = Judge(session), [n for n in OPERATIONS if n != "hello"]
    for number in range(1, count + 1):
        operation = OPERATIONS[rng.choice(names)]
        wanted = [k for k, f in operation.fields.items() if f.default is REQUIRED or rng.random() < 0.5]
        head = {"v": VERSION, "session": judge.session, "seq": number, "id": number, "op": operation.name}
        body = mutated({**head, **{k: SAMPLES[operation.fields[k].type] for k in wanted}}, rng)
        judge.hear(body)
        socket.send(body)
        while socket.poll(0):
            socket.recv()
        if judge.last > number:  # a sequence number that leapt: all that follow would be refused for that alone
            judge.session = greet_again(socket)
            judge.last, judge.greetings = 0, judge.greetings + 1
    return judge


@pytest.mark.parametrize(
    "count", [20_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])]
)
def test_mutated_messages_are_all_counted_and_none_does_harm(bench, count):
    judge = fuzz(bench, count)
    counts = bench.server.counts
    sent = count + judge.greetings
    # tens of thousands may still be in the kernel's buffers
    until(lambda: sum(counts.as_dict().values()) >= sent, "all counted", 120.0)
    time.sleep(0.5)  # time for one too many
    assert sum(counts.as_dict().values()) == sent
    assert set(counts.refused) <= set(REASONS)
    asked = Counter(effect(operation, given) for operation, given in bench.asked)
    assert asked.total() > count / 100, "a mutation may be a sound request"
    assert asked - judge.effects == Counter(), "the node was asked for what nobody had said"
    # what was said and not asked for met a queue that was full, and was told so; the bench refuses each arm as well
    refused = counts.refused["refused"] - sum(n for (operation, _), n in asked.items() if operation == "arm")
    assert (judge.effects - asked).total() <= refused
    with Node(bench.endpoint) as node:
        assert node.pause() == 123


def nested(depth: int, key: str = "v") -> bytes:
    """A request whose field `key` has this many lists in one another."""
    pairs = {"v": VERSION, "id": 1, "op": "hello", key: ...}
    return packed_pairs([(k, b"\x91" * depth + b"\x01" if v is ... else msgpack.packb(v)) for k, v in pairs.items()])


@pytest.mark.parametrize("depth", [9, 100, 1000, 1023])
@pytest.mark.parametrize("key", ["v", "id", "op", "session", "pad"])
def test_lists_in_lists_without_end_are_refused_and_the_server_lives(bench, key, depth):
    """A thousand of them are within MessagePack's own bound, and beyond the stack of whoever prints them."""
    reason = outcome(bench.dealer(), nested(depth, key))
    assert reason in ("malformed", "version")
    assert bench.server.counts.refused[reason] == 1
    with Node(bench.endpoint) as node:
        assert node.pause() == 123


def test_an_error_that_nobody_thought_of_is_counted_and_the_server_lives(bench, monkeypatch):
    with Node(bench.endpoint) as node:
        monkeypatch.setattr(bench.server, "_session", lambda *_: 1 // 0)
        with pytest.raises(NodeError, match="ZeroDivisionError") as refusal:
            node.pause()
        assert refusal.value.reason == "malformed"
        monkeypatch.undo()
        monkeypatch.setattr(bench.server, "_ask", lambda *_: {}["nothing"])
        for _ in range(10):  # more than there are workers
            with pytest.raises(NodeError, match="pause failed: KeyError"):
                node.pause()
        monkeypatch.undo()
        assert node.pause() == 123
    assert bench.server.counts.refused["malformed"] == 1
    assert bench.server.counts.refused["refused"] == 10


class TestKeys:
    @pytest.fixture
    def keyring(self, tmp_path) -> Keyring:
        return Keyring(tmp_path / "keys")

    def test_who_has_a_key_is_known_by_name_and_role(self, tmp_path, keyring):
        anna = keyring.admit("anna", Role.OPERATE)
        bob = keyring.admit("bob", Role.WATCH)
        bench = Bench(tmp_path, keyring=keyring)
        with Node(bench.endpoint, key=anna) as node:
            assert node.about["role"] == "operate"
            assert node.pause() == 123
        with Node(bench.endpoint, key=bob) as node, pytest.raises(NodeError, match="bob may only watch"):
            node.pause()
        assert [line.get("who") for line in bench.lines()] == ["anna", "bob"]
        bench.close()

    def test_who_has_none_is_not_even_heard(self, tmp_path, keyring):
        keyring.admit("anna", Role.ADMIN)
        bench = Bench(tmp_path, keyring=keyring)
        with pytest.raises(NodeError, match="does it want a key"):
            Node(bench.endpoint, timeout=0.3)
        stranger = Keyring(tmp_path / "other").admit("eve", Role.ADMIN)
        text = stranger.read_text().splitlines()
        mine = next(line for line in (tmp_path / "keys/node.toml").read_text().splitlines() if "public" in line)
        stranger.write_text("\n".join([*text[:-1], mine.replace("public", "node")]))
        with pytest.raises(NodeError, match="in its list"):
            Node(bench.endpoint, key=stranger, timeout=0.3)
        until(lambda: bench.server.counts.refused["unauthenticated"] >= 1, "the stranger is counted")
        assert bench.asked == []
        assert bench.lines()[0]["refused"] == "unauthenticated"
        bench.close()

    @pytest.mark.parametrize("wrong", ["no key", "the key of another node"])
    def test_who_does_not_get_past_the_greeting_is_counted_and_written_down(self, tmp_path, keyring, wrong):
        """ZeroMQ closes such a connection without asking anybody."""
        anna = read_client_key(keyring.admit("anna", Role.ADMIN))
        bench = Bench(tmp_path, keyring=keyring)
        other = None if wrong == "no key" else replace(anna, node=Pair.new().public)
        with pytest.raises(NodeError, match="did not answer"):
            Node(bench.endpoint, key=other, timeout=0.3)
        until(lambda: bench.server.counts.refused["unauthenticated"] >= 1, "it is counted")
        assert bench.lines()[0]["refused"] == "unauthenticated"
        with Node(bench.endpoint, key=anna) as node:
            assert node.pause() == 123
        bench.close()

    def test_a_key_that_is_taken_away_counts_no_more_even_on_an_open_line(self, tmp_path, keyring):
        anna = keyring.admit("anna", Role.ADMIN)
        keyring.admit("bob", Role.WATCH)
        bench = Bench(tmp_path, keyring=keyring)
        with Node(bench.endpoint, key=anna) as node:
            node.pause()
            keyring.revoke("anna")
            until(lambda: bench.authenticator and bench.authenticator.guest("anna") is None, "the list is read again")
            with pytest.raises(NodeError, match="no longer let in"):
                node.pause()
        bench.close()

    def test_secrets_are_for_their_owner_alone(self, keyring):
        path = keyring.admit("anna", Role.WATCH)
        for file in (path, keyring.folder / "node.toml"):
            assert os.stat(file).st_mode & 0o077 == 0

    def test_a_name_can_be_given_once(self, keyring):
        keyring.admit("anna", Role.WATCH)
        with pytest.raises(ValueError, match="revoke anna"):
            keyring.admit("anna", Role.ADMIN)

    @pytest.mark.parametrize("text", ["x", "public = 1", "public = 'short'", "name = ["])
    def test_a_spoilt_key_file_is_named(self, tmp_path, text):
        file = tmp_path / "anna.key.toml"
        file.write_text(text)
        with pytest.raises(ValueError, match=r"anna\.key\.toml"):
            Node("tcp://127.0.0.1:1", key=file)
