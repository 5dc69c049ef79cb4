"""What drivers cost the tick, and what the tick's machine costs the drivers: eight at 1 kHz beside a node without any.

    python tools/bench_drivers.py                  all rows
    python tools/bench_drivers.py latency unplug   some rows
    python tools/bench_drivers.py --seconds 3      shorter runs

Prints a table; exit code 1 if a row misses its bound. The devices (kernel terminals, sockets, a Modbus server of
pyModbusTCP, an NI gRPC device server: `tools/bench_devices.py`) stay off the tick's CPU and come before the drivers on
those that are left. What unevenness they have is in the periods too, and so is the machine's: beside them stands a
process that does nothing but sleep a millisecond at a time, on the CPUs of the drivers and with their priority. Read
the periods on a machine where that one is even, and no time on one whose hypervisor gives its CPUs to others: how much
it took is a row too. A driver more is one entry in `DRIVERS`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bench_node import TOOLS, Row, console, log_of, node, running
from rich.table import Table

from hilnode.shared.health import BUCKETS, READS, H, Records, get_text, lower_edge
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import HEADER, Col, Flag

PERIOD_US = 1000.0
RATIO = 1.3  # of the tick's p99 latency, with and without drivers
UNEVEN = 0.20  # p99 of a driver's period error
LATE_US = 300.0  # a byte may come this much later than a period, into a tick's inputs
STALE_MS = 20.0  # an input of the row `unplug` is stale at this age
BACK_MS = 1000.0  # values flow again so soon after the plug is in
DEFAULT = -7.0  # what a stale input becomes; the device says other numbers
ROUNDS = 3

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
"""Name, the device it needs (see `bench_devices.DEVICES`), and its table with {port} for where that is."""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A program of `bench_devices.py` in a process of its own; ended at the end."""
    made = subprocess.Popen(
        [sys.executable, str(TOOLS / "bench_devices.py"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
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
    sys.exit(main(sys.argv[1:]))
