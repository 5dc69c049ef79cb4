"""The recorder beside a running node: every row, whatever becomes of the recorder, and no word about it in the tick."""

import contextlib
import os
import random
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import numpy as np
import pytest
import recordings
import support
from mcap.reader import make_reader
from support import HILNODE, children, cli, free_port, started, wait_for

from bridge import Node
from bridge.record.row_recorder import RowRecorder
from bridge.record.run_file import Run
from hilnode.shared.codes import EVENT_WIDTH
from hilnode.shared.control import Control
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import Col

PENDULUM = "pendulum.shoulder.torque"


@contextlib.contextmanager
def recorded_node(folder: Path, *more: str) -> Iterator[tuple[int, Node, Path]]:
    """A node that records: its pid, a client, and its run's folder. It is stopped at the end and must end well."""
    publish, commands = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    settings = {
        "node.name": f"rec{os.getpid()}-{free_port()}",
        "bridge.publish": publish,
        "bridge.commands": commands,
        "web.enabled": "false",
        "node.max_overruns": 0,
        "safety.watchdog_ms": 1000,
        "log.ring_seconds": 60,  # on a busy machine a new recorder may take longer than the usual ten
    }
    place = folder / "run"
    command = [*HILNODE, "run", str(support.PENDULUM), "--record", "--quiet", "--out", str(place), *more]
    with started([*command, *(f"--set={k}={v}" for k, v in settings.items())]) as process:
        client = wait_for(lambda: _client(commands, process.poll()), "the node", 300)
        with client:
            try:
                yield process.pid, client, place
            except AssertionError as error:
                ended = process.poll()
                process.kill()
                error.add_note(f"node: {ended}, said: {process.communicate()[1]}")
                error.add_note(f"recorder: {(place / 'row_recorder.log').read_text()}")
                raise
            client.stop()
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        (folder / "said").write_text(said)


def _client(endpoint: str, ended: int | None) -> Node | None:
    assert ended is None
    with contextlib.suppress(Exception):
        return Node(endpoint, timeout=0.5)
    return None


def rows_of(place: Path) -> np.ndarray:
    with Run(place) as run:
        return np.concatenate(list(run.rows()))


def recorder_of(pid: int, *, other_than: int = 0) -> int:
    return wait_for(
        lambda: next((p for p in children(pid, "bridge.record.row_recorder") if p != other_than), 0), "a recorder"
    )


def chunks_in(place: Path) -> int:
    try:
        with Run(place) as run:
            return len(run.chunks)
    except (ValueError, OSError):
        return 0


def test_every_row_and_every_command_is_there(tmp_path):
    with recorded_node(tmp_path) as (_, client, place):
        tick = client.set("pendulum.damping", 0.25)
        client.force(PENDULUM, 1.5)
        record = client.record(["pendulum.elbow.angle"], 0.5)
    rows = rows_of(place)
    assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))
    with Run(place) as run:
        assert run.notes == []
        assert run.complete
        told = [e for e in run.events() if e.get("op") == "parameter"]
        assert [(e["tick"], e["what"]) for e in told] == [(tick, "parameter pendulum.damping = 0.25: done")]
        assert any(e["what"] == f"force {PENDULUM} = 1.5: done" for e in run.events())
        # what a client heard over the wire at the same time
        angle = run.column(rows, "pendulum.elbow.angle")
        assert angle[record.tick].tolist() == record["pendulum.elbow.angle"].tolist()
    assert f"recorded {len(rows)} rows, none lost" in (tmp_path / "said").read_text().replace("\n", " ")
    with (place / "rows.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_summary().statistics.channel_message_counts[1] == len(rows)


def kill_and_look(tmp_path: Path, kills: int, seed: int, chunk_s: float, apart_s: float) -> int:
    """Kill the recorder at random moments, some `apart_s` from each other: how many rows there are in the end.

    What was flushed is there at once, and in the end nothing is missing.
    """
    rng = random.Random(seed)
    with recorded_node(tmp_path, f"--set=log.record_chunk_s={chunk_s}") as (pid, _, place):
        recorder = recorder_of(pid)
        for _ in range(kills):
            before = chunks_in(place)
            wait_for(lambda before=before: chunks_in(place) > before, "a chunk")
            time.sleep(rng.uniform(0.0, 2 * apart_s))
            with Run(place) as run:
                flushed = run.progress["rows"]
            os.kill(recorder, signal.SIGKILL)
            wait_for(lambda gone=recorder: gone not in children(pid, "bridge.record.row_recorder"), "its end")
            rows = rows_of(place)
            assert len(rows) >= flushed
            assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))
            recorder = recorder_of(pid, other_than=recorder)
    rows = rows_of(place)
    with Run(place) as run:
        assert run.complete
        lost = run.progress["lost_rows"]
    assert len(rows) + lost == rows[-1, Col.TICK] + 1
    assert lost == 0  # the ring holds more than what came before a new recorder was up
    return len(rows)


def test_a_killed_recorder_loses_nothing(tmp_path):
    kill_and_look(tmp_path, kills=3, seed=1, chunk_s=0.2, apart_s=0.2)


def kill_those_that_start(pid: int, moments: list[float]) -> None:
    """Kill the recorder, and then each new one so many seconds after its process has come."""
    recorder = 0
    for moment in moments:
        recorder = recorder_of(pid, other_than=recorder)
        time.sleep(moment)
        os.kill(recorder, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(3))
