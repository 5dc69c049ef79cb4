"""Is this PC fit for a real-time loop, and what should be changed first?

The verdict is a measurement; the checks explain it, and their order says which remedy helps most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hilnode.report.doctor_checks import PRIORITY, Finding, examine
from hilnode.shared.realtime import choose_cpu

if TYPE_CHECKING:  # the probe brings numba, which takes longer to import than all checks take to run
    from hilnode.report.latency_probe import Probe


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole report: `grade` and `sentence` judge the measured latency, the findings explain it."""

    cpu: int
    grade: str
    sentence: str
    findings: tuple[Finding, ...]
    probe: Probe | None = None


def diagnose(cpu: int | None = None, seconds: float = 3.0, probe: bool = True) -> Diagnosis:
    """Check this machine and, if `probe`, measure for so many seconds how late it wakes a thread on the tick's CPU."""
    where = choose_cpu("auto") if cpu is None else cpu
    findings = examine(where)
    if not probe:
        bad = sum(f.level == "bad" for f in findings)
        told = f"{bad} of {len(findings)} checks are bad." if bad else "No check is bad."
        return Diagnosis(where, "not measured", f"{told} Only a measurement shows what the tick will get.", findings)
    from hilnode.report import latency_probe

    measured = latency_probe.measure(where, seconds, priority=PRIORITY)
    return Diagnosis(
        where, latency_probe.grade(measured.max_us).name, latency_probe.sentence(measured), findings, measured
    )


def advice(findings: Iterable[Finding]) -> list[Finding]:
    """What to change, the most helpful first: bad before note, else in the order of the checks, each remedy once."""
    remedies: dict[str, Finding] = {}
    for f in sorted(findings, key=lambda f: f.level != "bad"):
        if f.fix and f.level in ("bad", "note"):
            remedies.setdefault(f.fix, f)
    return list(remedies.values())


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The report as plain data; `changes` names the three checks whose remedy helps most."""
    plain = asdict(diagnosis)
    plain["findings"] = list(plain["findings"])
    return plain | {"changes": [f.name for f in advice(diagnosis.findings)[:3]]}


COLOUR = {"bad": "bold red", "note": "yellow", "unknown": "dim", "good": "green"}


def render(diagnosis: Diagnosis) -> RenderableType:
    """The report for a terminal: the grade, the three changes that help most, the table, then the other remedies."""
    first, rest = advice(diagnosis.findings)[:3], advice(diagnosis.findings)[3:]
    parts: list[RenderableType] = [_headline(diagnosis), Text(diagnosis.sentence), Text()]
    if first:
        parts += [Text("What would help most", style="bold"), _remedies(first, 1), Text()]
    parts.append(_table(diagnosis.findings))
    if rest:
        parts += [Text("\nWhat else would help", style="bold"), _remedies(rest, len(first) + 1)]
    if first:
        parts.append(Text("\nWhat is set under /proc and /sys lasts until the next boot.", style="dim"))
    return Group(*parts)


def _headline(d: Diagnosis) -> Text:
    line = Text.assemble(("Timing: ", "bold"), (d.grade, "bold reverse"), f"  on CPU {d.cpu}")
    if d.probe:
        p = d.probe
        line.append(f"\nWake-up latency in us: median {p.p50_us:.1f}, 99 % {p.p99_us:.1f}, ")
        line.append(f"99.9 % {p.p999_us:.1f}, max {p.max_us:.1f}")
    return line


def _remedies(findings: Iterable[Finding], start: int) -> Group:
    """Commands stand on lines of their own with nothing behind them, so that they can be copied."""
    parts: list[RenderableType] = []
    for i, f in enumerate(findings, start):
        parts.append(Text.assemble(f"{i:2}. ", (f.name, "bold"), f": {f.value}"))
        parts += [Text(f"    {line}", style="cyan") for line in f.fix.splitlines()]
    return Group(*parts)


def _table(findings: Iterable[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("", "check", "found", "why it matters"):
        table.add_column(head, overflow="fold")
    for f in sorted(findings, key=lambda f: list(COLOUR).index(f.level)):
        why = "" if f.level == "good" else f.why  # what is well needs no explaining
        table.add_row(Text(f.level, style=COLOUR[f.level]), Text(f.name), Text(f.value), Text(why, style="dim"))
    return table
