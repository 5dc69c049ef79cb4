"""What drivers cost the tick, and what the tick's machine costs the drivers: eight at 1 kHz beside a node without any.

    python tools/bench_drivers.py                  all rows
    python tools/bench_drivers.py latency unplug   some rows
    python tools/bench_drivers.py --seconds 3      shorter runs

Prints a table; exit code 1 if a row misses its bound. The devices (kernel terminals, sockets, a Modbus server of
pyModbusTCP, an NI gRPC device server) live in processes of their own. A real device needs no CPU of the PC, so these
stay off the tick's, and come before the drivers on those that are left. What unevenness they still have is in the
periods too, and so is the machine's: beside them stands a process that does nothing but sleep a millisecond at a time,
on the CPUs of the drivers and with their priority. Read the periods on a machine where that one is even, and no time on
one whose hypervisor gives its CPUs to others: how much it took is a row too. A driver more is one entry in `DRIVERS`.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bench_node import CPU, TOOLS, Row, console, log_of, node, running
from rich.table import Table

from hilnode.health import BUCKETS, READS, H, Records, bucket, get_text, lower_edge
from hilnode.lockfree.ring import Ring
from hilnode.realtime import keep_off, make_thread_hard
from hilnode.row import HEADER, Col, Flag

PERIOD_US = 1000.0
RATIO = 1.3  # of the tick's p99 latency, with and without drivers
UNEVEN = 0.20  # p99 of a driver's period error
LATE_US = 300.0  # a byte may come this much later than a period, into a tick's inputs
STALE_MS = 20.0  # an input of the row `unplug` is stale at this age
BACK_MS = 1000.0  # values flow again so soon after the plug is in
AWAY = 0.7  # [s] the plug is out
DEFAULT = -7.0  # what a stale input becomes; the device says other numbers
ROUNDS = 3
START = b"\xaa\x55"
DRIVER_PRIORITY = 20  # as node.driver_priority has it by default
DEVICE_PRIORITY = 30  # a device's clock does not wait for a driver

SERIAL = """
kind = "serial"
port = "{port}"
receive.format = "binary"
receive.start = [0xAA, 0x55]
receive.fields = [{{ name = "x", type = "float64" }}]
receive.checksum = "sum8"
"""
UDP = 'kind = "udp"\nlisten = "127.0.0.1:{port}"\ninputs = ["x"]\n'
GAUGE = """
[drivers.gauge]{table}
[signals.inputs."pendulum.shoulder.torque"]
from = "gauge.x"
{more}
[log]
ring_seconds = {kept}
"""
STALE = """stale = "default"
stale_ms = {stale}
default = {default}
"""
MODBUS = """
kind = "modbus"
connect = "127.0.0.1:{port}"
poll_ms = 1
inputs = [{{ name = "x", holding = 0, type = "int16" }}]
"""
DAQ = """
kind = "daq"
device = "Dev1"
server = "127.0.0.1:{port}"
mode = "buffered"
rate = 1000.0
inputs = [{{ name = "x", channel = "ai1" }}]
"""
TWIN = 'kind = "udp"\nlisten = "127.0.0.1:9"\ninputs = ["x"]\ntwin = {{ x = "sin(t)" }}\n'
DRIVERS: dict[str, tuple[str, str]] = {
    "serial_a": ("serial", SERIAL),
    "serial_b": ("serial", SERIAL),
    "udp_a": ("udp", UDP),
    "modbus_a": ("modbus", MODBUS),
    "daq_a": ("daq", DAQ),
    "loopback_a": ("", 'kind = "loopback"\n'),
    "twin_a": ("", TWIN),
    "twin_b": ("", TWIN),
}
"""Name, the device it needs (see `DEVICES`), and its table with {port} for where that is."""


# -- the devices, in a process of their own ---------------------------------------------------------------------------


def at_1_khz(say: Callable[[int], object]) -> None:
    """Say something every millisecond, on a grid, for ever."""
    due, number = time.monotonic(), 0
    while True:
        due = max(due + 0.001, time.monotonic() - 0.01)
        time.sleep(max(0.0, due - time.monotonic()))
        number += 1
        say(number)


def framed(value: float) -> bytes:
    body = START + struct.pack("<d", value)
    return body + bytes([sum(body) & 255])


def terminal() -> tuple[int, str]:
    """The device's end, and the path of the other."""
    device, cable = os.openpty()
    tty.setraw(cable)
    os.set_blocking(device, False)
    return device, os.ttyname(cable)


