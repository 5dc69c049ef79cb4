"""What systemd hears, and the unit it is given."""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import HILNODE, config_text, environment
from typer.testing import CliRunner

from hilnode.cli.main import app
from hilnode.node.systemd import Notifier, unit, unit_name


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """The socket that systemd would listen on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(60.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield line


def test_a_node_says_when_it_is_ready_that_it_lives_and_that_it_ends(manager, tmp_path):
    config = tmp_path / "bench.toml"
    config.write_text(config_text("systemd-bench", "log.timing = false\n", autostart=True))
    run = [*HILNODE, "run", str(config), "--quiet", "--for", "1.5", "--out", str(tmp_path / "run")]
    node = subprocess.Popen(
        run, env={**environment(), "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
    )
    heard = [manager.recv(1000).decode()]
    while heard[-1] != "STOPPING=1":
        heard.append(manager.recv(1000).decode())
    assert node.wait(30) == 0
    assert heard[0] == "READY=1"
    alive = [m for m in heard if m.startswith("WATCHDOG=1\nSTATUS=")]
    assert len(alive) >= 3
    assert "running" in alive[-1]


def test_signs_of_life_come_twice_as_often_as_they_must(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    notifier, until, count = Notifier(), time.monotonic() + 0.55, 0
    while time.monotonic() < until:
        notifier.alive(lambda: "x")
        time.sleep(0.005)
    manager.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while manager.recv(100):
            count += 1
    assert 4 <= count <= 7


def test_without_systemd_nothing_is_said(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    Notifier().tell("READY=1")
    Notifier().alive(lambda: pytest.fail("nobody asks"))


def test_a_manager_that_is_gone_does_no_harm(monkeypatch, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nothing"))
    Notifier().tell("READY=1")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_itself_finds_no_fault_in_the_unit(tmp_path):
    config = tmp_path / "a strange 100% name.toml"
    config.write_text("")
    path = tmp_path / unit_name(config)
    path.write_text(unit(config, "root", tmp_path))
    judged = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    complaints = [line for line in (judged.stdout + judged.stderr).splitlines() if path.name in line]
    assert complaints == []


def test_the_unit_is_printed_and_names_the_config_and_the_interpreter(tmp_path):
    config = tmp_path / "bench.toml"
    config.write_text("")
    shown = CliRunner().invoke(app, ["install-service", str(config), "--user", "lab", "--print"])
    assert shown.exit_code == 0
    assert f"ExecStart={sys.executable} -m hilnode.cli run {config} --quiet" in shown.output
    assert "User=lab" in shown.output


def test_a_bad_config_makes_no_service(tmp_path):
    config = tmp_path / "bench.toml"
    config.write_text("node.rate_h = 1")
    assert "rate_hz" in CliRunner().invoke(app, ["install-service", str(config), "--print"]).output


def test_without_the_right_it_says_how(tmp_path, monkeypatch):
    config = tmp_path / "bench.toml"
    config.write_text("")
    monkeypatch.setattr("hilnode.node.systemd.UNITS", Path("/proc/nowhere"))
    refused = CliRunner().invoke(app, ["install-service", str(config)])
    assert refused.exit_code == 1
    assert "sudo" in refused.output
