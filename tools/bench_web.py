"""What the page in the browser costs: bytes, the server's share of a core, the age of what is shown, the tick.

    python tools/bench_web.py [--seconds 20] [--rounds 3]     a toy that digs all the time
    python tools/bench_web.py --excavator --seconds 60        the machine that `hilnode run` starts, while it digs
    python tools/bench_web.py --excavator --rows age --seconds 600

The page is a program that acknowledges frames at the rate of a screen and draws nothing; for the row `age` it is the
real one in Chromium, which draws without a graphics card. What is shown there grows older from one picture to the next,
so its age is taken all the time and not only when a picture is finished; what the page may be wrong about the server's
clock is added. The ground has 256 x 256 samples or more (tools/bench_ground.py is the toy). Ratios are from runs with
and without pages in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bench_node import CPU, PRIORITY, TOOLS, log_of, running
from websockets.asyncio.client import connect

from bridge import Node
from hilnode.shared.realtime import keep_off

ADDRESS = "127.0.0.1:18080"
FRAME = struct.Struct("<4xIqddd")
COMMANDS = "tcp://127.0.0.1:19876"
KEYS = {
    "node.name": "bench-web",
    "node.priority": str(PRIORITY),
    "node.cpu": str(CPU),
    "node.max_overruns": "0",
    "bridge.publish": "tcp://127.0.0.1:19875",
    "bridge.commands": COMMANDS,
    "bridge.ecu": "tcp://127.0.0.1:19877",
    "web.enabled": "true",
    "web.address": f"http://{ADDRESS}",
}
EXCAVATOR = TOOLS.parent / "configs" / "excavator.toml"
DIGS_WITHIN = 180.0  # [s] it drives to the place and anchors itself first
ROWS = ("stream", "plots", "slow", "age", "tick")
WINDOW_S = 5.0  # [s] in each of which there must be pictures
GRAIN_S = 0.01  # [s] between two ages of what is shown
COMES_WITHIN = 60.0  # [s] that pages may take until they get frames
ENOUGH = {"KB/s": 300.0, "cpu %": 10.0, "age ms": 600.0, "tick": 1.2, "frames/s": 58.0}


@dataclass(frozen=True)
class Machine:
    """What is run, some of its signals, and the one that says that it digs."""

    config: Path | None
    plots: tuple[str, ...]
    digs: str = ""


TOY = Machine(None, tuple(f"digger.out.{k}" for k in range(4)))
REAL = Machine(
    EXCAVATOR, tuple(f"excavator.{joint}.angle" for joint in ("boom", "stick", "bucket", "swing")),
    "excavator.bucket.fill",
)  # fmt: skip


@contextmanager
def node(folder: Path, machine: Machine, *, digging: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """`hilnode run` in a process of its own, once it runs, or even digs; stopped at the end."""
    path = machine.config or folder / "bench.toml"
    if machine.config is None:
        path.write_text('plant.kind = "bench_ground:digger"\n')
    command = [sys.executable, "-m", "hilnode.cli", "run", str(path), "-q", "--out", str(folder / "run")]
    command += [word for key, value in KEYS.items() for word in ("--set", f"{key}={value}")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        running(folder, 600.0)
        if digging and machine.digs:
            with Node(COMMANDS) as remote:
                remote.wait_until(machine.digs, gt=0.05, timeout=DIGS_WITHIN)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


async def be_page(seconds: float, hz: float, plots: Sequence[str]) -> dict[str, float]:
    """One page: what it got in so many seconds, after a first one that is not counted."""
    while True:
        try:
            return await _watch(seconds, hz, plots)
        except OSError:
            await asyncio.sleep(0.2)


async def _watch(seconds: float, hz: float, plots: Sequence[str]) -> dict[str, float]:
    ages: list[float] = []
    each: Counter[int] = Counter()  # bytes in each second
    total, frames, due = 0, 0, 0.0
    async with connect(f"ws://{ADDRESS}/stream", max_size=None, compression=None) as socket:
        await socket.send(json.dumps({"watch": list(plots)}))
        began = 0.0
        async for message in socket:
            now = time.monotonic()
            if began and now > began + seconds:
                break
            total += len(message)
            each[int(now - began)] += len(message) if began else 0
            if isinstance(message, bytes) and message[0] == 1:
                frame, _, _, age, sent = FRAME.unpack_from(message)
                if frame == 60:
                    total, frames, began = 0, 0, now
                    print("frames come", flush=True)
                frames += 1
                due = max(now, due + 1.0 / hz)
                await asyncio.sleep(due - now)  # until it is drawn
                ages.append(age + time.monotonic() - sent)
                await socket.send(json.dumps({"ack": frame}))
    return {
        "KB/s": total / seconds / 1e3,
        "most KB/s": max(each.values()) / 1e3,
        "frames/s": frames / seconds,
        "age p50 ms": 1e3 * float(np.percentile(ages, 50)),
        "age p99 ms": 1e3 * float(np.percentile(ages, 99)),
    }


@contextmanager
def pages(count: int, seconds: float, hz: float, plots: Sequence[str] = ()) -> Iterator[list[subprocess.Popen[str]]]:
    """Pages in processes of their own. They stand for other PCs: from their first instruction on they keep off the
    tick's CPU, also while they load Python. They are there once they get frames."""
    command = [sys.executable, __file__, "page", str(seconds), str(hz), *plots]
    aside = partial(keep_off, CPU)
    made = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=aside) for _ in range(count)]
    try:
        for process in made:
            assert process.stdout is not None
            if not select.select([process.stdout], [], [], COMES_WITHIN)[0] or not process.stdout.readline():
                raise TimeoutError(f"a page got no frames within {COMES_WITHIN:g} s")
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


