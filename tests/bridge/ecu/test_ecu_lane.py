"""ECUs beside a node that runs: their values reach the plant like those of any device, and so does their absence."""

import contextlib
import json
import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from mutations import decoded, depth, mutated
from support import children, free_port, remote_node, wait_for

from bridge import Node, NodeError
from bridge.client.pytest_plugin import running_node
from bridge.ecu.client import Ecu
from bridge.protocol.keys import Keyring
from bridge.protocol.operations import Role
from hilnode.config.config import load
from hilnode.node.node import Node as LocalNode
from hilnode.shared.control import Control, Word

TABLES = """
plant.kind = "double_pendulum"
safety.on_trip = "hold"
node.max_overruns = 0
safety.watchdog_ms = 300
safety.bumpless_ms = 0
MORE
[drivers.ecu]
kind = "ecu"
silent_ms = 300
inputs = [{ name = "shoulder", unit = "N*m" }, { name = "elbow", unit = "N*m" }]
outputs = [
  { name = "angle", unit = "rad", safe = -9.0 },
  { name = "spare", safe = 7.0 },
  { name = "torque", unit = "N*m" },
]
[signals.inputs."pendulum.shoulder.torque"]
from = "ecu.shoulder"
scale = 2.0
clamp = [-8.0, 8.0]
stale_ms = 100.0
stale = "default"
[signals.inputs."pendulum.elbow.torque"]
from = "ecu.elbow"
stale_ms = 5000.0
stale = "hold"
[signals.outputs."ecu.angle"]
from = "pendulum.shoulder.angle"
[signals.outputs."ecu.torque"]
from = "pendulum.shoulder.torque"
"""
SHOULDER, ELBOW, ANGLE = "pendulum.shoulder.torque", "pendulum.elbow.torque", "pendulum.shoulder.angle"


