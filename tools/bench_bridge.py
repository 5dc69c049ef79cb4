"""The bridge's numbers, each beside its bound: what leaves the PC, how late, and what it costs the tick.

    python tools/bench_bridge.py                          every row, a minute each where it matters
    python tools/bench_bridge.py stream latency           some rows
    python tools/bench_bridge.py stream --seconds 5       shorter

Prints a table; exit code 1 if a row misses its bound. For a quiet machine: subscribers, bridge and ECU share the CPUs
that the tick leaves.

Subscribers stand for other PCs. They are kept off the tick's CPU from their first instruction on, and a tick's time is
judged while all of them listen: from SETTLE after the last one is ready until before the first is told to end. Of a run
without them, as many seconds from SETTLE after its start on. Losses are counted from a subscriber's first row to its
last, those before and after that span too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bench_node import CPU, TOOLS, Row, console, log_of, node, running
from bridge_peers import RING_ROWS, WIDE_SCHEMA
from rich.table import Table

from hilnode.shared.control import Control, Word
from hilnode.shared.health import HEALTH_KIND, HEALTH_WORDS
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.lockfree.segment import Segment
from hilnode.shared.realtime import kept_off
from hilnode.shared.row import Col, Schema

PEERS = TOOLS / "bridge_peers.py"
PUBLISH = "tcp://127.0.0.1:19872"
ECU = "tcp://127.0.0.1:19874"
COMMANDS = 'commands = "tcp://127.0.0.1:19873"'
SUBSCRIBERS = (1, 10, 50)
SETTLE = 2.0  # [s] until all of them are heard and the node's own helpers are up
HOUR = 3_600_000  # rows of 1 kHz
LARGE = 2000  # messages of LARGE_BYTES that are sent to a subscriber who never reads
LARGE_BYTES = 260_000  # as a message of 64 tiles of the ground
SHORTEST = 300_000  # rows of which a tenth fills whatever there is to fill
WIDE = (
    COMMANDS
    + """
[plant]
kind = "bench_plants:wide"
[drivers.cable]
kind = "loopback"
channels = 32
"""
    + "".join(f'[signals.outputs."cable.out.{k}"]\nfrom = "wide.out.{k}"\n' for k in range(32))
)
ECHO = (
    COMMANDS
    + f"""
ecu = "{ECU}"
[plant]
kind = "bench_plants:wide"
[drivers.ecu]
kind = "ecu"
inputs = ["tick"]
[signals.inputs."wide.in.0"]
from = "ecu.tick"
"""
)


@contextmanager
def peer(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A helper of `bridge_peers.py` in a process of its own, ready; a line on its input ends it."""
    command = [sys.executable, str(PEERS), *map(str, arguments)]
    with kept_off(CPU):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """End it and read what it found."""
    return dict(json.loads(process.communicate("end\n", timeout=60)[0].splitlines()[-1]))


