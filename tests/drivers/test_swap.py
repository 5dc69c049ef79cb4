"""A device and its twin take each other's place while the node runs: safe values first, mailboxes stay, all is told."""

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import SAFE, Device, children, cli, events, is_alive, make_config, remote_node, trouble, wait_for
from test_runner import SAFE as SAFE_PAIR
from test_runner import Fake

from drivers.runner import Runner, SwapRefused
from drivers.twin import Twin
from hilnode.node.node import Node
from hilnode.shared import local_rpc
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox


class Bench:
    """A device that delivers 5, its twin that delivers 8, a runner for both."""

    def __init__(self, name: str) -> None:
        self.real = Fake()
        self.twin = Twin(self.real, {"x": 8.0})
        self.inbox = Mailbox.create(f"{name}.in", channels=1)
        self.outbox = Mailbox.create(f"{name}.out", channels=1)
        self.outbox.put(np.array([7.0]))
        self.health = np.zeros(HEALTH_WORDS, np.int64)
        self.runner = Runner(
            self.real,
            inbox=self.inbox,
            outbox=self.outbox,
            used=np.array([1]),
            safe=SAFE_PAIR,
            health=self.health,
            live=lambda: True,
            period=0.001,
            spare=self.twin,
        )
        self.runner.start()

    def swap(self, twin: bool, seconds: float = 5.0) -> str:
        return self.runner.swap(twin, time.monotonic() + seconds)

    def words(self, *which: H) -> list[int]:
        return [int(self.health[w]) for w in which]

    def await_value(self, value: float) -> None:
        wait_for(lambda: self.inbox.take()[1].tolist() == [value], f"the value {value}")


@pytest.fixture
def bench(name) -> Iterator[Bench]:
    made = Bench(name)
    made.await_value(5.0)
    yield made
    made.runner.stop(time.monotonic() + 5.0)
    made.inbox.close()
    made.outbox.close()


def test_there_and_back(bench):
    wait_for(lambda: bench.real.written and bench.real.written[-1] == [-1.0, 7.0], "a live value at the device")
    assert bench.words(H.TWIN, H.REAL) == [0, 1]
    assert bench.swap(twin=True) == ""
    assert bench.real.written[-1] == SAFE_PAIR.tolist()
    assert bench.real.closed == 1
    writes = len(bench.real.written)
    bench.await_value(8.0)
    assert bench.words(H.TWIN, H.REAL, H.SWAPS) == [1, 0, 1]
    wait_for(lambda: bench.twin._written.tolist() == [-1.0, 7.0], "a live value at the twin")
    assert len(bench.real.written) == writes
    assert bench.swap(twin=False) == ""
    bench.await_value(5.0)
    assert bench.words(H.TWIN, H.REAL, H.SWAPS) == [0, 1, 2]
    assert bench.health[H.STATE] == Health.UP
    assert bench.real.opened == 2
    assert bench.health[H.RECONNECTS] == 0  # it was not lost


def test_what_is_in_already_stays(bench):
    assert bench.swap(twin=False) == ""
    assert (bench.real.opened, bench.real.closed) == (1, 0)
    assert bench.health[H.SWAPS] == 0


def test_a_device_that_hangs_is_left_behind_and_its_late_value_goes_nowhere(bench):
    released = threading.Event()
    bench.real.on_read = lambda: released.wait(20.0)
    frames = -1
    while frames != bench.health[H.FRAMES]:
        frames = int(bench.health[H.FRAMES])
        time.sleep(0.02)
    remark = bench.swap(twin=True, seconds=0.2)
    assert "left behind" in remark
    bench.await_value(8.0)
    assert bench.words(H.TWIN, H.REAL) == [1, 1]  # nobody knows: the watchdog is to make it safe
    with pytest.raises(SwapRefused, match="still hangs"):
        bench.swap(twin=False)
    seen: set[float] = set()
    released.set()
    wait_for(lambda: bench.real.closed == 1, "the thread to come back and close the device")
    for _ in range(20):
        seen.add(float(bench.inbox.take()[1][0]))
        time.sleep(0.001)
    assert seen == {8.0}
    assert bench.real.written[-1] == SAFE_PAIR.tolist()
    wait_for(lambda: bench.words(H.TWIN, H.REAL) == [1, 0], "the device to be known as safe")
    bench.real.on_read = lambda: True
    wait_for(lambda: not bench.runner._hanging[0].alive, "its threads to end")
    assert bench.swap(twin=False) == ""
    bench.await_value(5.0)


def test_a_device_that_is_gone_stays_the_watchdogs_business(bench):
    bench.real.there = False
    wait_for(lambda: bench.health[H.STATE] == Health.DOWN, "the device to be down")
    assert bench.swap(twin=True) == "it could not be given its safe values"
    bench.await_value(8.0)
    assert bench.words(H.TWIN, H.REAL) == [1, 1]


def test_a_device_that_is_put_in_but_not_there_is_down_and_comes_later(bench):
    bench.swap(twin=True)
    bench.real.there = False
    bench.swap(twin=False)
    wait_for(lambda: bench.health[H.STATE] == Health.DOWN, "the device to be down")
    bench.real.there = True
    bench.await_value(5.0)


