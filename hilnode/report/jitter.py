"""The jitter report: how well a run kept its time, from its timing log.

Four times, each per tick:

    wake          wake - deadline: what the scheduler and the machine cost. Catch-up ticks are left out: they run at
                  once and on purpose late, so their lateness says nothing about waking up.
    step          end - start: the plant. Only ticks that stepped it (running, not paused).
    own           (done - wake) - (end - start): what hilnode itself costs around the plant.
    period error  |measured period - nominal|. The first tick has no period, and one after given-up or moved
                  deadlines has one that was chosen: both are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hilnode.shared.blackbox import count_of, has, held_against, nominal_period
from hilnode.shared.row import Flag, State
from hilnode.shared.timinglog import FILE_NAME, TimingLog

RUNS = Path("runs")
"""Where runs are looked for when none is named."""

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)


class RunNotFound(FileNotFoundError):
    """No timing log where one was looked for; the message says where, and what to do."""


class Stats(NamedTuple):
    """How one time was distributed [ns]."""

    ticks: int
    min: float
    p50: float
    p90: float
    p99: float
    p999: float
    p9999: float
    max: float


@dataclass(frozen=True)
class JitterReport:
    """A run's timing in numbers. A distribution is None when no tick counts for it."""

    count: int
    missing: int
    overruns: int
    grace_overruns: int
    catch_ups: int  # left out of `wake`
    irregular: int  # left out of `period_error`
    wake: Stats | None
    step: Stats | None
    own: Stats | None
    period_error: Stats | None
    period_ns: int | None
    seconds: float
    closed: bool
    lost: int
    damaged_blocks: int


def wake_latency(log: TimingLog) -> NDArray[np.int64]:
    """How late each tick woke [ns], for all ticks."""
    return log.wake - log.deadline


def own_cost(log: TimingLog) -> NDArray[np.int64]:
    """What each tick took beside the plant [ns]."""
    return (log.done - log.wake) - (log.end - log.start)


def stepped(log: TimingLog) -> NDArray[np.bool_]:
    """Which ticks stepped the plant."""
    return (log.state == State.RUNNING) & ~has(log, Flag.PAUSED)


def _stats(values: NDArray[np.int64]) -> Stats | None:
    if not len(values):
        return None
    p50, p90, p99, p999, p9999 = (float(p) for p in np.percentile(values, PERCENTS))
    return Stats(len(values), float(values.min()), p50, p90, p99, p999, p9999, float(values.max()))


def _irregular(log: TimingLog) -> NDArray[np.bool_]:
    """Which ticks have no period, or one that was chosen rather than suffered."""
    which = (log.missed > 0) | has(log, Flag.SLIPPED)
    which[:1] = True
    return which


def report(log: TimingLog) -> JitterReport:
    """Work out the numbers of a run."""
    period = nominal_period(log)
    irregular = _irregular(log)
    catch_up = has(log, Flag.CATCH_UP)
    overrun = has(log, Flag.OVERRUN)
    span = int(log.deadline[-1] - log.deadline[0]) + (period or 0) if len(log) else 0
    return JitterReport(
        count=len(log),
        missing=log.missing,
        overruns=int(held_against(log).sum()),
        grace_overruns=int((overrun & has(log, Flag.GRACE)).sum()),
        catch_ups=int(catch_up.sum()),
        irregular=int(irregular.sum()),
        wake=_stats(wake_latency(log)[~catch_up]),
        step=_stats((log.end - log.start)[stepped(log)]),
        own=_stats(own_cost(log)),
        period_error=_stats(np.abs(log.period[~irregular] - period)) if period else None,
        period_ns=period,
        seconds=span / 1e9,
        closed=log.closed,
        lost=log.lost,
        damaged_blocks=log.damaged_blocks,
    )


def _us(stats: Stats | None) -> dict[str, float | None]:
    keys = ("p50", "p90", "p99", "p999", "p9999", "max")
    return {key: None if stats is None else round(getattr(stats, key) / 1e3, 3) for key in keys}


