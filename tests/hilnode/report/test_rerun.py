"""Recordings run again: bit for bit the same, with everything that can happen to a plant in between."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from support import PENDULUM, cli

from bridge.client.pytest_plugin import running_node
from bridge.protocol.row_message import PREFIX, as_bytes
from bridge.record.mcap_file import McapFile, even_messages, uneven_messages
from bridge.record.row_recorder import EVENTS_ID, PROGRESS_ID, ROWS_ID, head_of
from bridge.record.run_file import Run
from hilnode.report.rerun import CannotRerun, Verdict, explain, rerun
from hilnode.shared.codes import Command
from hilnode.shared.command_record import CommandRow
from hilnode.shared.row import Col, Flag

CRANE = """
[plant]
kind = "crane_arm"
options = { load = 80.0 }
[[signals.stimulus]]
signal = "crane.lift_drive.speed"
kind = "sine"
amplitude = 0.3
frequency_hz = 0.7
[[signals.stimulus]]
signal = "crane.slew_drive.speed"
kind = "noise"
sigma = 0.2
"""


EXCAVATOR = """
[plant]
kind = "excavator"

[[signals.stimulus]]
signal = "excavator.right.y"
kind = "constant"
value = 0.8

[[signals.stimulus]]
signal = "excavator.drive"
kind = "sine"
amplitude = 0.5
frequency_hz = 0.2

[[signals.stimulus]]
signal = "excavator.left.x"
kind = "noise"
sigma = 0.4
"""


def record(folder: Path, seconds: float, config: str = "", *settings: str) -> Path:
    """A run as fast as it goes; the ring holds all of it, so that the recorder misses nothing."""
    source = [str(PENDULUM)]
    if config:
        (folder / "config.toml").write_text(config)
        source = [str(folder / "config.toml")]
    own = [f"--set=node.name=rerun{os.getpid()}", "--set=bridge.enabled=false", "--set=log.ring_seconds=120"]
    done = cli("run", *source, "--free", "--record", "--for", seconds, "--quiet", "--out", folder / "run", *own,
               *settings, seconds=1800)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def judged(place: Path) -> Verdict:
    with Run(place) as run:
        assert run.notes == []
        return rerun(run)


@pytest.fixture(scope="module")
def minute(tmp_path_factory) -> Path:
    """A minute of the pendulum."""
    return record(tmp_path_factory.mktemp("minute"), 60.0)


def test_a_minute_of_the_pendulum_is_bit_identical(minute):
    shares: list[float] = []
    with Run(minute) as run:
        verdict = rerun(run, shares.append)
        assert explain(run, verdict) == ["bit-identical: 60000 rows with 60000 plant steps"]
    assert verdict.identical
    assert shares == sorted(shares)


def test_the_crane_is_bit_identical(tmp_path):
    verdict = judged(record(tmp_path, 5.0, CRANE))
    assert verdict == Verdict(5000, 5000, None, "")


def test_the_excavator_is_bit_identical(tmp_path):
    """Tires, soil, sensors' noise and fences included: it drives, lowers its boom and digs."""
    verdict = judged(record(tmp_path, 6.0, EXCAVATOR))
    assert verdict == Verdict(6000, 6000, None, "")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("config", ["excavator.toml", "pendulum.toml"])
def test_a_minute_by_the_clock_is_bit_identical(tmp_path, config):
    """As people record: in real time, with the recorder beside it; at the excavator's levers a virtual operator."""
    settings = ["--set=bridge.enabled=false", "--set=node.max_overruns=0", "--set=safety.watchdog_ms=1000"]
    place = tmp_path / "run"
    done = cli("run", PENDULUM.parent / config, "--record", "--for", 60, "--quiet", "--out", place,
               f"--set=node.name=minute{os.getpid()}", *settings, seconds=900)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with Run(place) as run:
        assert run.notes == []
        rows = np.concatenate(list(run.rows()))
        used = {n for n in run.columns if len(np.unique(run.column(rows, n))) > 100}
    assert len(rows) == 60_000
    assert {"excavator.toml": {"excavator.right.y", "excavator.left.x"}, "pendulum.toml": set()}[config] <= used
    again = cli("rerun", place, seconds=900)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"bit-identical: 60000 rows with {int((rows[:, Col.FLAGS] & Flag.PAUSED == 0).sum())} plant" in again.stdout


def test_whatever_happened_in_between(tmp_path):
    """Parameters, forces, faults, a pause with single steps, a trip, a reset and a new start, over the network."""
    with running_node(
        tmp_path, PENDULUM, **{"log.record": True, "safety.on_trip": "hold", "node.max_overruns": 0}
    ) as node:
        node.arm()
        node.run()
        node.wait_until("pendulum.shoulder.torque", gt=0.5, timeout=30)
        node.set("pendulum.damping", 0.7)
        node.set("pendulum.mass2", 1.7)
        node.force("pendulum.elbow.torque", 0.3)
        node.inject("pendulum.shoulder.torque", "noise", sigma=0.1)
        node.record(["pendulum.energy"], 0.2)
        node.pause()
        node.set("pendulum.gravity", 9.0)
        node.step(17)
        node.record(["pendulum.energy"], 0.1)
        node.resume()
        node.record(["pendulum.energy"], 0.2)
        node.trip()
        node.clear()
        node.reset()
        node.set("pendulum.length1", 0.6)
        node.arm()
        node.run()
        node.record(["pendulum.energy"], 0.3)
    (place,) = tmp_path.glob("hil-*/run")
    verdict = judged(place)
    assert verdict.difference is None
    assert verdict.identical
    with Run(place) as run:
        rows = np.concatenate(list(run.rows()))
    stood = (rows[:, Col.FLAGS] & Flag.PAUSED) != 0
    assert verdict.steps == (~stood).sum()
    assert stood.any()
    assert (np.diff(rows[:, Col.STEP]) < 0).any()  # the reset