def stream(machine: Machine, seconds: float, hz: float, plots: Sequence[str]) -> dict[str, float]:
    """One page at a node that digs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, machine, digging=True) as process:
            server = server_of(process)
            with pages(1, seconds, hz, plots) as (page,):
                time.sleep(1.0)
                before = server.cpu_times()
                time.sleep(seconds - 2.0)
                after = server.cpu_times()
                assert page.stdout is not None
                found: dict[str, float] = json.loads(page.stdout.readline())
    busy = after.user + after.system - before.user - before.system
    return found | {"cpu %": 100.0 * busy / (seconds - 2.0)}


@dataclass(frozen=True)
class Shown:
    """What the real page shows in Chromium: when each picture was finished [s] and how old it was then [s]."""

    finished: np.ndarray
    age: np.ndarray
    error: float  # [s] that the page may be wrong about the server's clock

    def ages(self) -> np.ndarray:
        """Of what is on the screen [s], every GRAIN_S from the first picture to the last."""
        moments = np.arange(self.finished[0], self.finished[-1], GRAIN_S)
        k = np.searchsorted(self.finished, moments, "right") - 1
        return np.asarray(self.age[k] + moments - self.finished[k] + self.error)

    def fewest(self) -> int:
        """Pictures in the window that has the fewest."""
        whole = int((self.finished[-1] - self.finished[0]) // WINDOW_S)
        counts = np.histogram(self.finished, self.finished[0] + WINDOW_S * np.arange(whole + 1))[0]
        return int(counts.min(initial=len(self.finished)))


def displayed(machine: Machine, seconds: float) -> Shown:
    """The default page in Chromium beside a machine that digs."""
    sys.path.insert(0, str(TOOLS.parent / "tests" / "web"))
    from browser import Browser

    pictures: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name, node(Path(name), machine, digging=True), Browser() as browser:
        page = browser.open(f"http://{ADDRESS}/")
        page.wait("window.hilnode?.frame > 20", 120)
        page.run("hilnode.pictures.length = 0")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(5.0)
            pictures += page.run("hilnode.pictures.splice(0)")
        assert page.run("hilnode.errors") == []
        error = page.run("hilnode.clockError")
        page.close()
    found = np.array(pictures)
    assert found[-1, 0] - found[0, 0] > 1e3 * (seconds - 2 * WINDOW_S), "the page stood still"
    return Shown(found[:, 0] / 1e3, found[:, 1], float(error))


def tick_p99(machine: Machine, count: int, seconds: float) -> float:
    """p99 of a tick's end after its deadline [us], with so many pages open: of the ticks between the moment at which
    all of them get frames and the one at which the first is closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, machine, digging=True), pages(count, 3600.0, 60.0):
            begin = time.monotonic_ns()
            time.sleep(seconds)
            end = time.monotonic_ns()
        log = log_of(folder)
    late = (log.done - log.deadline)[(log.deadline > begin) & (log.deadline < end)]
    assert len(late) > 900 * seconds, "ticks are missing"
    return float(np.percentile(late, 99)) / 1e3


