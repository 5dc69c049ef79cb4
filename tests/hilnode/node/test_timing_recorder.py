"""The recorder: every tick in the log, whoever is killed, and what is missing counted exactly."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import children, config_text, left_in_memory, make_config, remote_node, wait_for
from typer.testing import CliRunner

from hilnode.cli.main import app
from hilnode.node.node import Node
from hilnode.shared import timinglog
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import State
from hilnode.shared.timinglog import FILE_NAME, TimingLog

PLANT = 'plant.kind = "trouble_plant:create"\n'


def log_of(folder: Path) -> TimingLog:
    return timinglog.read(folder / "run" / FILE_NAME)


def logged(folder: Path) -> int:
    """Ticks in the file up to now."""
    path = folder / "run" / FILE_NAME
    return len(timinglog.read(path)) if path.exists() else 0


def recorder_of(node: int, not_this: int = 0) -> int:
    """Pid of the node's recorder once it is there."""
    return wait_for(
        lambda: next((p for p in children(node, "hilnode.node.timing_recorder") if p != not_this), 0),
        "a (new) recorder",
    )


def await_logged(folder: Path, more_than: int) -> None:
    wait_for(lambda: logged(folder) > more_than, f"more than {more_than} ticks in the log")


@pytest.fixture
def node(tmp_path, name) -> Iterator[Node]:
    """A node in this process whose recorder has begun to write; its ring holds a second."""
    text = PLANT + "log.ring_seconds = 1\nlog.blackbox_seconds = 1\nsafety.watchdog = false\n"
    with Node(make_config(tmp_path, name, text), directory=tmp_path / "run") as made:
        made.start()
        await_logged(tmp_path, 100)
        yield made


def test_rows_overwritten_before_they_were_read_are_counted_exactly(node, tmp_path):
    """A recorder that sleeps longer than the ring is long, and is then killed and replaced.

    The gaps in the ticks are what the log calls lost; everything else is there.
    """
    recorder = recorder_of(os.getpid())
    os.kill(recorder, signal.SIGSTOP)
    at = len(node._rows)
    wait_for(lambda: len(node._rows) > at + 1400, "the ring to be overwritten")
    os.kill(recorder, signal.SIGCONT)
    await_logged(tmp_path, logged(tmp_path) + 100)
    os.kill(recorder, signal.SIGKILL)
    assert recorder_of(os.getpid(), not_this=recorder) != recorder
    await_logged(tmp_path, logged(tmp_path) + 100)
    assert node.state == State.CONFIGURED
    node.close()
    log = log_of(tmp_path)
    gaps = np.diff(log.tick, prepend=-1) - 1  # the first one: ticks before the recorder was up
    assert (log.total, log.closed) == (len(node._rows), True)
    assert gaps.min() >= 0
    assert gaps[1:].max() > 200
    assert gaps.sum() == log.lost == log.missing
    assert log.damaged_blocks <= 1  # the block it was writing when it was killed


@pytest.mark.slow
def test_a_killed_recorder_loses_nothing_that_is_still_in_the_ring(tmp_path, name):
    with remote_node(tmp_path, name, PLANT) as node:
        first = recorder_of(node.pid)
        await_logged(tmp_path, 200)
        os.kill(first, signal.SIGKILL)
        recorder_of(node.pid, not_this=first)
        await_logged(tmp_path, logged(tmp_path) + 200)
        ring = Ring.attach(f"{name}.rows")
        node.process.communicate()  # end of commands: the node closes in order
        assert node.process.returncode == 0
    log = log_of(tmp_path)
    assert (log.missing, log.lost, log.closed, log.total) == (0, 0, True, len(ring))
    assert log.tick.tolist() == list(range(len(ring)))


def test_a_killed_node_leaves_a_whole_log(tmp_path, name):
    """kill -9 of the node: its recorder writes down what is still in the ring, and closes the file."""
    with remote_node(tmp_path, name, PLANT) as node:
        recorder_of(node.pid)
        await_logged(tmp_path, 100)
        ring = Ring.attach(f"{name}.rows")
        os.kill(node.pid, signal.SIGKILL)
        wait_for(lambda: log_of(tmp_path).closed, "the log to be closed")
    log = log_of(tmp_path)
    assert log.tick.tolist() == list(range(len(ring)))
    assert (log.total, log.missing, log.lost, log.damaged_blocks) == (len(ring), 0, 0, 0)


@pytest.mark.slow
def test_killed_together_they_leave_a_readable_log(tmp_path, name):
    with remote_node(tmp_path, name, PLANT) as node:
        recorder = recorder_of(node.pid)
        await_logged(tmp_path, 100)
        os.kill(recorder, signal.SIGKILL)
        os.kill(node.pid, signal.SIGKILL)
        node.process.wait()
    log = log_of(tmp_path)
    assert not log.closed
    assert log.total is None
    assert log.tick.tolist() == list(range(len(log)))
    assert len(log) > 100


@pytest.mark.slow
def test_a_node_killed_before_its_recorder_was_ready_leaves_a_log_too(tmp_path, name):
    """A plant that crashes at its first steps: the very rows one wants to see."""
    with remote_node(tmp_path, name, PLANT) as node:
        ring = Ring.attach(f"{name}.rows")
        wait_for(lambda: len(ring) > 20, "some ticks")
        assert logged(tmp_path) == 0
        os.kill(node.pid, signal.SIGKILL)
        node.process.wait()
        wait_for(lambda: logged(tmp_path) == len(ring), "the rows in the log", 4.0)


def test_a_folder_that_holds_a_run_is_refused(tmp_path, name):
    """Two runs in one log would be worse than none."""
    (tmp_path / "run").mkdir()
    with timinglog.TimingWriter(tmp_path / "run" / FILE_NAME, {"node": "earlier"}) as writer:
        writer.close(0)
    before = (tmp_path / "run" / FILE_NAME).read_bytes()
    config = tmp_path / "bench.toml"
    config.write_text(config_text(name, PLANT))
    done = CliRunner().invoke(app, ["run", str(config), "--for", "1", "--out", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert "holds an earlier run" in " ".join(done.output.split())
    assert isinstance(done.exception, SystemExit)
    assert (tmp_path / "run" / FILE_NAME).read_bytes() == before
    assert left_in_memory(name) == []


@pytest.mark.slow
def test_recorders_killed_at_any_moment_lose_no_tick(tmp_path, name):
    with remote_node(tmp_path, name, PLANT + "log.ring_seconds = 60\n") as node:
        victim = 0
        for k in range(5):
            victim = recorder_of(node.pid, not_this=victim)
            await_logged(tmp_path, logged(tmp_path))
            time.sleep(0.037 * k)  # another moment of its round each time
            os.kill(victim, signal.SIGKILL)
        recorder_of(node.pid, not_this=victim)
        await_logged(tmp_path, logged(tmp_path))
        ring = Ring.attach(f"{name}.rows")
        node.process.communicate()
    log = log_of(tmp_path)
    assert (log.missing, log.lost, log.closed, log.total) == (0, 0, True, len(ring))
