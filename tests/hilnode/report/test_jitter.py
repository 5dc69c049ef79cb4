"""The jitter report against numpy and hand-made runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hilnode.report.jitter import RunNotFound, find_log, render, report, to_json
from hilnode.report.jitter_plot import PlotUnavailable, cut_columns, draw
from hilnode.shared.row import Col, Flag, State
from hilnode.shared.timinglog import TimingLog, TimingWriter, read

PERIOD = 1_000_000
STATS = ["p50", "p90", "p99", "p999", "p9999", "max"]


def make_columns(count: int, seed: int = 1) -> np.ndarray:
    """A regular run: `[12, count]` header words with random wake latency, step time and own cost."""
    rng = np.random.default_rng(seed)
    columns = np.zeros((12, count), np.int64)
    columns[Col.TICK] = np.arange(count)
    columns[Col.DEADLINE] = 7_000_000_000 + columns[Col.TICK] * PERIOD
    columns[Col.WAKE] = columns[Col.DEADLINE] + rng.integers(1_000, 90_000, count)
    columns[Col.START] = columns[Col.WAKE] + rng.integers(500, 2_000, count)
    columns[Col.END] = columns[Col.START] + rng.integers(100_000, 400_000, count)
    columns[Col.DONE] = columns[Col.END] + rng.integers(500, 9_000, count)
    columns[Col.PERIOD, 1:] = np.diff(columns[Col.WAKE])
    columns[Col.STATE] = State.RUNNING
    return columns


def log_of(columns: np.ndarray, **more: object) -> TimingLog:
    return TimingLog(meta={"period_ns": PERIOD}, columns=columns, **more)  # type: ignore[arg-type]


def show(log: TimingLog) -> str:
    console = Console(width=80, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(render(report(log)))
    return captured.get()


# --- numbers


def test_percentiles_are_numpys() -> None:
    c = make_columns(20_000)
    said = to_json(report(log_of(c)))
    expected = {
        "wake_us": c[Col.WAKE] - c[Col.DEADLINE],
        "step_us": c[Col.END] - c[Col.START],
        "own_us": (c[Col.START] - c[Col.WAKE]) + (c[Col.DONE] - c[Col.END]),
        "period_error_us": np.abs(np.diff(c[Col.WAKE]) - PERIOD),
    }
    for name, values in expected.items():
        wanted = [*np.percentile(values, [50, 90, 99, 99.9, 99.99]), values.max()]
        assert list(said[name]) == STATS
        assert list(said[name].values()) == pytest.approx([v / 1e3 for v in wanted], abs=6e-4), name


def test_hand_made_run() -> None:
    c = make_columns(5)
    c[Col.WAKE] = c[Col.DEADLINE] + [1000, 2000, 3000, 4000, 5000]
    c[Col.START] = c[Col.WAKE] + 100
    c[Col.END] = c[Col.START] + [10_000, 20_000, 30_000, 40_000, 50_000]
    c[Col.DONE] = c[Col.END] + 300
    c[Col.PERIOD] = [0, PERIOD + 1000, PERIOD - 4000, PERIOD, PERIOD + 2000]
    r = report(log_of(c))
    assert r.wake is not None
    assert r.step is not None
    assert r.own is not None
    assert r.period_error is not None
    assert (r.wake.min, r.wake.p50, r.wake.max) == (1000, 3000, 5000)
    assert (r.step.min, r.step.p50, r.step.max) == (10_000, 30_000, 50_000)
    assert (r.own.min, r.own.max) == (400, 400)
    assert (r.period_error.ticks, r.period_error.p50, r.period_error.max) == (4, 1500, 4000)
    assert (r.count, r.seconds, r.irregular) == (5, 0.005, 1)


def test_numbers_are_rounded_to_the_nanosecond() -> None:
    said = to_json(report(log_of(make_columns(777))))
    for group in ("wake_us", "step_us", "own_us", "period_error_us"):
        for value in said[group].values():
            assert value == round(value, 3)


# --- what counts, and what does not


def test_overruns_of_the_warm_up_are_counted_apart() -> None:
    c = make_columns(10)
    c[Col.FLAGS, [1, 2]] = Flag.OVERRUN | Flag.GRACE
    c[Col.FLAGS, 3] = Flag.GRACE
    c[Col.FLAGS, [5, 6, 7]] = Flag.OVERRUN | Flag.STALE
    r = report(log_of(c))
    assert (r.overruns, r.grace_overruns) == (3, 2)


def test_catch_up_ticks_do_not_spoil_the_wake_latency() -> None:
    c = make_columns(10)
    c[Col.WAKE, 4] = c[Col.DEADLINE, 4] + 3 * PERIOD
    spoilt = report(log_of(c)).wake
    c[Col.FLAGS, 4] = Flag.CATCH_UP
    r = report(log_of(c))
    assert spoilt is not None
    assert r.wake is not None
    assert spoilt.max == 3 * PERIOD
    assert r.wake.max < PERIOD
    assert (r.wake.ticks, r.catch_ups) == (9, 1)


def test_only_ticks_that_stepped_the_plant_have_a_step_time() -> None:
    c = make_columns(6)
    c[Col.START], c[Col.END] = 0, [1, 1, 1000, 2000, 1, 1]
    c[Col.STATE, :2] = State.ARMED
    c[Col.FLAGS, 4] = Flag.PAUSED
    c[Col.STATE, 5] = State.TRIPPED
    r = report(log_of(c))
    assert r.step is not None
    assert (r.step.ticks, r.step.min, r.step.max) == (2, 1000, 2000)


def test_periods_after_skips_are_left_out_and_counted() -> None:
    c = make_columns(10)
    c[Col.PERIOD] = PERIOD + 7
    c[Col.PERIOD, [0, 3, 6]] = 9 * PERIOD
    c[Col.MISSED, 3] = 8
    c[Col.FLAGS, 6] = Flag.SLIPPED
    r = report(log_of(c))
    assert r.period_error is not None
    assert (r.irregular, r.period_error.ticks, r.period_error.max) == (3, 7, 7)


def test_a_lost_head_does_not_lose_the_period() -> None:
    c = np.delete(make_columns(50), range(2, 50, 2), axis=1)
    assert report(TimingLog(columns=c)).period_ns == PERIOD


def test_what_the_file_lost_is_said() -> None:
    c = np.delete(make_columns(100), slice(20, 25), axis=1)
    said = to_json(report(log_of(c, lost=5, closed=True, total=103, damaged_blocks=2)))
    assert (said["ticks"], said["missing"], said["lost"], said["damaged_blocks"], said["closed"]) == (95, 8, 5, 2, True)


# --- forms


def test_json_has_exactly_these_keys() -> None:
    said = to_json(report(log_of(make_columns(10))))
    groups = {"wake_us", "step_us", "period_error_us", "own_us"}
    counts = {"ticks", "missing", "overruns", "grace_overruns", "closed", "lost", "damaged_blocks", "seconds"}
    assert set(said) == groups | counts
    assert all(list(said[group]) == STATS for group in groups)


@pytest.mark.parametrize("meta", [{}, {"period_ns": PERIOD}])
def test_empty_log_gives_nulls(meta: dict[str, int]) -> None:
    log = TimingLog(meta=meta)
    said = json.loads(json.dumps(to_json(report(log)), allow_nan=False))
    assert (said["ticks"], said["missing"], said["overruns"], said["seconds"], said["closed"]) == (0, 0, 0, 0, False)
    for group in ("wake_us", "step_us", "period_error_us", "own_us"):
        assert said[group] == dict.fromkeys(STATS)
    assert "holds no tick" in show(log)


def test_one_tick_has_no_period() -> None:
    r = report(log_of(make_columns(1)))
    assert r.period_error is None
    assert r.wake is not None


def test_table_says_the_run_in_one_sentence_and_fits_a_terminal() -> None:
    c = make_columns(2000)
    c[Col.WAKE, 9] = c[Col.DEADLINE, 9] + 1_234_700
    c[Col.FLAGS, 9] = Flag.OVERRUN
    text = show(log_of(c))
    sentence = "2,000 ticks in 2.0 s at 1 kHz, 1 overrun, no ticks missing, woke at most 1,234.7 µs late."
    assert sentence in " ".join(text.split())
    assert "123.5%" in text
    assert "…" not in text
    assert "not closed" in text
    assert max(len(line) for line in text.splitlines()) <= 80


# --- finding a run


def make_run(directory: Path, age: int) -> Path:
    directory.mkdir(parents=True)
    path = directory / "timing.hlog"
    TimingWriter(path, {}).close(0)
    os.utime(path, ns=(10**18 - age, 10**18 - age))
    return path


def test_find_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = make_run(tmp_path / "runs" / "b", 2000), make_run(tmp_path / "runs" / "a", 1000)
    (tmp_path / "runs" / "c").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_log().resolve() == new
    assert find_log(old.parent) == old
    assert find_log(str(old)) == old


def test_find_log_says_what_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunNotFound, match=rf"no timing\.hlog below {tmp_path}/runs: run the node"):
        find_log()
    with pytest.raises(RunNotFound, match=r"holds no timing\.hlog"):
        find_log(tmp_path)
    with pytest.raises(RunNotFound, match="nowhere does not exist: give a run directory"):
        find_log("nowhere")


# --- the picture


@pytest.mark.parametrize("count", [0, 1, 40, 5000])
def test_draws_any_length(tmp_path: Path, count: int) -> None:
    c = make_columns(count)
    if count > 1000:
        c[Col.WAKE, 700] += 5 * PERIOD
        c[Col.DONE, 700] += 5 * PERIOD
        c[Col.FLAGS, 700] = Flag.OVERRUN
        c[Col.FLAGS, 701:720] = Flag.CATCH_UP
        c = np.delete(c, slice(2000, 3000), axis=1)
    log = log_of(c)
    draw(log, report(log), tmp_path / "jitter.png")
    assert (tmp_path / "jitter.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_envelope_keeps_every_extreme() -> None:
    c = np.delete(make_columns(7000), slice(3000, 4000), axis=1)
    log = log_of(c)
    late = (c[Col.WAKE] - c[Col.DEADLINE]).astype(float)
    cut = cut_columns(log, 60, 10)
    place = np.minimum((c[Col.DEADLINE] - c[Col.DEADLINE, 0]) * 60 // int(np.ptp(c[Col.DEADLINE])), 59)
    groups = [late[place == i] for i in range(60)]
    expected = np.array([[g.min(), g.max(), np.median(g)] if len(g) else [np.nan] * 3 for g in groups])
    got = np.stack([cut.lowest(late), cut.highest(late), cut.percentile(late, 50)], axis=1)
    assert np.array_equal(got, expected, equal_nan=True)
    assert 7 <= np.isnan(got[:, 0]).sum() <= 9  # a seventh of the run is lost, and shown as lost


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    log = log_of(make_columns(10))
    with pytest.raises(PlotUnavailable, match=r"pip install hilnode\[plot\]"):
        draw(log, report(log), tmp_path / "jitter.png")


def test_the_report_does_not_wait_for_matplotlib() -> None:
    program = "import hilnode.report.jitter, hilnode.report.jitter_plot, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_report_of_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "timing.hlog"
    c = make_columns(300)
    with TimingWriter(path, {"period_ns": PERIOD}) as writer:
        for first in range(0, 300, 100):
            writer.append(np.ascontiguousarray(c.T[first : first + 100]))
            writer.flush()
    path.write_bytes(path.read_bytes()[:-10])
    said = to_json(report(read(path)))
    assert (said["ticks"], said["closed"], said["seconds"]) == (200, False, 0.2)
