"""The node's numbers: each beside its peer or its bound, in one run, alternating, because machines are noisy.

    python tools/bench_node.py                 every row but the soak
    python tools/bench_node.py wake buffers    some rows
    python tools/bench_node.py soak            ten minutes at 1 kHz

Prints a table; exit code 1 if a row misses its bound. Needs cyclictest (Debian: rt-tests) for `wake`, and rights for
SCHED_FIFO, which it says if it has not got them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hilnode.shared import timinglog
from hilnode.shared.realtime import choose_cpu
from hilnode.shared.row import Flag

TOOLS = Path(__file__).resolve().parent
CPU = choose_cpu("auto")
PRIORITY = 80
PUBLISH = "tcp://127.0.0.1:19872"
console = Console()


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    reached: str
    bound: str
    good: bool


def config(folder: Path, more: str = "", *, bridge: bool = True) -> Path:
    """A config file for a run of the benchmark."""
    path = folder / "bench.toml"
    path.write_text(
        f"""
[node]
name = "benchmark"
priority = {PRIORITY}
cpu = {CPU}
max_overruns = 0
[bridge]
enabled = {"true" if bridge else "false"}
publish = "{PUBLISH}"
{more}
[web]
enabled = false
"""
    )
    return path


@contextmanager
def node(folder: Path, *options: str, more: str = "", bridge: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """`hilnode run` in a process of its own; stopped at the end."""
    out = folder / "run"
    command = [sys.executable, "-m", "hilnode.cli", "run", str(config(folder, more, bridge=bridge)), "-q"]
    process = subprocess.Popen([*command, "--out", str(out), *options], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@contextmanager
def helper(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`tools/bench_load.py` in a process of its own; killed at the end."""
    command = [sys.executable, str(TOOLS / "bench_load.py"), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def running(folder: Path, timeout: float = 120.0) -> None:
    """Wait until the node in `folder` says that it runs."""
    events = folder / "run" / "events.jsonl"
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if events.exists() and "armed -> running" in events.read_text():
            return
        time.sleep(0.01)
    raise TimeoutError("the node did not start")


def log_of(folder: Path) -> timinglog.TimingLog:
    return timinglog.read(folder / "run" / timinglog.FILE_NAME)


# -- wake latency beside cyclictest -----------------------------------------------------------------------------------


def cyclictest(seconds: int) -> np.ndarray:
    """Latencies [ns] as a histogram: [latency, count]."""
    command = [
        "cyclictest",
        "-q",
        "-m",
        "-t1",
        f"-p{PRIORITY}",
        "-i1000",
        f"-a{CPU}",
        f"-D{seconds}",
        "-N",
        "-h",
        "999999",
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    bins = [tuple(map(int, line.split())) for line in text.splitlines() if line[:1].isdigit()]
    overflow = next(int(line.split()[-1]) for line in text.splitlines() if "Histogram Overflows" in line)
    return np.array([*(b for b in bins if b[1]), (1_000_000, overflow)])


def percentile(histogram: np.ndarray, share: float) -> float:
    total = np.cumsum(histogram[:, 1])
    return float(histogram[np.searchsorted(total, share * total[-1]), 0])


def wake(rounds: int = 5, seconds: int = 10, hogs: int = 2, subscribers: int = 10) -> list[Row]:
    """Node and cyclictest take turns on the same CPU at the same priority under the same load."""
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []
    with helper("subscribe", PUBLISH, str(subscribers), str(CPU)):
        for turn in range(rounds):
            ours.append(_wake_of_node(seconds, hogs))
            with helper("stand-in", PUBLISH, str(hogs), str(CPU)):
                theirs.append(cyclictest(seconds))
            console.print(
                f"  turn {turn + 1}/{rounds}: p50 {np.percentile(ours[-1], 50) / 1e3:.1f} / "
                f"{percentile(theirs[-1], 0.5) / 1e3:.1f} us, p99 {np.percentile(ours[-1], 99) / 1e3:.1f} / "
                f"{percentile(theirs[-1], 0.99) / 1e3:.1f} us (hilnode / cyclictest)"
            )
    rows = []
    for name, share, bound in (("median", 0.5, 1.15), ("p99", 0.99, 1.3)):
        a = float(np.median([np.percentile(x, 100 * share) for x in ours]))
        b = float(np.median([percentile(x, share) for x in theirs]))
        reached = f"{a / 1e3:.1f} us, cyclictest {b / 1e3:.1f} us: {a / b:.2f}x"
        rows.append(Row(f"wake latency, {name} of {rounds} x {seconds} s", reached, f"<= {bound}x", a <= bound * b))
    return rows


def _wake_of_node(seconds: int, hogs: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import bench_load; bench_load.start_hogs({hogs}); "
        script += "from hilnode.cli.main import app; app()"
        command = [sys.executable, "-c", script, "run", str(config(folder)), "-q", "--for", str(seconds + 1)]
        subprocess.run([*command, "--out", str(folder / "run")], stderr=subprocess.DEVNULL, check=True)
        log = log_of(folder)
        return (log.wake - log.deadline)[1000:]


# -- the tick's own cost and the buffers ------------------------------------------------------------------------------

WIDE = (
    """
[plant]
kind = "bench_plants:wide"
[drivers.cable]
kind = "loopback"
channels = 32
[signals.inputs]
"""
    + "\n".join(f'"wide.in.{k}" = {{ from = "cable.in.{k}", filter_hz = 100.0, stale = "hold" }}' for k in range(32))
    + """
[signals.outputs]
"""
    + "\n".join(f'"cable.out.{k}" = {{ from = "wide.out.{k}", rate_limit = 1e6 }}' for k in range(32))
)


def own() -> list[Row]:
    """32 inputs from a device, conditioned; 32 commands back to it; rows of 2 KB; a plant that does nothing."""
    os.environ["PYTHONPATH"] = f"{TOOLS}:{os.environ.get('PYTHONPATH', '')}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, "--for", "5", more=WIDE, bridge=False) as process:
            process.wait(300)
        log = log_of(folder)
        busy = float(np.median((log.done - log.wake - (log.end - log.start))[500:])) / 1e3
        width = json.loads((folder / "run" / "run.json").read_text())["schema"]["words"] * 8
    ticks = 2_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, "--free", "--for", str(ticks // 1000), more=WIDE, bridge=False) as process:
            process.wait(300)
        events = [json.loads(line) for line in (folder / "run" / "events.jsonl").read_text().splitlines()]
        times = {e["what"]: e["time_ns"] for e in events}
        turn = (times["running -> stopped"] - times["armed -> running"]) / ticks / 1e3
    return [
        Row(f"own cost at 1 kHz, 32 signals, row of {width} B", f"median {busy:.2f} us", "<= 3 us", busy <= 3.0),
        Row("a whole turn as fast as possible, empty plant too", f"mean {turn:.2f} us", "<= 3 us", turn <= 3.0),
    ]


def buffers() -> list[Row]:
    """Mailbox read and ring push of 2 KB, inside compiled code."""
    from bench_kernels import mailbox_read_ns, ring_push_ns

    rows = []
    for what, measure, bound in (("mailbox read", mailbox_read_ns, 150), ("ring push", ring_push_ns, 600)):
        reached = float(np.median([measure(20_000) for _ in range(15)]))
        rows.append(Row(f"{what} of 2 KB", f"{reached:.0f} ns", f"<= {bound} ns", reached <= bound))
    return rows


# -- start, kills, watchdog, soak -------------------------------------------------------------------------------------


def start(rounds: int = 5) -> list[Row]:
    """From the command to the first tick, caches warm."""
    times = []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            began = time.monotonic_ns()
            with node(folder, "--for", "0.5") as process:
                process.wait(120)
            times.append((log_of(folder).wake[0] - began) / 1e9)
    reached = float(np.median(times[1:]))
    return [Row(f"warm start to first tick, median of {rounds}", f"{reached:.2f} s", "<= 2.5 s", reached <= 2.5)]


def kills(rounds: int = 4, seconds: float = 8.0) -> list[Row]:
    """Overruns with bridge and recorder killed in turn every half second, beside runs left in peace."""
    late = {True: 0, False: 0}
    killed = 0
    for turn in range(2 * rounds):
        harm = turn % 2 == 0
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with node(folder, "--for", str(seconds)) as process:
                running(folder)
                until = time.monotonic() + seconds - 1.5
                while harm and time.monotonic() < until:
                    time.sleep(0.5)
                    killed += kill_child(
                        process.pid, ("hilnode.node.timing_recorder", "bridge.publish.server")[killed % 2]
                    )
                process.wait(60)
            log = log_of(folder)
            late[harm] += int(((log.flags & Flag.OVERRUN) != 0).sum())
    reached = f"{late[True]} late ticks with {killed} kills, {late[False]} without"
    return [
        Row(
            f"kill -9 of bridge and recorder, {rounds} x {seconds:g} s each",
            reached,
            "not more",
            late[True] <= late[False],
        )
    ]


def kill_child(parent: int, module: str) -> int:
    """kill -9 the child of `parent` that runs `module`; how many there were."""
    found = 0
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if module in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            os.kill(int(pid), signal.SIGKILL)
            found += 1
    return found


SAFE = -7.5
DEVICE = """
[drivers.valve]
kind = "udp"
send = "127.0.0.1:{port}"
outputs = [{{ name = "ao0", low = -10.0, high = 10.0, safe = -7.5 }}]
[signals.outputs."valve.ao0"]
from = "pendulum.shoulder.angle"
"""


def watchdog(rounds: int = 10) -> list[Row]:
    """From the signal to the datagram with the safe value at the device."""
    rows = []
    for name in ("SIGKILL", "SIGSTOP"):
        times = [_time_to_safe(getattr(signal, name)) for _ in range(rounds)]
        worst = max(times) * 1e3
        reached = f"worst {worst:.1f} ms, median {np.median(times) * 1e3:.1f} ms"
        rows.append(Row(f"watchdog after {name}, {rounds} times", reached, "<= 100 ms", worst <= 100))
    return rows


def _drain(device: socket.socket) -> float:
    """Take everything that has come so far; the newest value."""
    value = SAFE
    device.setblocking(False)
    try:
        while True:
            value = struct.unpack("<d", device.recv(64))[0]
    except BlockingIOError:
        device.settimeout(5)
        return value


def _time_to_safe(how: signal.Signals) -> float:
    device = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    device.bind(("127.0.0.1", 0))
    device.settimeout(5)
    with tempfile.TemporaryDirectory() as name, device:
        folder = Path(name)
        with node(folder, more=DEVICE.format(port=device.getsockname()[1]), bridge=False) as process:
            running(folder)
            time.sleep(0.5 + 0.1 * np.random.default_rng().random())
            newest = _drain(device)
            assert newest != SAFE, "the device must get live values before the node is stopped"
            began = time.monotonic()
            process.send_signal(how)
            while struct.unpack("<d", device.recv(64))[0] != SAFE:
                pass
            took = time.monotonic() - began
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            time.sleep(1.2)  # the watchdog mourns and takes the shared memory away
    return took


def soak(minutes: float = 10.0) -> list[Row]:
    """Every tick in the log and flat memory."""
    import psutil

    sizes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, "--for", str(60 * minutes)) as process:
            running(folder)
            began, view = time.monotonic(), psutil.Process(process.pid)
            while process.poll() is None:
                time.sleep(5)
                try:
                    sizes.append((time.monotonic() - began, view.memory_info().rss))
                except psutil.Error:
                    break
        log = log_of(folder)
        if process.returncode:
            console.print((folder / "run" / "events.jsonl").read_text()[-800:])
    after = [size for seconds, size in sizes if seconds > min(60.0, 30 * minutes)]
    growth = (max(after) - after[0]) / 1e6
    ticks = round(60_000 * minutes)
    complete = log.missing == 0 and len(log) == ticks and log.closed
    overruns = int(((log.flags & Flag.OVERRUN) != 0).sum())
    logged = f"{len(log)} ticks, {log.missing} missing, {overruns} overruns"
    held = f"{growth:.2f} MB of {after[0] / 1e6:.0f} MB"
    return [
        Row(f"{minutes:g} min at 1 kHz", logged, "none missing", complete),
        Row("memory growth after the first minute", held, "<= 1 MB", growth <= 1.0),
    ]


ROWS: dict[str, Callable[[], list[Row]]] = {
    "wake": wake,
    "own": own,
    "buffers": buffers,
    "start": start,
    "kills": kills,
    "watchdog": watchdog,
    "soak": soak,
}


def main(wanted: list[str]) -> int:
    unknown = [w for w in wanted if w not in ROWS]
    if unknown:
        console.print(f"no row called {', '.join(unknown)}; there are {', '.join(ROWS)}")
        return 2
    table = Table("what", "reached", "bound", "")
    rows: list[Row] = []
    for name in wanted or [r for r in ROWS if r != "soak"]:
        console.print(f"{name}: {(ROWS[name].__doc__ or '').splitlines()[0]}")
        rows += ROWS[name]()
    for row in rows:
        table.add_row(row.what, row.reached, row.bound, "[green]good[/]" if row.good else "[red]missed[/]")
    console.print(table)
    return 0 if all(r.good for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
