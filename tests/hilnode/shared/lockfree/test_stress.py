"""Ring and mailbox between processes at full speed: no torn read, exact losses, and no harm from a kill -9."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flood
import pytest

from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.ring import Ring

SMALLEST = 16  # rows in a ring: the writer laps its readers all the time
ENDLESS = 1 << 60
ROUND = {1: 4_000_000, 13: 3_000_000, 256: 400_000}  # exchanges in one go, by words in a row


class Peer:
    """A Python process of its own that runs flood.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, flood.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, do: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, int]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, do: str, **arguments: Any) -> dict[str, int]:
        self.tell(do, **arguments)
        return self.answer()

    def kill(self, pid: int) -> None:
        """SIGKILL one of its children and see that this is what ended it."""
        os.kill(pid, signal.SIGKILL)
        assert os.WTERMSIG(self.ask("reap", pid=pid)["status"]) == signal.SIGKILL

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Here:
    """The same in this process, in a thread: the kernels do not hold the GIL. It can only read and write."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def tell(self, do: str, **arguments: Any) -> None:
        self._work = self._pool.submit(flood.VERBS[do], **arguments)

    def answer(self) -> dict[str, int]:
        return self._work.result()

    def end(self) -> None:
        self._pool.shutdown()


@pytest.fixture(scope="module")
def peers() -> Iterator[list[Peer | Here]]:
    """A writer and a reader in processes of their own, a second reader here; the writer has a CPU to itself."""
    made: list[Peer | Here] = [Peer(), Peer(), Here()]
    cpus = sorted(os.sched_getaffinity(0))
    flood.compile_all()
    for i, peer in enumerate(made[:2]):
        peer.answer()
        if len(cpus) > 1:
            peer.ask("pin", cpus=cpus[:1] if i == 0 else cpus[1:])
    yield made
    for peer in made:
        peer.end()


def make(kind: str, name: str, words: int) -> Ring | Mailbox:
    if kind == "ring":
        return Ring.create(name, capacity=SMALLEST, width=words)
    return Mailbox.create(name, channels=words)


def exchange(
    peers: list[Peer | Here], kind: str, name: str, words: int, count: int, *, writer: int = 0, reader: int = 0
) -> list[dict[str, int]]:
    """Send `count` rows or letters through new memory; what writer and readers say. `writer`, `reader`: how."""
    buffer = make(kind, name, words)
    place = {"name": name, "kind": kind, "until": count, "seconds": 60.0}
    for peer in peers[1:]:
        peer.tell("read", **place, how=reader)
    peers[0].tell("write", **place, how=writer)
    answers = [peer.answer() for peer in peers]
    buffer.close()
    return answers


def check_exact(kind: str, count: int, written: dict[str, int], read: dict[str, int]) -> None:
    """Every row or letter is accounted for, none is torn, and the last one has arrived."""
    assert read["torn"] == 0
    if kind == "ring":
        assert written == {"next": count}
        assert read["next"] == count
        assert read["received"] + read["lost"] == count
    else:
        assert written == {"last": count}
        assert read["last"] == count
        assert 0 < read["received"] <= count


def exchange_many(peers: list[Peer | Here], kind: str, name: str, wanted: int, seconds: float) -> tuple[int, int]:
    """Rounds of all widths until `wanted` rows were sent and read whole, or, the former done, the time is up."""
    began = time.monotonic()
    sent = received = 0
    while sent < wanted or (received < wanted and time.monotonic() - began < seconds):
        for words, count in ROUND.items():
            written, *reads = exchange(peers, kind, name, words, count)
            for read in reads:
                check_exact(kind, count, written, read)
            assert kind != "ring" or sum(r["lost"] for r in reads) > 0, "the writer never lapped: no test at all"
            sent += count
            received += sum(r["received"] for r in reads)
    return sent, received


@pytest.mark.parametrize("kind", ["ring", "mailbox"])
def test_ten_million_exchanges_without_a_torn_read(peers, kind, name):
    sent, received = exchange_many(peers, kind, name, 10_000_000, seconds=2.0)
    print(f"{kind}: {sent:,} sent, {received:,} read whole by two readers")
    assert sent >= 10_000_000
    assert received >= 100_000


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["ring", "mailbox"])
def test_two_hundred_million_exchanges_without_a_torn_read(peers, kind, name):
    sent, received = exchange_many(peers, kind, name, 200_000_000, seconds=400.0)
    print(f"{kind}: {sent:,} sent, {received:,} read whole by two readers")
    assert sent >= 200_000_000


BROKEN = [
    ("ring", {"reader": flood.UNCHECKED}),
    ("ring", {"writer": flood.HASTY}),
    ("mailbox", {"reader": flood.UNCHECKED}),
]


@pytest.mark.parametrize(("kind", "how"), BROKEN, ids=["ring-unchecked", "ring-hasty", "mailbox-unchecked"])
def test_the_checker_catches_a_broken_protocol(peers, kind, how, name):
    """The same flood and the same checker, with one line of the protocol left out: it must not pass."""
    until = time.monotonic() + 60
    torn = 0
    while not torn and time.monotonic() < until:
        _, *reads = exchange(peers, kind, name, 13, ROUND[13], **how)
        torn = sum(read["torn"] for read in reads)
    assert torn > 0


@pytest.mark.parametrize("words", [1, 13, 256])
def test_a_ring_survives_writers_killed_at_any_moment(peers, name, words):
    ring = Ring.create(name, capacity=SMALLEST, width=words)
    checker = flood.RowChecker(ring)
    chance = random.Random(words)
    for _ in range(30):
        before = len(ring)
        writer = peers[0].ask("spawn", verb="write", name=name, kind="ring", until=ENDLESS, seconds=60.0)["pid"]
        checker.read(before + chance.randrange(1, 30_000), seconds=10.0)
        peers[0].kill(writer)
        pushed = len(ring)
        assert pushed > before, "the new writer did not go on"
        seen = checker.read(pushed, seconds=10.0)
        assert seen["torn"] == 0
        assert seen["next"] == pushed, "a dead writer keeps its reader waiting"
        assert seen["received"] + seen["lost"] == pushed
    late = flood.RowChecker(ring, first=pushed - SMALLEST + 1).read(pushed, seconds=10.0)
    assert late == {"received": SMALLEST - 1, "torn": 0, "next": pushed, "lost": 0}
    ring.close()


@pytest.mark.parametrize("words", [1, 13, 256])
def test_the_last_letter_of_a_killed_writer_stays_readable(peers, name, words):
    box = Mailbox.create(name, channels=words)
    checker = flood.LetterChecker(box)
    chance = random.Random(words)
    for _ in range(30):
        before = checker.read(0, seconds=1.0)["last"]
        writer = peers[0].ask("spawn", verb="write", name=name, kind="mailbox", until=ENDLESS, seconds=60.0)["pid"]
        checker.read(before + chance.randrange(1, 30_000), seconds=10.0)
        peers[0].kill(writer)
        newest, _, _ = Mailbox.attach(name).take()
        assert newest > before, "the new writer did not go on"
        assert checker.read(newest, seconds=10.0)["last"] == newest
        late = flood.LetterChecker(Mailbox.attach(name)).read(newest, seconds=10.0)
        assert late == {"received": 1, "torn": 0, "last": newest}
    assert checker.read(0, seconds=1.0)["torn"] == 0
    box.close()


@pytest.mark.parametrize("kind", ["ring", "mailbox"])
def test_a_killed_reader_disturbs_nobody(peers, kind, name):
    count = 3 * ROUND[13]
    buffer = make(kind, name, 13)
    place = {"name": name, "kind": kind, "seconds": 60.0}
    peers[2].tell("read", **place, until=count)
    peers[0].tell("write", **place, until=count)
    for _ in range(20):
        victim = peers[1].ask("spawn", verb="read", **place, until=ENDLESS)["pid"]
        peers[1].kill(victim)
    written, read = peers[0].answer(), peers[2].answer()
    buffer.close()
    check_exact(kind, count, written, read)