def run_with(subscribers: int, seconds: float, *, bridge: bool = True) -> tuple[float, list[dict[str, Any]]]:
    """A run at 1 kHz with rows of 2 KB: p99 of a tick's time after its deadline [us], what the subscribers found.

    The p99 is that of the ticks that woke in the `seconds` while all subscribers were there and settled.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        shares = [subscribers - subscribers // 2, subscribers // 2] if subscribers > 10 else [subscribers]
        with node(folder, more=WIDE, bridge=bridge):
            running(folder)
            peers = [stack.enter_context(peer("subscribe", PUBLISH, n, CPU)) for n in shares if n]
            time.sleep(SETTLE)
            began = time.monotonic_ns()
            time.sleep(seconds)
            ended = time.monotonic_ns()
            found = [result(p) for p in peers]
        log = log_of(folder)
    judged = (log.wake >= began) & (log.wake < ended)
    late = (log.done - log.deadline)[judged]
    assert len(late) > 0.9e3 * seconds, f"{len(late)} ticks in {seconds:g} s: the node did not run"
    return float(np.percentile(late, 99)) / 1e3, found


def stream(seconds: float) -> list[Row]:
    """Rows of 2 KB at 1 kHz to 1, 10 and 50 subscribers on loopback: none may be lost."""
    rows = []
    for count in SUBSCRIBERS:
        _, found = run_with(count, seconds)
        lost = sum(f["lost"] + f["publisher_lost"] for f in found)
        got, least = sum(f["rows"] for f in found), min(f["least"] for f in found)
        what = f"1 kHz raw, rows of {8 * WIDE_SCHEMA.words} B, {count} subscribers, {seconds:g} s"
        wanted = round(1000 * seconds)  # at each of them
        rows.append(
            Row(what, f"{lost} of {got} lost, {least} at the least", f"0, {wanted}", lost == 0 and least >= wanted)
        )
        rows += _latency(found[0], f"tick to frame received, {count} subscribers", bound=count == 1)
    return rows


def latency(seconds: float) -> list[Row]:
    """From the tick's wake to the frame in a subscriber's hands."""
    return _latency(run_with(1, seconds)[1][0], "tick to frame received", bound=True)


def _latency(found: dict[str, Any], what: str, *, bound: bool) -> list[Row]:
    p50, p99 = found["p50_us"], found["p99_us"]
    text = f"p50 {p50:.0f} us, p99 {p99:.0f} us"
    if not bound:
        return [Row(what, text, "for information", True)]
    return [Row(what, text, "<= 300 us, 2 ms", p50 <= 300 and p99 <= 2000)]


def tick(seconds: float, rounds: int = 3) -> list[Row]:
    """What the bridge costs the tick: p99 of its end after the deadline, with 1, 10, 50 subscribers and without bridge.

    They take turns, so that whatever else the machine does meets all of them. Only ticks beside subscribers that are
    up and listen are judged (see above): how long their processes take to start is no matter of the bridge's.
    """
    times: dict[int, list[float]] = {0: [], **{count: [] for count in SUBSCRIBERS}}
    for _ in range(rounds):
        for count, found in times.items():
            found.append(run_with(count, seconds / rounds, bridge=count > 0)[0])
    alone = float(np.median(times[0]))
    rows = []
    for count in SUBSCRIBERS:
        beside = float(np.median(times[count]))
        what = f"tick p99 with bridge and {count} subscribers / without, {rounds} rounds"
        reached = f"{beside:.1f} us beside {alone:.1f} us: {beside / alone:.2f} x"
        rows.append(Row(what, reached, "<= 1.2 x", beside <= 1.2 * alone))
    return rows


def ecu(seconds: float) -> list[Row]:
    """State out, a Python process that echoes the tick, its value in a later tick: how many periods later."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(folder, more=ECHO), peer("echo", ECU, CPU) as echo, peer("collect", PUBLISH, CPU) as collector:
            running(folder)
            time.sleep(seconds)
            rows = np.array(result(collector)["rows"], float)
            told = result(echo)
    fresh = np.flatnonzero(np.diff(rows[:, 1]) != 0) + 1  # ticks that took a new value
    periods = rows[fresh, 0] - rows[fresh, 1]
    p50, p99 = np.percentile(periods, [50, 99])
    text = f"p50 {p50:.0f}, p99 {p99:.0f} periods in {len(periods)} values"
    wire = f"p50 {told['p50_us']:.0f} us, p99 {told['p99_us']:.0f} us"
    return [
        Row(
            "ECU: state to effect in a tick, 1 kHz", text, "p50 <= 2 periods", p50 <= 2 and len(periods) > 300 * seconds
        ),
        Row("ECU: tick to state in the ECU's hands", wire, "for information", True),
    ]


