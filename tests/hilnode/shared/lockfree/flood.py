"""A writer and checkers that exchange rows and letters as fast as they can, compiled; and the process they run in.

Every word of row (or letter) `n` is derived from `n` and its place, so a copy that mixes two rows cannot pass.

    python flood.py    one JSON command per line on standard input, one JSON answer per line on standard output
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import numpy as np

from hilnode.core.jit import kernel
from hilnode.shared.clock import now_ns
from hilnode.shared.lockfree.atomics import copy_words, load_acquire, load_relaxed, store_relaxed, store_release
from hilnode.shared.lockfree.mailbox import SLOTS, Mailbox, put, take
from hilnode.shared.lockfree.ring import LINE, Ring, pull, push

RECEIVED, TORN, LAST = range(3)
LOOK = 1000  # exchanges between two looks at the clock

# How a reader copies.
CAREFUL = 0  # the protocol
UNCHECKED = 1  # broken on purpose: the head is not read again after the copy
# How a writer publishes.
HASTY = 1  # broken on purpose: the head is raised before the payload is there


@kernel
def word(n, i):
    """Word `i` of row `n`: an odd multiplier keeps neighbouring rows different in every word, high bits included."""
    x = (n + 1) * 0x9E3779B97F4A7C1 + i * 0x632BE59BD9B4E019
    return x ^ (x >> 29)


@kernel
def fill(n, at, words):
    """Make row `n` at address `at`."""
    for i in range(words):
        store_relaxed(at + 8 * i, word(n, i))


@kernel
def is_whole(n, at, words):
    """Whether what stands at address `at` is row `n` and nothing else."""
    bad = 0
    for i in range(words):
        bad |= load_relaxed(at + 8 * i) ^ word(n, i)
    return bad == 0


@kernel
def _push_hasty(ring, source):
    head = load_relaxed(ring.base)
    store_release(ring.base, head + 1)
    copy_words(ring.base + 8 * (LINE + (head % ring.capacity) * ring.width), source, ring.width)


@kernel
def write_rows(ring, row, until, how, deadline):
    """Push rows until row number `until` is the next one or the time is up; the number goes on where the ring is."""
    n = load_acquire(ring.base)
    while n < until:
        fill(n, row.ctypes.data, ring.width)
        if how == HASTY:
            _push_hasty(ring, row.ctypes.data)
        else:
            push(ring, row.ctypes.data)
        n += 1
        if n % LOOK == 0 and now_ns() > deadline:
            break
    return n


@kernel
def _pull_unchecked(ring, row, target):
    head = load_acquire(ring.base)
    if row >= head:
        return 0
    if head < row + ring.capacity:
        copy_words(target, ring.base + 8 * (LINE + (row % ring.capacity) * ring.width), ring.width)
        return 1
    return -(head - ring.capacity + 1 + ring.capacity // 8 - row)


@kernel
def check_rows(ring, cursor, row, until, how, deadline, seen):
    """Read and check rows until `until` is the next one or the time is up; `seen` counts RECEIVED and TORN."""
    idle = 0
    while cursor[0] < until:
        if how == UNCHECKED:
            got = _pull_unchecked(ring, cursor[0], row.ctypes.data)
        else:
            got = pull(ring, cursor[0], row.ctypes.data)
        if got > 0:
            seen[RECEIVED] += 1
            if not is_whole(cursor[0], row.ctypes.data, ring.width):
                seen[TORN] += 1
            cursor[0] += 1
        elif got < 0:
            cursor[0] -= got
            cursor[1] -= got
        idle += 1
        if idle % LOOK == 0 and now_ns() > deadline:
            break


@kernel
def write_letters(base, channels, letter, until, deadline):
    """Put letters until number `until`; the number goes on where the mailbox is."""
    at = letter.ctypes.data
    n = load_acquire(base)
    while n < until:
        n += 1
        fill(n, at, 2 * channels)
        put(base, channels, at, at + 8 * channels)
        if n % LOOK == 0 and now_ns() > deadline:
            break
    return n


@kernel
def _take_unchecked(base, channels, seen, at):
    head = load_acquire(base)
    if head == seen:
        return seen
    slot = base + 8 * (LINE + ((head - 1) % SLOTS) * 2 * channels)
    copy_words(at, slot, 2 * channels)
    return head


@kernel
def check_letters(base, channels, letter, until, how, deadline, seen):
    """Take and check letters until number `until` has come or the time is up; also TORN: one that goes back."""
    at = letter.ctypes.data
    idle = 0
    while seen[LAST] < until:
        if how == UNCHECKED:
            got = _take_unchecked(base, channels, seen[LAST], at)
        else:
            got = take(base, channels, seen[LAST], at, at + 8 * channels)
        if got != seen[LAST]:
            seen[RECEIVED] += 1
            if got < seen[LAST] or not is_whole(got, at, 2 * channels):
                seen[TORN] += 1
            seen[LAST] = got
        idle += 1
        if idle % LOOK == 0 and now_ns() > deadline:
            break


@kernel
def _now():
    return now_ns()


def after(seconds: float) -> int:
    """A deadline for the kernels above."""
    return int(_now()) + int(seconds * 1e9)


class RowChecker:
    """Reads a ring and judges every row."""

    def __init__(self, ring: Ring, first: int = 0, how: int = CAREFUL) -> None:
        self._ring, self._how = ring, how
        self._cursor = np.array([first, 0], np.int64)
        self._row = np.zeros(ring.view.width, np.int64)
        self._seen = np.zeros(2, np.int64)

    def read(self, until: int, seconds: float) -> dict[str, int]:
        check_rows(self._ring.view, self._cursor, self._row, until, self._how, after(seconds), self._seen)
        return {
            "received": int(self._seen[RECEIVED]),
            "torn": int(self._seen[TORN]),
            "next": int(self._cursor[0]),
            "lost": int(self._cursor[1]),
        }


class LetterChecker:
    """Reads a mailbox and judges every letter."""

    def __init__(self, box: Mailbox, how: int = CAREFUL) -> None:
        self._box, self._how = box, how
        self._letter = np.zeros(2 * box.channels, np.int64)
        self._seen = np.zeros(3, np.int64)

    def read(self, until: int, seconds: float) -> dict[str, int]:
        view = self._box.view
        check_letters(view.base, view.channels, self._letter, until, self._how, after(seconds), self._seen)
        return {"received": int(self._seen[RECEIVED]), "torn": int(self._seen[TORN]), "last": int(self._seen[LAST])}


def write(name: str, kind: str, until: int, seconds: float, how: int = CAREFUL) -> dict[str, int]:
    """Write into the ring or mailbox `name`, made by somebody else. Only rows can be written hastily."""
    if kind == "ring":
        ring = Ring.attach(name)
        row = np.zeros(ring.view.width, np.int64)
        return {"next": int(write_rows(ring.view, row, until, how, after(seconds)))}
    box = Mailbox.attach(name)
    letter = np.zeros(2 * box.channels, np.int64)
    return {"last": int(write_letters(box.view.base, box.channels, letter, until, after(seconds)))}


def read(name: str, kind: str, until: int, seconds: float, how: int = CAREFUL) -> dict[str, int]:
    """Read the ring or mailbox `name` and judge what comes."""
    if kind == "ring":
        return RowChecker(Ring.attach(name), 0, how).read(until, seconds)
    return LetterChecker(Mailbox.attach(name), how).read(until, seconds)


def compile_all() -> None:
    """Compile every kernel, or take it from the cache, before the race begins."""
    ring = Ring.create(f"flood-{os.getpid()}.ring", capacity=16, width=1)
    box = Mailbox.create(f"flood-{os.getpid()}.box", channels=1)
    for name, kind in ((ring.segment.name, "ring"), (box.segment.name, "mailbox")):
        write(name, kind, 1, 1.0)
        read(name, kind, 1, 1.0)
    ring.close()
    box.close()


VERBS = {"write": write, "read": read}


def _spawn(verb: str, arguments: dict[str, Any]) -> int:
    """A child process that does one thing until it is killed; nothing is compiled in it any more."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            VERBS[verb](**arguments)
        os._exit(0)
    return pid


def main() -> None:
    compile_all()
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        verb = command.pop("do")
        if verb == "spawn":
            answer = {"pid": _spawn(command.pop("verb"), command)}
        elif verb == "reap":
            answer = {"status": os.waitpid(command["pid"], 0)[1]}
        elif verb == "pin":
            os.sched_setaffinity(0, command["cpus"])
            answer = {}
        else:
            answer = VERBS[verb](**command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
