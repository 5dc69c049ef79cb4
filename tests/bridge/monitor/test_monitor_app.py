"""The monitor on a screen that is not there, against a node that runs."""

import asyncio
import os
import pty
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest
from screen_text import text_of
from support import children, free_port, wait_for
from textual.pilot import Pilot

from bridge import Node
from bridge.client.pytest_plugin import running_node
from bridge.monitor.app import Monitor

PENDULUM = """
plant.kind = "double_pendulum"
safety.on_trip = "hold"
node.max_overruns = 0
safety.watchdog_ms = 300
"""
DEVICE = """
[drivers.ecu]
kind = "udp"
send = "127.0.0.1:9"
outputs = [{ name = "angle", safe = 0.0 }]
[signals.outputs."ecu.angle"]
from = "pendulum.elbow.angle"
"""
TORQUE = "pendulum.shoulder.torque"
F9 = b"\x1b[20~"  # as xterm sends it


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Node]:
    with running_node(tmp_path_factory.mktemp("monitor"), PENDULUM) as client:
        yield client


@pytest.fixture
def fresh(node: Node) -> Node:
    """Configured, and nothing is forced."""
    node.release()
    ways = {"configured": (), "armed": ("disarm",), "running": ("disarm",), "cleared": ("arm", "disarm")}
    for step in {**ways, "tripped": ("clear", "arm", "disarm")}[node.status()["state"]]:
        node.ask(step)
    assert node.status()["state"] == "configured"
    return node


async def until(app: Monitor, *words: str, seconds: float = 20.0) -> str:
    """The screen, as soon as it has all these words on it."""
    end = time.monotonic() + seconds
    while not all(word in (shown := text_of(app)) for word in words):
        assert time.monotonic() < end, f"waited in vain for {words} in\n{shown}"
        await asyncio.sleep(0.05)
    return shown


def on_screen(endpoint: str, act: Callable[[Monitor, Pilot[None]], Awaitable[None]], size=(80, 24)) -> None:
    async def run() -> None:
        app = Monitor(endpoint)
        async with app.run_test(size=size, notifications=True) as pilot:
            await act(app, pilot)

    asyncio.run(run())


def test_everything_has_its_place_on_a_small_terminal(fresh):
    fresh.arm()
    fresh.run()

    async def act(app, pilot):
        shown = await until(app, "RUNNING", "p99", "requests", "role admin")
        lines = shown.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        assert lines[1].split()[-4:] == ["unit", "limits", "last", "minute"]
        row = next(line for line in lines if TORQUE in line)
        assert row.split()[:4] == [TORQUE, "0.0000", "N*m", "-50..50"]
        assert "pendulum.energy" in shown
        assert "wake latency" in shown
        assert "1us   10    100   1ms   10ms" in shown
        assert "drivers" in shown
        assert lines[-1].startswith("F2 arm F3 run F4 pause F5 resume F6 clear F9 TRIP")
        assert lines[-1].endswith("^Q quit")

    on_screen(fresh.endpoint, act)


def test_from_armed_to_tripped_by_keys_alone(fresh):
    async def act(app, pilot):
        await until(app, "CONFIGURED", "role admin")
        await pilot.press("f2")
        await until(app, " ARMED ", "arm: done at tick")
        await pilot.press("f3")
        await until(app, "Its devices get live values")
        await pilot.press("enter")  # no yes
        await pilot.pause(0.3)
        assert fresh.status()["state"] == "armed"
        await pilot.press("f3")
        await pilot.press("y")
        await until(app, " RUNNING ", "armed -> running")
        await pilot.press("f4")
        await until(app, " PAUSED ")
        await pilot.press("f5")
        await until(app, "resume: done")
        await pilot.press("f9")
        await until(app, " TRIPPED ", "asked for by the operator")
        await pilot.press("f6")
        await until(app, " CLEARED ")
        await pilot.press("f3", "y")  # not possible now: the refusal is shown
        await until(app, "run: ")

    on_screen(fresh.endpoint, act)


def test_a_signal_is_found_forced_within_its_limits_and_released(fresh):
    async def act(app, pilot):
        await until(app, TORQUE, "role admin")
        await pilot.press(*"shoulder", "full_stop", *"tor")
        shown = await until(app, "signal: shoulder.tor_")
        assert "pendulum.elbow" not in shown
        await pilot.press("enter")
        await until(app, f"Force {TORQUE} [N*m]", "limits -50..50")
        await pilot.press(*"99", "enter")
        await until(app, "99 is outside -50..50 N*m")
        assert not fresh.status()["forced"]
        await pilot.press("backspace", "backspace", *"2", "full_stop", *"5", "enter")
        await until(app, f"F {TORQUE}      2.5000")
        assert fresh.status()["forced"] == {TORQUE: 2.5}
        await pilot.press("delete")
        await until(app, f"  {TORQUE}      0.0000")
        assert fresh.status()["forced"] == {}
        await pilot.press("escape")
        await until(app, "pendulum.energy")

    on_screen(fresh.endpoint, act)


def test_a_trip_works_from_within_a_dialog(fresh):
    fresh.arm()
    fresh.run()

    async def act(app, pilot):
        await until(app, " RUNNING ", "role admin")
        await pilot.press("enter")
        await until(app, "Force ")
        await pilot.press("f9")
        await until(app, " TRIPPED ")

    on_screen(fresh.endpoint, act)


