"""Exports a recording to Parquet, CSV or MDF4.

A batch of rows at a time, so that a night's recording needs no more memory than a minute's. The result appears under
its name when it is whole.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bridge.record.columns import Column, Rows, columns_of
from bridge.record.run_file import Run

BATCH = 16_000_000  # [bytes] of rows at a time
LINES = 2000  # of CSV at a time: numbers of Python are large
SUFFIX = {"parquet": ".parquet", "csv": ".csv", "mdf4": ".mf4"}


class ExportError(ValueError):
    """What cannot be exported; the message says why and what to do."""


class Sink(Protocol):
    """Takes batches of rows; `close` makes the file whole."""

    def write(self, rows: Rows) -> None: ...

    def close(self) -> None: ...


class CsvSink:
    """`name [unit]` in the first line; numbers have as many digits as bring them back bit for bit."""

    def __init__(self, path: Path, run: Run, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._writer.writerow([f"{c.name} [{c.unit}]" if c.unit else c.name for c in columns])

    def write(self, rows: Rows) -> None:
        for k in range(0, len(rows), LINES):
            values = [c.take(rows[k : k + LINES]).tolist() for c in self._columns]
            self._writer.writerows(zip(*values, strict=True))

    def close(self) -> None:
        self._file.close()


class ParquetSink:
    """Unit and meaning stand in each field's metadata, config and schema in the file's."""

    def __init__(self, path: Path, run: Run, columns: Sequence[Column]) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow, self._columns = pyarrow, columns
        fields = [
            pyarrow.field(
                c.name,
                pyarrow.int64() if c.whole else pyarrow.float64(),
                nullable=False,
                metadata={"unit": c.unit, "doc": c.doc},
            )
            for c in columns
        ]
        about = {f"hilnode.{k}": json.dumps(run.about[k]) for k in ("node", "version", "started", "config", "schema")}
        self._schema = pyarrow.schema(fields, metadata=about)
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Rows) -> None:
        arrays = [self._arrow.array(np.ascontiguousarray(c.take(rows))) for c in self._columns]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class Mdf4Sink:
    """One channel group with `time` as its master; units and meanings as MDF has them."""

    def __init__(self, path: Path, run: Run, columns: Sequence[Column]) -> None:
        from asammdf import MDF

        self._path, self._columns = path, columns
        self._mdf: Any = MDF(version="4.10")
        self._group: int | None = None
        comment = f"hilnode {run.about['version']}, node {run.about['node']}, started {run.about['started']}"
        self._mdf.header.comment = comment

    def write(self, rows: Rows) -> None:
        from asammdf import Signal

        time, *rest = ((c, np.ascontiguousarray(c.take(rows))) for c in self._columns)
        if self._group is None:
            signals = [Signal(samples=v, timestamps=time[1], name=c.name, unit=c.unit, comment=c.doc) for c, v in rest]
            self._group = self._mdf.append(signals, acq_name="rows", comment="one row per tick", common_timebase=True)
        else:
            self._mdf.extend(self._group, [(time[1], None), *((v, None) for _, v in rest)])

    def close(self) -> None:
        self._mdf.save(self._path, overwrite=True, compression=1)
        self._mdf.close()


SINKS: dict[str, Callable[[Path, Run, Sequence[Column]], Sink]] = {
    "csv": CsvSink,
    "parquet": ParquetSink,
    "mdf4": Mdf4Sink,
}


def export(
    run: Run,
    kind: str,
    target: Path,
    *,
    signals: Sequence[str] = (),
    start_s: float | None = None,
    end_s: float | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> int:
    """Write the rows of a span of time to `target`; how many there were. `progress` is told the share that is done."""
    columns = columns_of(run, signals)
    if target.exists():
        raise ExportError(f"{target} exists already: choose another name with --out, or take it away")
    begin = start_s or 0.0
    span = max(1e-9, min(run.duration_s, end_s if end_s is not None else run.duration_s) - begin)
    part = target.with_name(f".{target.stem}.part{target.suffix}")  # asammdf wants its own ending
    count = 0
    sink = _open(kind, part, run, columns)
    with _removed_on_failure(sink, part):
        for rows in _batches(run.rows(start_s, end_s)):
            sink.write(rows)
            count += len(rows)
            progress((float(run.seconds(rows[-1:])[0]) - begin) / span)
        if not count:
            raise ExportError(f"{run.path} has no rows there: it lasts {run.duration_s:.3f} s")
        sink.close()
        os.replace(part, target)
    return count


def _open(kind: str, path: Path, run: Run, columns: Sequence[Column]) -> Sink:
    try:
        return SINKS[kind](path, run, columns)
    except ModuleNotFoundError as error:
        raise ExportError(f"--to {kind} needs the package {error.name}: pip install 'hilnode[export]'") from error


def _batches(chunks: Iterator[Rows]) -> Iterator[Rows]:
    """Chunks put together, up to `BATCH` bytes."""
    kept: list[Rows] = []
    size = 0
    for rows in chunks:
        kept.append(rows)
        size += rows.nbytes
        if size >= BATCH:
            yield np.concatenate(kept)
            kept, size = [], 0
    if kept:
        yield np.concatenate(kept)


@contextlib.contextmanager
def _removed_on_failure(sink: Sink, part: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong is told by the first error
            sink.close()
        part.unlink(missing_ok=True)
        raise
