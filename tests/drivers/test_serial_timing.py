"""How long a byte takes from the terminal to a tick's inputs, in a running node at 1 kHz."""

import os
import subprocess
import sys
import tty
from pathlib import Path

import numpy as np
import pytest
from support import make_config, wait_for

from hilnode.node import Node
from hilnode.row import Col

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
        wait_for(lambda: node.driver_states()["gauge"][0].name == "CONNECTING" and len(node._rows) > 100, "the node")
        command = [sys.executable, "-c", DEVICE, str(device), str(COUNT), str(log)]
        subprocess.run(command, pass_fds=[device], check=True, timeout=120)
        wait_for(lambda: node.drivers["gauge"].counts.frames == COUNT, "all frames")
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