class Bench:
    """A node with an ECU lane, and where things are."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, next(folder.glob("hil-*/run"))
        config = json.loads((self.folder / "run.json").read_text())["config"]
        self.name, self.endpoint = config["node"]["name"], config["bridge"]["ecu"]
        with self.ecu() as ecu:  # it may still be starting
            wait_for(lambda: hears(ecu), "the lane")

    def ecu(self, **options: Any) -> Ecu:
        return Ecu(self.endpoint, **options)

    @property
    def health(self) -> str:
        return str(self.node.status()["drivers"]["ecu"]["state"])

    @property
    def link(self) -> dict[str, Any]:
        """The newest report of the topic ecu."""
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.linger = 0
            socket.connect(self.node.about["publish"])
            socket.subscribe("ecu")
            assert socket.poll(5000)
            return dict(msgpack.unpackb(socket.recv_multipart()[1])["ecus"]["ecu"])

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text().splitlines()]

    @property
    def pid(self) -> int:
        return Control.attach(self.name)[Word.PID]


def hears(ecu: Ecu) -> bool:
    ecu.send()
    try:
        return bool(ecu.receive(0.2))
    except NodeError:
        return False


def go(node: Node) -> None:
    if node.status()["state"] != "running":
        node.arm()
        node.run()


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("ecu")
    with running_node(folder, TABLES.replace("MORE", "")) as node:
        made = Bench(node, folder)
        go(node)
        yield made


def exchange(ecu: Ecu, values: Any, until: Callable[[Any], bool], what: str) -> Any:
    """Send the values with each state that comes until a state is as wished."""
    found: list[Any] = []

    def once() -> bool:
        ecu.send(values)
        found.append(ecu.newest())
        return until(found[-1])

    wait_for(once, what, 20.0)
    return found[-1]


def exchange_nothing(ecu: Ecu) -> Any:
    """The last state, when no more come."""
    state = ecu.receive()
    with contextlib.suppress(NodeError):
        while True:
            state = ecu.receive(2.0)
    return state


def test_values_go_through_scale_and_limits_to_the_plant_and_come_back_in_the_state(bench):
    """The channel `torque` tells what the plant took."""
    with bench.ecu() as ecu:
        state = exchange(ecu, [1.5, -0.25], lambda s: s.values[2] == 3.0, "2 x 1.5")
        assert (state.live, state.state, state.values[1]) == (True, "running", 7.0)  # not mapped: its safe value
        exchange(ecu, [100.0, 0.0], lambda s: s.values[2] == 8.0, "the limit")


def test_some_values_by_name_leave_the_others_as_they_were(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.5], lambda s: s.values[2] == 2.0, "both")
        exchange(ecu, {"shoulder": -1.0}, lambda s: s.values[2] == -2.0, "one of them")
        record = bench.node.record([SHOULDER, ELBOW], 0.05)
        assert record[ELBOW][0] == 0.5


def test_the_state_is_that_of_its_tick(bench):
    rows: dict[int, float] = {}
    with bench.ecu() as ecu, zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.linger = 0
        socket.connect(bench.node.about["publish"])
        socket.subscribe("state")
        assert socket.poll(5000)
        states, until = {}, time.monotonic() + 0.5
        while time.monotonic() < until:
            ecu.send([0.0, 0.0])
            state = ecu.newest()
            states[state.tick] = state
            while socket.poll(0):
                message = msgpack.unpackb(socket.recv_multipart()[1])
                rows[message["tick"]] = message
    both = states.keys() & rows.keys()
    assert len(both) >= 3
    for tick in both:
        assert states[tick].values[0] == rows[tick]["signals"][ANGLE]
        assert (states[tick].t, states[tick].timestamp) == (rows[tick]["t"], rows[tick]["timestamp"])


def test_losses_and_the_clock_are_reported(bench):
    """An ECU whose clock is 1000 s ahead, and that leaves out nine numbers."""
    before = bench.link["lost"]
    with bench.ecu(clock=lambda: time.monotonic() + 1000.0) as ecu:
        for _ in range(200):
            ecu.send([0.0, 0.0])
            ecu.newest()
        ecu._seq += 9
        state = exchange(ecu, [0.0, 0.0], lambda s: s.lost == before + 9, "the loss")
        wait_for(lambda: bench.link["lost"] == before + 9, "the loss in the report")
        ecu.send([0.0, 0.0])
        line = bench.link
        assert line["connected"]
        assert line["offset_s"] == pytest.approx(1000.0, abs=line["delay_us"] * 1e-6)
        assert state.offset == pytest.approx(1000.0, abs=0.01)
        assert 0 < line["delay_us"] * 0.9 <= line["round_trip_p50_us"] <= line["round_trip_p99_us"]
        assert line["age_s"] < 1.0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (msgpack.packb({"v": 1, "seq": 1, "t": 0.0, "values": [1.0]}), "malformed"),
        (msgpack.packb({"v": 9, "seq": 1, "t": 0.0}), "version"),
        (b"\xc1", "malformed"),
        (bytes(70_000), "oversized"),
        (msgpack.packb({"v": 1, "seq": 1, "t": 0.0, "ecu": "nobody"}), "unknown"),
        (msgpack.packb({"v": 1, "seq": 1, "t": 0.0, "step": 1}), "refused"),
    ],
)
def test_a_bad_message_is_refused_counted_and_written_down(bench, body, reason):
    refused, written = bench.link["refused"], len(bench.audit())
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(bench.endpoint)
        socket.send(body)

        def answer() -> bool:  # states may come too
            assert socket.poll(5000)
            return msgpack.unpackb(socket.recv()).get("reason") == reason

        wait_for(answer, "the refusal")
    wait_for(lambda: bench.link["refused"] > refused, "the count")
    assert any(line.get("refused") == reason for line in bench.audit()[written:])


class Judge:
    """What the messages of an ECU say, read by another decoder than the lane's: what it must have counted and used."""

    def __init__(self) -> None:
        self.taken = self.refused = 0
        self.values = [0.0, 0.0]
        self.last = -1

    def hear(self, body: bytes) -> None:
        channels, message = ["shoulder", "elbow"], decoded(body)
        heard = isinstance(message, dict) and self._is_sound(message, channels)
        if not heard:
            self.refused += 1
            return
        self.taken, self.last = self.taken + 1, message["seq"]
        given = message.get("values")
        told = dict(zip(channels, given, strict=True)) if isinstance(given, list) else given or {}
        self.values = [float(told.get(name, old)) for name, old in zip(channels, self.values, strict=True)]
        self.refused += message.get("step", 0) > 0  # heard, but there is no lockstep here

    def _is_sound(self, message: dict[str, Any], channels: list[str]) -> bool:
        def number(x: Any) -> bool:
            return type(x) is float or type(x) is int

        def clock(x: Any) -> bool:
            return number(x) and abs(x) <= 9e9

        seq, step, given = message.get("seq"), message.get("step", 0), message.get("values")
        names = given if isinstance(given, dict) else channels
        values = given.values() if isinstance(given, dict) else given
        ack, ack_t = message.get("ack", -1), message.get("ack_t", math.nan)
        return (
            all(type(key) is str and len(key) <= 200 for key in message)
            and depth(message) <= 8
            and (type(message.get("v")), message.get("v")) == (int, 1)
            and type(seq) is int
            and self.last < seq < 2**63
            and clock(message.get("t"))
            and type(step) is int
            and 0 <= step <= 1_000_000
            and (given is None or (isinstance(given, dict) and set(names) <= set(channels)) or type(given) is list)
            and (given is None or ((type(given) is not list or len(given) == 2) and all(map(number, values or ()))))
            and type(ack) is int
            and (clock(ack_t) or (type(ack_t) is float and math.isnan(ack_t)))
        )