def test_after_the_end_nothing_is_put_in(bench):
    assert bench.runner.stop(time.monotonic() + 5.0)
    with pytest.raises(SwapRefused, match="ending"):
        bench.swap(twin=True)


# -- within a node -----------------------------------------------------------------------------------------------


@pytest.fixture
def device():
    with Device() as made:
        yield made


def test_from_the_command_line_with_an_event_and_its_tick(tmp_path, name, device):
    with remote_node(tmp_path, name, trouble(device.port)) as node:
        node.ask("arm")
        node.ask("run")
        device.await_live()
        done = cli("swap", "device", "twin", "--node", name)
        assert done.returncode == 0, done.stderr
        at = time.monotonic_ns()
        tick = int(done.stdout.split()[1].rstrip(":"))
        (event,) = wait_for(lambda: [e for e in events(tmp_path / "run") if e["event"] == "swap"], "the event")
        assert (event["tick"], event["what"]) == (tick, "driver device: its twin is in")
        assert device.values()[-1] == SAFE
        (report,) = json.loads(cli("drivers", "--node", name, "--json").stdout)
        assert (report["name"], report["kind"], report["twin"], report["state"]) == ("device", "udp", True, "up")
        assert report["writes"] > 0
        assert device.values(at) == []
        assert node.state == "RUNNING"
        back = time.monotonic_ns()
        assert node.ask("swap", "device", "real") > tick
        device.await_live(back)


def test_what_makes_no_sense_is_refused(tmp_path, name, device, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "hilnode")
    quiet = trouble(device.port, "log.timing = false\nsafety.watchdog = false")
    with Node(make_config(tmp_path, name, quiet)) as node:
        node.start()
        for said, command, given in (
            ("no driver 'devise': did you mean 'device'", "swap", {"driver": "devise", "to": "twin"}),
            ("'both' can not be put in", "swap", {"driver": "device", "to": "both"}),
            ("no command 'jump'", "jump", {}),
            ("missing", "swap", {}),
        ):
            with pytest.raises(local_rpc.NotAnswered, match=said):
                local_rpc.call(name, command, **given)
        for words in (b"", b"\xff\xfe\n", b"[]\n", b'{"do": "swap"}\n', b"x" * 200_000):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(f"\0hilnode.{name}")
                caller.sendall(words)
                caller.shutdown(socket.SHUT_WR)
                assert b"not a call" in caller.recv(4096)
        assert local_rpc.running_nodes().count(name) == 1
        assert local_rpc.call(name, "swap", driver="device", to="twin") > 0
    with pytest.raises(local_rpc.NotAnswered, match="does not answer"):
        local_rpc.call(name, "swap", driver="device", to="twin")
    with pytest.raises(local_rpc.NotAnswered, match="running"):
        local_rpc.which_node(name)


@pytest.mark.parametrize("first", ["real", "twin"])
def test_the_watchdog_knows_which_one_it_is_about(tmp_path, name, device, first):
    """Killed while the twin is in, nothing is sent to the device; killed while the device is in, its safe value."""
    text = trouble(device.port).replace('kind = "udp"', f'kind = "udp"\ntwin = {str(first == "twin").lower()}')
    with remote_node(tmp_path, name, text) as node:
        node.ask("arm")
        node.ask("run")
        if first == "twin":
            assert device.values() == []
            node.ask("swap", "device", "real")
            device.await_live()
        else:
            device.await_live()
            node.ask("swap", "device", "twin")
        before = time.monotonic_ns()
        (watchdog,) = children(node.pid, "hilnode.node.watchdog")
        os.kill(node.pid, signal.SIGKILL)
        if first == "twin":
            device.await_safe(before)
        wait_for(lambda: not is_alive(watchdog), "the watchdog to end")
    fired = [e for e in events(tmp_path / "run") if e["event"] == "watchdog"]
    assert fired[0]["failed"] == []
    assert device.values()[-1] == SAFE
    assert (len(device.values(before)) == 0) == (first == "real")


def test_inputs_change_hands_within_a_running_plant(tmp_path, name):
    """The plant's input comes from the device, then from its twin, then from the device again."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = f"""
safety.watchdog = false
[drivers.stick]
kind = "udp"
listen = "127.0.0.1:{port}"
inputs = ["x"]
[signals.inputs."pendulum.shoulder.torque"]
from = "stick.x"
"""
    ending = threading.Event()

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not ending.wait(0.002):
                out.sendto(struct.pack("<d", 1.5), ("127.0.0.1", port))

    sender = threading.Thread(target=send)
    sender.start()

    def torque(node: Node) -> Any:
        return node.last_row().get("pendulum.shoulder.torque")

    try:
        with Node(make_config(tmp_path, name, text)) as node:
            node.start()
            node.arm()
            node.run()
            for _ in range(2):
                wait_for(lambda: torque(node) == 1.5, "the device's value")
                node.swap("stick", "twin")
                wait_for(lambda: torque(node) == 0.0, "the twin's value")
                assert isinstance(node.drivers["stick"], Twin)
                node.swap("stick", "real")
            wait_for(lambda: torque(node) == 1.5, "the device's value")
            assert node.state.name == "RUNNING"
    finally:
        ending.set()
        sender.join()
