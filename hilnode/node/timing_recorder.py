"""The timing recorder: a process that writes every tick's times to the timing log, unknown to the tick.

It reads the ring like any other reader, a few times a second, and reads the machine's counters beside it. If it
is killed, the node starts another one, which goes on where the file ends; only rows that the ring has
overwritten meanwhile are missing, and they are counted. A disc that is full or refuses costs rows, which are counted
too, and one line; when it takes more again, the log goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hilnode.shared import blackbox
from hilnode.shared.control import Control, Word
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.machine_sample import Sampler
from hilnode.shared.realtime import keep_off
from hilnode.shared.row import HEADER
from hilnode.shared.timinglog import FILE_NAME, TimingWriter, read

PERIOD_MS = 50  # between two looks at the ring and at the machine
FLUSH_EVERY = 5  # looks
TRY_EVERY = 0.25  # [s] to begin a file on a disc that is full


class Recorder:
    """Writes the timing log of one node. `spec` comes from the node: see child_specs.py."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.control = Control.attach(spec["node"])
        self.rows = Ring.attach(f"{spec['node']}.rows", schema=spec["schema"])
        self.directory = Path(spec["directory"])
        self.seconds, self.first = spec["blackbox_seconds"], spec["blackbox_first"]
        self.path = self.directory / FILE_NAME
        self._told = False  # that the disc refuses
        logged = self._logged()
        self.writer = TimingWriter(self.path, spec["meta"], resume=self.path.exists())
        self.reader = self.rows.reader(first=logged, batch=1024)
        self.sampler: Sampler | None = None
        self.lost = 0

    def _logged(self) -> int:
        """The tick after the last that is in the file; a file without even its head is none, and is taken away."""
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()  # the disc was full
        if not self.path.exists():
            return 0
        log = read(self.path)
        return int(log.tick[-1]) + 1 if len(log) else 0

    def work(self) -> None:
        """Until the node ends or dies; then write what is left and close the file."""
        waiter = select.poll()
        dead = False
        try:
            waiter.register(os.pidfd_open(self.control[Word.PID]), select.POLLIN)
        except ProcessLookupError:
            dead = True  # the node went first: its rows are still in the ring
        turn = 0
        while True:
            gone = dead or bool(waiter.poll(PERIOD_MS)) or self.control[Word.CLOSING] == 1
            self._look()
            turn += 1
            if gone:
                break
            if turn % FLUSH_EVERY == 0:
                with self._writing():
                    self.writer.flush()
        with self._writing():
            self.writer.close(len(self.rows))
        with self._writing():
            self._keep_black_box()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Whoever looks at the node is told once that the disc refuses."""
        try:
            yield
        except OSError as error:
            if not self._told:
                tell_refused(self.path, error)
            self._told = True

    def _look(self) -> None:
        while len(rows := self.reader.read()):
            self.writer.append(rows[:, :HEADER])
        if self.reader.lost > self.lost:
            self.writer.lost(self.reader.lost - self.lost)
            self.lost = self.reader.lost
        if self.sampler is None and self.control[Word.TID]:
            self.sampler = Sampler(self.control[Word.PID], self.control[Word.TID], self.control[Word.CPU])
        if self.sampler:
            self.writer.sample(self.sampler.take(self.control[Word.GC_COUNT], self.control[Word.GC_NS]))

    def _keep_black_box(self) -> None:
        """The seconds around the first overruns, in files of their own."""
        incidents = blackbox.cut(read(self.writer.path), self.seconds, self.first)
        if incidents:
            blackbox.save(incidents, self.directory)


def tell_refused(path: Path, error: OSError) -> None:
    """One line for people, by way of the node."""
    print(f"{path}: {error.strerror}; ticks are missing in the timing log, the node runs on", flush=True)


def main() -> int:
    """Entry point: one line of JSON on standard input, then record."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # it ends after the node, with the last row
    keep_off(spec["cpu"])
    control = Control.attach(spec["node"])
    told = False
    while True:
        try:
            recorder = Recorder(spec)
            break
        except OSError as error:  # no room for the head of a file: there may be some later
            if control[Word.CLOSING] or os.getppid() != control[Word.PID]:
                return 0
            if not told:
                tell_refused(Path(spec["directory"]) / FILE_NAME, error)
            told = True
            time.sleep(TRY_EVERY)
    recorder.work()
    return 0


if __name__ == "__main__":
    sys.exit(main())
