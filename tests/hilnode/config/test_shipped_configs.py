"""Every config that comes with the project: it is accepted as it stands, wires what it should, and runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import cli, free_port, own_ports
from typer.testing import CliRunner

from hilnode.cli.main import app
from hilnode.config.config import load
from plant.machines.excavator.cab import INPUTS

FOLDER = Path(__file__).resolve().parents[3] / "configs"
CONFIGS = sorted(path.name for path in FOLDER.glob("*.toml") if path.name != "excavator-cycle.toml")
DEVICES = (
    *("excavator.toml", "excavator-joysticks.toml", "excavator-plc.toml", "excavator-ecu.toml"),
    "excavator-browser.toml",
)


@pytest.mark.parametrize("config", CONFIGS)
def test_it_is_accepted_as_it_stands(config: str) -> None:
    """In this process, which loads the engine once for all."""
    done = CliRunner().invoke(app, ["check", str(FOLDER / config)])
    assert done.exit_code == 0, done.output


@pytest.mark.alone  # with its own watchdog: two nodes in real time on one CPU trip each other
@pytest.mark.parametrize("config", CONFIGS)
def test_it_runs_for_a_second(config: str, name: str, tmp_path: Path) -> None:
    """Without its devices, which have twins or stay away; under a name and at ports of its own."""
    text = (FOLDER / config).read_text()
    text = re.sub(r'^name = ".*"$', f'name = "{name}"\nmax_overruns = 0', text, count=1, flags=re.MULTILINE)
    text = text.replace("127.0.0.1:5020", f"127.0.0.1:{free_port()}")
    bridge = own_ports() if "ecu" in text else "bridge.enabled = false\n"
    (tmp_path / "excavator-cycle.toml").write_text((FOLDER / "excavator-cycle.toml").read_text())
    file = tmp_path / config
    file.write_text(f"{bridge}web.enabled = false\n{text}")
    done = cli("run", file, "--for", "1", "--out", tmp_path / "run", seconds=240, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "running -> stopped" in done.stdout + done.stderr


@pytest.mark.parametrize("config", DEVICES)
def test_every_lever_is_wired(config: str) -> None:
    wired = load(FOLDER / config).signals.inputs
    assert {f"excavator.{s.name}" for s in INPUTS} == {name for name, table in wired.items() if table.source}


@pytest.mark.parametrize("config", [c for c in CONFIGS if c.startswith("excavator")])
def test_a_lost_device_means_the_parking_brake(config: str) -> None:
    """The input falls back to its default, and that is the brake."""
    table = load(FOLDER / config).signals.inputs["excavator.parking"]
    assert table.stale in ("default", "ramp")
    assert table.default in (None, 1.0)
    assert next(s for s in INPUTS if s.name == "parking").default == 1.0