def test_a_recorder_killed_while_it_starts_loses_nothing(tmp_path, seed):
    rng = random.Random(seed)
    with recorded_node(tmp_path, "--set=log.record_chunk_s=0.2") as (pid, _, place):
        before = wait_for(lambda: chunks_in(place), "a chunk")
        kill_those_that_start(pid, [rng.uniform(0.0, 0.3) for _ in range(4)])
        wait_for(lambda: chunks_in(place) > before + 1, "chunks of the last")
    check_whole(place)


def test_a_recorder_that_is_dead_at_the_end_is_started_once_more(tmp_path):
    """After so many deaths it would be away for some more seconds, and the node stops before that."""
    with recorded_node(tmp_path, "--set=log.record_chunk_s=0.2") as (pid, client, place):
        wait_for(lambda: chunks_in(place), "a chunk")
        kill_those_that_start(pid, [0.0, 0.0, 0.0, 0.1])
        step = client.status()["step"]
    assert check_whole(place) >= step
    assert "none lost" in (tmp_path / "said").read_text()


def check_whole(place: Path) -> int:
    """Every row of the run is there, and the file is finished: how many there are."""
    rows = rows_of(place)
    assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))
    with Run(place) as run:
        assert run.complete
        assert run.notes == []
        assert [e["what"] for e in run.events()][-1] == "running -> stopped"
    return len(rows)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_kills_in_ten_minutes_lose_nothing(tmp_path):
    assert kill_and_look(tmp_path, kills=20, seed=1, chunk_s=1.0, apart_s=30.0) > 500_000


def test_a_killed_node_loses_at_most_the_last_chunk(tmp_path):
    """The recorder goes on to the last row that the node made, and finishes the file."""
    name = f"rec{os.getpid()}-{free_port()}"
    settings = [f"--set=node.name={name}", "--set=bridge.enabled=false", "--set=safety.watchdog_ms=1000"]
    place = tmp_path / "run"
    with started(
        [*HILNODE, "run", str(support.PENDULUM), "--record", "--quiet", "--out", str(place), *settings]
    ) as process:
        wait_for(lambda: chunks_in(place) > 1, "chunks", 300)
        recorder = recorder_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_for(lambda: not Path(f"/proc/{recorder}").exists(), "the recorder's end")
    rows = rows_of(place)
    assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))
    with Run(place) as run:
        assert run.complete
        assert run.notes == []


def test_a_disc_that_refuses_ends_the_recording_and_not_the_node(tmp_path):
    """A limit of the kernel on the recorder's files stands for a full disc."""
    with recorded_node(tmp_path, "--set=log.record_chunk_s=0.1") as (pid, client, place):
        wait_for(lambda: chunks_in(place) > 2, "chunks")
        recorder = recorder_of(pid)
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (1000, 1000))
        wait_for(lambda: _rests(place / "rows.mcap"), "the end of it")
        step = client.status()["step"]
        wait_for(lambda: client.status()["step"] > step + 100, "more steps")
        assert recorder_of(pid) == recorder  # not started again and again
    said = (tmp_path / "said").read_text().replace("\n", " ")
    assert said.count("recording stopped after") == 1
    assert "rows.mcap: File too large" in said
    rows = rows_of(place)
    assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))


def _rests(path: Path) -> bool:
    """Nothing was written for several chunks."""
    size = path.stat().st_size
    time.sleep(0.8)
    return path.stat().st_size == size


def test_too_little_room_is_told_before_the_first_row(tmp_path):
    settings = ["--set=bridge.enabled=false", f"--set=node.name=rec{os.getpid()}-room"]
    done = cli("run", support.PENDULUM, "--record", "--for", "2", "--quiet", "--out", tmp_path / "run", *settings,
               "--set=log.record_min_free_mb=1e9", seconds=300)  # fmt: skip
    assert done.returncode == 0
    assert "recording stopped after 0 rows, the node runs on" in done.stderr.replace("\n", " ")
    assert "log.record_min_free_mb" in done.stderr
    assert not (tmp_path / "run" / "rows.mcap").exists()


class Ground:
    """Something that is shown all the time, whether the plant steps or not."""

    def __init__(self) -> None:
        self.number = 0

    def take(self) -> list[tuple[int, int, bytes]]:
        self.number += 1
        return [(self.number, recordings.OFFSET + self.number, msgpack.packb({"tick": 0, "key": True}))]


def test_what_is_shown_while_no_row_comes_is_written_and_not_kept(tmp_path, name, monkeypatch):
    """In lockstep the plant may wait for an hour."""
    monkeypatch.setattr("bridge.record.row_recorder.DisplayRecorder", lambda *_: Ground())
    with contextlib.ExitStack() as stack:
        schema = recordings.SCHEMA
        for part in (
            Control.create(name),
            Ring.create(f"{name}.rows", capacity=64, width=schema.words, schema=schema.hash),
            Ring.create(f"{name}.events", capacity=64, width=EVENT_WIDTH),
        ):
            stack.callback(part.close)
        spec = {"node": name, "schema": schema.as_dict(), "about": recordings.about(sights={"grids": []})}
        spec |= {"chunk_s": 1.0, "min_free_mb": 0, "status": {}, "alarms": [], "drivers": [], "command_rings": []}
        recorder = RowRecorder(spec | {"parameters": [], "directory": str(tmp_path)})

        for _ in range(3):
            recorder._flush()
        recorder.file.finish()
        with Run(tmp_path) as run:
            assert [len(run.chunk(k).sights) for k in range(len(run.chunks))] == [1, 1, 1]
            assert run.complete