def test_mutated_messages_are_counted_do_what_they_say_and_the_lane_lives(bench):
    rng, judge = random.Random(8), Judge()
    (pid,) = children(bench.pid, "bridge.ecu.server")
    before = bench.link
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(bench.endpoint)
        for number in range(10_000):
            values = [rng.uniform(-3, 3), 0.1]
            whole = {"v": 1, "seq": number, "t": 0.001 * number, "values": values, "ack": 1, "step": 0}
            body = msgpack.packb(whole) if number % 5 == 0 else mutated(whole, rng)  # some sound ones, to keep its seat
            said = decoded(body)
            if isinstance(said, dict) and type(said.get("seq")) is int and said["seq"] != number:
                continue  # one that leaps would have all that follow refused for that alone
            judge.hear(body)
            socket.send(body)
            while socket.poll(0):
                socket.recv()

        def counted() -> tuple[int, int]:
            line = bench.link
            return line["frames"] - before["frames"], line["refused"] - before["refused"]

        wait_for(lambda: sum(counted()) >= judge.taken + judge.refused, "all of them", 20.0)
        assert counted() == (judge.taken, judge.refused)
    assert judge.taken > 1000
    assert judge.refused > 1000
    assert children(bench.pid, "bridge.ecu.server") == [pid]


def test_clocks_and_numbers_beyond_every_bound_do_not_end_the_lane(bench):
    (pid,) = children(bench.pid, "bridge.ecu.server")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(bench.endpoint)
        for seq in (1, 2**62, 2**63 - 1):
            assert not socket.send(msgpack.packb({"v": 1, "seq": seq, "t": 8.9e9, "ack": 0, "ack_t": 8.9e9}))
        for t in (1e10, 1e300, math.inf, 2**63):
            socket.send(msgpack.packb({"v": 1, "seq": 3, "t": t}))
        wait_for(lambda: bench.link["lost"] > 2**62, "the loss")
        time.sleep(0.5)  # it reports five times a second
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:  # and one more that leaps as far
        socket.linger = 0
        socket.connect(bench.endpoint)
        for seq in (0, 2**63 - 1):
            socket.send(msgpack.packb({"v": 1, "seq": seq, "t": 0.0}))
        wait_for(lambda: bench.link["lost"] == 2**63 - 1, "as many as can be counted")
    assert children(bench.pid, "bridge.ecu.server") == [pid]


def test_a_message_that_was_sent_before_is_refused(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "the value")
        ecu._seq -= 1
        ecu.send([3.0, 0.0])
        with pytest.raises(NodeError, match="must be above") as caught:
            wait_for(lambda: ecu.newest() and False, "the refusal", 5.0)
        assert caught.value.reason == "replayed"


def test_one_ecu_at_a_time_and_the_next_when_it_has_gone(bench):
    with bench.ecu() as first, bench.ecu() as second:
        exchange(first, [1.0, 0.0], lambda s: s.values[2] == 2.0, "the first")
        second.send([2.0, 0.0])
        with pytest.raises(NodeError, match="one at a time"):
            second.receive()
        first.close()
        wait_for(lambda: hears(second), "the second")
        exchange(second, [2.0, 0.0], lambda s: s.values[2] == 4.0, "its values")


def test_silence_makes_inputs_stale_and_the_driver_down_until_it_speaks_again(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.5], lambda s: s.values[2] == 2.0 and bench.health == "up", "contact")
        bench.node.wait_until(SHOULDER, eq=0.0, timeout=5)  # its default, after stale_ms
        assert bench.node.record([ELBOW], 0.01)[ELBOW][0] == 0.5  # holds
        wait_for(lambda: bench.health == "down", "the driver to notice")
        assert "silent" in bench.node.status()["drivers"]["ecu"]["trouble"]

        def again() -> bool:
            hears(ecu)
            ecu.send([1.0, 0.5])
            return bench.health == "up"

        wait_for(again, "the driver to come back")
        exchange(ecu, [1.0, 0.5], lambda s: s.values[2] == 2.0, "values again")


def test_an_ecu_that_closes_is_noticed_at_once(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "contact")
    wait_for(lambda: not bench.link["connected"], "the lane to notice")
    wait_for(lambda: bench.health == "down", "the driver to notice")
    assert "closed" in bench.node.status()["drivers"]["ecu"]["trouble"]