def to_json(report: JitterReport) -> dict[str, Any]:
    """Give the report as plain data for other programs: microseconds, null where nothing was measured."""
    return {
        "ticks": report.count,
        "missing": report.missing,
        "overruns": report.overruns,
        "wake_us": _us(report.wake),
        "step_us": _us(report.step),
        "period_error_us": _us(report.period_error),
        "own_us": _us(report.own),
        "grace_overruns": report.grace_overruns,
        "closed": report.closed,
        "lost": report.lost,
        "damaged_blocks": report.damaged_blocks,
        "seconds": round(report.seconds, 3),
    }


def rate(period_ns: int) -> str:
    """Say `1 kHz` for a period of a million nanoseconds."""
    hertz = 1e9 / period_ns
    return f"{hertz / 1e3:g} kHz" if hertz >= 1e3 else f"{hertz:g} Hz"


def headline(report: JitterReport) -> str:
    """Say the whole run in one sentence."""
    if not report.count:
        return "The log holds no tick: the node never began, or was killed before the first flush."
    at = f" at {rate(report.period_ns)}" if report.period_ns else ""
    said = [f"{count_of(report.count, 'tick')} in {report.seconds:,.1f} s{at}", count_of(report.overruns, "overrun")]
    said.append(f"{count_of(report.missing, 'tick')} missing")
    if report.wake:
        said.append(f"woke at most {report.wake.max / 1e3:,.1f} µs late")
    return ", ".join(said) + "."


def _notes(report: JitterReport) -> list[str]:
    """List what a reader must know before trusting the numbers."""
    notes = []
    if report.grace_overruns:
        notes.append(f"{count_of(report.grace_overruns, 'overrun')} during the warm-up, not held against the run")
    if report.catch_ups:
        notes.append(f"{count_of(report.catch_ups, 'catch-up tick')} left out of the wake latency")
    if report.irregular > 1:
        notes.append(f"{count_of(report.irregular - 1, 'period')} after skipped or moved deadlines left out")
    if report.lost:
        notes.append(f"{count_of(report.lost, 'row')} lost: the recorder was too slow for the ring")
    if report.damaged_blocks:
        notes.append(f"{count_of(report.damaged_blocks, 'damaged block')} in the file stepped over")
    if not report.closed:
        notes.append("the log was not closed: the node is still running or was killed")
    return notes


def render(report: JitterReport) -> RenderableType:
    """Give the report as a table for a terminal."""
    good = report.count and not (report.overruns or report.missing)
    parts: list[RenderableType] = [Text(headline(report), style="bold green" if good else "bold yellow")]
    if report.count:
        parts.append(_table(report))
    parts.extend(Text(f"· {note}", style="dim") for note in _notes(report))
    return Group(*parts)


def _table(report: JitterReport) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 1), pad_edge=False, header_style="dim")  # fits 80 columns
    table.add_column("µs", no_wrap=True)
    for name in ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max"):
        table.add_column(name, justify="right", min_width=7, no_wrap=True)
    table.add_column("of period", justify="right", no_wrap=True)
    lines = (("wake latency", report.wake), ("plant step", report.step), ("own cost", report.own))
    for name, stats in (*lines, ("period error", report.period_error)):
        if stats is None:
            table.add_row(name, *["-"] * 8, style="dim")
            continue
        share = f"{stats.max / report.period_ns:.1%}" if report.period_ns else "-"
        table.add_row(name, *(f"{value / 1e3:,.1f}" for value in stats[1:]), share)
    return table


def find_log(path: str | Path | None = None) -> Path:
    """Find the timing log of a run directory, the file itself, or the newest run below ./runs."""
    if path is None:
        return _newest(RUNS)
    given = Path(path)
    if given.is_file():
        return given
    if (given / FILE_NAME).is_file():
        return given / FILE_NAME
    if given.is_dir():
        raise RunNotFound(
            f"{given} holds no {FILE_NAME}: it is not the directory of a run; runs are kept below {RUNS.resolve()}"
        )
    raise RunNotFound(f"{given} does not exist: give a run directory or its {FILE_NAME}, or nothing for the newest run")


def _newest(runs: Path) -> Path:
    logs = sorted(runs.rglob(FILE_NAME), key=lambda log: log.stat().st_mtime_ns)
    if not logs:
        raise RunNotFound(
            f"no {FILE_NAME} below {runs.resolve()}: run the node from this directory first, or name a run directory"
        )
    return logs[-1]