def rewritten(source: Path, target: Path, change) -> Path:
    """The recording with its rows and events changed by `change(rows, events)`."""
    with Run(source) as run:
        rows, events = np.concatenate(list(run.rows())), list(run.events())
        about = run.about
    rows, events = change(rows, events)
    target.mkdir()
    spec = {"schema": about["schema"], "about": {k: v for k, v in about.items() if k != "schema"}}
    file = McapFile(target / "rows.mcap", head_of(spec), PROGRESS_ID)
    times = rows[:, Col.WAKE] + about["clock_offset_ns"]
    parts = [even_messages(ROWS_ID, rows[:, Col.TICK], times, PREFIX, rows)]
    told = [({k: v for k, v in e.items() if k != "number"}, e) for e in events]
    parts.append(uneven_messages(EVENTS_ID, [(e["number"], int(times[0]), as_bytes(body)) for body, e in told]))
    parts.append(uneven_messages(PROGRESS_ID, [(0, int(times[-1]), json.dumps({"rows": len(rows)}).encode())]))
    file.add(parts)
    file.finish()
    return target


def test_one_bit_is_found(minute, tmp_path):
    with Run(minute) as run:
        word = run.columns["pendulum.elbow.speed"]

    def flip(rows, events):
        rows = rows.copy()
        rows[43210, word] ^= 1
        return rows, events

    verdict = judged(rewritten(minute, tmp_path / "flipped", flip))
    assert verdict.difference is not None
    assert (verdict.difference.tick, verdict.difference.signal) == (43210, "pendulum.elbow.speed")
    assert verdict.difference.recorded == np.nextafter(verdict.difference.again, verdict.difference.recorded)
    assert verdict.rows == 43210
    assert "pendulum.elbow.speed was" in str(verdict.difference)


def test_another_input_is_found_in_the_step_that_took_it(minute, tmp_path):
    def push(rows, events):
        rows = rows.copy()
        rows[1000, 12] = np.float64(0.123).view(np.int64)
        return rows, events

    verdict = judged(rewritten(minute, tmp_path / "pushed", push))
    assert verdict.difference is not None
    assert verdict.difference.tick == 1000


def test_a_parameter_that_was_not_set_is_found(minute, tmp_path):
    """So the commands of a recording are really used."""

    def set_mass(rows, events):
        words = CommandRow(Command.PARAMETER, 0, 1, (1.5, *[0.0] * 10)).hex()
        last = events[-1]["number"]
        command = {"tick": 500, "event": "command", "index": 0, "order": words, "number": last}
        return rows, [*events[:-1], command]

    verdict = judged(rewritten(minute, tmp_path / "set", set_mass))
    assert verdict.difference is not None
    assert verdict.difference.tick == 500


def test_lost_rows_end_it_where_they_are(minute, tmp_path):
    place = rewritten(minute, tmp_path / "lost", lambda rows, events: (np.delete(rows, range(700, 710), 0), events))
    verdict = judged(place)
    assert verdict == Verdict(700, 700, None, "10 rows from tick 700 on were not recorded")
    assert not verdict.identical
    with Run(place) as run:
        assert explain(run, verdict)[-1].startswith("bit-identical for 700 rows")


def test_lost_events_end_it_before_they_could_matter(minute, tmp_path):
    def lose(rows, events):
        return rows, [e for e in events if e["number"] != events[2]["number"]]

    verdict = judged(rewritten(minute, tmp_path / "events", lose))
    assert verdict.difference is None
    assert "1 events between ticks 0 and" in verdict.gap


def test_what_a_recording_does_not_hold_is_told(minute, tmp_path):
    with Run(minute) as run:
        run.about["tasks"] = ["busy"]
        with pytest.raises(CannotRerun, match="tasks that a script gave it"):
            rerun(run)
        run.about["tasks"] = []
        run.about["parameters"] = {"pendulum.colour": 1.0}
        with pytest.raises(CannotRerun, match="other bodies or parameters"):
            rerun(run)


def test_a_lapped_ring_is_told(tmp_path):
    """As fast as possible with the shortest ring: the recorder can not keep up, and says so."""
    folder = record(
        tmp_path,
        200.0,
        "",
        "--set=log.ring_seconds=1",
        "--set=log.record_chunk_s=0.5",
        "--set=log.blackbox_seconds=0.5",
    )
    with Run(folder) as run:
        lost = run.progress["lost_rows"]
        assert run.notes == [f"{lost} rows were overwritten before they could be recorded"]
        rows = np.concatenate(list(run.rows()))
        assert len(rows) + lost == 200_000
        assert "were not recorded" in rerun(run).gap


def test_the_command_line(minute, tmp_path):
    good = cli("rerun", minute, seconds=300)
    assert good.returncode == 0, good.stderr
    assert "bit-identical: 60000 rows" in good.stdout
    bad = cli("rerun", tmp_path)
    assert bad.returncode == 1
    assert "no such recording" in bad.stderr
