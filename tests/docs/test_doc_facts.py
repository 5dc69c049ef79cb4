"""Tables in the documentation against the code they describe: what is added there must be explained here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from doc_blocks import TOP, prose_of

from bridge.protocol import endpoints
from drivers.registry import KINDS as DRIVERS
from hilnode.cli import main
from hilnode.config.tables.signals import InputTable
from hilnode.core.signals import Signal
from hilnode.node.operate import Operate
from hilnode.report import doctor_checks, latency_probe
from hilnode.shared.codes import Cause, Event, ExitCode
from hilnode.shared.events import EventDecoder
from hilnode.shared.health import Health
from hilnode.shared.row import Col, Flag, Schema, State
from plant.abi import Status
from plant.registry import KINDS as PLANTS

README = TOP / "README.md"
DOCS = TOP / "docs"


def rows_of(page: Path) -> list[list[str]]:
    """Cells of all table rows of a page."""
    lines = (line for line in prose_of(page).splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_readme_has_the_exit_codes() -> None:
    codes = {row[0] for row in rows_of(README) if row[0].isdigit()}
    assert codes == {str(int(code)) for code in ExitCode}


@pytest.mark.parametrize(("row", "kinds"), [("plants", PLANTS), ("drivers", DRIVERS)])
def test_readme_lists_what_there_is(row: str, kinds: object) -> None:
    (cell,) = (cells[1] for cells in rows_of(README) if cells[0] == row)
    assert set(re.findall(r"`([\w-]+)`", cell)) == set(kinds._built_in)  # type: ignore[attr-defined]


def test_readme_lists_the_commands() -> None:
    (cell,) = (cells[1] for cells in rows_of(README) if cells[0] == "commands")
    names = {c.name or c.callback.__name__.replace("_", "-") for c in main.app.registered_commands if c.callback}
    names |= {str(group.name) for group in main.app.registered_groups}
    assert set(re.findall(r"`(?:hilnode )?([\w-]+)`", cell)) == names


def test_every_check_of_the_doctor_is_explained(tmp_path: Path) -> None:
    page = (DOCS / "tune-a-lab-pc.md").read_text("utf-8")
    names = {each(tmp_path, 0).name for each in doctor_checks.CHECKS}
    assert not {name for name in names if f"`{name}`" not in page}


def test_grades_of_the_doctor() -> None:
    grades = [row[0] for row in rows_of(DOCS / "tune-a-lab-pc.md") if "µs" in row[1] or "ms" in row[1]]
    assert grades == [g.name for g in latency_probe.GRADES]


def test_words_of_a_row() -> None:
    rows = rows_of(DOCS / "wire-protocol.md")
    words = [(int(r[0]), r[1]) for r in rows if r[0].isdigit() and r[1].strip("`").islower()]
    assert words == [(int(c), f"`{c.name.lower()}`") for c in Col]


def test_flags_of_a_row() -> None:
    rows = rows_of(DOCS / "wire-protocol.md")
    flags = [(int(r[0]), r[1]) for r in rows if r[0].isdigit() and r[1].strip("`").isupper()]
    assert flags == [(int(f), f"`{f.name}`") for f in Flag]


def test_states_of_a_node() -> None:
    words = ", ".join(f"{int(s)} {s.name.lower()}" for s in State)
    assert words in (DOCS / "wire-protocol.md").read_text("utf-8")
    picture = (DOCS / "safety.md").read_text("utf-8")
    assert all(s.name.lower() in picture for s in State)


def test_messages_that_may_wait_for_a_subscriber() -> None:
    assert f"once {endpoints.HIGH_WATER:,} wait".replace(",", " ") in (DOCS / "wire-protocol.md").read_text("utf-8")


def test_every_cause_of_a_trip_is_explained() -> None:
    schema = Schema(1_000_000, (Signal("signal"),), (Signal("signal2"),), (Signal("signal3"),), ())
    decoder = EventDecoder(schema, ["NAME"], lambda status: "REASON")
    sentences = set()
    for cause in Cause:
        words = np.array([0, 0, Event.TRIP, cause, 0, 0], np.int64)
        told = decoder.decode(words).sentence.removeprefix("tripped: ")
        sentences.add(re.sub(r"\bsignal[23]?\b", "SIGNAL", told).replace("0 overruns", "N overruns"))
    explained = {row[0].strip("`") for row in rows_of(DOCS / "safety.md")}
    assert sentences <= explained


def test_every_health_of_a_driver_is_explained() -> None:
    explained = {row[0] for row in rows_of(DOCS / "write-a-driver.md")}
    assert {f"`{h.name.lower()}`" for h in Health} <= explained


def test_every_stale_policy_is_explained() -> None:
    policies = InputTable.model_fields["stale"].annotation.__args__  # type: ignore[union-attr]
    explained = {row[0] for row in rows_of(DOCS / "connect-an-ecu.md")}
    assert {f'`"{p}"`' for p in policies} <= explained


def test_own_status_codes_do_not_meet_those_of_the_abi() -> None:
    assert "from 100 on are yours" in (DOCS / "write-a-plant.md").read_text("utf-8")
    assert max(Status) < 100


def test_interference_from_a_script() -> None:
    cells = {name for row in rows_of(DOCS / "safety.md") for name in re.findall(r"`([a-z]+)`", row[-1])}
    assert {"stimulate", "calm", "inject", "heal", "force", "release"} <= cells
    assert all(callable(getattr(Operate, n)) for n in ("stimulate", "calm", "inject", "heal", "force", "release"))


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in (README, *DOCS.glob("*.md")):
        asked = re.findall(r"(?:^|[`$] ?)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
        assert set(asked) <= targets, page.name
