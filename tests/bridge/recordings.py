"""Recordings made up for tests: a cart with one input and two outputs, at 1 kHz, in chunks of 100 rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.protocol import row_message
from bridge.record.mcap_file import McapFile, Messages, even_messages, uneven_messages
from bridge.record.row_recorder import EVENTS_ID, PROGRESS_ID, ROWS_ID, head_of
from hilnode.core.signals import Signal
from hilnode.shared.row import Col, Schema, State

SCHEMA = Schema(
    1_000_000,
    (Signal("cart.force", "N", low=-5.0, high=5.0, doc="push"),),
    (Signal("cart.position", "m"), Signal("cart.speed", "m/s")),
    (Signal("valve.ao0", "V"),),
    ("cart",),
)
OFFSET = 1_800_000_000_000_000_000
CHUNK = 100
START = 5_000_000_000  # [ns] wake of the first row


def about(**more: Any) -> dict[str, Any]:
    facts = {"version": "0", "node": "cart", "started": "2027-01-01T00:00:00+00:00", "clock_offset_ns": OFFSET}
    made = {"made_by": "a test", "config": {}, "parameters": {}, "tasks": [], "scene": [], "first_event": 1}
    return {**facts, **made, **more}


def rows_of(count: int, first: int = 0) -> NDArray[np.int64]:
    """Rows whose numbers use every bit, with an infinite age and a negative zero among them."""
    rng = np.random.default_rng(first)
    rows = np.zeros((count, SCHEMA.words), np.int64)
    ticks = np.arange(first, first + count)
    rows[:, Col.TICK] = rows[:, Col.STEP] = ticks
    rows[:, Col.WAKE] = rows[:, Col.DEADLINE] = START + ticks * SCHEMA.dt_ns
    rows[:, Col.STATE] = State.RUNNING
    values = rows.view(np.float64)
    values[:, SCHEMA.at_inputs :] = rng.standard_normal((count, SCHEMA.words - SCHEMA.at_inputs))
    values[0, SCHEMA.at_ages], values[-1, SCHEMA.at_outputs] = math.inf, -0.0
    return rows


def event(tick: int, what: str = "alarm") -> dict[str, Any]:
    return {"tick": tick, "time_ns": START + tick * SCHEMA.dt_ns, "event": what, "index": 0, "value": 1.0, "what": what}


def chunk_of(rows: NDArray[np.int64], events: list[tuple[int, dict[str, Any]]], total: int) -> list[Messages]:
    times = rows[:, Col.WAKE] + OFFSET
    parts = [even_messages(ROWS_ID, rows[:, Col.TICK], times, row_message.PREFIX, rows)]
    if events:
        told = [(n, e["time_ns"] + OFFSET, row_message.as_bytes(e)) for n, e in events]
        parts.append(uneven_messages(EVENTS_ID, told))
    progress = {"rows": total, "lost_rows": 0, "events": len(events), "lost_events": 0, "what": ""}
    progress |= {"next_tick": int(rows[-1, Col.TICK]) + 1, "next_event": 1}
    return [*parts, uneven_messages(PROGRESS_ID, [(total, int(times[-1]), row_message.as_bytes(progress))])]


def write(
    folder: Path, rows: NDArray[np.int64], events: list[dict[str, Any]] | None = None, *, finish: bool = True
) -> Path:
    """A run's folder with `rows.mcap` in it."""
    folder.mkdir(exist_ok=True)
    file = McapFile(folder / "rows.mcap", head_of({"schema": SCHEMA.as_dict(), "about": about()}), PROGRESS_ID)
    numbered = list(enumerate(events or [], 1))
    for k in range(0, len(rows), CHUNK):
        part = rows[k : k + CHUNK]
        mine = [(n, e) for n, e in numbered if part[0, Col.TICK] <= e["tick"] <= part[-1, Col.TICK]]
        file.add(chunk_of(part, mine, k + len(part)))
    if finish:
        file.finish()
    else:
        file.close()
    return folder