def stalled(seconds: float) -> list[Row]:
    """A subscriber that never reads, for an hour of rows, beside one that does: rows as fast as that one takes them."""
    import psutil

    total = max(SHORTEST, round(HOUR * min(1.0, seconds / 60)))
    name = f"bench{os.getpid()}"
    schema = Schema(1_000_000, WIDE_SCHEMA.inputs, WIDE_SCHEMA.outputs, WIDE_SCHEMA.commands, WIDE_SCHEMA.bodies)
    control = Control.create(name)
    control[Word.PID] = os.getpid()
    control[Word.PERIOD] = 1_000_000
    ring = Ring.create(f"{name}.rows", capacity=RING_ROWS, width=schema.words, schema=schema.hash)
    health = Segment.create(f"{name}.health", kind=HEALTH_KIND, words=HEALTH_WORDS)
    try:
        with peer("publish", name, PUBLISH) as publisher:
            with peer("stall", PUBLISH), peer("follow", PUBLISH) as follower:
                time.sleep(1.0)
                view = psutil.Process(publisher.pid)
                sizes = _push_rows(ring, schema, follower, total, lambda: view.memory_info().rss)
                found = result(follower)
            control[Word.CLOSING] = 1
            publisher.wait(20)
    finally:
        for part in (control, ring, health):
            part.close()
    full = sizes[len(sizes) // 10]  # by then as much waits for it as ever will
    growth, whole = (max(sizes) - full) / 1e6, (max(sizes) - sizes[0]) / 1e6
    text = f"{growth:.1f} MB after the first tenth, {whole:.0f} MB in all, of {max(sizes) / 1e6:.0f} MB"
    return [
        Row(
            f"a subscriber that never reads, {total} rows: bridge grows by",
            text,
            "<= 5 MB, 60 MB",
            growth <= 5 and whole <= 60,
        ),
        Row("the one beside it", f"{found['lost']} of {found['rows']} lost", "0", found["lost"] == 0),
        *_stalled_by_bytes(LARGE // 2, 0.02),  # 13 MB/s: what the ground sends at its worst
        *_stalled_by_bytes(LARGE, 0.002),  # and ten times that
    ]


def _stalled_by_bytes(count: int, pause: float) -> list[Row]:
    """One that never reads large messages, beside one that does: far fewer than the bound on messages."""
    with (
        peer("large", PUBLISH, count, LARGE_BYTES, pause) as sender,
        peer("stall", PUBLISH, "terrain"),
        peer("follow", PUBLISH, "terrain") as follower,
    ):
        found = result(sender)
        heard = result(follower)
    text = f"{found['growth_mb']:.0f} MB, of {count * LARGE_BYTES / 1e6:.0f} MB sent; {found['there']} of 2 stay"
    sent = f"{count} messages of {LARGE_BYTES // 1000} kB, one every {1e3 * pause:g} ms"
    what = f"a subscriber that never reads, {sent}: bridge grows by"
    good = found["growth_mb"] <= 60 and found["there"] == 1
    beside = Row("the one beside it", f"{heard['lost']} of {heard['rows']} lost", "0", heard["lost"] == 0)
    return [Row(what, text, "<= 60 MB", good), beside]


def _push_rows(
    ring: Ring, schema: Schema, follower: subprocess.Popen[str], total: int, memory: Callable[[], int]
) -> list[int]:
    """Push rows, never more than a quarter of the ring ahead of the follower; the memory along the way."""
    assert follower.stdout is not None
    row = np.zeros(schema.words, np.int64)
    sizes, seen = [memory()], 0
    for k in range(total):
        row[Col.TICK], row[Col.WAKE] = k, time.monotonic_ns()
        ring.push(row)
        while k - seen >= RING_ROWS // 4:  # it says now and then how far it is
            seen = int(follower.stdout.readline())
        if k % max(1, total // 200) == 0:
            sizes.append(memory())
    while seen < total - 1:
        seen = int(follower.stdout.readline())
    return [*sizes, memory()]


ROWS: dict[str, Callable[[float], list[Row]]] = {
    "stream": stream,
    "latency": latency,
    "tick": tick,
    "ecu": ecu,
    "stalled": stalled,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of each run; 60 s of `stalled` are an hour of rows"
    )
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = f"{TOOLS}:{os.environ.get('PYTHONPATH', '')}"
    rows: list[Row] = []
    for name in given.rows or ROWS:
        console.print(f"{name}: {(ROWS[name].__doc__ or '').splitlines()[0]}")
        rows += ROWS[name](given.seconds)
    table = Table("what", "reached", "bound", "")
    for row in rows:
        table.add_row(row.what, row.reached, row.bound, "[green]good[/]" if row.good else "[red]missed[/]")
    console.print(table)
    return 0 if all(r.good for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
