"""The recorder of rows: a process that writes every row and every event of a run to an MCAP file.

It reads the rings like any other reader, a few times a second; the tick does not know that it exists. About once a
second what has come makes a chunk, which is on the disc before the next one begins. If it is killed, the node starts
another one, which goes on in the same file where the last chunk ends: the ring still holds what came since (10 seconds
by default). Rows that were overwritten before they could be read are counted, in the file and at the end of the run. A
disc that is full or refuses ends the recording with one line; the node runs on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mcap.records import Channel, Header, McapRecord, Metadata
from mcap.records import Schema as McapSchema
from numpy.typing import NDArray

from bridge.protocol import row_message
from bridge.record.display_record import DisplayRecorder
from bridge.record.mcap_file import McapFile, Messages, even_messages, uneven_messages
from bridge.record.mcap_scan import RecordingError
from bridge.record.run_file import EVENTS, FILE_NAME, PROGRESS, ROWS, RUN, SIGHTS, Run
from hilnode.shared.command_record import CommandBook
from hilnode.shared.control import Control, Word
from hilnode.shared.events import EventDecoder
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.realtime import keep_off
from hilnode.shared.row import Col, Schema

PERIOD_MS = 50  # between two looks at the rings
LARGEST = 8_000_000  # [bytes] of rows in a chunk: what a reader must hold at once
ROWS_ID, EVENTS_ID, PROGRESS_ID, SIGHTS_ID = 1, 2, 3, 4


class RecordingStopped(RuntimeError):
    """The disc refuses; the message is for people."""


@contextlib.contextmanager
def _disc() -> Iterator[None]:
    """What the disc refuses ends the recording. Any other error ends the process, and the node starts another one."""
    try:
        yield
    except OSError as error:
        raise RecordingStopped(error.strerror or str(error)) from error


def head_of(spec: dict[str, Any]) -> list[McapRecord]:
    """The first records of a file: what run it is of, and what its channels hold."""
    schema = Schema.from_dict(spec["schema"])
    about = {k: v if isinstance(v, str) else json.dumps(v) for k, v in spec["about"].items()}
    names = json.dumps([s.name for s in schema.signals])
    texts = {
        ROWS_ID: (ROWS, row_message.SCHEMA_NAME, row_message.SCHEMA_ENCODING, row_message.definition(schema)),
        EVENTS_ID: (EVENTS, "hilnode.Event", "jsonschema", row_message.as_bytes(row_message.EVENT_SCHEMA)),
        PROGRESS_ID: (PROGRESS, "hilnode.Progress", "jsonschema", row_message.as_bytes(row_message.PROGRESS_SCHEMA)),
    }
    schemas = [McapSchema(id=k, name=n, encoding=e, data=d) for k, (_, n, e, d) in texts.items()]
    channels = [
        Channel(
            id=k,
            topic=topic,
            message_encoding=row_message.ENCODING if k == ROWS_ID else "json",
            metadata={"hash": f"{schema.hash:016x}", "signals": names} if k == ROWS_ID else {},
            schema_id=k,
        )
        for k, (topic, *_) in texts.items()
    ]
    if spec["about"].get("sights"):
        channels.append(Channel(id=SIGHTS_ID, topic=SIGHTS, message_encoding="msgpack", metadata={}, schema_id=0))
    run = Metadata(name=RUN, metadata=about | {"schema": json.dumps(spec["schema"])})
    return [Header("", f"hilnode {spec['about']['version']}"), run, *schemas, *channels]


class RowRecorder:
    """Records one node. `spec` comes from the node: see `hilnode.node.recorder_spec`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        schema = Schema.from_dict(spec["schema"])
        self._control = Control.attach(spec["node"])
        self._rows = Ring.attach(f"{spec['node']}.rows", schema=schema.hash)
        self._events = Ring.attach(f"{spec['node']}.events")
        self._offset = int(spec["about"]["clock_offset_ns"])
        self._chunk_ns = round(spec["chunk_s"] * 1e9)
        self._min_free = spec["min_free_mb"] * 1e6
        status = {int(code): words for code, words in spec["status"].items()}
        self._event_decoder = EventDecoder(
            schema, spec["alarms"], lambda code: status.get(code, f"plant status {code}"), spec["drivers"]
        )
        names = [s.name for s in schema.signals]
        self._commands = CommandBook([Ring.attach(ring) for ring in spec["command_rings"]], names, spec["parameters"])
        self.path = Path(spec["directory"]) / FILE_NAME
        self.counts = {"rows": 0, "lost_rows": 0, "events": 0, "lost_events": 0}
        first_tick, first_event, self._what = 0, int(spec["about"]["first_event"]), ""
        with _disc():
            self._check_room()
            self.file = McapFile(self.path, head_of(spec), PROGRESS_ID)
            if self.file.resumed:
                first_tick, first_event = self._go_on(first_event)
        self._row_reader = self._rows.reader(first=first_tick, batch=min(4096, max(1, LARGEST // (8 * schema.words))))
        self._event_reader = self._events.reader(first=first_event)
        self._before = dict(self.counts)  # losses of earlier recorders
        self._pending: list[NDArray[np.int64]] = []
        self._happened: list[tuple[int, tuple[int, int, bytes]]] = []  # tick, and number, time and text
        layout = spec["about"].get("sights")
        self._display = DisplayRecorder(spec["node"], layout, self._offset) if layout else None
        self._due = time.monotonic_ns() + self._chunk_ns
        self._last_time = 0

    def _go_on(self, first_event: int) -> tuple[int, int]:
        with Run(self.path) as run:
            progress = run.progress  # none if no chunk can be read: then all that the ring holds is read again
        self.counts |= {k: progress.get(k, 0) for k in self.counts}
        self._what = "the recorder was started again" + (
            f"; {self.file.cut} bytes of a half-written chunk were cut off" if self.file.cut else ""
        )
        return progress.get("next_tick", 0), progress.get("next_event", first_event)

    def work(self) -> None:
        """Until the node ends or dies; then write what is left and the summary."""
        waiter = select.poll()
        dead = False
        try:
            waiter.register(os.pidfd_open(self._control[Word.PID]), select.POLLIN)
        except ProcessLookupError:
            dead = True  # the node went first: its rows are still in the ring
        while True:
            gone = dead or bool(waiter.poll(PERIOD_MS)) or self._control[Word.CLOSING] == 1
            self.look()
            if self._display:
                self._display.look(self._row_reader.next - 1)
            if gone:
                break
            if time.monotonic_ns() >= self._due:
                self._flush()
        self._flush(last=True)
        with _disc():
            self.file.finish()

    def look(self) -> None:
        """Read all rows that have come."""
        size = sum(rows.nbytes for rows in self._pending)
        while len(rows := self._row_reader.read()):
            self._pending.append(rows.copy())
            size += rows.nbytes
            if size >= LARGEST:
                self._flush()
                size = 0

    def _hear(self) -> None:
        """Read the events, after the rows: so all events of the rows that are there have come."""
        while len(rows := self._event_reader.read()):
            first = self._event_reader.next - len(rows)
            self._commands.look()
            for k, words in enumerate(rows):
                happening = self._event_decoder.decode(words)
                body = row_message.as_bytes(self._commands.describe(happening))
                self._happened.append((happening.tick, (first + k, happening.time_ns + self._offset, body)))

    def _flush(self, *, last: bool = False) -> None:
        """One chunk of what is there, if there is anything. Events wait for their row, unless this is the last."""
        self._due = time.monotonic_ns() + self._chunk_ns
        self._hear()
        rows = np.concatenate(self._pending) if self._pending else np.empty((0, self._rows.view.width), np.int64)
        next_tick = int(rows[-1, Col.TICK]) + 1 if len(rows) else self._row_reader.next
        happened = [item for tick, item in self._happened if last or tick < next_tick]
        self._pending, self._happened = [], self._happened[len(happened) :]
        shown = self._display.take() if self._display else []  # also while the plant stands: it would wait for ever
        if not len(rows) and not happened and not shown:
            return
        parts: list[Messages] = []
        times = rows[:, Col.WAKE] + self._offset
        if len(rows):
            parts.append(even_messages(ROWS_ID, rows[:, Col.TICK], times, row_message.PREFIX, rows))
            self._last_time = int(times[-1])
        if happened:
            parts.append(uneven_messages(EVENTS_ID, happened))
            self._last_time = self._last_time or happened[-1][1]
        if shown:
            self._last_time = self._last_time or shown[-1][1]
            parts.append(uneven_messages(SIGHTS_ID, shown))
        counts, what = self._counted(len(rows), len(happened))
        progress = {
            **counts,
            "next_tick": next_tick,
            "next_event": self._happened[0][1][0] if self._happened else self._event_reader.next,
            "what": what,
        }
        body = row_message.as_bytes(progress)
        parts.append(uneven_messages(PROGRESS_ID, [(counts["rows"], self._last_time, body)]))
        with _disc():
            self._check_room()
            self.file.add(parts)
        self.counts, self._what = counts, ""

    def _counted(self, rows: int, events: int) -> tuple[dict[str, int], str]:
        """The counts with this chunk, and what was special about it."""
        counts = {
            "rows": self.counts["rows"] + rows,
            "lost_rows": self._before["lost_rows"] + self._row_reader.lost,
            "events": self.counts["events"] + events,
            "lost_events": self._before["lost_events"] + self._event_reader.lost,
        }
        lost = counts["lost_rows"] - self.counts["lost_rows"]
        told = [self._what, f"{lost} rows were overwritten before they could be read" if lost else ""]
        return counts, "; ".join(t for t in told if t)

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.path.parent).free
        if free < self._min_free:
            raise RecordingStopped(
                f"only {free / 1e6:.0f} MB are free on its disc (log.record_min_free_mb = {self._min_free / 1e6:g})"
            )

    def summary(self) -> str:
        """One line for the end of a run."""
        lost = f", {self.counts['lost_rows']} LOST" if self.counts["lost_rows"] else ", none lost"
        return f"recorded {self.counts['rows']} rows{lost}: {self.path} ({self.file.size / 1e6:.1f} MB)"


def record(spec: dict[str, Any]) -> str:
    """Record until the end; one line for people about how it went."""
    path = Path(spec["directory"]) / FILE_NAME
    recorder = None
    try:
        recorder = RowRecorder(spec)
        recorder.look()  # compiles what reads the ring, if it must
        _tell("ready")
        recorder.work()
        return recorder.summary()
    except (RecordingStopped, RecordingError) as error:
        rows = recorder.counts["rows"] if recorder else 0
        if recorder:
            _end_early(recorder.file)
        return f"recording stopped after {rows} rows, the node runs on: {path}: {error}"


def _tell(line: str) -> None:
    """Tell the node, if there still is one: a node that was killed does not end the recording of its last rows."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def _end_early(file: McapFile) -> None:
    """A summary, if there is room for one; the file reads without it as well."""
    try:
        file.finish()
    except OSError:
        file.close()


def main() -> int:
    """Entry point: one line of JSON on standard input, then record."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # it ends after the node, with the last row
    keep_off(spec["cpu"])
    control = Control.attach(spec["node"])
    _tell(record(spec))  # the node tells it to people
    node = control[Word.PID]
    while not control[Word.CLOSING] and os.getppid() == node:  # stopped early: one that ended would be started again
        time.sleep(PERIOD_MS * 1e-3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
