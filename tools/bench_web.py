"""What the page in the browser costs: bytes, the server's share of a core, the age of what is shown, the tick.

python tools/bench_web.py [--seconds 20] [--rounds 3]

The page is a program that acknowledges frames at the rate of a screen and draws nothing. The node digs in a ground of
256 x 256 samples (tools/bench_ground.py). Ratios are from runs with and without pages in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bench_node import CPU, PRIORITY, TOOLS, log_of, running
from websockets.asyncio.client import connect

ADDRESS = "127.0.0.1:18080"
FRAME = struct.Struct("<4xIqdd")
CONFIG = f"""
[node]
name = "bench-web"
priority = {PRIORITY}
cpu = {CPU}
max_overruns = 0
[bridge]
publish = "tcp://127.0.0.1:19875"
commands = "tcp://127.0.0.1:19876"
[plant]
kind = "bench_ground:digger"
[web]
enabled = true
address = "http://{ADDRESS}"
"""
FIRST = 2000  # ticks that are not judged: the pages are just coming
ENOUGH = {"KB/s": 300.0, "cpu %": 10.0, "age ms": 600.0, "tick": 1.2}


@contextmanager
def node(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`hilnode run` in a process of its own, once it runs; stopped at the end."""
    path = folder / "bench.toml"
    path.write_text(CONFIG)
    command = [sys.executable, "-m", "hilnode.cli", "run", str(path), "-q", "--out", str(folder / "run")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        running(folder)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


async def be_page(seconds: float, hz: float, plots: int) -> dict[str, float]:
    """One page: what it got in so many seconds, after a first one that is not counted."""
    while True:
        try:
            return await _watch(seconds, hz, plots)
        except OSError:
            await asyncio.sleep(0.2)


async def _watch(seconds: float, hz: float, plots: int) -> dict[str, float]:
    ages: list[float] = []
    total, frames, due = 0, 0, 0.0
    async with connect(f"ws://{ADDRESS}/stream", max_size=None, compression=None) as socket:
        await socket.send(json.dumps({"watch": [f"digger.out.{k}" for k in range(plots)]}))
        began = 0.0
        async for message in socket:
            now = time.monotonic()
            if began and now > began + seconds:
                break
            total += len(message)
            if isinstance(message, bytes) and message[0] == 1:
                frame, _, _, age = FRAME.unpack_from(message)
                if frame == 60:
                    total, frames, began = 0, 0, now
                frames += 1
                due = max(now, due + 1.0 / hz)
                await asyncio.sleep(due - now)  # until it is drawn
                ages.append(age + time.monotonic() - now)
                await socket.send(json.dumps({"ack": frame}))
    return {
        "KB/s": total / seconds / 1e3,
        "frames/s": frames / seconds,
        "age p50 ms": 1e3 * float(np.percentile(ages, 50)),
        "age p99 ms": 1e3 * float(np.percentile(ages, 99)),
    }


@contextmanager
def pages(count: int, seconds: float, hz: float, plots: int = 0) -> Iterator[list[subprocess.Popen[str]]]:
    """Pages in processes of their own."""
    command = [sys.executable, __file__, "page", str(seconds), str(hz), str(plots)]
    made = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            process.communicate()


def server_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The web server among the children of a node."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for child in psutil.Process(process.pid).children():
            if "bridge.web.server" in child.cmdline():
                return child
        time.sleep(0.1)
    raise TimeoutError("the node has no web server")


def stream(seconds: float, hz: float, plots: int) -> dict[str, float]:
    """One page at a node that digs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder) as process:
            server = server_of(process)
            with pages(1, seconds, hz, plots) as (page,):
                time.sleep(3.0)
                before = server.cpu_times()
                time.sleep(seconds - 2.0)
                after = server.cpu_times()
                assert page.stdout is not None
                found: dict[str, float] = json.loads(page.stdout.readline())
    busy = after.user + after.system - before.user - before.system
    return found | {"cpu %": 100.0 * busy / (seconds - 2.0)}


def tick_p99(count: int, seconds: float) -> float:
    """p99 of a tick's end after its deadline [us], with so many pages open."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder), pages(count, 3600.0, 60.0):
            time.sleep(seconds)
        log = log_of(folder)
    late = (log.done - log.deadline)[FIRST:]
    return float(np.percentile(late, 99)) / 1e3


def report(what: str, value: float, limit: float, unit: str) -> bool:
    good = value <= limit
    print(f"{what:<52} {value:8.1f} {unit:<5} reach {limit:g}  {'yes' if good else 'NO'}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH", "")]))
    good = True
    for what, hz, plots in (
        ("60 Hz", 60.0, 0),
        ("60 Hz, 4 plots", 60.0, 4),
        ("a page that draws 5 times a second", 5.0, 0),
    ):
        found: dict[str, Any] = stream(given.seconds, hz, plots)
        print(f"{what}: {found['frames/s']:.1f} frames/s, age p50 {found['age p50 ms']:.1f} ms")
        good &= report("  to the page", found["KB/s"], ENOUGH["KB/s"], "KB/s")
        good &= report("  server", found["cpu %"], ENOUGH["cpu %"], "%")
        good &= report("  age of what is shown, p99", found["age p99 ms"], ENOUGH["age ms"], "ms")
    times: dict[int, list[float]] = {0: [], 5: []}
    for _ in range(given.rounds):
        for count in times:
            times[count].append(tick_p99(count, given.seconds))
    alone, beside = (float(np.median(times[count])) for count in (0, 5))
    good &= report(
        f"tick p99 with 5 pages ({beside:.0f} us) / without ({alone:.0f} us)", beside / alone, ENOUGH["tick"], ""
    )
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["page"]:
        seconds, hz, plots = map(float, sys.argv[2:])
        print(json.dumps(asyncio.run(be_page(seconds, hz, int(plots)))), flush=True)
        sys.exit(0)
    sys.exit(main())
