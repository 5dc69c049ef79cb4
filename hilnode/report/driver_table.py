"""The drivers of a running node as a table: read from shared memory, so that it works for a frozen node too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hilnode.shared.health import Records, Report

COLORS = {"up": "green", "connecting": "yellow", "degraded": "yellow", "down": "red"}


def look(node: str) -> list[Report]:
    """How each driver of a node is doing now; periods since its start."""
    records = Records(node)
    try:
        return records.reports()
    finally:
        records.close()


def to_json(reports: Iterable[Report]) -> list[dict[str, Any]]:
    """The list as plain data; what has no value yet is null."""
    return [{k: _plain(v) for k, v in r.as_dict().items()} for r in reports]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render(reports: Iterable[Report]) -> RenderableType:
    """A line for each driver, and below them what troubles them."""
    listed = list(reports)
    if not listed:
        return Text("this node has no drivers")
    table = Table(box=None, pad_edge=False)
    table.add_column("driver")
    table.add_column("kind")
    table.add_column("state")
    for heading in ("frames", "writes", "errors", "reconnects", "age", "period p50", "p99"):
        table.add_column(heading, justify="right")
    for r in listed:
        state = Text(r.state, style=COLORS[r.state])
        if r.twin:
            state.append(" (twin)", style="cyan")
        counts = (str(n) for n in (r.frames, r.writes, r.errors, r.reconnects))
        times = (seconds(r.age_s), seconds(r.period_p50_us * 1e-6), seconds(r.period_p99_us * 1e-6))
        table.add_row(Text(r.name), Text(r.kind), state, *counts, *times)
    return Group(table, *(Text(f"{r.name}: {r.trouble}", style="yellow") for r in listed if r.trouble))


def seconds(value: float) -> str:
    """A time with three digits and a unit that suits it."""
    if not math.isfinite(value):
        return "-"
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if value >= s), (1e-6, "us"))
    return f"{value / scale:.3g} {unit}" if value / scale < 1000 else f"{value / scale:.0f} {unit}"
