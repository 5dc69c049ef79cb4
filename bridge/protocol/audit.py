"""The audit log: who requested what, at which tick and with which result, as JSON lines.

A flood of refused messages must not fill the disk: of those, a few in a second are written out and the rest is counted
in one line.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

WRITTEN_OUT = 20  # refusals in a second that get a line of their own
LONGEST = 500  # [characters] of what was asked


class Audit:
    """Appends to one file; without a file it only counts. A disk that refuses costs the log, not the commands.

    Several threads may write; one that comes after the end is too late and does no harm.
    """

    def __init__(self, path: Path | None, tell: Callable[[str], None] = lambda _line: None) -> None:
        """`tell` takes a line for people: that nothing is written down any more, and why."""
        self._tell = tell
        self._file: TextIO | None = None
        if path:
            try:
                self._file = path.open("a", buffering=1)
            except OSError as error:
                tell(f"{path}: {error.strerror}; commands are not written down")
        self._writing = threading.Lock()
        self._second = 0
        self._in_second = 0
        self._passed_over = 0

    def done(self, who: str, role: str, asked: dict[str, Any], outcome: str, tick: int) -> None:
        """A request that reached the node."""
        self._write({"who": who, "role": role, "asked": _short(asked), "outcome": outcome[:LONGEST], "tick": tick})

    def refused(self, who: str, reason: str, why: str, tick: int) -> None:
        """One that did not."""
        second = int(time.monotonic())
        if second != self._second:
            self.settle(tick)
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._in_second > WRITTEN_OUT:
            self._passed_over += 1
            return
        self._write({"who": who, "refused": reason, "why": why[:LONGEST], "tick": tick})

    def settle(self, tick: int) -> None:
        """Write how many refusals were passed over."""
        if self._passed_over:
            self._write({"refused": "and more", "count": self._passed_over, "tick": tick})
            self._passed_over = 0

    def _write(self, line: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._writing:
            if self._file is None:
                return
            try:
                self._file.write(json.dumps({"time": now, **line}) + "\n")
            except OSError as error:
                self._close_file()
                self._tell(f"audit log: {error.strerror}; commands are no longer written down")

    def close(self, tick: int) -> None:
        self.settle(tick)
        with self._writing:
            self._close_file()

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file:
            with contextlib.suppress(OSError):
                file.close()


def _short(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for; a field too long to be written out is left as the beginning of its text."""
    texts = {key: json.dumps(value) for key, value in asked.items()}
    return {key: value if len(texts[key]) <= LONGEST else texts[key][:LONGEST] + "..." for key, value in asked.items()}
