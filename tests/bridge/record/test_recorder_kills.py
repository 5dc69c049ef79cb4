"""The recorder killed at each of its steps: the next one goes on, and every row and event is there once.

A kill is an exception that nobody catches, out of the system call at which the process would have died: before it,
after it, or with a part of the data written. The rings stand in shared memory as they do for a real recorder.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import recordings
from mcap.reader import make_reader
from recordings import SCHEMA, rows_of
from support import wait_for

from bridge.record import row_recorder
from bridge.record.row_recorder import RowRecorder
from bridge.record.run_file import Run
from hilnode.shared.codes import EVENT_WIDTH, Event
from hilnode.shared.control import Control, Word
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.lockfree.segment import Segment
from hilnode.shared.row import Col, State

ROWS, PART = 40, 10
CAPACITY = 256


class Killed(BaseException):
    """What kill -9 is to the code it hits: nothing that could be caught."""


class Killer:
    """Counts the system calls that change the file; the one with the number `at` is the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = -1
        self.moments = 0
        self._opened: list[int] = []
        self._real = {name: getattr(os, name) for name in ("open", "pwrite", "ftruncate", "fdatasync")}
        fake = {"open": self._open, "pwrite": self._pwrite, "ftruncate": self._ftruncate, "fdatasync": self._fdatasync}
        mine = SimpleNamespace(**{k: getattr(os, k) for k in dir(os) if not k.startswith("__")} | fake)
        monkeypatch.setattr("bridge.record.mcap_file.os", mine)
        self._attached: list[Segment] = []
        attach = Segment.attach
        monkeypatch.setattr(
            Segment, "attach", lambda *a, **k: self._attached.append(attach(*a, **k)) or self._attached[-1]
        )

    def arm(self, at: int) -> None:
        self.at, self.moments = at, 0

    def _moment(self) -> None:
        if self.moments == self.at:
            raise Killed
        self.moments += 1

    def _open(self, *args: Any) -> int:
        self._moment()
        self._opened.append(self._real["open"](*args))
        self._moment()
        return self._opened[-1]

    def _pwrite(self, fd: int, data: memoryview, at: int) -> int:
        for share in (0, 1, len(data) // 3, len(data) - 1, len(data)):
            if self.moments == self.at:
                self._real["pwrite"](fd, data[:share], at)
            self._moment()
        return int(self._real["pwrite"](fd, data, at))

    def _ftruncate(self, fd: int, size: int) -> None:
        self._moment()
        self._real["ftruncate"](fd, size)
        self._moment()

    def _fdatasync(self, fd: int) -> None:  # what is in the kernel's hands survives a kill
        self._moment()

    def bury(self) -> None:
        """Close what the dead left open, as the kernel does."""
        for fd in self._opened:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._opened.clear()
        for segment in self._attached:
            segment.close()
        self._attached.clear()


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Killer]:
    killer = Killer(monkeypatch)
    yield killer
    killer.bury()


class World:
    """A node's rings without the node: rows and events come in parts of ten ticks."""

    def __init__(self, name: str, folder: Path) -> None:
        self.control = Control.create(name)
        self.control[Word.PID] = os.getpid()
        self._rows = Ring.create(f"{name}.rows", capacity=CAPACITY, width=SCHEMA.words, schema=SCHEMA.hash)
        self._events = Ring.create(f"{name}.events", capacity=64, width=EVENT_WIDTH)
        self.rows = rows_of(ROWS)
        self.tick = 0
        about = recordings.about(first_event=0)
        self.spec = {"node": name, "schema": SCHEMA.as_dict(), "about": about, "directory": str(folder)}
        self.spec |= {"chunk_s": 1.0, "min_free_mb": 0, "status": {}, "alarms": [], "drivers": [], "command_rings": []}
        self.spec |= {"parameters": [], "cpu": -1}

    def go_on(self) -> None:
        """Ten rows, with an event at the fourth and one of the row that comes next."""
        for row in self.rows[self.tick : self.tick + PART]:
            self._rows.push(row)
        for tick in (self.tick + 3, self.tick + PART):
            words = [tick, recordings.START + tick, Event.STATE, State.RUNNING, 0, 0]
            self._events.push(np.array(words, np.int64))
        self.tick += PART

    def close(self) -> None:
        for part in (self.control, self._rows, self._events):
            part.close()


@pytest.fixture
def world(tmp_path: Path, name: str) -> Iterator[World]:
    world = World(name, tmp_path)
    yield world
    world.close()


def live(world: World) -> None:
    """One recorder, from its start to its end."""
    recorder = RowRecorder(world.spec)
    recorder.look()
    while world.tick < ROWS:
        recorder._flush()
        world.go_on()
        recorder.look()
    recorder._flush(last=True)
    recorder.file.finish()