def test_the_chosen_line_stays_in_sight(fresh):
    async def act(app, pilot):
        await until(app, "role admin")
        await pilot.press("end")
        assert app.table.chosen.signal.name == "pendulum.energy"
        assert "pendulum.energy" in await until(app, "pendulum.energy")
        await pilot.press("up", "up", "home", "down")
        assert app.table.chosen.index == 1

    on_screen(fresh.endpoint, act, size=(80, 17))  # three lines for nine signals


def test_who_may_watch_only_has_no_commands_and_hears_that_a_trip_was_refused(tmp_path):
    with running_node(tmp_path, PENDULUM, **{"bridge.role": "watch"}) as node:

        async def act(app, pilot):
            shown = await until(app, "role watch")
            assert "F2 arm" not in shown
            await pilot.press("f2", "enter")
            await pilot.pause(0.3)
            assert len(app.screen_stack) == 1
            await pilot.press("f9")
            await until(app, "trip: trip is for operate")

        on_screen(node.endpoint, act)
        assert node.status()["state"] == "configured"


def test_silence_is_said_and_the_monitor_comes_back_by_itself(fresh):
    async def act(app, pilot):
        await until(app, "CONFIGURED", "role admin")
        bridge = children(_node_of(fresh), "bridge.publish.server")[0]
        os.kill(bridge, signal.SIGSTOP)
        await until(app, "was configured", "no messages for 3 s")
        os.kill(bridge, signal.SIGCONT)
        await until(app, "role admin")
        tick, seq = app.model.state["tick"], app.model.state["seq"]
        os.kill(bridge, signal.SIGKILL)
        end = time.monotonic() + 60
        while app.model.state["seq"] >= seq:  # the next bridge counts from 0
            assert time.monotonic() < end, text_of(app)
            await asyncio.sleep(0.05)
        assert app.model.state["tick"] > tick
        await until(app, "role admin")
        await pilot.press("f2")
        await until(app, " ARMED ")

    on_screen(fresh.endpoint, act)


def _node_of(client: Node) -> int:
    """Its process: the one whose command line has the port of the client."""
    port = client.endpoint.rpartition(":")[2].encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if b"hilnode.cli\0run" in line and b":" + port in line:
            return int(path.name)
    raise AssertionError("the node is not there")


@pytest.mark.slow
def test_the_monitor_waits_for_a_node_and_takes_the_next_one(tmp_path):
    """Another machine at the same address: other signals, and everything begins anew."""
    ports = {
        "bridge.publish": f"tcp://127.0.0.1:{free_port()}",
        "bridge.commands": f"tcp://127.0.0.1:{free_port()}",
    }
    endpoint = ports["bridge.commands"]

    async def act(app, pilot):
        await until(app, "did not answer to hello")
        await pilot.press("f9")
        await until(app, "trip was not sent")
        for config, last in ((PENDULUM, "pendulum.energy"), (PENDULUM + DEVICE, "ecu.angle")):
            started = running_node(tmp_path, config, **ports)
            await asyncio.to_thread(started.__enter__)
            await until(app, "CONFIGURED", last, "role admin", seconds=60)
            assert app.model.signals[-1].name == last
            await asyncio.to_thread(started.__exit__, None, None, None)
            await until(app, "did not answer", seconds=30)

    on_screen(endpoint, act)


def in_a_terminal(endpoint: str, slave: int) -> subprocess.Popen[bytes]:
    """The monitor in a terminal of the old kind: TERM=xterm, 80 x 24."""
    ioctl(slave, TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLORTERM", "TERM")} | {"TERM": "xterm"}
    return subprocess.Popen(
        [sys.executable, "-m", "hilnode.cli", "monitor", endpoint],
        stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("started", [signal.SIG_DFL, signal.SIG_IGN], ids=["plainly", "under nohup"])
def test_a_terminal_that_is_gone_ends_it(started):
    """Whether there is a node or not: a connection that drops must not leave a monitor behind that draws for ever."""
    master, slave = pty.openpty()
    usual = signal.signal(signal.SIGHUP, started)  # which it inherits
    try:
        process = in_a_terminal("tcp://127.0.0.1:9", slave)
    finally:
        signal.signal(signal.SIGHUP, usual)
    os.close(slave)
    try:
        assert os.read(master, 1)  # it has begun to draw
        os.close(master)
        assert process.wait(20) == -signal.SIGHUP
    finally:
        process.kill()
        process.wait()


def test_a_real_terminal_of_the_old_kind(fresh):
    """TERM=xterm, 80 x 24, no mouse: the screen comes, F9 trips, Ctrl-Q leaves."""
    fresh.arm()
    fresh.run()
    master, slave = pty.openpty()
    process = in_a_terminal(fresh.endpoint, slave)
    os.close(slave)
    seen = bytearray()

    def read() -> None:
        try:
            while more := os.read(master, 65536):
                seen.extend(more)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_for(lambda: b"RUNNING" in seen and b"F9 TRIP" in seen, "the screen")
        assert b"\x1b[38;2;" not in seen  # no colours that it does not know
        os.write(master, F9)
        wait_for(lambda: fresh.status()["state"] == "tripped", "the trip")
        os.write(master, b"\x11")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(master)
