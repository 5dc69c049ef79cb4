"""The publisher as a subscriber sees it: two frames, names, and the same numbers as in the row."""

import contextlib
import itertools
import os
import signal
import struct
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from support import RemoteNode, children, free_port, remote_node, wait_for

from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import Schema

TOPICS = {"raw", "state", "schema", "timing", "bridge", "event", "scene"}


class Subscriber:
    """Notes every message on all topics."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(endpoint)
        self.frames: list[list[bytes]] = []
        self._messages: dict[str, list[dict[str, Any]]] = {}

    def of(self, topic: str) -> list[dict[str, Any]]:
        """Messages of a topic up to now."""
        with contextlib.suppress(zmq.Again):
            while True:
                self.frames.append(self._socket.recv_multipart(zmq.NOBLOCK))
                heading, payload = self.frames[-1]
                self._messages.setdefault(heading.decode(), []).append(msgpack.unpackb(payload))
        return self._messages.get(topic, [])

    def topics(self) -> set[str]:
        """Of all messages up to now."""
        self.of("")
        return set(self._messages)

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[tuple[RemoteNode, Subscriber, Ring]]:
    """A running double pendulum and a subscriber that has heard it for a while."""
    port = free_port()
    name = f"t{os.getpid()}-bridge"
    text = f'bridge.publish = "tcp://127.0.0.1:{port}"\nbridge.state_hz = 100\n'
    with remote_node(tmp_path_factory.mktemp("bridge"), name, text) as node:
        ring = Ring.attach(f"{name}.rows")
        subscriber = Subscriber(f"tcp://127.0.0.1:{port}")
        wait_for(lambda: subscriber.of("schema"), "the schema, which says that the subscription is there")
        node.ask("arm")
        node.ask("run")
        wait_for(lambda: subscriber.topics() == TOPICS and len(subscriber.of("state")) >= 50, "messages")
        yield node, subscriber, ring
        subscriber.close()


@pytest.fixture
def heard(bench):
    return bench[1]


def schema_of(heard: Subscriber) -> dict[str, Any]:
    return heard.of("schema")[0]["layout"]


def test_a_message_is_a_topic_and_a_map(heard):
    assert {len(f) for f in heard.frames} == {2}
    assert {f[0].decode() for f in heard.frames} == TOPICS
    for _, payload in heard.frames[:500]:
        message = msgpack.unpackb(payload, strict_map_key=True)  # refuses keys that are not strings
        assert type(message["timestamp"]) is float
        assert type(message["tick"]) is int
        assert type(message["seq"]) is int


def test_a_state_message_begins_as_a_map_of_16_or_more(heard):
    """PlotJuggler tells a map from other data by its first byte: map 16 or map 32."""
    payload = next(f[1] for f in heard.frames if f[0] == b"state")
    assert payload[0] in (0xDE, 0xDF)
    assert struct.unpack(">H", payload[1:3])[0] == len(msgpack.unpackb(payload)) >= 16


def test_physical_numbers_are_always_floats(heard):
    for message in heard.of("state"):
        assert {type(v) for v in message["signals"].values()} == {float}
        assert {type(x) for b in message["bodies"].values() for x in b["p"] + b["q"]} == {float}
        assert {type(message[k]) for k in ("t", "wake_us", "step_us", "own_us", "period_us")} == {float}


def test_no_number_in_a_sequence_is_left_out(heard):
    for topic in ("raw", "state", "timing", "schema"):
        seq = [m["seq"] for m in heard.of(topic)]
        assert seq == list(range(seq[0], seq[0] + len(seq))), topic
    ticks = [m["tick"] for m in heard.of("raw")]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


def test_the_readable_topic_is_decimated_evenly(heard):
    ticks = [m["tick"] for m in heard.of("state")]
    assert [t % 10 for t in ticks] == [0] * len(ticks)
    assert set(np.diff(ticks).tolist()) == {10}


def test_a_raw_row_says_the_same_as_the_state_of_its_tick(heard):
    """Decoded here by the schema message alone."""
    layout = schema_of(heard)
    raw = {m["tick"]: m for m in heard.of("raw")}
    compared = 0
    for state in heard.of("state"):
        if state["tick"] not in raw:
            continue
        row = raw[state["tick"]]["row"]
        assert len(row) == 8 * layout["words"]
        ints, floats = np.frombuffer(row, "<i8"), np.frombuffer(row, "<f8")
        head = dict(zip(layout["header"], ints.tolist(), strict=False))
        for kind in ("inputs", "outputs", "commands"):
            at = layout["offsets"][kind]
            for k, signal_ in enumerate(layout[kind]):
                assert state["signals"][signal_["name"]] == floats[at + k]
        for k, body in enumerate(layout["bodies"]):
            at = layout["offsets"]["poses"] + 7 * k
            assert state["bodies"][body] == {"p": floats[at : at + 3].tolist(), "q": floats[at + 3 : at + 7].tolist()}
        assert (head["tick"], head["step"], head["flags"]) == (state["tick"], state["step"], state["flags"])
        assert state["timestamp"] == pytest.approx(head["wake"] * 1e-9, rel=1e-15)
        assert state["wake_us"] == pytest.approx((head["wake"] - head["deadline"]) / 1e3)
        assert state["step_us"] == pytest.approx((head["end"] - head["start"]) / 1e3)
        assert state["t"] == pytest.approx(head["step"] * 1e-3)
        compared += 1
    assert compared >= 40


def test_the_schema_is_complete_and_its_hash_is_on_every_raw_row(heard):
    message = heard.of("schema")[0]
    layout = message["layout"]
    assert f"{Schema.from_dict(layout).hash:016x}" == message["schema"]
    assert {m["schema"] for m in heard.of("raw")} == {message["schema"]}
    names = [s["name"] for kind in ("inputs", "outputs", "commands") for s in layout[kind]]
    assert names == list(heard.of("state")[0]["signals"])
    assert layout["bodies"] == list(heard.of("state")[0]["bodies"])


def test_the_state_follows_the_node(bench):
    node, heard, _ = bench
    node.ask("disarm")
    wait_for(lambda: heard.of("state")[-1]["state"] == "configured", "the state to change")
    still = heard.of("state")[-1]["step"]
    node.ask("arm")
    node.ask("run")
    wait_for(lambda: heard.of("state")[-1]["step"] > still, "the plant to move")
    assert heard.of("state")[-1]["state"] == "running"


def test_timing_messages_cover_every_row(heard):
    """Each tells of the rows since the last one: together they leave none out."""
    wait_for(lambda: len(heard.of("timing")) >= 3, "three timing messages")
    messages = heard.of("timing")
    for a, b in itertools.pairwise(messages):
        assert b["tick"] - a["tick"] == b["rows"]
        assert b["lost"] == 0
        assert b["wake_us"]["p50"] <= b["wake_us"]["p99"] <= b["wake_us"]["max"]


def test_a_killed_publisher_comes_back_and_the_node_does_not_notice(bench):
    node, heard, ring = bench
    (pid,) = children(node.pid, "bridge.publish.server")
    os.kill(pid, signal.SIGKILL)
    before, died_at = len(heard.of("raw")), len(ring)
    wait_for(lambda: len(heard.of("raw")) > before + 100, "messages of the next publisher")
    (again,) = children(node.pid, "bridge.publish.server")
    assert again != pid
    assert node.state == "RUNNING"
    newest = heard.of("raw")[-100:]
    assert newest[0]["tick"] > died_at
    seq = [m["seq"] for m in newest]
    assert seq == list(range(seq[0], seq[0] + 100))


def test_the_last_row_is_sent_before_the_end(bench):
    """Runs last: it ends the node."""
    node, heard, ring = bench
    node.process.communicate()
    assert node.process.returncode == 0
    wait_for(lambda: heard.of("raw")[-1]["tick"] == len(ring) - 1, "the last row", 3.0)


def test_that_a_stalled_subscriber_of_a_node_loses_rows_is_published(tmp_path, name):
    """It runs as fast as it can, so that ten thousand messages have soon been made."""
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    with (
        remote_node(tmp_path, name, f'bridge.publish = "{endpoint}"\nnode.pace = "free"\n') as node,
        zmq.Context() as context,
        context.socket(zmq.SUB) as stalled,
        context.socket(zmq.SUB) as reader,
    ):
        stalled.linger = reader.linger = 0
        stalled.setsockopt(zmq.RCVHWM, 10)
        stalled.setsockopt(zmq.RCVBUF, 10_000)
        stalled.subscribe("raw")
        reader.subscribe("bridge")
        for socket in (stalled, reader):
            socket.connect(endpoint)
        node.ask("arm")
        node.ask("run")

        def overflows() -> int:
            assert reader.poll(30_000)
            return int(msgpack.unpackb(reader.recv_multipart()[1])["overflows"])

        wait_for(lambda: overflows() == 1, "the loss", 120)


@pytest.mark.slow
def test_without_raw_only_the_readable_topics_are_sent(tmp_path, name):
    port = free_port()
    text = f'bridge.publish = "tcp://127.0.0.1:{port}"\nbridge.raw = false\nbridge.state_hz = 500\n'
    with remote_node(tmp_path, name, text):
        heard = Subscriber(f"tcp://127.0.0.1:{port}")
        wait_for(lambda: len(heard.of("state")) >= 100, "messages")
        assert heard.of("raw") == []
        assert set(np.diff([m["tick"] for m in heard.of("state")]).tolist()) == {2}
        heard.close()