def check(world: World, folder: Path) -> None:
    with Run(folder) as run:
        assert run.complete
        assert run.notes == []
        assert np.array_equal(np.concatenate(list(run.rows())), world.rows)
        assert [e["number"] for e in run.events()] == list(range(2 * ROWS // PART))
        assert run.progress["rows"] == ROWS
    with (folder / "rows.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_summary().statistics.channel_message_counts[1] == ROWS
        assert [m.sequence for _, _, m in reader.iter_messages(topics=["/rows"])] == list(range(ROWS))


def moments_of(world: World, killer: Killer, folder: Path) -> int:
    """How many moments a recording has at which it can be killed."""
    killer.arm(-1)
    live(world)
    check(world, folder)
    return killer.moments


def test_it_goes_on_after_a_kill_at_every_step(tmp_path, world, killer):
    moments = moments_of(world, killer, tmp_path)
    assert moments >= 40
    for at in range(moments):
        world.close()
        (tmp_path / "rows.mcap").unlink()
        world.__init__(world.spec["node"], tmp_path)
        killer.arm(at)
        with pytest.raises(Killed):
            live(world)
        killer.bury()
        killer.arm(-1)
        live(world)
        killer.bury()
        check(world, tmp_path)


def test_it_goes_on_after_kills_of_those_that_went_on(tmp_path, world, killer):
    """Also while it cuts off what the one before left, and again and again."""
    rng = random.Random(7)
    for _ in range(40):
        kills = 0
        while True:
            killer.arm(rng.randrange(24))
            try:
                live(world)
            except Killed:
                killer.bury()
                kills += 1
                assert kills < 200
                continue
            break
        assert kills
        killer.bury()
        check(world, tmp_path)
        world.close()
        (tmp_path / "rows.mcap").unlink()
        world.__init__(world.spec["node"], tmp_path)


def test_a_reader_bears_the_cut_of_the_next_recorder(tmp_path, monkeypatch):
    """Half a chunk is there when it looks at the file's size, and gone when it reads on."""
    rows = rows_of(300)
    path = recordings.write(tmp_path / "run", rows, finish=False) / "rows.mcap"
    with Run(path) as run:
        ends = [c.data.offset - 60 for c in run.chunks]  # about where their records begin
    whole = path.read_bytes()

    class Cut:
        """Is cut after so many reads."""

        def __init__(self, file: Any, after: int) -> None:
            self._file, self._left = file, after

        def read(self, *args: Any) -> bytes:
            if self._left == 0:
                os.truncate(path, ends[2])
            self._left -= 1
            return bytes(self._file.read(*args))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    real_open = Path.open
    for after in range(60):
        path.write_bytes(whole)
        monkeypatch.setattr(Path, "open", lambda p, m, after=after: Cut(real_open(p, m, buffering=0), after))
        with Run(path) as run:
            monkeypatch.undo()
            assert len(run.chunks) in (2, 3)
            assert run.chunk(1).rows.tolist() == rows[100:200].tolist()


def test_only_damaged_chunks_do_not_stop_the_next_recorder(tmp_path, world):
    """Nobody knows what was in them: what the ring still holds is written again."""
    world.go_on()
    first = RowRecorder(world.spec)
    first.look()
    first._flush()
    first.file.close()
    path = tmp_path / "rows.mcap"
    with Run(path) as run:
        data = run.chunks[0].data
    bad = bytearray(path.read_bytes())
    bad[data.offset + data.length // 2] ^= 0x10
    path.write_bytes(bad)
    live(world)
    with Run(path) as run:
        assert np.array_equal(np.concatenate(list(run.rows())), world.rows)
        assert run.notes == ["1 of 5 chunks are damaged and were left out"]


def test_what_is_not_the_disc_s_fault_does_not_end_the_recording(world, monkeypatch):
    """Memory that could not be had, say: the process dies, and the node starts another one."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(row_recorder.Ring, "attach", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        row_recorder.record(world.spec)


def test_a_node_that_died_while_the_recorder_started_loses_nothing(tmp_path, world):
    """Its "ready" finds no reader; the rows are in the ring all the same."""
    while world.tick < ROWS:
        world.go_on()
    dead = subprocess.Popen(["true"])
    dead.wait()
    world.control[Word.PID] = dead.pid
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "bridge.record.row_recorder"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(json.dumps(world.spec).encode() + b"\n")
    process.stdin.flush()
    wait_for(lambda: process.poll() is not None, "its end")
    said = process.communicate()[1]
    assert process.returncode == 0, said
    assert said == b""
    check(world, tmp_path)


def test_rows_that_were_overwritten_meanwhile_are_counted(tmp_path, world, killer):
    """It is away for longer than the ring remembers."""
    world.rows = rows_of(400)
    world.go_on()
    killer.arm(-1)
    first = RowRecorder(world.spec)
    first.look()
    first._flush()
    killer.bury()
    while world.tick < 400:
        world.go_on()
    second = RowRecorder(world.spec)
    second.look()
    second._flush(last=True)
    second.file.finish()
    with Run(tmp_path) as run:
        rows = np.concatenate(list(run.rows()))
        lost = run.progress["lost_rows"]
        assert lost == 400 - len(rows) > 0
        assert rows[:PART, Col.TICK].tolist() == list(range(PART))
        assert rows[PART:, Col.TICK].tolist() == list(range(PART + lost, 400))
        assert run.notes[0] == f"{lost} rows were overwritten before they could be recorded"