def test_the_twin_takes_its_place_and_gives_it_back(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "contact")
        bench.node.swap("ecu", "twin")
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 0.0, "the twin's value")
        for _ in range(50):
            ecu.send([1.0, 0.0])
            assert ecu.receive().values[2] == 0.0
        bench.node.swap("ecu", "real")
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "contact again")


def test_a_number_that_is_none_is_flagged_and_not_used(bench):
    events = bench.folder / "events.jsonl"
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "contact")
        before = events.read_text().count('"invalid"')
        seen = {exchange(ecu, [math.nan, 0.0], lambda s: True, "a state").values[2] for _ in range(20)}
        exchange(ecu, [math.nan, 0.0], lambda s: s.values[2] == 0.0, "the default")
        assert seen <= {2.0, 0.0}
        wait_for(lambda: events.read_text().count('"invalid"') > before, "the event")
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "a number again")


def test_safe_values_while_it_does_not_run(bench):
    with bench.ecu() as ecu:
        bench.node.disarm()
        state = exchange(ecu, [1.0, 0.0], lambda s: s.state == "configured", "the state")
        assert (state.live, state.values) == (False, [-9.0, 7.0, 0.0])
        go(bench.node)
        exchange(ecu, [1.0, 0.0], lambda s: s.live and s.values[0] != -9.0, "live values")


def test_a_killed_lane_comes_back_and_the_ecu_need_not_do_anything(bench):
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.values[2] == 2.0, "contact")
        (pid,) = children(bench.pid, "bridge.ecu.server")
        os.kill(pid, signal.SIGKILL)
        bench.node.wait_until(SHOULDER, eq=0.0, timeout=5)  # stale, as if the cable were out

        def again() -> bool:
            ecu.send([-2.0, 0.0])
            try:
                return ecu.newest(0.05).values[2] == -4.0
            except NodeError:
                return False

        wait_for(again, "values through the next lane", 60.0)
        assert children(bench.pid, "bridge.ecu.server") != [pid]
        assert bench.node.status()["state"] == "running"


def test_a_killed_node_leaves_the_ecu_with_safe_values(bench):
    """Runs last: nothing is left of the node."""
    with bench.ecu() as ecu:
        exchange(ecu, [1.0, 0.0], lambda s: s.live, "contact")
        os.kill(bench.pid, signal.SIGKILL)
        state = exchange_nothing(ecu)
        assert (state.live, state.values, state.state) == (False, [-9.0, 7.0, 0.0], "stopped")


@pytest.mark.slow
def test_watching_is_not_enough(tmp_path):
    with running_node(tmp_path, TABLES.replace("MORE", 'bridge.role = "watch"')):
        config = json.loads(next(tmp_path.glob("hil-*/run/run.json")).read_text())["config"]
        with Ecu(config["bridge"]["ecu"], timeout=30.0) as ecu:
            ecu.send([0.0, 0.0])
            with pytest.raises(NodeError, match="needs the role operate"):
                ecu.receive()


@pytest.mark.slow
def test_with_keys_only_who_may_operate_is_an_ecu(tmp_path, name):
    keyring = Keyring(tmp_path / "keys")
    anna, bob = keyring.admit("anna", Role.OPERATE), keyring.admit("bob", Role.WATCH)
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    more = f"""
bridge.keys = "{tmp_path / "keys"}"
bridge.publish = "tcp://127.0.0.1:{free_port()}"
bridge.ecu = "{endpoint}"
"""
    with remote_node(tmp_path, name, TABLES.replace("MORE", more)):
        with Ecu(endpoint, key=anna, timeout=30.0) as ecu:
            ecu.send([0.0, 0.0])
            assert ecu.receive().state == "configured"
        for key, why in ((bob, "bob has not got it"), (None, "sent nothing")):
            with Ecu(endpoint, key=key, timeout=5.0) as ecu:
                ecu.send([0.0, 0.0])
                with pytest.raises(NodeError, match=why):
                    ecu.receive()
    who = [json.loads(line).get("who") for line in (tmp_path / "run/audit.jsonl").read_text().splitlines()]
    assert who[:2] == ["anna", "bob"]


def test_an_ecu_without_a_bridge_is_refused(tmp_path, name):
    path = tmp_path / "config.toml"
    path.write_text(TABLES.replace("MORE", f'node.name = "{name}"\nbridge.enabled = false'))
    with pytest.raises(ValueError, match=r"drivers\.ecu.*bridge\.enabled"):
        LocalNode(load(path))
