"""A replay as clients see it: the same wire as a node's, and the commands of a player."""

import contextlib
import threading
from collections.abc import Iterator

import msgpack
import numpy as np
import pytest
import recordings
import zmq
from recordings import SCHEMA, event, rows_of
from support import cli, free_port, wait_for
from typer.testing import CliRunner

from bridge import Node, NodeError
from bridge.record.player import Player
from bridge.record.replay import Replay
from bridge.record.run_file import Run
from hilnode.cli.main import app
from hilnode.shared.row import Col


@contextlib.contextmanager
def replaying(folder, **more) -> Iterator[tuple[Replay, Node]]:
    """A replay in a thread, standing at its beginning, and a client."""
    publish, commands = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    with Run(folder) as run:
        player = Player(run, **more)
        player.playing = False
        server = Replay(run, player, publish=publish, commands=commands)
        thread = threading.Thread(target=server.work, kwargs={"stay": True})
        thread.start()
        try:
            with Node(commands) as client:
                yield server, client
        finally:
            server.end()
            thread.join()


@pytest.fixture
def folder(tmp_path):
    return recordings.write(tmp_path / "run", rows_of(2000), [event(150, "alarm"), event(320, "trip")])


class Listener:
    """Every message of a replay."""

    def __init__(self, client: Node) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.subscribe(b"")
        self._socket.connect(client.about["publish"])
        self.messages: dict[str, list[dict]] = {}
        wait_for(lambda: self.of("schema"), "the first message")

    def of(self, topic: str) -> list[dict]:
        with contextlib.suppress(zmq.Again):
            while True:
                heading, body = self._socket.recv_multipart(zmq.NOBLOCK)
                self.messages.setdefault(heading.decode(), []).append(msgpack.unpackb(body))
        return self.messages.get(topic, [])

    def rows(self) -> np.ndarray:
        return np.array([np.frombuffer(m["row"], "<i8") for m in self.of("raw")]).reshape(-1, SCHEMA.words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close(0)
        self._context.term()


def test_it_publishes_what_was_recorded(folder):
    with replaying(folder, speed=4.0) as (_, client), Listener(client) as heard:
        client.play()
        wait_for(lambda: len(heard.rows()) >= 2000, "all rows")
        assert np.array_equal(heard.rows(), rows_of(2000))
        assert [m["seq"] for m in heard.of("raw")] == list(range(2000))
        states = heard.of("state")
        assert [m["tick"] for m in states] == list(range(0, 2000, 40))  # 100 a second, at four times the speed
        assert states[3]["signals"]["cart.speed"] == rows_of(2000)[120, SCHEMA.at_outputs + 1 :][:1].view(float)[0]
        assert [(m["tick"], m["event"]) for m in heard.of("event")] == [(150, "alarm"), (320, "trip")]
        assert heard.of("schema")[0]["layout"] == SCHEMA.as_dict()
        wait_for(lambda: any(m["replay"]["state"] == "paused" for m in heard.of("bridge")[1:]), "the end")


def test_seek_speed_and_backwards_while_it_runs(folder):
    with replaying(folder) as (_, client), Listener(client) as heard:
        client.seek(1.5)
        wait_for(lambda: len(heard.rows()) == 1, "the row there")
        assert heard.rows()[0, Col.TICK] == 1500
        client.set_speed(-3.0)
        client.play()
        wait_for(lambda: len(heard.rows()) > 500, "rows")
        client.pause()
        assert client.status()["state"] == "paused"
        got = heard.rows()[1:, Col.TICK]
        assert np.array_equal(got, np.arange(got[0], got[0] - len(got), -1))
        assert got[0] == 1499  # the one before the row that was shown
        with pytest.raises(NodeError, match=r"lasts from 0 to 1\.999 s"):
            client.seek(60.0)


def test_the_client_of_a_node_works_with_a_replay(folder):
    with replaying(folder, loop=True) as (_, client):
        client.resume()
        tick = client.wait_until("cart.force", gt=1.0, timeout=10)
        assert rows_of(2000)[tick, SCHEMA.at_inputs :][:1].view(float)[0] > 1.0
        record = client.record(["cart.position"], 0.2)
        assert record.lost == 0
        truth = rows_of(2000)[:, SCHEMA.at_outputs].view(float)
        assert record["cart.position"].tolist() == truth[record.tick].tolist()


def test_what_only_a_node_can_do_is_refused(folder):
    with replaying(folder) as (_, client):
        for op in ("arm", "trip"):
            with pytest.raises(NodeError, match="no operation") as refused:
                client.ask(op)
            assert refused.value.reason == "unknown"


def test_the_command_line(folder):
    ports = {"--publish": f"tcp://127.0.0.1:{free_port()}", "--commands": f"tcp://127.0.0.1:{free_port()}"}
    where = [f"{key}={value}" for key, value in ports.items()]
    done = cli("replay", folder, "--speed", "20", *where)
    assert done.returncode == 0, done.stderr
    assert f"2.0 s of cart on {ports['--publish']}" in done.stderr.replace("\n", " ")


def test_what_the_command_line_refuses(folder, tmp_path):
    publish, commands = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    where = [f"--publish={publish}", f"--commands={commands}"]
    assert_refused(2, "speed = 0", folder, "--speed", "0", *where)
    assert_refused(2, "needs bridge.keys", folder, "--publish", "tcp://0.0.0.0:5555")
    assert_refused(1, "no such recording", tmp_path / "nothing")
    with zmq.Context() as context, context.socket(zmq.PUB) as socket:
        socket.bind(publish)
        assert_refused(5, "is in use by process", folder, *where)


def assert_refused(code: int, why: str, *arguments: object) -> None:
    answer = CliRunner().invoke(app, ["replay", *map(str, arguments)])
    assert answer.exit_code == code
    assert why in answer.output.replace("\n", " ")
