"""The black box: what happened around the first overruns of a run, and the likeliest cause.

An incident is cut out of the timing log: the rows a second before and after, and the machine's counters. The two
samples nearest around the overrun bound what the machine did to it. The guess weighs those counters against the
part of the tick that took too long, and says which numbers it rests on.

Limits: counters are sampled some 50 ms apart, and steal and interrupt time come in units of 10 ms. A guess is a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.machine_sample import CPU_TICK_NS, UNKNOWN, MachineSample
from hilnode.shared.row import Col, Flag
from hilnode.shared.timinglog import TimingLog

EXPLAINS = 0.5
"""A counter is the cause when it accounts for at least this share of the time that went astray."""

STOPPED_PERIODS = 10
"""A shorter silence may be a timer or a firmware interrupt; a longer one with no other trace is a stopped process."""

MINOR_FAULT_NS = 100_000
"""A generous price of one page fault without the disc: clearing a huge page takes this long."""


@dataclass(frozen=True, eq=False)
class Incident:
    """One overrun with its surroundings, and how many more fell into the same window."""

    row: NDArray[np.int64]  # header of the first tick that overran
    rows: NDArray[np.int64]  # [n, 12] headers within the window
    samples: tuple[MachineSample, ...]  # within the window, and the one on either side of it
    before: MachineSample | None  # the last sample before the overrun began
    after: MachineSample | None  # the first one after it ended
    overruns: int
    period_ns: int

    @property
    def tick(self) -> int:
        return int(self.row[Col.TICK])

    @property
    def late_ns(self) -> int:
        return int(self.row[Col.WAKE] - self.row[Col.DEADLINE])

    @property
    def step_ns(self) -> int:
        return int(self.row[Col.END] - self.row[Col.START])

    @property
    def own_ns(self) -> int:
        return int(self.row[Col.DONE] - self.row[Col.WAKE]) - self.step_ns

    @property
    def delta(self) -> MachineSample | None:
        """How far each counter rose across the overrun; `UNKNOWN` where either end is. None without samples."""
        if self.before is None or self.after is None:
            return None
        pairs = zip(self.before, self.after, strict=True)
        return MachineSample(*(b - a if UNKNOWN not in (a, b) else UNKNOWN for a, b in pairs))


def cut(log: TimingLog, seconds: float = 2.0, first: int = 8) -> list[Incident]:
    """Cut out the first incidents of a run; an overrun within the window of the one before belongs to it.

    Overruns of the warm-up are not incidents.
    """
    half = int(seconds * 1e9 / 2)
    period = nominal_period(log) or 0
    times = np.array([s.time_ns for s in log.samples], np.int64)
    overruns = np.flatnonzero(held_against(log))
    found: list[Incident] = []
    while len(overruns) and len(found) < first:
        at = int(overruns[0])
        middle = int(log.deadline[at])
        same = log.deadline[overruns] <= middle + half
        found.append(_incident(log, times, at, half, int(same.sum()), period))
        overruns = overruns[~same]
    return found


def _incident(log: TimingLog, times: NDArray[np.int64], at: int, half: int, overruns: int, period: int) -> Incident:
    begin, end = int(log.deadline[at]), int(log.done[at])
    near = np.abs(log.deadline - begin) <= half
    left = int(np.searchsorted(times, begin, "right")) - 1
    right = int(np.searchsorted(times, end, "left"))
    first = max(0, int(np.searchsorted(times, begin - half, "right")) - 1)
    last = int(np.searchsorted(times, begin + half, "left"))
    return Incident(
        row=log.rows[at].copy(),
        rows=log.rows[near],
        samples=log.samples[first : max(last, right) + 1],
        before=log.samples[left] if left >= 0 else None,
        after=log.samples[right] if right < len(times) else None,
        overruns=overruns,
        period_ns=period,
    )


def guess_cause(incident: Incident) -> str:
    """Name the likeliest cause in one sentence, with the evidence."""
    name, astray = _longest(incident)
    what = _what(incident, name, astray)
    rose = incident.delta
    if rose is None:
        if name == "step":
            return f"{what}: the plant is too slow here (no machine counters around this tick)"
        return f"{what}: cause not visible, there are no machine counters around this tick"
    for verdict in _verdicts(incident, name, astray, rose):
        return f"{what}{verdict}"
    return f"{what}: cause not visible in these counters"


def _longest(incident: Incident) -> tuple[str, int]:
    """Return which part of the tick took longest, and its time [ns]."""
    parts = {"late": incident.late_ns, "step": incident.step_ns, "own": incident.own_ns}
    name = max(parts, key=lambda key: parts[key])
    return name, parts[name]


def _what(incident: Incident, name: str, astray: int) -> str:
    if name == "late":
        return f"woke {_ms(astray)} late"
    of = f" of a {_ms(incident.period_ns)} period" if incident.period_ns else ""
    return f"{'plant step' if name == 'step' else 'work around the plant'} took {_ms(astray)}{of}"


def _verdicts(incident: Incident, name: str, astray: int, rose: MachineSample) -> Iterator[str]:
    """Yield the causes that the counters support, the most telling first.

    A tick that waits for a CPU in the middle of its work was taken off it; late in waking, it need not have been.
    """
    enough = EXPLAINS * astray
    steal = rose.cpu_steal_ticks * CPU_TICK_NS
    irq = (max(rose.cpu_irq_ticks, 0) + max(rose.cpu_softirq_ticks, 0)) * CPU_TICK_NS
    if rose.run_delay_ns >= enough and (name == "late" or rose.involuntary_switches != 0):
        yield f" while the run queue delay rose by {_ms(rose.run_delay_ns)}: another task held the CPU"
    if steal >= enough:
        yield f" while steal rose by {_ms(steal)}: the hypervisor took the CPU"
    if _was_stopped(incident, name, astray, rose):
        yield " with neither run queue delay nor steal to match: node was stopped (SIGSTOP/debugger)"
    if rose.major_faults > 0:
        yield f" while {count_of(rose.major_faults, 'page')} came from the disc: the node's memory was not locked"
    if _unusual_faults(incident, rose) * MINOR_FAULT_NS >= enough:
        yield f" while page faults rose by {rose.minor_faults:,}: memory was touched for the first time"
    if name == "step":
        yield ": the plant is too slow here"
    if irq >= enough:
        yield f" while irq/softirq time rose by {_ms(irq)}: interrupts held the CPU"
    if rose.run_delay_ns == UNKNOWN and rose.involuntary_switches > 0:
        yield f" while it was taken off the CPU {count_of(rose.involuntary_switches, 'time')}: another task held it"
    if rose.gc_ns >= enough:
        yield f" while Python collected garbage for {_ms(rose.gc_ns)}: the tick waited for Python"


def _unusual_faults(incident: Incident, rose: MachineSample) -> int:
    """Count the page faults beyond those that ticks which kept their time had, too."""
    rises = np.diff([sample.minor_faults for sample in incident.samples])
    return rose.minor_faults - int(np.median(rises))


def _was_stopped(incident: Incident, name: str, astray: int, rose: MachineSample) -> bool:
    """Tell a long silence that left no trace.

    A tick stopped inside the plant looks like a slow plant, but for the CPU time that it did not use.
    """
    if not incident.period_ns or astray <= STOPPED_PERIODS * incident.period_ns or rose.run_delay_ns == UNKNOWN:
        return False
    if name == "late" or rose.on_cpu_ns == UNKNOWN:
        return name == "late"
    return rose.on_cpu_ns < EXPLAINS * astray


def _ms(ns: int) -> str:
    """Say nanoseconds in milliseconds, to the microsecond and no further than it matters."""
    ms = ns / 1e6
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def save(incidents: Iterable[Incident], directory: str | Path) -> list[Path]:
    """Write each incident to `blackbox-<tick>.json` and return the paths."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for incident in incidents:
        path = folder / f"blackbox-{incident.tick}.json"
        text = json.dumps(_as_dict(incident), separators=(",", ":")) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError:
            path.unlink(missing_ok=True)  # half of one is none
            raise
        written.append(path)
    return written


