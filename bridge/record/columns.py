"""The columns of a recording for export: name, unit, description, and how each is taken from a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from bridge.protocol.row_message import POSE_FIELDS
from bridge.record.run_file import Run
from hilnode.core.signals import UnknownName, nearest
from hilnode.shared.row import POSE, Col

Rows = NDArray[np.int64]
Values = NDArray[np.float64] | NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """One column; `take` gives its values for a table of rows: float64, or int64 where `whole`."""

    name: str
    unit: str
    doc: str
    take: Callable[[Rows], Values]
    whole: bool = False


def columns_of(run: Run, wanted: Sequence[str] = ()) -> list[Column]:
    """The time and then the columns that are wanted, by name or pattern (`arm.*`); without any, all there are."""
    time, *rest = _all(run)
    if not wanted:
        return [time, *rest]
    names = [c.name for c in rest]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownName(f"no signal {pattern!r} in {run.path}: {nearest(pattern, names)}")
    return [time, *(c for c in rest if any(fnmatchcase(c.name, pattern) for pattern in wanted))]


def _all(run: Run) -> list[Column]:
    s = run.schema
    dt = s.dt_ns * 1e-9
    made = [
        Column("time", "s", "since the first row, by the node's clock", run.seconds),
        Column("t", "s", "simulated time", lambda rows: np.multiply(rows[:, Col.STEP], dt, dtype=np.float64)),
        _header("tick", "rows since the loop began", Col.TICK),
        _header("state", "0 configured, 1 armed, 2 running, 3 tripped, 4 cleared, 5 stopped", Col.STATE),
        _header("flags", "what was special about the tick", Col.FLAGS),
        _header("status", "what the plant returned; 0 is OK", Col.STATUS),
        _header("missed", "deadlines given up just before", Col.MISSED),
        _span("wake_us", "wake minus deadline", Col.DEADLINE, Col.WAKE),
        _span("step_us", "time in the plant", Col.START, Col.END),
    ]
    words = [*range(s.at_inputs, s.at_ages), *range(s.at_outputs, s.at_poses)]
    made += [_word(x.name, x.unit, x.doc, k) for x, k in zip(s.signals, words, strict=True)]
    made += [_word(f"{x.name}.age", "s", f"age of {x.name}", s.at_ages + k) for k, x in enumerate(s.inputs)]
    for b, body in enumerate(s.bodies):
        for j, part in enumerate(POSE_FIELDS):
            unit = "m" if len(part) == 1 else ""
            made.append(_word(f"{body}.{part}", unit, f"pose of {body}", s.at_poses + POSE * b + j))
    return _unlike(made)


def _unlike(columns: list[Column]) -> list[Column]:
    """A body `arm` and an output `arm.x` would meet: the pose gives way."""
    seen: set[str] = set()
    made = []
    for c in columns:
        name = c.name if c.name not in seen else f"{c.name}.pose"
        seen.add(name)
        made.append(Column(name, c.unit, c.doc, c.take, c.whole))
    return made


def _header(name: str, doc: str, col: Col) -> Column:
    return Column(name, "", doc, lambda rows: rows[:, col], whole=True)


def _span(name: str, doc: str, begin: Col, end: Col) -> Column:
    return Column(name, "us", doc, lambda rows: np.multiply(rows[:, end] - rows[:, begin], 1e-3, dtype=np.float64))


def _word(name: str, unit: str, doc: str, word: int) -> Column:
    return Column(name, unit, doc, lambda rows: np.ascontiguousarray(rows[:, word]).view(np.float64))
