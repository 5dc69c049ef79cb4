"""Times of a serial device in a running node at 1 kHz: a byte into a tick's inputs, a plug pulled and put in again."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import make_config, wait_for
from test_serial_port import Plug

from drivers.serial.port import SerialPort
from hilnode.node.node import Node
from hilnode.shared.health import H
from hilnode.shared.row import Col

COUNT = 3000
PERIOD_US = 1000.0

DEVICE = """
import os, random, struct, sys, time
device, count, log = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng, times = random.Random(1), []
for n in range(1, count + 1):
    time.sleep(0.0015 + 0.002 * rng.random())  # at any phase of the tick, and slower than it
    body = b"\\xaa\\x55" + struct.pack("<d", n * 1e-3)
    frame = body + bytes([sum(body) & 255])
    times.append(time.monotonic_ns())
    os.write(device, frame)
open(log, "w").write("\\n".join(map(str, times)))
"""
"""Sends numbered frames from a process of its own, so that it shares no interpreter with the node."""

TEXT = """
log.timing = false
log.ring_seconds = 30
safety.watchdog = false
[drivers.gauge]
kind = "serial"
port = "{port}"
[drivers.gauge.receive]
format = "binary"
start = [0xAA, 0x55]
fields = [{{ name = "x", type = "float64" }}]
checksum = "sum8"
[signals.inputs."pendulum.shoulder.torque"]
from = "gauge.x"
"""


@pytest.mark.timing
def test_from_the_terminal_to_a_tick_within_a_period_and_300_us(tmp_path, name):
    device, cable = os.openpty()
    tty.setraw(cable)
    log = tmp_path / "sent"
    with Node(make_config(tmp_path, name, TEXT.format(port=os.ttyname(cable)))) as node:
        node.start()
        gauge = node.drivers["gauge"]
        assert isinstance(gauge, SerialPort)
        wait_for(lambda: node.driver_states()["gauge"][0].name == "CONNECTING" and len(node._rows) > 100, "the node")
        command = [sys.executable, "-c", DEVICE, str(device), str(COUNT), str(log)]
        subprocess.run(command, pass_fds=[device], check=True, timeout=120)
        wait_for(lambda: gauge.counts.frames == COUNT, "all frames")
        first = len(node._rows)
        wait_for(lambda: len(node._rows) > first + 3, "the last ones to be seen")
        rows = node._rows.reader(first=0, batch=40_000).read().copy()
        column = node.schema.at_inputs + [s.name for s in node.schema.inputs].index("pendulum.shoulder.torque")
    os.close(device)
    os.close(cable)
    latency = latencies(rows, column, log)
    p50, p99, top = np.percentile(latency, (50, 99, 100))
    print(f"terminal to tick: p50 {p50:.0f} us, p99 {p99:.0f} us, max {top:.0f} us, {len(latency)} frames")
    assert len(latency) == COUNT
    assert latency.min() > 0
    assert p99 <= PERIOD_US + 300.0


def latencies(rows: np.ndarray, column: int, log: Path) -> np.ndarray:
    """[us] from writing each number to the end of the first tick that has it, or a later one, among its inputs."""
    sent = np.array([int(line) for line in log.read_text().split()])
    seen = np.round(rows.view(np.float64)[:, column] * 1e3).astype(int)
    newest = np.maximum.accumulate(seen)
    at = np.searchsorted(newest, np.arange(1, len(sent) + 1))
    return (rows[at, Col.START] - sent) * 1e-3


STALE_MS = 20.0
STALE = f"""stale = "default"
stale_ms = {STALE_MS}
default = -7.0
"""


@pytest.mark.timing
def test_a_plug_that_is_pulled_acts_after_stale_ms_and_one_that_is_put_in_within_a_second(tmp_path, name):
    gone, back = replugged(tmp_path, name, times=5, away=0.7)
    print(f"pulled to stale: {gone} ms; put in to values: {back} ms")
    assert max(gone) <= STALE_MS + PERIOD_US * 1e-3
    assert max(back) <= 1000.0


def test_a_plug_is_pulled_and_put_in_again(tmp_path, name):
    """The same whatever the machine is busy with: the policy never acts before its time, and values come back."""
    gone, back = replugged(tmp_path, name, times=1, away=0.1)
    assert STALE_MS - 2.0 <= gone[0] <= 5000.0  # the last frame is up to 2 ms older than the pulling
    assert 0.0 < back[0] <= 5000.0


def replugged(folder: Path, name: str, times: int, away: float) -> tuple[list[float], list[float]]:
    """From pulling the plug to the tick that uses the default, and from putting it in to the next value [ms]."""
    plug = Plug(folder / "port")
    text = TEXT.format(port=plug.path) + STALE
    gone, back, pulled, put_in = [], [], [], []
    with Node(make_config(folder, name, text)) as node, contextlib.ExitStack() as sending:
        node.start()
        sender = sending.enter_context(Sender(plug))
        frames = node.runners["gauge"].health
        for _ in range(times):
            before = int(frames[H.FRAMES])
            wait_for(lambda before=before: frames[H.FRAMES] > before + 100, "frames")
            with sender.stopped():
                plug.unplug()
                pulled.append(time.monotonic_ns())
                wait_for(lambda: node.last_row()["pendulum.shoulder.torque"] == -7.0, "the stale policy")
                time.sleep(away)
                put_in.append(time.monotonic_ns())
                plug.plug_in()
            wait_for(lambda: node.last_row()["pendulum.shoulder.torque"] == 1.0, "values")
        rows = node._rows.reader(first=0, batch=40_000).read().copy()
        column = node.schema.at_inputs + [s.name for s in node.schema.inputs].index("pendulum.shoulder.torque")
    plug.unplug()
    started, torque = rows[:, Col.START], rows.view(np.float64)[:, column]
    for moments, value, into in ((pulled, -7.0, gone), (put_in, 1.0, back)):
        for moment in moments:
            at = np.flatnonzero((started >= moment) & (torque == value))[0]
            into.append(float(started[at] - moment) * 1e-6)
    return gone, back


class Sender(threading.Thread):
    """Says the same frame at 1 kHz, except while it is stopped."""

    def __init__(self, plug: Plug) -> None:
        super().__init__(daemon=True)
        self._plug, self._ending, self._alone = plug, threading.Event(), threading.Lock()

    def run(self) -> None:
        body = b"\xaa\x55" + struct.pack("<d", 1.0)
        while not self._ending.wait(0.001):
            with self._alone, contextlib.suppress(BlockingIOError):
                self._plug.say(body + bytes([sum(body) & 255]))

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        with self._alone:
            yield

    def __enter__(self) -> Sender:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self.join()