def _as_dict(incident: Incident) -> dict[str, Any]:
    delta = incident.delta
    return {
        "tick": incident.tick,
        "cause": guess_cause(incident),
        "overruns_in_window": incident.overruns,
        "period_ns": incident.period_ns,
        "late_ns": incident.late_ns,
        "step_ns": incident.step_ns,
        "own_ns": incident.own_ns,
        "flags": [flag.name for flag in Flag if flag & int(incident.row[Col.FLAGS])],
        "counters_rose": None if delta is None else delta._asdict(),
        "unknown_counter": UNKNOWN,
        "sample_columns": list(MachineSample._fields),
        "samples": [list(sample) for sample in incident.samples],
        "row_columns": [column.name.lower() for column in Col],
        "rows": incident.rows.tolist(),
    }


def has(log: TimingLog, flag: Flag) -> NDArray[np.bool_]:
    """Which ticks carry `flag`."""
    return (log.flags & int(flag)) != 0


def held_against(log: TimingLog) -> NDArray[np.bool_]:
    """Which ticks overran outside the warm-up."""
    return has(log, Flag.OVERRUN) & ~has(log, Flag.GRACE)


def nominal_period(log: TimingLog) -> int | None:
    """Return the period the run was set to [ns]; if the file's head is lost, the distance of most deadlines."""
    given = log.meta.get("period_ns")
    if given:
        return int(given)
    apart = np.diff(log.deadline)[np.diff(log.tick) == 1]
    return int(np.median(apart)) if len(apart) else None


def count_of(n: int, thing: str) -> str:
    """Say `no overruns`, `1 overrun`, `1,200 overruns`."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}" if n else f"no {thing}s"