def put(device: int, data: bytes) -> None:
    """What nobody reads is lost, as on a wire."""
    try:
        os.write(device, data)
    except BlockingIOError:
        return


def serial_device() -> str:
    device, path = terminal()
    start(lambda n: put(device, framed(n * 1e-3)))
    return path


def udp_device() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start(lambda n: out.sendto(struct.pack("<d", n * 1e-3), ("127.0.0.1", port)))
    return port


def modbus_device() -> int:
    from pyModbusTCP.server import ModbusServer

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    ModbusServer("127.0.0.1", port, no_block=True).start()
    return port


def daq_device() -> int:
    """NI's gRPC device server with a make-believe card, in a process of its own: it is as busy as a driver."""
    made = subprocess.Popen(
        [sys.executable, str(TOOLS / "ni_server.py"), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    atexit.register(made.kill)
    assert made.stdout is not None
    return int(made.stdout.readline().rpartition(":")[2])


def start(say: Callable[[int], object]) -> None:
    threading.Thread(target=at_1_khz, args=(say,), daemon=True).start()


DEVICES: dict[str, Callable[[], Any]] = {
    "serial": serial_device,
    "udp": udp_device,
    "modbus": modbus_device,
    "daq": daq_device,
}


def serve(names: list[str]) -> None:
    """Print where each device is, then be them until the end of standard input."""
    stand_aside(DEVICE_PRIORITY)
    print(json.dumps([DEVICES[n]() for n in names]), flush=True)
    sys.stdin.read()


def gauge(count: int) -> None:
    """Numbered frames at any phase of the tick; after them, when each was written."""
    stand_aside(DEVICE_PRIORITY)
    device, path = terminal()
    print(json.dumps(path), flush=True)
    sys.stdin.readline()
    dice, times = random.Random(1), []
    for n in range(1, count + 1):
        time.sleep(0.0015 + 0.002 * dice.random())
        frame = framed(n * 1e-3)
        times.append(time.monotonic_ns())
        put(device, frame)
    print(json.dumps(times), flush=True)
    sys.stdin.read()


def plug(folder: str, times: int) -> None:
    """A device that sends at 1 kHz and is pulled out and put back again and again; after that, when [ns]."""
    path, pulled, put_in = Path(folder) / "port", [], []

    def plug_in() -> tuple[int, int]:
        ends = os.openpty()
        tty.setraw(ends[1])
        os.set_blocking(ends[0], False)
        path.symlink_to(os.ttyname(ends[1]))
        return ends

    def say(device: int, seconds: float) -> None:
        end = due = time.monotonic()
        while due < end + seconds:
            due += 0.001
            time.sleep(max(0.0, due - time.monotonic()))
            put(device, framed(1.0))

    stand_aside(DEVICE_PRIORITY)
    device, cable = plug_in()
    print(json.dumps(str(path)), flush=True)
    sys.stdin.readline()
    for _ in range(times):
        say(device, 0.5)
        path.unlink()
        os.close(cable)
        os.close(device)
        pulled.append(time.monotonic_ns())
        time.sleep(AWAY)
        put_in.append(time.monotonic_ns())
        device, cable = plug_in()
        say(device, 1.0)
    print(json.dumps([pulled, put_in]), flush=True)
    sys.stdin.read()


def stand_aside(priority: int) -> None:
    """Keep this process, and what it starts, off the tick's CPU, with such a priority on the others."""
    keep_off(CPU)
    for line in make_thread_hard(-1, priority):
        print(line, file=sys.stderr)


def sleeper() -> None:
    """Sleep on a grid of milliseconds until the end of standard input; then the periods' histogram."""
    stand_aside(DRIVER_PRIORITY)
    ended, counts, last = threading.Event(), [0] * BUCKETS, time.monotonic_ns()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    due = time.monotonic()
    while not ended.is_set():
        due = max(due + 0.001, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic_ns()
        counts[bucket(now - last)] += 1
        last = now
    print(json.dumps(counts), flush=True)


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """This file in a process of its own; ended at the end."""
    made = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield made
    finally:
        try:
            made.communicate(timeout=20)  # the end of its standard input is its end, and that of its own processes
        except subprocess.TimeoutExpired:
            made.kill()
            made.communicate()


def line_of(other: subprocess.Popen[str]) -> Any:
    assert other.stdout is not None
    return json.loads(other.stdout.readline())


# -- rows -------------------------------------------------------------------------------------------------------------


def run(seconds: float, tables: str) -> tuple[float, float, np.ndarray]:
    """A node with these drivers: p50 and p99 of how late its ticks woke [us], and the drivers' records."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, "--for", str(seconds + 1.0), more=tables, bridge=False):
            running(folder)
            time.sleep(0.5)
            records = Records("benchmark")
            before = records.table.copy()
            time.sleep(max(0.2, seconds - 0.5))
            after = records.table.copy()
            records.close()
        log = log_of(folder)
    counted = (log.flags & Flag.GRACE) == 0
    late = (log.wake - log.deadline)[counted] / 1e3
    after[:, READS] -= before[:, READS]
    return float(np.percentile(late, 50)), float(np.percentile(late, 99)), after


def tables_of(places: dict[str, Any]) -> str:
    return "".join(f"[drivers.{n}]\n{text.format(port=places.get(n))}\n" for n, (_, text) in DRIVERS.items())


def tick(seconds: float) -> list[Row]:
    """The tick's wake latency with eight drivers beside that without, alternating; and the drivers' periods."""
    needy = [n for n, (device, _) in DRIVERS.items() if device]
    with process("serve", *(DRIVERS[n][0] for n in needy)) as devices, process("sleeper") as other:
        tables = tables_of(dict(zip(needy, line_of(devices), strict=True)))
        pairs = [(run(seconds, ""), run(seconds, tables)) for _ in range(ROUNDS)]
        counts, _ = other.communicate()
    ratios = sorted(loaded[1] / bare[1] for bare, loaded in pairs)
    middle = ratios[len(ratios) // 2]
    bare, loaded = (float(np.median([p[k][1] for p in pairs])) for k in (0, 1))
    rows = [
        Row(
            f"tick p99, {len(DRIVERS)} drivers / none",
            f"{middle:.2f} ({loaded:.0f} / {bare:.0f} us)",
            f"<= {RATIO:g}",
            middle <= RATIO,
        )
    ]
    floor, total = period_error(np.array(json.loads(counts)))
    rows.append(Row("period error p99, a process that only sleeps", f"{100 * floor:.0f} % of {total}", "", good=True))
    records = [r for pair in pairs for r in pair[1][2]]
    return rows + [period_row(name, [r for r in records if get_text(r, "name") == name]) for name in DRIVERS]


def period_row(name: str, records: list[np.ndarray]) -> Row:
    """How far a driver's periods are from a millisecond."""
    what, bound = f"period error p99, {name}", f"<= {100 * UNEVEN:.0f} %"
    counts = np.sum([r[READS] for r in records], axis=0) if records else np.zeros(BUCKETS, np.int64)
    if not counts.sum():
        state = f"no frames, {records[0][H.ERRORS]} errors: {get_text(records[0], 'trouble')}" if records else "not run"
        return Row(what, state, bound, good=False)
    p99, total = period_error(counts)
    return Row(what, f"{100 * p99:.0f} % of {total} frames", bound, p99 <= UNEVEN)


def period_error(counts: np.ndarray) -> tuple[float, int]:
    """p99 of how far periods are from a millisecond, as a share of it; and how many there were."""
    middles = np.array([0.5 * (lower_edge(k) + lower_edge(k + 1)) for k in range(BUCKETS)])
    errors = np.abs(middles - PERIOD_US) / PERIOD_US
    order = np.argsort(errors)
    share = np.cumsum(counts[order]) / counts.sum()
    return float(errors[order][np.searchsorted(share, 0.99)]), int(counts.sum())


def watched(device: subprocess.Popen[str], folder: Path, more: str = "") -> tuple[Any, np.ndarray]:
    """A node that reads the device in another process: what that one says at its end, and the node's rows meanwhile."""
    table = GAUGE.format(table=SERIAL.format(port=line_of(device)), kept=60, more=more)
    with node(folder, more=table, bridge=False) as made:
        running(folder)
        rows = Ring.attach("benchmark.rows")
        reader = rows.reader(batch=1_000_000)
        time.sleep(0.5)
        assert device.stdin is not None
        device.stdin.write("go\n")
        device.stdin.flush()
        said = line_of(device)
        time.sleep(0.1)
        seen = reader.read().copy()
        rows.close()
        if made.poll() is not None:
            told = [json.loads(line)["what"] for line in (folder / "run" / "events.jsonl").read_text().splitlines()]
            raise RuntimeError(f"the node ended before its time: {'; '.join(told[-3:])}")
    return said, seen


def unplug(seconds: float) -> list[Row]:
    """From pulling a plug to the stale policy in a tick, and from putting it in to values in a tick."""
    with tempfile.TemporaryDirectory() as name, process("plug", name, str(max(1, int(seconds)))) as device:
        more = STALE.format(stale=STALE_MS, default=DEFAULT)
        (pulled, put_in), seen = watched(device, Path(name), more)
    started, stale = seen[:, Col.START], seen.view(np.float64)[:, HEADER] == DEFAULT
    gone = [first_ms(started, stale, t) for t in pulled]
    back = [first_ms(started, ~stale, t) for t in put_in]
    bound = STALE_MS + PERIOD_US * 1e-3
    return [
        Row(
            f"plug pulled to stale policy (stale_ms = {STALE_MS:g})",
            f"median {np.median(gone):.2f}, worst {max(gone):.2f} ms of {len(gone)}",
            f"worst <= {bound:g} ms",
            max(gone) <= bound,
        ),
        Row(
            "plug put in to values in a tick",
            f"median {np.median(back):.0f}, worst {max(back):.0f} ms of {len(back)}",
            f"worst <= {BACK_MS:g} ms",
            max(back) <= BACK_MS,
        ),
    ]


def first_ms(started: np.ndarray, holds: np.ndarray, since: int) -> float:
    """From a moment [ns] to the start of the first tick for which something holds [ms]; infinite: none."""
    at = np.flatnonzero(holds & (started >= since))
    return float(started[at[0]] - since) * 1e-6 if len(at) else float("inf")


def latency(seconds: float) -> list[Row]:
    """From a byte on a terminal to the inputs of a tick."""
    count = int(seconds / 0.0025)
    with process("gauge", str(count)) as device, tempfile.TemporaryDirectory() as name:
        said, seen = watched(device, Path(name))
    sent = np.array(said)
    numbers = np.round(seen.view(np.float64)[:, HEADER] * 1e3).astype(int)  # the plant's first input
    at = np.searchsorted(np.maximum.accumulate(numbers), np.arange(1, len(sent) + 1))
    arrived = at < len(seen)
    late = (seen[at[arrived], Col.START] - sent[arrived]) * 1e-3
    p50, p99 = np.percentile(late, (50, 99))
    bound = PERIOD_US + LATE_US
    reached = f"p50 {p50:.0f}, p99 {p99:.0f} us, {arrived.sum()} of {len(sent)} frames"
    return [Row("byte on a tty to a tick's inputs", reached, f"p99 <= {bound:.0f} us", bool(p99 <= bound))]


def stolen() -> np.ndarray:
    """Time that a hypervisor has given to others, for each CPU [s]; 0 on a machine of one's own. Ref: proc(5)."""
    ticks = [line.split()[8] for line in Path("/proc/stat").read_text().splitlines() if re.match(r"cpu\d", line)]
    return np.array(ticks, float) / os.sysconf("SC_CLK_TCK")


ROWS: dict[str, Callable[[float], list[Row]]] = {"tick": tick, "latency": latency, "unplug": unplug}


def main(arguments: list[str]) -> int:
    seconds = 10.0
    if "--seconds" in arguments:
        at = arguments.index("--seconds")
        seconds = float(arguments[at + 1])
        del arguments[at : at + 2]
    if unknown := [a for a in arguments if a not in ROWS]:
        console.print(f"no row called {', '.join(unknown)}; there are {', '.join(ROWS)}")
        return 2
    rows: list[Row] = []
    for name in arguments or list(ROWS):
        console.print(f"{name}: {(ROWS[name].__doc__ or '').splitlines()[0]}")
        began, before = time.monotonic(), stolen()
        rows += ROWS[name](seconds)
        shares = 100 * (stolen() - before) / (time.monotonic() - began)
        told = ", ".join(f"{share:.1f}" for share in shares)
        rows.append(Row(f"stolen by the hypervisor meanwhile ({name})", f"{told} % of each CPU", "", good=True))
    table = Table("what", "reached", "bound", "")
    for row in rows:
        table.add_row(row.what, row.reached, row.bound, "[green]good[/]" if row.good else "[red]missed[/]")
    console.print(table)
    return 0 if all(r.good for r in rows) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2:])
    elif sys.argv[1:2] == ["sleeper"]:
        sleeper()
    elif sys.argv[1:2] == ["gauge"]:
        gauge(int(sys.argv[2]))
    elif sys.argv[1:2] == ["plug"]:
        plug(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
