"""Every config that comes with the project: it is accepted as it stands, wires what it should, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import cli

from hilnode.config import load
from plant.machines.excavator.cab import INPUTS

FOLDER = Path(__file__).resolve().parent.parent / "configs"
CONFIGS = sorted(path.name for path in FOLDER.glob("*.toml") if path.name != "excavator-cycle.toml")
DEVICES = ("excavator-joysticks.toml", "excavator-plc.toml", "excavator-ecu.toml", "excavator-browser.toml")


@pytest.mark.parametrize("config", CONFIGS)
def test_it_is_accepted_as_it_stands(config: str) -> None:
    done = cli("check", FOLDER / config, seconds=240)
    assert done.returncode == 0, done.stdout + done.stderr


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
