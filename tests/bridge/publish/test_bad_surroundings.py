"""A disc that is full or may not be written, a port that is taken, a wrong key, another version of the protocol.

One clear line each, and the tick goes on as if nothing had happened.
"""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recordings
from support import HILNODE, PENDULUM, children, cli, free_port, started, wait_for

from bridge import Node
from bridge.client.pytest_plugin import running_node
from bridge.protocol.keys import Keyring
from bridge.protocol.operations import NodeError, Role
from bridge.protocol.rows import LAYOUT, schema_of
from bridge.record.mcap_file import McapFile
from bridge.record.mcap_scan import RecordingError
from bridge.record.row_recorder import PROGRESS_ID, head_of
from bridge.record.run_file import Run
from hilnode.shared import timinglog
from hilnode.shared.row import Col

TICKS = 8000


@contextlib.contextmanager
def small_disc(folder: Path, size: str, *, read_only: bool = False) -> Iterator[Path]:
    """A real file system of its own, in memory: it needs the right to mount."""
    place = folder / "disc"
    place.mkdir()
    options = f"size={size}" + (",ro" if read_only else "")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "hilnode-test", place], capture_output=True)
    if done.returncode:
        pytest.skip("needs the right to mount a file system (root)")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def run(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The pendulum for eight seconds by the clock."""
    settings = {
        "node.name": f"bad{os.getpid()}-{free_port()}",
        "bridge.enabled": "false",
        "node.max_overruns": "0",
        "safety.watchdog_ms": "1000",
        "log.record_min_free_mb": "0",
        "log.blackbox_seconds": "0",
    }
    return cli("run", PENDULUM, "--for", TICKS / 1000, "--quiet", "--out", out, *more,
               *(f"--set={k}={v}" for k, v in settings.items()), seconds=300)  # fmt: skip


def said_by(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.replace("\n", " ")


def test_a_recording_fills_the_disc(tmp_path):
    """No stand-in: the kernel says that there is no space. Everything else of the run shares the disc."""
    with small_disc(tmp_path, "300k") as disc:
        done = run(disc / "run", "--record")
        assert done.returncode == 0, done.stderr
        said = said_by(done)
        assert said.count("recording stopped after") == 1
        assert said.count("rows.mcap: No space left on device") == 1
        assert "starting it again" not in said
        assert f"tick {TICKS}: running -> stopped" in said
        with Run(disc / "run") as recorded:
            rows = np.concatenate(list(recorded.rows()))
    assert np.array_equal(rows[:, Col.TICK], np.arange(len(rows)))
    assert 500 < len(rows) < TICKS


@pytest.mark.parametrize("size", ["40k", "12k"])
def test_the_timing_log_fills_the_disc(tmp_path, size):
    """The smaller has not even room for its head. In the larger the last few ticks may fit where a block did not."""
    with small_disc(tmp_path, size) as disc:
        done = run(disc / "run")
        said = said_by(done)
        assert done.returncode == 0, said
        assert said.count("timing.hlog: No space left on device; ticks are missing in the timing log") == 1
        assert "starting it again" not in said
        assert f"tick {TICKS}: running -> stopped" in said
        if size == "40k":
            log = timinglog.read(disc / "run" / "timing.hlog")
            assert 500 < len(log) < TICKS
            gaps = np.diff(log.tick) - 1
            assert log.tick[0] == 0
            assert np.all(gaps >= 0)
            assert np.count_nonzero(gaps) <= 1, "from when the disc was full on, until the end"
            if log.closed:
                assert log.lost == TICKS - len(log)


def test_a_folder_that_may_only_be_read(tmp_path):
    with small_disc(tmp_path, "300k", read_only=True) as disc:
        done = run(disc / "run", "--record")
    assert done.returncode == 1
    assert said_by(done).strip() == f"{disc}/run: Read-only file system; --out names another folder"


@pytest.mark.parametrize("key", ["publish", "commands"])
def test_a_port_that_is_taken(tmp_path, key):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        ports = {"publish": f"tcp://127.0.0.1:{free_port()}", "commands": f"tcp://127.0.0.1:{free_port()}"}
        ports[key] = endpoint
        settings = [f"--set=bridge.{k}={v}" for k, v in ports.items()]
        name = f"--set=node.name=bad{os.getpid()}-port"
        done = cli("run", PENDULUM, "--for", 1, "--quiet", "--out", tmp_path / "run", name, *settings, seconds=300)
    assert done.returncode == 5
    assert f"bridge.{key} = '{endpoint}' is in use by process {os.getpid()}" in done.stderr.splitlines()[-1]


def test_a_port_that_somebody_took_while_the_bridge_was_dead(tmp_path):
    """The node goes on without it, says so, and is heard again when the port is free."""
    with running_node(tmp_path, PENDULUM, **{"node.autostart": True, "node.max_overruns": 0}) as node:
        (pid,) = children(os.getpid(), "hilnode.cli")
        (bridge,) = children(pid, "bridge.publish.server")
        port = int(node.endpoint.rpartition(":")[2])
        os.kill(bridge, 9)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            wait_for(lambda: _binds(taken, port), "the port")
            taken.listen()
            (out,) = tmp_path.glob("hil-*/node.out")
            wait_for(lambda: "Address already in use" in out.read_text().replace("\n", " "), "a word about it")
            assert children(os.getpid(), "hilnode.cli") == [pid]
        with wait_for(lambda: _connected(node.endpoint), "the bridge to be back") as again:
            before = again.status()["step"]
            wait_for(lambda: again.status()["step"] > before + 100, "more steps")


def _binds(probe: socket.socket, port: int) -> bool:
    with contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _connected(endpoint: str, key: Path | None = None) -> Node | None:
    with contextlib.suppress(NodeError):
        return Node(endpoint, key=key, timeout=0.5)
    return None


@contextlib.contextmanager
def locked_node(folder: Path, key: Path, endpoint: str) -> Iterator[tuple[int, Node]]:
    """A running node that wants keys: its pid, and a client that has one."""
    settings = {
        "node.name": f"bad{os.getpid()}-keys",
        "node.max_overruns": "0",
        "safety.watchdog_ms": "1000",
        "web.enabled": "false",
        "bridge.publish": f"tcp://127.0.0.1:{free_port()}",
        "bridge.commands": endpoint,
        "bridge.keys": str(key.parent),
    }
    options = [f"--set={k}={v}" for k, v in settings.items()]
    with started([*HILNODE, "run", str(PENDULUM), "--quiet", "--out", str(folder / "run"), *options]) as process:
        with wait_for(lambda: _connected(endpoint, key), "the node", 300) as client:
            wait_for(lambda: client.status()["state"] == "running", "the first steps")
            yield process.pid, client
            client.stop()
        assert process.wait(60) == 0


def test_wrong_keys_and_other_versions_do_not_reach_the_tick(tmp_path, monkeypatch):
    anna = Keyring(tmp_path / "keys").admit("anna", Role.ADMIN)
    stranger = Keyring(tmp_path / "other").admit("eve", Role.ADMIN)
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    with locked_node(tmp_path, anna, endpoint) as (pid, node):
        bridge, first = children(pid, "bridge.publish.server"), node.status()["step"]
        for _ in range(5):
            with pytest.raises(NodeError, match="did not answer") as unknown:
                Node(endpoint, key=stranger, timeout=0.2)
            assert "\n" not in str(unknown.value)
        monkeypatch.setattr("bridge.client.link.VERSION", 2)
        for _ in range(5):
            with pytest.raises(NodeError, match=r"^this node speaks version 1 of the protocol, the request has 2$"):
                Node(endpoint, key=anna)
        monkeypatch.undo()
        last = node.status()
        assert last["state"] == "running"
        assert last["step"] > first + 500
        assert children(pid, "bridge.publish.server") == bridge
        refused = [
            json.loads(line).get("refused") for line in (tmp_path / "run" / "audit.jsonl").read_text().splitlines()
        ]
    assert refused.count("version") == 5
    assert refused.count("unauthenticated") >= 1  # the same again and again is not written down each time


def test_rows_of_another_layout_are_told_and_not_guessed(tmp_path):
    layout = recordings.SCHEMA.as_dict()
    assert schema_of({"layout": layout}) == recordings.SCHEMA
    with pytest.raises(NodeError, match="the rows have layout 2, and this program knows layout 1") as refusal:
        schema_of({"layout": layout | {"version": LAYOUT + 1}})
    assert refusal.value.reason == "version"
    file = McapFile(tmp_path / "rows.mcap", head_of({"schema": layout, "about": recordings.about()}), PROGRESS_ID)
    file.finish()
    path = tmp_path / "rows.mcap"
    path.write_bytes(path.read_bytes().replace(b'"version": 1,', b'"version": 2,'))
    with pytest.raises(RecordingError, match=r"rows\.mcap: the rows have layout 2"):
        Run(path)
