"""A node without a seat for an ECU: the lane's address answers all the same, with what to do."""

import contextlib
import json
import re
import socket as sockets
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
import zmq
from support import children, free_port, make_config, wait_for

from bridge import NodeError
from bridge.client.pytest_plugin import running_node
from bridge.ecu.client import Ecu
from bridge.ecu.rejector import EcuRejector
from bridge.protocol.audit import Audit
from bridge.protocol.endpoints import bound
from hilnode.node.node import Node as LocalNode
from hilnode.shared.control import Control, Word

PLANT = 'plant.kind = "double_pendulum"\n'
PUBLISH = "tcp://127.0.0.1:9872"


class Gate:
    """A rejector without a node."""

    def __init__(self, folder: Path) -> None:
        self.context = zmq.Context()
        socket = bound(self.context, None, zmq.ROUTER, "bridge.ecu", "tcp://127.0.0.1:*")
        self.endpoint, self._file = socket.getsockopt_string(zmq.LAST_ENDPOINT), folder / "audit.jsonl"
        self._audit = Audit(self._file)
        self.rejector = EcuRejector(socket, PUBLISH, self._audit, lambda: 42)
        self.rejector.start()

    def close(self) -> None:
        self.rejector.close()
        self._audit.close(0)
        self.context.term()

    def audit(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._file.read_text().splitlines()]

    def ask(self, body: bytes) -> dict[str, object]:
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.connect(self.endpoint)
            socket.send(body)
            assert socket.poll(5000)
            return dict(msgpack.unpackb(socket.recv()))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    yield made
    made.close()


def refusal(ecu: Ecu) -> str:
    ecu.send([1.0])
    with pytest.raises(NodeError) as caught:
        ecu.receive()
    assert caught.value.reason == "refused"
    return str(caught.value)


def test_it_says_what_the_config_lacks_and_that_makes_a_seat(gate, tmp_path, name):
    with Ecu(gate.endpoint) as ecu:
        said = refusal(ecu)
    assert PUBLISH in said
    stanza = re.search(r"\[drivers\.ecu\]\n.*\n.*\n", said)
    source = re.search(r'from = "[a-z.]+"', said)
    assert stanza
    assert source
    more = f'bridge.publish = "tcp://127.0.0.1:{free_port()}"\nbridge.ecu = "tcp://127.0.0.1:{free_port()}"\n'
    signal = f'[signals.inputs."pendulum.shoulder.torque"]\n{source[0]}\n'
    with LocalNode(make_config(tmp_path, name, PLANT + more + stanza[0] + signal)) as node:
        assert list(node.ecus) == ["ecu"]


def test_the_name_it_came_with_is_that_of_the_driver_to_add(gate):
    with Ecu(gate.endpoint, "arm_2") as ecu:
        assert '[drivers.arm_2]\nkind = "ecu"' in refusal(ecu)
    with Ecu(gate.endpoint, '"]\nevil = 1') as ecu:
        assert "[drivers.ecu]" in refusal(ecu)


def test_each_message_is_answered_and_written_down_once(gate):
    with Ecu(gate.endpoint) as ecu:
        for _ in range(50):
            refusal(ecu)
    (line,) = gate.audit()
    assert (line["refused"], line["tick"], line["who"]) == ("refused", 42, "127.0.0.1")


def test_messages_that_are_none_are_refused_for_that(gate):
    assert gate.ask(b"\xc1")["reason"] == "malformed"
    assert gate.ask(msgpack.packb({"v": 2, "seq": 0, "t": 0.0}))["reason"] == "version"
    assert gate.ask(b"\x91" * 2000)["reason"] == "malformed"
    answer = gate.ask(msgpack.packb({"v": 1, "seq": 7, "t": 0.0}))
    assert (answer["reason"], answer["ack"]) == ("refused", 7)


def test_every_node_answers_without_a_process_more(tmp_path):
    with running_node(tmp_path, PLANT) as node:
        config = json.loads(next(tmp_path.glob("hil-*/run/run.json")).read_text())["config"]
        with Ecu(config["bridge"]["ecu"], timeout=30.0) as ecu:
            assert "[drivers.ecu]" in refusal(ecu)
        assert children(Control.attach(config["node"]["name"])[Word.PID], "bridge.ecu.server") == []
        step = node.status()["tick"]
        wait_for(lambda: node.status()["tick"] > step, "ticks")


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    with sockets.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_two_nodes_may_have_one_address_for_ecus_as_long_as_none_needs_it(tmp_path, name):
    with taken_port() as port:
        more = f'bridge.publish = "tcp://127.0.0.1:{free_port()}"\nbridge.ecu = "tcp://127.0.0.1:{port}"\n'
        with LocalNode(make_config(tmp_path, name, PLANT + more)) as node:
            assert any("bridge.ecu" in note and "is in use" in note for note in node.notes)