def report(what: str, value: float, limit: float, unit: str, *, least: bool = False) -> bool:
    good = value >= limit if least else value <= limit
    print(f"{what:<52} {value:8.1f} {unit:<5} reach {limit:g}  {'yes' if good else 'NO'}", flush=True)
    return good


def judge_stream(what: str, machine: Machine, seconds: float, hz: float, plots: Sequence[str]) -> bool:
    found: dict[str, Any] = stream(machine, seconds, hz, plots)
    print(f"{what}: {found['frames/s']:.1f} frames/s, age p50 {found['age p50 ms']:.1f} ms")
    print(f"  in the busiest second {found['most KB/s']:.1f} KB")
    good = (
        report("  frames a second, at least", found["frames/s"], ENOUGH["frames/s"], "1/s", least=True)
        if hz >= 60
        else True
    )
    good &= report("  to the page", found["KB/s"], ENOUGH["KB/s"], "KB/s")
    good &= report("  server", found["cpu %"], ENOUGH["cpu %"], "%")
    return good & report("  age of what is shown, p99", found["age p99 ms"], ENOUGH["age ms"], "ms")


def judge_age(machine: Machine, seconds: float) -> bool:
    shown = displayed(machine, seconds)
    ages = 1e3 * shown.ages()
    span = shown.finished[-1] - shown.finished[0]
    print(f"in Chromium: {len(shown.age) / span:.1f} pictures/s for {span:.0f} s")
    fresh = 1e3 * np.percentile(shown.age, [50, 99])
    print(f"  when a picture is finished p50 {fresh[0]:.0f}, p99 {fresh[1]:.0f} ms")
    print(f"  all the time p50 {np.percentile(ages, 50):.0f}, worst {ages.max():.0f} ms")
    print(f"  clock of the server known to {1e3 * shown.error:.1f} ms")
    good = report(f"  pictures in each {WINDOW_S:g} s, at least", shown.fewest(), 1, "", least=True)
    for k, part in enumerate(np.array_split(ages, 3)):
        good &= report(
            f"  age of what is shown, third {k + 1}, p99", float(np.percentile(part, 99)), ENOUGH["age ms"], "ms"
        )
    return good & report("  age of what is shown, p99", float(np.percentile(ages, 99)), ENOUGH["age ms"], "ms")


def judge_tick(machine: Machine, seconds: float, rounds: int) -> bool:
    times: dict[int, list[float]] = {0: [], 5: []}
    for _ in range(rounds):
        for count in times:
            times[count].append(tick_p99(machine, count, seconds))
    alone, beside = (float(np.median(times[count])) for count in (0, 5))
    what = f"tick p99 with 5 pages ({beside:.0f} us) / without ({alone:.0f} us)"
    return report(what, beside / alone, ENOUGH["tick"], "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--excavator", action="store_true", help="the real machine instead of the toy")
    parser.add_argument("--rows", default="stream,plots,slow,tick", help=f"some of {','.join(ROWS)}")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH", "")]))
    machine, seconds = REAL if given.excavator else TOY, given.seconds
    print(f"load average at the beginning {os.getloadavg()[0]:.1f}")
    rows = {
        "stream": lambda: judge_stream("60 Hz", machine, seconds, 60.0, ()),
        "plots": lambda: judge_stream("60 Hz, 4 plots", machine, seconds, 60.0, machine.plots),
        "slow": lambda: judge_stream("a page that draws 5 times a second", machine, seconds, 5.0, ()),
        "age": lambda: judge_age(machine, seconds),
        "tick": lambda: judge_tick(machine, seconds, given.rounds),
    }
    good = True
    for name in given.rows.split(","):
        good &= rows[name]()
    print(f"load average at the end {os.getloadavg()[0]:.1f}")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["page"]:
        seconds, hz, *plots = sys.argv[2:]
        print(json.dumps(asyncio.run(be_page(float(seconds), float(hz), plots))), flush=True)
        sys.exit(0)
    sys.exit(main())
